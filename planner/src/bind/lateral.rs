//! Joins with UNNEST of the other side's columns.
//!
//! DataFusion binds `FROM a, UNNEST(a.n) AS u (x)` to a join of `a` with a subquery that refers to `a` from inside, and
//! has no way to run that. Such a join is the same as carrying the columns of `a` through the subquery:
//! `join(a, f(a)) = f applied to each row of a, beside that row`. That is a plain plan, without a join.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, JoinType, NullHandling, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, Join, LogicalPlan, LogicalPlanBuilder, Unnest};

use super::walk;

/// Rewrites every join whose right side unnests columns of its left side.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    walk::nodes(plan, &mut |node| {
        let LogicalPlan::Join(join) = &node else { return Ok(Transformed::no(node)) };
        match carried_join(join)? {
            Some(plan) => Ok(Transformed::yes(plan)),
            None => Ok(Transformed::no(node)),
        }
    })
}

/// The join as a plan without a join, or none if it is of another kind.
fn carried_join(join: &Join) -> Result<Option<LogicalPlan>> {
    let outer = match join.join_type {
        JoinType::Inner => false,
        JoinType::Left => true,
        _ => return Ok(None),
    };
    let always = match &join.filter {
        None => true,
        Some(Expr::Literal(ScalarValue::Boolean(Some(true)), _)) => true,
        Some(_) => false,
    };
    // A row of which the condition lets nothing through would have to come back.
    if !join.on.is_empty() || (outer && !always) || !unnests_outer_columns(&join.right)? {
        return Ok(None);
    }
    let carrier = Carrier::new(&join.left, outer)?;
    let Some(plan) = carrier.carry(&join.right)? else { return Ok(None) };
    let plan = carrier.restore(plan, &join.right)?;
    match &join.filter {
        Some(filter) if !always => LogicalPlanBuilder::from(plan).filter(filter.clone())?.build().map(Some),
        _ => Ok(Some(plan)),
    }
}

/// Whether an UNNEST in a subquery is over columns from outside of it.
fn unnests_outer_columns(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| match node {
        LogicalPlan::Subquery(subquery) => unnests_outer_columns(&subquery.subquery),
        LogicalPlan::Unnest(unnest) => Ok(unnest.input.contains_outer_reference()),
        _ => Ok(false),
    })
}

fn is_column(expression: &Expr) -> bool {
    match expression {
        Expr::Column(_) => true,
        Expr::Alias(alias) => is_column(&alias.expr),
        _ => false,
    }
}

/// The left side, whose columns go through the right side under names that nothing else has.
struct Carrier {
    left: LogicalPlan,
    /// From a column of the left side to its name on the way.
    names: Vec<(Column, Column)>,
    by_column: HashMap<Column, Column>,
    /// Rows without items stay.
    outer: bool,
}

impl Carrier {
    fn new(left: &Arc<LogicalPlan>, outer: bool) -> Result<Self> {
        let columns = left.schema().columns();
        let names: Vec<(Column, Column)> = columns
            .into_iter()
            .enumerate()
            .map(|(index, column)| (column, Column::new_unqualified(format!("$carried {index}"))))
            .collect();
        let aliased = names.iter().map(|(column, name)| Expr::Column(column.clone()).alias(&name.name));
        let left = LogicalPlanBuilder::from(left.as_ref().clone()).project(aliased)?.build()?;
        let by_column = names.iter().cloned().collect();
        Ok(Carrier { left, names, by_column, outer })
    }

    fn columns(&self) -> impl Iterator<Item = Expr> {
        self.names.iter().map(|(_, name)| Expr::Column(name.clone()))
    }

