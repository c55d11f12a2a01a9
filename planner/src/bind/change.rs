//! UPDATE and DELETE: each is a query over its target with row numbers.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::Column;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion::sql::sqlparser::ast::{self, Expr as Ast, Ident, SelectItem, SetExpr};
use plan::relation::ROWID_COLUMN;
use plan::{PlanError, SqlState};

use super::coerce::assign_expression;
use super::context::{Context, TARGET_SCHEMA};
use super::insert::{constant_cell, is_default, type_outputs};
use super::parameters::Parameters;
use super::{column_position, insert, returning, writable_table};
use crate::Bound;
use crate::catalog::TableInfo;
use crate::parse::fold;
use crate::statement::{Delete, Statement, Update};

/// The target of an UPDATE or DELETE.
struct Target {
    table: Arc<TableInfo>,
    /// The name by which its columns are qualified.
    name: Ident,
    alias: Option<String>,
    factor: ast::TableFactor,
}

fn target(context: &Context<'_>, written: &ast::TableWithJoins, verb: &str) -> Result<Target, PlanError> {
    if !written.joins.is_empty() {
        return Err(PlanError::unsupported(format!("{} of a join", verb.to_uppercase())));
    }
    let mut factor = written.relation.clone();
    let ast::TableFactor::Table { name, alias, args: None, .. } = &mut factor else {
        return Err(PlanError::new(SqlState::SYNTAX_ERROR, format!("cannot {verb} something that is not a table")));
    };
    let table = writable_table(context, name, verb)?;
    let relation = &table.relation;
    if relation.append_only {
        let short = relation.name.rsplit('.').next().unwrap_or(&relation.name);
        return Err(PlanError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("cannot {verb} append-only table \"{short}\""),
        )
        .with_hint("Rows of a table that was created with APPEND ONLY stay as they are."));
    }
    let qualifier = match alias {
        Some(alias) => alias.name.clone(),
        None => match name.0.last() {
            Some(ast::ObjectNamePart::Identifier(ident)) => ident.clone(),
            _ => return Err(PlanError::internal("a table without a name")),
        },
    };
    let given_alias = alias.as_ref().map(|alias| fold(&alias.name));
    *alias = Some(ast::TableAlias { explicit: true, name: qualifier.clone(), columns: Vec::new(), at: None });
    *name = ast::ObjectName(vec![
        ast::ObjectNamePart::Identifier(Ident::with_quote('"', TARGET_SCHEMA)),
        ast::ObjectNamePart::Identifier(Ident::with_quote('"', relation.name.clone())),
    ]);
    Ok(Target { table, name: qualifier, alias: given_alias, factor })
}

/// The items that every such query begins with: the row number and the old row.
fn old_row(target: &Target) -> Vec<SelectItem> {
    let column = |name: &str| {
        let parts = vec![target.name.clone(), Ident::with_quote('"', name)];
        SelectItem::ExprWithAlias { expr: Ast::CompoundIdentifier(parts), alias: Ident::with_quote('"', name) }
    };
    std::iter::once(ROWID_COLUMN)
        .chain(target.table.columns.iter().map(|info| info.name.as_str()))
        .map(column)
        .collect()
}

/// SELECT items FROM target, others WHERE condition.
fn select(
    items: Vec<SelectItem>,
    target: &Target,
    others: Vec<ast::TableWithJoins>,
    selection: Option<Ast>,
) -> ast::Query {
    let mut from = vec![ast::TableWithJoins { relation: target.factor.clone(), joins: Vec::new() }];
    from.extend(others);
    let select = ast::Select {
        select_token: ast::helpers::attached_token::AttachedToken::empty(),
        optimizer_hints: Vec::new(),
        distinct: None,
        select_modifiers: None,
        top: None,
        top_before_distinct: false,
        projection: items,
        exclude: None,
        into: None,
        from,
        lateral_views: Vec::new(),
        prewhere: None,
        selection,
        connect_by: Vec::new(),
        group_by: ast::GroupByExpr::Expressions(Vec::new(), Vec::new()),
        cluster_by: Vec::new(),
        distribute_by: Vec::new(),
        sort_by: Vec::new(),
        having: None,
        named_window: Vec::new(),
        qualify: None,
        window_before_qualify: false,
        value_table_mode: None,
        flavor: ast::SelectFlavor::Standard,
    };
    crate::windows::query_of(SetExpr::Select(Box::new(select)))
}

