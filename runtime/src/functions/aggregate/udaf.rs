//! `sum` and `avg` as DataFusion sees them.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature, Volatility,
};
use plan::{PlanError, SqlState};

use super::accumulate::{Computation, DistinctSumAccumulator, GroupedSumAccumulator, SumAccumulator};
use super::results::{Function, accepted_type, result_type};
use super::type_name;

/// `sum` or `avg`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct SumFunction {
    function: Function,
    signature: Signature,
    aliases: Vec<String>,
}

impl SumFunction {
    /// The function for DataFusion.
    pub fn new(function: Function) -> Self {
        let aliases = match function {
            Function::Sum => Vec::new(),
            Function::Average => vec!["mean".to_string()],
        };
        SumFunction { function, signature: Signature::user_defined(Volatility::Immutable), aliases }
    }

    fn no_such_function(&self, arguments: &[DataType]) -> DataFusionError {
        let types: Vec<String> = arguments.iter().map(type_name).collect();
        let message = format!("function {}({}) does not exist", self.function.name(), types.join(", "));
        DataFusionError::External(Box::new(PlanError::new(SqlState::UNDEFINED_FUNCTION, message)))
    }

    fn computation(&self, args: &AccumulatorArgs<'_>) -> Result<Computation> {
        let argument = args.expr_fields.first().map_or(DataType::Null, |field| field.data_type().clone());
        let result = args.return_field.data_type().clone();
        Ok(Computation { function: self.function, argument, result })
    }
}

impl AggregateUDFImpl for SumFunction {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        // Where it does not fit, `return_type` says so; an error from here would be buried in DataFusion's words.
        Ok(match arguments {
            [argument] => vec![accepted_type(argument).unwrap_or_else(|| argument.clone())],
            _ => arguments.to_vec(),
        })
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        // Planning may ask before arguments are converted.
        let accepted = if arguments.len() == 1 { accepted_type(&arguments[0]) } else { None };
        accepted
            .and_then(|accepted| result_type(self.function, &accepted))
            .ok_or_else(|| self.no_such_function(arguments))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let computation = self.computation(&args)?;
        if args.is_distinct {
            return Ok(Box::new(DistinctSumAccumulator::new(computation)?));
        }
        Ok(Box::new(SumAccumulator::new(computation)?))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let argument = args.input_fields.first().map_or(DataType::Null, |field| field.data_type().clone());
        let data_type = if args.is_distinct {
            DataType::List(Arc::new(Field::new_list_field(argument, true)))
        } else {
            DataType::Binary
        };
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, self.function.name()), data_type, true))])
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
