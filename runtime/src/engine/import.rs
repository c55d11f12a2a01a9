//! The imports of a dataflow on one worker: what reaches it of a relation's changes, and up to which epoch.
//!
//! While a dataflow is being filled, a change passes if the fill has read its entry's place already: all store keys
//! up to the position. What lies beyond will be read by the fill, with the change in it. A position counts from an
//! epoch on, because changes of upstream views may come later than the command that moved it.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion::arrow::array::BooleanArray;
use plan::{Relation, RelationId};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::InputHandle;

use super::container::DeltaContainer;
use super::{Change, FillPosition};
use crate::Epoch;
use crate::delta::Delta;
use crate::error::{Error, Result};
use crate::state::relation::RelationStorage;

/// Timely's end of an input.
pub(super) type Handle = InputHandle<Epoch, CapacityContainerBuilder<DeltaContainer>>;

/// A new input that begins at an epoch.
pub(super) fn input_from(epoch: Epoch) -> Handle {
    let mut handle = InputHandle::new_with_builder();
    handle.advance_to(epoch);
    handle
}

/// One imported relation.
pub(super) struct Import {
    relation: Arc<Relation>,
    storage: RelationStorage,
    handle: Handle,
    /// The first epoch that concerns the dataflow.
    created: Epoch,
    /// Whether a dataflow of this runtime fills the relation: then that dataflow's progress moves the input on, else
    /// the seal of an epoch does.
    pub(super) produced: bool,
    /// How far the relation has been read, each entry from its epoch on; never empty.
    positions: VecDeque<(Epoch, FillPosition)>,
    /// Rows of epochs to which the input has not come yet.
    waiting: VecDeque<(Epoch, Delta)>,
}

impl Import {
    /// An import that begins at an epoch and a position.
    pub(super) fn new(
        relation: Arc<Relation>,
        handle: Handle,
        created: Epoch,
        produced: bool,
        position: FillPosition,
    ) -> Result<Self> {
        let storage = RelationStorage::new(relation.clone())?;
        let positions = VecDeque::from([(created, position)]);
        Ok(Import { relation, storage, handle, created, produced, positions, waiting: VecDeque::new() })
    }

    /// The relation's identity.
    pub(super) fn relation(&self) -> RelationId {
        self.relation.id
    }

    /// From the epoch on, changes pass up to the position.
    pub(super) fn set_position(&mut self, from: Epoch, position: FillPosition) {
        self.positions.retain(|(epoch, _)| *epoch < from);
        self.positions.push_back((from, position));
    }

    /// The epoch from which on it has been read to its end, if that is known.
    pub(super) fn end(&self) -> Option<Epoch> {
        self.positions.back().filter(|(_, position)| matches!(position, FillPosition::End)).map(|(epoch, _)| *epoch)
    }

    /// Takes a change of the relation, as far as the fill has come.
    pub(super) fn offer(&mut self, epoch: Epoch, change: &Change) -> Result<()> {
        if epoch < self.created {
            return Ok(());
        }
        let position = self.positions.iter().rev().find(|(from, _)| *from <= epoch).map(|(_, position)| position);
        let delta = match position {
            None | Some(FillPosition::Start) => return Ok(()),
            Some(FillPosition::End) => change.delta.clone(),
            Some(FillPosition::Through(position)) => {
                let keys = self.storage.keys(change.delta.batch(), change.rowids.as_ref())?;
                let passes: BooleanArray = keys.iter().map(|key| Some(key <= position)).collect();
                change.delta.filter(&passes)?
            }
        };
        self.send_waiting(epoch);
        self.send(epoch, delta)
    }

    /// Takes rows that the fill has read.
    pub(super) fn fill(&mut self, epoch: Epoch, rows: Delta) -> Result<()> {
        if self.produced && self.handle.time() < &epoch {
            // Changes of earlier epochs may still come from upstream.
            self.waiting.push_back((epoch, rows));
            return Ok(());
        }
        self.send(epoch, rows)
    }

    /// No change before this epoch will come.
    pub(super) fn advance(&mut self, epoch: Epoch) {
        self.send_waiting(epoch);
        if self.handle.time() < &epoch {
            self.handle.advance_to(epoch);
            while self.positions.get(1).is_some_and(|(from, _)| *from <= epoch) {
                self.positions.pop_front();
            }
        }
    }

    fn send_waiting(&mut self, up_to: Epoch) {
        while self.waiting.front().is_some_and(|(epoch, _)| *epoch <= up_to) {
            if let Some((epoch, rows)) = self.waiting.pop_front()
                && self.handle.time() <= &epoch
            {
                self.handle.advance_to(epoch);
                self.handle.send_batch(&mut DeltaContainer(Some(rows)));
            }
        }
    }

    fn send(&mut self, epoch: Epoch, delta: Delta) -> Result<()> {
        if delta.is_empty() {
            return Ok(());
        }
        if self.handle.time() > &epoch {
            let (name, now) = (&self.relation.name, self.handle.time());
            return Err(Error::Dataflow(format!("a change of {name} for epoch {epoch} came at epoch {now}")));
        }
        self.handle.advance_to(epoch);
        self.handle.send_batch(&mut DeltaContainer(Some(delta)));
        Ok(())
    }
}
