//! A subquery for all rows around it at once.
//!
//! A subquery that refers to the row around it has a value for each combination of what it refers to. The distinct ones are
//! its domain: a relation like any other. Carried through the subquery,
//! `push(domain, s) = { (d, row) | d in domain, row in s under d }`, is a plan without references to the outside, whose
//! first columns are those of the domain. Each node says how it carries them: a filter leaves them, an aggregate groups by
//! them as well, a window is partitioned by them, a limit counts within them, and what refers to nothing is beside each.
//! This is the unnesting of arbitrary queries by Neumann and Kemper.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, JoinType, NullEquality};
use datafusion::error::Result;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::expr::{AggregateFunction, Sort as SortExpr};
use datafusion::logical_expr::{
    Aggregate, Distinct, EmptyRelation, Expr, ExprFunctionExt, Filter, Join, Limit, LogicalPlan, LogicalPlanBuilder,
    SubqueryAlias, Union, Unnest, Values, Window, lit, when,
};

use super::walk;

/// Numbers what one statement makes, so that names do not meet.
#[derive(Debug, Default)]
pub(super) struct Names {
    count: usize,
}

impl Names {
    /// A name that nothing else in the statement has.
    pub fn next(&mut self, what: &str) -> String {
        self.count += 1;
        format!("${what} {}", self.count)
    }
}

/// The distinct combinations of values that a subquery refers to.
#[derive(Debug, Clone)]
pub(super) struct Domain {
    plan: LogicalPlan,
    /// Columns of the outer row, and the domain's.
    columns: Vec<(Column, Column)>,
}

impl Domain {
    /// Of some columns of the outer rows.
    pub fn new(outer: &LogicalPlan, columns: Vec<Column>, names: &mut Names) -> Result<Domain> {
        if columns.is_empty() {
            let schema = Arc::new(DFSchema::empty());
            let plan = LogicalPlan::EmptyRelation(EmptyRelation { produce_one_row: true, schema });
            return Ok(Domain { plan, columns: Vec::new() });
        }
        let columns: Vec<(Column, Column)> =
            columns.into_iter().map(|column| (column, Column::new_unqualified(names.next("outer")))).collect();
        let projected = columns.iter().map(|(outer, own)| Expr::Column(outer.clone()).alias(&own.name));
        let plan = LogicalPlanBuilder::from(outer.clone()).project(projected)?.distinct()?.build()?;
        Ok(Domain { plan, columns })
    }

    /// The same under other names, to stand beside itself.
    fn again(&self, names: &mut Names) -> Result<Domain> {
        if self.columns.is_empty() {
            return Ok(self.clone());
        }
        let renamed: Vec<(Column, Column)> = self
            .columns
            .iter()
            .map(|(outer, _)| (outer.clone(), Column::new_unqualified(names.next("outer"))))
            .collect();
        let projected = self.columns.iter().zip(&renamed);
        let projected = projected.map(|((_, own), (_, new))| Expr::Column(own.clone()).alias(&new.name));
        let plan = LogicalPlanBuilder::from(self.plan.clone()).project(projected)?.build()?;
        Ok(Domain { plan, columns: renamed })
    }

    /// The domain's columns.
    pub fn own(&self) -> Vec<Expr> {
        self.columns.iter().map(|(_, own)| Expr::Column(own.clone())).collect()
    }

    /// Pairs of the outer row's columns with the domain's.
    pub fn pairs(&self) -> Vec<(Expr, Expr)> {
        self.columns.iter().map(|(outer, own)| (Expr::Column(outer.clone()), Expr::Column(own.clone()))).collect()
    }

    fn pairs_with(&self, other: &Domain) -> Vec<(Expr, Expr)> {
        self.own().into_iter().zip(other.own()).collect()
    }

    fn column_of(&self, outer: &Column) -> Option<&Column> {
        self.columns.iter().find(|(known, _)| known == outer).map(|(_, own)| own)
    }

    fn has(&self, outer: &Column) -> bool {
        self.column_of(outer).is_some()
    }

