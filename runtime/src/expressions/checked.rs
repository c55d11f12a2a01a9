//! Arithmetic as PostgreSQL does it: nothing wraps around silently.
//!
//! DataFusion's addition, subtraction and multiplication wrap on overflow unless told otherwise.

use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::BinaryExpr;

/// The same expression, with arithmetic that fails instead of wrapping around.
pub fn checked(
    expression: Arc<dyn PhysicalExpr>,
    _schema: &Schema,
) -> datafusion::error::Result<Arc<dyn PhysicalExpr>> {
    expression
        .transform_up(|part| {
            let Some(binary) = part.downcast_ref::<BinaryExpr>() else { return Ok(Transformed::no(part)) };
            if !matches!(binary.op(), Operator::Plus | Operator::Minus | Operator::Multiply) {
                return Ok(Transformed::no(part));
            }
            Ok(Transformed::yes(Arc::new(binary.clone().with_fail_on_overflow(true)) as Arc<dyn PhysicalExpr>))
        })
        .data()
}
