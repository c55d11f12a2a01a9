//! `GROUP BY TUMBLE(ts, size)`, with TUMBLE_START, TUMBLE_END in the select list: rewritten to the form in FROM, so
//! that both are the same plan. A join is passed on as a whole, so that its columns keep the names of their relations.
//! Sessions are parted by the other keys of GROUP BY.

use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Expr as Ast, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, Ident,
    OrderByExpr, Select, SelectItem, SetExpr, TableFactor,
};
use plan::{PlanError, SqlState};

use super::arguments::{JOIN, Kind, PARTITION, check_text};
use super::{WINDOW_END, WINDOW_START, query_of, select_of, table_factor};
use crate::bind::{text_ast, walk};
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
    // The time comes before them.
    if !window.args.len().checked_sub(1).is_some_and(|intervals| window.kind.intervals().contains(&intervals)) {
        return Err(PlanError::new(
            SqlState::SYNTAX_ERROR,
            format!(
                "{} in GROUP BY takes {} arguments, not {}",
                window.kind,
                window.kind.number_of_arguments(1),
                window.args.len()
            ),
        ));
    }
    check_text(window.kind, &window.args[1..])?;
    let partition = if window.kind == Kind::Session { other_keys(select, &window)? } else { Vec::new() };
    let relation = wrap(&window, partition, std::mem::take(&mut select.from))?;
    select.from = vec![ast::TableWithJoins { relation, joins: Vec::new() }];
    replace_group_by(&mut select.group_by, &window);
    let replace = |expression: &mut Ast| walk::expression_parts(expression, &mut |part| replace_bound(&window, part));
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
fn window_call(expression: &Ast) -> Option<GroupWindow> {
    let Ast::Function(function) = expression else { return None };
    let kind = Kind::of(&function.name)?;
    arguments(function).map(|args| GroupWindow { kind, args })
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
        let Some(window) = window_call(expression) else { continue };
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

/// What sessions are parted by: the other keys.
fn other_keys(select: &Select, window: &GroupWindow) -> Result<Vec<Ast>, PlanError> {
    let GroupByExpr::Expressions(expressions, _) = &select.group_by else { return Ok(Vec::new()) };
    let mut keys = Vec::new();
    for expression in expressions {
        match expression {
            Ast::Rollup(_) | Ast::Cube(_) | Ast::GroupingSets(_) => {
                return Err(PlanError::unsupported("GROUP BY SESSION with grouping sets").with_hint(
                    "Write FROM SESSION(table PARTITION BY column, ..., time column, gap) and group by window_start and window_end.",
                ));
            }
            bound if replaced_bound(window, bound)?.is_some() => {}
            Ast::Value(value) => keys.extend(numbered(select, &value.value)),
            Ast::Identifier(name) => keys.push(by_name(select, name)),
            other => keys.push(other.clone()),
        }
    }
    Ok(keys)
}

/// The item of the select list that a number in GROUP BY stands for. A constant parts nothing.
fn numbered(select: &Select, value: &ast::Value) -> Option<Ast> {
    let ast::Value::Number(number, _) = value else { return None };
    let place = number.parse::<usize>().ok()?.checked_sub(1)?;
    match select.projection.get(place)? {
        SelectItem::UnnamedExpr(expression) | SelectItem::ExprWithAlias { expr: expression, .. } => {
            Some(expression.clone())
        }
        _ => None,
    }
}

/// A name in GROUP BY: of a column, or else of an item of the select list; see [`super::arguments::partition`].
fn by_name(select: &Select, name: &Ident) -> Ast {
    let item = select.projection.iter().find_map(|item| match item {
        SelectItem::ExprWithAlias { expr, alias } if fold(alias) == fold(name) => Some(expr.clone()),
        _ => None,
    });
    match item {
        Some(item) => Ast::Tuple(vec![Ast::Identifier(name.clone()), item]),
        None => Ast::Identifier(name.clone()),
    }
}

/// The relations of a FROM with windows: WINDOW(relation, time, intervals), under the relation's name if it is one.
fn wrap(
    window: &GroupWindow,
    mut partition: Vec<Ast>,
    mut from: Vec<ast::TableWithJoins>,
) -> Result<TableFactor, PlanError> {
    let is_join = from.len() != 1 || from.iter().any(|item| !item.joins.is_empty());
    let mut time = window.args[0].clone();
    let (data, alias) = match from.pop() {
        Some(only) if !is_join => {
            let (data, alias) = relation_as_argument(only.relation);
            let qualifier = alias.as_ref().map(|alias| fold(&alias.name));
            for expression in std::iter::once(&mut time).chain(&mut partition) {
                without_qualifier(expression, qualifier.as_deref())?;
            }
            (FunctionArg::Unnamed(FunctionArgExpr::Expr(data)), alias)
        }
        Some(last) => {
            from.push(last);
            (named(JOIN, Ast::Subquery(Box::new(all_of(from)))), None)
        }
        None => return Err(PlanError::new(SqlState::SYNTAX_ERROR, format!("{} without FROM", window.kind))),
    };
    let mut args = vec![data];
    if !partition.is_empty() {
        args.push(named(PARTITION, Ast::Tuple(partition)));
    }
    let rest = std::iter::once(time).chain(window.args[1..].iter().cloned());
    args.extend(rest.map(|arg| FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))));
    let function = ast::ObjectName(vec![ast::ObjectNamePart::Identifier(Ident::new(window.kind.to_string()))]);
    Ok(table_factor(function, alias, Some(args)))
}

