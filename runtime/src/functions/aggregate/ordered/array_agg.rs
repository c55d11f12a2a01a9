//! `array_agg`.

use std::sync::Arc;

use datafusion::arrow::array::{ListArray, UInt32Array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::ScalarValue;
use plan::PlanError;

use super::call::GroupRows;
use super::{Method, OrderedFunction};
use crate::functions::{Example, FunctionDef, Implementation};

/// The function.
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "array_agg",
    forms: &["array_agg([DISTINCT] any [ORDER BY ...]) → array of the type"],
    text: "All values, NULLs too, as an array; NULL if there are no rows. Without ORDER BY the values are in their own order, \
           NULLs last, because rows of a relation have none; rows that ORDER BY leaves equal are ordered by the value.",
    examples: &[
        Example {
            query: "SELECT array_agg(x ORDER BY y DESC) FROM (VALUES (1, 1), (2, 2)) AS t(x, y)",
            result: "{2,1}",
        },
        Example { query: "SELECT array_agg(x) FROM (VALUES (2), (NULL), (1)) AS t(x)", result: "{1,2,NULL}" },
        Example { query: "SELECT array_agg(DISTINCT x) FROM (VALUES (2), (1), (2)) AS t(x)", result: "{1,2}" },
    ],
    implementation: Implementation::Aggregate(|| OrderedFunction::udaf(&METHOD)),
};

static METHOD: Method = Method {
    name: "array_agg",
    aliases: &[],
    accept: |types| (types.len() == 1).then(|| types.to_vec()),
    result: |fields| Field::new("", list_of(fields[0].data_type()), true),
    keeps_nulls: true,
    sorts: false,
    within_group: false,
    compute,
    ranks: None,
};

/// The type of arrays of a type.
pub(super) fn list_of(item: &DataType) -> DataType {
    DataType::List(Arc::new(Field::new_list_field(item.clone(), true)))
}

fn compute(rows: &GroupRows<'_>) -> Result<ScalarValue, PlanError> {
    let Some(values) = rows.column(0).filter(|_| !rows.is_empty()) else { return rows.null() };
    // A group has fewer than 2^32 rows: their positions would not fit memory.
    let positions = UInt32Array::from_iter_values(rows.positions().map(|row| row as u32));
    let values = compute::take(values, &positions, None).map_err(PlanError::internal)?;
    let DataType::List(item) = rows.result() else { return rows.null() };
    let offsets = OffsetBuffer::from_lengths([values.len()]);
    let list = ListArray::try_new(Arc::clone(item), offsets, values, None).map_err(PlanError::internal)?;
    Ok(ScalarValue::List(Arc::new(list)))
}
