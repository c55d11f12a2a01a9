//! A year of real flights: five standing queries over them, each compared row for row with PostgreSQL.
//!
//! The data (nycflights13: 336,776 flights and 26,115 hours of weather, NA is NULL) is not part of the checkout; see
//! [`crate::process::shared`].

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::equivalence::{difference, plain_numbers};
use crate::oracle::Postgres;
use crate::process::{Server, shared};
use crate::wire::{Client, Row};

/// Flights in the file.
pub const FLIGHTS: u64 = 336_776;
/// Hours of weather in the file.
pub const WEATHER: u64 = 26_115;

/// The two tables.
pub const TABLES: [&str; 2] = [
    "CREATE TABLE flights (
  year int, month int, day int, dep_time int, sched_dep_time int, dep_delay int,
  arr_time int, sched_arr_time int, arr_delay int, carrier text, flight int, tailnum text,
  origin text, dest text, air_time int, distance int, hour int, minute int, time_hour timestamptz)",
    "CREATE TABLE weather (
  origin text, year int, month int, day int, hour int, temp double precision, dewp double precision,
  humid double precision, wind_dir int, wind_speed double precision, wind_gust double precision,
  precip double precision, pressure double precision, visib double precision, time_hour timestamptz)",
];

/// A standing query, and how PostgreSQL says it.
pub struct Standing {
    /// Name of the view.
    pub name: &'static str,
    /// Its SELECT.
    pub query: &'static str,
    /// The same in PostgreSQL, if it has another spelling there.
    pub oracle: Option<&'static str>,
}

/// The five views.
pub const VIEWS: [Standing; 5] = [
    Standing {
        name: "delay_by_hour",
        query: "SELECT carrier, window_start, count(*) AS flights, avg(dep_delay) AS mean_delay, max(dep_delay) AS max_delay
FROM TUMBLE(flights, time_hour, INTERVAL '1 hour') GROUP BY carrier, window_start, window_end",
        oracle: Some(
            "SELECT carrier, date_bin('1 hour', time_hour, '1970-01-01 00:00:00+00'), count(*), avg(dep_delay), max(dep_delay)
FROM flights GROUP BY 1, 2",
        ),
    },
    Standing {
        name: "delay_by_three_hours",
        query: "SELECT carrier, window_start, window_end, count(*) AS flights, avg(dep_delay) AS mean_delay, max(dep_delay) AS max_delay
FROM HOP(flights, time_hour, INTERVAL '1 hour', INTERVAL '3 hours') GROUP BY carrier, window_start, window_end",
        oracle: Some(
            "SELECT carrier, s, s + INTERVAL '3 hours', count(*), avg(dep_delay), max(dep_delay)
FROM (SELECT f.*, date_bin('1 hour', time_hour, '1970-01-01 00:00:00+00') - n * INTERVAL '1 hour' AS s
      FROM flights f, generate_series(0, 2) n) w GROUP BY 1, 2, 3",
        ),
    },
    Standing {
        name: "cancelled",
        query: "SELECT year, month, day, origin, count(*) AS flights FROM flights WHERE dep_time IS NULL
GROUP BY year, month, day, origin",
        oracle: None,
    },
    Standing {
        name: "delay_by_wind",
        query: "SELECT round(w.wind_speed) AS wind, count(*) AS flights, avg(f.dep_delay) AS mean_delay
FROM flights f JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour GROUP BY round(w.wind_speed)",
        oracle: None,
    },
    Standing {
        name: "worst_routes",
        query: "SELECT origin, dest, count(*) AS flights, avg(arr_delay) AS mean_delay FROM flights
GROUP BY origin, dest HAVING count(arr_delay) > 100 ORDER BY mean_delay DESC, origin, dest LIMIT 10",
        oracle: None,
    },
];

/// Removes every flight of one carrier, and moves 10,000 others in time and place.
pub const CHANGES: [(&str, u64); 2] = [
    ("DELETE FROM flights WHERE carrier = 'MQ'", 26_397),
    (
        "UPDATE flights SET time_hour = time_hour + INTERVAL '90 minutes', dep_delay = dep_delay + 7, origin = 'JFK'
WHERE time_hour >= '2013-07-01 04:00:00+00' AND (time_hour < '2013-07-12 20:00:00+00'
  OR (time_hour = '2013-07-12 20:00:00+00' AND flight <= 89))",
        10_000,
    ),
];

/// The folder with the data; an error says where it was looked for.
pub fn data() -> Result<PathBuf> {
    let directory = shared().join("data/nycflights13");
    if !directory.join("flights.csv.gz").exists() {
        bail!("{} is not there", directory.display());
    }
    Ok(directory.canonicalize()?)
}

