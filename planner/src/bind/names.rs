//! Names of output columns, as PostgreSQL gives them.
//!
//! PostgreSQL names a column without AS after its column, function, type or CASE, and else `?column?`; and it lets
//! names repeat. In a logical plan names must be unique: a repeated one gets a suffix that begins with
//! [`REPEATED`], which [`shown`] takes off where rows go to a client.

use std::collections::HashSet;

use datafusion::sql::sqlparser::ast::{self, DataType, Expr, Ident, SelectItem, SetExpr};

use crate::parse::fold;

/// Begins the suffix of a repeated name.
const REPEATED: char = '\u{1}';

/// What is left of a name for its reader.
pub fn shown(name: &str) -> &str {
    name.split(REPEATED).next().unwrap_or(name)
}

/// Names the column of generate_series and unnest in FROM as PostgreSQL does: after the alias, or after the function.
pub(crate) fn name_table_functions(select: &mut ast::Select) {
    let mentioned = plain_names(select);
    for from in &mut select.from {
        let joined = from.joins.iter_mut().map(|join| &mut join.relation);
        for factor in std::iter::once(&mut from.relation).chain(joined) {
            plain_unnest(factor);
            super::set_returning::rewrite_factor(factor, &mentioned);
            if let ast::TableFactor::UNNEST { alias, array_exprs, .. } = factor {
                name_column(alias, "unnest", array_exprs.len() == 1);
                continue;
            }
            let ast::TableFactor::Table { name, alias, args: Some(_), .. } = factor else { continue };
            let function = name.0.last().and_then(|part| part.as_ident()).map(fold);
            if function.as_deref() != Some("generate_series") {
                continue;
            }
            name_column(alias, "generate_series", true);
        }
    }
}

/// The names without a qualifier in the expressions of a select that has a function in FROM.
fn plain_names(select: &ast::Select) -> HashSet<String> {
    let mut factors = select
        .from
        .iter()
        .flat_map(|from| std::iter::once(&from.relation).chain(from.joins.iter().map(|join| &join.relation)));
    let is_function = |factor: &ast::TableFactor| {
        matches!(factor, ast::TableFactor::Table { args: Some(_), .. } | ast::TableFactor::Function { .. })
    };
    let mut names = HashSet::new();
    if factors.any(is_function) {
        let _: std::ops::ControlFlow<()> = ast::visit_expressions(select, |expression| {
            if let Expr::Identifier(name) = expression {
                names.insert(fold(name));
            }
            std::ops::ControlFlow::Continue(())
        });
    }
    names
}

/// Gives a table function its alias, and its column, if it has one, the alias's name.
fn name_column(alias: &mut Option<ast::TableAlias>, function: &str, one_column: bool) {
    let alias = alias.get_or_insert_with(|| ast::TableAlias {
        explicit: true,
        name: Ident::new(function),
        columns: Vec::new(),
        at: None,
    });
    if one_column && alias.columns.is_empty() {
        alias.columns.push(ast::TableAliasColumnDef { name: alias.name.clone(), data_type: None });
    }
}

/// LATERAL unnest(...) is unnest(...): it sees the items before it anyway.
fn plain_unnest(factor: &mut ast::TableFactor) {
    let ast::TableFactor::Function { lateral: true, name, args, alias, with_ordinality } = factor else { return };
    let function = name.0.last().and_then(|part| part.as_ident()).map(fold);
    let arguments = args.iter().map(|argument| match argument {
        ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(expression)) => Some(expression.clone()),
        _ => None,
    });
    let arguments: Option<Vec<Expr>> = arguments.collect();
    if let (Some("unnest"), Some(array_exprs)) = (function.as_deref(), arguments) {
        *factor = ast::TableFactor::UNNEST {
            alias: alias.take(),
            array_exprs,
            with_offset: false,
            with_offset_alias: None,
            with_ordinality: *with_ordinality,
        };
    }
}

/// Gives every item without AS its PostgreSQL name, unless it is a column and has it anyway.
pub(crate) fn name_items(select: &mut ast::Select) {
    let wildcard = select
        .projection
        .iter()
        .any(|item| matches!(item, SelectItem::Wildcard(_) | SelectItem::QualifiedWildcard(_, _)));
    let mut used = HashSet::new();
    for item in &mut select.projection {
        match item {
            SelectItem::UnnamedExpr(expression) => {
                let name = name_of(expression);
                let column = matches!(expression, Expr::Identifier(_) | Expr::CompoundIdentifier(_));
                let repeated = !used.insert(name.clone()) || (column && wildcard);
                if column && !repeated {
                    continue;
                }
                let alias = if repeated { format!("{name}{REPEATED}{}", used.len()) } else { name };
                used.insert(alias.clone());
                let alias = Ident::with_quote('"', alias);
                *item = SelectItem::ExprWithAlias { expr: expression.clone(), alias };
            }
            SelectItem::ExprWithAlias { alias, .. } => {
                let name = fold(alias);
                if !used.insert(name.clone()) {
                    *alias = Ident::with_quote('"', format!("{name}{REPEATED}{}", used.len()));
                    used.insert(alias.value.clone());
                }
            }
            _ => {}
        }
    }
}

