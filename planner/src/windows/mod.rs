//! All spellings of time windows become one: a projection of the source with window_start and window_end.
//!
//! - In FROM ([`WindowPlanner`]): `TUMBLE(t, ts, size [, offset])`, `HOP(t, ts, slide, size [, offset])`,
//!   `CUMULATE(t, ts, step, size [, offset])`, `SESSION(t [PARTITION BY k], ts, gap)`, with `TABLE(...)` around, `TABLE t` and
//!   `DESCRIPTOR(ts)` inside, or named arguments. Every row whose time is not NULL gets the bounds of its window; with HOP
//!   and CUMULATE it appears once for each of its windows. Sessions are window functions of the partition.
//! - In GROUP BY ([`grouping`]): `GROUP BY TUMBLE(ts, size)` is rewritten to the form in FROM.
//!
//! Windows are cut on the time line from 1970-01-01 00:00 UTC plus the offset; a window's end is not part of it.

mod arguments;
pub(crate) mod grouping;
pub(crate) mod tokens;

use datafusion::common::Column;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{
    Expr, LogicalPlan, LogicalPlanBuilder, Operator, WindowFunctionDefinition, binary_expr,
};
use datafusion::sql::sqlparser::ast::{self, TableAlias, TableFactor};
use plan::expressions::{SESSION_END, SESSION_START};
use plan::{PlanError, SqlState};

use crate::bind::errors::external;
use arguments::{Arguments, Intervals, Kind};

/// Name of the column with a window's first instant.
pub const WINDOW_START: &str = "window_start";
/// Name of the column with the first instant after a window.
pub const WINDOW_END: &str = "window_end";

/// Plans windows in FROM.
#[derive(Debug)]
pub(crate) struct WindowPlanner;

impl RelationPlanner for WindowPlanner {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        let (name, args, alias) = match &relation {
            TableFactor::Table { name, args: Some(args), alias, .. } => (name, args.args.as_slice(), alias),
            TableFactor::Function { name, args, alias, .. } => (name, args.as_slice(), alias),
            TableFactor::TableFunction { expr: ast::Expr::Function(function), alias } => match &function.args {
                ast::FunctionArguments::List(list) => (&function.name, list.args.as_slice(), alias),
                _ => return Ok(RelationPlanning::Original(Box::new(relation))),
            },
            _ => return Ok(RelationPlanning::Original(Box::new(relation))),
        };
        let Some(kind) = Kind::of(name) else {
            return Ok(RelationPlanning::Original(Box::new(relation)));
        };
        let arguments = Arguments::of(kind, args).map_err(external)?;
        let alias = alias.clone();
        let own_name = match (&alias, &arguments.data) {
            (None, TableFactor::Table { name, .. }) => Some(context.object_name_to_table_reference(name.clone())?),
            _ => None,
        };
        let plan = window(kind, arguments, context)?;
        let plan = match own_name {
            Some(name) => LogicalPlanBuilder::from(plan).alias(name)?.build()?,
            None => plan,
        };
        Ok(RelationPlanning::Planned(Box::new(PlannedRelation::new(plan, alias))))
    }
}

/// The projection that adds window_start and window_end.
fn window(kind: Kind, arguments: Arguments, context: &mut dyn RelationPlannerContext) -> Result<LogicalPlan> {
    let input = context.plan(arguments.data.clone())?;
    let schema = input.schema().clone();
    for name in [WINDOW_START, WINDOW_END] {
        if !schema.fields_with_unqualified_name(name).is_empty() {
            return Err(external(
                PlanError::new(
                    SqlState::DUPLICATE_COLUMN,
                    format!("the input of {kind} has a column \"{name}\" already"),
                )
                .with_hint("Rename it in a subquery."),
            ));
        }
    }
    let time = arguments::time(kind, &arguments.time, &schema, context)?;
    let intervals = arguments::intervals(kind, &arguments, context)?;
    let input = LogicalPlanBuilder::from(input).filter(time.clone().is_not_null())?.build()?;
    let bounds = Bounds { input, time, intervals };
    match kind {
        Kind::Tumble => bounds.tumble(context),
        Kind::Hop => bounds.hop(context),
        Kind::Cumulate => bounds.cumulate(context),
        Kind::Session => {
            let partition = arguments::partition(&arguments.partition, &schema, context)?;
            bounds.session(partition, context)
        }
    }
}

/// What the bounds of windows are computed of.
struct Bounds {
    /// Rows that have a time.
    input: LogicalPlan,
    time: Expr,
    intervals: Intervals,
}

impl Bounds {
    fn tumble(self, context: &dyn RelationPlannerContext) -> Result<LogicalPlan> {
        let start = self.call(context, "tumble_start", &["size", "offset"])?.alias(WINDOW_START);
        let end = self.call(context, "tumble_end", &["size", "offset"])?.alias(WINDOW_END);
        with(self.input, [start, end])?.build()
    }

