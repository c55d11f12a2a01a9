//! Tests of window functions over deltas: by hand, and against DataFusion over random changes.

use rand::Rng;

use crate::operators::harness::{Harness, Setting, Table, table};

fn sales() -> Table {
    table("t", "id int8, g int4, v int4")
}

#[test]
fn a_change_moves_what_comes_behind_it() {
    let query = "SELECT id, sum(v) OVER (PARTITION BY g ORDER BY id) AS s FROM t";
    let mut harness = Harness::new(vec![sales()], query);
    assert!(harness.operators().contains(&"window") && !harness.operators().contains(&"recompute"));
    assert_eq!(
        harness.epoch(&[("t", "+1 | 1 | 1 | 10\n+1 | 2 | 1 | 20\n+1 | 3 | 2 | 5")]),
        "+1 | 1 | 10\n+1 | 2 | 30\n+1 | 3 | 5"
    );
    harness.restart();
    assert_eq!(harness.epoch(&[("t", "-1 | 1 | 1 | 10")]), "-1 | 1 | 10\n+1 | 2 | 20\n-1 | 2 | 30");
    assert_eq!(harness.epoch(&[("t", "+1 | 4 | NULL | 7")]), "+1 | 4 | 7");
    harness.check();
}

#[test]
fn only_neighbours_of_a_change_are_emitted() {
    let query = "SELECT id, lag(v) OVER (ORDER BY id) AS p, lead(v, 2) OVER (ORDER BY id) AS n FROM t";
    let mut harness = Harness::new(vec![sales()], query);
    let rows: Vec<String> = (0..50).map(|id| format!("+1 | {id} | 1 | {id}")).collect();
    harness.epoch(&[("t", &rows.join("\n"))]);
    harness.restart();
    assert_eq!(
        harness.epoch(&[("t", "-1 | 20 | 1 | 20")]),
        "-1 | 18 | 17 | 20\n+1 | 18 | 17 | 21\n-1 | 19 | 18 | 21\n+1 | 19 | 18 | 22\n-1 | 20 | 19 | 22\n\
         +1 | 21 | 19 | 23\n-1 | 21 | 20 | 23"
    );
    harness.check();
}

#[test]
fn a_partition_that_fails_is_among_the_errors() {
    fails_and_recovers("SELECT id, max(10 / v) OVER (PARTITION BY g) AS m FROM t");
    fails_and_recovers("SELECT id, max(10 / v) OVER (PARTITION BY g ORDER BY id DESC) AS m FROM t");
}

/// The row that fails is far from some of the changes, and near others.
#[test]
fn a_failure_is_one_of_the_whole_partition_also_where_few_rows_are_looked_at() {
    let query = "SELECT id, max(10 / v) OVER (PARTITION BY g ORDER BY id ROWS 1 PRECEDING) AS m FROM t";
    let mut harness = Harness::new(vec![sales()], query);
    let rows: Vec<String> = (0..30).map(|id| format!("+1 | {id} | 1 | {}", id % 4 + 1)).collect();
    harness.epoch(&[("t", &format!("{}\n+1 | 100 | 2 | 5", rows.join("\n")))]);
    for change in ["+1 | 40 | 1 | 0", "-1 | 3 | 1 | 4", "+1 | 41 | 1 | 2", "-1 | 41 | 1 | 2\n+1 | 50 | 1 | 5"] {
        harness.epoch(&[("t", change)]);
        assert_eq!(harness.output(), "+1 | 100 | 2");
        harness.restart();
    }
    harness.epoch(&[("t", "-1 | 40 | 1 | 0")]);
    assert_eq!(harness.errors(), "");
    harness.check();
}

fn fails_and_recovers(query: &str) {
    let mut harness = Harness::new(vec![sales()], query);
    harness.epoch(&[("t", "+1 | 1 | 1 | 2\n+1 | 2 | 2 | 5")]);
    harness.epoch(&[("t", "+1 | 3 | 1 | 0")]);
    assert_eq!(harness.output(), "+1 | 2 | 2");
    assert!(harness.errors().contains("division by zero"), "{}", harness.errors());
    harness.restart();
    harness.epoch(&[("t", "-1 | 3 | 1 | 0\n+1 | 4 | 2 | 1")]);
    assert_eq!(harness.errors(), "");
    harness.check();
}

