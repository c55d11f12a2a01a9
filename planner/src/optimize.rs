//! Which of DataFusion's rules run. For now: all, as DataFusion orders them.

use datafusion::logical_expr::LogicalPlan;
use plan::PlanError;

use crate::Planner;

impl Planner {
    /// Optimizes a bound plan for execution as an ad-hoc query at a time in microseconds since 1970.
    pub fn optimize(&self, plan: LogicalPlan, _now_micros: i64) -> Result<LogicalPlan, PlanError> {
        self.session_state().optimize(&plan).map_err(PlanError::internal)
    }
}
