//! `max` as in PostgreSQL.

use datafusion::logical_expr::AggregateUDF;

use super::extreme::ExtremeFunction;
use crate::functions::{Example, FunctionDef, Implementation};

/// The function.
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "max",
    forms: &["max(any type with an order) → the same type"],
    text: "The greatest of the values that are not NULL; NULL if there are none. NaN is greater than all other numbers; \
           intervals are compared with months of 30 days and days of 24 hours.",
    examples: &[
        Example { query: "SELECT max(x) FROM (VALUES (2), (NULL), (1)) AS t(x)", result: "2" },
        Example {
            query: "SELECT max(CAST(x AS double precision)) FROM (VALUES ('1.5'), ('NaN')) AS t(x)",
            result: "NaN",
        },
        Example {
            query: "SELECT max(x) FROM (VALUES (interval '1 month'), (interval '29 days')) AS t(x)",
            result: "1 mon",
        },
    ],
    implementation: Implementation::Aggregate(make),
};

fn make() -> AggregateUDF {
    AggregateUDF::from(ExtremeFunction::greatest())
}
