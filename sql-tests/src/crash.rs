//! The crash test: writers, readers and view makers work while the server is killed with -9 at a random moment, again and again.
//!
//! After every restart it proves, from what each writer was told:
//! - every acknowledged operation is there once, with all its rows in all its tables;
//! - every refused or rolled back operation has left nothing;
//! - the one operation of each writer that was neither is there as a whole or not at all;
//! - every view equals its query; a view whose creation was not acknowledged is complete or does not exist.
//!
//! While it runs, every read of every reader sees sum(x) + sum(-x) = 0 across two views, and as many rows in one table as
//! transactions that write both tables have put into the other.

use anyhow::{Context, Result, bail};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::equivalence::difference;
use crate::process::Server;
use crate::wire::{Client, Row};

const WRITERS: usize = 6;
const READERS: usize = 2;
/// Rows of one COPY: enough that its epoch is not a small one.
const COPY_ROWS: i64 = 20_000;

const TABLES: [&str; 4] = [
    "CREATE TABLE a (writer int, seq bigint, part int, kind text, amount bigint)",
    "CREATE TABLE b (writer int, seq bigint, amount bigint, PRIMARY KEY (writer, seq))",
    "CREATE TABLE counters (writer int PRIMARY KEY, n bigint NOT NULL)",
    "CREATE TABLE c (writer int, seq bigint, x bigint)",
];

const VIEWS: [(&str, &str); 8] = [
    ("plus", "SELECT sum(amount) AS s FROM a"),
    ("minus", "SELECT sum(-amount) AS s FROM a"),
    ("by_writer", "SELECT writer, kind, count(*) AS n, sum(amount) AS s, max(seq) AS m FROM a GROUP BY writer, kind"),
    ("joined", "SELECT a.writer, a.seq, a.part, b.amount FROM a JOIN b ON a.writer = b.writer AND a.seq = b.seq"),
    ("joined_sum", "SELECT writer, count(*) AS n, sum(amount) AS s FROM joined GROUP BY writer"),
    ("total", "SELECT sum(n) AS n, count(*) AS writers FROM counters"),
    ("copied", "SELECT writer, seq, count(*) AS n, min(x) AS lo, max(x) AS hi FROM c GROUP BY writer, seq"),
    ("distinct_parts", "SELECT DISTINCT writer, part FROM a"),
];

/// What is true in every single read, as queries that return one 0.
const ALWAYS_ZERO: [&str; 3] = [
    "SELECT coalesce((SELECT s FROM plus), 0) + coalesce((SELECT s FROM minus), 0)",
    "SELECT (SELECT count(*) FROM a WHERE kind = 'both') - 2 * (SELECT count(*) FROM b WHERE seq > 0)",
    "SELECT coalesce((SELECT sum(n) FROM by_writer), 0) - (SELECT count(*) FROM a)",
];

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Seed of moments and operations.
    pub seed: u64,
    /// Rounds of work, kill, restart, check.
    pub rounds: u64,
    /// Ends earlier when this time is over.
    pub time: Duration,
    /// More arguments of the server.
    pub server_arguments: Vec<String>,
}

/// What was done.
#[derive(Debug, Default, Clone)]
pub struct Summary {
    /// Rounds.
    pub rounds: u64,
    /// Operations that were acknowledged.
    pub acknowledged: u64,
    /// Operations in doubt that turned out to be there.
    pub doubtful_kept: u64,
    /// Operations in doubt that turned out not to be there.
    pub doubtful_lost: u64,
    /// Consistent concurrent reads.
    pub reads: u64,
    /// Longest time from start to answer after a kill.
    pub slowest_restart: Duration,
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} rounds of kill -9: {} acknowledged operations all there once; in doubt: {} there as a whole, {} not at all; \
             {} consistent concurrent reads; slowest restart {:?}",
            self.rounds, self.acknowledged, self.doubtful_kept, self.doubtful_lost, self.reads, self.slowest_restart
        )
    }
}

/// One thing that a writer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    /// One INSERT of one row into a.
    Insert,
    /// BEGIN, two rows into a, one into b, the counter, COMMIT.
    Both,
    /// One simple query of two INSERTs and an UPDATE: an implicit transaction.
    Implicit,
    /// The counter.
    Count,
    /// BEGIN, rows, ROLLBACK.
    RolledBack,
    /// A query that fails at its second statement.
    Failing,
    /// COPY of many rows into c.
    Copy,
}

/// Rows in a, rows in b, counts, rows in c.
type Effect = (i64, i64, i64, i64);

