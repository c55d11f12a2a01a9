//! `string_agg`.

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::ScalarValue;
use plan::PlanError;

use super::call::GroupRows;
use super::{Method, OrderedFunction};
use crate::functions::{Example, FunctionDef, Implementation};

/// The function.
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "string_agg",
    forms: &[
        "string_agg([DISTINCT] text, delimiter text [ORDER BY ...]) → text",
        "string_agg([DISTINCT] bytea, delimiter bytea [ORDER BY ...]) → bytea",
    ],
    text: "The values that are not NULL behind each other, each but the first after its delimiter; NULL if there are none. \
           Without ORDER BY the values are in their own order.",
    examples: &[
        Example {
            query: "SELECT string_agg(x, ', ' ORDER BY x DESC) FROM (VALUES ('a'), ('b')) AS t(x)",
            result: "b, a",
        },
        Example { query: "SELECT string_agg(DISTINCT x, '') FROM (VALUES ('b'), ('a'), ('b')) AS t(x)", result: "ab" },
    ],
    implementation: Implementation::Aggregate(|| OrderedFunction::udaf(&METHOD)),
};

static METHOD: Method = Method {
    name: "string_agg",
    aliases: &[],
    accept,
    result: |fields| Field::new("", fields[0].data_type().clone(), true),
    keeps_nulls: false,
    sorts: false,
    within_group: false,
    compute,
    ranks: None,
};

fn accept(types: &[DataType]) -> Option<Vec<DataType>> {
    let [value, delimiter] = types else { return None };
    let accepted = match value {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => DataType::Utf8,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        _ => return None,
    };
    let fits = match delimiter {
        DataType::Null | DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => accepted == DataType::Binary,
        _ => false,
    };
    fits.then(|| vec![accepted.clone(), accepted])
}

fn compute(rows: &GroupRows<'_>) -> Result<ScalarValue, PlanError> {
    if rows.is_empty() {
        return rows.null();
    }
    let mut bytes = Vec::new();
    for (number, row) in rows.positions().enumerate() {
        if number > 0 {
            bytes.extend_from_slice(bytes_of(&rows.value(1, row)?));
        }
        bytes.extend_from_slice(bytes_of(&rows.value(0, row)?));
    }
    if *rows.result() == DataType::Binary {
        return Ok(ScalarValue::Binary(Some(bytes)));
    }
    Ok(ScalarValue::Utf8(Some(String::from_utf8(bytes).map_err(PlanError::internal)?)))
}

/// The bytes of a text or of bytes; none for NULL.
fn bytes_of(value: &ScalarValue) -> &[u8] {
    match value {
        ScalarValue::Binary(Some(bytes)) => bytes,
        other => other.try_as_str().flatten().unwrap_or_default().as_bytes(),
    }
}
