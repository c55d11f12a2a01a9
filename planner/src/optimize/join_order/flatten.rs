//! A tree of inner joins as relations and conditions.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, DFSchema, NullEquality, Result, TableReference, plan_err};
use datafusion::logical_expr::expr::Alias;
use datafusion::logical_expr::utils::split_conjunction_owned;
use datafusion::logical_expr::{
    Expr, ExprSchemable, Filter, Join, JoinType, LogicalPlan, Projection, SubqueryAlias, lit,
};
use plan::expressions::{looks_elsewhere, never_fails};

use super::filtered;
use super::search::{Order, Set};

/// A tree of joins, taken apart. Its relations have columns of different names.
pub(super) struct Flat {
    pub relations: Vec<LogicalPlan>,
    /// Pairs that must be equal.
    pub equalities: Vec<Equality>,
    /// The other conditions, those first that were evaluated first.
    pub conditions: Vec<Condition>,
    /// What each column of the tree is in its relations.
    pub columns: Vec<Column>,
    /// The order as it was written.
    pub order: Order,
}

/// Two expressions that must be equal, none of which can fail.
pub(super) struct Equality {
    pub sides: [Expr; 2],
    /// The relations of which the sides are.
    pub sets: [Set; 2],
}

/// A condition, and the relations whose rows it needs: those that it reads, or where it can fail those that it was above of.
pub(super) struct Condition {
    pub expression: Expr,
    pub needs: Set,
    pub can_fail: bool,
}

/// Takes the tree at the root of a plan apart; none if there are too few relations to choose, or more than the limit.
pub(super) fn flatten(plan: &LogicalPlan, relations_max: usize) -> Result<Option<Flat>> {
    if !matches!(plan, LogicalPlan::Join(_)) || !(3..=relations_max).contains(&count(plan)) {
        return Ok(None);
    }
    let mut walk = Walk::default();
    let (order, columns) = walk.take(plan)?;
    let Walk { mut relations, equalities, conditions, .. } = walk;
    let (own, conditions): (Vec<Condition>, _) =
        conditions.into_iter().partition(|condition| condition.needs.count_ones() == 1);
    let mut of_relation = vec![Vec::new(); relations.len()];
    for condition in own {
        of_relation[condition.needs.trailing_zeros() as usize].push(condition.expression);
    }
    for (relation, conditions) in relations.iter_mut().zip(of_relation) {
        *relation = filtered(std::mem::take(relation), conditions)?;
    }
    Ok(Some(Flat { relations, equalities, conditions, columns, order }))
}

/// How many relations the tree at a node has; 1 if the node is none.
fn count(plan: &LogicalPlan) -> usize {
    match plan {
        plan if !is_transparent(plan) => 1,
        plan => plan.inputs().into_iter().map(count).sum(),
    }
}

/// Whether a node is part of a tree: an inner join, or what only renames or filters the rows of one.
fn is_transparent(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Join(join) => {
            let plain_nulls = join.on.is_empty() || join.null_equality == NullEquality::NullEqualsNothing;
            let keys = |(left, right): &(Expr, Expr)| {
                let types = [left.get_type(join.left.schema()), right.get_type(join.right.schema())];
                never_fails(left, join.left.schema())
                    && never_fails(right, join.right.schema())
                    && matches!(types, [Ok(left), Ok(right)] if left == right)
            };
            join.join_type == JoinType::Inner
                && plain_nulls
                && join.on.iter().all(keys)
                && !is_lateral(&join.right)
                && !join.filter.as_ref().is_some_and(looks_elsewhere)
        }
        LogicalPlan::Filter(filter) => !looks_elsewhere(&filter.predicate) && is_transparent(&filter.input),
        LogicalPlan::Projection(projection) => {
            projection.expr.iter().all(|expression| column_of(expression).is_some())
                && is_transparent(&projection.input)
        }
        LogicalPlan::SubqueryAlias(alias) => is_transparent(&alias.input),
        _ => false,
    }
}

/// Whether an input refers to the rows of the other.
fn is_lateral(input: &LogicalPlan) -> bool {
    match input {
        LogicalPlan::Subquery(_) => true,
        LogicalPlan::SubqueryAlias(alias) => is_lateral(&alias.input),
        _ => false,
    }
}

/// The column that an expression hands through.
fn column_of(expression: &Expr) -> Option<&Column> {
    match expression {
        Expr::Column(column) => Some(column),
        Expr::Alias(Alias { expr, .. }) => column_of(expr),
        _ => None,
    }
}

/// The tree as far as it was walked.
#[derive(Default)]
struct Walk {
    relations: Vec<LogicalPlan>,
    /// The columns of all relations.
    names: Vec<Column>,
    equalities: Vec<Equality>,
    conditions: Vec<Condition>,
}

