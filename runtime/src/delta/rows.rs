//! Rows as bytes, and back.
//!
//! A row is encoded column by column in arrow-row's format: bytes compare as the rows do (columns from left to
//! right, NULL first), equal bytes mean identical rows, and no encoded row is a prefix of another one of the
//! same columns. So an encoded row may be followed by anything and stays readable as a prefix.
//!
//! [`RowCodec`] keeps values exactly as they are (-0.0 stays apart from 0.0): it is for payloads. Keys go through
//! [`crate::delta::key`], which first makes equal values identical. [`OrderedCodec`] orders its bytes as an ORDER BY says.

use bytes::Bytes;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::row::{RowConverter, Rows, SortField};
use plan::PlanError;

use crate::error::{Error, Result};

/// Encoded rows of a batch.
#[derive(Debug)]
pub struct EncodedRows {
    rows: Rows,
    /// Rows without columns have no bytes, so their number is kept here.
    count: usize,
}

impl EncodedRows {
    /// The bytes of a row.
    pub fn row(&self, index: usize) -> &[u8] {
        if self.rows.num_rows() == 0 {
            assert!(index < self.count, "row {index} of {}", self.count);
            return &[];
        }
        self.rows.row(index).data()
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The bytes of all rows, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.count).map(|index| self.row(index))
    }
}

/// Whether rows of these types can be encoded.
pub fn supports(types: &[DataType]) -> bool {
    let fields: Vec<SortField> = types.iter().cloned().map(SortField::new).collect();
    RowConverter::supports_fields(&fields)
}

/// Makes an arrow-row converter, or names the type that cannot be encoded.
pub(super) fn converter(types: &[DataType]) -> Result<RowConverter> {
    for data_type in types {
        if !supports(std::slice::from_ref(data_type)) {
            return Err(Error::Plan(PlanError::unsupported(format!("comparing values of type {data_type}"))));
        }
    }
    Ok(RowConverter::new(types.iter().cloned().map(SortField::new).collect())?)
}

/// Encodes columns of equal length; `count` is their number of rows.
pub(super) fn encode(converter: &RowConverter, columns: &[ArrayRef], count: usize) -> Result<EncodedRows> {
    let rows = converter.convert_columns(columns)?;
    Ok(EncodedRows { rows, count })
}

/// Encodes and decodes whole rows of one schema, exactly.
#[derive(Debug)]
pub struct RowCodec {
    schema: SchemaRef,
    converter: RowConverter,
}

impl RowCodec {
    /// A codec for rows of a schema.
    pub fn new(schema: &SchemaRef) -> Result<Self> {
        let types: Vec<DataType> = schema.fields().iter().map(|field| field.data_type().clone()).collect();
        Ok(RowCodec { schema: schema.clone(), converter: converter(&types)? })
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Encodes the rows of a batch.
    pub fn encode(&self, batch: &RecordBatch) -> Result<EncodedRows> {
        encode(&self.converter, batch.columns(), batch.num_rows())
    }

    /// Encodes columns; `count` is their number of rows.
    pub fn encode_columns(&self, columns: &[ArrayRef], count: usize) -> Result<EncodedRows> {
        encode(&self.converter, columns, count)
    }

    /// Reads encoded rows back.
    pub fn decode<'a>(&self, rows: impl IntoIterator<Item = &'a [u8]>) -> Result<RecordBatch> {
        let parser = self.converter.parser();
        let mut count = 0;
        let counted = rows.into_iter().inspect(|_| count += 1);
        if self.schema.fields().is_empty() {
            let count = counted.count();
            let options = RecordBatchOptions::new().with_row_count(Some(count));
            return Ok(RecordBatch::try_new_with_options(self.schema.clone(), Vec::new(), &options)?);
        }
        let rows: Vec<&[u8]> = counted.collect();
        let columns = self.converter.convert_rows(rows.iter().map(|row| parser.parse(row)))?;
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }

