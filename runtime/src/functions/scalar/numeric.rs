//! The operators of numeric, as functions: `+ - * / %` and the types of their results.
//!
//! Arrow's decimals have one scale a type, and a product or quotient of two types may have none that is exact. Where all
//! digits of the result fit they are kept, in the narrow type as long as that leaves enough digits before the point; beyond that
//! the last digits are rounded. See [`plan::numeric`] for what is shown.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::kernels::numeric as kernels;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, i256};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use plan::numeric::{self, DECLARED_PRECISION_MAX, Display, PLAIN_SCALE, QUOTIENT, QUOTIENT_SCALE, WIDE_PRECISION};
use plan::{PlanError, SqlState};

use super::decimals::{Decimals, decimal_type, digits_of, external, of_type, overflow};
use super::overload::{Form, Overloaded, each};
use crate::functions::aggregate::big::Big;
use crate::functions::aggregate::results::numeric_overflow;
use crate::functions::quotient::{Term, divided_rounded, power256, quotient};
use crate::functions::{Example, FunctionDef, Implementation};

/// Digits of the narrow type.
const NARROW_PRECISION: i16 = 38;

/// Digits before the point that a computed narrow type has at least.
const WHOLE_MIN: i16 = 20;

/// `+`
pub static ADD: FunctionDef = FunctionDef {
    name: "numeric_add",
    forms: &["numeric_add(left numeric, right numeric) → numeric"],
    text: "The operator `+` of numeric, with the digits after the point of the operand that has more of them.",
    examples: &[Example {
        query: "SELECT numeric_add(arrow_cast('1.50', 'Decimal128(10, 2)'), arrow_cast('2', 'Decimal128(10, 0)'))",
        result: "3.50",
    }],
    implementation: Implementation::Scalar(|| {
        Overloaded::operator("numeric_add", "+", choose::<ADDITION>, evaluate::<ADDITION>)
    }),
};

/// `-`
pub static SUBTRACT: FunctionDef = FunctionDef {
    name: "numeric_sub",
    forms: &["numeric_sub(left numeric, right numeric) → numeric"],
    text: "The operator `-` of numeric, with the digits after the point of the operand that has more of them.",
    examples: &[Example {
        query: "SELECT numeric_sub(arrow_cast('1.50', 'Decimal128(10, 2)'), arrow_cast('2', 'Decimal128(10, 0)'))",
        result: "-0.50",
    }],
    implementation: Implementation::Scalar(|| {
        Overloaded::operator("numeric_sub", "-", choose::<SUBTRACTION>, evaluate::<SUBTRACTION>)
    }),
};

/// `*`
pub static MULTIPLY: FunctionDef = FunctionDef {
    name: "numeric_mul",
    forms: &["numeric_mul(left numeric, right numeric) → numeric"],
    text: "The operator `*` of numeric, with as many digits after the point as both operands have together.",
    examples: &[Example {
        query: "SELECT numeric_mul(arrow_cast('1.50', 'Decimal128(10, 2)'), arrow_cast('0.5', 'Decimal128(2, 1)'))",
        result: "0.750",
    }],
    implementation: Implementation::Scalar(|| {
        Overloaded::operator("numeric_mul", "*", choose::<MULTIPLICATION>, evaluate::<MULTIPLICATION>)
    }),
};

/// `/`
pub static DIVIDE: FunctionDef = FunctionDef {
    name: "numeric_div",
    forms: &["numeric_div(left numeric, right numeric) → numeric"],
    text: "The operator `/` of numeric, with 16 significant digits at least.",
    examples: &[
        Example {
            query: "SELECT numeric_div(arrow_cast('2', 'Decimal128(10, 0)'), arrow_cast('3', 'Decimal128(10, 0)'))",
            result: "0.66666666666666666667",
        },
        Example {
            query: "SELECT numeric_div(arrow_cast('7', 'Decimal128(10, 0)'), arrow_cast('2', 'Decimal128(10, 0)'))",
            result: "3.5000000000000000",
        },
    ],
    implementation: Implementation::Scalar(|| {
        Overloaded::operator("numeric_div", "/", choose::<DIVISION>, evaluate::<DIVISION>)
    }),
};

/// `%`
pub static REMAINDER: FunctionDef = FunctionDef {
    name: "numeric_mod",
    forms: &["numeric_mod(left numeric, right numeric) → numeric"],
    text: "The operator `%` of numeric: what is left of a division of whole numbers, with the sign of the dividend.",
    examples: &[Example {
        query: "SELECT numeric_mod(arrow_cast('-7.5', 'Decimal128(10, 1)'), arrow_cast('2', 'Decimal128(10, 0)'))",
        result: "-1.5",
    }],
    implementation: Implementation::Scalar(|| {
        Overloaded::operator("numeric_mod", "%", choose::<MODULO>, evaluate::<MODULO>)
    }),
};

