//! Rows as text: PostgreSQL's row literals for error messages, and whole deltas as tables for tests.
//!
//! A delta as text has a line for each row: weight, then the columns, separated by `|`; NULL is `NULL`:
//! ```text
//! +1 | 1 | a
//! -2 | 2 | NULL
//! ```

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListArray, StringArray};
use datafusion::arrow::buffer::{NullBuffer, OffsetBuffer};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Field, IntervalMonthDayNanoType, IntervalUnit, Schema, SchemaRef,
    TimeUnit,
};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use plan::numeric::{self, Display};

use super::Delta;
use super::consolidate::consolidate;
use crate::error::Result;

/// Values of a column as PostgreSQL prints them, row by row.
pub struct ColumnText<'a> {
    array: &'a dyn Array,
    formatter: ArrayFormatter<'a>,
    items: Option<(ArrayRef, &'a ListArray)>,
}

const FORMAT: FormatOptions<'static> = FormatOptions::new()
    .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.6f"))
    .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.6f"))
    .with_time_format(Some("%H:%M:%S%.6f"));

impl<'a> ColumnText<'a> {
    /// A printer for a column.
    pub fn new(array: &'a dyn Array) -> Result<Self> {
        let items = match array.data_type() {
            DataType::List(_) => Some((array.as_list::<i32>().values().clone(), array.as_list::<i32>())),
            _ => None,
        };
        Ok(ColumnText { array, formatter: ArrayFormatter::try_new(array, &FORMAT)?, items })
    }

    /// The text of a value, none for NULL.
    pub fn value(&self, row: usize) -> Option<String> {
        if self.array.is_null(row) {
            return None;
        }
        Some(match self.array.data_type() {
            DataType::Boolean => (if self.array.as_boolean().value(row) { "t" } else { "f" }).to_string(),
            DataType::Timestamp(TimeUnit::Microsecond, None) | DataType::Time64(_) => self.without_zeros(row),
            DataType::Timestamp(_, Some(_)) => format!("{}+00", self.without_zeros(row)),
            DataType::Binary => format!("\\x{}", self.formatter.value(row)),
            DataType::Float32 => float_text(
                f64::from(self.array.as_primitive::<datafusion::arrow::datatypes::Float32Type>().value(row)),
                self.formatter.value(row).to_string(),
            ),
            DataType::Float64 => float_text(
                self.array.as_primitive::<datafusion::arrow::datatypes::Float64Type>().value(row),
                self.formatter.value(row).to_string(),
            ),
            DataType::Interval(IntervalUnit::MonthDayNano) => {
                interval_text(self.array.as_primitive::<IntervalMonthDayNanoType>().value(row))
            }
            DataType::List(_) => self.list_text(row),
            DataType::Decimal128(_, scale) => {
                let value = self.array.as_primitive::<Decimal128Type>().value(row);
                self.numeric(|display, out| numeric::write128(value, *scale, display, out))
            }
            DataType::Decimal256(_, scale) => {
                let value = self.array.as_primitive::<Decimal256Type>().value(row);
                self.numeric(|display, out| numeric::write256(value, *scale, display, out))
            }
            _ => self.formatter.value(row).to_string(),
        })
    }

    fn numeric(&self, write: impl FnOnce(Display, &mut String) -> std::fmt::Result) -> String {
        let mut text = String::new();
        // Writing into memory does not fail.
        let _ = write(numeric::display(self.array.data_type()), &mut text);
        text
    }

    fn without_zeros(&self, row: usize) -> String {
        self.formatter.value(row).to_string().trim_end_matches('0').trim_end_matches('.').to_string()
    }

    fn list_text(&self, row: usize) -> String {
        let Some((items, list)) = &self.items else { return String::new() };
        let offsets = list.value_offsets();
        let Ok(printer) = ColumnText::new(items.as_ref()) else { return String::new() };
        let items: Vec<String> = (offsets[row]..offsets[row + 1])
            .map(|item| match printer.value(item as usize) {
                None => "NULL".to_string(),
                Some(text) => array_item(text),
            })
            .collect();
        format!("{{{}}}", items.join(","))
    }
}

fn float_text(value: f64, text: String) -> String {
    if value.is_nan() {
        "NaN".to_string()
    } else if value.is_infinite() {
        (if value > 0.0 { "Infinity" } else { "-Infinity" }).to_string()
    } else {
        text.strip_suffix(".0").map(str::to_string).unwrap_or(text)
    }
}

