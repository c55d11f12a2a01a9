//! Joins: rows of two inputs that agree in their keys and satisfy a condition.
//!
//! For rows `l`, `r` of the inputs let `meet(l, r)` be 1 if their keys are equal and the condition is true for them, else
//! 0. A condition that fails for a pair is not true for it, and the pair is in the errors output. With multiplicities
//! `L(l)`, `R(r)`, and with `m(l)` as the number of rows that a row matches,
//!
//! ```text
//! pairs(l, r)         = L(l) * R(r) * meet(l, r)
//! m(l)                = sum over r of R(r) * meet(l, r), and for the rows of R likewise
//!
//! inner join          = pairs
//! left outer join     = pairs + { (l, NULLs) -> L(l) | m(l) = 0 }
//! full outer join     = pairs + { (l, NULLs) -> L(l) | m(l) = 0 } + { (NULLs, r) -> R(r) | m(r) = 0 }
//! left semi join      = { l -> L(l) | m(l) > 0 }
//! left anti join      = { l -> L(l) | m(l) = 0 }
//! left mark join      = { (l, m(l) > 0) -> L(l) }
//! ```
//!
//! and those of the right side likewise. A side of which rows are shown by themselves is *preserved*.
//!
//! NULL keys meet nothing (unless the plan says that NULLs are equal here): such rows of a preserved side pass as they
//! come, others are dropped, and none is kept. A join without keys is the same thing with one key for all rows, on one
//! worker.
//!
//! The inner join (`inner`) pairs a delta with the rows kept of the other side and then adds it to those of its own, so
//! each pair of changes meets exactly once: `d(L * R) = dL * R + L * dR + dL * dR`.
//!
//! The others (`preserving`) gather an epoch's changes, since a row that is retracted and inserted again must not show
//! its padding meanwhile. At the close they look at the touched keys, and there at no more rows than these:
//! - Where pairs are shown: changed rows with all of the other side, which are the pairs that change. Without a condition
//!   `m(l) > 0` says that the key has a row on the other side, before and after.
//! - With a condition the number `m(l)` is kept with each row of a preserved side. Changed rows are compared with all of
//!   the other side's under their key, and `dm(l) = sum over changed r of dR(r) * meet(l, r)` for a row that was there.
//! - A semi, anti or mark join without condition keeps of the other side no rows but how many a key has, and looks at
//!   unchanged rows only where that becomes 0 or ceases to be.
//!
//! `x NOT IN (subquery)` is three anti joins, see [`lower`].
//!
//! Where the condition bounds an expression of one side by expressions of the other, "all of the other side's under the
//! key" are only those between the bounds: the rows of that side are kept in the order of that expression, see [`ranges`].
//!
//! State: one table a side, see [`state`] for inner joins and [`tallies`] for the others.

use std::any::Any;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::logical_expr::JoinType;
use plan::{Cost, Distribution, Extent, Properties, Spec, StateBound};

use self::condition::Condition;
use self::ranges::Order;
use super::{BuildContext, Operator, OperatorDef, spec_of};
use crate::error::Result;

mod changes;
mod condition;
mod inner;
mod kept;
mod lower;
mod meeting;
mod preserving;
#[cfg(test)]
mod range_tests;
mod ranges;
mod reach;
mod state;
mod tallies;
#[cfg(test)]
mod tests;

const NAME: &str = "join";

/// How many keys of a join's output are followed up: each pair of the inputs' keys gives one.
const KEYS_MAX: usize = 8;

/// Recognises and builds joins.
#[derive(Debug)]
pub struct JoinDefinition;

/// One input of a join.
#[derive(Debug, Clone)]
struct Side {
    /// Columns of the key, in the order of the other side's.
    keys: Vec<usize>,
    /// How many of the input's columns are in the output: computed keys after them are not.
    width: usize,
    /// For each of these columns, whether it may be NULL.
    nullable: Vec<bool>,
    /// No two rows of the input have the same key.
    unique: bool,
    /// Rows of the input are unique and stay.
    adds_new_rows_only: bool,
    /// The order in which rows are kept, if the condition bounds it.
    order: Option<Order>,
}

