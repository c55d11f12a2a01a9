//! `to_timestamp`: an instant from seconds, or from a text by a pattern.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, TimestampMicrosecondArray};
use datafusion::arrow::datatypes::{DataType, Float64Type, TimeUnit};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;
use plan::SqlState;

use super::format::{datetime, input, pattern};
use super::overload::{Form, Overloaded, error, is_text};
use super::zone::Zone;
use crate::functions::{Example, FunctionDef, Implementation};

/// The function.
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "to_timestamp",
    forms: &["to_timestamp(seconds double precision) → timestamptz", "to_timestamp(text, pattern text) → timestamptz"],
    text: "The instant so many seconds after 1970-01-01 00:00:00 UTC; or the instant that a text shows, with the \
           patterns of `to_char`, in the session's time zone (in a view in UTC) where the text has no offset.",
    examples: &[
        Example { query: "SELECT to_timestamp(1.5)", result: "1970-01-01 00:00:01.5+00" },
        Example {
            query: "SELECT to_timestamp('05 Dec 2000 13:14', 'DD Mon YYYY HH24:MI')",
            result: "2000-12-05 13:14:00+00",
        },
    ],
    implementation: Implementation::Scalar(make),
};

fn make() -> ScalarUDF {
    Overloaded::udf("to_timestamp", &[], choose, evaluate)
}

fn choose(arguments: &[DataType], _constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let result = DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC")));
    let arguments = match arguments {
        [seconds] if seconds.is_numeric() || is_text(seconds) => vec![DataType::Float64],
        // The third is the time zone, which the binder adds.
        [_, _] | [_, _, _] if arguments.iter().all(is_text) => vec![DataType::Utf8; arguments.len()],
        _ => return None,
    };
    Some(Form { arguments, result })
}

fn evaluate(arguments: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
    let instants: Vec<Option<i64>> = match arguments {
        [seconds] => {
            let seconds = seconds.as_primitive::<Float64Type>().iter();
            seconds.map(|seconds| seconds.map(from_seconds).transpose()).collect::<Result<_>>()?
        }
        _ => {
            let (texts, patterns) = (arguments[0].as_string::<i32>(), arguments[1].as_string::<i32>());
            let zones = arguments.get(2).map(|zones| zones.as_string::<i32>());
            let row = |row: usize| {
                if texts.is_null(row) || patterns.is_null(row) {
                    return Ok(None);
                }
                let zone = match zones {
                    Some(zones) if zones.is_valid(row) => Zone::parse(zones.value(row))?,
                    _ => Zone::UTC,
                };
                let pieces = pattern::split(patterns.value(row), datetime::KEYWORDS, datetime::NAMES);
                input::read(texts.value(row), &pieces)?.instant(texts.value(row), zone).map(Some)
            };
            (0..texts.len()).map(row).collect::<Result<_>>()?
        }
    };
    Ok(Arc::new(TimestampMicrosecondArray::from(instants).with_data_type(result.clone())))
}

fn from_seconds(seconds: f64) -> Result<i64> {
    let micros = (seconds * 1e6).round_ties_even();
    if micros.is_nan() || micros.abs() >= 9.2e18 {
        let message = format!("timestamp out of range: \"{seconds}\"");
        return Err(error(SqlState::DATETIME_FIELD_OVERFLOW, message));
    }
    Ok(micros as i64)
}
