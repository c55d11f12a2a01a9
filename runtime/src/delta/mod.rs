//! A delta: rows with multiplicities.
//!
//! A relation is a Z-set: a function from rows to integer weights. A [`Delta`] is a finite Z-set in
//! columnar form: an Arrow batch, and for each of its rows a weight. The same row may stand in it several
//! times; its weight is the sum. An update is the old row with weight -1 and the new row with weight +1.

use datafusion::arrow::array::{Array, BooleanArray, Int64Array, UInt32Array};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;

use crate::error::Result;

pub mod consolidate;
pub mod key;
pub mod literal;
pub mod rows;

pub use consolidate::{concat, consolidate, consolidate_all};

/// Rows with multiplicities.
#[derive(Debug, Clone)]
pub struct Delta {
    batch: RecordBatch,
    /// One weight a row; none means that every row has weight +1 (the append-only fast path).
    weights: Option<Int64Array>,
}

impl Delta {
    /// Rows that are added once each.
    pub fn insert(batch: RecordBatch) -> Self {
        Delta { batch, weights: None }
    }

    /// Rows that are removed once each.
    pub fn delete(batch: RecordBatch) -> Self {
        let weights = Int64Array::from_value(-1, batch.num_rows());
        Delta { batch, weights: Some(weights) }
    }

    /// Rows with a weight each.
    ///
    /// # Panics
    /// If there are not as many weights as rows, or a weight is NULL: a defect of the caller.
    pub fn new(batch: RecordBatch, weights: Option<Int64Array>) -> Self {
        if let Some(weights) = &weights {
            assert_eq!(weights.len(), batch.num_rows(), "one weight a row");
            assert_eq!(weights.null_count(), 0, "weights are never NULL");
        }
        Delta { batch, weights }
    }

    /// No rows.
    pub fn empty(schema: SchemaRef) -> Self {
        Delta { batch: RecordBatch::new_empty(schema), weights: None }
    }

    /// The rows.
    pub fn batch(&self) -> &RecordBatch {
        &self.batch
    }

    /// The weights, or none if all are +1.
    pub fn weights(&self) -> Option<&Int64Array> {
        self.weights.as_ref()
    }

    /// The weight of a row.
    pub fn weight(&self, row: usize) -> i64 {
        self.weights.as_ref().map_or(1, |weights| weights.value(row))
    }

    /// How many rows, not counting multiplicities.
    pub fn len(&self) -> usize {
        self.batch.num_rows()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        self.batch.schema()
    }

    /// Bytes of memory that the arrays refer to.
    pub fn memory_size(&self) -> usize {
        self.batch.get_array_memory_size() + self.weights.as_ref().map_or(0, |w| w.get_array_memory_size())
    }

    /// The same weights over other columns of the same length.
    pub fn with_batch(&self, batch: RecordBatch) -> Self {
        Delta::new(batch, self.weights.clone())
    }

    /// Every weight negated.
    pub fn negate(&self) -> Self {
        let weights = Int64Array::from_iter_values((0..self.len()).map(|row| -self.weight(row)));
        Delta { batch: self.batch.clone(), weights: Some(weights) }
    }

    /// The rows for which the mask is true.
    pub fn filter(&self, mask: &BooleanArray) -> Result<Self> {
        let batch = compute::filter_record_batch(&self.batch, mask)?;
        let weights = match &self.weights {
            None => None,
            Some(weights) => {
                Some(compute::filter(weights, mask)?.as_any().downcast_ref::<Int64Array>().cloned()).flatten()
            }
        };
        Ok(Delta { batch, weights })
    }

    /// The rows at the given positions.
    pub fn take(&self, rows: &UInt32Array) -> Result<Self> {
        let batch = consolidate::take_rows(&self.batch, rows)?;
        let weights = self
            .weights
            .as_ref()
            .map(|weights| Int64Array::from_iter_values(rows.values().iter().map(|row| weights.value(*row as usize))));
        Ok(Delta { batch, weights })
    }

    /// A part of the rows, without copying.
    pub fn slice(&self, offset: usize, length: usize) -> Self {
        Delta {
            batch: self.batch.slice(offset, length),
            weights: self.weights.as_ref().map(|weights| weights.slice(offset, length)),
        }
    }
}
