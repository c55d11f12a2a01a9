//! What unit tests plan with.

use datafusion::execution::{FunctionRegistry, SessionStateBuilder};

use crate::{Planner, SessionInfo};

/// A planner with all functions and no operators.
pub(crate) fn planner() -> Planner {
    let mut state = SessionStateBuilder::new().with_default_features().build();
    for function in runtime::functions::scalar() {
        state.register_udf(function).unwrap();
    }
    for function in runtime::functions::aggregates() {
        state.register_udaf(function).unwrap();
    }
    for function in runtime::functions::excluding(state.aggregate_functions().values()) {
        state.register_udwf(function).unwrap();
    }
    Planner::new(state, Vec::new())
}

/// A session in schema `public`.
pub(crate) fn session() -> SessionInfo {
    SessionInfo {
        search_path: vec!["public".to_string()],
        time_zone: "UTC".to_string(),
        user: "tester".to_string(),
        database: "tidemill".to_string(),
    }
}
