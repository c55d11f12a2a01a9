//! Runs a query's dataflow in one thread, for tests: changes of tables in, changes of the result out.
//!
//! A script is a list of epochs; between them state is committed, evicted, and may be restarted from the store. Rows are
//! dealt out over several pretended workers as the operators ask, so a wrong distribution shows. The accumulated output
//! is compared with what DataFusion gives for the same query over the accumulated tables.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, UInt32Array};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::datasource::MemTable;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, TableScan, TableScanBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};
use plan::{
    Dataflow, Distribution, Growth, Layout, LowerContext, Lowered, Node, NodeId, NodeKind, PlanError, Properties,
    Relation, RelationId, RelationKind, Spec,
};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::{BuildContext, Filling, Operator, OperatorDef, Output, definitions, errors_schema};
use crate::Epoch;
use crate::delta::key::{KeyEncoder, PARTITIONS};
use crate::delta::rows::RowCodec;
use crate::delta::{Delta, consolidate, consolidate_all, literal};
use crate::state::layout;
use crate::state::memory::MemoryStore;
use crate::state::store::{EpochBatch, Store, Sync};
use crate::state::{StateTable, WorkerState};

/// A table of a test.
pub struct Table {
    name: &'static str,
    schema: SchemaRef,
    key: Option<Vec<usize>>,
    append_only: bool,
}

/// A table with columns as [`literal::try_schema`] reads them.
pub fn table(name: &'static str, columns: &str) -> Table {
    Table { name, schema: literal::schema(columns), key: None, append_only: false }
}

impl Table {
    /// With a primary key.
    pub fn key(mut self, columns: &[usize]) -> Self {
        self.key = Some(columns.to_vec());
        self
    }

    /// Whose rows are never deleted.
    pub fn append_only(mut self) -> Self {
        self.append_only = true;
        self
    }

    /// Rows from text.
    pub fn delta(&self, text: &str) -> Delta {
        literal::delta(&self.schema, text)
    }
}

/// How a dataflow is run.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    /// Pretended workers.
    pub workers: usize,
    /// Bytes for the caches of a worker: 0 evicts everything after every epoch.
    pub cache_bytes: usize,
    /// Decides in which order deltas arrive.
    pub seed: u64,
}

impl Default for Setting {
    fn default() -> Self {
        Setting { workers: 3, cache_bytes: 1 << 24, seed: 1 }
    }
}

/// A dataflow in execution, and the tables that feed it.
pub struct Harness {
    query: String,
    tables: Vec<Table>,
    contents: BTreeMap<&'static str, Delta>,
    dataflow: Dataflow,
    definitions: Vec<Arc<dyn OperatorDef>>,
    store: Arc<MemoryStore>,
    setting: Setting,
    random: StdRng,
    workers: Vec<Worker>,
    epoch: Epoch,
    output: Delta,
    errors: Delta,
    filling: Filling,
}

struct Worker {
    state: WorkerState,
    epoch: Rc<Cell<Epoch>>,
    operators: Vec<Option<Box<dyn Operator>>>,
    fresh: bool,
}

const FIRST_STATE_TABLE: u32 = 100;

impl Harness {
    /// Plans a query over tables and builds its dataflow.
    pub fn new(tables: Vec<Table>, query: &str) -> Self {
        Self::with(tables, query, Setting::default())
    }

    /// The same, run in a certain way.
    pub fn with(tables: Vec<Table>, query: &str, setting: Setting) -> Self {
        Self::build_with(tables, query, setting, Filling::default())
    }

    /// The same while it is being filled: until [`Self::complete_fill`].
    pub fn filling(tables: Vec<Table>, query: &str, setting: Setting) -> Self {
        Self::build_with(tables, query, setting, Filling::begun())
    }

    /// The next epoch is the last one of the fill.
    pub fn complete_fill(&mut self) {
        self.filling.complete_in(self.epoch + 1);
    }

    fn build_with(tables: Vec<Table>, query: &str, setting: Setting, filling: Filling) -> Self {
        let definitions = definitions();
        let contents: BTreeMap<_, _> =
            tables.iter().map(|table| (table.name, Delta::empty(table.schema.clone()))).collect();
        let dataflow = lower(&tables, &contents, query, &definitions);
        let output = Delta::empty(dataflow.node(dataflow.output()).schema.clone());
        let mut harness = Harness {
            query: query.to_string(),
            contents,
            tables,
            dataflow,
            definitions,
            store: MemoryStore::new(),
            setting,
            random: StdRng::seed_from_u64(setting.seed),
            workers: Vec::new(),
            epoch: 0,
            output,
            errors: Delta::empty(errors_schema()),
            filling,
        };
        harness.build(true);
        harness
    }

