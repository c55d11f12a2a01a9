//! Arguments of windows: their places and names, and what is wrong with them.

use std::fmt;
use std::ops::RangeInclusive;

use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::planner::RelationPlannerContext;
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::{Expr, ExprSchemable};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::sql::sqlparser::ast::{self, Expr as Ast, FunctionArg, FunctionArgExpr, TableFactor};
use plan::{PlanError, SqlState};

use crate::bind::errors::external;
use crate::bind::interval::parse_interval;
use crate::bind::types::data_type_name;
use crate::parse::fold;

/// The kinds of windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Tumble,
    Hop,
    Cumulate,
    Session,
}

/// Name of the argument by which `PARTITION BY a, b` is passed on; see [`super::tokens`].
pub(super) const PARTITION: &str = "partition by";
/// Name of the argument by which a join is passed on, as a query of all its columns; see [`super::grouping`].
pub(super) const JOIN: &str = "join";

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Tumble => "TUMBLE",
            Kind::Hop => "HOP",
            Kind::Cumulate => "CUMULATE",
            Kind::Session => "SESSION",
        })
    }
}

impl Kind {
    /// The kind of a function's name, if it is a window.
    pub fn of(name: &ast::ObjectName) -> Option<Kind> {
        let [ast::ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return None };
        match fold(ident).as_str() {
            "tumble" => Some(Kind::Tumble),
            "hop" => Some(Kind::Hop),
            "cumulate" => Some(Kind::Cumulate),
            "session" => Some(Kind::Session),
            _ => None,
        }
    }

    /// Names of the arguments after table and time, in order; an offset may be left out.
    pub fn interval_names(self) -> &'static [&'static str] {
        match self {
            Kind::Tumble => &["size", OFFSET],
            Kind::Hop => &["slide", "size", OFFSET],
            Kind::Cumulate => &["step", "size", OFFSET],
            Kind::Session => &["gap"],
        }
    }

    /// How many intervals it takes, at least and at most.
    pub fn intervals(self) -> RangeInclusive<usize> {
        let names = self.interval_names();
        names.iter().filter(|name| **name != OFFSET).count()..=names.len()
    }

    /// How many arguments it takes with so many before the intervals, in words.
    pub fn number_of_arguments(self, others: usize) -> String {
        let (least, most) = (others + self.intervals().start(), others + self.intervals().end());
        if least == most { most.to_string() } else { format!("{least} or {most}") }
    }

    /// How it is called.
    pub fn usage(self) -> &'static str {
        match self {
            Kind::Tumble => "TUMBLE(table, time column, size [, offset])",
            Kind::Hop => "HOP(table, time column, slide, size [, offset])",
            Kind::Cumulate => "CUMULATE(table, time column, step, size [, offset])",
            Kind::Session => "SESSION(table [PARTITION BY column, ...], time column, gap)",
        }
    }
}

/// The argument that may be left out.
const OFFSET: &str = "offset";

