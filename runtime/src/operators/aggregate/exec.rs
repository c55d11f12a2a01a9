//! The operator: at the close of an epoch, from the changes of the touched groups to the change of the output.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, BooleanArray, Int64Array, StringArray, UInt32Array};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};

use super::changes::{Changes, GroupKeys, slot_states};
use super::ordered;
use super::sets::Standing;
use super::slots::{Extremes, SlotStates, damaged};
use super::values::{self, Touched, Updated};
use super::{AggregateSpec, CallResult, NAME};
use crate::Epoch;
use crate::delta::{Delta, consolidate, literal};
use crate::error::Result;
use crate::functions::aggregate::codec;
use crate::functions::aggregate::grouped::Rows;
use crate::functions::aggregate::ordered::call::OrderedCall;
use crate::functions::aggregate::results::Results;
use crate::operators::{BuildContext, Operator, Output, errors_schema};
use crate::state::StateTable;

/// Touched groups for which memory is kept from one epoch to the next.
const GROUPS_KEPT_MAX: usize = 1 << 16;

/// An aggregation on one worker.
pub(super) struct AggregateOperator {
    spec: AggregateSpec,
    input: SchemaRef,
    /// The group columns of the output.
    key_schema: SchemaRef,
    keys: GroupKeys,
    changes: Changes,
    groups_table: StateTable,
    value_tables: Vec<StateTable>,
    ordered: Vec<(OrderedCall, usize)>,
    standing: Standing,
    /// Whether the rows over nothing are still to be looked after.
    owes_first_rows: bool,
}

/// The touched groups at one moment: their states and what they look like in the output.
struct Groups {
    /// Whether the group is there.
    present: Vec<bool>,
    /// Number of its rows.
    rows: Vec<i64>,
    slots: Vec<SlotStates>,
}

/// Results of the touched groups, one column a call.
struct Outcome {
    columns: Vec<ArrayRef>,
    /// Why a group has no results: number of the group and message, in ascending order.
    failures: Vec<(usize, String)>,
}

impl AggregateOperator {
    pub(super) fn new(spec: &AggregateSpec, context: BuildContext) -> Result<Self> {
        let partitions = context.partitions.clone();
        let input = context.inputs.into_iter().next().unwrap_or_else(|| Arc::new(Schema::empty()));
        let key_schema: SchemaRef = Arc::new(Schema::new(spec.schema.fields()[..spec.keys.len()].to_vec()));
        let mut tables = context.state.into_iter();
        let groups_table = tables
            .next()
            .ok_or_else(|| crate::Error::Dataflow("an aggregation was built without its state table".to_string()))?;
        let keys = GroupKeys::new(&key_schema)?;
        let standing = Standing::new(spec, &keys, partitions)?;
        let ordered = ordered::calls(spec, &input)?;
        Ok(AggregateOperator {
            keys,
            key_schema,
            ordered,
            owes_first_rows: !standing.groups.is_empty(),
            standing,
            changes: Changes::new(spec, &input)?,
            groups_table,
            value_tables: tables.collect(),
            spec: spec.clone(),
            input,
        })
    }
}

impl Operator for AggregateOperator {
    fn absorb(&mut self, _port: usize, delta: Delta, _output: &mut Output) -> Result<()> {
        if delta.is_empty() {
            return Ok(());
        }
        self.changes.absorb(&self.spec, &self.keys, &delta)
    }

    fn owes_rows(&self) -> bool {
        self.owes_first_rows
    }

