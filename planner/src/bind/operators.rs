//! Operators, functions and constants that PostgreSQL spells or types differently from DataFusion.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Between, Case, InList};
use datafusion::logical_expr::{BinaryExpr, Cast, Expr, ExprSchemable, LogicalPlan, Operator};
use datafusion::sql::sqlparser::ast::{self, BinaryOperator, Expr as Ast, FunctionArguments};
use plan::{PlanError, SqlState};

use super::errors::external;
use super::interval::parse_interval;
use super::{coerce, walk};
use crate::catalog::SessionInfo;
use crate::parse::fold;

/// Rewrites one expression of a syntax tree; its parts are visited afterwards.
pub(crate) fn rewrite(expression: &mut Ast, session: &SessionInfo) -> std::result::Result<(), PlanError> {
    rewrite_forms(expression)?;
    match expression {
        // Without parentheses the parser takes it for a column.
        Ast::Identifier(name) if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("current_schema") => {
            *expression = text(session.current_schema().to_string());
        }
        // There is one collation, by bytes.
        Ast::Collate { expr, .. } => {
            *expression = expr.as_ref().clone();
            return rewrite(expression, session);
        }
        Ast::BinaryOp { op, left, right } => {
            if let BinaryOperator::PGCustomBinaryOperator(parts) = op
                && let Some(plain) = parts.last().and_then(|symbol| plain_operator(symbol))
            {
                *op = plain;
            }
            if *op == BinaryOperator::PGExp {
                *expression = call("power", vec![left.as_ref().clone(), right.as_ref().clone()]);
            }
        }
        Ast::AtTimeZone { timestamp, time_zone } => {
            *expression = call("timezone", vec![time_zone.as_ref().clone(), timestamp.as_ref().clone()]);
        }
        Ast::Cast { .. } => rewrite_cast(expression),
        Ast::Interval(interval) => {
            if let Some(text) = super::interval_text(interval) {
                let value = parse_interval(&text)?;
                // In the units that Arrow reads.
                let text = format!("{} months {} days {} nanoseconds", value.months, value.days, value.nanoseconds);
                *interval.value = self::text(text);
                interval.leading_field = None;
            }
        }
        Ast::UnaryOp { op: ast::UnaryOperator::Minus, expr } => {
            // DataFusion's minus would reach only the first part.
            if let Ast::Interval(interval) = expr.as_mut()
                && let Some(written) = super::interval_text(interval)
            {
                *interval.value = text(negated_interval(&written)?);
                interval.leading_field = None;
                *expression = Ast::Nested(Box::new(expr.as_ref().clone()));
            }
        }
        Ast::Extract { .. } => rewrite_extract(expression),
        Ast::Function(function) => {
            if function.name.0.len() == 2
                && function.name.0[0].as_ident().is_some_and(|schema| fold(schema) == "pg_catalog")
            {
                function.name.0.remove(0);
            }
            if let Some(value) = session_value(function, session) {
                *expression = text(value);
            } else if let Some(remainder) = remainder(function) {
                *expression = remainder;
            } else if let Some(other) = super::calls::rewritten(function) {
                *expression = other;
            } else {
                add_time_zone(function, &session.time_zone);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Forms of expressions that have a file of their own.
fn rewrite_forms(expression: &mut Ast) -> std::result::Result<(), PlanError> {
    super::precedence::rewrite(expression);
    super::between::rewrite(expression);
    super::catalog_queries::rewrite_expression(expression);
    super::row_values::rewrite(expression);
    super::quantified::rewrite(expression);
    super::json::rewrite(expression);
    super::symbols::rewrite(expression)?;
    super::similar::rewrite(expression)
}

/// Casts that DataFusion would take for others.
fn rewrite_cast(expression: &mut Ast) {
    let Ast::Cast { expr, data_type, .. } = expression else { return };
    if is_float(data_type)
        && let Some(digits) = number(expr)
    {
        // As a number it would be a decimal first, which may not hold its digits.
        **expr = text(digits);
    } else if let Some(alias) = oid_alias(data_type) {
        *expression = call(alias, vec![expr.as_ref().clone()]);
    } else if is_text(data_type)
        && let Ast::Cast { data_type: inner, .. } = expr.as_ref()
        && let Some(alias) = oid_alias(inner)
    {
        *expression = call(&format!("{alias}out"), vec![expr.as_ref().clone()]);
    }
}

/// Seconds with their fraction are a numeric, as in PostgreSQL.
fn rewrite_extract(expression: &mut Ast) {
    let Ast::Extract { field, expr, .. } = expression else { return };
    if let Some(extracted) = super::calls::extracted(field, expr) {
        *expression = extracted;
        return;
    }
    let scale = match field {
        ast::DateTimeField::Second | ast::DateTimeField::Seconds => "0.000001",
        ast::DateTimeField::Millisecond | ast::DateTimeField::Milliseconds => "0.001",
        ast::DateTimeField::Epoch => {
            *expression = call("epoch", vec![expr.as_ref().clone()]);
            return;
        }
        _ => return,
    };
    let micros = call("date_part", vec![text("microsecond".to_string()), expr.as_ref().clone()]);
    *expression = Ast::Nested(Box::new(Ast::BinaryOp {
        left: Box::new(cast(micros, 10, 0)),
        op: BinaryOperator::Multiply,
        right: Box::new(Ast::Value(ast::Value::Number(scale.to_string(), false).with_empty_span())),
    }));
}

/// An interval with the sign of every part turned around.
fn negated_interval(text: &str) -> std::result::Result<String, PlanError> {
    let value = parse_interval(text)?;
    let (months, days) = (-i64::from(value.months), -i64::from(value.days));
    Ok(format!("{months} months {days} days {} microseconds", -(value.nanoseconds / 1_000)))
}

/// Whether a cast to a type reads a name as an object's number.
pub(crate) fn is_oid_alias(data_type: &ast::DataType) -> bool {
    oid_alias(data_type).is_some()
}

/// The function that reads a name as an object's number, for a cast to a type that does so.
fn oid_alias(data_type: &ast::DataType) -> Option<&'static str> {
    let name = match data_type {
        ast::DataType::Regclass => "regclass".to_string(),
        ast::DataType::Custom(name, _) => fold(name.0.last()?.as_ident()?),
        _ => return None,
    };
    ["regclass", "regtype", "regnamespace"].into_iter().find(|alias| *alias == name)
}

fn is_text(data_type: &ast::DataType) -> bool {
    match data_type {
        ast::DataType::Text | ast::DataType::Varchar(None) => true,
        ast::DataType::Custom(name, _) => {
            name.0.last().and_then(|part| part.as_ident()).is_some_and(|name| fold(name) == "text")
        }
        _ => false,
    }
}

fn is_float(data_type: &ast::DataType) -> bool {
    super::types::field_of(data_type).is_ok_and(|field| field.data_type().is_floating())
}

/// The digits of a number in a syntax tree, with its sign.
fn number(expression: &Ast) -> Option<String> {
    match expression {
        Ast::Value(value) => match &value.value {
            ast::Value::Number(digits, _) => Some(digits.clone()),
            _ => None,
        },
        Ast::UnaryOp { op: ast::UnaryOperator::Minus, expr } => number(expr).map(|digits| format!("-{digits}")),
        Ast::Nested(inner) => number(inner),
        _ => None,
    }
}

/// The arguments of a plain call of one of the named functions.
fn arguments_of<'f>(function: &'f mut ast::Function, names: &[&str]) -> Option<&'f mut Vec<ast::FunctionArg>> {
    let [name] = function.name.0.as_slice() else { return None };
    let name = fold(name.as_ident()?);
    match &mut function.args {
        FunctionArguments::List(list) if names.contains(&name.as_str()) => Some(&mut list.args),
        _ => None,
    }
}

/// mod(a, b) is the operator.
fn remainder(function: &mut ast::Function) -> Option<Ast> {
    use ast::{FunctionArg::Unnamed, FunctionArgExpr};
    let [Unnamed(FunctionArgExpr::Expr(left)), Unnamed(FunctionArgExpr::Expr(right))] =
        arguments_of(function, &["mod"])?.as_slice()
    else {
        return None;
    };
    let operand = |side: &Ast| Box::new(Ast::Nested(Box::new(side.clone())));
    let (left, right) = (operand(left), operand(right));
    Some(Ast::Nested(Box::new(Ast::BinaryOp { left, op: BinaryOperator::Modulo, right })))
}

/// Functions that print and read instants do so in the session's time zone, which is their last argument.
fn add_time_zone(function: &mut ast::Function, time_zone: &str) {
    if time_zone.eq_ignore_ascii_case("utc") {
        return;
    }
    if let Some(arguments) = arguments_of(function, &["to_char", "to_timestamp"])
        && arguments.len() == 2
    {
        let zone = text(time_zone.to_string());
        arguments.push(ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(zone)));
    }
}

