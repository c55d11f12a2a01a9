//! Casts beside what they cast.
//!
//! DataFusion names a cast after its operand, so that `ts` and `ts::date` have one name, and cannot both be grouped by or
//! aggregated in one select. In such a select these casts are bound as calls of a function, whose name holds the type,
//! and become casts again once everything has its name.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::sql::sqlparser::ast::{self, Expr as Ast, Visit, VisitMut, Visitor, VisitorMut};
use datafusion::sql::sqlparser::parser::Parser;
use plan::PlanError;

use super::errors::external;
use super::{operators, types, walk};
use crate::parse::text::DIALECT;

/// Begins the name of the function for a cast; the type follows.
const PREFIX: &str = "$cast ";

/// Writes those casts of a select as calls whose operand stands in the select also otherwise.
pub(super) fn distinguish(select: &mut ast::Select, order_by: &mut [ast::OrderByExpr]) {
    let mut uses = Uses::default();
    let _ = visit(select, order_by, &mut uses);
    let ambiguous = uses.ambiguous();
    if ambiguous.is_empty() {
        return;
    }
    let mut rename = Rename { ambiguous, subqueries: 0 };
    let _ = VisitMut::visit(&mut select.projection, &mut rename);
    let _ = VisitMut::visit(&mut select.group_by, &mut rename);
    let _ = VisitMut::visit(&mut select.having, &mut rename);
    for item in order_by {
        let _ = VisitMut::visit(&mut item.expr, &mut rename);
    }
}

fn visit(select: &ast::Select, order_by: &[ast::OrderByExpr], uses: &mut Uses) -> ControlFlow<()> {
    Visit::visit(&select.projection, uses)?;
    Visit::visit(&select.group_by, uses)?;
    Visit::visit(&select.having, uses)?;
    order_by.iter().try_for_each(|item| Visit::visit(&item.expr, uses))
}

/// How often expressions are used, and as which types they are cast.
#[derive(Default)]
struct Uses {
    subqueries: usize,
    casts: Vec<(String, String)>,
    expressions: HashMap<String, usize>,
}

impl Uses {
    /// The operands of casts that are used otherwise too, or cast to several types.
    fn ambiguous(&self) -> HashSet<String> {
        let mut found = HashSet::new();
        for (operand, data_type) in &self.casts {
            let casts = self.casts.iter().filter(|(other, _)| other == operand).count();
            let several = self.casts.iter().any(|(other, type_of)| other == operand && type_of != data_type);
            if several || self.expressions.get(operand).is_some_and(|uses| *uses > casts) {
                found.insert(operand.clone());
            }
        }
        found
    }
}

impl Visitor for Uses {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &ast::Query) -> ControlFlow<()> {
        self.subqueries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &ast::Query) -> ControlFlow<()> {
        self.subqueries -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Ast) -> ControlFlow<()> {
        if self.subqueries == 0 {
            match expression {
                Ast::Cast { expr, data_type, .. } => self.casts.push((expr.to_string(), data_type.to_string())),
                // Only columns: the text of everything else would be made once for each level around it.
                Ast::Identifier(_) | Ast::CompoundIdentifier(_) => {
                    *self.expressions.entry(expression.to_string()).or_default() += 1;
                }
                _ => {}
            }
        }
        ControlFlow::Continue(())
    }
}

struct Rename {
    ambiguous: HashSet<String>,
    subqueries: usize,
}

impl VisitorMut for Rename {
    type Break = ();

    fn pre_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<()> {
        self.subqueries += 1;
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, _query: &mut ast::Query) -> ControlFlow<()> {
        self.subqueries -= 1;
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expression: &mut Ast) -> ControlFlow<()> {
        if let Ast::Cast { kind: ast::CastKind::Cast | ast::CastKind::DoubleColon, expr, data_type, .. } = expression
            && self.subqueries == 0
            && matches!(expr.as_ref(), Ast::Identifier(_) | Ast::CompoundIdentifier(_))
            && self.ambiguous.contains(&expr.to_string())
            && !operators::is_oid_alias(data_type)
            && types::field_of(data_type).is_ok()
        {
            *expression = operators::call(&format!("{PREFIX}{data_type}"), vec![expr.as_ref().clone()]);
        }
        ControlFlow::Continue(())
    }
}

/// A cast that is named after operand and type.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NamedCast {
    name: String,
    to: FieldRef,
    signature: Signature,
}

/// The function behind a name, if it stands for a cast.
pub(super) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    let written = name.strip_prefix(PREFIX)?;
    let data_type = Parser::new(&DIALECT).try_with_sql(written).ok()?.parse_data_type().ok()?;
    let to = types::cast_target(&data_type).ok()?;
    let cast = NamedCast { name: name.to_string(), to, signature: Signature::any(1, Volatility::Immutable) };
    Some(Arc::new(ScalarUDF::new_from_impl(cast)))
}

/// Turns the calls into casts; all expressions keep their names.
pub(super) fn restore(plan: LogicalPlan) -> Result<LogicalPlan> {
    walk::nodes(plan, &mut |node| {
        walk::node_expressions(node, &mut |expression, _| match expression {
            Expr::ScalarFunction(call) => match call.func.inner().downcast_ref::<NamedCast>() {
                Some(cast) if call.args.len() == 1 => {
                    let operand = Box::new(call.args[0].clone());
                    Ok(Transformed::yes(Expr::Cast(Cast::new_from_field(operand, cast.to.clone()))))
                }
                _ => Ok(Transformed::no(Expr::ScalarFunction(call))),
            },
            other => Ok(Transformed::no(other)),
        })
    })
}

impl ScalarUDFImpl for NamedCast {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let operand = args.first().map(|operand| operand.schema_name().to_string()).unwrap_or_default();
        Ok(format!("CAST({operand} AS {})", types::type_name(&self.to)))
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(self.to.data_type().clone())
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::new(self.to.as_ref().clone().with_nullable(true)))
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        Err(external(PlanError::internal("a cast was left as a call")))
    }
}
