//! Cuts a node out of a logical plan: the node (with what must stay below it) over placeholders for its inputs.

use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Column, TableReference};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableScan, TableSource};
use plan::expressions::looks_elsewhere;
use plan::{PlanError, Relation, RelationSource};

use crate::expressions::message_of;

/// A part of a plan and what it reads.
pub(in crate::operators) struct Cut {
    /// The part, scanning an [`InputSource`] for each input.
    pub(in crate::operators) query: LogicalPlan,
    /// What it reads, by port.
    pub(in crate::operators) inputs: Vec<Input>,
    /// The nodes in it, a line each.
    pub(in crate::operators) replaced: Vec<String>,
}

/// What a part of a plan reads.
pub(in crate::operators) enum Input {
    /// The output of a node below.
    Plan(LogicalPlan),
    /// A stored relation.
    Relation(Arc<Relation>),
}

impl Input {
    /// The columns as the placeholder shows them.
    pub(in crate::operators) fn schema(&self) -> SchemaRef {
        match self {
            Input::Plan(plan) => numbered_columns(plan),
            Input::Relation(relation) => relation.schema.clone(),
        }
    }
}

/// Stands for an input in the query. It is replaced by the input's rows before the query runs.
#[derive(Debug)]
pub(super) struct InputSource {
    /// Which input.
    pub(super) port: usize,
    schema: SchemaRef,
}

impl TableSource for InputSource {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// Cuts the root of a plan out, or all of the plan if its root cannot be parted from what is below.
pub(in crate::operators) fn cut(plan: &LogicalPlan) -> Result<Cut, PlanError> {
    refuse_statements(plan)?;
    let counts = matches!(plan, LogicalPlan::Limit(_));
    let cut = if can_be_cut(plan, counts) { cut_root(plan, counts) } else { cut_leaves(plan) };
    cut.map_err(|error| PlanError::internal(message_of(&error)))
}

fn refuse_statements(plan: &LogicalPlan) -> Result<(), PlanError> {
    match plan {
        LogicalPlan::Statement(_)
        | LogicalPlan::Explain(_)
        | LogicalPlan::Analyze(_)
        | LogicalPlan::Dml(_)
        | LogicalPlan::Ddl(_)
        | LogicalPlan::Copy(_)
        | LogicalPlan::DescribeTable(_) => Err(PlanError::unsupported("a statement inside a query")),
        _ => Ok(()),
    }
}

/// Whether the node, and what stays below it, can run over the results of its children.
fn can_be_cut(plan: &LogicalPlan, counts: bool) -> bool {
    let alone = !matches!(
        plan,
        LogicalPlan::RecursiveQuery(_)
            | LogicalPlan::Subquery(_)
            | LogicalPlan::TableScan(_)
            | LogicalPlan::Extension(_)
    );
    alone
        && !plan.expressions().iter().any(looks_elsewhere)
        && plan.inputs().into_iter().all(|child| !stays(counts, child) || can_be_cut(child, !is_sort(child)))
}

/// Whether a child stays with its parent: a LIMIT (or what lies between) that counts rows by an ORDER BY below it stays
/// together with that, because what passes between nodes has no order.
fn stays(counts: bool, child: &LogicalPlan) -> bool {
    counts && is_ordered(child)
}

fn is_sort(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Sort(_))
}

fn is_ordered(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Sort(_) => true,
        LogicalPlan::Limit(limit) => is_ordered(&limit.input),
        LogicalPlan::Projection(projection) => is_ordered(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_ordered(&alias.input),
        LogicalPlan::Filter(filter) => is_ordered(&filter.input),
        _ => false,
    }
}

fn cut_root(plan: &LogicalPlan, counts: bool) -> Result<Cut, DataFusionError> {
    let (mut inputs, mut replaced) = (Vec::new(), Vec::new());
    let query = cut_below(plan, counts, &mut inputs, &mut replaced)?;
    Ok(Cut { query, inputs, replaced })
}

/// The node over placeholders for the children that do not stay with it.
fn cut_below(
    plan: &LogicalPlan,
    counts: bool,
    inputs: &mut Vec<Input>,
    replaced: &mut Vec<String>,
) -> Result<LogicalPlan, DataFusionError> {
    replaced.push(plan.display().to_string());
    let query = plan.clone().map_children(|child| {
        if stays(counts, &child) {
            return Ok(Transformed::yes(cut_below(&child, !is_sort(&child), inputs, replaced)?));
        }
        let placeholder = placeholder(inputs.len(), &child)?;
        inputs.push(Input::Plan(child));
        Ok(Transformed::yes(placeholder))
    })?;
    Ok(query.data)
}

/// Columns get names of their own, because those of a join need not be unique without their qualifiers.
fn numbered_columns(plan: &LogicalPlan) -> SchemaRef {
    let fields: Vec<Field> = plan
        .schema()
        .fields()
        .iter()
        .enumerate()
        .map(|(index, field)| field.as_ref().clone().with_name(format!("c{index}")))
        .collect();
    Arc::new(Schema::new(fields))
}

/// A scan that looks to the parent as the child does: same columns, same qualified names.
fn placeholder(port: usize, child: &LogicalPlan) -> Result<LogicalPlan, DataFusionError> {
    let table = TableReference::bare(format!("$input{port}"));
    let source = Arc::new(InputSource { port, schema: numbered_columns(child) });
    let scan = LogicalPlanBuilder::scan(table.clone(), source, None)?;
    if child.schema().fields().is_empty() {
        return scan.build();
    }
    let columns: Vec<Expr> = child
        .schema()
        .iter()
        .enumerate()
        .map(|(index, (qualifier, field))| {
            let column = Expr::Column(Column::new(Some(table.clone()), format!("c{index}")));
            column.alias_qualified(qualifier.cloned(), field.name())
        })
        .collect();
    scan.project(columns)?.build()
}

/// All of the plan, its scans of stored relations becoming inputs.
fn cut_leaves(plan: &LogicalPlan) -> Result<Cut, DataFusionError> {
    let mut relations: Vec<Arc<Relation>> = Vec::new();
    let query = plan.clone().transform_down_with_subqueries(|node| {
        let LogicalPlan::TableScan(scan) = node else { return Ok(Transformed::no(node)) };
        let Some(source) = RelationSource::of(scan.source.as_ref()) else {
            return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
        };
        let relation = source.relation.clone();
        let port = relations.iter().position(|known| known.id == relation.id).unwrap_or_else(|| {
            relations.push(relation.clone());
            relations.len() - 1
        });
        let source = Arc::new(InputSource { port, schema: relation.schema.clone() });
        // A scan's filters only help to skip rows, and a filter above repeats them; they may name columns that the scan
        // does not return, which a stored input cannot evaluate.
        Ok(Transformed::yes(LogicalPlan::TableScan(TableScan { source, filters: Vec::new(), ..scan })))
    })?;
    let replaced = plan.display_indent().to_string().lines().map(|line| line.trim().to_owned()).collect();
    let inputs = relations.into_iter().map(Input::Relation).collect();
    Ok(Cut { query: query.data, inputs, replaced })
}
