//! Operators for tests: a copy that fails when told to, a count by key, a count of everything.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::logical_expr::LogicalPlan;
use plan::{Cost, Dataflow, Distribution, Lower, LowerContext, Lowered, PlanError, Properties, Relation, Spec};

use super::harness::Source;
use crate::Epoch;
use crate::delta::Delta;
use crate::delta::consolidate::consolidate_all;
use crate::delta::key::{KeyEncoder, partition_of};
use crate::error::{Error, Result};
use crate::operators::{BuildContext, Operator, OperatorDef, Output};
use crate::state::StateTable;
use crate::state::relation::{decode_count, encode_count};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Pass,
    CountByKey,
    CountOfAll,
    Unknown,
}

#[derive(Debug)]
struct TestSpec {
    kind: Kind,
    /// The column to count by.
    column: usize,
    schema: SchemaRef,
}

impl Spec for TestSpec {
    fn name(&self) -> &'static str {
        match self.kind {
            Kind::Pass => "test pass",
            Kind::CountByKey => "test count by key",
            Kind::CountOfAll => "test count of all",
            Kind::Unknown => "test unknown",
        }
    }

    fn version(&self) -> u32 {
        1
    }

    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn properties(&self, _inputs: &[&Properties]) -> Properties {
        let keys = match self.kind {
            Kind::CountByKey => vec![vec![0]],
            Kind::CountOfAll => vec![vec![]],
            Kind::Pass | Kind::Unknown => vec![],
        };
        Properties { keys, ..Properties::default() }
    }

    fn cost(&self) -> Cost {
        Cost::Constant
    }

    fn distribution(&self, _port: usize) -> Distribution {
        match self.kind {
            Kind::CountByKey => Distribution::ByKey(vec![self.column]),
            Kind::CountOfAll => Distribution::ByKey(vec![]),
            Kind::Pass | Kind::Unknown => Distribution::Any,
        }
    }

    fn state_tables(&self) -> usize {
        usize::from(matches!(self.kind, Kind::CountByKey | Kind::CountOfAll))
    }

    fn detail(&self) -> String {
        String::new()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn over(source: &Source, kind: Kind, schema: SchemaRef) -> Dataflow {
    let mut plan = Dataflow::default();
    let relation: Arc<Relation> = source.relation.clone();
    let input = plan.import(relation);
    let output = plan.add(Arc::new(TestSpec { kind, column: source.column, schema }), vec![input]);
    plan.set_output(output);
    plan
}

/// Every row as it is; a row whose second column says "fail" or "panic" does that.
pub(super) fn pass(source: &Source) -> Dataflow {
    over(source, Kind::Pass, source.relation.schema.clone())
}

/// The number of rows by key: key, count.
pub(super) fn count_by_key(source: &Source) -> Dataflow {
    over(source, Kind::CountByKey, crate::delta::literal::schema("key int8, count int8"))
}

/// The number of rows.
pub(super) fn count_of_all(source: &Source) -> Dataflow {
    over(source, Kind::CountOfAll, crate::delta::literal::schema("count int8"))
}

/// An operator that nobody implements.
pub(super) fn unknown(source: &Source) -> Dataflow {
    over(source, Kind::Unknown, source.relation.schema.clone())
}

/// The definitions of the operators above.
pub(super) fn definitions() -> Vec<Arc<dyn OperatorDef>> {
    [Kind::Pass, Kind::CountByKey, Kind::CountOfAll].map(|kind| Arc::new(TestDefinition(kind)) as _).to_vec()
}

struct TestDefinition(Kind);

impl Lower for TestDefinition {
    fn name(&self) -> &'static str {
        let schema = Arc::new(datafusion::arrow::datatypes::Schema::empty());
        TestSpec { kind: self.0, column: 0, schema }.name()
    }

    fn lower(&self, _plan: &LogicalPlan, _context: &mut dyn LowerContext) -> Result<Lowered, PlanError> {
        Ok(Lowered::Declined(None))
    }
}

