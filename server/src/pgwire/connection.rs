//! A client's socket as messages: frames in, buffered messages out.

use std::io;

use bytes::{Buf, BytesMut};
use pgwire::messages::{DecodeContext, Message, PgWireFrontendMessage, ProtocolVersion};
use plan::SqlState;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::notices;
use crate::error::{Notice, Result, ServerError};

/// Output is sent when it reaches this size, or when the client waits for it.
pub const OUTPUT_BYTES_MAX: usize = 64 << 10;
/// Room asked of the socket at once.
const INPUT_BYTES: usize = 64 << 10;
/// Buffers that have grown beyond this are given back when empty.
const KEPT_BYTES_MAX: usize = 1 << 20;
/// The longest message; PostgreSQL's own limit.
const MESSAGE_BYTES_MAX: usize = (1 << 30) - 1;
/// Bytes of a type and a length.
pub const HEADER_BYTES: usize = 5;

/// A message as it came: type, length, body.
pub struct Frame {
    bytes: BytesMut,
}

impl Frame {
    /// The message's type.
    pub fn kind(&self) -> u8 {
        self.bytes[0]
    }

    /// What follows the header.
    pub fn body(&self) -> &[u8] {
        &self.bytes[HEADER_BYTES..]
    }

    /// The message. The decoder trusts lengths within the body, so a malformed one may make it panic: that is the
    /// client's error.
    pub fn decode(mut self) -> Result<PgWireFrontendMessage> {
        let malformed = || ServerError::new(SqlState::PROTOCOL_VIOLATION, "invalid message format");
        let mut context = DecodeContext::new(ProtocolVersion::PROTOCOL3_0);
        context.awaiting_frontend_ssl = false;
        context.awaiting_frontend_startup = false;
        let decoded = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            PgWireFrontendMessage::decode(&mut self.bytes, &context)
        }));
        match decoded {
            Ok(Ok(Some(message))) => Ok(message),
            Ok(Err(error)) => Err(malformed().with_detail(error.to_string())),
            Ok(Ok(None)) | Err(_) => Err(malformed()),
        }
    }
}

/// A client's socket.
pub struct Connection {
    stream: TcpStream,
    input: BytesMut,
    /// What is to be sent.
    pub output: BytesMut,
}

impl Connection {
    /// Over a socket.
    pub fn new(stream: TcpStream) -> Connection {
        Connection { stream, input: BytesMut::new(), output: BytesMut::new() }
    }

    /// The next message, `None` when the client is gone. What was put is sent first if the client must wait for it.
    pub async fn read(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if let Some(frame) = self.buffered()? {
                return Ok(Some(frame));
            }
            if !self.fill().await? {
                return Ok(None);
            }
        }
    }

    /// The next message if it has arrived whole.
    fn buffered(&mut self) -> io::Result<Option<Frame>> {
        if self.input.len() < HEADER_BYTES {
            return Ok(None);
        }
        let length = u32::from_be_bytes([self.input[1], self.input[2], self.input[3], self.input[4]]) as usize;
        if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("invalid message length {length}")));
        }
        if self.input.len() < length + 1 {
            return Ok(None);
        }
        Ok(Some(Frame { bytes: self.input.split_to(length + 1) }))
    }

    /// Whether the next message, which has arrived already, is of a type.
    pub fn next_is(&self, kind: u8) -> bool {
        self.input.first() == Some(&kind)
    }

    /// Reads more from the socket; false at its end.
    async fn fill(&mut self) -> io::Result<bool> {
        if self.input.is_empty() && self.input.capacity() > KEPT_BYTES_MAX {
            self.input = BytesMut::new();
        }
        self.input.reserve(INPUT_BYTES);
        Ok(self.stream.read_buf(&mut self.input).await? > 0)
    }

    /// A message of the start phase, which has a length but no type: at least its length and code.
    pub async fn read_untyped(&mut self) -> io::Result<Option<BytesMut>> {
        const LENGTH_MAX: usize = 10_000;
        loop {
            if self.input.len() >= 8 {
                let length = (&self.input[..4]).get_u32() as usize;
                if !(8..=LENGTH_MAX).contains(&length) {
                    return Err(io::Error::new(io::ErrorKind::InvalidData, "invalid length of startup packet"));
                }
                if self.input.len() >= length {
                    return Ok(Some(self.input.split_to(length)));
                }
            }
            if !self.fill().await? {
                return Ok(None);
            }
        }
    }

    /// Adds a message to the output.
    pub fn put(&mut self, message: &impl Message) {
        // Encoding fails only for messages over the protocol's limit; nothing of ours but rows gets that long.
        if let Err(error) = message.encode(&mut self.output) {
            tracing::error!(%error, "a message was not sent");
        }
    }

    /// Adds an error.
    pub fn put_error(&mut self, error: &ServerError) {
        self.put(&notices::error("ERROR", error));
    }

    /// Adds an error after which the connection ends.
    pub fn put_fatal(&mut self, error: &ServerError) {
        self.put(&notices::error("FATAL", error));
    }

    /// Adds a notice.
    pub fn put_notice(&mut self, notice: &Notice) {
        self.put(&notices::notice(notice));
    }

    /// Sends the output.
    pub async fn flush(&mut self) -> io::Result<()> {
        if !self.output.is_empty() {
            self.stream.write_all(&self.output).await?;
            if self.output.capacity() > KEPT_BYTES_MAX {
                self.output = BytesMut::new();
            }
            self.output.clear();
        }
        Ok(())
    }

    /// Sends the output if there is much of it.
    pub async fn flush_if_full(&mut self) -> io::Result<()> {
        if self.output.len() >= OUTPUT_BYTES_MAX { self.flush().await } else { Ok(()) }
    }
}
