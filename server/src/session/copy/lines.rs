//! Cuts COPY's stream into records and fields.
//!
//! text: a record ends at a newline that no backslash escapes; fields are separated by the delimiter; `\N` (or the NULL
//! option) as a whole field is NULL. csv: delimiters and newlines within quotes are data; a field that equals the NULL option and
//! is not quoted is NULL. In both, a record `\.` ends the data.

use plan::SqlState;
use planner::statement::{CopyFormat, CopyOptions};

use super::is_csv;
use crate::error::{Result, ServerError};

/// Where a record ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    /// Bytes with the newline.
    pub bytes: usize,
    /// Lines of the stream.
    pub lines: u64,
    /// The record is `\.`.
    pub end_marker: bool,
}

/// A field of the current record.
#[derive(Debug, Clone, Copy)]
pub struct Span {
    start: usize,
    end: usize,
    /// Holds escapes or quotes: its value is not just its bytes.
    special: bool,
}

/// Cuts records and fields.
pub struct Cutter {
    format: CopyFormat,
    delimiter: u8,
    quote: u8,
    escape: u8,
    null: Vec<u8>,
    fields: Vec<Span>,
    /// The value of a field with escapes.
    unescaped: Vec<u8>,
    /// How far an incomplete csv record has been looked at is not kept: it is cut again when more has come.
    carriage_returns: bool,
}

impl Cutter {
    /// For the options of a COPY.
    pub fn new(options: &CopyOptions) -> Cutter {
        Cutter {
            format: options.format,
            delimiter: options.delimiter,
            quote: options.quote,
            escape: options.escape,
            null: options.null.as_bytes().to_vec(),
            fields: Vec::new(),
            unescaped: Vec::new(),
            carriage_returns: true,
        }
    }

    /// Cuts the first record off; none if it is not complete. With `last`, it is complete at the end of the bytes.
    pub fn record(&mut self, bytes: &[u8], last: bool) -> Result<Option<Cut>> {
        if is_csv(self.format) { self.csv_record(bytes, last) } else { Ok(self.text_record(bytes, last)) }
    }

    /// Fields of the record that was cut last.
    pub fn fields(&self) -> &[Span] {
        &self.fields
    }

    /// The value of a field of the record that was cut last; none for NULL.
    #[inline]
    pub fn value<'a>(&'a mut self, index: usize, record: &'a [u8]) -> Option<&'a [u8]> {
        let span = self.fields[index];
        let raw = &record[span.start..span.end];
        if !span.special {
            return if raw == self.null.as_slice() { None } else { Some(raw) };
        }
        if is_csv(self.format) {
            self.unquote(raw);
            return Some(&self.unescaped);
        }
        // NULL is recognised before escapes are: `\N`.
        if raw == self.null.as_slice() {
            return None;
        }
        self.unescape(raw);
        Some(&self.unescaped)
    }

    /// A record of the text format.
    fn text_record(&mut self, bytes: &[u8], last: bool) -> Option<Cut> {
        self.fields.clear();
        let mut start = 0;
        let mut special = false;
        let mut lines = 1;
        let mut skip_to = 0;
        for at in memchr::memchr3_iter(self.delimiter, b'\n', b'\\', bytes) {
            if at < skip_to {
                // Escaped: data, but a newline still counts as a line.
                lines += u64::from(bytes[at] == b'\n');
                continue;
            }
            match bytes[at] {
                b'\\' => {
                    special = true;
                    skip_to = at + 2;
                }
                b'\n' => {
                    return Some(self.text_end(
                        bytes,
                        start,
                        at,
                        special,
                        Cut { bytes: at + 1, lines, end_marker: false },
                    ));
                }
                _ => {
                    self.fields.push(Span { start, end: at, special });
                    start = at + 1;
                    special = false;
                }
            }
        }
        if !last {
            return None;
        }
        let cut = Cut { bytes: bytes.len(), lines, end_marker: false };
        Some(self.text_end(bytes, start, bytes.len(), special, cut))
    }

    /// The last field of a text record, without the carriage return of a line that ends so.
    fn text_end(&mut self, bytes: &[u8], start: usize, newline: usize, special: bool, cut: Cut) -> Cut {
        let end = self.line_end(bytes, start, newline);
        self.fields.push(Span { start, end, special });
        Cut { end_marker: &bytes[..end] == b"\\.", ..cut }
    }

    /// Leaves out a carriage return before the newline, if all lines so far had one.
    fn line_end(&mut self, bytes: &[u8], start: usize, newline: usize) -> usize {
        if self.carriage_returns && newline > start && bytes[newline - 1] == b'\r' {
            return newline - 1;
        }
        self.carriage_returns = false;
        newline
    }

