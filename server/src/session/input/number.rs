//! Numbers from text.

use plan::SqlState;

use super::invalid;
use crate::error::{Result, ServerError};

/// Digits that fit into an i64 without a check.
const SAFE_DIGITS: usize = 18;
/// Powers of ten that a double holds exactly.
const EXACT_POWERS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];
/// Whole numbers up to this are exact as doubles.
const EXACT_MAX: u64 = 1 << 53;

/// A whole number, with spaces around it.
#[inline]
pub fn parse_i64(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        [first, ..] if first.is_ascii_digit() => (false, text),
        _ => return parse_i64_slow(text),
    };
    if digits.is_empty() || digits.len() > SAFE_DIGITS {
        return parse_i64_slow(text);
    }
    let mut value = 0_i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return parse_i64_slow(text);
        }
        value = value * 10 + i64::from(digit);
    }
    Some(if negative { -value } else { value })
}

/// With spaces, a plus sign, underscores, another base, or many digits.
fn parse_i64_slow(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?.trim();
    if let Ok(value) = text.parse() {
        return Some(value);
    }
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let lower = digits.to_ascii_lowercase();
    let (radix, digits) = match lower.get(..2) {
        Some("0x") => (16, &lower[2..]),
        Some("0o") => (8, &lower[2..]),
        Some("0b") => (2, &lower[2..]),
        _ => (10, lower.as_str()),
    };
    if digits.starts_with('_') && radix == 10 || digits.ends_with('_') || digits.contains("__") {
        return None;
    }
    let plain: String = digits.chars().filter(|c| *c != '_').collect();
    if !plain.chars().next()?.is_ascii_alphanumeric() {
        return None;
    }
    i64::from_str_radix(&format!("{sign}{plain}"), radix).ok()
}

/// The error for a text that is no whole number of a type.
pub fn integer_error(is_number: bool, text: &[u8], type_name: &str) -> ServerError {
    let trimmed = text.trim_ascii();
    let digits = match trimmed {
        [b'-' | b'+', rest @ ..] => rest,
        rest => rest,
    };
    if is_number || (!digits.is_empty() && digits.iter().all(u8::is_ascii_digit)) {
        return ServerError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("value \"{}\" is out of range for type {type_name}", String::from_utf8_lossy(text)),
        );
    }
    invalid(type_name, text)
}

/// A double.
#[inline]
pub fn parse_f64(text: &[u8]) -> Result<f64> {
    match parse_f64_exact(text) {
        Some(value) => Ok(value),
        None => parse_float_slow::<f64>(text, "double precision"),
    }
}

/// A single.
pub fn parse_f32(text: &[u8]) -> Result<f32> {
    parse_float_slow::<f32>(text, "real")
}

/// Up to 15 digits and a point: mantissa and power of ten are exact, so that one division rounds correctly.
#[inline]
fn parse_f64_exact(text: &[u8]) -> Option<f64> {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    if digits.is_empty() || digits.len() > SAFE_DIGITS {
        return None;
    }
    let mut mantissa = 0_u64;
    let mut fraction = None;
    for (index, byte) in digits.iter().enumerate() {
        let digit = byte.wrapping_sub(b'0');
        if digit <= 9 {
            mantissa = mantissa * 10 + u64::from(digit);
        } else if *byte == b'.' && fraction.is_none() && digits.len() > 1 {
            fraction = Some(digits.len() - 1 - index);
        } else {
            return None;
        }
    }
    if mantissa > EXACT_MAX {
        return None;
    }
    let value = mantissa as f64 / EXACT_POWERS[fraction.unwrap_or(0)];
    Some(if negative { -value } else { value })
}

/// What the two float types have in common.
trait Float: std::str::FromStr + Copy {
    fn is_infinite(self) -> bool;
    fn is_zero(self) -> bool;
}

impl Float for f64 {
    fn is_infinite(self) -> bool {
        f64::is_infinite(self)
    }
    fn is_zero(self) -> bool {
        self == 0.0
    }
}

impl Float for f32 {
    fn is_infinite(self) -> bool {
        f32::is_infinite(self)
    }
    fn is_zero(self) -> bool {
        self == 0.0
    }
}

/// Any form. A number that is too large or too small for the type is an error, not infinity or zero.
fn parse_float_slow<F: Float>(text: &[u8], type_name: &str) -> Result<F> {
    let trimmed = std::str::from_utf8(text).map_err(|_| invalid(type_name, text))?.trim();
    let Ok(value) = trimmed.parse::<F>() else {
        return Err(invalid(type_name, text));
    };
    let unsigned = trimmed.trim_start_matches(['-', '+']).as_bytes();
    let is_word = unsigned.first().is_some_and(u8::is_ascii_alphabetic);
    let mantissa = unsigned.split(|byte| matches!(byte, b'e' | b'E')).next().unwrap_or_default();
    let lost = value.is_zero() && mantissa.iter().any(|byte| matches!(byte, b'1'..=b'9'));
    if !is_word && (value.is_infinite() || lost) {
        return Err(ServerError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("\"{trimmed}\" is out of range for type {type_name}"),
        ));
    }
    Ok(value)
}

