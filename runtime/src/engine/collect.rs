//! Puts together what the workers report of an epoch.
//!
//! The worker that reports an epoch last makes its [`EpochResult`] and sends it on. Every worker reports its epochs in
//! order, so the results come out in order. From the epoch in which a dataflow failed on any worker, its writes and
//! changes on all workers are left out, and likewise those of the dataflows that read it.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use crossbeam_channel::Sender;
use parking_lot::Mutex;
use plan::RelationId;

use super::command::{Command, Lines};
use super::dataflow::tables_of;
use super::{DataflowDescription, DataflowId, EpochResult};
use crate::Epoch;
use crate::delta::Delta;
use crate::delta::consolidate::concat;
use crate::state::store::Write;

/// What one worker made of an epoch.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// What its operators wrote.
    pub(super) writes: Vec<Write>,
    /// Changes of the relations that its dataflows fill.
    pub(super) changes: Vec<(RelationId, Delta)>,
    /// Dataflows that failed on it.
    pub(super) failures: Vec<(DataflowId, String)>,
}

/// Where all workers report.
pub(super) struct Collector {
    workers: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// None when the runtime has stopped.
    results: Option<Sender<EpochResult>>,
    pending: BTreeMap<Epoch, Vec<Report>>,
    dataflows: HashMap<DataflowId, Arc<DataflowDescription>>,
    failed: BTreeSet<DataflowId>,
    /// Store tables and relations of failed dataflows.
    failed_tables: Vec<Range<u32>>,
    lines: Option<Arc<Lines>>,
}

impl Collector {
    /// A collector for so many workers.
    pub(super) fn new(workers: usize, results: Sender<EpochResult>) -> Self {
        Collector { workers, inner: Mutex::new(Inner { results: Some(results), ..Inner::default() }) }
    }

    /// The way to tell workers of failures.
    pub(super) fn connect(&self, lines: Arc<Lines>) {
        self.inner.lock().lines = Some(lines);
    }

    /// A dataflow is about to be created, perhaps in the place of one that failed.
    pub(super) fn add(&self, description: Arc<DataflowDescription>) {
        let mut inner = self.inner.lock();
        let tables = tables_of(&description);
        inner.failed_tables.retain(|failed| !tables.contains(failed));
        inner.failed.remove(&description.output.id);
        inner.dataflows.insert(description.output.id, description);
    }

    /// A dataflow is about to end.
    pub(super) fn remove(&self, dataflow: DataflowId) {
        self.inner.lock().dataflows.remove(&dataflow);
    }

    /// Whether a dataflow is running, failed or not.
    pub(super) fn knows(&self, dataflow: DataflowId) -> bool {
        self.inner.lock().dataflows.contains_key(&dataflow)
    }

    /// No more results will come: the receiver is told.
    pub(super) fn close(&self) {
        let mut inner = self.inner.lock();
        inner.results = None;
        inner.lines = None;
    }

    /// Takes a worker's report of an epoch.
    pub(super) fn report(&self, epoch: Epoch, report: Report) {
        let mut inner = self.inner.lock();
        let reports = inner.pending.entry(epoch).or_default();
        reports.push(report);
        if reports.len() < self.workers {
            return;
        }
        let Some(reports) = inner.pending.remove(&epoch) else { return };
        let result = inner.merge(epoch, reports);
        if let Some(results) = &inner.results {
            // Nobody listens any more when the server is stopping.
            let _ = results.send(result);
        }
    }
}

impl Inner {
    fn merge(&mut self, epoch: Epoch, reports: Vec<Report>) -> EpochResult {
        let mut failures = Vec::new();
        let mut writes = Vec::with_capacity(reports.iter().map(|report| report.writes.len()).sum());
        let mut parts: BTreeMap<RelationId, Vec<Delta>> = BTreeMap::new();
        for report in reports {
            for (dataflow, reason) in report.failures {
                self.fail(dataflow, reason, &mut failures);
            }
            if writes.is_empty() {
                writes = report.writes;
            } else {
                writes.extend(report.writes);
            }
            for (relation, delta) in report.changes {
                parts.entry(relation).or_default().push(delta);
            }
        }
        for (dataflow, _) in &failures {
            // What the failed dataflow still does is thrown away here in any case.
            if let Some(lines) = &self.lines {
                lines.hint(&Command::Abandon(*dataflow, epoch));
            }
        }
        if !self.failed_tables.is_empty() {
            writes.retain(|(key, _)| !self.is_failed_table(table_of(key)));
            parts.retain(|relation, _| !self.is_failed_table(relation.0));
        }
        let changes = parts.into_iter().flat_map(|(relation, deltas)| merge_deltas(relation, deltas)).collect();
        EpochResult { epoch, writes, changes, failures }
    }

    /// A dataflow fails, and with it those that read what it fills.
    fn fail(&mut self, dataflow: DataflowId, reason: String, failures: &mut Vec<(DataflowId, String)>) {
        if !self.failed.insert(dataflow) {
            return;
        }
        failures.push((dataflow, reason));
        let Some(description) = self.dataflows.get(&dataflow).cloned() else { return };
        self.failed_tables.extend(tables_of(&description));
        let filled = [description.output.id, description.errors.id];
        let mut readers: Vec<DataflowId> = self
            .dataflows
            .values()
            .filter(|reader| reader.plan.imports().any(|(relation, _)| filled.contains(&relation.id)))
            .map(|reader| reader.output.id)
            .collect();
        readers.sort();
        for reader in readers {
            self.fail(reader, format!("it reads {}, which failed", description.output.name), failures);
        }
    }

    fn is_failed_table(&self, table: u32) -> bool {
        self.failed_tables.iter().any(|tables| tables.contains(&table))
    }
}

fn table_of(store_key: &[u8]) -> u32 {
    store_key.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

/// The changes of a relation on all workers as one. Workers own different keys, so together they are consolidated.
fn merge_deltas(relation: RelationId, deltas: Vec<Delta>) -> Vec<(RelationId, Delta)> {
    if deltas.len() <= 1 {
        return deltas.into_iter().map(|delta| (relation, delta)).collect();
    }
    match concat(deltas[0].schema(), deltas.clone()) {
        Ok(delta) => vec![(relation, delta)],
        // Several changes of one relation mean their sum, so nothing is lost.
        Err(_) => deltas.into_iter().map(|delta| (relation, delta)).collect(),
    }
}