/// Orders are total, or the function does not depend on it, so that DataFusion has no choice.
const QUERIES: &[&str] = &[
    "SELECT *, row_number() OVER (PARTITION BY g ORDER BY v, id) AS n FROM t",
    "SELECT *, rank() OVER (ORDER BY v DESC) AS r, dense_rank() OVER (ORDER BY v DESC) AS d FROM t",
    "SELECT *, sum(v) OVER (PARTITION BY g) AS s, count(*) OVER () AS c FROM t",
    "SELECT *, sum(v) OVER (PARTITION BY g ORDER BY v) AS s FROM t",
    "SELECT *, max(v) OVER (PARTITION BY g ORDER BY id, v ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS m FROM t",
    "SELECT *, min(v) OVER (ORDER BY id, g, v ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS m FROM t",
    "SELECT *, sum(v) OVER (ORDER BY v RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS s FROM t",
    "SELECT *, count(v) OVER (ORDER BY v GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM t",
    "SELECT *, lag(v) OVER (PARTITION BY g ORDER BY id, v) AS p, lead(v, 2, -1) OVER (PARTITION BY g ORDER BY id, v) AS n FROM t",
    "SELECT *, ntile(3) OVER (ORDER BY v, id, g) AS n, percent_rank() OVER (PARTITION BY g ORDER BY v) AS p FROM t",
    "SELECT *, first_value(id) OVER (PARTITION BY g ORDER BY v, id) AS f, last_value(id) OVER (PARTITION BY g ORDER BY v, id) AS l FROM t",
    "SELECT *, sum(v) FILTER (WHERE id > 2) OVER (PARTITION BY g + 1 ORDER BY v * 2, id ROWS UNBOUNDED PRECEDING) AS s FROM t",
    "SELECT g, sum(count(*)) OVER (ORDER BY g) AS s FROM t GROUP BY g",
    "SELECT *, \"sum excluding\"(v, true, arrow_cast('TIES', 'Dictionary(Int8, Utf8)'), v) OVER (PARTITION BY g ORDER BY v) AS s FROM t",
    "SELECT *, \"max excluding\"(v, id > 1, arrow_cast('GROUP', 'Dictionary(Int8, Utf8)'), g) OVER (ORDER BY g, id, v ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING) AS m FROM t",
    "SELECT *, \"count excluding\"(v, true, arrow_cast('CURRENT ROW DISTINCT', 'Dictionary(Int8, Utf8)'), v) OVER (ORDER BY v GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING) AS c FROM t",
    "SELECT *, \"nth_value excluding\"(id, 2, true, arrow_cast('TIES', 'Dictionary(Int8, Utf8)'), g) OVER (ORDER BY g, v, id ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING) AS n FROM t",
];

#[test]
fn random_changes() {
    for (number, query) in QUERIES.iter().enumerate() {
        for (cache_bytes, keyed, rows) in [(1 << 24, false, 6), (0, true, 3), (2000, false, 1), (1 << 24, true, 1)] {
            let setting = Setting { workers: 1 + number % 3, cache_bytes, seed: number as u64 };
            let sales = if keyed { sales().key(&[0]) } else { sales() };
            let mut harness = Harness::with(vec![sales], query, setting);
            assert!(harness.operators().contains(&"window"), "{query}: {:?}", harness.operators());
            assert!(!harness.operators().contains(&"recompute"), "{query}: {:?}", harness.operators());
            for epoch in 0..25 {
                let mut row = |random: &mut rand::rngs::StdRng| {
                    let id = random.random_range(0..if keyed { 60 } else { 4 });
                    let value = match random.random_range(0..8) {
                        0 => "NULL".to_string(),
                        _ => random.random_range(-3..6).to_string(),
                    };
                    format!("{id} | {} | {value}", random.random_range(0..3))
                };
                let rows = if epoch == 0 { 30 } else { rows };
                let change = harness.random_change("t", rows, &mut row);
                harness.apply(vec![("t", change)]);
                harness.check();
                if epoch % 7 == 6 {
                    harness.restart();
                }
            }
        }
    }
}

