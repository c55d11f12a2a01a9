//! jsonb with something put in or taken out: the operators `||`, `-`, `#-`, and jsonb_set, jsonb_insert, strip_nulls.

use std::borrow::Cow;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::error::{DataFusionError, Result};
use plan::json::{Json, Value};
use plan::{PlanError, SqlState};

use super::function::{Call, Flavor, JsonFunction, Output, each_json, external, is_texts, parse, text_list, texts_at};
use crate::functions::scalar::overload::is_text;
use crate::functions::{Example, FunctionDef, Implementation};

/// `||`
pub static CONCAT: FunctionDef = FunctionDef {
    name: "jsonb_concat",
    forms: &["jsonb_concat(left jsonb, right jsonb) → jsonb"],
    text: "The members of both, those of the second where both have a key; or the items of both arrays. A value that is \
           no array counts as an array of itself. `left || right` is the same.",
    examples: &[
        Example { query: r#"SELECT jsonb_concat('{"a": 1}', '{"b": 2}')"#, result: r#"{"a": 1, "b": 2}"# },
        Example { query: "SELECT jsonb_concat('[1]', '2')", result: "[1, 2]" },
    ],
    implementation: Implementation::Scalar(|| {
        JsonFunction::udf("jsonb_concat", &[], Flavor::Jsonb, choose_texts::<2>, |arguments, call| {
            each_json(arguments, |left, row| {
                let right = parse(arguments[1].as_string::<i32>().value(row))?;
                call.text(&Json::from(concatenated(left.value.clone(), right.value))).map(Some)
            })
        })
    }),
};

/// `-`
pub static DELETE: FunctionDef = FunctionDef {
    name: "jsonb_delete",
    forms: &[
        "jsonb_delete(value jsonb, key text) → jsonb",
        "jsonb_delete(value jsonb, keys text[]) → jsonb",
        "jsonb_delete(value jsonb, position integer) → jsonb",
    ],
    text: "Without a member or without texts in an array, or without the item of a position. `value - key` is the same.",
    examples: &[
        Example { query: r#"SELECT jsonb_delete('{"a": 1, "b": 2}', 'a')"#, result: r#"{"b": 2}"# },
        Example { query: "SELECT jsonb_delete('[1, 2, 3]', 1)", result: "[1, 3]" },
    ],
    implementation: Implementation::Scalar(|| {
        JsonFunction::udf("jsonb_delete", &[], Flavor::Jsonb, choose_delete, delete)
    }),
};

/// `#-`
pub static DELETE_PATH: FunctionDef = FunctionDef {
    name: "jsonb_delete_path",
    forms: &["jsonb_delete_path(value jsonb, path text[]) → jsonb"],
    text: "Without what is at the end of a path. `value #- '{a,b}'` is the same.",
    examples: &[Example {
        query: r#"SELECT jsonb_delete_path('{"a": {"b": 1, "c": 2}}', make_array('a', 'b'))"#,
        result: r#"{"a": {"c": 2}}"#,
    }],
    implementation: Implementation::Scalar(|| {
        JsonFunction::udf(
            "jsonb_delete_path",
            &[],
            Flavor::Jsonb,
            |types| choose_path(types, 2),
            |arguments, call| {
                each_json(arguments, |json, row| {
                    let mut value = json.value.clone();
                    let path = texts_at(&arguments[1], row);
                    change(&mut value, &path, 0, &mut |parent, step| {
                        take_out(parent, step);
                        Ok(())
                    })?;
                    call.text(&Json::from(value)).map(Some)
                })
            },
        )
    }),
};

/// `jsonb_set`
pub static SET: FunctionDef = FunctionDef {
    name: "jsonb_set",
    forms: &["jsonb_set(value jsonb, path text[], new jsonb [, create boolean]) → jsonb"],
    text: "With a new value at the end of a path. If there is none it is added, unless `create` is false; all steps \
           before the last must exist.",
    examples: &[
        Example {
            query: r#"SELECT jsonb_set('{"a": {"b": 1}}', make_array('a', 'b'), '5')"#,
            result: r#"{"a": {"b": 5}}"#,
        },
        Example { query: r#"SELECT jsonb_set('{"a": 1}', make_array('b'), '5', false)"#, result: r#"{"a": 1}"# },
    ],
    implementation: Implementation::Scalar(|| {
        JsonFunction::udf("jsonb_set", &[], Flavor::Jsonb, |types| choose_path(types, 4), set)
    }),
};

/// `jsonb_insert`
pub static INSERT: FunctionDef = FunctionDef {
    name: "jsonb_insert",
    forms: &["jsonb_insert(value jsonb, path text[], new jsonb [, after boolean]) → jsonb"],
    text: "With a new item before, or after, the one at the end of a path; or with a new member.",
    examples: &[Example {
        query: r#"SELECT jsonb_insert('{"a": [0, 1]}', make_array('a', '1'), '"x"')"#,
        result: r#"{"a": [0, "x", 1]}"#,
    }],
    implementation: Implementation::Scalar(|| {
        JsonFunction::udf("jsonb_insert", &[], Flavor::Jsonb, |types| choose_path(types, 4), insert)
    }),
};

/// `json_strip_nulls`
pub static STRIP_NULLS: FunctionDef = FunctionDef {
    name: "json_strip_nulls",
    forms: &["json_strip_nulls(value json) → json"],
    text: "Without members that are null, at every level.",
    examples: &[Example { query: r#"SELECT json_strip_nulls('{"a": null, "b": [null]}')"#, result: r#"{"b":[null]}"# }],
    implementation: Implementation::Scalar(|| {
        JsonFunction::udf("json_strip_nulls", &[], Flavor::Json, choose_texts::<1>, |arguments, _| {
            each_json(arguments, |json, _| {
                let mut out = String::new();
                super::value::compact(&without_nulls(json.value.clone()), &mut out);
                Ok(Some(out))
            })
        })
    }),
};

/// `jsonb_strip_nulls`
pub static STRIP_NULLS_B: FunctionDef = FunctionDef {
    name: "jsonb_strip_nulls",
    forms: &["jsonb_strip_nulls(value jsonb) → jsonb"],
    text: "Without members that are null, at every level.",
    examples: &[Example { query: r#"SELECT jsonb_strip_nulls('{"a": null, "b": 1}')"#, result: r#"{"b": 1}"# }],
    implementation: Implementation::Scalar(|| {
        JsonFunction::udf("jsonb_strip_nulls", &[], Flavor::Jsonb, choose_texts::<1>, |arguments, call| {
            each_json(arguments, |json, _| call.text(&Json::from(without_nulls(json.value.clone()))).map(Some))
        })
    }),
};

fn choose_texts<const COUNT: usize>(types: &[DataType]) -> Option<(Vec<DataType>, Output)> {
    let fits = types.len() == COUNT && types.iter().all(is_text);
    fits.then(|| (vec![DataType::Utf8; COUNT], Output::Json))
}

fn choose_delete(types: &[DataType]) -> Option<(Vec<DataType>, Output)> {
    let second = match types {
        [value, _] if !is_text(value) => return None,
        [_, key] if is_text(key) => DataType::Utf8,
        [_, position] if position.is_integer() => DataType::Int64,
        [_, keys] if is_texts(keys) => text_list(),
        _ => return None,
    };
    Some((vec![DataType::Utf8, second], Output::Json))
}

/// jsonb, a path, and as many of a new value and a flag as there are.
fn choose_path(types: &[DataType], most: usize) -> Option<(Vec<DataType>, Output)> {
    let least = most.min(3);
    if types.len() < least || types.len() > most || !is_text(&types[0]) || !(is_texts(&types[1]) || is_text(&types[1]))
    {
        return None;
    }
    let mut converted = vec![DataType::Utf8, text_list()];
    if let Some(new) = types.get(2) {
        if !is_text(new) {
            return None;
        }
        converted.push(DataType::Utf8);
    }
    if types.len() == 4 {
        converted.push(DataType::Boolean);
    }
    Some((converted, Output::Json))
}

fn wrong(message: &str) -> DataFusionError {
    external(PlanError::new(SqlState::INVALID_PARAMETER_VALUE, message))
}

fn concatenated<'a>(left: Value<'a>, right: Value<'a>) -> Value<'a> {
    let items = |value: Value<'a>| match value {
        Value::Array(items) => items,
        single => vec![Json::from(single)],
    };
    match (left, right) {
        (Value::Object(mut members), Value::Object(more)) => {
            members.extend(more);
            Value::Object(members)
        }
        (left, right) => {
            let mut all = items(left);
            all.extend(items(right));
            Value::Array(all)
        }
    }
}

fn delete(arguments: &[ArrayRef], call: &Call<'_>) -> Result<ArrayRef> {
    each_json(arguments, |json, row| {
        let mut value = json.value.clone();
        if !matches!(value, Value::Object(_) | Value::Array(_)) {
            return Err(wrong("cannot delete from scalar"));
        }
        match arguments[1].data_type() {
            DataType::Int64 => {
                if matches!(value, Value::Object(_)) {
                    return Err(wrong("cannot delete from object using integer index"));
                }
                let position = arguments[1].as_primitive::<Int64Type>().value(row);
                take_out(&mut value, &position.to_string());
            }
            DataType::Utf8 => without_key(&mut value, arguments[1].as_string::<i32>().value(row)),
            _ => texts_at(&arguments[1], row).iter().flatten().for_each(|key| without_key(&mut value, key)),
        }
        call.text(&Json::from(value)).map(Some)
    })
}

/// A key of an object, or all texts that are equal to it in an array.
fn without_key(value: &mut Value<'_>, key: &str) {
    match value {
        Value::Object(members) => members.retain(|(name, _)| name != key),
        Value::Array(items) => {
            items.retain(|item| !matches!(&item.value, Value::String(text) if text == key));
        }
        _ => {}
    }
}

/// The place of a position in an array of so many items, if there is one.
fn place(position: i64, count: usize) -> Option<usize> {
    let position = if position < 0 { position + count as i64 } else { position };
    usize::try_from(position).ok().filter(|place| *place < count)
}

fn take_out(parent: &mut Value<'_>, step: &str) {
    match parent {
        Value::Object(members) => members.retain(|(name, _)| name != step),
        Value::Array(items) => {
            if let Some(place) = step.parse().ok().and_then(|position| place(position, items.len())) {
                items.remove(place);
            }
        }
        _ => {}
    }
}

/// Something to be done where a path ends, to what is before its last step.
type Act<'f, 'a> = &'f mut dyn FnMut(&mut Value<'a>, &str) -> Result<()>;

/// Acts on the end of a path, if it is there but for its last step.
fn change<'a>(value: &mut Value<'a>, path: &[Option<String>], at: usize, act: Act<'_, 'a>) -> Result<()> {
    if at == 0 && !matches!(value, Value::Object(_) | Value::Array(_)) {
        return Err(wrong("cannot set path in scalar"));
    }
    let Some(step) = path.get(at) else { return Ok(()) };
    let Some(step) = step else {
        let message = format!("path element at position {} is null", at + 1);
        return Err(external(PlanError::new(SqlState::NULL_VALUE_NOT_ALLOWED, message)));
    };
    if matches!(value, Value::Array(_)) && step.trim().parse::<i64>().is_err() {
        let message = format!("path element at position {} is not an integer: \"{step}\"", at + 1);
        return Err(external(PlanError::new(SqlState::INVALID_TEXT_REPRESENTATION, message)));
    }
    if at + 1 == path.len() {
        return act(value, step);
    }
    let next = match value {
        Value::Object(members) => members.iter_mut().rev().find(|(name, _)| name == step).map(|(_, json)| json),
        Value::Array(items) => {
            let place = step.trim().parse().ok().and_then(|position| place(position, items.len()));
            place.and_then(|place| items.get_mut(place))
        }
        _ => None,
    };
    match next {
        Some(json) => {
            json.text = "";
            change(&mut json.value, path, at + 1, act)
        }
        None => Ok(()),
    }
}

fn flag(arguments: &[ArrayRef], row: usize, otherwise: bool) -> bool {
    arguments.get(3).map_or(otherwise, |flags| flags.as_boolean().value(row))
}

fn set(arguments: &[ArrayRef], call: &Call<'_>) -> Result<ArrayRef> {
    each_json(arguments, |json, row| {
        let new = parse(arguments[2].as_string::<i32>().value(row))?;
        let (path, create) = (texts_at(&arguments[1], row), flag(arguments, row, true));
        let mut value = json.value.clone();
        change(&mut value, &path, 0, &mut |parent, step| {
            match parent {
                Value::Object(members) => match members.iter_mut().rev().find(|(name, _)| name == step) {
                    Some((_, member)) => *member = new.clone(),
                    None if create => members.push((Cow::Owned(step.to_string()), new.clone())),
                    None => {}
                },
                Value::Array(items) => {
                    let position: i64 = step.trim().parse().unwrap_or_default();
                    match place(position, items.len()) {
                        Some(place) => items[place] = new.clone(),
                        None if create && position < 0 => items.insert(0, new.clone()),
                        None if create => items.push(new.clone()),
                        None => {}
                    }
                }
                _ => {}
            }
            Ok(())
        })?;
        call.text(&Json::from(value)).map(Some)
    })
}

fn insert(arguments: &[ArrayRef], call: &Call<'_>) -> Result<ArrayRef> {
    each_json(arguments, |json, row| {
        let new = parse(arguments[2].as_string::<i32>().value(row))?;
        let (path, after) = (texts_at(&arguments[1], row), flag(arguments, row, false));
        let mut value = json.value.clone();
        change(&mut value, &path, 0, &mut |parent, step| {
            match parent {
                Value::Object(members) => {
                    if members.iter().any(|(name, _)| name == step) {
                        return Err(wrong("cannot replace existing key"));
                    }
                    members.push((Cow::Owned(step.to_string()), new.clone()));
                }
                Value::Array(items) => {
                    let position: i64 = step.trim().parse().unwrap_or_default();
                    let at = match place(position, items.len()) {
                        Some(place) => place + usize::from(after),
                        None if position < 0 => 0,
                        None => items.len(),
                    };
                    items.insert(at, new.clone());
                }
                _ => {}
            }
            Ok(())
        })?;
        call.text(&Json::from(value)).map(Some)
    })
}

fn without_nulls(value: Value<'_>) -> Value<'_> {
    match value {
        Value::Object(members) => Value::Object(
            members
                .into_iter()
                .filter(|(_, member)| member.value != Value::Null)
                .map(|(key, member)| (key, Json::from(without_nulls(member.value))))
                .collect(),
        ),
        Value::Array(items) => {
            Value::Array(items.into_iter().map(|item| Json::from(without_nulls(item.value))).collect())
        }
        other => other,
    }
}
