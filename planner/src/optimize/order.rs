//! Results that do not depend on the order of equal rows.

use std::collections::HashSet;
use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, Result as DataFusionResult};
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::{Sort as SortExpr, WindowFunction, WindowFunctionDefinition};
use datafusion::logical_expr::expr_rewriter::{NamePreserver, normalize_cols};
use datafusion::logical_expr::{
    Distinct, DistinctOn, Expr, LogicalPlan, LogicalPlanBuilder, Projection, Sort, Window, WindowFrame,
    WindowFrameUnits, cast, lit,
};
use plan::exclusion;
use plan::expressions::{SESSION_END, SESSION_START};

use crate::bind::walk;

/// The name of the number of a row among those of DISTINCT ON.
const NUMBER: &str = "$number";

/// The name of a window function that something else is made of, with a number.
const FUNCTION: &str = "$function";

/// Makes `DISTINCT ON (k) ... ORDER BY k, o` the rows whose `row_number() OVER (PARTITION BY k ORDER BY k, o)` is 1. That order
/// is continued by all columns, so which row is first of its kind does not depend on how the rows come.
pub(super) fn first_of_each(plan: LogicalPlan) -> DataFusionResult<LogicalPlan> {
    walk::nodes(plan, &mut |node| match node {
        LogicalPlan::Distinct(Distinct::On(on)) => first_rows(on).map(Transformed::yes),
        other => Ok(Transformed::no(other)),
    })
}

fn first_rows(on: DistinctOn) -> DataFusionResult<LogicalPlan> {
    let DistinctOn { select_expr, on_expr, sort_expr, input, schema } = on;
    let mut number = WindowFunction::new(row_number_udwf(), Vec::new());
    number.params.partition_by = on_expr;
    number.params.order_by = continued_order(sort_expr.as_deref().unwrap_or_default(), &input);
    number.params.window_frame = WindowFrame::new(Some(false));
    let selected = normalize_cols(select_expr, &input)?.into_iter().zip(schema.iter());
    let selected: Vec<Expr> = selected
        .map(|(expression, (qualifier, field))| {
            expression.unalias_nested().data.alias_qualified(qualifier.cloned(), field.name())
        })
        .collect();
    let first = LogicalPlanBuilder::from(input)
        .window([Expr::WindowFunction(Box::new(number)).alias(NUMBER)])?
        .filter(Expr::Column(Column::new_unqualified(NUMBER)).eq(lit(1u64)))?
        .build()?;
    let first = match sort_expr {
        Some(expr) => LogicalPlan::Sort(Sort { expr, input: Arc::new(first), fetch: None }),
        None => first,
    };
    LogicalPlanBuilder::from(first).project(selected)?.build()
}

/// Makes what depends on the order of rows depend on their values alone:
/// - a sort under a limit is continued by all other columns;
/// - a window function that numbers or reaches rows (row_number, ntile, lag, lead, frames in ROWS) is likewise ordered
///   by all columns after its own order;
/// - in a view, a limit without a sort gets one over all columns.
///
/// Rows that are still equal are equal in every column, so it cannot be seen which of them was taken.
pub(super) fn deterministic(plan: LogicalPlan, in_view: bool) -> DataFusionResult<LogicalPlan> {
    plan.transform_down_with_subqueries(|node| match node {
        LogicalPlan::Limit(mut limit) => {
            let (input, changed) = match order_below_limit(&limit.input)? {
                Some(input) => (Arc::new(input), true),
                None if in_view && !has_sort(&limit.input) => {
                    let expr = continued_order(&[], &limit.input);
                    let sort = Sort { expr, input: Arc::clone(&limit.input), fetch: None };
                    (Arc::new(LogicalPlan::Sort(sort)), true)
                }
                None => (Arc::clone(&limit.input), false),
            };
            limit.input = input;
            let node = LogicalPlan::Limit(limit);
            Ok(if changed { Transformed::yes(node) } else { Transformed::no(node) })
        }
        LogicalPlan::Window(window) => continue_window_order(window),
        other => Ok(Transformed::no(other)),
    })
    .map(|transformed| transformed.data)
}

