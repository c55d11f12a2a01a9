//! Rows of partitions in order: the state that `LIMIT` and `OVER` share.
//!
//! An entry a different row: `partition key ++ order key ++ rest of the row → copies (i64, big endian)`, never 0. The
//! rows of a partition stand together under its key, in the order of their order keys; rows that are equal in these
//! stand in the order of their other columns. Every column is in the entry's key once, exactly as it came (the
//! partition key is a normalised one), so rows are read back from keys alone. The state partition is that of the
//! partition key.

use bytes::Bytes;
use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, SchemaRef};

use crate::delta::Delta;
use crate::delta::key::{KeyEncoder, Keys, has_equal_forms, normalise};
use crate::delta::rows::{EncodedRows, OrderedCodec};
use crate::error::{Error, Result};
use crate::expressions::batch_of;
use crate::state::StateTable;
use crate::state::relation::{decode_count, encode_count};

/// How rows are kept, as data: positions are those of the input, whose first columns are the row, and computed keys
/// follow.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    /// How many columns a row has.
    pub(super) width: usize,
    /// Columns by which rows are parted.
    pub(super) partition: Vec<usize>,
    /// Columns by which the rows of a partition are ordered.
    pub(super) order: Vec<(usize, SortOptions)>,
}

/// The order of columns that nothing is said about.
const PLAIN: SortOptions = SortOptions { descending: false, nulls_first: true };

/// Encodes rows to entries and back.
#[derive(Debug)]
pub(super) struct OrderedRows {
    partition: Vec<usize>,
    partition_keys: KeyEncoder,
    /// Columns of an entry: those of the partition, those of the order, the rest.
    columns: Vec<usize>,
    codec: OrderedCodec,
    /// How many of these columns decide which rows are peers, and their codec.
    peer_columns: usize,
    peers: OrderedCodec,
    /// For each column of a row, where it stands in an entry.
    places: Vec<usize>,
    schema: SchemaRef,
}

impl OrderedRows {
    /// For rows with the columns of `row` out of an input with those of `input`.
    pub(super) fn new(layout: &Layout, input: &SchemaRef, row: SchemaRef) -> Result<Self> {
        let type_of = |column: usize| input.field(column).data_type();
        // Where equal values are identical, an order by what is constant says nothing.
        let constant = |column: usize| layout.partition.contains(&column) && !has_equal_forms(type_of(column));
        let mut columns = layout.partition.clone();
        let mut options = vec![PLAIN; columns.len()];
        for (column, direction) in &layout.order {
            let before = columns.iter().skip(layout.partition.len()).any(|known| known == column);
            if !before && !constant(*column) {
                columns.push(*column);
                options.push(*direction);
            }
        }
        let peer_columns = columns.len();
        // The partition's columns are normalised, and those of the order are not.
        let exact =
            |column: &usize, columns: &[usize]| constant(*column) || columns[layout.partition.len()..].contains(column);
        for column in 0..layout.width {
            if !exact(&column, &columns) {
                columns.push(column);
                options.push(PLAIN);
            }
        }
        let typed: Vec<(DataType, SortOptions)> =
            columns.iter().zip(options).map(|(column, options)| (type_of(*column).clone(), options)).collect();
        let place = |column: usize| columns.iter().rposition(|known| *known == column);
        let places = (0..layout.width).map(place).collect::<Option<_>>();
        let places = places.ok_or_else(|| Error::Dataflow("internal error: a row lacks a column".to_owned()))?;
        let types: Vec<DataType> = layout.partition.iter().map(|column| type_of(*column).clone()).collect();
        Ok(OrderedRows {
            partition: layout.partition.clone(),
            partition_keys: KeyEncoder::new(&types)?,
            codec: OrderedCodec::new(&typed)?,
            peer_columns,
            peers: OrderedCodec::new(&typed[..peer_columns])?,
            columns,
            places,
            schema: row,
        })
    }

    /// Encodes rows of the input.
    pub(super) fn encode(&self, delta: &Delta) -> Result<Encoded> {
        let input = delta.batch().columns();
        let partition: Vec<ArrayRef> = self.partition.iter().map(|column| input[*column].clone()).collect();
        let columns: Vec<ArrayRef> = self
            .columns
            .iter()
            .enumerate()
            .map(|(place, column)| match place < self.partition.len() {
                true => normalise(&input[*column]),
                false => input[*column].clone(),
            })
            .collect();
        Ok(Encoded {
            keys: self.partition_keys.encode_rows(&partition, delta.len())?,
            peers: self.peers.encode(&columns[..self.peer_columns], delta.len())?,
            entries: self.codec.encode(&columns, delta.len())?,
            weights: (0..delta.len()).map(|row| delta.weight(row)).collect(),
        })
    }

    /// The columns of a row.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Reads the columns of rows back from their entries.
    pub(super) fn decode(&self, entries: &[&[u8]]) -> Result<Vec<ArrayRef>> {
        let decoded = self.codec.decode(entries.iter().copied())?;
        self.of_row(&decoded, entries.len())
    }