    /// A plan computed beside each row of the left side: the carried columns, then the plan's own. None if it holds a
    /// node that does more than look at one row.
    fn carry(&self, plan: &LogicalPlan) -> Result<Option<LogicalPlan>> {
        match plan {
            LogicalPlan::EmptyRelation(empty) if empty.produce_one_row => Ok(Some(self.left.clone())),
            LogicalPlan::Subquery(subquery) => self.carry(&subquery.subquery),
            LogicalPlan::SubqueryAlias(alias) => {
                let Some(input) = self.carry(&alias.input)? else { return Ok(None) };
                let renamed = self.own_columns(&input).into_iter().zip(alias.schema.iter());
                let renamed = renamed.map(|(column, (qualifier, field))| {
                    Expr::Column(column).alias_qualified(qualifier.cloned(), field.name())
                });
                let expressions: Vec<Expr> = self.columns().chain(renamed).collect();
                LogicalPlanBuilder::from(input).project(expressions)?.build().map(Some)
            }
            LogicalPlan::Projection(projection) => {
                let Some(input) = self.carry(&projection.input)? else { return Ok(None) };
                // What is computed from items is NULL for a row without items, whatever the expression.
                if self.outer && unnests_outer_columns(&projection.input)? && !projection.expr.iter().all(is_column) {
                    return Ok(None);
                }
                let own = projection.expr.iter().map(|expression| self.without_outer_references(expression));
                let own = own.collect::<Result<Vec<Expr>>>()?;
                let expressions: Vec<Expr> = self.columns().chain(own).collect();
                LogicalPlanBuilder::from(input).project(expressions)?.build().map(Some)
            }
            LogicalPlan::Filter(filter) if !self.outer => {
                let Some(input) = self.carry(&filter.input)? else { return Ok(None) };
                let predicate = self.without_outer_references(&filter.predicate)?;
                LogicalPlanBuilder::from(input).filter(predicate)?.build().map(Some)
            }
            LogicalPlan::Unnest(unnest) => self.carry_unnest(unnest),
            _ => Ok(None),
        }
    }

    fn carry_unnest(&self, unnest: &Unnest) -> Result<Option<LogicalPlan>> {
        let Some(input) = self.carry(&unnest.input)? else { return Ok(None) };
        let mut options = unnest.options.clone();
        if self.outer {
            options.null_handling = NullHandling::PreserveAndExpandEmpty;
        }
        let columns = unnest.exec_columns.clone();
        LogicalPlanBuilder::from(input).unnest_columns_with_options(columns, options)?.build().map(Some)
    }

    /// The columns after the carried ones.
    fn own_columns(&self, plan: &LogicalPlan) -> Vec<Column> {
        plan.schema().columns().split_off(self.names.len())
    }

    /// References from inside to the left side become references to what is carried.
    fn without_outer_references(&self, expression: &Expr) -> Result<Expr> {
        let replaced = expression.clone().transform_up(|part| match &part {
            Expr::OuterReferenceColumn(_, column) => match self.by_column.get(column) {
                Some(name) => Ok(Transformed::yes(Expr::Column(name.clone()))),
                None => Ok(Transformed::no(part)),
            },
            _ => Ok(Transformed::no(part)),
        })?;
        // The name is what the nodes above know the expression by.
        let name = expression.qualified_name();
        let unchanged = !replaced.transformed || replaced.data.qualified_name() == name;
        Ok(if unchanged { replaced.data } else { replaced.data.alias_qualified(name.0, name.1) })
    }

    /// Gives all columns the names that they have in the join.
    fn restore(&self, plan: LogicalPlan, right: &LogicalPlan) -> Result<LogicalPlan> {
        let left = self.names.iter().map(|(column, name)| {
            Expr::Column(name.clone()).alias_qualified(column.relation.clone(), column.name.clone())
        });
        let own = self.own_columns(&plan).into_iter().zip(right.schema().iter());
        let own = own
            .map(|(column, (qualifier, field))| Expr::Column(column).alias_qualified(qualifier.cloned(), field.name()));
        let expressions: Vec<Expr> = left.chain(own).collect();
        LogicalPlanBuilder::from(plan).project(expressions)?.build()
    }
}
