//! `trunc`: cuts digits off.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Decimal256Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, i256};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;

use super::overload::{Form, Overloaded, each};
use super::rounding::{self, Direction};
use crate::functions::quotient::power256;
use crate::functions::{Example, FunctionDef, Implementation};

/// The function.
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "trunc",
    forms: &[
        "trunc(number numeric) → numeric",
        "trunc(number numeric, digits integer) → numeric",
        "trunc(number double precision) → double precision",
    ],
    text: "The number without its fraction, or with so many digits after the point; with a negative count, digits \
           before the point become zero.",
    examples: &[
        Example { query: "SELECT trunc(arrow_cast('-1.75', 'Decimal128(10, 2)'))", result: "-1" },
        Example { query: "SELECT trunc(arrow_cast('1.75', 'Decimal128(10, 2)'), 1)", result: "1.7" },
        Example { query: "SELECT trunc(arrow_cast('175.5', 'Decimal128(10, 2)'), -1)", result: "170" },
    ],
    implementation: Implementation::Scalar(make),
};

fn make() -> ScalarUDF {
    Overloaded::udf("trunc", &[], choose, evaluate)
}

fn choose(arguments: &[DataType], constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let [number, digits] = arguments else { return rounding::choose(arguments, constants) };
    let digits = rounding::digits_type(digits)?;
    let number = match number {
        DataType::Decimal128(_, _) | DataType::Decimal256(_, _) => number.clone(),
        number if number.is_integer() || number == &DataType::Null => DataType::Decimal128(38, 0),
        _ => return None,
    };
    let (DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale)) = number else { return None };
    // As many digits as are asked for, if that is known and there are so many.
    let kept = rounding::constant_digits(constants);
    let result = match kept {
        Some(kept) => rounding::with_scale(&number, kept.clamp(0, i64::from(scale)) as i8),
        None => number.clone(),
    };
    Some(Form { arguments: vec![number, digits], result })
}

fn evaluate(arguments: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
    let Some(digits) = arguments.get(1) else {
        return rounding::evaluate(&arguments[0], result, Direction::ToZero);
    };
    if let DataType::Decimal256(_, from) = arguments[0].data_type() {
        return cut_wide(arguments, *from, result);
    }
    let (numbers, digits) = (arguments[0].as_primitive::<Decimal128Type>(), rounding::digits(digits));
    let scale = i32::from(numbers.scale());
    let cut: Decimal128Array = numbers
        .iter()
        .zip(&digits)
        .map(|pair| {
            let (value, digits) = (pair.0?, pair.1?);
            let dropped = scale.saturating_sub(digits);
            if dropped <= 0 {
                return Some(value);
            }
            // A power that does not fit is greater than any value.
            match u32::try_from(dropped).ok().and_then(|dropped| 10_i128.checked_pow(dropped)) {
                Some(unit) => Some(value - value % unit),
                None => Some(0),
            }
        })
        .collect();
    let cut: ArrayRef = Arc::new(cut.with_precision_and_scale(numbers.precision(), numbers.scale())?);
    Ok(if cut.data_type() == result { cut } else { cast(&cut, result)? })
}

/// The same for wide numbers.
fn cut_wide(arguments: &[ArrayRef], from: i8, result: &DataType) -> Result<ArrayRef> {
    let (DataType::Decimal128(_, to) | DataType::Decimal256(_, to)) = result else { return Ok(arguments[0].clone()) };
    let (numbers, digits) = (arguments[0].as_primitive::<Decimal256Type>(), rounding::digits(&arguments[1]));
    let unit_of_scale = power256(i32::from(from) - i32::from(*to)).unwrap_or(i256::ONE);
    let cut = each(arguments, |row| {
        let (value, dropped) = (numbers.value(row), i32::from(from).saturating_sub(digits.value(row)).max(0));
        // A power that does not fit is greater than any value.
        let kept = power256(dropped).map_or(i256::ZERO, |unit| value.wrapping_sub(value.wrapping_rem(unit)));
        Ok(Some(kept.wrapping_div(unit_of_scale)))
    })?;
    let cut = cut.into_iter().collect::<Decimal256Array>();
    match result {
        DataType::Decimal128(..) => rounding::narrowed(&(Arc::new(cut) as ArrayRef), result),
        _ => Ok(Arc::new(cut.with_data_type(result.clone()))),
    }
}
