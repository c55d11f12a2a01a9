//! A stored relation at one snapshot as a DataFusion table: projection, key equality and limit pushed into the scan.
//!
//! Rows of a table in a transaction that has changed it are the committed rows without those that it deleted, and
//! then its own rows ([`Overlay`]).

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, BooleanArray, Int64Array};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::ScalarValue;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, Operator, TableProviderFilterPushDown, TableType};
use datafusion::physical_expr::{EquivalenceProperties, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, ReplaceChildrenOptions,
};
use plan::Layout;
use runtime::state::Snapshot;
use runtime::state::relation::{RelationScan, ScanOptions};

use crate::catalog::Stored;
use crate::error::ServerError;

/// Rows that a scan returns at once.
const BATCH_ROWS: usize = 8192;

/// What a transaction changed in a table, as its own reads see it.
#[derive(Debug, Default)]
pub struct Overlay {
    /// All committed rows are deleted.
    pub truncated: bool,
    /// Deleted committed rows of a table with a key: their store keys.
    pub deleted_keys: Arc<HashSet<Bytes>>,
    /// Deleted committed rows of a table without a key: their numbers.
    pub deleted_rowids: Arc<HashSet<i64>>,
    /// Own rows, with all columns.
    pub own: Vec<RecordBatch>,
    /// Numbers of own rows: negative, so that they differ from committed ones.
    pub own_rowids: Vec<Int64Array>,
}

impl Overlay {
    fn hides_rows(&self) -> bool {
        !self.deleted_keys.is_empty() || !self.deleted_rowids.is_empty()
    }
}

/// A relation at a snapshot.
pub struct SnapshotTable {
    stored: Stored,
    snapshot: Arc<dyn Snapshot>,
    overlay: Option<Arc<Overlay>>,
    with_rowid: bool,
    schema: SchemaRef,
}

impl fmt::Debug for SnapshotTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SnapshotTable({})", self.stored.relation.name)
    }
}

impl SnapshotTable {
    /// A relation at a snapshot, with a transaction's own changes; `schema` is that of the source that it stands for.
    pub fn new(
        stored: Stored,
        snapshot: Arc<dyn Snapshot>,
        overlay: Option<Arc<Overlay>>,
        with_rowid: bool,
        schema: SchemaRef,
    ) -> Self {
        SnapshotTable { stored, snapshot, overlay, with_rowid, schema }
    }

    /// The values of the whole key, if the filters fix them all.
    fn key_equals(&self, filters: &[Expr]) -> Option<Vec<ScalarValue>> {
        let Layout::Keyed(key) = &self.stored.relation.layout else { return None };
        if key.is_empty() {
            return None;
        }
        let fields = self.stored.relation.schema.fields();
        key.iter()
            .map(|column| {
                let field = &fields[*column];
                filters.iter().find_map(|filter| equal_to(filter, field.name(), field.data_type()))
            })
            .collect()
    }
}

/// The value to which a filter fixes a column, if it is `column = literal` of the same type.
fn equal_to(filter: &Expr, name: &str, data_type: &datafusion::arrow::datatypes::DataType) -> Option<ScalarValue> {
    let Expr::BinaryExpr(binary) = filter else { return None };
    match binary.op {
        Operator::And => equal_to(&binary.left, name, data_type).or_else(|| equal_to(&binary.right, name, data_type)),
        Operator::Eq => match (binary.left.as_ref(), binary.right.as_ref()) {
            (Expr::Column(column), Expr::Literal(value, _)) | (Expr::Literal(value, _), Expr::Column(column))
                if column.name == name && value.data_type() == *data_type && !value.is_null() =>
            {
                Some(value.clone())
            }
            _ => None,
        },
        _ => None,
    }
}

#[async_trait]
impl TableProvider for SnapshotTable {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    async fn scan(
        &self,
        _state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(projection) => Arc::new(self.schema.project(projection)?),
            None => self.schema.clone(),
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Arc::new(SnapshotScan {
            stored: self.stored.clone(),
            snapshot: self.snapshot.clone(),
            overlay: self.overlay.clone(),
            with_rowid: self.with_rowid,
            projection: projection.cloned(),
            key_equals: self.key_equals(filters),
            // A filter may stand above: the limit counts only when none does.
            limit: if filters.is_empty() { limit } else { None },
            schema,
            properties: Arc::new(properties),
        }))
    }
}

