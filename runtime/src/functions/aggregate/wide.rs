//! Integers wide enough for any sum of decimals.

use datafusion::arrow::datatypes::i256;

use super::codec;

/// An integer of `N` words of 64 bits in two's complement. A sum of values of 64 (N - 1) bits with 64-bit weights fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wide<const N: usize> {
    words: [u64; N],
}

impl<const N: usize> Default for Wide<N> {
    fn default() -> Self {
        Wide { words: [0; N] }
    }
}

impl<const N: usize> Wide<N> {
    /// From its words, the lowest first, extended by its sign.
    fn extend(low: &[u64], negative: bool) -> Self {
        let mut words = [if negative { u64::MAX } else { 0 }; N];
        words[..low.len()].copy_from_slice(low);
        Wide { words }
    }

    /// From a 128-bit number.
    #[inline]
    pub fn from_i128(value: i128) -> Self {
        Self::extend(&[value as u64, (value >> 64) as u64], value < 0)
    }

    /// From a 256-bit number; `N` must be 4 at least.
    pub fn from_i256(value: i256) -> Self {
        let (low, high) = value.to_parts();
        Self::extend(&[low as u64, (low >> 64) as u64, high as u64, (high >> 64) as u64], high < 0)
    }

    /// Adds.
    #[inline]
    pub fn add(&mut self, other: &Self) {
        let mut carry = false;
        for (mine, theirs) in self.words.iter_mut().zip(&other.words) {
            let (sum, over) = mine.overflowing_add(*theirs);
            let (sum, over_again) = sum.overflowing_add(u64::from(carry));
            *mine = sum;
            carry = over || over_again;
        }
    }

    fn negate(&mut self) {
        let mut carry = true;
        for word in &mut self.words {
            let (value, over) = (!*word).overflowing_add(u64::from(carry));
            *word = value;
            carry = over;
        }
    }

    /// Multiplies by a weight.
    #[inline]
    pub fn times(mut self, weight: i64) -> Self {
        if weight == 1 {
            return self;
        }
        if weight != -1 {
            let factor = u128::from(weight.unsigned_abs());
            let mut carry = 0u128;
            for word in &mut self.words {
                let product = u128::from(*word) * factor + carry;
                *word = product as u64;
                carry = product >> 64;
            }
        }
        if weight < 0 {
            self.negate();
        }
        self
    }

    /// As a 128-bit number if it fits.
    pub fn to_i128(self) -> Option<i128> {
        let value = (u128::from(self.words[1]) << 64 | u128::from(self.words[0])) as i128;
        (Self::from_i128(value) == self).then_some(value)
    }

    /// As a 256-bit number if it fits.
    pub fn to_i256(self) -> Option<i256> {
        let sign = if self.words[N - 1] >> 63 == 1 { u64::MAX } else { 0 };
        let word = |index: usize| u128::from(self.words.get(index).copied().unwrap_or(sign));
        let value = i256::from_parts(word(1) << 64 | word(0), (word(3) << 64 | word(2)) as i128);
        let negative = value < i256::ZERO;
        let rest = self.words.get(4..).unwrap_or_default();
        let fits = negative == (sign != 0) && rest.iter().all(|word| *word == sign);
        fits.then_some(value)
    }

    /// Appends the bytes that say something, with their number before them.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let mut all = [0u8; 40];
        for (index, word) in self.words.iter().enumerate() {
            all[8 * index..8 * index + 8].copy_from_slice(&word.to_le_bytes());
        }
        let sign = if self.words[N - 1] >> 63 == 1 { 0xff } else { 0 };
        let mut length = 8 * N;
        // The last byte kept must carry the sign.
        while length > 0 && all[length - 1] == sign && (length == 1 || all[length - 2] >> 7 == sign >> 7) {
            length -= 1;
        }
        if length == 0 && sign != 0 {
            length = 1;
        }
        codec::put_bytes(out, &all[..length]);
    }

    /// Reads bytes that [`Wide::encode`] made.
    pub fn decode(input: &mut &[u8]) -> Option<Self> {
        let low = codec::take_bytes(input)?;
        if low.len() > 8 * N {
            return None;
        }
        let sign = if low.last().is_some_and(|last| last >> 7 == 1) { 0xff } else { 0 };
        let mut words = [0u64; N];
        for (index, word) in words.iter_mut().enumerate() {
            let byte = |at: usize| low.get(8 * index + at).copied().unwrap_or(sign);
            *word = u64::from_le_bytes(std::array::from_fn(byte));
        }
        Some(Wide { words })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_256_bits(left in any::<i128>(), right in any::<i128>(), weight in any::<i64>()) {
            let mut wide = Wide::<4>::from_i128(left).times(weight);
            wide.add(&Wide::from_i128(right));
            let expected = i256::from_i128(left) * i256::from_i128(i128::from(weight)) + i256::from_i128(right);
            prop_assert_eq!(wide.to_i256(), Some(expected));
            let mut bytes = Vec::new();
            wide.encode(&mut bytes);
            prop_assert_eq!(Wide::<4>::decode(&mut bytes.as_slice()), Some(wide));
            prop_assert_eq!(Wide::<5>::from_i256(expected).to_i256(), Some(expected));
        }

        #[test]
        fn small_numbers_are_short(value in -128i128..128) {
            let mut bytes = Vec::new();
            Wide::<3>::from_i128(value).encode(&mut bytes);
            prop_assert!(bytes.len() <= 2);
            prop_assert_eq!(Wide::<3>::decode(&mut bytes.as_slice()).and_then(Wide::to_i128), Some(value));
        }
    }

    #[test]
    fn too_large_numbers_do_not_fit() {
        let large = Wide::<3>::from_i128(i128::MAX).times(2);
        assert_eq!(large.to_i128(), None);
        assert_eq!(large.to_i256(), Some(i256::from_i128(i128::MAX) * i256::from_i128(2)));
        assert_eq!(Wide::<5>::from_i256(i256::MAX).times(2).to_i256(), None);
    }
}
