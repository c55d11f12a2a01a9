//! `FETCH FIRST n ROWS WITH TIES`: also the rows that are equal to the last one in the order.
//!
//! These are the rows whose rank by that order is at most `n` (and the rows that OFFSET leaves out). The syntax tree gets
//! a LIMIT of a marking function, of which the plan is made a filter over `rank()`.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::DataType;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{Column, exec_err};
use datafusion::error::Result;
use datafusion::functions_window::rank::rank_udwf;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, LogicalPlan, LogicalPlanBuilder, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Sort, Volatility, WindowFrame, cast, lit,
};
use datafusion::sql::sqlparser::ast;
use plan::{PlanError, SqlState};

use super::errors::external;
use super::{call, walk};

/// The name of the marking function.
const WITH_TIES: &str = "$with_ties";

/// The name of the rank.
const RANK: &str = "$rank";

static FUNCTION: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(ScalarUDF::new_from_impl(WithTies::new())));

/// Marks a LIMIT. It is never computed.
#[derive(Debug, PartialEq, Eq, Hash)]
struct WithTies {
    signature: Signature,
}

impl WithTies {
    fn new() -> Self {
        WithTies { signature: Signature::any(1, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for WithTies {
    fn name(&self) -> &str {
        WITH_TIES
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        exec_err!("WITH TIES is a part of FETCH FIRST")
    }
}

/// The marking function, if that is its name.
pub(super) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    (name == WITH_TIES).then(|| FUNCTION.clone())
}

/// A number of rows, marked.
pub(super) fn mark(rows: ast::Expr) -> ast::Expr {
    call(WITH_TIES, vec![rows])
}

/// Rewrites every marked limit.
pub(super) fn rewrite(plan: LogicalPlan) -> Result<LogicalPlan> {
    walk::nodes(plan, &mut |node| {
        let LogicalPlan::Limit(limit) = node else { return Ok(Transformed::no(node)) };
        let rows = match limit.fetch.as_deref() {
            Some(Expr::ScalarFunction(marker)) if marker.name() == WITH_TIES => marker.args[0].clone(),
            _ => return Ok(Transformed::no(LogicalPlan::Limit(limit))),
        };
        let skip = limit.skip.map(|skip| *skip);
        let rows = cast(rows, DataType::Int64);
        let last = match &skip {
            Some(skip) => rows.clone() + cast(skip.clone(), DataType::Int64),
            None => rows.clone(),
        };
        let condition = cast(Expr::Column(Column::new_unqualified(RANK)), DataType::Int64).lt_eq(last);
        let input = below_sort(&limit.input, &condition.and(rows.gt(lit(0i64))))?;
        let plan = match skip {
            Some(skip) => LogicalPlanBuilder::from(input).limit_by_expr(Some(skip), None)?.build()?,
            None => input,
        };
        Ok(Transformed::yes(plan))
    })
}

/// The plan with only those rows sorted whose rank satisfies a condition.
fn below_sort(plan: &LogicalPlan, condition: &Expr) -> Result<LogicalPlan> {
    match plan {
        LogicalPlan::Sort(sort) => {
            let input = ranked(sort, condition)?;
            Ok(LogicalPlan::Sort(Sort { expr: sort.expr.clone(), input: Arc::new(input), fetch: sort.fetch }))
        }
        LogicalPlan::Projection(projection) => {
            plan.with_new_exprs(projection.expr.clone(), vec![below_sort(&projection.input, condition)?])
        }
        LogicalPlan::SubqueryAlias(alias) => {
            plan.with_new_exprs(Vec::new(), vec![below_sort(&alias.input, condition)?])
        }
        _ => Err(external(without_order())),
    }
}

fn ranked(sort: &Sort, condition: &Expr) -> Result<LogicalPlan> {
    let mut rank = WindowFunction::new(rank_udwf(), Vec::new());
    rank.params.order_by = sort.expr.clone();
    rank.params.window_frame = WindowFrame::new(Some(false));
    let columns: Vec<Expr> = sort.input.schema().columns().into_iter().map(Expr::Column).collect();
    LogicalPlanBuilder::from(Arc::clone(&sort.input))
        .window([Expr::WindowFunction(Box::new(rank)).alias(RANK)])?
        .filter(condition.clone())?
        .project(columns)?
        .build()
}

/// What PostgreSQL says of WITH TIES without ORDER BY.
pub(super) fn without_order() -> PlanError {
    PlanError::new(SqlState::SYNTAX_ERROR, "WITH TIES cannot be specified without ORDER BY clause")
}
