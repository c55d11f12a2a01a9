//! State tables: all that an operator may do with what it keeps.
//!
//! A [`StateTable`] is a write-back cache over one table of the store. Writes stay in memory until the worker takes
//! those of an epoch ([`WorkerState::take_writes`]) and the coordinator commits them; from then on they may be evicted.
//! Reads see the newest writes, committed or not. Every entry belongs to a partition, and reads stay within one.
//!
//! What is in memory is one worker's alone: tables are neither shared nor sent between threads.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;

use crate::Epoch;
use crate::error::Result;
use crate::limits;
use crate::state::budget::Budget;
use crate::state::cache::{Lookup, TableCache};
use crate::state::cached::{Cached, Change};
use crate::state::layout::{self, HEADER_LENGTH};
use crate::state::store::{Entry, Snapshot, Store, Write};

/// The state of all operators of one worker.
#[derive(Clone)]
pub struct WorkerState {
    shared: Rc<Shared>,
}

struct Shared {
    /// Reads the newest entries. Those of uncommitted epochs are in the caches, which are asked first.
    latest: Arc<dyn Snapshot>,
    budget: Rc<Budget>,
    tables: RefCell<BTreeMap<u32, Rc<RefCell<TableCache>>>>,
}

/// One table of an operator's state.
pub struct StateTable {
    latest: Arc<dyn Snapshot>,
    cache: Rc<RefCell<TableCache>>,
    epoch: Rc<Cell<Epoch>>,
    /// Where all entries are, if not where the caller says.
    partition: Option<u16>,
}

/// Sizes of a worker's caches.
#[derive(Debug, Clone, Copy, Default)]
pub struct CacheStatistics {
    /// Entries in memory.
    pub entries: usize,
    /// Bytes that they count for.
    pub bytes: usize,
}

impl WorkerState {
    /// State over a store, with caches of so many bytes.
    pub fn new(store: Arc<dyn Store>, cache_bytes: usize) -> Self {
        let budget = Rc::new(Budget::new(cache_bytes));
        WorkerState { shared: Rc::new(Shared { latest: store.latest(), budget, tables: RefCell::default() }) }
    }

    /// The state table of a store table. `fresh` promises that the store holds no entry of it. Writes belong to the
    /// epoch that the cell holds when they are made.
    pub fn table(&self, table: u32, fresh: bool, epoch: Rc<Cell<Epoch>>) -> StateTable {
        let mut tables = self.shared.tables.borrow_mut();
        let cache = tables
            .entry(table)
            .or_insert_with(|| Rc::new(RefCell::new(TableCache::new(table, fresh, self.shared.budget.clone()))));
        StateTable { latest: self.shared.latest.clone(), cache: cache.clone(), epoch, partition: None }
    }

    /// All writes made under that epoch (and under earlier ones that were not taken), the last one of each key, in key
    /// order. They stay visible to reads.
    pub fn take_writes(&self, epoch: Epoch) -> Vec<Write> {
        let mut writes = Vec::new();
        for cache in self.shared.tables.borrow().values() {
            cache.borrow_mut().take_writes(epoch, &mut writes);
        }
        writes
    }

    /// The writes of all epochs up to this one are in the store now.
    pub fn committed(&self, epoch: Epoch) {
        for cache in self.shared.tables.borrow().values() {
            cache.borrow_mut().committed(epoch);
        }
    }

    /// Forgets the tables of a dropped dataflow, with their writes that were not taken.
    pub fn forget_tables(&self, tables: RangeInclusive<u32>) {
        self.shared.tables.borrow_mut().retain(|table, _| !tables.contains(table));
    }

    /// Evicts what was not used lately if the budget is exceeded. For between epochs.
    pub fn evict(&self) {
        let budget = &self.shared.budget;
        if !budget.is_exceeded() {
            return;
        }
        let used = budget.used();
        let excess = used - budget.eviction_target();
        for cache in self.shared.tables.borrow().values() {
            let mut cache = cache.borrow_mut();
            // Every table gives up its share.
            let share = (cache.bytes() as u128 * excess as u128).div_ceil(used as u128);
            cache.evict(share as usize);
        }
    }

