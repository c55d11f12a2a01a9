//! Whole dataflows on one and several workers, over a store in memory, with small operators made for the purpose.

pub(crate) mod harness;
mod operators;

use plan::RelationId;

use self::harness::World;
use self::operators::{count_by_key, count_of_all, pass};
use super::FillPosition;

/// The same scenario on 1, 2 and 5 workers; what it returns must agree.
pub(crate) fn on_workers<T: PartialEq + std::fmt::Debug>(scenario: impl Fn(&mut World) -> T) -> T {
    let mut outcomes = [1, 2, 5].map(|workers| scenario(&mut World::new(workers)));
    let [first, rest @ ..] = &mut outcomes;
    for outcome in rest {
        assert_eq!(first, outcome);
    }
    let [first, ..] = outcomes;
    first
}

#[test]
fn rows_are_counted_by_key() {
    let text = on_workers(|world| {
        let table = world.table("t", "k int8, v text");
        let view = world.view("v", count_by_key(&table), &[]);
        world.epoch(&[(&table, "+1 | 1 | a\n+1 | 2 | b\n+1 | 1 | c\n+1 | NULL | d")]);
        world.epoch(&[(&table, "-1 | 2 | b\n+1 | 3 | x"), (&table, "-1 | 1 | c")]);
        world.check_stored();
        world.rows(view)
    });
    assert_eq!(text, "1 | 1\n3 | 1\nNULL | 1");
}

#[test]
fn an_epoch_may_have_more_changes_than_a_worker_has_room_for() {
    let mut world = World::new(1);
    let table = world.table("t", "k int8, v text");
    let view = world.view("v", count_of_all(&table), &[]);
    world.epoch(&[]);
    let changes = crate::limits::WORKER_COMMANDS_MAX + 10;
    world.epoch(&vec![(&table, "+1 | 1 | a"); changes]);
    assert_eq!(world.rows(view), changes.to_string());
}

#[test]
fn an_epoch_without_a_change_has_an_empty_result() {
    let mut world = World::new(2);
    let table = world.table("t", "k int8, v text");
    world.view("v", count_by_key(&table), &[]);
    world.epoch(&[(&table, "+1 | 1 | a")]);
    let result = world.epoch(&[]);
    assert!(result.writes.is_empty() && result.changes.is_empty() && result.failures.is_empty());
    let result = world.epoch(&[(&table, "+1 | 7 | a\n-1 | 7 | a")]);
    assert!(result.changes.is_empty(), "{:?}", result.changes);
}

#[test]
fn a_count_over_nothing_is_one_row() {
    let texts = on_workers(|world| {
        let table = world.table("t", "k int8, v text");
        let view = world.view("v", count_of_all(&table), &[]);
        world.epoch(&[]);
        let before = world.rows(view);
        world.epoch(&[(&table, "+1 | 1 | a\n+1 | 2 | b")]);
        world.check_stored();
        (before, world.rows(view))
    });
    assert_eq!(texts, ("0".to_owned(), "2".to_owned()));
}

#[test]
fn views_read_views() {
    let texts = on_workers(|world| {
        let table = world.table("t", "k int8, v text");
        let first = world.view("first", count_by_key(&table), &[]);
        let relation = world.relation(first);
        let second = world.view("second", count_by_key(&relation.with_columns_swapped()), &[first]);
        let relation = world.relation(second);
        let third = world.view("third", count_of_all(&relation), &[second]);
        // Three epochs go in before any of them comes out.
        world.send(&[(&table, "+1 | 1 | a\n+1 | 2 | b\n+1 | 2 | c")]);
        world.send(&[(&table, "+1 | 3 | a\n+1 | 4 | b\n+1 | 4 | c\n+1 | 4 | d")]);
        world.send(&[(&table, "-1 | 2 | c")]);
        let results: Vec<_> = (0..3).map(|_| world.receive()).collect();
        let epochs_with = |view| results.iter().filter(|r| r.changes.iter().any(|(id, _)| *id == view)).count();
        assert_eq!((epochs_with(first), epochs_with(third)), (3, 3));
        world.check_stored();
        (world.rows(first), world.rows(second), world.rows(third))
    });
    assert_eq!(texts, ("1 | 1\n2 | 1\n3 | 1\n4 | 3".to_owned(), "1 | 3\n3 | 1".to_owned(), "2".to_owned()));
}

