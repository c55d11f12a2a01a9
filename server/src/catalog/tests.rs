//! The catalog's invariants.

use super::*;
use entry::{ENTRY_VERSION, StoredField};

fn view(id: u32, name: &str, depends_on: &[u32]) -> CatalogChange {
    let fields =
        vec![StoredField { name: "a".into(), type_name: "int4".into(), nullable: true, metadata: BTreeMap::new() }];
    CatalogChange::Put(StoredEntry {
        version: ENTRY_VERSION,
        id,
        entry: Entry::View(ViewEntry {
            schema: "public".into(),
            name: name.into(),
            query: "SELECT 1 AS a".into(),
            columns: Vec::new(),
            search_path: vec!["public".into()],
            fields,
            depends_on: depends_on.to_vec(),
        }),
    })
}

#[test]
fn names_resolve_along_the_search_path() {
    let catalog = CatalogVersion::initial().with_changes(&[view(2000, "v", &[])], 0).expect("applies");
    let path = ["nowhere".to_owned(), "public".to_owned()];
    assert!(matches!(catalog.resolve(None, "v", &path), Some(Object::View(_))));
    assert!(catalog.resolve(Some("nowhere"), "v", &path).is_none());
    assert_eq!(catalog.relation_names(&path), vec!["v".to_owned()]);
    assert_eq!(catalog.relation_names(&[]), vec!["public.v".to_owned()]);
    assert_eq!(catalog.next_id(), 2001);
}

#[test]
fn dependents_are_found_transitively_and_ids_are_not_reused() {
    let changes = [view(2000, "a", &[]), view(2001, "b", &[2000]), view(2002, "c", &[2001]), view(2003, "d", &[])];
    let catalog = CatalogVersion::initial().with_changes(&changes, 0).expect("applies");
    let names: Vec<String> = catalog.dependents(&[2000].into()).iter().map(|object| object.name.clone()).collect();
    assert_eq!(names, ["b", "c"]);
    let removed = catalog.with_changes(&[CatalogChange::Remove(2003)], 0).expect("applies");
    assert_eq!(removed.next_id(), 2004);
    assert!(removed.object_named("public", "d").is_none());
    assert!(catalog.object_named("public", "d").is_some(), "older versions stay as they are");
}
