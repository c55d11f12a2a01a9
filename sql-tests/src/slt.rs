//! Runs .slt files over the wire against the real binary.
//!
//! The format is that of the `sqllogictest` crate, with these additions:
//! - every file has a schema of its own, made before and dropped (CASCADE, which must succeed) after it;
//! - `restart` or `control restart` on a line of its own kills the server with -9 and starts it again; every connection is new after it;
//! - with `rowsort` the expected rows may stand in any order;
//! - values look as psql shows them; NULL is `NULL`, an empty text is `(empty)`.
//!
//! `slt/expected_failures.txt` lists files that are known to fail and why. They run all the same and count as skipped when they fail;
//! when one passes the runner says so, and its line should go.

use anyhow::{Context, Result, bail};
use sqllogictest::{
    DB, DBOutput, DefaultColumnType, Normalizer, QueryExpect, Record, Runner, SortMode, StatementExpect,
    default_column_validator, default_normalizer, default_validator, parse_with_name, update_record_with_output,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process::{Server, checkout, shared};
use crate::wire::{Client, Message};

/// What the runner sends to the connection where a file says `restart`; never sent to the server.
const RESTART: &str = "\\restart";
/// How long one statement of a file may take.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Why a statement failed.
#[derive(Debug)]
pub enum Failure {
    /// The server said so.
    Server(Message),
    /// The connection broke.
    Connection(anyhow::Error),
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Server(message) => message.fmt(f),
            Failure::Connection(error) => write!(f, "connection lost: {error:#}"),
        }
    }
}

impl std::error::Error for Failure {}

/// A connection as the sqllogictest crate wants it.
pub struct Connection {
    client: Client,
}

impl Connection {
    fn open(port: u16, schema: &str) -> Result<Self, Failure> {
        let open = || -> Result<Client> {
            let mut client = Client::connect(port)?;
            client.set_timeout(STATEMENT_TIMEOUT)?;
            client.run(&format!("SET search_path TO {schema}"))?;
            Ok(client)
        };
        open().map(|client| Connection { client }).map_err(Failure::Connection)
    }
}

impl DB for Connection {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        let mut all = self.client.query(sql).map_err(Failure::Connection)?;
        if let Some(error) = all.error {
            return Err(Failure::Server(error));
        }
        let answer = all.answers.pop().unwrap_or_default();
        let Some(columns) = &answer.columns else { return Ok(DBOutput::StatementComplete(answer.count())) };
        let types = columns.iter().map(|column| column_type(column.oid)).collect();
        let rows = answer.rows.into_iter().map(|row| row.into_iter().map(shown).collect()).collect();
        Ok(DBOutput::Rows { types, rows })
    }

    fn engine_name(&self) -> &str {
        "tidemill"
    }
}

fn column_type(oid: u32) -> DefaultColumnType {
    match oid {
        20 | 21 | 23 => DefaultColumnType::Integer,
        700 | 701 | 1700 => DefaultColumnType::FloatingPoint,
        _ => DefaultColumnType::Text,
    }
}

fn shown(value: Option<String>) -> String {
    match value {
        None => "NULL".into(),
        Some(text) if text.is_empty() => "(empty)".into(),
        Some(text) => text,
    }
}

/// All .slt files: those of this crate, those beside operators and functions, and the shared cases if they are there.
pub fn files() -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let roots = [checkout().join("sql-tests/slt"), checkout().join("runtime/src"), shared().join("cases")];
    for root in roots.iter().filter(|root| root.is_dir()) {
        collect(root, &mut found)?;
    }
    found.sort();
    Ok(found)
}

fn collect(directory: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, found)?;
        } else if path.extension().is_some_and(|extension| extension == "slt") {
            found.push(path);
        }
    }
    Ok(())
}

/// The known failures: the end of a path, and why.
pub fn expected_failures() -> Result<Vec<(String, String)>> {
    let path = checkout().join("sql-tests/slt/expected_failures.txt");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (file, why) = line.split_once(": ").with_context(|| format!("no reason given: {line}"))?;
            Ok((file.to_string(), why.to_string()))
        })
        .collect()
}

type Script = Vec<Record<DefaultColumnType>>;

/// Parses a file; each `restart` line becomes a statement [`RESTART`].
pub fn parse(path: &Path) -> Result<Script> {
    let text = std::fs::read_to_string(path)?;
    let name = path.strip_prefix(checkout()).unwrap_or(path).display().to_string();
    let mut records = Script::new();
    let mut part = String::new();
    for (number, line) in text.lines().enumerate() {
        if !matches!(line.trim(), "restart" | "control restart") {
            part.push_str(line);
            part.push('\n');
            continue;
        }
        append(&mut records, &part, &name)?;
        append(&mut records, &format!("{}statement ok\n{RESTART}\n", "\n".repeat(number)), &name)?;
        // Blank lines keep the line numbers of what follows.
        part = "\n".repeat(number + 1);
    }
    append(&mut records, &part, &name)?;
    Ok(records)
}

