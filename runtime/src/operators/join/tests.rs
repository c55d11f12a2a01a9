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

/// Queries that between them use every path: both layouts of state, computed and cast keys, several keys, no keys,
/// equal NULLs, conditions, a relation joined with itself.
const QUERIES: &[&str] = &[
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

#[test]
fn equals_the_query_over_random_changes() {
    for (position, query) in QUERIES.iter().enumerate() {
        for seed in 0..6u64 {
            let setting = Setting {
                workers: 1 + (seed as usize % 3),
                cache_bytes: if seed % 2 == 0 { 0 } else { 1 << 24 },
                seed: seed * 100 + position as u64,
            };
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
    }
}

#[test]
fn floats_that_sql_calls_equal_meet() {
    let tables = vec![table("a", "f float8"), table("b", "f float8")];
    let mut harness = Harness::new(tables, "SELECT a.f, b.f FROM a JOIN b ON a.f = b.f");
    harness.epoch(&[("a", "+1 | 0\n+1 | NaN"), ("b", "+1 | -0\n+1 | NaN\n+1 | NULL")]);
    assert_eq!(harness.output(), "+1 | 0 | -0\n+1 | NaN | NaN");
}
