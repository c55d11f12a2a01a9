//! EXISTS, IN and functions of several rows in a select list. DataFusion has the first two in conditions only: as values
//! they are counts of rows, which it turns into joins.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{self, Expr as Ast, SelectItem, VisitMut, VisitorMut};

use super::subquery_rows::{any_equal, any_rows, hangs_on_null, three_valued};
use super::{quantified, row_values, set_returning};

/// Rewrites the items of a select list, outside of their subqueries.
pub(super) fn rewrite(select: &mut ast::Select) {
    for item in &mut select.projection {
        let (SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. }) = item else {
            continue;
        };
        let _: ControlFlow<()> = VisitMut::visit(expression, &mut Outermost { depth: 0 });
    }
}

/// Rewrites expressions that are in no subquery.
struct Outermost {
    depth: usize,
}

impl VisitorMut for Outermost {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Ast) -> ControlFlow<()> {
        if self.depth == 0 {
            // Comparisons with a query are made of these two.
            row_values::rewrite(expression);
            quantified::rewrite(expression);
            match expression {
                Ast::Exists { subquery, negated } => *expression = exists(subquery, *negated),
                Ast::InSubquery { expr, subquery, negated } => *expression = is_in(expr, subquery, *negated),
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Ast) -> ControlFlow<()> {
        if self.depth == 0 {
            set_returning::rewrite_item(expression);
        }
        ControlFlow::Continue(())
    }
}

/// Rewrites NOT IN and IN within a condition of which it matters whether it is NULL or false.
pub(super) fn rewrite_value(expression: &mut Ast) {
    let _: ControlFlow<()> = VisitMut::visit(expression, &mut Members { depth: 0 });
}

/// Rewrites IN in no subquery.
struct Members {
    depth: usize,
}

impl VisitorMut for Members {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<()> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Ast) -> ControlFlow<()> {
        if self.depth == 0 {
            row_values::rewrite(expression);
            quantified::rewrite(expression);
            if let Ast::InSubquery { expr, subquery, negated } = expression {
                *expression = is_in(expr, subquery, *negated);
            }
        }
        ControlFlow::Continue(())
    }
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
