//! Integers of any size: for results of exact sums that must not round on the way.

use std::cmp::Ordering;

use datafusion::arrow::datatypes::i256;

/// An integer: sign and magnitude, in digits of 32 bits, the lowest first, without zeros at the top.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Big {
    negative: bool,
    digits: Vec<u32>,
}

/// A number `mantissa * 2^exponent`, with more room for the exponent than a double has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaled {
    mantissa: f64,
    exponent: i64,
}

const DIGIT_BITS: usize = 32;

impl Big {
    /// From digits, the lowest first.
    pub fn new(negative: bool, mut digits: Vec<u32>) -> Self {
        while digits.last() == Some(&0) {
            digits.pop();
        }
        Big { negative: negative && !digits.is_empty(), digits }
    }

    /// From a 128-bit number.
    pub fn from_i128(value: i128) -> Self {
        let magnitude = value.unsigned_abs();
        Big::new(value < 0, (0..4).map(|digit| (magnitude >> (DIGIT_BITS * digit)) as u32).collect())
    }

    /// From a 256-bit number.
    pub fn from_i256(value: i256) -> Self {
        let negative = value < i256::ZERO;
        // The magnitude of the least number is its own bits without a sign.
        let (low, high) = value.wrapping_abs().to_parts();
        let digits = |half: u128| (0..4).map(move |digit| (half >> (DIGIT_BITS * digit)) as u32);
        Big::new(negative, digits(low).chain(digits(high as u128)).collect())
    }

    /// Its decimal digits without a sign; none for 0.
    pub fn to_decimal(&self) -> String {
        const GROUP: u64 = 1_000_000_000;
        let (mut rest, mut groups) = (self.digits.clone(), Vec::new());
        while !rest.is_empty() {
            let mut remainder = 0u64;
            for digit in rest.iter_mut().rev() {
                let value = (remainder << DIGIT_BITS) | u64::from(*digit);
                *digit = (value / GROUP) as u32;
                remainder = value % GROUP;
            }
            while rest.last() == Some(&0) {
                rest.pop();
            }
            groups.push(remainder);
        }
        let text: String = groups.iter().rev().map(|group| format!("{group:09}")).collect();
        text.trim_start_matches('0').to_string()
    }

    /// A power of ten.
    pub fn power_of_ten(exponent: u32) -> Self {
        let mut power = Big::from_i128(1);
        for _ in 0..exponent {
            power = power.times(&Big::from_i128(10));
        }
        power
    }

    /// Whether it is 0.
    pub fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    /// The sum.
    pub fn plus(&self, other: &Big) -> Big {
        if self.negative == other.negative {
            return Big::new(self.negative, add(&self.digits, &other.digits));
        }
        match compare(&self.digits, &other.digits) {
            Ordering::Less => Big::new(other.negative, subtract(&other.digits, &self.digits)),
            _ => Big::new(self.negative, subtract(&self.digits, &other.digits)),
        }
    }

    /// The difference.
    pub fn minus(&self, other: &Big) -> Big {
        self.plus(&Big { negative: !other.negative, digits: other.digits.clone() })
    }

    /// The product.
    pub fn times(&self, other: &Big) -> Big {
        let mut product = vec![0u32; self.digits.len() + other.digits.len()];
        for (at, left) in self.digits.iter().enumerate().filter(|(_, digit)| **digit != 0) {
            let mut carry = 0u64;
            for (slot, right) in product[at..].iter_mut().zip(other.digits.iter().chain(std::iter::repeat(&0))) {
                let sum = u64::from(*left) * u64::from(*right) + u64::from(*slot) + carry;
                *slot = sum as u32;
                carry = sum >> DIGIT_BITS;
            }
        }
        Big::new(self.negative != other.negative, product)
    }

    /// The quotient, rounded half away from zero; the divisor must not be 0.
    pub fn divided_rounded(&self, divisor: &Big) -> Big {
        let (quotient, rest) = divide(&self.digits, &divisor.digits);
        let twice = add(&rest, &rest);
        let up = compare(&twice, &divisor.digits) != Ordering::Less;
        let quotient = if up { add(&quotient, &[1]) } else { quotient };
        Big::new(self.negative != divisor.negative, quotient)
    }

