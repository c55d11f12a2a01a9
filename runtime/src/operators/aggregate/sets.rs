//! Grouping sets: each row once for every set, and the groups that are there over nothing.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Column, ScalarValue};
use datafusion::logical_expr::expr::GroupingSet;
use datafusion::logical_expr::{Expr, ExprSchemable, LogicalPlan, Projection, Union};

use super::AggregateSpec;
use super::changes::GroupKeys;
use crate::delta::key::partition_of;
use crate::error::Result;

/// The groups of a worker that are there over nothing too.
#[derive(Debug)]
pub(super) struct Standing {
    /// Key, and what is shown of it where equal keys may look different.
    pub(super) groups: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Standing {
    /// Those whose partition is among these.
    pub(super) fn new(spec: &AggregateSpec, keys: &GroupKeys, partitions: Range<u16>) -> Result<Self> {
        let mut groups = Vec::new();
        for values in &spec.standing {
            let columns: Vec<ArrayRef> =
                values.iter().map(ScalarValue::to_array).collect::<std::result::Result<_, _>>()?;
            let encoded = keys.encoder.encode_rows(&columns, 1)?;
            let display = match &keys.exact {
                Some(exact) => exact.encode_columns(&columns, 1)?.row(0).to_vec(),
                None => Vec::new(),
            };
            if partitions.contains(&partition_of(encoded.row(0))) {
                groups.push((encoded.row(0).to_vec(), display));
            }
        }
        Ok(Standing { groups })
    }

    /// Whether a group is one of them.
    pub(super) fn contains(&self, key: &[u8]) -> bool {
        self.groups.iter().any(|(standing, _)| standing == key)
    }
}

/// A grouping set: for each group expression whether it is left out, and the number by which the set is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Set {
    pub(super) left_out: Vec<bool>,
    pub(super) id: u64,
}

/// The sets over group expressions. The lowest bits of a set's number say which expressions are left out, the last one
/// being the lowest; sets that are there several times differ in the bits above.
pub(super) fn sets(grouping: &GroupingSet, expressions: &[&Expr]) -> std::result::Result<Vec<Set>, String> {
    let count = expressions.len();
    let patterns: Vec<Vec<bool>> = match grouping {
        GroupingSet::Rollup(_) => (0..=count).map(|kept| (0..count).map(|index| index >= kept).collect()).collect(),
        GroupingSet::Cube(_) if count > CUBE_COLUMNS_MAX => {
            return Err(format!("a CUBE of {count} columns is not aggregated incrementally"));
        }
        GroupingSet::Cube(_) => {
            (0..1usize << count).map(|mask| (0..count).map(|index| mask >> index & 1 == 1).collect()).collect()
        }
        GroupingSet::GroupingSets(sets) => {
            sets.iter().map(|set| expressions.iter().map(|expression| !set.contains(expression)).collect()).collect()
        }
    };
    let mut seen: HashMap<Vec<bool>, u64> = HashMap::new();
    let sets = patterns.into_iter().map(|left_out| {
        let ordinal = seen.entry(left_out.clone()).and_modify(|ordinal| *ordinal += 1).or_insert(0);
        let bits = left_out.iter().fold(0u64, |bits, left_out| bits << 1 | u64::from(*left_out));
        let id = ordinal.checked_shl(count as u32).map(|ordinal| ordinal | bits);
        id.map(|id| Set { left_out, id }).ok_or_else(|| "there are too many grouping sets".to_string())
    });
    sets.collect()
}

/// Columns of a CUBE at most: every row is there twice as often for each.
const CUBE_COLUMNS_MAX: usize = 12;

/// The input of an aggregation over grouping sets: from columns `column0...`, of which some are the group expressions, each
/// row once for every set, with the group columns and the number of the set before all columns.
pub(super) fn expand(
    columns: &Arc<LogicalPlan>,
    keys: &[usize],
    sets: &[Set],
    id_type: &DataType,
) -> datafusion::error::Result<LogicalPlan> {
    let column = |number: usize| Expr::Column(Column::from_name(format!("column{number}")));
    let mut parts = Vec::with_capacity(sets.len());
    for set in sets {
        let mut expressions = Vec::new();
        for (position, (key, left_out)) in keys.iter().zip(&set.left_out).enumerate() {
            let value = column(*key);
            let value = match left_out {
                true => Expr::Literal(ScalarValue::try_from(value.get_type(columns.schema())?)?, None),
                false => value,
            };
            expressions.push(value.alias(format!("key{position}")));
        }
        expressions.push(id_literal(set, id_type)?.alias("set"));
        let count = columns.schema().fields().len();
        expressions.extend((0..count).map(column));
        parts.push(Arc::new(LogicalPlan::Projection(Projection::try_new(expressions, Arc::clone(columns))?)));
    }
    match parts.as_slice() {
        [part] => Ok(part.as_ref().clone()),
        _ => Ok(LogicalPlan::Union(Union::try_new(parts)?)),
    }
}

fn id_literal(set: &Set, id_type: &DataType) -> datafusion::error::Result<Expr> {
    Ok(Expr::Literal(ScalarValue::UInt64(Some(set.id)).cast_to(id_type)?, None))
}

/// The keys of the groups that are there over nothing: those of the empty sets.
pub(super) fn standing(
    sets: &[Set],
    key_types: &[DataType],
    id_type: &DataType,
) -> datafusion::error::Result<Vec<Vec<ScalarValue>>> {
    sets.iter()
        .filter(|set| set.left_out.iter().all(|left_out| *left_out))
        .map(|set| {
            let mut key: Vec<ScalarValue> = key_types.iter().map(ScalarValue::try_from).collect::<Result<_, _>>()?;
            key.push(ScalarValue::UInt64(Some(set.id)).cast_to(id_type)?);
            Ok(key)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use datafusion::logical_expr::col;

    use super::*;

    #[test]
    fn sets_are_numbered_as_datafusion_numbers_them() {
        let (a, b) = (col("a"), col("b"));
        let ids = |grouping: &GroupingSet| -> Vec<u64> {
            sets(grouping, &[&a, &b]).unwrap().iter().map(|set| set.id).collect()
        };
        assert_eq!(ids(&GroupingSet::Rollup(vec![a.clone(), b.clone()])), [3, 1, 0]);
        assert_eq!(ids(&GroupingSet::Cube(vec![a.clone(), b.clone()])), [0, 2, 1, 3]);
        let twice = GroupingSet::GroupingSets(vec![vec![b.clone()], vec![], vec![b.clone()]]);
        assert_eq!(ids(&twice), [2, 3, 6]);
    }
}
