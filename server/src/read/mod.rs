//! Reads: a bound query over one snapshot, run by DataFusion.
//!
//! A bound plan names relations without data. [`Sources`] says what stands behind the names: the snapshot of one
//! published epoch, and a transaction's own changes on top. Running a query is: optimize, bind the scans to the
//! sources, make the physical plan, stream.
//!
//! Reading order: this file (from a plan to rows), [`table`] (a relation at a snapshot), [`lookup`] (by key, without
//! planning).

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, DataFusionError};
use datafusion::datasource::DefaultTableSource;
use datafusion::execution::{
    FunctionRegistry, SendableRecordBatchStream, SessionState, SessionStateBuilder, TaskContext,
};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::physical_plan::stream::{RecordBatchReceiverStream, RecordBatchStreamAdapter};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::prelude::SessionConfig;
use futures::{StreamExt, TryStreamExt};
use parking_lot::Mutex;
use plan::{RelationId, RelationKind, RelationSource, SqlState};
use planner::{Planner, SessionInfo};
use runtime::state::relation::ScanOptions;

use crate::catalog::entry::Status;
use crate::catalog::system::functions::SessionFacts;
use crate::catalog::{CatalogVersion, ObjectKind, SystemFunctions};
use crate::coordinator::{Published, QueryRows};
use crate::error::{Notice, ServerError};

pub mod lookup;
pub mod table;

use lookup::Lookup;
use table::{Overlay, SnapshotTable};

/// The session that planning and ad-hoc execution share: DataFusion's functions, ours, and those of the system
/// catalog; one partition, because a snapshot scan is one ordered stream.
pub fn session_state(system: &SystemFunctions) -> SessionState {
    let config = SessionConfig::new().with_target_partitions(1).with_information_schema(false);
    let mut state = SessionStateBuilder::new().with_config(config).with_default_features().build();
    if let Err(error) = runtime::functions::register(&mut state) {
        tracing::error!(%error, "functions are not registered");
    }
    for function in system.scalar() {
        if let Err(error) = state.register_udf(function) {
            tracing::error!(%error, "a function is not registered");
        }
    }
    state
}

/// What stands behind the relations of a plan.
#[derive(Clone)]
pub struct Sources {
    /// The epoch that is read.
    pub published: Arc<Published>,
    /// A transaction's own changes.
    pub overlays: HashMap<RelationId, Arc<Overlay>>,
}

impl Sources {
    /// A published epoch.
    pub fn new(published: Arc<Published>) -> Sources {
        Sources { published, overlays: HashMap::new() }
    }

    fn catalog(&self) -> &CatalogVersion {
        &self.published.catalog
    }
}

/// Runs queries.
pub struct Reader {
    planner: Arc<Planner>,
    /// DataFusion's session for sessions of ours that ran a statement lately: making one copies all function tables.
    states: Mutex<Vec<(SessionInfo, Arc<SessionState>)>>,
}

/// How many sessions' states are kept.
const STATES: usize = 16;

impl Reader {
    /// Over a planner.
    pub fn new(planner: Arc<Planner>) -> Reader {
        Reader { planner, states: Mutex::new(Vec::new()) }
    }

    /// The planner.
    pub fn planner(&self) -> &Arc<Planner> {
        &self.planner
    }

    /// DataFusion's session for statements of a session: its time zone, and itself for the functions that ask for it.
    pub fn state(&self, session: &SessionInfo) -> Arc<SessionState> {
        let mut states = self.states.lock();
        if let Some((_, state)) = states.iter().find(|(known, _)| known == session) {
            return state.clone();
        }
        let mut state = self.planner.session_state().clone();
        let options = state.config_mut().options_mut();
        options.execution.time_zone = Some(session.time_zone.clone());
        options.extensions.insert(SessionFacts(session.clone()));
        // Functions in physical plans find the options here.
        let options = Arc::clone(state.config_options());
        state.execution_props_mut().config_options = Some(options);
        let state = Arc::new(state);
        if states.len() == STATES {
            states.remove(0);
        }
        states.push((session.clone(), state.clone()));
        state
    }

