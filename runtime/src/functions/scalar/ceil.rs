//! `ceil`: rounds to a whole number.

use datafusion::logical_expr::ScalarUDF;

use super::decimals::Direction;
use super::overload::Overloaded;
use super::rounding;
use crate::functions::{Example, FunctionDef, Implementation};

/// The function.
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "ceil",
    forms: &["ceil(number numeric) → numeric", "ceil(number double precision) → double precision"],
    text: "The smallest whole number that is not less than the argument. Of a numeric it is a numeric without a fraction. `ceiling` is the same.",
    examples: &[
        Example { query: "SELECT ceil(arrow_cast('1.25', 'Decimal128(10, 2)'))", result: "2" },
        Example { query: "SELECT ceil(arrow_cast('-1.25', 'Decimal128(10, 2)'))", result: "-1" },
    ],
    implementation: Implementation::Scalar(make),
};

fn make() -> ScalarUDF {
    Overloaded::udf("ceil", &["ceiling"], rounding::choose, |arguments, result| {
        rounding::evaluate(arguments, result, Direction::Up)
    })
}
