//! Operators of numeric, as calls of functions: DataFusion's have types of results in which digits are lost, or none.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator, ScalarUDF};
use plan::expressions::is_decimal;

use super::walk;

/// The functions behind the operators.
#[derive(Debug)]
pub(crate) struct Functions {
    add: Option<Arc<ScalarUDF>>,
    subtract: Option<Arc<ScalarUDF>>,
    multiply: Option<Arc<ScalarUDF>>,
    divide: Option<Arc<ScalarUDF>>,
    remainder: Option<Arc<ScalarUDF>>,
}

impl Functions {
    /// Of a session.
    pub fn new(state: &SessionState) -> Functions {
        let function = |name: &str| state.scalar_functions().get(name).cloned();
        Functions {
            add: function("numeric_add"),
            subtract: function("numeric_sub"),
            multiply: function("numeric_mul"),
            divide: function("numeric_div"),
            remainder: function("numeric_mod"),
        }
    }

    /// The call that an operator over these operands is; none if it is not one of numeric.
    pub fn call(&self, left: &Expr, operator: Operator, right: &Expr, schema: &DFSchema) -> Option<Expr> {
        let function = match operator {
            Operator::Plus => &self.add,
            Operator::Minus => &self.subtract,
            Operator::Multiply => &self.multiply,
            Operator::Divide => &self.divide,
            Operator::Modulo => &self.remainder,
            _ => return None,
        };
        let types = [left.get_type(schema).ok()?, right.get_type(schema).ok()?];
        let exact = |data_type: &DataType| is_decimal(data_type) || data_type.is_integer() || data_type.is_null();
        if !types.iter().all(exact) || !types.iter().any(is_decimal) {
            return None;
        }
        Some(function.as_ref()?.call(vec![fitted(left), fitted(right)]))
    }

    /// Replaces the operators that were left since the types of their operands were not known.
    pub fn replace(&self, plan: LogicalPlan) -> Result<LogicalPlan> {
        walk::expressions(plan, &mut |expression, schema| Ok(self.replaced(expression, schema)))
    }

    /// One expression of [`Self::replace`].
    pub fn replaced(&self, expression: Expr, schema: &DFSchema) -> Transformed<Expr> {
        match &expression {
            Expr::BinaryExpr(BinaryExpr { left, op, right }) => match self.call(left, *op, right, schema) {
                Some(call) => Transformed::yes(call),
                None => Transformed::no(expression),
            },
            _ => Transformed::no(expression),
        }
    }
}

/// Gives the numbers of digits of `round` and `trunc` the types by which constants are told from values that are known later: the
/// type of the result depends on the former, and must stay the same when the latter become constants. See the functions.
pub(super) fn digits(plan: LogicalPlan) -> Result<LogicalPlan> {
    walk::expressions(plan, &mut |expression, schema| Ok(with_digits(expression, schema)))
}

/// One expression of [`digits`].
pub(super) fn with_digits(expression: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let Expr::ScalarFunction(mut call) = expression else { return Transformed::no(expression) };
    let [_, digits] = call.args.as_slice() else { return Transformed::no(Expr::ScalarFunction(call)) };
    let digits = match constant(digits) {
        Some(constant) => Expr::Literal(ScalarValue::Int64(Some(constant)), None),
        None => match digits.get_type(schema) {
            Ok(DataType::Int64) => Expr::Cast(Cast::new(Box::new(digits.clone()), DataType::Int32)),
            _ => return Transformed::no(Expr::ScalarFunction(call)),
        },
    };
    if !matches!(call.name(), "round" | "trunc") || call.args[1] == digits {
        return Transformed::no(Expr::ScalarFunction(call));
    }
    call.args[1] = digits;
    Transformed::yes(Expr::ScalarFunction(call))
}

/// The value of a whole number that is written.
fn constant(expression: &Expr) -> Option<i64> {
    match expression {
        Expr::Literal(ScalarValue::Int64(value), _) => *value,
        Expr::Literal(ScalarValue::Int32(value), _) => value.map(i64::from),
        Expr::Literal(ScalarValue::Int16(value), _) => value.map(i64::from),
        Expr::Negative(inner) => constant(inner)?.checked_neg(),
        Expr::Cast(cast) if cast.field.data_type().is_integer() => constant(&cast.expr),
        Expr::Alias(alias) => constant(&alias.expr),
        _ => None,
    }
}

/// A whole number that is written as a numeric of no more digits than it has: the type of an integer has room for more, which the
/// type of the result would have to have too.
fn fitted(operand: &Expr) -> Expr {
    let whole = match operand {
        Expr::Literal(ScalarValue::Int64(Some(value)), _) => i128::from(*value),
        Expr::Literal(ScalarValue::Int32(Some(value)), _) => i128::from(*value),
        _ => return operand.clone(),
    };
    let digits = whole.unsigned_abs().checked_ilog10().unwrap_or(0) as u8 + 1;
    Expr::Literal(ScalarValue::Decimal128(Some(whole), digits, 0), None)
}
