//! `avg` as in PostgreSQL.

use datafusion::logical_expr::AggregateUDF;

use super::invertible::Invertible;
use super::results::Function;
use super::udaf::InvertibleFunction;
use crate::functions::{Example, FunctionDef, Implementation};

/// The function.
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "avg",
    forms: &[
        "avg(smallint | integer | bigint | numeric) → numeric",
        "avg(real | double precision) → double precision",
        "avg(interval) → interval",
    ],
    text: "The mean of the values that are not NULL; NULL if there are none. The mean of exact numbers is rounded half \
           away from zero, to 16 digits after the point or to those of the argument if these are more; where the \
           argument has so many digits before the point that they would not fit, to fewer, but at least 6. The mean of \
           floating-point numbers is their exact sum, rounded, divided by their number. `mean` is another name. \
           `DISTINCT` and `FILTER` are supported.",
    examples: &[
        Example { query: "SELECT avg(x) FROM (VALUES (1), (2), (NULL)) AS t(x)", result: "1.5000000000000000" },
        Example { query: "SELECT avg(x) FROM (VALUES (1), (2), (2)) AS t(x)", result: "1.6666666666666667" },
        Example { query: "SELECT avg(CAST(x AS double precision)) FROM (VALUES (1), (2)) AS t(x)", result: "1.5" },
    ],
    implementation: Implementation::Aggregate(make),
};

fn make() -> AggregateUDF {
    AggregateUDF::from(InvertibleFunction::new(Invertible::Sum(Function::Average), &["mean"]))
}
