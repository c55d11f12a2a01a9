//! Calls of functions that PostgreSQL spells, types or fills in differently from DataFusion.

use datafusion::sql::sqlparser::ast::{self, BinaryOperator, DateTimeField, Expr as Ast, FunctionArg, FunctionArgExpr};

use super::operators::{call, cast, cast_as, text};
use super::subquery_rows::{binary, nested, number};
use crate::parse::fold;

/// Functions under other names.
const RENAMED: &[(&str, &str)] = &[
    ("array_remove", "array_remove_all"),
    ("array_replace", "array_replace_all"),
    ("transaction_timestamp", "now"),
    ("statement_timestamp", "now"),
    ("clock_timestamp", "now"),
];

/// The parts of make_interval, in their order.
const INTERVAL_PARTS: &[&str] = &["years", "months", "weeks", "days", "hours", "mins", "secs"];

/// Fields that DataFusion's date_part lacks, or of which it gives a part only.
const FIELDS: &[&str] = &[
    "second",
    "seconds",
    "millisecond",
    "milliseconds",
    "decade",
    "century",
    "millennium",
    "julian",
    "timezone",
    "timezone_hour",
    "timezone_minute",
];

/// What stands for a call; none if it stays as it is.
pub(super) fn rewritten(function: &mut ast::Function) -> Option<Ast> {
    keep_constants_in_order(function);
    let [ast::ObjectNamePart::Identifier(name)] = function.name.0.as_mut_slice() else { return None };
    let folded = fold(name);
    if let Some((_, other)) = RENAMED.iter().find(|(known, _)| *known == folded) {
        *name = ast::Ident::new(*other);
        return None;
    }
    if folded == "localtimestamp" && matches!(function.args, ast::FunctionArguments::None) {
        return Some(cast_as(call("now", Vec::new()), timestamp()));
    }
    let ast::FunctionArguments::List(list) = &function.args else { return None };
    if folded == "make_interval" {
        return interval_of_named_parts(&list.args);
    }
    let arguments = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(argument)) => Some(argument.clone()),
        _ => None,
    });
    let arguments: Vec<Ast> = arguments.collect::<Option<_>>()?;
    match (folded.as_str(), arguments.as_slice()) {
        ("age", [moment]) => {
            let today = cast_as(call("current_date", Vec::new()), timestamp());
            Some(call("age", vec![today, moment.clone()]))
        }
        ("gen_random_uuid", []) => Some(cast_as(call("uuid", Vec::new()), ast::DataType::Uuid)),
        ("localtimestamp", []) => Some(cast_as(call("now", Vec::new()), timestamp())),
        // An array without items has no length.
        ("array_length" | "array_upper", [_, _]) => {
            Some(call("nullif", vec![call("list_length", arguments.clone()), number("0")]))
        }
        ("array_lower", [_, _]) => {
            let length = call("nullif", vec![call("list_length", arguments.clone()), number("0")]);
            Some(binary(binary(length, BinaryOperator::Multiply, number("0")), BinaryOperator::Plus, number("1")))
        }
        ("date_part", [field, moment]) => {
            let field = literal(field)?.to_lowercase();
            FIELDS.contains(&field.as_str()).then(|| call("date_field", vec![text(field), moment.clone()]))
        }
        ("date_trunc", [field, moment, zone]) => {
            let local = call("timezone", vec![zone.clone(), moment.clone()]);
            let cut = call("date_trunc", vec![field.clone(), local]);
            Some(call("timezone", vec![zone.clone(), cut]))
        }
        ("date_trunc", [field, moment]) => {
            let singular = literal(field)?.to_lowercase();
            let singular = singular.strip_suffix('s').filter(|_| singular != "centuries")?;
            Some(call("date_trunc", vec![text(singular.to_string()), moment.clone()]))
        }
        ("encode", [bytes, format]) if literal(format)?.eq_ignore_ascii_case("base64") => {
            Some(call("encode", vec![bytes.clone(), text("base64pad".to_string())]))
        }
        _ => None,
    }
}

/// A number in the ORDER BY of an aggregate is a constant. DataFusion would take it for the position of a column of the
/// input, unless it is in parentheses.
fn keep_constants_in_order(function: &mut ast::Function) {
    let ast::FunctionArguments::List(list) = &mut function.args else { return };
    for clause in &mut list.clauses {
        let ast::FunctionArgumentClause::OrderBy(order) = clause else { continue };
        for sort in order.iter_mut().filter(|sort| matches!(sort.expr, Ast::Value(_))) {
            sort.expr = nested(sort.expr.clone());
        }
    }
}

/// The field of EXTRACT, if it is one that DataFusion lacks; as a numeric.
pub(super) fn extracted(field: &DateTimeField, moment: &Ast) -> Option<Ast> {
    let name = match field {
        DateTimeField::Decade => "decade",
        DateTimeField::Century => "century",
        DateTimeField::Millennium | DateTimeField::Millenium => "millennium",
        DateTimeField::Julian => "julian",
        DateTimeField::Timezone => "timezone",
        DateTimeField::TimezoneHour => "timezone_hour",
        DateTimeField::TimezoneMinute => "timezone_minute",
        _ => return None,
    };
    Some(cast(call("date_field", vec![text(name.to_string()), moment.clone()]), 20, 0))
}

fn literal(expression: &Ast) -> Option<&str> {
    match expression {
        Ast::Value(value) => match &value.value {
            ast::Value::SingleQuotedString(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

fn timestamp() -> ast::DataType {
    ast::DataType::Timestamp(None, ast::TimezoneInfo::None)
}

/// `make_interval(days => 10)` with the parts before it filled in.
fn interval_of_named_parts(arguments: &[FunctionArg]) -> Option<Ast> {
    let mut parts: Vec<Option<Ast>> = vec![None; INTERVAL_PARTS.len()];
    let mut named = false;
    for (place, argument) in arguments.iter().enumerate() {
        let (place, value) = match argument {
            FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => {
                named = true;
                (INTERVAL_PARTS.iter().position(|known| *known == fold(name))?, value)
            }
            FunctionArg::ExprNamed { name: Ast::Identifier(name), arg: FunctionArgExpr::Expr(value), .. } => {
                named = true;
                (INTERVAL_PARTS.iter().position(|known| *known == fold(name))?, value)
            }
            FunctionArg::Unnamed(FunctionArgExpr::Expr(value)) => (place, value),
            _ => return None,
        };
        *parts.get_mut(place)? = Some(value.clone());
    }
    let given = parts.iter().rposition(Option::is_some)?;
    let filled = parts.into_iter().take(given + 1).map(|part| part.unwrap_or_else(|| number("0"))).collect();
    named.then(|| call("make_interval", filled))
}
