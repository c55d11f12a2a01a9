//! INSERT, UPDATE and DELETE within a transaction: from rows to changes of its buffers.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, UInt32Array, new_null_array};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::{DFSchemaRef, ScalarValue};
use datafusion::logical_expr::Expr;
use plan::SqlState;
use planner::SessionInfo;
use planner::catalog::TableInfo;
use planner::statement::{Cell, Delete, Insert, InsertSource, OnConflict, Returning, Update};
use runtime::state::relation::ScanOptions;

use super::DmlResult;
use super::locks::Mode;
use super::returning::{checked, returning};
use super::transaction::{Transaction, refuse_append_only};
use super::write::duplicate_key;
use crate::error::ServerError;

impl Transaction {
    /// INSERT.
    pub async fn insert(&mut self, insert: &Insert, session: &SessionInfo) -> Result<DmlResult, ServerError> {
        let mode = if insert.on_conflict.is_some() { Mode::Exclusive } else { Mode::Shared };
        self.lock(&insert.table, mode, "INSERT").await?;
        let rows = match &insert.source {
            InsertSource::Rows(rows) => vec![literal_rows(&insert.table, rows)?],
            InsertSource::Plan(plan) => {
                let sources = self.sources()?;
                self.coordinator.reader().collect(&sources, plan, session).await?
            }
        };
        let mut written = Vec::with_capacity(rows.len());
        let mut proposed = Vec::with_capacity(rows.len());
        for batch in &rows {
            proposed.push(checked(&insert.table, batch)?);
        }
        match &insert.on_conflict {
            None => {
                for batch in proposed {
                    if self.is_block() {
                        self.refuse_duplicates(&insert.table, &batch)?;
                    }
                    self.buffer(&insert.table)?.insert(batch.clone())?;
                    written.push(batch);
                }
            }
            Some(_) if insert.table.primary_key.is_empty() => {
                for batch in proposed {
                    self.buffer(&insert.table)?.insert(batch.clone())?;
                    written.push(batch);
                }
            }
            Some(on_conflict) => {
                if matches!(on_conflict, OnConflict::Update { .. }) {
                    refuse_append_only(&insert.table, "update")?;
                }
                let batch = compute::concat_batches(&insert.table.relation.schema, &proposed)?;
                written.extend(self.upsert(&insert.table, on_conflict, batch, session)?);
            }
        }
        self.result(written, insert.returning.as_ref(), session)
    }

    /// UPDATE: the rows that the query found, under the exclusive lock, on the newest snapshot.
    pub async fn update(&mut self, update: &Update, session: &SessionInfo) -> Result<DmlResult, ServerError> {
        let table = &update.table;
        self.lock(table, Mode::Exclusive, "UPDATE").await?;
        refuse_append_only(table, "update")?;
        let sources = self.sources()?;
        let found = self.coordinator.reader().collect(&sources, &update.query, session).await?;
        let width = table.relation.schema.fields().len();
        let mut written = Vec::with_capacity(found.len());
        for batch in found {
            let (rowids, columns) = split_rowid(&batch)?;
            let old = part(&table.relation.schema, &columns[..width], batch.num_rows())?;
            let mask = self.buffer(table)?.delete(&old, rowids)?;
            let new = columns[width..].iter().map(|column| compute::filter(column, &mask)).collect::<Result<_, _>>()?;
            let new = loose(&table.relation.schema, new, mask.true_count())?;
            written.push(checked(table, &new)?);
        }
        for batch in &written {
            if self.is_block() {
                self.refuse_duplicates(table, batch)?;
            }
            self.buffer(table)?.insert(batch.clone())?;
        }
        self.result(written, update.returning.as_ref(), session)
    }

    /// DELETE.
    pub async fn delete(&mut self, delete: &Delete, session: &SessionInfo) -> Result<DmlResult, ServerError> {
        let table = &delete.table;
        self.lock(table, Mode::Exclusive, "DELETE").await?;
        refuse_append_only(table, "delete from")?;
        let sources = self.sources()?;
        let found = self.coordinator.reader().collect(&sources, &delete.query, session).await?;
        let mut deleted = Vec::with_capacity(found.len());
        for batch in found {
            let (rowids, columns) = split_rowid(&batch)?;
            let old = part(&table.relation.schema, columns, batch.num_rows())?;
            let mask = self.buffer(table)?.delete(&old, rowids)?;
            deleted.push(compute::filter_record_batch(&old, &mask)?);
        }
        self.result(deleted, delete.returning.as_ref(), session)
    }

