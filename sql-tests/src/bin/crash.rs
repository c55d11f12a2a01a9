//! The crash test in its long form.
//!
//! `cargo run --release -p sql-tests --bin crash -- --rounds 200 [--seed S] [--minutes M] [-- SERVER ARGUMENTS]`

use anyhow::{Context, Result, bail};
use sql_tests::crash::{Options, run};
use std::time::Duration;

fn main() -> Result<()> {
    sql_tests::process::require_binary()?;
    let mut options = Options {
        seed: rand::random(),
        rounds: 200,
        time: Duration::from_secs(24 * 60 * 60),
        server_arguments: Vec::new(),
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--seed" => options.seed = value()?.parse()?,
            "--rounds" => options.rounds = value()?.parse()?,
            "--minutes" => options.time = Duration::from_secs_f64(value()?.parse::<f64>()? * 60.0),
            "--" => options.server_arguments = arguments.by_ref().collect(),
            other => bail!("unknown argument {other}"),
        }
    }
    println!("seed {}, {} rounds", options.seed, options.rounds);
    println!("{}", run(&options)?);
    Ok(())
}
