//! The rows that an epoch's changes meet: of the touched keys, those rows of either side that have to be looked at, each
//! once, with its tally before and after the epoch.

use std::ops::Range;

use super::changes::{Changes, Touched};
use super::reach::Stretch;
use super::tallies::Tally;

/// Rows of one side.
#[derive(Default)]
pub(super) struct Rows {
    /// Payloads, one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// For each row its span.
    spans: Vec<u32>,
    /// Its tally when the epoch began.
    pub(super) before: Vec<Tally>,
    /// Its tally at the close.
    pub(super) after: Vec<Tally>,
}

impl Rows {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Adds a row of a span, of which so many more (or fewer) are there at the close.
    pub(super) fn push(&mut self, span: usize, payload: &[u8], before: Tally, change: i64) {
        self.bytes.extend_from_slice(payload);
        self.ends.push(self.bytes.len());
        self.spans.push(span as u32);
        let weight = before.weight + change;
        // A row that was not there has no matches yet.
        let matches = if before.weight == 0 { 0 } else { before.matches };
        self.before.push(Tally { weight: before.weight, matches });
        self.after.push(Tally { weight, matches });
    }

    /// Of rows that are in the order of their payloads, those within a stretch.
    pub(super) fn within(&self, rows: &Range<usize>, stretch: &Stretch) -> Range<usize> {
        let first_not_before = |bytes: &[u8]| {
            let (mut low, mut high) = (rows.start, rows.end);
            while low < high {
                let middle = low + (high - low) / 2;
                if self.payload(middle) < bytes { low = middle + 1 } else { high = middle }
            }
            low
        };
        let start = first_not_before(&stretch.start);
        start..first_not_before(&stretch.end).max(start)
    }

    /// The span of a row.
    pub(super) fn span(&self, row: usize) -> usize {
        self.spans[row] as usize
    }

    /// The payload of a row.
    pub(super) fn payload(&self, row: usize) -> &[u8] {
        &self.bytes[if row == 0 { 0 } else { self.ends[row - 1] }..self.ends[row]]
    }

    /// By how much the number of matches grows of a row that this row matches, and that was there before or not.
    pub(super) fn gain(&self, row: usize, other_was_there: bool) -> i64 {
        self.after[row].weight - if other_was_there { self.before[row].weight } else { 0 }
    }

    /// Whether any of these rows is there before, and after.
    pub(super) fn presence(&self, rows: &Range<usize>) -> Presence {
        let any = |tallies: &[Tally]| tallies[rows.clone()].iter().any(|tally| tally.weight > 0);
        Presence { before: any(&self.before), after: any(&self.after) }
    }
}

/// Whether a key has rows on a side, when the epoch begins and at its close.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Presence {
    pub(super) before: bool,
    pub(super) after: bool,
}

/// The rows of a side under one key.
#[derive(Debug, Clone, Default)]
pub(super) struct Part {
    /// Where they stand among the rows of the side.
    pub(super) rows: Range<usize>,
    /// How many of them, from the first on, change.
    pub(super) changed: usize,
    /// Where the side is in an order: which changes these are. Then both these rows and the others are in the order of
    /// their payloads.
    pub(super) changes: Vec<usize>,
    /// Whether these are all rows of the key.
    pub(super) whole: bool,
}

impl Part {
    /// The rows that change.
    pub(super) fn changed_rows(&self) -> Range<usize> {
        self.rows.start..self.rows.start + self.changed
    }

    /// The others.
    fn unchanged_rows(&self) -> Range<usize> {
        self.rows.start + self.changed..self.rows.end
    }
}

/// The rows under one key.
#[derive(Debug, Clone, Default)]
pub(super) struct Span {
    /// Which of the touched keys.
    pub(super) key: usize,
    pub(super) parts: [Part; 2],
}

impl Span {
    /// The pairs that may change, in blocks: each of these rows of the left side with each of those of the right.
    pub(super) fn blocks(&self, rows: &[Rows; 2], changes: &[Changes; 2], blocks: &mut Vec<[Range<usize>; 2]>) {
        blocks.clear();
        let [left, right] = &self.parts;
        if left.changes.is_empty() && right.changes.is_empty() {
            blocks.push([left.changed_rows(), right.rows.clone()]);
            blocks.push([left.unchanged_rows(), right.changed_rows()]);
            return;
        }
        let others = [vec![right.changed_rows(), right.unchanged_rows()], vec![left.unchanged_rows()]];
        for (side, others) in others.iter().enumerate() {
            let part = &self.parts[side];
            for (row, change) in part.changed_rows().zip(&part.changes) {
                let block = |met: Range<usize>| if side == 0 { [row..row + 1, met] } else { [met, row..row + 1] };
                for others in others {
                    match changes[side].reach(*change) {
                        Some(reach) => blocks.extend(reach.map(|at| block(rows[1 - side].within(others, at)))),
                        None => blocks.push(block(others.clone())),
                    }
                }
            }
        }
    }
}

/// Touched keys with their rows.
#[derive(Default)]
pub(super) struct Meeting {
    pub(super) spans: Vec<Span>,
    pub(super) rows: [Rows; 2],
}

impl Meeting {
    /// How many rows.
    pub(super) fn len(&self) -> usize {
        self.rows[0].len() + self.rows[1].len()
    }

    /// The key of each row of a side.
    pub(super) fn keys<'a>(&'a self, side: usize, touched: &'a Touched<'_>) -> impl Iterator<Item = &'a [u8]> {
        let rows = &self.rows[side];
        (0..rows.len()).map(move |row| touched.key(self.spans[rows.span(row)].key).1)
    }

    /// The payload of each row of a side.
    pub(super) fn payloads(&self, side: usize) -> impl Iterator<Item = &[u8]> {
        let rows = &self.rows[side];
        (0..rows.len()).map(move |row| rows.payload(row))
    }
}
