//! Slots in execution: for each group, numbered from 0, what is kept of its values.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array, new_null_array};
use datafusion::arrow::datatypes::DataType;

use super::ranks::RankStates;
use super::values::ValueEncoder;
use super::{Slot, SlotKind, ValueForm};
use crate::error::{Error, Result};
use crate::functions::aggregate::codec;
use crate::functions::aggregate::grouped::Rows;
use crate::functions::aggregate::invertible::{GroupedStates, Invertible, grouped_states};
use crate::functions::aggregate::results::Results;

/// The states of a slot, one a group.
#[derive(Debug)]
pub(super) enum SlotStates {
    /// How many values.
    Count(Vec<i64>),
    /// Sums over the rows.
    State(Box<dyn GroupedStates>),
    /// How many values are true, and how many false.
    Truth(Vec<[i64; 2]>),
    /// The extreme value, as key bytes; empty for none.
    Extreme(Extremes),
    /// The row at a rank.
    Rank(RankStates),
}

/// Extreme values of groups.
#[derive(Debug)]
pub(super) struct Extremes {
    greatest: bool,
    encoder: Arc<ValueEncoder>,
    values: Vec<Vec<u8>>,
}

impl SlotStates {
    /// Without groups. The types are those of the arguments, the form that of the value set that feeds the slot.
    pub(super) fn new(slot: &Slot, arguments: &[DataType], form: Option<&ValueForm>) -> Result<Self> {
        Ok(match slot.kind {
            SlotKind::Count => SlotStates::Count(Vec::new()),
            SlotKind::Truth => SlotStates::Truth(Vec::new()),
            SlotKind::State(family) => SlotStates::State(
                grouped_states(family, arguments)
                    .ok_or_else(|| Error::Dataflow(format!("values of types {arguments:?} have no {family:?}")))?,
            ),
            SlotKind::Least | SlotKind::Greatest => SlotStates::Extreme(Extremes {
                greatest: slot.kind == SlotKind::Greatest,
                encoder: Arc::new(ValueEncoder::new(arguments, &ValueForm::Exact)?),
                values: Vec::new(),
            }),
            SlotKind::Rank(ranks, fraction) => {
                let form = form.ok_or_else(mismatch)?;
                SlotStates::Rank(RankStates::new(ranks, f64::from_bits(fraction), arguments, form)?)
            }
        })
    }

    /// Sets the number of groups; new ones have no values.
    pub(super) fn resize(&mut self, groups: usize) {
        match self {
            SlotStates::Count(counts) => counts.resize(groups, 0),
            SlotStates::State(states) => states.resize(groups),
            SlotStates::Truth(counts) => counts.resize(groups, [0, 0]),
            SlotStates::Extreme(extremes) => extremes.values.resize_with(groups, Vec::new),
            SlotStates::Rank(ranks) => ranks.resize(groups),
        }
    }

    /// Adds values.
    pub(super) fn add(&mut self, arguments: &[ArrayRef], rows: Rows<'_>) -> Result<()> {
        let Some(values) = arguments.first() else {
            self.add_rows(rows);
            return Ok(());
        };
        match self {
            SlotStates::Count(counts) => rows.for_each(values, |_, group, weight| counts[group] += weight),
            SlotStates::State(states) => states.add(arguments, rows),
            SlotStates::Truth(counts) => {
                let truths = values.as_boolean();
                rows.for_each(values, |row, group, weight| counts[group][usize::from(truths.value(row))] += weight);
            }
            SlotStates::Extreme(extremes) => {
                let mut encoded = extremes.encoder.encode(arguments)?;
                rows.for_each(values, |row, group, _| extremes.offer(group, encoded.row(row)));
            }
            // It follows its value set.
            SlotStates::Rank(_) => {}
        }
        Ok(())
    }

    /// Adds rows without values.
    fn add_rows(&mut self, rows: Rows<'_>) {
        if let SlotStates::Count(counts) = self {
            // Any array without NULLs does: only the rows are looked at.
            let present =
                BooleanArray::new(datafusion::arrow::buffer::BooleanBuffer::new_unset(rows.groups.len()), None);
            rows.for_each(&present, |_, group, weight| counts[group] += weight);
        }
    }

    /// Appends a group's bytes.
    pub(super) fn encode(&mut self, group: usize, out: &mut Vec<u8>) {
        match self {
            SlotStates::Count(counts) => codec::put_signed(out, i128::from(counts[group])),
            SlotStates::State(states) => states.encode(group, out),
            SlotStates::Truth(counts) => {
                counts[group].iter().for_each(|count| codec::put_signed(out, i128::from(*count)));
            }
            SlotStates::Extreme(extremes) => codec::put_bytes(out, &extremes.values[group]),
            SlotStates::Rank(ranks) => ranks.encode(group, out),
        }
    }

