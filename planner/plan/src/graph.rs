//! The dataflow plan.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;

use crate::bounds::{Cost, Extent, Growth, StateBound};
use crate::error::PlanError;
use crate::properties::Properties;
use crate::relation::{Layout, Relation, RelationId};
use crate::spec::Spec;

/// Position of a node in its [`Dataflow`]. Inputs of a node always have smaller numbers: this makes the
/// graph acyclic by construction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

/// What a node does.
#[derive(Debug, Clone)]
pub enum NodeKind {
    /// Emits the rows of a stored relation, and then its changes.
    Import(Arc<Relation>),
    /// Applies an operator to its inputs.
    Operator(Arc<dyn Spec>),
}

/// A node of a dataflow plan.
#[derive(Debug, Clone)]
pub struct Node {
    /// What it does.
    pub kind: NodeKind,
    /// Where its rows come from, in port order.
    pub inputs: Vec<NodeId>,
    /// Columns of its output.
    pub schema: SchemaRef,
    /// What is known of its output.
    pub properties: Properties,
    /// Number of its first state table, counted from 0 within the dataflow.
    pub first_state_table: usize,
}

impl Node {
    /// The order of the work that a changed row of an input makes.
    pub fn cost(&self) -> Cost {
        match &self.kind {
            NodeKind::Import(_) => Cost::Constant,
            NodeKind::Operator(spec) => spec.cost(),
        }
    }

    /// What it does, on a line: the name of its operator and the expressions, or that of a relation.
    pub fn title(&self) -> String {
        match &self.kind {
            NodeKind::Import(relation) => format!("Import {}", relation.unqualified_name()),
            NodeKind::Operator(spec) => {
                let detail = spec.detail();
                if detail.is_empty() { spec.name().to_owned() } else { format!("{} {detail}", spec.name()) }
            }
        }
    }
}

/// A dataflow plan: nodes in topological order, and the one whose output is the result.
#[derive(Debug, Clone, Default)]
pub struct Dataflow {
    nodes: Vec<Node>,
    state_tables: usize,
    output: Option<NodeId>,
    imports: BTreeMap<RelationId, NodeId>,
}

impl Dataflow {
    /// The import of a relation; a second import of the same relation is the same node.
    pub fn import(&mut self, relation: Arc<Relation>) -> NodeId {
        if let Some(id) = self.imports.get(&relation.id) {
            return *id;
        }
        let keys = match &relation.layout {
            Layout::Keyed(key) => vec![key.clone()],
            Layout::RowId | Layout::Multiset => Vec::new(),
        };
        let properties = Properties {
            keys,
            append_only: relation.append_only,
            watermarks: relation.watermarks.clone(),
            extent: Extent {
                growth: relation.growth,
                growing: (relation.growth == Growth::Endless)
                    .then(|| relation.unqualified_name().to_owned())
                    .into_iter()
                    .collect(),
            },
            state: StateBound::Stateless,
        };
        let relation_id = relation.id;
        let id = self.push(Node {
            schema: relation.schema.clone(),
            kind: NodeKind::Import(relation),
            inputs: Vec::new(),
            properties,
            first_state_table: self.state_tables,
        });
        self.imports.insert(relation_id, id);
        id
    }

    /// Adds an operator over existing nodes.
    pub fn add(&mut self, spec: Arc<dyn Spec>, inputs: Vec<NodeId>) -> NodeId {
        let properties = {
            let of_inputs: Vec<&Properties> = inputs.iter().map(|id| &self.node(*id).properties).collect();
            spec.properties(&of_inputs)
        };
        let first_state_table = self.state_tables;
        self.state_tables += spec.state_tables();
        self.push(Node { schema: spec.schema(), kind: NodeKind::Operator(spec), inputs, properties, first_state_table })
    }

    fn push(&mut self, node: Node) -> NodeId {
        self.nodes.push(node);
        NodeId(self.nodes.len() - 1)
    }

    /// Declares the node whose output is the result.
    pub fn set_output(&mut self, output: NodeId) {
        self.output = Some(output);
    }

    /// The node whose output is the result: the one set, else the last.
    pub fn output(&self) -> NodeId {
        self.output.unwrap_or(NodeId(self.nodes.len().saturating_sub(1)))
    }

    /// A node by number.
    ///
    /// # Panics
    /// If the number is of another dataflow.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.0]
    }

    /// All nodes, inputs before their consumers.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The relations that are imported, with their nodes.
    pub fn imports(&self) -> impl Iterator<Item = (&Arc<Relation>, NodeId)> {
        self.imports.values().filter_map(|id| match &self.node(*id).kind {
            NodeKind::Import(relation) => Some((relation, *id)),
            NodeKind::Operator(_) => None,
        })
    }

    /// How many state tables all operators keep together.
    pub fn state_tables(&self) -> usize {
        self.state_tables
    }

    /// How the result is to be stored, from what is known of it: under its smallest key, else as a multiset.
    pub fn output_layout(&self) -> Layout {
        match self.node(self.output()).properties.smallest_key() {
            Some(key) => Layout::Keyed(key.to_vec()),
            None => Layout::Multiset,
        }
    }

    /// A text that changes when the shape of the plan or the layout of its state does: stored with a view,
    /// and compared when the view is planned again after a restart.
    pub fn fingerprint(&self) -> String {
        let mut text = String::new();
        for node in &self.nodes {
            match &node.kind {
                NodeKind::Import(relation) => text.push_str(&format!("import {}", relation.id.0)),
                NodeKind::Operator(spec) => text.push_str(&format!("{} v{}", spec.name(), spec.version())),
            }
            let inputs: Vec<String> = node.inputs.iter().map(|id| id.0.to_string()).collect();
            text.push_str(&format!("({})@{};", inputs.join(","), node.first_state_table));
        }
        text.push_str(&format!("output {}", self.output().0));
        text
    }

    /// Checks that inputs come before consumers, that an output exists, and that schemas agree with specs.
    pub fn validate(&self) -> Result<(), PlanError> {
        if self.nodes.is_empty() {
            return Err(PlanError::internal("a dataflow plan has no nodes"));
        }
        for (index, node) in self.nodes.iter().enumerate() {
            if node.inputs.iter().any(|input| input.0 >= index) {
                return Err(PlanError::internal(format!("node {index} of a dataflow plan reads a later node")));
            }
            if let NodeKind::Operator(spec) = &node.kind
                && spec.schema() != node.schema
            {
                return Err(PlanError::internal(format!("node {index} ({}) disagrees with its schema", spec.name())));
            }
        }
        if self.output().0 >= self.nodes.len() {
            return Err(PlanError::internal("a dataflow plan has no output"));
        }
        Ok(())
    }
}
