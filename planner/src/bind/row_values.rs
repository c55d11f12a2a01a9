//! Comparisons of rows as conditions over their parts.
//!
//! Rows are equal if all parts are, and ordered by the first parts that differ. A NULL among the parts that decide makes
//! the comparison NULL.

use datafusion::sql::sqlparser::ast::{self, BinaryOperator, Expr as Ast, SelectItem};

use super::operators::call;
use super::subquery_rows::{binary, named_rows, nested, select_from_columns, three_valued};
use crate::parse::fold;
use crate::windows::query_of;

/// The parts of a row.
fn parts(expression: &Ast) -> Option<Vec<Ast>> {
    match expression {
        Ast::Nested(inner) => parts(inner),
        Ast::Tuple(items) if !items.is_empty() => Some(items.clone()),
        Ast::Function(function) => {
            let [ast::ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
            let ast::FunctionArguments::List(list) = &function.args else { return None };
            if fold(name) != "row" || list.args.is_empty() {
                return None;
            }
            let items = list.args.iter().map(|argument| match argument {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(item)) => Some(item.clone()),
                _ => None,
            });
            items.collect()
        }
        _ => None,
    }
}

fn all(conditions: impl Iterator<Item = Ast>, op: &BinaryOperator) -> Option<Ast> {
    conditions.reduce(|left, right| binary(left, op.clone(), right))
}

/// A comparison of rows of one length; none if the operator does not compare.
fn compared(left: &[Ast], op: &BinaryOperator, right: &[Ast]) -> Option<Ast> {
    use BinaryOperator::{And, Eq, Gt, GtEq, Lt, LtEq, NotEq, Or};
    if left.len() != right.len() {
        return None;
    }
    let pairs = left.iter().zip(right);
    let compare =
        |op: BinaryOperator| pairs.clone().map(move |(l, r)| binary(nested(l.clone()), op.clone(), nested(r.clone())));
    let strict = match op {
        Eq => return all(compare(Eq), &And),
        NotEq => return all(compare(NotEq), &Or),
        Lt | LtEq => Lt,
        Gt | GtEq => Gt,
        _ => return None,
    };
    // From the last part backwards: it decides if those before are equal.
    let mut result = None;
    for (place, (l, r)) in left.iter().zip(right).enumerate().rev() {
        let (l, r) = (nested(l.clone()), nested(r.clone()));
        let op = if place + 1 == left.len() { op } else { &strict };
        let decides = binary(l.clone(), op.clone(), r.clone());
        result = Some(match result {
            None => decides,
            Some(rest) => binary(decides, Or, binary(binary(l, Eq, r), And, rest)),
        });
    }
    result
}

/// IN of VALUES is IN of a list.
fn list_of_values(expression: &mut Ast) {
    let Ast::InSubquery { expr, subquery, negated } = expression else { return };
    let ast::SetExpr::Values(values) = subquery.body.as_ref() else { return };
    let plain = subquery.with.is_none()
        && subquery.limit_clause.is_none()
        && subquery.fetch.is_none()
        && values.rows.iter().all(|row| !row.is_empty());
    if plain {
        let rows = values.rows.iter().map(|row| match row.as_slice() {
            [item] => item.clone(),
            items => Ast::Tuple(items.to_vec()),
        });
        *expression = Ast::InList { expr: expr.clone(), list: rows.collect(), negated: *negated };
    }
}

/// Rewrites comparisons, IN, IS NULL and OVERLAPS of rows.
pub(super) fn rewrite(expression: &mut Ast) {
    list_of_values(expression);
    let rewritten = match expression {
        Ast::BinaryOp { left, op: BinaryOperator::Overlaps, right } => match (parts(left), parts(right)) {
            (Some(left), Some(right)) => Some(call("overlaps", left.into_iter().chain(right).collect())),
            _ => None,
        },
        Ast::BinaryOp { left, op, right } => match (parts(left), parts(right)) {
            (Some(left), Some(right)) => compared(&left, op, &right),
            (Some(left), None) => compared_with_query(&left, op, right),
            _ => None,
        },
        Ast::InList { expr, list, negated } => in_list(expr, list, *negated),
        Ast::InSubquery { expr, subquery, negated } => in_query(expr, subquery, *negated),
        Ast::IsNull(row) => parts(row).and_then(|parts| {
            all(parts.into_iter().map(|part| Ast::IsNull(Box::new(nested(part)))), &BinaryOperator::And)
        }),
        Ast::IsNotNull(row) => parts(row).and_then(|parts| {
            all(parts.into_iter().map(|part| Ast::IsNotNull(Box::new(nested(part)))), &BinaryOperator::And)
        }),
        _ => None,
    };
    if let Some(rewritten) = rewritten {
        *expression = nested(rewritten);
    }
}

fn in_list(row: &Ast, list: &[Ast], negated: bool) -> Option<Ast> {
    let row = parts(row)?;
    let equal = list.iter().map(|item| compared(&row, &BinaryOperator::Eq, &parts(item)?));
    let equal = all(equal.collect::<Option<Vec<Ast>>>()?.into_iter(), &BinaryOperator::Or)?;
    Some(if negated { Ast::UnaryOp { op: ast::UnaryOperator::Not, expr: Box::new(equal) } } else { equal })
}

/// `(SELECT left op values FROM (query))`
fn compared_with_query(left: &[Ast], op: &BinaryOperator, right: &Ast) -> Option<Ast> {
    let Ast::Subquery(query) = right else { return None };
    let condition = compared(left, op, &named_rows(left.len()))?;
    let mut select = select_from_columns(query, left.len());
    select.projection = vec![SelectItem::UnnamedExpr(condition)];
    Some(Ast::Subquery(Box::new(query_of(ast::SetExpr::Select(Box::new(select))))))
}

fn exists(query: &ast::Query, columns: usize, condition: Ast, negated: bool) -> Ast {
    let mut select = select_from_columns(query, columns);
    select.projection = vec![SelectItem::UnnamedExpr(super::subquery_rows::number("1"))];
    select.selection = Some(condition);
    Ast::Exists { subquery: Box::new(query_of(ast::SetExpr::Select(Box::new(select)))), negated }
}

fn in_query(row: &Ast, query: &ast::Query, negated: bool) -> Option<Ast> {
    let row = parts(row)?;
    let equal = compared(&row, &BinaryOperator::Eq, &named_rows(row.len()))?;
    let unknown = exists(query, row.len(), Ast::IsNull(Box::new(equal.clone())), false);
    Some(three_valued(exists(query, row.len(), equal, false), !negated, unknown))
}

/// A row IN the rows of a query, where it only matters whether that is true.
pub(super) fn condition(expression: &Ast) -> Option<Ast> {
    let Ast::InSubquery { expr, subquery, negated } = expression else { return None };
    let row = parts(expr)?;
    let equal = compared(&row, &BinaryOperator::Eq, &named_rows(row.len()))?;
    let condition = if *negated { Ast::IsNotFalse(Box::new(equal)) } else { equal };
    Some(exists(subquery, row.len(), condition, *negated))
}
