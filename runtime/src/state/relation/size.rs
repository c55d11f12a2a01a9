//! About how many rows a relation has, from a sample of it.
//!
//! Nothing is counted while rows are written. Entries lie in partitions by the hash of their key, so that the first
//! partitions are a fair sample of all. Chunks lie in the order of their numbers, and some are large and some have one row, as they
//! came: a few are read at both ends of a range of numbers, and where they differ much the range is halved. A relation that is
//! smaller than the sample is counted.

use crate::error::Result;
use crate::limits::{PARTITIONS, SIZE_CHUNKS, SIZE_ENTRIES_MIN, SIZE_RANGES, SIZE_RANGES_MAX};
use crate::state::layout;
use crate::state::relation::chunks::read_chunk;
use crate::state::relation::{Format, RelationStorage};
use crate::state::store::Snapshot;

impl RelationStorage {
    /// About how many rows the relation has: distinct ones where equal rows are one entry, and with rows that are deleted
    /// out of chunks that are still there.
    pub fn approximate_rows(&self, snapshot: &dyn Snapshot) -> Result<u64> {
        let table = self.inner.relation.id.0;
        match &self.inner.format {
            Format::Entries(_) => entries(table, snapshot),
            Format::Chunks(_) => chunks(table, snapshot),
        }
    }
}

/// Entries of the first partitions, as a part of all.
fn entries(table: u32, snapshot: &dyn Snapshot) -> Result<u64> {
    let (start, end) = layout::table_range(table);
    let mut count = 0;
    let mut last = 0;
    for entry in snapshot.scan(&start, &end) {
        let (key, _) = entry?;
        let partition = layout::split_key(&key).map_or(0, |(_, partition, _)| partition);
        if partition != last && count >= SIZE_ENTRIES_MIN {
            // All partitions before this one were read.
            return Ok((count as f64 * f64::from(PARTITIONS) / f64::from(partition)) as u64);
        }
        last = partition;
        count += 1;
    }
    Ok(count)
}

/// Rows of chunks, by the numbers of rows at both ends of some ranges of their numbers.
fn chunks(table: u32, snapshot: &dyn Snapshot) -> Result<u64> {
    let (start, end) = layout::table_range(table);
    let Some(first) = snapshot.scan(&start, &end).next().transpose()? else { return Ok(0) };
    let Some(last) = snapshot.last(&start, &end)? else { return Ok(0) };
    let (first, end) = (number(&first.0), number(&last.0).saturating_add(1));
    let step = end.saturating_sub(first).div_ceil(SIZE_RANGES).max(1);
    let mut ranges: Vec<(u64, u64)> = Vec::new();
    let mut from = first;
    while from < end {
        let to = from.saturating_add(step).min(end);
        ranges.push((from, to));
        from = to;
    }
    let mut rows = 0.0;
    let mut looked_at = 0;
    while let Some((from, to)) = ranges.pop() {
        looked_at += 1;
        let length = to - from;
        if length <= 2 * SIZE_CHUNKS {
            rows += rows_between(table, snapshot, from, to)? as f64;
            continue;
        }
        let head = rows_between(table, snapshot, from, from + SIZE_CHUNKS)?;
        let tail = rows_between(table, snapshot, to - SIZE_CHUNKS, to)?;
        if (head > 2 * tail || tail > 2 * head) && looked_at < SIZE_RANGES_MAX {
            // What was loaded at once changes to what came row by row somewhere in between.
            let middle = from + length / 2;
            ranges.extend([(from, middle), (middle, to)]);
        } else {
            rows += (head + tail) as f64 * length as f64 / (2 * SIZE_CHUNKS) as f64;
        }
    }
    Ok(rows as u64)
}

/// Rows of all chunks in a range of numbers.
fn rows_between(table: u32, snapshot: &dyn Snapshot, from: u64, to: u64) -> Result<u64> {
    let key = |number: u64| layout::store_key(table, 0, &number.to_be_bytes());
    let mut rows = 0;
    for entry in snapshot.scan(&key(from), &key(to)) {
        rows += read_chunk(&entry?.1)?.rows() as u64;
    }
    Ok(rows)
}

/// The number of a chunk.
fn number(key: &[u8]) -> u64 {
    let number = layout::split_key(key).and_then(|(_, _, key)| key.first_chunk::<8>());
    number.map_or(0, |number| u64::from_be_bytes(*number))
}
