//! `timezone`: between instants and what a clock shows; AT TIME ZONE is this function.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, TimestampMicrosecondArray};
use datafusion::arrow::datatypes::{
    DataType, IntervalMonthDayNanoType, IntervalUnit, TimeUnit, TimestampMicrosecondType,
};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;

use super::overload::{Form, Overloaded, is_text};
use super::zone::Zone;
use crate::functions::{Example, FunctionDef, Implementation};

/// The function.
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "timezone",
    forms: &[
        "timezone(zone text, instant timestamptz) → timestamp",
        "timezone(zone text, local timestamp) → timestamptz",
        "timezone(zone interval, instant timestamptz) → timestamp",
        "timezone(zone interval, local timestamp) → timestamptz",
    ],
    text: "What a clock in the zone shows at an instant; or the instant at which a clock in the zone shows a time. \
           `x AT TIME ZONE zone` is the same as `timezone(zone, x)`. A zone is a name (`Europe/Paris`), an \
           abbreviation (`EST`), or an interval east of UTC.",
    examples: &[
        Example {
            query: "SELECT timezone('Europe/Paris', arrow_cast('2024-05-06T07:08:09Z', 'Timestamp(Microsecond, Some(\"UTC\"))'))",
            result: "2024-05-06 09:08:09",
        },
        Example {
            query: "SELECT timezone('America/New_York', timestamp '2024-05-06 07:08:09')",
            result: "2024-05-06 11:08:09+00",
        },
    ],
    implementation: Implementation::Scalar(make),
};

fn make() -> ScalarUDF {
    Overloaded::udf("timezone", &[], choose, evaluate)
}

fn choose(arguments: &[DataType], _constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let [zone, time] = arguments else { return None };
    let zone = match zone {
        zone if is_text(zone) => DataType::Utf8,
        DataType::Interval(_) => DataType::Interval(IntervalUnit::MonthDayNano),
        _ => return None,
    };
    let instant = || DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC")));
    let local = || DataType::Timestamp(TimeUnit::Microsecond, None);
    let (time, result) = match time {
        DataType::Timestamp(_, None) => (local(), instant()),
        // A text or a date is an instant, as in PostgreSQL.
        DataType::Timestamp(_, Some(_)) | DataType::Date32 => (instant(), local()),
        time if is_text(time) => (instant(), local()),
        _ => return None,
    };
    Some(Form { arguments: vec![zone, time], result })
}

fn evaluate(arguments: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
    let (zones, times) = (&arguments[0], arguments[1].as_primitive::<TimestampMicrosecondType>());
    let to_instant = matches!(result, DataType::Timestamp(_, Some(_)));
    // Neighbouring rows mostly have the same zone.
    let mut last: Option<(String, Zone)> = None;
    let mut values = Vec::with_capacity(times.len());
    for row in 0..times.len() {
        if times.is_null(row) || zones.is_null(row) {
            values.push(None);
            continue;
        }
        let zone = match zones.data_type() {
            DataType::Utf8 => {
                let name = zones.as_string::<i32>().value(row);
                match &last {
                    Some((known, zone)) if known == name => *zone,
                    _ => {
                        let zone = Zone::parse(name)?;
                        last = Some((name.to_string(), zone));
                        zone
                    }
                }
            }
            _ => {
                let east = zones.as_primitive::<IntervalMonthDayNanoType>().value(row);
                Zone::Fixed((east.nanoseconds / 1_000_000_000) as i32)
            }
        };
        let time = times.value(row);
        values.push(Some(if to_instant { zone.instant(time)? } else { zone.local(time)? }));
    }
    Ok(Arc::new(TimestampMicrosecondArray::from(values).with_data_type(result.clone())))
}
