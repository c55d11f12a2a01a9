//! The store on RocksDB against the store in memory, across restarts.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::state::memory::MemoryStore;

const OPTIONS: RocksOptions = RocksOptions { memory_bytes: 64 << 20 };

fn open(folder: &tempfile::TempDir) -> Arc<RocksStore> {
    RocksStore::open(folder.path(), OPTIONS).unwrap()
}

fn contents(snapshot: &dyn Snapshot) -> Vec<Entry> {
    let user = layout::tables_range(layout::CATALOG_TABLE, u32::MAX);
    snapshot.scan(&user.0, &user.1).map(Result::unwrap).collect()
}

fn random_batch(random: &mut StdRng, epoch: Epoch, count: usize) -> EpochBatch {
    let mut writes = BTreeMap::new();
    for _ in 0..count {
        let table = [16, 17, 40][random.random_range(0..3)];
        let key = layout::store_key(table, random.random_range(0..4), &random.random_range(0..5_000_u32).to_be_bytes());
        let value = random.random_bool(0.7).then(|| Bytes::from(vec![epoch as u8; random.random_range(0..60)]));
        writes.insert(key, value);
    }
    let deleted_ranges = if random.random_bool(0.2) { vec![layout::table_range(17)] } else { Vec::new() };
    let mut writes: Vec<Write> = writes.into_iter().collect();
    writes.reverse();
    EpochBatch { epoch, writes, deleted_ranges }
}

fn copy(batch: &EpochBatch) -> EpochBatch {
    EpochBatch { epoch: batch.epoch, writes: batch.writes.clone(), deleted_ranges: batch.deleted_ranges.clone() }
}

#[test]
fn equals_the_store_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let memory = MemoryStore::new();
    let mut store = open(&folder);
    let mut random = StdRng::seed_from_u64(1);
    let mut older: Vec<(Arc<dyn Snapshot>, Arc<dyn Snapshot>)> = Vec::new();
    for epoch in 1..60 {
        let batch = random_batch(&mut random, epoch, 1_000);
        memory.commit(copy(&batch), Sync::Later).unwrap();
        store.commit(batch, [Sync::Now, Sync::Later][random.random_range(0..2)]).unwrap();
        if epoch % 7 == 0 {
            older.push((store.snapshot(), memory.snapshot()));
        }
        if epoch % 13 == 0 {
            older.clear();
            drop(store);
            store = open(&folder);
        }
        let (mine, theirs) = (store.snapshot(), memory.snapshot());
        assert_eq!(mine.epoch(), epoch);
        assert_eq!(contents(&*mine), contents(&*theirs));
        let keys: Vec<Bytes> = (0..50)
            .map(|_| layout::store_key(16, random.random_range(0..4), &random.random_range(0..5_000_u32).to_be_bytes()))
            .collect();
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        assert_eq!(mine.get_many(&keys).unwrap(), theirs.get_many(&keys).unwrap());
        assert_eq!(mine.get_many(&keys[..1]).unwrap(), theirs.get_many(&keys[..1]).unwrap());
        let (start, end) = layout::table_range(17);
        assert_eq!(mine.last(&start, &end).unwrap(), theirs.last(&start, &end).unwrap());
        assert_eq!(store.latest().epoch(), epoch);
    }
    for (mine, theirs) in older {
        assert_eq!(mine.epoch(), theirs.epoch());
        assert_eq!(contents(&*mine), contents(&*theirs), "snapshots are frozen");
    }
}