    fn result(
        &self,
        rows: Vec<RecordBatch>,
        clause: Option<&Returning>,
        session: &SessionInfo,
    ) -> Result<DmlResult, ServerError> {
        let count = rows.iter().map(|batch| batch.num_rows() as u64).sum();
        let returning = match clause {
            None => None,
            Some(clause) => {
                let state = self.coordinator.reader().state(session);
                Some((clause.schema.clone(), returning(&state, clause, &rows)?))
            }
        };
        Ok(DmlResult { count, returning })
    }

    /// Checks that rows about to be inserted meet no row that the transaction sees, nor each other.
    fn refuse_duplicates(&mut self, table: &Arc<TableInfo>, batch: &RecordBatch) -> Result<(), ServerError> {
        if table.primary_key.is_empty() || batch.num_rows() == 0 {
            return Ok(());
        }
        let snapshot = self.coordinator.published().snapshot.clone();
        let buffer = self.buffer(table)?;
        let keys = buffer.stored.storage.keys(batch, None)?;
        let own = buffer.find_own(&keys)?;
        let committed = buffer.find_committed(snapshot.as_ref(), &keys)?;
        let mut seen = std::collections::HashSet::with_capacity(keys.len());
        for (row, key) in keys.iter().enumerate() {
            if own[row].is_some() || committed[row] || !seen.insert(key) {
                return Err(duplicate_key(table, batch, row));
            }
        }
        Ok(())
    }

    /// INSERT ... ON CONFLICT: the rows that were inserted or updated, in the order of the proposed ones.
    fn upsert(
        &mut self,
        table: &Arc<TableInfo>,
        on_conflict: &OnConflict,
        proposed: RecordBatch,
        session: &SessionInfo,
    ) -> Result<Option<RecordBatch>, ServerError> {
        if proposed.num_rows() == 0 {
            return Ok(None);
        }
        let fates = self.fates(table, on_conflict, &proposed)?;
        let inserted: Vec<u32> = fates.rows(|fate| matches!(fate, Fate::Insert));
        let conflicting: Vec<u32> = fates.rows(|fate| matches!(fate, Fate::Existing { .. }));
        let new = compute::take_record_batch(&proposed, &UInt32Array::from(inserted.clone()))?;
        let OnConflict::Update { assignments, condition, schema } = on_conflict else {
            self.buffer(table)?.insert(new.clone())?;
            return Ok(Some(new));
        };
        let excluded = compute::take_record_batch(&proposed, &UInt32Array::from(conflicting.clone()))?;
        let (existing, rowids) = fates.existing(&table.relation.schema)?;
        let state = self.coordinator.reader().state(session);
        let both = Both { schema, existing: &existing, excluded: &excluded };
        let mask = both.condition(&state, condition.as_ref())?;
        let updated = both.updated(&state, table, assignments)?;
        let updated = checked(table, &compute::filter_record_batch(&updated, &mask)?)?;
        let gone = compute::filter_record_batch(&existing, &mask)?;
        let rowids: Int64Array = rowids
            .values()
            .iter()
            .zip(mask.iter())
            .filter(|(_, kept)| *kept == Some(true))
            .map(|(id, _)| *id)
            .collect();
        self.buffer(table)?.delete(&gone, &rowids)?;
        self.refuse_duplicates(table, &updated)?;
        let conflicting: Vec<u32> =
            conflicting.iter().zip(mask.iter()).filter(|(_, kept)| *kept == Some(true)).map(|(row, _)| *row).collect();
        // In the order in which they were proposed.
        let all = compute::concat_batches(&table.relation.schema, [&new, &updated])?;
        let proposals: Vec<u32> = inserted.into_iter().chain(conflicting).collect();
        let mut order: Vec<u32> = (0..u32::try_from(proposals.len()).unwrap_or(u32::MAX)).collect();
        order.sort_by_key(|row| proposals[*row as usize]);
        let written = compute::take_record_batch(&all, &UInt32Array::from(order))?;
        self.buffer(table)?.insert(written.clone())?;
        Ok(Some(written))
    }

