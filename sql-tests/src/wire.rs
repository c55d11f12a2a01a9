//! A client of the PostgreSQL protocol that hides nothing: every message can be sent and seen as it is.
//!
//! Values are text exactly as the server sent it. A [`Client`] is one connection; it blocks, so concurrent tests use threads.
//! An error of the server is not an `Err` of [`Client::query`] (tests look into its fields); a broken connection is.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufReader, BufWriter, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long a client waits for an answer before it gives the server up.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(300);

/// One row: text values, `None` is NULL.
pub type Row = Vec<Option<String>>;

/// The fields of an ErrorResponse or NoticeResponse.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    /// Field code to value, as in the protocol: S severity, C SQLSTATE, M message, D detail, H hint, P position.
    pub fields: BTreeMap<char, String>,
}

impl Message {
    /// One field, empty if absent.
    pub fn field(&self, code: char) -> &str {
        self.fields.get(&code).map_or("", String::as_str)
    }
    /// SQLSTATE.
    pub fn sqlstate(&self) -> &str {
        self.field('C')
    }
    /// The primary message.
    pub fn message(&self) -> &str {
        self.field('M')
    }
    fn parse(body: &[u8]) -> Self {
        let fields = body
            .split(|byte| *byte == 0)
            .filter_map(|field| {
                let (code, value) = field.split_first()?;
                Some((*code as char, String::from_utf8_lossy(value).into_owned()))
            })
            .collect();
        Message { fields }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.field('S'), self.message(), self.sqlstate())?;
        for (code, name) in [('D', "DETAIL"), ('H', "HINT"), ('P', "POSITION")] {
            if let Some(value) = self.fields.get(&code) {
                write!(f, " {name}: {value}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Message {}

/// A column of a RowDescription.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Name.
    pub name: String,
    /// Type oid.
    pub oid: u32,
    /// Type modifier.
    pub modifier: i32,
    /// 0 text, 1 binary.
    pub format: i16,
}

/// The answer to one statement.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// Columns, if the statement returns rows.
    pub columns: Option<Vec<Column>>,
    /// Rows.
    pub rows: Vec<Row>,
    /// Command tag.
    pub tag: String,
}

impl Answer {
    /// The number at the end of the command tag.
    pub fn count(&self) -> u64 {
        self.tag.rsplit(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)
    }
}

/// All that came back for one simple query.
#[derive(Debug, Clone, Default)]
pub struct Answers {
    /// One for each completed statement.
    pub answers: Vec<Answer>,
    /// The error that ended the query.
    pub error: Option<Message>,
    /// Notices and warnings.
    pub notices: Vec<Message>,
    /// What COPY TO STDOUT sent.
    pub copied: Vec<u8>,
}

/// A message of the server: its type and its body.
pub type Raw = (u8, Vec<u8>);

/// One connection.
pub struct Client {
    reader: BufReader<TcpStream>,
    writer: BufWriter<TcpStream>,
    port: u16,
    /// What ParameterStatus said.
    pub parameters: BTreeMap<String, String>,
    /// Process id and secret, for cancel requests.
    pub key: (i32, Vec<u8>),
    /// Transaction status of the last ReadyForQuery: I, T or E.
    pub status: char,
}

/// An answer that is longer is an error: a wrong query should not take all memory of the machine.
const ANSWER_BYTES_MAX: usize = 512 << 20;

/// An answer that is not read to its end; its connection is of no use any more.
#[derive(Debug, Clone, Copy)]
pub struct TooLong;

impl std::fmt::Display for TooLong {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "the answer is longer than {ANSWER_BYTES_MAX} bytes")
    }
}

impl std::error::Error for TooLong {}

impl Client {
    /// Connects as user and database "tidemill".
    pub fn connect(port: u16) -> Result<Self> {
        Self::connect_as(port, "tidemill", "tidemill")
    }