    /// Whether a plan refers to the outer row.
    fn is_in(&self, plan: &LogicalPlan) -> Result<bool> {
        plan.exists(|node| {
            let mut found = false;
            node.apply_expressions(|expression| {
                found |= self.is_in_expression(expression);
                Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
            })?;
            Ok(found)
        })
    }

    fn is_in_expression(&self, expression: &Expr) -> bool {
        walk::any_part(expression, &|part| matches!(part, Expr::OuterReferenceColumn(_, column) if self.has(column)))
    }

    /// An expression with the domain's columns for the references; it keeps its name.
    fn inside(&self, expression: &Expr) -> Result<Expr> {
        let replaced = self.replaced(expression)?;
        let name = expression.qualified_name();
        if replaced.qualified_name() == name {
            return Ok(replaced);
        }
        Ok(replaced.alias_qualified(name.0, name.1))
    }

    fn replaced(&self, expression: &Expr) -> Result<Expr> {
        let replaced = expression.clone().transform_up(|part| match &part {
            Expr::OuterReferenceColumn(_, column) => match self.column_of(column) {
                Some(own) => Ok(Transformed::yes(Expr::Column(own.clone()))),
                None => Ok(Transformed::no(part)),
            },
            _ => Ok(Transformed::no(part)),
        })?;
        Ok(replaced.data)
    }

    fn replaced_sort(&self, sort: &SortExpr) -> Result<SortExpr> {
        Ok(SortExpr { expr: self.replaced(&sort.expr)?, ..sort.clone() })
    }

    /// The columns of a pushed plan that are not the domain's.
    fn rest(&self, plan: &LogicalPlan) -> Vec<Column> {
        plan.schema().columns().split_off(self.columns.len())
    }

    /// A subquery beside each row of the domain. None if a node in it has no such form.
    pub fn push(&self, plan: &LogicalPlan, names: &mut Names) -> Result<Option<LogicalPlan>> {
        if !self.is_in(plan)? {
            return self.beside_each(plan).map(Some);
        }
        match plan {
            LogicalPlan::Subquery(subquery) => self.push(&subquery.subquery, names),
            LogicalPlan::SubqueryAlias(alias) => self.push_alias(alias, names),
            LogicalPlan::Projection(projection) => {
                let Some(input) = self.push(&projection.input, names)? else { return Ok(None) };
                self.project(input, &projection.expr).map(Some)
            }
            LogicalPlan::Filter(filter) => {
                let Some(input) = self.push(&filter.input, names)? else { return Ok(None) };
                let filter = Filter::try_new(self.replaced(&filter.predicate)?, Arc::new(input))?;
                Ok(Some(LogicalPlan::Filter(filter)))
            }
            // Without a limit above it the order of a subquery's rows means nothing.
            LogicalPlan::Sort(sort) => self.push(&sort.input, names),
            LogicalPlan::Aggregate(aggregate) => self.push_aggregate(aggregate, names),
            LogicalPlan::Window(window) => self.push_window(window, names),
            LogicalPlan::Limit(limit) => self.push_limit(limit, &limit.input, names),
            LogicalPlan::Distinct(distinct) => self.push_distinct(distinct, names),
            LogicalPlan::Join(join) => self.push_join(join, names),
            LogicalPlan::Union(union) => self.push_union(union, names),
            LogicalPlan::Values(values) => self.push_values(values).map(Some),
            LogicalPlan::Unnest(unnest) => self.push_unnest(unnest, names),
            _ => Ok(None),
        }
    }

    fn beside_each(&self, plan: &LogicalPlan) -> Result<LogicalPlan> {
        match plan {
            LogicalPlan::EmptyRelation(empty) if empty.produce_one_row => Ok(self.plan.clone()),
            _ if self.columns.is_empty() => Ok(plan.clone()),
            _ => LogicalPlanBuilder::from(self.plan.clone()).cross_join(plan.clone())?.build(),
        }
    }

