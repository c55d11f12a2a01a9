//! Nexmark: queries q0 to q22 as materialized views over deterministic events, through inserts, deletes, updates and `kill -9`.
//!
//! q11 to q13 (sessions and processing time) need event time and are left out. PostgreSQL answers the queries with time windows in
//! another form (date_bin, generate_series), so that a common mistake in the windows would be seen. The events are in [`data`].

pub mod data;

use anyhow::Result;

use crate::oracle::Postgres;
use crate::suite::{self, Benchmark, World};

/// No relation has a key: events are only ever appended in the original.
const TABLES: [(&str, &str); 3] = [
    (
        "person",
        "id bigint, name text, email_address text, credit_card text, city text, state text, date_time timestamp, extra text",
    ),
    (
        "auction",
        "id bigint, item_name text, description text, initial_bid bigint, reserve bigint, date_time timestamp,
expires timestamp, seller bigint, category bigint, extra text",
    ),
    ("bid", "auction bigint, bidder bigint, price bigint, channel text, url text, date_time timestamp, extra text"),
];

/// Events of the load, and of each later batch.
const LOADED: u64 = 5_000;
const BATCH: u64 = 500;

/// What happens to the rows, in order: a name and statements that are one transaction.
const CHANGES: [(&str, &str); 6] = [
    // Ties in every order: copies with the same time and price, by the same bidder and by another one.
    (
        "bids twice",
        "INSERT INTO bid SELECT auction, bidder, price, channel, url, date_time, extra || ' again' FROM bid WHERE bidder % 13 < 4;
INSERT INTO bid SELECT auction, bidder + 1, price, channel, url, date_time, extra FROM bid WHERE auction % 7 = 3",
    ),
    (
        "rows deleted",
        "DELETE FROM bid WHERE bidder % 7 = 3; DELETE FROM bid WHERE price > 60000000;
DELETE FROM auction WHERE id % 11 = 5; DELETE FROM person WHERE id % 10 = 7",
    ),
    (
        "prices, categories and states updated",
        "UPDATE bid SET price = price * 3 + 1 WHERE auction % 5 = 2;
UPDATE auction SET category = 10 + (category + 2) % 5, reserve = reserve + 1 WHERE id % 3 = 1;
UPDATE person SET state = 'OR', city = 'Bend' WHERE id % 3 = 0",
    ),
    // Off the grid of the times of events, so that no bids meet that did not tie before.
    (
        "times and keys updated",
        "UPDATE bid SET date_time = date_time + INTERVAL '7.003 seconds' WHERE bidder % 4 = 1;
UPDATE auction SET expires = expires + INTERVAL '30 seconds' WHERE id % 6 = 0;
UPDATE auction SET seller = seller + 1 WHERE id % 9 = 2;
UPDATE person SET date_time = date_time - INTERVAL '4 seconds' WHERE id % 5 = 1",
    ),
    (
        "NULLs",
        "UPDATE bid SET channel = NULL, url = NULL WHERE bidder % 11 = 2; UPDATE bid SET price = NULL WHERE auction % 17 = 4;
UPDATE bid SET date_time = NULL WHERE bidder % 19 = 6; UPDATE auction SET expires = NULL WHERE id % 13 = 1;
UPDATE person SET state = NULL WHERE id % 8 = 1",
    ),
    ("most auctions and people deleted", "DELETE FROM auction WHERE id % 8 <> 0; DELETE FROM person WHERE id % 8 <> 1"),
];

fn benchmark() -> Benchmark {
    Benchmark {
        queries: suite::parse(include_str!("nexmark/queries.sql")),
        tables: &TABLES,
        oracle_indexes: "ANALYZE",
        tolerance: 1e-9,
    }
}

/// Everything, on a server of its own. Without an oracle only views and their queries are compared.
pub fn run(oracle: Option<&Postgres>) -> Result<()> {
    suite::run(&benchmark(), oracle, |world| {
        world.load(&|table| data::csv(table, 0..LOADED))?;
        for (batch, (name, statements)) in CHANGES.iter().enumerate() {
            append(world, LOADED + batch as u64 * BATCH)?;
            world.everywhere(&format!("BEGIN; {statements}; COMMIT"))?;
            world.compare(name)?;
            if batch % 3 == 2 {
                world.restart()?;
            }
        }
        world.everywhere("BEGIN; DELETE FROM bid; DELETE FROM auction; DELETE FROM person; COMMIT")?;
        world.compare("everything deleted")?;
        append(world, LOADED + CHANGES.len() as u64 * BATCH)?;
        world.compare("new events")?;
        Ok(())
    })
}

/// The next events, each relation by a COPY of its own.
fn append(world: &mut World<'_>, first: u64) -> Result<()> {
    TABLES.iter().try_for_each(|(table, _)| world.copy(table, &data::csv(table, first..first + BATCH)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::equivalence::has_time_windows;

    #[test]
    fn all_queries_are_there_but_for_event_time() {
        let found = benchmark().queries;
        let expected: Vec<String> =
            (0..=22).filter(|number| !(11..=13).contains(number)).map(|number| format!("q{number}")).collect();
        assert_eq!(found.iter().map(|query| query.name.clone()).collect::<Vec<_>>(), expected);
        // PostgreSQL does not know the functions of windows.
        for query in found {
            assert_eq!(query.oracle.is_some(), has_time_windows(&query.sql), "{}", query.name);
        }
    }
}
