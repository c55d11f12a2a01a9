//! Postgres types of Arrow columns: OID, size, modifier.
//!
//! Arrow's type decides, and where several Postgres types share it, the field's metadata `pg_type`, which holds the
//! type's text as `format_type` prints it.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use plan::numeric::{self, Display};

/// Key of the field metadata that carries the Postgres type.
pub const PG_TYPE: &str = "pg_type";

/// OIDs of Postgres's built-in types.
pub mod oid {
    #![allow(missing_docs)]
    pub const BOOL: u32 = 16;
    pub const BYTEA: u32 = 17;
    pub const CHAR: u32 = 18;
    pub const NAME: u32 = 19;
    pub const INT8: u32 = 20;
    pub const INT2: u32 = 21;
    pub const INT4: u32 = 23;
    pub const REGPROC: u32 = 24;
    pub const TEXT: u32 = 25;
    pub const OID: u32 = 26;
    pub const JSON: u32 = 114;
    pub const FLOAT4: u32 = 700;
    pub const FLOAT8: u32 = 701;
    pub const UNKNOWN: u32 = 705;
    pub const BPCHAR: u32 = 1042;
    pub const VARCHAR: u32 = 1043;
    pub const DATE: u32 = 1082;
    pub const TIME: u32 = 1083;
    pub const TIMESTAMP: u32 = 1114;
    pub const TIMESTAMPTZ: u32 = 1184;
    pub const INTERVAL: u32 = 1186;
    pub const NUMERIC: u32 = 1700;
    pub const REGCLASS: u32 = 2205;
    pub const REGTYPE: u32 = 2206;
    pub const RECORD: u32 = 2249;
    pub const UUID: u32 = 2950;
    pub const JSONB: u32 = 3802;
}

/// A column's type as the protocol describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireType {
    /// OID.
    pub oid: u32,
    /// Bytes of a value, -1 where they vary.
    pub size: i16,
    /// Type modifier, -1 for none.
    pub modifier: i32,
}

/// Name, OID, OID of the array of it, bytes of a value: the built-in types.
const TYPES: [(&str, u32, u32, i16); 27] = [
    ("boolean", oid::BOOL, 1000, 1),
    ("bytea", oid::BYTEA, 1001, -1),
    ("\"char\"", oid::CHAR, 1002, 1),
    ("name", oid::NAME, 1003, 64),
    ("bigint", oid::INT8, 1016, 8),
    ("smallint", oid::INT2, 1005, 2),
    ("integer", oid::INT4, 1007, 4),
    ("regproc", oid::REGPROC, 1008, 4),
    ("text", oid::TEXT, 1009, -1),
    ("oid", oid::OID, 1028, 4),
    ("json", oid::JSON, 199, -1),
    ("real", oid::FLOAT4, 1021, 4),
    ("double precision", oid::FLOAT8, 1022, 8),
    ("unknown", oid::UNKNOWN, 1009, -2),
    ("character", oid::BPCHAR, 1014, -1),
    ("character varying", oid::VARCHAR, 1015, -1),
    ("date", oid::DATE, 1182, 4),
    ("time without time zone", oid::TIME, 1183, 8),
    ("timestamp without time zone", oid::TIMESTAMP, 1115, 8),
    ("timestamp with time zone", oid::TIMESTAMPTZ, 1185, 8),
    ("interval", oid::INTERVAL, 1187, 16),
    ("numeric", oid::NUMERIC, 1231, -1),
    ("regclass", oid::REGCLASS, 2210, 4),
    ("regtype", oid::REGTYPE, 2211, 4),
    ("record", oid::RECORD, 2287, -1),
    ("uuid", oid::UUID, 2951, 16),
    ("jsonb", oid::JSONB, 3807, -1),
];

/// Bytes that Postgres adds to lengths and precisions in type modifiers.
const MODIFIER_HEADER: i32 = 4;

