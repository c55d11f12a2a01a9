//! The structural rules of the tree, as functions from the checkout to a list of complaints. Each complaint says what to do instead.

use anyhow::{Context, Result};
use regex::Regex;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::process::checkout;

/// Longest file, in lines.
pub const FILE_LINES_MAX: usize = 600;
/// Longest function, in lines.
pub const FUNCTION_LINES_MAX: usize = 60;

/// A file of the checkout.
pub struct Source {
    /// Path from the root.
    pub path: String,
    /// Text.
    pub text: String,
}

impl Source {
    /// Lines of code: number from 1 and text, without comments and without what stands after `mod tests`.
    fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate().map(|(number, line)| (number + 1, line));
        lines.take_while(|(_, line)| *line != "mod tests {").filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("tests.rs") || self.path.starts_with("sql-tests/")
    }
}

/// All files that git tracks, with one of these endings.
pub fn sources(endings: &[&str]) -> Result<Vec<Source>> {
    let mut found = Vec::new();
    for path in tracked()? {
        let full = checkout().join(&path);
        if endings.iter().any(|ending| path.ends_with(ending)) && full.exists() {
            let text = std::fs::read_to_string(&full).with_context(|| path.clone())?;
            found.push(Source { path, text });
        }
    }
    Ok(found)
}

/// All paths that git tracks.
pub fn tracked() -> Result<Vec<String>> {
    let output = Command::new("git").arg("-C").arg(checkout()).args(["ls-files"]).output().context("git")?;
    Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_string).collect())
}

/// Entries of the top level.
pub fn top_level() -> Result<Vec<String>> {
    const ALLOWED: [&str; 20] = [
        ".cargo",
        ".ci",
        ".clippy.toml",
        ".config",
        ".dockerignore",
        ".github",
        ".gitignore",
        ".rustfmt.toml",
        "CHANGELOG.md",
        "Cargo.lock",
        "Cargo.toml",
        "LICENSE",
        "Makefile",
        "README.md",
        "docker",
        "docs",
        "planner",
        "runtime",
        "server",
        "sql-tests",
    ];
    let mut entries: Vec<String> =
        tracked()?.iter().filter_map(|path| path.split('/').next().map(str::to_string)).collect();
    entries.dedup();
    let unknown = entries.into_iter().filter(|entry| !ALLOWED.contains(&entry.as_str()));
    Ok(unknown.map(|entry| format!("{entry}: the top level stays as it is; find it a place below")).collect())
}

/// Edges between our crates.
pub fn crate_edges() -> Result<Vec<String>> {
    let allowed: BTreeMap<&str, (&[&str], &[&str])> = BTreeMap::from([
        ("planner/plan", (&[][..], &[][..])),
        ("planner", (&["plan"][..], &["runtime"][..])),
        ("runtime", (&["plan"][..], &[][..])),
        ("server", (&["planner", "runtime", "plan"][..], &[][..])),
        ("sql-tests", (&["planner", "runtime"][..], &["planner", "runtime"][..])),
    ]);
    let mut complaints = Vec::new();
    for (folder, (normal, dev)) in allowed {
        let text = std::fs::read_to_string(checkout().join(folder).join("Cargo.toml"))?;
        let mut section = String::new();
        for line in text.lines() {
            if line.starts_with('[') {
                section = line.to_string();
                continue;
            }
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            let ours = ["plan", "planner", "runtime", "server", "sql-tests"].contains(&name);
            let fine = match section.as_str() {
                "[dependencies]" => normal.contains(&name),
                "[dev-dependencies]" => normal.contains(&name) || dev.contains(&name),
                _ => true,
            };
            if ours && !fine {
                complaints.push(format!(
                    "{folder} must not depend on {name}; see docs/src/architecture.md for who may know whom"
                ));
            }
        }
    }
    Ok(complaints)
}

/// A word that may stand only in some places: pattern, prefixes of the paths where it may, what to use elsewhere.
const CONFINED: [(&str, &[&str], &str); 8] = [
    (r"\btimely::", &["runtime/src/engine/"], "the engine's own interface in runtime/src/engine/mod.rs"),
    (r"\brocksdb::", &["runtime/src/state/rocks.rs"], "trait Store"),
    (r"\bsqlparser::", &["planner/src/"], "planner::Parsed and Statement"),
    (r"(^|[^:\w])pgwire::", &["server/src/pgwire/"], "the session's own types"),
    (r"\baxum::", &["server/src/http/"], "server/src/http"),
    (r"(^|[^:\w]|std::time::)(SystemTime|Instant)::now\(", &["runtime/src/clock.rs"], "runtime::clock"),
    (
        r"\b(tokio::spawn|tokio::task::spawn\w*|thread::spawn|thread::Builder::new)\b",
        &["server/src/task.rs", "runtime/src/engine/"],
        "server/src/task.rs",
    ),
    // The engine's reports are bounded by the epochs under way.
    (r"\bunbounded(_channel)?\(\)", &["runtime/src/engine/"], "a bounded channel"),
];

/// Foreign crates, clocks and threads only where they belong.
pub fn confinement(files: &[Source]) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    for (pattern, places, instead) in CONFINED {
        let regex = Regex::new(pattern)?;
        for file in files.iter().filter(|file| !file.is_test()) {
            if places.iter().any(|place| file.path.starts_with(place)) {
                continue;
            }
            for (number, line) in file.code().filter(|(_, line)| regex.is_match(line)) {
                complaints.push(format!("{}:{number}: use {instead} here: {}", file.path, line.trim()));
            }
        }
    }
    Ok(complaints)
}

