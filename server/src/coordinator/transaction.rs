//! A transaction: its reads, its buffered changes, and their commit in one epoch.

use std::sync::Arc;

use datafusion::arrow::record_batch::RecordBatch;
use datafusion::logical_expr::LogicalPlan;
use plan::PlanError;
use planner::SessionInfo;
use planner::Statement;
use planner::catalog::TableInfo;
use planner::statement::{Delete, Insert, Update};

use super::{Coordinator, DdlOutcome, DmlResult, QueryRows};
use crate::catalog::CatalogVersion;
use crate::error::ServerError;

/// One transaction of one session. Dropping it rolls back.
pub struct Transaction {
    coordinator: Arc<Coordinator>,
    read_only: bool,
}

impl Transaction {
    /// Begins. Nothing is locked before the first write.
    pub fn begin(coordinator: Arc<Coordinator>, read_only: bool) -> Self {
        Transaction { coordinator, read_only }
    }

    /// The catalog to bind the next statement over.
    pub fn catalog(&self) -> Arc<CatalogVersion> {
        self.coordinator.published().catalog.clone()
    }

    /// Whether something was written.
    pub fn has_writes(&self) -> bool {
        self.read_only
    }

    /// Runs a bound query on the newest snapshot and this transaction's own changes.
    pub async fn query(&mut self, _plan: &LogicalPlan, _session: &SessionInfo) -> Result<QueryRows, ServerError> {
        Err(PlanError::unsupported("a query").into())
    }

    /// INSERT.
    pub async fn insert(&mut self, _insert: &Insert, _session: &SessionInfo) -> Result<DmlResult, ServerError> {
        Err(PlanError::unsupported("INSERT").into())
    }

    /// UPDATE.
    pub async fn update(&mut self, _update: &Update, _session: &SessionInfo) -> Result<DmlResult, ServerError> {
        Err(PlanError::unsupported("UPDATE").into())
    }

    /// DELETE.
    pub async fn delete(&mut self, _delete: &Delete, _session: &SessionInfo) -> Result<DmlResult, ServerError> {
        Err(PlanError::unsupported("DELETE").into())
    }

    /// TRUNCATE.
    pub async fn truncate(&mut self, _tables: &[Arc<TableInfo>]) -> Result<DmlResult, ServerError> {
        Err(PlanError::unsupported("TRUNCATE").into())
    }

    /// Rows of COPY FROM STDIN: all columns of the table, in order, of its types.
    pub async fn copy_rows(&mut self, _table: &Arc<TableInfo>, _batch: RecordBatch) -> Result<(), ServerError> {
        Err(PlanError::unsupported("COPY").into())
    }

    /// CREATE and DROP of anything. Takes effect at once; refused when the transaction has written.
    pub async fn ddl(&mut self, _statement: &Statement, _session: &SessionInfo) -> Result<DdlOutcome, ServerError> {
        Err(PlanError::unsupported("DDL").into())
    }

    /// Makes all changes durable and visible in one epoch, or none.
    pub async fn commit(self) -> Result<(), ServerError> {
        Ok(())
    }

    /// Drops all changes.
    pub fn rollback(self) {}
}
