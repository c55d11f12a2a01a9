//! `GROUP BY TUMBLE(ts, size)`, with TUMBLE_START, TUMBLE_END in the select list: rewritten to the form in FROM, so
//! that both are the same plan. Over a join there is no one relation to wrap: there the window becomes the functions
//! tumble_start and tumble_end of its time.

use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Expr as Ast, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident,
    OrderByExpr, Select, SelectItem, SetExpr, TableFactor,
};
use plan::{PlanError, SqlState};

use super::arguments::{Kind, check_text};
use super::{WINDOW_END, WINDOW_START, query_of, select_of, table_factor};
use crate::bind::{call, text_ast, walk};
use crate::parse::fold;

/// The window of a GROUP BY.
struct GroupWindow {
    kind: Kind,
    /// Time and intervals.
    args: Vec<Ast>,
}

/// Rewrites a select and the ORDER BY that belongs to it.
pub(crate) fn rewrite(select: &mut Select, order_by: &mut [OrderByExpr]) -> Result<(), PlanError> {
    let Some(window) = find(&select.group_by)? else { return Ok(()) };
    let least = window.kind.interval_names().len();
    if !(least..=least + 1).contains(&window.args.len()) {
        return Err(PlanError::new(
            SqlState::SYNTAX_ERROR,
            format!("{} in GROUP BY takes {least} or {} arguments, not {}", window.kind, least + 1, window.args.len()),
        ));
    }
    check_text(window.kind, &window.args[1..])?;
    let one_relation = matches!(select.from.as_slice(), [from] if from.joins.is_empty());
    let (start, end) = if one_relation {
        let from = std::mem::take(&mut select.from);
        select.from = from
            .into_iter()
            .map(|from| Ok(ast::TableWithJoins { relation: wrap(&window, from.relation)?, joins: Vec::new() }))
            .collect::<Result<_, PlanError>>()?;
        (name(WINDOW_START), name(WINDOW_END))
    } else {
        over_join(select, &window)?
    };
    replace_group_by(&mut select.group_by, &window, &start, &end);
    let bounds = Bounds { window: &window, start, end };
    let replace = |expression: &mut Ast| walk::expression_parts(expression, &mut |part| bounds.replace(part));
    for item in &mut select.projection {
        if let SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } = item {
            replace(expression)?;
        }
    }
    for expression in [&mut select.having, &mut select.qualify].into_iter().flatten() {
        replace(expression)?;
    }
    for item in order_by {
        replace(&mut item.expr)?;
    }
    Ok(())
}

fn name(name: &str) -> Ast {
    Ast::Identifier(Ident::new(name))
}

/// The window call of a function, if it is one.
fn window_call(expression: &Ast) -> Result<Option<GroupWindow>, PlanError> {
    let Ast::Function(function) = expression else { return Ok(None) };
    let Some(kind) = Kind::of(&function.name)? else { return Ok(None) };
    Ok(arguments(function).map(|args| GroupWindow { kind, args }))
}

fn arguments(function: &ast::Function) -> Option<Vec<Ast>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    list.args
        .iter()
        .map(|arg| match arg {
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => Some(value.clone()),
            _ => None,
        })
        .collect()
}

/// The one window of a GROUP BY.
fn find(group_by: &GroupByExpr) -> Result<Option<GroupWindow>, PlanError> {
    let GroupByExpr::Expressions(expressions, _) = group_by else { return Ok(None) };
    let mut found: Option<GroupWindow> = None;
    let mut all: Vec<&Ast> = Vec::new();
    for expression in expressions {
        match expression {
            Ast::Rollup(sets) | Ast::Cube(sets) | Ast::GroupingSets(sets) => all.extend(sets.iter().flatten()),
            other => all.push(other),
        }
    }
    for expression in all {
        let Some(window) = window_call(expression)? else { continue };
        if let Some(first) = &found
            && !same(&first.args, &window.args)
        {
            return Err(PlanError::unsupported("GROUP BY over two different windows"));
        }
        found = Some(window);
    }
    Ok(found)
}

fn same(left: &[Ast], right: &[Ast]) -> bool {
    left.len() == right.len()
        && left.iter().zip(right).all(|(left, right)| left.to_string().eq_ignore_ascii_case(&right.to_string()))
}

