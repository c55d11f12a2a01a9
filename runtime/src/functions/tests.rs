#![allow(clippy::unwrap_used)]
//! The list of functions, their examples, and their results in queries.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;

use super::{FUNCTIONS, Implementation, page, register};
use crate::delta::{Delta, consolidate_all, literal};

/// A context with our functions.
fn context() -> SessionContext {
    let mut context = SessionContext::new();
    register(&mut context).unwrap();
    context
}

/// The rows of a query as text, or its error.
fn run(query: &str) -> Result<String, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let batches = runtime
        .block_on(async { context().sql(query).await?.collect().await })
        .map_err(|error| crate::expressions::message_of(&error))?;
    let Some(first) = batches.first() else { return Ok(String::new()) };
    let rows = consolidate_all(first.schema(), batches.iter().cloned().map(Delta::insert).collect()).unwrap();
    Ok(literal::text(&rows))
}

/// A session that is made of another one has every function of ours, and none that they replaced.
#[test]
fn sessions_made_of_others_have_our_functions() {
    let mut state = SessionStateBuilder::new().with_default_features().build();
    register(&mut state).unwrap();
    for _ in 0..20 {
        let made = SessionStateBuilder::new_from_existing(state.clone()).build();
        for function in FUNCTIONS {
            let name = function.name;
            let same = match function.implementation {
                Implementation::Scalar(_) => {
                    Arc::ptr_eq(&made.scalar_functions()[name], &state.scalar_functions()[name])
                }
                Implementation::Aggregate(_) => {
                    Arc::ptr_eq(&made.aggregate_functions()[name], &state.aggregate_functions()[name])
                }
                Implementation::Window(_) => {
                    Arc::ptr_eq(&made.window_functions()[name], &state.window_functions()[name])
                }
            };
            assert!(same, "{name}");
        }
    }
}

#[test]
fn names_are_unique_and_documented() {
    let names: BTreeSet<&str> = FUNCTIONS.iter().map(|function| function.name).collect();
    assert_eq!(names.len(), FUNCTIONS.len());
    let page = page::render();
    for function in FUNCTIONS {
        assert!(!function.forms.is_empty() && !function.text.is_empty() && !function.examples.is_empty());
        assert!(page.contains(&format!("### {}\n", function.name)));
    }
}

#[test]
fn every_name_of_an_aggregate_is_its_own() {
    for (name, function) in context().state().aggregate_functions() {
        assert_eq!(name, function.name());
    }
    let calls = [
        "stddev(x)",
        "stddev(DISTINCT x)",
        "stddev(x) FILTER (WHERE x > 1)",
        "stddev_samp(x)",
        "mean(x)",
        "mean(DISTINCT x)",
        "every(x > 0)",
        "every(x > 0) FILTER (WHERE x > 1)",
        "quantile_cont(x, 0.5)",
    ];
    let query = format!("SELECT {} FROM (VALUES (1), (1), (4)) AS t(x)", calls.join(", "));
    assert_eq!(
        run(&query).unwrap(),
        "+1 | 1.7320508075688773 | 2.1213203435596426 | NULL | 1.7320508075688773 | 2.0000000000000000 | 2.5000000000000000 | t | t | 1"
    );
}

#[test]
fn examples_are_right() {
    for example in FUNCTIONS.iter().flat_map(|function| function.examples) {
        assert_eq!(run(example.query), Ok(format!("+1 | {}", example.result)), "{}", example.query);
    }
}

#[test]
fn types_follow_postgres() {
    let types = "SELECT arrow_typeof(sum(i2)), arrow_typeof(sum(i8)), arrow_typeof(avg(i4)), arrow_typeof(sum(f4)),
        arrow_typeof(avg(f4)), arrow_typeof(sum(d)), arrow_typeof(avg(d))
        FROM (SELECT arrow_cast(1, 'Int16') i2, arrow_cast(1, 'Int32') i4, 1 i8, arrow_cast(1, 'Float32') f4,
        arrow_cast(1, 'Decimal128(28, 2)') d)";
    assert_eq!(
        run(types).unwrap(),
        "+1 | Int64 | Decimal128(38, 0) | Decimal256(76, 38) | Float32 | Float64 | Decimal128(38, 2) | Decimal256(76, 38)"
    );
}

