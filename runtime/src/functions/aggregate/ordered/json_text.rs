//! Values as JSON, as PostgreSQL's to_json and to_jsonb write them.

use std::fmt::Write;

use datafusion::arrow::array::Array;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use plan::PlanError;

use crate::delta::literal::ColumnText;

/// Which of the two types of JSON is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// json: as it comes.
    Text,
    /// jsonb: with spaces and numbers in one way.
    Binary,
}

/// Whether json_agg begins a line for each value of a type.
pub fn separates_lines(field: &FieldRef) -> bool {
    matches!(field.data_type(), DataType::List(_) | DataType::LargeList(_) | DataType::Struct(_))
}

/// A text as JSON.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            letter if letter < ' ' => {
                // Writing to a String cannot fail.
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

/// The text of a value, as it stands for a key.
pub fn key_text(value: &ScalarValue) -> Result<String, PlanError> {
    if let ScalarValue::Boolean(Some(value)) = value {
        return Ok(value.to_string());
    }
    if let Some(text) = float_text(value) {
        return Ok(text);
    }
    let text = plain_text(value)?;
    Ok(match value.data_type() {
        DataType::Timestamp(..) => timestamp_text(&text),
        _ => text,
    })
}

fn plain_text(value: &ScalarValue) -> Result<String, PlanError> {
    let array = value.to_array().map_err(PlanError::internal)?;
    let text = ColumnText::new(array.as_ref()).map_err(PlanError::internal)?.value(0);
    Ok(text.unwrap_or_default())
}

/// In the form of ISO 8601.
fn timestamp_text(text: &str) -> String {
    let text = text.replacen(' ', "T", 1);
    match text.strip_suffix("+00") {
        Some(local) => format!("{local}+00:00"),
        None => text,
    }
}

/// A value as JSON.
pub fn value_text(value: &ScalarValue, field: &Field, form: Form) -> Result<String, PlanError> {
    if value.is_null() {
        return Ok("null".to_string());
    }
    if let Some(text) = float_text(value) {
        let is_number =
            text.starts_with(|letter: char| letter.is_ascii_digit() || letter == '-') && !text.ends_with('y');
        return Ok(match (is_number, form) {
            (false, _) => quoted(&text),
            (true, Form::Text) => text,
            (true, Form::Binary) => without_exponent(&text),
        });
    }
    if let ScalarValue::Boolean(Some(value)) = value {
        return Ok(value.to_string());
    }
    if let ScalarValue::List(list) = value
        && let DataType::List(item) = field.data_type()
    {
        let items = list.value(0);
        let items: Result<Vec<String>, PlanError> = (0..items.len())
            .map(|row| {
                let value = ScalarValue::try_from_array(&items, row).map_err(PlanError::internal)?;
                value_text(&value, item, form)
            })
            .collect();
        return Ok(format!("[{}]", items?.join(if form == Form::Text { "," } else { ", " })));
    }
    if let ScalarValue::Struct(record) = value {
        let colon = if form == Form::Text { ":" } else { ": " };
        let members: Result<Vec<String>, PlanError> = record
            .fields()
            .iter()
            .zip(record.columns())
            .map(|(field, column)| {
                let value = ScalarValue::try_from_array(column, 0).map_err(PlanError::internal)?;
                Ok(format!("{}{colon}{}", quoted(field.name()), value_text(&value, field, form)?))
            })
            .collect();
        return Ok(format!("{{{}}}", members?.join(if form == Form::Text { "," } else { ", " })));
    }
    let is_json = field.metadata().get("pg_type").is_some_and(|name| name == "json" || name == "jsonb");
    let text = plain_text(value)?;
    Ok(match value.data_type() {
        data_type if data_type.is_numeric() => text,
        DataType::Timestamp(..) => quoted(&timestamp_text(&text)),
        _ if is_json => text,
        _ => quoted(&text),
    })
}

/// A floating-point number in PostgreSQL's shortest form; none for values of other types.
fn float_text(value: &ScalarValue) -> Option<String> {
    let (scientific, plain, digits_max, number) = match value {
        ScalarValue::Float32(Some(value)) => (format!("{value:e}"), value.to_string(), 6, f64::from(*value)),
        ScalarValue::Float64(Some(value)) => (format!("{value:e}"), value.to_string(), 15, *value),
        _ => return None,
    };
    if number.is_nan() {
        return Some("NaN".to_string());
    }
    if number.is_infinite() {
        return Some(if number > 0.0 { "Infinity" } else { "-Infinity" }.to_string());
    }
    let (mantissa, exponent) = scientific.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    if (-4..digits_max).contains(&exponent) {
        return Some(plain);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    Some(format!("{mantissa}e{sign}{:02}", exponent.abs()))
}

/// A number without exponent, as numeric is written.
fn without_exponent(text: &str) -> String {
    let Some((mantissa, exponent)) = text.split_once('e') else { return text.to_string() };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let point = whole.len() as i32 + exponent;
    let text = if point <= 0 {
        format!("0.{}{digits}", "0".repeat(point.unsigned_abs() as usize))
    } else if point as usize >= digits.len() {
        format!("{digits}{}", "0".repeat(point as usize - digits.len()))
    } else {
        format!("{}.{}", &digits[..point as usize], &digits[point as usize..])
    };
    format!("{sign}{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_are_written_as_postgres_writes_them() {
        let text = |value: f64| float_text(&ScalarValue::Float64(Some(value))).unwrap();
        assert_eq!(text(1e20), "1e+20");
        assert_eq!(text(1.5e-7), "1.5e-07");
        assert_eq!(text(0.0001), "0.0001");
        assert_eq!(text(-7.25), "-7.25");
        assert_eq!(without_exponent("1e+20"), "100000000000000000000");
        assert_eq!(without_exponent("-1.5e-07"), "-0.00000015");
        assert_eq!(without_exponent("1.25e+01"), "12.5");
    }

    #[test]
    fn texts_are_escaped() {
        assert_eq!(quoted("a\"\\\n\u{1}é"), "\"a\\\"\\\\\\n\\u0001é\"");
    }
}
