//! Mutations: operators broken on purpose, to show that the random test of view = query finds it.
//!
//! The files of `mutations/` list them: a name that begins with the part that is broken, what breaks, the file, an
//! expression in it, and what stands there instead:
//!
//! ```text
//! mutation: distinct.row_stays
//! breaks: a row stays when its last copy goes
//! file: runtime/src/operators/distinct.rs
//! - (before > 0) != (after > 0)
//! + before == 0 && after > 0
//! ```
//!
//! The expression stands once in the file, or once in a text (`in:`, several lines if need be) that does. Several mutations
//! may replace one expression.
//!
//! All are built at once: in a copy of the checkout each expression becomes a choice between itself and its mutations by
//! the environment variable [`VARIABLE`], which is read when it is first met. The product knows nothing of it. Then the
//! random test runs against that binary, without a mutation (there must be no difference) and with each one (there must
//! be one).

use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::equivalence::{self, Options, Summary};
use crate::process::{Program, checkout};
use crate::tidy;

/// Names the mutation by which a mutated server is broken.
pub const VARIABLE: &str = "TIDEMILL_MUTATION";
/// Where the crate is that mutations may break.
const CRATE: &str = "runtime/src/";
/// Files and folders beside the operators that no mutation has to break: what only tests use, what only lists, names and
/// orders, which have no operator in execution.
const WITHOUT_MUTATIONS: [&str; 4] = ["mod", "harness", "tests", "sort"];

/// One way to break something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mutation {
    /// What is broken, and how.
    pub name: String,
    /// What goes wrong, for people.
    pub breaks: String,
    /// Path from the root of the checkout.
    pub file: String,
    /// Where the expression is found in the file; empty if it stands there once.
    pub within: String,
    /// The expression.
    pub original: String,
    /// What stands in its place.
    pub mutated: String,
}

/// All mutations, file by file.
pub fn all() -> Result<Vec<Mutation>> {
    let folder = checkout().join("sql-tests/mutations");
    let entries = std::fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<PathBuf>>>()?;
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path)?;
        found.extend(parse(&text).with_context(|| path.display().to_string())?);
    }
    Ok(found)
}

/// The mutations of a file's text.
fn parse(text: &str) -> Result<Vec<Mutation>> {
    let mut found: Vec<Mutation> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        let (key, value) = line.split_once(' ').with_context(|| format!("no value: {line}"))?;
        if key == "mutation:" {
            found.push(Mutation { name: value.into(), ..Mutation::default() });
            continue;
        }
        let last = found.last_mut().with_context(|| format!("no mutation yet: {line}"))?;
        let part = match key {
            "breaks:" => &mut last.breaks,
            "file:" => &mut last.file,
            "in:" => &mut last.within,
            "-" => &mut last.original,
            "+" => &mut last.mutated,
            other => bail!("what is {other} in {line}"),
        };
        if !part.is_empty() {
            part.push('\n');
        }
        part.push_str(value);
    }
    Ok(found)
}

/// What is wrong with the list: an expression that is not found, or a part of the product that nothing breaks.
pub fn complaints(mutations: &[Mutation]) -> Result<Vec<String>> {
    let mut complaints = Vec::new();
    let mut by_name: BTreeMap<&str, usize> = BTreeMap::new();
    for mutation in mutations {
        *by_name.entry(&mutation.name).or_default() += 1;
        if mutation.breaks.is_empty() || mutation.mutated.is_empty() {
            complaints.push(format!("{}: say what it breaks, and what stands there instead", mutation.name));
        }
    }
    let twice = by_name.iter().filter(|(_, count)| **count > 1);
    complaints.extend(twice.map(|(name, _)| format!("{name}: there are two mutations of this name")));
    let mut by_file: BTreeMap<&str, Vec<&Mutation>> = BTreeMap::new();
    mutations.iter().for_each(|mutation| by_file.entry(&mutation.file).or_default().push(mutation));
    for (file, mutations) in by_file {
        match std::fs::read_to_string(checkout().join(file)) {
            Ok(text) => complaints.extend(mutate(file, &text, &mutations).err().map(|error| format!("{error:#}"))),
            Err(error) => complaints.push(format!("{file}: {error}")),
        }
    }
    let broken: Vec<&str> = mutations.iter().filter_map(|mutation| mutation.name.split('.').next()).collect();
    for entry in std::fs::read_dir(checkout().join(CRATE).join("operators"))? {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let is_code = path.is_dir() || path.extension().is_some_and(|extension| extension == "rs");
        if is_code && !WITHOUT_MUTATIONS.contains(&name.as_str()) && !broken.contains(&name.as_str()) {
            complaints.push(format!("{CRATE}operators/{name}: break its retraction in sql-tests/mutations ({name}.…)"));
        }
    }
    Ok(complaints)
}