    /// Sizes of the caches.
    pub fn statistics(&self) -> CacheStatistics {
        let entries = self.shared.tables.borrow().values().map(|cache| cache.borrow().len()).sum();
        CacheStatistics { entries, bytes: self.shared.budget.used() }
    }
}

impl StateTable {
    /// The same table with all entries in one partition, whichever is asked for: for an operator within an operator that
    /// sees all rows on one worker.
    pub fn in_partition(self, partition: u16) -> Self {
        StateTable { partition: Some(partition), ..self }
    }

    fn place(&self, partition: u16) -> u16 {
        self.partition.unwrap_or(partition)
    }

    /// The value under a key.
    pub fn get(&self, partition: u16, key: &[u8]) -> Result<Option<Bytes>> {
        let partition = self.place(partition);
        let mut cache = self.cache.borrow_mut();
        match cache.lookup(partition, key) {
            Lookup::Present(value) => Ok(Some(value)),
            Lookup::Absent => Ok(None),
            Lookup::Unknown => {
                let store_key = layout::store_key(cache.table(), partition, key);
                let value = self.latest.get_many(&[&store_key])?.pop().flatten();
                cache.remember(partition, key, value.as_deref());
                Ok(value)
            }
        }
    }

    /// The values under keys, in the order of the keys. What is not in memory is read from the store at once.
    pub fn get_many(&self, keys: &[(u16, &[u8])]) -> Result<Vec<Option<Bytes>>> {
        let placed: Vec<(u16, &[u8])>;
        let keys = match self.partition {
            None => keys,
            Some(partition) => {
                placed = keys.iter().map(|(_, key)| (partition, *key)).collect();
                &placed
            }
        };
        let mut cache = self.cache.borrow_mut();
        let mut unknown = Vec::new();
        let mut values = cache.lookup_many(keys, &mut unknown);
        if unknown.is_empty() {
            return Ok(values);
        }
        unknown.sort_unstable_by_key(|position| keys[*position]);
        let table = cache.table();
        let store_key = |position: &usize| layout::store_key(table, keys[*position].0, keys[*position].1);
        let store_keys: Vec<Bytes> = unknown.iter().map(store_key).collect();
        let store_keys: Vec<&[u8]> = store_keys.iter().map(AsRef::as_ref).collect();
        for (position, value) in unknown.into_iter().zip(self.latest.get_many(&store_keys)?) {
            let (partition, key) = keys[position];
            cache.remember(partition, key, value.as_deref());
            values[position] = value;
        }
        Ok(values)
    }

    /// Puts a value under a key. A large value that shares its bytes with others is copied: a slice in the cache would
    /// keep all of what it was cut from in memory.
    pub fn put(&self, partition: u16, key: &[u8], value: impl Into<Bytes>) {
        let partition = self.place(partition);
        self.cache.borrow_mut().write(partition, key, Change::PutShared(&value.into()), self.epoch.get());
    }

    /// Puts a copy of a value under a key.
    pub fn put_slice(&self, partition: u16, key: &[u8], value: &[u8]) {
        let partition = self.place(partition);
        self.cache.borrow_mut().write(partition, key, Change::Put(value), self.epoch.get());
    }

    /// Deletes the entry of a key; nothing happens if there is none.
    pub fn delete(&self, partition: u16, key: &[u8]) {
        let partition = self.place(partition);
        self.cache.borrow_mut().write(partition, key, Change::Delete, self.epoch.get());
    }

    /// All entries whose key begins with the prefix, in key order. Keys are without the store's header. They are in
    /// memory from then on.
    pub fn scan_prefix(&self, partition: u16, prefix: &[u8]) -> Result<Vec<Entry>> {
        let partition = self.place(partition);
        let mut cache = self.cache.borrow_mut();
        let (start, end) = prefix_range(cache.table(), partition, prefix);
        if !cache.covers(partition, prefix) {
            self.load_prefix(&mut cache, partition, prefix, usize::MAX)?;
        }
        Ok(cache.entries(&start, &end, usize::MAX))
    }

