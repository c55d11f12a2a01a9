//! ROLLUP and CUBE of composite elements, and within GROUPING SETS: written out as GROUPING SETS, which DataFusion
//! understands in its plain form only.

use datafusion::sql::sqlparser::ast::{self, Expr as Ast, FunctionArg, FunctionArgExpr};

use crate::parse::fold;

/// So many elements CUBE has at most, as in PostgreSQL.
const CUBE_MAX: usize = 12;

/// Rewrites the GROUP BY of a select.
pub(super) fn rewrite(select: &mut ast::Select) {
    let ast::GroupByExpr::Expressions(expressions, _) = &mut select.group_by else { return };
    for expression in expressions {
        let sets = match expression {
            Ast::Rollup(elements) if is_composite(elements) => rollup(elements),
            Ast::Cube(elements) if is_composite(elements) && elements.len() <= CUBE_MAX => cube(elements),
            Ast::GroupingSets(sets) if sets.iter().any(|set| nested(set).is_some()) => {
                sets.iter().flat_map(|set| nested(set).unwrap_or_else(|| vec![set.clone()])).collect()
            }
            _ => continue,
        };
        *expression = Ast::GroupingSets(sets);
    }
}

fn is_composite(elements: &[Vec<Ast>]) -> bool {
    elements.iter().any(|element| element.len() != 1)
}

/// All first so many elements, the most first.
fn rollup(elements: &[Vec<Ast>]) -> Vec<Vec<Ast>> {
    (0..=elements.len()).rev().map(|count| elements[..count].concat()).collect()
}

/// All choices of elements, that of all first.
fn cube(elements: &[Vec<Ast>]) -> Vec<Vec<Ast>> {
    let chosen = |choice: usize| {
        let elements = elements.iter().enumerate().filter(|(place, _)| choice >> place & 1 == 1);
        elements.flat_map(|(_, element)| element.clone()).collect()
    };
    (0..1 << elements.len()).rev().map(chosen).collect()
}

/// The sets that a member of GROUPING SETS stands for, if it is a ROLLUP or CUBE. There it is read as a call.
fn nested(set: &[Ast]) -> Option<Vec<Vec<Ast>>> {
    let [Ast::Function(function)] = set else { return None };
    let [ast::ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return None };
    let ast::FunctionArguments::List(list) = &function.args else { return None };
    let element = |argument: &FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Ast::Tuple(columns))) => Some(columns.clone()),
        FunctionArg::Unnamed(FunctionArgExpr::Expr(column)) => Some(vec![column.clone()]),
        _ => None,
    };
    let elements: Vec<Vec<Ast>> = list.args.iter().map(element).collect::<Option<_>>()?;
    match fold(name).as_str() {
        "rollup" => Some(rollup(&elements)),
        "cube" if elements.len() <= CUBE_MAX => Some(cube(&elements)),
        _ => None,
    }
}
