//! DROP SCHEMA, TABLE, VIEW and MATERIALIZED VIEW, with dependencies.

use std::collections::BTreeSet;
use std::sync::Arc;

use plan::{Layout, SqlState};
use planner::SessionInfo;
use planner::statement::{Drop, DropKind};

use super::{DdlSet, Turn, state_ranges};
use crate::catalog::{CatalogChange, CatalogObject, CatalogVersion, ObjectKind, store as catalog_store, system};
use crate::coordinator::locks::Mode;
use crate::coordinator::{Coordinator, DdlOutcome};
use crate::error::{Notice, ServerError};

fn tag(kind: DropKind) -> &'static str {
    match kind {
        DropKind::Schema => "DROP SCHEMA",
        DropKind::Table => "DROP TABLE",
        DropKind::View => "DROP VIEW",
        DropKind::MaterializedView => "DROP MATERIALIZED VIEW",
    }
}

fn kind_name(kind: DropKind) -> &'static str {
    match kind {
        DropKind::Schema => "schema",
        DropKind::Table => "table",
        DropKind::View => "view",
        DropKind::MaterializedView => "materialized view",
    }
}

/// What is to be dropped.
#[derive(Default)]
struct Targets {
    schemas: Vec<(String, u32)>,
    objects: BTreeSet<u32>,
    notices: Vec<Notice>,
}

/// Runs a DROP.
pub async fn drop_objects(
    coordinator: &Arc<Coordinator>,
    statement: &Drop,
    session: &SessionInfo,
    turn: Turn,
) -> Result<DdlOutcome, ServerError> {
    let catalog = coordinator.published().catalog.clone();
    let mut targets = find_targets(&catalog, statement, session)?;
    let mut victims: Vec<Arc<CatalogObject>> =
        targets.objects.iter().filter_map(|id| catalog.object(*id)).cloned().collect();
    let dependents = dependents_of(&catalog, &targets);
    let names = Names { catalog: &catalog, search_path: &session.search_path };
    if !dependents.is_empty() {
        if !statement.cascade {
            return Err(depended_on(&names, statement.kind, &targets, &dependents));
        }
        targets.notices.extend(cascade_notice(&names, &dependents));
        victims.extend(dependents);
    }
    // Transactions that are writing the tables end first.
    let mut locks = coordinator.locks.owner();
    for victim in &victims {
        if let ObjectKind::Table { stored, .. } = &victim.kind {
            locks.acquire(stored.relation.id, Mode::Exclusive).await?;
        }
    }
    let set = removal(&catalog, &targets, &victims);
    if !set.changes.is_empty() {
        coordinator.change_catalog(set, turn, locks).await?;
    }
    Ok(DdlOutcome { tag: tag(statement.kind).to_owned(), notices: targets.notices })
}

fn removal(catalog: &CatalogVersion, targets: &Targets, victims: &[Arc<CatalogObject>]) -> DdlSet {
    let mut set = DdlSet { next_id: catalog.next_id(), ..DdlSet::default() };
    // Those that read others first: dataflows end before what they import.
    for victim in victims.iter().rev() {
        set.changes.push(CatalogChange::Remove(victim.id));
        set.deleted_ranges.extend(state_ranges(&victim.entry));
        match &victim.kind {
            ObjectKind::MaterializedView { rows, .. } => set.ended.push(rows.relation.id),
            ObjectKind::Table { stored, .. } if stored.relation.layout == Layout::RowId => {
                set.writes.push(catalog_store::forget_chunk_counter(stored.relation.id));
            }
            ObjectKind::Table { .. } | ObjectKind::View { .. } => {}
        }
    }
    set.ended.sort_unstable_by_key(|dataflow| std::cmp::Reverse(dataflow.0));
    set.changes.extend(targets.schemas.iter().map(|(_, id)| CatalogChange::Remove(*id)));
    set
}

fn find_targets(catalog: &CatalogVersion, statement: &Drop, session: &SessionInfo) -> Result<Targets, ServerError> {
    let mut targets = Targets::default();
    for (schema, name) in &statement.names {
        if statement.kind == DropKind::Schema {
            find_schema(catalog, statement, name, &mut targets)?;
            continue;
        }
        let system = schema.as_deref().is_some_and(system::is_system_schema);
        if system {
            return Err(ServerError::new(
                SqlState::INSUFFICIENT_PRIVILEGE,
                format!("permission denied: \"{name}\" is a system catalog"),
            ));
        }
        if let Some(schema) = schema
            && !catalog.schemas().contains_key(schema)
        {
            missing(
                statement,
                SqlState::INVALID_SCHEMA_NAME,
                format!("schema \"{schema}\" does not exist"),
                &mut targets,
            )?;
            continue;
        }
        match catalog.find(schema.as_deref(), name, &session.search_path).filter(|object| object.is_visible()) {
            None => {
                let written = schema.as_ref().map_or_else(|| name.clone(), |schema| format!("{schema}.{name}"));
                let message = format!("{} \"{written}\" does not exist", kind_name(statement.kind));
                missing(statement, SqlState::UNDEFINED_TABLE, message, &mut targets)?;
            }
            Some(object) => {
                check_kind(statement.kind, object)?;
                targets.objects.insert(object.id);
            }
        }
    }
    Ok(targets)
}

