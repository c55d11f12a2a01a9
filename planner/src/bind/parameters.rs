//! Parameters: `$1`, `$2`, ... Their types are declared by the client or inferred from where they stand; what
//! nothing is known of is text, as in PostgreSQL.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ParamValues, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan};
use plan::{PlanError, SqlState};

use super::{coerce, walk};
use crate::Statement;
use crate::statement::{Cell, InsertSource, OnConflict, Returning};

/// The number of a parameter's name.
fn number(id: &str) -> Option<usize> {
    id.strip_prefix('$')?.parse().ok()
}

/// Gives every parameter of a plan a type. The types, by number, are returned.
pub(crate) fn resolve(plan: LogicalPlan) -> Result<(LogicalPlan, Vec<DataType>)> {
    let mut any = false;
    walk::look(&plan, &mut |part| any |= matches!(part, Expr::Placeholder(_)))?;
    if !any {
        return Ok((plan, Vec::new()));
    }
    let plan = walk::nodes(plan, &mut |node| Ok(infer_limit(node)))?;
    let plan = walk::expressions(plan, &mut |expression, schema| infer_operand(expression, schema))?;
    let mut types: BTreeMap<usize, Option<FieldRef>> = BTreeMap::new();
    walk::look(&plan, &mut |part| {
        if let Expr::Placeholder(Placeholder { id, field }) = part
            && let Some(number) = number(id)
        {
            let known = types.entry(number).or_default();
            if known.is_none() {
                known.clone_from(field);
            }
        }
    })?;
    let text: FieldRef = Arc::new(Field::new("", DataType::Utf8, true));
    let plan = walk::expressions(plan, &mut |expression, _| match expression {
        Expr::Placeholder(Placeholder { id, .. }) => {
            let known = number(&id).and_then(|number| types.get(&number).cloned().flatten());
            let field = known.unwrap_or_else(|| text.clone());
            let field = Arc::new(field.as_ref().clone().with_nullable(true));
            Ok(Transformed::yes(Expr::Placeholder(Placeholder { id, field: Some(field) })))
        }
        other => Ok(Transformed::no(other)),
    })?;
    let count = types.keys().last().copied().unwrap_or(0);
    let types = (1..=count)
        .map(|number| types.get(&number).cloned().flatten().map_or(DataType::Utf8, |field| field.data_type().clone()))
        .collect();
    Ok((plan, types))
}

/// The parameters of LIMIT and OFFSET are bigints.
fn infer_limit(node: LogicalPlan) -> Transformed<LogicalPlan> {
    let LogicalPlan::Limit(mut limit) = node else { return Transformed::no(node) };
    for expression in [&mut limit.skip, &mut limit.fetch].into_iter().flatten() {
        if let Expr::Placeholder(Placeholder { field, .. }) = expression.as_mut()
            && field.is_none()
        {
            *field = Some(Arc::new(Field::new("", DataType::Int64, true)));
        }
    }
    Transformed::yes(LogicalPlan::Limit(limit))
}

/// An untyped parameter in a cast takes the cast's type, and beside an operand the operand's.
fn infer_operand(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (left, op, right) = match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => (left, op, right),
        Expr::Cast(Cast { expr, field }) => {
            return Ok(match *expr {
                Expr::Placeholder(Placeholder { id, field: None }) => {
                    let expr = Box::new(Expr::Placeholder(Placeholder { id, field: Some(field.clone()) }));
                    Transformed::yes(Expr::Cast(Cast { expr, field }))
                }
                other => Transformed::no(Expr::Cast(Cast { expr: Box::new(other), field })),
            });
        }
        other => return Ok(Transformed::no(other)),
    };
    let typed = |operand: Box<Expr>, other: &Expr| match *operand {
        Expr::Placeholder(Placeholder { id, field: None }) => {
            let field = other.get_type(schema).ok().map(|data_type| Arc::new(Field::new("", data_type, true)));
            Box::new(Expr::Placeholder(Placeholder { id, field }))
        }
        other => Box::new(other),
    };
    let left = typed(left, &right);
    let right = typed(right, &left);
    Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right })))
}

