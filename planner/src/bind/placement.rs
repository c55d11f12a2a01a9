//! Where aggregates and window functions may not stand: WHERE, GROUP BY, join conditions, and inside each other.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{self, Expr, Visit, Visitor};
use plan::{PlanError, SqlState};

use super::context::Context;
use crate::parse::fold;

/// A call of a function over several rows.
struct Call {
    /// It has an OVER clause.
    windowed: bool,
    name: ast::Ident,
}

/// Finds the first call outside of subqueries: what a subquery aggregates is its own matter.
struct Finder<'a> {
    context: &'a Context<'a>,
    subqueries: usize,
}

impl Visitor for Finder<'_> {
    type Break = Call;

    fn pre_visit_query(&mut self, _query: &ast::Query) -> ControlFlow<Call> {
        self.subqueries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &ast::Query) -> ControlFlow<Call> {
        self.subqueries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Call> {
        match call(self.context, expression) {
            Some(found) if self.subqueries == 0 => ControlFlow::Break(found),
            _ => ControlFlow::Continue(()),
        }
    }
}

/// The call that an expression is, if it is one over several rows.
fn call(context: &Context<'_>, expression: &Expr) -> Option<Call> {
    let Expr::Function(function) = expression else { return None };
    let name = function.name.0.last()?.as_ident()?.clone();
    let windowed = function.over.is_some();
    let folded = fold(&name);
    let state = context.state();
    let aggregate = state.aggregate_functions().contains_key(&folded)
        && !state.scalar_functions().contains_key(&folded)
        && folded != "grouping";
    (windowed || aggregate).then_some(Call { windowed, name })
}

fn find(context: &Context<'_>, tree: &impl Visit) -> Option<Call> {
    match tree.visit(&mut Finder { context, subqueries: 0 }) {
        ControlFlow::Break(call) => Some(call),
        ControlFlow::Continue(()) => None,
    }
}

/// Checks a select. Selects in its subqueries are checked on their own.
pub(super) fn check(context: &Context<'_>, select: &ast::Select) -> Result<(), PlanError> {
    refuse(context, select.selection.as_ref(), "WHERE")?;
    if let ast::GroupByExpr::Expressions(expressions, _) = &select.group_by {
        refuse(context, expressions, "GROUP BY")?;
    }
    for join in select.from.iter().flat_map(|from| &from.joins) {
        if let Some(ast::JoinConstraint::On(condition)) = constraint(&join.join_operator) {
            refuse(context, Some(condition), "JOIN conditions")?;
        }
    }
    let mut nested = Nested { context, subqueries: 0 };
    match select.projection.visit(&mut nested) {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

fn constraint(operator: &ast::JoinOperator) -> Option<&ast::JoinConstraint> {
    use ast::JoinOperator::{FullOuter, Inner, Join, Left, LeftOuter, Right, RightOuter};
    match operator {
        Join(on) | Inner(on) | Left(on) | LeftOuter(on) | Right(on) | RightOuter(on) | FullOuter(on) => Some(on),
        _ => None,
    }
}

fn refuse<'e>(
    context: &Context<'_>,
    expressions: impl IntoIterator<Item = &'e Expr>,
    clause: &str,
) -> Result<(), PlanError> {
    let Some(call) = expressions.into_iter().find_map(|expression| find(context, expression)) else { return Ok(()) };
    Err(match call.windowed {
        true => error(
            context,
            &call,
            SqlState::WINDOWING_ERROR,
            format!("window functions are not allowed in {clause}"),
            "Compute it in a subquery and filter what that returns.",
        ),
        false => error(
            context,
            &call,
            SqlState::GROUPING_ERROR,
            format!("aggregate functions are not allowed in {clause}"),
            "A condition over groups belongs into HAVING.",
        ),
    })
}

fn error(context: &Context<'_>, call: &Call, state: SqlState, message: String, hint: &str) -> PlanError {
    PlanError::new(state, message).at(context.source.position_of(call.name.span.start)).with_hint(hint)
}

/// Finds aggregates of aggregates.
struct Nested<'a> {
    context: &'a Context<'a>,
    subqueries: usize,
}

impl Visitor for Nested<'_> {
    type Break = PlanError;

    fn pre_visit_query(&mut self, _query: &ast::Query) -> ControlFlow<PlanError> {
        self.subqueries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &ast::Query) -> ControlFlow<PlanError> {
        self.subqueries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<PlanError> {
        let Expr::Function(function) = expression else { return ControlFlow::Continue(()) };
        let aggregate = call(self.context, expression).is_some_and(|call| !call.windowed);
        if self.subqueries > 0 || !aggregate {
            return ControlFlow::Continue(());
        }
        let Some(inner) = find(self.context, &function.args) else { return ControlFlow::Continue(()) };
        let message = match inner.windowed {
            true => "aggregate function calls cannot contain window function calls",
            false => "aggregate function calls cannot be nested",
        };
        let hint = "Compute the inner one in a subquery.";
        ControlFlow::Break(error(self.context, &inner, SqlState::GROUPING_ERROR, message.to_string(), hint))
    }
}
