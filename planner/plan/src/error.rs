//! What a user is told when a statement cannot be planned or run.

use crate::sqlstate::SqlState;

/// An error in the parts in which PostgreSQL's protocol carries it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PlanError {
    /// The code by which a client recognises the error.
    pub sqlstate: SqlState,
    /// What happened, one line.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// What to write instead.
    pub hint: Option<String>,
    /// Where in the statement's text, counted in characters from 1.
    pub position: Option<usize>,
}

impl PlanError {
    /// An error with a code and a message only.
    pub fn new(sqlstate: SqlState, message: impl Into<String>) -> Self {
        PlanError { sqlstate, message: message.into(), detail: None, hint: None, position: None }
    }

    /// "X is not supported yet", with SQLSTATE 0A000.
    pub fn unsupported(what: impl std::fmt::Display) -> Self {
        PlanError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{what} is not supported yet"))
    }

    /// A defect of the server, for one statement: the statement fails, nothing else.
    pub fn internal(what: impl std::fmt::Display) -> Self {
        PlanError::new(SqlState::INTERNAL_ERROR, format!("internal error: {what}"))
    }

    /// Adds more about what happened.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds what to write instead.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds where in the statement's text it happened (characters from 1).
    #[must_use]
    pub fn at(mut self, position: Option<usize>) -> Self {
        self.position = position.or(self.position);
        self
    }
}
