//! Parameters: `$1`, `$2`, ... Their types are declared by the client or inferred from where they stand; what
//! nothing is known of is text, as in PostgreSQL.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};
use datafusion::common::metadata::ScalarAndMetadata;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ParamValues, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Case, InList, Placeholder, ScalarFunction};
use datafusion::logical_expr::{Between, BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator};
use plan::numeric::PLAIN;
use plan::{PlanError, SqlState};

use super::{coerce, walk};
use crate::Statement;
use crate::statement::{Cell, InsertSource, OnConflict, Returning};

/// The number of a parameter's name.
fn number(id: &str) -> Option<usize> {
    id.strip_prefix('$')?.parse().ok()
}

/// Gives every parameter of a plan a type. The types, by number, are returned.
pub(crate) fn resolve(plan: LogicalPlan) -> Result<(LogicalPlan, Vec<FieldRef>)> {
    let mut any = false;
    walk::look(&plan, &mut |part| any |= matches!(part, Expr::Placeholder(_)))?;
    if !any {
        return Ok((plan, Vec::new()));
    }
    let plan = walk::nodes(plan, &mut |node| Ok(infer_clause(node)))?;
    // A type may be known only when those of the parts of an expression are.
    let infer = |plan| walk::expressions(plan, &mut |expression, schema| infer_operand(expression, schema));
    let plan = infer(infer(plan)?)?;
    let mut types: BTreeMap<usize, Option<FieldRef>> = BTreeMap::new();
    walk::look(&plan, &mut |part| {
        if let Expr::Placeholder(Placeholder { id, field }) = part
            && let Some(number) = number(id)
        {
            let known = types.entry(number).or_default();
            if known.is_none() {
                *known = field.as_ref().map(of_values);
            }
        }
    })?;
    let text = untitled(DataType::Utf8);
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
    let known = |number| types.get(&number).cloned().flatten().unwrap_or_else(|| text.clone());
    Ok((plan, (1..=count).map(known).collect()))
}

/// The field of a parameter's values. The current time comes in nanoseconds, they in our unit.
fn of_values(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Timestamp(_, zone) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        other => other.clone(),
    };
    Arc::new(field.as_ref().clone().with_name("").with_data_type(data_type))
}

fn untitled(data_type: DataType) -> FieldRef {
    Arc::new(Field::new("", data_type, true))
}

/// The parameters of LIMIT and OFFSET are bigints, and a parameter that is a condition is a boolean.
fn infer_clause(node: LogicalPlan) -> Transformed<LogicalPlan> {
    match node {
        LogicalPlan::Limit(mut limit) => {
            for expression in [&mut limit.skip, &mut limit.fetch].into_iter().flatten() {
                give(expression, &untitled(DataType::Int64));
            }
            Transformed::yes(LogicalPlan::Limit(limit))
        }
        LogicalPlan::Filter(mut filter) => {
            give(&mut filter.predicate, &untitled(DataType::Boolean));
            Transformed::yes(LogicalPlan::Filter(filter))
        }
        other => Transformed::no(other),
    }
}

/// Gives an untyped parameter a type. Says whether it did.
fn give(expression: &mut Expr, wanted: &FieldRef) -> bool {
    let Expr::Placeholder(Placeholder { field: field @ None, .. }) = expression else { return false };
    if wanted.data_type().is_null() {
        return false;
    }
    *field = Some(of_values(wanted));
    true
}

/// An untyped parameter in a cast takes the cast's type, beside an operand the operand's, and as an argument what the function
/// takes there.
fn infer_operand(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let (expression, changed) = match expression {
        Expr::Cast(mut cast) => {
            let changed = give(&mut cast.expr, &cast.field);
            (Expr::Cast(cast), changed)
        }
        Expr::BinaryExpr(mut binary) => {
            let changed = infer_binary(&mut binary, schema);
            (Expr::BinaryExpr(binary), changed)
        }
        Expr::InList(mut list) => {
            let InList { expr, list: items, .. } = &mut list;
            let changed = infer_alike(&mut std::iter::once(expr.as_mut()).chain(items).collect::<Vec<_>>(), schema);
            (Expr::InList(list), changed)
        }
        Expr::Between(mut between) => {
            let Between { expr, low, high, .. } = &mut between;
            let changed = infer_alike(&mut [expr.as_mut(), low.as_mut(), high.as_mut()], schema);
            (Expr::Between(between), changed)
        }
        Expr::Case(mut case) => {
            let changed = infer_case(&mut case, schema);
            (Expr::Case(case), changed)
        }
        Expr::Not(mut inner) => {
            let changed = give(&mut inner, &untitled(DataType::Boolean));
            (Expr::Not(inner), changed)
        }
        Expr::ScalarFunction(mut call) => {
            let changed = infer_arguments(&mut call, schema);
            (Expr::ScalarFunction(call), changed)
        }
        other => (other, false),
    };
    Ok(if changed { Transformed::yes(expression) } else { Transformed::no(expression) })
}