    /// Runs a bound query.
    pub async fn query(
        &self,
        sources: &Sources,
        plan: &LogicalPlan,
        session: &SessionInfo,
    ) -> Result<QueryRows, ServerError> {
        let mut warnings = Vec::new();
        if sources.overlays.is_empty()
            && let Some(lookup) = Lookup::recognise(plan, sources.catalog())
        {
            check_relations(sources, plan, &mut warnings)?;
            let rows = lookup.run(sources.published.snapshot.clone())?;
            let rows = futures::stream::iter(rows.into_iter().map(Ok));
            let schema = lookup.schema().clone();
            let rows = Box::pin(RecordBatchStreamAdapter::new(schema.clone(), rows));
            return Ok(QueryRows { schema: planner::shown_schema(&schema), rows, warnings });
        }
        let plan = if sources.overlays.is_empty() {
            plan.clone()
        } else {
            unfold_views(&self.planner, sources, plan.clone())?
        };
        check_relations(sources, &plan, &mut warnings)?;
        let plan = self.planner.optimize(plan, runtime::clock::now_micros())?;
        let plan = bind_sources(sources, plan)?;
        let state = self.state(session);
        let physical = state.query_planner().create_physical_plan(&plan, state.as_ref()).await?;
        let schema = physical.schema();
        let apart = multiplies(physical.as_ref());
        let mut rows = execute_stream(physical, task_context(&state))?;
        if apart {
            rows = run_apart(rows);
        }
        Ok(QueryRows { schema: planner::shown_schema(&schema), rows, warnings })
    }

    /// Runs a bound query to its end.
    pub async fn collect(
        &self,
        sources: &Sources,
        plan: &LogicalPlan,
        session: &SessionInfo,
    ) -> Result<Vec<RecordBatch>, ServerError> {
        let rows = self.query(sources, plan, session).await?;
        Ok(rows.rows.try_collect().await?)
    }
}

/// Whether a plan can make many more rows than it reads: then it may be busy for long without a pause.
fn multiplies(plan: &dyn ExecutionPlan) -> bool {
    let children = plan.children();
    children.len() > 1 || children.iter().any(|child| multiplies(child.as_ref()))
}

/// Batches that may wait for the client.
const BATCHES_AHEAD: usize = 2;

/// Takes rows on a thread of their own, so that a query that is busy for long holds up no other session and can be
/// cancelled by leaving it.
fn run_apart(mut rows: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let mut receiver = RecordBatchReceiverStream::builder(rows.schema(), BATCHES_AHEAD);
    let sender = receiver.tx();
    let runtime = tokio::runtime::Handle::current();
    receiver.spawn_blocking(move || {
        runtime.block_on(async {
            while let Some(batch) = rows.next().await {
                if sender.send(batch).await.is_err() {
                    break;
                }
            }
        });
        Ok(())
    });
    receiver.build()
}

/// What a running plan needs of the session. Plans hold their functions themselves, so the tables stay empty.
fn task_context(state: &SessionState) -> Arc<TaskContext> {
    Arc::new(TaskContext::new(
        None,
        state.session_id().to_owned(),
        state.config().clone(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        HashMap::new(),
        state.runtime_env().clone(),
    ))
}

/// Checks that every relation of a plan is still there and can be read; collects warnings of views with failed rows.
fn check_relations(sources: &Sources, plan: &LogicalPlan, warnings: &mut Vec<Notice>) -> Result<(), ServerError> {
    let mut failure = None;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(source) = RelationSource::of(scan.source.as_ref())
            && let Err(error) = check_relation(sources, source, warnings)
        {
            failure = Some(error);
            return Ok(datafusion::common::tree_node::TreeNodeRecursion::Stop);
        }
        Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
    })?;
    failure.map_or(Ok(()), Err)
}

