//! The functions that look into the catalog and the session, as psql and other tools call them.
//!
//! Each is evaluated row by row: catalogs are small. Those that depend on the session find it in the configuration of
//! the statement ([`SessionFacts`]); they are volatile, so that no plan folds them before the session is known.

use std::any::Any;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use datafusion::arrow::array::{ArrayRef, ListArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::common::config::{ConfigEntry, ConfigExtension, ExtensionOptions};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use plan::{PlanError, SqlState};
use planner::SessionInfo;

use super::tables::{self, INFORMATION_SCHEMA_OID, OWNER_OID, PG_CATALOG_OID};
use super::{is_system_schema, types};
use crate::catalog::{CatalogObject, CatalogVersion};

/// The session, as functions find it in a statement's configuration.
#[derive(Debug, Clone)]
pub struct SessionFacts(pub SessionInfo);

impl ConfigExtension for SessionFacts {
    const PREFIX: &'static str = "session";
}

impl ExtensionOptions for SessionFacts {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, _: &str) -> Result<()> {
        Err(DataFusionError::Configuration(format!("session.{key} cannot be set here")))
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        Vec::new()
    }
}

/// What a function sees.
struct Context<'a> {
    catalog: &'a CatalogVersion,
    session: &'a SessionInfo,
    argument_types: &'a [FieldRef],
}

impl Context<'_> {
    fn object(&self, oid: i32) -> Option<&Arc<CatalogObject>> {
        let id = tables::id_of(oid)?;
        self.catalog.object(id).or_else(|| self.catalog.owner(plan::RelationId(id)))
    }

    /// The oid of a relation by its name as text.
    fn relation(&self, text: &str) -> Option<i32> {
        let parts = identifiers(text)?;
        let (schema, name) = match parts.as_slice() {
            [name] => (None, name),
            [schema, name] | [_, schema, name] => (Some(schema.as_str()), name),
            _ => return None,
        };
        if let Some(object) = self.catalog.find(schema, name, &self.session.search_path) {
            return Some(tables::oid(object.id)).filter(|_| object.is_visible());
        }
        system_relation(schema, name)
    }
}

/// Oids of system relations: only that they exist matters, and that they differ.
fn system_relation(schema: Option<&str>, name: &str) -> Option<i32> {
    const KNOWN: [(&str, i32); 10] = [
        ("pg_class", 1259),
        ("pg_type", 1247),
        ("pg_attribute", 1249),
        ("pg_proc", 1255),
        ("pg_namespace", 2615),
        ("pg_constraint", 2606),
        ("pg_database", 1262),
        ("pg_authid", 1260),
        ("pg_index", 2610),
        ("pg_attrdef", 2604),
    ];
    if schema.is_some_and(|schema| !is_system_schema(schema)) {
        return None;
    }
    KNOWN.iter().find(|(known, _)| *known == name).map(|(_, oid)| *oid)
}

/// A qualified name's parts: unquoted ones in lower case.
fn identifiers(text: &str) -> Option<Vec<String>> {
    let mut parts = Vec::new();
    let mut characters = text.trim().chars().peekable();
    loop {
        let mut part = String::new();
        if characters.peek() == Some(&'"') {
            characters.next();
            loop {
                match characters.next()? {
                    '"' if characters.peek() == Some(&'"') => {
                        characters.next();
                        part.push('"');
                    }
                    '"' => break,
                    other => part.push(other),
                }
            }
        } else {
            while let Some(character) = characters.next_if(|character| *character != '.') {
                part.extend(character.to_lowercase());
            }
        }
        if part.is_empty() {
            return None;
        }
        parts.push(part);
        match characters.next() {
            None => return Some(parts),
            Some('.') => {}
            Some(_) => return None,
        }
    }
}

