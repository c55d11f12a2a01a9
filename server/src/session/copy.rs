//! COPY: a stream of bytes → batches of rows ([`CopyReader`]), rows → lines ([`LineWriter`]).
//!
//! The stream is cut into records and fields by [`lines`]; every field goes straight into the Arrow builder of its column.
//! A batch is handed over whenever [`BATCH_ROWS`] rows are complete, so memory stays bounded however long the stream is.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::Schema;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::DFSchema;
use datafusion::physical_expr::PhysicalExpr;
use plan::SqlState;
use planner::catalog::TableInfo;
use planner::statement::{CopyFormat, CopyIn};

use super::Session;
use super::input::ColumnInput;
use crate::error::{Result, ServerError};

mod lines;
mod write;

use lines::{Cut, Cutter};
pub use write::LineWriter;

/// Rows of a batch.
pub const BATCH_ROWS: usize = 8192;

/// From here on a record counts as long.
const LONG_RECORD_BYTES: usize = 1 << 20;

/// How much of a bad field an error shows.
const SHOWN_CHARACTERS_MAX: usize = 100;

/// Reads the rows of COPY FROM STDIN.
pub struct CopyReader {
    table: Arc<TableInfo>,
    /// Unqualified name of the table, for errors.
    name: String,
    /// Positions in the table of the columns in the data.
    columns: Vec<usize>,
    inputs: Vec<ColumnInput>,
    /// Which of them refuse NULL.
    not_null: Vec<bool>,
    /// Expressions for the columns that are not in the data.
    defaults: Vec<(usize, Arc<dyn PhysicalExpr>)>,
    cutter: Cutter,
    /// Bytes of records that are not complete yet.
    rest: Vec<u8>,
    /// Full batches, before they are taken.
    full: Vec<RecordBatch>,
    /// Rows in the builders.
    pending: usize,
    rows: u64,
    /// Line of the stream, from 1, on which the current record begins.
    line: u64,
    /// The first line is still to be skipped.
    header: bool,
    /// The end marker has been read.
    ended: bool,
    /// The incomplete record at the end is not looked at again before so many bytes of it are there: a long one would
    /// otherwise be looked through again and again.
    retry_bytes: usize,
}

impl Session {
    /// Prepares for the rows of COPY FROM STDIN.
    pub(super) fn copy_reader(&mut self, copy: CopyIn) -> Result<CopyReader> {
        self.transaction()?;
        let zone = self.settings.style().time_zone;
        let schema = &copy.table.relation.schema;
        let inputs = copy
            .columns
            .iter()
            .map(|column| ColumnInput::new(&schema.fields()[*column], BATCH_ROWS, zone))
            .collect::<Result<Vec<_>>>()?;
        let state = self.coordinator.planner().session_state();
        let mut defaults = Vec::with_capacity(copy.defaults.len());
        for (column, expression) in copy.defaults {
            defaults.push((column, state.create_physical_expr(expression, &DFSchema::empty())?));
        }
        let not_null = copy.columns.iter().map(|column| copy.table.columns[*column].not_null).collect();
        let name = copy.table.relation.name.rsplit('.').next().unwrap_or_default().to_owned();
        Ok(CopyReader {
            name,
            columns: copy.columns,
            inputs,
            defaults,
            cutter: Cutter::new(&copy.options),
            rest: Vec::new(),
            full: Vec::new(),
            pending: 0,
            rows: 0,
            line: 1,
            header: copy.options.header,
            ended: false,
            retry_bytes: 0,
            not_null,
            table: copy.table,
        })
    }

    /// Hands rows of COPY to the transaction.
    pub async fn copy_rows(&mut self, table: &Arc<TableInfo>, batch: RecordBatch) -> Result<()> {
        let (guard, transaction) = self.guarded_transaction()?;
        guard.run(transaction.copy_rows(table, batch)).await
    }
}

impl CopyReader {
    /// The table.
    pub fn table(&self) -> &Arc<TableInfo> {
        &self.table
    }

    /// Columns in the data.
    pub fn columns(&self) -> usize {
        self.columns.len()
    }

    /// Rows read.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Where in the stream it is, as errors say it.
    pub fn place(&self) -> String {
        format!("COPY {}, line {}", self.name, self.line)
    }

    /// Reads a part of the stream.
    pub fn push(&mut self, bytes: &[u8]) -> Result<()> {
        if self.rest.is_empty() {
            let used = self.read(bytes, false)?;
            self.rest.extend_from_slice(&bytes[used..]);
        } else {
            let mut buffer = std::mem::take(&mut self.rest);
            buffer.extend_from_slice(bytes);
            if buffer.len() < self.retry_bytes {
                self.rest = buffer;
                return Ok(());
            }
            let used = self.read(&buffer, false)?;
            buffer.drain(..used);
            self.rest = buffer;
        }
        self.retry_bytes = if self.rest.len() > LONG_RECORD_BYTES { 2 * self.rest.len() } else { 0 };
        Ok(())
    }

