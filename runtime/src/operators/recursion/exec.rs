//! The fixpoint, kept from epoch to epoch.

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, BooleanArray, Int64Array};
use datafusion::arrow::datatypes::SchemaRef;
use hashbrown::HashMap;

use super::nested::Nested;
use super::{NAME, Recursion};
use crate::Epoch;
use crate::delta::key::{normalise, partition_of};
use crate::delta::rows::RowCodec;
use crate::delta::{Delta, consolidate_all};
use crate::error::{Error, Result};
use crate::limits;
use crate::operators::failure::Failure;
use crate::operators::{BuildContext, Operator, Output, errors_schema};
use crate::state::StateTable;
use crate::state::relation::{decode_count, encode_count};

/// A recursive query in execution.
pub(super) struct Fixpoint {
    distinct: bool,
    inverting: Vec<bool>,
    codec: RowCodec,
    step: Nested,
    rows: Rows,
    failure: Failure,
    /// Where all entries are.
    partition: u16,
    inputs: Vec<SchemaRef>,
    /// By port, of this epoch.
    pending: Vec<Vec<Delta>>,
}

/// What is known in this epoch of a row of R.
#[derive(Clone, Copy)]
struct Row {
    /// Its derivations.
    count: i64,
    /// How often it is in R as the recursive term knows it.
    fed: i64,
    /// How often it was in R before the epoch.
    before: i64,
    /// Whether the count differs from what is stored.
    changed: bool,
}

/// The rows that matter in this epoch, and the state behind them.
struct Rows {
    table: StateTable,
    partition: u16,
    distinct: bool,
    /// Whether the recursion was cut off: R is empty, whatever the counts.
    cut_off: bool,
    seen: HashMap<Bytes, Row>,
}

/// What is to be fed to the recursive term next.
#[derive(Default)]
struct Agenda {
    /// Rows to take out of R.
    lost: Vec<Bytes>,
    /// Rows that may be in R too seldom or too often.
    candidates: Vec<Bytes>,
    /// Whether a count has left the range of its type.
    too_large: bool,
}

/// The changes of an epoch, by sign: of the recursive term's inputs (with their ports) and of the base.
#[derive(Default)]
struct Changes {
    removed: Vec<(usize, Delta)>,
    added: Vec<(usize, Delta)>,
    from_base: Vec<Delta>,
    to_base: Vec<Delta>,
}

/// Why a recursion is cut off.
struct CutOff(String);

impl Fixpoint {
    pub(super) fn build(spec: &Recursion, context: BuildContext) -> Result<Self> {
        let partition = partition_of(&[]);
        let mut state = context.state.into_iter().map(|table| table.in_partition(partition));
        let (Some(table), Some(failure)) = (state.next(), state.next()) else {
            return Err(Error::Dataflow(format!("{NAME} was given too few state tables")));
        };
        let step = Nested::build(&spec.step, state.collect(), context.partitions)?;
        Ok(Fixpoint {
            distinct: spec.distinct,
            inverting: spec.inverting.clone(),
            codec: RowCodec::new(&spec.schema)?,
            step,
            rows: Rows { table, partition, distinct: spec.distinct, cut_off: false, seen: HashMap::new() },
            failure: Failure::new(NAME, failure),
            partition,
            pending: vec![Vec::new(); context.inputs.len()],
            inputs: context.inputs,
        })
    }

    /// The changes of the epoch; none if nothing changes.
    fn take_pending(&mut self) -> Result<Option<Changes>> {
        let mut changes = Changes::default();
        let mut any = false;
        for (port, deltas) in self.pending.iter_mut().enumerate() {
            let delta = consolidate_all(self.inputs[port].clone(), std::mem::take(deltas))?;
            any |= !delta.is_empty();
            let (less, more) = by_sign(&delta)?;
            if port == 0 {
                changes.from_base.extend(less);
                changes.to_base.extend(more);
            } else {
                changes.removed.extend(less.map(|less| (port, less)));
                changes.added.extend(more.map(|more| (port, more)));
            }
        }
        Ok(any.then_some(changes))
    }

    fn bytes(&self, delta: &Delta) -> Result<Vec<(Bytes, i64)>> {
        let columns = delta.batch().columns();
        let columns: Vec<ArrayRef> = match self.distinct {
            true => columns.iter().map(normalise).collect(),
            false => columns.to_vec(),
        };
        let encoded = self.codec.encode_columns(&columns, delta.len())?;
        let row = |(index, bytes): (usize, &[u8])| (Bytes::copy_from_slice(bytes), delta.weight(index));
        Ok(encoded.iter().enumerate().map(row).collect())
    }

