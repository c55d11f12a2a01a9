//! Renders the reference page of functions (`docs/src/reference/functions.md`) from [`FUNCTIONS`].

use std::fmt::Write;

use super::{FUNCTIONS, FunctionDef, Implementation};

/// The page's markdown text.
pub fn render() -> String {
    let mut page = String::from(
        "# Functions\n\n\
         All scalar, aggregate and window functions of DataFusion are available. The functions on this page are \
         Tidemill's own: windows over event time, and functions and aggregates whose result and type follow PostgreSQL. This page is \
         generated from the list `FUNCTIONS` in `runtime/src/functions/mod.rs`.\n",
    );
    section(&mut page, "Scalar functions", |implementation| matches!(implementation, Implementation::Scalar(_)));
    section(&mut page, "Aggregate functions", |implementation| matches!(implementation, Implementation::Aggregate(_)));
    section(&mut page, "Window functions", |implementation| matches!(implementation, Implementation::Window(_)));
    page
}

fn section(page: &mut String, title: &str, belongs: impl Fn(&Implementation) -> bool) {
    page.push_str(&format!("\n## {title}\n"));
    for function in FUNCTIONS.iter().filter(|function| belongs(&function.implementation)) {
        entry(page, function);
    }
}

fn entry(page: &mut String, function: &FunctionDef) {
    // Writing to a String cannot fail.
    let _ =
        write!(page, "\n### {}\n\n```text\n{}\n```\n\n{}\n", function.name, function.forms.join("\n"), function.text);
    if !function.examples.is_empty() {
        page.push_str("\n| query | result |\n|---|---|\n");
        for example in function.examples {
            let _ = writeln!(page, "| `{}` | `{}` |", example.query.replace('|', "\\|"), example.result);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::render;

    /// The page is in git, so that a new function shows its text in review.
    #[test]
    fn the_page_in_the_book_is_current() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/src/reference/functions.md");
        if std::env::var_os("REWRITE").is_some() {
            std::fs::write(path, render()).expect("the page can be written");
        }
        let page = std::fs::read_to_string(path).expect("the page is there");
        let command = "REWRITE=1 cargo test --release -p runtime --lib the_page_in_the_book";
        assert!(page == render(), "docs/src/reference/functions.md is out of date; run {command}");
    }
}
