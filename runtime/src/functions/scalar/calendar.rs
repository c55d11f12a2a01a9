//! Functions over dates, times and intervals: age, justify_days, justify_hours, justify_interval, isfinite, overlaps, and
//! the fields that DataFusion's date_part lacks or rounds.

use std::sync::Arc;

use chrono::{DateTime, Datelike, NaiveDateTime, Timelike};
use datafusion::arrow::array::{
    ArrayRef, AsArray, BooleanArray, Decimal128Array, Float64Array, IntervalMonthDayNanoArray,
    TimestampMicrosecondArray,
};
use datafusion::arrow::compute::{cast, kernels::numeric::add};
use datafusion::arrow::datatypes::{
    DataType, Date32Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, Time64MicrosecondType,
    TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use plan::SqlState;

use super::overload::{Form, Overloaded, each, error, is_text};
use crate::functions::{Example, FunctionDef, Implementation};

const MICROS_OF_DAY: i64 = 86_400_000_000;
const NANOS_OF_DAY: i64 = MICROS_OF_DAY * 1_000;
const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);
const TIMESTAMP: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// `age`
pub static AGE: FunctionDef = FunctionDef {
    name: "age",
    forms: &["age(later timestamp, earlier timestamp) → interval", "age(earlier timestamp) → interval"],
    text: "The difference in years, months, days and time. With one argument, that to the beginning of today.",
    examples: &[
        Example {
            query: "SELECT age(timestamp '2001-04-10', timestamp '1957-06-13')",
            result: "43 years 9 mons 27 days",
        },
        Example {
            query: "SELECT age(timestamp '2024-03-01', timestamp '2023-12-15 10:00:00')",
            result: "2 mons 16 days 14:00:00",
        },
    ],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf("age", &[], choose_age, |arguments, _| {
            let (later, earlier) = (instants(&arguments[0])?, instants(&arguments[1])?);
            let ages = each(arguments, |row| age(moment(later.value(row))?, moment(earlier.value(row))?).map(Some))?;
            Ok(Arc::new(IntervalMonthDayNanoArray::from(ages)))
        })
    }),
};

/// `justify_days`
pub static JUSTIFY_DAYS: FunctionDef = FunctionDef {
    name: "justify_days",
    forms: &["justify_days(interval) → interval"],
    text: "The interval with every 30 days as a month.",
    examples: &[Example { query: "SELECT justify_days(interval '65 days')", result: "2 mons 5 days" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf("justify_days", &[], choose_interval, |a, _| intervals(a, days))
    }),
};

/// `justify_hours`
pub static JUSTIFY_HOURS: FunctionDef = FunctionDef {
    name: "justify_hours",
    forms: &["justify_hours(interval) → interval"],
    text: "The interval with every 24 hours as a day.",
    examples: &[Example { query: "SELECT justify_hours(interval '50 hours')", result: "2 days 02:00:00" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf("justify_hours", &[], choose_interval, |a, _| intervals(a, hours))
    }),
};

/// `justify_interval`
pub static JUSTIFY_INTERVAL: FunctionDef = FunctionDef {
    name: "justify_interval",
    forms: &["justify_interval(interval) → interval"],
    text: "The interval with days as months and hours as days, and one sign for all parts.",
    examples: &[Example { query: "SELECT justify_interval(interval '1 month -1 hour')", result: "29 days 23:00:00" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf("justify_interval", &[], choose_interval, |a, _| intervals(a, both))
    }),
};

/// `isfinite`
pub static IS_FINITE: FunctionDef = FunctionDef {
    name: "isfinite",
    forms: &["isfinite(date) → boolean", "isfinite(timestamp) → boolean", "isfinite(interval) → boolean"],
    text: "Whether the value is not infinite, which none is here.",
    examples: &[Example { query: "SELECT isfinite(timestamp '2024-01-01')", result: "t" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf("isfinite", &[], choose_finite, |arguments, _| {
            Ok(Arc::new(BooleanArray::from(each(arguments, |_| Ok(Some(true)))?)))
        })
    }),
};

/// `overlaps`
pub static OVERLAPS: FunctionDef = FunctionDef {
    name: "overlaps",
    forms: &["overlaps(start timestamp, end timestamp, start timestamp, end timestamp) → boolean"],
    text: "Whether two periods have a moment in common. An end may be an interval from the start. \
           `(a, b) OVERLAPS (c, d)` is the same.",
    examples: &[Example {
        query: "SELECT overlaps(timestamp '2024-01-01', interval '10 days', timestamp '2024-01-05', timestamp '2024-02-01')",
        result: "t",
    }],
    implementation: Implementation::Scalar(|| Overloaded::udf("overlaps", &[], choose_overlaps, overlaps)),
};

