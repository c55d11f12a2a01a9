//! Rows of arguments as bytes that order as the call wants: what a group's rows are kept as.

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::arrow::row::{RowConverter, Rows, SortField};

use crate::delta::key::{has_equal_forms, normalise};
use crate::delta::rows::{EncodedRows, RowCodec, supports};
use crate::error::Result;

/// A part of an order: by which argument, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OrderColumn {
    /// Position of the argument.
    pub column: usize,
    /// Whether the greatest come first.
    pub descending: bool,
    /// Whether NULL comes first.
    pub nulls_first: bool,
}

/// Encodes rows so that their bytes order by some arguments in turn, and then by all others, so that rows that are not
/// apart are equal in every argument.
///
/// Where equal values may look different, the arguments as they are follow the key, and the length of the key them.
#[derive(Debug)]
pub struct RowEncoder {
    keys: RowConverter,
    /// The argument of each column of the key.
    arguments: Vec<usize>,
    exact: Option<RowCodec>,
}

/// Encoded rows.
#[derive(Debug)]
pub struct OrderedRows {
    keys: Rows,
    exact: Option<EncodedRows>,
    buffer: Vec<u8>,
}

/// Bytes of a key's length behind its row.
const LENGTH_BYTES: usize = size_of::<u32>();

impl RowEncoder {
    /// Whether there is an order over values of these types.
    pub fn supports(types: &[DataType]) -> bool {
        supports(types)
    }

    /// For arguments of these types, in this order.
    pub fn new(types: &[DataType], order: &[OrderColumn]) -> Result<Self> {
        let mut full = order.to_vec();
        let is_free = |column: &usize| order.iter().all(|part| part.column != *column);
        let rest = (0..types.len()).filter(is_free);
        full.extend(rest.map(|column| OrderColumn { column, descending: false, nulls_first: false }));
        let fields = full.iter().map(|part| {
            let options = SortOptions { descending: part.descending, nulls_first: part.nulls_first };
            SortField::new_with_options(types[part.column].clone(), options)
        });
        let exact = if types.iter().any(has_equal_forms) {
            let fields: Vec<Field> = types.iter().map(|data_type| Field::new("", data_type.clone(), true)).collect();
            Some(RowCodec::new(&Schema::new(fields).into())?)
        } else {
            None
        };
        let arguments = full.iter().map(|part| part.column).collect();
        Ok(RowEncoder { keys: RowConverter::new(fields.collect())?, arguments, exact })
    }

    /// Encodes rows; there must be an argument.
    pub fn encode(&self, columns: &[ArrayRef]) -> Result<OrderedRows> {
        let ordered: Vec<ArrayRef> = self.arguments.iter().map(|argument| normalise(&columns[*argument])).collect();
        let exact = match &self.exact {
            Some(codec) => Some(codec.encode_columns(columns, columns.first().map_or(0, |column| column.len()))?),
            None => None,
        };
        Ok(OrderedRows { keys: self.keys.convert_columns(&ordered)?, exact, buffer: Vec::new() })
    }

    /// The part of a row in which equal rows are equal.
    pub fn key<'a>(&self, row: &'a [u8]) -> &'a [u8] {
        if self.exact.is_none() {
            return row;
        }
        let Some((_, length)) = row.split_last_chunk::<LENGTH_BYTES>() else { return row };
        &row[..(u32::from_be_bytes(*length) as usize).min(row.len())]
    }

    /// Reads the arguments back.
    pub fn decode<'a>(&self, rows: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
        if let Some(codec) = &self.exact {
            let exact = rows.into_iter().map(|row| &row[self.key(row).len()..row.len() - LENGTH_BYTES]);
            return Ok(codec.decode(exact)?.columns().to_vec());
        }
        let parser = self.keys.parser();
        let rows: Vec<&[u8]> = rows.into_iter().collect();
        let ordered = self.keys.convert_rows(rows.iter().map(|row| parser.parse(row)))?;
        let mut columns = ordered.clone();
        for (column, argument) in ordered.into_iter().zip(&self.arguments) {
            columns[*argument] = column;
        }
        Ok(columns)
    }
}

impl OrderedRows {
    /// The bytes of a row.
    #[inline]
    pub fn row(&mut self, row: usize) -> &[u8] {
        let key = self.keys.row(row).data();
        self.buffer.clear();
        self.buffer.extend_from_slice(key);
        if let Some(exact) = &self.exact {
            self.buffer.extend_from_slice(exact.row(row));
            // A key is shorter than 4 GB.
            self.buffer.extend_from_slice(&(key.len() as u32).to_be_bytes());
        }
        &self.buffer
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{AsArray, Float64Array, Int32Array, StringArray};
    use datafusion::arrow::datatypes::{Float64Type, Int32Type};

    use super::*;

    #[test]
    fn rows_order_as_asked_and_come_back_as_they_were() {
        let columns: Vec<ArrayRef> = vec![
            Arc::new(Int32Array::from(vec![Some(1), Some(2), None])),
            Arc::new(StringArray::from(vec!["a", "b", "a"])),
        ];
        let types = [DataType::Int32, DataType::Utf8];
        let order = [OrderColumn { column: 1, descending: true, nulls_first: false }];
        let encoder = RowEncoder::new(&types, &order).unwrap();
        let mut encoded = encoder.encode(&columns).unwrap();
        let mut rows: Vec<Vec<u8>> = (0..3).map(|row| encoded.row(row).to_vec()).collect();
        rows.sort();
        let decoded = encoder.decode(rows.iter().map(Vec::as_slice)).unwrap();
        let numbers: Vec<Option<i32>> = decoded[0].as_primitive::<Int32Type>().iter().collect();
        assert_eq!(numbers, [Some(2), Some(1), None]);
    }

    #[test]
    fn equal_values_that_look_different_have_one_key() {
        let columns: Vec<ArrayRef> = vec![Arc::new(Float64Array::from(vec![0.0, -0.0, 1.0]))];
        let encoder = RowEncoder::new(&[DataType::Float64], &[]).unwrap();
        let mut encoded = encoder.encode(&columns).unwrap();
        let rows: Vec<Vec<u8>> = (0..3).map(|row| encoded.row(row).to_vec()).collect();
        assert_ne!(rows[0], rows[1]);
        assert_eq!(encoder.key(&rows[0]), encoder.key(&rows[1]));
        assert_ne!(encoder.key(&rows[0]), encoder.key(&rows[2]));
        let decoded = encoder.decode(rows.iter().map(Vec::as_slice)).unwrap();
        assert!(decoded[0].as_primitive::<Float64Type>().value(1).is_sign_negative());
    }
}
