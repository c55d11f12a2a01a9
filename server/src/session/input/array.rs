//! Arrays written as `{1,NULL,"a b",{...}}`.

use plan::SqlState;

use super::ColumnInput;
use crate::error::{Result, ServerError};

/// Appends the elements of an array; returns how many.
pub fn append(items: &mut ColumnInput, text: &[u8]) -> Result<usize> {
    let malformed = |why: &str| {
        ServerError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("malformed array literal: \"{}\"", String::from_utf8_lossy(text)),
        )
        .with_detail(why.to_owned())
    };
    let inner = text
        .trim_ascii()
        .strip_prefix(b"{")
        .ok_or_else(|| malformed("Array value must start with \"{\" or dimension information."))?
        .strip_suffix(b"}")
        .ok_or_else(|| malformed("Unexpected end of input."))?;
    if inner.trim_ascii().is_empty() {
        return Ok(0);
    }
    let mut count = 0;
    let mut rest = inner;
    let mut element = Vec::new();
    loop {
        rest = rest.trim_ascii_start();
        element.clear();
        let quoted = match rest.first() {
            Some(b'"') => {
                rest = quoted_element(&rest[1..], &mut element).ok_or_else(|| malformed("Unexpected end of input."))?;
                true
            }
            Some(b'{') => {
                let end = nested_end(rest).ok_or_else(|| malformed("Unexpected end of input."))?;
                element.extend_from_slice(&rest[..end]);
                rest = &rest[end..];
                true
            }
            _ => {
                rest = plain_element(rest, &mut element);
                false
            }
        };
        if !quoted && element.is_empty() {
            return Err(malformed("Unexpected \",\" character."));
        }
        if !quoted && element.eq_ignore_ascii_case(b"null") {
            items.append_null();
        } else {
            items.append(&element)?;
        }
        count += 1;
        match rest.trim_ascii_start() {
            [] => return Ok(count),
            [b',', tail @ ..] => rest = tail,
            _ => return Err(malformed("Unexpected array element.")),
        }
    }
}

/// Takes a quoted element after its first quote; returns what follows its last.
fn quoted_element<'a>(text: &'a [u8], element: &mut Vec<u8>) -> Option<&'a [u8]> {
    let mut rest = text;
    loop {
        match rest {
            [b'"', tail @ ..] => return Some(tail),
            [b'\\', byte, tail @ ..] | [byte, tail @ ..] => {
                element.push(*byte);
                rest = tail;
            }
            [] => return None,
        }
    }
}

/// Takes an element without quotes; returns what follows.
fn plain_element<'a>(text: &'a [u8], element: &mut Vec<u8>) -> &'a [u8] {
    let mut rest = text;
    loop {
        match rest {
            [] | [b',', ..] => break,
            [b'\\', byte, tail @ ..] | [byte, tail @ ..] => {
                element.push(*byte);
                rest = tail;
            }
        }
    }
    let length = element.trim_ascii_end().len();
    element.truncate(length);
    rest
}

/// Length of a nested array with its braces.
fn nested_end(text: &[u8]) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (index, byte) in text.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => quoted = !quoted,
            b'{' if !quoted => depth += 1,
            b'}' if !quoted => {
                depth -= 1;
                if depth == 0 {
                    return Some(index + 1);
                }
            }
            _ => {}
        }
    }
    None
}