    /// Adds the state that bytes hold to a group.
    pub(super) fn merge_encoded(&mut self, group: usize, input: &mut &[u8]) -> Result<()> {
        let merged = match self {
            SlotStates::Count(counts) => codec::take_i64(input).map(|count| counts[group] += count),
            SlotStates::State(states) => states.merge_encoded(group, input).then_some(()),
            SlotStates::Truth(counts) => codec::take_i64(input).zip(codec::take_i64(input)).map(|(no, yes)| {
                counts[group][0] += no;
                counts[group][1] += yes;
            }),
            SlotStates::Extreme(extremes) => codec::take_bytes(input).map(|value| {
                if !value.is_empty() {
                    extremes.offer(group, value);
                }
            }),
            SlotStates::Rank(ranks) => ranks.take_encoded(group, input),
        };
        merged.ok_or_else(damaged)
    }

    /// The counts of the first so many groups.
    pub(super) fn counts(&self, groups: usize) -> Result<ArrayRef> {
        match self {
            SlotStates::Count(counts) => Ok(Arc::new(Int64Array::from_iter_values(counts[..groups].iter().copied()))),
            _ => Err(mismatch()),
        }
    }

    /// What an aggregate makes of the first so many groups.
    pub(super) fn results(&self, aggregate: Invertible, groups: usize, data_type: &DataType) -> Result<Results> {
        match self {
            SlotStates::State(states) => Ok(states.finish(aggregate, groups, data_type)),
            _ => Err(mismatch()),
        }
    }

    /// `bool_and` (or `bool_or`) of the first so many groups.
    pub(super) fn truths(&self, groups: usize, and: bool) -> Result<ArrayRef> {
        match self {
            SlotStates::Truth(counts) => {
                let truth =
                    |[no, yes]: &[i64; 2]| (*no != 0 || *yes != 0).then_some(if and { *no == 0 } else { *yes != 0 });
                Ok(Arc::new(counts[..groups].iter().map(truth).collect::<BooleanArray>()))
            }
            _ => Err(mismatch()),
        }
    }

    /// `min` or `max` of the first so many groups.
    pub(super) fn extremes(&self, groups: usize, data_type: &DataType) -> Result<ArrayRef> {
        match self {
            SlotStates::Extreme(extremes) => extremes.array(groups, data_type),
            _ => Err(mismatch()),
        }
    }

    /// The percentiles of the first so many groups.
    pub(super) fn percentiles(&self, groups: usize, data_type: &DataType) -> Result<ArrayRef> {
        match self {
            SlotStates::Rank(ranks) => ranks.results(groups, data_type),
            _ => Err(mismatch()),
        }
    }

    /// Whether it is set from its value set, not fed with what changed in it.
    pub(super) fn is_chosen(&self) -> bool {
        matches!(self, SlotStates::Extreme(_) | SlotStates::Rank(_))
    }

    /// The rows at a rank, to be moved along a value set.
    pub(super) fn as_ranks(&mut self) -> Option<&mut RankStates> {
        match self {
            SlotStates::Rank(ranks) => Some(ranks),
            _ => None,
        }
    }

    /// The extreme values of groups, to be set from a value set.
    pub(super) fn as_extremes(&mut self) -> Option<&mut Extremes> {
        match self {
            SlotStates::Extreme(extremes) => Some(extremes),
            _ => None,
        }
    }
}

impl Extremes {
    /// Whether a value goes before another.
    pub(super) fn is_better(&self, value: &[u8], than: &[u8]) -> bool {
        if self.greatest { value > than } else { value < than }
    }

    /// Whether the greatest values are kept, not the least.
    pub(super) fn is_greatest(&self) -> bool {
        self.greatest
    }

    /// The value of a group; empty for none.
    pub(super) fn value(&self, group: usize) -> &[u8] {
        &self.values[group]
    }

    /// Sets the value of a group; empty for none.
    pub(super) fn set(&mut self, group: usize, value: &[u8]) {
        self.values[group].clear();
        self.values[group].extend_from_slice(value);
    }

    /// Takes a value if it goes before the one that is there.
    #[inline]
    pub(super) fn offer(&mut self, group: usize, value: &[u8]) {
        let current = &self.values[group];
        if current.is_empty() || self.is_better(value, current) {
            self.set(group, value);
        }
    }

    fn array(&self, groups: usize, data_type: &DataType) -> Result<ArrayRef> {
        let present = self.values[..groups].iter().filter(|value| !value.is_empty()).map(Vec::as_slice);
        let Some(values) = self.encoder.decode(present)?.pop() else {
            return Ok(new_null_array(data_type, groups));
        };
        if values.len() == groups {
            return Ok(values);
        }
        let mut next = 0u32;
        let positions: datafusion::arrow::array::UInt32Array = self.values[..groups]
            .iter()
            .map(|value| {
                (!value.is_empty()).then(|| {
                    next += 1;
                    next - 1
                })
            })
            .collect();
        Ok(datafusion::arrow::compute::take(&values, &positions, None)?)
    }
}

/// Stored bytes that are not a state.
pub(super) fn damaged() -> Error {
    Error::Corrupted("the state of an aggregation cannot be read".to_string())
}

fn mismatch() -> Error {
    Error::Dataflow("an aggregation asks a slot for what it does not keep".to_string())
}
