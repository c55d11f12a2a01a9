//! Values as integers times powers of two, so that they and their products can be added exactly.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Float64Type, Int64Type, i256};

use super::exact::ExactSum;

/// Digits of 32 bits that a value has at most.
const VALUE_DIGITS: usize = 8;

/// A value as an integer times a power of two.
#[derive(Debug, Clone, Copy)]
pub struct Number {
    negative: bool,
    digits: [u32; VALUE_DIGITS],
    length: usize,
    position: u32,
}

impl Number {
    fn of_magnitude(negative: bool, low: u128, high: u128, position: u32) -> Self {
        let digit = |index: usize| (if index < 4 { low >> (32 * index) } else { high >> (32 * (index - 4)) }) as u32;
        let digits: [u32; VALUE_DIGITS] = std::array::from_fn(digit);
        let length = digits.iter().rposition(|digit| *digit != 0).map_or(0, |top| top + 1);
        Number { negative, digits, length, position }
    }

    fn of_float(value: f64) -> Self {
        let bits = value.to_bits();
        let exponent = (bits >> 52 & 0x7ff) as u32;
        let fraction = bits & ((1 << 52) - 1);
        // Subnormal numbers have the exponent of the smallest normal ones and no hidden bit.
        let (mantissa, position) = if exponent == 0 { (fraction, 0) } else { (fraction | 1 << 52, exponent - 1) };
        Self::of_magnitude(bits >> 63 == 1, u128::from(mantissa), 0, position)
    }

    fn of_i128(value: i128) -> Self {
        Self::of_magnitude(value < 0, value.unsigned_abs(), 0, 0)
    }

    fn of_i256(value: i256) -> Self {
        let (low, high) = if value < i256::ZERO { value.wrapping_neg() } else { value }.to_parts();
        Self::of_magnitude(value < i256::ZERO, low, high as u128, 0)
    }

    fn digits(&self) -> &[u32] {
        &self.digits[..self.length]
    }

    /// Adds its product with another number and a weight to a sum.
    pub fn add_product(&self, other: &Number, weight: i64, sum: &mut ExactSum) {
        if self.length == 0 || other.length == 0 {
            return;
        }
        let mut product = [0u32; 2 * VALUE_DIGITS + 2];
        multiply(&mut product, self.digits(), other.digits());
        let length = self.length + other.length;
        let negative = self.negative != other.negative;
        add_times(sum, &product[..length], weight, self.position + other.position, negative);
    }

    /// Adds it so many times to a sum.
    pub fn add(&self, weight: i64, sum: &mut ExactSum) {
        if self.length > 0 {
            add_times(sum, self.digits(), weight, self.position, self.negative);
        }
    }
}

fn add_times(sum: &mut ExactSum, digits: &[u32], weight: i64, position: u32, negative: bool) {
    let negative = negative != (weight < 0);
    let times = weight.unsigned_abs();
    if times == 1 {
        return sum.add_digits(digits, position, negative);
    }
    let mut product = [0u32; 2 * VALUE_DIGITS + 2];
    multiply(&mut product, digits, &[times as u32, (times >> 32) as u32]);
    sum.add_digits(&product[..digits.len() + 2], position, negative);
}

fn multiply(product: &mut [u32], left: &[u32], right: &[u32]) {
    for (at, left) in left.iter().enumerate() {
        let mut carry = 0u64;
        for (slot, right) in product[at..].iter_mut().zip(right.iter().chain(std::iter::once(&0))) {
            let sum = u64::from(*left) * u64::from(*right) + u64::from(*slot) + carry;
            *slot = sum as u32;
            carry = sum >> 32;
        }
    }
}

/// A column of numbers.
#[derive(Debug)]
pub enum Numbers {
    /// Of at most 64 bits.
    Integers(ArrayRef),
    /// Doubles.
    Floats(ArrayRef),
    /// Decimals of 128 bits.
    Decimals(ArrayRef),
    /// Decimals of 256 bits.
    Wide(ArrayRef),
}

impl Numbers {
    /// For a column of one of these types.
    pub fn new(values: &ArrayRef) -> Option<Self> {
        Some(match values.data_type() {
            DataType::Int16 | DataType::Int32 | DataType::Int64 => {
                Numbers::Integers(cast(values, &DataType::Int64).ok()?)
            }
            DataType::Float64 => Numbers::Floats(values.clone()),
            DataType::Decimal128(..) => Numbers::Decimals(values.clone()),
            DataType::Decimal256(..) => Numbers::Wide(values.clone()),
            _ => return None,
        })
    }

    /// The value of a row, or what is there instead of a finite number.
    #[inline]
    pub fn number(&self, row: usize) -> Result<Number, f64> {
        match self {
            Numbers::Integers(values) => Ok(Number::of_i128(i128::from(values.as_primitive::<Int64Type>().value(row)))),
            Numbers::Decimals(values) => Ok(Number::of_i128(values.as_primitive::<Decimal128Type>().value(row))),
            Numbers::Wide(values) => Ok(Number::of_i256(values.as_primitive::<Decimal256Type>().value(row))),
            Numbers::Floats(values) => {
                let value = values.as_primitive::<Float64Type>().value(row);
                if value.is_finite() { Ok(Number::of_float(value)) } else { Err(value) }
            }
        }
    }
}
