//! `x BETWEEN SYMMETRIC a AND b`: between them in either order. The parser is given a mark in front of the first bound.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr as Ast, UnaryOperator};

use super::subquery_rows::{binary, nested};
use crate::parse::SYMMETRIC;

/// Rewrites a marked BETWEEN.
pub(super) fn rewrite(expression: &mut Ast) {
    let Ast::Between { expr, negated, low, high } = expression else { return };
    if !take_mark(low) {
        return;
    }
    let between = |low: &Ast, high: &Ast| {
        let operand = |part: &Ast| Box::new(nested(part.clone()));
        nested(Ast::Between { expr: operand(expr), negated: false, low: operand(low), high: operand(high) })
    };
    let either = binary(between(low, high), BinaryOperator::Or, between(high, low));
    *expression = match *negated {
        true => nested(Ast::UnaryOp { op: UnaryOperator::Not, expr: Box::new(either) }),
        false => either,
    };
}

/// Takes the mark off the first operand, if it is there.
fn take_mark(bound: &mut Ast) -> bool {
    let Ast::BinaryOp { left, op, right } = bound else { return false };
    let is_mark =
        matches!(left.as_ref(), Ast::Identifier(name) if name.value == SYMMETRIC && name.quote_style.is_some());
    if is_mark && *op == BinaryOperator::StringConcat {
        *bound = right.as_ref().clone();
        return true;
    }
    take_mark(left)
}
