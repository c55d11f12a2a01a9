//! What DataFusion takes for constant, so that it leaves out sorts by it, though the plan that comes of it is wrong:
//!
//! - a column that is constant on one side of an outer join (the only row of an aggregate, a column that a filter fixes): in
//!   rows without partner it is NULL;
//! - a column of which a filter fixes a cast or a sum: `CAST(ts AS date) = '2024-01-01'` holds for all times of a day, but is
//!   taken to say that `ts` is the midnight before them;
//! - a column that is a literal, or that a filter fixes: where projections are moved, joins and windows above lose sight of it,
//!   and the sort that was left out is missed.
//!
//! So such a side of a join, filters, and projections with literals are put behind a plan that passes their rows on and says
//! nothing of them. What it costs is a sort by a constant now and then.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{JoinType, Statistics};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::utils::collect_columns;
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, NestedLoopJoinExec, SortMergeJoinExec};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties, PlanProperties};

/// The rule. It comes before all that look at orders, but for that which notes the order of the result.
#[derive(Debug)]
pub(super) struct NothingIsConstant;

impl PhysicalOptimizerRule for NothingIsConstant {
    fn name(&self) -> &str {
        "nothing_is_constant"
    }

    fn schema_check(&self) -> bool {
        true
    }

    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        plan.transform_up(|node| {
            if hides_its_columns(node.as_ref()) {
                return Ok(Transformed::yes(Arc::new(Unsaid::new(node)) as Arc<dyn ExecutionPlan>));
            }
            let padded = match join_type(node.as_ref()) {
                Some(JoinType::Left) => [false, true],
                Some(JoinType::Right) => [true, false],
                Some(JoinType::Full) => [true, true],
                _ => return Ok(Transformed::no(node)),
            };
            let children = node.children().into_iter().zip(padded).map(|(child, padded)| match padded {
                true => Arc::new(Unsaid::new(Arc::clone(child))) as Arc<dyn ExecutionPlan>,
                false => Arc::clone(child),
            });
            let children = children.collect();
            let recompute = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            node.replace_children(children, recompute).map(Transformed::yes)
        })
        .map(|plan| plan.data)
    }
}

/// Whether a plan makes columns of which DataFusion would say that they are constant.
fn hides_its_columns(plan: &dyn ExecutionPlan) -> bool {
    let plan = plan as &dyn Any;
    if let Some(projection) = plan.downcast_ref::<ProjectionExec>() {
        return projection.expr().iter().any(|computed| collect_columns(&computed.expr).is_empty());
    }
    plan.downcast_ref::<FilterExec>().is_some()
}

fn join_type(plan: &dyn ExecutionPlan) -> Option<JoinType> {
    let plan = plan as &dyn Any;
    if let Some(join) = plan.downcast_ref::<HashJoinExec>() {
        return Some(*join.join_type());
    }
    if let Some(join) = plan.downcast_ref::<NestedLoopJoinExec>() {
        return Some(*join.join_type());
    }
    plan.downcast_ref::<SortMergeJoinExec>().map(|join| join.join_type())
}

/// The rows of a plan, of which nothing more is said.
#[derive(Debug, Clone)]
struct Unsaid {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl Unsaid {
    fn new(input: Arc<dyn ExecutionPlan>) -> Self {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            input.output_partitioning().clone(),
            input.pipeline_behavior(),
            input.boundedness(),
        );
        Unsaid { input, properties: Arc::new(properties) }
    }
}

impl DisplayAs for Unsaid {
    fn fmt_as(&self, _form: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Unsaid")
    }
}

impl ExecutionPlan for Unsaid {
    fn name(&self) -> &str {
        "Unsaid"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match <[Arc<dyn ExecutionPlan>; 1]>::try_from(children) {
            Ok([input]) => Ok(Arc::new(Unsaid::new(input))),
            Err(_) => datafusion::common::internal_err!("Unsaid has one input"),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        inputs: &[Arc<Statistics>],
        _arguments: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        match inputs {
            // How many rows there are, and nothing of their values.
            [statistics] => Ok(Arc::new(Statistics {
                column_statistics: Statistics::unknown_column(&self.input.schema()),
                ..statistics.as_ref().clone()
            })),
            _ => datafusion::common::internal_err!("Unsaid has one input"),
        }
    }
}
