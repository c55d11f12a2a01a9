//! CREATE TABLE, VIEW and MATERIALIZED VIEW.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::{DFSchema, TableReference};
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan};
use plan::{PlanError, SqlState};

use super::coerce::{assign, check_assignable};
use super::context::Context;
use super::insert::constant_cell;
use super::{first_repeated, types, walk, with_column_names};
use crate::catalog::ColumnInfo;
use crate::parse::{self, ColumnSyntax, CreateTableSyntax, CreateViewSyntax};
use crate::statement::{CreateTable, CreateView, ObjectName};

fn new_relation(
    context: &Context<'_>,
    name: &datafusion::sql::sqlparser::ast::ObjectName,
) -> Result<ObjectName, PlanError> {
    let name = parse::new_name(name, context.session.current_schema())?;
    if name.name.contains('$') && name.name.ends_with("$errors") {
        return Err(PlanError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            format!("the name \"{}\" is reserved for the errors of a view", name.name),
        ));
    }
    if matches!(name.schema.as_str(), "pg_catalog" | "information_schema") {
        return Err(PlanError::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            format!("permission denied to create \"{}.{}\"", name.schema, name.name),
        )
        .with_detail("System catalog modifications are currently disallowed."));
    }
    if !context.catalog.schema_exists(&name.schema) {
        return Err(PlanError::new(
            SqlState::INVALID_SCHEMA_NAME,
            format!("schema \"{}\" does not exist", name.schema),
        )
        .with_hint(format!("Create it with CREATE SCHEMA {}.", name.schema)));
    }
    Ok(name)
}

/// Binds CREATE TABLE.
pub(super) fn create_table(context: &Context<'_>, syntax: &CreateTableSyntax) -> Result<CreateTable, PlanError> {
    let name = new_relation(context, &syntax.name)?;
    let (fields, mut columns, query) = match &syntax.query {
        None => {
            let (fields, columns) = columns_of(context, &syntax.columns)?;
            (fields, columns, None)
        }
        Some(query) => {
            let (plan, _) = context.query(query, &[])?;
            table_of_query(context, plan, &syntax.columns)?
        }
    };
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    if let Some(repeated) = first_repeated(&names) {
        return Err(PlanError::new(
            SqlState::DUPLICATE_COLUMN,
            format!("column \"{repeated}\" specified more than once"),
        )
        .at(context.source.position_of_name(None, repeated)));
    }
    let mut primary_key = Vec::with_capacity(syntax.primary_key.len());
    for column in &syntax.primary_key {
        let position = names.iter().position(|name| name == column).ok_or_else(|| {
            PlanError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{column}\" named in key does not exist"))
                .at(context.source.position_of_name(None, column))
        })?;
        if primary_key.contains(&position) {
            return Err(PlanError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{column}\" appears twice in primary key constraint"),
            ));
        }
        columns[position].not_null = true;
        primary_key.push(position);
    }
    let watermark = watermark(context, &name, syntax, &fields)?;
    Ok(CreateTable {
        name,
        if_not_exists: syntax.if_not_exists,
        fields,
        columns,
        primary_key,
        append_only: syntax.append_only,
        watermark,
        query,
    })
}

fn columns_of(context: &Context<'_>, columns: &[ColumnSyntax]) -> Result<(Vec<FieldRef>, Vec<ColumnInfo>), PlanError> {
    let mut fields = Vec::with_capacity(columns.len());
    let mut infos = Vec::with_capacity(columns.len());
    for column in columns {
        let Some(data_type) = &column.data_type else {
            return Err(PlanError::new(SqlState::SYNTAX_ERROR, format!("column \"{}\" has no type", column.name))
                .at(context.source.position_of_name(None, &column.name)));
        };
        let field = types::field_of(data_type).map_err(|error| {
            let name = data_type.to_string().to_lowercase();
            let position = context.source.position_of_name(None, &name);
            error.at(position)
        })?;
        let field: FieldRef = Arc::new(field.as_ref().clone().with_name(&column.name).with_nullable(true));
        if let Some((expression, _)) = &column.default {
            check_default(context, expression, &field)?;
        }
        infos.push(ColumnInfo {
            name: column.name.clone(),
            default: column.default.as_ref().map(|(_, text)| text.clone()),
            not_null: column.not_null,
        });
        fields.push(field);
    }
    Ok((fields, infos))
}

/// A default must be an expression without columns that fits its column.
fn check_default(
    context: &Context<'_>,
    expression: &datafusion::sql::sqlparser::ast::Expr,
    field: &Field,
) -> Result<(), PlanError> {
    if constant_cell(context, expression, field)?.is_some() {
        return Ok(());
    }
    let schema = DFSchema::empty();
    let bound = context.bind_expression(expression, &schema, &[]).map_err(|error| {
        if error.sqlstate == SqlState::UNDEFINED_COLUMN {
            PlanError { message: "cannot use column reference in DEFAULT expression".to_string(), ..error }
        } else {
            error
        }
    })?;
    if has_subquery_or_aggregate(&bound) {
        return Err(PlanError::unsupported("a subquery or aggregate in a DEFAULT"));
    }
    let bound = context.simplify(bound, &schema)?;
    let from = bound.get_type(&schema).map_err(|error| context.error(error))?;
    check_assignable(&from, field, false)?;
    if let Expr::Literal(value, _) = &bound {
        assign(value, field, &context.session.time_zone)?;
    }
    Ok(())
}

