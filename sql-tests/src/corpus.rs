//! A corpus of queries with PostgreSQL's answers (`sql-tests/corpus`), each checked three times: run ad hoc, as a materialized view that was made
//! before the data, and as one that was made after it.
//!
//! Every topic is an .slt file of query records over the tables of `tables.slt`. It runs in a schema of its own, so that topics can run side by side.
//! The files are written by `sql-tests/corpus/generator`; queries are known by a hash of their text, so that a line more or less changes nothing.
//! `corpus/expected_failures.txt` lists what is known to fail, under the reason.

use anyhow::{Context, Result, bail};
use sqllogictest::{DefaultColumnType, QueryExpect, Record, SortMode, parse_with_name};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process::checkout;
use crate::wire::{Client, Row};

/// How long one statement may take.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// The folder of the files.
pub fn folder() -> PathBuf {
    checkout().join("sql-tests/corpus")
}

/// A query and its answer.
pub struct Query {
    /// Its text.
    pub sql: String,
    /// Its line in the file.
    pub line: u32,
    columns: usize,
    ordered: bool,
    rows: Vec<String>,
}

/// One file.
pub struct Topic {
    /// Its name, without the ending.
    pub name: String,
    /// Its queries.
    pub queries: Vec<Query>,
}

/// The statements of `tables.slt`: those that make tables, and those that fill and change them.
pub struct Tables {
    made: Vec<String>,
    changed: Vec<String>,
}

type Script = Vec<Record<DefaultColumnType>>;

fn parse(path: &Path) -> Result<Script> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    parse_with_name(&text, path.display().to_string()).map_err(|error| anyhow::anyhow!("{error}"))
}

/// Reads `tables.slt`.
pub fn tables() -> Result<Tables> {
    let statements = parse(&folder().join("tables.slt"))?.into_iter().filter_map(|record| match record {
        Record::Statement { sql, .. } => Some(sql),
        _ => None,
    });
    let (made, changed) = statements.partition(|sql: &String| sql.starts_with("CREATE TABLE"));
    Ok(Tables { made, changed })
}

/// Reads all topics.
pub fn topics() -> Result<Vec<Topic>> {
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder())?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "slt") && !path.ends_with("tables.slt"));
    paths.sort();
    paths.iter().map(|path| topic(path)).collect()
}

fn topic(path: &Path) -> Result<Topic> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let mut queries = Vec::new();
    for record in parse(path)? {
        let Record::Query { loc, sql, expected, .. } = record else { continue };
        let QueryExpect::Results { types, sort_mode, results, .. } = expected else {
            bail!("{}:{}: an answer is missing", path.display(), loc.line());
        };
        let ordered = !matches!(sort_mode, Some(SortMode::RowSort));
        let rows = results.iter().map(|row| normal(row)).collect();
        queries.push(Query { sql, line: loc.line(), columns: types.len(), ordered, rows });
    }
    Ok(Topic { name, queries })
}

fn normal(text: &str) -> String {
    text.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

fn shown(row: &Row) -> String {
    let values = row.iter().map(|value| match value.as_deref() {
        None => "NULL",
        Some("") => "(empty)",
        Some(text) => text,
    });
    normal(&values.collect::<Vec<_>>().join(" "))
}

impl Query {
    /// What stands for the text in the list of known failures (FNV-1a).
    pub fn hash(&self) -> String {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        format!("{:016x}", self.sql.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, step))
    }

    fn create(&self, view: &str) -> String {
        let columns: Vec<String> = (1..=self.columns).map(|number| format!("c{number}")).collect();
        format!("CREATE MATERIALIZED VIEW {view} ({}) AS {}", columns.join(", "), self.sql)
    }

    /// What is wrong with an answer; a view has no order.
    fn difference(&self, rows: &[Row], ordered: bool) -> Option<String> {
        let mut found: Vec<String> = rows.iter().map(shown).collect();
        let mut wanted = self.rows.clone();
        if !ordered {
            found.sort_unstable();
            wanted.sort_unstable();
        }
        if found == wanted {
            return None;
        }
        Some(format!("PostgreSQL {} here {}", listed(&wanted, &found), listed(&found, &wanted)))
    }
}

/// The first rows that the other side lacks, or all if they only stand in another order.
fn listed(rows: &[String], others: &[String]) -> String {
    let mut rest = others.to_vec();
    let mut own = Vec::new();
    for row in rows {
        match rest.iter().position(|other| other == row) {
            Some(at) => {
                rest.swap_remove(at);
            }
            None => own.push(row.as_str()),
        }
    }
    if own.is_empty() && rest.is_empty() {
        own = rows.iter().map(String::as_str).collect();
    }
    let more = if own.len() > 5 { format!(" and {} more", own.len() - 5) } else { String::new() };
    format!("[{}]{more}", own[..own.len().min(5)].join(" | "))
}

/// A connection that comes back when the server closes it over a query.
struct Session {
    client: Client,
    port: u16,
    schema: String,
}

