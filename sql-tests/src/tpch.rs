//! TPC-H: its 22 queries as materialized views, made before and after the load, kept up to date through its refresh streams.
//!
//! After the load and after every batch of orders that come or go, each view must hold what its SELECT gives when it is run ad hoc, and
//! that must be what PostgreSQL gives over the same rows. The data is small and of our own making ([`data`]), so that every query has rows.

pub mod data;

use anyhow::{Context, Result, bail};
use std::ops::Range;

use crate::equivalence::difference;
use crate::oracle::Postgres;
use crate::process::Server;
use crate::wire::{Client, Row};

/// The tables in the order of their loading.
const TABLES: [(&str, &str); 8] = [
    ("region", "r_regionkey int PRIMARY KEY, r_name char(25), r_comment varchar(152)"),
    ("nation", "n_nationkey int PRIMARY KEY, n_name char(25), n_regionkey int, n_comment varchar(152)"),
    (
        "supplier",
        "s_suppkey int PRIMARY KEY, s_name char(25), s_address varchar(40), s_nationkey int, s_phone char(15), s_acctbal numeric(15,2),
s_comment varchar(101)",
    ),
    (
        "customer",
        "c_custkey int PRIMARY KEY, c_name varchar(25), c_address varchar(40), c_nationkey int, c_phone char(15),
c_acctbal numeric(15,2), c_mktsegment char(10), c_comment varchar(117)",
    ),
    (
        "part",
        "p_partkey int PRIMARY KEY, p_name varchar(55), p_mfgr char(25), p_brand char(10), p_type varchar(25), p_size int,
p_container char(10), p_retailprice numeric(15,2), p_comment varchar(50)",
    ),
    (
        "partsupp",
        "ps_partkey int, ps_suppkey int, ps_availqty int, ps_supplycost numeric(15,2), ps_comment varchar(199),
PRIMARY KEY (ps_partkey, ps_suppkey)",
    ),
    (
        "orders",
        "o_orderkey bigint PRIMARY KEY, o_custkey int, o_orderstatus char(1), o_totalprice numeric(15,2), o_orderdate date,
o_orderpriority char(15), o_clerk char(15), o_shippriority int, o_comment varchar(79)",
    ),
    (
        "lineitem",
        "l_orderkey bigint, l_partkey int, l_suppkey int, l_linenumber int, l_quantity numeric(15,2), l_extendedprice numeric(15,2),
l_discount numeric(15,2), l_tax numeric(15,2), l_returnflag char(1), l_linestatus char(1), l_shipdate date, l_commitdate date,
l_receiptdate date, l_shipinstruct char(25), l_shipmode char(10), l_comment varchar(44), PRIMARY KEY (l_orderkey, l_linenumber)",
    ),
];

/// Only PostgreSQL needs them: its queries would take minutes without.
const ORACLE_INDEXES: &str =
    "CREATE INDEX ON lineitem (l_partkey, l_suppkey); CREATE INDEX ON orders (o_custkey); ANALYZE";

/// Pairs of batches of the refresh streams, and the orders of each: an insertion of new ones, then a deletion of old ones.
const BATCHES: u64 = 4;
const BATCH_ORDERS: u64 = 150;

/// How far a number may be from PostgreSQL's, relatively: quotients of numerics have fewer digits here.
const TOLERANCE: f64 = 1e-5;

/// Queries whose dataflow has a Recompute node. The list may only shrink.
pub const RECOMPUTED: [&str; 8] = ["q02", "q03", "q10", "q11", "q15", "q18", "q21", "q22"];

/// One of the 22.
pub struct Query {
    /// q01 to q22.
    pub name: String,
    /// Its text.
    pub sql: String,
}

/// The queries.
pub fn queries() -> Vec<Query> {
    let mut found: Vec<Query> = Vec::new();
    for line in include_str!("tpch/queries.sql").lines().skip(1) {
        match (line.strip_prefix("-- "), found.last_mut()) {
            (Some(name), _) => found.push(Query { name: name.to_string(), sql: String::new() }),
            (None, Some(query)) => {
                query.sql.push_str(line);
                query.sql.push('\n');
            }
            (None, None) => {}
        }
    }
    found
}

/// The server under test, and PostgreSQL if it is there.
struct World {
    queries: Vec<Query>,
    here: Client,
    oracle: Option<Client>,
}

impl World {
    fn everywhere(&mut self, sql: &str) -> Result<()> {
        self.here.run(sql)?;
        if let Some(oracle) = &mut self.oracle {
            oracle.run(sql).context("PostgreSQL")?;
        }
        Ok(())
    }

    fn make_views(&mut self, when: &str) -> Result<()> {
        for Query { name, sql } in &self.queries {
            let statement = format!("CREATE MATERIALIZED VIEW {when}_{name} AS {sql}");
            self.here.run(&statement).with_context(|| format!("{name} is refused"))?;
        }
        Ok(())
    }

    fn load(&mut self) -> Result<()> {
        for (table, _) in TABLES {
            let rows = data::csv(table, 0..data::orders());
            let statement = format!("COPY {table} FROM STDIN WITH (FORMAT csv)");
            let chunks = || rows.as_bytes().chunks(64 * 1024).map(<[u8]>::to_vec);
            self.here.copy_in(&statement, &mut chunks())?;
            if let Some(oracle) = &mut self.oracle {
                oracle.copy_in(&statement, &mut chunks()).context("PostgreSQL")?;
            }
        }
        if let Some(oracle) = &mut self.oracle {
            oracle.run(ORACLE_INDEXES)?;
        }
        Ok(())
    }

