//! The epoch thread: opens, feeds, seals and completes epochs.
//!
//! It sleeps on three channels: commands of sessions, results of the workers, and reports of the committer. An epoch
//! takes everything that is queued (up to [`EPOCH_BYTES`]); at most [`IN_FLIGHT`] epochs are open at a time. An epoch
//! whose tables no dataflow reads does not concern the workers. A change of the catalog is an epoch of its own, opened
//! when no other is in flight, and so is every step of a fill.
//!
//! Invariant: epochs are sealed, written and published in the order of their numbers.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use crossbeam_channel::{Receiver, Sender};
use plan::{RelationId, SqlState};
use runtime::state::store::{EpochBatch, Write};
use runtime::state::{Snapshot, Sync};
use runtime::{DataflowId, Epoch, EpochResult, Runtime};

use super::Shared;
use super::commit::{Answer, CommitJob, Committed, refused};
use super::ddl::{DdlSet, Turn};
use super::fill::Fill;
use super::space::Space;
use super::write::{TableWrites, WriteSet};
use crate::catalog::{CatalogChange, CatalogVersion, store as catalog_store};
use crate::error::ServerError;

/// Epochs that may be open at a time: while one is being written, the workers are on the next.
const IN_FLIGHT: usize = 2;

/// An epoch takes no more writes once it holds this many bytes.
const EPOCH_BYTES: usize = 64 << 20;

/// Chunk counters are stored ahead by this much, so that few epochs need to store them.
const CHUNKS_AHEAD: i64 = 1024;

/// What sessions ask of the epoch thread.
pub enum Command {
    /// A transaction commits.
    Write(WriteSet, Answer),
    /// The catalog changes.
    Ddl(Box<DdlSet>, Answer),
    /// Complete what is in flight, then end.
    Stop(tokio::sync::oneshot::Sender<()>),
}

/// An epoch that is not written yet.
pub(super) struct InFlight {
    pub epoch: Epoch,
    pub writes: Vec<Write>,
    pub deleted_ranges: Vec<(Bytes, Bytes)>,
    pub changes: Vec<CatalogChange>,
    pub next_id: u32,
    pub answers: Vec<Answer>,
    /// Changes of the catalog that wait for this epoch to be published.
    pub turns: Vec<Turn>,
    /// Keys that it adds.
    pub new_keys: HashSet<Bytes>,
    /// Some dataflow takes part.
    pub sealed: bool,
    pub result: Option<EpochResult>,
    /// Handed to the committer.
    pub writing: bool,
    pub sync: Sync,
}

impl InFlight {
    pub fn new(epoch: Epoch) -> InFlight {
        InFlight {
            epoch,
            writes: Vec::new(),
            deleted_ranges: Vec::new(),
            changes: Vec::new(),
            next_id: 0,
            answers: Vec::new(),
            turns: Vec::new(),
            new_keys: HashSet::new(),
            sealed: false,
            result: None,
            writing: false,
            sync: Sync::Later,
        }
    }
}

/// The state of the epoch thread.
pub struct EpochLoop {
    pub(super) shared: Arc<Shared>,
    pub(super) runtime: Runtime,
    /// The catalog after all epochs that were handed to the committer.
    pub(super) catalog: Arc<CatalogVersion>,
    /// Running dataflows, with the relations that they read.
    pub(super) running: HashMap<DataflowId, Vec<RelationId>>,
    /// Materialized views that are being filled.
    pub(super) fills: Vec<Fill>,
    /// Rows that one epoch reads for one of them.
    pub(super) fill_rows: usize,
    pub(super) in_flight: VecDeque<InFlight>,
    next_epoch: Epoch,
    queue: VecDeque<Command>,
    /// Chunk numbers below are stored as used.
    stored_chunks: HashMap<RelationId, i64>,
    /// The catalog before the epoch in flight that changes it, should that one be forgotten.
    before_changes: Option<Arc<CatalogVersion>>,
    space: Space,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
}

/// The channels of the epoch thread.
pub struct Channels {
    /// From sessions.
    pub commands: Receiver<Command>,
    /// From the workers.
    pub results: Receiver<EpochResult>,
    /// To the committer.
    pub jobs: Sender<CommitJob>,
    /// From the committer.
    pub done: Receiver<Committed>,
}

