//! Windows that are based on a named one: `OVER (w ROWS ...)`, `WINDOW v AS (w ORDER BY ...)`. They have the PARTITION BY and
//! ORDER BY of that one, which are written into them.
//!
//! What a frame leaves out (EXCLUDE) comes in the name of that window from [`spelling`], and goes on as `'...' IS NULL` of a
//! constant ([`EXCLUDE`]) in PARTITION BY: there it changes nothing, and keeps apart what differs in it alone. The constant
//! itself the binder would leave out.

use datafusion::sql::sqlparser::ast::{self, Expr as Ast, Ident, NamedWindowExpr, WindowSpec, WindowType};
use plan::{PlanError, SqlState};

use super::walk;
use crate::parse::{fold, spelling};

/// Begins the constant that says what a frame leaves out.
pub(crate) const EXCLUDE: &str = "?exclude ";

/// Functions that look at all rows of their partition, whatever the frame.
const WITHOUT_FRAME: &[&str] =
    &["row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile", "lag", "lead"];

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
    let named = &select.named_window;
    let mut enter = |expression: &mut Ast| write_out(expression, named);
    let mut leave = |_: &mut Ast| Ok(());
    walk::outermost(&mut select.projection, &mut enter, &mut leave)?;
    walk::outermost(&mut select.qualify, &mut enter, &mut leave)?;
    order_by.iter_mut().try_for_each(|item| walk::outermost(&mut item.expr, &mut enter, &mut leave))
}

fn write_out(expression: &mut Ast, named: &[ast::NamedWindowDefinition]) -> Result<(), PlanError> {
    let Ast::Function(function) = expression else { return Ok(()) };
    let name = function.name.0.last().and_then(|part| part.as_ident()).map(fold);
    let without_frame = name.is_some_and(|name| WITHOUT_FRAME.contains(&name.as_str()));
    match &mut function.over {
        Some(WindowType::WindowSpec(spec)) => inherit(spec, named)?,
        Some(WindowType::NamedWindow(name)) => {
            let Some(spec) = definition(name, named) else { return Err(missing(name)) };
            if without_frame && spec.partition_by.iter().any(is_exclusion) {
                function.over = Some(WindowType::WindowSpec(spec.clone()));
            }
        }
        None => {}
    }
    if let Some(WindowType::WindowSpec(spec)) = function.over.as_mut().filter(|_| without_frame) {
        spec.partition_by.retain(|key| !is_exclusion(key));
    }
    Ok(())
}

/// Whether a key is the constant that says what a frame leaves out.
fn is_exclusion(key: &Ast) -> bool {
    let Ast::IsNull(constant) = key else { return false };
    let Ast::Value(value) = constant.as_ref() else { return false };
    matches!(&value.value, ast::Value::SingleQuotedString(text) if text.starts_with(EXCLUDE))
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

/// Gives a window what it has from the one that it names, and the constant for what its frame leaves out.
fn inherit(spec: &mut WindowSpec, named: &[ast::NamedWindowDefinition]) -> Result<(), PlanError> {
    let Some(name) = spec.window_name.take() else { return Ok(()) };
    let Some((exclusion, base)) = spelling::exclusion(&name) else { return inherit_from(spec, name, named) };
    if let Some(base) = base {
        inherit_from(spec, base, named)?;
    }
    let text = ast::Value::SingleQuotedString(format!("{EXCLUDE}{}", exclusion.text()));
    spec.partition_by.push(Ast::IsNull(Box::new(Ast::Value(text.with_empty_span()))));
    Ok(())
}

fn inherit_from(spec: &mut WindowSpec, name: Ident, named: &[ast::NamedWindowDefinition]) -> Result<(), PlanError> {
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
