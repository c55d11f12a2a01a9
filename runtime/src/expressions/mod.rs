//! Expressions over deltas.
//!
//! Logical expressions become DataFusion's physical expressions over the columns of an input, found by position
//! (names may occur twice in the output of a join). They are evaluated over whole batches. When a batch fails,
//! its halves are evaluated, down to single rows: a row that fails alone is left out and goes to the errors
//! output with its weight, so that its retraction takes the error away again.
//!
//! Not every expression has a meaning here: subqueries, references to an outer query and volatile functions are
//! refused, with a reason that EXPLAIN can print.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, StringArray, UInt32Array};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::arrow::record_batch::{RecordBatch, RecordBatchOptions};
use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::execution::SessionState;
use datafusion::logical_expr::physical_planning_context::PhysicalPlanningContext;
use datafusion::logical_expr::utils::{conjunction, split_conjunction};
use datafusion::logical_expr::{Expr, Operator, binary_expr};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{PhysicalExpr, create_physical_expr};

use crate::delta::{Delta, literal};
use crate::error::Result;
use crate::operators::{Output, errors_schema};

mod messages;

pub use messages::message_of;

/// Why an expression cannot be evaluated in a dataflow, if it cannot.
pub fn refusal(expression: &Expr) -> Option<String> {
    let mut reason = None;
    let visited = expression.apply(|part| {
        reason = match part {
            Expr::ScalarSubquery(_) | Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) => {
                Some("an expression contains a subquery".to_string())
            }
            Expr::OuterReferenceColumn(..) => Some("an expression refers to an outer query".to_string()),
            Expr::Placeholder(_) => Some("an expression contains a parameter".to_string()),
            Expr::AggregateFunction(_) | Expr::WindowFunction(_) | Expr::GroupingSet(_) | Expr::Unnest(_) => {
                Some(format!("{part} is not a scalar expression"))
            }
            Expr::ScalarFunction(function) if changes_by_itself(part, function.name()) => {
                Some(format!("the function {}() changes without its arguments", function.name()))
            }
            _ => None,
        };
        Ok(if reason.is_some() { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    });
    match visited {
        Ok(_) => reason,
        Err(error) => Some(error.to_string()),
    }
}

fn changes_by_itself(expression: &Expr, name: &str) -> bool {
    expression.is_volatile_node()
        || matches!(name, "now" | "current_date" | "current_time" | "current_timestamp" | "today" | "localtimestamp")
}

/// An expression as people write it: functions that stand for operators look like operators.
pub fn readable(expression: &Expr) -> String {
    let readable = expression.clone().transform_up(|part| {
        let Expr::ScalarFunction(function) = &part else { return Ok(Transformed::no(part)) };
        let operator = match function.name() {
            "checked_add" => Operator::Plus,
            "checked_subtract" => Operator::Minus,
            "checked_multiply" => Operator::Multiply,
            "checked_divide" => Operator::Divide,
            _ => return Ok(Transformed::no(part)),
        };
        match function.args.as_slice() {
            [left, right] => Ok(Transformed::yes(binary_expr(left.clone(), operator, right.clone()))),
            _ => Ok(Transformed::no(part)),
        }
    });
    readable.map_or_else(|_| expression.to_string(), |readable| readable.data.to_string())
}

/// Expressions over the columns of one input.
#[derive(Debug, Clone)]
pub struct BoundExprs {
    expressions: Vec<Arc<dyn PhysicalExpr>>,
    texts: Vec<String>,
}

/// The outcome of evaluating expressions over a delta: the rows for which all succeeded, and their values.
#[derive(Debug)]
pub struct Evaluated {
    /// The input rows that did not fail.
    pub rows: Delta,
    /// The value of each expression, one a row of `rows`.
    pub columns: Vec<ArrayRef>,
    /// Positions of the rows that failed, in ascending order.
    pub failed: Vec<u32>,
}

impl BoundExprs {
    /// Binds expressions to the columns of a plan's output. The error is the reason for which they are refused.
    pub fn bind<'a>(
        expressions: impl IntoIterator<Item = &'a Expr>,
        schema: &DFSchema,
        session: &SessionState,
    ) -> Result<Self, String> {
        let mut bound = BoundExprs { expressions: Vec::new(), texts: Vec::new() };
        for expression in expressions {
            if let Some(reason) = refusal(expression) {
                return Err(reason);
            }
            let context = PhysicalPlanningContext::default();
            let physical = create_physical_expr(expression, schema, session.execution_props(), &context)
                .map_err(|error| error.strip_backtrace())?;
            bound.expressions.push(physical);
            bound.texts.push(readable(expression));
        }
        Ok(bound)
    }

    /// All columns of a schema, as they are.
    pub fn of_columns(schema: &SchemaRef) -> Self {
        let mut bound = BoundExprs { expressions: Vec::new(), texts: Vec::new() };
        for (position, field) in schema.fields().iter().enumerate() {
            bound.expressions.push(Arc::new(Column::new(field.name(), position)));
            bound.texts.push(field.name().clone());
        }
        bound
    }

    /// Appends one of another list's expressions over the same input.
    pub fn push_from(&mut self, other: &BoundExprs, index: usize) {
        self.expressions.push(other.expressions[index].clone());
        self.texts.push(other.texts[index].clone());
    }

    /// How many expressions.
    pub fn len(&self) -> usize {
        self.expressions.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.expressions.is_empty()
    }

    /// The expressions as text, for EXPLAIN.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    /// The physical expressions.
    pub fn expressions(&self) -> &[Arc<dyn PhysicalExpr>] {
        &self.expressions
    }

    /// For each expression, the input column that it hands through unchanged, if it is one.
    pub fn columns(&self) -> Vec<Option<usize>> {
        self.expressions.iter().map(|expression| expression.downcast_ref::<Column>().map(Column::index)).collect()
    }

    /// Evaluates all expressions over a batch; the first failure fails it.
    pub fn evaluate_batch(&self, batch: &RecordBatch) -> datafusion::error::Result<Vec<ArrayRef>> {
        let rows = batch.num_rows();
        self.expressions.iter().map(|expression| expression.evaluate(batch)?.into_array(rows)).collect()
    }

    /// The value of one of the expressions for each row of a batch, NULL where it fails, and where that is, if anywhere.
    pub fn evaluate_or_null(&self, index: usize, batch: &RecordBatch) -> Result<(ArrayRef, Option<BooleanArray>)> {
        let expression = &self.expressions[index];
        if let Ok(column) = expression.evaluate(batch).and_then(|value| value.into_array(batch.num_rows())) {
            return Ok((column, None));
        }
        let alone = BoundExprs { expressions: vec![expression.clone()], texts: vec![self.texts[index].clone()] };
        let evaluated = alone.evaluate("", &Delta::insert(batch.clone()), &mut Output::default())?;
        let mut failed = evaluated.failed.into_iter().peekable();
        let mut next = 0u32..;
        let positions: UInt32Array = (0..batch.num_rows() as u32)
            .map(|row| if failed.next_if_eq(&row).is_some() { None } else { next.next() })
            .collect();
        let failed = BooleanArray::from_iter(positions.iter().map(|position| Some(position.is_none())));
        Ok((compute::take(&evaluated.columns[0], &positions, None)?, Some(failed)))
    }

    /// Evaluates all expressions over a delta. A row for which one fails is left out of the result and goes to
    /// the errors output in the name of the operator.
    pub fn evaluate(&self, operator: &str, delta: &Delta, output: &mut Output) -> Result<Evaluated> {
        if delta.is_empty() || self.is_empty() {
            let columns = self.expressions.iter().map(|expression| {
                let data_type = expression.data_type(&delta.schema())?;
                Ok(datafusion::arrow::array::new_empty_array(&data_type))
            });
            return Ok(Evaluated { rows: delta.clone(), columns: columns.collect::<Result<_>>()?, failed: Vec::new() });
        }
        if let Ok(columns) = self.evaluate_batch(delta.batch()) {
            return Ok(Evaluated { rows: delta.clone(), columns, failed: Vec::new() });
        }
        let mut search = Search { expressions: self, delta, succeeded: Vec::new(), failed: Vec::new() };
        search.halve(0, delta.len())?;
        let Search { succeeded, failed, .. } = search;
        output.emit_errors(errors(operator, delta, &failed)?);
        let rows: Vec<&Delta> = succeeded.iter().map(|part| &part.rows).collect();
        let columns = (0..self.len()).map(|index| {
            let parts: Vec<&dyn Array> = succeeded.iter().map(|part| part.columns[index].as_ref()).collect();
            if parts.is_empty() {
                return Ok(datafusion::arrow::array::new_empty_array(
                    &self.expressions[index].data_type(&delta.schema())?,
                ));
            }
            Ok(compute::concat(&parts)?)
        });
        let columns = columns.collect::<Result<_>>()?;
        let rows = crate::delta::concat(delta.schema(), rows.into_iter().cloned().collect())?;
        Ok(Evaluated { rows, columns, failed: failed.into_iter().map(|(row, _)| row).collect() })
    }
}

