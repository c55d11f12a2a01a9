//! CREATE SCHEMA, TABLE, VIEW and MATERIALIZED VIEW.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use plan::{Dataflow, Growth, Layout, SqlState};
use planner::SessionInfo;
use planner::catalog::{Catalog, ViewInfo};
use planner::statement::{CreateTable, CreateView, ObjectName};
use runtime::DataflowDescription;

use super::advice::{self, StatePolicy};
use super::{DdlSet, NewDataflow, Turn};
use crate::catalog::entry::{
    ENTRY_VERSION, Entry, MaterializedEntry, Status, StoredEntry, StoredJoinOrder, TableEntry, ViewEntry, store_schema,
    type_name,
};
use crate::catalog::measured::Measured;
use crate::catalog::{
    CatalogChange, CatalogObject, CatalogVersion, ERRORS_SUFFIX, ObjectKind, display_name, materialized_relations,
    store as catalog_store, system,
};
use crate::coordinator::write::TableBuffer;
use crate::coordinator::{Coordinator, DdlOutcome, returning};
use crate::error::{Notice, ServerError};
use crate::read::Sources;

fn done(tag: &str) -> DdlOutcome {
    DdlOutcome { tag: tag.to_owned(), notices: Vec::new() }
}

fn skipped(tag: &str, name: &str, kind: &str, code: SqlState) -> DdlOutcome {
    let mut notice = Notice::plain(format!("{kind} \"{name}\" already exists, skipping"));
    notice.sqlstate = code;
    DdlOutcome { tag: tag.to_owned(), notices: vec![notice] }
}

/// CREATE SCHEMA.
pub async fn create_schema(
    coordinator: &Arc<Coordinator>,
    name: &str,
    if_not_exists: bool,
    turn: Turn,
) -> Result<DdlOutcome, ServerError> {
    let catalog = coordinator.published().catalog.clone();
    if name.starts_with("pg_") || system::is_system_schema(name) {
        return Err(ServerError::new(SqlState("42939"), format!("unacceptable schema name \"{name}\""))
            .with_detail("The prefix \"pg_\" is reserved for system schemas."));
    }
    if catalog.schema_exists(name) {
        if if_not_exists {
            return Ok(skipped("CREATE SCHEMA", name, "schema", SqlState::DUPLICATE_SCHEMA));
        }
        return Err(ServerError::new(SqlState::DUPLICATE_SCHEMA, format!("schema \"{name}\" already exists")));
    }
    let id = catalog.next_id();
    let entry = catalog_store::schema_entry(id, name).as_ref().clone();
    let set = DdlSet { changes: vec![CatalogChange::Put(entry)], next_id: id + 1, ..DdlSet::default() };
    coordinator.change_catalog(set, turn, coordinator.locks.owner()).await?;
    Ok(done("CREATE SCHEMA"))
}

/// What the name of a new relation stands for now, if it may be given; an error if the schema is not there or is the
/// system's.
fn existing<'a>(catalog: &'a CatalogVersion, name: &ObjectName) -> Result<Option<&'a Arc<CatalogObject>>, ServerError> {
    if system::is_system_schema(&name.schema) {
        return Err(ServerError::new(
            SqlState::INSUFFICIENT_PRIVILEGE,
            format!("permission denied to create \"{}.{}\"", name.schema, name.name),
        )
        .with_detail("System catalog modifications are currently disallowed."));
    }
    if !catalog.schema_exists(&name.schema) {
        return Err(ServerError::new(
            SqlState::INVALID_SCHEMA_NAME,
            format!("schema \"{}\" does not exist", name.schema),
        ));
    }
    let found = catalog.object_named(&name.schema, &name.name);
    let errors_of = |view: &str| catalog.object_named(&name.schema, view);
    if found.is_none()
        && let Some(view) = name.name.strip_suffix(ERRORS_SUFFIX).and_then(errors_of)
        && matches!(view.kind, ObjectKind::MaterializedView { .. })
    {
        return Err(already_exists(&name.name));
    }
    Ok(found)
}

fn already_exists(name: &str) -> ServerError {
    ServerError::new(SqlState::DUPLICATE_TABLE, format!("relation \"{name}\" already exists"))
}

