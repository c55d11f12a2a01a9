//! `json_agg`, `jsonb_agg`, `json_object_agg` and `jsonb_object_agg`.

use std::collections::{BTreeMap, HashMap};

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::ScalarValue;
use plan::{PlanError, SqlState};

use super::call::GroupRows;
use super::json_text::{Form, key_text, quoted, separates_lines, value_text};
use super::{Method, OrderedFunction};
use crate::functions::{Example, FunctionDef, Implementation};

/// `json_agg`.
pub static JSON_AGG: FunctionDef = FunctionDef {
    name: "json_agg",
    forms: &["json_agg([DISTINCT] any [ORDER BY ...]) → json"],
    text: "All values, NULLs too, as a JSON array; NULL if there are no rows. Without ORDER BY the values are in their own order.",
    examples: &[Example {
        query: "SELECT json_agg(x ORDER BY x) FROM (VALUES ('a'), (NULL), ('b\"')) AS t(x)",
        result: "[\"a\", \"b\\\"\", null]",
    }],
    implementation: Implementation::Aggregate(|| OrderedFunction::udaf(&ARRAY)),
};

/// `jsonb_agg`.
pub static JSONB_AGG: FunctionDef = FunctionDef {
    name: "jsonb_agg",
    forms: &["jsonb_agg([DISTINCT] any [ORDER BY ...]) → jsonb"],
    text: "The same as `json_agg`, as jsonb.",
    examples: &[Example {
        query: "SELECT jsonb_agg(x ORDER BY x DESC) FROM (VALUES (1), (2)) AS t(x)",
        result: "[2, 1]",
    }],
    implementation: Implementation::Aggregate(|| OrderedFunction::udaf(&ARRAY_BINARY)),
};

/// `json_object_agg`.
pub static JSON_OBJECT_AGG: FunctionDef = FunctionDef {
    name: "json_object_agg",
    forms: &["json_object_agg(key any, value any [ORDER BY ...]) → json"],
    text: "An object of all keys and values; NULL if there are no rows. A key that is NULL is an error (`22023`).",
    examples: &[Example {
        query: "SELECT json_object_agg(k, v) FROM (VALUES ('a', 1), ('b', NULL)) AS t(k, v)",
        result: "{ \"a\" : 1, \"b\" : null }",
    }],
    implementation: Implementation::Aggregate(|| OrderedFunction::udaf(&OBJECT)),
};

/// `jsonb_object_agg`.
pub static JSONB_OBJECT_AGG: FunctionDef = FunctionDef {
    name: "jsonb_object_agg",
    forms: &["jsonb_object_agg(key any, value any [ORDER BY ...]) → jsonb"],
    text: "The same as `json_object_agg`, as jsonb: of several values of a key the last one stays.",
    examples: &[Example {
        query: "SELECT jsonb_object_agg(k, v ORDER BY v) FROM (VALUES ('bb', 1), ('a', 2), ('a', 3)) AS t(k, v)",
        result: "{\"a\": 3, \"bb\": 1}",
    }],
    implementation: Implementation::Aggregate(|| OrderedFunction::udaf(&OBJECT_BINARY)),
};

static ARRAY: Method = Method {
    name: "json_agg",
    aliases: &[],
    accept: |types| (types.len() == 1).then(|| types.to_vec()),
    result: |_| json_field("json"),
    keeps_nulls: true,
    sorts: false,
    within_group: false,
    compute: |rows| array(rows, Form::Text),
    ranks: None,
};

static ARRAY_BINARY: Method =
    Method { name: "jsonb_agg", result: |_| json_field("jsonb"), compute: |rows| array(rows, Form::Binary), ..ARRAY };

static OBJECT: Method = Method {
    name: "json_object_agg",
    accept: |types| (types.len() == 2).then(|| types.to_vec()),
    compute: object,
    ..ARRAY
};

static OBJECT_BINARY: Method = Method {
    name: "jsonb_object_agg",
    accept: |types| (types.len() == 2).then(|| types.to_vec()),
    result: |_| json_field("jsonb"),
    compute: object_binary,
    ..ARRAY
};

/// Text under the name of a type of JSON.
fn json_field(pg_type: &str) -> Field {
    let metadata = HashMap::from([("pg_type".to_string(), pg_type.to_string())]);
    Field::new("", DataType::Utf8, true).with_metadata(metadata)
}

fn array(rows: &GroupRows<'_>, form: Form) -> Result<ScalarValue, PlanError> {
    if rows.is_empty() {
        return rows.null();
    }
    let lines = form == Form::Text && separates_lines(rows.field(0));
    let mut text = String::from("[");
    for row in rows.positions() {
        let value = rows.value(0, row)?;
        if text.len() > 1 {
            text.push_str(", ");
            if lines && !value.is_null() {
                text.push_str("\n ");
            }
        }
        text.push_str(&value_text(&value, rows.field(0), form)?);
    }
    text.push(']');
    Ok(ScalarValue::Utf8(Some(text)))
}

fn key(rows: &GroupRows<'_>, row: usize) -> Result<String, PlanError> {
    let key = rows.value(0, row)?;
    if key.is_null() {
        return Err(PlanError::new(SqlState::INVALID_PARAMETER_VALUE, "field name must not be null"));
    }
    key_text(&key)
}

fn object(rows: &GroupRows<'_>) -> Result<ScalarValue, PlanError> {
    if rows.is_empty() {
        return rows.null();
    }
    let mut items = Vec::new();
    for row in rows.positions() {
        let value = value_text(&rows.value(1, row)?, rows.field(1), Form::Text)?;
        items.push(format!("{} : {value}", quoted(&key(rows, row)?)));
    }
    Ok(ScalarValue::Utf8(Some(format!("{{ {} }}", items.join(", ")))))
}

fn object_binary(rows: &GroupRows<'_>) -> Result<ScalarValue, PlanError> {
    if rows.is_empty() {
        return rows.null();
    }
    // Shorter keys come first.
    let mut items: BTreeMap<(usize, String), String> = BTreeMap::new();
    for row in rows.positions() {
        let key = key(rows, row)?;
        let value = value_text(&rows.value(1, row)?, rows.field(1), Form::Binary)?;
        items.insert((key.len(), key), value);
    }
    let items: Vec<String> = items.into_iter().map(|((_, key), value)| format!("{}: {value}", quoted(&key))).collect();
    Ok(ScalarValue::Utf8(Some(format!("{{{}}}", items.join(", ")))))
}
