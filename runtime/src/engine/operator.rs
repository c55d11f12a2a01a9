//! Runs one [`Operator`] as a timely operator.
//!
//! Timely hands over rows of several epochs in any order; an operator sees one epoch after the other. So rows are
//! stashed by epoch, and the lowest epoch is absorbed as soon as no input can bring an earlier one; when no input can
//! bring more of it, it is closed. A capability is held for each epoch in the stash, and from the beginning one for
//! the first epoch, so that it is closed even without rows.
//!
//! An error or a panic of the operator fails its dataflow from that epoch on; rows are then consumed and thrown away,
//! so that epochs go on completing for everybody else.

use std::any::Any;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use timely::dataflow::Scope;
use timely::dataflow::Stream;
use timely::dataflow::channels::pushers::Output as Outlet;
use timely::dataflow::operators::Capability;
use timely::dataflow::operators::InputCapability;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::progress::frontier::MutableAntichain;
use timely::progress::operate::FrontierInterest;

use super::container::DeltaContainer;
use super::control::Control;
use super::exchange::Route;
use crate::Epoch;
use crate::delta::Delta;
use crate::error::Result;
use crate::operators::{Operator, Output};

/// A stream of deltas within a dataflow.
pub(super) type Deltas<'scope> = Stream<'scope, Epoch, DeltaContainer>;

/// Where the rows go that an operator emits, other than to the next operator.
pub(super) type Tap = Box<dyn FnMut(Epoch, Delta)>;

/// What an operator is put into a dataflow with.
pub(super) struct Placement<'scope> {
    /// For messages and logs.
    pub(super) name: String,
    /// The implementation; none if it could not be built (the dataflow has failed then).
    pub(super) operator: Option<Box<dyn Operator>>,
    /// The inputs and how their rows travel, in port order; never empty.
    pub(super) inputs: Vec<(Deltas<'scope>, Route)>,
    /// Whether the first epoch is closed on this worker even without rows.
    pub(super) closes_first_epoch: bool,
    /// Whether it is closed on this worker when the dataflow has been filled, even without rows.
    pub(super) waits_for_fill: bool,
    /// Takes the emitted rows instead of the output stream.
    pub(super) tap: Option<Tap>,
}

/// What is known of one epoch that is not closed.
struct Pending {
    /// For the rows and for the errors.
    capabilities: [Capability<Epoch>; 2],
    /// Rows that were not absorbed yet, with their ports.
    deltas: Vec<(usize, Delta)>,
}

struct Adapter {
    name: String,
    operator: Option<Box<dyn Operator>>,
    control: Rc<Control>,
    pending: BTreeMap<Epoch, Pending>,
    /// For the first epoch, until it is known.
    initial: Option<[Capability<Epoch>; 2]>,
    /// For the epoch in which the fill is complete, until it has come.
    waiting: Option<[Capability<Epoch>; 2]>,
    tap: Option<Tap>,
    emitted: Output,
}

/// Adds an operator to a dataflow. Returns the streams of its rows and of its failed rows.
pub(super) fn place<'scope>(
    scope: Scope<'scope, Epoch>,
    control: &Rc<Control>,
    placement: Placement<'scope>,
) -> (Deltas<'scope>, Deltas<'scope>) {
    let Placement { name, operator, inputs, closes_first_epoch, waits_for_fill, tap } = placement;
    let mut builder = OperatorBuilder::new(name.clone(), scope);
    let mut handles: Vec<_> = inputs.into_iter().map(|(stream, route)| builder.new_input(stream, route)).collect();
    // Nothing is to be done at a frontier for which no capability is held.
    (0..handles.len()).for_each(|port| builder.set_notify_for(port, FrontierInterest::IfCapability));
    let (mut rows_outlet, rows) = builder.new_output::<DeltaContainer>();
    let (mut errors_outlet, errors) = builder.new_output::<DeltaContainer>();
    let control = control.clone();
    builder.build(move |capabilities| {
        let capabilities = <[Capability<Epoch>; 2]>::try_from(capabilities).ok();
        let waiting = capabilities.clone().filter(|_| waits_for_fill);
        let initial = capabilities.filter(|_| closes_first_epoch);
        let (pending, emitted) = (BTreeMap::new(), Output::default());
        let mut adapter = Adapter { name, operator, control, pending, initial, waiting, tap, emitted };
        move |frontiers: &[MutableAntichain<Epoch>]| {
            for (port, handle) in handles.iter_mut().enumerate() {
                handle.for_each(|capability, container| adapter.stash(port, &capability, container));
            }
            adapter.run(frontiers, &mut rows_outlet, &mut errors_outlet);
        }
    });
    (rows, errors)
}

type DeltaOutlet = Outlet<Epoch, DeltaContainer>;

impl Adapter {
    fn stash(&mut self, port: usize, capability: &InputCapability<Epoch>, container: &mut DeltaContainer) {
        let Some(epoch) = capability.least().copied() else { return };
        let Some(delta) = container.0.take() else { return };
        if self.control.failed(epoch) {
            return;
        }
        let pending = self.pending.entry(epoch).or_insert_with(|| Pending {
            capabilities: [capability.delayed(&epoch, 0), capability.delayed(&epoch, 1)],
            deltas: Vec::new(),
        });
        pending.deltas.push((port, delta));
    }

