//! EXISTS, IN and functions of several rows in a select list. DataFusion has the first two in conditions only: as values
//! they are counts of rows, which it turns into joins.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{self, BinaryOperator, Expr as Ast, Ident, SelectItem, VisitMut, VisitorMut};

use super::operators::call;
use crate::parse::fold;
use crate::windows::{query_of, select_of};

/// The name of a subquery's rows, and of their one column: such that no name outside is taken for it.
const ROWS: &str = "?rows";
const VALUE: &str = "?value";

/// Rewrites the items of a select list, outside of their subqueries.
pub(super) fn rewrite(select: &mut ast::Select) {
    for item in &mut select.projection {
        let (SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. }) = item else {
            continue;
        };
        if is_series(expression) {
            *expression = call("unnest", vec![expression.clone()]);
        }
        let flow: ControlFlow<()> = VisitMut::visit(expression, &mut Outermost { depth: 0 });
        debug_assert!(flow.is_continue());
    }
}

/// generate_series is a table function elsewhere; here it gives a row for each number.
fn is_series(expression: &Ast) -> bool {
    let Ast::Function(function) = expression else { return false };
    matches!(function.name.0.as_slice(), [ast::ObjectNamePart::Identifier(name)] if fold(name) == "generate_series")
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
            match expression {
                Ast::Exists { subquery, negated } => *expression = exists(subquery, *negated),
                Ast::InSubquery { expr, subquery, negated } => *expression = is_in(expr, subquery, *negated),
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }
}

fn identifier(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

fn number(digits: &str) -> Ast {
    Ast::Value(ast::Value::Number(digits.to_string(), false).with_empty_span())
}

/// `(SELECT count(*) FROM ...) > 0`
fn any_rows(mut select: ast::Select) -> Ast {
    select.projection = vec![SelectItem::UnnamedExpr(count_rows())];
    let query = query_of(ast::SetExpr::Select(Box::new(select)));
    compare(Ast::Subquery(Box::new(query)), BinaryOperator::Gt, number("0"))
}

fn count_rows() -> Ast {
    let mut count = call("count", Vec::new());
    if let Ast::Function(function) = &mut count
        && let ast::FunctionArguments::List(list) = &mut function.args
    {
        list.args = vec![ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Wildcard)];
    }
    count
}

fn compare(left: Ast, op: BinaryOperator, right: Ast) -> Ast {
    Ast::Nested(Box::new(Ast::BinaryOp { left: Box::new(left), op, right: Box::new(right) }))
}

fn exists(query: &ast::Query, negated: bool) -> Ast {
    // Beneath a count DataFusion finds what such a query has of the outer one.
    let plain = match query.body.as_ref() {
        ast::SetExpr::Select(select) if is_plain(query, select) => Some(select.as_ref().clone()),
        _ => None,
    };
    let some = any_rows(plain.unwrap_or_else(|| rows_of(query, &[])));
    if negated { Ast::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(some) } } else { some }
}

/// Whether a query has a row for each that its FROM and WHERE have.
fn is_plain(query: &ast::Query, select: &ast::Select) -> bool {
    let simple = |item: &SelectItem| match item {
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(_, _) => true,
        SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } => {
            matches!(expression, Ast::Identifier(_) | Ast::CompoundIdentifier(_) | Ast::Value(_))
        }
        SelectItem::ExprWithAliases { .. } => false,
    };
    let ungrouped = matches!(&select.group_by, ast::GroupByExpr::Expressions(keys, _) if keys.is_empty());
    query.with.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && ungrouped
        && select.having.is_none()
        && select.distinct.is_none()
        && select.qualify.is_none()
        && select.projection.iter().all(simple)
}

/// `SELECT FROM (query) AS "?rows" (columns)`
fn rows_of(query: &ast::Query, columns: &[&str]) -> ast::Select {
    let columns = columns.iter().map(|name| ast::TableAliasColumnDef { name: identifier(name), data_type: None });
    let alias = ast::TableAlias { explicit: true, name: identifier(ROWS), columns: columns.collect(), at: None };
    let rows = ast::TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query.clone()),
        alias: Some(alias),
        sample: None,
    };
    select_of(Vec::new(), rows)
}

/// True if a row equals, else NULL if that hangs on a NULL, else false.
fn is_in(value: &Ast, query: &ast::Query, negated: bool) -> Ast {
    let member = Ast::CompoundIdentifier(vec![identifier(ROWS), identifier(VALUE)]);
    let rows_where = |condition: Option<Ast>| {
        let mut rows = rows_of(query, &[VALUE]);
        rows.selection = condition;
        any_rows(rows)
    };
    let equal = rows_where(Some(compare(member.clone(), BinaryOperator::Eq, Ast::Nested(Box::new(value.clone())))));
    let unknown_member = rows_where(Some(Ast::IsNull(Box::new(member))));
    let unknown_value = Ast::BinaryOp {
        left: Box::new(Ast::IsNull(Box::new(Ast::Nested(Box::new(value.clone()))))),
        op: BinaryOperator::And,
        right: Box::new(rows_where(None)),
    };
    let constant = |value: ast::Value| Ast::Value(value.with_empty_span());
    let when = |condition, value| ast::CaseWhen { condition, result: constant(value) };
    let unknown = compare(unknown_member, BinaryOperator::Or, Ast::Nested(Box::new(unknown_value)));
    Ast::Case {
        case_token: ast::helpers::attached_token::AttachedToken::empty(),
        end_token: ast::helpers::attached_token::AttachedToken::empty(),
        operand: None,
        conditions: vec![when(equal, ast::Value::Boolean(!negated)), when(unknown, ast::Value::Null)],
        else_result: Some(Box::new(constant(ast::Value::Boolean(negated)))),
    }
}
