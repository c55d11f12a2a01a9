//! A client after its start: messages to statements, outcomes to messages; the simple protocol.

use std::collections::HashMap;
use std::io;

use datafusion::arrow::datatypes::SchemaRef;
use pgwire::messages::PgWireFrontendMessage;
use pgwire::messages::data::{FieldDescription, RowDescription};
use pgwire::messages::response::{CommandComplete, EmptyQueryResponse, ReadyForQuery, TransactionStatus};
use pgwire::messages::startup::ParameterStatus;
use plan::SqlState;
use planner::Parsed;

use super::connection::{Connection, Frame, OUTPUT_BYTES_MAX};
use super::encode::{self, Formats};
use super::{CancelKey, types};
use crate::error::{Result, ServerError};
use crate::session::{self, Outcome, Rows, Session, Status};
use crate::shutdown::Shutdown;

/// Why the work on a message ended early.
pub enum Failure {
    /// The client is told and may go on.
    Statement(ServerError),
    /// The socket is gone.
    Socket(io::Error),
}

impl<E> From<E> for Failure
where
    ServerError: From<E>,
{
    fn from(error: E) -> Self {
        Failure::Statement(error.into())
    }
}

/// Marks a socket's errors, which are not the client's to see.
pub trait SocketResult<T> {
    /// The result for work on a message.
    fn socket(self) -> Result<T, Failure>;
}

impl<T> SocketResult<T> for io::Result<T> {
    fn socket(self) -> Result<T, Failure> {
        self.map_err(Failure::Socket)
    }
}

/// A client.
pub struct Client {
    /// Its session.
    pub session: Session,
    /// Under which its statements can be cancelled; ends with the client.
    _key: CancelKey,
    shutdown: Shutdown,
    /// An error in the extended protocol: messages are skipped until Sync.
    pub skipping: bool,
    /// Parameter types that the client declared, by prepared statement.
    pub declared_oids: HashMap<String, Vec<u32>>,
}

impl Client {
    /// A client whose session has just begun.
    pub fn new(session: Session, key: CancelKey, shutdown: Shutdown) -> Client {
        Client { session, _key: key, shutdown, skipping: false, declared_oids: HashMap::new() }
    }

    /// Serves messages until the client or the server ends.
    pub async fn serve(&mut self, connection: &mut Connection) -> io::Result<()> {
        self.ready(connection).await?;
        loop {
            let Some(frame) = self.next(connection).await? else {
                return Ok(());
            };
            match self.message(connection, frame).await {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(Failure::Socket(error)) => return Err(error),
                Err(Failure::Statement(error)) => {
                    connection.put_fatal(&error);
                    return connection.flush().await;
                }
            }
        }
    }

    /// Waits for the client's next message; `None` if there will be none.
    async fn next(&mut self, connection: &mut Connection) -> io::Result<Option<Frame>> {
        let idle = async {
            match session::idle_timeout(&self.session) {
                Some(timeout) => tokio::time::sleep(timeout).await,
                None => std::future::pending().await,
            }
        };
        let error = tokio::select! {
            biased;
            frame = connection.read() => return frame,
            () = self.shutdown.requested() => ServerError::new(
                SqlState::ADMIN_SHUTDOWN,
                "terminating connection due to administrator command",
            ),
            () = idle => ServerError::new(
                SqlState("25P03"),
                "terminating connection due to idle-in-transaction timeout",
            ),
        };
        connection.put_fatal(&error);
        connection.flush().await?;
        Ok(None)
    }

    /// Works on one message; false if it was the last one.
    async fn message(&mut self, connection: &mut Connection, frame: Frame) -> Result<bool, Failure> {
        // Rows of a COPY that has failed may still be on their way.
        if matches!(frame.kind(), b'd' | b'c' | b'f') {
            return Ok(true);
        }
        let message = match frame.decode() {
            Ok(message) => message,
            Err(error) => return Err(Failure::Statement(error)),
        };
        match message {
            PgWireFrontendMessage::Query(_) if self.skipping => {}
            PgWireFrontendMessage::Query(query) => {
                self.simple_query(connection, &query.query).await?;
                self.ready(connection).await.socket()?;
            }
            PgWireFrontendMessage::Terminate(_) => return Ok(false),
            message => self.extended(connection, message).await?,
        }
        Ok(true)
    }

    /// All statements of a simple query. Errors of statements are reported here; only the socket's come back.
    async fn simple_query(&mut self, connection: &mut Connection, text: &str) -> Result<(), Failure> {
        self.session.start_statement();
        match self.statements(connection, text).await {
            Err(Failure::Statement(error)) => {
                self.report(connection, &error);
                Ok(())
            }
            other => other,
        }
    }

