//! `TUMBLE(TABLE bids, ...)`: the word TABLE in front of a window function's table says nothing that its place does
//! not say, and sqlparser does not know it there; it is taken out before parsing.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use plan::PlanError;

/// Takes the word TABLE out of `TUMBLE(TABLE name` and `DATA => TABLE name`.
pub(crate) fn plain_table_arguments(mut tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, PlanError> {
    if !tokens.iter().any(|token| is_word(&token.token, &["table"])) {
        return Ok(tokens);
    }
    let significant: Vec<usize> =
        (0..tokens.len()).filter(|index| !matches!(tokens[*index].token, Token::Whitespace(_))).collect();
    let mut redundant = Vec::new();
    for (place, index) in significant.iter().enumerate().skip(2) {
        if !is_word(&tokens[*index].token, &["table"]) {
            continue;
        }
        let before = &tokens[significant[place - 1]].token;
        let name = &tokens[significant[place - 2]].token;
        let next_is_name = significant.get(place + 1).is_some_and(|next| matches!(tokens[*next].token, Token::Word(_)));
        if !next_is_name {
            continue;
        }
        if *before == Token::LParen && is_word(name, &["session"]) {
            return Err(PlanError::unsupported("SESSION"));
        }
        if *before == Token::LParen && is_word(name, &["cumulate"]) {
            return Err(PlanError::unsupported("CUMULATE"));
        }
        let positional = *before == Token::LParen && is_word(name, &["tumble", "hop"]);
        let named = *before == Token::RArrow && is_word(name, &["data"]);
        if positional || named {
            redundant.push(*index);
        }
    }
    for index in redundant.into_iter().rev() {
        tokens.remove(index);
    }
    Ok(tokens)
}

fn is_word(token: &Token, words: &[&str]) -> bool {
    match token {
        Token::Word(word) => word.quote_style.is_none() && words.iter().any(|one| word.value.eq_ignore_ascii_case(one)),
        _ => false,
    }
}
