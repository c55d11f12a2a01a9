//! Dispatch over statements: one short arm each, the work is elsewhere.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::logical_expr::LogicalPlan;
use plan::SqlState;
use planner::Statement;
use planner::statement::CopyOptions;

use super::copy::CopyReader;
use super::portal::Tag;
use super::{Guard, Rows, Session};
use crate::coordinator::DmlResult;
use crate::error::{Notice, Result, ServerError};

/// What a statement leads to.
pub enum Outcome {
    /// The statement was empty.
    Empty,
    /// Done; the command tag.
    Done(String),
    /// Rows to send.
    Rows(Rows),
    /// The client is to send rows.
    CopyIn(Box<CopyReader>),
    /// Rows to send as COPY's lines.
    CopyOut(Rows, CopyOptions),
}

impl Session {
    /// Runs a statement within the session's transaction. The work of statements other than INSERT is boxed: its state would
    /// make that of every statement large, and large states are costly to move.
    pub(super) async fn execute(&mut self, statement: Statement) -> Result<Outcome> {
        self.join_implicit();
        match statement {
            Statement::Empty => Ok(Outcome::Empty),
            Statement::Query(plan) => Ok(Outcome::Rows(self.query(&plan).await?)),
            Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) | Statement::Truncate(_) => {
                self.change(&statement).await
            }
            Statement::CopyIn(copy) => Ok(Outcome::CopyIn(Box::new(self.copy_reader(copy)?))),
            Statement::CopyOut(copy) => Ok(Outcome::CopyOut(self.query(&copy.query).await?, copy.options)),
            Statement::CreateSchema { .. }
            | Statement::Drop(_)
            | Statement::CreateTable(_)
            | Statement::CreateView(_) => self.define(&statement).await,
            Statement::Begin { read_only } => {
                self.begin(read_only);
                Ok(Outcome::Done("BEGIN".to_owned()))
            }
            Statement::Commit => Ok(Outcome::Done(self.commit().await?.to_owned())),
            Statement::Rollback => {
                self.rollback();
                Ok(Outcome::Done("ROLLBACK".to_owned()))
            }
            Statement::Explain { mut lines, view } => {
                if let Some(view) = view {
                    self.add_state(&mut lines, &view).await?;
                }
                Ok(Outcome::Rows(text_rows(explain_schema(), vec![lines], "EXPLAIN")?))
            }
            Statement::Show { name } => self.show(&name),
            Statement::Set { name, value, local } => self.set(&name, value.as_deref(), local),
            Statement::Reset { name } => self.reset(&name, "RESET"),
            Statement::Prepare { name, text, types } => {
                self.prepare(&name, &text, types.into_iter().map(Some).collect())?;
                Ok(Outcome::Done("PREPARE".to_owned()))
            }
            Statement::Execute { name, arguments } => {
                let prepared = self.prepared(&name)?;
                let binding = self.binding(&prepared)?;
                let values = self.arguments(&name, &binding, arguments)?;
                let statement = self.with_values(&binding, &values)?;
                Box::pin(self.execute(statement)).await
            }
            Statement::Deallocate { name } => {
                self.deallocate(name.as_deref())?;
                Ok(Outcome::Done(if name.is_none() { "DEALLOCATE ALL" } else { "DEALLOCATE" }.to_owned()))
            }
            Statement::DeclareCursor { name, query } => Box::pin(self.declare_cursor(&name, &query)).await,
            Statement::Fetch { name, count } => Box::pin(self.fetch(&name, count)).await,
            Statement::CloseCursor { name } => self.close_cursor(name.as_deref()),
            Statement::DiscardAll => {
                self.portals.clear();
                self.prepared.clear();
                self.reset("all", "DISCARD ALL")
            }
            Statement::NoOperation { tag, notice } => Ok(self.nothing_to_do(tag, notice)),
        }
    }

    fn nothing_to_do(&mut self, tag: String, notice: Option<&'static str>) -> Outcome {
        self.notices.extend(notice.map(Notice::plain));
        Outcome::Done(tag)
    }

    /// INSERT, UPDATE, DELETE, TRUNCATE.
    async fn change(&mut self, statement: &Statement) -> Result<Outcome> {
        let info = self.info().clone();
        let (guard, transaction) = self.guarded_transaction()?;
        let (word, result) = match statement {
            Statement::Insert(insert) => ("INSERT 0", guard.run(transaction.insert(insert, &info)).await?),
            Statement::Update(update) => ("UPDATE", guard.run(Box::pin(transaction.update(update, &info))).await?),
            Statement::Delete(delete) => ("DELETE", guard.run(Box::pin(transaction.delete(delete, &info))).await?),
            Statement::Truncate(tables) => {
                guard.run(Box::pin(transaction.truncate(tables))).await?;
                return Ok(Outcome::Done("TRUNCATE TABLE".to_owned()));
            }
            _ => return Err(ServerError::internal("a statement that changes no rows")),
        };
        Ok(changed(word, result))
    }

    /// Begins a query; its rows come as they are taken.
    pub(super) async fn query(&mut self, plan: &LogicalPlan) -> Result<Rows> {
        let info = self.info().clone();
        let (guard, transaction) = self.guarded_transaction()?;
        let mut query = guard.run(Box::pin(transaction.query(plan, &info))).await?;
        self.notices.append(&mut query.warnings);
        Ok(Rows::of_query(query))
    }

    /// CREATE and DROP.
    async fn define(&mut self, statement: &Statement) -> Result<Outcome> {
        let (info, policy) = (self.info().clone(), self.settings.state_policy());
        let (guard, transaction) = self.guarded_transaction()?;
        let mut outcome = guard.run(Box::pin(transaction.ddl(statement, &info, policy))).await?;
        self.notices.append(&mut outcome.notices);
        Ok(Outcome::Done(outcome.tag))
    }

    /// SHOW.
    fn show(&self, name: &str) -> Result<Outcome> {
        if name == "all" {
            let mut columns = vec![Vec::new(), Vec::new(), Vec::new()];
            for (name, value, description) in self.settings.show_all() {
                columns[0].push(name.to_owned());
                columns[1].push(value);
                columns[2].push(description.to_owned());
            }
            return Ok(Outcome::Rows(text_rows(show_all_schema(), columns, "SHOW")?));
        }
        let (name, value) = self.settings.show(name)?;
        Ok(Outcome::Rows(text_rows(text_schema(&[name]), vec![vec![value]], "SHOW")?))
    }

    /// SET.
    fn set(&mut self, name: &str, value: Option<&str>, local: bool) -> Result<Outcome> {
        let in_block = self.in_block();
        if local && !in_block {
            self.notices.push(Notice::warning(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "SET LOCAL can only be used in transaction blocks",
            ));
        }
        self.settings_mut().set(name, value, local, in_block)?;
        if name.eq_ignore_ascii_case("transaction_read_only") {
            let read_only = self.settings.show(name)?.1 == "on";
            self.set_read_only(read_only)?;
        }
        Ok(Outcome::Done("SET".to_owned()))
    }

    /// RESET and what implies it.
    fn reset(&mut self, name: &str, tag: &str) -> Result<Outcome> {
        let in_block = self.in_block();
        self.settings_mut().reset(name, in_block)?;
        Ok(Outcome::Done(tag.to_owned()))
    }

    /// Columns of the rows that a statement returns, also where only the session knows them.
    pub(super) fn result_schema(&self, statement: &Statement, bound: Option<SchemaRef>) -> Result<Option<SchemaRef>> {
        Ok(match statement {
            Statement::Show { name } if name == "all" => Some(show_all_schema()),
            Statement::Show { name } => Some(text_schema(&[self.settings.show(name)?.0])),
            Statement::Explain { .. } => Some(explain_schema()),
            Statement::Execute { name, .. } => {
                let prepared = self.prepared(name)?;
                self.binding(&prepared)?.schema.clone()
            }
            Statement::Fetch { name, .. } => self.portal(name)?.schema.clone(),
            _ => bound,
        })
    }
}

