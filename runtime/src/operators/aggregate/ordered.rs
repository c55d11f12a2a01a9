//! Results of calls over the ordered rows of a group: computed anew, before and after an epoch, for each group that it
//! touched. The rows before are those after without what the epoch changed.

use bytes::Bytes;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::ScalarValue;
use plan::PlanError;

use super::AggregateSpec;
use super::changes::types;
use super::values::{Touched, Updated, ValueChanges};
use crate::error::Result;
use crate::functions::aggregate::ordered::call::OrderedCall;
use crate::functions::aggregate::results::Results;
use crate::state::StateTable;

/// Where the rows of the groups are.
pub(super) struct Source<'a> {
    pub(super) updated: &'a Updated,
    pub(super) changes: &'a ValueChanges,
    pub(super) table: &'a StateTable,
    pub(super) touched: Touched<'a>,
}

/// The calls of a spec, each with the number of its value set.
pub(super) fn calls(spec: &AggregateSpec, input: &SchemaRef) -> Result<Vec<(OrderedCall, usize)>> {
    spec.ordered
        .iter()
        .map(|call| {
            let types = types(input, &spec.value_sets[call.set].arguments);
            Ok((OrderedCall::new(call.method, call.layout.clone(), &types, call.distinct)?, call.set))
        })
        .collect()
}

/// The results of a call for all touched groups, before and after the epoch.
pub(super) fn results(
    call: &OrderedCall,
    source: &Source<'_>,
    (old_present, new_present): (&[bool], &[bool]),
) -> Result<(Results, Results)> {
    let (mut old, mut new) = (Column::default(), Column::default());
    let mut present = old_present.iter().zip(new_present).map(|(old, new)| *old || *new);
    for group in 0..old_present.len() {
        if !present.next().unwrap_or(false) {
            old.push(group, ScalarValue::try_from(call.result()).map_err(PlanError::internal));
            new.push(group, ScalarValue::try_from(call.result()).map_err(PlanError::internal));
            continue;
        }
        let after = source.updated.values(group, source.table, &source.touched)?.all()?;
        let result = call.compute(counted(&after))?;
        let changed = source.updated.changed(group);
        if changed.is_empty() {
            old.push(group, result.clone());
        } else {
            old.push(group, call.compute(before(&after, changed, source.changes))?);
        }
        new.push(group, result);
    }
    Ok((old.finish(call.result())?, new.finish(call.result())?))
}

fn counted(rows: &[(Bytes, i64)]) -> impl Iterator<Item = (&[u8], i64)> {
    rows.iter().map(|(row, count)| (row.as_ref(), *count))
}

/// The rows of a group before an epoch: those after it, less what the epoch changed. All are in order.
fn before<'a>(after: &'a [(Bytes, i64)], changed: &[usize], changes: &'a ValueChanges) -> Vec<(&'a [u8], i64)> {
    let mut rows = Vec::with_capacity(after.len() + changed.len());
    let mut after = counted(after).peekable();
    for entry in changed {
        let value = changes.value(*entry);
        while let Some(smaller) = after.next_if(|(other, _)| *other < value) {
            rows.push(smaller);
        }
        let now = after.next_if(|(other, _)| *other == value).map_or(0, |(_, count)| count);
        let before = now - changes.weight(*entry);
        if before != 0 {
            rows.push((value, before));
        }
    }
    rows.extend(after);
    rows
}

/// Results of groups.
#[derive(Default)]
struct Column {
    values: Vec<Option<ScalarValue>>,
    errors: Vec<(usize, PlanError)>,
}

impl Column {
    fn push(&mut self, group: usize, result: std::result::Result<ScalarValue, PlanError>) {
        self.values.push(match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.errors.push((group, error));
                None
            }
        });
    }

    fn finish(self, data_type: &DataType) -> Result<Results> {
        let null = ScalarValue::try_from(data_type)?;
        let values =
            ScalarValue::iter_to_array(self.values.into_iter().map(|value| value.unwrap_or_else(|| null.clone())))?;
        Ok(Results { values, errors: self.errors })
    }
}
