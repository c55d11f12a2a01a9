//! Prepared statements: parsed once, bound once per version of the catalog and of the settings that names depend on.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, SchemaRef};
use datafusion::common::ScalarValue;
use parking_lot::Mutex;
use plan::SqlState;
use planner::{Bound, Parsed, SessionInfo, Statement};

use super::Session;
use super::input::ColumnInput;
use crate::catalog::CatalogVersion;
use crate::catalog::measured::Measured;
use crate::error::{Result, ServerError};

/// A prepared statement.
pub struct Prepared {
    /// Its text and syntax tree; `None` for an empty statement.
    parsed: Option<Parsed>,
    /// Parameter types that the client declared.
    declared: Vec<Option<DataType>>,
    /// The newest binding.
    binding: Mutex<Arc<Binding>>,
}

/// A statement bound over one version of the catalog.
pub struct Binding {
    catalog: Arc<CatalogVersion>,
    info: Arc<SessionInfo>,
    /// The statement, with placeholders.
    pub statement: Statement,
    /// The parameters: the columns that they are inserted into, what they are cast to or compared with.
    pub parameters: Vec<FieldRef>,
    /// Columns of the rows that it returns.
    pub schema: Option<SchemaRef>,
}

impl Prepared {
    /// Whether it begins or ends a transaction block.
    pub fn is_transaction_control(&self) -> bool {
        self.parsed.as_ref().is_some_and(Parsed::is_transaction_control)
    }
}

impl Session {
    /// Prepares a statement under a name; the empty name may be used again and again.
    pub fn prepare(&mut self, name: &str, text: &str, declared: Vec<Option<DataType>>) -> Result<()> {
        if !name.is_empty() && self.prepared.contains_key(name) {
            return Err(ServerError::new(
                SqlState::DUPLICATE_PREPARED_STATEMENT,
                format!("prepared statement \"{name}\" already exists"),
            ));
        }
        self.prepared.remove(name);
        let mut statements = self.parse(text)?;
        if statements.len() > 1 {
            return Err(ServerError::new(
                SqlState::SYNTAX_ERROR,
                "cannot insert multiple commands into a prepared statement",
            ));
        }
        let parsed = statements.pop().filter(|parsed| !parsed.is_empty());
        self.check_not_failed(parsed.as_ref().is_some_and(Parsed::is_transaction_control))?;
        let binding = self.bind_parsed(parsed.as_ref(), &declared)?;
        let prepared = Prepared { parsed, declared, binding: Mutex::new(Arc::new(binding)) };
        self.prepared.insert(name.to_owned(), Arc::new(prepared));
        Ok(())
    }

    /// The prepared statement of a name.
    pub fn prepared(&self, name: &str) -> Result<Arc<Prepared>> {
        self.prepared.get(name).cloned().ok_or_else(|| {
            let shown = if name.is_empty() { "unnamed prepared statement" } else { "prepared statement" };
            let quoted = if name.is_empty() { String::new() } else { format!(" \"{name}\"") };
            ServerError::new(SqlState::INVALID_SQL_STATEMENT_NAME, format!("{shown}{quoted} does not exist"))
        })
    }

    /// Forgets a prepared statement, if there is one.
    pub fn forget_prepared(&mut self, name: &str) {
        self.prepared.remove(name);
    }

    /// DEALLOCATE; `None` is ALL.
    pub(super) fn deallocate(&mut self, name: Option<&str>) -> Result<()> {
        match name {
            None => self.prepared.clear(),
            Some(name) => {
                self.prepared(name)?;
                self.prepared.remove(name);
            }
        }
        Ok(())
    }

    /// The statement bound over the catalog as it is now.
    pub fn binding(&self, prepared: &Prepared) -> Result<Arc<Binding>> {
        let current = prepared.binding.lock().clone();
        let valid = Arc::ptr_eq(&current.info, self.info()) && Arc::ptr_eq(&current.catalog, &self.catalog());
        if valid {
            return Ok(current);
        }
        let renewed = Arc::new(self.bind_parsed(prepared.parsed.as_ref(), &prepared.declared)?);
        *prepared.binding.lock() = renewed.clone();
        Ok(renewed)
    }

    /// Resolves names and types.
    fn bind_parsed(&self, parsed: Option<&Parsed>, declared: &[Option<DataType>]) -> Result<Binding> {
        let (catalog, info) = (self.catalog(), self.info().clone());
        let bound = match parsed {
            Some(parsed) => {
                let measured = Measured::new(catalog.clone(), self.coordinator.published());
                self.coordinator.planner().bind(parsed, &measured, &info, declared)?
            }
            None => Bound { statement: Statement::Empty, parameters: Vec::new(), schema: None },
        };
        let schema = self.result_schema(&bound.statement, bound.schema)?;
        Ok(Binding { catalog, info, statement: bound.statement, parameters: bound.parameters, schema })
    }

    /// The arguments of EXECUTE, of the types of the parameters.
    pub(super) fn arguments(
        &self,
        name: &str,
        binding: &Binding,
        arguments: Vec<ScalarValue>,
    ) -> Result<Vec<ScalarValue>> {
        let (wanted, given) = (binding.parameters.len(), arguments.len());
        if wanted != given {
            let message = format!("wrong number of parameters for prepared statement \"{name}\"");
            return Err(ServerError::new(SqlState::SYNTAX_ERROR, message)
                .with_detail(format!("Expected {wanted} parameters but got {given}.")));
        }
        let zone = self.settings.style().time_zone;
        let cast = |(value, parameter): (ScalarValue, &FieldRef)| -> Result<ScalarValue> {
            let data_type = parameter.data_type();
            match value {
                value if value.data_type() == *data_type => Ok(value),
                // A literal in quotes is whatever it is read as.
                ScalarValue::Utf8(Some(text)) => {
                    let field = Arc::new(Field::new("argument", data_type.clone(), true));
                    let mut input = ColumnInput::new(&field, 1, zone)?;
                    input.append(text.as_bytes())?;
                    Ok(ScalarValue::try_from_array(&input.finish()?, 0)?)
                }
                value => Ok(value.cast_to(data_type)?),
            }
        };
        arguments.into_iter().zip(&binding.parameters).map(cast).collect()
    }

    /// A statement with values for its parameters.
    pub(super) fn with_values(&self, binding: &Binding, values: &[ScalarValue]) -> Result<Statement> {
        if values.len() != binding.parameters.len() {
            return Err(ServerError::new(
                SqlState::PROTOCOL_VIOLATION,
                format!(
                    "bind message supplies {} parameters, but prepared statement requires {}",
                    values.len(),
                    binding.parameters.len()
                ),
            ));
        }
        if values.is_empty() {
            return Ok(binding.statement.clone());
        }
        Ok(self.coordinator.planner().with_parameters(binding.statement.clone(), values)?)
    }
}
