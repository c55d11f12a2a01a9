//! Sums of many groups at once: columns of values in, one state a group.

use std::marker::PhantomData;

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, IntervalUnit,
};

use super::invertible::{GroupedStates, Invertible, nothing};
use super::results::{Finish, Results};
use super::sums::{Accepts, Decimal128Sum, Decimal256Sum, FloatSum, IntegerSum, IntervalSum};

/// Rows of a batch: to which group each belongs, how often it counts, and whether it counts.
#[derive(Debug, Clone, Copy)]
pub struct Rows<'a> {
    /// The group of each row.
    pub groups: &'a [usize],
    /// The weight of each row; none means 1.
    pub weights: Option<&'a [i64]>,
    /// Rows that count are true here; none means all.
    pub filter: Option<&'a BooleanArray>,
}

impl Rows<'_> {
    /// Calls back with group and weight of every row that counts, and whose value is not NULL.
    #[inline]
    pub fn for_each(&self, values: &dyn Array, each: impl FnMut(usize, usize, i64)) {
        self.for_each_valid(values.logical_nulls(), each);
    }

    /// The same for rows that some NULLs leave.
    #[inline]
    pub fn for_each_valid(&self, nulls: Option<NullBuffer>, mut each: impl FnMut(usize, usize, i64)) {
        let nulls = nulls.filter(|nulls| nulls.null_count() > 0);
        if nulls.is_none() && self.filter.is_none() && self.weights.is_none() {
            for (row, group) in self.groups.iter().enumerate() {
                each(row, *group, 1);
            }
            return;
        }
        for (row, group) in self.groups.iter().enumerate() {
            let valid = nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            if valid && self.filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row)) {
                each(row, *group, self.weights.map_or(1, |weights| weights[row]));
            }
        }
    }
}

/// Sums for values of an accepted type (see [`super::results::accepted_type`]); none for other types.
pub fn grouped_sums(argument: &DataType) -> Option<Box<dyn GroupedStates>> {
    Some(match argument {
        DataType::Int16 => Box::new(Sums::<IntegerSum, Int16Type>::new(argument)),
        DataType::Int32 => Box::new(Sums::<IntegerSum, Int32Type>::new(argument)),
        DataType::Int64 => Box::new(Sums::<IntegerSum, Int64Type>::new(argument)),
        DataType::Float32 => Box::new(Sums::<FloatSum, Float32Type>::new(argument)),
        DataType::Float64 => Box::new(Sums::<FloatSum, Float64Type>::new(argument)),
        DataType::Decimal128(..) => Box::new(Sums::<Decimal128Sum, Decimal128Type>::new(argument)),
        DataType::Decimal256(..) => Box::new(Sums::<Decimal256Sum, Decimal256Type>::new(argument)),
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            Box::new(Sums::<IntervalSum, IntervalMonthDayNanoType>::new(argument))
        }
        _ => return None,
    })
}

#[derive(Debug)]
struct Sums<S, T> {
    states: Vec<S>,
    argument: DataType,
    values: PhantomData<fn() -> T>,
}

impl<S, T> Sums<S, T> {
    fn new(argument: &DataType) -> Self {
        Sums { states: Vec::new(), argument: argument.clone(), values: PhantomData }
    }
}

impl<T: ArrowPrimitiveType + std::fmt::Debug, S: Finish + Accepts<T::Native>> GroupedStates for Sums<S, T> {
    fn resize(&mut self, groups: usize) {
        self.states.resize_with(groups, S::default);
    }

    fn add(&mut self, values: &[ArrayRef], rows: Rows<'_>) {
        let numbers = values[0].as_primitive::<T>().values();
        let states = &mut self.states;
        rows.for_each(values[0].as_ref(), |row, group, weight| states[group].add(numbers[row], weight));
    }

    fn encode(&mut self, group: usize, out: &mut Vec<u8>) {
        self.states[group].encode(out);
    }

    fn merge_encoded(&mut self, group: usize, input: &mut &[u8]) -> bool {
        match S::decode(input) {
            Some(state) => {
                self.states[group].merge(&state);
                true
            }
            None => false,
        }
    }

    fn finish(&self, aggregate: Invertible, groups: usize, result: &DataType) -> Results {
        let Invertible::Sum(function) = aggregate else { return nothing(groups, result) };
        S::finish(&self.states[..groups], function, &self.argument, result)
    }

    fn remove_first(&mut self, groups: usize) {
        self.states.drain(..groups);
    }

    fn memory_size(&self) -> usize {
        self.states.capacity() * size_of::<S>() + self.states.iter().map(S::heap_size).sum::<usize>()
    }
}
