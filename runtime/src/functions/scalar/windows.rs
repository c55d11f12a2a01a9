//! Windows over event time: which windows hold a time.
//!
//! Windows start at `origin + offset + k * slide` for every integer `k`, where the origin is 1970-01-01 00:00 on the
//! time line of the argument (UTC for timestamptz), and end `size` after their start, exclusive. A tumbling window has
//! slide = size. Division is floored, so that times before the origin are treated like those after it. Slides and
//! sizes in months are calendar months.
//!
//! A cumulative window grows: of a tumbling window it has the part up to each multiple of its step, and the whole.

use std::fmt::Debug;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, PrimitiveArray, TimestampMicrosecondArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{
    DataType, Field, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};
use plan::{PlanError, SqlState};

use crate::functions::aggregate::no_such_function;

const DAY_MICROS: i64 = 86_400_000_000;

/// Longer windows (some 70,000 years) do not fit the time line; sums of two steps do not overflow below it.
const STEP_MICROS_MAX: i64 = i64::MAX / 4;

/// A row is copied once for each window that holds it; more than this is taken for a mistake.
const WINDOWS_PER_ROW_MAX: i64 = 100_000;

/// What a window function gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WindowKind {
    /// Start of the one window.
    TumbleStart,
    /// End of the one window.
    TumbleEnd,
    /// Starts of all windows.
    HopStarts,
    /// Ends of the windows that grow by a step up to a size; their start is that of the tumbling window.
    CumulateEnds,
}

/// A window function for DataFusion.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct WindowFunction {
    name: &'static str,
    kind: WindowKind,
    signature: Signature,
}

impl WindowFunction {
    /// The function of that name.
    pub fn new(name: &'static str, kind: WindowKind) -> Self {
        WindowFunction { name, kind, signature: Signature::user_defined(Volatility::Immutable) }
    }

    /// How many intervals come after the time, without the offset.
    fn durations(&self) -> usize {
        match self.kind {
            WindowKind::TumbleStart | WindowKind::TumbleEnd => 1,
            WindowKind::HopStarts | WindowKind::CumulateEnds => 2,
        }
    }

    /// What the first and second interval are called in errors.
    fn interval_names(&self) -> [&'static str; 2] {
        match self.kind {
            WindowKind::TumbleStart | WindowKind::TumbleEnd => ["window size"; 2],
            WindowKind::HopStarts => ["window slide", "window size"],
            WindowKind::CumulateEnds => ["window step", "window size"],
        }
    }

    /// The types to which arguments are converted; none if there is no such function.
    fn accepted_types(&self, arguments: &[DataType]) -> Option<Vec<DataType>> {
        let durations = self.durations();
        if arguments.len() != 1 + durations && arguments.len() != 2 + durations {
            return None;
        }
        let time = match &arguments[0] {
            DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
            DataType::Date32 | DataType::Date64 | DataType::Null => DataType::Timestamp(TimeUnit::Microsecond, None),
            _ => return None,
        };
        let interval = |argument: &DataType| match argument {
            DataType::Interval(_) | DataType::Null | DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => {
                Some(DataType::Interval(IntervalUnit::MonthDayNano))
            }
            _ => None,
        };
        std::iter::once(Some(time)).chain(arguments[1..].iter().map(interval)).collect()
    }

    /// The type of the result for times of a type.
    fn type_for(&self, time: DataType) -> DataType {
        match self.kind {
            WindowKind::TumbleStart | WindowKind::TumbleEnd => time,
            WindowKind::HopStarts | WindowKind::CumulateEnds => {
                DataType::List(Arc::new(Field::new_list_field(time, true)))
            }
        }
    }
}

impl ScalarUDFImpl for WindowFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        // Where they do not fit, `return_type` says so; an error from here would be buried in DataFusion's words.
        Ok(self.accepted_types(arguments).unwrap_or_else(|| arguments.to_vec()))
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let accepted = self.accepted_types(arguments).ok_or_else(|| no_such_function(self.name, arguments))?;
        let time = accepted.into_iter().next().ok_or_else(|| no_such_function(self.name, arguments))?;
        Ok(self.type_for(time))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        // One row is enough when every argument is a constant.
        let constant = args.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let time_type = self.type_for(args.args[0].data_type());
        let times = args.args[0].to_array(rows)?;
        let intervals = &args.args[1..];
        let array = match intervals.iter().map(scalar_interval).collect::<Option<Vec<_>>>() {
            Some(intervals) => {
                let intervals: Option<Vec<IntervalMonthDayNano>> = intervals.into_iter().collect();
                self.evaluate(&times, intervals, &time_type)?
            }
            None => self.evaluate_rows(&times, intervals, &time_type)?,
        };
        if constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }
}

