//! One dataflow on one worker: the timely graph of a plan, its imports, and what it gives out.
//!
//! The graph of a plan: an input for each import, an operator for each node, rows exchanged as each port asks; at the
//! end the output's rows and, together, all failed rows are exchanged by the key of their relations and written by a
//! materialize operator each. What these two emit is the change of the relations; the worker collects it from queues.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use plan::{Distribution, NodeId, NodeKind, Relation, RelationId, Spec};
use timely::dataflow::Scope;
use timely::dataflow::operators::probe::Handle as Probe;
use timely::dataflow::operators::{Concatenate, Probe as _};
use timely::worker::Worker;

use super::control::Control;
use super::exchange::{Route, partitions_of, worker_of_everything};
use super::import::{Handle, Import, input_from};
use super::operator::{Deltas, Placement, place};
use super::{DataflowDescription, DataflowId, FillPosition};
use crate::Epoch;
use crate::delta::Delta;
use crate::error::{Error, Result};
use crate::operators::materialize::Materialize;
use crate::operators::{BuildContext, Operator, OperatorDef};
use crate::state::relation::RelationStorage;
use crate::state::{StateTable, WorkerState};

/// Implementations of operators by name.
pub(super) type Definitions = HashMap<&'static str, Arc<dyn OperatorDef>>;

/// Changes of a relation that a dataflow has given out, by epoch, at most one an epoch.
pub(super) type Queue = Rc<RefCell<VecDeque<(Epoch, Delta)>>>;

/// A dataflow on a worker.
pub(super) struct Running {
    /// What it computes.
    pub(super) description: Arc<DataflowDescription>,
    /// Failure and first epoch.
    pub(super) control: Rc<Control>,
    /// Its imports; none once it is ending.
    pub(super) imports: Vec<Import>,
    /// An input without rows that carries the progress of epochs to operators without inputs.
    clock: Option<Handle>,
    /// How far it has come.
    pub(super) probe: Probe<Epoch>,
    /// What it gives out, with the relations that it fills.
    pub(super) outputs: [(RelationId, Queue); 2],
    /// The first epoch that concerns it.
    pub(super) created: Epoch,
    /// The last epoch that concerns it, once it is ending.
    pub(super) ending: Option<Epoch>,
}

impl Running {
    /// Identity.
    pub(super) fn id(&self) -> DataflowId {
        self.description.output.id
    }

    /// Whether everything of the epoch has been done.
    pub(super) fn has_passed(&self, epoch: Epoch) -> bool {
        self.created > epoch || !self.probe.less_equal(&epoch)
    }

    /// Everything of the epoch has been handed over by clients.
    pub(super) fn seal(&mut self, epoch: Epoch) {
        self.control.seal(epoch);
        for import in self.imports.iter_mut().filter(|import| !import.produced) {
            import.advance(epoch + 1);
        }
        if let Some(clock) = &mut self.clock {
            clock.advance_to(epoch + 1);
        }
    }

    /// Notes when all imports have been read to their end, if that is known now.
    pub(super) fn note_completion(&self) {
        let ends: Option<Vec<Epoch>> = self.imports.iter().map(Import::end).collect();
        if let Some(last) = ends.and_then(|ends| ends.into_iter().max())
            && self.control.filling().completion().is_none()
        {
            self.control.filling().complete_in(last);
        }
    }

    /// Ends it after the epochs sealed so far: it takes no more input and runs dry.
    pub(super) fn end(&mut self, last: Epoch) {
        self.ending = Some(last);
        self.imports.clear();
        self.clock = None;
    }
}

/// What all dataflows of a worker are built from.
pub(super) struct Surroundings<'a> {
    /// Implementations of operators.
    pub(super) definitions: &'a Definitions,
    /// The worker's state.
    pub(super) state: &'a WorkerState,
    /// Shared by the operators of the dataflow.
    pub(super) control: Rc<Control>,
    /// The first epoch that concerns it.
    pub(super) created: Epoch,
}

