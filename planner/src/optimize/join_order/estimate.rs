//! How many rows a plan has, what is unique among them, and what part of them a condition leaves.
//!
//! All that is known are the rows of stored relations and their keys. The parts that conditions leave are those of Selinger et
//! al., *Access path selection in a relational database management system* (1979), for relations without statistics.

use datafusion::common::DFSchema;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::expr::{Alias, InList};
use datafusion::logical_expr::utils::split_conjunction;
use datafusion::logical_expr::{
    Aggregate, BinaryExpr, Distinct, Expr, ExprSchemable, Filter, Join, JoinType, Limit, LogicalPlan, Operator,
    TableScan, Union,
};
use plan::expressions::{NORMALIZE, is_widening};
use plan::{Layout, RelationSource};

use crate::catalog::Sizes;

/// The part of rows that an equality leaves.
pub(super) const EQUAL: f64 = 0.1;
/// That of a comparison, and of what says nothing else.
const COMPARED: f64 = 1.0 / 3.0;
/// That of a range with two ends.
const BETWEEN: f64 = 0.25;
/// The most that a list of IN leaves.
const LISTED_MAX: f64 = 0.5;

/// The rows of a relation of which nothing is known: also of an empty one, since it will hardly stay so.
const UNKNOWN_ROWS: f64 = 1000.0;
/// Rows that make one group, or become one where copies are left out.
const ROWS_PER_GROUP: f64 = 10.0;
/// The part of the rows that a semi or an anti join keeps.
const MATCHED: f64 = 0.5;
/// Rows that one row becomes where its array is unnested.
const ROWS_PER_ARRAY: f64 = 10.0;

/// How many rows a plan has; unfiltered, as if it had no filters.
pub(super) fn rows(plan: &LogicalPlan, sizes: &Sizes, filtered: bool) -> f64 {
    let of = |input: &LogicalPlan| rows(input, sizes, filtered);
    match plan {
        LogicalPlan::TableScan(scan) => of_scan(scan, sizes),
        LogicalPlan::Filter(filter) if filtered => {
            let rows = of(&filter.input);
            if is_one_row(filter) { rows.min(1.0) } else { rows * selectivity(&filter.predicate) }
        }
        LogicalPlan::Aggregate(Aggregate { input, group_expr, .. }) => match group_expr.is_empty() {
            true => 1.0,
            false => (of(input) / ROWS_PER_GROUP).max(1.0),
        },
        LogicalPlan::Distinct(Distinct::All(input)) => (of(input) / ROWS_PER_GROUP).max(1.0),
        LogicalPlan::Limit(Limit { input, fetch, .. }) => match fetch.as_deref() {
            Some(Expr::Literal(ScalarValue::Int64(Some(fetch)), _)) => of(input).min(*fetch as f64),
            _ => of(input),
        },
        LogicalPlan::Join(join) => of_join(join, sizes, filtered),
        LogicalPlan::Union(Union { inputs, .. }) => inputs.iter().map(|input| of(input)).sum(),
        LogicalPlan::Unnest(unnest) => of(&unnest.input) * ROWS_PER_ARRAY,
        LogicalPlan::EmptyRelation(empty) => f64::from(u8::from(empty.produce_one_row)),
        LogicalPlan::Values(values) => values.values.len() as f64,
        LogicalPlan::RecursiveQuery(query) => of(&query.static_term) * ROWS_PER_GROUP,
        other => match other.inputs().as_slice() {
            [input] => of(input),
            _ => UNKNOWN_ROWS,
        },
    }
}

/// Whether a filter asks for the row of one key.
fn is_one_row(filter: &Filter) -> bool {
    let schema = filter.input.schema();
    let constant = |condition: &&Expr| match condition {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::Eq, right })
            if matches!(right.as_ref(), Expr::Literal(..)) =>
        {
            position(left, schema)
        }
        _ => None,
    };
    let constants: Vec<usize> = split_conjunction(&filter.predicate).iter().filter_map(constant).collect();
    keys(&filter.input).iter().any(|key| key.iter().all(|column| constants.contains(column)))
}

fn of_scan(scan: &TableScan, sizes: &Sizes) -> f64 {
    let known = RelationSource::of(scan.source.as_ref()).and_then(|source| sizes.rows.get(&source.relation.id));
    known.filter(|rows| **rows > 0).map_or(UNKNOWN_ROWS, |rows| *rows as f64)
}

fn of_join(join: &Join, sizes: &Sizes, filtered: bool) -> f64 {
    let [left, right] = [&join.left, &join.right].map(|input| rows(input, sizes, filtered));
    let [left_unique, right_unique] = unique_sides(join);
    let all = |input: &LogicalPlan| rows(input, sizes, false).max(1.0);
    let equal = match () {
        () if right_unique => left * right / all(&join.right),
        () if left_unique => left * right / all(&join.left),
        () if !join.on.is_empty() => left * right / (left.max(right) / ROWS_PER_GROUP).max(1.0),
        () => left * right,
    };
    let inner = if filtered { equal * join.filter.as_ref().map_or(1.0, selectivity) } else { equal };
    match join.join_type {
        JoinType::Inner => inner,
        JoinType::Left => inner.max(left),
        JoinType::Right => inner.max(right),
        JoinType::Full => inner.max(left + right),
        JoinType::LeftSemi | JoinType::LeftAnti => {
            if filtered {
                left * MATCHED
            } else {
                left
            }
        }
        JoinType::RightSemi | JoinType::RightAnti => {
            if filtered {
                right * MATCHED
            } else {
                right
            }
        }
        JoinType::LeftMark => left,
        JoinType::RightMark => right,
    }
}

