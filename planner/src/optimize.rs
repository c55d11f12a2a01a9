//! Which of DataFusion's rules run, in which order, and which are off.
//!
//! Before the optimizer's rules, [`order`] makes results that depend on the order of equal rows independent of it, so
//! that an ad-hoc query and a view over the same rows break ties the same way; [`name_casts_of_subqueries`] and
//! [`constants_to_the_right`] keep names and comparisons in the one form that the rules understand; [`in_lists`] and [`null_equalities`]
//! wrap one of them each, [`exclusions`] plans frames that leave rows out. [`not_constant`] is a rule of ours over physical plans. In a view, scalar subqueries become joins before. After the rules, [`join_order`] puts the joins of a view in order, [`order::plain_windows`] takes out of windows what
//! is no window function any more, and [`not_in_under_conditions`] mends what DataFusion makes of a NOT IN whose subquery
//! refers to the outer row.

use std::sync::Arc;

use datafusion::common::alias::AliasGenerator;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, Result as DataFusionResult};
use datafusion::error::DataFusionError;
use datafusion::execution::{FunctionRegistry, SessionState};
use datafusion::logical_expr::{BinaryExpr, Expr, LogicalPlan, Projection};
use datafusion::optimizer::{Optimizer, OptimizerConfig, OptimizerRule};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use plan::PlanError;

use crate::Planner;
use crate::bind::{correlated, walk};
use crate::catalog::{Catalog, Sizes};

mod exclusions;
pub(crate) mod in_lists;
pub mod join_order;
mod not_constant;
mod null_equalities;
mod order;

type Rule = Arc<dyn OptimizerRule + Send + Sync>;
type PhysicalRule = Arc<dyn PhysicalOptimizerRule + Send + Sync>;

/// Rules of DataFusion that are off, with the reason.
const OFF: &[&str] = &[
    // It makes a sum a sum of sums: that is of another type (sum of integers is bigint, of bigints numeric) and rounds
    // floats twice. Aggregates keep their distinct values themselves.
    "single_distinct_aggregation_to_group_by",
];

/// Rules over physical plans that are off, with the reason.
const PHYSICAL_OFF: &[&str] = &[
    // Pushed below a join whose sides were swapped, a filter may land on a column of the same name of the other side.
    // Filters are where they belong since the logical plan was optimized.
    "FilterPushdown",
    "FilterPushdown(Post)",
];

/// The rules over physical plans that add (and later take out) what is asked of the result, that which sorts and distributes as
/// operators ask, and that which moves projections.
const OUTPUT: &str = "OutputRequirements";
const ENSURE: &str = "EnsureRequirements";
const PUSH: &str = "ProjectionPushdown";

/// Rules that are off for dataflows besides.
const OFF_IN_DATAFLOWS: &[&str] = &[
    // Joins of ours skip NULL keys anyway.
    "filter_null_join_keys",
];

/// The rules that a session keeps, over logical and over physical plans.
pub(crate) fn rules(session: &SessionState) -> (Vec<Rule>, Vec<PhysicalRule>) {
    let mut rules = session.optimizers().to_vec();
    rules.retain(|rule| !OFF.contains(&rule.name()));
    // It takes NULL for any other value where it makes one list of IN of two.
    for rule in rules.iter_mut().filter(|rule| rule.name() == "simplify_expressions") {
        *rule = Arc::new(in_lists::KeepApart(Arc::clone(rule)));
    }
    for rule in rules.iter_mut().filter(|rule| rule.name() == null_equalities::RULE) {
        *rule = Arc::new(null_equalities::Kept(Arc::clone(rule)));
    }
    let mut physical = session.physical_optimizers().to_vec();
    physical.retain(|rule| !PHYSICAL_OFF.contains(&rule.name()));
    // What the order of the result asks for is among the requirements by then.
    let first = physical.iter().position(|rule| rule.name() == OUTPUT).map_or(0, |position| position + 1);
    physical.insert(first, Arc::new(not_constant::NothingIsConstant));
    // Where a column is constant a sort may be left out, and projections that are moved afterwards may lose sight of that:
    // the requirements are seen to again, while the order of the result is still among them.
    let mut places = physical.iter().enumerate().skip_while(|(_, rule)| rule.name() != ENSURE);
    if let (Some((_, ensure)), Some((pushed, _))) = (places.next(), places.find(|(_, rule)| rule.name() == PUSH)) {
        let again = Arc::clone(ensure);
        physical.insert(pushed + 1, again);
    }
    (rules, physical)
}

/// DataFusion's session as a rule sees it. The time is that of the statement, or none where now() must not be folded.
struct RuleContext<'a> {
    session: &'a SessionState,
    options: Arc<ConfigOptions>,
    aliases: Arc<AliasGenerator>,
    now_micros: Option<i64>,
}

