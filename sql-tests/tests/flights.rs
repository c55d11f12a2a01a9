//! A year of real flights against PostgreSQL, with 1, 2 and 5 workers; see `sql_tests::flights`.

use sql_tests::flights;
use sql_tests::oracle::Postgres;
use sql_tests::process::require_binary;

#[test]
fn five_standing_queries_equal_postgres() {
    require_binary().expect("the server binary");
    if let Err(why) = flights::data() {
        println!("skipped: five_standing_queries_equal_postgres: {why:#}");
        return;
    }
    let postgres = match Postgres::start() {
        Ok(postgres) => postgres,
        Err(why) => {
            println!("skipped: five_standing_queries_equal_postgres: {why:#}");
            return;
        }
    };
    let expected = flights::expected(&postgres).expect("PostgreSQL answers");
    for workers in [1, 2, 5] {
        flights::run(workers, true, &expected).expect("views before the load");
    }
    flights::run(2, false, &expected).expect("views after the load");
}
