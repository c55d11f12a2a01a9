//! JSON texts: read with their places, and written as jsonb keeps them.
//!
//! A value of type json is its text as it was written; one of type jsonb is its canonical text: members ordered by length
//! of key and then bytes, of several members of one key the last, numbers without exponent, one space after colons and
//! commas. So equal jsonb values are mostly equal texts, and both types are texts wherever it does not matter.

use std::borrow::Cow;
use std::fmt::Write;

use crate::error::PlanError;
use crate::sqlstate::SqlState;

/// Values in values: how deep.
const DEPTH_MAX: usize = 256;

/// Digits of a number, as PostgreSQL's numeric has them at most.
const DIGITS_MAX: i64 = 131_072;

/// A value with its text.
#[derive(Debug, Clone, PartialEq)]
pub struct Json<'a> {
    /// As it was written; empty if it was made.
    pub text: &'a str,
    /// What it is.
    pub value: Value<'a>,
}

/// What a JSON text stands for.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// null
    Null,
    /// true or false
    Bool(bool),
    /// A number as it was written.
    Number(Cow<'a, str>),
    /// A text without its quotes and escapes.
    String(Cow<'a, str>),
    /// Items in their order.
    Array(Vec<Json<'a>>),
    /// Members in their order.
    Object(Vec<(Cow<'a, str>, Json<'a>)>),
}

impl<'a> From<Value<'a>> for Json<'a> {
    fn from(value: Value<'a>) -> Self {
        Json { text: "", value }
    }
}

impl<'a> Value<'a> {
    /// The last member of a key.
    pub fn member(&self, key: &str) -> Option<&Json<'a>> {
        match self {
            Value::Object(members) => members.iter().rev().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The item of a position, counted from the end if it is negative.
    pub fn item(&self, position: i64) -> Option<&Json<'a>> {
        let Value::Array(items) = self else { return None };
        let position = if position < 0 { position + items.len() as i64 } else { position };
        usize::try_from(position).ok().and_then(|position| items.get(position))
    }

    /// The member or item that a step of a path names.
    pub fn step(&self, step: &str) -> Option<&Json<'a>> {
        match self {
            Value::Array(_) => step.trim().parse().ok().and_then(|position| self.item(position)),
            _ => self.member(step),
        }
    }

    /// The canonical text.
    pub fn canonical(&self) -> Result<String, PlanError> {
        let mut out = String::new();
        self.write(&mut out, None)?;
        Ok(out)
    }

    /// The canonical text with a line for each member and item.
    pub fn pretty(&self) -> Result<String, PlanError> {
        let mut out = String::new();
        self.write(&mut out, Some(0))?;
        Ok(out)
    }

    fn write(&self, out: &mut String, indent: Option<usize>) -> Result<(), PlanError> {
        let within = indent.map(|depth| depth + 1);
        match self {
            Value::Null => out.push_str("null"),
            Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
            Value::Number(digits) => out.push_str(&plain_number(digits)?),
            Value::String(text) => quote(text, out),
            Value::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    separate(out, index, within);
                    item.value.write(out, within)?;
                }
                close(out, ']', indent);
            }
            Value::Object(members) => {
                out.push('{');
                for (index, (key, item)) in ordered(members).into_iter().enumerate() {
                    separate(out, index, within);
                    quote(key, out);
                    out.push_str(": ");
                    item.value.write(out, within)?;
                }
                close(out, '}', indent);
            }
        }
        Ok(())
    }
}

fn separate(out: &mut String, index: usize, indent: Option<usize>) {
    match indent {
        None => out.push_str(if index == 0 { "" } else { ", " }),
        Some(depth) => {
            out.push_str(if index == 0 { "\n" } else { ",\n" });
            out.push_str(&"    ".repeat(depth));
        }
    }
}

fn close(out: &mut String, bracket: char, indent: Option<usize>) {
    if let Some(depth) = indent {
        out.push('\n');
        out.push_str(&"    ".repeat(depth));
    }
    out.push(bracket);
}

