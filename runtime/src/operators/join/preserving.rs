//! Outer, semi, anti and mark joins in execution.
//!
//! Changes are gathered until the close of the epoch. Then, key by key, the rows that the changes meet are read, each
//! once, with what was kept of them ([`super::meeting`]); from before and after follow the pairs and the rows without
//! partner that go and come. So what is emitted is consolidated as it is, but for rows that look like padding.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, BooleanArray, Int64Array, UInt32Array, new_null_array};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::logical_expr::JoinType;

use super::Join;
use super::changes::{Changes, Touched, split_at_nulls};
use super::kept::Kept;
use super::meeting::{Meeting, Part, Presence, Span};
use super::reach::Reach;
use super::tallies::{KeptRow, TalliedRows, Tally};
use crate::Epoch;
use crate::delta::consolidate::take_rows;
use crate::delta::key::KeyEncoder;
use crate::delta::{Delta, concat, consolidate, consolidate_all};
use crate::error::Result;
use crate::expressions::batch_of;
use crate::operators::{BuildContext, Operator, Output, errors_schema};
use crate::state::StateTable;

/// Rows are dealt with when so many have been read: more would only take memory.
const ROWS_MAX: usize = 1 << 16;

/// Pairs are looked at when there are so many.
const PAIRS_MAX: usize = 1 << 16;

/// A join that preserves rows, on one worker.
pub(super) struct PreservingJoin {
    spec: Join,
    encoder: KeyEncoder,
    sides: [KeptSide; 2],
    /// What was absorbed in this epoch.
    pending: [Vec<Delta>; 2],
}

/// One side: its rows, the form in which they are kept, and how those in an order are found.
struct KeptSide {
    input: SchemaRef,
    rows: TalliedRows,
    form: Kept,
    reach: Option<Reach>,
}

impl KeptSide {
    fn new(spec: &Join, side: usize, input: &SchemaRef, table: StateTable) -> Result<Self> {
        let width = spec.kept_width(side);
        let counts_matches = spec.counts_matches(side);
        Ok(KeptSide {
            input: input.clone(),
            rows: TalliedRows::new(table, spec.sides[side].unique || width == 0, counts_matches),
            form: Kept::new(&spec.sides[side].keys, width, spec.sides[side].order.as_ref(), input)?,
            reach: spec.sides[side].order.as_ref().map(Reach::new).transpose()?,
        })
    }
}

/// What was read of a side before anything else.
enum Known {
    /// All rows of each touched key.
    Keys(Vec<Vec<KeptRow>>),
    /// The tally of each changed row.
    Rows(Vec<Tally>),
}

/// Pairs found so far: their rows on either side, and how their weight changes.
#[derive(Default)]
struct Pairs {
    rows: [Vec<u32>; 2],
    weights: Vec<i64>,
}

impl PreservingJoin {
    pub(super) fn new(spec: Join, context: BuildContext) -> Result<Self> {
        let [left, right] = crate::operators::state_tables(context.state)?;
        let sides =
            [KeptSide::new(&spec, 0, &context.inputs[0], left)?, KeptSide::new(&spec, 1, &context.inputs[1], right)?];
        let encoder = KeyEncoder::new(&spec.key_types)?;
        Ok(PreservingJoin { spec, encoder, sides, pending: [Vec::new(), Vec::new()] })
    }
}

impl Operator for PreservingJoin {
    fn absorb(&mut self, port: usize, delta: Delta, _output: &mut Output) -> Result<()> {
        if !delta.is_empty() {
            self.pending[port].push(delta);
        }
        Ok(())
    }

