//! A transaction's changes as one unit: what it reads of itself, and what it hands to an epoch.
//!
//! A [`TableBuffer`] holds the net change of one table: committed rows that are gone, and own rows. An own row that is
//! changed or deleted again is dead. [`TableBuffer::prepare`] turns it into store writes and deltas; this happens in
//! the session, so that the epoch thread only checks keys and concatenates.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use datafusion::arrow::array::{Array, BooleanArray, Int64Array};
use datafusion::arrow::compute;
use datafusion::arrow::record_batch::RecordBatch;
use hashbrown::HashMap;
use parking_lot::Mutex;
use plan::{Layout, RelationId, SqlState};
use planner::catalog::TableInfo;
use runtime::state::Snapshot;
use runtime::state::layout;
use runtime::state::store::Write;
use runtime::{Change, Delta};

use super::returning::row_text;
use crate::catalog::Stored;
use crate::error::ServerError;
use crate::read::table::Overlay;

/// Rows of one chunk of a table without a key: the row number holds the position within it in 13 bits.
const CHUNK_ROWS: usize = 1 << 13;

/// Deltas are fed to the workers in pieces of about this many rows.
const FEED_ROWS: usize = 1 << 16;

/// Everything that a transaction changes.
#[derive(Default)]
pub struct WriteSet {
    /// One for each table.
    pub tables: Vec<TableWrites>,
}

impl WriteSet {
    /// Bytes that it keeps in memory, roughly.
    pub fn bytes(&self) -> usize {
        self.tables.iter().map(|table| table.bytes).sum()
    }

    /// Bytes that it writes to the tables, without what views make of it.
    pub fn stored_bytes(&self) -> usize {
        self.tables.iter().map(|table| table.stored_bytes).sum()
    }
}

/// What a transaction changes in one table.
pub struct TableWrites {
    /// The table.
    pub info: Arc<TableInfo>,
    /// Entries of the store, at most one write a key.
    pub writes: Vec<Write>,
    /// Ranges deleted before the writes.
    pub deleted_ranges: Vec<(Bytes, Bytes)>,
    /// The same as deltas.
    pub changes: Vec<Change>,
    /// Keys that must not be in the store: those of inserted rows, but for keys that are deleted here too. Empty for
    /// tables without a key.
    pub new_keys: Vec<Bytes>,
    /// The inserted rows, for the message about a duplicate: [`TableWrites::new_keys`] are of these, in order, with
    /// those left out that are deleted here too.
    pub inserted: Vec<RecordBatch>,
    /// First chunk number that is not used here.
    pub next_chunk: Option<i64>,
    /// Bytes of the writes.
    pub stored_bytes: usize,
    /// Bytes that all of it keeps in memory, roughly.
    pub bytes: usize,
}

/// The numbers of chunks that tables without a key give out.
#[derive(Default)]
pub struct ChunkCounters {
    next: Mutex<HashMap<RelationId, Arc<AtomicI64>>>,
}

impl ChunkCounters {
    /// Counters that go on where the store says.
    pub fn resume(stored: impl IntoIterator<Item = (RelationId, i64)>) -> ChunkCounters {
        let next = stored.into_iter().map(|(table, next)| (table, Arc::new(AtomicI64::new(next)))).collect();
        ChunkCounters { next: Mutex::new(next) }
    }

    /// Gives out consecutive numbers; the first of them.
    fn claim(&self, table: RelationId, count: i64) -> i64 {
        let counter = self.next.lock().entry(table).or_default().clone();
        counter.fetch_add(count, Ordering::Relaxed)
    }
}

/// The net change of one table within a transaction.
pub struct TableBuffer {
    /// The table.
    pub info: Arc<TableInfo>,
    /// Its rows.
    pub stored: Stored,
    /// All committed rows are deleted.
    truncated: bool,
    /// Deleted committed rows, with their numbers (0 for keyed tables).
    deleted: Vec<(RecordBatch, Int64Array)>,
    deleted_keys: Arc<HashSet<Bytes>>,
    deleted_rowids: Arc<HashSet<i64>>,
    /// Own rows: the n-th (from 0) has number `-1 - n`.
    own: Vec<RecordBatch>,
    own_rows: usize,
    dead: HashSet<usize>,
    /// Live own rows by key; only kept once somebody asked.
    own_keys: Option<HashMap<Bytes, usize>>,
}

impl TableBuffer {
    /// No changes.
    pub fn new(info: Arc<TableInfo>, stored: Stored) -> TableBuffer {
        TableBuffer {
            info,
            stored,
            truncated: false,
            deleted: Vec::new(),
            deleted_keys: Arc::default(),
            deleted_rowids: Arc::default(),
            own: Vec::new(),
            own_rows: 0,
            dead: HashSet::new(),
            own_keys: None,
        }
    }

