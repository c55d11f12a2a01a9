//! Recursion: WITH RECURSIVE, kept up to date under inserts and deletes.
//!
//! Equation: R is the least solution of `R = base + step(R, inputs)`; under UNION the multiset on the right is reduced to
//! one of each row. SQL lets a recursive term read R once and row by row, so `step` is linear in R: what a set of rows of
//! R leads to is the sum of what each of them leads to. Terms of another form (an aggregate over R, R on the side of an
//! outer join that is filled with NULLs, ...) are declined.
//!
//! `step` is a dataflow of its own within the operator ([`nested`]), which is run pass by pass: what R gained or lost in
//! one pass is fed to the next, until nothing changes. For each row the operator counts its derivations (copies in the
//! base, and rows of R that lead to it). UNION ALL: R holds a row as often as it is derived, so changes only have to be
//! passed on. UNION: R holds a row that is derived at all. Removal then is in three steps (Gupta, Mumick and
//! Subrahmanian, "Maintaining views incrementally", SIGMOD 1993: delete and rederive), because rows on a cycle derive each
//! other though nothing holds them any more:
//! 1. removals of the inputs are fed alone; a row that loses any derivation is taken out of R, and so is, pass by pass,
//!    what it led to;
//! 2. rows that were taken out and still have a derivation come back;
//! 3. additions of the inputs are fed, and what is new is passed on.
//!
//! What is removed from an input can add to `step` if R is joined to it by an anti join or an outer join. If such an input
//! changes, R is emptied and filled anew within the epoch.
//!
//! A recursion without end is cut off after [`limits::RECURSION_PASSES_MAX`] passes or
//! [`limits::RECURSION_ROWS_MAX`] rows in an epoch: R is emptied, one row in the errors says why, and it is tried again
//! whenever an input changes.
//!
//! State, all under the partition of the empty key, so that one worker has all of it: table 0: row → number of its
//! derivations (i64, big endian; those in the base only while it is cut off); table 1: the empty key → the message of
//! the error row, while there is one; then the tables of `step`.
//!
//! Cost of an epoch: that of the rows of R that change, of those that lose a derivation, and of what these lead to.

mod exec;
mod lower;
mod nested;
#[cfg(test)]
mod tests;

use std::any::Any;

use datafusion::arrow::datatypes::SchemaRef;
use plan::{Cost, Dataflow, Distribution, Extent, Node, Properties, Spec, StateBound};
use xxhash_rust::xxh3::xxh3_64;

use super::{BuildContext, Operator, OperatorDef, spec_of};
use crate::error::Result;

#[cfg(doc)]
use crate::limits;

const NAME: &str = "recursion";

/// Recognises and builds recursive queries.
#[derive(Debug)]
pub struct RecursionDefinition;

/// A recursive query as data.
#[derive(Debug)]
struct Recursion {
    /// UNION and not UNION ALL.
    distinct: bool,
    schema: SchemaRef,
    /// The recursive term. Its import 0 is R; import n is port n of the operator. Port 0 is the base.
    step: Dataflow,
    /// Whether removals from a port may add to `step`, and additions remove from it.
    inverting: Vec<bool>,
    /// Name of R, and the operators of the recursive term.
    text: String,
}

impl Spec for Recursion {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> u32 {
        // The layout of the state is also that of the recursive term.
        let layout = format!("1 {} {}", self.distinct, self.step.fingerprint());
        xxh3_64(layout.as_bytes()) as u32
    }

    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn properties(&self, inputs: &[&Properties]) -> Properties {
        let keys = if self.distinct { vec![(0..self.schema.fields().len()).collect()] } else { Vec::new() };
        // One row may lead to any number of rows.
        let extent = Extent::of(inputs).expanded();
        let state = StateBound::of("its rows, and what its recursive term keeps", extent.clone());
        Properties { keys, append_only: false, watermarks: Vec::new(), extent, state }
    }

    fn cost(&self) -> Cost {
        // If an input may turn additions into removals, all of the recursion is done again when it changes.
        let of_term = if self.inverting.contains(&true) { Cost::Input } else { Cost::Matches };
        self.step.nodes().iter().map(Node::cost).fold(of_term, Cost::max)
    }

    fn distribution(&self, _port: usize) -> Distribution {
        Distribution::ByKey(Vec::new())
    }

    fn state_tables(&self) -> usize {
        2 + self.step.state_tables()
    }

    fn detail(&self) -> String {
        self.text.clone()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl OperatorDef for RecursionDefinition {
    fn build(&self, spec: &dyn Spec, context: BuildContext) -> Result<Box<dyn Operator>> {
        Ok(Box::new(exec::Fixpoint::build(spec_of(spec)?, context)?))
    }
}
