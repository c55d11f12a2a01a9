//! Functions that run with the rows: each row's result follows from that of the row before it and the row itself.
//!
//! `row_number`, `rank`, `dense_rank`, and count, sum, avg, min and max from the first row to the current one (or to its
//! peers). Rows before the first changed one keep their results. So that the others need not be computed from the first
//! row of the partition on, what has been accumulated is kept at every so many rows: a *checkpoint*, always behind the
//! last of some peers. The last one before the first changed row's peers is where the work begins; those behind it are
//! made anew.
//!
//! The accumulators are those that DataFusion's own execution of the window uses.
//!
//! State: table 1, an entry of the last row before a checkpoint → `rows before (u64) ++ peer groups before (u64) ++ states
//! of the accumulators`.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, UInt64Array};
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::logical_expr::expr::{WindowFunction, WindowFunctionDefinition};
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::{Accumulator, Window, WindowFrameBound, WindowFrameUnits};
use datafusion::physical_expr::aggregate::AggregateFunctionExpr;
use datafusion::physical_expr::window::PlainAggregateWindowExpr;
use datafusion::physical_planner::create_window_expr;
use plan::LowerContext;

use crate::delta::rows::{self, EncodedRows, OrderedCodec};
use crate::error::{Error, Result};
use crate::limits::WINDOW_CHECKPOINT_ROWS;

/// A function that runs with the rows.
#[derive(Debug, Clone)]
pub(super) enum Running {
    /// row_number
    Position,
    /// rank
    Rank,
    /// dense_rank
    DenseRank,
    /// An aggregate up to the current row, or up to its peers.
    Aggregate { aggregate: Arc<AggregateFunctionExpr>, up_to_row: bool },
}

/// The functions of a window, if all of them run with the rows.
pub(super) fn of(window: &Window, functions: &[&WindowFunction], context: &dyn LowerContext) -> Option<Vec<Running>> {
    let expressions = window.window_expr.iter().zip(functions);
    let running: Vec<Running> = expressions
        .map(|(expression, function)| {
            let params = &function.params;
            let plain = params.filter.is_none() && !params.distinct && params.null_treatment.is_none();
            if !plain || params.order_by.is_empty() {
                return None;
            }
            let name = match &function.fun {
                WindowFunctionDefinition::WindowUDF(udf) => match udf.name() {
                    "row_number" => return Some(Running::Position),
                    "rank" => return Some(Running::Rank),
                    "dense_rank" => return Some(Running::DenseRank),
                    _ => return None,
                },
                WindowFunctionDefinition::AggregateUDF(udf) => udf.name(),
            };
            let frame = &params.window_frame;
            let up_to_current = frame.start_bound.is_unbounded()
                && matches!(frame.start_bound, WindowFrameBound::Preceding(_))
                && matches!(frame.end_bound, WindowFrameBound::CurrentRow);
            if !up_to_current || !["count", "sum", "avg", "min", "max"].contains(&name) {
                return None;
            }
            let properties = context.session().execution_props();
            let planning = PhysicalPlanningContext::default();
            let physical = create_window_expr(expression, &window.schema, properties, &planning).ok()?;
            let aggregate = physical.as_any().downcast_ref::<PlainAggregateWindowExpr>()?.get_aggregate_expr().clone();
            let up_to_row = frame.units == WindowFrameUnits::Rows;
            Some(Running::Aggregate { aggregate: Arc::new(aggregate), up_to_row })
        })
        .collect::<Option<_>>()?;
    rows::supports(&state_types(&running).ok()?).then_some(running)
}

fn state_types(functions: &[Running]) -> DataFusionResult<Vec<DataType>> {
    let fields: Vec<Vec<FieldRef>> =
        aggregates(functions).map(|(aggregate, _)| aggregate.state_fields()).collect::<DataFusionResult<_>>()?;
    Ok(fields.into_iter().flatten().map(|field| field.data_type().clone()).collect())
}