    fn close(&mut self, _epoch: Epoch, output: &mut Output) -> Result<()> {
        if self.pending.iter().all(Vec::is_empty) {
            return Ok(());
        }
        let [left, right] = std::mem::take(&mut self.pending);
        let mut emitted = Output::default();
        let changes = [self.changes(0, left, &mut emitted)?, self.changes(1, right, &mut emitted)?];
        let touched = Touched::new(&changes);
        let mut known = [self.known(0, &changes, &touched)?, self.known(1, &changes, &touched)?];
        let mut meeting = Meeting::default();
        for key in 0..touched.len() {
            self.meet(key, &changes, &touched, &mut known, &mut meeting)?;
            if meeting.len() >= ROWS_MAX {
                self.settle(std::mem::take(&mut meeting), &touched, &mut emitted)?;
            }
        }
        self.settle(meeting, &touched, &mut emitted)?;
        match self.spec.pads_like_rows {
            true => output.emit(consolidate_all(self.spec.schema.clone(), emitted.rows)?),
            false => emitted.rows.into_iter().for_each(|delta| output.emit(delta)),
        }
        output.emit_errors(consolidate_all(errors_schema(), emitted.errors)?);
        Ok(())
    }
}

impl PreservingJoin {
    /// What the deltas of a side change. Rows without key match nothing, so they pass here, and are not kept.
    fn changes(&self, side: usize, deltas: Vec<Delta>, emitted: &mut Output) -> Result<Changes> {
        let delta = concat(self.sides[side].input.clone(), deltas)?;
        let of_side = &self.spec.sides[side];
        let (delta, without_key) = match self.spec.nulls_are_equal {
            true => (delta, None),
            false => split_at_nulls(delta, &of_side.keys)?,
        };
        if let Some(without_key) = without_key.filter(|_| self.spec.preserves(side)) {
            let rows = consolidate(without_key)?;
            let weights: Vec<i64> = (0..rows.len()).map(|row| rows.weight(row)).collect();
            let columns = rows.batch().columns()[..of_side.width].to_vec();
            if self.spec.shows(false) {
                emitted.emit(self.alone(side, columns, weights, false)?);
            }
        }
        let (form, of_other) = (&self.sides[side].form, self.sides[1 - side].reach.as_ref());
        Changes::new(&delta, &of_side.keys, &self.encoder, form, of_other)
    }

    /// Reads what is needed of a side whatever changes on the other one.
    fn known(&self, side: usize, changes: &[Changes; 2], touched: &Touched<'_>) -> Result<Known> {
        let rows = &self.sides[side].rows;
        if rows.one_a_key() {
            let keys: Vec<(u16, &[u8])> = (0..touched.len()).map(|key| touched.key(key)).collect();
            return Ok(Known::Keys(rows.of_keys(&keys)?));
        }
        let changes = &changes[side];
        let changed: Vec<(u16, &[u8])> =
            (0..changes.len()).map(|change| (touched.partition(side, change), changes.row(change))).collect();
        Ok(Known::Rows(rows.tallies(&changed)?))
    }

    /// Adds the rows of a key that its changes meet.
    fn meet(
        &self,
        key: usize,
        changes: &[Changes; 2],
        touched: &Touched<'_>,
        known: &mut [Known; 2],
        meeting: &mut Meeting,
    ) -> Result<()> {
        let mut span = Span { key, ..Span::default() };
        // Where rows are only shown or not, it must be known first whether the other side appears or disappears.
        let order = if self.spec.preserves(0) { [1, 0] } else { [0, 1] };
        for side in order {
            let all = if self.spec.looks_at_pairs() {
                touched.changed(key, 1 - side).len() > 0
            } else {
                let other = meeting.rows[1 - side].presence(&span.parts[1 - side].rows);
                self.spec.preserves(side) && other.before != other.after
            };
            span.parts[side] = self.part(side, key, all, (&changes[side], touched), &mut known[side], meeting)?;
        }
        meeting.spans.push(span);
        Ok(())
    }