    /// A record of the csv format.
    fn csv_record(&mut self, bytes: &[u8], last: bool) -> Result<Option<Cut>> {
        self.fields.clear();
        let (mut start, mut special, mut quoted) = (0, false, false);
        let mut lines = 1;
        let mut at = 0;
        while at < bytes.len() {
            if quoted {
                let Some(next) = memchr::memchr3(self.quote, self.escape, b'\n', &bytes[at..]) else {
                    at = bytes.len();
                    break;
                };
                at += next;
                let byte = bytes[at];
                if byte == b'\n' && byte != self.quote {
                    lines += 1;
                } else if byte == self.escape && self.escape != self.quote {
                    // The next byte is data, if it is one that can be escaped.
                    if at + 1 < bytes.len() && matches!(bytes[at + 1], b if b == self.quote || b == self.escape) {
                        at += 1;
                    }
                } else {
                    // A doubled quote leaves and enters again, which is as good.
                    quoted = false;
                }
                at += 1;
                continue;
            }
            let Some(next) = memchr::memchr3(self.delimiter, self.quote, b'\n', &bytes[at..]) else {
                at = bytes.len();
                break;
            };
            at += next;
            let byte = bytes[at];
            if byte == self.quote {
                (quoted, special) = (true, true);
            } else if byte == b'\n' {
                return Ok(Some(self.csv_end(
                    bytes,
                    start,
                    at,
                    special,
                    Cut { bytes: at + 1, lines, end_marker: false },
                )));
            } else {
                self.fields.push(Span { start, end: at, special });
                start = at + 1;
                special = false;
            }
            at += 1;
        }
        if !last {
            return Ok(None);
        }
        if quoted {
            return Err(ServerError::new(SqlState::BAD_COPY_FILE_FORMAT, "unterminated CSV quoted field"));
        }
        let cut = Cut { bytes: at, lines, end_marker: false };
        Ok(Some(self.csv_end(bytes, start, at, special, cut)))
    }

    /// The last field of a csv record.
    fn csv_end(&mut self, bytes: &[u8], start: usize, newline: usize, special: bool, cut: Cut) -> Cut {
        let end = self.line_end(bytes, start, newline);
        self.fields.push(Span { start, end, special });
        Cut { end_marker: &bytes[..end] == b"\\.", ..cut }
    }

    /// Takes quotes off: each part within them is data as it is, but for escaped quotes and escapes.
    fn unquote(&mut self, raw: &[u8]) {
        self.unescaped.clear();
        let mut quoted = false;
        let mut bytes = raw.iter().copied().peekable();
        while let Some(byte) = bytes.next() {
            if !quoted {
                if byte == self.quote {
                    quoted = true;
                } else {
                    self.unescaped.push(byte);
                }
                continue;
            }
            let escapes =
                byte == self.escape && bytes.peek().is_some_and(|next| *next == self.quote || *next == self.escape);
            if escapes {
                self.unescaped.extend(bytes.next());
            } else if byte == self.quote {
                quoted = false;
            } else {
                self.unescaped.push(byte);
            }
        }
    }

    /// Resolves the text format's backslashes.
    fn unescape(&mut self, raw: &[u8]) {
        self.unescaped.clear();
        let mut rest = raw;
        while let Some(at) = memchr::memchr(b'\\', rest) {
            self.unescaped.extend_from_slice(&rest[..at]);
            rest = &rest[at + 1..];
            let Some((byte, tail)) = rest.split_first() else {
                self.unescaped.push(b'\\');
                break;
            };
            rest = tail;
            let value = match byte {
                b'b' => 0x08,
                b'f' => 0x0c,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'v' => 0x0b,
                b'0'..=b'7' => {
                    let mut value = u32::from(byte - b'0');
                    for _ in 0..2 {
                        let Some((digit @ b'0'..=b'7', tail)) = rest.split_first() else { break };
                        value = value << 3 | u32::from(digit - b'0');
                        rest = tail;
                    }
                    (value & 0xff) as u8
                }
                b'x' if rest.first().is_some_and(u8::is_ascii_hexdigit) => {
                    let mut value = 0;
                    for _ in 0..2 {
                        let Some((digit, tail)) = rest.split_first() else { break };
                        let Some(digit) = char::from(*digit).to_digit(16) else { break };
                        value = value << 4 | digit;
                        rest = tail;
                    }
                    value as u8
                }
                other => *other,
            };
            self.unescaped.push(value);
        }
        self.unescaped.extend_from_slice(rest);
    }
}
