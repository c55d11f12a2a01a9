//! What every operator answers for itself.

use std::any::Any;
use std::fmt::Debug;

use datafusion::arrow::datatypes::SchemaRef;

use crate::bounds::Cost;
use crate::properties::Properties;

/// How the rows of an input port must be dealt out over the workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Distribution {
    /// Any worker may see any row.
    Any,
    /// Rows that agree in these columns of the port's input meet on one worker. With no columns, all
    /// rows meet on one worker.
    ByKey(Vec<usize>),
}

/// One operator of a dataflow plan, as data. No default methods: whatever decides correctness is answered
/// by the operator itself.
pub trait Spec: Debug + Send + Sync + Any {
    /// The operator's name, under which the runtime finds its implementation; EXPLAIN prints it.
    fn name(&self) -> &'static str;
    /// Changes whenever the layout of the operator's state changes.
    fn version(&self) -> u32;
    /// The columns of its output.
    fn schema(&self) -> SchemaRef;
    /// What is known of its output, and what it keeps, given its inputs.
    fn properties(&self, inputs: &[&Properties]) -> Properties;
    /// The order of the work that a changed row of an input makes.
    fn cost(&self) -> Cost;
    /// How it needs the rows of an input port dealt out.
    fn distribution(&self, port: usize) -> Distribution;
    /// How many state tables it keeps.
    fn state_tables(&self) -> usize;
    /// Its expressions and arguments, for EXPLAIN: what follows the name on its line.
    fn detail(&self) -> String;
    /// For the implementation to find its own type again.
    fn as_any(&self) -> &dyn Any;
}
