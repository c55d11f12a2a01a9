//! `bit_and`, `bit_or` and `bit_xor`: how often each bit is set decides all of them.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int16Array, Int32Array, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::logical_expr::AggregateUDF;

use super::codec;
use super::grouped::Rows;
use super::invertible::{GroupedStates, Invertible, nothing};
use super::results::Results;
use super::udaf::InvertibleFunction;
use crate::functions::{Example, FunctionDef, Implementation};

/// `bit_and`.
pub static BIT_AND: FunctionDef = FunctionDef {
    name: "bit_and",
    forms: &["bit_and(smallint | integer | bigint) → the same type"],
    text: "The bits that are set in all values that are not NULL; NULL if there are none.",
    examples: &[Example { query: "SELECT bit_and(x) FROM (VALUES (6), (3), (NULL)) AS t(x)", result: "2" }],
    implementation: Implementation::Aggregate(|| make(BitFunction::And)),
};

/// `bit_or`.
pub static BIT_OR: FunctionDef = FunctionDef {
    name: "bit_or",
    forms: &["bit_or(smallint | integer | bigint) → the same type"],
    text: "The bits that are set in a value; NULL if there are no values.",
    examples: &[Example { query: "SELECT bit_or(x) FROM (VALUES (6), (3)) AS t(x)", result: "7" }],
    implementation: Implementation::Aggregate(|| make(BitFunction::Or)),
};

/// `bit_xor`.
pub static BIT_XOR: FunctionDef = FunctionDef {
    name: "bit_xor",
    forms: &["bit_xor(smallint | integer | bigint) → the same type"],
    text: "The bits that are set in an odd number of values; NULL if there are no values.",
    examples: &[Example { query: "SELECT bit_xor(x) FROM (VALUES (6), (3)) AS t(x)", result: "5" }],
    implementation: Implementation::Aggregate(|| make(BitFunction::Xor)),
};

fn make(function: BitFunction) -> AggregateUDF {
    AggregateUDF::from(InvertibleFunction::new(Invertible::Bits(function), &[]))
}

/// One of these functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BitFunction {
    /// `bit_and`
    And,
    /// `bit_or`
    Or,
    /// `bit_xor`
    Xor,
}

impl BitFunction {
    /// All of them.
    pub const ALL: [BitFunction; 3] = [BitFunction::And, BitFunction::Or, BitFunction::Xor];

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            BitFunction::And => "bit_and",
            BitFunction::Or => "bit_or",
            BitFunction::Xor => "bit_xor",
        }
    }
}

/// The type to which an argument is converted.
pub fn accepted_type(argument: &DataType) -> Option<DataType> {
    match argument {
        DataType::Int8 | DataType::UInt8 | DataType::Int16 => Some(DataType::Int16),
        DataType::UInt16 | DataType::Int32 | DataType::Null => Some(DataType::Int32),
        DataType::UInt32 | DataType::Int64 => Some(DataType::Int64),
        _ => None,
    }
}

/// How many values a group has, and in how many each bit is set.
#[derive(Debug, Clone)]
struct State {
    count: i64,
    bits: Box<[i64]>,
}

/// States of groups.
#[derive(Debug)]
pub struct BitCounts {
    argument: DataType,
    width: usize,
    states: Vec<State>,
}

impl BitCounts {
    /// For values of an accepted type.
    pub fn new(argument: &DataType) -> Option<Self> {
        let width = match argument {
            DataType::Int16 => 16,
            DataType::Int32 => 32,
            DataType::Int64 => 64,
            _ => return None,
        };
        Some(BitCounts { argument: argument.clone(), width, states: Vec::new() })
    }

    fn result(&self, function: BitFunction, state: &State) -> Option<i64> {
        if state.count == 0 {
            return None;
        }
        let is_set = |count: i64| match function {
            BitFunction::And => count == state.count,
            BitFunction::Or => count != 0,
            BitFunction::Xor => count % 2 != 0,
        };
        let bits = state.bits.iter().enumerate().filter(|(_, count)| is_set(**count));
        let value = bits.fold(0u64, |value, (bit, _)| value | 1 << bit);
        // The sign is the highest bit of the type.
        let unused = 64 - self.width as u32;
        Some(((value << unused) as i64) >> unused)
    }
}

