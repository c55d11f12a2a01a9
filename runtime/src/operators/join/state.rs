//! What a join keeps of one side: its rows, found by key.
//!
//! Two layouts. Where the side's keys are not unique, an entry a row:
//! `key bytes ++ payload bytes → weight (i64, big endian)`, never 0; the rows of a key are the entries under its prefix.
//! Where they are unique, an entry a key: `key bytes → items`, each `weight (i64) ++ length (u32) ++ payload`, big endian.
//! There is one item then, but while an epoch is being absorbed a new row may come before the old one goes.
//! Rows in an order ([`super::reach`]) are always in the first layout.
//!
//! The payload is the row without the columns that the key tells exactly. The partition is that of the key bytes.

use bytes::Bytes;

use super::reach::{Reaches, Sweep, merge, read};
use crate::delta::consolidate::{Groups, group};
use crate::delta::key::{Keys, partition_of_hash};
use crate::delta::rows::EncodedRows;
use crate::error::{Error, Result};
use crate::state::StateTable;

/// The rows kept of one side.
pub(super) struct SideState {
    table: StateTable,
    unique_keys: bool,
    adds_new_rows_only: bool,
}

/// Rows of a delta, by key, as they are added.
pub(super) struct Added<'a> {
    pub keys: &'a Keys,
    pub groups: &'a Groups,
    pub payloads: &'a EncodedRows,
    pub weights: Option<&'a [i64]>,
}

impl Added<'_> {
    fn weight(&self, row: usize) -> i64 {
        self.weights.map_or(1, |weights| weights[row])
    }

    fn partition(&self, row: usize) -> u16 {
        partition_of_hash(self.groups.hashes[self.groups.of_row[row] as usize])
    }
}

impl SideState {
    pub(super) fn new(table: StateTable, unique_keys: bool, adds_new_rows_only: bool) -> Self {
        SideState { table, unique_keys, adds_new_rows_only }
    }

    /// The rows kept under each of the keys: `found(group, weight, payload)`, groups in order.
    pub(super) fn find(
        &self,
        keys: &Keys,
        groups: &Groups,
        mut found: impl FnMut(usize, i64, Bytes) -> Result<()>,
    ) -> Result<()> {
        if self.unique_keys {
            let wanted = wanted(keys, groups);
            for (index, value) in self.table.get_many(&wanted)?.into_iter().enumerate() {
                for (weight, payload) in value.map(Items::new).into_iter().flatten() {
                    found(index, weight, payload)?;
                }
            }
            return Ok(());
        }
        for (index, (row, hash)) in groups.first_rows.iter().zip(&groups.hashes).enumerate() {
            let key = keys.row(*row as usize);
            for (entry, weight) in self.table.scan_prefix(partition_of_hash(*hash), key)? {
                found(index, weight_of(&weight)?, entry.slice(key.len()..))?;
            }
        }
        Ok(())
    }

    /// The rows kept under each of the keys within reach of its rows: `found(rows of the delta, weight, payload)`.
    pub(super) fn find_within(
        &self,
        keys: &Keys,
        groups: &Groups,
        reaches: &Reaches,
        mut found: impl FnMut(&[u32], i64, Bytes) -> Result<()>,
    ) -> Result<()> {
        let (starts, members) = groups.members();
        for (group, (first, hash)) in groups.first_rows.iter().zip(&groups.hashes).enumerate() {
            let (key, partition) = (keys.row(*first as usize), partition_of_hash(*hash));
            let rows = &members[starts[group] as usize..starts[group + 1] as usize];
            let mut sweep = Sweep::new(reaches, rows);
            for stretch in merge(rows.iter().flat_map(|row| reaches.of(*row as usize))) {
                read(&self.table, partition, key, stretch, |payload, weight| {
                    let rows = sweep.at(&payload);
                    found(rows, weight_of(&weight)?, payload)
                })?;
            }
        }
        Ok(())
    }

    /// Adds rows with their weights.
    pub(super) fn add(&self, added: &Added<'_>) -> Result<()> {
        match (self.unique_keys, self.adds_new_rows_only) {
            (true, true) => self.put_items(added),
            (true, false) => self.merge_items(added),
            (false, true) => self.put_rows(added),
            (false, false) => self.merge_rows(added),
        }
    }

    fn put_items(&self, added: &Added<'_>) -> Result<()> {
        for row in 0..added.payloads.len() {
            let mut items = Vec::with_capacity(ITEM_HEADER + added.payloads.row(row).len());
            push_item(&mut items, added.weight(row), added.payloads.row(row));
            self.table.put(added.partition(row), added.keys.row(row), items);
        }
        Ok(())
    }