/// The arguments of a window in FROM, as written.
pub(super) struct Arguments {
    pub data: TableFactor,
    pub time: Ast,
    /// By the names of [`Kind::interval_names`].
    pub intervals: Vec<(&'static str, Ast)>,
    /// By which sessions are parted.
    pub partition: Vec<Ast>,
}

impl Arguments {
    /// Sorts arguments by place or by name.
    pub fn of(kind: Kind, args: &[FunctionArg]) -> Result<Arguments, PlanError> {
        let names: Vec<&'static str> = ["data", "timecol"].iter().chain(kind.interval_names()).copied().collect();
        let wrong_number = || {
            let message = format!("{kind} takes {} arguments, not {}", kind.number_of_arguments(2), args.len());
            PlanError::new(SqlState::SYNTAX_ERROR, message).with_hint(format!("Write {}.", kind.usage()))
        };
        let mut found: Vec<Option<Ast>> = names.iter().map(|_| None).collect();
        let partition = args.iter().find_map(|arg| named(arg, PARTITION));
        if partition.is_some() && kind != Kind::Session {
            return Err(PlanError::new(SqlState::SYNTAX_ERROR, format!("{kind} has no PARTITION BY"))
                .with_hint("Rows of all keys have the same windows; put the key into GROUP BY."));
        }
        for (index, arg) in args.iter().filter(|arg| named(arg, PARTITION).is_none()).enumerate() {
            let (place, value) = match arg {
                FunctionArg::Unnamed(value) => (Some(index).filter(|index| *index < names.len()), value),
                FunctionArg::ExprNamed { name: Ast::Identifier(name), arg, .. }
                | FunctionArg::Named { name, arg, .. } => {
                    let written = if name.value == JOIN { "data".to_owned() } else { fold(name) };
                    let place = names.iter().position(|known| *known == written).ok_or_else(|| {
                        PlanError::new(
                            SqlState::SYNTAX_ERROR,
                            format!("{kind} has no argument \"{}\"", written.to_uppercase()),
                        )
                        .with_hint(format!("Its arguments are {}.", names.join(", ").to_uppercase()))
                    })?;
                    (Some(place), arg)
                }
                FunctionArg::ExprNamed { .. } => return Err(wrong_number()),
            };
            let place = place.ok_or_else(wrong_number)?;
            let FunctionArgExpr::Expr(value) = value else { return Err(wrong_number()) };
            if found[place].replace(value.clone()).is_some() {
                return Err(PlanError::new(
                    SqlState::SYNTAX_ERROR,
                    format!("argument {} of {kind} is given twice", names[place].to_uppercase()),
                ));
            }
        }
        let mut found = names.iter().copied().zip(found);
        let mut next = || found.next().and_then(|(_, value)| value);
        let (data, time) = (next(), next());
        let intervals: Vec<(&'static str, Option<Ast>)> = found.collect();
        let (Some(data), Some(time)) = (data, time) else { return Err(wrong_number()) };
        if intervals.iter().any(|(name, value)| value.is_none() && *name != OFFSET) {
            return Err(wrong_number());
        }
        let intervals = intervals.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        let data = match (args.iter().find_map(|arg| named(arg, JOIN)).is_some(), data) {
            (true, data) => joined(data).ok_or_else(wrong_number)?,
            (false, data) => data_of(kind, data)?,
        };
        let partition = partition.map_or_else(Vec::new, |list| match without_parentheses(list) {
            Ast::Tuple(parts) => parts.clone(),
            part => vec![part.clone()],
        });
        Ok(Arguments { data, time: descriptor(time), intervals, partition })
    }
}

fn without_parentheses(expression: &Ast) -> &Ast {
    match expression {
        Ast::Nested(inner) => without_parentheses(inner),
        other => other,
    }
}

/// The value of an argument of that name.
fn named<'a>(arg: &'a FunctionArg, wanted: &str) -> Option<&'a Ast> {
    match arg {
        FunctionArg::ExprNamed { name: Ast::Identifier(name), arg: FunctionArgExpr::Expr(value), .. }
        | FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. }
            if name.value == wanted =>
        {
            Some(value)
        }
        _ => None,
    }
}

/// The join of a query of all its columns: its columns keep the names of the relations that they are of.
fn joined(query: Ast) -> Option<TableFactor> {
    let Ast::Subquery(query) = query else { return None };
    let ast::SetExpr::Select(select) = *query.body else { return None };
    let [from] = <[ast::TableWithJoins; 1]>::try_from(select.from).ok()?;
    Some(TableFactor::NestedJoin { table_with_joins: Box::new(from), alias: None })
}

/// A table by name, or a subquery.
fn data_of(kind: Kind, data: Ast) -> Result<TableFactor, PlanError> {
    let named = |parts: Vec<ast::Ident>| {
        let name = ast::ObjectName(parts.into_iter().map(ast::ObjectNamePart::Identifier).collect());
        super::table_factor(name, None, None)
    };
    match data {
        Ast::Identifier(ident) => Ok(named(vec![ident])),
        Ast::CompoundIdentifier(parts) => Ok(named(parts)),
        Ast::Subquery(subquery) => Ok(TableFactor::Derived { lateral: false, subquery, alias: None, sample: None }),
        Ast::Nested(inner) => data_of(kind, *inner),
        other => Err(PlanError::new(
            SqlState::SYNTAX_ERROR,
            format!("the first argument of {kind} must be a table or a subquery, not {other}"),
        )
        .with_hint(format!("Write {}.", kind.usage()))),
    }
}

/// DESCRIPTOR(ts) is ts.
fn descriptor(time: Ast) -> Ast {
    if let Ast::Function(function) = &time
        && function.name.to_string().eq_ignore_ascii_case("descriptor")
        && let ast::FunctionArguments::List(list) = &function.args
        && let [FunctionArg::Unnamed(FunctionArgExpr::Expr(inner))] = list.args.as_slice()
    {
        return inner.clone();
    }
    time
}

/// The time argument over the input's columns.
pub(super) fn time(
    kind: Kind,
    written: &Ast,
    schema: &DFSchema,
    context: &mut dyn RelationPlannerContext,
) -> DataFusionResult<Expr> {
    let time = context.sql_to_expr(written.clone(), schema)?;
    let data_type = time.get_type(schema)?;
    if matches!(data_type, DataType::Timestamp(_, _) | DataType::Date32) {
        return Ok(time);
    }
    Err(external(
        PlanError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("the time column \"{written}\" of {kind} is of type {}", data_type_name(&data_type)),
        )
        .with_hint("The time of a window is a timestamp, timestamptz or date."),
    ))
}