/// Fields of dates, times and intervals.
pub static FIELD: FunctionDef = FunctionDef {
    name: "date_field",
    forms: &["date_field(field text, value timestamp) → double precision"],
    text: "What `date_part` calls for the fields second, milliseconds, decade, century, millennium, julian and timezone, \
           and for the quarter of an interval.",
    examples: &[
        Example { query: "SELECT date_field('century', timestamp '2024-05-06 07:08:09')", result: "21" },
        Example { query: "SELECT date_field('milliseconds', timestamp '2024-05-06 07:08:09.5')", result: "9500" },
    ],
    implementation: Implementation::Scalar(|| Overloaded::udf("date_field", &[], choose_field, fields)),
};

/// Seconds since 1970, or of an interval.
pub static EPOCH: FunctionDef = FunctionDef {
    name: "epoch",
    forms: &["epoch(value timestamp) → numeric", "epoch(value date) → numeric", "epoch(value interval) → numeric"],
    text: "What `EXTRACT(EPOCH FROM value)` calls: the seconds since 1970-01-01 00:00 UTC of a date or timestamp, those of an \
           interval (a year has 365.25 days, a month 30) or of a time.",
    examples: &[
        Example { query: "SELECT epoch(timestamp '2024-05-06 07:08:09.5')", result: "1714979289.500000" },
        Example { query: "SELECT epoch(date '2024-05-06')", result: "1714953600" },
        Example { query: "SELECT epoch(interval '1 month 1 second')", result: "2592001.000000" },
    ],
    implementation: Implementation::Scalar(|| Overloaded::udf("epoch", &[], choose_epoch, epochs)),
};

/// Digits enough for the seconds of every instant.
const EPOCH_TYPE: DataType = DataType::Decimal128(26, 6);

fn choose_epoch(types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let [value] = types else { return None };
    let (value, result) = match value {
        DataType::Date32 => (DataType::Date32, DataType::Decimal128(20, 0)),
        DataType::Interval(_) | DataType::Duration(_) => (INTERVAL, EPOCH_TYPE),
        DataType::Time64(_) | DataType::Time32(_) => (DataType::Time64(TimeUnit::Microsecond), EPOCH_TYPE),
        value if is_instant(value) => (as_instant(value), EPOCH_TYPE),
        _ => return None,
    };
    Some(Form { arguments: vec![value], result })
}

fn epochs(arguments: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
    let value = &arguments[0];
    let digits = each(arguments, |row| {
        Ok(Some(match value.data_type() {
            DataType::Date32 => i128::from(value.as_primitive::<Date32Type>().value(row)) * 86_400,
            DataType::Interval(_) => micros_of(value.as_primitive::<IntervalMonthDayNanoType>().value(row)),
            DataType::Time64(_) => i128::from(value.as_primitive::<Time64MicrosecondType>().value(row)),
            _ => i128::from(instants(value)?.value(row)),
        }))
    })?;
    Ok(Arc::new(Decimal128Array::from(digits).with_data_type(result.clone())))
}

/// An interval in microseconds, where a year has 365.25 days and a month 30.
fn micros_of(value: IntervalMonthDayNano) -> i128 {
    let (years, months) = (i128::from(value.months / 12), i128::from(value.months % 12));
    let hours = years * 8_766 + (months * 30 + i128::from(value.days)) * 24;
    hours * 3_600_000_000 + i128::from(value.nanoseconds / 1_000)
}

fn choose_age(types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let fits = types.len() == 2 && types.iter().all(is_instant);
    fits.then(|| Form { arguments: types.iter().map(as_instant).collect(), result: INTERVAL })
}

fn is_instant(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(_, _) | DataType::Date32) || is_text(data_type)
}

fn as_instant(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Timestamp(_, Some(zone)) => DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::clone(zone))),
        _ => TIMESTAMP,
    }
}

fn instants(array: &ArrayRef) -> Result<&TimestampMicrosecondArray> {
    let found = array.as_primitive_opt::<TimestampMicrosecondType>();
    found.ok_or_else(|| error(SqlState::INTERNAL_ERROR, "an instant is not in microseconds"))
}

