//! The coordinator: the one place that decides what an epoch is.
//!
//! An *epoch* is a set of table changes and catalog changes that becomes, all at once, one atomic write to the
//! store, one published snapshot and one acknowledgement to its writers. Sessions hold a [`Coordinator`] handle;
//! they read what is [`Published`] and write through a [`Transaction`].
//!
//! Acknowledgement comes after publication, so a read that begins after an acknowledgement sees what was written, on
//! any session.
//!
//! Reading order: [`transaction`] (what a session may do), [`dml`] (INSERT, UPDATE, DELETE), [`write`] (a transaction's
//! changes as one unit), [`epoch`] (the thread that opens, seals and completes epochs), [`commit`] (the thread that
//! writes them), [`locks`] (who may change a table), [`ddl`] and [`fill`] (between two epochs), [`recovery`] (from the
//! store to a running coordinator).

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use crossbeam_channel::Sender;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use plan::SqlState;
use planner::Planner;
use runtime::state::{Snapshot, Store};
use runtime::{Epoch, RuntimeConfig};
use tokio::sync::{Semaphore, oneshot, watch};

use crate::catalog::{CatalogVersion, SystemFunctions};
use crate::error::ServerError;
use crate::read::Reader;
use crate::task;

pub mod commit;
pub mod ddl;
pub mod dml;
pub mod epoch;
pub mod fill;
pub mod locks;
pub mod recovery;
pub mod returning;
mod space;
pub mod transaction;
pub mod write;

pub use crate::error::Notice;
pub use transaction::Transaction;

use commit::{Answer, CommitJob, Committed};
use ddl::{DdlSet, Turn};
use epoch::{Channels, Command, EpochLoop};
use locks::{Held, Locks};
use write::{ChunkCounters, WriteSet};

/// Bytes of writes that may wait for an epoch or be in one: more make their sessions wait.
const QUEUE_BYTES: usize = 256 << 20;

/// The unit in which room in the queue is counted. The queue has a place for each from the start, so small units would
/// cost memory at rest; this one lets 4,096 small writes wait at a time.
const QUEUE_UNIT: usize = 1 << 16;

/// The newest complete epoch, as reads see it.
pub struct Published {
    /// Its rows.
    pub snapshot: Arc<dyn Snapshot>,
    /// Its catalog.
    pub catalog: Arc<CatalogVersion>,
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

/// What the coordinator's threads and its handles share.
pub struct Shared {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The newest complete epoch.
    pub published: ArcSwap<Published>,
    /// Where the system functions find the catalog.
    pub functions: SystemFunctions,
    /// The newest complete epoch again, for those who wait for one.
    pub epochs: watch::Sender<Epoch>,
    /// Where the store lies, once somebody said so: then epochs look for room on the disk before they begin.
    pub data_dir: OnceLock<PathBuf>,
    /// An epoch cannot be written: new writes are refused.
    pub stuck: AtomicBool,
    /// The server is stopping.
    pub stopping: AtomicBool,
}

/// Handle of the coordinator, shared by all sessions.
pub struct Coordinator {
    shared: Arc<Shared>,
    reader: Reader,
    commands: Sender<Command>,
    /// Room in the queue of writes, in units of [`QUEUE_UNIT`] bytes.
    room: Arc<Semaphore>,
    locks: Arc<Locks>,
    chunks: ChunkCounters,
    /// One change of the catalog at a time.
    ddl: Arc<tokio::sync::Mutex<()>>,
}

impl Coordinator {
    /// Recovers what the store holds, and starts. An epoch reads about `fill_rows` rows for each new view.
    pub fn start(
        store: Arc<dyn Store>,
        runtime: RuntimeConfig,
        planner: Arc<Planner>,
        functions: SystemFunctions,
        fill_rows: usize,
    ) -> Result<Arc<Coordinator>, ServerError> {
        let recovered = recovery::recover(&store, runtime, &planner)?;
        functions.publish(recovered.catalog.clone());
        let published = commit::publish_recovered(&store, recovered.catalog.clone());
        let shared = Arc::new(Shared {
            store,
            published: ArcSwap::from_pointee(published),
            functions,
            epochs: watch::Sender::new(recovered.epoch),
            data_dir: OnceLock::new(),
            stuck: AtomicBool::new(false),
            stopping: AtomicBool::new(false),
        });
        let units = QUEUE_BYTES / QUEUE_UNIT;
        // Every command holds at least one unit of room, so the channel never blocks a sender.
        let (commands, command_receiver) = crossbeam_channel::bounded(units + 1);
        let (jobs, job_receiver) = crossbeam_channel::bounded::<CommitJob>(4);
        let (done_sender, done) = crossbeam_channel::bounded::<Committed>(4);
        let committer = shared.clone();
        spawn("committer", move || commit::run(&committer, &job_receiver, &done_sender))?;
        let chunks = ChunkCounters::resume(recovered.chunks.iter().map(|(table, next)| (*table, *next)));
        let epochs = EpochLoop::new(
            shared.clone(),
            recovered.runtime,
            recovered.catalog,
            recovered.epoch,
            recovered.running,
            recovered.chunks,
            fill_rows,
        );
        let channels = Channels { commands: command_receiver, results: recovered.results, jobs, done };
        spawn("epochs", move || epochs.run(&channels))?;
        Ok(Arc::new(Coordinator {
            shared,
            reader: Reader::new(planner),
            commands,
            room: Arc::new(Semaphore::new(units)),
            locks: Arc::new(Locks::default()),
            chunks,
            ddl: Arc::default(),
        }))
    }

