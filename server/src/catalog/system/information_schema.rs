//! `information_schema`: the catalog in the form of the SQL standard.

use super::tables::{Rows, Value, information_type, key_columns, primary_key, shown, view_definition};
use super::types;
use crate::catalog::{CatalogVersion, ObjectKind};

/// The one database.
const DATABASE: &str = "tidemill";

fn schemata(version: &CatalogVersion) -> Rows {
    let mut rows = Rows::new(
        "catalog_name:t schema_name:t schema_owner:t default_character_set_catalog:t default_character_set_schema:t \
         default_character_set_name:t sql_path:t",
    );
    let system = ["pg_catalog", "information_schema"].into_iter();
    for name in system.chain(version.schemas().keys().map(String::as_str)) {
        let mut row = vec![DATABASE.into(), name.into(), DATABASE.into()];
        row.extend(std::iter::repeat_n(Value::Null, 4));
        rows.push(row);
    }
    rows
}

fn tables(version: &CatalogVersion) -> Rows {
    let mut rows = Rows::new(
        "table_catalog:t table_schema:t table_name:t table_type:t self_referencing_column_name:t \
         reference_generation:t user_defined_type_catalog:t user_defined_type_schema:t user_defined_type_name:t \
         is_insertable_into:t is_typed:t commit_action:t",
    );
    for relation in shown(version).into_iter().filter(|relation| relation.kind != "t") {
        let (kind, insertable) = match relation.kind {
            "r" => ("BASE TABLE", "YES"),
            "v" => ("VIEW", "NO"),
            _ => ("MATERIALIZED VIEW", "NO"),
        };
        let mut row = vec![DATABASE.into(), relation.object.schema.as_str().into(), Value::Text(relation.name)];
        row.push(kind.into());
        row.extend(std::iter::repeat_n(Value::Null, 5));
        row.extend([insertable.into(), "NO".into(), Value::Null]);
        rows.push(row);
    }
    rows
}

fn columns(version: &CatalogVersion) -> Rows {
    let mut rows = Rows::new(
        "table_catalog:t table_schema:t table_name:t column_name:t ordinal_position:i column_default:t is_nullable:t \
         data_type:t character_maximum_length:i character_octet_length:i numeric_precision:i \
         numeric_precision_radix:i numeric_scale:i datetime_precision:i udt_catalog:t udt_schema:t udt_name:t \
         is_identity:t is_generated:t is_updatable:t",
    );
    for relation in shown(version) {
        for (position, field) in relation.columns.fields().iter().enumerate() {
            let column = match &relation.object.kind {
                ObjectKind::Table { info, .. } => info.columns.get(position),
                _ => None,
            };
            let not_null = column.is_some_and(|column| column.not_null);
            let default = column.and_then(|column| column.default.clone()).map_or(Value::Null, Value::Text);
            let (data_type, pg_type) = information_type(field);
            let mut row = vec![DATABASE.into(), relation.object.schema.as_str().into()];
            row.extend([Value::Text(relation.name.clone()), field.name().as_str().into()]);
            row.extend([Value::Int(i32::try_from(position + 1).unwrap_or(i32::MAX)), default]);
            row.extend([if not_null { "NO".into() } else { "YES".into() }, Value::Text(data_type)]);
            row.extend(limits(pg_type));
            row.extend([DATABASE.into(), "pg_catalog".into(), Value::Text(short_name(pg_type.oid)), "NO".into()]);
            row.extend(["NEVER".into(), if relation.kind == "r" { "YES".into() } else { "NO".into() }]);
            rows.push(row);
        }
    }
    rows
}

/// Length, octets, precision, radix, scale, and the precision of times.
fn limits(pg_type: types::PgType) -> [Value; 6] {
    let mut limits = [Value::Null, Value::Null, Value::Null, Value::Null, Value::Null, Value::Null];
    let numeric = |bits: i32, radix: i32, scale: Value| (Value::Int(bits), Value::Int(radix), scale);
    let number = match pg_type.oid {
        21 => Some(numeric(16, 2, Value::Int(0))),
        23 => Some(numeric(32, 2, Value::Int(0))),
        20 => Some(numeric(64, 2, Value::Int(0))),
        700 => Some(numeric(24, 2, Value::Null)),
        701 => Some(numeric(53, 2, Value::Null)),
        1700 if pg_type.modifier >= 4 => {
            let modifier = pg_type.modifier - 4;
            Some(numeric(modifier >> 16, 10, Value::Int(modifier & 0x7ff)))
        }
        _ => None,
    };
    if let Some((precision, radix, scale)) = number {
        (limits[2], limits[3], limits[4]) = (precision, radix, scale);
    }
    if matches!(pg_type.oid, 1042 | 1043) && pg_type.modifier >= 4 {
        limits[0] = Value::Int(pg_type.modifier - 4);
        limits[1] = Value::Int((pg_type.modifier - 4) * 4);
    }
    match pg_type.oid {
        1082 => limits[5] = Value::Int(0),
        1083 | 1114 | 1184 | 1186 => limits[5] = Value::Int(6),
        _ => {}
    }
    limits
}

