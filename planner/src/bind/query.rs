//! Queries: syntax tree to analyzed logical plan.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::sql::planner::{ParserOptions, PlannerContext, SqlToRel};
use datafusion::sql::sqlparser::ast;
use plan::{PlanError, SqlState};

use super::context::Context;
use super::errors::plan_error;
use super::{
    casts, copies, correlated, doubles, grouping_keys, grouping_sets, lateral, named_windows, names, numeric,
    operators, parameters, placement, quantified, select_list, ties, types, using, walk,
};
use crate::optimize::in_lists;
use crate::windows::{select_of, table_factor};

/// DataFusion's options for reading syntax trees.
fn options() -> ParserOptions {
    ParserOptions::new()
        .with_parse_float_as_decimal(true)
        .with_map_string_types_to_utf8view(false)
        .with_collect_spans(true)
}

impl Context<'_> {
    /// DataFusion's binder over this context.
    pub fn binder(&self) -> SqlToRel<'_, Self> {
        SqlToRel::new_with_options(self, options())
    }

    /// An error of DataFusion's in PostgreSQL's words.
    pub fn error(&self, error: datafusion::error::DataFusionError) -> PlanError {
        plan_error(error, self.source)
    }

    /// A query in the spelling that DataFusion understands.
    fn rewrite_query(&self, query: &mut ast::Query) -> Result<(), PlanError> {
        using::rewrite(self, query);
        walk::query(
            query,
            &mut walk::Syntax {
                query: &mut rewrite_clauses,
                select: &mut |select| self.rewrite_select(select),
                expression: &mut |expression| operators::rewrite(expression, self.session),
            },
        )
    }

    /// A select in the spelling that DataFusion understands.
    fn rewrite_select(&self, select: &mut ast::Select) -> Result<(), PlanError> {
        if select.into.is_some() {
            return Err(PlanError::unsupported("SELECT INTO").with_hint("Use CREATE TABLE AS."));
        }
        placement::check(self, select)?;
        grouping_sets::rewrite(select)?;
        named_windows::rewrite(select, &mut [])?;
        [&mut select.selection, &mut select.having].into_iter().flatten().for_each(quantified::rewrite_condition);
        names::name_items(select);
        select_list::rewrite(select);
        names::name_table_functions(select);
        crate::windows::grouping::rewrite(select, &mut [])
    }

    /// An expression in the spelling that DataFusion understands.
    fn rewrite_expression(&self, expression: &mut ast::Expr) -> Result<(), PlanError> {
        walk::expression(
            expression,
            &mut walk::Syntax {
                query: &mut rewrite_clauses,
                select: &mut |select| self.rewrite_select(select),
                expression: &mut |expression| operators::rewrite(expression, self.session),
            },
        )
    }

    /// Binds a query without analyzing it: types are not coerced yet, parameters may be untyped.
    pub fn bind_query(&self, query: &ast::Query, declared: &[Option<DataType>]) -> Result<LogicalPlan, PlanError> {
        let mut query = query.clone();
        check_query(&query)?;
        // FOR UPDATE and the like: there is nothing that could be locked out.
        query.locks.clear();
        self.rewrite_query(&mut query)?;
        let mut planner_context = planner_context(declared);
        let statement = ast::Statement::Query(Box::new(query));
        self.binder()
            .sql_statement_to_plan_with_context(statement, &mut planner_context)
            .and_then(grouping_keys::rewrite)
            .and_then(lateral::rewrite)
            .and_then(ties::rewrite)
            .and_then(copies::rewrite)
            .and_then(|plan| correlated::rewrite(plan, self.state().aggregate_functions().get("array_agg").cloned()))
            .and_then(casts::restore)
            .map_err(|error| self.error(error))
    }

    /// Binds an expression over a schema, without analyzing it.
    pub fn bind_expression(
        &self,
        expression: &ast::Expr,
        schema: &DFSchema,
        declared: &[Option<DataType>],
    ) -> Result<Expr, PlanError> {
        let mut expression = expression.clone();
        self.rewrite_expression(&mut expression)?;
        self.binder().sql_to_expr(expression, schema, &mut planner_context(declared)).map_err(|error| self.error(error))
    }

    /// Gives parameters their types and applies DataFusion's and our own analyzer rules.
    pub fn analyze(&self, plan: LogicalPlan) -> Result<(LogicalPlan, Vec<FieldRef>), PlanError> {
        let plan = operators::integer_constants(plan).map_err(|error| self.error(error))?;
        let plan = numeric::digits(plan).map_err(|error| self.error(error))?;
        let (plan, types) = parameters::resolve(plan).map_err(|error| self.error(error))?;
        let plan = operators::text_constants(plan, &self.session.time_zone).map_err(|error| self.error(error))?;
        let state = self.state();
        let plan = numeric::Functions::new(state).replace(plan).map_err(|error| self.error(error))?;
        let plan = numeric::digits(plan).map_err(|error| self.error(error))?;
        let plan = doubles::beside_numerics(plan).map_err(|error| self.error(error))?;
        let plan = state
            .analyzer()
            .execute_and_check(plan, state.config_options(), |_, _| {})
            .map_err(|error| self.error(error))?;
        Ok((plan, types))
    }

    /// Binds and analyzes a query.
    pub fn query(
        &self,
        query: &ast::Query,
        declared: &[Option<DataType>],
    ) -> Result<(LogicalPlan, Vec<FieldRef>), PlanError> {
        let plan = self.bind_query(query, declared)?;
        let (plan, types) = self.analyze(plan)?;
        Ok((types::with_postgres_types(plan).map_err(|error| self.error(error))?, types))
    }

    /// Coerces and simplifies an expression over a schema; constants become literals.
    pub fn simplify(&self, expression: Expr, schema: &DFSchema) -> Result<Expr, PlanError> {
        let context = SimplifyContext::builder()
            .with_config_options(Arc::clone(self.state().config_options()))
            .with_schema(Arc::new(schema.clone()))
            .build();
        let simplifier = ExprSimplifier::new(context);
        let typed =
            walk::parts(expression, &mut |part| operators::rewrite_typed(part, schema, &self.session.time_zone));
        let typed = typed.map_err(|error| self.error(error))?.data;
        let functions = numeric::Functions::new(self.state());
        let typed = walk::parts(typed, &mut |part| {
            functions
                .replaced(part, schema)
                .transform_data(|part| Ok(numeric::with_digits(part, schema)))?
                .transform_data(|part| doubles::in_expression(part, schema))
        });
        let typed = typed.map_err(|error| self.error(error))?.data;
        let coerced = simplifier.coerce(typed, schema).map_err(|error| self.error(error))?;
        let checked = walk::parts(coerced, &mut |part| super::arithmetic::check(part, schema));
        let checked = checked.map_err(|error| self.error(error))?.data;
        in_lists::simplify(&simplifier, checked).map_err(|error| self.error(error))
    }

    /// The value of an expression without columns.
    pub fn constant(&self, expression: &ast::Expr) -> Result<ScalarValue, PlanError> {
        let schema = DFSchema::empty();
        let bound = self.bind_expression(expression, &schema, &[])?;
        match self.simplify(bound, &schema)? {
            Expr::Literal(value, _) => Ok(value),
            other => Err(PlanError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("\"{other}\" is not a constant expression"),
            )),
        }
    }
}