    fn close(&mut self, _epoch: Epoch, output: &mut Output) -> Result<()> {
        if std::mem::take(&mut self.owes_first_rows) {
            for (key, display) in &self.standing.groups {
                let group = self.changes.touch(key);
                if self.changes.displays[group].is_empty() {
                    self.changes.displays[group].extend_from_slice(display);
                }
            }
        }
        if self.changes.groups.is_empty() {
            return Ok(());
        }
        self.changes.resize_slots();
        let stored = self.stored()?;
        let (old, mut set_offsets) = self.old_groups(&stored)?;
        let sets = self.update_value_sets(&stored, &mut set_offsets)?;
        let new = self.new_groups(&stored, &old, &sets)?;
        let present = (old.present.as_slice(), new.present.as_slice());
        let ordered = self.ordered_results(present, &sets, &stored)?;
        self.emit((old, ordered.0), (new, ordered.1), &sets, stored, output)?;
        if self.changes.groups.len() > GROUPS_KEPT_MAX {
            self.changes = Changes::new(&self.spec, &self.input)?;
        } else {
            self.changes.clear();
        }
        Ok(())
    }
}

impl AggregateOperator {
    /// Results of the calls over ordered rows, before and after the epoch.
    fn ordered_results(
        &self,
        present: (&[bool], &[bool]),
        sets: &[Updated],
        stored: &[Option<Bytes>],
    ) -> Result<(Vec<Results>, Vec<Results>)> {
        let (mut old, mut new) = (Vec::new(), Vec::new());
        for (call, set) in &self.ordered {
            let source = ordered::Source {
                updated: &sets[*set],
                changes: &self.changes.values[*set],
                table: &self.value_tables[*set],
                touched: self.touched(stored),
            };
            let (before, after) = ordered::results(call, &source, present)?;
            old.push(before);
            new.push(after);
        }
        Ok((old, new))
    }

    /// The stored states of the touched groups.
    fn stored(&self) -> Result<Vec<Option<Bytes>>> {
        let keys: Vec<(u16, &[u8])> = self.changes.partitions.iter().copied().zip(self.changes.groups.iter()).collect();
        self.groups_table.get_many(&keys)
    }

    fn touched<'a>(&'a self, stored: &'a [Option<Bytes>]) -> Touched<'a> {
        Touched { keys: &self.changes.groups, partitions: &self.changes.partitions, stored }
    }

    /// Updates the value sets, which begin at these offsets in the stored states, and feeds what changed in them to
    /// the slots that count different values.
    fn update_value_sets(&mut self, stored: &[Option<Bytes>], offsets: &mut [usize]) -> Result<Vec<Updated>> {
        let mut all = Vec::with_capacity(self.value_tables.len());
        for (set, table) in self.value_tables.iter().enumerate() {
            let changes = &self.changes.values[set];
            let updated = values::update(table, changes, &self.touched(stored), offsets)?;
            let fed = |slot: &super::Slot| slot.values == Some(set);
            let slots = &mut self.changes.slots;
            for (index, _) in self.spec.slots.iter().enumerate().filter(|(_, slot)| fed(slot)) {
                if !slots[index].is_chosen() {
                    let values = updated.entries.iter().map(|entry| changes.value(*entry));
                    let values = changes.encoder.decode(values)?;
                    let groups: Vec<usize> = updated.entries.iter().map(|entry| changes.group(*entry)).collect();
                    slots[index]
                        .add(&values, Rows { groups: &groups, weights: Some(&updated.weights), filter: None })?;
                }
            }
            all.push(updated);
        }
        if offsets.iter().zip(stored).any(|(offset, stored)| stored.as_ref().is_some_and(|s| s.len() != *offset)) {
            return Err(damaged());
        }
        Ok(all)
    }

    /// The touched groups before the epoch, and where the value sets begin in their states.
    fn old_groups(&self, stored: &[Option<Bytes>]) -> Result<(Groups, Vec<usize>)> {
        let mut slots = slot_states(&self.spec, &self.input)?;
        slots.iter_mut().for_each(|slot| slot.resize(stored.len()));
        let (mut rows, mut set_offsets) = (vec![0; stored.len()], vec![0; stored.len()]);
        for (group, state) in stored.iter().enumerate() {
            if let Some(state) = state {
                (rows[group], set_offsets[group]) = self.merge_state(group, state, &mut slots)?;
            }
        }
        Ok((Groups { present: stored.iter().map(Option::is_some).collect(), rows, slots }, set_offsets))
    }

