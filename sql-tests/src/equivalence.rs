//! View = query: after every change each view is compared with its SELECT run ad hoc.
//!
//! A round is one generated case in a fresh schema. The first difference stops it; then the history is made as short as possible
//! while the difference stays, and is printed as an .slt file.
//!
//! With an oracle every statement also goes to PostgreSQL, where materialized views are plain views, and its rows are compared too.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::generate::{Case, Fallible, Generator, Step, View};
use crate::oracle::Postgres;
use crate::process::{Program, Server};
use crate::wire::{Client, Message, Row, TooLong};

/// Whether a query has windows over time, which PostgreSQL does not know.
pub(crate) fn has_time_windows(query: &str) -> bool {
    ["TUMBLE(", "HOP(", "CUMULATE(", "SESSION("].iter().any(|window| query.contains(window))
}

/// Errors that a generated statement may meet: constraint violations, and one row proposed twice to ON CONFLICT.
const ALLOWED: [&str; 4] = ["23505", "23502", "21000", "22003"];
/// How long shrinking may go on.
const SHRINK_TIME: Duration = Duration::from_secs(60);

/// What to run.
#[derive(Debug, Clone)]
pub struct Options {
    /// Seed of the first round; each round adds one.
    pub seed: u64,
    /// Batches of changes a round.
    pub steps: usize,
    /// Rounds; ends earlier if the time is over.
    pub rounds: u64,
    /// Time.
    pub time: Duration,
    /// The server.
    pub server: Program,
    /// More arguments of the server.
    pub server_arguments: Vec<String>,
    /// Finds the shortest history for a difference, prints it, and keeps the data. Otherwise only what differs is told, and
    /// a server that breaks is a difference too.
    pub explain: bool,
    /// Goes on after a difference.
    pub keep_going: bool,
    /// Compares with PostgreSQL too.
    pub oracle: bool,
}

impl Options {
    /// Rounds without end from a seed on, for so long.
    pub fn new(seed: u64, time: Duration) -> Self {
        Options {
            seed,
            steps: 12,
            rounds: u64::MAX,
            time,
            server: Program::default(),
            server_arguments: Vec::new(),
            explain: true,
            keep_going: false,
            oracle: false,
        }
    }
}

/// What was done.
#[derive(Debug, Default, Clone)]
pub struct Summary {
    /// Rounds.
    pub rounds: u64,
    /// Steps.
    pub steps: u64,
    /// Comparisons of a view with its query.
    pub comparisons: u64,
    /// Rows in them.
    pub rows: u64,
    /// kill -9 and restart.
    pub restarts: u64,
    /// Views made.
    pub views: u64,
    /// Queries that the server refused as a view and as a query alike, by message.
    pub refused: BTreeMap<String, u64>,
    /// Differences, each as a report.
    pub differences: Vec<String>,
}

impl std::fmt::Display for Summary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} rounds, {} views, {} changes, {} restarts, {} comparisons of {} rows, {} differences",
            self.rounds,
            self.views,
            self.steps,
            self.restarts,
            self.comparisons,
            self.rows,
            self.differences.len()
        )?;
        for (message, count) in &self.refused {
            write!(f, "\n  refused {count} times: {message}")?;
        }
        Ok(())
    }
}

/// Runs rounds until time, rounds or luck run out.
pub fn run(options: &Options) -> Result<Summary> {
    let mut arguments: Vec<&str> = options.server_arguments.iter().map(String::as_str).collect();
    // Tables are small here: that views are filled in one step, in a few or in many is left to chance. The rounds of a run
    // have seeds with the same upper half, so that one of them does it the same way when it is repeated.
    let fill_rows = ["65536", "20", "3"][((options.seed >> 32) % 3) as usize];
    if !arguments.contains(&"--fill-rows") {
        arguments.extend(["--fill-rows", fill_rows]);
    }
    let oracle = if options.oracle { Some(Postgres::start()?) } else { None };
    let mut world = World { server: Server::start_program(options.server.clone(), &arguments)?, oracle };
    let mut summary = Summary::default();
    let started = Instant::now();
    while summary.rounds < options.rounds && started.elapsed() < options.time {
        let seed = options.seed.wrapping_add(summary.rounds);
        summary.rounds += 1;
        let generator = Generator::new(seed);
        let generator = if options.oracle { generator.with_exact_doubles() } else { generator };
        let case = generator.case(options.steps);
        let played = play(&mut world, &case, &case.steps, None, &mut summary);
        if !options.explain {
            let told = played.map(|difference| difference.map(|difference| difference.text));
            summary.differences.extend(told.unwrap_or_else(|error| Some(format!("the server breaks: {error:#}"))));
            if summary.differences.is_empty() {
                continue;
            }
            break;
        }
        let Some(difference) = played? else { continue };
        let shrunk = shrink(&mut world, &case, &difference);
        let report = report(seed, &difference, &shrunk);
        println!("{report}");
        summary.differences.push(report);
        if !options.keep_going {
            break;
        }
    }
    if options.explain && !summary.differences.is_empty() {
        println!("log and data kept in {}", world.server.keep().display());
    }
    Ok(summary)
}

