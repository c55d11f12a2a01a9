//! Everything that tests the whole: the real binary, spoken to over the wire.
//!
//! How to write each kind of test:
//! - **What a statement or query answers**: an .slt file, under `slt/` by what a user would look for, or beside the operator or
//!   function that it is about (`runtime/src/**/*.slt`). Every file gets a fresh schema. `restart` on a line of its own kills the
//!   server with -9 and starts it again. `REWRITE=1 cargo test --release -p sql-tests --test slt -- NAME` writes what the server
//!   answered into the files whose path contains NAME; read the difference before committing it.
//! - **What goes over the wire** (error fields, formats, portals, COPY): a test in `tests/wire.rs`, on [`wire::Client`].
//! - **View = query, whatever the query and the changes**: nothing to write; [`generate`] makes the cases. A new kind of expression or
//!   query is a few lines there. A failure prints its seed and a shrunk .slt file: put that under `slt/bugs/`.
//! - **What PostgreSQL answers to queries of every shape**: a template in `corpus/generator`, which writes the files of `corpus/`; see [`corpus`].
//! - **A benchmark's queries as views**: its queries, tables, data and changes; [`suite`] does the rest.
//! - **What a change costs**: a view in `src/measure/operators.sql`.
//! - **What survives `kill -9`**: [`crash`].
//! - **That the random test would find a mistake**: a file of `mutations/` has what to break, on purpose; see [`mutations`].
//! - **The rules of the tree**: [`tidy`].
//! - **An example for users**: a fenced block in `docs/` or README.md; `tests/docs.rs` runs it, see [`examples`].
//!
//! Reading order: [`process`] (one server), [`wire`] (one client), [`slt`], [`generate`] and [`equivalence`], [`mutations`], [`crash`],
//! [`oracle`], [`flights`], [`suite`] with [`tpch`] and [`nexmark`], [`measure`].

pub mod chance;
pub mod corpus;
pub mod crash;
pub mod equivalence;
pub mod examples;
pub mod flights;
pub mod generate;
pub mod measure;
pub mod mutations;
pub mod nexmark;
pub mod oracle;
pub mod process;
pub mod slt;
pub mod suite;
pub mod tidy;
pub mod tpch;
pub mod wire;
