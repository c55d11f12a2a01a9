//! Aggregates whose state is a sum over the rows: what is asked of them, for which types, and the states of many groups.

use datafusion::arrow::array::{ArrayRef, new_null_array};
use datafusion::arrow::datatypes::DataType;

use super::bits::{BitCounts, BitFunction};
use super::grouped::{Rows, grouped_sums};
use super::moments::{Moment, Moments};
use super::results::{self, Function, Results};
use super::truth::{TruthCounts, TruthFunction};

/// An aggregate of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Invertible {
    /// `sum` or `avg`.
    Sum(Function),
    /// Variances, covariances, correlation, regression.
    Moment(Moment),
    /// Of bits.
    Bits(BitFunction),
    /// Of booleans.
    Truth(TruthFunction),
}

/// What is kept for an aggregate. Aggregates of one family over the same arguments share their state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// Number and sum of the values.
    Sums,
    /// And sums of their products.
    Moments,
    /// How often each bit is set.
    Bits,
    /// How many values are true, and how many false.
    Truth,
}

impl Invertible {
    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Invertible::Sum(function) => function.name(),
            Invertible::Moment(moment) => moment.name(),
            Invertible::Bits(function) => function.name(),
            Invertible::Truth(function) => function.name(),
        }
    }

    /// The aggregate of a name.
    pub fn of_name(name: &str) -> Option<Self> {
        let sums = [Function::Sum, Function::Average].map(Invertible::Sum);
        let moments = Moment::ALL.map(Invertible::Moment);
        let bits = BitFunction::ALL.map(Invertible::Bits);
        let truths = TruthFunction::ALL.map(Invertible::Truth);
        sums.into_iter().chain(moments).chain(bits).chain(truths).find(|aggregate| aggregate.name() == name)
    }

    /// What is kept for it.
    pub fn family(self) -> Family {
        match self {
            Invertible::Sum(_) => Family::Sums,
            Invertible::Moment(_) => Family::Moments,
            Invertible::Bits(_) => Family::Bits,
            Invertible::Truth(_) => Family::Truth,
        }
    }

    /// The types to which arguments are converted; none if the aggregate does not exist for them.
    pub fn accepted_types(self, arguments: &[DataType]) -> Option<Vec<DataType>> {
        match (self, arguments) {
            (Invertible::Sum(_), [argument]) => Some(vec![results::accepted_type(argument)?]),
            (Invertible::Moment(moment), arguments) => moment.accepted_types(arguments),
            (Invertible::Bits(_), [argument]) => Some(vec![super::bits::accepted_type(argument)?]),
            (Invertible::Truth(_), [argument]) => Some(vec![super::truth::accepted_type(argument)?]),
            _ => None,
        }
    }

    /// The type of the result for arguments of accepted types.
    pub fn result_type(self, arguments: &[DataType]) -> Option<DataType> {
        match (self, arguments) {
            (Invertible::Sum(function), [argument]) => results::result_type(function, argument),
            (Invertible::Moment(moment), arguments) => moment.result_type(arguments),
            (Invertible::Bits(_) | Invertible::Truth(_), [argument]) => Some(argument.clone()),
            _ => None,
        }
    }
}

/// States of groups, numbered from 0, whatever the types of the values.
pub trait GroupedStates: Send + Sync + std::fmt::Debug {
    /// Sets the number of groups; new ones have no values.
    fn resize(&mut self, groups: usize);
    /// Adds rows of arguments; those with a NULL do not count.
    fn add(&mut self, values: &[ArrayRef], rows: Rows<'_>);
    /// Appends a group's bytes.
    fn encode(&mut self, group: usize, out: &mut Vec<u8>);
    /// Adds the state that bytes hold to a group. False if the bytes are not a state.
    fn merge_encoded(&mut self, group: usize, input: &mut &[u8]) -> bool;
    /// The results of the first so many groups, for an aggregate of this family.
    fn finish(&self, aggregate: Invertible, groups: usize, result: &DataType) -> Results;
    /// Forgets the first so many groups; the others move up.
    fn remove_first(&mut self, groups: usize);
    /// Bytes of memory.
    fn memory_size(&self) -> usize;
}

/// States of a family for values of accepted types; none for other types.
pub fn grouped_states(family: Family, arguments: &[DataType]) -> Option<Box<dyn GroupedStates>> {
    match (family, arguments) {
        (Family::Sums, [argument]) => grouped_sums(argument),
        (Family::Moments, arguments) => Some(Box::new(Moments::new(arguments)?)),
        (Family::Bits, [argument]) => Some(Box::new(BitCounts::new(argument)?)),
        (Family::Truth, [DataType::Boolean]) => Some(Box::new(TruthCounts::default())),
        _ => None,
    }
}

/// Results of an aggregate that is asked of states of another family, which no plan does: NULLs.
pub(super) fn nothing(groups: usize, result: &DataType) -> Results {
    Results { values: new_null_array(result, groups), errors: Vec::new() }
}
