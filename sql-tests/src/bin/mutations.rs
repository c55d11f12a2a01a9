//! Breaks each operator's retraction on purpose, one at a time, and shows that the random test finds it.
//!
//! `cargo run --release -p sql-tests --bin mutations -- [--seed S] [--seconds N] [--control-seconds N] [--jobs N] [--only TEXT] [--folder F] [--target T] [--prepare] [--binary B]`
//!
//! `--seconds` is the time for each mutation (90), `--only` the part of a name. The mutated checkout is written to a folder
//! (that of temporary files) and built in a target folder (within it). `--prepare` ends before the build; `--binary` runs what
//! was built.

use anyhow::{Context, Result, bail, ensure};
use sql_tests::mutations::{self, Search};
use std::path::PathBuf;
use std::time::Duration;

fn main() -> Result<()> {
    let mut search = Search {
        binary: PathBuf::new(),
        seed: rand::random(),
        time: Duration::from_secs(90),
        control_time: Duration::from_secs(60),
        jobs: 2,
    };
    let (mut only, mut prepare) = (String::new(), false);
    let mut folder = std::env::temp_dir().join("tidemill-mutations");
    let (mut target, mut binary): (Option<PathBuf>, Option<PathBuf>) = (None, None);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{argument} needs a value"));
        match argument.as_str() {
            "--seed" => search.seed = value()?.parse()?,
            "--seconds" => search.time = Duration::from_secs_f64(value()?.parse()?),
            "--control-seconds" => search.control_time = Duration::from_secs_f64(value()?.parse()?),
            "--jobs" => search.jobs = value()?.parse()?,
            "--only" => only = value()?,
            "--folder" => folder = value()?.into(),
            "--target" => target = Some(value()?.into()),
            "--binary" => binary = Some(value()?.into()),
            "--prepare" => prepare = true,
            other => bail!("unknown argument {other}"),
        }
    }
    let all = mutations::all()?;
    let complaints = mutations::complaints(&all)?;
    ensure!(complaints.is_empty(), "{}", complaints.join("\n"));
    search.binary = match binary {
        Some(binary) => binary,
        None => {
            mutations::write_checkout(&all, &folder.join("checkout"))?;
            if prepare {
                println!("{}", folder.join("checkout").display());
                return Ok(());
            }
            mutations::build(&folder.join("checkout"), &target.unwrap_or_else(|| folder.join("target")))?
        }
    };
    let wanted: Vec<_> = all.into_iter().filter(|mutation| mutation.name.contains(&only)).collect();
    search.run(&wanted)?;
    Ok(())
}
