//! Types of columns as `pg_type` numbers them, and as `format_type` prints them.

use datafusion::arrow::datatypes::{DataType, Field};
use plan::numeric::{self, Display};

/// A type's number and modifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PgType {
    /// `pg_type.oid`.
    pub oid: i32,
    /// `pg_attribute.atttypmod`: -1 if there is none.
    pub modifier: i32,
}

/// Names as `format_type` prints them, with the numbers of the type and of its array.
const TYPES: [(&str, i32, i32); 33] = [
    ("boolean", 16, 1000),
    ("bytea", 17, 1001),
    ("\"char\"", 18, 1002),
    ("name", 19, 1003),
    ("bigint", 20, 1016),
    ("smallint", 21, 1005),
    ("int2vector", 22, 1006),
    ("integer", 23, 1007),
    ("regproc", 24, 1008),
    ("text", 25, 1009),
    ("oid", 26, 1028),
    ("oidvector", 30, 1013),
    ("json", 114, 199),
    ("xml", 142, 143),
    ("pg_node_tree", 194, 0),
    ("real", 700, 1021),
    ("double precision", 701, 1022),
    ("character", 1042, 1014),
    ("character varying", 1043, 1015),
    ("date", 1082, 1182),
    ("time without time zone", 1083, 1183),
    ("timestamp without time zone", 1114, 1115),
    ("timestamp with time zone", 1184, 1185),
    ("interval", 1186, 1187),
    ("numeric", 1700, 1231),
    ("regprocedure", 2202, 2207),
    ("regclass", 2205, 2210),
    ("regtype", 2206, 2211),
    ("record", 2249, 2287),
    ("void", 2278, 0),
    ("uuid", 2950, 2951),
    ("jsonb", 3802, 3807),
    ("regnamespace", 4089, 4090),
];

/// Short names that users write, with the names of [`TYPES`].
const SHORT_NAMES: [(&str, &str); 14] = [
    ("bool", "boolean"),
    ("int8", "bigint"),
    ("int2", "smallint"),
    ("int4", "integer"),
    ("int", "integer"),
    ("float4", "real"),
    ("float8", "double precision"),
    ("bpchar", "character"),
    ("varchar", "character varying"),
    ("time", "time without time zone"),
    ("timestamp", "timestamp without time zone"),
    ("timestamptz", "timestamp with time zone"),
    ("decimal", "numeric"),
    ("char", "character"),
];

/// The type of a column.
pub fn of_field(field: &Field) -> PgType {
    match field.metadata().get("pg_type") {
        Some(text) => of_text(text).unwrap_or_else(|| of_arrow(field.data_type())),
        None => match (field.data_type(), field.metadata().get("pg.oid_alias")) {
            (DataType::Int32, Some(alias)) => of_text(alias).unwrap_or(PgType { oid: 26, modifier: -1 }),
            (DataType::List(item), _) => PgType { oid: array_of(of_field(item).oid), modifier: -1 },
            (data_type, _) => of_arrow(data_type),
        },
    }
}

/// The type that a text like `character varying(10)` or `int4` names.
pub fn of_text(text: &str) -> Option<PgType> {
    let text = text.trim().to_ascii_lowercase();
    if let Some(item) = text.strip_suffix("[]") {
        let PgType { oid, modifier } = of_text(item)?;
        return Some(PgType { oid: array_of(oid), modifier });
    }
    // As in "timestamp(3) with time zone", a modifier may stand within the name.
    let (name, arguments) = match text.split_once('(') {
        Some((before, rest)) => {
            let (arguments, after) = rest.split_once(')')?;
            (format!("{} {}", before.trim(), after.trim()).trim().to_owned(), Some(arguments))
        }
        None => (text.clone(), None),
    };
    let name = SHORT_NAMES.iter().find(|(short, _)| *short == name).map_or(name.as_str(), |(_, long)| *long);
    let oid = TYPES.iter().find(|(known, _, _)| *known == name)?.1;
    let numbers: Vec<i32> =
        arguments.unwrap_or_default().split(',').filter_map(|number| number.trim().parse().ok()).collect();
    let modifier = match (oid, numbers.as_slice()) {
        (1042 | 1043, [length]) => length + 4,
        (1083 | 1114 | 1184, [precision]) => *precision,
        (1700, [precision]) => (precision << 16) + 4,
        (1700, [precision, scale]) => ((precision << 16) | (scale & 0x7ff)) + 4,
        _ => -1,
    };
    Some(PgType { oid, modifier })
}

