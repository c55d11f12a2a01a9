//! Tests of the operators that are small, over deltas: the outcome of each is compared with DataFusion's.

use plan::{NodeKind, StateBound};
use rand::Rng;

use super::harness::{Harness, Setting, Table, table};

fn numbers() -> Table {
    table("t", "id int8, a int4, b int4, name text")
}

#[test]
fn a_filter_tries_its_parts_in_order() {
    let mut harness = Harness::new(vec![numbers()], "SELECT id FROM t WHERE b > 0 AND a / b > 1");
    harness.epoch(&[("t", "+1 | 1 | 10 | 2 | x\n+1 | 2 | 10 | 0 | x\n+1 | 3 | NULL | 1 | x\n+1 | 4 | 9 | NULL | x")]);
    assert_eq!(harness.output(), "+1 | 1");
    assert_eq!(harness.errors(), "");
    assert_eq!(harness.operators(), ["import", "project", "filter", "project"]);
}

#[test]
fn failing_rows_go_to_the_errors_until_they_are_retracted() {
    let mut harness = Harness::new(vec![numbers()], "SELECT id, 100 / a AS q, CAST(name AS int) AS n FROM t");
    harness.epoch(&[("t", "+1 | 1 | 5 | 0 | 7\n+1 | 2 | 0 | 0 | 8\n+2 | 3 | 1 | 0 | x\n+1 | 4 | NULL | 0 | NULL")]);
    assert_eq!(harness.output(), "+1 | 1 | 20 | 7\n+1 | 4 | NULL | NULL");
    let errors = harness.errors();
    assert!(errors.contains("+1 | project | division by zero | (2,0,8)"), "{errors}");
    assert!(errors.contains("+2 | project | ") && errors.contains("(3,1,x)"), "{errors}");
    harness.epoch(&[("t", "-1 | 2 | 0 | 0 | 8\n-2 | 3 | 1 | 0 | x\n+1 | 2 | 50 | 0 | 8")]);
    assert_eq!(harness.errors(), "");
    harness.check();
}

#[test]
fn a_projection_carries_keys_and_append_only() {
    let query = "SELECT name, id AS key, a + 1 AS next FROM t";
    let harness = Harness::new(vec![numbers().key(&[0]).append_only()], query);
    assert_eq!(harness.properties().keys, vec![vec![1]]);
    assert!(harness.properties().append_only);
    let harness = Harness::new(vec![numbers().key(&[0])], "SELECT name FROM t");
    assert!(harness.properties().keys.is_empty());
}

#[test]
fn columns_without_any_are_counted() {
    let mut harness = Harness::new(vec![numbers()], "SELECT 1 AS one FROM t");
    assert_eq!(harness.epoch(&[("t", "+3 | 1 | 5 | 0 | 7\n+1 | 2 | 0 | 0 | 8")]), "+4 | 1");
    harness.check();
}

#[test]
fn constants_are_there_once() {
    for workers in [1, 4] {
        let query = "SELECT id FROM t UNION ALL SELECT column1 FROM (VALUES (7), (8)) AS v UNION ALL SELECT 9";
        let setting = Setting { workers, cache_bytes: 0, seed: 3 };
        let mut harness = Harness::with(vec![numbers()], query, setting);
        assert_eq!(harness.epoch(&[]), "+1 | 7\n+1 | 8\n+1 | 9");
        assert_eq!(harness.epoch(&[("t", "+1 | 1 | 5 | 0 | 7")]), "+1 | 1");
        harness.restart();
        assert_eq!(harness.epoch(&[("t", "+1 | 2 | 5 | 0 | 7")]), "+1 | 2");
        harness.check();
    }
}

#[test]
fn distinct_rows_come_with_the_first_and_go_with_the_last() {
    let mut harness = Harness::new(vec![numbers()], "SELECT DISTINCT a, name FROM t");
    assert_eq!(harness.epoch(&[("t", "+1 | 1 | 5 | 0 | x\n+1 | 2 | 5 | 0 | x\n+1 | 3 | NULL | 0 | NULL")]), {
        "+1 | 5 | x\n+1 | NULL | NULL"
    });
    assert_eq!(harness.epoch(&[("t", "-1 | 1 | 5 | 0 | x")]), "");
    harness.restart();
    assert_eq!(harness.epoch(&[("t", "-1 | 2 | 5 | 0 | x\n+1 | 4 | 5 | 0 | x\n-1 | 4 | 5 | 0 | x")]), "-1 | 5 | x");
    harness.check();
}