/// A join as data.
#[derive(Debug, Clone)]
struct Join {
    join_type: JoinType,
    /// Left and right.
    sides: [Side; 2],
    key_types: Vec<DataType>,
    nulls_are_equal: bool,
    condition: Option<Condition>,
    /// Columns of pairs: those of both sides.
    pair_schema: SchemaRef,
    /// Whether a row without partner may look like a pair, or like a row of the other side without partner.
    pads_like_rows: bool,
    schema: SchemaRef,
    text: String,
}

impl Join {
    /// Whether rows of a side are shown by themselves.
    fn preserves(&self, side: usize) -> bool {
        match self.join_type {
            JoinType::Inner => false,
            JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => side == 0,
            JoinType::Right | JoinType::RightSemi | JoinType::RightAnti | JoinType::RightMark => side == 1,
            JoinType::Full => true,
        }
    }

    /// Whether pairs are shown.
    fn shows_pairs(&self) -> bool {
        matches!(self.join_type, JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full)
    }

    /// Whether rows of a preserved side are shown by themselves when they have a partner, or when they have none.
    fn shows(&self, matched: bool) -> bool {
        match self.join_type {
            JoinType::Inner => false,
            JoinType::Left | JoinType::Right | JoinType::Full | JoinType::LeftAnti | JoinType::RightAnti => !matched,
            JoinType::LeftSemi | JoinType::RightSemi => matched,
            JoinType::LeftMark | JoinType::RightMark => true,
        }
    }

    /// Whether it matters which rows make a pair, and not only whether a key has rows.
    fn looks_at_pairs(&self) -> bool {
        self.shows_pairs() || self.condition.is_some()
    }

    /// How many columns are kept of a side's rows.
    fn kept_width(&self, side: usize) -> usize {
        if self.looks_at_pairs() || self.preserves(side) { self.sides[side].width } else { 0 }
    }

    /// Whether the matches of each row of a side are counted.
    fn counts_matches(&self, side: usize) -> bool {
        self.preserves(side) && self.condition.is_some()
    }

    /// How much the output may come to hold: of pairs, where each row of a side meets one of the other side at most, as much
    /// as that side; of rows that are shown by themselves, as much as theirs.
    fn output_extent(&self, left: &Properties, right: &Properties) -> Extent {
        let inputs = [left, right];
        let mut parts: Vec<&Extent> = Vec::new();
        if self.shows_pairs() {
            // The side of which each row meets one at most, if there is one; if there are two, the lesser.
            let of_one = (0..2_usize).filter(|side| self.sides[1 - side].unique).map(|side| &inputs[side].extent);
            match of_one.min_by_key(|extent| extent.growth) {
                Some(extent) => parts.push(extent),
                None => parts.extend(inputs.map(|input| &input.extent)),
            }
        }
        parts.extend((0..2_usize).filter(|side| self.preserves(*side)).map(|side| &inputs[side].extent));
        Extent::together(parts.into_iter())
    }

