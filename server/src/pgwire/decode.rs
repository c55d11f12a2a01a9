//! Parameters in text or binary format → values.

use std::sync::Arc;

use bytes::Buf;
use datafusion::arrow::array::{ArrayRef, ListArray};
use datafusion::arrow::buffer::{OffsetBuffer, ScalarBuffer};
use datafusion::arrow::datatypes::{DataType, Field, IntervalMonthDayNano};
use datafusion::common::ScalarValue;
use plan::SqlState;

use super::binary::{EPOCH_DAYS, EPOCH_MICROS, NUMERIC_NEGATIVE};
use super::encode::TEXT;
use super::text::TextStyle;
use super::types::{self, PG_TYPE, oid};
use crate::error::{Result, ServerError};
use crate::session::input::{ColumnInput, invalid_encoding, number};

/// Arrow's type for a type that the client declares; none where it leaves that to the server.
pub fn declared_type(declared: u32) -> Result<Option<DataType>> {
    if declared == 0 || declared == oid::UNKNOWN {
        return Ok(None);
    }
    match types::data_type_of(declared) {
        Some(data_type) => Ok(Some(data_type)),
        None => Err(ServerError::unsupported(format!("a parameter of the type with OID {declared}"))),
    }
}

/// A parameter's value, of its Arrow type.
pub fn parameter(
    value: Option<&[u8]>,
    format: i16,
    data_type: &DataType,
    type_oid: u32,
    style: &TextStyle,
) -> Result<ScalarValue> {
    let Some(bytes) = value else {
        return Ok(ScalarValue::try_from(data_type)?);
    };
    if format == TEXT {
        return text(bytes, data_type, type_oid, style);
    }
    let read = binary(bytes, data_type, type_oid)?;
    if read.data_type() == *data_type { Ok(read) } else { Ok(read.cast_to(data_type)?) }
}

/// From text.
fn text(bytes: &[u8], data_type: &DataType, type_oid: u32, style: &TextStyle) -> Result<ScalarValue> {
    // The commonest types without a builder.
    match data_type {
        DataType::Int32 => {
            if let Some(Ok(value)) = number::parse_i64(bytes).map(i32::try_from) {
                return Ok(ScalarValue::Int32(Some(value)));
            }
        }
        DataType::Int64 => {
            if let Some(value) = number::parse_i64(bytes) {
                return Ok(ScalarValue::Int64(Some(value)));
            }
        }
        DataType::Utf8 if type_oid == oid::TEXT => return Ok(ScalarValue::Utf8(Some(utf8(bytes)?.to_owned()))),
        DataType::Null => return Ok(ScalarValue::Utf8(Some(utf8(bytes)?.to_owned()))),
        _ => {}
    }
    let mut field = Field::new("parameter", data_type.clone(), true);
    if matches!(data_type, DataType::Utf8 | DataType::List(_)) && !matches!(type_oid, oid::VARCHAR | oid::BPCHAR) {
        field = field.with_metadata([(PG_TYPE.to_owned(), types::name_of(type_oid))].into());
    }
    let mut input = ColumnInput::new(&Arc::new(field), 1, style.time_zone)?;
    input.append(bytes)?;
    Ok(ScalarValue::try_from_array(&input.finish()?, 0)?)
}

/// Text that is UTF-8.
fn utf8(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|error| invalid_encoding(bytes, error))
}

/// The error for bytes that are too many or too few for their type.
fn wrong_size(type_oid: u32) -> ServerError {
    ServerError::new(
        SqlState("22P03"),
        format!("incorrect binary data format for a parameter of type {}", types::name_of(type_oid)),
    )
}

/// Exactly `N` bytes.
fn exactly<const N: usize>(bytes: &[u8], type_oid: u32) -> Result<[u8; N]> {
    bytes.try_into().map_err(|_| wrong_size(type_oid))
}

