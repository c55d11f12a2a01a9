//! Conditions by which rows are found in a range of an order, instead of among all rows of their key.
//!
//! A conjunct `f(l) <= g(r)` (or with `<`, `>=`, `>`), with an expression of either side's columns alone, bounds `f` by
//! `g(r)` for a row `r`, and `g` by `f(l)` for a row `l`. Of each side one such expression is its *order*: rows are kept in
//! it, and a row of the other side meets those between its bounds only. Preferred is an expression with a lower and an upper
//! bound (`b.ts` in `b.ts BETWEEN a.ts AND a.expires`), else one with a lower bound: where values grow with time there are
//! fewer rows above than below.
//!
//! A constant distance moves over to the other side, so that an expression gets its second bound: `a.ts + c >= b.ts` is
//! `a.ts >= b.ts - c`. Only so that whatever is out of range at one side is within the bound at the other, and only where
//! sums are exact: for integers, and for timestamps with intervals without months.
//!
//! A side of which a key has one row at most needs no order.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::execution::SessionState;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{BinaryExpr, Expr, ExprSchemable, Operator, binary_expr, lit};
use plan::expressions::{NORMALIZE, never_fails};

use super::condition::Ranged;
use crate::expressions::{BoundExprs, Predicate, readable};

/// The order in which rows of a side are kept.
#[derive(Debug, Clone)]
pub(super) struct Order {
    /// What they are ordered by, over the side's columns.
    pub(super) expression: BoundExprs,
    pub(super) data_type: DataType,
    /// Whether it may fail for a row.
    pub(super) may_fail: bool,
    /// What bounds it, over the other side's columns, and in which way.
    pub(super) bounds: BoundExprs,
    pub(super) ends: Vec<End>,
    /// The bounds as people write them.
    pub(super) text: String,
}

/// In which way a bound bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    pub(super) is_upper: bool,
    pub(super) is_inclusive: bool,
}

impl End {
    fn of(operator: Operator) -> Self {
        End {
            is_upper: matches!(operator, Operator::Lt | Operator::LtEq),
            is_inclusive: matches!(operator, Operator::LtEq | Operator::GtEq),
        }
    }
}

/// A conjunct as a bound of one side's expression.
struct Bound {
    conjunct: usize,
    order: Expr,
    operator: Operator,
    bound: Expr,
}

/// The orders of both sides, and the condition in two parts; none where no condition gives a range.
pub(super) fn find(
    condition: &Expr,
    schemas: [&DFSchema; 2],
    needs_order: [bool; 2],
    pairs: &DFSchema,
    session: &SessionState,
) -> Result<([Option<Order>; 2], Option<Ranged>), String> {
    let conjuncts = split_conjunction(condition);
    let mut used = vec![false; conjuncts.len()];
    let mut orders = [None, None];
    for side in (0..2).filter(|side| needs_order[*side]) {
        let bounds = conjuncts.iter().enumerate();
        let bounds = bounds.flat_map(|(conjunct, expr)| bounds_of(conjunct, expr, side, schemas));
        let chosen = choose(bounds.collect());
        if let Some(first) = chosen.first() {
            chosen.iter().for_each(|bound| used[bound.conjunct] = true);
            orders[side] = Some(Order {
                data_type: first.order.get_type(schemas[side]).map_err(|error| error.strip_backtrace())?,
                may_fail: !never_fails(&first.order, schemas[side]),
                expression: BoundExprs::bind([&first.order], schemas[side], session)?,
                bounds: BoundExprs::bind(chosen.iter().map(|bound| &bound.bound), schemas[1 - side], session)?,
                ends: chosen.iter().map(|bound| End::of(bound.operator)).collect(),
                text: chosen.iter().map(text).collect::<Vec<_>>().join(" AND "),
            });
        }
    }
    if orders.iter().all(Option::is_none) {
        return Ok((orders, None));
    }
    let part = |wanted: bool| {
        let part = conjuncts.iter().zip(&used).filter(move |(_, used)| **used == wanted);
        part.map(|(conjunct, _)| *conjunct)
    };
    let bounds = part(true).map(|conjunct| match conjunct {
        Expr::BinaryExpr(BinaryExpr { left, right, .. }) => {
            BoundExprs::bind([conjunct, left.as_ref(), right.as_ref()], pairs, session)
        }
        _ => Err("a bound is no comparison".to_string()),
    });
    let bounds = bounds.collect::<Result<_, _>>()?;
    let ranged = Ranged { bounds, rest: Predicate::all_of(part(false).collect(), pairs, session)? };
    Ok((orders, Some(ranged)))
}

