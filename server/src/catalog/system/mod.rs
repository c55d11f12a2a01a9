//! `pg_catalog` and `information_schema` over the catalog, and the functions that look into it.
//!
//! Relations that show this catalog are made here ([`tables`], [`information_schema`]); those whose content is the same
//! in every Postgres (types, functions, operators, collations and so on) are those of the datafusion-pg-catalog crate.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use datafusion::datasource::{DefaultTableSource, MemTable, TableProvider};
use datafusion::logical_expr::ScalarUDF;
use datafusion_pg_catalog::pg_catalog::context::EmptyContextProvider;
use datafusion_pg_catalog::pg_catalog::{PgCatalogSchemaProvider, PgCatalogStaticTables};
use planner::catalog::Object;

use super::CatalogVersion;

pub mod functions;
pub mod information_schema;
pub mod tables;
pub mod types;

/// The functions that look into the catalog, and the place where they find its newest version. Made before
/// the planner, whose session must know the functions; filled by the coordinator.
#[derive(Clone, Default)]
pub struct SystemFunctions {
    current: Arc<ArcSwapOption<CatalogVersion>>,
}

impl SystemFunctions {
    /// Functions over a catalog that is not there yet.
    pub fn new() -> Self {
        SystemFunctions::default()
    }

    /// What to register with the planner's session.
    pub fn scalar(&self) -> Vec<Arc<ScalarUDF>> {
        functions::all(&self.current)
    }

    /// Makes a version the one that the functions see.
    pub fn publish(&self, version: Arc<CatalogVersion>) {
        self.current.store(Some(version));
    }
}

/// Whether a schema is one of the system's.
pub fn is_system_schema(name: &str) -> bool {
    matches!(name, "pg_catalog" | "information_schema")
}

/// A system relation by name.
pub fn resolve(version: &CatalogVersion, schema: &str, name: &str) -> Option<Object> {
    let rows = match schema {
        "pg_catalog" if !name.starts_with("pg_") => return None,
        "pg_catalog" => tables::pg_catalog(version, name),
        "information_schema" => information_schema::information_schema(version, name),
        _ => return None,
    };
    let provider: Arc<dyn TableProvider> = match rows {
        Some(rows) => {
            let batch = rows.batch().ok()?;
            Arc::new(MemTable::try_new(batch.schema(), vec![vec![batch]]).ok()?)
        }
        None if schema == "pg_catalog" => static_table(name)?,
        None => return None,
    };
    Some(Object::System(Arc::new(DefaultTableSource::new(provider))))
}

/// A relation whose content does not depend on the catalog.
fn static_table(name: &str) -> Option<Arc<dyn TableProvider>> {
    static TABLES: OnceLock<Option<Arc<PgCatalogStaticTables>>> = OnceLock::new();
    let tables = TABLES.get_or_init(|| PgCatalogStaticTables::try_new().map(Arc::new).ok()).clone()?;
    let catalogs: Arc<dyn datafusion::catalog::CatalogProviderList> =
        Arc::new(datafusion::catalog::MemoryCatalogProviderList::new());
    let provider = PgCatalogSchemaProvider::try_new(catalogs, tables, EmptyContextProvider).ok()?;
    provider.build_table_by_name(name).ok()??.try_into_table_provider().ok()
}
