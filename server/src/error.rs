//! Every error of the process, as PostgreSQL's protocol reports it: SQLSTATE, message, detail, hint, position.
//!
//! Errors of the planner arrive in that form; those of the runtime and of DataFusion are translated here, in one
//! place, to what PostgreSQL would say.

use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use plan::{PlanError, SqlState};

/// Result with the server's error.
pub type Result<T, E = ServerError> = std::result::Result<T, E>;

/// An error as a client sees it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ServerError {
    /// The code by which a client recognises the error.
    pub sqlstate: SqlState,
    /// What happened, one line.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// What to write instead.
    pub hint: Option<String>,
    /// Where in the message's text, counted in characters from 1.
    pub position: Option<usize>,
    /// What was being done ("COPY t, line 3, column a").
    pub context: Option<String>,
}

impl ServerError {
    /// An error with a code and a message only.
    pub fn new(sqlstate: SqlState, message: impl Into<String>) -> Self {
        ServerError { sqlstate, message: message.into(), detail: None, hint: None, position: None, context: None }
    }

    /// "X is not supported yet", with SQLSTATE 0A000.
    pub fn unsupported(what: impl std::fmt::Display) -> Self {
        ServerError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("{what} is not supported yet"))
    }

    /// A defect of the server, for one statement: the statement fails, nothing else.
    pub fn internal(what: impl std::fmt::Display) -> Self {
        ServerError::new(SqlState::INTERNAL_ERROR, format!("internal error: {what}"))
    }

    /// The statement was cancelled on request.
    pub fn cancelled() -> Self {
        ServerError::new(SqlState::QUERY_CANCELED, "canceling statement due to user request")
    }

    /// Adds more about what happened.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds what to write instead.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds what was being done, unless that is known already.
    #[must_use]
    pub fn with_context(mut self, context: impl FnOnce() -> String) -> Self {
        self.context = self.context.or_else(|| Some(context()));
        self
    }
}

/// How serious a notice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The client should look at it.
    Warning,
    /// Good to know.
    Notice,
}

impl Severity {
    /// The word that the protocol carries.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Warning => "WARNING",
            Severity::Notice => "NOTICE",
        }
    }
}

/// Something to tell the client that is no error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// How serious.
    pub severity: Severity,
    /// The code by which a client recognises it.
    pub sqlstate: SqlState,
    /// What happened, one line.
    pub message: String,
    /// More about it.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
}

/// The code of notices that report plain success.
const SUCCESSFUL_COMPLETION: SqlState = SqlState("00000");

impl Notice {
    /// A notice without a particular code.
    pub fn plain(message: impl Into<String>) -> Self {
        Notice {
            severity: Severity::Notice,
            sqlstate: SUCCESSFUL_COMPLETION,
            message: message.into(),
            detail: None,
            hint: None,
        }
    }

    /// A warning.
    pub fn warning(sqlstate: SqlState, message: impl Into<String>) -> Self {
        Notice { severity: Severity::Warning, sqlstate, message: message.into(), detail: None, hint: None }
    }

    /// Adds more about what happened.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into());
        self
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<PlanError> for ServerError {
    fn from(error: PlanError) -> Self {
        let PlanError { sqlstate, message, detail, hint, position } = error;
        ServerError { sqlstate, message, detail, hint, position, context: None }
    }
}

impl From<runtime::Error> for ServerError {
    fn from(error: runtime::Error) -> Self {
        use runtime::Error;
        match error {
            Error::DiskFull(reason) => {
                ServerError::new(SqlState::DISK_FULL, "could not write: no space left on device")
                    .with_detail(reason)
                    .with_hint("Free some space; nothing of this change was kept.")
            }
            Error::CannotOpen(reason) => ServerError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, reason),
            Error::Storage(reason) => ServerError::new(SqlState::IO_ERROR, format!("storage error: {reason}")),
            Error::Corrupted(reason) => {
                ServerError::new(SqlState::DATA_CORRUPTED, format!("stored data is damaged: {reason}"))
            }
            Error::Dataflow(reason) => ServerError::internal(format!("dataflow failed: {reason}")),
            Error::DataFusion(error) => error.into(),
            Error::Arrow(error) => error.into(),
            Error::Plan(error) => error.into(),
        }
    }
}

