//! Projection: columns computed from each row.
//!
//! `out = { expressions(row) | row in input }`, with the row's weight: the operator keeps nothing. A row for which
//! any expression fails is left out.

use std::any::Any;
use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::DFSchema;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Operator as BinaryOperator};
use plan::{Cost, Distribution, Lower, LowerContext, Lowered, NodeId, PlanError, Properties, Spec, StateBound};

use super::{BuildContext, Operator, OperatorDef, Output, spec_of};
use crate::Epoch;
use crate::delta::Delta;
use crate::error::Result;
use crate::expressions::{BoundExprs, batch_of};

const NAME: &str = "project";

/// Recognises and builds projections.
#[derive(Debug)]
pub struct ProjectDefinition;

/// A projection as data.
#[derive(Debug)]
struct Project {
    expressions: BoundExprs,
    /// For each output column, the input column in whose order it rises, if there is one.
    rises_with: Vec<Option<usize>>,
    schema: SchemaRef,
}

impl Spec for Project {
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
        let input = inputs[0];
        let columns = self.expressions.columns();
        let watermarks = (0..columns.len())
            .filter(|output| self.rises_with[*output].is_some_and(|column| input.watermarks.contains(&column)));
        Properties {
            keys: input.project_keys(|column| columns.iter().position(|from| *from == Some(column))),
            append_only: input.append_only,
            watermarks: watermarks.collect(),
            extent: input.extent.clone(),
            state: StateBound::Stateless,
        }
    }

    fn cost(&self) -> Cost {
        Cost::Constant
    }

    fn distribution(&self, _port: usize) -> Distribution {
        Distribution::Any
    }

    fn state_tables(&self) -> usize {
        0
    }

    fn detail(&self) -> String {
        self.expressions.texts().join(", ")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Lower for ProjectDefinition {
    fn name(&self) -> &'static str {
        NAME
    }

    fn lower(&self, plan: &LogicalPlan, context: &mut dyn LowerContext) -> Result<Lowered, PlanError> {
        let LogicalPlan::Projection(projection) = plan else { return Ok(Lowered::Declined(None)) };
        let input_schema = projection.input.schema();
        let expressions = match BoundExprs::bind(&projection.expr, input_schema, context.session()) {
            Ok(expressions) => expressions,
            Err(reason) => return Ok(Lowered::Declined(Some(reason))),
        };
        let rises_with = projection.expr.iter().map(|expression| rises_with(expression, input_schema)).collect();
        let input = context.lower(&projection.input)?;
        let schema = plan.schema().inner().clone();
        if is_identity(&expressions, &schema, &context.schema(input)) {
            return Ok(Lowered::Node(input));
        }
        let spec = Project { expressions, rises_with, schema };
        Ok(Lowered::Node(context.add(Arc::new(spec), vec![input])))
    }
}

/// Adds computed columns after a node's own, for operators whose keys are expressions. Gives the node and, for each
/// expression, its column. Nothing is added for expressions that are columns already.
pub(super) fn extend(
    context: &mut dyn LowerContext,
    input: NodeId,
    expressions: &[Expr],
    schema: &DFSchema,
) -> Result<(NodeId, Vec<usize>), PlanError> {
    let bound = BoundExprs::bind(expressions, schema, context.session()).map_err(PlanError::internal)?;
    let input_schema = context.schema(input);
    let mut fields: Vec<_> = input_schema.fields().iter().cloned().collect();
    let width = fields.len();
    let mut all = BoundExprs::of_columns(&input_schema);
    let mut rising: Vec<Option<usize>> = (0..width).map(Some).collect();
    let mut positions = Vec::with_capacity(expressions.len());
    for (index, (expression, column)) in expressions.iter().zip(bound.columns()).enumerate() {
        positions.push(column.unwrap_or(fields.len()));
        if column.is_some() {
            continue;
        }
        let (_, field) = expression.to_field(schema).map_err(|error| PlanError::internal(error.strip_backtrace()))?;
        fields.push(Arc::new(field.as_ref().clone().with_name(format!("$key{}", fields.len() - width))));
        rising.push(rises_with(expression, schema));
        all.push_from(&bound, index);
    }
    if fields.len() == width {
        return Ok((input, positions));
    }
    let schema = Arc::new(Schema::new(fields));
    let node = context.add(Arc::new(Project { expressions: all, rises_with: rising, schema }), vec![input]);
    Ok((node, positions))
}

fn is_identity(expressions: &BoundExprs, schema: &SchemaRef, input: &SchemaRef) -> bool {
    schema.fields() == input.fields()
        && expressions.columns().iter().enumerate().all(|(position, column)| *column == Some(position))
}

/// The input column with which an expression never falls: a watermark of the one gives a watermark of the other.
fn rises_with(expression: &Expr, schema: &DFSchema) -> Option<usize> {
    match expression {
        Expr::Column(column) => schema.maybe_index_of_column(column),
        Expr::Alias(alias) => rises_with(&alias.expr, schema),
        Expr::BinaryExpr(binary) => {
            let constant = matches!(binary.right.as_ref(), Expr::Literal(..));
            let shifts = matches!(binary.op, BinaryOperator::Plus | BinaryOperator::Minus);
            (constant && shifts).then(|| rises_with(&binary.left, schema)).flatten()
        }
        Expr::ScalarFunction(function) => {
            let argument = match function.name() {
                "tumble_start" | "tumble_end" => 0,
                "date_trunc" | "date_bin" => 1,
                _ => return None,
            };
            let constants =
                |(position, value): (usize, &Expr)| position == argument || matches!(value, Expr::Literal(..));
            if !function.args.iter().enumerate().all(constants) {
                return None;
            }
            rises_with(function.args.get(argument)?, schema)
        }
        _ => None,
    }
}

impl OperatorDef for ProjectDefinition {
    fn build(&self, spec: &dyn Spec, _context: BuildContext) -> Result<Box<dyn Operator>> {
        let spec: &Project = spec_of(spec)?;
        Ok(Box::new(ProjectOperator { expressions: spec.expressions.clone(), schema: spec.schema.clone() }))
    }
}

struct ProjectOperator {
    expressions: BoundExprs,
    schema: SchemaRef,
}

impl Operator for ProjectOperator {
    fn absorb(&mut self, _port: usize, delta: Delta, output: &mut Output) -> Result<()> {
        let evaluated = self.expressions.evaluate(NAME, &delta, output)?;
        let batch = batch_of(&self.schema, evaluated.columns, evaluated.rows.len())?;
        output.emit(evaluated.rows.with_batch(batch));
        Ok(())
    }

    fn close(&mut self, _epoch: Epoch, _output: &mut Output) -> Result<()> {
        Ok(())
    }
}
