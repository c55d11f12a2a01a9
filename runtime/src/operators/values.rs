//! Values: constant rows.
//!
//! `out` holds the rows from the first epoch on. They are emitted once, by the worker that has the partition of the
//! empty key.
//!
//! State: one entry under the empty key says that the rows have been emitted, so that a restart does not repeat them.

use std::any::Any;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::DFSchema;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{EmptyRelation, LogicalPlan, Values as LogicalValues};
use plan::{Cost, Distribution, Extent, Lower, LowerContext, Lowered, PlanError, Properties, Spec, StateBound};

use super::{BuildContext, Operator, OperatorDef, Output, spec_of};
use crate::Epoch;
use crate::delta::Delta;
use crate::delta::key::partition_of;
use crate::error::Result;
use crate::expressions::{BoundExprs, batch_of, message_of};
use crate::state::StateTable;

const NAME: &str = "values";
const EMITTED: &[u8] = b"";

/// Recognises and builds constant relations.
#[derive(Debug)]
pub struct ValuesDefinition;

/// Constant rows as data.
#[derive(Debug)]
struct Values {
    rows: RecordBatch,
}

impl Spec for Values {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> u32 {
        1
    }

    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    fn properties(&self, _inputs: &[&Properties]) -> Properties {
        Properties {
            keys: if self.rows.num_rows() <= 1 { vec![Vec::new()] } else { Vec::new() },
            append_only: true,
            watermarks: Vec::new(),
            extent: Extent::constant(),
            state: StateBound::constant("one entry"),
        }
    }

    fn cost(&self) -> Cost {
        Cost::Constant
    }

    fn distribution(&self, _port: usize) -> Distribution {
        Distribution::Any
    }

    fn state_tables(&self) -> usize {
        1
    }

    fn detail(&self) -> String {
        format!("{} row{}", self.rows.num_rows(), if self.rows.num_rows() == 1 { "" } else { "s" })
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Lower for ValuesDefinition {
    fn name(&self) -> &'static str {
        NAME
    }

    fn lower(&self, plan: &LogicalPlan, context: &mut dyn LowerContext) -> Result<Lowered, PlanError> {
        let rows = match plan {
            LogicalPlan::EmptyRelation(empty) => nothing(empty),
            LogicalPlan::Values(values) => constants(values, context.session()),
            _ => return Ok(Lowered::Declined(None)),
        };
        match rows {
            Ok(rows) => Ok(Lowered::Node(context.add(Arc::new(Values { rows }), Vec::new()))),
            Err(reason) => Ok(Lowered::Declined(Some(reason))),
        }
    }
}

/// No rows, or one row of NULLs (mostly without columns).
fn nothing(empty: &EmptyRelation) -> Result<RecordBatch, String> {
    let schema = empty.schema.inner();
    if !empty.produce_one_row {
        return Ok(RecordBatch::new_empty(schema.clone()));
    }
    let columns = schema.fields().iter().map(|field| datafusion::arrow::array::new_null_array(field.data_type(), 1));
    batch_of(schema, columns.collect(), 1).map_err(|error| error.to_string())
}

fn constants(values: &LogicalValues, session: &SessionState) -> Result<RecordBatch, String> {
    let schema = values.schema.inner();
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let no_columns = RecordBatch::new_empty(Arc::new(datafusion::arrow::datatypes::Schema::empty())).schema();
    let one_row =
        RecordBatch::try_new_with_options(no_columns, Vec::new(), &options).map_err(|error| error.to_string())?;
    let mut rows = Vec::with_capacity(values.values.len());
    for row in &values.values {
        let bound = BoundExprs::bind(row, &DFSchema::empty(), session)?;
        let columns = bound.evaluate_batch(&one_row).map_err(|error| message_of(&error))?;
        rows.push(batch_of(schema, columns, 1).map_err(|error| error.to_string())?);
    }
    datafusion::arrow::compute::concat_batches(schema, &rows).map_err(|error| error.to_string())
}

impl OperatorDef for ValuesDefinition {
    fn build(&self, spec: &dyn Spec, context: BuildContext) -> Result<Box<dyn Operator>> {
        let spec: &Values = spec_of(spec)?;
        let pending = context.owns_empty_key().then(|| spec.rows.clone());
        let [state] = super::state_tables(context.state)?;
        Ok(Box::new(ValuesOperator { pending, state }))
    }
}

struct ValuesOperator {
    pending: Option<RecordBatch>,
    state: StateTable,
}

impl Operator for ValuesOperator {
    fn absorb(&mut self, _port: usize, _delta: Delta, _output: &mut Output) -> Result<()> {
        Ok(())
    }

    fn close(&mut self, _epoch: Epoch, output: &mut Output) -> Result<()> {
        let Some(rows) = self.pending.take() else { return Ok(()) };
        let partition = partition_of(EMITTED);
        if self.state.get(partition, EMITTED)?.is_none() {
            self.state.put(partition, EMITTED, vec![1u8]);
            output.emit(Delta::insert(rows));
        }
        Ok(())
    }
}
