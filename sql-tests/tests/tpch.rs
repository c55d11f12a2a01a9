//! TPC-H's 22 queries as views through load and refresh streams; see `sql_tests::tpch`.

use sql_tests::oracle::Postgres;
use sql_tests::process::require_binary;
use sql_tests::tpch;

#[test]
fn views_follow_the_refresh_streams() {
    require_binary().expect("the server binary");
    let postgres = Postgres::start();
    if let Err(why) = &postgres {
        println!("skipped: comparison of TPC-H with PostgreSQL: {why:#}");
    }
    tpch::run(postgres.as_ref().ok()).expect("TPC-H");
}