/// Binds an UPDATE.
pub(super) fn bind_update(
    context: &Context<'_>,
    update: &ast::Update,
    declared: &[Option<DataType>],
) -> Result<Bound, PlanError> {
    if update.or.is_some() || update.output.is_some() || update.limit.is_some() || !update.order_by.is_empty() {
        return Err(PlanError::unsupported("this form of UPDATE"));
    }
    let target = target(context, &update.table, "update")?;
    let others = match &update.from {
        None => Vec::new(),
        Some(ast::UpdateTableFromKind::BeforeSet(from) | ast::UpdateTableFromKind::AfterSet(from)) => from.clone(),
    };
    let table = target.table.clone();
    let fields = table.relation.schema.fields();
    let assigned = assignments(context, &table, &update.assignments)?;
    let mut items = old_row(&target);
    // Constants and defaults are expressions at once; the others are columns of the query.
    let mut new_values: Vec<Option<NewValue>> = fields.iter().map(|_| None).collect();
    let mut targets: Vec<&FieldRef> = Vec::new();
    for (column, value) in assigned {
        let field = &fields[column];
        let new = if is_default(&value) {
            NewValue::Expression(insert::default_expression(context, &table, column)?)
        } else if let Some(constant) = constant_cell(context, &value, field)? {
            NewValue::Expression(Expr::Literal(constant, None))
        } else {
            items.push(SelectItem::ExprWithAlias {
                expr: value,
                alias: Ident::with_quote('"', format!("$new.{}", field.name())),
            });
            targets.push(field);
            NewValue::Output(items.len() - 1)
        };
        if new_values[column].replace(new).is_some() {
            return Err(PlanError::new(
                SqlState::SYNTAX_ERROR,
                format!("multiple assignments to same column \"{}\"", field.name()),
            ));
        }
    }
    let old_width = fields.len() + 1;
    let query = select(items, &target, others, update.selection.clone());
    let plan = context.bind_query(&query, declared)?;
    let no_target: FieldRef = Arc::new(datafusion::arrow::datatypes::Field::new("", DataType::Utf8, true));
    let all_targets: Vec<&FieldRef> = (0..old_width).map(|_| &no_target).chain(targets).collect();
    let (plan, untyped) = type_outputs(plan, &all_targets).map_err(|error| context.error(error))?;
    let (plan, types) = context.analyze(plan)?;
    let query = update_output(context, plan, &table, new_values, &untyped)?;
    let mut parameters = Parameters::declared(declared);
    parameters.note_all(&types);
    let returning = match &update.returning {
        Some(items) => Some(returning::bind(context, &table, target.alias.as_deref(), items)?),
        None => None,
    };
    let schema = returning.as_ref().map(|returning| returning.schema.clone());
    let statement = Statement::Update(Update { table, query, returning });
    Ok(Bound { statement, parameters: parameters.known(), schema })
}

/// Where the new value of a column comes from.
enum NewValue {
    Expression(Expr),
    /// Position in the query's output.
    Output(usize),
}

/// Adds the new row to the row number and the old row.
fn update_output(
    context: &Context<'_>,
    plan: LogicalPlan,
    table: &TableInfo,
    new_values: Vec<Option<NewValue>>,
    untyped: &[bool],
) -> Result<LogicalPlan, PlanError> {
    let fields = table.relation.schema.fields();
    let schema = plan.schema().clone();
    let columns = schema.columns();
    let mut expressions: Vec<Expr> = columns[..=fields.len()].iter().cloned().map(Expr::Column).collect();
    for (column, new) in new_values.into_iter().enumerate() {
        let field = &fields[column];
        let expression = match new {
            None => Expr::Column(columns[column + 1].clone()),
            Some(NewValue::Expression(expression)) => expression,
            Some(NewValue::Output(output)) => {
                let from = schema.field(output).data_type();
                let value = Expr::Column(columns[output].clone());
                assign_expression(value, from, field, untyped[output], &context.session.time_zone)?
            }
        };
        expressions.push(expression.alias(format!("$new.{}", field.name())));
    }
    LogicalPlanBuilder::from(plan)
        .project(expressions)
        .and_then(LogicalPlanBuilder::build)
        .map_err(|error| context.error(error))
}