    /// Whether nothing is changed in the end.
    pub fn is_empty(&self) -> bool {
        !self.truncated && self.deleted.is_empty() && self.own_rows == self.dead.len()
    }

    /// Whether the table has a key.
    pub fn keyed(&self) -> bool {
        matches!(self.stored.relation.layout, Layout::Keyed(_))
    }

    /// Adds rows.
    pub fn insert(&mut self, batch: RecordBatch) -> Result<(), ServerError> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        if let Some(own_keys) = &mut self.own_keys {
            for (row, key) in self.stored.storage.keys(&batch, None)?.into_iter().enumerate() {
                own_keys.insert(key, self.own_rows + row);
            }
        }
        self.own_rows += batch.num_rows();
        self.own.push(batch);
        Ok(())
    }

    /// Deletes rows by their numbers: negative ones are own. Rows that are gone already are passed over; the answer
    /// is which rows were deleted now.
    pub fn delete(&mut self, batch: &RecordBatch, rowids: &Int64Array) -> Result<BooleanArray, ServerError> {
        let keys = if self.keyed() { Some(self.stored.storage.keys(batch, None)?) } else { None };
        let mut committed = Vec::with_capacity(batch.num_rows());
        let mut deleted = Vec::with_capacity(batch.num_rows());
        for (row, rowid) in rowids.values().iter().enumerate() {
            let (own, new) = if *rowid < 0 {
                (true, self.dead.insert(usize::try_from(-1 - *rowid).unwrap_or_default()))
            } else {
                match &keys {
                    Some(keys) => (false, Arc::make_mut(&mut self.deleted_keys).insert(keys[row].clone())),
                    None => (false, Arc::make_mut(&mut self.deleted_rowids).insert(*rowid)),
                }
            };
            if own
                && new
                && let (Some(own_keys), Some(keys)) = (&mut self.own_keys, &keys)
            {
                own_keys.remove(&keys[row]);
            }
            committed.push(new && !own);
            deleted.push(new);
        }
        let committed = BooleanArray::from(committed);
        if committed.true_count() > 0 {
            let rows = compute::filter_record_batch(batch, &committed)?;
            let numbers = compute::filter(rowids, &committed)?;
            let numbers = numbers.as_any().downcast_ref::<Int64Array>().cloned();
            self.deleted.push((rows, numbers.unwrap_or_else(|| Int64Array::from(Vec::<i64>::new()))));
        }
        Ok(BooleanArray::from(deleted))
    }

    /// Deletes every row. Whoever commits a truncated table hands over the committed rows, see
    /// [`TableBuffer::prepare`].
    pub fn truncate(&mut self) {
        self.truncated = true;
        self.deleted.clear();
        self.deleted_keys = Arc::default();
        self.deleted_rowids = Arc::default();
        self.own.clear();
        self.own_rows = 0;
        self.dead.clear();
        self.own_keys = None;
    }

    /// Whether all committed rows are deleted.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// The changes as the transaction's own reads see them.
    pub fn overlay(&self) -> Result<Overlay, ServerError> {
        let mut overlay = Overlay {
            truncated: self.truncated,
            deleted_keys: self.deleted_keys.clone(),
            deleted_rowids: self.deleted_rowids.clone(),
            ..Overlay::default()
        };
        let mut first = 0;
        for batch in &self.own {
            let positions = first..first + batch.num_rows();
            let (batch, rowids) = match self.live_mask(first, batch.num_rows()) {
                None => (batch.clone(), Int64Array::from_iter_values(positions.clone().map(own_rowid))),
                Some(mask) => {
                    let kept = positions.clone().filter(|row| !self.dead.contains(row)).map(own_rowid);
                    (compute::filter_record_batch(batch, &mask)?, Int64Array::from_iter_values(kept))
                }
            };
            first = positions.end;
            overlay.own.push(batch);
            overlay.own_rowids.push(rowids);
        }
        Ok(overlay)
    }

    fn live_mask(&self, first: usize, rows: usize) -> Option<BooleanArray> {
        if self.dead.is_empty() {
            return None;
        }
        Some((first..first + rows).map(|row| Some(!self.dead.contains(&row))).collect())
    }

    /// The own rows that are alive.
    fn live(&self) -> Result<Vec<RecordBatch>, ServerError> {
        let mut first = 0;
        let mut live = Vec::with_capacity(self.own.len());
        for batch in &self.own {
            let rows = match self.live_mask(first, batch.num_rows()) {
                None => batch.clone(),
                Some(mask) => compute::filter_record_batch(batch, &mask)?,
            };
            first += batch.num_rows();
            if rows.num_rows() > 0 {
                live.push(rows);
            }
        }
        gather(live)
    }

    /// Finds rows with these keys: own ones (their position), and whether a committed one is visible.
    pub fn find_own(&mut self, keys: &[Bytes]) -> Result<Vec<Option<usize>>, ServerError> {
        if self.own_keys.is_none() {
            let mut own_keys = HashMap::new();
            let mut row = 0;
            for batch in &self.own {
                for key in self.stored.storage.keys(batch, None)? {
                    if !self.dead.contains(&row) {
                        own_keys.insert(key, row);
                    }
                    row += 1;
                }
            }
            self.own_keys = Some(own_keys);
        }
        let own_keys = self.own_keys.as_ref();
        Ok(keys.iter().map(|key| own_keys.and_then(|own_keys| own_keys.get(key).copied())).collect())
    }

    /// Which of these keys belong to committed rows that the transaction has not deleted.
    pub fn find_committed(&self, snapshot: &dyn Snapshot, keys: &[Bytes]) -> Result<Vec<bool>, ServerError> {
        if self.truncated {
            return Ok(vec![false; keys.len()]);
        }
        let slices: Vec<&[u8]> = keys.iter().map(Bytes::as_ref).collect();
        let found = snapshot.get_many(&slices)?;
        Ok(keys.iter().zip(found).map(|(key, value)| value.is_some() && !self.deleted_keys.contains(key)).collect())
    }

    /// An own row by position.
    pub fn own_row(&self, position: usize) -> Option<RecordBatch> {
        let mut first = 0;
        for batch in &self.own {
            if position < first + batch.num_rows() {
                return Some(batch.slice(position - first, 1));
            }
            first += batch.num_rows();
        }
        None
    }

    /// Turns the buffer into writes and deltas. `committed` are all committed rows if the table was truncated.
    pub fn prepare(
        self,
        chunks: &ChunkCounters,
        snapshot: &dyn Snapshot,
        committed: Vec<(RecordBatch, Option<Int64Array>)>,
    ) -> Result<TableWrites, ServerError> {
        let mut prepared = TableWrites {
            info: self.info.clone(),
            writes: Vec::new(),
            deleted_ranges: Vec::new(),
            changes: Vec::new(),
            new_keys: Vec::new(),
            inserted: self.live()?,
            next_chunk: None,
            stored_bytes: 0,
            bytes: 0,
        };
        if self.truncated {
            let id = self.stored.relation.id.0;
            prepared.deleted_ranges = vec![layout::table_range(id), layout::table_range(id + 1)];
            let changes = committed.into_iter().map(|(rows, rowids)| Change { delta: Delta::delete(rows), rowids });
            prepared.changes.extend(changes);
        }
        let deleted_keys = self.prepare_deletes(&mut prepared, snapshot)?;
        if self.keyed() {
            self.prepare_keyed(&mut prepared, deleted_keys)?;
        } else {
            self.prepare_numbered(&mut prepared, chunks)?;
        }
        let length = |(key, value): &Write| key.len() + value.as_ref().map_or(0, Bytes::len);
        prepared.stored_bytes = prepared.writes.iter().map(length).sum();
        // Deltas are slices of these batches.
        let fed: usize = prepared.inserted.iter().map(RecordBatch::get_array_memory_size).sum();
        prepared.bytes = prepared.stored_bytes + prepared.writes.len() * 64 + fed;
        Ok(prepared)
    }

    /// Writes and deltas of the deleted rows; the store keys that they free.
    fn prepare_deletes(
        &self,
        prepared: &mut TableWrites,
        snapshot: &dyn Snapshot,
    ) -> Result<HashSet<Bytes>, ServerError> {
        let Some((first, _)) = self.deleted.first() else { return Ok(HashSet::new()) };
        let batch = compute::concat_batches(&first.schema(), self.deleted.iter().map(|(batch, _)| batch))?;
        let numbers = self.deleted.iter().flat_map(|(_, numbers)| numbers.values().iter().copied());
        let numbers = Int64Array::from_iter_values(numbers);
        let rowids = (!self.keyed()).then_some(&numbers);
        // All in one call: several rows of one chunk change one bitmap.
        prepared.writes = self.stored.storage.delete(snapshot, &batch, rowids)?;
        for (offset, rows) in pieces(batch.num_rows()) {
            prepared.changes.push(Change {
                delta: Delta::delete(batch.slice(offset, rows)),
                rowids: rowids.map(|rowids| rowids.slice(offset, rows)),
            });
        }
        Ok(self.deleted_keys.as_ref().clone())
    }

    fn prepare_keyed(&self, prepared: &mut TableWrites, freed: HashSet<Bytes>) -> Result<(), ServerError> {
        let mut seen: HashSet<Bytes> = HashSet::new();
        let total: usize = prepared.inserted.iter().map(RecordBatch::num_rows).sum();
        let mut puts = Vec::with_capacity(total);
        for batch in &prepared.inserted {
            let (writes, _, _) = self.stored.storage.insert(batch, 0)?;
            debug_assert_eq!(writes.len(), batch.num_rows(), "one entry a row");
            for (row, (key, _)) in writes.iter().enumerate() {
                if total > 1 && !seen.insert(key.clone()) {
                    return Err(duplicate_key(&self.info, batch, row));
                }
                if !self.truncated && !freed.contains(key) {
                    prepared.new_keys.push(key.clone());
                }
            }
            puts.extend(writes);
            for (offset, rows) in pieces(batch.num_rows()) {
                prepared.changes.push(Change { delta: Delta::insert(batch.slice(offset, rows)), rowids: None });
            }
        }
        if !freed.is_empty() && total > 0 {
            let put: HashSet<&Bytes> = puts.iter().map(|(key, _)| key).collect();
            prepared.writes.retain(|(key, _)| !put.contains(key));
        }
        prepared.writes.extend(puts);
        Ok(())
    }

    fn prepare_numbered(&self, prepared: &mut TableWrites, chunks: &ChunkCounters) -> Result<(), ServerError> {
        for batch in &prepared.inserted {
            let count = i64::try_from(batch.num_rows().div_ceil(CHUNK_ROWS)).unwrap_or(i64::MAX);
            let first = chunks.claim(self.stored.relation.id, count);
            let (writes, rowids, used) = self.stored.storage.insert(batch, first)?;
            if used > count {
                return Err(ServerError::internal(format!("{used} chunks were used of {count}")));
            }
            prepared.next_chunk = Some(first + count);
            prepared.writes.extend(writes);
            for (offset, rows) in pieces(batch.num_rows()) {
                prepared.changes.push(Change {
                    delta: Delta::insert(batch.slice(offset, rows)),
                    rowids: rowids.as_ref().map(|rowids| rowids.slice(offset, rows)),
                });
            }
        }
        Ok(())
    }
}

