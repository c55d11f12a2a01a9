//! Exact sums of floating-point numbers.
//!
//! A double is an integer multiple of 2^-1074, so a sum of doubles is one too. It is kept as that integer, in limbs of
//! 64 bits that stand 32 bits apart: `sum = 2^-1074 * Σ limbs[i] * 2^(32 * (first + i))`. The overlap leaves room for
//! many additions before carries are passed on (the small superaccumulator of R. M. Neal, "Fast exact summation using
//! small and large superaccumulators"). Limbs exist only where a number has been added, so sums of numbers of similar
//! size take few.
//!
//! The unit is another one for sums of integers (1) and of products of doubles (2^-2148).
//!
//! Addition is exact, hence in any order and with subtraction as its inverse; only [`ExactSum::round`] rounds, once, to
//! the nearest double (ties to even).

use super::big::Big;
use super::codec;

const LIMB_BITS: u32 = 32;
const LIMB_MASK: i64 = 0xffff_ffff;

/// One addition adds less than 2^53 to a limb, so 2^9 of them and a carry stay below 2^63.
const ADDITIONS_BEFORE_CARRY_MAX: u32 = 1 << 9;

/// A sum of finite doubles.
#[derive(Debug, Clone, Default)]
pub struct ExactSum {
    limbs: Vec<i64>,
    first: u8,
    additions: u32,
}

impl ExactSum {
    /// Adds a finite number so many times; a negative number of times takes it away.
    #[inline]
    pub fn add(&mut self, value: f64, weight: i64) {
        debug_assert!(value.is_finite(), "only finite numbers have a place in an exact sum");
        let bits = value.to_bits();
        let exponent = ((bits >> 52) & 0x7ff) as u32;
        let fraction = bits & ((1 << 52) - 1);
        // Subnormal numbers have the exponent of the smallest normal ones and no hidden bit.
        let (mantissa, position) = if exponent == 0 { (fraction, 0) } else { (fraction | 1 << 52, exponent - 1) };
        if mantissa == 0 {
            return;
        }
        let (limb, shift) = ((position / LIMB_BITS) as u8, position % LIMB_BITS);
        let negative = (bits >> 63 == 1) != (weight < 0);
        if weight == 1 || weight == -1 {
            let at = self.window(limb, 2);
            let low = ((mantissa << shift) as i64) & LIMB_MASK;
            let high = (mantissa >> (LIMB_BITS - shift)) as i64;
            if negative {
                self.limbs[at] -= low;
                self.limbs[at + 1] -= high;
            } else {
                self.limbs[at] += low;
                self.limbs[at + 1] += high;
            }
            self.count_addition();
            return;
        }
        let times = weight.unsigned_abs();
        for (half, half_limb) in [(times & 0xffff_ffff, limb), (times >> 32, limb + 1)] {
            if half != 0 {
                self.add_product((u128::from(mantissa) * u128::from(half)) << shift, half_limb, negative);
            }
        }
    }

    /// Adds an integer below 2^128 at a limb.
    fn add_product(&mut self, product: u128, limb: u8, negative: bool) {
        let at = self.window(limb, 4);
        for part in 0..4 {
            let digit = (product >> (LIMB_BITS * part)) as i64 & LIMB_MASK;
            self.limbs[at + part as usize] += if negative { -digit } else { digit };
        }
        self.count_addition();
    }

    /// Adds an integer, in digits of 32 bits, times `2^position` units.
    pub fn add_digits(&mut self, digits: &[u32], position: u32, negative: bool) {
        // Positions of products of doubles are below 2^13.
        let (limb, shift) = ((position / LIMB_BITS) as u8, position % LIMB_BITS);
        let at = self.window(limb, digits.len() + 1);
        let mut carry = 0u64;
        for (limb, digit) in self.limbs[at..].iter_mut().zip(digits.iter().chain(std::iter::once(&0))) {
            carry |= u64::from(*digit) << shift;
            let part = carry as i64 & LIMB_MASK;
            *limb += if negative { -part } else { part };
            carry >>= LIMB_BITS;
        }
        self.count_addition();
    }

