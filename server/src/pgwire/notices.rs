//! Errors and notices on the wire.

use pgwire::messages::response::{ErrorResponse, NoticeResponse};

use crate::error::{Notice, ServerError};

/// An error. The severity is sent twice: as a client shows it, and as programs compare it.
pub fn error(severity: &str, error: &ServerError) -> ErrorResponse {
    let mut fields = start(severity, error.sqlstate.code(), &error.message);
    optional(&mut fields, b'D', error.detail.clone());
    optional(&mut fields, b'H', error.hint.clone());
    optional(&mut fields, b'P', error.position.map(|position| position.to_string()));
    optional(&mut fields, b'W', error.context.clone());
    ErrorResponse::new(fields)
}

/// A notice.
pub fn notice(notice: &Notice) -> NoticeResponse {
    let mut fields = start(notice.severity.word(), notice.sqlstate.code(), &notice.message);
    optional(&mut fields, b'D', notice.detail.clone());
    optional(&mut fields, b'H', notice.hint.clone());
    NoticeResponse::new(fields)
}

/// The fields that are always there.
fn start(severity: &str, code: &str, message: &str) -> Vec<(u8, String)> {
    vec![
        (b'S', severity.to_owned()),
        (b'V', severity.to_owned()),
        (b'C', code.to_owned()),
        (b'M', without_nul(message)),
    ]
}

/// A field that may be there.
fn optional(fields: &mut Vec<(u8, String)>, kind: u8, value: Option<String>) {
    if let Some(value) = value {
        fields.push((kind, without_nul(&value)));
    }
}

/// Strings of the protocol end with NUL, so they cannot hold one.
fn without_nul(text: &str) -> String {
    text.replace('\0', "")
}
