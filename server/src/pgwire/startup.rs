//! From connect to the first ReadyForQuery: encryption is declined, anybody is let in, cancel requests are served.

use std::io;
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use pgwire::messages::response::SslResponse;
use pgwire::messages::startup::{
    Authentication, BackendKeyData, NegotiateProtocolVersion, ParameterStatus, SecretKey, Startup,
};
use pgwire::messages::{DecodeContext, Message, ProtocolVersion};
use plan::SqlState;

use super::CancelRegistry;
use super::connection::Connection;
use super::handler::Client;
use crate::coordinator::Coordinator;
use crate::error::{Result, ServerError};
use crate::session::Session;
use crate::shutdown::Shutdown;

/// Code of an SSLRequest.
const SSL_REQUEST: i32 = 80_877_103;
/// Code of a GSSENCRequest.
const GSS_REQUEST: i32 = 80_877_104;
/// Code of a CancelRequest.
const CANCEL_REQUEST: i32 = 80_877_102;

/// Greets a client. `None` if it only wanted to cancel, was refused, or left.
pub async fn start(
    connection: &mut Connection,
    coordinator: Arc<Coordinator>,
    cancels: &Arc<CancelRegistry>,
    shutdown: Shutdown,
    has_place: bool,
) -> io::Result<Option<Client>> {
    let Some(startup) = read_startup(connection, cancels).await? else {
        return Ok(None);
    };
    let key = cancels.register();
    let session = match startup {
        Ok(_) if !has_place => Err(ServerError::new(SqlState::TOO_MANY_CONNECTIONS, "sorry, too many clients already")
            .with_hint("The limit is the server's option --max-connections.")),
        Ok(startup) => {
            if startup.protocol_number_minor > 0 {
                connection.put(&NegotiateProtocolVersion::new(0, Vec::new()));
            }
            new_session(&startup, coordinator, &key)
        }
        Err(error) => Err(error),
    };
    let mut session = match session {
        Ok(session) => session,
        Err(error) => {
            connection.put_fatal(&error);
            connection.flush().await?;
            return Ok(None);
        }
    };
    connection.put(&Authentication::Ok);
    for (name, value) in session.settings_mut().take_reports() {
        connection.put(&ParameterStatus::new(name.to_owned(), value));
    }
    connection.put(&BackendKeyData::new(key.process, SecretKey::I32(key.secret)));
    Ok(Some(Client::new(session, key, shutdown)))
}

/// Reads until the startup message; the inner error is for the client.
async fn read_startup(connection: &mut Connection, cancels: &CancelRegistry) -> io::Result<Option<Result<Startup>>> {
    loop {
        let Some(packet) = connection.read_untyped().await? else {
            return Ok(None);
        };
        match (&packet[4..8]).get_i32() {
            SSL_REQUEST | GSS_REQUEST => {
                connection.put(&SslResponse::Refuse);
                connection.flush().await?;
            }
            CANCEL_REQUEST => {
                if packet.len() >= 16 {
                    let mut rest = &packet[8..];
                    let process = rest.get_i32();
                    cancels.cancel(process, rest.get_i32());
                }
                return Ok(None);
            }
            _ => return Ok(Some(decode(packet))),
        }
    }
}

/// The startup message.
fn decode(mut packet: BytesMut) -> Result<Startup> {
    let context = DecodeContext::new(ProtocolVersion::PROTOCOL3_0);
    match Startup::decode(&mut packet, &context) {
        Ok(Some(startup)) => Ok(startup),
        _ => Err(ServerError::new(SqlState::PROTOCOL_VIOLATION, "unsupported frontend protocol")
            .with_detail("The server speaks version 3.0.")),
    }
}

/// A session with the settings that the client asks for.
fn new_session(startup: &Startup, coordinator: Arc<Coordinator>, key: &super::CancelKey) -> Result<Session> {
    let parameters = &startup.parameters;
    let Some(user) = parameters.get("user").filter(|user| !user.is_empty()) else {
        return Err(ServerError::new(SqlState("28000"), "no PostgreSQL user name specified in startup packet"));
    };
    let database = parameters.get("database").filter(|name| !name.is_empty()).unwrap_or(user);
    if parameters.get("replication").is_some_and(|value| !matches!(value.as_str(), "false" | "off" | "no" | "0")) {
        return Err(ServerError::unsupported("replication"));
    }
    let mut session = Session::new(coordinator, user, database, key.signal.clone());
    if let Some(options) = parameters.get("options") {
        for (name, value) in parse_options(options) {
            session.settings_mut().set_initial(&name, &value)?;
        }
    }
    for (name, value) in parameters {
        let about_connection = matches!(name.as_str(), "user" | "database" | "options" | "replication");
        if !about_connection && !name.starts_with("_pq_.") {
            session.settings_mut().set_initial(name, value)?;
        }
    }
    Ok(session)
}

/// Settings in PGOPTIONS: `-c name=value` and `--name=value`, with backslashes before spaces in values.
fn parse_options(options: &str) -> Vec<(String, String)> {
    let mut words = vec![String::new()];
    let mut characters = options.chars();
    while let Some(c) = characters.next() {
        match (c, words.last_mut()) {
            ('\\', Some(word)) => word.extend(characters.next()),
            (c, _) if c.is_whitespace() => words.push(String::new()),
            (c, Some(word)) => word.push(c),
            (_, None) => {}
        }
    }
    let mut settings = Vec::new();
    let mut words = words.into_iter().filter(|word| !word.is_empty());
    while let Some(word) = words.next() {
        let assignment = if word == "-c" {
            words.next()
        } else {
            word.strip_prefix("--").or_else(|| word.strip_prefix("-c")).map(str::to_owned)
        };
        if let Some((name, value)) = assignment.as_deref().and_then(|text| text.split_once('=')) {
            settings.push((name.replace('-', "_"), value.to_owned()));
        }
    }
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_hold_settings() {
        assert_eq!(
            parse_options(r"-c search_path=a\ b --statement-timeout=5s -cwork_mem=1MB"),
            [
                ("search_path".to_owned(), "a b".to_owned()),
                ("statement_timeout".to_owned(), "5s".to_owned()),
                ("work_mem".to_owned(), "1MB".to_owned())
            ]
        );
    }
}
