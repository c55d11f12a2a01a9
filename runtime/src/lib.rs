//! Executes dataflow plans.
//!
//! Reading order: [`delta`] (what flows), [`operators`] (what is done to it), [`state`] (what is kept),
//! `engine` (how it runs on timely), [`Runtime`] (the handle that a server holds).

pub mod clock;
pub mod delta;
mod engine;
pub mod error;
pub mod expressions;
pub mod functions;
pub mod limits;
pub mod operators;
pub mod state;

pub use delta::Delta;
pub use engine::{Change, DataflowDescription, DataflowId, EpochResult, FillPosition, Runtime, RuntimeConfig};
pub use error::Error;

/// Logical time: the number of an atomic set of input changes.
pub type Epoch = u64;
