//! Tests of joins over deltas: by hand, and against DataFusion over random changes.

use rand::Rng;

use crate::operators::harness::{Harness, Setting, Table, table};

fn orders() -> Table {
    table("orders", "id int8, customer int8, amount int4")
}

fn customers() -> Table {
    table("customers", "id int8, name text")
}

#[test]
fn pairs_come_and_go_with_either_row() {
    let query = "SELECT o.id, c.name FROM orders o JOIN customers c ON o.customer = c.id";
    let mut harness = Harness::new(vec![orders(), customers()], query);
    assert!(!harness.operators().contains(&"recompute"));
    assert_eq!(harness.epoch(&[("orders", "+1 | 1 | 7 | 10\n+1 | 2 | NULL | 20")]), "");
    assert_eq!(harness.epoch(&[("customers", "+1 | 7 | ann\n+1 | NULL | nobody")]), "+1 | 1 | ann");
    harness.restart();
    assert_eq!(harness.epoch(&[("orders", "+2 | 3 | 7 | 5")]), "+2 | 3 | ann");
    assert_eq!(
        harness.epoch(&[("customers", "-1 | 7 | ann\n+1 | 7 | bob")]),
        "-1 | 1 | ann\n+1 | 1 | bob\n-2 | 3 | ann\n+2 | 3 | bob"
    );
    assert_eq!(harness.epoch(&[("orders", "-1 | 1 | 7 | 10")]), "-1 | 1 | bob");
    harness.check();
}

#[test]
fn keys_of_the_inputs_give_keys_of_the_output() {
    let query = "SELECT o.id, o.customer, c.name FROM orders o JOIN customers c ON o.customer = c.id";
    let harness = Harness::new(vec![orders().key(&[0]).append_only(), customers().key(&[0])], query);
    assert_eq!(harness.properties().keys, vec![vec![0]]);
    assert!(!harness.properties().append_only);
}

#[test]
fn a_failing_condition_leaves_the_pair_out() {
    let query = "SELECT o.id FROM orders o JOIN customers c \
                 ON o.customer = c.id AND o.amount / (character_length(c.name) - 3) < 0";
    let mut harness = Harness::new(vec![orders(), customers()], query);
    harness.epoch(&[("orders", "+1 | 1 | 7 | 10"), ("customers", "+1 | 7 | ann\n+1 | 7 | bo")]);
    assert_eq!(harness.output(), "+1 | 1");
    assert!(harness.errors().starts_with("+1 | join | division by zero | (1,"), "{}", harness.errors());
    harness.epoch(&[("customers", "-1 | 7 | ann")]);
    assert_eq!(harness.errors(), "");
    harness.check();
}

#[test]
fn padding_stands_in_for_a_partner() {
    let query = "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.id";
    let mut harness = Harness::new(vec![orders(), customers()], query);
    assert!(!harness.operators().contains(&"recompute"));
    assert_eq!(harness.epoch(&[("orders", "+2 | 1 | 7 | 10\n+1 | 2 | NULL | 20")]), "+2 | 1 | NULL\n+1 | 2 | NULL");
    assert_eq!(harness.epoch(&[("customers", "+1 | 7 | ann\n+1 | NULL | nobody")]), "-2 | 1 | NULL\n+2 | 1 | ann");
    harness.restart();
    // A partner that is replaced by another one does not show its absence.
    assert_eq!(harness.epoch(&[("customers", "-1 | 7 | ann\n+1 | 7 | bob")]), "-2 | 1 | ann\n+2 | 1 | bob");
    assert_eq!(harness.epoch(&[("customers", "+1 | 7 | cat")]), "+2 | 1 | cat");
    assert_eq!(
        harness.epoch(&[("customers", "-1 | 7 | bob\n-1 | 7 | cat"), ("orders", "-1 | 1 | 7 | 10\n+1 | 3 | 7 | 5")]),
        "+1 | 1 | NULL\n-2 | 1 | bob\n-2 | 1 | cat\n+1 | 3 | NULL"
    );
    harness.check();
}

