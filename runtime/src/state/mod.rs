//! What is kept: the store, the state tables of operators, the rows of relations.
//!
//! Key of every entry: `[table id u32 BE][partition u16 BE][key bytes]`, where the partition (virtual node) is
//! `hash(distribution key) mod 1024` ([`crate::delta::key::partition_of`]). A worker owns a range of
//! partitions.
//!
//! Reading order: [`store`] (the trait: snapshots and atomic epochs), `rocks` and [`memory`] (its two
//! implementations), [`table`] ([`StateTable`]: all that an operator may do), [`relation`] (rows of tables and
//! views as entries).

pub mod budget;
mod cache;
mod cached;
pub mod layout;
pub mod memory;
mod order;
pub mod overlay;
mod prefixes;
pub mod relation;
pub mod rocks;
pub mod store;
pub mod table;

pub use store::{Entry, EpochBatch, Snapshot, Store, Sync};
pub use table::{StateTable, WorkerState};
