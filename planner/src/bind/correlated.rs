//! Subqueries that refer to the row around them, where DataFusion cannot make a join of them itself.
//!
//! Such a subquery is computed for all rows around it at once ([`super::domain`]) and joined with them: a scalar subquery
//! is a column of an outer join, EXISTS a semi join, or as a value the mark of an outer join, LATERAL a join. NULLs in what
//! the subquery refers to are values like others. Subqueries go from the innermost outwards, so that a reference over
//! several levels is one to the next level by the time that this comes up.
//!
//! DataFusion does by itself what filters plainly: EXISTS and IN over conditions of a WHERE, and aggregates over equalities
//! with the outer row (but of floats and intervals). These are left to it.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinType};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Exists, InSubquery};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    AggregateUDF, BinaryExpr, Distinct, Expr, ExprSchemable, Filter, Join, LogicalPlan, LogicalPlanBuilder, Operator,
    Subquery, lit,
};

use super::domain::{Domain, Names, join};
use super::keys::needs_normalizing;
use super::{one_row, walk};

/// Rewrites a bound plan.
pub(super) fn rewrite(plan: LogicalPlan, array_agg: Option<Arc<AggregateUDF>>) -> Result<LogicalPlan> {
    let mut correlated = false;
    walk::look(&plan, &mut |part| correlated |= matches!(part, Expr::OuterReferenceColumn(_, _)))?;
    if !correlated {
        return Ok(plan);
    }
    let mut rewriter = Rewriter { names: Names::default(), array_agg, constants: false };
    walk::nodes(plan, &mut |node| rewriter.node(node))
}

/// Makes joins of scalar subqueries that refer to nothing around them, too: a dataflow keeps their values up to date like
/// those of any relation, where a query evaluates each once.
pub(crate) fn constants_as_joins(plan: LogicalPlan, array_agg: Option<Arc<AggregateUDF>>) -> Result<LogicalPlan> {
    let mut any = false;
    walk::look(&plan, &mut |part| any |= matches!(part, Expr::ScalarSubquery(_)))?;
    if !any {
        return Ok(plan);
    }
    let mut rewriter = Rewriter { names: Names::default(), array_agg, constants: true };
    walk::nodes(plan, &mut |node| rewriter.node(node))
}

struct Rewriter {
    names: Names,
    array_agg: Option<Arc<AggregateUDF>>,
    /// Whether a scalar subquery that refers to nothing becomes a join.
    constants: bool,
}

/// The columns from outside that a plan refers to, as far as a schema has them, and whether it has all.
fn references(plan: &LogicalPlan, schema: &DFSchema) -> Result<(Vec<Column>, bool)> {
    let (mut found, mut all) = (Vec::new(), true);
    plan.apply(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                if let Expr::OuterReferenceColumn(_, column) = part {
                    if !schema.has_column(column) {
                        all = false;
                    } else if !found.contains(column) {
                        found.push(column.clone());
                    }
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok((found, all))
}

fn is_outer(expression: &Expr) -> bool {
    walk::any_part(expression, &|part| matches!(part, Expr::OuterReferenceColumn(_, _)))
}

fn has_outer(plan: &LogicalPlan) -> bool {
    plan.exists(|node| {
        let mut found = false;
        node.apply_expressions(|expression| {
            found |= is_outer(expression);
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(found)
    })
    .unwrap_or(true)
}

/// An equality of something from outside with something from inside, over a schema. Where equal values may differ in their bits,
/// DataFusion would make groups of the bits.
fn is_key(condition: &Expr, schema: &DFSchema) -> bool {
    let is_plain = |side: &Expr| side.get_type(schema).is_ok_and(|data_type| !needs_normalizing(&data_type));
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            is_outer(left) != is_outer(right) && is_plain(left) && is_plain(right)
        }
        _ => false,
    }
}

/// Says whether a condition over a schema is of some kind.
type Kind<'a> = &'a dyn Fn(&Expr, &DFSchema) -> bool;

/// Whether only conditions of a WHERE refer to the outside, each of a kind.
fn filters(plan: &LogicalPlan, kind: Kind<'_>) -> bool {
    let inside = |expressions: &[Expr]| expressions.iter().all(|expression| !is_outer(expression));
    match plan {
        LogicalPlan::Projection(projection) => inside(&projection.expr) && filters(&projection.input, kind),
        LogicalPlan::Filter(filter) => {
            let conditions = split_conjunction(&filter.predicate);
            let schema = filter.input.schema();
            conditions.into_iter().all(|condition| !is_outer(condition) || kind(condition, schema))
                && filters(&filter.input, kind)
        }
        LogicalPlan::Join(join) if join.join_type == JoinType::Inner => {
            join.filter.as_ref().is_none_or(|filter| !is_outer(filter))
                && join.on.iter().all(|(left, right)| !is_outer(left) && !is_outer(right))
                && filters(&join.left, kind)
                && filters(&join.right, kind)
        }
        LogicalPlan::Distinct(Distinct::All(input)) => filters(input, kind),
        other => !has_outer(other),
    }
}

/// Whether a plan is an aggregate of all rows that equalities with the outer row leave.
fn aggregates(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => {
            projection.expr.iter().all(|expression| !is_outer(expression)) && aggregates(&projection.input)
        }
        LogicalPlan::Aggregate(aggregate) => {
            aggregate.group_expr.is_empty()
                && aggregate.aggr_expr.iter().all(|call| !is_outer(call))
                && filters(&aggregate.input, &is_key)
        }
        _ => false,
    }
}

/// Whether a plan has one row at most, whatever the outer row.
fn is_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_one_row(&projection.input),
        LogicalPlan::Filter(filter) => is_one_row(&filter.input),
        LogicalPlan::SubqueryAlias(alias) => is_one_row(&alias.input),
        LogicalPlan::Subquery(subquery) => is_one_row(&subquery.subquery),
        LogicalPlan::Sort(sort) => is_one_row(&sort.input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(_) => true,
        LogicalPlan::Limit(limit) => match limit.fetch.as_deref() {
            Some(Expr::Literal(value, _)) => matches!(value.to_string().as_str(), "0" | "1"),
            _ => is_one_row(&limit.input),
        },
        _ => false,
    }
}

