//! PostgreSQL's types and Arrow's.
//!
//! A column's type is an Arrow [`Field`]: where Arrow's type says less than PostgreSQL's, the field's metadata says
//! the rest under the key [`PG_TYPE`], as PostgreSQL's format_type prints it.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion::common::Column;
use datafusion::logical_expr::planner::TypePlanner;
use datafusion::logical_expr::{Cast, Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{
    ArrayElemTypeDef, CharacterLength, DataType as SqlType, ExactNumberInfo, TimezoneInfo,
};
use plan::numeric::{self, Display};
use plan::{PlanError, SqlState};

use super::errors::external;
use crate::catalog::nearest;
use crate::parse::fold;

/// The metadata key under which a field carries its PostgreSQL type.
pub const PG_TYPE: &str = "pg_type";

/// timestamp with time zone.
pub(crate) fn timestamptz() -> DataType {
    DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC")))
}

/// timestamp without time zone.
pub(crate) const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

fn plain(data_type: DataType) -> Field {
    Field::new("", data_type, true)
}

fn named(data_type: DataType, pg_type: impl Into<String>) -> Field {
    plain(data_type).with_metadata(HashMap::from([(PG_TYPE.to_string(), pg_type.into())]))
}

/// The field of what is cast to a type. It has a name: where the target has neither a name nor metadata, DataFusion keeps the
/// metadata of what is cast, and a jsonb cast to text would be taken for a jsonb further on.
pub(crate) fn cast_target(sql_type: &SqlType) -> Result<FieldRef, PlanError> {
    let field = field_of(sql_type)?;
    if !field.metadata().is_empty() {
        return Ok(field);
    }
    Ok(Arc::new(field.as_ref().clone().with_name("cast")))
}

/// The field (without a name, nullable) of a type as written.
pub fn field_of(sql_type: &SqlType) -> Result<FieldRef, PlanError> {
    let field = match sql_type {
        SqlType::Boolean | SqlType::Bool => plain(DataType::Boolean),
        SqlType::SmallInt(_) | SqlType::Int2(_) | SqlType::TinyInt(_) => plain(DataType::Int16),
        SqlType::Int(_) | SqlType::Integer(_) | SqlType::Int4(_) | SqlType::MediumInt(_) => plain(DataType::Int32),
        SqlType::BigInt(_) | SqlType::Int8(_) | SqlType::Int64 => plain(DataType::Int64),
        SqlType::Real | SqlType::Float4 => plain(DataType::Float32),
        SqlType::Float8 | SqlType::DoublePrecision | SqlType::Double(_) | SqlType::Float64 => plain(DataType::Float64),
        SqlType::Float(info) => float(info)?,
        SqlType::Numeric(info) | SqlType::Decimal(info) | SqlType::Dec(info) => numeric_field(info)?,
        SqlType::Text | SqlType::String(_) => plain(DataType::Utf8),
        SqlType::Varchar(length)
        | SqlType::CharacterVarying(length)
        | SqlType::CharVarying(length)
        | SqlType::Nvarchar(length) => varchar(length)?,
        SqlType::Char(length) | SqlType::Character(length) => character(length)?,
        SqlType::Bytea => plain(DataType::Binary),
        SqlType::Date => plain(DataType::Date32),
        SqlType::Time(_, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            plain(DataType::Time64(TimeUnit::Microsecond))
        }
        SqlType::Timestamp(precision, TimezoneInfo::None | TimezoneInfo::WithoutTimeZone) => {
            timestamp(TIMESTAMP, "without", *precision)?
        }
        SqlType::Timestamp(precision, _) => timestamp(timestamptz(), "with", *precision)?,
        SqlType::Interval { .. } => plain(DataType::Interval(IntervalUnit::MonthDayNano)),
        SqlType::Uuid => named(DataType::Utf8, "uuid"),
        SqlType::JSON => named(DataType::Utf8, "json"),
        SqlType::JSONB => named(DataType::Utf8, "jsonb"),
        SqlType::Array(ArrayElemTypeDef::SquareBracket(element, _) | ArrayElemTypeDef::AngleBracket(element)) => {
            array(&field_of(element)?)
        }
        SqlType::Custom(name, modifiers) => {
            let words: Vec<String> = name
                .0
                .iter()
                .filter_map(|part| part.as_ident().map(fold))
                .filter(|part| part != "pg_catalog")
                .collect();
            custom(&words.join("."), modifiers)?
        }
        SqlType::Regclass => custom("regclass", &[])?,
        SqlType::Time(_, _) => return Err(PlanError::unsupported("type time with time zone")),
        other => return Err(unknown_type(&other.to_string().to_lowercase())),
    };
    Ok(Arc::new(field))
}

/// An array of elements of a type. Arrays of arrays are, as in PostgreSQL, of the same type.
fn array(element: &FieldRef) -> Field {
    if matches!(element.data_type(), DataType::List(_)) {
        return element.as_ref().clone();
    }
    let item = element.as_ref().clone().with_name("item").with_nullable(true);
    let mut field = plain(DataType::List(Arc::new(item.clone().with_metadata(HashMap::new()))));
    if let Some(pg_type) = item.metadata().get(PG_TYPE) {
        field = field.with_metadata(HashMap::from([(PG_TYPE.to_string(), format!("{pg_type}[]"))]));
    }
    field
}

fn float(info: &ExactNumberInfo) -> Result<Field, PlanError> {
    match info {
        ExactNumberInfo::None => Ok(plain(DataType::Float64)),
        ExactNumberInfo::Precision(1..=24) => Ok(plain(DataType::Float32)),
        ExactNumberInfo::Precision(25..=53) => Ok(plain(DataType::Float64)),
        _ => Err(PlanError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "precision for type float must be at least 1 and at most 53 bits",
        )),
    }
}

