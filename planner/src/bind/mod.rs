//! Syntax trees to statements: names, types and parameters resolved over a catalog.
//!
//! Reading order: [`context`] (what DataFusion's binder asks), [`query`] (queries, whole), then what they are made of:
//! [`names`] (of output columns), [`placement`] (of aggregates), [`operators`], [`interval_arithmetic`], [`types`],
//! [`literal`] (text to values), [`coerce`] (assignment), [`parameters`], [`lateral`] (UNNEST of a column), [`quantified`] (ANY and ALL), [`select_list`] (EXISTS and IN as values),
//! [`using`] (merged columns), [`grouping_sets`] and [`grouping_keys`], [`named_windows`], [`copies`] (EXCEPT ALL), [`precedence`], [`between`], [`set_returning`] (functions of several rows), [`row_values`], [`json`], [`numeric`] and [`symbols`] (operators), [`calls`], [`time_difference`], [`correlated`] and [`domain`] (subqueries that refer to the row around them), [`one_row`], [`ties`] (WITH TIES),
//! [`arithmetic`] (overflow is an error), [`keys`] (equality of floats and intervals), [`missing`] (functions); then the statements: [`insert`], [`change`] (UPDATE
//! and DELETE), [`returning`], [`ddl`], [`copy`], [`show`].

pub mod arithmetic;
mod between;
mod calls;
mod casts;
mod catalog_queries;
mod change;
pub mod coerce;
mod context;
mod copies;
mod copy;
pub(crate) mod correlated;
mod ddl;
mod domain;
mod doubles;
pub mod errors;
mod explain;
mod float_cast;
mod grouping_keys;
mod grouping_sets;
mod insert;
pub mod interval;
mod interval_arithmetic;
mod json;
pub mod keys;
mod lateral;
pub mod literal;
mod missing;
mod named_windows;
mod names;
mod numeric;
mod one_row;
mod operators;
pub mod parameters;
mod peers;
mod placement;
mod precedence;
mod quantified;
pub mod query;
mod returning;
mod row_values;
mod select_list;
mod set_returning;
mod show;
mod similar;
mod subquery_rows;
mod symbols;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]
mod tests;
mod text_cast;
mod ties;
mod time_difference;
pub mod types;
mod using;
mod verify;
pub(crate) mod walk;

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::execution::{FunctionRegistry, SessionState, SessionStateBuilder};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use plan::{PlanError, SqlState};

use crate::catalog::{Catalog, Object, SessionInfo, TableInfo, ViewInfo};
use crate::parse::{Parsed, Syntax, parse_query_text};
use crate::statement::{Drop, Statement};
use crate::{Bound, Planner};
use context::Context;
pub(crate) use insert::interval_text;
pub(crate) use named_windows::EXCLUDE;
use names::shown;
pub(crate) use operators::{call, text as text_ast};
use query::output_schema;

/// Adds the planner's own rules to DataFusion's session. Instants are in UTC; a client's time zone matters only where
/// they are read and printed.
pub(crate) fn prepare_session(session: SessionState) -> SessionState {
    let mut config = session.config().clone();
    config.options_mut().execution.time_zone = Some("UTC".to_string());
    // Logical and physical plans find out differently often that a column is never NULL; that harms nobody.
    config.options_mut().execution.skip_physical_aggregate_schema_check = true;
    let (rules, physical_rules) = crate::optimize::rules(&session);
    let functions: Vec<_> = session
        .scalar_functions()
        .values()
        .filter_map(|function| function.inner().with_updated_config(config.options()))
        .collect();
    let mut state = SessionStateBuilder::new_from_existing(session)
        .with_config(config)
        .with_optimizer_rules(rules)
        .with_physical_optimizer_rules(physical_rules)
        .with_analyzer_rule(Arc::new(arithmetic::CheckedArithmetic))
        .with_analyzer_rule(Arc::new(keys::NormalizeKeys))
        .build();
    for function in functions {
        if let Err(error) = state.register_udf(Arc::new(function)) {
            tracing::error!(%error, "a function is not registered");
        }
    }
    state
}

