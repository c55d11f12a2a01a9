//! The store on RocksDB. The only file that names it.
//!
//! How an epoch is written:
//! - A small one is one sorted `WriteBatch` through the write-ahead log, which holds its number too.
//! - A large one ([`limits::INGEST_ENTRIES_MIN`], [`limits::INGEST_BYTES_MIN`]) is written as sorted files, cut between
//!   tables, one of which holds its number. They are ingested in one step, so the manifest has either all or none of
//!   them. The log is synced first: otherwise a power cut could lose an earlier epoch and keep this one.
//! - An epoch that deletes ranges is always a batch: in a batch the puts that follow a range deletion survive it.
//!
//! A full disk: the write fails with [`Error::DiskFull`] and nothing of the epoch is applied. RocksDB refuses further
//! writes, reads go on; every five seconds it looks for free space and resumes by itself when there is some. A failed
//! commit may be repeated with the same epoch at any time: its writes do not depend on what was there.
//!
//! Ranges that were deleted are covered by range tombstones at once. Their files are dropped when no snapshot can see
//! them any more and the range is still empty (a truncated table may be full again).

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DB, DBCompressionType, DBRawIterator,
    DataBlockIndexType, IngestExternalFileOptions, Options, ReadOptions, SnapshotWithThreadMode, SstFileWriter,
    WriteBatch, WriteOptions, properties,
};

use crate::Epoch;
use crate::error::{Error, Result};
use crate::limits;
use crate::state::layout;
use crate::state::order::key_head;
use crate::state::store::{Entry, EpochBatch, Snapshot, Store, StoreStatistics, Sync, Write};

/// RocksDB's files, in the data directory.
const DATABASE_FOLDER: &str = "db";
/// Files that are being built, in the data directory: on the same disk, so that ingesting them is a rename.
const INGEST_FOLDER: &str = "ingest";

/// Values from this length on begin at a multiple of [`VALUE_ALIGNMENT`] in a scan's block: columnar chunks are then
/// decoded where they are.
const ALIGNED_VALUE_BYTES_MIN: usize = 4096;
/// What the widest Arrow values need.
const VALUE_ALIGNMENT: usize = 16;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct RocksOptions {
    /// Bytes for block cache and memtables together.
    pub memory_bytes: usize,
}

/// The store on RocksDB.
pub struct RocksStore {
    handle: Arc<Handle>,
    options: Options,
    ingest_folder: PathBuf,
    writer: Mutex<Writer>,
}

/// The open database, shared with the snapshots.
struct Handle {
    db: DB,
    /// How many snapshots there are of each epoch.
    live: Mutex<BTreeMap<Epoch, usize>>,
}

/// What only the one who commits needs.
struct Writer {
    /// The newest committed epoch.
    epoch: Epoch,
    /// Ranges deleted by an epoch, of which the files have not been dropped yet.
    deleted: Vec<(Epoch, Bytes, Bytes)>,
}

impl RocksStore {
    /// Opens the database in a data directory, which is created if it does not exist.
    pub fn open(path: &Path, options: RocksOptions) -> Result<Arc<RocksStore>> {
        let ingest_folder = path.join(INGEST_FOLDER);
        let cannot_open = |error: std::io::Error| {
            Error::CannotOpen(format!("cannot open data directory \"{}\": {error}", path.display()))
        };
        fs::create_dir_all(path).map_err(cannot_open)?;
        let options = database_options(options.memory_bytes);
        let families = [ColumnFamilyDescriptor::new("default", options.clone())];
        let db = DB::open_cf_descriptors(&options, path.join(DATABASE_FOLDER), families)
            .map_err(|error| classify_open(path, &error))?;
        // Only now that the lock is ours: what is left there was never ingested.
        if ingest_folder.exists() {
            fs::remove_dir_all(&ingest_folder).map_err(cannot_open)?;
        }
        fs::create_dir_all(&ingest_folder).map_err(cannot_open)?;
        check_format(&db, path)?;
        let epoch = read_epoch(&db, &ReadOptions::default())?;
        let handle = Arc::new(Handle { db, live: Mutex::default() });
        let writer = Mutex::new(Writer { epoch, deleted: Vec::new() });
        Ok(Arc::new(RocksStore { handle, options, ingest_folder, writer }))
    }