fn planner_context(declared: &[Option<DataType>]) -> PlannerContext {
    let fields: Vec<Option<FieldRef>> = declared
        .iter()
        .map(|data_type| data_type.as_ref().map(|data_type| Arc::new(Field::new("", data_type.clone(), true))))
        .collect();
    PlannerContext::new().with_prepare_param_data_types(fields)
}

/// What the parser lets through and nobody carries out.
fn check_query(query: &ast::Query) -> Result<(), PlanError> {
    if query.for_clause.is_some() {
        return Err(PlanError::unsupported("FOR XML, FOR JSON and FOR BROWSE"));
    }
    if query.format_clause.is_some() || query.settings.is_some() || !query.pipe_operators.is_empty() {
        return Err(PlanError::unsupported("this clause of a query"));
    }
    Ok(())
}

/// `FETCH FIRST n ROWS ONLY` is `LIMIT n`; WITH TIES is marked, see [`ties`].
fn limit_of_fetch(query: &mut ast::Query) -> Result<(), PlanError> {
    let Some(fetch) = query.fetch.take() else { return Ok(()) };
    if fetch.percent {
        return Err(PlanError::unsupported("FETCH ... PERCENT")
            .with_hint("Filter by percent_rank() OVER (ORDER BY ...) in a query around this one."));
    }
    if fetch.with_ties && query.order_by.is_none() {
        return Err(ties::without_order());
    }
    let one = || ast::Expr::Value(ast::Value::Number("1".to_string(), false).with_empty_span());
    let rows = fetch.quantity.unwrap_or_else(one);
    let rows = if fetch.with_ties { ties::mark(rows) } else { rows };
    let offset = match query.limit_clause.take() {
        Some(ast::LimitClause::LimitOffset { limit: None, offset, .. }) => offset,
        None => None,
        Some(_) => return Err(PlanError::new(SqlState::SYNTAX_ERROR, "a query has either LIMIT or FETCH FIRST")),
    };
    query.limit_clause = Some(ast::LimitClause::LimitOffset { limit: Some(rows), offset, limit_by: Vec::new() });
    Ok(())
}