    fn hop(self, context: &dyn RelationPlannerContext) -> Result<LogicalPlan> {
        let starts = self.call(context, "hop_starts", &["slide", "size", "offset"])?.alias(WINDOW_START);
        let end =
            binary_expr(Expr::Column(Column::new_unqualified(WINDOW_START)), Operator::Plus, self.interval("size")?);
        let unnested = with(self.input, [starts])?.unnest_column(Column::new_unqualified(WINDOW_START))?.build()?;
        with(unnested, [end.alias(WINDOW_END)])?.build()
    }

    fn cumulate(self, context: &dyn RelationPlannerContext) -> Result<LogicalPlan> {
        let start = self.call(context, "tumble_start", &["size", "offset"])?.alias(WINDOW_START);
        let ends = self.call(context, "cumulate_ends", &["step", "size", "offset"])?.alias(WINDOW_END);
        with(self.input, [start, ends])?.unnest_column(Column::new_unqualified(WINDOW_END))?.build()
    }

    fn session(self, partition: Vec<Expr>, context: &dyn RelationPlannerContext) -> Result<LogicalPlan> {
        let gap = self.interval("gap")?;
        let bound = |name: &str| {
            let function = context.context_provider().get_window_meta(name).ok_or_else(|| unregistered(name))?;
            let function = WindowFunctionDefinition::WindowUDF(function);
            let mut call = WindowFunction::new(function, vec![self.time.clone(), gap.clone()]);
            call.params.partition_by = partition.clone();
            call.params.order_by = vec![self.time.clone().sort(true, false)];
            Ok::<Expr, DataFusionError>(Expr::from(call))
        };
        let (start, end) = (bound(SESSION_START)?, bound(SESSION_END)?);
        let named = |call: &Expr, name| Expr::Column(Column::from_name(call.schema_name().to_string())).alias(name);
        let mut projected = columns(&self.input);
        projected.extend([named(&start, WINDOW_START), named(&end, WINDOW_END)]);
        LogicalPlanBuilder::from(self.input).window([start, end])?.project(projected)?.build()
    }

    /// One of the runtime's window functions, of the time and these intervals.
    fn call(&self, context: &dyn RelationPlannerContext, name: &str, intervals: &[&str]) -> Result<Expr> {
        let function = context.context_provider().get_function_meta(name).ok_or_else(|| unregistered(name))?;
        let mut args = vec![self.time.clone()];
        args.extend(intervals.iter().filter_map(|name| self.intervals.literal(name)));
        Ok(function.call(args))
    }

    fn interval(&self, name: &str) -> Result<Expr> {
        self.intervals.literal(name).ok_or_else(|| internal(&format!("a window without a {name}")))
    }
}

/// A plan with more columns.
fn with(plan: LogicalPlan, more: impl IntoIterator<Item = Expr>) -> Result<LogicalPlanBuilder> {
    let projected: Vec<Expr> = columns(&plan).into_iter().chain(more).collect();
    LogicalPlanBuilder::from(plan).project(projected)
}

fn columns(plan: &LogicalPlan) -> Vec<Expr> {
    plan.schema().iter().map(|(qualifier, field)| Expr::Column(Column::from((qualifier, field)))).collect()
}

fn unregistered(name: &str) -> DataFusionError {
    internal(&format!("the function {name} is not registered"))
}

fn internal(what: &str) -> DataFusionError {
    external(PlanError::internal(what))
}

/// A query that is only a body.
pub(crate) fn query_of(body: ast::SetExpr) -> ast::Query {
    ast::Query {
        with: None,
        body: Box::new(body),
        order_by: None,
        limit_clause: None,
        fetch: None,
        locks: Vec::new(),
        for_clause: None,
        settings: None,
        format_clause: None,
        pipe_operators: Vec::new(),
    }
}

/// SELECT items FROM factor.
pub(crate) fn select_of(projection: Vec<ast::SelectItem>, factor: TableFactor) -> ast::Select {
    ast::Select {
        select_token: ast::helpers::attached_token::AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection,
        exclude: None,
        into: None,
        from: vec![ast::TableWithJoins { relation: factor, joins: Vec::new() }],
        lateral_views: Vec::new(),
        prewhere: None,
        selection: None,
        connect_by: Vec::new(),
        group_by: ast::GroupByExpr::Expressions(Vec::new(), Vec::new()),
        cluster_by: Vec::new(),
        distribute_by: Vec::new(),
        sort_by: Vec::new(),
        having: None,
        named_window: Vec::new(),
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: ast::SelectFlavor::Standard,
    }
}

/// A name as a table of a FROM clause.
pub(crate) fn table_factor(
    name: ast::ObjectName,
    alias: Option<TableAlias>,
    args: Option<Vec<ast::FunctionArg>>,
) -> TableFactor {
    TableFactor::Table {
        name,
        alias,
        args: args.map(|args| ast::TableFunctionArgs { args, settings: None }),
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    }
}
