//! Filling a new materialized view from what its inputs hold already.
//!
//! While a view is being filled, at most one epoch is in flight. Each epoch reads a bounded chunk of the next input
//! relation from the newest snapshot, in the order of store keys, and moves the fill position behind it before that
//! epoch's changes are fed: changes at or before the position are for the view, those behind it are read later. When
//! all inputs are at their end, the epoch that makes them so also makes the view ready.

use bytes::Bytes;
use plan::SqlState;
use runtime::state::relation::ScanOptions;
use runtime::{DataflowId, Delta, FillPosition};

use super::commit::Answer;
use super::ddl::state_ranges;
use super::epoch::{EpochLoop, InFlight};
use crate::catalog::entry::{Entry, Status, StoredEntry};
use crate::catalog::{CatalogChange, Stored};
use crate::error::ServerError;

/// A materialized view that is being filled.
pub struct Fill {
    /// Its dataflow.
    pub dataflow: DataflowId,
    /// Its entry.
    pub entry: StoredEntry,
    /// What it reads.
    pub inputs: Vec<Stored>,
    /// The input that is being read.
    pub current: usize,
    /// How far that has been read.
    pub after: Option<Bytes>,
    /// The epoch in which all inputs came to their end.
    pub finished_in: Option<runtime::Epoch>,
    /// Who waits for it.
    pub answer: Answer,
}

impl EpochLoop {
    /// Reads the next chunk for every fill into an epoch.
    pub(super) fn step_fills(&mut self, epoch: &mut InFlight) {
        let mut position = 0;
        while position < self.fills.len() {
            if self.fills[position].answer.sender.is_closed() {
                let fill = self.fills.remove(position);
                self.abandon(epoch, fill, super::cancelled());
                continue;
            }
            match self.step(epoch, position) {
                Ok(()) => position += 1,
                Err(error) => {
                    let fill = self.fills.remove(position);
                    self.abandon(epoch, fill, error);
                }
            }
        }
    }

    fn step(&mut self, epoch: &mut InFlight, position: usize) -> Result<(), ServerError> {
        let snapshot = self.shared.published.load().snapshot.clone();
        let fill = &mut self.fills[position];
        epoch.sealed = true;
        let mut read = 0;
        while let Some(input) = fill.inputs.get(fill.current) {
            let relation = input.relation.id;
            let batch_rows = ScanOptions::default().batch_rows.min(self.fill_rows);
            let options = ScanOptions { after: fill.after.clone(), batch_rows, ..ScanOptions::default() };
            let mut scan = input.storage.scan(snapshot.clone(), options);
            let mut chunk = Vec::new();
            let mut ended = false;
            while read < self.fill_rows {
                match scan.next().transpose()? {
                    Some(scanned) => {
                        read += scanned.batch.num_rows();
                        fill.after = Some(scanned.last_key);
                        chunk.push(scanned.batch);
                    }
                    None => {
                        ended = true;
                        break;
                    }
                }
            }
            let reached = match (&fill.after, ended) {
                (_, true) => FillPosition::End,
                (Some(key), false) => FillPosition::Through(key.clone()),
                (None, false) => FillPosition::Start,
            };
            self.runtime.set_fill(fill.dataflow, relation, reached)?;
            for rows in chunk {
                self.runtime.fill(epoch.epoch, fill.dataflow, relation, Delta::insert(rows))?;
            }
            if !ended {
                return Ok(());
            }
            fill.current += 1;
            fill.after = None;
        }
        fill.finished_in = Some(epoch.epoch);
        Ok(())
    }

    /// Makes the views ready whose inputs came to their end in an epoch that the workers have done.
    pub(super) fn finish_fills(&mut self, position: usize) {
        let epoch = &mut self.in_flight[position];
        let mut remaining = Vec::with_capacity(self.fills.len());
        for mut fill in self.fills.drain(..) {
            if fill.finished_in != Some(epoch.epoch) {
                remaining.push(fill);
                continue;
            }
            if let Entry::MaterializedView(view) = &mut fill.entry.entry {
                view.status = Status::Ready;
            }
            epoch.changes.push(CatalogChange::Put(fill.entry));
            epoch.answers.push(fill.answer);
        }
        self.fills = remaining;
    }

    /// Drops a view that will not be complete, with its state. Whoever waits for it is told when that is published: the
    /// catalog says only then that its numbers were given out.
    fn abandon(&mut self, epoch: &mut InFlight, mut fill: Fill, error: ServerError) {
        self.end_dataflow(fill.dataflow);
        epoch.changes.push(CatalogChange::Remove(fill.entry.id));
        epoch.deleted_ranges.extend(state_ranges(&fill.entry));
        fill.answer.refusal = Some(error);
        epoch.answers.push(fill.answer);
    }

    /// Ends a dataflow with the epochs that were sealed so far.
    pub(super) fn end_dataflow(&mut self, dataflow: DataflowId) {
        if self.running.remove(&dataflow).is_some()
            && let Err(error) = self.runtime.drop_dataflow(dataflow)
        {
            tracing::error!(%error, "a dataflow could not be ended");
        }
    }

    /// Marks views whose dataflows failed, and all that read them; drops those that were being filled.
    pub(super) fn note_failures(&mut self, position: usize, failures: Vec<(DataflowId, String)>) {
        for (dataflow, reason) in failures {
            tracing::error!(dataflow = dataflow.0, reason, "a dataflow failed");
            if let Some(filling) = self.fills.iter().position(|fill| fill.dataflow == dataflow) {
                let fill = self.fills.remove(filling);
                let error =
                    ServerError::new(SqlState::INTERNAL_ERROR, format!("the view cannot be computed: {reason}"));
                let mut scratch = InFlight::new(0);
                self.abandon(&mut scratch, fill, error);
                let epoch = &mut self.in_flight[position];
                epoch.changes.append(&mut scratch.changes);
                epoch.deleted_ranges.append(&mut scratch.deleted_ranges);
                epoch.answers.append(&mut scratch.answers);
                continue;
            }
            let mut failed = vec![dataflow.0];
            failed.extend(self.catalog.dependents(&[dataflow.0].into()).iter().map(|object| object.id));
            // Those that read others end first.
            for id in failed.into_iter().rev() {
                self.end_dataflow(plan::RelationId(id));
                let Some(object) = self.catalog.object(id) else { continue };
                let mut entry = object.entry.as_ref().clone();
                if let Entry::MaterializedView(view) = &mut entry.entry {
                    view.status = Status::Failed(reason.clone());
                    self.in_flight[position].changes.push(CatalogChange::Put(entry));
                }
            }
        }
    }
}
