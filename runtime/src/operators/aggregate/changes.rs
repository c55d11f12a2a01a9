//! What an epoch changes, gathered by group before any state is read.

use datafusion::arrow::array::{ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;

use super::slots::SlotStates;
use super::values::ValueChanges;
use super::{AggregateSpec, Slot};
use crate::delta::Delta;
use crate::delta::key::{KeyEncoder, has_equal_forms, partition_of};
use crate::delta::rows::RowCodec;
use crate::error::Result;
use crate::functions::aggregate::grouped::Rows;
use crate::functions::aggregate::interner::Interner;

/// Encodes the group columns.
#[derive(Debug)]
pub(super) struct GroupKeys {
    /// By their normalised values.
    pub(super) encoder: KeyEncoder,
    /// Exactly, if equal keys may look different: what the group's row shows.
    pub(super) exact: Option<RowCodec>,
}

impl GroupKeys {
    /// For the group columns of the output.
    pub(super) fn new(schema: &SchemaRef) -> Result<Self> {
        let types: Vec<DataType> = schema.fields().iter().map(|field| field.data_type().clone()).collect();
        let exact = types.iter().any(has_equal_forms).then(|| RowCodec::new(schema)).transpose()?;
        Ok(GroupKeys { encoder: KeyEncoder::new(&types)?, exact })
    }
}

/// Touched groups and their changes. A group is numbered in the order in which groups are touched.
#[derive(Debug)]
pub(super) struct Changes {
    /// Keys of the groups.
    pub(super) groups: Interner,
    /// Partition of each group.
    pub(super) partitions: Vec<u16>,
    /// The key columns of each group's first row, exactly, where equal keys may look different; else empty.
    pub(super) displays: Vec<Vec<u8>>,
    /// Rows that each group gained.
    pub(super) rows: Vec<i64>,
    /// What each slot gained.
    pub(super) slots: Vec<SlotStates>,
    /// What each value set gained.
    pub(super) values: Vec<ValueChanges>,
    /// The group of each row of the batch that is being absorbed.
    row_groups: Vec<usize>,
}

impl Changes {
    /// None.
    pub(super) fn new(spec: &AggregateSpec, input: &SchemaRef) -> Result<Self> {
        let slots = slot_states(spec, input)?;
        let values = spec
            .value_sets
            .iter()
            .map(|set| ValueChanges::new(&types(input, &set.arguments), &set.form))
            .collect::<Result<_>>()?;
        Ok(Changes {
            groups: Interner::default(),
            partitions: Vec::new(),
            displays: Vec::new(),
            rows: Vec::new(),
            slots,
            values,
            row_groups: Vec::new(),
        })
    }

    /// Makes sure that a group is among the touched ones.
    pub(super) fn touch(&mut self, key: &[u8]) -> usize {
        let group = self.groups.intern(key);
        if group == self.partitions.len() {
            self.partitions.push(partition_of(key));
            self.displays.push(Vec::new());
            self.rows.push(0);
        }
        group
    }

    /// Makes sure that every slot has a state for every touched group.
    pub(super) fn resize_slots(&mut self) {
        let count = self.groups.len();
        self.slots.iter_mut().for_each(|slot| slot.resize(count));
    }

    /// Takes rows of the input.
    pub(super) fn absorb(&mut self, spec: &AggregateSpec, keys: &GroupKeys, delta: &Delta) -> Result<()> {
        let batch = delta.batch();
        self.find_groups(spec, keys, batch)?;
        let weights = delta.weights().map(|weights| weights.values().as_ref());
        match weights {
            None => self.row_groups.iter().for_each(|group| self.rows[*group] += 1),
            Some(weights) => {
                self.row_groups.iter().zip(weights).for_each(|(group, weight)| self.rows[*group] += weight);
            }
        }
        self.resize_slots();
        let rows = |filter| Rows { groups: &self.row_groups, weights, filter };
        for (slot, states) in spec.slots.iter().zip(&mut self.slots).filter(|(slot, _)| slot.values.is_none()) {
            let filter = filter_of(batch, slot.filter);
            states.add(&columns(batch, &slot.arguments), rows(filter))?;
        }
        for (set, changes) in spec.value_sets.iter().zip(&mut self.values) {
            changes.absorb(&columns(batch, &set.arguments), rows(filter_of(batch, set.filter)))?;
        }
        Ok(())
    }

    /// Finds the group of every row.
    fn find_groups(&mut self, spec: &AggregateSpec, keys: &GroupKeys, batch: &RecordBatch) -> Result<()> {
        self.row_groups.clear();
        if spec.keys.is_empty() {
            let group = self.touch(&[]);
            self.row_groups.resize(batch.num_rows(), group);
            return Ok(());
        }
        let columns: Vec<ArrayRef> = spec.keys.iter().map(|key| batch.column(*key).clone()).collect();
        let encoded = keys.encoder.encode_rows(&columns, batch.num_rows())?;
        let exact = match &keys.exact {
            Some(codec) => Some(codec.encode_columns(&columns, batch.num_rows())?),
            None => None,
        };
        self.row_groups.reserve(batch.num_rows());
        // Rows of one group often follow each other.
        let mut previous: (&[u8], usize) = (&[], usize::MAX);
        for row in 0..batch.num_rows() {
            let key = encoded.row(row);
            if previous.1 == usize::MAX || key != previous.0 {
                previous = (key, self.touch(key));
                if let Some(exact) = &exact
                    && self.displays[previous.1].is_empty()
                {
                    self.displays[previous.1].extend_from_slice(exact.row(row));
                }
            }
            self.row_groups.push(previous.1);
        }
        Ok(())
    }

    /// Forgets all changes.
    pub(super) fn clear(&mut self) {
        self.groups.clear();
        self.partitions.clear();
        self.displays.clear();
        self.rows.clear();
        self.row_groups.clear();
        for slot in &mut self.slots {
            slot.resize(0);
        }
        self.values.iter_mut().for_each(ValueChanges::clear);
    }
}

/// States of the slots, without groups.
pub(super) fn slot_states(spec: &AggregateSpec, input: &SchemaRef) -> Result<Vec<SlotStates>> {
    let form = |slot: &Slot| slot.values.map(|set| &spec.value_sets[set].form);
    spec.slots.iter().map(|slot| SlotStates::new(slot, &types(input, &slot.arguments), form(slot))).collect()
}

/// The types of columns of the input.
pub(super) fn types(input: &SchemaRef, positions: &[usize]) -> Vec<DataType> {
    positions.iter().map(|position| input.field(*position).data_type().clone()).collect()
}

fn columns(batch: &RecordBatch, positions: &[usize]) -> Vec<ArrayRef> {
    positions.iter().map(|position| batch.column(*position).clone()).collect()
}

fn filter_of(batch: &RecordBatch, filter: Option<usize>) -> Option<&BooleanArray> {
    filter.and_then(|position| batch.column(position).as_boolean_opt())
}
