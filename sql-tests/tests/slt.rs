//! Runs every .slt file (see `sql_tests::slt`) and the Python wire cases against one server.
//!
//! `cargo test --release -p sql-tests --test slt -- NAME` runs the files whose path contains NAME; `REWRITE=1` writes answers into them.

use anyhow::Result;
use sql_tests::process::{Server, checkout, require_binary, shared};
use sql_tests::slt;
use std::path::Path;
use std::process::ExitCode;

#[derive(Default)]
struct Totals {
    passed: usize,
    failed: usize,
    skipped: usize,
}

fn main() -> ExitCode {
    match run() {
        Ok(totals) => {
            println!("{} passed, {} failed, {} skipped", totals.passed, totals.failed, totals.skipped);
            ExitCode::from(u8::from(totals.failed > 0))
        }
        Err(error) => {
            println!("FAIL slt: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<Totals> {
    require_binary()?;
    let filters: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let rewrite = std::env::var_os("REWRITE").is_some();
    let expected_failures = slt::expected_failures()?;
    let wanted = |path: &Path| {
        filters.is_empty() || filters.iter().any(|filter| path.to_string_lossy().contains(filter.as_str()))
    };
    let mut server = Server::start()?;
    let mut totals = Totals::default();
    if !shared().join("cases").is_dir() {
        println!("skipped: {} is not there", shared().join("cases").display());
        totals.skipped += 1;
    }
    for path in slt::files()?.iter().filter(|path| wanted(path)) {
        let outcome = slt::run_file(&mut server, path, rewrite);
        report(&mut totals, path, outcome, &expected_failures);
    }
    for path in slt::python_files()?.iter().filter(|path| wanted(path)) {
        let outcome = slt::run_python(&mut server, path);
        report(&mut totals, path, outcome, &expected_failures);
    }
    if totals.failed > 0 {
        println!("log and data kept in {}", server.keep().display());
    }
    Ok(totals)
}

fn report(totals: &mut Totals, path: &Path, outcome: Result<()>, expected_failures: &[(String, String)]) {
    let name = path.strip_prefix(checkout()).unwrap_or(path).display().to_string();
    let expected = expected_failures.iter().find(|(file, _)| name.ends_with(file.as_str()));
    match (outcome, expected) {
        (Ok(()), None) => {
            totals.passed += 1;
            println!("ok   {name}");
        }
        (Err(_), Some((_, why))) => {
            totals.skipped += 1;
            println!("skipped: {name}: {why}");
        }
        (Ok(()), Some(_)) => {
            totals.passed += 1;
            println!("ok   {name} (it passes now: remove its line from sql-tests/slt/expected_failures.txt)");
        }
        (Err(error), None) => {
            totals.failed += 1;
            println!("FAIL {name}: {error:#}");
        }
    }
}