impl EpochLoop {
    /// The state after recovery.
    pub fn new(
        shared: Arc<Shared>,
        runtime: Runtime,
        catalog: Arc<CatalogVersion>,
        epoch: Epoch,
        running: HashMap<DataflowId, Vec<RelationId>>,
        stored_chunks: HashMap<RelationId, i64>,
        fill_rows: usize,
    ) -> EpochLoop {
        EpochLoop {
            shared,
            runtime,
            catalog,
            running,
            fills: Vec::new(),
            fill_rows,
            in_flight: VecDeque::new(),
            next_epoch: epoch + 1,
            queue: VecDeque::new(),
            stored_chunks,
            before_changes: None,
            space: Space::default(),
            stop: None,
        }
    }

    /// Runs until it is told to stop, or nobody is left to tell.
    pub fn run(mut self, channels: &Channels) {
        loop {
            crossbeam_channel::select! {
                recv(channels.commands) -> command => match command {
                    Ok(command) => self.enqueue(command),
                    Err(_) => break,
                },
                recv(channels.results) -> result => match result {
                    Ok(result) => self.worked(result),
                    Err(_) => return lost("the workers"),
                },
                recv(channels.done) -> done => match done {
                    Ok(done) => self.written(&done),
                    Err(_) => return lost("the committer"),
                },
            }
            while let Ok(done) = channels.done.try_recv() {
                self.written(&done);
            }
            while let Ok(result) = channels.results.try_recv() {
                self.worked(result);
            }
            while let Ok(command) = channels.commands.try_recv() {
                self.enqueue(command);
            }
            self.advance(channels);
            if self.stop.is_some() && self.in_flight.is_empty() && self.queue.is_empty() {
                break;
            }
        }
        self.runtime.stop();
        if let Some(stopped) = self.stop.take() {
            let _ = stopped.send(());
        }
    }

    fn enqueue(&mut self, command: Command) {
        match command {
            Command::Stop(answer) => {
                for fill in self.fills.drain(..) {
                    fill.answer.send(Err(stopping()));
                }
                self.stop = Some(answer);
            }
            Command::Write(_, answer) | Command::Ddl(_, answer) if self.stop.is_some() => answer.send(Err(stopping())),
            Command::Write(_, answer) | Command::Ddl(_, answer) if self.shared.stuck.load(Ordering::SeqCst) => {
                answer.send(Err(refused()));
            }
            command => self.queue.push_back(command),
        }
    }

    /// Opens and completes epochs as far as possible.
    fn advance(&mut self, channels: &Channels) {
        loop {
            let opened = self.open();
            let completed = self.complete(channels);
            if !opened && !completed {
                return;
            }
        }
    }

    /// Opens the next epoch, if there is something for it and room.
    fn open(&mut self) -> bool {
        let idle = self.in_flight.is_empty();
        if !self.fills.is_empty() || matches!(self.queue.front(), Some(Command::Ddl(..))) {
            return idle && self.open_step();
        }
        let pipelined = || {
            let worked_on = self.in_flight.iter().any(|epoch| epoch.sealed && epoch.result.is_none());
            self.in_flight.len() < IN_FLIGHT && (worked_on || self.queue.iter().any(|command| self.concerns(command)))
        };
        // While an epoch that only concerns the store is being written, the next one gathers more.
        if self.queue.is_empty() || !(idle || pipelined()) {
            return false;
        }
        let mut epoch = InFlight::new(self.next_epoch);
        self.take_writes(&mut epoch);
        self.push(epoch)
    }

    /// Opens an epoch for a change of the catalog or a step of the fills.
    fn open_step(&mut self) -> bool {
        let mut epoch = InFlight::new(self.next_epoch);
        if matches!(self.queue.front(), Some(Command::Ddl(..)))
            && let Some(Command::Ddl(ddl, answer)) = self.queue.pop_front()
        {
            self.apply_ddl(&mut epoch, *ddl, answer);
        }
        self.step_fills(&mut epoch);
        if epoch.changes.is_empty() {
            self.take_writes(&mut epoch);
        }
        self.push(epoch)
    }