/// `TABLE t` is `SELECT * FROM t`.
fn select_of_table(body: &mut ast::SetExpr) {
    match body {
        ast::SetExpr::Table(table) => {
            let names = [&table.schema_name, &table.table_name].into_iter().flatten();
            let parts = names.map(|name| ast::ObjectNamePart::Identifier(ast::Ident::new(name)));
            let factor = table_factor(ast::ObjectName(parts.collect()), None, None);
            let all = ast::SelectItem::Wildcard(ast::WildcardAdditionalOptions::default());
            *body = ast::SetExpr::Select(Box::new(select_of(vec![all], factor)));
        }
        ast::SetExpr::SetOperation { left, right, .. } => {
            select_of_table(left);
            select_of_table(right);
        }
        _ => {}
    }
}

/// A query's own clauses, and a select with the ORDER BY that belongs to it.
fn rewrite_clauses(query: &mut ast::Query) -> Result<(), PlanError> {
    super::catalog_queries::rewrite_query(query)?;
    limit_of_fetch(query)?;
    select_of_table(&mut query.body);
    copies::mark(&mut query.body);
    let ast::SetExpr::Select(select) = query.body.as_mut() else { return Ok(()) };
    let mut none = Vec::new();
    let order_by = match &mut query.order_by {
        Some(ast::OrderBy { kind: ast::OrderByKind::Expressions(expressions), .. }) => expressions,
        _ => &mut none,
    };
    if select.distinct.is_some() {
        // DataFusion looks for what DISTINCT is ordered by among the names of its items.
        for item in order_by.iter_mut() {
            let same = |of: &ast::SelectItem| matches!(of, ast::SelectItem::UnnamedExpr(known) if *known == item.expr);
            let plain = matches!(item.expr, ast::Expr::Identifier(_) | ast::Expr::CompoundIdentifier(_));
            if let Some(place) = select.projection.iter().position(same).filter(|_| !plain) {
                let number = ast::Value::Number((place + 1).to_string(), false).with_empty_span();
                item.expr = ast::Expr::Value(number);
            }
        }
    }
    named_windows::rewrite(select, order_by)?;
    names::name_items(select);
    crate::windows::grouping::rewrite(select, order_by)?;
    casts::distinguish(select, order_by);
    Ok(())
}

/// The columns that a client sees: a plan's output, with the names that PostgreSQL would give. Names of a plan are
/// unique, so repeated ones carry a suffix there.
pub fn output_schema(plan: &LogicalPlan) -> SchemaRef {
    shown_schema(plan.schema().inner())
}

/// Columns with the names that a client sees.
pub fn shown_schema(schema: &SchemaRef) -> SchemaRef {
    if schema.fields().iter().all(|field| names::shown(field.name()) == field.name()) {
        return schema.clone();
    }
    let fields: Vec<FieldRef> = schema
        .fields()
        .iter()
        .map(|field| Arc::new(field.as_ref().clone().with_name(names::shown(field.name()))))
        .collect();
    Arc::new(Schema::new(fields))
}
