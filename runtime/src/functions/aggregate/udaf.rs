//! Aggregates whose state is a sum, as DataFusion sees them.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature, Volatility,
};

use super::accumulate::{Computation, DistinctSumAccumulator, GroupedSumAccumulator, SumAccumulator};
use super::invertible::Invertible;
use super::no_such_function;

/// One of these aggregates.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct InvertibleFunction {
    aggregate: Invertible,
    name: String,
    signature: Signature,
    aliases: Vec<String>,
}

impl InvertibleFunction {
    /// The function for DataFusion, with other names that it has.
    pub fn new(aggregate: Invertible, aliases: &[&str]) -> Self {
        let aliases = aliases.iter().map(ToString::to_string).collect();
        let signature = Signature::user_defined(Volatility::Immutable);
        InvertibleFunction { aggregate, name: aggregate.name().to_string(), signature, aliases }
    }

    /// The function under another name only.
    pub fn under(&self, name: &str) -> Self {
        InvertibleFunction { name: name.to_string(), ..InvertibleFunction::new(self.aggregate, &[]) }
    }

    /// The aggregate.
    pub fn aggregate(&self) -> Invertible {
        self.aggregate
    }

    fn computation(&self, args: &AccumulatorArgs<'_>) -> Result<Computation> {
        let arguments = args.expr_fields.iter().map(|field| field.data_type().clone()).collect();
        let result = args.return_field.data_type().clone();
        Ok(Computation { aggregate: self.aggregate, arguments, result })
    }
}

impl AggregateUDFImpl for InvertibleFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        // Where it does not fit, `return_type` says so; an error from here would be buried in DataFusion's words.
        Ok(self.aggregate.accepted_types(arguments).unwrap_or_else(|| arguments.to_vec()))
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        // Planning may ask before arguments are converted.
        self.aggregate
            .accepted_types(arguments)
            .and_then(|accepted| self.aggregate.result_type(&accepted))
            .ok_or_else(|| no_such_function(&self.name, arguments))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let computation = self.computation(&args)?;
        if args.is_distinct {
            return Ok(Box::new(DistinctSumAccumulator::new(computation)?));
        }
        Ok(Box::new(SumAccumulator::new(computation)?))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, &self.name), DataType::Binary, true))])
    }

    fn groups_accumulator_supported(&self, args: AccumulatorArgs) -> bool {
        !args.is_distinct
    }

    fn create_groups_accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn GroupsAccumulator>> {
        Ok(Box::new(GroupedSumAccumulator::new(self.computation(&args)?)?))
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn set_monotonicity(&self, _data_type: &DataType) -> SetMonotonicity {
        SetMonotonicity::NotMonotonic
    }
}
