//! JOIN ... USING and NATURAL JOIN as joins with ON.
//!
//! Their columns are merged: a name of both sides stands, without a qualifier, for one column. It is that of the left side,
//! of a RIGHT JOIN that of the right side, and of a FULL JOIN the first of both that is not NULL. `*` has the merged columns
//! first. DataFusion knows merged columns in select lists only, and takes the left one always.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::helpers::attached_token::AttachedToken;
use datafusion::sql::sqlparser::ast::{
    self, BinaryOperator, Expr as Ast, Ident, JoinConstraint, JoinOperator, SelectItem, TableFactor, VisitMut,
    VisitorMut,
};

use super::context::Context;
use super::names::shown;
use super::operators::call;
use super::subquery_rows::binary;
use super::walk;
use crate::parse::fold;
use crate::windows::{query_of, select_of};

/// Rewrites all selects of a query. What cannot be resolved here is left as it is.
pub(super) fn rewrite(context: &Context<'_>, query: &mut ast::Query) {
    let mut used = Used(false);
    let _: ControlFlow<()> = VisitMut::visit(query, &mut used);
    if used.0 {
        rewrite_query(context, query, &mut Vec::new());
    }
}

/// Whether a join with merged columns is anywhere.
struct Used(bool);

impl VisitorMut for Used {
    type Break = ();

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<()> {
        self.0 |= select.from.iter().any(merges);
        if self.0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

fn constraint(operator: &JoinOperator) -> Option<&JoinConstraint> {
    use JoinOperator::{CrossJoin, FullOuter, Inner, Join, Left, LeftOuter, Right, RightOuter};
    match operator {
        Join(constraint)
        | Inner(constraint)
        | Left(constraint)
        | LeftOuter(constraint)
        | Right(constraint)
        | RightOuter(constraint)
        | FullOuter(constraint)
        | CrossJoin(constraint) => Some(constraint),
        _ => None,
    }
}

fn merges(from: &ast::TableWithJoins) -> bool {
    let nested = |factor: &TableFactor| matches!(factor, TableFactor::NestedJoin { table_with_joins, .. } if merges(table_with_joins));
    nested(&from.relation)
        || from.joins.iter().any(|join| {
            let own = constraint(&join.join_operator);
            matches!(own, Some(JoinConstraint::Using(_) | JoinConstraint::Natural)) || nested(&join.relation)
        })
}

/// A query and those within it, inner ones first. `known` are the WITH queries that it may read.
fn rewrite_query(context: &Context<'_>, query: &mut ast::Query, known: &mut Vec<ast::With>) {
    let outside = known.len();
    let with = query.with.take();
    if let Some(with) = &with {
        known.push(ast::With { cte_tables: Vec::new(), ..with.clone() });
    }
    let rewritten = with.map(|mut with| {
        for table in &mut with.cte_tables {
            rewrite_query(context, &mut table.query, known);
            if let Some(visible) = known.last_mut() {
                visible.cte_tables.push(table.clone());
            }
        }
        with
    });
    let _: ControlFlow<()> = VisitMut::visit(&mut *query.body, &mut Inner { context, known, depth: 0 });
    let mut order_by = match &mut query.order_by {
        Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(items), .. }) => std::mem::take(items),
        _ => Vec::new(),
    };
    for item in &mut order_by {
        let _: ControlFlow<()> = VisitMut::visit(&mut item.expr, &mut Inner { context, known, depth: 0 });
    }
    rewrite_body(context, &mut query.body, &mut order_by, known);
    if let Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(items), .. }) = &mut query.order_by {
        *items = order_by;
    }
    query.with = rewritten;
    known.truncate(outside);
}

/// Rewrites the outermost queries within something.
struct Inner<'a, 'c> {
    context: &'a Context<'c>,
    known: &'a mut Vec<ast::With>,
    depth: usize,
}

impl VisitorMut for Inner<'_, '_> {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<()> {
        if self.depth == 0 {
            rewrite_query(self.context, query, self.known);
        }
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<()> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }
}

fn rewrite_body(
    context: &Context<'_>,
    body: &mut ast::SetExpr,
    order_by: &mut [ast::OrderByExpr],
    known: &[ast::With],
) {
    match body {
        ast::SetExpr::Select(select) if select.from.iter().any(merges) => {
            rewrite_select(context, select, order_by, known);
        }
        ast::SetExpr::SetOperation { left, right, .. } => {
            rewrite_body(context, left, &mut [], known);
            rewrite_body(context, right, &mut [], known);
        }
        _ => {}
    }
}

/// An item of FROM.
#[derive(Clone)]
struct Factor {
    name: Ident,
    /// A query of its rows.
    rows: ast::Query,
}

/// What `*` stands for, in its order.
#[derive(Clone)]
#[allow(clippy::large_enum_variant)]
enum Output {
    Merged(String, Ast),
    /// The columns of a factor, without those that are merged.
    Factor(Factor, Vec<String>),
}