#[test]
fn a_view_begins_with_the_next_epoch_and_ends_with_the_last_one() {
    on_workers(|world| {
        let table = world.table("t", "k int8, v text");
        let first = world.view("first", count_by_key(&table), &[]);
        world.send(&[(&table, "+1 | 1 | a")]);
        let late = world.view("late", count_by_key(&table), &[]);
        world.send(&[(&table, "+1 | 1 | b")]);
        world.drop_view(first);
        world.send(&[(&table, "+1 | 1 | c")]);
        (0..3).for_each(|_| drop(world.receive()));
        assert_eq!((world.rows(first), world.rows(late)), ("1 | 2".to_owned(), "1 | 2".to_owned()));
        // The name is free again, also for a dataflow of the same identity.
        world.recreate(first);
        world.epoch(&[(&table, "+1 | 5 | a")]);
        assert_eq!(world.rows(late), "1 | 2\n5 | 1");
    });
}

#[test]
fn a_view_dropped_before_any_epoch_leaves_nothing() {
    on_workers(|world| {
        let table = world.table("t", "k int8, v text");
        let view = world.view("v", count_of_all(&table), &[]);
        world.drop_view(view);
        let result = world.epoch(&[(&table, "+1 | 1 | a")]);
        assert!(result.writes.is_empty(), "{:?}", result.writes);
    });
}

#[test]
fn changes_pass_as_far_as_the_fill_has_come() {
    let texts = on_workers(|world| {
        let table = world.table("t", "k int8, v text");
        world.epoch(&[(&table, "+1 | 1 | a\n+1 | 2 | b\n+1 | 3 | c\n+1 | 4 | d")]);
        let view = world.unfilled_view("v", pass(&table));
        // Nothing has been read: nothing passes.
        world.epoch(&[(&table, "+1 | 9 | early")]);
        let nothing = world.rows(view);
        // The fill has read up to the second entry: changes up to there pass in the same epoch.
        let (rows, position) = world.scan(&table, 2);
        world.fill(view, &table, &rows, FillPosition::Through(position));
        let keys = world.keys_in_store_order(&table);
        let (inside, outside) = (keys[0].clone(), keys[3].clone());
        world.epoch(&[(&table, &format!("-1 | {inside}")), (&table, &format!("-1 | {outside}"))]);
        let half = world.rows(view);
        assert_eq!(half.lines().count(), 1, "two were read, one of them is gone: {half}");
        let (rows, _) = world.scan_after(&table, usize::MAX);
        world.fill(view, &table, &rows, FillPosition::End);
        world.epoch(&[(&table, "+1 | 10 | late")]);
        world.check_stored();
        (nothing, world.rows(view) == world.rows(table.id()))
    });
    assert_eq!(texts, (String::new(), true));
}

#[test]
fn a_failing_operator_stops_its_view_and_those_above() {
    on_workers(|world| {
        let table = world.table("t", "k int8, v text");
        let bad = world.view("bad", pass(&table), &[]);
        let relation = world.relation(bad);
        let above = world.view("above", count_by_key(&relation), &[bad]);
        let good = world.view("good", count_by_key(&table), &[]);
        world.epoch(&[(&table, "+1 | 1 | a")]);
        let result = world.epoch(&[(&table, "+1 | 2 | fail\n+1 | 3 | b\n+1 | 4 | c\n+1 | 5 | d")]);
        let mut failed: Vec<RelationId> = result.failures.iter().map(|(id, _)| *id).collect();
        failed.sort();
        assert_eq!(failed, [bad, above]);
        assert!(result.failures[0].1.contains("told to fail"), "{}", result.failures[0].1);
        let tables = [bad.0..bad.0 + 20, above.0..above.0 + 20];
        let written = |key: &[u8]| u32::from_be_bytes([key[0], key[1], key[2], key[3]]);
        assert!(result.writes.iter().all(|(key, _)| !tables.iter().any(|tables| tables.contains(&written(key)))));
        let result = world.epoch(&[(&table, "+1 | 6 | e")]);
        assert!(result.failures.is_empty());
        assert_eq!((world.rows(bad), world.rows(above)), ("1 | a".to_owned(), "1 | 1".to_owned()));
        assert_eq!(world.rows(good).lines().count(), 6);
        world.drop_view(above);
        world.drop_view(bad);
        world.epoch(&[(&table, "+1 | 7 | f")]);
    });
}