/// From binary, by the type's OID.
fn binary(bytes: &[u8], data_type: &DataType, type_oid: u32) -> Result<ScalarValue> {
    let micros = |bytes: &[u8]| -> Result<i64> {
        let micros = i64::from_be_bytes(exactly(bytes, type_oid)?);
        Ok(if matches!(micros, i64::MAX | i64::MIN) { micros } else { micros.wrapping_add(EPOCH_MICROS) })
    };
    Ok(match type_oid {
        oid::BOOL => ScalarValue::Boolean(Some(exactly::<1>(bytes, type_oid)?[0] != 0)),
        oid::INT2 => ScalarValue::Int16(Some(i16::from_be_bytes(exactly(bytes, type_oid)?))),
        oid::INT4 => ScalarValue::Int32(Some(i32::from_be_bytes(exactly(bytes, type_oid)?))),
        oid::INT8 => ScalarValue::Int64(Some(i64::from_be_bytes(exactly(bytes, type_oid)?))),
        oid::OID | oid::REGCLASS | oid::REGTYPE | oid::REGPROC => {
            ScalarValue::Int64(Some(i64::from(u32::from_be_bytes(exactly(bytes, type_oid)?))))
        }
        oid::FLOAT4 => ScalarValue::Float32(Some(f32::from_be_bytes(exactly(bytes, type_oid)?))),
        oid::FLOAT8 => ScalarValue::Float64(Some(f64::from_be_bytes(exactly(bytes, type_oid)?))),
        oid::NUMERIC => numeric(bytes, data_type)?,
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME | oid::JSON | oid::CHAR => {
            ScalarValue::Utf8(Some(utf8(bytes)?.to_owned()))
        }
        oid::JSONB => match bytes {
            [1, json @ ..] => ScalarValue::Utf8(Some(utf8(json)?.to_owned())),
            _ => return Err(wrong_size(type_oid)),
        },
        oid::UUID => {
            ScalarValue::Utf8(Some(uuid::Uuid::from_bytes(exactly(bytes, type_oid)?).hyphenated().to_string()))
        }
        oid::BYTEA => ScalarValue::Binary(Some(bytes.to_vec())),
        oid::DATE => {
            let days = i32::from_be_bytes(exactly(bytes, type_oid)?);
            let infinite = matches!(days, i32::MAX | i32::MIN);
            ScalarValue::Date32(Some(if infinite { days } else { days.wrapping_add(EPOCH_DAYS) }))
        }
        oid::TIME => ScalarValue::Time64Microsecond(Some(i64::from_be_bytes(exactly(bytes, type_oid)?))),
        oid::TIMESTAMP => ScalarValue::TimestampMicrosecond(Some(micros(bytes)?), None),
        oid::TIMESTAMPTZ => ScalarValue::TimestampMicrosecond(Some(micros(bytes)?), Some("UTC".into())),
        oid::INTERVAL => {
            let bytes = exactly::<16>(bytes, type_oid)?;
            let mut rest = &bytes[..];
            let (micros, days, months) = (rest.get_i64(), rest.get_i32(), rest.get_i32());
            let nanos = micros.checked_mul(1000).ok_or_else(|| wrong_size(type_oid))?;
            ScalarValue::IntervalMonthDayNano(Some(IntervalMonthDayNano::new(months, days, nanos)))
        }
        _ => match (types::element_of(type_oid), data_type) {
            (Some(element), DataType::List(item)) => array(bytes, item.data_type(), element, type_oid)?,
            _ => return Err(ServerError::unsupported(format!("binary input of type {}", types::name_of(type_oid)))),
        },
    })
}

/// A numeric: its groups of four digits, written as text and read as such.
fn numeric(bytes: &[u8], data_type: &DataType) -> Result<ScalarValue> {
    const NAN: u16 = 0xc000;
    let mut rest = bytes;
    if rest.len() < 8 {
        return Err(wrong_size(oid::NUMERIC));
    }
    let (groups, weight, sign, _) = (rest.get_u16(), rest.get_i16(), rest.get_u16(), rest.get_u16());
    if sign >= NAN {
        return Err(ServerError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "numeric NaN and infinity are not supported",
        ));
    }
    if rest.len() != usize::from(groups) * 2 {
        return Err(wrong_size(oid::NUMERIC));
    }
    let mut digits = String::from(if sign == NUMERIC_NEGATIVE { "-" } else { "" });
    for _ in 0..groups {
        digits.push_str(&format!("{:04}", rest.get_u16()));
    }
    if groups == 0 {
        digits.push('0');
    }
    let exponent = (i32::from(weight) + 1 - i32::from(groups)) * 4;
    let text = format!("{digits}e{}", if groups == 0 { 0 } else { exponent });
    let (precision, scale) = match data_type {
        DataType::Decimal128(precision, scale) => (*precision, *scale),
        _ => (38, 16),
    };
    let value = number::parse_decimal(text.as_bytes(), precision, scale)?;
    Ok(ScalarValue::Decimal128(Some(value), precision, scale))
}

