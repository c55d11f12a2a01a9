//! COPY on the wire: the client's stream into a reader, rows as lines to the client.

use bytes::BytesMut;
use pgwire::messages::copy::{CopyDone, CopyInResponse, CopyOutResponse};
use plan::SqlState;
use planner::statement::CopyOptions;

use super::connection::{Connection, OUTPUT_BYTES_MAX};
use super::encode;
use super::handler::{Client, Failure, SocketResult};
use crate::error::ServerError;
use crate::session::Rows;
use crate::session::copy::{CopyReader, LineWriter};

impl Client {
    /// COPY FROM STDIN: reads until the client ends the stream. Nothing of it is kept if anything in it is wrong. The
    /// socket is read no faster than rows are taken. Returns the command tag.
    pub async fn copy_in(&mut self, connection: &mut Connection, mut reader: CopyReader) -> Result<String, Failure> {
        let columns = reader.columns() as i16;
        connection.put(&CopyInResponse::new(0, columns, vec![0; usize::from(columns.unsigned_abs())]));
        connection.flush().await.socket()?;
        loop {
            let read = self.session.guard().run(async { Ok::<_, ServerError>(connection.read().await) }).await?;
            let Some(frame) = read.socket()? else {
                return Err(Failure::Socket(std::io::ErrorKind::UnexpectedEof.into()));
            };
            match frame.kind() {
                b'd' => {
                    reader.push(frame.body())?;
                    while let Some(batch) = reader.take_batch(false)? {
                        self.session.copy_rows(reader.table(), batch).await?;
                    }
                }
                b'c' => break,
                b'f' => {
                    let reason = String::from_utf8_lossy(frame.body().strip_suffix(b"\0").unwrap_or(frame.body()));
                    return Err(ServerError::new(
                        SqlState::QUERY_CANCELED,
                        format!("COPY from stdin failed: {reason}"),
                    )
                    .with_context(|| reader.place())
                    .into());
                }
                // Flush and Sync are allowed here and mean nothing.
                b'H' | b'S' => {}
                other => {
                    return Err(ServerError::new(
                        SqlState::PROTOCOL_VIOLATION,
                        format!("unexpected message type 0x{other:02X} during COPY from stdin"),
                    )
                    .into());
                }
            }
        }
        reader.end()?;
        while let Some(batch) = reader.take_batch(true)? {
            self.session.copy_rows(reader.table(), batch).await?;
        }
        Ok(format!("COPY {}", reader.rows()))
    }

    /// COPY TO STDOUT. Returns the command tag.
    pub async fn copy_out(
        &mut self,
        connection: &mut Connection,
        mut rows: Rows,
        options: &CopyOptions,
    ) -> Result<String, Failure> {
        let columns = rows.schema.fields().len();
        connection.put(&CopyOutResponse::new(0, columns as i16, vec![0; columns]));
        let mut writer = LineWriter::new(options);
        let style = *self.session.settings().style();
        if options.header {
            let names: Vec<&str> = rows.schema.fields().iter().map(|field| field.name().as_str()).collect();
            copy_data(&mut connection.output, |out| writer.header(&names, out));
        }
        let mut count = 0_u64;
        while let Some(batch) = self.session.guard().run(rows.next(usize::MAX)).await? {
            let batch = encode::normalised(&batch)?;
            let mut row = 0;
            while row < batch.num_rows() {
                let columns = encode::columns(&batch, &rows.schema)?;
                while row < batch.num_rows() && connection.output.len() < OUTPUT_BYTES_MAX {
                    copy_data(&mut connection.output, |out| writer.row(&columns, row, &style, out));
                    row += 1;
                }
                drop(columns);
                connection.flush_if_full().await.socket()?;
            }
            count += batch.num_rows() as u64;
        }
        connection.put(&CopyDone::new());
        Ok(format!("COPY {count}"))
    }
}

/// Writes a CopyData message around what is written.
fn copy_data(output: &mut BytesMut, write: impl FnOnce(&mut BytesMut)) {
    let start = output.len();
    output.extend_from_slice(b"d\0\0\0\0");
    write(output);
    let length = (output.len() - start - 1) as u32;
    output[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
}