impl WindowFunction {
    /// With the same intervals for all rows; `None` if one of them is NULL.
    fn evaluate(
        &self,
        times: &ArrayRef,
        intervals: Option<Vec<IntervalMonthDayNano>>,
        data_type: &DataType,
    ) -> Result<ArrayRef> {
        let times = times.as_primitive::<TimestampMicrosecondType>();
        let Some(intervals) = intervals else {
            return Ok(match self.kind {
                WindowKind::TumbleStart | WindowKind::TumbleEnd => {
                    datafusion::arrow::array::new_null_array(data_type, times.len())
                }
                WindowKind::HopStarts | WindowKind::CumulateEnds => empty_lists(data_type, times.len())?,
            });
        };
        let durations = self.durations();
        let [first, second] = self.interval_names();
        let step = Step::new(intervals[0], first)?;
        let size = if durations == 2 { Step::new(intervals[1], second)? } else { step };
        let offset = intervals.get(durations).copied().unwrap_or(IntervalMonthDayNano::ZERO);
        let slide = if self.kind == WindowKind::CumulateEnds { size } else { step };
        let windows = Windows::new(slide, size, offset)?;
        match self.kind {
            WindowKind::TumbleStart => {
                Ok(tumble(&windows, times, |window| window.0)?.with_data_type(data_type.clone()).into_array())
            }
            WindowKind::TumbleEnd => {
                Ok(tumble(&windows, times, |window| window.1)?.with_data_type(data_type.clone()).into_array())
            }
            WindowKind::HopStarts => lists(times, data_type, |time, starts| windows.starts(time, starts)),
            WindowKind::CumulateEnds => lists(times, data_type, |time, ends| windows.ends_behind(time, step, ends)),
        }
    }

    /// With intervals that vary from row to row.
    fn evaluate_rows(&self, times: &ArrayRef, intervals: &[ColumnarValue], data_type: &DataType) -> Result<ArrayRef> {
        let rows = times.len();
        let intervals = intervals.iter().map(|interval| interval.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let mut parts: Vec<ArrayRef> = Vec::with_capacity(rows);
        for row in 0..rows {
            let values = intervals
                .iter()
                .map(|column| {
                    let column = column.as_primitive::<IntervalMonthDayNanoType>();
                    column.is_valid(row).then(|| column.value(row))
                })
                .collect();
            parts.push(self.evaluate(&times.slice(row, 1), values, data_type)?);
        }
        if parts.is_empty() {
            return Ok(datafusion::arrow::array::new_empty_array(data_type));
        }
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        Ok(datafusion::arrow::compute::concat(&parts)?)
    }
}

/// A constant interval: `None` if it is a column, `Some(None)` if it is NULL.
fn scalar_interval(value: &ColumnarValue) -> Option<Option<IntervalMonthDayNano>> {
    match value {
        ColumnarValue::Scalar(ScalarValue::IntervalMonthDayNano(interval)) => Some(*interval),
        ColumnarValue::Scalar(_) => Some(None),
        ColumnarValue::Array(_) => None,
    }
}

fn empty_lists(data_type: &DataType, rows: usize) -> Result<ArrayRef> {
    let DataType::List(field) = data_type else {
        return Err(DataFusionError::Internal(format!("{data_type} is not a list")));
    };
    let values = datafusion::arrow::array::new_empty_array(field.data_type());
    Ok(Arc::new(ListArray::new(field.clone(), OffsetBuffer::new_zeroed(rows), values, None)))
}

/// A column of starts or ends.
struct Column(TimestampMicrosecondArray);

impl Column {
    fn with_data_type(self, data_type: DataType) -> Self {
        Column(self.0.with_data_type(data_type))
    }

