//! `bool_and`, `bool_or` and `every`: how many values are true, and how many are not, decides all of them.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::logical_expr::AggregateUDF;

use super::codec;
use super::grouped::Rows;
use super::invertible::{GroupedStates, Invertible, nothing};
use super::results::Results;
use super::udaf::InvertibleFunction;
use crate::functions::{Example, FunctionDef, Implementation};

/// `bool_and`.
pub static BOOL_AND: FunctionDef = FunctionDef {
    name: "bool_and",
    forms: &["bool_and(boolean) → boolean"],
    text: "Whether no value is false, among those that are not NULL; NULL if there are none. `every` is the same.",
    examples: &[Example { query: "SELECT bool_and(x > 0) FROM (VALUES (1), (NULL), (-2)) AS t(x)", result: "f" }],
    implementation: Implementation::Aggregate(|| make(TruthFunction::And, &["every"])),
};

/// `bool_or`.
pub static BOOL_OR: FunctionDef = FunctionDef {
    name: "bool_or",
    forms: &["bool_or(boolean) → boolean"],
    text: "Whether a value is true, among those that are not NULL; NULL if there are none.",
    examples: &[Example { query: "SELECT bool_or(x > 0) FROM (VALUES (1), (NULL), (-2)) AS t(x)", result: "t" }],
    implementation: Implementation::Aggregate(|| make(TruthFunction::Or, &[])),
};

/// `every`.
pub static EVERY: FunctionDef = FunctionDef {
    name: "every",
    forms: &["every(boolean) → boolean"],
    text: "Whether no value is false, among those that are not NULL; NULL if there are none. `bool_and` is the same.",
    examples: &[Example { query: "SELECT every(x > 0) FROM (VALUES (1), (NULL), (2)) AS t(x)", result: "t" }],
    implementation: Implementation::Aggregate(|| make(TruthFunction::And, &["every"])),
};

fn make(function: TruthFunction, aliases: &[&str]) -> AggregateUDF {
    AggregateUDF::from(InvertibleFunction::new(Invertible::Truth(function), aliases))
}

/// One of these functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TruthFunction {
    /// `bool_and`
    And,
    /// `bool_or`
    Or,
}

impl TruthFunction {
    /// All of them.
    pub const ALL: [TruthFunction; 2] = [TruthFunction::And, TruthFunction::Or];

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            TruthFunction::And => "bool_and",
            TruthFunction::Or => "bool_or",
        }
    }
}

/// The type to which an argument is converted.
pub fn accepted_type(argument: &DataType) -> Option<DataType> {
    matches!(argument, DataType::Boolean | DataType::Null).then_some(DataType::Boolean)
}

/// How many values of a group are true, and how many false.
#[derive(Debug, Clone, Copy, Default)]
struct State {
    trues: i64,
    falses: i64,
}

/// States of groups.
#[derive(Debug, Default)]
pub struct TruthCounts {
    states: Vec<State>,
}

impl GroupedStates for TruthCounts {
    fn resize(&mut self, groups: usize) {
        self.states.resize_with(groups, State::default);
    }

    fn add(&mut self, values: &[ArrayRef], rows: Rows<'_>) {
        let Some(truths) = values[0].as_boolean_opt() else { return };
        let states = &mut self.states;
        rows.for_each(truths, |row, group, weight| match truths.value(row) {
            true => states[group].trues += weight,
            false => states[group].falses += weight,
        });
    }

    fn encode(&mut self, group: usize, out: &mut Vec<u8>) {
        let State { trues, falses } = self.states[group];
        codec::put_signed(out, i128::from(trues));
        codec::put_signed(out, i128::from(falses));
    }

    fn merge_encoded(&mut self, group: usize, input: &mut &[u8]) -> bool {
        let (Some(trues), Some(falses)) = (codec::take_i64(input), codec::take_i64(input)) else { return false };
        self.states[group].trues += trues;
        self.states[group].falses += falses;
        true
    }

    fn finish(&self, aggregate: Invertible, groups: usize, result: &DataType) -> Results {
        let Invertible::Truth(function) = aggregate else { return nothing(groups, result) };
        let values = self.states[..groups].iter().map(|State { trues, falses }| {
            let has_values = *trues != 0 || *falses != 0;
            has_values.then_some(match function {
                TruthFunction::And => *falses == 0,
                TruthFunction::Or => *trues != 0,
            })
        });
        Results { values: Arc::new(values.collect::<BooleanArray>()), errors: Vec::new() }
    }

    fn remove_first(&mut self, groups: usize) {
        self.states.drain(..groups);
    }

    fn memory_size(&self) -> usize {
        self.states.capacity() * size_of::<State>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truths_leave_with_their_values() {
        let mut counts = TruthCounts::default();
        counts.resize(1);
        let values: ArrayRef = Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true)]));
        let rows = |weights| Rows { groups: &[0, 0, 0, 0], weights, filter: None };
        let results = |counts: &TruthCounts| {
            TruthFunction::ALL.map(|function| {
                let results = counts.finish(Invertible::Truth(function), 1, &DataType::Boolean);
                results.values.as_boolean().iter().next().unwrap()
            })
        };
        assert_eq!(results(&counts), [None, None]);
        counts.add(std::slice::from_ref(&values), rows(None));
        assert_eq!(results(&counts), [Some(false), Some(true)]);
        let mut bytes = Vec::new();
        counts.encode(0, &mut bytes);
        let mut copy = TruthCounts::default();
        copy.resize(1);
        assert!(copy.merge_encoded(0, &mut bytes.as_slice()));
        copy.add(std::slice::from_ref(&values), rows(Some(&[-1, 0, 0, -1])));
        assert_eq!(results(&copy), [Some(false), Some(false)]);
        counts.add(std::slice::from_ref(&values), rows(Some(&[0, -1, 0, 0])));
        assert_eq!(results(&counts), [Some(true), Some(true)]);
    }
}