impl Walk {
    /// Takes a node apart: its order, and what each of its columns is in the relations.
    fn take(&mut self, plan: &LogicalPlan) -> Result<(Order, Vec<Column>)> {
        if !is_transparent(plan) {
            return self.relation(plan);
        }
        match plan {
            LogicalPlan::Join(join) => self.join(join),
            LogicalPlan::Filter(Filter { predicate, input, .. }) => {
                let (order, columns) = self.take(input)?;
                self.add_conditions(predicate, input.schema(), &columns, order.set())?;
                Ok((order, columns))
            }
            LogicalPlan::Projection(Projection { expr, input, .. }) => {
                let (order, columns) = self.take(input)?;
                let projected = expr.iter().map(|expression| match column_of(expression) {
                    Some(column) => Ok(columns[input.schema().index_of_column(column)?].clone()),
                    None => plan_err!("a computed column in a tree of joins"),
                });
                Ok((order, projected.collect::<Result<_>>()?))
            }
            LogicalPlan::SubqueryAlias(SubqueryAlias { input, .. }) => self.take(input),
            other => self.relation(other),
        }
    }

    /// A relation. If a column of the others could be taken for one of its own, its columns get names of their own.
    fn relation(&mut self, plan: &LogicalPlan) -> Result<(Order, Vec<Column>)> {
        let number = self.relations.len();
        let mut plan = plan.clone();
        if plan.schema().columns().iter().any(|column| self.is_taken(column)) {
            let columns = plan.schema().columns().into_iter().map(|column| {
                let mut qualifier = column.relation.as_ref().map(TableReference::table).unwrap_or_default().to_owned();
                qualifier.push_str(&format!("${number}"));
                while self.is_taken(&Column::new(Some(TableReference::bare(qualifier.as_str())), &column.name)) {
                    qualifier.push('$');
                }
                let name = column.name.clone();
                Expr::Column(column).alias_qualified(Some(TableReference::bare(qualifier)), name)
            });
            let columns = columns.collect();
            plan = LogicalPlan::Projection(Projection::try_new(columns, Arc::new(plan))?);
        }
        let columns = plan.schema().columns();
        self.names.extend(columns.iter().cloned());
        self.relations.push(plan);
        Ok((Order::Relation(number), columns))
    }

    /// Whether a column of a relation so far could be meant by a name.
    fn is_taken(&self, column: &Column) -> bool {
        self.names.iter().any(|name| {
            let qualified = column.relation.is_some() && name.relation.is_some();
            name.name == column.name && (!qualified || name.relation == column.relation)
        })
    }

    fn join(&mut self, join: &Join) -> Result<(Order, Vec<Column>)> {
        let (left_order, left) = self.take(&join.left)?;
        let (right_order, right) = self.take(&join.right)?;
        let order = Order::Join(Box::new(left_order), Box::new(right_order));
        for (left_key, right_key) in &join.on {
            let sides = [
                in_relations(left_key, join.left.schema(), &left)?,
                in_relations(right_key, join.right.schema(), &right)?,
            ];
            let sets = [self.reads(&sides[0]), self.reads(&sides[1])];
            if sets.contains(&0) {
                // An equality with a constant is a condition.
                let [left, right] = sides;
                self.conditions.push(Condition {
                    needs: sets[0] | sets[1],
                    expression: left.eq(right),
                    can_fail: false,
                });
            } else {
                self.equalities.push(Equality { sides, sets });
            }
        }
        let columns: Vec<Column> = left.into_iter().chain(right).collect();
        if let Some(filter) = &join.filter {
            self.add_conditions(filter, &join.schema, &columns, order.set())?;
        }
        Ok((order, columns))
    }

    /// Adds the parts of a condition that is evaluated on rows of a set of relations.
    fn add_conditions(&mut self, predicate: &Expr, schema: &DFSchema, columns: &[Column], set: Set) -> Result<()> {
        for part in split_conjunction_owned(predicate.clone()) {
            if part == lit(true) {
                continue;
            }
            let can_fail = !never_fails(&part, schema);
            let expression = in_relations(&part, schema, columns)?;
            let reads = self.reads(&expression);
            let needs = if can_fail || reads == 0 { set } else { reads };
            self.conditions.push(Condition { expression, needs, can_fail });
        }
        Ok(())
    }

    /// The relations that an expression reads.
    fn reads(&self, expression: &Expr) -> Set {
        let columns = expression.column_refs();
        let read = |plan: &LogicalPlan| columns.iter().any(|column| plan.schema().has_column(column));
        let numbers = self.relations.iter().enumerate().filter(|(_, plan)| read(plan));
        numbers.fold(0, |set, (number, _)| set | 1 << number)
    }
}

/// An expression over columns of a node, over those of the relations.
fn in_relations(expression: &Expr, schema: &DFSchema, columns: &[Column]) -> Result<Expr> {
    let replaced = expression.clone().transform_up(|part| match part {
        Expr::Column(column) => {
            let found = columns[schema.index_of_column(&column)?].clone();
            Ok(Transformed::yes(Expr::Column(found)))
        }
        other => Ok(Transformed::no(other)),
    });
    replaced.map(|replaced| replaced.data)
}
