//! From what is kept of a group to the value of `sum` or `avg`, with PostgreSQL's types and errors.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, ArrowPrimitiveType, PrimitiveArray, PrimitiveBuilder};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int64Type, IntervalMonthDayNano,
    IntervalMonthDayNanoType, IntervalUnit, i256,
};
use plan::numeric::{self, Display, QUOTIENT};
use plan::{PlanError, SqlState};

use super::sums::{Decimal128Sum, Decimal256Sum, FloatSum, IntegerSum, IntervalSum, SumState};
use crate::functions::quotient::{Term, fits, quotient};

/// The aggregate of which a result is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Function {
    /// `sum`.
    Sum,
    /// `avg`.
    Average,
}

impl Function {
    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Function::Sum => "sum",
            Function::Average => "avg",
        }
    }
}

/// The type to which an argument is converted; none if the functions do not exist for it.
pub fn accepted_type(argument: &DataType) -> Option<DataType> {
    Some(match argument {
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => DataType::Int16,
        DataType::UInt16 | DataType::Int32 => DataType::Int32,
        DataType::UInt32 | DataType::Int64 => DataType::Int64,
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Float16 | DataType::Float32 => DataType::Float32,
        DataType::Float64 | DataType::Null => DataType::Float64,
        DataType::Decimal32(precision, scale) | DataType::Decimal64(precision, scale) => {
            DataType::Decimal128(*precision, *scale)
        }
        DataType::Decimal128(..) | DataType::Decimal256(..) => argument.clone(),
        DataType::Interval(_) => DataType::Interval(IntervalUnit::MonthDayNano),
        DataType::Dictionary(_, value) => accepted_type(value)?,
        _ => return None,
    })
}

/// The type of the result for an argument of an accepted type.
pub fn result_type(function: Function, argument: &DataType) -> Option<DataType> {
    Some(match (function, argument) {
        (Function::Sum, DataType::Int16 | DataType::Int32) => DataType::Int64,
        (Function::Sum, DataType::Int64) => DataType::Decimal128(38, 0),
        (Function::Sum, DataType::Float32) => DataType::Float32,
        (Function::Sum, DataType::Decimal128(_, scale)) => DataType::Decimal128(38, *scale),
        (Function::Sum, DataType::Decimal256(_, scale)) => DataType::Decimal256(76, *scale),
        (Function::Average, DataType::Int16 | DataType::Int32 | DataType::Int64) => QUOTIENT,
        (Function::Average, DataType::Float32) => DataType::Float64,
        (Function::Average, DataType::Decimal128(..) | DataType::Decimal256(..)) => QUOTIENT,
        (_, DataType::Float64) => DataType::Float64,
        (_, DataType::Interval(IntervalUnit::MonthDayNano)) => argument.clone(),
        _ => return None,
    })
}

/// Results of groups: NULL where a group has none or failed, and the failures.
#[derive(Debug)]
pub struct Results {
    /// One value a group.
    pub values: ArrayRef,
    /// Position of the group, and why it has no result. In ascending order.
    pub errors: Vec<(usize, PlanError)>,
}

/// States from which results of a type can be made.
pub trait Finish: SumState {
    /// The results of groups. The type is one that [`result_type`] gave for a type that the state accepts.
    fn finish(states: &[Self], function: Function, argument: &DataType, result: &DataType) -> Results;
}

/// One result a group that has values.
fn collect<S: SumState, T: ArrowPrimitiveType>(
    states: &[S],
    data_type: &DataType,
    result_of: impl Fn(&S) -> Result<T::Native, PlanError>,
) -> Results {
    let mut errors = Vec::new();
    let mut builder = PrimitiveBuilder::<T>::with_capacity(states.len());
    for (group, state) in states.iter().enumerate() {
        if state.count() == 0 {
            builder.append_null();
            continue;
        }
        match result_of(state) {
            Ok(value) => builder.append_value(value),
            Err(error) => {
                builder.append_null();
                errors.push((group, error));
            }
        }
    }
    let values: PrimitiveArray<T> = builder.finish();
    Results { values: Arc::new(values.with_data_type(data_type.clone())), errors }
}

pub(super) fn out_of_range(message: &str) -> PlanError {
    PlanError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message)
}

pub(crate) fn numeric_overflow() -> PlanError {
    out_of_range("value overflows numeric format")
}

impl Finish for IntegerSum {
    fn finish(states: &[Self], function: Function, argument: &DataType, result: &DataType) -> Results {
        match (function, result) {
            (Function::Sum, DataType::Int64) => collect::<_, Int64Type>(states, result, |state| {
                i64::try_from(state.total).map_err(|_| out_of_range("bigint out of range"))
            }),
            (Function::Sum, _) => collect::<_, Decimal128Type>(states, result, |state| decimal128(state.total)),
            (Function::Average, _) => collect::<_, Decimal256Type>(states, result, |state| {
                average(i256::from_i128(state.total), argument, state.count)
            }),
        }
    }
}

impl Finish for Decimal128Sum {
    fn finish(states: &[Self], function: Function, argument: &DataType, result: &DataType) -> Results {
        match function {
            Function::Sum => collect::<_, Decimal128Type>(states, result, |state| {
                decimal128(state.total.to_i128().ok_or_else(numeric_overflow)?)
            }),
            Function::Average => collect::<_, Decimal256Type>(states, result, |state| {
                average(state.total.to_i256().ok_or_else(numeric_overflow)?, argument, state.count)
            }),
        }
    }
}