/// The operator of OPERATOR(pg_catalog.x).
fn plain_operator(symbol: &str) -> Option<BinaryOperator> {
    Some(match symbol {
        "~" => BinaryOperator::PGRegexMatch,
        "~*" => BinaryOperator::PGRegexIMatch,
        "!~" => BinaryOperator::PGRegexNotMatch,
        "!~*" => BinaryOperator::PGRegexNotIMatch,
        "~~" => BinaryOperator::PGLikeMatch,
        "~~*" => BinaryOperator::PGILikeMatch,
        "!~~" => BinaryOperator::PGNotLikeMatch,
        "!~~*" => BinaryOperator::PGNotILikeMatch,
        "=" => BinaryOperator::Eq,
        "<>" | "!=" => BinaryOperator::NotEq,
        "<" => BinaryOperator::Lt,
        "<=" => BinaryOperator::LtEq,
        ">" => BinaryOperator::Gt,
        ">=" => BinaryOperator::GtEq,
        "+" => BinaryOperator::Plus,
        "-" => BinaryOperator::Minus,
        "*" => BinaryOperator::Multiply,
        "/" => BinaryOperator::Divide,
        "%" => BinaryOperator::Modulo,
        "||" => BinaryOperator::StringConcat,
        _ => return None,
    })
}

