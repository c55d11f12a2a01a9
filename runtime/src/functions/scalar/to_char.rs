//! `to_char`: prints a value by a pattern.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Float64Type, Int64Type, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
    TimestampMicrosecondType,
};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;

use super::format::number::Layout;
use super::format::pattern::{Piece, split};
use super::format::{datetime, digits};
use super::overload::{Form, Overloaded, is_text};
use super::zone::Zone;
use crate::functions::{Example, FunctionDef, Implementation};

/// The function.
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "to_char",
    forms: &[
        "to_char(timestamp, pattern text) → text",
        "to_char(timestamptz, pattern text) → text",
        "to_char(interval, pattern text) → text",
        "to_char(numeric, pattern text) → text",
        "to_char(double precision, pattern text) → text",
        "to_char(bigint, pattern text) → text",
    ],
    text: "The value as the pattern says, with PostgreSQL's patterns. Dates and times: `YYYY` `YY` `IYYY` `MM` `Month` \
           `Mon` `DD` `DDD` `Day` `Dy` `D` `ID` `WW` `IW` `Q` `CC` `J` `HH24` `HH12` `MI` `SS` `MS` `US` `FF1` to `FF6` \
           `SSSS` `AM` `AD` `TZ` `TZH` `TZM` `OF`; case matters for names. Numbers: `9` `0` `.` `,` `D` `G` `S` `MI` \
           `PL` `SG` `PR` `RN` `V` `EEEE` `TH`. `FM` before a field takes blanks and zeros away, `TH` after it makes \
           an ordinal number, text in double quotes stands for itself. A timestamptz is printed in the session's time \
           zone, in a view in UTC.",
    examples: &[
        Example {
            query: "SELECT to_char(timestamp '2024-05-06 17:08:09', 'YYYY-MM-DD HH24:MI:SS')",
            result: "2024-05-06 17:08:09",
        },
        Example {
            query: "SELECT to_char(timestamp '2024-05-06 17:08:09', 'FMDay, DDth Mon, HH12 AM')",
            result: "Monday, 06th May, 05 PM",
        },
        Example { query: "SELECT to_char(interval '26 hours 3 minutes', 'HH24:MI')", result: "26:03" },
        Example { query: "SELECT to_char(1234567.891, 'FM9,999,999.00')", result: "1,234,567.89" },
        Example { query: "SELECT to_char(-12, 'S0999')", result: "-0012" },
    ],
    implementation: Implementation::Scalar(make),
};

fn make() -> ScalarUDF {
    // DataFusion's has this other name, under which it would stay and come back.
    Overloaded::udf("to_char", &["date_format"], choose, evaluate)
}

fn choose(arguments: &[DataType], _constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let (value, texts) = arguments.split_first()?;
    // The third is the time zone, which the binder adds.
    if !matches!(texts.len(), 1 | 2) || !texts.iter().all(is_text) {
        return None;
    }
    let value = match value {
        DataType::Timestamp(_, None) => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Timestamp(_, Some(_)) => DataType::Timestamp(TimeUnit::Microsecond, Some(Arc::from("UTC"))),
        DataType::Date32 | DataType::Date64 => DataType::Timestamp(TimeUnit::Microsecond, None),
        DataType::Interval(_) | DataType::Duration(_) => DataType::Interval(IntervalUnit::MonthDayNano),
        DataType::Decimal128(_, _) | DataType::Decimal256(_, _) => value.clone(),
        value if value.is_floating() => DataType::Float64,
        value if value.is_integer() => DataType::Int64,
        DataType::Null => DataType::Timestamp(TimeUnit::Microsecond, None),
        _ => return None,
    };
    let arguments = std::iter::once(value).chain(texts.iter().map(|_| DataType::Utf8)).collect();
    Some(Form { arguments, result: DataType::Utf8 })
}

/// A pattern as it was split for the last row: neighbouring rows mostly have the same.
enum Split {
    DateTime(Vec<Piece>),
    Number(Layout),
}

