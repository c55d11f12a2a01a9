//! Rows as lines of COPY TO STDOUT.

use bytes::BytesMut;
use planner::statement::{CopyFormat, CopyOptions};

use crate::pgwire::encode::Column;
use crate::pgwire::text::TextStyle;

/// Writes lines.
pub struct LineWriter {
    options: CopyOptions,
    /// The text of a value before it is escaped.
    value: BytesMut,
}

impl LineWriter {
    /// For the options of a COPY.
    pub fn new(options: &CopyOptions) -> LineWriter {
        LineWriter { options: options.clone(), value: BytesMut::new() }
    }

    /// The line with column names.
    pub fn header(&mut self, names: &[&str], out: &mut BytesMut) {
        for (index, name) in names.iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(&[self.options.delimiter]);
            }
            self.field(name.as_bytes(), false, names.len() == 1, out);
        }
        out.extend_from_slice(b"\n");
    }

    /// A row's line.
    pub fn row(&mut self, columns: &[Column<'_>], row: usize, style: &TextStyle, out: &mut BytesMut) {
        for (index, column) in columns.iter().enumerate() {
            if index > 0 {
                out.extend_from_slice(&[self.options.delimiter]);
            }
            if column.is_null(row) {
                out.extend_from_slice(self.options.null.as_bytes());
                continue;
            }
            let mut value = std::mem::take(&mut self.value);
            value.clear();
            column.text(row, style, &mut value);
            let force = self.options.force_quote.as_ref().is_some_and(|columns| columns.contains(&index));
            self.field(&value, force, columns.len() == 1, out);
            self.value = value;
        }
        out.extend_from_slice(b"\n");
    }

    /// A value that is not NULL.
    fn field(&self, value: &[u8], force_quote: bool, alone: bool, out: &mut BytesMut) {
        match self.options.format {
            CopyFormat::Text => self.escaped(value, out),
            CopyFormat::Csv => self.quoted(value, force_quote, alone, out),
        }
    }

    /// text: control characters, the delimiter and backslashes are escaped.
    fn escaped(&self, value: &[u8], out: &mut BytesMut) {
        let mut start = 0;
        for (index, byte) in value.iter().enumerate() {
            let letter = match byte {
                b'\\' => b'\\',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                0x08 => b'b',
                0x0b => b'v',
                0x0c => b'f',
                byte if *byte == self.options.delimiter => *byte,
                _ => continue,
            };
            out.extend_from_slice(&value[start..index]);
            out.extend_from_slice(&[b'\\', letter]);
            start = index + 1;
        }
        out.extend_from_slice(&value[start..]);
    }

    /// csv: quoted where it would be read as something else.
    fn quoted(&self, value: &[u8], force: bool, alone: bool, out: &mut BytesMut) {
        let options = &self.options;
        let special = |byte: &u8| *byte == options.delimiter || *byte == options.quote || matches!(byte, b'\n' | b'\r');
        let needed =
            force || value == options.null.as_bytes() || value.iter().any(special) || (alone && value == b"\\.");
        if !needed {
            out.extend_from_slice(value);
            return;
        }
        out.extend_from_slice(&[options.quote]);
        for byte in value {
            if *byte == options.quote || *byte == options.escape {
                out.extend_from_slice(&[options.escape]);
            }
            out.extend_from_slice(&[*byte]);
        }
        out.extend_from_slice(&[options.quote]);
    }
}
