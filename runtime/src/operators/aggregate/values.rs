//! Value sets: which values of a column (or of several) a group has, and how often.
//!
//! A group has few different values mostly, and then they stand in the group's own entry: one read and one write for
//! all of them. When their bytes become too many, each gets an entry of its own, and keeps it until the group ends:
//! a change costs no more in a group of millions.

use bytes::Bytes;
use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Field, Schema};

use super::ValueForm;
use super::slots::damaged;
use crate::delta::key::{KeyEncoder, Keys};
use crate::delta::rows::{EncodedRows, RowCodec};
use crate::error::Result;
use crate::functions::aggregate::codec;
use crate::functions::aggregate::grouped::Rows;
use crate::functions::aggregate::interner::Interner;
use crate::functions::aggregate::ordered::RowEncoder;
use crate::functions::aggregate::ordered::rows::OrderedRows;
use crate::limits;
use crate::state::StateTable;

/// Encodes values so that their bytes order as they do.
#[derive(Debug)]
pub(super) enum ValueEncoder {
    /// What tells different values apart.
    Key(KeyEncoder),
    /// Where equal values may look different (-0.0 and 0.0, a month and 30 days), the value as it is stands behind its
    /// key, so that it can be shown as it came; equal values then stay apart, next to each other.
    Exact(KeyEncoder, RowCodec),
    /// Rows in an order.
    Ordered(RowEncoder),
}

/// Encoded values, one a row.
pub(super) enum EncodedValues {
    Key(Keys),
    Exact(Keys, EncodedRows, Vec<u8>),
    Ordered(OrderedRows),
}

/// Whether values of a type need their exact form behind the key: its two forms have the same number of bytes.
pub(super) fn has_exact_form(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float16 | DataType::Float32 | DataType::Float64 | DataType::Interval(_))
}

impl ValueEncoder {
    pub(super) fn new(types: &[DataType], form: &ValueForm) -> Result<Self> {
        Ok(match form {
            ValueForm::Ordered { order, .. } => ValueEncoder::Ordered(RowEncoder::new(types, order)?),
            ValueForm::Exact if types.iter().all(has_exact_form) => {
                let fields: Vec<Field> =
                    types.iter().map(|data_type| Field::new("", data_type.clone(), true)).collect();
                ValueEncoder::Exact(KeyEncoder::new(types)?, RowCodec::new(&Schema::new(fields).into())?)
            }
            ValueForm::Exact | ValueForm::Key => ValueEncoder::Key(KeyEncoder::new(types)?),
        })
    }

    pub(super) fn encode(&self, values: &[ArrayRef]) -> Result<EncodedValues> {
        Ok(match self {
            ValueEncoder::Key(keys) => EncodedValues::Key(keys.encode(values)?),
            ValueEncoder::Exact(keys, exact) => {
                let rows = values.first().map_or(0, |values| values.len());
                EncodedValues::Exact(keys.encode(values)?, exact.encode_columns(values, rows)?, Vec::new())
            }
            ValueEncoder::Ordered(rows) => EncodedValues::Ordered(rows.encode(values)?),
        })
    }

    /// Reads values back, as columns.
    pub(super) fn decode<'a>(&self, values: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<ArrayRef>> {
        match self {
            ValueEncoder::Key(keys) => keys.decode(values),
            ValueEncoder::Exact(_, codec) => {
                let exact = codec.decode(values.into_iter().map(|value| &value[value.len() / 2..]))?;
                Ok(exact.columns().to_vec())
            }
            ValueEncoder::Ordered(rows) => rows.decode(values),
        }
    }
}

impl EncodedValues {
    /// The bytes of a row's value.
    #[inline]
    pub(super) fn row(&mut self, row: usize) -> &[u8] {
        match self {
            EncodedValues::Key(keys) => keys.row(row),
            EncodedValues::Exact(keys, exact, buffer) => {
                buffer.clear();
                buffer.extend_from_slice(keys.row(row));
                buffer.extend_from_slice(exact.row(row));
                buffer
            }
            EncodedValues::Ordered(rows) => rows.row(row),
        }
    }
}

/// What a value set gained in an epoch.
#[derive(Debug)]
pub(super) struct ValueChanges {
    pub(super) encoder: ValueEncoder,
    /// Which rows are left out.
    nulls: NullRule,
    /// The number of a group and a value behind each other.
    entries: Interner,
    /// The group of each entry.
    groups: Vec<usize>,
    /// How often each value was gained.
    weights: Vec<i64>,
}

/// Which rows a NULL leaves out of a set.
#[derive(Debug, Clone, Copy)]
enum NullRule {
    None,
    OfFirst,
    OfAny,
}

/// Bytes of a group's number within an entry.
const GROUP_BYTES: usize = size_of::<u32>();

