//! Sums that forget nothing: what `sum` and `avg` keep of the values of a group.
//!
//! A state is an element of a commutative group: values come with integer weights, states can be added to each other,
//! and what was added can be taken away. Nothing rounds or overflows before the result is asked for.

use datafusion::arrow::datatypes::{IntervalMonthDayNano, i256};

use super::codec;
use super::exact::ExactSum;
use super::wide::Wide;

/// What is kept of a group's values that are not NULL.
pub trait SumState: Clone + Default + Send + Sync + std::fmt::Debug + 'static {
    /// Adds another state.
    fn merge(&mut self, other: &Self);
    /// How many values, counting their weights.
    fn count(&self) -> i64;
    /// Appends the state's bytes; equal states give equal bytes.
    fn encode(&mut self, out: &mut Vec<u8>);
    /// Reads bytes that [`SumState::encode`] made.
    fn decode(input: &mut &[u8]) -> Option<Self>;
    /// Bytes of memory beyond the struct itself.
    fn heap_size(&self) -> usize {
        0
    }
}

/// A state that takes values of a type.
pub trait Accepts<V>: SumState {
    /// Adds a value so many times.
    fn add(&mut self, value: V, weight: i64);
}

/// Of integers. Products and sums of 64-bit values and 64-bit weights fit 128 bits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IntegerSum {
    /// How many values.
    pub count: i64,
    /// Their sum.
    pub total: i128,
}

impl<V: Into<i128>> Accepts<V> for IntegerSum {
    #[inline]
    fn add(&mut self, value: V, weight: i64) {
        self.count += weight;
        self.total += value.into() * i128::from(weight);
    }
}

impl SumState for IntegerSum {
    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.total += other.total;
    }

    fn count(&self) -> i64 {
        self.count
    }

    fn encode(&mut self, out: &mut Vec<u8>) {
        codec::put_signed(out, i128::from(self.count));
        codec::put_signed(out, self.total);
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        Some(IntegerSum { count: codec::take_i64(input)?, total: codec::take_signed(input)? })
    }
}

/// Of decimals of one scale.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DecimalSum<const N: usize> {
    /// How many values.
    pub count: i64,
    /// Their sum in units of the scale.
    pub total: Wide<N>,
}

/// Of decimals of up to 38 digits.
pub type Decimal128Sum = DecimalSum<3>;

/// Of decimals of up to 76 digits.
pub type Decimal256Sum = DecimalSum<5>;

impl Accepts<i128> for Decimal128Sum {
    #[inline]
    fn add(&mut self, value: i128, weight: i64) {
        self.count += weight;
        self.total.add(&Wide::from_i128(value).times(weight));
    }
}

impl Accepts<i256> for Decimal256Sum {
    #[inline]
    fn add(&mut self, value: i256, weight: i64) {
        self.count += weight;
        self.total.add(&Wide::from_i256(value).times(weight));
    }
}

impl<const N: usize> SumState for DecimalSum<N> {
    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.total.add(&other.total);
    }

    fn count(&self) -> i64 {
        self.count
    }

    fn encode(&mut self, out: &mut Vec<u8>) {
        codec::put_signed(out, i128::from(self.count));
        self.total.encode(out);
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        Some(DecimalSum { count: codec::take_i64(input)?, total: Wide::decode(input)? })
    }
}

/// Of floating-point numbers. NaN and the infinities are counted apart, so that they leave again.
#[derive(Debug, Clone, Default)]
pub struct FloatSum {
    /// How many values.
    pub count: i64,
    finite: ExactSum,
    special: Option<Box<Specials>>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Specials {
    nan: i64,
    positive: i64,
    negative: i64,
}

impl FloatSum {
    /// The sum, if it is not a finite number.
    fn special(&self) -> Option<f64> {
        let special = self.special.as_ref()?;
        match (special.nan != 0, special.positive != 0, special.negative != 0) {
            (false, false, false) => None,
            (false, true, false) => Some(f64::INFINITY),
            (false, false, true) => Some(f64::NEG_INFINITY),
            _ => Some(f64::NAN),
        }
    }

