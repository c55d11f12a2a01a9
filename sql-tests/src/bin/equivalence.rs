//! The randomized test of view = query in its long form.
//!
//! `cargo run --release -p sql-tests --bin equivalence -- --seed S --steps N --minutes M [--rounds R] [--oracle] [--keep-going] [--print] [-- SERVER ARGUMENTS]`
//!
//! `--print` only prints the statements of the rounds.

use anyhow::{Context, Result, bail};
use sql_tests::equivalence::{Options, run_checked};
use sql_tests::generate::{Case, Generator, Step};
use std::time::Duration;

fn main() -> Result<()> {
    sql_tests::process::require_binary()?;
    let mut options = Options::new(rand::random(), Duration::from_secs(60 * 60));
    let mut print = false;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--seed" => options.seed = value()?.parse()?,
            "--steps" => options.steps = value()?.parse()?,
            "--rounds" => options.rounds = value()?.parse()?,
            "--minutes" => options.time = Duration::from_secs_f64(value()?.parse::<f64>()? * 60.0),
            "--oracle" => options.oracle = true,
            "--keep-going" => options.keep_going = true,
            "--print" => print = true,
            "--" => options.server_arguments = arguments.by_ref().collect(),
            other => bail!("unknown argument {other}"),
        }
    }
    if print {
        for round in 0..options.rounds {
            let generator = Generator::new(options.seed.wrapping_add(round));
            let generator = if options.oracle { generator.with_exact_doubles() } else { generator };
            print_case(&generator.case(options.steps));
        }
        return Ok(());
    }
    println!("seed {}, {} steps a round, {:?}", options.seed, options.steps, options.time);
    run_checked(&options)?;
    Ok(())
}

fn print_case(case: &Case) {
    for table in &case.tables {
        println!("{table};");
    }
    for step in &case.steps {
        match step {
            Step::Create(number) => println!("{};", case.views[*number].create()),
            Step::Change(statements) => statements.iter().for_each(|statement| println!("{statement};")),
            Step::Restart => println!("-- kill -9 and restart"),
        }
    }
}
