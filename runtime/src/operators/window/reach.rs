//! How far from a row a window function looks.

use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{NullTreatment, WindowFunction, WindowFunctionDefinition};
use datafusion::logical_expr::{Expr, WindowFrameBound, WindowFrameUnits};

use crate::limits::WINDOW_REACH_ROWS_MAX;

/// The number of rows that a function looks back and ahead at most; none if it may look at any.
pub(super) fn of(function: &WindowFunction) -> Option<usize> {
    let params = &function.params;
    let reach = match &function.fun {
        WindowFunctionDefinition::WindowUDF(udf) => match udf.name() {
            // NULLs that are skipped do not count.
            "lag" | "lead" if params.null_treatment == Some(NullTreatment::IgnoreNulls) => None,
            "lag" | "lead" => match params.args.get(1) {
                None => Some(1),
                Some(offset) => distance(offset),
            },
            "first_value" | "last_value" | "nth_value" => of_frame(function),
            _ => None,
        },
        WindowFunctionDefinition::AggregateUDF(_) => of_frame(function),
    };
    reach.filter(|rows| *rows <= WINDOW_REACH_ROWS_MAX)
}

fn of_frame(function: &WindowFunction) -> Option<usize> {
    let frame = &function.params.window_frame;
    if frame.units != WindowFrameUnits::Rows {
        return None;
    }
    let rows = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::CurrentRow => Some(0),
        WindowFrameBound::Preceding(rows) | WindowFrameBound::Following(rows) => rows_of(rows),
    };
    Some(rows(&frame.start_bound)?.max(rows(&frame.end_bound)?))
}

fn distance(offset: &Expr) -> Option<usize> {
    match offset {
        Expr::Literal(value, _) => rows_of(value),
        _ => None,
    }
}

/// The number that a constant is; NULL is no bound.
fn rows_of(value: &ScalarValue) -> Option<usize> {
    let value = value.cast_to(&datafusion::arrow::datatypes::DataType::Int64).ok()?;
    match value {
        ScalarValue::Int64(Some(rows)) => usize::try_from(rows.unsigned_abs()).ok(),
        _ => None,
    }
}