fn interval_text(interval: datafusion::arrow::datatypes::IntervalMonthDayNano) -> String {
    let mut parts = Vec::new();
    let mut part = |count: i32, one: &str, many: &str| {
        if count != 0 {
            parts.push(format!("{count} {}", if count == 1 { one } else { many }));
        }
    };
    part(interval.months / 12, "year", "years");
    part(interval.months % 12, "mon", "mons");
    part(interval.days, "day", "days");
    if interval.nanoseconds != 0 || parts.is_empty() {
        let micros = interval.nanoseconds.unsigned_abs() / 1_000;
        let (seconds, fraction) = (micros / 1_000_000, micros % 1_000_000);
        let sign = if interval.nanoseconds < 0 { "-" } else { "" };
        let fraction =
            if fraction == 0 { String::new() } else { format!(".{fraction:06}").trim_end_matches('0').to_string() };
        let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
        parts.push(format!("{sign}{hours:02}:{minutes:02}:{seconds:02}{fraction}"));
    }
    parts.join(" ")
}

/// An item as it stands in an array literal: in quotes if it is empty, the word NULL, or holds spaces or characters
/// that have a meaning there.
fn array_item(text: String) -> String {
    if text.eq_ignore_ascii_case("null") || needs_quotes(&text, "{},\"\\") { quoted(&text, |_| '\\') } else { text }
}

/// A value as it stands in a row literal. Quotes and backslashes are doubled.
fn row_item(text: String) -> String {
    if needs_quotes(&text, "(),\"\\") { quoted(&text, |letter| letter) } else { text }
}

fn needs_quotes(text: &str, special: &str) -> bool {
    text.is_empty() || text.chars().any(|letter| letter.is_whitespace() || special.contains(letter))
}

fn quoted(text: &str, escape: impl Fn(char) -> char) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        if letter == '"' || letter == '\\' {
            quoted.push(escape(letter));
        }
        quoted.push(letter);
    }
    quoted.push('"');
    quoted
}

/// The rows of a batch as PostgreSQL's row literals: `(1,abc,)`.
pub fn row_literals(batch: &RecordBatch) -> Result<Vec<String>> {
    let columns = batch.columns().iter().map(|column| ColumnText::new(column)).collect::<Result<Vec<_>>>()?;
    let literal = |row| {
        let values: Vec<String> =
            columns.iter().map(|column| column.value(row).map_or(String::new(), row_item)).collect();
        format!("({})", values.join(","))
    };
    Ok((0..batch.num_rows()).map(literal).collect())
}

/// A consolidated delta as text, lines sorted.
pub fn try_text(delta: &Delta) -> Result<String> {
    let delta = consolidate(delta.clone())?;
    let columns = delta.batch().columns().iter().map(|column| ColumnText::new(column)).collect::<Result<Vec<_>>>()?;
    let mut lines: Vec<(String, i64)> = (0..delta.len())
        .map(|row| {
            let values: Vec<String> =
                columns.iter().map(|column| column.value(row).unwrap_or_else(|| "NULL".to_string())).collect();
            (values.join(" | "), delta.weight(row))
        })
        .collect();
    lines.sort();
    // Rows may still stand several times; a text has each of them once.
    lines.dedup_by(|later, first| {
        let same = later.0 == first.0;
        if same {
            first.1 += later.1;
        }
        same
    });
    let lines: Vec<String> = lines
        .iter()
        .map(
            |(values, weight)| if values.is_empty() { format!("{weight:+}") } else { format!("{weight:+} | {values}") },
        )
        .collect();
    Ok(lines.join("\n"))
}

/// Reads a delta from text.
pub fn try_delta(schema: &SchemaRef, text: &str) -> Result<Delta> {
    let mut weights = Vec::new();
    let mut columns: Vec<Vec<Option<String>>> = vec![Vec::new(); schema.fields().len()];
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let mut values = line.split('|').map(str::trim);
        let weight = values.next().unwrap_or_default();
        weights.push(weight.parse::<i64>().map_err(|_| malformed(line))?);
        for column in &mut columns {
            let value = values.next().ok_or_else(|| malformed(line))?;
            column.push((value != "NULL").then(|| value.to_string()));
        }
        if values.next().is_some() {
            return Err(malformed(line));
        }
    }
    let arrays = schema
        .fields()
        .iter()
        .zip(columns)
        .map(|(field, values)| column(field.data_type(), values))
        .collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(weights.len()));
    let batch = RecordBatch::try_new_with_options(schema.clone(), arrays, &options)?;
    let all_one = weights.iter().all(|weight| *weight == 1);
    Ok(Delta::new(batch, (!all_one).then(|| Int64Array::from(weights))))
}

