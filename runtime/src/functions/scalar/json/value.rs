//! SQL values as JSON.

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, Float32Type, Float64Type};
use datafusion::error::Result;
use plan::json::{Value, ordered, quote};

use super::function::{external, json_type};
use crate::delta::literal::ColumnText;

/// A column of SQL values, written as JSON row by row.
pub struct JsonWriter<'a> {
    array: &'a ArrayRef,
    kind: Kind<'a>,
}

enum Kind<'a> {
    /// JSON already.
    Json,
    /// In quotes.
    Text(ColumnText<'a>),
    /// In quotes, with a T between date and time.
    Instant(ColumnText<'a>),
    /// As it is printed.
    Plain(ColumnText<'a>),
    /// A number if it is finite.
    Float(ColumnText<'a>),
    Bool,
    List {
        items: ArrayRef,
        item: Field,
    },
    Struct(Vec<(String, Field, ArrayRef)>),
    Null,
}

impl<'a> JsonWriter<'a> {
    /// For a column of a type.
    pub fn new(array: &'a ArrayRef, field: &Field) -> Result<JsonWriter<'a>> {
        let printer = || {
            ColumnText::new(array.as_ref()).map_err(|error| datafusion::error::DataFusionError::External(error.into()))
        };
        let kind = match array.data_type() {
            DataType::Null => Kind::Null,
            DataType::Boolean => Kind::Bool,
            DataType::Utf8 if json_type(field).is_some() => Kind::Json,
            data_type if data_type.is_integer() => Kind::Plain(printer()?),
            DataType::Decimal128(_, _) | DataType::Decimal256(_, _) => Kind::Plain(printer()?),
            DataType::Float32 | DataType::Float64 => Kind::Float(printer()?),
            DataType::Timestamp(_, _) => Kind::Instant(printer()?),
            DataType::List(item) => {
                let mut item = item.as_ref().clone();
                // An array of json says so itself.
                if let Some(name) = field.metadata().get("pg_type").and_then(|name| name.strip_suffix("[]")) {
                    item = item.with_metadata([("pg_type".to_string(), name.to_string())].into());
                }
                Kind::List { items: array.as_list::<i32>().values().clone(), item }
            }
            DataType::Struct(fields) => {
                let columns = array.as_struct().columns();
                let named = fields.iter().zip(columns).enumerate().map(|(index, (field, column))| {
                    // A row without names.
                    let name = match field.name().strip_prefix('c').and_then(|rest| rest.parse::<usize>().ok()) {
                        Some(number) if number == index => format!("f{}", index + 1),
                        _ => field.name().clone(),
                    };
                    (name, field.as_ref().clone(), column.clone())
                });
                Kind::Struct(named.collect())
            }
            _ => Kind::Text(printer()?),
        };
        Ok(JsonWriter { array, kind })
    }

    /// Writes the value of a row; null for NULL. jsonb has spaces between its parts.
    pub fn write(&self, row: usize, out: &mut String) -> Result<()> {
        if self.array.is_null(row) {
            out.push_str("null");
            return Ok(());
        }
        match &self.kind {
            Kind::Null => out.push_str("null"),
            Kind::Bool => out.push_str(if self.array.as_boolean().value(row) { "true" } else { "false" }),
            Kind::Json => out.push_str(self.array.as_string::<i32>().value(row)),
            Kind::Text(text) => quote(&text.value(row).unwrap_or_default(), out),
            Kind::Plain(text) => out.push_str(&text.value(row).unwrap_or_default()),
            Kind::Instant(text) => {
                let text = text.value(row).unwrap_or_default().replacen(' ', "T", 1);
                let zone = matches!(self.array.data_type(), DataType::Timestamp(_, Some(_)));
                quote(&if zone { format!("{text}:00") } else { text }, out);
            }
            Kind::Float(text) => {
                let text = text.value(row).unwrap_or_default();
                if self.is_finite(row) { out.push_str(&text) } else { quote(&text, out) }
            }
            Kind::List { items, item } => {
                let offsets = self.array.as_list::<i32>().value_offsets();
                let writer = JsonWriter::new(items, item)?;
                out.push('[');
                for (index, place) in (offsets[row]..offsets[row + 1]).enumerate() {
                    out.push_str(if index == 0 { "" } else { "," });
                    writer.write(place as usize, out)?;
                }
                out.push(']');
            }
            Kind::Struct(columns) => {
                out.push('{');
                for (index, (name, field, column)) in columns.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { "," });
                    quote(name, out);
                    out.push(':');
                    JsonWriter::new(column, field)?.write(row, out)?;
                }
                out.push('}');
            }
        }
        Ok(())
    }

    fn is_finite(&self, row: usize) -> bool {
        match self.array.data_type() {
            DataType::Float32 => self.array.as_primitive::<Float32Type>().value(row).is_finite(),
            _ => self.array.as_primitive::<Float64Type>().value(row).is_finite(),
        }
    }

    /// The text of a row as json or jsonb.
    pub fn text(&self, row: usize, binary: bool) -> Result<String> {
        let mut out = String::new();
        self.write(row, &mut out)?;
        if binary { plan::json::canonical(&out).map_err(external) } else { Ok(out) }
    }
}

/// Writes a value without spaces, in its own order.
pub fn compact(value: &Value<'_>, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        Value::Number(digits) => out.push_str(digits),
        Value::String(text) => quote(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                compact(&item.value, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (index, (key, member)) in members.iter().enumerate() {
                out.push_str(if index == 0 { "" } else { "," });
                quote(key, out);
                out.push(':');
                compact(&member.value, out);
            }
            out.push('}');
        }
    }
}

/// The members of an object as a reader of the type meets them: all of json, those that jsonb keeps.
pub fn members<'v, 'a>(value: &'v Value<'a>, binary: bool) -> Vec<(&'v str, &'v plan::json::Json<'a>)> {
    match value {
        Value::Object(members) if binary => {
            ordered(members).into_iter().map(|(key, member)| (key.as_ref(), member)).collect()
        }
        Value::Object(members) => members.iter().map(|(key, member)| (key.as_ref(), member)).collect(),
        _ => Vec::new(),
    }
}
