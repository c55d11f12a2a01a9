//! INSERT.
//!
//! VALUES of constants and parameters do not pass through DataFusion: each cell is converted here, once. Anything
//! else becomes a plan whose output is the table's columns.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DFSchema, ScalarValue, TableReference};
use datafusion::logical_expr::expr::Placeholder;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, LogicalPlanBuilder, Projection};
use datafusion::sql::sqlparser::ast::{self, Expr as Ast, SetExpr, UnaryOperator, Value};
use plan::{PlanError, SqlState};

use super::coerce::{assign, assign_expression};
use super::context::Context;
use super::interval::parse_interval;
use super::literal::parse_text;
use super::parameters::Parameters;
use super::{column_position, returning, types, writable_table};
use crate::Bound;
use crate::catalog::TableInfo;
use crate::parse::fold;
use crate::statement::{Cell, Insert, InsertSource, OnConflict, Statement};

/// Binds an INSERT.
pub(super) fn bind(
    context: &Context<'_>,
    insert: &ast::Insert,
    declared: &[Option<DataType>],
) -> Result<Bound, PlanError> {
    let ast::TableObject::TableName(name) = &insert.table else {
        return Err(PlanError::unsupported("INSERT into a function or query"));
    };
    if insert.overwrite || insert.partitioned.is_some() || insert.replace_into || !insert.assignments.is_empty() {
        return Err(PlanError::unsupported("this form of INSERT"));
    }
    let table = writable_table(context, name, "insert into")?;
    let alias = insert.table_alias.as_ref().map(|alias| fold(&alias.alias));
    let columns = target_columns(context, insert, &table)?;
    let mut parameters = Parameters::declared(declared);
    let source = match insert.source.as_deref() {
        None => InsertSource::Rows(vec![default_row(context, &table)?]),
        Some(query) => match plain_values(query) {
            Some(rows) => values(context, &table, &columns, rows, &mut parameters)?,
            None => select(context, &table, &columns, query, &mut parameters)?,
        },
    };
    let on_conflict = match &insert.on {
        None => None,
        Some(ast::OnInsert::OnConflict(conflict)) => {
            Some(on_conflict(context, &table, alias.as_deref(), conflict, &mut parameters)?)
        }
        Some(_) => return Err(PlanError::unsupported("ON DUPLICATE KEY UPDATE").with_hint("Use ON CONFLICT.")),
    };
    let returning = match &insert.returning {
        Some(items) => Some(returning::bind(context, &table, alias.as_deref(), items)?),
        None => None,
    };
    let schema = returning.as_ref().map(|returning| returning.schema.clone());
    let statement = Statement::Insert(Insert { table, source, on_conflict, returning });
    Ok(Bound { statement, parameters: parameters.known(), schema })
}

/// Positions of the columns that the source fills, in its order.
fn target_columns(context: &Context<'_>, insert: &ast::Insert, table: &TableInfo) -> Result<Vec<usize>, PlanError> {
    if insert.columns.is_empty() {
        return Ok((0..table.columns.len()).collect());
    }
    let mut positions = Vec::with_capacity(insert.columns.len());
    for column in &insert.columns {
        let [ast::ObjectNamePart::Identifier(ident)] = column.0.as_slice() else {
            return Err(PlanError::unsupported("INSERT into a part of a column"));
        };
        let name = fold(ident);
        let position = column_position(context, table, &name)?;
        if positions.contains(&position) {
            return Err(PlanError::new(
                SqlState::DUPLICATE_COLUMN,
                format!("column \"{name}\" specified more than once"),
            )
            .at(context.source.position_of(ident.span.start)));
        }
        positions.push(position);
    }
    Ok(positions)
}

/// The rows of a query that is VALUES and nothing else.
fn plain_values(query: &ast::Query) -> Option<&[ast::Parens<Vec<Ast>>]> {
    let plain =
        query.with.is_none() && query.order_by.is_none() && query.limit_clause.is_none() && query.fetch.is_none();
    match query.body.as_ref() {
        SetExpr::Values(values) if plain => Some(&values.rows),
        _ => None,
    }
}

