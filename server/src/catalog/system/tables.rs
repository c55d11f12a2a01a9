//! System relations that show the catalog: rows are made when a statement names one.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, Float32Array, Int16Array, Int32Array, ListArray, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Int16Type, Schema};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::error::Result;
use plan::{Layout, RelationKind};

use super::types::{self, PgType};
use crate::catalog::entry::Entry;
use crate::catalog::{CatalogObject, CatalogVersion, ObjectKind};

/// `pg_namespace.oid` of `pg_catalog`.
pub const PG_CATALOG_OID: i32 = 11;
/// `pg_namespace.oid` of `information_schema`.
pub const INFORMATION_SCHEMA_OID: i32 = 13000;
/// `pg_namespace.oid` of the `public` that every data directory begins with.
const PUBLIC_OID: i32 = 2200;
/// `pg_authid.oid` of the one user, who owns everything.
pub const OWNER_OID: i32 = 10;
/// Ids of the catalog are shifted by this much to lie above Postgres's own numbers.
const FIRST_OID: i32 = 16_384;
/// Oids of primary key indexes and constraints are shifted further.
const INDEX_SHIFT: i32 = 1 << 29;

/// The oid of a catalog id.
pub fn oid(id: u32) -> i32 {
    i32::try_from(id).unwrap_or(i32::MAX >> 2) + FIRST_OID
}

/// The catalog id of an oid.
pub fn id_of(oid: i32) -> Option<u32> {
    u32::try_from(oid.checked_sub(FIRST_OID)?).ok()
}

/// The oid of a table's primary key index and constraint.
fn index_oid(id: u32) -> i32 {
    oid(id) + INDEX_SHIFT
}

/// The table whose primary key index has this oid.
pub fn table_of_index(index: i32) -> Option<u32> {
    id_of(index.checked_sub(INDEX_SHIFT).filter(|oid| *oid > 0)?)
}

/// A schema's oid by name.
pub fn schema_oid(version: &CatalogVersion, schema: &str) -> Option<i32> {
    match schema {
        "pg_catalog" => Some(PG_CATALOG_OID),
        "information_schema" => Some(INFORMATION_SCHEMA_OID),
        _ => {
            version.schemas().get(schema).map(|id| if *id == crate::catalog::FIRST_ID { PUBLIC_OID } else { oid(*id) })
        }
    }
}

/// A value of a system relation.
#[derive(Clone)]
pub enum Value {
    /// oid and its aliases.
    Oid(i32),
    /// int4.
    Int(i32),
    /// int2.
    Small(i16),
    /// text, name, "char".
    Text(String),
    /// bool.
    Bool(bool),
    /// float4.
    Float(f32),
    /// int2[] for int2vector.
    Smalls(Vec<i16>),
    /// NULL.
    Null,
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

/// A system relation's rows. Column types: `o` oid, `i` int4, `s` int2, `t` text, `b` bool, `f` float4, `v` int2[],
/// `a` text[] (always NULL).
pub struct Rows {
    columns: Vec<(&'static str, char)>,
    rows: Vec<Vec<Value>>,
}

impl Rows {
    /// No rows; `columns` like `"oid:o relname:t"`.
    pub fn new(columns: &'static str) -> Rows {
        let columns = columns
            .split_whitespace()
            .filter_map(|column| column.split_once(':'))
            .map(|(name, kind)| (name, kind.chars().next().unwrap_or('t')))
            .collect();
        Rows { columns, rows: Vec::new() }
    }

    /// Adds a row: a value a column, in order.
    pub fn push(&mut self, row: Vec<Value>) {
        debug_assert_eq!(row.len(), self.columns.len(), "a value a column");
        self.rows.push(row);
    }

