//! SQL text in, statement or dataflow plan out.
//!
//! text ─► [`Parsed`] ─► [`Statement`] (names and types resolved over a [`Catalog`]) ─► optimized logical plan ─►
//! dataflow plan. No IO, no clock, and no operator is named here: operators recognise their own patterns.

pub mod catalog;
pub mod statement;

pub use catalog::{Catalog, SessionInfo};
pub use statement::Statement;
