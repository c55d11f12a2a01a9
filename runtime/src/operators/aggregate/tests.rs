#![allow(clippy::unwrap_used)]
//! Aggregation on deltas: by scripts, and at random against DataFusion over the accumulated input.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{Field, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::MemTable;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use plan::{Dataflow, Growth, Layout, Lower, LowerContext, Lowered, NodeId, NodeKind, PlanError, Properties};
use plan::{Relation, RelationId, RelationKind, Spec};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::AggregateDefinition;
use crate::delta::{Delta, consolidate_all, literal};
use crate::functions;
use crate::operators::{BuildContext, Filling, Operator, OperatorDef, Output};
use crate::state::memory::MemoryStore;
use crate::state::{EpochBatch, Store, Sync, WorkerState};

fn session() -> SessionContext {
    let context = SessionContext::new();
    functions::aggregates().into_iter().for_each(|function| context.register_udaf(function.as_ref().clone()));
    context
}

/// Lowers scans of the table to its import, and nothing else.
struct Context {
    dataflow: Dataflow,
    relation: Arc<Relation>,
    session: SessionState,
}

impl LowerContext for Context {
    fn lower(&mut self, plan: &LogicalPlan) -> Result<NodeId, PlanError> {
        match plan {
            LogicalPlan::TableScan(_) => Ok(self.dataflow.import(self.relation.clone())),
            other => Err(PlanError::unsupported(other.display())),
        }
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
        &self.session
    }

    fn refusals(&self) -> Vec<String> {
        Vec::new()
    }
}

/// An aggregation over one table, run epoch by epoch.
struct Run {
    spec: Arc<dyn Spec>,
    schema: SchemaRef,
    append_only: bool,
    store: Arc<MemoryStore>,
    state: WorkerState,
    epoch: Rc<Cell<u64>>,
    operator: Box<dyn Operator>,
}

impl Run {
    /// The outermost aggregation of a query over table `t`.
    fn new(query: &str, schema: &SchemaRef, append_only: bool) -> Self {
        let context = session();
        let table = MemTable::try_new(schema.clone(), vec![vec![]]).unwrap();
        context.register_table("t", Arc::new(table)).unwrap();
        let state = context.state();
        let plan = block_on(async { state.create_logical_plan(query).await.unwrap() });
        let plan = state.analyzer().execute_and_check(plan, state.config_options(), |_, _| {}).unwrap();
        let mut aggregate = None;
        plan.apply(|node| {
            if matches!(node, LogicalPlan::Aggregate(_)) {
                aggregate = Some(node.clone());
                return Ok(TreeNodeRecursion::Stop);
            }
            Ok(TreeNodeRecursion::Continue)
        })
        .unwrap();
        let relation = Arc::new(Relation {
            id: RelationId(100),
            name: "t".into(),
            kind: RelationKind::Table,
            schema: schema.clone(),
            layout: Layout::RowId,
            append_only,
            growth: Growth::of_table(append_only),
            watermarks: vec![],
        });
        let mut lowering = Context { dataflow: Dataflow::default(), relation, session: state };
        let Lowered::Node(node) = AggregateDefinition.lower(&aggregate.unwrap(), &mut lowering).unwrap() else {
            panic!("declined: {query}");
        };
        lowering.dataflow.validate().unwrap();
        let NodeKind::Operator(spec) = lowering.dataflow.node(node).kind.clone() else { panic!("not an operator") };
        let store = MemoryStore::new();
        let state = WorkerState::new(store.clone(), 1 << 20);
        let epoch = Rc::new(Cell::new(1));
        let operator = build(spec.as_ref(), schema, append_only, &state, &epoch, true);
        Run { spec, schema: schema.clone(), append_only, store, state, epoch, operator }
    }