/// Where the expression of a mutation stands.
fn place(file: &str, text: &str, mutation: &Mutation) -> Result<std::ops::Range<usize>> {
    let only = |what: &str, within: &str| {
        let mut places = within.match_indices(what).map(|(at, _)| at);
        match (what.is_empty(), places.next(), places.next()) {
            (false, Some(at), None) => Ok(at),
            (_, None, _) => bail!("{}: not in {file}: {what}", mutation.name),
            _ => bail!("{}: several times in {file}, or empty: {what}", mutation.name),
        }
    };
    ensure!(file.starts_with(CRATE), "{}: only {CRATE} can be mutated", mutation.name);
    let start = match mutation.within.as_str() {
        "" => only(&mutation.original, text)?,
        within => only(within, text)? + only(&mutation.original, within)?,
    };
    Ok(start..start + mutation.original.len())
}

/// The text of a file with a choice in place of every mutated expression.
fn mutate(file: &str, text: &str, mutations: &[&Mutation]) -> Result<String> {
    let mut places: BTreeMap<usize, Vec<&Mutation>> = BTreeMap::new();
    for mutation in mutations {
        places.entry(place(file, text, mutation)?.start).or_default().push(mutation);
    }
    let (mut mutated, mut done) = (String::with_capacity(2 * text.len()), 0);
    for (start, choices) in places {
        let original = &choices[0].original;
        ensure!(start >= done, "{}: overlaps with another mutation", choices[0].name);
        ensure!(choices.iter().all(|choice| choice.original == *original), "{}: begins as another", choices[0].name);
        mutated.push_str(&text[done..start]);
        mutated.push('(');
        for choice in &choices {
            mutated.push_str(&format!("if crate::mutated({:?}) {{ {} }} else ", choice.name, choice.mutated));
        }
        mutated.push_str(&format!("{{ {original} }})"));
        done = start + original.len();
    }
    mutated.push_str(&text[done..]);
    Ok(mutated)
}

/// What the mutated crate gets besides: whether a mutation is the one that the environment asks for.
fn switch() -> String {
    format!(
        "\npub(crate) fn mutated(name: &str) -> bool {{\n    \
         static ACTIVE: std::sync::LazyLock<Option<String>> = std::sync::LazyLock::new(|| std::env::var({VARIABLE:?}).ok());\n    \
         ACTIVE.as_deref() == Some(name)\n}}\n"
    )
}

/// Writes the mutated checkout. Files that are the same already are left alone, so that it is built only where it differs.
pub fn write_checkout(mutations: &[Mutation], folder: &Path) -> Result<()> {
    for path in tidy::tracked()?.iter().filter(|path| checkout().join(path).is_file()) {
        let mut bytes = std::fs::read(checkout().join(path))?;
        let here: Vec<&Mutation> = mutations.iter().filter(|mutation| mutation.file == *path).collect();
        if !here.is_empty() {
            bytes = mutate(path, &String::from_utf8(bytes)?, &here)?.into();
        }
        if *path == format!("{CRATE}lib.rs") {
            bytes.extend_from_slice(switch().as_bytes());
        }
        let target = folder.join(path);
        if std::fs::read(&target).ok().as_ref() != Some(&bytes) {
            std::fs::create_dir_all(target.parent().unwrap_or(folder))?;
            std::fs::write(target, bytes)?;
        }
    }
    Ok(())
}

/// Builds the server of a mutated checkout; its binary, beside the checkout.
pub fn build(folder: &Path, target: &Path) -> Result<PathBuf> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--locked", "-p", "server"]);
    let status = cargo.current_dir(folder).env("CARGO_TARGET_DIR", target).status().context("cargo")?;
    ensure!(status.success(), "the mutated checkout cannot be built: {}", folder.display());
    Ok(target.join("release/tidemill"))
}

/// How to look for mutations.
#[derive(Debug, Clone)]
pub struct Search {
    /// The mutated server.
    pub binary: PathBuf,
    /// Seed of the first round of every search.
    pub seed: u64,
    /// How long to look for each.
    pub time: Duration,
    /// How long to run without any, first.
    pub control_time: Duration,
    /// How many at a time.
    pub jobs: usize,
}

/// What became of a mutation.
#[derive(Debug, Clone)]
pub struct Found {
    /// Its name.
    pub name: String,
    /// The rounds, and what differed in the last one.
    pub summary: Summary,
    /// How long it took.
    pub seconds: f64,
}

