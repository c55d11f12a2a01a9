//! The vocabulary that the planner hands to the runtime.
//!
//! A *dataflow plan* is a directed acyclic graph of nodes. A node either imports a stored relation or
//! applies one operator, described by its [`Spec`], to the outputs of other nodes. Every edge carries
//! deltas: rows with integer weights.
//!
//! Reading order: [`relation`] (what is imported), [`properties`] (what is known of a node), [`bounds`] (what it costs
//! and keeps), [`spec`] (what an operator answers for itself), [`graph`] (the plan), [`lower`] (from logical plan to
//! plan), [`error`] and [`sqlstate`] (what a user is told).
//! [`numeric`] and [`json`] are what both crates know of values, [`expressions`] of expressions, [`exclusion`] of frames that
//! leave rows out.
//!
//! This crate knows no engine, no storage, no SQL text, and names no operator.

pub mod bounds;
pub mod error;
pub mod exclusion;
pub mod expressions;
pub mod graph;
pub mod json;
pub mod lower;
pub mod numeric;
pub mod properties;
pub mod relation;
pub mod spec;
pub mod sqlstate;

pub use bounds::{Cost, Extent, Growth, Kept, StateBound};
pub use error::PlanError;
pub use graph::{Dataflow, Node, NodeId, NodeKind};
pub use lower::{Lower, LowerContext, Lowered};
pub use properties::Properties;
pub use relation::{Layout, Relation, RelationId, RelationKind, RelationSource};
pub use spec::{Distribution, Spec};
pub use sqlstate::SqlState;
