//! Decimal numbers as texts of digits: rounding without a loss.

/// A number times ten to the power of `shift`, rounded half away from zero to so many digits after the point.
pub fn rounded(text: &str, shift: usize, after: usize) -> String {
    let (negative, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => (true, unsigned),
        None => (false, text),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    // Digits with the point after `point` of them, zeros appended as far as they are looked at.
    let mut digits: Vec<u8> = format!("0{whole}{fraction}").into_bytes();
    let point = 1 + whole.len() + shift;
    let kept = point + after;
    if digits.len() < kept + 1 {
        digits.resize(kept + 1, b'0');
    }
    let up = digits[kept] >= b'5';
    digits.truncate(kept);
    if up {
        increment(&mut digits);
    }
    let digits = String::from_utf8_lossy(&digits).into_owned();
    let whole = digits[..point].trim_start_matches('0');
    let whole = if whole.is_empty() { "0" } else { whole };
    let negative = negative && digits.bytes().any(|digit| digit != b'0');
    let sign = if negative { "-" } else { "" };
    let dot = if after > 0 { "." } else { "" };
    format!("{sign}{whole}{dot}{}", &digits[point..])
}

/// Adds one to the last digit. The first is a zero, so that there is room.
fn increment(digits: &mut [u8]) {
    for digit in digits.iter_mut().rev() {
        if *digit < b'9' {
            *digit += 1;
            return;
        }
        *digit = b'0';
    }
}

/// A number as d.ddde+00 with so many digits after the point.
pub fn scientific(text: &str, after: usize) -> String {
    let (sign, unsigned) = match text.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", text),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let all = format!("{whole}{fraction}");
    let Some(first) = all.bytes().position(|digit| digit != b'0') else {
        return scientific_of(&format!("{:.after$e}", 0.0));
    };
    let mut exponent = whole.len() as i64 - first as i64 - 1;
    let significant = &all[first..];
    let mut mantissa = rounded(&format!("{}.{}", &significant[..1], &significant[1..]), 0, after);
    if mantissa.starts_with("10") {
        exponent += 1;
        mantissa = rounded(&format!("1.{}", "0".repeat(after)), 0, after);
    }
    scientific_of(&format!("{sign}{mantissa}e{exponent}"))
}

/// An exponent has a sign and at least two digits.
pub fn scientific_of(text: &str) -> String {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{mantissa}e{sign}{digits:0>2}")
}

#[cfg(test)]
mod tests {
    use super::{rounded, scientific};

    #[test]
    fn halves_go_away_from_zero() {
        assert_eq!(rounded("1.005", 0, 2), "1.01");
        assert_eq!(rounded("-0.4", 0, 0), "0");
        assert_eq!(rounded("99.95", 0, 1), "100.0");
        assert_eq!(rounded("12.45", 1, 0), "125");
        assert_eq!(rounded("12", 2, 1), "1200.0");
        assert_eq!(scientific("12345.678", 2), "1.23e+04");
        assert_eq!(scientific("0.00099999", 2), "1.00e-03");
    }
}
