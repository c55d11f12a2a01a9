//! Functions that are ours: what DataFusion lacks, and what it computes otherwise than PostgreSQL.
//!
//! [`FUNCTIONS`] is the one list. Registration with DataFusion, the reference page ([`page`]) and the tests that run
//! the examples are derived from it. A function lives in one file: signature, text, examples and evaluation.
//!
//! Aggregates keep exact, retractable state: the same accumulation serves a query (DataFusion's accumulators) and a
//! view (`crate::operators::aggregate`), so that both show the same digits whatever the order of rows.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};

pub mod aggregate;
mod excluding;
pub mod page;
mod quotient;
pub mod scalar;
pub mod session;
#[cfg(test)]
mod tests;

/// A function: what users read about it, and how it is made.
#[derive(Debug)]
pub struct FunctionDef {
    /// Name in SQL.
    pub name: &'static str,
    /// How it is called, one line a form, with the type of the result.
    pub forms: &'static [&'static str],
    /// What it computes, in sentences of markdown.
    pub text: &'static str,
    /// Examples, which run as tests.
    pub examples: &'static [Example],
    /// Makes it.
    pub implementation: Implementation,
}

/// An expression or query, and what it gives.
#[derive(Debug)]
pub struct Example {
    /// A SELECT with one row and one column.
    pub query: &'static str,
    /// The value as PostgreSQL prints it.
    pub result: &'static str,
}

/// How DataFusion gets the function.
#[derive(Debug, Clone, Copy)]
pub enum Implementation {
    /// One value a row.
    Scalar(fn() -> ScalarUDF),
    /// One value a group.
    Aggregate(fn() -> AggregateUDF),
    /// One value a row, of it and the rows of its partition.
    Window(fn() -> WindowUDF),
}

/// All functions, in the order of the reference page.
pub const FUNCTIONS: &[&FunctionDef] = &[
    &scalar::tumble_start::DEFINITION,
    &scalar::tumble_end::DEFINITION,
    &scalar::hop_starts::DEFINITION,
    &scalar::cumulate_ends::DEFINITION,
    &scalar::to_char::DEFINITION,
    &scalar::to_date::DEFINITION,
    &scalar::to_timestamp::DEFINITION,
    &scalar::timezone::DEFINITION,
    &scalar::numeric::ADD,
    &scalar::numeric::SUBTRACT,
    &scalar::numeric::MULTIPLY,
    &scalar::numeric::DIVIDE,
    &scalar::numeric::REMAINDER,
    &scalar::ceil::DEFINITION,
    &scalar::floor::DEFINITION,
    &scalar::trunc::DEFINITION,
    &scalar::numbers::SIGN,
    &scalar::numbers::DIV,
    &scalar::numbers::WIDTH_BUCKET,
    &scalar::numbers::SCALE,
    &scalar::numbers::MIN_SCALE,
    &scalar::numbers::FACTORIAL,
    &scalar::numbers::TO_HEX,
    &scalar::numbers::ROUND,
    &scalar::calendar::AGE,
    &scalar::calendar::JUSTIFY_DAYS,
    &scalar::calendar::JUSTIFY_HOURS,
    &scalar::calendar::JUSTIFY_INTERVAL,
    &scalar::calendar::IS_FINITE,
    &scalar::calendar::OVERLAPS,
    &scalar::calendar::FIELD,
    &scalar::calendar::EPOCH,
    &scalar::date_trunc::DEFINITION,
    &scalar::make::DATE,
    &scalar::make::TIME,
    &scalar::make::TIMESTAMP,
    &scalar::make::TIMESTAMPTZ,
    &scalar::make::INTERVAL,
    &scalar::text::FORMAT,
    &scalar::text::QUOTE_LITERAL,
    &scalar::text::QUOTE_NULLABLE,
    &scalar::text::CONCAT,
    &scalar::text::CONCAT_WS,
    &scalar::text::NULLS,
    &scalar::text::NON_NULLS,
    &scalar::text::GET_BYTE,
    &scalar::text::CONVERT_FROM,
    &scalar::text::CONVERT_TO,
    &scalar::patterns::SPLIT,
    &scalar::patterns::MATCHES,
    &scalar::patterns::SUBSTRING,
    &scalar::patterns::SUBSTR,
    &scalar::arrays::DIMS,
    &scalar::arrays::FILL,
    &scalar::arrays::TRIM,
    &scalar::arrays::SUBSCRIPTS,
    &scalar::arrays::OVERLAP,
    &scalar::json::access::GET,
    &scalar::json::access::GET_TEXT,
    &scalar::json::access::PATH,
    &scalar::json::access::PATH_B,
    &scalar::json::access::OPERATOR_PATH,
    &scalar::json::access::PATH_TEXT,
    &scalar::json::contain::CONTAINS,
    &scalar::json::contain::EXISTS,
    &scalar::json::contain::EXISTS_ANY,
    &scalar::json::contain::EXISTS_ALL,
    &scalar::json::edit::CONCAT,
    &scalar::json::edit::DELETE,
    &scalar::json::edit::DELETE_PATH,
    &scalar::json::edit::SET,
    &scalar::json::edit::INSERT,
    &scalar::json::edit::STRIP_NULLS,
    &scalar::json::edit::STRIP_NULLS_B,
    &scalar::json::describe::TYPE,
    &scalar::json::describe::LENGTH,
    &scalar::json::describe::PRETTY,
    &scalar::json::build::TO_JSON,
    &scalar::json::build::TO_JSONB,
    &scalar::json::build::OBJECT,
    &scalar::json::build::OBJECT_B,
    &scalar::json::build::ARRAY,
    &scalar::json::build::ARRAY_B,
    &scalar::json::build::OF_TEXTS,
    &scalar::json::build::OF_TEXTS_B,
    &scalar::json::rows::KEYS,
    &scalar::json::rows::KEYS_B,
    &scalar::json::rows::VALUES,
    &scalar::json::rows::VALUES_B,
    &scalar::json::rows::VALUES_TEXT,
    &scalar::json::rows::VALUES_TEXT_B,
    &scalar::json::rows::ELEMENTS,
    &scalar::json::rows::ELEMENTS_B,
    &scalar::json::rows::ELEMENTS_TEXT,
    &aggregate::sum::DEFINITION,
    &aggregate::avg::DEFINITION,
    &aggregate::min::DEFINITION,
    &aggregate::max::DEFINITION,
    &aggregate::truth::BOOL_AND,
    &aggregate::truth::BOOL_OR,
    &aggregate::truth::EVERY,
    &aggregate::variance::VAR_POP,
    &aggregate::variance::VAR_SAMP,
    &aggregate::variance::VARIANCE,
    &aggregate::variance::STDDEV_POP,
    &aggregate::variance::STDDEV_SAMP,
    &aggregate::variance::STDDEV,
    &aggregate::regression::COVAR_POP,
    &aggregate::regression::COVAR_SAMP,
    &aggregate::regression::CORR,
    &aggregate::regression::REGR_SLOPE,
    &aggregate::regression::REGR_INTERCEPT,
    &aggregate::regression::REGR_R2,
    &aggregate::regression::REGR_COUNT,
    &aggregate::regression::REGR_AVGX,
    &aggregate::regression::REGR_AVGY,
    &aggregate::regression::REGR_SXX,
    &aggregate::regression::REGR_SYY,
    &aggregate::regression::REGR_SXY,
    &aggregate::bits::BIT_AND,
    &aggregate::bits::BIT_OR,
    &aggregate::bits::BIT_XOR,
    &aggregate::ordered::array_agg::DEFINITION,
    &aggregate::ordered::string_agg::DEFINITION,
    &aggregate::ordered::json::JSON_AGG,
    &aggregate::ordered::json::JSONB_AGG,
    &aggregate::ordered::json::JSON_OBJECT_AGG,
    &aggregate::ordered::json::JSONB_OBJECT_AGG,
    &aggregate::ordered::percentile::PERCENTILE_CONT,
    &aggregate::ordered::percentile::PERCENTILE_DISC,
    &aggregate::ordered::percentile::MEDIAN,
    &aggregate::ordered::mode::DEFINITION,
    &aggregate::ordered::first_value::FIRST_VALUE,
    &aggregate::ordered::first_value::LAST_VALUE,
    &aggregate::ordered::first_value::NTH_VALUE,
    &aggregate::ordered::first_value::ANY_VALUE,
    &aggregate::ordered::approx::APPROX_DISTINCT,
    &aggregate::ordered::approx::APPROX_MEDIAN,
    &aggregate::ordered::approx::APPROX_PERCENTILE_CONT,
    &aggregate::ordered::approx::APPROX_PERCENTILE_CONT_WITH_WEIGHT,
    &session::START,
    &session::END,
];

