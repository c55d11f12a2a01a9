//! From a recursive query to its spec: the recursive term becomes a dataflow within the operator.
//!
//! What does not read R is lowered outside, by the context, and becomes a port. The rest is lowered by the same
//! operators as any query. That is tried out first, without adding anything outside, because an operator that declines
//! must not have added nodes.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::JoinType;
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, RecursiveQuery, TableScan, TableScanBuilder};
use plan::{
    Dataflow, Growth, Layout, Lower, LowerContext, Lowered, NodeId, NodeKind, PlanError, Properties, Relation,
    RelationId, RelationKind, RelationSource, Spec,
};

use super::{NAME, Recursion, RecursionDefinition};
use crate::delta::key::KeyEncoder;
use crate::delta::rows;
use crate::expressions::{message_of, refusal};
use crate::operators::{OperatorDef, definitions, recompute};

impl Lower for RecursionDefinition {
    fn name(&self) -> &'static str {
        NAME
    }

    fn lower(&self, plan: &LogicalPlan, context: &mut dyn LowerContext) -> Result<Lowered, PlanError> {
        let LogicalPlan::RecursiveQuery(query) = plan else { return Ok(Lowered::Declined(None)) };
        if let Err(reason) = check(query) {
            return Ok(Lowered::Declined(Some(reason)));
        }
        let mut rehearsal = Term::new(query, Outside::Rehearsal(Box::new(context.session().clone())));
        if let Err(error) = rehearsal.lower(&query.recursive_term) {
            return Ok(Lowered::Declined(Some(error.to_string())));
        }
        let base = context.lower(&query.static_term)?;
        let mut term = Term::new(query, Outside::Context(context));
        term.ports.push(base);
        let output = term.lower(&query.recursive_term)?;
        term.step.set_output(output);
        term.step.validate()?;
        let Term { step, ports, inverting, .. } = term;
        let spec = Recursion {
            distinct: query.is_distinct,
            schema: query.schema.inner().clone(),
            text: text(query, &step),
            step,
            inverting,
        };
        Ok(Lowered::Node(context.add(Arc::new(spec), ports)))
    }
}

fn text(query: &RecursiveQuery, step: &Dataflow) -> String {
    let operator = |kind: &NodeKind| match kind {
        NodeKind::Import(_) => None,
        NodeKind::Operator(spec) => Some(format!("{} {}", spec.name(), spec.detail())),
    };
    let steps: Vec<String> = step.nodes().iter().rev().filter_map(|node| operator(&node.kind)).collect();
    let union = if query.is_distinct { "union" } else { "union all" };
    format!("{} = base {union} ({})", query.name, steps.join(" over "))
}

/// Whether the recursive term is linear in R, and rows can be stored.
fn check(query: &RecursiveQuery) -> Result<(), String> {
    let types = |plan: &LogicalPlan| -> Vec<_> {
        plan.schema().fields().iter().map(|field| field.data_type().clone()).collect()
    };
    let wanted: Vec<_> = query.schema.fields().iter().map(|field| field.data_type().clone()).collect();
    if types(&query.static_term) != wanted || types(&query.recursive_term) != wanted {
        return Err("the two terms of the recursion differ in their types".to_owned());
    }
    if !rows::supports(&wanted) || (query.is_distinct && !KeyEncoder::supports(&wanted)) {
        return Err("a column's type cannot be stored".to_owned());
    }
    linear(&query.recursive_term, query)
}

fn linear(plan: &LogicalPlan, query: &RecursiveQuery) -> Result<(), String> {
    if let Some(reason) = plan.expressions().iter().find_map(refusal) {
        return Err(reason);
    }
    let reading: Vec<usize> = plan
        .inputs()
        .iter()
        .enumerate()
        .filter_map(|(index, input)| reads(input, &query.name).then_some(index))
        .collect();
    let fits = match plan {
        LogicalPlan::TableScan(scan) => scan.filters.is_empty() && scan.fetch.is_none(),
        LogicalPlan::Projection(_)
        | LogicalPlan::Filter(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Union(_)
        | LogicalPlan::Unnest(_) => true,
        LogicalPlan::Join(join) => match join.join_type {
            JoinType::Inner => reading.len() == 1,
            JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti => reading == [0],
            JoinType::Right | JoinType::RightSemi | JoinType::RightAnti => reading == [1],
            _ => false,
        },
        _ => false,
    };
    if !fits {
        let what = plan.display().to_string();
        let what = what.split([':', ' ']).next().unwrap_or_default().to_owned();
        return Err(format!("{what} over the rows of a recursion does not treat them one by one"));
    }
    plan.inputs().into_iter().filter(|input| reads(input, &query.name)).try_for_each(|input| linear(input, query))
}

/// Whether a plan reads the rows of the recursion.
fn reads(plan: &LogicalPlan, name: &str) -> bool {
    match plan {
        LogicalPlan::TableScan(scan) => is_recursion(scan, name),
        // It has rows of its own under this name.
        LogicalPlan::RecursiveQuery(inner) if inner.name == name => reads(&inner.static_term, name),
        other => other.inputs().into_iter().any(|input| reads(input, name)),
    }
}

fn is_recursion(scan: &TableScan, name: &str) -> bool {
    RelationSource::of(scan.source.as_ref()).is_none() && scan.table_name.table() == name
}

/// Where that is lowered which does not read R.
enum Outside<'a> {
    /// Nowhere: only what comes of it is looked at.
    Rehearsal(Box<SessionState>),
    Context(&'a mut dyn LowerContext),
}

/// The recursive term in the making.
struct Term<'a> {
    query: &'a RecursiveQuery,
    outside: Outside<'a>,
    operators: Vec<Arc<dyn OperatorDef>>,
    step: Dataflow,
    /// The nodes outside, by port.
    ports: Vec<NodeId>,
    /// By port; the base is not.
    inverting: Vec<bool>,
    /// Whether what is being lowered is joined in a way that turns removals into additions.
    inverted: bool,
    refusals: Vec<Vec<String>>,
}