#[test]
fn matches_are_counted_where_there_is_a_condition() {
    let query = "SELECT o.id, c.name FROM orders o FULL JOIN customers c \
                 ON o.customer = c.id AND o.amount > character_length(c.name)";
    let mut harness = Harness::new(vec![orders(), customers()], query);
    harness.epoch(&[("orders", "+1 | 1 | 7 | 3"), ("customers", "+2 | 7 | al\n+1 | 7 | anna")]);
    assert_eq!(harness.output(), "+2 | 1 | al\n+1 | NULL | anna");
    harness.restart();
    assert_eq!(harness.epoch(&[("customers", "-1 | 7 | al")]), "-1 | 1 | al");
    assert_eq!(harness.epoch(&[("customers", "-1 | 7 | al")]), "+1 | 1 | NULL\n-1 | 1 | al");
    assert_eq!(harness.epoch(&[("orders", "+1 | 2 | 7 | 9")]), "+1 | 2 | anna\n-1 | NULL | anna");
    harness.check();
}

#[test]
fn a_row_is_shown_once_whatever_it_matches() {
    let query = "SELECT o.id FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE c.id = o.customer)";
    let mut harness = Harness::new(vec![orders(), customers()], query);
    assert_eq!(
        harness.epoch(&[("orders", "+1 | 1 | 7 | 3\n+1 | 2 | NULL | 3"), ("customers", "+2 | 7 | a")]),
        "+1 | 1"
    );
    assert_eq!(harness.epoch(&[("customers", "+1 | 7 | b\n-1 | 7 | a\n+1 | NULL | c")]), "");
    harness.restart();
    assert_eq!(harness.epoch(&[("customers", "-1 | 7 | b\n-1 | 7 | a")]), "-1 | 1");
    harness.check();
}

#[test]
fn null_among_the_values_answers_not_in() {
    let query = "SELECT o.id FROM orders o WHERE o.customer NOT IN (SELECT c.id FROM customers c)";
    let mut harness = Harness::new(vec![orders(), customers()], query);
    assert!(!harness.operators().contains(&"recompute"));
    let (seven, eight, unknown) = ("+1 | 1 | 7 | 0", "+1 | 2 | 8 | 0", "+1 | 3 | NULL | 0");
    assert_eq!(harness.epoch(&[("orders", &[seven, eight, unknown].join("\n"))]), "+1 | 1\n+1 | 2\n+1 | 3");
    assert_eq!(harness.epoch(&[("customers", "+1 | 7 | a")]), "-1 | 1\n-1 | 3");
    assert_eq!(harness.epoch(&[("customers", "+1 | NULL | b")]), "-1 | 2");
    harness.restart();
    assert_eq!(harness.epoch(&[("customers", "-1 | 7 | a")]), "");
    assert_eq!(harness.epoch(&[("customers", "-1 | NULL | b")]), "+1 | 1\n+1 | 2\n+1 | 3");
    harness.check();
}

#[test]
fn a_failing_condition_is_no_match() {
    let query = "SELECT o.id, c.name FROM orders o LEFT JOIN customers c \
                 ON o.customer = c.id AND o.amount / (character_length(c.name) - 3) < 0";
    let mut harness = Harness::new(vec![orders(), customers()], query);
    harness.epoch(&[("orders", "+1 | 1 | 7 | 10"), ("customers", "+1 | 7 | ann\n+1 | 7 | joanne")]);
    assert_eq!(harness.output(), "+1 | 1 | NULL");
    assert!(harness.errors().starts_with("+1 | join | division by zero | (1,"), "{}", harness.errors());
    harness.restart();
    assert_eq!(harness.epoch(&[("customers", "+1 | 7 | bo")]), "-1 | 1 | NULL\n+1 | 1 | bo");
    harness.epoch(&[("customers", "-1 | 7 | ann")]);
    assert_eq!(harness.errors(), "");
    harness.check();
}

