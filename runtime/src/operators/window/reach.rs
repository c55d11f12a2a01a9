//! How far from a row window functions look.

use std::fmt;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::{NullTreatment, WindowFunction, WindowFunctionDefinition};
use datafusion::logical_expr::{Expr, ExprSchemable, WindowFrameBound, WindowFrameUnits};
use plan::exclusion;
use plan::expressions::{SESSION_END, SESSION_START, never_fails};

use crate::functions::session::Gap;
use crate::limits::WINDOW_REACH_ROWS_MAX;

/// How far from a change the last row is whose results it may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// So many rows.
    Rows(usize),
    /// Those of the sessions that it is in or between, by the column of their time.
    Session { time: usize, gap: Gap },
}

impl fmt::Display for Reach {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reach::Rows(rows) => write!(formatter, "{rows} rows"),
            Reach::Session { .. } => formatter.write_str("the sessions around it"),
        }
    }
}

/// Of all functions of a window, which have one order; none if a change may reach any row of its partition.
pub(super) fn of_all(functions: &[&WindowFunction], schema: &DFSchema) -> Option<Reach> {
    let sessions: Option<Vec<Reach>> = functions.iter().map(|function| of_session(function, schema)).collect();
    if let Some([first, rest @ ..]) = sessions.as_deref()
        && rest.iter().all(|reach| reach == first)
    {
        return Some(*first);
    }
    let rows: Option<Vec<usize>> = functions.iter().map(|function| of(function, schema)).collect();
    rows?.into_iter().max().map(Reach::Rows)
}

/// Of a session over rows in the order of its time.
fn of_session(function: &WindowFunction, schema: &DFSchema) -> Option<Reach> {
    let params = &function.params;
    let WindowFunctionDefinition::WindowUDF(udf) = &function.fun else { return None };
    if ![SESSION_START, SESSION_END].contains(&udf.name()) {
        return None;
    }
    let [Expr::Column(time), Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(gap)), _)] = params.args.as_slice()
    else {
        return None;
    };
    let first = params.order_by.first()?;
    if !first.asc || first.expr != params.args[0] {
        return None;
    }
    Some(Reach::Session { time: schema.index_of_column(time).ok()?, gap: Gap::of(*gap)? })
}

/// The number of rows that a function looks back and ahead at most; none if it may look at any, or if it may fail: a row
/// that fails takes all of its partition out of the result, however far from the change.
fn of(function: &WindowFunction, schema: &DFSchema) -> Option<usize> {
    let params = &function.params;
    if !params.args.iter().chain(params.filter.as_deref()).all(|part| never_fails(part, schema)) {
        return None;
    }
    let reach = match &function.fun {
        WindowFunctionDefinition::WindowUDF(udf) => match udf.name() {
            // NULLs that are skipped do not count.
            "lag" | "lead" if params.null_treatment == Some(NullTreatment::IgnoreNulls) => None,
            "lag" | "lead" => match params.args.get(1) {
                None => Some(1),
                Some(offset) => distance(offset),
            },
            "first_value" | "last_value" | "nth_value" => of_frame(function),
            // Of the peers that are left out, those within the frame matter.
            name => match (exclusion::excluded(name), exclusion::parts(&params.args)) {
                (Some("first_value" | "last_value"), _) => of_frame(function),
                (Some("nth_value"), Some(([_, number], ..))) if is_positive(number) => of_frame(function),
                (Some(name), Some((values, ..))) => of_aggregate(name, values, function, schema),
                _ => None,
            },
        },
        WindowFunctionDefinition::AggregateUDF(udf) => of_aggregate(udf.name(), &params.args, function, schema),
    };
    reach.filter(|rows| *rows <= WINDOW_REACH_ROWS_MAX)
}

/// Of an aggregate over values, which may be among other arguments.
fn of_aggregate(name: &str, values: &[Expr], function: &WindowFunction, schema: &DFSchema) -> Option<usize> {
    match name {
        "count" | "min" | "max" | "bool_and" | "bool_or" | "every" | "bit_and" | "bit_or" | "bit_xor" => {
            of_frame(function)
        }
        // So few integers have a sum within its type. Decimals may be as large as that already.
        "sum" | "avg" if values.iter().all(|argument| is_number_apart_from_decimal(argument, schema)) => {
            of_frame(function)
        }
        _ => None,
    }
}

fn is_number_apart_from_decimal(argument: &Expr, schema: &DFSchema) -> bool {
    argument.get_type(schema).is_ok_and(|data_type| data_type.is_integer() || data_type.is_floating())
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

fn is_positive(number: &Expr) -> bool {
    let Expr::Literal(value, _) = number else { return false };
    value.cast_to(&DataType::Int64).is_ok_and(|value| matches!(value, ScalarValue::Int64(Some(1..))))
}

/// The number that a constant is; NULL is no bound.
fn rows_of(value: &ScalarValue) -> Option<usize> {
    let value = value.cast_to(&DataType::Int64).ok()?;
    match value {
        ScalarValue::Int64(Some(rows)) => usize::try_from(rows.unsigned_abs()).ok(),
        _ => None,
    }
}