impl<'a> Term<'a> {
    fn new(query: &'a RecursiveQuery, outside: Outside<'a>) -> Self {
        // Recomputing is for the whole of the recursion.
        let operators = definitions().into_iter().filter(|operator| operator.name() != recompute::NAME).collect();
        Term {
            query,
            outside,
            operators,
            step: Dataflow::default(),
            ports: Vec::new(),
            inverting: vec![false],
            inverted: false,
            refusals: Vec::new(),
        }
    }

    /// What does not read R: a port.
    fn port(&mut self, plan: &LogicalPlan) -> Result<NodeId, PlanError> {
        let (port, schema) = match &mut self.outside {
            Outside::Rehearsal(_) => (self.inverting.len(), Arc::new(plan.schema().as_arrow().clone())),
            Outside::Context(context) => {
                let node = context.lower(plan)?;
                // The base may be read by the recursive term too: it has a port of its own for that.
                let known = self.ports.iter().skip(1).position(|known| *known == node).map(|index| index + 1);
                let port = known.unwrap_or_else(|| {
                    self.ports.push(node);
                    self.ports.len() - 1
                });
                (port, context.schema(node))
            }
        };
        self.inverting.resize(self.inverting.len().max(port + 1), false);
        self.inverting[port] |= self.inverted;
        Ok(self.step.import(relation(port, &format!("input {port}"), schema)))
    }

    /// R: an import, and a projection if it is not read whole.
    fn scan(&mut self, scan: &TableScan) -> Result<NodeId, PlanError> {
        if scan.projection.is_none() {
            let schema = self.query.schema.inner().clone();
            return Ok(self.step.import(relation(0, &self.query.name, schema)));
        }
        let internal = |error| PlanError::internal(message_of(&error));
        let all = TableScanBuilder::new(scan.table_name.clone(), scan.source.clone()).build().map_err(internal)?;
        let columns = scan.projected_schema.columns().into_iter().map(Expr::Column).collect();
        let projection = Projection::try_new(columns, Arc::new(LogicalPlan::TableScan(all))).map_err(internal)?;
        self.ask(&LogicalPlan::Projection(projection))
    }

    fn ask(&mut self, plan: &LogicalPlan) -> Result<NodeId, PlanError> {
        self.refusals.push(Vec::new());
        for operator in self.operators.clone() {
            match operator.lower(plan, self)? {
                Lowered::Node(node) => {
                    self.refusals.pop();
                    return Ok(node);
                }
                Lowered::Declined(reason) => {
                    if let (Some(reasons), Some(reason)) = (self.refusals.last_mut(), reason) {
                        reasons.push(reason);
                    }
                }
            }
        }
        let reasons = self.refusals.pop().unwrap_or_default();
        Err(PlanError::unsupported(format!("{} in a recursive term: {}", plan.display(), reasons.join("; "))))
    }
}

/// An import of the recursive term, which is known by its number only.
fn relation(port: usize, name: &str, schema: SchemaRef) -> Arc<Relation> {
    Arc::new(Relation {
        id: RelationId(port as u32),
        name: name.to_owned(),
        kind: RelationKind::MaterializedView,
        schema,
        layout: Layout::Multiset,
        append_only: false,
        growth: Growth::Deletable,
        watermarks: Vec::new(),
    })
}

impl LowerContext for Term<'_> {
    fn lower(&mut self, plan: &LogicalPlan) -> Result<NodeId, PlanError> {
        if !reads(plan, &self.query.name) {
            return self.port(plan);
        }
        match plan {
            LogicalPlan::TableScan(scan) => self.scan(scan),
            LogicalPlan::Join(join) => {
                let before = self.inverted;
                self.inverted |= !matches!(join.join_type, JoinType::Inner | JoinType::LeftSemi | JoinType::RightSemi);
                let node = self.ask(plan);
                self.inverted = before;
                node
            }
            other => self.ask(other),
        }
    }

    fn add(&mut self, spec: Arc<dyn Spec>, inputs: Vec<NodeId>) -> NodeId {
        self.step.add(spec, inputs)
    }

    fn import(&mut self, relation: Arc<Relation>) -> NodeId {
        self.step.import(relation)
    }

    fn schema(&self, node: NodeId) -> SchemaRef {
        self.step.node(node).schema.clone()
    }

    fn properties(&self, node: NodeId) -> Properties {
        self.step.node(node).properties.clone()
    }

    fn session(&self) -> &SessionState {
        match &self.outside {
            Outside::Rehearsal(session) => session,
            Outside::Context(context) => context.session(),
        }
    }

    fn refusals(&self) -> Vec<String> {
        self.refusals.last().cloned().unwrap_or_default()
    }
}
