//! The measurements that `cargo run --release -p sql-tests --bin bench` prints.
//!
//! Each figure is the median of several runs (or a percentile over all samples of a run); the client shares the machine with the
//! server, so its cost is part of every figure. PostgreSQL, where it is installed, does the same work for comparison.

mod work;

use anyhow::{Context, Result, bail};
use hdrhistogram::Histogram;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::flights;
use crate::oracle::Postgres;
use crate::process::{Server, binary};
use crate::wire::Client;

/// What to measure, and how long.
#[derive(Debug, Clone)]
pub struct Options {
    /// Runs of each load.
    pub runs: usize,
    /// Time of each latency measurement.
    pub time: Duration,
    /// Size of the data directory for the start-up measurement, in bytes; 0 skips it.
    pub large_bytes: u64,
    /// Measures PostgreSQL too.
    pub postgres: bool,
    /// Only sections whose name contains this.
    pub filter: String,
    /// Stored rows of each measurement of work per change, ascending.
    pub rows: Vec<u64>,
    /// Measures work per change only for operators whose name contains this.
    pub operator: String,
}

/// Prints everything.
pub fn run(options: &Options) -> Result<()> {
    let wanted = |name: &str| options.filter.is_empty() || name.contains(&options.filter);
    if wanted("machine") {
        machine()?;
    }
    if wanted("size") {
        let bytes = std::fs::metadata(binary())?.len();
        println!("binary size: {:.1} MB", bytes as f64 / 1e6);
    }
    if wanted("load") {
        loads(options)?;
    }
    if wanted("insert") {
        inserts(options)?;
    }
    if wanted("read") {
        reads(options)?;
    }
    if wanted("start") {
        starts(options)?;
    }
    if wanted("work") {
        work::run(options)?;
    }
    Ok(())
}

fn machine() -> Result<()> {
    let cores = std::thread::available_parallelism()?;
    println!("machine: {cores} cores, fdatasync of 4 KB: {:?} (median)", sync_time(&std::env::temp_dir())?);
    Ok(())
}

fn sync_time(directory: &Path) -> Result<Duration> {
    let path = tempfile::Builder::new().tempfile_in(directory)?;
    let mut file = path.as_file();
    let mut samples = Vec::new();
    for _ in 0..200 {
        let started = Instant::now();
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        samples.push(started.elapsed());
    }
    Ok(median(&mut samples))
}