/// The name of a column that has none.
const NAMELESS: &str = "?column?";

pub(crate) fn name_of(expression: &Expr) -> String {
    figure(expression).map_or_else(|| NAMELESS.to_string(), |(name, _)| name)
}

/// A name and whether it is a strong one: a weak name gives way to that of a cast or CASE around it.
fn figure(expression: &Expr) -> Option<(String, bool)> {
    let strong = |name: &str| Some((name.to_string(), true));
    match expression {
        Expr::Identifier(ident) => Some((fold(ident), true)),
        Expr::CompoundIdentifier(parts) => parts.last().map(|ident| (fold(ident), true)),
        Expr::Function(function) => {
            function.name.0.last().and_then(|part| part.as_ident()).map(|name| (fold(name), true))
        }
        Expr::Cast { expr, data_type, .. } => {
            figure(expr).filter(|(_, strong)| *strong).or_else(|| Some((internal_type_name(data_type), false)))
        }
        Expr::TypedString(typed) => Some((internal_type_name(&typed.data_type), false)),
        Expr::Interval(_) => Some(("interval".to_string(), false)),
        Expr::Case { else_result, .. } => else_result
            .as_ref()
            .and_then(|expression| figure(expression))
            .filter(|(_, strong)| *strong)
            .or_else(|| Some(("case".to_string(), false))),
        Expr::Nested(inner) | Expr::Collate { expr: inner, .. } => figure(inner),
        Expr::Array(_) => strong("array"),
        Expr::Exists { .. } => strong("exists"),
        Expr::Extract { .. } => strong("extract"),
        Expr::Substring { .. } => strong("substring"),
        Expr::Position { .. } => strong("position"),
        Expr::Ceil { .. } => strong("ceil"),
        Expr::Floor { .. } => strong("floor"),
        Expr::Overlay { .. } => strong("overlay"),
        Expr::Trim { trim_where, .. } => strong(match trim_where {
            Some(ast::TrimWhereField::Leading) => "ltrim",
            Some(ast::TrimWhereField::Trailing) => "rtrim",
            _ => "btrim",
        }),
        Expr::AtTimeZone { .. } => strong("timezone"),
        Expr::Tuple(_) => strong("row"),
        Expr::Subquery(query) => first_item_name(&query.body),
        Expr::CompoundFieldAccess { root, access_chain } => access_chain
            .iter()
            .rev()
            .find_map(|access| match access {
                ast::AccessExpr::Dot(Expr::Identifier(ident)) => Some((fold(ident), true)),
                _ => None,
            })
            .or_else(|| figure(root)),
        _ => None,
    }
}

fn first_item_name(body: &SetExpr) -> Option<(String, bool)> {
    match body {
        SetExpr::Select(select) => match select.projection.first()? {
            SelectItem::UnnamedExpr(expression) => figure(expression),
            SelectItem::ExprWithAlias { alias, .. } => Some((fold(alias), true)),
            _ => None,
        },
        SetExpr::Query(query) => first_item_name(&query.body),
        SetExpr::SetOperation { left, .. } => first_item_name(left),
        _ => None,
    }
}

/// A type's name in pg_type, which is what an unnamed cast is called.
fn internal_type_name(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Int(_) | DataType::Integer(_) | DataType::Int4(_) => "int4",
        DataType::BigInt(_) | DataType::Int8(_) => "int8",
        DataType::SmallInt(_) | DataType::Int2(_) => "int2",
        DataType::Real | DataType::Float4 => "float4",
        DataType::Float(_) | DataType::Float8 | DataType::DoublePrecision | DataType::Double(_) => "float8",
        DataType::Numeric(_) | DataType::Decimal(_) | DataType::Dec(_) => "numeric",
        DataType::Boolean | DataType::Bool => "bool",
        DataType::Text => "text",
        DataType::Varchar(_) | DataType::CharacterVarying(_) | DataType::CharVarying(_) => "varchar",
        DataType::Char(_) | DataType::Character(_) => "bpchar",
        DataType::Bytea => "bytea",
        DataType::Date => "date",
        DataType::Time(_, _) => "time",
        DataType::Timestamp(_, ast::TimezoneInfo::None | ast::TimezoneInfo::WithoutTimeZone) => "timestamp",
        DataType::Timestamp(_, _) => "timestamptz",
        DataType::Interval { .. } => "interval",
        DataType::Uuid => "uuid",
        DataType::JSON => "json",
        DataType::JSONB => "jsonb",
        DataType::Array(
            ast::ArrayElemTypeDef::SquareBracket(element, _) | ast::ArrayElemTypeDef::AngleBracket(element),
        ) => {
            return internal_type_name(element);
        }
        other => {
            return other.to_string().to_lowercase().rsplit('.').next().unwrap_or_default().to_string();
        }
    };
    name.to_string()
}