fn find_schema(
    catalog: &CatalogVersion,
    statement: &Drop,
    name: &str,
    targets: &mut Targets,
) -> Result<(), ServerError> {
    if system::is_system_schema(name) {
        let message = format!("cannot drop schema {name} because it is required by the database system");
        return Err(ServerError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message));
    }
    match catalog.schemas().get(name) {
        Some(id) => targets.schemas.push((name.to_owned(), *id)),
        None => {
            let message = format!("schema \"{name}\" does not exist");
            missing(statement, SqlState::INVALID_SCHEMA_NAME, message, targets)?;
        }
    }
    Ok(())
}

fn missing(statement: &Drop, code: SqlState, message: String, targets: &mut Targets) -> Result<(), ServerError> {
    if !statement.if_exists {
        return Err(ServerError::new(code, message));
    }
    targets.notices.push(Notice::plain(format!("{message}, skipping")));
    Ok(())
}

fn check_kind(kind: DropKind, object: &CatalogObject) -> Result<(), ServerError> {
    let fits = match &object.kind {
        ObjectKind::Table { .. } => kind == DropKind::Table,
        ObjectKind::View { .. } => kind == DropKind::View,
        ObjectKind::MaterializedView { .. } => kind == DropKind::MaterializedView,
    };
    if fits {
        return Ok(());
    }
    let article = if kind == DropKind::MaterializedView { "a materialized view" } else { kind_article(kind) };
    let right = object.kind_name();
    Err(ServerError::new(SqlState::WRONG_OBJECT_TYPE, format!("\"{}\" is not {article}", object.name))
        .with_hint(format!("Use DROP {} to remove a {right}.", right.to_uppercase())))
}

fn kind_article(kind: DropKind) -> &'static str {
    if kind == DropKind::View { "a view" } else { "a table" }
}

/// What depends on the targets and is not one of them.
fn dependents_of(catalog: &CatalogVersion, targets: &Targets) -> Vec<Arc<CatalogObject>> {
    let in_schema = |object: &CatalogObject| targets.schemas.iter().any(|(schema, _)| *schema == object.schema);
    let mut reached = targets.objects.clone();
    let mut dependents: Vec<Arc<CatalogObject>> =
        catalog.objects().filter(|object| in_schema(object) && !reached.contains(&object.id)).cloned().collect();
    reached.extend(dependents.iter().map(|object| object.id));
    dependents.extend(catalog.dependents(&reached));
    dependents
}

/// Objects as messages name them: with their schema where they are not found without.
struct Names<'a> {
    catalog: &'a CatalogVersion,
    search_path: &'a [String],
}

impl Names<'_> {
    fn of(&self, object: &CatalogObject) -> String {
        let found = self.catalog.find(None, &object.name, self.search_path);
        if found.is_some_and(|found| found.id == object.id) {
            format!("{} {}", object.kind_name(), object.name)
        } else {
            format!("{} {}.{}", object.kind_name(), object.schema, object.name)
        }
    }
}

fn depended_on(names: &Names<'_>, kind: DropKind, targets: &Targets, dependents: &[Arc<CatalogObject>]) -> ServerError {
    let first = match (targets.schemas.first(), targets.objects.first().and_then(|id| names.catalog.object(*id))) {
        (Some((schema, _)), _) => format!("schema {schema}"),
        (None, Some(object)) => names.of(object),
        (None, None) => kind_name(kind).to_owned(),
    };
    let message = if targets.schemas.len() + targets.objects.len() == 1 {
        format!("cannot drop {first} because other objects depend on it")
    } else {
        "cannot drop desired object(s) because other objects depend on them".to_owned()
    };
    let line = |object: &Arc<CatalogObject>| {
        let named = names.of(object);
        if targets.schemas.iter().any(|(schema, _)| *schema == object.schema) {
            return format!("{named} depends on schema {}", object.schema);
        }
        let on =
            object.depends_on().iter().filter_map(|id| names.catalog.object(*id)).find(|on| {
                targets.objects.contains(&on.id) || dependents.iter().any(|dependent| dependent.id == on.id)
            });
        match on {
            Some(on) => format!("{named} depends on {}", names.of(on)),
            None => named,
        }
    };
    let detail: Vec<String> = dependents.iter().map(line).collect();
    ServerError::new(SqlState::DEPENDENT_OBJECTS_STILL_EXIST, message)
        .with_detail(detail.join("\n"))
        .with_hint("Use DROP ... CASCADE to drop the dependent objects too.")
}

fn cascade_notice(names: &Names<'_>, dependents: &[Arc<CatalogObject>]) -> Option<Notice> {
    let lines: Vec<String> = dependents
        .iter()
        .filter(|object| object.is_visible())
        .map(|object| format!("drop cascades to {}", names.of(object)))
        .collect();
    match lines.as_slice() {
        [] => None,
        [one] => Some(Notice::plain(one.clone())),
        many => {
            Some(Notice::plain(format!("drop cascades to {} other objects", many.len())).with_detail(many.join("\n")))
        }
    }
}