fn check_column_names(schema: &Schema) -> Result<(), ServerError> {
    let mut seen = HashSet::new();
    match schema.fields().iter().find(|field| !seen.insert(field.name().as_str())) {
        None => Ok(()),
        Some(field) => Err(ServerError::new(
            SqlState::DUPLICATE_COLUMN,
            format!("column \"{}\" specified more than once", field.name()),
        )),
    }
}

/// CREATE TABLE, also AS.
pub async fn create_table(
    coordinator: &Arc<Coordinator>,
    table: &CreateTable,
    session: &SessionInfo,
    turn: Turn,
) -> Result<DdlOutcome, ServerError> {
    let tag = if table.query.is_some() { "CREATE TABLE AS" } else { "CREATE TABLE" };
    let published = coordinator.published();
    let catalog = published.catalog.clone();
    if existing(&catalog, &table.name)?.is_some() {
        if table.if_not_exists {
            return Ok(skipped(tag, &table.name.name, "relation", SqlState::DUPLICATE_TABLE));
        }
        return Err(already_exists(&table.name.name));
    }
    let schema = Schema::new(table.fields.clone());
    check_column_names(&schema)?;
    let id = catalog.next_id();
    let layout = if table.primary_key.is_empty() { Layout::RowId } else { Layout::Keyed(table.primary_key.clone()) };
    let entry = StoredEntry {
        version: ENTRY_VERSION,
        id,
        entry: Entry::Table(TableEntry {
            schema: table.name.schema.clone(),
            name: table.name.name.clone(),
            fields: store_schema(&schema),
            columns: table.columns.clone(),
            primary_key: table.primary_key.clone(),
            layout,
            append_only: table.append_only,
            watermark: table.watermark.clone(),
        }),
    };
    let object = CatalogObject::load(Arc::new(entry.clone()))?;
    let mut set = DdlSet { changes: vec![CatalogChange::Put(entry)], next_id: id + 2, ..DdlSet::default() };
    let mut outcome = done(tag);
    if let Some(query) = &table.query
        && let Some(object) = object
    {
        let sources = Sources::new(published);
        let rows = coordinator.reader().collect(&sources, query, session).await?;
        let count: usize = rows.iter().map(|batch| batch.num_rows()).sum();
        add_rows(coordinator, &object, rows, &mut set)?;
        outcome.tag = format!("SELECT {count}");
    }
    coordinator.change_catalog(set, turn, coordinator.locks.owner()).await?;
    Ok(outcome)
}

fn add_rows(
    coordinator: &Coordinator,
    object: &CatalogObject,
    rows: Vec<datafusion::arrow::record_batch::RecordBatch>,
    set: &mut DdlSet,
) -> Result<(), ServerError> {
    let ObjectKind::Table { info, stored } = &object.kind else { return Ok(()) };
    let mut buffer = TableBuffer::new(info.clone(), stored.clone());
    for batch in rows {
        buffer.insert(returning::checked(info, &batch)?)?;
    }
    let snapshot = coordinator.published().snapshot.clone();
    let prepared = buffer.prepare(&coordinator.chunks, snapshot.as_ref(), Vec::new())?;
    set.writes.extend(prepared.writes);
    if let Some(next) = prepared.next_chunk {
        set.writes.push(catalog_store::chunk_counter(stored.relation.id, next));
        set.chunks.insert(stored.relation.id, next);
    }
    Ok(())
}

/// The definition of a view, checked.
fn view_entry(
    catalog: &CatalogVersion,
    view: &CreateView,
    schema: &Schema,
    session: &SessionInfo,
) -> Result<ViewEntry, ServerError> {
    check_column_names(schema)?;
    let mut depends_on = BTreeSet::new();
    for name in &view.depends_on {
        if system::is_system_schema(&name.schema) {
            continue;
        }
        let object = catalog
            .object_named(&name.schema, &name.name)
            .or_else(|| catalog.object_named(&name.schema, name.name.strip_suffix(ERRORS_SUFFIX)?));
        let object = object.ok_or_else(|| {
            let message = format!("relation \"{}\" does not exist", display_name(&name.schema, &name.name));
            ServerError::new(SqlState::UNDEFINED_TABLE, message)
        })?;
        depends_on.insert(object.id);
    }
    Ok(ViewEntry {
        schema: view.name.schema.clone(),
        name: view.name.name.clone(),
        query: view.query_text.clone(),
        columns: view.columns.clone(),
        search_path: session.search_path.clone(),
        fields: store_schema(schema),
        depends_on: depends_on.into_iter().collect(),
    })
}

