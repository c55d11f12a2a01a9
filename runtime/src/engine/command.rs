//! What a worker is told: a closed list. Every worker gets all control commands, in one order; the rows of a change
//! are dealt out, so that each row reaches one worker.

use std::sync::Arc;
use std::thread::Thread;

use crossbeam_channel::{Sender, TrySendError};
use parking_lot::Mutex;
use plan::RelationId;

use super::{Change, DataflowDescription, DataflowId, FillPosition};
use crate::Epoch;
use crate::delta::Delta;
use crate::error::{Error, Result};

/// A command to a worker.
#[derive(Debug, Clone)]
pub(super) enum Command {
    /// Build a dataflow; it takes part from the next sealed epoch on.
    Create(Arc<DataflowDescription>),
    /// End a dataflow with the epochs sealed so far.
    Drop(DataflowId),
    /// Throw away what a dataflow does in this and later epochs: it failed, here or on another worker.
    Abandon(DataflowId, Epoch),
    /// From the next epoch on, changes of the relation pass to the dataflow up to this position.
    SetFill(DataflowId, RelationId, FillPosition),
    /// A part of a change of a table, for all dataflows that import it.
    Input(Epoch, RelationId, Change),
    /// A part of the rows that fill one dataflow.
    Fill(Epoch, DataflowId, RelationId, Delta),
    /// Everything of the epoch has been handed over.
    Seal(Epoch),
    /// The writes of the epoch are in the store.
    Committed(Epoch),
    /// End the worker.
    Stop,
}

/// The way to one worker.
#[derive(Debug)]
struct Line {
    sender: Sender<Command>,
    thread: Thread,
}

impl Line {
    /// Waits for room, if need be.
    fn send(&self, command: Command) -> Result<()> {
        let sent = match self.sender.try_send(command) {
            Err(TrySendError::Full(command)) => {
                // A worker that sleeps would not make room: a seal wakes it, and that comes later.
                self.thread.unpark();
                self.sender.send(command).is_ok()
            }
            other => other.is_ok(),
        };
        if sent { Ok(()) } else { Err(Error::Dataflow("a worker thread has stopped".to_owned())) }
    }
}

/// The ways to all workers of this process. A lock around them gives all workers one order of commands.
///
/// The channels are wide: what bounds them is the coordinator, by the epochs in flight and the bytes of each.
#[derive(Debug)]
pub(super) struct Lines {
    lines: Mutex<Vec<Line>>,
    workers: usize,
}

impl Lines {
    /// From each worker's channel and thread, by worker number.
    pub(super) fn new(lines: Vec<(Sender<Command>, Thread)>) -> Self {
        let workers = lines.len();
        let lines = lines.into_iter().map(|(sender, thread)| Line { sender, thread }).collect();
        Lines { lines: Mutex::new(lines), workers }
    }

    /// How many workers there are.
    pub(super) fn workers(&self) -> usize {
        self.workers
    }

    /// Tells all workers the same, and wakes them.
    pub(super) fn broadcast(&self, command: &Command) -> Result<()> {
        let lines = self.lines.lock();
        lines.iter().try_for_each(|line| line.send(command.clone()))?;
        // A worker sleeps when it has nothing to do; woken after sending, it cannot miss the command.
        lines.iter().for_each(|line| line.thread.unpark());
        Ok(())
    }

    /// Tells all workers what they may miss: for workers themselves, which must not wait for one another.
    pub(super) fn hint(&self, command: &Command) {
        // Who has the lock may be waiting for this worker to make room.
        let Some(lines) = self.lines.try_lock() else { return };
        for line in lines.iter() {
            // Full or gone: then they miss it.
            let _ = line.sender.try_send(command.clone());
            line.thread.unpark();
        }
    }

    /// Tells all workers the same, to be seen when they are awake the next time.
    pub(super) fn leave_word(&self, command: &Command) -> Result<()> {
        self.lines.lock().iter().try_for_each(|line| line.send(command.clone()))
    }

    /// Tells one worker something of its own. It is not woken: the epoch's seal follows and wakes it.
    pub(super) fn send(&self, worker: usize, command: Command) -> Result<()> {
        self.lines.lock().get(worker).map_or(Ok(()), |line| line.send(command))
    }

    /// Wakes a worker that was sent something large, so that it begins before the seal.
    pub(super) fn wake(&self, worker: usize) {
        if let Some(line) = self.lines.lock().get(worker) {
            line.thread.unpark();
        }
    }
}
