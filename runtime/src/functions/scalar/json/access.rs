//! Members and items of JSON: the operators `->`, `->>`, `#>`, `#>>` and the functions behind them.

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;
use plan::json::{Json, Value};

use super::function::{Call, Flavor, JsonFunction, Output, each_json, is_texts, text_list, texts_at};
use crate::functions::scalar::overload::is_text;
use crate::functions::{Example, FunctionDef, Implementation};

/// `->`
pub static GET: FunctionDef = FunctionDef {
    name: "json_get",
    forms: &["json_get(value jsonb, key text) → jsonb", "json_get(value jsonb, position integer) → jsonb"],
    text: "The member of a key, or the item of a position, from 0, and from the end if it is negative. NULL if there is \
           none. `value -> key` is the same. Of json it is json, as it was written.",
    examples: &[
        Example { query: r#"SELECT json_get('{"a": {"b": 1}}', 'a')"#, result: r#"{"b": 1}"# },
        Example { query: "SELECT json_get('[1, 2, 3]', -1)", result: "3" },
    ],
    implementation: Implementation::Scalar(|| {
        JsonFunction::udf(
            "json_get",
            &[],
            Flavor::OfArgument,
            |types| choose_get(types, Output::Json),
            |arguments, call| get(arguments, |json| call.text(json).map(Some)),
        )
    }),
};

/// `->>`
pub static GET_TEXT: FunctionDef = FunctionDef {
    name: "json_get_text",
    forms: &["json_get_text(value jsonb, key text) → text", "json_get_text(value jsonb, position integer) → text"],
    text: "As `json_get`, but a text: without quotes, and NULL for null. `value ->> key` is the same.",
    examples: &[
        Example { query: r#"SELECT json_get_text('{"a": "x"}', 'a')"#, result: "x" },
        Example { query: "SELECT json_get_text('[null]', 0)", result: "NULL" },
    ],
    implementation: Implementation::Scalar(|| {
        JsonFunction::udf(
            "json_get_text",
            &[],
            Flavor::OfArgument,
            |types| choose_get(types, Output::Of(DataType::Utf8)),
            |arguments, call| get(arguments, |json| plain_text(json, call)),
        )
    }),
};

/// `#>`
pub static PATH: FunctionDef = FunctionDef {
    name: "json_extract_path",
    forms: &["json_extract_path(value json, VARIADIC steps text) → json"],
    text: "The value at the end of a path of keys and positions; NULL if there is none. `value #> '{a,b}'` is the same.",
    examples: &[Example { query: r#"SELECT json_extract_path('{"a": [1, {"b": 2}]}', 'a', '1', 'b')"#, result: "2" }],
    implementation: Implementation::Scalar(|| extract("json_extract_path", Flavor::Json)),
};

/// `#>` of jsonb
pub static PATH_B: FunctionDef = FunctionDef {
    name: "jsonb_extract_path",
    forms: &["jsonb_extract_path(value jsonb, VARIADIC steps text) → jsonb"],
    text: "As `json_extract_path`, of jsonb.",
    examples: &[Example { query: r#"SELECT jsonb_extract_path('{"a":{"b":[1,2]}}', 'a', 'b')"#, result: "[1, 2]" }],
    implementation: Implementation::Scalar(|| extract("jsonb_extract_path", Flavor::Jsonb)),
};

/// `#>` of either type
pub static OPERATOR_PATH: FunctionDef = FunctionDef {
    name: "json_get_path",
    forms: &["json_get_path(value jsonb, path text[]) → jsonb"],
    text: "The operator `#>`.",
    examples: &[Example { query: r#"SELECT json_get_path('{"a": [1, 2]}', make_array('a', '1'))"#, result: "2" }],
    implementation: Implementation::Scalar(|| extract("json_get_path", Flavor::OfArgument)),
};

/// `#>>`
pub static PATH_TEXT: FunctionDef = FunctionDef {
    name: "json_extract_path_text",
    forms: &["json_extract_path_text(value json, VARIADIC steps text) → text"],
    text: "As `json_extract_path`, but a text: without quotes, and NULL for null. `value #>> '{a,b}'` is the same; so is \
           `jsonb_extract_path_text`.",
    examples: &[Example { query: r#"SELECT json_extract_path_text('{"a": {"b": "x"}}', 'a', 'b')"#, result: "x" }],
    implementation: Implementation::Scalar(|| {
        JsonFunction::udf(
            "json_extract_path_text",
            &["jsonb_extract_path_text", "json_get_path_text"],
            Flavor::OfArgument,
            |types| choose_path(types, Output::Of(DataType::Utf8)),
            |arguments, call| path(arguments, |json| plain_text(json, call)),
        )
    }),
};

fn extract(name: &'static str, flavor: Flavor) -> ScalarUDF {
    JsonFunction::udf(
        name,
        &[],
        flavor,
        |types| choose_path(types, Output::Json),
        |arguments, call| path(arguments, |json| call.text(json).map(Some)),
    )
}

fn choose_get(types: &[DataType], output: Output) -> Option<(Vec<DataType>, Output)> {
    match types {
        [value, key] if is_text(value) && is_text(key) => Some((vec![DataType::Utf8; 2], output)),
        [value, key] if is_text(value) && key.is_integer() => Some((vec![DataType::Utf8, DataType::Int64], output)),
        _ => None,
    }
}

fn choose_path(types: &[DataType], output: Output) -> Option<(Vec<DataType>, Output)> {
    let (value, steps) = types.split_first()?;
    match steps {
        _ if !is_text(value) => None,
        [path] if is_texts(path) => Some((vec![DataType::Utf8, text_list()], output)),
        steps if !steps.is_empty() && steps.iter().all(is_text) => Some((vec![DataType::Utf8; types.len()], output)),
        _ => None,
    }
}

fn get(arguments: &[ArrayRef], text: impl Fn(&Json<'_>) -> Result<Option<String>>) -> Result<ArrayRef> {
    let by_key = arguments[1].data_type() == &DataType::Utf8;
    each_json(arguments, |json, row| {
        let found = if by_key {
            json.value.member(arguments[1].as_string::<i32>().value(row))
        } else {
            json.value.item(arguments[1].as_primitive::<Int64Type>().value(row))
        };
        found.map_or(Ok(None), &text)
    })
}

fn path(arguments: &[ArrayRef], text: impl Fn(&Json<'_>) -> Result<Option<String>>) -> Result<ArrayRef> {
    let as_array = arguments[1].data_type() != &DataType::Utf8;
    each_json(arguments, |json, row| {
        let steps: Vec<Option<String>> = if as_array {
            texts_at(&arguments[1], row)
        } else {
            arguments[1..].iter().map(|step| Some(step.as_string::<i32>().value(row).to_string())).collect()
        };
        let mut at = json;
        for step in steps {
            match step.and_then(|step| at.value.step(&step)) {
                Some(next) => at = next,
                None => return Ok(None),
            }
        }
        text(at)
    })
}

/// A value as a text: without quotes; none for null.
pub fn plain_text(json: &Json<'_>, call: &Call<'_>) -> Result<Option<String>> {
    match &json.value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.to_string())),
        _ => call.text(json).map(Some),
    }
}
