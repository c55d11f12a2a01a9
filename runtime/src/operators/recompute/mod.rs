//! Recomputes a part of a query whenever its inputs change: for what no other operator knows.
//!
//! Equation: output of epoch E = Q(inputs at E) - Q(inputs at E-1), where Q is one node of the logical plan over the
//! relations that its children compute incrementally. When Q holds subqueries, or recursion, it is the whole subtree
//! over the stored relations below it. If Q cannot be evaluated at E (a division by zero, say), its value is the empty
//! relation, and one row in the errors says why, until it can be evaluated again.
//!
//! State, all under the partition of the empty key, so that one worker has all of it:
//! - table i < n, for input i: row → number of copies (i64, big endian), the rows encoded exactly;
//! - table n: the same for the output as it was emitted last;
//! - table n+1: the empty key → the message of the error row, while there is one.
//!
//! The rows of an input are given to Q in the order of their encoding, so that a result that depends on their order depends
//! on nothing but the input.
//!
//! It is last in the list of operators because it matches anything. The cost of an epoch is that of the query.

pub(super) mod cut;
pub(super) mod exec;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use plan::{Cost, Distribution, Extent, Lower, LowerContext, Lowered, NodeId, PlanError, Properties, Spec, StateBound};

use self::cut::{Cut, Input, cut};
use super::{BuildContext, Operator, OperatorDef};
use crate::delta::rows;
use crate::error::{Error, Result};
use crate::expressions::message_of;

/// The operator's name.
pub const NAME: &str = "recompute";

/// Recognises everything, and recomputes it.
#[derive(Debug)]
pub struct RecomputeDefinition;

/// A query to run again whenever its inputs change.
pub struct RecomputeSpec {
    /// The query over placeholders for its inputs.
    query: LogicalPlan,
    /// Functions and settings to plan and run it with.
    session: SessionState,
    inputs: Vec<SchemaRef>,
    schema: SchemaRef,
    detail: String,
}

impl Lower for RecomputeDefinition {
    fn name(&self) -> &'static str {
        NAME
    }

    fn lower(&self, plan: &LogicalPlan, context: &mut dyn LowerContext) -> Result<Lowered, PlanError> {
        let Cut { query, inputs, replaced } = cut(plan)?;
        let mut session = context.session().clone();
        session.config_mut().options_mut().execution.target_partitions = 1;
        // It was optimized as a part of the whole already; a rule that cannot do so again has nothing to add.
        let query = session.optimize(&query).unwrap_or(query);
        // Found out now, while the statement can still be refused.
        let schemas: Vec<SchemaRef> = inputs.iter().map(Input::schema).collect();
        exec::check(&query, &session, &schemas).map_err(|error| cannot_run(plan, &error))?;
        let schema: SchemaRef = Arc::new(plan.schema().as_arrow().clone());
        for schema in schemas.iter().chain([&schema]) {
            refuse_unstorable(schema)?;
        }

        let mut detail = replaced.join(" over ");
        let refusals = context.refusals();
        if !refusals.is_empty() {
            detail.push_str(&format!("; because {}", refusals.join("; ")));
        }
        let nodes: Vec<NodeId> = inputs
            .into_iter()
            .map(|input| match input {
                Input::Plan(child) => context.lower(&child),
                Input::Relation(relation) => Ok(context.import(relation)),
            })
            .collect::<Result<_, PlanError>>()?;
        let inputs = nodes.iter().map(|node| context.schema(*node)).collect();
        let spec = RecomputeSpec { query, session, inputs, schema, detail };
        Ok(Lowered::Node(context.add(Arc::new(spec), nodes)))
    }
}

fn cannot_run(plan: &LogicalPlan, error: &datafusion::error::DataFusionError) -> PlanError {
    let what = plan.display().to_string();
    let what = what.split([':', ' ']).next().unwrap_or_default();
    PlanError::unsupported(format!("{what} in a query of this form")).with_detail(message_of(error))
}

fn refuse_unstorable(schema: &SchemaRef) -> Result<(), PlanError> {
    let unstorable = |data_type: &&DataType| !rows::supports(std::slice::from_ref(*data_type));
    match schema.fields().iter().map(|field| field.data_type()).find(unstorable) {
        Some(data_type) => Err(PlanError::unsupported(format!("a materialized view over values of type {data_type}"))),
        None => Ok(()),
    }
}

impl fmt::Debug for RecomputeSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("RecomputeSpec").field("query", &self.query).finish_non_exhaustive()
    }
}

impl Spec for RecomputeSpec {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> u32 {
        1
    }

    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn properties(&self, inputs: &[&Properties]) -> Properties {
        // What a query makes of some rows may be any number of rows.
        let extent = Extent::of(inputs).expanded();
        Properties {
            keys: Vec::new(),
            append_only: false,
            watermarks: Vec::new(),
            state: StateBound::of("all rows of its inputs and of its output", extent.clone()),
            extent,
        }
    }

    fn cost(&self) -> Cost {
        Cost::Input
    }

    fn distribution(&self, _port: usize) -> Distribution {
        Distribution::ByKey(Vec::new())
    }

    fn state_tables(&self) -> usize {
        self.inputs.len() + 2
    }

    fn detail(&self) -> String {
        self.detail.clone()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl OperatorDef for RecomputeDefinition {
    fn build(&self, spec: &dyn Spec, context: BuildContext) -> Result<Box<dyn Operator>> {
        let Some(spec) = spec.as_any().downcast_ref::<RecomputeSpec>() else {
            return Err(Error::Dataflow(format!("{} is no spec of {NAME}", spec.name())));
        };
        Ok(Box::new(exec::Recompute::build(spec, context)?))
    }
}