/// Whether DataFusion joins with a subquery of LATERAL by itself.
fn is_plain_lateral(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::SubqueryAlias(alias) => is_plain_lateral(&alias.input),
        LogicalPlan::Subquery(subquery) => filters(&subquery.subquery, &|_, _| true) || aggregates(&subquery.subquery),
        _ => false,
    }
}

/// Rows around subqueries, which become columns beside them.
struct Attached<'r> {
    rewriter: &'r mut Rewriter,
    input: LogicalPlan,
    /// What DataFusion does by itself here.
    leaves_filters: bool,
    leaves_aggregates: bool,
    changed: bool,
}

impl Rewriter {
    fn node(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        let rewritten = match &node {
            LogicalPlan::Join(join) => match self.lateral(join)? {
                Some(plan) => Some(plan),
                None => self.join_condition(join)?,
            },
            LogicalPlan::Filter(filter) => self.filter(filter)?,
            LogicalPlan::Projection(_) | LogicalPlan::Sort(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Window(_) => {
                self.expressions(&node)?
            }
            _ => None,
        };
        Ok(match rewritten {
            Some(plan) => Transformed::yes(plan),
            None => Transformed::no(node),
        })
    }

    /// A join whose right side refers to its left side.
    fn lateral(&mut self, lateral: &Join) -> Result<Option<LogicalPlan>> {
        if !matches!(lateral.join_type, JoinType::Inner | JoinType::Left) {
            return Ok(None);
        }
        let (columns, all) = references(&lateral.right, lateral.left.schema())?;
        if columns.is_empty() || (all && is_plain_lateral(&lateral.right)) {
            return Ok(None);
        }
        let domain = Domain::new(&lateral.left, columns, &mut self.names)?;
        let Some(right) = domain.push(&lateral.right, &mut self.names)? else { return Ok(None) };
        let mut filter = lateral.filter.clone();
        for (left, right) in &lateral.on {
            let equal = left.clone().eq(right.clone());
            filter = Some(match filter {
                Some(filter) => filter.and(equal),
                None => equal,
            });
        }
        let joined = join(lateral.left.as_ref().clone(), right, lateral.join_type, domain.pairs(), filter)?;
        let columns = lateral.schema.columns().into_iter().map(Expr::Column);
        LogicalPlanBuilder::from(joined).project(columns)?.build().map(Some)
    }

    /// The condition of an inner join may as well stand above it.
    fn join_condition(&mut self, inner: &Join) -> Result<Option<LogicalPlan>> {
        let Some(filter) = &inner.filter else { return Ok(None) };
        let has_subquery = walk::any_part(filter, &|part| matches!(part, Expr::ScalarSubquery(_) | Expr::Exists(_)));
        if inner.join_type != JoinType::Inner || !has_subquery {
            return Ok(None);
        }
        let (above, within): (Vec<&Expr>, Vec<&Expr>) = split_conjunction(filter).into_iter().partition(|condition| {
            walk::any_part(condition, &|part| matches!(part, Expr::ScalarSubquery(_) | Expr::Exists(_)))
        });
        let mut plain = inner.clone();
        plain.filter = within.into_iter().cloned().reduce(Expr::and);
        let above = above.into_iter().cloned().reduce(Expr::and).unwrap_or_else(|| lit(true));
        let filter = Filter::try_new(above, Arc::new(LogicalPlan::Join(plain)))?;
        match self.filter(&filter)? {
            Some(plan) => Ok(Some(plan)),
            None => Ok(Some(LogicalPlan::Filter(filter))),
        }
    }

    fn filter(&mut self, filter: &Filter) -> Result<Option<LogicalPlan>> {
        let schema = filter.input.schema().clone();
        let mut attached = Attached {
            rewriter: self,
            input: filter.input.as_ref().clone(),
            leaves_filters: true,
            leaves_aggregates: true,
            changed: false,
        };
        let mut kept = Vec::new();
        for condition in split_conjunction(&filter.predicate) {
            match condition {
                Expr::Exists(exists) if attached.semi_join(exists)? => {}
                Expr::InSubquery(member) => match member_exists(member, &schema)? {
                    Some(exists) if attached.semi_join(&exists)? => {}
                    _ => kept.push(condition.clone()),
                },
                other => kept.push(attached.replace(other)?),
            }
        }
        if !attached.changed {
            return Ok(None);
        }
        let mut plan = attached.input;
        if let Some(condition) = kept.into_iter().reduce(Expr::and) {
            plan = LogicalPlan::Filter(Filter::try_new(condition, Arc::new(plan))?);
        }
        let columns = schema.columns().into_iter().map(Expr::Column);
        LogicalPlanBuilder::from(plan).project(columns)?.build().map(Some)
    }

    /// Subqueries in the expressions of a node over one input.
    fn expressions(&mut self, node: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        let Some(input) = node.inputs().first().map(|input| (*input).clone()) else { return Ok(None) };
        let before = input.schema().fields().len();
        let in_projection = matches!(node, LogicalPlan::Projection(_));
        let mut attached =
            Attached { rewriter: self, input, leaves_filters: false, leaves_aggregates: in_projection, changed: false };
        let names = NamePreserver::new(node);
        let mut expressions = Vec::new();
        for expression in node.expressions() {
            let replaced = attached.replace(&expression)?;
            let same = !in_projection || replaced == expression;
            expressions.push(if same { replaced } else { names.save(&expression).restore(replaced) });
        }
        if !attached.changed {
            return Ok(None);
        }
        let after = attached.input.schema().fields().len();
        let plan = node.with_new_exprs(expressions, vec![attached.input])?;
        if in_projection {
            return Ok(Some(plan));
        }
        // The columns of the node as it was, under the names that they had.
        let mut columns = plan.schema().columns();
        if matches!(node, LogicalPlan::Sort(_) | LogicalPlan::Window(_)) {
            columns.drain(before..after);
        }
        let named = columns
            .into_iter()
            .zip(node.schema().iter())
            .map(|(column, (qualifier, field))| Expr::Column(column).alias_qualified(qualifier.cloned(), field.name()));
        let named: Vec<Expr> = named.collect();
        LogicalPlanBuilder::from(plan).project(named)?.build().map(Some)
    }
}

impl Attached<'_> {
    /// An expression with columns for its subqueries.
    fn replace(&mut self, expression: &Expr) -> Result<Expr> {
        let replaced = expression.clone().transform_down(|part| {
            let column = match &part {
                Expr::ScalarSubquery(subquery) => self.value(subquery)?,
                Expr::Exists(exists) => self.mark(exists)?,
                _ => None,
            };
            Ok(match column {
                Some(column) => Transformed::yes(column),
                None => Transformed::no(part),
            })
        })?;
        Ok(replaced.data)
    }

