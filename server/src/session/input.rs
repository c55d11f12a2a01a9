//! Text → values of a column's type, by Postgres's rules: input of COPY and of parameters in text format.
//!
//! A [`ColumnInput`] appends field after field to an Arrow builder of the column's type, without allocating per field.

use std::sync::Arc;

use datafusion::arrow::array::{
    ArrayRef, BinaryBuilder, BooleanBuilder, Date32Builder, Decimal128Builder, Float32Builder, Float64Builder,
    Int16Builder, Int32Builder, Int64Builder, IntervalMonthDayNanoBuilder, ListArray, NullBufferBuilder,
    OffsetBufferBuilder, StringBuilder, Time64MicrosecondBuilder, TimestampMicrosecondBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use plan::SqlState;

use super::timezone::TimeZone;
use crate::error::{Result, ServerError};
use crate::pgwire::types::{self, oid};

mod array;
pub mod datetime;
pub mod number;

/// Limit of a text type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextKind {
    /// No limit.
    Plain,
    /// varchar(n): longer only by spaces, which are cut.
    Varying(usize),
    /// char(n): filled up with spaces.
    Blank(usize),
    /// uuid: any spelling, kept in canonical form.
    Uuid,
    /// json: checked, and kept as it is.
    Json,
    /// jsonb: kept in canonical form.
    Jsonb,
}

/// Builds a column from text.
pub struct ColumnInput {
    field: FieldRef,
    values: Values,
}

/// Builders by type.
enum Values {
    Boolean(BooleanBuilder),
    Int16(Int16Builder),
    Int32(Int32Builder),
    Int64(Int64Builder),
    Float32(Float32Builder),
    Float64(Float64Builder),
    Decimal(Decimal128Builder, u8, i8),
    Text(StringBuilder, TextKind),
    Binary(BinaryBuilder),
    Date(Date32Builder),
    Time(Time64MicrosecondBuilder),
    Timestamp(TimestampMicrosecondBuilder),
    TimestampTz(TimestampMicrosecondBuilder, TimeZone),
    Interval(IntervalMonthDayNanoBuilder),
    List(Box<ColumnInput>, OffsetBufferBuilder<i32>, NullBufferBuilder),
}

