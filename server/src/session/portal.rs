//! Portals and cursors: a bound statement whose rows are taken in pieces.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::ScalarValue;
use futures::StreamExt;
use futures::stream::BoxStream;
use parking_lot::Mutex;
use plan::SqlState;
use planner::Statement;

use super::{Block, Outcome, Prepared, Session};
use crate::coordinator::QueryRows;
use crate::error::{Result, ServerError};

/// What a command tag says about rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tag {
    /// A word and the number of rows sent.
    Counted(&'static str),
    /// Known already.
    Fixed(String),
}

/// Rows on their way to the client.
pub struct Rows {
    /// Columns.
    pub schema: SchemaRef,
    /// What the command tag will say.
    pub tag: Tag,
    /// Never locked: the mutex only makes the session shareable between threads.
    stream: Mutex<BoxStream<'static, Result<RecordBatch>>>,
    /// Rows taken from the stream and not yet by the client.
    pending: Option<RecordBatch>,
    ended: bool,
}

impl Rows {
    /// The rows of a query.
    pub fn of_query(query: QueryRows) -> Rows {
        let stream = query.rows.map(|batch| batch.map_err(ServerError::from)).boxed();
        let stream = Mutex::new(stream);
        Rows { schema: query.schema, tag: Tag::Counted("SELECT"), stream, pending: None, ended: false }
    }

    /// Rows that are there already.
    pub fn of_batches(schema: SchemaRef, batches: Vec<RecordBatch>, tag: Tag) -> Rows {
        let stream = Mutex::new(futures::stream::iter(batches.into_iter().map(Ok)).boxed());
        Rows { schema, tag, stream, pending: None, ended: false }
    }

    /// The next rows, at most so many; `None` at the end.
    pub async fn next(&mut self, rows_max: usize) -> Result<Option<RecordBatch>> {
        let mut batch = match self.pending.take() {
            Some(batch) => batch,
            None => loop {
                if self.ended {
                    return Ok(None);
                }
                match self.stream.get_mut().next().await {
                    Some(batch) => {
                        let batch = batch?;
                        if batch.num_rows() > 0 {
                            break batch;
                        }
                    }
                    None => self.ended = true,
                }
            },
        };
        if batch.num_rows() > rows_max {
            self.pending = Some(batch.slice(rows_max, batch.num_rows() - rows_max));
            batch = batch.slice(0, rows_max);
        }
        Ok(Some(batch))
    }

    /// The command tag after so many rows.
    pub fn command_tag(&self, rows: u64) -> String {
        match &self.tag {
            Tag::Counted(word) => format!("{word} {rows}"),
            Tag::Fixed(tag) => tag.clone(),
        }
    }
}

/// How far a portal has come.
// One a portal.
#[allow(clippy::large_enum_variant)]
pub enum Progress {
    /// Not executed yet.
    Ready(Statement),
    /// Rows are being taken.
    Running(Rows),
    /// Nothing is left; the tag of a further execution.
    Done(&'static str),
}

/// A statement with its parameters, and how far it has come.
pub struct Portal {
    /// Columns of its rows.
    pub schema: Option<SchemaRef>,
    /// Format codes that the client asked for.
    pub formats: Vec<i16>,
    /// Whether it begins or ends a transaction block.
    pub is_transaction_control: bool,
    progress: Progress,
}

impl Session {
    /// Makes a portal of a prepared statement and values for its parameters.
    pub fn bind_portal(
        &mut self,
        name: &str,
        prepared: &Prepared,
        values: &[ScalarValue],
        formats: Vec<i16>,
    ) -> Result<()> {
        self.check_not_failed(prepared.is_transaction_control())?;
        if !name.is_empty() && self.portals.contains_key(name) {
            return Err(ServerError::new(SqlState::DUPLICATE_CURSOR, format!("cursor \"{name}\" already exists")));
        }
        let binding = self.binding(prepared)?;
        let statement = self.with_values(&binding, values)?;
        let portal = Portal {
            schema: binding.schema.clone(),
            formats,
            is_transaction_control: prepared.is_transaction_control(),
            progress: Progress::Ready(statement),
        };
        self.portals.insert(name.to_owned(), portal);
        Ok(())
    }

