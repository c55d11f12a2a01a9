//! What sqlparser does not know in the arguments of windows is spelled otherwise before parsing:
//!
//! - `TUMBLE(TABLE bids, ...)`: the word TABLE in front of a window function's table says nothing that its place does not
//!   say; it is taken out.
//! - `SESSION(bids PARTITION BY a, b, ...)` becomes `SESSION(bids, "partition by" => (a, b), ...)`.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Word};
use plan::{PlanError, SqlState};

use super::arguments::PARTITION;

/// The names of window functions.
const WINDOWS: [&str; 4] = ["tumble", "hop", "cumulate", "session"];

/// The tokens with the arguments of windows as sqlparser knows them.
pub(crate) fn plain_arguments(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, PlanError> {
    partition_as_argument(without_table(tokens))
}

/// Takes the word TABLE out of `TUMBLE(TABLE name` and `DATA => TABLE name`.
fn without_table(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if !tokens.iter().any(|token| is_word(&token.token, &["table"])) {
        return tokens;
    }
    let significant = significant(&tokens);
    let mut redundant = Vec::new();
    for (place, index) in significant.iter().enumerate().skip(2) {
        if !is_word(&tokens[*index].token, &["table"]) {
            continue;
        }
        let before = &tokens[significant[place - 1]].token;
        let name = &tokens[significant[place - 2]].token;
        let next_is_name = significant.get(place + 1).is_some_and(|next| matches!(tokens[*next].token, Token::Word(_)));
        let positional = *before == Token::LParen && is_word(name, &WINDOWS);
        let named = *before == Token::RArrow && is_word(name, &["data"]);
        if next_is_name && (positional || named) {
            redundant.push(*index);
        }
    }
    for index in redundant.into_iter().rev() {
        tokens.remove(index);
    }
    tokens
}

/// Makes an argument of `PARTITION BY a, b` behind the table of a window: its list ends at the first named argument, or
/// before the last two (a time and a gap).
fn partition_as_argument(mut tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, PlanError> {
    while let Some(list) = partition_list(&tokens)? {
        let span = tokens[list.partition].span;
        let token = |token| TokenWithSpan { token, span };
        let name = Word {
            value: PARTITION.to_owned(),
            quote_style: Some('"'),
            keyword: datafusion::sql::sqlparser::keywords::Keyword::NoKeyword,
        };
        tokens.insert(list.end, token(Token::RParen));
        let argument = [Token::Comma, Token::Word(name), Token::RArrow, Token::LParen].map(token);
        tokens.splice(list.partition..=list.by, argument);
    }
    Ok(tokens)
}

/// Where the words PARTITION and BY stand, and where the list behind them ends.
struct PartitionList {
    partition: usize,
    by: usize,
    end: usize,
}

/// The first PARTITION BY that stands among the arguments of a window.
fn partition_list(tokens: &[TokenWithSpan]) -> Result<Option<PartitionList>, PlanError> {
    let significant = significant(tokens);
    let token = |place: usize| significant.get(place).map(|index| &tokens[*index].token);
    // For each open parenthesis, whether it is that of a window.
    let mut open: Vec<bool> = Vec::new();
    for place in 0..significant.len() {
        match token(place) {
            Some(Token::LParen) => {
                let of_window = place > 0 && token(place - 1).is_some_and(|name| is_word(name, &WINDOWS));
                open.push(of_window);
            }
            Some(Token::RParen) => {
                open.pop();
            }
            Some(word)
                if open.last() == Some(&true)
                    && is_word(word, &["partition"])
                    && token(place + 1).is_some_and(|next| is_word(next, &["by"])) =>
            {
                let (partition, by) = (significant[place], significant[place + 1]);
                let end = end_of_list(&significant, tokens, place + 2).ok_or_else(|| {
                    PlanError::new(SqlState::SYNTAX_ERROR, "PARTITION BY of a window lacks the arguments behind it")
                        .with_hint("Write SESSION(table PARTITION BY column, ..., time column, gap).")
                })?;
                return Ok(Some(PartitionList { partition, by, end }));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// The index of the comma behind a list of partitions that begins at a place.
fn end_of_list(significant: &[usize], tokens: &[TokenWithSpan], first: usize) -> Option<usize> {
    let mut depth = 0;
    let mut commas = Vec::new();
    for place in first..significant.len() {
        match &tokens[significant[place]].token {
            Token::LParen => depth += 1,
            Token::RParen if depth == 0 => break,
            Token::RParen => depth -= 1,
            Token::Comma if depth == 0 => {
                let named = significant.get(place + 2).is_some_and(|next| tokens[*next].token == Token::RArrow);
                commas.push(significant[place]);
                if named {
                    return commas.pop();
                }
            }
            _ => {}
        }
    }
    commas.len().checked_sub(2).map(|last| commas[last])
}

/// The indices of tokens that are no white space.
fn significant(tokens: &[TokenWithSpan]) -> Vec<usize> {
    (0..tokens.len()).filter(|index| !matches!(tokens[*index].token, Token::Whitespace(_))).collect()
}

fn is_word(token: &Token, words: &[&str]) -> bool {
    match token {
        Token::Word(word) => word.quote_style.is_none() && words.iter().any(|one| word.value.eq_ignore_ascii_case(one)),
        _ => false,
    }
}