impl GroupedStates for BitCounts {
    fn resize(&mut self, groups: usize) {
        let width = self.width;
        self.states.resize_with(groups, || State { count: 0, bits: vec![0; width].into() });
    }

    fn add(&mut self, values: &[ArrayRef], rows: Rows<'_>) {
        // Widening an integer cannot fail.
        let Ok(wide) = cast(&values[0], &DataType::Int64) else { return };
        let numbers = wide.as_primitive::<Int64Type>().values();
        let states = &mut self.states;
        rows.for_each(values[0].as_ref(), |row, group, weight| {
            let state = &mut states[group];
            state.count += weight;
            for (bit, count) in state.bits.iter_mut().enumerate() {
                *count += (numbers[row] >> bit & 1) * weight;
            }
        });
    }

    fn encode(&mut self, group: usize, out: &mut Vec<u8>) {
        let state = &self.states[group];
        codec::put_signed(out, i128::from(state.count));
        state.bits.iter().for_each(|count| codec::put_signed(out, i128::from(*count)));
    }

    fn merge_encoded(&mut self, group: usize, input: &mut &[u8]) -> bool {
        let state = &mut self.states[group];
        let Some(count) = codec::take_i64(input) else { return false };
        state.count += count;
        state.bits.iter_mut().all(|bit| codec::take_i64(input).map(|count| *bit += count).is_some())
    }

    fn finish(&self, aggregate: Invertible, groups: usize, result: &DataType) -> Results {
        let Invertible::Bits(function) = aggregate else { return nothing(groups, result) };
        let values = self.states[..groups].iter().map(|state| self.result(function, state));
        // A value has no more bits than its type.
        let values: ArrayRef = match self.argument {
            DataType::Int16 => Arc::new(values.map(|value| value.map(|value| value as i16)).collect::<Int16Array>()),
            DataType::Int32 => Arc::new(values.map(|value| value.map(|value| value as i32)).collect::<Int32Array>()),
            _ => Arc::new(values.collect::<Int64Array>()),
        };
        Results { values, errors: Vec::new() }
    }

    fn remove_first(&mut self, groups: usize) {
        self.states.drain(..groups);
    }

    fn memory_size(&self) -> usize {
        self.states.capacity() * (size_of::<State>() + self.width * size_of::<i64>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_leave_with_their_values() {
        let mut counts = BitCounts::new(&DataType::Int16).unwrap();
        counts.resize(1);
        let values: ArrayRef = Arc::new(Int16Array::from(vec![Some(-1), Some(6), None, Some(3)]));
        let rows = |weights| Rows { groups: &[0, 0, 0, 0], weights, filter: None };
        let result = |counts: &BitCounts, function| {
            let results = counts.finish(Invertible::Bits(function), 1, &DataType::Int16);
            results.values.as_primitive::<datafusion::arrow::datatypes::Int16Type>().iter().next().unwrap()
        };
        counts.add(std::slice::from_ref(&values), rows(None));
        let all = BitFunction::ALL.map(|function| result(&counts, function));
        assert_eq!(all, [Some(2), Some(-1), Some(-6)]);
        counts.add(std::slice::from_ref(&values), rows(Some(&[-1, 0, 0, 0])));
        assert_eq!(BitFunction::ALL.map(|function| result(&counts, function)), [Some(2), Some(7), Some(5)]);
        let mut bytes = Vec::new();
        counts.encode(0, &mut bytes);
        let mut copy = BitCounts::new(&DataType::Int16).unwrap();
        copy.resize(1);
        assert!(copy.merge_encoded(0, &mut bytes.as_slice()));
        assert_eq!(BitFunction::ALL.map(|function| result(&copy, function)), [Some(2), Some(7), Some(5)]);
        counts.add(std::slice::from_ref(&values), rows(Some(&[0, -1, 0, -1])));
        assert_eq!(BitFunction::ALL.map(|function| result(&counts, function)), [None, None, None]);
    }
}
