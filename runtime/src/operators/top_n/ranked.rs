//! A window of numbered rows under bounds, as a node of the logical plan: what a filter over it becomes.

use std::fmt;

use datafusion::common::DFSchemaRef;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};

/// The rows of a window whose number is within bounds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd)]
pub(super) struct Ranked {
    /// The window; all its functions number rows by one order.
    pub(super) window: LogicalPlan,
    /// Which of its functions is bounded.
    pub(super) function: usize,
    pub(super) lowest: u64,
    pub(super) highest: u64,
}

impl UserDefinedLogicalNodeCore for Ranked {
    fn name(&self) -> &str {
        "Ranked"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.window]
    }

    fn schema(&self) -> &DFSchemaRef {
        self.window.schema()
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ranked: {} to {}", self.lowest, self.highest)
    }

    fn with_exprs_and_inputs(&self, _expressions: Vec<Expr>, mut inputs: Vec<LogicalPlan>) -> Result<Self> {
        let window = inputs.pop().unwrap_or_else(|| self.window.clone());
        Ok(Ranked { window, ..self.clone() })
    }
}
