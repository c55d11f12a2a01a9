//! A coordinator in miniature: tables fed by hand, epochs sealed and committed one by one, views kept from changes.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use crossbeam_channel::Receiver;
use datafusion::arrow::datatypes::SchemaRef;
use plan::{Dataflow, Growth, Layout, Relation, RelationId, RelationKind};

use super::operators::definitions;
use crate::Epoch;
use crate::delta::Delta;
use crate::delta::literal::{delta, schema, text};
use crate::engine::{Change, DataflowDescription, EpochResult, FillPosition, Runtime, RuntimeConfig};
use crate::error::Result;
use crate::operators::errors_schema;
use crate::state::memory::MemoryStore;
use crate::state::relation::{RelationStorage, ScanOptions};
use crate::state::{EpochBatch, Store, Sync};

/// The n-th identity of a relation.
fn ids(number: u32) -> RelationId {
    RelationId(100 + number * 20)
}

/// A relation to read, and the column to count it by.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) relation: Arc<Relation>,
    pub(crate) column: usize,
}

impl Source {
    /// Its identity.
    pub(crate) fn id(&self) -> RelationId {
        self.relation.id
    }

    /// To be counted by the second column.
    pub(crate) fn with_columns_swapped(&self) -> Source {
        Source { relation: self.relation.clone(), column: 1 }
    }
}

/// Rows with their numbers, as text.
type Rows = BTreeMap<String, i64>;

/// A runtime over a store in memory.
pub(crate) struct World {
    workers: usize,
    runtime: Option<Runtime>,
    results: Receiver<EpochResult>,
    store: Arc<MemoryStore>,
    relations: BTreeMap<RelationId, Arc<Relation>>,
    dataflows: Vec<DataflowDescription>,
    /// All relations as the sum of their changes.
    rows: BTreeMap<RelationId, Rows>,
    sealed: Epoch,
    scanned: Cell<Option<Bytes>>,
    /// Changes of tables by epoch, to be stored with the epoch.
    fed: BTreeMap<Epoch, Vec<(RelationId, Delta)>>,
}

fn start(workers: usize, store: &Arc<MemoryStore>) -> (Runtime, Receiver<EpochResult>) {
    let config = RuntimeConfig { workers, cache_bytes: 1 << 20 };
    let definitions = definitions().into_iter().chain(crate::operators::definitions()).collect();
    Runtime::start(config, store.clone(), definitions).unwrap()
}

impl World {
    pub(crate) fn new(workers: usize) -> World {
        let store = MemoryStore::new();
        let (runtime, results) = start(workers, &store);
        World {
            workers,
            runtime: Some(runtime),
            results,
            store,
            relations: BTreeMap::new(),
            dataflows: Vec::new(),
            rows: BTreeMap::new(),
            sealed: 0,
            scanned: Cell::new(None),
            fed: BTreeMap::new(),
        }
    }

    fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().unwrap()
    }

    fn add_relation(&mut self, name: &str, kind: RelationKind, columns: SchemaRef, layout: Layout) -> Arc<Relation> {
        let relation = Arc::new(Relation {
            id: ids(self.relations.len() as u32),
            name: name.to_owned(),
            kind,
            schema: columns,
            layout,
            append_only: false,
            growth: Growth::Deletable,
            watermarks: vec![],
        });
        self.relations.insert(relation.id, relation.clone());
        relation
    }

    /// A new table, stored as a multiset.
    pub(crate) fn table(&mut self, name: &str, columns: &str) -> Source {
        let relation = self.add_relation(name, RelationKind::Table, schema(columns), Layout::Multiset);
        Source { relation, column: 0 }
    }

    /// What a view fills, to be read by another one.
    pub(crate) fn relation(&self, view: RelationId) -> Source {
        Source { relation: self.relations[&view].clone(), column: 0 }
    }

    fn describe(&mut self, name: &str, plan: Dataflow, layout: Layout) -> DataflowDescription {
        let columns = plan.node(plan.output()).schema.clone();
        let output = self.add_relation(name, RelationKind::MaterializedView, columns, layout);
        let errors = Relation {
            id: RelationId(output.id.0 + 2),
            name: format!("{name}$errors"),
            kind: RelationKind::Errors,
            schema: errors_schema(),
            layout: Layout::Multiset,
            append_only: false,
            growth: Growth::Deletable,
            watermarks: vec![],
        };
        DataflowDescription {
            first_state_table: output.id.0 + 4,
            output,
            errors: Arc::new(errors),
            plan: Arc::new(plan),
            fresh: true,
        }
    }

    /// A view that sees all changes from now on.
    pub(crate) fn view(&mut self, name: &str, plan: Dataflow, _reads: &[RelationId]) -> RelationId {
        let layout = plan.output_layout();
        let description = self.describe(name, plan, layout);
        self.create(description, FillPosition::End).unwrap()
    }

    /// A view stored by key.
    pub(crate) fn keyed_view(&mut self, name: &str, plan: Dataflow, key: &[usize]) -> RelationId {
        let description = self.describe(name, plan, Layout::Keyed(key.to_vec()));
        self.create(description, FillPosition::End).unwrap()
    }

    /// A view that nothing reaches yet.
    pub(crate) fn unfilled_view(&mut self, name: &str, plan: Dataflow) -> RelationId {
        let layout = plan.output_layout();
        let description = self.describe(name, plan, layout);
        self.create(description, FillPosition::Start).unwrap()
    }

    pub(crate) fn try_view(&mut self, name: &str, plan: Dataflow) -> Result<RelationId> {
        let description = self.describe(name, plan, Layout::Multiset);
        self.create(description, FillPosition::End)
    }

    fn create(&mut self, description: DataflowDescription, position: FillPosition) -> Result<RelationId> {
        let id = description.output.id;
        self.runtime().create(description.clone())?;
        for (relation, _) in description.plan.imports() {
            self.runtime().set_fill(id, relation.id, position.clone())?;
        }
        self.dataflows.push(description);
        Ok(id)
    }

    pub(crate) fn drop_view(&mut self, view: RelationId) {
        self.runtime().drop_dataflow(view).unwrap();
    }

    /// Creates a dropped view again; its state is new.
    pub(crate) fn recreate(&mut self, view: RelationId) {
        let position = self.dataflows.iter().position(|description| description.output.id == view).unwrap();
        let description = self.dataflows.remove(position);
        self.create(description, FillPosition::Start).unwrap();
    }

    /// Feeds and seals an epoch.
    pub(crate) fn send(&mut self, changes: &[(&Source, &str)]) {
        self.sealed += 1;
        for (table, text) in changes {
            let delta = delta(&table.relation.schema, text);
            self.fed.entry(self.sealed).or_default().push((table.id(), delta.clone()));
            let change = Change { delta, rowids: None };
            self.runtime().feed(self.sealed, table.id(), change).unwrap();
        }
        self.runtime().seal(self.sealed).unwrap();
    }

    /// Takes the result of the next epoch and commits it.
    pub(crate) fn receive(&mut self) -> EpochResult {
        let result = self.results.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
        let mut writes = result.writes.clone();
        for (relation, delta) in self.fed.remove(&result.epoch).unwrap_or_default() {
            add(self.rows.entry(relation).or_default(), &delta);
            writes.extend(self.table_writes(relation, &delta));
        }
        for (relation, delta) in &result.changes {
            add(self.rows.entry(*relation).or_default(), delta);
        }
        let epoch = result.epoch;
        self.store.commit(&EpochBatch { epoch, writes, deleted_ranges: vec![] }, Sync::Later).unwrap();
        self.runtime().committed(epoch).unwrap();
        result
    }

    /// Tables of these tests hold every row at most once, so a row is its own entry.
    fn table_writes(&self, relation: RelationId, delta: &Delta) -> Vec<(Bytes, Option<Bytes>)> {
        let storage = RelationStorage::new(self.relations[&relation].clone()).unwrap();
        let keys = storage.keys(delta.batch(), None).unwrap();
        let value = |row: usize| (delta.weight(row) > 0).then(|| crate::state::relation::encode_count(1));
        let mut writes: BTreeMap<Bytes, Option<Bytes>> = BTreeMap::new();
        for (row, key) in keys.into_iter().enumerate() {
            writes.insert(key, value(row));
        }
        writes.into_iter().collect()
    }

    /// One epoch from feeding to committing.
    pub(crate) fn epoch(&mut self, changes: &[(&Source, &str)]) -> EpochResult {
        self.send(changes);
        let result = self.receive();
        assert_eq!(result.epoch, self.sealed);
        result
    }

    /// The failed rows of a view as text, one a line.
    pub(crate) fn errors(&self, view: RelationId) -> String {
        self.rows(RelationId(view.0 + 2))
    }

    /// The relations that exist.
    pub(crate) fn relations(&self) -> impl Iterator<Item = &Arc<Relation>> {
        self.relations.values()
    }

    /// The rows of a relation as text, one a line, in order.
    pub(crate) fn rows(&self, relation: RelationId) -> String {
        let rows = self.rows.get(&relation).cloned().unwrap_or_default();
        let mut lines = Vec::new();
        for (row, count) in rows {
            assert!(count > 0, "{count} times {row}");
            lines.extend((0..count).map(|_| row.clone()));
        }
        lines.join("\n")
    }

    /// What is stored of every view is the sum of its changes.
    pub(crate) fn check_stored(&self) {
        for description in &self.dataflows {
            for relation in [&description.output, &description.errors] {
                let mut stored = Rows::new();
                let storage = RelationStorage::new(relation.clone()).unwrap();
                for scanned in storage.scan(self.store.snapshot(), ScanOptions::default()) {
                    add(&mut stored, &Delta::insert(scanned.unwrap().batch));
                }
                assert_eq!(stored, self.rows.get(&relation.id).cloned().unwrap_or_default(), "{}", relation.name);
            }
        }
    }

    /// The first rows of a table and the position after them.
    pub(crate) fn scan(&self, table: &Source, rows: usize) -> (Vec<Delta>, Bytes) {
        self.scanned.set(None);
        let (deltas, position) = self.scan_after(table, rows);
        (deltas, position.unwrap())
    }

    /// The next rows of a table and the position after them.
    pub(crate) fn scan_after(&self, table: &Source, rows: usize) -> (Vec<Delta>, Option<Bytes>) {
        let storage = RelationStorage::new(table.relation.clone()).unwrap();
        let after = self.scanned.take();
        let options = ScanOptions { after, batch_rows: 1, ..ScanOptions::default() };
        let mut deltas = Vec::new();
        let mut position = None;
        for scanned in storage.scan(self.store.snapshot(), options).take(rows) {
            let scanned = scanned.unwrap();
            position = Some(scanned.last_key);
            deltas.push(Delta::insert(scanned.batch));
        }
        self.scanned.set(position.clone());
        (deltas, position)
    }

    /// The rows of a table in the order of the store, as text without weights.
    pub(crate) fn keys_in_store_order(&self, table: &Source) -> Vec<String> {
        let scanned = self.scanned.take();
        let (deltas, _) = self.scan_after(table, usize::MAX);
        self.scanned.set(scanned);
        deltas.iter().flat_map(|delta| lines(delta).into_iter().map(|(row, _)| row).collect::<Vec<_>>()).collect()
    }

    /// Hands over what the fill has read, for the next epoch.
    pub(crate) fn fill(&mut self, view: RelationId, table: &Source, rows: &[Delta], position: FillPosition) {
        for delta in rows {
            self.runtime().fill(self.sealed + 1, view, table.id(), delta.clone()).unwrap();
        }
        self.runtime().set_fill(view, table.id(), position).unwrap();
    }

    /// Stops the workers and starts them again over what is stored.
    pub(crate) fn restart(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.stop();
        }
        let (runtime, results) = start(self.workers, &self.store);
        (self.runtime, self.results) = (Some(runtime), results);
        for description in &mut self.dataflows {
            description.fresh = false;
        }
        for description in &self.dataflows {
            self.runtime().create(description.clone()).unwrap();
        }
    }
}

/// The rows of a delta as text, with their weights.
fn lines(delta: &Delta) -> Vec<(String, i64)> {
    text(delta)
        .lines()
        .map(|line| {
            let (weight, row) = line.split_once(" | ").unwrap();
            (row.to_owned(), weight.parse::<i64>().unwrap())
        })
        .collect()
}

fn add(rows: &mut Rows, delta: &Delta) {
    for (row, weight) in lines(delta) {
        *rows.entry(row.clone()).or_default() += weight;
        if rows[&row] == 0 {
            rows.remove(&row);
        }
    }
}
