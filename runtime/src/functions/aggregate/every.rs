//! `every`: PostgreSQL's other name of `bool_and`.

use datafusion::functions_aggregate::bool_and_or::bool_and_udaf;
use datafusion::logical_expr::AggregateUDF;

use crate::functions::{Example, FunctionDef, Implementation};

/// The function.
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "every",
    forms: &["every(boolean) → boolean"],
    text: "Whether no value is false, among those that are not NULL; NULL if there are none. `bool_and` is the same.",
    examples: &[Example { query: "SELECT every(x > 0) FROM (VALUES (1), (NULL), (2)) AS t(x)", result: "t" }],
    implementation: Implementation::Aggregate(make),
};

fn make() -> AggregateUDF {
    bool_and_udaf().as_ref().clone().with_aliases(["every"])
}