/// The scan in a physical plan.
struct SnapshotScan {
    stored: Stored,
    snapshot: Arc<dyn Snapshot>,
    overlay: Option<Arc<Overlay>>,
    with_rowid: bool,
    projection: Option<Vec<usize>>,
    key_equals: Option<Vec<ScalarValue>>,
    limit: Option<usize>,
    schema: SchemaRef,
    properties: Arc<PlanProperties>,
}

impl fmt::Debug for SnapshotScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SnapshotScan({})", self.stored.relation.name)
    }
}

impl DisplayAs for SnapshotScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "SnapshotScan: {}", self.stored.relation.name)?;
        if self.key_equals.is_some() {
            write!(f, ", by key")?;
        }
        if let Some(limit) = self.limit {
            write!(f, ", limit {limit}")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for SnapshotScan {
    fn name(&self) -> &'static str {
        "SnapshotScan"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        Vec::new()
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
        _: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn with_new_children(self: Arc<Self>, _: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _partition: usize, _context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let rows = Rows::new(self);
        // Blocking reads happen in the poll itself; after each batch other tasks of the thread get a turn.
        let stream = futures::stream::unfold((rows, false), |(mut rows, started)| async move {
            if started {
                tokio::task::yield_now().await;
            }
            rows.next().map(|batch| (batch, (rows, true)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), stream)))
    }
}

/// The rows of a scan, batch by batch.
struct Rows {
    scan: Option<RelationScan>,
    stored: Stored,
    overlay: Option<Arc<Overlay>>,
    /// Next of the overlay's own batches.
    own: usize,
    with_rowid: bool,
    /// Columns of the relation that the scan returns.
    scanned: Vec<usize>,
    /// Columns of a scanned batch (with `$rowid` first, if there is one) that are the output.
    output: Vec<usize>,
    /// Columns of the relation with `$rowid` first that are the output.
    projection: Option<Vec<usize>>,
    limit: Option<usize>,
    schema: SchemaRef,
}

impl Rows {
    fn new(scan: &SnapshotScan) -> Rows {
        let shift = usize::from(scan.with_rowid);
        let all = scan.stored.relation.schema.fields().len() + shift;
        let wanted: Vec<usize> = scan.projection.clone().unwrap_or_else(|| (0..all).collect());
        let mut scanned: Vec<usize> = wanted.iter().filter(|column| **column >= shift).map(|c| c - shift).collect();
        let hides = scan.overlay.as_ref().is_some_and(|overlay| overlay.hides_rows());
        if hides && let Layout::Keyed(key) = &scan.stored.relation.layout {
            scanned.extend(key.iter().copied());
        }
        scanned.sort_unstable();
        scanned.dedup();
        let output = wanted
            .iter()
            .map(|column| match column.checked_sub(shift) {
                None => 0,
                Some(column) => scanned.partition_point(|c| *c < column) + shift,
            })
            .collect();
        let truncated = scan.overlay.as_ref().is_some_and(|overlay| overlay.truncated);
        let options = ScanOptions {
            projection: Some(scanned.clone()),
            batch_rows: scan.limit.map_or(BATCH_ROWS, |limit| limit.clamp(1, BATCH_ROWS)),
            with_rowid: scan.with_rowid || (hides && scan.stored.relation.layout == Layout::RowId),
            key_equals: scan.key_equals.clone(),
            ..ScanOptions::default()
        };
        Rows {
            scan: (!truncated).then(|| scan.stored.storage.scan(scan.snapshot.clone(), options)),
            stored: scan.stored.clone(),
            overlay: scan.overlay.clone(),
            own: 0,
            with_rowid: scan.with_rowid,
            scanned,
            output,
            projection: scan.projection.clone(),
            limit: scan.limit,
            schema: scan.schema.clone(),
        }
    }

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        loop {
            if self.limit == Some(0) {
                return None;
            }
            let batch = match self.next_unlimited()? {
                Ok(batch) => batch,
                Err(error) => {
                    self.limit = Some(0);
                    return Some(Err(DataFusionError::External(Box::new(error))));
                }
            };
            if batch.num_rows() == 0 {
                continue;
            }
            let Some(limit) = &mut self.limit else { return Some(Ok(batch)) };
            let taken = batch.num_rows().min(*limit);
            *limit -= taken;
            return Some(Ok(batch.slice(0, taken)));
        }
    }

    fn next_unlimited(&mut self) -> Option<Result<RecordBatch, ServerError>> {
        if let Some(scan) = &mut self.scan {
            match scan.next() {
                Some(Ok(scanned)) => return Some(self.committed(scanned.batch, scanned.rowids)),
                Some(Err(error)) => return Some(Err(error.into())),
                None => self.scan = None,
            }
        }
        let overlay = self.overlay.clone()?;
        let (rows, rowids) = (overlay.own.get(self.own)?, overlay.own_rowids.get(self.own)?);
        self.own += 1;
        let columns: Vec<ArrayRef> = if self.with_rowid {
            std::iter::once(Arc::new(rowids.clone()) as ArrayRef).chain(rows.columns().iter().cloned()).collect()
        } else {
            rows.columns().to_vec()
        };
        let columns = match &self.projection {
            Some(projection) => projection.iter().map(|column| columns[*column].clone()).collect(),
            None => columns,
        };
        Some(self.batch(columns, rows.num_rows()))
    }

    /// A scanned batch without what the transaction deleted, in the output's columns.
    fn committed(&self, batch: RecordBatch, rowids: Option<Int64Array>) -> Result<RecordBatch, ServerError> {
        let mask = match &self.overlay {
            Some(overlay) if overlay.hides_rows() => Some(self.visible(overlay, &batch, rowids.as_ref())?),
            _ => None,
        };
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(batch.num_columns() + 1);
        if self.with_rowid {
            let rowids = rowids.unwrap_or_else(|| Int64Array::from_value(0, batch.num_rows()));
            columns.push(Arc::new(rowids));
        }
        columns.extend(batch.columns().iter().cloned());
        let columns: Vec<ArrayRef> = self.output.iter().map(|column| columns[*column].clone()).collect();
        match mask {
            None => self.batch(columns, batch.num_rows()),
            Some(mask) => {
                let rows = mask.true_count();
                let columns: Result<Vec<ArrayRef>, _> =
                    columns.iter().map(|column| compute::filter(column, &mask)).collect();
                self.batch(columns?, rows)
            }
        }
    }

    fn visible(
        &self,
        overlay: &Overlay,
        batch: &RecordBatch,
        rowids: Option<&Int64Array>,
    ) -> Result<BooleanArray, ServerError> {
        if let Some(rowids) = rowids.filter(|_| self.stored.relation.layout == Layout::RowId) {
            return Ok(rowids.values().iter().map(|rowid| Some(!overlay.deleted_rowids.contains(rowid))).collect());
        }
        let keys = self.stored.storage.keys(&self.widened(batch)?, None)?;
        Ok(keys.iter().map(|key| Some(!overlay.deleted_keys.contains(key))).collect())
    }

    /// A batch with all columns of the relation, of which those that were not scanned are NULL: enough to encode keys.
    fn widened(&self, batch: &RecordBatch) -> Result<RecordBatch, ServerError> {
        use datafusion::arrow::datatypes::{Field, Schema};
        let fields = self.stored.relation.schema.fields();
        let columns = fields
            .iter()
            .enumerate()
            .map(|(position, field)| match self.scanned.binary_search(&position) {
                Ok(scanned) => batch.column(scanned).clone(),
                Err(_) => datafusion::arrow::array::new_null_array(field.data_type(), batch.num_rows()),
            })
            .collect();
        let nullable: Vec<Field> = fields.iter().map(|field| field.as_ref().clone().with_nullable(true)).collect();
        Ok(RecordBatch::try_new(Arc::new(Schema::new(nullable)), columns)?)
    }

    fn batch(&self, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch, ServerError> {
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}