/// Windows of window functions only, each with one name at most: what was found to be the same for every row, and so no
/// window function any more, is beside them. DataFusion's planning of windows ends in a panic otherwise.
pub(super) fn plain_windows(plan: LogicalPlan) -> DataFusionResult<LogicalPlan> {
    walk::nodes(plan, &mut |node| match node {
        LogicalPlan::Window(window) if !window.window_expr.iter().all(is_plain) => {
            without_constants(window).map(Transformed::yes)
        }
        other => Ok(Transformed::no(other)),
    })
}

fn is_plain(expression: &Expr) -> bool {
    match expression {
        Expr::WindowFunction(_) => true,
        Expr::Alias(alias) => matches!(alias.expr.as_ref(), Expr::WindowFunction(_)),
        _ => false,
    }
}

fn without_constants(window: Window) -> DataFusionResult<LogicalPlan> {
    let mut columns: Vec<Expr> = window.input.schema().columns().into_iter().map(Expr::Column).collect();
    let mut functions = Vec::new();
    for expression in window.window_expr {
        let (qualifier, name) = expression.qualified_name();
        let inner = expression.unalias_nested().data;
        let beside = inner.transform_up(|part| match part {
            Expr::WindowFunction(_) => {
                let number = format!("{FUNCTION} {}", functions.len());
                functions.push(part.alias(&number));
                Ok(Transformed::yes(Expr::Column(Column::new_unqualified(number))))
            }
            other => Ok(Transformed::no(other)),
        })?;
        columns.push(beside.data.alias_qualified(qualifier, name));
    }
    let input = match functions.is_empty() {
        true => window.input,
        false => Arc::new(LogicalPlan::Window(Window::try_new(functions, window.input)?)),
    };
    LogicalPlanBuilder::from(input).project(columns)?.build()
}

/// In a query: OFFSET without LIMIT, where the order is not seen in the result, by the rows' numbers. DataFusion takes the
/// sort below such a limit for one that nothing needs.
pub(super) fn offsets_by_number(plan: LogicalPlan) -> DataFusionResult<LogicalPlan> {
    if matches!(plan, LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Limit(_)) {
        return plan.map_children(|child| offsets_by_number(child).map(Transformed::yes)).map(|plan| plan.data);
    }
    walk::nodes(plan, &mut |node| {
        let LogicalPlan::Limit(limit) = &node else { return Ok(Transformed::no(node)) };
        match (limit.skip.as_deref(), &limit.fetch) {
            (Some(skip), None) => match numbered_behind(&limit.input, skip)? {
                Some(plan) => Ok(Transformed::yes(plan)),
                None => Ok(Transformed::no(node)),
            },
            _ => Ok(Transformed::no(node)),
        }
    })
}

