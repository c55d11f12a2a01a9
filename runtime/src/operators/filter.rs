//! Filter: the rows for which a predicate is true.
//!
//! `out = { row in input | predicate(row) is true }`, so the change of the output is the change of the input,
//! filtered: the operator keeps nothing. A row for which the predicate fails is in no output.

use std::any::Any;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::logical_expr::LogicalPlan;
use plan::{Cost, Distribution, Lower, LowerContext, Lowered, PlanError, Properties, Spec, StateBound};

use super::{BuildContext, Operator, OperatorDef, Output, spec_of};
use crate::Epoch;
use crate::delta::Delta;
use crate::error::Result;
use crate::expressions::Predicate;

const NAME: &str = "filter";

/// Recognises and builds filters.
#[derive(Debug)]
pub struct FilterDefinition;

/// A filter as data.
#[derive(Debug)]
struct Filter {
    predicate: Predicate,
    schema: SchemaRef,
}

impl Spec for Filter {
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
        Properties { state: StateBound::Stateless, ..inputs[0].clone() }
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
        self.predicate.text().to_string()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Lower for FilterDefinition {
    fn name(&self) -> &'static str {
        NAME
    }

    fn lower(&self, plan: &LogicalPlan, context: &mut dyn LowerContext) -> Result<Lowered, PlanError> {
        let LogicalPlan::Filter(filter) = plan else { return Ok(Lowered::Declined(None)) };
        let predicate = match Predicate::bind(&filter.predicate, filter.input.schema(), context.session()) {
            Ok(predicate) => predicate,
            Err(reason) => return Ok(Lowered::Declined(Some(reason))),
        };
        let input = context.lower(&filter.input)?;
        let schema = context.schema(input);
        Ok(Lowered::Node(context.add(std::sync::Arc::new(Filter { predicate, schema }), vec![input])))
    }
}

impl OperatorDef for FilterDefinition {
    fn build(&self, spec: &dyn Spec, _context: BuildContext) -> Result<Box<dyn Operator>> {
        let spec: &Filter = spec_of(spec)?;
        Ok(Box::new(FilterOperator { predicate: spec.predicate.clone() }))
    }
}

struct FilterOperator {
    predicate: Predicate,
}

impl Operator for FilterOperator {
    fn absorb(&mut self, _port: usize, delta: Delta, output: &mut Output) -> Result<()> {
        let rows = self.predicate.filter(NAME, delta, output)?;
        output.emit(rows);
        Ok(())
    }

    fn close(&mut self, _epoch: Epoch, _output: &mut Output) -> Result<()> {
        Ok(())
    }
}
