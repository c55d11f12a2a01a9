//! TPC-H: its 22 queries as materialized views, made before and after the load, kept up to date through its refresh streams.
//!
//! After the load and after every batch of orders that come or go, each view must hold what its SELECT gives when it is run ad hoc, and
//! that must be what PostgreSQL gives over the same rows. The data is small and of our own making ([`data`]), so that every query has rows.

pub mod data;

use anyhow::{Result, ensure};
use std::ops::Range;

use crate::oracle::Postgres;
use crate::suite::{self, Benchmark, World};

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

fn benchmark() -> Benchmark {
    Benchmark {
        queries: suite::parse(include_str!("tpch/queries.sql")),
        tables: &TABLES,
        oracle_indexes: ORACLE_INDEXES,
        tolerance: 1e-12,
    }
}

/// Everything, on a server of its own. Without an oracle only views and their queries are compared.
pub fn run(oracle: Option<&Postgres>) -> Result<()> {
    suite::run(&benchmark(), oracle, |world| {
        world.load(&|table| data::csv(table, 0..data::orders()))?;
        (0..BATCHES).try_for_each(|batch| refresh(world, batch))?;
        world.restart()
    })
}

/// A pair of the streams: new orders with their lines, then old ones go.
fn refresh(world: &mut World<'_>, batch: u64) -> Result<()> {
    let new = data::orders() + batch * BATCH_ORDERS;
    let new = new..new + BATCH_ORDERS;
    world.everywhere(&format!("BEGIN; {}; {}; COMMIT", insert("orders", new.clone()), insert("lineitem", new)))?;
    rows_stay(world, &format!("batch {batch}, orders inserted"))?;
    let (first, last) = (data::order_key(batch * BATCH_ORDERS), data::order_key((batch + 1) * BATCH_ORDERS - 1));
    world.everywhere(&format!(
        "BEGIN; DELETE FROM lineitem WHERE l_orderkey BETWEEN {first} AND {last};
DELETE FROM orders WHERE o_orderkey BETWEEN {first} AND {last}; COMMIT"
    ))?;
    rows_stay(world, &format!("batch {batch}, orders deleted"))
}

/// Compares; a query without rows would prove nothing.
fn rows_stay(world: &mut World<'_>, when: &str) -> Result<()> {
    let empty = world.compare(when)?;
    ensure!(empty.is_empty(), "{when}: without rows: {}", empty.join(" "));
    Ok(())
}

fn insert(table: &str, orders: Range<u64>) -> String {
    let csv = data::csv(table, orders);
    let row = |line: &str| format!("('{}')", line.replace(',', "', '"));
    format!("INSERT INTO {table} VALUES {}", csv.lines().map(row).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_22_queries() {
        let found = benchmark().queries;
        assert_eq!(found.len(), 22);
        assert!(found.iter().all(|query| query.sql.starts_with("select") || query.sql.starts_with("with")));
    }
}