    /// One epoch: the change of the output, and that of the errors.
    fn epoch(&mut self, deltas: Vec<Delta>) -> (Delta, Delta) {
        let mut output = Output::default();
        for delta in deltas {
            self.operator.absorb(0, delta, &mut output).unwrap();
        }
        self.operator.close(self.epoch.get(), &mut output).unwrap();
        let before: usize = output.rows.iter().map(Delta::len).sum();
        let rows = consolidate_all(self.spec.schema(), output.rows).unwrap();
        assert_eq!(rows.len(), before, "what is emitted at a close is consolidated");
        let errors = consolidate_all(crate::operators::errors_schema(), output.errors).unwrap();
        (rows, errors)
    }

    /// The same in text form; errors follow after a line.
    fn step(&mut self, text: &str) -> String {
        let (rows, errors) = self.epoch(vec![literal::delta(&self.schema, text)]);
        self.commit();
        let mut result = literal::text(&rows);
        if !errors.is_empty() {
            result.push_str("\n---\n");
            result.push_str(&literal::text(&errors));
        }
        result
    }

    fn commit(&mut self) {
        let epoch = self.epoch.get();
        let batch = EpochBatch { epoch, writes: self.state.take_writes(epoch), deleted_ranges: vec![] };
        self.store.commit(&batch, Sync::Later).unwrap();
        self.state.committed(epoch);
        self.state.evict();
        self.epoch.set(epoch + 1);
    }

    /// A new process over the same store.
    fn restart(&mut self) {
        self.state = WorkerState::new(self.store.clone(), 1 << 20);
        self.operator = build(self.spec.as_ref(), &self.schema, self.append_only, &self.state, &self.epoch, false);
    }
}

