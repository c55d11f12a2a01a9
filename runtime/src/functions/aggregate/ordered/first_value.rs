//! `first_value`, `last_value`, `nth_value` and `any_value` over groups.

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use plan::PlanError;

use super::call::GroupRows;
use super::{Method, OrderedFunction};
use crate::functions::{Example, FunctionDef, Implementation};

/// `first_value`.
pub static FIRST_VALUE: FunctionDef = FunctionDef {
    name: "first_value",
    forms: &["first_value(any [ORDER BY ...]) [IGNORE NULLS] → the same type"],
    text: "The value of the first row in the order of the call; without ORDER BY the least value. Beside this form over groups \
           there is the window function.",
    examples: &[Example {
        query: "SELECT first_value(x ORDER BY y DESC) FROM (VALUES ('a', 1), ('b', 2)) AS t(x, y)",
        result: "b",
    }],
    implementation: Implementation::Aggregate(|| OrderedFunction::udaf(&FIRST)),
};

/// `last_value`.
pub static LAST_VALUE: FunctionDef = FunctionDef {
    name: "last_value",
    forms: &["last_value(any [ORDER BY ...]) [IGNORE NULLS] → the same type"],
    text: "The value of the last row in the order of the call; without ORDER BY NULL if there is one, else the greatest value. \
           Beside this form over groups there is the window function.",
    examples: &[Example {
        query: "SELECT last_value(x ORDER BY y DESC) FROM (VALUES ('a', 1), ('b', 2)) AS t(x, y)",
        result: "a",
    }],
    implementation: Implementation::Aggregate(|| OrderedFunction::udaf(&LAST)),
};

/// `nth_value`.
pub static NTH_VALUE: FunctionDef = FunctionDef {
    name: "nth_value",
    forms: &["nth_value(any, n bigint [ORDER BY ...]) [IGNORE NULLS] → the same type"],
    text: "The value of the n-th row in the order of the call, counted from the end if n is negative; NULL if there are fewer \
           rows. Beside this form over groups there is the window function.",
    examples: &[
        Example { query: "SELECT nth_value(x, 2 ORDER BY x) FROM (VALUES (5), (3), (4)) AS t(x)", result: "4" },
        Example { query: "SELECT nth_value(x, -1 ORDER BY x) FROM (VALUES (5), (3), (4)) AS t(x)", result: "5" },
    ],
    implementation: Implementation::Aggregate(|| OrderedFunction::udaf(&NTH)),
};

/// `any_value`.
pub static ANY_VALUE: FunctionDef = FunctionDef {
    name: "any_value",
    forms: &["any_value(any) → the same type"],
    text: "One of the values that are not NULL: always the least.",
    examples: &[Example { query: "SELECT any_value(x) FROM (VALUES (NULL), (3), (2)) AS t(x)", result: "2" }],
    implementation: Implementation::Aggregate(|| OrderedFunction::udaf(&ANY)),
};

static FIRST: Method = Method {
    name: "first_value",
    aliases: &[],
    accept: one,
    result: same,
    keeps_nulls: true,
    sorts: false,
    within_group: false,
    compute: |rows| nth(rows, Some(1)),
    ranks: None,
};

static LAST: Method = Method { name: "last_value", compute: |rows| nth(rows, Some(-1)), ..FIRST };

static NTH: Method = Method { name: "nth_value", accept: value_and_number, compute: nth_value, ..FIRST };

static ANY: Method = Method { name: "any_value", keeps_nulls: false, ..FIRST };

fn one(types: &[DataType]) -> Option<Vec<DataType>> {
    (types.len() == 1).then(|| types.to_vec())
}

fn same(fields: &[FieldRef]) -> Field {
    fields[0].as_ref().clone().with_nullable(true)
}

fn value_and_number(types: &[DataType]) -> Option<Vec<DataType>> {
    match types {
        [value, number] if number.is_integer() || number.is_null() => Some(vec![value.clone(), DataType::Int64]),
        _ => None,
    }
}

fn nth_value(rows: &GroupRows<'_>) -> Result<ScalarValue, PlanError> {
    match rows.direct(1)? {
        ScalarValue::Int64(number) => nth(rows, number),
        _ => rows.null(),
    }
}

fn nth(rows: &GroupRows<'_>, number: Option<i64>) -> Result<ScalarValue, PlanError> {
    let rank = match number {
        Some(number) if number > 0 => number - 1,
        Some(number) if number < 0 => rows.total() + number,
        _ => return rows.null(),
    };
    match rows.row_at(rank).filter(|_| rank >= 0) {
        Some(row) => rows.value(0, row),
        None => rows.null(),
    }
}
