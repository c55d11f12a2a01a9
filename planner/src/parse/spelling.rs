//! Words that sqlparser does not know at their place, taken out or replaced before parsing: BETWEEN SYMMETRIC and ASYMMETRIC,
//! and EXCLUDE in a window's frame.

use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use plan::PlanError;

use super::statements::is_word;

/// Stands, with `||` behind it, in front of the first bound of BETWEEN SYMMETRIC. Everything of that bound binds as strongly
/// as `||` or stronger.
pub(crate) const SYMMETRIC: &str = "?symmetric";

/// Replaces what is not known to sqlparser.
pub(super) fn plain(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, PlanError> {
    let known =
        |token: &TokenWithSpan| ["symmetric", "asymmetric", "exclude"].iter().any(|word| is_word(&token.token, word));
    if !tokens.iter().any(known) {
        return Ok(tokens);
    }
    let significant: Vec<usize> =
        (0..tokens.len()).filter(|index| !matches!(tokens[*index].token, Token::Whitespace(_))).collect();
    let word =
        |place: usize, word: &str| significant.get(place).is_some_and(|index| is_word(&tokens[*index].token, word));
    let mut gone = vec![false; tokens.len()];
    let mut marked = vec![false; tokens.len()];
    for (place, index) in significant.iter().enumerate().skip(1) {
        if word(place - 1, "between") && word(place, "asymmetric") {
            gone[*index] = true;
        } else if word(place - 1, "between") && word(place, "symmetric") {
            marked[*index] = true;
        } else if word(place, "exclude") && ends_frame(&tokens, &significant, place) {
            if !(word(place + 1, "no") && word(place + 2, "others")) {
                return Err(PlanError::unsupported("EXCLUDE CURRENT ROW, GROUP and TIES in a window's frame"));
            }
            significant[place..place + 3].iter().for_each(|index| gone[*index] = true);
        }
    }
    let mut plain = Vec::with_capacity(tokens.len() + 1);
    for (index, token) in tokens.into_iter().enumerate() {
        if marked[index] {
            plain.push(TokenWithSpan::new(Token::make_word(SYMMETRIC, Some('"')), token.span));
            plain.push(TokenWithSpan::new(Token::StringConcat, token.span));
        } else if !gone[index] {
            plain.push(token);
        }
    }
    Ok(plain)
}

/// Whether an EXCLUDE stands behind the bounds of a frame and is the last of a window.
fn ends_frame(tokens: &[TokenWithSpan], significant: &[usize], place: usize) -> bool {
    let token = |place: usize| significant.get(place).map(|index| &tokens[*index].token);
    let is =
        |place: usize, words: &[&str]| token(place).is_some_and(|token| words.iter().any(|word| is_word(token, word)));
    let behind = is(place - 1, &["preceding", "following"])
        || (place >= 2 && is(place - 1, &["row"]) && is(place - 2, &["current"]));
    let two = (is(place + 1, &["no"]) && is(place + 2, &["others"]))
        || (is(place + 1, &["current"]) && is(place + 2, &["row"]));
    let one = is(place + 1, &["group", "ties"]);
    let length = if two { 2 } else { 1 };
    behind && (one || two) && token(place + length + 1) == Some(&Token::RParen)
}