impl Search {
    fn options(&self, mutation: Option<&str>, time: Duration) -> Options {
        let environment = mutation.map(|name| (VARIABLE.to_string(), name.to_string()));
        let server = Program { path: Some(self.binary.clone()), environment: environment.into_iter().collect() };
        // In steps, or what happens between them would never be seen.
        let server_arguments = vec!["--fill-rows".to_string(), "20".to_string()];
        Options { server, server_arguments, explain: mutation.is_none(), ..Options::new(self.seed, time) }
    }

    /// Runs without a mutation, then with each; prints a table. Those that were not found are an error.
    pub fn run(&self, mutations: &[Mutation]) -> Result<Vec<Found>> {
        println!("seed {}, {:?} for each of {} mutations", self.seed, self.time, mutations.len());
        if !self.control_time.is_zero() {
            let control = equivalence::run_checked(&self.options(None, self.control_time))?;
            ensure!(control.rounds > 0, "no round without a mutation");
        }
        println!("\n| mutation | what breaks | found | after | how |\n|---|---|---|---|---|");
        let (rest, found) = (Mutex::new(mutations.iter()), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            let job = || -> Result<()> {
                while let Some(mutation) = rest.lock().ok().and_then(|mut rest| rest.next()) {
                    let one = self.look_for(mutation)?;
                    found.lock().map_err(|_| anyhow::anyhow!("another search broke off"))?.push(one);
                }
                Ok(())
            };
            let jobs: Vec<_> = (0..self.jobs.max(1)).map(|_| scope.spawn(job)).collect();
            jobs.into_iter().try_for_each(|job| job.join().map_err(|_| anyhow::anyhow!("a search broke off"))?)
        })?;
        let found = found.into_inner().map_err(|_| anyhow::anyhow!("a search broke off"))?;
        let missed: Vec<&str> =
            found.iter().filter(|one| one.summary.differences.is_empty()).map(|one| one.name.as_str()).collect();
        println!("\n{} of {} mutations found, seed {}", found.len() - missed.len(), found.len(), self.seed);
        ensure!(missed.is_empty(), "not found: {}", missed.join(", "));
        Ok(found)
    }

    fn look_for(&self, mutation: &Mutation) -> Result<Found> {
        let started = Instant::now();
        let mut summary = equivalence::run(&self.options(Some(&mutation.name), self.time)).unwrap_or_else(|error| {
            Summary { differences: vec![format!("the server does not start: {error:#}")], ..Summary::default() }
        });
        let seconds = started.elapsed().as_secs_f64();
        summary.differences.truncate(1);
        let how = summary.differences.first().map_or(String::new(), |text| kind(text));
        println!(
            "| `{}` | {} | {} | {} rounds, {} changes, {seconds:.0} s | {how} |",
            mutation.name,
            mutation.breaks,
            if summary.differences.is_empty() { "**no**" } else { "yes" },
            summary.rounds,
            summary.steps,
        );
        Ok(Found { name: mutation.name.clone(), summary, seconds })
    }
}

/// The kind of a difference, in a cell of a table.
fn kind(text: &str) -> String {
    let line: String = text.lines().next().unwrap_or_default().chars().take(110).collect();
    if line.contains("rows differ") { "rows differ".into() } else { line.replace('|', "\\|") }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# A comment.\n\nmutation: a.one\nbreaks: x\nfile: runtime/src/a.rs\nin: 0 => drop(x),\n- drop(x)\n+ ()\n\
        mutation: a.two\nbreaks: y\nfile: runtime/src/a.rs\n- x > 0\n+ x >= 0\nmutation: a.three\nbreaks: z\n\
        file: runtime/src/a.rs\n- x > 0\n+ true\n";

    #[test]
    fn expressions_become_choices() {
        let mutations = parse(LIST).unwrap();
        let text = "if x > 0 { match y { 0 => drop(x), _ => drop(x) } }";
        let mutated = mutate("runtime/src/a.rs", text, &mutations.iter().collect::<Vec<_>>()).unwrap();
        let expected = "if (if crate::mutated(\"a.two\") { x >= 0 } else if crate::mutated(\"a.three\") { true } else { x > 0 }) \
            { match y { 0 => (if crate::mutated(\"a.one\") { () } else { drop(x) }), _ => drop(x) } }";
        assert_eq!(mutated, expected);
    }

    #[test]
    fn an_expression_stands_once() {
        let mutations = parse(LIST).unwrap();
        let fails = |text: &str| mutate("runtime/src/a.rs", text, &[&mutations[1]]).unwrap_err().to_string();
        assert_eq!(fails("x < 0"), "a.two: not in runtime/src/a.rs: x > 0");
        assert_eq!(fails("x > 0 || x > 0"), "a.two: several times in runtime/src/a.rs, or empty: x > 0");
    }
}
