//! `mode`: the value that is there most often.

use datafusion::common::ScalarValue;
use plan::PlanError;

use super::call::GroupRows;
use super::{Method, OrderedFunction};
use crate::functions::{Example, FunctionDef, Implementation};

/// The function.
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "mode",
    forms: &["mode() WITHIN GROUP (ORDER BY any [DESC]) → the same type"],
    text: "The value that is there most often, without NULLs; of several the first in the order; NULL if there are none.",
    examples: &[
        Example { query: "SELECT mode() WITHIN GROUP (ORDER BY x) FROM (VALUES (1), (2), (2)) AS t(x)", result: "2" },
        Example { query: "SELECT mode() WITHIN GROUP (ORDER BY x DESC) FROM (VALUES (1), (2)) AS t(x)", result: "2" },
    ],
    implementation: Implementation::Aggregate(|| OrderedFunction::udaf(&METHOD)),
};

static METHOD: Method = Method {
    name: "mode",
    aliases: &[],
    accept: |types| (types.len() == 1).then(|| types.to_vec()),
    result: |fields| fields[0].as_ref().clone().with_nullable(true),
    keeps_nulls: false,
    sorts: true,
    within_group: true,
    compute,
    ranks: None,
};

fn compute(rows: &GroupRows<'_>) -> Result<ScalarValue, PlanError> {
    let mut best: Option<(usize, i64)> = None;
    let mut row = 0;
    while row < rows.len() {
        let first = row;
        let mut count = rows.counts[row];
        row += 1;
        while row < rows.len() && rows.repeats(row) {
            count += rows.counts[row];
            row += 1;
        }
        if best.is_none_or(|(_, most)| count > most) {
            best = Some((first, count));
        }
    }
    match best {
        Some((row, _)) => rows.value(0, row),
        None => rows.null(),
    }
}