fn of_arrow(data_type: &DataType) -> PgType {
    let oid = match data_type {
        DataType::Boolean => 16,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView | DataType::FixedSizeBinary(_) => 17,
        DataType::Int64 | DataType::UInt32 => 20,
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => 21,
        DataType::Int32 | DataType::UInt16 => 23,
        DataType::Float16 | DataType::Float32 => 700,
        DataType::Float64 => 701,
        DataType::Date32 | DataType::Date64 => 1082,
        DataType::Time32(_) | DataType::Time64(_) => 1083,
        DataType::Timestamp(_, None) => 1114,
        DataType::Timestamp(_, Some(_)) => 1184,
        DataType::Interval(_) | DataType::Duration(_) => 1186,
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale)
            if numeric::display(data_type) == Display::Fixed =>
        {
            let modifier = ((i32::from(*precision) << 16) | (i32::from(*scale) & 0x7ff)) + 4;
            return PgType { oid: 1700, modifier };
        }
        DataType::UInt64 | DataType::Decimal128(..) | DataType::Decimal256(..) => 1700,
        DataType::Struct(_) => 2249,
        DataType::List(item) | DataType::LargeList(item) => array_of(of_field(item).oid),
        _ => 25,
    };
    PgType { oid, modifier: -1 }
}

fn array_of(item: i32) -> i32 {
    TYPES.iter().find(|(_, oid, array)| *oid == item && *array != 0).map_or(1009, |(_, _, array)| *array)
}

/// What `format_type` prints.
pub fn format_type(oid: i32, modifier: Option<i32>) -> String {
    if let Some((_, item, _)) = TYPES.iter().find(|(_, _, array)| *array == oid && oid != 0) {
        return format!("{}[]", format_type(*item, modifier));
    }
    let Some((name, _, _)) = TYPES.iter().find(|(_, known, _)| *known == oid) else { return "???".to_owned() };
    match (oid, modifier) {
        (1042 | 1043, Some(modifier)) if modifier >= 4 => format!("{name}({})", modifier - 4),
        (1083 | 1114 | 1184, Some(precision)) if precision >= 0 => match name.split_once(' ') {
            Some((word, rest)) => format!("{word}({precision}) {rest}"),
            None => (*name).to_owned(),
        },
        (1700, Some(modifier)) if modifier >= 4 => {
            format!("numeric({},{})", (modifier - 4) >> 16, (modifier - 4) & 0x7ff)
        }
        _ => (*name).to_owned(),
    }
}

/// Bytes of a value, -1 if they vary: `pg_attribute.attlen`.
pub fn length(oid: i32) -> i16 {
    match oid {
        16 | 18 => 1,
        21 => 2,
        23 | 24 | 26 | 700 | 1082 | 2202 | 2205 | 2206 | 4089 => 4,
        20 | 701 | 1083 | 1114 | 1184 => 8,
        1186 | 2950 => 16,
        19 => 64,
        _ => -1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_printed_as_they_were_declared() {
        for text in [
            "integer",
            "character varying(10)",
            "character varying",
            "numeric(8,2)",
            "numeric",
            "timestamp with time zone",
            "timestamp(3) with time zone",
            "text[]",
            "jsonb",
        ] {
            let PgType { oid, modifier } = of_text(text).expect(text);
            assert_eq!(format_type(oid, Some(modifier)), text);
        }
        let decimal = of_field(&Field::new("d", DataType::Decimal128(12, 4), true));
        assert_eq!(format_type(decimal.oid, Some(decimal.modifier)), "numeric(12,4)");
    }
}
