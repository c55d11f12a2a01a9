//! `session_start` and `session_end`: the session of a row among the rows of its partition.
//!
//! Every row is active from its time until a gap later. A session is a longest stretch of time in which rows of the
//! partition are active one after the other without a pause: two rows whose distance is less than the gap share one, at
//! exactly the gap a new one begins. It starts at its first row's time, and ends the gap after its last row.
//!
//! So the sessions are those of the times that are there, whatever the order in which they came: a row between two
//! sessions bridges them, and they part again when it goes.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, PrimitiveArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl};
use plan::expressions::{SESSION_END, SESSION_START};
use plan::{PlanError, SqlState};

use super::aggregate::no_such_function;
use super::scalar::windows::after;
use super::{Example, FunctionDef, Implementation};

/// `session_start`.
pub static START: FunctionDef = FunctionDef {
    name: SESSION_START,
    forms: &[
        "session_start(time timestamp, gap interval) OVER ([PARTITION BY ...] [ORDER BY ...]) → timestamp",
        "session_start(time timestamptz, gap interval) OVER ([PARTITION BY ...] [ORDER BY ...]) → timestamptz",
    ],
    text: "The start of the row's session: rows of its partition whose distance is less than the gap share one. Neither the \
           order nor a frame changes it; in a view, an order by the time lets a change touch the sessions around it only. \
           NULL if the time or the gap is NULL. `SESSION` in FROM and in GROUP BY is made of it.",
    examples: &[Example {
        query: "SELECT session_start(timestamp '2024-01-01 10:07:00', interval '5 minutes') OVER ()",
        result: "2024-01-01 10:07:00",
    }],
    implementation: Implementation::Window(start),
};

/// `session_end`.
pub static END: FunctionDef = FunctionDef {
    name: SESSION_END,
    forms: &[
        "session_end(time timestamp, gap interval) OVER ([PARTITION BY ...] [ORDER BY ...]) → timestamp",
        "session_end(time timestamptz, gap interval) OVER ([PARTITION BY ...] [ORDER BY ...]) → timestamptz",
    ],
    text: "The end of the session that `session_start` gives the start of: the gap after its last row. The end is not part of \
           the session.",
    examples: &[Example {
        query: "SELECT session_end(timestamp '2024-01-01 10:07:00', interval '5 minutes') OVER ()",
        result: "2024-01-01 10:12:00",
    }],
    implementation: Implementation::Window(end),
};

fn start() -> WindowUDF {
    SessionFunction::of(Side::Start)
}

fn end() -> WindowUDF {
    SessionFunction::of(Side::End)
}

/// Which bound of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Side {
    Start,
    End,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct SessionFunction {
    side: Side,
    signature: Signature,
}

impl SessionFunction {
    fn of(side: Side) -> WindowUDF {
        WindowUDF::from(SessionFunction { side, signature: Signature::user_defined(Volatility::Immutable) })
    }

    /// The types to which arguments are converted; none if there is no such function.
    fn accepted_types(arguments: &[DataType]) -> Option<[DataType; 2]> {
        let [time, gap] = arguments else { return None };
        let time = match time {
            DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
            DataType::Date32 | DataType::Date64 | DataType::Null => DataType::Timestamp(TimeUnit::Microsecond, None),
            _ => return None,
        };
        let is_gap = matches!(
            gap,
            DataType::Interval(_) | DataType::Null | DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8
        );
        is_gap.then_some([time, DataType::Interval(IntervalUnit::MonthDayNano)])
    }
}

impl WindowUDFImpl for SessionFunction {
    fn name(&self) -> &str {
        match self.side {
            Side::Start => SESSION_START,
            Side::End => SESSION_END,
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        // Where they do not fit, `field` says so; an error from here would be buried in DataFusion's words.
        Ok(SessionFunction::accepted_types(arguments).map_or_else(|| arguments.to_vec(), Vec::from))
    }

    fn partition_evaluator(&self, _args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(SessionEvaluator { side: self.side }))
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.input_fields().iter().map(|field| field.data_type().clone()).collect();
        let [time, _] = SessionFunction::accepted_types(&types).ok_or_else(|| no_such_function(self.name(), &types))?;
        Ok(Arc::new(Field::new(args.name(), time, true)))
    }
}