    fn into_array(self) -> ArrayRef {
        Arc::new(self.0)
    }
}

fn tumble(windows: &Windows, times: &TimestampMicrosecondArray, side: impl Fn((i64, i64)) -> i64) -> Result<Column> {
    // Neighbouring rows are mostly in the same window: it is computed again only when a row leaves it.
    let mut window = (0, 0);
    let mut values = Vec::with_capacity(times.len());
    for (row, time) in times.values().iter().enumerate() {
        if (*time < window.0 || *time >= window.1) && times.is_valid(row) {
            let start = windows.last_start(*time)?;
            window = (start, windows.end(start)?);
        }
        values.push(side(window));
    }
    Ok(Column(PrimitiveArray::new(values.into(), times.nulls().cloned())))
}

/// The list of instants that `append` appends for each time.
fn lists(
    times: &TimestampMicrosecondArray,
    data_type: &DataType,
    append: impl Fn(i64, &mut Vec<i64>) -> Result<()>,
) -> Result<ArrayRef> {
    let DataType::List(field) = data_type else {
        return Err(DataFusionError::Internal(format!("{data_type} is not a list")));
    };
    let mut values: Vec<i64> = Vec::with_capacity(times.len() * 2);
    let mut offsets: Vec<i32> = Vec::with_capacity(times.len() + 1);
    offsets.push(0);
    for row in 0..times.len() {
        if times.is_valid(row) {
            append(times.value(row), &mut values)?;
        }
        let offset = i32::try_from(values.len()).map_err(|_| {
            error(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "too many windows in one batch of rows: use a longer slide or step".into(),
            )
        })?;
        offsets.push(offset);
    }
    let values = TimestampMicrosecondArray::from(values).with_data_type(field.data_type().clone());
    Ok(Arc::new(ListArray::new(field.clone(), OffsetBuffer::new(offsets.into()), Arc::new(values), None)))
}

/// A slide or a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Micros(i64),
    Months(i64),
}

impl Step {
    fn new(interval: IntervalMonthDayNano, what: &str) -> Result<Self> {
        let micros = fixed_micros(interval)?;
        if interval.months != 0 && micros != 0 {
            return Err(error(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("{what} mixes months with days or time, which is not supported yet"),
            ));
        }
        if interval.months < 0 || micros < 0 || (interval.months == 0 && micros == 0) {
            return Err(error(SqlState::INVALID_PARAMETER_VALUE, format!("{what} must be greater than zero")));
        }
        if micros > STEP_MICROS_MAX {
            return Err(out_of_range());
        }
        Ok(if interval.months == 0 { Step::Micros(micros) } else { Step::Months(i64::from(interval.months)) })
    }
}

/// A time and an interval after it, as PostgreSQL adds them.
pub(in crate::functions) fn after(time: i64, interval: IntervalMonthDayNano) -> Result<i64> {
    add_months(time, i64::from(interval.months))
        .and_then(|time| time.checked_add(fixed_micros(interval).ok()?))
        .ok_or_else(out_of_range)
}

