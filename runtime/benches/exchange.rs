//! What the engine costs: one-row epochs through several views, and large epochs through one, on one and more workers.
//!
//! `cargo bench -p runtime --bench exchange`; prints, checks nothing. The store is in memory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::Receiver;
use datafusion::arrow::array::{Int64Array, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::tree_node::Transformed;
use datafusion::datasource::empty::EmptyTable;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{LogicalPlan, TableScan};
use datafusion::prelude::SessionContext;
use plan::{
    Dataflow, Growth, LowerContext, Lowered, NodeId, PlanError, Properties, Relation, RelationId, RelationKind,
    RelationSource, Spec,
};
use runtime::clock::{elapsed, monotonic};
use runtime::operators::{OperatorDef, definitions, errors_schema};
use runtime::state::memory::MemoryStore;
use runtime::state::{EpochBatch, Store, Sync};
use runtime::{Change, DataflowDescription, Delta, Epoch, EpochResult, FillPosition, Runtime, RuntimeConfig};

const QUERY: &str = "SELECT k, count(*) AS n, max(v) AS highest FROM t GROUP BY k";

fn main() {
    for workers in [1, 2] {
        for views in [1, 10] {
            one_row_epochs(workers, views, 10_000);
        }
        large_epochs(workers, 1 << 20, 64);
    }
}

fn one_row_epochs(workers: usize, views: u32, epochs: u64) {
    let mut engine = Engine::start(workers, views);
    let mut latencies: Vec<Duration> = Vec::new();
    let began = monotonic();
    for epoch in 0..epochs {
        let key = (epoch * 7919) as i64 % 1000;
        let at = monotonic();
        engine.epoch(rows(std::iter::once(key)));
        latencies.push(elapsed(at));
    }
    let total = elapsed(began);
    latencies.sort();
    let percentile = |percent: usize| latencies[(latencies.len() - 1) * percent / 100];
    println!(
        "{epochs} one-row epochs, {workers} workers, {views} views: {:.2?} an epoch, p50 {:.1?}, p99 {:.1?}",
        total / epochs as u32,
        percentile(50),
        percentile(99),
    );
}

fn large_epochs(workers: usize, rows_per_epoch: usize, epochs: u64) {
    let mut engine = Engine::start(workers, 1);
    let began = monotonic();
    for epoch in 0..epochs {
        let keys = (0..rows_per_epoch as u64).map(|row| (row * 2_654_435_761 + epoch) as i64 % 100_000);
        engine.epoch(rows(keys));
    }
    let rows = rows_per_epoch as f64 * epochs as f64;
    println!(
        "{epochs} epochs of {rows_per_epoch} rows, 100000 keys, {workers} workers: {:.2} M rows/s",
        rows / elapsed(began).as_secs_f64() / 1e6
    );
}

fn rows(keys: impl Iterator<Item = i64>) -> RecordBatch {
    let keys = Int64Array::from_iter_values(keys);
    let values = Int64Array::from_iter_values(keys.values().iter().map(|key| key * 3));
    RecordBatch::try_new(columns(), vec![Arc::new(keys), Arc::new(values)]).unwrap()
}

fn columns() -> SchemaRef {
    Arc::new(Schema::new(vec![Field::new("k", DataType::Int64, true), Field::new("v", DataType::Int64, true)]))
}

fn relation(id: u32, name: &str, kind: RelationKind, schema: SchemaRef, layout: plan::Layout) -> Arc<Relation> {
    Arc::new(Relation {
        id: RelationId(id),
        name: name.to_owned(),
        kind,
        schema,
        layout,
        append_only: false,
        growth: Growth::Deletable,
        watermarks: vec![],
    })
}

/// A runtime with views over one table, and what a coordinator does for it.
struct Engine {
    runtime: Runtime,
    results: Receiver<EpochResult>,
    store: Arc<MemoryStore>,
    epoch: Epoch,
}

impl Engine {
    fn start(workers: usize, views: u32) -> Engine {
        let store = MemoryStore::new();
        let config = RuntimeConfig { workers, cache_bytes: 1 << 30 };
        let (runtime, results) = Runtime::start(config, store.clone(), definitions()).unwrap();
        let table = relation(100, "t", RelationKind::Table, columns(), plan::Layout::RowId);
        for view in 0..views {
            let dataflow = lower(&table);
            let schema = dataflow.node(dataflow.output()).schema.clone();
            let first = 200 + view * 20;
            let output = relation(first, "v", RelationKind::MaterializedView, schema, dataflow.output_layout());
            let errors = relation(first + 2, "v$errors", RelationKind::Errors, errors_schema(), plan::Layout::Multiset);
            let first_state_table = first + 4;
            let plan = Arc::new(dataflow);
            runtime.create(DataflowDescription { output, errors, plan, first_state_table, fresh: true }).unwrap();
            runtime.set_fill(RelationId(first), table.id, FillPosition::End).unwrap();
        }
        Engine { runtime, results, store, epoch: 0 }
    }

    fn epoch(&mut self, rows: RecordBatch) {
        self.epoch += 1;
        let change = Change { delta: Delta::insert(rows), rowids: None };
        self.runtime.feed(self.epoch, RelationId(100), change).unwrap();
        self.runtime.seal(self.epoch).unwrap();
        let result = self.results.recv().unwrap();
        assert!(result.failures.is_empty(), "{:?}", result.failures);
        let batch = EpochBatch { epoch: result.epoch, writes: result.writes, deleted_ranges: vec![] };
        self.store.commit(&batch, Sync::Later).unwrap();
        self.runtime.committed(self.epoch).unwrap();
    }
}

/// Lowers plans over the table by asking the operators in order.
struct Lowering {
    plan: Dataflow,
    session: SessionState,
    operators: Vec<Arc<dyn OperatorDef>>,
}

fn lower(table: &Arc<Relation>) -> Dataflow {
    let context = SessionContext::new();
    context.register_table("t", Arc::new(EmptyTable::new(table.schema.clone()))).unwrap();
    let session = context.state();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let logical = runtime.block_on(session.create_logical_plan(QUERY)).unwrap();
    let logical = logical
        .transform_down_with_subqueries(|node| {
            let LogicalPlan::TableScan(scan) = node else { return Ok(Transformed::no(node)) };
            let source = Arc::new(RelationSource::new(table.clone()));
            Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
        })
        .unwrap();
    let mut lowering = Lowering { plan: Dataflow::default(), session, operators: definitions() };
    let output = lowering.lower(&logical.data).unwrap();
    lowering.plan.set_output(output);
    lowering.plan
}

impl LowerContext for Lowering {
    fn lower(&mut self, plan: &LogicalPlan) -> Result<NodeId, PlanError> {
        if let LogicalPlan::TableScan(scan) = plan
            && let (Some(source), None) = (RelationSource::of(scan.source.as_ref()), &scan.projection)
        {
            return Ok(self.import(source.relation.clone()));
        }
        for operator in self.operators.clone() {
            if let Lowered::Node(node) = operator.lower(plan, self)? {
                return Ok(node);
            }
        }
        Err(PlanError::internal("no operator takes the plan"))
    }

    fn add(&mut self, spec: Arc<dyn Spec>, inputs: Vec<NodeId>) -> NodeId {
        self.plan.add(spec, inputs)
    }

    fn import(&mut self, relation: Arc<Relation>) -> NodeId {
        self.plan.import(relation)
    }

    fn schema(&self, node: NodeId) -> SchemaRef {
        self.plan.node(node).schema.clone()
    }

    fn properties(&self, node: NodeId) -> Properties {
        self.plan.node(node).properties.clone()
    }

    fn session(&self) -> &SessionState {
        &self.session
    }

    fn refusals(&self) -> Vec<String> {
        Vec::new()
    }
}
