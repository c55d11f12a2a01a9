//! Drives lowering: shows every logical node to the operators in their order, and takes the first answer.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, TableScan, TableScanBuilder};
use plan::{
    Dataflow, LowerContext, Lowered, NodeId, PlanError, Properties, Relation, RelationId, RelationSource, Spec,
};

use crate::Planner;
use crate::catalog::Sizes;
use crate::optimize::from_datafusion;
use crate::volatile;

impl Planner {
    /// Turns a bound query into a dataflow plan. Its joins are put in order by the sizes of what it reads; without any they
    /// stay as they are written.
    pub fn dataflow(&self, plan: &LogicalPlan, sizes: Option<&Sizes>) -> Result<Dataflow, PlanError> {
        volatile::check(plan)?;
        let optimized = self.optimize_for_dataflow(plan.clone(), sizes)?;
        let mut driver =
            Driver { planner: self, dataflow: Dataflow::default(), done: HashMap::new(), refusals: Vec::new() };
        let output = driver.lower(&optimized)?;
        driver.dataflow.set_output(output);
        driver.dataflow.validate()?;
        Ok(driver.dataflow)
    }
}

/// A logical plan together with the relations that it reads: plans compare equal by table name only, and one name
/// can stand for two relations under two search paths.
type SubPlan = (LogicalPlan, Vec<RelationId>);

struct Driver<'a> {
    planner: &'a Planner,
    dataflow: Dataflow,
    /// Sub-plans that exist already: the same one twice in a query is computed once.
    done: HashMap<SubPlan, NodeId>,
    /// For each node being lowered, why operators declined it.
    refusals: Vec<Vec<String>>,
}

impl Driver<'_> {
    /// A scan becomes an import, and a projection if it does not read all columns. Its filters are repeated by a
    /// filter above it.
    fn lower_scan(&mut self, scan: &TableScan) -> Result<NodeId, PlanError> {
        let Some(source) = RelationSource::of(scan.source.as_ref()) else {
            return Err(PlanError::unsupported(format!(
                "system relation \"{}\" in a materialized view",
                scan.table_name
            )));
        };
        if scan.projection.is_none() {
            return Ok(self.dataflow.import(Arc::clone(&source.relation)));
        }
        let all = TableScanBuilder::new(scan.table_name.clone(), Arc::clone(&scan.source)).build();
        let all = all.map_err(from_datafusion)?;
        let columns = scan.projected_schema.columns().into_iter().map(Expr::Column).collect();
        let projection =
            Projection::try_new(columns, Arc::new(LogicalPlan::TableScan(all))).map_err(from_datafusion)?;
        self.ask_operators(&LogicalPlan::Projection(projection))
    }

    fn ask_operators(&mut self, plan: &LogicalPlan) -> Result<NodeId, PlanError> {
        self.refusals.push(Vec::new());
        let planner = self.planner;
        for operator in planner.operators() {
            match operator.lower(plan, self)? {
                Lowered::Node(node) => {
                    self.refusals.pop();
                    return Ok(node);
                }
                Lowered::Declined(Some(reason)) => {
                    if let Some(reasons) = self.refusals.last_mut() {
                        reasons.push(format!("{}: {reason}", operator.name()));
                    }
                }
                Lowered::Declined(None) => {}
            }
        }
        self.refusals.pop();
        Err(PlanError::internal(format!("no operator takes {}", plan.display())))
    }
}

impl LowerContext for Driver<'_> {
    fn lower(&mut self, plan: &LogicalPlan) -> Result<NodeId, PlanError> {
        let key = (plan.clone(), relations(plan)?);
        if let Some(node) = self.done.get(&key) {
            return Ok(*node);
        }
        let node = match plan {
            LogicalPlan::TableScan(scan) => self.lower_scan(scan)?,
            other => self.ask_operators(other)?,
        };
        self.done.insert(key, node);
        Ok(node)
    }

    fn add(&mut self, spec: Arc<dyn Spec>, inputs: Vec<NodeId>) -> NodeId {
        self.dataflow.add(spec, inputs)
    }

    fn import(&mut self, relation: Arc<Relation>) -> NodeId {
        self.dataflow.import(relation)
    }

    fn schema(&self, node: NodeId) -> SchemaRef {
        Arc::clone(&self.dataflow.node(node).schema)
    }

    fn properties(&self, node: NodeId) -> Properties {
        self.dataflow.node(node).properties.clone()
    }

    fn session(&self) -> &SessionState {
        self.planner.session_state()
    }

    fn refusals(&self) -> Vec<String> {
        self.refusals.last().cloned().unwrap_or_default()
    }
}

/// The relations that a plan reads, in the order of its scans, those of subqueries included.
fn relations(plan: &LogicalPlan) -> Result<Vec<RelationId>, PlanError> {
    let mut found = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(source) = RelationSource::of(scan.source.as_ref())
        {
            found.push(source.relation.id);
        }
        Ok(TreeNodeRecursion::Continue)
    })
    .map_err(PlanError::internal)?;
    Ok(found)
}
