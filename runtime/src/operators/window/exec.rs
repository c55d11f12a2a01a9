//! Window functions in execution: the results over what a change may reach, before and after.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::collect;

use super::{NAME, WindowSpec};
use crate::Epoch;
use crate::delta::{Delta, consolidate_all};
use crate::error::{Error, Result};
use crate::expressions::{batch_of, errors, message_of};
use crate::limits::{RECOMPUTE_BATCH_ROWS, WINDOW_SLICES_MAX};
use crate::operators::ordered::{Changed, Counted, OrderedRows, apply, first_counts, merge};
use crate::operators::recompute::exec::{Rows, over_rows, physical_plan, with_schema};
use crate::operators::{BuildContext, Operator, Output};
use crate::state::StateTable;

/// Window functions in execution.
pub(super) struct WindowOperator {
    reach: Option<usize>,
    input: SchemaRef,
    ordered: OrderedRows,
    rows: StateTable,
    /// The window over the rows that are shown to it.
    query: LogicalPlan,
    shown: Arc<Rows>,
    session: SessionState,
    runtime: tokio::runtime::Runtime,
    /// The columns of a partition's key.
    key: SchemaRef,
    schema: SchemaRef,
    /// What was absorbed in this epoch.
    pending: Vec<Delta>,
}

/// The rows of a partition that a change may reach, and those around them.
struct Reached<'a> {
    key: &'a [u8],
    before: Counted,
    after: Counted,
}

impl WindowOperator {
    pub(super) fn new(spec: &WindowSpec, context: BuildContext) -> Result<Self> {
        let [rows] = crate::operators::state_tables(context.state)?;
        let [input]: [SchemaRef; 1] =
            context.inputs.try_into().map_err(|_| Error::Dataflow(format!("{NAME} has one input")))?;
        let row = Arc::new(Schema::new(input.fields()[..spec.layout.width].to_vec()));
        let key: Vec<Field> = spec.layout.partition.iter().map(|column| input.field(*column).clone()).collect();
        let shown: Arc<Rows> = Arc::default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .map_err(|error| Error::Dataflow(format!("{NAME}: {error}")))?;
        Ok(WindowOperator {
            reach: spec.reach,
            ordered: OrderedRows::new(&spec.layout, &input, row)?,
            input,
            rows,
            query: over_rows(&spec.query, std::slice::from_ref(&shown))?,
            shown,
            session: spec.session.clone(),
            runtime,
            key: Arc::new(Schema::new(key)),
            schema: spec.schema.clone(),
            pending: Vec::new(),
        })
    }

