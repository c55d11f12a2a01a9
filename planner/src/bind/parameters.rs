//! Parameters: `$1`, `$2`, ...

use datafusion::common::ScalarValue;
use plan::PlanError;

use crate::Statement;

/// Replaces parameters by values.
pub(crate) fn with_parameters(statement: Statement, values: &[ScalarValue]) -> Result<Statement, PlanError> {
    if values.is_empty() {
        return Ok(statement);
    }
    Err(PlanError::unsupported("a parameter"))
}
