//! The failure of an operator as a whole: one row in the errors of the view for as long as it lasts.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};
use datafusion::arrow::record_batch::RecordBatch;

use super::{Output, errors_schema};
use crate::delta::Delta;
use crate::delta::key::partition_of;
use crate::error::Result;
use crate::state::StateTable;

/// Whether an operator has failed, in a state table: the empty key → the message of the error row, while there is one.
pub(super) struct Failure {
    operator: &'static str,
    table: StateTable,
}

impl Failure {
    pub(super) fn new(operator: &'static str, table: StateTable) -> Self {
        Failure { operator, table }
    }

    /// Whether the operator failed when it ran last.
    pub(super) fn is_there(&self) -> Result<bool> {
        Ok(self.table.get(partition_of(&[]), &[])?.is_some())
    }

    /// Replaces the error row by that of a new failure, or by none.
    pub(super) fn change(&self, message: Option<&str>, output: &mut Output) -> Result<()> {
        let partition = partition_of(&[]);
        let before = self.table.get(partition, &[])?;
        let before = before.as_deref().map(String::from_utf8_lossy);
        if before.as_deref() == message {
            return Ok(());
        }
        if let Some(before) = before.as_deref() {
            output.emit_errors(self.row(before, -1)?);
        }
        match message {
            Some(message) => {
                self.table.put_slice(partition, &[], message.as_bytes());
                output.emit_errors(self.row(message, 1)?);
            }
            None => self.table.delete(partition, &[]),
        }
        Ok(())
    }

    fn row(&self, message: &str, weight: i64) -> Result<Delta> {
        let column = |text: &str| -> ArrayRef { Arc::new(StringArray::from(vec![text])) };
        let batch = RecordBatch::try_new(errors_schema(), vec![column(self.operator), column(message), column("")])?;
        Ok(Delta::new(batch, Some(Int64Array::from(vec![weight]))))
    }
}