    /// Each view against its SELECT, and that against PostgreSQL.
    fn compare(&mut self, when: &str) -> Result<()> {
        for Query { name, sql } in &self.queries {
            let queried = self.here.rows(sql).with_context(|| format!("{when}: {name}"))?;
            for made in ["before", "after"] {
                let stored = self.here.rows(&format!("SELECT * FROM {made}_{name}"))?;
                if let Some(text) = difference(&stored, &queried) {
                    bail!("{when}: view {made}_{name} against its SELECT: {text}");
                }
            }
            if queried.is_empty() {
                bail!("{when}: {name} has no rows, which proves nothing");
            }
            if let Some(oracle) = &mut self.oracle {
                let expected = oracle.rows(sql)?;
                if let Some(text) = difference_from_oracle(&queried, &expected) {
                    bail!("{when}: {name} against PostgreSQL: {text}");
                }
            }
        }
        println!(
            "  {when}: 44 views equal their queries{}",
            if self.oracle.is_some() { " and PostgreSQL" } else { "" }
        );
        Ok(())
    }

    /// The streams: new orders with their lines, then old ones go.
    fn refresh(&mut self) -> Result<()> {
        for batch in 0..BATCHES {
            let new = data::orders() + batch * BATCH_ORDERS;
            let new = new..new + BATCH_ORDERS;
            let statement =
                format!("BEGIN; {}; {}; COMMIT", insert("orders", new.clone()), insert("lineitem", new.clone()));
            self.everywhere(&statement)?;
            self.compare(&format!("batch {batch}, orders inserted"))?;
            let (first, last) =
                (data::order_key(batch * BATCH_ORDERS), data::order_key((batch + 1) * BATCH_ORDERS - 1));
            self.everywhere(&format!(
                "BEGIN; DELETE FROM lineitem WHERE l_orderkey BETWEEN {first} AND {last};
DELETE FROM orders WHERE o_orderkey BETWEEN {first} AND {last}; COMMIT"
            ))?;
            self.compare(&format!("batch {batch}, orders deleted"))?;
        }
        Ok(())
    }

    /// Queries with a Recompute node; an error if one is not in the list.
    fn recomputed(&mut self) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for Query { name, sql } in &self.queries {
            let lines = self.here.rows(&format!("EXPLAIN CREATE MATERIALIZED VIEW explained AS {sql}"))?;
            let is_node = |row: &Row| row[0].as_ref().is_some_and(|line| line.trim_start().starts_with("-> recompute"));
            if lines.iter().any(is_node) {
                found.push(name.clone());
                if !RECOMPUTED.contains(&name.as_str()) {
                    bail!("{name} has a Recompute node");
                }
            } else if RECOMPUTED.contains(&name.as_str()) {
                println!("  {name} is incremental now: remove it from RECOMPUTED");
            }
        }
        Ok(found)
    }
}

fn insert(table: &str, orders: Range<u64>) -> String {
    let csv = data::csv(table, orders);
    let row = |line: &str| format!("('{}')", line.replace(',', "', '"));
    format!("INSERT INTO {table} VALUES {}", csv.lines().map(row).collect::<Vec<_>>().join(", "))
}

/// As [`difference`], but numbers may be a little apart.
fn difference_from_oracle(rows: &[Row], expected: &[Row]) -> Option<String> {
    let near = |a: &Option<String>, b: &Option<String>| match (a, b) {
        (Some(a), Some(b)) if a != b => match (a.parse::<f64>(), b.parse::<f64>()) {
            (Ok(a), Ok(b)) => (a - b).abs() <= TOLERANCE * a.abs().max(b.abs()),
            _ => false,
        },
        (a, b) => a == b,
    };
    let mut left = expected.to_vec();
    let mut extra = Vec::new();
    for row in rows {
        let same = |other: &Row| row.len() == other.len() && row.iter().zip(other).all(|(a, b)| near(a, b));
        match left.iter().position(same) {
            Some(at) => {
                left.remove(at);
            }
            None => extra.push(row.clone()),
        }
    }
    difference(&extra, &left)
}

/// Everything, on a server of its own. Without an oracle only views and their queries are compared.
pub fn run(oracle: Option<&Postgres>) -> Result<()> {
    let mut server = Server::start()?;
    let outcome = run_on(&server, oracle);
    if outcome.is_err() {
        println!("log and data kept in {}", server.keep().display());
    }
    outcome
}

fn run_on(server: &Server, oracle: Option<&Postgres>) -> Result<()> {
    let oracle = oracle.map(Postgres::client).transpose()?;
    let mut world = World { queries: queries(), here: server.client()?, oracle };
    for (table, columns) in TABLES {
        world.everywhere(&format!("CREATE TABLE {table} ({columns})"))?;
    }
    let recomputed = world.recomputed()?;
    println!("  with a Recompute node: {}", recomputed.join(" "));
    world.make_views("before")?;
    world.load()?;
    world.make_views("after")?;
    world.compare("loaded")?;
    world.refresh()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_22_queries() {
        let found = queries();
        assert_eq!(found.len(), 22);
        assert!(found.iter().all(|query| query.sql.starts_with("select") || query.sql.starts_with("with")));
        assert!(RECOMPUTED.iter().all(|name| found.iter().any(|query| query.name == *name)));
    }
}