    fn write_batch(&self, writes: &[&Write], deleted_ranges: &[(Bytes, Bytes)], sync: Sync) -> Result<()> {
        let mut batch = WriteBatch::default();
        for (start, end) in deleted_ranges {
            batch.delete_range(start, end);
        }
        for (key, value) in writes {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        let mut options = WriteOptions::default();
        options.set_sync(sync == Sync::Now);
        options.set_memtable_insert_hint_per_batch(true);
        self.handle.db.write_opt(batch, &options).map_err(|error| classify(&error))
    }

    fn ingest(&self, epoch: Epoch, writes: &[&Write]) -> Result<()> {
        let parts = file_parts(writes);
        let name = |number| self.ingest_folder.join(format!("{epoch}-{number}.sst"));
        let files: Vec<PathBuf> = (0..parts.len()).map(name).collect();
        let result = self.build_files(&parts, &files).and_then(|()| {
            self.handle.db.flush_wal(true).map_err(|error| classify(&error))?;
            let mut options = IngestExternalFileOptions::default();
            options.set_move_files(true);
            self.handle.db.ingest_external_file_opts(&options, files.clone()).map_err(|error| classify(&error))
        });
        if result.is_err() {
            for file in files {
                // Whatever remains is removed at the next start.
                let _ = fs::remove_file(file);
            }
        }
        result
    }

    /// Builds the files on all cores: nobody is answered before they are there.
    fn build_files(&self, parts: &[&[&Write]], files: &[PathBuf]) -> Result<()> {
        let next = AtomicUsize::new(0);
        let build = || -> Result<()> {
            while let Some((part, file)) = {
                let number = next.fetch_add(1, Ordering::Relaxed);
                parts.get(number).zip(files.get(number))
            } {
                build_file(&self.options, part, file).map_err(|error| classify(&error))?;
            }
            Ok(())
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(parts.len());
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(build)).collect();
            let own = build();
            let panicked = |_| Err(Error::Storage("building a file of an epoch panicked".to_string()));
            others.into_iter().fold(own, |result, other| result.and(other.join().unwrap_or_else(panicked)))
        })
    }

    /// Drops the files of deleted ranges that nobody can see any more.
    fn drop_deleted_files(&self, writer: &mut Writer) {
        let oldest = self.handle.live.lock().first_key_value().map_or(Epoch::MAX, |(epoch, _)| *epoch);
        writer.deleted.retain(|(epoch, start, end)| {
            if *epoch > oldest {
                return true;
            }
            let mut options = ReadOptions::default();
            options.set_iterate_upper_bound(end.clone());
            let mut iterator = self.handle.db.raw_iterator_opt(options);
            iterator.seek(start);
            // When it is in use again, compactions will get rid of what was deleted.
            if !iterator.valid()
                && iterator.status().is_ok()
                && let Err(error) = self.handle.db.delete_file_in_range(start, end)
            {
                tracing::warn!(%error, "cannot drop the files of deleted entries; they go with later compactions");
            }
            false
        });
    }

    fn property(&self, name: &rocksdb::properties::PropName) -> u64 {
        self.handle.db.property_int_value(name).ok().flatten().unwrap_or(0)
    }
}

impl Store for RocksStore {
    fn commit(&self, batch: &EpochBatch, sync: Sync) -> Result<()> {
        let epoch = batch.epoch;
        let mut writer = self.writer.lock();
        if epoch <= writer.epoch {
            return Err(Error::Storage(format!("epoch {epoch} comes after epoch {}", writer.epoch)));
        }
        if !writer.deleted.is_empty() {
            self.drop_deleted_files(&mut writer);
        }
        let deleted_ranges: Vec<_> = batch.deleted_ranges.iter().filter(|(start, end)| start < end).cloned().collect();
        let own = (layout::epoch_key(), Some(Bytes::copy_from_slice(&epoch.to_be_bytes())));
        let writes = sorted(batch.writes.iter().chain([&own]).collect());
        let bytes: usize = writes.iter().map(|(key, value)| key.len() + value.as_ref().map_or(0, Bytes::len)).sum();
        let large = writes.len() >= limits::INGEST_ENTRIES_MIN || bytes >= limits::INGEST_BYTES_MIN;
        if large && deleted_ranges.is_empty() {
            self.ingest(epoch, &writes)?;
        } else {
            self.write_batch(&writes, &deleted_ranges, sync)?;
        }
        writer.epoch = epoch;
        writer.deleted.extend(deleted_ranges.into_iter().map(|(start, end)| (epoch, start, end)));
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.handle.db.flush_wal(true).map_err(|error| classify(&error))
    }

    fn snapshot(&self) -> Arc<dyn Snapshot> {
        Arc::new(RocksSnapshot::frozen(self.handle.clone()))
    }

