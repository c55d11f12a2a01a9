//! The extended protocol: Parse, Bind, Describe, Execute, Close, Flush, Sync.

use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::ScalarValue;
use pgwire::messages::PgWireFrontendMessage;
use pgwire::messages::data::{NoData, ParameterDescription};
use pgwire::messages::extendedquery::{
    Bind, BindComplete, Close, CloseComplete, Describe, Execute, Parse, ParseComplete, PortalSuspended,
};
use plan::SqlState;

use super::connection::Connection;
use super::encode::{self, Formats};
use super::handler::{Client, Failure, SocketResult, row_description};
use super::{decode, types};
use crate::error::{Result, ServerError};
use crate::session::Outcome;

/// Type byte of Sync.
const SYNC: u8 = b'S';

impl Client {
    /// Works on a message of the extended protocol. After an error, messages are skipped until Sync.
    pub async fn extended(
        &mut self,
        connection: &mut Connection,
        message: PgWireFrontendMessage,
    ) -> Result<(), Failure> {
        if let PgWireFrontendMessage::Sync(_) = message {
            return self.sync(connection).await;
        }
        if self.skipping {
            return Ok(());
        }
        let result = match message {
            PgWireFrontendMessage::Parse(parse) => self.parse(connection, parse),
            PgWireFrontendMessage::Bind(bind) => self.bind(connection, bind),
            PgWireFrontendMessage::Describe(describe) => self.describe(connection, &describe),
            PgWireFrontendMessage::Execute(execute) => self.execute_portal(connection, &execute).await,
            PgWireFrontendMessage::Close(close) => {
                self.close(connection, &close);
                Ok(())
            }
            PgWireFrontendMessage::Flush(_) => connection.flush().await.socket(),
            other => {
                let what = format!("unexpected message {other:?}");
                let what = what.split('(').next().unwrap_or_default().to_owned();
                Err(ServerError::new(SqlState::PROTOCOL_VIOLATION, what).into())
            }
        };
        match result {
            Err(Failure::Statement(error)) => {
                self.report(connection, &error);
                self.skipping = true;
                Ok(())
            }
            other => other,
        }
    }

    /// The end of a batch: its implicit transaction commits.
    async fn sync(&mut self, connection: &mut Connection) -> Result<(), Failure> {
        self.skipping = false;
        if let Err(error) = self.session.end_implicit().await {
            self.report(connection, &error);
        }
        self.ready(connection).await.socket()
    }

    /// Parse: prepares a statement.
    fn parse(&mut self, connection: &mut Connection, parse: Parse) -> Result<(), Failure> {
        self.session.start_statement();
        let declared = parse.type_oids.iter().map(|oid| decode::declared_type(*oid)).collect::<Result<Vec<_>>>()?;
        let name = parse.name.unwrap_or_default();
        self.session.prepare(&name, &parse.query, declared)?;
        self.declared_oids.insert(name, parse.type_oids);
        connection.put(&ParseComplete::new());
        Ok(())
    }

    /// Bind: values for a statement's parameters make a portal.
    fn bind(&mut self, connection: &mut Connection, bind: Bind) -> Result<(), Failure> {
        let statement = bind.statement_name.unwrap_or_default();
        let prepared = self.session.prepared(&statement)?;
        self.session.check_not_failed(prepared.is_transaction_control())?;
        let binding = self.session.binding(&prepared)?;
        let parameters = self.parameters(&statement, &binding);
        if bind.parameters.len() != parameters.len() {
            let shown = if statement.is_empty() { String::new() } else { format!(" \"{statement}\"") };
            return Err(ServerError::new(
                SqlState::PROTOCOL_VIOLATION,
                format!(
                    "bind message supplies {} parameters, but prepared statement{shown} requires {}",
                    bind.parameters.len(),
                    parameters.len()
                ),
            )
            .into());
        }
        let formats = Formats(bind.parameter_format_codes);
        formats.0.iter().chain(&bind.result_column_format_codes).try_for_each(|code| encode::check_format(*code))?;
        let style = self.session.settings().style();
        let mut values: Vec<ScalarValue> = Vec::with_capacity(parameters.len());
        for (index, (value, (data_type, oid))) in bind.parameters.iter().zip(&parameters).enumerate() {
            let value = decode::parameter(value.as_deref(), formats.of(index), data_type, *oid, style);
            values.push(
                value.map_err(|error| error.with_context(|| format!("unnamed portal parameter ${}", index + 1)))?,
            );
        }
        let portal = bind.portal_name.unwrap_or_default();
        if portal.is_empty() {
            self.session.close_portal("");
        }
        self.session.bind_portal(&portal, &prepared, &values, bind.result_column_format_codes)?;
        connection.put(&BindComplete::new());
        Ok(())
    }

