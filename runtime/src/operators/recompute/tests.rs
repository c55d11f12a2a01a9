//! Recomputed queries over changing inputs.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::Transformed;
use datafusion::datasource::empty::EmptyTable;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{LogicalPlan, TableScan};
use datafusion::prelude::SessionContext;
use plan::{Dataflow, Lower, LowerContext, Lowered, NodeId, PlanError, Properties, Relation, RelationSource, Spec};

use super::RecomputeDefinition;
use crate::engine::tests::harness::World;
use crate::engine::tests::on_workers;

/// Lowers everything by recomputing it.
struct Everything {
    plan: Dataflow,
    session: SessionState,
}

impl LowerContext for Everything {
    fn lower(&mut self, plan: &LogicalPlan) -> Result<NodeId, PlanError> {
        if let LogicalPlan::TableScan(scan) = plan
            && let (Some(source), None) = (RelationSource::of(scan.source.as_ref()), &scan.projection)
        {
            return Ok(self.import(source.relation.clone()));
        }
        match RecomputeDefinition.lower(plan, self)? {
            Lowered::Node(node) => Ok(node),
            Lowered::Declined(_) => unreachable!("it declines nothing"),
        }
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
        vec!["nobody else was asked".to_owned()]
    }
}

fn try_query(world: &World, sql: &str) -> Result<Dataflow, PlanError> {
    let context = SessionContext::new();
    for relation in world.relations() {
        context.register_table(relation.name.as_str(), Arc::new(EmptyTable::new(relation.schema.clone()))).unwrap();
    }
    let session = context.state();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let logical = runtime.block_on(session.create_logical_plan(sql)).unwrap();
    let logical = logical
        .transform_down_with_subqueries(|node| {
            let LogicalPlan::TableScan(scan) = node else { return Ok(Transformed::no(node)) };
            let Some(relation) = world.relations().find(|relation| relation.name == scan.table_name.table()) else {
                return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
            };
            let source = Arc::new(RelationSource::new(relation.clone()));
            Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
        })
        .unwrap();
    let mut everything = Everything { plan: Dataflow::default(), session };
    let output = everything.lower(&logical.data)?;
    everything.plan.set_output(output);
    Ok(everything.plan)
}

fn query(world: &World, sql: &str) -> Dataflow {
    try_query(world, sql).unwrap()
}

/// The view's rows after each epoch of changes to tables t(k, v) and u(k, w).
fn rows_of(sql: &str, epochs: &[(&str, &str)]) -> Vec<String> {
    on_workers(|world| {
        let t = world.table("t", "k int8, v text");
        let u = world.table("u", "k int8, w int8");
        let plan = query(world, sql);
        let view = world.view("view", plan, &[]);
        let mut rows = Vec::new();
        for (of_t, of_u) in epochs {
            let result = world.epoch(&[(&t, of_t), (&u, of_u)]);
            assert!(result.failures.is_empty(), "{:?}", result.failures);
            rows.push(world.rows(view).replace('\n', "; "));
        }
        world.check_stored();
        rows
    })
}

#[test]
fn a_limit_counts_by_the_order_below_it() {
    let epochs = [("+1 | 3 | c\n+1 | 1 | a\n+1 | 2 | b", ""), ("+1 | 4 | d", ""), ("-1 | 1 | a", "")];
    let rows = rows_of("SELECT v, k FROM t ORDER BY k DESC LIMIT 2", &epochs);
    assert_eq!(rows, ["b | 2; c | 3", "c | 3; d | 4", "c | 3; d | 4"]);
    let rows = rows_of("SELECT k FROM t LIMIT 10", &epochs);
    assert_eq!(rows, ["1; 2; 3", "1; 2; 3; 4", "2; 3; 4"]);
}

#[test]
fn joins_see_both_sides_change() {
    let epochs = [("+1 | 1 | a\n+1 | 2 | b", "+1 | 1 | 10"), ("", "+1 | 2 | 20\n+1 | 2 | 21"), ("-1 | 2 | b", "")];
    let rows = rows_of("SELECT t.k, t.v, u.w FROM t LEFT JOIN u ON t.k = u.k", &epochs);
    assert_eq!(rows[0], "1 | a | 10; 2 | b | NULL");
    assert_eq!(rows[1], "1 | a | 10; 2 | b | 20; 2 | b | 21");
    assert_eq!(rows[2], "1 | a | 10");
}

#[test]
fn subqueries_are_run_again_as_a_whole() {
    let epochs =
        [("+1 | 1 | a\n+1 | 2 | b\n+1 | 3 | c", "+1 | 2 | 1"), ("+1 | 30 | z", "+1 | 3 | 5"), ("", "-1 | 2 | 1")];
    let rows = rows_of("SELECT k FROM t WHERE k > (SELECT avg(k) FROM t)", &epochs);
    assert_eq!(rows, ["3", "30", "30"]);
    let rows = rows_of("SELECT k FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)", &epochs);
    assert_eq!(rows, ["2", "2; 3", "3"]);
    let rows = rows_of("SELECT k, (SELECT count(*) FROM u WHERE u.k = t.k) FROM t WHERE k < 4", &epochs);
    assert_eq!(rows, ["1 | 0; 2 | 1; 3 | 0", "1 | 0; 2 | 1; 3 | 1", "1 | 0; 2 | 0; 3 | 1"]);
}