/// Assignments as column positions and values, with (a, b) = (x, y) taken apart.
fn assignments(
    context: &Context<'_>,
    table: &TableInfo,
    written: &[ast::Assignment],
) -> Result<Vec<(usize, Ast)>, PlanError> {
    let mut all = Vec::with_capacity(written.len());
    for assignment in written {
        match &assignment.target {
            ast::AssignmentTarget::ColumnName(name) => {
                all.push((assigned_column(context, table, name)?, assignment.value.clone()));
            }
            ast::AssignmentTarget::Tuple(names) => {
                let values = tuple(&assignment.value)?;
                if values.len() != names.len() {
                    return Err(PlanError::new(
                        SqlState::SYNTAX_ERROR,
                        format!(
                            "number of columns ({}) does not match number of values ({})",
                            names.len(),
                            values.len()
                        ),
                    ));
                }
                for (name, value) in names.iter().zip(values) {
                    all.push((assigned_column(context, table, name)?, value));
                }
            }
        }
    }
    Ok(all)
}

fn tuple(value: &Ast) -> Result<Vec<Ast>, PlanError> {
    match value {
        Ast::Tuple(values) => Ok(values.clone()),
        Ast::Nested(value) => Ok(vec![value.as_ref().clone()]),
        Ast::Function(function) if function.name.to_string().eq_ignore_ascii_case("row") => match &function.args {
            ast::FunctionArguments::List(list) => list
                .args
                .iter()
                .map(|argument| match argument {
                    ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(value)) => Ok(value.clone()),
                    other => Err(PlanError::unsupported(format!("ROW({other})"))),
                })
                .collect(),
            _ => Ok(Vec::new()),
        },
        Ast::Subquery(_) => Err(PlanError::unsupported("UPDATE SET (a, b) = (SELECT ...)")
            .with_hint("Give each column a subquery of its own, or use UPDATE ... FROM.")),
        _ => Err(PlanError::new(
            SqlState::SYNTAX_ERROR,
            "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression",
        )),
    }
}

/// The column of an assignment: its name only, without a qualifier.
pub(super) fn assigned_column(
    context: &Context<'_>,
    table: &TableInfo,
    name: &ast::ObjectName,
) -> Result<usize, PlanError> {
    match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(ident)] => column_position(context, table, &fold(ident)),
        [ast::ObjectNamePart::Identifier(first), _] => {
            let relation = table.relation.name.rsplit('.').next().unwrap_or_default();
            let first = fold(first);
            // As in PostgreSQL, the qualifier is taken for a column.
            let error = column_position(context, table, &first)
                .err()
                .unwrap_or_else(|| PlanError::unsupported("an assignment to a part of a column"));
            Err(if first == relation {
                error.with_hint("SET target columns cannot be qualified with the relation name.")
            } else {
                error
            })
        }
        _ => Err(PlanError::unsupported("an assignment to a part of a column")),
    }
}

/// Binds a DELETE.
pub(super) fn bind_delete(
    context: &Context<'_>,
    delete: &ast::Delete,
    declared: &[Option<DataType>],
) -> Result<Bound, PlanError> {
    if !delete.tables.is_empty() || delete.output.is_some() || delete.limit.is_some() || !delete.order_by.is_empty() {
        return Err(PlanError::unsupported("this form of DELETE"));
    }
    let (ast::FromTable::WithFromKeyword(from) | ast::FromTable::WithoutKeyword(from)) = &delete.from;
    let [from] = from.as_slice() else {
        return Err(PlanError::new(SqlState::SYNTAX_ERROR, "DELETE has one table").with_hint("Use USING for others."));
    };
    let target = target(context, from, "delete from")?;
    let others = delete.using.clone().unwrap_or_default();
    let query = select(old_row(&target), &target, others, delete.selection.clone());
    let (query, types) = context.query(&query, declared)?;
    let table = target.table.clone();
    let query = plain_names(context, query, &table)?;
    let mut parameters = Parameters::declared(declared);
    parameters.note_all(&types);
    let returning = match &delete.returning {
        Some(items) => Some(returning::bind(context, &table, target.alias.as_deref(), items)?),
        None => None,
    };
    let schema = returning.as_ref().map(|returning| returning.schema.clone());
    let statement = Statement::Delete(Delete { table, query, returning });
    Ok(Bound { statement, parameters: parameters.known(), schema })
}

/// The output without anything but the row number and the row.
fn plain_names(context: &Context<'_>, plan: LogicalPlan, table: &TableInfo) -> Result<LogicalPlan, PlanError> {
    let width = table.columns.len() + 1;
    if plan.schema().fields().len() == width {
        return Ok(plan);
    }
    let columns: Vec<Column> = plan.schema().columns().into_iter().take(width).collect();
    LogicalPlanBuilder::from(plan)
        .project(columns.into_iter().map(Expr::Column).collect::<Vec<_>>())
        .and_then(LogicalPlanBuilder::build)
        .map_err(|error| context.error(error))
}
