//! Functions over texts of values: format, quote_literal, quote_nullable, concat, num_nulls, num_nonnulls, get_byte,
//! convert_from, convert_to.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryArray, Int32Array, StringArray};
use datafusion::arrow::datatypes::{DataType, Int32Type};
use datafusion::error::{DataFusionError, Result};
use plan::SqlState;

use super::overload::{Form, Overloaded, each, error, is_text};
use crate::delta::literal::ColumnText;
use crate::functions::{Example, FunctionDef, Implementation};

/// `format`
pub static FORMAT: FunctionDef = FunctionDef {
    name: "format",
    forms: &["format(pattern text, VARIADIC any) → text"],
    text: "The pattern with values in it: `%s` as texts, `%I` as identifiers, `%L` as literals; `%%` is a percent sign. \
           `%2$s` takes the second value; `%10s` and `%-10s` fill up with blanks.",
    examples: &[
        Example { query: "SELECT format('Hello %s, %1$s', 'World')", result: "Hello World, World" },
        Example { query: "SELECT format('%I %L', 'a b', 'it''s')", result: "\"a b\" 'it''s'" },
    ],
    implementation: Implementation::Scalar(|| Overloaded::udf("format", &[], |types, _| choose_format(types), format)),
};

/// `quote_literal`
pub static QUOTE_LITERAL: FunctionDef = FunctionDef {
    name: "quote_literal",
    forms: &["quote_literal(value any) → text"],
    text: "The value as a literal.",
    examples: &[Example { query: "SELECT quote_literal('it''s')", result: "'it''s'" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf(
            "quote_literal",
            &[],
            |types, _| choose_any(types, 1),
            |arguments, _| {
                let texts = printers(arguments)?;
                let quoted = each(arguments, |row| Ok(texts[0].value(row).map(|text| literal(&text))))?;
                Ok(Arc::new(StringArray::from(quoted)))
            },
        )
    }),
};

/// `quote_nullable`
pub static QUOTE_NULLABLE: FunctionDef = FunctionDef {
    name: "quote_nullable",
    forms: &["quote_nullable(value any) → text"],
    text: "The value as a literal, `NULL` for NULL.",
    examples: &[Example { query: "SELECT quote_nullable('a')", result: "'a'" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf(
            "quote_nullable",
            &[],
            |types, _| choose_any(types, 1),
            |arguments, _| {
                let texts = printers(arguments)?;
                let quoted = (0..arguments[0].len())
                    .map(|row| Some(texts[0].value(row).map_or_else(|| "NULL".to_string(), |text| literal(&text))));
                Ok(Arc::new(quoted.collect::<StringArray>()))
            },
        )
    }),
};

/// `concat`
pub static CONCAT: FunctionDef = FunctionDef {
    name: "concat",
    forms: &["concat(VARIADIC any) → text"],
    text: "The texts of all values that are not NULL, one after the other.",
    examples: &[Example { query: "SELECT concat('a', NULL, 1, true)", result: "a1t" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf(
            "concat",
            &[],
            |types, _| (!types.is_empty()).then(|| form(types)),
            |arguments, _| {
                let texts = printers(arguments)?;
                let joined = (0..arguments[0].len())
                    .map(|row| Some(texts.iter().filter_map(|text| text.value(row)).collect::<String>()));
                Ok(Arc::new(joined.collect::<StringArray>()))
            },
        )
    }),
};

/// `concat_ws`
pub static CONCAT_WS: FunctionDef = FunctionDef {
    name: "concat_ws",
    forms: &["concat_ws(separator text, VARIADIC any) → text"],
    text: "The texts of all values that are not NULL, with a separator between them.",
    examples: &[Example { query: "SELECT concat_ws(',', 'a', NULL, 1)", result: "a,1" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf(
            "concat_ws",
            &[],
            |types, _| choose_format(types),
            |arguments, _| {
                let separators = arguments[0].as_string::<i32>();
                let texts = printers(&arguments[1..])?;
                let joined = (0..separators.len()).map(|row| {
                    let parts: Vec<String> = texts.iter().filter_map(|text| text.value(row)).collect();
                    separators.is_valid(row).then(|| parts.join(separators.value(row)))
                });
                Ok(Arc::new(joined.collect::<StringArray>()))
            },
        )
    }),
};

/// `num_nulls`
pub static NULLS: FunctionDef = FunctionDef {
    name: "num_nulls",
    forms: &["num_nulls(VARIADIC any) → integer"],
    text: "How many of the values are NULL.",
    examples: &[Example { query: "SELECT num_nulls(1, NULL, 2)", result: "1" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf("num_nulls", &[], |types, _| choose_count(types), |arguments, _| Ok(counted(arguments, true)))
    }),
};

