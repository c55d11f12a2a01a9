//! What a failed evaluation is called towards users: PostgreSQL's words where they exist.

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;

/// The message of a failure, without the layers that it came through.
pub fn message_of(error: &DataFusionError) -> String {
    match error.find_root() {
        DataFusionError::ArrowError(error, _) => arrow_message(error),
        DataFusionError::Execution(message) if message.contains("Scalar subquery returned more than one row") => {
            "more than one row returned by a subquery used as an expression".to_string()
        }
        DataFusionError::Execution(message) | DataFusionError::Plan(message) | DataFusionError::Internal(message) => {
            first_line(message)
        }
        DataFusionError::External(error) => first_line(&error.to_string()),
        other => first_line(&other.strip_backtrace()),
    }
}

fn arrow_message(error: &ArrowError) -> String {
    match error {
        ArrowError::DivideByZero => "division by zero".to_string(),
        ArrowError::ArithmeticOverflow(message) => format!("value out of range: {}", first_line(message)),
        ArrowError::ExternalError(error) => match error.downcast_ref::<DataFusionError>() {
            Some(inner) => message_of(inner),
            None => first_line(&error.to_string()),
        },
        ArrowError::CastError(message)
        | ArrowError::ComputeError(message)
        | ArrowError::InvalidArgumentError(message)
        | ArrowError::ParseError(message) => first_line(message),
        other => first_line(&other.to_string()),
    }
}

fn first_line(message: &str) -> String {
    message.lines().next().unwrap_or_default().trim().to_string()
}