    fn latest(&self) -> Arc<dyn Snapshot> {
        Arc::new(RocksSnapshot { frozen: None, handle: self.handle.clone() })
    }

    fn statistics(&self) -> StoreStatistics {
        StoreStatistics {
            disk_bytes: self.property(properties::TOTAL_SST_FILES_SIZE)
                + self.property(properties::CUR_SIZE_ALL_MEM_TABLES),
            memory_bytes: self.property(properties::BLOCK_CACHE_USAGE)
                + self.property(properties::CUR_SIZE_ALL_MEM_TABLES),
        }
    }
}

/// A view of the database: frozen, or always the newest.
struct RocksSnapshot {
    // Before the handle: fields are dropped in this order, and a snapshot must be released while its database is open.
    frozen: Option<(SnapshotWithThreadMode<'static, DB>, Epoch)>,
    handle: Arc<Handle>,
}

impl RocksSnapshot {
    fn frozen(handle: Arc<Handle>) -> Self {
        // Until the epoch is known, no file may be dropped.
        let mut live = handle.live.lock();
        let snapshot = handle.db.snapshot();
        let mut options = ReadOptions::default();
        options.set_snapshot(&snapshot);
        // The same read succeeded when the database was opened. If it fails now the disk does, and so will what follows.
        let epoch = read_epoch(&handle.db, &options).unwrap_or_else(|error| {
            tracing::error!(%error, "cannot read the epoch of a snapshot");
            0
        });
        *live.entry(epoch).or_default() += 1;
        // SAFETY: the snapshot borrows `handle.db`, which stays at its address, inside of the `Arc`, and open as long as
        // the `Arc` lives. The struct owns a clone of it, and drops the snapshot first.
        #[allow(unsafe_code)]
        let snapshot = unsafe {
            std::mem::transmute::<SnapshotWithThreadMode<'_, DB>, SnapshotWithThreadMode<'static, DB>>(snapshot)
        };
        drop(live);
        RocksSnapshot { frozen: Some((snapshot, epoch)), handle }
    }

    fn read_options(&self) -> ReadOptions {
        let mut options = ReadOptions::default();
        if let Some((snapshot, _)) = &self.frozen {
            options.set_snapshot(snapshot);
        }
        options
    }

    fn family(&self) -> Result<&ColumnFamily> {
        self.handle.db.cf_handle("default").ok_or_else(|| Error::Storage("the column family is missing".to_string()))
    }
}

impl Drop for RocksSnapshot {
    fn drop(&mut self) {
        let Some((_, epoch)) = &self.frozen else { return };
        let mut live = self.handle.live.lock();
        if let Some(count) = live.get_mut(epoch) {
            *count -= 1;
            if *count == 0 {
                live.remove(epoch);
            }
        }
    }
}

impl Snapshot for RocksSnapshot {
    fn get_many(&self, keys: &[&[u8]]) -> Result<Vec<Option<Bytes>>> {
        let options = self.read_options();
        if let [key] = keys {
            let value = self.handle.db.get_pinned_opt(key, &options).map_err(|error| classify(&error))?;
            return Ok(vec![value.map(|value| Bytes::copy_from_slice(&value))]);
        }
        let sorted = keys.is_sorted();
        let values = self.handle.db.batched_multi_get_cf_opt(self.family()?, keys.iter().copied(), sorted, &options);
        let copied = values.into_iter().map(|value| match value {
            Ok(value) => Ok(value.map(|value| Bytes::copy_from_slice(&value))),
            Err(error) => Err(classify(&error)),
        });
        copied.collect()
    }

    fn scan(&self, start: &[u8], end: &[u8]) -> Box<dyn Iterator<Item = Result<Entry>> + Send + '_> {
        if start >= end {
            return Box::new(std::iter::empty());
        }
        let mut options = self.read_options();
        options.set_iterate_upper_bound(end);
        Box::new(Scan {
            iterator: self.handle.db.raw_iterator_opt(options),
            start: Some(start.to_vec()),
            block: Bytes::new(),
            entries: Vec::new().into_iter(),
            entries_max: limits::SCAN_BLOCK_ENTRIES_MIN,
            bytes_max: limits::SCAN_BLOCK_BYTES_MIN,
        })
    }