    /// The portal of a name.
    pub fn portal(&self, name: &str) -> Result<&Portal> {
        self.portals.get(name).ok_or_else(|| unknown_portal("portal", name))
    }

    /// Forgets a portal, if there is one.
    pub fn close_portal(&mut self, name: &str) {
        self.portals.remove(name);
    }

    /// Begins or goes on with a portal. Rows that are not taken must be given back by [`Session::suspend_portal`].
    pub async fn execute_portal(&mut self, name: &str) -> Result<Outcome> {
        let portal = self.portals.get_mut(name).ok_or_else(|| unknown_portal("portal", name))?;
        let is_transaction_control = portal.is_transaction_control;
        let progress = std::mem::replace(&mut portal.progress, Progress::Done("SELECT"));
        self.check_not_failed(is_transaction_control)?;
        match progress {
            Progress::Ready(statement) => self.execute(statement).await,
            Progress::Running(rows) => Ok(Outcome::Rows(rows)),
            Progress::Done(word) => Ok(Outcome::Done(format!("{word} 0"))),
        }
    }

    /// Gives back rows that the client has not taken yet.
    pub fn suspend_portal(&mut self, name: &str, rows: Rows) {
        if let Some(portal) = self.portals.get_mut(name) {
            portal.progress = Progress::Running(rows);
        }
    }

    /// DECLARE name CURSOR FOR query.
    pub(super) async fn declare_cursor(
        &mut self,
        name: &str,
        query: &datafusion::logical_expr::LogicalPlan,
    ) -> Result<Outcome> {
        if !matches!(self.block, Block::Explicit(_)) {
            return Err(ServerError::new(
                SqlState::NO_ACTIVE_SQL_TRANSACTION,
                "DECLARE CURSOR can only be used in transaction blocks",
            ));
        }
        if self.portals.contains_key(name) {
            return Err(ServerError::new(SqlState::DUPLICATE_CURSOR, format!("cursor \"{name}\" already exists")));
        }
        let rows = self.query(query).await?;
        let portal = Portal {
            schema: Some(rows.schema.clone()),
            formats: Vec::new(),
            is_transaction_control: false,
            progress: Progress::Running(rows),
        };
        self.portals.insert(name.to_owned(), portal);
        Ok(Outcome::Done("DECLARE CURSOR".to_owned()))
    }

    /// FETCH count FROM name.
    pub(super) async fn fetch(&mut self, name: &str, count: Option<u64>) -> Result<Outcome> {
        let portal = self.portals.get_mut(name).ok_or_else(|| unknown_portal("cursor", name))?;
        let schema = portal.schema.clone().unwrap_or_else(|| Arc::new(datafusion::arrow::datatypes::Schema::empty()));
        let progress = std::mem::replace(&mut portal.progress, Progress::Done("FETCH"));
        let mut rows = match progress {
            Progress::Running(rows) => rows,
            Progress::Ready(statement) => match self.execute(statement).await? {
                Outcome::Rows(rows) => rows,
                _ => {
                    return Err(ServerError::new(SqlState::INVALID_CURSOR_NAME, format!("\"{name}\" returns no rows")));
                }
            },
            Progress::Done(_) => return Ok(Outcome::Rows(Rows::of_batches(schema, Vec::new(), Tag::Counted("FETCH")))),
        };
        let mut batches = Vec::new();
        let mut left = count.map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
        while left > 0 {
            let next = self.guard().run(rows.next(left)).await?;
            let Some(batch) = next else { break };
            left = left.saturating_sub(batch.num_rows());
            batches.push(batch);
        }
        self.suspend_portal(name, rows);
        Ok(Outcome::Rows(Rows::of_batches(schema, batches, Tag::Counted("FETCH"))))
    }

    /// CLOSE name; `None` is ALL.
    pub(super) fn close_cursor(&mut self, name: Option<&str>) -> Result<Outcome> {
        match name {
            None => self.portals.clear(),
            Some(name) => {
                self.portals.remove(name).ok_or_else(|| unknown_portal("cursor", name))?;
            }
        }
        Ok(Outcome::Done("CLOSE CURSOR".to_owned()))
    }
}

/// The error for a portal or cursor that is not there.
fn unknown_portal(kind: &str, name: &str) -> ServerError {
    ServerError::new(SqlState::INVALID_CURSOR_NAME, format!("{kind} \"{name}\" does not exist"))
}