/// Resolves the names and types of a statement.
pub(crate) fn bind(
    planner: &Planner,
    parsed: &Parsed,
    catalog: &dyn Catalog,
    session: &SessionInfo,
    declared: &[Option<DataType>],
) -> Result<Bound, PlanError> {
    let context = Context::new(planner, catalog, session, &parsed.source);
    let statement = match parsed.syntax.as_ref() {
        Syntax::Query(query) => {
            let (plan, parameters) = context.query(query, declared)?;
            let schema = Some(output_schema(&plan));
            return Ok(Bound { statement: Statement::Query(plan), parameters, schema });
        }
        Syntax::Insert(insert) => return insert::bind(&context, insert, declared),
        Syntax::Update(update) => return change::bind_update(&context, update, declared),
        Syntax::Delete(delete) => return change::bind_delete(&context, delete, declared),
        Syntax::DeclareCursor { name, query } => {
            let (query, parameters) = context.query(query, declared)?;
            let statement = Statement::DeclareCursor { name: name.clone(), query };
            return Ok(Bound { statement, parameters, schema: None });
        }
        Syntax::Copy(syntax) => copy::bind(&context, syntax)?,
        Syntax::Explain { options, statement } => {
            let lines = explain::bind(planner, *options, statement, catalog, session)?;
            return Ok(explained(Statement::Explain { lines, view: None }));
        }
        Syntax::ExplainView(name) => return Ok(explained(explain::bind_view(&context, name)?)),
        Syntax::Show { name } => {
            let columns = if name == "all" { vec!["name", "setting", "description"] } else { vec![name.as_str()] };
            let fields: Vec<Field> = columns.into_iter().map(|name| Field::new(name, DataType::Utf8, true)).collect();
            let schema: SchemaRef = Arc::new(Schema::new(fields));
            let statement = Statement::Show { name: name.clone() };
            return Ok(Bound { statement, parameters: Vec::new(), schema: Some(schema) });
        }
        Syntax::ShowRelations(what) => {
            let plan = show::bind(&context, what)?;
            let schema = Some(output_schema(&plan));
            return Ok(Bound { statement: Statement::Query(plan), parameters: Vec::new(), schema });
        }
        Syntax::Verify(name) => {
            let plan = verify::bind(&context, name)?;
            let schema = Some(output_schema(&plan));
            return Ok(Bound { statement: Statement::Query(plan), parameters: Vec::new(), schema });
        }
        other => plain(&context, other)?,
    };
    Ok(Bound { statement, parameters: Vec::new(), schema: None })
}

/// EXPLAIN's one column of text.
fn explained(statement: Statement) -> Bound {
    let field = Field::new("QUERY PLAN", DataType::Utf8, false);
    Bound { statement, parameters: Vec::new(), schema: Some(Arc::new(Schema::new(vec![field]))) }
}

/// Statements that return no rows and take no parameters.
fn plain(context: &Context<'_>, syntax: &Syntax) -> Result<Statement, PlanError> {
    Ok(match syntax {
        Syntax::Empty => Statement::Empty,
        Syntax::Truncate(names) => {
            let tables = names.iter().map(|name| writable_table(context, name, "truncate"));
            Statement::Truncate(tables.collect::<Result<_, _>>()?)
        }
        Syntax::CreateSchema { name, if_not_exists } => {
            Statement::CreateSchema { name: name.clone(), if_not_exists: *if_not_exists }
        }
        Syntax::CreateTable(syntax) => Statement::CreateTable(ddl::create_table(context, syntax)?),
        Syntax::CreateView(syntax) => Statement::CreateView(ddl::create_view(context, syntax)?),
        Syntax::Drop { kind, names, if_exists, cascade } => {
            Statement::Drop(Drop { kind: *kind, names: names.clone(), if_exists: *if_exists, cascade: *cascade })
        }
        Syntax::Begin { read_only } => Statement::Begin { read_only: *read_only },
        Syntax::Commit => Statement::Commit,
        Syntax::Rollback => Statement::Rollback,
        Syntax::Set { name, value, local } => {
            Statement::Set { name: name.clone(), value: value.clone(), local: *local }
        }
        Syntax::Reset { name } => Statement::Reset { name: name.clone() },
        Syntax::Prepare { name, types, statement } => {
            let types = types.iter().map(|data_type| types::field_of(data_type).map(|field| field.data_type().clone()));
            Statement::Prepare {
                name: name.clone(),
                text: statement.text().to_string(),
                types: types.collect::<Result<_, _>>()?,
            }
        }
        Syntax::Execute { name, arguments } => {
            let arguments = arguments.iter().map(|argument| context.constant(argument));
            Statement::Execute { name: name.clone(), arguments: arguments.collect::<Result<_, _>>()? }
        }
        Syntax::Deallocate { name } => Statement::Deallocate { name: name.clone() },
        Syntax::Fetch { name, count } => Statement::Fetch { name: name.clone(), count: *count },
        Syntax::CloseCursor { name } => Statement::CloseCursor { name: name.clone() },
        Syntax::DiscardAll => Statement::DiscardAll,
        Syntax::NoOperation { tag, notice } => Statement::NoOperation { tag: tag.clone(), notice: *notice },
        Syntax::Refresh(name) => {
            // That there is such a view is all that can be wrong.
            verify::materialized_view(context, name)?;
            Statement::NoOperation { tag: "REFRESH MATERIALIZED VIEW".to_string(), notice: None }
        }
        Syntax::Unsupported(what) => return Err(PlanError::unsupported(what)),
        Syntax::Query(_)
        | Syntax::Insert(_)
        | Syntax::Update(_)
        | Syntax::Delete(_)
        | Syntax::Copy(_)
        | Syntax::Explain { .. }
        | Syntax::Show { .. }
        | Syntax::ShowRelations(_)
        | Syntax::ExplainView(_)
        | Syntax::Verify(_)
        | Syntax::DeclareCursor { .. } => {
            return Err(PlanError::internal("a statement with rows was bound as one without"));
        }
    })
}

