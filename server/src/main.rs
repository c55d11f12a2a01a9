//! The server `tidemill`: clients connect with any Postgres driver, create tables and materialized views, and read
//! views that are always up to date.
//!
//! Reading order: [`config`] (what can be set), [`server`] (how the parts are put together), [`pgwire`] (the
//! protocol), [`session`] (one client), and then the coordinator, the catalog and reads.

mod catalog;
mod coordinator;
mod error;
mod read;
mod task;

fn main() {}
