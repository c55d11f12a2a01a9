//! The form in which a join keeps rows of one side.
//!
//! A row is kept under its key, as a payload: its columns without those that the key tells exactly.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;

use crate::delta::Delta;
use crate::delta::key::{KeyEncoder, has_equal_forms};
use crate::delta::rows::{EncodedRows, RowCodec};
use crate::error::Result;

/// How rows of one side become payloads, and come back.
pub(super) struct Kept {
    codec: RowCodec,
    payload_columns: Vec<usize>,
    /// For each column that is kept: where it is found.
    pub(super) sources: Vec<Source>,
}

/// Where a column of a kept row is found.
#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    /// In the payload.
    Payload(usize),
    /// It is this key column, so a row that it is paired with has the same value there.
    Key(usize),
}

impl Kept {
    /// Keeps the first `width` columns of rows with these key columns.
    pub(super) fn new(keys: &[usize], width: usize, schema: &SchemaRef) -> Result<Self> {
        let mut payload_columns = Vec::new();
        let sources = (0..width).map(|column| {
            let key = keys.iter().position(|key| *key == column);
            match key.filter(|_| !has_equal_forms(schema.field(column).data_type())) {
                Some(key) => Source::Key(key),
                None => {
                    payload_columns.push(column);
                    Source::Payload(payload_columns.len() - 1)
                }
            }
        });
        let sources = sources.collect();
        let fields: Vec<_> = payload_columns.iter().map(|column| schema.field(*column).clone()).collect();
        let codec = RowCodec::new(&Arc::new(Schema::new(fields)))?;
        Ok(Kept { codec, payload_columns, sources })
    }

    /// The payloads of rows.
    pub(super) fn encode(&self, delta: &Delta) -> Result<EncodedRows> {
        let payload: Vec<ArrayRef> =
            self.payload_columns.iter().map(|column| delta.batch().column(*column).clone()).collect();
        self.codec.encode_columns(&payload, delta.len())
    }

    /// The columns of payloads.
    pub(super) fn decode_payloads(&self, payloads: &[Bytes]) -> Result<RecordBatch> {
        self.codec.decode_bytes(payloads)
    }

    /// The columns of rows, from their keys and payloads.
    pub(super) fn decode<'a>(
        &self,
        encoder: &KeyEncoder,
        keys: impl Iterator<Item = &'a [u8]>,
        payloads: impl Iterator<Item = &'a [u8]>,
    ) -> Result<Vec<ArrayRef>> {
        let payloads = self.codec.decode(payloads)?;
        let from_key = self.sources.iter().any(|source| matches!(source, Source::Key(_)));
        let keys = if from_key { encoder.decode(keys)? } else { Vec::new() };
        let column = |source: &Source| match source {
            Source::Payload(column) => payloads.column(*column).clone(),
            Source::Key(key) => keys[*key].clone(),
        };
        Ok(self.sources.iter().map(column).collect())
    }
}