fn aggregates(functions: &[Running]) -> impl Iterator<Item = (&AggregateFunctionExpr, bool)> {
    functions.iter().filter_map(|function| match function {
        Running::Aggregate { aggregate, up_to_row } => Some((aggregate.as_ref(), *up_to_row)),
        _ => None,
    })
}

/// Computes running functions.
#[derive(Debug)]
pub(super) struct Runner {
    functions: Vec<Running>,
    states: OrderedCodec,
}

/// What stands before a row: how many rows and peer groups, and the accumulators.
struct Progress {
    rows: u64,
    groups: u64,
    accumulators: Vec<Box<dyn Accumulator>>,
}

impl Runner {
    pub(super) fn new(functions: Vec<Running>) -> Result<Self> {
        let plain = SortOptions { descending: false, nulls_first: true };
        let types: Vec<_> = state_types(&functions)?.into_iter().map(|data_type| (data_type, plain)).collect();
        Ok(Runner { functions, states: OrderedCodec::new(&types)? })
    }

    fn accumulators(&self) -> DataFusionResult<Vec<Box<dyn Accumulator>>> {
        aggregates(&self.functions).map(|(aggregate, _)| aggregate.create_accumulator()).collect()
    }

    /// The progress at a checkpoint; none is the beginning of a partition.
    fn progress(&self, checkpoint: Option<&[u8]>) -> Result<Progress> {
        let mut progress = Progress { rows: 0, groups: 0, accumulators: self.accumulators()? };
        let Some(bytes) = checkpoint else { return Ok(progress) };
        let damaged = || Error::Corrupted("a checkpoint of a window".to_owned());
        let (rows, rest) = bytes.split_first_chunk::<8>().ok_or_else(damaged)?;
        let (groups, states) = rest.split_first_chunk::<8>().ok_or_else(damaged)?;
        (progress.rows, progress.groups) = (u64::from_be_bytes(*rows), u64::from_be_bytes(*groups));
        let mut columns = self.states.decode([states])?.into_iter();
        for ((aggregate, _), accumulator) in aggregates(&self.functions).zip(&mut progress.accumulators) {
            let fields = aggregate.state_fields()?;
            let state: Vec<ArrayRef> = columns.by_ref().take(fields.len()).collect();
            accumulator.merge_batch(&state)?;
        }
        Ok(progress)
    }

    /// Writes a checkpoint. The accumulators give their state away and take it back.
    fn checkpoint(&self, progress: &mut Progress) -> Result<Vec<u8>> {
        let mut columns: Vec<ArrayRef> = Vec::new();
        let mut fresh = self.accumulators()?;
        for (accumulator, fresh) in progress.accumulators.iter_mut().zip(&mut fresh) {
            let state = accumulator.state()?.iter().map(ScalarValue::to_array).collect::<DataFusionResult<Vec<_>>>()?;
            fresh.merge_batch(&state)?;
            columns.extend(state);
        }
        progress.accumulators = fresh;
        let mut bytes = progress.rows.to_be_bytes().to_vec();
        bytes.extend_from_slice(&progress.groups.to_be_bytes());
        bytes.extend_from_slice(self.states.encode(&columns, 1)?.row(0));
        Ok(bytes)
    }

