//! What a view may not contain: functions whose result is not decided by the rows.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::logical_expr::{Expr, LogicalPlan, Volatility};
use plan::{PlanError, SqlState};

/// Functions that stand for the statement's time.
const TIME_FUNCTIONS: &[&str] = &["now", "current_timestamp", "current_date", "current_time", "today"];

/// Refuses functions in a view's query that would not give the same result when a row is retracted: volatile
/// ones always, and the current time, which only a temporal filter could follow.
pub(crate) fn check(plan: &LogicalPlan) -> Result<(), PlanError> {
    let mut refused = None;
    let walk = plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|inner| {
                if let Some(error) = refuse(inner) {
                    refused = Some(error);
                    return Ok(TreeNodeRecursion::Stop);
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    });
    walk.map_err(PlanError::internal)?;
    refused.map_or(Ok(()), Err)
}

fn refuse(expression: &Expr) -> Option<PlanError> {
    let Expr::ScalarFunction(call) = expression else { return None };
    let name = call.func.name();
    if TIME_FUNCTIONS.contains(&name) {
        return Some(
            PlanError::unsupported(format!("{name}() in a materialized view"))
                .with_hint("Filter by the current time where the view is read."),
        );
    }
    if call.func.signature().volatility == Volatility::Volatile {
        return Some(
            PlanError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("function {name}() is volatile and cannot be used in a materialized view"),
            )
            .with_detail("Its result would differ between the moment a row is added and the moment it is removed.")
            .with_hint("Compute it when the row is inserted, for example as the column's DEFAULT."),
        );
    }
    None
}
