//! DataFusion's accumulators over states that are sums.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BinaryArray, BinaryBuilder, BooleanArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::{Accumulator, EmitTo, GroupsAccumulator};

use super::codec;
use super::grouped::Rows;
use super::interner::Interner;
use super::invertible::{GroupedStates, Invertible, grouped_states};
use crate::delta::key::KeyEncoder;

/// What is computed: the function over values of a type.
#[derive(Debug, Clone)]
pub struct Computation {
    /// The aggregate.
    pub aggregate: Invertible,
    /// Types of the values.
    pub arguments: Vec<DataType>,
    /// Type of the result.
    pub result: DataType,
}

impl Computation {
    fn states(&self) -> Result<Box<dyn GroupedStates>> {
        grouped_states(self.aggregate.family(), &self.arguments).ok_or_else(|| {
            DataFusionError::Internal(format!("{} over {:?} was planned", self.aggregate.name(), self.arguments))
        })
    }

    /// The result of the first so many groups; an error of one is an error of all.
    fn finish(&self, sums: &dyn GroupedStates, groups: usize) -> Result<ArrayRef> {
        let mut results = sums.finish(self.aggregate, groups, &self.result);
        match results.errors.pop() {
            Some((_, error)) => Err(DataFusionError::External(Box::new(error))),
            None => Ok(results.values),
        }
    }
}

fn damaged() -> DataFusionError {
    DataFusionError::Internal("a partial aggregate cannot be read".to_string())
}

fn binary(array: &ArrayRef) -> Result<&BinaryArray> {
    array.as_binary_opt().ok_or_else(damaged)
}

/// Of one group.
#[derive(Debug)]
pub struct SumAccumulator {
    computation: Computation,
    sums: Box<dyn GroupedStates>,
    groups: Vec<usize>,
    weights: Vec<i64>,
}

impl SumAccumulator {
    /// Without values.
    pub fn new(computation: Computation) -> Result<Self> {
        let mut sums = computation.states()?;
        sums.resize(1);
        Ok(SumAccumulator { computation, sums, groups: Vec::new(), weights: Vec::new() })
    }

    fn add(&mut self, values: &[ArrayRef], weight: i64) {
        self.groups.resize(values[0].len(), 0);
        let weights = if weight == 1 {
            None
        } else {
            self.weights.clear();
            self.weights.resize(values[0].len(), weight);
            Some(self.weights.as_slice())
        };
        self.sums.add(values, Rows { groups: &self.groups, weights, filter: None });
    }
}

impl Accumulator for SumAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(values, 1);
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(values, -1);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let result = self.computation.finish(self.sums.as_ref(), 1)?;
        ScalarValue::try_from_array(&result, 0)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let mut bytes = Vec::new();
        self.sums.encode(0, &mut bytes);
        Ok(vec![ScalarValue::Binary(Some(bytes))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for mut bytes in binary(&states[0])?.iter().flatten() {
            if !self.sums.merge_encoded(0, &mut bytes) {
                return Err(damaged());
            }
        }
        Ok(())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.sums.memory_size() + 8 * (self.groups.capacity() + self.weights.capacity())
    }
}

/// Of the different values of one group.
#[derive(Debug)]
pub struct DistinctSumAccumulator {
    sum: SumAccumulator,
    encoder: KeyEncoder,
    values: Interner,
    /// How often each value is there.
    counts: Vec<i64>,
}

impl DistinctSumAccumulator {
    /// Without values.
    pub fn new(computation: Computation) -> Result<Self> {
        let encoder =
            KeyEncoder::new(&computation.arguments).map_err(|error| DataFusionError::External(Box::new(error)))?;
        let sum = SumAccumulator::new(computation)?;
        Ok(DistinctSumAccumulator { sum, encoder, values: Interner::default(), counts: Vec::new() })
    }

