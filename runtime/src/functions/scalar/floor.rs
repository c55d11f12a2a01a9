//! `floor`: rounds to a whole number.

use datafusion::logical_expr::ScalarUDF;

use super::decimals::Direction;
use super::overload::Overloaded;
use super::rounding;
use crate::functions::{Example, FunctionDef, Implementation};

/// The function.
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "floor",
    forms: &["floor(number numeric) → numeric", "floor(number double precision) → double precision"],
    text: "The greatest whole number that is not greater than the argument. Of a numeric it is a numeric without a fraction.",
    examples: &[
        Example { query: "SELECT floor(arrow_cast('1.25', 'Decimal128(10, 2)'))", result: "1" },
        Example { query: "SELECT floor(arrow_cast('-1.25', 'Decimal128(10, 2)'))", result: "-2" },
    ],
    implementation: Implementation::Scalar(make),
};

fn make() -> ScalarUDF {
    Overloaded::udf("floor", &[], rounding::choose, |arguments, result| {
        rounding::evaluate(arguments, result, Direction::Down)
    })
}
