//! Top-N in execution: the first rows of the changed partitions before and after.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, Int64Array, UInt64Array};
use datafusion::arrow::datatypes::{Schema, SchemaRef};

use super::{Numbering, TopN};
use crate::Epoch;
use crate::delta::{Delta, consolidate_all};
use crate::error::{Error, Result};
use crate::expressions::batch_of;
use crate::operators::ordered::{Change, Changed, Counted, OrderedRows, apply, first_counts, merge};
use crate::operators::{BuildContext, Operator, Output};
use crate::state::StateTable;

/// Top-N in execution.
pub(super) struct TopNOperator {
    spec: TopN,
    input: SchemaRef,
    ordered: OrderedRows,
    rows: StateTable,
    /// For ranks: how many rows each peer group has.
    peers: Option<StateTable>,
    /// What was absorbed in this epoch.
    pending: Vec<Delta>,
}

/// What is emitted: rows with their numbers, and how often each.
#[derive(Default)]
struct Emitted {
    rows: Vec<Bytes>,
    numbers: Vec<Vec<u64>>,
    weights: Vec<i64>,
}

impl Emitted {
    fn push(&mut self, row: Bytes, numbers: &[u64], weight: i64) {
        if weight != 0 {
            self.rows.push(row);
            self.numbers.iter_mut().zip(numbers).for_each(|(column, number)| column.push(*number));
            self.weights.push(weight);
        }
    }
}

impl TopNOperator {
    pub(super) fn new(spec: &TopN, context: BuildContext) -> Result<Self> {
        let [input]: [SchemaRef; 1] =
            context.inputs.try_into().map_err(|_| Error::Dataflow(format!("{} has one input", super::NAME)))?;
        let row = Arc::new(Schema::new(input.fields()[..spec.layout.width].to_vec()));
        let ordered = OrderedRows::new(&spec.layout, &input, row)?;
        let (rows, peers) = match spec.by {
            Numbering::Position => {
                let [rows] = crate::operators::state_tables(context.state)?;
                (rows, None)
            }
            _ => {
                let [rows, peers] = crate::operators::state_tables(context.state)?;
                (rows, Some(peers))
            }
        };
        Ok(TopNOperator { spec: spec.clone(), input, ordered, rows, peers, pending: Vec::new() })
    }

    /// Of how many rows, or peer groups, the numbers must be known if so many go.
    fn needed(&self, gone: usize) -> usize {
        let last = self.spec.highest.unwrap_or(self.spec.lowest.saturating_sub(1));
        usize::try_from(last).unwrap_or(usize::MAX).saturating_add(gone)
    }

    /// A partition whose rows count by position.
    fn positions(&self, changed: &Changed<'_>, emitted: &mut Emitted) -> Result<()> {
        let changes = counts(&changed.rows);
        let needed = self.needed(gone(&changes));
        let before = first_counts(&self.rows, changed.partition, changed.key, needed)?;
        let after = merge(&before, within(&before, needed, &changes))?;
        apply(&self.rows, changed.partition, &changes, self.spec.unique_rows)?;
        let mut difference: BTreeMap<(Bytes, u64), i64> = BTreeMap::new();
        match self.spec.highest {
            Some(highest) => {
                let bounds = (self.spec.lowest, highest);
                self.number(&before, bounds, |row, number, count| {
                    *difference.entry((row, number)).or_default() -= count
                });
                self.number(&after, bounds, |row, number, count| {
                    *difference.entry((row, number)).or_default() += count
                });
            }
            None => {
                // All but the first rows.
                let bounds = (1, self.spec.lowest.saturating_sub(1));
                for (row, change) in &changes {
                    *difference.entry((Bytes::copy_from_slice(row), 0)).or_default() += change;
                }
                self.number(&before, bounds, |row, number, count| {
                    *difference.entry((row, number)).or_default() += count
                });
                self.number(&after, bounds, |row, number, count| {
                    *difference.entry((row, number)).or_default() -= count
                });
            }
        }
        for ((row, number), weight) in difference {
            let numbers = vec![number; self.spec.shown.len()];
            emitted.push(row, &numbers, weight);
        }
        Ok(())
    }

    /// The rows at positions within bounds: each with its position, or all of one kind at once if positions are not shown.
    fn number(&self, rows: &Counted, (lowest, highest): (u64, u64), mut found: impl FnMut(Bytes, u64, i64)) {
        let mut before = 0u64;
        for (row, count) in rows {
            if before >= highest {
                break;
            }
            // Counts are positive.
            let end = before.saturating_add(*count as u64);
            let (first, last) = (lowest.max(before + 1), highest.min(end));
            if first <= last && self.spec.shown.is_empty() {
                found(row.clone(), 0, (last - first + 1) as i64);
            } else {
                (first..=last).for_each(|position| found(row.clone(), position, 1));
            }
            before = end;
        }
    }