impl ColumnInput {
    /// A builder for a column, with room for so many rows. timestamptz without an offset is in the given zone.
    pub fn new(field: &FieldRef, rows: usize, time_zone: TimeZone) -> Result<ColumnInput> {
        let values = match field.data_type() {
            DataType::Boolean => Values::Boolean(BooleanBuilder::with_capacity(rows)),
            DataType::Int16 => Values::Int16(Int16Builder::with_capacity(rows)),
            DataType::Int32 => Values::Int32(Int32Builder::with_capacity(rows)),
            DataType::Int64 => Values::Int64(Int64Builder::with_capacity(rows)),
            DataType::Float32 => Values::Float32(Float32Builder::with_capacity(rows)),
            DataType::Float64 => Values::Float64(Float64Builder::with_capacity(rows)),
            DataType::Decimal128(precision, scale) => {
                let builder = Decimal128Builder::with_capacity(rows).with_precision_and_scale(*precision, *scale)?;
                Values::Decimal(builder, *precision, *scale)
            }
            DataType::Utf8 => Values::Text(StringBuilder::with_capacity(rows, rows * 8), text_kind(field)),
            DataType::Binary => Values::Binary(BinaryBuilder::with_capacity(rows, rows * 8)),
            DataType::Date32 => Values::Date(Date32Builder::with_capacity(rows)),
            DataType::Time64(TimeUnit::Microsecond) => Values::Time(Time64MicrosecondBuilder::with_capacity(rows)),
            DataType::Timestamp(TimeUnit::Microsecond, None) => {
                Values::Timestamp(TimestampMicrosecondBuilder::with_capacity(rows))
            }
            data_type @ DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => Values::TimestampTz(
                TimestampMicrosecondBuilder::with_capacity(rows).with_data_type(data_type.clone()),
                time_zone,
            ),
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                Values::Interval(IntervalMonthDayNanoBuilder::with_capacity(rows))
            }
            DataType::List(item) => {
                let element = types::element_field(field, item);
                let items = Box::new(ColumnInput::new(&element, rows, time_zone)?);
                Values::List(items, OffsetBufferBuilder::new(rows), NullBufferBuilder::new(rows))
            }
            other => return Err(ServerError::unsupported(format!("input of type {other}"))),
        };
        Ok(ColumnInput { field: field.clone(), values })
    }

    /// Appends NULL.
    pub fn append_null(&mut self) {
        match &mut self.values {
            Values::Boolean(builder) => builder.append_null(),
            Values::Int16(builder) => builder.append_null(),
            Values::Int32(builder) => builder.append_null(),
            Values::Int64(builder) => builder.append_null(),
            Values::Float32(builder) => builder.append_null(),
            Values::Float64(builder) => builder.append_null(),
            Values::Decimal(builder, ..) => builder.append_null(),
            Values::Text(builder, _) => builder.append_null(),
            Values::Binary(builder) => builder.append_null(),
            Values::Date(builder) => builder.append_null(),
            Values::Time(builder) => builder.append_null(),
            Values::Timestamp(builder) | Values::TimestampTz(builder, _) => builder.append_null(),
            Values::Interval(builder) => builder.append_null(),
            Values::List(_, offsets, nulls) => {
                offsets.push_length(0);
                nulls.append_null();
            }
        }
    }

    /// Appends the value that a text stands for.
    #[inline]
    pub fn append(&mut self, text: &[u8]) -> Result<()> {
        match &mut self.values {
            Values::Int16(builder) => match number::parse_i64(text).map(i16::try_from) {
                Some(Ok(value)) => builder.append_value(value),
                other => return Err(number::integer_error(other.is_some(), text, "smallint")),
            },
            Values::Int32(builder) => match number::parse_i64(text).map(i32::try_from) {
                Some(Ok(value)) => builder.append_value(value),
                other => return Err(number::integer_error(other.is_some(), text, "integer")),
            },
            Values::Int64(builder) => match number::parse_i64(text) {
                Some(value) => builder.append_value(value),
                None => return Err(number::integer_error(false, text, "bigint")),
            },
            Values::Float64(builder) => builder.append_value(number::parse_f64(text)?),
            Values::Float32(builder) => builder.append_value(number::parse_f32(text)?),
            Values::Text(builder, kind) => append_text(builder, *kind, text)?,
            Values::Timestamp(builder) => builder.append_value(datetime::parse_timestamp(text)?),
            Values::TimestampTz(builder, zone) => builder.append_value(datetime::parse_timestamptz(text, *zone)?),
            Values::Date(builder) => builder.append_value(datetime::parse_date(text)?),
            Values::Time(builder) => builder.append_value(datetime::parse_time(text)?),
            Values::Boolean(builder) => match parse_boolean(text) {
                Some(value) => builder.append_value(value),
                None => return Err(invalid("boolean", text)),
            },
            Values::Decimal(builder, precision, scale) => {
                builder.append_value(number::parse_decimal(text, *precision, *scale)?);
            }
            Values::Binary(builder) => append_bytea(builder, text)?,
            Values::Interval(builder) => {
                let text = std::str::from_utf8(text).map_err(|error| invalid_encoding(text, error))?;
                builder.append_value(planner::parse_interval(text)?);
            }
            Values::List(items, offsets, nulls) => {
                offsets.push_length(array::append(items, text)?);
                nulls.append_non_null();
            }
        }
        Ok(())
    }

    /// The column so far; the builder is empty again.
    pub fn finish(&mut self) -> Result<ArrayRef> {
        Ok(match &mut self.values {
            Values::Boolean(builder) => Arc::new(builder.finish()),
            Values::Int16(builder) => Arc::new(builder.finish()),
            Values::Int32(builder) => Arc::new(builder.finish()),
            Values::Int64(builder) => Arc::new(builder.finish()),
            Values::Float32(builder) => Arc::new(builder.finish()),
            Values::Float64(builder) => Arc::new(builder.finish()),
            Values::Decimal(builder, ..) => Arc::new(builder.finish()),
            Values::Text(builder, _) => Arc::new(builder.finish()),
            Values::Binary(builder) => Arc::new(builder.finish()),
            Values::Date(builder) => Arc::new(builder.finish()),
            Values::Time(builder) => Arc::new(builder.finish()),
            Values::Timestamp(builder) | Values::TimestampTz(builder, _) => Arc::new(builder.finish()),
            Values::Interval(builder) => Arc::new(builder.finish()),
            Values::List(items, offsets, nulls) => {
                let items = items.finish()?;
                let offsets = std::mem::replace(offsets, OffsetBufferBuilder::new(0)).finish();
                let DataType::List(item) = self.field.data_type() else {
                    return Err(ServerError::internal("a list column is no list"));
                };
                Arc::new(ListArray::try_new(item.clone(), offsets, items, nulls.finish())?)
            }
        })
    }
}

