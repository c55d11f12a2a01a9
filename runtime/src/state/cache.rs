//! The entries of one state table that are in memory.
//!
//! Invariants:
//! - An entry in the cache is newer than, or equal to, what the store holds under its key. An entry without value says
//!   that there is nothing under the key (it was deleted, or the store was asked and had nothing).
//! - An entry written under an epoch that has not been committed stays in the cache, whatever the budget. So reads of
//!   the store never need to know which epochs it holds.
//! - `complete`: every entry of the table is in the cache. A loaded prefix: every entry under it is in the cache.
//!   Evicting an entry ends both, and is the only thing that does.
//! - `pending` holds for each epoch whose writes were not taken yet the entries dirtied under it. When a later epoch
//!   overwrites such an entry, the value of the earlier one moves to `displaced` first.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::rc::Rc;

use bytes::Bytes;
use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Epoch;
use crate::limits;
use crate::state::budget::{Budget, entry_bytes};
use crate::state::layout::{self, HEADER_LENGTH};
use crate::state::prefixes::LoadedPrefixes;
use crate::state::store::{Entry, Write};

/// What the cache knows of a key.
pub(super) enum Lookup {
    /// This value is under it.
    Present(Bytes),
    /// Nothing is under it.
    Absent,
    /// The store has to be asked.
    Unknown,
}

struct Cached {
    /// The whole store key.
    key: Bytes,
    value: Option<Bytes>,
    /// The epoch of the last write; 0 if it was read from the store.
    written: Epoch,
    /// Used since the eviction hand passed.
    referenced: Cell<bool>,
    /// Whether the store may hold an entry under the key once all taken writes are in it.
    stored: bool,
}

/// Where an entry stands in the slab, with its hash: most comparisons end without touching the entry.
#[derive(Clone, Copy)]
struct Slot {
    hash: u32,
    index: u32,
}

impl Slot {
    fn spread(hash: u32) -> u64 {
        u64::from(hash).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// A store key that compares by its first bytes after the table id without following a pointer.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct OrderKey {
    head: u128,
    key: Bytes,
}

impl OrderKey {
    fn new(key: Bytes) -> Self {
        OrderKey { head: key_head(&key[4..]), key }
    }
}

/// The first 16 bytes as a number, padded with zeros: unequal heads order as the bytes do.
pub(super) fn key_head(bytes: &[u8]) -> u128 {
    if let Some(head) = bytes.first_chunk::<16>() {
        return u128::from_be_bytes(*head);
    }
    let mut head = [0; 16];
    head[..bytes.len()].copy_from_slice(bytes);
    u128::from_be_bytes(head)
}

/// What was written under an epoch and was not taken yet.
struct Pending {
    epoch: Epoch,
    /// Entries written; those that a later epoch has overwritten since are to be skipped.
    dirty: Vec<u32>,
    /// Values that a later epoch has overwritten.
    displaced: Vec<Write>,
}

/// The entries of one state table that are in memory.
pub(super) struct TableCache {
    table: u32,
    budget: Rc<Budget>,
    slab: Vec<Option<Cached>>,
    free: Vec<u32>,
    index: HashTable<Slot>,
    /// Built at the first ordered read; many tables are only ever read by whole key.
    order: Option<BTreeMap<OrderKey, u32>>,
    complete: bool,
    loaded: LoadedPrefixes,
    pending: VecDeque<Pending>,
    /// Entries without value whose epoch was taken: dropped when it is committed.
    tombstones: VecDeque<(Epoch, u32)>,
    taken: Epoch,
    committed: Epoch,
    hand: usize,
    bytes: usize,
}

fn hash_of(partition: u16, key: &[u8]) -> u32 {
    (xxh3_64_with_seed(key, u64::from(partition)) >> 32) as u32
}

impl TableCache {
    /// An empty cache. `complete` says that the store holds nothing of the table.
    pub(super) fn new(table: u32, complete: bool, budget: Rc<Budget>) -> Self {
        TableCache {
            table,
            budget,
            slab: Vec::new(),
            free: Vec::new(),
            index: HashTable::new(),
            order: None,
            complete,
            loaded: LoadedPrefixes::default(),
            pending: VecDeque::new(),
            tombstones: VecDeque::new(),
            taken: 0,
            committed: 0,
            hand: 0,
            bytes: 0,
        }
    }

