//! The order of inner joins in a dataflow.
//!
//! A join keeps the rows of both inputs, so what a tree of inner joins keeps besides its relations is the results of all joins
//! but the last. This rule takes a maximal tree of inner joins apart into relations and conditions and puts it together in the
//! order whose results in between are smallest by [`estimate`], found by [`search`]; a join without an equality is made only
//! where no order does without. The columns come as they came before.
//!
//! What stays as it is:
//! - A tree whose order is not clearly worse than the best one (see [`search::GAIN`]). So with nothing known the order is the one
//!   that was written, and small differences of estimates decide nothing.
//! - Outer, semi, anti and mark joins, joins on equal NULLs, and all else: these are relations here, each with an order of
//!   its own inside.
//! - Where conditions that can fail are evaluated: only on rows of all the relations that they were above of, and after the
//!   conditions that cannot fail. A join by keys that can fail is a relation.
//!
//! Equalities are taken as classes of equal expressions: with `a.x = b.x AND b.x = c.x` a join of `a` and `c` has the
//! equality `a.x = c.x`, and the join with `b` needs one of the two.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, JoinConstraint, NullEquality, Result};
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, Filter, Join, JoinType, LogicalPlan, Projection};
use datafusion::optimizer::optimize_projections::OptimizeProjections;
use datafusion::optimizer::{Optimizer, OptimizerConfig};
use plan::RelationSource;

use self::graph::Graph;
use self::search::Order;
use crate::catalog::{Catalog, Sizes};

mod estimate;
mod flatten;
mod graph;
mod search;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests;

/// The number of this way to choose an order. It goes up whenever the same sizes may lead to another order: a view that was
/// planned by another number cannot go on with its state.
pub const VERSION: u32 = 1;

/// Relations of a tree that is put in order. Of a larger one, only the parts that are no larger are.
const RELATIONS_MAX: usize = 32;

/// The sizes by which the joins of a bound query may be put in order: of all that it reads. None if there is nothing to choose.
pub(crate) fn sizes(plan: &LogicalPlan, catalog: &dyn Catalog) -> Result<Option<Sizes>> {
    let mut leaves = 0;
    let mut read = BTreeSet::new();
    plan.apply_with_subqueries(|node| {
        leaves += usize::from(node.inputs().is_empty());
        if let LogicalPlan::TableScan(scan) = node {
            read.extend(RelationSource::of(scan.source.as_ref()).map(|source| source.relation.id));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    if leaves < 3 {
        return Ok(None);
    }
    let known = read.into_iter().filter_map(|relation| Some((relation, catalog.rows(relation)?)));
    Ok(Some(Sizes { rows: known.collect() }))
}

/// Reorders the joins of a plan, and takes out columns that are not needed in between any more.
pub(super) fn reorder(plan: LogicalPlan, sizes: &Sizes, config: &dyn OptimizerConfig) -> Result<LogicalPlan> {
    let reordered = below(plan, sizes)?;
    if !reordered.transformed {
        return Ok(reordered.data);
    }
    Optimizer::with_rules(vec![Arc::new(OptimizeProjections::new())]).optimize(reordered.data, config, |_, _| {})
}

/// Reorders all trees of a plan, from its root downwards.
fn below(plan: LogicalPlan, sizes: &Sizes) -> Result<Transformed<LogicalPlan>> {
    if let Some(plan) = tree(&plan, sizes)? {
        return Ok(Transformed::yes(plan));
    }
    plan.map_subqueries(|subquery| below(subquery, sizes))?
        .transform_sibling(|plan| plan.map_children(|child| below(child, sizes)))
}

/// The tree at the root of a plan in a better order; none if there is no tree, or no better order.
fn tree(plan: &LogicalPlan, sizes: &Sizes) -> Result<Option<LogicalPlan>> {
    let Some(flat) = flatten::flatten(plan, RELATIONS_MAX)? else { return Ok(None) };
    let Some(mut graph) = Graph::new(flat, sizes)? else { return Ok(None) };
    let Some(order) = search::better(&graph) else { return Ok(None) };
    for relation in &mut graph.relations {
        let plan = std::mem::take(&mut relation.plan);
        relation.plan = below(plan, sizes)?.data;
    }
    let joined = build(&graph, &order)?;
    let restored = restore(joined, &graph.columns, plan.schema())?;
    Ok(same_columns(restored.schema(), plan.schema()).then_some(restored))
}

/// The joins in an order.
fn build(graph: &Graph, order: &Order) -> Result<LogicalPlan> {
    let (left, right) = match order {
        Order::Relation(relation) => return Ok(graph.relations[*relation].plan.clone()),
        Order::Join(left, right) => (left, right),
    };
    let (on, conditions) = graph.between(left.set(), right.set());
    let (left, right) = (Arc::new(build(graph, left)?), Arc::new(build(graph, right)?));
    let (kind, constraint, nulls) = (JoinType::Inner, JoinConstraint::On, NullEquality::NullEqualsNothing);
    Join::try_new(left, right, on, conjunction(conditions), kind, constraint, nulls, false).map(LogicalPlan::Join)
}

/// The columns of the tree as they came before: in their order and under their names.
fn restore(plan: LogicalPlan, columns: &[Column], schema: &DFSchema) -> Result<LogicalPlan> {
    if plan.schema().columns() == schema.columns() {
        return Ok(plan);
    }
    let named = columns.iter().zip(schema.iter()).map(|(column, (qualifier, field))| {
        let same = column.relation.as_ref() == qualifier && column.name == *field.name();
        let expression = Expr::Column(column.clone());
        if same { expression } else { expression.alias_qualified(qualifier.cloned(), field.name()) }
    });
    Projection::try_new(named.collect(), Arc::new(plan)).map(LogicalPlan::Projection)
}

/// Whether two schemas have the same columns, by name, type and nullability.
fn same_columns(left: &DFSchema, right: &DFSchema) -> bool {
    left.fields().len() == right.fields().len()
        && left.iter().zip(right.iter()).all(|((left_of, left), (right_of, right))| {
            left_of == right_of
                && left.name() == right.name()
                && left.data_type() == right.data_type()
                && left.is_nullable() == right.is_nullable()
        })
}

/// Rows of a relation for which conditions hold.
fn filtered(plan: LogicalPlan, conditions: Vec<Expr>) -> Result<LogicalPlan> {
    match conjunction(conditions) {
        Some(predicate) => Filter::try_new(predicate, Arc::new(plan)).map(LogicalPlan::Filter),
        None => Ok(plan),
    }
}
