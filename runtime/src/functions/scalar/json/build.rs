//! JSON made of SQL values: to_json, json_build_object, json_build_array, json_object, row_to_json, array_to_json.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;
use plan::json::quote;
use plan::{PlanError, SqlState};

use super::function::{Call, Flavor, JsonFunction, Output, external, is_texts, text_list, texts_at};
use super::value::JsonWriter;
use crate::delta::literal::ColumnText;
use crate::functions::scalar::overload::is_text;
use crate::functions::{Example, FunctionDef, Implementation};

/// `to_json`
pub static TO_JSON: FunctionDef = FunctionDef {
    name: "to_json",
    forms: &["to_json(value any) → json"],
    text: "A value as JSON: numbers, booleans and JSON as they are, arrays and rows by their parts, everything else as a \
           text. `row_to_json` and `array_to_json` are the same for rows and arrays.",
    examples: &[
        Example { query: r#"SELECT to_json('a"b')"#, result: r#""a\"b""# },
        Example { query: "SELECT to_json(make_array(1, 2))", result: "[1,2]" },
    ],
    implementation: Implementation::Scalar(|| {
        JsonFunction::udf("to_json", &["row_to_json", "array_to_json"], Flavor::Json, choose_one, one)
    }),
};

/// `to_jsonb`
pub static TO_JSONB: FunctionDef = FunctionDef {
    name: "to_jsonb",
    forms: &["to_jsonb(value any) → jsonb"],
    text: "As `to_json`, of type jsonb.",
    examples: &[Example { query: "SELECT to_jsonb(make_array(1, 2))", result: "[1, 2]" }],
    implementation: Implementation::Scalar(|| JsonFunction::udf("to_jsonb", &[], Flavor::Jsonb, choose_one, one)),
};

/// `json_build_object`
pub static OBJECT: FunctionDef = FunctionDef {
    name: "json_build_object",
    forms: &["json_build_object(VARIADIC any) → json"],
    text: "An object of keys and values in turn.",
    examples: &[Example { query: "SELECT json_build_object('a', 1, 'b', NULL)", result: r#"{"a" : 1, "b" : null}"# }],
    implementation: Implementation::Scalar(|| build_object("json_build_object", Flavor::Json)),
};

/// `jsonb_build_object`
pub static OBJECT_B: FunctionDef = FunctionDef {
    name: "jsonb_build_object",
    forms: &["jsonb_build_object(VARIADIC any) → jsonb"],
    text: "As `json_build_object`, of type jsonb.",
    examples: &[Example { query: "SELECT jsonb_build_object('b', 1, 'a', 'x')", result: r#"{"a": "x", "b": 1}"# }],
    implementation: Implementation::Scalar(|| build_object("jsonb_build_object", Flavor::Jsonb)),
};

/// `json_build_array`
pub static ARRAY: FunctionDef = FunctionDef {
    name: "json_build_array",
    forms: &["json_build_array(VARIADIC any) → json"],
    text: "An array of values.",
    examples: &[Example { query: "SELECT json_build_array(1, 'a', true, NULL)", result: r#"[1, "a", true, null]"# }],
    implementation: Implementation::Scalar(|| {
        JsonFunction::udf("json_build_array", &[], Flavor::Json, choose_any, array)
    }),
};

/// `jsonb_build_array`
pub static ARRAY_B: FunctionDef = FunctionDef {
    name: "jsonb_build_array",
    forms: &["jsonb_build_array(VARIADIC any) → jsonb"],
    text: "As `json_build_array`, of type jsonb.",
    examples: &[Example { query: "SELECT jsonb_build_array(1, 'a')", result: r#"[1, "a"]"# }],
    implementation: Implementation::Scalar(|| {
        JsonFunction::udf("jsonb_build_array", &[], Flavor::Jsonb, choose_any, array)
    }),
};

/// `json_object`
pub static OF_TEXTS: FunctionDef = FunctionDef {
    name: "json_object",
    forms: &["json_object(pairs text[]) → json", "json_object(keys text[], values text[]) → json"],
    text: "An object of texts, from keys and values in turn, or from an array of each.",
    examples: &[Example { query: "SELECT json_object(make_array('a', '1'))", result: r#"{"a" : "1"}"# }],
    implementation: Implementation::Scalar(|| {
        JsonFunction::udf("json_object", &[], Flavor::Json, choose_texts, of_texts)
    }),
};

/// `jsonb_object`
pub static OF_TEXTS_B: FunctionDef = FunctionDef {
    name: "jsonb_object",
    forms: &["jsonb_object(pairs text[]) → jsonb", "jsonb_object(keys text[], values text[]) → jsonb"],
    text: "As `json_object`, of type jsonb.",
    examples: &[Example { query: "SELECT jsonb_object(make_array('a'), make_array('1'))", result: r#"{"a": "1"}"# }],
    implementation: Implementation::Scalar(|| {
        JsonFunction::udf("jsonb_object", &[], Flavor::Jsonb, choose_texts, of_texts)
    }),
};

fn build_object(name: &'static str, flavor: Flavor) -> ScalarUDF {
    JsonFunction::udf(name, &[], flavor, choose_any, object)
}

/// Texts of every kind are read as one.
fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        other => other.clone(),
    }
}

fn choose_one(types: &[DataType]) -> Option<(Vec<DataType>, Output)> {
    (types.len() == 1).then(|| (types.iter().map(plain).collect(), Output::Json))
}

fn choose_any(types: &[DataType]) -> Option<(Vec<DataType>, Output)> {
    Some((types.iter().map(plain).collect(), Output::Json))
}

fn choose_texts(types: &[DataType]) -> Option<(Vec<DataType>, Output)> {
    let fits = matches!(types.len(), 1 | 2) && types.iter().all(|each| is_texts(each) || is_text(each));
    fits.then(|| (vec![text_list(); types.len()], Output::Json))
}

fn writers<'a>(arguments: &'a [ArrayRef], call: &Call<'_>) -> Result<Vec<JsonWriter<'a>>> {
    arguments.iter().zip(call.fields).map(|(argument, field)| JsonWriter::new(argument, field)).collect()
}

fn one(arguments: &[ArrayRef], call: &Call<'_>) -> Result<ArrayRef> {
    let writers = writers(arguments, call)?;
    let texts = (0..arguments[0].len()).map(|row| match arguments[0].is_valid(row) {
        true => writers[0].text(row, call.binary).map(Some),
        false => Ok(None),
    });
    Ok(Arc::new(texts.collect::<Result<StringArray>>()?))
}

/// The text as jsonb, if that is asked for.
fn finished(text: String, call: &Call<'_>) -> Result<String> {
    if call.binary { plan::json::canonical(&text).map_err(external) } else { Ok(text) }
}

fn rows_of(arguments: &[ArrayRef]) -> usize {
    arguments.first().map_or(1, |argument| argument.len())
}

fn array(arguments: &[ArrayRef], call: &Call<'_>) -> Result<ArrayRef> {
    let writers = writers(arguments, call)?;
    let texts = (0..rows_of(arguments)).map(|row| {
        let mut text = String::from("[");
        for (index, writer) in writers.iter().enumerate() {
            text.push_str(if index == 0 { "" } else { ", " });
            writer.write(row, &mut text)?;
        }
        text.push(']');
        finished(text, call).map(Some)
    });
    Ok(Arc::new(texts.collect::<Result<StringArray>>()?))
}

fn object(arguments: &[ArrayRef], call: &Call<'_>) -> Result<ArrayRef> {
    let invalid = |message: &str| external(PlanError::new(SqlState::INVALID_PARAMETER_VALUE, message));
    if !arguments.len().is_multiple_of(2) {
        return Err(invalid("argument list must have even number of elements"));
    }
    let writers = writers(arguments, call)?;
    let printers = arguments.iter().step_by(2).map(|key| {
        ColumnText::new(key.as_ref()).map_err(|error| datafusion::error::DataFusionError::External(error.into()))
    });
    let printers = printers.collect::<Result<Vec<_>>>()?;
    let texts = (0..rows_of(arguments)).map(|row| {
        let mut text = String::from("{");
        for (index, printer) in printers.iter().enumerate() {
            let Some(mut key) = printer.value(row) else {
                return Err(invalid(&format!("argument {} cannot be null", 2 * index + 1)));
            };
            if arguments[2 * index].data_type() == &DataType::Boolean {
                key = (if arguments[2 * index].as_boolean().value(row) { "true" } else { "false" }).to_string();
            }
            text.push_str(if index == 0 { "" } else { ", " });
            quote(&key, &mut text);
            text.push_str(" : ");
            writers[2 * index + 1].write(row, &mut text)?;
        }
        text.push('}');
        finished(text, call).map(Some)
    });
    Ok(Arc::new(texts.collect::<Result<StringArray>>()?))
}

fn of_texts(arguments: &[ArrayRef], call: &Call<'_>) -> Result<ArrayRef> {
    let invalid = |message: &str| external(PlanError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message));
    let texts = (0..arguments[0].len()).map(|row| {
        if arguments.iter().any(|argument| argument.is_null(row)) {
            return Ok(None);
        }
        let first = texts_at(&arguments[0], row);
        let (keys, values): (Vec<_>, Vec<_>) = match arguments.get(1) {
            Some(values) => (first, texts_at(values, row)),
            None if !first.len().is_multiple_of(2) => return Err(invalid("array must have even number of elements")),
            None => first.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).unzip(),
        };
        if keys.len() != values.len() {
            return Err(invalid("mismatched array dimensions"));
        }
        let mut text = String::from("{");
        for (index, (key, value)) in keys.iter().zip(&values).enumerate() {
            let Some(key) = key else {
                let message = "null value not allowed for object key";
                return Err(external(PlanError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message)));
            };
            text.push_str(if index == 0 { "" } else { ", " });
            quote(key, &mut text);
            text.push_str(" : ");
            match value {
                Some(value) => quote(value, &mut text),
                None => text.push_str("null"),
            }
        }
        text.push('}');
        finished(text, call).map(Some)
    });
    Ok(Arc::new(texts.collect::<Result<StringArray>>()?))
}
