//! The rows around changes that they may reach, out of the order of their partition.

use std::cmp::Ordering;

use bytes::Bytes;
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, TimeUnit, TimestampMicrosecondType};

use super::reach::Reach;
use crate::error::Result;
use crate::limits::WINDOW_SLICES_MAX;
use crate::operators::ordered::{Change, Changed, Counted, OrderedRows};
use crate::state::StateTable;
use crate::state::relation::decode_count;

/// How many entries are read first to find the end of a session; then twice as many, and so on.
const SESSION_ENTRIES: usize = 16;

/// Rows of partitions as they are stored.
pub(super) struct Neighbours<'a> {
    pub(super) rows: &'a StateTable,
    pub(super) ordered: &'a OrderedRows,
}

/// Entries on one side of a row, the nearest first.
type Side = Vec<(Bytes, Bytes)>;

impl Neighbours<'_> {
    /// The rows that the changes of a partition may reach and those that must be seen with them, as they are before the
    /// changes.
    pub(super) fn of(&self, changed: &Changed<'_>, reach: Reach) -> Result<Counted> {
        match changed.rows.len() <= WINDOW_SLICES_MAX {
            true => self.around(changed, reach),
            false => self.first_to_last(changed, reach),
        }
    }

    /// Those around every change.
    fn around(&self, changed: &Changed<'_>, reach: Reach) -> Result<Counted> {
        let mut found: Counted = Vec::new();
        for change in &changed.rows {
            let last = found.last().map(|(key, _)| key.clone());
            let known = |entry: &Bytes| last.as_ref().is_some_and(|last| entry <= last);
            let back = self.back(changed, change, reach)?;
            let ahead = self.ahead(changed, change, reach)?;
            for (entry, count) in back.into_iter().rev().chain(ahead) {
                if !known(&entry) {
                    found.push((entry, decode_count(&count)?));
                }
            }
        }
        Ok(found)
    }

    /// Those from before the first change to behind the last one.
    fn first_to_last(&self, changed: &Changed<'_>, reach: Reach) -> Result<Counted> {
        let (Some(first), Some(last)) = (changed.rows.first(), changed.rows.last()) else { return Ok(Vec::new()) };
        let back = self.back(changed, first, reach)?;
        let from = back.last().map_or(first.entry, |(entry, _)| entry.as_ref());
        let ahead = self.ahead(changed, last, reach)?;
        let end = behind(ahead.last().map_or(last.entry, |(entry, _)| entry.as_ref()));
        let found = self.rows.scan_range(changed.partition, from, Some(&end), usize::MAX)?;
        found.into_iter().map(|(row, count)| Ok((row, decode_count(&count)?))).collect()
    }

    /// The entries before a change.
    fn back(&self, changed: &Changed<'_>, change: &Change<'_>, reach: Reach) -> Result<Side> {
        let (partition, key) = (changed.partition, changed.key);
        match reach {
            Reach::Rows(rows) => self.rows.last_entries_before(partition, key, change.entry, 2 * rows),
            Reach::Session { time, gap } => {
                let read = |from: &[u8], limit| self.rows.last_entries_before(partition, key, from, limit);
                self.session(change, time, read, |from| from.to_vec(), |nearer, farther| gap.bridges(farther, nearer))
            }
        }
    }

    /// The changed row itself, if it is there, and the entries behind it.
    fn ahead(&self, changed: &Changed<'_>, change: &Change<'_>, reach: Reach) -> Result<Side> {
        let (partition, key) = (changed.partition, changed.key);
        match reach {
            Reach::Rows(rows) => self.rows.first_entries_from(partition, key, change.entry, 2 * rows + 1),
            Reach::Session { time, gap } => {
                let read = |from: &[u8], limit| self.rows.first_entries_from(partition, key, from, limit);
                self.session(change, time, read, behind, |nearer, farther| gap.bridges(nearer, farther))
            }
        }
    }

    /// The entries to one side of a change for as long as each is `near` the one before it. `read` reads so many in that
    /// direction, `next` is where it goes on.
    fn session(
        &self,
        change: &Change<'_>,
        time: usize,
        read: impl Fn(&[u8], usize) -> Result<Side>,
        next: impl Fn(&[u8]) -> Vec<u8>,
        near: impl Fn(i64, i64) -> bool,
    ) -> Result<Side> {
        let mut found: Side = Vec::new();
        let mut last = self.times(time, &[change.entry])?.first().copied().flatten();
        let mut from = change.entry.to_vec();
        let mut limit = SESSION_ENTRIES;
        loop {
            let entries = read(&from, limit)?;
            let keys: Vec<&[u8]> = entries.iter().map(|(entry, _)| entry.as_ref()).collect();
            let times = self.times(time, &keys)?;
            let (number, furthest) = (entries.len(), keys.last().map(|key| next(key)));
            for (entry, here) in entries.into_iter().zip(times) {
                let is_near = match (last, here) {
                    (Some(last), Some(here)) => near(last, here),
                    _ => false,
                };
                // The changed row is in its own session, also if it has no time.
                if !is_near && entry.0.as_ref().cmp(change.entry) != Ordering::Equal {
                    return Ok(found);
                }
                last = here;
                found.push(entry);
            }
            match furthest {
                Some(next) if number == limit => from = next,
                _ => return Ok(found),
            }
            limit *= 2;
        }
    }

    /// The times of rows in microseconds.
    fn times(&self, column: usize, entries: &[&[u8]]) -> Result<Vec<Option<i64>>> {
        if entries.is_empty() {
            return Ok(Vec::new());
        }
        let columns = self.ordered.decode(entries)?;
        // A number of microseconds is the same with and without a time zone.
        let zone = match columns[column].data_type() {
            DataType::Timestamp(_, zone) => zone.clone(),
            _ => None,
        };
        let times = cast(&columns[column], &DataType::Timestamp(TimeUnit::Microsecond, zone))?;
        let times = times.as_primitive::<TimestampMicrosecondType>();
        Ok((0..times.len()).map(|row| times.is_valid(row).then(|| times.value(row))).collect())
    }
}

/// The first key behind one.
fn behind(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}
