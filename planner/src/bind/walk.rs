//! Walks over plans, expressions and syntax trees through one function pointer each: every closure type of its own
//! would be another copy of the whole walk in the binary.

use std::ops::ControlFlow;

use datafusion::common::DFSchema;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{Expr, LogicalPlan};
use datafusion::sql::sqlparser::ast::{self, VisitMut, VisitorMut};
use plan::PlanError;

/// Rewrites a node of a plan.
pub(crate) type NodeRewrite<'a> = &'a mut dyn FnMut(LogicalPlan) -> Result<Transformed<LogicalPlan>>;
/// Rewrites an expression over the schema of its node's inputs.
pub(crate) type ExprRewrite<'a> = &'a mut dyn FnMut(Expr, &DFSchema) -> Result<Transformed<Expr>>;

/// Rewrites all nodes of a plan and its subqueries, inputs first.
pub(crate) fn nodes(plan: LogicalPlan, rewrite: NodeRewrite<'_>) -> Result<LogicalPlan> {
    plan.transform_up_with_subqueries(rewrite).map(|transformed| transformed.data)
}

/// Rewrites all parts of the expressions of one node, innermost first. Expressions keep their names, by which nodes
/// above refer to them.
pub(crate) fn node_expressions(node: LogicalPlan, rewrite: ExprRewrite<'_>) -> Result<Transformed<LogicalPlan>> {
    let schema = merge_schema(&node.inputs());
    let names = NamePreserver::new(&node);
    node.map_expressions(|expression| {
        let name = names.save(&expression);
        let rewritten = parts(expression, &mut |part| rewrite(part, &schema))?;
        Ok(if rewritten.transformed { rewritten.update_data(|expression| name.restore(expression)) } else { rewritten })
    })
}

/// Rewrites all parts of an expression, innermost first.
pub(crate) fn parts(
    expression: Expr,
    rewrite: &mut dyn FnMut(Expr) -> Result<Transformed<Expr>>,
) -> Result<Transformed<Expr>> {
    expression.transform_up(rewrite)
}

/// Rewrites all expressions of a plan and its subqueries. A type may change below a node whose own expressions stay,
/// so every schema is computed again.
pub(crate) fn expressions(plan: LogicalPlan, rewrite: ExprRewrite<'_>) -> Result<LogicalPlan> {
    nodes(plan, &mut |node| node_expressions(node, rewrite)?.map_data(LogicalPlan::recompute_schema))
}

/// Shows all parts of all expressions of a plan and its subqueries.
pub(crate) fn look(plan: &LogicalPlan, see: &mut dyn FnMut(&Expr)) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expression| {
            expression.apply(|part| {
                see(part);
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })
    .map(|_| ())
}

/// Whether a part of an expression is of some kind.
pub(crate) fn any_part(expression: &Expr, is: &dyn Fn(&Expr) -> bool) -> bool {
    expression.exists(|part| Ok(is(part))).unwrap_or(true)
}

/// Rewrites something in a syntax tree.
type SyntaxRewrite<'a, T> = &'a mut dyn FnMut(&mut T) -> std::result::Result<(), PlanError>;

/// What is to be rewritten in a syntax tree, outermost first.
pub(crate) struct Syntax<'a> {
    /// Queries.
    pub query: SyntaxRewrite<'a, ast::Query>,
    /// Selects.
    pub select: SyntaxRewrite<'a, ast::Select>,
    /// Expressions.
    pub expression: SyntaxRewrite<'a, ast::Expr>,
}

impl VisitorMut for Syntax<'_> {
    type Break = PlanError;

    fn pre_visit_query(&mut self, query: &mut ast::Query) -> ControlFlow<PlanError> {
        flow((self.query)(query))
    }

    fn pre_visit_select(&mut self, select: &mut ast::Select) -> ControlFlow<PlanError> {
        flow((self.select)(select))
    }

    fn pre_visit_expr(&mut self, expression: &mut ast::Expr) -> ControlFlow<PlanError> {
        flow((self.expression)(expression))
    }
}

fn flow<E>(result: std::result::Result<(), E>) -> ControlFlow<E> {
    match result {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

fn ended<E>(flow: ControlFlow<E>) -> std::result::Result<(), E> {
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

/// Rewrites a query.
pub(crate) fn query(tree: &mut ast::Query, rewrite: &mut Syntax<'_>) -> std::result::Result<(), PlanError> {
    ended(VisitMut::visit(tree, rewrite))
}

/// Rewrites an expression.
pub(crate) fn expression(tree: &mut ast::Expr, rewrite: &mut Syntax<'_>) -> std::result::Result<(), PlanError> {
    ended(VisitMut::visit(tree, rewrite))
}

/// Rewrites the parts of an expression.
pub(crate) fn expression_parts(
    tree: &mut ast::Expr,
    rewrite: SyntaxRewrite<'_, ast::Expr>,
) -> std::result::Result<(), PlanError> {
    expression(tree, &mut Syntax { query: &mut |_| Ok(()), select: &mut |_| Ok(()), expression: rewrite })
}

/// Rewrites expressions that are in no subquery of a tree: on the way in, and on the way out.
pub(crate) fn outermost<E>(
    tree: &mut impl VisitMut,
    enter: &mut dyn FnMut(&mut ast::Expr) -> std::result::Result<(), E>,
    leave: &mut dyn FnMut(&mut ast::Expr) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    ended(tree.visit(&mut Outermost { enter, leave, depth: 0 }))
}

struct Outermost<'a, E> {
    enter: &'a mut dyn FnMut(&mut ast::Expr) -> std::result::Result<(), E>,
    leave: &'a mut dyn FnMut(&mut ast::Expr) -> std::result::Result<(), E>,
    /// Queries around.
    depth: usize,
}

impl<E> VisitorMut for Outermost<'_, E> {
    type Break = E;

    fn pre_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<E> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<E> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut ast::Expr) -> ControlFlow<E> {
        if self.depth == 0 { flow((self.enter)(expression)) } else { ControlFlow::Continue(()) }
    }

    fn post_visit_expr(&mut self, expression: &mut ast::Expr) -> ControlFlow<E> {
        if self.depth == 0 { flow((self.leave)(expression)) } else { ControlFlow::Continue(()) }
    }
}
