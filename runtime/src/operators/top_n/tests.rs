//! Tests of Top-N over deltas: by hand, and against DataFusion over random changes.

use rand::Rng;

use crate::operators::harness::{Harness, Setting, Table, table};

fn scores() -> Table {
    table("t", "id int8, g int4, v int4")
}

#[test]
fn a_limit_lets_the_next_row_in() {
    let query = "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 2";
    let mut harness = Harness::new(vec![scores()], query);
    assert!(harness.operators().contains(&"top_n") && !harness.operators().contains(&"recompute"));
    assert_eq!(harness.epoch(&[("t", "+1 | 1 | 1 | 10\n+1 | 2 | 1 | NULL")]), "+1 | 1 | 10\n+1 | 2 | NULL");
    assert_eq!(harness.epoch(&[("t", "+1 | 3 | 1 | 30\n+1 | 4 | 1 | 5")]), "-1 | 1 | 10\n+1 | 3 | 30");
    harness.restart();
    assert_eq!(harness.epoch(&[("t", "-1 | 3 | 1 | 30")]), "+1 | 1 | 10\n-1 | 3 | 30");
    // What does not come among the first changes nothing.
    assert_eq!(harness.epoch(&[("t", "-1 | 4 | 1 | 5\n+1 | 5 | 1 | 7")]), "");
    assert_eq!(harness.epoch(&[("t", "-1 | 1 | 1 | 10\n-1 | 2 | 1 | NULL")]), "-1 | 1 | 10\n-1 | 2 | NULL\n+1 | 5 | 7");
    harness.check();
}

#[test]
fn copies_of_a_row_have_places_of_their_own() {
    let query = "SELECT v FROM t ORDER BY v LIMIT 3 OFFSET 1";
    let mut harness = Harness::new(vec![scores()], query);
    assert_eq!(harness.epoch(&[("t", "+5 | 1 | 1 | 10")]), "+3 | 10");
    assert_eq!(harness.epoch(&[("t", "+2 | 1 | 1 | 9")]), "-1 | 10\n+1 | 9");
    harness.restart();
    assert_eq!(harness.epoch(&[("t", "-4 | 1 | 1 | 10")]), "-1 | 10");
    harness.check();
}

#[test]
fn an_offset_alone_is_all_but_the_first() {
    let query = "SELECT id FROM t ORDER BY v, id OFFSET 2";
    let mut harness = Harness::new(vec![scores()], query);
    assert!(!harness.operators().contains(&"recompute"));
    assert_eq!(harness.epoch(&[("t", "+1 | 1 | 1 | 10\n+1 | 2 | 1 | 20\n+1 | 3 | 1 | 30")]), "+1 | 3");
    assert_eq!(harness.epoch(&[("t", "+1 | 4 | 1 | 0")]), "+1 | 2");
    assert_eq!(harness.epoch(&[("t", "-1 | 1 | 1 | 10\n-1 | 3 | 1 | 30")]), "-1 | 2\n-1 | 3");
    harness.check();
}

#[test]
fn numbers_that_are_shown_move_up() {
    let query = "SELECT id, g, n FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY v DESC, id) AS n FROM t) \
                 WHERE n <= 2";
    let mut harness = Harness::new(vec![scores()], query);
    assert_eq!(harness.operators().iter().filter(|name| **name == "top_n").count(), 1);
    assert!(!harness.operators().contains(&"recompute") && !harness.operators().contains(&"filter"));
    harness.epoch(&[("t", "+1 | 1 | 1 | 10\n+1 | 2 | 1 | 20\n+1 | 3 | 2 | 5\n+1 | 4 | 1 | 1")]);
    assert_eq!(harness.output(), "+1 | 1 | 1 | 2\n+1 | 2 | 1 | 1\n+1 | 3 | 2 | 1");
    harness.restart();
    assert_eq!(
        harness.epoch(&[("t", "-1 | 2 | 1 | 20")]),
        "+1 | 1 | 1 | 1\n-1 | 1 | 1 | 2\n-1 | 2 | 1 | 1\n+1 | 4 | 1 | 2"
    );
    harness.check();
}