#[test]
fn what_is_known_of_the_output() {
    let known = |join: &str| {
        let query = format!("SELECT o.id, c.id, c.name FROM orders o {join} JOIN customers c ON o.customer = c.id");
        let harness = Harness::new(vec![orders().key(&[0]).append_only(), customers().key(&[0]).append_only()], &query);
        (harness.properties().keys.clone(), harness.properties().append_only)
    };
    assert_eq!(known("INNER"), (vec![vec![0]], true));
    assert_eq!(known("LEFT"), (vec![vec![0]], false));
    assert_eq!(known("RIGHT"), (vec![vec![0, 1]], false));
    // Columns of a test's table may be NULL, and then two rows without partner may look the same.
    assert_eq!(known("FULL"), (vec![], false));
    let known = |predicate: &str| {
        let query =
            format!("SELECT id FROM orders o WHERE {predicate} (SELECT 1 FROM customers c WHERE c.id = o.customer)");
        let harness = Harness::new(vec![orders().key(&[0]).append_only(), customers().append_only()], &query);
        (harness.properties().keys.clone(), harness.properties().append_only)
    };
    assert_eq!(known("EXISTS"), (vec![vec![0]], true));
    assert_eq!(known("NOT EXISTS"), (vec![vec![0]], false));
}

/// Inner joins that between them use every path: both layouts of state, computed and cast keys, several keys, no keys,
/// equal NULLs, conditions, a relation joined with itself.
const INNER: &[&str] = &[
    "SELECT a.x, b.z FROM a JOIN b ON a.x = b.x",
    "SELECT a.x, a.y, b.y, b.z FROM a JOIN b ON a.x = b.x AND a.y = b.y",
    "SELECT * FROM a JOIN b ON a.x = b.x WHERE a.z > b.z",
    "SELECT a.z, b.z FROM a JOIN b ON a.x + 1 = b.x",
    "SELECT a.x, b.x FROM a JOIN b ON a.x = b.z",
    "SELECT p.x, q.x FROM a p JOIN a q ON p.z = q.z AND p.x < q.x",
    "SELECT a.x, b.x FROM a CROSS JOIN b WHERE a.x + b.x = 3 OR a.y = b.y",
    "SELECT a.f, b.f FROM a JOIN b ON a.f = b.f",
    "SELECT a.x, b.x FROM a JOIN b ON a.x IS NOT DISTINCT FROM b.x",
    "SELECT a.x, k.name, b.z FROM a JOIN k ON a.x = k.id JOIN b ON b.x = k.id",
    "SELECT k.id, n.name FROM k JOIN n ON k.id = n.id",
    "SELECT p.id, q.id FROM k p JOIN k q ON p.id = q.id AND p.name >= q.name",
    "SELECT n.id, a.y FROM n JOIN a ON n.id = a.z",
];

/// Joins that are tried in every type, as `FROM ...`: with and without keys and conditions, with either layout of state
/// on either side, with rows that look like padding.
const TYPED: &[&str] = &[
    "a {} JOIN b ON a.x = b.x",
    "a {} JOIN b ON a.x = b.x AND a.z > b.z",
    "a {} JOIN b ON a.x = b.x AND a.y = b.y AND (a.z < 2 OR b.z < a.z)",
    "a {} JOIN b ON a.x + 1 = b.z",
    "a {} JOIN b ON a.z < b.z",
    "a {} JOIN b ON true",
    "a {} JOIN b ON a.x IS NOT DISTINCT FROM b.x",
    "a {} JOIN a b ON a.z = b.x AND a.x <= b.z",
    "a {} JOIN a b ON a.x = b.x",
    "k {} JOIN a ON k.id = a.x",
    "a {} JOIN k ON k.id = a.z AND (a.y IS NULL OR a.y < k.name)",
    "k {} JOIN n ON k.id = n.id",
    "k {} JOIN n ON k.id = n.id AND k.name = n.name",
    "k {} JOIN n ON k.name > n.name",
    "(SELECT x FROM a) p {} JOIN (SELECT x FROM b) q ON p.x = q.x",
    "(SELECT x FROM a) p {} JOIN (SELECT x FROM b) q ON p.x = q.x OR q.x IS NULL",
    "(SELECT x FROM a) p {} JOIN (SELECT x FROM b) q ON p.x IS NOT DISTINCT FROM q.x",
    "(SELECT x, count(*) AS n FROM a GROUP BY x) p {} JOIN (SELECT x, count(*) AS n FROM b GROUP BY x) q ON p.x = q.x",
];

const TYPES: &[&str] = &["LEFT", "RIGHT", "FULL", "LEFT SEMI", "RIGHT SEMI", "LEFT ANTI", "RIGHT ANTI"];

