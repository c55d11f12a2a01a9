//! numeric: which of Arrow's types stand for it, and how its values are written.
//!
//! PostgreSQL keeps with each value how many digits after the point it shows. Arrow's decimals have one scale a type. So
//! the type says what is shown: a declared scale is shown whole; a numeric without one, and what is computed with it,
//! without zeros at its end; and quotients and averages with as many digits as PostgreSQL's division gives, which are
//! found again from the value.

use std::fmt::{Result, Write};

use datafusion::arrow::datatypes::{DataType, i256};

/// numeric without precision and scale, as a column.
pub const PLAIN: DataType = DataType::Decimal128(38, PLAIN_SCALE);

/// Digits after the point of [`PLAIN`].
pub const PLAIN_SCALE: i8 = 16;

/// What division and averages give.
pub const QUOTIENT: DataType = DataType::Decimal256(WIDE_PRECISION, QUOTIENT_SCALE);

/// Digits after the point of [`QUOTIENT`].
pub const QUOTIENT_SCALE: i8 = 38;

/// The precision of types that no declaration gives: [`QUOTIENT`], and with fewer digits after the point, what is computed
/// with [`PLAIN`].
pub const WIDE_PRECISION: u8 = 76;

/// The greatest precision of a declared numeric.
pub const DECLARED_PRECISION_MAX: u8 = WIDE_PRECISION - 1;

/// Decimal digits of a digit of PostgreSQL's numeric: scales of quotients are counted in these.
const GROUP: i32 = 4;

/// Significant digits of a quotient at least.
const QUOTIENT_DIGITS: i32 = 16;

/// How many digits after the point are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Display {
    /// All of the scale.
    Fixed,
    /// Without zeros at the end.
    Trimmed,
    /// As PostgreSQL shows a quotient.
    Quotient,
}

/// How values of a decimal type are shown.
pub fn display(data_type: &DataType) -> Display {
    match data_type {
        DataType::Decimal128(38, PLAIN_SCALE) => Display::Trimmed,
        DataType::Decimal256(WIDE_PRECISION, QUOTIENT_SCALE) => Display::Quotient,
        DataType::Decimal256(WIDE_PRECISION, _) => Display::Trimmed,
        _ => Display::Fixed,
    }
}

/// Writes a number of up to 38 digits.
pub fn write128(value: i128, scale: i8, display: Display, out: &mut impl Write) -> Result {
    if value < 0 {
        out.write_char('-')?;
    }
    let mut buffer = itoa::Buffer::new();
    // Most values fit into 64 bits, whose division is several times faster.
    let digits = match u64::try_from(value.unsigned_abs()) {
        Ok(small) => buffer.format(small),
        Err(_) => buffer.format(value.unsigned_abs()),
    };
    write_digits(digits, scale, display, out)
}

/// Writes a number of up to 76 digits.
pub fn write256(value: i256, scale: i8, display: Display, out: &mut impl Write) -> Result {
    if let Some(small) = value.to_i128() {
        return write128(small, scale, display, out);
    }
    let text = value.to_string();
    match text.strip_prefix('-') {
        Some(digits) => {
            out.write_char('-')?;
            write_digits(digits, scale, display, out)
        }
        None => write_digits(&text, scale, display, out),
    }
}

/// Writes digits with a point before the last `scale` of them, as many of those as are shown.
fn write_digits(digits: &str, scale: i8, display: Display, out: &mut impl Write) -> Result {
    if scale <= 0 {
        out.write_str(digits)?;
        return if digits == "0" { Ok(()) } else { write_zeros(usize::from(scale.unsigned_abs()), out) };
    }
    let scale = usize::from(scale.unsigned_abs());
    let (whole, fraction) = digits.split_at(digits.len().saturating_sub(scale));
    out.write_str(if whole.is_empty() { "0" } else { whole })?;
    let shown = shown(digits, scale, display);
    if shown == 0 {
        return Ok(());
    }
    out.write_char('.')?;
    let zeros = scale - fraction.len();
    write_zeros(zeros.min(shown), out)?;
    out.write_str(&fraction[..shown.saturating_sub(zeros).min(fraction.len())])
}

/// How many digits after the point are shown of a number that has `scale` of them; of 0 the digits are "0".
fn shown(digits: &str, scale: usize, display: Display) -> usize {
    match display {
        Display::Fixed => scale,
        Display::Trimmed => significant(digits, scale),
        Display::Quotient => quotient_scale(digits, scale),
    }
}

fn write_zeros(count: usize, out: &mut impl Write) -> Result {
    const ZEROS: &str = "0000000000000000000000000000000000000000000000000000000000000000000000000000";
    match ZEROS.get(..count) {
        Some(zeros) => out.write_str(zeros),
        None => (0..count).try_for_each(|_| out.write_char('0')),
    }
}

/// Digits after the point up to the last that is not 0.
fn significant(digits: &str, scale: usize) -> usize {
    match digits.trim_end_matches('0').len() {
        0 => 0,
        kept => scale.saturating_sub(digits.len() - kept),
    }
}

/// Digits after the point that PostgreSQL shows of a quotient with this value. It depends on dividend and divisor too:
/// where their first digits are the same there are [`GROUP`] more. Of those values 1 can only come from such a pair, and
/// others mostly have digits there.
fn quotient_scale(digits: &str, scale: usize) -> usize {
    let significant = significant(digits, scale);
    if significant == 0 && matches!(digits.trim_end_matches('0'), "" | "1") && digits.len() <= scale + 1 {
        return (QUOTIENT_DIGITS + GROUP) as usize;
    }
    let before_point = digits.len() as i32 - scale as i32;
    let usual = rscale(weight(before_point));
    if significant <= usual {
        return usual.min(scale);
    }
    (usual + (significant - usual).next_multiple_of(GROUP as usize)).min(scale)
}