    /// The domain of a subquery and the subquery over it; none if it is left to DataFusion.
    fn pushed(&mut self, subquery: &Subquery, leaves: bool) -> Result<Option<(Domain, LogicalPlan)>> {
        let (columns, all) = references(&subquery.subquery, self.input.schema())?;
        if all && (columns.is_empty() || leaves) {
            return Ok(None);
        }
        let domain = Domain::new(&self.input, columns, &mut self.rewriter.names)?;
        let pushed = domain.push(&subquery.subquery, &mut self.rewriter.names)?;
        Ok(pushed.map(|pushed| (domain, pushed)))
    }

    /// A subquery that refers to nothing, where it is to become a join.
    fn constant(&mut self, subquery: &Subquery) -> Result<Option<(Domain, LogicalPlan)>> {
        if !self.rewriter.constants || has_outer(&subquery.subquery) {
            return Ok(None);
        }
        let domain = Domain::new(&self.input, Vec::new(), &mut self.rewriter.names)?;
        Ok(Some((domain, subquery.subquery.as_ref().clone())))
    }

    fn attach(&mut self, domain: &Domain, rows: LogicalPlan) -> Result<()> {
        self.input = join(self.input.clone(), rows, JoinType::Left, domain.pairs(), None)?;
        self.changed = true;
        Ok(())
    }

