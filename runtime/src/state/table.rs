//! State tables: all that an operator may do with what it keeps.

use std::cell::Cell;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;

use crate::Epoch;
use crate::error::{Error, Result};
use crate::state::store::{Entry, Store, Write};

/// The state of all operators of one worker.
#[derive(Clone)]
pub struct WorkerState {
    _shared: Rc<()>,
}

/// One table of an operator's state.
pub struct StateTable {
    _shared: Rc<()>,
}

fn unsupported<T>() -> Result<T> {
    Err(Error::Storage("not supported yet".to_string()))
}

impl WorkerState {
    /// State over a store, with caches of so many bytes.
    pub fn new(_store: Arc<dyn Store>, _cache_bytes: usize) -> Self {
        WorkerState { _shared: Rc::new(()) }
    }

    /// The state table of a store table. `fresh` promises that the store holds no entry of it. Writes belong to the
    /// epoch that the cell holds when they are made.
    pub fn table(&self, _table: u32, _fresh: bool, _epoch: Rc<Cell<Epoch>>) -> StateTable {
        StateTable { _shared: self._shared.clone() }
    }

    /// All writes made under that epoch, the last one of each key. They stay visible to reads.
    pub fn take_writes(&self, _epoch: Epoch) -> Vec<Write> {
        Vec::new()
    }

    /// The writes of all epochs up to this one are in the store now.
    pub fn committed(&self, _epoch: Epoch) {}

    /// Forgets the tables of a dropped dataflow, with their writes that were not taken.
    pub fn forget_tables(&self, _tables: RangeInclusive<u32>) {}

    /// Evicts what was not used lately if the budget is exceeded. For between epochs.
    pub fn evict(&self) {}
}

impl StateTable {
    /// The value under a key.
    pub fn get(&self, _partition: u16, _key: &[u8]) -> Result<Option<Bytes>> {
        unsupported()
    }

    /// The values under keys, in the order of the keys.
    pub fn get_many(&self, _keys: &[(u16, &[u8])]) -> Result<Vec<Option<Bytes>>> {
        unsupported()
    }

    /// Puts a value under a key.
    pub fn put(&self, _partition: u16, _key: &[u8], _value: impl Into<Bytes>) {}

    /// Deletes the entry of a key; nothing happens if there is none.
    pub fn delete(&self, _partition: u16, _key: &[u8]) {}

    /// All entries whose key begins with the prefix, in key order. Keys are without the store's header.
    pub fn scan_prefix(&self, _partition: u16, _prefix: &[u8]) -> Result<Vec<Entry>> {
        unsupported()
    }

    /// The entry with the smallest key that begins with the prefix.
    pub fn first_with_prefix(&self, _partition: u16, _prefix: &[u8]) -> Result<Option<Entry>> {
        unsupported()
    }

    /// The entry with the greatest key that begins with the prefix.
    pub fn last_with_prefix(&self, _partition: u16, _prefix: &[u8]) -> Result<Option<Entry>> {
        unsupported()
    }

    /// At most `limit` entries with `start <= key < end` in key order; no end means all of the partition.
    pub fn scan_range(&self, _partition: u16, _start: &[u8], _end: Option<&[u8]>, _limit: usize) -> Result<Vec<Entry>> {
        unsupported()
    }
}