fn count_error(more_expressions: bool) -> PlanError {
    PlanError::new(
        SqlState::SYNTAX_ERROR,
        if more_expressions {
            "INSERT has more expressions than target columns"
        } else {
            "INSERT has more target columns than expressions"
        },
    )
}

/// A value of one cell, as far as binding gets.
enum Bind {
    Cell(Cell),
    Expression(Expr),
}

fn values(
    context: &Context<'_>,
    table: &TableInfo,
    columns: &[usize],
    rows: &[ast::Parens<Vec<Ast>>],
    parameters: &mut Parameters,
) -> Result<InsertSource, PlanError> {
    let fields = table.relation.schema.fields();
    let every_column_named_once = columns.len() == fields.len();
    let mut defaults: Option<Vec<Bind>> = None;
    let mut bound: Vec<Vec<Bind>> = Vec::with_capacity(rows.len());
    let width = rows.first().map_or(0, |row| row.content.len());
    for row in rows {
        let row = &row.content;
        if row.len() != width {
            return Err(PlanError::new(SqlState::SYNTAX_ERROR, "VALUES lists must all be the same length"));
        }
        // Without a list of columns fewer values are allowed; the other columns take their defaults.
        let named = !every_column_named_once || columns.iter().enumerate().any(|(index, column)| index != *column);
        if row.len() > columns.len() || (row.len() < columns.len() && named) {
            return Err(count_error(row.len() > columns.len()));
        }
        let mut cells: Vec<Option<Bind>> = fields.iter().map(|_| None).collect();
        for (expression, column) in row.iter().zip(columns) {
            cells[*column] = Some(cell(context, table, *column, expression, parameters)?);
        }
        let mut complete = Vec::with_capacity(fields.len());
        for (column, cell) in cells.into_iter().enumerate() {
            complete.push(match cell {
                Some(cell) => cell,
                None => {
                    if defaults.is_none() {
                        let all = (0..fields.len()).map(|column| default_value(context, table, column));
                        defaults = Some(all.collect::<Result<Vec<_>, _>>()?);
                    }
                    match defaults.as_ref().map(|defaults| &defaults[column]) {
                        Some(Bind::Cell(cell)) => Bind::Cell(cell.clone()),
                        Some(Bind::Expression(expression)) => Bind::Expression(expression.clone()),
                        None => return Err(PlanError::internal("a default is missing")),
                    }
                }
            });
        }
        bound.push(complete);
    }
    rows_or_plan(context, table, bound, parameters)
}

/// All cells constant or parameters: rows. Otherwise a plan.
fn rows_or_plan(
    context: &Context<'_>,
    table: &TableInfo,
    rows: Vec<Vec<Bind>>,
    parameters: &mut Parameters,
) -> Result<InsertSource, PlanError> {
    if rows.iter().flatten().all(|cell| matches!(cell, Bind::Cell(_))) {
        let rows = rows.into_iter().map(|row| {
            let cells = row.into_iter().filter_map(|cell| match cell {
                Bind::Cell(cell) => Some(cell),
                Bind::Expression(_) => None,
            });
            cells.collect()
        });
        return Ok(InsertSource::Rows(rows.collect()));
    }
    let fields = table.relation.schema.fields();
    let mut plan: Option<LogicalPlanBuilder> = None;
    for row in rows {
        let mut expressions = Vec::with_capacity(fields.len());
        for (cell, field) in row.into_iter().zip(fields) {
            let expression = match cell {
                Bind::Cell(Cell::Value(value)) => Expr::Literal(value, None),
                Bind::Cell(Cell::Parameter(number)) => placeholder(number, field),
                Bind::Expression(expression) => expression,
            };
            expressions.push(expression.alias(field.name()));
        }
        let one = LogicalPlanBuilder::empty(true).project(expressions).map_err(|error| context.error(error))?;
        plan = Some(match plan {
            None => one,
            Some(plan) => one.build().and_then(|one| plan.union(one)).map_err(|error| context.error(error))?,
        });
    }
    let plan = plan.map(LogicalPlanBuilder::build).transpose().map_err(|error| context.error(error))?;
    let plan = plan.ok_or_else(|| PlanError::internal("VALUES without rows"))?;
    let (plan, types) = context.analyze(plan)?;
    parameters.note_all(&types);
    Ok(InsertSource::Plan(plan))
}

