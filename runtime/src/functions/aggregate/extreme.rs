//! `min` and `max`: DataFusion's, except over floating-point numbers and intervals, which PostgreSQL orders otherwise.

use std::cmp::Ordering;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use datafusion::arrow::datatypes::{DataType, Field, Float32Type, Float64Type, Schema};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::functions_aggregate::min_max::{Max, Min};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, Documentation, EmitTo, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
    StatisticsArgs,
};

use super::grouped::Rows;
use crate::delta::key::{KeyEncoder, has_equal_forms};
use crate::delta::rows::RowCodec;

/// `min` or `max`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct ExtremeFunction {
    greatest: bool,
    least_of_others: Min,
    greatest_of_others: Max,
}

impl ExtremeFunction {
    /// `min`.
    pub fn least() -> Self {
        ExtremeFunction { greatest: false, least_of_others: Min::new(), greatest_of_others: Max::new() }
    }

    /// `max`.
    pub fn greatest() -> Self {
        ExtremeFunction { greatest: true, ..ExtremeFunction::least() }
    }

    /// DataFusion's function.
    fn others(&self) -> &dyn AggregateUDFImpl {
        if self.greatest { &self.greatest_of_others } else { &self.least_of_others }
    }
}

impl AggregateUDFImpl for ExtremeFunction {
    fn name(&self) -> &str {
        self.others().name()
    }

    fn signature(&self) -> &Signature {
        self.others().signature()
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        self.others().coerce_types(arguments)
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.others().return_type(arguments)
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        if has_equal_forms(args.return_type()) {
            return Ok(Box::new(ExtremeAccumulator::new(args.return_type(), self.greatest)?));
        }
        self.others().accumulator(args)
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        match args.return_type() {
            DataType::Float32 | DataType::Float64 => true,
            data_type if has_equal_forms(data_type) => false,
            _ => self.others().groups_accumulator_supported(args),
        }
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        let greatest = self.greatest;
        match args.return_type() {
            DataType::Float32 => Ok(Box::new(FloatExtremes::<Float32Type> { greatest, values: Vec::new() })),
            DataType::Float64 => Ok(Box::new(FloatExtremes::<Float64Type> { greatest, values: Vec::new() })),
            _ => self.others().create_groups_accumulator(args),
        }
    }

    fn create_sliding_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        self.others().create_sliding_accumulator(args)
    }

    fn is_descending(&self) -> Option<bool> {
        self.others().is_descending()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        self.others().order_sensitivity()
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        self.others().reverse_expr()
    }

    fn value_from_stats(&self, statistics: &StatisticsArgs) -> Option<ScalarValue> {
        self.others().value_from_stats(statistics)
    }

    fn set_monotonicity(&self, data_type: &DataType) -> SetMonotonicity {
        self.others().set_monotonicity(data_type)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.others().documentation()
    }
}

/// Of one group, by the order of keys.
#[derive(Debug)]
struct ExtremeAccumulator {
    greatest: bool,
    encoder: KeyEncoder,
    exact: RowCodec,
    /// Key and exact form of the value; empty if there is none.
    key: Vec<u8>,
    value: ScalarValue,
}

impl ExtremeAccumulator {
    fn new(data_type: &DataType, greatest: bool) -> Result<Self> {
        let encoder = KeyEncoder::new(std::slice::from_ref(data_type))
            .map_err(|error| DataFusionError::External(Box::new(error)))?;
        let schema = Arc::new(Schema::new(vec![Field::new("value", data_type.clone(), true)]));
        let exact = RowCodec::new(&schema).map_err(|error| DataFusionError::External(Box::new(error)))?;
        Ok(ExtremeAccumulator { greatest, encoder, exact, key: Vec::new(), value: ScalarValue::try_from(data_type)? })
    }
}

impl Accumulator for ExtremeAccumulator {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let failed = |error| DataFusionError::External(Box::new(error));
        let keys = self.encoder.encode(&values[..1]).map_err(failed)?;
        // Of equal values that look different always the same one is taken, whatever the order of rows.
        let exact = self.exact.encode_columns(&values[..1], values[0].len()).map_err(failed)?;
        let order = |left: usize, right: usize| {
            keys.row(left).cmp(keys.row(right)).then_with(|| exact.row(left).cmp(exact.row(right)))
        };
        let present = (0..keys.len()).filter(|row| !values[0].is_null(*row));
        let best = if self.greatest {
            present.max_by(|left, right| order(*left, *right))
        } else {
            present.min_by(|left, right| order(*left, *right))
        };
        let Some(row) = best else { return Ok(()) };
        let key = [keys.row(row), exact.row(row)].concat();
        let better = if self.greatest { key > self.key } else { key < self.key };
        if self.key.is_empty() || better {
            self.key = key;
            self.value = ScalarValue::try_from_array(&values[0], row)?;
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(self.value.clone())
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.value.clone()])
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.key.capacity() + self.value.size()
    }
}

/// Floating-point numbers with NaN as the greatest.
trait Float: ArrowPrimitiveType {
    /// The order.
    fn order(left: Self::Native, right: Self::Native) -> Ordering;
}

macro_rules! float {
    ($type:ty) => {
        impl Float for $type {
            #[inline]
            fn order(left: Self::Native, right: Self::Native) -> Ordering {
                // Of equal numbers (-0.0 and 0.0) always the same one is taken, whatever the order of rows.
                match left.partial_cmp(&right) {
                    Some(Ordering::Equal) => left.total_cmp(&right),
                    Some(order) => order,
                    None => left.is_nan().cmp(&right.is_nan()),
                }
            }
        }
    };
}

float!(Float32Type);
float!(Float64Type);

/// Of many groups.
struct FloatExtremes<T: Float> {
    greatest: bool,
    values: Vec<Option<T::Native>>,
}

impl<T: Float> GroupsAccumulator for FloatExtremes<T> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        self.values.resize(total, None);
        let numbers = values[0].as_primitive::<T>().values();
        let wanted = if self.greatest { Ordering::Greater } else { Ordering::Less };
        let best = &mut self.values;
        Rows { groups, weights: None, filter }.for_each(values[0].as_ref(), |row, group, _| {
            let number = numbers[row];
            if best[group].is_none_or(|best| T::order(number, best) == wanted) {
                best[group] = Some(number);
            }
        });
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.update_batch(states, groups, None, total)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let values = emit.take_needed(&mut self.values);
        Ok(Arc::new(values.into_iter().collect::<PrimitiveArray<T>>()))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit)?])
    }

    fn convert_to_state(&self, values: &[ArrayRef], filter: Option<&BooleanArray>) -> Result<Vec<ArrayRef>> {
        let mut rows = FloatExtremes::<T> { greatest: self.greatest, values: Vec::new() };
        let groups: Vec<usize> = (0..values[0].len()).collect();
        rows.update_batch(values, &groups, filter, groups.len())?;
        rows.state(EmitTo::All)
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<Option<T::Native>>()
    }
}