/// What a text column's Postgres type asks of its values.
fn text_kind(field: &Field) -> TextKind {
    let wire = types::wire_type(field);
    let length = usize::try_from(wire.modifier - 4).ok();
    match (wire.oid, length) {
        (oid::VARCHAR, Some(length)) => TextKind::Varying(length),
        (oid::BPCHAR, length) => TextKind::Blank(length.unwrap_or(1)),
        (oid::UUID, _) => TextKind::Uuid,
        (oid::JSON, _) => TextKind::Json,
        (oid::JSONB, _) => TextKind::Jsonb,
        _ => TextKind::Plain,
    }
}

/// Appends to a text column.
fn append_text(builder: &mut StringBuilder, kind: TextKind, bytes: &[u8]) -> Result<()> {
    let text = std::str::from_utf8(bytes).map_err(|error| invalid_encoding(bytes, error))?;
    match kind {
        TextKind::Plain => builder.append_value(text),
        TextKind::Varying(length) => builder.append_value(limited(text, length, "character varying")?),
        // Blanks at the end of a char(n) mean nothing; they are put back where it is printed.
        TextKind::Blank(length) => builder.append_value(limited(text, length, "character")?.trim_end_matches(' ')),
        TextKind::Uuid => {
            let plain = text.trim().trim_start_matches('{').trim_end_matches('}');
            let uuid = uuid::Uuid::try_parse(plain).map_err(|_| invalid("uuid", bytes))?;
            builder.append_value(uuid.hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer()));
        }
        TextKind::Json => {
            if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
                return Err(ServerError::new(
                    SqlState::INVALID_TEXT_REPRESENTATION,
                    "invalid input syntax for type json",
                )
                .with_detail(error.to_string()));
            }
            builder.append_value(text);
        }
        TextKind::Jsonb => builder.append_value(planner::canonical_jsonb(text)?),
    }
    Ok(())
}

/// A text of at most so many characters; spaces beyond are cut.
fn limited<'a>(text: &'a str, length: usize, type_name: &str) -> Result<&'a str> {
    if text.len() <= length {
        return Ok(text);
    }
    match text.char_indices().nth(length) {
        None => Ok(text),
        Some((end, _)) if text[end..].bytes().all(|byte| byte == b' ') => Ok(&text[..end]),
        Some(_) => Err(ServerError::new(
            SqlState::STRING_DATA_RIGHT_TRUNCATION,
            format!("value too long for type {type_name}({length})"),
        )),
    }
}

/// Appends bytes written as `\x` and hexadecimal digits, or as text with escapes.
fn append_bytea(builder: &mut BinaryBuilder, text: &[u8]) -> Result<()> {
    let mut bytes = Vec::with_capacity(text.len());
    if let Some(digits) = text.strip_prefix(b"\\x") {
        let mut digits = digits.iter().filter(|byte| !byte.is_ascii_whitespace());
        let value = |digit: &u8| char::from(*digit).to_digit(16).ok_or_else(|| invalid("bytea", text));
        while let Some(high) = digits.next() {
            let Some(low) = digits.next() else {
                return Err(ServerError::new(
                    SqlState::INVALID_TEXT_REPRESENTATION,
                    "invalid hexadecimal data: odd number of digits",
                ));
            };
            bytes.push((value(high)? << 4 | value(low)?) as u8);
        }
    } else {
        let mut rest = text;
        loop {
            match rest {
                [] => break,
                [b'\\', b'\\', tail @ ..] => {
                    bytes.push(b'\\');
                    rest = tail;
                }
                [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..] => {
                    bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                    rest = tail;
                }
                [b'\\', ..] => return Err(invalid("bytea", text)),
                [byte, tail @ ..] => {
                    bytes.push(*byte);
                    rest = tail;
                }
            }
        }
    }
    builder.append_value(bytes);
    Ok(())
}

