//! Which rows of an ordered side a row of the other side may meet.
//!
//! Rows of an ordered side are kept under their key as `failed ++ order ++ payload` (see [`super::kept`]): in the order of
//! the expression's values as key bytes, those for which it is NULL before all others. `failed` is there only for an
//! expression that may fail, and true for the rows for which it does; these stand at the end.
//!
//! A *stretch* is all that is kept from one such string of bytes to before another one. What a row meets follows from its
//! bounds: nothing if one is NULL; else what lies between them, and the rows for which the order fails. A bound that fails
//! bounds nothing. Rows with NULL for their order meet none (see [`super::condition`]).

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, new_null_array};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::DataType;

use super::ranges::Order;
use crate::delta::Delta;
use crate::delta::key::{KeyEncoder, normalise};
use crate::error::{Error, Result};
use crate::state::StateTable;
use crate::state::layout::prefix_end;

/// Entries that are read at once: more would only take memory.
const ENTRIES_MAX: usize = 1 << 16;

/// Greater than the first byte of any value.
const PAST_ALL: u8 = 0xff;

/// Finds stretches of a side.
pub(super) struct Reach {
    order: Order,
    encoder: KeyEncoder,
    /// Before the values of the order where it may fail.
    prefix: Vec<u8>,
    /// Before all values that are not NULL.
    first_value: Vec<u8>,
    /// The rows for which it fails.
    failed: Option<Stretch>,
}

/// From one string of bytes to before another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) start: Vec<u8>,
    pub(super) end: Vec<u8>,
}

/// The stretches of the rows of a delta.
#[derive(Debug)]
pub(super) struct Reaches {
    /// Nothing for rows that meet none.
    of_rows: Vec<Option<Stretch>>,
    /// What all others meet too.
    failed: Option<Stretch>,
}

impl Reaches {
    /// The stretches of a row, in order.
    pub(super) fn of(&self, row: usize) -> impl Iterator<Item = &Stretch> {
        self.of_rows[row].iter().flat_map(|stretch| std::iter::once(stretch).chain(&self.failed))
    }
}

/// What a row is ordered by, as columns: whether it failed (where it may) and the value.
pub(super) fn order_columns(order: &Order, delta: &Delta) -> Result<Vec<ArrayRef>> {
    let (values, failed) = order.expression.evaluate_or_null(0, delta.batch())?;
    let values = normalise(&compute::cast(&values, &order.data_type)?);
    if !order.may_fail {
        return Ok(vec![values]);
    }
    // NULL or true.
    let failed: BooleanArray = match failed {
        Some(failed) => failed.iter().map(|failed| failed.filter(|failed| *failed)).collect(),
        None => BooleanArray::new_null(delta.len()),
    };
    Ok(vec![Arc::new(failed), values])
}

impl Reach {
    /// Stretches in this order.
    pub(super) fn new(order: &Order) -> Result<Self> {
        let encoder = KeyEncoder::new(std::slice::from_ref(&order.data_type))?;
        let no_end = || Error::Dataflow(format!("internal error: values of type {} have no order", order.data_type));
        let (mut prefix, mut failed) = (Vec::new(), None);
        if order.may_fail {
            let flags: ArrayRef = Arc::new(BooleanArray::from(vec![None, Some(true)]));
            let flags = KeyEncoder::new(&[DataType::Boolean])?.encode(&[flags])?;
            prefix = flags.row(0).to_vec();
            let start = flags.row(1).to_vec();
            failed = Some(Stretch { end: prefix_end(&start).ok_or_else(no_end)?, start });
        }
        let null = encoder.encode(&[new_null_array(&order.data_type, 1)])?;
        let first_value = prefix_end(&joined(&prefix, null.row(0))).ok_or_else(no_end)?;
        Ok(Reach { order: order.clone(), encoder, prefix, first_value, failed })
    }

    /// The stretches that rows of the other side meet; one with an end before its start is empty.
    pub(super) fn of(&self, delta: &Delta) -> Result<Reaches> {
        let mut bounds = Vec::with_capacity(self.order.ends.len());
        for index in 0..self.order.ends.len() {
            let (values, failed) = self.order.bounds.evaluate_or_null(index, delta.batch())?;
            let values = compute::cast(&values, &self.order.data_type)?;
            let keys = self.encoder.encode(std::slice::from_ref(&values))?;
            bounds.push((values.logical_nulls(), failed, keys));
        }
        let mut of_rows = Vec::with_capacity(delta.len());
        for row in 0..delta.len() {
            let mut stretch = Stretch { start: self.first_value.clone(), end: joined(&self.prefix, &[PAST_ALL]) };
            let mut any_null = false;
            for ((nulls, failed, keys), end) in bounds.iter().zip(&self.order.ends) {
                if failed.as_ref().is_some_and(|failed| failed.value(row)) {
                    continue;
                }
                any_null |= nulls.as_ref().is_some_and(|nulls| nulls.is_null(row));
                let value = joined(&self.prefix, keys.row(row));
                // Nothing begins with the bytes of a value but what has it.
                let past = end.is_upper == end.is_inclusive;
                let limit = if past { prefix_end(&value).unwrap_or(value) } else { value };
                match end.is_upper {
                    true => stretch.end = stretch.end.min(limit),
                    false => stretch.start = stretch.start.max(limit),
                }
            }
            of_rows.push((!any_null).then_some(stretch));
        }
        Ok(Reaches { of_rows, failed: self.failed.clone() })
    }
}

