//! The handle on the worker threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crossbeam_channel::{Receiver, bounded};
use parking_lot::Mutex;
use plan::{NodeKind, RelationId};
use timely::communication::WorkerGuards;
use timely::worker::Worker;

use super::collect::Collector;
use super::command::{Command, Lines};
use super::dataflow::Definitions;
use super::operator::panic_message;
use super::worker::WorkerLoop;
use super::{Change, DataflowDescription, DataflowId, EpochResult, FillPosition, RuntimeConfig};
use crate::Epoch;
use crate::delta::Delta;
use crate::error::{Error, Result};
use crate::limits::{EPOCH_RESULTS_MAX, SPLIT_ROWS_MIN, WORKER_COMMANDS_MAX, WORKER_IDLE_SPIN_MICROS};
use crate::operators::OperatorDef;
use crate::state::{Store, WorkerState};

/// The handle on the worker threads. All calls return at once; results come through the receiver that
/// [`Runtime::start`] returns. Calls from several threads take effect in one order on all workers.
pub struct Runtime {
    lines: Arc<Lines>,
    collector: Arc<Collector>,
    definitions: Arc<Definitions>,
    /// The worker that gets the next small change.
    next_worker: AtomicUsize,
    /// The worker threads, until they are joined.
    guards: Mutex<Option<WorkerGuards<()>>>,
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Runtime").field("workers", &self.lines.workers()).finish_non_exhaustive()
    }
}

impl Runtime {
    /// Starts the worker threads. One [`EpochResult`] comes through the receiver for each sealed epoch, in order; the
    /// receiver is disconnected when the runtime has stopped, or a defect has ended a worker.
    pub fn start(
        config: RuntimeConfig,
        store: Arc<dyn Store>,
        definitions: Vec<Arc<dyn OperatorDef>>,
    ) -> Result<(Runtime, Receiver<EpochResult>)> {
        let workers = config.workers.max(1);
        let (results_sender, results) = bounded(EPOCH_RESULTS_MAX);
        let collector = Arc::new(Collector::new(workers, results_sender));
        let definitions: Arc<Definitions> =
            Arc::new(definitions.into_iter().map(|definition| (definition.name(), definition)).collect());
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..workers).map(|_| bounded::<Command>(WORKER_COMMANDS_MAX)).unzip();
        let receivers: Mutex<Vec<Option<Receiver<Command>>>> = Mutex::new(receivers.into_iter().map(Some).collect());
        let (threads_sender, threads) = bounded(workers);

        let mut timely_config = timely::Config::process(workers);
        timely_config.worker = timely_config.worker.idle_spin(Duration::from_micros(WORKER_IDLE_SPIN_MICROS));
        let shared = (collector.clone(), definitions.clone());
        let guards = timely::execute(timely_config, move |worker: &mut Worker| {
            let index = worker.index();
            let _ = threads_sender.send((index, std::thread::current()));
            let Some(commands) = receivers.lock().get_mut(index).and_then(Option::take) else { return };
            let state = WorkerState::new(store.clone(), config.cache_bytes / workers);
            let (collector, definitions) = shared.clone();
            let ended = catch_unwind(AssertUnwindSafe(|| {
                WorkerLoop::new(worker, commands, state, definitions, collector.clone()).run();
            }));
            if let Err(payload) = ended {
                tracing::error!(worker = index, reason = panic_message(payload.as_ref()), "a worker thread has failed");
            }
            collector.close();
        })
        .map_err(|reason| Error::Dataflow(format!("worker threads cannot be started: {reason}")))?;

