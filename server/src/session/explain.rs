//! EXPLAIN of a materialized view that exists: what its operators hold.

use std::ops::Range;

use planner::statement::ExplainedView;
use runtime::state::layout;
use runtime::state::store::Snapshot;

use super::Session;
use crate::catalog::entry::Entry;
use crate::error::{Result, ServerError};
use crate::task;

/// What some state tables hold.
#[derive(Default)]
struct Held {
    entries: u64,
    bytes: u64,
}

impl Session {
    /// Adds to the lines of a dataflow how many entries its operators hold at the newest epoch, and how many bytes they are
    /// before compression. It reads all of them.
    pub(super) async fn add_state(&mut self, lines: &mut [String], view: &ExplainedView) -> Result<()> {
        let published = self.coordinator.published();
        let object = published.catalog.owner(view.relation);
        let Some(Entry::MaterializedView(entry)) = object.map(|object| &object.entry.entry) else {
            return Err(ServerError::internal("a materialized view without an entry in the catalog"));
        };
        let first = entry.first_state_table;
        let rows = view.relation.0..view.relation.0 + 1;
        let table = |number: usize| first + u32::try_from(number).unwrap_or(u32::MAX - first);
        let tables = view.state.iter().map(|(line, tables)| (*line, table(tables.start)..table(tables.end)));
        let wanted: Vec<(usize, Range<u32>)> = std::iter::once((0, rows)).chain(tables).collect();
        let snapshot = published.snapshot.clone();
        let read = move || -> Result<Vec<(usize, Held)>> {
            wanted.into_iter().map(|(line, tables)| Ok((line, held(snapshot.as_ref(), tables)?))).collect()
        };
        let counted = self.guard().run(task::blocking("explain", read)).await??;
        for (line, Held { entries, bytes }) in counted {
            if let Some(line) = lines.get_mut(line) {
                line.push_str(&format!(", holds {entries} entries, {bytes} bytes"));
            }
        }
        Ok(())
    }
}

fn held(snapshot: &dyn Snapshot, tables: Range<u32>) -> Result<Held> {
    let mut held = Held::default();
    for table in tables {
        let (start, end) = layout::table_range(table);
        for entry in snapshot.scan(&start, &end) {
            let (key, value) = entry?;
            held.entries += 1;
            held.bytes += (key.len() + value.len()) as u64;
        }
    }
    Ok(held)
}