    /// A partition whose peers are ranked.
    fn ranks(&self, peers: &StateTable, changed: &Changed<'_>, emitted: &mut Emitted) -> Result<()> {
        let mut changes: Vec<(&[u8], i64)> = Vec::new();
        let groups: Vec<&[Change<'_>]> = changed.rows.chunk_by(|left, right| left.peer == right.peer).collect();
        for group in &groups {
            changes.push((group[0].peer, group.iter().map(|change| change.weight).sum()));
        }
        let needed = self.needed(gone(&changes));
        let before = first_counts(peers, changed.partition, changed.key, needed)?;
        let after = merge(&before, within(&before, needed, &changes))?;
        let mut shown: BTreeMap<Bytes, [Option<Vec<u64>>; 2]> = BTreeMap::new();
        for (side, counted) in [&before, &after].into_iter().enumerate() {
            self.rank(counted, |peer, numbers| shown.entry(peer).or_default()[side] = Some(numbers));
        }
        for (peer, [old, new]) in shown {
            let group = groups.binary_search_by(|group| group[0].peer.cmp(peer.as_ref())).map(|at| groups[at]);
            let group = group.unwrap_or_default();
            self.emit_peers(changed.partition, &peer, old.as_deref(), new.as_deref(), group, emitted)?;
        }
        let changes: Vec<_> = changes.into_iter().filter(|(_, change)| *change != 0).collect();
        apply(peers, changed.partition, &changes, false)?;
        apply(&self.rows, changed.partition, &counts(&changed.rows), self.spec.unique_rows)
    }

    /// The peer groups whose rank is within bounds, with the numbers that are shown of them.
    fn rank(&self, groups: &Counted, mut found: impl FnMut(Bytes, Vec<u64>)) {
        let (lowest, highest) = (self.spec.lowest, self.spec.highest.unwrap_or(u64::MAX));
        let (mut rank, mut dense_rank) = (1u64, 1u64);
        for (peer, count) in groups {
            let number = |numbering: &Numbering| match numbering {
                Numbering::DenseRank => dense_rank,
                _ => rank,
            };
            if number(&self.spec.by) > highest {
                break;
            }
            if number(&self.spec.by) >= lowest {
                found(peer.clone(), self.spec.shown.iter().map(number).collect());
            }
            // Counts are positive.
            rank = rank.saturating_add(*count as u64);
            dense_rank += 1;
        }
    }

    /// What changes of a peer group that is within bounds before or after.
    fn emit_peers(
        &self,
        partition: u16,
        peer: &[u8],
        old: Option<&[u64]>,
        new: Option<&[u64]>,
        group: &[Change<'_>],
        emitted: &mut Emitted,
    ) -> Result<()> {
        if let (Some(old), Some(new)) = (old, new)
            && old == new
        {
            for change in group {
                emitted.push(Bytes::copy_from_slice(change.entry), new, change.weight);
            }
            return Ok(());
        }
        let before = first_counts(&self.rows, partition, peer, usize::MAX)?;
        if let Some(new) = new {
            for (row, count) in merge(&before, counts(group))? {
                emitted.push(row, new, count);
            }
        }
        if let Some(old) = old {
            for (row, count) in before {
                emitted.push(row, old, -count);
            }
        }
        Ok(())
    }

    fn delta_of(&self, emitted: Emitted) -> Result<Delta> {
        let entries: Vec<&[u8]> = emitted.rows.iter().map(AsRef::as_ref).collect();
        let mut columns = self.ordered.decode(&entries)?;
        columns.extend(emitted.numbers.into_iter().map(|numbers| Arc::new(UInt64Array::from(numbers)) as ArrayRef));
        let batch = batch_of(&self.spec.schema, columns, entries.len())?;
        let only_added = emitted.weights.iter().all(|weight| *weight == 1);
        Ok(Delta::new(batch, (!only_added).then(|| Int64Array::from(emitted.weights))))
    }
}

/// The counts that rows' changes are.
fn counts<'a>(changes: &[Change<'a>]) -> Vec<(&'a [u8], i64)> {
    changes.iter().map(|change| (change.entry, change.weight)).collect()
}

/// How many entries may go.
fn gone(changes: &[(&[u8], i64)]) -> usize {
    changes.iter().filter(|(_, change)| *change < 0).count()
}

/// The changes of which is known where they stand among the first entries: if there were as many as were asked for, then
/// there may be more behind the last one.
fn within<'a>(first: &Counted, asked: usize, changes: &[(&'a [u8], i64)]) -> impl Iterator<Item = (&'a [u8], i64)> {
    let last = first.last().filter(|_| first.len() >= asked).map(|(key, _)| key.clone());
    let all = first.len() < asked;
    changes.iter().copied().take_while(move |(key, _)| all || last.as_ref().is_some_and(|last| *key <= last.as_ref()))
}

impl Operator for TopNOperator {
    fn absorb(&mut self, _port: usize, delta: Delta, _output: &mut Output) -> Result<()> {
        if !delta.is_empty() {
            self.pending.push(delta);
        }
        Ok(())
    }

    fn close(&mut self, _epoch: Epoch, output: &mut Output) -> Result<()> {
        let delta = consolidate_all(self.input.clone(), std::mem::take(&mut self.pending))?;
        if delta.is_empty() {
            return Ok(());
        }
        let encoded = self.ordered.encode(&delta)?;
        let mut emitted = Emitted { numbers: vec![Vec::new(); self.spec.shown.len()], ..Emitted::default() };
        for changed in encoded.changed() {
            match &self.peers {
                Some(peers) => self.ranks(peers, &changed, &mut emitted)?,
                None => self.positions(&changed, &mut emitted)?,
            }
        }
        output.emit(self.delta_of(emitted)?);
        Ok(())
    }
}
