//! A transaction: its reads, its buffered changes, and their commit in one epoch.
//!
//! Changes are buffered per table ([`TableBuffer`]) and reach an epoch as one [`WriteSet`]; a single statement takes
//! the same way. Reads see the newest published snapshot and the transaction's own changes on top. A materialized view
//! that depends on a table which the transaction has changed is answered from its definition.
//!
//! A statement that changes the catalog takes effect at once. It is refused once the transaction has written, because
//! it could not be rolled back together with the writes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::logical_expr::LogicalPlan;
use plan::{RelationId, SqlState};
use planner::catalog::TableInfo;
use planner::{SessionInfo, Statement};
use runtime::state::relation::ScanOptions;

use super::ddl::advice::StatePolicy;
use super::locks::{Held, Mode};
use super::write::{TableBuffer, WriteSet};
use super::{Coordinator, DdlOutcome, DmlResult, QueryRows, ddl, returning};
use crate::catalog::{CatalogVersion, Stored};
use crate::error::ServerError;
use crate::read::Sources;

/// One transaction of one session. Dropping it rolls back.
pub struct Transaction {
    pub(super) coordinator: Arc<Coordinator>,
    read_only: bool,
    block: bool,
    locks: Held,
    pub(super) tables: BTreeMap<RelationId, TableBuffer>,
}

impl Transaction {
    /// Begins. Nothing is locked before the first write.
    pub fn begin(coordinator: Arc<Coordinator>, read_only: bool) -> Self {
        let locks = coordinator.locks.owner();
        Transaction { coordinator, read_only, block: false, locks, tables: BTreeMap::new() }
    }

    /// Declares that several statements will follow: then each of them checks its keys itself, instead of leaving that
    /// to the commit.
    #[must_use]
    pub fn in_block(mut self) -> Self {
        self.block = true;
        self
    }

    /// Whether several statements were announced.
    pub fn is_block(&self) -> bool {
        self.block
    }

    /// The catalog to bind the next statement over.
    pub fn catalog(&self) -> Arc<CatalogVersion> {
        self.coordinator.published().catalog.clone()
    }

    /// Whether something was written.
    pub fn has_writes(&self) -> bool {
        !self.tables.is_empty()
    }

    /// Runs a bound query on the newest snapshot and this transaction's own changes.
    pub async fn query(&mut self, plan: &LogicalPlan, session: &SessionInfo) -> Result<QueryRows, ServerError> {
        let sources = self.sources()?;
        self.coordinator.reader().query(&sources, plan, session).await
    }

    /// TRUNCATE.
    pub async fn truncate(&mut self, tables: &[Arc<TableInfo>]) -> Result<DmlResult, ServerError> {
        for table in tables {
            self.lock(table, Mode::Exclusive, "TRUNCATE").await?;
            refuse_append_only(table, "truncate")?;
            self.buffer(table)?.truncate();
        }
        Ok(DmlResult::default())
    }

    /// Rows of COPY FROM STDIN: all columns of the table, in order, of its types.
    pub async fn copy_rows(&mut self, table: &Arc<TableInfo>, batch: RecordBatch) -> Result<(), ServerError> {
        self.lock(table, Mode::Shared, "COPY FROM").await?;
        let batch = returning::checked(table, &batch)?;
        self.buffer(table)?.insert(batch)
    }

    /// CREATE and DROP of anything. Takes effect at once; refused when the transaction has written.
    pub async fn ddl(
        &mut self,
        statement: &Statement,
        session: &SessionInfo,
        policy: StatePolicy,
    ) -> Result<DdlOutcome, ServerError> {
        if self.read_only {
            return Err(read_only("a statement that changes the catalog"));
        }
        if self.has_writes() {
            return Err(ServerError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "CREATE and DROP after a write in the same transaction are not supported",
            )
            .with_hint("Commit first: these statements take effect at once."));
        }
        ddl::execute(&self.coordinator, statement, session, policy).await
    }

    /// Makes all changes durable and visible in one epoch, or none.
    pub async fn commit(self) -> Result<(), ServerError> {
        let Transaction { coordinator, locks, mut tables, .. } = self;
        tables.retain(|_, buffer| !buffer.is_empty());
        if tables.is_empty() {
            return Ok(());
        }
        let snapshot = coordinator.published().snapshot.clone();
        let mut set = WriteSet::default();
        for buffer in tables.into_values() {
            let mut committed = Vec::new();
            if buffer.truncated() {
                let options = ScanOptions { with_rowid: !buffer.keyed(), ..ScanOptions::default() };
                for scanned in buffer.stored.storage.scan(snapshot.clone(), options) {
                    let scanned = scanned?;
                    committed.push((scanned.batch, scanned.rowids));
                }
            }
            set.tables.push(buffer.prepare(&coordinator.chunks, snapshot.as_ref(), committed)?);
        }
        drop(snapshot);
        coordinator.write(set, locks).await
    }

    /// Drops all changes.
    pub fn rollback(self) {}

    /// The newest snapshot and this transaction's own changes.
    pub(super) fn sources(&self) -> Result<Sources, ServerError> {
        let mut overlays = HashMap::with_capacity(self.tables.len());
        for (relation, buffer) in &self.tables {
            overlays.insert(*relation, Arc::new(buffer.overlay()?));
        }
        Ok(Sources { published: self.coordinator.published(), overlays })
    }

    /// Takes a table's lock for a statement.
    pub(super) async fn lock(
        &mut self,
        table: &Arc<TableInfo>,
        mode: Mode,
        statement: &str,
    ) -> Result<(), ServerError> {
        if self.read_only {
            return Err(read_only(statement));
        }
        self.locks.acquire(table.relation.id, mode).await?;
        self.stored(table).map(drop)
    }

    fn stored(&self, table: &TableInfo) -> Result<Stored, ServerError> {
        self.coordinator.published().catalog.stored(table.relation.id).cloned().ok_or_else(|| {
            let message = format!("relation \"{}\" does not exist", table.relation.name);
            ServerError::new(SqlState::UNDEFINED_TABLE, message)
        })
    }

    /// The buffer of a table's changes.
    pub(super) fn buffer(&mut self, table: &Arc<TableInfo>) -> Result<&mut TableBuffer, ServerError> {
        let relation = table.relation.id;
        if !self.tables.contains_key(&relation) {
            let stored = self.stored(table)?;
            self.tables.insert(relation, TableBuffer::new(table.clone(), stored));
        }
        self.tables.get_mut(&relation).ok_or_else(|| ServerError::internal("a buffer is gone"))
    }
}

/// Refuses changes other than insertions of a table that declared to have none.
pub(super) fn refuse_append_only(table: &TableInfo, what: &str) -> Result<(), ServerError> {
    if !table.relation.append_only {
        return Ok(());
    }
    Err(ServerError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        format!("cannot {what} append-only table \"{}\"", table.relation.name),
    ))
}

fn read_only(statement: &str) -> ServerError {
    ServerError::new(
        SqlState::READ_ONLY_SQL_TRANSACTION,
        format!("cannot execute {statement} in a read-only transaction"),
    )
}
