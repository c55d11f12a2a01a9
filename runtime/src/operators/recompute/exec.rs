//! Runs the query over the stored inputs and emits the difference to the last time.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::Int64Array;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::catalog::streaming::StreamingTable;
use datafusion::common::tree_node::Transformed;
use datafusion::datasource::provider_as_source;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{LogicalPlan, TableScan, TableSource};
use datafusion::physical_expr::window::{PlainAggregateWindowExpr, SlidingAggregateWindowExpr};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use datafusion::physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion::physical_plan::{ExecutionPlan, collect};
use parking_lot::Mutex;

use super::cut::InputSource;
use super::{NAME, RecomputeSpec};
use crate::Epoch;
use crate::delta::Delta;
use crate::delta::consolidate::consolidate_all;
use crate::delta::key::partition_of;
use crate::delta::rows::{EncodedRows, RowCodec};
use crate::error::{Error, Result};
use crate::expressions::message_of;
use crate::limits::{RECOMPUTE_BATCH_ROWS, RECOMPUTE_DECODED_BYTES_MAX};
use crate::operators::failure::Failure;
use crate::operators::{BuildContext, Filling, Operator, Output};
use crate::state::StateTable;
use crate::state::relation::{decode_count, encode_count};

/// A query that is run again.
pub(super) struct Recompute {
    /// The query over the [`Rows`] of its inputs.
    query: LogicalPlan,
    session: SessionState,
    runtime: tokio::runtime::Runtime,
    inputs: Vec<StoredInput>,
    output: StoredRows,
    failure: Failure,
    /// Whether the query ran since the process started.
    has_run: bool,
    filling: Filling,
    /// Whether all rows come to this worker.
    owns_rows: bool,
}

impl Recompute {
    /// Builds the operator of a spec.
    pub(super) fn build(spec: &RecomputeSpec, context: BuildContext) -> Result<Self> {
        let (owns_rows, filling) = (context.owns_empty_key(), context.filling);
        let mut tables = context.state.into_iter();
        let mut next_table = || tables.next().ok_or_else(|| Error::Dataflow(format!("{NAME} lacks a state table")));
        let mut inputs = Vec::new();
        for schema in &context.inputs {
            let rows = StoredRows::new(next_table()?, schema)?;
            inputs.push(StoredInput { rows, deltas: Vec::new(), shown: Arc::default(), is_shown: false });
        }
        let output = StoredRows::new(next_table()?, &spec.schema)?;
        let failure = Failure::new(NAME, next_table()?);
        let shown: Vec<Arc<Rows>> = inputs.iter().map(|input| input.shown.clone()).collect();
        let query = over_rows(&spec.query, &shown)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(|error| Error::Dataflow(format!("{NAME}: {error}")))?;
        let session = spec.session.clone();
        Ok(Recompute { query, session, runtime, inputs, output, failure, has_run: false, filling, owns_rows })
    }

    /// The query's result.
    fn run(&self) -> Result<std::result::Result<Vec<RecordBatch>, DataFusionError>> {
        // Planned every time: physical plans keep what they have built (the table of a hash join, filters that were
        // passed down), and not all of them can be told to forget it.
        let plan = self.runtime.block_on(physical_plan(&self.query, &self.session))?;
        Ok(self.runtime.block_on(collect(plan, self.session.task_ctx())))
    }
}

impl Operator for Recompute {
    fn absorb(&mut self, port: usize, delta: Delta, _output: &mut Output) -> Result<()> {
        match self.inputs.get_mut(port) {
            Some(input) => input.deltas.push(delta),
            None => return Err(Error::Dataflow(format!("{NAME} has no input {port}"))),
        }
        Ok(())
    }

    fn waits_for_fill(&self) -> bool {
        self.owns_rows
    }

    fn close(&mut self, epoch: Epoch, output: &mut Output) -> Result<()> {
        let mut changed = !self.has_run;
        for input in &mut self.inputs {
            changed |= input.store_deltas()?;
        }
        if !changed || self.filling.goes_on_after(epoch) {
            return Ok(());
        }
        for input in &mut self.inputs {
            input.show()?;
        }
        self.has_run = true;
        match self.run()? {
            Ok(batches) => {
                self.failure.change(None, output)?;
                output.emit(self.output.replace(&batches)?);
            }
            Err(error) => {
                self.failure.change(Some(&message_of(&error)), output)?;
                output.emit(self.output.replace(&[])?);
            }
        }
        for input in &mut self.inputs {
            input.hide_if_large();
        }
        Ok(())
    }
}

