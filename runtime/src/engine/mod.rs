//! Runs dataflow plans on timely: worker threads, exchange of rows by key, epochs.

use std::sync::Arc;

use crossbeam_channel::Receiver;
use datafusion::arrow::array::Int64Array;
use plan::{Dataflow, Relation, RelationId};

use crate::Epoch;
use crate::delta::Delta;
use crate::error::{Error, Result};
use crate::operators::OperatorDef;
use crate::state::Store;
use crate::state::store::Write;

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

/// The handle on the worker threads. All calls return at once; results come through the receiver that
/// [`Runtime::start`] returns.
#[derive(Debug)]
pub struct Runtime {
    config: RuntimeConfig,
}

impl Runtime {
    /// Starts the worker threads. One [`EpochResult`] comes through the receiver for each sealed epoch, in order.
    pub fn start(
        config: RuntimeConfig,
        store: Arc<dyn Store>,
        definitions: Vec<Arc<dyn OperatorDef>>,
    ) -> Result<(Runtime, Receiver<EpochResult>)> {
        let (_sender, receiver) = crossbeam_channel::unbounded();
        let _ = (store, definitions);
        Ok((Runtime { config }, receiver))
    }

    /// Creates a dataflow; it takes part from the next epoch that is sealed. The imports of a fresh dataflow begin at
    /// [`FillPosition::Start`], those of a resumed one at [`FillPosition::End`].
    pub fn create(&self, description: DataflowDescription) -> Result<()> {
        let _ = description;
        self.not_running()
    }

    /// From the next epoch on, changes of `relation` pass to `dataflow` up to this position only.
    pub fn set_fill(&self, dataflow: DataflowId, relation: RelationId, position: FillPosition) -> Result<()> {
        let _ = (dataflow, relation, position);
        self.not_running()
    }

    /// Ends a dataflow with the epochs that were sealed so far.
    pub fn drop_dataflow(&self, dataflow: DataflowId) -> Result<()> {
        let _ = dataflow;
        self.not_running()
    }

    /// Hands a change of a table to every dataflow that imports it, as far as each has been filled.
    pub fn feed(&self, epoch: Epoch, relation: RelationId, change: Change) -> Result<()> {
        let _ = (epoch, relation, change);
        self.not_running()
    }

    /// Hands rows that were read from the store to one dataflow, to fill it.
    pub fn fill(&self, epoch: Epoch, dataflow: DataflowId, relation: RelationId, rows: Delta) -> Result<()> {
        let _ = (epoch, dataflow, relation, rows);
        self.not_running()
    }

    /// Everything of the epoch has been fed. Epochs increase; gaps are allowed.
    pub fn seal(&self, epoch: Epoch) -> Result<()> {
        let _ = epoch;
        self.not_running()
    }

    /// The writes of the epoch are in the store.
    pub fn committed(&self, epoch: Epoch) -> Result<()> {
        let _ = epoch;
        self.not_running()
    }

    /// Stops the worker threads and waits for them. Epochs that were not reported are lost.
    pub fn stop(self) {}

    fn not_running(&self) -> Result<()> {
        Err(Error::Dataflow(format!("{} workers are not running yet", self.config.workers)))
    }
}