    fn last(&self, start: &[u8], end: &[u8]) -> Result<Option<Entry>> {
        if start >= end {
            return Ok(None);
        }
        let mut options = self.read_options();
        options.set_iterate_lower_bound(start);
        options.set_iterate_upper_bound(end);
        let mut iterator = self.handle.db.raw_iterator_opt(options);
        iterator.seek_to_last();
        let copy = |(key, value)| (Bytes::copy_from_slice(key), Bytes::copy_from_slice(value));
        let entry = iterator.item().map(copy);
        iterator.status().map_err(|error| classify(&error))?;
        Ok(entry)
    }

    fn epoch(&self) -> Epoch {
        match &self.frozen {
            Some((_, epoch)) => *epoch,
            None => read_epoch(&self.handle.db, &ReadOptions::default()).unwrap_or(0),
        }
    }
}

/// Where an entry stands in a block.
struct Place {
    key: std::ops::Range<usize>,
    value: std::ops::Range<usize>,
}

/// Entries in key order. They are copied out in blocks which the entries share: an allocation a block, not two an entry.
struct Scan<'a> {
    iterator: DBRawIterator<'a>,
    /// Where to begin; none once begun.
    start: Option<Vec<u8>>,
    block: Bytes,
    /// Where key, value and their ends are in the block, for each entry.
    entries: std::vec::IntoIter<Place>,
    entries_max: usize,
    bytes_max: usize,
}

impl Scan<'_> {
    fn fill(&mut self) -> Result<()> {
        if let Some(start) = self.start.take() {
            self.iterator.seek(start);
        }
        let mut block = Vec::new();
        let mut entries = Vec::with_capacity(self.entries_max);
        while entries.len() < self.entries_max && block.len() < self.bytes_max {
            let Some((key, value)) = self.iterator.item() else { break };
            block.reserve(key.len() + value.len() + VALUE_ALIGNMENT);
            let key_start = block.len();
            block.extend_from_slice(key);
            let key = key_start..block.len();
            if value.len() >= ALIGNED_VALUE_BYTES_MIN {
                block.resize(block.len().next_multiple_of(VALUE_ALIGNMENT), 0);
            }
            let value_start = block.len();
            block.extend_from_slice(value);
            entries.push(Place { key, value: value_start..block.len() });
            self.iterator.next();
        }
        if !self.iterator.valid() {
            self.iterator.status().map_err(|error| classify(&error))?;
        }
        self.entries_max = (2 * self.entries_max).min(limits::SCAN_BLOCK_ENTRIES_MAX);
        self.bytes_max = (2 * self.bytes_max).min(limits::SCAN_BLOCK_BYTES_MAX);
        self.block = block.into();
        self.entries = entries.into_iter();
        Ok(())
    }
}

impl Iterator for Scan<'_> {
    type Item = Result<Entry>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.entries.len() == 0
            && (self.start.is_some() || self.iterator.valid())
            && let Err(error) = self.fill()
        {
            return Some(Err(error));
        }
        let Place { key, value } = self.entries.next()?;
        Some(Ok((self.block.slice(key), self.block.slice(value))))
    }
}

fn database_options(memory_bytes: usize) -> Options {
    let write_buffer = (memory_bytes / 8).clamp(limits::WRITE_BUFFER_BYTES_MIN, limits::WRITE_BUFFER_BYTES_MAX);
    let cache = memory_bytes.saturating_sub(2 * write_buffer).max(limits::BLOCK_CACHE_BYTES_MIN);
    let mut blocks = BlockBasedOptions::default();
    blocks.set_block_cache(&Cache::new_hyper_clock_cache(cache, 0));
    blocks.set_bloom_filter(10.0, false);
    // In the cache, so that the budget holds for them too.
    blocks.set_cache_index_and_filter_blocks(true);
    blocks.set_cache_index_and_filter_blocks_with_high_priority(true);
    blocks.set_pin_l0_filter_and_index_blocks_in_cache(true);
    blocks.set_block_size(8 << 10);
    blocks.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
    blocks.set_format_version(6);
    let mut options = Options::default();
    options.set_block_based_table_factory(&blocks);
    options.create_if_missing(true);
    options.increase_parallelism(2);
    options.set_compression_type(DBCompressionType::Lz4);
    options.set_level_compaction_dynamic_level_bytes(true);
    options.set_write_buffer_size(write_buffer);
    options.set_max_write_buffer_number(3);
    options.set_max_bytes_for_level_base(256 << 20);
    options.set_stats_dump_period_sec(0);
    options.set_keep_log_file_num(2);
    options.set_max_log_file_size(4 << 20);
    options
}

