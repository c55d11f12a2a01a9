//! DataFusion's accumulators over ordered rows.

use std::collections::VecDeque;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::Accumulator;

use super::call::OrderedCall;
use super::external;
use crate::functions::aggregate::codec;

/// Keeps encoded rows and sorts them when the result is asked for.
#[derive(Debug)]
pub struct SortingAccumulator {
    call: OrderedCall,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl SortingAccumulator {
    /// Without rows.
    pub fn new(call: OrderedCall) -> Self {
        SortingAccumulator { call, bytes: Vec::new(), ends: Vec::new() }
    }

    fn push(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
    }

    fn rows(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.ends.len())
            .map(|row| &self.bytes[row.checked_sub(1).map_or(0, |before| self.ends[before])..self.ends[row]])
    }
}

impl Accumulator for SortingAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let nulls = if self.call.layout().keeps_nulls { None } else { values[0].logical_nulls() };
        let mut encoded = self.call.encoder().encode(values).map_err(external)?;
        for row in 0..values[0].len() {
            if nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row)) {
                let bytes = encoded.row(row);
                self.bytes.extend_from_slice(bytes);
                self.ends.push(self.bytes.len());
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let mut rows: Vec<&[u8]> = self.rows().collect();
        rows.sort_unstable();
        let counted = rows.chunk_by(|left, right| left == right).map(|equal| (equal[0], equal.len() as i64));
        self.call.compute(counted).map_err(external)?.map_err(external)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut bytes = Vec::new();
        self.rows().for_each(|row| codec::put_bytes(&mut bytes, row));
        Ok(vec![ScalarValue::Binary(Some(bytes))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let damaged = || DataFusionError::Internal("a partial aggregate cannot be read".to_string());
        for mut rows in states[0].as_binary_opt::<i32>().ok_or_else(damaged)?.iter().flatten() {
            while !rows.is_empty() {
                let row = codec::take_bytes(&mut rows).ok_or_else(damaged)?;
                self.push(row);
            }
        }
        Ok(())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes.capacity() + self.ends.capacity() * size_of::<usize>()
    }
}

/// Keeps rows in the order in which they arrive: for windows.
#[derive(Debug)]
pub struct ArrivalAccumulator {
    call: OrderedCall,
    /// Batches of rows.
    batches: VecDeque<Vec<ArrayRef>>,
    types: Vec<DataType>,
}

impl ArrivalAccumulator {
    /// Without rows.
    pub fn new(call: OrderedCall) -> Self {
        let types = call.layout().fields.iter().map(|field| field.data_type().clone()).collect();
        ArrivalAccumulator { call, batches: VecDeque::new(), types }
    }

    fn columns(&self) -> Result<Vec<ArrayRef>> {
        let column = |position: usize| {
            let parts: Vec<&dyn Array> = self.batches.iter().map(|batch| batch[position].as_ref()).collect();
            if parts.is_empty() {
                return Ok(datafusion::arrow::array::new_empty_array(&self.types[position]));
            }
            Ok(compute::concat(&parts)?)
        };
        (0..self.types.len()).map(column).collect()
    }
}

impl Accumulator for ArrivalAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        if !values[0].is_empty() {
            self.batches.push_back(values.to_vec());
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        // A frame loses the rows that came first.
        let mut gone = values[0].len();
        while let Some(first) = self.batches.front_mut() {
            let rows = first[0].len();
            if rows > gone {
                first.iter_mut().for_each(|column| *column = column.slice(gone, rows - gone));
                break;
            }
            gone -= rows;
            self.batches.pop_front();
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let columns = self.columns()?;
        let nulls =
            columns.first().filter(|_| !self.call.layout().keeps_nulls).map(|column| compute::is_not_null(column));
        let columns = match nulls {
            Some(mask) => {
                let mask = mask?;
                columns.iter().map(|column| compute::filter(column, &mask)).collect::<std::result::Result<_, _>>()?
            }
            None => columns,
        };
        if !self.call.method().sorts && !self.call.is_distinct() {
            return self.call.compute_columns(columns).map_err(external);
        }
        // The order of values is the function's own.
        let mut encoded = self.call.encoder().encode(&columns).map_err(external)?;
        let mut rows: Vec<Vec<u8>> = (0..columns[0].len()).map(|row| encoded.row(row).to_vec()).collect();
        rows.sort_unstable();
        let counted = rows.chunk_by(|left, right| left == right).map(|equal| (&*equal[0], equal.len() as i64));
        self.call.compute(counted).map_err(external)?.map_err(external)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Err(DataFusionError::NotImplemented(format!("partial results of {}()", self.call.method().name)))
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<()> {
        Err(DataFusionError::NotImplemented(format!("partial results of {}()", self.call.method().name)))
    }

    fn size(&self) -> usize {
        let columns = self.batches.iter().flatten();
        size_of_val(self) + columns.map(|column| column.get_array_memory_size()).sum::<usize>()
    }
}