impl OperatorDef for TestDefinition {
    fn build(&self, spec: &dyn Spec, mut context: BuildContext) -> Result<Box<dyn Operator>> {
        let spec = spec.as_any().downcast_ref::<TestSpec>().unwrap();
        Ok(match self.0 {
            Kind::Pass | Kind::Unknown => Box::new(Pass),
            Kind::CountByKey => {
                let types = [context.inputs[0].field(spec.column).data_type().clone()];
                Box::new(Count {
                    columns: vec![spec.column],
                    encoder: KeyEncoder::new(&types)?,
                    table: context.state.remove(0),
                    deltas: Vec::new(),
                    input: context.inputs[0].clone(),
                    output: spec.schema.clone(),
                })
            }
            Kind::CountOfAll => Box::new(Count {
                columns: vec![],
                encoder: KeyEncoder::new(&[])?,
                table: context.state.remove(0),
                deltas: Vec::new(),
                input: context.inputs[0].clone(),
                output: spec.schema.clone(),
            }),
        })
    }
}

struct Pass;

impl Operator for Pass {
    fn absorb(&mut self, _port: usize, delta: Delta, output: &mut Output) -> Result<()> {
        if let Some(texts) = delta.batch().column(1).as_string_opt::<i32>() {
            if texts.iter().any(|text| text == Some("fail")) {
                return Err(Error::Dataflow("told to fail".to_owned()));
            }
            assert!(texts.iter().all(|text| text != Some("panic")), "told to panic");
        }
        output.emit(delta);
        Ok(())
    }

    fn close(&mut self, _epoch: Epoch, _output: &mut Output) -> Result<()> {
        Ok(())
    }
}

/// State: key → number of rows, never 0 with a key column; without one always there, and 0 over nothing.
struct Count {
    columns: Vec<usize>,
    encoder: KeyEncoder,
    table: StateTable,
    deltas: Vec<Delta>,
    input: SchemaRef,
    output: SchemaRef,
}

impl Operator for Count {
    fn absorb(&mut self, _port: usize, delta: Delta, _output: &mut Output) -> Result<()> {
        self.deltas.push(delta);
        Ok(())
    }

    fn close(&mut self, _epoch: Epoch, output: &mut Output) -> Result<()> {
        let change = consolidate_all(self.input.clone(), std::mem::take(&mut self.deltas))?;
        let columns: Vec<ArrayRef> = self.columns.iter().map(|column| change.batch().column(*column).clone()).collect();
        let keys = self.encoder.encode_rows(&columns, change.len())?;
        let mut weights: BTreeMap<Vec<u8>, i64> = BTreeMap::new();
        let counts_all = self.columns.is_empty();
        if counts_all {
            weights.insert(Vec::new(), 0);
        }
        for row in 0..change.len() {
            *weights.entry(keys.row(row).to_vec()).or_default() += change.weight(row);
        }
        let mut rows: Vec<(Vec<u8>, i64, i64)> = Vec::new();
        for (key, weight) in weights {
            let partition = partition_of(&key);
            let stored = self.table.get(partition, &key)?;
            let before = stored.as_deref().map(decode_count).transpose()?;
            let after = before.unwrap_or(0) + weight;
            let shown = (after != 0 || counts_all).then_some(after);
            if before == shown {
                continue;
            }
            rows.extend(before.map(|count| (key.clone(), count, -1)));
            rows.extend(shown.map(|count| (key.clone(), count, 1)));
            match shown {
                Some(count) => self.table.put(partition, &key, encode_count(count)),
                None => self.table.delete(partition, &key),
            }
        }
        let mut columns = self.encoder.decode(rows.iter().map(|(key, _, _)| key.as_slice()))?;
        columns.push(Arc::new(Int64Array::from_iter_values(rows.iter().map(|(_, count, _)| *count))));
        let weights = Int64Array::from_iter_values(rows.iter().map(|(_, _, weight)| *weight));
        output.emit(Delta::new(RecordBatch::try_new(self.output.clone(), columns)?, Some(weights)));
        Ok(())
    }
}
