//! Decimals of either width, row by row: what the operators of numeric share with the functions that round.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Decimal256Array};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, i256};
use datafusion::error::{DataFusionError, Result};
use plan::numeric::{self, Display};
use plan::{PlanError, SqlState};

use super::overload::error;
use crate::functions::aggregate::results::numeric_overflow;
use crate::functions::quotient::{Term, divided_rounded, power256};

/// The decimal type of a number that is exact, which may be an integer.
pub fn decimal_type(number: &DataType) -> Option<DataType> {
    Some(match number {
        DataType::Decimal128(..) | DataType::Decimal256(..) => number.clone(),
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => DataType::Decimal128(5, 0),
        DataType::UInt16 | DataType::Int32 => DataType::Decimal128(10, 0),
        DataType::UInt32 | DataType::Int64 => DataType::Decimal128(19, 0),
        DataType::UInt64 => DataType::Decimal128(20, 0),
        DataType::Null => numeric::PLAIN,
        _ => return None,
    })
}

/// Precision and scale of a decimal type.
pub fn digits_of(data_type: &DataType) -> Option<(u8, i8)> {
    match data_type {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => Some((*precision, *scale)),
        _ => None,
    }
}

/// Numbers of a column.
pub struct Decimals<'a> {
    values: Values<'a>,
    scale: i8,
    display: Display,
}

enum Values<'a> {
    Narrow(&'a Decimal128Array),
    Wide(&'a Decimal256Array),
}

impl<'a> Decimals<'a> {
    /// Of an array of a decimal type.
    pub fn new(array: &'a ArrayRef) -> Result<Self> {
        let (values, scale) = match array.data_type() {
            DataType::Decimal128(_, scale) => (Values::Narrow(array.as_primitive::<Decimal128Type>()), *scale),
            DataType::Decimal256(_, scale) => (Values::Wide(array.as_primitive::<Decimal256Type>()), *scale),
            other => return Err(external(PlanError::internal(format!("{other} is no numeric")))),
        };
        Ok(Decimals { values, scale, display: numeric::display(array.data_type()) })
    }

    /// Digits after the point.
    pub fn scale(&self) -> i8 {
        self.scale
    }

    /// The digits of a row as an integer; any if it is NULL.
    pub fn value(&self, row: usize) -> i256 {
        match self.values {
            Values::Narrow(array) => i256::from_i128(array.value(row)),
            Values::Wide(array) => array.value(row),
        }
    }

    /// The number of a row.
    pub fn term(&self, row: usize) -> Term<i256> {
        Term { value: self.value(row), scale: self.scale, display: self.display }
    }
}

/// Numbers in units of a decimal type's scale as an array of that type.
///
/// # Errors
/// If one has more digits than the type.
pub fn of_type(values: Vec<Option<i256>>, data_type: &DataType) -> Result<ArrayRef> {
    let limit = digits_of(data_type).and_then(|(precision, _)| power256(i32::from(precision)));
    let fits = |value: &i256| limit.is_some_and(|limit| *value < limit && *value > limit.wrapping_neg());
    if !values.iter().flatten().all(fits) {
        return Err(overflow());
    }
    Ok(match data_type {
        DataType::Decimal128(..) => {
            // Below the limit of the type, so they fit.
            let values = values.into_iter().map(|value| value.and_then(i256::to_i128));
            Arc::new(values.collect::<Decimal128Array>().with_data_type(data_type.clone()))
        }
        _ => Arc::new(values.into_iter().collect::<Decimal256Array>().with_data_type(data_type.clone())),
    })
}

/// Which number of fewer digits is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// The nearest; of two the one farther from zero.
    Nearest,
    /// The next above.
    Up,
    /// The next below.
    Down,
    /// The next towards zero.
    ToZero,
}

/// A number with so many digits after the point (below zero: before it), in units of another scale.
///
/// # Errors
/// If there is no room for its digits.
pub fn rounded(number: Term<i256>, digits: i32, scale: i8, direction: Direction) -> Result<i256> {
    let dropped = i32::from(number.scale).saturating_sub(digits).max(0);
    let (kept, dropped) = match power256(dropped) {
        Some(unit) => (divided(number.value, unit, direction), dropped),
        // Greater than twice any number.
        None => (i256::ZERO, 0),
    };
    let shift = i32::from(scale) - i32::from(number.scale) + dropped;
    let power = power256(shift.abs()).ok_or_else(overflow)?;
    if shift < 0 { Ok(kept.wrapping_div(power)) } else { kept.checked_mul(power).ok_or_else(overflow) }
}

/// The quotient without a fraction; the divisor is above 0.
fn divided(dividend: i256, divisor: i256, direction: Direction) -> i256 {
    if direction == Direction::Nearest {
        return divided_rounded(dividend, divisor);
    }
    let (quotient, rest) = (dividend.wrapping_div(divisor), dividend.wrapping_rem(divisor));
    match direction {
        Direction::Up if rest > i256::ZERO => quotient.wrapping_add(i256::ONE),
        Direction::Down if rest < i256::ZERO => quotient.wrapping_sub(i256::ONE),
        _ => quotient,
    }
}

/// The error of a number that does not fit.
pub fn overflow() -> DataFusionError {
    external(numeric_overflow())
}

/// The error of a division by zero.
pub fn division_by_zero() -> DataFusionError {
    error(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// An error on its way through DataFusion.
pub fn external(error: PlanError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directions() {
        let of = |value: i128, digits, direction| {
            let number = Term { value: i256::from_i128(value), scale: 2, display: Display::Fixed };
            rounded(number, digits, 2, direction).unwrap().to_i128().unwrap()
        };
        use Direction::{Down, Nearest, ToZero, Up};
        assert_eq!([Nearest, Up, Down, ToZero].map(|direction| of(-150, 0, direction)), [-200, -100, -200, -100]);
        assert_eq!([Nearest, Up, Down, ToZero].map(|direction| of(149, 0, direction)), [100, 200, 100, 100]);
        assert_eq!([Nearest, Up, Down, ToZero].map(|direction| of(300, 0, direction)), [300; 4]);
        assert_eq!([of(12_345, 1, Nearest), of(12_345, -2, Nearest), of(12_345, -90, ToZero)], [12_350, 10_000, 0]);
        assert_eq!(of(12_345, 9, ToZero), 12_345);
    }

    #[test]
    fn what_has_too_many_digits_is_an_error() {
        let values = vec![Some(i256::from_i128(99)), None, Some(i256::from_i128(-100))];
        assert!(of_type(values.clone(), &DataType::Decimal128(2, 0)).is_err());
        assert_eq!(of_type(values, &DataType::Decimal256(3, 1)).unwrap().null_count(), 1);
        let wide = Term { value: power256(75).unwrap(), scale: 0, display: Display::Fixed };
        assert!(rounded(wide, 0, 2, Direction::Nearest).is_err());
    }
}