fn append(records: &mut Script, part: &str, name: &str) -> Result<()> {
    let parsed = parse_with_name(part, name.to_string()).map_err(|error| anyhow::anyhow!("{error}"))?;
    // The padding of `parse` must not pile up in rewritten files.
    let padding = part.chars().take_while(|character| *character == '\n').count();
    records.extend(parsed.into_iter().skip(if records.is_empty() { 0 } else { padding }));
    Ok(())
}

fn is_restart(record: &Record<DefaultColumnType>) -> bool {
    matches!(record, Record::Statement { sql, expected: StatementExpect::Ok, .. } if sql.trim() == RESTART)
}

fn sorts_rows(record: &Record<DefaultColumnType>) -> bool {
    matches!(record, Record::Query { expected: QueryExpect::Results { sort_mode: Some(SortMode::RowSort), .. }, .. })
}

fn sorted_validator(normalizer: Normalizer, actual: &[Vec<String>], expected: &[String]) -> bool {
    let mut expected: Vec<String> = expected.iter().map(normalizer).collect();
    let mut actual: Vec<String> =
        actual.iter().map(|row| row.iter().map(normalizer).collect::<Vec<_>>().join(" ")).collect();
    expected.sort_unstable();
    actual.sort_unstable();
    expected == actual
}

/// The schema of a file.
fn schema_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().to_lowercase();
    let safe: String = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("slt_{safe}")
}

/// Runs one file in a fresh schema; with `rewrite` the file gets what the server answered.
pub fn run_file(server: &mut Server, path: &Path, rewrite: bool) -> Result<()> {
    let records = parse(path)?;
    let schema = schema_of(path);
    if !server.is_running() {
        server.restart()?;
    }
    server.client()?.run(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}"))?;
    let outcome =
        if rewrite { rewrite_records(server, path, &schema, records) } else { run_records(server, &schema, records) };
    if !server.is_running() {
        let tail = server.log_tail();
        bail!("the server died: {:?}\n{tail}", outcome.err());
    }
    let dropped = server.client()?.run(&format!("DROP SCHEMA {schema} CASCADE")).context("after the file");
    outcome.and(dropped.map(|_| ()))
}

fn run_records(server: &mut Server, schema: &str, records: Script) -> Result<()> {
    let port = server.port();
    let connect = || async move { Connection::open(port, schema) };
    let mut runner = Runner::new(connect);
    for record in records {
        if is_restart(&record) {
            runner.shutdown();
            server.restart()?;
            runner = Runner::new(connect);
            continue;
        }
        if matches!(record, Record::Halt { .. }) {
            break;
        }
        runner.with_validator(if sorts_rows(&record) { sorted_validator } else { default_validator });
        runner.run(record).map_err(|error| anyhow::anyhow!("{}", error.display(false)))?;
    }
    Ok(())
}

fn rewrite_records(server: &mut Server, path: &Path, schema: &str, records: Script) -> Result<()> {
    let port = server.port();
    let connect = || async move { Connection::open(port, schema) };
    let mut runner = Runner::new(connect);
    let mut text = String::new();
    for record in records {
        if is_restart(&record) {
            runner.shutdown();
            server.restart()?;
            runner = Runner::new(connect);
            text.push_str("restart\n");
            continue;
        }
        let validator = if sorts_rows(&record) { sorted_validator } else { default_validator };
        let output = futures::executor::block_on(runner.apply_record(record.clone()));
        let new =
            update_record_with_output(&record, &output, " ", validator, default_normalizer, default_column_validator);
        text.push_str(&new.unwrap_or(record).to_string());
        text.push('\n');
    }
    std::fs::write(path, text.trim_end().to_string() + "\n")?;
    Ok(())
}

/// Runs the Python wire cases that go with the shared .slt files: `python3 FILE HOST PORT USER DATABASE`.
pub fn run_python(server: &mut Server, path: &Path) -> Result<()> {
    let output = std::process::Command::new("python3")
        .arg(path)
        .args(["127.0.0.1", &server.port().to_string(), "tidemill", "tidemill"])
        .env("PYTHONPATH", shared().join("tools"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()?;
    if !output.status.success() {
        bail!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// The Python wire cases, if they are there.
pub fn python_files() -> Result<Vec<PathBuf>> {
    let directory = shared().join("cases/wire");
    if !directory.is_dir() {
        return Ok(Vec::new());
    }
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    found.retain(|path| path.extension().is_some_and(|extension| extension == "py"));
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_parses() {
        let files = files().expect("the folders");
        assert!(!files.is_empty());
        for path in files {
            if let Err(error) = parse(&path) {
                panic!("{}: {error:#}", path.display());
            }
        }
    }
}
