//! The store on RocksDB. The only file that names it.

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::state::memory::MemoryStore;
use crate::state::store::{EpochBatch, Snapshot, Store, StoreStatistics, Sync};

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct RocksOptions {
    /// Bytes for block cache and memtables together.
    pub memory_bytes: usize,
}

/// The store on RocksDB.
pub struct RocksStore {
    inner: Arc<MemoryStore>,
}

impl RocksStore {
    /// Opens the database in a directory, which is created if it does not exist.
    pub fn open(_path: &Path, _options: RocksOptions) -> Result<Arc<RocksStore>> {
        Err(Error::CannotOpen("not supported yet".to_string()))
    }
}

impl Store for RocksStore {
    fn commit(&self, batch: EpochBatch, sync: Sync) -> Result<()> {
        self.inner.commit(batch, sync)
    }

    fn sync(&self) -> Result<()> {
        self.inner.sync()
    }

    fn snapshot(&self) -> Arc<dyn Snapshot> {
        self.inner.snapshot()
    }

    fn latest(&self) -> Arc<dyn Snapshot> {
        self.inner.latest()
    }

    fn statistics(&self) -> StoreStatistics {
        self.inner.statistics()
    }
}