fn infer_binary(binary: &mut BinaryExpr, schema: &DFSchema) -> bool {
    let BinaryExpr { left, op, right } = binary;
    if matches!(op, Operator::And | Operator::Or) {
        let boolean = untitled(DataType::Boolean);
        return give(left, &boolean) | give(right, &boolean);
    }
    if *op == Operator::Plus && (make_addend(left, right, schema) || make_addend(right, left, schema)) {
        return true;
    }
    let field_of = |operand: &Expr| operand.to_field(schema).ok().map(|(_, field)| field);
    let (of_left, of_right) = (field_of(left), field_of(right));
    let mut changed = false;
    if let Some(field) = of_right {
        changed |= give(left, &field);
    }
    if let Some(field) = of_left {
        changed |= give(right, &field);
    }
    changed
}

/// A parameter that is added to an instant is an interval; DataFusion takes it for another instant. Says whether it is one.
fn make_addend(operand: &mut Expr, other: &Expr, schema: &DFSchema) -> bool {
    let Expr::Placeholder(Placeholder { field, .. }) = operand else { return false };
    let instant = |data_type: &DataType| matches!(data_type, DataType::Timestamp(_, _));
    let beside_instant =
        !matches!(other, Expr::Placeholder(_)) && other.get_type(schema).is_ok_and(|data_type| instant(&data_type));
    let is_addend = beside_instant && field.as_ref().is_none_or(|field| instant(field.data_type()));
    if is_addend {
        *field = Some(untitled(DataType::Interval(IntervalUnit::MonthDayNano)));
    }
    is_addend
}

/// Of expressions that are to have one type, those that are untyped parameters take that of the first other one.
fn infer_alike(expressions: &mut [&mut Expr], schema: &DFSchema) -> bool {
    let known = expressions
        .iter()
        .filter(|expression| !matches!(expression, Expr::Placeholder(Placeholder { field: None, .. })));
    let mut fields = known.filter_map(|expression| expression.to_field(schema).ok());
    let Some((_, field)) = fields.find(|(_, field)| !field.data_type().is_null()) else { return false };
    expressions.iter_mut().fold(false, |changed, expression| give(expression, &field) | changed)
}

fn infer_case(case: &mut Case, schema: &DFSchema) -> bool {
    let changed = match &mut case.expr {
        Some(operand) => {
            let values = case.when_then_expr.iter_mut().map(|(value, _)| value.as_mut());
            infer_alike(&mut std::iter::once(operand.as_mut()).chain(values).collect::<Vec<_>>(), schema)
        }
        None => {
            let boolean = untitled(DataType::Boolean);
            case.when_then_expr.iter_mut().fold(false, |changed, (when, _)| give(when, &boolean) | changed)
        }
    };
    let results = case.when_then_expr.iter_mut().map(|(_, result)| result.as_mut());
    let results = results.chain(case.else_expr.iter_mut().map(AsMut::as_mut));
    infer_alike(&mut results.collect::<Vec<_>>(), schema) | changed
}

