//! The coordinator over a store in memory, without SQL text: statements are made by hand.

use std::sync::Arc;

use datafusion::arrow::array::{Array, Int32Array, StringArray};
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, col, lit};
use futures::TryStreamExt;
use plan::RelationSource;
use planner::catalog::{Catalog, ColumnInfo, Object, TableInfo};
use planner::statement::{Cell, CreateTable, Delete, Insert, InsertSource, ObjectName, OnConflict, Update};
use planner::{Planner, SessionInfo, Statement};
use runtime::RuntimeConfig;
use runtime::state::Store;
use runtime::state::memory::MemoryStore;

use super::*;
use crate::read;

fn session() -> SessionInfo {
    SessionInfo {
        search_path: vec!["public".into()],
        time_zone: "UTC".into(),
        user: "tester".into(),
        database: "tidemill".into(),
    }
}

fn start(store: Arc<dyn Store>) -> Arc<Coordinator> {
    let functions = SystemFunctions::new();
    let planner = Planner::new(read::session_state(&functions), Vec::new());
    let config = RuntimeConfig { workers: 1, cache_bytes: 1 << 20 };
    Coordinator::start(store, config, Arc::new(planner), functions, 1 << 16).expect("starts")
}

async fn create(coordinator: &Arc<Coordinator>, name: &str, primary_key: Vec<usize>) -> Arc<TableInfo> {
    let column = |name: &str, not_null| ColumnInfo { name: name.into(), default: None, not_null };
    let keyed = !primary_key.is_empty();
    let statement = Statement::CreateTable(CreateTable {
        name: ObjectName { schema: "public".into(), name: name.into() },
        if_not_exists: false,
        fields: vec![
            Arc::new(Field::new("id", DataType::Int32, !keyed)),
            Arc::new(Field::new("name", DataType::Utf8, true)),
        ],
        columns: vec![column("id", keyed), column("name", false)],
        primary_key,
        append_only: false,
        watermark: None,
        query: None,
    });
    let mut transaction = Transaction::begin(coordinator.clone(), false);
    transaction.ddl(&statement, &session(), ddl::advice::StatePolicy::Notice).await.expect("creates");
    table(coordinator, name)
}

fn table(coordinator: &Coordinator, name: &str) -> Arc<TableInfo> {
    match coordinator.published().catalog.resolve(None, name, &["public".to_owned()]) {
        Some(Object::Table(table)) => table,
        _ => panic!("no table {name}"),
    }
}

fn insert(table: &Arc<TableInfo>, rows: &[(i32, &str)]) -> Insert {
    let cells =
        |(id, name): &(i32, &str)| vec![Cell::Value(ScalarValue::from(*id)), Cell::Value(ScalarValue::from(*name))];
    Insert {
        table: table.clone(),
        source: InsertSource::Rows(rows.iter().map(cells).collect()),
        on_conflict: None,
        returning: None,
    }
}

async fn run_insert(coordinator: &Arc<Coordinator>, insert: &Insert) -> Result<u64, ServerError> {
    let mut transaction = Transaction::begin(coordinator.clone(), false);
    let done = transaction.insert(insert, &session()).await?;
    transaction.commit().await?;
    Ok(done.count)
}

fn scan(table: &TableInfo) -> LogicalPlan {
    let source = Arc::new(RelationSource::new(table.relation.clone()));
    LogicalPlanBuilder::scan("t", source, None).expect("scans").build().expect("builds")
}

/// The rows of a target with their numbers, filtered.
fn target(table: &TableInfo, filter: Expr) -> LogicalPlanBuilder {
    let source = Arc::new(RelationSource::with_rowid(table.relation.clone()));
    LogicalPlanBuilder::scan("t", source, None).expect("scans").filter(filter).expect("filters")
}

