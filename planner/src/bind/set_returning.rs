//! Functions of several rows.
//!
//! In DataFusion there is one, `unnest`: the others are functions of an array, with `unnest` around them. In FROM each
//! becomes UNNEST of one array for each of its columns, and WITH ORDINALITY one more, of the numbers of its rows. In a
//! select list `unnest` may stand within an expression.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{self, Expr as Ast, FunctionArg, FunctionArgExpr, Ident, TableFactor};

use super::operators::{call, cast_as};
use super::subquery_rows::number;
use crate::parse::fold;

/// Functions of rows, the functions that give the arrays of their columns, and the names of the columns if they are not
/// the function's.
const FUNCTIONS: &[(&str, &[&str], &[&str])] = &[
    ("regexp_split_to_table", &["regexp_split_to_array"], &[]),
    ("string_to_table", &["string_to_array"], &[]),
    ("regexp_matches", &["regexp_matches"], &[]),
    ("generate_subscripts", &["generate_subscripts"], &[]),
    ("json_object_keys", &["json_object_keys"], &[]),
    ("jsonb_object_keys", &["jsonb_object_keys"], &[]),
    ("json_array_elements", &["json_array_elements"], &["value"]),
    ("jsonb_array_elements", &["jsonb_array_elements"], &["value"]),
    ("json_array_elements_text", &["json_array_elements_text"], &["value"]),
    ("jsonb_array_elements_text", &["jsonb_array_elements_text"], &["value"]),
    ("json_each", &["json_object_keys", "json_object_values"], &["key", "value"]),
    ("jsonb_each", &["jsonb_object_keys", "jsonb_object_values"], &["key", "value"]),
    ("json_each_text", &["json_object_keys", "json_object_values_text"], &["key", "value"]),
    ("jsonb_each_text", &["jsonb_object_keys", "jsonb_object_values_text"], &["key", "value"]),
];

const SERIES: &str = "generate_series";

/// Series of plain numbers below this length are arrays, which a view may hold as well.
const SHORT_SERIES_MAX: u64 = 1_000;

/// The plain name of a function.
fn plain_name(name: &ast::ObjectName) -> Option<String> {
    match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(name)] => Some(fold(name)),
        _ => None,
    }
}

fn arguments(args: &[FunctionArg]) -> Option<Vec<Ast>> {
    let arguments = args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expression)) => Some(expression.clone()),
        _ => None,
    });
    arguments.collect()
}

/// Rewrites an item of FROM.
pub(super) fn rewrite_factor(factor: &mut TableFactor, mentioned: &HashSet<String>) {
    if let TableFactor::UNNEST { alias, array_exprs, with_ordinality, .. } = factor {
        if *with_ordinality {
            *with_ordinality = false;
            let names = vec!["unnest".to_string(); array_exprs.len()];
            name_columns(alias, "unnest", names, true);
            let numbers = numbers_of(array_exprs);
            array_exprs.push(numbers);
        }
        return;
    }
    let (name, args, alias, ordinality) = match factor {
        TableFactor::Table { name, args: Some(args), alias, with_ordinality, .. } => {
            (name, &args.args, alias, *with_ordinality)
        }
        TableFactor::Function { name, args, alias, with_ordinality, .. } => (name, &*args, alias, *with_ordinality),
        _ => return,
    };
    let (Some(name), Some(arguments)) = (plain_name(name), arguments(args)) else { return };
    let Some((mut arrays, names)) = arrays_of(&name, arguments, ordinality) else { return };
    if ordinality {
        arrays.push(numbers_of(&arrays));
    }
    let mut alias = alias.take();
    let plain = names.is_empty();
    let names = if plain { vec![name.clone()] } else { names };
    // The alias of a function of one column stands for the column; if the column has a name of its own, where it is used so.
    let names = match &alias {
        Some(alias) if plain || (names.len() == 1 && mentioned.contains(&fold(&alias.name))) => {
            vec![fold(&alias.name)]
        }
        _ => names,
    };
    name_columns(&mut alias, &name, names, ordinality);
    *factor = TableFactor::UNNEST {
        alias,
        array_exprs: arrays,
        with_offset: false,
        with_offset_alias: None,
        with_ordinality: false,
    };
}

/// The arrays of a function's columns, and the columns' names if they are not the function's own.
fn arrays_of(name: &str, mut arguments: Vec<Ast>, ordinality: bool) -> Option<(Vec<Ast>, Vec<String>)> {
    if name == SERIES {
        // Many plain numbers are generated one by one.
        if !ordinality && arguments.iter().all(is_whole_number) && !is_short(&arguments) {
            return None;
        }
        prepare_series(&mut arguments);
        for argument in arguments.iter_mut().filter(|argument| is_whole_number(argument)) {
            *argument = cast_as(argument.clone(), ast::DataType::BigInt(None));
        }
        return Some((vec![call(SERIES, arguments)], Vec::new()));
    }
    let (_, functions, names) = FUNCTIONS.iter().find(|(known, _, _)| *known == name)?;
    let arrays = functions.iter().map(|function| call(function, arguments.clone())).collect();
    Some((arrays, names.iter().map(ToString::to_string).collect()))
}