/// Of one partition.
#[derive(Debug)]
struct SessionEvaluator {
    side: Side,
}

impl PartitionEvaluator for SessionEvaluator {
    fn evaluate_all(&mut self, columns: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let missing = || DataFusionError::Internal("a session without its arguments".to_owned());
        let [times, gaps] = columns else { return Err(missing()) };
        let zone = times.data_type().clone();
        let times = times.as_primitive_opt::<TimestampMicrosecondType>().ok_or_else(missing)?;
        let gaps = gaps.as_primitive_opt::<IntervalMonthDayNanoType>().ok_or_else(missing)?;
        let nulls = NullBuffer::union(times.nulls(), gaps.nulls());
        let mut ordered: Vec<usize> = (0..rows).filter(|row| nulls.as_ref().is_none_or(|n| n.is_valid(*row))).collect();
        if !ordered.is_sorted_by_key(|row| times.value(*row)) {
            ordered.sort_unstable_by_key(|row| times.value(*row));
        }
        let mut bounds = vec![0; rows];
        for_each_session(&ordered, times, gaps, |members, start, end| {
            for row in members {
                bounds[*row] = if self.side == Side::Start { start } else { end };
            }
        })?;
        Ok(Arc::new(PrimitiveArray::<TimestampMicrosecondType>::new(bounds.into(), nulls).with_data_type(zone)))
    }
}

/// Calls with the rows of each session, in the order of time, its start and its end.
fn for_each_session(
    ordered: &[usize],
    times: &PrimitiveArray<TimestampMicrosecondType>,
    gaps: &PrimitiveArray<IntervalMonthDayNanoType>,
    mut call: impl FnMut(&[usize], i64, i64),
) -> Result<()> {
    let (mut first, mut end) = (0, i64::MIN);
    for (place, row) in ordered.iter().enumerate() {
        let (time, gap) = (times.value(*row), gaps.value(*row));
        if place > 0 && time >= end {
            call(&ordered[first..place], times.value(ordered[first]), end);
            (first, end) = (place, i64::MIN);
        }
        end = end.max(active_until(time, gap)?);
    }
    if let Some(row) = ordered.get(first) {
        call(&ordered[first..], times.value(*row), end);
    }
    Ok(())
}

/// The instant from which on a row no longer keeps its session open; the last one there is if that is behind it.
///
/// # Errors
///
/// A gap that is not positive.
fn active_until(time: i64, gap: IntervalMonthDayNano) -> Result<i64> {
    let until = after(time, gap).unwrap_or(i64::MAX);
    if until <= time && until < i64::MAX {
        let error = PlanError::new(SqlState::INVALID_PARAMETER_VALUE, "session gap must be greater than zero");
        return Err(DataFusionError::External(Box::new(error)));
    }
    Ok(until)
}

/// A gap that is positive whatever the time before it, so that no session fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap(IntervalMonthDayNano);

impl Gap {
    /// The gap that an interval is, if it is one.
    pub fn of(interval: IntervalMonthDayNano) -> Option<Gap> {
        let IntervalMonthDayNano { months, days, nanoseconds } = interval;
        // A thousandth of a microsecond is none.
        let micros = nanoseconds / 1_000;
        let positive = months >= 0 && days >= 0 && micros >= 0 && (months > 0 || days > 0 || micros > 0);
        positive.then_some(Gap(interval))
    }

    /// Whether rows of these times, in microseconds and one after the other, share a session.
    pub fn bridges(self, earlier: i64, later: i64) -> bool {
        active_until(earlier, self.0).is_ok_and(|until| later < until)
    }
}