    /// What becomes of each proposed row.
    fn fates(
        &mut self,
        table: &Arc<TableInfo>,
        on_conflict: &OnConflict,
        proposed: &RecordBatch,
    ) -> Result<Fates, ServerError> {
        let snapshot = self.coordinator.published().snapshot.clone();
        let updates = matches!(on_conflict, OnConflict::Update { .. });
        let buffer = self.buffer(table)?;
        let keys = buffer.stored.storage.keys(proposed, None)?;
        let own = buffer.find_own(&keys)?;
        let committed = buffer.find_committed(snapshot.as_ref(), &keys)?;
        let mut seen: HashMap<&Bytes, ()> = HashMap::with_capacity(keys.len());
        let mut fates = Vec::with_capacity(keys.len());
        for (row, key) in keys.iter().enumerate() {
            if seen.insert(key, ()).is_some() {
                if updates {
                    return Err(twice());
                }
                fates.push(Fate::Nothing);
                continue;
            }
            fates.push(match (own[row], committed[row]) {
                (None, false) => Fate::Insert,
                _ if !updates => Fate::Nothing,
                (Some(position), _) => {
                    let existing =
                        buffer.own_row(position).ok_or_else(|| ServerError::internal("an own row is gone"))?;
                    Fate::Existing { rowid: -1 - i64::try_from(position).unwrap_or(0), row: existing }
                }
                (None, true) => {
                    let key_equals: Result<Vec<ScalarValue>, _> = table
                        .primary_key
                        .iter()
                        .map(|column| ScalarValue::try_from_array(proposed.column(*column), row))
                        .collect();
                    let options = ScanOptions { key_equals: Some(key_equals?), ..ScanOptions::default() };
                    let found = buffer.stored.storage.scan(snapshot.clone(), options).next().transpose()?;
                    let found = found.ok_or_else(|| ServerError::internal("a row with a known key is not found"))?;
                    Fate::Existing { rowid: 0, row: found.batch }
                }
            });
        }
        Ok(Fates(fates))
    }
}

/// What becomes of a row proposed for insertion.
enum Fate {
    Insert,
    Nothing,
    /// A row with its key exists.
    Existing {
        rowid: i64,
        row: RecordBatch,
    },
}

struct Fates(Vec<Fate>);

impl Fates {
    fn rows(&self, wanted: impl Fn(&Fate) -> bool) -> Vec<u32> {
        (0..).zip(&self.0).filter(|(_, fate)| wanted(fate)).map(|(row, _)| row).collect()
    }

    fn existing(&self, schema: &SchemaRef) -> Result<(RecordBatch, Int64Array), ServerError> {
        let mut batches = Vec::new();
        let mut rowids = Vec::new();
        for fate in &self.0 {
            if let Fate::Existing { rowid, row } = fate {
                batches.push(row.clone());
                rowids.push(*rowid);
            }
        }
        Ok((compute::concat_batches(schema, &batches)?, Int64Array::from(rowids)))
    }
}

/// Existing rows side by side with the rows that were proposed instead of them.
struct Both<'a> {
    schema: &'a DFSchemaRef,
    existing: &'a RecordBatch,
    excluded: &'a RecordBatch,
}