/// Members in the order of jsonb, of each key the last.
pub fn ordered<'v, 'a>(members: &'v [(Cow<'a, str>, Json<'a>)]) -> Vec<&'v (Cow<'a, str>, Json<'a>)> {
    let mut sorted: Vec<_> = members.iter().rev().collect();
    sorted.sort_by(|(left, _), (right, _)| left.len().cmp(&right.len()).then_with(|| left.cmp(right)));
    sorted.dedup_by(|(left, _), (right, _)| left == right);
    sorted
}

/// Writes a text in quotes.
pub fn quote(text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            control if u32::from(control) < 0x20 => {
                // Writing to a String does not fail.
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
}

/// A number as numeric prints it: without an exponent.
fn plain_number(written: &str) -> Result<Cow<'_, str>, PlanError> {
    let negative_zero = written.starts_with('-') && !written.bytes().any(|byte| matches!(byte, b'1'..=b'9'));
    let written = if negative_zero { &written[1..] } else { written };
    let Some((mantissa, exponent)) = written.split_once(['e', 'E']) else { return Ok(Cow::Borrowed(written)) };
    let overflow = || PlanError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format");
    let exponent: i64 = exponent.parse().map_err(|_| overflow())?;
    if exponent.abs() >= DIGITS_MAX {
        return Err(overflow());
    }
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = format!("{whole}{fraction}");
    let mut point = whole.len() as i64 + exponent;
    if point <= 0 {
        digits = format!("{}{digits}", "0".repeat((1 - point) as usize));
        point = 1;
    }
    if point > digits.len() as i64 {
        digits.push_str(&"0".repeat((point - digits.len() as i64) as usize));
    }
    let (whole, fraction) = digits.split_at(point as usize);
    let whole = match whole.trim_start_matches('0') {
        "" => "0",
        trimmed => trimmed,
    };
    Ok(Cow::Owned(if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }))
}

/// The text in the form in which jsonb keeps it.
pub fn canonical(text: &str) -> Result<String, PlanError> {
    parse(text)?.value.canonical()
}

