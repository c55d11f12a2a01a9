//! Keys of GROUPING SETS that are more than columns.
//!
//! DataFusion finds the keys of grouping sets again by the names of their expressions, which are others once constants in them
//! have their types; and keys whose equal values differ in their bits are to be normalized (see [`keys`]). Such keys are
//! computed by a projection below the aggregate, which then groups by columns; one above gives them their names back.

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::logical_expr::{Aggregate, Expr, GroupingSet, LogicalPlan, LogicalPlanBuilder};

use super::{keys, walk};

/// Rewrites the aggregates of a plan, which is bound and not analyzed.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    walk::nodes(plan, &mut |node| match node {
        LogicalPlan::Aggregate(aggregate) => by_columns(aggregate),
        other => Ok(Transformed::no(other)),
    })
}

fn by_columns(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let computed = match aggregate.group_expr.as_slice() {
        [Expr::GroupingSet(sets)] => computed(sets, &aggregate)?,
        _ => Vec::new(),
    };
    if computed.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let columns = aggregate.input.schema().iter().map(|field| Expr::Column(Column::from(field)));
    let columns = columns.chain(computed.iter().map(|key| key.value.clone().alias(&key.column.name)));
    let input = LogicalPlanBuilder::from(Arc::clone(&aggregate.input)).project(columns.collect::<Vec<_>>())?.build()?;
    let groups = aggregate.group_expr.into_iter().map(|sets| replaced(sets, &computed));
    let calls = aggregate.aggr_expr.into_iter().map(|call| {
        call.transform_up(|part| match part {
            Expr::AggregateFunction(mut call) if call.func.name() == "grouping" => {
                let arguments = call.params.args.into_iter().map(|key| replaced(key, &computed));
                call.params.args = arguments.collect::<Result<_>>()?;
                Ok(Transformed::yes(Expr::AggregateFunction(call)))
            }
            other => Ok(Transformed::no(other)),
        })
        .map(|call| call.data)
    });
    let (groups, calls) = (groups.collect::<Result<_>>()?, calls.collect::<Result<_>>()?);
    let grouped = LogicalPlan::Aggregate(Aggregate::try_new(Arc::new(input), groups, calls)?);
    let fields = grouped.schema().iter().zip(aggregate.schema.iter());
    // The number of the set is DataFusion's own: only GROUPING() looks at it, within the aggregate.
    let fields = fields.filter(|(_, (_, named))| named.name() != Aggregate::INTERNAL_GROUPING_ID);
    let names = fields.map(|(field, (qualifier, named))| {
        let column = Expr::Column(Column::from(field));
        match field.0 == qualifier && field.1.name() == named.name() {
            true => column,
            false => column.alias_qualified(qualifier.cloned(), named.name()),
        }
    });
    let names: Vec<Expr> = names.collect();
    LogicalPlanBuilder::from(grouped).project(names)?.build().map(Transformed::yes)
}

/// A key that is computed.
struct Computed {
    /// As it stands among the keys.
    key: Expr,
    /// What is grouped by.
    value: Expr,
    /// Where that stands.
    column: Column,
}

fn computed(sets: &GroupingSet, aggregate: &Aggregate) -> Result<Vec<Computed>> {
    let mut all = Vec::new();
    for (number, key) in sets.distinct_expr().into_iter().enumerate() {
        let value = keys::normal_key(key.clone(), aggregate.input.schema())?;
        if value.transformed || !matches!(key, Expr::Column(_)) {
            let column = Column::new_unqualified(format!("?key {number}"));
            all.push(Computed { key: key.clone(), value: value.data, column });
        }
    }
    Ok(all)
}

/// An expression with columns in place of keys. What stands within a key is not looked at: the largest one counts.
fn replaced(expression: Expr, computed: &[Computed]) -> Result<Expr> {
    let column = |part: &Expr| computed.iter().find(|key| key.key == *part).map(|key| Expr::Column(key.column.clone()));
    let replaced = expression.transform_down(|part| match column(&part) {
        Some(column) => Ok(Transformed::new(column, true, datafusion::common::tree_node::TreeNodeRecursion::Jump)),
        None => Ok(Transformed::no(part)),
    })?;
    Ok(replaced.data)
}
