//! Statement texts and places in them.
//!
//! sqlparser's locations are lines and columns in the whole text that the client sent; PostgreSQL's positions are
//! characters in it, from 1. A [`Source`] converts one to the other, on the way to an error message only.

use datafusion::sql::sqlparser::dialect::PostgreSqlDialect;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer, TokenizerError};
use plan::{PlanError, SqlState};

/// The dialect of all texts.
pub(crate) static DIALECT: PostgreSqlDialect = PostgreSqlDialect {};

/// The text of a statement and where it stands in the whole text.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// The statement's exact text.
    pub text: String,
    /// Characters before it in the whole text.
    pub offset: usize,
    /// Line and column of its first character in the whole text.
    pub start: Location,
}

impl Source {
    /// A text that is a whole text.
    pub fn whole(text: &str) -> Source {
        Source { text: text.to_string(), offset: 0, start: Location::new(1, 1) }
    }

    /// Byte offset in the statement's text of a location of the whole text.
    pub fn byte_of(&self, location: Location) -> Option<usize> {
        if location.line < self.start.line || location.line == 0 {
            return None;
        }
        let mut scan = Scan { at: self.start, byte: 0, character: 0 };
        scan.advance_to(&self.text, location);
        Some(scan.byte)
    }

    /// Position in the whole text, in characters from 1, of a location of the whole text.
    pub fn position_of(&self, location: Location) -> Option<usize> {
        let byte = self.byte_of(location)?;
        Some(self.offset + self.text[..byte].chars().count() + 1)
    }

    /// Position of the first place where a name is used: the word itself, or the word after a qualifier.
    pub fn position_of_name(&self, qualifier: Option<&str>, name: &str) -> Option<usize> {
        let tokens = Tokenizer::new(&DIALECT, &self.text).tokenize_with_location().ok()?;
        let tokens: Vec<&TokenWithSpan> =
            tokens.iter().filter(|token| !matches!(token.token, Token::Whitespace(_))).collect();
        let is_word = |index: usize, text: &str| match &tokens[index].token {
            Token::Word(word) if word.quote_style.is_some() => word.value == text,
            Token::Word(word) => word.value.to_lowercase() == text,
            _ => false,
        };
        let found = (0..tokens.len()).find(|index| {
            let index = *index;
            if !is_word(index, name) {
                return false;
            }
            let qualified = index >= 2 && tokens[index - 1].token == Token::Period;
            match qualifier {
                Some(qualifier) => qualified && is_word(index - 2, qualifier),
                // The word after AS is a new name and not a use.
                None => !(index >= 1 && is_word(index - 1, "as")),
            }
        });
        let index = found?;
        let index = if qualifier.is_some() { index - 2 } else { index };
        let within = Source::whole(&self.text).position_of(tokens[index].span.start)?;
        Some(self.offset + within)
    }

    /// The tokens of the text that are not white space or comments; none if it has no tokens.
    pub fn tokens(&self) -> Vec<Token> {
        let tokens = Tokenizer::new(&DIALECT, &self.text).tokenize().unwrap_or_default();
        tokens.into_iter().filter(|token| !matches!(token, Token::Whitespace(_))).collect()
    }

    /// Position of the first string constant with a value.
    pub fn position_of_string(&self, value: &str) -> Option<usize> {
        let tokens = Tokenizer::new(&DIALECT, &self.text).tokenize_with_location().ok()?;
        let token = tokens.iter().find(|token| match &token.token {
            Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => text == value,
            _ => false,
        })?;
        let within = Source::whole(&self.text).position_of(token.span.start)?;
        Some(self.offset + within)
    }

    /// "syntax error at or near ..." for the token that stands at a location.
    fn error_at(&self, location: Location) -> PlanError {
        match self.byte_of(location) {
            Some(byte) if byte < self.text.len() => {
                let near = first_token(&self.text[byte..]);
                PlanError::new(SqlState::SYNTAX_ERROR, format!("syntax error at or near \"{near}\""))
                    .at(self.position_of(location))
            }
            _ => self.error_at_end(),
        }
    }

    /// "syntax error at end of input".
    fn error_at_end(&self) -> PlanError {
        PlanError::new(SqlState::SYNTAX_ERROR, "syntax error at end of input")
            .at(Some(self.offset + self.text.chars().count() + 1))
    }

    /// A syntax error at a token.
    pub fn unexpected(&self, token: &TokenWithSpan) -> PlanError {
        if token.token == Token::EOF { self.error_at_end() } else { self.error_at(token.span.start) }
    }

    /// What sqlparser says, as PostgreSQL would. `next` is the token at which the parser stands, for messages that
    /// carry no location.
    pub fn syntax_error(&self, error: &ParserError, next: &TokenWithSpan) -> PlanError {
        match error {
            ParserError::RecursionLimitExceeded => {
                PlanError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "the statement is nested too deeply")
            }
            ParserError::TokenizerError(message) | ParserError::ParserError(message) => {
                if message.contains("found: EOF") {
                    return self.error_at_end();
                }
                match location_in(message) {
                    Some(location) => self.error_at(location),
                    None => self.unexpected(next),
                }
            }
        }
    }
}

