//! Changes of the catalog: each is worked out by its session against the newest catalog, one at a time, and then
//! takes effect in one epoch ([`DdlSet`]), all of it or nothing.
//!
//! Reading order: this file (what an epoch does with a change), [`create`], [`advice`] (what is said of a new view),
//! [`drop`].

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use plan::RelationId;
use planner::{SessionInfo, Statement};
use runtime::state::Sync;
use runtime::state::layout;
use runtime::state::store::Write;
use runtime::{DataflowDescription, DataflowId};
use tokio::sync::OwnedMutexGuard;

use self::advice::StatePolicy;
use super::commit::Answer;
use super::epoch::{EpochLoop, InFlight};
use super::fill::Fill;
use super::{Coordinator, DdlOutcome};
use crate::catalog::entry::{Entry, StoredEntry};
use crate::catalog::{CatalogChange, Stored};
use crate::error::ServerError;

pub mod advice;
pub mod create;
pub mod drop;

/// A change of the catalog with all that comes with it.
#[derive(Default)]
pub struct DdlSet {
    /// Entries.
    pub changes: Vec<CatalogChange>,
    /// The next id to give out afterwards.
    pub next_id: u32,
    /// Rows and state of dropped objects.
    pub deleted_ranges: Vec<(Bytes, Bytes)>,
    /// Rows of a new table, counters.
    pub writes: Vec<Write>,
    /// Counters of chunk numbers that are among the writes.
    pub chunks: HashMap<RelationId, i64>,
    /// Dataflows to end.
    pub ended: Vec<DataflowId>,
    /// A dataflow to create and fill.
    pub created: Option<NewDataflow>,
    /// Others wait for it until the change is published, also if the session does not.
    pub turn: Option<Turn>,
}

/// The right to change the catalog: one change at a time, each planned on the catalog that the one before led to.
pub type Turn = OwnedMutexGuard<()>;

/// A dataflow to create and fill.
pub struct NewDataflow {
    /// What it computes.
    pub description: DataflowDescription,
    /// What it reads.
    pub inputs: Vec<Stored>,
    /// Its entry.
    pub entry: StoredEntry,
}

/// Runs a statement that changes the catalog; returns when it has taken effect.
pub async fn execute(
    coordinator: &Arc<Coordinator>,
    statement: &Statement,
    session: &SessionInfo,
    policy: StatePolicy,
) -> Result<DdlOutcome, ServerError> {
    let turn = coordinator.ddl.clone().lock_owned().await;
    match statement {
        Statement::CreateSchema { name, if_not_exists } => {
            create::create_schema(coordinator, name, *if_not_exists, turn).await
        }
        Statement::CreateTable(table) => create::create_table(coordinator, table, session, turn).await,
        Statement::CreateView(view) if view.materialized => {
            create::create_materialized_view(coordinator, view, session, policy, turn).await
        }
        Statement::CreateView(view) => create::create_view(coordinator, view, session, turn).await,
        Statement::Drop(statement) => drop::drop_objects(coordinator, statement, session, turn).await,
        _ => Err(ServerError::internal("not a statement that changes the catalog")),
    }
}

/// Everything in the store that belongs to an entry.
pub fn state_ranges(entry: &StoredEntry) -> Vec<(Bytes, Bytes)> {
    let last = match &entry.entry {
        Entry::Table(_) => entry.id + 1,
        // Without state the tables end before the first one of state, which is the next object's.
        Entry::MaterializedView(view) => view.first_state_table + view.state_tables - 1,
        Entry::Schema { .. } | Entry::View(_) => return Vec::new(),
    };
    let (start, _) = layout::table_range(entry.id);
    let (_, end) = layout::table_range(last);
    vec![(start, end)]
}

impl EpochLoop {
    /// Puts a change of the catalog into an epoch.
    pub(super) fn apply_ddl(&mut self, epoch: &mut InFlight, set: DdlSet, answer: Answer) {
        if let Some(created) = set.created {
            let dataflow = created.description.output.id;
            let inputs: Vec<RelationId> = created.inputs.iter().map(|input| input.relation.id).collect();
            if let Err(error) = self.runtime.create(created.description) {
                answer.send(Err(error.into()));
                return;
            }
            self.running.insert(dataflow, inputs);
            self.fills.push(Fill {
                dataflow,
                entry: created.entry,
                inputs: created.inputs,
                current: 0,
                after: None,
                finished_in: None,
                answer,
            });
        } else {
            epoch.answers.push(answer);
        }
        for dataflow in set.ended {
            self.end_dataflow(dataflow);
            if let Some(filling) = self.fills.iter().position(|fill| fill.dataflow == dataflow) {
                let fill = self.fills.remove(filling);
                fill.answer.send(Err(ServerError::new(
                    plan::SqlState::UNDEFINED_TABLE,
                    "the view was dropped together with what it reads, before it was complete",
                )));
            }
        }
        epoch.turns.extend(set.turn);
        self.note_chunks(set.chunks);
        epoch.sync = Sync::Now;
        epoch.changes.extend(set.changes);
        epoch.next_id = epoch.next_id.max(set.next_id);
        epoch.writes.extend(set.writes);
        epoch.deleted_ranges.extend(set.deleted_ranges);
    }
}