/// The search for the rows of a batch that fail.
struct Search<'a> {
    expressions: &'a BoundExprs,
    delta: &'a Delta,
    succeeded: Vec<Evaluated>,
    failed: Vec<(u32, String)>,
}

impl Search<'_> {
    /// Evaluates the halves of a range that failed as a whole.
    fn halve(&mut self, start: usize, length: usize) -> Result<()> {
        if length == 1 {
            return self.evaluate(start, 1);
        }
        let half = length / 2;
        self.evaluate(start, half)?;
        self.evaluate(start + half, length - half)
    }

    fn evaluate(&mut self, start: usize, length: usize) -> Result<()> {
        let rows = self.delta.slice(start, length);
        match self.expressions.evaluate_batch(rows.batch()) {
            Ok(columns) => self.succeeded.push(Evaluated { rows, columns, failed: Vec::new() }),
            Err(error) if length == 1 => self.failed.push((start as u32, message_of(&error))),
            Err(_) => self.halve(start, length)?,
        }
        Ok(())
    }
}

/// Failed rows of a delta in [`errors_schema`].
pub fn errors(operator: &str, delta: &Delta, failed: &[(u32, String)]) -> Result<Delta> {
    let rows = delta.take(&failed.iter().map(|(row, _)| *row).collect::<Vec<u32>>().into())?;
    let operators = StringArray::from_iter_values(std::iter::repeat_n(operator, failed.len()));
    let messages = StringArray::from_iter_values(failed.iter().map(|(_, message)| message));
    let literals = StringArray::from_iter_values(literal::row_literals(rows.batch())?);
    let batch =
        RecordBatch::try_new(errors_schema(), vec![Arc::new(operators), Arc::new(messages), Arc::new(literals)])?;
    Ok(rows.with_batch(batch))
}