/// The arguments of functions whose signature does not say what a parameter is.
fn infer_arguments(call: &mut ScalarFunction, schema: &DFSchema) -> bool {
    let name = call.func.name().to_owned();
    let args = &mut call.args;
    let field_of = |argument: Option<&Expr>| {
        let field = argument.and_then(|argument| argument.to_field(schema).ok()).map(|(_, field)| field)?;
        (!field.data_type().is_null()).then_some(field)
    };
    let item_of = |list: FieldRef| match list.data_type() {
        DataType::List(item) => Some(item.clone()),
        _ => None,
    };
    let list_of = |item: FieldRef| {
        let item = item.as_ref().clone().with_name(Field::LIST_FIELD_DEFAULT_NAME).with_nullable(true);
        untitled(DataType::List(Arc::new(item)))
    };
    let (first, second) = (field_of(args.first()), field_of(args.get(1)));
    let all =
        |args: &mut [Expr], wanted: &FieldRef| args.iter_mut().fold(false, |changed, arg| give(arg, wanted) | changed);
    match name.as_str() {
        "coalesce" | "nullif" | "greatest" | "least" | "make_array" | "generate_series" | "range" | "array_overlap"
        | "array_has_any" | "array_has_all" | "array_cat" | "array_concat" => {
            infer_alike(&mut args.iter_mut().collect::<Vec<_>>(), schema)
        }
        "array_has" | "array_append" | "array_position" | "array_positions" | "array_remove" => {
            let [list, item, ..] = args.as_mut_slice() else { return false };
            second.is_some_and(|of_item| give(list, &list_of(of_item)))
                | first.and_then(item_of).is_some_and(|of_list| give(item, &of_list))
        }
        "array_prepend" => {
            let [item, list] = args.as_mut_slice() else { return false };
            first.is_some_and(|of_item| give(list, &list_of(of_item)))
                | second.and_then(item_of).is_some_and(|of_list| give(item, &of_list))
        }
        "numeric_add" | "numeric_sub" | "numeric_mul" | "numeric_div" | "numeric_mod" => all(args, &untitled(PLAIN)),
        "round" | "trunc" if args.len() == 2 => {
            give(&mut args[0], &untitled(PLAIN)) | give(&mut args[1], &untitled(DataType::Int32))
        }
        "abs" | "ceil" | "floor" | "round" | "trunc" | "sqrt" | "exp" | "ln" | "log" | "log10" | "power" | "sin"
        | "cos" | "tan" | "sign" => all(args, &untitled(DataType::Float64)),
        "substring" | "substr" | "left" | "right" | "repeat" | "lpad" | "rpad" | "split_part" => match args
            .as_mut_slice()
        {
            [_, numbers @ ..] if !matches!(name.as_str(), "split_part") => match numbers {
                // The second argument of lpad is a length, the third one a text.
                [length, ..] if matches!(name.as_str(), "lpad" | "rpad") => give(length, &untitled(DataType::Int64)),
                numbers => all(numbers, &untitled(DataType::Int64)),
            },
            [_, _, number] => give(number, &untitled(DataType::Int64)),
            _ => false,
        },
        "make_date" => all(args, &untitled(DataType::Int32)),
        _ => false,
    }
}

/// What is known of parameters, by number.
#[derive(Default)]
pub(super) struct Parameters(Vec<Option<FieldRef>>);

impl Parameters {
    /// With the types that the client declared.
    pub fn declared(types: &[Option<DataType>]) -> Self {
        Parameters(types.iter().map(|data_type| data_type.clone().map(untitled)).collect())
    }

    /// The types as far as they are known.
    pub fn types(&self) -> Vec<Option<DataType>> {
        self.0.iter().map(|field| field.as_ref().map(|field| field.data_type().clone())).collect()
    }

    /// A parameter stands where a field's values are expected. What is known first counts, but PostgreSQL's type may be known
    /// later than Arrow's.
    pub fn note(&mut self, number: usize, field: &Field) {
        if self.0.len() < number {
            self.0.resize(number, None);
        }
        let known = &mut self.0[number - 1];
        let says_more = |known: &FieldRef| known.metadata().is_empty() && known.data_type() == field.data_type();
        if known.as_ref().is_none_or(says_more) {
            *known = Some(Arc::new(field.clone()));
        }
    }

    /// Fields that a plan inferred.
    pub fn note_all(&mut self, fields: &[FieldRef]) {
        fields.iter().enumerate().for_each(|(index, field)| self.note(index + 1, field));
    }

    /// All fields; what nothing is known of is text.
    pub fn known(self) -> Vec<FieldRef> {
        self.0.into_iter().map(|field| field.unwrap_or_else(|| untitled(DataType::Utf8))).collect()
    }
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