/// One file of the data, unpacked.
pub fn unpacked(name: &str) -> Result<Vec<u8>> {
    let output = Command::new("gzip").arg("-dc").arg(data()?.join(format!("{name}.csv.gz"))).output()?;
    if !output.status.success() {
        bail!("gzip: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}

/// Loads one table as a user does: `\copy` in psql. The error is what psql said.
pub fn copy_with_psql(port: u16, table: &str) -> Result<()> {
    let file = data()?.join(format!("{table}.csv.gz"));
    let command =
        format!("\\copy {table} FROM PROGRAM 'gzip -dc {}' WITH (FORMAT csv, HEADER, NULL 'NA')", file.display());
    let output = Command::new("psql")
        .args([
            "-h",
            "127.0.0.1",
            "-p",
            &port.to_string(),
            "-U",
            "tidemill",
            "-v",
            "ON_ERROR_STOP=1",
            "-Xq",
            "-c",
            &command,
        ])
        .arg("tidemill")
        .output()
        .context("psql")?;
    if !output.status.success() {
        bail!("psql: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// The statement and the chunks of a COPY of unpacked data.
pub fn copy_statement(table: &str) -> String {
    format!("COPY {table} FROM STDIN WITH (FORMAT csv, HEADER, NULL 'NA')")
}

/// Data in chunks as psql sends them.
pub fn chunks(data: &[u8]) -> impl Iterator<Item = Vec<u8>> + '_ {
    data.chunks(64 * 1024).map(<[u8]>::to_vec)
}

/// The rows of the five queries after the load and after the changes.
pub struct Expected {
    loaded: Vec<Vec<Row>>,
    changed: Vec<Vec<Row>>,
}

/// Asks PostgreSQL.
pub fn expected(postgres: &Postgres) -> Result<Expected> {
    let mut client = postgres.client()?;
    TABLES.iter().try_for_each(|table| client.run(table).map(|_| ()))?;
    for table in ["flights", "weather"] {
        let data = unpacked(table)?;
        client.copy_in(&copy_statement(table), &mut chunks(&data))?;
    }
    let loaded = oracle_rows(&mut client)?;
    for (sql, count) in CHANGES {
        let answer = client.run(sql)?;
        if answer.count() != count {
            bail!("PostgreSQL changed {} rows instead of {count}", answer.count());
        }
    }
    Ok(Expected { loaded, changed: oracle_rows(&mut client)? })
}

fn oracle_rows(client: &mut Client) -> Result<Vec<Vec<Row>>> {
    VIEWS.iter().map(|view| client.rows(view.oracle.unwrap_or(view.query))).collect()
}

/// Each view and each query against the expected rows.
fn compare(client: &mut Client, expected: &[Vec<Row>], when: &str) -> Result<()> {
    for (view, expected) in VIEWS.iter().zip(expected) {
        let plain = |rows: &[Row]| -> Vec<Row> { rows.iter().map(plain_numbers).collect() };
        for sql in [format!("SELECT * FROM {}", view.name), view.query.to_string()] {
            let rows = client.rows(&sql)?;
            if let Some(text) = difference(&plain(&rows), &plain(expected)) {
                bail!("{when}: {}: {text}\n{sql}", view.name);
            }
        }
        println!("  {when}: {} equals PostgreSQL, {} rows", view.name, expected.len());
    }
    Ok(())
}

fn make_views(client: &mut Client) -> Result<()> {
    for view in &VIEWS {
        client.run(&format!("CREATE MATERIALIZED VIEW {} AS {}", view.name, view.query))?;
    }
    Ok(())
}

fn load(server: &Server) -> Result<()> {
    let started = Instant::now();
    copy_with_psql(server.port(), "weather")?;
    copy_with_psql(server.port(), "flights")?;
    println!("  loaded in {:.2} s", started.elapsed().as_secs_f64());
    let mut client = server.client()?;
    for (table, count) in [("flights", FLIGHTS), ("weather", WEATHER)] {
        let value = client.value(&format!("SELECT count(*) FROM {table}"))?;
        if value != count.to_string() {
            bail!("{value} rows in {table} instead of {count}");
        }
    }
    Ok(())
}

/// Load and changes with the views defined before or after the load.
pub fn run(workers: usize, views_first: bool, expected: &Expected) -> Result<()> {
    println!("{workers} workers, views defined {} the load", if views_first { "before" } else { "after" });
    let mut server = Server::start_with(&["--workers", &workers.to_string()])?;
    let outcome = run_on(&mut server, views_first, expected);
    server.explain(outcome)
}

fn run_on(server: &mut Server, views_first: bool, expected: &Expected) -> Result<()> {
    let mut client = server.client()?;
    TABLES.iter().try_for_each(|table| client.run(table).map(|_| ()))?;
    if views_first {
        make_views(&mut client)?;
        kill_within_the_load(server)?;
        client = server.client()?;
    }
    load(server)?;
    if !views_first {
        make_views(&mut client)?;
    }
    compare(&mut client, &expected.loaded, "loaded")?;
    for (sql, count) in CHANGES {
        let answer = client.run(sql)?;
        if answer.count() != count {
            bail!("{} rows changed instead of {count}: {sql}", answer.count());
        }
    }
    compare(&mut client, &expected.changed, "changed")?;
    let elapsed = server.restart()?;
    println!("  kill -9, answering again after {elapsed:?}");
    compare(&mut server.client()?, &expected.changed, "after kill -9")
}

/// Kills the server within a COPY, three times; what was not acknowledged must be gone.
fn kill_within_the_load(server: &mut Server) -> Result<()> {
    for pause in [50, 300, 900] {
        let port = server.port();
        let load = std::thread::spawn(move || copy_with_psql(port, "flights"));
        std::thread::sleep(Duration::from_millis(pause));
        server.kill()?;
        let acknowledged = load.join().map_err(|_| anyhow::anyhow!("the load panicked"))?.is_ok();
        server.restart()?;
        let mut client = server.client()?;
        let count = client.value("SELECT count(*) FROM flights")?;
        println!("  kill -9 after {pause} ms of the load: {count} rows (acknowledged: {acknowledged})");
        match count.as_str() {
            "0" if !acknowledged => {}
            _ if count == FLIGHTS.to_string() => {
                client.run("DELETE FROM flights")?;
            }
            _ => bail!("{count} rows after kill -9 within the load"),
        }
        for view in &VIEWS {
            let left = client.value(&format!("SELECT count(*) FROM {}", view.name))?;
            if left != "0" {
                bail!("{left} rows in {} over an empty table", view.name);
            }
        }
    }
    Ok(())
}
