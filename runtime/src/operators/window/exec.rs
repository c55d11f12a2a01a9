//! Window functions in execution: the results over what a change may reach, before and after.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::DataFusionError;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::collect;

use super::neighbours::Neighbours;
use super::reach::Reach;
use super::running::Runner;
use super::{NAME, WindowSpec};
use crate::Epoch;
use crate::delta::{Delta, consolidate_all};
use crate::error::{Error, Result};
use crate::expressions::{batch_of, errors, message_of};
use crate::limits::{HELD_BACK_ROWS, RECOMPUTE_BATCH_ROWS};
use crate::operators::ordered::{Changed, Counted, OrderedRows, apply, first_counts, merge};
use crate::operators::recompute::exec::{Rows, over_rows, physical_plan, with_schema};
use crate::operators::{BuildContext, Filling, Operator, Output};
use crate::state::StateTable;
use crate::state::relation::decode_count;

/// Window functions in execution.
pub(super) struct WindowOperator {
    reach: Option<Reach>,
    input: SchemaRef,
    ordered: OrderedRows,
    rows: StateTable,
    running: Option<RunningWindow>,
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
    filling: Filling,
    /// The partitions, by state partition and key, whose rows came while the dataflow is being filled: nothing of them was
    /// emitted.
    held_back: BTreeSet<(u16, Bytes)>,
}

/// Running functions and their checkpoints.
struct RunningWindow {
    runner: Runner,
    checkpoints: StateTable,
}

/// The rows with their results, and the checkpoints among them; none if a function fails.
type Run = Option<(RecordBatch, Vec<(Bytes, Vec<u8>)>)>;

/// The rows of a partition that a change may reach, and those around them.
struct Reached<'a> {
    key: &'a [u8],
    before: Counted,
    after: Counted,
}

