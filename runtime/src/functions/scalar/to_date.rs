//! `to_date`: reads a date by a pattern.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Date32Array};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::ScalarUDF;

use super::format::{datetime, input, pattern};
use super::overload::{Form, Overloaded, is_text};
use crate::functions::{Example, FunctionDef, Implementation};

/// The function.
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "to_date",
    forms: &["to_date(text, pattern text) → date"],
    text: "The date that a text shows, with the patterns of `to_char`. A separator in the pattern matches any in the \
           text. A year of two digits is the one nearest to 2020.",
    examples: &[
        Example { query: "SELECT to_date('05 Dec 2000', 'DD Mon YYYY')", result: "2000-12-05" },
        Example { query: "SELECT to_date('20240229', 'YYYYMMDD')", result: "2024-02-29" },
    ],
    implementation: Implementation::Scalar(make),
};

fn make() -> ScalarUDF {
    Overloaded::udf("to_date", &[], choose, evaluate)
}

fn choose(arguments: &[DataType], _constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let fits = arguments.len() == 2 && arguments.iter().all(is_text);
    fits.then(|| Form { arguments: vec![DataType::Utf8; 2], result: DataType::Date32 })
}

fn evaluate(arguments: &[ArrayRef], _result: &DataType) -> Result<ArrayRef> {
    let (texts, patterns) = (arguments[0].as_string::<i32>(), arguments[1].as_string::<i32>());
    let dates = texts.iter().zip(patterns).map(|pair| {
        let (Some(text), Some(pattern)) = pair else { return Ok(None) };
        let pieces = pattern::split(pattern, datetime::KEYWORDS, datetime::NAMES);
        let date = input::read(text, &pieces)?.date(text)?;
        Ok(Some(date.signed_duration_since(chrono::NaiveDate::default()).num_days() as i32))
    });
    Ok(Arc::new(dates.collect::<Result<Date32Array>>()?))
}