#[test]
fn lists_become_rows() {
    let mut harness = Harness::new(vec![table("l", "id int8, tags text[]")], "SELECT id, unnest(tags) AS tag FROM l");
    assert!(harness.operators().contains(&"unnest"));
    harness.epoch(&[("l", "+1 | 1 | {a,b,a}\n+2 | 2 | {c,NULL}\n+1 | 3 | {}\n+1 | 4 | NULL")]);
    harness.check();
    assert_eq!(
        harness.epoch(&[("l", "-1 | 2 | {c,NULL}\n-1 | 1 | {a,b,a}")]),
        "-2 | 1 | a\n-1 | 1 | b\n-1 | 2 | NULL\n-1 | 2 | c"
    );
    harness.check();
}

/// Queries whose every operator here is incremental.
const QUERIES: &[&str] = &[
    "SELECT a, b, name FROM t WHERE a > 1 OR name IS NULL",
    "SELECT a + b AS s, upper(name) AS n, CASE WHEN a > b THEN 'more' ELSE name END AS c FROM t",
    "SELECT a, name FROM t UNION ALL SELECT id, n FROM u",
    "SELECT a, name FROM t UNION SELECT id, n FROM u",
    "SELECT DISTINCT a, b FROM t WHERE id > 2",
    "SELECT s.x FROM (SELECT a + 1 AS x, name FROM t ORDER BY name) AS s WHERE s.x > 1",
    "SELECT id, unnest(list) AS item FROM u",
    "SELECT id, unnest(list) AS item, unnest(other) AS another FROM u",
    "SELECT DISTINCT item FROM (SELECT unnest(list) AS item FROM u) AS i WHERE item IS NOT NULL",
    "SELECT t.a, i.item FROM t JOIN (SELECT id, unnest(list) AS item FROM u) AS i ON i.item = t.a AND t.b <> i.id",
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
            let tables = vec![numbers(), table("u", "id int4, n text, list int4[], other text[]")];
            let mut harness = Harness::with(tables, query, setting);
            for epoch in 0..6 {
                let t = harness.random_change("t", 8, &mut |random| {
                    let name = ["p", "q", "NULL"][random.random_range(0..3)];
                    let a = ["0", "1", "2", "3", "NULL"][random.random_range(0..5)];
                    format!("{} | {a} | {} | {name}", random.random_range(0..6), random.random_range(0..4))
                });
                let u = harness.random_change("u", 5, &mut |random| {
                    let list = ["{1,2,2}", "{}", "NULL", "{NULL,3}", "{0}"][random.random_range(0..5)];
                    let other = ["{a,b}", "NULL", "{}", "{c}"][random.random_range(0..4)];
                    format!("{} | n{} | {list} | {other}", random.random_range(0..3), random.random_range(0..2))
                });
                harness.apply(vec![("t", t), ("u", u)]);
                harness.check();
                if epoch == 3 {
                    harness.restart();
                }
            }
        }
    }
}

/// What the operators of a query keep, with what a changed row costs.
fn kept(query: &str) -> Vec<String> {
    let events = table("e", "id int8, a int4, flag bool, name text").append_only();
    let harness = Harness::new(vec![numbers(), events], query);
    let nodes = harness.nodes().iter().filter(|node| node.properties.state != StateBound::Stateless);
    nodes
        .filter_map(|node| match &node.kind {
            NodeKind::Import(_) => None,
            NodeKind::Operator(spec) => Some(format!("{} {}, {}", spec.name(), node.cost(), node.properties.state)),
        })
        .collect()
}