/// A view that is not its query, or a statement that should not have failed.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The view, or `None` if a statement failed.
    pub view: Option<usize>,
    /// Steps played up to and including the one after which it was seen.
    pub step: usize,
    /// What differs.
    pub text: String,
    /// Rows of the query.
    pub expected: Vec<Row>,
}

/// What a case is played on.
struct World {
    server: Server,
    oracle: Option<Postgres>,
}

const SCHEMA: &str = "equivalence";

fn connect(server: &Server) -> Result<Client> {
    let mut client = server.client()?;
    client.run(&format!("SET search_path TO {SCHEMA}"))?;
    Ok(client)
}

/// A connection to the oracle, and the views that it has.
struct Oracle {
    client: Client,
    views: Vec<usize>,
}

impl Oracle {
    fn new(postgres: &Postgres, case: &Case) -> Result<Self> {
        let mut client = postgres.client()?;
        client.run(&format!("DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}"))?;
        client.run(&format!("SET search_path TO {SCHEMA}"))?;
        for table in &case.tables {
            client.run(table)?;
        }
        Ok(Oracle { client, views: Vec::new() })
    }

    /// What it does not understand (our windows) is left out of the comparison.
    fn create(&mut self, number: usize, view: &View, summary: &mut Summary) -> Result<()> {
        if view.fallible.is_some() {
            return Ok(());
        }
        let error = self.client.query(&View { materialized: false, ..view.clone() }.create())?.error;
        match error {
            None => self.views.push(number),
            Some(error) if has_time_windows(&view.query) || error.sqlstate() == "42P01" => {}
            Some(error) => {
                let reason = format!("PostgreSQL: {} {}", error.sqlstate(), error.message());
                *summary.refused.entry(reason).or_default() += 1;
            }
        }
        Ok(())
    }

    /// The difference between a view here and there.
    fn compare(&mut self, number: usize, view: &View, client: &mut Client) -> Result<Option<(String, Vec<Row>)>> {
        if !self.views.contains(&number) {
            return Ok(None);
        }
        let sql = format!("SELECT * FROM {}", view.name);
        let there = match self.client.rows(&sql) {
            Ok(rows) => rows,
            Err(error) => return Ok(Some((format!("PostgreSQL fails, we do not: {error:#}"), Vec::new()))),
        };
        let here = client.rows(&sql)?;
        let plain = |rows: &[Row]| -> Vec<Row> { rows.iter().map(plain_numbers).collect() };
        let (mut ours, mut theirs) = (plain(&here), plain(&there));
        let mut different = difference(&ours, &theirs);
        if different.is_some() {
            leave_out_near(&mut ours, &mut theirs, ROUNDING);
            different = difference(&ours, &theirs);
        }
        Ok(different.map(|text| (format!("against PostgreSQL: {text}\n  {}", view.query), there)))
    }
}

/// Numbers without trailing zeros of the fraction and cut to 12 digits: scales of numeric results may differ.
pub fn plain_numbers(row: &Row) -> Row {
    let plain = |text: &String| match text.parse::<f64>() {
        Ok(0.0) => "0".into(),
        Ok(number) if number.is_finite() && text.contains(['.', 'e']) => format!("{number:.11e}"),
        Ok(number) if number.is_finite() && text.len() < 15 => format!("{number:.11e}"),
        _ => text.clone(),
    };
    row.iter().map(|value| value.as_ref().map(plain)).collect()
}

/// How far the numbers of a row may be apart, relatively, to differ by rounding only.
const ROUNDING: f64 = 1e-9;

