//! A call over the ordered rows of a group, in execution.

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::ScalarValue;
use plan::PlanError;

use super::rows::RowEncoder;
use super::{Argument, Layout, Method};
use crate::error::Result;

/// A method with its layout over columns of certain types.
#[derive(Debug)]
pub struct OrderedCall {
    method: &'static Method,
    layout: Layout,
    distinct: bool,
    encoder: RowEncoder,
}

/// The rows of a group in order, equal ones together.
#[derive(Debug)]
pub struct GroupRows<'a> {
    layout: &'a Layout,
    columns: Vec<ArrayRef>,
    /// How often each row is there.
    pub counts: Vec<i64>,
    /// Whether a row is equal to the one before it, though it looks different.
    repeats: Vec<bool>,
}

impl OrderedCall {
    /// A call whose columns have these types.
    pub fn new(method: &'static Method, layout: Layout, types: &[DataType], distinct: bool) -> Result<Self> {
        let encoder = RowEncoder::new(types, &layout.order)?;
        Ok(OrderedCall { method, layout, distinct, encoder })
    }

    /// What encodes the rows.
    pub fn encoder(&self) -> &RowEncoder {
        &self.encoder
    }

    /// The method.
    pub fn method(&self) -> &'static Method {
        self.method
    }

    /// What is fixed about the call.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Whether equal rows count once.
    pub fn is_distinct(&self) -> bool {
        self.distinct
    }

    /// The type of the result.
    pub fn result(&self) -> &DataType {
        self.layout.result.data_type()
    }

    /// The result for rows in their order, each with its count.
    pub fn compute<'a>(
        &self,
        rows: impl IntoIterator<Item = (&'a [u8], i64)>,
    ) -> Result<std::result::Result<ScalarValue, PlanError>> {
        let mut previous: Option<&[u8]> = None;
        let mut kept: Vec<&[u8]> = Vec::new();
        let (mut counts, mut repeats) = (Vec::new(), Vec::new());
        for (row, count) in rows {
            let key = Some(self.encoder.key(row));
            let repeated = previous == key;
            previous = key;
            if repeated && self.distinct {
                continue;
            }
            kept.push(row);
            counts.push(if self.distinct { 1 } else { count });
            repeats.push(repeated);
        }
        let columns = self.encoder.decode(kept)?;
        Ok((self.method.compute)(&GroupRows { layout: &self.layout, columns, counts, repeats }))
    }

    /// The result for rows as they arrived, given as columns.
    pub fn compute_columns(&self, columns: Vec<ArrayRef>) -> std::result::Result<ScalarValue, PlanError> {
        let rows = columns.first().map_or(0, |column| column.len());
        let (counts, repeats) = (vec![1; rows], vec![false; rows]);
        (self.method.compute)(&GroupRows { layout: &self.layout, columns, counts, repeats })
    }
}

impl GroupRows<'_> {
    /// How many different rows there are.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// How many rows there are.
    pub fn total(&self) -> i64 {
        self.counts.iter().sum()
    }

    /// Whether a row is equal to the one before it.
    pub fn repeats(&self, row: usize) -> bool {
        self.repeats[row]
    }

    /// The positions of all rows, each as often as it is there.
    pub fn positions(&self) -> impl Iterator<Item = usize> {
        self.counts
            .iter()
            .enumerate()
            .flat_map(|(row, count)| std::iter::repeat_n(row, usize::try_from(*count).unwrap_or(0)))
    }

    /// The values of an argument, if it is a column.
    pub fn column(&self, argument: usize) -> Option<&ArrayRef> {
        match self.layout.arguments.get(argument)? {
            Argument::Column(column) => self.columns.get(*column),
            Argument::Constant(_) => None,
        }
    }

    /// The value of an argument in a row.
    pub fn value(&self, argument: usize, row: usize) -> std::result::Result<ScalarValue, PlanError> {
        match self.layout.arguments.get(argument) {
            Some(Argument::Constant(value)) => Ok(value.clone()),
            Some(Argument::Column(column)) => match self.columns.get(*column) {
                Some(column) => ScalarValue::try_from_array(column, row).map_err(PlanError::internal),
                None => Ok(ScalarValue::Null),
            },
            None => Ok(ScalarValue::Null),
        }
    }

    /// The value of an argument that is the same in all rows.
    pub fn direct(&self, argument: usize) -> std::result::Result<ScalarValue, PlanError> {
        if self.is_empty() && matches!(self.layout.arguments.get(argument), Some(Argument::Column(_))) {
            return Ok(ScalarValue::Null);
        }
        self.value(argument, 0)
    }

    /// The type of an argument.
    pub fn field(&self, argument: usize) -> &FieldRef {
        &self.layout.fields[argument]
    }

    /// The type of the result.
    pub fn result(&self) -> &DataType {
        self.layout.result.data_type()
    }

    /// A NULL of the result's type.
    pub fn null(&self) -> std::result::Result<ScalarValue, PlanError> {
        ScalarValue::try_from(self.result()).map_err(PlanError::internal)
    }

    /// The row that is at a rank, counted from 0 and with counts.
    pub fn row_at(&self, rank: i64) -> Option<usize> {
        let mut before = 0;
        self.counts.iter().position(|count| {
            before += count;
            before > rank
        })
    }
}