/// The type of a column.
pub fn wire_type(field: &Field) -> WireType {
    if let Some(name) = field.metadata().get(PG_TYPE)
        && let Some(found) = from_name(name)
    {
        return found;
    }
    from_arrow(field.data_type())
}

/// The type of a parameter or column of which only Arrow's type is known.
pub fn from_arrow(data_type: &DataType) -> WireType {
    let of = |oid: u32| sized(oid, -1);
    match data_type {
        DataType::Boolean => of(oid::BOOL),
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => of(oid::INT2),
        DataType::Int32 | DataType::UInt16 => of(oid::INT4),
        DataType::Int64 | DataType::UInt32 | DataType::UInt64 | DataType::Duration(_) => of(oid::INT8),
        DataType::Float16 | DataType::Float32 => of(oid::FLOAT4),
        DataType::Float64 => of(oid::FLOAT8),
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => {
            if numeric::display(data_type) != Display::Fixed {
                return of(oid::NUMERIC);
            }
            sized(oid::NUMERIC, (i32::from(*p) << 16 | (i32::from(*s) & 0x7ff)) + MODIFIER_HEADER)
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => {
            of(oid::BYTEA)
        }
        DataType::Date32 | DataType::Date64 => of(oid::DATE),
        DataType::Time32(_) | DataType::Time64(_) => of(oid::TIME),
        DataType::Timestamp(_, None) => of(oid::TIMESTAMP),
        DataType::Timestamp(_, Some(_)) => of(oid::TIMESTAMPTZ),
        DataType::Interval(_) => of(oid::INTERVAL),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => array_of(item),
        DataType::Dictionary(_, value) => from_arrow(value),
        DataType::RunEndEncoded(_, value) => wire_type(value),
        DataType::Struct(_) | DataType::Map(..) | DataType::Union(..) => of(oid::RECORD),
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => of(oid::TEXT),
    }
}

/// The array type over an item. Arrays of arrays have the same type as arrays in Postgres.
fn array_of(item: &Field) -> WireType {
    if matches!(item.data_type(), DataType::List(_) | DataType::LargeList(_) | DataType::FixedSizeList(..)) {
        return wire_type(item);
    }
    let element = wire_type(item);
    let array = TYPES.iter().find(|entry| entry.1 == element.oid).map_or(1009, |entry| entry.2);
    WireType { oid: array, size: -1, modifier: element.modifier }
}

/// The field of an array's elements, with the Postgres type that the array's own says.
pub fn element_field(array: &Field, item: &FieldRef) -> FieldRef {
    match array.metadata().get(PG_TYPE).and_then(|name| name.strip_suffix("[]")) {
        Some(element) if !item.metadata().contains_key(PG_TYPE) => {
            let metadata = [(PG_TYPE.to_owned(), element.to_owned())].into();
            Arc::new(item.as_ref().clone().with_metadata(metadata))
        }
        _ => item.clone(),
    }
}

/// The type that `format_type` would print so.
fn from_name(name: &str) -> Option<WireType> {
    if let Some(element) = name.strip_suffix("[]") {
        let element = from_name(element.trim_end_matches("[]"))?;
        let array = TYPES.iter().find(|entry| entry.1 == element.oid)?.2;
        return Some(WireType { oid: array, size: -1, modifier: element.modifier });
    }
    let (base, arguments) = match name.split_once('(') {
        Some((base, rest)) => (base.trim(), Some(rest.trim_end_matches(')'))),
        None => (name, None),
    };
    let oid = TYPES.iter().find(|entry| entry.0 == base)?.1;
    let mut numbers = arguments.into_iter().flat_map(|text| text.split(',')).map(|word| word.trim().parse::<i32>());
    let modifier = match (oid, numbers.next(), numbers.next()) {
        (oid::NUMERIC, Some(Ok(precision)), scale) => {
            (precision << 16 | (scale.and_then(Result::ok).unwrap_or(0) & 0x7ff)) + MODIFIER_HEADER
        }
        (oid::VARCHAR | oid::BPCHAR, Some(Ok(length)), _) => length + MODIFIER_HEADER,
        (_, Some(Ok(precision)), _) => precision,
        _ => -1,
    };
    Some(sized(oid, modifier))
}

/// A built-in type with its size.
fn sized(oid: u32, modifier: i32) -> WireType {
    let size = TYPES.iter().find(|entry| entry.1 == oid).map_or(-1, |entry| entry.3);
    WireType { oid, size, modifier }
}

/// Arrow's type for a parameter that the client declares, if it is one that we have.
pub fn data_type_of(declared: u32) -> Option<DataType> {
    if let Some(element) = TYPES.iter().find(|entry| entry.2 == declared && entry.1 != oid::UNKNOWN) {
        return Some(DataType::List(Arc::new(Field::new("item", data_type_of(element.1)?, true))));
    }
    Some(match declared {
        oid::BOOL => DataType::Boolean,
        oid::INT2 => DataType::Int16,
        oid::INT4 => DataType::Int32,
        oid::INT8 | oid::OID | oid::REGCLASS | oid::REGPROC | oid::REGTYPE => DataType::Int64,
        oid::FLOAT4 => DataType::Float32,
        oid::FLOAT8 => DataType::Float64,
        oid::NUMERIC => numeric::PLAIN,
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::NAME | oid::CHAR | oid::JSON | oid::JSONB | oid::UUID => {
            DataType::Utf8
        }
        oid::BYTEA => DataType::Binary,
        oid::DATE => DataType::Date32,
        oid::TIME => DataType::Time64(TimeUnit::Microsecond),
        oid::TIMESTAMP => DataType::Timestamp(TimeUnit::Microsecond, None),
        oid::TIMESTAMPTZ => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        oid::INTERVAL => DataType::Interval(IntervalUnit::MonthDayNano),
        _ => return None,
    })
}

/// The element type of a built-in array type.
pub fn element_of(array: u32) -> Option<u32> {
    TYPES.iter().find(|entry| entry.2 == array && entry.1 != oid::UNKNOWN).map(|entry| entry.1)
}

/// The name of a built-in type, for messages.
pub fn name_of(wanted: u32) -> String {
    if let Some(element) = element_of(wanted) {
        return format!("{}[]", name_of(element));
    }
    TYPES.iter().find(|entry| entry.1 == wanted).map_or_else(|| wanted.to_string(), |entry| entry.0.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(data_type: DataType, name: &str) -> WireType {
        wire_type(&Field::new("c", data_type, true).with_metadata([(PG_TYPE.into(), name.into())].into()))
    }

    #[test]
    fn metadata_refines_the_arrow_type() {
        assert_eq!(
            named(DataType::Utf8, "character varying(10)"),
            WireType { oid: oid::VARCHAR, size: -1, modifier: 14 }
        );
        assert_eq!(named(DataType::Utf8, "uuid"), WireType { oid: oid::UUID, size: 16, modifier: -1 });
        assert_eq!(named(numeric::PLAIN, "numeric"), WireType { oid: oid::NUMERIC, size: -1, modifier: -1 });
        assert_eq!(
            from_arrow(&DataType::Decimal128(8, 2)),
            WireType { oid: oid::NUMERIC, size: -1, modifier: (8 << 16 | 2) + 4 }
        );
        assert_eq!(from_arrow(&DataType::List(Arc::new(Field::new("item", DataType::Int32, true)))).oid, 1007);
    }

    #[test]
    fn declared_types_come_back() {
        for declared in [oid::INT4, oid::TEXT, oid::TIMESTAMPTZ, 1007, 1009] {
            let data_type = data_type_of(declared).unwrap();
            assert_eq!(from_arrow(&data_type).oid, declared);
        }
        assert_eq!(data_type_of(oid::UNKNOWN), None);
        assert_eq!(name_of(1007), "integer[]");
    }
}