    /// The stream is over: what is left is the last record, without a newline.
    pub fn end(&mut self) -> Result<()> {
        let buffer = std::mem::take(&mut self.rest);
        self.read(&buffer, true)?;
        Ok(())
    }

    /// A batch of rows; with `all`, also one that is not full.
    pub fn take_batch(&mut self, all: bool) -> Result<Option<RecordBatch>> {
        if !self.full.is_empty() {
            return Ok(Some(self.full.remove(0)));
        }
        if all && self.pending > 0 { self.finish_batch().map(Some) } else { Ok(None) }
    }

    /// Reads all complete records; returns how many bytes they are.
    fn read(&mut self, bytes: &[u8], last: bool) -> Result<usize> {
        let mut used = 0;
        while used < bytes.len() && !self.ended {
            let cut = self.cutter.record(&bytes[used..], last).map_err(|error| error.with_context(|| self.place()))?;
            let Some(Cut { bytes: length, lines, end_marker }) = cut else {
                return Ok(used);
            };
            if end_marker {
                self.ended = true;
            } else if self.header {
                self.header = false;
            } else {
                self.row(&bytes[used..used + length])?;
            }
            self.line += lines;
            used += length;
        }
        // What follows the end marker is not for us.
        Ok(if self.ended { bytes.len() } else { used })
    }

    /// Appends the fields of the record that the cutter has just cut.
    fn row(&mut self, record: &[u8]) -> Result<()> {
        let fields = self.cutter.fields();
        let wanted = self.columns.len();
        if fields.len() != wanted {
            let empty_line = wanted == 0 && fields.len() == 1;
            if fields.len() > wanted && !empty_line {
                return Err(ServerError::new(SqlState::BAD_COPY_FILE_FORMAT, "extra data after last expected column")
                    .with_context(|| format!("{}: \"{}\"", self.place(), shown(record.trim_ascii_end()))));
            }
            if fields.len() < wanted {
                let column = self.column_name(fields.len());
                return Err(ServerError::new(
                    SqlState::BAD_COPY_FILE_FORMAT,
                    format!("missing data for column \"{column}\""),
                )
                .with_context(|| format!("{}: \"{}\"", self.place(), shown(record.trim_ascii_end()))));
            }
        }
        for (index, input) in self.inputs.iter_mut().enumerate() {
            match self.cutter.value(index, record) {
                None if self.not_null[index] => {
                    let column = self.column_name(index);
                    return Err(ServerError::new(
                        SqlState::NOT_NULL_VIOLATION,
                        format!(
                            "null value in column \"{column}\" of relation \"{}\" violates not-null constraint",
                            self.name
                        ),
                    )
                    .with_context(|| format!("{}: \"{}\"", self.place(), shown(record.trim_ascii_end()))));
                }
                None => input.append_null(),
                Some(text) => {
                    if let Err(error) = input.append(text) {
                        let text = shown(text);
                        let column = self.column_name(index);
                        return Err(error.with_context(|| format!("{}, column {column}: \"{text}\"", self.place())));
                    }
                }
            }
        }
        self.rows += 1;
        self.pending += 1;
        if self.pending == BATCH_ROWS {
            let batch = self.finish_batch()?;
            self.full.push(batch);
        }
        Ok(())
    }

    /// Name of a column in the data.
    fn column_name(&self, index: usize) -> String {
        self.columns
            .get(index)
            .map_or_else(String::new, |column| self.table.relation.schema.field(*column).name().clone())
    }

    /// The rows in the builders as a batch of all columns of the table.
    fn finish_batch(&mut self) -> Result<RecordBatch> {
        let rows = std::mem::take(&mut self.pending);
        let schema = self.table.relation.schema.clone();
        let mut columns: Vec<Option<ArrayRef>> = vec![None; schema.fields().len()];
        for (column, input) in self.columns.iter().zip(&mut self.inputs) {
            columns[*column] = Some(input.finish()?);
        }
        if !self.defaults.is_empty() {
            let options = RecordBatchOptions::new().with_row_count(Some(rows));
            let empty = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options)?;
            for (column, expression) in &self.defaults {
                let values = expression.evaluate(&empty)?.into_array(rows)?;
                let wanted = schema.field(*column).data_type();
                columns[*column] = Some(if values.data_type() == wanted {
                    values
                } else {
                    datafusion::arrow::compute::cast(&values, wanted)?
                });
            }
        }
        let columns = columns
            .into_iter()
            .collect::<Option<Vec<_>>>()
            .ok_or_else(|| ServerError::internal("a column of COPY has neither data nor default"))?;
        // NOT NULL is checked, with a better error, where the rows go.
        let relaxed: Vec<_> = schema.fields().iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
        Ok(RecordBatch::try_new(Arc::new(Schema::new(relaxed)), columns)?)
    }
}

/// A field as an error shows it.
fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    match text.char_indices().nth(SHOWN_CHARACTERS_MAX) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into_owned(),
    }
}

/// Keeps the format's name where only options are at hand.
pub fn is_csv(format: CopyFormat) -> bool {
    format == CopyFormat::Csv
}

#[cfg(test)]
mod tests;
