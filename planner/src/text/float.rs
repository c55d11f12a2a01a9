//! Floating-point numbers as Postgres writes them: the shortest digits that read back to the same number, or a given
//! number of digits.

use bytes::BytesMut;

use super::{integer, zeros};

/// double precision.
pub fn float64(value: f64, extra_float_digits: i32, out: &mut BytesMut) {
    /// Whole numbers below this have at most 15 digits and no exponent.
    const PLAIN_MAX: f64 = 1e15;
    if extra_float_digits > 0 {
        if value.abs() < PLAIN_MAX && value.trunc() == value && (value != 0.0 || value.is_sign_positive()) {
            return integer(value as i64, out);
        }
        if !value.is_finite() {
            return not_finite(value, out);
        }
        let mut buffer = ryu::Buffer::new();
        let shortest = buffer.format_finite(value);
        return match strictly_between(value, value.next_down(), value.next_up(), 1_u64 << 53, shortest) {
            Some(longer) => decimal_form(&longer, 15, out),
            None => decimal_form(shortest, 15, out),
        };
    }
    rounded(value, 15 + extra_float_digits, out);
}

/// real.
pub fn float32(value: f32, extra_float_digits: i32, out: &mut BytesMut) {
    if !value.is_finite() {
        return not_finite(f64::from(value), out);
    }
    if extra_float_digits > 0 {
        let mut buffer = ryu::Buffer::new();
        let shortest = buffer.format_finite(value);
        let (low, high) = (f64::from(value.next_down()), f64::from(value.next_up()));
        return match strictly_between(f64::from(value), low, high, 1 << 24, shortest) {
            Some(longer) => decimal_form(&longer, 6, out),
            None => decimal_form(shortest, 6, out),
        };
    }
    rounded(f64::from(value), 6 + extra_float_digits, out);
}

/// Postgres takes digits only from strictly between the midpoints to the neighbouring numbers; ryu also takes a midpoint if
/// reading it would give the number back. Returns the longer digits that Postgres writes then. Below `whole_from` no midpoint
/// is shorter than the number itself.
fn strictly_between(value: f64, low: f64, high: f64, whole_from: u64, shortest: &str) -> Option<String> {
    /// Whole numbers up to this can be compared exactly.
    const EXACT_MAX: f64 = 1e37;
    if value.abs() < whole_from as f64 || value.abs() > EXACT_MAX {
        return None;
    }
    let exact = |text: &str| -> Option<i128> {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let fraction = fraction.trim_end_matches('0');
        let power = exponent.parse::<i32>().ok()? - fraction.len() as i32;
        let digits = format!("{whole}{fraction}").parse::<i128>().ok()?;
        digits.checked_mul(10_i128.checked_pow(u32::try_from(power).ok()?)?)
    };
    // Twice the midpoints, which are whole numbers here.
    let (below, above) = (value as i128 + low as i128, value as i128 + high as i128);
    let inside = |twice: i128| below.min(above) < twice && twice < below.max(above);
    if exact(shortest).is_none_or(|number| inside(2 * number)) {
        return None;
    }
    (1..18).map(|digits| format!("{value:.digits$e}")).find(|text| exact(text).is_some_and(|number| inside(2 * number)))
}

/// NaN and the infinities.
fn not_finite(value: f64, out: &mut BytesMut) {
    out.extend_from_slice(if value.is_nan() {
        b"NaN"
    } else if value > 0.0 {
        b"Infinity"
    } else {
        b"-Infinity"
    });
}

/// With a given number of significant digits, trailing zeros removed (C's `%g`).
fn rounded(value: f64, digits: i32, out: &mut BytesMut) {
    if !value.is_finite() {
        return not_finite(value, out);
    }
    let digits = digits.clamp(1, 17);
    decimal_form(&format!("{value:.*e}", digits as usize - 1), digits, out);
}

/// From Rust's forms (`12.5`, `1.25e-7`) to Postgres's: an exponent of two digits at least, and only where the number is
/// below 1e-4 or has more digits before the point than the type's precision.
fn decimal_form(text: &str, precision: i32, out: &mut BytesMut) {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = match text.split_once('e') {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().unwrap_or(0)),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let mut digits = [0_u8; 40];
    let mut length = 0;
    for byte in whole.bytes().chain(fraction.bytes()).take(digits.len()) {
        digits[length] = byte;
        length += 1;
    }
    // Position of the decimal point relative to the first digit kept.
    let leading = digits[..length].iter().take_while(|digit| **digit == b'0').count();
    let mut digits = &digits[leading..length];
    let mut point = whole.len() as i32 + exponent - leading as i32;
    while let [rest @ .., b'0'] = digits {
        digits = rest;
    }
    if digits.is_empty() {
        digits = b"0";
        point = 1;
    }
    if negative {
        out.extend_from_slice(b"-");
    }
    let scientific = point - 1;
    if scientific < -4 || scientific >= precision {
        out.extend_from_slice(&digits[..1]);
        if digits.len() > 1 {
            out.extend_from_slice(b".");
            out.extend_from_slice(&digits[1..]);
        }
        out.extend_from_slice(if scientific < 0 { b"e-" } else { b"e+" });
        if scientific.abs() < 10 {
            out.extend_from_slice(b"0");
        }
        integer(scientific.abs(), out);
    } else if point <= 0 {
        out.extend_from_slice(b"0.");
        zeros((-point) as usize, out);
        out.extend_from_slice(digits);
    } else {
        let point = point as usize;
        let before = digits.len().min(point);
        out.extend_from_slice(&digits[..before]);
        zeros(point - before, out);
        if digits.len() > before {
            out.extend_from_slice(b".");
            out.extend_from_slice(&digits[before..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(write: impl FnOnce(&mut BytesMut)) -> String {
        let mut out = BytesMut::new();
        write(&mut out);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn floats_have_the_forms_of_postgres() {
        let cases: [(f64, &str); 16] = [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (0.1, "0.1"),
            (1e-4, "0.0001"),
            (1.5e-5, "1.5e-05"),
            (123456789012345.0, "123456789012345"),
            (1e15, "1e+15"),
            (1.5e300, "1.5e+300"),
            (2e31, "2e+31"),
            (1e-39, "1e-39"),
            (f64::NAN, "NaN"),
            (f64::INFINITY, "Infinity"),
            (f64::NEG_INFINITY, "-Infinity"),
            (0.1 + 0.2, "0.30000000000000004"),
        ];
        for (value, text) in cases {
            assert_eq!(shown(|out| float64(value, 1, out)), text);
        }
        for (value, text) in [(1e6_f32, "1e+06"), (123456.0, "123456"), (1e38, "1e+38"), (1e-39, "1e-39"), (0.1, "0.1")]
        {
            assert_eq!(shown(|out| float32(value, 1, out)), text);
        }
        // Halfway to the next number, which PostgreSQL does not write though it would be read back.
        assert_eq!(shown(|out| float32(3e10, 1, out)), "3.0000001e+10");
        assert_eq!(shown(|out| float64(9007199254740993.0, 1, out)), "9.007199254740992e+15");
        assert_eq!(shown(|out| float64(1e23, 1, out)), "9.999999999999999e+22");
        assert_eq!(shown(|out| float64(0.1 + 0.2, 0, out)), "0.3");
        assert_eq!(shown(|out| float64(1e20, 0, out)), "1e+20");
    }
}
