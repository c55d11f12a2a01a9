//! The store in memory, for tests: what [`Store`] promises, and nothing else.
//!
//! Each key has its versions, newest last, each with the epoch that wrote it. A snapshot of epoch `E` sees of each key
//! the newest version with an epoch of at most `E`. Nothing is durable.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::RwLock;

use crate::Epoch;
use crate::error::{Error, Result};
use crate::limits;
use crate::state::layout;
use crate::state::store::{Entry, EpochBatch, Snapshot, Store, StoreStatistics, Sync};

type Versions = BTreeMap<Bytes, Vec<(Epoch, Option<Bytes>)>>;

#[derive(Debug, Default)]
struct Contents {
    epoch: Epoch,
    entries: Versions,
    bytes: u64,
}

/// The store in memory.
#[derive(Debug, Default)]
pub struct MemoryStore {
    contents: Arc<RwLock<Contents>>,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Arc<MemoryStore> {
        Arc::new(MemoryStore::default())
    }
}

impl Store for MemoryStore {
    fn commit(&self, batch: &EpochBatch, _sync: Sync) -> Result<()> {
        let mut contents = self.contents.write();
        let epoch = batch.epoch;
        if epoch <= contents.epoch {
            return Err(Error::Storage(format!("epoch {epoch} comes after epoch {}", contents.epoch)));
        }
        for (start, end) in &batch.deleted_ranges {
            if start >= end {
                continue;
            }
            for versions in contents.entries.range_mut(start.clone()..end.clone()).map(|(_, versions)| versions) {
                versions.push((epoch, None));
            }
        }
        let own = (layout::epoch_key(), Some(Bytes::copy_from_slice(&epoch.to_be_bytes())));
        for (key, value) in batch.writes.iter().chain([&own]).cloned() {
            contents.bytes += (key.len() + value.as_ref().map_or(0, Bytes::len)) as u64;
            let versions = contents.entries.entry(key).or_default();
            match versions.last_mut() {
                Some((last, old)) if *last == epoch => *old = value,
                _ => versions.push((epoch, value)),
            }
        }
        contents.epoch = epoch;
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn snapshot(&self) -> Arc<dyn Snapshot> {
        let epoch = self.contents.read().epoch;
        Arc::new(MemorySnapshot { contents: self.contents.clone(), epoch: Some(epoch) })
    }

    fn latest(&self) -> Arc<dyn Snapshot> {
        Arc::new(MemorySnapshot { contents: self.contents.clone(), epoch: None })
    }

    fn statistics(&self) -> StoreStatistics {
        StoreStatistics { disk_bytes: 0, memory_bytes: self.contents.read().bytes }
    }
}

struct MemorySnapshot {
    contents: Arc<RwLock<Contents>>,
    /// The epoch at which this view is frozen; none for the newest.
    epoch: Option<Epoch>,
}

impl MemorySnapshot {
    fn visible(&self, versions: &[(Epoch, Option<Bytes>)]) -> Option<Bytes> {
        let epoch = self.epoch.unwrap_or(Epoch::MAX);
        versions.iter().rev().find(|(written, _)| *written <= epoch).and_then(|(_, value)| value.clone())
    }

    fn block(&self, start: &Bound<Bytes>, end: &[u8]) -> Vec<Entry> {
        let contents = self.contents.read();
        let begins = match start {
            Bound::Included(key) | Bound::Excluded(key) => key,
            Bound::Unbounded => return Vec::new(),
        };
        if begins.as_ref() >= end {
            return Vec::new();
        }
        let range = (start.clone(), Bound::Excluded(Bytes::copy_from_slice(end)));
        let visible = contents
            .entries
            .range(range)
            .filter_map(|(key, versions)| self.visible(versions).map(|value| (key.clone(), value)));
        visible.take(limits::SCAN_BLOCK_ENTRIES_MAX).collect()
    }
}

impl Snapshot for MemorySnapshot {
    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        let contents = self.contents.read();
        Ok(keys.iter().map(|key| contents.entries.get(*key).and_then(|versions| self.visible(versions))).collect())
    }

    fn scan(&self, start: &[u8], end: &[u8]) -> Box<dyn Iterator<Item = Result<Entry>> + Send + '_> {
        let end = end.to_vec();
        let mut next = Bound::Included(Bytes::copy_from_slice(start));
        let mut block = Vec::new().into_iter();
        // Block by block, so that the lock is not held between calls.
        Box::new(std::iter::from_fn(move || {
            if let Some(entry) = block.next() {
                return Some(Ok(entry));
            }
            let entries = self.block(&next, &end);
            next = Bound::Excluded(entries.last()?.0.clone());
            block = entries.into_iter();
            block.next().map(Ok)
        }))
    }

    fn epoch(&self) -> Epoch {
        self.epoch.unwrap_or_else(|| self.contents.read().epoch)
    }
}