fn malformed(line: &str) -> crate::Error {
    crate::Error::Dataflow(format!("not a row of a delta: {line}"))
}

fn column(data_type: &DataType, values: Vec<Option<String>>) -> Result<ArrayRef> {
    let DataType::List(item) = data_type else {
        let texts: ArrayRef = Arc::new(StringArray::from(values));
        let options = compute::CastOptions { safe: false, format_options: FORMAT };
        return Ok(compute::cast_with_options(&texts, data_type, &options)?);
    };
    let mut lengths = Vec::with_capacity(values.len());
    let mut items = Vec::new();
    let nulls = NullBuffer::from_iter(values.iter().map(Option::is_some));
    for value in values {
        let text = value.unwrap_or_default();
        let inner = text.trim_start_matches('{').trim_end_matches('}');
        let before = items.len();
        if !inner.is_empty() {
            items.extend(inner.split(',').map(str::trim).map(|item| (item != "NULL").then(|| item.to_string())));
        }
        lengths.push(items.len() - before);
    }
    let items = column(item.data_type(), items)?;
    Ok(Arc::new(ListArray::try_new(item.clone(), OffsetBuffer::from_lengths(lengths), items, Some(nulls))?))
}

/// A schema from text: `a int8, b text not null`.
pub fn try_schema(text: &str) -> Result<SchemaRef> {
    let mut fields = Vec::new();
    for column in text.split(';').flat_map(|part| part.split(", ")).map(str::trim).filter(|column| !column.is_empty()) {
        let not_null = column.ends_with(" not null");
        let column = column.trim_end_matches(" not null");
        let (name, type_name) = column.split_once(' ').ok_or_else(|| malformed(column))?;
        fields.push(Field::new(name, data_type(type_name).ok_or_else(|| malformed(column))?, !not_null));
    }
    Ok(Arc::new(Schema::new(fields)))
}

fn data_type(name: &str) -> Option<DataType> {
    if let Some(item) = name.strip_suffix("[]") {
        return Some(DataType::List(Arc::new(Field::new_list_field(data_type(item)?, true))));
    }
    if let Some(arguments) = name.strip_prefix("numeric(") {
        let (precision, scale) = arguments.strip_suffix(')')?.split_once(',')?;
        return Some(DataType::Decimal128(precision.parse().ok()?, scale.parse().ok()?));
    }
    Some(match name {
        "bool" => DataType::Boolean,
        "int2" => DataType::Int16,
        "int4" => DataType::Int32,
        "int8" => DataType::Int64,
        "float4" => DataType::Float32,
        "float8" => DataType::Float64,
        "text" => DataType::Utf8,
        "date" => DataType::Date32,
        "time" => DataType::Time64(TimeUnit::Microsecond),
        "timestamp" => DataType::Timestamp(TimeUnit::Microsecond, None),
        "timestamptz" => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        "interval" => DataType::Interval(IntervalUnit::MonthDayNano),
        _ => return None,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod short {
    use super::*;

    /// A delta from text, for tests.
    pub fn delta(schema: &SchemaRef, text: &str) -> Delta {
        try_delta(schema, text).unwrap()
    }

    /// A consolidated delta as text, for tests.
    pub fn text(delta: &Delta) -> String {
        try_text(delta).unwrap()
    }

    /// A schema from text, for tests.
    pub fn schema(text: &str) -> SchemaRef {
        try_schema(text).unwrap()
    }
}

#[cfg(test)]
pub use short::{delta, schema, text};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let schema = schema("a int8, b text, c float8, d timestamp, e int8[], f bool, g interval");
        let lines = "+2 | 1 | x | 1.5 | 2020-01-02 03:04:05.25 | {1,NULL} | t | 1 months 2 days 3 hours\n\
                     -1 | NULL | NULL | 2 | 1969-12-31 23:59:59 | {} | f | 0 days";
        let printed = lines.replace("1 months 2 days 3 hours", "1 mon 2 days 03:00:00").replace("0 days", "00:00:00");
        assert_eq!(text(&delta(&schema, lines)), printed);
    }

    #[test]
    fn row_literals_are_those_of_postgres() {
        let schema = schema("a int8, b text, c text");
        let rows = delta(&schema, "+1 | 1 | abc | NULL\n+1 | NULL | a b, c | \n+1 | 2 | (q\" | null");
        let expected = ["(1,abc,)", "(,\"a b, c\",\"\")", "(2,\"(q\"\"\",null)"];
        assert_eq!(row_literals(rows.batch()).unwrap(), expected);
    }
}
