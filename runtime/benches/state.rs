//! How fast state is read and written: state tables in memory and out of core, commits by size, scans of relations.
//!
//! `cargo bench --bench state [filter]` prints figures; nothing is asserted. Stores are made in the temporary directory.
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout, clippy::disallowed_methods)]

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, Float64Array, Int32Array, Int64Array, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::record_batch::RecordBatch;
use plan::{Growth, Layout, Relation, RelationId, RelationKind};
use runtime::state::layout;
use runtime::state::memory::MemoryStore;
use runtime::state::relation::{RelationStorage, ScanOptions};
use runtime::state::rocks::{RocksOptions, RocksStore};
use runtime::state::{EpochBatch, Store, Sync, WorkerState};

fn main() {
    let filter = std::env::args().skip(1).find(|argument| !argument.starts_with("--")).unwrap_or_default();
    let benches: [(&str, fn()); 5] = [
        ("table_points", table_points),
        ("table_prefixes", table_prefixes),
        ("table_out_of_core", table_out_of_core),
        ("commits", commits),
        ("relations", relations),
    ];
    for (name, bench) in benches {
        if name.contains(&filter) {
            println!("{name}");
            bench();
        }
    }
}

/// A point in time, and the time that this thread has spent on a processor until then: on a busy machine only the
/// latter says what an operation costs.
#[derive(Clone, Copy)]
struct Start(Instant, f64);

impl Start {
    fn now() -> Self {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let nanos = text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or(0.0);
        Start(runtime::clock::monotonic(), nanos / 1e9)
    }

    fn elapsed(self) -> (f64, f64) {
        (runtime::clock::elapsed(self.0).as_secs_f64(), Start::now().1 - self.1)
    }
}

/// Prints how long an operation took, and how many a second one processor does.
fn report(what: &str, operations: usize, since: Start) {
    let (wall, cpu) = since.elapsed();
    let per = 1e9 / operations as f64;
    let rate = operations as f64 / cpu / 1e6;
    println!("  {what:<72} {rate:>9.3} M/s  {:>8.0} ns cpu {:>8.0} ns wall", cpu * per, wall * per);
}

struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % below
    }
}

/// A key as an encoded int8: a marker and eight bytes. The partition is a hash, as in operators.
fn key(number: u64) -> (u16, [u8; 9]) {
    let mut key = [1; 9];
    key[1..].copy_from_slice(&number.to_be_bytes());
    (runtime::delta::key::partition_of(&key), key)
}

fn table_points() {
    for keys in [1_000, 100_000, 1_000_000_u64] {
        let worker = WorkerState::new(MemoryStore::new(), 1 << 40);
        let epoch = Rc::new(Cell::new(1));
        let table = worker.table(20, true, epoch.clone());
        let start = Start::now();
        for number in 0..keys {
            let (partition, key) = key(number);
            table.put_slice(partition, &key, &[0; 32]);
        }
        report(&format!("put, new, {keys} keys"), keys as usize, start);
        let start = Start::now();
        let taken = worker.take_writes(1).len();
        report(&format!("take_writes, {keys} keys"), taken, start);
        worker.committed(1);
        let mut random = Random(88_172_645_463_325_252);
        let operations = 4_000_000;
        let batch: Vec<(u16, [u8; 9])> = (0..operations).map(|_| key(random.next(keys))).collect();
        let start = Start::now();
        for (partition, key) in &batch {
            std::hint::black_box(table.get(*partition, key).unwrap());
        }
        report(&format!("get, {keys} keys"), operations, start);
        let start = Start::now();
        for part in batch.chunks(8192) {
            let part: Vec<(u16, &[u8])> = part.iter().map(|(partition, key)| (*partition, &key[..])).collect();
            std::hint::black_box(table.get_many(&part).unwrap());
        }
        report(&format!("get_many of 8192, {keys} keys"), operations, start);
        epoch.set(2);
        let start = Start::now();
        for part in batch.chunks(8192) {
            let part: Vec<(u16, &[u8])> = part.iter().map(|(partition, key)| (*partition, &key[..])).collect();
            for ((partition, key), value) in part.iter().zip(table.get_many(&part).unwrap()) {
                let mut value: [u8; 32] = value.as_deref().unwrap().try_into().unwrap();
                value[0] = value[0].wrapping_add(1);
                table.put_slice(*partition, key, &value);
            }
        }
        report(&format!("get_many of 8192, change, put, {keys} keys"), operations, start);
        let bytes = worker.statistics().bytes;
        println!("  counted bytes an entry: {}", bytes / keys as usize);
    }
}