/// Builds a dataflow on a worker. The graph has the same shape on every worker even if an operator cannot be built on
/// one of them, because workers number their channels alike; the dataflow has failed then.
pub(super) fn build(
    worker: &mut Worker,
    description: Arc<DataflowDescription>,
    surroundings: &Surroundings<'_>,
    is_produced: impl Fn(RelationId) -> bool,
) -> Running {
    let Surroundings { control, created, .. } = surroundings;
    let mut handles: HashMap<NodeId, Handle> =
        description.plan.imports().map(|(_, node)| (node, input_from(*created))).collect();
    let mut clock = input_from(*created);
    let probe = Probe::new();
    let queues: [Queue; 2] = Default::default();
    worker.dataflow_named::<Epoch, _, _>(&description.output.name, |scope| {
        let mut graph =
            Graph { scope, surroundings, description: &description, workers: scope.peers(), streams: Vec::new() };
        let mut errors = Vec::new();
        let clock_stream = clock.to_stream(scope);
        for index in 0..description.plan.nodes().len() {
            graph.add_node(NodeId(index), &mut handles, &clock_stream, &mut errors);
        }
        let rows = graph.streams[description.plan.output().0].clone();
        // A dataflow of imports alone has no errors, but the relation of errors exists.
        errors.push(clock_stream);
        let errors = scope.concatenate(errors);
        let relations = [&description.output, &description.errors];
        for ((stream, relation), queue) in [rows, errors].into_iter().zip(relations).zip(&queues) {
            let written = graph.add_materialize(stream, relation, queue.clone());
            written.probe_with(&probe);
        }
    });
    let start = if description.fresh { FillPosition::Start } else { FillPosition::End };
    let mut imports = Vec::new();
    for (relation, node) in description.plan.imports() {
        let Some(handle) = handles.remove(&node) else { continue };
        match Import::new(relation.clone(), handle, *created, is_produced(relation.id), start.clone()) {
            Ok(import) => imports.push(import),
            Err(error) => control.fail(*created, &format!("import of {}: {error}", relation.name)),
        }
    }
    let [rows, errors] = queues;
    let outputs = [(description.output.id, rows), (description.errors.id, errors)];
    let (control, created) = (control.clone(), *created);
    Running { description, control, imports, clock: Some(clock), probe, outputs, created, ending: None }
}

/// A timely graph in the making.
struct Graph<'a, 'scope> {
    scope: Scope<'scope, Epoch>,
    surroundings: &'a Surroundings<'a>,
    description: &'a DataflowDescription,
    workers: usize,
    /// The output of each node so far.
    streams: Vec<Deltas<'scope>>,
}