impl From<DataFusionError> for ServerError {
    fn from(error: DataFusionError) -> Self {
        from_datafusion(&error)
    }
}

impl From<ArrowError> for ServerError {
    fn from(error: ArrowError) -> Self {
        from_arrow(&error)
    }
}

/// Translates an error of DataFusion, looking through what wraps it.
fn from_datafusion(error: &DataFusionError) -> ServerError {
    match error {
        DataFusionError::ArrowError(error, _) => from_arrow(error),
        DataFusionError::Context(_, inner) | DataFusionError::Diagnostic(_, inner) => from_datafusion(inner),
        DataFusionError::Shared(inner) => from_datafusion(inner),
        DataFusionError::Collection(errors) => {
            errors.first().map_or_else(|| ServerError::internal("empty error"), from_datafusion)
        }
        DataFusionError::External(error) => from_external(error.as_ref()),
        DataFusionError::SQL(error, _) => ServerError::new(SqlState::SYNTAX_ERROR, error.to_string()),
        // The planner has resolved all names: this is a form of query that DataFusion loses its way in.
        DataFusionError::SchemaError(error, _) => {
            PlanError::unsupported("a query of this form").with_detail(error.to_string()).into()
        }
        DataFusionError::NotImplemented(what) => ServerError::new(SqlState::FEATURE_NOT_SUPPORTED, first_line(what)),
        DataFusionError::Plan(what) => ServerError::new(plan_state(what), first_line(what)),
        DataFusionError::Configuration(what) => ServerError::new(SqlState::INVALID_PARAMETER_VALUE, first_line(what)),
        DataFusionError::Execution(what) => from_text(what, SqlState::DATA_EXCEPTION),
        DataFusionError::ResourcesExhausted(what) => ServerError::new(SqlState::OUT_OF_MEMORY, "out of memory")
            .with_detail(first_line(what))
            .with_hint("The option --memory says how much queries may take; a more selective query takes less."),
        DataFusionError::ParquetError(_) | DataFusionError::ObjectStore(_) => {
            ServerError::internal(first_line(&error.to_string()))
        }
        DataFusionError::IoError(error) => ServerError::new(SqlState::IO_ERROR, error.to_string()),
        DataFusionError::ExecutionJoin(error) => ServerError::internal(error),
        DataFusionError::Internal(what) | DataFusionError::Substrait(what) | DataFusionError::Ffi(what) => {
            ServerError::internal(first_line(what))
        }
    }
}