#[test]
fn copies_are_kept_apart() {
    let epochs = [("+1 | 1 | a\n+1 | 1 | b", ""), ("+1 | 2 | c", "")];
    assert_eq!(rows_of("SELECT k FROM t UNION ALL SELECT k FROM t", &epochs), ["1; 1; 1; 1", "1; 1; 1; 1; 2; 2"]);
    assert_eq!(rows_of("SELECT DISTINCT k FROM t", &epochs), ["1", "1; 2"]);
}

#[test]
fn a_query_without_inputs_is_said_once() {
    assert_eq!(rows_of("SELECT 1 AS one, 'x' AS x", &[("", ""), ("+1 | 1 | a", "")]), ["1 | x", "1 | x"]);
    let recursive = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i FROM n";
    assert_eq!(rows_of(recursive, &[("", ""), ("+1 | 1 | a", "")]), ["1; 2; 3", "1; 2; 3"]);
}

#[test]
fn recursion_follows_its_input() {
    let sql = "WITH RECURSIVE up(k) AS (SELECT k FROM u WHERE w = 0 \
               UNION ALL SELECT u.k FROM u JOIN up ON u.w = up.k) SELECT k FROM up";
    let epochs = [("", "+1 | 1 | 0\n+1 | 2 | 1\n+1 | 3 | 2"), ("", "-1 | 2 | 1"), ("", "+1 | 3 | 1\n-1 | 3 | 2")];
    assert_eq!(rows_of(sql, &epochs), ["1; 2; 3", "1", "1; 3"]);
}

#[test]
fn a_failing_query_is_empty_until_it_can_be_evaluated() {
    let outcomes = on_workers(|world| {
        let u = world.table("u", "k int8, w int8");
        let plan = query(world, "SELECT k, 10 / w FROM u");
        let view = world.view("view", plan, &[]);
        let mut outcomes = Vec::new();
        for change in ["+1 | 1 | 5", "+1 | 2 | 0", "+1 | 3 | 1", "-1 | 2 | 0"] {
            let result = world.epoch(&[(&u, change)]);
            assert!(result.failures.is_empty(), "{:?}", result.failures);
            outcomes.push((world.rows(view), world.errors(view)));
        }
        world.check_stored();
        outcomes
    });
    let error = "recompute | division by zero | ";
    assert_eq!(outcomes[0], ("1 | 2".to_owned(), String::new()));
    assert_eq!(outcomes[1], (String::new(), error.to_owned()));
    assert_eq!(outcomes[2], (String::new(), error.to_owned()));
    assert_eq!(outcomes[3], ("1 | 2\n3 | 10".to_owned(), String::new()));
}

#[test]
fn inputs_and_output_survive_a_restart() {
    on_workers(|world| {
        let t = world.table("t", "k int8, v text");
        let plan = query(world, "SELECT k, v FROM t ORDER BY k LIMIT 2");
        let view = world.view("view", plan, &[]);
        world.epoch(&[(&t, "+1 | 5 | a\n+1 | 6 | b\n+1 | 7 | c")]);
        world.restart();
        world.epoch(&[(&t, "-1 | 5 | a")]);
        world.check_stored();
        assert_eq!(world.rows(view), "6 | b\n7 | c");
    });
}

#[test]
fn explain_names_what_is_recomputed_and_why() {
    let mut world = World::new(1);
    world.table("t", "k int8, v text");
    let plan = query(&world, "SELECT v FROM t ORDER BY k LIMIT 2");
    let details: Vec<String> = plan
        .nodes()
        .iter()
        .filter_map(|node| match &node.kind {
            plan::NodeKind::Operator(spec) => Some(spec.detail()),
            plan::NodeKind::Import(_) => None,
        })
        .collect();
    assert!(details.iter().any(|detail| detail.contains("Limit: skip=0, fetch=2 over ")), "{details:?}");
    assert!(details.iter().all(|detail| detail.ends_with("; because nobody else was asked")), "{details:?}");
}

/// DataFusion's own bool_and cannot give up a row again.
#[test]
fn what_cannot_be_begun_is_refused() {
    let context = SessionContext::new();
    let check = |frame: &str| {
        let query = format!("SELECT bool_and(x) OVER (ORDER BY x {frame}) FROM (VALUES (true)) AS t(x)");
        let plan = futures::executor::block_on(context.sql(&query)).unwrap().into_optimized_plan().unwrap();
        super::exec::check(&plan, &context.state(), &[]).map_err(|error| error.strip_backtrace())
    };
    assert_eq!(check("ROWS UNBOUNDED PRECEDING"), Ok(()));
    let error = check("ROWS 1 PRECEDING").unwrap_err();
    assert!(error.contains("`retract_batch` is not implemented"), "{error}");
}
