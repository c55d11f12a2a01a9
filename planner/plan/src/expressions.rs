//! What planner and runtime both ask of DataFusion's expressions, and the functions that both know by name.

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::expr::Alias;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator};

/// The function that maps equal values which differ in their bits to one.
pub const NORMALIZE: &str = "normalize_key";
/// The window function of a session's first instant.
pub const SESSION_START: &str = "session_start";
/// The window function of the first instant after a session.
pub const SESSION_END: &str = "session_end";

/// Whether a type is that of numerics.
pub fn is_decimal(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Decimal128(..) | DataType::Decimal256(..))
}

/// Whether an expression reads more than its row: a subquery, or the row around one.
pub fn looks_elsewhere(expression: &Expr) -> bool {
    let found = expression.exists(|part| {
        Ok(matches!(
            part,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::OuterReferenceColumn(..)
        ))
    });
    // The closure does not fail.
    found.unwrap_or(true)
}

/// Whether an expression has a value for every row. It says no where it does not know.
pub fn never_fails(expression: &Expr, schema: &DFSchema) -> bool {
    let all = |parts: &[&Expr]| parts.iter().all(|part| never_fails(part, schema));
    match expression {
        Expr::Column(_) | Expr::Literal(..) => true,
        Expr::Alias(Alias { expr, .. })
        | Expr::Not(expr)
        | Expr::IsNull(expr)
        | Expr::IsNotNull(expr)
        | Expr::IsTrue(expr)
        | Expr::IsFalse(expr)
        | Expr::IsUnknown(expr)
        | Expr::IsNotTrue(expr)
        | Expr::IsNotFalse(expr)
        | Expr::IsNotUnknown(expr) => never_fails(expr, schema),
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => is_total(op) && all(&[left, right]),
        Expr::Between(between) => all(&[&between.expr, &between.low, &between.high]),
        Expr::InList(list) => never_fails(&list.expr, schema) && list.list.iter().all(|item| never_fails(item, schema)),
        Expr::Like(like) => never_fails(&like.expr, schema) && is_plain_pattern(&like.pattern),
        Expr::Cast(cast) => {
            let from = cast.expr.get_type(schema);
            never_fails(&cast.expr, schema) && from.is_ok_and(|from| is_widening(&from, cast.field.data_type()))
        }
        Expr::ScalarFunction(call) => {
            call.name() == NORMALIZE && call.args.iter().all(|argument| never_fails(argument, schema))
        }
        _ => false,
    }
}

/// Whether an operator has a value for all values of its operands.
fn is_total(operator: &Operator) -> bool {
    use Operator::{And, Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq, Or};
    matches!(operator, And | Or | Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

/// Whether a pattern of LIKE is a constant that escapes nothing.
fn is_plain_pattern(pattern: &Expr) -> bool {
    matches!(pattern, Expr::Literal(ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)), _) if !text.contains('\\'))
}

/// Whether every value of a type is one of another, wider type.
pub fn is_widening(from: &DataType, to: &DataType) -> bool {
    use DataType::{Decimal128, Decimal256, Float32, Float64, Int16, Int32, Int64, LargeUtf8, Utf8, Utf8View};
    let digits = |data_type: &DataType| match data_type {
        Int16 => Some((5, 0)),
        Int32 => Some((10, 0)),
        Int64 => Some((19, 0)),
        Decimal128(precision, scale) | Decimal256(precision, scale) => Some((i32::from(*precision), i32::from(*scale))),
        _ => None,
    };
    match (from, to) {
        _ if from == to => true,
        (Int16, Int32 | Int64) | (Int32, Int64) | (Float32, Float64) => true,
        (Int16 | Int32 | Int64, Float32 | Float64) => true,
        (Utf8 | Utf8View | LargeUtf8, Utf8 | Utf8View | LargeUtf8) => true,
        (_, Decimal128(..) | Decimal256(..)) => match (digits(from), digits(to)) {
            (Some((precision, scale)), Some((wider, more))) => scale <= more && precision - scale <= wider - more,
            _ => false,
        },
        _ => false,
    }
}
