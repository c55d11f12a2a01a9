//! The rows that an epoch's changes meet: of the touched keys, those rows of either side that have to be looked at, each
//! once, with its tally before and after the epoch.

use std::ops::Range;

use super::changes::Touched;
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
    /// Whether these are all rows of the key.
    pub(super) whole: bool,
}

impl Part {
    /// The rows that change.
    pub(super) fn changed_rows(&self) -> Range<usize> {
        self.rows.start..self.rows.start + self.changed
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
    /// For each row of the left side those of the right with which it makes a pair that changes.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let [left, right] = &self.parts;
        left.rows.clone().map(move |row| {
            let changed = row < left.changed_rows().end;
            (row, if changed { right.rows.clone() } else { right.changed_rows() })
        })
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
