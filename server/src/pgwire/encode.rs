//! Rows of record batches → DataRow messages, in text or binary format per column.
//!
//! A batch's columns are downcast once ([`Column`]); rows are then written straight into the connection's output
//! buffer, without an allocation per cell.

use std::sync::Arc;

use bytes::{BufMut, BytesMut};
use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryArray, BooleanArray, Date32Array, Decimal128Array, Decimal256Array, Float32Array,
    Float64Array, Int16Array, Int32Array, Int64Array, IntervalMonthDayNanoArray, ListArray, StringArray,
    StringViewArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use datafusion::arrow::compute::{CastOptions, cast_with_options};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, Decimal128Type, Decimal256Type, Field, Float32Type, Float64Type, Int16Type, Int32Type,
    Int64Type, IntervalMonthDayNanoType, IntervalUnit, Schema, Time64MicrosecondType, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::binary;
use super::text::{self, TextStyle};
use super::types;
use super::types::WireType;
use crate::error::{Result, ServerError};
use plan::numeric::{self, Display};
use planner::text::{float32, float64};

/// Format code of text.
pub const TEXT: i16 = 0;
/// Format code of binary.
pub const BINARY: i16 = 1;

/// A column of a batch, of its Arrow type.
pub enum Column<'a> {
    /// bool.
    Boolean(&'a BooleanArray),
    /// int2.
    Int16(&'a Int16Array),
    /// int4.
    Int32(&'a Int32Array),
    /// int8.
    Int64(&'a Int64Array),
    /// float4.
    Float32(&'a Float32Array),
    /// float8.
    Float64(&'a Float64Array),
    /// numeric: scale, and how much of it is shown.
    Decimal128(&'a Decimal128Array, i8, Display),
    /// numeric of more than 38 digits.
    Decimal256(&'a Decimal256Array, i8, Display),
    /// text and everything that is kept as text, with its OID.
    Utf8(&'a StringArray, u32),
    /// char(n): kept without the blanks at its end, which are put back.
    Blank(&'a StringArray, usize),
    /// text in DataFusion's other form.
    Utf8View(&'a StringViewArray, u32),
    /// bytea.
    Binary(&'a BinaryArray),
    /// date.
    Date(&'a Date32Array),
    /// time.
    Time(&'a Time64MicrosecondArray),
    /// timestamp.
    Timestamp(&'a TimestampMicrosecondArray),
    /// timestamptz.
    TimestampTz(&'a TimestampMicrosecondArray),
    /// interval.
    Interval(&'a IntervalMonthDayNanoArray),
    /// array: the list and its items, with their type.
    List(&'a ListArray, Box<Column<'a>>, WireType),
    /// Nothing but NULL.
    Null,
}

impl<'a> Column<'a> {
    /// A column whose type is one of those to which [`normalised`] leads.
    pub fn new(array: &'a dyn Array, field: &Field) -> Result<Column<'a>> {
        let display = numeric::display(array.data_type());
        Ok(match array.data_type() {
            DataType::Boolean => Column::Boolean(array.as_boolean()),
            DataType::Int16 => Column::Int16(array.as_primitive::<Int16Type>()),
            DataType::Int32 => Column::Int32(array.as_primitive::<Int32Type>()),
            DataType::Int64 => Column::Int64(array.as_primitive::<Int64Type>()),
            DataType::Float32 => Column::Float32(array.as_primitive::<Float32Type>()),
            DataType::Float64 => Column::Float64(array.as_primitive::<Float64Type>()),
            DataType::Decimal128(_, scale) => {
                Column::Decimal128(array.as_primitive::<Decimal128Type>(), *scale, display)
            }
            DataType::Decimal256(_, scale) => {
                Column::Decimal256(array.as_primitive::<Decimal256Type>(), *scale, display)
            }
            DataType::Utf8 => match blank_length(field) {
                Some(length) => Column::Blank(array.as_string(), length),
                None => Column::Utf8(array.as_string(), types::wire_type(field).oid),
            },
            DataType::Utf8View => Column::Utf8View(array.as_string_view(), types::wire_type(field).oid),
            DataType::Binary => Column::Binary(array.as_binary()),
            DataType::Date32 => Column::Date(array.as_primitive::<Date32Type>()),
            DataType::Time64(TimeUnit::Microsecond) => Column::Time(array.as_primitive::<Time64MicrosecondType>()),
            DataType::Timestamp(TimeUnit::Microsecond, None) => {
                Column::Timestamp(array.as_primitive::<TimestampMicrosecondType>())
            }
            DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => {
                Column::TimestampTz(array.as_primitive::<TimestampMicrosecondType>())
            }
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                Column::Interval(array.as_primitive::<IntervalMonthDayNanoType>())
            }
            DataType::List(item) => {
                let list: &ListArray = array.as_list();
                let item = types::element_field(field, item);
                let wire = types::wire_type(&item);
                Column::List(list, Box::new(Column::new(list.values().as_ref(), &item)?), wire)
            }
            DataType::Null => Column::Null,
            other => return Err(ServerError::unsupported(format!("sending a column of type {other}"))),
        })
    }

    /// Whether the value in a row is NULL.
    #[inline]
    pub fn is_null(&self, row: usize) -> bool {
        match self {
            Column::Boolean(array) => array.is_null(row),
            Column::Int16(array) => array.is_null(row),
            Column::Int32(array) => array.is_null(row),
            Column::Int64(array) => array.is_null(row),
            Column::Float32(array) => array.is_null(row),
            Column::Float64(array) => array.is_null(row),
            Column::Decimal128(array, ..) => array.is_null(row),
            Column::Decimal256(array, ..) => array.is_null(row),
            Column::Utf8(array, _) => array.is_null(row),
            Column::Blank(array, _) => array.is_null(row),
            Column::Utf8View(array, _) => array.is_null(row),
            Column::Binary(array) => array.is_null(row),
            Column::Date(array) => array.is_null(row),
            Column::Time(array) => array.is_null(row),
            Column::Timestamp(array) | Column::TimestampTz(array) => array.is_null(row),
            Column::Interval(array) => array.is_null(row),
            Column::List(array, ..) => array.is_null(row),
            Column::Null => true,
        }
    }

    /// Writes the text form of a value that is not NULL.
    #[inline]
    pub fn text(&self, row: usize, style: &TextStyle, out: &mut BytesMut) {
        match self {
            Column::Boolean(array) => text::boolean(array.value(row), out),
            Column::Int16(array) => text::integer(array.value(row), out),
            Column::Int32(array) => text::integer(array.value(row), out),
            Column::Int64(array) => text::integer(array.value(row), out),
            Column::Float32(array) => float32(array.value(row), style.extra_float_digits, out),
            Column::Float64(array) => float64(array.value(row), style.extra_float_digits, out),
            Column::Decimal128(array, scale, display) => {
                // Writing into memory does not fail.
                let _ = numeric::write128(array.value(row), *scale, *display, out);
            }
            Column::Decimal256(array, scale, display) => {
                let _ = numeric::write256(array.value(row), *scale, *display, out);
            }
            Column::Utf8(array, _) => out.extend_from_slice(array.value(row).as_bytes()),
            Column::Blank(array, length) => padded(array.value(row), *length, out),
            Column::Utf8View(array, _) => out.extend_from_slice(array.value(row).as_bytes()),
            Column::Binary(array) => text::bytea(array.value(row), style.bytea_hex, out),
            Column::Date(array) => text::date(array.value(row), out),
            Column::Time(array) => text::time(array.value(row), out),
            Column::Timestamp(array) => text::timestamp(array.value(row), out),
            Column::TimestampTz(array) => text::timestamptz(array.value(row), style.time_zone, out),
            Column::Interval(array) => {
                let value = array.value(row);
                text::interval(value.months, value.days, value.nanoseconds, style.interval, out);
            }
            Column::List(array, items, _) => list_text(array, items, row, style, out),
            Column::Null => {}
        }
    }

    /// Writes the binary form of a value that is not NULL.
    #[inline]
    pub fn binary(&self, row: usize, style: &TextStyle, out: &mut BytesMut) {
        match self {
            Column::Boolean(array) => out.put_u8(u8::from(array.value(row))),
            Column::Int16(array) => out.put_i16(array.value(row)),
            Column::Int32(array) => out.put_i32(array.value(row)),
            Column::Int64(array) => out.put_i64(array.value(row)),
            Column::Float32(array) => out.put_f32(array.value(row)),
            Column::Float64(array) => out.put_f64(array.value(row)),
            Column::Decimal128(array, scale, display) => {
                let mut digits = BytesMut::with_capacity(48);
                let _ = numeric::write128(array.value(row), *scale, *display, &mut digits);
                binary::numeric(&digits, out);
            }
            Column::Decimal256(array, scale, display) => {
                let mut digits = BytesMut::with_capacity(88);
                let _ = numeric::write256(array.value(row), *scale, *display, &mut digits);
                binary::numeric(&digits, out);
            }
            Column::Utf8(array, oid) => binary::text(array.value(row), *oid, out),
            Column::Blank(array, length) => padded(array.value(row), *length, out),
            Column::Utf8View(array, oid) => binary::text(array.value(row), *oid, out),
            Column::Binary(array) => out.extend_from_slice(array.value(row)),
            Column::Date(array) => binary::date(array.value(row), out),
            Column::Time(array) => out.put_i64(array.value(row)),
            Column::Timestamp(array) | Column::TimestampTz(array) => binary::timestamp(array.value(row), out),
            Column::Interval(array) => {
                let value = array.value(row);
                binary::interval(value.months, value.days, value.nanoseconds, out);
            }
            Column::List(array, items, wire) => list_binary(array, items, wire, row, style, out),
            Column::Null => {}
        }
    }
}

/// An array's text: `{1,NULL,"a b"}`.
fn list_text(list: &ListArray, items: &Column<'_>, row: usize, style: &TextStyle, out: &mut BytesMut) {
    let offsets = list.value_offsets();
    let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
    let plain =
        matches!(items, Column::Int16(_) | Column::Int32(_) | Column::Int64(_) | Column::Boolean(_) | Column::List(..));
    let mut element = BytesMut::new();
    out.extend_from_slice(b"{");
    for item in start..end {
        if item > start {
            out.extend_from_slice(b",");
        }
        if items.is_null(item) {
            out.extend_from_slice(b"NULL");
        } else if plain {
            items.text(item, style, out);
        } else {
            element.clear();
            items.text(item, style, &mut element);
            text::array_element(&element, out);
        }
    }
    out.extend_from_slice(b"}");
}

/// An array's binary form: dimensions, whether there are NULLs, the element type, bounds, elements.
fn list_binary(
    list: &ListArray,
    items: &Column<'_>,
    wire: &WireType,
    row: usize,
    style: &TextStyle,
    out: &mut BytesMut,
) {
    let offsets = list.value_offsets();
    let (start, end) = (offsets[row] as usize, offsets[row + 1] as usize);
    out.put_i32(i32::from(end > start));
    out.put_i32(i32::from((start..end).any(|item| items.is_null(item))));
    out.put_u32(wire.oid);
    if end == start {
        return;
    }
    out.put_i32((end - start) as i32);
    out.put_i32(1);
    for item in start..end {
        value(items, item, BINARY, style, out);
    }
}

/// Writes a length and a value, or the length -1 for NULL.
#[inline]
fn value(column: &Column<'_>, row: usize, format: i16, style: &TextStyle, out: &mut BytesMut) {
    if column.is_null(row) {
        out.extend_from_slice(&(-1_i32).to_be_bytes());
        return;
    }
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    if format == BINARY {
        column.binary(row, style, out);
    } else {
        column.text(row, style, out);
    }
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Writes DataRow messages for the rows from `start` on, until all are written or `out` holds `bytes_max`. Returns the row
/// at which to go on.
pub fn data_rows(
    columns: &[Column<'_>],
    formats: &Formats,
    style: &TextStyle,
    rows: std::ops::Range<usize>,
    bytes_max: usize,
    out: &mut BytesMut,
) -> usize {
    for row in rows.clone() {
        if out.len() >= bytes_max {
            return row;
        }
        let start = out.len();
        out.extend_from_slice(b"D\0\0\0\0");
        out.extend_from_slice(&(columns.len() as u16).to_be_bytes());
        for (index, column) in columns.iter().enumerate() {
            value(column, row, formats.of(index), style, out);
        }
        let length = (out.len() - start - 1) as u32;
        out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    }
    rows.end
}

/// Format codes of a result's columns: none (all text), one for all, or one each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Formats(pub Vec<i16>);

impl Formats {
    /// The format of a column.
    #[inline]
    pub fn of(&self, column: usize) -> i16 {
        match self.0.as_slice() {
            [] => TEXT,
            [all] => *all,
            each => each.get(column).copied().unwrap_or(TEXT),
        }
    }
}

/// The batch with every column in a form that [`Column`] knows: DataFusion's other representations of the same
/// values are cast.
pub fn normalised(batch: &RecordBatch) -> Result<RecordBatch> {
    if batch.columns().iter().all(|column| target(column.data_type()).is_none()) {
        return Ok(batch.clone());
    }
    let schema = batch.schema();
    let mut fields = Vec::with_capacity(batch.num_columns());
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(batch.num_columns());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        let Some(target) = target(column.data_type()) else {
            fields.push(field.clone());
            columns.push(column.clone());
            continue;
        };
        let options = CastOptions { safe: false, ..CastOptions::default() };
        let column = match column.data_type() {
            DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) => displayed(column.as_ref())?,
            _ => cast_with_options(column, &target, &options)?,
        };
        fields.push(Arc::new(field.as_ref().clone().with_data_type(target)));
        columns.push(column);
    }
    let options = datafusion::arrow::record_batch::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
}

/// The type to cast a column to, or none if it can stay as it is.
fn target(data_type: &DataType) -> Option<DataType> {
    let microseconds = TimeUnit::Microsecond;
    match data_type {
        DataType::Int8 | DataType::UInt8 => Some(DataType::Int16),
        DataType::UInt16 => Some(DataType::Int32),
        DataType::UInt32 | DataType::UInt64 | DataType::Duration(_) => Some(DataType::Int64),
        DataType::Float16 => Some(DataType::Float32),
        DataType::Decimal32(p, s) | DataType::Decimal64(p, s) => Some(DataType::Decimal128(*p, *s)),
        DataType::LargeUtf8 | DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) => Some(DataType::Utf8),
        DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => Some(DataType::Binary),
        DataType::Date64 => Some(DataType::Date32),
        DataType::Time32(_) | DataType::Time64(TimeUnit::Nanosecond) => Some(DataType::Time64(microseconds)),
        DataType::Timestamp(unit, zone) if *unit != microseconds => {
            Some(DataType::Timestamp(microseconds, zone.clone()))
        }
        DataType::Interval(unit) if *unit != IntervalUnit::MonthDayNano => {
            Some(DataType::Interval(IntervalUnit::MonthDayNano))
        }
        DataType::Dictionary(_, value) => Some(target(value).unwrap_or_else(|| value.as_ref().clone())),
        DataType::RunEndEncoded(_, value) => {
            Some(target(value.data_type()).unwrap_or_else(|| value.data_type().clone()))
        }
        DataType::List(item) => {
            let inner = target(item.data_type())?;
            Some(DataType::List(Arc::new(item.as_ref().clone().with_data_type(inner))))
        }
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) | DataType::ListView(item) => {
            let inner = target(item.data_type()).unwrap_or_else(|| item.data_type().clone());
            Some(DataType::List(Arc::new(item.as_ref().clone().with_data_type(inner))))
        }
        _ => None,
    }
}

/// Values for which there is no Postgres form yet, as Arrow prints them.
fn displayed(column: &dyn Array) -> Result<ArrayRef> {
    let options = FormatOptions::default();
    let formatter = ArrayFormatter::try_new(column, &options)?;
    let values: StringArray =
        (0..column.len()).map(|row| column.is_valid(row).then(|| formatter.value(row).to_string())).collect();
    Ok(Arc::new(values))
}

/// The columns of a batch that [`normalised`] returned. Their Postgres types are those of the schema that the client was
/// told: batches may have lost the metadata on their way.
pub fn columns<'a>(batch: &'a RecordBatch, schema: &Schema) -> Result<Vec<Column<'a>>> {
    batch.columns().iter().zip(schema.fields()).map(|(column, field)| Column::new(column.as_ref(), field)).collect()
}

/// Whether a format code is one that exists.
pub fn check_format(code: i16) -> Result<()> {
    if matches!(code, TEXT | BINARY) {
        return Ok(());
    }
    Err(ServerError::new(plan::SqlState::INVALID_PARAMETER_VALUE, format!("unsupported format code: {code}")))
}

/// The length of a char(n).
fn blank_length(field: &Field) -> Option<usize> {
    let name = field.metadata().get(types::PG_TYPE)?;
    name.strip_prefix("character(")?.strip_suffix(')')?.parse().ok()
}

/// A char(n) with the blanks at its end.
fn padded(text: &str, length: usize, out: &mut BytesMut) {
    out.extend_from_slice(text.as_bytes());
    let missing = length.saturating_sub(text.chars().count());
    out.extend(std::iter::repeat_n(b' ', missing));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pgwire::types::oid;
    use datafusion::arrow::array::{Int32Builder, ListBuilder, UInt64Array};

    fn row(field: Field, array: ArrayRef, format: i16) -> Vec<Option<Vec<u8>>> {
        let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap();
        let batch = normalised(&batch).unwrap();
        let columns = columns(&batch, batch.schema_ref()).unwrap();
        let mut out = BytesMut::new();
        let style = TextStyle::default();
        let end = data_rows(&columns, &Formats(vec![format]), &style, 0..batch.num_rows(), usize::MAX, &mut out);
        assert_eq!(end, batch.num_rows());
        let mut values = Vec::new();
        let mut rest = &out[..];
        while !rest.is_empty() {
            assert_eq!(rest[0], b'D');
            let length = u32::from_be_bytes(rest[1..5].try_into().unwrap()) as usize;
            let size = i32::from_be_bytes(rest[7..11].try_into().unwrap());
            values.push((size >= 0).then(|| rest[11..1 + length].to_vec()));
            rest = &rest[1 + length..];
        }
        values
    }

    #[test]
    fn rows_in_text_and_binary() {
        let field = Field::new("a", DataType::Int32, true);
        let array: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None]));
        assert_eq!(row(field.clone(), array.clone(), TEXT), vec![Some(b"1".to_vec()), None]);
        assert_eq!(row(field, array, BINARY), vec![Some(vec![0, 0, 0, 1]), None]);

        let field = Field::new("t", DataType::Timestamp(TimeUnit::Microsecond, None), true);
        let array: ArrayRef = Arc::new(TimestampMicrosecondArray::from(vec![946_771_200_000_000]));
        assert_eq!(row(field, array, BINARY), vec![Some((86_400_i64 * 1_000_000).to_be_bytes().to_vec())]);
    }

    #[test]
    fn other_representations_are_cast() {
        let array: ArrayRef = Arc::new(UInt64Array::from(vec![7]));
        assert_eq!(row(Field::new("n", DataType::UInt64, true), array, TEXT), vec![Some(b"7".to_vec())]);
    }

    #[test]
    fn arrays() {
        let mut builder = ListBuilder::new(Int32Builder::new());
        builder.append_value([Some(1), None, Some(3)]);
        let array: ArrayRef = Arc::new(builder.finish());
        let field = Field::new("l", array.data_type().clone(), true);
        assert_eq!(row(field.clone(), array.clone(), TEXT), vec![Some(b"{1,NULL,3}".to_vec())]);
        let binary = row(field, array, BINARY)[0].clone().unwrap();
        assert_eq!(binary[..12], [0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 23]);
        assert_eq!(oid::INT4, 23);
    }
}
