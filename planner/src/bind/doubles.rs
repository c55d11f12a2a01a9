//! Numeric beside floats.
//!
//! PostgreSQL has no operator over a float and a numeric, and prefers double precision: wherever values of both are to have one
//! type, they become doubles. DataFusion would make decimals of them, which most doubles do not fit.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Case, InList, InSubquery};
use datafusion::logical_expr::{
    Between, BinaryExpr, Cast, Expr, ExprSchemable, Join, LogicalPlan, LogicalPlanBuilder, Subquery, Union,
};
use plan::expressions::is_decimal;

use super::operators::is_comparison;
use super::walk;

/// The functions whose arguments have one type.
const ONE_TYPE: [&str; 5] = ["coalesce", "greatest", "least", "nullif", "make_array"];

/// Makes doubles of numerics beside floats, in all expressions and set operations of a plan.
pub(super) fn beside_numerics(plan: LogicalPlan) -> Result<LogicalPlan> {
    walk::nodes(plan, &mut |node| {
        let node = walk::node_expressions(node, &mut |expression, schema| in_expression(expression, schema))?;
        node.transform_data(in_node)?.map_data(LogicalPlan::recompute_schema)
    })
}

/// One expression, whose parts are done.
pub(super) fn in_expression(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    Ok(match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if is_comparison(op) => {
            let mut sides = [left, right];
            let changed = unify(&mut sides.iter_mut().map(AsMut::as_mut).collect::<Vec<_>>(), schema);
            let [left, right] = sides;
            with(Expr::BinaryExpr(BinaryExpr { left, op, right }), changed)
        }
        Expr::InList(mut list) => {
            let InList { expr, list: items, .. } = &mut list;
            let changed = unify(&mut std::iter::once(expr.as_mut()).chain(items).collect::<Vec<_>>(), schema);
            with(Expr::InList(list), changed)
        }
        Expr::Between(mut between) => {
            let Between { expr, low, high, .. } = &mut between;
            let changed = unify(&mut [expr.as_mut(), low.as_mut(), high.as_mut()], schema);
            with(Expr::Between(between), changed)
        }
        Expr::Case(mut case) => {
            let changed = in_case(&mut case, schema);
            with(Expr::Case(case), changed)
        }
        Expr::ScalarFunction(mut call) if ONE_TYPE.contains(&call.name()) => {
            let changed = unify(&mut call.args.iter_mut().collect::<Vec<_>>(), schema);
            with(Expr::ScalarFunction(call), changed)
        }
        Expr::InSubquery(InSubquery { expr, subquery, negated }) => in_subquery(*expr, subquery, negated, schema)?,
        other => Transformed::no(other),
    })
}

fn with(expression: Expr, changed: bool) -> Transformed<Expr> {
    if changed { Transformed::yes(expression) } else { Transformed::no(expression) }
}

fn in_case(case: &mut Case, schema: &DFSchema) -> bool {
    let compared = match &mut case.expr {
        Some(operand) => {
            let values = case.when_then_expr.iter_mut().map(|(value, _)| value.as_mut());
            unify(&mut std::iter::once(operand.as_mut()).chain(values).collect::<Vec<_>>(), schema)
        }
        None => false,
    };
    let results = case.when_then_expr.iter_mut().map(|(_, result)| result.as_mut());
    let results = results.chain(case.else_expr.iter_mut().map(AsMut::as_mut));
    unify(&mut results.collect::<Vec<_>>(), schema) || compared
}

fn in_subquery(expr: Expr, mut subquery: Subquery, negated: bool, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let mut expr = Box::new(expr);
    let of_subquery = subquery.subquery.schema();
    let mut changed = false;
    if let (Ok(left), [column]) = (expr.get_type(schema), of_subquery.columns().as_slice())
        && is_mixed(&[left, of_subquery.field(0).data_type().clone()])
    {
        changed = to_double(&mut expr, schema);
        let mut inner = Expr::Column(column.clone());
        if to_double(&mut inner, of_subquery) {
            let plan = LogicalPlanBuilder::from(Arc::unwrap_or_clone(Arc::clone(&subquery.subquery)));
            subquery.subquery = Arc::new(plan.project([inner.alias(column.name())])?.build()?);
            changed = true;
        }
    }
    Ok(with(Expr::InSubquery(InSubquery { expr, subquery, negated }), changed))
}

/// Set operations, and the keys of joins (by USING, of INTERSECT and EXCEPT).
fn in_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Union(union) => in_union(union),
        LogicalPlan::Join(mut join) => {
            let Join { left, right, on, .. } = &mut join;
            let mut changed = false;
            for (of_left, of_right) in on {
                let types = (of_left.get_type(left.schema()), of_right.get_type(right.schema()));
                if let (Ok(of_left_type), Ok(of_right_type)) = types
                    && is_mixed(&[of_left_type, of_right_type])
                {
                    changed |= to_double(of_left, left.schema()) | to_double(of_right, right.schema());
                }
            }
            let join = LogicalPlan::Join(join);
            Ok(if changed { Transformed::yes(join) } else { Transformed::no(join) })
        }
        other => Ok(Transformed::no(other)),
    }
}

fn in_union(union: Union) -> Result<Transformed<LogicalPlan>> {
    let types = |column: usize| union.inputs.iter().map(move |input| input.schema().field(column).data_type().clone());
    let mixed: Vec<bool> =
        (0..union.schema.fields().len()).map(|column| is_mixed(&types(column).collect::<Vec<_>>())).collect();
    if !mixed.contains(&true) {
        return Ok(Transformed::no(LogicalPlan::Union(union)));
    }
    let inputs = union.inputs.iter().map(|input| {
        let schema = input.schema();
        let columns = schema.iter().zip(&mixed).map(|((qualifier, field), mixed)| {
            let mut column = Expr::Column(Column::from((qualifier, field)));
            if *mixed && to_double(&mut column, schema) {
                column = column.alias_qualified(qualifier.cloned(), field.name());
            }
            column
        });
        let columns: Vec<Expr> = columns.collect();
        LogicalPlanBuilder::from(Arc::unwrap_or_clone(Arc::clone(input))).project(columns)?.build().map(Arc::new)
    });
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    Ok(Transformed::yes(LogicalPlan::Union(Union::try_new_with_loose_types(inputs)?)))
}

/// Makes doubles of expressions that are to have one type, if there are floats and numerics among them.
fn unify(expressions: &mut [&mut Expr], schema: &DFSchema) -> bool {
    let types: Vec<DataType> = expressions.iter().filter_map(|expression| expression.get_type(schema).ok()).collect();
    if !is_mixed(&types) {
        return false;
    }
    expressions.iter_mut().fold(false, |changed, expression| to_double(expression, schema) | changed)
}

/// Whether there are floats and numerics among types.
fn is_mixed(types: &[DataType]) -> bool {
    types.iter().any(DataType::is_floating) && types.iter().any(is_decimal)
}

/// Makes a double of a numeric or a real.
fn to_double(expression: &mut Expr, schema: &DFSchema) -> bool {
    let data_type = expression.get_type(schema);
    if !data_type.is_ok_and(|data_type| is_decimal(&data_type) || data_type == DataType::Float32) {
        return false;
    }
    let plain = std::mem::take(expression);
    *expression = Expr::Cast(Cast::new(Box::new(plain), DataType::Float64));
    true
}
