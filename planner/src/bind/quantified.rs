//! `x op ANY (query)` and `x op ALL (query)` as EXISTS, or as values by the least and greatest row. DataFusion would look
//! for the names of x among the columns of the query's own tables.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{self, BinaryOperator, Expr as Ast, SelectItem, visit_expressions};

use super::operators::call;
use super::subquery_rows::{binary, extreme, hangs_on_null, nested, number, select_from, three_valued, value};
use super::{row_values, select_list};
use crate::windows::query_of;

/// A comparison with the rows of a query.
struct Quantified {
    left: Ast,
    op: BinaryOperator,
    query: Box<ast::Query>,
    /// ANY, not ALL.
    any: bool,
}

impl Quantified {
    fn of(expression: &Ast) -> Option<Quantified> {
        let (left, op, mut right, any) = match expression {
            Ast::AnyOp { left, compare_op, right, .. } => (left, compare_op, right.as_ref(), true),
            Ast::AllOp { left, compare_op, right } => (left, compare_op, right.as_ref(), false),
            _ => return None,
        };
        while let Ast::Nested(inner) = right {
            right = inner;
        }
        let query = match right {
            Ast::Subquery(query) => query,
            // ARRAY(query): its items are the query's rows.
            Ast::Function(ast::Function { name, args: ast::FunctionArguments::Subquery(query), .. })
                if name.to_string().eq_ignore_ascii_case("array") =>
            {
                query
            }
            // Of an array, not of a query.
            _ => return None,
        };
        Some(Quantified { left: left.as_ref().clone(), op: op.clone(), query: query.clone(), any })
    }

    /// `IN` and `NOT IN` are what DataFusion has for these.
    fn as_list(&self) -> Option<Ast> {
        let negated = match (&self.op, self.any) {
            (BinaryOperator::Eq, true) => false,
            (BinaryOperator::NotEq, false) => true,
            _ => return None,
        };
        Some(Ast::InSubquery { expr: Box::new(self.left.clone()), subquery: self.query.clone(), negated })
    }

    /// Whether there is a row for which something is true of the comparison.
    fn exists(&self, negated: bool, is: fn(Box<Ast>) -> Ast) -> Ast {
        let mut select = select_from(&self.query, true);
        select.projection = vec![SelectItem::UnnamedExpr(number("1"))];
        let comparison = binary(nested(self.left.clone()), self.op.clone(), value());
        select.selection = Some(is(Box::new(comparison)));
        Ast::Exists { subquery: Box::new(query_of(ast::SetExpr::Select(Box::new(select)))), negated }
    }

    /// As a condition, of which it only matters whether it is true.
    fn condition(&self) -> Ast {
        self.as_list().unwrap_or_else(|| match self.any {
            true => self.exists(false, Ast::IsTrue),
            false => self.exists(true, Ast::IsNotTrue),
        })
    }

    /// The comparison with those rows of which it is as true, or as false, as with any or all of them: the least and the
    /// greatest. NULL if there are none. None for operators that do not compare.
    fn with_extremes(&self) -> Option<Ast> {
        use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
        let with = |function: &str| binary(nested(self.left.clone()), self.op.clone(), extreme(&self.query, function));
        Some(match (&self.op, self.any) {
            (Gt | GtEq, true) | (Lt | LtEq, false) => with("min"),
            (Gt | GtEq, false) | (Lt | LtEq, true) => with("max"),
            (NotEq, true) => binary(with("min"), Or, with("max")),
            (Eq, false) => binary(with("min"), And, with("max")),
            _ => return None,
        })
    }

    /// As a value: NULL if it hangs on a comparison that is NULL. Beneath an aggregate DataFusion finds what the query has of
    /// the outer one, and so can have it where it stands as a value.
    fn value(&self) -> Ast {
        self.as_list().unwrap_or_else(|| {
            let decides = if self.any { Ast::IsTrue } else { Ast::IsFalse };
            match self.with_extremes() {
                Some(comparison) => {
                    three_valued(decides(Box::new(comparison)), self.any, hangs_on_null(&self.left, &self.query))
                }
                None => three_valued(self.exists(false, decides), self.any, self.exists(false, Ast::IsNull)),
            }
        })
    }
}

/// Rewrites a WHERE or HAVING as far as it is joined by AND.
pub(super) fn rewrite_condition(condition: &mut Ast) {
    match condition {
        Ast::BinaryOp { left, op: BinaryOperator::And, right } => {
            rewrite_condition(left);
            rewrite_condition(right);
        }
        Ast::Nested(inner) => rewrite_condition(inner),
        other => {
            if let Some(quantified) = Quantified::of(other) {
                *other = quantified.condition();
            } else if let Some(condition) = row_values::condition(other) {
                *other = condition;
            } else if !matches!(other, Ast::InSubquery { .. } | Ast::Exists { .. }) && has_not(other) {
                select_list::rewrite_value(other);
            }
        }
    }
}

/// Whether a NULL of a membership and false may come to different ends in a condition: it is negated, or looked at. DataFusion's
/// mark joins know no NULL.
fn has_not(condition: &Ast) -> bool {
    let found = visit_expressions(condition, |part| {
        let matters = match part {
            Ast::InSubquery { negated: true, .. } | Ast::AllOp { .. } => true,
            Ast::UnaryOp { op: ast::UnaryOperator::Not, .. }
            | Ast::Case { .. }
            | Ast::IsNull(_)
            | Ast::IsNotNull(_)
            | Ast::IsFalse(_)
            | Ast::IsNotTrue(_)
            | Ast::IsNotFalse(_)
            | Ast::IsUnknown(_)
            | Ast::IsNotUnknown(_) => has_member(part),
            _ => false,
        };
        if matters { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    found.is_break()
}

fn has_member(expression: &Ast) -> bool {
    let found = visit_expressions(expression, |part| match part {
        Ast::InSubquery { .. } | Ast::AnyOp { .. } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

/// Rewrites the expression itself, wherever it stands.
pub(super) fn rewrite(expression: &mut Ast) {
    if let Some(quantified) = Quantified::of(expression) {
        *expression = quantified.value();
    } else if let Some(value) = any_item(expression) {
        *expression = value;
    }
}

/// `x = ANY (column)` as a value: NULL where no item equals and one is NULL. Constants are left as they are, lists to look
/// keys up by.
fn any_item(expression: &Ast) -> Option<Ast> {
    let Ast::AnyOp { left, compare_op: BinaryOperator::Eq, right, .. } = expression else { return None };
    let mut array = right.as_ref();
    while let Ast::Nested(inner) = array {
        array = inner;
    }
    if !matches!(array, Ast::Identifier(_) | Ast::CompoundIdentifier(_)) {
        return None;
    }
    let is_null = |expression: &Ast| Ast::IsNull(Box::new(nested(expression.clone())));
    let null = Ast::Value(ast::Value::Null.with_empty_span());
    let has_null = Ast::IsNotNull(Box::new(call("array_position", vec![array.clone(), null])));
    let has_items = binary(call("cardinality", vec![array.clone()]), BinaryOperator::Gt, number("0"));
    let compared = binary(is_null(left), BinaryOperator::And, has_items);
    let unknown = binary(binary(is_null(array), BinaryOperator::Or, has_null), BinaryOperator::Or, compared);
    let found = call("array_has", vec![array.clone(), nested(left.as_ref().clone())]);
    Some(nested(three_valued(found, true, unknown)))
}
