//! Windows of the WINDOW clause: written out where they are used.
//!
//! `OVER w` is the window itself; `OVER (w ROWS 1 PRECEDING)` and `WINDOW v AS (w ORDER BY x)` continue it: they take its
//! PARTITION BY and its ORDER BY, which they cannot replace, and add what it lacks.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr as Ast, Ident, NamedWindowDefinition, NamedWindowExpr, VisitMut, VisitorMut, WindowSpec, WindowType,
};
use plan::{PlanError, SqlState};

use crate::parse::fold;

/// Writes the windows of a select, and of the ORDER BY that belongs to it, out.
pub(super) fn rewrite(select: &mut ast::Select, order_by: &mut [ast::OrderByExpr]) -> Result<(), PlanError> {
    let mut known: Vec<(String, WindowSpec)> = Vec::new();
    for NamedWindowDefinition(name, definition) in &mut select.named_window {
        let name = fold(name);
        if known.iter().any(|(other, _)| *other == name) {
            return Err(windowing(format!("window \"{name}\" is already defined")));
        }
        let spec = match definition {
            NamedWindowExpr::NamedWindow(base) => find(&known, base)?.clone(),
            NamedWindowExpr::WindowSpec(spec) => {
                continue_window(spec, &known)?;
                spec.clone()
            }
        };
        *definition = NamedWindowExpr::WindowSpec(spec.clone());
        known.push((name, spec));
    }
    let mut uses = Uses { known: &known, subqueries: 0 };
    let mut flow = VisitMut::visit(&mut select.projection, &mut uses);
    for item in order_by {
        if flow.is_continue() {
            flow = VisitMut::visit(&mut item.expr, &mut uses);
        }
    }
    match flow {
        ControlFlow::Break(error) => Err(error),
        ControlFlow::Continue(()) => Ok(()),
    }
}

fn find<'a>(known: &'a [(String, WindowSpec)], name: &Ident) -> Result<&'a WindowSpec, PlanError> {
    let name = fold(name);
    known
        .iter()
        .find(|(other, _)| *other == name)
        .map(|(_, spec)| spec)
        .ok_or_else(|| PlanError::new(SqlState::UNDEFINED_OBJECT, format!("window \"{name}\" does not exist")))
}

/// Gives a window what it takes from the one that it names.
fn continue_window(spec: &mut WindowSpec, known: &[(String, WindowSpec)]) -> Result<(), PlanError> {
    let Some(name) = spec.window_name.take() else { return Ok(()) };
    let base = find(known, &name)?;
    let refuse =
        |clause: &str| Err(windowing(format!("cannot override {clause} clause of window \"{}\"", fold(&name))));
    if !spec.partition_by.is_empty() {
        return refuse("PARTITION BY");
    }
    if !spec.order_by.is_empty() && !base.order_by.is_empty() {
        return refuse("ORDER BY");
    }
    if base.window_frame.is_some() {
        let error = windowing(format!("cannot copy window \"{}\" because it has a frame clause", fold(&name)));
        let bare = spec.order_by.is_empty() && spec.window_frame.is_none();
        return Err(if bare { error.with_hint("Omit the parentheses in this OVER clause.") } else { error });
    }
    spec.partition_by.clone_from(&base.partition_by);
    if spec.order_by.is_empty() {
        spec.order_by.clone_from(&base.order_by);
    }
    Ok(())
}

fn windowing(message: String) -> PlanError {
    PlanError::new(SqlState::WINDOWING_ERROR, message)
}

/// The calls of one select; those of its subqueries are theirs.
struct Uses<'a> {
    known: &'a [(String, WindowSpec)],
    subqueries: usize,
}

impl VisitorMut for Uses<'_> {
    type Break = PlanError;

    fn pre_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<PlanError> {
        self.subqueries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<PlanError> {
        self.subqueries -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Ast) -> ControlFlow<PlanError> {
        let Ast::Function(function) = expression else { return ControlFlow::Continue(()) };
        if self.subqueries > 0 {
            return ControlFlow::Continue(());
        }
        let written_out = match &mut function.over {
            Some(WindowType::WindowSpec(spec)) => continue_window(spec, self.known),
            Some(WindowType::NamedWindow(name)) => find(self.known, name).map(|spec| {
                function.over = Some(WindowType::WindowSpec(spec.clone()));
            }),
            None => Ok(()),
        };
        match written_out {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => ControlFlow::Break(error),
        }
    }
}