/// A predicate: a conjunction whose parts are tried in order, each only on the rows that passed those before it.
/// So `b <> 0 AND a / b > 1` never divides by zero.
#[derive(Debug, Clone)]
pub struct Predicate {
    conjuncts: Vec<BoundExprs>,
    text: String,
}

impl Predicate {
    /// Binds a predicate to the columns of a plan's output. The error is the reason for which it is refused.
    pub fn bind(predicate: &Expr, schema: &DFSchema, session: &SessionState) -> Result<Self, String> {
        Self::all_of(split_conjunction(predicate), schema, session)
    }

    /// Binds a predicate that is given by its conjuncts; without any it is always true.
    pub fn all_of(predicates: Vec<&Expr>, schema: &DFSchema, session: &SessionState) -> Result<Self, String> {
        let bind = |conjunct: &&Expr| BoundExprs::bind([*conjunct], schema, session);
        let conjuncts = predicates.iter().map(bind).collect::<Result<_, _>>()?;
        let text = conjunction(predicates.into_iter().cloned()).map_or_else(String::new, |all| readable(&all));
        Ok(Predicate { conjuncts, text })
    }

    /// The predicate as text, for EXPLAIN.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The rows for which the predicate is true; rows for which it fails go to the errors output.
    pub fn filter(&self, operator: &str, delta: Delta, output: &mut Output) -> Result<Delta> {
        let mut delta = delta;
        for conjunct in &self.conjuncts {
            if delta.is_empty() {
                break;
            }
            let Evaluated { rows, columns, .. } = conjunct.evaluate(operator, &delta, output)?;
            delta = match columns.first().and_then(|column| column.as_any().downcast_ref::<BooleanArray>()) {
                Some(mask) if mask.null_count() == 0 && !mask.has_false() => rows,
                Some(mask) => rows.filter(mask)?,
                // A NULL of no type is true for no row.
                None => Delta::empty(rows.schema()),
            };
        }
        Ok(delta)
    }

    /// The positions of the rows for which the predicate is true; rows for which it fails go to the errors output.
    pub fn positions(&self, operator: &str, delta: &Delta, output: &mut Output) -> Result<Vec<u32>> {
        let mut positions: Vec<u32> = (0..delta.len() as u32).collect();
        let mut rest = delta.clone();
        for conjunct in &self.conjuncts {
            if rest.is_empty() {
                break;
            }
            let Evaluated { rows, columns, failed } = conjunct.evaluate(operator, &rest, output)?;
            let mut failed = failed.into_iter().peekable();
            let mut position = 0u32;
            positions.retain(|_| {
                position += 1;
                failed.next_if(|failed| *failed + 1 == position).is_none()
            });
            let mask = columns.first().and_then(|column| column.as_any().downcast_ref::<BooleanArray>());
            // A NULL of no type is true for no row.
            let Some(mask) = mask else { return Ok(Vec::new()) };
            let mask = match mask.nulls() {
                Some(nulls) => BooleanArray::new(mask.values() & nulls.inner(), None),
                None => mask.clone(),
            };
            let mut truths = mask.values().iter();
            positions.retain(|_| truths.next().unwrap_or(false));
            rest = rows.filter(&mask)?;
        }
        Ok(positions)
    }
}

/// A batch of computed columns under a declared schema: also without columns, and with columns of a type that
/// only looks different (names inside lists, views of text) brought to the declared one.
pub fn batch_of(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<RecordBatch> {
    let columns = columns
        .into_iter()
        .zip(schema.fields())
        .map(|(column, field)| to_type(column, field.data_type()))
        .collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

fn to_type(column: ArrayRef, data_type: &DataType) -> Result<ArrayRef> {
    if column.data_type() == data_type {
        return Ok(column);
    }
    Ok(compute::cast(&column, data_type)?)
}
