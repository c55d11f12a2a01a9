//! A snapshot with writes on top that are not in the store yet: what a transaction sees of its own.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;

use crate::Epoch;
use crate::error::Result;
use crate::state::store::{Entry, Snapshot, Write};

/// A snapshot seen through writes: where there is a write, it hides what the snapshot has.
pub struct OverlaySnapshot {
    base: Arc<dyn Snapshot>,
    writes: Arc<BTreeMap<Bytes, Option<Bytes>>>,
    deleted_ranges: Vec<(Bytes, Bytes)>,
}

impl OverlaySnapshot {
    /// The snapshot as it would be after deleting the ranges and then applying the writes.
    pub fn new(
        base: Arc<dyn Snapshot>,
        writes: Arc<BTreeMap<Bytes, Option<Bytes>>>,
        deleted_ranges: Vec<(Bytes, Bytes)>,
    ) -> Self {
        OverlaySnapshot { base, writes, deleted_ranges }
    }

    /// The snapshot as it would be after the writes; of several under one key the last counts.
    pub fn from_writes(base: Arc<dyn Snapshot>, writes: impl IntoIterator<Item = Write>) -> Self {
        OverlaySnapshot::new(base, Arc::new(writes.into_iter().collect()), Vec::new())
    }

    fn is_deleted(&self, key: &[u8]) -> bool {
        self.deleted_ranges.iter().any(|(start, end)| start.as_ref() <= key && key < end.as_ref())
    }
}

impl Snapshot for OverlaySnapshot {
    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        let mut values = self.base.get_many(keys)?;
        for (key, value) in keys.iter().zip(&mut values) {
            if let Some(written) = self.writes.get(*key) {
                *value = written.clone();
            } else if self.is_deleted(key) {
                *value = None;
            }
        }
        Ok(values)
    }

    fn scan(&self, start: &[u8], end: &[u8]) -> Box<dyn Iterator<Item = Result<Entry>> + Send + '_> {
        if start >= end {
            return Box::new(std::iter::empty());
        }
        let range = (Bound::Included(Bytes::copy_from_slice(start)), Bound::Excluded(Bytes::copy_from_slice(end)));
        let mut written = self.writes.range(range).peekable();
        let mut stored = self.base.scan(start, end).peekable();
        Box::new(std::iter::from_fn(move || {
            loop {
                let stored_key = match stored.peek() {
                    Some(Ok((key, _))) => Some(key),
                    Some(Err(_)) => return stored.next(),
                    None => None,
                };
                match (written.peek(), stored_key) {
                    (None, None) => return None,
                    (Some((key, _)), other) if other.is_none_or(|other| *key <= other) => {
                        if other == Some(*key) {
                            stored.next();
                        }
                        if let Some((key, Some(value))) = written.next() {
                            return Some(Ok((key.clone(), value.clone())));
                        }
                    }
                    _ => match stored.next() {
                        Some(Ok((key, _))) if self.is_deleted(&key) => {}
                        entry => return entry,
                    },
                }
            }
        }))
    }

    fn epoch(&self) -> Epoch {
        self.base.epoch()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::memory::MemoryStore;
    use crate::state::store::{EpochBatch, Store, Sync};

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn writes_hide_what_is_stored() {
        let store = MemoryStore::new();
        let writes = ["a", "c", "e", "x"].map(|key| (bytes(key), Some(bytes("old")))).to_vec();
        store.commit(&EpochBatch { epoch: 1, writes, deleted_ranges: vec![] }, Sync::Later).unwrap();
        let writes = [("b", Some("new")), ("c", None), ("e", Some("new")), ("y", Some("new"))];
        let writes = writes.map(|(key, value)| (bytes(key), value.map(bytes)));
        let mut overlay = OverlaySnapshot::from_writes(store.snapshot(), writes);
        overlay.deleted_ranges.push((bytes("x"), bytes("z")));
        let seen: Vec<_> = overlay.scan(b"a", b"zz").map(|entry| entry.unwrap()).collect();
        let expected = [("a", "old"), ("b", "new"), ("e", "new"), ("y", "new")];
        assert_eq!(seen, expected.map(|(key, value)| (bytes(key), bytes(value))));
        let values = overlay.get_many(&[b"a", b"b", b"c", b"x"]).unwrap();
        assert_eq!(values, [Some(bytes("old")), Some(bytes("new")), None, None]);
    }
}
