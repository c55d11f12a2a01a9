//! Runs dataflow plans on timely: worker threads, exchange of rows by key, epochs.
//!
//! What the engine promises:
//! - All workers execute the same control commands in the same order. Dataflows are created and dropped, and fill
//!   positions moved, between epochs: with effect from the next epoch that is sealed.
//! - An operator sees one epoch after the other: its rows in any order, then one close. Several epochs may be under
//!   way in a dataflow at once, each operator being in its own.
//! - A row reaches the worker that owns the partition of its key, where a port asks for that, and the state tables of
//!   that worker hold the partition. Otherwise nothing may depend on how rows are dealt out.
//! - The results of sealed epochs come one by one, in order, each once all workers have done all of it. What is
//!   reported of an epoch is complete: every view shows the same input changes.
//! - An operator that fails or panics takes its dataflow, and those that read it, out of that epoch and all later
//!   ones; nothing of them is in the results. Nobody else notices.
//!
//! Reading order: [`command`] (what workers are told), `worker` (their loop), `dataflow` (the graph of a plan),
//! `import` (what reaches it), `operator` (how operators run), `exchange`, `container` (rows between workers),
//! `collect` (results), `runtime` (the handle).
//!
//! Only this folder knows timely; it knows neither SQL, nor what any operator does, nor how the store is built.

mod collect;
mod command;
mod container;
mod control;
mod dataflow;
mod exchange;
mod import;
mod operator;
mod runtime;
#[cfg(test)]
pub(crate) mod tests;
mod worker;

use std::sync::Arc;

use datafusion::arrow::array::Int64Array;
use plan::{Dataflow, Relation, RelationId};

use crate::Epoch;
use crate::delta::Delta;
use crate::state::store::Write;

pub use runtime::Runtime;

/// The identity of a running dataflow: that of the relation it fills.
pub type DataflowId = RelationId;

/// How the runtime is set up.
#[derive(Debug, Clone)]
pub struct RuntimeConfig {
    /// Worker threads.
    pub workers: usize,
    /// Bytes for the caches of all operators together.
    pub cache_bytes: usize,
}

/// What a dataflow computes and where its result is stored.
#[derive(Debug, Clone)]
pub struct DataflowDescription {
    /// The relation that it fills.
    pub output: Arc<Relation>,
    /// The relation of its failed rows.
    pub errors: Arc<Relation>,
    /// The plan.
    pub plan: Arc<Dataflow>,
    /// Store table of the operators' first state table; the others follow.
    pub first_state_table: u32,
    /// Whether the store holds no state of it yet: then nothing needs to be read before it is written.
    pub fresh: bool,
}

/// A change of a table, as the coordinator feeds it.
#[derive(Debug, Clone)]
pub struct Change {
    /// Rows added and removed.
    pub delta: Delta,
    /// Row numbers of a [`plan::Layout::RowId`] table, one a row.
    pub rowids: Option<Int64Array>,
}

/// How far a new dataflow has read an input relation: changes beyond it are not for it yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FillPosition {
    /// Nothing read yet.
    Start,
    /// All entries up to and including this store key have been read.
    Through(bytes::Bytes),
    /// Everything has been read: all changes are for it.
    End,
}

/// What all workers together made of an epoch.
#[derive(Debug)]
pub struct EpochResult {
    /// The epoch.
    pub epoch: Epoch,
    /// State and view rows to write, at most one write a key.
    pub writes: Vec<Write>,
    /// Consolidated changes of materialized views (and their error relations) in this epoch.
    pub changes: Vec<(RelationId, Delta)>,
    /// Dataflows that failed, with the reason. They are stopped; what they wrote in this epoch is not in `writes`.
    pub failures: Vec<(DataflowId, String)>,
}