/// `pg_type.typname`.
fn short_name(oid: i32) -> String {
    let long = types::format_type(oid, None);
    if let Some(item) = long.strip_suffix("[]") {
        return format!("_{}", types::of_text(item).map_or_else(|| item.to_owned(), |item| short_name(item.oid)));
    }
    let short = match long.as_str() {
        "boolean" => "bool",
        "bigint" => "int8",
        "smallint" => "int2",
        "integer" => "int4",
        "real" => "float4",
        "double precision" => "float8",
        "character" => "bpchar",
        "character varying" => "varchar",
        "time without time zone" => "time",
        "timestamp without time zone" => "timestamp",
        "timestamp with time zone" => "timestamptz",
        other => other,
    };
    short.to_owned()
}

fn views(version: &CatalogVersion) -> Rows {
    let mut rows = Rows::new(
        "table_catalog:t table_schema:t table_name:t view_definition:t check_option:t is_updatable:t \
         is_insertable_into:t",
    );
    for object in version.objects().filter(|object| matches!(object.kind, ObjectKind::View { .. })) {
        let mut row = vec![DATABASE.into(), object.schema.as_str().into(), object.name.as_str().into()];
        row.extend([view_definition(object).unwrap_or_default().into(), "NONE".into(), "NO".into(), "NO".into()]);
        rows.push(row);
    }
    rows
}

fn table_constraints(version: &CatalogVersion) -> Rows {
    let mut rows = Rows::new(
        "constraint_catalog:t constraint_schema:t constraint_name:t table_catalog:t table_schema:t table_name:t \
         constraint_type:t is_deferrable:t initially_deferred:t enforced:t",
    );
    for object in version.objects().filter(|object| !primary_key(object).is_empty()) {
        let (schema, name): (Value, Value) = (object.schema.as_str().into(), object.name.as_str().into());
        let mut row = vec![DATABASE.into(), schema.clone(), Value::Text(format!("{}_pkey", object.name))];
        row.extend([DATABASE.into(), schema, name, "PRIMARY KEY".into(), "NO".into(), "NO".into(), "YES".into()]);
        rows.push(row);
    }
    rows
}

fn key_column_usage(version: &CatalogVersion) -> Rows {
    let mut rows = Rows::new(
        "constraint_catalog:t constraint_schema:t constraint_name:t table_catalog:t table_schema:t table_name:t \
         column_name:t ordinal_position:i position_in_unique_constraint:i",
    );
    for object in version.objects() {
        for (position, column) in key_columns(object).into_iter().enumerate() {
            let (schema, name): (Value, Value) = (object.schema.as_str().into(), object.name.as_str().into());
            let mut row = vec![DATABASE.into(), schema.clone(), Value::Text(format!("{}_pkey", object.name))];
            row.extend([DATABASE.into(), schema, name, Value::Text(column)]);
            row.extend([Value::Int(i32::try_from(position + 1).unwrap_or(i32::MAX)), Value::Null]);
            rows.push(row);
        }
    }
    rows
}

/// A relation of `information_schema`.
pub fn information_schema(version: &CatalogVersion, name: &str) -> Option<Rows> {
    Some(match name {
        "schemata" => schemata(version),
        "tables" => tables(version),
        "columns" => columns(version),
        "views" => views(version),
        "table_constraints" => table_constraints(version),
        "key_column_usage" => key_column_usage(version),
        "referential_constraints" => Rows::new(
            "constraint_catalog:t constraint_schema:t constraint_name:t unique_constraint_catalog:t \
             unique_constraint_schema:t unique_constraint_name:t match_option:t update_rule:t delete_rule:t",
        ),
        "routines" => Rows::new(
            "specific_catalog:t specific_schema:t specific_name:t routine_catalog:t routine_schema:t routine_name:t \
             routine_type:t data_type:t",
        ),
        "sequences" => Rows::new("sequence_catalog:t sequence_schema:t sequence_name:t data_type:t"),
        _ => return None,
    })
}
