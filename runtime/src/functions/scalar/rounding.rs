//! What `ceil`, `floor` and `trunc` share.
//!
//! Of a numeric they give a numeric without a fraction, so one that prints without one. All other numbers are doubles
//! to them, as in PostgreSQL.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Decimal128Array, Decimal256Array, Float64Array, Int32Array};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Float64Type, Int32Type, Int64Type, i256};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use plan::SqlState;
use plan::numeric::{self, Display, PLAIN_SCALE};

use super::overload::{Form, error};
use crate::functions::quotient::power256;

/// Which whole number is taken for a fraction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The next above.
    Up,
    /// The next below.
    Down,
    /// The next towards zero.
    ToZero,
}

/// The form for one number.
pub fn choose(arguments: &[DataType], _constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let [number] = arguments else { return None };
    let result = match number {
        DataType::Decimal128(_, _) | DataType::Decimal256(_, _) => with_scale(number, 0),
        number if number.is_numeric() || number == &DataType::Null => DataType::Float64,
        _ => return None,
    };
    let argument = if result == DataType::Float64 { DataType::Float64 } else { number.clone() };
    Some(Form { arguments: vec![argument], result })
}

/// The decimal type with as many digits before the point (and one for rounding up), and so many after it.
pub fn with_scale(number: &DataType, scale: i8) -> DataType {
    let widened = |precision: u8, old: i8, most: u8| {
        let digits = i16::from(precision) - i16::from(old) + 1 + i16::from(scale);
        digits.clamp(1, i16::from(most)) as u8
    };
    if numeric::display(number) != Display::Fixed && scale < PLAIN_SCALE && matches!(number, DataType::Decimal256(..)) {
        // What was computed seldom has as many digits before the point as there is room for.
        return DataType::Decimal128(38, scale);
    }
    match number {
        DataType::Decimal128(precision, old) => DataType::Decimal128(widened(*precision, *old, 38), scale),
        DataType::Decimal256(precision, old) => DataType::Decimal256(widened(*precision, *old, 76), scale),
        other => other.clone(),
    }
}

/// The type of a number of digits. A bigint may be a constant, by which the type of the result is chosen; what is no constant
/// is an integer, so that the type stays when a value takes its place.
pub fn digits_type(digits: &DataType) -> Option<DataType> {
    match digits {
        DataType::Int64 => Some(DataType::Int64),
        digits if digits.is_integer() || digits == &DataType::Null => Some(DataType::Int32),
        _ => None,
    }
}

/// How many digits are asked for, if that decides the type of the result.
pub fn constant_digits(constants: &[Option<&ScalarValue>]) -> Option<i64> {
    match constants.get(1).copied().flatten() {
        Some(ScalarValue::Int64(Some(digits))) => Some(*digits),
        _ => None,
    }
}

/// Numbers of digits of a type of [`digits_type`].
pub fn digits(array: &ArrayRef) -> Int32Array {
    match array.data_type() {
        DataType::Int64 => array
            .as_primitive::<Int64Type>()
            .unary(|digits| digits.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32),
        _ => array.as_primitive::<Int32Type>().clone(),
    }
}

/// Rounds decimals or doubles in a direction.
pub fn evaluate(numbers: &ArrayRef, result: &DataType, direction: Direction) -> Result<ArrayRef> {
    match (numbers.data_type(), result) {
        (DataType::Decimal128(_, from), DataType::Decimal128(precision, to)) => {
            let unit = power128(i32::from(*from) - i32::from(*to))?;
            let rounded: Decimal128Array = numbers
                .as_primitive::<Decimal128Type>()
                .unary(|value| value.div_euclid(unit) + i128::from(steps_up(value < 0, value % unit != 0, direction)));
            Ok(Arc::new(rounded.with_precision_and_scale(*precision, *to)?))
        }
        (DataType::Decimal256(_, from), DataType::Decimal128(precision, to)) => {
            let wide = DataType::Decimal256(*precision + 1, *to);
            narrowed(&evaluate_wide(numbers, *from, &wide, direction)?, result)
        }
        (DataType::Decimal256(_, from), DataType::Decimal256(..)) => evaluate_wide(numbers, *from, result, direction),
        _ => {
            let rounded: Float64Array = numbers.as_primitive::<Float64Type>().unary(|value| match direction {
                Direction::Up => value.ceil(),
                Direction::Down => value.floor(),
                Direction::ToZero => value.trunc(),
            });
            Ok(Arc::new(rounded))
        }
    }
}

fn evaluate_wide(numbers: &ArrayRef, from: i8, result: &DataType, direction: Direction) -> Result<ArrayRef> {
    let DataType::Decimal256(precision, to) = result else { return Err(out_of_range()) };
    let unit = power256(i32::from(from) - i32::from(*to)).ok_or_else(out_of_range)?;
    let rounded: Decimal256Array = numbers.as_primitive::<Decimal256Type>().unary(|value| {
        let remainder = value.wrapping_rem(unit);
        let below = value.wrapping_div(unit).wrapping_sub(i256::from(i8::from(remainder < i256::ZERO)));
        below.wrapping_add(i256::from(steps_up(value < i256::ZERO, remainder != i256::ZERO, direction)))
    });
    Ok(Arc::new(rounded.with_precision_and_scale(*precision, *to)?))
}

/// Wide numbers in a narrow type of the same scale.
pub fn narrowed(numbers: &ArrayRef, result: &DataType) -> Result<ArrayRef> {
    let DataType::Decimal128(precision, _) = result else { return Ok(numbers.clone()) };
    let limit = 10_u128.pow(u32::from(*precision));
    let wide = numbers.as_primitive::<Decimal256Type>().iter();
    let narrow = wide.map(|value| match value.map(i256::to_i128) {
        None => Ok(None),
        Some(Some(value)) if value.unsigned_abs() < limit => Ok(Some(value)),
        Some(_) => Err(out_of_range()),
    });
    Ok(Arc::new(narrow.collect::<Result<Decimal128Array>>()?.with_data_type(result.clone())))
}

/// 1 if the number above is taken and not the one below.
fn steps_up(negative: bool, fraction: bool, direction: Direction) -> i8 {
    let up = match direction {
        Direction::Up => true,
        Direction::Down => false,
        Direction::ToZero => negative,
    };
    i8::from(fraction && up)
}

fn out_of_range() -> DataFusionError {
    error(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
}

fn power128(exponent: i32) -> Result<i128> {
    u32::try_from(exponent).ok().and_then(|exponent| 10_i128.checked_pow(exponent)).ok_or_else(out_of_range)
}
