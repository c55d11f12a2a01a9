//! Functions that do not exist, or not for these arguments, in PostgreSQL's words.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::sql::sqlparser::tokenizer::Token;
use plan::{PlanError, SqlState};

use super::errors::external;
use super::types::data_type_name;
use crate::parse::text::Source;

const HINT: &str = "No function matches the given name and argument types. You might need to add explicit type casts.";

/// Stands for a function that does not exist until the types of its arguments are known, and is an error then.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Missing {
    name: String,
    near: Option<String>,
    position: Option<usize>,
    signature: Signature,
}

/// The stand-in for a function that does not exist.
pub(super) fn stand_in(name: &str, near: Option<&str>, source: &Source) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::new_from_impl(Missing {
        name: name.to_string(),
        near: near.map(str::to_string),
        position: source.position_of_name(None, name),
        signature: Signature::user_defined(Volatility::Immutable),
    }))
}

impl ScalarUDFImpl for Missing {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        Ok(arguments.to_vec())
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let types: Vec<String> = arguments.iter().map(type_of_argument).collect();
        Err(external(self.error(&types)))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types = args.arg_fields.iter().zip(args.scalar_arguments).map(|(field, constant)| match constant {
            Some(ScalarValue::Int64(Some(value))) if i32::try_from(*value).is_ok() => "integer".to_string(),
            Some(ScalarValue::Utf8(_)) => "unknown".to_string(),
            _ => type_of_argument(field.data_type()),
        });
        let types: Vec<String> = types.collect();
        Err(external(self.error(&types)))
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(external(self.error(&[])))
    }
}

impl Missing {
    fn error(&self, types: &[String]) -> PlanError {
        let error = undefined(&self.name, types).at(self.position);
        match &self.near {
            Some(near) => error.with_hint(format!("Perhaps you meant {near}.")),
            None => error,
        }
    }
}

fn undefined(name: &str, types: &[String]) -> PlanError {
    let signature = format!("{name}({})", types.join(", "));
    PlanError::new(SqlState::UNDEFINED_FUNCTION, format!("function {signature} does not exist")).with_hint(HINT)
}

/// A type as it stands in a function's signature: without precision.
fn type_of_argument(data_type: &DataType) -> String {
    match data_type {
        DataType::Decimal128(_, _) | DataType::Decimal256(_, _) => "numeric".to_string(),
        other => data_type_name(other),
    }
}

/// The error behind DataFusion's "... argument types 'lower(Int64)'", if a message says that.
pub(super) fn wrong_arguments(message: &str, source: &Source) -> Option<PlanError> {
    let call = message.split("argument types '").nth(1)?;
    let call = &call[..call.find(")'")?];
    let (name, list) = call.split_once('(')?;
    let constants = constant_arguments(source, name);
    let types = split_top(list).into_iter().enumerate().map(|(index, text)| {
        if let Some(Some(constant)) = constants.get(index) {
            return Some((*constant).to_string());
        }
        text.parse::<DataType>().ok().map(|data_type| type_of_argument(&data_type))
    });
    let types: Option<Vec<String>> = types.collect();
    Some(undefined(name, &types?).at(source.position_of_name(None, name)))
}

/// Splits at the commas outside of parentheses.
fn split_top(list: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::new(), 0_usize, 0);
    for (at, character) in list.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(list[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    if !list.trim().is_empty() {
        parts.push(list[start..].trim());
    }
    parts
}

/// For each argument of the first call of a function, PostgreSQL's type of it if it is a constant whose type DataFusion
/// sees differently.
fn constant_arguments(source: &Source, name: &str) -> Vec<Option<&'static str>> {
    let tokens = source.tokens();
    let is_name = |token: &Token| matches!(token, Token::Word(word) if word.quote_style.is_none() && word.value.to_lowercase() == name);
    let Some(start) = tokens.windows(2).position(|pair| is_name(&pair[0]) && pair[1] == Token::LParen) else {
        return Vec::new();
    };
    let (mut constants, mut argument, mut depth) = (Vec::new(), Vec::new(), 0_usize);
    for token in &tokens[start + 2..] {
        match token {
            Token::LParen | Token::LBracket => depth += 1,
            Token::RParen | Token::RBracket if depth > 0 => depth -= 1,
            Token::RParen => break,
            Token::Comma if depth == 0 => {
                constants.push(constant_type(&argument));
                argument.clear();
                continue;
            }
            _ => {}
        }
        argument.push(token);
    }
    constants.push(constant_type(&argument));
    constants
}

fn constant_type(argument: &[&Token]) -> Option<&'static str> {
    match argument {
        [Token::Number(digits, _)] => digits.parse::<i32>().ok().map(|_| "integer"),
        [Token::SingleQuotedString(_)] => Some("unknown"),
        _ => None,
    }
}
