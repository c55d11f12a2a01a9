//! The questions that planning asks of the catalog.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::logical_expr::TableSource;
use plan::{PlanError, Relation, RelationId};

/// A column's definition as far as writing to it needs.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ColumnInfo {
    /// Name.
    pub name: String,
    /// SQL text of its DEFAULT, if any.
    pub default: Option<String>,
    /// Refuses NULL.
    pub not_null: bool,
}

/// What a name stands for.
#[derive(Clone)]
pub enum Object {
    /// A table that clients write.
    Table(Arc<TableInfo>),
    /// A materialized view; also `"<view>$errors"`. Its definition, for reads inside a transaction that has written.
    MaterializedView(Arc<Relation>, Arc<ViewInfo>),
    /// The failed rows of a materialized view.
    Errors(Arc<Relation>),
    /// A plain view: planned again wherever it is used.
    View(Arc<ViewInfo>),
    /// A system relation, with its own data.
    System(Arc<dyn TableSource>),
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
pub struct TableInfo {
    /// The stored relation.
    pub relation: Arc<Relation>,
    /// In the order of the relation's schema.
    pub columns: Vec<ColumnInfo>,
    /// Positions of the primary key, empty if none.
    pub primary_key: Vec<usize>,
}

/// A view's definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewInfo {
    /// Schema-qualified name.
    pub name: String,
    /// The SELECT.
    pub query: String,
    /// Column names given in the definition; empty if it gave none.
    pub columns: Vec<String>,
    /// The search path under which names in the query are resolved.
    pub search_path: Vec<String>,
    /// Of a materialized view, the sizes by which its joins were put in order when it was made, so that planning it again leads
    /// to the same dataflow. None if they are as they were written.
    pub sizes: Option<Sizes>,
}

/// About how many rows stored relations have, as far as it is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Rows of each relation.
    pub rows: BTreeMap<RelationId, u64>,
}

/// The catalog as planning sees it: an immutable version.
pub trait Catalog: Send + Sync {
    /// The object of that name. Without a schema the search path is gone through in order, after `pg_catalog`.
    fn resolve(&self, schema: Option<&str>, name: &str, search_path: &[String]) -> Option<Object>;
    /// Whether a schema of that name exists.
    fn schema_exists(&self, name: &str) -> bool;
    /// All relation names that a user could have meant, for hints: in the search path unqualified, others
    /// qualified by their schema.
    fn relation_names(&self, search_path: &[String]) -> Vec<String>;
    /// About how many rows a stored relation has now, if that is known.
    fn rows(&self, relation: RelationId) -> Option<u64>;
}

/// What of a session planning depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionInfo {
    /// Schemas in which unqualified names are looked up.
    pub search_path: Vec<String>,
    /// Name of the time zone (IANA or an offset), for timestamptz text.
    pub time_zone: String,
    /// The user.
    pub user: String,
    /// The database.
    pub database: String,
}

impl SessionInfo {
    /// The schema in which objects are created: the first of the search path.
    pub fn current_schema(&self) -> &str {
        self.search_path.first().map_or("public", String::as_str)
    }
}

/// The error for a relation that is not there, with the nearest name as hint.
pub fn undefined_relation(name: &str, catalog: &dyn Catalog, search_path: &[String]) -> PlanError {
    let error = PlanError::new(plan::SqlState::UNDEFINED_TABLE, format!("relation \"{name}\" does not exist"));
    match nearest(name, catalog.relation_names(search_path).iter().map(String::as_str)) {
        Some(near) => error.with_hint(format!("Perhaps you meant \"{near}\".")),
        None => error,
    }
}

/// The candidate that differs least from a name, if it differs little (edit distance at most a third).
pub fn nearest<'a>(name: &str, candidates: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .map(|candidate| (edit_distance(name, candidate), candidate))
        .filter(|(distance, _)| *distance > 0 && *distance <= name.chars().count().max(3) / 3)
        .min()
        .map(|(_, candidate)| candidate)
}

/// Number of letters to add, take away, replace or swap with their neighbour, ignoring case.
fn edit_distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.to_lowercase().chars().collect();
    let right: Vec<char> = right.to_lowercase().chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for (i, l) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, r) in right.iter().enumerate() {
            let mut best = (last[j] + usize::from(l != r)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *l == right[j - 1] && left[i - 1] == *r {
                best = best.min(before[j - 1] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}
