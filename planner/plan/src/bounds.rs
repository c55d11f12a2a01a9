//! What a node costs and keeps: the order of its work, and what bounds its state.
//!
//! State grows without bound where two things meet: a relation that only ever grows ([`Growth::Endless`]), and an
//! operator that keeps something for each of its rows, or each of its keys, which only a retraction would free. What may
//! become of a relation is followed through the dataflow as an [`Extent`]: a filter hands it on, a global aggregate ends
//! it, a join with a relation that only grows begins it anew.
//!
//! A watermark will be one more thing that frees state, of operators that drop what lies behind it: a further case of
//! [`Growth`], between those that end and the one that does not. No operator does so yet, so an aggregate by a window of
//! a relation with a watermark counts as one by any other column.

use std::collections::BTreeSet;
use std::fmt;

use datafusion::arrow::datatypes::{DataType, Schema};

use crate::properties::Properties;

/// The order of the work that one changed row of an input makes, in the worst of the cases that are met again and again.
/// Finding an entry by its key counts as one step, and so do as many rows as the query itself names (`LIMIT 10`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cost {
    /// The same, whatever is stored.
    Constant,
    /// A place is looked up in an order.
    Logarithmic,
    /// In proportion to the rows that it meets or makes: partners in a join, items of a list, rows that come or go with it.
    Matches,
    /// All rows of its group or partition are looked at.
    Partition,
    /// All rows of an input are looked at.
    Input,
}

impl fmt::Display for Cost {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Cost::Constant => "O(1)",
            Cost::Logarithmic => "O(log n)",
            Cost::Matches => "O(matches)",
            Cost::Partition => "O(partition)",
            Cost::Input => "O(input)",
        })
    }
}

/// How much a relation, or a state, may come to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Growth {
    /// Never more than a certain amount, whatever is written: constants, a global aggregate, the first rows in an order.
    Constant,
    /// What follows from rows that can be deleted. When they are, it goes.
    #[default]
    Deletable,
    /// Ever more: some of it follows from rows that no statement takes back.
    Endless,
}

impl Growth {
    /// Of a table, which is append-only or not.
    pub fn of_table(append_only: bool) -> Self {
        if append_only { Growth::Endless } else { Growth::Deletable }
    }
}

/// How much there may come to be of something, and of which relations that only grow it is made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extent {
    /// How much.
    pub growth: Growth,
    /// Names of relations that only grow: if it is endless, those that make it so; else those that it is computed from.
    pub growing: BTreeSet<String>,
}

impl Extent {
    /// Of something that is made of nothing.
    pub fn constant() -> Self {
        Extent { growth: Growth::Constant, growing: BTreeSet::new() }
    }

    /// Of all inputs together.
    pub fn of(inputs: &[&Properties]) -> Self {
        Extent::together(inputs.iter().map(|input| &input.extent))
    }

    /// Of several things together.
    pub fn together<'a>(parts: impl Iterator<Item = &'a Extent> + Clone) -> Self {
        let growth = parts.clone().map(|part| part.growth).max().unwrap_or(Growth::Constant);
        let decisive = parts.filter(|part| growth != Growth::Endless || part.growth == Growth::Endless);
        Extent { growth, growing: decisive.flat_map(|part| part.growing.iter().cloned()).collect() }
    }

    /// Of something that is no more than this, however large that is.
    #[must_use]
    pub fn at_most(self, growth: Growth) -> Self {
        Extent { growth: self.growth.min(growth), ..self }
    }

    /// Of something of which there is so much for each of the different values of some columns. Only of booleans it is known
    /// that there are few, whatever is written.
    #[must_use]
    pub fn for_each_value(self, schema: &Schema, columns: impl IntoIterator<Item = usize>) -> Self {
        let is_boolean = |column| matches!(schema.field(column).data_type(), DataType::Boolean | DataType::Null);
        if columns.into_iter().all(is_boolean) { self.at_most(Growth::Constant) } else { self }
    }

    /// Of rows that may become any number of rows each, as their values say: even one of them, if it is computed from a
    /// relation that only grows, may become ever more.
    #[must_use]
    pub fn expanded(self) -> Self {
        let growth = match self.growth {
            Growth::Constant if self.growing.is_empty() => Growth::Deletable,
            Growth::Constant => Growth::Endless,
            other => other,
        };
        Extent { growth, ..self }
    }

    /// Who grows, as a sentence.
    pub fn reason(&self) -> String {
        let names: Vec<&str> = self.growing.iter().map(String::as_str).collect();
        match names.as_slice() {
            [one] => format!("{one} only grows"),
            [first @ .., last] if !first.is_empty() => format!("{} and {last} only grow", first.join(", ")),
            _ => "its input only grows".to_owned(),
        }
    }
}