fn median<T: Copy + PartialOrd>(samples: &mut [T]) -> T {
    samples.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    samples[samples.len() / 2]
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

// ------------------------------------------------------------------------------------------------ loads

fn loads(options: &Options) -> Result<()> {
    if let Err(why) = flights::data() {
        println!("skipped: load: {why:#}");
        return Ok(());
    }
    let data = flights::unpacked("flights")?;
    let weather = flights::unpacked("weather")?;
    for workers in ["1", "2"] {
        for views in [0, 5] {
            let mut rates = Vec::new();
            let mut memory = Vec::new();
            for _ in 0..options.runs {
                let server = Server::start_with(&["--workers", workers])?;
                let mut client = server.client()?;
                let rest = server.memory()?.0;
                rates.push(load(&mut client, &data, &weather, views)?);
                memory.push((rest, server.memory()?.1));
            }
            let (rest, peak) = median(&mut memory);
            println!(
                "load of {} flights, {views} views, {workers} workers: {:.0} rows/s (median of {}); memory at rest {}, at peak {}",
                flights::FLIGHTS,
                median(&mut rates),
                options.runs,
                megabytes(rest),
                megabytes(peak)
            );
        }
    }
    if options.postgres
        && let Ok(postgres) = Postgres::start_with(&[])
    {
        let mut client = postgres.client()?;
        let mut rates = Vec::new();
        for _ in 0..options.runs {
            rates.push(load(&mut client, &data, &weather, 0)?);
            client.run("DROP TABLE flights, weather")?;
        }
        println!("  PostgreSQL, no views: {:.0} rows/s", median(&mut rates));
    }
    Ok(())
}

fn load(client: &mut Client, data: &[u8], weather: &[u8], views: usize) -> Result<f64> {
    flights::TABLES.iter().try_for_each(|table| client.run(table).map(|_| ()))?;
    client.copy_in(&flights::copy_statement("weather"), &mut flights::chunks(weather))?;
    for view in &flights::VIEWS[..views] {
        client.run(&format!("CREATE MATERIALIZED VIEW {} AS {}", view.name, view.query))?;
    }
    let started = Instant::now();
    let count = client.copy_in(&flights::copy_statement("flights"), &mut flights::chunks(data))?;
    Ok(count as f64 / started.elapsed().as_secs_f64())
}

// ------------------------------------------------------------------------------------------------ inserts

const INSERT_TABLE: &str =
    "CREATE TABLE events (id bigint, account int, kind text, amount numeric(10,2), at timestamp)";

/// Ten views as an application has them: projections, filters, aggregates, a window, a join, a view on a view.
const INSERT_VIEWS: [&str; 10] = [
    "CREATE MATERIALIZED VIEW m0 AS SELECT account, count(*) AS n, sum(amount) AS s FROM events GROUP BY account",
    "CREATE MATERIALIZED VIEW m1 AS SELECT kind, count(*) AS n, max(amount) AS m FROM events GROUP BY kind",
    "CREATE MATERIALIZED VIEW m2 AS SELECT count(*) AS n, sum(amount) AS s, avg(amount) AS a FROM events",
    "CREATE MATERIALIZED VIEW m3 AS SELECT id, amount * 2 AS d FROM events WHERE amount > 50",
    "CREATE MATERIALIZED VIEW m4 AS SELECT window_start, count(*) AS n FROM TUMBLE(events, at, INTERVAL '1 minute') GROUP BY window_start",
    "CREATE MATERIALIZED VIEW m5 AS SELECT DISTINCT account, kind FROM events",
    "CREATE MATERIALIZED VIEW m6 AS SELECT e.id, e.amount, a.name FROM events e JOIN accounts a ON e.account = a.id",
    "CREATE MATERIALIZED VIEW m7 AS SELECT name, sum(amount) AS s FROM m6 GROUP BY name",
    "CREATE MATERIALIZED VIEW m8 AS SELECT account % 10 AS bucket, min(amount) AS lo, max(amount) AS hi FROM events GROUP BY account % 10",
    "CREATE MATERIALIZED VIEW m9 AS SELECT account, count(DISTINCT kind) AS kinds FROM events GROUP BY account",
];

fn prepare_inserts(client: &mut Client, views: usize) -> Result<()> {
    client.run(INSERT_TABLE)?;
    client.run("CREATE TABLE accounts (id int PRIMARY KEY, name text)")?;
    let accounts: Vec<String> = (0..1000).map(|id| format!("({id}, 'account {}')", id % 100)).collect();
    client.run(&format!("INSERT INTO accounts VALUES {}", accounts.join(", ")))?;
    INSERT_VIEWS[..views].iter().try_for_each(|view| client.run(view).map(|_| ()))
}

fn inserts(options: &Options) -> Result<()> {
    for views in [0, 10] {
        let server = Server::start()?;
        prepare_inserts(&mut server.client()?, views)?;
        for connections in [1, 16] {
            let label = format!("single-row INSERT, {views} views");
            insert_rate(server.port(), connections, options.time, &label)?;
        }
        if views == 10 {
            paced_inserts(server.port(), options.time)?;
        }
        let (rest, peak) = server.memory()?;
        println!("  memory after it {}, at peak {}", megabytes(rest), megabytes(peak));
    }
    if options.postgres {
        let postgres = Postgres::start_with(&["-c", "shared_buffers=512MB"])?;
        prepare_inserts(&mut postgres.client()?, 0)?;
        for connections in [1, 16] {
            insert_rate(postgres.port(), connections, options.time, "  PostgreSQL, no views")?;
        }
    }
    Ok(())
}

/// Each connection inserts as fast as it is acknowledged.
fn insert_rate(port: u16, connections: usize, time: Duration, label: &str) -> Result<()> {
    let sql = |connection: usize, number: u64| {
        let account = (number * 7919 + connection as u64) % 1000;
        format!(
            "INSERT INTO events VALUES ({number}, {account}, 'kind {}', {}.25, '2024-01-01 00:{:02}:{:02}')",
            number % 5,
            number % 100,
            number / 60 % 60,
            number % 60
        )
    };
    let (count, histogram, elapsed) = hammer(port, connections, time, &sql)?;
    print_rate(label, connections, count, &histogram, elapsed);
    Ok(())
}

fn print_rate(label: &str, connections: usize, count: u64, histogram: &Histogram<u64>, elapsed: Duration) {
    let quantile = |q: f64| histogram.value_at_quantile(q) as f64 / 1000.0;
    println!(
        "{label}, {connections} connections: {:.0}/s, p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms",
        count as f64 / elapsed.as_secs_f64(),
        quantile(0.5),
        quantile(0.99),
        histogram.max() as f64 / 1000.0
    );
}

type Hammered = (u64, Histogram<u64>, Duration);

/// Runs simple queries on several connections; latencies in microseconds.
fn hammer(
    port: u16,
    connections: usize,
    time: Duration,
    sql: &(dyn Fn(usize, u64) -> String + Sync),
) -> Result<Hammered> {
    let stop = AtomicBool::new(false);
    let started = Instant::now();
    let results: Vec<Result<Histogram<u64>>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections)
            .map(|connection| {
                let stop = &stop;
                scope.spawn(move || {
                    let mut histogram = Histogram::new(3)?;
                    let mut client = Client::connect(port)?;
                    let mut number = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let text = sql(connection, number);
                        let sent = Instant::now();
                        client.run(&text)?;
                        histogram.record(sent.elapsed().as_micros() as u64)?;
                        number += 1;
                    }
                    Ok(histogram)
                })
            })
            .collect();
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| bail!("a thread panicked"))).collect()
    });
    let elapsed = started.elapsed();
    let mut all = Histogram::new(3)?;
    for result in results {
        all.add(result?)?;
    }
    Ok((all.len(), all, elapsed))
}

