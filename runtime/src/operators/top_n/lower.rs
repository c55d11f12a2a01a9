//! From a sort, a limit, or a filter over numbered rows to the operator.

use std::sync::Arc;

use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{Between, InList, Sort as SortExpr, WindowFunction};
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, Extension, FetchType, Filter, Limit, LogicalPlan, Operator, SkipType, Window,
};
use plan::{Lower, LowerContext, Lowered, NodeId, PlanError};

use super::ranked::Ranked;
use super::{NAME, Numbering, TopN, TopNDefinition};
use crate::delta::rows;
use crate::expressions::{self, BoundExprs, message_of, readable};
use crate::operators::ordered::Layout;
use crate::operators::project::extend;

impl Lower for TopNDefinition {
    fn name(&self) -> &'static str {
        NAME
    }

    fn lower(&self, plan: &LogicalPlan, context: &mut dyn LowerContext) -> Result<Lowered, PlanError> {
        match plan {
            LogicalPlan::Sort(sort) => match sort.fetch {
                Some(fetch) => lower_limit(&sort.input, &sort.expr, 0, Some(fetch), plan, context),
                None => Ok(Lowered::Declined(None)),
            },
            LogicalPlan::Limit(limit) => lower_logical_limit(limit, plan, context),
            LogicalPlan::Filter(filter) => lower_filter(filter, context),
            LogicalPlan::Extension(extension) => match extension.node.as_any().downcast_ref::<Ranked>() {
                Some(ranked) => lower_ranked(ranked, context),
                None => Ok(Lowered::Declined(None)),
            },
            _ => Ok(Lowered::Declined(None)),
        }
    }
}

/// A filter over numbered rows, if it bounds their number from above.
fn lower_filter(filter: &Filter, context: &mut dyn LowerContext) -> Result<Lowered, PlanError> {
    let window = window_below(&filter.input);
    let Some(window) = window.filter(|window| numberings(window).is_some()) else { return Ok(Lowered::Declined(None)) };
    let Some(plan) = ranked(filter, window) else { return Ok(Lowered::Declined(None)) };
    // Nobody else takes what it becomes, so all of it must be possible.
    let first = window_functions(window).and_then(|functions| functions.first().copied());
    let keys = first.map(|first| (first.params.partition_by.as_slice(), first.params.order_by.as_slice()));
    let (partition, order) = keys.unwrap_or_default();
    let reason = refusal(&window.input, partition, order, context).or_else(|| refusal_above(&plan));
    match reason {
        Some(reason) => Ok(Lowered::Declined(Some(reason))),
        None => Ok(Lowered::Node(context.lower(&plan)?)),
    }
}

/// Why an expression of a plan down to [`Ranked`] cannot be evaluated, if one cannot.
fn refusal_above(plan: &LogicalPlan) -> Option<String> {
    match plan {
        LogicalPlan::Extension(_) => None,
        _ => {
            let own = plan.expressions().iter().find_map(expressions::refusal);
            own.or_else(|| plan.inputs().into_iter().find_map(refusal_above))
        }
    }
}

/// A limit, as it stands over a sort.
fn lower_logical_limit(
    limit: &Limit,
    plan: &LogicalPlan,
    context: &mut dyn LowerContext,
) -> Result<Lowered, PlanError> {
    let internal = |error| PlanError::internal(message_of(&error));
    let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
        (limit.get_skip_type().map_err(internal)?, limit.get_fetch_type().map_err(internal)?)
    else {
        return Ok(Lowered::Declined(Some("LIMIT and OFFSET are no constants".to_owned())));
    };
    match limit.input.as_ref() {
        LogicalPlan::Sort(sort) => {
            let fetch = match (fetch, sort.fetch.map(|of_sort| of_sort.saturating_sub(skip))) {
                (Some(left), Some(right)) => Some(left.min(right)),
                (left, right) => left.or(right),
            };
            lower_limit(&sort.input, &sort.expr, skip, fetch, plan, context)
        }
        // What is computed of each row can be computed of those that are left.
        LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) if has_sort(&limit.input) => {
            let below = limit.input.inputs()[0].clone();
            let limit = LogicalPlan::Limit(Limit { input: Arc::new(below), ..limit.clone() });
            let plan = limit_below(plan, limit).map_err(internal)?;
            Ok(Lowered::Node(context.lower(&plan)?))
        }
        // Any rows will do: the first by their values.
        input => {
            let by_all = input.schema().columns().into_iter().map(|column| Expr::Column(column).sort(true, false));
            lower_limit(&limit.input, &by_all.collect::<Vec<_>>(), skip, fetch, plan, context)
        }
    }
}