/// Leaves out equal rows, and rows whose numbers are relatively no more than this apart: sums of doubles are exact here and depend
/// on the order of rows in PostgreSQL, so that even a rounded text may differ in its last digit.
pub fn leave_out_near(left: &mut Vec<Row>, right: &mut Vec<Row>, apart: f64) {
    let near = |a: &Option<String>, b: &Option<String>| match (a, b) {
        (Some(a), Some(b)) if a != b => {
            let numbers = (a.parse::<f64>(), b.parse::<f64>());
            matches!(numbers, (Ok(a), Ok(b)) if (a - b).abs() <= apart * a.abs().max(b.abs()))
        }
        (a, b) => a == b,
    };
    let mut counts: BTreeMap<Row, usize> = BTreeMap::new();
    right.drain(..).for_each(|row| *counts.entry(row).or_default() += 1);
    left.retain(|row| match counts.get_mut(row) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        _ => true,
    });
    right.extend(counts.into_iter().flat_map(|(row, count)| std::iter::repeat_n(row, count)));
    left.retain(|row| {
        let same = |other: &Row| row.len() == other.len() && row.iter().zip(other).all(|(a, b)| near(a, b));
        let found = right.iter().position(same);
        found.map(|position| right.swap_remove(position)).is_none()
    });
}

/// Plays the steps in a fresh schema. With `only` just that view is compared, and only at the end. A connection that breaks is a
/// difference too, which can be made shorter and comes with the end of the server's log.
fn play(
    world: &mut World,
    case: &Case,
    steps: &[Step],
    only: Option<usize>,
    summary: &mut Summary,
) -> Result<Option<Difference>> {
    let mut step = 0;
    let outcome = play_steps(world, case, steps, only, summary, &mut step);
    match outcome {
        Err(error) if error.chain().any(|cause| cause.is::<std::io::Error>()) => {
            // A process that ends closes its connections before it is gone.
            std::thread::sleep(Duration::from_millis(500));
            let state = if world.server.is_running() { "still runs" } else { "has ended" };
            let text = format!("{error:#}\nthe server {state}; the end of its log:\n{}", world.server.log_tail());
            Ok(Some(Difference { view: None, step, text, expected: Vec::new() }))
        }
        // Random joins of joins may be as large as that; the round ends here, and is counted.
        Err(error) if error.chain().any(|cause| cause.is::<TooLong>()) => {
            *summary.refused.entry(TooLong.to_string()).or_default() += 1;
            Ok(None)
        }
        outcome => outcome,
    }
}

/// As [`play`]; the step that is played, counted from 1.
fn play_steps(
    world: &mut World,
    case: &Case,
    steps: &[Step],
    only: Option<usize>,
    summary: &mut Summary,
    playing: &mut usize,
) -> Result<Option<Difference>> {
    let server = &mut world.server;
    if !server.is_running() {
        server.restart()?;
    }
    server.client()?.run(&format!("DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}"))?;
    let mut oracle = world.oracle.as_ref().map(|postgres| Oracle::new(postgres, case)).transpose()?;
    let mut client = connect(server)?;
    for table in &case.tables {
        client.run(table)?;
    }
    let mut made: Vec<usize> = Vec::new();
    for (position, step) in steps.iter().enumerate() {
        *playing = position + 1;
        let mut failed = None;
        match step {
            Step::Create(number) => {
                failed = create(&mut client, &case.views[*number], *number, &mut made, summary)?;
                if let Some(oracle) = &mut oracle {
                    oracle.create(*number, &case.views[*number], summary)?;
                }
            }
            Step::Change(statements) => {
                summary.steps += 1;
                failed = change(&mut client, oracle.as_mut(), statements)?;
            }
            Step::Restart => {
                summary.restarts += 1;
                server.restart()?;
                client = connect(server)?;
            }
        }
        if let Some(text) = failed {
            let number = if let Step::Create(number) = step { Some(*number) } else { None };
            return Ok(Some(Difference { view: number, step: position + 1, text, expected: Vec::new() }));
        }
        let last = position + 1 == steps.len();
        for number in made.iter().copied().filter(|number| only.is_none_or(|wanted| last && wanted == *number)) {
            let view = &case.views[number];
            let mut compared =
                compare(&mut client, view, summary).with_context(|| format!("while comparing {}", view.create()))?;
            if compared.is_none()
                && let Some(oracle) = &mut oracle
            {
                compared = oracle.compare(number, view, &mut client)?;
            }
            if let Some((text, expected)) = compared {
                return Ok(Some(Difference { view: Some(number), step: position + 1, text, expected }));
            }
        }
    }
    Ok(None)
}