        let mut threads: Vec<_> = threads.iter().take(workers).collect();
        threads.sort_by_key(|(index, _)| *index);
        let lines = senders.into_iter().zip(threads).map(|(sender, (_, thread))| (sender, thread)).collect();
        let lines = Arc::new(Lines::new(lines));
        collector.connect(lines.clone());
        let runtime = Runtime {
            lines,
            collector,
            definitions,
            next_worker: AtomicUsize::new(0),
            guards: Mutex::new(Some(guards)),
        };
        Ok((runtime, results))
    }

    /// Creates a dataflow; it takes part from the next epoch that is sealed. The imports of a fresh dataflow begin at
    /// [`FillPosition::Start`], those of a resumed one at [`FillPosition::End`]. A dataflow that reads another one is
    /// created after it.
    pub fn create(&self, description: DataflowDescription) -> Result<()> {
        description.plan.validate()?;
        for node in description.plan.nodes() {
            if let NodeKind::Operator(spec) = &node.kind
                && !self.definitions.contains_key(spec.name())
            {
                return Err(Error::Dataflow(format!("there is no operator {}", spec.name())));
            }
        }
        if self.collector.knows(description.output.id) {
            return Err(Error::Dataflow(format!("{} is being computed already", description.output.name)));
        }
        let description = Arc::new(description);
        self.collector.add(description.clone());
        self.lines.broadcast(&Command::Create(description))
    }

    /// From the next epoch on, changes of `relation` pass to `dataflow` up to this position only. The rows up to the
    /// position must have been handed over by [`Runtime::fill`] as they stood after the newest sealed epoch, in this
    /// next epoch or before.
    pub fn set_fill(&self, dataflow: DataflowId, relation: RelationId, position: FillPosition) -> Result<()> {
        self.lines.broadcast(&Command::SetFill(dataflow, relation, position))
    }

    /// Ends a dataflow with the epochs that were sealed so far. One that is read by others is dropped after them.
    pub fn drop_dataflow(&self, dataflow: DataflowId) -> Result<()> {
        self.collector.remove(dataflow);
        self.lines.broadcast(&Command::Drop(dataflow))
    }

    /// Hands a change of a table to every dataflow that imports it, as far as each has been filled.
    pub fn feed(&self, epoch: Epoch, relation: RelationId, change: Change) -> Result<()> {
        for (worker, offset, length) in self.parts(change.delta.len()) {
            let part = Change {
                delta: change.delta.slice(offset, length),
                rowids: change.rowids.as_ref().map(|rowids| rowids.slice(offset, length)),
            };
            self.lines.send(worker, Command::Input(epoch, relation, part))?;
            self.wake_for(worker, length);
        }
        Ok(())
    }

    /// Hands rows that were read from the store to one dataflow, to fill it.
    pub fn fill(&self, epoch: Epoch, dataflow: DataflowId, relation: RelationId, rows: Delta) -> Result<()> {
        for (worker, offset, length) in self.parts(rows.len()) {
            self.lines.send(worker, Command::Fill(epoch, dataflow, relation, rows.slice(offset, length)))?;
            self.wake_for(worker, length);
        }
        Ok(())
    }

    /// Everything of the epoch has been fed. Epochs increase; gaps are allowed.
    pub fn seal(&self, epoch: Epoch) -> Result<()> {
        self.lines.broadcast(&Command::Seal(epoch))
    }

    /// The writes of the epoch are in the store. Workers let go of them when they are awake the next time.
    pub fn committed(&self, epoch: Epoch) -> Result<()> {
        self.lines.leave_word(&Command::Committed(epoch))
    }

    /// Stops the worker threads and waits for them. Epochs that were not reported are lost.
    pub fn stop(self) {
        drop(self);
    }

    /// How so many rows are dealt out: the worker, the first row and the number of rows of each part.
    fn parts(&self, rows: usize) -> Vec<(usize, usize, usize)> {
        let workers = self.lines.workers();
        if rows < SPLIT_ROWS_MIN * workers {
            let worker = self.next_worker.fetch_add(1, Ordering::Relaxed) % workers;
            return if rows == 0 { Vec::new() } else { vec![(worker, 0, rows)] };
        }
        let bounds = (0..=workers).map(|worker| rows * worker / workers).collect::<Vec<_>>();
        bounds.windows(2).enumerate().map(|(worker, bounds)| (worker, bounds[0], bounds[1] - bounds[0])).collect()
    }

    fn wake_for(&self, worker: usize, rows: usize) {
        if rows >= SPLIT_ROWS_MIN {
            self.lines.wake(worker);
        }
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // Fails if a worker has stopped by itself; the others stop all the same.
        let _ = self.lines.broadcast(&Command::Stop);
        let guards = self.guards.lock().take();
        drop(guards);
        self.collector.close();
    }
}
