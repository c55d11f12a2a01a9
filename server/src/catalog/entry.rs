//! The stored form of catalog entries: versioned JSON.
//!
//! Columns are stored with our own names for types, not with Arrow's, so that the format stays ours to keep.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, IntervalUnit, Schema, SchemaRef, TimeUnit};
use plan::{Growth, Layout};
use planner::catalog::ColumnInfo;
use serde::{Deserialize, Serialize};

use crate::error::ServerError;

/// The newest form that this code writes, and the newest that it reads.
pub const ENTRY_VERSION: u32 = 1;

/// An entry as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredEntry {
    /// [`ENTRY_VERSION`] at the time of writing.
    pub version: u32,
    /// Never used twice; for stored relations also the relation's id.
    pub id: u32,
    /// What it is.
    #[serde(flatten)]
    pub entry: Entry,
}

/// What an entry describes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Entry {
    /// A schema.
    Schema {
        /// Name.
        name: String,
    },
    /// A table.
    Table(TableEntry),
    /// A plain view.
    View(ViewEntry),
    /// A materialized view.
    MaterializedView(MaterializedEntry),
}

/// A table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableEntry {
    /// Schema.
    pub schema: String,
    /// Name.
    pub name: String,
    /// Columns.
    pub fields: Vec<StoredField>,
    /// Defaults and NOT NULL.
    pub columns: Vec<ColumnInfo>,
    /// Positions of the primary key.
    pub primary_key: Vec<usize>,
    /// How rows are stored.
    pub layout: Layout,
    /// UPDATE and DELETE are refused.
    pub append_only: bool,
    /// WATERMARK FOR column AS expression.
    pub watermark: Option<(usize, String)>,
}

/// A view's definition and columns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ViewEntry {
    /// Schema.
    pub schema: String,
    /// Name.
    pub name: String,
    /// The SELECT.
    pub query: String,
    /// Column names given.
    pub columns: Vec<String>,
    /// Search path under which the query's names are resolved.
    pub search_path: Vec<String>,
    /// Columns.
    pub fields: Vec<StoredField>,
    /// Entries that it reads directly.
    pub depends_on: Vec<u32>,
}

/// A materialized view.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MaterializedEntry {
    /// Definition.
    pub view: ViewEntry,
    /// How rows are stored.
    pub layout: Layout,
    /// Rows are only ever added.
    pub append_only: bool,
    /// How much it may come to hold.
    #[serde(default)]
    pub growth: Growth,
    /// The same of its failed rows.
    #[serde(default)]
    pub errors_growth: Growth,
    /// Id of the relation of failed rows.
    pub errors_id: u32,
    /// First of its operators' state tables.
    pub first_state_table: u32,
    /// How many state tables.
    pub state_tables: u32,
    /// Fingerprint of the dataflow plan.
    pub fingerprint: String,
    /// How its joins were put in order; none if they are as they were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub join_order: Option<StoredJoinOrder>,
    /// Whether it can be read.
    pub status: Status,
}

/// What the order of a view's joins depends on besides its query.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredJoinOrder {
    /// [`planner::JOIN_ORDER_VERSION`] at the time of planning.
    pub version: u32,
    /// Relations that it reads, with about how many rows each had then.
    pub rows: Vec<(u32, u64)>,
}

/// Whether a materialized view can be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Its inputs are still being read: not visible, and dropped by a restart.
    Filling,
    /// Up to date at every epoch.
    Ready,
    /// Its dataflow stopped, for this reason: it cannot be read any more, only dropped.
    Failed(String),
}

/// A column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredField {
    /// Name.
    pub name: String,
    /// Type, see [`type_name`].
    #[serde(rename = "type")]
    pub type_name: String,
    /// May be NULL.
    pub nullable: bool,
    /// What Arrow's type does not say, like `pg_type`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
}

impl StoredEntry {
    /// To JSON.
    pub fn encode(&self) -> Result<Vec<u8>, ServerError> {
        serde_json::to_vec(self).map_err(|error| ServerError::internal(format!("catalog entry {}: {error}", self.id)))
    }

    /// From JSON; refuses versions of the future.
    pub fn decode(bytes: &[u8]) -> Result<StoredEntry, ServerError> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let damaged = |error: serde_json::Error| {
            ServerError::from(runtime::Error::Corrupted(format!("a catalog entry cannot be read: {error}")))
        };
        let Version { version } = serde_json::from_slice(bytes).map_err(damaged)?;
        if version > ENTRY_VERSION {
            return Err(runtime::Error::CannotOpen(format!(
                "the catalog was written by a newer version of the server (entry version {version}, this server reads \
                 up to {ENTRY_VERSION})"
            ))
            .into());
        }
        serde_json::from_slice(bytes).map_err(damaged)
    }
}