    /// The greatest integer whose square is not greater; of a number that is not negative.
    pub fn root(&self) -> Big {
        let bits = self.bits();
        let mut guess = vec![0u32; bits.div_ceil(2) / DIGIT_BITS + 1];
        guess[bits.div_ceil(2) / DIGIT_BITS] = 1 << (bits.div_ceil(2) % DIGIT_BITS);
        // Newton's iteration from above comes down until it is there.
        loop {
            let quotient = divide(&self.digits, &guess).0;
            let next = Big::new(false, halve(&add(&guess, &quotient))).digits;
            if compare(&next, &guess) != Ordering::Less {
                return Big::new(false, guess);
            }
            guess = next;
        }
    }

    /// As a 256-bit number if it fits.
    pub fn to_i256(&self) -> Option<i256> {
        if self.bits() > 255 {
            return None;
        }
        let digit = |index: usize| u128::from(self.digits.get(index).copied().unwrap_or(0));
        let half = |first: usize| (0..4).map(|index| digit(first + index) << (DIGIT_BITS * index)).sum::<u128>();
        // Below 2^127, so it fits.
        let magnitude = i256::from_parts(half(0), half(4) as i128);
        Some(if self.negative { magnitude.wrapping_neg() } else { magnitude })
    }

    /// The number times `2^exponent`, rounded to the digits of a double.
    pub fn scaled(&self, exponent: i64) -> Scaled {
        let bits = self.bits();
        if bits == 0 {
            return Scaled { mantissa: 0.0, exponent: 0 };
        }
        // The 64 highest bits; whether there is anything below shows in the lowest of them.
        let shift = bits as i64 - 64;
        let window = |from: i64| -> u64 {
            (0..3)
                .fold(0u128, |window, part| {
                    let digit =
                        usize::try_from(from.div_euclid(32) + part).ok().and_then(|index| self.digits.get(index));
                    window | u128::from(digit.copied().unwrap_or(0)) << (DIGIT_BITS * part as usize)
                })
                .wrapping_shr(from.rem_euclid(32) as u32) as u64
        };
        let below = (0..shift.max(0)).step_by(DIGIT_BITS).any(|bit| {
            let digit = self.digits[bit as usize / DIGIT_BITS];
            let kept = (shift - bit).min(32);
            digit & ((1u64 << kept) - 1) as u32 != 0
        });
        let magnitude = (window(shift) | u64::from(below)) as f64;
        Scaled { mantissa: if self.negative { -magnitude } else { magnitude }, exponent: exponent + shift }
    }

    fn bits(&self) -> usize {
        self.digits.last().map_or(0, |top| self.digits.len() * DIGIT_BITS - top.leading_zeros() as usize)
    }
}

impl Scaled {
    /// From a number.
    pub fn new(value: f64) -> Self {
        Scaled { mantissa: value, exponent: 0 }.normal()
    }

    /// The product.
    pub fn times(self, other: Scaled) -> Scaled {
        Scaled { mantissa: self.mantissa * other.mantissa, exponent: self.exponent + other.exponent }.normal()
    }

    /// The quotient.
    pub fn over(self, other: Scaled) -> Scaled {
        Scaled { mantissa: self.mantissa / other.mantissa, exponent: self.exponent - other.exponent }.normal()
    }

    /// The square root.
    pub fn root(self) -> Scaled {
        let odd = self.exponent.rem_euclid(2);
        let mantissa = if odd == 1 { self.mantissa * 2.0 } else { self.mantissa };
        Scaled { mantissa: mantissa.sqrt(), exponent: (self.exponent - odd) / 2 }
    }

    /// Brings the mantissa near 1, so that products of it do not overflow.
    fn normal(self) -> Scaled {
        if self.mantissa == 0.0 || !self.mantissa.is_finite() {
            return Scaled { exponent: 0, ..self };
        }
        let exponent = i64::from((self.mantissa.to_bits() >> 52) as u16 & 0x7ff) - 1023;
        Scaled { mantissa: power_of_two(self.mantissa, -exponent), exponent: self.exponent + exponent }
    }

    /// As a double; infinite if it is too large.
    pub fn to_f64(self) -> f64 {
        let normal = self.normal();
        power_of_two(normal.mantissa, normal.exponent)
    }
}

/// `value * 2^exponent`.
fn power_of_two(mut value: f64, mut exponent: i64) -> f64 {
    const STEP: i64 = 1000;
    while exponent > STEP && value.is_finite() && value != 0.0 {
        value *= 2f64.powi(STEP as i32);
        exponent -= STEP;
    }
    while exponent < -STEP && value != 0.0 {
        value *= 2f64.powi(-(STEP as i32));
        exponent += STEP;
    }
    // The loops leave a small exponent, or a value for which it says nothing.
    value * 2f64.powi(exponent.clamp(-STEP, STEP) as i32)
}

