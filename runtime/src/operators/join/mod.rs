//! Inner join: pairs of rows that agree in their keys and satisfy a condition.
//!
//! `out(l, r) = left(l) * right(r)  for rows l, r with equal keys and condition(l, r) true`. The change of a product:
//! `d(L * R) = dL * R + L * dR + dL * dR`. A delta of one side is paired with the rows kept of the other side and then
//! added to those kept of its own, one delta after the other; so each pair of changes meets exactly once.
//!
//! NULL keys join with nothing, and are not kept (unless the plan says that NULLs are equal here). A join without keys
//! is the same thing with one key for all rows, on one worker.
//!
//! State: one table a side, see [`state`].

use std::any::Any;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{DFSchema, NullEquality};
use datafusion::logical_expr::type_coercion::binary::comparison_coercion;
use datafusion::logical_expr::{Expr, ExprSchemable, Join as LogicalJoin, JoinType, LogicalPlan, cast};
use plan::{Distribution, Lower, LowerContext, Lowered, NodeId, PlanError, Properties, Spec, StateBound};

use super::project::extend;
use super::{BuildContext, Operator, OperatorDef, spec_of};
use crate::delta::key::KeyEncoder;
use crate::error::Result;
use crate::expressions::{BoundExprs, Predicate, readable};

mod inner;
mod state;
#[cfg(test)]
mod tests;

const NAME: &str = "join";

/// How many keys of a join's output are followed up: each pair of the inputs' keys gives one.
const KEYS_MAX: usize = 8;

/// Recognises and builds inner joins.
#[derive(Debug)]
pub struct JoinDefinition;

/// One input of a join.
#[derive(Debug, Clone)]
struct Side {
    /// Columns of the key, in the order of the other side's.
    keys: Vec<usize>,
    /// How many of the input's columns are in the output: computed keys after them are not.
    width: usize,
    /// No two rows of the input have the same key.
    unique: bool,
    /// Rows of the input are unique and stay.
    adds_new_rows_only: bool,
}

/// An inner join as data.
#[derive(Debug, Clone)]
struct Join {
    left: Side,
    right: Side,
    key_types: Vec<DataType>,
    nulls_are_equal: bool,
    condition: Option<Predicate>,
    schema: SchemaRef,
    text: String,
}

impl Spec for Join {
    fn name(&self) -> &'static str {
        NAME
    }

    fn version(&self) -> u32 {
        // The layout of a side's state follows from whether its keys are unique.
        4 + u32::from(self.left.unique) + 2 * u32::from(self.right.unique)
    }

    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    fn properties(&self, inputs: &[&Properties]) -> Properties {
        let (left, right) = (inputs[0], inputs[1]);
        Properties {
            keys: self.output_keys(left, right),
            append_only: left.append_only && right.append_only,
            // A pair may appear long after one of its rows did, so watermarks of the inputs say nothing of it.
            watermarks: Vec::new(),
            state: StateBound::Unbounded("rows of both inputs".to_string()),
        }
    }

    fn distribution(&self, port: usize) -> Distribution {
        Distribution::ByKey(if port == 0 { self.left.keys.clone() } else { self.right.keys.clone() })
    }

    fn state_tables(&self) -> usize {
        2
    }

    fn detail(&self) -> String {
        self.text.clone()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Join {
    /// Where a row meets at most one of the other side, its own keys stay keys. Else a pair is known by both keys.
    fn output_keys(&self, left: &Properties, right: &Properties) -> Vec<Vec<usize>> {
        let of_left = left.keys.iter().filter(|key| key.iter().all(|column| *column < self.left.width));
        let of_left: Vec<Vec<usize>> = of_left.cloned().collect();
        let of_right = right.keys.iter().filter(|key| key.iter().all(|column| *column < self.right.width));
        let shift = |key: &Vec<usize>| key.iter().map(|column| column + self.left.width).collect::<Vec<_>>();
        let of_right: Vec<Vec<usize>> = of_right.map(shift).collect();
        let mut keys = Vec::new();
        if self.right.unique {
            keys.extend(of_left.iter().cloned());
        }
        if self.left.unique {
            keys.extend(of_right.iter().cloned());
        }
        if keys.is_empty() {
            keys.extend(of_left.iter().flat_map(|l| of_right.iter().map(|r| l.iter().chain(r).copied().collect())));
        }
        keys.sort_by_key(Vec::len);
        keys.dedup();
        keys.truncate(KEYS_MAX);
        keys
    }
}

impl Lower for JoinDefinition {
    fn name(&self) -> &'static str {
        NAME
    }

    fn lower(&self, plan: &LogicalPlan, context: &mut dyn LowerContext) -> Result<Lowered, PlanError> {
        let LogicalPlan::Join(join) = plan else { return Ok(Lowered::Declined(None)) };
        if join.join_type != JoinType::Inner {
            return Ok(Lowered::Declined(Some(format!("{} joins are not incremental yet", join.join_type))));
        }
        let keys = match JoinKeys::of(join, context) {
            Ok(keys) => keys,
            Err(reason) => return Ok(Lowered::Declined(Some(reason))),
        };
        let condition = join.filter.as_ref().map(|filter| Predicate::bind(filter, &join.schema, context.session()));
        let condition = match condition.transpose() {
            Ok(condition) => condition,
            Err(reason) => return Ok(Lowered::Declined(Some(reason))),
        };
        let (left_node, left) = side(&join.left, &keys.left, context)?;
        let (right_node, right) = side(&join.right, &keys.right, context)?;
        let spec = Join {
            left,
            right,
            key_types: keys.types,
            nulls_are_equal: join.null_equality == NullEquality::NullEqualsNull,
            condition,
            schema: join.schema.inner().clone(),
            text: text(join),
        };
        Ok(Lowered::Node(context.add(Arc::new(spec), vec![left_node, right_node])))
    }
}

