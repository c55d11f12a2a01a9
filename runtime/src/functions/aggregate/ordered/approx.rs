//! DataFusion's approximate aggregates, here exact: an approximation that depends on the order of rows would not be the
//! same in a view and in its query, nor after rows have left.

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::ScalarValue;
use plan::PlanError;

use super::call::GroupRows;
use super::percentile::{Ranks, check, compute, numbers_and_intervals, result};
use super::{Method, OrderedFunction};
use crate::functions::{Example, FunctionDef, Implementation};

/// `approx_distinct`.
pub static APPROX_DISTINCT: FunctionDef = FunctionDef {
    name: "approx_distinct",
    forms: &["approx_distinct(any) → bigint"],
    text: "How many different values there are, without NULLs. It is exact: the same as `count(DISTINCT ...)`.",
    examples: &[Example { query: "SELECT approx_distinct(x) FROM (VALUES (1), (2), (2)) AS t(x)", result: "2" }],
    implementation: Implementation::Aggregate(|| OrderedFunction::udaf(&DISTINCT)),
};

/// `approx_median`.
pub static APPROX_MEDIAN: FunctionDef = FunctionDef {
    name: "approx_median",
    forms: &["approx_median(double precision) → double precision"],
    text: "It is exact: the same as `median`.",
    examples: &[Example { query: "SELECT approx_median(x) FROM (VALUES (1), (2), (9)) AS t(x)", result: "2" }],
    implementation: Implementation::Aggregate(|| OrderedFunction::udaf(&MEDIAN)),
};

/// `approx_percentile_cont`.
pub static APPROX_PERCENTILE_CONT: FunctionDef = FunctionDef {
    name: "approx_percentile_cont",
    forms: &[
        "approx_percentile_cont(fraction double precision [, centroids]) WITHIN GROUP (ORDER BY double precision) → double precision",
    ],
    text: "It is exact: the same as `percentile_cont`. The number of centroids is ignored.",
    examples: &[Example {
        query: "SELECT approx_percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM (VALUES (1), (2), (9)) AS t(x)",
        result: "2",
    }],
    implementation: Implementation::Aggregate(|| OrderedFunction::udaf(&PERCENTILE)),
};

/// `approx_percentile_cont_with_weight`.
pub static APPROX_PERCENTILE_CONT_WITH_WEIGHT: FunctionDef = FunctionDef {
    name: "approx_percentile_cont_with_weight",
    forms: &[
        "approx_percentile_cont_with_weight(weight double precision, fraction double precision) WITHIN GROUP (ORDER BY double precision) → double precision",
    ],
    text: "The first value in the order such that the values up to it have the fraction of all weight.",
    examples: &[Example {
        query: "SELECT approx_percentile_cont_with_weight(w, 0.5) WITHIN GROUP (ORDER BY x) FROM (VALUES (1, 1), (2, 5), (9, 1)) AS t(x, w)",
        result: "2",
    }],
    implementation: Implementation::Aggregate(|| OrderedFunction::udaf(&WEIGHTED)),
};

static DISTINCT: Method = Method {
    name: "approx_distinct",
    aliases: &[],
    accept: |types| (types.len() == 1).then(|| types.to_vec()),
    result: |_| Field::new("", DataType::Int64, true),
    keeps_nulls: false,
    sorts: true,
    within_group: false,
    compute: |rows| {
        let different = (0..rows.len()).filter(|row| !rows.repeats(*row)).count();
        Ok(ScalarValue::Int64(i64::try_from(different).ok()))
    },
    ranks: None,
};

static MEDIAN: Method = Method {
    name: "approx_median",
    aliases: &[],
    accept: |types| match types {
        [value] => Some(vec![numbers_and_intervals(value)?]),
        _ => None,
    },
    result,
    keeps_nulls: false,
    sorts: true,
    within_group: false,
    compute: |rows| compute(rows, Ranks::Continuous(None)),
    ranks: Some(Ranks::Continuous(None)),
};

static PERCENTILE: Method = Method {
    name: "approx_percentile_cont",
    aliases: &["approx_quantile_cont"],
    accept: |types| match types {
        [value, fraction] if is_number(fraction) => Some(vec![numbers_and_intervals(value)?, DataType::Float64]),
        [value, fraction, centroids] if is_number(fraction) && is_number(centroids) => {
            Some(vec![numbers_and_intervals(value)?, DataType::Float64, DataType::Int64])
        }
        _ => None,
    },
    within_group: true,
    compute: |rows| compute(rows, Ranks::Continuous(Some(1))),
    ranks: Some(Ranks::Continuous(Some(1))),
    ..MEDIAN
};

static WEIGHTED: Method = Method {
    name: "approx_percentile_cont_with_weight",
    aliases: &[],
    accept: |types| match types {
        [value, weight, fraction, ..] if types.len() < 5 && is_number(weight) && is_number(fraction) => {
            let mut accepted = vec![numbers_and_intervals(value)?, DataType::Float64, DataType::Float64];
            accepted.extend(types.get(3).map(|_| DataType::Int64));
            Some(accepted)
        }
        _ => None,
    },
    result: |fields| fields[0].as_ref().clone().with_nullable(true),
    within_group: true,
    compute: weighted,
    ranks: None,
    ..MEDIAN
};

fn is_number(data_type: &DataType) -> bool {
    data_type.is_numeric() || data_type.is_null()
}

fn weighted(rows: &GroupRows<'_>) -> Result<ScalarValue, PlanError> {
    let ScalarValue::Float64(Some(fraction)) = rows.direct(2)? else { return rows.null() };
    check(fraction)?;
    let mut weights = Vec::with_capacity(rows.len());
    for (row, count) in rows.counts.iter().enumerate() {
        let ScalarValue::Float64(weight) = rows.value(1, row)? else { return rows.null() };
        weights.push(weight.filter(|weight| *weight > 0.0).unwrap_or(0.0) * *count as f64);
    }
    let wanted = fraction * weights.iter().sum::<f64>();
    let mut sum = 0.0;
    for (row, weight) in weights.iter().enumerate() {
        sum += weight;
        if *weight > 0.0 && sum >= wanted {
            return rows.value(0, row);
        }
    }
    rows.null()
}
