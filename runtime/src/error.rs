//! Errors of the runtime, classed by what the caller should do.

use plan::PlanError;

/// What went wrong in the runtime, by consequence.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The disk is full: the epoch was not written; try again when there is space.
    #[error("no space left on the device: {0}")]
    DiskFull(String),
    /// The data directory is in use, of another format, or cannot be read: do not start.
    #[error("{0}")]
    CannotOpen(String),
    /// Reading or writing the store failed in another way.
    #[error("storage error: {0}")]
    Storage(String),
    /// Stored bytes are not what was written: stop before anything is written on top.
    #[error("stored data is damaged: {0}")]
    Corrupted(String),
    /// An operator cannot go on: its dataflow is to be dropped or rebuilt.
    #[error("dataflow failed: {0}")]
    Dataflow(String),
    /// An expression cannot be evaluated.
    #[error(transparent)]
    DataFusion(#[from] datafusion::error::DataFusionError),
    /// Arrow refused.
    #[error(transparent)]
    Arrow(#[from] datafusion::arrow::error::ArrowError),
    /// A statement cannot be planned or run.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// Result with the runtime's error.
pub type Result<T, E = Error> = std::result::Result<T, E>;
