//! What DataFusion's binder asks: tables from the catalog, functions from the session.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::TableFunctionArgs;
use datafusion::common::{DFSchema, TableReference, config::ConfigOptions};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::planner::{ContextProvider, ExprPlanner, RelationPlanner, TypePlanner};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{AggregateUDF, Expr, HigherOrderUDF, LogicalPlan, ScalarUDF, TableSource, WindowUDF};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use plan::{PlanError, RelationSource, SqlState};

use super::errors::external;
use super::interval_arithmetic::PgExprPlanner;
use super::types::PgTypePlanner;
use super::{casts, copies, missing, one_row, ties};
use crate::Planner;
use crate::catalog::{Catalog, Object, SessionInfo, nearest, undefined_relation};
use crate::parse::text::Source;
use crate::statement::ObjectName;

/// The schema under which the target of an UPDATE or DELETE is found with its row numbers. It cannot be written
/// by accident.
pub(crate) const TARGET_SCHEMA: &str = "$target";

/// Views over views over views: how deep.
const MAX_VIEW_DEPTH: usize = 60;

/// One statement's view of catalog and session.
pub(crate) struct Context<'a> {
    pub planner: &'a Planner,
    pub catalog: &'a dyn Catalog,
    pub session: &'a SessionInfo,
    pub source: &'a Source,
    /// Views around this text.
    pub depth: usize,
    /// The objects that were read directly, in order of first use.
    pub dependencies: RefCell<Vec<ObjectName>>,
    relation_planners: Vec<Arc<dyn RelationPlanner>>,
    expression_planners: Vec<Arc<dyn ExprPlanner>>,
}

impl<'a> Context<'a> {
    pub fn new(planner: &'a Planner, catalog: &'a dyn Catalog, session: &'a SessionInfo, source: &'a Source) -> Self {
        let ours: Arc<dyn ExprPlanner> = Arc::new(PgExprPlanner {
            time_zone: session.time_zone.clone(),
            json: super::json::Functions::new(planner.session_state()),
            numeric: super::numeric::Functions::new(planner.session_state()),
        });
        let others = planner.session_state().expr_planners().iter().cloned();
        Context {
            planner,
            catalog,
            session,
            source,
            depth: 0,
            dependencies: RefCell::new(Vec::new()),
            relation_planners: vec![Arc::new(crate::windows::WindowPlanner)],
            expression_planners: std::iter::once(ours).chain(others).collect(),
        }
    }

    pub fn state(&self) -> &'a SessionState {
        self.planner.session_state()
    }

    /// The object of a name; an error with the nearest name if there is none.
    pub fn resolve(&self, schema: Option<&str>, name: &str) -> std::result::Result<Object, PlanError> {
        if let Some(object) = self.catalog.resolve(schema, name, &self.session.search_path) {
            return Ok(object);
        }
        let position = self.source.position_of_name(schema, name);
        let full = match schema {
            Some(schema) => format!("{schema}.{name}"),
            None => name.to_string(),
        };
        Err(undefined_relation(&full, self.catalog, &self.session.search_path).at(position))
    }

    fn remember(&self, name: &str, written: &TableReference) {
        let (schema, name) = match name.split_once('.') {
            Some((schema, name)) => (schema.to_string(), name.to_string()),
            None => {
                let schema = written.schema().unwrap_or_else(|| self.session.current_schema());
                (schema.to_string(), name.to_string())
            }
        };
        let object = ObjectName { schema, name };
        let mut dependencies = self.dependencies.borrow_mut();
        if !dependencies.contains(&object) {
            dependencies.push(object);
        }
    }

    /// The stand-in for a function if nothing has its name: its error names the types of its arguments.
    fn missing_function(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        let state = self.state();
        let exists = matches!(name, "unnest" | "unnest_outer")
            || state.aggregate_functions().contains_key(name)
            || state.window_functions().contains_key(name)
            || state.higher_order_functions().contains_key(name);
        if exists {
            return None;
        }
        let names = state.scalar_functions().keys().chain(state.aggregate_functions().keys());
        let near = nearest(name, names.map(String::as_str));
        Some(missing::stand_in(name, near, self.source))
    }

    fn table_source(&self, name: &TableReference) -> std::result::Result<Arc<dyn TableSource>, PlanError> {
        if name.schema() == Some(TARGET_SCHEMA) {
            return self.target_source(name.table());
        }
        match self.resolve(name.schema(), name.table())? {
            Object::Table(table) => {
                self.remember(&table.relation.name, name);
                Ok(Arc::new(RelationSource::new(table.relation.clone())))
            }
            Object::MaterializedView(relation, _) | Object::Errors(relation) => {
                self.remember(&relation.name, name);
                Ok(Arc::new(RelationSource::new(relation)))
            }
            Object::View(view) => {
                self.remember(&view.name, name);
                if self.depth >= MAX_VIEW_DEPTH {
                    return Err(PlanError::new(
                        SqlState::PROGRAM_LIMIT_EXCEEDED,
                        format!("views are nested more than {MAX_VIEW_DEPTH} deep at \"{}\"", view.name),
                    ));
                }
                let plan = super::view_plan(self.planner, &view, self.catalog, self.session, self.depth + 1)?;
                Ok(Arc::new(ViewSource { schema: Arc::new(plan.schema().as_arrow().clone()), plan }))
            }
            Object::System(source) => Ok(source),
        }
    }

    /// The target's full name is "schema.name" in one identifier, so that no search path is needed.
    fn target_source(&self, full_name: &str) -> std::result::Result<Arc<dyn TableSource>, PlanError> {
        let (schema, name) = full_name.split_once('.').unwrap_or(("public", full_name));
        match self.resolve(Some(schema), name)? {
            Object::Table(table) => Ok(Arc::new(RelationSource::with_rowid(table.relation.clone()))),
            _ => Err(PlanError::internal(format!("the target {full_name} is not a table"))),
        }
    }
}