impl WindowOperator {
    pub(super) fn new(spec: &WindowSpec, context: BuildContext) -> Result<Self> {
        let (rows, running) = match &spec.running {
            None => {
                let [rows] = crate::operators::state_tables(context.state)?;
                (rows, None)
            }
            Some(functions) => {
                let [rows, checkpoints] = crate::operators::state_tables(context.state)?;
                (rows, Some(RunningWindow { runner: Runner::new(functions.clone())?, checkpoints }))
            }
        };
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
            running,
            query: over_rows(&spec.query, std::slice::from_ref(&shown))?,
            shown,
            session: spec.session.clone(),
            runtime,
            key: Arc::new(Schema::new(key)),
            schema: spec.schema.clone(),
            pending: Vec::new(),
            filling: context.filling,
            held_back: BTreeSet::new(),
        })
    }

    /// Takes the changes of a partition into state; gives the rows that they may reach.
    fn reached<'a>(&self, changed: &Changed<'a>) -> Result<Reached<'a>> {
        let (partition, key) = (changed.partition, changed.key);
        let changes: Vec<(&[u8], i64)> = changed.rows.iter().map(|change| (change.entry, change.weight)).collect();
        let before = match self.reach {
            Some(reach) => Neighbours { rows: &self.rows, ordered: &self.ordered }.of(changed, reach)?,
            None => first_counts(&self.rows, partition, key, usize::MAX)?,
        };
        let after = merge(&before, changes.iter().copied())?;
        apply(&self.rows, partition, &changes, false)?;
        Ok(Reached { key, before, after })
    }

    /// Takes the changes of a partition into state; gives the results of the rows behind the last checkpoint before the
    /// first change, with their signs. None, and nothing is taken, if a function fails over them.
    fn behind(&self, running: &RunningWindow, changed: &Changed<'_>) -> Result<Option<[Delta; 2]>> {
        let (partition, key) = (changed.partition, changed.key);
        let Some(first) = changed.rows.first() else { return Ok(None) };
        let checkpoint = running.checkpoints.last_entries_before(partition, key, first.peer, 1)?.pop();
        // The first key behind the checkpoint's.
        let from = checkpoint.as_ref().map_or_else(|| key.to_vec(), |(entry, _)| [entry.as_ref(), &[0]].concat());
        let progress = checkpoint.as_ref().map(|(_, progress)| progress.as_ref());
        let stored = self.rows.first_entries_from(partition, key, &from, usize::MAX)?;
        let before: Counted =
            stored.into_iter().map(|(row, count)| Ok((row, decode_count(&count)?))).collect::<Result<_>>()?;
        let changes: Vec<(&[u8], i64)> = changed.rows.iter().map(|change| (change.entry, change.weight)).collect();
        let after = merge(&before, changes.iter().copied())?;
        let (old, new) = (self.run_over(running, &before, progress)?, self.run_over(running, &after, progress)?);
        for (row, _) in running.checkpoints.first_entries_from(partition, key, &from, usize::MAX)? {
            running.checkpoints.delete(partition, &row);
        }
        let (Some((old, _)), Some((new, checkpoints))) = (old, new) else { return Ok(None) };
        for (row, progress) in checkpoints {
            running.checkpoints.put(partition, &row, progress);
        }
        apply(&self.rows, partition, &changes, false)?;
        Ok(Some([Delta::insert(new), Delta::delete(old)]))
    }

    /// Running functions over the rows behind a checkpoint.
    fn run_over(&self, running: &RunningWindow, rows: &Counted, checkpoint: Option<&[u8]>) -> Result<Run> {
        let copies: Vec<&Bytes> = rows
            .iter()
            .flat_map(|(row, count)| std::iter::repeat_n(row, usize::try_from(*count).unwrap_or(0)))
            .collect();
        let entries: Vec<&[u8]> = copies.iter().map(|row| row.as_ref()).collect();
        let (mut columns, peers) = self.ordered.decode_with_peers(&entries)?;
        let shown = batch_of(self.ordered.schema(), columns.clone(), entries.len())?;
        let mut checkpoints = Vec::new();
        let reached = |row: usize, progress: Vec<u8>| checkpoints.push((copies[row].clone(), progress));
        let Ok(results) = running.runner.run(&shown, &peers, checkpoint, reached)? else { return Ok(None) };
        columns.extend(results);
        Ok(Some((batch_of(&self.schema, columns, entries.len())?, checkpoints)))
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

    /// Takes what was absorbed, and emits what it changes.
    fn take_changes(&mut self, epoch: Epoch, output: &mut Output) -> Result<()> {
        let delta = consolidate_all(self.input.clone(), std::mem::take(&mut self.pending))?;
        if delta.is_empty() {
            return Ok(());
        }
        let encoded = self.ordered.encode(&delta)?;
        let changed = encoded.changed();
        if self.filling.goes_on_after(epoch) || !self.held_back.is_empty() {
            return self.hold_back(&changed);
        }
        let mut difference = Vec::new();
        let mut reached: Vec<Reached<'_>> = Vec::new();
        for changed in &changed {
            match self.running.as_ref().map(|running| self.behind(running, changed)).transpose()?.flatten() {
                Some(deltas) => difference.extend(deltas),
                None => reached.push(self.reached(changed)?),
            }
        }
        let before: Vec<&Counted> = reached.iter().map(|reached| &reached.before).collect();
        let after: Vec<&Counted> = reached.iter().map(|reached| &reached.after).collect();
        difference.extend(self.results(&reached, &after, 1, output)?);
        difference.extend(self.results(&reached, &before, -1, output)?);
        output.emit(consolidate_all(self.schema.clone(), difference)?);
        Ok(())
    }

    /// Takes changes into state, to be looked at when the fill is complete.
    fn hold_back(&mut self, changed: &[Changed<'_>]) -> Result<()> {
        for changed in changed {
            let changes: Vec<(&[u8], i64)> = changed.rows.iter().map(|change| (change.entry, change.weight)).collect();
            apply(&self.rows, changed.partition, &changes, false)?;
            self.held_back.insert((changed.partition, Bytes::copy_from_slice(changed.key)));
        }
        Ok(())
    }

    /// Emits the results of the partitions that were held back.
    fn emit_held_back(&mut self, output: &mut Output) -> Result<()> {
        let held_back = std::mem::take(&mut self.held_back);
        let mut reached: Vec<Reached<'_>> = Vec::new();
        let mut rows = 0;
        for (partition, key) in &held_back {
            let all = first_counts(&self.rows, *partition, key, usize::MAX)?;
            if let Some(running) = &self.running
                && let Some((results, checkpoints)) = self.run_over(running, &all, None)?
            {
                for (row, progress) in checkpoints {
                    running.checkpoints.put(*partition, &row, progress);
                }
                output.emit(Delta::insert(results));
                continue;
            }
            rows += all.len();
            reached.push(Reached { key: key.as_ref(), before: Vec::new(), after: all });
            if rows >= HELD_BACK_ROWS {
                self.emit_all(&std::mem::take(&mut reached), output)?;
                rows = 0;
            }
        }
        self.emit_all(&reached, output)
    }

    /// Emits the results of partitions of which nothing was emitted.
    fn emit_all(&self, reached: &[Reached<'_>], output: &mut Output) -> Result<()> {
        let after: Vec<&Counted> = reached.iter().map(|reached| &reached.after).collect();
        for results in self.results(reached, &after, 1, output)? {
            output.emit(results);
        }
        Ok(())
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

    fn waits_for_fill(&self) -> bool {
        true
    }

    fn close(&mut self, epoch: Epoch, output: &mut Output) -> Result<()> {
        self.take_changes(epoch, output)?;
        if self.filling.goes_on_after(epoch) { Ok(()) } else { self.emit_held_back(output) }
    }
}