#[test]
fn a_large_epoch_equals_small_ones() {
    let (folder, other_folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (files, batches) = (open(&folder), open(&other_folder));
    let mut random = StdRng::seed_from_u64(2);
    for epoch in 1..8 {
        let mut batch = random_batch(&mut random, epoch, 20_000);
        batch.deleted_ranges.clear();
        // Sorted, as `commit` does, and by either path whatever the size.
        batch.writes.push((layout::epoch_key(), Some(Bytes::copy_from_slice(&epoch.to_be_bytes()))));
        let writes = sorted(batch.writes);
        files.ingest(epoch, &writes).unwrap();
        batches.write_batch(&writes, &[], Sync::Later).unwrap();
        assert_eq!(contents(&*files.snapshot()), contents(&*batches.snapshot()));
        assert_eq!(files.snapshot().epoch(), epoch);
    }
    let seen = contents(&*files.snapshot());
    drop(files);
    assert_eq!(contents(&*open(&folder).snapshot()), seen);
}

#[test]
fn large_epochs_are_ingested_and_leave_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let entry = |number: u32| (layout::store_key(20 + number % 2, 0, &number.to_be_bytes()), Some(Bytes::from("value")));
    let writes: Vec<Write> = (0..limits::INGEST_ENTRIES_MIN as u32).map(entry).collect();
    store.commit(EpochBatch { epoch: 5, writes, deleted_ranges: vec![] }, Sync::Now).unwrap();
    assert!(store.property(properties::TOTAL_SST_FILES_SIZE) > 0);
    assert_eq!(fs::read_dir(folder.path().join(INGEST_FOLDER)).unwrap().count(), 0);
    // A small epoch over a large one, then a large one over it.
    let small = vec![(layout::store_key(20, 0, &0_u32.to_be_bytes()), Some(Bytes::from("small")))];
    store.commit(EpochBatch { epoch: 6, writes: small.clone(), deleted_ranges: vec![] }, Sync::Later).unwrap();
    assert_eq!(store.snapshot().get_many(&[&small[0].0]).unwrap(), [Some(Bytes::from("small"))]);
    let writes: Vec<Write> = (0..limits::INGEST_ENTRIES_MIN as u32).map(entry).collect();
    store.commit(EpochBatch { epoch: 7, writes, deleted_ranges: vec![] }, Sync::Later).unwrap();
    assert_eq!(store.snapshot().get_many(&[&small[0].0]).unwrap(), [Some(Bytes::from("value"))]);
    assert_eq!(store.snapshot().epoch(), 7);
    drop(store);
    assert_eq!(open(&folder).snapshot().epoch(), 7);
}

#[test]
fn dropped_files_are_not_those_of_a_table_in_use() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let rows = |value: &'static str| -> Vec<Write> {
        (0..60_000_u32).map(|n| (layout::store_key(30, 0, &n.to_be_bytes()), Some(Bytes::from(value)))).collect()
    };
    store.commit(EpochBatch { epoch: 1, writes: rows("old"), deleted_ranges: vec![] }, Sync::Later).unwrap();
    let old = store.snapshot();
    let truncate = EpochBatch { epoch: 2, writes: vec![], deleted_ranges: vec![layout::table_range(30)] };
    store.commit(truncate, Sync::Later).unwrap();
    assert!(contents(&*store.snapshot()).is_empty());
    store.commit(EpochBatch { epoch: 3, ..EpochBatch::default() }, Sync::Later).unwrap();
    assert_eq!(contents(&*old).len(), 60_000, "a snapshot keeps what was deleted later");
    store.commit(EpochBatch { epoch: 4, writes: rows("new"), deleted_ranges: vec![] }, Sync::Later).unwrap();
    drop(old);
    store.commit(EpochBatch { epoch: 5, ..EpochBatch::default() }, Sync::Later).unwrap();
    assert_eq!(contents(&*store.snapshot()).len(), 60_000, "a table that is full again keeps its files");
    let drop_table = EpochBatch { epoch: 6, writes: vec![], deleted_ranges: vec![layout::table_range(30)] };
    store.commit(drop_table, Sync::Later).unwrap();
    store.commit(EpochBatch { epoch: 7, ..EpochBatch::default() }, Sync::Later).unwrap();
    assert!(contents(&*store.snapshot()).is_empty());
}

#[test]
fn refuses_what_it_cannot_open() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let error = RocksStore::open(folder.path(), OPTIONS).err().unwrap();
    assert!(matches!(&error, Error::CannotOpen(text) if text.contains("in use by another server")), "{error}");
    store.handle.db.put(layout::format_key(), 99_u32.to_be_bytes()).unwrap();
    drop(store);
    let error = RocksStore::open(folder.path(), OPTIONS).err().unwrap();
    assert!(matches!(&error, Error::CannotOpen(text) if text.contains("format 99")), "{error}");
    let file = folder.path().join("file");
    fs::write(&file, "not a directory").unwrap();
    assert!(matches!(RocksStore::open(&file, OPTIONS), Err(Error::CannotOpen(_))));
}

#[test]
fn epochs_come_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    store.commit(EpochBatch { epoch: 3, ..EpochBatch::default() }, Sync::Now).unwrap();
    assert!(store.commit(EpochBatch { epoch: 3, ..EpochBatch::default() }, Sync::Now).is_err());
    assert_eq!(store.snapshot().epoch(), 3);
}