#[test]
fn groups_distinct_and_filter() {
    let table =
        "(VALUES ('a', 1, 0.5), ('a', 1, 0.25), ('b', 2, NULL), ('a', 3, 0.5), ('b', NULL, NULL)) AS t(g, i, f)";
    let query = format!(
        "SELECT g, sum(i), sum(DISTINCT i), sum(i) FILTER (WHERE i > 1), avg(DISTINCT f), sum(f), count(DISTINCT i)
         FROM {table} GROUP BY g"
    );
    assert_eq!(run(&query).unwrap(), "+1 | a | 5 | 4 | 3 | 0.375 | 1.25 | 2\n+1 | b | 2 | 2 | 2 | NULL | NULL | 1");
    let query = format!("SELECT sum(DISTINCT i), avg(i), sum(f) FROM {table}");
    assert_eq!(run(&query).unwrap(), "+1 | 6 | 1.7500000000000000 | 1.25");
    assert_eq!(run("SELECT sum(x) FROM (SELECT 1 AS x WHERE false)").unwrap(), "+1 | NULL");
}

#[test]
fn windows_take_rows_out_of_sums_again() {
    let query =
        "SELECT o, sum(f) OVER (ORDER BY o ROWS 1 PRECEDING), sum(DISTINCT i) OVER (ORDER BY o ROWS 1 PRECEDING)
        FROM (VALUES (1, 'NaN', 1), (2, '1.5', 1), (3, '0.1', 2), (4, 'inf', 3)) AS t(o, s, i)
        CROSS JOIN LATERAL (SELECT CAST(t.s AS double) f)";
    let query = query
        .replace("CROSS JOIN LATERAL (SELECT CAST(t.s AS double) f)", "")
        .replace("sum(f)", "sum(CAST(s AS double))");
    assert_eq!(run(&query).unwrap(), "+1 | 1 | NaN | 1\n+1 | 2 | NaN | 1\n+1 | 3 | 1.6 | 3\n+1 | 4 | Infinity | 5");
}

#[test]
fn what_does_not_fit_is_an_error() {
    let big = "arrow_cast(99999999999999999999999999999999999999, 'Decimal128(38, 0)')";
    assert_eq!(
        run(&format!("SELECT sum(x) FROM (SELECT {big} AS x UNION ALL SELECT {big})")),
        Err("value overflows numeric format".to_string())
    );
    assert_eq!(
        run("SELECT sum(CAST(x AS double)) FROM (VALUES ('1.7e308'), ('1.7e308')) AS t(x)"),
        Err("value out of range: overflow".to_string())
    );
    assert_eq!(
        run("SELECT avg(CAST(x AS double)) FROM (VALUES ('1.5e308'), ('1.7e308')) AS t(x)"),
        Ok("+1 | 1.6e308".to_string())
    );
    assert_eq!(run("SELECT sum(x) FROM (VALUES ('a')) AS t(x)"), Err("function sum(text) does not exist".to_string()));
}

#[test]
fn averages_near_the_limit_fit() {
    let rows = ["99999999999999999999999999.98", "99999999999999999999999999.98", "99999999999999999999999999.99"];
    let values = rows.map(|row| format!("(arrow_cast('{row}', 'Decimal128(28, 2)'))")).join(", ");
    assert_eq!(
        run(&format!("SELECT sum(v), avg(v) FROM (VALUES {values}) AS t(v)")).unwrap(),
        "+1 | 299999999999999999999999999.95 | 99999999999999999999999999.9800"
    );
}

#[test]
fn intervals_are_added_by_part() {
    let query = "SELECT sum(x), avg(x) FROM (VALUES (interval '1 month 1 day'), (interval '2 days 3 hours')) AS t(x)";
    assert_eq!(run(query).unwrap(), "+1 | 1 mon 3 days 03:00:00 | 16 days 13:30:00");
}

