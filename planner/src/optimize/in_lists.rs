//! Lists of IN over the same columns are kept apart while DataFusion simplifies.
//!
//! Of two lists with equal operands its simplifier makes their intersection, their difference or a constant, as if the
//! operand were never NULL and the elements were constants, none of them NULL: `x IN (1, 2) AND x NOT IN (3, NULL)`
//! becomes `x IN (1, 2)`, which is never true; `x NOT IN (1) OR x NOT IN (2)` becomes true, and is unknown where `x` is
//! NULL; `x IN (1, y) AND x NOT IN (z)` forgets `z`. It makes such lists of `x = 1 OR x = 2`, too. So before it runs, the
//! operands get names that differ, and lose them after.

use std::collections::{BTreeMap, BTreeSet};

use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, Result, TableReference};
use datafusion::logical_expr::expr::{Alias, InList};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::split_binary;
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Operator};
use datafusion::optimizer::simplify_expressions::ExprSimplifier;
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};

use super::Rule;
use crate::bind::walk;

/// The qualifier of the names of operands, which nothing in a query has.
const QUALIFIER: &str = "?operand";

/// The columns that an operand is computed from. Simplifying may make operands equal that are not yet, so all operands
/// of the same columns count as one.
type Columns = BTreeSet<Column>;

/// DataFusion's rule that simplifies expressions, with lists kept apart.
#[derive(Debug)]
pub(super) struct KeepApart(pub(super) Rule);

impl OptimizerRule for KeepApart {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(&self, plan: LogicalPlan, config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        let named = map_keeping_names(plan, name_operands)?;
        if !named.transformed {
            return self.0.rewrite(named.data, config);
        }
        let simplified = self.0.rewrite(named.data, config)?.data;
        // The rule may split a node in two.
        walk::nodes(simplified, &mut |node| map_keeping_names(node, unname_operands)).map(Transformed::yes)
    }
}

/// Simplifies one expression, with lists kept apart.
pub(crate) fn simplify(simplifier: &ExprSimplifier, expression: Expr) -> Result<Expr> {
    let named = name_operands(expression)?;
    if !named.transformed {
        return simplifier.simplify(named.data);
    }
    Ok(unname_operands(simplifier.simplify(named.data)?)?.data)
}

/// Rewrites the expressions of a node. Each keeps its name, without an alias where it has that name anyway.
fn map_keeping_names(
    node: LogicalPlan,
    rewrite: fn(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<LogicalPlan>> {
    let names = NamePreserver::new(&node);
    node.map_expressions(|expression| {
        let name = names.save(&expression);
        let rewritten = rewrite(expression)?;
        if !rewritten.transformed {
            return Ok(rewritten);
        }
        Ok(rewritten.update_data(|expression| match name.restore(expression) {
            Expr::Alias(Alias { expr, relation, name, metadata: None })
                if expr.qualified_name() == (relation.clone(), name.clone()) =>
            {
                *expr
            }
            other => other,
        }))
    })
}

/// Names the operands of lists and equalities over columns that have several lists.
fn name_operands(expression: Expr) -> Result<Transformed<Expr>> {
    let mut lists = BTreeMap::new();
    count_lists(&expression, &mut lists)?;
    lists.retain(|_, count| *count > 1);
    if lists.is_empty() {
        return Ok(Transformed::no(expression));
    }
    let mut names = 0;
    let mut named = |operand: Expr| {
        names += 1;
        operand.alias_qualified(Some(TableReference::bare(QUALIFIER)), names.to_string())
    };
    walk::parts(expression, &mut |part| match part {
        Expr::InList(InList { expr, list, negated }) if lists.contains_key(&columns(&expr)) => {
            Ok(Transformed::yes(Expr::InList(InList { expr: Box::new(named(*expr)), list, negated })))
        }
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) => {
            let repeated = |operand: &Expr| lists.contains_key(&columns(operand));
            let (left, right) = match (left.any_column_refs(), right.any_column_refs()) {
                (true, false) if repeated(&left) => (Box::new(named(*left)), right),
                (false, true) if repeated(&right) => (left, Box::new(named(*right))),
                _ => return Ok(Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }))),
            };
            Ok(Transformed::yes(Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right })))
        }
        other => Ok(Transformed::no(other)),
    })
}

/// Takes the names away again. A list of one element becomes a comparison, from which joins take their keys; under a
/// name it could not.
fn unname_operands(expression: Expr) -> Result<Transformed<Expr>> {
    walk::parts(expression, &mut |part| match part {
        Expr::Alias(Alias { expr, relation: Some(relation), .. }) if relation.table() == QUALIFIER => {
            Ok(Transformed::yes(*expr))
        }
        Expr::InList(InList { expr, mut list, negated }) => match (list.pop(), list.is_empty()) {
            (Some(only), true) => {
                let operand = *expr;
                Ok(Transformed::yes(if negated { operand.not_eq(only) } else { operand.eq(only) }))
            }
            (last, _) => {
                list.extend(last);
                Ok(Transformed::no(Expr::InList(InList { expr, list, negated })))
            }
        },
        other => Ok(Transformed::no(other)),
    })
}

/// Counts the lists over the same columns: those that are written, and several equalities under one OR.
fn count_lists(expression: &Expr, lists: &mut BTreeMap<Columns, usize>) -> Result<()> {
    let walked = expression.apply(|part| match part {
        Expr::InList(list) => {
            *lists.entry(columns(&list.expr)).or_default() += 1;
            Ok(TreeNodeRecursion::Continue)
        }
        Expr::BinaryExpr(BinaryExpr { op: Operator::Or, .. }) => {
            let disjuncts = split_binary(part, Operator::Or);
            let mut equalities: BTreeMap<Columns, usize> = BTreeMap::new();
            for operand in disjuncts.iter().copied().filter_map(compared) {
                *equalities.entry(columns(operand)).or_default() += 1;
            }
            for (columns, _) in equalities.into_iter().filter(|(_, count)| *count > 1) {
                *lists.entry(columns).or_default() += 1;
            }
            for disjunct in disjuncts {
                count_lists(disjunct, lists)?;
            }
            Ok(TreeNodeRecursion::Jump)
        }
        _ => Ok(TreeNodeRecursion::Continue),
    });
    walked.map(|_| ())
}

/// What an equality compares with something without columns.
fn compared(expression: &Expr) -> Option<&Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right }) = expression else { return None };
    match (left.any_column_refs(), right.any_column_refs()) {
        (true, false) => Some(left),
        (false, true) => Some(right),
        _ => None,
    }
}

/// The columns that an operand is computed from.
fn columns(operand: &Expr) -> Columns {
    operand.column_refs().into_iter().cloned().collect()
}
