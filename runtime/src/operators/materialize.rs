//! Writes a view's rows where reads find them, and emits the change of the relation.
//!
//! Equation: stored rows of epoch E = stored rows of epoch E-1 + the sum of the input deltas of E.
//!
//! State: one table, that of the relation, in the layout of
//! [`RelationStorage`](crate::state::relation::RelationStorage):
//! - keyed: one entry a row, key → value. Within an epoch a key ends with one row more or one less or both (a
//!   replacement), never with two: the key is unique. So nothing needs to be read before it is written.
//! - multiset: one entry for each distinct row, row → number of copies, always above 0.
//!
//! A key with two rows, or a row that is removed more often than it was added, is a defect of an operator below: the
//! dataflow fails before anything is written.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::UInt32Array;
use datafusion::arrow::record_batch::RecordBatch;
use hashbrown::HashMap;
use plan::{Layout, Relation};

use super::{Operator, Output};
use crate::Epoch;
use crate::delta::Delta;
use crate::delta::consolidate::{concat, consolidate_all, take_rows};
use crate::error::{Error, Result};
use crate::state::StateTable;
use crate::state::relation::{RelationStorage, decode_count, encode_count};

/// Writes the rows of one relation on one worker.
pub struct Materialize {
    relation: Arc<Relation>,
    storage: RelationStorage,
    table: StateTable,
    /// Deltas of the epoch in hand.
    deltas: Vec<Delta>,
}

impl Materialize {
    /// Writes the rows of a relation to its table.
    pub fn new(relation: Arc<Relation>, storage: RelationStorage, table: StateTable) -> Self {
        Materialize { relation, storage, table, deltas: Vec::new() }
    }

    /// The epoch's deltas as one, every row once, none with weight 0.
    fn take_change(&mut self) -> Result<Delta> {
        let deltas = std::mem::take(&mut self.deltas);
        if matches!(self.relation.layout, Layout::Keyed(_)) && deltas.iter().all(|delta| delta.weights().is_none()) {
            // Additions only, all of different keys: there is nothing to net, and a key that comes twice is found
            // when it is written.
            return concat(self.relation.schema.clone(), deltas);
        }
        consolidate_all(self.relation.schema.clone(), deltas)
    }

    fn write_keyed(&self, change: &Delta) -> Result<()> {
        let keys = self.storage.encode_key(change.batch())?;
        let added: Vec<u32> = (0..change.len()).filter(|row| change.weight(*row) > 0).map(|row| row as u32).collect();
        if let Some(row) = (0..change.len()).find(|row| change.weight(*row).abs() != 1) {
            return Err(self.defect("a row stands there several times under one key", change.batch(), row));
        }
        let values = match added.len() == change.len() {
            true => self.storage.encode_value(change.batch())?,
            false => {
                let rows = UInt32Array::from(added.clone());
                self.storage.encode_value(&take_rows(change.batch(), &rows)?)?
            }
        };
        let mut new_values: HashMap<&(u16, Bytes), Bytes> = HashMap::with_capacity(added.len());
        for (row, value) in added.iter().zip(values) {
            if new_values.insert(&keys[*row as usize], value).is_some() {
                return Err(self.defect("two rows have the same key", change.batch(), *row as usize));
            }
        }
        for (row, key) in keys.iter().enumerate() {
            if change.weight(row) < 0 && !new_values.contains_key(key) {
                self.table.delete(key.0, &key.1);
            }
        }
        for ((partition, key), value) in new_values {
            self.table.put(*partition, key, value);
        }
        Ok(())
    }

    fn write_multiset(&self, change: &Delta) -> Result<()> {
        let keys = self.storage.encode_key(change.batch())?;
        // Rows that are told apart may be equal as keys (-0.0 and 0.0): their copies count together.
        let mut weights: HashMap<(u16, &[u8]), (i64, usize)> = HashMap::with_capacity(keys.len());
        for (row, (partition, key)) in keys.iter().enumerate() {
            weights.entry((*partition, key.as_ref())).or_insert((0, row)).0 += change.weight(row);
        }
        let (wanted, weights): (Vec<_>, Vec<_>) = weights.into_iter().unzip();
        let stored = self.table.get_many(&wanted)?;
        let mut counts = Vec::with_capacity(wanted.len());
        for ((weight, row), value) in weights.into_iter().zip(stored) {
            let before = value.as_deref().map_or(Ok(0), decode_count)?;
            let count = before + weight;
            if count < 0 {
                return Err(self.defect("a row is removed more often than it was added", change.batch(), row));
            }
            counts.push(count);
        }
        for ((partition, key), count) in wanted.into_iter().zip(counts) {
            match count {
                0 => self.table.delete(partition, key),
                _ => self.table.put(partition, key, encode_count(count)),
            }
        }
        Ok(())
    }

    fn defect(&self, what: &str, batch: &RecordBatch, row: usize) -> Error {
        let values: Vec<String> = batch
            .columns()
            .iter()
            .map(|column| {
                datafusion::arrow::util::display::array_value_to_string(column, row).unwrap_or_else(|_| "?".to_owned())
            })
            .collect();
        Error::Dataflow(format!("internal error: {what}, in {}: ({})", self.relation.name, values.join(", ")))
    }
}

impl Operator for Materialize {
    fn absorb(&mut self, _port: usize, delta: Delta, _output: &mut Output) -> Result<()> {
        if !delta.is_empty() {
            self.deltas.push(delta);
        }
        Ok(())
    }

    fn close(&mut self, _epoch: Epoch, output: &mut Output) -> Result<()> {
        if self.deltas.is_empty() {
            return Ok(());
        }
        let change = self.take_change()?;
        if change.is_empty() {
            return Ok(());
        }
        match self.relation.layout {
            Layout::Keyed(_) => self.write_keyed(&change)?,
            Layout::Multiset => self.write_multiset(&change)?,
            Layout::RowId => return Err(Error::Dataflow(format!("{} has numbered rows", self.relation.name))),
        }
        output.emit(change);
        Ok(())
    }
}
