//! Scans of relations.
//!
//! A scan reads the store block by block and seeks anew for each: it holds the snapshot, but no iterator of it.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{BooleanArray, Int64Array};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;

use crate::error::{Error, Result};
use crate::limits::CHUNK_ROWS_MAX;
use crate::state::layout::{self, HEADER_LENGTH};
use crate::state::relation::chunks::{Chunk, ChunkFormat, DeletedRows, read_chunk, rowid};
use crate::state::relation::entries::EntryFormat;
use crate::state::relation::{Format, Inner, ScanOptions, Scanned};
use crate::state::store::{Entry, Snapshot};

/// A scan in progress.
pub struct RelationScan {
    inner: Arc<Inner>,
    snapshot: Arc<dyn Snapshot>,
    /// Columns to return; out of range ones make the scan fail.
    projection: Vec<usize>,
    batch_rows: usize,
    with_rowid: bool,
    state: State,
}

enum State {
    /// These keys only.
    Lookup(Vec<Bytes>),
    /// Entries from this key on.
    From(Bytes),
    /// Chunks from this one on, without the rows before an offset in the first. The flag says whether any row of the
    /// relation was ever deleted.
    Chunks(u64, usize, bool),
    /// The options were wrong.
    Failed(Error),
    Done,
}

impl RelationScan {
    pub(super) fn new(inner: Arc<Inner>, snapshot: Arc<dyn Snapshot>, options: ScanOptions) -> Self {
        let ScanOptions { projection, after, batch_rows, with_rowid, key_equals } = options;
        let columns = inner.relation.schema.fields().len();
        let projection = projection.unwrap_or_else(|| (0..columns).collect());
        let begin = || match &inner.format {
            _ if projection.iter().any(|column| *column >= columns) => {
                Err(Error::Storage(format!("{} has no such column", inner.relation.name)))
            }
            Format::Entries(entries) => begin_entries(&inner, entries, after.as_ref(), key_equals.as_deref()),
            Format::Chunks(chunks) => {
                let (chunk, offset) = after.as_ref().map_or((0, 0), |after| chunks.row_after(after));
                let (start, end) = layout::table_range(chunks.table() + 1);
                let deleted = snapshot.scan(&start, &end).next().transpose()?.is_some();
                Ok(State::Chunks(chunk, offset, deleted))
            }
        };
        let state = begin().unwrap_or_else(State::Failed);
        RelationScan { inner, snapshot, projection, batch_rows: batch_rows.max(1), with_rowid, state }
    }

    /// The columns of the batches.
    pub fn schema(&self) -> Result<SchemaRef> {
        Ok(Arc::new(self.inner.relation.schema.project(&self.projection)?))
    }

    fn step(&mut self) -> Result<Option<Scanned>> {
        match (std::mem::replace(&mut self.state, State::Done), &self.inner.format) {
            (State::Failed(error), _) => Err(error),
            (State::Lookup(keys), Format::Entries(entries)) => self.look_up(entries, keys),
            (State::From(start), Format::Entries(entries)) => {
                let (scanned, next) = self.scan_entries(entries, &start)?;
                self.state = next;
                Ok(scanned)
            }
            (State::Chunks(chunk, offset, deleted), Format::Chunks(chunks)) => {
                let (scanned, next) = self.scan_chunks(chunks, chunk, offset, deleted)?;
                self.state = next;
                Ok(scanned)
            }
            _ => Ok(None),
        }
    }

    fn look_up(&self, format: &EntryFormat, keys: Vec<Bytes>) -> Result<Option<Scanned>> {
        let wanted: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        let values = self.snapshot.get_many(&wanted)?;
        let entries: Vec<Entry> = keys.into_iter().zip(values).filter_map(|(key, value)| Some((key, value?))).collect();
        self.scanned_entries(format, &entries)
    }

    fn scan_entries(&self, format: &EntryFormat, start: &[u8]) -> Result<(Option<Scanned>, State)> {
        let end = layout::table_range(self.inner.relation.id.0).1;
        let mut entries = Vec::new();
        let mut rows = 0;
        let mut stored = self.snapshot.scan(start, &end);
        while rows < self.batch_rows as u64 {
            let Some(entry) = stored.next() else { break };
            let (key, value) = entry?;
            rows += format.copies(&value)?;
            entries.push((key, value));
        }
        let ended = rows < self.batch_rows as u64;
        let scanned = self.scanned_entries(format, &entries)?;
        let next = match &scanned {
            Some(scanned) if !ended => State::From(successor(&scanned.last_key)),
            _ => State::Done,
        };
        Ok((scanned, next))
    }

    fn scanned_entries(&self, format: &EntryFormat, entries: &[Entry]) -> Result<Option<Scanned>> {
        let Some((last_key, _)) = entries.last() else { return Ok(None) };
        let mut batch = format.decode(entries, &self.projection)?;
        if format.is_multiset() {
            let copies: Vec<u64> = entries.iter().map(|(_, value)| format.copies(value)).collect::<Result<_>>()?;
            batch = format.expand(batch, &copies)?;
        }
        let rowids = self.with_rowid.then(|| Int64Array::from_value(0, batch.num_rows()));
        // Copied: the key of a scanned entry holds on to its whole block.
        Ok(Some(Scanned { batch, rowids, last_key: Bytes::copy_from_slice(last_key) }))
    }

