//! Operators that DataFusion's binder does not type as PostgreSQL does: intervals times and by numbers, and text
//! constants beside numbers; and positions in arrays.
//!
//! An interval has three parts (months, days, time). Multiplying gives fractions of each; what is left of the months
//! goes into days at 30 a month, what is left of the days into time at 24 hours a day, as in PostgreSQL.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, IntervalMonthDayNanoArray};
use datafusion::arrow::datatypes::{
    DataType, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::functions_nested::extract::{array_element, array_slice};
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult, RawBinaryExpr, RawFieldAccessExpr};
use datafusion::logical_expr::{
    BinaryExpr, Cast, ColumnarValue, Expr, ExprSchemable, GetFieldAccess, Operator, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility, lit, when,
};
use datafusion::sql::sqlparser::ast::BinaryOperator;
use plan::{PlanError, SqlState};

use super::errors::external;
use super::operators;

const DAYS_OF_MONTH: f64 = 30.0;
const SECONDS_OF_DAY: f64 = 86_400.0;
const MICROS_OF_SECOND: f64 = 1e6;

/// An interval times or by a double.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Scaled {
    divide: bool,
    signature: Signature,
}

impl ScalarUDFImpl for Scaled {
    fn name(&self) -> &str {
        if self.divide { "interval_divide" } else { "interval_multiply" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Interval(IntervalUnit::MonthDayNano))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [left, right] => {
                let operator = if self.divide { "/" } else { "*" };
                Ok(format!("{} {operator} {}", left.schema_name(), right.schema_name()))
            }
            _ => Ok(self.name().to_string()),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let intervals = arrays[0].as_primitive::<IntervalMonthDayNanoType>();
        let factors = arrays[1].as_primitive::<Float64Type>();
        let scaled = intervals.iter().zip(factors).map(|(interval, factor)| match (interval, factor) {
            (Some(interval), Some(factor)) => scale(interval, factor, self.divide).map(Some),
            _ => Ok(None),
        });
        let scaled: IntervalMonthDayNanoArray = scaled.collect::<std::result::Result<_, _>>().map_err(external)?;
        let array: ArrayRef = Arc::new(scaled);
        if constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }
}