fn joined(first: &[u8], second: &[u8]) -> Vec<u8> {
    [first, second].concat()
}

/// Reads the entries of a key from one string after it to before another, some at a time: `found(rest of key, value)`.
pub(super) fn read(
    table: &StateTable,
    partition: u16,
    key: &[u8],
    (start, end): (&[u8], &[u8]),
    mut found: impl FnMut(Bytes, Bytes) -> Result<()>,
) -> Result<()> {
    let (mut start, end) = (joined(key, start), joined(key, end));
    loop {
        let entries = table.entries_between(partition, key, &start[..]..&end[..], ENTRIES_MAX)?;
        let count = entries.len();
        if let Some((last, _)) = entries.last().filter(|_| count == ENTRIES_MAX) {
            // The least key after it.
            start = joined(last, &[0]);
        }
        for (entry, value) in entries {
            found(entry.slice(key.len()..), value)?;
        }
        if count < ENTRIES_MAX {
            return Ok(());
        }
    }
}

/// Stretches in order, those that overlap or touch made one.
pub(super) fn merge<'a>(stretches: impl IntoIterator<Item = &'a Stretch>) -> Vec<(&'a [u8], &'a [u8])> {
    let mut sorted: Vec<(&[u8], &[u8])> =
        stretches.into_iter().map(|stretch| (&stretch.start[..], &stretch.end[..])).collect();
    sorted.sort_unstable();
    let mut merged: Vec<(&[u8], &[u8])> = Vec::new();
    for (start, end) in sorted.into_iter().filter(|(start, end)| start < end) {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

/// Walks through kept rows in order, and knows at each which rows of a delta meet it.
pub(super) struct Sweep<'a> {
    /// Stretches by their start, with the row of the delta.
    coming: std::iter::Peekable<std::vec::IntoIter<(&'a Stretch, u32)>>,
    ends: Vec<&'a [u8]>,
    rows: Vec<u32>,
}

impl<'a> Sweep<'a> {
    /// Over the stretches of these rows.
    pub(super) fn new(reaches: &'a Reaches, rows: &[u32]) -> Self {
        let stretches = rows.iter().flat_map(|row| reaches.of(*row as usize).map(move |stretch| (stretch, *row)));
        let mut stretches: Vec<(&Stretch, u32)> = stretches.collect();
        stretches.sort_unstable_by(|left, right| (&left.0.start, left.1).cmp(&(&right.0.start, right.1)));
        Sweep { coming: stretches.into_iter().peekable(), ends: Vec::new(), rows: Vec::new() }
    }

    /// The rows that meet what is kept here. Places must be asked in order.
    pub(super) fn at(&mut self, place: &[u8]) -> &[u32] {
        let mut index = 0;
        while let Some(end) = self.ends.get(index) {
            if *end <= place {
                self.ends.swap_remove(index);
                self.rows.swap_remove(index);
            } else {
                index += 1;
            }
        }
        while let Some((stretch, row)) = self.coming.next_if(|(stretch, _)| stretch.start[..] <= *place) {
            if stretch.end[..] > *place {
                self.ends.push(&stretch.end);
                self.rows.push(row);
            }
        }
        &self.rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(start: &str, end: &str) -> Stretch {
        Stretch { start: start.into(), end: end.into() }
    }

    #[test]
    fn overlapping_stretches_are_read_once() {
        let stretches = [stretch("f", "h"), stretch("a", "c"), stretch("b", "d"), stretch("d", "e"), stretch("z", "i")];
        let merged = merge(&stretches);
        assert_eq!(merged, [(&b"a"[..], &b"e"[..]), (b"f", b"h")]);
    }

    #[test]
    fn a_sweep_knows_who_meets() {
        let of_rows = vec![Some(stretch("a", "c")), None, Some(stretch("b", "e"))];
        let reaches = Reaches { of_rows, failed: Some(stretch("x", "y")) };
        let mut sweep = Sweep::new(&reaches, &[0, 1, 2]);
        let mut at = |place: &str| {
            let mut rows = sweep.at(place.as_bytes()).to_vec();
            rows.sort_unstable();
            rows
        };
        assert_eq!(at("a"), [0]);
        assert_eq!(at("bb"), [0, 2]);
        assert_eq!(at("c"), [2]);
        assert_eq!(at("e"), Vec::<u32>::new());
        assert_eq!(at("xx"), [0, 2]);
    }
}