/// The power of 10,000 of the first digit to that base, for a number with so many decimal digits before the point (below 0:
/// with so many zeros after it).
fn weight(before_point: i32) -> i32 {
    (before_point - 1).div_euclid(GROUP)
}

/// Digits after the point of a quotient whose first digit to the base 10,000 has the given weight.
fn rscale(weight: i32) -> usize {
    (QUOTIENT_DIGITS - GROUP * weight).max(0) as usize
}

/// An operand of a division.
#[derive(Debug, Clone, Copy)]
pub struct Operand<'a> {
    /// Its decimal digits without a sign and without zeros before them; of 0 they are "0" or none.
    pub digits: &'a str,
    /// How many of them stand after the point.
    pub scale: i32,
    /// How many of those are shown.
    pub display: Display,
}

impl Operand<'_> {
    /// Weight and value of the first digit to the base 10,000.
    fn first(&self) -> (i32, u32) {
        if matches!(self.digits, "" | "0") {
            return (0, 0);
        }
        let before_point = self.digits.len() as i32 - self.scale;
        let weight = weight(before_point);
        let wanted = (before_point - GROUP * weight) as usize;
        let mut first = 0;
        for place in 0..wanted {
            let digit = self.digits.as_bytes().get(place).map_or(0, |digit| u32::from(digit - b'0'));
            first = first * 10 + digit;
        }
        (weight, first)
    }

    fn shown(&self) -> usize {
        shown(self.digits, usize::try_from(self.scale).unwrap_or(0), self.display)
    }
}

/// Digits after the point to which PostgreSQL rounds a quotient (`select_div_scale` of its numeric.c): at least 16
/// significant ones, and no fewer than dividend and divisor show.
pub fn division_scale(dividend: Operand<'_>, divisor: Operand<'_>) -> i8 {
    let ((weight, first), (divisor_weight, divisor_first)) = (dividend.first(), divisor.first());
    let weight = weight - divisor_weight - i32::from(first <= divisor_first);
    let scale = rscale(weight).max(dividend.shown()).max(divisor.shown());
    // Clamped to what there is, so it fits.
    scale.min(QUOTIENT_SCALE as usize) as i8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: i128, scale: i8, display: Display) -> String {
        let mut out = String::new();
        write128(value, scale, display, &mut out).unwrap();
        out
    }

    #[test]
    fn declared_scales_are_shown_whole() {
        assert_eq!(text(12345, 2, Display::Fixed), "123.45");
        assert_eq!(text(-5, 2, Display::Fixed), "-0.05");
        assert_eq!(text(0, 2, Display::Fixed), "0.00");
        assert_eq!(text(10, -2, Display::Fixed), "1000");
    }

    #[test]
    fn plain_numerics_have_no_zeros_at_the_end() {
        assert_eq!(text(15_000, 4, Display::Trimmed), "1.5");
        assert_eq!(text(10_000, 4, Display::Trimmed), "1");
        assert_eq!(text(0, 4, Display::Trimmed), "0");
        assert_eq!(text(-70, 4, Display::Trimmed), "-0.007");
        assert_eq!(text(i128::MAX, 1, Display::Trimmed), "17014118346046923173168730371588410572.7");
        let mut out = String::new();
        let wide = i256::from_i128(10).wrapping_pow(70);
        write256(wide.wrapping_neg(), 69, Display::Trimmed, &mut out).unwrap();
        assert_eq!(out, "-10");
    }

    #[test]
    fn quotients_show_as_many_digits_as_in_postgres() {
        let shown = |text: &str| {
            // At the scale of a quotient.
            let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
            let digits = format!("{whole}{fraction:0<38}");
            let value: i256 = i256::from_string(&digits).unwrap();
            let mut out = String::new();
            write256(value, QUOTIENT_SCALE, Display::Quotient, &mut out).unwrap();
            out
        };
        assert_eq!(shown("3.5"), "3.5000000000000000");
        assert_eq!(shown("0.33333333333333333333"), "0.33333333333333333333");
        assert_eq!(shown("0.5"), "0.50000000000000000000");
        assert_eq!(shown("0"), "0.00000000000000000000");
        assert_eq!(shown("1"), "1.00000000000000000000");
        assert_eq!(shown("-2"), "-2.0000000000000000");
        assert_eq!(shown("100"), "100.0000000000000000");
        assert_eq!(shown("10000"), "10000.000000000000");
        assert_eq!(shown("12345.333333333333"), "12345.333333333333");
        assert_eq!(shown("1.16666666666666666667"), "1.16666666666666666667");
        assert_eq!(shown("123456789012345678"), "123456789012345678");
    }

    #[test]
    fn a_quotient_has_16_significant_digits() {
        let scale = |dividend: (&'static str, i32), divisor: (&'static str, i32)| {
            let operand = |(digits, scale)| Operand { digits, scale, display: Display::Fixed };
            division_scale(operand(dividend), operand(divisor))
        };
        assert_eq!(scale(("70", 1), ("2", 0)), 16);
        assert_eq!(scale(("1", 0), ("30", 1)), 20);
        assert_eq!(scale(("100", 0), ("3", 0)), 16);
        assert_eq!(scale(("20000", 0), ("1", 0)), 12);
        assert_eq!(scale(("", 0), ("5", 0)), 20);
        assert_eq!(scale(("25", 1), ("2", 0)), 20);
        assert_eq!(scale(("1", 25), ("2", 0)), 38);
    }
}