    /// Sets of columns that are unique in the output.
    ///
    /// Where a row meets at most one of the other side, its own keys stay keys. Else a pair is known by both keys; so is
    /// a row without partner, since there is no pair of it. In a full join two of these, one of each side, look the same
    /// when all columns of both keys are NULL.
    fn output_keys(&self, left: &Properties, right: &Properties) -> Vec<Vec<usize>> {
        let [of_left, of_right] = [(left, 0), (right, 1)].map(|(input, side)| {
            let shown = |key: &&Vec<usize>| key.iter().all(|column| *column < self.sides[side].width);
            input.keys.iter().filter(shown).cloned().collect::<Vec<_>>()
        });
        if !self.shows_pairs() {
            return if self.preserves(0) { of_left } else { of_right };
        }
        let in_output = |key: &Vec<usize>| key.iter().map(|column| column + self.sides[0].width).collect::<Vec<_>>();
        let mut keys = Vec::new();
        if self.sides[1].unique && !self.preserves(1) {
            keys.extend(of_left.iter().cloned());
        }
        if self.sides[0].unique && !self.preserves(0) {
            keys.extend(of_right.iter().map(in_output));
        }
        if keys.is_empty() {
            let never_null = |side: usize, key: &[usize]| key.iter().any(|column| !self.sides[side].nullable[*column]);
            let pairs = of_left.iter().flat_map(|l| of_right.iter().map(move |r| (l, r)));
            let apart = pairs.filter(|(l, r)| self.join_type != JoinType::Full || never_null(0, l) || never_null(1, r));
            keys.extend(apart.map(|(l, r)| l.iter().copied().chain(in_output(r)).collect::<Vec<_>>()));
        }
        keys.sort_by_key(Vec::len);
        keys.dedup();
        keys.truncate(KEYS_MAX);
        keys
    }
}

impl Spec for Join {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> u32 {
        // What is kept of a side follows from the type of the join, from whether matches are counted, from whether its keys
        // are unique, and from its order.
        let join_type = match self.join_type {
            JoinType::Inner => 1,
            JoinType::Left => 2,
            JoinType::Right => 4,
            JoinType::Full => 6,
            JoinType::LeftSemi => 8,
            JoinType::RightSemi => 10,
            JoinType::LeftAnti => 12,
            JoinType::RightAnti => 14,
            JoinType::LeftMark => 16,
            JoinType::RightMark => 18,
        };
        let counts_matches = u32::from(self.counts_matches(0) || self.counts_matches(1));
        let orders = self.sides.iter().map(|side| match &side.order {
            None => 0,
            Some(order) if order.may_fail => 2,
            Some(_) => 1,
        });
        let orders = orders.fold(0, |all, order| 3 * all + order);
        let unique = u32::from(self.sides[0].unique) + 2 * u32::from(self.sides[1].unique);
        128 * orders + 4 * (join_type + counts_matches) + unique
    }

    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn properties(&self, inputs: &[&Properties]) -> Properties {
        let (left, right) = (inputs[0], inputs[1]);
        // A row without partner goes when one comes; with one it stays.
        let only_grows = matches!(self.join_type, JoinType::Inner | JoinType::LeftSemi | JoinType::RightSemi);
        let kept = match self.looks_at_pairs() {
            true => "rows of both inputs",
            false if self.preserves(0) => "rows of the left input and keys of the right one",
            false => "rows of the right input and keys of the left one",
        };
        Properties {
            keys: self.output_keys(left, right),
            append_only: only_grows && left.append_only && right.append_only,
            // A row may appear long after one of those that it comes from did, so watermarks of the inputs say nothing of it.
            watermarks: Vec::new(),
            extent: self.output_extent(left, right),
            state: StateBound::of(kept, Extent::of(inputs)),
        }
    }

    fn cost(&self) -> Cost {
        if self.sides.iter().all(|side| side.unique) {
            Cost::Constant
        } else if self.sides[0].keys.is_empty() && self.sides.iter().any(|side| side.order.is_none()) {
            Cost::Input
        } else {
            Cost::Matches
        }
    }

    fn distribution(&self, port: usize) -> Distribution {
        Distribution::ByKey(self.sides[port].keys.clone())
    }

    fn state_tables(&self) -> usize {
        2
    }

    fn detail(&self) -> String {
        self.text.clone()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl OperatorDef for JoinDefinition {
    fn build(&self, spec: &dyn Spec, context: BuildContext) -> Result<Box<dyn Operator>> {
        let spec: &Join = spec_of(spec)?;
        Ok(match spec.join_type {
            JoinType::Inner => Box::new(inner::InnerJoin::new(spec.clone(), context)?),
            _ => Box::new(preserving::PreservingJoin::new(spec.clone(), context)?),
        })
    }
}