    /// The results over rows (with their peers' keys) that come behind a checkpoint. Tells of each new checkpoint behind
    /// which row it is. The inner error is a function's own.
    pub(super) fn run(
        &self,
        rows: &RecordBatch,
        peers: &EncodedRows,
        checkpoint: Option<&[u8]>,
        mut reached: impl FnMut(usize, Vec<u8>),
    ) -> Result<std::result::Result<Vec<ArrayRef>, DataFusionError>> {
        let mut progress = self.progress(checkpoint)?;
        let arguments = match self.arguments(rows) {
            Ok(arguments) => arguments,
            Err(error) => return Ok(Err(error)),
        };
        let mut results = Results::new(&self.functions);
        let (mut start, mut since) = (0, 0);
        while start < rows.num_rows() {
            let mut end = start + 1;
            while end < rows.num_rows() && peers.row(end) == peers.row(start) {
                end += 1;
            }
            if let Err(error) = self.peers(&mut progress, &arguments, start..end, &mut results) {
                return Ok(Err(error));
            }
            since += end - start;
            start = end;
            if since >= WINDOW_CHECKPOINT_ROWS {
                since = 0;
                reached(end - 1, self.checkpoint(&mut progress)?);
            }
        }
        Ok(results.finish(&self.functions))
    }

    fn arguments(&self, rows: &RecordBatch) -> DataFusionResult<Vec<Vec<ArrayRef>>> {
        let of_one = |(aggregate, _): (&AggregateFunctionExpr, bool)| {
            let arguments = aggregate.expressions();
            arguments
                .iter()
                .map(|argument| argument.evaluate(rows)?.into_array(rows.num_rows()))
                .collect::<DataFusionResult<Vec<ArrayRef>>>()
        };
        aggregates(&self.functions).map(of_one).collect()
    }

    /// Takes the rows of a peer group.
    fn peers(
        &self,
        progress: &mut Progress,
        arguments: &[Vec<ArrayRef>],
        group: std::ops::Range<usize>,
        results: &mut Results,
    ) -> DataFusionResult<()> {
        let count = group.len();
        for function in results.numbers.iter_mut() {
            match function {
                (Running::Position, numbers) => numbers.extend((1..=count as u64).map(|row| progress.rows + row)),
                (Running::Rank, numbers) => numbers.extend(std::iter::repeat_n(progress.rows + 1, count)),
                (_, numbers) => numbers.extend(std::iter::repeat_n(progress.groups + 1, count)),
            }
        }
        let accumulators = progress.accumulators.iter_mut().zip(arguments).zip(aggregates(&self.functions));
        for (((accumulator, arguments), (_, up_to_row)), values) in accumulators.zip(&mut results.values) {
            let mut take = |start: usize, length: usize| {
                let rows: Vec<ArrayRef> = arguments.iter().map(|argument| argument.slice(start, length)).collect();
                accumulator.update_batch(&rows)?;
                accumulator.evaluate()
            };
            if up_to_row {
                for row in group.clone() {
                    values.push(take(row, 1)?);
                }
            } else {
                let value = take(group.start, count)?;
                values.extend(std::iter::repeat_n(value, count));
            }
        }
        progress.rows += count as u64;
        progress.groups += 1;
        Ok(())
    }
}

/// Results, by function.
struct Results {
    numbers: Vec<(Running, Vec<u64>)>,
    values: Vec<Vec<ScalarValue>>,
}

impl Results {
    fn new(functions: &[Running]) -> Self {
        let numbers = functions.iter().filter(|function| !matches!(function, Running::Aggregate { .. }));
        Results {
            numbers: numbers.map(|function| (function.clone(), Vec::new())).collect(),
            values: aggregates(functions).map(|_| Vec::new()).collect(),
        }
    }

    /// The columns, in the order of the functions.
    fn finish(self, functions: &[Running]) -> DataFusionResult<Vec<ArrayRef>> {
        let (mut numbers, mut values) = (self.numbers.into_iter(), self.values.into_iter());
        let column =
            |function: &Running| match function {
                Running::Aggregate { aggregate, .. } => match values.next() {
                    Some(values) if !values.is_empty() => ScalarValue::iter_to_array(values),
                    _ => Ok(datafusion::arrow::array::new_empty_array(aggregate.field().data_type())),
                },
                _ => Ok(Arc::new(UInt64Array::from(numbers.next().map_or_else(Vec::new, |(_, numbers)| numbers)))
                    as ArrayRef),
            };
        functions.iter().map(column).collect()
    }
}