/// Days and time of an interval; a day has 24 hours on the time line of windows.
fn fixed_micros(interval: IntervalMonthDayNano) -> Result<i64> {
    i64::from(interval.days)
        .checked_mul(DAY_MICROS)
        .and_then(|days| days.checked_add(interval.nanoseconds.div_euclid(1_000)))
        .ok_or_else(|| error(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range".into()))
}

/// The windows of one slide, size and offset.
#[derive(Debug, Clone, Copy)]
struct Windows {
    slide: Step,
    size: Step,
    offset_months: i64,
    offset_micros: i64,
}

impl Windows {
    fn new(slide: Step, size: Step, offset: IntervalMonthDayNano) -> Result<Self> {
        let mut offset_micros = fixed_micros(offset)?;
        match slide {
            Step::Micros(_) if offset.months != 0 => {
                return Err(error(
                    SqlState::INVALID_PARAMETER_VALUE,
                    "window offset must not contain months unless the windows are counted in months".into(),
                ));
            }
            // An offset of a whole number of windows is none.
            Step::Micros(slide) => offset_micros = offset_micros.rem_euclid(slide),
            Step::Months(_) => {}
        }
        Ok(Windows { slide, size, offset_months: i64::from(offset.months), offset_micros })
    }

    /// The latest start at or before a time.
    fn last_start(&self, time: i64) -> Result<i64> {
        match self.slide {
            Step::Micros(slide) => {
                let mut since = time.rem_euclid(slide) - self.offset_micros;
                if since < 0 {
                    since += slide;
                }
                time.checked_sub(since)
            }
            Step::Months(slide) => time.checked_sub(self.offset_micros).and_then(|shifted| {
                let month = month_of(shifted.div_euclid(DAY_MICROS));
                let first = month - (month - self.offset_months).rem_euclid(slide);
                month_start(first)?.checked_add(self.offset_micros)
            }),
        }
        .ok_or_else(out_of_range)
    }

    /// The start before a start.
    fn previous_start(&self, start: i64) -> Result<i64> {
        match self.slide {
            Step::Micros(slide) => start.checked_sub(slide).ok_or_else(out_of_range),
            Step::Months(_) => self.last_start(start.checked_sub(1).ok_or_else(out_of_range)?),
        }
    }

    /// The end of the window with that start.
    fn end(&self, start: i64) -> Result<i64> {
        match self.size {
            Step::Micros(size) => start.checked_add(size),
            Step::Months(size) => add_months(start, size),
        }
        .ok_or_else(out_of_range)
    }

    /// Appends the starts of all windows that hold a time, in ascending order.
    fn starts(&self, time: i64, starts: &mut Vec<i64>) -> Result<()> {
        let first = starts.len();
        let mut start = self.last_start(time)?;
        if let (Step::Micros(slide), Step::Micros(size)) = (self.slide, self.size) {
            // Windows that start within `size` before the time.
            let count = (size - (time - start) + slide - 1).div_euclid(slide).max(0);
            check_window_count(count)?;
            if count > 0 {
                let first_start = start.checked_sub(slide * (count - 1)).ok_or_else(out_of_range)?;
                starts.extend((0..count).map(|number| first_start + slide * number));
            }
            return Ok(());
        }
        while self.end(start)? > time {
            starts.push(start);
            check_window_count((starts.len() - first) as i64)?;
            start = self.previous_start(start)?;
        }
        starts[first..].reverse();
        Ok(())
    }

    /// Appends the ends after a time of what the window that holds it is after each step, in ascending order. The last one
    /// is the window's own, even where that is no whole number of steps from its start.
    fn ends_behind(&self, time: i64, step: Step, ends: &mut Vec<i64>) -> Result<()> {
        let first = ends.len();
        let start = self.last_start(time)?;
        let last = self.end(start)?;
        let mut steps = match step {
            Step::Micros(step) => (time - start) / step,
            Step::Months(_) => 0,
        };
        loop {
            steps += 1;
            let end = match step {
                Step::Micros(step) => step.checked_mul(steps).and_then(|length| start.checked_add(length)),
                Step::Months(step) => add_months(start, step * steps),
            };
            let end = end.map_or(last, |end| end.min(last));
            if end > time {
                ends.push(end);
                check_window_count((ends.len() - first) as i64)?;
            }
            if end >= last {
                return Ok(());
            }
        }
    }
}

fn check_window_count(count: i64) -> Result<()> {
    if count > WINDOWS_PER_ROW_MAX {
        return Err(error(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("a row would be in {count} windows, but at most {WINDOWS_PER_ROW_MAX} are allowed"),
        ));
    }
    Ok(())
}

/// Months since 1970-01 of a day since 1970-01-01.
fn month_of(day: i64) -> i64 {
    let (year, month, _) = civil_of(day);
    (year - 1970) * 12 + month - 1
}

/// The first microsecond of a month counted from 1970-01.
fn month_start(month: i64) -> Option<i64> {
    day_of(1970 + month.div_euclid(12), month.rem_euclid(12) + 1, 1).checked_mul(DAY_MICROS)
}

/// As PostgreSQL adds months: the day of the month is cut to the length of the month.
fn add_months(time: i64, months: i64) -> Option<i64> {
    let (day, in_day) = (time.div_euclid(DAY_MICROS), time.rem_euclid(DAY_MICROS));
    let (_, _, day_of_month) = civil_of(day);
    let month = month_of(day).checked_add(months)?;
    let (year, month_of_year) = (1970 + month.div_euclid(12), month.rem_euclid(12) + 1);
    let length = day_of(year + month_of_year / 12, month_of_year % 12 + 1, 1) - day_of(year, month_of_year, 1);
    day_of(year, month_of_year, day_of_month.min(length)).checked_mul(DAY_MICROS)?.checked_add(in_day)
}

/// Year, month (from 1) and day (from 1) of a day since 1970-01-01 in the Gregorian calendar. Years are counted from
/// March, so that the leap day is the last of a year; 400 years have 146,097 days.
fn civil_of(day: i64) -> (i64, i64, i64) {
    let from_march_0 = day + 719_468;
    let era = from_march_0.div_euclid(146_097);
    let day_of_era = from_march_0.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_month)
}

/// The day since 1970-01-01 of a date: the inverse of [`civil_of`].
fn day_of(year: i64, month: i64, day_of_month: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month_from_march = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * month_from_march + 2) / 5 + day_of_month - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn out_of_range() -> DataFusionError {
    error(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range".into())
}

pub(in crate::functions) fn error(sqlstate: SqlState, message: String) -> DataFusionError {
    DataFusionError::External(Box::new(PlanError::new(sqlstate, message)))
}