impl Finish for Decimal256Sum {
    fn finish(states: &[Self], function: Function, argument: &DataType, result: &DataType) -> Results {
        collect::<_, Decimal256Type>(states, result, |state| {
            let total = state.total.to_i256().ok_or_else(numeric_overflow)?;
            match function {
                Function::Sum if fits(total) => Ok(total),
                Function::Sum => Err(numeric_overflow()),
                Function::Average => average(total, argument, state.count),
            }
        })
    }
}

impl Finish for FloatSum {
    fn finish(states: &[Self], function: Function, _argument: &DataType, result: &DataType) -> Results {
        let overflow = || out_of_range("value out of range: overflow");
        match (function, result) {
            (Function::Sum, DataType::Float32) => collect::<_, Float32Type>(states, result, |state| {
                let sum = state.sum().ok_or_else(overflow)?;
                let rounded = sum as f32;
                if rounded.is_infinite() && sum.is_finite() { Err(overflow()) } else { Ok(rounded) }
            }),
            (Function::Sum, _) => collect::<_, Float64Type>(states, result, |state| state.sum().ok_or_else(overflow)),
            (Function::Average, _) => collect::<_, Float64Type>(states, result, |state| Ok(state.mean())),
        }
    }
}

impl Finish for IntervalSum {
    fn finish(states: &[Self], function: Function, _argument: &DataType, result: &DataType) -> Results {
        collect::<_, IntervalMonthDayNanoType>(states, result, |state| {
            match function {
                Function::Sum => interval(state.months, state.days, state.nanoseconds),
                Function::Average => average_interval(state),
            }
            .ok_or_else(|| PlanError::new(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range"))
        })
    }
}

/// Checks that a number has at most 38 digits.
fn decimal128(value: i128) -> Result<i128, PlanError> {
    if value.unsigned_abs() < 10u128.pow(38) { Ok(value) } else { Err(numeric_overflow()) }
}

/// `total / count` of values of a type at the scale of quotients.
fn average(total: i256, argument: &DataType, count: i64) -> Result<i256, PlanError> {
    let scale = match argument {
        DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => *scale,
        _ => 0,
    };
    let count = Term { value: i256::from_i128(i128::from(count)), scale: 0, display: Display::Fixed };
    quotient(Term { value: total, scale, display: numeric::display(argument) }, count)
}

fn interval(months: i128, days: i128, nanoseconds: i128) -> Option<IntervalMonthDayNano> {
    Some(IntervalMonthDayNano::new(
        i32::try_from(months).ok()?,
        i32::try_from(days).ok()?,
        i64::try_from(nanoseconds).ok()?,
    ))
}

/// As PostgreSQL divides an interval: fractions of months become days of 30 a month, fractions of days time.
fn average_interval(state: &IntervalSum) -> Option<IntervalMonthDayNano> {
    const DAYS_PER_MONTH: f64 = 30.0;
    const SECONDS_PER_DAY: f64 = 86_400.0;
    let to_micros = |seconds: f64| (seconds * 1e6).round_ties_even() / 1e6;
    let count = i128::from(state.count);
    let (months, mut days) = (state.months / count, state.days / count);
    let factor = state.count as f64;
    let days_of_months = to_micros((state.months % count) as f64 / factor * DAYS_PER_MONTH);
    let mut seconds =
        to_micros(((state.days % count) as f64 / factor + days_of_months - days_of_months.trunc()) * SECONDS_PER_DAY);
    if seconds.abs() >= SECONDS_PER_DAY {
        let carried = (seconds / SECONDS_PER_DAY).trunc();
        days += carried as i128;
        seconds -= carried * SECONDS_PER_DAY;
    }
    days += days_of_months.trunc() as i128;
    let micros = (state.nanoseconds as f64 / 1e3 / factor + seconds * 1e6).round_ties_even();
    interval(months, days, micros as i128 * 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_average_is_the_quotient_of_sum_and_count() {
        let shown = |total: i128, (precision, scale), count| {
            let mut text = String::new();
            let value = average(i256::from_i128(total), &DataType::Decimal128(precision, scale), count).unwrap();
            numeric::write256(value, numeric::QUOTIENT_SCALE, Display::Quotient, &mut text).map(|()| text).unwrap()
        };
        assert_eq!(shown(5, (10, 0), 2), "2.5000000000000000");
        assert_eq!(shown(-20, (10, 0), 3), "-6.6666666666666667");
        assert_eq!(shown(1, (10, 0), 1), "1.00000000000000000000");
        assert_eq!(shown(7, (10, 3), 2), "0.00350000000000000000");
        // Twenty-six digits before the point, and no fewer after it than the values have.
        assert_eq!(shown(3 * (10i128.pow(28) - 2) + 1, (28, 2), 3), "99999999999999999999999999.9800");
    }

    #[test]
    fn an_average_interval_cascades_as_in_postgres() {
        let of = |months, days, nanoseconds, count| {
            let value = average_interval(&IntervalSum { count, months, days, nanoseconds }).unwrap();
            (value.months, value.days, value.nanoseconds)
        };
        assert_eq!(of(1, 0, 0, 2), (0, 15, 0));
        assert_eq!(of(0, 1, 0, 2), (0, 0, 43_200_000_000_000));
        assert_eq!(of(3, 3, 2_000, 2), (1, 16, 43_200_000_001_000));
        assert_eq!(of(0, 0, 1_000, 1), (0, 0, 1_000));
    }
}