    /// Bytes that the cached entries count for.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// How many entries are cached.
    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    /// The store table.
    pub(super) fn table(&self) -> u32 {
        self.table
    }

    fn find(&self, hash: u32, partition: u16, key: &[u8]) -> Option<u32> {
        let slab = &self.slab;
        let same = |slot: &Slot| {
            slot.hash == hash
                && slab[slot.index as usize].as_ref().is_some_and(|cached| {
                    let (stored_partition, stored_key) = cached.key[4..].split_at(HEADER_LENGTH - 4);
                    stored_partition == partition.to_be_bytes() && stored_key == key
                })
        };
        self.index.find(Slot::spread(hash), same).map(|slot| slot.index)
    }

    fn cached_mut(&mut self, index: u32) -> Option<&mut Cached> {
        self.slab[index as usize].as_mut()
    }

    /// What is under a key.
    pub(super) fn lookup(&mut self, partition: u16, key: &[u8]) -> Lookup {
        match self.find(hash_of(partition, key), partition, key) {
            Some(index) => match self.cached_mut(index) {
                Some(Cached { value: Some(value), referenced, .. }) => {
                    referenced.set(true);
                    Lookup::Present(value.clone())
                }
                _ => Lookup::Absent,
            },
            None if self.covers(partition, key) => Lookup::Absent,
            None => Lookup::Unknown,
        }
    }

    /// Whether all entries whose keys begin with the prefix are in the cache.
    pub(super) fn covers(&mut self, partition: u16, prefix: &[u8]) -> bool {
        self.complete || self.loaded.covers(partition, prefix)
    }

    /// Writes a value, or a deletion, under an epoch.
    pub(super) fn write(&mut self, partition: u16, key: &[u8], value: Option<Bytes>, epoch: Epoch) {
        let hash = hash_of(partition, key);
        let Some(index) = self.find(hash, partition, key) else {
            let known_absent = self.covers(partition, key);
            if value.is_none() && known_absent {
                return;
            }
            let key = layout::store_key(self.table, partition, key);
            let cached = Cached { key, value, written: epoch, referenced: Cell::new(true), stored: !known_absent };
            let index = self.insert(hash, cached);
            self.pending(epoch).dirty.push(index);
            return;
        };
        let taken = self.taken;
        let Some(cached) = self.slab[index as usize].as_mut() else { return };
        let before = cached.value.as_ref().map_or(0, Bytes::len);
        let after = value.as_ref().map_or(0, Bytes::len);
        let old = std::mem::replace(&mut cached.value, value);
        cached.referenced.set(true);
        if cached.written != epoch {
            let written = std::mem::replace(&mut cached.written, epoch);
            if written > taken && (old.is_some() || cached.stored) {
                cached.stored = true;
                let displaced = (cached.key.clone(), old);
                self.pending(written).displaced.push(displaced);
            }
            self.pending(epoch).dirty.push(index);
        }
        self.account(before, after);
    }

    /// Keeps what the store holds under a key, unless the cache knows better.
    pub(super) fn remember(&mut self, partition: u16, key: &[u8], value: Option<&[u8]>) {
        let hash = hash_of(partition, key);
        if self.find(hash, partition, key).is_some() {
            return;
        }
        let stored = value.is_some();
        // Copied, because a value from a scan shares its allocation with its neighbours.
        let value = value.map(Bytes::copy_from_slice);
        let key = layout::store_key(self.table, partition, key);
        self.insert(hash, Cached { key, value, written: 0, referenced: Cell::new(true), stored });
    }