/// Rows of text in one batch.
fn text_rows(schema: SchemaRef, columns: Vec<Vec<String>>, tag: &'static str) -> Result<Rows> {
    let arrays = columns.into_iter().map(|column| Arc::new(StringArray::from(column)) as ArrayRef).collect();
    let batch = RecordBatch::try_new(schema.clone(), arrays)?;
    Ok(Rows::of_batches(schema, vec![batch], Tag::Fixed(tag.to_owned())))
}

/// Columns of text.
fn text_schema(names: &[&str]) -> SchemaRef {
    Arc::new(Schema::new(names.iter().map(|name| Field::new(*name, DataType::Utf8, true)).collect::<Vec<_>>()))
}

/// Columns of SHOW ALL.
fn show_all_schema() -> SchemaRef {
    text_schema(&["name", "setting", "description"])
}

/// Columns of EXPLAIN.
fn explain_schema() -> SchemaRef {
    text_schema(&["QUERY PLAN"])
}

/// The outcome of a statement that changed rows.
fn changed(word: &str, result: DmlResult) -> Outcome {
    let tag = format!("{word} {}", result.count);
    match result.returning {
        Some((schema, batches)) => Outcome::Rows(Rows::of_batches(schema, batches, Tag::Fixed(tag))),
        None => Outcome::Done(tag),
    }
}

impl Session {
    /// The transaction, and what cancels work on it.
    pub(super) fn guarded_transaction(&mut self) -> Result<(Guard, &mut crate::coordinator::Transaction)> {
        let guard = self.guard();
        Ok((guard, self.transaction()?))
    }
}
