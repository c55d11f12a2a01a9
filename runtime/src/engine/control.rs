//! What the operators of one dataflow on one worker share: the epoch in hand, the first epoch, and failure.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use crate::Epoch;
use crate::operators::Filling;

/// Shared by the operators of a dataflow on a worker.
#[derive(Debug)]
pub(super) struct Control {
    /// The epoch for which an operator of this worker runs; state tables write under it.
    epoch: Rc<Cell<Epoch>>,
    /// The first epoch that was sealed after the dataflow was created.
    first_epoch: Cell<Option<Epoch>>,
    /// Work for this and later epochs is thrown away.
    failed_at: Cell<Epoch>,
    /// Why, when it failed on this worker.
    reason: RefCell<Option<String>>,
    /// Whether it is being filled.
    filling: Filling,
}

impl Control {
    /// A dataflow that has not failed.
    pub(super) fn new(epoch: Rc<Cell<Epoch>>, filling: Filling) -> Self {
        let (failed_at, reason) = (Cell::new(Epoch::MAX), RefCell::new(None));
        Control { epoch, first_epoch: Cell::new(None), failed_at, reason, filling }
    }

    /// Whether it is being filled.
    pub(super) fn filling(&self) -> &Filling {
        &self.filling
    }

    /// The cell under whose epoch state is written.
    pub(super) fn epoch_cell(&self) -> Rc<Cell<Epoch>> {
        self.epoch.clone()
    }

    /// The epoch for which an operator runs.
    pub(super) fn epoch(&self) -> Epoch {
        self.epoch.get()
    }

    /// An operator is about to run for an epoch.
    pub(super) fn enter(&self, epoch: Epoch) {
        self.epoch.set(epoch);
    }

    /// The first epoch, once it is sealed.
    pub(super) fn first_epoch(&self) -> Option<Epoch> {
        self.first_epoch.get()
    }

    /// An epoch is sealed: if it is the first one, it is remembered.
    pub(super) fn seal(&self, epoch: Epoch) {
        if self.first_epoch.get().is_none() {
            self.first_epoch.set(Some(epoch));
        }
    }

    /// Whether work for an epoch is to be thrown away.
    pub(super) fn failed(&self, epoch: Epoch) -> bool {
        epoch >= self.failed_at.get()
    }

    /// The dataflow fails with this epoch. The first reason is kept.
    pub(super) fn fail(&self, epoch: Epoch, reason: &str) {
        self.abandon(epoch);
        self.reason.borrow_mut().get_or_insert_with(|| reason.to_owned());
    }

    /// The dataflow failed elsewhere with this epoch.
    pub(super) fn abandon(&self, epoch: Epoch) {
        self.failed_at.set(self.failed_at.get().min(epoch));
    }

    /// The reason for which it failed on this worker, once.
    pub(super) fn take_reason(&self) -> Option<String> {
        self.reason.borrow_mut().take()
    }
}