    /// The domain's columns and expressions over a pushed input.
    fn project(&self, input: LogicalPlan, expressions: &[Expr]) -> Result<LogicalPlan> {
        let mut projected = self.own();
        for expression in expressions {
            projected.push(self.inside(expression)?);
        }
        LogicalPlanBuilder::from(input).project(projected)?.build()
    }

    /// The domain's columns and those of a pushed plan, under the names of a schema.
    fn named(&self, input: LogicalPlan, columns: Vec<Expr>, schema: &DFSchema) -> Result<LogicalPlan> {
        let named = columns
            .into_iter()
            .zip(schema.iter())
            .map(|(column, (qualifier, field))| column.alias_qualified(qualifier.cloned(), field.name()));
        let projected: Vec<Expr> = self.own().into_iter().chain(named).collect();
        LogicalPlanBuilder::from(input).project(projected)?.build()
    }

    fn push_alias(&self, alias: &SubqueryAlias, names: &mut Names) -> Result<Option<LogicalPlan>> {
        let Some(input) = self.push(&alias.input, names)? else { return Ok(None) };
        let columns = self.rest(&input).into_iter().map(Expr::Column).collect();
        self.named(input, columns, &alias.schema).map(Some)
    }

    /// An aggregate of nothing has a row too: every row of the domain has one.
    fn push_aggregate(&self, aggregate: &Aggregate, names: &mut Names) -> Result<Option<LogicalPlan>> {
        if aggregate.group_expr.iter().any(|key| matches!(key, Expr::GroupingSet(_))) {
            return Ok(None);
        }
        let grouped = !aggregate.group_expr.is_empty();
        let inner = if grouped { self.clone() } else { self.again(names)? };
        let Some(input) = inner.push(&aggregate.input, names)? else { return Ok(None) };
        let mut keys = inner.own();
        for key in &aggregate.group_expr {
            keys.push(inner.inside(key)?);
        }
        let calls = aggregate.aggr_expr.iter().map(|call| inner.inside(call)).collect::<Result<Vec<_>>>()?;
        let pushed = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), keys, calls)?);
        if grouped || self.columns.is_empty() {
            return Ok(Some(pushed));
        }
        let matched = names.next("matched");
        let marked = pushed.schema().columns().into_iter().map(Expr::Column);
        let marked: Vec<Expr> = marked.chain(std::iter::once(lit(true).alias(&matched))).collect();
        let marked = LogicalPlanBuilder::from(pushed).project(marked)?.build()?;
        let joined = join(self.plan.clone(), marked, JoinType::Left, self.pairs_with(&inner), None)?;
        let mut columns = Vec::new();
        for (call, (qualifier, field)) in aggregate.aggr_expr.iter().zip(aggregate.schema.iter()) {
            let column = Expr::Column(Column::from((qualifier, field)));
            let empty = match aggregate_of(call) {
                Some(function) => function.func.default_value(field.data_type())?,
                None => return Ok(None),
            };
            columns.push(if empty.is_null() {
                column
            } else {
                let no_rows = Expr::Column(Column::new_unqualified(&matched)).is_null();
                when(no_rows, Expr::Literal(empty, None)).otherwise(column)?
            });
        }
        self.named(joined, columns, &aggregate.schema).map(Some)
    }

    fn push_window(&self, window: &Window, names: &mut Names) -> Result<Option<LogicalPlan>> {
        let Some(input) = self.push(&window.input, names)? else { return Ok(None) };
        let mut calls = Vec::new();
        for call in &window.window_expr {
            let call = self.replaced(call)?;
            let call = call.transform_up(|part| match part {
                Expr::WindowFunction(mut function) => {
                    function.params.partition_by.extend(self.own());
                    Ok(Transformed::yes(Expr::WindowFunction(function)))
                }
                other => Ok(Transformed::no(other)),
            })?;
            calls.push(call.data);
        }
        let pushed = LogicalPlan::Window(Window::try_new(calls, Arc::new(input))?);
        let columns = self.rest(&pushed).into_iter().map(Expr::Column).collect();
        self.named(pushed, columns, &window.schema).map(Some)
    }

    /// A limit counts the rows of each of the domain. What only renames and computes may stand above the limit instead.
    fn push_limit(&self, limit: &Limit, input: &LogicalPlan, names: &mut Names) -> Result<Option<LogicalPlan>> {
        match input {
            LogicalPlan::Projection(projection) => {
                let Some(input) = self.push_limit(limit, &projection.input, names)? else { return Ok(None) };
                self.project(input, &projection.expr).map(Some)
            }
            LogicalPlan::SubqueryAlias(alias) => {
                let Some(input) = self.push_limit(limit, &alias.input, names)? else { return Ok(None) };
                let columns = self.rest(&input).into_iter().map(Expr::Column).collect();
                self.named(input, columns, &alias.schema).map(Some)
            }
            LogicalPlan::Sort(sort) => {
                let order = sort.expr.iter().map(|sort| self.replaced_sort(sort)).collect::<Result<Vec<_>>>()?;
                self.numbered(limit, &sort.input, order, names)
            }
            other => self.numbered(limit, other, Vec::new(), names),
        }
    }

    fn numbered(
        &self,
        limit: &Limit,
        input: &LogicalPlan,
        order: Vec<SortExpr>,
        names: &mut Names,
    ) -> Result<Option<LogicalPlan>> {
        let Some(pushed) = self.push(input, names)? else { return Ok(None) };
        let number = row_number().partition_by(self.own());
        let number = if order.is_empty() { number } else { number.order_by(order) }.build()?;
        let name = number.schema_name().to_string();
        let numbered = LogicalPlan::Window(Window::try_new(vec![number], Arc::new(pushed))?);
        let number = Expr::Column(Column::new_unqualified(name));
        let mut condition = lit(true);
        let skip = limit.skip.as_deref().cloned();
        if let Some(fetch) = limit.fetch.as_deref().cloned() {
            let last = match &skip {
                Some(skip) => fetch + skip.clone(),
                None => fetch,
            };
            condition = number.clone().lt_eq(last);
        }
        if let Some(skip) = skip {
            condition = condition.and(number.gt(skip));
        }
        let filtered = LogicalPlan::Filter(Filter::try_new(condition, Arc::new(numbered))?);
        let columns = self.rest(&filtered).into_iter().map(Expr::Column).take(input.schema().fields().len()).collect();
        self.named(filtered, columns, input.schema()).map(Some)
    }

    fn push_distinct(&self, distinct: &Distinct, names: &mut Names) -> Result<Option<LogicalPlan>> {
        match distinct {
            Distinct::All(input) => {
                let Some(input) = self.push(input, names)? else { return Ok(None) };
                LogicalPlanBuilder::from(input).distinct()?.build().map(Some)
            }
            Distinct::On(on) => {
                let Some(input) = self.push(&on.input, names)? else { return Ok(None) };
                let (mut keys, mut selected) = (self.own(), self.own());
                for key in &on.on_expr {
                    keys.push(self.replaced(key)?);
                }
                for item in &on.select_expr {
                    selected.push(self.inside(item)?);
                }
                let order = on.sort_expr.as_ref().map(|order| {
                    let own = self.own().into_iter().map(|column| Ok(column.sort(true, false)));
                    own.chain(order.iter().map(|sort| self.replaced_sort(sort))).collect::<Result<Vec<_>>>()
                });
                LogicalPlanBuilder::from(input).distinct_on(keys, selected, order.transpose()?)?.build().map(Some)
            }
        }
    }

    /// The side whose rows are kept has the domain; the other has it if it needs it, and then they agree in it.
    fn push_join(&self, inner: &Join, names: &mut Names) -> Result<Option<LogicalPlan>> {
        use JoinType::{Full, Inner, Left, LeftAnti, LeftMark, LeftSemi, Right, RightAnti, RightMark, RightSemi};
        let keeps_left = match inner.join_type {
            Inner | Left | LeftSemi | LeftAnti | LeftMark => true,
            Right | RightSemi | RightAnti | RightMark => false,
            Full => return Ok(None),
        };
        if inner.null_aware {
            return Ok(None);
        }
        let (kept, other) = if keeps_left { (&inner.left, &inner.right) } else { (&inner.right, &inner.left) };
        let Some(kept) = self.push(kept, names)? else { return Ok(None) };
        let (other, mut keys) = if self.is_in(other)? {
            let second = self.again(names)?;
            let Some(other) = second.push(other, names)? else { return Ok(None) };
            let pairs = if keeps_left { self.pairs_with(&second) } else { second.pairs_with(self) };
            (other, pairs)
        } else {
            (other.as_ref().clone(), Vec::new())
        };
        let mut filter = inner.filter.as_ref().map(|filter| self.replaced(filter)).transpose()?;
        for (left, right) in &inner.on {
            let (left, right) = (self.replaced(left)?, self.replaced(right)?);
            if inner.null_equality == NullEquality::NullEqualsNull {
                keys.push((left, right));
            } else {
                let equal = left.eq(right);
                filter = Some(match filter {
                    Some(filter) => filter.and(equal),
                    None => equal,
                });
            }
        }
        let (left, right) = if keeps_left { (kept, other) } else { (other, kept) };
        let joined = join(left, right, inner.join_type, keys, filter)?;
        let columns = inner.schema.columns().into_iter().map(Expr::Column).collect();
        self.named(joined, columns, &inner.schema).map(Some)
    }

    fn push_union(&self, union: &Union, names: &mut Names) -> Result<Option<LogicalPlan>> {
        let mut pushed: Option<LogicalPlan> = None;
        for input in &union.inputs {
            let Some(input) = self.push(input, names)? else { return Ok(None) };
            pushed = Some(match pushed {
                Some(before) => LogicalPlanBuilder::from(before).union(input)?.build()?,
                None => input,
            });
        }
        let Some(pushed) = pushed else { return Ok(None) };
        let columns = self.rest(&pushed).into_iter().map(Expr::Column).collect();
        self.named(pushed, columns, &union.schema).map(Some)
    }

    fn push_values(&self, values: &Values) -> Result<LogicalPlan> {
        let mut pushed: Option<LogicalPlan> = None;
        for row in &values.values {
            let row = row.iter().map(|value| self.replaced(value)).collect::<Result<Vec<_>>>()?;
            let row = self.named(self.plan.clone(), row, &values.schema)?;
            pushed = Some(match pushed {
                Some(before) => LogicalPlanBuilder::from(before).union(row)?.build()?,
                None => row,
            });
        }
        pushed.map_or_else(|| Ok(self.plan.clone()), Ok)
    }

    fn push_unnest(&self, unnest: &Unnest, names: &mut Names) -> Result<Option<LogicalPlan>> {
        let Some(input) = self.push(&unnest.input, names)? else { return Ok(None) };
        let columns = unnest.exec_columns.clone();
        LogicalPlanBuilder::from(input).unnest_columns_with_options(columns, unnest.options.clone())?.build().map(Some)
    }
}

fn aggregate_of(expression: &Expr) -> Option<&AggregateFunction> {
    match expression {
        Expr::Alias(alias) => aggregate_of(&alias.expr),
        Expr::AggregateFunction(function) => Some(function),
        _ => None,
    }
}

/// A join on keys of which NULLs are equal.
pub(super) fn join(
    left: LogicalPlan,
    right: LogicalPlan,
    join_type: JoinType,
    keys: Vec<(Expr, Expr)>,
    filter: Option<Expr>,
) -> Result<LogicalPlan> {
    if keys.is_empty() {
        return LogicalPlanBuilder::from(left).join_on(right, join_type, filter.or_else(|| Some(lit(true))))?.build();
    }
    let constraint = datafusion::common::JoinConstraint::On;
    let null_equality = NullEquality::NullEqualsNull;
    let joined =
        Join::try_new(Arc::new(left), Arc::new(right), keys, filter, join_type, constraint, null_equality, false)?;
    Ok(LogicalPlan::Join(joined))
}