    /// Adds a stored state to the slots; gives its number of rows, and where the value sets begin in it.
    fn merge_state(&self, group: usize, stored: &[u8], slots: &mut [SlotStates]) -> Result<(i64, usize)> {
        let mut state = stored;
        if self.keys.exact.is_some() {
            codec::take_bytes(&mut state).ok_or_else(damaged)?;
        }
        // Where rows are not counted, one says that the group is there.
        let rows = if self.spec.counts_rows() { codec::take_i64(&mut state).ok_or_else(damaged)? } else { 1 };
        for slot in slots {
            slot.merge_encoded(group, &mut state)?;
        }
        Ok((rows, stored.len() - state.len()))
    }

    /// The touched groups after the epoch: the changes, with the old states added to them.
    fn new_groups(&mut self, stored: &[Option<Bytes>], old: &Groups, sets: &[Updated]) -> Result<Groups> {
        let mut slots = std::mem::replace(&mut self.changes.slots, slot_states(&self.spec, &self.input)?);
        let mut rows = std::mem::take(&mut self.changes.rows);
        for (group, state) in stored.iter().enumerate() {
            if let Some(state) = state {
                rows[group] += self.merge_state(group, state, &mut slots)?.0;
                self.keep_display(group, state)?;
            }
        }
        let stands = |group: usize| self.standing.contains(self.changes.groups.get(group));
        let present: Vec<bool> = rows.iter().enumerate().map(|(group, count)| *count > 0 || stands(group)).collect();
        for (index, slot) in self.spec.slots.iter().enumerate() {
            if let (Some(set), Some(extremes)) = (slot.values, slots[index].as_extremes()) {
                self.choose_extremes(extremes, index, set, old, &present, (&sets[set], stored))?;
            }
            if let (Some(set), Some(ranks)) = (slot.values, slots[index].as_ranks()) {
                for group in 0..present.len() {
                    let values = sets[set].values(group, &self.value_tables[set], &self.touched(stored))?;
                    ranks.follow(group, &sets[set], &self.changes.values[set], &values)?;
                }
            }
        }
        Ok(Groups { present, rows, slots })
    }

    /// A group is shown under the key of the row with which it began.
    fn keep_display(&mut self, group: usize, mut state: &[u8]) -> Result<()> {
        if self.keys.exact.is_some() {
            let display = codec::take_bytes(&mut state).ok_or_else(damaged)?;
            self.changes.displays[group].clear();
            self.changes.displays[group].extend_from_slice(display);
        }
        Ok(())
    }

    /// The key columns of groups as they are shown.
    fn key_columns(&self, groups: impl Iterator<Item = usize>) -> Result<Vec<ArrayRef>> {
        match &self.keys.exact {
            Some(exact) => {
                Ok(exact.decode(groups.map(|group| self.changes.displays[group].as_slice()))?.columns().to_vec())
            }
            None => self.keys.encoder.decode(groups.map(|group| self.changes.groups.get(group))),
        }
    }

    /// Sets the extreme values of groups whose values changed. The old one stays unless it is gone or a better one
    /// came; only where it is gone the next one is looked up.
    fn choose_extremes(
        &self,
        extremes: &mut Extremes,
        slot: usize,
        set: usize,
        old: &Groups,
        present: &[bool],
        (updated, stored): (&Updated, &[Option<Bytes>]),
    ) -> Result<()> {
        let changes = &self.changes.values[set];
        let SlotStates::Extreme(old) = &old.slots[slot] else { return Err(damaged()) };
        let mut gone = Vec::new();
        for (entry, weight) in updated.entries.iter().zip(&updated.weights) {
            let (group, value) = (changes.group(*entry), changes.value(*entry));
            if *weight > 0 {
                extremes.offer(group, value);
            } else if value == old.value(group) {
                gone.push(group);
            }
        }
        for group in gone {
            let found = match present[group] {
                true => {
                    updated.extreme(group, extremes.is_greatest(), &self.value_tables[set], &self.touched(stored))?
                }
                false => None,
            };
            extremes.set(group, found.as_deref().unwrap_or_default());
        }
        Ok(())
    }

