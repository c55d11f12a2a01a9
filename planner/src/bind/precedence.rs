//! `x IS DISTINCT FROM y AND z` is `(x IS DISTINCT FROM y) AND z`. The parser reads all that follows FROM as its operand;
//! conditions that hold such a one are taken apart, up to their parentheses, and put together again.

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr as Ast, UnaryOperator};

/// A part of a condition.
// Short-lived, a few an expression.
#[allow(clippy::large_enum_variant)]
enum Part {
    Not,
    And,
    Or,
    Operand(Ast),
}

/// Rewrites a condition, whole.
pub(super) fn rewrite(expression: &mut Ast) {
    if !is_wrong(expression) {
        return;
    }
    let mut parts = Vec::new();
    take_apart(expression.clone(), &mut parts);
    let mut parts = parts.into_iter().peekable();
    if let Some(condition) = disjunction(&mut parts) {
        *expression = condition;
    }
}

fn is_condition(expression: &Ast) -> bool {
    matches!(expression, Ast::BinaryOp { op: BinaryOperator::And | BinaryOperator::Or, .. })
}

/// Whether an operand of IS DISTINCT FROM is a condition without parentheses.
fn is_wrong(expression: &Ast) -> bool {
    match expression {
        Ast::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right } => {
            is_wrong(left) || is_wrong(right)
        }
        Ast::UnaryOp { op: UnaryOperator::Not, expr } => is_wrong(expr),
        Ast::IsDistinctFrom(_, right) | Ast::IsNotDistinctFrom(_, right) => is_condition(right),
        _ => false,
    }
}

fn take_apart(expression: Ast, parts: &mut Vec<Part>) {
    match expression {
        Ast::BinaryOp { left, op: BinaryOperator::And, right } => {
            take_apart(*left, parts);
            parts.push(Part::And);
            take_apart(*right, parts);
        }
        Ast::BinaryOp { left, op: BinaryOperator::Or, right } => {
            take_apart(*left, parts);
            parts.push(Part::Or);
            take_apart(*right, parts);
        }
        Ast::UnaryOp { op: UnaryOperator::Not, expr } => {
            parts.push(Part::Not);
            take_apart(*expr, parts);
        }
        Ast::IsDistinctFrom(left, right) if is_condition(&right) => {
            let first = parts.len();
            take_apart(*right, parts);
            compare(parts, first, |operand| Ast::IsDistinctFrom(left, operand));
        }
        Ast::IsNotDistinctFrom(left, right) if is_condition(&right) => {
            let first = parts.len();
            take_apart(*right, parts);
            compare(parts, first, |operand| Ast::IsNotDistinctFrom(left, operand));
        }
        operand => parts.push(Part::Operand(operand)),
    }
}

/// Makes the first operand of some parts that of a comparison.
fn compare(parts: &mut Vec<Part>, first: usize, with: impl FnOnce(Box<Ast>) -> Ast) {
    // NOT in front of it belongs to it.
    let Some(place) = parts[first..].iter().position(|part| matches!(part, Part::Operand(_))) else { return };
    let Part::Operand(mut operand) = parts.remove(first + place) else { return };
    for _ in 0..place {
        parts.remove(first);
        operand = Ast::UnaryOp { op: UnaryOperator::Not, expr: Box::new(operand) };
    }
    parts.insert(first, Part::Operand(with(Box::new(operand))));
}

type Parts = std::iter::Peekable<std::vec::IntoIter<Part>>;

fn disjunction(parts: &mut Parts) -> Option<Ast> {
    let mut all = conjunction(parts)?;
    while parts.next_if(|part| matches!(part, Part::Or)).is_some() {
        let right = Box::new(conjunction(parts)?);
        all = Ast::BinaryOp { left: Box::new(all), op: BinaryOperator::Or, right };
    }
    Some(all)
}

fn conjunction(parts: &mut Parts) -> Option<Ast> {
    let mut all = negation(parts)?;
    while parts.next_if(|part| matches!(part, Part::And)).is_some() {
        let right = Box::new(negation(parts)?);
        all = Ast::BinaryOp { left: Box::new(all), op: BinaryOperator::And, right };
    }
    Some(all)
}

fn negation(parts: &mut Parts) -> Option<Ast> {
    match parts.next()? {
        Part::Not => Some(Ast::UnaryOp { op: UnaryOperator::Not, expr: Box::new(negation(parts)?) }),
        Part::Operand(operand) => Some(operand),
        Part::And | Part::Or => None,
    }
}
