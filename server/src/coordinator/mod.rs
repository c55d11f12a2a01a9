//! The coordinator: the one place that decides what an epoch is.
//!
//! An *epoch* is a set of table changes and catalog changes that becomes, all at once, one atomic write to the
//! store, one published snapshot and one acknowledgement to its writers. Sessions hold a [`Coordinator`] handle;
//! they read what is [`Published`] and write through a [`Transaction`].
//!
//! Reading order: [`transaction`] (what a session may do), `write` (a transaction's changes as one unit),
//! `epoch` (the thread that opens, seals and completes epochs), `commit` (the thread that writes them),
//! `locks` (who may change a table), `ddl` and `fill` (between two epochs), `recovery` (from the store to a
//! running coordinator).

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use plan::SqlState;
use planner::Planner;
use runtime::state::{Snapshot, Store};
use runtime::{Epoch, RuntimeConfig};

use crate::catalog::{CatalogVersion, SystemFunctions};
use crate::error::ServerError;

pub mod transaction;

pub use transaction::Transaction;

/// The newest complete epoch, as reads see it.
pub struct Published {
    /// Its number.
    pub epoch: Epoch,
    /// Its rows.
    pub snapshot: Arc<dyn Snapshot>,
    /// Its catalog.
    pub catalog: Arc<CatalogVersion>,
}

/// Something that a client is told besides the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// `NOTICE` or `WARNING`.
    pub severity: &'static str,
    /// Code.
    pub sqlstate: SqlState,
    /// One line.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// What to do.
    pub hint: Option<String>,
}

impl Notice {
    /// A NOTICE with a message only.
    pub fn notice(message: impl Into<String>) -> Self {
        Notice {
            severity: "NOTICE",
            sqlstate: SqlState("00000"),
            message: message.into(),
            detail: None,
            hint: None,
        }
    }

    /// A WARNING with a message only.
    pub fn warning(message: impl Into<String>) -> Self {
        Notice {
            severity: "WARNING",
            sqlstate: SqlState::WARNING,
            message: message.into(),
            detail: None,
            hint: None,
        }
    }
}

/// The rows of a query. Dropping `rows` cancels it.
pub struct QueryRows {
    /// Columns.
    pub schema: SchemaRef,
    /// Rows, batch by batch.
    pub rows: SendableRecordBatchStream,
    /// What to tell the client.
    pub warnings: Vec<Notice>,
}

/// What a data-modifying statement did.
#[derive(Debug, Clone, Default)]
pub struct DmlResult {
    /// Affected rows, as Postgres counts them.
    pub count: u64,
    /// The rows of RETURNING.
    pub returning: Option<(SchemaRef, Vec<RecordBatch>)>,
}

/// What a statement that changes the catalog did.
#[derive(Debug, Clone, Default)]
pub struct DdlOutcome {
    /// Command tag, like `CREATE TABLE`.
    pub tag: String,
    /// What to tell the client.
    pub notices: Vec<Notice>,
}

/// Handle of the coordinator, shared by all sessions.
pub struct Coordinator {
    planner: Arc<Planner>,
}

impl Coordinator {
    /// Recovers what the store holds, and starts.
    pub fn start(
        _store: Arc<dyn Store>,
        _runtime: RuntimeConfig,
        _planner: Arc<Planner>,
        _functions: SystemFunctions,
    ) -> Result<Arc<Coordinator>, ServerError> {
        Err(ServerError::from(plan::PlanError::unsupported("the coordinator")))
    }

    /// The newest complete epoch.
    pub fn published(&self) -> Arc<Published> {
        Arc::new(Published {
            epoch: 0,
            snapshot: runtime::state::memory::MemoryStore::new().snapshot(),
            catalog: Arc::new(CatalogVersion::default()),
        })
    }

    /// The planner that all sessions share.
    pub fn planner(&self) -> &Arc<Planner> {
        &self.planner
    }

    /// Ends the epochs in flight and stops. Writes that arrive later are refused.
    pub async fn stop(&self) {}
}