impl OptimizerConfig for RuleContext<'_> {
    fn query_execution_start_time(&self) -> Option<chrono::DateTime<chrono::Utc>> {
        self.now_micros.and_then(chrono::DateTime::from_timestamp_micros)
    }

    fn alias_generator(&self) -> &Arc<AliasGenerator> {
        &self.aliases
    }

    fn options(&self) -> Arc<ConfigOptions> {
        Arc::clone(&self.options)
    }

    fn function_registry(&self) -> Option<&dyn FunctionRegistry> {
        Some(self.session)
    }
}

impl Planner {
    /// Optimizes a bound plan for execution as an ad-hoc query. `now_micros` is the statement's time in microseconds since
    /// 1970, to which now() is folded.
    pub fn optimize(&self, plan: LogicalPlan, now_micros: i64) -> Result<LogicalPlan, PlanError> {
        self.run_rules(plan, Some(now_micros), None, &self.optimizer_without(&[]))
    }

    /// Optimizes a bound plan to be shown: now() stays as it is.
    pub(crate) fn optimize_to_show(&self, plan: LogicalPlan) -> Result<LogicalPlan, PlanError> {
        self.run_rules(plan, None, None, &self.optimizer_without(&[]))
    }

    /// Optimizes a bound plan for a dataflow, with its joins put in order by sizes if there are any. now() is never folded.
    pub(crate) fn optimize_for_dataflow(
        &self,
        plan: LogicalPlan,
        sizes: Option<&Sizes>,
    ) -> Result<LogicalPlan, PlanError> {
        self.run_rules(plan, None, Some(sizes), &self.optimizer_without(OFF_IN_DATAFLOWS))
    }

    /// The sizes by which the joins of a bound query are put in order in a dataflow. None if there is nothing to choose.
    pub fn sizes(&self, plan: &LogicalPlan, catalog: &dyn Catalog) -> Result<Option<Sizes>, PlanError> {
        join_order::sizes(plan, catalog).map_err(from_datafusion)
    }

    /// The session's rules without some.
    fn optimizer_without(&self, off: &[&str]) -> Optimizer {
        let rules = self.session_state().optimizers().iter();
        Optimizer::with_rules(rules.filter(|rule| !off.contains(&rule.name())).cloned().collect())
    }

    /// Runs our rules and an optimizer's. `view` is there in a dataflow: the sizes for its joins, if they are put in order.
    fn run_rules(
        &self,
        plan: LogicalPlan,
        now_micros: Option<i64>,
        view: Option<Option<&Sizes>>,
        optimizer: &Optimizer,
    ) -> Result<LogicalPlan, PlanError> {
        let in_view = view.is_some();
        let session = self.session_state();
        let options = session.config_options();
        let context =
            RuleContext { session, options: Arc::clone(options), aliases: Arc::new(AliasGenerator::new()), now_micros };
        let plan = if in_view {
            let array_agg = session.aggregate_functions().get("array_agg").cloned();
            correlated::constants_as_joins(plan, array_agg).map_err(from_datafusion)?
        } else {
            plan
        };
        let analyzed = session.analyzer().execute_and_check(plan, options, |_, _| {});
        analyzed
            .and_then(|plan| exclusions::calls(plan, session))
            .and_then(order::first_of_each)
            .and_then(|plan| order::deterministic(plan, in_view))
            .and_then(|plan| if in_view { Ok(plan) } else { order::offsets_by_number(plan) })
            .and_then(name_casts_of_subqueries)
            .and_then(constants_to_the_right)
            .and_then(|plan| optimizer.optimize(plan, &context, |_, _| {}))
            .and_then(|plan| match view.flatten() {
                Some(sizes) => join_order::reorder(plan, sizes, &context),
                None => Ok(plan),
            })
            .and_then(order::plain_windows)
            .and_then(not_in_under_conditions)
            .and_then(|plan| if in_view { Ok(plan) } else { named_keys(plan) })
            .map_err(from_datafusion)
    }
}

/// Writes comparisons with a constant in one way. DataFusion infers from `x = 13` and a join on `x = y` that `y = 13`, and
/// takes that beside `13 = y` for a contradiction.
fn constants_to_the_right(plan: LogicalPlan) -> DataFusionResult<LogicalPlan> {
    walk::nodes(plan, &mut |node| {
        walk::node_expressions(node, &mut |expression, _| match expression {
            Expr::BinaryExpr(BinaryExpr { left, op, right })
                if matches!(left.as_ref(), Expr::Literal(..)) && !matches!(right.as_ref(), Expr::Literal(..)) =>
            {
                Ok(match op.swap() {
                    Some(op) => Transformed::yes(Expr::BinaryExpr(BinaryExpr { left: right, op, right: left })),
                    None => Transformed::no(Expr::BinaryExpr(BinaryExpr { left, op, right })),
                })
            }
            other => Ok(Transformed::no(other)),
        })
    })
}