type Body = fn(&Context<'_>, &[ScalarValue]) -> Result<ScalarValue>;

/// One function.
struct SystemFunction {
    name: &'static str,
    signature: Signature,
    returns: FieldRef,
    body: Body,
    catalog: Arc<ArcSwapOption<CatalogVersion>>,
}

impl std::fmt::Debug for SystemFunction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for SystemFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for SystemFunction {}

impl Hash for SystemFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for SystemFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.data_type().clone())
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(self.returns.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let fallback = SessionInfo {
            search_path: vec!["public".to_owned()],
            time_zone: "UTC".to_owned(),
            user: "tidemill".to_owned(),
            database: "tidemill".to_owned(),
        };
        let session = args.config_options.extensions.get::<SessionFacts>().map_or(&fallback, |facts| &facts.0);
        let catalog = self.catalog.load_full().unwrap_or_default();
        let context = Context { catalog: &catalog, session, argument_types: &args.arg_fields };
        let scalars: Option<Vec<ScalarValue>> = args
            .args
            .iter()
            .map(|argument| if let ColumnarValue::Scalar(value) = argument { Some(value.clone()) } else { None })
            .collect();
        if let Some(scalars) = scalars {
            return Ok(ColumnarValue::Scalar((self.body)(&context, &scalars)?));
        }
        let arrays: Vec<ArrayRef> = ColumnarValue::values_to_arrays(&args.args)?;
        let rows = arrays.first().map_or(args.number_rows, |array| array.len());
        let mut values = Vec::with_capacity(rows);
        for row in 0..rows {
            let arguments: Result<Vec<ScalarValue>> =
                arrays.iter().map(|array| ScalarValue::try_from_array(array, row)).collect();
            values.push((self.body)(&context, &arguments?)?);
        }
        if values.is_empty() {
            return Ok(ColumnarValue::Array(datafusion::arrow::array::new_empty_array(self.returns.data_type())));
        }
        Ok(ColumnarValue::Array(ScalarValue::iter_to_array(values)?))
    }
}

fn text(value: impl Into<String>) -> Result<ScalarValue> {
    Ok(ScalarValue::Utf8(Some(value.into())))
}

fn optional_text(value: Option<String>) -> Result<ScalarValue> {
    Ok(ScalarValue::Utf8(value))
}

fn int(value: Option<i32>) -> Result<ScalarValue> {
    Ok(ScalarValue::Int32(value))
}

fn yes(_: &Context<'_>, _: &[ScalarValue]) -> Result<ScalarValue> {
    Ok(ScalarValue::Boolean(Some(true)))
}

fn no(_: &Context<'_>, _: &[ScalarValue]) -> Result<ScalarValue> {
    Ok(ScalarValue::Boolean(Some(false)))
}

fn no_text(_: &Context<'_>, _: &[ScalarValue]) -> Result<ScalarValue> {
    optional_text(None)
}

fn zero(_: &Context<'_>, _: &[ScalarValue]) -> Result<ScalarValue> {
    Ok(ScalarValue::Int64(Some(0)))
}

/// An argument as text.
fn text_argument(arguments: &[ScalarValue], position: usize) -> Option<String> {
    match arguments.get(position)? {
        ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text) => text.clone(),
        _ => None,
    }
}

/// An argument as an oid: a number, or a text of digits.
fn oid_argument(arguments: &[ScalarValue], position: usize) -> Option<i32> {
    let value = arguments.get(position)?;
    if let Some(text) = text_argument(arguments, position) {
        return text.trim().parse().ok();
    }
    match value.cast_to(&DataType::Int64).ok()? {
        ScalarValue::Int64(value) => i32::try_from(value?).ok(),
        _ => None,
    }
}

/// A relation given by oid or by name.
fn relation_argument(context: &Context<'_>, arguments: &[ScalarValue]) -> Option<i32> {
    oid_argument(arguments, 0).or_else(|| context.relation(&text_argument(arguments, 0)?))
}

fn undefined(code: SqlState, message: String) -> DataFusionError {
    DataFusionError::External(Box::new(PlanError::new(code, message)))
}

