//! Operators: each computes the change of its output from the changes of its inputs.
//!
//! The contract with the engine:
//! - Epochs do not overlap within an operator: all deltas of an epoch are absorbed, then the epoch is
//!   closed, then the next one begins. Within an epoch deltas come in any order.
//! - [`Operator::close`] is called for every epoch in which something was absorbed, and once for the first
//!   epoch of the dataflow even if nothing was (a global aggregate shows a row over nothing), on the owner of the empty
//!   key and wherever [`Operator::owes_rows`] says so.
//! - State is kept only behind the [`StateTable`]s that [`BuildContext`] hands over, keyed so that a row's
//!   partition is that of its distribution key. An operator neither knows its worker nor sees all keys.
//! - What an operator emits for an epoch is consolidated (no weight 0, no +1 and -1 of the same row) when it
//!   comes from `close`. Stateless operators emit from `absorb` at once and need not consolidate.

pub mod aggregate;
mod failure;
pub mod filter;
#[cfg(test)]
pub mod harness;
pub mod join;
pub mod materialize;
mod ordered;
pub mod project;
pub mod recompute;
pub mod recursion;
pub mod sort;
#[cfg(test)]
mod tests;
pub mod top_n;
pub mod union;
pub mod unnest;
pub mod values;
pub mod window;

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use plan::{Lower, PlanError, Spec};

use crate::Epoch;
use crate::delta::Delta;
use crate::delta::key::partition_of;
use crate::error::Result;
use crate::state::StateTable;

/// An operator in execution, on one worker.
pub trait Operator {
    /// Takes rows of an input port. May emit.
    fn absorb(&mut self, port: usize, delta: Delta, output: &mut Output) -> Result<()>;
    /// Everything of the epoch has been absorbed: emit what was held back and write state.
    fn close(&mut self, epoch: Epoch, output: &mut Output) -> Result<()>;
    /// Whether the operator emits nothing while its dataflow is being filled, see [`Filling`]: for those that look at all rows again
    /// with every change, so that a fill in many chunks would look at them as many times. It is closed at the end of the fill
    /// whether something was absorbed then or not.
    fn waits_for_fill(&self) -> bool {
        false
    }
    /// Whether the operator has rows to emit in the first epoch though nothing came, on a worker that need not be the owner
    /// of the empty key.
    fn owes_rows(&self) -> bool {
        false
    }
}

/// What an operator emits.
#[derive(Debug, Default)]
pub struct Output {
    /// The operator's output.
    pub rows: Vec<Delta>,
    /// Rows for which an expression failed, in [`errors_schema`].
    pub errors: Vec<Delta>,
}

impl Output {
    /// Emits rows; nothing happens for an empty delta.
    pub fn emit(&mut self, delta: Delta) {
        if !delta.is_empty() {
            self.rows.push(delta);
        }
    }

    /// Emits failed rows; nothing happens for an empty delta.
    pub fn emit_errors(&mut self, delta: Delta) {
        if !delta.is_empty() {
            self.errors.push(delta);
        }
    }
}

/// Columns of `"<view>$errors"`: `operator` text, `message` text, `row` text (the input row as a Postgres row
/// literal), all NOT NULL.
pub fn errors_schema() -> SchemaRef {
    use datafusion::arrow::datatypes::{DataType, Field, Schema};
    Arc::new(Schema::new(vec![
        Field::new("operator", DataType::Utf8, false),
        Field::new("message", DataType::Utf8, false),
        Field::new("row", DataType::Utf8, false),
    ]))
}

/// Says of an epoch whether a dataflow is being filled in it from what its inputs hold already. What it gives out is looked at
/// only afterwards. If the server stops before, the dataflow is dropped.
#[derive(Debug, Clone, Default)]
pub struct Filling {
    /// The epoch in which all inputs have been read to their end; the fill lasts for those before it.
    complete: Rc<Cell<Epoch>>,
}

impl Filling {
    /// A fill whose end is not known yet.
    pub fn begun() -> Self {
        Filling { complete: Rc::new(Cell::new(Epoch::MAX)) }
    }

    /// All inputs will have been read to their end in the epoch.
    pub fn complete_in(&self, epoch: Epoch) {
        self.complete.set(epoch);
    }

    /// The epoch in which all inputs have been read to their end, if that is known.
    pub fn completion(&self) -> Option<Epoch> {
        Some(self.complete.get()).filter(|epoch| *epoch != Epoch::MAX)
    }

    /// Whether inputs are still read in later epochs than this one.
    pub fn goes_on_after(&self, epoch: Epoch) -> bool {
        epoch < self.complete.get()
    }
}

/// What an operator is built from, besides its spec.
pub struct BuildContext {
    /// Columns of each input port.
    pub inputs: Vec<SchemaRef>,
    /// As many as [`Spec::state_tables`] says, in order.
    pub state: Vec<StateTable>,
    /// Whether nothing is ever retracted on a port.
    pub append_only: Vec<bool>,
    /// Whether the dataflow is being filled.
    pub filling: Filling,
    /// The partitions that are dealt out to this worker. For operators that make rows out of nothing (constants, a
    /// global aggregate over nothing): only the worker that has the partition of the empty key makes them.
    pub partitions: Range<u16>,
}

impl BuildContext {
    /// Whether rows of the empty key (all rows on one worker) belong here.
    pub fn owns_empty_key(&self) -> bool {
        self.partitions.contains(&partition_of(&[]))
    }
}

/// An operator's definition: how it is recognised, and how it is built.
pub trait OperatorDef: Lower {
    /// Builds the operator for a spec that this definition's `lower` made.
    fn build(&self, spec: &dyn Spec, context: BuildContext) -> Result<Box<dyn Operator>>;
}

/// The spec as its operator's own type.
pub(crate) fn spec_of<T: Spec>(spec: &dyn Spec) -> Result<&T> {
    spec.as_any()
        .downcast_ref()
        .ok_or_else(|| PlanError::internal(format!("operator {} was given to another definition", spec.name())).into())
}

/// The state tables of an operator, as many as its spec says.
pub(crate) fn state_tables<const N: usize>(tables: Vec<StateTable>) -> Result<[StateTable; N]> {
    let count = tables.len();
    tables.try_into().map_err(|_| PlanError::internal(format!("{count} state tables for an operator with {N}")).into())
}

/// All operators, from specific to general: the first that recognises a plan takes it.
pub fn definitions() -> Vec<Arc<dyn OperatorDef>> {
    vec![
        Arc::new(values::ValuesDefinition),
        // Before what it is made of: a sort, and a filter over a window function.
        Arc::new(top_n::TopNDefinition),
        Arc::new(sort::SortDefinition),
        Arc::new(project::ProjectDefinition),
        Arc::new(filter::FilterDefinition),
        Arc::new(union::UnionDefinition),
        Arc::new(unnest::UnnestDefinition),
        Arc::new(aggregate::AggregateDefinition),
        Arc::new(join::JoinDefinition),
        Arc::new(recursion::RecursionDefinition),
        Arc::new(window::WindowDefinition),
        // Last, since it takes everything.
        Arc::new(recompute::RecomputeDefinition),
    ]
}
