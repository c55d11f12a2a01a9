//! What an epoch changes: the distinct rows of a side whose weight changes, and the keys that are touched.

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::buffer::NullBuffer;

use super::kept::Kept;
use super::reach::{Reach, Reaches, Stretch};
use crate::delta::Delta;
use crate::delta::consolidate::{Groups, group};
use crate::delta::key::{KeyEncoder, Keys, partition_of_hash};
use crate::delta::rows::EncodedRows;
use crate::error::Result;

/// The rows in which no key column is NULL, and the others, if there are any.
pub(super) fn split_at_nulls(delta: Delta, keys: &[usize]) -> Result<(Delta, Option<Delta>)> {
    let nulls = keys
        .iter()
        .map(|key| delta.batch().column(*key).logical_nulls())
        .fold(None, |all: Option<NullBuffer>, column| NullBuffer::union(all.as_ref(), column.as_ref()));
    match nulls {
        Some(nulls) if nulls.null_count() > 0 => {
            let present = nulls.into_inner();
            let absent = BooleanArray::new(!&present, None);
            Ok((delta.filter(&BooleanArray::new(present, None))?, Some(delta.filter(&absent)?)))
        }
        _ => Ok((delta, None)),
    }
}

/// Changes of one side: distinct rows, each with the weight that an epoch adds to it, never 0.
pub(super) struct Changes {
    keys: Keys,
    payloads: EncodedRows,
    /// Key and payload of each row, one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Positions of the changed rows in what is above.
    rows: Vec<u32>,
    weights: Vec<i64>,
    /// What rows of the other side are met, if that is in an order.
    reaches: Option<Reaches>,
}

impl Changes {
    /// What a delta changes, by key.
    pub(super) fn new(
        delta: &Delta,
        keys: &[usize],
        encoder: &KeyEncoder,
        kept: &Kept,
        of_other: Option<&Reach>,
    ) -> Result<Self> {
        let reaches = of_other.map(|reach| reach.of(delta)).transpose()?;
        let columns: Vec<ArrayRef> = keys.iter().map(|key| delta.batch().column(*key).clone()).collect();
        let keys = encoder.encode_rows(&columns, delta.len())?;
        let payloads = kept.encode(delta)?;
        let (mut bytes, mut ends) = (Vec::new(), Vec::with_capacity(delta.len()));
        for row in 0..delta.len() {
            bytes.extend_from_slice(keys.row(row));
            bytes.extend_from_slice(payloads.row(row));
            ends.push(bytes.len());
        }
        let same = group(delta.len(), |row| slice(&bytes, &ends, row));
        let mut sums = vec![0i64; same.len()];
        for (row, group) in same.of_row.iter().enumerate() {
            sums[*group as usize] += delta.weight(row);
        }
        let changed = same.first_rows.iter().copied().zip(sums).filter(|(_, sum)| *sum != 0);
        let (rows, weights) = changed.unzip();
        Ok(Changes { keys, payloads, bytes, ends, rows, weights, reaches })
    }

    /// How many rows change.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The key of a changed row.
    pub(super) fn key(&self, change: usize) -> &[u8] {
        self.keys.row(self.rows[change] as usize)
    }

    /// The payload of a changed row.
    pub(super) fn payload(&self, change: usize) -> &[u8] {
        self.payloads.row(self.rows[change] as usize)
    }

    /// Key and payload of a changed row.
    pub(super) fn row(&self, change: usize) -> &[u8] {
        slice(&self.bytes, &self.ends, self.rows[change] as usize)
    }

    /// The stretches of the other side that a changed row meets, if that side is in an order.
    pub(super) fn reach(&self, change: usize) -> Option<impl Iterator<Item = &Stretch>> {
        self.reaches.as_ref().map(|reaches| reaches.of(self.rows[change] as usize))
    }

    /// By how much a row's weight changes.
    pub(super) fn weight(&self, change: usize) -> i64 {
        self.weights[change]
    }
}

fn slice<'a>(bytes: &'a [u8], ends: &[usize], index: usize) -> &'a [u8] {
    &bytes[if index == 0 { 0 } else { ends[index - 1] }..ends[index]]
}

/// The keys under which rows change, on either side.
pub(super) struct Touched<'a> {
    changes: &'a [Changes; 2],
    groups: Groups,
    /// Changed rows by key, those of the left side first: number on the left, or that on the right after them.
    starts: Vec<u32>,
    members: Vec<u32>,
}

impl<'a> Touched<'a> {
    /// The keys of changes.
    pub(super) fn new(changes: &'a [Changes; 2]) -> Self {
        let [left, right] = changes;
        let key = |member: usize| match member.checked_sub(left.len()) {
            Some(of_right) => right.key(of_right),
            None => left.key(member),
        };
        let groups = group(left.len() + right.len(), key);
        let (starts, members) = groups.members();
        Touched { changes, groups, starts, members }
    }

    /// How many keys.
    pub(super) fn len(&self) -> usize {
        self.groups.len()
    }

    /// Partition and bytes of a key.
    pub(super) fn key(&self, number: usize) -> (u16, &'a [u8]) {
        let (first, [left, right]) = (self.groups.first_rows[number] as usize, self.changes);
        let key = match first.checked_sub(left.len()) {
            Some(of_right) => right.key(of_right),
            None => left.key(first),
        };
        (partition_of_hash(self.groups.hashes[number]), key)
    }

    /// The partition of a changed row.
    pub(super) fn partition(&self, side: usize, change: usize) -> u16 {
        let member = change + if side == 0 { 0 } else { self.changes[0].len() };
        partition_of_hash(self.groups.hashes[self.groups.of_row[member] as usize])
    }

    /// What changes on either side.
    pub(super) fn changes(&self) -> &'a [Changes; 2] {
        self.changes
    }

    /// The changed rows of a side under a key.
    pub(super) fn changed(&self, number: usize, side: usize) -> impl ExactSizeIterator<Item = usize> {
        let members = &self.members[self.starts[number] as usize..self.starts[number + 1] as usize];
        let of_left = self.changes[0].len();
        let middle = members.partition_point(|member| (*member as usize) < of_left);
        let (members, base) = if side == 0 { (&members[..middle], 0) } else { (&members[middle..], of_left) };
        members.iter().map(move |member| *member as usize - base)
    }
}
