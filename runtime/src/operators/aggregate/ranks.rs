//! Percentiles: for each group the row at a rank, found again from where it was.
//!
//! Kept are the row, how many rows are before the first one equal to it, and how many there are. A change moves the rank by
//! as many rows as it adds or takes away, and so many values of the ordered set are looked at, however large the group is.

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, new_null_array};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;

use super::ValueForm;
use super::slots::damaged;
use super::values::{Updated, ValueChanges, ValueEncoder, Values};
use crate::error::Result;
use crate::functions::aggregate::codec;
use crate::functions::aggregate::ordered::percentile::{Ranks, interpolate};

/// The rows at a rank of groups.
#[derive(Debug)]
pub(super) struct RankStates {
    ranks: Ranks,
    fraction: f64,
    encoder: ValueEncoder,
    states: Vec<RankState>,
}

/// Of one group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct RankState {
    /// How many rows there are.
    total: i64,
    /// How many are less than the row.
    before: i64,
    /// The row; nothing if there are none.
    lower: Vec<u8>,
    /// The row up to which is interpolated.
    upper: Vec<u8>,
}

impl RankStates {
    /// Without groups. The types are those of the rows.
    pub(super) fn new(ranks: Ranks, fraction: f64, types: &[DataType], form: &ValueForm) -> Result<Self> {
        Ok(RankStates { ranks, fraction, encoder: ValueEncoder::new(types, form)?, states: Vec::new() })
    }

    pub(super) fn resize(&mut self, groups: usize) {
        self.states.resize_with(groups, RankState::default);
    }

    pub(super) fn encode(&self, group: usize, out: &mut Vec<u8>) {
        let state = &self.states[group];
        codec::put_signed(out, i128::from(state.total));
        codec::put_signed(out, i128::from(state.before));
        codec::put_bytes(out, &state.lower);
        codec::put_bytes(out, &state.upper);
    }

    /// Takes over the state that bytes hold.
    pub(super) fn take_encoded(&mut self, group: usize, input: &mut &[u8]) -> Option<()> {
        self.states[group] = RankState {
            total: codec::take_i64(input)?,
            before: codec::take_i64(input)?,
            lower: codec::take_bytes(input)?.to_vec(),
            upper: codec::take_bytes(input)?.to_vec(),
        };
        Some(())
    }

    /// Follows what an epoch changed in the values of a group.
    pub(super) fn follow(
        &mut self,
        group: usize,
        updated: &Updated,
        changes: &ValueChanges,
        values: &Values<'_>,
    ) -> Result<()> {
        let changed = updated.changed(group);
        if changed.is_empty() {
            return Ok(());
        }
        let state = &mut self.states[group];
        for entry in changed {
            let weight = changes.weight(*entry);
            state.total += weight;
            if changes.value(*entry) < state.lower.as_slice() {
                state.before += weight;
            }
        }
        if state.total <= 0 {
            *state = RankState::default();
            return Ok(());
        }
        let (lower, upper, _) = self.ranks.of(self.fraction, state.total);
        let mut at = Bytes::copy_from_slice(&state.lower);
        let mut before = state.before;
        while before > lower {
            let (value, count) = values.previous(&at)?.ok_or_else(damaged)?;
            at = value;
            before -= count;
        }
        let mut next = values.from(&at);
        let (mut value, mut count) = next.next().ok_or_else(damaged)??;
        while before + count <= lower {
            before += count;
            (value, count) = next.next().ok_or_else(damaged)??;
        }
        (state.before, state.lower) = (before, value.to_vec());
        state.upper =
            if upper < before + count { value.to_vec() } else { next.next().ok_or_else(damaged)??.0.to_vec() };
        Ok(())
    }

    /// The percentiles of the first so many groups.
    pub(super) fn results(&self, groups: usize, data_type: &DataType) -> Result<ArrayRef> {
        let null = ScalarValue::try_from(data_type)?;
        let present = || self.states[..groups].iter().filter(|state| state.total > 0);
        let column = |row: fn(&RankState) -> &[u8]| -> Result<Option<ArrayRef>> {
            Ok(self.encoder.decode(present().map(row))?.into_iter().next())
        };
        let (Some(lower), Some(upper)) = (column(|state| &state.lower)?, column(|state| &state.upper)?) else {
            return Ok(new_null_array(data_type, groups));
        };
        let mut results = Vec::with_capacity(groups);
        let mut row = 0;
        for state in &self.states[..groups] {
            if state.total <= 0 {
                results.push(null.clone());
                continue;
            }
            let part = self.ranks.of(self.fraction, state.total).2;
            let (from, to) = (ScalarValue::try_from_array(&lower, row)?, ScalarValue::try_from_array(&upper, row)?);
            results.push(interpolate(from, to, part)?);
            row += 1;
        }
        Ok(ScalarValue::iter_to_array(results)?)
    }
}