fn table_prefixes() {
    let (prefixes, rows) = (100_000, 10);
    let worker = WorkerState::new(MemoryStore::new(), 1 << 40);
    let table = worker.table(20, true, Rc::new(Cell::new(1)));
    table.scan_prefix(0, b"").unwrap();
    let start = Start::now();
    for row in 0..rows {
        for number in 0..prefixes {
            let (partition, prefix) = key(number);
            let mut key = prefix.to_vec();
            key.extend_from_slice(&u64::to_be_bytes(row * 7919));
            table.put(partition, &key, vec![0_u8; 32]);
        }
    }
    report("put, ordered, 1000000 keys", (prefixes * rows) as usize, start);
    let mut random = Random(1);
    let operations = 500_000;
    let start = Start::now();
    for _ in 0..operations {
        let (partition, prefix) = key(random.next(prefixes));
        std::hint::black_box(table.scan_prefix(partition, &prefix).unwrap());
    }
    report("scan_prefix, 10 entries each", operations, start);
    let start = Start::now();
    for _ in 0..operations {
        let (partition, prefix) = key(random.next(prefixes));
        std::hint::black_box(table.first_with_prefix(partition, &prefix).unwrap());
    }
    report("first_with_prefix", operations, start);
    let start = Start::now();
    for _ in 0..operations {
        let (partition, prefix) = key(random.next(prefixes));
        std::hint::black_box(table.last_with_prefix(partition, &prefix).unwrap());
    }
    report("last_with_prefix", operations, start);
}

fn open(memory_bytes: usize) -> (tempfile::TempDir, Arc<RocksStore>) {
    let folder = tempfile::tempdir().unwrap();
    let store = RocksStore::open(folder.path(), RocksOptions { memory_bytes }).unwrap();
    (folder, store)
}

/// An aggregate over more groups than fit: each epoch changes 100,000 of 3,000,000.
fn table_out_of_core() {
    for (skewed, budget) in [(false, 1 << 40), (false, 64 << 20), (true, 64 << 20)] {
        let (_folder, store) = open(256 << 20);
        let worker = WorkerState::new(store.clone(), budget);
        let epoch = Rc::new(Cell::new(0));
        let table = worker.table(20, true, epoch.clone());
        let keys = 3_000_000;
        let mut random = Random(7);
        let (epochs, an_epoch) = (60, 100_000);
        let mut start = Start::now();
        for number in 1..=epochs {
            epoch.set(number);
            if number == 31 {
                start = Start::now();
            }
            let first = (number - 1) * an_epoch;
            let mut pick = |index: u64| match number {
                // The first half of the epochs adds all keys.
                ..=30 => first + index,
                _ if skewed && random.next(10) > 0 => random.next(keys / 50),
                _ => random.next(keys),
            };
            let batch: Vec<(u16, [u8; 9])> = (0..an_epoch).map(|index| key(pick(index))).collect();
            for part in batch.chunks(8192) {
                let part: Vec<(u16, &[u8])> = part.iter().map(|(partition, key)| (*partition, &key[..])).collect();
                let values = table.get_many(&part).unwrap();
                for ((partition, key), value) in part.iter().zip(values) {
                    let mut value = value.map_or_else(|| vec![0; 32], |value| value.to_vec());
                    value[0] = value[0].wrapping_add(1);
                    table.put(*partition, key, value);
                }
            }
            let writes = worker.take_writes(number);
            store.commit(&EpochBatch { epoch: number, writes, deleted_ranges: vec![] }, Sync::Later).unwrap();
            worker.committed(number);
            worker.evict();
            if number == 30 {
                report("get, put and commit of new keys, 100000 an epoch", (30 * an_epoch) as usize, start);
            }
        }
        let what = format!("change of 3000000 keys, skewed: {skewed}, cache {} MB", budget >> 20);
        report(&what, (30 * an_epoch) as usize, start);
        println!("  cached: {:?}", worker.statistics());
    }
}

