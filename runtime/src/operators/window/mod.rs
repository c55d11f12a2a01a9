//! Window functions: values computed of each row and the rows around it (`OVER`).
//!
//! For the rows `R[p]` of each partition `p`, at every epoch
//!
//! ```text
//! output = { (r, f1(r, R[p]), ..., fn(r, R[p])) | r in R[p] }
//! ```
//!
//! The functions are computed by DataFusion's own execution of the window (those that run with the rows by its accumulators,
//! see [`running`]), so a view cannot differ from its query. What is emitted is the difference of its results over the rows
//! as they were and as they are. Rows that no change reaches have the same results both times and need not be looked at:
//! - partitions without changes never are;
//! - if every function runs with the rows (numbers and ranks, aggregates up to the current row), those before the first
//!   changed one are not; see [`running`];
//! - if every function looks at most `n` rows back and ahead (lag, lead, frames in ROWS with two bounds) and none can fail,
//!   the rows from `2 n` before to `2 n` after each change are enough. Those within `n` of a change see all that they look
//!   at. The `n` outermost on each side may miss something, but the same thing both times, so it cancels;
//! - if every function gives the session of a row, those of the sessions that a change is in or between, as they would be
//!   with all changed rows in them: at their ends there is a pause before and after.
//!
//! A partition for which a function fails (an overflow, say) is not in the output but in the errors output, with its key
//! as row, for as long as that is so.
//!
//! While its dataflow is being filled, rows are only kept; in the epoch in which the fill is complete the results of all
//! partitions are emitted at once. Chunk by chunk, a fill would look at its partitions as often as there are chunks.
//!
//! State: table 0, the rows in order (see [`super::ordered`]); for running functions, table 1 (see [`running`]).

use std::any::Any;
use std::fmt;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::execution::SessionState;
use datafusion::logical_expr::LogicalPlan;
use plan::{Cost, Distribution, Properties, Spec, StateBound};

use self::reach::Reach;
use self::running::Running;
use super::ordered::Layout;
use super::{BuildContext, Operator, OperatorDef, spec_of};
use crate::error::Result;

mod exec;
mod lower;
mod neighbours;
mod reach;
mod running;
#[cfg(test)]
mod tests;

const NAME: &str = "window";

/// Recognises and builds window functions.
#[derive(Debug)]
pub struct WindowDefinition;

/// Window functions as data.
struct WindowSpec {
    layout: Layout,
    /// How far from a change the last row is whose results it may change; none if that may be any of its partition.
    reach: Option<Reach>,
    /// The functions, if all of them run with the rows.
    running: Option<Vec<Running>>,
    /// The window over a placeholder for its input.
    query: LogicalPlan,
    /// Functions and settings to plan and run it with.
    session: SessionState,
    schema: SchemaRef,
    text: String,
}

impl fmt::Debug for WindowSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("WindowSpec").field("layout", &self.layout).field("text", &self.text).finish()
    }
}

impl Spec for WindowSpec {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> u32 {
        1
    }

    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn properties(&self, inputs: &[&Properties]) -> Properties {
        let width = self.layout.width;
        let in_row = |key: &&Vec<usize>| key.iter().all(|column| *column < width);
        Properties {
            keys: inputs[0].keys.iter().filter(in_row).cloned().collect(),
            append_only: false,
            watermarks: Vec::new(),
            extent: inputs[0].extent.clone(),
            state: StateBound::of("all rows of its input", inputs[0].extent.clone()),
        }
    }

    fn cost(&self) -> Cost {
        match (&self.running, self.reach) {
            // The rows around a change are found in the order, and are no more than the query says.
            (None, Some(Reach::Rows(_))) => Cost::Logarithmic,
            (None, Some(Reach::Session { .. })) => Cost::Matches,
            _ if self.layout.partition.is_empty() => Cost::Input,
            _ => Cost::Partition,
        }
    }

    fn distribution(&self, _port: usize) -> Distribution {
        Distribution::ByKey(self.layout.partition.clone())
    }

    fn state_tables(&self) -> usize {
        if self.running.is_some() { 2 } else { 1 }
    }

    fn detail(&self) -> String {
        self.text.clone()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl OperatorDef for WindowDefinition {
    fn build(&self, spec: &dyn Spec, context: BuildContext) -> Result<Box<dyn Operator>> {
        Ok(Box::new(exec::WindowOperator::new(spec_of::<WindowSpec>(spec)?, context)?))
    }
}
