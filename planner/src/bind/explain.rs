//! EXPLAIN: plans as text.

use datafusion::sql::sqlparser::ast;
use plan::PlanError;

use super::context::Context;
use super::{ddl, plan_view};
use crate::Planner;
use crate::catalog::{Catalog, SessionInfo};
use crate::explain::{explain_dataflow, explain_query, explain_state};
use crate::parse::{ExplainOptions, Parsed, Syntax};
use crate::statement::{ExplainedView, InsertSource, Statement};

/// Binds EXPLAIN: the plan of a query, or the dataflow of a materialized view.
pub(super) fn bind(
    planner: &Planner,
    options: ExplainOptions,
    statement: &Parsed,
    catalog: &dyn Catalog,
    session: &SessionInfo,
) -> Result<Vec<String>, PlanError> {
    if options.analyze {
        return Err(PlanError::unsupported("EXPLAIN ANALYZE"));
    }
    let context = Context::new(planner, catalog, session, &statement.source);
    match statement.syntax.as_ref() {
        Syntax::Query(query) => {
            let (plan, _) = context.query(query, &[])?;
            if options.state {
                let sizes = planner.sizes(&plan, catalog)?;
                return Ok(explain_dataflow(&planner.dataflow(&plan, sizes.as_ref())?));
            }
            Ok(explain_query(&planner.optimize_to_show(plan)?))
        }
        Syntax::CreateView(syntax) if syntax.materialized => {
            let view = ddl::create_view(&context, syntax)?;
            let sizes = planner.sizes(&view.plan, catalog)?;
            Ok(explain_dataflow(&planner.dataflow(&view.plan, sizes.as_ref())?))
        }
        Syntax::CreateView(syntax) => {
            let view = ddl::create_view(&context, syntax)?;
            Ok(explain_query(&planner.optimize_to_show(view.plan)?))
        }
        Syntax::Insert(_) | Syntax::Update(_) | Syntax::Delete(_) => {
            explain_change(planner, super::bind(planner, statement, catalog, session, &[])?.statement)
        }
        Syntax::Unsupported(what) => Err(PlanError::unsupported(what)),
        _ => Err(PlanError::unsupported("EXPLAIN of this statement")
            .with_hint("EXPLAIN takes a query, CREATE MATERIALIZED VIEW, or MATERIALIZED VIEW and the name of one.")),
    }
}

/// Binds EXPLAIN MATERIALIZED VIEW: the dataflow of a view that exists, to which the server adds what its operators hold.
pub(super) fn bind_view(context: &Context<'_>, name: &ast::ObjectName) -> Result<Statement, PlanError> {
    let (relation, view) = super::verify::materialized_view(context, name)?;
    let plan = plan_view(context.planner, &view, context.catalog)?;
    let (lines, state) = explain_state(&context.planner.dataflow(&plan, view.sizes.as_ref())?);
    Ok(Statement::Explain { lines, view: Some(ExplainedView { relation: relation.id, state }) })
}

/// The plan of a statement that changes rows, under a line that says what it does with them.
fn explain_change(planner: &Planner, statement: Statement) -> Result<Vec<String>, PlanError> {
    let (title, plan) = match statement {
        Statement::Insert(insert) => {
            let title = format!("Insert on {}", insert.table.relation.name);
            match insert.source {
                InsertSource::Rows(rows) => return Ok(vec![title, format!("  Values: {} rows", rows.len())]),
                InsertSource::Plan(plan) => (title, plan),
            }
        }
        Statement::Update(update) => (format!("Update on {}", update.table.relation.name), update.query),
        Statement::Delete(delete) => (format!("Delete on {}", delete.table.relation.name), delete.query),
        _ => return Err(PlanError::internal("EXPLAIN of a statement that changes no rows")),
    };
    let below = explain_query(&planner.optimize_to_show(plan)?);
    Ok(std::iter::once(title).chain(below.into_iter().map(|line| format!("  {line}"))).collect())
}