/// An array of one dimension.
fn array(bytes: &[u8], item: &DataType, element: u32, type_oid: u32) -> Result<ScalarValue> {
    let mut rest = bytes;
    if rest.len() < 12 {
        return Err(wrong_size(type_oid));
    }
    let (dimensions, _, _) = (rest.get_i32(), rest.get_i32(), rest.get_u32());
    let mut values = Vec::new();
    match dimensions {
        0 => {}
        1 => {
            if rest.len() < 8 {
                return Err(wrong_size(type_oid));
            }
            let (count, _) = (rest.get_i32(), rest.get_i32());
            for _ in 0..count {
                values.push(array_item(&mut rest, item, element, type_oid)?);
            }
        }
        _ => return Err(ServerError::unsupported("binary input of arrays with several dimensions")),
    }
    let field = Arc::new(Field::new("item", item.clone(), true));
    let count = i32::try_from(values.len()).map_err(|_| wrong_size(type_oid))?;
    let items: ArrayRef = if values.is_empty() {
        datafusion::arrow::array::new_empty_array(item)
    } else {
        ScalarValue::iter_to_array(values)?
    };
    let offsets = OffsetBuffer::new(ScalarBuffer::from(vec![0, count]));
    Ok(ScalarValue::List(Arc::new(ListArray::try_new(field, offsets, items, None)?)))
}

/// The next element of an array.
fn array_item(rest: &mut &[u8], item: &DataType, element: u32, type_oid: u32) -> Result<ScalarValue> {
    if rest.len() < 4 {
        return Err(wrong_size(type_oid));
    }
    let length = rest.get_i32();
    let Ok(length) = usize::try_from(length) else {
        return Ok(ScalarValue::try_from(item)?);
    };
    if rest.len() < length {
        return Err(wrong_size(type_oid));
    }
    let (value, tail) = rest.split_at(length);
    *rest = tail;
    binary(value, item, element)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;

    #[test]
    fn binary_numerics_come_back() {
        for text in ["12345.678", "0", "-0.0001", "10000", "99999999.99"] {
            let mut bytes = BytesMut::new();
            super::super::binary::numeric(text.as_bytes(), &mut bytes);
            let value = parameter(Some(&bytes), 1, &DataType::Decimal128(20, 4), oid::NUMERIC, &TextStyle::default());
            let expected = number::parse_decimal(text.as_bytes(), 20, 4).unwrap();
            assert_eq!(value.unwrap(), ScalarValue::Decimal128(Some(expected), 20, 4), "{text}");
        }
    }

    #[test]
    fn text_and_binary_of_the_commonest_types() {
        let style = TextStyle::default();
        let read = |bytes: &[u8], format, data_type: DataType, oid| {
            parameter(Some(bytes), format, &data_type, oid, &style).unwrap()
        };
        assert_eq!(read(b"7", 0, DataType::Int32, oid::INT4), ScalarValue::Int32(Some(7)));
        assert_eq!(read(&[0, 0, 0, 7], 1, DataType::Int32, oid::INT4), ScalarValue::Int32(Some(7)));
        assert_eq!(read(&[0, 0, 0, 7], 1, DataType::Int64, oid::INT4), ScalarValue::Int64(Some(7)));
        let list = types::data_type_of(1007).unwrap();
        let bytes = [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 9];
        assert_eq!(read(&bytes, 1, list.clone(), 1007), read(b"{9}", 0, list, 1007));
        assert!(parameter(Some(&[1]), 1, &DataType::Int32, oid::INT4, &style).is_err());
        assert_eq!(parameter(None, 1, &DataType::Int32, oid::INT4, &style).unwrap(), ScalarValue::Int32(None));
    }
}