    fn merge_items(&self, added: &Added<'_>) -> Result<()> {
        let wanted = wanted(added.keys, added.groups);
        let values = self.table.get_many(&wanted)?;
        let (starts, rows) = added.groups.members();
        for (index, value) in values.into_iter().enumerate() {
            let (partition, key) = wanted[index];
            let before: Vec<(i64, Bytes)> = value.map(Items::new).into_iter().flatten().collect();
            let mut after: Vec<(i64, &[u8])> = before.iter().map(|(weight, row)| (*weight, row.as_ref())).collect();
            for row in &rows[starts[index] as usize..starts[index + 1] as usize] {
                let (weight, payload) = (added.weight(*row as usize), added.payloads.row(*row as usize));
                match after.iter_mut().find(|(_, other)| *other == payload) {
                    Some((sum, _)) => *sum += weight,
                    None => after.push((weight, payload)),
                }
            }
            let mut items = Vec::with_capacity(after.iter().map(|(_, row)| ITEM_HEADER + row.len()).sum());
            for (weight, payload) in after.iter().filter(|(weight, _)| *weight != 0) {
                push_item(&mut items, *weight, payload);
            }
            match items.is_empty() {
                true => self.table.delete(partition, key),
                false => self.table.put(partition, key, items),
            }
        }
        Ok(())
    }

    fn put_rows(&self, added: &Added<'_>) -> Result<()> {
        let mut entry = Vec::new();
        for row in 0..added.payloads.len() {
            entry.clear();
            entry.extend_from_slice(added.keys.row(row));
            entry.extend_from_slice(added.payloads.row(row));
            self.table.put_slice(added.partition(row), &entry, &ONE);
        }
        Ok(())
    }

    fn merge_rows(&self, added: &Added<'_>) -> Result<()> {
        let count = added.payloads.len();
        let mut bytes = Vec::new();
        let mut ends = Vec::with_capacity(count);
        for row in 0..count {
            bytes.extend_from_slice(added.keys.row(row));
            bytes.extend_from_slice(added.payloads.row(row));
            ends.push(bytes.len());
        }
        let entry = |row: usize| &bytes[if row == 0 { 0 } else { ends[row - 1] }..ends[row]];
        let same = group(count, entry);
        let mut changes = vec![0i64; same.len()];
        for (row, group) in same.of_row.iter().enumerate() {
            changes[*group as usize] += added.weight(row);
        }
        let wanted: Vec<(u16, &[u8])> =
            same.first_rows.iter().map(|row| (added.partition(*row as usize), entry(*row as usize))).collect();
        for (index, value) in self.table.get_many(&wanted)?.into_iter().enumerate() {
            let (partition, entry) = wanted[index];
            let before = value.as_deref().map_or(Ok(0), weight_of)?;
            match before + changes[index] {
                after if after == before => {}
                0 => self.table.delete(partition, entry),
                1 => self.table.put_slice(partition, entry, &ONE),
                after => self.table.put(partition, entry, after.to_be_bytes().to_vec()),
            }
        }
        Ok(())
    }
}

/// The weight of nearly all rows, shared by their entries.
static ONE: [u8; 8] = 1i64.to_be_bytes();

/// Bytes of an item before its payload.
const ITEM_HEADER: usize = 12;

fn wanted<'a>(keys: &'a Keys, groups: &Groups) -> Vec<(u16, &'a [u8])> {
    let rows = groups.first_rows.iter().zip(&groups.hashes);
    rows.map(|(row, hash)| (partition_of_hash(*hash), keys.row(*row as usize))).collect()
}

fn weight_of(bytes: &[u8]) -> Result<i64> {
    let bytes = bytes.try_into().map_err(|_| Error::Corrupted("a weight in the state of a join".to_string()))?;
    Ok(i64::from_be_bytes(bytes))
}

fn push_item(items: &mut Vec<u8>, weight: i64, payload: &[u8]) {
    items.extend_from_slice(&weight.to_be_bytes());
    // A payload is a row of a batch, whose offsets are 32 bits wide.
    items.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    items.extend_from_slice(payload);
}

/// Reads the items of a value.
struct Items(Bytes);

impl Items {
    fn new(value: Bytes) -> Self {
        Items(value)
    }
}

impl Iterator for Items {
    type Item = (i64, Bytes);

    fn next(&mut self) -> Option<(i64, Bytes)> {
        let (weight, rest) = self.0.split_first_chunk::<8>()?;
        let (length, _) = rest.split_first_chunk::<4>()?;
        let (weight, length) = (i64::from_be_bytes(*weight), u32::from_be_bytes(*length) as usize);
        let end = ITEM_HEADER + length;
        assert!(end <= self.0.len(), "an item in the state of a join is cut off");
        let payload = self.0.slice(ITEM_HEADER..end);
        self.0 = self.0.slice(end..);
        Some((weight, payload))
    }
}