impl ValueChanges {
    /// None, of values of certain types.
    pub(super) fn new(types: &[DataType], form: &ValueForm) -> Result<Self> {
        let nulls = match form {
            ValueForm::Ordered { keeps_nulls: true, .. } => NullRule::None,
            ValueForm::Ordered { keeps_nulls: false, .. } => NullRule::OfFirst,
            ValueForm::Key | ValueForm::Exact => NullRule::OfAny,
        };
        let encoder = ValueEncoder::new(types, form)?;
        Ok(ValueChanges { encoder, nulls, entries: Interner::default(), groups: Vec::new(), weights: Vec::new() })
    }

    /// Takes values of rows.
    pub(super) fn absorb(&mut self, values: &[ArrayRef], rows: Rows<'_>) -> Result<()> {
        let mut encoded = self.encoder.encode(values)?;
        let deciding = match self.nulls {
            NullRule::None => 0,
            NullRule::OfFirst => 1,
            NullRule::OfAny => values.len(),
        };
        let nulls = values.iter().take(deciding).fold(None, |nulls: Option<NullBuffer>, column| {
            NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref())
        });
        rows.for_each_valid(nulls, |row, group, weight| {
            // Groups are numbered below 2^32.
            let entry = self.entries.intern_pair(&(group as u32).to_be_bytes(), encoded.row(row));
            if entry == self.weights.len() {
                self.weights.push(0);
                self.groups.push(group);
            }
            self.weights[entry] += weight;
        });
        Ok(())
    }

    /// The group of an entry.
    pub(super) fn group(&self, entry: usize) -> usize {
        self.groups[entry]
    }

    /// The value of an entry.
    pub(super) fn value(&self, entry: usize) -> &[u8] {
        &self.entries.get(entry)[GROUP_BYTES..]
    }

    /// How often the value of an entry was gained.
    pub(super) fn weight(&self, entry: usize) -> i64 {
        self.weights[entry]
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.entries.clear();
        self.groups.clear();
        self.weights.clear();
    }

    /// Entries that change something, by group, those of a group in the order of their values; and where the entries
    /// of each of so many groups end.
    fn by_group(&self, groups: usize) -> (Vec<usize>, Vec<usize>) {
        let mut ends = vec![0; groups];
        let changed = || (0..self.weights.len()).filter(|entry| self.weights[*entry] != 0);
        changed().for_each(|entry| ends[self.groups[entry]] += 1);
        let mut sum = 0;
        for end in &mut ends {
            // First the start; filling the entries in makes it the end.
            sum += std::mem::replace(end, sum);
        }
        let mut sorted = vec![0; sum];
        for entry in changed() {
            let end = &mut ends[self.groups[entry]];
            sorted[*end] = entry;
            *end += 1;
        }
        let mut start = 0;
        for end in &ends {
            sorted[start..*end].sort_unstable_by_key(|entry| self.value(*entry));
            start = *end;
        }
        (sorted, ends)
    }
}

/// A value set after an epoch.
#[derive(Default)]
pub(super) struct Updated {
    /// Entries whose value came to be there (+1) or is no more (-1).
    pub(super) entries: Vec<usize>,
    pub(super) weights: Vec<i64>,
    /// The sets of the groups one behind the other, as they stand in the groups' entries.
    kept: Vec<u8>,
    /// Where each ends.
    ends: Vec<usize>,
    /// Entries that changed something, by group and in the order of their values.
    changed: Vec<usize>,
    /// Where those of each group end.
    changed_ends: Vec<usize>,
}

/// The groups whose value sets are updated.
pub(super) struct Touched<'a> {
    pub(super) keys: &'a Interner,
    pub(super) partitions: &'a [u16],
    /// Their entries; a group without one has empty sets.
    pub(super) stored: &'a [Option<Bytes>],
}

/// How a set begins in its group's entry if its values have entries of their own. Else the number of them plus one does.
const APART: u128 = 0;

/// A set without values, as it stands in an entry.
const EMPTY: &[u8] = &[1];

/// Updates a value set. In each group's entry it begins at an offset, which moves behind it.
pub(super) fn update(
    table: &StateTable,
    changes: &ValueChanges,
    touched: &Touched<'_>,
    offsets: &mut [usize],
) -> Result<Updated> {
    let (sorted, group_ends) = changes.by_group(touched.stored.len());
    let mut updated = Updated::default();
    let mut apart = Vec::new();
    let mut start = 0;
    for (group, end) in group_ends.iter().copied().enumerate() {
        let changed = &sorted[start..end];
        start = end;
        let mut stored = match &touched.stored[group] {
            Some(stored) => &stored[offsets[group]..],
            None => EMPTY,
        };
        let length = stored.len();
        match codec::take_unsigned(&mut stored).ok_or_else(damaged)? {
            APART => {
                apart.extend_from_slice(changed);
                codec::put_unsigned(&mut updated.kept, APART);
            }
            count => {
                let mut values = Vec::new();
                for _ in 1..count {
                    values.push(codec::take_bytes(&mut stored).zip(codec::take_i64(&mut stored)).ok_or_else(damaged)?);
                }
                let values = updated.merge(changes, changed, &values);
                if !updated.keep(&values) {
                    for (value, count) in values {
                        let key = [touched.keys.get(group), value].concat();
                        put_count(table, touched.partitions[group], &key, count);
                    }
                }
            }
        }
        offsets[group] += length - stored.len();
        updated.ends.push(updated.kept.len());
    }
    update_apart(table, changes, touched, &apart, &mut updated)?;
    (updated.changed, updated.changed_ends) = (sorted, group_ends);
    Ok(updated)
}