    /// Describe: parameters and columns of a statement, or columns of a portal.
    fn describe(&mut self, connection: &mut Connection, describe: &Describe) -> Result<(), Failure> {
        let name = describe.name.as_deref().unwrap_or_default();
        let (schema, formats) = if describe.target_type == b'S' {
            let prepared = self.session.prepared(name)?;
            let binding = self.session.binding(&prepared)?;
            let oids = self.parameters(name, &binding).into_iter().map(|(_, oid)| oid).collect();
            connection.put(&ParameterDescription::new(oids));
            (binding.schema.clone(), Formats::default())
        } else {
            let portal = self.session.portal(name)?;
            (portal.schema.clone(), Formats(portal.formats.clone()))
        };
        match schema {
            Some(schema) => connection.put(&row_description(&schema, &formats)),
            None => connection.put(&NoData::new()),
        }
        Ok(())
    }

    /// Execute: runs a portal, or goes on with it.
    async fn execute_portal(&mut self, connection: &mut Connection, execute: &Execute) -> Result<(), Failure> {
        self.session.start_statement();
        let name = execute.name.as_deref().unwrap_or_default();
        let portal = self.session.portal(name)?;
        let (formats, described) = (Formats(portal.formats.clone()), portal.schema.clone());
        let rows_max = u64::try_from(execute.max_rows).ok().filter(|rows| *rows > 0).unwrap_or(u64::MAX);
        let tag = match self.session.execute_portal(name).await? {
            Outcome::Empty => None,
            Outcome::Done(tag) => Some(tag),
            Outcome::Rows(mut rows) => {
                let schema = described.unwrap_or_else(|| rows.schema.clone());
                let (sent, more) = self.send_rows(connection, &mut rows, &schema, &formats, rows_max).await?;
                if more {
                    self.session.suspend_portal(name, rows);
                    connection.put(&PortalSuspended::new());
                    return connection.flush_if_full().await.socket();
                }
                Some(rows.command_tag(sent))
            }
            Outcome::CopyIn(reader) => Some(Box::pin(self.copy_in(connection, *reader)).await?),
            Outcome::CopyOut(rows, options) => Some(Box::pin(self.copy_out(connection, rows, &options)).await?),
        };
        // A client that ends its batch here gets its acknowledgement only when it is true.
        if connection.next_is(SYNC) {
            self.session.end_implicit().await?;
        }
        self.complete(connection, tag);
        connection.flush_if_full().await.socket()
    }

    /// Close: forgets a statement or portal. It is no error if there is none.
    fn close(&mut self, connection: &mut Connection, close: &Close) {
        let name = close.name.as_deref().unwrap_or_default();
        if close.target_type == b'S' {
            self.session.forget_prepared(name);
            self.declared_oids.remove(name);
        } else {
            self.session.close_portal(name);
        }
        connection.put(&CloseComplete::new());
    }

    /// Type and OID of each parameter: as the client declared it, or as the statement uses it.
    fn parameters(&self, statement: &str, binding: &crate::session::prepared::Binding) -> Vec<(DataType, u32)> {
        let declared = self.declared_oids.get(statement).map_or(&[][..], Vec::as_slice);
        let oid_of = |index: usize, parameter: &Field| match declared.get(index) {
            Some(oid) if *oid != 0 && *oid != types::oid::UNKNOWN => *oid,
            _ => types::wire_type(parameter).oid,
        };
        let described = binding.parameters.iter().enumerate();
        described.map(|(index, parameter)| (parameter.data_type().clone(), oid_of(index, parameter))).collect()
    }
}
