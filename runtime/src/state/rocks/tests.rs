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

#[test]
fn equals_the_store_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let memory = MemoryStore::new();
    let mut store = open(&folder);
    let mut random = StdRng::seed_from_u64(1);
    let mut older: Vec<(Arc<dyn Snapshot>, Arc<dyn Snapshot>)> = Vec::new();
    for epoch in 1..60 {
        let batch = random_batch(&mut random, epoch, 1_000);
        memory.commit(&batch, Sync::Later).unwrap();
        store.commit(&batch, [Sync::Now, Sync::Later][random.random_range(0..2)]).unwrap();
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
        let writes = sorted(batch.writes.iter().collect());
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
    let entry =
        |number: u32| (layout::store_key(20 + number % 2, 0, &number.to_be_bytes()), Some(Bytes::from("value")));
    let writes: Vec<Write> = (0..limits::INGEST_ENTRIES_MIN as u32).map(entry).collect();
    store.commit(&EpochBatch { epoch: 5, writes, deleted_ranges: vec![] }, Sync::Now).unwrap();
    assert!(store.property(properties::TOTAL_SST_FILES_SIZE) > 0);
    assert_eq!(fs::read_dir(folder.path().join(INGEST_FOLDER)).unwrap().count(), 0);
    // A small epoch over a large one, then a large one over it.
    let small = vec![(layout::store_key(20, 0, &0_u32.to_be_bytes()), Some(Bytes::from("small")))];
    store.commit(&EpochBatch { epoch: 6, writes: small.clone(), deleted_ranges: vec![] }, Sync::Later).unwrap();
    assert_eq!(store.snapshot().get_many(&[&small[0].0]).unwrap(), [Some(Bytes::from("small"))]);
    let writes: Vec<Write> = (0..limits::INGEST_ENTRIES_MIN as u32).map(entry).collect();
    store.commit(&EpochBatch { epoch: 7, writes, deleted_ranges: vec![] }, Sync::Later).unwrap();
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
    store.commit(&EpochBatch { epoch: 1, writes: rows("old"), deleted_ranges: vec![] }, Sync::Later).unwrap();
    let old = store.snapshot();
    let truncate = EpochBatch { epoch: 2, writes: vec![], deleted_ranges: vec![layout::table_range(30)] };
    store.commit(&truncate, Sync::Later).unwrap();
    assert!(contents(&*store.snapshot()).is_empty());
    store.commit(&EpochBatch { epoch: 3, ..EpochBatch::default() }, Sync::Later).unwrap();
    assert_eq!(contents(&*old).len(), 60_000, "a snapshot keeps what was deleted later");
    store.commit(&EpochBatch { epoch: 4, writes: rows("new"), deleted_ranges: vec![] }, Sync::Later).unwrap();
    drop(old);
    store.commit(&EpochBatch { epoch: 5, ..EpochBatch::default() }, Sync::Later).unwrap();
    assert_eq!(contents(&*store.snapshot()).len(), 60_000, "a table that is full again keeps its files");
    let drop_table = EpochBatch { epoch: 6, writes: vec![], deleted_ranges: vec![layout::table_range(30)] };
    store.commit(&drop_table, Sync::Later).unwrap();
    store.commit(&EpochBatch { epoch: 7, ..EpochBatch::default() }, Sync::Later).unwrap();
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
    store.commit(&EpochBatch { epoch: 3, ..EpochBatch::default() }, Sync::Now).unwrap();
    assert!(store.commit(&EpochBatch { epoch: 3, ..EpochBatch::default() }, Sync::Now).is_err());
    assert_eq!(store.snapshot().epoch(), 3);
}