fn compare(left: &[u32], right: &[u32]) -> Ordering {
    let length = |digits: &[u32]| digits.iter().rposition(|digit| *digit != 0).map_or(0, |top| top + 1);
    let (left, right) = (&left[..length(left)], &right[..length(right)]);
    left.len().cmp(&right.len()).then_with(|| left.iter().rev().cmp(right.iter().rev()))
}

fn add(left: &[u32], right: &[u32]) -> Vec<u32> {
    let (long, short) = if left.len() < right.len() { (right, left) } else { (left, right) };
    let mut carry = 0u64;
    let mut sum: Vec<u32> = Vec::with_capacity(long.len() + 1);
    for (index, digit) in long.iter().enumerate() {
        carry += u64::from(*digit) + u64::from(short.get(index).copied().unwrap_or(0));
        sum.push(carry as u32);
        carry >>= DIGIT_BITS;
    }
    sum.push(carry as u32);
    sum
}

/// The first must not be less.
fn subtract(left: &[u32], right: &[u32]) -> Vec<u32> {
    let mut borrow = 0i64;
    let digit = |digits: &[u32], index: usize| i64::from(digits.get(index).copied().unwrap_or(0));
    (0..left.len())
        .map(|index| {
            let difference = digit(left, index) - digit(right, index) - borrow;
            borrow = i64::from(difference < 0);
            difference as u32
        })
        .collect()
}

fn halve(digits: &[u32]) -> Vec<u32> {
    let above = |index: usize| digits.get(index + 1).copied().unwrap_or(0);
    digits.iter().enumerate().map(|(index, digit)| digit >> 1 | above(index) << 31).collect()
}

/// Quotient and rest (D. Knuth, The Art of Computer Programming, volume 2, algorithm D).
fn divide(dividend: &[u32], divisor: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let divisor = Big::new(false, divisor.to_vec()).digits;
    let dividend = Big::new(false, dividend.to_vec()).digits;
    if dividend.len() < divisor.len() || divisor.is_empty() {
        return (Vec::new(), dividend);
    }
    if let [single] = divisor.as_slice() {
        let mut rest = 0u64;
        let mut quotient = vec![0; dividend.len()];
        for (slot, digit) in quotient.iter_mut().zip(&dividend).rev() {
            let part = rest << DIGIT_BITS | u64::from(*digit);
            *slot = (part / u64::from(*single)) as u32;
            rest = part % u64::from(*single);
        }
        return (quotient, vec![rest as u32]);
    }
    let shift = divisor[divisor.len() - 1].leading_zeros();
    let divisor = shift_left(&divisor, shift);
    let mut rest = shift_left(&dividend, shift);
    let length = divisor.len() - 1;
    let divisor = &divisor[..length];
    let mut quotient = vec![0u32; dividend.len() - length + 1];
    for at in (0..quotient.len()).rev() {
        quotient[at] = quotient_digit(&mut rest[at..=at + length], divisor);
    }
    rest.truncate(length);
    (quotient, shift_right(&rest, shift))
}

/// A digit of the quotient; its product with the divisor is taken from the rest, which has one digit more than the divisor.
fn quotient_digit(rest: &mut [u32], divisor: &[u32]) -> u32 {
    let length = divisor.len();
    let (top, second) = (u64::from(divisor[length - 1]), u64::from(divisor[length - 2]));
    let high = u64::from(rest[length]) << DIGIT_BITS | u64::from(rest[length - 1]);
    let (mut guess, mut left) = (high / top, high % top);
    while guess >> DIGIT_BITS != 0 || guess * second > (left << DIGIT_BITS | u64::from(rest[length - 2])) {
        guess -= 1;
        left += top;
        if left >> DIGIT_BITS != 0 {
            break;
        }
    }
    let mut borrow = 0i64;
    for (slot, digit) in rest.iter_mut().zip(divisor) {
        let product = guess * u64::from(*digit);
        let difference = i64::from(*slot) - borrow - (product & 0xffff_ffff) as i64;
        *slot = difference as u32;
        borrow = (product >> DIGIT_BITS) as i64 - (difference >> DIGIT_BITS);
    }
    let difference = i64::from(rest[length]) - borrow;
    rest[length] = difference as u32;
    if difference < 0 {
        guess -= 1;
        let mut carry = 0u64;
        for (slot, digit) in rest.iter_mut().zip(divisor) {
            carry += u64::from(*slot) + u64::from(*digit);
            *slot = carry as u32;
            carry >>= DIGIT_BITS;
        }
        rest[length] = rest[length].wrapping_add(carry as u32);
    }
    guess as u32
}