    /// Names of the operators, inputs first.
    pub fn operators(&self) -> Vec<&'static str> {
        let name = |node: &Node| match &node.kind {
            NodeKind::Import(_) => "import",
            NodeKind::Operator(spec) => spec.name(),
        };
        self.dataflow.nodes().iter().map(name).collect()
    }

    /// The nodes of the dataflow, inputs first.
    pub fn nodes(&self) -> &[Node] {
        self.dataflow.nodes()
    }

    /// The operators that hold something in the store, with the number of entries.
    pub fn held(&self) -> Vec<(&'static str, usize)> {
        let snapshot = self.store.latest();
        let entries = |spec: &Arc<dyn Spec>, first: usize| -> usize {
            let tables = (first..first + spec.state_tables()).map(|table| FIRST_STATE_TABLE + table as u32);
            let ranges = tables.map(layout::table_range);
            ranges.map(|(start, end)| snapshot.scan(&start, &end).map(Result::unwrap).count()).sum()
        };
        let held = |node: &Node| match &node.kind {
            NodeKind::Import(_) => None,
            NodeKind::Operator(spec) => Some((spec.name(), entries(spec, node.first_state_table))),
        };
        self.nodes().iter().filter_map(held).filter(|(_, entries)| *entries > 0).collect()
    }

    /// What the operators say of themselves, inputs first.
    pub fn details(&self) -> Vec<String> {
        let detail = |node: &Node| match &node.kind {
            NodeKind::Import(_) => String::new(),
            NodeKind::Operator(spec) => spec.detail(),
        };
        self.dataflow.nodes().iter().map(detail).collect()
    }

    /// What is known of the result.
    pub fn properties(&self) -> &Properties {
        &self.dataflow.node(self.dataflow.output()).properties
    }

    /// Forgets everything that is not in the store and builds the operators again.
    pub fn restart(&mut self) {
        self.build(false);
    }

    fn build(&mut self, fresh: bool) {
        let count = self.setting.workers;
        let store: Arc<dyn Store> = self.store.clone();
        self.workers = (0..count)
            .map(|worker| {
                let state = WorkerState::new(store.clone(), self.setting.cache_bytes);
                let epoch = Rc::new(Cell::new(self.epoch));
                let share = |index: usize| (index * usize::from(PARTITIONS)).div_ceil(count) as u16;
                let partitions = share(worker)..share(worker + 1);
                let operators = self.dataflow.nodes().iter();
                let operators = operators
                    .map(|node| {
                        let NodeKind::Operator(spec) = &node.kind else { return None };
                        let definition = self.definitions.iter().find(|definition| definition.name() == spec.name());
                        let tables = (0..spec.state_tables()).map(|table| -> StateTable {
                            let id = FIRST_STATE_TABLE + (node.first_state_table + table) as u32;
                            state.table(id, fresh, epoch.clone())
                        });
                        let context = BuildContext {
                            state: tables.collect(),
                            inputs: node.inputs.iter().map(|id| self.dataflow.node(*id).schema.clone()).collect(),
                            append_only: node
                                .inputs
                                .iter()
                                .map(|id| self.dataflow.node(*id).properties.append_only)
                                .collect(),
                            partitions: partitions.clone(),
                            filling: self.filling.clone(),
                        };
                        Some(definition.unwrap().build(spec.as_ref(), context).unwrap())
                    })
                    .collect();
                Worker { state, epoch, operators, fresh: true }
            })
            .collect();
    }

    /// Applies changes of tables, given as text, as one epoch. Gives the change of the result as text.
    pub fn epoch(&mut self, changes: &[(&'static str, &str)]) -> String {
        let changes = changes
            .iter()
            .map(|(name, text)| (*name, self.tables.iter().find(|table| table.name == *name).unwrap().delta(text)))
            .collect();
        literal::text(&self.apply(changes))
    }

    /// Applies changes of tables as one epoch. Gives the change of the result, consolidated.
    pub fn apply(&mut self, changes: Vec<(&'static str, Delta)>) -> Delta {
        self.epoch += 1;
        let mut fed: BTreeMap<RelationId, Vec<Delta>> = BTreeMap::new();
        for (name, delta) in changes {
            let position = self.tables.iter().position(|table| table.name == name).unwrap();
            let contents = self.contents.get_mut(name).unwrap();
            *contents = consolidate_all(contents.schema(), vec![contents.clone(), delta.clone()]).unwrap();
            fed.entry(relation_id(position)).or_default().push(delta);
        }
        let (rows, errors) = self.run(&fed);
        self.commit();
        let grows = (0..rows.len()).all(|row| rows.weight(row) > 0);
        assert!(grows || !self.properties().append_only, "{} takes rows back", self.query);
        self.output = consolidate_all(self.output.schema(), vec![self.output.clone(), rows.clone()]).unwrap();
        self.errors = consolidate_all(errors_schema(), vec![self.errors.clone(), errors]).unwrap();
        rows
    }

    fn commit(&mut self) {
        let writes = self.workers.iter().flat_map(|worker| worker.state.take_writes(self.epoch)).collect();
        let batch = EpochBatch { epoch: self.epoch, writes, deleted_ranges: Vec::new() };
        self.store.commit(&batch, Sync::Later).unwrap();
        for worker in &self.workers {
            worker.state.committed(self.epoch);
            worker.state.evict();
        }
    }

    fn run(&mut self, fed: &BTreeMap<RelationId, Vec<Delta>>) -> (Delta, Delta) {
        let count = self.setting.workers;
        let nodes = self.dataflow.nodes().to_vec();
        let mut emitted: Vec<Vec<Vec<Delta>>> = Vec::new();
        let mut errors = Vec::new();
        for (index, node) in nodes.iter().enumerate() {
            let spec = match &node.kind {
                NodeKind::Import(relation) => {
                    let deltas = fed.get(&relation.id).cloned().unwrap_or_default();
                    emitted.push(self.scatter(deltas));
                    continue;
                }
                NodeKind::Operator(spec) => spec,
            };
            let mut arriving: Vec<Vec<(usize, Delta)>> = vec![Vec::new(); count];
            for (port, input) in node.inputs.iter().enumerate() {
                for (from, deltas) in emitted[input.0].iter().enumerate() {
                    for delta in deltas {
                        for (to, part) in exchange(delta, &spec.distribution(port), from, count) {
                            arriving[to].push((port, part));
                        }
                    }
                }
            }
            let mut outputs = Vec::new();
            for (worker, mut deltas) in self.workers.iter_mut().zip(arriving) {
                for last in (1..deltas.len()).rev() {
                    deltas.swap(last, self.random.random_range(0..=last));
                }
                worker.epoch.set(self.epoch);
                let operator = worker.operators[index].as_mut().unwrap();
                let mut output = Output::default();
                let absorbed = !deltas.is_empty();
                for (port, delta) in deltas {
                    operator.absorb(port, delta, &mut output).unwrap();
                }
                let at_once = output.rows.len();
                let filled = self.filling.completion() == Some(self.epoch) && operator.waits_for_fill();
                if absorbed || worker.fresh || filled {
                    operator.close(self.epoch, &mut output).unwrap();
                }
                assert_consolidated(spec.name(), &output.rows[at_once..]);
                for delta in &output.rows {
                    assert_eq!(delta.schema(), node.schema, "columns of {}", spec.name());
                }
                errors.extend(output.errors);
                outputs.push(output.rows);
            }
            emitted.push(outputs);
        }
        for worker in &mut self.workers {
            worker.fresh = false;
        }
        let rows = emitted.swap_remove(self.dataflow.output().0).into_iter().flatten().collect();
        (consolidate_all(self.output.schema(), rows).unwrap(), consolidate_all(errors_schema(), errors).unwrap())
    }

    /// Cuts deltas into pieces and gives each to a worker.
    fn scatter(&mut self, deltas: Vec<Delta>) -> Vec<Vec<Delta>> {
        let mut dealt = vec![Vec::new(); self.setting.workers];
        for delta in deltas {
            let mut start = 0;
            while start < delta.len() {
                let length = self.random.random_range(1..=delta.len() - start);
                let worker = self.random.random_range(0..dealt.len());
                dealt[worker].push(delta.slice(start, length));
                start += length;
            }
        }
        dealt
    }

    /// The accumulated result as text.
    pub fn output(&self) -> String {
        literal::text(&self.output)
    }

    /// The accumulated failed rows as text.
    pub fn errors(&self) -> String {
        literal::text(&self.errors)
    }

    /// Asserts that the accumulated result is what the query gives over the accumulated tables.
    pub fn check(&self) {
        let expected = evaluate(&self.tables, &self.contents, &self.query);
        assert_eq!(self.output(), literal::text(&expected), "{} in epoch {}", self.query, self.epoch);
        for key in &self.properties().keys {
            let types: Vec<_> = key.iter().map(|column| expected.schema().field(*column).data_type().clone()).collect();
            let columns: Vec<ArrayRef> = key.iter().map(|column| expected.batch().column(*column).clone()).collect();
            let keys = KeyEncoder::new(&types).unwrap().encode_rows(&columns, expected.len()).unwrap();
            let different: std::collections::BTreeSet<&[u8]> = keys.iter().collect();
            assert_eq!(different.len(), expected.len(), "{} in epoch {}: key {key:?}", self.query, self.epoch);
        }
    }

    /// Random changes of a table: new rows from `generate`, and some of its rows removed again unless it is append-only.
    pub fn random_change(
        &mut self,
        name: &'static str,
        rows: usize,
        generate: &mut dyn FnMut(&mut StdRng) -> String,
    ) -> Delta {
        let table = self.tables.iter().find(|table| table.name == name).unwrap();
        let present = &self.contents[name];
        let mut parts = Vec::new();
        if !table.append_only && !present.is_empty() {
            let removed: Vec<u32> =
                (0..present.len() as u32).filter(|_| self.random.random_range(0..4) == 0).take(rows).collect();
            let batch = present.take(&UInt32Array::from(removed)).unwrap().batch().clone();
            parts.push(Delta::delete(batch));
        }
        let text: Vec<String> = (0..rows).map(|_| format!("+1 | {}", generate(&mut self.random))).collect();
        let mut added = table.delta(&text.join("\n"));
        if let Some(key) = &table.key {
            added = only_new_keys(present, &parts, added, key);
        }
        parts.push(added);
        crate::delta::concat(table.schema.clone(), parts).unwrap()
    }
}

/// Asserts that no row has weight 0, and that none comes and goes.
fn assert_consolidated(operator: &str, deltas: &[Delta]) {
    let mut signs = BTreeMap::new();
    for delta in deltas {
        let rows = RowCodec::new(&delta.schema()).unwrap().encode(delta.batch()).unwrap();
        for (row, bytes) in rows.iter().enumerate() {
            let sign = *signs.entry(bytes.to_vec()).or_insert(delta.weight(row).signum());
            assert!(sign != 0 && sign == delta.weight(row).signum(), "{operator} emits rows that cancel");
        }
    }
}

/// Of the added rows, the first of each key that is not present otherwise.
fn only_new_keys(present: &Delta, removed: &[Delta], added: Delta, key: &[usize]) -> Delta {
    let types: Vec<_> = key.iter().map(|column| added.schema().field(*column).data_type().clone()).collect();
    let encoder = KeyEncoder::new(&types).unwrap();
    let keys = |delta: &Delta| {
        let columns: Vec<ArrayRef> = key.iter().map(|column| delta.batch().column(*column).clone()).collect();
        encoder.encode_rows(&columns, delta.len()).unwrap()
    };
    let mut counts: std::collections::HashMap<Vec<u8>, i64> = Default::default();
    for delta in std::iter::once(present).chain(removed) {
        for (row, bytes) in keys(delta).iter().enumerate() {
            *counts.entry(bytes.to_vec()).or_default() += delta.weight(row);
        }
    }
    let mut rows = Vec::new();
    for (row, bytes) in keys(&added).iter().enumerate() {
        let count = counts.entry(bytes.to_vec()).or_default();
        if *count == 0 {
            *count = 1;
            rows.push(row as u32);
        }
    }
    added.take(&UInt32Array::from(rows)).unwrap()
}

/// Deals a delta out over workers as an operator asks.
fn exchange(delta: &Delta, distribution: &Distribution, from: usize, workers: usize) -> Vec<(usize, Delta)> {
    let Distribution::ByKey(columns) = distribution else { return vec![(from, delta.clone())] };
    let keys: Vec<ArrayRef> = columns.iter().map(|column| delta.batch().column(*column).clone()).collect();
    let types: Vec<_> = keys.iter().map(|key| key.data_type().clone()).collect();
    let keys = KeyEncoder::new(&types).unwrap().encode_rows(&keys, delta.len()).unwrap();
    let mut parts = vec![Vec::new(); workers];
    for row in 0..delta.len() {
        parts[usize::from(keys.partition(row)) * workers / usize::from(PARTITIONS)].push(row as u32);
    }
    let parts = parts.into_iter().enumerate().filter(|(_, rows)| !rows.is_empty());
    parts.map(|(worker, rows)| (worker, delta.take(&UInt32Array::from(rows)).unwrap())).collect()
}

fn relation_id(position: usize) -> RelationId {
    RelationId(16 + 2 * position as u32)
}

fn session(tables: &[Table], contents: &BTreeMap<&'static str, Delta>) -> SessionContext {
    let mut config = SessionConfig::new().with_target_partitions(1);
    config.options_mut().sql_parser.map_string_types_to_utf8view = false;
    let mut context = SessionContext::new_with_config(config);
    crate::functions::register(&mut context).unwrap();
    for table in tables {
        let rows = repeat(&contents[table.name]);
        let provider = MemTable::try_new(table.schema.clone(), vec![vec![rows]]).unwrap();
        context.register_table(table.name, Arc::new(provider)).unwrap();
    }
    context
}

/// Each row as often as its weight says.
fn repeat(delta: &Delta) -> RecordBatch {
    let rows = (0..delta.len()).flat_map(|row| {
        let weight = usize::try_from(delta.weight(row)).unwrap();
        std::iter::repeat_n(row as u32, weight)
    });
    delta.take(&rows.collect::<Vec<_>>().into()).unwrap().batch().clone()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn evaluate(tables: &[Table], contents: &BTreeMap<&'static str, Delta>, query: &str) -> Delta {
    block_on(async {
        let frame = session(tables, contents).sql(query).await.unwrap();
        let schema: SchemaRef = Arc::new(frame.schema().as_arrow().clone());
        let batches = frame.collect().await.unwrap();
        let deltas = batches.into_iter().map(Delta::insert).collect();
        consolidate(crate::delta::concat(schema, deltas).unwrap()).unwrap()
    })
}

fn lower(
    tables: &[Table],
    contents: &BTreeMap<&'static str, Delta>,
    query: &str,
    definitions: &[Arc<dyn OperatorDef>],
) -> Dataflow {
    let context = session(tables, contents);
    let plan = block_on(async { context.sql(query).await.unwrap().into_optimized_plan().unwrap() });
    let state = context.state();
    let mut lowering = Lowering { tables, definitions, state: &state, dataflow: Dataflow::default() };
    let output = lowering.lower(&plan).unwrap();
    lowering.dataflow.set_output(output);
    lowering.dataflow.validate().unwrap();
    lowering.dataflow
}

struct Lowering<'a> {
    tables: &'a [Table],
    definitions: &'a [Arc<dyn OperatorDef>],
    state: &'a SessionState,
    dataflow: Dataflow,
}

impl Lowering<'_> {
    fn scan(&mut self, scan: &TableScan) -> Result<NodeId, PlanError> {
        let position = self.tables.iter().position(|table| table.name == scan.table_name.table()).unwrap();
        let table = &self.tables[position];
        assert!(scan.filters.is_empty() && scan.fetch.is_none(), "nothing but columns is pushed into a scan");
        if scan.projection.is_some() {
            let whole = TableScanBuilder::new(scan.table_name.clone(), scan.source.clone()).build().unwrap();
            let columns = scan.projected_schema.columns().into_iter().map(Expr::Column).collect();
            let projection = Projection::try_new(columns, Arc::new(LogicalPlan::TableScan(whole))).unwrap();
            return self.lower(&LogicalPlan::Projection(projection));
        }
        Ok(self.dataflow.import(Arc::new(Relation {
            id: relation_id(position),
            name: table.name.to_string(),
            kind: RelationKind::Table,
            schema: table.schema.clone(),
            layout: table.key.clone().map_or(Layout::RowId, Layout::Keyed),
            append_only: table.append_only,
            growth: Growth::of_table(table.append_only),
            watermarks: Vec::new(),
        })))
    }
}

impl LowerContext for Lowering<'_> {
    fn lower(&mut self, plan: &LogicalPlan) -> Result<NodeId, PlanError> {
        if let LogicalPlan::TableScan(scan) = plan {
            return self.scan(scan);
        }
        let mut reasons = Vec::new();
        for definition in self.definitions {
            let nodes = self.dataflow.nodes().len();
            match definition.lower(plan, self)? {
                Lowered::Node(node) => return Ok(node),
                Lowered::Declined(reason) => {
                    assert_eq!(self.dataflow.nodes().len(), nodes, "{} declined and added nodes", definition.name());
                    reasons.extend(reason);
                }
            }
        }
        Err(PlanError::unsupported(format!("{} ({})", plan.display(), reasons.join("; "))))
    }

    fn add(&mut self, spec: Arc<dyn Spec>, inputs: Vec<NodeId>) -> NodeId {
        self.dataflow.add(spec, inputs)
    }

    fn import(&mut self, relation: Arc<Relation>) -> NodeId {
        self.dataflow.import(relation)
    }

    fn schema(&self, node: NodeId) -> SchemaRef {
        self.dataflow.node(node).schema.clone()
    }

    fn properties(&self, node: NodeId) -> Properties {
        self.dataflow.node(node).properties.clone()
    }

    fn session(&self) -> &SessionState {
        self.state
    }

    fn refusals(&self) -> Vec<String> {
        Vec::new()
    }
}