/// Functions whose value is the session's.
fn session_value(function: &ast::Function, session: &SessionInfo) -> Option<String> {
    let no_arguments = match &function.args {
        FunctionArguments::None => true,
        FunctionArguments::List(list) => list.args.is_empty(),
        FunctionArguments::Subquery(_) => false,
    };
    if !no_arguments || function.name.0.len() != 1 {
        return None;
    }
    let name = fold(function.name.0[0].as_ident()?);
    match name.as_str() {
        "current_schema" => Some(session.current_schema().to_string()),
        "current_database" | "current_catalog" => Some(session.database.clone()),
        "current_user" | "session_user" | "user" | "current_role" => Some(session.user.clone()),
        _ => None,
    }
}

/// A cast to numeric(p,s) in a syntax tree.
pub(crate) fn cast(value: Ast, precision: u64, scale: i64) -> Ast {
    cast_as(value, ast::DataType::Numeric(ast::ExactNumberInfo::PrecisionAndScale(precision, scale)))
}

/// A cast in a syntax tree.
pub(crate) fn cast_as(value: Ast, data_type: ast::DataType) -> Ast {
    Ast::Cast { kind: ast::CastKind::Cast, expr: Box::new(value), data_type, array: false, format: None }
}

/// A text constant in a syntax tree.
pub(crate) fn text(value: String) -> Ast {
    Ast::Value(ast::Value::SingleQuotedString(value).with_empty_span())
}