/// What is unfinished or left over.
pub fn leftovers(files: &[Source]) -> Result<Vec<String>> {
    let regex = Regex::new(r"\b(todo!|unimplemented!|dbg!)|\b(TODO|FIXME|XXX|HACK)\b")?;
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| !file.path.ends_with("sql-tests/src/tidy.rs")) {
        for (number, line) in file.text.lines().enumerate().filter(|(_, line)| regex.is_match(line)) {
            let place = format!("{}:{}", file.path, number + 1);
            complaints.push(format!("{place}: finish it, or write down what it does not do: {}", line.trim()));
        }
    }
    Ok(complaints)
}

/// Every module says what it is.
pub fn module_heads(files: &[Source]) -> Vec<String> {
    let missing = files.iter().filter(|file| {
        let first = file.text.lines().find(|line| !line.trim().is_empty() && !line.starts_with("#!["));
        !first.is_some_and(|line| line.starts_with("//!") || line.starts_with("// Generated"))
    });
    missing.map(|file| format!("{}: begin with //! and say what its objects mean", file.path)).collect()
}

/// Sizes of files and functions that exceed the limits: name to lines.
pub fn sizes(files: &[Source]) -> Result<BTreeMap<String, usize>> {
    let function = Regex::new(r"^(\s*)(pub(\([^)]*\))? )?(default |const |async |unsafe )*fn (\w+)")?;
    let mut found = BTreeMap::new();
    for file in files {
        let lines: Vec<&str> = file.text.lines().collect();
        if lines.len() > FILE_LINES_MAX {
            found.insert(file.path.clone(), lines.len());
        }
        for (at, line) in lines.iter().enumerate() {
            let Some(captures) = function.captures(line) else { continue };
            let end = format!("{}}}", &captures[1]);
            let Some(length) = lines[at..].iter().position(|line| *line == end) else { continue };
            // A declaration without a body ends before.
            let body = lines[at..].iter().take(length).any(|line| line.ends_with('{'));
            if body && length + 1 > FUNCTION_LINES_MAX && !lines[at].ends_with(';') {
                let name = format!("{}::{}", file.path, &captures[5]);
                let longest = found.entry(name).or_insert(0);
                *longest = (*longest).max(length + 1);
            }
        }
    }
    Ok(found)
}

/// Today's exceptions from the sizes: `sql-tests/tests/tidy.allow`.
pub fn allowed_sizes() -> Result<BTreeMap<String, usize>> {
    let text = std::fs::read_to_string(checkout().join("sql-tests/tests/tidy.allow"))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (name, size) = line.rsplit_once(' ').with_context(|| line.to_string())?;
            Ok((name.to_string(), size.parse()?))
        })
        .collect()
}

/// Paths in architecture.md exist, and every folder with code is mentioned there.
pub fn architecture() -> Result<Vec<String>> {
    let text = std::fs::read_to_string(checkout().join("docs/src/architecture.md"))?;
    let path = Regex::new(r"`((?:server|planner|runtime|sql-tests|docs|docker|\.ci|\.config)/[\w./-]+)`")?;
    let mut complaints = Vec::new();
    for captures in path.captures_iter(&text) {
        if !checkout().join(&captures[1]).exists() {
            complaints.push(format!("docs/src/architecture.md: {} does not exist", &captures[1]));
        }
    }
    let mut folders: Vec<String> = sources(&[".rs"])?
        .iter()
        .filter_map(|file| Path::new(&file.path).parent().map(|folder| folder.display().to_string()))
        .collect();
    folders.sort();
    folders.dedup();
    for folder in folders {
        if !text.contains(&folder) {
            complaints.push(format!("docs/src/architecture.md: {folder}/ is not mentioned"));
        }
    }
    Ok(complaints)
}

/// Every operator is in the list and has an .slt file beside it.
pub fn operators() -> Result<Vec<String>> {
    let folder = checkout().join("runtime/src/operators");
    let list = std::fs::read_to_string(folder.join("mod.rs"))?;
    let mut complaints = Vec::new();
    for entry in std::fs::read_dir(&folder)? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_code = path.is_dir() || path.extension().is_some_and(|extension| extension == "rs");
        // Parts that all operators share, and the two that end and begin a dataflow, which no query asks for.
        if !is_code
            || ["mod", "harness", "ordered", "failure", "tests", "materialize", "import"].contains(&name.as_str())
        {
            continue;
        }
        if !list.contains(&format!("{name}::")) {
            complaints.push(format!("runtime/src/operators/{name}: add it to the list in mod.rs"));
        }
        let cases = if path.is_dir() { path.join("cases.slt") } else { folder.join(format!("{name}.slt")) };
        if !cases.exists() {
            complaints.push(format!("runtime/src/operators/{name}: no .slt file beside it"));
        }
    }
    Ok(complaints)
}

/// The form of the changelog.
pub fn changelog() -> Result<Vec<String>> {
    let text = std::fs::read_to_string(checkout().join("CHANGELOG.md"))?;
    let heading = Regex::new(r"^## \[(Unreleased|\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d$)")?;
    let mut complaints = Vec::new();
    for line in text.lines() {
        let good = match line {
            line if line.starts_with("### ") => {
                ["Added", "Changed", "Fixed", "Removed"].contains(&line.trim_start_matches("### "))
            }
            line if line.starts_with("## ") => heading.is_match(line),
            _ => true,
        };
        if !good {
            complaints.push(format!("CHANGELOG.md: use Added, Changed, Fixed, Removed under a version: {line}"));
        }
    }
    Ok(complaints)
}