    /// Notes that every entry whose key begins with the prefix is in the cache.
    pub(super) fn mark_loaded(&mut self, partition: u16, prefix: &[u8]) {
        let bytes = self.loaded.add(partition, prefix);
        self.account(0, bytes);
    }

    fn insert(&mut self, hash: u32, cached: Cached) -> u32 {
        let bytes = entry_bytes(cached.key.len(), cached.value.as_ref().map_or(0, Bytes::len));
        let order_key = self.order.is_some().then(|| OrderKey::new(cached.key.clone()));
        let index = match self.free.pop() {
            Some(index) => {
                self.slab[index as usize] = Some(cached);
                index
            }
            None => {
                self.slab.push(Some(cached));
                (self.slab.len() - 1) as u32
            }
        };
        self.index.insert_unique(Slot::spread(hash), Slot { hash, index }, |slot| Slot::spread(slot.hash));
        if let (Some(order), Some(key)) = (&mut self.order, order_key) {
            order.insert(key, index);
            self.account(0, bytes + limits::CACHED_ORDER_OVERHEAD_BYTES);
        } else {
            self.account(0, bytes);
        }
        index
    }

    fn remove(&mut self, index: u32) -> Option<Cached> {
        let cached = self.slab[index as usize].take()?;
        let partition = u16::from_be_bytes([cached.key[4], cached.key[5]]);
        let hash = hash_of(partition, &cached.key[HEADER_LENGTH..]);
        if let Ok(slot) = self.index.find_entry(Slot::spread(hash), |slot| slot.index == index) {
            slot.remove();
        }
        let mut bytes = entry_bytes(cached.key.len(), cached.value.as_ref().map_or(0, Bytes::len));
        if let Some(order) = &mut self.order {
            order.remove(&OrderKey::new(cached.key.clone()));
            bytes += limits::CACHED_ORDER_OVERHEAD_BYTES;
        }
        self.account(bytes, 0);
        self.free.push(index);
        Some(cached)
    }

    fn account(&mut self, before: usize, after: usize) {
        self.bytes = (self.bytes + after).saturating_sub(before);
        self.budget.take(after);
        self.budget.release(before);
    }

    fn pending(&mut self, epoch: Epoch) -> &mut Pending {
        // One or two epochs at a time, nearly always the last one.
        let position = match self.pending.iter().rposition(|pending| pending.epoch <= epoch) {
            Some(position) if self.pending[position].epoch == epoch => position,
            before => {
                let position = before.map_or(0, |before| before + 1);
                self.pending.insert(position, Pending { epoch, dirty: Vec::new(), displaced: Vec::new() });
                position
            }
        };
        &mut self.pending[position]
    }

    /// Entries with `start <= key < end` in key order, deleted ones included; bounds are whole store keys.
    pub(super) fn range(
        &mut self,
        start: &[u8],
        end: &[u8],
    ) -> impl DoubleEndedIterator<Item = (&Bytes, Option<&Bytes>)> + use<'_> {
        let slab = &self.slab;
        let order = self.order.get_or_insert_with(|| {
            let overhead = self.index.len() * limits::CACHED_ORDER_OVERHEAD_BYTES;
            self.bytes += overhead;
            self.budget.take(overhead);
            let keys = slab.iter().enumerate().filter_map(|(index, cached)| {
                cached.as_ref().map(|cached| (OrderKey::new(cached.key.clone()), index as u32))
            });
            keys.collect()
        });
        let end = Bytes::copy_from_slice(end.max(start));
        let bounds =
            (Bound::Included(OrderKey::new(Bytes::copy_from_slice(start))), Bound::Excluded(OrderKey::new(end)));
        order.range(bounds).filter_map(|(_, index)| {
            let cached = slab[*index as usize].as_ref()?;
            cached.referenced.set(true);
            Some((&cached.key, cached.value.as_ref()))
        })
    }