/// Reads a text.
pub fn parse(text: &str) -> Result<Json<'_>, PlanError> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    let value = reader.value()?;
    reader.blanks();
    if reader.at < text.len() { Err(reader.unexpected("end of input")) } else { Ok(value) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn invalid(&self, detail: String) -> PlanError {
        PlanError::new(SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type json").with_detail(detail)
    }

    fn unexpected(&self, expected: &str) -> PlanError {
        let rest = &self.text[self.at..];
        if rest.is_empty() {
            return self.invalid("The input string ended unexpectedly.".to_string());
        }
        let end = rest.find(|letter: char| letter.is_whitespace() || "{}[],:".contains(letter)).unwrap_or(rest.len());
        let first = rest.chars().next().map_or(0, char::len_utf8);
        self.invalid(format!("Expected {expected}, but found \"{}\".", &rest[..end.max(first)]))
    }

    fn value(&mut self) -> Result<Json<'a>, PlanError> {
        self.blanks();
        let start = self.at;
        let value = match self.byte() {
            Some(b'{') => self.nested(Self::object)?,
            Some(b'[') => self.nested(Self::array)?,
            Some(b'"') => Value::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Json { text: &self.text[start..self.at], value })
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value<'a>, PlanError>) -> Result<Value<'a>, PlanError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(PlanError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("a JSON text is nested more than {DEPTH_MAX} deep"),
            ));
        }
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn word(&mut self) -> Result<Value<'a>, PlanError> {
        let words = [("null", Value::Null), ("true", Value::Bool(true)), ("false", Value::Bool(false))];
        for (word, value) in words {
            let Some(rest) = self.text[self.at..].strip_prefix(word) else { continue };
            if !rest.starts_with(|letter: char| letter.is_alphanumeric() || letter == '_') {
                self.at += word.len();
                return Ok(value);
            }
        }
        Err(self.unexpected("JSON value"))
    }

    fn digits(&mut self) -> Result<(), PlanError> {
        let start = self.at;
        while matches!(self.byte(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(self.unexpected("a digit")) } else { Ok(()) }
    }

    fn number(&mut self) -> Result<Value<'a>, PlanError> {
        let start = self.at;
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        if self.byte() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        if self.byte().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'.') {
            self.at = start;
            return Err(self.unexpected("a number"));
        }
        Ok(Value::Number(Cow::Borrowed(&self.text[start..self.at])))
    }

    fn string(&mut self) -> Result<Cow<'a, str>, PlanError> {
        self.at += 1;
        let start = self.at;
        let mut made: Option<String> = None;
        loop {
            match self.byte() {
                None => return Err(self.invalid("The input string ended unexpectedly.".to_string())),
                Some(b'"') => {
                    let rest = &self.text[start..self.at];
                    self.at += 1;
                    return Ok(made.map_or(Cow::Borrowed(rest), Cow::Owned));
                }
                Some(b'\\') => {
                    let mut text = made.take().unwrap_or_else(|| self.text[start..self.at].to_string());
                    text.push(self.escape()?);
                    made = Some(text);
                }
                Some(byte) if byte < 0x20 => {
                    return Err(self.invalid(format!("Character with value 0x{byte:02x} must be escaped.")));
                }
                Some(_) => {
                    let Some(letter) = self.text[self.at..].chars().next() else {
                        return Err(self.unexpected("string"));
                    };
                    if let Some(text) = &mut made {
                        text.push(letter);
                    }
                    self.at += letter.len_utf8();
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, PlanError> {
        self.at += 2;
        let letter = self.text.as_bytes().get(self.at - 1).copied();
        Ok(match letter {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.code_point(),
            _ => return Err(self.invalid("An escape sequence is invalid.".to_string())),
        })
    }

    fn code_point(&mut self) -> Result<char, PlanError> {
        let first = self.four_digits()?;
        let code = if (0xd800..0xdc00).contains(&first) && self.text[self.at..].starts_with("\\u") {
            self.at += 2;
            let second = self.four_digits()?;
            0x10000 + ((first - 0xd800) << 10) + second.wrapping_sub(0xdc00) % 0x400
        } else {
            first
        };
        match char::from_u32(code) {
            Some('\0') | None => {
                Err(PlanError::new(SqlState::INVALID_TEXT_REPRESENTATION, "unsupported Unicode escape sequence")
                    .with_detail(format!("\\u{code:04x} cannot be converted to text.")))
            }
            Some(letter) => Ok(letter),
        }
    }

    fn four_digits(&mut self) -> Result<u32, PlanError> {
        let digits = self.text.get(self.at..self.at + 4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let code = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        self.at += 4;
        code.ok_or_else(|| self.invalid("\"\\u\" must be followed by four hexadecimal digits.".to_string()))
    }

    fn array(&mut self) -> Result<Value<'a>, PlanError> {
        let mut items = Vec::new();
        self.blanks();
        if self.byte() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value()?);
            self.blanks();
            match self.byte() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Value::Array(items));
                }
                _ => return Err(self.unexpected("\",\" or \"]\"")),
            }
        }
    }

    fn object(&mut self) -> Result<Value<'a>, PlanError> {
        let mut members = Vec::new();
        self.blanks();
        if self.byte() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(members));
        }
        loop {
            self.blanks();
            if self.byte() != Some(b'"') {
                return Err(self.unexpected("string"));
            }
            let key = self.string()?;
            self.blanks();
            if self.byte() != Some(b':') {
                return Err(self.unexpected("\":\""));
            }
            self.at += 1;
            members.push((key, self.value()?));
            self.blanks();
            match self.byte() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Value::Object(members));
                }
                _ => return Err(self.unexpected("\",\" or \"}\"")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(canonical(text).ok().as_deref(), Some(expected), "{text}");
    }

    #[test]
    fn canonical_texts() {
        check(
            r#"{"bb":1, "a": [1, 2.50, null, true], "c":{"z":1e2}}"#,
            r#"{"a": [1, 2.50, null, true], "c": {"z": 100}, "bb": 1}"#,
        );
        check(r#"{"b":1,"a":2,"b":3}"#, r#"{"a": 2, "b": 3}"#);
        check("[1.5e-3, -0, -1E+2, 12.5e1]", "[0.0015, 0, -100, 125]");
        check(r#" "a\u00e9\ud83d\ude00\n\"" "#, "\"aé😀\\n\\\"\"");
        check("[]", "[]");
    }

    #[test]
    fn what_is_no_json() {
        for text in [
            "",
            "{",
            "{\"a\":",
            "[1,]",
            "01",
            "1.",
            "nul",
            "nullx",
            "\"a",
            "{a:1}",
            "[1] 2",
            "\"\\x\"",
            "'a'",
            "\"\\u12\"",
        ] {
            assert_eq!(parse(text).map_err(|error| error.sqlstate.code()), Err("22P02"), "{text}");
        }
        assert!(parse(&"[".repeat(10_000)).is_err());
    }
}