    fn add(&mut self, values: &[ArrayRef], weight: i64) -> Result<()> {
        let keys = self.encoder.encode(values).map_err(|error| DataFusionError::External(Box::new(error)))?;
        let nulls = values.iter().fold(None, |nulls: Option<NullBuffer>, column| {
            NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref())
        });
        let changed: BooleanArray = (0..keys.len())
            .map(|row| {
                if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                    return Some(false);
                }
                let number = self.values.intern(keys.row(row));
                if number == self.counts.len() {
                    self.counts.push(0);
                }
                let before = self.counts[number];
                self.counts[number] += weight;
                Some((before > 0) != (self.counts[number] > 0))
            })
            .collect();
        let changed: Vec<ArrayRef> = values
            .iter()
            .map(|column| datafusion::arrow::compute::filter(column, &changed))
            .collect::<std::result::Result<_, _>>()?;
        self.sum.add(&changed, weight);
        Ok(())
    }
}

impl Accumulator for DistinctSumAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(values, 1)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(values, -1)
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.sum.evaluate()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let present = (0..self.values.len()).filter(|number| self.counts[*number] > 0);
        let mut bytes = Vec::new();
        present.for_each(|number| codec::put_bytes(&mut bytes, self.values.get(number)));
        Ok(vec![ScalarValue::Binary(Some(bytes))])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for mut keys in binary(&states[0])?.iter().flatten() {
            let mut rows = Vec::new();
            while !keys.is_empty() {
                rows.push(codec::take_bytes(&mut keys).ok_or_else(damaged)?);
            }
            let columns = self.encoder.decode(rows).map_err(|error| DataFusionError::External(Box::new(error)))?;
            self.add(&columns, 1)?;
        }
        Ok(())
    }

    fn size(&self) -> usize {
        self.sum.size() + self.values.memory_size() + 8 * self.counts.capacity()
    }
}

/// Of many groups.
#[derive(Debug)]
pub struct GroupedSumAccumulator {
    computation: Computation,
    sums: Box<dyn GroupedStates>,
    groups: usize,
}

impl GroupedSumAccumulator {
    /// Without groups.
    pub fn new(computation: Computation) -> Result<Self> {
        let sums = computation.states()?;
        Ok(GroupedSumAccumulator { computation, sums, groups: 0 })
    }

    fn resize(&mut self, groups: usize) {
        self.groups = groups;
        self.sums.resize(groups);
    }

    /// How many groups are asked for.
    fn count(&self, emit: EmitTo) -> usize {
        match emit {
            EmitTo::All => self.groups,
            EmitTo::First(count) => count,
        }
    }

    fn remove(&mut self, count: usize) {
        self.sums.remove_first(count);
        self.groups -= count;
    }
}

impl GroupsAccumulator for GroupedSumAccumulator {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.resize(total);
        self.sums.add(values, Rows { groups, weights: None, filter });
        Ok(())
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let count = self.count(emit);
        let result = self.computation.finish(self.sums.as_ref(), count)?;
        self.remove(count);
        Ok(result)
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        let count = self.count(emit);
        let mut builder = BinaryBuilder::new();
        let mut bytes = Vec::new();
        for group in 0..count {
            bytes.clear();
            self.sums.encode(group, &mut bytes);
            builder.append_value(&bytes);
        }
        self.remove(count);
        Ok(vec![Arc::new(builder.finish())])
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.resize(total);
        for (group, bytes) in groups.iter().zip(binary(&states[0])?) {
            let Some(mut bytes) = bytes else { continue };
            if !self.sums.merge_encoded(*group, &mut bytes) {
                return Err(damaged());
            }
        }
        Ok(())
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let mut rows = GroupedSumAccumulator::new(self.computation.clone())?;
        let groups: Vec<usize> = (0..values[0].len()).collect();
        rows.update_batch(values, &groups, filter, groups.len())?;
        rows.state(EmitTo::All)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.sums.memory_size()
    }
}
