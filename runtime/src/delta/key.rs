//! Keys: values by which rows are grouped, joined, stored and dealt out over workers.
//!
//! Two values that SQL calls equal have the same key bytes: -0.0 is 0.0, every NaN is one NaN, and intervals
//! are counted in days of 24 hours and months of 30 days, as PostgreSQL compares them. NULL has bytes of its
//! own (grouping puts NULLs together; a join leaves them out itself). Bytes order as the values do, NULL first.
//! The bytes are stored, so they are part of the storage format: a test below pins them.
//!
//! The partition of a key is a hash of its bytes. Exchange between workers and state use the same one.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, FixedSizeListArray, LargeListArray, ListArray, StructArray};
use datafusion::arrow::compute::kernels::arity::unary;
use datafusion::arrow::datatypes::{
    DataType, Float32Type, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::arrow::row::RowConverter;
use xxhash_rust::xxh3::xxh3_64;

use super::rows::{self, EncodedRows};
use crate::error::Result;

/// How many partitions the key space has. Workers own ranges of them.
pub const PARTITIONS: u16 = 1024;

/// The partition of a key.
pub fn partition_of(key: &[u8]) -> u16 {
    partition_of_hash(xxh3_64(key))
}

/// The partition of a key whose hash is known.
pub fn partition_of_hash(hash: u64) -> u16 {
    // The remainder is below 1024, so it fits.
    (hash % u64::from(PARTITIONS)) as u16
}

/// Encodes key columns of fixed types.
#[derive(Debug)]
pub struct KeyEncoder {
    converter: RowConverter,
    types: Vec<DataType>,
    normalised: Vec<bool>,
}

/// Encoded keys, one a row.
#[derive(Debug)]
pub struct Keys(EncodedRows);

impl Keys {
    /// The bytes of a row's key.
    pub fn row(&self, index: usize) -> &[u8] {
        self.0.row(index)
    }

    /// The partition of a row's key.
    pub fn partition(&self, index: usize) -> u16 {
        partition_of(self.0.row(index))
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The bytes of all keys, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.0.iter()
    }
}

impl KeyEncoder {
    /// Whether keys of these types can be encoded.
    pub fn supports(types: &[DataType]) -> bool {
        rows::supports(types)
    }

    /// An encoder for keys of these types.
    pub fn new(types: &[DataType]) -> Result<Self> {
        Ok(KeyEncoder {
            converter: rows::converter(types)?,
            types: types.to_vec(),
            normalised: types.iter().map(has_equal_forms).collect(),
        })
    }

    /// The types of the key columns.
    pub fn types(&self) -> &[DataType] {
        &self.types
    }

    /// Encodes the keys of all rows. A key without columns needs [`KeyEncoder::encode_rows`].
    pub fn encode(&self, columns: &[ArrayRef]) -> Result<Keys> {
        self.encode_rows(columns, columns.first().map_or(0, |column| column.len()))
    }

    /// Encodes the keys of so many rows.
    pub fn encode_rows(&self, columns: &[ArrayRef], count: usize) -> Result<Keys> {
        if !self.normalised.contains(&true) {
            return Ok(Keys(rows::encode(&self.converter, columns, count)?));
        }
        let columns: Vec<ArrayRef> = columns.iter().map(normalise).collect();
        Ok(Keys(rows::encode(&self.converter, &columns, count)?))
    }

    /// Reads keys back, in their normalised form.
    pub fn decode<'a>(&self, keys: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
        if self.types.is_empty() {
            return Ok(Vec::new());
        }
        let parser = self.converter.parser();
        let keys: Vec<&[u8]> = keys.into_iter().collect();
        Ok(self.converter.convert_rows(keys.iter().map(|key| parser.parse(key)))?)
    }
}

/// Whether values of a type may be equal without being identical.
pub fn has_equal_forms(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float16 | DataType::Float32 | DataType::Float64 | DataType::Interval(_) => true,
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _) => {
            has_equal_forms(field.data_type())
        }
        DataType::Struct(fields) => fields.iter().any(|field| has_equal_forms(field.data_type())),
        _ => false,
    }
}