/// A function call in a syntax tree.
pub(crate) fn call(name: &str, arguments: Vec<Ast>) -> Ast {
    let args =
        arguments.into_iter().map(|argument| ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(argument))).collect();
    Ast::Function(ast::Function {
        name: ast::ObjectName(vec![ast::ObjectNamePart::Identifier(ast::Ident::new(name))]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(ast::FunctionArgumentList {
            duplicate_treatment: None,
            args,
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// A text constant compared or calculated with a value of another type takes that type, as in PostgreSQL; and dates
/// are calculated with in days.
pub(crate) fn text_constants(plan: LogicalPlan, time_zone: &str) -> Result<LogicalPlan> {
    walk::expressions(plan, &mut |expression, schema| rewrite_typed(expression, schema, time_zone))
}

/// One expression of [`text_constants`].
pub(crate) fn rewrite_typed(expression: Expr, schema: &DFSchema, time_zone: &str) -> Result<Transformed<Expr>> {
    if let Expr::Cast(cast) = &expression
        && let Ok(from) = cast.expr.get_type(schema)
    {
        let checked = coerce::explicit_cast(&cast.expr, &from, &cast.field, time_zone).map_err(external)?;
        return Ok(match checked {
            Some(checked) => Transformed::yes(checked),
            None => Transformed::no(expression),
        });
    }
    typed_constants(expression, schema, time_zone)?.transform_data(|expression| date_arithmetic(expression, schema))
}

/// Whole numbers that fit are integers and not bigints. In a recursive query types are fixed already.
pub(crate) fn integer_constants(plan: LogicalPlan) -> Result<LogicalPlan> {
    let recursive = plan.exists(|node| Ok(matches!(node, LogicalPlan::RecursiveQuery(_))))?;
    if recursive {
        return Ok(plan);
    }
    walk::nodes(plan, &mut |node| {
        // The numbers of LIMIT and OFFSET are bigints, and the types of VALUES are fixed already.
        if matches!(node, LogicalPlan::Limit(_) | LogicalPlan::Values(_)) {
            return node.recompute_schema().map(Transformed::no);
        }
        let node = walk::node_expressions(node, &mut |expression, _| match expression {
            Expr::Literal(ScalarValue::Int64(Some(value)), metadata) => match i32::try_from(value) {
                Ok(value) => Ok(Transformed::yes(Expr::Literal(ScalarValue::Int32(Some(value)), metadata))),
                Err(_) => Ok(Transformed::no(Expr::Literal(ScalarValue::Int64(Some(value)), metadata))),
            },
            // count(*) is written as count of a bigint, by which it is recognised.
            Expr::AggregateFunction(mut aggregate) if aggregate.func.name() == "count" => {
                aggregate.params.args.iter_mut().for_each(to_bigint);
                Ok(Transformed::yes(Expr::AggregateFunction(aggregate)))
            }
            Expr::WindowFunction(mut window) if window.fun.name() == "count" => {
                window.params.args.iter_mut().for_each(to_bigint);
                Ok(Transformed::yes(Expr::WindowFunction(window)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        node.map_data(LogicalPlan::recompute_schema)
    })
}

fn to_bigint(expression: &mut Expr) {
    if let Expr::Literal(value @ ScalarValue::Int32(Some(_)), _) = expression
        && let ScalarValue::Int32(Some(number)) = value
    {
        *value = ScalarValue::Int64(Some(i64::from(*number)));
    }
}

/// date + integer, date - integer and date - date.
fn date_arithmetic(expression: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let Expr::BinaryExpr(BinaryExpr { left, op: op @ (Operator::Plus | Operator::Minus), right }) = expression else {
        return Ok(Transformed::no(expression));
    };
    let (Ok(left_type), Ok(right_type)) = (left.get_type(schema), right.get_type(schema)) else {
        return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
    };
    let days = |expression: Box<Expr>| Box::new(Expr::Cast(Cast::new(expression, DataType::Int32)));
    let sum = |left, right| Expr::BinaryExpr(BinaryExpr { left, op, right });
    let date = |days: Expr| Expr::Cast(Cast::new(Box::new(days), DataType::Date32));
    let instant = |date: Box<Expr>| Box::new(Expr::Cast(Cast::new(date, super::types::TIMESTAMP)));
    Ok(match (&left_type, &right_type) {
        (DataType::Date32, DataType::Interval(_)) => Transformed::yes(sum(instant(left), right)),
        (DataType::Interval(_), DataType::Date32) => Transformed::yes(sum(left, instant(right))),
        (DataType::Timestamp(_, from), DataType::Timestamp(_, to))
            if op == Operator::Minus && from.is_some() == to.is_some() =>
        {
            Transformed::yes(super::time_difference::between(*left, *right))
        }
        (DataType::Date32, DataType::Date32) if op == Operator::Minus => Transformed::yes(sum(days(left), days(right))),
        (DataType::Date32, number) if number.is_integer() => Transformed::yes(date(sum(days(left), days(right)))),
        (number, DataType::Date32) if number.is_integer() && op == Operator::Plus => {
            Transformed::yes(date(sum(days(left), days(right))))
        }
        _ => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
    })
}

/// Text constants beside values of other types.
pub(crate) fn typed_constants(expression: Expr, schema: &DFSchema, time_zone: &str) -> Result<Transformed<Expr>> {
    match expression {
        Expr::BinaryExpr(BinaryExpr { left, op, right })
            if is_text_constant(&left) != is_text_constant(&right) && takes_other_type(op) =>
        {
            let (constant, other) = if is_text_constant(&left) { (&left, &right) } else { (&right, &left) };
            let Some(cast) = constant_as(constant, other, op, schema, time_zone)? else {
                return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })));
            };
            let (left, right) = if is_text_constant(&left) { (Box::new(cast), right) } else { (left, Box::new(cast)) };
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op, right })))
        }
        Expr::Case(case) => branches(case, schema, time_zone),
        Expr::InList(InList { expr, list, negated }) if list.iter().any(is_text_constant) => {
            let list = list.into_iter().map(|item| {
                constant_as(&item, &expr, Operator::Eq, schema, time_zone).map(|cast| cast.unwrap_or(item))
            });
            let list = list.collect::<Result<Vec<_>>>()?;
            Ok(Transformed::yes(Expr::InList(InList { expr, list, negated })))
        }
        Expr::Between(Between { expr, negated, low, high }) => {
            let typed = |bound: Box<Expr>| {
                constant_as(&bound, &expr, Operator::Eq, schema, time_zone).map(|cast| cast.map_or(bound, Box::new))
            };
            let (low, high) = (typed(low)?, typed(high)?);
            Ok(Transformed::yes(Expr::Between(Between { expr, negated, low, high })))
        }
        other => Ok(Transformed::no(other)),
    }
}

/// A text constant among the results of a CASE takes the type of the others, if they have one that is no text.
fn branches(mut case: Case, schema: &DFSchema, time_zone: &str) -> Result<Transformed<Expr>> {
    let results = || case.when_then_expr.iter().map(|(_, result)| result).chain(&case.else_expr);
    if !results().any(|result| is_text_constant(result)) {
        return Ok(Transformed::no(Expr::Case(case)));
    }
    let other = results().find(|result| !is_text_constant(result) && !is_null(result)).cloned();
    let Some(other) = other else { return Ok(Transformed::no(Expr::Case(case))) };
    let results = case.when_then_expr.iter_mut().map(|(_, result)| result).chain(&mut case.else_expr);
    for result in results {
        if let Some(typed) = constant_as(result, &other, Operator::Eq, schema, time_zone)? {
            **result = typed;
        }
    }
    Ok(Transformed::yes(Expr::Case(case)))
}

fn is_null(expression: &Expr) -> bool {
    matches!(expression, Expr::Literal(value, _) if value.is_null())
}

/// Whether an operator compares.
pub(crate) fn is_comparison(op: Operator) -> bool {
    use Operator::{Eq, Gt, GtEq, IsDistinctFrom, IsNotDistinctFrom, Lt, LtEq, NotEq};
    matches!(op, Eq | NotEq | Lt | LtEq | Gt | GtEq | IsDistinctFrom | IsNotDistinctFrom)
}

fn takes_other_type(op: Operator) -> bool {
    is_comparison(op) || {
        use Operator::*;
        matches!(op, Plus | Minus | Multiply | Divide | Modulo)
    }
}

fn is_text_constant(expression: &Expr) -> bool {
    matches!(expression, Expr::Literal(ScalarValue::Utf8(Some(_)), _))
}

/// A text constant as a value of the type of the other operand, if that is not a text and PostgreSQL would do so. A text
/// that is no such value is an error.
fn constant_as(
    constant: &Expr,
    other: &Expr,
    op: Operator,
    schema: &DFSchema,
    time_zone: &str,
) -> Result<Option<Expr>> {
    let Expr::Literal(ScalarValue::Utf8(Some(text)), _) = constant else { return Ok(None) };
    let Some(target) = type_beside(other, op, schema) else { return Ok(None) };
    let field = datafusion::arrow::datatypes::Field::new("", target.clone(), true);
    match super::literal::parse_text(text, &field, time_zone) {
        Ok(value) => Ok(Some(Expr::Literal(value, None))),
        Err(error) if error.sqlstate == SqlState::FEATURE_NOT_SUPPORTED => {
            Ok(Some(Expr::Cast(Cast::new(Box::new(constant.clone()), target))))
        }
        Err(error) => Err(external(error)),
    }
}

/// The type that a text constant takes beside another operand; none if it stays a text.
fn type_beside(other: &Expr, op: Operator, schema: &DFSchema) -> Option<DataType> {
    let data_type = other.get_type(schema).ok()?;
    Some(match (&data_type, is_comparison(op)) {
        (DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 | DataType::Null, _) => return None,
        (DataType::Dictionary(_, _), _) => return None,
        // The current time comes in nanoseconds; what is written is read in ours.
        (DataType::Timestamp(_, zone), true) => DataType::Timestamp(TimeUnit::Microsecond, zone.clone()),
        (_, true) => data_type,
        // An instant and a text: the text is an interval. Numbers: the other's type.
        (DataType::Timestamp(_, _) | DataType::Date32, false) if matches!(op, Operator::Plus) => {
            DataType::Interval(datafusion::arrow::datatypes::IntervalUnit::MonthDayNano)
        }
        (data_type, false) if data_type.is_numeric() || matches!(data_type, DataType::Timestamp(_, _)) => {
            data_type.clone()
        }
        _ => return None,
    })
}