async fn rows_of(transaction: &mut Transaction, table: &TableInfo) -> Vec<String> {
    let rows = transaction.query(&scan(table), &session()).await.expect("runs");
    let batches: Vec<RecordBatch> = rows.rows.try_collect().await.expect("reads");
    let mut texts = Vec::new();
    for batch in &batches {
        let ids = batch.column(0).as_any().downcast_ref::<Int32Array>().expect("int4");
        let names = batch.column(1).as_any().downcast_ref::<StringArray>().expect("text");
        texts.extend((0..batch.num_rows()).map(|row| format!("{} {}", ids.value(row), names.value(row))));
    }
    texts.sort();
    texts
}

async fn rows(coordinator: &Arc<Coordinator>, table: &TableInfo) -> Vec<String> {
    rows_of(&mut Transaction::begin(coordinator.clone(), true), table).await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_acknowledged_is_seen_and_survives_a_restart() {
    let store: Arc<dyn Store> = MemoryStore::new();
    for keyed in [vec![0], Vec::new()] {
        let name = if keyed.is_empty() { "numbered" } else { "keyed" };
        let coordinator = start(store.clone());
        let table = create(&coordinator, name, keyed).await;
        assert_eq!(run_insert(&coordinator, &insert(&table, &[(1, "a"), (2, "b")])).await, Ok(2));
        assert_eq!(run_insert(&coordinator, &insert(&table, &[(3, "c")])).await, Ok(1));
        assert_eq!(rows(&coordinator, &table).await, ["1 a", "2 b", "3 c"]);
        coordinator.stop().await.unwrap();
        let coordinator = start(store.clone());
        let table = self::table(&coordinator, name);
        assert_eq!(run_insert(&coordinator, &insert(&table, &[(4, "d")])).await, Ok(1));
        assert_eq!(rows(&coordinator, &table).await, ["1 a", "2 b", "3 c", "4 d"]);
        coordinator.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_unique_among_concurrent_writers() {
    let coordinator = start(MemoryStore::new());
    let table = create(&coordinator, "t", vec![0]).await;
    let mut writers = Vec::new();
    for writer in 0..8 {
        let (coordinator, table) = (coordinator.clone(), table.clone());
        writers.push(task::spawn("writer", async move {
            let mut won = 0;
            for id in 0..50 {
                match run_insert(&coordinator, &insert(&table, &[(id, &format!("w{writer}"))])).await {
                    Ok(_) => won += 1,
                    Err(error) => assert_eq!(error.sqlstate, SqlState::UNIQUE_VIOLATION, "{error}"),
                }
            }
            won
        }));
    }
    let mut won = 0;
    for writer in writers {
        won += writer.await.expect("joins").expect("does not panic");
    }
    assert_eq!(won, 50);
    assert_eq!(rows(&coordinator, &table).await.len(), 50);
    let error = run_insert(&coordinator, &insert(&table, &[(70, "x"), (70, "y")])).await.expect_err("twice");
    assert_eq!(error.message, "duplicate key value violates unique constraint \"t_pkey\"");
    assert_eq!(error.detail.as_deref(), Some("Key (id)=(70) already exists."));
    coordinator.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_sees_its_own_changes_and_nobody_else_does() {
    for key in [vec![0], Vec::new()] {
        let coordinator = start(MemoryStore::new());
        let table = create(&coordinator, "t", key).await;
        run_insert(&coordinator, &insert(&table, &[(1, "a"), (2, "b"), (3, "c")])).await.expect("inserts");
        let mut transaction = Transaction::begin(coordinator.clone(), false).in_block();
        transaction.insert(&insert(&table, &[(4, "d"), (5, "e")]), &session()).await.expect("inserts");
        let gone = target(&table, col("id").in_list(vec![lit(2), lit(5)], false)).build().expect("builds");
        let delete = Delete { table: table.clone(), query: gone, returning: None };
        assert_eq!(transaction.delete(&delete, &session()).await.expect("deletes").count, 2);
        let changed = target(&table, col("id").in_list(vec![lit(3), lit(4)], false))
            .project(vec![
                col("$rowid"),
                col("id"),
                col("name"),
                col("id").alias("new_id"),
                lit("new").alias("new_name"),
            ])
            .and_then(LogicalPlanBuilder::build)
            .expect("builds");
        let update = Update { table: table.clone(), query: changed, returning: None };
        assert_eq!(transaction.update(&update, &session()).await.expect("updates").count, 2);
        assert_eq!(rows_of(&mut transaction, &table).await, ["1 a", "3 new", "4 new"]);
        assert_eq!(rows(&coordinator, &table).await, ["1 a", "2 b", "3 c"]);
        transaction.commit().await.expect("commits");
        assert_eq!(rows(&coordinator, &table).await, ["1 a", "3 new", "4 new"]);

        let mut transaction = Transaction::begin(coordinator.clone(), false).in_block();
        transaction.truncate(std::slice::from_ref(&table)).await.expect("truncates");
        transaction.insert(&insert(&table, &[(1, "again")]), &session()).await.expect("inserts");
        assert_eq!(rows_of(&mut transaction, &table).await, ["1 again"]);
        transaction.rollback();
        assert_eq!(rows(&coordinator, &table).await, ["1 a", "3 new", "4 new"]);
        let mut transaction = Transaction::begin(coordinator.clone(), false);
        transaction.truncate(std::slice::from_ref(&table)).await.expect("truncates");
        transaction.insert(&insert(&table, &[(1, "again")]), &session()).await.expect("inserts");
        transaction.commit().await.expect("commits");
        assert_eq!(rows(&coordinator, &table).await, ["1 again"]);
        coordinator.stop().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn conflicts_are_passed_over_or_updated() {
    let coordinator = start(MemoryStore::new());
    let table = create(&coordinator, "t", vec![0]).await;
    run_insert(&coordinator, &insert(&table, &[(1, "a"), (2, "b")])).await.expect("inserts");
    let mut nothing = insert(&table, &[(2, "x"), (3, "c"), (3, "y")]);
    nothing.on_conflict = Some(OnConflict::Nothing);
    assert_eq!(run_insert(&coordinator, &nothing).await, Ok(1));
    let both = LogicalPlanBuilder::from(scan(&table))
        .alias("t")
        .and_then(|left| left.cross_join(LogicalPlanBuilder::from(scan(&table)).alias("excluded")?.build()?));
    let schema = both.expect("joins").schema().clone();
    let mut upsert = insert(&table, &[(4, "d"), (1, "new")]);
    upsert.on_conflict = Some(OnConflict::Update {
        assignments: vec![(1, Expr::Column(datafusion::common::Column::new(Some("excluded"), "name")))],
        condition: None,
        schema,
    });
    assert_eq!(run_insert(&coordinator, &upsert).await, Ok(2));
    assert_eq!(rows(&coordinator, &table).await, ["1 new", "2 b", "3 c", "4 d"]);
    upsert.source = insert(&table, &[(1, "p"), (1, "q")]).source;
    let error = run_insert(&coordinator, &upsert).await.expect_err("twice");
    assert_eq!(error.sqlstate, SqlState("21000"));
    coordinator.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_null_key_is_refused() {
    let coordinator = start(MemoryStore::new());
    let table = create(&coordinator, "t", vec![0]).await;
    let mut bad = insert(&table, &[]);
    bad.source =
        InsertSource::Rows(vec![vec![Cell::Value(ScalarValue::Int32(None)), Cell::Value(ScalarValue::from("a"))]]);
    let error = run_insert(&coordinator, &bad).await.expect_err("null");
    assert_eq!(error.message, "null value in column \"id\" of relation \"t\" violates not-null constraint");
    assert_eq!(error.detail.as_deref(), Some("Failing row contains (null, a)."));
    coordinator.stop().await.unwrap();
}
