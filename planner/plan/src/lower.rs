//! From a logical plan to a dataflow plan: each operator recognises what it can do.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;

use crate::error::PlanError;
use crate::graph::NodeId;
use crate::properties::Properties;
use crate::relation::Relation;
use crate::spec::Spec;

/// What became of a logical node that an operator was shown.
#[derive(Debug)]
pub enum Lowered {
    /// It is (with all below it) this node now.
    Node(NodeId),
    /// It is not for this operator. A reason says that it nearly was; EXPLAIN prints it when nothing better
    /// than recomputing is found.
    Declined(Option<String>),
}

/// An operator's ability to recognise its pattern in a logical plan.
pub trait Lower: Send + Sync {
    /// The operator's name, as in [`Spec::name`].
    fn name(&self) -> &'static str;
    /// Turns the root of `plan` (or a pattern of nodes at its root) into nodes, or declines. Must not add
    /// nodes when it declines. Inputs below the pattern are lowered through `context`.
    fn lower(&self, plan: &LogicalPlan, context: &mut dyn LowerContext) -> Result<Lowered, PlanError>;
}

/// What an operator may ask while lowering.
pub trait LowerContext {
    /// Lowers an input: asks all operators in order.
    fn lower(&mut self, plan: &LogicalPlan) -> Result<NodeId, PlanError>;
    /// Adds an operator over nodes that exist.
    fn add(&mut self, spec: Arc<dyn Spec>, inputs: Vec<NodeId>) -> NodeId;
    /// The import of a relation.
    fn import(&mut self, relation: Arc<Relation>) -> NodeId;
    /// Columns of a node's output.
    fn schema(&self, node: NodeId) -> SchemaRef;
    /// What is known of a node's output.
    fn properties(&self, node: NodeId) -> Properties;
    /// DataFusion's functions and planners, to make physical expressions and plans.
    fn session(&self) -> &SessionState;
    /// Why operators declined the node that is being lowered, so far.
    fn refusals(&self) -> Vec<String>;
}
