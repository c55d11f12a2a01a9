//! Runs the corpus of queries with PostgreSQL's answers, each ad hoc and as views made before and after the data; see `sql_tests::corpus`.
//!
//! `cargo test --release -p sql-tests --test corpus -- NAME` runs the topics whose name contains NAME and prints every known failure too;
//! `REWRITE=1` removes what passes now from the list of known failures.

use anyhow::{Context, Result};
use sql_tests::corpus::{self, Known, Topic};
use sql_tests::process::{Server, require_binary};
use std::process::ExitCode;
use std::sync::Mutex;

/// Topics that run at the same time, each on a server of its own.
const SERVERS: usize = 2;

#[derive(Default)]
struct Totals {
    passed: usize,
    failed: usize,
    skipped: usize,
    pass_now: Vec<(String, String)>,
}

fn main() -> ExitCode {
    match run() {
        Ok(totals) => {
            println!("{} passed, {} failed, {} skipped", totals.passed, totals.failed, totals.skipped);
            ExitCode::from(u8::from(totals.failed > 0))
        }
        Err(error) => {
            println!("FAIL corpus: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<Totals> {
    require_binary()?;
    let filters: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wanted =
        |topic: &Topic| filters.is_empty() || filters.iter().any(|filter| topic.name.contains(filter.as_str()));
    let topics: Vec<Topic> = corpus::topics()?.into_iter().filter(wanted).collect();
    let tables = corpus::tables()?;
    let known = corpus::known()?;
    let mut servers = (0..SERVERS).map(|_| Server::start()).collect::<Result<Vec<_>>>()?;
    let next = Mutex::new(topics.iter());
    let totals = Mutex::new(Totals::default());
    std::thread::scope(|scope| {
        for port in servers.iter().map(Server::port) {
            let (next, totals, tables, known, filters) = (&next, &totals, &tables, &known, &filters);
            scope.spawn(move || {
                while let Some(topic) = next.lock().ok().and_then(|mut next| next.next()) {
                    let outcome = corpus::run(port, tables, topic);
                    let Ok(mut totals) = totals.lock() else { break };
                    report(&mut totals, topic, outcome, known, !filters.is_empty());
                }
            });
        }
    });
    let totals = totals.into_inner().ok().context("a thread panicked")?;
    if totals.failed > 0 {
        for server in &mut servers {
            println!("log and data kept in {}", server.keep().display());
        }
    }
    if std::env::var_os("REWRITE").is_some() {
        corpus::forget(&totals.pass_now)?;
    }
    Ok(totals)
}

fn report(totals: &mut Totals, topic: &Topic, outcome: Result<Vec<Option<String>>>, known: &Known, verbose: bool) {
    let failures = match outcome {
        Ok(failures) => failures,
        Err(error) => {
            totals.failed += 1;
            println!("FAIL corpus/{}: {error:#}", topic.name);
            return;
        }
    };
    let (mut passed, mut expected) = (0, 0);
    for (query, failure) in topic.queries.iter().zip(failures) {
        let place = format!("corpus/{}.slt:{}", topic.name, query.line);
        let key = (topic.name.clone(), query.hash());
        match (failure, known.get(&key)) {
            (None, None) => passed += 1,
            (None, Some(_)) => {
                passed += 1;
                println!("{place} passes now: remove its line from expected_failures.txt (REWRITE=1 does): {}", key.1);
                totals.pass_now.push(key);
            }
            (Some(why), Some(reason)) => {
                expected += 1;
                if verbose {
                    println!("known {place}: {reason}\n  {}\n  {why}", query.sql);
                }
            }
            (Some(why), None) => {
                totals.failed += 1;
                println!("FAIL {place}: {why}\n  {}\n  {} {}", query.sql, topic.name, key.1);
            }
        }
    }
    totals.passed += passed;
    totals.skipped += expected;
    println!("ok   corpus/{}.slt: {passed} passed, {expected} fail as known", topic.name);
}
