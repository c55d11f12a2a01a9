//! The condition of a join over pairs of rows.
//!
//! Where rows are found by ranges, pairs outside of a range are never looked at. So that it makes no difference from which
//! of its rows a pair is found (the ranges of the two may differ), a pair is one only if no bound rules it out: none is
//! false, and none has NULL on either side. All that any range leaves out is ruled out so. A bound that fails rules out
//! nothing; then the condition as it was written decides, part by part, as it does without ranges.

use datafusion::arrow::array::{Array, BooleanArray};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::record_batch::RecordBatch;

use super::NAME;
use crate::delta::Delta;
use crate::error::Result;
use crate::expressions::{BoundExprs, Predicate};
use crate::operators::Output;

/// What pairs must satisfy besides equal keys.
#[derive(Debug, Clone)]
pub(super) struct Condition {
    pub(super) whole: Predicate,
    pub(super) ranged: Option<Ranged>,
}

/// The condition in two parts.
#[derive(Debug, Clone)]
pub(super) struct Ranged {
    /// Conjuncts by which rows are found: each as the comparison and its two sides.
    pub(super) bounds: Vec<BoundExprs>,
    /// The other conjuncts.
    pub(super) rest: Predicate,
}

impl Condition {
    /// The pairs for which it is true; those for which it fails go to the errors output.
    pub(super) fn filter(&self, pairs: Delta, output: &mut Output) -> Result<Delta> {
        let Some(ranged) = &self.ranged else { return self.whole.filter(NAME, pairs, output) };
        let (possible, any_failed) = ranged.possible(pairs.batch())?;
        let rest = if any_failed { &self.whole } else { &ranged.rest };
        rest.filter(NAME, some_of(pairs, &possible)?, output)
    }

    /// The positions of the pairs for which it is true; those for which it fails go to the errors output.
    pub(super) fn positions(&self, pairs: &Delta, output: &mut Output) -> Result<Vec<u32>> {
        let Some(ranged) = &self.ranged else { return self.whole.positions(NAME, pairs, output) };
        let (possible, any_failed) = ranged.possible(pairs.batch())?;
        let rest = if any_failed { &self.whole } else { &ranged.rest };
        let passing = rest.positions(NAME, &some_of(pairs.clone(), &possible)?, output)?;
        Ok(passing.into_iter().map(|position| possible[position as usize]).collect())
    }
}

impl Ranged {
    /// The pairs that no bound rules out, and whether one fails for any pair.
    fn possible(&self, pairs: &RecordBatch) -> Result<(Vec<u32>, bool)> {
        let mut possible = BooleanBuffer::new_set(pairs.num_rows());
        let mut any_failed = false;
        for bound in &self.bounds {
            let (comparison, failed) = bound.evaluate_or_null(0, pairs)?;
            let mut allowed = match comparison.as_any().downcast_ref::<BooleanArray>() {
                Some(values) => match values.nulls() {
                    Some(nulls) => values.values() & nulls.inner(),
                    None => values.values().clone(),
                },
                // A NULL of no type is true for no pair.
                None => BooleanBuffer::new_unset(pairs.num_rows()),
            };
            if let Some(failed) = failed {
                any_failed = true;
                let mut open = failed.values().clone();
                for side in [1, 2] {
                    open = &open & &not_null(bound, side, pairs)?;
                }
                allowed = &allowed | &open;
            }
            possible = &possible & &allowed;
        }
        Ok((possible.set_indices_u32().collect(), any_failed))
    }
}

/// For which pairs a side of a bound has a value, or fails.
fn not_null(bound: &BoundExprs, side: usize, pairs: &RecordBatch) -> Result<BooleanBuffer> {
    let (values, failed) = bound.evaluate_or_null(side, pairs)?;
    let valid = match values.logical_nulls() {
        Some(nulls) => nulls.into_inner(),
        None => BooleanBuffer::new_set(pairs.num_rows()),
    };
    Ok(match failed {
        Some(failed) => &valid | failed.values(),
        None => valid,
    })
}

fn some_of(pairs: Delta, positions: &[u32]) -> Result<Delta> {
    if positions.len() == pairs.len() { Ok(pairs) } else { pairs.take(&positions.to_vec().into()) }
}