/// For each side of a join, whether a row of the other meets at most one of it.
fn unique_sides(join: &Join) -> [bool; 2] {
    let columns = |left: bool| -> Vec<usize> {
        let plan = if left { &join.left } else { &join.right };
        let sides = join.on.iter().map(|(l, r)| if left { l } else { r });
        sides.filter_map(|side| position(side, plan.schema())).collect()
    };
    let unique = |plan: &LogicalPlan, columns: &[usize]| {
        keys(plan).iter().any(|key| key.iter().all(|column| columns.contains(column)))
    };
    [unique(&join.left, &columns(true)), unique(&join.right, &columns(false))]
}

/// Sets of columns that are unique in a plan's rows, by their positions.
pub(super) fn keys(plan: &LogicalPlan) -> Vec<Vec<usize>> {
    match plan {
        LogicalPlan::TableScan(scan) => key_of_scan(scan).into_iter().collect(),
        LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) | LogicalPlan::Sort(_) | LogicalPlan::Limit(_) => {
            plan.inputs().first().map_or_else(Vec::new, |input| keys(input))
        }
        // What a window adds comes after its input's columns.
        LogicalPlan::Window(window) => keys(&window.input),
        LogicalPlan::Projection(projection) => {
            let from: Vec<Option<usize>> =
                projection.expr.iter().map(|expression| position(expression, projection.input.schema())).collect();
            let place = |column: usize| from.iter().position(|from| *from == Some(column));
            let projected = |key: Vec<usize>| key.into_iter().map(place).collect::<Option<Vec<usize>>>();
            keys(&projection.input).into_iter().filter_map(projected).collect()
        }
        LogicalPlan::Aggregate(aggregate) => match aggregate.group_expr.as_slice() {
            [Expr::GroupingSet(_)] => Vec::new(),
            groups => vec![(0..groups.len()).collect()],
        },
        LogicalPlan::Distinct(Distinct::All(input)) => {
            let mut found = keys(input);
            found.push((0..input.schema().fields().len()).collect());
            found
        }
        LogicalPlan::Join(join) => keys_of_join(join),
        _ => Vec::new(),
    }
}

fn key_of_scan(scan: &TableScan) -> Option<Vec<usize>> {
    let source = RelationSource::of(scan.source.as_ref()).filter(|source| !source.with_rowid)?;
    let Layout::Keyed(key) = &source.relation.layout else { return None };
    match &scan.projection {
        Some(projected) => key.iter().map(|column| projected.iter().position(|from| from == column)).collect(),
        None => Some(key.clone()),
    }
}

fn keys_of_join(join: &Join) -> Vec<Vec<usize>> {
    let [left_unique, right_unique] = unique_sides(join);
    let width = join.left.schema().fields().len();
    let right = || keys(&join.right).into_iter().map(|key| key.into_iter().map(|column| column + width).collect());
    match join.join_type {
        JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => keys(&join.left),
        JoinType::RightSemi | JoinType::RightAnti => keys(&join.right),
        JoinType::Inner => {
            let mut found = if right_unique { keys(&join.left) } else { Vec::new() };
            found.extend(left_unique.then(right).into_iter().flatten());
            found
        }
        JoinType::Left if right_unique => keys(&join.left),
        JoinType::Right if left_unique => right().collect(),
        _ => Vec::new(),
    }
}

/// The position of the column whose values an expression has, possibly as a wider type.
pub(super) fn position(expression: &Expr, schema: &DFSchema) -> Option<usize> {
    match expression {
        Expr::Column(column) => schema.maybe_index_of_column(column),
        Expr::Alias(Alias { expr, .. }) => position(expr, schema),
        Expr::Cast(cast) => {
            let from = cast.expr.get_type(schema).ok()?;
            is_widening(&from, cast.field.data_type()).then(|| position(&cast.expr, schema)).flatten()
        }
        Expr::ScalarFunction(call) if call.name() == NORMALIZE => position(call.args.first()?, schema),
        _ => None,
    }
}

/// The part of the rows that a condition leaves.
pub(super) fn selectivity(condition: &Expr) -> f64 {
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And => selectivity(left) * selectivity(right),
            Operator::Or => {
                let (left, right) = (selectivity(left), selectivity(right));
                left + right - left * right
            }
            Operator::Eq | Operator::IsNotDistinctFrom => EQUAL,
            Operator::NotEq | Operator::IsDistinctFrom => 1.0 - EQUAL,
            _ => COMPARED,
        },
        Expr::Not(condition) => 1.0 - selectivity(condition),
        Expr::Between(between) => {
            if between.negated {
                1.0 - BETWEEN
            } else {
                BETWEEN
            }
        }
        Expr::Like(like) => {
            if like.negated {
                1.0 - EQUAL
            } else {
                EQUAL
            }
        }
        Expr::InList(InList { list, negated, .. }) => {
            let listed = (EQUAL * list.len() as f64).min(LISTED_MAX);
            if *negated { 1.0 - listed } else { listed }
        }
        Expr::IsNull(_) => EQUAL,
        Expr::IsNotNull(_) => 1.0 - EQUAL,
        Expr::Alias(Alias { expr, .. }) => selectivity(expr),
        Expr::Literal(ScalarValue::Boolean(Some(true)), _) => 1.0,
        _ => COMPARED,
    }
}