/// Columns to their stored form.
pub fn store_schema(schema: &Schema) -> Vec<StoredField> {
    schema
        .fields()
        .iter()
        .map(|field| StoredField {
            name: field.name().clone(),
            type_name: type_name(field.data_type()),
            nullable: field.is_nullable(),
            metadata: field.metadata().iter().map(|(key, value)| (key.clone(), value.clone())).collect(),
        })
        .collect()
}

/// Columns from their stored form.
pub fn load_schema(fields: &[StoredField]) -> Result<SchemaRef, ServerError> {
    let fields: Result<Vec<Field>, ServerError> = fields
        .iter()
        .map(|stored| {
            let data_type = type_of(&stored.type_name).ok_or_else(|| {
                ServerError::from(runtime::Error::Corrupted(format!(
                    "the catalog names an unknown type \"{}\"",
                    stored.type_name
                )))
            })?;
            let metadata = stored.metadata.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            Ok(Field::new(&stored.name, data_type, stored.nullable).with_metadata(metadata))
        })
        .collect();
    Ok(Arc::new(Schema::new(fields?)))
}

/// Our name of a type: Postgres's where it has one, else `arrow:` and Arrow's own text.
pub fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "boolean".into(),
        DataType::Int16 => "int2".into(),
        DataType::Int32 => "int4".into(),
        DataType::Int64 => "int8".into(),
        DataType::Float32 => "float4".into(),
        DataType::Float64 => "float8".into(),
        DataType::Decimal128(precision, scale) => format!("numeric({precision},{scale})"),
        DataType::Decimal256(precision, scale) => format!("numeric256({precision},{scale})"),
        DataType::Utf8 => "text".into(),
        DataType::Binary => "bytea".into(),
        DataType::Date32 => "date".into(),
        DataType::Time64(TimeUnit::Microsecond) => "time".into(),
        DataType::Timestamp(TimeUnit::Microsecond, None) => "timestamp".into(),
        DataType::Timestamp(TimeUnit::Microsecond, Some(zone)) if zone.as_ref() == "UTC" => "timestamptz".into(),
        DataType::Interval(IntervalUnit::MonthDayNano) => "interval".into(),
        DataType::List(item) if item.is_nullable() => format!("{}[]", type_name(item.data_type())),
        other => format!("arrow:{other}"),
    }
}

/// The type of a name that [`type_name`] gave.
pub fn type_of(name: &str) -> Option<DataType> {
    if let Some(arrow) = name.strip_prefix("arrow:") {
        return arrow.parse().ok();
    }
    if let Some(item) = name.strip_suffix("[]") {
        return Some(DataType::List(Arc::new(Field::new_list_field(type_of(item)?, true))));
    }
    Some(match name {
        "boolean" => DataType::Boolean,
        "int2" => DataType::Int16,
        "int4" => DataType::Int32,
        "int8" => DataType::Int64,
        "float4" => DataType::Float32,
        "float8" => DataType::Float64,
        "text" => DataType::Utf8,
        "bytea" => DataType::Binary,
        "date" => DataType::Date32,
        "time" => DataType::Time64(TimeUnit::Microsecond),
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "timestamptz" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "interval" => DataType::Interval(IntervalUnit::MonthDayNano),
        _ => {
            let (wide, arguments) = match name.strip_prefix("numeric256(") {
                Some(rest) => (true, rest),
                None => (false, name.strip_prefix("numeric(")?),
            };
            let (precision, scale) = arguments.strip_suffix(')')?.split_once(',')?;
            let (precision, scale) = (precision.parse().ok()?, scale.parse().ok()?);
            if wide { DataType::Decimal256(precision, scale) } else { DataType::Decimal128(precision, scale) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_survives_being_stored() {
        let list = DataType::List(Arc::new(Field::new_list_field(DataType::Int32, true)));
        for data_type in [
            DataType::Boolean,
            DataType::Int16,
            DataType::Decimal128(12, 2),
            DataType::Decimal256(60, 5),
            DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            DataType::Timestamp(TimeUnit::Nanosecond, None),
            DataType::UInt64,
            DataType::Utf8View,
            list,
        ] {
            assert_eq!(type_of(&type_name(&data_type)), Some(data_type));
        }
    }

    #[test]
    fn entries_survive_being_stored_and_newer_ones_are_refused() {
        let entry = StoredEntry { version: 1, id: 7, entry: Entry::Schema { name: "s".into() } };
        let bytes = entry.encode().expect("encodes");
        assert_eq!(StoredEntry::decode(&bytes).expect("decodes"), entry);
        assert_eq!(String::from_utf8(bytes).expect("text"), r#"{"version":1,"id":7,"kind":"schema","name":"s"}"#);
        let error = StoredEntry::decode(br#"{"version":2,"id":7,"kind":"other"}"#).expect_err("refused");
        assert!(error.message.contains("newer version"), "{error}");
    }
}