    /// The newest complete epoch.
    pub fn published(&self) -> Arc<Published> {
        self.shared.published.load_full()
    }

    /// Says where the store lies, so that writes are refused before the disk is full.
    pub fn watch_disk(&self, data_dir: &Path) {
        let _ = self.shared.data_dir.set(data_dir.to_owned());
    }

    /// The planner that all sessions share.
    pub fn planner(&self) -> &Arc<Planner> {
        self.reader.planner()
    }

    /// What runs queries.
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// Ends the epochs in flight and stops; then all of them are on disk. Writes that arrive later are refused.
    pub async fn stop(&self) -> Result<(), ServerError> {
        self.shared.stopping.store(true, Ordering::SeqCst);
        let (sender, stopped) = oneshot::channel();
        if self.commands.send(Command::Stop(sender)).is_ok() {
            let _ = stopped.await;
        }
        Ok(self.shared.store.sync()?)
    }

    /// Hands a transaction's changes to the next epoch and waits until that is published. The locks are released then,
    /// even if the session does not wait.
    async fn write(&self, set: WriteSet, locks: Held) -> Result<(), ServerError> {
        let room = set.bytes().div_ceil(QUEUE_UNIT).clamp(1, QUEUE_BYTES / QUEUE_UNIT);
        self.submit(room, Some(locks), |answer| Command::Write(set, answer)).await
    }

    /// Hands a change of the catalog to an epoch of its own and waits until that is published.
    async fn change_catalog(&self, set: DdlSet, turn: Turn, locks: Held) -> Result<(), ServerError> {
        let set = DdlSet { turn: Some(turn), ..set };
        self.submit(1, Some(locks), |answer| Command::Ddl(Box::new(set), answer)).await
    }

    async fn submit(
        &self,
        room: usize,
        locks: Option<Held>,
        command: impl FnOnce(Answer) -> Command,
    ) -> Result<(), ServerError> {
        if self.shared.stuck.load(Ordering::SeqCst) {
            return Err(commit::refused());
        }
        let room = u32::try_from(room).unwrap_or(u32::MAX);
        let permit = self.room.clone().acquire_many_owned(room).await.map_err(|_| stopped())?;
        let (sender, answered) = oneshot::channel();
        let answer = Answer { sender, locks, permit: Some(permit), refusal: None };
        self.commands.send(command(answer)).map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }
}

/// Starts one of the coordinator's threads. If one panics nothing can be written any more: the process ends, and a
/// restart goes on from the store.
fn spawn(name: &'static str, body: impl FnOnce() + Send + 'static) -> Result<(), ServerError> {
    let guarded = move || {
        if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)) {
            tracing::error!(thread = name, "panicked: {}; the server ends", task::panic_text(panic.as_ref()));
            crate::shutdown::end_process(70);
        }
    };
    task::spawn_thread(name, guarded)
        .map(drop)
        .map_err(|error| ServerError::internal(format!("cannot start the thread {name}: {error}")))
}

fn stopped() -> ServerError {
    ServerError::new(SqlState::ADMIN_SHUTDOWN, "the server is stopping")
}

fn cancelled() -> ServerError {
    ServerError::cancelled()
}

#[cfg(test)]
mod tests;
