//! Numbered rows in chunks.
//!
//! A chunk's value begins with a byte that says how its rows stand:
//! - 1, columnar: `[1, 0, 0, 0][rows u32 BE][length of message u32 BE][length of body u32 BE]`, the Arrow IPC message
//!   (version 5) of a record batch, and from the next multiple of 16 on its body, buffers aligned to 16. The schema is
//!   the relation's.
//! - 2, row by row: `[2][rows u16 BE]`, the length of each row as u32 BE, and the rows in arrow-row's format.
//!
//! Deleted rows of a chunk: `[rows u16 BE]` and a bit a row, lowest first, set if it is deleted. At least one bit is
//! set and at least one is not.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{BooleanArray, Int64Array};
use datafusion::arrow::buffer::{BooleanBuffer, Buffer, MutableBuffer};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::ipc::reader::RecordBatchDecoder;
use datafusion::arrow::ipc::writer::{DictionaryTracker, IpcDataGenerator, IpcWriteContext, IpcWriteOptions};
use datafusion::arrow::ipc::{MetadataVersion, root_as_message};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};

use crate::delta::rows::RowCodec;
use crate::error::{Error, Result};
use crate::limits::{CHUNK_COLUMNAR_ROWS_MIN, CHUNK_OFFSET_BITS, CHUNK_ROWS_MAX};
use crate::state::layout::{self, HEADER_LENGTH};
use crate::state::relation::pack;
use crate::state::store::{Snapshot, Write};

const COLUMNAR: u8 = 1;
const ROW_BY_ROW: u8 = 2;
const COLUMNAR_HEADER_LENGTH: usize = 16;
const ALIGNMENT: usize = 16;

/// The chunk in which a numbered row stands, and its offset in it.
pub fn split_rowid(rowid: i64) -> (u64, usize) {
    let rowid = rowid as u64;
    (rowid >> CHUNK_OFFSET_BITS, rowid as usize & (CHUNK_ROWS_MAX - 1))
}

/// The number of a row.
pub fn rowid(chunk: u64, offset: usize) -> i64 {
    debug_assert!(offset < CHUNK_ROWS_MAX);
    (chunk << CHUNK_OFFSET_BITS | offset as u64) as i64
}

/// How numbered rows become chunks.
pub(super) struct ChunkFormat {
    table: u32,
    schema: SchemaRef,
    codec: RowCodec,
}

/// Rows of a chunk before they are decoded.
pub(super) enum Chunk<'a> {
    /// An Arrow message with so many rows.
    Columnar(usize, &'a Bytes),
    /// Encoded rows.
    Rows(Vec<&'a [u8]>),
}

impl Chunk<'_> {
    /// How many rows, deleted ones included.
    pub(super) fn rows(&self) -> usize {
        match self {
            Chunk::Columnar(rows, _) => *rows,
            Chunk::Rows(rows) => rows.len(),
        }
    }
}

impl ChunkFormat {
    pub(super) fn new(table: u32, schema: &SchemaRef) -> Result<Self> {
        Ok(ChunkFormat { table, schema: schema.clone(), codec: RowCodec::new(schema)? })
    }

    pub(super) fn table(&self) -> u32 {
        self.table
    }

    /// Writes, numbers of the rows, and how many chunks were used.
    pub(super) fn insert(&self, batch: &RecordBatch, first_chunk: i64) -> Result<(Vec<Write>, Int64Array, i64)> {
        let mut writes = Vec::with_capacity(batch.num_rows().div_ceil(CHUNK_ROWS_MAX));
        let mut rowids = Vec::with_capacity(batch.num_rows());
        let mut chunk = first_chunk as u64;
        for start in (0..batch.num_rows()).step_by(CHUNK_ROWS_MAX) {
            let part = batch.slice(start, CHUNK_ROWS_MAX.min(batch.num_rows() - start));
            let value = if part.num_rows() < CHUNK_COLUMNAR_ROWS_MIN {
                self.encode_rows(&part)?
            } else {
                encode_columns(&part)?
            };
            writes.push((layout::store_key(self.table, 0, &chunk.to_be_bytes()), Some(value)));
            rowids.extend((0..part.num_rows()).map(|offset| rowid(chunk, offset)));
            chunk += 1;
        }
        Ok((writes, Int64Array::from(rowids), chunk as i64 - first_chunk))
    }

    fn encode_rows(&self, batch: &RecordBatch) -> Result<Bytes> {
        let rows = self.codec.encode(batch)?;
        let size: usize = rows.iter().map(|row| 4 + row.len()).sum();
        let mut value = Vec::with_capacity(3 + size);
        value.push(ROW_BY_ROW);
        value.extend_from_slice(&(batch.num_rows() as u16).to_be_bytes());
        for row in rows.iter() {
            value.extend_from_slice(&(row.len() as u32).to_be_bytes());
        }
        rows.iter().for_each(|row| value.extend_from_slice(row));
        Ok(value.into())
    }

