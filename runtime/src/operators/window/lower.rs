//! From a logical window to the operator.

use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{Expr, LogicalPlan, Window};
use plan::{Lower, LowerContext, Lowered, PlanError, exclusion};

use super::reach::{self, Reach};
use super::{NAME, WindowDefinition, WindowSpec, running};
use crate::expressions::{self, message_of, readable};
use crate::operators::recompute::cut::{Cut, Input, cut};
use crate::operators::recompute::exec::check;
use crate::operators::top_n::lower::{keyed, order_text, refusal, window_functions};

impl Lower for WindowDefinition {
    fn name(&self) -> &'static str {
        NAME
    }

    fn lower(&self, plan: &LogicalPlan, context: &mut dyn LowerContext) -> Result<Lowered, PlanError> {
        let LogicalPlan::Window(window) = plan else { return Ok(Lowered::Declined(None)) };
        let functions = match functions(window, context) {
            Ok(functions) => functions,
            Err(reason) => return Ok(Lowered::Declined(Some(reason))),
        };
        let Some(first) = functions.first() else { return Ok(Lowered::Declined(None)) };
        let (partition, order) = (&first.params.partition_by, &first.params.order_by);
        let Cut { query, inputs, .. } = cut(plan)?;
        let schemas: Vec<SchemaRef> = inputs.iter().map(Input::schema).collect();
        let mut session = context.session().clone();
        session.config_mut().options_mut().execution.target_partitions = 1;
        if let Err(error) = check(&query, &session, &schemas) {
            return Ok(Lowered::Declined(Some(message_of(&error))));
        }
        let same_order = functions.iter().all(|function| function.params.order_by == *order);
        let input = window.input.schema();
        let reach = if same_order { reach::of_all(&functions, input) } else { None };
        let running = running::of(window, &functions, context).filter(|_| same_order);
        let (node, layout) = keyed(&window.input, partition, order, context)?;
        let spec = WindowSpec {
            layout,
            reach,
            query,
            session,
            schema: window.schema.inner().clone(),
            text: text(&functions, running.is_some(), reach),
            running,
        };
        Ok(Lowered::Node(context.add(Arc::new(spec), vec![node])))
    }
}

/// The functions of a window, or why it is declined.
fn functions<'a>(window: &'a Window, context: &dyn LowerContext) -> Result<Vec<&'a WindowFunction>, String> {
    let functions = window_functions(window).ok_or("a window computes something that is no function")?;
    let Some(first) = functions.first() else { return Ok(functions) };
    for function in &functions {
        let params = &function.params;
        if params.partition_by != first.params.partition_by {
            return Err("its functions have different partitions".to_owned());
        }
        let mut parts = params.args.iter().chain(params.filter.as_deref());
        if let Some(reason) = parts.find_map(expressions::refusal) {
            return Err(reason);
        }
        if let Some(reason) = refusal(&window.input, &params.partition_by, &params.order_by, context) {
            return Err(reason);
        }
    }
    Ok(functions)
}

fn text(functions: &[&WindowFunction], runs: bool, reach: Option<Reach>) -> String {
    let calls: Vec<String> = functions.iter().map(|function| call_text(function)).collect();
    let mut text = calls.join(", ");
    if let Some(first) = functions.first() {
        let partition: Vec<String> = first.params.partition_by.iter().map(readable).collect();
        if !partition.is_empty() {
            text.push_str(&format!(" per {}", partition.join(", ")));
        }
        if !first.params.order_by.is_empty() {
            text.push_str(&format!(" by {}", order_text(&first.params.order_by)));
        }
    }
    match reach {
        _ if runs => format!("{text}; a change reaches the rows behind it"),
        Some(reach) => format!("{text}; a change reaches {reach}"),
        None => format!("{text}; a change reaches its partition"),
    }
}

fn call_text(function: &WindowFunction) -> String {
    let params = &function.params;
    let name = function.fun.name();
    let nulls = params.null_treatment.map(|treatment| format!(" {treatment}")).unwrap_or_default();
    let text = |name: &str, arguments: &[Expr], filter: Option<&Expr>| {
        let distinct = if params.distinct { "DISTINCT " } else { "" };
        let arguments: Vec<String> = arguments.iter().map(readable).collect();
        let filter = filter.map(|filter| format!(" FILTER ({})", readable(filter))).unwrap_or_default();
        format!("{name}({distinct}{}){nulls}{filter}", arguments.join(", "))
    };
    match (exclusion::excluded(name), exclusion::parts(&params.args)) {
        (Some(name), Some((values, condition, exclusion))) => {
            let filter = Some(condition).filter(|condition| !matches!(condition, Expr::Literal(..)));
            format!("{} EXCLUDE {}", text(name, values, filter), exclusion.text())
        }
        _ => text(name, &params.args, params.filter.as_deref()),
    }
}
