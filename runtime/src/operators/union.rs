//! Union all: the rows of all inputs together.
//!
//! `out(row) = sum over inputs of input(row)`: the operator keeps nothing.

use std::any::Any;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::logical_expr::LogicalPlan;
use plan::{Cost, Distribution, Extent, Lower, LowerContext, Lowered, PlanError, Properties, Spec, StateBound};

use super::{BuildContext, Operator, OperatorDef, Output, spec_of};
use crate::Epoch;
use crate::delta::Delta;
use crate::error::Result;
use crate::expressions::batch_of;

const NAME: &str = "union";

/// Recognises and builds unions.
#[derive(Debug)]
pub struct UnionDefinition;

/// A union as data.
#[derive(Debug)]
struct Union {
    schema: SchemaRef,
    inputs: usize,
}

impl Spec for Union {
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
        let in_all = |column: &usize| inputs.iter().all(|input| input.watermarks.contains(column));
        Properties {
            keys: if inputs.len() == 1 { inputs[0].keys.clone() } else { Vec::new() },
            append_only: inputs.iter().all(|input| input.append_only),
            watermarks: inputs
                .first()
                .map(|input| input.watermarks.iter().copied().filter(in_all).collect())
                .unwrap_or_default(),
            extent: Extent::of(inputs),
            state: StateBound::Stateless,
        }
    }

    fn cost(&self) -> Cost {
        Cost::Constant
    }

    fn distribution(&self, _port: usize) -> Distribution {
        Distribution::Any
    }

    fn state_tables(&self) -> usize {
        0
    }

    fn detail(&self) -> String {
        format!("all of {} inputs", self.inputs)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Lower for UnionDefinition {
    fn name(&self) -> &'static str {
        NAME
    }

    fn lower(&self, plan: &LogicalPlan, context: &mut dyn LowerContext) -> Result<Lowered, PlanError> {
        let LogicalPlan::Union(union) = plan else { return Ok(Lowered::Declined(None)) };
        let inputs = union.inputs.iter().map(|input| context.lower(input)).collect::<Result<Vec<_>, _>>()?;
        let spec = Union { schema: union.schema.inner().clone(), inputs: inputs.len() };
        Ok(Lowered::Node(context.add(Arc::new(spec), inputs)))
    }
}

impl OperatorDef for UnionDefinition {
    fn build(&self, spec: &dyn Spec, _context: BuildContext) -> Result<Box<dyn Operator>> {
        let spec: &Union = spec_of(spec)?;
        Ok(Box::new(UnionOperator { schema: spec.schema.clone() }))
    }
}

struct UnionOperator {
    schema: SchemaRef,
}

impl Operator for UnionOperator {
    fn absorb(&mut self, _port: usize, delta: Delta, output: &mut Output) -> Result<()> {
        // Inputs may name their columns otherwise.
        let batch = batch_of(&self.schema, delta.batch().columns().to_vec(), delta.len())?;
        output.emit(delta.with_batch(batch));
        Ok(())
    }

    fn close(&mut self, _epoch: Epoch, _output: &mut Output) -> Result<()> {
        Ok(())
    }
}
