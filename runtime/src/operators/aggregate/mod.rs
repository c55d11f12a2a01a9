//! Aggregation kept up to date: `GROUP BY` and `DISTINCT`.
//!
//! For input rows `R` with group columns `k`, at every epoch
//!
//! ```text
//! output = { (k, f1(R[k]), ..., fn(R[k])) | R[k] not empty }
//! ```
//!
//! where `R[k]` are the rows of the group with their multiplicities; without group columns there is exactly one row,
//! also over nothing. A group of which a result cannot be computed (its sum does not fit) is not in the output but in
//! the errors output, with its key as row, for as long as that is so.
//!
//! What is kept of a group is a sum over its rows in a commutative group (counts, exact sums), so a change of the input
//! is added to it. `DISTINCT`, and `min` and `max` over rows that may be retracted, keep the group's values as a
//! multiset besides. During an epoch only the changes of the touched groups are gathered (`changes`); at its close
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
use plan::{Distribution, Properties, Spec, StateBound};

use super::{BuildContext, Operator, OperatorDef};
use crate::error::{Error, Result};
use crate::functions::aggregate::results::Function;

mod changes;
mod exec;
mod lower;
mod slots;
#[cfg(test)]
mod tests;
mod values;

const NAME: &str = "aggregate";

/// Changes with the layout of the state.
const VERSION: u32 = 2;

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
    /// Position of the values in the input; none for rows as such.
    argument: Option<usize>,
    /// Position of a condition in the input.
    filter: Option<usize>,
    /// The value set that feeds the slot; none if rows do.
    values: Option<usize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SlotKind {
    /// How many values.
    Count,
    /// Their number and exact sum.
    Sum,
    /// How many are true and how many false.
    Truth,
    /// The least.
    Least,
    /// The greatest.
    Greatest,
}

/// The values of a column that a group has, as a multiset.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ValueSet {
    argument: usize,
    filter: Option<usize>,
    /// Whether equal values that look different are apart: for `min` and `max`, which show one of them.
    exact: bool,
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
    /// `sum` or `avg` of a slot.
    Sum(Function, usize),
    /// Whether no value is false.
    And(usize),
    /// Whether a value is true.
    Or(usize),
    /// The value of a slot.
    Extreme(usize),
}

/// An aggregation as data.
#[derive(Debug, Clone)]
struct AggregateSpec {
    /// Positions of the group columns in the input.
    keys: Vec<usize>,
    slots: Vec<Slot>,
    value_sets: Vec<ValueSet>,
    calls: Vec<Call>,
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
        let mut state = Vec::new();
        if !self.keys.is_empty() {
            state.push("an entry a group");
        }
        if !self.value_sets.is_empty() {
            state.push("an entry a different value");
        }
        Properties {
            keys: vec![(0..self.keys.len()).collect()],
            // Without results a group's row never changes.
            append_only: self.append_only && self.calls.is_empty() && !self.keys.is_empty(),
            watermarks: (0..self.keys.len()).filter(|position| watermarked(&self.keys[*position])).collect(),
            state: if state.is_empty() {
                StateBound::Bounded("one entry".to_string())
            } else {
                StateBound::Unbounded(state.join(" and "))
            },
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