// Which operator: functions are told apart by types, not by values.
const ADDITION: usize = 0;
const SUBTRACTION: usize = 1;
const MULTIPLICATION: usize = 2;
const DIVISION: usize = 3;
const MODULO: usize = 4;

fn choose<const OP: usize>(types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let [left, right] = types else { return None };
    let (left, right) = (decimal_type(left)?, decimal_type(right)?);
    let result = result(OP, &left, &right)?;
    Some(Form { arguments: vec![left, right], result })
}

/// The type of an operator's result.
fn result(operator: usize, left: &DataType, right: &DataType) -> Option<DataType> {
    let digits = |side| digits_of(side).map(|(precision, scale)| (i16::from(precision), i16::from(scale)));
    let ((left_precision, left_scale), (right_precision, right_scale)) = (digits(left)?, digits(right)?);
    let (left_whole, right_whole) = (left_precision - left_scale, right_precision - right_scale);
    let displays = [numeric::display(left), numeric::display(right)];
    let (whole, scale) = match operator {
        ADDITION | SUBTRACTION => (left_whole.max(right_whole) + 1, left_scale.max(right_scale)),
        MULTIPLICATION => (left_whole + right_whole, left_scale + right_scale),
        DIVISION => return Some(QUOTIENT),
        _ => (left_whole.min(right_whole), left_scale.max(right_scale)),
    };
    if displays.contains(&Display::Quotient) {
        return Some(QUOTIENT);
    }
    let wide = [left, right].into_iter().any(|side| matches!(side, DataType::Decimal256(..)));
    if displays.contains(&Display::Trimmed) {
        let keeps_plain = operator != MULTIPLICATION && scale <= i16::from(PLAIN_SCALE) && !wide;
        let scale = scale.min(i16::from(QUOTIENT_SCALE) - 1) as i8;
        return Some(if keeps_plain { numeric::PLAIN } else { DataType::Decimal256(WIDE_PRECISION, scale) });
    }
    Some(computed(whole.max(0), scale, wide))
}

/// The type with so many digits before and after the point, or the nearest that there is.
fn computed(whole: i16, scale: i16, wide: bool) -> DataType {
    let precision = (whole + scale).max(1);
    if !wide && (precision <= NARROW_PRECISION || NARROW_PRECISION - scale >= WHOLE_MIN) {
        let narrow = DataType::Decimal128(precision.min(NARROW_PRECISION) as u8, scale as i8);
        return match numeric::display(&narrow) {
            Display::Fixed => narrow,
            // That type stands for a numeric without a scale.
            _ => DataType::Decimal128(NARROW_PRECISION as u8 - 1, scale as i8),
        };
    }
    let most = i16::from(DECLARED_PRECISION_MAX);
    DataType::Decimal256(precision.min(most) as u8, scale.min(most - WHOLE_MIN) as i8)
}

fn evaluate<const OP: usize>(arguments: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
    let [left, right] = arguments else { return Err(external(PlanError::internal("an operator has two operands"))) };
    if let Some(narrow) = narrow(OP, left, right, result)? {
        return Ok(narrow);
    }
    let (left, right) = (Decimals::new(left)?, Decimals::new(right)?);
    let target = digits_of(result).map_or(0, |(_, scale)| scale);
    let values =
        each(arguments, |row| row_value(OP, left.term(row), right.term(row), target).map(Some).map_err(external))?;
    of_type(values, result)
}

/// The result by Arrow's kernels, where operands and result are narrow and no digit is lost.
fn narrow(operator: usize, left: &ArrayRef, right: &ArrayRef, result: &DataType) -> Result<Option<ArrayRef>> {
    let (DataType::Decimal128(..), DataType::Decimal128(..), DataType::Decimal128(precision, scale)) =
        (left.data_type(), right.data_type(), result)
    else {
        return Ok(None);
    };
    let computed = match operator {
        ADDITION => kernels::add(left, right),
        SUBTRACTION => kernels::sub(left, right),
        MULTIPLICATION => kernels::mul(left, right),
        _ => return Ok(None),
    };
    let computed = computed.map_err(|_| overflow())?;
    if !matches!(computed.data_type(), DataType::Decimal128(_, kept) if kept == scale) {
        return Ok(None);
    }
    let computed = computed.as_primitive::<Decimal128Type>();
    let limit = 10_u128.pow(u32::from(*precision));
    let fits = |row: usize| computed.is_null(row) || computed.value(row).unsigned_abs() < limit;
    if !(0..computed.len()).all(fits) {
        return Err(overflow());
    }
    Ok(Some(Arc::new(computed.clone().with_data_type(result.clone()))))
}

