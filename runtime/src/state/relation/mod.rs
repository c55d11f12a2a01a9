//! Rows of tables and views as entries of the store.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::Int64Array;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::scalar::ScalarValue;
use plan::{Layout, Relation};

use crate::error::{Error, Result};
use crate::limits;
use crate::state::store::{Snapshot, Write};

/// How the rows of a relation are read and written. Cheap to clone.
#[derive(Clone)]
pub struct RelationStorage {
    relation: Arc<Relation>,
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
        ScanOptions { projection: None, after: None, batch_rows: limits::SCAN_ROWS, with_rowid: false, key_equals: None }
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

/// A scan in progress.
pub struct RelationScan {
    _snapshot: Arc<dyn Snapshot>,
}

impl Iterator for RelationScan {
    type Item = Result<Scanned>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(unsupported())
    }
}

fn unsupported<T>() -> Result<T> {
    Err(Error::Storage("not supported yet".to_string()))
}

impl RelationStorage {
    /// The storage of a relation.
    pub fn new(relation: Arc<Relation>) -> Result<RelationStorage> {
        Ok(RelationStorage { relation })
    }

    /// The relation.
    pub fn relation(&self) -> &Arc<Relation> {
        &self.relation
    }

    /// The columns that make up the key: the declared ones, or all for a multiset, or none for numbered rows.
    pub fn key_columns(&self) -> Vec<usize> {
        match &self.relation.layout {
            Layout::Keyed(key) => key.clone(),
            Layout::RowId => Vec::new(),
            Layout::Multiset => (0..self.relation.schema.fields().len()).collect(),
        }
    }

    /// The writes that add rows to a table. Numbered rows get the chunks from `first_chunk` on; their numbers and how
    /// many chunks were used are returned. For keyed rows an entry of the same key is replaced.
    pub fn insert(&self, _batch: &RecordBatch, _first_chunk: i64) -> Result<(Vec<Write>, Option<Int64Array>, i64)> {
        unsupported()
    }

    /// The writes that delete rows of a table. Numbered rows are found by number, keyed ones by key. Two deletions from
    /// one snapshot must not touch the same chunk: the second one needs a snapshot that shows the first
    /// ([`crate::state::overlay::OverlaySnapshot`]).
    pub fn delete(
        &self,
        _snapshot: &dyn Snapshot,
        _batch: &RecordBatch,
        _rowids: Option<&Int64Array>,
    ) -> Result<Vec<Write>> {
        unsupported()
    }

    /// The store keys of rows: of their entries, or for numbered rows their positions. They compare with the position
    /// of a scan: a row was returned if its key is at most [`Scanned::last_key`].
    pub fn keys(&self, _batch: &RecordBatch, _rowids: Option<&Int64Array>) -> Result<Vec<Bytes>> {
        unsupported()
    }

    /// Partition and key, without the store's header, of each row of a keyed or multiset relation.
    pub fn encode_key(&self, _batch: &RecordBatch) -> Result<Vec<(u16, Bytes)>> {
        unsupported()
    }

    /// The value of each row of a keyed relation.
    pub fn encode_value(&self, _batch: &RecordBatch) -> Result<Vec<Bytes>> {
        unsupported()
    }

    /// Reads rows in the order of their store keys.
    pub fn scan(&self, snapshot: Arc<dyn Snapshot>, _options: ScanOptions) -> RelationScan {
        RelationScan { _snapshot: snapshot }
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
