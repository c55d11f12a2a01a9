//! Text to syntax trees: each statement keeps its exact text and its place in the whole text.

use plan::PlanError;

/// A statement's syntax tree, its text and its place.
#[derive(Debug, Clone)]
pub struct Parsed {
    text: String,
    offset: usize,
}

impl Parsed {
    /// The statement's exact text, without the semicolon.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Where the statement begins in the whole text, in characters.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Whether it is only white space and comments.
    pub fn is_empty(&self) -> bool {
        self.text.trim().is_empty()
    }

    /// Whether it begins or ends a transaction block: these are allowed in a failed transaction.
    pub fn is_transaction_control(&self) -> bool {
        false
    }
}

/// Splits a text into statements and parses each.
pub fn parse(text: &str) -> Result<Vec<Parsed>, PlanError> {
    Err(PlanError::unsupported(format!("\"{text}\"")))
}
