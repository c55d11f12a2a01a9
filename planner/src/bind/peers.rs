//! Ranks among peers only.
//!
//! DataFusion leaves out of an order what is constant within a partition, and over no order its ranks number the rows. In
//! PostgreSQL all rows of a partition are peers then.

use datafusion::common::ScalarValue;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::Expr;
use datafusion::logical_expr::expr::WindowFunction;

/// What a rank is that is ordered by nothing but its own partition; none for all other functions.
pub(super) fn rank(window: &WindowFunction) -> Option<Expr> {
    // Different functions, for the reason that is told below.
    let (rank, function) = match window.fun.name() {
        "rank" => (ScalarValue::UInt64(Some(1)), max_udaf()),
        "dense_rank" => (ScalarValue::UInt64(Some(1)), min_udaf()),
        "percent_rank" => (ScalarValue::Float64(Some(0.0)), max_udaf()),
        "cume_dist" => (ScalarValue::Float64(Some(1.0)), max_udaf()),
        _ => return None,
    };
    let partition = &window.params.partition_by;
    if !window.params.order_by.iter().all(|sort| partition.contains(&sort.expr)) {
        return None;
    }
    // A window node has window functions only.
    let mut constant = WindowFunction::new(function, vec![Expr::Literal(rank, None)]);
    constant.params.partition_by = partition.clone();
    // Without effect, but two ranks that differ in it must go on to differ: DataFusion makes one common expression of equal
    // window functions, in a form that it cannot execute.
    constant.params.order_by = window.params.order_by.clone();
    Some(Expr::WindowFunction(Box::new(constant)))
}
