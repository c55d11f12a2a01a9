//! Golden plans: every `plans/*.sql` holds tables, queries and the dataflow plans expected of them.
//!
//! A file is a list of records, separated by blank lines. A record is SQL text; a query's is followed by a line
//! `----` and the plan as `EXPLAIN CREATE MATERIALIZED VIEW` prints it, or by the error. A record `ROWS t 10, u 20` says how
//! many rows tables have from there on, and nothing of the others. With `REWRITE=1` in the environment the expected parts are
//! written anew instead of compared.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::execution::SessionStateBuilder;
use plan::{Growth, Layout, Lower, PlanError, Relation, RelationId, RelationKind};
use planner::catalog::{Object, TableInfo, ViewInfo};
use planner::explain::explain_dataflow;
use planner::{Catalog, Planner, SessionInfo, Statement};

/// A catalog in memory, with everything in schema "public".
#[derive(Default)]
struct TestCatalog {
    objects: HashMap<String, Object>,
    rows: HashMap<RelationId, u64>,
    next_id: u32,
}

impl Catalog for TestCatalog {
    fn resolve(&self, schema: Option<&str>, name: &str, _search_path: &[String]) -> Option<Object> {
        match schema {
            None | Some("public") => self.objects.get(name).cloned(),
            Some(_) => None,
        }
    }

    fn schema_exists(&self, name: &str) -> bool {
        name == "public"
    }

    fn relation_names(&self, _search_path: &[String]) -> Vec<String> {
        self.objects.keys().cloned().collect()
    }

    fn rows(&self, relation: RelationId) -> Option<u64> {
        self.rows.get(&relation).copied()
    }
}

impl TestCatalog {
    /// Reads `table rows`.
    fn size(&self, text: &str) -> (RelationId, u64) {
        let (name, rows) = text.split_once(' ').unwrap();
        match self.objects.get(name) {
            Some(Object::Table(table)) => (table.relation.id, rows.parse().unwrap()),
            _ => panic!("{name} is no table"),
        }
    }
}

fn session() -> SessionInfo {
    SessionInfo {
        search_path: vec!["public".to_owned()],
        time_zone: "UTC".to_owned(),
        user: "tester".to_owned(),
        database: "tester".to_owned(),
    }
}

fn test_planner() -> Planner {
    let mut state = SessionStateBuilder::new().with_default_features().build();
    runtime::functions::register(&mut state).unwrap();
    let operators = runtime::operators::definitions().into_iter().map(|definition| definition as Arc<dyn Lower>);
    Planner::new(state, operators.collect())
}

/// Runs one record: a table or view goes into the catalog and answers nothing; a query answers its plan.
fn run(planner: &Planner, catalog: &mut TestCatalog, text: &str) -> Result<Option<Vec<String>>, PlanError> {
    let mut answer = None;
    if let Some(sizes) = text.strip_prefix("ROWS") {
        catalog.rows = sizes.split_terminator(',').map(|size| catalog.size(size.trim())).collect();
        return Ok(None);
    }
    for parsed in planner.parse(text)? {
        match planner.bind(&parsed, catalog, &session(), &[])?.statement {
            Statement::CreateTable(table) => {
                let relation = Arc::new(Relation {
                    id: RelationId(catalog.next_id),
                    name: format!("public.{}", table.name.name),
                    kind: RelationKind::Table,
                    schema: Arc::new(Schema::new(table.fields.clone())),
                    layout: if table.primary_key.is_empty() {
                        Layout::RowId
                    } else {
                        Layout::Keyed(table.primary_key.clone())
                    },
                    append_only: table.append_only,
                    growth: Growth::of_table(table.append_only),
                    watermarks: table.watermark.iter().map(|(column, _)| *column).collect(),
                });
                catalog.next_id += 2;
                let info = TableInfo { relation, columns: table.columns, primary_key: table.primary_key };
                catalog.objects.insert(table.name.name, Object::Table(Arc::new(info)));
            }
            Statement::CreateView(view) if !view.materialized => {
                let info = ViewInfo {
                    name: format!("public.{}", view.name.name),
                    query: view.query_text,
                    columns: view.columns,
                    search_path: session().search_path,
                    sizes: None,
                };
                catalog.objects.insert(view.name.name, Object::View(Arc::new(info)));
            }
            Statement::Query(query) => {
                let sizes = planner.sizes(&query, catalog)?;
                answer = Some(explain_dataflow(&planner.dataflow(&query, sizes.as_ref())?));
            }
            other => panic!("not for a plan file: {other:?}"),
        }
    }
    Ok(answer)
}

fn outcome(planner: &Planner, catalog: &mut TestCatalog, text: &str) -> Option<String> {
    match run(planner, catalog, text) {
        Ok(None) => None,
        Ok(Some(lines)) => Some(lines.join("\n")),
        Err(error) => {
            let hint = error.hint.map(|hint| format!("\nHINT: {hint}")).unwrap_or_default();
            Some(format!("ERROR {}: {}{hint}", error.sqlstate, error.message))
        }
    }
}

fn check(planner: &Planner, path: &Path, rewrite: bool) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let mut catalog = TestCatalog { next_id: 16, ..TestCatalog::default() };
    let mut differences = Vec::new();
    let mut rewritten = Vec::new();
    for record in text.trim_end().split("\n\n") {
        let (sql, expected) = match record.split_once("\n----\n") {
            Some((sql, expected)) => (sql, Some(expected.to_owned())),
            None => (record.trim_end_matches("\n----"), None),
        };
        let actual = outcome(planner, &mut catalog, sql);
        if actual != expected {
            differences.push(format!(
                "{}:\n{sql}\nexpected:\n{}\nactual:\n{}",
                path.display(),
                expected.unwrap_or_default(),
                actual.clone().unwrap_or_default()
            ));
        }
        rewritten.push(actual.map_or_else(|| sql.to_owned(), |plan| format!("{sql}\n----\n{plan}")));
    }
    if rewrite {
        std::fs::write(path, rewritten.join("\n\n") + "\n").unwrap();
        return Vec::new();
    }
    differences
}

#[test]
fn golden_plans() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/plans");
    let rewrite = std::env::var_os("REWRITE").is_some();
    let planner = test_planner();
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(!files.is_empty(), "there are plan files");
    let differences: Vec<String> = files.iter().flat_map(|file| check(&planner, file, rewrite)).collect();
    assert!(differences.is_empty(), "{}\n\nREWRITE=1 accepts them", differences.join("\n\n"));
}
