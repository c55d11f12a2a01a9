//! Windows that are based on a named one: `OVER (w ROWS ...)`, `WINDOW v AS (w ORDER BY ...)`. They have the PARTITION BY and
//! ORDER BY of that one, which are written into them.

use std::ops::ControlFlow;

use datafusion::sql::sqlparser::ast::{
    self, Expr as Ast, Ident, NamedWindowExpr, VisitMut, VisitorMut, WindowSpec, WindowType,
};
use plan::{PlanError, SqlState};

use crate::parse::fold;

/// Rewrites a select and the ORDER BY that belongs to it.
pub(super) fn rewrite(select: &mut ast::Select, order_by: &mut [ast::OrderByExpr]) -> Result<(), PlanError> {
    // A definition sees those before it.
    for place in 0..select.named_window.len() {
        let (before, rest) = select.named_window.split_at_mut(place);
        let Some(ast::NamedWindowDefinition(name, definition)) = rest.first_mut() else { continue };
        if before.iter().any(|ast::NamedWindowDefinition(known, _)| fold(known) == fold(name)) {
            let message = format!("window \"{}\" is already defined", fold(name));
            return Err(PlanError::new(SqlState::WINDOWING_ERROR, message));
        }
        match definition {
            NamedWindowExpr::WindowSpec(spec) => inherit(spec, before)?,
            NamedWindowExpr::NamedWindow(_) => {}
        }
    }
    let mut windows = Windows { named: &select.named_window, depth: 0 };
    let mut flow = VisitMut::visit(&mut select.projection, &mut windows);
    for item in order_by {
        if flow.is_continue() {
            flow = VisitMut::visit(&mut item.expr, &mut windows);
        }
    }
    match flow {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(error) => Err(error),
    }
}

struct Windows<'a> {
    named: &'a [ast::NamedWindowDefinition],
    depth: usize,
}

impl VisitorMut for Windows<'_> {
    type Break = PlanError;

    fn pre_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<PlanError> {
        self.depth += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<PlanError> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &mut Ast) -> ControlFlow<PlanError> {
        if self.depth == 0
            && let Ast::Function(function) = expression
        {
            let known = match &mut function.over {
                Some(WindowType::WindowSpec(spec)) => inherit(spec, self.named),
                Some(WindowType::NamedWindow(name)) if definition(name, self.named).is_none() => Err(missing(name)),
                _ => Ok(()),
            };
            if let Err(error) = known {
                return ControlFlow::Break(error);
            }
        }
        ControlFlow::Continue(())
    }
}

/// The definition behind a name.
fn definition<'a>(name: &Ident, named: &'a [ast::NamedWindowDefinition]) -> Option<&'a WindowSpec> {
    let name = fold(name);
    let place = named.iter().position(|ast::NamedWindowDefinition(known, _)| fold(known) == name)?;
    match &named[place].1 {
        NamedWindowExpr::WindowSpec(spec) => Some(spec),
        NamedWindowExpr::NamedWindow(other) => definition(other, &named[..place]),
    }
}

fn missing(name: &Ident) -> PlanError {
    PlanError::new(SqlState::UNDEFINED_OBJECT, format!("window \"{}\" does not exist", fold(name)))
}

/// Gives a window what it has from the one that it names.
fn inherit(spec: &mut WindowSpec, named: &[ast::NamedWindowDefinition]) -> Result<(), PlanError> {
    let Some(name) = spec.window_name.take() else { return Ok(()) };
    let shown = fold(&name);
    let Some(base) = definition(&name, named) else {
        return Err(missing(&name));
    };
    let refused = |message: String| Err(PlanError::new(SqlState::WINDOWING_ERROR, message));
    if !spec.partition_by.is_empty() {
        return refused(format!("cannot override PARTITION BY clause of window \"{shown}\""));
    }
    if !spec.order_by.is_empty() && !base.order_by.is_empty() {
        return refused(format!("cannot override ORDER BY clause of window \"{shown}\""));
    }
    if base.window_frame.is_some() {
        return refused(format!("cannot copy window \"{shown}\" because it has a frame clause"));
    }
    spec.partition_by = base.partition_by.clone();
    if spec.order_by.is_empty() {
        spec.order_by = base.order_by.clone();
    }
    Ok(())
}