/// A text as the step of a series is an interval, and one beside an instant is an instant; and dates are instants, as in
/// PostgreSQL.
fn prepare_series(arguments: &mut [Ast]) {
    let [bounds @ .., step] = arguments else { return };
    if bounds.len() < 2 {
        return;
    }
    if is_text(step) {
        *step = cast_as(step.clone(), ast::DataType::Interval { fields: None, precision: None });
    }
    let instants = bounds.iter().find_map(instant_type);
    for bound in bounds {
        let is_date = written_type(bound) == Some(&ast::DataType::Date);
        if let Some(instants) = instants.as_ref().filter(|_| is_date || is_text(bound)) {
            *bound = cast_as(bound.clone(), instants.clone());
        }
    }
}

fn is_text(argument: &Ast) -> bool {
    matches!(argument, Ast::Value(value) if matches!(value.value, ast::Value::SingleQuotedString(_)))
}

/// The type that a constant or a cast is written with.
fn written_type(expression: &Ast) -> Option<&ast::DataType> {
    match expression {
        Ast::TypedString(typed) => Some(&typed.data_type),
        Ast::Cast { data_type, .. } => Some(data_type),
        Ast::Nested(inner) => written_type(inner),
        _ => None,
    }
}

/// The type of the series that a bound makes, if that is one of instants.
fn instant_type(bound: &Ast) -> Option<ast::DataType> {
    match written_type(bound)? {
        ast::DataType::Date => Some(ast::DataType::Timestamp(None, ast::TimezoneInfo::WithTimeZone)),
        ast::DataType::Timestamp(_, zone) => Some(ast::DataType::Timestamp(None, *zone)),
        _ => None,
    }
}

fn is_whole_number(expression: &Ast) -> bool {
    match expression {
        Ast::Value(value) => {
            matches!(&value.value, ast::Value::Number(digits, _) if digits.bytes().all(|byte| byte.is_ascii_digit()))
        }
        Ast::UnaryOp { op: ast::UnaryOperator::Minus | ast::UnaryOperator::Plus, expr } => is_whole_number(expr),
        Ast::Nested(inner) => is_whole_number(inner),
        _ => false,
    }
}

/// The value of a whole number.
fn value_of(expression: &Ast) -> Option<i64> {
    match expression {
        Ast::Value(value) => match &value.value {
            ast::Value::Number(digits, _) => digits.parse().ok(),
            _ => None,
        },
        Ast::UnaryOp { op: ast::UnaryOperator::Minus, expr } => value_of(expr).map(|value| -value),
        Ast::UnaryOp { op: ast::UnaryOperator::Plus, expr } | Ast::Nested(expr) => value_of(expr),
        _ => None,
    }
}

/// Whether a series of plain numbers is short enough to be an array.
fn is_short(arguments: &[Ast]) -> bool {
    match arguments.iter().map(value_of).collect::<Option<Vec<i64>>>().as_deref() {
        Some([first, last]) => last.abs_diff(*first) < SHORT_SERIES_MAX,
        Some([first, last, step]) => *step != 0 && last.abs_diff(*first) / step.unsigned_abs() < SHORT_SERIES_MAX,
        _ => false,
    }
}

/// The numbers from 1 to the length of the longest of some arrays.
fn numbers_of(arrays: &[Ast]) -> Ast {
    let lengths: Vec<Ast> = arrays.iter().map(|array| call("array_length", vec![array.clone(), number("1")])).collect();
    let longest = match lengths.as_slice() {
        [length] => length.clone(),
        _ => call("greatest", lengths),
    };
    let one = cast_as(number("1"), ast::DataType::BigInt(None));
    call(SERIES, vec![one, cast_as(longest, ast::DataType::BigInt(None))])
}

/// Gives the columns their names, as far as the alias does not, and the last of WITH ORDINALITY its own.
fn name_columns(alias: &mut Option<ast::TableAlias>, function: &str, mut names: Vec<String>, ordinality: bool) {
    if ordinality {
        names.push("ordinality".to_string());
    }
    let alias = alias.get_or_insert_with(|| ast::TableAlias {
        explicit: true,
        name: Ident::new(function),
        columns: Vec::new(),
        at: None,
    });
    let missing = names.into_iter().skip(alias.columns.len());
    let missing: Vec<_> =
        missing.map(|name| ast::TableAliasColumnDef { name: Ident::with_quote('"', name), data_type: None }).collect();
    alias.columns.extend(missing);
}

/// Puts `unnest` around a call in a select list that gives several rows.
pub(super) fn rewrite_item(expression: &mut Ast) {
    let Ast::Function(function) = expression else { return };
    let Some(name) = plain_name(&function.name) else { return };
    let ast::FunctionArguments::List(list) = &function.args else { return };
    let Some(mut arguments) = arguments(&list.args) else { return };
    if name == SERIES {
        prepare_series(&mut arguments);
        *expression = call("unnest", vec![call(SERIES, arguments)]);
        return;
    }
    if let Some((_, [array], _)) = FUNCTIONS.iter().find(|(known, _, _)| *known == name) {
        let rows = call("unnest", vec![call(array, arguments)]);
        // An item of an array does not say that it is JSON.
        *expression = match name.as_str() {
            "json_array_elements" => cast_as(rows, ast::DataType::JSON),
            "jsonb_array_elements" => cast_as(rows, ast::DataType::JSONB),
            _ => rows,
        };
    }
}