/// The text of the first token of a text.
fn first_token(text: &str) -> &str {
    let Ok(tokens) = Tokenizer::new(&DIALECT, text).tokenize_with_location() else {
        return text.split_whitespace().next().unwrap_or(text);
    };
    match tokens.first() {
        Some(token) => {
            let end = Source::whole(text).byte_of(token.span.end).unwrap_or(text.len());
            text[..end].trim_end()
        }
        None => text,
    }
}

/// The "at Line: 1, Column: 2" of sqlparser's messages.
fn location_in(message: &str) -> Option<Location> {
    let (_, after) = message.rsplit_once("Line: ")?;
    let (line, after) = after.split_once(", Column: ")?;
    let column: String = after.chars().take_while(char::is_ascii_digit).collect();
    Some(Location::new(line.trim().parse().ok()?, column.parse().ok()?))
}

/// A place in a text that only moves forward.
struct Scan {
    at: Location,
    byte: usize,
    character: usize,
}

impl Scan {
    fn advance_to(&mut self, text: &str, location: Location) {
        for c in text[self.byte..].chars() {
            if (self.at.line, self.at.column) >= (location.line, location.column) {
                break;
            }
            self.byte += c.len_utf8();
            self.character += 1;
            if c == '\n' {
                self.at.line += 1;
                self.at.column = 1;
            } else {
                self.at.column += 1;
            }
        }
    }
}

/// Splits a text at its semicolons. Quotes, dollar quotes and comments are read by sqlparser's tokenizer, so that a
/// semicolon inside of them is none. Statements of only white space between semicolons are left out; a text
/// without any statement is one empty statement.
pub(crate) fn split(text: &str) -> Result<Vec<(Source, Vec<TokenWithSpan>)>, PlanError> {
    let tokens =
        Tokenizer::new(&DIALECT, text).tokenize_with_location().map_err(|error| tokenizer_error(text, &error))?;
    let mut statements = Vec::with_capacity(1);
    let mut scan = Scan { at: Location::new(1, 1), byte: 0, character: 0 };
    let mut current: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut finish = |current: &mut Vec<TokenWithSpan>| {
        while current.last().is_some_and(|token| matches!(token.token, Token::Whitespace(_))) {
            current.pop();
        }
        let (Some(first), Some(last)) = (current.first(), current.last()) else { return };
        let (start, end) = (first.span.start, last.span.end);
        scan.advance_to(text, start);
        let (offset, first_byte) = (scan.character, scan.byte);
        scan.advance_to(text, end);
        let source = Source { text: text[first_byte..scan.byte].to_string(), offset, start };
        statements.push((source, std::mem::take(current)));
    };
    for token in tokens {
        match token.token {
            Token::SemiColon => finish(&mut current),
            Token::EOF => {}
            Token::Whitespace(_) if current.is_empty() => {}
            _ => current.push(token),
        }
    }
    finish(&mut current);
    if statements.is_empty() {
        statements.push((Source::whole(""), Vec::new()));
    }
    Ok(statements)
}

/// Unterminated quotes and comments, in PostgreSQL's words.
fn tokenizer_error(text: &str, error: &TokenizerError) -> PlanError {
    let source = Source::whole(text);
    let message = error.message.to_lowercase();
    let what = if message.contains("unterminated string") || message.contains("unterminated encoded") {
        "unterminated quoted string"
    } else if message.contains("close delimiter") {
        "unterminated quoted identifier"
    } else if message.contains("comment") {
        "unterminated /* comment"
    } else if message.contains("dollar") {
        "unterminated dollar-quoted string"
    } else {
        return source.error_at(error.location);
    };
    let near = source.byte_of(error.location).map_or("", |byte| &text[byte..]);
    let near = near.lines().next().unwrap_or("");
    PlanError::new(SqlState::SYNTAX_ERROR, format!("{what} at or near \"{near}\""))
        .at(source.position_of(error.location))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<(usize, String)> {
        split(text).unwrap().into_iter().map(|(source, _)| (source.offset, source.text)).collect()
    }

    #[test]
    fn splits_at_semicolons_outside_of_quotes() {
        assert_eq!(texts("SELECT 1"), [(0, "SELECT 1".to_string())]);
        assert_eq!(
            texts(" SELECT ';' ; -- a; comment\n\nSELECT $$;$$ /* ; /* ; */ */;;"),
            [(1, "SELECT ';'".to_string()), (29, "SELECT $$;$$".to_string())]
        );
        assert_eq!(texts("é;\n x"), [(0, "é".to_string()), (4, "x".to_string())]);
        assert_eq!(texts(" -- nothing"), [(0, String::new())]);
    }

    #[test]
    fn unterminated_quotes_are_syntax_errors() {
        for text in ["SELECT 'a", "SELECT \"a", "SELECT /* a", "SELECT $$a"] {
            let error = split(text).unwrap_err();
            assert_eq!(error.sqlstate, SqlState::SYNTAX_ERROR, "{text}: {error}");
            assert!(error.position.is_some(), "{text}: {error:?}");
        }
    }
}
