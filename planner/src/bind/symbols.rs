//! Operators and clauses that are other expressions in DataFusion: `~x`, `@x`, `|/x`, `^@`, ESCAPE, LIKE ANY,
//! ARRAY(query), substring of a pattern.

use datafusion::sql::sqlparser::ast::{self, BinaryOperator, Expr as Ast, SelectItem, UnaryOperator};
use plan::{PlanError, SqlState};

use super::operators::{call, cast_as, text};
use super::subquery_rows::{binary, named_rows, nested, number, select_from_columns};
use crate::windows::query_of;

/// Rewrites one expression of a syntax tree.
pub(super) fn rewrite(expression: &mut Ast) -> Result<(), PlanError> {
    let rewritten = match &*expression {
        Ast::UnaryOp { op, expr } => {
            let operand = expr.as_ref().clone();
            match op {
                UnaryOperator::BitwiseNot => {
                    let ones = Ast::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number("1")) };
                    binary(nested(operand), BinaryOperator::PGBitwiseXor, nested(ones))
                }
                UnaryOperator::PGAbs => call("abs", vec![operand]),
                UnaryOperator::PGSquareRoot => call("sqrt", vec![cast_as(operand, ast::DataType::DoublePrecision)]),
                UnaryOperator::PGCubeRoot => call("cbrt", vec![cast_as(operand, ast::DataType::DoublePrecision)]),
                _ => return Ok(()),
            }
        }
        Ast::BinaryOp { left, op: BinaryOperator::PGStartsWith, right } => {
            call("starts_with", vec![left.as_ref().clone(), right.as_ref().clone()])
        }
        Ast::Like { .. } | Ast::ILike { .. } => return rewrite_like(expression),
        Ast::CompoundFieldAccess { .. } => {
            fill_slices(expression);
            return Ok(());
        }
        Ast::Function(function) => match array_of_query(function) {
            Some(array) => array,
            None => return Ok(()),
        },
        Ast::Substring { expr, substring_from: Some(from), substring_for: None, .. } if is_text_literal(from) => {
            call("regexp_substring", vec![expr.as_ref().clone(), from.as_ref().clone()])
        }
        _ => return Ok(()),
    };
    *expression = rewritten;
    Ok(())
}

fn is_text_literal(expression: &Ast) -> bool {
    matches!(expression, Ast::Value(value) if matches!(value.value, ast::Value::SingleQuotedString(_)))
}

/// A slice without a bound reaches to the end of the array.
fn fill_slices(expression: &mut Ast) {
    let Ast::CompoundFieldAccess { access_chain, .. } = expression else { return };
    for access in access_chain {
        if let ast::AccessExpr::Subscript(ast::Subscript::Slice { lower_bound, upper_bound, .. }) = access {
            lower_bound.get_or_insert_with(|| number("1"));
            upper_bound.get_or_insert_with(|| number("2147483647"));
        }
    }
}

/// LIKE ANY (ARRAY[...]) as a condition for each pattern; and an escape of its own as a backslash.
fn rewrite_like(expression: &mut Ast) -> Result<(), PlanError> {
    let (Ast::Like { negated, any, expr, pattern, escape_char }
    | Ast::ILike { negated, any, expr, pattern, escape_char }) = expression
    else {
        return Ok(());
    };
    if *any && let Some(patterns) = items(pattern) {
        let (negated, operand, escape) = (*negated, expr.clone(), escape_char.clone());
        let is_like = matches!(expression, Ast::Like { .. });
        let each = patterns.into_iter().map(|pattern| {
            let (expr, pattern, escape_char) = (operand.clone(), Box::new(pattern), escape.clone());
            nested(match is_like {
                true => Ast::Like { negated, any: false, expr, pattern, escape_char },
                false => Ast::ILike { negated, any: false, expr, pattern, escape_char },
            })
        });
        if let Some(any) = each.reduce(|left, right| binary(left, BinaryOperator::Or, right)) {
            *expression = nested(any);
        }
        return Ok(());
    }
    let escape = match escape_char.as_ref().map(|escape| escape.value.clone()) {
        Some(ast::Value::SingleQuotedString(escape)) if escape != "\\" => escape,
        _ => return Ok(()),
    };
    let mut letters = escape.chars();
    let (letter, more) = (letters.next(), letters.next());
    if more.is_some() {
        return Err(PlanError::new(SqlState::INVALID_PARAMETER_VALUE, "invalid escape string")
            .with_hint("Escape string must be empty or one character."));
    }
    if let Ast::Value(value) = pattern.as_ref()
        && let ast::Value::SingleQuotedString(written) = &value.value
    {
        **pattern = text(with_backslashes(written, letter));
        *escape_char = None;
    }
    Ok(())
}