    /// Seals an epoch and puts it in flight; forgets it if it holds nothing.
    fn push(&mut self, epoch: InFlight) -> bool {
        let nothing = epoch.writes.is_empty()
            && epoch.deleted_ranges.is_empty()
            && epoch.changes.is_empty()
            && epoch.answers.is_empty()
            && !epoch.sealed;
        if nothing {
            return false;
        }
        self.next_epoch = epoch.epoch + 1;
        if epoch.sealed
            && let Err(error) = self.runtime.seal(epoch.epoch)
        {
            lost(&format!("the workers ({error})"));
        }
        self.in_flight.push_back(epoch);
        true
    }

    fn concerns(&self, command: &Command) -> bool {
        match command {
            Command::Write(set, _) => set.tables.iter().any(|table| self.is_read(table.info.relation.id)),
            Command::Ddl(..) | Command::Stop(_) => false,
        }
    }

    fn is_read(&self, relation: RelationId) -> bool {
        self.running.values().any(|inputs| inputs.contains(&relation))
    }

    /// Takes queued writes into an epoch, up to the next change of the catalog.
    fn take_writes(&mut self, epoch: &mut InFlight) {
        let snapshot = self.shared.store.latest();
        let mut bytes = 0;
        while bytes < EPOCH_BYTES && matches!(self.queue.front(), Some(Command::Write(..))) {
            let Some(Command::Write(set, answer)) = self.queue.pop_front() else { return };
            bytes += set.bytes();
            if !self.has_room(&set) {
                answer.send(Err(refused()));
                continue;
            }
            match self.check(epoch, &set, snapshot.as_ref()) {
                Ok(()) => self.take(epoch, set, answer),
                Err(error) => answer.send(Err(error)),
            }
        }
    }

    /// Whether the disk has room for a set.
    fn has_room(&mut self, set: &WriteSet) -> bool {
        match self.shared.data_dir.get() {
            Some(data_dir) => self.space.admits(data_dir, set.stored_bytes()),
            None => true,
        }
    }

    /// Whether a set can be applied: its tables are there, and its new keys are new.
    fn check(&self, epoch: &InFlight, set: &WriteSet, snapshot: &dyn Snapshot) -> Result<(), ServerError> {
        for table in &set.tables {
            let relation = &table.info.relation;
            if self.catalog.owner(relation.id).is_none() {
                let message = format!("relation \"{}\" does not exist", relation.name);
                return Err(ServerError::new(SqlState::UNDEFINED_TABLE, message));
            }
            let added = |key: &&Bytes| {
                epoch.new_keys.contains(*key) || self.in_flight.iter().any(|epoch| epoch.new_keys.contains(*key))
            };
            if let Some(key) = table.new_keys.iter().find(added) {
                return Err(table.duplicate(key));
            }
            if let Some(key) = existing_key(table, snapshot)? {
                return Err(table.duplicate(key));
            }
        }
        Ok(())
    }

    fn take(&mut self, epoch: &mut InFlight, set: WriteSet, answer: Answer) {
        epoch.sync = Sync::Now;
        epoch.answers.push(answer);
        for table in set.tables {
            let relation = table.info.relation.id;
            epoch.new_keys.extend(table.new_keys);
            epoch.writes.extend(table.writes);
            epoch.deleted_ranges.extend(table.deleted_ranges);
            if let Some(next) = table.next_chunk {
                self.store_chunk_counter(epoch, relation, next);
            }
            if !self.is_read(relation) {
                continue;
            }
            epoch.sealed = true;
            for change in table.changes {
                if let Err(error) = self.runtime.feed(epoch.epoch, relation, change) {
                    lost(&format!("the workers ({error})"));
                }
            }
        }
    }

    fn store_chunk_counter(&mut self, epoch: &mut InFlight, table: RelationId, next: i64) {
        let stored = self.stored_chunks.entry(table).or_default();
        if next > *stored {
            *stored = next + CHUNKS_AHEAD;
            let write = catalog_store::chunk_counter(table, *stored);
            epoch.writes.retain(|(key, _)| *key != write.0);
            epoch.writes.push(write);
        }
    }

