//! Functions of regular expressions: regexp_split_to_array, regexp_matches, regexp_substring (`substring(x from pattern)`),
//! regexp_substr.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, ListBuilder, StringArray, StringBuilder};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::error::Result;
use plan::SqlState;
use regex::{Regex, RegexBuilder};

use super::overload::{Form, Overloaded, each, error, is_text};
use crate::functions::{Example, FunctionDef, Implementation};

/// `regexp_split_to_array`
pub static SPLIT: FunctionDef = FunctionDef {
    name: "regexp_split_to_array",
    forms: &["regexp_split_to_array(text, pattern text [, flags text]) → text[]"],
    text: "What is between the matches of a pattern. `regexp_split_to_table` gives it as rows.",
    examples: &[Example { query: "SELECT regexp_split_to_array('a, b,c', ',\\s*')", result: "{a,b,c}" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf("regexp_split_to_array", &[], |types, _| choose(types, texts()), split)
    }),
};

/// `regexp_matches`
pub static MATCHES: FunctionDef = FunctionDef {
    name: "regexp_matches",
    forms: &["regexp_matches(text, pattern text [, flags text]) → rows of text[]"],
    text: "For the first match of a pattern, or for each with the flag `g`, the texts of its groups, or the match itself \
           if it has none.",
    examples: &[Example {
        query: "SELECT regexp_matches('foobarbequebaz', '(bar)(beque)')",
        result: "{\"{bar,beque}\"}",
    }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf("regexp_matches", &[], |types, _| choose(types, lists()), matches)
    }),
};

/// `substring(text from pattern)`
pub static SUBSTRING: FunctionDef = FunctionDef {
    name: "regexp_substring",
    forms: &["regexp_substring(text, pattern text) → text"],
    text: "The first match of a pattern, or what its first group matched; `substring(text from pattern)` is the same.",
    examples: &[
        Example { query: "SELECT regexp_substring('Thomas', '...$')", result: "mas" },
        Example { query: "SELECT regexp_substring('Thomas', '(.)m')", result: "o" },
    ],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf(
            "regexp_substring",
            &[],
            |types, _| choose(types, DataType::Utf8),
            |arguments, _| {
                let subjects = arguments[0].as_string::<i32>();
                let mut known = Known::default();
                let found = each(arguments, |row| {
                    let pattern = known.pattern(arguments, row)?;
                    let captures = pattern.captures(subjects.value(row));
                    let group = usize::from(pattern.captures_len() > 1);
                    Ok(captures.and_then(|captures| captures.get(group).map(|found| found.as_str().to_string())))
                })?;
                Ok(Arc::new(StringArray::from(found)))
            },
        )
    }),
};

/// `regexp_substr`
pub static SUBSTR: FunctionDef = FunctionDef {
    name: "regexp_substr",
    forms: &["regexp_substr(text, pattern text) → text"],
    text: "The first match of a pattern.",
    examples: &[Example { query: "SELECT regexp_substr('abcabc', 'b.')", result: "bc" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf(
            "regexp_substr",
            &[],
            |types, _| choose(types, DataType::Utf8),
            |arguments, _| {
                let subjects = arguments[0].as_string::<i32>();
                let mut known = Known::default();
                let found = each(arguments, |row| {
                    let pattern = known.pattern(arguments, row)?;
                    Ok(pattern.find(subjects.value(row)).map(|found| found.as_str().to_string()))
                })?;
                Ok(Arc::new(StringArray::from(found)))
            },
        )
    }),
};

fn texts() -> DataType {
    DataType::List(Arc::new(Field::new("item", DataType::Utf8, true)))
}

fn lists() -> DataType {
    DataType::List(Arc::new(Field::new("item", texts(), true)))
}

fn choose(types: &[DataType], result: DataType) -> Option<Form> {
    let fits = matches!(types.len(), 2 | 3) && types.iter().all(is_text);
    fits.then(|| Form { arguments: vec![DataType::Utf8; types.len()], result })
}