/// 1,000 inserts a second from one connection: what a client sees when the server is not saturated.
fn paced_inserts(port: u16, time: Duration) -> Result<()> {
    let mut client = Client::connect(port)?;
    let mut histogram: Histogram<u64> = Histogram::new(3)?;
    let started = Instant::now();
    let mut number = 0;
    while started.elapsed() < time {
        let due = started + Duration::from_millis(number);
        if let Some(wait) = due.checked_duration_since(Instant::now()) {
            std::thread::sleep(wait);
        }
        let sent = Instant::now();
        client
            .run(&format!("INSERT INTO events VALUES ({number}, {}, 'paced', 1.5, now()::timestamp)", number % 1000))?;
        histogram.record(sent.elapsed().as_micros() as u64)?;
        number += 1;
    }
    print_rate("single-row INSERT at 1,000 a second, 10 views", 1, number, &histogram, started.elapsed());
    Ok(())
}

// ------------------------------------------------------------------------------------------------ reads

fn reads(options: &Options) -> Result<()> {
    let server = Server::start()?;
    let mut client = server.client()?;
    fill_for_reads(&mut client)?;
    client.run("CREATE MATERIALIZED VIEW by_account AS SELECT account, count(*) AS n, sum(amount) AS s FROM entries GROUP BY account")?;
    measure_reads(server.port(), options, "")?;
    if options.postgres {
        let postgres = Postgres::start_with(&[])?;
        let mut client = postgres.client()?;
        fill_for_reads(&mut client)?;
        client.run(
            "CREATE TABLE by_account AS SELECT account, count(*) AS n, sum(amount) AS s FROM entries GROUP BY account",
        )?;
        client.run("CREATE UNIQUE INDEX ON by_account (account)")?;
        client.run("ANALYZE")?;
        measure_reads(postgres.port(), options, "  PostgreSQL (table with an index): ")?;
    }
    Ok(())
}

const ACCOUNTS: u64 = 100_000;

fn fill_for_reads(client: &mut Client) -> Result<()> {
    client.run("CREATE TABLE entries (account int, amount numeric(10,2))")?;
    let mut chunks = (0..200).map(|chunk| {
        (0..1000_u64)
            .map(|line| format!("{}\t{}.5\n", (chunk * 1000 + line) % ACCOUNTS, line))
            .collect::<String>()
            .into_bytes()
    });
    client.copy_in("COPY entries FROM STDIN", &mut chunks)?;
    Ok(())
}

fn measure_reads(port: u16, options: &Options, label: &str) -> Result<()> {
    for connections in [1, 16] {
        let sql = |connection: usize, number: u64| {
            format!("SELECT * FROM by_account WHERE account = {}", (number * 7919 + connection as u64) % ACCOUNTS)
        };
        let (count, histogram, elapsed) = hammer(port, connections, options.time, &sql)?;
        print_rate(&format!("{label}point read, simple protocol"), connections, count, &histogram, elapsed);
        let (count, histogram, elapsed) = prepared(port, connections, options.time)?;
        print_rate(&format!("{label}point read, prepared"), connections, count, &histogram, elapsed);
    }
    let mut client = Client::connect(port)?;
    let mut rates = Vec::new();
    for _ in 0..options.runs.max(3) {
        let started = Instant::now();
        let rows = client.rows("SELECT * FROM by_account")?.len();
        rates.push(rows as f64 / started.elapsed().as_secs_f64());
    }
    println!("{label}full scan of a view of {ACCOUNTS} rows: {:.0} rows/s", median(&mut rates));
    Ok(())
}

