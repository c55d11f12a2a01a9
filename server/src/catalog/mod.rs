//! The catalog: what every name stands for, as immutable versions.
//!
//! A [`CatalogVersion`] never changes; an epoch with catalog changes publishes a new one, made by applying
//! [`CatalogChange`]s. Stored entries are versioned JSON ([`entry`]), written in the same atomic batch as the epoch
//! in which they take effect ([`store`]). [`system`] shows the same version as `pg_catalog` and
//! `information_schema`.
//!
//! Invariants: ids are never used twice; every id in a `depends_on` is in the catalog; names are unique within a
//! schema, over tables and views of both kinds.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use plan::{Relation, RelationId, RelationKind};
use planner::catalog::{Catalog, Object, Sizes, TableInfo, ViewInfo};
use runtime::state::relation::RelationStorage;

use crate::error::ServerError;
use entry::{Entry, MaterializedEntry, Status, StoredEntry, StoredJoinOrder, TableEntry, ViewEntry};

pub mod entry;
pub mod measured;
pub mod store;
pub mod system;

pub use system::SystemFunctions;

/// Ids below this are the store's own tables.
pub const FIRST_ID: u32 = 1024;

/// Suffix of the name of a materialized view's failed rows.
pub const ERRORS_SUFFIX: &str = "$errors";

/// A stored relation with the code that reads and writes its rows.
#[derive(Clone)]
pub struct Stored {
    /// The relation.
    pub relation: Arc<Relation>,
    /// Rows to entries and back.
    pub storage: Arc<RelationStorage>,
}

impl Stored {
    fn new(relation: Relation) -> Result<Stored, ServerError> {
        let relation = Arc::new(relation);
        Ok(Stored { storage: Arc::new(RelationStorage::new(relation.clone())?), relation })
    }
}

/// An object of the catalog, ready for use.
#[derive(Clone)]
pub struct CatalogObject {
    /// Identity.
    pub id: u32,
    /// Schema.
    pub schema: String,
    /// Name.
    pub name: String,
    /// What it is.
    pub kind: ObjectKind,
    /// Its stored form.
    pub entry: Arc<StoredEntry>,
}

/// What an object is.
#[derive(Clone)]
pub enum ObjectKind {
    /// A table.
    Table {
        /// As planning sees it.
        info: Arc<TableInfo>,
        /// Its rows.
        stored: Stored,
    },
    /// A plain view.
    View {
        /// As planning sees it.
        info: Arc<ViewInfo>,
        /// Its columns.
        schema: SchemaRef,
    },
    /// A materialized view.
    MaterializedView {
        /// As planning sees it.
        info: Arc<ViewInfo>,
        /// Its rows.
        rows: Stored,
        /// Its failed rows.
        errors: Stored,
        /// Whether it can be read.
        status: Status,
    },
}

impl CatalogObject {
    /// Builds an object from its stored form. Schemas are not objects: for them the answer is `None`.
    pub fn load(entry: Arc<StoredEntry>) -> Result<Option<CatalogObject>, ServerError> {
        let id = entry.id;
        let (schema, name, kind) = match &entry.entry {
            Entry::Schema { .. } => return Ok(None),
            Entry::Table(table) => (&table.schema, &table.name, load_table(id, table)?),
            Entry::View(view) => {
                let kind = ObjectKind::View { info: view_info(view, None), schema: entry::load_schema(&view.fields)? };
                (&view.schema, &view.name, kind)
            }
            Entry::MaterializedView(view) => (&view.view.schema, &view.view.name, load_materialized(id, view)?),
        };
        Ok(Some(CatalogObject { id, schema: schema.clone(), name: name.clone(), kind, entry: entry.clone() }))
    }

    /// Columns.
    pub fn columns(&self) -> &SchemaRef {
        match &self.kind {
            ObjectKind::Table { stored, .. } => &stored.relation.schema,
            ObjectKind::View { schema, .. } => schema,
            ObjectKind::MaterializedView { rows, .. } => &rows.relation.schema,
        }
    }

    /// Entries that it reads directly.
    pub fn depends_on(&self) -> &[u32] {
        match &self.entry.entry {
            Entry::View(view) => &view.depends_on,
            Entry::MaterializedView(view) => &view.view.depends_on,
            Entry::Schema { .. } | Entry::Table(_) => &[],
        }
    }

    /// "table", "view", "materialized view".
    pub fn kind_name(&self) -> &'static str {
        match &self.kind {
            ObjectKind::Table { .. } => "table",
            ObjectKind::View { .. } => "view",
            ObjectKind::MaterializedView { .. } => "materialized view",
        }
    }

    /// The name as users write it.
    pub fn display_name(&self) -> String {
        display_name(&self.schema, &self.name)
    }

    /// Whether users see it: all but materialized views that are not complete yet.
    pub fn is_visible(&self) -> bool {
        !matches!(&self.kind, ObjectKind::MaterializedView { status: Status::Filling, .. })
    }
}

/// A name as users write it: with its schema unless that is `public`.
pub fn display_name(schema: &str, name: &str) -> String {
    if schema == "public" { name.to_owned() } else { format!("{schema}.{name}") }
}