/// The relation with its windows: WINDOW(relation, time, intervals) under the relation's name.
fn wrap(window: &GroupWindow, relation: TableFactor) -> Result<TableFactor, PlanError> {
    let (data, alias) = match relation {
        TableFactor::Table { name, alias, args: None, .. } => {
            let parts: Vec<Ident> = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
            let alias = alias.or_else(|| parts.last().map(|ident| alias_of(ident.clone())));
            (Ast::CompoundIdentifier(parts), alias)
        }
        TableFactor::Derived { lateral: false, subquery, alias, .. } => (Ast::Subquery(subquery), alias),
        other => {
            let alias = match &other {
                TableFactor::Table { alias, .. }
                | TableFactor::Derived { alias, .. }
                | TableFactor::TableFunction { alias, .. }
                | TableFactor::Function { alias, .. }
                | TableFactor::UNNEST { alias, .. } => alias.clone(),
                _ => None,
            };
            let all = vec![SelectItem::Wildcard(ast::WildcardAdditionalOptions::default())];
            let plain_alias = alias.map(|alias| ast::TableAlias { columns: Vec::new(), ..alias });
            let query = query_of(SetExpr::Select(Box::new(select_of(all, other))));
            (Ast::Subquery(Box::new(query)), plain_alias)
        }
    };
    let data = match data {
        Ast::CompoundIdentifier(mut parts) if parts.len() == 1 => Ast::Identifier(parts.remove(0)),
        data => data,
    };
    let mut time = window.args[0].clone();
    let qualifier = alias.as_ref().map(|alias| fold(&alias.name));
    // Inside of the window its input does not have the relation's name.
    let plain = &mut |part: &mut Ast| {
        if let Ast::CompoundIdentifier(parts) = part
            && let [first, column] = parts.as_slice()
            && Some(fold(first)) == qualifier
        {
            *part = Ast::Identifier(column.clone());
        }
        Ok(())
    };
    walk::expression_parts(&mut time, plain)?;
    let args = std::iter::once(data)
        .chain(std::iter::once(time))
        .chain(window.args[1..].iter().cloned())
        .map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg)))
        .collect();
    let function = ast::ObjectName(vec![ast::ObjectNamePart::Identifier(Ident::new(window.kind.to_string()))]);
    Ok(table_factor(function, alias, Some(args)))
}

fn alias_of(name: Ident) -> ast::TableAlias {
    ast::TableAlias { explicit: true, name, columns: Vec::new(), at: None }
}

/// Over a join: the bounds as functions, and no rows without a time.
fn over_join(select: &mut Select, window: &GroupWindow) -> Result<(Ast, Ast), PlanError> {
    if window.kind == Kind::Hop {
        return Err(PlanError::unsupported("GROUP BY HOP over a join")
            .with_hint("Put the join into a subquery and write FROM HOP((SELECT ...), time column, slide, size)."));
    }
    let has_time = Ast::IsNotNull(Box::new(Ast::Nested(Box::new(window.args[0].clone()))));
    select.selection = Some(match select.selection.take() {
        None => has_time,
        Some(condition) => Ast::BinaryOp {
            left: Box::new(Ast::Nested(Box::new(condition))),
            op: BinaryOperator::And,
            right: Box::new(has_time),
        },
    });
    Ok((call("tumble_start", window.args.clone()), call("tumble_end", window.args.clone())))
}

/// The window in GROUP BY becomes its two bounds.
fn replace_group_by(group_by: &mut GroupByExpr, window: &GroupWindow, start: &Ast, end: &Ast) {
    let GroupByExpr::Expressions(expressions, _) = group_by else { return };
    let is_window =
        |expression: &Ast| window_call(expression).ok().flatten().is_some_and(|found| same(&found.args, &window.args));
    let replaced = |list: &mut Vec<Ast>| {
        *list = std::mem::take(list)
            .into_iter()
            .flat_map(|item| if is_window(&item) { vec![start.clone(), end.clone()] } else { vec![item] })
            .collect();
    };
    for expression in expressions.iter_mut() {
        if let Ast::Rollup(sets) | Ast::Cube(sets) | Ast::GroupingSets(sets) = expression {
            sets.iter_mut().for_each(replaced);
        }
    }
    replaced(expressions);
}

/// Replaces TUMBLE_START(...) and its like by the window's bounds.
struct Bounds<'a> {
    window: &'a GroupWindow,
    start: Ast,
    end: Ast,
}

impl Bounds<'_> {
    fn replace(&self, expression: &mut Ast) -> Result<(), PlanError> {
        let Ast::Function(function) = expression else { return Ok(()) };
        let [ast::ObjectNamePart::Identifier(ident)] = function.name.0.as_slice() else {
            return Ok(());
        };
        let prefix = self.window.kind.to_string().to_lowercase();
        let called = fold(ident);
        let Some(suffix) = called.strip_prefix(&prefix) else { return Ok(()) };
        let value = match suffix {
            // Over a join the bounds are these functions themselves.
            "_start" | "_end" if matches!(self.start, Ast::Function(_)) => return Ok(()),
            "" | "_start" => self.start.clone(),
            "_end" => self.end.clone(),
            "_rowtime" => Ast::BinaryOp {
                left: Box::new(self.end.clone()),
                op: BinaryOperator::Minus,
                right: Box::new(Ast::Interval(ast::Interval {
                    value: Box::new(text_ast("1 millisecond".to_string())),
                    leading_field: None,
                    leading_precision: None,
                    last_field: None,
                    fractional_seconds_precision: None,
                })),
            },
            _ => return Ok(()),
        };
        let args = arguments(function).unwrap_or_default();
        if !same(&args, &self.window.args) {
            let called = called.to_uppercase();
            return Err(PlanError::new(
                SqlState::GROUPING_ERROR,
                format!("{called} must have the arguments of the {} in GROUP BY", self.window.kind),
            ));
        }
        *expression = Ast::Nested(Box::new(value));
        Ok(())
    }
}