fn text(bound: &Bound) -> String {
    readable(&binary_expr(bound.order.clone(), bound.operator, bound.bound.clone()))
}

/// The bounds of the expression that is bounded best.
fn choose(bounds: Vec<Bound>) -> Vec<Bound> {
    let has = |order: &Expr, is_upper: bool| {
        bounds.iter().any(|bound| bound.order == *order && End::of(bound.operator).is_upper == is_upper)
    };
    let value = |bound: &Bound| u8::from(has(&bound.order, false)) * 2 + u8::from(has(&bound.order, true));
    let best = bounds.iter().map(value).max();
    let Some(order) = bounds.iter().find(|bound| Some(value(bound)) == best).map(|bound| bound.order.clone()) else {
        return Vec::new();
    };
    bounds.into_iter().filter(|bound| bound.order == order).collect()
}

/// A conjunct as bounds of expressions of a side: as it is, and with a constant moved over.
fn bounds_of(conjunct: usize, expression: &Expr, side: usize, schemas: [&DFSchema; 2]) -> Vec<Bound> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = expression else { return Vec::new() };
    if !matches!(op, Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq) {
        return Vec::new();
    }
    let (order, operator, bound) = match (side_of(left, schemas), side_of(right, schemas), op.swap()) {
        (Some(of_left), Some(of_right), _) if of_left == side && of_right != side => (left, *op, right),
        (Some(of_left), Some(of_right), Some(swapped)) if of_left != side && of_right == side => (right, swapped, left),
        _ => return Vec::new(),
    };
    let types = [order.get_type(schemas[side]), bound.get_type(schemas[1 - side])];
    let [Ok(data_type), Ok(of_bound)] = types else { return Vec::new() };
    if data_type != of_bound {
        return Vec::new();
    }
    let (order, bound) = match (is_float(&data_type), is_ordered(&data_type)) {
        (true, _) => match (normalized(order), normalized(bound)) {
            (Some(order), Some(bound)) => (order, bound),
            _ => return Vec::new(),
        },
        (false, true) => (order.as_ref(), bound.as_ref()),
        (false, false) => return Vec::new(),
    };
    let shifted = shifted(order, operator, bound, &data_type, schemas[side]);
    let as_it_is = Bound { conjunct, order: order.clone(), operator, bound: bound.clone() };
    let shifted = shifted.map(|(order, bound)| Bound { conjunct, order, operator, bound });
    std::iter::once(as_it_is).chain(shifted).collect()
}

/// The side of which alone an expression has columns.
fn side_of(expression: &Expr, schemas: [&DFSchema; 2]) -> Option<usize> {
    let columns = expression.column_refs();
    let of = |side: usize| {
        let own = |schema: &DFSchema| columns.iter().filter(|column| schema.has_column(column)).count();
        !columns.is_empty() && own(schemas[side]) == columns.len() && own(schemas[1 - side]) == 0
    };
    (0..2).find(|side| of(*side))
}

fn is_float(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float32 | DataType::Float64)
}

