//! Whether JSON holds something: the operators `@>`, `<@`, `?`, `?|` and `?&`.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;
use plan::json::{Json, Value};

use super::function::{Evaluate, Flavor, JsonFunction, Output, external, is_texts, parse, text_list, texts_at};
use crate::functions::scalar::overload::is_text;
use crate::functions::{Example, FunctionDef, Implementation};

/// `@>`
pub static CONTAINS: FunctionDef = FunctionDef {
    name: "jsonb_contains",
    forms: &["jsonb_contains(value jsonb, part jsonb) → boolean"],
    text: "Whether the members and items of the second are among those of the first, at every level. `value @> part` and \
           `part <@ value` are the same.",
    examples: &[
        Example { query: r#"SELECT jsonb_contains('{"a": 1, "b": [1, 2]}', '{"b": [2]}')"#, result: "t" },
        Example { query: r#"SELECT jsonb_contains('{"a": 1}', '{"a": 2}')"#, result: "f" },
    ],
    implementation: Implementation::Scalar(|| {
        JsonFunction::udf("jsonb_contains", &[], Flavor::Jsonb, choose_two, |arguments, _| {
            pairs(arguments, |value, row| {
                contains(&value.value, &parse(arguments[1].as_string::<i32>().value(row))?.value, true)
            })
        })
    }),
};

/// `?`
pub static EXISTS: FunctionDef = FunctionDef {
    name: "jsonb_exists",
    forms: &["jsonb_exists(value jsonb, key text) → boolean"],
    text: "Whether a text is a key, or an item of an array. `value ? key` is the same.",
    examples: &[Example { query: r#"SELECT jsonb_exists('{"a": 1}', 'a')"#, result: "t" }],
    implementation: Implementation::Scalar(|| {
        JsonFunction::udf("jsonb_exists", &[], Flavor::Jsonb, choose_two, |arguments, _| {
            pairs(arguments, |value, row| Ok(has(&value.value, arguments[1].as_string::<i32>().value(row))))
        })
    }),
};

/// `?|`
pub static EXISTS_ANY: FunctionDef = FunctionDef {
    name: "jsonb_exists_any",
    forms: &["jsonb_exists_any(value jsonb, keys text[]) → boolean"],
    text: "Whether one of several texts is a key, or an item of an array. `value ?| keys` is the same.",
    examples: &[Example { query: r#"SELECT jsonb_exists_any('{"a": 1}', make_array('b', 'a'))"#, result: "t" }],
    implementation: Implementation::Scalar(|| keys("jsonb_exists_any", |arguments, _| known_keys(arguments, true))),
};

/// `?&`
pub static EXISTS_ALL: FunctionDef = FunctionDef {
    name: "jsonb_exists_all",
    forms: &["jsonb_exists_all(value jsonb, keys text[]) → boolean"],
    text: "Whether all of several texts are keys, or items of an array. `value ?& keys` is the same.",
    examples: &[Example { query: r#"SELECT jsonb_exists_all('{"a": 1}', make_array('b', 'a'))"#, result: "f" }],
    implementation: Implementation::Scalar(|| keys("jsonb_exists_all", |arguments, _| known_keys(arguments, false))),
};

fn keys(name: &'static str, evaluate: Evaluate) -> ScalarUDF {
    JsonFunction::udf(name, &[], Flavor::Jsonb, choose_keys, evaluate)
}

fn known_keys(arguments: &[ArrayRef], any: bool) -> Result<ArrayRef> {
    pairs(arguments, |value, row| {
        let keys = texts_at(&arguments[1], row);
        let mut known = keys.iter().flatten().map(|key| has(&value.value, key));
        Ok(if any { known.any(|known| known) } else { known.all(|known| known) })
    })
}

fn choose_two(types: &[DataType]) -> Option<(Vec<DataType>, Output)> {
    let fits = types.len() == 2 && types.iter().all(is_text);
    fits.then(|| (vec![DataType::Utf8; 2], Output::Of(DataType::Boolean)))
}

fn choose_keys(types: &[DataType]) -> Option<(Vec<DataType>, Output)> {
    match types {
        [value, keys] if is_text(value) && (is_texts(keys) || is_text(keys)) => {
            Some((vec![DataType::Utf8, text_list()], Output::Of(DataType::Boolean)))
        }
        _ => None,
    }
}

fn pairs(arguments: &[ArrayRef], mut value: impl FnMut(&Json<'_>, usize) -> Result<bool>) -> Result<ArrayRef> {
    let jsons = arguments[0].as_string::<i32>();
    let mut results = Vec::with_capacity(jsons.len());
    for row in 0..jsons.len() {
        let known = jsons.is_valid(row) && arguments[1].is_valid(row);
        results.push(if known { Some(value(&parse(jsons.value(row))?, row)?) } else { None });
    }
    Ok(Arc::new(BooleanArray::from(results)))
}

fn has(value: &Value<'_>, key: &str) -> bool {
    match value {
        Value::Object(_) => value.member(key).is_some(),
        Value::Array(items) => items.iter().any(|item| matches!(&item.value, Value::String(text) if text == key)),
        Value::String(text) => text == key,
        _ => false,
    }
}

/// Whether two values that are no arrays or objects are equal. Numbers are if they print alike without zeros at the end.
fn same(left: &Value<'_>, right: &Value<'_>) -> Result<bool> {
    Ok(match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::String(left), Value::String(right)) => left == right,
        (Value::Number(_), Value::Number(_)) => {
            let digits = |value: &Value<'_>| -> Result<String> {
                let text = value.canonical().map_err(external)?;
                let point = text.contains('.');
                Ok(if point { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text })
            };
            digits(left)? == digits(right)?
        }
        _ => false,
    })
}

/// Whether the second is part of the first. An array holds a single value too, at the outermost level.
fn contains(whole: &Value<'_>, part: &Value<'_>, outermost: bool) -> Result<bool> {
    match (whole, part) {
        (Value::Object(_), Value::Object(members)) => {
            for (key, wanted) in members {
                match whole.member(key) {
                    Some(found) if contains(&found.value, &wanted.value, false)? => {}
                    _ => return Ok(false),
                }
            }
            Ok(true)
        }
        (Value::Array(items), Value::Array(wanted)) => {
            for wanted in wanted {
                let mut found = false;
                for item in items {
                    found = found || contains(&item.value, &wanted.value, false)?;
                }
                if !found {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Value::Array(items), single) if outermost && !matches!(single, Value::Object(_)) => {
            for item in items {
                if same(&item.value, single)? {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => same(whole, part),
    }
}
