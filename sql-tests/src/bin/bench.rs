//! Prints the figures of `sql_tests::measure`.
//!
//! `cargo run --release -p sql-tests --bin bench -- [--runs N] [--seconds S] [--large-gb G] [--no-postgres] [--rows N,N,...]
//! [--operator NAME] [SECTION]`
//!
//! Sections: machine, size, load, insert, read, start, work. The default makes no large data directory; `--large-gb 5` does.

use anyhow::{Context, Result};
use sql_tests::measure::{Options, run};
use std::time::Duration;

fn main() -> Result<()> {
    sql_tests::process::require_binary()?;
    let mut options = Options {
        runs: 5,
        time: Duration::from_secs(5),
        large_bytes: 0,
        postgres: true,
        filter: String::new(),
        rows: vec![10_000, 100_000, 1_000_000],
        operator: String::new(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--runs" => options.runs = value()?.parse()?,
            "--seconds" => options.time = Duration::from_secs_f64(value()?.parse()?),
            "--large-gb" => options.large_bytes = (value()?.parse::<f64>()? * 1e9) as u64,
            "--no-postgres" => options.postgres = false,
            "--rows" => options.rows = value()?.split(',').map(str::parse).collect::<Result<_, _>>()?,
            "--operator" => options.operator = value()?,
            section => options.filter = section.to_string(),
        }
    }
    run(&options)
}