    /// Results of groups.
    fn outcome(&self, groups: &Groups, ordered: &[Results]) -> Result<Outcome> {
        let count = groups.present.len();
        let mut columns = Vec::with_capacity(self.spec.calls.len());
        let mut failures: Vec<(usize, String)> = Vec::new();
        for call in &self.spec.calls {
            columns.push(match call.result {
                CallResult::Rows => Arc::new(Int64Array::from_iter_values(groups.rows.iter().copied())) as ArrayRef,
                CallResult::Count(slot) => groups.slots[slot].counts(count)?,
                CallResult::State(aggregate, slot) => {
                    let results = groups.slots[slot].results(aggregate, count, &call.data_type)?;
                    failures.extend(results.errors.into_iter().map(|(group, error)| (group, error.message)));
                    results.values
                }
                CallResult::And(slot) => groups.slots[slot].truths(count, true)?,
                CallResult::Or(slot) => groups.slots[slot].truths(count, false)?,
                CallResult::Extreme(slot) => groups.slots[slot].extremes(count, &call.data_type)?,
                CallResult::Rank(slot) => groups.slots[slot].percentiles(count, &call.data_type)?,
                CallResult::Ordered(call) => {
                    let errors = ordered[call].errors.iter();
                    failures.extend(errors.map(|(group, error)| (*group, error.message.clone())));
                    ordered[call].values.clone()
                }
            });
        }
        failures.retain(|(group, _)| groups.present[*group]);
        // The first failure of a group is told.
        failures.sort_by_key(|(group, _)| *group);
        failures.dedup_by_key(|(group, _)| *group);
        Ok(Outcome { columns, failures })
    }

    /// Emits the difference between old and new, and writes the new states.
    fn emit(
        &mut self,
        (old, old_ordered): (Groups, Vec<Results>),
        (mut new, new_ordered): (Groups, Vec<Results>),
        sets: &[Updated],
        stored: Vec<Option<Bytes>>,
        output: &mut Output,
    ) -> Result<()> {
        let (old_outcome, new_outcome) = (self.outcome(&old, &old_ordered)?, self.outcome(&new, &new_ordered)?);
        self.emit_failures(&old_outcome.failures, &new_outcome.failures, output)?;
        let shown = |groups: &Groups, outcome: &Outcome| {
            let mut shown = groups.present.clone();
            outcome.failures.iter().for_each(|(group, _)| shown[*group] = false);
            shown
        };
        let (old_shown, new_shown) = (shown(&old, &old_outcome), shown(&new, &new_outcome));
        let (equal, compared) = equal_rows(&old_outcome.columns, &new_outcome.columns, stored.len());
        // Groups are numbered below 2^32.
        let changed = |from: &[bool], to: &[bool]| -> Vec<u32> {
            (0..from.len()).filter(|g| from[*g] && !(to[*g] && equal[*g])).map(|g| g as u32).collect()
        };
        let (removed, added) = (changed(&old_shown, &new_shown), changed(&new_shown, &old_shown));
        let delta = self.delta(removed, added, &old_outcome.columns, &new_outcome.columns)?;
        output.emit(if compared { delta } else { consolidate(delta)? });
        self.write(&mut new, sets, stored);
        Ok(())
    }