/// With one digit more.
fn shift_left(digits: &[u32], bits: u32) -> Vec<u32> {
    let mut carry = 0u64;
    let mut shifted: Vec<u32> = Vec::with_capacity(digits.len() + 1);
    for digit in digits {
        carry |= u64::from(*digit) << bits;
        shifted.push(carry as u32);
        carry >>= DIGIT_BITS;
    }
    shifted.push(carry as u32);
    shifted
}

fn shift_right(digits: &[u32], bits: u32) -> Vec<u32> {
    let pair =
        |index: usize| u64::from(digits.get(index + 1).copied().unwrap_or(0)) << DIGIT_BITS | u64::from(digits[index]);
    (0..digits.len()).map(|index| (pair(index) >> bits) as u32).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn wide(value: &Big) -> i256 {
        value.to_i256().unwrap()
    }

    proptest! {
        #[test]
        fn agrees_with_256_bits(left in any::<i128>(), right in any::<i64>(), small in 1i128..1 << 70) {
            let (a, b) = (Big::from_i128(left), Big::from_i128(i128::from(right)));
            let (x, y) = (i256::from_i128(left), i256::from_i128(i128::from(right)));
            prop_assert_eq!(wide(&a.plus(&b)), x + y);
            prop_assert_eq!(wide(&a.minus(&b)), x - y);
            prop_assert_eq!(wide(&a.times(&b)), x * y);
            let (quotient, rest) = divide(&a.digits, &Big::from_i128(small).digits);
            let back = Big::new(false, quotient).times(&Big::from_i128(small)).plus(&Big::new(false, rest.clone()));
            prop_assert_eq!(back.digits, a.digits);
            prop_assert_eq!(compare(&rest, &Big::from_i128(small).digits), Ordering::Less);
        }

        #[test]
        fn quotients_multiply_back(
            left in prop::collection::vec(any::<u32>(), 0..12),
            right in prop::collection::vec(prop_oneof![Just(u32::MAX), Just(0), any::<u32>()], 1..6),
        ) {
            let (left, right) = (Big::new(false, left), Big::new(false, right));
            prop_assume!(!right.is_zero());
            let (quotient, rest) = divide(&left.digits, &right.digits);
            prop_assert_eq!(compare(&rest, &right.digits), Ordering::Less);
            prop_assert_eq!(Big::new(false, quotient).times(&right).plus(&Big::new(false, rest)), left);
        }

        #[test]
        fn roots_are_the_greatest(digits in prop::collection::vec(any::<u32>(), 0..8)) {
            let value = Big::new(false, digits);
            let root = value.root();
            let next = root.plus(&Big::from_i128(1));
            prop_assert_ne!(compare(&root.times(&root).digits, &value.digits), Ordering::Greater);
            prop_assert_eq!(compare(&next.times(&next).digits, &value.digits), Ordering::Greater);
        }

        #[test]
        fn doubles_are_the_nearest(value in any::<i128>()) {
            prop_assert_eq!(Big::from_i128(value).scaled(0).to_f64(), value as f64);
            prop_assert_eq!(Big::from_i128(value).scaled(-3).to_f64(), value as f64 / 8.0);
        }
    }

    #[test]
    fn quotients_round_half_away_from_zero() {
        let rounded = |value: i128, by: i128| wide(&Big::from_i128(value).divided_rounded(&Big::from_i128(by)));
        assert_eq!(rounded(5, 2), i256::from_i128(3));
        assert_eq!(rounded(-5, 2), i256::from_i128(-3));
        assert_eq!(rounded(7, 3), i256::from_i128(2));
    }

    #[test]
    fn large_and_small_numbers_keep_their_digits() {
        let large = Scaled::new(1e300).times(Scaled::new(1e300));
        assert_eq!(large.to_f64(), f64::INFINITY);
        assert!((large.root().to_f64() - 1e300).abs() <= 1e285);
        assert_eq!(large.over(large).to_f64(), 1.0);
    }
}