    /// Adds the rows of a key on one side: those that change, and the others if all are wanted, of which those out of reach
    /// of all changes are left out.
    fn part(
        &self,
        side: usize,
        key: usize,
        all: bool,
        (changes, touched): (&Changes, &Touched<'_>),
        known: &mut Known,
        meeting: &mut Meeting,
    ) -> Result<Part> {
        let (span, rows) = (meeting.spans.len(), &mut meeting.rows[side]);
        let start = rows.len();
        let (partition, bytes) = touched.key(key);
        let mut kept = match known {
            Known::Keys(kept) => std::mem::take(&mut kept[key]),
            Known::Rows(_) if all && self.sides[side].reach.is_some() => {
                let reaches =
                    touched.changed(key, 1 - side).filter_map(|change| touched.changes()[1 - side].reach(change));
                self.sides[side].rows.within(partition, bytes, reaches.flatten())?
            }
            Known::Rows(_) if all => self.sides[side].rows.of_key(partition, bytes)?,
            Known::Rows(_) => Vec::new(),
        };
        // Which changes these are is kept only where changes have a reach.
        let has_reach = self.sides.iter().any(|side| side.reach.is_some());
        let mut changed: Vec<usize> = touched.changed(key, side).filter(|_| has_reach).collect();
        if self.sides[side].reach.is_some() {
            changed.sort_unstable_by_key(|change| changes.payload(*change));
        }
        for change in changed.iter().copied().chain(touched.changed(key, side).filter(|_| !has_reach)) {
            let payload = changes.payload(change);
            let found = kept.binary_search_by(|(other, _)| other.as_ref().cmp(payload)).ok();
            let before = match (&*known, found) {
                (Known::Rows(tallies), _) => tallies[change],
                (Known::Keys(_), Some(found)) => kept[found].1,
                (Known::Keys(_), None) => Tally::default(),
            };
            rows.push(span, payload, before, changes.weight(change));
            if let Some(found) = found {
                // It has its place among the changed ones.
                kept[found].1.weight = 0;
            }
        }
        let count = rows.len() - start;
        for (payload, tally) in kept.iter().filter(|(_, tally)| tally.weight != 0) {
            rows.push(span, payload, *tally, 0);
        }
        let whole = all || matches!(known, Known::Keys(_));
        Ok(Part { rows: start..rows.len(), changed: count, changes: changed, whole })
    }

    /// Emits what changes for the rows of a meeting, and keeps their new tallies.
    fn settle(&self, mut meeting: Meeting, touched: &Touched<'_>, emitted: &mut Output) -> Result<()> {
        if meeting.spans.is_empty() {
            return Ok(());
        }
        let decode = |side: usize| {
            let form = &self.sides[side].form;
            form.decode(&self.encoder, meeting.keys(side, touched), meeting.payloads(side))
        };
        let columns = [decode(0)?, decode(1)?];
        let mut presences = [Vec::new(), Vec::new()];
        if self.spec.condition.is_none() {
            for (side, presences) in presences.iter_mut().enumerate().filter(|(side, _)| self.spec.preserves(1 - side))
            {
                *presences = self.presences(side, &meeting, touched)?;
            }
        }
        if self.spec.looks_at_pairs() {
            self.pair(&mut meeting, touched, &columns, emitted)?;
        }
        for side in 0..2 {
            self.write(side, &meeting, touched);
        }
        for side in (0..2).filter(|side| self.spec.preserves(*side)) {
            let of_others = &mut presences[1 - side];
            if self.spec.condition.is_none() {
                self.look_again(1 - side, &meeting, touched, of_others)?;
            }
            self.emit_alone(side, &meeting, &columns[side], of_others, emitted)?;
        }
        Ok(())
    }

    /// Whether the keys of a meeting have rows on a side. Must be asked before anything is written. Where not all rows
    /// were read and all of those read are gone at the close, the answer for it is open.
    fn presences(&self, side: usize, meeting: &Meeting, touched: &Touched<'_>) -> Result<Vec<Presence>> {
        let presence = |span: &Span| {
            let part = &span.parts[side];
            let mut presence = meeting.rows[side].presence(&part.rows);
            if !part.whole && !presence.before && !span.parts[1 - side].rows.is_empty() {
                let (partition, key) = touched.key(span.key);
                presence.before = self.sides[side].rows.any(partition, key)?;
            }
            Ok(presence)
        };
        meeting.spans.iter().map(presence).collect()
    }

    /// Answers what was left open, after everything is written.
    fn look_again(
        &self,
        side: usize,
        meeting: &Meeting,
        touched: &Touched<'_>,
        presences: &mut [Presence],
    ) -> Result<()> {
        for (span, presence) in meeting.spans.iter().zip(presences) {
            if !span.parts[side].whole && !presence.after && !span.parts[1 - side].rows.is_empty() {
                let (partition, key) = touched.key(span.key);
                presence.after = self.sides[side].rows.any(partition, key)?;
            }
        }
        Ok(())
    }

    /// Looks at all pairs that change.
    fn pair(
        &self,
        meeting: &mut Meeting,
        touched: &Touched<'_>,
        columns: &[Vec<ArrayRef>; 2],
        emitted: &mut Output,
    ) -> Result<()> {
        let (mut pairs, mut blocks) = (Pairs::default(), Vec::new());
        for span in std::mem::take(&mut meeting.spans) {
            span.blocks(&meeting.rows, touched.changes(), &mut blocks);
            for [lefts, rights] in blocks.drain(..) {
                for (left, right) in lefts.flat_map(|left| rights.clone().map(move |right| (left, right))) {
                    let product = |tallies: [&[Tally]; 2]| tallies[0][left].weight * tallies[1][right].weight;
                    let [of_left, of_right] = &meeting.rows;
                    let weight =
                        product([&of_left.after, &of_right.after]) - product([&of_left.before, &of_right.before]);
                    if weight == 0 && self.spec.condition.is_none() {
                        continue;
                    }
                    pairs.rows[0].push(left as u32);
                    pairs.rows[1].push(right as u32);
                    pairs.weights.push(weight);
                    if pairs.weights.len() >= PAIRS_MAX {
                        self.emit_pairs(std::mem::take(&mut pairs), meeting, columns, emitted)?;
                    }
                }
            }
            meeting.spans.push(span);
        }
        self.emit_pairs(pairs, meeting, columns, emitted)
    }

    /// Counts the pairs for which the condition is true, and emits them if the join shows pairs.
    fn emit_pairs(
        &self,
        pairs: Pairs,
        meeting: &mut Meeting,
        columns: &[Vec<ArrayRef>; 2],
        emitted: &mut Output,
    ) -> Result<()> {
        if pairs.weights.is_empty() {
            return Ok(());
        }
        let rows = pairs.rows.map(UInt32Array::from);
        let count = pairs.weights.len();
        let taken = (0..2).flat_map(|side| {
            columns[side].iter().map(|column| compute::take(column, &rows[side], None)).collect::<Vec<_>>()
        });
        let batch = batch_of(&self.spec.pair_schema, taken.collect::<Result<_, _>>()?, count)?;
        let delta = weighted(batch, pairs.weights);
        let Some(condition) = &self.spec.condition else {
            emitted.emit(delta);
            return Ok(());
        };
        let passing = condition.positions(&delta, emitted)?;
        for pair in &passing {
            let [left, right] = [0, 1].map(|side: usize| rows[side].value(*pair as usize) as usize);
            let [of_left, of_right] = &mut meeting.rows;
            let gains = [
                of_right.gain(right, of_left.before[left].weight != 0),
                of_left.gain(left, of_right.before[right].weight != 0),
            ];
            if self.spec.preserves(0) {
                of_left.after[left].matches += gains[0];
            }
            if self.spec.preserves(1) {
                of_right.after[right].matches += gains[1];
            }
        }
        if self.spec.shows_pairs() {
            let changed: Vec<u32> = passing.into_iter().filter(|pair| delta.weight(*pair as usize) != 0).collect();
            let weights = changed.iter().map(|pair| delta.weight(*pair as usize)).collect();
            emitted.emit(weighted(take_rows(delta.batch(), &UInt32Array::from(changed))?, weights));
        }
        Ok(())
    }

    /// Keeps the tallies that changed.
    fn write(&self, side: usize, meeting: &Meeting, touched: &Touched<'_>) {
        let (kept, rows) = (&self.sides[side].rows, &meeting.rows[side]);
        let mut bytes = Vec::new();
        for span in &meeting.spans {
            let (partition, key) = touched.key(span.key);
            let part = span.parts[side].rows.clone();
            let mut changed = part.clone().filter(|row| rows.before[*row] != rows.after[*row]).peekable();
            if kept.one_a_key() {
                if changed.peek().is_some() {
                    kept.put_all(partition, key, part.map(|row| (rows.payload(row), rows.after[row])));
                }
                continue;
            }
            for row in changed {
                bytes.clear();
                bytes.extend_from_slice(key);
                bytes.extend_from_slice(rows.payload(row));
                kept.put(partition, &bytes, rows.after[row]);
            }
        }
    }

    /// Emits the changes of rows that are shown by themselves, because they have partners or because they have none.
    fn emit_alone(
        &self,
        side: usize,
        meeting: &Meeting,
        columns: &[ArrayRef],
        of_others: &[Presence],
        emitted: &mut Output,
    ) -> Result<()> {
        let rows = &meeting.rows[side];
        let matched = |row: usize| match self.spec.condition {
            Some(_) => (rows.before[row].matches > 0, rows.after[row].matches > 0),
            None => (of_others[rows.span(row)].before, of_others[rows.span(row)].after),
        };
        for shown in [false, true].into_iter().filter(|shown| self.spec.shows(*shown)) {
            let (mut positions, mut weights) = (Vec::new(), Vec::new());
            for row in 0..rows.len() {
                let (before, after) = matched(row);
                let weight_before = if before == shown { rows.before[row].weight } else { 0 };
                let weight_after = if after == shown { rows.after[row].weight } else { 0 };
                if weight_after != weight_before {
                    positions.push(row as u32);
                    weights.push(weight_after - weight_before);
                }
            }
            let positions = UInt32Array::from(positions);
            let taken =
                columns.iter().map(|column| compute::take(column, &positions, None)).collect::<Result<_, _>>()?;
            emitted.emit(self.alone(side, taken, weights, shown)?);
        }
        Ok(())
    }

    /// Rows of a side as they are shown by themselves.
    fn alone(&self, side: usize, columns: Vec<ArrayRef>, weights: Vec<i64>, matched: bool) -> Result<Delta> {
        let (count, schema) = (weights.len(), &self.spec.schema);
        let columns = match self.spec.join_type {
            JoinType::LeftMark | JoinType::RightMark => {
                let mark: ArrayRef = Arc::new(BooleanArray::from(vec![matched; count]));
                columns.into_iter().chain([mark]).collect()
            }
            _ if self.spec.shows_pairs() => {
                let fields = schema.fields();
                let absent = match side {
                    0 => &fields[columns.len()..],
                    _ => &fields[..fields.len() - columns.len()],
                };
                let absent = absent.iter().map(|field| new_null_array(field.data_type(), count));
                match side {
                    0 => columns.into_iter().chain(absent).collect(),
                    _ => absent.chain(columns).collect(),
                }
            }
            _ => columns,
        };
        Ok(weighted(batch_of(schema, columns, count)?, weights))
    }
}

fn weighted(batch: RecordBatch, weights: Vec<i64>) -> Delta {
    let all_one = weights.iter().all(|weight| *weight == 1);
    Delta::new(batch, (!all_one).then(|| Int64Array::from(weights)))
}