impl<'scope> Graph<'_, 'scope> {
    fn add_node(
        &mut self,
        id: NodeId,
        handles: &mut HashMap<NodeId, Handle>,
        clock: &Deltas<'scope>,
        errors: &mut Vec<Deltas<'scope>>,
    ) {
        let node = self.description.plan.node(id);
        let spec = match &node.kind {
            NodeKind::Import(_) => {
                let stream = handles.get_mut(&id).map_or_else(|| clock.clone(), |handle| handle.to_stream(self.scope));
                self.streams.push(stream);
                return;
            }
            NodeKind::Operator(spec) => spec,
        };
        let mut inputs = Vec::new();
        for (port, input) in node.inputs.iter().enumerate() {
            let schema = &self.description.plan.node(*input).schema;
            let distribution = spec.distribution(port);
            let route = self.route(spec.name(), &distribution, schema);
            inputs.push((self.streams[input.0].clone(), route));
        }
        if inputs.is_empty() {
            inputs.push((clock.clone(), Route::Local));
        }
        let operator = self.or_fail(spec.name(), self.build_operator(id, spec.as_ref()));
        // Of what has no inputs to read there is no fill.
        let is_filled = self.surroundings.control.filling().completion().is_none();
        let waits_for_fill = is_filled && operator.as_ref().is_some_and(|operator| operator.waits_for_fill());
        let owes_rows = self.description.fresh && operator.as_ref().is_some_and(|operator| operator.owes_rows());
        let placement = Placement {
            name: spec.name().to_owned(),
            operator,
            inputs,
            closes_first_epoch: self.closes_first_epoch() || owes_rows,
            waits_for_fill,
            tap: None,
        };
        let (rows, failed_rows) = place(self.scope, &self.surroundings.control, placement);
        self.streams.push(rows);
        errors.push(failed_rows);
    }

    /// What holds of no rows at all (a global aggregate, a constant) is said by one worker: the owner of the key
    /// without columns. It is said once in the life of a dataflow.
    fn closes_first_epoch(&self) -> bool {
        self.description.fresh && self.scope.index() == worker_of_everything(self.workers)
    }

    fn build_operator(&self, id: NodeId, spec: &dyn Spec) -> Result<Box<dyn Operator>> {
        let plan = &self.description.plan;
        let node = plan.node(id);
        let Some(definition) = self.surroundings.definitions.get(spec.name()) else {
            return Err(Error::Dataflow(format!("there is no operator {}", spec.name())));
        };
        let first = self.description.first_state_table + table_count(node.first_state_table)?;
        let state = (first..first + table_count(spec.state_tables())?).map(|table| self.state_table(table)).collect();
        let inputs: Vec<_> = node.inputs.iter().map(|input| plan.node(*input)).collect();
        let context = BuildContext {
            inputs: inputs.iter().map(|input| input.schema.clone()).collect(),
            state,
            append_only: inputs.iter().map(|input| input.properties.append_only).collect(),
            filling: self.surroundings.control.filling().clone(),
            partitions: partitions_of(self.scope.index(), self.workers),
        };
        definition.build(spec, context)
    }

    fn state_table(&self, table: u32) -> StateTable {
        self.surroundings.state.table(table, self.description.fresh, self.surroundings.control.epoch_cell())
    }

    fn route(
        &self,
        name: &str,
        distribution: &Distribution,
        schema: &datafusion::arrow::datatypes::SchemaRef,
    ) -> Route {
        let route = Route::new(distribution, schema, self.workers, &self.surroundings.control);
        self.or_fail(name, route).unwrap_or_else(|| Route::everything_to_one(self.workers, &self.surroundings.control))
    }

    fn add_materialize(&mut self, stream: Deltas<'scope>, relation: &Arc<Relation>, queue: Queue) -> Deltas<'scope> {
        let name = format!("materialize {}", relation.name);
        let table = self.state_table(relation.id.0);
        let storage = self.or_fail(&name, RelationStorage::new(relation.clone()));
        let keys = storage.as_ref().map(RelationStorage::key_columns).unwrap_or_default();
        let route = self.route(&name, &Distribution::ByKey(keys), &relation.schema);
        let operator =
            storage.map(|storage| Box::new(Materialize::new(relation.clone(), storage, table)) as Box<dyn Operator>);
        let placement = Placement {
            name,
            operator,
            inputs: vec![(stream, route)],
            closes_first_epoch: false,
            waits_for_fill: false,
            tap: Some(Box::new(move |epoch, delta| queue.borrow_mut().push_back((epoch, delta)))),
        };
        place(self.scope, &self.surroundings.control, placement).0
    }

    fn or_fail<T>(&self, name: &str, result: Result<T>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.surroundings.control.fail(self.surroundings.created, &format!("{name}: {error}"));
                None
            }
        }
    }
}

fn table_count(number: usize) -> Result<u32> {
    u32::try_from(number).map_err(|_| Error::Dataflow("a dataflow has too many state tables".to_owned()))
}

/// The store tables that a dataflow writes: rows, errors, operator state.
pub(super) fn tables_of(description: &DataflowDescription) -> [Range<u32>; 3] {
    let state_tables = table_count(description.plan.state_tables()).unwrap_or(0);
    let first = description.first_state_table;
    [
        description.output.id.0..description.output.id.0 + 2,
        description.errors.id.0..description.errors.id.0 + 2,
        first..first + state_tables,
    ]
}