/// Updates values that have entries of their own.
fn update_apart(
    table: &StateTable,
    changes: &ValueChanges,
    touched: &Touched<'_>,
    entries: &[usize],
    updated: &mut Updated,
) -> Result<()> {
    let key = |entry: &usize| [touched.keys.get(changes.groups[*entry]), changes.value(*entry)].concat();
    let keys: Vec<Vec<u8>> = entries.iter().map(key).collect();
    let partitions = entries.iter().map(|entry| touched.partitions[changes.groups[*entry]]);
    let keys: Vec<(u16, &[u8])> = partitions.zip(keys.iter().map(Vec::as_slice)).collect();
    for ((entry, (partition, key)), stored) in entries.iter().zip(&keys).zip(table.get_many(&keys)?) {
        let old = match stored {
            Some(stored) => codec::take_i64(&mut stored.as_ref()).ok_or_else(damaged)?,
            None => 0,
        };
        let new = old + changes.weights[*entry];
        updated.note(*entry, old, new);
        put_count(table, *partition, key, new);
    }
    Ok(())
}

fn put_count(table: &StateTable, partition: u16, key: &[u8], count: i64) {
    if count == 0 {
        return table.delete(partition, key);
    }
    let mut bytes = Vec::with_capacity(10);
    codec::put_signed(&mut bytes, i128::from(count));
    table.put_slice(partition, key, &bytes);
}

impl Updated {
    fn note(&mut self, entry: usize, old: i64, new: i64) {
        if (old > 0) != (new > 0) {
            self.entries.push(entry);
            self.weights.push(if new > 0 { 1 } else { -1 });
        }
    }

    /// The values of a group with their counts, after changes. All are in the order of the values.
    fn merge<'a>(
        &mut self,
        changes: &'a ValueChanges,
        changed: &[usize],
        old: &[(&'a [u8], i64)],
    ) -> Vec<(&'a [u8], i64)> {
        let mut new = Vec::with_capacity(old.len() + changed.len());
        let mut old = old.iter().copied().peekable();
        for entry in changed {
            let value = changes.value(*entry);
            while let Some(smaller) = old.next_if(|(other, _)| *other < value) {
                new.push(smaller);
            }
            let before = old.next_if(|(other, _)| *other == value).map_or(0, |(_, count)| count);
            let after = before + changes.weights[*entry];
            self.note(*entry, before, after);
            if after != 0 {
                new.push((value, after));
            }
        }
        new.extend(old);
        new
    }

    /// Puts a group's values with their counts into its entry, unless they are too many. Says whether it did.
    fn keep(&mut self, values: &[(&[u8], i64)]) -> bool {
        let start = self.kept.len();
        codec::put_unsigned(&mut self.kept, values.len() as u128 + 1);
        for (value, count) in values {
            codec::put_bytes(&mut self.kept, value);
            codec::put_signed(&mut self.kept, i128::from(*count));
            if self.kept.len() - start > limits::GROUP_VALUES_BYTES_MAX {
                self.kept.truncate(start);
                codec::put_unsigned(&mut self.kept, APART);
                return false;
            }
        }
        true
    }

    /// The set of a group as it stands in the group's entry.
    pub(super) fn kept(&self, group: usize) -> &[u8] {
        let start = group.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.kept[start..self.ends[group]]
    }

    /// Entries that changed something in a group, in the order of their values.
    pub(super) fn changed(&self, group: usize) -> &[usize] {
        let start = group.checked_sub(1).map_or(0, |before| self.changed_ends[before]);
        &self.changed[start..self.changed_ends[group]]
    }

    /// The values of a group.
    pub(super) fn values<'a>(
        &'a self,
        group: usize,
        table: &'a StateTable,
        touched: &Touched<'a>,
    ) -> Result<Values<'a>> {
        let mut kept = self.kept(group);
        let count = codec::take_unsigned(&mut kept).ok_or_else(damaged)?;
        if count == APART {
            return Ok(Values::Apart { table, partition: touched.partitions[group], group: touched.keys.get(group) });
        }
        let mut values = Vec::new();
        for _ in 1..count {
            let (value, count) = codec::take_bytes(&mut kept).zip(codec::take_i64(&mut kept)).ok_or_else(damaged)?;
            values.push((Bytes::copy_from_slice(value), count));
        }
        Ok(Values::Together(values))
    }

    /// The least or greatest value of a group that is there.
    pub(super) fn extreme(
        &self,
        group: usize,
        greatest: bool,
        table: &StateTable,
        touched: &Touched<'_>,
    ) -> Result<Option<Bytes>> {
        let mut kept = self.kept(group);
        let count = codec::take_unsigned(&mut kept).ok_or_else(damaged)?;
        if count == APART {
            let (partition, key) = (touched.partitions[group], touched.keys.get(group));
            let entry = match greatest {
                true => table.last_with_prefix(partition, key)?,
                false => table.first_with_prefix(partition, key)?,
            };
            return Ok(entry.map(|(entry, _)| entry.slice(key.len()..)));
        }
        let mut found = None;
        for _ in 1..count {
            found = codec::take_bytes(&mut kept);
            if !greatest {
                break;
            }
            codec::take_i64(&mut kept).ok_or_else(damaged)?;
        }
        Ok(found.map(Bytes::copy_from_slice))
    }
}