fn rewrite_select(
    context: &Context<'_>,
    select: &mut ast::Select,
    order_by: &mut [ast::OrderByExpr],
    known: &[ast::With],
) {
    let joins = Joins { context, known };
    let mut from = select.from.clone();
    let sides = from.iter_mut().map(|table| joins.table(table)).collect::<Option<Vec<_>>>();
    let Some(outputs) = sides.map(|sides| sides.concat()) else { return };
    select.from = from;
    let wildcard = select.projection.iter().any(|item| matches!(item, SelectItem::Wildcard(_)));
    let names: HashSet<String> = select.projection.iter().filter_map(item_name).collect();
    select.projection = std::mem::take(&mut select.projection)
        .into_iter()
        .flat_map(|item| match item {
            SelectItem::Wildcard(options) if options == ast::WildcardAdditionalOptions::default() => {
                outputs.iter().map(wildcard_item).collect()
            }
            SelectItem::UnnamedExpr(Ast::Identifier(name)) => {
                vec![match merged(&outputs, &name) {
                    Some(expr) => SelectItem::ExprWithAlias { expr, alias: Ident::with_quote('"', fold(&name)) },
                    None => SelectItem::UnnamedExpr(Ast::Identifier(name)),
                }]
            }
            other => vec![other],
        })
        .collect();
    replace(&mut select.projection, &outputs);
    replace(&mut select.selection, &outputs);
    replace(&mut select.group_by, &outputs);
    replace(&mut select.having, &outputs);
    replace(&mut select.named_window, &outputs);
    for item in order_by {
        // A name alone is first of all that of an item.
        let of_item = matches!(&item.expr, Ast::Identifier(name) if wildcard || names.contains(&fold(name)));
        if !of_item {
            replace(&mut item.expr, &outputs);
        }
    }
}

fn item_name(item: &SelectItem) -> Option<String> {
    match item {
        SelectItem::UnnamedExpr(expression) => Some(super::names::name_of(expression)),
        SelectItem::ExprWithAlias { alias, .. } => Some(fold(alias)),
        _ => None,
    }
}

fn merged(outputs: &[Output], name: &Ident) -> Option<Ast> {
    let name = fold(name);
    outputs.iter().find_map(|output| match output {
        Output::Merged(known, expression) if *known == name => Some(expression.clone()),
        _ => None,
    })
}

fn wildcard_item(output: &Output) -> SelectItem {
    match output {
        Output::Merged(name, expr) => {
            SelectItem::ExprWithAlias { expr: expr.clone(), alias: Ident::with_quote('"', name) }
        }
        Output::Factor(factor, merged) => {
            let mut names = merged.iter().map(|name| Ident::with_quote('"', name));
            let opt_except = names
                .next()
                .map(|first_element| ast::ExceptSelectItem { first_element, additional_elements: names.collect() });
            let name = ast::ObjectName(vec![ast::ObjectNamePart::Identifier(factor.name.clone())]);
            SelectItem::QualifiedWildcard(
                ast::SelectItemQualifiedWildcardKind::ObjectName(name),
                ast::WildcardAdditionalOptions { opt_except, ..Default::default() },
            )
        }
    }
}

/// Puts merged columns in the place of their names, outside of subqueries.
fn replace(tree: &mut impl VisitMut, outputs: &[Output]) {
    let mut leave = |expression: &mut Ast| {
        if let Ast::Identifier(name) = expression
            && let Some(column) = merged(outputs, name)
        {
            *expression = column;
        }
        Ok::<(), Infallible>(())
    };
    let Ok(()) = walk::outermost(tree, &mut |_| Ok(()), &mut leave);
}

/// Turns joins into joins with ON. None where a column's table is not known.
struct Joins<'a, 'c> {
    context: &'a Context<'c>,
    known: &'a [ast::With],
}

impl Joins<'_, '_> {
    fn table(&self, table: &mut ast::TableWithJoins) -> Option<Vec<Output>> {
        let mut left = self.factor(&mut table.relation)?;
        for join in &mut table.joins {
            let right = self.factor(&mut join.relation)?;
            left = self.join(left, &mut join.join_operator, right)?;
        }
        Some(left)
    }

    fn factor(&self, factor: &mut TableFactor) -> Option<Vec<Output>> {
        let alias = match factor {
            TableFactor::NestedJoin { table_with_joins, alias: None } => return self.table(table_with_joins),
            TableFactor::Table { alias: None, name, .. } => name.0.last()?.as_ident()?.clone(),
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::Function { alias, .. }
            | TableFactor::UNNEST { alias, .. } => alias.as_ref()?.name.clone(),
            _ => return None,
        };
        let all = SelectItem::Wildcard(ast::WildcardAdditionalOptions::default());
        let rows = query_of(ast::SetExpr::Select(Box::new(select_of(vec![all], factor.clone()))));
        Some(vec![Output::Factor(Factor { name: alias, rows }, Vec::new())])
    }

