//! Rows of tables and views as entries of the store.
//!
//! A relation with id `r` occupies the store tables `r` and `r + 1`. By layout:
//! - Keyed: an entry a row in `r`. Key: the key columns, encoded by [`KeyEncoder`](crate::delta::key::KeyEncoder), in
//!   the partition of these bytes. Value: the other columns, and those key columns of which equal values may differ
//!   (-0.0 and 0.0), encoded by [`RowCodec`](crate::delta::rows::RowCodec).
//! - Multiset: an entry a distinct row in `r`, in the partition of its `KeyEncoder` bytes. Key: all columns, encoded
//!   exactly. Value: the number of copies, i64 BE, at least 1.
//! - RowId: rows stand in chunks, numbered as they were added; a row's number is `chunk << 13 | offset`. An entry a
//!   chunk in `r`, partition 0, under its number as u64 BE: so a scan returns rows in the order of arrival. Deleted rows
//!   are bits in an entry of the same key in `r + 1`; a chunk whose rows are all deleted is deleted itself
//!   ([`chunks`]).
//!
//! A position in a relation is a store key: that of an entry, or for numbered rows the chunk's with the row's offset
//! behind it. Positions order as scans do.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::Int64Array;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::scalar::ScalarValue;
use plan::{Layout, PlanError, Relation};

use crate::error::{Error, Result};
use crate::limits;
use crate::state::layout;
use crate::state::store::{Snapshot, Write};

pub mod chunks;
mod entries;
mod scan;
mod size;

pub use scan::RelationScan;

use chunks::ChunkFormat;
use entries::EntryFormat;

/// How the rows of a relation are read and written. Cheap to clone.
#[derive(Clone)]
pub struct RelationStorage {
    inner: Arc<Inner>,
}

struct Inner {
    relation: Arc<Relation>,
    format: Format,
}

// One of them a relation, behind an `Arc`: its size does not matter.
#[allow(clippy::large_enum_variant)]
enum Format {
    /// Keyed and multiset relations.
    Entries(EntryFormat),
    /// Numbered rows.
    Chunks(ChunkFormat),
}

/// What a scan returns and where it begins.
#[derive(Debug, Clone)]
pub struct ScanOptions {
    /// The columns to return, in order; none for all.
    pub projection: Option<Vec<usize>>,
    /// Only rows after this position: a [`Scanned::last_key`] or one of [`RelationStorage::keys`].
    pub after: Option<Bytes>,
    /// About as many rows are returned at once.
    pub batch_rows: usize,
    /// Whether row numbers are returned.
    pub with_rowid: bool,
    /// Only the rows whose key columns equal these values, in the order of [`RelationStorage::key_columns`].
    pub key_equals: Option<Vec<ScalarValue>>,
}

impl Default for ScanOptions {
    fn default() -> Self {
        ScanOptions {
            projection: None,
            after: None,
            batch_rows: limits::SCAN_ROWS,
            with_rowid: false,
            key_equals: None,
        }
    }
}

/// Rows that a scan returned.
#[derive(Debug, Clone)]
pub struct Scanned {
    /// The rows; a row of which there are several copies stands there as often.
    pub batch: RecordBatch,
    /// Row numbers, if asked for: 0 unless the layout is [`Layout::RowId`].
    pub rowids: Option<Int64Array>,
    /// The position of the last row: a scan that begins after it goes on behind it.
    pub last_key: Bytes,
}

impl RelationStorage {
    /// The storage of a relation. Fails if rows with these columns cannot be encoded.
    pub fn new(relation: Arc<Relation>) -> Result<RelationStorage> {
        let table = relation.id.0;
        let format = match &relation.layout {
            Layout::Keyed(key) => Format::Entries(EntryFormat::keyed(table, &relation.schema, key)?),
            Layout::Multiset => Format::Entries(EntryFormat::multiset(table, &relation.schema)?),
            Layout::RowId => Format::Chunks(ChunkFormat::new(table, &relation.schema)?),
        };
        Ok(RelationStorage { inner: Arc::new(Inner { relation, format }) })
    }

    /// The relation.
    pub fn relation(&self) -> &Arc<Relation> {
        &self.inner.relation
    }

    /// The columns that make up the key: the declared ones, or all for a multiset, or none for numbered rows.
    pub fn key_columns(&self) -> Vec<usize> {
        match &self.inner.format {
            Format::Entries(entries) => entries.key_columns().to_vec(),
            Format::Chunks(_) => Vec::new(),
        }
    }

