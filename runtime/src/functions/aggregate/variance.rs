//! `variance`: PostgreSQL's other name of `var_samp`.

use datafusion::functions_aggregate::variance::var_samp_udaf;
use datafusion::logical_expr::AggregateUDF;

use crate::functions::{Example, FunctionDef, Implementation};

/// The function.
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "variance",
    forms: &["variance(numeric type) → double precision"],
    text: "The sample variance of the values that are not NULL. `var_samp` is the same.",
    examples: &[Example { query: "SELECT variance(x) FROM (VALUES (1), (2), (3)) AS t(x)", result: "1" }],
    implementation: Implementation::Aggregate(make),
};

fn make() -> AggregateUDF {
    var_samp_udaf().as_ref().clone().with_aliases(["variance"])
}
