//! Dates, times and intervals made of their parts: make_date, make_time, make_timestamp, make_timestamptz, make_interval.

use std::sync::Arc;

use chrono::{NaiveDate, NaiveTime};
use datafusion::arrow::array::{
    ArrayRef, AsArray, Date32Array, IntervalMonthDayNanoArray, Time64MicrosecondArray, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, IntervalMonthDayNano, IntervalUnit, TimeUnit};
use datafusion::error::{DataFusionError, Result};
use plan::SqlState;

use super::overload::{Form, Overloaded, each, error, is_text};
use super::zone::Zone;
use crate::functions::{Example, FunctionDef, Implementation};

/// `make_date`
pub static DATE: FunctionDef = FunctionDef {
    name: "make_date",
    forms: &["make_date(year integer, month integer, day integer) → date"],
    text: "A date.",
    examples: &[Example { query: "SELECT make_date(2024, 2, 29)", result: "2024-02-29" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf(
            "make_date",
            &[],
            |types, _| choose(types, 3, 0, DataType::Date32),
            |arguments, _| {
                let dates = each(arguments, |row| {
                    let date = date(arguments, row)?;
                    Ok(Some(date.signed_duration_since(NaiveDate::default()).num_days() as i32))
                })?;
                Ok(Arc::new(Date32Array::from(dates)))
            },
        )
    }),
};

/// `make_time`
pub static TIME: FunctionDef = FunctionDef {
    name: "make_time",
    forms: &["make_time(hour integer, minute integer, second double precision) → time"],
    text: "A time of day.",
    examples: &[Example { query: "SELECT make_time(8, 15, 23.5)", result: "08:15:23.5" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf(
            "make_time",
            &[],
            |types, _| choose(types, 2, 1, DataType::Time64(TimeUnit::Microsecond)),
            |arguments, _| {
                Ok(Arc::new(Time64MicrosecondArray::from(each(arguments, |row| micros(arguments, 0, row).map(Some))?)))
            },
        )
    }),
};

/// `make_timestamp`
pub static TIMESTAMP: FunctionDef = FunctionDef {
    name: "make_timestamp",
    forms: &[
        "make_timestamp(year integer, month integer, day integer, hour integer, minute integer, second double precision) → timestamp",
    ],
    text: "A timestamp.",
    examples: &[Example { query: "SELECT make_timestamp(2024, 2, 29, 8, 15, 23.5)", result: "2024-02-29 08:15:23.5" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf("make_timestamp", &[], |types, _| choose_timestamp(types, None), timestamps)
    }),
};

/// `make_timestamptz`
pub static TIMESTAMPTZ: FunctionDef = FunctionDef {
    name: "make_timestamptz",
    forms: &[
        "make_timestamptz(year integer, month integer, day integer, hour integer, minute integer, second double precision [, zone text]) → timestamptz",
    ],
    text: "An instant, at which a clock in the zone shows the time; in UTC without a zone.",
    examples: &[Example {
        query: "SELECT make_timestamptz(2024, 2, 29, 8, 15, 0, 'Europe/Paris')",
        result: "2024-02-29 07:15:00+00",
    }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf("make_timestamptz", &[], |types, _| choose_timestamp(types, Some(Arc::from("UTC"))), timestamps)
    }),
};

/// `make_interval`
pub static INTERVAL: FunctionDef = FunctionDef {
    name: "make_interval",
    forms: &[
        "make_interval([years integer [, months [, weeks [, days [, hours [, minutes [, seconds double precision]]]]]]]) → interval",
    ],
    text: "An interval of its parts, each of which is 0 if it is left out. Parts may be named: `make_interval(days => 10)`.",
    examples: &[Example {
        query: "SELECT make_interval(1, 2, 3, 4, 5, 6, 7.5)",
        result: "1 year 2 mons 25 days 05:06:07.5",
    }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf("make_interval", &[], |types, _| choose_interval(types), intervals)
    }),
};

/// So many whole numbers, and then so many doubles.
fn choose(types: &[DataType], whole: usize, doubles: usize, result: DataType) -> Option<Form> {
    if types.len() != whole + doubles {
        return None;
    }
    let fits = |(place, data_type): (usize, &DataType)| {
        let number = if place < whole { data_type.is_integer() } else { data_type.is_numeric() };
        number || is_text(data_type)
    };
    if !types.iter().enumerate().all(fits) {
        return None;
    }
    let mut arguments = vec![DataType::Int64; whole];
    arguments.extend(vec![DataType::Float64; doubles]);
    Some(Form { arguments, result })
}