    /// The writes that add rows to a table. Numbered rows get the chunks from `first_chunk` on; their numbers and how
    /// many chunks were used are returned. For keyed rows an entry of the same key is replaced.
    pub fn insert(&self, batch: &RecordBatch, first_chunk: i64) -> Result<(Vec<Write>, Option<Int64Array>, i64)> {
        match &self.inner.format {
            Format::Entries(entries) if entries.is_multiset() => Err(self.misused("rows are counted, not inserted")),
            Format::Entries(entries) => {
                let writes = entries.store_keys(batch)?.into_iter().zip(entries.values(batch)?);
                Ok((writes.map(|(key, value)| (key, Some(value))).collect(), None, 0))
            }
            Format::Chunks(chunks) => {
                let (writes, rowids, used) = chunks.insert(batch, first_chunk)?;
                Ok((writes, Some(rowids), used))
            }
        }
    }

    /// The writes that delete rows of a table. Numbered rows are found by number, keyed ones by key. Two deletions from
    /// one snapshot must not touch the same chunk: the second one needs a snapshot that shows the first
    /// ([`crate::state::overlay::OverlaySnapshot`]).
    pub fn delete(
        &self,
        snapshot: &dyn Snapshot,
        batch: &RecordBatch,
        rowids: Option<&Int64Array>,
    ) -> Result<Vec<Write>> {
        match (&self.inner.format, rowids) {
            (Format::Entries(entries), _) if entries.is_multiset() => {
                Err(self.misused("rows are counted, not deleted"))
            }
            (Format::Entries(entries), _) => {
                Ok(entries.store_keys(batch)?.into_iter().map(|key| (key, None)).collect())
            }
            (Format::Chunks(chunks), Some(rowids)) => chunks.delete(snapshot, rowids),
            (Format::Chunks(_), None) => Err(self.misused("rows are deleted by their numbers")),
        }
    }

    /// The store keys of rows: of their entries, or for numbered rows their positions. They compare with the position
    /// of a scan: a row was returned if its key is at most [`Scanned::last_key`].
    pub fn keys(&self, batch: &RecordBatch, rowids: Option<&Int64Array>) -> Result<Vec<Bytes>> {
        match (&self.inner.format, rowids) {
            (Format::Entries(entries), _) => entries.store_keys(batch),
            (Format::Chunks(chunks), Some(rowids)) => Ok(chunks.positions(rowids)),
            (Format::Chunks(_), None) => Err(self.misused("rows are found by their numbers")),
        }
    }

    /// Partition and key, without the store's header, of each row of a keyed or multiset relation.
    pub fn encode_key(&self, batch: &RecordBatch) -> Result<Vec<(u16, Bytes)>> {
        match &self.inner.format {
            Format::Entries(entries) => entries.keys(batch),
            Format::Chunks(_) => Err(self.misused("rows have no key")),
        }
    }

    /// The value of each row of a keyed relation.
    pub fn encode_value(&self, batch: &RecordBatch) -> Result<Vec<Bytes>> {
        match &self.inner.format {
            Format::Entries(entries) => entries.values(batch),
            Format::Chunks(_) => Err(self.misused("rows have no key")),
        }
    }

    /// Reads rows in the order of their positions.
    pub fn scan(&self, snapshot: Arc<dyn Snapshot>, options: ScanOptions) -> RelationScan {
        RelationScan::new(self.inner.clone(), snapshot, options)
    }

    /// All store keys of the relation, to delete it: `[start, end)`.
    pub fn range(&self) -> (Bytes, Bytes) {
        let table = self.inner.relation.id.0;
        layout::tables_range(table, table + 1)
    }

    fn misused(&self, why: &str) -> Error {
        Error::Plan(PlanError::internal(format!("{why}, in {}", self.inner.relation.name)))
    }
}

/// The value of an entry of a multiset relation: how many copies of the row there are.
pub fn encode_count(count: i64) -> Bytes {
    Bytes::copy_from_slice(&count.to_be_bytes())
}

/// Reads the value of an entry of a multiset relation.
pub fn decode_count(value: &[u8]) -> Result<i64> {
    let bytes = value.try_into().map_err(|_| Error::Corrupted("a number of copies is not 8 bytes long".to_string()))?;
    Ok(i64::from_be_bytes(bytes))
}

/// Byte strings that lie one behind the other in one allocation, each `build` by index.
fn pack(count: usize, size_hint: usize, mut build: impl FnMut(usize, &mut Vec<u8>)) -> Vec<Bytes> {
    let mut buffer = Vec::with_capacity(size_hint);
    let mut ends = Vec::with_capacity(count);
    for index in 0..count {
        build(index, &mut buffer);
        ends.push(buffer.len());
    }
    let buffer = Bytes::from(buffer);
    let mut start = 0;
    ends.into_iter().map(|end| buffer.slice(std::mem::replace(&mut start, end)..end)).collect()
}

#[cfg(test)]
mod tests;
