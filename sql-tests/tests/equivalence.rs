//! The randomized test of view = query in its short form, with a fresh seed: `TIDEMILL_EQUIVALENCE_MINUTES` (default 1) each for the
//! plain form and for the one that also compares with PostgreSQL. `TIDEMILL_SEED` repeats one.

use sql_tests::equivalence::{Options, run_checked};
use sql_tests::oracle::Postgres;
use sql_tests::process::require_binary;
use std::time::Duration;

fn options() -> Options {
    require_binary().expect("the server binary");
    let minutes: f64 =
        std::env::var("TIDEMILL_EQUIVALENCE_MINUTES").ok().and_then(|text| text.parse().ok()).unwrap_or(1.0);
    let seed = std::env::var("TIDEMILL_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    println!("seed {seed}");
    Options { steps: 10, ..Options::new(seed, Duration::from_secs_f64(minutes * 60.0)) }
}

#[test]
fn every_view_equals_its_query() {
    run_checked(&options()).expect("no difference");
}

#[test]
fn every_view_equals_its_query_with_five_workers() {
    let mut options = options();
    options.time /= 3;
    options.server_arguments = vec!["--workers".into(), "5".into()];
    run_checked(&options).expect("no difference");
}

#[test]
fn every_view_equals_postgres() {
    if let Err(error) = Postgres::start() {
        println!("skipped: every_view_equals_postgres: {error:#}");
        return;
    }
    let mut options = options();
    options.oracle = true;
    run_checked(&options).expect("no difference");
}
