//! VERIFY MATERIALIZED VIEW: the stored rows of a view against its query, as one query over one snapshot.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::error::DataFusionError;
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, cast, lit};
use datafusion::sql::sqlparser::ast;
use plan::{PlanError, Relation, RelationSource, SqlState};

use super::context::Context;
use super::view_plan;
use crate::catalog::{Object, ViewInfo};
use crate::optimize::from_datafusion;
use crate::parse::schema_and_name;

/// Column of the result: how often the query gives a row more than the view holds it.
const DIFFERENCE: &str = "difference";

/// Inner names, which nothing of a view is called.
const DIFFERENCE_OF_ONE: &str = "$difference";
const STORED: &str = "$stored";

/// Binds VERIFY. The result has the rows in which the view and its query differ; none means that the view is right.
pub(super) fn bind(context: &Context<'_>, name: &ast::ObjectName) -> Result<LogicalPlan, PlanError> {
    let (relation, view) = materialized_view(context, name)?;
    let query = view_plan(context.planner, &view, context.catalog, context.session, context.depth)?;
    let fields = relation.schema.fields();
    let stored = RelationSource::new(Arc::clone(&relation));
    let stored = LogicalPlanBuilder::scan(STORED, Arc::new(stored), None).and_then(LogicalPlanBuilder::build);
    let names: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
    let counted = |plan: LogicalPlan, weight: i64| {
        let columns = plan.schema().columns();
        let named = columns
            .into_iter()
            .zip(fields)
            .map(|(column, field)| cast(Expr::Column(column), field.data_type().clone()).alias(field.name().as_str()));
        let list: Vec<Expr> = named.chain([lit(weight).alias(DIFFERENCE_OF_ONE)]).collect();
        LogicalPlanBuilder::from(plan).project(list)
    };
    let compared = || -> Result<LogicalPlan, DataFusionError> {
        let sum = context.planner.session_state().udaf("sum")?;
        let rows = counted(query, 1)?.union(counted(stored?, -1)?.build()?)?;
        let keys: Vec<Expr> = names.iter().map(|name| quoted(name)).collect();
        let total = sum.call(vec![quoted(DIFFERENCE_OF_ONE)]).alias(DIFFERENCE);
        let mut list = vec![cast(quoted(DIFFERENCE), DataType::Int64).alias(DIFFERENCE)];
        list.extend(keys.iter().cloned());
        let differing = cast(quoted(DIFFERENCE), DataType::Int64).not_eq(lit(0i64));
        rows.aggregate(keys, vec![total])?.filter(differing)?.project(list)?.build()
    };
    compared().map_err(from_datafusion)
}

/// The materialized view of a name.
pub(super) fn materialized_view(
    context: &Context<'_>,
    name: &ast::ObjectName,
) -> Result<(Arc<Relation>, Arc<ViewInfo>), PlanError> {
    let (schema, name) = schema_and_name(name)?;
    match context.resolve(schema.as_deref(), &name)? {
        Object::MaterializedView(relation, view) => Ok((relation, view)),
        _ => Err(PlanError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{name}\" is not a materialized view"))
            .with_hint("Only a materialized view has a dataflow and stored rows.")),
    }
}

fn quoted(name: &str) -> Expr {
    Expr::Column(datafusion::common::Column::new_unqualified(name))
}