    /// Reads the columns of rows back, and what peers among them share.
    pub(super) fn decode_with_peers(&self, entries: &[&[u8]]) -> Result<(Vec<ArrayRef>, EncodedRows)> {
        let decoded = self.codec.decode(entries.iter().copied())?;
        let peers = self.peers.encode(&decoded[..self.peer_columns], entries.len())?;
        Ok((self.of_row(&decoded, entries.len())?, peers))
    }

    fn of_row(&self, decoded: &[ArrayRef], count: usize) -> Result<Vec<ArrayRef>> {
        let columns = self.places.iter().map(|place| decoded[*place].clone()).collect();
        Ok(batch_of(&self.schema, columns, count)?.columns().to_vec())
    }

    /// The columns of a partition's key.
    pub(super) fn decode_key(&self, key: &[u8]) -> Result<Vec<ArrayRef>> {
        self.partition_keys.decode([key])
    }
}

/// Encoded rows of a delta.
pub(super) struct Encoded {
    keys: Keys,
    peers: EncodedRows,
    entries: EncodedRows,
    weights: Vec<i64>,
}

/// What changes in a partition.
pub(super) struct Changed<'a> {
    /// The partition's key.
    pub(super) key: &'a [u8],
    /// The state partition.
    pub(super) partition: u16,
    /// The different rows whose number changes, in order.
    pub(super) rows: Vec<Change<'a>>,
}

/// A row whose number of copies changes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Change<'a> {
    /// The row's entry.
    pub(super) entry: &'a [u8],
    /// Its beginning that peers share.
    pub(super) peer: &'a [u8],
    /// How many more; never 0.
    pub(super) weight: i64,
}

impl Encoded {
    /// What changes, by partition.
    pub(super) fn changed(&self) -> Vec<Changed<'_>> {
        let mut rows: Vec<usize> = (0..self.entries.len()).collect();
        // An entry begins with its partition's key, and no key is a prefix of another one: partitions stand together.
        rows.sort_unstable_by_key(|row| self.entries.row(*row));
        let mut changed: Vec<Changed<'_>> = Vec::new();
        for same in rows.chunk_by(|left, right| self.entries.row(*left) == self.entries.row(*right)) {
            let weight: i64 = same.iter().map(|row| self.weights[*row]).sum();
            if weight == 0 {
                continue;
            }
            let (entry, peer, key) = (self.entries.row(same[0]), self.peers.row(same[0]), self.keys.row(same[0]));
            let change = Change { entry, peer, weight };
            match changed.last_mut() {
                Some(last) if last.key == key => last.rows.push(change),
                _ => changed.push(Changed { key, partition: self.keys.partition(same[0]), rows: vec![change] }),
            }
        }
        changed
    }
}

/// Keys with counts, in key order.
pub(super) type Counted = Vec<(Bytes, i64)>;

/// The first entries of a table under a prefix, at most so many.
pub(super) fn first_counts(table: &StateTable, partition: u16, prefix: &[u8], limit: usize) -> Result<Counted> {
    let entries = table.first_entries(partition, prefix, limit)?;
    entries.into_iter().map(|(key, count)| Ok((key, decode_count(&count)?))).collect()
}

/// Counts after changes (in key order) of them.
pub(super) fn merge<'a>(
    before: &[(Bytes, i64)],
    changes: impl IntoIterator<Item = (&'a [u8], i64)>,
) -> Result<Counted> {
    let mut after = Vec::with_capacity(before.len());
    let mut rest = before.iter().peekable();
    for (key, change) in changes {
        while let Some(unchanged) = rest.next_if(|(known, _)| known.as_ref() < key) {
            after.push(unchanged.clone());
        }
        let known = rest.next_if(|(known, _)| known.as_ref() == key);
        let count = checked(known.map_or(0, |(_, count)| *count) + change)?;
        if count > 0 {
            let key = known.map_or_else(|| Bytes::copy_from_slice(key), |(key, _)| key.clone());
            after.push((key, count));
        }
    }
    after.extend(rest.cloned());
    Ok(after)
}

/// Adds changes to the counts in a table. Rows that are `unique` are there once or not at all, so none is read.
pub(super) fn apply(table: &StateTable, partition: u16, changes: &[(&[u8], i64)], unique: bool) -> Result<()> {
    if unique {
        for (key, change) in changes {
            match change {
                1 => table.put_slice(partition, key, &ONE),
                _ => table.delete(partition, key),
            }
        }
        return Ok(());
    }
    let wanted: Vec<(u16, &[u8])> = changes.iter().map(|(key, _)| (partition, *key)).collect();
    for ((key, change), before) in changes.iter().zip(table.get_many(&wanted)?) {
        let before = before.as_deref().map_or(Ok(0), decode_count)?;
        match checked(before + change)? {
            0 => table.delete(partition, key),
            1 => table.put_slice(partition, key, &ONE),
            count => table.put(partition, key, encode_count(count)),
        }
    }
    Ok(())
}

/// The count of nearly all rows.
static ONE: [u8; 8] = 1i64.to_be_bytes();

fn checked(count: i64) -> Result<i64> {
    if count < 0 {
        return Err(Error::Dataflow("internal error: an ordered input loses a row that it never had".to_owned()));
    }
    Ok(count)
}
