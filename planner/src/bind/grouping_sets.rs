//! GROUP BY with composite elements, `ROLLUP ((a, b), c)`, and with ROLLUP, CUBE and GROUPING SETS within GROUPING SETS:
//! written out as plain GROUPING SETS. DataFusion reads elements of one column each.

use datafusion::sql::sqlparser::ast::{self, Expr as Ast, FunctionArg, FunctionArgExpr, FunctionArguments};
use plan::{PlanError, SqlState};

use crate::parse::fold;

/// As many as PostgreSQL takes.
const SETS_MAX: usize = 4096;

type Sets = Vec<Vec<Ast>>;

/// Rewrites the GROUP BY of a select if it has elements that DataFusion does not read.
pub(super) fn rewrite(select: &mut ast::Select) -> Result<(), PlanError> {
    let ast::GroupByExpr::Expressions(items, _) = &mut select.group_by else { return Ok(()) };
    if !items.iter().any(is_composite) {
        return Ok(());
    }
    let mut all: Sets = vec![Vec::new()];
    for item in items.iter() {
        all = product(&all, &sets(item)?)?;
    }
    *items = vec![Ast::GroupingSets(all)];
    Ok(())
}

fn is_composite(item: &Ast) -> bool {
    match item {
        Ast::Rollup(elements) | Ast::Cube(elements) => elements.iter().any(|element| element.len() != 1),
        Ast::GroupingSets(sets) => {
            sets.iter().any(|set| matches!(set.as_slice(), [item] if nested(item).is_some() || is_composite(item)))
        }
        _ => false,
    }
}

/// The sets of an item of GROUP BY.
fn sets(item: &Ast) -> Result<Sets, PlanError> {
    match item {
        Ast::Rollup(elements) => Ok(rollup(elements)),
        Ast::Cube(elements) => cube(elements),
        Ast::GroupingSets(items) => {
            let mut all = Vec::new();
            for set in items {
                match set.as_slice() {
                    [item] => all.extend(match nested(item) {
                        Some(item) => sets(&item)?,
                        None => sets(item)?,
                    }),
                    columns => all.push(columns.to_vec()),
                }
                check(all.len())?;
            }
            Ok(all)
        }
        Ast::Tuple(columns) => Ok(vec![columns.clone()]),
        column => Ok(vec![vec![column.clone()]]),
    }
}

/// ROLLUP, CUBE and GROUPING SETS within GROUPING SETS, which the parser takes for functions.
fn nested(item: &Ast) -> Option<Ast> {
    let Ast::Function(function) = item else { return None };
    let [ast::ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
    let FunctionArguments::List(list) = &function.args else { return None };
    let elements = list.args.iter().map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Ast::Tuple(columns))) => Some(columns.clone()),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Ast::Nested(column))) => Some(vec![column.as_ref().clone()]),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(column)) => Some(vec![column.clone()]),
        _ => None,
    });
    match fold(name).as_str() {
        "rollup" => elements.collect::<Option<_>>().map(Ast::Rollup),
        "cube" => elements.collect::<Option<_>>().map(Ast::Cube),
        _ => None,
    }
}

/// All beginnings, the longest first.
fn rollup(elements: &[Vec<Ast>]) -> Sets {
    (0..=elements.len()).rev().map(|length| union(elements[..length].iter().flatten())).collect()
}

/// All subsets.
fn cube(elements: &[Vec<Ast>]) -> Result<Sets, PlanError> {
    let mut all: Sets = vec![Vec::new()];
    for element in elements {
        let with = all.iter().map(|set| union(set.iter().chain(element)));
        all = with.zip(&all).flat_map(|(with, without)| [with, without.clone()]).collect();
        check(all.len())?;
    }
    Ok(all)
}

fn product(left: &Sets, right: &Sets) -> Result<Sets, PlanError> {
    check(left.len().saturating_mul(right.len()))?;
    Ok(left.iter().flat_map(|own| right.iter().map(|other| union(own.iter().chain(other)))).collect())
}

/// Columns, each once.
fn union<'a>(columns: impl Iterator<Item = &'a Ast>) -> Vec<Ast> {
    let mut all: Vec<Ast> = Vec::new();
    for column in columns {
        if !all.contains(column) {
            all.push(column.clone());
        }
    }
    all
}

fn check(sets: usize) -> Result<(), PlanError> {
    if sets > SETS_MAX {
        let message = format!("too many grouping sets present (maximum {SETS_MAX})");
        return Err(PlanError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    Ok(())
}
