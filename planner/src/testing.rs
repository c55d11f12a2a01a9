//! What unit tests plan with.

use datafusion::execution::SessionStateBuilder;

use crate::{Planner, SessionInfo};

/// A planner with all functions and no operators.
pub(crate) fn planner() -> Planner {
    let mut state = SessionStateBuilder::new().with_default_features().build();
    runtime::functions::register(&mut state).unwrap();
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
