//! Stored relations as the planner and the runtime see them.

use std::any::Any;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableSource};

use crate::bounds::Growth;

/// The identity of a stored relation; also the first state table that it occupies. Never used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub struct RelationId(pub u32);

/// What a relation is to its users.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum RelationKind {
    /// Written by clients.
    Table,
    /// Written by a dataflow.
    MaterializedView,
    /// The failed rows of a materialized view, `"<view>$errors"`.
    Errors,
}

/// How rows become keys and values in the store.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Layout {
    /// One entry a row, under its unique key (a table with a primary key, a view with a known key).
    Keyed(Vec<usize>),
    /// Rows numbered as they arrive, stored in columnar chunks (a table without a key).
    RowId,
    /// One entry for each distinct row, with the number of its copies (a view without a known key).
    Multiset,
}

/// A stored relation: a table, the rows of a materialized view, or its failed rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relation {
    /// Identity; the state table of the rows.
    pub id: RelationId,
    /// Schema-qualified name as users write it, for messages and EXPLAIN.
    pub name: String,
    /// What it is.
    pub kind: RelationKind,
    /// Columns; the fields' metadata carries the Postgres type where Arrow's is not enough.
    pub schema: SchemaRef,
    /// How it is stored.
    pub layout: Layout,
    /// Rows are only ever added.
    pub append_only: bool,
    /// How much it may come to hold.
    pub growth: Growth,
    /// Event-time columns with a watermark.
    pub watermarks: Vec<usize>,
}

impl Relation {
    /// The name as PostgreSQL's EXPLAIN shows it: without the schema. A dot within quotes is part of a name.
    pub fn unqualified_name(&self) -> &str {
        let mut quoted = false;
        let dot = self.name.bytes().rposition(|byte| {
            quoted ^= byte == b'"';
            byte == b'.' && !quoted
        });
        dot.map_or(&self.name, |dot| &self.name[dot + 1..])
    }
}

/// Name of the hidden first column that scans of an UPDATE's or DELETE's target carry: the row number
/// of a [`Layout::RowId`] table, 0 for other layouts.
pub const ROWID_COLUMN: &str = "$rowid";

/// A relation in a logical plan. It has no data: at execution, scans of it are bound to a snapshot (ad-hoc
/// queries) or become imports (dataflows).
#[derive(Debug, Clone)]
pub struct RelationSource {
    /// The relation.
    pub relation: Arc<Relation>,
    /// Whether scans begin with [`ROWID_COLUMN`].
    pub with_rowid: bool,
    schema: SchemaRef,
}

impl RelationSource {
    /// The relation as queries see it.
    pub fn new(relation: Arc<Relation>) -> Self {
        let schema = relation.schema.clone();
        RelationSource { relation, with_rowid: false, schema }
    }

    /// The relation as the target of an UPDATE or DELETE, with its row numbers.
    pub fn with_rowid(relation: Arc<Relation>) -> Self {
        use datafusion::arrow::datatypes::{DataType, Field, Schema};
        let mut fields = vec![Arc::new(Field::new(ROWID_COLUMN, DataType::Int64, false))];
        fields.extend(relation.schema.fields().iter().cloned());
        let schema = Arc::new(Schema::new(fields));
        RelationSource { relation, with_rowid: true, schema }
    }

    /// The relation behind a table source, if it is one of ours.
    pub fn of(source: &dyn TableSource) -> Option<&RelationSource> {
        (source as &dyn Any).downcast_ref::<RelationSource>()
    }
}

impl TableSource for RelationSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> datafusion::error::Result<Vec<TableProviderFilterPushDown>> {
        // The scan uses what it can for skipping; the filter above it stays and decides.
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }
}
