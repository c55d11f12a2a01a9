//! The loop of one worker thread: take commands, step timely, hand changes from dataflow to dataflow, report epochs.
//!
//! A view that reads another view gets its changes here: what a dataflow gives out on a worker goes into the inputs
//! of its readers on the same worker, and the input's time follows the frontier of the dataflow that gives. Dataflows
//! are kept in the order of their creation, in which every reader comes after what it reads.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use crossbeam_channel::{Receiver, TryRecvError};
use plan::RelationId;
use timely::worker::Worker;

use super::collect::{Collector, Report};
use super::command::Command;
use super::control::Control;
use super::dataflow::{Definitions, Running, Surroundings, build, tables_of};
use super::{Change, DataflowDescription, DataflowId};
use crate::Epoch;
use crate::delta::Delta;
use crate::operators::Filling;
use crate::state::WorkerState;

/// One worker.
pub(super) struct WorkerLoop<'a> {
    worker: &'a mut Worker,
    commands: Receiver<Command>,
    state: WorkerState,
    definitions: Arc<Definitions>,
    collector: Arc<Collector>,
    /// The epoch for which an operator runs.
    epoch: Rc<Cell<Epoch>>,
    /// In the order of creation.
    dataflows: Vec<Running>,
    /// For each relation, the positions of the dataflows that import it.
    readers: HashMap<RelationId, Vec<usize>>,
    /// The newest sealed epoch.
    sealed: Epoch,
    /// Sealed epochs that were not reported.
    outstanding: VecDeque<Epoch>,
    /// What dataflows gave out in epochs that were not reported.
    changes: BTreeMap<Epoch, Vec<(RelationId, Delta)>>,
}

impl<'a> WorkerLoop<'a> {
    /// A worker without dataflows.
    pub(super) fn new(
        worker: &'a mut Worker,
        commands: Receiver<Command>,
        state: WorkerState,
        definitions: Arc<Definitions>,
        collector: Arc<Collector>,
    ) -> Self {
        WorkerLoop {
            worker,
            commands,
            state,
            definitions,
            collector,
            epoch: Rc::default(),
            dataflows: Vec::new(),
            readers: HashMap::new(),
            sealed: 0,
            outstanding: VecDeque::new(),
            changes: BTreeMap::new(),
        }
    }

    /// Runs until told to stop.
    pub(super) fn run(mut self) {
        loop {
            match self.commands.try_recv() {
                Ok(Command::Stop) | Err(TryRecvError::Disconnected) => break,
                Ok(command) => {
                    self.execute(command);
                    continue;
                }
                Err(TryRecvError::Empty) => {}
            }
            self.pass_on_changes();
            self.report_epochs();
            self.remove_ended();
            // Parks only if no operator has anything to do. Whoever sends a command or rows wakes the thread, and
            // between the look at the commands and the parking nothing runs that could swallow the wake-up.
            self.worker.step_or_park(None);
        }
        self.dataflows.clear();
        for index in self.worker.installed_dataflows() {
            self.worker.drop_dataflow(index);
        }
    }

    fn execute(&mut self, command: Command) {
        match command {
            Command::Create(description) => self.create(description),
            Command::Drop(dataflow) => self.end(dataflow),
            Command::Abandon(dataflow, epoch) => {
                self.dataflows.iter().filter(|running| running.id() == dataflow).for_each(|r| r.control.abandon(epoch));
            }
            Command::SetFill(dataflow, relation, position) => {
                let next = self.sealed + 1;
                for running in self.dataflows.iter_mut().filter(|running| running.id() == dataflow) {
                    for import in running.imports.iter_mut().filter(|import| import.relation() == relation) {
                        import.set_position(next, position.clone());
                    }
                    running.note_completion();
                }
            }
            Command::Input(epoch, relation, change) => self.offer(epoch, relation, &change),
            Command::Fill(epoch, dataflow, relation, rows) => self.fill(epoch, dataflow, relation, &rows),
            Command::Seal(epoch) => {
                self.sealed = epoch;
                self.outstanding.push_back(epoch);
                self.dataflows.iter_mut().filter(|running| running.ending.is_none()).for_each(|r| r.seal(epoch));
            }
            Command::Committed(epoch) => {
                self.state.committed(epoch);
                self.state.evict();
            }
            Command::Stop => {}
        }
    }

    fn create(&mut self, description: Arc<DataflowDescription>) {
        let is_filled = description.fresh && description.plan.imports().next().is_some();
        let filling = if is_filled { Filling::begun() } else { Filling::default() };
        let surroundings = Surroundings {
            definitions: &self.definitions,
            state: &self.state,
            control: Rc::new(Control::new(self.epoch.clone(), filling)),
            created: self.sealed + 1,
        };
        let is_produced = |relation: RelationId| {
            self.dataflows.iter().any(|running| {
                running.ending.is_none() && running.outputs.iter().any(|(output, _)| *output == relation)
            })
        };
        let running = build(self.worker, description, &surroundings, is_produced);
        self.dataflows.push(running);
        self.find_readers();
    }