    /// Absorbs and closes what the frontiers allow.
    fn run(&mut self, frontiers: &[MutableAntichain<Epoch>], rows: &mut DeltaOutlet, errors: &mut DeltaOutlet) {
        // The earliest epoch that an input may still bring; none when all inputs have ended.
        let earliest = frontiers.iter().filter_map(|frontier| frontier.frontier().first().copied()).min();
        self.begin(earliest);
        self.wait(earliest);
        while let Some(mut entry) = self.pending.first_entry() {
            let epoch = *entry.key();
            if self.control.failed(epoch) {
                entry.remove();
                continue;
            }
            if earliest.is_some_and(|earliest| earliest < epoch) {
                break;
            }
            let deltas = std::mem::take(&mut entry.get_mut().deltas);
            let closing = earliest.is_none_or(|earliest| earliest > epoch);
            for (port, delta) in deltas {
                self.guard(epoch, |operator, output| operator.absorb(port, delta, output));
            }
            if closing {
                self.guard(epoch, |operator, output| operator.close(epoch, output));
            }
            self.emit(epoch, rows, errors);
            if !closing {
                break;
            }
            self.pending.remove(&epoch);
        }
    }

    /// Turns the capability held from the beginning into one for the first epoch, once that is known.
    fn begin(&mut self, earliest: Option<Epoch>) {
        if self.initial.is_none() {
            return;
        }
        let first = self.control.first_epoch();
        if let Some(first) = first
            && !self.control.failed(first)
            && let Some([for_rows, for_errors]) = self.initial.take()
        {
            let capabilities = [for_rows.delayed(&first), for_errors.delayed(&first)];
            self.pending.entry(first).or_insert(Pending { capabilities, deltas: Vec::new() });
        } else if first.is_some() || earliest.is_none() {
            // Failed, or dropped before any epoch.
            self.initial = None;
        }
    }

    /// Moves the capability for the end of the fill along with the epochs, until that end has come.
    fn wait(&mut self, earliest: Option<Epoch>) {
        let Some(capabilities) = &mut self.waiting else { return };
        let failed = self.control.failed(*capabilities[0].time());
        // Without more input, the dataflow was dropped before its fill came to an end.
        let Some(earliest) = earliest.filter(|_| !failed) else {
            self.waiting = None;
            return;
        };
        match self.control.filling().completion() {
            Some(completion) if completion <= earliest => {
                if let Some([for_rows, for_errors]) = self.waiting.take() {
                    let capabilities = [for_rows.delayed(&completion), for_errors.delayed(&completion)];
                    self.pending.entry(completion).or_insert(Pending { capabilities, deltas: Vec::new() });
                }
            }
            // The end is known before the epoch in which it comes is over.
            _ => capabilities
                .iter_mut()
                .filter(|held| *held.time() < earliest)
                .for_each(|held| held.downgrade(&earliest)),
        }
    }

    /// Runs the operator for an epoch; if it fails in any way, so does the dataflow.
    fn guard(&mut self, epoch: Epoch, call: impl FnOnce(&mut dyn Operator, &mut Output) -> Result<()>) {
        if self.control.failed(epoch) {
            return;
        }
        let Some(operator) = self.operator.as_deref_mut() else { return };
        self.control.enter(epoch);
        let emitted = &mut self.emitted;
        // The operator is dropped after a panic, so nobody sees what it left half done.
        let outcome = catch_unwind(AssertUnwindSafe(|| call(operator, emitted)));
        let reason = match outcome {
            Ok(Ok(())) => return,
            Ok(Err(error)) => format!("{}: {error}", self.name),
            Err(payload) => format!("{}: internal error: {}", self.name, panic_message(payload.as_ref())),
        };
        self.control.fail(epoch, &reason);
        self.operator = None;
    }

    fn emit(&mut self, epoch: Epoch, rows: &mut DeltaOutlet, errors: &mut DeltaOutlet) {
        let emitted = std::mem::take(&mut self.emitted);
        if self.control.failed(epoch) {
            return;
        }
        let Some(pending) = self.pending.get(&epoch) else { return };
        self.control.enter(epoch);
        match &mut self.tap {
            Some(tap) => emitted.rows.into_iter().for_each(|delta| tap(epoch, delta)),
            None => give(emitted.rows, rows, &pending.capabilities[0]),
        }
        give(emitted.errors, errors, &pending.capabilities[1]);
    }
}

fn give(deltas: Vec<Delta>, outlet: &mut DeltaOutlet, capability: &Capability<Epoch>) {
    if deltas.is_empty() {
        return;
    }
    let mut session = outlet.activate();
    for delta in deltas {
        session.give(capability, &mut DeltaContainer(Some(delta)));
    }
}

/// What a panic said.
pub(super) fn panic_message(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        return (*text).to_owned();
    }
    payload.downcast_ref::<String>().cloned().unwrap_or_else(|| "panic".to_owned())
}
