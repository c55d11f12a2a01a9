//! Aggregation kept up to date: `GROUP BY`, with grouping sets, and `DISTINCT`.
//!
//! For input rows `R` with group columns `k`, at every epoch
//!
//! ```text
//! output = { (k, f1(R[k]), ..., fn(R[k])) | R[k] not empty }
//! ```
//!
//! where `R[k]` are the rows of the group with their multiplicities; without group columns there is exactly one row,
//! also over nothing. With grouping sets the input has each row once for every set, with NULL for the columns that are not
//! in it and the number of the set as one more group column; the group of an empty set is there over nothing too. A group
//! of which a result cannot be computed (its sum does not fit) is not in the output but in the errors output, with its key
//! as row, for as long as that is so.
//!
//! What is kept of a group is a sum over its rows in a commutative group (counts, exact sums), so a change of the input
//! is added to it. `DISTINCT`, and `min` and `max` over rows that may be retracted, keep the group's values as a
//! multiset besides. So do the aggregates that need the rows of the group in order (arrays, percentiles, JSON): their
//! results are computed anew from the multiset, of the groups that changed (`ordered`): that reads all of such a group, for
//! `first_value` and `last_value` too. But percentiles are followed through it (`ranks`). During an epoch only the changes of the touched groups are gathered (`changes`); at its close
//! old and new results of these groups are computed from old and new state (`exec`), so what is retracted is what
//! was emitted.
//!
//! State tables (all keyed by the encoded group key first, so a group is on one worker):
//! - 0: group key → the key as it is shown (if equal keys may look different), row count (if it is needed), then the
//!   state of every [`Slot`] and every [`ValueSet`] in order.
//! - 1 and on, one for each [`ValueSet`], of the groups that have too many values for their own entry: group key,
//!   value → how often the value is there; never 0.
//!
//! An entry in table 0 exists exactly for the groups in the output or the errors output.

use std::any::Any;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use plan::{Cost, Distribution, Extent, Properties, Spec, StateBound};

use super::{BuildContext, Operator, OperatorDef};
use crate::error::{Error, Result};
use crate::functions::aggregate::invertible::{Family, Invertible};
use crate::functions::aggregate::ordered::percentile::Ranks;
use crate::functions::aggregate::ordered::{Layout, Method, OrderColumn};

mod changes;
mod exec;
mod lower;
mod ordered;
#[cfg(test)]
mod random;
mod ranks;
mod sets;
mod slots;
#[cfg(test)]
mod tests;
mod values;

const NAME: &str = "aggregate";

/// Changes with the layout of the state.
const VERSION: u32 = 3;

/// Recognises and builds aggregations.
#[derive(Debug)]
pub struct AggregateDefinition;

impl OperatorDef for AggregateDefinition {
    fn build(&self, spec: &dyn Spec, context: BuildContext) -> Result<Box<dyn Operator>> {
        let spec = spec
            .as_any()
            .downcast_ref::<AggregateSpec>()
            .ok_or_else(|| Error::Dataflow(format!("operator {} was given another one's plan", spec.name())))?;
        Ok(Box::new(exec::AggregateOperator::new(spec, context)?))
    }
}

/// A part of a group's state: what is kept of the values of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Slot {
    kind: SlotKind,
    /// Positions of the values in the input; none for rows as such.
    arguments: Vec<usize>,
    /// Position of a condition in the input.
    filter: Option<usize>,
    /// The value set that feeds the slot; none if rows do.
    values: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotKind {
    /// How many values.
    Count,
    /// A sum over the rows: their number, exact sums.
    State(Family),
    /// How many are true and how many false.
    Truth,
    /// The least.
    Least,
    /// The greatest.
    Greatest,
    /// The row at a fraction (as the bits of a double) of the ordered rows.
    Rank(Ranks, u64),
}

/// The values of some columns that a group has, as a multiset.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ValueSet {
    arguments: Vec<usize>,
    filter: Option<usize>,
    form: ValueForm,
}