    /// As a batch.
    pub fn batch(self) -> Result<RecordBatch> {
        let mut fields = Vec::with_capacity(self.columns.len());
        let mut arrays: Vec<ArrayRef> = Vec::with_capacity(self.columns.len());
        for (position, (name, kind)) in self.columns.iter().enumerate() {
            let values = self.rows.iter().map(|row| row.get(position).unwrap_or(&Value::Null));
            let (array, metadata): (ArrayRef, _) = match kind {
                'o' => (Arc::new(values.map(as_int).collect::<Int32Array>()), Some(("pg.oid_alias", "oid"))),
                'i' => (Arc::new(values.map(as_int).collect::<Int32Array>()), None),
                's' => (Arc::new(values.map(as_small).collect::<Int16Array>()), None),
                'b' => (Arc::new(values.map(as_bool).collect::<BooleanArray>()), None),
                'f' => (Arc::new(values.map(as_float).collect::<Float32Array>()), None),
                'v' => (Arc::new(ListArray::from_iter_primitive::<Int16Type, _, _>(values.map(as_smalls))), None),
                'a' => {
                    let texts = DataType::new_list(DataType::Utf8, true);
                    (datafusion::arrow::array::new_null_array(&texts, self.rows.len()), None)
                }
                _ => (Arc::new(values.map(as_text).collect::<StringArray>()), None),
            };
            let metadata: HashMap<String, String> =
                metadata.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            fields.push(Field::new(*name, array.data_type().clone(), true).with_metadata(metadata));
            arrays.push(array);
        }
        let options = RecordBatchOptions::new().with_row_count(Some(self.rows.len()));
        Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)?)
    }
}

fn as_int(value: &Value) -> Option<i32> {
    match value {
        Value::Oid(value) | Value::Int(value) => Some(*value),
        Value::Small(value) => Some(i32::from(*value)),
        _ => None,
    }
}

fn as_small(value: &Value) -> Option<i16> {
    if let Value::Small(value) = value { Some(*value) } else { None }
}

fn as_bool(value: &Value) -> Option<bool> {
    if let Value::Bool(value) = value { Some(*value) } else { None }
}

fn as_float(value: &Value) -> Option<f32> {
    if let Value::Float(value) = value { Some(*value) } else { None }
}

fn as_text(value: &Value) -> Option<&str> {
    if let Value::Text(value) = value { Some(value) } else { None }
}

fn as_smalls(value: &Value) -> Option<Vec<Option<i16>>> {
    if let Value::Smalls(values) = value { Some(values.iter().copied().map(Some).collect()) } else { None }
}

/// What shows up as a relation: objects, and the failed rows of materialized views.
pub struct Shown<'a> {
    /// Its object; for failed rows the view's.
    pub object: &'a CatalogObject,
    /// Number.
    pub oid: i32,
    /// Name.
    pub name: String,
    /// `pg_class.relkind`.
    pub kind: &'static str,
    /// Columns.
    pub columns: Arc<Schema>,
}

/// All relations that users see.
pub fn shown(version: &CatalogVersion) -> Vec<Shown<'_>> {
    let mut all = Vec::new();
    for object in version.objects().filter(|object| object.is_visible()) {
        let kind = match &object.kind {
            ObjectKind::Table { .. } => "r",
            ObjectKind::View { .. } => "v",
            ObjectKind::MaterializedView { .. } => "m",
        };
        all.push(Shown {
            object,
            oid: oid(object.id),
            name: object.name.clone(),
            kind,
            columns: object.columns().clone(),
        });
        if let ObjectKind::MaterializedView { errors, .. } = &object.kind {
            all.push(Shown {
                object,
                oid: oid(errors.relation.id.0),
                name: format!("{}{}", object.name, crate::catalog::ERRORS_SUFFIX),
                // Belongs to another relation, as a TOAST table does: listings leave it out.
                kind: "t",
                columns: errors.relation.schema.clone(),
            });
        }
    }
    all
}