fn limit_below(plan: &LogicalPlan, limit: LogicalPlan) -> Result<LogicalPlan, datafusion::error::DataFusionError> {
    let over = plan.inputs()[0];
    over.with_new_exprs(over.expressions(), vec![limit])
}

fn has_sort(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Projection(projection) => has_sort(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => has_sort(&alias.input),
        _ => false,
    }
}

fn lower_limit(
    input: &LogicalPlan,
    order: &[SortExpr],
    skip: usize,
    fetch: Option<usize>,
    plan: &LogicalPlan,
    context: &mut dyn LowerContext,
) -> Result<Lowered, PlanError> {
    if skip == 0 && fetch.is_none() {
        return Ok(Lowered::Node(context.lower(input)?));
    }
    if let Some(reason) = refusal(input, &[], order, context) {
        return Ok(Lowered::Declined(Some(reason)));
    }
    let (node, layout) = keyed(input, &[], order, context)?;
    let offset = if skip == 0 { String::new() } else { format!(" offset {skip}") };
    let limit = fetch.map_or("all".to_owned(), |fetch| fetch.to_string());
    let spec = TopN {
        layout,
        by: Numbering::Position,
        lowest: skip as u64 + 1,
        highest: fetch.map(|fetch| skip as u64 + fetch as u64),
        shown: Vec::new(),
        unique_rows: !context.properties(node).keys.is_empty(),
        schema: plan.schema().inner().clone(),
        text: format!("{limit}{offset} by {}", order_text(order)),
    };
    Ok(Lowered::Node(context.add(Arc::new(spec), vec![node])))
}

fn lower_ranked(ranked: &Ranked, context: &mut dyn LowerContext) -> Result<Lowered, PlanError> {
    let LogicalPlan::Window(window) = &ranked.window else { return Ok(Lowered::Declined(None)) };
    let functions = window_functions(window).zip(numberings(window));
    let Some((functions, shown)) = functions else { return Ok(Lowered::Declined(None)) };
    let (Some(function), Some(by)) = (functions.get(ranked.function), shown.get(ranked.function)) else {
        return Ok(Lowered::Declined(None));
    };
    let (partition, order) = (&function.params.partition_by, &function.params.order_by);
    if let Some(reason) = refusal(&window.input, partition, order, context) {
        return Ok(Lowered::Declined(Some(reason)));
    }
    let (node, layout) = keyed(&window.input, partition, order, context)?;
    let per = match partition.is_empty() {
        true => String::new(),
        false => format!(" per {}", partition.iter().map(readable).collect::<Vec<_>>().join(", ")),
    };
    let (name, lowest, highest) = (function.fun.name(), ranked.lowest, ranked.highest);
    let spec = TopN {
        layout,
        by: *by,
        lowest,
        highest: Some(highest),
        shown,
        unique_rows: !context.properties(node).keys.is_empty(),
        schema: window.schema.inner().clone(),
        text: format!("{name} {lowest} to {highest}{per} by {}", order_text(order)),
    };
    Ok(Lowered::Node(context.add(Arc::new(spec), vec![node])))
}

/// Why rows cannot be kept in an order, if they cannot.
pub(in crate::operators) fn refusal(
    input: &LogicalPlan,
    partition: &[Expr],
    order: &[SortExpr],
    context: &dyn LowerContext,
) -> Option<String> {
    let keys = partition.iter().chain(order.iter().map(|sort| &sort.expr));
    let bound = match BoundExprs::bind(keys, input.schema(), context.session()) {
        Ok(bound) => bound,
        Err(reason) => return Some(reason),
    };
    let schema = input.schema().inner();
    let types = bound.expressions().iter().map(|key| key.data_type(schema));
    let types = types.chain(schema.fields().iter().map(|field| Ok(field.data_type().clone())));
    match types.collect::<Result<Vec<DataType>, _>>() {
        Ok(types) if rows::supports(&types) => None,
        Ok(_) => Some("a column's type cannot be ordered".to_owned()),
        Err(error) => Some(message_of(&error)),
    }
}

