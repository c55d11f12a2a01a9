//! All spellings of time windows become one: a projection of the source with window_start and window_end.
//!
//! - In FROM ([`WindowPlanner`]): `TUMBLE(t, ts, size [, offset])`, `HOP(t, ts, slide, size [, offset])`, with
//!   `TABLE(...)` around, `TABLE t` and `DESCRIPTOR(ts)` inside, or named arguments. Every row whose time is not NULL
//!   gets the bounds of its window; with HOP it appears once for each of its windows.
//! - In GROUP BY ([`grouping`]): `GROUP BY TUMBLE(ts, size)` is rewritten to the form in FROM.
//!
//! Windows are cut on the time line from 1970-01-01 00:00 UTC plus the offset; a window's end is not part of it.

mod arguments;
pub(crate) mod grouping;
pub(crate) mod tokens;

use std::sync::Arc;

use datafusion::common::Column;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::planner::{PlannedRelation, RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Operator, ScalarUDF, binary_expr};
use datafusion::sql::sqlparser::ast::{self, TableAlias, TableFactor};
use plan::{PlanError, SqlState};

use crate::bind::errors::external;
use arguments::{Arguments, Kind};

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
        let Some(kind) = Kind::of(name).map_err(external)? else {
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
    let columns = |plan: &LogicalPlan| -> Vec<Expr> {
        plan.schema().iter().map(|(qualifier, field)| Expr::Column(Column::from((qualifier, field)))).collect()
    };
    let call = |function: Arc<ScalarUDF>, parts: &[&str]| {
        let mut args = vec![time.clone()];
        args.extend(parts.iter().filter_map(|part| intervals.literal(part)));
        function.call(args)
    };
    let filtered = LogicalPlanBuilder::from(input).filter(time.clone().is_not_null())?.build()?;
    let mut projected = columns(&filtered);
    match kind {
        Kind::Tumble => {
            let start = call(function(context, "tumble_start")?, &["size", "offset"]);
            let end = call(function(context, "tumble_end")?, &["size", "offset"]);
            projected.push(start.alias(WINDOW_START));
            projected.push(end.alias(WINDOW_END));
            LogicalPlanBuilder::from(filtered).project(projected)?.build()
        }
        Kind::Hop => {
            let starts = call(function(context, "hop_starts")?, &["slide", "size", "offset"]);
            projected.push(starts.alias(WINDOW_START));
            let start = Column::new_unqualified(WINDOW_START);
            let unnested =
                LogicalPlanBuilder::from(filtered).project(projected)?.unnest_column(start.clone())?.build()?;
            let mut projected = columns(&unnested);
            let size = intervals.literal("size").ok_or_else(|| internal("HOP without a size"))?;
            let end = binary_expr(Expr::Column(start), Operator::Plus, size);
            projected.push(end.alias(WINDOW_END));
            LogicalPlanBuilder::from(unnested).project(projected)?.build()
        }
    }
}

fn internal(what: &str) -> DataFusionError {
    external(PlanError::internal(what))
}

/// One of the runtime's window functions.
fn function(context: &dyn RelationPlannerContext, name: &str) -> Result<Arc<ScalarUDF>> {
    context
        .context_provider()
        .get_function_meta(name)
        .ok_or_else(|| internal(&format!("the function {name} is not registered")))
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