    /// Counts derivations, and notes what follows for R.
    fn count(&mut self, deltas: &[Delta], agenda: &mut Agenda) -> Result<()> {
        for delta in deltas {
            let rows = self.bytes(delta)?;
            self.rows.load(rows.iter().map(|(bytes, _)| bytes))?;
            for (bytes, weight) in rows {
                let Some(row) = self.rows.seen.get_mut(&bytes) else { continue };
                // Wrapped around it is wrong, but taking the same away again makes it right.
                let (count, too_large) = row.count.overflowing_add(weight);
                agenda.too_large |= too_large;
                row.count = count;
                row.changed = true;
                if self.distinct && weight < 0 && row.fed > 0 {
                    agenda.lost.push(bytes.clone());
                }
                agenda.candidates.push(bytes);
            }
        }
        Ok(())
    }

    /// Sets how often rows are in R, and gives the change for the recursive term.
    fn feed(&mut self, rows: Vec<Bytes>, times: impl Fn(&Row) -> i64) -> Result<Option<(usize, Delta)>> {
        let (mut moved, mut weights) = (Vec::new(), Vec::new());
        for bytes in rows {
            let Some(row) = self.rows.seen.get_mut(&bytes) else { continue };
            let change = times(row) - row.fed;
            if change != 0 {
                row.fed += change;
                moved.push(bytes);
                weights.push(change);
            }
        }
        if moved.is_empty() {
            return Ok(None);
        }
        let batch = self.codec.decode_bytes(&moved)?;
        Ok(Some((0, Delta::new(batch, Some(Int64Array::from(weights))))))
    }

    /// Passes changes on until nothing changes any more. They all remove, or they all add. Gives the reason if there is
    /// no end to it; the recursive term has seen the changes even then.
    fn settle(
        &mut self,
        epoch: Epoch,
        changes: Vec<(usize, Delta)>,
        mut agenda: Agenda,
        removing: bool,
        errors: &mut Vec<Delta>,
    ) -> Result<Option<CutOff>> {
        let mut feed = changes;
        let mut fed_rows = 0usize;
        for _ in 0..limits::RECURSION_PASSES_MAX {
            let lost = std::mem::take(&mut agenda.lost);
            feed.extend(self.feed(lost, |_| 0)?);
            // What lost a derivation comes back only when all has been taken out that must be.
            if !self.distinct || !removing || feed.is_empty() {
                let (candidates, distinct) = (std::mem::take(&mut agenda.candidates), self.distinct);
                feed.extend(self.feed(candidates, |row| target(distinct, row.count))?);
            }
            if feed.is_empty() {
                return Ok(None);
            }
            self.pass(epoch, &feed, &mut agenda, errors)?;
            fed_rows += feed.iter().map(|(_, delta)| delta.len()).sum::<usize>();
            if agenda.too_large {
                return Ok(Some(CutOff("a row of the recursion is derived too often".to_owned())));
            }
            if fed_rows > limits::RECURSION_ROWS_MAX {
                let message = format!("the recursion has more than {} rows", limits::RECURSION_ROWS_MAX);
                return Ok(Some(CutOff(message)));
            }
            feed.clear();
        }
        let message = format!("the recursion does not end within {} rounds", limits::RECURSION_PASSES_MAX);
        Ok(Some(CutOff(message)))
    }

    /// One pass of the recursive term, whose import 0 is R.
    fn pass(
        &mut self,
        epoch: Epoch,
        feed: &[(usize, Delta)],
        agenda: &mut Agenda,
        errors: &mut Vec<Delta>,
    ) -> Result<()> {
        let derived = self.step.pass(epoch, feed, errors)?;
        self.count(&derived, agenda)
    }

    /// Takes all rows out of R. What they led to is not counted any more.
    fn empty(&mut self, epoch: Epoch, errors: &mut Vec<Delta>) -> Result<()> {
        self.rows.load_all()?;
        let all: Vec<Bytes> = self.rows.seen.keys().cloned().collect();
        let feed: Vec<_> = self.feed(all, |_| 0)?.into_iter().collect();
        self.pass(epoch, &feed, &mut Agenda::default(), errors)
    }