    /// Counters that a change of the catalog stores itself.
    pub(super) fn note_chunks(&mut self, chunks: HashMap<RelationId, i64>) {
        self.stored_chunks.extend(chunks);
    }

    /// The workers are done with an epoch.
    fn worked(&mut self, result: EpochResult) {
        match self.in_flight.iter_mut().find(|epoch| epoch.epoch == result.epoch) {
            Some(epoch) => epoch.result = Some(result),
            None => tracing::error!(epoch = result.epoch, "the workers report an epoch that is not in flight"),
        }
    }

    /// Hands epochs that are complete to the committer, in order.
    fn complete(&mut self, channels: &Channels) -> bool {
        let mut any = false;
        for position in 0..self.in_flight.len() {
            let epoch = &self.in_flight[position];
            if epoch.writing {
                continue;
            }
            if epoch.sealed && epoch.result.is_none() {
                break;
            }
            let job = self.job(position);
            if channels.jobs.send(job).is_err() {
                lost("the committer");
            }
            any = true;
        }
        any
    }

    fn job(&mut self, position: usize) -> CommitJob {
        self.in_flight[position].writing = true;
        let result = self.in_flight[position].result.take();
        let (failures, worked) = match result {
            Some(result) => {
                let epoch = &mut self.in_flight[position];
                epoch.writes.extend(result.writes);
                (result.failures, true)
            }
            None => (Vec::new(), false),
        };
        self.note_failures(position, failures);
        self.finish_fills(position);
        let epoch = &mut self.in_flight[position];
        let (changes, next_id) = (std::mem::take(&mut epoch.changes), epoch.next_id);
        if !changes.is_empty() {
            self.before_changes = Some(self.catalog.clone());
            epoch.sync = Sync::Now;
            let applied = self.catalog.with_changes(&changes, next_id).and_then(|version| {
                epoch.writes.extend(catalog_store::writes(&changes, version.next_id())?);
                Ok(version)
            });
            match applied {
                Ok(version) => self.catalog = Arc::new(version),
                // Changes were applied once before, by the session that asked for them.
                Err(error) => lost(&format!("the catalog ({error})")),
            }
        }
        CommitJob {
            batch: EpochBatch {
                epoch: epoch.epoch,
                writes: std::mem::take(&mut epoch.writes),
                deleted_ranges: std::mem::take(&mut epoch.deleted_ranges),
            },
            sync: epoch.sync,
            catalog: self.catalog.clone(),
            answers: std::mem::take(&mut epoch.answers),
            turns: std::mem::take(&mut epoch.turns),
            revocable: !worked && !epoch.sealed,
        }
    }

    /// The committer is done with an epoch.
    fn written(&mut self, done: &Committed) {
        let Some(epoch) = self.in_flight.pop_front() else { return };
        debug_assert_eq!(epoch.epoch, done.epoch, "epochs are written in order");
        let before_changes = self.before_changes.take();
        if !done.written {
            // The counters may not be stored: store them again.
            self.stored_chunks.clear();
            if let Some(before) = before_changes {
                self.catalog = before;
            }
            return;
        }
        if epoch.sealed
            && let Err(error) = self.runtime.committed(done.epoch)
        {
            lost(&format!("the workers ({error})"));
        }
    }
}

/// A key of a table's new ones that is in the store.
fn existing_key<'a>(table: &'a TableWrites, snapshot: &dyn Snapshot) -> Result<Option<&'a Bytes>, ServerError> {
    if table.new_keys.is_empty() {
        return Ok(None);
    }
    let mut keys: Vec<&Bytes> = table.new_keys.iter().collect();
    keys.sort_unstable();
    let slices: Vec<&[u8]> = keys.iter().map(|key| key.as_ref()).collect();
    let found = snapshot.get_many(&slices)?;
    Ok(keys.iter().zip(found).find(|(_, value)| value.is_some()).map(|(key, _)| *key))
}

fn stopping() -> ServerError {
    ServerError::new(SqlState::ADMIN_SHUTDOWN, "terminating connection due to administrator command")
}

/// A part without which nothing can be written has gone: what is in the store is complete, a restart goes on from it.
fn lost(what: &str) {
    tracing::error!("{what} stopped unexpectedly; the server ends and can be started again");
    crate::shutdown::end_process(70);
}
