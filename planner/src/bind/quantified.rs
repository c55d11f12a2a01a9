//! `x op ANY (query)` and `x op ALL (query)` as EXISTS. DataFusion would look for the names of x among the columns of
//! the query's own tables.

use datafusion::sql::sqlparser::ast::{self, BinaryOperator, Expr as Ast, Ident};

use crate::windows::{query_of, select_of};

/// The name of the query's rows, and of their one column: such that no name in x is taken for it.
const ROWS: &str = "?rows";
const VALUE: &str = "?value";

/// A comparison with the rows of a query.
struct Quantified {
    left: Ast,
    op: BinaryOperator,
    query: Box<ast::Query>,
    /// ANY, not ALL.
    any: bool,
}

impl Quantified {
    fn of(expression: &Ast) -> Option<Quantified> {
        let (left, op, mut right, any) = match expression {
            Ast::AnyOp { left, compare_op, right, .. } => (left, compare_op, right.as_ref(), true),
            Ast::AllOp { left, compare_op, right } => (left, compare_op, right.as_ref(), false),
            _ => return None,
        };
        while let Ast::Nested(inner) = right {
            right = inner;
        }
        // Of an array, not of a query.
        let Ast::Subquery(query) = right else { return None };
        Some(Quantified { left: left.as_ref().clone(), op: op.clone(), query: query.clone(), any })
    }

    /// `IN` and `NOT IN` are what DataFusion has for these.
    fn as_list(&self) -> Option<Ast> {
        let negated = match (&self.op, self.any) {
            (BinaryOperator::Eq, true) => false,
            (BinaryOperator::NotEq, false) => true,
            _ => return None,
        };
        Some(Ast::InSubquery { expr: Box::new(self.left.clone()), subquery: self.query.clone(), negated })
    }

    /// Whether there is a row for which something is true of the comparison.
    fn exists(&self, negated: bool, is: fn(Box<Ast>) -> Ast) -> Ast {
        let identifier = |name: &str| Ident::with_quote('"', name);
        let alias = ast::TableAlias {
            explicit: true,
            name: identifier(ROWS),
            columns: vec![ast::TableAliasColumnDef { name: identifier(VALUE), data_type: None }],
            at: None,
        };
        let rows = ast::TableFactor::Derived {
            lateral: false,
            subquery: self.query.clone(),
            alias: Some(alias),
            sample: None,
        };
        let one = Ast::Value(ast::Value::Number("1".to_string(), false).with_empty_span());
        let mut select = select_of(vec![ast::SelectItem::UnnamedExpr(one)], rows);
        let comparison = Ast::BinaryOp {
            left: Box::new(Ast::Nested(Box::new(self.left.clone()))),
            op: self.op.clone(),
            right: Box::new(Ast::CompoundIdentifier(vec![identifier(ROWS), identifier(VALUE)])),
        };
        select.selection = Some(is(Box::new(Ast::Nested(Box::new(comparison)))));
        Ast::Exists { subquery: Box::new(query_of(ast::SetExpr::Select(Box::new(select)))), negated }
    }

    /// As a condition, of which it only matters whether it is true.
    fn condition(&self) -> Ast {
        self.as_list().unwrap_or_else(|| match self.any {
            true => self.exists(false, Ast::IsTrue),
            false => self.exists(true, Ast::IsNotTrue),
        })
    }

    /// As a value: NULL if it hangs on a comparison that is NULL.
    fn value(&self) -> Ast {
        self.as_list().unwrap_or_else(|| {
            let constant = |value: ast::Value| Ast::Value(value.with_empty_span());
            let when = |condition, value| ast::CaseWhen { condition, result: constant(value) };
            let decides = if self.any { Ast::IsTrue } else { Ast::IsFalse };
            Ast::Case {
                case_token: ast::helpers::attached_token::AttachedToken::empty(),
                end_token: ast::helpers::attached_token::AttachedToken::empty(),
                operand: None,
                conditions: vec![
                    when(self.exists(false, decides), ast::Value::Boolean(self.any)),
                    when(self.exists(false, Ast::IsNull), ast::Value::Null),
                ],
                else_result: Some(Box::new(constant(ast::Value::Boolean(!self.any)))),
            }
        })
    }
}

/// Rewrites a WHERE or HAVING as far as it is joined by AND.
pub(super) fn rewrite_condition(condition: &mut Ast) {
    match condition {
        Ast::BinaryOp { left, op: BinaryOperator::And, right } => {
            rewrite_condition(left);
            rewrite_condition(right);
        }
        Ast::Nested(inner) => rewrite_condition(inner),
        other => {
            if let Some(quantified) = Quantified::of(other) {
                *other = quantified.condition();
            }
        }
    }
}

/// Rewrites the expression itself, wherever it stands.
pub(super) fn rewrite(expression: &mut Ast) {
    if let Some(quantified) = Quantified::of(expression) {
        *expression = quantified.value();
    }
}
