//! The store: ordered entries, snapshots, and one atomic batch an epoch.

use std::sync::Arc;

use bytes::Bytes;

use crate::Epoch;
use crate::error::Result;

/// A change to the store: the value to put under a key, or none to delete it. Keys are whole store keys (with
/// table id and partition).
pub type Write = (Bytes, Option<Bytes>);

/// An entry read from the store.
pub type Entry = (Bytes, Bytes);

/// All that one epoch writes, applied as a whole or not at all.
#[derive(Debug, Default)]
pub struct EpochBatch {
    /// The epoch.
    pub epoch: Epoch,
    /// Puts and deletes in any order, at most one a key. The store sorts them.
    pub writes: Vec<Write>,
    /// Tables of which every entry is deleted, before the puts (DROP, TRUNCATE). Ranges are `[start, end)` over
    /// whole store keys.
    pub deleted_ranges: Vec<(Bytes, Bytes)>,
}

/// Whether a commit waits until the epoch is on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sync {
    /// The call returns when the epoch would survive a power cut.
    Now,
    /// The epoch is in the log; a later synced epoch, or [`Store::sync`], makes it durable.
    Later,
}

/// A consistent view of the store.
pub trait Snapshot: Send + std::marker::Sync {
    /// The values under the keys, in the order of the keys. Sorting the keys makes it faster.
    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>>;
    /// Entries with `start <= key < end`, in key order.
    fn scan(&self, start: &[u8], end: &[u8]) -> Box<dyn Iterator<Item = Result<Entry>> + Send + '_>;
    /// The entry with the greatest key in `start <= key < end`.
    fn last(&self, start: &[u8], end: &[u8]) -> Result<Option<Entry>> {
        self.scan(start, end).last().transpose()
    }
    /// The newest epoch in this view, 0 for an empty store.
    fn epoch(&self) -> Epoch;
}

/// Ordered entries under atomic epochs.
pub trait Store: Send + std::marker::Sync {
    /// Writes an epoch atomically, with its number under [`crate::state::layout::epoch_key`]. Epochs come in order.
    fn commit(&self, batch: &EpochBatch, sync: Sync) -> Result<()>;
    /// Makes all committed epochs durable.
    fn sync(&self) -> Result<()>;
    /// The newest committed epoch and all before it, frozen.
    fn snapshot(&self) -> Arc<dyn Snapshot>;
    /// The newest entries, not frozen: for operators, which are the only writers of what they read.
    fn latest(&self) -> Arc<dyn Snapshot>;
    /// Approximate bytes on disk and in memory, for `tidemill.state` and logs.
    fn statistics(&self) -> StoreStatistics;
}

/// Sizes of a store, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoreStatistics {
    /// On disk.
    pub disk_bytes: u64,
    /// In block cache and memtables.
    pub memory_bytes: u64,
}