/// The same values, equal ones made identical.
pub fn normalise(array: &ArrayRef) -> ArrayRef {
    if !has_equal_forms(array.data_type()) {
        return array.clone();
    }
    match array.data_type() {
        // Adding zero turns -0.0 into 0.0 and leaves every other number alone.
        DataType::Float32 => Arc::new(unary::<Float32Type, _, Float32Type>(array.as_primitive(), |value| {
            if value.is_nan() { f32::NAN } else { value + 0.0 }
        })),
        DataType::Float64 => Arc::new(unary::<Float64Type, _, Float64Type>(array.as_primitive(), |value| {
            if value.is_nan() { f64::NAN } else { value + 0.0 }
        })),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let intervals = array.as_primitive::<IntervalMonthDayNanoType>();
            Arc::new(unary::<_, _, IntervalMonthDayNanoType>(intervals, normalise_interval))
        }
        DataType::List(field) => {
            let list: &ListArray = array.as_list();
            let values = normalise(list.values());
            Arc::new(ListArray::new(field.clone(), list.offsets().clone(), values, list.nulls().cloned()))
        }
        DataType::LargeList(field) => {
            let list: &LargeListArray = array.as_list();
            let values = normalise(list.values());
            Arc::new(LargeListArray::new(field.clone(), list.offsets().clone(), values, list.nulls().cloned()))
        }
        DataType::FixedSizeList(field, size) => {
            let list = array.as_fixed_size_list();
            let values = normalise(list.values());
            Arc::new(FixedSizeListArray::new(field.clone(), *size, values, list.nulls().cloned()))
        }
        DataType::Struct(fields) => {
            let record = array.as_struct();
            let columns = record.columns().iter().map(normalise).collect();
            Arc::new(StructArray::new(fields.clone(), columns, record.nulls().cloned()))
        }
        _ => array.clone(),
    }
}

/// Whole days first, the rest as time, both of one sign; months only where the days would not fit.
fn normalise_interval(interval: IntervalMonthDayNano) -> IntervalMonthDayNano {
    const DAY_NANOS: i128 = 86_400_000_000_000;
    let days = i128::from(interval.months) * 30 + i128::from(interval.days);
    let total = days * DAY_NANOS + i128::from(interval.nanoseconds);
    let (days, nanoseconds) = (total / DAY_NANOS, total % DAY_NANOS);
    let (months, days) = if i32::try_from(days).is_ok() { (0, days) } else { (days / 30, days % 30) };
    // Months: no more than those given and 292 years of time; days: checked or below 30; time: below a day.
    IntervalMonthDayNano::new(
        i32::try_from(months).unwrap_or(if months < 0 { i32::MIN } else { i32::MAX }),
        days as i32,
        nanoseconds as i64,
    )
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Float64Array, Int64Array, IntervalMonthDayNanoArray, StringArray};

    use super::*;

    fn encode(columns: &[ArrayRef]) -> Keys {
        let types: Vec<DataType> = columns.iter().map(|column| column.data_type().clone()).collect();
        KeyEncoder::new(&types).unwrap().encode(columns).unwrap()
    }

    #[test]
    fn equal_floats_are_one_key() {
        let negative_nan = f64::from_bits(f64::NAN.to_bits() | (1 << 63) | 5);
        let keys = encode(&[Arc::new(Float64Array::from(vec![0.0, -0.0, f64::NAN, negative_nan, 1.0]))]);
        assert_eq!(keys.row(0), keys.row(1));
        assert_eq!(keys.row(2), keys.row(3));
        assert!(keys.row(4) < keys.row(2), "NaN is the greatest number");
    }

    #[test]
    fn equal_intervals_are_one_key() {
        let day = 86_400_000_000_000;
        let keys = encode(&[Arc::new(IntervalMonthDayNanoArray::from(vec![
            IntervalMonthDayNano::new(1, 0, 0),
            IntervalMonthDayNano::new(0, 30, 0),
            IntervalMonthDayNano::new(0, 29, day),
            IntervalMonthDayNano::new(0, 1, -day),
            IntervalMonthDayNano::new(0, 0, 0),
            IntervalMonthDayNano::new(0, -1, 1),
        ]))]);
        assert_eq!(keys.row(0), keys.row(1));
        assert_eq!(keys.row(0), keys.row(2));
        assert_eq!(keys.row(3), keys.row(4));
        assert!(keys.row(5) < keys.row(4));
    }

    #[test]
    fn floats_inside_arrays_are_normalised() {
        let mut builder = datafusion::arrow::array::ListBuilder::new(datafusion::arrow::array::Float64Builder::new());
        builder.append_value([Some(0.0), None]);
        builder.append_value([Some(-0.0), None]);
        let keys = encode(&[Arc::new(builder.finish())]);
        assert_eq!(keys.row(0), keys.row(1));
    }

    /// These bytes are in databases: when this test fails, the storage format has changed.
    #[test]
    fn golden_bytes() {
        let keys = encode(&[
            Arc::new(Int64Array::from(vec![Some(1), None])),
            Arc::new(StringArray::from(vec![Some("ab"), Some("")])),
        ]);
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(hex(keys.row(0)), "01800000000000000102616200000000000002");
        assert_eq!(hex(keys.row(1)), "00000000000000000001");
        assert_eq!(partition_of(b""), 194);
    }

    #[test]
    fn keys_without_columns_are_counted() {
        let keys = KeyEncoder::new(&[]).unwrap().encode_rows(&[], 2).unwrap();
        assert_eq!((keys.len(), keys.row(1)), (2, &b""[..]));
    }
}