/// `num_nonnulls`
pub static NON_NULLS: FunctionDef = FunctionDef {
    name: "num_nonnulls",
    forms: &["num_nonnulls(VARIADIC any) → integer"],
    text: "How many of the values are not NULL.",
    examples: &[Example { query: "SELECT num_nonnulls(1, NULL, 2)", result: "2" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf(
            "num_nonnulls",
            &[],
            |types, _| choose_count(types),
            |arguments, _| Ok(counted(arguments, false)),
        )
    }),
};

/// `get_byte`
pub static GET_BYTE: FunctionDef = FunctionDef {
    name: "get_byte",
    forms: &["get_byte(bytes bytea, position integer) → integer"],
    text: "The byte at a position, from 0.",
    examples: &[Example { query: "SELECT get_byte(arrow_cast('AB', 'Binary'), 1)", result: "66" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf(
            "get_byte",
            &[],
            |types, _| match types {
                [bytes, place] if is_bytes(bytes) && place.is_integer() => {
                    Some(Form { arguments: vec![DataType::Binary, DataType::Int32], result: DataType::Int32 })
                }
                _ => None,
            },
            |arguments, _| {
                let (bytes, places) = (arguments[0].as_binary::<i32>(), arguments[1].as_primitive::<Int32Type>());
                let found = each(arguments, |row| {
                    let (bytes, place) = (bytes.value(row), places.value(row));
                    let byte = usize::try_from(place).ok().and_then(|place| bytes.get(place));
                    byte.map(|byte| Some(i32::from(*byte))).ok_or_else(|| {
                        let message = format!("index {place} out of valid range, 0..{}", bytes.len() as i64 - 1);
                        error(SqlState::ARRAY_SUBSCRIPT_ERROR, message)
                    })
                })?;
                Ok(Arc::new(Int32Array::from(found)))
            },
        )
    }),
};

/// `convert_from`
pub static CONVERT_FROM: FunctionDef = FunctionDef {
    name: "convert_from",
    forms: &["convert_from(bytes bytea, encoding text) → text"],
    text: "The text that bytes are in an encoding, of which there is UTF8.",
    examples: &[Example { query: "SELECT convert_from(arrow_cast('A', 'Binary'), 'UTF8')", result: "A" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf(
            "convert_from",
            &[],
            |types, _| match types {
                [bytes, encoding] if is_bytes(bytes) && is_text(encoding) => {
                    Some(Form { arguments: vec![DataType::Binary, DataType::Utf8], result: DataType::Utf8 })
                }
                _ => None,
            },
            |arguments, _| {
                let (bytes, encodings) = (arguments[0].as_binary::<i32>(), arguments[1].as_string::<i32>());
                let texts = each(arguments, |row| {
                    check_encoding(encodings.value(row))?;
                    String::from_utf8(bytes.value(row).to_vec()).map(Some).map_err(|_| {
                        let message = "invalid byte sequence for encoding \"UTF8\"";
                        error(SqlState::CHARACTER_NOT_IN_REPERTOIRE, message)
                    })
                })?;
                Ok(Arc::new(StringArray::from(texts)))
            },
        )
    }),
};

/// `convert_to`
pub static CONVERT_TO: FunctionDef = FunctionDef {
    name: "convert_to",
    forms: &["convert_to(text, encoding text) → bytea"],
    text: "The bytes of a text in an encoding, of which there is UTF8.",
    examples: &[Example { query: "SELECT encode(convert_to('A', 'UTF8'), 'hex')", result: "41" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf(
            "convert_to",
            &[],
            |types, _| {
                let fits = types.len() == 2 && types.iter().all(is_text);
                fits.then(|| Form { arguments: vec![DataType::Utf8; 2], result: DataType::Binary })
            },
            |arguments, _| {
                let (texts, encodings) = (arguments[0].as_string::<i32>(), arguments[1].as_string::<i32>());
                let bytes = each(arguments, |row| {
                    check_encoding(encodings.value(row))?;
                    Ok(Some(texts.value(row).as_bytes()))
                })?;
                Ok(Arc::new(BinaryArray::from(bytes)))
            },
        )
    }),
};

fn check_encoding(name: &str) -> Result<()> {
    let plain: String = name.chars().filter(|letter| letter.is_alphanumeric()).collect();
    if plain.eq_ignore_ascii_case("utf8") || plain.eq_ignore_ascii_case("unicode") {
        return Ok(());
    }
    Err(error(SqlState::FEATURE_NOT_SUPPORTED, format!("the encoding \"{name}\" is not supported")))
}

fn is_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// Texts of every kind are read as one.
fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => DataType::Utf8,
        other => other.clone(),
    }
}

fn form(types: &[DataType]) -> Form {
    Form { arguments: types.iter().map(plain).collect(), result: DataType::Utf8 }
}