fn numeric_field(info: &ExactNumberInfo) -> Result<Field, PlanError> {
    let (precision, scale) = match *info {
        ExactNumberInfo::None => {
            return Ok(plain(numeric::PLAIN));
        }
        ExactNumberInfo::Precision(precision) => (precision, 0),
        ExactNumberInfo::PrecisionAndScale(precision, scale) => (precision, scale),
    };
    if precision == 0 || precision > 1000 {
        return Err(PlanError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("NUMERIC precision {precision} must be between 1 and 1000"),
        ));
    }
    let most = i64::from(numeric::DECLARED_PRECISION_MAX);
    if precision as i64 > most {
        return Err(PlanError::unsupported(format!("numeric({precision},{scale}): a precision over {most}")));
    }
    if scale < 0 || scale > precision as i64 {
        return Err(PlanError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("NUMERIC scale {scale} must be between 0 and precision {precision}"),
        ));
    }
    let (precision, scale) = (precision as u8, scale as i8);
    let narrow = DataType::Decimal128(precision, scale);
    // The narrow type may stand for a numeric without a scale.
    Ok(plain(if precision <= 38 && numeric::display(&narrow) == Display::Fixed {
        narrow
    } else {
        DataType::Decimal256(precision, scale)
    }))
}

fn length_of(length: &Option<CharacterLength>) -> Result<Option<u64>, PlanError> {
    match length {
        None | Some(CharacterLength::Max) => Ok(None),
        Some(CharacterLength::IntegerLength { length: 0, .. }) => {
            Err(PlanError::new(SqlState::INVALID_PARAMETER_VALUE, "length for type varchar must be at least 1"))
        }
        Some(CharacterLength::IntegerLength { length, .. }) => Ok(Some(*length)),
    }
}

fn varchar(length: &Option<CharacterLength>) -> Result<Field, PlanError> {
    Ok(match length_of(length)? {
        None => named(DataType::Utf8, "character varying"),
        Some(length) => named(DataType::Utf8, format!("character varying({length})")),
    })
}

fn character(length: &Option<CharacterLength>) -> Result<Field, PlanError> {
    let length = length_of(length)?.unwrap_or(1);
    Ok(named(DataType::Utf8, format!("character({length})")))
}

