//! Keyed and multiset relations: an entry a row.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, UInt32Array};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::scalar::ScalarValue;

use crate::delta::key::{KeyEncoder, Keys, has_equal_forms, partition_of};
use crate::delta::rows::{EncodedRows, RowCodec};
use crate::error::{Error, Result};
use crate::state::layout::{self, HEADER_LENGTH};
use crate::state::relation::{decode_count, pack};
use crate::state::store::Entry;

/// Where a column's values come from.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// The column of the decoded key.
    Key(usize),
    /// The column of the decoded value.
    Value(usize),
}

/// How rows become entries.
pub(super) struct EntryFormat {
    table: u32,
    schema: SchemaRef,
    key_columns: Vec<usize>,
    encoder: KeyEncoder,
    /// Of a multiset some of whose equal rows may differ: the exact rows.
    exact: Option<RowCodec>,
    /// Columns that stand in the value, with their codec. A multiset has none: its value is a number of copies.
    value_columns: Vec<usize>,
    value_codec: RowCodec,
    sources: Vec<Source>,
    multiset: bool,
}

impl EntryFormat {
    /// Entries under a key, with the other columns as value.
    pub(super) fn keyed(table: u32, schema: &SchemaRef, key: &[usize]) -> Result<Self> {
        let in_value = |column: &usize| !key.contains(column) || has_equal_forms(schema.field(*column).data_type());
        let value_columns: Vec<usize> = (0..schema.fields().len()).filter(in_value).collect();
        let source = |column: usize| {
            let in_value = value_columns.iter().position(|value| *value == column).map(Source::Value);
            in_value.or_else(|| key.iter().position(|key| *key == column).map(Source::Key))
        };
        let sources = (0..schema.fields().len()).filter_map(source).collect();
        let value_codec = RowCodec::new(&Arc::new(schema.project(&value_columns)?))?;
        Ok(EntryFormat {
            table,
            schema: schema.clone(),
            key_columns: key.to_vec(),
            encoder: KeyEncoder::new(&types(schema, key))?,
            exact: None,
            value_columns,
            value_codec,
            sources,
            multiset: false,
        })
    }

    /// Entries under whole rows, with the number of copies as value.
    pub(super) fn multiset(table: u32, schema: &SchemaRef) -> Result<Self> {
        let key_columns: Vec<usize> = (0..schema.fields().len()).collect();
        let types = types(schema, &key_columns);
        let exact = if types.iter().any(has_equal_forms) { Some(RowCodec::new(schema)?) } else { None };
        Ok(EntryFormat {
            table,
            schema: schema.clone(),
            sources: key_columns.iter().map(|column| Source::Key(*column)).collect(),
            key_columns,
            encoder: KeyEncoder::new(&types)?,
            exact,
            value_columns: Vec::new(),
            value_codec: RowCodec::new(&Arc::new(Schema::empty()))?,
            multiset: true,
        })
    }

    pub(super) fn key_columns(&self) -> &[usize] {
        &self.key_columns
    }

    pub(super) fn is_multiset(&self) -> bool {
        self.multiset
    }

    fn encode(&self, batch: &RecordBatch) -> Result<EncodedKeys> {
        let columns: Vec<ArrayRef> = self.key_columns.iter().map(|column| batch.column(*column).clone()).collect();
        let keys = self.encoder.encode_rows(&columns, batch.num_rows())?;
        let exact = self.exact.as_ref().map(|codec| codec.encode(batch)).transpose()?;
        Ok(EncodedKeys { keys, exact })
    }

    /// Partition and key of each row.
    pub(super) fn keys(&self, batch: &RecordBatch) -> Result<Vec<(u16, Bytes)>> {
        let keys = self.encode(batch)?;
        let packed = pack(batch.num_rows(), keys.size_hint(), |row, buffer| buffer.extend_from_slice(keys.row(row)));
        Ok(packed.into_iter().enumerate().map(|(row, key)| (keys.partition(row), key)).collect())
    }

    /// Whole store key of each row.
    pub(super) fn store_keys(&self, batch: &RecordBatch) -> Result<Vec<Bytes>> {
        let keys = self.encode(batch)?;
        let size = keys.size_hint() + HEADER_LENGTH * batch.num_rows();
        Ok(pack(batch.num_rows(), size, |row, buffer| {
            buffer.extend_from_slice(&layout::header(self.table, keys.partition(row)));
            buffer.extend_from_slice(keys.row(row));
        }))
    }

