//! Creating a view on a big table while it changes: the view is complete and right when the statement returns, and others stay fresh.

use sql_tests::equivalence::difference;
use sql_tests::process::Server;
use sql_tests::wire::{Client, Row};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ROWS: u64 = 400_000;

const VIEWS: [(&str, &str); 6] = [
    ("groups", "SELECT g, count(*) AS n, sum(v) AS s, min(v) AS lo, count(DISTINCT v) AS d FROM keyed GROUP BY g"),
    ("pairs", "SELECT k.id, b.w FROM keyed k JOIN bag b ON k.id = b.id AND k.v < 500"),
    ("bag_groups", "SELECT w, count(*) AS n FROM bag GROUP BY w"),
    (
        "running",
        "SELECT id, sum(v) OVER (PARTITION BY g % 20 ORDER BY id) AS s, lag(v) OVER (PARTITION BY g % 20 ORDER BY id) AS p FROM keyed",
    ),
    ("ranks", "SELECT w, n, rank() OVER (ORDER BY n, w) AS r FROM bag_groups"),
    ("on_view", "SELECT n, count(*) AS groups FROM groups GROUP BY n"),
];

fn load(client: &mut Client) {
    client.run("CREATE TABLE keyed (id bigint PRIMARY KEY, g int, v int)").expect("create");
    client.run("CREATE TABLE bag (id bigint, w int)").expect("create");
    client.run("CREATE TABLE small (a int)").expect("create");
    client.run("CREATE MATERIALIZED VIEW fresh AS SELECT count(*) AS n, sum(a) AS s FROM small").expect("create");
    let mut lines = (0..ROWS / 1000).map(|chunk| {
        let line = |id: u64| format!("{id}\t{}\t{}\n", id % 1000, id * 7919 % 1000);
        (chunk * 1000..(chunk + 1) * 1000).map(line).collect::<String>().into_bytes()
    });
    client.copy_in("COPY keyed FROM STDIN", &mut lines).expect("copy");
    client.run("INSERT INTO bag SELECT id, (id % 50)::int FROM keyed WHERE id % 2 = 0").expect("insert");
}

/// Changes both tables until told to stop; the number of statements.
fn change(port: u16, stop: &AtomicBool, offset: u64) -> u64 {
    let mut client = Client::connect(port).expect("connect");
    let mut count = 0;
    while !stop.load(Ordering::Relaxed) {
        let id = (count * 7907 + offset * 13) % ROWS;
        let statements = [
            format!("UPDATE keyed SET v = v + 1, g = g + 1 WHERE id = {id}"),
            format!("DELETE FROM bag WHERE id = {}", id / 2 * 2),
            format!("INSERT INTO bag VALUES ({id}, {offset}), ({id}, {offset})"),
            format!("INSERT INTO keyed VALUES ({}, 5, 5)", ROWS + count * 10 + offset),
            format!("DELETE FROM keyed WHERE id = {}", (id + 1) % ROWS),
        ];
        for statement in statements {
            client.run(&statement).expect("a change");
            count += 1;
        }
    }
    count
}

/// Inserts and reads the view of a small table; the slowest round trip.
fn stay_fresh(port: u16, stop: &AtomicBool) -> Duration {
    let mut client = Client::connect(port).expect("connect");
    let mut slowest = Duration::ZERO;
    let mut count = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        let started = Instant::now();
        client.run("INSERT INTO small VALUES (1)").expect("insert");
        count += 1;
        assert_eq!(
            client.value("SELECT n FROM fresh").expect("read"),
            count.to_string(),
            "an acknowledged row is in the view"
        );
        slowest = slowest.max(started.elapsed());
        std::thread::sleep(Duration::from_millis(5));
    }
    slowest
}

#[test]
fn views_are_filled_while_tables_change() {
    let mut server = Server::start().expect("start");
    let port = server.port();
    let mut client = server.client().expect("connect");
    load(&mut client);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let changes: Vec<_> = (0..2)
            .map(|offset| {
                scope.spawn({
                    let stop = &stop;
                    move || change(port, stop, offset)
                })
            })
            .collect();
        let fresh = scope.spawn(|| stay_fresh(port, &stop));
        for (name, query) in VIEWS {
            let started = Instant::now();
            client.run(&format!("CREATE MATERIALIZED VIEW {name} AS {query}")).expect("create");
            println!("{name} was complete after {:?}", started.elapsed());
        }
        stop.store(true, Ordering::Relaxed);
        let count: u64 = changes.into_iter().map(|thread| thread.join().expect("changes")).sum();
        let slowest = fresh.join().expect("fresh");
        println!("{count} changes meanwhile; slowest insert and read of another view {slowest:?}");
    });
    for round in ["filled", "after kill -9"] {
        for (name, query) in VIEWS {
            let rows = |client: &mut Client, sql: &str| -> Vec<Row> { client.rows(sql).expect("read") };
            let stored = rows(&mut client, &format!("SELECT * FROM {name}"));
            let different = difference(&stored, &rows(&mut client, query));
            assert_eq!(different, None, "{round}: {name}");
        }
        server.restart().expect("start again");
        client = server.client().expect("connect");
    }
}

/// Between the rows from which an epoch is written as files and those that one epoch reads for a view: it is made and ready in one epoch.
#[test]
fn a_view_is_filled_in_the_epoch_that_makes_it() {
    let server = Server::start().expect("start");
    let mut client = server.client().expect("connect");
    client.run("CREATE TABLE keyed (id bigint PRIMARY KEY, v int)").expect("create");
    client.run("INSERT INTO keyed SELECT n, n % 7 FROM generate_series(1, 60000) n").expect("insert");
    client.run("CREATE MATERIALIZED VIEW copied AS SELECT * FROM keyed").expect("create");
    client.run("INSERT INTO keyed VALUES (0, 0)").expect("the next epoch");
    assert_eq!(client.value("SELECT count(*) FROM copied").expect("read"), "60001");
}

#[test]
fn a_killed_creation_leaves_nothing() {
    let mut server = Server::start().expect("start");
    load(&mut server.client().expect("connect"));
    for pause in [5, 60, 200] {
        let mut creating = server.client().expect("connect");
        creating.send_query(&format!("CREATE MATERIALIZED VIEW groups AS {}", VIEWS[0].1)).expect("send");
        std::thread::sleep(Duration::from_millis(pause));
        server.restart().expect("start again");
        let mut client = server.client().expect("connect");
        let stored = client.query("SELECT * FROM groups").expect("an answer");
        if stored.error.is_none() {
            let query = client.rows(VIEWS[0].1).expect("read");
            assert_eq!(difference(&stored.answers[0].rows, &query), None, "it is there, so it is complete");
            client.run("DROP MATERIALIZED VIEW groups").expect("drop");
        }
        client
            .run(&format!("CREATE MATERIALIZED VIEW groups AS {}", VIEWS[0].1))
            .expect("its name and its space are free");
        client.run("DROP MATERIALIZED VIEW groups").expect("drop");
    }
}