/// The pattern of the last row, which neighbouring rows mostly share.
#[derive(Default)]
struct Known {
    last: Option<(String, String, Regex)>,
}

impl Known {
    fn pattern(&mut self, arguments: &[ArrayRef], row: usize) -> Result<Regex> {
        let pattern = arguments[1].as_string::<i32>().value(row);
        let flags = arguments.get(2).map_or("", |flags| flags.as_string::<i32>().value(row));
        if let Some((last, last_flags, regex)) = &self.last
            && last == pattern
            && last_flags == flags
        {
            return Ok(regex.clone());
        }
        let regex = compile(pattern, flags)?;
        self.last = Some((pattern.to_string(), flags.to_string(), regex.clone()));
        Ok(regex)
    }
}

/// A pattern with PostgreSQL's flags: `i`, `c`, `g`, `n`, `m`, `s`, `x`.
fn compile(pattern: &str, flags: &str) -> Result<Regex> {
    let mut builder = RegexBuilder::new(pattern);
    // A dot matches the end of a line too, unless the flag n is given.
    builder.dot_matches_new_line(true);
    for flag in flags.chars() {
        match flag {
            'i' => builder.case_insensitive(true),
            'c' => builder.case_insensitive(false),
            'x' => builder.ignore_whitespace(true),
            'n' | 'm' => builder.multi_line(true).dot_matches_new_line(false),
            's' => builder.multi_line(false).dot_matches_new_line(true),
            'g' => &mut builder,
            other => {
                let message = format!("invalid regular expression option: \"{other}\"");
                return Err(error(SqlState::INVALID_PARAMETER_VALUE, message));
            }
        };
    }
    builder.build().map_err(|wrong| {
        let reason = wrong.to_string();
        let reason = reason.lines().last().unwrap_or_default().trim_start_matches("error: ").to_string();
        error(SqlState::INVALID_REGULAR_EXPRESSION, format!("invalid regular expression: {reason}"))
    })
}

fn is_known(arguments: &[ArrayRef], row: usize) -> bool {
    arguments.iter().all(|argument| datafusion::arrow::array::Array::is_valid(argument, row))
}

fn split(arguments: &[ArrayRef], _result: &DataType) -> Result<ArrayRef> {
    let subjects = arguments[0].as_string::<i32>();
    let mut known = Known::default();
    let mut builder = ListBuilder::new(StringBuilder::new());
    for row in 0..datafusion::arrow::array::Array::len(subjects) {
        if !is_known(arguments, row) {
            builder.append(false);
            continue;
        }
        let (subject, pattern) = (subjects.value(row), known.pattern(arguments, row)?);
        let mut from = 0;
        for found in pattern.find_iter(subject) {
            // A match of nothing at the ends parts nothing.
            if found.end() == 0 || (found.is_empty() && found.start() >= subject.len()) {
                continue;
            }
            builder.values().append_value(&subject[from..found.start()]);
            from = found.end();
        }
        builder.values().append_value(&subject[from..]);
        builder.append(true);
    }
    Ok(Arc::new(builder.finish()))
}

fn matches(arguments: &[ArrayRef], _result: &DataType) -> Result<ArrayRef> {
    let subjects = arguments[0].as_string::<i32>();
    let mut known = Known::default();
    let mut builder = ListBuilder::new(ListBuilder::new(StringBuilder::new()));
    for row in 0..datafusion::arrow::array::Array::len(subjects) {
        if !is_known(arguments, row) {
            builder.append(false);
            continue;
        }
        let pattern = known.pattern(arguments, row)?;
        let all = arguments.get(2).is_some_and(|flags| flags.as_string::<i32>().value(row).contains('g'));
        let most = if all { usize::MAX } else { 1 };
        for captures in pattern.captures_iter(subjects.value(row)).take(most) {
            let groups = builder.values();
            let from = usize::from(captures.len() > 1);
            for group in from..captures.len() {
                groups.values().append_option(captures.get(group).map(|found| found.as_str()));
            }
            groups.append(true);
        }
        builder.append(true);
    }
    Ok(Arc::new(builder.finish()))
}