    /// Notes anew who reads what, after dataflows have come or gone.
    fn find_readers(&mut self) {
        self.readers.clear();
        for (position, running) in self.dataflows.iter().enumerate() {
            for import in &running.imports {
                self.readers.entry(import.relation()).or_default().push(position);
            }
        }
    }

    fn end(&mut self, dataflow: DataflowId) {
        let sealed = self.sealed;
        for running in self.dataflows.iter_mut().filter(|running| running.id() == dataflow && running.ending.is_none())
        {
            running.end(sealed);
        }
    }

    fn fill(&mut self, epoch: Epoch, dataflow: DataflowId, relation: RelationId, rows: &Delta) {
        for running in self.dataflows.iter_mut().filter(|running| running.id() == dataflow) {
            if running.control.failed(epoch) {
                continue;
            }
            running.control.enter(epoch);
            for import in running.imports.iter_mut().filter(|import| import.relation() == relation) {
                if let Err(error) = import.fill(epoch, rows.clone()) {
                    running.control.fail(epoch, &error.to_string());
                }
            }
        }
    }

    /// Hands a change of a relation to the dataflows that import it.
    fn offer(&mut self, epoch: Epoch, relation: RelationId, change: &Change) {
        for position in self.readers.get(&relation).into_iter().flatten() {
            let running = &mut self.dataflows[*position];
            if running.control.failed(epoch) {
                continue;
            }
            running.control.enter(epoch);
            for import in running.imports.iter_mut().filter(|import| import.relation() == relation) {
                if let Err(error) = import.offer(epoch, change) {
                    running.control.fail(epoch, &error.to_string());
                }
            }
        }
    }

    /// Collects what dataflows gave out, and hands it to their readers.
    fn pass_on_changes(&mut self) {
        for producer in 0..self.dataflows.len() {
            // A dataflow that has ended gives nothing more: its readers go on with the seals.
            let reached = self.dataflows[producer].probe.with_frontier(|frontier| frontier.first().copied());
            let reached = reached.unwrap_or(self.sealed + 1);
            for output in 0..self.dataflows[producer].outputs.len() {
                let (relation, queue) = self.dataflows[producer].outputs[output].clone();
                while let Some((epoch, delta)) = { queue.borrow_mut().pop_front() } {
                    let change = Change { delta, rowids: None };
                    self.offer(epoch, relation, &change);
                    self.changes.entry(epoch).or_default().push((relation, change.delta));
                }
                for reader in self.readers.get(&relation).into_iter().flatten() {
                    let imports = self.dataflows[*reader].imports.iter_mut();
                    for import in imports.filter(|import| import.produced && import.relation() == relation) {
                        import.advance(reached);
                    }
                }
            }
        }
    }

    /// Reports the epochs that every dataflow has passed.
    fn report_epochs(&mut self) {
        while let Some(epoch) = self.outstanding.front().copied() {
            if !self.dataflows.iter().all(|running| running.has_passed(epoch)) {
                return;
            }
            self.outstanding.pop_front();
            let mut failures = Vec::new();
            for running in &self.dataflows {
                if running.control.failed(epoch)
                    && let Some(reason) = running.control.take_reason()
                {
                    failures.push((running.id(), reason));
                }
            }
            let writes = self.state.take_writes(epoch);
            let changes = self.changes.remove(&epoch).unwrap_or_default();
            self.collector.report(epoch, Report { writes, changes, failures });
        }
    }

    /// Lets go of dataflows that were dropped and have run dry.
    fn remove_ended(&mut self) {
        let next_report = self.outstanding.front().copied().unwrap_or(Epoch::MAX);
        let is_over = |running: &Running| running.ending.is_some_and(|last| running.probe.done() && last < next_report);
        if !self.dataflows.iter().any(is_over) {
            return;
        }
        let (over, running): (Vec<_>, Vec<_>) = self.dataflows.drain(..).partition(is_over);
        self.dataflows = running;
        self.find_readers();
        for ended in over {
            for tables in tables_of(&ended.description).into_iter().filter(|tables| !tables.is_empty()) {
                self.state.forget_tables(tables.start..=tables.end - 1);
            }
            // Only a defect of the server leaves a reader behind: it sees no more changes.
            for (relation, _) in &ended.outputs {
                let imports = self.dataflows.iter_mut().flat_map(|reader| &mut reader.imports);
                for import in imports.filter(|import| import.relation() == *relation) {
                    import.produced = false;
                    import.advance(self.sealed + 1);
                }
            }
        }
    }
}
