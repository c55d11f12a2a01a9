//! Equality of floats and intervals as PostgreSQL has it: -0.0 = 0.0, NaN = NaN, and intervals are equal when they
//! are equally long (a month is 30 days, a day 24 hours).
//!
//! Arrow compares floats by their bits and intervals part by part. This rule wraps operands of comparisons, group
//! keys, DISTINCT columns, sort keys and the keys of OVER of those types in [`Normalize`], which maps equal values to one.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, AsArray};
use datafusion::arrow::datatypes::{
    DataType, Float32Type, Float64Type, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit, TimeUnit,
};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Between, InList, Sort as SortExpr, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, ColumnarValue, Distinct, DistinctOn, Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility, WindowFrameBound, WindowFrameUnits, cast,
};
use datafusion::optimizer::AnalyzerRule;
use plan::expressions::NORMALIZE;

use super::walk;

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(Normalize::new())));

/// Maps equal floats and intervals to one value.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Normalize {
    signature: Signature,
}

impl Normalize {
    fn new() -> Self {
        Normalize { signature: Signature::any(1, Volatility::Immutable) }
    }
}

/// The one interval for all that are as long: no months, and nanoseconds within a day.
fn normal_interval(value: IntervalMonthDayNano) -> IntervalMonthDayNano {
    const DAY: i128 = 86_400_000_000_000;
    let days = i128::from(value.months) * 30 + i128::from(value.days);
    let total = days * DAY + i128::from(value.nanoseconds);
    let (days, nanos) = (total.div_euclid(DAY), total.rem_euclid(DAY));
    match (i32::try_from(days), i64::try_from(nanos)) {
        (Ok(days), Ok(nanos)) => IntervalMonthDayNano::new(0, days, nanos),
        _ => value,
    }
}

fn normal(array: &ArrayRef) -> ArrayRef {
    match array.data_type() {
        DataType::Float64 => {
            let normal = |v: f64| if v.is_nan() { f64::NAN } else { v + 0.0 };
            Arc::new(array.as_primitive::<Float64Type>().unary::<_, Float64Type>(normal))
        }
        DataType::Float32 => {
            let normal = |v: f32| if v.is_nan() { f32::NAN } else { v + 0.0 };
            Arc::new(array.as_primitive::<Float32Type>().unary::<_, Float32Type>(normal))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let intervals = array.as_primitive::<IntervalMonthDayNanoType>();
            Arc::new(intervals.unary::<_, IntervalMonthDayNanoType>(normal_interval))
        }
        _ => array.clone(),
    }
}

impl ScalarUDFImpl for Normalize {
    fn name(&self) -> &str {
        NORMALIZE
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        Ok(arg_types[0].clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match &args.args[0] {
            ColumnarValue::Array(array) => Ok(ColumnarValue::Array(normal(array))),
            ColumnarValue::Scalar(value) => {
                let array = normal(&value.to_array()?);
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
        }
    }
}

/// Whether equal values of a type can differ in their bits.
pub(super) fn needs_normalizing(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float32 | DataType::Float64 | DataType::Interval(IntervalUnit::MonthDayNano))
}

fn is_normalized(expression: &Expr) -> bool {
    match expression {
        Expr::Alias(alias) => is_normalized(&alias.expr),
        Expr::ScalarFunction(call) => call.func.name() == NORMALIZE,
        _ => false,
    }
}

/// Wraps an expression, if its type needs it and it is not wrapped yet.
fn wrap(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    if is_normalized(&expression) || !needs_normalizing(&expression.get_type(schema)?) {
        return Ok(Transformed::no(expression));
    }
    if let Expr::Literal(value, metadata) = &expression {
        let array = normal(&value.to_array()?);
        let normal = ScalarValue::try_from_array(&array, 0)?;
        return Ok(Transformed::yes(Expr::Literal(normal, metadata.clone())));
    }
    Ok(Transformed::yes(FUNCTION.call(vec![expression])))
}

/// A key with one value for those that are equal. The types of columns must be known.
pub(super) fn normal_key(key: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    // Of an expression that has no type yet there is nothing to say.
    if key.get_type(schema).is_err() { Ok(Transformed::no(key)) } else { wrap(key, schema) }
}

/// Wraps expressions in a list of what holds them. Says whether it did.
fn wrap_all<T>(list: &mut [T], schema: &DFSchema, expression_of: fn(&mut T) -> &mut Expr) -> Result<bool> {
    let mut changed = false;
    for item in list {
        let expression = expression_of(item);
        let wrapped = wrap(std::mem::take(expression), schema)?;
        changed |= wrapped.transformed;
        *expression = wrapped.data;
    }
    Ok(changed)
}

/// Wraps expressions.
fn wrap_list(list: &mut [Expr], schema: &DFSchema) -> Result<bool> {
    wrap_all(list, schema, |expression| expression)
}

/// Wraps the keys of an order.
fn wrap_order(order: &mut [SortExpr], schema: &DFSchema) -> Result<bool> {
    wrap_all(order, schema, |sort| &mut sort.expr)
}

/// The rule.
#[derive(Debug)]
pub struct NormalizeKeys;

impl AnalyzerRule for NormalizeKeys {
    fn name(&self) -> &str {
        "normalize_keys"
    }

    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        walk::nodes(plan, &mut rewrite_node)
    }
}