/// Replaces parameters by values.
pub(crate) fn with_parameters(
    statement: Statement,
    values: &[ScalarValue],
    time_zone: &str,
) -> std::result::Result<Statement, PlanError> {
    if values.is_empty() {
        return Ok(statement);
    }
    let replace = Replace {
        values,
        list: ParamValues::List(values.iter().map(|value| ScalarAndMetadata::from(value.clone())).collect()),
        time_zone,
    };
    Ok(match statement {
        Statement::Query(plan) => Statement::Query(replace.plan(plan)?),
        Statement::Insert(mut insert) => {
            insert.source = replace.source(insert.source, &insert.table)?;
            insert.on_conflict = insert.on_conflict.map(|conflict| replace.conflict(conflict)).transpose()?;
            insert.returning = insert.returning.map(|returning| replace.returning(returning)).transpose()?;
            Statement::Insert(insert)
        }
        Statement::Update(mut update) => {
            update.query = replace.plan(update.query)?;
            update.returning = update.returning.map(|returning| replace.returning(returning)).transpose()?;
            Statement::Update(update)
        }
        Statement::Delete(mut delete) => {
            delete.query = replace.plan(delete.query)?;
            delete.returning = delete.returning.map(|returning| replace.returning(returning)).transpose()?;
            Statement::Delete(delete)
        }
        Statement::CopyOut(mut copy) => {
            copy.query = replace.plan(copy.query)?;
            Statement::CopyOut(copy)
        }
        Statement::DeclareCursor { name, query } => Statement::DeclareCursor { name, query: replace.plan(query)? },
        other => other,
    })
}

struct Replace<'a> {
    values: &'a [ScalarValue],
    list: ParamValues,
    time_zone: &'a str,
}

impl Replace<'_> {
    fn plan(&self, plan: LogicalPlan) -> std::result::Result<LogicalPlan, PlanError> {
        plan.replace_params_with_values(&self.list)
            .map_err(|error| PlanError::new(SqlState::UNDEFINED_PARAMETER, error.strip_backtrace()))
    }

    fn value(&self, number: usize) -> std::result::Result<&ScalarValue, PlanError> {
        self.values.get(number - 1).ok_or_else(|| {
            PlanError::new(SqlState::UNDEFINED_PARAMETER, format!("there is no value for parameter ${number}"))
        })
    }

    fn expression(&self, expression: Expr) -> std::result::Result<Expr, PlanError> {
        let replaced = walk::parts(expression, &mut |part| {
            Ok(match &part {
                Expr::Placeholder(Placeholder { id, .. }) => {
                    match number(id).and_then(|number| self.values.get(number - 1)) {
                        Some(value) => Transformed::yes(Expr::Literal(value.clone(), None)),
                        None => Transformed::no(part),
                    }
                }
                _ => Transformed::no(part),
            })
        });
        replaced.map(|transformed| transformed.data).map_err(PlanError::internal)
    }

    fn source(
        &self,
        source: InsertSource,
        table: &crate::catalog::TableInfo,
    ) -> std::result::Result<InsertSource, PlanError> {
        let rows = match source {
            InsertSource::Plan(plan) => return self.plan(plan).map(InsertSource::Plan),
            InsertSource::Rows(rows) => rows,
        };
        let fields = table.relation.schema.fields();
        let rows = rows.into_iter().map(|row| {
            let cells = row.into_iter().zip(fields).map(|(cell, field)| match cell {
                Cell::Parameter(number) => coerce::assign(self.value(number)?, field, self.time_zone).map(Cell::Value),
                value => Ok(value),
            });
            cells.collect::<std::result::Result<Vec<_>, PlanError>>()
        });
        rows.collect::<std::result::Result<Vec<_>, PlanError>>().map(InsertSource::Rows)
    }

    fn conflict(&self, conflict: OnConflict) -> std::result::Result<OnConflict, PlanError> {
        Ok(match conflict {
            OnConflict::Nothing => OnConflict::Nothing,
            OnConflict::Update { assignments, condition, schema } => OnConflict::Update {
                assignments: assignments
                    .into_iter()
                    .map(|(column, expression)| Ok((column, self.expression(expression)?)))
                    .collect::<std::result::Result<Vec<_>, PlanError>>()?,
                condition: condition.map(|condition| self.expression(condition)).transpose()?,
                schema,
            },
        })
    }

    fn returning(&self, mut returning: Returning) -> std::result::Result<Returning, PlanError> {
        returning.expressions = returning
            .expressions
            .into_iter()
            .map(|expression| self.expression(expression))
            .collect::<std::result::Result<Vec<_>, PlanError>>()?;
        Ok(returning)
    }
}
