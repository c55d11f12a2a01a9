//! Tests of joins whose rows are found by ranges: against DataFusion over random changes, and where conditions fail against
//! the same rows put in at once.

use rand::Rng;

use crate::delta::Delta;
use crate::operators::harness::{Harness, Setting, Table, table};

/// Joins that are tried in every type, as `FROM ...`: closed, half-open and open ranges, of one side and of both, with and
/// without a key, over columns that are kept in place (`at`), computed, or part of the key, with unique keys on one side,
/// with bounds of several conjuncts and conjuncts besides.
const JOINS: &[&str] = &[
    "l {} JOIN r ON r.at BETWEEN l.at AND l.until",
    "l {} JOIN r ON l.k = r.k AND r.at BETWEEN l.at AND l.until",
    "l {} JOIN r ON l.at < r.at",
    "l {} JOIN r ON l.k = r.k AND l.until > r.at",
    "l {} JOIN r ON r.at BETWEEN l.at AND l.at + INTERVAL '2 minutes'",
    "l {} JOIN r ON r.at > l.at - INTERVAL '1 minute' AND r.at < l.at + INTERVAL '1 minute' AND l.t <> r.t",
    "l {} JOIN r ON l.k = r.k AND r.at >= l.at + INTERVAL '1 month' AND r.t <= l.t",
    "l {} JOIN r ON l.k = r.k AND r.at + INTERVAL '1 month' >= l.until AND r.at <= l.at",
    "l {} JOIN r ON r.k >= l.n AND r.k <= l.n + 1 AND r.k <= l.k + 2",
    "l {} JOIN r ON l.k = r.k AND l.k <= r.n AND r.n <= l.n",
    "l {} JOIN r ON l.n <= r.n AND r.n <= l.n",
    "l {} JOIN r ON l.t >= r.t AND l.t <= r.t || 'q' AND (l.k = 1 OR r.k > 1)",
    "l {} JOIN l r ON r.at > l.at AND r.at <= l.until",
    "l {} JOIN l r ON r.k = l.k AND r.n < l.n",
    "u {} JOIN r ON u.id = r.k AND r.at <= u.at",
    "u {} JOIN r ON r.at <= u.at AND r.at >= u.at - INTERVAL '1 minute'",
    "r {} JOIN u ON u.id BETWEEN r.n AND r.k",
    "u {} JOIN u v ON u.id = v.id AND u.at >= v.at",
    "(SELECT at FROM l) p {} JOIN (SELECT at FROM r) q ON p.at <= q.at",
    "(SELECT max(n) AS n FROM l) p {} JOIN r ON r.n >= p.n",
];

const TYPES: &[&str] = &["INNER", "LEFT", "RIGHT", "FULL", "LEFT SEMI", "RIGHT SEMI", "LEFT ANTI", "RIGHT ANTI"];

/// Other queries that become such joins.
const QUERIES: &[&str] = &[
    "SELECT id, n FROM u JOIN r ON r.k = u.id WHERE r.at BETWEEN u.at AND u.at + INTERVAL '2 minutes'",
    "SELECT k, n FROM l WHERE EXISTS (SELECT 1 FROM r WHERE r.at BETWEEN l.at AND l.until)",
    "SELECT k, n FROM l WHERE NOT EXISTS (SELECT 1 FROM r WHERE r.k = l.k AND r.at < l.at)",
    "SELECT k, n FROM l WHERE n = 1 OR EXISTS (SELECT 1 FROM r WHERE r.at < l.at)",
    "SELECT l.k, count(r.n) AS earlier FROM l LEFT JOIN r ON r.n = l.n AND r.at < l.until GROUP BY l.k",
    "SELECT l.k, r.n FROM l, r WHERE r.n > l.n AND r.at BETWEEN l.at AND l.until AND l.k = r.k",
    "SELECT l.k, m.n, r.n FROM l JOIN r ON r.at <= l.at JOIN r m ON m.at > l.at AND m.k = r.k",
];

fn tables() -> Vec<Table> {
    let row = "k int8, n int4, at timestamp, until timestamp, t text";
    vec![table("l", row), table("r", row), table("u", "id int8 not null, at timestamp").key(&[0])]
}

/// Applies random changes, calls back after each epoch, and gives all changes.
fn change_at_random(harness: &mut Harness, mut after: impl FnMut(&Harness)) -> Vec<(&'static str, Delta)> {
    let mut all = Vec::new();
    let time = |minute: i32| if minute == 0 { "NULL".into() } else { format!("2026-01-31 00:0{minute}:00") };
    for epoch in 0..6 {
        let mut changes = Vec::new();
        for name in ["l", "r"] {
            let change = harness.random_change(name, 6, &mut |random| {
                let k = ["0", "1", "2", "NULL"][random.random_range(0..4)];
                let n = ["0", "1", "2", "3", "NULL"][random.random_range(0..5)];
                let text = ["p", "q", "pq", "", "NULL"][random.random_range(0..5)];
                let (at, until) = (time(random.random_range(0..6)), time(random.random_range(0..8)));
                format!("{k} | {n} | {at} | {until} | {text}")
            });
            changes.push((name, change));
        }
        let change = harness.random_change("u", 2, &mut |random| {
            format!("{} | {}", random.random_range(0..4), time(random.random_range(0..6)))
        });
        changes.push(("u", change));
        all.extend(changes.clone());
        harness.apply(changes);
        after(harness);
        if epoch == 3 {
            harness.restart();
        }
    }
    all
}