#[test]
fn peers_share_a_rank() {
    let query = "SELECT id, r FROM (SELECT *, rank() OVER (ORDER BY v) AS r FROM t) WHERE r <= 2";
    let mut harness = Harness::new(vec![scores()], query);
    assert!(harness.operators().contains(&"top_n") && !harness.operators().contains(&"recompute"));
    assert_eq!(
        harness.epoch(&[("t", "+1 | 1 | 1 | 10\n+1 | 2 | 1 | 20\n+1 | 3 | 1 | 20")]),
        "+1 | 1 | 1\n+1 | 2 | 2\n+1 | 3 | 2"
    );
    // One more of those that are first anyway: the second ones are third now.
    assert_eq!(harness.epoch(&[("t", "+1 | 4 | 1 | 10")]), "-1 | 2 | 2\n-1 | 3 | 2\n+1 | 4 | 1");
    harness.restart();
    // A row in place of an equal one.
    assert_eq!(harness.epoch(&[("t", "-1 | 4 | 1 | 10\n+1 | 5 | 1 | 10")]), "-1 | 4 | 1\n+1 | 5 | 1");
    assert_eq!(
        harness.epoch(&[("t", "-1 | 5 | 1 | 10\n-1 | 1 | 1 | 10")]),
        "-1 | 1 | 1\n+1 | 2 | 1\n+1 | 3 | 1\n-1 | 5 | 1"
    );
    harness.check();
}

#[test]
fn one_row_a_partition_has_the_partition_as_key() {
    let query =
        "SELECT g, id FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY v, id) AS n FROM t) WHERE n = 1";
    let harness = Harness::new(vec![scores().key(&[0])], query);
    assert_eq!(harness.properties().keys, vec![vec![1], vec![0]]);
    let harness = Harness::new(vec![scores()], "SELECT id FROM t ORDER BY v, id, g LIMIT 1");
    assert_eq!(harness.properties().keys, vec![Vec::<usize>::new()]);
}

/// Orders are total, or the function does not depend on it, so that DataFusion has no choice.
const QUERIES: &[&str] = &[
    "SELECT * FROM t ORDER BY v DESC NULLS LAST, g, id LIMIT 3",
    "SELECT * FROM t ORDER BY g NULLS FIRST, v, id DESC LIMIT 4 OFFSET 2",
    "SELECT id + 1 AS i, v FROM t ORDER BY v, id, g LIMIT 5",
    "SELECT * FROM t ORDER BY v, g, id OFFSET 7",
    "SELECT id, v FROM t ORDER BY abs(v), v, id, g LIMIT 40",
    "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY v DESC, id) AS n FROM t) WHERE n < 4",
    "SELECT id FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY v DESC, id) AS n FROM t) WHERE n = 2",
    "SELECT id, n FROM (SELECT *, row_number() OVER (ORDER BY v, id, g) AS n FROM t) WHERE n BETWEEN 3 AND 6 AND g > 0",
    "SELECT id, n FROM (SELECT *, row_number() OVER (ORDER BY v, id, g) AS n FROM t) WHERE n IN (1, 4, 5) AND g > 0",
    "SELECT id, n FROM (SELECT *, row_number() OVER (PARTITION BY g ORDER BY v, id) AS n FROM t) WHERE n = 3 OR n < 2",
    "SELECT id, r FROM (SELECT *, rank() OVER (PARTITION BY g ORDER BY v) AS r FROM t) WHERE r <= 3",
    "SELECT id FROM (SELECT *, rank() OVER (PARTITION BY g ORDER BY v DESC) AS r FROM t) WHERE r >= 2 AND r < 5",
    "SELECT id, r, d FROM (SELECT *, rank() OVER (ORDER BY v) AS r, dense_rank() OVER (ORDER BY v) AS d FROM t) WHERE d <= 2",
    "SELECT id, d FROM (SELECT *, dense_rank() OVER (PARTITION BY g % 2 ORDER BY v + 1) AS d FROM t) WHERE 3 >= d AND id > 2",
];

#[test]
fn random_changes() {
    for (number, query) in QUERIES.iter().enumerate() {
        for (cache_bytes, keyed) in [(1 << 24, false), (0, false), (1 << 24, true), (2000, true)] {
            let setting = Setting { workers: 1 + number % 3, cache_bytes, seed: number as u64 };
            let scores = if keyed { scores().key(&[0]) } else { scores() };
            let mut harness = Harness::with(vec![scores], query, setting);
            assert!(harness.operators().contains(&"top_n"), "{query}: {:?}", harness.operators());
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
                let change = harness.random_change("t", 6, &mut row);
                harness.apply(vec![("t", change)]);
                harness.check();
                if epoch % 7 == 6 {
                    harness.restart();
                }
            }
        }
    }
}