fn named(name: &str, value: Ast) -> FunctionArg {
    FunctionArg::Named {
        name: Ident::with_quote('"', name),
        arg: FunctionArgExpr::Expr(value),
        operator: ast::FunctionArgOperator::RightArrow,
    }
}

/// A relation as the first argument of a window, and its name.
fn relation_as_argument(relation: TableFactor) -> (Ast, Option<ast::TableAlias>) {
    match relation {
        TableFactor::Table { name, alias, args: None, .. } => {
            let mut parts: Vec<Ident> = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
            let alias = alias.or_else(|| parts.last().map(|ident| alias_of(ident.clone())));
            let data = match parts.len() {
                1 => Ast::Identifier(parts.remove(0)),
                _ => Ast::CompoundIdentifier(parts),
            };
            (data, alias)
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
            let plain_alias = alias.map(|alias| ast::TableAlias { columns: Vec::new(), ..alias });
            let from = vec![ast::TableWithJoins { relation: other, joins: Vec::new() }];
            (Ast::Subquery(Box::new(all_of(from))), plain_alias)
        }
    }
}

/// All columns of a FROM, whose items become one join.
fn all_of(from: Vec<ast::TableWithJoins>) -> ast::Query {
    let all = vec![SelectItem::Wildcard(ast::WildcardAdditionalOptions::default())];
    let mut items = from.into_iter();
    let first = items.next();
    let factor = |item: ast::TableWithJoins| match item.joins.is_empty() {
        true => item.relation,
        false => TableFactor::NestedJoin { table_with_joins: Box::new(item), alias: None },
    };
    let crossed = items.map(|item| ast::Join {
        relation: factor(item),
        global: false,
        join_operator: ast::JoinOperator::CrossJoin(ast::JoinConstraint::None),
    });
    let joined = first.map(|mut first| {
        first.joins.extend(crossed);
        first
    });
    let mut select = select_of(all, table_factor(ast::ObjectName(Vec::new()), None, None));
    select.from = joined.into_iter().collect();
    query_of(SetExpr::Select(Box::new(select)))
}

/// Inside of the window its input does not have the relation's name.
fn without_qualifier(expression: &mut Ast, qualifier: Option<&str>) -> Result<(), PlanError> {
    let plain = &mut |part: &mut Ast| {
        if let Ast::CompoundIdentifier(parts) = part
            && let [first, column] = parts.as_slice()
            && Some(fold(first).as_str()) == qualifier
        {
            *part = Ast::Identifier(column.clone());
        }
        Ok(())
    };
    walk::expression_parts(expression, plain)
}

fn alias_of(name: Ident) -> ast::TableAlias {
    ast::TableAlias { explicit: true, name, columns: Vec::new(), at: None }
}

/// The window in GROUP BY becomes its two bounds.
fn replace_group_by(group_by: &mut GroupByExpr, window: &GroupWindow) {
    let GroupByExpr::Expressions(expressions, _) = group_by else { return };
    let is_window = |expression: &Ast| window_call(expression).is_some_and(|found| same(&found.args, &window.args));
    let replaced = |list: &mut Vec<Ast>| {
        *list = std::mem::take(list)
            .into_iter()
            .flat_map(|item| if is_window(&item) { vec![name(WINDOW_START), name(WINDOW_END)] } else { vec![item] })
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
fn replace_bound(window: &GroupWindow, expression: &mut Ast) -> Result<(), PlanError> {
    if let Some(bound) = replaced_bound(window, expression)? {
        *expression = Ast::Nested(Box::new(bound));
    }
    Ok(())
}

/// What stands for TUMBLE_START(...) and its like; none for anything else.
fn replaced_bound(window: &GroupWindow, expression: &Ast) -> Result<Option<Ast>, PlanError> {
    let Ast::Function(function) = expression else { return Ok(None) };
    let [ast::ObjectNamePart::Identifier(ident)] = function.name.0.as_slice() else { return Ok(None) };
    // A call with OVER is the window function of that name.
    if function.over.is_some() {
        return Ok(None);
    }
    let prefix = window.kind.to_string().to_lowercase();
    let called = fold(ident);
    let Some(suffix) = called.strip_prefix(&prefix) else { return Ok(None) };
    let value = match suffix {
        "" | "_start" => name(WINDOW_START),
        "_end" => name(WINDOW_END),
        "_rowtime" => Ast::BinaryOp {
            left: Box::new(name(WINDOW_END)),
            op: BinaryOperator::Minus,
            right: Box::new(Ast::Interval(ast::Interval {
                value: Box::new(text_ast("1 millisecond".to_string())),
                leading_field: None,
                leading_precision: None,
                last_field: None,
                fractional_seconds_precision: None,
            })),
        },
        _ => return Ok(None),
    };
    let args = arguments(function).unwrap_or_default();
    if !same(&args, &window.args) {
        let called = called.to_uppercase();
        return Err(PlanError::new(
            SqlState::GROUPING_ERROR,
            format!("{called} must have the arguments of the {} in GROUP BY", window.kind),
        ));
    }
    Ok(Some(value))
}