/// Lowers an input, with its keys as columns.
pub(in crate::operators) fn keyed(
    input: &LogicalPlan,
    partition: &[Expr],
    order: &[SortExpr],
    context: &mut dyn LowerContext,
) -> Result<(NodeId, Layout), PlanError> {
    let node = context.lower(input)?;
    let width = context.schema(node).fields().len();
    let keys: Vec<Expr> = partition.iter().chain(order.iter().map(|sort| &sort.expr)).cloned().collect();
    let (node, positions) = extend(context, node, &keys, input.schema())?;
    let (partition, by) = positions.split_at(partition.len());
    let directions = order.iter().map(|sort| SortOptions { descending: !sort.asc, nulls_first: sort.nulls_first });
    let order = by.iter().copied().zip(directions).collect();
    Ok((node, Layout { width, partition: partition.to_vec(), order }))
}

pub(in crate::operators) fn order_text(order: &[SortExpr]) -> String {
    let text = |sort: &SortExpr| {
        let direction = if sort.asc { "" } else { " DESC" };
        // As in PostgreSQL, NULL is greater than all else unless it is said.
        let nulls = match (sort.asc == sort.nulls_first, sort.nulls_first) {
            (false, _) => "",
            (true, true) => " NULLS FIRST",
            (true, false) => " NULLS LAST",
        };
        format!("{}{direction}{nulls}", readable(&sort.expr))
    };
    order.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// The functions of a window, without their names; none if there is something else.
pub(in crate::operators) fn window_functions(window: &Window) -> Option<Vec<&WindowFunction>> {
    window.window_expr.iter().map(window_function).collect()
}

fn window_function(expression: &Expr) -> Option<&WindowFunction> {
    match expression {
        Expr::Alias(alias) => window_function(&alias.expr),
        Expr::WindowFunction(function) => Some(function),
        _ => None,
    }
}

/// How the functions of a window number rows: all by one order, by position or all by rank. None if they do else.
fn numberings(window: &Window) -> Option<Vec<Numbering>> {
    let functions = window_functions(window)?;
    let numberings: Vec<Numbering> = functions.iter().map(|function| numbering(function)).collect::<Option<_>>()?;
    let first = functions.first()?;
    let same_order = functions.iter().all(|function| {
        function.params.partition_by == first.params.partition_by && function.params.order_by == first.params.order_by
    });
    let positions = numberings.iter().filter(|numbering| **numbering == Numbering::Position).count();
    (same_order && (positions == 0 || positions == numberings.len())).then_some(numberings)
}

fn numbering(function: &WindowFunction) -> Option<Numbering> {
    let params = &function.params;
    if params.filter.is_some() || params.distinct || params.null_treatment.is_some() {
        return None;
    }
    match function.fun.name() {
        "row_number" => Some(Numbering::Position),
        // Without an order, DataFusion's ranks number the rows.
        "rank" if !params.order_by.is_empty() => Some(Numbering::Rank),
        "dense_rank" if !params.order_by.is_empty() => Some(Numbering::DenseRank),
        _ => None,
    }
}

/// A filter over numbered rows as what is left of it over [`Ranked`], if it bounds their number from above.
fn ranked(filter: &Filter, window: &Window) -> Option<LogicalPlan> {
    let conjuncts = split_conjunction(&filter.predicate);
    let bounds: Vec<Option<Bound>> = conjuncts.iter().map(|conjunct| bound(conjunct, &filter.input)).collect();
    let function = bounds.iter().flatten().find(|bound| bound.highest.is_some())?.function;
    let (mut lowest, mut highest, mut rest) = (1, u64::MAX, Vec::new());
    for (conjunct, bound) in conjuncts.into_iter().zip(bounds) {
        match bound {
            Some(bound) if bound.function == function => {
                lowest = lowest.max(bound.lowest);
                highest = highest.min(bound.highest.unwrap_or(u64::MAX));
                if !bound.is_all {
                    rest.push(conjunct.clone());
                }
            }
            _ => rest.push(conjunct.clone()),
        }
    }
    let ranked = Ranked { window: LogicalPlan::Window(window.clone()), function, lowest, highest };
    let input = over(&filter.input, ranked)?;
    match conjunction(rest) {
        Some(predicate) => Filter::try_new(predicate, Arc::new(input)).ok().map(LogicalPlan::Filter),
        None => Some(input),
    }
}

/// The window under projections.
fn window_below(plan: &LogicalPlan) -> Option<&Window> {
    match plan {
        LogicalPlan::Window(window) => Some(window),
        LogicalPlan::Projection(projection) => window_below(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => window_below(&alias.input),
        _ => None,
    }
}

/// The same projections over another node.
fn over(plan: &LogicalPlan, ranked: Ranked) -> Option<LogicalPlan> {
    if matches!(plan, LogicalPlan::Window(_)) {
        return Some(LogicalPlan::Extension(Extension { node: Arc::new(ranked) }));
    }
    let below = over(plan.inputs().first()?, ranked)?;
    plan.with_new_exprs(plan.expressions(), vec![below]).ok()
}

/// What a condition says of the number of a window's function.
struct Bound {
    function: usize,
    lowest: u64,
    highest: Option<u64>,
    /// Whether it says nothing else.
    is_all: bool,
}

fn bound(condition: &Expr, input: &LogicalPlan) -> Option<Bound> {
    let (number, operator, value) = match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Or, right }) => {
            return either(bound(left, input)?, bound(right, input)?);
        }
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match integer(right) {
            Some(value) => (left, *op, value),
            None => (right, op.swap()?, integer(left)?),
        },
        Expr::Between(Between { expr, negated: false, low, high }) => {
            return within(expr, integer(low)?, Some(integer(high)?), input);
        }
        Expr::InList(InList { expr, list, negated: false }) => {
            let values: Vec<i128> = list.iter().map(integer).collect::<Option<_>>()?;
            let bound = within(expr, *values.iter().min()?, values.iter().max().copied(), input)?;
            return Some(Bound { is_all: false, ..bound });
        }
        _ => return None,
    };
    match operator {
        Operator::Eq => within(number, value, Some(value), input),
        Operator::Lt => within(number, 1, Some(value - 1), input),
        Operator::LtEq => within(number, 1, Some(value), input),
        Operator::Gt => within(number, value + 1, None, input),
        Operator::GtEq => within(number, value, None, input),
        _ => None,
    }
}

