//! The catalog together with the rows of an epoch: what planning asks about sizes.

use std::sync::Arc;

use plan::RelationId;
use planner::catalog::{Catalog, Object};

use super::CatalogVersion;
use crate::coordinator::Published;

/// A catalog that knows about how many rows its relations have in an epoch. Each answer reads a sample of the relation.
pub struct Measured {
    catalog: Arc<CatalogVersion>,
    published: Arc<Published>,
}

impl Measured {
    /// A catalog over the rows of an epoch.
    pub fn new(catalog: Arc<CatalogVersion>, published: Arc<Published>) -> Measured {
        Measured { catalog, published }
    }
}

impl Catalog for Measured {
    fn resolve(&self, schema: Option<&str>, name: &str, search_path: &[String]) -> Option<Object> {
        self.catalog.resolve(schema, name, search_path)
    }

    fn schema_exists(&self, name: &str) -> bool {
        self.catalog.schema_exists(name)
    }

    fn relation_names(&self, search_path: &[String]) -> Vec<String> {
        self.catalog.relation_names(search_path)
    }

    fn rows(&self, relation: RelationId) -> Option<u64> {
        let stored = self.catalog.stored(relation)?;
        // A plan is made without a size that cannot be read; whoever reads the rows will hear of it.
        let counted = stored.storage.approximate_rows(self.published.snapshot.as_ref());
        counted.inspect_err(|error| tracing::warn!(relation = stored.relation.name, %error, "no size is known")).ok()
    }
}