impl Operation {
    fn random(rng: &mut StdRng) -> Self {
        match rng.random_range(0..40) {
            0..=14 => Operation::Insert,
            15..=22 => Operation::Both,
            23..=27 => Operation::Implicit,
            28..=33 => Operation::Count,
            34..=36 => Operation::RolledBack,
            37..=38 => Operation::Failing,
            _ => Operation::Copy,
        }
    }

    fn effect(self) -> Effect {
        match self {
            Operation::Insert => (1, 0, 0, 0),
            Operation::Both | Operation::Implicit => (2, 1, 1, 0),
            Operation::Count => (0, 0, 1, 0),
            Operation::RolledBack | Operation::Failing => (0, 0, 0, 0),
            Operation::Copy => (0, 0, 0, COPY_ROWS),
        }
    }

    fn statements(self, writer: usize, seq: i64) -> Vec<String> {
        let both = [
            format!("INSERT INTO a VALUES ({writer}, {seq}, 0, 'both', {seq}), ({writer}, {seq}, 1, 'both', -7)"),
            format!("INSERT INTO b VALUES ({writer}, {seq}, {seq})"),
            format!("UPDATE counters SET n = n + 1 WHERE writer = {writer}"),
        ];
        let block = |end: &str| {
            let mut statements = vec!["BEGIN".to_string()];
            statements.extend(both.iter().cloned());
            statements.push(end.to_string());
            statements
        };
        match self {
            Operation::Insert => vec![format!("INSERT INTO a VALUES ({writer}, {seq}, 0, 'one', {seq} % 1000)")],
            Operation::Both => block("COMMIT"),
            Operation::RolledBack => block("ROLLBACK"),
            Operation::Implicit => vec![both.join("; ")],
            Operation::Count => vec![both[2].clone()],
            Operation::Failing => vec![format!("{}; INSERT INTO b VALUES ({writer}, 0, 1)", both[0])],
            Operation::Copy => vec!["COPY c FROM STDIN".into()],
        }
    }
}

/// A writer's memory of what it was told.
struct Writer {
    number: usize,
    rng: StdRng,
    next: i64,
    /// Operations that must be there.
    kept: BTreeMap<i64, Operation>,
    /// The operation without an answer.
    doubtful: Option<(i64, Operation)>,
    acknowledged: u64,
}

impl Writer {
    /// Works until the connection breaks or the flag is set. An error that must not be is an `Err`.
    fn work(&mut self, port: u16, stop: &AtomicBool) -> Result<()> {
        let Ok(mut client) = Client::connect(port) else { return Ok(()) };
        while !stop.load(Ordering::Relaxed) {
            let seq = self.next;
            let operation = Operation::random(&mut self.rng);
            self.next += 1;
            self.doubtful = Some((seq, operation));
            // A broken connection leaves the operation in doubt.
            let Ok(error) = perform(&mut client, operation, self.number, seq) else { return Ok(()) };
            self.doubtful = None;
            match (error, operation) {
                (None, Operation::Failing) => bail!("a duplicate key was accepted"),
                (None, _) => {
                    self.acknowledged += 1;
                    self.kept.insert(seq, operation);
                }
                (Some(state), Operation::Failing) if state == "23505" => {}
                // The server is going down, or gave way to another transaction: nothing of it may stay.
                (Some(state), _) if state.starts_with("57P") || state == "40001" => {}
                (Some(state), _) => bail!("writer {}: {operation:?} failed with {state}", self.number),
            }
        }
        Ok(())
    }

    fn expected(&self) -> BTreeMap<i64, Effect> {
        self.kept
            .iter()
            .map(|(seq, operation)| (*seq, operation.effect()))
            .filter(|(_, e)| *e != (0, 0, 0, 0))
            .collect()
    }
}

/// Runs one operation; the SQLSTATE if the server refuses it.
fn perform(client: &mut Client, operation: Operation, writer: usize, seq: i64) -> Result<Option<String>> {
    let mut refused = None;
    for statement in operation.statements(writer, seq) {
        let lines = (0..COPY_ROWS / 1000).map(|chunk| {
            (0..1000).map(|line| format!("{writer}\t{seq}\t{}\n", chunk * 1000 + line)).collect::<String>().into_bytes()
        });
        let error = client.query_copying(&statement, &mut lines.into_iter())?.error;
        refused = refused.or(error.map(|error| error.sqlstate().to_string()));
    }
    Ok(refused)
}

