//! `pg_catalog` and `information_schema` over the catalog, and the functions that look into it.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use datafusion::logical_expr::ScalarUDF;

use super::CatalogVersion;

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
        Vec::new()
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
pub fn resolve(_version: &CatalogVersion, _schema: &str, _name: &str) -> Option<planner::catalog::Object> {
    None
}