/// The primary key of a table, as positions from 1.
pub fn primary_key(object: &CatalogObject) -> Vec<i16> {
    match &object.kind {
        ObjectKind::Table { stored, info } if stored.relation.kind == RelationKind::Table => {
            match &stored.relation.layout {
                Layout::Keyed(_) => {
                    info.primary_key.iter().map(|column| i16::try_from(*column + 1).unwrap_or(i16::MAX)).collect()
                }
                Layout::RowId | Layout::Multiset => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

/// The tables that have a primary key.
fn with_primary_key(version: &CatalogVersion) -> impl Iterator<Item = (&Arc<CatalogObject>, Vec<i16>)> {
    version.objects().map(|object| (object, primary_key(object))).filter(|(_, key)| !key.is_empty())
}

/// The definition of a view.
pub fn view_definition(object: &CatalogObject) -> Option<&str> {
    match &object.entry.entry {
        Entry::View(view) => Some(&view.query),
        Entry::MaterializedView(view) => Some(&view.view.query),
        Entry::Schema { .. } | Entry::Table(_) => None,
    }
}

fn pg_namespace(version: &CatalogVersion) -> Rows {
    let mut rows = Rows::new("oid:o nspname:t nspowner:o nspacl:a");
    let system = [("pg_catalog", PG_CATALOG_OID), ("information_schema", INFORMATION_SCHEMA_OID)];
    let users = version.schemas().keys().filter_map(|name| Some((name.as_str(), schema_oid(version, name)?)));
    for (name, oid) in system.into_iter().chain(users) {
        rows.push(vec![Value::Oid(oid), name.into(), Value::Oid(OWNER_OID), Value::Null]);
    }
    rows
}

fn pg_class(version: &CatalogVersion) -> Rows {
    let mut rows = Rows::new(
        "oid:o relname:t relnamespace:o reltype:o reloftype:o relowner:o relam:o relfilenode:o reltablespace:o \
         relpages:i reltuples:f relallvisible:i reltoastrelid:o relhasindex:b relisshared:b relpersistence:t relkind:t \
         relnatts:s relchecks:s relhasrules:b relhastriggers:b relhassubclass:b relrowsecurity:b \
         relforcerowsecurity:b relispopulated:b relreplident:t relispartition:b relrewrite:o relfrozenxid:i \
         relminmxid:i relacl:a reloptions:a relpartbound:t",
    );
    let mut push = |oid: i32, name: String, schema: i32, kind: &str, columns: usize, has_index: bool| {
        let access = match kind {
            "i" => 403,
            "v" => 0,
            _ => 2,
        };
        let mut row = vec![Value::Oid(oid), Value::Text(name), Value::Oid(schema), Value::Oid(0), Value::Oid(0)];
        row.extend([Value::Oid(OWNER_OID), Value::Oid(access), Value::Oid(oid), Value::Oid(0)]);
        row.extend([Value::Int(0), Value::Float(-1.0), Value::Int(0), Value::Oid(0)]);
        row.extend([Value::Bool(has_index), Value::Bool(false), "p".into(), kind.into()]);
        row.extend([Value::Small(i16::try_from(columns).unwrap_or(i16::MAX)), Value::Small(0)]);
        row.extend(std::iter::repeat_n(Value::Bool(false), 5));
        row.extend([Value::Bool(true), "d".into(), Value::Bool(false), Value::Oid(0), Value::Int(0), Value::Int(0)]);
        row.extend([Value::Null, Value::Null, Value::Null]);
        rows.push(row);
    };
    for relation in shown(version) {
        let schema = schema_oid(version, &relation.object.schema).unwrap_or(0);
        let has_index = relation.kind == "r" && !primary_key(relation.object).is_empty();
        push(relation.oid, relation.name, schema, relation.kind, relation.columns.fields().len(), has_index);
    }
    for (object, key) in with_primary_key(version) {
        let schema = schema_oid(version, &object.schema).unwrap_or(0);
        push(index_oid(object.id), format!("{}_pkey", object.name), schema, "i", key.len(), false);
    }
    rows
}

/// NOT NULL and default of a column.
fn column_facts(object: &CatalogObject, kind: &str, position: usize) -> (bool, Option<String>) {
    match &object.kind {
        ObjectKind::Table { info, .. } if kind == "r" => {
            info.columns.get(position).map_or((false, None), |column| (column.not_null, column.default.clone()))
        }
        _ => (false, None),
    }
}

fn pg_attribute(version: &CatalogVersion) -> Rows {
    let mut rows = Rows::new(
        "attrelid:o attname:t atttypid:o attstattarget:s attlen:s attnum:s attndims:s attcacheoff:i atttypmod:i \
         attbyval:b attalign:t attstorage:t attcompression:t attnotnull:b atthasdef:b atthasmissing:b attidentity:t \
         attgenerated:t attisdropped:b attislocal:b attinhcount:s attcollation:o attacl:a attoptions:a \
         attfdwoptions:a attmissingval:t",
    );
    let mut push = |relation: i32, number: usize, name: &str, pg_type: PgType, not_null: bool, has_default: bool| {
        let length = types::length(pg_type.oid);
        let text = matches!(pg_type.oid, 25 | 1042 | 1043);
        let mut row = vec![Value::Oid(relation), name.into(), Value::Oid(pg_type.oid), Value::Small(-1)];
        row.extend([Value::Small(length), Value::Small(i16::try_from(number).unwrap_or(i16::MAX)), Value::Small(0)]);
        row.extend([Value::Int(-1), Value::Int(pg_type.modifier), Value::Bool((1..=8).contains(&length)), "i".into()]);
        row.extend([if length < 0 { "x".into() } else { "p".into() }, "".into()]);
        row.extend([Value::Bool(not_null), Value::Bool(has_default), Value::Bool(false), "".into(), "".into()]);
        row.extend([Value::Bool(false), Value::Bool(true), Value::Small(0)]);
        row.extend([Value::Oid(if text { 100 } else { 0 }), Value::Null, Value::Null, Value::Null, Value::Null]);
        rows.push(row);
    };
    for relation in shown(version) {
        for (position, field) in relation.columns.fields().iter().enumerate() {
            let (not_null, default) = column_facts(relation.object, relation.kind, position);
            push(relation.oid, position + 1, field.name(), types::of_field(field), not_null, default.is_some());
        }
    }
    for (object, key) in with_primary_key(version) {
        for (number, column) in key.iter().enumerate() {
            let Some(field) = object.columns().fields().get(usize::try_from(*column - 1).unwrap_or(0)) else {
                continue;
            };
            push(index_oid(object.id), number + 1, field.name(), types::of_field(field), false, false);
        }
    }
    rows
}

fn pg_attrdef(version: &CatalogVersion) -> Rows {
    let mut rows = Rows::new("oid:o adrelid:o adnum:s adbin:t");
    for relation in shown(version) {
        for position in 0..relation.columns.fields().len() {
            if let (_, Some(default)) = column_facts(relation.object, relation.kind, position) {
                let number = i16::try_from(position + 1).unwrap_or(i16::MAX);
                let oid = relation.oid.wrapping_mul(64).wrapping_add(i32::from(number));
                rows.push(vec![Value::Oid(oid), Value::Oid(relation.oid), Value::Small(number), Value::Text(default)]);
            }
        }
    }
    rows
}

fn pg_index(version: &CatalogVersion) -> Rows {
    let mut rows = Rows::new(
        "indexrelid:o indrelid:o indnatts:s indnkeyatts:s indisunique:b indnullsnotdistinct:b indisprimary:b \
         indisexclusion:b indimmediate:b indisclustered:b indisvalid:b indcheckxmin:b indisready:b indislive:b \
         indisreplident:b indkey:v indcollation:v indclass:v indoption:v indexprs:t indpred:t",
    );
    for (object, key) in with_primary_key(version) {
        let columns = Value::Small(i16::try_from(key.len()).unwrap_or(i16::MAX));
        let zeros = Value::Smalls(vec![0; key.len()]);
        let flags = [true, false, true, false, true, false, true, false, true, true, false];
        let mut row = vec![Value::Oid(index_oid(object.id)), Value::Oid(oid(object.id)), columns.clone(), columns];
        row.extend(flags.map(Value::Bool));
        row.extend([Value::Smalls(key), zeros.clone(), zeros.clone(), zeros, Value::Null, Value::Null]);
        rows.push(row);
    }
    rows
}

fn pg_constraint(version: &CatalogVersion) -> Rows {
    let mut rows = Rows::new(
        "oid:o conname:t connamespace:o contype:t condeferrable:b condeferred:b convalidated:b conrelid:o contypid:o \
         conindid:o conparentid:o confrelid:o confupdtype:t confdeltype:t confmatchtype:t conislocal:b coninhcount:s \
         connoinherit:b conkey:v confkey:v conpfeqop:v conppeqop:v conffeqop:v confdelsetcols:v conexclop:v conbin:t",
    );
    for (object, key) in with_primary_key(version) {
        let schema = schema_oid(version, &object.schema).unwrap_or(0);
        let index = index_oid(object.id);
        let mut row = vec![Value::Oid(index), Value::Text(format!("{}_pkey", object.name)), Value::Oid(schema)];
        row.extend(["p".into(), Value::Bool(false), Value::Bool(false), Value::Bool(true)]);
        row.extend([Value::Oid(oid(object.id)), Value::Oid(0), Value::Oid(index), Value::Oid(0), Value::Oid(0)]);
        row.extend([" ".into(), " ".into(), " ".into(), Value::Bool(true), Value::Small(0), Value::Bool(true)]);
        row.push(Value::Smalls(key));
        row.extend(std::iter::repeat_n(Value::Null, 7));
        rows.push(row);
    }
    rows
}

fn pg_tables(version: &CatalogVersion) -> Rows {
    let mut rows = Rows::new(
        "schemaname:t tablename:t tableowner:t tablespace:t hasindexes:b hasrules:b hastriggers:b rowsecurity:b",
    );
    for relation in shown(version).into_iter().filter(|relation| relation.kind == "r") {
        let has_index = !primary_key(relation.object).is_empty();
        let mut row = vec![relation.object.schema.as_str().into(), Value::Text(relation.name), "tidemill".into()];
        row.extend([Value::Null, Value::Bool(has_index), Value::Bool(false), Value::Bool(false), Value::Bool(false)]);
        rows.push(row);
    }
    rows
}

fn pg_views(version: &CatalogVersion) -> Rows {
    let mut rows = Rows::new("schemaname:t viewname:t viewowner:t definition:t");
    for object in version.objects().filter(|object| matches!(object.kind, ObjectKind::View { .. })) {
        let definition = view_definition(object).unwrap_or_default();
        let (schema, name) = (object.schema.as_str().into(), object.name.as_str().into());
        rows.push(vec![schema, name, "tidemill".into(), definition.into()]);
    }
    rows
}

fn pg_matviews(version: &CatalogVersion) -> Rows {
    let mut rows =
        Rows::new("schemaname:t matviewname:t matviewowner:t tablespace:t hasindexes:b ispopulated:b definition:t");
    let materialized = |object: &&Arc<CatalogObject>| matches!(object.kind, ObjectKind::MaterializedView { .. });
    for object in version.objects().filter(materialized).filter(|object| object.is_visible()) {
        let definition = view_definition(object).unwrap_or_default();
        let mut row = vec![object.schema.as_str().into(), object.name.as_str().into(), "tidemill".into()];
        row.extend([Value::Null, Value::Bool(false), Value::Bool(true), definition.into()]);
        rows.push(row);
    }
    rows
}

fn pg_indexes(version: &CatalogVersion) -> Rows {
    let mut rows = Rows::new("schemaname:t tablename:t indexname:t tablespace:t indexdef:t");
    for (object, _) in with_primary_key(version) {
        let mut row = vec![object.schema.as_str().into(), object.name.as_str().into()];
        row.extend([Value::Text(format!("{}_pkey", object.name)), Value::Null, Value::Text(index_definition(object))]);
        rows.push(row);
    }
    rows
}

/// The statement that would make a table's primary key index.
pub fn index_definition(object: &CatalogObject) -> String {
    format!(
        "CREATE UNIQUE INDEX {0}_pkey ON {1}.{0} USING btree ({2})",
        object.name,
        object.schema,
        key_columns(object).join(", ")
    )
}

/// Names of the columns of a table's primary key.
pub fn key_columns(object: &CatalogObject) -> Vec<String> {
    let fields = object.columns().fields();
    primary_key(object)
        .iter()
        .filter_map(|column| fields.get(usize::try_from(*column - 1).ok()?).map(|field| field.name().clone()))
        .collect()
}

fn pg_database(_: &CatalogVersion) -> Rows {
    let mut rows = Rows::new(
        "oid:o datname:t datdba:o encoding:i datlocprovider:t datistemplate:b datallowconn:b datconnlimit:i \
         datfrozenxid:i datminmxid:i dattablespace:o datcollate:t datctype:t daticulocale:t datcollversion:t datacl:a",
    );
    let mut row = vec![Value::Oid(5), "tidemill".into(), Value::Oid(OWNER_OID), Value::Int(6), "c".into()];
    row.extend([Value::Bool(false), Value::Bool(true), Value::Int(-1), Value::Int(0), Value::Int(0), Value::Oid(1663)]);
    row.extend(["C".into(), "C".into(), Value::Null, Value::Null, Value::Null]);
    rows.push(row);
    rows
}

fn roles(columns: &'static str) -> Rows {
    let mut rows = Rows::new(columns);
    let row = rows
        .columns
        .iter()
        .map(|(name, kind)| match (*name, kind) {
            ("oid" | "usesysid", _) => Value::Oid(OWNER_OID),
            ("rolname" | "usename", _) => "tidemill".into(),
            ("rolconnlimit", _) => Value::Int(-1),
            (_, 'b') => Value::Bool(true),
            _ => Value::Null,
        })
        .collect();
    rows.push(row);
    rows
}

/// A relation of `pg_catalog` that shows this catalog.
pub fn pg_catalog(version: &CatalogVersion, name: &str) -> Option<Rows> {
    Some(match name {
        "pg_namespace" => pg_namespace(version),
        "pg_class" => pg_class(version),
        "pg_attribute" => pg_attribute(version),
        "pg_attrdef" => pg_attrdef(version),
        "pg_index" => pg_index(version),
        "pg_constraint" => pg_constraint(version),
        "pg_tables" => pg_tables(version),
        "pg_views" => pg_views(version),
        "pg_matviews" => pg_matviews(version),
        "pg_indexes" => pg_indexes(version),
        "pg_database" => pg_database(version),
        "pg_description" => Rows::new("objoid:o classoid:o objsubid:i description:t"),
        "pg_shdescription" => Rows::new("objoid:o classoid:o description:t"),
        "pg_roles" => roles(
            "oid:o rolname:t rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b rolreplication:b \
             rolconnlimit:i rolpassword:t rolvaliduntil:t rolbypassrls:b rolconfig:a",
        ),
        "pg_authid" => roles(
            "oid:o rolname:t rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b rolreplication:b \
             rolbypassrls:b rolconnlimit:i rolpassword:t rolvaliduntil:t",
        ),
        "pg_user" => roles("usename:t usesysid:o usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd:t"),
        _ => return None,
    })
}

/// A data type as `information_schema` spells it.
pub fn information_type(field: &Field) -> (String, PgType) {
    let pg_type = types::of_field(field);
    let text = if matches!(field.data_type(), DataType::List(_)) {
        "ARRAY".to_owned()
    } else {
        types::format_type(pg_type.oid, None)
    };
    (text, pg_type)
}