/// Runs the test.
pub fn run(options: &Options) -> Result<Summary> {
    let arguments: Vec<&str> = options.server_arguments.iter().map(String::as_str).collect();
    let mut server = Server::start_with(&arguments)?;
    let outcome = rounds(&mut server, options);
    server.explain(outcome)
}

fn rounds(server: &mut Server, options: &Options) -> Result<Summary> {
    let mut rng = StdRng::seed_from_u64(options.seed);
    let mut writers: Vec<Writer> = (0..WRITERS)
        .map(|number| Writer {
            number,
            rng: StdRng::seed_from_u64(rng.random()),
            next: 1,
            kept: BTreeMap::new(),
            doubtful: None,
            acknowledged: 0,
        })
        .collect();
    set_up(server)?;
    let mut summary = Summary::default();
    let started = Instant::now();
    while summary.rounds < options.rounds && started.elapsed() < options.time {
        let before: u64 = writers.iter().map(|writer| writer.acknowledged).sum();
        round(server, &mut writers, &mut rng, &mut summary)
            .with_context(|| format!("seed {}, round {}", options.seed, summary.rounds))?;
        summary.rounds += 1;
        summary.acknowledged = writers.iter().map(|writer| writer.acknowledged).sum();
        if summary.rounds.is_multiple_of(20) {
            println!("{summary} (+{})", summary.acknowledged - before);
        }
    }
    Ok(summary)
}

fn set_up(server: &Server) -> Result<()> {
    let mut client = server.client()?;
    for table in TABLES {
        client.run(table)?;
    }
    for writer in 0..WRITERS {
        client.run(&format!("INSERT INTO counters VALUES ({writer}, 0)"))?;
        client.run(&format!("INSERT INTO b VALUES ({writer}, 0, 0)"))?;
    }
    for (name, query) in VIEWS {
        client.run(&format!("CREATE MATERIALIZED VIEW {name} AS {query}"))?;
    }
    Ok(())
}

/// Work, kill, restart, check.
fn round(server: &mut Server, writers: &mut [Writer], rng: &mut StdRng, summary: &mut Summary) -> Result<()> {
    let port = server.port();
    let stop = Arc::new(AtomicBool::new(false));
    let reads = AtomicU64::new(0);
    let pause = Duration::from_micros(rng.random_range(5_000..600_000));
    let make_view = rng.random_bool(0.3);
    std::thread::scope(|scope| -> Result<()> {
        let mut threads = Vec::new();
        for writer in writers.iter_mut() {
            let stop = &stop;
            threads.push(scope.spawn(move || writer.work(port, stop)));
        }
        for _ in 0..READERS {
            let (stop, reads) = (&stop, &reads);
            threads.push(scope.spawn(move || read(port, stop, reads)));
        }
        if make_view {
            let stop = &stop;
            threads.push(scope.spawn(move || make_and_drop_views(port, stop)));
        }
        std::thread::sleep(pause);
        let killed = server.kill();
        stop.store(true, Ordering::Relaxed);
        for thread in threads {
            thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        }
        killed
    })?;
    summary.reads += reads.load(Ordering::Relaxed);
    summary.slowest_restart = summary.slowest_restart.max(server.restart()?);
    check(server, writers, summary)
}

