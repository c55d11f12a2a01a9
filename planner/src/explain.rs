//! Plans as text, with what is known of every node.

use std::collections::HashSet;
use std::ops::Range;

use datafusion::logical_expr::LogicalPlan;
use plan::{Dataflow, Layout, Node, NodeId, NodeKind, Properties};

/// An optimized logical plan, a node a line.
pub fn explain_query(plan: &LogicalPlan) -> Vec<String> {
    plan.display_indent().to_string().lines().map(str::to_owned).collect()
}

/// A dataflow plan as a tree from its result to its imports: each node with its keys, whether it retracts, what a changed
/// row costs, and its state. A node that is used twice is printed once and referred to afterwards.
pub fn explain_dataflow(dataflow: &Dataflow) -> Vec<String> {
    explain_state(dataflow).0
}

/// The same, and which lines tell of an operator's state: the number of the line and those of its state tables.
pub fn explain_state(dataflow: &Dataflow) -> (Vec<String>, Vec<(usize, Range<usize>)>) {
    let stored = match dataflow.output_layout() {
        Layout::Keyed(key) => format!("stored by key {}", columns(dataflow.node(dataflow.output()), &key)),
        Layout::RowId | Layout::Multiset => "stored as counted rows".to_owned(),
    };
    let mut printed = Printed { lines: vec![format!("Materialize ({stored})")], ..Printed::default() };
    printed.add(dataflow, dataflow.output(), 1);
    (printed.lines, printed.state)
}

/// What is printed so far.
#[derive(Default)]
struct Printed {
    nodes: HashSet<NodeId>,
    lines: Vec<String>,
    state: Vec<(usize, Range<usize>)>,
}

impl Printed {
    fn add(&mut self, dataflow: &Dataflow, id: NodeId, depth: usize) {
        let node = dataflow.node(id);
        let indent = "  ".repeat(depth);
        let title = node.title();
        if !self.nodes.insert(id) {
            self.lines.push(format!("{indent}-> {title} (node {}, shared)", id.0));
            return;
        }
        self.lines.push(format!("{indent}-> {title} (node {})", id.0));
        if let NodeKind::Operator(spec) = &node.kind
            && spec.state_tables() > 0
        {
            let first = node.first_state_table;
            self.state.push((self.lines.len(), first..first + spec.state_tables()));
        }
        self.lines.push(format!("{indent}     {}", facts(node)));
        for input in &node.inputs {
            self.add(dataflow, *input, depth + 1);
        }
    }
}

/// The line below a node: its keys, changes, cost and state.
fn facts(node: &Node) -> String {
    let Properties { keys, append_only, watermarks, state, .. } = &node.properties;
    let mut parts = Vec::new();
    match keys.as_slice() {
        [] => parts.push("no key".to_owned()),
        keys => {
            parts.push(format!("key {}", keys.iter().map(|key| columns(node, key)).collect::<Vec<_>>().join(" or ")))
        }
    }
    parts.push(if *append_only { "append-only" } else { "retracting" }.to_owned());
    if !watermarks.is_empty() {
        parts.push(format!("watermark {}", columns(node, watermarks)));
    }
    parts.push(node.cost().to_string());
    parts.push(state.to_string());
    parts.join(", ")
}

fn columns(node: &Node, positions: &[usize]) -> String {
    let names: Vec<&str> = positions.iter().map(|position| node.schema.field(*position).name().as_str()).collect();
    format!("({})", names.join(", "))
}
