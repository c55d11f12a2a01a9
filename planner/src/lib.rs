//! SQL text in, statement or dataflow plan out.
//!
//! text ─► [`Parsed`] ─► [`Statement`] (names and types resolved over a [`Catalog`]) ─► optimized logical plan ─►
//! dataflow plan. No IO, no clock, and no operator is named here: operators recognise their own patterns.
//!
//! Reading order: [`statement`] (what a client can ask), [`catalog`] (what planning asks of the catalog), [`parse`]
//! (text to syntax tree), [`windows`] (all spellings of time windows to one), [`bind`] (syntax tree to statement).

pub mod bind;
pub mod catalog;
pub mod explain;
mod lowering;
mod optimize;
pub mod parse;
pub mod statement;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod testing;
pub mod text;
mod volatile;
pub mod windows;

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use plan::{Lower, PlanError};

pub use bind::interval::parse_interval;
pub use bind::query::{output_schema, shown_schema};
pub use catalog::{Catalog, SessionInfo};
pub use optimize::join_order::VERSION as JOIN_ORDER_VERSION;
pub use parse::Parsed;
pub use plan::json::canonical as canonical_jsonb;
pub use statement::Statement;

/// Turns text into statements and queries into dataflow plans. One for a process; shared by all sessions.
pub struct Planner {
    session: SessionState,
    operators: Vec<Arc<dyn Lower>>,
}

/// A statement with its names and types resolved.
#[derive(Debug, Clone)]
pub struct Bound {
    /// The statement.
    pub statement: Statement,
    /// Types of `$1`, `$2`, ...: declared or inferred.
    pub parameters: Vec<FieldRef>,
    /// Columns of the rows that it returns, if it returns rows.
    pub schema: Option<SchemaRef>,
}

impl Planner {
    /// A planner over DataFusion's session, in which all functions are registered already, and the operators that
    /// may appear in dataflow plans, from specific to general.
    pub fn new(session: SessionState, operators: Vec<Arc<dyn Lower>>) -> Planner {
        Planner { session: bind::prepare_session(session), operators }
    }

    /// Splits a text into statements and parses each.
    pub fn parse(&self, text: &str) -> Result<Vec<Parsed>, PlanError> {
        parse::parse(text)
    }

    /// Resolves the names and types of a statement. Types of parameters that the client declares are given;
    /// the others are inferred.
    pub fn bind(
        &self,
        parsed: &Parsed,
        catalog: &dyn Catalog,
        session: &SessionInfo,
        parameter_types: &[Option<DataType>],
    ) -> Result<Bound, PlanError> {
        bind::bind(self, parsed, catalog, session, parameter_types)
    }

    /// Replaces `$1`, `$2`, ... by values. The values are cast to the types that binding reported.
    pub fn with_parameters(&self, statement: Statement, values: &[ScalarValue]) -> Result<Statement, PlanError> {
        bind::parameters::with_parameters(statement, values, "UTC")
    }

    /// Plans the stored definition of a view again, over the catalog as it is now.
    pub fn plan_view(&self, view: &catalog::ViewInfo, catalog: &dyn Catalog) -> Result<LogicalPlan, PlanError> {
        bind::plan_view(self, view, catalog)
    }

    /// DataFusion's functions, rules and options.
    pub fn session_state(&self) -> &SessionState {
        &self.session
    }

    /// The operators that may appear in dataflow plans, from specific to general.
    pub fn operators(&self) -> &[Arc<dyn Lower>] {
        &self.operators
    }
}