fn choose_timestamp(types: &[DataType], zone: Option<Arc<str>>) -> Option<Form> {
    let with_zone = zone.is_some();
    let result = DataType::Timestamp(TimeUnit::Microsecond, zone);
    match types {
        [parts @ .., name] if with_zone && parts.len() == 6 && is_text(name) => {
            let mut form = choose(parts, 5, 1, result)?;
            form.arguments.push(DataType::Utf8);
            Some(form)
        }
        _ => choose(types, 5, 1, result),
    }
}

fn choose_interval(types: &[DataType]) -> Option<Form> {
    let doubles = usize::from(types.len() == 7);
    let whole = types.len().min(6);
    choose(types, whole, doubles, DataType::Interval(IntervalUnit::MonthDayNano)).filter(|_| types.len() <= 7)
}

fn whole(arguments: &[ArrayRef], place: usize, row: usize) -> i64 {
    arguments[place].as_primitive::<Int64Type>().value(row)
}

fn wrong(what: &str, value: &str) -> DataFusionError {
    error(SqlState::DATETIME_FIELD_OVERFLOW, format!("{what} field value out of range: {value}"))
}

fn date(arguments: &[ArrayRef], row: usize) -> Result<NaiveDate> {
    let (year, month, day) = (whole(arguments, 0, row), whole(arguments, 1, row), whole(arguments, 2, row));
    // The year -1 is the one before the year 1.
    let astronomical = if year < 0 { year + 1 } else { year };
    let date = match (i32::try_from(astronomical), u32::try_from(month), u32::try_from(day)) {
        (Ok(year_of), Ok(month), Ok(day)) if year != 0 => NaiveDate::from_ymd_opt(year_of, month, day),
        _ => None,
    };
    date.ok_or_else(|| wrong("date", &format!("{year}-{month:02}-{day:02}")))
}

/// Hour, minute and second from a place on, as microseconds.
fn micros(arguments: &[ArrayRef], place: usize, row: usize) -> Result<i64> {
    let (hour, minute) = (whole(arguments, place, row), whole(arguments, place + 1, row));
    let seconds = arguments[place + 2].as_primitive::<Float64Type>().value(row);
    let rounded = (seconds * 1e6).round_ties_even();
    let fits = (0..=24).contains(&hour) && (0..60).contains(&minute) && (0.0..=60e6).contains(&rounded);
    let total = if fits { (hour * 60 + minute) * 60_000_000 + rounded as i64 } else { i64::MAX };
    if total > 86_400_000_000 {
        return Err(wrong("time", &format!("{hour}:{minute:02}:{seconds:02}")));
    }
    Ok(total)
}

fn timestamps(arguments: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
    let values = each(arguments, |row| {
        let start = date(arguments, row)?.and_time(NaiveTime::MIN).and_utc().timestamp_micros();
        let local = start + micros(arguments, 3, row)?;
        match arguments.get(6) {
            Some(zone) => Zone::parse(zone.as_string::<i32>().value(row))?.instant(local).map(Some),
            None => Ok(Some(local)),
        }
    })?;
    Ok(Arc::new(TimestampMicrosecondArray::from(values).with_data_type(result.clone())))
}

fn intervals(arguments: &[ArrayRef], _result: &DataType) -> Result<ArrayRef> {
    let out_of_range = || error(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range");
    let at = |place: usize, row: usize| if place < arguments.len() { whole(arguments, place, row) } else { 0 };
    let made = |row: usize| {
        let months = at(0, row).checked_mul(12).and_then(|months| months.checked_add(at(1, row)));
        let days = at(2, row).checked_mul(7).and_then(|days| days.checked_add(at(3, row)));
        let seconds = arguments.get(6).map_or(0.0, |seconds| seconds.as_primitive::<Float64Type>().value(row));
        let minutes = at(4, row).checked_mul(60).and_then(|minutes| minutes.checked_add(at(5, row)));
        let time = minutes
            .and_then(|minutes| minutes.checked_mul(60_000_000_000))
            .and_then(|time| time.checked_add((seconds * 1e6).round_ties_even() as i64 * 1_000));
        let part = |part: Option<i64>| part.and_then(|part| i32::try_from(part).ok()).ok_or_else(out_of_range);
        Ok(Some(IntervalMonthDayNano::new(part(months)?, part(days)?, time.ok_or_else(out_of_range)?)))
    };
    let values = if arguments.is_empty() { vec![made(0)?] } else { each(arguments, made)? };
    Ok(Arc::new(IntervalMonthDayNanoArray::from(values)))
}