/// Makes a view; a text if it fails and should not have.
fn create(
    client: &mut Client,
    view: &View,
    number: usize,
    made: &mut Vec<usize>,
    summary: &mut Summary,
) -> Result<Option<String>> {
    let Some(error) = client.query(&view.create())?.error else {
        summary.views += 1;
        made.push(number);
        return Ok(None);
    };
    // A view on a view that was refused has nothing to stand on.
    if error.sqlstate() == "42P01" {
        return Ok(None);
    }
    let alone = client.query(&view.query)?.error;
    if view.fallible.is_some() {
        return Ok(Some(format!("the view is refused: {error}\n  {}", view.create())));
    }
    match alone {
        Some(alone) if alone.sqlstate() == error.sqlstate() && !alone.sqlstate().starts_with("XX") => {
            let message = format!("{} {}", error.sqlstate(), error.message());
            *summary.refused.entry(message).or_default() += 1;
            Ok(None)
        }
        _ => Ok(Some(format!("the view is refused, its query runs: {error}\n  {}", view.create()))),
    }
}

fn change(client: &mut Client, mut oracle: Option<&mut Oracle>, statements: &[String]) -> Result<Option<String>> {
    for statement in statements {
        let error = client.query(statement)?.error;
        if let Some(error) = &error
            && !allowed(error)
        {
            return Ok(Some(format!("{error}\n  {statement}")));
        }
        if let Some(oracle) = &mut oracle {
            let there = oracle.client.query(statement)?.error;
            let state = |error: &Option<Message>| error.as_ref().map_or("", |error| error.sqlstate()).to_string();
            if state(&error) != state(&there) {
                return Ok(Some(format!("here {error:?}, in PostgreSQL {there:?}\n  {statement}")));
            }
        }
    }
    // A failed transaction block must end before the comparison.
    if client.status != 'I' {
        client.run("ROLLBACK")?;
    }
    if let Some(oracle) = oracle
        && oracle.client.status != 'I'
    {
        oracle.client.run("ROLLBACK")?;
    }
    Ok(None)
}

fn allowed(error: &Message) -> bool {
    ALLOWED.contains(&error.sqlstate()) || error.sqlstate() == "25P02"
}

/// Compares a view with its query; what differs and the query's rows.
fn compare(client: &mut Client, view: &View, summary: &mut Summary) -> Result<Option<(String, Vec<Row>)>> {
    let stored = client.query(&format!("SELECT * FROM {}", view.name))?;
    let queried = client.query(view.fallible.as_ref().map_or(&view.query, |fallible| &fallible.rows))?;
    if let Some(error) = queried.error.as_ref().or(stored.error.as_ref()) {
        return Ok(Some((format!("the view or its query fails: {error}\n  {}", view.query), Vec::new())));
    }
    let rows = |answers: crate::wire::Answers| answers.answers.into_iter().last().unwrap_or_default().rows;
    let (stored, queried) = (rows(stored), rows(queried));
    summary.comparisons += 1;
    summary.rows += queried.len() as u64;
    let different = difference(&stored, &queried).map(|text| (text, queried));
    match &view.fallible {
        Some(fallible) if different.is_none() => compare_errors(client, view, fallible),
        _ => Ok(different),
    }
}

/// Compares the errors of a view with what is known of them.
fn compare_errors(client: &mut Client, view: &View, fallible: &Fallible) -> Result<Option<(String, Vec<Row>)>> {
    let listed = client.rows(&format!("SELECT count(*) FROM \"{}$errors\"", view.name))?;
    let known = client.rows(&fallible.errors)?;
    Ok((listed != known)
        .then(|| (format!("{listed:?} errors are listed, not {known:?}\n  {}", view.query), Vec::new())))
}

/// The rows that only one side has; `None` if both are the same multiset.
pub fn difference(left: &[Row], right: &[Row]) -> Option<String> {
    let mut counts: BTreeMap<Vec<Option<String>>, i64> = BTreeMap::new();
    for row in left {
        *counts.entry(normal(row)).or_default() += 1;
    }
    for row in right {
        *counts.entry(normal(row)).or_default() -= 1;
    }
    counts.retain(|_, count| *count != 0);
    if counts.is_empty() {
        return None;
    }
    let mut text = format!("{} rows differ (+ only left, - only right):", counts.len());
    for (row, count) in counts.iter().take(10) {
        let values: Vec<&str> = row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect();
        text.push_str(&format!("\n  {count:+} {}", values.join(" | ")));
    }
    Some(text)
}

