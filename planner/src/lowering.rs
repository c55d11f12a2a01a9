//! Logical plans to dataflow plans.

use datafusion::logical_expr::LogicalPlan;
use plan::{Dataflow, PlanError};

use crate::Planner;

impl Planner {
    /// Optimizes a bound plan for streaming and lowers it to a dataflow.
    pub fn dataflow(&self, _plan: &LogicalPlan) -> Result<Dataflow, PlanError> {
        Err(PlanError::unsupported("a materialized view"))
    }
}
