//! COPY.

use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{self, SelectItem, SetExpr};
use plan::{PlanError, SqlState};

use super::context::Context;
use super::{column_position, insert, writable_table};
use crate::parse::{CopySource, CopySyntax, fold};
use crate::statement::{CopyIn, CopyOut, Statement};

/// Binds a COPY.
pub(super) fn bind(context: &Context<'_>, syntax: &CopySyntax) -> Result<Statement, PlanError> {
    use crate::parse::CopyDirection::{FromStdin, Server, ToStdout};
    match syntax.direction {
        FromStdin => copy_in(context, syntax),
        ToStdout => copy_out(context, syntax),
        Server => Err(PlanError::unsupported("COPY from or to a file or program of the server")
            .with_hint("Use STDIN or STDOUT, or psql's \\copy.")),
    }
}

fn copy_in(context: &Context<'_>, syntax: &CopySyntax) -> Result<Statement, PlanError> {
    let CopySource::Table(name, columns) = &syntax.source else {
        return Err(PlanError::new(SqlState::SYNTAX_ERROR, "COPY query FROM is not possible; name a table"));
    };
    let table = writable_table(context, name, "copy to")?;
    let mut positions = Vec::new();
    for column in columns {
        let column = fold(column);
        let position = column_position(context, &table, &column)?;
        if positions.contains(&position) {
            return Err(PlanError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{column}\" specified more than once"),
            ));
        }
        positions.push(position);
    }
    if columns.is_empty() {
        positions = (0..table.columns.len()).collect();
    }
    let missing = (0..table.columns.len()).filter(|column| !positions.contains(column));
    let defaults = missing.map(|column| Ok((column, insert::default_expression(context, &table, column)?)));
    let defaults = defaults.collect::<Result<Vec<_>, PlanError>>()?;
    Ok(Statement::CopyIn(CopyIn { table, columns: positions, defaults, options: syntax.options.clone() }))
}

fn copy_out(context: &Context<'_>, syntax: &CopySyntax) -> Result<Statement, PlanError> {
    let query = match &syntax.source {
        CopySource::Query(query) => context.query(query, &[])?.0,
        CopySource::Table(name, columns) => {
            let items = if columns.is_empty() {
                vec![SelectItem::Wildcard(ast::WildcardAdditionalOptions::default())]
            } else {
                columns.iter().map(|column| SelectItem::UnnamedExpr(ast::Expr::Identifier(column.clone()))).collect()
            };
            context.query(&select_from(name.clone(), items), &[])?.0
        }
    };
    let mut options = syntax.options.clone();
    if let Some(names) = &syntax.force_quote {
        options.force_quote = Some(force_quote(&query, names)?);
    }
    Ok(Statement::CopyOut(CopyOut { query: plain(query)?, options }))
}

fn force_quote(query: &LogicalPlan, names: &[String]) -> Result<Vec<usize>, PlanError> {
    let fields = query.schema().fields();
    if names.is_empty() {
        return Ok((0..fields.len()).collect());
    }
    let position = |name: &String| {
        fields.iter().position(|field| field.name() == name).ok_or_else(|| {
            PlanError::new(
                SqlState::INVALID_COLUMN_REFERENCE,
                format!("FORCE_QUOTE column \"{name}\" not referenced by COPY"),
            )
        })
    };
    names.iter().map(position).collect()
}

fn plain(query: LogicalPlan) -> Result<LogicalPlan, PlanError> {
    LogicalPlanBuilder::from(query).build().map_err(super::errors::from_datafusion)
}

/// SELECT items FROM name.
fn select_from(name: ast::ObjectName, items: Vec<SelectItem>) -> ast::Query {
    let factor = ast::TableFactor::Table {
        name,
        alias: None,
        args: None,
        with_hints: Vec::new(),
        version: None,
        with_ordinality: false,
        partitions: Vec::new(),
        json_path: None,
        sample: None,
        index_hints: Vec::new(),
    };
    crate::windows::query_of(SetExpr::Select(Box::new(crate::windows::select_of(items, factor))))
}
