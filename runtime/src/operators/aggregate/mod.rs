//! Aggregation kept up to date.

use datafusion::logical_expr::LogicalPlan;
use plan::{Lower, LowerContext, Lowered, PlanError, Spec};

use super::{BuildContext, Operator, OperatorDef};
use crate::error::Result;

/// Recognises and builds aggregations.
#[derive(Debug)]
pub struct AggregateDefinition;

impl Lower for AggregateDefinition {
    fn name(&self) -> &'static str {
        "aggregate"
    }

    fn lower(&self, _plan: &LogicalPlan, _context: &mut dyn LowerContext) -> Result<Lowered, PlanError> {
        Ok(Lowered::Declined(None))
    }
}

impl OperatorDef for AggregateDefinition {
    fn build(&self, spec: &dyn Spec, _context: BuildContext) -> Result<Box<dyn Operator>> {
        Err(PlanError::unsupported(format!("operator {}", spec.name())).into())
    }
}