fn current_schemas(context: &Context<'_>, arguments: &[ScalarValue]) -> Result<ScalarValue> {
    let with_system = matches!(arguments.first(), Some(ScalarValue::Boolean(Some(true))));
    let mut names: Vec<ScalarValue> = Vec::new();
    if with_system && !context.session.search_path.iter().any(|schema| schema == "pg_catalog") {
        names.push(ScalarValue::from("pg_catalog"));
    }
    let there = context
        .session
        .search_path
        .iter()
        .filter(|schema| is_system_schema(schema) || context.catalog.schemas().contains_key(schema.as_str()));
    names.extend(there.map(|schema| ScalarValue::from(schema.as_str())));
    let list: Arc<ListArray> = ScalarValue::new_list(&names, &DataType::Utf8, true);
    Ok(ScalarValue::List(list))
}

fn current_schema(context: &Context<'_>, _: &[ScalarValue]) -> Result<ScalarValue> {
    let there = |schema: &&String| is_system_schema(schema) || context.catalog.schemas().contains_key(schema.as_str());
    optional_text(context.session.search_path.iter().find(there).cloned())
}

fn user_by_id(context: &Context<'_>, arguments: &[ScalarValue]) -> Result<ScalarValue> {
    match oid_argument(arguments, 0) {
        None => optional_text(None),
        Some(OWNER_OID) => text(context.session.user.clone()),
        Some(other) => text(format!("unknown (OID={other})")),
    }
}

fn is_visible(context: &Context<'_>, arguments: &[ScalarValue]) -> Result<ScalarValue> {
    let Some(oid) = oid_argument(arguments, 0) else { return Ok(ScalarValue::Boolean(None)) };
    let oid = tables::table_of_index(oid).map_or(oid, tables::oid);
    let visible = match context.object(oid) {
        Some(object) => context
            .catalog
            .find(None, &object.name, &context.session.search_path)
            .is_some_and(|found| found.id == object.id),
        None => oid < 16_384,
    };
    Ok(ScalarValue::Boolean(Some(visible)))
}

fn format_type(_: &Context<'_>, arguments: &[ScalarValue]) -> Result<ScalarValue> {
    match oid_argument(arguments, 0) {
        None => optional_text(None),
        Some(oid) => text(types::format_type(oid, oid_argument(arguments, 1))),
    }
}

fn first_text(_: &Context<'_>, arguments: &[ScalarValue]) -> Result<ScalarValue> {
    optional_text(text_argument(arguments, 0))
}

fn index_definition(context: &Context<'_>, arguments: &[ScalarValue]) -> Result<ScalarValue> {
    let object = oid_argument(arguments, 0).and_then(tables::table_of_index).and_then(|id| context.catalog.object(id));
    let Some(object) = object else { return optional_text(None) };
    match oid_argument(arguments, 1).filter(|column| *column > 0).and_then(|column| usize::try_from(column - 1).ok()) {
        Some(column) => optional_text(tables::key_columns(object).get(column).cloned()),
        None => text(tables::index_definition(object)),
    }
}

fn constraint_definition(context: &Context<'_>, arguments: &[ScalarValue]) -> Result<ScalarValue> {
    let object = oid_argument(arguments, 0).and_then(tables::table_of_index).and_then(|id| context.catalog.object(id));
    optional_text(object.map(|object| format!("PRIMARY KEY ({})", tables::key_columns(object).join(", "))))
}

fn view_definition(context: &Context<'_>, arguments: &[ScalarValue]) -> Result<ScalarValue> {
    let object = relation_argument(context, arguments).and_then(|oid| context.object(oid));
    optional_text(object.and_then(|object| tables::view_definition(object)).map(|query| {
        let query = query.trim().trim_end_matches(';');
        format!(" {query};")
    }))
}

fn to_regclass(context: &Context<'_>, arguments: &[ScalarValue]) -> Result<ScalarValue> {
    int(relation_argument(context, arguments))
}

