//! `trunc`: cuts digits off.

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;

use super::decimals::{Direction, decimal_type, digits_of};
use super::overload::{Form, Overloaded};
use super::rounding;
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
    let number = decimal_type(number)?;
    let (_, scale) = digits_of(&number)?;
    // As many digits as are asked for, if that is known and there are so many.
    let kept = rounding::constant_digits(constants);
    let result = match kept {
        Some(kept) => rounding::with_scale(&number, kept.clamp(0, i64::from(scale)) as i8),
        None => number.clone(),
    };
    Some(Form { arguments: vec![number, digits], result })
}

fn evaluate(arguments: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
    rounding::evaluate(arguments, result, Direction::ToZero)
}