/// The values of a group with their counts, in order.
pub(super) enum Values<'a> {
    /// They stand in the group's entry.
    Together(Vec<(Bytes, i64)>),
    /// They have entries of their own.
    Apart { table: &'a StateTable, partition: u16, group: &'a [u8] },
}

/// Entries that are read at once when a few values are expected, and when many are.
const READ_ENTRIES: std::ops::Range<usize> = 4..1024;

impl Values<'_> {
    /// All of them.
    pub(super) fn all(&self) -> Result<Vec<(Bytes, i64)>> {
        match self {
            Values::Together(values) => Ok(values.clone()),
            Values::Apart { table, partition, group } => {
                let entries = table.scan_prefix(*partition, group)?;
                entries.into_iter().map(|entry| value_of(group, entry)).collect()
            }
        }
    }

    /// The greatest value that is less than another.
    pub(super) fn previous(&self, than: &[u8]) -> Result<Option<(Bytes, i64)>> {
        match self {
            Values::Together(values) => {
                let before = values.partition_point(|(value, _)| value.as_ref() < than);
                Ok(before.checked_sub(1).map(|position| values[position].clone()))
            }
            Values::Apart { table, partition, group } => {
                let entry = table.last_entries_before(*partition, group, &[*group, than].concat(), 1)?.pop();
                entry.map(|entry| value_of(group, entry)).transpose()
            }
        }
    }

    /// The values from one on.
    pub(super) fn from(&self, start: &[u8]) -> ValuesFrom<'_> {
        ValuesFrom {
            values: self,
            read: Vec::new().into_iter(),
            start: Some(start.to_vec()),
            entries: READ_ENTRIES.start,
        }
    }

    /// At most so many values from one on.
    fn read(&self, start: &[u8], limit: usize) -> Result<Vec<(Bytes, i64)>> {
        match self {
            Values::Together(values) => {
                let first = values.partition_point(|(value, _)| value.as_ref() < start);
                Ok(values[first..].iter().take(limit).cloned().collect())
            }
            Values::Apart { table, partition, group } => {
                let end = crate::state::layout::prefix_end(group);
                let entries = table.scan_range(*partition, &[*group, start].concat(), end.as_deref(), limit)?;
                entries.into_iter().map(|entry| value_of(group, entry)).collect()
            }
        }
    }
}

fn value_of(group: &[u8], (key, count): (Bytes, Bytes)) -> Result<(Bytes, i64)> {
    let count = codec::take_i64(&mut count.as_ref()).ok_or_else(damaged)?;
    Ok((key.slice(group.len()..), count))
}

/// Values in order, read as they are asked for.
pub(super) struct ValuesFrom<'a> {
    values: &'a Values<'a>,
    read: std::vec::IntoIter<(Bytes, i64)>,
    /// Where to read on; none at the end.
    start: Option<Vec<u8>>,
    entries: usize,
}

impl Iterator for ValuesFrom<'_> {
    type Item = Result<(Bytes, i64)>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(value) = self.read.next() {
            return Some(Ok(value));
        }
        let read = match self.values.read(&self.start.take()?, self.entries) {
            Ok(read) => read,
            Err(error) => return Some(Err(error)),
        };
        if read.len() == self.entries {
            // The next value is greater than the last one: no value is the beginning of another.
            self.start = read.last().map(|(value, _)| [value.as_ref(), &[0]].concat());
            self.entries = (2 * self.entries).min(READ_ENTRIES.end);
        }
        self.read = read.into_iter();
        self.read.next().map(Ok)
    }
}