/// Reads until the connection breaks; what must be 0 is 0.
fn read(port: u16, stop: &AtomicBool, reads: &AtomicU64) -> Result<()> {
    let Ok(mut client) = Client::connect(port) else { return Ok(()) };
    while !stop.load(Ordering::Relaxed) {
        for sql in ALWAYS_ZERO {
            let Ok(answers) = client.query(sql) else { return Ok(()) };
            if let Some(error) = answers.error {
                if error.sqlstate().starts_with("57P") {
                    return Ok(());
                }
                bail!("a read failed: {error}: {sql}");
            }
            let rows = answers.answers.into_iter().last().unwrap_or_default().rows;
            let zero = rows.len() == 1 && rows[0].len() == 1 && rows[0][0].as_deref().and_then(as_number) == Some(0.0);
            if !zero {
                bail!("an inconsistent read: {rows:?} from {sql}");
            }
            reads.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(())
}

fn as_number(text: &str) -> Option<f64> {
    text.parse().ok()
}

const EXTRA_VIEW: &str = "SELECT writer, count(DISTINCT part) AS parts, count(*) AS n FROM a GROUP BY writer";

fn make_and_drop_views(port: u16, stop: &AtomicBool) -> Result<()> {
    let Ok(mut client) = Client::connect(port) else { return Ok(()) };
    while !stop.load(Ordering::Relaxed) {
        for sql in [format!("CREATE MATERIALIZED VIEW extra AS {EXTRA_VIEW}"), "DROP MATERIALIZED VIEW extra".into()] {
            let Ok(answers) = client.query(&sql) else { return Ok(()) };
            match answers.error {
                // The last round may have left one.
                Some(error) if error.sqlstate() == "42P07" || error.sqlstate().starts_with("57P") => {}
                Some(error) => bail!("{sql}: {error}"),
                None => {}
            }
        }
    }
    Ok(())
}

/// All promises, after a restart.
fn check(server: &Server, writers: &mut [Writer], summary: &mut Summary) -> Result<()> {
    let mut client = server.client()?;
    for writer in writers {
        let found = effects(&mut client, writer.number)?;
        let counted = found.0;
        let mut expected = writer.expected();
        let mut rows = found.1;
        if let Some((seq, operation)) = writer.doubtful.take() {
            let effect = operation.effect();
            let there = settle(&rows, counted, &expected, seq, effect)
                .with_context(|| format!("writer {}, {operation:?} {seq} was in doubt", writer.number))?;
            if there {
                summary.doubtful_kept += 1;
                writer.kept.insert(seq, operation);
                expected.insert(seq, effect);
            } else {
                summary.doubtful_lost += 1;
            }
        }
        let count: i64 = expected.values().map(|effect| effect.2).sum();
        if count != counted {
            bail!("writer {}: the counter is {counted}, {count} updates were acknowledged", writer.number);
        }
        for (seq, effect) in &expected {
            let here = rows.remove(seq).unwrap_or_default();
            if here != (effect.0, effect.1, effect.3) {
                bail!("writer {}: operation {seq} should have {effect:?} rows, found {here:?}", writer.number);
            }
        }
        rows.remove(&0);
        if let Some((seq, here)) = rows.first_key_value() {
            bail!("writer {}: operation {seq} was not acknowledged, found {here:?} rows", writer.number);
        }
    }
    check_views(&mut client)
}

/// Whether the operation in doubt is there: all of it or nothing of it.
fn settle(
    rows: &BTreeMap<i64, (i64, i64, i64)>,
    counted: i64,
    expected: &BTreeMap<i64, Effect>,
    seq: i64,
    effect: Effect,
) -> Result<bool> {
    let here = rows.get(&seq).copied().unwrap_or_default();
    let more = counted - expected.values().map(|effect| effect.2).sum::<i64>();
    let seen = (here.0, here.1, more, here.2);
    match seen {
        (0, 0, 0, 0) => Ok(false),
        seen if seen == effect => Ok(true),
        seen => bail!("it is there in part: {seen:?} of {effect:?}"),
    }
}

type Found = (i64, BTreeMap<i64, (i64, i64, i64)>);

/// The counter of a writer, and its rows in a, b and c by sequence number.
fn effects(client: &mut Client, writer: usize) -> Result<Found> {
    let counted = client.value(&format!("SELECT n FROM counters WHERE writer = {writer}"))?.parse()?;
    let mut rows: BTreeMap<i64, (i64, i64, i64)> = BTreeMap::new();
    for (position, table) in ["a", "b", "c"].iter().enumerate() {
        let sql = format!("SELECT seq, count(*) FROM {table} WHERE writer = {writer} GROUP BY seq");
        for row in client.rows(&sql)? {
            let number = |at: usize| -> Result<i64> { Ok(row[at].as_deref().context("NULL")?.parse()?) };
            let entry = rows.entry(number(0)?).or_default();
            *[&mut entry.0, &mut entry.1, &mut entry.2][position] = number(1)?;
        }
    }
    Ok((counted, rows))
}

fn check_views(client: &mut Client) -> Result<()> {
    let has_extra = client.query("SELECT 1 FROM extra LIMIT 1")?.error.is_none();
    let views = VIEWS.iter().copied().chain(has_extra.then_some(("extra", EXTRA_VIEW)));
    for (name, query) in views {
        let view: Vec<Row> = client.rows(&format!("SELECT * FROM {name}"))?;
        let query: Vec<Row> = client.rows(query)?;
        if let Some(text) = difference(&view, &query) {
            bail!("view {name} is not its query: {text}");
        }
    }
    for sql in ALWAYS_ZERO {
        let value = client.value(sql)?;
        if as_number(&value) != Some(0.0) {
            bail!("{value} instead of 0 from {sql}");
        }
    }
    Ok(())
}
