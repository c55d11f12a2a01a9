//! What the maker of a materialized view is told of its dataflow: the parts that are recomputed, and the operators whose
//! state grows without bound, which the session's policy may also refuse.
//!
//! The rows of the view itself are not among them: whoever asks for all rows of a relation gets them.

use plan::{Dataflow, Kept, Node, NodeKind, SqlState};
use runtime::operators::recompute;

use crate::error::{Notice, ServerError};

/// What to write in place of a part that is recomputed.
const INCREMENTAL_HINT: &str = "Write the part in a form that is incremental (see \"Coverage\" in the documentation). \
    EXPLAIN CREATE MATERIALIZED VIEW shows where it stands.";
/// What frees state of any operator.
const DELETE_HINT: &str = "State over tables that are not APPEND ONLY is freed when their rows are deleted.";
/// How to make the view all the same.
const ACCEPT_HINT: &str = "SET state_policy = 'notice' accepts the growth.";

/// What to do about state that grows without bound, when a materialized view is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StatePolicy {
    /// A notice tells of it.
    #[default]
    Notice,
    /// The view is refused.
    RequireBounded,
}

/// The notices about a new view, or why the policy refuses it.
pub fn notices(dataflow: &Dataflow, view: &str, policy: StatePolicy) -> Result<Vec<Notice>, ServerError> {
    let nodes = || dataflow.nodes().iter().enumerate();
    let growing: Vec<(usize, &Node, &Kept)> =
        nodes().filter_map(|(id, node)| Some((id, node, node.properties.state.endless()?))).collect();
    if policy == StatePolicy::RequireBounded
        && let Some((_, _, first)) = growing.first()
    {
        let details: Vec<String> =
            growing.iter().map(|(id, node, kept)| format!("Node {id}: {}", growth(node, kept))).collect();
        let message = format!("materialized view \"{view}\" would keep state that grows without bound");
        return Err(ServerError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message)
            .with_detail(details.join("\n"))
            .with_hint(format!("{} {ACCEPT_HINT}", hint(first))));
    }
    let mut notices = Vec::new();
    for (id, node) in nodes() {
        if let NodeKind::Operator(spec) = &node.kind
            && spec.name() == recompute::NAME
        {
            let message =
                format!("part of materialized view \"{view}\" is computed anew whenever its input changes (node {id})");
            notices.push(Notice::plain(message).with_detail(spec.detail()).with_hint(INCREMENTAL_HINT));
        }
    }
    for (id, node, kept) in growing {
        let message = format!("state of materialized view \"{view}\" grows without bound (node {id})");
        notices.push(Notice::plain(message).with_detail(growth(node, kept)).with_hint(hint(kept)));
    }
    Ok(notices)
}

/// Which operator keeps what, and why that grows.
fn growth(node: &Node, kept: &Kept) -> String {
    format!("{} keeps {}, and {}.", node.title(), kept.what, kept.extent.reason())
}

fn hint(kept: &Kept) -> String {
    kept.instead.map_or_else(|| DELETE_HINT.to_owned(), |instead| format!("{instead} {DELETE_HINT}"))
}
