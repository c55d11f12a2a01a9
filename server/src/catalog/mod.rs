//! The catalog: what every name stands for, as immutable versions.
//!
//! A [`CatalogVersion`] never changes; an epoch with catalog changes publishes a new one. Stored entries are
//! versioned JSON ([`entry`]), written in the same atomic batch as the epoch in which they take effect.
//! [`system`] shows the same version as `pg_catalog` and `information_schema`.

use planner::catalog::{Catalog, Object};

pub mod system;

pub use system::SystemFunctions;

/// One version of the catalog.
#[derive(Default)]
pub struct CatalogVersion {}

impl Catalog for CatalogVersion {
    fn resolve(&self, _schema: Option<&str>, _name: &str, _search_path: &[String]) -> Option<Object> {
        None
    }

    fn schema_exists(&self, name: &str) -> bool {
        name == "public"
    }

    fn relation_names(&self, _search_path: &[String]) -> Vec<String> {
        Vec::new()
    }
}
