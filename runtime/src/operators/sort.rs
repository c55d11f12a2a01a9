//! Names and orders that mean nothing in a view.
//!
//! A relation is a multiset, so an ORDER BY without LIMIT adds nothing to it; and an alias of a subquery only renames.
//! Both are lowered to their input: there is no operator in execution.

use datafusion::logical_expr::LogicalPlan;
use plan::{Lower, LowerContext, Lowered, PlanError, Spec};

use super::{BuildContext, Operator, OperatorDef};
use crate::error::Result;

/// Sees through ORDER BY without LIMIT, and through aliases.
#[derive(Debug)]
pub struct SortDefinition;

impl Lower for SortDefinition {
    fn name(&self) -> &'static str {
        "sort"
    }

    fn lower(&self, plan: &LogicalPlan, context: &mut dyn LowerContext) -> Result<Lowered, PlanError> {
        match plan {
            LogicalPlan::Sort(sort) if sort.fetch.is_none() => Ok(Lowered::Node(context.lower(&sort.input)?)),
            LogicalPlan::SubqueryAlias(alias) => Ok(Lowered::Node(context.lower(&alias.input)?)),
            _ => Ok(Lowered::Declined(None)),
        }
    }
}

impl OperatorDef for SortDefinition {
    fn build(&self, spec: &dyn Spec, _context: BuildContext) -> Result<Box<dyn Operator>> {
        Err(PlanError::internal(format!("operator {} was never planned", spec.name())).into())
    }
}