    /// Connects.
    pub fn connect_as(port: u16, user: &str, database: &str) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).context("cannot connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
        let mut client = Client {
            reader: BufReader::with_capacity(1 << 16, stream.try_clone()?),
            writer: BufWriter::with_capacity(1 << 16, stream),
            port,
            parameters: BTreeMap::new(),
            key: (0, Vec::new()),
            status: '?',
        };
        let mut body = 196_608_i32.to_be_bytes().to_vec();
        for text in ["user", user, "database", database, "application_name", "sql-tests", "client_encoding", "UTF8", ""]
        {
            body.extend_from_slice(text.as_bytes());
            body.push(0);
        }
        client.writer.write_all(&(body.len() as i32 + 4).to_be_bytes())?;
        client.writer.write_all(&body)?;
        client.flush()?;
        loop {
            let (kind, body) = client.receive()?;
            match kind {
                b'R' if body[..4] != [0; 4] => bail!("the server wants a password"),
                b'R' | b'N' | b'v' => {}
                b'S' => client.parameter(&body),
                b'K' => client.key = (i32::from_be_bytes(body[..4].try_into()?), body[4..].to_vec()),
                b'E' => return Err(Message::parse(&body).into()),
                b'Z' => {
                    client.status = body[0] as char;
                    return Ok(client);
                }
                other => bail!("unexpected message {:?} at start-up", other as char),
            }
        }
    }

    /// Gives up on an answer after this time.
    pub fn set_timeout(&mut self, timeout: Duration) -> Result<()> {
        Ok(self.reader.get_ref().set_read_timeout(Some(timeout))?)
    }

    /// Sends one message; it leaves with the next [`Client::flush`].
    pub fn send(&mut self, kind: u8, body: &[u8]) -> Result<()> {
        self.writer.write_all(&[kind])?;
        self.writer.write_all(&(body.len() as i32 + 4).to_be_bytes())?;
        Ok(self.writer.write_all(body)?)
    }

    /// Sends what is buffered.
    pub fn flush(&mut self) -> Result<()> {
        Ok(self.writer.flush()?)
    }

    /// The next message.
    pub fn receive(&mut self) -> Result<Raw> {
        let mut head = [0; 5];
        self.reader.read_exact(&mut head).context("the server closed the connection or did not answer in time")?;
        let length = i32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        if !(4..=1 << 30).contains(&length) {
            bail!("message {:?} of length {length}", head[0] as char);
        }
        let mut body = vec![0; length as usize - 4];
        self.reader.read_exact(&mut body).context("the server closed the connection within a message")?;
        Ok((head[0], body))
    }

    /// All messages up to and including ReadyForQuery.
    pub fn until_ready(&mut self) -> Result<Vec<Raw>> {
        self.flush()?;
        let mut messages = Vec::new();
        loop {
            let message = self.receive()?;
            let ready = message.0 == b'Z';
            if ready {
                self.status = message.1[0] as char;
            }
            messages.push(message);
            if ready {
                return Ok(messages);
            }
        }
    }

    /// Runs a simple query of any number of statements.
    pub fn query(&mut self, sql: &str) -> Result<Answers> {
        self.query_copying(sql, &mut std::iter::empty())
    }

    /// As [`Client::query`]; a COPY FROM STDIN in it gets the chunks as its data.
    pub fn query_copying(&mut self, sql: &str, chunks: &mut dyn Iterator<Item = Vec<u8>>) -> Result<Answers> {
        self.send_query(sql)
            .and_then(|()| self.answers(chunks))
            .with_context(|| format!("no answer to: {}", shorten(sql)))
    }

    /// Sends a simple query without waiting for the answer.
    pub fn send_query(&mut self, sql: &str) -> Result<()> {
        let mut body = sql.as_bytes().to_vec();
        body.push(0);
        self.send(b'Q', &body)?;
        self.flush()
    }

    /// Reads the answers of a query that was sent.
    pub fn answers(&mut self, chunks: &mut dyn Iterator<Item = Vec<u8>>) -> Result<Answers> {
        let mut all = Answers::default();
        let mut current = Answer::default();
        let mut bytes = 0;
        loop {
            let (kind, body) = self.receive()?;
            bytes += body.len();
            if bytes > ANSWER_BYTES_MAX {
                return Err(TooLong.into());
            }
            match kind {
                b'T' => current.columns = Some(row_description(&body)),
                b'D' => current.rows.push(data_row(&body)),
                b'C' => {
                    current.tag = String::from_utf8_lossy(&body[..body.len() - 1]).into_owned();
                    all.answers.push(std::mem::take(&mut current));
                }
                b'I' => all.answers.push(std::mem::take(&mut current)),
                b'E' => all.error = all.error.or(Some(Message::parse(&body))),
                b'N' => all.notices.push(Message::parse(&body)),
                b'S' => self.parameter(&body),
                b'G' => {
                    for chunk in &mut *chunks {
                        self.send(b'd', &chunk)?;
                    }
                    self.send(b'c', &[])?;
                    self.flush()?;
                }
                b'd' => all.copied.extend_from_slice(&body),
                b'H' | b'c' => {}
                b'Z' => {
                    self.status = body[0] as char;
                    return Ok(all);
                }
                other => bail!("unexpected message {:?} after a query", other as char),
            }
        }
    }

    /// Runs one or more statements that must succeed; the last answer.
    pub fn run(&mut self, sql: &str) -> Result<Answer> {
        let mut all = self.query(sql)?;
        match all.error {
            Some(error) => Err(anyhow::Error::new(error).context(format!("in: {}", shorten(sql)))),
            None => Ok(all.answers.pop().unwrap_or_default()),
        }
    }

    /// The rows of a query that must succeed.
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Row>> {
        Ok(self.run(sql)?.rows)
    }

    /// The only value of a query that must succeed, NULL as "NULL".
    pub fn value(&mut self, sql: &str) -> Result<String> {
        let rows = self.rows(sql)?;
        match rows.as_slice() {
            [row] if row.len() == 1 => Ok(row[0].clone().unwrap_or_else(|| "NULL".into())),
            _ => bail!("one value expected, {} rows came from: {}", rows.len(), shorten(sql)),
        }
    }

    /// The error of a query that must fail.
    pub fn error(&mut self, sql: &str) -> Result<Message> {
        self.query(sql)?.error.with_context(|| format!("an error was expected from: {}", shorten(sql)))
    }

    /// COPY FROM STDIN that must succeed; the number of rows.
    pub fn copy_in(&mut self, sql: &str, chunks: &mut dyn Iterator<Item = Vec<u8>>) -> Result<u64> {
        let all = self.query_copying(sql, chunks)?;
        match all.error {
            Some(error) => Err(error.into()),
            None => Ok(all.answers.last().map_or(0, Answer::count)),
        }
    }

    /// Asks the server, on a connection of its own, to cancel what this client runs.
    pub fn cancel(&self) -> Result<()> {
        cancel(self.port, self.key.clone())
    }

    /// Extended protocol: Parse.
    pub fn parse(&mut self, statement: &str, sql: &str, types: &[u32]) -> Result<()> {
        let mut body = Vec::new();
        text(&mut body, statement);
        text(&mut body, sql);
        body.extend((types.len() as i16).to_be_bytes());
        types.iter().for_each(|oid| body.extend(oid.to_be_bytes()));
        self.send(b'P', &body)
    }

    /// Extended protocol: Bind.
    pub fn bind(
        &mut self,
        portal: &str,
        statement: &str,
        formats: &[i16],
        values: &[Option<&[u8]>],
        result_formats: &[i16],
    ) -> Result<()> {
        let mut body = Vec::new();
        text(&mut body, portal);
        text(&mut body, statement);
        body.extend((formats.len() as i16).to_be_bytes());
        formats.iter().for_each(|format| body.extend(format.to_be_bytes()));
        body.extend((values.len() as i16).to_be_bytes());
        for value in values {
            match value {
                None => body.extend((-1_i32).to_be_bytes()),
                Some(value) => {
                    body.extend((value.len() as i32).to_be_bytes());
                    body.extend_from_slice(value);
                }
            }
        }
        body.extend((result_formats.len() as i16).to_be_bytes());
        result_formats.iter().for_each(|format| body.extend(format.to_be_bytes()));
        self.send(b'B', &body)
    }

    /// Extended protocol: Describe; `kind` is b'S' or b'P'.
    pub fn describe(&mut self, kind: u8, name: &str) -> Result<()> {
        let mut body = vec![kind];
        text(&mut body, name);
        self.send(b'D', &body)
    }

    /// Extended protocol: Close; `kind` is b'S' or b'P'.
    pub fn close(&mut self, kind: u8, name: &str) -> Result<()> {
        let mut body = vec![kind];
        text(&mut body, name);
        self.send(b'C', &body)
    }

    /// Extended protocol: Execute.
    pub fn execute(&mut self, portal: &str, rows_max: i32) -> Result<()> {
        let mut body = Vec::new();
        text(&mut body, portal);
        body.extend(rows_max.to_be_bytes());
        self.send(b'E', &body)
    }

    /// Extended protocol: Sync.
    pub fn sync(&mut self) -> Result<()> {
        self.send(b'S', &[])
    }

    fn parameter(&mut self, body: &[u8]) {
        let mut parts = body.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned());
        if let (Some(name), Some(value)) = (parts.next(), parts.next()) {
            self.parameters.insert(name, value);
        }
    }
}