#[test]
fn window_arguments_are_checked() {
    let error = |query: &str| run(query).unwrap_err();
    assert_eq!(error("SELECT tumble_start(now(), interval '0 minutes')"), "window size must be greater than zero");
    assert_eq!(
        error("SELECT hop_starts(timestamp '2024-01-01', interval '-1 minute', interval '1 hour')"),
        "window slide must be greater than zero"
    );
    assert_eq!(
        error("SELECT tumble_start(1, interval '1 minute')"),
        "function tumble_start(bigint, interval) does not exist"
    );
}

#[test]
fn sessions_are_stretches_without_a_pause() {
    let times = "(VALUES ('a', timestamp '2024-02-02 09:20:00'), ('a', timestamp '2024-02-02 09:00:00'),
        ('a', timestamp '2024-02-02 09:09:59'), ('b', timestamp '2024-02-02 09:05:00'), ('a', NULL),
        ('a', timestamp '2024-02-02 09:19:59'), ('b', timestamp '2024-02-02 09:15:00')) AS t(k, ts)";
    let sessions = |order: &str| {
        let over = format!("OVER (PARTITION BY k {order})");
        let query = format!(
            "SELECT k, session_start(ts, interval '10 minutes') {over}, session_end(ts, interval '10 minutes') {over}
             FROM {times}"
        );
        run(&query).unwrap()
    };
    for order in ["", "ORDER BY ts", "ORDER BY ts DESC", "ORDER BY ts ROWS 1 PRECEDING"] {
        assert_eq!(sessions(order), sessions("ORDER BY ts"), "{order}");
    }
    assert_eq!(
        sessions("ORDER BY ts"),
        "+2 | a | 2024-02-02 09:00:00 | 2024-02-02 09:19:59\n\
         +2 | a | 2024-02-02 09:19:59 | 2024-02-02 09:30:00\n\
         +1 | a | NULL | NULL\n\
         +1 | b | 2024-02-02 09:05:00 | 2024-02-02 09:15:00\n\
         +1 | b | 2024-02-02 09:15:00 | 2024-02-02 09:25:00"
    );
    let gap = |gap: &str| run(&format!("SELECT session_end(ts, interval '{gap}') OVER () FROM {times} WHERE k = 'b'"));
    assert_eq!(gap("1 month").unwrap(), "+2 | 2024-03-02 09:15:00");
    assert_eq!(gap("0 seconds"), Err("session gap must be greater than zero".to_string()));
    assert_eq!(
        run("SELECT session_start(1, interval '1 minute') OVER ()"),
        Err("function session_start(bigint, interval) does not exist".to_string())
    );
}

#[test]
fn windows_of_columns() {
    let table = "(VALUES (timestamp '2024-01-31 00:00:00', interval '1 month'), (NULL, interval '1 day'),
        (timestamp '2023-12-31 23:59:59', interval '1 year'), (timestamp '1969-12-31 22:59:59', interval '1 hour')) AS t(ts, size)";
    assert_eq!(
        run(&format!("SELECT tumble_start(ts, size), tumble_end(ts, size) FROM {table} WHERE ts IS NOT NULL")).unwrap(),
        "+1 | 1969-12-31 22:00:00 | 1969-12-31 23:00:00\n\
         +1 | 2023-01-01 00:00:00 | 2024-01-01 00:00:00\n\
         +1 | 2024-01-01 00:00:00 | 2024-02-01 00:00:00"
    );
    assert_eq!(
        run(&format!("SELECT hop_starts(ts, interval '1 month', interval '40 days') FROM {table}")).unwrap(),
        "+1 | {\"1969-12-01 00:00:00\"}\n+1 | {\"2023-12-01 00:00:00\"}\n\
         +1 | {\"2024-01-01 00:00:00\"}\n+1 | {}"
    );
}