pub(super) fn out_of_range() -> PlanError {
    PlanError::new(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range")
}

/// Whole months, days and microseconds of an interval times or by a number, in PostgreSQL's order of rounding.
fn scale(
    interval: IntervalMonthDayNano,
    factor: f64,
    divide: bool,
) -> std::result::Result<IntervalMonthDayNano, PlanError> {
    if divide && factor == 0.0 {
        return Err(PlanError::new(SqlState::DIVISION_BY_ZERO, "division by zero"));
    }
    let scaled = |part: f64| if divide { part / factor } else { part * factor };
    let whole = |part: f64| {
        let fits = part >= f64::from(i32::MIN) && part <= f64::from(i32::MAX);
        if fits { Ok(part as i32) } else { Err(out_of_range()) }
    };
    let to_micros = |seconds: f64| (seconds * MICROS_OF_SECOND).round_ties_even() / MICROS_OF_SECOND;
    let exact_months = scaled(f64::from(interval.months));
    let exact_days = scaled(f64::from(interval.days));
    let (months, days) = (whole(exact_months)?, whole(exact_days)?);
    let days_of_months = to_micros((exact_months - f64::from(months)) * DAYS_OF_MONTH);
    let mut seconds = to_micros((exact_days - f64::from(days) + days_of_months.fract()) * SECONDS_OF_DAY);
    let carried = (seconds / SECONDS_OF_DAY).trunc();
    seconds -= carried * SECONDS_OF_DAY;
    let days = whole(f64::from(days) + carried + days_of_months.trunc())?;
    let time = (interval.nanoseconds / 1_000) as f64;
    let micros = (scaled(time) + seconds * MICROS_OF_SECOND).round_ties_even();
    // Time is kept in nanoseconds.
    let fits = micros.abs() < i64::MAX as f64 / 1_000.0;
    let nanoseconds = if fits { micros as i64 * 1_000 } else { return Err(out_of_range()) };
    Ok(IntervalMonthDayNano::new(months, days, nanoseconds))
}

/// Types operators where DataFusion's binder would refuse them.
#[derive(Debug)]
pub(crate) struct PgExprPlanner {
    /// The session's time zone.
    pub time_zone: String,
    /// What operators mean for JSON and arrays.
    pub json: super::json::Functions,
    /// What operators mean for numeric.
    pub numeric: super::numeric::Functions,
}

impl ExprPlanner for PgExprPlanner {
    /// Elements and slices count from the first item. DataFusion counts negative positions from the last one, and makes
    /// an element of an aggregated array a call of nth_value, which takes nothing but a constant.
    fn plan_field_access(
        &self,
        raw: RawFieldAccessExpr,
        _schema: &DFSchema,
    ) -> Result<PlannerResult<RawFieldAccessExpr>> {
        let RawFieldAccessExpr { expr: array, field_access } = raw;
        Ok(match field_access {
            GetFieldAccess::ListIndex { key } => PlannerResult::Planned(array_element(array, at_least(0, *key)?)),
            GetFieldAccess::ListRange { start, stop, stride } => {
                let (start, stop) = (at_least(1, *start)?, at_least(0, *stop)?);
                PlannerResult::Planned(array_slice(array, start, stop, Some(*stride)))
            }
            field_access => PlannerResult::Original(RawFieldAccessExpr { expr: array, field_access }),
        })
    }

    fn plan_binary_op(&self, raw: RawBinaryExpr, schema: &DFSchema) -> Result<PlannerResult<RawBinaryExpr>> {
        let raw = match self.json.plan(raw, schema) {
            PlannerResult::Original(raw) => raw,
            planned => return Ok(planned),
        };
        let op = match raw.op {
            BinaryOperator::Plus => Operator::Plus,
            BinaryOperator::Minus => Operator::Minus,
            BinaryOperator::Multiply => Operator::Multiply,
            BinaryOperator::Divide => Operator::Divide,
            BinaryOperator::Modulo => Operator::Modulo,
            _ => return Ok(PlannerResult::Original(raw)),
        };
        let RawBinaryExpr { op: written, left, right } = raw;
        let pair = Expr::BinaryExpr(BinaryExpr { left: Box::new(left), op, right: Box::new(right) });
        let typed = operators::typed_constants(pair, schema, &self.time_zone)?;
        let Expr::BinaryExpr(BinaryExpr { left, right, .. }) = typed.data else {
            return Ok(PlannerResult::Planned(typed.data));
        };
        Ok(match (op, is_interval(&left, schema), is_interval(&right, schema)) {
            (Operator::Multiply | Operator::Divide, true, false) if is_number(&right, schema) => {
                PlannerResult::Planned(scaled(*left, *right, op == Operator::Divide))
            }
            (Operator::Multiply, false, true) if is_number(&left, schema) => {
                PlannerResult::Planned(scaled(*right, *left, false))
            }
            _ => match self.numeric.call(&left, op, &right, schema) {
                Some(call) => PlannerResult::Planned(call),
                None => PlannerResult::Original(RawBinaryExpr { op: written, left: *left, right: *right }),
            },
        })
    }
}

/// A position, or the least one if that is greater.
fn at_least(least: i64, position: Expr) -> Result<Expr> {
    match &position {
        Expr::Literal(ScalarValue::Int64(Some(known)), _) if *known >= least => Ok(position),
        _ => when(position.clone().lt(lit(least)), lit(least)).otherwise(position),
    }
}

fn scaled(interval: Expr, factor: Expr, divide: bool) -> Expr {
    let factor = Expr::Cast(Cast::new(Box::new(factor), DataType::Float64));
    let signature = Signature::any(2, Volatility::Immutable);
    ScalarUDF::new_from_impl(Scaled { divide, signature }).call(vec![interval, factor])
}

fn is_interval(expression: &Expr, schema: &DFSchema) -> bool {
    matches!(expression.get_type(schema), Ok(DataType::Interval(_)))
}

/// Numbers, and parameters without a type, which become numbers here.
fn is_number(expression: &Expr, schema: &DFSchema) -> bool {
    match expression.get_type(schema) {
        Ok(data_type) => data_type.is_numeric() || data_type == DataType::Null,
        Err(_) => matches!(expression, Expr::Placeholder(_)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_flow_downwards() {
        let interval = |months, days, seconds: i64| IntervalMonthDayNano::new(months, days, seconds * 1_000_000_000);
        let check = |from, factor, divide, to| assert_eq!(scale(from, factor, divide).ok(), Some(to));
        check(interval(0, 0, 5), 3.0, false, interval(0, 0, 15));
        check(interval(1, 0, 0), 1.5, false, interval(1, 15, 0));
        check(interval(0, 1, 0), 2.0, true, interval(0, 0, 43_200));
        check(interval(-1, -1, 0), 0.5, false, interval(0, -15, -43_200));
        assert_eq!(scale(interval(0, 1, 0), 0.0, true).map_err(|e| e.sqlstate.code()), Err("22012"));
        assert_eq!(scale(interval(1, 0, 0), 1e12, false).map_err(|e| e.sqlstate.code()), Err("22008"));
    }
}