    /// Value of each row.
    pub(super) fn values(&self, batch: &RecordBatch) -> Result<Vec<Bytes>> {
        let columns: Vec<ArrayRef> = self.value_columns.iter().map(|column| batch.column(*column).clone()).collect();
        let rows = self.value_codec.encode_columns(&columns, batch.num_rows())?;
        let size = batch.num_rows().checked_sub(1).map_or(0, |last| rows.row(last).len() * batch.num_rows());
        Ok(pack(batch.num_rows(), size, |row, buffer| buffer.extend_from_slice(rows.row(row))))
    }

    /// The store keys under which rows with these key values stand. None if that cannot be told: then all are to be
    /// read.
    pub(super) fn lookup_keys(&self, values: &[ScalarValue]) -> Result<Option<Vec<Bytes>>> {
        if self.exact.is_some() || values.len() != self.key_columns.len() {
            return Ok(None);
        }
        let mut columns = Vec::with_capacity(values.len());
        for (column, value) in self.key_columns.iter().zip(values) {
            let wanted = self.schema.field(*column).data_type();
            // A NULL equals nothing; a value that its column cannot hold neither.
            let Some(value) = exactly_cast(value, wanted).filter(|value| !value.is_null()) else {
                return Ok(Some(Vec::new()));
            };
            columns.push(value.to_array_of_size(1)?);
        }
        let keys = self.encoder.encode_rows(&columns, 1)?;
        Ok(Some(vec![layout::store_key(self.table, keys.partition(0), keys.row(0))]))
    }

    /// Copies of the row of an entry.
    pub(super) fn copies(&self, value: &[u8]) -> Result<u64> {
        if !self.multiset {
            return Ok(1);
        }
        let count = decode_count(value)?;
        u64::try_from(count).map_err(|_| Error::Corrupted(format!("a row is stored {count} times")))
    }

    /// The rows of entries, with the columns of the projection. Copies are not expanded.
    pub(super) fn decode(&self, entries: &[Entry], projection: &[usize]) -> Result<RecordBatch> {
        let needs = |wanted: fn(&Source) -> bool| projection.iter().any(|column| wanted(&self.sources[*column]));
        let keys = entries.iter().map(|(key, _)| key.get(HEADER_LENGTH..).unwrap_or_default());
        let key_columns = match &self.exact {
            _ if !needs(|source| matches!(source, Source::Key(_))) => Vec::new(),
            Some(codec) => codec.decode(keys)?.columns().to_vec(),
            None => self.encoder.decode(keys)?,
        };
        let value_columns = if needs(|source| matches!(source, Source::Value(_))) {
            self.value_codec.decode(entries.iter().map(|(_, value)| value.as_ref()))?.columns().to_vec()
        } else {
            Vec::new()
        };
        let columns = projection.iter().map(|column| match self.sources[*column] {
            Source::Key(position) => key_columns[position].clone(),
            Source::Value(position) => value_columns[position].clone(),
        });
        let options = RecordBatchOptions::new().with_row_count(Some(entries.len()));
        let schema = Arc::new(self.schema.project(projection)?);
        Ok(RecordBatch::try_new_with_options(schema, columns.collect(), &options)?)
    }

    /// Each row as often as it says.
    pub(super) fn expand(&self, batch: RecordBatch, copies: &[u64]) -> Result<RecordBatch> {
        if copies.iter().all(|copies| *copies == 1) {
            return Ok(batch);
        }
        let rows = copies.iter().enumerate().flat_map(|(row, copies)| (0..*copies).map(move |_| row as u32));
        let rows = UInt32Array::from_iter_values(rows);
        if batch.num_columns() == 0 {
            let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
            return Ok(RecordBatch::try_new_with_options(batch.schema(), Vec::new(), &options)?);
        }
        Ok(compute::take_record_batch(&batch, &rows)?)
    }
}

struct EncodedKeys {
    keys: Keys,
    exact: Option<EncodedRows>,
}

impl EncodedKeys {
    fn row(&self, row: usize) -> &[u8] {
        self.exact.as_ref().map_or_else(|| self.keys.row(row), |exact| exact.row(row))
    }

    fn partition(&self, row: usize) -> u16 {
        partition_of(self.keys.row(row))
    }

    fn size_hint(&self) -> usize {
        self.keys.len().checked_sub(1).map_or(0, |last| self.row(last).len() * self.keys.len())
    }
}

fn types(schema: &SchemaRef, columns: &[usize]) -> Vec<DataType> {
    columns.iter().map(|column| schema.field(*column).data_type().clone()).collect()
}

/// A value as another type, if that type can hold it unchanged.
fn exactly_cast(value: &ScalarValue, wanted: &DataType) -> Option<ScalarValue> {
    if value.data_type() == *wanted {
        return Some(value.clone());
    }
    let cast = value.cast_to(wanted).ok()?;
    (cast.cast_to(&value.data_type()).ok()? == *value).then_some(cast)
}