/// The rows behind the first ones of a sort, which may be below projections; none if there is no sort.
fn numbered_behind(plan: &LogicalPlan, skip: &Expr) -> DataFusionResult<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Sort(sort) => {
            let mut number = WindowFunction::new(row_number_udwf(), Vec::new());
            number.params.order_by = sort.expr.clone();
            number.params.window_frame = WindowFrame::new(Some(false));
            let columns = sort.input.schema().columns().into_iter().map(Expr::Column);
            LogicalPlanBuilder::from(sort.input.as_ref().clone())
                .window([Expr::WindowFunction(Box::new(number)).alias(NUMBER)])?
                .filter(cast(Expr::Column(Column::new_unqualified(NUMBER)), DataType::Int64).gt(skip.clone()))?
                .project(columns)?
                .build()
                .map(Some)
        }
        LogicalPlan::Projection(projection) => match numbered_behind(&projection.input, skip)? {
            Some(input) => Ok(Some(plan.with_new_exprs(projection.expr.clone(), vec![input])?)),
            None => Ok(None),
        },
        LogicalPlan::SubqueryAlias(alias) => match numbered_behind(&alias.input, skip)? {
            Some(input) => Ok(Some(plan.with_new_exprs(Vec::new(), vec![input])?)),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// Whether the rows under a limit are sorted, possibly below projections.
fn has_sort(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Projection(projection) => has_sort(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_sort(&alias.input),
        _ => false,
    }
}

/// The plan under a limit with its sort continued by all columns, or none if there is no sort or nothing to add.
fn order_below_limit(plan: &LogicalPlan) -> DataFusionResult<Option<LogicalPlan>> {
    match plan {
        LogicalPlan::Sort(sort) => {
            let expr = continued_order(&sort.expr, &sort.input);
            if expr.len() == sort.expr.len() {
                return Ok(None);
            }
            Ok(Some(LogicalPlan::Sort(Sort { expr, input: Arc::clone(&sort.input), fetch: sort.fetch })))
        }
        LogicalPlan::Projection(projection) => match order_below_limit(&projection.input)? {
            Some(input) => Ok(Some(plan.with_new_exprs(projection.expr.clone(), vec![input])?)),
            None => Ok(None),
        },
        LogicalPlan::SubqueryAlias(alias) => match order_below_limit(&alias.input)? {
            Some(input) => Ok(Some(plan.with_new_exprs(Vec::new(), vec![input])?)),
            None => Ok(None),
        },
        _ => Ok(None),
    }
}

/// An order, continued by all columns of the input that are not in it.
fn continued_order(order: &[SortExpr], input: &LogicalPlan) -> Vec<SortExpr> {
    let present: HashSet<Column> = order
        .iter()
        .filter_map(|sort| match &sort.expr {
            Expr::Column(column) => Some(column.clone()),
            _ => None,
        })
        .collect();
    let rest = input
        .schema()
        .columns()
        .into_iter()
        .filter(|column| !present.contains(column))
        .map(|column| SortExpr::new(Expr::Column(column), true, false));
    order.iter().cloned().chain(rest).collect()
}

/// Continues the order of those window functions whose result depends on the order of equal rows. The functions of a
/// window are computed over rows in one order, so where only some of them are continued, these get a window of their own.
fn continue_window_order(window: Window) -> DataFusionResult<Transformed<LogicalPlan>> {
    let names = NamePreserver::new_for_projection();
    let input = Arc::clone(&window.input);
    let mut continued = Vec::new();
    let mut rest = Vec::new();
    for expression in &window.window_expr {
        let name = names.save(expression);
        let transformed = expression.clone().transform_down(|node| match node {
            Expr::WindowFunction(mut function) if depends_on_row_order(&function) => {
                let order = continued_order(&function.params.order_by, &input);
                let longer = order.len() > function.params.order_by.len();
                function.params.order_by = order;
                let node = Expr::WindowFunction(function);
                Ok(if longer { Transformed::yes(node) } else { Transformed::no(node) })
            }
            other => Ok(Transformed::no(other)),
        })?;
        match transformed.transformed {
            true => continued.push(name.restore(transformed.data)),
            false => rest.push(transformed.data),
        }
    }
    if continued.is_empty() {
        return Ok(Transformed::no(LogicalPlan::Window(window)));
    }
    if rest.is_empty() {
        // The schema stays: every expression keeps its name.
        let node = Window { window_expr: continued, input, schema: window.schema };
        return Ok(Transformed::yes(LogicalPlan::Window(node)));
    }
    let columns: Vec<Expr> = window.schema.columns().into_iter().map(Expr::Column).collect();
    let below = LogicalPlan::Window(Window::try_new(continued, input)?);
    let above = LogicalPlan::Window(Window::try_new(rest, Arc::new(below))?);
    let node = Projection::try_new_with_schema(columns, Arc::new(above), window.schema)?;
    Ok(Transformed::yes(LogicalPlan::Projection(node)))
}

/// Whether a function's result depends on which of equal rows comes first, and an order of all columns can decide it: frames
/// that end or begin with the current row's peers would end or begin with the row itself.
fn depends_on_row_order(function: &WindowFunction) -> bool {
    let frame = &function.params.window_frame;
    let from_first = frame.start_bound.is_unbounded();
    let is_whole = from_first && frame.end_bound.is_unbounded();
    let by_rows = frame.units == WindowFrameUnits::Rows;
    let aggregate = |name: &str| match name {
        "count" | "sum" | "avg" | "min" | "max" => by_rows && !is_whole,
        _ => by_rows || is_whole,
    };
    match &function.fun {
        WindowFunctionDefinition::WindowUDF(udf) => match udf.name() {
            "row_number" | "ntile" | "lag" | "lead" => true,
            // Peers have one rank, and one session, whatever the frame.
            "rank" | "dense_rank" | "percent_rank" | "cume_dist" | SESSION_START | SESSION_END => false,
            "first_value" => by_rows || from_first,
            name => aggregate(exclusion::excluded(name).unwrap_or_default()),
        },
        WindowFunctionDefinition::AggregateUDF(udf) => aggregate(udf.name()),
    }
}
