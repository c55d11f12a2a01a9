//! What a JSON value is, and how it looks: json_typeof, json_array_length, jsonb_pretty.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int32Array};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use plan::json::Value;
use plan::{PlanError, SqlState};

use super::function::{Call, Flavor, JsonFunction, Output, each_json, external, parse};
use crate::functions::scalar::overload::is_text;
use crate::functions::{Example, FunctionDef, Implementation};

/// `json_typeof`
pub static TYPE: FunctionDef = FunctionDef {
    name: "json_typeof",
    forms: &["json_typeof(value json) → text"],
    text: "`object`, `array`, `string`, `number`, `boolean` or `null`. `jsonb_typeof` is the same.",
    examples: &[Example { query: "SELECT json_typeof('[1]')", result: "array" }],
    implementation: Implementation::Scalar(|| {
        JsonFunction::udf(
            "json_typeof",
            &["jsonb_typeof"],
            Flavor::OfArgument,
            |types| choose(types, Output::Of(DataType::Utf8)),
            |arguments, _| each_json(arguments, |json, _| Ok(Some(type_of(&json.value).to_string()))),
        )
    }),
};

/// `json_array_length`
pub static LENGTH: FunctionDef = FunctionDef {
    name: "json_array_length",
    forms: &["json_array_length(value json) → integer"],
    text: "The number of items of an array. `jsonb_array_length` is the same.",
    examples: &[Example { query: "SELECT json_array_length('[1, [2, 3]]')", result: "2" }],
    implementation: Implementation::Scalar(|| {
        JsonFunction::udf(
            "json_array_length",
            &["jsonb_array_length"],
            Flavor::OfArgument,
            |types| choose(types, Output::Of(DataType::Int32)),
            length,
        )
    }),
};

/// `jsonb_pretty`
pub static PRETTY: FunctionDef = FunctionDef {
    name: "jsonb_pretty",
    forms: &["jsonb_pretty(value jsonb) → text"],
    text: "The value on a line for each member and item, indented.",
    examples: &[Example { query: "SELECT jsonb_pretty('5')", result: "5" }],
    implementation: Implementation::Scalar(|| {
        JsonFunction::udf(
            "jsonb_pretty",
            &[],
            Flavor::Jsonb,
            |types| choose(types, Output::Of(DataType::Utf8)),
            |arguments, _| each_json(arguments, |json, _| json.value.pretty().map(Some).map_err(external)),
        )
    }),
};

fn choose(types: &[DataType], output: Output) -> Option<(Vec<DataType>, Output)> {
    let fits = types.len() == 1 && types.iter().all(is_text);
    fits.then(|| (vec![DataType::Utf8], output))
}

fn type_of(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn length(arguments: &[ArrayRef], _call: &Call<'_>) -> Result<ArrayRef> {
    let jsons = arguments[0].as_string::<i32>();
    let lengths = jsons.iter().map(|text| {
        let Some(text) = text else { return Ok(None) };
        match parse(text)?.value {
            Value::Array(items) => Ok(Some(items.len() as i32)),
            other => {
                let what = if matches!(other, Value::Object(_)) { "a non-array" } else { "a scalar" };
                let message = format!("cannot get array length of {what}");
                Err(external(PlanError::new(SqlState::INVALID_PARAMETER_VALUE, message)))
            }
        }
    });
    Ok(Arc::new(lengths.collect::<Result<Int32Array>>()?))
}
