//! Nexmark's queries as views through inserts, deletes, updates and kill -9; see `sql_tests::nexmark`.

use sql_tests::nexmark;
use sql_tests::oracle::Postgres;
use sql_tests::process::require_binary;

#[test]
fn views_follow_the_events() {
    require_binary().expect("the server binary");
    let postgres = Postgres::start();
    if let Err(why) = &postgres {
        println!("skipped: comparison of Nexmark with PostgreSQL: {why:#}");
    }
    nexmark::run(postgres.as_ref().ok()).expect("Nexmark");
}