/// true, false and what Postgres takes for them.
fn parse_boolean(text: &[u8]) -> Option<bool> {
    const TRUE: [&[u8]; 9] = [b"t", b"true", b"1", b"y", b"yes", b"on", b"tr", b"tru", b"ye"];
    const FALSE: [&[u8]; 9] = [b"f", b"false", b"0", b"n", b"no", b"off", b"fa", b"fal", b"fals"];
    let text = text.trim_ascii();
    if TRUE.iter().any(|word| text.eq_ignore_ascii_case(word)) {
        return Some(true);
    }
    (FALSE.iter().any(|word| text.eq_ignore_ascii_case(word)) || text.eq_ignore_ascii_case(b"of")).then_some(false)
}

/// `invalid input syntax for type T: "x"`.
pub fn invalid(type_name: &str, text: &[u8]) -> ServerError {
    ServerError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type {type_name}: \"{}\"", String::from_utf8_lossy(text)),
    )
}

/// The error for bytes that are no UTF-8.
pub fn invalid_encoding(bytes: &[u8], error: std::str::Utf8Error) -> ServerError {
    let start = error.valid_up_to();
    let end = (start + error.error_len().unwrap_or(1)).min(bytes.len());
    let shown: Vec<String> = bytes[start..end].iter().map(|byte| format!("0x{byte:02x}")).collect();
    ServerError::new(
        SqlState::CHARACTER_NOT_IN_REPERTOIRE,
        format!("invalid byte sequence for encoding \"UTF8\": {}", shown.join(" ")),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pgwire::types::PG_TYPE;
    use datafusion::arrow::util::display::array_value_to_string;

    fn field(data_type: DataType, name: &str) -> FieldRef {
        let mut field = Field::new("c", data_type, true);
        if !name.is_empty() {
            field = field.with_metadata([(PG_TYPE.to_owned(), name.to_owned())].into());
        }
        Arc::new(field)
    }

    fn read(field: &FieldRef, text: &str) -> Result<String> {
        let mut input = ColumnInput::new(field, 1, TimeZone::UTC)?;
        input.append(text.as_bytes())?;
        Ok(array_value_to_string(&input.finish()?, 0).unwrap())
    }

    #[test]
    fn text_types_have_limits() {
        let varying = field(DataType::Utf8, "character varying(3)");
        assert_eq!(read(&varying, "äöü").unwrap(), "äöü");
        assert_eq!(read(&varying, "abc  ").unwrap(), "abc");
        assert_eq!(read(&varying, "abcd").unwrap_err().message, "value too long for type character varying(3)");
        assert_eq!(read(&field(DataType::Utf8, "character(3)"), "a ").unwrap(), "a");
        assert_eq!(
            read(&field(DataType::Utf8, "uuid"), "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11").unwrap(),
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"
        );
        assert!(read(&field(DataType::Utf8, "json"), "{").is_err());
    }

    #[test]
    fn numbers_and_booleans() {
        assert_eq!(read(&field(DataType::Int32, ""), " -12 ").unwrap(), "-12");
        assert_eq!(
            read(&field(DataType::Int32, ""), "x").unwrap_err().message,
            "invalid input syntax for type integer: \"x\""
        );
        assert_eq!(
            read(&field(DataType::Int16, ""), "40000").unwrap_err().message,
            "value \"40000\" is out of range for type smallint"
        );
        assert_eq!(read(&field(DataType::Boolean, ""), "Yes").unwrap(), "true");
        assert_eq!(read(&field(DataType::Decimal128(5, 2), ""), "1.005").unwrap(), "1.01");
        assert_eq!(read(&field(DataType::Binary, ""), "\\x0aff").unwrap(), "0aff");
    }

    #[test]
    fn arrays_nest_and_quote() {
        let item = field(DataType::Utf8, "");
        let list = field(DataType::List(item), "text[]");
        assert_eq!(read(&list, "{a,NULL,\"b c\",\"NULL\"}").unwrap(), "[a, , b c, NULL]");
        assert_eq!(read(&list, "{}").unwrap(), "[]");
        assert!(read(&list, "{a").is_err());
    }
}