    /// Reads chunks until there are enough rows. Chunks are not cut: a batch may be larger by one of them.
    fn scan_chunks(
        &self,
        format: &ChunkFormat,
        mut chunk: u64,
        mut offset: usize,
        any_deleted: bool,
    ) -> Result<(Option<Scanned>, State)> {
        let end = layout::table_range(format.table()).1;
        loop {
            let start = layout::store_key(format.table(), 0, &chunk.to_be_bytes());
            let mut entries: Vec<(u64, Bytes)> = Vec::new();
            let mut rows = 0;
            let mut ended = true;
            for entry in self.snapshot.scan(&start, &end) {
                let (key, value) = entry?;
                let (number, value) = (chunk_number(&key)?, value);
                rows += read_chunk(&value)?.rows();
                entries.push((number, value));
                if rows >= self.batch_rows {
                    ended = false;
                    break;
                }
            }
            let Some((last, _)) = entries.last() else { return Ok((None, State::Done)) };
            let last = *last;
            let next = if ended { State::Done } else { State::Chunks(last + 1, 0, any_deleted) };
            let numbers: Vec<u64> =
                if any_deleted { entries.iter().map(|entry| entry.0).collect() } else { Vec::new() };
            let deleted = format.deleted_rows(&*self.snapshot, &numbers)?;
            let mut rows = ChunkRows::new(self, format);
            for (number, value) in &entries {
                rows.add(*number, value, if *number == chunk { offset } else { 0 }, deleted.get(number))?;
            }
            let (batch, rowids) = rows.finish()?;
            if batch.num_rows() > 0 {
                let rowids = self.with_rowid.then(|| Int64Array::from(rowids));
                return Ok((Some(Scanned { batch, rowids, last_key: format.chunk_end(last) }), next));
            }
            if ended {
                return Ok((None, State::Done));
            }
            (chunk, offset) = (last + 1, 0);
        }
    }
}

impl Iterator for RelationScan {
    type Item = Result<Scanned>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

/// Rows of several chunks on their way into one batch.
struct ChunkRows<'a> {
    scan: &'a RelationScan,
    format: &'a ChunkFormat,
    batches: Vec<RecordBatch>,
    /// Encoded rows that come after the batches.
    rows: Vec<&'a [u8]>,
    rowids: Vec<i64>,
}

impl<'a> ChunkRows<'a> {
    fn new(scan: &'a RelationScan, format: &'a ChunkFormat) -> Self {
        ChunkRows { scan, format, batches: Vec::new(), rows: Vec::new(), rowids: Vec::new() }
    }

    /// Adds the live rows of a chunk from an offset on.
    fn add(&mut self, chunk: u64, value: &'a Bytes, from: usize, deleted: Option<&DeletedRows>) -> Result<()> {
        let is_live = |offset: &usize| *offset >= from && deleted.is_none_or(|deleted| deleted.is_live(*offset));
        match read_chunk(value)? {
            Chunk::Rows(rows) => {
                let offsets = (0..rows.len().min(CHUNK_ROWS_MAX)).filter(is_live);
                for offset in offsets {
                    self.rows.push(rows[offset]);
                    self.rowids.push(rowid(chunk, offset));
                }
            }
            Chunk::Columnar(count, value) => {
                self.flush_rows()?;
                let mut batch = self.format.decode_columnar(value, &self.scan.projection)?;
                if batch.num_rows() != count || count > CHUNK_ROWS_MAX {
                    return Err(Error::Corrupted(format!("chunk {chunk} does not have {count} rows")));
                }
                if let Some(deleted) = deleted {
                    batch = filter(&batch, &deleted.live(), from)?;
                } else if from > 0 {
                    batch = batch.slice(from.min(count), count.saturating_sub(from));
                }
                if self.scan.with_rowid {
                    self.rowids.extend((0..count).filter(is_live).map(|offset| rowid(chunk, offset)));
                }
                self.batches.push(batch);
            }
        }
        Ok(())
    }

    fn flush_rows(&mut self) -> Result<()> {
        if !self.rows.is_empty() {
            self.batches.push(self.format.decode_rows(&self.rows, &self.scan.projection)?);
            self.rows.clear();
        }
        Ok(())
    }

    fn finish(mut self) -> Result<(RecordBatch, Vec<i64>)> {
        self.flush_rows()?;
        let batch = match self.batches.len() {
            1 => self.batches.remove(0),
            _ => compute::concat_batches(&self.scan.schema()?, &self.batches)?,
        };
        Ok((batch, self.rowids))
    }
}

fn filter(batch: &RecordBatch, live: &BooleanArray, from: usize) -> Result<RecordBatch> {
    let batch = batch.slice(from.min(batch.num_rows()), batch.num_rows().saturating_sub(from));
    let live = live.slice(from.min(live.len()), live.len().saturating_sub(from));
    Ok(compute::filter_record_batch(&batch, &live)?)
}

fn begin_entries(
    inner: &Inner,
    format: &EntryFormat,
    after: Option<&Bytes>,
    key_equals: Option<&[datafusion::scalar::ScalarValue]>,
) -> Result<State> {
    if let Some(values) = key_equals
        && let Some(mut keys) = format.lookup_keys(values)?
    {
        keys.retain(|key| after.is_none_or(|after| key > after));
        return Ok(State::Lookup(keys));
    }
    Ok(State::From(match after {
        Some(after) => successor(after),
        None => layout::table_range(inner.relation.id.0).0,
    }))
}

/// The smallest key that is greater.
fn successor(key: &[u8]) -> Bytes {
    let mut next = Vec::with_capacity(key.len() + 1);
    next.extend_from_slice(key);
    next.push(0);
    next.into()
}

fn chunk_number(key: &[u8]) -> Result<u64> {
    let number = key.get(HEADER_LENGTH..).and_then(|key| <[u8; 8]>::try_from(key).ok());
    number.map(u64::from_be_bytes).ok_or_else(|| Error::Corrupted("the key of a chunk is not a number".to_string()))
}
