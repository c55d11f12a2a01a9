//! The inner join in execution.

use bytes::Bytes;
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, Int64Array, UInt32Array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute;
use datafusion::arrow::datatypes::{Schema, SchemaRef};

use super::state::{Added, SideState};
use super::{Join, NAME, Side};
use crate::Epoch;
use crate::delta::Delta;
use crate::delta::consolidate::{Groups, group};
use crate::delta::key::{KeyEncoder, Keys, has_equal_forms};
use crate::delta::rows::RowCodec;
use crate::error::Result;
use crate::expressions::batch_of;
use crate::operators::{BuildContext, Operator, Output};

/// Pairs are handed on when there are so many: more would only take memory.
const PAIRS_MAX: usize = 1 << 16;

/// A symmetric join on one worker.
pub(super) struct InnerJoin {
    spec: Join,
    encoder: KeyEncoder,
    sides: [Kept; 2],
}

/// What is kept of one side, and how its rows come back.
struct Kept {
    state: SideState,
    payload: RowCodec,
    payload_columns: Vec<usize>,
    /// For each column that goes to the output: where it is found in a kept row.
    sources: Vec<Source>,
}

/// Where a column of a kept row is found.
#[derive(Debug, Clone, Copy)]
enum Source {
    /// In the payload.
    Payload(usize),
    /// It is this key column, so the row that it is paired with has the same value there.
    Key(usize),
}

impl Kept {
    fn new(side: &Side, schema: &SchemaRef, state: SideState) -> Result<Self> {
        let mut payload_columns = Vec::new();
        let sources = (0..side.width).map(|column| {
            let key = side.keys.iter().position(|key| *key == column);
            match key.filter(|_| !has_equal_forms(schema.field(column).data_type())) {
                Some(key) => Source::Key(key),
                None => {
                    payload_columns.push(column);
                    Source::Payload(payload_columns.len() - 1)
                }
            }
        });
        let sources = sources.collect();
        let fields: Vec<_> = payload_columns.iter().map(|column| schema.field(*column).clone()).collect();
        let payload = RowCodec::new(&std::sync::Arc::new(Schema::new(fields)))?;
        Ok(Kept { state, payload, payload_columns, sources })
    }
}

impl InnerJoin {
    pub(super) fn new(spec: Join, context: BuildContext) -> Result<Self> {
        let [left, right] = crate::operators::state_tables(context.state)?;
        let state = |side: &Side, table| SideState::new(table, side.unique, side.adds_new_rows_only);
        let sides = [
            Kept::new(&spec.left, &context.inputs[0], state(&spec.left, left))?,
            Kept::new(&spec.right, &context.inputs[1], state(&spec.right, right))?,
        ];
        Ok(InnerJoin { encoder: KeyEncoder::new(&spec.key_types)?, sides, spec })
    }

    /// Pairs the rows of a delta with the rows kept of the other side.
    fn pair(&self, port: usize, delta: &Delta, keys: &Keys, groups: &Groups, output: &mut Output) -> Result<()> {
        let (starts, members) = groups.members();
        let mut pairs = Pairs::default();
        self.sides[1 - port].state.find(keys, groups, |group, weight, payload| {
            let stored = pairs.stored.len() as u32;
            pairs.stored.push(payload);
            for row in &members[starts[group] as usize..starts[group + 1] as usize] {
                pairs.rows.push(*row);
                pairs.stored_of.push(stored);
                pairs.weights.push(weight * delta.weight(*row as usize));
            }
            if pairs.rows.len() >= PAIRS_MAX {
                self.emit(port, delta, std::mem::take(&mut pairs), output)?;
            }
            Ok(())
        })?;
        self.emit(port, delta, pairs, output)
    }

    fn emit(&self, port: usize, delta: &Delta, pairs: Pairs, output: &mut Output) -> Result<()> {
        if pairs.rows.is_empty() {
            return Ok(());
        }
        let count = pairs.rows.len();
        let stored_once = pairs.stored.len() == count;
        let stored = self.sides[1 - port].payload.decode_bytes(&pairs.stored)?;
        let (rows, stored_of) = (UInt32Array::from(pairs.rows), UInt32Array::from(pairs.stored_of));
        let own_side = if port == 0 { &self.spec.left } else { &self.spec.right };
        let of_delta = |column: usize| compute::take(delta.batch().column(column), &rows, None);
        let own = (0..own_side.width).map(of_delta);
        let others = self.sides[1 - port].sources.iter().map(|source| match source {
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
            Some(condition) => condition.filter(NAME, joined, output)?,
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

impl Operator for InnerJoin {
    fn absorb(&mut self, port: usize, delta: Delta, output: &mut Output) -> Result<()> {
        let side = if port == 0 { &self.spec.left } else { &self.spec.right };
        let delta = if self.spec.nulls_are_equal { delta } else { without_nulls(delta, &side.keys)? };
        if delta.is_empty() {
            return Ok(());
        }
        let key_columns: Vec<ArrayRef> = side.keys.iter().map(|key| delta.batch().column(*key).clone()).collect();
        let keys = self.encoder.encode_rows(&key_columns, delta.len())?;
        let groups = group(delta.len(), |row| keys.row(row));
        self.pair(port, &delta, &keys, &groups, output)?;
        let own = &self.sides[port];
        let payload: Vec<ArrayRef> =
            own.payload_columns.iter().map(|column| delta.batch().column(*column).clone()).collect();
        let payloads = own.payload.encode_columns(&payload, delta.len())?;
        let weights = delta.weights().map(|weights| weights.values().as_ref());
        own.state.add(&Added { keys: &keys, groups: &groups, payloads: &payloads, weights })
    }

    fn close(&mut self, _epoch: Epoch, _output: &mut Output) -> Result<()> {
        Ok(())
    }
}

/// The rows in which no key column is NULL.
fn without_nulls(delta: Delta, keys: &[usize]) -> Result<Delta> {
    let nulls = keys
        .iter()
        .map(|key| delta.batch().column(*key).logical_nulls())
        .fold(None, |all: Option<NullBuffer>, column| NullBuffer::union(all.as_ref(), column.as_ref()));
    match nulls {
        Some(nulls) if nulls.null_count() > 0 => delta.filter(&BooleanArray::new(nulls.into_inner(), None)),
        _ => Ok(delta),
    }
}
