//! Functions over arrays: array_dims, array_fill, trim_array, generate_subscripts, array_overlap.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, ListArray, ListBuilder, PrimitiveBuilder, StringArray, UInt64Array,
};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field, Int32Type, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use plan::SqlState;

use super::overload::{Form, Overloaded, each, error};
use crate::delta::key::KeyEncoder;
use crate::functions::{Example, FunctionDef, Implementation};

/// Items of an array that one call may make.
const ITEMS_MAX: i64 = 10_000_000;

/// `array_dims`
pub static DIMS: FunctionDef = FunctionDef {
    name: "array_dims",
    forms: &["array_dims(anyarray) → text"],
    text: "The bounds of every dimension.",
    examples: &[
        Example { query: "SELECT array_dims(make_array(5, 6))", result: "[1:2]" },
        Example { query: "SELECT array_dims(make_array(make_array(1, 2), make_array(3, 4)))", result: "[1:2][1:2]" },
    ],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf(
            "array_dims",
            &["list_dims"],
            |types, _| match types {
                [list @ DataType::List(_)] => Some(Form { arguments: vec![list.clone()], result: DataType::Utf8 }),
                _ => None,
            },
            |arguments, _| {
                let dims = each(arguments, |row| {
                    let (mut text, mut items) = (String::new(), arguments[0].as_list::<i32>().value(row));
                    while !items.is_empty() {
                        text.push_str(&format!("[1:{}]", items.len()));
                        match items.as_list_opt::<i32>() {
                            Some(list) if list.is_valid(0) => items = list.value(0),
                            _ => break,
                        }
                    }
                    Ok(Some(text).filter(|text| !text.is_empty()))
                })?;
                Ok(Arc::new(StringArray::from(dims)))
            },
        )
    }),
};

/// `array_fill`
pub static FILL: FunctionDef = FunctionDef {
    name: "array_fill",
    forms: &["array_fill(value any, lengths integer[]) → anyarray"],
    text: "An array of one length with the same value throughout.",
    examples: &[Example { query: "SELECT array_fill(7, make_array(3))", result: "{7,7,7}" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf(
            "array_fill",
            &[],
            |types, _| match types {
                [value, DataType::List(item)] if item.data_type().is_integer() && value != &DataType::Null => {
                    let lengths = DataType::List(Arc::new(Field::new("item", DataType::Int64, true)));
                    let result = DataType::List(Arc::new(Field::new("item", value.clone(), true)));
                    Some(Form { arguments: vec![value.clone(), lengths], result })
                }
                _ => None,
            },
            fill,
        )
    }),
};

/// `array_overlap`
pub static OVERLAP: FunctionDef = FunctionDef {
    name: "array_overlap",
    forms: &["array_overlap(anyarray, anyarray) → boolean"],
    text: "Whether two arrays have an element in common: the operator `&&`. NULL is equal to nothing.",
    examples: &[
        Example { query: "SELECT array_overlap(make_array(1, 2), make_array(2, 3))", result: "t" },
        Example { query: "SELECT array_overlap(make_array(1, NULL), make_array(NULL, 3))", result: "f" },
    ],
    implementation: Implementation::Scalar(|| Overloaded::udf("array_overlap", &[], choose_overlap, overlap)),
};

fn choose_overlap(types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let list = match types {
        [DataType::List(left), DataType::List(right)] => {
            let item = comparison_coercion(left.data_type(), right.data_type())?;
            DataType::List(Arc::new(Field::new_list_field(item, true)))
        }
        [list @ DataType::List(_), DataType::Null] | [DataType::Null, list @ DataType::List(_)] => list.clone(),
        _ => return None,
    };
    Some(Form { arguments: vec![list.clone(), list], result: DataType::Boolean })
}

fn overlap(arguments: &[ArrayRef], _result: &DataType) -> Result<ArrayRef> {
    let external = |error| DataFusionError::External(Box::new(error));
    let [left, right] = [arguments[0].as_list::<i32>(), arguments[1].as_list::<i32>()];
    let encoder = KeyEncoder::new(&[left.value_type()]).map_err(external)?;
    let keys = |list: &ListArray| encoder.encode(&[Arc::clone(list.values())]).map_err(external);
    let (left_keys, right_keys) = (keys(left)?, keys(right)?);
    let items = |list: &ListArray, row: usize| {
        let bounds = list.value_offsets()[row] as usize..list.value_offsets()[row + 1] as usize;
        let values = Arc::clone(list.values());
        bounds.filter(move |item| values.is_valid(*item))
    };
    let overlaps = each(arguments, |row| {
        let known: HashSet<&[u8]> = items(left, row).map(|item| left_keys.row(item)).collect();
        Ok(Some(items(right, row).any(|item| known.contains(right_keys.row(item)))))
    })?;
    Ok(Arc::new(BooleanArray::from(overlaps)))
}