/// Whether values of a type compare as the bytes of their keys do. Floats do once they are normalised.
fn is_ordered(data_type: &DataType) -> bool {
    data_type.is_integer()
        || data_type.is_temporal() && !matches!(data_type, DataType::Interval(_) | DataType::Duration(_))
        || matches!(data_type, DataType::Decimal128(..) | DataType::Decimal256(..) | DataType::Boolean)
        || matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
        || matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// What is normalised.
fn normalized(expression: &Expr) -> Option<&Expr> {
    match expression {
        Expr::ScalarFunction(call) if call.name() == NORMALIZE => call.args.first(),
        _ => None,
    }
}

/// `order + c >= bound` as `order >= bound - c`, and `order - c <= bound` as `order <= bound + c`, for `c` not below zero.
fn shifted(
    order: &Expr,
    operator: Operator,
    bound: &Expr,
    data_type: &DataType,
    schema: &DFSchema,
) -> Option<(Expr, Expr)> {
    let outward = if End::of(operator).is_upper { Operator::Minus } else { Operator::Plus };
    let inward = if outward == Operator::Minus { Operator::Plus } else { Operator::Minus };
    let (inner, moved) = match order {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if *op == outward => {
            let exact = matches!(data_type, DataType::Timestamp(TimeUnit::Microsecond | TimeUnit::Nanosecond, zone)
                if is_length(right, zone.is_some()));
            exact.then(|| (left.as_ref(), binary_expr(bound.clone(), inward, right.as_ref().clone())))?
        }
        Expr::ScalarFunction(call) if call.name() == checked(outward) && data_type.is_integer() => {
            let [left, Expr::Literal(number, _)] = call.args.as_slice() else { return None };
            let opposite = is_natural(number).then(|| number.arithmetic_negate().ok()).flatten()?;
            (left, call.func.call(vec![bound.clone(), lit(opposite)]))
        }
        _ => return None,
    };
    let same_type = inner.get_type(schema).is_ok_and(|inner| inner == *data_type);
    (same_type && !inner.column_refs().is_empty()).then(|| (inner.clone(), moved))
}

fn checked(operator: Operator) -> &'static str {
    if operator == Operator::Plus { "checked_add" } else { "checked_subtract" }
}

/// Whether an expression is an interval that is always as long, in whole microseconds, and not below zero.
fn is_length(expression: &Expr, in_time_zone: bool) -> bool {
    let Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(interval)), _) = expression else { return false };
    interval.months == 0
        && interval.days >= 0
        && !(in_time_zone && interval.days > 0)
        && interval.nanoseconds >= 0
        && interval.nanoseconds % 1000 == 0
}

/// Whether a constant is an integer that is not below zero.
fn is_natural(value: &ScalarValue) -> bool {
    value.data_type().is_signed_integer()
        && matches!(value.cast_to(&DataType::Int64), Ok(ScalarValue::Int64(Some(number))) if number >= 0)
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::col;

    use super::*;

    fn bound(order: &str, operator: Operator) -> Bound {
        Bound { conjunct: 0, order: col(order), operator, bound: lit(1) }
    }

    #[test]
    fn the_best_bounded_expression_is_the_order() {
        let chosen = |bounds: Vec<Bound>| choose(bounds).iter().map(text).collect::<Vec<_>>().join(", ");
        assert_eq!(chosen(vec![]), "");
        assert_eq!(chosen(vec![bound("x", Operator::Lt), bound("y", Operator::Gt)]), "y > Int32(1)");
        let both = vec![bound("x", Operator::Gt), bound("y", Operator::GtEq), bound("y", Operator::LtEq)];
        assert_eq!(chosen(both), "y >= Int32(1), y <= Int32(1)");
    }

    #[test]
    fn only_what_is_exact_moves_over() {
        use datafusion::arrow::datatypes::IntervalMonthDayNano;
        let interval = |months, days, nanos| {
            let value = IntervalMonthDayNano::new(months, days, nanos);
            lit(ScalarValue::IntervalMonthDayNano(Some(value)))
        };
        assert!(is_length(&interval(0, 1, 2000), false));
        assert!(!is_length(&interval(0, 1, 2000), true) && is_length(&interval(0, 0, 2000), true));
        assert!(!is_length(&interval(1, 0, 0), false));
        assert!(!is_length(&interval(0, -1, 0), false) && !is_length(&interval(0, 0, 1), false));
        assert!(is_natural(&ScalarValue::from(0i32)) && !is_natural(&ScalarValue::from(-1i64)));
        assert!(!is_natural(&ScalarValue::Int32(None)) && !is_natural(&ScalarValue::from("1")));
    }
}
