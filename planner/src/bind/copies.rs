//! EXCEPT ALL and INTERSECT ALL, which count the copies of a row.
//!
//! The copies are numbered on both sides; then no row is there twice, and a row with its number is kept or not as DataFusion
//! does: by whether the other side has it. `a EXCEPT ALL b` becomes, in the syntax tree,
//! `SELECT * EXCEPT (n) FROM (SELECT *, mark() AS n FROM a EXCEPT ALL SELECT *, mark() AS n FROM b)`, and in the plan each
//! mark becomes row_number() over a partition by all columns.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, exec_err};
use datafusion::error::Result;
use datafusion::functions_window::row_number::row_number_udwf;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility, WindowFrame, cast,
};
use datafusion::sql::sqlparser::ast::{self, Ident, SelectItem, SetExpr, SetOperator, SetQuantifier};

use super::subquery_rows::select_from;
use super::{call, walk};
use crate::windows::query_of;

/// The name of the marking function and of the number of a copy.
const COPY: &str = "$copy";

/// The name of the number in the plan.
const NUMBER: &str = "$copy number";

static FUNCTION: LazyLock<Arc<ScalarUDF>> =
    LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(Copy { signature: Signature::nullary(Volatility::Immutable) })));

/// Marks the number of a copy. It is never computed.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Copy {
    signature: Signature,
}

impl ScalarUDFImpl for Copy {
    fn name(&self) -> &str {
        COPY
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        exec_err!("the number of a copy is a part of EXCEPT ALL and INTERSECT ALL")
    }
}

/// The marking function, if that is its name.
pub(super) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    (name == COPY).then(|| FUNCTION.clone())
}

/// Marks the operands of EXCEPT ALL and INTERSECT ALL in a query's body.
pub(super) fn mark(body: &mut SetExpr) {
    let SetExpr::SetOperation { op, set_quantifier, left, right } = body else { return };
    let counts = matches!(op, SetOperator::Except | SetOperator::Intersect | SetOperator::Minus)
        && matches!(set_quantifier, SetQuantifier::All);
    if counts && is_marked(left) {
        return;
    }
    mark(left);
    mark(right);
    if !counts {
        return;
    }
    **left = numbered(left);
    **right = numbered(right);
    let mut select = select_from(&query_of(body.clone()), false);
    let except = ast::ExceptSelectItem { first_element: copy(), additional_elements: Vec::new() };
    let options = ast::WildcardAdditionalOptions { opt_except: Some(except), ..Default::default() };
    select.projection = vec![SelectItem::Wildcard(options)];
    *body = SetExpr::Select(Box::new(select));
}

fn copy() -> Ident {
    Ident::with_quote('"', COPY)
}

fn is_marked(operand: &SetExpr) -> bool {
    let SetExpr::Select(select) = operand else { return false };
    matches!(select.projection.as_slice(), [_, SelectItem::ExprWithAlias { alias, .. }] if *alias == copy())
}

fn numbered(operand: &SetExpr) -> SetExpr {
    let mut select = select_from(&query_of(operand.clone()), false);
    let all = SelectItem::Wildcard(ast::WildcardAdditionalOptions::default());
    select.projection = vec![all, SelectItem::ExprWithAlias { expr: call(COPY, Vec::new()), alias: copy() }];
    SetExpr::Select(Box::new(select))
}

/// Computes the marked numbers.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    walk::nodes(plan, &mut |node| {
        let LogicalPlan::Projection(projection) = &node else { return Ok(Transformed::no(node)) };
        if !projection.expr.iter().any(is_mark) {
            return Ok(Transformed::no(node));
        }
        let mut number = WindowFunction::new(row_number_udwf(), Vec::new());
        number.params.partition_by = projection.input.schema().columns().into_iter().map(Expr::Column).collect();
        number.params.window_frame = WindowFrame::new(None);
        let expressions = projection.expr.iter().map(|expression| match is_mark(expression) {
            true => cast(Expr::Column(Column::new_unqualified(NUMBER)), DataType::Int64).alias(COPY),
            false => expression.clone(),
        });
        let expressions: Vec<Expr> = expressions.collect();
        LogicalPlanBuilder::from(Arc::clone(&projection.input))
            .window([Expr::WindowFunction(Box::new(number)).alias(NUMBER)])?
            .project(expressions)?
            .build()
            .map(Transformed::yes)
    })
}

fn is_mark(expression: &Expr) -> bool {
    match expression {
        Expr::Alias(alias) => is_mark(&alias.expr),
        Expr::ScalarFunction(call) => call.name() == COPY,
        _ => false,
    }
}