fn rewrite_node(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    walk::node_expressions(node, &mut rewrite_comparison)?.transform_data(rewrite_keys)
}

fn rewrite_comparison(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) if super::operators::is_comparison(op) => {
            let (left, right) = (wrap(*left, schema)?, wrap(*right, schema)?);
            let changed = left.transformed || right.transformed;
            let comparison = BinaryExpr { left: Box::new(left.data), op, right: Box::new(right.data) };
            Ok(Transformed::new_transformed(Expr::BinaryExpr(comparison), changed))
        }
        Expr::InList(InList { expr, mut list, negated }) => {
            let expr = wrap(*expr, schema)?;
            let changed = wrap_list(&mut list, schema)? || expr.transformed;
            Ok(Transformed::new_transformed(Expr::InList(InList { expr: Box::new(expr.data), list, negated }), changed))
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let (expr, low, high) = (wrap(*expr, schema)?, wrap(*low, schema)?, wrap(*high, schema)?);
            let changed = expr.transformed || low.transformed || high.transformed;
            let (low, high) = (Box::new(low.data), Box::new(high.data));
            Ok(Transformed::new_transformed(
                Expr::Between(Between { expr: Box::new(expr.data), negated, low, high }),
                changed,
            ))
        }
        // DISTINCT of an aggregate compares its arguments.
        Expr::AggregateFunction(mut aggregate) if aggregate.params.distinct => {
            let changed = wrap_list(&mut aggregate.params.args, schema)?;
            Ok(Transformed::new_transformed(Expr::AggregateFunction(aggregate), changed))
        }
        Expr::WindowFunction(window) => window_keys(window, schema),
        other => Ok(Transformed::no(other)),
    }
}

/// The keys of OVER.
fn window_keys(mut window: Box<WindowFunction>, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let params = &mut window.params;
    let changed = wrap_list(&mut params.partition_by, schema)?
        | wrap_order(&mut params.order_by, schema)?
        | order_by_instants(params, schema)?;
    // Rows that order the same are peers.
    match super::peers::rank(&window) {
        Some(rank) => Ok(Transformed::yes(rank)),
        None => Ok(Transformed::new_transformed(Expr::WindowFunction(window), changed)),
    }
}

/// Dates plus an interval are instants, in the bounds of RANGE too: an interval below a day would be cut otherwise.
fn order_by_instants(params: &mut WindowFunctionParams, schema: &DFSchema) -> Result<bool> {
    let frame = &params.window_frame;
    let is_distance = |bound: &WindowFrameBound| match bound {
        WindowFrameBound::Preceding(distance) | WindowFrameBound::Following(distance) => !distance.is_null(),
        WindowFrameBound::CurrentRow => false,
    };
    let [sort] = params.order_by.as_mut_slice() else { return Ok(false) };
    let by_distance = is_distance(&frame.start_bound) || is_distance(&frame.end_bound);
    if frame.units != WindowFrameUnits::Range || !by_distance || sort.expr.get_type(schema)? != DataType::Date32 {
        return Ok(false);
    }
    sort.expr = cast(sort.expr.clone(), DataType::Timestamp(TimeUnit::Microsecond, None));
    Ok(true)
}