    /// The store keys of rows' positions.
    pub(super) fn positions(&self, rowids: &Int64Array) -> Vec<Bytes> {
        let length = HEADER_LENGTH + 10;
        pack(rowids.len(), length * rowids.len(), |row, buffer| {
            let (chunk, offset) = split_rowid(rowids.value(row));
            buffer.extend_from_slice(&layout::header(self.table, 0));
            buffer.extend_from_slice(&chunk.to_be_bytes());
            buffer.extend_from_slice(&(offset as u16).to_be_bytes());
        })
    }

    /// The position behind which the next chunk begins.
    pub(super) fn chunk_end(&self, chunk: u64) -> Bytes {
        let mut key = chunk.to_be_bytes().to_vec();
        key.extend_from_slice(&(CHUNK_ROWS_MAX as u16 - 1).to_be_bytes());
        layout::store_key(self.table, 0, &key)
    }

    /// The chunk and offset of the first row behind a position.
    pub(super) fn row_after(&self, position: &[u8]) -> (u64, usize) {
        let key = position.get(HEADER_LENGTH..).unwrap_or_default();
        let Some((chunk, rest)) = key.split_first_chunk::<8>() else { return (0, 0) };
        let chunk = u64::from_be_bytes(*chunk);
        match rest.first_chunk::<2>().map(|offset| usize::from(u16::from_be_bytes(*offset)) + 1) {
            Some(offset) if offset < CHUNK_ROWS_MAX => (chunk, offset),
            _ => (chunk + 1, 0),
        }
    }

    /// Marks rows as deleted; numbers of rows that are gone already are passed over.
    pub(super) fn delete(&self, snapshot: &dyn Snapshot, rowids: &Int64Array) -> Result<Vec<Write>> {
        let mut by_chunk: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for rowid in rowids.values() {
            let (chunk, offset) = split_rowid(*rowid);
            by_chunk.entry(chunk).or_default().push(offset);
        }
        let chunks: Vec<u64> = by_chunk.keys().copied().collect();
        let mut bitmaps = self.deleted_rows(snapshot, &chunks)?;
        let untouched: Vec<u64> = chunks.iter().copied().filter(|chunk| !bitmaps.contains_key(chunk)).collect();
        // By groups, because chunks are read whole, only to see how many rows they have.
        for group in untouched.chunks(64) {
            for (chunk, value) in group.iter().zip(self.get(snapshot, self.table, group)?) {
                if let Some(value) = value {
                    bitmaps.insert(*chunk, DeletedRows::none(read_chunk(&value)?.rows()));
                }
            }
        }
        let mut writes = Vec::with_capacity(by_chunk.len());
        for (chunk, offsets) in by_chunk {
            let Some(deleted) = bitmaps.get_mut(&chunk) else { continue };
            offsets.into_iter().for_each(|offset| deleted.insert(offset));
            let key = chunk.to_be_bytes();
            if deleted.all() {
                writes.push((layout::store_key(self.table, 0, &key), None));
                writes.push((layout::store_key(self.table + 1, 0, &key), None));
            } else {
                writes.push((layout::store_key(self.table + 1, 0, &key), Some(deleted.encode())));
            }
        }
        Ok(writes)
    }

    /// The deleted rows of those chunks that have any.
    pub(super) fn deleted_rows(&self, snapshot: &dyn Snapshot, chunks: &[u64]) -> Result<HashMap<u64, DeletedRows>> {
        let mut found = HashMap::new();
        for (chunk, value) in chunks.iter().zip(self.get(snapshot, self.table + 1, chunks)?) {
            if let Some(value) = value {
                found.insert(*chunk, DeletedRows::decode(&value)?);
            }
        }
        Ok(found)
    }

    fn get(&self, snapshot: &dyn Snapshot, table: u32, chunks: &[u64]) -> Result<Vec<Option<Bytes>>> {
        let keys: Vec<Bytes> = chunks.iter().map(|chunk| layout::store_key(table, 0, &chunk.to_be_bytes())).collect();
        let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
        snapshot.get_many(&keys)
    }

    /// Decodes rows of a chunk, with the columns of the projection.
    pub(super) fn decode_columnar(&self, value: &Bytes, projection: &[usize]) -> Result<RecordBatch> {
        let header = value.first_chunk::<COLUMNAR_HEADER_LENGTH>().ok_or_else(damaged)?;
        let length = u32::from_be_bytes([header[8], header[9], header[10], header[11]]) as usize;
        let message = value.get(COLUMNAR_HEADER_LENGTH..COLUMNAR_HEADER_LENGTH + length).ok_or_else(damaged)?;
        let body_start = (COLUMNAR_HEADER_LENGTH + length).next_multiple_of(ALIGNMENT);
        let body_length = u32::from_be_bytes([header[12], header[13], header[14], header[15]]) as usize;
        // The decoder takes the message's word for where its buffers are.
        if value.len() != body_start + body_length {
            return Err(damaged());
        }
        let message = root_as_message(message).map_err(|_| damaged())?;
        let batch = message.header_as_record_batch().ok_or_else(damaged)?;
        let body = Buffer::from(value.slice(body_start..));
        let dictionaries = HashMap::new();
        let decoder =
            RecordBatchDecoder::try_new(&body, batch, self.schema.clone(), &dictionaries, &MetadataVersion::V5)?;
        Ok(decoder.with_projection(Some(projection)).read_record_batch()?)
    }