fn prepared(port: u16, connections: usize, time: Duration) -> Result<Hammered> {
    let stop = AtomicBool::new(false);
    let started = Instant::now();
    let results: Vec<Result<Histogram<u64>>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..connections)
            .map(|connection| {
                let stop = &stop;
                scope.spawn(move || prepared_reader(port, connection, stop))
            })
            .collect();
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| bail!("a thread panicked"))).collect()
    });
    let elapsed = started.elapsed();
    let mut all = Histogram::new(3)?;
    for result in results {
        all.add(result?)?;
    }
    Ok((all.len(), all, elapsed))
}

fn prepared_reader(port: u16, connection: usize, stop: &AtomicBool) -> Result<Histogram<u64>> {
    let mut client = Client::connect(port)?;
    client.parse("s", "SELECT * FROM by_account WHERE account = $1", &[23])?;
    client.sync()?;
    client.until_ready()?;
    let mut histogram = Histogram::new(3)?;
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        let key = ((number * 7919 + connection as u64) % ACCOUNTS).to_string();
        let sent = Instant::now();
        client.bind("", "s", &[], &[Some(key.as_bytes())], &[])?;
        client.execute("", 0)?;
        client.sync()?;
        let messages = client.until_ready()?;
        if let Some(error) = crate::wire::first_error(&messages) {
            return Err(error.into());
        }
        histogram.record(sent.elapsed().as_micros() as u64)?;
        number += 1;
    }
    Ok(histogram)
}

// ------------------------------------------------------------------------------------------------ start

fn starts(options: &Options) -> Result<()> {
    let mut times = Vec::new();
    let mut rest = Vec::new();
    for _ in 0..options.runs.max(3) {
        let mut server = Server::start()?;
        server.stop()?;
        times.push(server.restart()?);
        std::thread::sleep(Duration::from_millis(300));
        rest.push(server.memory()?.0);
    }
    println!(
        "start on an empty data directory: {:?}; idle memory {}",
        median(&mut times),
        megabytes(median(&mut rest))
    );
    if options.large_bytes == 0 {
        println!("skipped: start on a large data directory: --large-gb 0");
        return Ok(());
    }
    let mut server = Server::start()?;
    let mut client = server.client()?;
    client.run("CREATE TABLE wide (id bigint, a text, b text, c double precision)")?;
    client.run("CREATE MATERIALIZED VIEW wide_groups AS SELECT id % 1000000 AS g, count(*) AS n, sum(c) AS s FROM wide GROUP BY id % 1000000")?;
    let mut next = 0_u64;
    while size_of(&server.data_directory())? < options.large_bytes {
        let mut chunks = (0..500).map(|_| {
            next += 1000;
            (next - 1000..next).map(wide_line).collect::<String>().into_bytes()
        });
        client.copy_in("COPY wide FROM STDIN", &mut chunks)?;
    }
    let bytes = size_of(&server.data_directory())?;
    let mut times = Vec::new();
    for _ in 0..3 {
        server.kill()?;
        times.push(server.restart()?);
    }
    println!(
        "start after kill -9 on a data directory of {:.1} GB, {next} rows: {:?}",
        bytes as f64 / 1e9,
        median(&mut times)
    );
    Ok(())
}

/// A line that does not compress away.
fn wide_line(id: u64) -> String {
    let noise = |salt: u64| {
        let mixed = (id ^ salt).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ (mixed >> 31)
    };
    format!(
        "{id}\t{:016x}{:016x}{:016x}\t{:016x}{:016x}\t{}\n",
        noise(1),
        noise(2),
        noise(3),
        noise(4),
        noise(5),
        id % 977
    )
}

fn size_of(directory: &Path) -> Result<u64> {
    let mut total = 0;
    for entry in std::fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let entry = entry?;
        // Files may vanish while they are counted.
        let Ok(metadata) = entry.metadata() else { continue };
        total += if metadata.is_dir() { size_of(&entry.path())? } else { metadata.len() };
    }
    Ok(total)
}