    /// The sum; none if finite numbers add up to more than a double holds.
    pub fn sum(&self) -> Option<f64> {
        self.special().or_else(|| Some(self.finite.round()).filter(|sum| sum.is_finite()))
    }

    /// The mean; there must be values.
    pub fn mean(&self) -> f64 {
        if let Some(special) = self.special() {
            return special;
        }
        let sum = self.finite.round();
        if sum.is_finite() {
            return sum / self.count as f64;
        }
        // The sum of fewer than 2^63 doubles fits when scaled by 2^-64.
        const SCALE_BITS: u32 = 64;
        self.finite.round_scaled(SCALE_BITS) / self.count as f64 * 2f64.powi(SCALE_BITS as i32)
    }

    fn add_special(&mut self, value: f64, weight: i64) {
        let special = self.special.get_or_insert_default();
        if value.is_nan() {
            special.nan += weight;
        } else if value > 0.0 {
            special.positive += weight;
        } else {
            special.negative += weight;
        }
    }
}

impl<V: Into<f64>> Accepts<V> for FloatSum {
    #[inline]
    fn add(&mut self, value: V, weight: i64) {
        let value = value.into();
        self.count += weight;
        if value.is_finite() {
            self.finite.add(value, weight);
        } else {
            self.add_special(value, weight);
        }
    }
}

impl SumState for FloatSum {
    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.finite.merge(&other.finite);
        if let Some(theirs) = &other.special {
            let special = self.special.get_or_insert_default();
            special.nan += theirs.nan;
            special.positive += theirs.positive;
            special.negative += theirs.negative;
        }
    }

    fn count(&self) -> i64 {
        self.count
    }

    fn encode(&mut self, out: &mut Vec<u8>) {
        codec::put_signed(out, i128::from(self.count));
        match self.special.as_deref().filter(|special| **special != Specials::default()) {
            None => out.push(0),
            Some(special) => {
                out.push(1);
                for count in [special.nan, special.positive, special.negative] {
                    codec::put_signed(out, i128::from(count));
                }
            }
        }
        self.finite.encode(out);
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        let count = codec::take_i64(input)?;
        let special = match codec::take_u8(input)? {
            0 => None,
            _ => Some(Box::new(Specials {
                nan: codec::take_i64(input)?,
                positive: codec::take_i64(input)?,
                negative: codec::take_i64(input)?,
            })),
        };
        Some(FloatSum { count, special, finite: ExactSum::decode(input)? })
    }

    fn heap_size(&self) -> usize {
        self.finite.heap_size() + self.special.as_ref().map_or(0, |_| size_of::<Specials>())
    }
}

/// Of intervals: months, days and time are added apart.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IntervalSum {
    /// How many values.
    pub count: i64,
    /// Sum of the months.
    pub months: i128,
    /// Sum of the days.
    pub days: i128,
    /// Sum of the times.
    pub nanoseconds: i128,
}

impl Accepts<IntervalMonthDayNano> for IntervalSum {
    fn add(&mut self, value: IntervalMonthDayNano, weight: i64) {
        self.count += weight;
        self.months += i128::from(value.months) * i128::from(weight);
        self.days += i128::from(value.days) * i128::from(weight);
        self.nanoseconds += i128::from(value.nanoseconds) * i128::from(weight);
    }
}

impl SumState for IntervalSum {
    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.months += other.months;
        self.days += other.days;
        self.nanoseconds += other.nanoseconds;
    }

    fn count(&self) -> i64 {
        self.count
    }

    fn encode(&mut self, out: &mut Vec<u8>) {
        for number in [i128::from(self.count), self.months, self.days, self.nanoseconds] {
            codec::put_signed(out, number);
        }
    }

    fn decode(input: &mut &[u8]) -> Option<Self> {
        Some(IntervalSum {
            count: codec::take_i64(input)?,
            months: codec::take_signed(input)?,
            days: codec::take_signed(input)?,
            nanoseconds: codec::take_signed(input)?,
        })
    }
}
