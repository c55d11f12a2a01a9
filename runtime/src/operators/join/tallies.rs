//! What a join that preserves rows keeps of one side: its rows, how often each is there, and how many rows it matches.
//!
//! Two layouts, as in [`super::state`], with a *tally* in place of the weight. Where several rows may share a key, an
//! entry a row: `key bytes ++ payload bytes → tally`. Where there is one, an entry a key: `key bytes → items`, each
//! `tally ++ length (u32) ++ payload`, big endian.
//!
//! A tally is the row's weight (i64) and, where matches are counted, their number (i64), both big endian. No row that is
//! kept has weight 0.

use bytes::Bytes;

use super::reach::{Stretch, merge, read};
use crate::error::{Error, Result};
use crate::state::StateTable;

/// How often a row is there, and how many rows of the other side it matches, with their multiplicities.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub weight: i64,
    /// 0 where matches are not counted.
    pub matches: i64,
}

impl Tally {
    fn to_bytes(self) -> [u8; 16] {
        // The weight is in the upper half.
        ((u128::from(self.weight as u64) << 64) | u128::from(self.matches as u64)).to_be_bytes()
    }
}

/// A kept row: payload and tally.
pub(super) type KeptRow = (Bytes, Tally);

/// The rows kept of one side.
pub(super) struct TalliedRows {
    table: StateTable,
    one_a_key: bool,
    counts_matches: bool,
}

impl TalliedRows {
    /// Rows in a table; `one_a_key` says that a key has one row at most.
    pub(super) fn new(table: StateTable, one_a_key: bool, counts_matches: bool) -> Self {
        TalliedRows { table, one_a_key, counts_matches }
    }

    /// Whether an entry holds all rows of its key.
    pub(super) fn one_a_key(&self) -> bool {
        self.one_a_key
    }

    /// The rows under each of these keys, where there is one entry a key.
    pub(super) fn of_keys(&self, keys: &[(u16, &[u8])]) -> Result<Vec<Vec<KeptRow>>> {
        let values = self.table.get_many(keys)?.into_iter();
        values.map(|value| value.map_or_else(|| Ok(Vec::new()), |value| self.items(value))).collect()
    }

    /// The rows under a key, in the order of their payloads, where there is one entry a row.
    pub(super) fn of_key(&self, partition: u16, key: &[u8]) -> Result<Vec<KeptRow>> {
        let entries = self.table.scan_prefix(partition, key)?.into_iter();
        entries.map(|(entry, tally)| Ok((entry.slice(key.len()..), self.decode(&tally)?.0))).collect()
    }

    /// The rows under a key within these stretches, in the order of their payloads, where there is one entry a row.
    pub(super) fn within<'a>(
        &self,
        partition: u16,
        key: &[u8],
        stretches: impl IntoIterator<Item = &'a Stretch>,
    ) -> Result<Vec<KeptRow>> {
        let mut rows = Vec::new();
        for stretch in merge(stretches) {
            read(&self.table, partition, key, stretch, |payload, tally| {
                rows.push((payload, self.decode(&tally)?.0));
                Ok(())
            })?;
        }
        Ok(rows)
    }

    /// The tallies of rows, each given by key and payload, where there is one entry a row.
    pub(super) fn tallies(&self, rows: &[(u16, &[u8])]) -> Result<Vec<Tally>> {
        let values = self.table.get_many(rows)?.into_iter();
        values.map(|value| value.map_or(Ok(Tally::default()), |value| Ok(self.decode(&value)?.0))).collect()
    }

    /// Whether there is a row under a key.
    pub(super) fn any(&self, partition: u16, key: &[u8]) -> Result<bool> {
        Ok(self.table.first_with_prefix(partition, key)?.is_some())
    }

    /// Keeps a row, given by key and payload, where there is one entry a row.
    pub(super) fn put(&self, partition: u16, row: &[u8], tally: Tally) {
        match tally.weight {
            0 => self.table.delete(partition, row),
            _ => self.table.put_slice(partition, row, &tally.to_bytes()[..self.tally_length()]),
        }
    }

    /// Keeps these rows of a key and no others, where there is one entry a key.
    pub(super) fn put_all<'a>(&self, partition: u16, key: &[u8], rows: impl Iterator<Item = (&'a [u8], Tally)>) {
        let mut items = Vec::new();
        for (payload, tally) in rows.filter(|(_, tally)| tally.weight != 0) {
            items.extend_from_slice(&tally.to_bytes()[..self.tally_length()]);
            // A payload is a row of a batch, whose offsets are 32 bits wide.
            items.extend_from_slice(&(payload.len() as u32).to_be_bytes());
            items.extend_from_slice(payload);
        }
        match items.is_empty() {
            true => self.table.delete(partition, key),
            false => self.table.put_slice(partition, key, &items),
        }
    }

    fn tally_length(&self) -> usize {
        if self.counts_matches { 16 } else { 8 }
    }

    fn decode<'a>(&self, bytes: &'a [u8]) -> Result<(Tally, &'a [u8])> {
        let (weight, rest) = bytes.split_first_chunk().ok_or_else(damaged)?;
        let (matches, rest) = match self.counts_matches {
            true => rest.split_first_chunk().map(|(matches, rest)| (*matches, rest)).ok_or_else(damaged)?,
            false => ([0; 8], rest),
        };
        Ok((Tally { weight: i64::from_be_bytes(*weight), matches: i64::from_be_bytes(matches) }, rest))
    }

    /// Reads the items of a value, in the order of their payloads.
    fn items(&self, value: Bytes) -> Result<Vec<KeptRow>> {
        let mut rows = Vec::with_capacity(1);
        let mut rest = value.as_ref();
        while !rest.is_empty() {
            let (tally, after) = self.decode(rest)?;
            let (length, after) = after.split_first_chunk().ok_or_else(damaged)?;
            let (payload, after) = after.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(damaged)?;
            rows.push((value.slice_ref(payload), tally));
            rest = after;
        }
        rows.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(rows)
    }
}

fn damaged() -> Error {
    Error::Corrupted("a row in the state of a join".to_string())
}