fn evaluate(arguments: &[ArrayRef], _result: &DataType) -> Result<ArrayRef> {
    let (values, patterns) = (&arguments[0], arguments[1].as_string::<i32>());
    let zones = arguments.get(2).map(|zones| zones.as_string::<i32>());
    let is_number = values.data_type().is_numeric();
    let mut last: Option<(String, Split)> = None;
    let mut texts = Vec::with_capacity(values.len());
    for row in 0..values.len() {
        if values.is_null(row) || patterns.is_null(row) || (patterns.value(row).is_empty() && !is_number) {
            texts.push(None);
            continue;
        }
        let pattern = patterns.value(row);
        let known = last.take().filter(|(known, _)| known == pattern);
        let (_, pieces) = match known {
            Some(known) => last.insert(known),
            None if is_number => last.insert((pattern.to_string(), Split::Number(Layout::parse(pattern)?))),
            None => {
                let pieces = split(pattern, datetime::KEYWORDS, datetime::NAMES);
                last.insert((pattern.to_string(), Split::DateTime(pieces)))
            }
        };
        let zone = match zones {
            Some(zones) if zones.is_valid(row) => Zone::parse(zones.value(row))?,
            _ => Zone::UTC,
        };
        texts.push(Some(match pieces {
            Split::DateTime(pieces) => time_text(values, row, zone, pieces)?,
            Split::Number(layout) => number_text(values, row, layout),
        }));
    }
    Ok(Arc::new(StringArray::from(texts)))
}

fn time_text(values: &ArrayRef, row: usize, zone: Zone, pieces: &[Piece]) -> Result<String> {
    match values.data_type() {
        DataType::Interval(_) => {
            datetime::interval(values.as_primitive::<IntervalMonthDayNanoType>().value(row), pieces)
        }
        data_type => {
            let zone = matches!(data_type, DataType::Timestamp(_, Some(_))).then_some(zone);
            datetime::timestamp(values.as_primitive::<TimestampMicrosecondType>().value(row), zone, pieces)
        }
    }
}

fn number_text(values: &ArrayRef, row: usize, layout: &Layout) -> String {
    let text = match values.data_type() {
        DataType::Decimal128(_, _) => values.as_primitive::<Decimal128Type>().value_as_string(row),
        DataType::Decimal256(_, _) => values.as_primitive::<Decimal256Type>().value_as_string(row),
        DataType::Float64 => return float_text(values.as_primitive::<Float64Type>().value(row), layout),
        _ => values.as_primitive::<Int64Type>().value(row).to_string(),
    };
    if let Some(case) = layout.roman {
        return layout.print_roman(digits::rounded(&text, 0, 0).parse().ok(), case);
    }
    if layout.scientific {
        return Layout::print_scientific(&digits::scientific(&text, layout.after));
    }
    layout.print(&digits::rounded(&text, layout.shift, layout.after))
}

/// A double has 15 digits that mean something.
const DOUBLE_DIGITS: usize = 15;

fn float_text(value: f64, layout: &Layout) -> String {
    if let Some(case) = layout.roman {
        let whole = value.round_ties_even();
        return layout.print_roman((0.0..4_000.0).contains(&whole).then_some(whole as u32), case);
    }
    if !value.is_finite() {
        let name = if value.is_nan() {
            "NaN"
        } else if value < 0.0 {
            "-Infinity"
        } else {
            "Infinity"
        };
        return layout.print(name);
    }
    if layout.scientific {
        return Layout::print_scientific(&digits::scientific_of(&format!("{value:.*e}", layout.after)));
    }
    let value = value * 10_f64.powi(layout.shift.min(300) as i32);
    let whole = format!("{:.0}", value.abs()).len();
    let after = layout.after.min(DOUBLE_DIGITS.saturating_sub(whole));
    layout.print(&format!("{value:.after$}"))
}
