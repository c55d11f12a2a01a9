#![allow(clippy::unwrap_used)]
//! Aggregations over random changes, against DataFusion over the accumulated input.

use rand::Rng;

use crate::operators::harness::{Harness, Setting, table};

const COLUMNS: &str = "g text, h int4, v int4, b int8, f float8, n numeric(10,2), s text, i interval";

fn compare(query: &str, seed: u64, epochs: usize, rows: usize, groups: i32, values: i32) {
    let setting = Setting {
        workers: 1 + (seed as usize % 3),
        cache_bytes: if seed.is_multiple_of(2) { 0 } else { 1 << 24 },
        seed,
    };
    let mut harness = Harness::with(vec![table("t", COLUMNS)], query, setting);
    assert!(!harness.operators().contains(&"recompute"), "{query}");
    for epoch in 0..epochs {
        let change = harness.random_change("t", rows, &mut |random| {
            let group = ["p", "q", "NULL"][random.random_range(0..3)];
            let float = ["0", "-0", "NaN", "inf", "1.5", "0.1", "1e10", "-7.25", "NULL"][random.random_range(0..9)];
            let interval = ["1 mon", "30 days", "2 days", "3 hours", "NULL"][random.random_range(0..5)];
            let text = ["a", "b", "ab", "", "NULL"][random.random_range(0..5)];
            let null = random.random_range(0..8) == 0;
            let number = if null { "NULL".to_string() } else { random.random_range(-values..values).to_string() };
            format!(
                "{group} | {} | {number} | {} | {float} | {}.25 | {text} | {interval}",
                random.random_range(0..groups),
                random.random_range(-5..900_000_000_000i64),
                random.random_range(-9..9),
            )
        });
        harness.apply(vec![("t", change)]);
        harness.check();
        if epoch % 3 == 2 {
            harness.restart();
        }
    }
}

const QUERIES: &[&str] = &[
    "SELECT h, var_pop(v), var_samp(v), stddev_pop(n), stddev_samp(n), variance(b), stddev(b) FROM t GROUP BY h",
    "SELECT h, var_pop(f), stddev(f), var_pop(DISTINCT v), stddev(DISTINCT f) FROM t GROUP BY h",
    "SELECT covar_pop(f, v), covar_samp(v, b), corr(v, b), regr_slope(v, b), regr_intercept(v, b), regr_r2(v, b),
        regr_count(v, f), regr_avgx(v, f), regr_avgy(f, v), regr_sxx(v, b), regr_syy(v, b), regr_sxy(v, b) FROM t",
    "SELECT g, bit_and(v), bit_or(b), bit_xor(v), bit_xor(DISTINCT v) FROM t GROUP BY g",
    "SELECT h, array_agg(v), array_agg(v ORDER BY s DESC, v), array_agg(DISTINCT s), array_agg(s) FILTER (WHERE v > 0) FROM t GROUP BY h",
    "SELECT h, string_agg(s, ','), string_agg(s, g ORDER BY v DESC), string_agg(DISTINCT s, '-' ORDER BY s DESC) FROM t GROUP BY h",
    "SELECT h, json_agg(v), jsonb_agg(s ORDER BY v), json_object_agg(coalesce(s, '-'), v), jsonb_object_agg(v, f) FILTER (WHERE v IS NOT NULL)
        FROM t GROUP BY h",
    "SELECT h, percentile_cont(0.5) WITHIN GROUP (ORDER BY v), percentile_cont(0.9) WITHIN GROUP (ORDER BY f DESC),
        percentile_disc(0.25) WITHIN GROUP (ORDER BY s), percentile_disc(0.75) WITHIN GROUP (ORDER BY i DESC), median(v) FROM t GROUP BY h",
    "SELECT median(n), percentile_cont(0.3) WITHIN GROUP (ORDER BY i), mode() WITHIN GROUP (ORDER BY s),
        mode() WITHIN GROUP (ORDER BY f DESC), percentile_cont(h / 10.0) WITHIN GROUP (ORDER BY v) FROM t WHERE h = 2",
    "SELECT g, first_value(v ORDER BY b), last_value(s ORDER BY b), nth_value(v, 2 ORDER BY v DESC), any_value(f),
        approx_distinct(v), approx_median(v), approx_percentile_cont(0.2) WITHIN GROUP (ORDER BY v) FROM t GROUP BY g",
    "SELECT g, h, count(*), sum(v), count(g), min(h), GROUPING(g), GROUPING(h, g) FROM t GROUP BY ROLLUP (g, h)",
    "SELECT g, h, v % 2 AS odd, count(*), max(f), array_agg(s) FROM t GROUP BY CUBE (g, h, v % 2)",
    "SELECT n, count(DISTINCT s) FROM t GROUP BY GROUPING SETS ((n), (), (n))",
    "SELECT g, h, count(*) FROM t GROUP BY g, GROUPING SETS ((h), ())",
    "SELECT g FROM t GROUP BY GROUPING SETS ((g), ())",
];

#[test]
fn aggregations_equal_the_query() {
    for (position, query) in QUERIES.iter().enumerate() {
        for seed in 0..4 {
            compare(query, seed * 100 + position as u64, 9, 8, 3, 6);
        }
    }
}

#[test]
fn large_groups_equal_the_query() {
    let query = "SELECT median(v), percentile_disc(0) WITHIN GROUP (ORDER BY v), percentile_disc(1) WITHIN GROUP (ORDER BY v),
        percentile_cont(0.9) WITHIN GROUP (ORDER BY v DESC), percentile_disc(0.4) WITHIN GROUP (ORDER BY f), array_agg(v) FROM t";
    for seed in 0..4 {
        compare(query, seed, 10, 200, 1, 1000);
    }
    let grouped = format!("{query} GROUP BY h");
    compare(&grouped, 7, 10, 200, 2, 1000);
}

#[test]
fn a_failing_group_is_an_error_until_it_does_not_fail() {
    let mut harness =
        Harness::new(vec![table("t", "g int4, k text, v int4")], "SELECT g, json_object_agg(k, v) FROM t GROUP BY g");
    harness.epoch(&[("t", "+1 | 1 | a | 5\n+1 | 2 | NULL | 6")]);
    assert_eq!(harness.output(), "+1 | 1 | { \"a\" : 5 }");
    assert_eq!(harness.errors(), "+1 | aggregate | field name must not be null | (2)");
    harness.restart();
    harness.epoch(&[("t", "-1 | 2 | NULL | 6\n+1 | 2 | b | NULL")]);
    assert_eq!(harness.output(), "+1 | 1 | { \"a\" : 5 }\n+1 | 2 | { \"b\" : null }");
    assert_eq!(harness.errors(), "");
}