    /// Reads encoded rows back from owned bytes.
    pub fn decode_bytes(&self, rows: &[Bytes]) -> Result<RecordBatch> {
        self.decode(rows.iter().map(AsRef::as_ref))
    }
}

/// Encodes columns so that the bytes of rows compare as an ORDER BY of these columns says; values come back exactly.
/// The bytes of a row are those of its columns one after the other.
#[derive(Debug)]
pub struct OrderedCodec {
    converter: RowConverter,
    is_empty: bool,
}

impl OrderedCodec {
    /// A codec for columns of these types, each in its direction.
    pub fn new(columns: &[(DataType, SortOptions)]) -> Result<Self> {
        for (data_type, _) in columns {
            if !supports(std::slice::from_ref(data_type)) {
                return Err(Error::Plan(PlanError::unsupported(format!("comparing values of type {data_type}"))));
            }
        }
        let field =
            |(data_type, options): &(DataType, SortOptions)| SortField::new_with_options(data_type.clone(), *options);
        let converter = RowConverter::new(columns.iter().map(field).collect())?;
        Ok(OrderedCodec { converter, is_empty: columns.is_empty() })
    }

    /// Encodes columns; `count` is their number of rows.
    pub fn encode(&self, columns: &[ArrayRef], count: usize) -> Result<EncodedRows> {
        encode(&self.converter, columns, count)
    }

    /// Reads columns back.
    pub fn decode<'a>(&self, rows: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
        if self.is_empty {
            return Ok(Vec::new());
        }
        let parser = self.converter.parser();
        Ok(self.converter.convert_rows(rows.into_iter().map(|row| parser.parse(row)))?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{Float64Array, Int64Array, StringArray};
    use datafusion::arrow::datatypes::{Field, Schema};

    use super::*;

    #[test]
    fn rows_come_back_as_they_were() {
        let schema = Arc::new(Schema::new(vec![
            Field::new("a", DataType::Int64, true),
            Field::new("b", DataType::Utf8, true),
            Field::new("c", DataType::Float64, true),
        ]));
        let batch = RecordBatch::try_new(
            schema.clone(),
            vec![
                Arc::new(Int64Array::from(vec![Some(1), None, Some(-3)])),
                Arc::new(StringArray::from(vec![Some("x"), Some(""), None])),
                Arc::new(Float64Array::from(vec![Some(-0.0), Some(f64::INFINITY), None])),
            ],
        )
        .unwrap();
        let codec = RowCodec::new(&schema).unwrap();
        let encoded = codec.encode(&batch).unwrap();
        assert_eq!(codec.decode(encoded.iter()).unwrap(), batch);
    }

    #[test]
    fn bytes_order_as_an_order_by_says() {
        let descending = SortOptions { descending: true, nulls_first: true };
        let ascending = SortOptions { descending: false, nulls_first: false };
        let codec = OrderedCodec::new(&[(DataType::Utf8, descending), (DataType::Float64, ascending)]).unwrap();
        let columns: Vec<ArrayRef> = vec![
            Arc::new(StringArray::from(vec![None, Some("b"), Some("ab"), Some("a"), Some("a")])),
            Arc::new(Float64Array::from(vec![Some(1.0), Some(1.0), None, Some(-0.0), None])),
        ];
        let encoded = codec.encode(&columns, 5).unwrap();
        assert!((1..5).all(|row| encoded.row(row - 1) < encoded.row(row)));
        assert_eq!(codec.decode(encoded.iter()).unwrap(), columns);
    }

    #[test]
    fn rows_without_columns_are_counted() {
        let schema = Arc::new(Schema::empty());
        let options = RecordBatchOptions::new().with_row_count(Some(3));
        let batch = RecordBatch::try_new_with_options(schema.clone(), vec![], &options).unwrap();
        let codec = RowCodec::new(&schema).unwrap();
        let encoded = codec.encode(&batch).unwrap();
        assert_eq!(encoded.len(), 3);
        assert_eq!(encoded.row(2), b"");
        assert_eq!(codec.decode(encoded.iter()).unwrap().num_rows(), 3);
    }
}