    /// Decodes encoded rows, with the columns of the projection.
    pub(super) fn decode_rows(&self, rows: &[&[u8]], projection: &[usize]) -> Result<RecordBatch> {
        if projection.is_empty() {
            let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
            let schema = Arc::new(self.schema.project(projection)?);
            return Ok(RecordBatch::try_new_with_options(schema, Vec::new(), &options)?);
        }
        Ok(self.codec.decode(rows.iter().copied())?.project(projection)?)
    }
}

fn damaged() -> Error {
    Error::Corrupted("a chunk of rows cannot be read".to_string())
}

fn encode_columns(batch: &RecordBatch) -> Result<Bytes> {
    let options = IpcWriteOptions::try_new(ALIGNMENT, false, MetadataVersion::V5)?;
    let mut dictionaries = DictionaryTracker::new(false);
    let mut context = IpcWriteContext::default();
    let (found, encoded) = IpcDataGenerator::default().encode(batch, &mut dictionaries, &options, &mut context)?;
    if !found.is_empty() {
        return Err(Error::Storage("dictionary-encoded columns cannot be stored".to_string()));
    }
    let message = encoded.ipc_message;
    let body_length = u32::try_from(encoded.arrow_data.len())
        .map_err(|_| Error::Storage("a chunk of rows is larger than 4 GB".to_string()))?;
    let body_start = (COLUMNAR_HEADER_LENGTH + message.len()).next_multiple_of(ALIGNMENT);
    let mut value = Vec::with_capacity(body_start + encoded.arrow_data.len());
    value.extend_from_slice(&[COLUMNAR, 0, 0, 0]);
    value.extend_from_slice(&(batch.num_rows() as u32).to_be_bytes());
    value.extend_from_slice(&(message.len() as u32).to_be_bytes());
    value.extend_from_slice(&body_length.to_be_bytes());
    value.extend_from_slice(&message);
    value.resize(body_start, 0);
    value.extend_from_slice(&encoded.arrow_data);
    Ok(value.into())
}

/// Reads as much of a chunk as shows its rows.
pub(super) fn read_chunk(value: &Bytes) -> Result<Chunk<'_>> {
    match value.first() {
        Some(&COLUMNAR) => {
            let rows = value.get(4..8).and_then(|rows| rows.first_chunk::<4>()).ok_or_else(damaged)?;
            Ok(Chunk::Columnar(u32::from_be_bytes(*rows) as usize, value))
        }
        Some(&ROW_BY_ROW) => {
            let count = value.get(1..3).and_then(|rows| rows.first_chunk::<2>()).ok_or_else(damaged)?;
            let count = usize::from(u16::from_be_bytes(*count));
            let lengths = value.get(3..3 + 4 * count).ok_or_else(damaged)?;
            let mut rest = value.get(3 + 4 * count..).ok_or_else(damaged)?;
            let mut rows = Vec::with_capacity(count);
            for length in lengths.as_chunks::<4>().0 {
                let (row, others) = rest.split_at_checked(u32::from_be_bytes(*length) as usize).ok_or_else(damaged)?;
                rows.push(row);
                rest = others;
            }
            Ok(Chunk::Rows(rows))
        }
        _ => Err(damaged()),
    }
}

/// Which rows of a chunk are deleted.
pub(super) struct DeletedRows {
    rows: usize,
    bits: Vec<u8>,
}

impl DeletedRows {
    fn none(rows: usize) -> Self {
        DeletedRows { rows, bits: vec![0; rows.div_ceil(8)] }
    }

    fn decode(value: &[u8]) -> Result<Self> {
        let (rows, bits) = value.split_first_chunk::<2>().ok_or_else(damaged)?;
        let rows = usize::from(u16::from_be_bytes(*rows));
        if bits.len() != rows.div_ceil(8) {
            return Err(damaged());
        }
        Ok(DeletedRows { rows, bits: bits.to_vec() })
    }

    fn encode(&self) -> Bytes {
        let mut value = Vec::with_capacity(2 + self.bits.len());
        value.extend_from_slice(&(self.rows as u16).to_be_bytes());
        value.extend_from_slice(&self.bits);
        value.into()
    }

    fn insert(&mut self, offset: usize) {
        if offset < self.rows {
            self.bits[offset / 8] |= 1 << (offset % 8);
        }
    }

    fn all(&self) -> bool {
        self.bits.iter().map(|byte| byte.count_ones() as usize).sum::<usize>() == self.rows
    }

    /// True for the rows that are there.
    pub(super) fn live(&self) -> BooleanArray {
        let mut inverted = MutableBuffer::new(self.bits.len());
        self.bits.iter().for_each(|byte| inverted.push(!byte));
        BooleanArray::new(BooleanBuffer::new(inverted.into(), 0, self.rows), None)
    }

    /// Whether a row is there.
    pub(super) fn is_live(&self, offset: usize) -> bool {
        self.bits.get(offset / 8).is_none_or(|byte| byte & (1 << (offset % 8)) == 0)
    }
}
