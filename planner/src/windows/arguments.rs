//! Arguments of windows: their places and names, and what is wrong with them.

use std::fmt;

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
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Tumble => "TUMBLE",
            Kind::Hop => "HOP",
        })
    }
}

impl Kind {
    /// The kind of a function's name, if it is a window; an error for windows that are not built.
    pub fn of(name: &ast::ObjectName) -> Result<Option<Kind>, PlanError> {
        let [ast::ObjectNamePart::Identifier(ident)] = name.0.as_slice() else { return Ok(None) };
        match fold(ident).as_str() {
            "tumble" => Ok(Some(Kind::Tumble)),
            "hop" => Ok(Some(Kind::Hop)),
            word @ ("session" | "cumulate") => Err(PlanError::unsupported(word.to_uppercase())),
            _ => Ok(None),
        }
    }

    /// Names of the arguments after table and time, in order; the last may be left out.
    pub fn interval_names(self) -> &'static [&'static str] {
        match self {
            Kind::Tumble => &["size", "offset"],
            Kind::Hop => &["slide", "size", "offset"],
        }
    }

    /// How it is called.
    pub fn usage(self) -> &'static str {
        match self {
            Kind::Tumble => "TUMBLE(table, time column, size [, offset])",
            Kind::Hop => "HOP(table, time column, slide, size [, offset])",
        }
    }
}

/// The arguments of a window in FROM, as written.
pub(super) struct Arguments {
    pub data: TableFactor,
    pub time: Ast,
    /// By the names of [`Kind::interval_names`].
    pub intervals: Vec<(&'static str, Ast)>,
}

impl Arguments {
    /// Sorts arguments by place or by name.
    pub fn of(kind: Kind, args: &[FunctionArg]) -> Result<Arguments, PlanError> {
        let names: Vec<&'static str> = ["data", "timecol"].iter().chain(kind.interval_names()).copied().collect();
        let wrong_number = || {
            let least = names.len() - 1;
            PlanError::new(
                SqlState::SYNTAX_ERROR,
                format!("{kind} takes {least} or {} arguments, not {}", names.len(), args.len()),
            )
            .with_hint(format!("Write {}.", kind.usage()))
        };
        let mut found: Vec<Option<Ast>> = names.iter().map(|_| None).collect();
        for (index, arg) in args.iter().enumerate() {
            let (place, value) = match arg {
                FunctionArg::Unnamed(value) => (Some(index).filter(|index| *index < names.len()), value),
                FunctionArg::ExprNamed { name: Ast::Identifier(name), arg, .. }
                | FunctionArg::Named { name, arg, .. } => {
                    let written = fold(name);
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
        if intervals.iter().any(|(name, value)| value.is_none() && *name != "offset") {
            return Err(wrong_number());
        }
        let intervals = intervals.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        Ok(Arguments { data: data_of(kind, data)?, time: descriptor(time), intervals })
    }
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
    if name == "offset" {
        return Ok(());
    }
    let refused =
        |what: &str| Err(PlanError::new(SqlState::INVALID_PARAMETER_VALUE, format!("the {name} of {kind} {what}")));
    let short = i128::from(value.days) * 86_400_000_000_000 + i128::from(value.nanoseconds);
    let long = i128::from(value.months);
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