#[test]
fn a_panic_is_a_failure() {
    on_workers(|world| {
        let table = world.table("t", "k int8, v text");
        let bad = world.view("bad", pass(&table), &[]);
        let result = world.epoch(&[(&table, "+1 | 2 | panic")]);
        assert_eq!(result.failures.len(), 1);
        assert!(result.failures[0].1.contains("told to panic"), "{}", result.failures[0].1);
        assert!(result.writes.is_empty() && result.changes.is_empty());
        assert_eq!(world.rows(bad), "");
    });
}

#[test]
fn two_rows_under_one_key_are_a_failure() {
    on_workers(|world| {
        let table = world.table("t", "k int8, v text");
        let bad = world.keyed_view("bad", pass(&table), &[0]);
        world.epoch(&[(&table, "+1 | 1 | a")]);
        world.epoch(&[(&table, "+1 | 1 | b\n-1 | 1 | a\n+1 | 2 | x")]);
        world.check_stored();
        assert_eq!(world.rows(bad), "1 | b\n2 | x");
        let result = world.epoch(&[(&table, "+1 | 3 | a\n+1 | 3 | b")]);
        assert!(result.failures[0].1.contains("two rows have the same key"), "{}", result.failures[0].1);
    });
}

#[test]
fn a_row_removed_too_often_is_a_failure() {
    on_workers(|world| {
        let table = world.table("t", "k int8, v text");
        world.view("bad", pass(&table), &[]);
        world.epoch(&[(&table, "+2 | 1 | a")]);
        let result = world.epoch(&[(&table, "-3 | 1 | a")]);
        assert!(result.failures[0].1.contains("removed more often"), "{}", result.failures[0].1);
    });
}

#[test]
fn an_unknown_operator_is_refused() {
    let mut world = World::new(1);
    let table = world.table("t", "k int8, v text");
    let error = world.try_view("v", operators::unknown(&table)).unwrap_err();
    assert!(error.to_string().contains("no operator"), "{error}");
}

#[test]
fn large_changes_are_split_over_workers() {
    let text = on_workers(|world| {
        let table = world.table("t", "k int8, v text");
        let view = world.view("v", count_by_key(&table), &[]);
        let rows: Vec<String> = (0..20_000).map(|row| format!("+1 | {} | x{row}", row % 7)).collect();
        world.epoch(&[(&table, &rows.join("\n"))]);
        world.check_stored();
        world.rows(view)
    });
    assert_eq!(text.lines().next(), Some("0 | 2858"));
}

#[test]
fn state_survives_a_restart() {
    on_workers(|world| {
        let table = world.table("t", "k int8, v text");
        let view = world.view("v", count_by_key(&table), &[]);
        let total = world.view("total", count_of_all(&table), &[]);
        world.epoch(&[(&table, "+1 | 1 | a\n+1 | 2 | b")]);
        world.restart();
        let result = world.epoch(&[]);
        assert!(result.changes.is_empty(), "nothing is said twice: {:?}", result.changes);
        world.epoch(&[(&table, "+1 | 1 | c\n-1 | 2 | b")]);
        world.check_stored();
        assert_eq!((world.rows(view), world.rows(total)), ("1 | 2".to_owned(), "2".to_owned()));
    });
}