    /// The live entries of a range, at most so many; keys without the store's header.
    pub(super) fn entries(&mut self, start: &[u8], end: &[u8], limit: usize) -> Vec<Entry> {
        let live = self.range(start, end).filter_map(|(key, value)| Some((key.slice(HEADER_LENGTH..), value?.clone())));
        live.take(limit).collect()
    }

    /// All writes made under this epoch and earlier ones that were not taken, in key order, the last one of each key.
    pub(super) fn take_writes(&mut self, epoch: Epoch, writes: &mut Vec<Write>) {
        let first = writes.len();
        let mut epochs = 0;
        while let Some(pending) = self.pending.pop_front_if(|pending| pending.epoch <= epoch) {
            self.take_pending(pending, writes);
            epochs += 1;
        }
        self.taken = self.taken.max(epoch);
        if epochs > 1 {
            // Earlier epochs stand first, and the sort is stable: the last write of a key is the one to keep.
            let mut kept: BTreeMap<Bytes, Option<Bytes>> = BTreeMap::new();
            kept.extend(writes.drain(first..));
            writes.extend(kept);
        }
    }

    fn take_pending(&mut self, pending: Pending, writes: &mut Vec<Write>) {
        let mut order: Vec<(u128, u32)> = Vec::with_capacity(pending.dirty.len());
        for index in pending.dirty {
            if let Some(cached) = &self.slab[index as usize]
                && cached.written == pending.epoch
            {
                order.push((key_head(&cached.key[4..]), index));
            }
        }
        let slab = &self.slab;
        let key = |index: u32| slab[index as usize].as_ref().map(|cached| &cached.key[..]);
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key(a.1).cmp(&key(b.1))));
        let first = writes.len();
        writes.reserve(order.len() + pending.displaced.len());
        for (_, index) in order {
            let Some(cached) = self.slab[index as usize].as_mut() else { continue };
            match &cached.value {
                Some(value) => writes.push((cached.key.clone(), Some(value.clone()))),
                None => {
                    if cached.stored {
                        writes.push((cached.key.clone(), None));
                    }
                    self.tombstones.push_back((pending.epoch, index));
                }
            }
            cached.stored |= cached.value.is_some();
        }
        if !pending.displaced.is_empty() {
            writes.extend(pending.displaced);
            writes[first..].sort_by(|a, b| a.0.cmp(&b.0));
        }
    }

    /// The writes of all epochs up to this one are in the store.
    pub(super) fn committed(&mut self, epoch: Epoch) {
        self.committed = self.committed.max(epoch);
        while let Some((written, index)) = self.tombstones.pop_front_if(|(written, _)| *written <= epoch) {
            let unchanged = self.slab[index as usize].as_ref();
            if unchanged.is_some_and(|cached| cached.written == written && cached.value.is_none()) {
                self.remove(index);
            }
        }
    }

    /// Evicts about so many bytes, of entries not used since the last time first.
    pub(super) fn evict(&mut self, bytes: usize) {
        let target = self.bytes.saturating_sub(bytes);
        // Twice around: the first time may only clear marks.
        let mut steps = 2 * self.slab.len();
        while self.bytes > target && steps > 0 {
            steps -= 1;
            self.hand = if self.hand + 1 >= self.slab.len() { 0 } else { self.hand + 1 };
            let Some(cached) = &self.slab[self.hand] else { continue };
            if cached.written > self.committed || cached.referenced.replace(false) {
                continue;
            }
            if let Some(cached) = self.remove(self.hand as u32)
                && cached.value.is_some()
            {
                self.complete = false;
                let released = self.loaded.remove_covering(&cached.key[4..]);
                self.account(released, 0);
            }
        }
        if self.loaded.bytes() > self.bytes / 4 {
            let released = self.loaded.age();
            self.account(released, 0);
        }
    }
}

impl Drop for TableCache {
    fn drop(&mut self) {
        self.budget.release(self.bytes);
    }
}
