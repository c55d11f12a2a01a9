//! Top-N: the first rows in an order, of all rows or of each partition.
//!
//! Let `R[p]` be the input's rows with partition key `p`, in order, each as often as its multiplicity says. With `n(r)`
//! as the number of `r` (its position, its rank or its dense rank, from 1),
//!
//! ```text
//! output = { r, numbers of r | r in R[p], lowest <= n(r) <= highest }
//! ```
//!
//! It is what `ORDER BY ... LIMIT ... OFFSET` is (without partitions, and no number is shown), and a filter that bounds
//! `row_number()`, `rank()` or `dense_rank()` from above; so also DISTINCT ON and FETCH FIRST ... WITH TIES, of which the
//! planner makes such filters. OFFSET without LIMIT is the input without the rows before it:
//! `d(output) = d(input) - d(first rows)`.
//!
//! Positions (`positions`): of a changed partition the first `highest` rows are read, as they were, and as many more as
//! rows go. From them and the changes follow the first rows as they are, and the difference is emitted.
//!
//! Ranks (`ranks`): rows that are equal in the order are *peers* and have one rank. The number of each peer group's rows
//! is kept besides, so the ranks of the first groups are known without a look at their rows. A group whose shown ranks
//! stay has its own changes to emit only; the rows of one that enters, leaves, or is ranked anew are read, since all of
//! them are emitted.
//!
//! State: table 0, the rows in order (see [`super::ordered`]); for ranks, table 1: `partition key ++ order key → rows
//! (i64, big endian)`.

use std::any::Any;

use datafusion::arrow::datatypes::SchemaRef;
use plan::{Cost, Distribution, Properties, Spec, StateBound};

use super::ordered::Layout;
use super::{BuildContext, Operator, OperatorDef, spec_of};
use crate::error::Result;

mod exec;
pub(super) mod lower;
mod ranked;
#[cfg(test)]
mod tests;

const NAME: &str = "top_n";

/// Recognises and builds Top-N.
#[derive(Debug)]
pub struct TopNDefinition;

/// How the rows of a partition are numbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Numbering {
    /// By position: row_number.
    Position,
    /// One more than the rows before the peers: rank.
    Rank,
    /// One more than the peer groups before: dense_rank.
    DenseRank,
}

/// Top-N as data.
#[derive(Debug, Clone)]
struct TopN {
    layout: Layout,
    /// The number that is bounded.
    by: Numbering,
    lowest: u64,
    /// No bound only for positions that are not shown.
    highest: Option<u64>,
    /// The numbers that follow the row's columns in the output: positions only, or ranks only.
    shown: Vec<Numbering>,
    /// Whether the input has no row twice.
    unique_rows: bool,
    schema: SchemaRef,
    text: String,
}

impl TopN {
    /// Whether each partition has one row in the output at most.
    fn shows_one_row(&self) -> bool {
        self.by == Numbering::Position && self.highest.is_some_and(|highest| highest <= self.lowest)
    }

    /// Whether so many rows at most are in the output for each of the different values of columns that it has. Of peers
    /// there may be any number.
    fn shows_few_rows(&self) -> bool {
        let in_row = self.layout.partition.iter().all(|column| *column < self.layout.width);
        self.by == Numbering::Position && self.highest.is_some() && in_row
    }
}

impl Spec for TopN {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> u32 {
        1
    }

    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn properties(&self, inputs: &[&Properties]) -> Properties {
        let width = self.layout.width;
        let in_row = |key: &Vec<usize>| key.iter().all(|column| *column < width);
        let mut keys: Vec<Vec<usize>> = inputs[0].keys.iter().filter(|key| in_row(key)).cloned().collect();
        if in_row(&self.layout.partition) {
            if self.shows_one_row() {
                keys.push(self.layout.partition.clone());
            } else if let Some(number) = self.shown.iter().position(|shown| *shown == Numbering::Position) {
                keys.push(self.layout.partition.iter().copied().chain([width + number]).collect());
            }
        }
        let extent = inputs[0].extent.clone();
        let shown = match self.shows_few_rows() {
            true => extent.clone().for_each_value(&self.schema, self.layout.partition.iter().copied()),
            false => extent.clone(),
        };
        Properties {
            keys,
            append_only: false,
            watermarks: Vec::new(),
            extent: shown,
            state: StateBound::of("all rows of its input", extent)
                .instead("Of rows that are only added, max() and min() keep one value a group, and not all rows."),
        }
    }

    fn cost(&self) -> Cost {
        // Of ranks, all rows of the peers whose rank comes into the bounds, leaves them or changes are emitted.
        if self.by == Numbering::Position { Cost::Logarithmic } else { Cost::Matches }
    }

    fn distribution(&self, _port: usize) -> Distribution {
        Distribution::ByKey(self.layout.partition.clone())
    }

    fn state_tables(&self) -> usize {
        if self.by == Numbering::Position { 1 } else { 2 }
    }

    fn detail(&self) -> String {
        self.text.clone()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl OperatorDef for TopNDefinition {
    fn build(&self, spec: &dyn Spec, context: BuildContext) -> Result<Box<dyn Operator>> {
        Ok(Box::new(exec::TopNOperator::new(spec_of::<TopN>(spec)?, context)?))
    }
}
