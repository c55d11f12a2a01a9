//! Windows over time: their arguments, and that all spellings of one are one plan.

use super::{World, error_of};
use crate::statement::Statement;

#[test]
fn window_arguments_are_checked() {
    let world = World::new();
    let cases = [
        ("SELECT * FROM TUMBLE(t, ts, INTERVAL '0 minutes')", "22023 the size of TUMBLE must be greater than zero"),
        (
            "SELECT * FROM HOP(t, ts, INTERVAL '-1 minute', INTERVAL '-1 minute')",
            "22023 the slide of HOP must be greater than zero",
        ),
        ("SELECT * FROM HOP(t, ts, INTERVAL '1 minute', NULL)", "22023 the size of HOP must not be NULL"),
        ("SELECT * FROM TUMBLE(t, ts, 5)", "42804 the size of TUMBLE must be an interval, not bigint"),
        ("SELECT * FROM TUMBLE(t, ts)", "42601 TUMBLE takes 3 or 4 arguments, not 2"),
        ("SELECT * FROM TUMBLE(t, tx, INTERVAL '1 hour')", "42703 column \"tx\" does not exist"),
        (
            "SELECT * FROM TUMBLE(t, name, INTERVAL '1 hour')",
            "42804 the time column \"name\" of TUMBLE is of type text",
        ),
        (
            "SELECT count(*) FROM t GROUP BY TUMBLE(ts, INTERVAL '-1 hour')",
            "22023 the size of TUMBLE must be greater than zero",
        ),
        (
            "SELECT * FROM CUMULATE(t, ts, INTERVAL '0 minutes', INTERVAL '1 hour')",
            "22023 the step of CUMULATE must be greater than zero",
        ),
        ("SELECT * FROM CUMULATE(t, ts, INTERVAL '1 hour')", "42601 CUMULATE takes 4 or 5 arguments, not 3"),
        ("SELECT * FROM SESSION(t, ts)", "42601 SESSION takes 3 arguments, not 2"),
        ("SELECT * FROM SESSION(t, ts, INTERVAL '0 s')", "22023 the gap of SESSION must be greater than zero"),
        (
            "SELECT * FROM SESSION(t, ts, INTERVAL '1 month -1 day')",
            "22023 the gap of SESSION must be greater than zero",
        ),
        ("SELECT * FROM SESSION(t PARTITION BY nope, ts, INTERVAL '1 s')", "42703 column \"nope\" does not exist"),
        ("SELECT * FROM SESSION(t PARTITION BY name)", "42601 PARTITION BY of a window lacks the arguments behind it"),
        ("SELECT * FROM TUMBLE(t PARTITION BY name, ts, INTERVAL '1 s')", "42601 TUMBLE has no PARTITION BY"),
        (
            "SELECT count(*) FROM t GROUP BY SESSION(ts, INTERVAL '1 s', INTERVAL '1 s')",
            "42601 SESSION in GROUP BY takes 2 arguments, not 3",
        ),
        (
            "SELECT count(*) FROM t GROUP BY ROLLUP(name), SESSION(ts, INTERVAL '1 hour')",
            "0A000 GROUP BY SESSION with grouping sets is not supported yet",
        ),
    ];
    for (text, expected) in cases {
        let found = error_of(&world, text);
        assert!(found.starts_with(expected), "{text}\n  expected {expected}\n  found    {found}");
    }
}

fn plan_of(text: &str) -> String {
    let world = World::new();
    let statement = world.one(text).unwrap_or_else(|error| panic!("{text}: {error:?}")).statement;
    let Statement::Query(plan) = statement else { panic!("{text} is no query") };
    world.planner.optimize(plan, 0).unwrap().display_indent().to_string()
}

fn same(texts: &[&str]) {
    let first = plan_of(texts[0]);
    for text in &texts[1..] {
        assert_eq!(plan_of(text), first, "{text}");
    }
}