fn choose_any(types: &[DataType], count: usize) -> Option<Form> {
    (types.len() == count).then(|| form(types))
}

fn choose_format(types: &[DataType]) -> Option<Form> {
    types.first().is_some_and(is_text).then(|| form(types))
}

fn choose_count(types: &[DataType]) -> Option<Form> {
    let counted = Form { arguments: types.to_vec(), result: DataType::Int32 };
    (!types.is_empty()).then_some(counted)
}

fn counted(arguments: &[ArrayRef], nulls: bool) -> ArrayRef {
    let rows = arguments.first().map_or(0, |argument| argument.len());
    let is_null = |argument: &ArrayRef, row: usize| argument.data_type() == &DataType::Null || argument.is_null(row);
    let count = |row: usize| arguments.iter().filter(|argument| is_null(argument, row) == nulls).count() as i32;
    Arc::new((0..rows).map(|row| Some(count(row))).collect::<Int32Array>())
}

fn printers(arguments: &[ArrayRef]) -> Result<Vec<ColumnText<'_>>> {
    arguments
        .iter()
        .map(|argument| ColumnText::new(argument.as_ref()).map_err(|error| DataFusionError::External(error.into())))
        .collect()
}

fn literal(text: &str) -> String {
    let doubled = text.replace('\'', "''");
    if text.contains('\\') { format!(" E'{}'", doubled.replace('\\', "\\\\")) } else { format!("'{doubled}'") }
}

fn identifier(text: &str) -> String {
    let plain = text.bytes().enumerate().all(|(place, byte)| {
        byte.is_ascii_lowercase() || byte == b'_' || (place > 0 && (byte.is_ascii_digit() || byte == b'$'))
    });
    if plain && !text.is_empty() { text.to_string() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

fn wrong(message: &str) -> DataFusionError {
    error(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// A value's place in the pattern: which one, how wide, and how.
struct Place {
    position: Option<usize>,
    width: i64,
    left: bool,
    kind: char,
}

/// Reads what follows a percent sign.
fn place(letters: &mut std::str::Chars<'_>) -> Result<Place> {
    let mut place = Place { position: None, width: 0, left: false, kind: ' ' };
    let mut digits = String::new();
    loop {
        match letters.next() {
            Some(digit) if digit.is_ascii_digit() => digits.push(digit),
            Some('$') if !digits.is_empty() => {
                let position: usize = digits.parse().map_err(|_| wrong("number is out of range"))?;
                if position == 0 {
                    return Err(wrong("format specifies argument 0, but arguments are numbered from 1"));
                }
                place.position = Some(position - 1);
                digits.clear();
            }
            Some('-') => place.left = true,
            Some(kind) => {
                if !digits.is_empty() {
                    place.width = digits.parse().map_err(|_| wrong("number is out of range"))?;
                }
                place.kind = kind;
                return Ok(place);
            }
            None => return Err(wrong("unterminated format() type specifier")),
        }
    }
}

fn format(arguments: &[ArrayRef], _result: &DataType) -> Result<ArrayRef> {
    let patterns = arguments[0].as_string::<i32>();
    let values = printers(&arguments[1..])?;
    let mut texts = Vec::with_capacity(patterns.len());
    for row in 0..patterns.len() {
        if patterns.is_null(row) {
            texts.push(None);
            continue;
        }
        let (mut out, mut next) = (String::new(), 0);
        let mut letters = patterns.value(row).chars();
        while let Some(letter) = letters.next() {
            if letter != '%' {
                out.push(letter);
                continue;
            }
            let place = place(&mut letters)?;
            if place.kind == '%' {
                out.push('%');
                continue;
            }
            let position = place.position.unwrap_or(next);
            next = position + 1;
            let Some(value) = values.get(position) else { return Err(wrong("too few arguments for format()")) };
            let text = shown(value.value(row), place.kind)?;
            let blanks = " ".repeat((place.width - text.chars().count() as i64).clamp(0, 1 << 20) as usize);
            out.push_str(&if place.left { format!("{text}{blanks}") } else { format!("{blanks}{text}") });
        }
        texts.push(Some(out));
    }
    Ok(Arc::new(StringArray::from(texts)))
}

fn shown(value: Option<String>, kind: char) -> Result<String> {
    match (kind, value) {
        ('s', value) => Ok(value.unwrap_or_default()),
        ('I', Some(value)) => Ok(identifier(&value)),
        ('I', None) => {
            Err(error(SqlState::NULL_VALUE_NOT_ALLOWED, "null values cannot be formatted as an SQL identifier"))
        }
        ('L', Some(value)) => Ok(literal(&value)),
        ('L', None) => Ok("NULL".to_string()),
        (other, _) => Err(wrong(&format!("unrecognized format() type specifier \"{other}\""))),
    }
}
