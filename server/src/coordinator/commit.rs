//! The committer: writes epochs one after the other, publishes each, and answers its writers.
//!
//! Never is something acknowledged that is not in the store, and never is something reported as failed that may
//! appear later. Mostly a full disk is noticed before an epoch begins ([`super::space`]); if not:
//! - When the disk is full and no dataflow has seen the epoch, the epoch is forgotten and its writers get 53100.
//! - When the disk is full (or writing fails otherwise) and dataflows have absorbed the epoch, it cannot be taken back:
//!   the same batch is tried again until it succeeds. Meanwhile new writes are refused with 53100 and reads go on. Its
//!   writers are answered when it has succeeded, or after [`OUTCOME_TIMEOUT`] with 08007 (outcome unknown).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use plan::SqlState;
use runtime::state::store::EpochBatch;
use runtime::state::{Store, Sync};
use runtime::{Epoch, clock};
use tokio::sync::oneshot;

use super::ddl::Turn;
use super::locks::Held;
use super::{Published, Shared};
use crate::catalog::CatalogVersion;
use crate::error::ServerError;

/// How long a writer waits for an epoch that cannot be written and cannot be taken back.
const OUTCOME_TIMEOUT: Duration = Duration::from_secs(10);

/// How long to wait before writing is tried again.
const RETRY: Duration = Duration::from_millis(250);

/// What an epoch owes to a session.
pub struct Answer {
    /// To whom.
    pub sender: oneshot::Sender<Result<(), ServerError>>,
    /// Locks that are released when the epoch is published.
    pub locks: Option<Held>,
    /// Room in the queue that is given back.
    pub permit: Option<tokio::sync::OwnedSemaphorePermit>,
    /// What to say when the epoch is published, if what was asked for did not come about in it.
    pub refusal: Option<ServerError>,
}

impl Answer {
    /// Releases what is held and tells the session.
    pub fn send(self, result: Result<(), ServerError>) {
        drop(self.locks);
        drop(self.permit);
        // A session that has gone away does not want to know.
        let _ = self.sender.send(match self.refusal {
            Some(refusal) => result.and(Err(refusal)),
            None => result,
        });
    }
}

/// An epoch that is complete but for being written.
pub struct CommitJob {
    /// What to write.
    pub batch: EpochBatch,
    /// Whether it must be on disk before it is acknowledged.
    pub sync: Sync,
    /// The catalog as of this epoch.
    pub catalog: Arc<CatalogVersion>,
    /// Whom to tell.
    pub answers: Vec<Answer>,
    /// Released when the epoch is published.
    pub turns: Vec<Turn>,
    /// No dataflow has seen the epoch: it can be forgotten.
    pub revocable: bool,
}

/// What became of an epoch.
pub struct Committed {
    /// The epoch.
    pub epoch: Epoch,
    /// Whether it is in the store; otherwise it is forgotten.
    pub written: bool,
}

/// Runs until no more jobs come.
pub fn run(shared: &Shared, jobs: &Receiver<CommitJob>, done: &Sender<Committed>) {
    while let Ok(job) = jobs.recv() {
        let epoch = job.batch.epoch;
        let written = commit(shared, job);
        if done.send(Committed { epoch, written }).is_err() {
            return;
        }
    }
}

fn commit(shared: &Shared, job: CommitJob) -> bool {
    let CommitJob { batch, sync, catalog, mut answers, turns, revocable } = job;
    let epoch = batch.epoch;
    let begun = clock::monotonic();
    loop {
        let error = match shared.store.commit(&batch, sync) {
            Ok(()) => break,
            Err(error) => error,
        };
        tracing::error!(epoch, %error, "an epoch could not be written");
        if revocable && matches!(error, runtime::Error::DiskFull(_)) {
            let error = ServerError::from(error);
            for answer in answers {
                answer.send(Err(error.clone()));
            }
            return false;
        }
        shared.stuck.store(true, Ordering::SeqCst);
        if clock::elapsed(begun) > OUTCOME_TIMEOUT {
            for answer in answers.drain(..) {
                answer.send(Err(outcome_unknown()));
            }
        }
        pause(&shared.stopping);
    }
    shared.stuck.store(false, Ordering::SeqCst);
    shared.published.store(Arc::new(Published { snapshot: shared.store.snapshot(), catalog: catalog.clone() }));
    shared.functions.publish(catalog);
    shared.epochs.send_replace(epoch);
    drop(turns);
    for answer in answers {
        answer.send(Ok(()));
    }
    true
}

/// Waits before the next try. A server that is stopping gives up: what is not in the store was never acknowledged.
fn pause(stopping: &AtomicBool) {
    if stopping.load(Ordering::SeqCst) {
        tracing::error!("stopping with an epoch that could not be written; it was not acknowledged");
        crate::shutdown::end_process(1);
    }
    std::thread::park_timeout(RETRY);
}

fn outcome_unknown() -> ServerError {
    ServerError::new(SqlState("08007"), "the outcome of the transaction is not known yet")
        .with_detail("It could not be written so far, and is tried again until it is.")
        .with_hint("Free some space on the disk, then look whether the change is there.")
}

/// The error for writes while an epoch cannot be written.
pub fn refused() -> ServerError {
    ServerError::new(SqlState::DISK_FULL, "could not write: no space left on device")
        .with_hint("Reads go on. Writes are accepted again when there is space.")
}

/// The newest epoch of a store, as published after recovery.
pub fn publish_recovered(store: &Arc<dyn Store>, catalog: Arc<CatalogVersion>) -> Published {
    let snapshot = store.snapshot();
    Published { snapshot, catalog }
}
