//! `sum` as in PostgreSQL.

use datafusion::logical_expr::AggregateUDF;

use super::invertible::Invertible;
use super::results::Function;
use super::udaf::InvertibleFunction;
use crate::functions::{Example, FunctionDef, Implementation};

/// The function.
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "sum",
    forms: &[
        "sum(smallint | integer) → bigint",
        "sum(bigint) → numeric",
        "sum(numeric(p,s)) → numeric(38,s)",
        "sum(real) → real",
        "sum(double precision) → double precision",
        "sum(interval) → interval",
    ],
    text: "The sum of the values that are not NULL; NULL if there are none. Sums of floating-point numbers are exact until \
           they are rounded once, to the nearest number of the type, so they do not depend on the order of rows, and \
           NaN and infinities leave a sum with their rows. A sum that does not fit its type is an error (`22003`). \
           `DISTINCT` and `FILTER` are supported.",
    examples: &[
        Example { query: "SELECT sum(x) FROM (VALUES (1), (2), (NULL)) AS t(x)", result: "3" },
        Example {
            query: "SELECT sum(x) FROM (VALUES (9223372036854775807), (1)) AS t(x)",
            result: "9223372036854775808",
        },
        Example {
            query: "SELECT sum(CAST(x AS double precision)) FROM (VALUES ('1e308'), ('1.5'), ('-1e308')) AS t(x)",
            result: "1.5",
        },
        Example { query: "SELECT sum(DISTINCT x) FROM (VALUES (2), (2), (3)) AS t(x)", result: "5" },
        Example { query: "SELECT sum(x) FILTER (WHERE x > 1) FROM (VALUES (1), (2), (3)) AS t(x)", result: "5" },
    ],
    implementation: Implementation::Aggregate(make),
};

fn make() -> AggregateUDF {
    AggregateUDF::from(InvertibleFunction::new(Invertible::Sum(Function::Sum), &[]))
}