fn commits() {
    for (entries, epochs) in
        [(1, 5_000), (10, 5_000), (1_000, 500), (10_000, 100), (49_000, 40), (60_000, 40), (500_000, 10)]
    {
        for sync in [Sync::Later, Sync::Now] {
            let (_folder, store) = open(256 << 20);
            let mut random = Random(3);
            let batches: Vec<Vec<(Bytes, Option<Bytes>)>> = (0..epochs)
                .map(|_| {
                    let mut numbers: Vec<u64> = (0..entries).map(|_| random.next(5_000_000)).collect();
                    numbers.sort_unstable();
                    numbers.dedup();
                    let write =
                        |number| (layout::store_key(20, 0, &u64::to_be_bytes(number)), Some(Bytes::from(vec![7; 32])));
                    numbers.into_iter().map(write).collect()
                })
                .collect();
            let total: usize = batches.iter().map(Vec::len).sum();
            let start = Start::now();
            for (number, writes) in batches.into_iter().enumerate() {
                let epoch = number as u64 + 1;
                store.commit(&EpochBatch { epoch, writes, deleted_ranges: vec![] }, sync).unwrap();
            }
            let each = start.elapsed().0 * 1e6 / f64::from(epochs);
            report(&format!("commit of {entries}, {sync:?}: {each:.0} us an epoch"), total, start);
        }
    }
}

fn relations() {
    let schema = Arc::new(Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("city", DataType::Utf8, true),
        Field::new("delay", DataType::Int32, true),
        Field::new("distance", DataType::Float64, true),
    ]));
    let rows = 1_000_000_i64;
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(0..rows)),
        Arc::new(StringArray::from_iter_values((0..rows).map(|row| format!("city {}", row % 100)))),
        Arc::new(Int32Array::from_iter_values((0..rows).map(|row| (row % 500) as i32))),
        Arc::new(Float64Array::from_iter_values((0..rows).map(|row| row as f64))),
    ];
    let batch = RecordBatch::try_new(schema.clone(), columns).unwrap();
    for layout in [Layout::RowId, Layout::Keyed(vec![0])] {
        let relation = Relation {
            id: RelationId(20),
            name: "r".to_string(),
            kind: RelationKind::Table,
            schema: schema.clone(),
            layout: layout.clone(),
            append_only: false,
            growth: Growth::Deletable,
            watermarks: vec![],
        };
        let storage = RelationStorage::new(Arc::new(relation)).unwrap();
        let (_folder, store) = open(256 << 20);
        let (mut encoding, mut chunk) = (0.0, 0);
        let start = Start::now();
        for (number, from) in (0..rows as usize).step_by(100_000).enumerate() {
            let begun = runtime::clock::monotonic();
            let (writes, _, used) = storage.insert(&batch.slice(from, 100_000), chunk).unwrap();
            chunk += used;
            encoding += runtime::clock::elapsed(begun).as_secs_f64();
            store.commit(&EpochBatch { epoch: number as u64 + 1, writes, deleted_ranges: vec![] }, Sync::Now).unwrap();
        }
        report(&format!("insert of 100000 an epoch, {layout:?}, {encoding:.2} s encoding"), rows as usize, start);
        for projection in [None, Some(vec![2]), Some(vec![])] {
            let start = Start::now();
            let options = ScanOptions { projection: projection.clone(), ..ScanOptions::default() };
            let scan = storage.scan(store.snapshot(), options);
            let count: usize = scan.map(|scanned| scanned.unwrap().batch.num_rows()).sum();
            report(&format!("scan, {layout:?}, projection {projection:?}"), count, start);
        }
        println!("  {:?}", store.statistics());
    }
}