fn build(
    spec: &dyn Spec,
    schema: &SchemaRef,
    append_only: bool,
    state: &WorkerState,
    epoch: &Rc<Cell<u64>>,
    fresh: bool,
) -> Box<dyn Operator> {
    let tables = (0..spec.state_tables()).map(|table| state.table(200 + table as u32, fresh, epoch.clone())).collect();
    let context = BuildContext {
        inputs: vec![schema.clone()],
        state: tables,
        append_only: vec![append_only],
        partitions: 0..1024,
        filling: Filling::default(),
    };
    AggregateDefinition.build(spec, context).unwrap()
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

#[test]
fn groups_come_and_go() {
    let schema = literal::schema("g text, v int4");
    let mut run = Run::new("SELECT g, count(*), min(v), max(v), sum(v) FROM t GROUP BY g", &schema, false);
    assert_eq!(run.step("+1 | x | 5\n+1 | x | 7\n+1 | NULL | 1"), "+1 | NULL | 1 | 1 | 1 | 1\n+1 | x | 2 | 5 | 7 | 12");
    assert_eq!(run.step("-1 | x | 5"), "+1 | x | 1 | 7 | 7 | 7\n-1 | x | 2 | 5 | 7 | 12");
    run.restart();
    assert_eq!(run.step("-1 | x | 7"), "-1 | x | 1 | 7 | 7 | 7");
    assert_eq!(run.step("+1 | x | 6"), "+1 | x | 1 | 6 | 6 | 6");
    assert_eq!(run.step("+1 | x | 9\n-1 | x | 9"), "");
    assert_eq!(run.step("+1 | x | NULL"), "-1 | x | 1 | 6 | 6 | 6\n+1 | x | 2 | 6 | 6 | 6");
}

#[test]
fn a_row_stands_for_nothing() {
    let schema = literal::schema("g text, v int4");
    let mut run = Run::new("SELECT count(*), sum(v), max(v), count(DISTINCT v) FROM t", &schema, false);
    assert_eq!(run.step(""), "+1 | 0 | NULL | NULL | 0");
    run.restart();
    assert_eq!(run.step(""), "");
    assert_eq!(run.step("+2 | x | 5"), "-1 | 0 | NULL | NULL | 0\n+1 | 2 | 10 | 5 | 1");
    assert_eq!(run.step("-2 | x | 5"), "+1 | 0 | NULL | NULL | 0\n-1 | 2 | 10 | 5 | 1");
}

#[test]
fn special_numbers_leave_a_sum() {
    let schema = literal::schema("v float8");
    let mut run = Run::new("SELECT sum(v), avg(v), max(v) FROM t", &schema, false);
    assert_eq!(run.step("+1 | 2.5\n+1 | NaN\n+1 | inf"), "+1 | NaN | NaN | NaN");
    assert_eq!(run.step("-1 | NaN"), "+1 | Infinity | Infinity | Infinity\n-1 | NaN | NaN | NaN");
    assert_eq!(run.step("+1 | -inf"), "-1 | Infinity | Infinity | Infinity\n+1 | NaN | NaN | Infinity");
    run.restart();
    assert_eq!(run.step("-1 | inf\n-1 | -inf"), "+1 | 2.5 | 2.5 | 2.5\n-1 | NaN | NaN | Infinity");
}

#[test]
fn equal_keys_are_one_group() {
    let schema = literal::schema("v float8, d interval");
    let mut run = Run::new("SELECT v, d, count(*) FROM t GROUP BY v, d", &schema, false);
    assert_eq!(run.step("+1 | -0 | 1 mon\n+1 | 0 | 30 days\n+1 | 0 | 720 hours"), "+1 | -0 | 1 mon | 3");
    run.restart();
    assert_eq!(run.step("-1 | -0 | 1 mon"), "+1 | -0 | 1 mon | 2\n-1 | -0 | 1 mon | 3");
    let mut run = Run::new("SELECT min(d), max(d), count(DISTINCT d), max(v) FROM t", &schema, false);
    assert_eq!(run.step("+1 | -0 | 1 mon\n+1 | -0 | 29 days"), "+1 | 29 days | 1 mon | 2 | -0");
    assert_eq!(
        run.step("+1 | NULL | 30 days\n-1 | -0 | 1 mon"),
        "-1 | 29 days | 1 mon | 2 | -0\n+1 | 29 days | 30 days | 2 | -0"
    );
}

#[test]
fn a_result_that_does_not_fit_is_an_error_until_it_does() {
    let schema = literal::schema("g int4, v numeric(38,0)");
    let mut run = Run::new("SELECT g, sum(v), count(*) FROM t GROUP BY g", &schema, false);
    let big = "99999999999999999999999999999999999999";
    assert_eq!(run.step(&format!("+1 | 1 | {big}")), format!("+1 | 1 | {big} | 1"));
    assert_eq!(
        run.step(&format!("+1 | 1 | {big}\n+1 | 2 | 3")),
        format!("-1 | 1 | {big} | 1\n+1 | 2 | 3 | 1\n---\n+1 | aggregate | value overflows numeric format | (1)")
    );
    run.restart();
    assert_eq!(run.step("+1 | 1 | 5"), "");
    assert_eq!(
        run.step(&format!("-1 | 1 | {big}\n-1 | 1 | 5")),
        format!("+1 | 1 | {big} | 1\n---\n-1 | aggregate | value overflows numeric format | (1)")
    );
}

#[test]
fn different_rows_of_an_append_only_input_are_append_only() {
    let schema = literal::schema("g text, v int4");
    let mut run = Run::new("SELECT DISTINCT g FROM (SELECT g FROM t GROUP BY g)", &schema, true);
    assert!(run.spec.properties(&[&Properties { append_only: true, ..Default::default() }]).append_only);
    assert_eq!(run.step("+1 | a | 1\n+1 | a | 2"), "+1 | a");
    run.restart();
    assert_eq!(run.step("+1 | a | 1\n+1 | b | 2"), "+1 | b");
}

#[test]
fn many_values_of_a_group_have_entries_of_their_own() {
    let schema = literal::schema("g text, v int4");
    let mut run = Run::new("SELECT g, min(v), max(v), count(DISTINCT v) FROM t GROUP BY g", &schema, false);
    let rows = |weight: &str, values: std::ops::Range<i32>| {
        values.map(|value| format!("{weight} | x | {value}")).collect::<Vec<_>>().join("\n")
    };
    let entries = |run: &Run| run.store.snapshot().scan(&[], &[0xff; 8]).count();
    assert_eq!(run.step(&rows("+1", 0..10)), "+1 | x | 0 | 9 | 10");
    // The epoch's number and the group.
    assert_eq!(entries(&run), 2);
    assert_eq!(run.step(&rows("+1", 5..200)), "+1 | x | 0 | 199 | 200\n-1 | x | 0 | 9 | 10");
    assert_eq!(entries(&run), 2 + 200);
    run.restart();
    assert_eq!(run.step(&rows("-1", 100..200)), "-1 | x | 0 | 199 | 200\n+1 | x | 0 | 99 | 100");
    assert_eq!(run.step(&rows("-1", 0..7)), "-1 | x | 0 | 99 | 100\n+1 | x | 5 | 99 | 95");
    assert_eq!(run.step(&rows("-1", 7..10)), "");
    assert_eq!(run.step(&rows("-1", 5..100)), "-1 | x | 5 | 99 | 95");
    assert_eq!(entries(&run), 1);
    assert_eq!(run.step(&rows("+1", 1..3)), "+1 | x | 1 | 2 | 2");
    assert_eq!(entries(&run), 2);
}

#[test]
fn several_distinct_and_filters() {
    let schema = literal::schema("a int4, b int4, c bool");
    let query = "SELECT a, count(DISTINCT b), count(DISTINCT c), max(b), count(*), sum(DISTINCT b),
        count(*) FILTER (WHERE c), sum(b) FILTER (WHERE c) FROM t GROUP BY a";
    let mut run = Run::new(query, &schema, false);
    assert_eq!(
        run.step("+1 | 1 | 2 | t\n+1 | 1 | 2 | f\n+1 | 1 | 9 | f\n+1 | 5 | 3 | NULL"),
        "+1 | 1 | 2 | 2 | 9 | 3 | 11 | 1 | 2\n+1 | 5 | 1 | 0 | 3 | 1 | 3 | 0 | NULL"
    );
    assert_eq!(run.step("-1 | 1 | 9 | f"), "+1 | 1 | 1 | 2 | 2 | 2 | 2 | 1 | 2\n-1 | 1 | 2 | 2 | 9 | 3 | 11 | 1 | 2");
    assert_eq!(run.spec.state_tables(), 3);
}

/// Columns of the random tests, and for each the values that occur.
fn random_columns() -> (SchemaRef, Vec<Vec<&'static str>>) {
    let schema = literal::schema(
        "g int4, h text, b bool, i2 int2, i4 int4, i8 int8, f4 float4, f8 float8, d numeric(20,4), ts timestamp, s text",
    );
    let values = vec![
        vec!["1", "2", "3", "-4", "NULL"],
        vec!["a", "b", "", "NULL"],
        vec!["t", "f", "NULL"],
        vec!["1", "-32768", "32767", "NULL"],
        vec!["1", "2", "3", "2147483647", "-2147483648", "NULL"],
        vec!["1", "9223372036854775807", "-9223372036854775808", "NULL"],
        vec!["0.1", "1.5", "NaN", "-3e30", "NULL"],
        vec!["0.1", "0.2", "1e300", "-1e300", "inf", "-inf", "NaN", "5e-324", "1e16", "1", "NULL"],
        vec!["0.0001", "-9999999999999999.9999", "12.5", "NULL"],
        vec!["2020-01-01 00:00:00", "1969-12-31 23:59:59.999999", "2024-02-29 12:00:00", "NULL"],
        vec!["x", "yy", "long text that takes more than one block of bytes in a key", "NULL"],
    ];
    (schema, values)
}

const RANDOM_QUERIES: &[&str] = &[
    "SELECT g, h, count(*), count(i4), sum(i2), sum(i4), sum(i8), avg(i4), avg(i8) FROM t GROUP BY g, h",
    "SELECT h, sum(f4), sum(f8), avg(f8), avg(f4), sum(d), avg(d), count(DISTINCT f8) FROM t GROUP BY h",
    "SELECT g, min(i4), max(i4), min(i8), max(d), min(s), max(s), min(ts), max(ts), max(f4) FROM t GROUP BY g",
    "SELECT count(*), count(s), sum(DISTINCT i4), avg(DISTINCT d), count(DISTINCT s), sum(DISTINCT f8), max(i2) FROM t",
    "SELECT s, ts, count(*) FILTER (WHERE b), sum(i4) FILTER (WHERE b), max(s) FILTER (WHERE b),
        count(DISTINCT h) FILTER (WHERE b), bool_and(b), bool_or(b) FROM t GROUP BY s, ts",
    "SELECT g, h, b, s FROM t GROUP BY g, h, b, s",
    "SELECT i2, b, sum(d) FROM t GROUP BY i2, b",
    "SELECT f4, d, ts, sum(f8), min(f8) FROM t GROUP BY f4, d, ts",
];

fn batch_of(schema: &SchemaRef, rows: &[Vec<ScalarValue>]) -> RecordBatch {
    let columns: Vec<ArrayRef> = (0..schema.fields().len())
        .map(|column| match rows.is_empty() {
            true => datafusion::arrow::array::new_empty_array(schema.field(column).data_type()),
            false => ScalarValue::iter_to_array(rows.iter().map(|row| row[column].clone())).unwrap(),
        })
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).unwrap()
}