/// Group keys, DISTINCT columns, sort keys and equated join keys.
fn rewrite_keys(node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    match node {
        LogicalPlan::Aggregate(aggregate) => group_keys(aggregate),
        LogicalPlan::Distinct(Distinct::All(input)) => match normal_columns(&input)? {
            Some(input) => Ok(Transformed::yes(LogicalPlan::Distinct(Distinct::All(Arc::new(input))))),
            None => Ok(Transformed::no(LogicalPlan::Distinct(Distinct::All(input)))),
        },
        LogicalPlan::Distinct(Distinct::On(on)) => distinct_on(on),
        LogicalPlan::Sort(mut sort) => {
            let changed = wrap_order(&mut sort.expr, sort.input.schema())?;
            Ok(Transformed::new_transformed(LogicalPlan::Sort(sort), changed))
        }
        LogicalPlan::Join(mut join) => {
            let changed = wrap_all(&mut join.on, join.left.schema(), |(left, _)| left)?
                | wrap_all(&mut join.on, join.right.schema(), |(_, right)| right)?;
            Ok(Transformed::new_transformed(LogicalPlan::Join(join), changed))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// Group keys keep their names, so that nothing above the aggregate changes.
fn group_keys(aggregate: Aggregate) -> Result<Transformed<LogicalPlan>> {
    let schema = aggregate.input.schema().clone();
    let names = NamePreserver::new_for_projection();
    let mut changed = false;
    let mut keys = Vec::with_capacity(aggregate.group_expr.len());
    for key in aggregate.group_expr {
        // The keys of grouping sets are columns, and normalized where they need it: see `grouping_keys`.
        if matches!(key, Expr::GroupingSet(_)) {
            keys.push(key);
            continue;
        }
        let name = names.save(&key);
        let key = wrap(key, &schema)?;
        changed |= key.transformed;
        keys.push(if key.transformed { name.restore(key.data) } else { key.data });
    }
    let aggregate = Aggregate::try_new(aggregate.input, keys, aggregate.aggr_expr)?;
    Ok(Transformed::new_transformed(LogicalPlan::Aggregate(aggregate), changed))
}

/// A projection that normalizes the columns that need it, unless they come from such a projection.
fn normal_columns(input: &LogicalPlan) -> Result<Option<LogicalPlan>> {
    let schema = input.schema();
    let done = |index: usize| match input {
        LogicalPlan::Projection(projection) => is_normalized(&projection.expr[index]),
        _ => false,
    };
    let needed =
        (0..schema.fields().len()).any(|index| needs_normalizing(schema.field(index).data_type()) && !done(index));
    if !needed {
        return Ok(None);
    }
    let expressions: Vec<Expr> = schema
        .iter()
        .enumerate()
        .map(|(index, (qualifier, field))| {
            let column = Expr::Column(Column::from((qualifier, field)));
            if needs_normalizing(field.data_type()) && !done(index) {
                FUNCTION.call(vec![column]).alias_qualified(qualifier.cloned(), field.name())
            } else {
                column
            }
        })
        .collect();
    LogicalPlanBuilder::from(input.clone()).project(expressions)?.build().map(Some)
}

fn distinct_on(mut on: DistinctOn) -> Result<Transformed<LogicalPlan>> {
    let schema = on.input.schema().clone();
    let mut changed = wrap_list(&mut on.on_expr, &schema)?;
    if let Some(order) = &mut on.sort_expr {
        changed |= wrap_order(order, &schema)?;
    }
    Ok(Transformed::new_transformed(LogicalPlan::Distinct(Distinct::On(on)), changed))
}
