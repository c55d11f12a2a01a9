//! The structural rules of the tree; see `sql_tests::tidy`.

use sql_tests::{mutations, tidy};

fn check(complaints: Vec<String>) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

fn rust() -> Vec<tidy::Source> {
    tidy::sources(&[".rs"]).expect("the checkout")
}

#[test]
fn top_level() {
    check(tidy::top_level().expect("the checkout"));
}

#[test]
fn crate_edges() {
    check(tidy::crate_edges().expect("the manifests"));
}

#[test]
fn confinement() {
    check(tidy::confinement(&rust()).expect("the patterns"));
}

#[test]
fn leftovers() {
    check(tidy::leftovers(&rust()).expect("the pattern"));
}

#[test]
fn module_heads() {
    check(tidy::module_heads(&rust()));
}

#[test]
fn operators() {
    check(tidy::operators().expect("the operators"));
}

/// Every mutation still has its place, and every operator a mutation; see `sql_tests::mutations`.
#[test]
fn mutations_fit() {
    let all = mutations::all().expect("the lists");
    check(mutations::complaints(&all).expect("the operators"));
}

#[test]
fn changelog() {
    check(tidy::changelog().expect("the changelog"));
}

#[test]
fn architecture() {
    check(tidy::architecture().expect("the map"));
}

/// Sizes may only shrink: an entry that is too small or not needed any more is as wrong as a missing one.
#[test]
fn sizes() {
    let found = tidy::sizes(&rust()).expect("the pattern");
    let allowed = tidy::allowed_sizes().expect("tidy.allow");
    let mut complaints = Vec::new();
    for (name, lines) in &found {
        match allowed.get(name) {
            None => complaints.push(format!("{name} {lines}: split it at a natural seam")),
            Some(most) if lines > most => {
                complaints.push(format!("{name}: {lines} lines, more than its {most} so far"))
            }
            Some(_) => {}
        }
    }
    for (name, most) in &allowed {
        match found.get(name) {
            None => complaints.push(format!("{name}: small enough now; remove it from tidy.allow")),
            Some(lines) if lines + 20 < *most => complaints.push(format!("{name}: write {lines} into tidy.allow")),
            Some(_) => {}
        }
    }
    check(complaints);
}