/// Finds an error of ours in one that was passed through DataFusion or Arrow.
fn from_external(error: &(dyn std::error::Error + Send + Sync + 'static)) -> ServerError {
    if let Some(error) = error.downcast_ref::<ServerError>() {
        return error.clone();
    }
    if let Some(error) = error.downcast_ref::<PlanError>() {
        return error.clone().into();
    }
    if let Some(error) = error.downcast_ref::<DataFusionError>() {
        return from_datafusion(error);
    }
    if let Some(error) = error.downcast_ref::<ArrowError>() {
        return from_arrow(error);
    }
    match error.downcast_ref::<runtime::Error>() {
        Some(runtime::Error::DataFusion(error)) => from_datafusion(error),
        Some(runtime::Error::Arrow(error)) => from_arrow(error),
        Some(runtime::Error::Plan(error)) => error.clone().into(),
        Some(runtime::Error::DiskFull(reason)) => runtime::Error::DiskFull(reason.clone()).into(),
        Some(runtime::Error::Storage(reason)) => runtime::Error::Storage(reason.clone()).into(),
        Some(runtime::Error::Corrupted(reason)) => runtime::Error::Corrupted(reason.clone()).into(),
        Some(runtime::Error::CannotOpen(reason)) => runtime::Error::CannotOpen(reason.clone()).into(),
        Some(runtime::Error::Dataflow(reason)) => runtime::Error::Dataflow(reason.clone()).into(),
        None => from_text(&error.to_string(), SqlState::INTERNAL_ERROR),
    }
}

/// Translates an error of Arrow's kernels.
fn from_arrow(error: &ArrowError) -> ServerError {
    match error {
        ArrowError::DivideByZero => ServerError::new(SqlState::DIVISION_BY_ZERO, "division by zero"),
        ArrowError::ArithmeticOverflow(what) => {
            ServerError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, overflow_message(what))
        }
        ArrowError::ExternalError(error) => from_external(error.as_ref()),
        ArrowError::CastError(what) | ArrowError::ParseError(what) => {
            from_text(what, SqlState::INVALID_TEXT_REPRESENTATION)
        }
        ArrowError::NotYetImplemented(what) => ServerError::new(SqlState::FEATURE_NOT_SUPPORTED, what.clone()),
        ArrowError::InvalidArgumentError(what) | ArrowError::ComputeError(what) => {
            from_text(what, SqlState::DATA_EXCEPTION)
        }
        ArrowError::IoError(what, _) => ServerError::new(SqlState::IO_ERROR, what.clone()),
        ArrowError::OffsetOverflowError(_) => {
            ServerError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "result is too large for one batch")
        }
        other => from_text(&other.to_string(), SqlState::INTERNAL_ERROR),
    }
}

/// "integer out of range" and the like, from the operands that Arrow prints.
fn overflow_message(what: &str) -> String {
    let mut widest = 0_u8;
    let words =
        what.split(|c: char| !(c.is_ascii_digit() || c == '-')).filter(|word| word.len() > usize::from(*word == "-"));
    for number in words.filter_map(|word| word.parse::<i128>().ok()) {
        let width = if i32::try_from(number).is_ok() {
            1
        } else if i64::try_from(number).is_ok() {
            2
        } else {
            3
        };
        widest = widest.max(width);
    }
    match widest {
        1 => "integer out of range".to_owned(),
        2 => "bigint out of range".to_owned(),
        3 => "numeric field overflow".to_owned(),
        _ => "value out of range".to_owned(),
    }
}

/// The code of a planning error that came as text only.
fn plan_state(what: &str) -> SqlState {
    let lower = what.to_ascii_lowercase();
    if lower.contains("invalid function") || lower.contains("no function matches") {
        SqlState::UNDEFINED_FUNCTION
    } else if lower.contains("table") && lower.contains("not found") {
        SqlState::UNDEFINED_TABLE
    } else if lower.contains("group by") && lower.contains("aggregate") {
        SqlState::GROUPING_ERROR
    } else if lower.contains("cannot coerce") || lower.contains("cannot infer common") {
        SqlState::DATATYPE_MISMATCH
    } else {
        SqlState::SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION
    }
}

/// Translates messages of casts and functions that carry no kind.
fn from_text(what: &str, otherwise: SqlState) -> ServerError {
    let line = first_line(what);
    let lower = line.to_ascii_lowercase();
    if lower.contains("divide by zero") || lower.contains("division by zero") {
        return ServerError::new(SqlState::DIVISION_BY_ZERO, "division by zero");
    }
    if lower.contains("scalar subquery returned more than one row") {
        let message = "more than one row returned by a subquery used as an expression";
        return ServerError::new(SqlState::CARDINALITY_VIOLATION, message);
    }
    if let Some((value, type_name)) = cast_of_string(&line) {
        let message = format!("invalid input syntax for type {type_name}: \"{value}\"");
        let temporal = ["timestamp", "date", "time", "interval"].iter().any(|name| type_name.starts_with(name));
        let state = if temporal { SqlState::INVALID_DATETIME_FORMAT } else { SqlState::INVALID_TEXT_REPRESENTATION };
        return ServerError::new(state, message);
    }
    if let Some(type_name) = cast_of_number(&line) {
        return ServerError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, format!("{type_name} out of range"));
    }
    if lower.contains("too large to store in a decimal") || lower.contains("is greater than max") {
        return ServerError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow").with_detail(line);
    }
    if lower.contains("overflow") || lower.contains("out of range") {
        return ServerError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, line);
    }
    ServerError::new(otherwise, line)
}