fn text(join: &LogicalJoin) -> String {
    let keys = join.on.iter().map(|(left, right)| format!("{} = {}", readable(left), readable(right)));
    let parts: Vec<String> = keys.chain(join.filter.as_ref().map(readable)).collect();
    if parts.is_empty() { "every pair".to_string() } else { parts.join(" AND ") }
}

/// The pairs of key expressions, brought to one type each.
struct JoinKeys {
    left: Vec<Expr>,
    right: Vec<Expr>,
    types: Vec<DataType>,
}

impl JoinKeys {
    fn of(join: &LogicalJoin, context: &dyn LowerContext) -> Result<Self, String> {
        let mut keys = JoinKeys { left: Vec::new(), right: Vec::new(), types: Vec::new() };
        let type_of =
            |expression: &Expr, schema: &DFSchema| expression.get_type(schema).map_err(|error| error.strip_backtrace());
        for (left, right) in &join.on {
            let left_type = type_of(left, join.left.schema())?;
            let right_type = type_of(right, join.right.schema())?;
            let common = if left_type == right_type {
                left_type.clone()
            } else {
                comparison_coercion(&left_type, &right_type)
                    .ok_or_else(|| format!("keys of types {left_type} and {right_type} cannot be compared"))?
            };
            let to_common = |expression: &Expr, data_type: DataType| {
                if data_type == common { expression.clone() } else { cast(expression.clone(), common.clone()) }
            };
            keys.left.push(to_common(left, left_type));
            keys.right.push(to_common(right, right_type));
            keys.types.push(common);
        }
        if !KeyEncoder::supports(&keys.types) {
            return Err("a key's type cannot be compared".to_string());
        }
        BoundExprs::bind(&keys.left, join.left.schema(), context.session())?;
        BoundExprs::bind(&keys.right, join.right.schema(), context.session())?;
        Ok(keys)
    }
}

/// Lowers an input, with its keys as columns.
fn side(plan: &LogicalPlan, keys: &[Expr], context: &mut dyn LowerContext) -> Result<(NodeId, Side), PlanError> {
    let input = context.lower(plan)?;
    let width = context.schema(input).fields().len();
    let (node, keys) = extend(context, input, keys, plan.schema())?;
    let properties = context.properties(node);
    let unique = properties.keys.iter().any(|key| key.iter().all(|column| keys.contains(column)));
    let adds_new_rows_only = properties.append_only && !properties.keys.is_empty();
    Ok((node, Side { keys, width, unique, adds_new_rows_only }))
}

impl OperatorDef for JoinDefinition {
    fn build(&self, spec: &dyn Spec, context: BuildContext) -> Result<Box<dyn Operator>> {
        let spec: &Join = spec_of(spec)?;
        Ok(Box::new(inner::InnerJoin::new(spec.clone(), context)?))
    }
}