#[test]
fn all_spellings_of_a_window_are_one_plan() {
    let items = "SELECT window_start, window_end, count(*) AS n FROM";
    let group = "GROUP BY window_start, window_end";
    same(&[
        &format!("{items} TUMBLE(t, ts, INTERVAL '10 s') {group}"),
        &format!("{items} TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECOND) {group}"),
        &format!("{items} TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '10' SECONDS)) {group}"),
        &format!(
            "{items} TABLE(TUMBLE(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SIZE => INTERVAL '10' SECOND)) {group}"
        ),
        &format!("{items} TUMBLE(t, ts, '10 sec'::interval) {group}"),
        "SELECT TUMBLE_START(ts, INTERVAL '10 s') AS window_start, TUMBLE_END(ts, INTERVAL '10 s') AS window_end, \
         count(*) AS n FROM t GROUP BY TUMBLE(ts, INTERVAL '10 s')",
        "SELECT TUMBLE_START(t.ts, INTERVAL '10 s') AS window_start, TUMBLE_END(t.ts, INTERVAL '10 s') AS window_end, \
         count(*) AS n FROM t GROUP BY TUMBLE(t.ts, INTERVAL '10 s')",
    ]);
    same(&[
        &format!("{items} HOP(t, ts, INTERVAL '2 s', INTERVAL '10 s') {group}"),
        &format!(
            "{items} TABLE(HOP(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), SLIDE => INTERVAL '2' SECOND, \
             SIZE => INTERVAL '10' SECOND)) {group}"
        ),
        "SELECT HOP_START(ts, INTERVAL '2 s', INTERVAL '10 s') AS window_start, \
         HOP_END(ts, INTERVAL '2 s', INTERVAL '10 s') AS window_end, count(*) AS n \
         FROM t GROUP BY HOP(ts, INTERVAL '2 s', INTERVAL '10 s')",
    ]);
    same(&[
        &format!("{items} CUMULATE(t, ts, INTERVAL '2 s', INTERVAL '10 s') {group}"),
        &format!(
            "{items} TABLE(CUMULATE(DATA => TABLE t, TIMECOL => DESCRIPTOR(ts), STEP => INTERVAL '2' SECOND, \
             SIZE => INTERVAL '10' SECOND)) {group}"
        ),
        "SELECT CUMULATE_START(ts, INTERVAL '2 s', INTERVAL '10 s') AS window_start, \
         CUMULATE_END(ts, INTERVAL '2 s', INTERVAL '10 s') AS window_end, count(*) AS n \
         FROM t GROUP BY CUMULATE(ts, INTERVAL '2 s', INTERVAL '10 s')",
    ]);
}

#[test]
fn all_spellings_of_a_session_are_one_plan() {
    let items = "SELECT name, x, window_start, window_end, count(*) AS n FROM";
    let group = "GROUP BY name, x, window_start, window_end";
    same(&[
        &format!("{items} SESSION(t PARTITION BY name, x, ts, INTERVAL '10 s') {group}"),
        &format!("{items} SESSION(TABLE t PARTITION BY (name, x), DESCRIPTOR(ts), INTERVAL '10' SECOND) {group}"),
        &format!(
            "{items} TABLE(SESSION(DATA => TABLE t PARTITION BY name, x, TIMECOL => DESCRIPTOR(ts), \
             GAP => INTERVAL '10' SECOND)) {group}"
        ),
        "SELECT name, x, SESSION_START(ts, INTERVAL '10 s') AS window_start, \
         SESSION_END(ts, INTERVAL '10 s') AS window_end, count(*) AS n FROM t \
         GROUP BY name, x, SESSION(ts, INTERVAL '10 s')",
        "SELECT t.name, x, SESSION_START(t.ts, INTERVAL '10 s') AS window_start, \
         SESSION_END(t.ts, INTERVAL '10 s') AS window_end, count(*) AS n FROM t \
         GROUP BY 1, x, SESSION(t.ts, INTERVAL '10 s')",
    ]);
}

/// A subquery, an offset, an alias, and ORDER BY the window.
#[test]
fn windows_are_planned_in_every_place() {
    for text in [
        "SELECT w.window_start, w.id FROM TUMBLE((SELECT * FROM t WHERE x > 1), ts, INTERVAL '10 s', INTERVAL '2 s') AS w",
        "SELECT t.id, window_end FROM TUMBLE(t, ts, INTERVAL '10 s') WHERE t.id = 1",
        "SELECT name, TUMBLE_START(ts, INTERVAL '1' HOUR) FROM t GROUP BY name, TUMBLE(ts, INTERVAL '1' HOUR) \
         ORDER BY TUMBLE_START(ts, INTERVAL '1' HOUR)",
        "SELECT TUMBLE_START(t.ts, INTERVAL '1' HOUR), count(*) FROM t JOIN u ON t.id = u.id \
         GROUP BY TUMBLE(t.ts, INTERVAL '1' HOUR)",
        "SELECT campaign, TUMBLE_START(clickTime, INTERVAL '1' HOUR), COUNT(ip) AS clickCnt FROM adClicks \
         WHERE clickTime > '2017-01-01' GROUP BY campaign, TUMBLE(clickTime, INTERVAL '1' HOUR)",
    ] {
        plan_of(text);
    }
}