/// Registers all functions with DataFusion, after its own: those of the same name are replaced.
///
/// # Errors
///
/// Those of the registry.
pub fn register(registry: &mut dyn FunctionRegistry) -> Result<()> {
    let (scalar, aggregates) = (scalar(), aggregates());
    // Under another one of its names a replaced function would stay; and it would take its place back when a session is made of
    // this one, which registers all under their own names again. Registries of which none is made need not be able to do this.
    for function in &scalar {
        let _ = registry.deregister_udf(function.name());
    }
    for function in &aggregates {
        let _ = registry.deregister_udaf(function.name());
    }
    for function in scalar {
        registry.register_udf(function)?;
    }
    for function in aggregates {
        registry.register_udaf(function)?;
    }
    let names = registry.udafs();
    let aggregates: Vec<Arc<AggregateUDF>> = names.iter().map(|name| registry.udaf(name)).collect::<Result<_>>()?;
    for function in excluding::excluding(&aggregates).into_iter().chain(windows()) {
        registry.register_udwf(function)?;
    }
    Ok(())
}

/// The scalar functions.
fn scalar() -> Vec<Arc<ScalarUDF>> {
    FUNCTIONS
        .iter()
        .filter_map(|function| match function.implementation {
            Implementation::Scalar(make) => Some(Arc::new(make())),
            Implementation::Aggregate(_) | Implementation::Window(_) => None,
        })
        .collect()
}

/// The aggregate functions, each once for every name that it has.
pub(crate) fn aggregates() -> Vec<Arc<AggregateUDF>> {
    FUNCTIONS
        .iter()
        .flat_map(|function| match function.implementation {
            Implementation::Aggregate(make) => aggregate::under_each_name(make()),
            Implementation::Scalar(_) | Implementation::Window(_) => Vec::new(),
        })
        .map(Arc::new)
        .collect()
}

/// The window functions that are no aggregates.
fn windows() -> Vec<Arc<WindowUDF>> {
    FUNCTIONS
        .iter()
        .filter_map(|function| match function.implementation {
            Implementation::Window(make) => Some(Arc::new(make())),
            Implementation::Scalar(_) | Implementation::Aggregate(_) => None,
        })
        .collect()
}