fn view_info(view: &ViewEntry, join_order: Option<&StoredJoinOrder>) -> Arc<ViewInfo> {
    let rows = |order: &StoredJoinOrder| order.rows.iter().map(|(id, rows)| (RelationId(*id), *rows)).collect();
    Arc::new(ViewInfo {
        name: display_name(&view.schema, &view.name),
        query: view.query.clone(),
        columns: view.columns.clone(),
        search_path: view.search_path.clone(),
        sizes: join_order.map(|order| Sizes { rows: rows(order) }),
    })
}

fn load_table(id: u32, table: &TableEntry) -> Result<ObjectKind, ServerError> {
    let stored = Stored::new(Relation {
        id: RelationId(id),
        name: display_name(&table.schema, &table.name),
        kind: RelationKind::Table,
        schema: entry::load_schema(&table.fields)?,
        layout: table.layout.clone(),
        append_only: table.append_only,
        growth: plan::Growth::of_table(table.append_only),
        watermarks: table.watermark.iter().map(|(column, _)| *column).collect(),
    })?;
    let info = Arc::new(TableInfo {
        relation: stored.relation.clone(),
        columns: table.columns.clone(),
        primary_key: table.primary_key.clone(),
    });
    Ok(ObjectKind::Table { info, stored })
}

fn load_materialized(id: u32, view: &MaterializedEntry) -> Result<ObjectKind, ServerError> {
    let (rows, errors) = materialized_relations(id, view)?;
    Ok(ObjectKind::MaterializedView {
        info: view_info(&view.view, view.join_order.as_ref()),
        rows: Stored::new(rows)?,
        errors: Stored::new(errors)?,
        status: view.status.clone(),
    })
}

/// The relations of a materialized view's rows and of its failed rows.
pub fn materialized_relations(id: u32, view: &MaterializedEntry) -> Result<(Relation, Relation), ServerError> {
    let name = display_name(&view.view.schema, &view.view.name);
    let errors = Relation {
        id: RelationId(view.errors_id),
        name: format!("{name}{ERRORS_SUFFIX}"),
        kind: RelationKind::Errors,
        schema: runtime::operators::errors_schema(),
        layout: plan::Layout::Multiset,
        append_only: false,
        growth: view.errors_growth,
        watermarks: Vec::new(),
    };
    let rows = Relation {
        id: RelationId(id),
        name,
        kind: RelationKind::MaterializedView,
        schema: entry::load_schema(&view.view.fields)?,
        layout: view.layout.clone(),
        append_only: view.append_only,
        growth: view.growth,
        watermarks: Vec::new(),
    };
    Ok((rows, errors))
}

/// A change of the catalog.
// A few an epoch at most.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone)]
pub enum CatalogChange {
    /// Adds an entry or replaces the one with the same id.
    Put(StoredEntry),
    /// Removes an entry.
    Remove(u32),
}

/// One version of the catalog.
#[derive(Clone, Default)]
pub struct CatalogVersion {
    /// Names of schemas, with their ids.
    schemas: BTreeMap<String, u32>,
    objects: BTreeMap<u32, Arc<CatalogObject>>,
    names: HashMap<String, HashMap<String, u32>>,
    /// The object that owns a stored relation (a materialized view owns two).
    relations: HashMap<RelationId, u32>,
    next_id: u32,
}

impl CatalogVersion {
    /// What a new data directory holds: the schema `public`.
    pub fn initial() -> CatalogVersion {
        CatalogVersion {
            schemas: BTreeMap::from([("public".to_owned(), FIRST_ID)]),
            next_id: FIRST_ID + 1,
            ..CatalogVersion::default()
        }
    }

    /// The version that changes lead to, with the next id to give out.
    pub fn with_changes(&self, changes: &[CatalogChange], next_id: u32) -> Result<CatalogVersion, ServerError> {
        let mut version = self.clone();
        version.next_id = version.next_id.max(next_id);
        for change in changes {
            match change {
                CatalogChange::Put(entry) => version.put(Arc::new(entry.clone()))?,
                CatalogChange::Remove(id) => version.remove(*id),
            }
        }
        Ok(version)
    }

    fn put(&mut self, entry: Arc<StoredEntry>) -> Result<(), ServerError> {
        self.remove(entry.id);
        self.next_id = self.next_id.max(entry.id + 1);
        if let Entry::Schema { name } = &entry.entry {
            self.schemas.insert(name.clone(), entry.id);
            return Ok(());
        }
        if let Some(object) = CatalogObject::load(entry)? {
            if let ObjectKind::Table { stored, .. } = &object.kind {
                self.relations.insert(stored.relation.id, object.id);
            }
            if let ObjectKind::MaterializedView { rows, errors, .. } = &object.kind {
                self.relations.insert(rows.relation.id, object.id);
                self.relations.insert(errors.relation.id, object.id);
            }
            self.names.entry(object.schema.clone()).or_default().insert(object.name.clone(), object.id);
            self.objects.insert(object.id, Arc::new(object));
        }
        Ok(())
    }