/// A plain view: replaced by its definition.
struct ViewSource {
    schema: SchemaRef,
    plan: LogicalPlan,
}

impl TableSource for ViewSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn get_logical_plan(&self) -> Option<Cow<'_, LogicalPlan>> {
        Some(Cow::Borrowed(&self.plan))
    }
}

impl ContextProvider for Context<'_> {
    fn get_table_source(&self, name: TableReference) -> Result<Arc<dyn TableSource>> {
        self.table_source(&name).map_err(external)
    }

    fn get_table_function_source(&self, name: &str, args: Vec<Expr>) -> Result<Arc<dyn TableSource>> {
        let function = self.state().table_functions().get(name).cloned().ok_or_else(|| {
            let error = PlanError::new(SqlState::UNDEFINED_FUNCTION, format!("function {name} does not exist"));
            external(error.at(self.source.position_of_name(None, name)))
        })?;
        let simplifier = ExprSimplifier::new(
            SimplifyContext::builder().with_config_options(Arc::clone(self.state().config_options())).build(),
        );
        let schema = DFSchema::empty();
        let args = args
            .into_iter()
            .map(|arg| simplifier.coerce(arg, &schema).and_then(|arg| simplifier.simplify(arg)))
            .collect::<Result<Vec<_>>>()?;
        let provider = function.create_table_provider_with_args(TableFunctionArgs::new(&args, self.state()))?;
        Ok(provider_as_source(provider))
    }

    fn create_cte_work_table(&self, name: &str, schema: SchemaRef) -> Result<Arc<dyn TableSource>> {
        let table = datafusion::datasource::cte_worktable::CteWorkTable::new(name, schema);
        Ok(provider_as_source(Arc::new(table)))
    }

    fn get_expr_planners(&self) -> &[Arc<dyn ExprPlanner>] {
        &self.expression_planners
    }

    fn get_relation_planners(&self) -> &[Arc<dyn RelationPlanner>] {
        &self.relation_planners
    }

    fn get_type_planner(&self) -> Option<Arc<dyn TypePlanner>> {
        Some(Arc::new(PgTypePlanner))
    }

    fn get_function_meta(&self, name: &str) -> Option<Arc<ScalarUDF>> {
        let known = self.state().scalar_functions().get(name).cloned();
        known
            .or_else(|| casts::function(name))
            .or_else(|| one_row::function(name))
            .or_else(|| ties::function(name))
            .or_else(|| copies::function(name))
            .or_else(|| self.missing_function(name))
    }

    fn get_higher_order_meta(&self, name: &str) -> Option<Arc<HigherOrderUDF>> {
        self.state().higher_order_functions().get(name).cloned()
    }

    fn get_aggregate_meta(&self, name: &str) -> Option<Arc<AggregateUDF>> {
        self.state().aggregate_functions().get(name).cloned()
    }

    fn get_window_meta(&self, name: &str) -> Option<Arc<WindowUDF>> {
        self.state().window_functions().get(name).cloned()
    }

    fn get_variable_type(&self, _variable_names: &[String]) -> Option<DataType> {
        None
    }

    fn options(&self) -> &ConfigOptions {
        self.state().config_options()
    }

    fn udf_names(&self) -> Vec<String> {
        self.state().scalar_functions().keys().cloned().collect()
    }

    fn higher_order_function_names(&self) -> Vec<String> {
        self.state().higher_order_functions().keys().cloned().collect()
    }

    fn udaf_names(&self) -> Vec<String> {
        self.state().aggregate_functions().keys().cloned().collect()
    }

    fn udwf_names(&self) -> Vec<String> {
        self.state().window_functions().keys().cloned().collect()
    }
}