/// CREATE [OR REPLACE] VIEW.
pub async fn create_view(
    coordinator: &Arc<Coordinator>,
    view: &CreateView,
    session: &SessionInfo,
    turn: Turn,
) -> Result<DdlOutcome, ServerError> {
    let catalog = coordinator.published().catalog.clone();
    let schema = view.plan.schema().as_arrow().clone();
    let definition = view_entry(&catalog, view, &schema, session)?;
    let mut id = catalog.next_id();
    if let Some(old) = existing(&catalog, &view.name)? {
        if view.if_not_exists {
            return Ok(skipped("CREATE VIEW", &view.name.name, "relation", SqlState::DUPLICATE_TABLE));
        }
        if !view.or_replace {
            return Err(already_exists(&view.name.name));
        }
        check_replacement(&catalog, old, &schema, &definition)?;
        id = old.id;
    }
    let entry = StoredEntry { version: ENTRY_VERSION, id, entry: Entry::View(definition) };
    let next_id = catalog.next_id().max(id + 1);
    let set = DdlSet { changes: vec![CatalogChange::Put(entry)], next_id, ..DdlSet::default() };
    coordinator.change_catalog(set, turn, coordinator.locks.owner()).await?;
    Ok(done("CREATE VIEW"))
}

/// What Postgres asks of the replacement of a view: the columns stay, new ones come last. And no materialized view may
/// have been built from the old definition.
fn check_replacement(
    catalog: &CatalogVersion,
    old: &CatalogObject,
    new: &Schema,
    definition: &ViewEntry,
) -> Result<(), ServerError> {
    let ObjectKind::View { schema, .. } = &old.kind else {
        return Err(ServerError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is not a view", old.name)));
    };
    let refused = |message: String| Err(ServerError::new(SqlState::INVALID_TABLE_DEFINITION, message));
    if new.fields().len() < schema.fields().len() {
        return refused("cannot drop columns from view".to_owned());
    }
    for (before, after) in schema.fields().iter().zip(new.fields()) {
        if before.name() != after.name() {
            return refused(format!("cannot change name of view column \"{}\" to \"{}\"", before.name(), after.name()))
                .map_err(|error| {
                    error.with_hint("Use ALTER VIEW ... RENAME COLUMN ... to change name of view column instead.")
                });
        }
        if before.data_type() != after.data_type() {
            return refused(format!(
                "cannot change data type of view column \"{}\" from {} to {}",
                before.name(),
                type_name(before.data_type()),
                type_name(after.data_type())
            ));
        }
    }
    let dependents = catalog.dependents(&[old.id].into());
    let names = |object: &Arc<CatalogObject>| definition.depends_on.contains(&object.id);
    if definition.depends_on.contains(&old.id) || dependents.iter().any(names) {
        return Err(ServerError::new(SqlState("42P17"), format!("view \"{}\" would read itself", old.name)));
    }
    match dependents.iter().find(|object| matches!(object.kind, ObjectKind::MaterializedView { .. })) {
        None => Ok(()),
        Some(dependent) => Err(ServerError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("cannot replace view \"{}\" because a materialized view is computed from it", old.name),
        )
        .with_detail(format!("materialized view {} depends on view {}", dependent.display_name(), old.display_name()))
        .with_hint("Drop the materialized view first, and create it again afterwards.")),
    }
}