    /// Takes the changes of a partition into state; gives the rows that they may reach.
    fn reached<'a>(&self, changed: &Changed<'a>) -> Result<Reached<'a>> {
        let (partition, key) = (changed.partition, changed.key);
        let changes: Vec<(&[u8], i64)> = changed.rows.iter().map(|change| (change.entry, change.weight)).collect();
        let before = match self.reach {
            Some(reach) if changes.len() <= WINDOW_SLICES_MAX => self.around(changed, 2 * reach)?,
            _ => first_counts(&self.rows, partition, key, usize::MAX)?,
        };
        let after = merge(&before, changes.iter().copied())?;
        apply(&self.rows, partition, &changes, false)?;
        Ok(Reached { key, before, after })
    }

    /// The rows before changes, so many on each side of every one.
    fn around(&self, changed: &Changed<'_>, rows: usize) -> Result<Counted> {
        let mut found: Counted = Vec::new();
        for change in &changed.rows {
            let last = found.last().map(|(key, _)| key.clone());
            let known = |entry: &Bytes| last.as_ref().is_some_and(|last| entry <= last);
            let mut back = self.rows.last_entries_before(changed.partition, changed.key, change.entry, rows)?;
            back.reverse();
            // The changed row itself, if it is there, and those behind it.
            let ahead = self.rows.first_entries_from(changed.partition, changed.key, change.entry, rows + 1)?;
            for (entry, count) in back.into_iter().chain(ahead) {
                if !known(&entry) {
                    found.push((entry, crate::operators::ordered::count_of(&count)?));
                }
            }
        }
        Ok(found)
    }

    /// The window over rows; the error is the message of the function that fails.
    fn compute(&self, rows: &[&Counted]) -> Result<std::result::Result<Vec<RecordBatch>, String>> {
        let copies: Vec<&[u8]> = rows
            .iter()
            .flat_map(|rows| rows.iter())
            .flat_map(|(row, count)| std::iter::repeat_n(row.as_ref(), usize::try_from(*count).unwrap_or(0)))
            .collect();
        if copies.is_empty() {
            return Ok(Ok(Vec::new()));
        }
        let batch = |rows: &[&[u8]]| batch_of(self.ordered.schema(), self.ordered.decode(rows)?, rows.len());
        let batches: Result<Vec<RecordBatch>> = copies.chunks(RECOMPUTE_BATCH_ROWS).map(batch).collect();
        *self.shown.batches.lock() = batches?;
        let result = self.run();
        self.shown.batches.lock().clear();
        match result {
            Ok(batches) => Ok(Ok(batches)),
            Err(error) => Ok(Err(message_of(&error))),
        }
    }

    fn run(&self) -> std::result::Result<Vec<RecordBatch>, DataFusionError> {
        // Physical plans keep what they have computed, so each run has its own.
        let plan = self.runtime.block_on(physical_plan(&self.query, &self.session))?;
        self.runtime.block_on(collect(plan, self.session.task_ctx()))
    }

    /// The results of partitions with a sign. Where they fail together, each is computed by itself.
    fn results(
        &self,
        reached: &[Reached<'_>],
        rows: &[&Counted],
        weight: i64,
        output: &mut Output,
    ) -> Result<Vec<Delta>> {
        if let Ok(batches) = self.compute(rows)? {
            return self.deltas(batches, weight);
        }
        let mut deltas = Vec::new();
        for (reached, rows) in reached.iter().zip(rows) {
            match self.compute(&[rows])? {
                Ok(batches) => deltas.extend(self.deltas(batches, weight)?),
                Err(message) => {
                    let key = batch_of(&self.key, self.ordered.decode_key(reached.key)?, 1)?;
                    let key = if weight < 0 { Delta::delete(key) } else { Delta::insert(key) };
                    output.emit_errors(errors(NAME, &key, &[(0, message)])?);
                }
            }
        }
        Ok(deltas)
    }

    fn deltas(&self, batches: Vec<RecordBatch>, weight: i64) -> Result<Vec<Delta>> {
        let delta = |batch: RecordBatch| {
            let batch = with_schema(&batch, &self.schema)?;
            Ok(if weight < 0 { Delta::delete(batch) } else { Delta::insert(batch) })
        };
        batches.into_iter().map(delta).collect()
    }
}

impl Operator for WindowOperator {
    fn absorb(&mut self, _port: usize, delta: Delta, _output: &mut Output) -> Result<()> {
        if !delta.is_empty() {
            self.pending.push(delta);
        }
        Ok(())
    }

    fn close(&mut self, _epoch: Epoch, output: &mut Output) -> Result<()> {
        let delta = consolidate_all(self.input.clone(), std::mem::take(&mut self.pending))?;
        if delta.is_empty() {
            return Ok(());
        }
        let encoded = self.ordered.encode(&delta)?;
        let changed = encoded.changed();
        let reached: Vec<Reached<'_>> = changed.iter().map(|changed| self.reached(changed)).collect::<Result<_>>()?;
        let before: Vec<&Counted> = reached.iter().map(|reached| &reached.before).collect();
        let after: Vec<&Counted> = reached.iter().map(|reached| &reached.after).collect();
        let mut difference = self.results(&reached, &after, 1, output)?;
        difference.extend(self.results(&reached, &before, -1, output)?);
        output.emit(consolidate_all(self.schema.clone(), difference)?);
        Ok(())
    }
}
