//! Window functions whose frame leaves rows out (EXCLUDE).

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result as DataFusionResult};
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionDefinition};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, lit};
use plan::exclusion::{self, Exclusion};
use plan::{PlanError, SqlState};

use crate::bind::{EXCLUDE, walk};

/// Makes calls of the runtime's functions of those that have, among the keys of PARTITION BY, the constant for what their
/// frame leaves out; see [`plan::exclusion`]. This is before orders are continued to break ties: peers are those of the order
/// that was written.
pub(super) fn calls(plan: LogicalPlan, session: &SessionState) -> DataFusionResult<LogicalPlan> {
    let mut has_any = false;
    walk::look(&plan, &mut |part| {
        has_any |= matches!(part, Expr::WindowFunction(window) if excluded(window).is_some());
    })?;
    if !has_any {
        return Ok(plan);
    }
    walk::expressions(plan, &mut |expression, schema| match expression {
        Expr::WindowFunction(window) => match excluded(&window) {
            Some(exclusion) => call(*window, exclusion, schema, session).map(Transformed::yes),
            None => Ok(Transformed::no(Expr::WindowFunction(window))),
        },
        other => Ok(Transformed::no(other)),
    })
}

/// What the frame of a function leaves out.
fn excluded(window: &WindowFunction) -> Option<Exclusion> {
    window.params.partition_by.iter().find_map(exclusion_of)
}

fn exclusion_of(key: &Expr) -> Option<Exclusion> {
    let Expr::IsNull(constant) = key else { return None };
    match constant.as_ref() {
        Expr::Literal(value, _) => Exclusion::of_text(value.try_as_str().flatten()?.strip_prefix(EXCLUDE)?),
        _ => None,
    }
}

fn call(
    mut window: WindowFunction,
    exclusion: Exclusion,
    schema: &DFSchema,
    session: &SessionState,
) -> DataFusionResult<Expr> {
    let refused = |message: String| {
        let error = PlanError::new(SqlState::FEATURE_NOT_SUPPORTED, message);
        Err(DataFusionError::External(Box::new(error)))
    };
    let name = window.fun.name().to_owned();
    let Some(function) = session.window_functions().get(&exclusion::excluding(&name)) else {
        return refused(format!("EXCLUDE in the frame of {name} is not supported"));
    };
    let params = &mut window.params;
    let filter = params.filter.take();
    if filter.is_some() && matches!(window.fun, WindowFunctionDefinition::WindowUDF(_)) {
        return refused("FILTER is not implemented for non-aggregate window functions".to_owned());
    }
    params.args.push(match filter {
        // NULL has a type of its own.
        Some(filter) => filter.cast_to(&DataType::Boolean, schema)?,
        None => lit(true),
    });
    params.args.push(exclusion.argument(params.distinct));
    params.args.extend(params.order_by.iter().map(|sort| sort.expr.clone()));
    params.distinct = false;
    params.partition_by.retain(|key| exclusion_of(key).is_none());
    window.fun = WindowFunctionDefinition::WindowUDF(function.clone());
    Ok(Expr::WindowFunction(Box::new(window)))
}
