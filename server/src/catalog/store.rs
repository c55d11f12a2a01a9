//! The catalog in the store: one entry an object under its id, and the counters of ids and of row chunks.
//!
//! Keys: `[CATALOG_TABLE][0][id u32 BE]` → JSON of a [`StoredEntry`]; `[COUNTERS_TABLE][0]["ids"]` → next id u32 BE;
//! `[COUNTERS_TABLE][0]["chunks"][table id u32 BE]` → first chunk number that was never given out, i64 BE. A counter
//! is written no later than the first row that uses a number below it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use plan::RelationId;
use runtime::state::Snapshot;
use runtime::state::layout;
use runtime::state::store::Write;

use super::entry::{Entry, StoredEntry};
use super::{CatalogChange, CatalogVersion, FIRST_ID};
use crate::error::ServerError;

/// The store's table of catalog entries.
pub const CATALOG_TABLE: u32 = 1;
/// The store's table of counters.
pub const COUNTERS_TABLE: u32 = 2;

const IDS: &[u8] = b"ids";
const CHUNKS: &[u8] = b"chunks";

/// What the store knows of catalog and counters.
pub struct Loaded {
    /// The catalog.
    pub version: CatalogVersion,
    /// First unused chunk number of each table without a key.
    pub chunks: HashMap<RelationId, i64>,
}

/// Reads catalog and counters; an empty store holds the initial ones.
pub fn load(snapshot: &dyn Snapshot) -> Result<Loaded, ServerError> {
    let mut entries = Vec::new();
    let (start, end) = layout::table_range(CATALOG_TABLE);
    for entry in snapshot.scan(&start, &end) {
        entries.push(CatalogChange::Put(StoredEntry::decode(&entry?.1)?));
    }
    let mut next_id = FIRST_ID + 1;
    let mut chunks = HashMap::new();
    let (start, end) = layout::table_range(COUNTERS_TABLE);
    let header = layout::store_key(COUNTERS_TABLE, 0, b"").len();
    for entry in snapshot.scan(&start, &end) {
        let (key, value) = entry?;
        let key = key.get(header..).unwrap_or_default();
        if key == IDS {
            next_id = u32::from_be_bytes(fixed(&value)?);
        } else if let Some(table) = key.strip_prefix(CHUNKS) {
            chunks.insert(RelationId(u32::from_be_bytes(fixed(table)?)), i64::from_be_bytes(fixed(&value)?));
        }
    }
    // `public` has no entry of its own unless it was dropped and created again: a dropped one is remembered by its
    // id being given out no more, see `dropped_public`.
    let base = if dropped_public(snapshot)? { CatalogVersion::default() } else { CatalogVersion::initial() };
    Ok(Loaded { version: base.with_changes(&entries, next_id)?, chunks })
}

fn dropped_public(snapshot: &dyn Snapshot) -> Result<bool, ServerError> {
    let key = layout::store_key(COUNTERS_TABLE, 0, b"public dropped");
    Ok(snapshot.get_many(&[key.as_ref()])?.first().is_some_and(Option::is_some))
}

fn fixed<const N: usize>(bytes: &[u8]) -> Result<[u8; N], ServerError> {
    bytes.try_into().map_err(|_| runtime::Error::Corrupted("a counter has the wrong length".into()).into())
}

/// The writes that changes of the catalog amount to: one a key, as an epoch must have it. An entry may change twice in an epoch
/// (a view is made, and is ready at once): the last change counts.
pub fn writes(changes: &[CatalogChange], next_id: u32) -> Result<Vec<Write>, ServerError> {
    let mut writes = BTreeMap::new();
    for change in changes {
        match change {
            CatalogChange::Put(entry) => writes.insert(entry_key(entry.id), Some(Bytes::from(entry.encode()?))),
            CatalogChange::Remove(FIRST_ID) => {
                let key = layout::store_key(COUNTERS_TABLE, 0, b"public dropped");
                writes.insert(key, Some(Bytes::from_static(b"1")))
            }
            CatalogChange::Remove(id) => writes.insert(entry_key(*id), None),
        };
    }
    let ids = layout::store_key(COUNTERS_TABLE, 0, IDS);
    writes.insert(ids, Some(Bytes::copy_from_slice(&next_id.to_be_bytes())));
    Ok(writes.into_iter().collect())
}

fn entry_key(id: u32) -> Bytes {
    layout::store_key(CATALOG_TABLE, 0, &id.to_be_bytes())
}

/// The write that makes chunk numbers below `next` used.
pub fn chunk_counter(table: RelationId, next: i64) -> Write {
    let mut key = CHUNKS.to_vec();
    key.extend_from_slice(&table.0.to_be_bytes());
    (layout::store_key(COUNTERS_TABLE, 0, &key), Some(Bytes::copy_from_slice(&next.to_be_bytes())))
}

/// The write that forgets a dropped table's counter.
pub fn forget_chunk_counter(table: RelationId) -> Write {
    (chunk_counter(table, 0).0, None)
}

/// A schema's entry.
pub fn schema_entry(id: u32, name: &str) -> Arc<StoredEntry> {
    Arc::new(StoredEntry { version: super::entry::ENTRY_VERSION, id, entry: Entry::Schema { name: name.to_owned() } })
}