    /// Old rows of some groups with weight -1, new rows of others with weight +1.
    fn delta(&self, removed: Vec<u32>, added: Vec<u32>, old: &[ArrayRef], new: &[ArrayRef]) -> Result<Delta> {
        let (count_removed, count) = (removed.len(), removed.len() + added.len());
        if count == 0 {
            return Ok(Delta::empty(self.spec.schema.clone()));
        }
        let mut columns = self.key_columns(removed.iter().chain(&added).map(|group| *group as usize))?;
        let (removed, added) = (UInt32Array::from(removed), UInt32Array::from(added));
        for (old, new) in old.iter().zip(new) {
            let added = compute::take(new, &added, None)?;
            columns.push(if count_removed == 0 {
                added
            } else {
                compute::concat(&[compute::take(old, &removed, None)?.as_ref(), added.as_ref()])?
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(count));
        let batch = RecordBatch::try_new_with_options(self.spec.schema.clone(), columns, &options)?;
        if count_removed == 0 {
            return Ok(Delta::insert(batch));
        }
        let weights = (0..count).map(|row| if row < count_removed { -1 } else { 1 });
        Ok(Delta::new(batch, Some(Int64Array::from_iter_values(weights))))
    }

    /// Emits what changed in the failures.
    fn emit_failures(&self, old: &[(usize, String)], new: &[(usize, String)], output: &mut Output) -> Result<()> {
        if old.is_empty() && new.is_empty() {
            return Ok(());
        }
        let removed = old.iter().filter(|failure| !new.contains(failure)).map(|failure| (failure, -1));
        let added = new.iter().filter(|failure| !old.contains(failure)).map(|failure| (failure, 1));
        let changed: Vec<_> = removed.chain(added).collect();
        let keys = self.key_columns(changed.iter().map(|((group, _), _)| *group))?;
        let options = RecordBatchOptions::new().with_row_count(Some(changed.len()));
        let keys = RecordBatch::try_new_with_options(self.key_schema.clone(), keys, &options)?;
        let operators = StringArray::from_iter_values(std::iter::repeat_n(NAME, changed.len()));
        let messages = StringArray::from_iter_values(changed.iter().map(|((_, message), _)| message));
        let rows = StringArray::from_iter_values(literal::row_literals(&keys)?);
        let batch =
            RecordBatch::try_new(errors_schema(), vec![Arc::new(operators), Arc::new(messages), Arc::new(rows)])?;
        let weights = Int64Array::from_iter_values(changed.iter().map(|(_, weight)| *weight));
        output.emit_errors(Delta::new(batch, Some(weights)));
        Ok(())
    }

    /// Writes the states that changed.
    fn write(&self, new: &mut Groups, sets: &[Updated], stored: Vec<Option<Bytes>>) {
        let counts_rows = self.spec.counts_rows();
        let mut state = Vec::new();
        for (group, old) in stored.into_iter().enumerate() {
            let (partition, key) = (self.changes.partitions[group], self.changes.groups.get(group));
            if !new.present[group] {
                if old.is_some() {
                    self.groups_table.delete(partition, key);
                }
                continue;
            }
            state.clear();
            if self.keys.exact.is_some() {
                codec::put_bytes(&mut state, &self.changes.displays[group]);
            }
            if counts_rows {
                codec::put_signed(&mut state, i128::from(new.rows[group]));
            }
            new.slots.iter_mut().for_each(|slot| slot.encode(group, &mut state));
            sets.iter().for_each(|set| state.extend_from_slice(set.kept(group)));
            if old.is_none_or(|old| old != state) {
                self.groups_table.put_slice(partition, key, &state);
            }
        }
    }
}

/// For each row whether old and new are the same in all columns. Also says whether all columns could be compared;
/// those that could not are taken for different.
fn equal_rows(old: &[ArrayRef], new: &[ArrayRef], rows: usize) -> (Vec<bool>, bool) {
    let mut equal = vec![true; rows];
    let mut compared = true;
    for (old, new) in old.iter().zip(new) {
        match compute::kernels::cmp::not_distinct(old, new) {
            Ok(same) => merge_equal(&mut equal, &same),
            Err(_) => {
                equal.fill(false);
                compared = false;
            }
        }
    }
    (equal, compared)
}

fn merge_equal(equal: &mut [bool], same: &BooleanArray) {
    for (equal, same) in equal.iter_mut().zip(same.values()) {
        *equal &= same;
    }
}