/// Plans the stored definition of a view again.
pub(crate) fn plan_view(planner: &Planner, view: &ViewInfo, catalog: &dyn Catalog) -> Result<LogicalPlan, PlanError> {
    let session = SessionInfo {
        search_path: view.search_path.clone(),
        time_zone: "UTC".to_string(),
        user: "tidemill".to_string(),
        database: "tidemill".to_string(),
    };
    view_plan(planner, view, catalog, &session, 0)
}

/// Plans the definition of a view that is used in a query, under the view's own search path.
pub(crate) fn view_plan(
    planner: &Planner,
    view: &ViewInfo,
    catalog: &dyn Catalog,
    session: &SessionInfo,
    depth: usize,
) -> Result<LogicalPlan, PlanError> {
    let (source, query) = parse_query_text(&view.query)?;
    let session = SessionInfo { search_path: view.search_path.clone(), ..session.clone() };
    let mut context = Context::new(planner, catalog, &session, &source);
    context.depth = depth;
    // Positions would be places in the stored text and not in the client's.
    let planned = context.query(&query, &[]).map_err(|error| PlanError { position: None, ..error });
    let (plan, _) = planned?;
    with_column_names(plan, &view.columns)
}

/// A query as the definition of a relation: with the given names for its first columns, and PostgreSQL's for the
/// others. Names must be unique.
pub(crate) fn with_column_names(plan: LogicalPlan, columns: &[String]) -> Result<LogicalPlan, PlanError> {
    let fields = plan.schema().fields();
    if columns.len() > fields.len() {
        return Err(PlanError::new(
            SqlState::SYNTAX_ERROR,
            format!("{} column names are given, but the query has {} columns", columns.len(), fields.len()),
        ));
    }
    let names: Vec<String> = fields
        .iter()
        .enumerate()
        .map(|(index, field)| columns.get(index).cloned().unwrap_or_else(|| shown(field.name()).to_string()))
        .collect();
    if let Some(repeated) = first_repeated(&names) {
        return Err(PlanError::new(
            SqlState::DUPLICATE_COLUMN,
            format!("column \"{repeated}\" specified more than once"),
        )
        .with_hint("Give each column a name of its own with AS."));
    }
    if names.iter().zip(fields).all(|(name, field)| name == field.name()) {
        return Ok(plan);
    }
    let columns = plan.schema().columns();
    let expressions =
        columns.into_iter().zip(names).map(|(column, name)| datafusion::logical_expr::Expr::Column(column).alias(name));
    let expressions: Vec<_> = expressions.collect();
    LogicalPlanBuilder::from(plan)
        .project(expressions)
        .and_then(LogicalPlanBuilder::build)
        .map_err(errors::from_datafusion)
}

/// The first name that is there twice.
pub(crate) fn first_repeated(names: &[String]) -> Option<&String> {
    let mut seen = std::collections::HashSet::new();
    names.iter().find(|name| !seen.insert(name.as_str()))
}

/// The table of a name, for a statement that changes its rows.
pub(crate) fn writable_table(
    context: &Context<'_>,
    name: &datafusion::sql::sqlparser::ast::ObjectName,
    verb: &str,
) -> Result<Arc<TableInfo>, PlanError> {
    let (schema, name) = crate::parse::schema_and_name(name)?;
    let wrong = |kind: &str, hint: &str| {
        Err(PlanError::new(SqlState::WRONG_OBJECT_TYPE, format!("cannot {verb} {kind} \"{name}\"")).with_hint(hint))
    };
    match context.resolve(schema.as_deref(), &name)? {
        Object::Table(table) => Ok(table),
        Object::View(_) => wrong("view", "Change the tables that it reads."),
        Object::MaterializedView(_, _) => {
            wrong("materialized view", "It is kept up to date by itself; change the tables that it reads.")
        }
        Object::Errors(_) => wrong("the errors of a view", "A failed row goes away when it is changed in its table."),
        Object::System(_) => Err(PlanError::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            format!("permission denied: \"{name}\" is a system catalog"),
        )),
    }
}

/// The position of a column in a table.
pub(crate) fn column_position(context: &Context<'_>, table: &TableInfo, column: &str) -> Result<usize, PlanError> {
    let found = table.columns.iter().position(|info| info.name == column);
    found.ok_or_else(|| {
        let relation = table.relation.name.rsplit('.').next().unwrap_or(&table.relation.name);
        let error = PlanError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{column}\" of relation \"{relation}\" does not exist"),
        )
        .at(context.source.position_of_name(None, column));
        let names = table.columns.iter().map(|info| info.name.as_str());
        match crate::catalog::nearest(column, names) {
            Some(near) => error.with_hint(format!("Perhaps you meant to reference the column \"{near}\".")),
            None => error,
        }
    })
}