/// The rows of a query over the accumulated input, as text, with their numbers.
fn expected(query: &str, schema: &SchemaRef, rows: &[Vec<ScalarValue>]) -> Vec<String> {
    let context = session();
    let table = MemTable::try_new(schema.clone(), vec![vec![batch_of(schema, rows)]]).unwrap();
    context.register_table("t", Arc::new(table)).unwrap();
    let batches = block_on(async { context.sql(query).await.unwrap().collect().await.unwrap() });
    let mut lines: Vec<String> = batches.iter().flat_map(|batch| literal::row_literals(batch).unwrap()).collect();
    lines.sort();
    lines
}

fn random_run(seed: u64, query: &str, append_only: bool) {
    let (schema, values) = random_columns();
    let mut random = StdRng::seed_from_u64(seed);
    let parsed: Vec<Vec<ScalarValue>> = values
        .iter()
        .enumerate()
        .map(|(column, texts)| {
            let field: Field = schema.field(column).clone();
            let single: SchemaRef = Arc::new(datafusion::arrow::datatypes::Schema::new(vec![field]));
            let lines: Vec<String> = texts.iter().map(|text| format!("+1 | {text}")).collect();
            let delta = literal::delta(&single, &lines.join("\n"));
            (0..texts.len()).map(|row| ScalarValue::try_from_array(delta.batch().column(0), row).unwrap()).collect()
        })
        .collect();
    let mut run = Run::new(query, &schema, append_only);
    let mut rows: Vec<Vec<ScalarValue>> = Vec::new();
    let mut shown: BTreeMap<String, i64> = BTreeMap::new();
    for epoch in 0..12 {
        let mut deltas = Vec::new();
        for _ in 0..random.random_range(0..3) {
            let (mut changed, mut weights) = (Vec::new(), Vec::new());
            for _ in 0..random.random_range(0..12) {
                if !append_only && !rows.is_empty() && random.random_bool(0.45) {
                    changed.push(rows.swap_remove(random.random_range(0..rows.len())));
                    weights.push(-1);
                } else {
                    let row: Vec<ScalarValue> =
                        parsed.iter().map(|values| values[random.random_range(0..values.len())].clone()).collect();
                    let weight = if random.random_bool(0.2) { 3 } else { 1 };
                    rows.extend(std::iter::repeat_n(row.clone(), weight));
                    changed.push(row);
                    weights.push(weight as i64);
                }
            }
            let all_one = weights.iter().all(|weight| *weight == 1);
            deltas.push(Delta::new(batch_of(&schema, &changed), (!all_one).then(|| weights.into())));
        }
        let (change, errors) = run.epoch(deltas);
        assert!(errors.is_empty(), "seed {seed}, epoch {epoch}: {query}: {}", literal::text(&errors));
        for (row, line) in literal::row_literals(change.batch()).unwrap().into_iter().enumerate() {
            *shown.entry(line).or_default() += change.weight(row);
        }
        shown.retain(|_, weight| *weight != 0);
        let lines: Vec<String> =
            shown.iter().flat_map(|(line, weight)| std::iter::repeat_n(line.clone(), *weight as usize)).collect();
        assert_eq!(lines, expected(query, &schema, &rows), "seed {seed}, epoch {epoch}: {query}");
        run.commit();
        if random.random_bool(0.3) {
            run.restart();
        }
    }
}

