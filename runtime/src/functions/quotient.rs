//! Division of numerics, rounded where PostgreSQL rounds: for the operator, and for averages and variances.

use datafusion::arrow::datatypes::i256;
use plan::PlanError;
use plan::numeric::{Display, Operand, QUOTIENT_SCALE, division_scale};

use super::aggregate::big::Big;
use super::aggregate::results::numeric_overflow;

/// A number of a scale.
#[derive(Debug, Clone, Copy)]
pub struct Term<T> {
    /// The number's digits as an integer.
    pub value: T,
    /// How many of them stand after the point.
    pub scale: i8,
    /// How many of those are shown.
    pub display: Display,
}

/// A power of ten, if there is room for it.
pub fn power256(exponent: i32) -> Option<i256> {
    u32::try_from(exponent).ok().and_then(|exponent| i256::from_i128(10).checked_pow(exponent))
}

/// The quotient of numbers at the scale of [`plan::numeric::QUOTIENT`]; the divisor is not 0.
///
/// # Errors
/// If there are more than 38 digits before the point.
pub fn quotient(dividend: Term<i256>, divisor: Term<i256>) -> Result<i256, PlanError> {
    let digits = [dividend.value, divisor.value].map(|value| value.to_string());
    let scale = scale_of(&digits, [dividend, divisor]);
    let shift = i32::from(scale) + i32::from(divisor.scale) - i32::from(dividend.scale);
    let narrow = power256(shift.abs()).and_then(|power| {
        if shift < 0 {
            Some((dividend.value, divisor.value.checked_mul(power)?))
        } else {
            Some((dividend.value.checked_mul(power)?, divisor.value))
        }
    });
    let rounded = match narrow {
        Some((dividend, divisor)) => divided_rounded(dividend, divisor),
        None => {
            let power = Big::power_of_ten(shift.unsigned_abs());
            let (dividend, divisor) = (Big::from_i256(dividend.value), Big::from_i256(divisor.value));
            let (dividend, divisor) =
                if shift < 0 { (dividend, divisor.times(&power)) } else { (dividend.times(&power), divisor) };
            dividend.divided_rounded(&divisor).to_i256().ok_or_else(numeric_overflow)?
        }
    };
    at_quotient_scale(rounded, scale)
}

/// The same for integers of any size, which show no digits after the point themselves.
///
/// # Errors
/// If there are more than 38 digits before the point.
pub fn quotient_of_big(dividend: &Big, dividend_scale: i32, divisor: &Big) -> Result<i256, PlanError> {
    let scale = scale_of_big(dividend, dividend_scale, divisor);
    let shift = i32::from(scale) - dividend_scale;
    let power = Big::power_of_ten(shift.unsigned_abs());
    let rounded = if shift < 0 {
        dividend.divided_rounded(&divisor.times(&power))
    } else {
        dividend.times(&power).divided_rounded(divisor)
    };
    at_quotient_scale(rounded.to_i256().ok_or_else(numeric_overflow)?, scale)
}

/// Digits after the point of the quotient of integers of any size.
pub fn scale_of_big(dividend: &Big, dividend_scale: i32, divisor: &Big) -> i8 {
    let digits = [dividend.to_decimal(), divisor.to_decimal()];
    let operand = |digits, scale| Operand { digits, scale, display: Display::Trimmed };
    division_scale(operand(&digits[0], dividend_scale), operand(&digits[1], 0))
}

fn scale_of(digits: &[String; 2], terms: [Term<i256>; 2]) -> i8 {
    let [dividend, divisor] = [0, 1].map(|side: usize| Operand {
        digits: digits[side].trim_start_matches('-'),
        scale: i32::from(terms[side].scale),
        display: terms[side].display,
    });
    division_scale(dividend, divisor)
}

/// A number of a scale at that of quotients.
pub fn at_quotient_scale(value: i256, scale: i8) -> Result<i256, PlanError> {
    let scaled = power256(i32::from(QUOTIENT_SCALE - scale)).and_then(|power| value.checked_mul(power));
    scaled.filter(|value| fits(*value)).ok_or_else(numeric_overflow)
}

/// Whether a number has at most 76 digits.
pub fn fits(value: i256) -> bool {
    let limit = i256::from_i128(10).wrapping_pow(76);
    value < limit && value > limit.wrapping_neg()
}

/// The quotient, half away from zero.
pub fn divided_rounded(dividend: i256, divisor: i256) -> i256 {
    if let (Some(dividend), Some(divisor)) = (dividend.to_i128(), divisor.to_i128())
        && let (Some(quotient), Some(rest)) = (dividend.checked_div(divisor), dividend.checked_rem(divisor))
    {
        let up = rest.unsigned_abs() >= divisor.unsigned_abs() - rest.unsigned_abs();
        let step = if (dividend < 0) == (divisor < 0) { 1 } else { -1 };
        return i256::from_i128(quotient + if up && rest != 0 { step } else { 0 });
    }
    let (quotient, rest) = (dividend.wrapping_div(divisor), dividend.wrapping_rem(divisor));
    let (rest, size) = (rest.wrapping_abs(), divisor.wrapping_abs());
    if rest == i256::ZERO || rest < size.wrapping_sub(rest) {
        return quotient;
    }
    let same_sign = (dividend < i256::ZERO) == (divisor < i256::ZERO);
    quotient.wrapping_add(i256::from_i128(if same_sign { 1 } else { -1 }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn term(value: i128, scale: i8) -> Term<i256> {
        Term { value: i256::from_i128(value), scale, display: Display::Fixed }
    }

    fn shown(dividend: Term<i256>, divisor: Term<i256>) -> String {
        let mut text = String::new();
        let value = quotient(dividend, divisor).unwrap();
        plan::numeric::write256(value, QUOTIENT_SCALE, Display::Quotient, &mut text).unwrap();
        text
    }

    #[test]
    fn quotients_are_those_of_postgres() {
        assert_eq!(shown(term(70, 1), term(2, 0)), "3.5000000000000000");
        assert_eq!(shown(term(1, 0), term(30, 1)), "0.33333333333333333333");
        assert_eq!(shown(term(-200, 2), term(3, 0)), "-0.66666666666666666667");
        assert_eq!(shown(term(100, 0), term(3, 0)), "33.3333333333333333");
        assert_eq!(shown(term(1_000_000, 0), term(7, 0)), "142857.142857142857");
        assert_eq!(shown(term(22, 0), term(-7, 0)), "-3.1428571428571429");
        assert_eq!(shown(term(5, 3), term(700, 0)), "0.000007142857142857142857");
        let most = 10i128.pow(38) - 1;
        assert_eq!(shown(term(most, 0), term(most, 0)), "1.00000000000000000000");
        assert!(quotient(term(most, 0), term(1, 38)).is_err());
    }

    #[test]
    fn halves_go_away_from_zero() {
        let of = |dividend: i128, divisor: i128| {
            let narrow = divided_rounded(i256::from_i128(dividend), i256::from_i128(divisor));
            let wide = i256::from_i128(10).wrapping_pow(40);
            let same = divided_rounded(
                i256::from_i128(dividend).wrapping_mul(wide),
                i256::from_i128(divisor).wrapping_mul(wide),
            );
            assert_eq!(narrow, same);
            narrow.to_i128().unwrap()
        };
        assert_eq!([of(5, 2), of(-5, 2), of(5, -2), of(7, 3), of(8, 3), of(-8, 3), of(6, 3)], [3, -3, -3, 2, 3, -3, 2]);
    }
}