/// CREATE MATERIALIZED VIEW: returns when the view is complete. The turn is given back once the view is registered, so
/// that filling does not keep other changes of the catalog waiting.
pub async fn create_materialized_view(
    coordinator: &Arc<Coordinator>,
    view: &CreateView,
    session: &SessionInfo,
    policy: StatePolicy,
    turn: Turn,
) -> Result<DdlOutcome, ServerError> {
    const TAG: &str = "CREATE MATERIALIZED VIEW";
    let catalog = coordinator.published().catalog.clone();
    if existing(&catalog, &view.name)?.is_some() {
        if view.if_not_exists {
            return Ok(skipped(TAG, &view.name.name, "relation", SqlState::DUPLICATE_TABLE));
        }
        return Err(already_exists(&view.name.name));
    }
    let (new, next_id, notices) = plan_materialized(coordinator, &catalog, view, session, policy)?;
    let set = DdlSet {
        changes: vec![CatalogChange::Put(new.entry.clone())],
        next_id,
        created: Some(new),
        ..DdlSet::default()
    };
    // The next change may come as soon as the view is registered; filling takes longer.
    coordinator.change_catalog(set, turn, coordinator.locks.owner()).await?;
    Ok(DdlOutcome { tag: TAG.to_owned(), notices })
}

/// Plans the dataflow of a view from its stored form, as recovery does, so that both get the same plan.
fn plan_materialized(
    coordinator: &Coordinator,
    catalog: &Arc<CatalogVersion>,
    view: &CreateView,
    session: &SessionInfo,
    policy: StatePolicy,
) -> Result<(NewDataflow, u32, Vec<Notice>), ServerError> {
    let info = ViewInfo {
        name: display_name(&view.name.schema, &view.name.name),
        query: view.query_text.clone(),
        columns: view.columns.clone(),
        search_path: session.search_path.clone(),
        sizes: None,
    };
    let plan = coordinator.planner().plan_view(&info, catalog.as_ref())?;
    let measured = Measured::new(Arc::clone(catalog), coordinator.published());
    let sizes = coordinator.planner().sizes(&plan, &measured)?;
    let dataflow = coordinator.planner().dataflow(&plan, sizes.as_ref())?;
    dataflow.validate()?;
    let notices = advice::notices(&dataflow, &view.name.name, policy)?;
    let columns = output_columns(&dataflow, plan.schema().as_arrow());
    let id = catalog.next_id();
    let states = u32::try_from(dataflow.state_tables()).unwrap_or(u32::MAX / 2);
    let entry = MaterializedEntry {
        view: view_entry(catalog, view, &columns, session)?,
        layout: dataflow.output_layout(),
        append_only: dataflow.node(dataflow.output()).properties.append_only,
        growth: dataflow.node(dataflow.output()).properties.extent.growth,
        errors_growth: errors_growth(&dataflow),
        errors_id: id + 2,
        first_state_table: id + 4,
        state_tables: states,
        fingerprint: dataflow.fingerprint(),
        join_order: sizes.map(|sizes| StoredJoinOrder {
            version: planner::JOIN_ORDER_VERSION,
            rows: sizes.rows.into_iter().map(|(relation, rows)| (relation.0, rows)).collect(),
        }),
        status: Status::Filling,
    };
    let (rows, errors) = materialized_relations(id, &entry)?;
    let inputs: Option<Vec<_>> = dataflow.imports().map(|(relation, _)| catalog.stored(relation.id).cloned()).collect();
    let inputs = inputs.ok_or_else(|| ServerError::internal("a dataflow reads a relation that is not there"))?;
    let description = DataflowDescription {
        output: Arc::new(rows),
        errors: Arc::new(errors),
        plan: Arc::new(dataflow),
        first_state_table: id + 4,
        fresh: true,
    };
    let entry = StoredEntry { version: ENTRY_VERSION, id, entry: Entry::MaterializedView(entry) };
    Ok((NewDataflow { description, inputs, entry }, id + 4 + states, notices))
}

/// The names of the query, the types of the dataflow. A view's columns may always be NULL: no constraint says otherwise.
fn output_columns(dataflow: &Dataflow, query: &Schema) -> SchemaRef {
    let output = &dataflow.node(dataflow.output()).schema;
    let fields = query.fields().iter().enumerate().map(|(column, field)| {
        let data_type = output.fields().get(column).map_or(field.data_type(), |output| output.data_type());
        field.as_ref().clone().with_data_type(data_type.clone()).with_nullable(true)
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// How much the failed rows may come to be: any row of what a view reads may fail.
fn errors_growth(dataflow: &Dataflow) -> Growth {
    let imported = dataflow.imports().map(|(relation, _)| relation.growth);
    imported.fold(Growth::Deletable, Growth::max)
}