/// The result of one row at a scale.
fn row_value(operator: usize, left: Term<i256>, right: Term<i256>, target: i8) -> std::result::Result<i256, PlanError> {
    match operator {
        ADDITION | SUBTRACTION => {
            let (left, right) = (at_scale(left, target)?, at_scale(right, target)?);
            let sum = if operator == ADDITION { left.checked_add(right) } else { left.checked_sub(right) };
            sum.ok_or_else(numeric_overflow)
        }
        MULTIPLICATION => product(left, right, target),
        _ if right.value == i256::ZERO => Err(PlanError::new(SqlState::DIVISION_BY_ZERO, "division by zero")),
        DIVISION => quotient(left, right),
        _ => {
            let scale = left.scale.max(right.scale);
            let (dividend, divisor) = (at_scale(left, scale)?, at_scale(right, scale)?);
            at_scale(Term { value: dividend.wrapping_rem(divisor), scale, display: Display::Fixed }, target)
        }
    }
}

/// A number at another scale, rounded half away from zero.
pub fn at_scale(number: Term<i256>, target: i8) -> std::result::Result<i256, PlanError> {
    let shift = i32::from(target) - i32::from(number.scale);
    let power = power256(shift.abs()).ok_or_else(numeric_overflow)?;
    match shift {
        0 => Ok(number.value),
        1.. => number.value.checked_mul(power).ok_or_else(numeric_overflow),
        _ => Ok(divided_rounded(number.value, power)),
    }
}

fn product(left: Term<i256>, right: Term<i256>, target: i8) -> std::result::Result<i256, PlanError> {
    let dropped = i32::from(left.scale) + i32::from(right.scale) - i32::from(target);
    let shift = |value: Option<i256>| {
        let power = power256(dropped.abs())?;
        if dropped < 0 { value?.checked_mul(power) } else { Some(divided_rounded(value?, power)) }
    };
    if let Some(product) = shift(left.value.checked_mul(right.value)) {
        return Ok(product);
    }
    let product = Big::from_i256(left.value).times(&Big::from_i256(right.value));
    let power = Big::power_of_ten(dropped.unsigned_abs());
    let product = if dropped < 0 { product.times(&power) } else { product.divided_rounded(&power) };
    product.to_i256().ok_or_else(numeric_overflow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_room() {
        let of = |operator, left: (u8, i8), right: (u8, i8)| {
            let narrow = |(precision, scale)| DataType::Decimal128(precision, scale);
            result(operator, &narrow(left), &narrow(right)).unwrap()
        };
        assert_eq!(of(ADDITION, (10, 2), (5, 3)), DataType::Decimal128(12, 3));
        assert_eq!(of(MULTIPLICATION, (15, 2), (3, 2)), DataType::Decimal128(18, 4));
        // More digits than there are, but enough before the point.
        assert_eq!(of(MULTIPLICATION, (33, 4), (16, 2)), DataType::Decimal128(38, 6));
        assert_eq!(of(MULTIPLICATION, (20, 8), (20, 8)), DataType::Decimal128(37, 16));
        assert_eq!(of(MULTIPLICATION, (38, 20), (10, 2)), DataType::Decimal256(48, 22));
        assert_eq!(of(MULTIPLICATION, (38, 38), (38, 38)), DataType::Decimal256(75, 55));
        assert_eq!(of(ADDITION, (38, 16), (10, 2)), numeric::PLAIN);
        assert_eq!(of(MULTIPLICATION, (38, 16), (38, 16)), DataType::Decimal256(76, 32));
        assert_eq!(of(DIVISION, (10, 2), (10, 2)), QUOTIENT);
    }

    #[test]
    fn products_of_many_digits_are_rounded() {
        let term = |value: i256, scale| Term { value, scale, display: Display::Fixed };
        let third = power256(38).unwrap().wrapping_div(i256::from_i128(3));
        let square = product(term(third, 38), term(third, 38), 38).unwrap();
        assert_eq!(square.to_string(), "11111111111111111111111111111111111111");
        // Through integers of any size.
        let large = power256(70).unwrap();
        assert_eq!(product(term(large, 38), term(large, 66), 38).unwrap(), power256(74).unwrap());
        assert!(product(term(large, 0), term(large, 0), 38).is_err());
    }
}