/// Sends a cancel request for the session with this key.
pub fn cancel(port: u16, (process, secret): (i32, Vec<u8>)) -> Result<()> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    let mut body = (12 + secret.len() as i32).to_be_bytes().to_vec();
    body.extend(80_877_102_i32.to_be_bytes());
    body.extend(process.to_be_bytes());
    body.extend(secret);
    stream.write_all(&body)?;
    // The server closes the connection once it has seen the request.
    let _ = stream.read(&mut [0; 1]);
    Ok(())
}

/// The types of messages as one string, for comparisons like "12TDDCZ".
pub fn kinds(messages: &[Raw]) -> String {
    messages.iter().map(|(kind, _)| *kind as char).collect()
}

/// The first error among messages.
pub fn first_error(messages: &[Raw]) -> Option<Message> {
    messages.iter().find(|(kind, _)| *kind == b'E').map(|(_, body)| Message::parse(body))
}

/// Reads a RowDescription.
pub fn row_description(body: &[u8]) -> Vec<Column> {
    let mut columns = Vec::new();
    let mut rest = &body[2..];
    while let Some(end) = rest.iter().position(|byte| *byte == 0) {
        let tail = &rest[end + 1..];
        columns.push(Column {
            name: String::from_utf8_lossy(&rest[..end]).into_owned(),
            oid: u32::from_be_bytes([tail[6], tail[7], tail[8], tail[9]]),
            modifier: i32::from_be_bytes([tail[12], tail[13], tail[14], tail[15]]),
            format: i16::from_be_bytes([tail[16], tail[17]]),
        });
        rest = &tail[18..];
    }
    columns
}

/// Reads a DataRow of bytes.
pub fn data_row_bytes(body: &[u8]) -> Vec<Option<Vec<u8>>> {
    let count = u16::from_be_bytes([body[0], body[1]]) as usize;
    let mut row = Vec::with_capacity(count);
    let mut at = 2;
    for _ in 0..count {
        let length = i32::from_be_bytes([body[at], body[at + 1], body[at + 2], body[at + 3]]);
        at += 4;
        if length < 0 {
            row.push(None);
        } else {
            row.push(Some(body[at..at + length as usize].to_vec()));
            at += length as usize;
        }
    }
    row
}

/// Reads a DataRow of texts.
pub fn data_row(body: &[u8]) -> Row {
    data_row_bytes(body)
        .into_iter()
        .map(|value| value.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
        .collect()
}

/// The first 300 characters, on one line.
pub fn shorten(sql: &str) -> String {
    let line = sql.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(300) {
        Some((at, _)) => format!("{}...", &line[..at]),
        None => line,
    }
}

fn text(body: &mut Vec<u8>, value: &str) {
    body.extend_from_slice(value.as_bytes());
    body.push(0);
}