    /// The sum as an integer in units.
    pub fn to_big(&self) -> Big {
        let mut sum = self.clone();
        sum.carry();
        let negative = sum.limbs.last() == Some(&-1);
        if negative {
            sum.limbs.iter_mut().for_each(|limb| *limb = -*limb);
            sum.carry();
        }
        let mut digits = vec![0; usize::from(sum.first)];
        digits.extend(sum.limbs.iter().map(|limb| *limb as u32));
        Big::new(negative, digits)
    }

    #[inline]
    fn count_addition(&mut self) {
        self.additions += 1;
        if self.additions >= ADDITIONS_BEFORE_CARRY_MAX {
            self.carry();
        }
    }

    /// Makes sure that `count` limbs exist from number `limb` on; returns the index of the first of them.
    #[inline]
    fn window(&mut self, limb: u8, count: usize) -> usize {
        if limb >= self.first && usize::from(limb - self.first) + count <= self.limbs.len() {
            return usize::from(limb - self.first);
        }
        self.widen(limb, count)
    }

    #[cold]
    fn widen(&mut self, limb: u8, count: usize) -> usize {
        if self.limbs.is_empty() {
            self.first = limb;
        }
        if limb < self.first {
            let missing = usize::from(self.first - limb);
            self.limbs.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = limb;
        }
        let at = usize::from(limb - self.first);
        if self.limbs.len() < at + count {
            self.limbs.resize(at + count, 0);
        }
        at
    }

    /// Passes carries on and removes limbs that say nothing. Afterwards all limbs are in `0..2^32` except that the
    /// last one of a negative sum is -1; equal sums have equal limbs.
    fn carry(&mut self) {
        self.additions = 0;
        let mut carry = 0i64;
        for limb in &mut self.limbs {
            let value = *limb + carry;
            *limb = value & LIMB_MASK;
            carry = value >> LIMB_BITS;
        }
        while carry != 0 && carry != -1 {
            self.limbs.push(carry & LIMB_MASK);
            carry >>= LIMB_BITS;
        }
        if carry == -1 {
            self.limbs.push(-1);
        }
        while let Some(last) = self.limbs.last() {
            let below = self.limbs.len().checked_sub(2).map(|index| self.limbs[index]);
            match (*last, below) {
                (0, _) => {
                    self.limbs.pop();
                }
                (-1, Some(LIMB_MASK)) => {
                    self.limbs.pop();
                    let top = self.limbs.len() - 1;
                    self.limbs[top] = -1;
                }
                _ => break,
            }
        }
        let zeros = self.limbs.iter().take_while(|limb| **limb == 0).count();
        self.limbs.drain(..zeros);
        // At most 160 limbs, so the number fits.
        self.first = if self.limbs.is_empty() { 0 } else { self.first + zeros as u8 };
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: &ExactSum) {
        if other.limbs.is_empty() {
            return;
        }
        if self.additions + other.additions + 1 >= ADDITIONS_BEFORE_CARRY_MAX {
            self.carry();
        }
        let at = self.window(other.first, other.limbs.len());
        for (mine, theirs) in self.limbs[at..].iter_mut().zip(&other.limbs) {
            *mine += theirs;
        }
        self.additions += other.additions + 1;
    }

    /// The double nearest to the sum; an infinity if it is too large.
    pub fn round(&self) -> f64 {
        self.round_scaled(0)
    }

    /// The double nearest to the sum times `2^-down`. Exact scaling is meant for sums too large for a double: the
    /// result must not be subnormal.
    pub fn round_scaled(&self, down: u32) -> f64 {
        let mut sum = self.clone();
        sum.carry();
        let Some(last) = sum.limbs.last() else { return 0.0 };
        let negative = *last == -1;
        if negative {
            sum.limbs.iter_mut().for_each(|limb| *limb = -*limb);
            sum.carry();
        }
        let magnitude = round_magnitude(&sum.limbs, u32::from(sum.first), down);
        if negative { -magnitude } else { magnitude }
    }