fn timestamp(data_type: DataType, zone: &str, precision: Option<u64>) -> Result<Field, PlanError> {
    match precision {
        None | Some(6) => Ok(plain(data_type)),
        Some(precision @ 0..6) => Ok(named(data_type, format!("timestamp({precision}) {zone} time zone"))),
        // PostgreSQL warns and keeps six digits.
        Some(_) => Ok(plain(data_type)),
    }
}

/// Types that sqlparser gives only by name.
fn custom(name: &str, modifiers: &[String]) -> Result<Field, PlanError> {
    let field = match name {
        "int2" | "smallint" => plain(DataType::Int16),
        "int4" | "int" | "integer" | "oid" | "regclass" | "regtype" | "regproc" | "regnamespace" | "xid" | "cid" => {
            plain(DataType::Int32)
        }
        "int8" | "bigint" => plain(DataType::Int64),
        "float4" | "real" => plain(DataType::Float32),
        "float8" => plain(DataType::Float64),
        "bool" | "boolean" => plain(DataType::Boolean),
        "text" | "name" | "\"char\"" | "char" => plain(DataType::Utf8),
        "varchar" => match modifiers {
            [length] => named(DataType::Utf8, format!("character varying({length})")),
            _ => named(DataType::Utf8, "character varying"),
        },
        "bpchar" => match modifiers {
            [length] => named(DataType::Utf8, format!("character({length})")),
            _ => named(DataType::Utf8, "bpchar"),
        },
        "numeric" | "decimal" => numeric_field(&ExactNumberInfo::None)?,
        "bytea" => plain(DataType::Binary),
        "date" => plain(DataType::Date32),
        "time" => plain(DataType::Time64(TimeUnit::Microsecond)),
        "timestamp" => plain(TIMESTAMP),
        "timestamptz" => plain(timestamptz()),
        "interval" => plain(DataType::Interval(IntervalUnit::MonthDayNano)),
        "uuid" => named(DataType::Utf8, "uuid"),
        "json" => named(DataType::Utf8, "json"),
        "jsonb" => named(DataType::Utf8, "jsonb"),
        "serial" | "bigserial" | "smallserial" | "serial2" | "serial4" | "serial8" => {
            let plain = match name {
                "smallserial" | "serial2" => "smallint",
                "bigserial" | "serial8" => "bigint",
                _ => "integer",
            };
            return Err(PlanError::unsupported(format!("type {name}"))
                .with_hint(format!("Use {plain} and give the values yourself; there are no sequences yet.")));
        }
        "timetz" | "money" | "xml" | "inet" | "cidr" | "macaddr" | "point" | "line" | "box" | "circle" | "polygon"
        | "path" | "tsvector" | "tsquery" | "hstore" | "bit" | "varbit" => {
            return Err(PlanError::unsupported(format!("type {name}")));
        }
        other => match other.strip_prefix('_') {
            Some(element) => array(&Arc::new(custom(element, &[])?)),
            None => return Err(unknown_type(other)),
        },
    };
    Ok(field)
}

fn unknown_type(name: &str) -> PlanError {
    const NAMES: &[&str] = &[
        "boolean",
        "smallint",
        "integer",
        "int",
        "bigint",
        "real",
        "double precision",
        "numeric",
        "text",
        "varchar",
        "char",
        "bytea",
        "date",
        "time",
        "timestamp",
        "timestamptz",
        "interval",
        "uuid",
        "json",
        "jsonb",
    ];
    let error = PlanError::new(SqlState::UNDEFINED_OBJECT, format!("type \"{name}\" does not exist"));
    match nearest(name, NAMES.iter().copied()) {
        Some(near) => error.with_hint(format!("Perhaps you meant {near}.")),
        None => error,
    }
}

/// The name of a type as PostgreSQL's format_type prints it.
pub fn type_name(field: &Field) -> String {
    if let Some(pg_type) = field.metadata().get(PG_TYPE) {
        return pg_type.clone();
    }
    data_type_name(field.data_type())
}

