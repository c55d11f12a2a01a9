//! RETURNING: expressions over the columns of the changed table.

use std::sync::Arc;

use datafusion::arrow::datatypes::{FieldRef, Schema};
use datafusion::common::{Column, DFSchema, TableReference};
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::sql::sqlparser::ast::{SelectItem, SelectItemQualifiedWildcardKind};
use plan::{PlanError, SqlState};

use super::context::Context;
use super::names;
use crate::catalog::TableInfo;
use crate::parse::{fold, schema_and_name};
use crate::statement::Returning;

/// The schema over which RETURNING is bound: the table's columns, qualified by its name or alias.
pub(super) fn input_schema(table: &TableInfo, alias: Option<&str>) -> Result<DFSchema, PlanError> {
    let relation = table.relation.name.rsplit('.').next().unwrap_or(&table.relation.name);
    let qualifier = TableReference::bare(alias.unwrap_or(relation));
    DFSchema::try_from_qualified_schema(qualifier, &table.relation.schema).map_err(PlanError::internal)
}

/// Binds the items of RETURNING.
pub(super) fn bind(
    context: &Context<'_>,
    table: &TableInfo,
    alias: Option<&str>,
    items: &[SelectItem],
) -> Result<Returning, PlanError> {
    let input = input_schema(table, alias)?;
    let mut expressions: Vec<Expr> = Vec::new();
    let mut fields: Vec<FieldRef> = Vec::new();
    let all = |expressions: &mut Vec<Expr>, fields: &mut Vec<FieldRef>| {
        for (qualifier, field) in input.iter() {
            expressions.push(Expr::Column(Column::from((qualifier, field))));
            fields.push(field.clone());
        }
    };
    for item in items {
        let (expression, name) = match item {
            SelectItem::Wildcard(_) => {
                all(&mut expressions, &mut fields);
                continue;
            }
            SelectItem::QualifiedWildcard(SelectItemQualifiedWildcardKind::ObjectName(name), _) => {
                let (_, written) = schema_and_name(name)?;
                if !input.iter().any(|(qualifier, _)| qualifier.is_some_and(|known| known.table() == written)) {
                    return Err(PlanError::new(
                        SqlState::UNDEFINED_TABLE,
                        format!("missing FROM-clause entry for table \"{written}\""),
                    ));
                }
                all(&mut expressions, &mut fields);
                continue;
            }
            SelectItem::UnnamedExpr(expression) => (expression, names::name_of(expression)),
            SelectItem::ExprWithAlias { expr, alias } => (expr, fold(alias)),
            other => return Err(PlanError::unsupported(format!("RETURNING {other}"))),
        };
        let bound = context.bind_expression(expression, &input, &[])?;
        let bound = context.simplify(bound, &input)?;
        let (_, field) = bound.to_field(&input).map_err(|error| context.error(error))?;
        fields.push(Arc::new(field.as_ref().clone().with_name(name)));
        expressions.push(bound);
    }
    Ok(Returning { expressions, input: Arc::new(input), schema: Arc::new(Schema::new(fields)) })
}