/// A multiset of rows in a state table.
struct StoredRows {
    table: StateTable,
    codec: RowCodec,
    /// Where all entries are.
    partition: u16,
}

impl StoredRows {
    fn new(table: StateTable, schema: &SchemaRef) -> Result<Self> {
        Ok(StoredRows { table, codec: RowCodec::new(schema)?, partition: partition_of(&[]) })
    }

    fn scan(&self) -> Result<Vec<(Bytes, i64)>> {
        let entries = self.table.scan_prefix(self.partition, &[])?;
        entries.into_iter().map(|(row, count)| Ok((row, decode_count(&count)?))).collect()
    }

    fn set(&self, row: &[u8], count: i64) {
        match count {
            0 => self.table.delete(self.partition, row),
            _ => self.table.put(self.partition, row, encode_count(count)),
        }
    }

    /// Adds a consolidated change.
    fn add(&self, change: &Delta) -> Result<()> {
        let encoded = self.codec.encode(change.batch())?;
        let mut weights: BTreeMap<&[u8], i64> = BTreeMap::new();
        for (row, bytes) in encoded.iter().enumerate() {
            *weights.entry(bytes).or_default() += change.weight(row);
        }
        let keys: Vec<(u16, &[u8])> = weights.keys().map(|row| (self.partition, *row)).collect();
        let stored = self.table.get_many(&keys)?;
        for ((row, weight), stored) in weights.iter().zip(stored) {
            let count = stored.as_deref().map_or(Ok(0), decode_count)? + weight;
            if count < 0 {
                return Err(Error::Dataflow("internal error: an input loses a row that it never had".to_owned()));
            }
            self.set(row, count);
        }
        Ok(())
    }

    /// Replaces all rows; returns the change.
    fn replace(&self, batches: &[RecordBatch]) -> Result<Delta> {
        let schema = self.codec.schema();
        let encoded: Vec<EncodedRows> =
            batches.iter().map(|batch| self.codec.encode(&with_schema(batch, schema)?)).collect::<Result<_>>()?;
        let mut rows: Vec<&[u8]> = encoded.iter().flat_map(EncodedRows::iter).collect();
        rows.sort_unstable();
        // What was stored comes in the same order: row, copies now, copies more than before.
        let stored = self.scan()?;
        let mut stored = stored.iter().peekable();
        let mut differences: Vec<(&[u8], i64, i64)> = Vec::new();
        for copies in rows.chunk_by(|left, right| left == right) {
            let (row, count) = (copies[0], copies.len() as i64);
            while let Some((gone, before)) = stored.next_if(|(known, _)| known.as_ref() < row) {
                differences.push((gone, 0, -before));
            }
            let before = stored.next_if(|(known, _)| known.as_ref() == row).map_or(0, |(_, before)| *before);
            if count != before {
                differences.push((row, count, count - before));
            }
        }
        differences.extend(stored.map(|(gone, before)| (gone.as_ref(), 0, -before)));
        for (row, count, _) in &differences {
            self.set(row, *count);
        }
        let rows = self.codec.decode(differences.iter().map(|(row, _, _)| *row))?;
        let weights = Int64Array::from_iter_values(differences.iter().map(|(_, _, difference)| *difference));
        Ok(Delta::new(rows, Some(weights)))
    }
}

/// An input, as stored and as shown to the query.
struct StoredInput {
    rows: StoredRows,
    /// What came in the epoch in hand.
    deltas: Vec<Delta>,
    shown: Arc<Rows>,
    /// Whether what is shown is what is stored.
    is_shown: bool,
}

impl StoredInput {
    /// Takes the epoch's deltas into state; says whether there were any.
    fn store_deltas(&mut self) -> Result<bool> {
        let change = consolidate_all(self.rows.codec.schema().clone(), std::mem::take(&mut self.deltas))?;
        if change.is_empty() {
            return Ok(false);
        }
        self.is_shown = false;
        self.rows.add(&change)?;
        Ok(true)
    }

    fn show(&mut self) -> Result<()> {
        if self.is_shown {
            return Ok(());
        }
        let rows = self.rows.scan()?;
        let copies: Vec<&[u8]> = rows
            .iter()
            .flat_map(|(row, count)| std::iter::repeat_n(row.as_ref(), usize::try_from(*count).unwrap_or(0)))
            .collect();
        let batches: Result<Vec<RecordBatch>> =
            copies.chunks(RECOMPUTE_BATCH_ROWS).map(|rows| self.rows.codec.decode(rows.iter().copied())).collect();
        *self.shown.batches.lock() = batches?;
        self.is_shown = true;
        Ok(())
    }

