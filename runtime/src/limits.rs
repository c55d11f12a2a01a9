//! Every bound of the runtime, with its unit last in its name, and the arithmetic behind it.

/// Partitions (virtual nodes) of the key space. Worker `w` of `n` owns those with `partition * n / 1024 == w`; so at
/// most as many workers can share the work. Part of the storage format: never changes.
pub const PARTITIONS: u16 = 1024;

/// Bits of a row number that count rows inside a chunk; the others number the chunk.
pub const CHUNK_OFFSET_BITS: u32 = 13;

/// Rows of a columnar chunk at most: what the offset bits can count.
pub const CHUNK_ROWS_MAX: usize = 1 << CHUNK_OFFSET_BITS;

/// An insert with fewer rows is stored row by row: under this the fixed cost of an Arrow message (about 200 bytes and
/// two microseconds a column) outweighs that of the rows.
pub const CHUNK_COLUMNAR_ROWS_MIN: usize = 32;

/// From so many entries on an epoch is written as sorted files that are ingested, rather than as one batch through the
/// log: under it the fixed cost of a file (three fsyncs and a manifest write, some milliseconds) outweighs the gain.
pub const INGEST_ENTRIES_MIN: usize = 50_000;

/// From so many bytes on an epoch is ingested, however few its entries: big values should be written once, and not to
/// the log and again to a file.
pub const INGEST_BYTES_MIN: usize = 16 << 20;

/// An ingested file is cut after so many bytes at the next entry, so that compactions can move parts of an epoch.
pub const INGEST_FILE_BYTES_MAX: usize = 64 << 20;

/// An ingested file is cut at the end of a table after so many bytes. Cutting at tables lets the chunks of an
/// append-only table sink to the lowest level at once, though other tables of the epoch overlap older entries.
pub const INGEST_FILE_BYTES_MIN: usize = 1 << 20;

/// Entries that a store scan fetches at once at most.
pub const SCAN_BLOCK_ENTRIES_MAX: usize = 1024;

/// Entries that a store scan fetches at first; each further block is twice as large. Most scans are short.
pub const SCAN_BLOCK_ENTRIES_MIN: usize = 16;

/// A scan's first block ends early after so many bytes: columnar chunks are then read one by one.
pub const SCAN_BLOCK_BYTES_MIN: usize = 64 << 10;

/// A scan's block ends early after so many bytes: bounds what columnar chunks (up to megabytes each) pin.
pub const SCAN_BLOCK_BYTES_MAX: usize = 4 << 20;

/// To tell how many entries a table has, at least so many are counted, in whole partitions: the error is about 2 % then.
pub const SIZE_ENTRIES_MIN: u64 = 4096;

/// To tell how many rows chunks have, so many are read at each end of a range of their numbers: a few, since each may be
/// large.
pub const SIZE_CHUNKS: u64 = 4;

/// So many ranges are looked at first.
pub const SIZE_RANGES: u64 = 4;

/// So many ranges are looked at in all, if the ends of ranges differ: enough to find a few changes by halving.
pub const SIZE_RANGES_MAX: u32 = 128;

/// Bytes of a memtable at most. Of the store's memory an eighth goes to it, up to three exist at a time.
pub const WRITE_BUFFER_BYTES_MAX: usize = 64 << 20;

/// Bytes of a memtable at least: smaller ones make too many files.
pub const WRITE_BUFFER_BYTES_MIN: usize = 4 << 20;

/// Bytes of the block cache at least: index and filter blocks live there.
pub const BLOCK_CACHE_BYTES_MIN: usize = 8 << 20;

/// Bytes of memory that a cached entry of a state table takes besides its key and value: 48 in the slab, 10 in the hash
/// table, and the allocator's rounding.
pub const CACHED_ENTRY_OVERHEAD_BYTES: usize = 80;