/// The name of a type that has no more to it than Arrow's type.
pub fn data_type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "boolean".to_string(),
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => "smallint".to_string(),
        DataType::Int32 | DataType::UInt16 => "integer".to_string(),
        DataType::Int64 | DataType::UInt32 => "bigint".to_string(),
        DataType::UInt64 => "numeric".to_string(),
        DataType::Float16 | DataType::Float32 => "real".to_string(),
        DataType::Float64 => "double precision".to_string(),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale)
            if numeric::display(data_type) == Display::Fixed =>
        {
            format!("numeric({precision},{scale})")
        }
        DataType::Decimal128(..) | DataType::Decimal256(..) => "numeric".to_string(),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text".to_string(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "bytea".to_string(),
        DataType::Date32 | DataType::Date64 => "date".to_string(),
        DataType::Time32(_) | DataType::Time64(_) => "time without time zone".to_string(),
        DataType::Timestamp(_, None) => "timestamp without time zone".to_string(),
        DataType::Timestamp(_, Some(_)) => "timestamp with time zone".to_string(),
        DataType::Interval(_) | DataType::Duration(_) => "interval".to_string(),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            format!("{}[]", type_name(item))
        }
        DataType::Dictionary(_, value) => data_type_name(value),
        DataType::Null => "unknown".to_string(),
        other => other.to_string(),
    }
}

/// The type that takes the place of one that PostgreSQL does not have; `None` if it has it.
fn postgres_type(data_type: &DataType) -> Option<DataType> {
    Some(match data_type {
        DataType::Int8 | DataType::UInt8 => DataType::Int16,
        DataType::UInt16 => DataType::Int32,
        DataType::UInt32 | DataType::UInt64 => DataType::Int64,
        DataType::Float16 => DataType::Float32,
        DataType::Utf8View | DataType::LargeUtf8 | DataType::Null => DataType::Utf8,
        DataType::BinaryView | DataType::LargeBinary | DataType::FixedSizeBinary(_) => DataType::Binary,
        DataType::Date64 => DataType::Date32,
        DataType::Time32(_) | DataType::Time64(TimeUnit::Nanosecond) => DataType::Time64(TimeUnit::Microsecond),
        DataType::Timestamp(TimeUnit::Microsecond, None) => return None,
        DataType::Timestamp(_, None) => TIMESTAMP,
        DataType::Timestamp(unit, Some(zone)) => {
            if *unit == TimeUnit::Microsecond && zone.as_ref() == "UTC" {
                return None;
            }
            timestamptz()
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => return None,
        DataType::Interval(_) | DataType::Duration(_) => DataType::Interval(IntervalUnit::MonthDayNano),
        DataType::Dictionary(_, value) => postgres_type(value).unwrap_or_else(|| value.as_ref().clone()),
        DataType::List(item) => {
            let element = postgres_type(item.data_type())?;
            DataType::List(Arc::new(item.as_ref().clone().with_data_type(element)))
        }
        DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            let element = postgres_type(item.data_type()).unwrap_or_else(|| item.data_type().clone());
            DataType::List(Arc::new(Field::new("item", element, true)))
        }
        _ => return None,
    })
}

/// A query whose output has only types that PostgreSQL has.
pub(crate) fn with_postgres_types(plan: LogicalPlan) -> datafusion::error::Result<LogicalPlan> {
    if plan.schema().fields().iter().all(|field| postgres_type(field.data_type()).is_none()) {
        return Ok(plan);
    }
    let expressions: Vec<Expr> =
        plan.schema()
            .iter()
            .map(|(qualifier, field)| {
                let column = Expr::Column(Column::from((qualifier, field)));
                match postgres_type(field.data_type()) {
                    Some(target) => Expr::Cast(Cast::new(Box::new(column), target))
                        .alias_qualified(qualifier.cloned(), field.name()),
                    None => column,
                }
            })
            .collect();
    LogicalPlanBuilder::from(plan).project(expressions)?.build()
}

/// Types in casts and column definitions, as DataFusion asks for them.
#[derive(Debug)]
pub(crate) struct PgTypePlanner;

impl TypePlanner for PgTypePlanner {
    fn plan_type_field(&self, sql_type: &SqlType) -> datafusion::error::Result<Option<FieldRef>> {
        cast_target(sql_type).map(Some).map_err(external)
    }
}