    /// Appends the sum's bytes; equal sums give equal bytes.
    pub fn encode(&mut self, out: &mut Vec<u8>) {
        self.carry();
        let Some(last) = self.limbs.last() else {
            out.push(0);
            return;
        };
        let negative = *last == -1;
        let digits = self.limbs.len() - usize::from(negative);
        codec::put_unsigned(out, (2 * digits + usize::from(negative) + 1) as u128);
        out.push(self.first);
        for limb in &self.limbs[..digits] {
            out.extend_from_slice(&(*limb as u32).to_le_bytes());
        }
    }

    /// Reads bytes that [`ExactSum::encode`] made.
    pub fn decode(input: &mut &[u8]) -> Option<Self> {
        let mut sum = ExactSum::default();
        let Some(header) = codec::take_unsigned(input)?.checked_sub(1) else { return Some(sum) };
        sum.first = codec::take_u8(input)?;
        for _ in 0..header / 2 {
            sum.limbs.push(i64::from(u32::from_le_bytes(codec::take_array(input)?)));
        }
        if header % 2 == 1 {
            sum.limbs.push(-1);
        }
        Some(sum)
    }

    /// Bytes of memory beyond the struct itself.
    pub fn heap_size(&self) -> usize {
        self.limbs.capacity() * size_of::<i64>()
    }
}

/// Rounds `2^-1074 * Σ limbs[i] * 2^(32 * (first + i)) * 2^-down`; limbs are in `0..2^32`, the last is not 0.
fn round_magnitude(limbs: &[i64], first: u32, down: u32) -> f64 {
    let top = limbs.len() - 1;
    // Position of the highest bit, counted from 2^-1074.
    let highest = LIMB_BITS * (first + top as u32) + (63 - limbs[top].leading_zeros());
    // Bits of the limbs from a position on, at most 64 of them.
    let bit_window = |from: i64| -> u64 {
        let mut window = 0u128;
        let limb = from.div_euclid(i64::from(LIMB_BITS)) - i64::from(first);
        for part in 0..3 {
            let digit = usize::try_from(limb + part).ok().and_then(|index| limbs.get(index)).copied().unwrap_or(0);
            window |= (digit as u128) << (LIMB_BITS * part as u32);
        }
        (window >> from.rem_euclid(i64::from(LIMB_BITS))) as u64
    };
    if highest < 53 {
        // Below 2^53 units the double's bits are the integer itself.
        return f64::from_bits(bit_window(0));
    }
    let lowest = i64::from(highest) - 52;
    let mantissa = bit_window(lowest) & ((1 << 53) - 1);
    let half = bit_window(lowest - 1) & 1 == 1;
    let odd = mantissa & 1 == 1;
    let rounded_up = half && (odd || any_bit_below(limbs, first, lowest - 1));
    let exponent = highest as u64 - 52 + 1;
    let Some(exponent) = exponent.checked_sub(u64::from(down)).filter(|exponent| *exponent >= 1) else { return 0.0 };
    if exponent >= 0x7ff {
        return f64::INFINITY;
    }
    // A mantissa that rounds up to 2^53 carries into the exponent, and from the greatest one into infinity.
    f64::from_bits(((exponent - 1) << 52) + mantissa + u64::from(rounded_up))
}