fn setting(seed: u64) -> Setting {
    let cache_bytes = if seed.is_multiple_of(2) { 0 } else { 1 << 24 };
    Setting { workers: 1 + (seed as usize % 3), cache_bytes, seed }
}

fn finds_by_range(harness: &Harness) -> bool {
    harness.details().iter().any(|detail| detail.contains("; ranges: "))
}

#[test]
fn joins_by_range_equal_the_query() {
    for (position, join) in JOINS.iter().enumerate() {
        for join_type in TYPES {
            for seed in 0..6 {
                let query = format!("SELECT * FROM {}", join.replace("{}", join_type));
                let mut harness = Harness::with(tables(), &query, setting(seed * 100 + position as u64));
                assert!(finds_by_range(&harness) || join.starts_with("u {} JOIN u"), "{query}");
                change_at_random(&mut harness, Harness::check);
            }
        }
    }
}

#[test]
fn queries_that_join_by_range_equal_the_query() {
    for (position, query) in QUERIES.iter().enumerate() {
        for seed in 0..6 {
            let mut harness = Harness::with(tables(), query, setting(seed * 100 + position as u64));
            assert!(finds_by_range(&harness), "{query}");
            assert!(!harness.operators().contains(&"recompute"), "{query}");
            change_at_random(&mut harness, Harness::check);
        }
    }
}

/// Conditions that fail for some rows: in bounds, in orders, beside them, before and after, guarded and not.
const FAILING: &[&str] = &[
    "r.n >= 6 / l.n",
    "6 / r.n >= 6 / l.n",
    "6 / r.n >= l.n AND r.at <= l.until",
    "l.n <> 0 AND r.k >= 6 / l.n",
    "l.k = r.k AND r.n BETWEEN l.k AND 6 / l.n",
    "r.at BETWEEN l.at AND l.until AND 6 / (l.n - r.n) < 4",
    "6 / (l.n - r.n) < 4 AND r.at BETWEEN l.at AND l.until",
    "6 / (l.n - r.n) < 4 AND 6 / r.n <= l.k AND r.at < l.until",
    "l.k <= 6 / r.n AND 6 / l.n <= r.k AND l.at <= r.at",
];

#[test]
fn a_failing_bound_rules_nothing_out() {
    let mut failed = 0;
    for (position, condition) in FAILING.iter().enumerate() {
        for join_type in TYPES {
            for seed in 0..6 {
                let query = format!("SELECT * FROM l {join_type} JOIN r ON {condition}");
                let setting = setting(seed * 100 + position as u64);
                let mut harness = Harness::with(tables(), &query, setting);
                assert!(finds_by_range(&harness), "{query}");
                let changes = change_at_random(&mut harness, |_| {});
                let mut at_once = Harness::with(tables(), &query, setting);
                at_once.apply(changes.clone());
                assert_eq!(harness.output(), at_once.output(), "{query}");
                assert_eq!(harness.errors(), at_once.errors(), "{query}");
                failed += usize::from(!harness.errors().is_empty());
                let back = changes.into_iter().map(|(name, delta)| (name, delta.negate())).collect();
                harness.apply(back);
                assert_eq!((harness.output(), harness.errors()), (String::new(), String::new()), "{query}");
            }
        }
    }
    assert!(failed > 100, "{failed}");
}

#[test]
fn what_fails_is_met_by_all_rows_but_those_with_null() {
    let tables = vec![table("a", "x int4, y int4"), table("b", "z int4")];
    let query = "SELECT a.x, b.z FROM a LEFT JOIN b ON b.z >= a.x / a.y AND b.z <= a.x";
    let mut harness = Harness::new(tables, query);
    harness.epoch(&[("b", "+1 | 1\n+1 | 9\n+1 | NULL")]);
    assert_eq!(
        harness.epoch(&[("a", "+1 | 5 | 0\n+1 | 5 | 5\n+1 | NULL | 1")]),
        "+1 | 5 | 1\n+1 | 5 | NULL\n+1 | NULL | NULL"
    );
    let error = "+1 | join | division by zero | (5,0,1)";
    assert_eq!(harness.errors(), error);
    harness.restart();
    harness.epoch(&[("b", "-1 | 1\n+2 | 2\n+1 | NULL")]);
    assert_eq!(harness.errors(), "+2 | join | division by zero | (5,0,2)");
    harness.epoch(&[("b", "-2 | 2")]);
    assert_eq!(harness.errors(), "");
}

#[test]
fn a_range_is_named() {
    let ranges = |condition: &str| {
        let query = format!("SELECT l.k FROM l JOIN r ON {condition}");
        let details = Harness::new(tables(), &query).details();
        let ranges = details.iter().find_map(|detail| detail.split_once("; ranges: "));
        ranges.map(|(_, ranges)| ranges.to_string()).unwrap_or_default()
    };
    assert_eq!(ranges("r.at BETWEEN l.at AND l.until"), "l.until >= r.at; r.at >= l.at AND r.at <= l.until");
    assert_eq!(ranges("l.n <> r.n"), "");
    assert_eq!(ranges("l.n - r.n < 5"), "");
    let moved = ranges("r.at BETWEEN l.at AND l.at + INTERVAL '1 minute'");
    assert!(moved.starts_with("l.at <= r.at AND l.at >= r.at - Interval"), "{moved}");
}