/// The expressions over the input's columns by which sessions are parted. A pair `(name, expression)` is the column of that
/// name, or the expression if there is none: GROUP BY prefers columns to names of the select list.
pub(super) fn partition(
    written: &[Ast],
    schema: &DFSchema,
    context: &mut dyn RelationPlannerContext,
) -> DataFusionResult<Vec<Expr>> {
    let chosen = |part: &Ast| match part {
        Ast::Tuple(pair) => match pair.as_slice() {
            [Ast::Identifier(name), expression] => {
                let is_column = schema.fields().iter().any(|field| *field.name() == fold(name));
                if is_column { pair[0].clone() } else { expression.clone() }
            }
            _ => part.clone(),
        },
        part => part.clone(),
    };
    written.iter().map(|part| context.sql_to_expr(chosen(part), schema)).collect()
}

/// The interval arguments of a window, checked.
pub(super) struct Intervals(Vec<(&'static str, IntervalMonthDayNano)>);

impl Intervals {
    /// An argument as a literal, if it was given.
    pub fn literal(&self, name: &str) -> Option<Expr> {
        let (_, value) = self.0.iter().find(|(known, _)| *known == name)?;
        Some(Expr::Literal(ScalarValue::IntervalMonthDayNano(Some(*value)), None))
    }
}

/// Evaluates the interval arguments and refuses those that make no windows.
pub(super) fn intervals(
    kind: Kind,
    arguments: &Arguments,
    context: &mut dyn RelationPlannerContext,
) -> DataFusionResult<Intervals> {
    let mut values = Vec::with_capacity(arguments.intervals.len());
    for (name, written) in &arguments.intervals {
        let value = constant_interval(kind, name, written, context)?;
        check(kind, name, value).map_err(external)?;
        values.push((*name, value));
    }
    Ok(Intervals(values))
}

fn constant_interval(
    kind: Kind,
    name: &str,
    written: &Ast,
    context: &mut dyn RelationPlannerContext,
) -> DataFusionResult<IntervalMonthDayNano> {
    let schema = DFSchema::empty();
    let not_constant = || {
        external(
            PlanError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("the {name} of {kind} must be a constant interval"),
            )
            .with_hint("For example, INTERVAL '10 minutes'."),
        )
    };
    let bound = context.sql_to_expr(written.clone(), &schema).map_err(|error| {
        if matches!(error.find_root(), datafusion::error::DataFusionError::SchemaError(_, _)) {
            not_constant()
        } else {
            error
        }
    })?;
    let data_type = bound.get_type(&schema)?;
    let simplifier = ExprSimplifier::new(SimplifyContext::default());
    let value = match simplifier.coerce(bound, &schema).and_then(|bound| simplifier.simplify(bound))? {
        Expr::Literal(value, _) => value,
        _ => return Err(not_constant()),
    };
    match value {
        ScalarValue::IntervalMonthDayNano(Some(value)) => Ok(value),
        ScalarValue::Utf8(Some(text)) => parse_interval(&text).map_err(external),
        value if value.is_null() => Err(external(PlanError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("the {name} of {kind} must not be NULL"),
        ))),
        value => match value.cast_to(&DataType::Interval(IntervalUnit::MonthDayNano)) {
            Ok(ScalarValue::IntervalMonthDayNano(Some(value))) if matches!(data_type, DataType::Interval(_)) => {
                Ok(value)
            }
            _ => Err(external(
                PlanError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!("the {name} of {kind} must be an interval, not {}", data_type_name(&data_type)),
                )
                .with_hint("For example, INTERVAL '10 minutes'."),
            )),
        },
    }
}

fn check(kind: Kind, name: &str, value: IntervalMonthDayNano) -> Result<(), PlanError> {
    if name == OFFSET {
        return Ok(());
    }
    let refused =
        |what: &str| Err(PlanError::new(SqlState::INVALID_PARAMETER_VALUE, format!("the {name} of {kind} {what}")));
    let short = i128::from(value.days) * 86_400_000_000_000 + i128::from(value.nanoseconds);
    let long = i128::from(value.months);
    if kind == Kind::Session {
        // Added to a time, both have a meaning.
        let negative = value.months < 0 || value.days < 0 || value.nanoseconds < 0;
        return if negative || long + short == 0 { refused("must be greater than zero") } else { Ok(()) };
    }
    if long != 0 && short != 0 {
        return refused("must be in months and years or in shorter units, not in both");
    }
    if long + short <= 0 {
        return refused("must be greater than zero");
    }
    Ok(())
}

/// Checks the interval arguments of a window in GROUP BY as far as they are constants, by their text.
pub(super) fn check_text(kind: Kind, written: &[Ast]) -> Result<(), PlanError> {
    for (name, argument) in kind.interval_names().iter().zip(written) {
        if let Ast::Interval(interval) = argument
            && let Some(text) = crate::bind::interval_text(interval)
        {
            check(kind, name, parse_interval(&text)?)?;
        }
    }
    Ok(())
}
