//! From a logical join to the operator.
//!
//! `x NOT IN (SELECT y FROM R)` arrives as a null-aware anti join. It keeps a row if `R` is empty; else if `x` is not
//! NULL, no `y` is NULL, and no `y` equals `x`. That is three anti joins one after the other, each by keys:
//! - with all of `R`, for the rows whose `x` is NULL (the others have no key here and pass);
//! - with `R` by `x = y` (NULLs have no key and pass);
//! - with the rows of `R` whose `y` is NULL, without key.
//!
//! The first and the last are left out where `x` or `y` cannot be NULL.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{DFSchema, DataFusionError, JoinConstraint, NullEquality};
use datafusion::logical_expr::expr::Case;
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{Expr, ExprSchemable, Filter, Join as LogicalJoin, JoinType, LogicalPlan, cast, lit};
use plan::{Lower, LowerContext, Lowered, NodeId, PlanError};

use super::condition::Condition;
use super::{Join, JoinDefinition, NAME, Side, ranges};
use crate::delta::key::KeyEncoder;
use crate::expressions::{BoundExprs, Predicate, readable};
use crate::operators::project::extend;

impl Lower for JoinDefinition {
    fn name(&self) -> &'static str {
        NAME
    }

    fn lower(&self, plan: &LogicalPlan, context: &mut dyn LowerContext) -> Result<Lowered, PlanError> {
        let LogicalPlan::Join(join) = plan else { return Ok(Lowered::Declined(None)) };
        if join.null_aware {
            return lower_not_in(join, context);
        }
        let (keys, condition) = match bind(join, context) {
            Ok(bound) => bound,
            Err(reason) => return Ok(Lowered::Declined(Some(reason))),
        };
        let (left_node, mut left) = side(&join.left, &keys.left, context)?;
        let (right_node, mut right) = side(&join.right, &keys.right, context)?;
        let nulls_are_equal = join.null_equality == NullEquality::NullEqualsNull;
        let condition_schema = pair_schema(join).map_err(|error| PlanError::internal(error.strip_backtrace()))?;
        let mut condition = condition.map(|whole| Condition { whole, ranged: None });
        if let (Some(condition), Some(filter)) = (&mut condition, &join.filter) {
            let (schemas, needs_order) = ([join.left.schema(), join.right.schema()], [!left.unique, !right.unique]);
            let found =
                ranges::find(filter, schemas.map(AsRef::as_ref), needs_order, &condition_schema, context.session());
            ([left.order, right.order], condition.ranged) = found.map_err(PlanError::internal)?;
        }
        let text = text(join, [&left, &right]);
        let spec = Join {
            join_type: join.join_type,
            pads_like_rows: pads_like_rows(join.join_type, [&left, &right], nulls_are_equal),
            sides: [left, right],
            key_types: keys.types,
            nulls_are_equal,
            condition,
            pair_schema: condition_schema.inner().clone(),
            schema: join.schema.inner().clone(),
            text,
        };
        Ok(Lowered::Node(context.add(Arc::new(spec), vec![left_node, right_node])))
    }
}

/// The keys and the condition of a join, or why it is declined.
fn bind(join: &LogicalJoin, context: &dyn LowerContext) -> Result<(JoinKeys, Option<Predicate>), String> {
    let keys = JoinKeys::of(join, context)?;
    let schema = pair_schema(join).map_err(|error| error.strip_backtrace())?;
    let condition = join.filter.as_ref().filter(|filter| **filter != lit(true));
    let condition = condition.map(|filter| Predicate::bind(filter, &schema, context.session())).transpose()?;
    Ok((keys, condition))
}

/// The columns of both sides, whatever the join shows of them.
fn pair_schema(join: &LogicalJoin) -> Result<Arc<DFSchema>, DataFusionError> {
    match join.join_type {
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => Ok(join.schema.clone()),
        _ => Ok(Arc::new(join.left.schema().join(join.right.schema())?)),
    }
}

/// Whether a row of NULLs may be among the rows that make pairs, or on both sides of a full join.
fn pads_like_rows(join_type: JoinType, sides: [&Side; 2], nulls_are_equal: bool) -> bool {
    let all_null = sides.map(|side| side.nullable.iter().all(|nullable| *nullable));
    let in_pair = [0, 1].map(|side: usize| {
        all_null[side] && (nulls_are_equal || sides[side].keys.iter().all(|key| *key >= sides[side].width))
    });
    match join_type {
        JoinType::Left => in_pair[1],
        JoinType::Right => in_pair[0],
        JoinType::Full => in_pair[0] || in_pair[1] || (all_null[0] && all_null[1]),
        _ => false,
    }
}

