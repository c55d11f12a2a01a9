//! The rows that JSON gives: json_object_keys, json_array_elements, json_each.
//!
//! Each is an array of what the rows hold; in FROM and in the select list the planner puts `unnest` around it.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, ListBuilder, StringBuilder};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::ScalarUDF;
use plan::json::{Json, Value};
use plan::{PlanError, SqlState};

use super::access::plain_text;
use super::function::{Call, Flavor, JsonFunction, Output, external, parse, text_list};
use super::value::members;
use crate::functions::scalar::overload::is_text;
use crate::functions::{Example, FunctionDef, Implementation};

macro_rules! definition {
    ($(#[$doc:meta])* $constant:ident, $name:literal, $form:literal, $text:literal, $query:literal, $result:literal, $make:expr) => {
        $(#[$doc])*
        pub static $constant: FunctionDef = FunctionDef {
            name: $name,
            forms: &[$form],
            text: $text,
            examples: &[Example { query: $query, result: $result }],
            implementation: Implementation::Scalar($make),
        };
    };
}

definition!(
    /// `json_object_keys`
    KEYS,
    "json_object_keys",
    "json_object_keys(object json) → rows of text",
    "The keys of an object.",
    r#"SELECT json_object_keys('{"b": 1, "a": 2}')"#,
    "{b,a}",
    || texts("json_object_keys", &[], Flavor::Json, keys)
);
definition!(
    /// `jsonb_object_keys`
    KEYS_B,
    "jsonb_object_keys",
    "jsonb_object_keys(object jsonb) → rows of text",
    "The keys of an object.",
    r#"SELECT jsonb_object_keys('{"b": 1, "a": 2}')"#,
    "{a,b}",
    || texts("jsonb_object_keys", &[], Flavor::Jsonb, keys)
);
definition!(
    /// The values beside `json_object_keys`.
    VALUES,
    "json_object_values",
    "json_object_values(object json) → rows of json",
    "The values of an object, in the order of `json_object_keys`. `json_each` gives both.",
    r#"SELECT json_object_values('{"b": 1, "a": 2}')"#,
    "{1,2}",
    || jsons("json_object_values", Flavor::Json, values)
);
definition!(
    /// The values beside `jsonb_object_keys`.
    VALUES_B,
    "jsonb_object_values",
    "jsonb_object_values(object jsonb) → rows of jsonb",
    "The values of an object, in the order of `jsonb_object_keys`. `jsonb_each` gives both.",
    r#"SELECT jsonb_object_values('{"b": 1, "a": 2}')"#,
    "{2,1}",
    || jsons("jsonb_object_values", Flavor::Jsonb, values)
);
definition!(
    /// The texts of values beside `json_object_keys`.
    VALUES_TEXT,
    "json_object_values_text",
    "json_object_values_text(object json) → rows of text",
    "The values of an object as texts. `json_each_text` gives keys and values.",
    r#"SELECT json_object_values_text('{"b": "x", "a": null}')"#,
    "{x,NULL}",
    || texts("json_object_values_text", &[], Flavor::Json, values_text)
);
definition!(
    /// The texts of values beside `jsonb_object_keys`.
    VALUES_TEXT_B,
    "jsonb_object_values_text",
    "jsonb_object_values_text(object jsonb) → rows of text",
    "The values of an object as texts. `jsonb_each_text` gives keys and values.",
    r#"SELECT jsonb_object_values_text('{"b": "x", "a": null}')"#,
    "{NULL,x}",
    || texts("jsonb_object_values_text", &[], Flavor::Jsonb, values_text)
);
definition!(
    /// `json_array_elements`
    ELEMENTS,
    "json_array_elements",
    "json_array_elements(items json) → rows of json",
    "The items of an array.",
    "SELECT json_array_elements('[1, 2]')",
    "{1,2}",
    || jsons("json_array_elements", Flavor::Json, elements)
);
definition!(
    /// `jsonb_array_elements`
    ELEMENTS_B,
    "jsonb_array_elements",
    "jsonb_array_elements(items jsonb) → rows of jsonb",
    "The items of an array.",
    "SELECT jsonb_array_elements('[1, 2]')",
    "{1,2}",
    || jsons("jsonb_array_elements", Flavor::Jsonb, elements)
);
definition!(
    /// `json_array_elements_text`
    ELEMENTS_TEXT,
    "json_array_elements_text",
    "json_array_elements_text(items json) → rows of text",
    "The items of an array as texts. `jsonb_array_elements_text` is the same for jsonb.",
    r#"SELECT json_array_elements_text('["a", null]')"#,
    "{a,NULL}",
    || texts("json_array_elements_text", &["jsonb_array_elements_text"], Flavor::OfArgument, elements_text)
);

type Items = Vec<Option<String>>;

fn choose(types: &[DataType], output: Output) -> Option<(Vec<DataType>, Output)> {
    let fits = types.len() == 1 && types.iter().all(is_text);
    fits.then(|| (vec![DataType::Utf8], output))
}

fn texts(
    name: &'static str,
    aliases: &[&str],
    flavor: Flavor,
    evaluate: fn(&[ArrayRef], &Call<'_>) -> Result<ArrayRef>,
) -> ScalarUDF {
    JsonFunction::udf(name, aliases, flavor, |types| choose(types, Output::Of(text_list())), evaluate)
}

fn jsons(name: &'static str, flavor: Flavor, evaluate: fn(&[ArrayRef], &Call<'_>) -> Result<ArrayRef>) -> ScalarUDF {
    JsonFunction::udf(name, &[], flavor, |types| choose(types, Output::JsonList), evaluate)
}

fn lists(arguments: &[ArrayRef], items: impl Fn(&Json<'_>) -> Result<Items>) -> Result<ArrayRef> {
    let mut builder = ListBuilder::new(StringBuilder::new());
    for text in arguments[0].as_string::<i32>() {
        match text {
            None => builder.append(false),
            Some(text) => {
                for item in items(&parse(text)?)? {
                    builder.values().append_option(item);
                }
                builder.append(true);
            }
        }
    }
    Ok(Arc::new(builder.finish()))
}

fn wrong(what: &str, value: &Value<'_>) -> DataFusionError {
    let of = match value {
        Value::Array(_) => "an array",
        Value::Object(_) => "a non-array",
        _ => "a scalar",
    };
    let message = format!("cannot {what} {of}");
    external(PlanError::new(SqlState::INVALID_PARAMETER_VALUE, message))
}

fn object<'v, 'a>(json: &'v Json<'a>, call: &Call<'_>, what: &str) -> Result<Vec<(&'v str, &'v Json<'a>)>> {
    match &json.value {
        value @ Value::Object(_) => Ok(members(value, call.binary)),
        other => Err(wrong(what, other)),
    }
}

fn items_of<'v, 'a>(json: &'v Json<'a>) -> Result<&'v [Json<'a>]> {
    match &json.value {
        Value::Array(items) => Ok(items),
        other => Err(wrong("extract elements from", other)),
    }
}

fn keys(arguments: &[ArrayRef], call: &Call<'_>) -> Result<ArrayRef> {
    lists(arguments, |json| {
        let members = object(json, call, "call json_object_keys on")?;
        Ok(members.into_iter().map(|(key, _)| Some(key.to_string())).collect())
    })
}

fn values(arguments: &[ArrayRef], call: &Call<'_>) -> Result<ArrayRef> {
    lists(arguments, |json| {
        let members = object(json, call, "deconstruct")?;
        members.into_iter().map(|(_, member)| call.text(member).map(Some)).collect()
    })
}

fn values_text(arguments: &[ArrayRef], call: &Call<'_>) -> Result<ArrayRef> {
    lists(arguments, |json| {
        let members = object(json, call, "deconstruct")?;
        members.into_iter().map(|(_, member)| plain_text(member, call)).collect()
    })
}

fn elements(arguments: &[ArrayRef], call: &Call<'_>) -> Result<ArrayRef> {
    lists(arguments, |json| items_of(json)?.iter().map(|item| call.text(item).map(Some)).collect())
}

fn elements_text(arguments: &[ArrayRef], call: &Call<'_>) -> Result<ArrayRef> {
    lists(arguments, |json| items_of(json)?.iter().map(|item| plain_text(item, call)).collect())
}