/// Sessions that merge, part, grow at both ends and hold rows of one time, by keys and without.
#[test]
fn sessions() {
    let over = "OVER (PARTITION BY g ORDER BY ts)";
    let queries = [
        format!("SELECT *, session_start(ts, interval '10 minutes') {over} AS s, session_end(ts, interval '10 minutes') {over} AS e FROM t"),
        "SELECT id, session_end(ts, interval '7 minutes') OVER (ORDER BY ts) AS e FROM t".to_owned(),
        "SELECT g, session_start(ts, interval '1 month') OVER (ORDER BY ts NULLS FIRST) AS s FROM t".to_owned(),
        // No order, another order, another time: by partition.
        format!("SELECT *, session_start(ts, interval '10 minutes') {over} AS s, session_end(ts, interval '5 minutes') {over} AS e FROM t"),
        "SELECT *, session_start(ts, interval '10 minutes') OVER (PARTITION BY g) AS s FROM t".to_owned(),
        "SELECT *, session_start(ts + interval '1 day', interval '10 minutes') OVER (PARTITION BY g ORDER BY ts DESC) AS s FROM t".to_owned(),
    ];
    for (number, query) in queries.iter().enumerate() {
        for (cache_bytes, minutes, rows) in [(1 << 24, 300, 2), (0, 60, 1), (2000, 2000, 200), (1 << 24, 1500, 1)] {
            let setting = Setting { workers: 1 + number % 3, cache_bytes, seed: number as u64 };
            let mut harness = Harness::with(vec![table("t", "id int8, g int4, ts timestamp")], query, setting);
            assert!(harness.operators().contains(&"window"), "{query}: {:?}", harness.operators());
            for epoch in 0..20 {
                let mut row = |random: &mut rand::rngs::StdRng| {
                    let minute: i64 = random.random_range(0..minutes);
                    let time = match random.random_range(0..20) {
                        0 => "NULL".to_string(),
                        _ => format!("2024-01-{:02} {:02}:{:02}:00", 1 + minute / 1440, minute / 60 % 24, minute % 60),
                    };
                    format!("{} | {} | {time}", random.random_range(0..4), random.random_range(0..2))
                };
                let change = harness.random_change("t", if epoch == 0 { 150 } else { rows }, &mut row);
                harness.apply(vec![("t", change)]);
                harness.check();
                if epoch % 7 == 6 {
                    harness.restart();
                }
            }
        }
    }
}

#[test]
fn only_the_sessions_around_a_change_are_emitted() {
    let query = "SELECT id, session_start(ts, interval '10 minutes') OVER (ORDER BY ts) AS s FROM t";
    let mut harness = Harness::new(vec![table("t", "id int8, ts timestamp").key(&[0])], query);
    let rows: Vec<String> =
        (0..60).map(|id| format!("+1 | {id} | 2024-01-01 {:02}:{:02}:00", id / 3, id % 3)).collect();
    harness.epoch(&[("t", &rows.join("\n"))]);
    harness.restart();
    assert_eq!(harness.epoch(&[("t", "+1 | 100 | 2024-01-01 07:30:00")]), "+1 | 100 | 2024-01-01 07:30:00");
    // It joins the three rows before it.
    assert_eq!(
        harness.epoch(&[("t", "-1 | 100 | 2024-01-01 07:30:00\n+1 | 100 | 2024-01-01 07:11:59")]),
        "+1 | 100 | 2024-01-01 07:00:00\n-1 | 100 | 2024-01-01 07:30:00"
    );
    harness.check();
}

