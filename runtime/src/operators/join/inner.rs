//! The inner join in execution.

use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, Int64Array, UInt32Array};
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::SchemaRef;

use super::changes::split_at_nulls;
use super::kept::{Kept, Source};
use super::reach::Reach;
use super::state::{Added, SideState};
use super::{Join, Side};
use crate::Epoch;
use crate::delta::Delta;
use crate::delta::consolidate::{Groups, group};
use crate::delta::key::{KeyEncoder, Keys};
use crate::error::Result;
use crate::expressions::batch_of;
use crate::operators::{BuildContext, Operator, Output};
use crate::state::StateTable;

/// Pairs are handed on when there are so many: more would only take memory.
const PAIRS_MAX: usize = 1 << 16;

/// A symmetric join on one worker.
pub(super) struct InnerJoin {
    spec: Join,
    encoder: KeyEncoder,
    sides: [KeptSide; 2],
}

/// One side: its rows, the form in which they are kept, and how those in an order are found.
struct KeptSide {
    state: SideState,
    form: Kept,
    reach: Option<Reach>,
}

impl KeptSide {
    fn new(side: &Side, schema: &SchemaRef, table: StateTable) -> Result<Self> {
        Ok(KeptSide {
            state: SideState::new(table, side.unique, side.adds_new_rows_only),
            form: Kept::new(&side.keys, side.width, side.order.as_ref(), schema)?,
            reach: side.order.as_ref().map(Reach::new).transpose()?,
        })
    }
}

impl InnerJoin {
    pub(super) fn new(spec: Join, context: BuildContext) -> Result<Self> {
        let [left, right] = crate::operators::state_tables(context.state)?;
        let sides = [
            KeptSide::new(&spec.sides[0], &context.inputs[0], left)?,
            KeptSide::new(&spec.sides[1], &context.inputs[1], right)?,
        ];
        Ok(InnerJoin { encoder: KeyEncoder::new(&spec.key_types)?, sides, spec })
    }

    /// Pairs the rows of a delta with the rows kept of the other side.
    fn pair(&self, port: usize, delta: &Delta, keys: &Keys, groups: &Groups, output: &mut Output) -> Result<()> {
        let mut pairs = Pairs::default();
        let mut found = |rows: &[u32], weight: i64, payload: Bytes| -> Result<()> {
            pairs.add(rows, weight, payload, delta);
            if pairs.rows.len() >= PAIRS_MAX {
                self.emit(port, delta, std::mem::take(&mut pairs), output)?;
            }
            Ok(())
        };
        let other = &self.sides[1 - port];
        match &other.reach {
            Some(reach) => other.state.find_within(keys, groups, &reach.of(delta)?, found)?,
            None => {
                let (starts, members) = groups.members();
                let rows = |group: usize| &members[starts[group] as usize..starts[group + 1] as usize];
                other.state.find(keys, groups, |group, weight, payload| found(rows(group), weight, payload))?;
            }
        }
        self.emit(port, delta, pairs, output)
    }

    fn emit(&self, port: usize, delta: &Delta, pairs: Pairs, output: &mut Output) -> Result<()> {
        if pairs.rows.is_empty() {
            return Ok(());
        }
        let count = pairs.rows.len();
        let stored_once = pairs.stored.len() == count;
        let stored = self.sides[1 - port].form.decode_payloads(&pairs.stored)?;
        let (rows, stored_of) = (UInt32Array::from(pairs.rows), UInt32Array::from(pairs.stored_of));
        let own_side = &self.spec.sides[port];
        let of_delta = |column: usize| compute::take(delta.batch().column(column), &rows, None);
        let own = (0..own_side.width).map(of_delta);
        let others = self.sides[1 - port].form.sources.iter().map(|source| match source {
            Source::Key(key) => of_delta(own_side.keys[*key]),
            // Kept rows were found in order, so those that are used once each are in place.
            Source::Payload(column) if stored_once => Ok(stored.column(*column).clone()),
            Source::Payload(column) => compute::take(stored.column(*column), &stored_of, None),
        });
        let columns: Vec<ArrayRef> = if port == 0 {
            own.chain(others).collect::<Result<_, _>>()?
        } else {
            others.chain(own).collect::<Result<_, _>>()?
        };
        let batch = batch_of(&self.spec.schema, columns, count)?;
        let all_one = pairs.weights.iter().all(|weight| *weight == 1);
        let joined = Delta::new(batch, (!all_one).then(|| Int64Array::from(pairs.weights)));
        let joined = match &self.spec.condition {
            Some(condition) => condition.filter(joined, output)?,
            None => joined,
        };
        output.emit(joined);
        Ok(())
    }
}

/// Pairs found so far.
#[derive(Default)]
struct Pairs {
    /// Payloads of kept rows.
    stored: Vec<Bytes>,
    /// For each pair: the row of the delta, the kept row, the weight.
    rows: Vec<u32>,
    stored_of: Vec<u32>,
    weights: Vec<i64>,
}

impl Pairs {
    /// Pairs rows of a delta with a kept one.
    fn add(&mut self, rows: &[u32], weight: i64, payload: Bytes, delta: &Delta) {
        if rows.is_empty() {
            return;
        }
        let stored = self.stored.len() as u32;
        self.stored.push(payload);
        for row in rows {
            self.rows.push(*row);
            self.stored_of.push(stored);
            self.weights.push(weight * delta.weight(*row as usize));
        }
    }
}

impl Operator for InnerJoin {
    fn absorb(&mut self, port: usize, delta: Delta, output: &mut Output) -> Result<()> {
        let side = &self.spec.sides[port];
        let delta = if self.spec.nulls_are_equal { delta } else { split_at_nulls(delta, &side.keys)?.0 };
        if delta.is_empty() {
            return Ok(());
        }
        let key_columns: Vec<ArrayRef> = side.keys.iter().map(|key| delta.batch().column(*key).clone()).collect();
        let keys = self.encoder.encode_rows(&key_columns, delta.len())?;
        let groups = group(delta.len(), |row| keys.row(row));
        self.pair(port, &delta, &keys, &groups, output)?;
        let own = &self.sides[port];
        let payloads = own.form.encode(&delta)?;
        let weights = delta.weights().map(|weights| weights.values().as_ref());
        own.state.add(&Added { keys: &keys, groups: &groups, payloads: &payloads, weights })
    }

    fn close(&mut self, _epoch: Epoch, _output: &mut Output) -> Result<()> {
        Ok(())
    }
}
