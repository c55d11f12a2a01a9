//! Reads: a bound query over one snapshot, run by DataFusion.

use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::SessionConfig;

use crate::catalog::SystemFunctions;

/// The session that planning and ad-hoc execution share: DataFusion's functions, ours, and those of the system
/// catalog; one partition, because a snapshot scan is one ordered stream.
pub fn session_state(system: &SystemFunctions) -> SessionState {
    let config = SessionConfig::new().with_target_partitions(1).with_information_schema(false);
    let mut state = SessionStateBuilder::new().with_config(config).with_default_features().build();
    use datafusion::execution::FunctionRegistry;
    for function in runtime::functions::scalar().into_iter().chain(system.scalar()) {
        if let Err(error) = state.register_udf(function) {
            tracing::error!(%error, "a function is not registered");
        }
    }
    for function in runtime::functions::aggregates() {
        if let Err(error) = state.register_udaf(function) {
            tracing::error!(%error, "an aggregate is not registered");
        }
    }
    state
}