    /// The changes of an epoch; the reason if the recursion has to be cut off.
    fn advance(&mut self, epoch: Epoch, changes: Changes, errors: &mut Vec<Delta>) -> Result<Option<CutOff>> {
        let Changes { removed, added, from_base, to_base } = changes;
        let inverts = |change: &(usize, Delta)| self.inverting[change.0];
        if self.rows.cut_off || removed.iter().chain(&added).any(inverts) {
            self.empty(epoch, errors)?;
            // R is empty: nothing comes of this but what the term keeps.
            for changes in [removed, added] {
                self.pass(epoch, &changes, &mut Agenda::default(), errors)?;
            }
            self.count(&from_base, &mut Agenda::default())?;
            self.count(&to_base, &mut Agenda::default())?;
            self.rows.cut_off = false;
            let candidates = self.rows.seen.keys().cloned().collect();
            return self.settle(epoch, Vec::new(), Agenda { candidates, ..Agenda::default() }, false, errors);
        }
        let mut agenda = Agenda::default();
        self.count(&from_base, &mut agenda)?;
        let cut_off = self.settle(epoch, removed, agenda, true, errors)?;
        let mut agenda = Agenda::default();
        self.count(&to_base, &mut agenda)?;
        if cut_off.is_some() {
            // The term has to know its inputs nevertheless.
            self.pass(epoch, &added, &mut agenda, errors)?;
            return Ok(cut_off);
        }
        self.settle(epoch, added, agenda, false, errors)
    }

    /// Emits what became of the rows that were seen, and stores their counts.
    fn emit(&mut self, output: &mut Output) -> Result<()> {
        let (mut moved, mut weights) = (Vec::new(), Vec::new());
        for (bytes, row) in self.rows.seen.drain() {
            if row.changed {
                match row.count {
                    0 => self.rows.table.delete(self.partition, &bytes),
                    count => self.rows.table.put(self.partition, &bytes, encode_count(count)),
                }
            }
            if row.fed != row.before {
                moved.push(bytes);
                weights.push(row.fed - row.before);
            }
        }
        let batch = self.codec.decode_bytes(&moved)?;
        output.emit(Delta::new(batch, Some(Int64Array::from(weights))));
        Ok(())
    }
}

impl Operator for Fixpoint {
    fn absorb(&mut self, port: usize, delta: Delta, _output: &mut Output) -> Result<()> {
        match self.pending.get_mut(port) {
            Some(pending) => pending.push(delta),
            None => return Err(Error::Dataflow(format!("{NAME} has no input {port}"))),
        }
        Ok(())
    }

    fn close(&mut self, epoch: Epoch, output: &mut Output) -> Result<()> {
        let Some(changes) = self.take_pending()? else { return Ok(()) };
        self.rows.cut_off = self.failure.is_there()?;
        let mut errors = Vec::new();
        let failure = self.advance(epoch, changes, &mut errors)?;
        if failure.is_some() {
            self.empty(epoch, &mut errors)?;
        }
        self.failure.change(failure.as_ref().map(|CutOff(message)| message.as_str()), output)?;
        output.emit_errors(consolidate_all(errors_schema(), errors)?);
        self.emit(output)
    }
}

impl Rows {
    fn times(&self, count: i64) -> i64 {
        if self.cut_off { 0 } else { target(self.distinct, count) }
    }

    /// Makes sure that rows are seen.
    fn load<'a>(&mut self, rows: impl Iterator<Item = &'a Bytes>) -> Result<()> {
        let unseen: Vec<Bytes> = rows.filter(|bytes| !self.seen.contains_key(*bytes)).cloned().collect();
        let keys: Vec<(u16, &[u8])> = unseen.iter().map(|bytes| (self.partition, bytes.as_ref())).collect();
        let counts = self.table.get_many(&keys)?;
        for (bytes, stored) in unseen.iter().zip(counts) {
            let count = stored.as_deref().map_or(Ok(0), decode_count)?;
            self.see(bytes.clone(), count);
        }
        Ok(())
    }

    fn load_all(&mut self) -> Result<()> {
        for (bytes, stored) in self.table.scan_prefix(self.partition, &[])? {
            if !self.seen.contains_key(&bytes) {
                self.see(bytes, decode_count(&stored)?);
            }
        }
        Ok(())
    }

    fn see(&mut self, bytes: Bytes, count: i64) {
        let times = self.times(count);
        self.seen.insert(bytes, Row { count, fed: times, before: times, changed: false });
    }
}

/// How often a row is in R that is derived so often.
fn target(distinct: bool, count: i64) -> i64 {
    if distinct { i64::from(count > 0) } else { count }
}

/// What a delta removes, and what it adds.
fn by_sign(delta: &Delta) -> Result<(Option<Delta>, Option<Delta>)> {
    let negative: BooleanArray = (0..delta.len()).map(|row| Some(delta.weight(row) < 0)).collect();
    let positive: BooleanArray = (0..delta.len()).map(|row| Some(delta.weight(row) > 0)).collect();
    let part = |mask: &BooleanArray| delta.filter(mask).map(|part| Some(part).filter(|part| !part.is_empty()));
    Ok((part(&negative)?, part(&positive)?))
}