/// A value of more bytes is shared between cache, readers and writes; smaller ones are copied, which is faster.
pub const CACHED_SMALL_VALUE_BYTES_MAX: usize = 256;

/// Bytes that an entry takes besides, in a table that is read in key order: its place in the ordered index.
pub const CACHED_ORDER_OVERHEAD_BYTES: usize = 96;

/// Entries under a prefix that are read at most to answer for its first or last one: with fewer, all of them stay in
/// memory and the next question costs nothing.
pub const PREFIX_PROBE_ENTRIES: usize = 16;

/// Different values of a group (with their counts) that stand in the group's own entry, in bytes at most. Every change of
/// the group writes them all; about here an entry for each value, with its key and overhead, begins to be cheaper.
pub const GROUP_VALUES_BYTES_MAX: usize = 256;

/// Eviction frees down to this share of the budget in hundredths, so that it does not run at every epoch.
pub const EVICTION_TARGET_PERCENT: usize = 90;

/// Rows that a relation's scan returns at once unless asked otherwise: DataFusion's batch size.
pub const SCAN_ROWS: usize = 8192;

/// A change with fewer rows than this for each worker goes to one worker as a whole: splitting it and waking the others
/// would cost more (some ten microseconds) than they give.
pub const SPLIT_ROWS_MIN: usize = 1024;

/// Commands that wait for a worker at most; then senders wait. The few epochs in flight seldom bring as many. There is a
/// place for each from the start (half a megabyte a worker).
pub const WORKER_COMMANDS_MAX: usize = 1 << 12;

/// Results of epochs that wait for the coordinator at most. It has fewer in flight, so workers never wait for it.
pub const EPOCH_RESULTS_MAX: usize = 1 << 10;

/// Microseconds that an idle worker polls before it sleeps: about what waking up costs.
pub const WORKER_IDLE_SPIN_MICROS: u64 = 10;

/// Rows of a recomputed query's input that are decoded at once: DataFusion's batch size.
pub const RECOMPUTE_BATCH_ROWS: usize = 8192;

/// Bytes of an input of a recomputed query that stay decoded between runs: an input that did not change is then not read
/// from state again. Larger ones are read at each run.
pub const RECOMPUTE_DECODED_BYTES_MAX: usize = 64 << 20;

/// Rounds of a recursive query in an epoch, before it is taken for one without end: as deep as a hierarchy may be. A round
/// takes some ten microseconds at least.
pub const RECURSION_PASSES_MAX: usize = 10_000;

/// Rows that a recursive query may gain or lose in an epoch, before it is taken for one without end. Each takes some hundred
/// bytes until the epoch is over.
pub const RECURSION_ROWS_MAX: usize = 10_000_000;
/// Rows that a window function may look back or ahead and still have only these looked at when a row changes. Twice as many
/// on each side are read one by one; from about here on, reading the partition in one go is as cheap for most.
pub const WINDOW_REACH_ROWS_MAX: usize = 256;

/// Rows of partitions that are computed at once at the end of a fill: enough to be worth a plan's execution.
pub const HELD_BACK_ROWS: usize = 1 << 16;

/// Changes of a partition in an epoch of which the surroundings are looked at each by itself. With more, the rows from the
/// first to the last of them are read in one go.
pub const WINDOW_SLICES_MAX: usize = 256;

/// Rows between two checkpoints of running window functions. A change computes half as many more than it must; a checkpoint
/// takes about as many bytes as a row.
pub const WINDOW_CHECKPOINT_ROWS: usize = 64;

const _: () = assert!(CHUNK_COLUMNAR_ROWS_MIN < CHUNK_ROWS_MAX);
const _: () = assert!(INGEST_FILE_BYTES_MIN < INGEST_FILE_BYTES_MAX);
const _: () = assert!(SCAN_BLOCK_ENTRIES_MIN <= SCAN_BLOCK_ENTRIES_MAX);
const _: () = assert!(PARTITIONS.is_power_of_two());
