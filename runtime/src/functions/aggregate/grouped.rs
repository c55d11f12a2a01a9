//! Sums of many groups at once: columns of values in, one state a group.

use std::marker::PhantomData;

use datafusion::arrow::array::{Array, ArrowPrimitiveType, AsArray, BooleanArray};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Float32Type, Float64Type, Int16Type, Int32Type, Int64Type,
    IntervalMonthDayNanoType, IntervalUnit,
};

use super::results::{Finish, Function, Results};
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
    pub fn for_each(&self, values: &dyn Array, mut each: impl FnMut(usize, usize, i64)) {
        let nulls = values.logical_nulls().filter(|nulls| nulls.null_count() > 0);
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

/// Sums of groups, numbered from 0, whatever the type of the values.
pub trait GroupedSums: Send + Sync + std::fmt::Debug {
    /// Sets the number of groups; new ones have no values.
    fn resize(&mut self, groups: usize);
    /// Adds values.
    fn add(&mut self, values: &dyn Array, rows: Rows<'_>);
    /// Appends a group's bytes.
    fn encode(&mut self, group: usize, out: &mut Vec<u8>);
    /// Adds the state that bytes hold to a group. False if the bytes are not a state.
    fn merge_encoded(&mut self, group: usize, input: &mut &[u8]) -> bool;
    /// The results of the first so many groups.
    fn finish(&self, function: Function, groups: usize, result: &DataType) -> Results;
    /// Forgets the first so many groups; the others move up.
    fn remove_first(&mut self, groups: usize);
    /// Bytes of memory.
    fn memory_size(&self) -> usize;
}

/// Sums for values of an accepted type (see [`super::results::accepted_type`]); none for other types.
pub fn grouped_sums(argument: &DataType) -> Option<Box<dyn GroupedSums>> {
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

impl<T: ArrowPrimitiveType + std::fmt::Debug, S: Finish + Accepts<T::Native>> GroupedSums for Sums<S, T> {
    fn resize(&mut self, groups: usize) {
        self.states.resize_with(groups, S::default);
    }

    fn add(&mut self, values: &dyn Array, rows: Rows<'_>) {
        let numbers = values.as_primitive::<T>().values();
        let states = &mut self.states;
        rows.for_each(values, |row, group, weight| states[group].add(numbers[row], weight));
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

    fn finish(&self, function: Function, groups: usize, result: &DataType) -> Results {
        S::finish(&self.states[..groups], function, &self.argument, result)
    }

    fn remove_first(&mut self, groups: usize) {
        self.states.drain(..groups);
    }

    fn memory_size(&self) -> usize {
        self.states.capacity() * size_of::<S>() + self.states.iter().map(S::heap_size).sum::<usize>()
    }
}
