//! Words that sqlparser does not know at their place, taken out or replaced before parsing: BETWEEN SYMMETRIC and ASYMMETRIC,
//! and EXCLUDE in a window's frame.

use std::collections::HashMap;

use datafusion::sql::sqlparser::ast::Ident;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use plan::PlanError;
use plan::exclusion::Exclusion;

use super::fold;
use super::statements::is_word;

/// Stands, with `||` behind it, in front of the first bound of BETWEEN SYMMETRIC. Everything of that bound binds as strongly
/// as `||` or stronger.
pub(crate) const SYMMETRIC: &str = "?symmetric";

/// Begins the name of the window that a window with an EXCLUDE is based on. Behind it are what is left out, a colon, and the
/// name that was written, if one was.
const EXCLUDE: &str = "?exclude ";

/// What the frame of a window leaves out, and the window that it is based on, by the name of the latter; none if the name is
/// one that was written.
pub(crate) fn exclusion(base: &Ident) -> Option<(Exclusion, Option<Ident>)> {
    let (text, name) = base.value.strip_prefix(EXCLUDE)?.split_once(':')?;
    let name = (!name.is_empty()).then(|| Ident { value: name.to_owned(), quote_style: Some('"'), span: base.span });
    Some((Exclusion::of_text(text)?, name))
}

/// What becomes of a token.
enum Edit {
    Gone,
    Symmetric,
    /// Another one comes behind it.
    Followed(Token),
    Replaced(Token),
}

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
    let mut edits: HashMap<usize, Edit> = HashMap::new();
    for (place, index) in significant.iter().enumerate().skip(1) {
        if word(place - 1, "between") && word(place, "asymmetric") {
            edits.insert(*index, Edit::Gone);
        } else if word(place - 1, "between") && word(place, "symmetric") {
            edits.insert(*index, Edit::Symmetric);
        } else if word(place, "exclude") && ends_frame(&tokens, &significant, place) {
            let (length, exclusion) = match () {
                () if word(place + 1, "current") => (3, Some(Exclusion::CurrentRow)),
                () if word(place + 1, "group") => (2, Some(Exclusion::Group)),
                () if word(place + 1, "ties") => (2, Some(Exclusion::Ties)),
                () => (3, None),
            };
            edits.extend(significant[place..place + length].iter().map(|index| (*index, Edit::Gone)));
            if let Some(exclusion) = exclusion {
                edits.extend(mark(&tokens, &significant, place, exclusion));
            }
        }
    }
    let mut plain = Vec::with_capacity(tokens.len() + 2);
    for (index, token) in tokens.into_iter().enumerate() {
        let span = token.span;
        match edits.remove(&index) {
            None => plain.push(token),
            Some(Edit::Gone) => {}
            Some(Edit::Symmetric) => {
                plain.push(TokenWithSpan::new(Token::make_word(SYMMETRIC, Some('"')), span));
                plain.push(TokenWithSpan::new(Token::StringConcat, span));
            }
            Some(Edit::Followed(other)) => plain.extend([token, TokenWithSpan::new(other, span)]),
            Some(Edit::Replaced(other)) => plain.push(TokenWithSpan::new(other, span)),
        }
    }
    Ok(plain)
}

/// Writes what a frame leaves out into the name of the window that its window is based on, which is the first thing between
/// the parentheses.
fn mark(tokens: &[TokenWithSpan], significant: &[usize], place: usize, exclusion: Exclusion) -> Option<(usize, Edit)> {
    let mut depth = 0;
    let open = (0..place).rev().find(|place| match tokens[significant[*place]].token {
        Token::RParen => {
            depth += 1;
            false
        }
        Token::LParen if depth == 0 => true,
        Token::LParen => {
            depth -= 1;
            false
        }
        _ => false,
    })?;
    let named = |name: &str| Token::make_word(&format!("{EXCLUDE}{}:{name}", exclusion.text()), Some('"'));
    let first = *significant.get(open + 1)?;
    match &tokens[first].token {
        Token::Word(word) if word.keyword == Keyword::NoKeyword => {
            let name = Ident { value: word.value.clone(), quote_style: word.quote_style, span: tokens[first].span };
            Some((first, Edit::Replaced(named(&fold(&name)))))
        }
        _ => Some((significant[open], Edit::Followed(named("")))),
    }
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