/// A pattern with backslashes where it has another escape; without one, a backslash is a letter like others.
fn with_backslashes(pattern: &str, escape: Option<char>) -> String {
    let mut out = String::with_capacity(pattern.len() + 4);
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        if Some(letter) == escape {
            out.push('\\');
            out.extend(letters.next());
        } else {
            if letter == '\\' {
                out.push('\\');
            }
            out.push(letter);
        }
    }
    out
}

fn items(pattern: &Ast) -> Option<Vec<Ast>> {
    match pattern {
        Ast::Array(array) => Some(array.elem.clone()),
        Ast::Nested(inner) => items(inner),
        Ast::Tuple(items) => Some(items.clone()),
        _ => None,
    }
}

/// `ARRAY(query)`: an aggregate of the query's rows, in their order.
fn array_of_query(function: &ast::Function) -> Option<Ast> {
    let ast::FunctionArguments::Subquery(query) = &function.args else { return None };
    let [ast::ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
    if !name.value.eq_ignore_ascii_case("array") {
        return None;
    }
    let mut query = query.as_ref().clone();
    let order = take_order(&mut query);
    let columns = 1 + order.len();
    let mut names = named_rows(columns).into_iter();
    let value = names.next()?;
    let order = order.into_iter().zip(names).map(|(item, name)| ast::OrderByExpr { expr: name, ..item }).collect();
    let mut all = call("array_agg", vec![value]);
    if let Ast::Function(aggregate) = &mut all
        && let ast::FunctionArguments::List(list) = &mut aggregate.args
        && columns > 1
    {
        list.clauses.push(ast::FunctionArgumentClause::OrderBy(order));
    }
    let mut select = select_from_columns(&query, columns);
    select.projection = vec![SelectItem::UnnamedExpr(call(super::one_row::OR_EMPTY, vec![all]))];
    Some(Ast::Subquery(Box::new(query_of(ast::SetExpr::Select(Box::new(select))))))
}

/// The order of a plain query's rows, whose keys become columns after its own.
fn take_order(query: &mut ast::Query) -> Vec<ast::OrderByExpr> {
    let ast::SetExpr::Select(select) = query.body.as_mut() else { return Vec::new() };
    let Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(order), .. }) = &query.order_by else {
        return Vec::new();
    };
    let mut order = order.clone();
    let [SelectItem::UnnamedExpr(item) | SelectItem::ExprWithAlias { expr: item, .. }] = select.projection.as_slice()
    else {
        return Vec::new();
    };
    if select.distinct.is_some() {
        return Vec::new();
    }
    let item = item.clone();
    for key in &mut order {
        // ORDER BY 1 is the item.
        if matches!(&key.expr, Ast::Value(value) if matches!(&value.value, ast::Value::Number(digits, _) if digits == "1"))
        {
            key.expr = item.clone();
        }
    }
    let keys = order.iter().enumerate().map(|(place, key)| SelectItem::ExprWithAlias {
        expr: key.expr.clone(),
        alias: ast::Ident::with_quote('"', format!("?key {place}")),
    });
    select.projection.extend(keys);
    if query.limit_clause.is_none() && query.fetch.is_none() {
        query.order_by = None;
    }
    order
}
