//! Deals rows out over workers by the partition of their key, by which state is dealt out too.
//!
//! A worker owns a range of the partitions: `worker = partition * workers / 1024`. Rows of equal key meet on one
//! worker, and that worker owns the state under that key.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, UInt32Array};
use datafusion::arrow::datatypes::{DataType, Schema, SchemaRef};
use plan::Distribution;
use timely::communication::{Pull, Push};
use timely::dataflow::channels::Message;
use timely::dataflow::channels::pact::{DistributorPact, ParallelizationContract, Pipeline};
use timely::dataflow::channels::pushers::exchange::Distributor;
use timely::logging::TimelyLogger;
use timely::progress::Stamp;
use timely::worker::Worker;

use super::container::DeltaContainer;
use super::control::Control;
use crate::Epoch;
use crate::delta::Delta;
use crate::delta::key::{KeyEncoder, PARTITIONS, partition_of};
use crate::error::{Error, Result};

/// The worker that owns a partition.
pub(super) fn worker_of(partition: u16, workers: usize) -> usize {
    usize::from(partition) * workers / usize::from(PARTITIONS)
}

/// The partitions that a worker owns.
pub(super) fn partitions_of(worker: usize, workers: usize) -> Range<u16> {
    // The quotients are at most 1024.
    let first = |worker: usize| (worker * usize::from(PARTITIONS)).div_ceil(workers) as u16;
    first(worker)..first(worker + 1)
}

/// The worker that sees the key without columns: where whole-relation operators run.
pub(super) fn worker_of_everything(workers: usize) -> usize {
    worker_of(partition_of(&[]), workers)
}

/// How an input port's rows travel: to the same worker, or by key.
pub(super) enum Route {
    /// Rows stay where they are.
    Local,
    /// Rows go to the worker that owns their key.
    ByKey(KeyDistributor),
}

impl Route {
    /// The route that a distribution asks for.
    pub(super) fn new(
        distribution: &Distribution,
        schema: &SchemaRef,
        workers: usize,
        control: &Rc<Control>,
    ) -> Result<Self> {
        match distribution {
            Distribution::ByKey(columns) if workers > 1 => {
                Ok(Route::ByKey(KeyDistributor::new(columns.clone(), schema, workers, control.clone())?))
            }
            Distribution::Any | Distribution::ByKey(_) => Ok(Route::Local),
        }
    }

    /// A route that needs to understand no row.
    pub(super) fn everything_to_one(workers: usize, control: &Rc<Control>) -> Self {
        match KeyDistributor::new(Vec::new(), &Arc::new(Schema::empty()), workers, control.clone()) {
            Ok(distributor) if workers > 1 => Route::ByKey(distributor),
            Ok(_) | Err(_) => Route::Local,
        }
    }
}

type Pusher = Box<dyn Push<Message<Epoch, DeltaContainer>>>;
type Puller = Box<dyn Pull<Message<Epoch, DeltaContainer>>>;

impl ParallelizationContract<Epoch, DeltaContainer> for Route {
    type Pusher = Pusher;
    type Puller = Puller;

    fn connect(
        self,
        worker: &Worker,
        identifier: usize,
        address: Rc<[usize]>,
        logging: Option<TimelyLogger>,
    ) -> (Pusher, Puller) {
        match self {
            Route::Local => {
                let (push, pull) = Pipeline.connect(worker, identifier, address, logging);
                (Box::new(push), Box::new(pull))
            }
            Route::ByKey(distributor) => {
                let pact = DistributorPact(move |_peers| distributor);
                let (push, pull) = pact.connect(worker, identifier, address, logging);
                (Box::new(push), Box::new(pull))
            }
        }
    }
}

/// Splits deltas by the owner of each row's key. It keeps nothing back.
pub(super) struct KeyDistributor {
    columns: Vec<usize>,
    encoder: KeyEncoder,
    control: Rc<Control>,
    /// For each worker, the rows of the delta in hand that are for it.
    rows: Vec<Vec<u32>>,
}

impl KeyDistributor {
    fn new(columns: Vec<usize>, schema: &SchemaRef, workers: usize, control: Rc<Control>) -> Result<Self> {
        let types: Vec<DataType> = columns.iter().map(|column| schema.field(*column).data_type().clone()).collect();
        let encoder = KeyEncoder::new(&types)?;
        Ok(KeyDistributor { columns, encoder, control, rows: vec![Vec::new(); workers] })
    }

    /// The parts of a delta, with the worker that each is for.
    fn split(&mut self, delta: Delta) -> Result<Vec<(usize, Delta)>> {
        let workers = self.rows.len();
        if self.columns.is_empty() {
            return Ok(vec![(worker_of_everything(workers), delta)]);
        }
        let columns: Vec<ArrayRef> = self.columns.iter().map(|column| delta.batch().column(*column).clone()).collect();
        let keys = self.encoder.encode(&columns)?;
        self.rows.iter_mut().for_each(Vec::clear);
        for row in 0..delta.len() {
            let row_number = u32::try_from(row).map_err(|_| Error::Dataflow("a delta has too many rows".to_owned()))?;
            self.rows[worker_of(keys.partition(row), workers)].push(row_number);
        }
        if let Some(worker) = self.rows.iter().position(|rows| rows.len() == delta.len()) {
            return Ok(vec![(worker, delta)]);
        }
        let mut parts = Vec::with_capacity(workers);
        for (worker, rows) in self.rows.iter_mut().enumerate().filter(|(_, rows)| !rows.is_empty()) {
            parts.push((worker, delta.take(&UInt32Array::from(std::mem::take(rows)))?));
        }
        Ok(parts)
    }
}

impl Distributor<DeltaContainer> for KeyDistributor {
    fn partition<T: Clone, P: Push<Message<T, DeltaContainer>>>(
        &mut self,
        container: &mut DeltaContainer,
        stamp: &Stamp<T>,
        pushers: &mut [P],
    ) {
        let Some(delta) = container.0.take() else { return };
        let everything = delta.clone();
        let parts = self.split(delta).unwrap_or_else(|error| {
            // Timely counts rows, so they must go somewhere: to the first worker, where nobody will use them.
            self.control.fail(self.control.epoch(), &format!("rows cannot be dealt out over workers: {error}"));
            vec![(0, everything)]
        });
        for (worker, part) in parts {
            Message::push_at(&mut DeltaContainer(Some(part)), stamp.clone(), &mut pushers[worker]);
        }
    }

    fn flush<T: Clone, P: Push<Message<T, DeltaContainer>>>(&mut self, _: &Stamp<T>, _: &mut [P]) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_own_equal_ranges() {
        for workers in 1..=7 {
            let owners: Vec<usize> = (0..PARTITIONS).map(|partition| worker_of(partition, workers)).collect();
            assert!(owners.is_sorted());
            for worker in 0..workers {
                let owned = owners.iter().filter(|owner| **owner == worker).count();
                assert!(partitions_of(worker, workers).all(|partition| worker_of(partition, workers) == worker));
                assert_eq!(partitions_of(worker, workers).len(), owned);
                assert!(owned.abs_diff(usize::from(PARTITIONS) / workers) <= 1, "{workers} workers");
            }
        }
    }
}
