//! The form in which a join keeps rows of one side.
//!
//! A row is kept under its key, as a payload: its columns without those that the key tells exactly. Where rows are kept in
//! an order ([`super::reach`]), the payload begins with it: with the column that it is, or with columns of its own.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;

use super::ranges::Order;
use super::reach::order_columns;
use crate::delta::Delta;
use crate::delta::key::{KeyEncoder, has_equal_forms};
use crate::delta::rows::{EncodedRows, RowCodec};
use crate::error::Result;

/// How rows of one side become payloads, and come back.
pub(super) struct Kept {
    codec: RowCodec,
    /// What stands before the columns of the row.
    computed: Option<Order>,
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
    pub(super) fn new(keys: &[usize], width: usize, order: Option<&Order>, schema: &SchemaRef) -> Result<Self> {
        let is_exact = |column: usize| !has_equal_forms(schema.field(column).data_type());
        let key_of = |column: usize| keys.iter().position(|key| *key == column).filter(|_| is_exact(column));
        let mut payload_columns: Vec<usize> = (0..width).filter(|column| key_of(*column).is_none()).collect();
        let first = order.and_then(|order| order.expression.columns()[0]).filter(|column| is_exact(*column));
        let first = first.and_then(|first| payload_columns.iter().position(|column| *column == first));
        if let Some(first) = first {
            payload_columns[..=first].rotate_right(1);
        }
        let computed = order.filter(|_| first.is_none()).cloned();
        let mut fields = Vec::new();
        if let Some(order) = &computed {
            fields.extend(order.may_fail.then(|| Field::new("$failed", DataType::Boolean, true)));
            fields.push(Field::new("$order", order.data_type.clone(), true));
        }
        let before = fields.len();
        fields.extend(payload_columns.iter().map(|column| schema.field(*column).clone()));
        let place = |column: usize| payload_columns.iter().position(|other| *other == column).unwrap_or_default();
        let source =
            |column: usize| key_of(column).map_or_else(|| Source::Payload(before + place(column)), Source::Key);
        let sources = (0..width).map(source).collect();
        let codec = RowCodec::new(&Arc::new(Schema::new(fields)))?;
        Ok(Kept { codec, computed, payload_columns, sources })
    }

    /// The payloads of rows.
    pub(super) fn encode(&self, delta: &Delta) -> Result<EncodedRows> {
        let mut payload = match &self.computed {
            Some(order) => order_columns(order, delta)?,
            None => Vec::new(),
        };
        payload.extend(self.payload_columns.iter().map(|column| delta.batch().column(*column).clone()));
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