/// What follows if one of two bounds holds.
fn either(left: Bound, right: Bound) -> Option<Bound> {
    let highest = left.highest.zip(right.highest).map(|(left, right)| left.max(right));
    let lowest = left.lowest.min(right.lowest);
    (left.function == right.function).then_some(Bound { function: left.function, lowest, highest, is_all: false })
}

fn within(expression: &Expr, lowest: i128, highest: Option<i128>, input: &LogicalPlan) -> Option<Bound> {
    let limited = |value: i128| u64::try_from(value.max(0)).unwrap_or(u64::MAX);
    let function = function_of(expression, input)?;
    Some(Bound { function, lowest: limited(lowest), highest: highest.map(limited), is_all: true })
}

/// The window function whose number an expression is.
fn function_of(expression: &Expr, plan: &LogicalPlan) -> Option<usize> {
    let column = match expression {
        Expr::Alias(alias) => return function_of(&alias.expr, plan),
        Expr::Cast(cast) if cast.field.data_type().is_integer() => return function_of(&cast.expr, plan),
        // The cast of an integer that fails where it does not fit.
        Expr::ScalarFunction(cast) if cast.name() == "assign" => match cast.args.as_slice() {
            [operand, ..] if is_integer(expression, plan) => return function_of(operand, plan),
            _ => return None,
        },
        Expr::Column(column) => plan.schema().maybe_index_of_column(column)?,
        _ => return None,
    };
    function_at(plan, column)
}

fn is_integer(expression: &Expr, plan: &LogicalPlan) -> bool {
    expression.get_type(plan.schema()).is_ok_and(|data_type| data_type.is_integer())
}

fn function_at(plan: &LogicalPlan, column: usize) -> Option<usize> {
    match plan {
        LogicalPlan::Window(window) => column.checked_sub(window.input.schema().fields().len()),
        LogicalPlan::Projection(projection) => function_of(projection.expr.get(column)?, &projection.input),
        LogicalPlan::SubqueryAlias(alias) => function_at(&alias.input, column),
        _ => None,
    }
}

/// The value of an integer constant.
fn integer(expression: &Expr) -> Option<i128> {
    let Expr::Literal(value, _) = expression else { return None };
    if !value.data_type().is_integer() || value.is_null() {
        return None;
    }
    match value.cast_to(&DataType::Decimal128(38, 0)).ok()? {
        ScalarValue::Decimal128(value, ..) => value,
        _ => None,
    }
}