fn check_relation(sources: &Sources, source: &RelationSource, warnings: &mut Vec<Notice>) -> Result<(), ServerError> {
    let relation = &source.relation;
    let object = sources.catalog().owner(relation.id).ok_or_else(|| {
        ServerError::new(SqlState::UNDEFINED_TABLE, format!("relation \"{}\" does not exist", relation.name))
    })?;
    let ObjectKind::MaterializedView { errors, status, .. } = &object.kind else { return Ok(()) };
    if relation.kind != RelationKind::MaterializedView {
        return Ok(());
    }
    if let Status::Failed(reason) = status {
        return Err(ServerError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            format!("materialized view \"{}\" has failed and is not up to date", relation.name),
        )
        .with_detail(reason.clone())
        .with_hint("Drop it and create it again."));
    }
    let options = ScanOptions { batch_rows: 1, ..ScanOptions::default() };
    if errors.storage.scan(sources.published.snapshot.clone(), options).next().transpose()?.is_some() {
        let message = format!("some rows of materialized view \"{}\" could not be computed", relation.name);
        let warning = Notice::warning(SqlState::WARNING, message)
            .with_hint(format!("SELECT * FROM \"{}\" shows them.", errors.relation.name));
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    Ok(())
}

/// Replaces materialized views by their definitions, as far as they depend on tables that the transaction changed.
fn unfold_views(planner: &Planner, sources: &Sources, plan: LogicalPlan) -> Result<LogicalPlan, ServerError> {
    let changed = sources.overlays.keys().map(|relation| relation.0).collect();
    let stale: Vec<u32> = sources.catalog().dependents(&changed).iter().map(|object| object.id).collect();
    if stale.is_empty() {
        return Ok(plan);
    }
    let unfolded = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::TableScan(scan) = &node else { return Ok(Transformed::no(node)) };
        let Some(source) = RelationSource::of(scan.source.as_ref()) else { return Ok(Transformed::no(node)) };
        let Some(object) = sources.catalog().owner(source.relation.id) else { return Ok(Transformed::no(node)) };
        let ObjectKind::MaterializedView { info, .. } = &object.kind else { return Ok(Transformed::no(node)) };
        if source.relation.kind != RelationKind::MaterializedView || !stale.contains(&object.id) {
            return Ok(Transformed::no(node));
        }
        let definition = planner
            .plan_view(info, sources.catalog())
            .map_err(|error| DataFusionError::External(Box::new(error)))
            .and_then(|plan| {
                unfold_views(planner, sources, plan).map_err(|error| DataFusionError::External(Box::new(error)))
            })?;
        let mut builder = LogicalPlanBuilder::from(definition).alias(scan.table_name.clone())?;
        if let Some(projection) = &scan.projection {
            builder = builder.select(projection.iter().copied())?;
        }
        for filter in &scan.filters {
            builder = builder.filter(filter.clone())?;
        }
        Ok(Transformed::yes(builder.build()?))
    })?;
    Ok(unfolded.data)
}

/// Puts the snapshot's data behind every scan.
fn bind_sources(sources: &Sources, plan: LogicalPlan) -> Result<LogicalPlan, ServerError> {
    let bound = plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::TableScan(mut scan) = node else { return Ok(Transformed::no(node)) };
        let Some(source) = RelationSource::of(scan.source.as_ref()) else {
            return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
        };
        let Some(stored) = sources.catalog().stored(source.relation.id) else {
            let message = format!("relation \"{}\" does not exist", source.relation.name);
            let error = ServerError::new(SqlState::UNDEFINED_TABLE, message);
            return Err(DataFusionError::External(Box::new(error)));
        };
        let overlay = sources.overlays.get(&source.relation.id).cloned();
        let snapshot = sources.published.snapshot.clone();
        let schema = datafusion::logical_expr::TableSource::schema(source);
        let table = SnapshotTable::new(stored.clone(), snapshot, overlay, source.with_rowid, schema);
        scan.source = Arc::new(DefaultTableSource::new(Arc::new(table)));
        Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
    })?;
    Ok(bound.data)
}

/// Evaluates expressions over the rows of a batch.
pub fn evaluate(
    state: &SessionState,
    expressions: &[Expr],
    input: &DFSchema,
    batch: &RecordBatch,
    schema: &SchemaRef,
) -> Result<RecordBatch, ServerError> {
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(expressions.len());
    for (expression, field) in expressions.iter().zip(schema.fields()) {
        let physical = state.create_physical_expr(expression.clone(), input)?;
        let column = physical.evaluate(batch)?.into_array(batch.num_rows())?;
        columns.push(if column.data_type() == field.data_type() {
            column
        } else {
            datafusion::arrow::compute::cast(&column, field.data_type())?
        });
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}
