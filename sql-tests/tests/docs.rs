//! Runs every SQL example of README.md and of the book; see `sql_tests::examples`.
//!
//! `cargo test --release -p sql-tests --test docs -- NAME` runs the pages whose path contains NAME;
//! `REWRITE=1` writes what psql prints into them.

use anyhow::Result;
use sql_tests::examples;
use sql_tests::process::{Server, require_binary};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(failed) => ExitCode::from(u8::from(failed > 0)),
        Err(error) => {
            println!("FAIL docs: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<usize> {
    require_binary()?;
    let filters: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if std::process::Command::new("psql").arg("--version").output().is_err() {
        println!("skipped: the examples of the documentation: psql is not installed");
        println!("0 passed, 0 failed, 1 skipped");
        return Ok(0);
    }
    let server = Server::start()?;
    let (mut total, mut failed, mut skipped) = (0, 0, 0);
    for page in examples::pages()? {
        let name = page.to_string_lossy().into_owned();
        if !filters.is_empty() && !filters.iter().any(|filter| name.contains(filter.as_str())) {
            continue;
        }
        if name.ends_with("README.md") && sql_tests::flights::data().is_err() {
            println!("skipped: README.md: the flights are not there");
            skipped += 1;
            continue;
        }
        let (count, wrong) = examples::run_page(&server, &page, std::env::var_os("REWRITE").is_some())?;
        total += count;
        failed += wrong.len();
        wrong.iter().for_each(|text| println!("FAIL {text}"));
    }
    println!("{} passed, {failed} failed, {skipped} skipped", total - failed);
    Ok(failed)
}
