//! Consolidation: one row, one weight.
//!
//! A consolidated delta has no row with weight 0 and no two rows that cancel each other. A row may still stand in
//! it more than once when all weights have one sign: nothing cancels then, and nothing is gained by merging.

use datafusion::arrow::array::{Int64Array, UInt32Array};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

use super::Delta;
use super::rows::RowCodec;
use crate::error::Result;

/// Removes what cancels. Costs nothing for weights of one sign.
pub fn consolidate(delta: Delta) -> Result<Delta> {
    let Some(weights) = delta.weights() else { return Ok(delta) };
    let (lowest, highest) = bounds(weights.values());
    if lowest == 1 && highest == 1 {
        return Ok(Delta::insert(delta.batch().clone()));
    }
    if delta.is_empty() || lowest > 0 || highest < 0 {
        return Ok(delta);
    }
    let codec = RowCodec::new(&delta.schema())?;
    let encoded = codec.encode(delta.batch())?;
    let groups = group(delta.len(), |row| encoded.row(row));
    let mut sums = vec![0i64; groups.len()];
    for (row, group) in groups.of_row.iter().enumerate() {
        sums[*group as usize] += weights.value(row);
    }
    let (rows, sums): (Vec<u32>, Vec<i64>) =
        groups.first_rows.iter().zip(&sums).filter(|(_, sum)| **sum != 0).map(|(row, sum)| (*row, *sum)).unzip();
    let batch = take_rows(delta.batch(), &UInt32Array::from(rows))?;
    let all_one = sums.iter().all(|sum| *sum == 1);
    Ok(Delta::new(batch, (!all_one).then(|| Int64Array::from(sums))))
}

/// Joins deltas of one schema and removes what cancels between them.
pub fn consolidate_all(schema: SchemaRef, deltas: Vec<Delta>) -> Result<Delta> {
    consolidate(concat(schema, deltas)?)
}

/// Joins deltas of one schema into one, as they are.
pub fn concat(schema: SchemaRef, mut deltas: Vec<Delta>) -> Result<Delta> {
    deltas.retain(|delta| !delta.is_empty());
    match deltas.len() {
        0 => return Ok(Delta::empty(schema)),
        1 => return Ok(deltas.remove(0)),
        _ => {}
    }
    let batch = compute::concat_batches(&schema, deltas.iter().map(Delta::batch))?;
    if deltas.iter().all(|delta| delta.weights().is_none()) {
        return Ok(Delta::insert(batch));
    }
    let mut weights = Vec::with_capacity(batch.num_rows());
    for delta in &deltas {
        match delta.weights() {
            Some(array) => weights.extend_from_slice(array.values()),
            None => weights.resize(weights.len() + delta.len(), 1),
        }
    }
    Ok(Delta::new(batch, Some(Int64Array::from(weights))))
}

/// The rows of a batch at the given positions, also of a batch without columns.
pub fn take_rows(batch: &RecordBatch, rows: &UInt32Array) -> Result<RecordBatch> {
    let columns =
        batch.columns().iter().map(|column| compute::take(column, rows, None)).collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
    Ok(RecordBatch::try_new_with_options(batch.schema(), columns, &options)?)
}

/// Rows grouped by their bytes.
#[derive(Debug, Default)]
pub struct Groups {
    /// The group of each row, numbered from 0 in the order of appearance.
    pub of_row: Vec<u32>,
    /// The first row of each group.
    pub first_rows: Vec<u32>,
    /// The hash of each group's bytes, from which [`super::key::partition_of_hash`] tells the partition.
    pub hashes: Vec<u64>,
}

impl Groups {
    /// How many groups.
    pub fn len(&self) -> usize {
        self.first_rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.first_rows.is_empty()
    }

    /// The rows of each group: those of group g are `rows[starts[g]..starts[g + 1]]`.
    pub fn members(&self) -> (Vec<u32>, Vec<u32>) {
        let mut starts = vec![0u32; self.len() + 1];
        for group in &self.of_row {
            starts[*group as usize + 1] += 1;
        }
        for group in 0..self.len() {
            starts[group + 1] += starts[group];
        }
        let mut next = starts.clone();
        let mut rows = vec![0u32; self.of_row.len()];
        for (row, group) in self.of_row.iter().enumerate() {
            let position = &mut next[*group as usize];
            rows[*position as usize] = row as u32;
            *position += 1;
        }
        (starts, rows)
    }
}

/// Groups rows whose bytes are equal.
pub fn group<'a>(rows: usize, bytes: impl Fn(usize) -> &'a [u8]) -> Groups {
    let mut groups = Groups { of_row: Vec::with_capacity(rows), ..Groups::default() };
    // Holds (hash, group): comparing hashes first avoids most comparisons of bytes, and makes growing cheap.
    let mut table: HashTable<(u64, u32)> = HashTable::new();
    for row in 0..rows {
        let key = bytes(row);
        let hash = xxh3_64(key);
        let first_rows = &groups.first_rows;
        let found = table.find(hash, |(other_hash, group)| {
            *other_hash == hash && bytes(first_rows[*group as usize] as usize) == key
        });
        let group = match found {
            Some((_, group)) => *group,
            None => {
                let group = groups.first_rows.len() as u32;
                table.insert_unique(hash, (hash, group), |(hash, _)| *hash);
                groups.first_rows.push(row as u32);
                groups.hashes.push(hash);
                group
            }
        };
        groups.of_row.push(group);
    }
    groups
}

fn bounds(weights: &[i64]) -> (i64, i64) {
    weights.iter().fold((i64::MAX, i64::MIN), |(low, high), weight| (low.min(*weight), high.max(*weight)))
}

#[cfg(test)]
mod tests {
    use crate::delta::literal::{delta, schema, text};

    use super::*;

    #[test]
    fn what_cancels_disappears() {
        let schema = schema("a int8, b text");
        let input = delta(&schema, "+1 | 1 | x\n-1 | 1 | x\n+2 | 2 | NULL\n-1 | 2 | NULL\n-1 | 3 | y");
        assert_eq!(text(&consolidate(input).unwrap()), "+1 | 2 | NULL\n-1 | 3 | y");
    }

    #[test]
    fn weights_of_one_become_none() {
        let schema = schema("a int8");
        let input = Delta::new(delta(&schema, "+1 | 1\n+1 | 2").batch().clone(), Some(Int64Array::from(vec![1, 1])));
        assert!(consolidate(input).unwrap().weights().is_none());
    }

    #[test]
    fn deltas_cancel_across_batches() {
        let schema = schema("a int8");
        let parts = vec![delta(&schema, "+1 | 1"), delta(&schema, "-1 | 1\n+1 | 4")];
        assert_eq!(text(&consolidate_all(schema, parts).unwrap()), "+1 | 4");
    }
}
