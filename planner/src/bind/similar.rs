//! `x SIMILAR TO pattern` as a match of a regular expression.

use datafusion::sql::sqlparser::ast::{self, BinaryOperator, Expr as Ast};
use plan::{PlanError, SqlState};

use super::operators::text;

/// Rewrites the expression, if it is one.
pub(super) fn rewrite(expression: &mut Ast) -> Result<(), PlanError> {
    let Ast::SimilarTo { negated, expr, pattern, escape_char } = expression else { return Ok(()) };
    let escape = match escape_char.as_ref().map(|value| &value.value) {
        None => Some('\\'),
        Some(ast::Value::SingleQuotedString(text)) => {
            let mut characters = text.chars();
            let escape = characters.next();
            if characters.next().is_some() {
                return Err(PlanError::new(SqlState::INVALID_PARAMETER_VALUE, "invalid escape string")
                    .with_hint("Escape string must be empty or one character."));
            }
            escape
        }
        Some(_) => return Err(PlanError::unsupported("an ESCAPE that is no string")),
    };
    let Ast::Value(ast::ValueWithSpan { value: ast::Value::SingleQuotedString(written), .. }) = pattern.as_ref() else {
        return Err(PlanError::unsupported("SIMILAR TO with a pattern that is no constant")
            .with_hint("Write x ~ pattern, with a regular expression."));
    };
    let op = if *negated { BinaryOperator::PGRegexNotMatch } else { BinaryOperator::PGRegexMatch };
    let pattern = regular_expression(written, escape);
    *expression = Ast::BinaryOp { left: expr.clone(), op, right: Box::new(text(pattern)) };
    Ok(())
}

/// The regular expression of an SQL pattern: % and _ are wild, the whole text must match, the rest is the same.
fn regular_expression(pattern: &str, escape: Option<char>) -> String {
    let mut out = String::from("^(?s:");
    let mut escaped = false;
    let mut in_brackets = false;
    for character in pattern.chars() {
        if escaped {
            if !character.is_alphanumeric() {
                out.push('\\');
            }
            out.push(character);
            escaped = false;
        } else if Some(character) == escape {
            escaped = true;
        } else if in_brackets {
            in_brackets = character != ']';
            if character == '\\' {
                out.push('\\');
            }
            out.push(character);
        } else {
            match character {
                '%' => out.push_str(".*"),
                '_' => out.push('.'),
                '.' | '^' | '$' | '\\' => out.extend(['\\', character]),
                '[' => {
                    in_brackets = true;
                    out.push(character);
                }
                '(' => out.push_str("(?:"),
                _ => out.push(character),
            }
        }
    }
    out.push_str(")$");
    out
}
