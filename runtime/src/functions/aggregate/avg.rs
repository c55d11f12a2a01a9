//! `avg` as in PostgreSQL.

use datafusion::logical_expr::AggregateUDF;

use crate::functions::{FunctionDef, Implementation};

/// The function.
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "avg",
    forms: &[],
    text: "",
    examples: &[],
    implementation: Implementation::Aggregate(make),
};

fn make() -> AggregateUDF {
    AggregateUDF::from(datafusion::functions_aggregate::average::Avg::new())
}
