//! What `ceil`, `floor`, `trunc` and `round` share.
//!
//! Of a numeric they give a numeric without a fraction, so one that prints without one. All other numbers are doubles
//! to them, as in PostgreSQL.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array, Int32Array};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int32Type, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use plan::numeric::{self, Display, PLAIN_SCALE};

use super::decimals::{Decimals, Direction, digits_of, of_type, rounded};
use super::overload::{Form, each};

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

/// The whole numbers that decimals or doubles are rounded to.
pub fn evaluate(arguments: &[ArrayRef], result: &DataType, direction: Direction) -> Result<ArrayRef> {
    if result != &DataType::Float64 {
        return to_digits(arguments, result, direction);
    }
    let whole: Float64Array = arguments[0].as_primitive::<Float64Type>().unary(|value| match direction {
        Direction::Nearest => value.round_ties_even(),
        Direction::Up => value.ceil(),
        Direction::Down => value.floor(),
        Direction::ToZero => value.trunc(),
    });
    Ok(Arc::new(whole))
}

/// Decimals with as many digits after the point as the second argument says, or none.
pub fn to_digits(arguments: &[ArrayRef], result: &DataType, direction: Direction) -> Result<ArrayRef> {
    let (numbers, digits) = (Decimals::new(&arguments[0])?, arguments.get(1).map(digits));
    let scale = digits_of(result).map_or(0, |(_, scale)| scale);
    let values = each(arguments, |row| {
        let digits = digits.as_ref().map_or(0, |digits| digits.value(row));
        rounded(numbers.term(row), digits, scale, direction).map(Some)
    })?;
    of_type(values, result)
}