/// -0 and 0 are one value; which of the two is shown is not specified.
fn normal(row: &Row) -> Row {
    row.iter().map(|value| if value.as_deref() == Some("-0") { Some("0".into()) } else { value.clone() }).collect()
}

/// Shortens the history while the same view still differs.
fn shrink(world: &mut World, case: &Case, difference: &Difference) -> (Case, Vec<Step>, Vec<Row>) {
    let mut steps: Vec<Step> = case.steps[..difference.step].to_vec();
    let mut expected = difference.expected.clone();
    let started = Instant::now();
    let mut still_fails = |steps: &[Step]| -> Option<Vec<Row>> {
        let mut ignored = Summary::default();
        match play(world, case, steps, difference.view, &mut ignored) {
            Ok(Some(found)) if found.view == difference.view => Some(found.expected),
            _ => None,
        }
    };
    let mut size = steps.len().div_ceil(2);
    while size > 0 && started.elapsed() < SHRINK_TIME {
        let mut at = 0;
        let mut progress = false;
        while at < steps.len() && started.elapsed() < SHRINK_TIME {
            let mut fewer = steps.clone();
            fewer.drain(at..(at + size).min(steps.len()));
            let keeps_view = difference.view.is_none_or(|number| fewer.contains(&Step::Create(number)));
            if keeps_view && let Some(rows) = still_fails(&fewer) {
                steps = fewer;
                expected = rows;
                progress = true;
            } else {
                at += size;
            }
        }
        if !progress {
            size /= 2;
        }
    }
    (case.clone(), steps, expected)
}

fn report(seed: u64, difference: &Difference, (case, steps, expected): &(Case, Vec<Step>, Vec<Row>)) -> String {
    let mut text = format!("difference at seed {seed}, step {}: {}\n\n", difference.step, difference.text);
    text.push_str("---- shrunk .slt ----\n");
    for table in &case.tables {
        text.push_str(&format!("statement ok\n{table};\n\n"));
    }
    for step in steps {
        match step {
            Step::Create(number) => text.push_str(&format!("statement ok\n{};\n\n", case.views[*number].create())),
            Step::Restart => text.push_str("restart\n\n"),
            Step::Change(statements) => {
                for statement in statements {
                    text.push_str(&format!("statement ok\n{statement};\n\n"));
                }
            }
        }
    }
    if let Some(number) = difference.view {
        let view = &case.views[number];
        let types = "T".repeat(expected.first().map_or(1, Vec::len));
        text.push_str(&format!("query {types} rowsort\nSELECT * FROM {};\n----\n", view.name));
        for row in expected {
            let values: Vec<&str> = row
                .iter()
                .map(|value| value.as_deref().map_or("NULL", |v| if v.is_empty() { "(empty)" } else { v }))
                .collect();
            text.push_str(&(values.join(" ") + "\n"));
        }
    }
    text.push_str("---------------------\n");
    text
}

/// Runs and fails on a difference, or if a large part of the generated queries is refused.
pub fn run_checked(options: &Options) -> Result<Summary> {
    let summary = run(options)?;
    println!("{summary}");
    if !summary.differences.is_empty() {
        bail!("{} differences, first seed {}", summary.differences.len(), options.seed);
    }
    let refused: u64 = summary.refused.values().sum();
    if refused > summary.views {
        bail!("{refused} of {} generated queries are refused", refused + summary.views);
    }
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_differ_by_rounding_are_the_same() {
        let rows = |texts: &[&str]| -> Vec<Row> { texts.iter().map(|text| vec![Some(text.to_string())]).collect() };
        let (mut left, mut right) = (rows(&["2.50000000007e9", "1", "x"]), rows(&["x", "1", "2.50000000008e9"]));
        leave_out_near(&mut left, &mut right, ROUNDING);
        assert!(left.is_empty() && right.is_empty());
        let (mut left, mut right) = (rows(&["1.1", "y"]), rows(&["1.2", "x"]));
        leave_out_near(&mut left, &mut right, ROUNDING);
        assert_eq!((left.len(), right.len()), (2, 2));
    }
}