/// Recognises "Cannot cast string 'x' to value of Int32 type" and "Error parsing timestamp from 'x': ...".
fn cast_of_string(line: &str) -> Option<(&str, &'static str)> {
    let lower = line.to_ascii_lowercase();
    let about_text = lower.starts_with("cannot cast string") || lower.starts_with("error parsing");
    if !about_text {
        return None;
    }
    let start = line.find('\'')? + 1;
    let end = line.rfind('\'').filter(|end| *end >= start)?;
    let rest = if lower.starts_with("error parsing") { &lower } else { &lower[end..] };
    Some((&line[start..end], type_in(rest)?))
}

/// Recognises "Can't cast value 300 to type Int8".
fn cast_of_number(line: &str) -> Option<&'static str> {
    let lower = line.to_ascii_lowercase();
    if !lower.starts_with("can't cast value") && !lower.starts_with("cannot cast to") {
        return None;
    }
    type_in(lower.rsplit_once("type").map_or(lower.as_str(), |(_, tail)| tail))
}

/// The Postgres name of the Arrow type that a message mentions.
fn type_in(lower: &str) -> Option<&'static str> {
    const NAMES: [(&str, &str); 17] = [
        ("interval", "interval"),
        ("timestamp", "timestamp"),
        ("date", "date"),
        ("time", "time"),
        ("boolean", "boolean"),
        ("decimal", "numeric"),
        ("uint8", "smallint"),
        ("uint16", "integer"),
        ("uint32", "bigint"),
        ("uint64", "numeric"),
        ("int8", "smallint"),
        ("int16", "smallint"),
        ("int32", "integer"),
        ("int64", "bigint"),
        ("float16", "real"),
        ("float32", "real"),
        ("float64", "double precision"),
    ];
    NAMES.iter().find(|(arrow, _)| lower.contains(arrow)).map(|(_, name)| *name)
}

/// The first line of a message: DataFusion appends backtraces and advice to report bugs.
fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(error: ArrowError) -> (SqlState, String) {
        let error = ServerError::from(DataFusionError::from(error));
        (error.sqlstate, error.message)
    }

    #[test]
    fn kernels_errors_get_the_words_of_postgres() {
        assert_eq!(of(ArrowError::DivideByZero), (SqlState::DIVISION_BY_ZERO, "division by zero".into()));
        assert_eq!(
            of(ArrowError::ArithmeticOverflow("Overflow happened on: 2147483647 + 1".into())),
            (SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range".into())
        );
        assert_eq!(
            of(ArrowError::ArithmeticOverflow("Overflow happened on: 9223372036854775807 + 1".into())),
            (SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "bigint out of range".into())
        );
        assert_eq!(
            of(ArrowError::CastError("Cannot cast string 'abc' to value of Int32 type".into())),
            (SqlState::INVALID_TEXT_REPRESENTATION, "invalid input syntax for type integer: \"abc\"".into())
        );
        assert_eq!(
            of(ArrowError::CastError("Can't cast value 3000000000 to type Int32".into())),
            (SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "integer out of range".into())
        );
    }

    #[test]
    fn our_own_errors_survive_the_way_through_datafusion() {
        let error = PlanError::new(SqlState::NOT_NULL_VIOLATION, "no").with_hint("yes");
        let passed = ServerError::from(DataFusionError::External(Box::new(error.clone())));
        assert_eq!(passed, ServerError::from(error));
    }
}