/// `trim_array`
pub static TRIM: FunctionDef = FunctionDef {
    name: "trim_array",
    forms: &["trim_array(anyarray, count integer) → anyarray"],
    text: "The array without so many of its last items.",
    examples: &[Example { query: "SELECT trim_array(make_array(1, 2, 3), 1)", result: "{1,2}" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf(
            "trim_array",
            &[],
            |types, _| match types {
                [list @ DataType::List(_), count] if count.is_integer() => {
                    Some(Form { arguments: vec![list.clone(), DataType::Int64], result: list.clone() })
                }
                _ => None,
            },
            trim,
        )
    }),
};

/// `generate_subscripts`
pub static SUBSCRIPTS: FunctionDef = FunctionDef {
    name: "generate_subscripts",
    forms: &["generate_subscripts(anyarray, dimension integer) → rows of integer"],
    text: "The positions of the items in a dimension of an array.",
    examples: &[Example { query: "SELECT generate_subscripts(make_array(5, 6), 1)", result: "{1,2}" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf(
            "generate_subscripts",
            &[],
            |types, _| match types {
                [list @ DataType::List(_), dimension] if dimension.is_integer() => {
                    let result = DataType::List(Arc::new(Field::new("item", DataType::Int32, true)));
                    Some(Form { arguments: vec![list.clone(), DataType::Int64], result })
                }
                _ => None,
            },
            subscripts,
        )
    }),
};

fn wrong(message: &str) -> DataFusionError {
    error(SqlState::ARRAY_SUBSCRIPT_ERROR, message)
}

/// An array of the items at some places for each row; NULL for a row without.
fn lists(values: &ArrayRef, rows: Vec<Option<Vec<u64>>>, list: &DataType) -> Result<ArrayRef> {
    let DataType::List(item) = list else {
        return Err(error(SqlState::INTERNAL_ERROR, "an array is no list"));
    };
    let nulls = rows.iter().map(Option::is_some).collect::<Vec<bool>>().into();
    let offsets = OffsetBuffer::from_lengths(rows.iter().map(|row| row.as_ref().map_or(0, Vec::len)));
    let places: UInt64Array = rows.into_iter().flatten().flatten().map(Some).collect();
    let items = take(values.as_ref(), &places, None)?;
    Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, items, Some(nulls))?))
}

fn fill(arguments: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
    let lengths = arguments[1].as_list::<i32>();
    let rows = (0..lengths.len()).map(|row| {
        if lengths.is_null(row) {
            return Ok(None);
        }
        let lengths = lengths.value(row);
        let lengths = lengths.as_primitive::<Int64Type>();
        if lengths.len() != 1 || lengths.null_count() > 0 {
            let message = "array_fill with other than one dimension is not supported yet";
            return Err(error(SqlState::FEATURE_NOT_SUPPORTED, message));
        }
        match lengths.value(0) {
            count @ 0..=ITEMS_MAX => Ok(Some(vec![row as u64; count as usize])),
            _ => Err(error(SqlState::PROGRAM_LIMIT_EXCEEDED, "array size exceeds the maximum allowed")),
        }
    });
    lists(&arguments[0], rows.collect::<Result<Vec<_>>>()?, result)
}

fn trim(arguments: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
    let (arrays, counts) = (arguments[0].as_list::<i32>(), arguments[1].as_primitive::<Int64Type>());
    let offsets = arrays.value_offsets();
    let rows = each(arguments, |row| {
        let (start, end) = (i64::from(offsets[row]), i64::from(offsets[row + 1]));
        let count = counts.value(row);
        if count < 0 || count > end - start {
            return Err(wrong(&format!("number of elements to trim must be between 0 and {}", end - start)));
        }
        Ok(Some((start..end - count).map(|place| place as u64).collect()))
    })?;
    lists(arrays.values(), rows, result)
}

fn subscripts(arguments: &[ArrayRef], _result: &DataType) -> Result<ArrayRef> {
    let dimensions = arguments[1].as_primitive::<Int64Type>();
    let lengths = each(arguments, |row| {
        let mut items = arguments[0].as_list::<i32>().value(row);
        let dimension = dimensions.value(row);
        if dimension < 1 {
            return Ok(Some(0));
        }
        for _ in 1..dimension {
            match items.as_list_opt::<i32>() {
                Some(list) if !list.is_empty() && list.is_valid(0) => items = list.value(0),
                _ => return Ok(Some(0)),
            }
        }
        Ok(Some(items.len()))
    })?;
    let mut builder = ListBuilder::new(PrimitiveBuilder::<Int32Type>::new());
    for length in lengths {
        match length {
            Some(length) => {
                (1..=length as i32).for_each(|place| builder.values().append_value(place));
                builder.append(true);
            }
            None => builder.append(false),
        }
    }
    Ok(Arc::new(builder.finish()))
}