/// What an operator keeps, and what bounds that.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum StateBound {
    /// It keeps nothing.
    #[default]
    Stateless,
    /// It keeps something.
    Kept(Kept),
}

/// What an operator keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// What ("an entry a group").
    pub what: String,
    /// How much that may come to be.
    pub extent: Extent,
    /// What to write to keep less, if this operator knows something.
    pub instead: Option<&'static str>,
}

impl StateBound {
    /// A constant amount.
    pub fn constant(what: impl Into<String>) -> Self {
        StateBound::of(what, Extent::constant())
    }

    /// What is as large as its extent.
    pub fn of(what: impl Into<String>, extent: Extent) -> Self {
        StateBound::Kept(Kept { what: what.into(), extent, instead: None })
    }

    /// Says what to write to keep less.
    #[must_use]
    pub fn instead(mut self, instead: &'static str) -> Self {
        if let StateBound::Kept(kept) = &mut self {
            kept.instead = Some(instead);
        }
        self
    }

    /// What is kept, if it grows without bound.
    pub fn endless(&self) -> Option<&Kept> {
        match self {
            StateBound::Kept(kept) if kept.extent.growth == Growth::Endless => Some(kept),
            _ => None,
        }
    }
}

impl fmt::Display for StateBound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StateBound::Kept(Kept { what, extent, .. }) = self else { return formatter.write_str("no state") };
        match extent.growth {
            Growth::Constant => write!(formatter, "state: {what} (constant)"),
            Growth::Deletable => write!(formatter, "state: {what} (bounded by its input)"),
            Growth::Endless => write!(formatter, "state: {what} (without bound: {})", extent.reason()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::datatypes::Field;

    fn extent(growth: Growth, growing: &[&str]) -> Extent {
        Extent { growth, growing: growing.iter().map(|name| (*name).to_owned()).collect() }
    }

    #[test]
    fn the_largest_part_decides_and_says_why() {
        let deletable = extent(Growth::Deletable, &["seen"]);
        let endless = extent(Growth::Endless, &["events"]);
        let both = Extent::together([&deletable, &endless].into_iter());
        assert_eq!(both, extent(Growth::Endless, &["events"]));
        let both = Extent::together([&deletable, &Extent::constant()].into_iter());
        assert_eq!(both, extent(Growth::Deletable, &["seen"]));
        assert_eq!(Extent::together(std::iter::empty()), Extent::constant());
    }

    #[test]
    fn a_row_of_what_grows_may_become_ever_more() {
        let count = extent(Growth::Endless, &["events"]).at_most(Growth::Constant);
        assert_eq!(count.growth, Growth::Constant);
        assert_eq!(count.expanded(), extent(Growth::Endless, &["events"]));
        assert_eq!(Extent::constant().expanded().growth, Growth::Deletable);
    }

    #[test]
    fn only_booleans_have_few_values() {
        let schema =
            Schema::new(vec![Field::new("a", DataType::Boolean, true), Field::new("b", DataType::Int16, true)]);
        let events = extent(Growth::Endless, &["events"]);
        assert_eq!(events.clone().for_each_value(&schema, [0]).growth, Growth::Constant);
        assert_eq!(events.clone().for_each_value(&schema, [0, 1]).growth, Growth::Endless);
        assert_eq!(events.for_each_value(&schema, []).growth, Growth::Constant);
    }

    #[test]
    fn state_says_what_bounds_it() {
        let texts = [
            StateBound::Stateless,
            StateBound::constant("one entry"),
            StateBound::of("an entry a group", extent(Growth::Deletable, &[])),
            StateBound::of("all rows of its input", extent(Growth::Endless, &["a"])),
            StateBound::of("rows of both inputs", extent(Growth::Endless, &["a", "b", "c"])),
        ];
        assert_eq!(
            texts.map(|state| state.to_string()),
            [
                "no state",
                "state: one entry (constant)",
                "state: an entry a group (bounded by its input)",
                "state: all rows of its input (without bound: a only grows)",
                "state: rows of both inputs (without bound: a, b and c only grow)",
            ]
        );
    }
}
