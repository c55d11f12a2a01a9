//! Arithmetic that fails where PostgreSQL's does: integers that overflow, and floats divided by zero; and decimals that
//! become the nearest float.
//!
//! DataFusion's `+`, `-` and `*` on integers wrap, and its float division gives infinities. This rule replaces them,
//! once types are coerced, by functions that check.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Datum, Scalar};
use datafusion::arrow::compute::kernels::numeric::{add, div, mul, sub};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Expr, ExprSchemable, LogicalPlan, Operator, ScalarFunctionArgs, ScalarUDF,
    ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use plan::{PlanError, SqlState};

use super::errors::external;
use super::literal::out_of_range;
use super::walk;

/// A checked operator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Checked {
    operator: Operator,
    signature: Signature,
}

impl Checked {
    fn of(operator: Operator) -> Self {
        Checked { operator, signature: Signature::any(2, Volatility::Immutable) }
    }
}

fn division_by_zero() -> PlanError {
    PlanError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// Whether a divisor that meets a value is zero somewhere.
fn divides_by_zero(dividend: &ArrayRef, divisor: &ArrayRef) -> bool {
    // A constant on one side meets every row of the other.
    let meets = |index: usize| match dividend.len() {
        0 => false,
        1 => dividend.is_valid(0),
        rows if divisor.len() == 1 => dividend.null_count() < rows,
        _ => dividend.is_valid(index),
    };
    match divisor.data_type() {
        DataType::Float64 => {
            let values = divisor.as_primitive::<Float64Type>();
            (0..values.len()).any(|index| values.value(index) == 0.0 && values.is_valid(index) && meets(index))
        }
        DataType::Float32 => {
            let values = divisor.as_primitive::<Float32Type>();
            (0..values.len()).any(|index| values.value(index) == 0.0 && values.is_valid(index) && meets(index))
        }
        _ => false,
    }
}

impl ScalarUDFImpl for Checked {
    fn name(&self) -> &str {
        match self.operator {
            Operator::Plus => "checked_add",
            Operator::Minus => "checked_subtract",
            Operator::Multiply => "checked_multiply",
            _ => "checked_divide",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [left, right] => Ok(format!("{} {} {}", left.schema_name(), self.operator, right.schema_name())),
            _ => Ok(self.name().to_string()),
        }
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(arg_types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let scalars = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let operand = |index: usize| -> Result<(ArrayRef, bool)> {
            Ok(match &args.args[index] {
                ColumnarValue::Array(array) => (array.clone(), false),
                ColumnarValue::Scalar(value) => (value.to_array()?, true),
            })
        };
        let ((left, left_scalar), (right, right_scalar)) = (operand(0)?, operand(1)?);
        let data_type = left.data_type().clone();
        let datum = |array: &ArrayRef, scalar: bool| -> Box<dyn Datum> {
            if scalar { Box::new(Scalar::new(array.clone())) } else { Box::new(array.clone()) }
        };
        let (left_datum, right_datum) = (datum(&left, left_scalar), datum(&right, right_scalar));
        let (left_datum, right_datum) = (left_datum.as_ref(), right_datum.as_ref());
        let result = match self.operator {
            Operator::Plus => add(left_datum, right_datum),
            Operator::Minus => sub(left_datum, right_datum),
            Operator::Multiply => mul(left_datum, right_datum),
            _ => {
                if divides_by_zero(&left, &right) {
                    return Err(external(division_by_zero()));
                }
                div(left_datum, right_datum)
            }
        };
        let array = result.map_err(|_| external(out_of_range(&data_type)))?;
        if scalars {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }
}

/// The rule.
#[derive(Debug)]
pub struct CheckedArithmetic;

impl AnalyzerRule for CheckedArithmetic {
    fn name(&self) -> &str {
        "checked_arithmetic"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        walk::nodes(plan, &mut |node| walk::node_expressions(node, &mut check))
    }
}

/// Replaces an operator on integers, a division of floats, and a cast of a decimal to a float.
pub(crate) fn check(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (left, op, right) = match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => (left, op, right),
        Expr::Cast(cast) => match super::text_cast::written(&cast, schema)? {
            Some(text) => return Ok(Transformed::yes(text)),
            None => return super::float_cast::exact(cast, schema),
        },
        other => return Ok(Transformed::no(other)),
    };
    let same_type = |wanted: fn(&DataType) -> bool| {
        let left = left.get_type(schema)?;
        Ok::<bool, datafusion::error::DataFusionError>(wanted(&left) && left == right.get_type(schema)?)
    };
    let checked = match op {
        Operator::Plus | Operator::Minus | Operator::Multiply => same_type(DataType::is_integer)?,
        Operator::Divide => same_type(DataType::is_floating)?,
        _ => false,
    };
    if !checked {
        return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
    }
    let function = Arc::new(ScalarUDF::new_from_impl(Checked::of(op)));
    Ok(Transformed::yes(function.call(vec![*left, *right])))
}