#[test]
fn operators_say_what_they_cost_and_what_bounds_their_state() {
    let group = "an entry a group";
    let all = "all rows of its input";
    let value = "an entry a different value";
    let pairs = "rows of both inputs";
    let bounded = "(bounded by its input)";
    let endless = "(without bound: e only grows)";
    let recursion =
        "WITH RECURSIVE r AS (SELECT id FROM e UNION SELECT t.id FROM r JOIN t ON t.a = r.id) SELECT id FROM r";
    let first = "SELECT id, count(*) FROM (SELECT id FROM e ORDER BY a LIMIT 3) AS f GROUP BY id";
    let half = "SELECT a, count(*) FROM t WHERE EXISTS (SELECT 1 FROM e WHERE e.a = t.a) GROUP BY a";
    let cases: Vec<(&str, Vec<String>)> = vec![
        ("SELECT id + 1 AS next FROM e WHERE a > 1", vec![]),
        ("SELECT count(*), sum(a), max(a) FROM e", vec!["aggregate O(1), state: one entry (constant)".to_owned()]),
        ("SELECT a, count(*) FROM e GROUP BY a", vec![format!("aggregate O(1), state: {group} {endless}")]),
        ("SELECT flag, count(*) FROM e GROUP BY flag", vec![format!("aggregate O(1), state: {group} (constant)")]),
        ("SELECT a, count(*) FROM t GROUP BY a", vec![format!("aggregate O(1), state: {group} {bounded}")]),
        ("SELECT max(a) FROM t", vec![format!("aggregate O(log n), state: {value} {bounded}")]),
        ("SELECT array_agg(a) FROM t", vec![format!("aggregate O(input), state: {value} {bounded}")]),
        ("SELECT b, array_agg(a) FROM t GROUP BY b", {
            vec![format!("aggregate O(partition), state: {group} and {value} {bounded}")]
        }),
        ("SELECT a FROM t UNION SELECT a FROM e", vec![format!("aggregate O(1), state: {group} {endless}")]),
        ("SELECT t.id FROM t JOIN e ON t.a = e.a", vec![format!("join O(matches), state: {pairs} {endless}")]),
        (
            "SELECT l.id FROM t AS l JOIN t AS r ON l.a < r.a",
            vec![format!("join O(matches), state: {pairs} {bounded}")],
        ),
        ("SELECT l.id FROM t AS l JOIN t AS r ON l.a <> r.a", vec![format!("join O(input), state: {pairs} {bounded}")]),
        ("SELECT t.id, s.c FROM t CROSS JOIN (SELECT count(*) AS c FROM e) AS s", {
            let count = "aggregate O(1), state: one entry (constant)".to_owned();
            vec![count, format!("join O(input), state: {pairs} {bounded}")]
        }),
        (half, {
            let kept = "rows of the left input and keys of the right one";
            let join = format!("join O(matches), state: {kept} {endless}");
            vec![join, format!("aggregate O(1), state: {group} {bounded}")]
        }),
        (first, {
            let top_n = format!("top_n O(log n), state: {all} {endless}");
            vec![top_n, format!("aggregate O(1), state: {group} (constant)")]
        }),
        ("SELECT id, sum(a) OVER (PARTITION BY name) AS s FROM t", {
            vec![format!("window O(partition), state: {all} {bounded}")]
        }),
        ("SELECT id, lag(a) OVER (ORDER BY id) AS s FROM e", vec![format!("window O(log n), state: {all} {endless}")]),
        ("SELECT id, row_number() OVER (ORDER BY id) AS s FROM t", {
            vec![format!("window O(input), state: {all} {bounded}")]
        }),
        (recursion, {
            vec![format!("recursion O(matches), state: its rows, and what its recursive term keeps {endless}")]
        }),
        ("VALUES (1), (2)", vec!["values O(1), state: one entry (constant)".to_owned()]),
    ];
    for (query, expected) in cases {
        assert_eq!(kept(query), expected, "{query}");
    }
}

#[test]
fn state_goes_with_the_rows_that_bound_it() {
    let further = [
        "SELECT a, count(*) AS n, min(b), count(DISTINCT name), array_agg(id) FROM t GROUP BY a",
        "SELECT t.id, u.id AS other FROM t FULL JOIN u ON t.a = u.id AND t.b < 3",
        "SELECT t.id FROM t LEFT JOIN u ON t.a > u.id",
        "SELECT id FROM t WHERE a NOT IN (SELECT id FROM u)",
        "SELECT id, row_number() OVER (PARTITION BY a ORDER BY id) AS n, sum(b) OVER (PARTITION BY a ORDER BY id) AS s FROM t",
        "SELECT id, rank() OVER (ORDER BY b) AS n, max(id) OVER (PARTITION BY a) AS m FROM t",
        "SELECT id FROM t ORDER BY b LIMIT 2",
        "SELECT id FROM (SELECT id, rank() OVER (PARTITION BY a ORDER BY b) AS n FROM t) AS r WHERE n <= 2",
        "WITH RECURSIVE r AS (SELECT id, a FROM t UNION SELECT r.id, t.a FROM r JOIN t ON t.id = r.a) SELECT id, a FROM r",
    ];
    for query in QUERIES.iter().chain(&further) {
        let tables = vec![numbers(), table("u", "id int4, n text, list int4[], other text[]")];
        let mut harness = Harness::new(tables, query);
        let t: String = (0..200).map(|id| format!("+1 | {id} | {} | {} | n{}\n", id / 7, id % 5, id % 9)).collect();
        let u: String = (0..40).map(|id| format!("+2 | {id} | n{} | {{1,2,{id}}} | {{a}}\n", id % 3)).collect();
        let (t, u) = (t.trim_end(), u.trim_end());
        harness.epoch(&[("t", t), ("u", u)]);
        let stateless = harness.nodes().iter().all(|node| node.properties.state == StateBound::Stateless);
        assert_eq!(harness.held().is_empty(), stateless, "{query}");
        harness.restart();
        let (t, u) = (t.replace('+', "-"), u.replace('+', "-"));
        harness.epoch(&[("t", t.as_str()), ("u", u.as_str())]);
        harness.check();
        let left = harness.held();
        assert!(left.is_empty(), "{query}: {left:?}");
    }
}