/// The number of an own row.
fn own_rowid(position: usize) -> i64 {
    -1 - i64::try_from(position).unwrap_or(i64::MAX - 1)
}

/// Small batches together, so that many single-row statements cost one batch.
fn gather(batches: Vec<RecordBatch>) -> Result<Vec<RecordBatch>, ServerError> {
    if batches.len() < 2 {
        return Ok(batches);
    }
    let mut gathered = Vec::new();
    let mut small: Vec<RecordBatch> = Vec::new();
    let mut rows = 0;
    for batch in batches {
        rows += batch.num_rows();
        small.push(batch);
        if rows >= FEED_ROWS {
            gathered.push(compute::concat_batches(&small[0].schema(), &small)?);
            small.clear();
            rows = 0;
        }
    }
    if let Some(first) = small.first() {
        gathered.push(compute::concat_batches(&first.schema(), &small)?);
    }
    Ok(gathered)
}

fn pieces(rows: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows).step_by(FEED_ROWS).map(move |offset| (offset, FEED_ROWS.min(rows - offset)))
}

impl TableWrites {
    /// The error for a new key that exists already.
    pub fn duplicate(&self, key: &Bytes) -> ServerError {
        let position = self.writes.iter().rposition(|(written, _)| written == key);
        // Writes of inserted rows come last, one a row, in order.
        let inserted: usize = self.inserted.iter().map(RecordBatch::num_rows).sum();
        let mut row = position.map_or(0, |position| position + inserted - self.writes.len());
        for batch in &self.inserted {
            if row < batch.num_rows() {
                return duplicate_key(&self.info, batch, row);
            }
            row -= batch.num_rows();
        }
        ServerError::new(SqlState::UNIQUE_VIOLATION, "duplicate key value violates unique constraint")
    }
}

/// Postgres's error for a row whose primary key exists already.
pub fn duplicate_key(info: &TableInfo, batch: &RecordBatch, row: usize) -> ServerError {
    let names: Vec<&str> = info.primary_key.iter().map(|column| info.columns[*column].name.as_str()).collect();
    let table = info.relation.name.rsplit('.').next().unwrap_or_default();
    ServerError::new(
        SqlState::UNIQUE_VIOLATION,
        format!("duplicate key value violates unique constraint \"{table}_pkey\""),
    )
    .with_detail(format!(
        "Key ({})=({}) already exists.",
        names.join(", "),
        row_text(batch, &info.primary_key, row)
    ))
}
