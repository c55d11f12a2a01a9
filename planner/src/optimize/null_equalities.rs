//! Joins on equal NULLs keep them.
//!
//! DataFusion's rule that puts inner joins together so that none is a cross join gives all of them the NULL semantics of the
//! uppermost: `a.x IS NOT DISTINCT FROM b.x` becomes `a.x = b.x` below a join by `=`, and the other way round. It is left out
//! where a plan has an inner join on equal NULLs; conditions still become keys of the joins as they are written.

use datafusion::common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion::common::{NullEquality, Result};
use datafusion::logical_expr::{JoinType, LogicalPlan};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::Rule;

/// The name of DataFusion's rule.
pub(super) const RULE: &str = "eliminate_cross_join";

/// That rule, for plans in which NULLs are equal in no inner join.
#[derive(Debug)]
pub(super) struct Kept(pub(super) Rule);

impl OptimizerRule for Kept {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let mut nulls_are_equal = false;
        plan.apply_with_subqueries(|node| {
            nulls_are_equal |= matches!(node, LogicalPlan::Join(join) if join.join_type == JoinType::Inner
                && join.null_equality == NullEquality::NullEqualsNull
                && !join.on.is_empty());
            Ok(if nulls_are_equal { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
        })?;
        if nulls_are_equal { Ok(Transformed::no(plan)) } else { self.0.rewrite(plan, config) }
    }
}