/// Whether a bit is set below a position.
fn any_bit_below(limbs: &[i64], first: u32, position: i64) -> bool {
    let limb = position.div_euclid(i64::from(LIMB_BITS)) - i64::from(first);
    let bits = position.rem_euclid(i64::from(LIMB_BITS));
    limbs.iter().enumerate().any(|(index, digit)| match (index as i64).cmp(&limb) {
        std::cmp::Ordering::Less => *digit != 0,
        std::cmp::Ordering::Equal => digit & ((1 << bits) - 1) != 0,
        std::cmp::Ordering::Greater => false,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sum(values: &[f64]) -> ExactSum {
        let mut sum = ExactSum::default();
        values.iter().for_each(|value| sum.add(*value, 1));
        sum
    }

    fn bytes_of(mut sum: ExactSum) -> Vec<u8> {
        let mut bytes = Vec::new();
        sum.encode(&mut bytes);
        bytes
    }

    fn finite() -> impl Strategy<Value = f64> {
        prop_oneof![
            any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |value| value.is_finite()),
            -1e6..1e6f64,
            (-1000i32..1000).prop_map(f64::from),
        ]
    }

    #[test]
    fn rounds_once() {
        assert_eq!(sum(&[0.1; 10]).round(), 1.0);
        assert_eq!(sum(&[1e308, 1.0, -1e308]).round(), 1.0);
        assert_eq!(sum(&[1e16, 1.0]).round(), 1e16);
        assert_eq!(sum(&[1e16, 1.0, 1e-300]).round(), 1e16 + 2.0);
        assert_eq!(sum(&[5e-324, 5e-324]).round(), 1e-323);
        assert_eq!(sum(&[-1e-39]).round(), -1e-39);
        assert_eq!(sum(&[f64::MAX, f64::MAX]).round(), f64::INFINITY);
        assert_eq!(sum(&[f64::MAX, f64::MAX, -f64::MAX]).round(), f64::MAX);
        assert_eq!(sum(&[f64::MAX, f64::MAX]).round_scaled(1), f64::MAX);
        assert_eq!(sum(&[f64::MIN_POSITIVE, -5e-324]).round(), f64::MIN_POSITIVE - 5e-324);
    }

    #[test]
    fn the_bytes_are_pinned() {
        assert_eq!(bytes_of(sum(&[])), [0]);
        assert_eq!(bytes_of(sum(&[1.0])), [3, 33, 0, 0, 4, 0]);
        assert_eq!(bytes_of(sum(&[-1.0])), [4, 33, 0, 0, 252, 255]);
    }

    proptest! {
        #[test]
        fn one_number_is_itself(value in finite()) {
            prop_assert_eq!(sum(&[value]).round(), value + 0.0);
        }

        #[test]
        fn two_numbers_round_as_the_machine_does(left in finite(), right in finite()) {
            prop_assert_eq!(sum(&[left, right]).round(), left + right);
        }

        #[test]
        fn order_does_not_matter(values in prop::collection::vec(finite(), 0..60), seed in any::<u64>()) {
            let mut shuffled = values.clone();
            shuffled.sort_by_key(|value| value.to_bits().wrapping_mul(seed | 1));
            let (left, right) = shuffled.split_at(shuffled.len() / 2);
            let mut merged = sum(left);
            merged.merge(&sum(right));
            prop_assert_eq!(bytes_of(merged), bytes_of(sum(&values)));
        }

        #[test]
        fn what_is_taken_away_leaves_nothing(
            kept in prop::collection::vec(finite(), 0..20),
            gone in prop::collection::vec((finite(), -1_000_000_007i64 << 20..1_000_000_007 << 20), 0..20),
        ) {
            let mut changed = sum(&kept);
            gone.iter().for_each(|(value, weight)| changed.add(*value, *weight));
            let encoded = bytes_of(changed);
            let mut changed = ExactSum::decode(&mut encoded.as_slice()).unwrap();
            gone.iter().for_each(|(value, weight)| changed.add(*value, -weight));
            prop_assert_eq!(changed.round(), sum(&kept).round());
            prop_assert_eq!(bytes_of(changed), bytes_of(sum(&kept)));
        }

        #[test]
        fn weights_are_repetitions(value in finite(), weight in -700i64..700) {
            let mut weighted = ExactSum::default();
            weighted.add(value, weight);
            let repeated = sum(&vec![if weight < 0 { -value } else { value }; weight.unsigned_abs() as usize]);
            prop_assert_eq!(bytes_of(weighted), bytes_of(repeated));
        }
    }
}