    /// Runs statement after statement, in one implicit transaction unless they say otherwise.
    async fn statements(&mut self, connection: &mut Connection, text: &str) -> Result<(), Failure> {
        let statements = self.session.parse(text)?;
        let statements: Vec<&Parsed> = statements.iter().filter(|parsed| !parsed.is_empty()).collect();
        let Some((last, before)) = statements.split_last() else {
            connection.put(&EmptyQueryResponse::new());
            return Ok(());
        };
        for parsed in before {
            let tag = self.statement(connection, parsed).await?;
            self.complete(connection, tag);
        }
        let tag = self.statement(connection, last).await?;
        // The acknowledgement waits until what it acknowledges is durable.
        self.session.end_implicit().await?;
        self.complete(connection, tag);
        Ok(())
    }

    /// Runs one statement and sends its rows. Returns the command tag, `None` for an empty statement.
    async fn statement(&mut self, connection: &mut Connection, parsed: &Parsed) -> Result<Option<String>, Failure> {
        match self.session.run(parsed).await? {
            Outcome::Empty => Ok(None),
            Outcome::Done(tag) => Ok(Some(tag)),
            Outcome::Rows(mut rows) => {
                let formats = Formats::default();
                let schema = rows.schema.clone();
                connection.put(&row_description(&schema, &formats));
                let (sent, _) = self.send_rows(connection, &mut rows, &schema, &formats, u64::MAX).await?;
                Ok(Some(rows.command_tag(sent)))
            }
            Outcome::CopyIn(reader) => Ok(Some(Box::pin(self.copy_in(connection, *reader)).await?)),
            Outcome::CopyOut(rows, options) => Ok(Some(Box::pin(self.copy_out(connection, rows, &options)).await?)),
        }
    }

    /// Sends rows, at most so many, under the schema that the client was told. Returns how many, and whether there may be more.
    pub async fn send_rows(
        &mut self,
        connection: &mut Connection,
        rows: &mut Rows,
        schema: &SchemaRef,
        formats: &Formats,
        rows_max: u64,
    ) -> Result<(u64, bool), Failure> {
        let style = *self.session.settings().style();
        let mut sent = 0;
        while sent < rows_max {
            let wanted = usize::try_from(rows_max - sent).unwrap_or(usize::MAX);
            let Some(batch) = self.session.guard().run(rows.next(wanted)).await? else {
                return Ok((sent, false));
            };
            let batch = encode::normalised(&batch)?;
            let mut row = 0;
            while row < batch.num_rows() {
                let columns = encode::columns(&batch, schema)?;
                let output = &mut connection.output;
                row = encode::data_rows(&columns, formats, &style, row..batch.num_rows(), OUTPUT_BYTES_MAX, output);
                drop(columns);
                connection.flush_if_full().await.socket()?;
            }
            sent += batch.num_rows() as u64;
        }
        Ok((sent, true))
    }

    /// Ends a statement: notices, changed parameters, the command tag.
    pub fn complete(&mut self, connection: &mut Connection, tag: Option<String>) {
        self.tell(connection);
        match tag {
            Some(tag) => connection.put(&CommandComplete::new(tag)),
            None => connection.put(&EmptyQueryResponse::new()),
        }
    }

    /// Sends notices and changed parameters.
    fn tell(&mut self, connection: &mut Connection) {
        for notice in self.session.take_notices() {
            connection.put_notice(&notice);
        }
        for (name, value) in self.session.settings_mut().take_reports() {
            connection.put(&ParameterStatus::new(name.to_owned(), value));
        }
    }

    /// Reports an error, after which the transaction is undone or failed.
    pub fn report(&mut self, connection: &mut Connection, error: &ServerError) {
        tracing::debug!(code = error.sqlstate.code(), "{}", error.message);
        self.session.fail();
        self.tell(connection);
        connection.put_error(error);
    }

    /// Tells the client that it is its turn.
    pub async fn ready(&mut self, connection: &mut Connection) -> io::Result<()> {
        let status = match self.session.status() {
            Status::Idle => TransactionStatus::Idle,
            Status::Block => TransactionStatus::Transaction,
            Status::Failed => TransactionStatus::Error,
        };
        connection.put(&ReadyForQuery::new(status));
        connection.flush().await
    }
}

/// Describes a result's columns.
pub fn row_description(schema: &SchemaRef, formats: &Formats) -> RowDescription {
    let fields = schema.fields().iter().enumerate().map(|(index, field)| {
        let wire = types::wire_type(field);
        let name = field.name().clone();
        FieldDescription::new(name, 0, 0, wire.oid, wire.size, wire.modifier, formats.of(index))
    });
    RowDescription::new(fields.collect())
}