fn regclass_in(context: &Context<'_>, arguments: &[ScalarValue]) -> Result<ScalarValue> {
    if arguments.first().is_none_or(ScalarValue::is_null) {
        return int(None);
    }
    match relation_argument(context, arguments) {
        Some(oid) => int(Some(oid)),
        None => {
            let name = text_argument(arguments, 0).unwrap_or_default();
            Err(undefined(SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist")))
        }
    }
}

fn regclass_out(context: &Context<'_>, arguments: &[ScalarValue]) -> Result<ScalarValue> {
    let Some(oid) = oid_argument(arguments, 0) else { return optional_text(None) };
    if let Some(object) = tables::table_of_index(oid).and_then(|id| context.catalog.object(id)) {
        return text(format!("{}_pkey", object.name));
    }
    let Some(object) = context.object(oid) else { return text(oid.to_string()) };
    let mut name = object.name.clone();
    if tables::oid(object.id) != oid {
        name.push_str(crate::catalog::ERRORS_SUFFIX);
    }
    let found = context.catalog.find(None, &object.name, &context.session.search_path);
    let quoted = quoted(&name);
    if found.is_some_and(|found| found.id == object.id) {
        text(quoted)
    } else {
        text(format!("{}.{quoted}", object.schema))
    }
}

fn quoted(name: &str) -> String {
    let plain = name.chars().all(|c| c.is_ascii_lowercase() || c == '_' || c.is_ascii_digit())
        && !name.starts_with(|c: char| c.is_ascii_digit());
    if plain { name.to_owned() } else { format!("\"{}\"", name.replace('"', "\"\"")) }
}

fn quote_ident(_: &Context<'_>, arguments: &[ScalarValue]) -> Result<ScalarValue> {
    optional_text(text_argument(arguments, 0).map(|name| quoted(&name)))
}

fn type_argument(arguments: &[ScalarValue]) -> Option<i32> {
    oid_argument(arguments, 0).or_else(|| {
        let name = text_argument(arguments, 0)?;
        types::of_text(name.trim().trim_start_matches("pg_catalog.")).map(|found| found.oid)
    })
}

fn to_regtype(_: &Context<'_>, arguments: &[ScalarValue]) -> Result<ScalarValue> {
    int(type_argument(arguments))
}

fn regtype_in(_: &Context<'_>, arguments: &[ScalarValue]) -> Result<ScalarValue> {
    if arguments.first().is_none_or(ScalarValue::is_null) {
        return int(None);
    }
    match type_argument(arguments) {
        Some(oid) => int(Some(oid)),
        None => {
            let name = text_argument(arguments, 0).unwrap_or_default();
            Err(undefined(SqlState::UNDEFINED_OBJECT, format!("type \"{name}\" does not exist")))
        }
    }
}

fn regnamespace_in(context: &Context<'_>, arguments: &[ScalarValue]) -> Result<ScalarValue> {
    if let Some(oid) = oid_argument(arguments, 0) {
        return int(Some(oid));
    }
    let Some(name) = text_argument(arguments, 0) else { return int(None) };
    let name = identifiers(&name).and_then(|mut parts| parts.pop()).unwrap_or_default();
    match tables::schema_oid(context.catalog, &name) {
        Some(oid) => int(Some(oid)),
        None => Err(undefined(SqlState::INVALID_SCHEMA_NAME, format!("schema \"{name}\" does not exist"))),
    }
}

fn regnamespace_out(context: &Context<'_>, arguments: &[ScalarValue]) -> Result<ScalarValue> {
    let Some(oid) = oid_argument(arguments, 0) else { return optional_text(None) };
    let name = match oid {
        PG_CATALOG_OID => Some("pg_catalog".to_owned()),
        INFORMATION_SCHEMA_OID => Some("information_schema".to_owned()),
        _ => context
            .catalog
            .schemas()
            .keys()
            .find(|name| tables::schema_oid(context.catalog, name) == Some(oid))
            .cloned(),
    };
    text(name.unwrap_or_else(|| oid.to_string()))
}

fn type_of(context: &Context<'_>, _: &[ScalarValue]) -> Result<ScalarValue> {
    match context.argument_types.first() {
        None => optional_text(None),
        Some(field) if field.data_type() == &DataType::Null => text("unknown"),
        Some(field) => text(types::format_type(types::of_field(field).oid, None)),
    }
}

fn encoding(_: &Context<'_>, arguments: &[ScalarValue]) -> Result<ScalarValue> {
    text(if oid_argument(arguments, 0) == Some(6) { "UTF8" } else { "" })
}

fn pretty_size(_: &Context<'_>, arguments: &[ScalarValue]) -> Result<ScalarValue> {
    match arguments.first().map(|value| value.cast_to(&DataType::Int64)) {
        Some(Ok(ScalarValue::Int64(Some(bytes)))) => {
            const UNITS: [&str; 5] = ["bytes", "kB", "MB", "GB", "TB"];
            let (mut size, mut unit) = (bytes, 0);
            while size.abs() >= 10_240 && unit + 1 < UNITS.len() {
                size /= 1024;
                unit += 1;
            }
            text(format!("{size} {}", UNITS[unit]))
        }
        _ => optional_text(None),
    }
}

/// What a function returns.
#[derive(Clone, Copy)]
enum Returns {
    Text,
    Bool,
    Int8,
    Int4,
    Oid,
    Texts,
}

impl Returns {
    fn field(self, name: &str) -> FieldRef {
        let oid = [("pg.oid_alias".to_owned(), "oid".to_owned())].into();
        Arc::new(match self {
            Returns::Text => Field::new(name, DataType::Utf8, true),
            Returns::Bool => Field::new(name, DataType::Boolean, true),
            Returns::Int8 => Field::new(name, DataType::Int64, true),
            Returns::Int4 => Field::new(name, DataType::Int32, true),
            Returns::Oid => Field::new(name, DataType::Int32, true).with_metadata(oid),
            Returns::Texts => Field::new(name, DataType::new_list(DataType::Utf8, true), true),
        })
    }
}

/// Functions of the catalog only: they may be folded.
const CATALOG_FUNCTIONS: &[(&str, Returns, Body)] = &[
    ("version", Returns::Text, |_, _| text(format!("PostgreSQL {}", crate::session::settings::SERVER_VERSION))),
    ("format_type", Returns::Text, format_type),
    ("obj_description", Returns::Text, no_text),
    ("col_description", Returns::Text, no_text),
    ("shobj_description", Returns::Text, no_text),
    ("pg_get_expr", Returns::Text, first_text),
    ("pg_get_indexdef", Returns::Text, index_definition),
    ("pg_get_constraintdef", Returns::Text, constraint_definition),
    ("pg_get_ruledef", Returns::Text, no_text),
    ("pg_get_triggerdef", Returns::Text, no_text),
    ("pg_get_partkeydef", Returns::Text, no_text),
    ("pg_get_function_result", Returns::Text, no_text),
    ("pg_get_function_arguments", Returns::Text, no_text),
    ("pg_get_function_identity_arguments", Returns::Text, no_text),
    ("pg_get_functiondef", Returns::Text, no_text),
    ("pg_get_serial_sequence", Returns::Text, no_text),
    ("pg_get_statisticsobjdef_columns", Returns::Text, no_text),
    ("pg_tablespace_location", Returns::Text, no_text),
    ("pg_encoding_to_char", Returns::Text, encoding),
    ("pg_client_encoding", Returns::Text, |_, _| text("UTF8")),
    ("pg_size_pretty", Returns::Text, pretty_size),
    ("quote_ident", Returns::Text, quote_ident),
    ("pg_typeof", Returns::Text, type_of),
    ("to_regtype", Returns::Oid, to_regtype),
    ("regtype", Returns::Oid, regtype_in),
    ("regtypeout", Returns::Text, format_type),
    ("pg_type_is_visible", Returns::Bool, yes),
    ("pg_function_is_visible", Returns::Bool, yes),
    ("pg_operator_is_visible", Returns::Bool, yes),
    ("pg_opclass_is_visible", Returns::Bool, yes),
    ("pg_collation_is_visible", Returns::Bool, yes),
    ("pg_ts_config_is_visible", Returns::Bool, yes),
    ("pg_ts_dict_is_visible", Returns::Bool, yes),
    ("pg_statistics_obj_is_visible", Returns::Bool, yes),
    ("has_table_privilege", Returns::Bool, yes),
    ("has_schema_privilege", Returns::Bool, yes),
    ("has_database_privilege", Returns::Bool, yes),
    ("has_column_privilege", Returns::Bool, yes),
    ("has_any_column_privilege", Returns::Bool, yes),
    ("has_function_privilege", Returns::Bool, yes),
    ("has_type_privilege", Returns::Bool, yes),
    ("has_sequence_privilege", Returns::Bool, yes),
    ("has_tablespace_privilege", Returns::Bool, yes),
    ("pg_has_role", Returns::Bool, yes),
    ("pg_is_in_recovery", Returns::Bool, no),
    ("pg_is_other_temp_schema", Returns::Bool, no),
    ("pg_relation_is_publishable", Returns::Bool, no),
    ("row_security_active", Returns::Bool, no),
    ("pg_relation_size", Returns::Int8, zero),
    ("pg_table_size", Returns::Int8, zero),
    ("pg_indexes_size", Returns::Int8, zero),
    ("pg_total_relation_size", Returns::Int8, zero),
    ("pg_database_size", Returns::Int8, zero),
];

/// Functions of the session.
const SESSION_FUNCTIONS: &[(&str, Returns, Body)] = &[
    ("current_database", Returns::Text, |context, _| text(context.session.database.clone())),
    ("current_catalog", Returns::Text, |context, _| text(context.session.database.clone())),
    ("current_schema", Returns::Text, current_schema),
    ("current_schemas", Returns::Texts, current_schemas),
    ("current_user", Returns::Text, |context, _| text(context.session.user.clone())),
    ("session_user", Returns::Text, |context, _| text(context.session.user.clone())),
    ("user", Returns::Text, |context, _| text(context.session.user.clone())),
    ("current_role", Returns::Text, |context, _| text(context.session.user.clone())),
    ("pg_backend_pid", Returns::Int4, |_, _| int(i32::try_from(std::process::id()).ok())),
    ("pg_get_userbyid", Returns::Text, user_by_id),
    ("pg_table_is_visible", Returns::Bool, is_visible),
    ("pg_get_viewdef", Returns::Text, view_definition),
    ("to_regclass", Returns::Oid, to_regclass),
    ("regclass", Returns::Oid, regclass_in),
    ("regclassout", Returns::Text, regclass_out),
    ("regnamespace", Returns::Oid, regnamespace_in),
    ("regnamespaceout", Returns::Text, regnamespace_out),
    ("inet_server_addr", Returns::Text, no_text),
    ("inet_client_addr", Returns::Text, no_text),
];

/// All functions, over a catalog that others keep up to date.
pub fn all(catalog: &Arc<ArcSwapOption<CatalogVersion>>) -> Vec<Arc<ScalarUDF>> {
    let of_catalog = CATALOG_FUNCTIONS.iter().map(|function| (function, Volatility::Stable));
    let of_session = SESSION_FUNCTIONS.iter().map(|function| (function, Volatility::Volatile));
    of_catalog
        .chain(of_session)
        .map(|((name, returns, body), volatility)| {
            let anything = TypeSignature::OneOf(vec![TypeSignature::Nullary, TypeSignature::VariadicAny]);
            Arc::new(ScalarUDF::new_from_impl(SystemFunction {
                name,
                signature: Signature::new(anything, volatility),
                returns: returns.field(name),
                body: *body,
                catalog: catalog.clone(),
            }))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::identifiers;

    #[test]
    fn names_in_texts_are_read_as_identifiers() {
        assert_eq!(identifiers("Public.T"), Some(vec!["public".into(), "t".into()]));
        assert_eq!(identifiers("\"a.b\".\"C\"\"d\""), Some(vec!["a.b".into(), "C\"d".into()]));
        assert_eq!(identifiers(""), None);
        assert_eq!(identifiers("a..b"), None);
    }
}
