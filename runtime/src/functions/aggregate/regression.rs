//! Covariances, correlation and regression.

use datafusion::logical_expr::AggregateUDF;

use super::invertible::Invertible;
use super::moments::Moment;
use super::udaf::InvertibleFunction;
use crate::functions::{Example, FunctionDef, Implementation};

/// `covar_pop`.
pub static COVAR_POP: FunctionDef = FunctionDef {
    name: "covar_pop",
    forms: &["covar_pop(y double precision, x double precision) → double precision"],
    text: "The population covariance of the pairs without NULL; NULL if there are none.",
    examples: &[Example { query: "SELECT covar_pop(y, x) FROM (VALUES (3, 1), (5, 2)) AS t(y, x)", result: "0.5" }],
    implementation: Implementation::Aggregate(|| make(Moment::CovarPop, &[])),
};

/// `covar_samp`.
pub static COVAR_SAMP: FunctionDef = FunctionDef {
    name: "covar_samp",
    forms: &["covar_samp(y double precision, x double precision) → double precision"],
    text: "The sample covariance of the pairs without NULL; NULL if there are fewer than two.",
    examples: &[Example { query: "SELECT covar_samp(y, x) FROM (VALUES (3, 1), (5, 2)) AS t(y, x)", result: "1" }],
    implementation: Implementation::Aggregate(|| make(Moment::CovarSamp, &["covar"])),
};

/// `corr`.
pub static CORR: FunctionDef = FunctionDef {
    name: "corr",
    forms: &["corr(y double precision, x double precision) → double precision"],
    text: "The coefficient of correlation of the pairs without NULL; NULL if one side is always the same.",
    examples: &[Example { query: "SELECT corr(y, x) FROM (VALUES (3, 1), (5, 2), (7, 3)) AS t(y, x)", result: "1" }],
    implementation: Implementation::Aggregate(|| make(Moment::Corr, &[])),
};

/// `regr_slope`.
pub static REGR_SLOPE: FunctionDef = FunctionDef {
    name: "regr_slope",
    forms: &["regr_slope(y double precision, x double precision) → double precision"],
    text: "The slope of the line with the least squares of distances; NULL if `x` is always the same.",
    examples: &[Example {
        query: "SELECT regr_slope(y, x) FROM (VALUES (3, 1), (5, 2), (7, 3)) AS t(y, x)",
        result: "2",
    }],
    implementation: Implementation::Aggregate(|| make(Moment::RegrSlope, &[])),
};

/// `regr_intercept`.
pub static REGR_INTERCEPT: FunctionDef = FunctionDef {
    name: "regr_intercept",
    forms: &["regr_intercept(y double precision, x double precision) → double precision"],
    text: "Where that line meets the axis of `y`.",
    examples: &[Example {
        query: "SELECT regr_intercept(y, x) FROM (VALUES (3, 1), (5, 2), (7, 3)) AS t(y, x)",
        result: "1",
    }],
    implementation: Implementation::Aggregate(|| make(Moment::RegrIntercept, &[])),
};

/// `regr_r2`.
pub static REGR_R2: FunctionDef = FunctionDef {
    name: "regr_r2",
    forms: &["regr_r2(y double precision, x double precision) → double precision"],
    text: "The square of the coefficient of correlation; 1 if `y` is always the same.",
    examples: &[Example { query: "SELECT regr_r2(y, x) FROM (VALUES (3, 1), (5, 2), (7, 3)) AS t(y, x)", result: "1" }],
    implementation: Implementation::Aggregate(|| make(Moment::RegrR2, &[])),
};

/// `regr_count`.
pub static REGR_COUNT: FunctionDef = FunctionDef {
    name: "regr_count",
    forms: &["regr_count(y double precision, x double precision) → bigint"],
    text: "How many pairs have no NULL.",
    examples: &[Example { query: "SELECT regr_count(y, x) FROM (VALUES (3, 1), (5, NULL)) AS t(y, x)", result: "1" }],
    implementation: Implementation::Aggregate(|| make(Moment::RegrCount, &[])),
};

/// `regr_avgx`.
pub static REGR_AVGX: FunctionDef = FunctionDef {
    name: "regr_avgx",
    forms: &["regr_avgx(y double precision, x double precision) → double precision"],
    text: "The mean of `x` over the pairs without NULL.",
    examples: &[Example { query: "SELECT regr_avgx(y, x) FROM (VALUES (3, 1), (5, 2)) AS t(y, x)", result: "1.5" }],
    implementation: Implementation::Aggregate(|| make(Moment::RegrAvgX, &[])),
};

/// `regr_avgy`.
pub static REGR_AVGY: FunctionDef = FunctionDef {
    name: "regr_avgy",
    forms: &["regr_avgy(y double precision, x double precision) → double precision"],
    text: "The mean of `y` over the pairs without NULL.",
    examples: &[Example { query: "SELECT regr_avgy(y, x) FROM (VALUES (3, 1), (5, 2)) AS t(y, x)", result: "4" }],
    implementation: Implementation::Aggregate(|| make(Moment::RegrAvgY, &[])),
};

/// `regr_sxx`.
pub static REGR_SXX: FunctionDef = FunctionDef {
    name: "regr_sxx",
    forms: &["regr_sxx(y double precision, x double precision) → double precision"],
    text: "The sum of the squared distances of `x` from its mean.",
    examples: &[Example { query: "SELECT regr_sxx(y, x) FROM (VALUES (3, 1), (5, 2)) AS t(y, x)", result: "0.5" }],
    implementation: Implementation::Aggregate(|| make(Moment::RegrSxx, &[])),
};

/// `regr_syy`.
pub static REGR_SYY: FunctionDef = FunctionDef {
    name: "regr_syy",
    forms: &["regr_syy(y double precision, x double precision) → double precision"],
    text: "The sum of the squared distances of `y` from its mean.",
    examples: &[Example { query: "SELECT regr_syy(y, x) FROM (VALUES (3, 1), (5, 2)) AS t(y, x)", result: "2" }],
    implementation: Implementation::Aggregate(|| make(Moment::RegrSyy, &[])),
};

/// `regr_sxy`.
pub static REGR_SXY: FunctionDef = FunctionDef {
    name: "regr_sxy",
    forms: &["regr_sxy(y double precision, x double precision) → double precision"],
    text: "The sum of the products of both distances.",
    examples: &[Example { query: "SELECT regr_sxy(y, x) FROM (VALUES (3, 1), (5, 2)) AS t(y, x)", result: "1" }],
    implementation: Implementation::Aggregate(|| make(Moment::RegrSxy, &[])),
};

fn make(moment: Moment, aliases: &[&str]) -> AggregateUDF {
    AggregateUDF::from(InvertibleFunction::new(Invertible::Moment(moment), aliases))
}
