//! Rows by their whole key, without optimizing and physical planning: `SELECT a, b FROM r WHERE key = value`.
//!
//! The shape is recognised in the bound plan: columns (maybe renamed) of a scan of one keyed relation, under equalities
//! that fix every key column and nothing else. Everything else goes the usual way, with the same result.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, LogicalPlan, Operator, TableScan};
use plan::{Layout, RelationSource};
use runtime::state::Snapshot;
use runtime::state::relation::ScanOptions;

use crate::catalog::{CatalogVersion, Stored};
use crate::error::ServerError;

/// A recognised look-up.
pub struct Lookup {
    stored: Stored,
    key: Vec<ScalarValue>,
    /// Columns to read, ascending.
    read: Vec<usize>,
    /// For each output column its position among those read.
    output: Vec<usize>,
    schema: SchemaRef,
}

impl Lookup {
    /// The look-up that a bound plan is, if it is one.
    pub fn recognise(plan: &LogicalPlan, catalog: &CatalogVersion) -> Option<Lookup> {
        let LogicalPlan::Projection(projection) = plan else { return None };
        let LogicalPlan::Filter(filter) = projection.input.as_ref() else { return None };
        let scan = scan_below(&filter.input)?;
        let source = RelationSource::of(scan.source.as_ref())?;
        let Layout::Keyed(key) = &source.relation.layout else { return None };
        if source.with_rowid || scan.projection.is_some() || !scan.filters.is_empty() || key.is_empty() {
            return None;
        }
        let position = |expr: &Expr| match unaliased(expr) {
            Expr::Column(column) => filter.input.schema().index_of_column(column).ok(),
            _ => None,
        };
        let wanted: Vec<usize> = projection.expr.iter().map(position).collect::<Option<_>>()?;
        let mut equal = Vec::new();
        equalities(&filter.predicate, &mut equal)?;
        if equal.len() != key.len() {
            return None;
        }
        let fields = source.relation.schema.fields();
        let value_of = |column: &usize| {
            let (_, value) = equal.iter().find(|(expr, _)| position(expr) == Some(*column))?;
            exactly(value, fields.get(*column)?.data_type())
        };
        let values: Vec<ScalarValue> = key.iter().map(value_of).collect::<Option<_>>()?;
        let mut read = wanted.clone();
        read.sort_unstable();
        read.dedup();
        Some(Lookup {
            stored: catalog.stored(source.relation.id)?.clone(),
            key: values,
            output: wanted.iter().map(|column| read.partition_point(|other| other < column)).collect(),
            read,
            schema: Arc::new(plan.schema().as_arrow().clone()),
        })
    }

    /// Columns of the result.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// The row, if there is one.
    pub fn run(&self, snapshot: Arc<dyn Snapshot>) -> Result<Vec<RecordBatch>, ServerError> {
        let options = ScanOptions {
            projection: Some(self.read.clone()),
            key_equals: Some(self.key.clone()),
            ..ScanOptions::default()
        };
        self.stored
            .storage
            .scan(snapshot, options)
            .map(|scanned| {
                let batch = scanned?.batch;
                let columns: Vec<ArrayRef> = self.output.iter().map(|column| batch.column(*column).clone()).collect();
                let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
                Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
            })
            .collect()
    }
}

fn scan_below(plan: &LogicalPlan) -> Option<&TableScan> {
    match plan {
        LogicalPlan::TableScan(scan) => Some(scan),
        LogicalPlan::SubqueryAlias(alias) => scan_below(&alias.input),
        _ => None,
    }
}

fn unaliased(expr: &Expr) -> &Expr {
    if let Expr::Alias(alias) = expr { unaliased(&alias.expr) } else { expr }
}

/// All conjuncts, if each is `column = literal`.
fn equalities<'a>(predicate: &'a Expr, found: &mut Vec<(&'a Expr, &'a ScalarValue)>) -> Option<()> {
    let Expr::BinaryExpr(binary) = predicate else { return None };
    match (binary.op, binary.left.as_ref(), binary.right.as_ref()) {
        (Operator::And, left, right) => {
            equalities(left, found)?;
            equalities(right, found)
        }
        (Operator::Eq, column @ Expr::Column(_), Expr::Literal(value, _))
        | (Operator::Eq, Expr::Literal(value, _), column @ Expr::Column(_)) => {
            found.push((column, value));
            Some(())
        }
        _ => None,
    }
}

/// The value in the column's type, if comparing in that type is what SQL would do: the same type, or another integer
/// type in which the value is the same.
fn exactly(value: &ScalarValue, wanted: &DataType) -> Option<ScalarValue> {
    if value.is_null() {
        return None;
    }
    if value.data_type() == *wanted {
        return Some(value.clone());
    }
    if !(value.data_type().is_integer() && wanted.is_integer()) {
        return None;
    }
    let cast = value.cast_to(wanted).ok()?;
    (cast.cast_to(&value.data_type()).ok()? == *value && !cast.is_null()).then_some(cast)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_values_are_looked_up() {
        let int8 = ScalarValue::Int64(Some(7));
        assert_eq!(exactly(&int8, &DataType::Int32), Some(ScalarValue::Int32(Some(7))));
        assert_eq!(exactly(&ScalarValue::Int64(Some(1 << 40)), &DataType::Int32), None);
        assert_eq!(exactly(&ScalarValue::Float64(Some(7.0)), &DataType::Int32), None);
        assert_eq!(exactly(&ScalarValue::Int64(None), &DataType::Int64), None);
    }
}