/// Queries that become such joins.
const SUBQUERIES: &[&str] = &[
    "SELECT x, z FROM a WHERE x IN (SELECT x FROM b)",
    "SELECT x, z FROM a WHERE x NOT IN (SELECT x FROM b)",
    "SELECT x, z FROM a WHERE x NOT IN (SELECT x FROM b WHERE z < 2)",
    "SELECT x, z FROM a WHERE z NOT IN (SELECT id FROM k)",
    "SELECT x, z FROM a WHERE x NOT IN (SELECT id FROM k WHERE name = 'name0')",
    "SELECT id FROM k WHERE id NOT IN (SELECT x FROM a WHERE z = 3)",
    "SELECT x, z FROM a WHERE EXISTS (SELECT 1 FROM b)",
    "SELECT x, z FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.x = a.x AND b.z < a.z)",
    "SELECT x, z FROM a WHERE z = 1 OR EXISTS (SELECT 1 FROM b WHERE b.x = a.x)",
    "SELECT x, z FROM a WHERE z = 1 OR x IN (SELECT b.x FROM b WHERE b.z > a.z)",
    "SELECT x, y FROM a INTERSECT SELECT x, y FROM b",
    "SELECT x, y FROM a EXCEPT SELECT x, y FROM b",
    "SELECT x, (SELECT max(b.z) FROM b WHERE b.x = a.x) AS greatest FROM a",
    "SELECT count(*) FROM a LEFT JOIN b ON true",
];

/// Runs a query over random changes, and compares it with the batch result after every epoch.
fn compare_over_random_changes(query: &str, seed: u64) {
    let cache_bytes = if seed.is_multiple_of(2) { 0 } else { 1 << 24 };
    let setting = Setting { workers: 1 + (seed as usize % 3), cache_bytes, seed };
    let ab = "x int8, y text, z int4, f float8";
    let tables = vec![
        table("a", ab),
        table("b", ab),
        table("k", "id int8 not null, name text").key(&[0]),
        table("n", "id int8 not null, name text").key(&[0]).append_only(),
    ];
    let mut harness = Harness::with(tables, query, setting);
    assert!(!harness.operators().contains(&"recompute"), "{query}");
    for epoch in 0..6 {
        let mut changes = Vec::new();
        for name in ["a", "b"] {
            let change = harness.random_change(name, 6, &mut |random| {
                let text = ["p", "q", "NULL"][random.random_range(0..3)];
                let float = ["0", "-0", "NaN", "1.5", "NULL"][random.random_range(0..5)];
                let x = ["0", "1", "2", "3", "NULL"][random.random_range(0..5)];
                format!("{x} | {text} | {} | {float}", random.random_range(0..4))
            });
            changes.push((name, change));
        }
        for name in ["k", "n"] {
            let change = harness.random_change(name, 2, &mut |random| {
                format!("{} | name{}", random.random_range(0..5), random.random_range(0..2))
            });
            changes.push((name, change));
        }
        harness.apply(changes);
        if !query.contains("a.f") {
            harness.check();
        }
        if epoch == 3 {
            harness.restart();
        }
    }
}

#[test]
fn inner_joins_equal_the_query() {
    for (position, query) in INNER.iter().enumerate() {
        for seed in 0..6 {
            compare_over_random_changes(query, seed * 100 + position as u64);
        }
    }
}

#[test]
fn joins_of_every_type_equal_the_query() {
    for (position, join) in TYPED.iter().enumerate() {
        for join_type in TYPES {
            for seed in 0..6 {
                let query = format!("SELECT * FROM {}", join.replace("{}", join_type));
                compare_over_random_changes(&query, seed * 100 + position as u64);
            }
        }
    }
}

#[test]
fn subqueries_equal_the_query() {
    for (position, query) in SUBQUERIES.iter().enumerate() {
        for seed in 0..6 {
            compare_over_random_changes(query, seed * 100 + position as u64);
        }
    }
}

#[test]
fn floats_that_sql_calls_equal_meet() {
    let tables = vec![table("a", "f float8"), table("b", "f float8")];
    let mut harness = Harness::new(tables, "SELECT a.f, b.f FROM a JOIN b ON a.f = b.f");
    harness.epoch(&[("a", "+1 | 0\n+1 | NaN"), ("b", "+1 | -0\n+1 | NaN\n+1 | NULL")]);
    assert_eq!(harness.output(), "+1 | 0 | -0\n+1 | NaN | NaN");
}