/// More changes than are looked at one by one.
#[test]
fn many_changes_are_taken_in_one_go() {
    let query = "SELECT *, lag(v) OVER (PARTITION BY g ORDER BY id) AS p, lead(v, 2) OVER (PARTITION BY g ORDER BY id) AS n FROM t";
    let setting = Setting { workers: 2, cache_bytes: 0, seed: 5 };
    let mut harness = Harness::with(vec![sales().key(&[0])], query, setting);
    for (start, count) in [(1000, 1200), (2500, 900), (0, 600), (2150, 700)] {
        let rows: Vec<String> = (start..start + count).step_by(2).map(|id| format!("+1 | {id} | 1 | {id}")).collect();
        let new = if start == 2150 { rows.iter().map(|row| row.replace("+1 | ", "+1 | 10")).collect() } else { rows };
        harness.epoch(&[("t", &new.join("\n"))]);
        harness.check();
        harness.restart();
    }
    let gone: Vec<String> = (1000..1700).step_by(2).map(|id| format!("-1 | {id} | 1 | {id}")).collect();
    harness.epoch(&[("t", &gone.join("\n"))]);
    harness.check();
}

/// Far more rows than there are between two checkpoints.
#[test]
fn what_runs_goes_on_at_a_checkpoint() {
    let queries = [
        "SELECT *, row_number() OVER (PARTITION BY g ORDER BY id) AS n, sum(v) OVER (PARTITION BY g ORDER BY id) AS s FROM t",
        "SELECT *, rank() OVER (ORDER BY v) AS r, dense_rank() OVER (ORDER BY v) AS d, count(*) OVER (ORDER BY v) AS c FROM t",
        "SELECT *, avg(v) OVER (ORDER BY id DESC ROWS UNBOUNDED PRECEDING) AS a, min(v) OVER (ORDER BY id DESC) AS m FROM t",
    ];
    for (number, query) in queries.iter().enumerate() {
        let setting = Setting { workers: 2, cache_bytes: [1 << 24, 0, 5000][number], seed: number as u64 };
        let mut harness = Harness::with(vec![sales().key(&[0])], query, setting);
        assert!(!harness.operators().contains(&"recompute"), "{query}: {:?}", harness.operators());
        for epoch in 0..40 {
            let mut row = |random: &mut rand::rngs::StdRng| {
                let (id, value) = (random.random_range(0..3000), random.random_range(-3..300 / (1 + epoch as i32 % 7)));
                format!("{id} | {} | {value}", random.random_range(0..2))
            };
            let change = harness.random_change("t", if epoch == 0 { 700 } else { 1 + epoch % 3 }, &mut row);
            harness.apply(vec![("t", change)]);
            harness.check();
            if epoch % 7 == 6 {
                harness.restart();
            }
        }
    }
}

/// Every form of the operator, filled in several epochs with changes among them.
#[test]
fn a_fill_emits_once() {
    let functions = [
        "sum(v) OVER (PARTITION BY g ORDER BY id)",
        "lag(v) OVER (ORDER BY id)",
        "avg(v) OVER (PARTITION BY g)",
        "rank() OVER (ORDER BY v DESC)",
        "max(10 / v) OVER (PARTITION BY g ORDER BY id)",
    ];
    for (number, function) in functions.into_iter().enumerate() {
        let query = format!("SELECT id, g, {function} AS f FROM t");
        let setting = Setting { workers: 1 + number % 3, ..Setting::default() };
        let mut harness = Harness::filling(vec![sales()], &query, setting);
        let chunk = |from: i64| {
            let rows = (from..from + 40).map(|id| format!("+1 | {id} | {} | {}", id * 7 % 4, id * 13 % 9 + 1));
            rows.collect::<Vec<_>>().join("\n")
        };
        assert_eq!(harness.epoch(&[("t", &chunk(0))]), "", "{query}");
        assert_eq!(harness.epoch(&[("t", "-1 | 3 | 1 | 4\n+1 | 300 | NULL | NULL\n+1 | 301 | 9 | 0")]), "", "{query}");
        assert_eq!(harness.epoch(&[("t", &chunk(40))]), "", "{query}");
        // Nothing comes in the last epoch of some fills.
        harness.complete_fill();
        if number % 2 == 0 {
            harness.epoch(&[("t", &chunk(80))]);
        } else {
            harness.epoch(&[]);
        }
        if !function.contains('/') {
            harness.check();
        }
        harness.restart();
        harness.epoch(&[("t", "-1 | 301 | 9 | 0\n+1 | 302 | 1 | 3")]);
        harness.check();
        assert_eq!(harness.errors(), "", "{query}");
    }
}