#[test]
fn agrees_with_datafusion_at_random() {
    let first = std::env::var("TIDEMILL_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1u64);
    for seed in first..first + 10 {
        for query in RANDOM_QUERIES {
            random_run(seed, query, false);
            random_run(seed, query, true);
        }
    }
}

/// Rows a second through absorb and close, printed.
#[test]
#[ignore = "prints figures, proves nothing"]
#[allow(clippy::print_stdout)]
fn throughput() {
    use datafusion::arrow::array::{Decimal128Array, Float64Array, Int64Array, StringArray};
    const ROWS: usize = 8192;
    let schema = literal::schema("k int8, i int8, f float8, d numeric(10,2), s text");
    let mut random = StdRng::seed_from_u64(7);
    let mut batches = |groups: i64| -> Vec<RecordBatch> {
        let mut batch = || {
            let keys: Vec<i64> = (0..ROWS).map(|_| random.random_range(0..groups)).collect();
            let columns: Vec<ArrayRef> = vec![
                Arc::new(Int64Array::from(keys.clone())),
                Arc::new(Int64Array::from_iter_values((0..ROWS).map(|_| random.random_range(0..1_000_000)))),
                Arc::new(Float64Array::from_iter_values((0..ROWS).map(|_| random.random_range(0.0..1e6)))),
                Arc::new(
                    Decimal128Array::from_iter_values((0..ROWS).map(|_| random.random_range(0..1_000_000)))
                        .with_precision_and_scale(10, 2)
                        .unwrap(),
                ),
                Arc::new(StringArray::from_iter_values(keys.iter().map(|key| format!("group {key}")))),
            ];
            RecordBatch::try_new(schema.clone(), columns).unwrap()
        };
        (0..64).map(|_| batch()).collect()
    };
    for (groups, per_epoch) in [(1_000, 64), (1_000, 4), (100_000, 64)] {
        let batches = batches(groups);
        for query in [
            "SELECT k, count(*) FROM t GROUP BY k",
            "SELECT k, count(*), sum(i) FROM t GROUP BY k",
            "SELECT k, count(*), sum(f), avg(f) FROM t GROUP BY k",
            "SELECT k, sum(d), avg(d) FROM t GROUP BY k",
            "SELECT s, count(*), sum(i) FROM t GROUP BY s",
            "SELECT k, min(i), max(f) FROM t GROUP BY k",
            "SELECT k, count(DISTINCT i) FROM t GROUP BY k",
            "SELECT count(*), sum(i), sum(f) FROM t",
        ] {
            for append_only in [true, false] {
                let mut run = Run::new(query, &schema, append_only);
                let start = crate::clock::monotonic();
                for epoch in batches.chunks(per_epoch) {
                    run.epoch(epoch.iter().cloned().map(Delta::insert).collect());
                    run.commit();
                }
                let seconds = crate::clock::elapsed(start).as_secs_f64();
                let rate = (batches.len() * ROWS) as f64 / seconds / 1e6;
                println!(
                    "{groups:>7} groups, {per_epoch:>2} batches an epoch, append only {append_only:>5}: {rate:6.2} M rows/s  {query}"
                );
            }
        }
    }
}