    /// The value of a scalar subquery.
    fn value(&mut self, subquery: &Subquery) -> Result<Option<Expr>> {
        let leaves = self.leaves_aggregates && aggregates(&subquery.subquery);
        let pushed = match self.constant(subquery)? {
            Some(constant) => Some(constant),
            None => self.pushed(subquery, leaves)?,
        };
        let Some((domain, pushed)) = pushed else { return Ok(None) };
        let Some(last) = pushed.schema().columns().pop() else { return Ok(None) };
        let what = if self.rewriter.constants { "constant" } else { "value" };
        let name = self.rewriter.names.next(what);
        let projected: Vec<Expr> = domain.own().into_iter().chain([Expr::Column(last).alias(&name)]).collect();
        let mut rows = LogicalPlanBuilder::from(pushed).project(projected)?.build()?;
        let column = Expr::Column(Column::new_unqualified(&name));
        let mut value = column.clone();
        if !is_one_row(&subquery.subquery) {
            let Some(array_agg) = &self.rewriter.array_agg else { return Ok(None) };
            let all = array_agg.call(vec![column]);
            let all_name = all.schema_name().to_string();
            let listed = self.rewriter.names.next(what);
            let values = Expr::Column(Column::new_unqualified(all_name)).alias(&listed);
            let projected: Vec<Expr> = domain.own().into_iter().chain([values]).collect();
            rows = LogicalPlanBuilder::from(rows).aggregate(domain.own(), vec![all])?.project(projected)?.build()?;
            // That there are several is an error of the row around the subquery.
            value = one_row::only(Expr::Column(Column::new_unqualified(&listed)));
        }
        self.attach(&domain, rows)?;
        Ok(Some(value))
    }

    /// Whether there are rows, as a value.
    fn mark(&mut self, exists: &Exists) -> Result<Option<Expr>> {
        let leaves = self.leaves_filters && filters(&exists.subquery.subquery, &|_, _| true);
        let Some((domain, pushed)) = self.pushed(&exists.subquery, leaves)? else { return Ok(None) };
        let name = self.rewriter.names.next("exists");
        let marked: Vec<Expr> = domain.own().into_iter().chain([lit(true).alias(&name)]).collect();
        let rows = LogicalPlanBuilder::from(pushed).project(marked)?.distinct()?.build()?;
        self.attach(&domain, rows)?;
        let column = Expr::Column(Column::new_unqualified(&name));
        Ok(Some(if exists.negated { column.is_null() } else { column.is_not_null() }))
    }

    /// Whether there are rows, as a condition. False if that is left to DataFusion.
    fn semi_join(&mut self, exists: &Exists) -> Result<bool> {
        let leaves = filters(&exists.subquery.subquery, &|_, _| true);
        let Some((domain, pushed)) = self.pushed(&exists.subquery, leaves)? else { return Ok(false) };
        let mut rows = LogicalPlanBuilder::from(pushed);
        if domain.own().is_empty() {
            rows = rows.limit(0, Some(1))?;
        } else {
            rows = rows.project(domain.own())?.distinct()?;
        }
        let join_type = if exists.negated { JoinType::LeftAnti } else { JoinType::LeftSemi };
        self.input = join(self.input.clone(), rows.build()?, join_type, domain.pairs(), None)?;
        self.changed = true;
        Ok(true)
    }
}

/// IN as EXISTS, where DataFusion would not do it. NOT IN is true if the value differs from that of every row; where
/// that is unknown, it is not.
fn member_exists(member: &InSubquery, schema: &DFSchema) -> Result<Option<Exists>> {
    let (columns, all) = references(&member.subquery.subquery, schema)?;
    if all && (columns.is_empty() || filters(&member.subquery.subquery, &|_, _| true)) {
        return Ok(None);
    }
    let Some(value) = member.subquery.subquery.schema().columns().into_iter().next() else { return Ok(None) };
    let outer = member.expr.as_ref().clone().transform_up(|part| match part {
        Expr::Column(column) => {
            let (_, field) = schema.qualified_field_from_column(&column)?;
            Ok(Transformed::yes(Expr::OuterReferenceColumn(Arc::clone(field), column)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    let equal = Expr::Column(value).eq(outer.data);
    let condition = if member.negated { equal.is_not_false() } else { equal };
    let filtered = LogicalPlan::Filter(Filter::try_new(condition, Arc::clone(&member.subquery.subquery))?);
    let subquery = Subquery {
        subquery: Arc::new(filtered),
        outer_ref_columns: member.subquery.outer_ref_columns.clone(),
        spans: member.subquery.spans.clone(),
    };
    Ok(Some(Exists::new(subquery, member.negated)))
}
