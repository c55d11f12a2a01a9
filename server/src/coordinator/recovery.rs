//! From what the store holds to a running coordinator.
//!
//! The last written epoch is the state. Views that were being filled when the server stopped are dropped. The others
//! are planned again from their SQL, in the order of their ids, and go on from their stored state; a view whose plan
//! is no longer the one that wrote its state is marked as failed, and its readers are told to create it again.

use std::collections::HashMap;
use std::sync::Arc;

use plan::{Dataflow, RelationId};
use planner::Planner;
use runtime::state::Store;
use runtime::state::store::EpochBatch;
use runtime::{DataflowDescription, DataflowId, Epoch, EpochResult, Runtime, RuntimeConfig};

use super::ddl::state_ranges;
use crate::catalog::entry::{Entry, MaterializedEntry, Status, StoredEntry};
use crate::catalog::{CatalogChange, CatalogObject, CatalogVersion, ObjectKind, store as catalog_store};
use crate::error::ServerError;

/// What recovery found and started.
pub struct Recovered {
    /// The catalog.
    pub catalog: Arc<CatalogVersion>,
    /// The newest epoch.
    pub epoch: Epoch,
    /// The workers, with all dataflows.
    pub runtime: Runtime,
    /// Where their results arrive.
    pub results: crossbeam_channel::Receiver<EpochResult>,
    /// Running dataflows, with the relations that they read.
    pub running: HashMap<DataflowId, Vec<RelationId>>,
    /// First unused chunk number of each table without a key.
    pub chunks: HashMap<RelationId, i64>,
}

/// Recovers a store.
pub fn recover(store: &Arc<dyn Store>, config: RuntimeConfig, planner: &Planner) -> Result<Recovered, ServerError> {
    let snapshot = store.snapshot();
    let loaded = catalog_store::load(snapshot.as_ref())?;
    let mut catalog = loaded.version;
    let mut repairs = Repairs::default();
    drop_unfinished(&mut catalog, &mut repairs)?;
    let dataflows = plan_views(&mut catalog, &mut repairs, planner)?;
    let mut epoch = snapshot.epoch();
    drop(snapshot);
    if !repairs.changes.is_empty() {
        epoch += 1;
        let writes = catalog_store::writes(&repairs.changes, catalog.next_id())?;
        let batch = EpochBatch { epoch, writes, deleted_ranges: repairs.deleted_ranges };
        store.commit(&batch, runtime::state::Sync::Now)?;
    }
    let (runtime, results) = Runtime::start(config, store.clone(), runtime::operators::definitions())?;
    let mut running = HashMap::new();
    for description in dataflows {
        let inputs = description.plan.imports().map(|(relation, _)| relation.id).collect();
        running.insert(description.output.id, inputs);
        runtime.create(description)?;
    }
    Ok(Recovered { catalog: Arc::new(catalog), epoch, runtime, results, running, chunks: loaded.chunks })
}

/// What recovery changes in the catalog, written in an epoch of its own.
#[derive(Default)]
struct Repairs {
    changes: Vec<CatalogChange>,
    deleted_ranges: Vec<(bytes::Bytes, bytes::Bytes)>,
}

impl Repairs {
    fn apply(&mut self, catalog: &mut CatalogVersion, change: CatalogChange) -> Result<(), ServerError> {
        *catalog = catalog.with_changes(std::slice::from_ref(&change), catalog.next_id())?;
        self.changes.push(change);
        Ok(())
    }
}

fn drop_unfinished(catalog: &mut CatalogVersion, repairs: &mut Repairs) -> Result<(), ServerError> {
    let unfinished: Vec<Arc<CatalogObject>> =
        catalog.objects().filter(|object| !object.is_visible()).cloned().collect();
    for object in unfinished {
        tracing::info!(view = object.display_name(), "dropping a materialized view that was not complete");
        repairs.deleted_ranges.extend(state_ranges(&object.entry));
        repairs.apply(catalog, CatalogChange::Remove(object.id))?;
    }
    Ok(())
}

/// Plans all views that are up to date; those that cannot go on are marked as failed, with all that read them.
fn plan_views(
    catalog: &mut CatalogVersion,
    repairs: &mut Repairs,
    planner: &Planner,
) -> Result<Vec<DataflowDescription>, ServerError> {
    let views: Vec<Arc<CatalogObject>> = catalog.objects().cloned().collect();
    let mut failed = std::collections::BTreeSet::new();
    let mut dataflows = Vec::new();
    for object in views {
        let Entry::MaterializedView(entry) = &object.entry.entry else { continue };
        if entry.status != Status::Ready {
            continue;
        }
        let lost_input = catalog.dependents(&failed).iter().any(|dependent| dependent.id == object.id);
        let planned = if lost_input {
            Err("a view that it reads has failed".to_owned())
        } else {
            plan_view(&object, entry, catalog, planner)
        };
        match planned {
            Ok(description) => dataflows.push(description),
            Err(reason) => {
                tracing::error!(view = object.display_name(), reason, "a materialized view cannot go on");
                failed.insert(object.id);
                let mut stored: StoredEntry = object.entry.as_ref().clone();
                if let Entry::MaterializedView(view) = &mut stored.entry {
                    view.status = Status::Failed(reason);
                }
                repairs.apply(catalog, CatalogChange::Put(stored))?;
            }
        }
    }
    Ok(dataflows)
}

fn plan_view(
    object: &CatalogObject,
    entry: &MaterializedEntry,
    catalog: &CatalogVersion,
    planner: &Planner,
) -> Result<DataflowDescription, String> {
    let ObjectKind::MaterializedView { info, rows, errors, .. } = &object.kind else {
        return Err("it is not a materialized view".to_owned());
    };
    if entry.join_order.as_ref().is_some_and(|order| order.version != planner::JOIN_ORDER_VERSION) {
        return Err(
            "this version of the server orders its joins differently, so its stored state cannot be used".to_owned()
        );
    }
    let dataflow: Dataflow = planner
        .plan_view(info, catalog)
        .and_then(|plan| planner.dataflow(&plan, info.sizes.as_ref()))
        .map_err(|error| format!("its definition cannot be planned any more: {error}"))?;
    if dataflow.fingerprint() != entry.fingerprint {
        return Err("this version of the server plans it differently, so its stored state cannot be used".to_owned());
    }
    Ok(DataflowDescription {
        output: rows.relation.clone(),
        errors: errors.relation.clone(),
        plan: Arc::new(dataflow),
        first_state_table: entry.first_state_table,
        fresh: false,
    })
}