fn placeholder(number: usize, field: &Field) -> Expr {
    let field: FieldRef = Arc::new(Field::new("", field.data_type().clone(), true));
    Expr::Placeholder(Placeholder { id: format!("${number}"), field: Some(field) })
}

/// DEFAULT VALUES.
fn default_row(context: &Context<'_>, table: &TableInfo) -> Result<Vec<Cell>, PlanError> {
    (0..table.columns.len())
        .map(|column| match default_value(context, table, column)? {
            Bind::Cell(cell) => Ok(cell),
            Bind::Expression(_) => Err(PlanError::unsupported("DEFAULT VALUES with a default that is no constant")),
        })
        .collect()
}

/// The default of a column: NULL if it has none.
fn default_value(context: &Context<'_>, table: &TableInfo, column: usize) -> Result<Bind, PlanError> {
    let field = table.relation.schema.field(column);
    let Some(text) = &table.columns[column].default else {
        return Ok(Bind::Cell(Cell::Value(null_of(field)?)));
    };
    let expression = parse_expression(text)?;
    if let Some(value) = constant_cell(context, &expression, field)? {
        return Ok(Bind::Cell(Cell::Value(value)));
    }
    general_cell(context, table, column, &expression, &mut Parameters::default())
}

/// The default of a column as an expression without columns.
pub(super) fn default_expression(context: &Context<'_>, table: &TableInfo, column: usize) -> Result<Expr, PlanError> {
    Ok(match default_value(context, table, column)? {
        Bind::Cell(Cell::Value(value)) => Expr::Literal(value, None),
        Bind::Cell(Cell::Parameter(_)) => return Err(PlanError::internal("a default is a parameter")),
        Bind::Expression(expression) => expression,
    })
}

/// Parses the stored text of an expression.
pub(super) fn parse_expression(text: &str) -> Result<Ast, PlanError> {
    use datafusion::sql::sqlparser::parser::Parser;
    Parser::new(&crate::parse::text::DIALECT)
        .try_with_sql(text)
        .and_then(|mut parser| parser.parse_expr())
        .map_err(|error| PlanError::internal(format!("a stored expression cannot be read: {error}")))
}

fn null_of(field: &Field) -> Result<ScalarValue, PlanError> {
    ScalarValue::try_from(field.data_type()).map_err(PlanError::internal)
}

/// One cell of VALUES.
fn cell(
    context: &Context<'_>,
    table: &TableInfo,
    column: usize,
    expression: &Ast,
    parameters: &mut Parameters,
) -> Result<Bind, PlanError> {
    let field = table.relation.schema.field(column);
    if is_default(expression) {
        return default_value(context, table, column);
    }
    if let Some(number) = parameter_number(expression) {
        parameters.note(number, field);
        return Ok(Bind::Cell(Cell::Parameter(number)));
    }
    if let Some(value) = constant_cell(context, expression, field)? {
        return Ok(Bind::Cell(Cell::Value(value)));
    }
    general_cell(context, table, column, expression, parameters)
}

/// DEFAULT, which sqlparser reads as a name.
pub(super) fn is_default(expression: &Ast) -> bool {
    matches!(expression, Ast::Identifier(ident) if ident.quote_style.is_none() && ident.value.eq_ignore_ascii_case("default"))
}

/// `$n`.
pub(super) fn parameter_number(expression: &Ast) -> Option<usize> {
    match expression {
        Ast::Value(value) => match &value.value {
            Value::Placeholder(id) => id.strip_prefix('$')?.parse().ok().filter(|number| *number > 0),
            _ => None,
        },
        Ast::Nested(inner) => parameter_number(inner),
        _ => None,
    }
}

