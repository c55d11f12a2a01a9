//! Value sets: which values of a column a group has, and how often.

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, Field, Schema};

use super::slots::damaged;
use crate::delta::key::{KeyEncoder, Keys};
use crate::delta::rows::{EncodedRows, RowCodec};
use crate::error::Result;
use crate::functions::aggregate::codec;
use crate::functions::aggregate::interner::Interner;
use crate::state::StateTable;

/// Encodes values so that their bytes order as they do.
///
/// Where equal values may look different (-0.0 and 0.0, a month and 30 days), `exact` puts the value as it is behind
/// its key, so that it can be shown as it came; equal values then stay apart, next to each other.
#[derive(Debug)]
pub(super) struct ValueEncoder {
    keys: KeyEncoder,
    exact: Option<RowCodec>,
}

/// Encoded values, one a row.
pub(super) struct EncodedValues {
    keys: Keys,
    exact: Option<EncodedRows>,
    buffer: Vec<u8>,
}

/// Whether values of a type need their exact form behind the key: its two forms have the same number of bytes.
pub(super) fn has_exact_form(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float16 | DataType::Float32 | DataType::Float64 | DataType::Interval(_))
}

impl ValueEncoder {
    pub(super) fn new(data_type: &DataType, exact: bool) -> Result<Self> {
        let schema = Schema::new(vec![Field::new("value", data_type.clone(), true)]);
        let exact = (exact && has_exact_form(data_type)).then(|| RowCodec::new(&schema.into())).transpose()?;
        Ok(ValueEncoder { keys: KeyEncoder::new(std::slice::from_ref(data_type))?, exact })
    }

    pub(super) fn encode(&self, values: &ArrayRef) -> Result<EncodedValues> {
        let keys = self.keys.encode(std::slice::from_ref(values))?;
        let exact = match &self.exact {
            Some(codec) => Some(codec.encode_columns(std::slice::from_ref(values), values.len())?),
            None => None,
        };
        Ok(EncodedValues { keys, exact, buffer: Vec::new() })
    }

    /// Reads values back; none only if there is no column, which does not happen.
    pub(super) fn decode<'a>(&self, values: impl IntoIterator<Item = &'a [u8]>) -> Result<Option<ArrayRef>> {
        match &self.exact {
            Some(codec) => {
                let exact = codec.decode(values.into_iter().map(|value| &value[value.len() / 2..]))?;
                Ok(exact.columns().first().cloned())
            }
            None => Ok(self.keys.decode(values)?.pop()),
        }
    }
}

impl EncodedValues {
    /// The bytes of a row's value.
    #[inline]
    pub(super) fn row(&mut self, row: usize) -> &[u8] {
        match &self.exact {
            None => self.keys.row(row),
            Some(exact) => {
                self.buffer.clear();
                self.buffer.extend_from_slice(self.keys.row(row));
                self.buffer.extend_from_slice(exact.row(row));
                &self.buffer
            }
        }
    }
}

/// What a value set gained in an epoch.
#[derive(Debug)]
pub(super) struct ValueChanges {
    pub(super) encoder: ValueEncoder,
    /// Group key and value behind each other.
    pub(super) entries: Interner,
    /// The group of each entry.
    pub(super) groups: Vec<usize>,
    /// How often each value was gained.
    pub(super) weights: Vec<i64>,
}

impl ValueChanges {
    /// None.
    pub(super) fn new(encoder: ValueEncoder) -> Self {
        ValueChanges { encoder, entries: Interner::default(), groups: Vec::new(), weights: Vec::new() }
    }

    /// The value of an entry.
    pub(super) fn value(&self, entry: usize, groups: &Interner) -> &[u8] {
        &self.entries.get(entry)[groups.get(self.groups[entry]).len()..]
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.groups.clear();
        self.weights.clear();
    }
}

/// How a value set changed: values that came to be there, and values that are no more.
pub(super) struct Transitions {
    /// The entry, among the epoch's.
    pub(super) entries: Vec<usize>,
    /// +1 or -1.
    pub(super) weights: Vec<i64>,
}

/// Writes the new counts of a value set. Partitions are those of the groups.
pub(super) fn update(table: &StateTable, changes: &ValueChanges, partitions: &[u16]) -> Result<Transitions> {
    let mut transitions = Transitions { entries: Vec::new(), weights: Vec::new() };
    let changed: Vec<usize> = (0..changes.weights.len()).filter(|entry| changes.weights[*entry] != 0).collect();
    let keys: Vec<(u16, &[u8])> =
        changed.iter().map(|entry| (partitions[changes.groups[*entry]], changes.entries.get(*entry))).collect();
    let mut bytes = Vec::new();
    for (position, stored) in table.get_many(&keys)?.into_iter().enumerate() {
        let (entry, (partition, key)) = (changed[position], keys[position]);
        let old = match stored {
            Some(stored) => codec::take_i64(&mut stored.as_ref()).ok_or_else(damaged)?,
            None => 0,
        };
        let new = old + changes.weights[entry];
        if new == 0 {
            table.delete(partition, key);
        } else {
            bytes.clear();
            codec::put_signed(&mut bytes, i128::from(new));
            table.put_slice(partition, key, &bytes);
        }
        if (old > 0) != (new > 0) {
            transitions.entries.push(entry);
            transitions.weights.push(if new > 0 { 1 } else { -1 });
        }
    }
    Ok(transitions)
}
