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

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::rc::Rc;

use bytes::Bytes;
use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::Epoch;
use crate::limits;
use crate::state::budget::Budget;
use crate::state::cached::{Arena, Cached, Change};
use crate::state::layout::HEADER_LENGTH;
use crate::state::order::{OrderKey, key_head};
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

/// No entry.
const NOWHERE: u32 = u32::MAX;

/// Keys that are looked up together: enough that their cache misses overlap.
const LOOKUP_GROUP: usize = 64;

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
    /// Where the keys of the last batch of reads were found. Writes mostly follow in the same order.
    recent: Vec<u32>,
    recent_next: usize,
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
            recent: Vec::new(),
            recent_next: 0,
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

    fn cached(&self, index: u32) -> Option<&Cached> {
        self.slab.get(index as usize)?.as_ref()
    }

    fn find(&self, hash: u32, partition: u16, key: &[u8]) -> Option<u32> {
        let same =
            |slot: &Slot| slot.hash == hash && self.cached(slot.index).is_some_and(|cached| cached.is(partition, key));
        self.index.find(Slot::spread(hash), same).map(|slot| slot.index)
    }

    /// What is under a key.
    pub(super) fn lookup(&mut self, partition: u16, key: &[u8]) -> Lookup {
        if let Some(cached) = self.find(hash_of(partition, key), partition, key).and_then(|index| self.cached(index)) {
            cached.referenced.set(true);
            return cached.to_bytes().map_or(Lookup::Absent, Lookup::Present);
        }
        if self.covers(partition, key) { Lookup::Absent } else { Lookup::Unknown }
    }

    /// The values under keys, in order; the positions of those for which the store has to be asked are noted, and no
    /// value is returned for them.
    pub(super) fn lookup_many(&mut self, keys: &[(u16, &[u8])], unknown: &mut Vec<usize>) -> Vec<Option<Bytes>> {
        self.recent.clear();
        self.recent_next = 0;
        let mut hashes = [0; LOOKUP_GROUP];
        let mut lengths = 0;
        for group in keys.chunks(LOOKUP_GROUP) {
            // In steps over the group, so that the processor has many cache misses under way at once: first slots,
            // then entries, then keys.
            for ((partition, key), hash) in group.iter().zip(&mut hashes) {
                *hash = hash_of(*partition, key);
            }
            let first = self.recent.len();
            for hash in &hashes[..group.len()] {
                let slot = self.index.find(Slot::spread(*hash), |slot| slot.hash == *hash);
                self.recent.push(slot.map_or(NOWHERE, |slot| slot.index));
            }
            for index in &self.recent[first..] {
                if let Some(cached) = self.cached(*index) {
                    cached.referenced.set(true);
                    lengths += cached.value_length();
                }
            }
            for (position, (partition, key)) in group.iter().enumerate() {
                let index = self.recent[first + position];
                if index != NOWHERE && !self.cached(index).is_some_and(|cached| cached.is(*partition, key)) {
                    // Another key with the same hash.
                    self.recent[first + position] = self.find(hashes[position], *partition, key).unwrap_or(NOWHERE);
                }
            }
        }
        let mut arena = Arena::with_capacity(keys.len(), lengths);
        for (position, (partition, key)) in keys.iter().enumerate() {
            let index = self.recent[position];
            arena.push_value(self.cached(index));
            if index == NOWHERE && !self.covers(*partition, key) {
                unknown.push(position);
            }
        }
        arena.finish().collect()
    }

    /// Whether all entries whose keys begin with the prefix are in the cache.
    pub(super) fn covers(&mut self, partition: u16, prefix: &[u8]) -> bool {
        self.complete || self.loaded.covers(partition, prefix)
    }

    /// Finds the entry to write to, first where the order of the last reads lets expect it.
    fn find_to_write(&mut self, hash: impl Fn() -> u32, partition: u16, key: &[u8]) -> Option<u32> {
        if let Some(expected) = self.recent.get(self.recent_next)
            && self.cached(*expected).is_some_and(|cached| cached.is(partition, key))
        {
            self.recent_next += 1;
            return Some(*expected);
        }
        let found = self.find(hash(), partition, key)?;
        let ahead = self.recent.iter().skip(self.recent_next).take(8).position(|index| *index == found);
        if let Some(ahead) = ahead {
            self.recent_next += ahead + 1;
        }
        Some(found)
    }

    /// Writes a value, or a deletion, under an epoch.
    pub(super) fn write(&mut self, partition: u16, key: &[u8], change: Change<'_>, epoch: Epoch) {
        let hash = || hash_of(partition, key);
        let Some(index) = self.find_to_write(hash, partition, key) else {
            // A key that was read as absent has no place among the recent ones.
            self.recent_next += usize::from(self.recent.get(self.recent_next) == Some(&NOWHERE));
            let known_absent = self.covers(partition, key);
            if matches!(change, Change::Delete) && known_absent {
                return;
            }
            let mut cached = Cached::new(self.table, partition, key, change, !known_absent);
            cached.written = epoch;
            let index = self.insert(hash(), cached);
            self.pending(epoch).dirty.push(index);
            return;
        };
        let taken = self.taken;
        let Some(cached) = self.slab[index as usize].as_mut() else { return };
        cached.referenced.set(true);
        if cached.written != epoch {
            let written = std::mem::replace(&mut cached.written, epoch);
            let displaced = (written > taken && (cached.value().is_some() || cached.stored))
                .then(|| (Bytes::copy_from_slice(cached.key()), cached.to_bytes()));
            cached.stored |= displaced.is_some();
            if let Some(displaced) = displaced {
                self.pending(written).displaced.push(displaced);
            }
            self.pending(epoch).dirty.push(index);
        }
        if let Some(cached) = self.slab[index as usize].as_mut() {
            let before = cached.bytes();
            cached.set(change);
            let after = cached.bytes();
            self.account(before, after);
        }
    }

    /// Keeps what the store holds under a key, unless the cache knows better.
    pub(super) fn remember(&mut self, partition: u16, key: &[u8], value: Option<&[u8]>) {
        let hash = hash_of(partition, key);
        if self.find(hash, partition, key).is_none() {
            let change = value.map_or(Change::Delete, Change::Put);
            self.insert(hash, Cached::new(self.table, partition, key, change, value.is_some()));
        }
    }

    /// Notes that every entry whose key begins with the prefix is in the cache.
    pub(super) fn mark_loaded(&mut self, partition: u16, prefix: &[u8]) {
        let bytes = self.loaded.add(partition, prefix);
        self.account(0, bytes);
    }

    fn insert(&mut self, hash: u32, cached: Cached) -> u32 {
        let mut bytes = cached.bytes();
        let order_key = self.order.is_some().then(|| OrderKey::new(&cached.key()[4..]));
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
            bytes += limits::CACHED_ORDER_OVERHEAD_BYTES;
        }
        self.account(0, bytes);
        index
    }

    fn remove(&mut self, index: u32) -> Option<Cached> {
        let cached = self.slab[index as usize].take()?;
        let key = cached.key();
        let hash = hash_of(u16::from_be_bytes([key[4], key[5]]), &key[HEADER_LENGTH..]);
        if let Ok(slot) = self.index.find_entry(Slot::spread(hash), |slot| slot.index == index) {
            slot.remove();
        }
        let mut bytes = cached.bytes();
        if let Some(order) = &mut self.order {
            order.remove(&OrderKey::new(&key[4..]));
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

    fn order(&mut self) -> &BTreeMap<OrderKey, u32> {
        let slab = &self.slab;
        self.order.get_or_insert_with(|| {
            let overhead = self.index.len() * limits::CACHED_ORDER_OVERHEAD_BYTES;
            self.bytes += overhead;
            self.budget.take(overhead);
            let keys = slab.iter().enumerate().filter_map(|(index, cached)| {
                cached.as_ref().map(|cached| (OrderKey::new(&cached.key()[4..]), index as u32))
            });
            keys.collect()
        })
    }

    /// Entries with `start <= key < end` in key order, deleted ones included; bounds are whole store keys.
    pub(super) fn range(&mut self, start: &[u8], end: &[u8]) -> impl DoubleEndedIterator<Item = &Cached> + use<'_> {
        self.order();
        let end = OrderKey::new(&end.max(start)[4..]);
        let bounds = (Bound::Included(OrderKey::new(&start[4..])), Bound::Excluded(end));
        let slab = &self.slab;
        self.order.as_ref().map(|order| order.range(bounds)).into_iter().flatten().filter_map(|(_, index)| {
            let cached = slab[*index as usize].as_ref()?;
            cached.referenced.set(true);
            Some(cached)
        })
    }

    /// The live entries of a range, at most so many; keys without the store's header.
    pub(super) fn entries(&mut self, start: &[u8], end: &[u8], limit: usize) -> Vec<Entry> {
        let mut arena = Arena::with_capacity(0, 0);
        for cached in self.range(start, end).filter(|cached| cached.value().is_some()).take(limit) {
            arena.push(&cached.key()[HEADER_LENGTH..]);
            arena.push_value(Some(cached));
        }
        arena.finish_pairs()
    }

    /// All writes made under this epoch and earlier ones that were not taken, in key order, the last one of each key.
    pub(super) fn take_writes(&mut self, epoch: Epoch, writes: &mut Vec<Write>) {
        // What follows belongs to other reads.
        self.recent.clear();
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
        let mut bytes = 0;
        for index in pending.dirty {
            if let Some(cached) = self.cached(index).filter(|cached| cached.written == pending.epoch) {
                order.push((key_head(&cached.key()[4..]), index));
                bytes += cached.key().len() + cached.value_length();
            }
        }
        let key = |index: u32| self.cached(index).map(Cached::key);
        order.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| key(a.1).cmp(&key(b.1))));
        let first = writes.len();
        writes.reserve(order.len() + pending.displaced.len());
        let mut arena = Arena::with_capacity(2 * order.len(), bytes);
        for (_, index) in order {
            let Some(cached) = self.slab[index as usize].as_mut() else { continue };
            let is_put = cached.value().is_some();
            if is_put || cached.stored {
                arena.push(cached.key());
                arena.push_value(Some(cached));
            }
            if !is_put {
                self.tombstones.push_back((pending.epoch, index));
            }
            cached.stored |= is_put;
        }
        arena.finish_writes(writes);
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
            if unchanged.is_some_and(|cached| cached.written == written && cached.value().is_none()) {
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
                && cached.value().is_some()
            {
                self.complete = false;
                let released = self.loaded.remove_covering(&cached.key()[4..]);
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
