//! EXISTS, IN and functions of several rows in a select list. DataFusion has the first two in conditions only: as values
//! they are counts of rows, which it turns into joins.

use std::convert::Infallible;

use datafusion::sql::sqlparser::ast::{self, Expr as Ast, SelectItem};

use super::subquery_rows::{any_equal, any_rows, hangs_on_null, three_valued};
use super::{quantified, row_values, set_returning, walk};

/// Rewrites the items of a select list, outside of their subqueries.
pub(super) fn rewrite(select: &mut ast::Select) {
    for item in &mut select.projection {
        let (SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. }) = item else {
            continue;
        };
        let mut enter = |part: &mut Ast| {
            comparisons(part);
            match part {
                Ast::Exists { subquery, negated } => *part = exists(subquery, *negated),
                Ast::InSubquery { expr, subquery, negated } => *part = is_in(expr, subquery, *negated),
                _ => {}
            }
            Ok::<(), Infallible>(())
        };
        let mut leave = |part: &mut Ast| {
            set_returning::rewrite_item(part);
            Ok(())
        };
        let Ok(()) = walk::outermost(expression, &mut enter, &mut leave);
    }
}

/// Rewrites NOT IN and IN within a condition of which it matters whether it is NULL or false.
pub(super) fn rewrite_value(expression: &mut Ast) {
    let mut enter = |part: &mut Ast| {
        comparisons(part);
        if let Ast::InSubquery { expr, subquery, negated } = part {
            *part = is_in(expr, subquery, *negated);
        }
        Ok::<(), Infallible>(())
    };
    let Ok(()) = walk::outermost(expression, &mut enter, &mut |_| Ok(()));
}

/// Comparisons with a query become EXISTS and IN.
fn comparisons(expression: &mut Ast) {
    row_values::rewrite(expression);
    quantified::rewrite(expression);
}

fn exists(query: &ast::Query, negated: bool) -> Ast {
    let some = any_rows(query);
    if negated { Ast::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(some) } } else { some }
}

/// True if a row equals, else NULL if that hangs on a NULL, else false.
fn is_in(member: &Ast, query: &ast::Query, negated: bool) -> Ast {
    let equal = any_equal(query, member);
    three_valued(equal, !negated, hangs_on_null(member, query))
}