/// A numeric as a whole number of units of its scale, rounded half away from zero.
pub fn parse_decimal(text: &[u8], precision: u8, scale: i8) -> Result<i128> {
    let parts = decimal_parts(text.trim_ascii()).ok_or_else(|| invalid("numeric", text))?;
    let (negative, digits, exponent) = parts;
    // The value is digits * 10^exponent; wanted is value * 10^scale.
    let shift = exponent + i32::from(scale);
    let overflow = || {
        ServerError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow").with_detail(format!(
            "A field with precision {precision}, scale {scale} must round to an absolute value less than 10^{}.",
            i32::from(precision) - i32::from(scale)
        ))
    };
    let kept = digits.len() as i32 + shift.min(0);
    let mut value = 0_i128;
    for digit in digits.iter().take(kept.max(0) as usize) {
        value = value.checked_mul(10).and_then(|value| value.checked_add(i128::from(*digit))).ok_or_else(overflow)?;
    }
    if shift > 0 && value != 0 {
        let power = 10_i128.checked_pow(shift as u32).ok_or_else(overflow)?;
        value = value.checked_mul(power).ok_or_else(overflow)?;
    }
    if shift < 0 && kept >= 0 && digits.get(kept as usize).is_some_and(|digit| *digit >= 5) {
        value += 1;
    }
    if value >= 10_i128.checked_pow(u32::from(precision.min(38))).unwrap_or(i128::MAX) {
        return Err(overflow());
    }
    Ok(if negative { -value } else { value })
}

/// Sign, significant digits (as numbers) and the power of ten of the last one.
fn decimal_parts(text: &[u8]) -> Option<(bool, Vec<u8>, i32)> {
    let (negative, rest) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (mantissa, exponent) = match rest.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&rest[..at], std::str::from_utf8(&rest[at + 1..]).ok()?.parse::<i32>().ok()?),
        None => (rest, 0),
    };
    if exponent.abs() > 10_000 {
        return None;
    }
    let mut digits = Vec::with_capacity(mantissa.len());
    let mut fraction = None;
    let mut any = false;
    for (index, byte) in mantissa.iter().enumerate() {
        match byte {
            b'0'..=b'9' => {
                any = true;
                if *byte != b'0' || !digits.is_empty() {
                    digits.push(byte - b'0');
                }
            }
            b'.' if fraction.is_none() => fraction = Some((mantissa.len() - 1 - index) as i32),
            _ => return None,
        }
    }
    any.then_some((negative, digits, exponent - fraction.unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        for (text, value) in [
            ("0", Some(0)),
            ("-7", Some(-7)),
            (" +5 ", Some(5)),
            ("9223372036854775807", Some(i64::MAX)),
            ("-9223372036854775808", Some(i64::MIN)),
            ("9223372036854775808", None),
            ("0x1F", Some(31)),
            ("1_000", Some(1000)),
            ("", None),
            ("1.5", None),
            ("-", None),
        ] {
            assert_eq!(parse_i64(text.as_bytes()), value, "{text}");
        }
    }

    #[test]
    fn floats() {
        for text in ["0.1", "-3.25", "123456.789", "1e-5", "0.30000000000000004", "17", ".5", "5.", "-0", "1e308"] {
            assert_eq!(parse_f64(text.as_bytes()).unwrap().to_bits(), text.parse::<f64>().unwrap().to_bits(), "{text}");
        }
        assert!(parse_f64(b"1e400").is_err());
        assert!(parse_f64(b"1e-400").is_err());
        assert!(parse_f64(b"NaN").unwrap().is_nan());
        assert!(parse_f64(b"-Infinity").unwrap().is_infinite());
        assert!(parse_f64(b"x").is_err());
        assert!(parse_f64(b".").is_err());
        assert!(parse_f32(b"1e39").is_err());
    }

    #[test]
    fn decimals_round_half_away_from_zero() {
        for (text, value) in [
            ("1.005", 101),
            ("-1.005", -101),
            ("0.004", 0),
            ("0.005", 1),
            ("12", 1200),
            ("1e1", 1000),
            ("1234e-2", 1234),
            ("0.0049999", 0),
            ("999.99", 99999),
        ] {
            assert_eq!(parse_decimal(text.as_bytes(), 5, 2).unwrap(), value, "{text}");
        }
        assert_eq!(parse_decimal(b"1000", 5, 2).unwrap_err().message, "numeric field overflow");
        assert!(parse_decimal(b"1.2.3", 5, 2).is_err());
        assert!(parse_decimal(b"", 5, 2).is_err());
    }
}