fn out_of_range() -> DataFusionError {
    error(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range")
}

fn moment(micros: i64) -> Result<NaiveDateTime> {
    DateTime::from_timestamp_micros(micros).map(|moment| moment.naive_utc()).ok_or_else(out_of_range)
}

fn days_of_month(moment: &NaiveDateTime) -> i64 {
    let (year, month) = (moment.year(), moment.month());
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The difference part by part; where one is negative, it borrows from the next greater.
fn age(first: NaiveDateTime, second: NaiveDateTime) -> Result<IntervalMonthDayNano> {
    let negative = first < second;
    let (later, earlier) = if negative { (second, first) } else { (first, second) };
    let micros_of = |moment: &NaiveDateTime| {
        i64::from(moment.num_seconds_from_midnight()) * 1_000_000 + i64::from(moment.nanosecond() / 1_000)
    };
    let mut months =
        i64::from(later.year() - earlier.year()) * 12 + i64::from(later.month()) - i64::from(earlier.month());
    let mut days = i64::from(later.day()) - i64::from(earlier.day());
    let mut micros = micros_of(&later) - micros_of(&earlier);
    if micros < 0 {
        micros += MICROS_OF_DAY;
        days -= 1;
    }
    while days < 0 {
        // The month that is borrowed is the earlier one's.
        days += days_of_month(&earlier);
        months -= 1;
    }
    let sign = if negative { -1 } else { 1 };
    let months = i32::try_from(sign * months).map_err(|_| out_of_range())?;
    Ok(IntervalMonthDayNano::new(months, (sign * days) as i32, sign * micros * 1_000))
}

fn choose_interval(types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let fits = matches!(types, [DataType::Interval(_) | DataType::Duration(_) | DataType::Null]);
    fits.then(|| Form { arguments: vec![INTERVAL], result: INTERVAL })
}

fn intervals(arguments: &[ArrayRef], justify: fn(i64, i64, i64) -> (i64, i64, i64)) -> Result<ArrayRef> {
    let values = arguments[0].as_primitive::<IntervalMonthDayNanoType>();
    let justified = each(arguments, |row| {
        let value = values.value(row);
        let (months, days, nanos) = justify(i64::from(value.months), i64::from(value.days), value.nanoseconds);
        let part = |part: i64| {
            let message = "interval out of range";
            i32::try_from(part).map_err(|_| error(SqlState::DATETIME_FIELD_OVERFLOW, message))
        };
        Ok(Some(IntervalMonthDayNano::new(part(months)?, part(days)?, nanos)))
    })?;
    Ok(Arc::new(IntervalMonthDayNanoArray::from(justified)))
}

fn days(months: i64, days: i64, nanos: i64) -> (i64, i64, i64) {
    let (months, days) = (months + days / 30, days % 30);
    if months > 0 && days < 0 {
        (months - 1, days + 30, nanos)
    } else if months < 0 && days > 0 {
        (months + 1, days - 30, nanos)
    } else {
        (months, days, nanos)
    }
}

fn hours(months: i64, days: i64, nanos: i64) -> (i64, i64, i64) {
    let (days, nanos) = (days + nanos / NANOS_OF_DAY, nanos % NANOS_OF_DAY);
    if days > 0 && nanos < 0 {
        (months, days - 1, nanos + NANOS_OF_DAY)
    } else if days < 0 && nanos > 0 {
        (months, days + 1, nanos - NANOS_OF_DAY)
    } else {
        (months, days, nanos)
    }
}

fn both(months: i64, days: i64, nanos: i64) -> (i64, i64, i64) {
    let (days, nanos) = (days + nanos / NANOS_OF_DAY, nanos % NANOS_OF_DAY);
    let (mut months, mut days) = (months + days / 30, days % 30);
    if months > 0 && (days < 0 || (days == 0 && nanos < 0)) {
        (months, days) = (months - 1, days + 30);
    } else if months < 0 && (days > 0 || (days == 0 && nanos > 0)) {
        (months, days) = (months + 1, days - 30);
    }
    hours(months, days, nanos)
}

fn choose_finite(types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let [value] = types else { return None };
    let fits = matches!(value, DataType::Timestamp(_, _) | DataType::Date32 | DataType::Interval(_));
    fits.then(|| Form { arguments: vec![value.clone()], result: DataType::Boolean })
}

fn choose_overlaps(types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let [start, end, other_start, other_end] = types else { return None };
    let times = matches!(start, DataType::Time64(_));
    let start_type = if times { DataType::Time64(TimeUnit::Microsecond) } else { as_instant(start) };
    let fits =
        |data_type: &DataType| if times { matches!(data_type, DataType::Time64(_)) } else { is_instant(data_type) };
    let interval = |data_type: &DataType| matches!(data_type, DataType::Interval(_));
    let end_type = |data_type: &DataType| {
        if interval(data_type) { (!times).then_some(INTERVAL) } else { fits(data_type).then(|| start_type.clone()) }
    };
    if !fits(start) || !fits(other_start) {
        return None;
    }
    let arguments = vec![start_type.clone(), end_type(end)?, start_type.clone(), end_type(other_end)?];
    Some(Form { arguments, result: DataType::Boolean })
}

fn overlaps(arguments: &[ArrayRef], _result: &DataType) -> Result<ArrayRef> {
    let micros = |array: &ArrayRef| cast(array, &DataType::Int64);
    let bound = |start: &ArrayRef, end: &ArrayRef| match end.data_type() {
        DataType::Interval(_) => micros(&add(start, end)?),
        _ => micros(end),
    };
    let bounds = [
        micros(&arguments[0])?,
        bound(&arguments[0], &arguments[1])?,
        micros(&arguments[2])?,
        bound(&arguments[2], &arguments[3])?,
    ];
    let bounds: Vec<_> =
        bounds.iter().map(|array| array.as_primitive::<datafusion::arrow::datatypes::Int64Type>()).collect();
    let overlap = each(arguments, |row| {
        let at = |place: usize| bounds[place].value(row);
        let (start, end) = (at(0).min(at(1)), at(0).max(at(1)));
        let (other_start, other_end) = (at(2).min(at(3)), at(2).max(at(3)));
        Ok(Some(
            start == other_start
                || (start > other_start && start < other_end)
                || (other_start > start && other_start < end),
        ))
    })?;
    Ok(Arc::new(BooleanArray::from(overlap)))
}

fn choose_field(types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let [field, value] = types else { return None };
    let value = match value {
        DataType::Interval(_) | DataType::Duration(_) => INTERVAL,
        DataType::Time64(_) | DataType::Time32(_) => DataType::Time64(TimeUnit::Microsecond),
        value if is_instant(value) => as_instant(value),
        _ => return None,
    };
    is_text(field).then(|| Form { arguments: vec![DataType::Utf8, value], result: DataType::Float64 })
}

fn fields(arguments: &[ArrayRef], _result: &DataType) -> Result<ArrayRef> {
    let names = arguments[0].as_string::<i32>();
    let values = each(arguments, |row| {
        let name = names.value(row).to_lowercase();
        let value = match arguments[1].data_type() {
            DataType::Interval(_) => {
                of_interval(&name, arguments[1].as_primitive::<IntervalMonthDayNanoType>().value(row))
            }
            DataType::Time64(_) => of_time(&name, arguments[1].as_primitive::<Time64MicrosecondType>().value(row)),
            data_type => {
                let moment = moment(instants(&arguments[1])?.value(row))?;
                of_instant(&name, &moment, matches!(data_type, DataType::Timestamp(_, Some(_))))
            }
        };
        match value {
            Some(value) => Ok(Some(value)),
            None => {
                let message = format!("unit \"{name}\" not recognized for this type");
                Err(error(SqlState::INVALID_PARAMETER_VALUE, message))
            }
        }
    })?;
    Ok(Arc::new(Float64Array::from(values)))
}

fn of_time(name: &str, micros: i64) -> Option<f64> {
    let seconds = (micros % 60_000_000) as f64;
    Some(match name {
        "second" | "seconds" => seconds / 1e6,
        "millisecond" | "milliseconds" => seconds / 1e3,
        _ => return None,
    })
}

fn of_interval(name: &str, value: IntervalMonthDayNano) -> Option<f64> {
    let years = value.months / 12;
    Some(f64::from(match name {
        "decade" | "decades" => years / 10,
        "century" | "centuries" => years / 100,
        "millennium" | "millenniums" => years / 1_000,
        "quarter" => value.months % 12 / 3 + 1,
        _ => return of_time(name, value.nanoseconds / 1_000),
    }))
}

fn of_instant(name: &str, moment: &NaiveDateTime, has_zone: bool) -> Option<f64> {
    let year = i64::from(moment.year());
    // There is no year 0, and the first century begins with the year 1.
    let ordinal = |length: i64| if year > 0 { (year + length - 1) / length } else { -((length - year) / length) };
    let micros = i64::from(moment.num_seconds_from_midnight()) * 1_000_000 + i64::from(moment.nanosecond() / 1_000);
    Some(match name {
        "decade" | "decades" => year.div_euclid(10) as f64,
        "century" | "centuries" => ordinal(100) as f64,
        "millennium" | "millenniums" => ordinal(1_000) as f64,
        // The Julian day of 0001-01-01 is 1721426.
        "julian" => f64::from(moment.num_days_from_ce()) + 1_721_425.0 + micros as f64 / MICROS_OF_DAY as f64,
        "timezone" | "timezone_hour" | "timezone_minute" if has_zone => 0.0,
        "quarter" => f64::from((moment.month() - 1) / 3 + 1),
        _ => return of_time(name, micros),
    })
}