/// Needs a small file system of its own, such as `mount -t tmpfs -o size=64m tmpfs /mnt/small`, whose path is in
/// `TIDEMILL_SMALL_DISK`. Without it nothing is tested.
#[test]
fn goes_on_when_there_is_space_again() {
    let Ok(disk) = std::env::var("TIDEMILL_SMALL_DISK") else { return };
    for large in [false, true] {
        let folder = tempfile::tempdir_in(&disk).unwrap();
        let ballast = folder.path().join("ballast");
        fs::write(&ballast, vec![1; 24 << 20]).unwrap();
        let store = RocksStore::open(&folder.path().join("data"), OPTIONS).unwrap();
        let mut random = StdRng::seed_from_u64(8);
        let mut batch = |epoch: Epoch| {
            // Written again and again, so that compactions make space; not compressible.
            let value = |random: &mut StdRng| Some((0..1000).map(|_| random.random::<u8>()).collect::<Bytes>());
            let count = if large { limits::INGEST_BYTES_MIN as u32 / 1000 + 1 } else { 1_000 };
            let first = if large { 0 } else { (epoch as u32 % 4) * count };
            let write = |n: u32| (layout::store_key(20, 0, &(first + n).to_be_bytes()), value(&mut random));
            EpochBatch { epoch, writes: (0..count).map(write).collect(), deleted_ranges: vec![] }
        };
        let memory = MemoryStore::new();
        let mut epoch = 1;
        let refused = loop {
            let next = batch(epoch);
            match store.commit(&next, Sync::Now) {
                Ok(()) => memory.commit(&next, Sync::Now).unwrap(),
                Err(error) => {
                    assert!(matches!(error, Error::DiskFull(_)), "{error}");
                    break next;
                }
            }
            epoch += 1;
            assert!(epoch < 1_000, "the disk is never full");
        };
        assert!(epoch > 1);
        assert_eq!(store.snapshot().epoch(), epoch - 1);
        assert!(contents(&*store.snapshot()) == contents(&*memory.snapshot()), "reads go on");
        fs::remove_file(&ballast).unwrap();
        let start = crate::clock::monotonic();
        while let Err(error) = store.commit(&refused, Sync::Now) {
            assert!(matches!(error, Error::DiskFull(_)), "{error}");
            assert!(crate::clock::elapsed(start).as_secs() < 60, "{error}");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        eprintln!("large epochs: {large}; full at epoch {epoch}, went on after {:?}", crate::clock::elapsed(start));
        memory.commit(&refused, Sync::Now).unwrap();
        assert!(contents(&*store.snapshot()) == contents(&*memory.snapshot()));
        drop(store);
        let store = RocksStore::open(&folder.path().join("data"), OPTIONS).unwrap();
        assert_eq!(store.snapshot().epoch(), epoch);
        assert!(contents(&*store.snapshot()) == contents(&*memory.snapshot()));
    }
}

/// What epoch `epoch` writes in the crash test: at times enough to be ingested.
fn crash_batch(epoch: Epoch) -> EpochBatch {
    let mut random = StdRng::seed_from_u64(epoch);
    let count =
        if epoch.is_multiple_of(9) { limits::INGEST_ENTRIES_MIN as u32 + 50 } else { random.random_range(1..300) };
    let first = random.random_range(0..1_000_u32);
    let write = |n: u32| {
        let value = (!random.random_bool(0.2)).then(|| Bytes::copy_from_slice(&epoch.to_be_bytes()));
        (layout::store_key(16 + n % 3, 0, &(first + n).to_be_bytes()), value)
    };
    let writes = (0..count).map(write).collect();
    let deleted_ranges = if epoch.is_multiple_of(31) { vec![layout::table_range(17)] } else { vec![] };
    EpochBatch { epoch, writes, deleted_ranges }
}

/// The process that is killed: commits, and says which epochs it was promised.
#[test]
fn crash_writer() {
    use std::io::Write as _;
    let Ok(folder) = std::env::var("TIDEMILL_CRASH_WRITER") else { return };
    let store = RocksStore::open(Path::new(&folder), OPTIONS).unwrap();
    let first = store.snapshot().epoch() + 1;
    for epoch in first..first + 10_000 {
        store.commit(&crash_batch(epoch), Sync::Now).unwrap();
        writeln!(std::io::stderr(), "committed {epoch}").unwrap();
    }
}

#[test]
fn a_killed_process_leaves_whole_epochs() {
    use std::io::{BufRead, BufReader};
    let folder = tempfile::tempdir().unwrap();
    let mut random = StdRng::seed_from_u64(9);
    let memory = MemoryStore::new();
    let mut copied = 0;
    for _ in 0..6 {
        let mut child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["state::rocks::tests::crash_writer", "--exact", "--nocapture"])
            .env("TIDEMILL_CRASH_WRITER", folder.path())
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut promised = copied;
        let mut note = |line: std::io::Result<String>| {
            promised = line.unwrap().strip_prefix("committed ").map_or(promised, |epoch| epoch.parse().unwrap());
        };
        lines.by_ref().take(random.random_range(1..30)).for_each(&mut note);
        // Somewhere within the next epoch.
        std::thread::sleep(std::time::Duration::from_micros(random.random_range(0..5_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        lines.for_each(note);
        let store = open(&folder);
        let epoch = store.snapshot().epoch();
        assert!(epoch >= promised, "epoch {promised} was promised, {epoch} is there");
        for epoch in copied + 1..=epoch {
            memory.commit(&crash_batch(epoch), Sync::Now).unwrap();
        }
        copied = epoch;
        assert!(contents(&*store.snapshot()) == contents(&*memory.snapshot()), "whole epochs up to {epoch}");
    }
}