/// Cuts an epoch's writes into the parts that are to be files, at the ends of tables if they are large enough.
fn file_parts<'a, 'b>(writes: &'a [&'b Write]) -> Vec<&'a [&'b Write]> {
    let mut parts = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    let mut table = None;
    for (position, (key, value)) in writes.iter().enumerate() {
        let this_table = key.first_chunk::<4>();
        // The database's own tables are always written to: apart from the rest, they do not widen its range of keys.
        let own = table.is_some_and(|table: &[u8; 4]| u32::from_be_bytes(*table) < layout::FIRST_FREE_TABLE);
        let new_table = this_table != table && (bytes >= limits::INGEST_FILE_BYTES_MIN || own);
        if position > start && (bytes >= limits::INGEST_FILE_BYTES_MAX || new_table) {
            parts.push(&writes[start..position]);
            (start, bytes) = (position, 0);
        }
        table = this_table;
        bytes += key.len() + value.as_ref().map_or(0, Bytes::len);
    }
    parts.push(&writes[start..]);
    parts
}

/// Writes entries, which are in order, to a file.
fn build_file(options: &Options, writes: &[&Write], file: &Path) -> std::result::Result<(), rocksdb::Error> {
    let mut writer = SstFileWriter::create(options);
    writer.open(file)?;
    for (key, value) in writes {
        match value {
            Some(value) => writer.put(key, value)?,
            None => writer.delete(key)?,
        }
    }
    writer.finish()
}

/// Writes in key order. Stable: writes mostly come as a few sorted runs, one a worker, which a stable sort merges.
fn sorted(writes: Vec<&Write>) -> Vec<&Write> {
    if writes.is_sorted_by(|a, b| a.0 <= b.0) {
        return writes;
    }
    let mut order: Vec<(u128, &Write)> = writes.into_iter().map(|write| (key_head(&write.0), write)).collect();
    order.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.0.cmp(&b.1.0)));
    order.into_iter().map(|(_, write)| write).collect()
}

fn read_epoch(db: &DB, options: &ReadOptions) -> Result<Epoch> {
    match db.get_pinned_opt(layout::epoch_key(), options).map_err(|error| classify(&error))? {
        None => Ok(0),
        Some(value) => match <[u8; 8]>::try_from(&value[..]) {
            Ok(bytes) => Ok(Epoch::from_be_bytes(bytes)),
            Err(_) => Err(Error::Corrupted("the number of the newest epoch is not 8 bytes long".to_string())),
        },
    }
}

/// Refuses a database of another format; writes the format into a new one.
fn check_format(db: &DB, path: &Path) -> Result<()> {
    let mine = layout::STORAGE_FORMAT;
    let stored = db.get_pinned(layout::format_key()).map_err(|error| classify_open(path, &error))?;
    match stored {
        Some(value) if value[..] == mine.to_be_bytes() => Ok(()),
        Some(value) => {
            let theirs = <[u8; 4]>::try_from(&value[..])
                .map_or_else(|_| "an unreadable number".to_string(), |bytes| u32::from_be_bytes(bytes).to_string());
            Err(Error::CannotOpen(format!(
                "data directory \"{}\" has storage format {theirs}, but this version reads and writes format {mine}",
                path.display()
            )))
        }
        None => {
            let mut iterator = db.raw_iterator();
            iterator.seek_to_first();
            if iterator.valid() {
                let path = path.display();
                return Err(Error::CannotOpen(format!("data directory \"{path}\" holds a database of something else")));
            }
            let mut options = WriteOptions::default();
            options.set_sync(true);
            db.put_opt(layout::format_key(), mine.to_be_bytes(), &options).map_err(|error| classify_open(path, &error))
        }
    }
}

fn is_disk_full(error: &rocksdb::Error) -> bool {
    let text = error.as_ref();
    ["No space left", "NoSpace", "Space limit", "Disk quota exceeded"].iter().any(|part| text.contains(part))
}

fn classify(error: &rocksdb::Error) -> Error {
    let text = error.to_string();
    match error.kind() {
        _ if is_disk_full(error) => Error::DiskFull(text),
        rocksdb::ErrorKind::Corruption => Error::Corrupted(text),
        _ => Error::Storage(text),
    }
}

fn classify_open(path: &Path, error: &rocksdb::Error) -> Error {
    let path = path.display();
    let text = error.to_string();
    if is_disk_full(error) {
        return Error::DiskFull(text);
    }
    if text.contains("lock hold by current process") || text.contains("While lock file") {
        return Error::CannotOpen(format!("data directory \"{path}\" is in use by another server"));
    }
    Error::CannotOpen(format!("cannot open data directory \"{path}\": {text}"))
}

#[cfg(test)]
mod tests;
