//! A dataflow within an operator: run in one piece, on one worker, pass by pass.

use std::sync::Arc;

use plan::{Dataflow, NodeId, NodeKind, PlanError};

use crate::Epoch;
use crate::delta::{Delta, consolidate_all};
use crate::error::Result;
use crate::operators::{BuildContext, Filling, Operator, OperatorDef, Output, definitions};
use crate::state::StateTable;

/// A dataflow in execution. A pass is to its operators what an epoch is in a dataflow of the engine.
pub(super) struct Nested {
    nodes: Vec<Step>,
    output: NodeId,
}

enum Step {
    /// Passes on what is fed under this number.
    Import(usize),
    Operator {
        operator: Box<dyn Operator>,
        inputs: Vec<NodeId>,
    },
}

impl Nested {
    /// Builds the operators. `state` has as many tables as the plan needs.
    pub(super) fn build(plan: &Dataflow, state: Vec<StateTable>, partitions: std::ops::Range<u16>) -> Result<Self> {
        let known = definitions();
        let mut state = state.into_iter();
        let mut nodes = Vec::with_capacity(plan.nodes().len());
        for node in plan.nodes() {
            let spec = match &node.kind {
                NodeKind::Import(relation) => {
                    nodes.push(Step::Import(relation.id.0 as usize));
                    continue;
                }
                NodeKind::Operator(spec) => spec,
            };
            let inputs: Vec<_> = node.inputs.iter().map(|input| plan.node(*input)).collect();
            let context = BuildContext {
                inputs: inputs.iter().map(|input| input.schema.clone()).collect(),
                state: state.by_ref().take(spec.state_tables()).collect(),
                append_only: inputs.iter().map(|input| input.properties.append_only).collect(),
                partitions: partitions.clone(),
                // A pass goes over all there is to derive from: nothing of it can be left for later.
                filling: Filling::default(),
            };
            let operator = definition(&known, spec.name())?.build(spec.as_ref(), context)?;
            nodes.push(Step::Operator { operator, inputs: node.inputs.clone() });
        }
        Ok(Nested { nodes, output: plan.output() })
    }

    /// Takes changes of the imports, by their numbers, and gives the change of the output, consolidated.
    pub(super) fn pass(&mut self, epoch: Epoch, fed: &[(usize, Delta)], errors: &mut Vec<Delta>) -> Result<Vec<Delta>> {
        let mut emitted: Vec<Vec<Delta>> = Vec::with_capacity(self.nodes.len());
        for node in &mut self.nodes {
            let rows = match node {
                Step::Import(number) => {
                    fed.iter().filter(|(to, _)| to == number).map(|(_, delta)| delta.clone()).collect()
                }
                Step::Operator { operator, inputs } => {
                    let mut output = Output::default();
                    let mut touched = false;
                    for (port, input) in inputs.iter().enumerate() {
                        for delta in emitted[input.0].iter().filter(|delta| !delta.is_empty()) {
                            touched = true;
                            operator.absorb(port, delta.clone(), &mut output)?;
                        }
                    }
                    if touched {
                        operator.close(epoch, &mut output)?;
                    }
                    errors.append(&mut output.errors);
                    output.rows
                }
            };
            emitted.push(rows);
        }
        let output = emitted.into_iter().nth(self.output.0).unwrap_or_default();
        match output.first() {
            Some(first) => Ok(vec![consolidate_all(first.schema(), output)?]),
            None => Ok(output),
        }
    }
}

fn definition<'a>(known: &'a [Arc<dyn OperatorDef>], name: &str) -> Result<&'a Arc<dyn OperatorDef>> {
    known
        .iter()
        .find(|definition| definition.name() == name)
        .ok_or_else(|| PlanError::internal(format!("there is no operator {name}")).into())
}
