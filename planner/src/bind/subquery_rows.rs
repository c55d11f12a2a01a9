//! The rows of a subquery in the FROM of another, and what else the rewrites of subqueries are made of.

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{self, BinaryOperator, Expr as Ast, Ident, SelectItem};

use super::operators::call;
use crate::windows::{query_of, select_of};

/// The name of the subquery's rows, and of their one column: such that no name from outside is taken for it.
const ROWS: &str = "?rows";
const VALUE: &str = "?value";

fn identifier(name: &str) -> Ident {
    Ident::with_quote('"', name)
}

/// `SELECT FROM (query) AS "?rows" ("?value")`, or without a name for the value.
pub(super) fn select_from(query: &ast::Query, names_value: bool) -> ast::Select {
    let columns = names_value.then(|| ast::TableAliasColumnDef { name: identifier(VALUE), data_type: None });
    let alias =
        ast::TableAlias { explicit: true, name: identifier(ROWS), columns: columns.into_iter().collect(), at: None };
    let rows = ast::TableFactor::Derived {
        lateral: false,
        subquery: Box::new(query.clone()),
        alias: Some(alias),
        sample: None,
    };
    select_of(Vec::new(), rows)
}

/// `SELECT FROM (query) AS "?rows" ("?value 1", "?value 2", ...)`
pub(super) fn select_from_columns(query: &ast::Query, columns: usize) -> ast::Select {
    let mut select = select_from(query, false);
    if let Some(ast::TableFactor::Derived { alias: Some(alias), .. }) =
        select.from.first_mut().map(|from| &mut from.relation)
    {
        let names = (1..=columns).map(|place| identifier(&format!("{VALUE} {place}")));
        alias.columns = names.map(|name| ast::TableAliasColumnDef { name, data_type: None }).collect();
    }
    select
}

/// The columns that [`select_from_columns`] names.
pub(super) fn named_rows(columns: usize) -> Vec<Ast> {
    let names = (1..=columns).map(|place| identifier(&format!("{VALUE} {place}")));
    names.map(|name| Ast::CompoundIdentifier(vec![identifier(ROWS), name])).collect()
}

/// The named value.
pub(super) fn value() -> Ast {
    Ast::CompoundIdentifier(vec![identifier(ROWS), identifier(VALUE)])
}

/// The query itself, if it has a row for each that its FROM and WHERE have: beneath an aggregate over these DataFusion
/// finds what the query has of the outer one, but not within a FROM.
fn plain(query: &ast::Query) -> Option<&ast::Select> {
    let ast::SetExpr::Select(select) = query.body.as_ref() else { return None };
    let simple = |item: &SelectItem| match item {
        SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(_, _) => true,
        SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } => {
            matches!(expression, Ast::Identifier(_) | Ast::CompoundIdentifier(_) | Ast::Value(_))
        }
        SelectItem::ExprWithAliases { .. } => false,
    };
    let ungrouped = matches!(&select.group_by, ast::GroupByExpr::Expressions(keys, _) if keys.is_empty());
    let is_plain = query.with.is_none()
        && query.limit_clause.is_none()
        && query.fetch.is_none()
        && ungrouped
        && select.having.is_none()
        && select.distinct.is_none()
        && select.qualify.is_none()
        && select.projection.iter().all(simple);
    is_plain.then_some(select)
}

/// The rows of a query as a select without a list, and the value of a row. Only names of the query have a meaning there.
fn rows(query: &ast::Query) -> (ast::Select, Ast) {
    if let Some(select) = plain(query)
        && let [SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }] =
            select.projection.as_slice()
    {
        return (select.clone(), item.clone());
    }
    (select_from(query, true), value())
}

/// `(SELECT value FROM ...)`
fn value_of(mut select: ast::Select, value: Ast) -> Ast {
    select.projection = vec![SelectItem::UnnamedExpr(value)];
    Ast::Subquery(Box::new(query_of(ast::SetExpr::Select(Box::new(select)))))
}

/// The least or greatest value.
pub(super) fn extreme(query: &ast::Query, function: &str) -> Ast {
    let (rows, value) = rows(query);
    value_of(rows, call(function, vec![value]))
}

/// Whether there are rows.
pub(super) fn any_rows(query: &ast::Query) -> Ast {
    any_of(plain(query).cloned().unwrap_or_else(|| select_from(query, false)))
}

/// Whether there is a row whose value equals an expression.
pub(super) fn any_equal(query: &ast::Query, expression: &Ast) -> Ast {
    // The expression is from outside: beside the query's own tables its names could mean something else.
    let mut rows = select_from(query, true);
    rows.selection = Some(binary(value(), BinaryOperator::Eq, nested(expression.clone())));
    any_of(rows)
}

/// Whether a comparison of an expression with the rows is NULL for one of them: it is compared with a NULL.
pub(super) fn hangs_on_null(expression: &Ast, query: &ast::Query) -> Ast {
    let is_null = |expression: Ast| Ast::IsNull(Box::new(nested(expression)));
    let (mut rows, value) = rows(query);
    rows.selection = Some(match rows.selection.take() {
        Some(condition) => binary(nested(condition), BinaryOperator::And, is_null(value)),
        None => is_null(value),
    });
    let unknown = binary(is_null(expression.clone()), BinaryOperator::And, any_rows(query));
    binary(any_of(rows), BinaryOperator::Or, unknown)
}

/// `(SELECT count(*) FROM ...) > 0`
fn any_of(select: ast::Select) -> Ast {
    binary(value_of(select, count_rows()), BinaryOperator::Gt, number("0"))
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

/// A whole number.
pub(super) fn number(digits: &str) -> Ast {
    constant(ast::Value::Number(digits.to_string(), false))
}

fn constant(value: ast::Value) -> Ast {
    Ast::Value(value.with_empty_span())
}

/// `(left op right)`
pub(super) fn binary(left: Ast, op: BinaryOperator, right: Ast) -> Ast {
    nested(Ast::BinaryOp { left: Box::new(left), op, right: Box::new(right) })
}

/// `(expression)`
pub(super) fn nested(expression: Ast) -> Ast {
    Ast::Nested(Box::new(expression))
}

/// What is known of a condition over rows: a value if the one part of it is true, NULL if the other is, else the opposite.
pub(super) fn three_valued(decided: Ast, value: bool, unknown: Ast) -> Ast {
    let when = |condition, value| ast::CaseWhen { condition, result: constant(value) };
    Ast::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![when(decided, ast::Value::Boolean(value)), when(unknown, ast::Value::Null)],
        else_result: Some(Box::new(constant(ast::Value::Boolean(!value)))),
    }
}
