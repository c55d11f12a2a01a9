//! The queries of a benchmark as materialized views, each made once before the load and once after it, and kept up to date through changes.
//!
//! After the load, after every change and after `kill -9` each view must hold what its SELECT gives when it is run ad hoc, and that
//! must be what PostgreSQL gives over the same rows. Used by [`crate::tpch`] and [`crate::nexmark`], which bring data and changes.

use anyhow::{Context, Result, bail};
use std::time::Instant;

use crate::equivalence::{difference, leave_out_near};
use crate::oracle::Postgres;
use crate::process::Server;
use crate::wire::{Client, Row};

/// A query of the benchmark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// Its name, as `q01`.
    pub name: String,
    /// Its text.
    pub sql: String,
    /// Its text in PostgreSQL, where the dialect differs.
    pub oracle: Option<String>,
    /// The columns whose values are decided whatever row is taken of those that tie; all, if it does not say.
    pub decides: Option<String>,
}

/// Reads a file of queries. After a line of comment each begins with a line `-- NAME`; `-- NAME in PostgreSQL` begins its text there, and
/// `-- NAME decides COLUMNS` names what ties leave decided.
pub fn parse(text: &str) -> Vec<Query> {
    let mut found: Vec<Query> = Vec::new();
    let mut in_oracle = false;
    for line in text.lines().skip(1) {
        let header = line.strip_prefix("-- ").map(|header| header.split_once(' ').unwrap_or((header, "")));
        match (header, found.last_mut()) {
            (Some((_, "in PostgreSQL")), Some(query)) => {
                query.oracle = Some(String::new());
                in_oracle = true;
            }
            (Some((_, rest)), Some(query)) if rest.starts_with("decides ") => {
                query.decides = rest.strip_prefix("decides ").map(str::to_string);
            }
            (Some((name, _)), _) => {
                found.push(Query { name: name.into(), sql: String::new(), oracle: None, decides: None });
                in_oracle = false;
            }
            (None, Some(query)) => {
                let text = query.oracle.as_mut().filter(|_| in_oracle).unwrap_or(&mut query.sql);
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    found
}

/// What differs from one benchmark to the other.
pub struct Benchmark {
    /// Its queries.
    pub queries: Vec<Query>,
    /// Names and columns of its tables, in the order of their loading.
    pub tables: &'static [(&'static str, &'static str)],
    /// What only PostgreSQL runs after the load: indexes without which its queries would take minutes.
    pub oracle_indexes: &'static str,
    /// How far a number may be from PostgreSQL's, relatively: the texts of numbers are read as doubles.
    pub tolerance: f64,
}

/// A benchmark on the server under test, and on PostgreSQL if it is there.
pub struct World<'a> {
    benchmark: &'a Benchmark,
    server: &'a mut Server,
    here: Client,
    oracle: Option<Client>,
    started: Instant,
}

impl<'a> World<'a> {
    /// Makes the tables, and checks that every query is planned incrementally.
    pub fn new(benchmark: &'a Benchmark, server: &'a mut Server, oracle: Option<&Postgres>) -> Result<Self> {
        let oracle = oracle.map(Postgres::client).transpose()?;
        let here = server.client()?;
        let mut world = World { benchmark, server, here, oracle, started: Instant::now() };
        for (table, columns) in benchmark.tables {
            world.everywhere(&format!("CREATE TABLE {table} ({columns})"))?;
        }
        world.check_plans()?;
        Ok(world)
    }

    /// Runs a statement on both.
    pub fn everywhere(&mut self, sql: &str) -> Result<()> {
        self.here.run(sql)?;
        if let Some(oracle) = &mut self.oracle {
            oracle.run(sql).context("PostgreSQL")?;
        }
        Ok(())
    }

    /// Makes the views before and after the load, of rows as CSV by table, and compares.
    pub fn load(&mut self, csv: &dyn Fn(&str) -> String) -> Result<()> {
        self.make_views("before")?;
        for (table, _) in self.benchmark.tables {
            self.copy(table, &csv(table))?;
        }
        if let Some(oracle) = &mut self.oracle {
            oracle.run(self.benchmark.oracle_indexes)?;
        }
        self.make_views("after")?;
        let empty = self.compare("loaded")?;
        if !empty.is_empty() {
            bail!("loaded: without rows, which proves nothing: {}", empty.join(" "));
        }
        Ok(())
    }

    /// Adds rows to a table by COPY.
    pub fn copy(&mut self, table: &str, rows: &str) -> Result<()> {
        let statement = format!("COPY {table} FROM STDIN WITH (FORMAT csv)");
        let chunks = || rows.as_bytes().chunks(64 * 1024).map(<[u8]>::to_vec);
        self.here.copy_in(&statement, &mut chunks())?;
        if let Some(oracle) = &mut self.oracle {
            oracle.copy_in(&statement, &mut chunks()).context("PostgreSQL")?;
        }
        Ok(())
    }

    fn make_views(&mut self, when: &str) -> Result<()> {
        for Query { name, sql, .. } in &self.benchmark.queries {
            let statement = format!("CREATE MATERIALIZED VIEW {when}_{name} AS {sql}");
            self.here.run(&statement).with_context(|| format!("{name} is refused"))?;
        }
        Ok(())
    }

    /// Each view against its SELECT, and that against PostgreSQL; the queries without rows.
    pub fn compare(&mut self, when: &str) -> Result<Vec<&'a str>> {
        let mut empty = Vec::new();
        let mut rows = 0;
        for query in &self.benchmark.queries {
            let Query { name, sql, .. } = query;
            let queried = self.here.rows(sql).with_context(|| format!("{when}: {name}"))?;
            for made in ["before", "after"] {
                let stored = self.here.rows(&format!("SELECT * FROM {made}_{name}"))?;
                if let Some(text) = difference(&stored, &queried) {
                    bail!("{when}: view {made}_{name} against its SELECT: {text}");
                }
            }
            rows += queried.len();
            if queried.is_empty() {
                empty.push(name.as_str());
            }
            if let Some(text) = self.against_oracle(query, queried)? {
                bail!("{when}: {name} against PostgreSQL: {text}");
            }
        }
        println!(
            "  {:5.1} s, {when}: {} views equal their queries{}, {rows} rows",
            self.started.elapsed().as_secs_f64(),
            2 * self.benchmark.queries.len(),
            if self.oracle.is_some() { " and PostgreSQL" } else { "" }
        );
        Ok(empty)
    }

    /// What a query gives here against what it gives there, in the columns that are decided.
    fn against_oracle(&mut self, query: &Query, mut queried: Vec<Row>) -> Result<Option<String>> {
        let Some(oracle) = &mut self.oracle else { return Ok(None) };
        let theirs = query.oracle.as_ref().unwrap_or(&query.sql);
        let mut expected = match &query.decides {
            None => oracle.rows(theirs),
            Some(columns) => {
                queried = self.here.rows(&format!("SELECT {columns} FROM before_{}", query.name))?;
                oracle.rows(&format!("SELECT {columns} FROM ({theirs}) decided"))
            }
        }
        .with_context(|| format!("PostgreSQL: {}", query.name))?;
        leave_out_near(&mut queried, &mut expected, self.benchmark.tolerance);
        Ok(difference(&queried, &expected))
    }

    /// kill -9 and a new start, and compares.
    pub fn restart(&mut self) -> Result<()> {
        let elapsed = self.server.restart()?;
        self.here = self.server.client()?;
        self.compare(&format!("kill -9, answers again after {:.0} ms", elapsed.as_secs_f64() * 1e3))?;
        Ok(())
    }

    /// No query may have a Recompute node.
    fn check_plans(&mut self) -> Result<()> {
        for Query { name, sql, .. } in &self.benchmark.queries {
            let lines = self.here.rows(&format!("EXPLAIN CREATE MATERIALIZED VIEW explained AS {sql}"))?;
            let is_node = |row: &Row| row[0].as_ref().is_some_and(|line| line.trim_start().starts_with("-> recompute"));
            if lines.iter().any(is_node) {
                bail!("{name} has a Recompute node");
            }
        }
        Ok(())
    }
}

/// Runs a benchmark on a server of its own. Without an oracle only views and their queries are compared.
pub fn run(
    benchmark: &Benchmark,
    oracle: Option<&Postgres>,
    changes: impl FnOnce(&mut World<'_>) -> Result<()>,
) -> Result<()> {
    let mut server = Server::start()?;
    let outcome = World::new(benchmark, &mut server, oracle).and_then(|mut world| changes(&mut world));
    server.explain(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_queries_is_read_by_its_headers() {
        let query = |name: &str, sql: &str, oracle: Option<&str>, decides: Option<&str>| Query {
            name: name.into(),
            sql: sql.into(),
            oracle: oracle.map(str::to_string),
            decides: decides.map(str::to_string),
        };
        assert_eq!(
            parse(
                "-- a title\n-- a\nselect 1\nfrom t\n-- a in PostgreSQL\nselect 2\n-- a decides x, y\n-- b\nselect 3\n"
            ),
            vec![
                query("a", "select 1\nfrom t\n", Some("select 2\n"), Some("x, y")),
                query("b", "select 3\n", None, None)
            ]
        );
    }
}