    /// The entry with the smallest key that begins with the prefix.
    pub fn first_with_prefix(&self, partition: u16, prefix: &[u8]) -> Result<Option<Entry>> {
        let partition = self.place(partition);
        let mut cache = self.cache.borrow_mut();
        let (start, end) = prefix_range(cache.table(), partition, prefix);
        let loaded = self.probe_prefix(&mut cache, partition, prefix)?;
        let mut found = if loaded { cache.entries(&start, &end, 1) } else { self.merged(&mut cache, &start, &end, 1)? };
        Ok(found.pop())
    }

    /// At most `limit` entries whose key begins with the prefix: those with the smallest keys, in key order.
    pub fn first_entries(&self, partition: u16, prefix: &[u8], limit: usize) -> Result<Vec<Entry>> {
        let partition = self.place(partition);
        let mut cache = self.cache.borrow_mut();
        let (start, end) = prefix_range(cache.table(), partition, prefix);
        let loaded = self.probe_prefix(&mut cache, partition, prefix)?;
        if loaded { Ok(cache.entries(&start, &end, limit)) } else { self.merged(&mut cache, &start, &end, limit) }
    }

    /// The entry with the greatest key that begins with the prefix.
    pub fn last_with_prefix(&self, partition: u16, prefix: &[u8]) -> Result<Option<Entry>> {
        let partition = self.place(partition);
        let mut cache = self.cache.borrow_mut();
        let (start, end) = prefix_range(cache.table(), partition, prefix);
        let loaded = self.probe_prefix(&mut cache, partition, prefix)?;
        self.last_in(&mut cache, loaded, &start, end)
    }

    /// At most `limit` entries whose key begins with the prefix and is smaller than a key: those with the greatest keys,
    /// the greatest first. For few entries: each is looked up by itself.
    pub fn last_entries_before(&self, partition: u16, prefix: &[u8], key: &[u8], limit: usize) -> Result<Vec<Entry>> {
        let partition = self.place(partition);
        let mut cache = self.cache.borrow_mut();
        let (start, _) = prefix_range(cache.table(), partition, prefix);
        let mut end = layout::store_key(cache.table(), partition, key);
        let loaded = self.probe_prefix(&mut cache, partition, prefix)?;
        let mut found = Vec::new();
        while found.len() < limit {
            let Some(entry) = self.last_in(&mut cache, loaded, &start, end)? else { break };
            end = layout::store_key(cache.table(), partition, &entry.0);
            found.push(entry);
        }
        Ok(found)
    }

    /// At most `limit` entries whose key begins with the prefix and is not smaller than a key: those with the smallest
    /// keys, in key order.
    pub fn first_entries_from(&self, partition: u16, prefix: &[u8], key: &[u8], limit: usize) -> Result<Vec<Entry>> {
        let partition = self.place(partition);
        let mut cache = self.cache.borrow_mut();
        let (_, end) = prefix_range(cache.table(), partition, prefix);
        let start = layout::store_key(cache.table(), partition, key);
        match self.probe_prefix(&mut cache, partition, prefix)? {
            true => Ok(cache.entries(&start, &end, limit)),
            false => self.merged(&mut cache, &start, &end, limit),
        }
    }

    /// At most `limit` entries whose key begins with the prefix, from one key to before another, in key order.
    pub fn entries_between(
        &self,
        partition: u16,
        prefix: &[u8],
        keys: std::ops::Range<&[u8]>,
        limit: usize,
    ) -> Result<Vec<Entry>> {
        let partition = self.place(partition);
        let mut cache = self.cache.borrow_mut();
        let (_, last) = prefix_range(cache.table(), partition, prefix);
        let start = layout::store_key(cache.table(), partition, keys.start);
        let end = layout::store_key(cache.table(), partition, keys.end).min(last);
        match self.probe_prefix(&mut cache, partition, prefix)? {
            true => Ok(cache.entries(&start, &end, limit)),
            false => self.merged(&mut cache, &start, &end, limit),
        }
    }

    /// Whether all entries under a prefix are in memory; reads them if they are few.
    fn probe_prefix(&self, cache: &mut TableCache, partition: u16, prefix: &[u8]) -> Result<bool> {
        Ok(cache.covers(partition, prefix)
            || self.load_prefix(cache, partition, prefix, limits::PREFIX_PROBE_ENTRIES)?)
    }