impl Both<'_> {
    fn batch(&self) -> Result<RecordBatch, ServerError> {
        let columns = self.existing.columns().iter().chain(self.excluded.columns()).cloned().collect();
        let schema = Arc::new(self.schema.as_arrow().clone());
        let options = RecordBatchOptions::new().with_row_count(Some(self.existing.num_rows()));
        Ok(RecordBatch::try_new_with_options(schema, columns, &options)?)
    }

    fn evaluate(
        &self,
        state: &datafusion::execution::SessionState,
        expression: &Expr,
    ) -> Result<ArrayRef, ServerError> {
        let batch = self.batch()?;
        let physical = state.create_physical_expr(expression.clone(), self.schema)?;
        Ok(physical.evaluate(&batch)?.into_array(batch.num_rows())?)
    }

    fn condition(
        &self,
        state: &datafusion::execution::SessionState,
        condition: Option<&Expr>,
    ) -> Result<BooleanArray, ServerError> {
        let Some(condition) = condition else {
            return Ok(BooleanArray::from(vec![true; self.existing.num_rows()]));
        };
        let result = self.evaluate(state, condition)?;
        let mask = result.as_any().downcast_ref::<BooleanArray>();
        let mask = mask.ok_or_else(|| ServerError::internal("a condition is not boolean"))?;
        Ok(mask.iter().map(|value| Some(value == Some(true))).collect())
    }

    fn updated(
        &self,
        state: &datafusion::execution::SessionState,
        table: &TableInfo,
        assignments: &[(usize, Expr)],
    ) -> Result<RecordBatch, ServerError> {
        let mut columns = self.existing.columns().to_vec();
        for (column, expression) in assignments {
            let value = self.evaluate(state, expression)?;
            let wanted = table.relation.schema.field(*column).data_type();
            columns[*column] = if value.data_type() == wanted { value } else { compute::cast(&value, wanted)? };
        }
        loose(&table.relation.schema, columns, self.existing.num_rows())
    }
}

fn twice() -> ServerError {
    ServerError::new(SqlState("21000"), "ON CONFLICT DO UPDATE command cannot affect row a second time").with_hint(
        "Ensure that no rows proposed for insertion within the same command have duplicate constrained values.",
    )
}

/// The rows of VALUES with constants, column by column.
fn literal_rows(table: &TableInfo, rows: &[Vec<Cell>]) -> Result<RecordBatch, ServerError> {
    let schema = &table.relation.schema;
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
    for (column, field) in schema.fields().iter().enumerate() {
        let wanted = field.data_type();
        let values = rows.iter().map(|row| match row.get(column) {
            Some(Cell::Value(value)) if value.is_null() => Ok(ScalarValue::try_new_null(wanted)?),
            Some(Cell::Value(value)) if value.data_type() == *wanted => Ok(value.clone()),
            Some(Cell::Value(value)) => Ok(value.cast_to(wanted)?),
            Some(Cell::Parameter(number)) => {
                Err(ServerError::new(SqlState::UNDEFINED_PARAMETER, format!("there is no parameter ${number}")))
            }
            None => Err(ServerError::internal("a row of VALUES is too short")),
        });
        let values: Vec<ScalarValue> = values.collect::<Result<_, ServerError>>()?;
        columns.push(if values.is_empty() {
            new_null_array(wanted, 0)
        } else if let [value] = values.as_slice() {
            value.to_array()?
        } else {
            ScalarValue::iter_to_array(values)?
        });
    }
    loose(schema, columns, rows.len())
}

/// A batch whose columns may all be NULL: NOT NULL is checked afterwards, with Postgres's message.
fn loose(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, ServerError> {
    use datafusion::arrow::datatypes::{Field, Schema};
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    if columns.iter().all(|column| column.null_count() == 0)
        && columns.iter().zip(schema.fields()).all(|(column, field)| column.data_type() == field.data_type())
    {
        return Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?);
    }
    let fields: Vec<Field> = schema
        .fields()
        .iter()
        .zip(&columns)
        .map(|(field, column)| field.as_ref().clone().with_data_type(column.data_type().clone()).with_nullable(true))
        .collect();
    Ok(RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)?)
}

/// The row numbers, and the other columns.
fn split_rowid(batch: &RecordBatch) -> Result<(&Int64Array, &[ArrayRef]), ServerError> {
    let (rowids, columns) =
        batch.columns().split_first().ok_or_else(|| ServerError::internal("no row numbers in a target's rows"))?;
    let rowids = rowids.as_any().downcast_ref::<Int64Array>();
    Ok((rowids.ok_or_else(|| ServerError::internal("row numbers of another type"))?, columns))
}

/// Columns of committed rows as a batch of the table.
fn part(schema: &SchemaRef, columns: &[ArrayRef], rows: usize) -> Result<RecordBatch, ServerError> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    let columns: Result<Vec<ArrayRef>, ServerError> = schema
        .fields()
        .iter()
        .zip(columns)
        .map(|(field, column)| {
            if column.data_type() == field.data_type() {
                Ok(column.clone())
            } else {
                Ok(compute::cast(column, field.data_type())?)
            }
        })
        .collect();
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns?, &options)?)
}