/// What is kept of the values of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ValueForm {
    /// What tells different values apart.
    Key,
    /// The same, and equal values that look different are apart: for `min` and `max`, which show one of them.
    Exact,
    /// Rows in an order.
    Ordered {
        order: Vec<OrderColumn>,
        /// Whether rows whose first argument is NULL are there.
        keeps_nulls: bool,
    },
}

/// A call over the ordered rows of a group.
#[derive(Debug, Clone)]
struct OrderedSpec {
    method: &'static Method,
    layout: Layout,
    distinct: bool,
    /// The value set with its rows.
    set: usize,
}

/// A column of results.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Call {
    result: CallResult,
    /// Type of the column.
    data_type: DataType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallResult {
    /// The number of rows of the group.
    Rows,
    /// The count of a slot.
    Count(usize),
    /// What an aggregate makes of a slot.
    State(Invertible, usize),
    /// Whether no value is false.
    And(usize),
    /// Whether a value is true.
    Or(usize),
    /// The value of a slot.
    Extreme(usize),
    /// The percentile of a slot.
    Rank(usize),
    /// A call over ordered rows.
    Ordered(usize),
}

/// An aggregation as data.
#[derive(Debug, Clone)]
struct AggregateSpec {
    /// Positions of the group columns in the input.
    keys: Vec<usize>,
    slots: Vec<Slot>,
    value_sets: Vec<ValueSet>,
    ordered: Vec<OrderedSpec>,
    calls: Vec<Call>,
    /// Keys of the groups that are there over nothing too.
    standing: Vec<Vec<ScalarValue>>,
    /// Whether nothing is ever retracted from the input.
    append_only: bool,
    schema: SchemaRef,
    text: String,
}

impl AggregateSpec {
    /// Whether the number of a group's rows is kept: to know when the group ends, or because it is asked for.
    fn counts_rows(&self) -> bool {
        !self.append_only || self.calls.iter().any(|call| call.result == CallResult::Rows)
    }

    /// What is kept, given how many groups and how many values there may be.
    fn state(&self, of_groups: Extent, of_values: Extent) -> StateBound {
        match (self.keys.is_empty(), self.value_sets.is_empty()) {
            // A watermark of a group column will bound this, once groups behind it are dropped.
            (false, true) => StateBound::of("an entry a group", of_groups)
                .instead("Without GROUP BY, or with boolean columns there, the number of groups is bounded."),
            (true, true) => StateBound::constant("one entry"),
            (false, false) => StateBound::of("an entry a group and an entry a different value", of_values)
                .instead("Without GROUP BY, count, sum and avg without DISTINCT keep one entry."),
            (true, false) => StateBound::of("an entry a different value", of_values).instead(
                "count, sum and avg without DISTINCT keep one entry; so do min and max of rows that are only added.",
            ),
        }
    }
}

impl Spec for AggregateSpec {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> u32 {
        VERSION
    }

    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn properties(&self, inputs: &[&Properties]) -> Properties {
        let watermarked = |column: &usize| inputs.iter().any(|input| input.watermarks.contains(column));
        let of_input = Extent::of(inputs);
        let of_groups = of_input.clone().for_each_value(&self.schema, 0..self.keys.len());
        Properties {
            keys: vec![(0..self.keys.len()).collect()],
            // Without results a group's row never changes.
            append_only: self.append_only && self.calls.is_empty() && !self.keys.is_empty(),
            watermarks: (0..self.keys.len()).filter(|position| watermarked(&self.keys[*position])).collect(),
            // Some calls over ordered rows give all that they are given, as an array or a text.
            extent: if self.ordered.is_empty() { of_groups.clone() } else { of_input.clone() },
            state: self.state(of_groups, of_input),
        }
    }

    fn cost(&self) -> Cost {
        match (self.ordered.is_empty(), self.keys.is_empty()) {
            (false, true) => Cost::Input,
            (false, false) => Cost::Partition,
            (true, _) if !self.value_sets.is_empty() => Cost::Logarithmic,
            (true, _) => Cost::Constant,
        }
    }

    fn distribution(&self, _port: usize) -> Distribution {
        Distribution::ByKey(self.keys.clone())
    }

    fn state_tables(&self) -> usize {
        1 + self.value_sets.len()
    }

    fn detail(&self) -> String {
        self.text.clone()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