    /// The entry with the greatest key from one store key to before another.
    fn last_in(&self, cache: &mut TableCache, loaded: bool, start: &Bytes, mut end: Bytes) -> Result<Option<Entry>> {
        let live = |cached: &Cached| Some((Bytes::copy_from_slice(&cached.key()[HEADER_LENGTH..]), cached.to_bytes()?));
        if *start >= end {
            return Ok(None);
        }
        if loaded {
            return Ok(cache.range(start, &end).rev().find_map(live));
        }
        loop {
            let stored = self.latest.last(start, &end)?;
            let from = stored.as_ref().map_or(start, |(key, _)| key).clone();
            if let Some(entry) = cache.range(&from, &end).rev().find_map(live) {
                return Ok(Some(entry));
            }
            let Some((key, value)) = stored else { return Ok(None) };
            let hidden = cache.range(&key, &end).next().is_some_and(|cached| cached.key() == key);
            if !hidden {
                return Ok(Some((key.slice(HEADER_LENGTH..), value)));
            }
            end = key;
        }
    }

    /// At most `limit` entries with `start <= key < end` in key order; no end means all of the partition.
    pub fn scan_range(&self, partition: u16, start: &[u8], end: Option<&[u8]>, limit: usize) -> Result<Vec<Entry>> {
        let partition = self.place(partition);
        let mut cache = self.cache.borrow_mut();
        let table = cache.table();
        let first = layout::store_key(table, partition, start);
        let last = match end {
            Some(end) => layout::store_key(table, partition, end),
            None => prefix_range(table, partition, b"").1,
        };
        let common = end.map_or(0, |end| start.iter().zip(end).take_while(|(a, b)| a == b).count());
        if cache.covers(partition, &start[..common]) {
            return Ok(cache.entries(&first, &last, limit));
        }
        self.merged(&mut cache, &first, &last, limit)
    }

    /// Reads the entries under a prefix into memory, unless there are more than so many. Says whether all are there.
    fn load_prefix(&self, cache: &mut TableCache, partition: u16, prefix: &[u8], limit: usize) -> Result<bool> {
        let (start, end) = prefix_range(cache.table(), partition, prefix);
        for (count, entry) in self.latest.scan(&start, &end).enumerate() {
            if count == limit {
                return Ok(false);
            }
            let (key, value) = entry?;
            cache.remember(partition, &key[HEADER_LENGTH..], Some(&value));
        }
        cache.mark_loaded(partition, prefix);
        Ok(true)
    }

    /// Entries of a range that is not all in memory: those of the store, and over them those of the cache.
    fn merged(&self, cache: &mut TableCache, start: &Bytes, end: &Bytes, limit: usize) -> Result<Vec<Entry>> {
        let mut entries = Vec::new();
        if start >= end {
            return Ok(entries);
        }
        let mut stored = self.latest.scan(start, end).peekable();
        let mut cached = cache.range(start, end).peekable();
        while entries.len() < limit {
            let stored_key = match stored.peek() {
                Some(Ok((key, _))) => Some(key),
                Some(Err(_)) => {
                    stored.next().transpose()?;
                    None
                }
                None => None,
            };
            match (cached.peek(), stored_key) {
                (Some(entry), other) if other.is_none_or(|other| entry.key() <= other.as_ref()) => {
                    if other.is_some_and(|other| entry.key() == other.as_ref()) {
                        stored.next();
                    }
                    if let Some(entry) = cached.next()
                        && let Some(value) = entry.to_bytes()
                    {
                        entries.push((Bytes::copy_from_slice(&entry.key()[HEADER_LENGTH..]), value));
                    }
                }
                _ => match stored.next() {
                    Some(entry) => {
                        let (key, value) = entry?;
                        entries.push((key.slice(HEADER_LENGTH..), value));
                    }
                    None => break,
                },
            }
        }
        Ok(entries)
    }
}

/// The whole store keys that begin with a prefix of a partition's keys: from the first to before the second.
fn prefix_range(table: u32, partition: u16, prefix: &[u8]) -> (Bytes, Bytes) {
    let start = layout::store_key(table, partition, prefix);
    // There is always an end: a partition is below 1024.
    let end = layout::prefix_end(&start).unwrap_or_else(|| start.to_vec());
    (start, end.into())
}

#[cfg(test)]
mod tests;