    fn join(&self, left: Vec<Output>, operator: &mut JoinOperator, right: Vec<Output>) -> Option<Vec<Output>> {
        let names = match constraint(operator)? {
            JoinConstraint::Using(names) => {
                names.iter().map(|name| name.0.last()?.as_ident().map(fold)).collect::<Option<Vec<_>>>()?
            }
            JoinConstraint::Natural => self.common(&left, &right)?,
            JoinConstraint::On(condition) => {
                // What is merged so far can be named in it.
                let outputs = [left, right].concat();
                let mut condition = condition.clone();
                replace(&mut condition, &outputs);
                *operator = with_condition(operator, condition);
                return Some(outputs);
            }
            JoinConstraint::None => return Some([left, right].concat()),
        };
        let (mut left, mut right) = (left, right);
        let mut all = Vec::new();
        let mut condition: Option<Ast> = None;
        for name in names {
            let (own, other) = (self.take(&mut left, &name)?, self.take(&mut right, &name)?);
            let equal = binary(own.clone(), BinaryOperator::Eq, other.clone());
            condition = Some(match condition {
                Some(before) => binary(before, BinaryOperator::And, equal),
                None => equal,
            });
            let column = match operator {
                JoinOperator::Right(_) | JoinOperator::RightOuter(_) => other,
                JoinOperator::FullOuter(_) => call("coalesce", vec![own, other]),
                _ => own,
            };
            all.push(Output::Merged(name, column));
        }
        let always = Ast::Value(ast::Value::Boolean(true).with_empty_span());
        *operator = with_condition(operator, condition.unwrap_or(always));
        all.extend(left);
        all.extend(right);
        Some(all)
    }

    /// The column of a side with a name, which `*` shows with the merged ones from now on.
    fn take(&self, side: &mut Vec<Output>, name: &str) -> Option<Ast> {
        let merged = side.iter().position(|output| matches!(output, Output::Merged(known, _) if known == name));
        if let Some(place) = merged {
            let Output::Merged(_, column) = side.remove(place) else { return None };
            return Some(column);
        }
        let factors = side.iter_mut().filter_map(|output| match output {
            Output::Factor(factor, merged) => Some((factor, merged)),
            Output::Merged(..) => None,
        });
        let mut factors: Vec<_> = factors.collect();
        if factors.len() > 1 {
            let mut having = Vec::new();
            for (factor, merged) in factors {
                if self.columns(factor)?.iter().any(|column| column == name) {
                    having.push((factor, merged));
                }
            }
            factors = having;
        }
        let [(factor, merged)] = factors.as_mut_slice() else { return None };
        merged.push(name.to_string());
        Some(Ast::CompoundIdentifier(vec![factor.name.clone(), Ident::with_quote('"', name)]))
    }

    /// The names that both sides have, in the order of the left one.
    fn common(&self, left: &[Output], right: &[Output]) -> Option<Vec<String>> {
        let right: HashSet<String> = self.shown(right)?.into_iter().collect();
        Some(self.shown(left)?.into_iter().filter(|name| right.contains(name)).collect())
    }

    /// The names of `*`.
    fn shown(&self, side: &[Output]) -> Option<Vec<String>> {
        let mut names = Vec::new();
        for output in side {
            match output {
                Output::Merged(name, _) => names.push(name.clone()),
                Output::Factor(factor, merged) => {
                    names.extend(self.columns(factor)?.into_iter().filter(|name| !merged.contains(name)));
                }
            }
        }
        Some(names)
    }

    /// The columns of a factor, if it can be planned alone.
    fn columns(&self, factor: &Factor) -> Option<Vec<String>> {
        let mut rows = factor.rows.clone();
        let tables: Vec<ast::Cte> = self.known.iter().flat_map(|with| with.cte_tables.clone()).collect();
        if !tables.is_empty() {
            let recursive = self.known.iter().any(|with| with.recursive);
            rows.with = Some(ast::With { with_token: AttachedToken::empty(), recursive, cte_tables: tables });
        }
        let plan = self.context.bind_query(&rows, &[]).ok()?;
        Some(plan.schema().fields().iter().map(|field| shown(field.name()).to_string()).collect())
    }
}

fn with_condition(operator: &JoinOperator, condition: Ast) -> JoinOperator {
    use JoinOperator::{CrossJoin, FullOuter, Inner, Join, Left, LeftOuter, Right, RightOuter};
    let on = JoinConstraint::On(condition);
    match operator {
        Left(_) | LeftOuter(_) => LeftOuter(on),
        Right(_) | RightOuter(_) => RightOuter(on),
        FullOuter(_) => FullOuter(on),
        Join(_) | CrossJoin(_) | Inner(_) => Inner(on),
        other => other.clone(),
    }
}