    fn hide_if_large(&mut self) {
        let mut batches = self.shown.batches.lock();
        if batches.iter().map(RecordBatch::get_array_memory_size).sum::<usize>() > RECOMPUTE_DECODED_BYTES_MAX {
            batches.clear();
            self.is_shown = false;
        }
    }
}

/// The rows of an input that the query sees.
#[derive(Debug, Default)]
pub(in crate::operators) struct Rows {
    pub(in crate::operators) batches: Mutex<Vec<RecordBatch>>,
}

/// An input as a table of the query.
#[derive(Debug)]
struct RowsStream {
    rows: Arc<Rows>,
    schema: SchemaRef,
}

impl PartitionStream for RowsStream {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = self.schema.clone();
        let batches = self.rows.batches.lock().clone();
        let batches = batches
            .into_iter()
            .map(move |batch| with_schema(&batch, &schema).map_err(|error| DataFusionError::External(Box::new(error))));
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), futures::stream::iter(batches)))
    }
}

/// The same columns under other names, nullability and metadata; cast where a type differs in form only.
pub(in crate::operators) fn with_schema(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema() == *schema {
        return Ok(batch.clone());
    }
    let columns = batch
        .columns()
        .iter()
        .zip(schema.fields())
        .map(|(column, field)| match column.data_type() == field.data_type() {
            true => Ok(column.clone()),
            false => cast(column, field.data_type()),
        })
        .collect::<std::result::Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

/// The query with its placeholders replaced by the rows of its inputs.
pub(in crate::operators) fn over_rows(
    query: &LogicalPlan,
    inputs: &[Arc<Rows>],
) -> std::result::Result<LogicalPlan, DataFusionError> {
    let replaced = query.clone().transform_down_with_subqueries(|node| {
        let LogicalPlan::TableScan(scan) = node else { return Ok(Transformed::no(node)) };
        let Some(source) = scan.source.downcast_ref::<InputSource>() else {
            return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
        };
        let Some(rows) = inputs.get(source.port) else {
            return Err(DataFusionError::Internal(format!("{NAME} has no input {}", source.port)));
        };
        let schema = source.schema();
        let stream = Arc::new(RowsStream { rows: rows.clone(), schema: schema.clone() });
        let source = provider_as_source(Arc::new(StreamingTable::try_new(schema, vec![stream])?));
        Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })))
    })?;
    Ok(replaced.data)
}

pub(in crate::operators) async fn physical_plan(
    query: &LogicalPlan,
    session: &SessionState,
) -> std::result::Result<Arc<dyn ExecutionPlan>, DataFusionError> {
    session.query_planner().create_physical_plan(query, session).await
}

/// Whether a query can be planned, and every aggregate in it be begun.
pub(in crate::operators) fn check(
    query: &LogicalPlan,
    session: &SessionState,
    inputs: &[SchemaRef],
) -> std::result::Result<(), DataFusionError> {
    let rows: Vec<Arc<Rows>> = inputs.iter().map(|_| Arc::default()).collect();
    let query = over_rows(query, &rows)?;
    check_aggregates(futures::executor::block_on(physical_plan(&query, session))?.as_ref())
}

/// DataFusion finds out that it lacks an aggregate over such arguments, or over a frame that loses rows, when it begins one.
fn check_aggregates(plan: &dyn ExecutionPlan) -> std::result::Result<(), DataFusionError> {
    if let Some(aggregation) = plan.downcast_ref::<AggregateExec>() {
        aggregation.aggr_expr().iter().try_for_each(|aggregate| aggregate.create_accumulator().map(drop))?;
    }
    let windows = plan
        .downcast_ref::<WindowAggExec>()
        .map(WindowAggExec::window_expr)
        .or_else(|| plan.downcast_ref::<BoundedWindowAggExec>().map(BoundedWindowAggExec::window_expr));
    for window in windows.unwrap_or_default() {
        let window = window.as_any();
        if let Some(sliding) = window.downcast_ref::<SlidingAggregateWindowExpr>() {
            sliding.get_aggregate_expr().create_sliding_accumulator()?;
        } else if let Some(growing) = window.downcast_ref::<PlainAggregateWindowExpr>() {
            growing.get_aggregate_expr().create_accumulator()?;
        }
    }
    plan.children().into_iter().try_for_each(|child| check_aggregates(child.as_ref()))
}