/// Names the cast that a subquery of IN gives. DataFusion would name it as its operand, and the subquery's condition may
/// need that beside it.
fn name_casts_of_subqueries(plan: LogicalPlan) -> DataFusionResult<LogicalPlan> {
    let mut has_any = false;
    walk::look(&plan, &mut |part| has_any |= matches!(part, Expr::InSubquery(_)))?;
    if !has_any {
        return Ok(plan);
    }
    walk::expressions(plan, &mut |expression, _| {
        let Expr::InSubquery(mut membership) = expression else { return Ok(Transformed::no(expression)) };
        let named = match membership.subquery.subquery.as_ref() {
            LogicalPlan::Projection(Projection { expr, input, .. }) => match expr.as_slice() {
                [cast @ Expr::Cast(_)] => Projection::try_new(vec![cast.clone().alias("?value")], Arc::clone(input))?,
                _ => return Ok(Transformed::no(Expr::InSubquery(membership))),
            },
            _ => return Ok(Transformed::no(Expr::InSubquery(membership))),
        };
        membership.subquery.subquery = Arc::new(LogicalPlan::Projection(named));
        Ok(Transformed::yes(Expr::InSubquery(membership)))
    })
}

/// Makes `x NOT IN (SELECT y FROM r WHERE c)`, where `c` refers to the outer row, a plain anti join: a row goes if for some
/// row of `r` the condition is true and `x = y` is true or unknown. In DataFusion's null-aware join any NULL `y` would do,
/// and it takes one equality only.
fn not_in_under_conditions(plan: LogicalPlan) -> DataFusionResult<LogicalPlan> {
    plan.transform_down_with_subqueries(|node| match node {
        LogicalPlan::Join(mut join) if join.null_aware && (join.on.len() > 1 || join.filter.is_some()) => {
            // The subquery's own column is its first, and what the equality with it comes from stands before its WHERE.
            let own = join.right.schema().columns().into_iter().next();
            let compares =
                |(_, right): &(Expr, Expr)| own.as_ref().is_some_and(|own| right.column_refs().contains(own));
            let Some(position) = join.on.iter().position(compares) else {
                return Ok(Transformed::no(LogicalPlan::Join(join)));
            };
            let (value, of_subquery) = join.on.remove(position);
            let may_be_equal = Expr::IsNotFalse(Box::new(value.eq(of_subquery)));
            join.filter = Some(match join.filter.take() {
                Some(condition) => condition.and(may_be_equal),
                None => may_be_equal,
            });
            join.null_aware = false;
            Ok(Transformed::yes(LogicalPlan::Join(join)))
        }
        other => Ok(Transformed::no(other)),
    })
    .map(|transformed| transformed.data)
}

/// Names keys of joins that are named as a column beside them, as casts are that became functions: DataFusion puts computed
/// keys among the columns.
fn named_keys(plan: LogicalPlan) -> DataFusionResult<LogicalPlan> {
    plan.transform_down_with_subqueries(|node| match node {
        LogicalPlan::Join(mut join) => {
            let mut changed = false;
            let mut name = |key: &mut Expr, schema: &DFSchema| {
                // DataFusion names these itself.
                let is_named = matches!(key, Expr::Column(_) | Expr::Alias(_) | Expr::Cast(_) | Expr::TryCast(_));
                let called = key.schema_name().to_string();
                if !is_named && schema.columns().iter().any(|column| column.flat_name() == called) {
                    let text = key.to_string();
                    *key = std::mem::take(key).alias(text);
                    changed = true;
                }
            };
            for (left, right) in &mut join.on {
                name(left, join.left.schema());
                name(right, join.right.schema());
            }
            let join = LogicalPlan::Join(join);
            Ok(if changed { Transformed::yes(join) } else { Transformed::no(join) })
        }
        other => Ok(Transformed::no(other)),
    })
    .map(|transformed| transformed.data)
}

/// The planning error behind what a rule of DataFusion returned. Names and types are resolved by then, so what is not
/// one of ours is a limit or a defect.
pub(crate) fn from_datafusion(error: DataFusionError) -> PlanError {
    match error {
        DataFusionError::External(inner) => match inner.downcast::<PlanError>() {
            Ok(error) => *error,
            Err(inner) => PlanError::internal(inner),
        },
        DataFusionError::Diagnostic(_, inner) | DataFusionError::Context(_, inner) => from_datafusion(*inner),
        // Names were resolved long ago: a rule has lost sight of one, as it may below a subquery that refers to outer rows.
        DataFusionError::SchemaError(error, _) => {
            PlanError::unsupported("a query of this form").with_detail(error.to_string())
        }
        DataFusionError::NotImplemented(message) => PlanError::new(plan::SqlState::FEATURE_NOT_SUPPORTED, message),
        DataFusionError::Plan(message) => {
            PlanError::new(plan::SqlState::SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION, message)
        }
        other => PlanError::internal(other.strip_backtrace()),
    }
}