impl Session {
    fn open(port: u16, schema: &str) -> Result<Self> {
        let mut client = Client::connect(port)?;
        client.set_timeout(STATEMENT_TIMEOUT)?;
        client.run(&format!("SET search_path TO {schema}"))?;
        Ok(Session { client, port, schema: schema.into() })
    }

    /// The rows, or what the server said.
    fn ask(&mut self, sql: &str) -> Result<Result<Vec<Row>, String>> {
        match self.client.query(sql) {
            Ok(mut all) => Ok(match all.error {
                Some(error) => Err(error.to_string()),
                None => Ok(all.answers.pop().unwrap_or_default().rows),
            }),
            Err(error) => {
                *self = Self::open(self.port, &self.schema).context("the server is gone")?;
                Ok(Err(format!("connection lost: {error:#}")))
            }
        }
    }
}

/// Runs one topic in a schema of its own: for each query why it fails, if it does. The error says that nothing could be run.
pub fn run(port: u16, tables: &Tables, topic: &Topic) -> Result<Vec<Option<String>>> {
    let schema = format!("corpus_{}", topic.name);
    Client::connect(port)?.run(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}"))?;
    let mut session = Session::open(port, &schema)?;
    for sql in &tables.made {
        session.client.run(sql)?;
    }
    let mut failures = vec![None; topic.queries.len()];
    create_all(&mut session, topic, "before", &mut failures)?;
    for sql in &tables.changed {
        session.client.run(sql)?;
    }
    create_all(&mut session, topic, "after", &mut failures)?;
    for (number, query) in topic.queries.iter().enumerate() {
        check(&mut session, query, &query.sql, query.ordered, "ad hoc", &mut failures[number])?;
        for when in ["before", "after"] {
            let read = format!("SELECT * FROM {when}_{number}");
            check(&mut session, query, &read, false, when, &mut failures[number])?;
        }
    }
    // Many views: dropping them all is one change of the catalog.
    Client::connect(port)?.run(&format!("DROP SCHEMA {schema} CASCADE"))?;
    Ok(failures)
}

fn create_all(session: &mut Session, topic: &Topic, when: &str, failures: &mut [Option<String>]) -> Result<()> {
    for (number, query) in topic.queries.iter().enumerate() {
        if let Err(message) = session.ask(&query.create(&format!("{when}_{number}")))? {
            failures[number].get_or_insert(format!("as a view made {when} the data: {message}"));
        }
    }
    Ok(())
}

fn check(
    session: &mut Session,
    query: &Query,
    sql: &str,
    ordered: bool,
    when: &str,
    failure: &mut Option<String>,
) -> Result<()> {
    let refused = failure.as_ref().is_some_and(|failure| failure.starts_with("as a view"));
    if refused && when != "ad hoc" {
        return Ok(());
    }
    let problem = match session.ask(sql)? {
        Ok(rows) => query.difference(&rows, ordered),
        Err(message) => Some(message),
    };
    if let Some(problem) = problem {
        // What also fails ad hoc is said so: it is not about views.
        if when == "ad hoc" {
            *failure = Some(format!("ad hoc: {problem}"));
        } else {
            failure.get_or_insert(format!("view made {when} the data: {problem}"));
        }
    }
    Ok(())
}

/// What is known to fail: topic and hash, with the reason.
pub type Known = BTreeMap<(String, String), String>;

/// The list of known failures: a reason on a line of its own, and under it, indented, topics and hashes.
pub fn known() -> Result<Known> {
    let path = folder().join("expected_failures.txt");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let mut reason = "";
    let mut found = Known::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        match line
            .strip_prefix("  ")
            .map(|entry| entry.split_once(' ').with_context(|| line.to_string()))
            .transpose()?
        {
            None => reason = line,
            Some((topic, hash)) => {
                found.insert((topic.into(), hash.into()), reason.into());
            }
        }
    }
    Ok(found)
}

/// Removes from the list what passes now.
pub fn forget(passed: &[(String, String)]) -> Result<()> {
    let path = folder().join("expected_failures.txt");
    let text = std::fs::read_to_string(&path)?;
    let gone: Vec<String> = passed.iter().map(|(topic, hash)| format!("  {topic} {hash}")).collect();
    let kept: Vec<&str> = text.lines().filter(|line| !gone.iter().any(|entry| entry == line)).collect();
    let mut lines = Vec::new();
    for (at, line) in kept.iter().enumerate() {
        let is_reason = !line.is_empty() && !line.starts_with([' ', '#']);
        // A reason without entries goes too.
        if !is_reason || kept.get(at + 1).is_some_and(|next| next.starts_with("  ")) {
            lines.push(*line);
        }
    }
    std::fs::write(&path, lines.join("\n") + "\n")?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_parses_and_the_list_names_what_is_there() {
        let topics = topics().expect("the files");
        let queries: usize = topics.iter().map(|topic| topic.queries.len()).sum();
        assert!(queries >= 3000, "{queries}");
        for (topic, hash) in known().expect("the list").keys() {
            let named = topics.iter().find(|found| found.name == *topic);
            let there = named.is_some_and(|found| found.queries.iter().any(|query| query.hash() == *hash));
            assert!(there, "expected_failures.txt: no query {hash} in {topic}");
        }
    }
}
