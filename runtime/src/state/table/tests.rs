//! State tables against a model: an ordered map that is copied at every epoch.

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::state::memory::MemoryStore;
use crate::state::store::{EpochBatch, Sync};

const TABLE: u32 = 20;
type Model = BTreeMap<(u16, Vec<u8>), Vec<u8>>;

struct World {
    random: StdRng,
    store: Arc<dyn Store>,
    worker: WorkerState,
    table: StateTable,
    epoch: Rc<Cell<Epoch>>,
    model: Model,
    /// The model as it was at the end of an epoch, for epochs whose writes were not taken or not committed.
    ended: BTreeMap<Epoch, Model>,
    taken: BTreeMap<Epoch, Vec<Write>>,
    committed: Model,
}

impl World {
    fn new(seed: u64, store: Arc<dyn Store>, fresh: bool) -> Self {
        let mut random = StdRng::seed_from_u64(seed);
        let budget = [0, 2_000, 20_000, 1 << 30][random.random_range(0..4)];
        let epoch = Rc::new(Cell::new(1));
        let worker = WorkerState::new(store.clone(), budget);
        let table = worker.table(TABLE, fresh, epoch.clone());
        World {
            random,
            store,
            worker,
            table,
            epoch,
            model: Model::new(),
            ended: BTreeMap::new(),
            taken: BTreeMap::new(),
            committed: Model::new(),
        }
    }

    fn key(&mut self) -> (u16, Vec<u8>) {
        let length = self.random.random_range(0..6);
        let key = (0..length).map(|_| [0, 1, 7, 0xff][self.random.random_range(0..4)]).collect();
        ([0, 5, 1023][self.random.random_range(0..3)], key)
    }

    fn range(&self, partition: u16, start: &[u8], end: Option<&[u8]>) -> Vec<Entry> {
        let entries = self
            .model
            .iter()
            .filter(|((of, key), _)| *of == partition && &key[..] >= start && end.is_none_or(|end| &key[..] < end));
        entries.map(|((_, key), value)| (key.clone().into(), value.clone().into())).collect()
    }

    fn prefixed(&self, partition: u16, prefix: &[u8]) -> Vec<Entry> {
        let mut entries = self.range(partition, prefix, None);
        entries.retain(|(key, _)| key.starts_with(prefix));
        entries
    }

    fn step(&mut self) {
        let (partition, key) = self.key();
        match self.random.random_range(0..100) {
            0..35 => {
                let value = vec![self.random.random::<u8>(); self.random.random_range(0..20)];
                self.table.put(partition, &key, value.clone());
                self.model.insert((partition, key), value);
            }
            35..50 => {
                self.table.delete(partition, &key);
                self.model.remove(&(partition, key));
            }
            50..60 => {
                let expected = self.model.get(&(partition, key.clone())).cloned().map(Bytes::from);
                assert_eq!(self.table.get(partition, &key).unwrap(), expected);
            }
            60..65 => {
                let keys: Vec<_> = (0..5).map(|_| self.key()).collect();
                let expected: Vec<_> = keys.iter().map(|key| self.model.get(key).cloned().map(Bytes::from)).collect();
                let keys: Vec<(u16, &[u8])> = keys.iter().map(|(partition, key)| (*partition, &key[..])).collect();
                assert_eq!(self.table.get_many(&keys).unwrap(), expected);
            }
            65..72 => assert_eq!(self.table.scan_prefix(partition, &key).unwrap(), self.prefixed(partition, &key)),
            72..76 => {
                let expected = self.prefixed(partition, &key);
                assert_eq!(self.table.first_with_prefix(partition, &key).unwrap().as_ref(), expected.first());
            }
            76..80 => {
                let expected = self.prefixed(partition, &key);
                assert_eq!(self.table.last_with_prefix(partition, &key).unwrap().as_ref(), expected.last());
            }
            80..85 => {
                let end = self.key().1;
                let end = self.random.random_bool(0.8).then_some(&end[..]);
                let limit = self.random.random_range(0..30);
                let mut expected = self.range(partition, &key, end);
                expected.truncate(limit);
                assert_eq!(self.table.scan_range(partition, &key, end, limit).unwrap(), expected);
            }
            85..90 => self.end_epoch(),
            90..94 => self.take(),
            94..98 => self.commit(),
            98 => self.worker.evict(),
            _ => self.restart(),
        }
    }

    fn end_epoch(&mut self) {
        self.ended.insert(self.epoch.get(), self.model.clone());
        self.epoch.set(self.epoch.get() + self.random.random_range(1..3));
    }

    fn take(&mut self) {
        let next = self.taken.last_key_value().map_or(0, |(epoch, _)| *epoch);
        if let Some(epoch) = self.ended.range(next + 1..).next().map(|(epoch, _)| *epoch) {
            let writes = self.worker.take_writes(epoch);
            assert!(writes.is_sorted_by(|a, b| a.0 < b.0), "in key order, one write a key");
            self.taken.insert(epoch, writes);
        }
    }

    fn commit(&mut self) {
        let Some((epoch, writes)) = self.taken.pop_first() else { return };
        self.store.commit(&EpochBatch { epoch, writes, deleted_ranges: vec![] }, Sync::Later).unwrap();
        self.worker.committed(epoch);
        self.worker.evict();
        self.committed = self.ended.remove(&epoch).unwrap();
        let (start, end) = layout::table_range(TABLE);
        let stored: Model = (self.store.snapshot().scan(&start, &end).map(Result::unwrap))
            .map(|(key, value)| {
                let (_, partition, key) = layout::split_key(&key).unwrap();
                ((partition, key.to_vec()), value.to_vec())
            })
            .collect();
        assert_eq!(stored, self.committed, "the store holds what the epoch left");
    }

    /// What was not committed is lost.
    fn restart(&mut self) {
        self.worker = WorkerState::new(self.store.clone(), 5_000);
        self.table = self.worker.table(TABLE, false, self.epoch.clone());
        self.epoch.set(self.store.snapshot().epoch() + 1);
        self.ended.clear();
        self.taken.clear();
        self.model = self.committed.clone();
    }
}

#[test]
fn table_equals_model() {
    for seed in 0..150 {
        let mut world = World::new(seed, MemoryStore::new(), seed % 3 != 0);
        for _ in 0..1_000 {
            world.step();
        }
    }
}

#[test]
fn budget_counts_what_is_cached() {
    let worker = WorkerState::new(MemoryStore::new(), 100_000);
    let epoch = Rc::new(Cell::new(1));
    let table = worker.table(TABLE, true, epoch);
    for number in 0..2_000_u32 {
        table.put(0, &number.to_be_bytes(), vec![0; 100]);
    }
    table.scan_prefix(0, b"").unwrap();
    assert_eq!(worker.statistics().entries, 2_000);
    worker.evict();
    assert_eq!(worker.statistics().entries, 2_000, "uncommitted entries stay");
    worker.take_writes(1);
    worker.committed(1);
    worker.evict();
    assert!(worker.statistics().bytes <= 100_000);
    worker.forget_tables(TABLE..=TABLE);
    drop(table);
    assert_eq!(worker.statistics().bytes, 0);
}

#[test]
fn what_never_reached_the_store_is_not_deleted_from_it() {
    let worker = WorkerState::new(MemoryStore::new(), 1 << 20);
    let table = worker.table(TABLE, true, Rc::new(Cell::new(1)));
    table.put(1, b"short-lived", &b"value"[..]);
    table.delete(1, b"short-lived");
    table.delete(1, b"never there");
    assert!(worker.take_writes(1).is_empty());
}