    fn remove(&mut self, id: u32) {
        self.schemas.retain(|_, schema| *schema != id);
        if let Some(object) = self.objects.remove(&id) {
            self.relations.retain(|_, owner| *owner != id);
            if let Some(names) = self.names.get_mut(&object.schema)
                && names.get(&object.name) == Some(&id)
            {
                names.remove(&object.name);
            }
        }
    }

    /// The next id to give out.
    pub fn next_id(&self) -> u32 {
        self.next_id
    }

    /// Schemas that users made, with their ids; `public` is one of them.
    pub fn schemas(&self) -> &BTreeMap<String, u32> {
        &self.schemas
    }

    /// All objects in the order of their ids: each after all that it depends on.
    pub fn objects(&self) -> impl Iterator<Item = &Arc<CatalogObject>> {
        self.objects.values()
    }

    /// An object by id.
    pub fn object(&self, id: u32) -> Option<&Arc<CatalogObject>> {
        self.objects.get(&id)
    }

    /// An object by its full name, visible or not.
    pub fn object_named(&self, schema: &str, name: &str) -> Option<&Arc<CatalogObject>> {
        self.objects.get(self.names.get(schema)?.get(name)?)
    }

    /// An object by a name as written: without a schema the search path is gone through.
    pub fn find(&self, schema: Option<&str>, name: &str, search_path: &[String]) -> Option<&Arc<CatalogObject>> {
        match schema {
            Some(schema) => self.object_named(schema, name),
            None => search_path.iter().find_map(|schema| self.object_named(schema, name)),
        }
    }

    /// The object to which a stored relation belongs.
    pub fn owner(&self, relation: RelationId) -> Option<&Arc<CatalogObject>> {
        self.objects.get(self.relations.get(&relation)?)
    }

    /// A stored relation by id.
    pub fn stored(&self, relation: RelationId) -> Option<&Stored> {
        match &self.owner(relation)?.kind {
            ObjectKind::Table { stored, .. } => Some(stored),
            ObjectKind::View { .. } => None,
            ObjectKind::MaterializedView { rows, errors, .. } => {
                Some(if rows.relation.id == relation { rows } else { errors })
            }
        }
    }

    /// Objects that read any of the given ones, directly or not, in the order of their ids, without those given.
    pub fn dependents(&self, ids: &BTreeSet<u32>) -> Vec<Arc<CatalogObject>> {
        let mut reached = ids.clone();
        let mut dependents = Vec::new();
        // REPLACE VIEW keeps a view's id while its dependencies may be newer: so go on until nothing is added.
        loop {
            let before = reached.len();
            for object in self.objects.values() {
                if !reached.contains(&object.id) && object.depends_on().iter().any(|id| reached.contains(id)) {
                    reached.insert(object.id);
                    dependents.push(object.clone());
                }
            }
            if reached.len() == before {
                return dependents;
            }
        }
    }

    fn resolve_in(&self, schema: &str, name: &str) -> Option<Object> {
        if let Some(object) = self.object_named(schema, name).filter(|object| object.is_visible()) {
            return Some(match &object.kind {
                ObjectKind::Table { info, .. } => Object::Table(info.clone()),
                ObjectKind::View { info, .. } => Object::View(info.clone()),
                ObjectKind::MaterializedView { info, rows, .. } => {
                    Object::MaterializedView(rows.relation.clone(), info.clone())
                }
            });
        }
        let view = self.object_named(schema, name.strip_suffix(ERRORS_SUFFIX)?)?;
        match &view.kind {
            ObjectKind::MaterializedView { errors, .. } if view.is_visible() => {
                Some(Object::Errors(errors.relation.clone()))
            }
            _ => None,
        }
    }
}

impl Catalog for CatalogVersion {
    fn resolve(&self, schema: Option<&str>, name: &str, search_path: &[String]) -> Option<Object> {
        match schema {
            Some(schema) if system::is_system_schema(schema) => system::resolve(self, schema, name),
            Some(schema) => self.resolve_in(schema, name),
            None => system::resolve(self, "pg_catalog", name).or_else(|| {
                search_path.iter().find_map(|schema| {
                    if system::is_system_schema(schema) {
                        system::resolve(self, schema, name)
                    } else {
                        self.resolve_in(schema, name)
                    }
                })
            }),
        }
    }

    fn schema_exists(&self, name: &str) -> bool {
        self.schemas.contains_key(name) || system::is_system_schema(name)
    }

    fn relation_names(&self, search_path: &[String]) -> Vec<String> {
        self.objects
            .values()
            .filter(|object| object.is_visible())
            .map(|object| {
                let visible = self.find(None, &object.name, search_path).is_some_and(|found| found.id == object.id);
                if visible { object.name.clone() } else { format!("{}.{}", object.schema, object.name) }
            })
            .collect()
    }

    fn rows(&self, _relation: RelationId) -> Option<u64> {
        // What is stored under a version is seen through `measured::Measured`.
        None
    }
}

#[cfg(test)]
mod tests;
