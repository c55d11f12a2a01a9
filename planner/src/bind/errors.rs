//! DataFusion's planning errors in PostgreSQL's words: SQLSTATE, message, hint and position.

use datafusion::common::SchemaError;
use datafusion::error::DataFusionError;
use plan::{PlanError, SqlState};

use super::missing;
use crate::catalog::nearest;
use crate::parse::text::Source;

/// One of our errors on its way through DataFusion.
pub(crate) fn external(error: PlanError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// The planning error behind what DataFusion returned, where the statement's text is not at hand.
pub fn from_datafusion(error: DataFusionError) -> PlanError {
    plan_error(error, &Source::whole(""))
}

/// The planning error behind what DataFusion returned; positions are looked up in the statement's text.
pub(crate) fn plan_error(error: DataFusionError, source: &Source) -> PlanError {
    with_position_of_value(without_position(error, source), source)
}

/// A value that cannot be read stands in quotes at the end of the message, and as a constant in the text.
fn with_position_of_value(error: PlanError, source: &Source) -> PlanError {
    let about_value = [
        SqlState::INVALID_TEXT_REPRESENTATION,
        SqlState::INVALID_DATETIME_FORMAT,
        SqlState::DATETIME_FIELD_OVERFLOW,
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
    ];
    if error.position.is_some() || !about_value.contains(&error.sqlstate) {
        return error;
    }
    let Some((_, value)) = error.message.strip_suffix('"').and_then(|text| text.split_once('"')) else { return error };
    let position = source.position_of_string(value);
    error.at(position)
}

fn without_position(error: DataFusionError, source: &Source) -> PlanError {
    match error {
        DataFusionError::External(inner) => match inner.downcast::<PlanError>() {
            Ok(error) => *error,
            Err(inner) => PlanError::internal(inner),
        },
        DataFusionError::Diagnostic(_, inner) | DataFusionError::Context(_, inner) => plan_error(*inner, source),
        DataFusionError::Collection(errors) => match errors.into_iter().next() {
            Some(first) => plan_error(first, source),
            None => PlanError::internal("an empty collection of errors"),
        },
        DataFusionError::Shared(inner) => match inner.as_ref() {
            DataFusionError::External(inner) => match inner.downcast_ref::<PlanError>() {
                Some(error) => error.clone(),
                None => PlanError::internal(inner),
            },
            other => from_message(&other.strip_backtrace(), source),
        },
        DataFusionError::SchemaError(inner, _) => from_schema_error(*inner, source),
        DataFusionError::ArrowError(inner, _) => from_message(&inner.to_string(), source),
        DataFusionError::NotImplemented(message) => not_implemented(without_backtrace(&message)),
        DataFusionError::SQL(inner, _) => PlanError::new(SqlState::SYNTAX_ERROR, inner.to_string()),
        DataFusionError::Plan(message) | DataFusionError::Execution(message) => {
            from_message(without_backtrace(&message), source)
        }
        other => from_message(&other.strip_backtrace(), source),
    }
}

/// What DataFusion calls missing. Numbers that are too long or too large for its decimals are among that.
fn not_implemented(message: &str) -> PlanError {
    if message.starts_with("Decimal scale ") || message.starts_with("Decimal precision ") {
        return PlanError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
            .with_detail("A numeric has 76 digits at most.");
    }
    PlanError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

fn without_backtrace(message: &str) -> &str {
    message.split("\n\nbacktrace:").next().unwrap_or(message)
}

fn from_schema_error(error: SchemaError, source: &Source) -> PlanError {
    match error {
        SchemaError::FieldNotFound { field, valid_fields } => {
            let relation = field.relation.as_ref().map(|relation| relation.table().to_string());
            let position = source.position_of_name(relation.as_deref(), &field.name);
            if let Some(relation) = &relation
                && !valid_fields
                    .iter()
                    .any(|valid| valid.relation.as_ref().is_some_and(|valid| valid.table() == relation))
            {
                let error = PlanError::new(
                    SqlState::UNDEFINED_TABLE,
                    format!("missing FROM-clause entry for table \"{relation}\""),
                )
                .at(position);
                let tables = valid_fields.iter().filter_map(|valid| valid.relation.as_ref()).map(|valid| valid.table());
                return match nearest(relation, tables) {
                    Some(near) => error.with_hint(format!("Perhaps you meant the table \"{near}\".")),
                    None => error,
                };
            }
            let message = match &relation {
                Some(relation) => format!("column {relation}.{} does not exist", field.name),
                None => format!("column \"{}\" does not exist", field.name),
            };
            let error = PlanError::new(SqlState::UNDEFINED_COLUMN, message).at(position);
            let near = nearest(&field.name, valid_fields.iter().map(|valid| valid.name.as_str()));
            let near = near.and_then(|near| valid_fields.iter().find(|valid| valid.name == near));
            match near {
                Some(near) => {
                    let full = match &near.relation {
                        Some(relation) => format!("{}.{}", relation.table(), near.name),
                        None => near.name.clone(),
                    };
                    error.with_hint(format!("Perhaps you meant to reference the column \"{full}\"."))
                }
                None => error,
            }
        }
        SchemaError::AmbiguousReference { field } => {
            PlanError::new(SqlState::AMBIGUOUS_COLUMN, format!("column reference \"{}\" is ambiguous", field.name))
                .at(source.position_of_name(None, &field.name))
        }
        SchemaError::DuplicateQualifiedField { qualifier, name } => {
            let table = qualifier.table();
            if source.text.is_empty() {
                return PlanError::new(SqlState::DUPLICATE_COLUMN, format!("column \"{name}\" is there twice"));
            }
            PlanError::new(DUPLICATE_ALIAS, format!("table name \"{table}\" specified more than once"))
                .with_hint("Give one of the two an alias.")
        }
        SchemaError::DuplicateUnqualifiedField { name } => {
            PlanError::new(SqlState::DUPLICATE_COLUMN, format!("column \"{name}\" specified more than once"))
        }
    }
}

/// A name stands for two tables of a FROM clause.
const DUPLICATE_ALIAS: SqlState = SqlState("42712");

/// What DataFusion says only in words.
fn from_message(message: &str, source: &Source) -> PlanError {
    let message = message
        .trim_start_matches("Error during planning: ")
        .trim_start_matches("Execution error: ")
        .trim_start_matches("type_coercion\ncaused by\n")
        .trim_start_matches("Error during planning: ");
    if let Some(error) = missing::wrong_arguments(message, source) {
        return error;
    }
    if let Some(name) = message.strip_prefix("Invalid function '") {
        return unknown_function(name.split('\'').next().unwrap_or(name), message, source);
    }
    let grouping = [
        "must be in group by clause",
        "must appear in the GROUP BY clause",
        "could not be resolved from available columns",
        "HAVING clause references non-aggregate values",
    ];
    if grouping.iter().any(|words| message.contains(words)) {
        return grouping_error(message, source);
    }
    let arguments = [
        "failed to match any signature",
        "No function matches",
        "Failed to coerce arguments",
        "does not support zero arguments",
        "Function '",
        "expects",
        "takes exactly",
    ];
    if arguments.iter().any(|words| message.contains(words)) && message.to_lowercase().contains("function") {
        return PlanError::new(SqlState::UNDEFINED_FUNCTION, first_line(message));
    }
    let types = [
        "Cannot coerce arithmetic expression",
        "Cannot infer common argument type",
        "Cannot get result type",
        "There isn't a common type",
        "Invalid comparison operation",
        "can't be evaluated because there isn't a common",
    ];
    if types.iter().any(|words| message.contains(words)) {
        return PlanError::new(SqlState::UNDEFINED_FUNCTION, operator_message(message))
            .with_hint("You might need to add explicit type casts.");
    }
    if let Some(target) = message.split("Can't cast value ").nth(1).and_then(|rest| rest.split("to type ").nth(1)) {
        let name = match target.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default() {
            "Int16" => "smallint",
            "Int32" => "integer",
            "Int64" => "bigint",
            _ => "value",
        };
        return PlanError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{name} out of range"));
    }
    if message.contains("Cannot cast") || message.contains("Unsupported CAST") {
        return PlanError::new(SqlState::CANNOT_COERCE, first_line(message));
    }
    if message.contains("must be of type boolean")
        || message.contains("non-boolean")
        || message.contains("Incompatible")
    {
        return PlanError::new(SqlState::DATATYPE_MISMATCH, first_line(message));
    }
    if message.contains("columns but only")
        || message.contains("different number of columns")
        || message.contains("have the same number of columns")
        || message.contains("unequal number of columns")
    {
        return PlanError::new(
            SqlState::SYNTAX_ERROR,
            "each UNION, INTERSECT or EXCEPT query and each list of column \
            names must have the same number of columns",
        )
        .with_detail(first_line(message));
    }
    if message.contains("not supported") || message.contains("not implemented") || message.contains("Unsupported") {
        return PlanError::new(SqlState::FEATURE_NOT_SUPPORTED, first_line(message));
    }
    if message.contains("Divide by zero") || message.contains("DivideByZero") {
        return PlanError::new(SqlState::DIVISION_BY_ZERO, "division by zero");
    }
    PlanError::new(SqlState::SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION, first_line(message))
}

fn unknown_function(name: &str, message: &str, source: &Source) -> PlanError {
    let error = PlanError::new(SqlState::UNDEFINED_FUNCTION, format!("function {name} does not exist"))
        .at(source.position_of_name(None, name));
    let near = message.split("Did you mean '").nth(1).and_then(|rest| rest.split('\'').next());
    match near {
        Some(near) if nearest(name, std::iter::once(near)).is_some() => {
            error.with_hint(format!("Perhaps you meant {near}."))
        }
        _ => error.with_hint("No function matches the given name and argument types."),
    }
}

fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or(message).to_string()
}

fn grouping_error(message: &str, source: &Source) -> PlanError {
    // The column that is not grouped stands in quotes, or after "Expression".
    let column = message.split('"').nth(1).or_else(|| message.split("Expression ").nth(1)?.split(' ').next());
    let Some(column) = column else {
        return PlanError::new(SqlState::GROUPING_ERROR, first_line(message));
    };
    let name = column.rsplit('.').next().unwrap_or(column);
    PlanError::new(
        SqlState::GROUPING_ERROR,
        format!("column \"{column}\" must appear in the GROUP BY clause or be used in an aggregate function"),
    )
    .at(source.position_of_name(None, name))
}

/// "operator does not exist: A op B", if the message names the two types.
fn operator_message(message: &str) -> String {
    first_line(message)
}