/// The value of a constant as a field's type, without DataFusion; `None` if it is more than a constant.
pub(super) fn constant_cell(
    context: &Context<'_>,
    expression: &Ast,
    field: &Field,
) -> Result<Option<ScalarValue>, PlanError> {
    let zone = &context.session.time_zone;
    let located = |error: PlanError, expression: &Ast| {
        use datafusion::sql::sqlparser::ast::Spanned;
        let position = context.source.position_of(expression.span().start);
        PlanError { position: error.position.or(position), ..error }
    };
    let value = match expression {
        Ast::Nested(inner) => return constant_cell(context, inner, field),
        Ast::Value(value) => match &value.value {
            Value::Null => null_of(field)?,
            Value::Number(number, _) => number_as(number, field, zone).map_err(|error| located(error, expression))?,
            Value::Boolean(value) => {
                check_constant(&DataType::Boolean, field)?;
                assign(&ScalarValue::Boolean(Some(*value)), field, zone)?
            }
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) | Value::UnicodeStringLiteral(text) => {
                parse_text(text, field, zone).map_err(|error| located(error, expression))?
            }
            Value::DollarQuotedString(text) => {
                parse_text(&text.value, field, zone).map_err(|error| located(error, expression))?
            }
            _ => return Ok(None),
        },
        Ast::UnaryOp { op: UnaryOperator::Minus, expr } => match expr.as_ref() {
            Ast::Value(value) => match &value.value {
                Value::Number(number, _) => {
                    number_as(&format!("-{number}"), field, zone).map_err(|error| located(error, expr))?
                }
                _ => return Ok(None),
            },
            _ => return Ok(None),
        },
        Ast::UnaryOp { op: UnaryOperator::Plus, expr } => return constant_cell(context, expr, field),
        Ast::Cast { expr, data_type, .. } => {
            let through = types::field_of(data_type)?;
            // A cast from text in a constant is the type's input function; other casts have rules of their own.
            if !matches!(expr.as_ref(), Ast::Value(value) if matches!(value.value, Value::SingleQuotedString(_) | Value::Null))
            {
                return Ok(None);
            }
            let Some(value) = constant_cell(context, expr, &through)? else { return Ok(None) };
            if !value.is_null() {
                check_constant(through.data_type(), field)?;
            }
            assign(&value, field, zone)?
        }
        Ast::TypedString(typed) => {
            let through = types::field_of(&typed.data_type)?;
            let Some(text) = typed.value.value.clone().into_string() else { return Ok(None) };
            check_constant(through.data_type(), field)?;
            assign(&parse_text(&text, &through, zone)?, field, zone)?
        }
        Ast::Interval(interval) => match interval_text(interval) {
            Some(text) => {
                let value = ScalarValue::IntervalMonthDayNano(Some(parse_interval(&text)?));
                check_constant(&value.data_type(), field)?;
                assign(&value, field, zone)?
            }
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    Ok(Some(value))
}

fn check_constant(from: &DataType, field: &Field) -> Result<(), PlanError> {
    super::coerce::check_assignable(from, field, false)
}

/// The text of INTERVAL '1' HOUR or INTERVAL '1 hour'.
pub(crate) fn interval_text(interval: &ast::Interval) -> Option<String> {
    if interval.leading_precision.is_some() || interval.last_field.is_some() {
        return None;
    }
    let Ast::Value(value) = interval.value.as_ref() else { return None };
    let text = match &value.value {
        Value::SingleQuotedString(text) => text.clone(),
        Value::Number(number, _) => number.clone(),
        _ => return None,
    };
    Some(match &interval.leading_field {
        Some(unit) => format!("{text} {unit}"),
        None => text,
    })
}

/// A number as written, as a field's type.
fn number_as(number: &str, field: &Field, zone: &str) -> Result<ScalarValue, PlanError> {
    let data_type = field.data_type();
    let whole = !number.contains(['.', 'e', 'E']);
    if data_type.is_integer() {
        if whole {
            let parsed: Option<i64> = number.replace('_', "").parse().ok();
            let too_big = || super::literal::out_of_range(data_type);
            let number = parsed.ok_or_else(too_big)?;
            return Ok(match data_type {
                DataType::Int16 => ScalarValue::Int16(Some(i16::try_from(number).map_err(|_| too_big())?)),
                DataType::Int32 => ScalarValue::Int32(Some(i32::try_from(number).map_err(|_| too_big())?)),
                _ => ScalarValue::Int64(Some(number)),
            });
        }
        // A number with a fraction is a numeric that is rounded.
        let through = Field::new("", DataType::Decimal128(38, 0), true);
        let rounded = parse_text(number, &through, zone).map_err(|_| super::literal::out_of_range(data_type))?;
        return assign(&rounded, field, zone);
    }
    if data_type.is_floating() || matches!(data_type, DataType::Decimal128(_, _) | DataType::Decimal256(_, _)) {
        return parse_text(&number.replace('_', ""), field, zone);
    }
    if data_type == &DataType::Utf8 {
        check_constant(&DataType::Int64, field)?;
        return parse_text(number, field, zone);
    }
    let from = if whole { DataType::Int32 } else { plan::numeric::PLAIN };
    check_constant(&from, field)?;
    Err(super::literal::out_of_range(data_type))
}

/// A cell that is more than a constant.
fn general_cell(
    context: &Context<'_>,
    table: &TableInfo,
    column: usize,
    expression: &Ast,
    parameters: &mut Parameters,
) -> Result<Bind, PlanError> {
    let field = &table.relation.schema.fields()[column];
    let schema = DFSchema::empty();
    let bound = context.bind_expression(expression, &schema, &parameters.types())?;
    let bound = context.simplify(bound, &schema)?;
    let from = bound.get_type(&schema).map_err(|error| context.error(error))?;
    let assigned = assign_expression(bound, &from, field, false, &context.session.time_zone)?;
    Ok(match assigned {
        Expr::Literal(value, _) => Bind::Cell(Cell::Value(value)),
        expression => Bind::Expression(expression),
    })
}

/// INSERT ... SELECT.
fn select(
    context: &Context<'_>,
    table: &TableInfo,
    columns: &[usize],
    query: &ast::Query,
    parameters: &mut Parameters,
) -> Result<InsertSource, PlanError> {
    let fields = table.relation.schema.fields();
    let plan = context.bind_query(query, &parameters.types())?;
    let width = plan.schema().fields().len();
    if width != columns.len() && (width > columns.len() || columns.len() != fields.len()) {
        return Err(count_error(width > columns.len()));
    }
    let targets: Vec<&FieldRef> = columns.iter().map(|column| &fields[*column]).collect();
    let (plan, untyped) = type_outputs(plan, &targets).map_err(|error| context.error(error))?;
    let (plan, types) = context.analyze(plan)?;
    parameters.note_all(&types);
    let mut outputs: Vec<Option<Expr>> = fields.iter().map(|_| None).collect();
    let schema = plan.schema().clone();
    for (index, (source, field)) in schema.columns().into_iter().zip(schema.fields()).enumerate() {
        let target = &fields[columns[index]];
        let expression = Expr::Column(source);
        let assigned =
            assign_expression(expression, field.data_type(), target, untyped[index], &context.session.time_zone)?;
        outputs[columns[index]] = Some(assigned);
    }
    let mut expressions = Vec::with_capacity(fields.len());
    for (column, output) in outputs.into_iter().enumerate() {
        let expression = match output {
            Some(expression) => expression,
            None => default_expression(context, table, column)?,
        };
        expressions.push(expression.alias(fields[column].name()));
    }
    let plan = LogicalPlanBuilder::from(plan)
        .project(expressions)
        .and_then(LogicalPlanBuilder::build)
        .map_err(|error| context.error(error))?;
    Ok(InsertSource::Plan(plan))
}

/// Untyped parameters that are whole output columns take the types of their targets. Says which outputs are untyped
/// constants.
pub(super) fn type_outputs(
    plan: LogicalPlan,
    targets: &[&FieldRef],
) -> datafusion::error::Result<(LogicalPlan, Vec<bool>)> {
    let mut untyped = vec![false; targets.len()];
    let LogicalPlan::Projection(projection) = plan else { return Ok((plan, untyped)) };
    let mut expressions = projection.expr.clone();
    for ((expression, target), untyped) in expressions.iter_mut().zip(targets).zip(&mut untyped) {
        let inner = match expression {
            Expr::Alias(alias) => alias.expr.as_mut(),
            other => other,
        };
        match inner {
            Expr::Literal(ScalarValue::Utf8(_), _) => *untyped = true,
            Expr::Placeholder(Placeholder { field, .. }) if field.is_none() => {
                *field = Some(Arc::new(Field::new("", target.data_type().clone(), true)));
            }
            _ => {}
        }
    }
    let projection = Projection::try_new(expressions, projection.input.clone())?;
    Ok((LogicalPlan::Projection(projection), untyped))
}

fn on_conflict(
    context: &Context<'_>,
    table: &TableInfo,
    alias: Option<&str>,
    conflict: &ast::OnConflict,
    parameters: &mut Parameters,
) -> Result<OnConflict, PlanError> {
    check_conflict_target(context, table, conflict)?;
    let update = match &conflict.action {
        ast::OnConflictAction::DoNothing => return Ok(OnConflict::Nothing),
        ast::OnConflictAction::DoUpdate(update) => update,
    };
    let relation = table.relation.name.rsplit('.').next().unwrap_or(&table.relation.name);
    let existing = TableReference::bare(alias.unwrap_or(relation));
    let proposed = TableReference::bare("excluded");
    let fields = table.relation.schema.fields();
    let qualified = |name: &TableReference| {
        let name = name.clone();
        fields.iter().map(move |field| (Some(name.clone()), field.clone())).collect::<Vec<_>>()
    };
    let both = [qualified(&existing), qualified(&proposed)].concat();
    let schema = DFSchema::new_with_metadata(both, Default::default()).map_err(|error| context.error(error))?;
    let mut assignments = Vec::new();
    for assignment in &update.assignments {
        let ast::AssignmentTarget::ColumnName(name) = &assignment.target else {
            return Err(PlanError::unsupported("ON CONFLICT DO UPDATE SET (a, b) = ..."));
        };
        let column = super::change::assigned_column(context, table, name)?;
        let field = &fields[column];
        let expression = if is_default(&assignment.value) {
            default_expression(context, table, column)?
        } else if let Some(number) = parameter_number(&assignment.value) {
            parameters.note(number, field);
            placeholder(number, field)
        } else if let Some(value) = constant_cell(context, &assignment.value, field)? {
            Expr::Literal(value, None)
        } else {
            let bound = context.bind_expression(&assignment.value, &schema, &parameters.types())?;
            let bound = context.simplify(bound, &schema)?;
            let from = bound.get_type(&schema).map_err(|error| context.error(error))?;
            assign_expression(bound, &from, field, false, &context.session.time_zone)?
        };
        assignments.push((column, expression));
    }
    let condition = match &update.selection {
        Some(condition) => {
            let bound = context.bind_expression(condition, &schema, &parameters.types())?;
            Some(context.simplify(bound, &schema)?)
        }
        None => None,
    };
    Ok(OnConflict::Update { assignments, condition, schema: Arc::new(schema) })
}

/// The target of ON CONFLICT must be the primary key.
fn check_conflict_target(
    context: &Context<'_>,
    table: &TableInfo,
    conflict: &ast::OnConflict,
) -> Result<(), PlanError> {
    let no_constraint = || {
        PlanError::new(
            SqlState::INVALID_COLUMN_REFERENCE,
            "there is no unique or exclusion constraint matching the ON CONFLICT specification",
        )
        .with_hint("ON CONFLICT needs the columns of the table's primary key.")
    };
    let update = matches!(conflict.action, ast::OnConflictAction::DoUpdate(_));
    match &conflict.conflict_target {
        None if update => Err(PlanError::new(
            SqlState::SYNTAX_ERROR,
            "ON CONFLICT DO UPDATE requires inference specification or constraint name",
        )
        .with_hint("For example, ON CONFLICT (column_name).")),
        None => Ok(()),
        Some(ast::ConflictTarget::Columns(columns)) => {
            let mut positions = Vec::new();
            for column in columns {
                positions.push(column_position(context, table, &fold(column))?);
            }
            positions.sort_unstable();
            let mut key = table.primary_key.clone();
            key.sort_unstable();
            if !key.is_empty() && positions == key { Ok(()) } else { Err(no_constraint()) }
        }
        Some(ast::ConflictTarget::OnConstraint(name)) => {
            let (_, name) = crate::parse::schema_and_name(name)?;
            let relation = table.relation.name.rsplit('.').next().unwrap_or_default();
            if !table.primary_key.is_empty() && name == format!("{relation}_pkey") {
                return Ok(());
            }
            Err(PlanError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("constraint \"{name}\" for table \"{relation}\" does not exist"),
            ))
        }
    }
}
