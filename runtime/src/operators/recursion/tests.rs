//! Recursive queries over changing inputs.

use rand::Rng;

use crate::operators::harness::{Harness, Setting, table};

const REACH: &str = "WITH RECURSIVE r AS (SELECT a, b FROM e UNION SELECT r.a, e.b FROM r JOIN e ON r.b = e.a) \
                     SELECT a, b FROM r";

fn graph(query: &str) -> Harness {
    Harness::new(vec![table("e", "a int8, b int8"), table("s", "n int8")], query)
}

#[test]
fn paths_come_and_go() {
    let mut harness = graph(REACH);
    assert!(harness.operators().contains(&"recursion"), "{:?}", harness.operators());
    assert_eq!(harness.epoch(&[("e", "+1 | 1 | 2\n+1 | 2 | 3")]), "+1 | 1 | 2\n+1 | 1 | 3\n+1 | 2 | 3");
    assert_eq!(harness.epoch(&[("e", "+1 | 1 | 3")]), "");
    assert_eq!(harness.epoch(&[("e", "-1 | 2 | 3")]), "-1 | 2 | 3");
    harness.restart();
    assert_eq!(harness.epoch(&[("e", "-1 | 1 | 3\n+1 | 2 | 4")]), "-1 | 1 | 3\n+1 | 1 | 4\n+1 | 2 | 4");
    harness.check();
}

#[test]
fn what_stands_only_on_a_cycle_goes() {
    let query = "WITH RECURSIVE r AS (SELECT n FROM s UNION SELECT e.b FROM r JOIN e ON r.n = e.a) SELECT n FROM r";
    let mut harness = graph(query);
    harness.epoch(&[("s", "+1 | 1"), ("e", "+1 | 1 | 2\n+1 | 2 | 3\n+1 | 3 | 2\n+1 | 3 | 4")]);
    assert_eq!(harness.epoch(&[("e", "-1 | 1 | 2")]), "-1 | 2\n-1 | 3\n-1 | 4");
    assert_eq!(harness.epoch(&[("s", "+1 | 3")]), "+1 | 2\n+1 | 3\n+1 | 4");
    // One edge is exchanged for another: 2 is still reached from 3 only, and 3 from nowhere else.
    assert_eq!(harness.epoch(&[("s", "-1 | 3"), ("e", "+1 | 4 | 3")]), "-1 | 2\n-1 | 3\n-1 | 4");
    harness.check();
}

#[test]
fn an_exchanged_edge_does_not_hold_up_a_cycle() {
    let query = "WITH RECURSIVE r AS (SELECT n FROM s UNION SELECT e.b FROM r JOIN e ON r.n = e.a) SELECT n FROM r";
    let mut harness = graph(query);
    harness.epoch(&[("s", "+1 | 1"), ("e", "+1 | 1 | 2\n+1 | 2 | 3")]);
    // 2 loses the derivation from 1 and gets one from 3, which stands on 2 itself.
    assert_eq!(harness.epoch(&[("e", "-1 | 1 | 2\n+1 | 3 | 2")]), "-1 | 2\n-1 | 3");
    harness.check();
}

#[test]
fn union_all_counts_paths() {
    let query = "WITH RECURSIVE r AS (SELECT n, 0 AS depth FROM s UNION ALL \
                 SELECT e.b, depth + 1 FROM r JOIN e ON r.n = e.a) SELECT n, depth FROM r";
    let mut harness = graph(query);
    harness.epoch(&[("s", "+1 | 1"), ("e", "+1 | 1 | 2\n+1 | 1 | 3\n+1 | 2 | 4\n+1 | 3 | 4")]);
    harness.check();
    assert_eq!(harness.epoch(&[("s", "+1 | 1")]), "+1 | 1 | 0\n+1 | 2 | 1\n+1 | 3 | 1\n+2 | 4 | 2");
    assert_eq!(harness.epoch(&[("e", "-1 | 1 | 2\n+1 | 4 | 5")]), "-2 | 2 | 1\n-2 | 4 | 2\n+2 | 5 | 3");
    harness.restart();
    harness.epoch(&[("s", "-2 | 1")]);
    harness.check();
}

#[test]
fn an_anti_join_in_the_recursive_term() {
    let query = "WITH RECURSIVE r AS (SELECT a FROM e WHERE a < 3 UNION SELECT e.b FROM r JOIN e ON r.a = e.a \
                 WHERE NOT EXISTS (SELECT 1 FROM s WHERE s.n = e.b)) SELECT a FROM r";
    let mut harness = graph(query);
    assert!(harness.operators().contains(&"recursion"), "{:?}", harness.operators());
    harness.epoch(&[("s", "+1 | 5"), ("e", "+1 | 1 | 4\n+1 | 4 | 5\n+1 | 5 | 6\n+1 | 6 | 5")]);
    harness.check();
    assert_eq!(harness.epoch(&[("s", "-1 | 5")]), "+1 | 5\n+1 | 6");
    assert_eq!(harness.epoch(&[("s", "+1 | 4\n+1 | 7")]), "-1 | 4\n-1 | 5\n-1 | 6");
    harness.check();
}

#[test]
fn a_recursion_without_end_is_cut_off_and_comes_back() {
    let query = "WITH RECURSIVE r AS (SELECT n FROM s UNION ALL SELECT e.b FROM r JOIN e ON r.n = e.a) SELECT n FROM r";
    let mut harness = graph(query);
    harness.epoch(&[("s", "+1 | 1"), ("e", "+1 | 1 | 2\n+1 | 7 | 8")]);
    assert_eq!(harness.epoch(&[("e", "+1 | 2 | 1")]), "-1 | 1\n-1 | 2");
    assert!(harness.errors().contains("the recursion does not end"), "{}", harness.errors());
    harness.restart();
    assert_eq!(harness.epoch(&[("s", "+1 | 7")]), "");
    assert_eq!(harness.epoch(&[("e", "-1 | 2 | 1")]), "+1 | 1\n+1 | 2\n+1 | 7\n+1 | 8");
    assert_eq!(harness.errors(), "");
    harness.check();
}

#[test]
fn random_graphs() {
    let queries = [
        REACH,
        "WITH RECURSIVE r AS (SELECT n FROM s UNION SELECT e.b FROM r JOIN e ON r.n = e.a) SELECT n FROM r",
        "WITH RECURSIVE r AS (SELECT n FROM s UNION SELECT e.a FROM e LEFT JOIN s ON e.a = s.n JOIN r ON r.n = e.b \
         WHERE s.n IS NULL) SELECT n, count(*) AS c FROM r GROUP BY n",
    ];
    for query in queries {
        for seed in 0..12 {
            let setting = Setting { seed, workers: 1 + seed as usize % 3, cache_bytes: (seed as usize % 2) << 20 };
            let tables = vec![table("e", "a int8, b int8"), table("s", "n int8")];
            let mut harness = Harness::with(tables, query, setting);
            for round in 0..12 {
                let edges = harness.random_change("e", 4, &mut |random| {
                    format!("{} | {}", random.random_range(0..6), random.random_range(0..6))
                });
                let starts = harness.random_change("s", 1, &mut |random| random.random_range(0..6).to_string());
                harness.apply(vec![("e", edges), ("s", starts)]);
                harness.check();
                if round % 5 == 4 {
                    harness.restart();
                }
            }
        }
    }
}
