//! Checks of rows that are about to be written, rows in messages, and RETURNING.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::execution::SessionState;
use plan::SqlState;
use planner::catalog::TableInfo;
use planner::statement::Returning;

use crate::error::ServerError;
use crate::read;

/// The values of some columns of a row, as messages show them.
pub fn row_text(batch: &RecordBatch, columns: &[usize], row: usize) -> String {
    let texts: Vec<String> = columns.iter().map(|column| value_text(batch.column(*column), row)).collect();
    texts.join(", ")
}

fn value_text(column: &ArrayRef, row: usize) -> String {
    if column.is_null(row) {
        return "null".to_owned();
    }
    let options = FormatOptions::new()
        .with_date_format(Some("%Y-%m-%d"))
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f+00"));
    match ArrayFormatter::try_new(column.as_ref(), &options) {
        Ok(formatter) => match column.data_type() {
            datafusion::arrow::datatypes::DataType::Boolean => formatter.value(row).to_string()[..1].to_owned(),
            _ => formatter.value(row).to_string(),
        },
        Err(_) => "?".to_owned(),
    }
}

/// Checks NOT NULL.
pub fn check_not_null(info: &TableInfo, batch: &RecordBatch) -> Result<(), ServerError> {
    for (column, definition) in info.columns.iter().enumerate() {
        let array = batch.column(column);
        if !definition.not_null || array.null_count() == 0 {
            continue;
        }
        let row = (0..array.len()).find(|row| array.is_null(*row)).unwrap_or(0);
        let table = info.relation.name.rsplit('.').next().unwrap_or_default();
        let all: Vec<usize> = (0..batch.num_columns()).collect();
        return Err(ServerError::new(
            SqlState::NOT_NULL_VIOLATION,
            format!(
                "null value in column \"{}\" of relation \"{table}\" violates not-null constraint",
                definition.name
            ),
        )
        .with_detail(format!("Failing row contains ({}).", row_text(batch, &all, row))));
    }
    Ok(())
}

/// Rows that were checked against NOT NULL, in exactly the table's columns.
pub fn checked(info: &TableInfo, batch: &RecordBatch) -> Result<RecordBatch, ServerError> {
    check_not_null(info, batch)?;
    let schema = &info.relation.schema;
    if batch.schema_ref() == schema {
        return Ok(batch.clone());
    }
    let columns: Result<Vec<ArrayRef>, ServerError> = schema
        .fields()
        .iter()
        .zip(batch.columns())
        .map(|(field, column)| {
            if column.data_type() == field.data_type() {
                Ok(column.clone())
            } else {
                Ok(datafusion::arrow::compute::cast(column, field.data_type())?)
            }
        })
        .collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns?, &options)?)
}

/// The rows of RETURNING for rows of the table.
pub fn returning(
    state: &SessionState,
    returning: &Returning,
    rows: &[RecordBatch],
) -> Result<Vec<RecordBatch>, ServerError> {
    rows.iter()
        .filter(|batch| batch.num_rows() > 0)
        .map(|batch| read::evaluate(state, &returning.expressions, &returning.input, batch, &returning.schema))
        .collect()
}
