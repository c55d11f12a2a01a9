//! A delta as timely carries it between operators: in memory as it is, between processes as an Arrow IPC stream.
//!
//! Wire form, little endian and padded to a multiple of 8 bytes: `[length of the stream u64][1 if there are weights,
//! else 0: u64][IPC stream of one batch, weights as its last column]`. No delta is 8 zero bytes.

use std::io::{Cursor, Write};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, Int64Type, Schema};
use datafusion::arrow::ipc::reader::StreamReader;
use datafusion::arrow::ipc::writer::StreamWriter;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use timely::Accountable;
use timely::dataflow::channels::ContainerBytes;

use crate::delta::Delta;
use crate::error::{Error, Result};

/// A delta, or nothing once it has been taken.
#[derive(Debug, Clone, Default)]
pub(super) struct DeltaContainer(pub(super) Option<Delta>);

impl Accountable for DeltaContainer {
    fn record_count(&self) -> i64 {
        self.0.as_ref().map_or(0, |delta| delta.len() as i64)
    }
}

impl ContainerBytes for DeltaContainer {
    fn from_bytes(bytes: timely::bytes::arc::Bytes) -> Self {
        match decode(&bytes) {
            Ok(delta) => DeltaContainer(delta),
            // The bytes come from a peer of the same build over a reliable transport, and timely asks for a value.
            #[allow(clippy::panic)]
            Err(error) => panic!("a delta from another process cannot be read: {error}"),
        }
    }

    fn length_in_bytes(&self) -> usize {
        encode(self.0.as_ref()).len()
    }

    fn into_bytes<W: Write>(&self, writer: &mut W) {
        // Writers of timely are memory buffers of the announced length: they do not fail.
        let written = writer.write_all(&encode(self.0.as_ref()));
        debug_assert!(written.is_ok());
    }
}

const HEADER_BYTES: usize = 16;

fn encode(delta: Option<&Delta>) -> Vec<u8> {
    let mut bytes = vec![0; 8];
    let Some(delta) = delta else { return bytes };
    bytes.resize(HEADER_BYTES, 0);
    // An error leaves a stream that the reader refuses: every Arrow type of ours can be written.
    let written = write_stream(delta, &mut bytes);
    debug_assert!(written.is_ok());
    let length = (bytes.len() - HEADER_BYTES) as u64;
    bytes[..8].copy_from_slice(&length.to_le_bytes());
    bytes[8] = u8::from(delta.weights().is_some());
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

fn write_stream(delta: &Delta, bytes: &mut Vec<u8>) -> Result<()> {
    let batch = match delta.weights() {
        None => delta.batch().clone(),
        Some(weights) => {
            let schema = delta.schema();
            let mut fields: Vec<_> = schema.fields().iter().cloned().collect();
            fields.push(Arc::new(Field::new("$weight", DataType::Int64, false)));
            let mut columns = delta.batch().columns().to_vec();
            columns.push(Arc::new(weights.clone()) as ArrayRef);
            RecordBatch::try_new(Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone())), columns)?
        }
    };
    let mut writer = StreamWriter::try_new(bytes, &batch.schema())?;
    writer.write(&batch)?;
    writer.finish()?;
    Ok(())
}

fn decode(bytes: &[u8]) -> Result<Option<Delta>> {
    let damaged = || Error::Corrupted("a delta is cut off".to_owned());
    let number = |at: usize| -> Result<u64> {
        let bytes = bytes.get(at..at + 8).ok_or_else(damaged)?;
        Ok(u64::from_le_bytes(bytes.try_into().map_err(|_| damaged())?))
    };
    let length = number(0)? as usize;
    if length == 0 {
        return Ok(None);
    }
    let weighted = number(8)? == 1;
    let stream = bytes.get(HEADER_BYTES..HEADER_BYTES + length).ok_or_else(damaged)?;
    let mut reader = StreamReader::try_new(Cursor::new(stream), None)?;
    let batch = reader.next().ok_or_else(damaged)??;
    if !weighted {
        return Ok(Some(Delta::insert(batch)));
    }
    let (weight_column, columns) = batch.columns().split_last().ok_or_else(damaged)?;
    let schema = batch.schema();
    let fields: Vec<_> = schema.fields().iter().take(columns.len()).cloned().collect();
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    let rows = RecordBatch::try_new_with_options(schema, columns.to_vec(), &options)?;
    let weights = weight_column.as_primitive_opt::<Int64Type>().ok_or_else(damaged)?;
    Ok(Some(Delta::new(rows, Some(weights.clone()))))
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, StringArray};
    use timely::bytes::arc::BytesMut;

    use super::*;

    fn through_bytes(container: &DeltaContainer) -> DeltaContainer {
        let mut bytes = Vec::new();
        container.into_bytes(&mut bytes);
        assert_eq!(bytes.len(), container.length_in_bytes());
        assert_eq!(bytes.len() % 8, 0);
        DeltaContainer::from_bytes(BytesMut::from(bytes).freeze())
    }

    fn batch() -> RecordBatch {
        let fields = vec![Field::new("a", DataType::Int64, true), Field::new("b", DataType::Utf8, false)];
        RecordBatch::try_new(
            Arc::new(Schema::new(fields)),
            vec![
                Arc::new(Int64Array::from(vec![Some(1), None, Some(3)])),
                Arc::new(StringArray::from(vec!["x", "", "long enough to be no short string"])),
            ],
        )
        .unwrap()
    }

    #[test]
    fn deltas_survive_the_wire() {
        for weights in [None, Some(Int64Array::from(vec![1, -1, 7]))] {
            let delta = Delta::new(batch(), weights);
            let read = through_bytes(&DeltaContainer(Some(delta.clone()))).0.unwrap();
            assert_eq!(read.batch(), delta.batch());
            assert_eq!(read.weights(), delta.weights());
        }
        assert!(through_bytes(&DeltaContainer(None)).0.is_none());
    }

    #[test]
    fn a_slice_is_sent_alone() {
        let delta = Delta::new(batch(), Some(Int64Array::from(vec![1, -1, 7]))).slice(1, 1);
        let read = through_bytes(&DeltaContainer(Some(delta))).0.unwrap();
        assert_eq!((read.len(), read.weight(0)), (1, -1));
    }

    #[test]
    fn rows_without_columns_are_counted() {
        let options = RecordBatchOptions::new().with_row_count(Some(2));
        let batch = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options).unwrap();
        assert_eq!(through_bytes(&DeltaContainer(Some(Delta::insert(batch.clone())))).record_count(), 2);
        let weighted = Delta::new(batch, Some(Int64Array::from(vec![3, -1])));
        assert_eq!(through_bytes(&DeltaContainer(Some(weighted))).0.unwrap().weight(0), 3);
    }
}