fn text(join: &LogicalJoin, sides: [&Side; 2]) -> String {
    let keys = join.on.iter().map(|(left, right)| format!("{} = {}", readable(left), readable(right)));
    let condition = join.filter.as_ref().filter(|filter| **filter != lit(true));
    let parts: Vec<String> = keys.chain(condition.map(readable)).collect();
    let parts = if parts.is_empty() { "every pair".to_string() } else { parts.join(" AND ") };
    let ranges: Vec<&str> = sides.iter().filter_map(|side| Some(side.order.as_ref()?.text.as_str())).collect();
    let ranges = if ranges.is_empty() { String::new() } else { format!("; ranges: {}", ranges.join("; ")) };
    let join_type = match join.join_type {
        JoinType::Inner => return parts + &ranges,
        JoinType::Left => "left outer",
        JoinType::Right => "right outer",
        JoinType::Full => "full outer",
        JoinType::LeftSemi => "left semi",
        JoinType::RightSemi => "right semi",
        JoinType::LeftAnti => "left anti",
        JoinType::RightAnti => "right anti",
        JoinType::LeftMark => "left mark",
        JoinType::RightMark => "right mark",
    };
    format!("{join_type}: {parts}{ranges}")
}

/// The pairs of key expressions, brought to one type each.
struct JoinKeys {
    left: Vec<Expr>,
    right: Vec<Expr>,
    types: Vec<DataType>,
}

impl JoinKeys {
    fn of(join: &LogicalJoin, context: &dyn LowerContext) -> Result<Self, String> {
        let mut keys = JoinKeys { left: Vec::new(), right: Vec::new(), types: Vec::new() };
        let type_of =
            |expression: &Expr, schema: &DFSchema| expression.get_type(schema).map_err(|error| error.strip_backtrace());
        for (left, right) in &join.on {
            let left_type = type_of(left, join.left.schema())?;
            let right_type = type_of(right, join.right.schema())?;
            let common = if left_type == right_type {
                left_type.clone()
            } else {
                comparison_coercion(&left_type, &right_type)
                    .ok_or_else(|| format!("keys of types {left_type} and {right_type} cannot be compared"))?
            };
            let to_common = |expression: &Expr, data_type: DataType| {
                if data_type == common { expression.clone() } else { cast(expression.clone(), common.clone()) }
            };
            keys.left.push(to_common(left, left_type));
            keys.right.push(to_common(right, right_type));
            keys.types.push(common);
        }
        if !KeyEncoder::supports(&keys.types) {
            return Err("a key's type cannot be compared".to_string());
        }
        BoundExprs::bind(&keys.left, join.left.schema(), context.session())?;
        BoundExprs::bind(&keys.right, join.right.schema(), context.session())?;
        Ok(keys)
    }
}

/// Lowers an input, with its keys as columns.
fn side(plan: &LogicalPlan, keys: &[Expr], context: &mut dyn LowerContext) -> Result<(NodeId, Side), PlanError> {
    let input = context.lower(plan)?;
    let schema = context.schema(input);
    let nullable: Vec<bool> = schema.fields().iter().map(|field| field.is_nullable()).collect();
    let (node, keys) = extend(context, input, keys, plan.schema())?;
    let properties = context.properties(node);
    let unique = properties.keys.iter().any(|key| key.iter().all(|column| keys.contains(column)));
    let adds_new_rows_only = properties.append_only && !properties.keys.is_empty();
    Ok((node, Side { keys, width: nullable.len(), nullable, unique, adds_new_rows_only, order: None }))
}

/// Lowers a null-aware anti join as anti joins that are not.
fn lower_not_in(join: &LogicalJoin, context: &mut dyn LowerContext) -> Result<Lowered, PlanError> {
    let ([(value, of_subquery)], None) = (join.on.as_slice(), &join.filter) else {
        return Ok(Lowered::Declined(Some("NOT IN with further conditions is not incremental yet".to_string())));
    };
    match not_in(join, value, of_subquery) {
        Ok(plan) => Ok(Lowered::Node(context.lower(&plan)?)),
        Err(error) => Err(PlanError::internal(error.strip_backtrace())),
    }
}

fn not_in(join: &LogicalJoin, value: &Expr, of_subquery: &Expr) -> Result<LogicalPlan, DataFusionError> {
    let anti = |left: Arc<LogicalPlan>, right: &Arc<LogicalPlan>, on: Vec<(Expr, Expr)>| {
        let (constraint, nulls) = (JoinConstraint::On, NullEquality::NullEqualsNothing);
        let join = LogicalJoin::try_new(left, right.clone(), on, None, JoinType::LeftAnti, constraint, nulls, false)?;
        Ok::<_, DataFusionError>(Arc::new(LogicalPlan::Join(join)))
    };
    let mut rows = join.left.clone();
    if value.nullable(join.left.schema())? {
        let is_null = Case::new(None, vec![(Box::new(value.clone().is_null()), Box::new(lit(true)))], None);
        rows = anti(rows, &join.right, vec![(Expr::Case(is_null), lit(true))])?;
    }
    rows = anti(rows, &join.right, vec![(value.clone(), of_subquery.clone())])?;
    if of_subquery.nullable(join.right.schema())? {
        let nulls = Filter::try_new(of_subquery.clone().is_null(), join.right.clone())?;
        rows = anti(rows, &Arc::new(LogicalPlan::Filter(nulls)), Vec::new())?;
    }
    Ok(Arc::unwrap_or_clone(rows))
}
