//! Distinct: each row once.
//!
//! `out(row) = 1 if input(row) > 0, else 0`. A row enters the output when its count rises above zero and leaves when
//! it falls back. Rows that SQL calls equal (-0.0 and 0.0) are one row, shown in its normalised form.
//!
//! State: row bytes (a normalised key over all columns) → count as i64, big endian. No entry has count 0.

use std::any::Any;
use std::sync::Arc;

use datafusion::arrow::array::{Int64Array, UInt32Array};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::logical_expr::{Distinct as LogicalDistinct, LogicalPlan};
use plan::{Cost, Distribution, Lower, LowerContext, Lowered, PlanError, Properties, Spec, StateBound};

use super::{BuildContext, Operator, OperatorDef, Output, spec_of};
use crate::Epoch;
use crate::delta::consolidate::{group, take_rows};
use crate::delta::key::{KeyEncoder, normalise, partition_of_hash};
use crate::delta::{Delta, concat};
use crate::error::Result;
use crate::expressions::batch_of;
use crate::state::StateTable;
use crate::state::relation::{decode_count, encode_count};

const NAME: &str = "distinct";

/// Recognises and builds DISTINCT.
#[derive(Debug)]
pub struct DistinctDefinition;

/// DISTINCT as data.
#[derive(Debug)]
struct Distinct {
    schema: SchemaRef,
}

impl Spec for Distinct {
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
        let mut keys = inputs[0].keys.clone();
        let columns = 0..self.schema.fields().len();
        keys.push(columns.clone().collect());
        let extent = inputs[0].extent.clone().for_each_value(&self.schema, columns);
        Properties {
            keys,
            append_only: inputs[0].append_only,
            watermarks: inputs[0].watermarks.clone(),
            state: StateBound::of("an entry a distinct row", extent.clone()),
            extent,
        }
    }

    fn cost(&self) -> Cost {
        Cost::Constant
    }

    fn distribution(&self, _port: usize) -> Distribution {
        Distribution::ByKey((0..self.schema.fields().len()).collect())
    }

    fn state_tables(&self) -> usize {
        1
    }

    fn detail(&self) -> String {
        let names: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
        names.join(", ")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Lower for DistinctDefinition {
    fn name(&self) -> &'static str {
        NAME
    }

    fn lower(&self, plan: &LogicalPlan, context: &mut dyn LowerContext) -> Result<Lowered, PlanError> {
        let LogicalPlan::Distinct(LogicalDistinct::All(input)) = plan else { return Ok(Lowered::Declined(None)) };
        let schema = input.schema().inner();
        if !KeyEncoder::supports(&types(schema)) {
            return Ok(Lowered::Declined(Some("a column's type cannot be compared".to_string())));
        }
        let node = context.lower(input)?;
        // Rows that are unique anyway need no counting.
        if !context.properties(node).keys.is_empty() && !types(schema).iter().any(crate::delta::key::has_equal_forms) {
            return Ok(Lowered::Node(node));
        }
        let schema = context.schema(node);
        Ok(Lowered::Node(context.add(Arc::new(Distinct { schema }), vec![node])))
    }
}

fn types(schema: &SchemaRef) -> Vec<DataType> {
    schema.fields().iter().map(|field| field.data_type().clone()).collect()
}

impl OperatorDef for DistinctDefinition {
    fn build(&self, spec: &dyn Spec, context: BuildContext) -> Result<Box<dyn Operator>> {
        let spec: &Distinct = spec_of(spec)?;
        let [state] = super::state_tables(context.state)?;
        Ok(Box::new(DistinctOperator {
            schema: spec.schema.clone(),
            encoder: KeyEncoder::new(&types(&spec.schema))?,
            state,
            pending: Vec::new(),
        }))
    }
}

struct DistinctOperator {
    schema: SchemaRef,
    encoder: KeyEncoder,
    state: StateTable,
    /// What was absorbed in this epoch.
    pending: Vec<Delta>,
}

impl Operator for DistinctOperator {
    fn absorb(&mut self, _port: usize, delta: Delta, _output: &mut Output) -> Result<()> {
        if !delta.is_empty() {
            self.pending.push(delta);
        }
        Ok(())
    }

    fn close(&mut self, _epoch: Epoch, output: &mut Output) -> Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        let delta = concat(self.schema.clone(), std::mem::take(&mut self.pending))?;
        let keys = self.encoder.encode_rows(delta.batch().columns(), delta.len())?;
        let groups = group(delta.len(), |row| keys.row(row));
        let mut changes = vec![0i64; groups.len()];
        for (row, group) in groups.of_row.iter().enumerate() {
            changes[*group as usize] += delta.weight(row);
        }
        let wanted: Vec<(u16, &[u8])> = groups
            .first_rows
            .iter()
            .zip(&groups.hashes)
            .map(|(row, hash)| (partition_of_hash(*hash), keys.row(*row as usize)))
            .collect();
        let counts = self.state.get_many(&wanted)?;
        let (mut rows, mut weights) = (Vec::new(), Vec::new());
        for (index, (partition, key)) in wanted.iter().enumerate() {
            let change = changes[index];
            if change == 0 {
                continue;
            }
            let before = counts[index].as_deref().map_or(Ok(0), decode_count)?;
            let after = before + change;
            if after == 0 {
                self.state.delete(*partition, key);
            } else {
                self.state.put(*partition, key, encode_count(after));
            }
            if (before > 0) != (after > 0) {
                rows.push(groups.first_rows[index]);
                weights.push(if after > 0 { 1i64 } else { -1 });
            }
        }
        let batch = take_rows(delta.batch(), &UInt32Array::from(rows))?;
        let batch = batch_of(&self.schema, batch.columns().iter().map(normalise).collect(), batch.num_rows())?;
        let only_added = weights.iter().all(|weight| *weight == 1);
        output.emit(Delta::new(batch, (!only_added).then(|| Int64Array::from(weights))));
        Ok(())
    }
}