fn has_subquery_or_aggregate(expression: &Expr) -> bool {
    walk::any_part(expression, &|part| {
        matches!(
            part,
            Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::Placeholder(_)
        )
    })
}

type TableOfQuery = (Vec<FieldRef>, Vec<ColumnInfo>, Option<LogicalPlan>);

/// The columns of CREATE TABLE AS.
fn table_of_query(
    context: &Context<'_>,
    plan: LogicalPlan,
    columns: &[ColumnSyntax],
) -> Result<TableOfQuery, PlanError> {
    if let Some(typed) = columns.iter().find(|column| column.data_type.is_some()) {
        return Err(PlanError::new(
            SqlState::SYNTAX_ERROR,
            format!("column \"{}\" of CREATE TABLE AS cannot have a type", typed.name),
        )
        .at(context.source.position_of_name(None, &typed.name)));
    }
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    let plan = with_column_names(plan, &names)?;
    let fields = plan.schema().fields().iter().map(|field| {
        let plain = match field.data_type() {
            DataType::Null => field.as_ref().clone().with_data_type(DataType::Utf8),
            _ => field.as_ref().clone(),
        };
        Arc::new(plain.with_nullable(true))
    });
    let fields: Vec<FieldRef> = fields.collect();
    let infos = fields.iter().map(|field| ColumnInfo { name: field.name().clone(), default: None, not_null: false });
    let infos = infos.collect();
    Ok((fields, infos, Some(plan)))
}

/// WATERMARK FOR column AS expression: an instant, from the row alone.
fn watermark(
    context: &Context<'_>,
    name: &ObjectName,
    syntax: &CreateTableSyntax,
    fields: &[FieldRef],
) -> Result<Option<(usize, String)>, PlanError> {
    let Some(watermark) = &syntax.watermark else { return Ok(None) };
    let column = parse::fold(&watermark.column);
    let position = fields.iter().position(|field| *field.name() == column).ok_or_else(|| {
        PlanError::new(SqlState::UNDEFINED_COLUMN, format!("column \"{column}\" named in WATERMARK does not exist"))
            .at(context.source.position_of(watermark.column.span.start))
    })?;
    let field = &fields[position];
    if !matches!(field.data_type(), DataType::Timestamp(_, _) | DataType::Date32) {
        return Err(PlanError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("the WATERMARK column \"{column}\" is of type {}", types::type_name(field)),
        )
        .with_hint("A watermark is for a timestamp, timestamptz or date.")
        .at(context.source.position_of(watermark.column.span.start)));
    }
    let schema =
        DFSchema::try_from_qualified_schema(TableReference::bare(name.name.clone()), &Schema::new(fields.to_vec()))
            .map_err(|error| context.error(error))?;
    let bound = context.bind_expression(&watermark.expression, &schema, &[])?;
    if bound.is_volatile() || has_subquery_or_aggregate(&bound) || reads_clock(&bound) {
        return Err(PlanError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            "the WATERMARK expression must depend on the row alone",
        ));
    }
    let bound = context.simplify(bound, &schema)?;
    let data_type = bound.get_type(&schema).map_err(|error| context.error(error))?;
    let same = match (&data_type, field.data_type()) {
        (DataType::Timestamp(_, left), DataType::Timestamp(_, right)) => left.is_some() == right.is_some(),
        (left, right) => left == right || matches!((left, right), (DataType::Timestamp(_, None), DataType::Date32)),
    };
    if !same {
        return Err(PlanError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "the WATERMARK expression is of type {}, but column \"{column}\" is of type {}",
                types::data_type_name(&data_type),
                types::type_name(field)
            ),
        ));
    }
    Ok(Some((position, watermark.text.clone())))
}

/// Whether an expression calls now() or its like.
fn reads_clock(expression: &Expr) -> bool {
    walk::any_part(expression, &|part| match part {
        Expr::ScalarFunction(call) => {
            call.func.signature().volatility != datafusion::logical_expr::Volatility::Immutable
        }
        _ => false,
    })
}

/// Binds CREATE VIEW and CREATE MATERIALIZED VIEW.
pub(super) fn create_view(context: &Context<'_>, syntax: &CreateViewSyntax) -> Result<CreateView, PlanError> {
    if syntax.materialized && syntax.or_replace {
        return Err(PlanError::unsupported("CREATE OR REPLACE MATERIALIZED VIEW")
            .with_hint("Drop the view and create it again."));
    }
    let name = new_relation(context, &syntax.name)?;
    let (plan, parameters) = context.query(&syntax.query, &[])?;
    if !parameters.is_empty() {
        return Err(PlanError::new(SqlState::UNDEFINED_PARAMETER, "views must not contain parameters"));
    }
    let plan = with_column_names(plan, &syntax.columns)?;
    let depends_on = context.dependencies.borrow().clone();
    if depends_on.contains(&name) && !syntax.materialized && syntax.or_replace {
        return Err(PlanError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            format!("view \"{}\" would read itself", name.name),
        ));
    }
    Ok(CreateView {
        name,
        materialized: syntax.materialized,
        or_replace: syntax.or_replace,
        if_not_exists: syntax.if_not_exists,
        columns: syntax.columns.clone(),
        query_text: syntax.query_text.clone(),
        plan,
        depends_on,
    })
}
