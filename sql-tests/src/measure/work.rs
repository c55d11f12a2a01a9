//! Work per change: one row comes and goes while 10,000, 100,000 or 1,000,000 are stored, for each operator with a view of its own.
//!
//! Groups, inputs and outputs grow with the stored rows, but what the changed row affects does not: its matches, the rows behind it
//! where positions are counted, its group or partition (of 100 rows) where all of it is computed again. So every line should be flat,
//! or grow as the logarithm does: 1.5 from 10,000 to 1,000,000. A figure is the median of what a client waits for one statement. The
//! first lines are the same statements without any view; nothing is subtracted. The sizes take turns, change by change, so that what
//! else the machine does slows all of them.

use anyhow::{Context, Result, bail, ensure};
use std::time::{Duration, Instant};

use super::{Options, median};
use crate::chance::timestamp;
use crate::process::Server;
use crate::wire::{Client, shorten};

/// Changes of each kind that are measured, and those before them that are not.
const SAMPLES: u64 = 31;
const WARM_UP: u64 = 3;
/// What grows more from the first to the last size is pointed out.
const GROWTH_MAX: f64 = 2.5;
/// A view that takes longer to make, by stored row, is not made over ten times the rows: it could take a hundred times as long.
const MADE_IN_MAX: Duration = Duration::from_micros(100);

/// A line of the table.
struct Operator {
    name: &'static str,
    row: Changed,
    /// What a change may cost.
    promise: &'static str,
    /// The query of the view; empty for none.
    query: String,
}

/// The table whose row comes and goes, and where among the others the row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Changed {
    /// `t`, in the middle of every order.
    Middle,
    /// `t`, with some 100 rows of its group behind it.
    End,
    /// `u`, with a key that ten rows of `t` have.
    Other,
    /// `few`, with a value in the middle of those of `t`.
    Few,
    /// `few`, with a value that few of `t` exceed.
    FewAtEnd,
    /// `tree`, an edge to a new leaf.
    Leaf,
    /// `tree`, an edge from the root to an inner node that 110 others hang from.
    Branch,
}

fn operators() -> Result<Vec<Operator>> {
    let mut found: Vec<Operator> = Vec::new();
    for line in include_str!("operators.sql").lines().skip(1) {
        let Some(header) = line.strip_prefix("-- ") else {
            let last = found.last_mut().with_context(|| format!("a line before the first operator: {line}"))?;
            last.query.push_str(line);
            last.query.push('\n');
            continue;
        };
        let [name, row, promise] = header.split("; ").collect::<Vec<_>>()[..] else { bail!("three parts: {header}") };
        let row = match row {
            "middle" => Changed::Middle,
            "end" => Changed::End,
            "other" => Changed::Other,
            "few" => Changed::Few,
            "few at end" => Changed::FewAtEnd,
            "leaf" => Changed::Leaf,
            "branch" => Changed::Branch,
            unknown => bail!("no such row: {unknown}"),
        };
        found.push(Operator { name, row, promise, query: String::new() });
    }
    Ok(found)
}

// ------------------------------------------------------------------------------------------------ tables

const TABLES: [&str; 4] = [
    "CREATE TABLE t (id bigint PRIMARY KEY, v bigint, g int, k int, p int, s text, ts timestamp, xs int[])",
    "CREATE TABLE u (id bigint PRIMARY KEY, k int, v bigint)",
    "CREATE TABLE few (id bigint PRIMARY KEY, v bigint)",
    "CREATE TABLE tree (id bigint PRIMARY KEY, parent bigint, child bigint)",
];

/// A server with so many rows in each of its tables, but for `few`, which has ten.
struct Stored {
    server: Server,
    client: Client,
    rows: u64,
    /// Microseconds of each INSERT, and of each DELETE.
    samples: [Vec<f64>; 2],
}

/// Row number `at` of `t`. Stored rows have even ids.
fn row_of_t(at: u64, id: u64) -> [String; 8] {
    let (group, key, partition) = (at % 10, at / 10, at / 100);
    let time = timestamp(1_700_000_000_000 + at as i64 * 20);
    [
        id.to_string(),
        id.to_string(),
        group.to_string(),
        key.to_string(),
        partition.to_string(),
        format!("text {}", at % 1000),
        time,
        format!("{{{},{}}}", at % 7, at % 11),
    ]
}

/// A node of the tree with 10 children of 10 children each: one three levels above the last, which is not complete.
fn inner_node(rows: u64, number: u64) -> u64 {
    let first = |level: u32| (10_u64.pow(level) - 1) / 9;
    let last_level = (1..18).take_while(|level| first(*level) < rows).last().unwrap_or(1);
    first(last_level.saturating_sub(2).max(1)) + number % 80
}

impl Stored {
    fn new(rows: u64) -> Result<Self> {
        let server = Server::start()?;
        let mut client = server.client()?;
        TABLES.iter().try_for_each(|table| client.run(table).map(|_| ()))?;
        fill(&mut client, "t", rows, &|at| row_of_t(at, 2 * at).join("\t"))?;
        // Every other key of t has a match.
        fill(&mut client, "u", rows, &|at| format!("{at}\t{}\t{}", 2 * at, 3 * at))?;
        fill(&mut client, "few", 10, &|at| format!("{at}\t{}", (2 * at + 1) * rows / 10))?;
        // Node n hangs from (n - 1) / 10, and all from 0.
        fill(&mut client, "tree", rows, &|at| format!("{at}\t{}\t{}", at / 10, at + 1))?;
        Ok(Stored { server, client, rows, samples: Default::default() })
    }

    /// The statements that bring a row and take it away; another row for every number.
    fn change(&self, row: Changed, number: u64) -> (String, String) {
        let rows = self.rows;
        let t = |at: u64| ("t", 2 * at + 1, row_of_t(at, 2 * at + 1)[1..].join("', '"));
        let (table, id, rest) = match row {
            Changed::Middle => t(rows / 2 + number),
            Changed::End => t(rows - 1000 + number),
            Changed::Other => ("u", rows + number, format!("{}', '7", rows / 20 + number)),
            Changed::Few => ("few", 10 + number, format!("{}", rows + 2 * number)),
            Changed::FewAtEnd => ("few", 10 + number, format!("{}", 2 * rows - 11)),
            Changed::Leaf => ("tree", rows + number, format!("{}', '{}", rows - number, 2 * rows + number)),
            Changed::Branch => ("tree", rows + number, format!("0', '{}", inner_node(rows, number))),
        };
        (format!("INSERT INTO {table} VALUES ('{id}', '{rest}')"), format!("DELETE FROM {table} WHERE id = {id}"))
    }

    /// One row comes and goes.
    fn measure(&mut self, row: Changed, number: u64) -> Result<()> {
        let (insert, delete) = self.change(row, number);
        let mut times = [0.0; 2];
        for (sql, time) in [insert, delete].iter().zip(&mut times) {
            let started = Instant::now();
            let count = self.client.run(sql)?.count();
            *time = started.elapsed().as_secs_f64() * 1e6;
            ensure!(count == 1, "{count} rows changed by {sql}");
        }
        if number >= WARM_UP {
            self.samples.iter_mut().zip(times).for_each(|(samples, time)| samples.push(time));
        }
        Ok(())
    }
}

fn fill(client: &mut Client, table: &str, rows: u64, row: &dyn Fn(u64) -> String) -> Result<()> {
    const CHUNK: u64 = 1000;
    let mut chunks = (0..rows.div_ceil(CHUNK)).map(|chunk| {
        let numbers = chunk * CHUNK..((chunk + 1) * CHUNK).min(rows);
        numbers.map(|at| row(at) + "\n").collect::<String>().into_bytes()
    });
    let copied = client.copy_in(&format!("COPY {table} FROM STDIN"), &mut chunks)?;
    ensure!(copied == rows, "{copied} rows copied to {table} instead of {rows}");
    Ok(())
}

// ------------------------------------------------------------------------------------------------ measurement

/// Prints the table.
pub(super) fn run(options: &Options) -> Result<()> {
    let (Some(first), Some(last)) = (options.rows.first(), options.rows.last()) else { bail!("no sizes") };
    let mut stored = options.rows.iter().map(|rows| Stored::new(*rows)).collect::<Result<Vec<_>>>()?;
    let sizes: Vec<String> = options.rows.iter().map(|rows| format!("{} k", rows / 1000)).collect();
    println!(
        "work per change, in µs: the median over {SAMPLES} changes of a client's wait for INSERT and DELETE of one row\n"
    );
    let (insert, delete) = (format!("INSERT {}", sizes.join(" | ")), format!("DELETE {}", sizes.join(" | ")));
    println!("| operator | promised | {insert} | growth | {delete} | growth | view made in, s |");
    println!("|---|---|{}", "---:|".repeat(2 * sizes.len() + 3));
    let mut above = Vec::new();
    for operator in operators()? {
        if !operator.name.contains(&options.operator) && !operator.name.starts_with("none") {
            continue;
        }
        match measure(&mut stored, &operator, options.time) {
            Ok(made_in) => above.extend(print_line(&stored, &operator, made_in)),
            Err(error) => println!("| {} | {} | {error:#}", operator.name, operator.promise),
        }
        for one in &mut stored {
            // Whatever happened: the next view starts on a connection and a server without views.
            one.client = one.server.client()?;
            one.client.run("DROP MATERIALIZED VIEW IF EXISTS measured")?;
        }
    }
    println!("\nmore than {GROWTH_MAX} times as slow over {last} as over {first} rows, or not made:");
    above.iter().for_each(|line| println!("  {line}"));
    if above.is_empty() {
        println!("  none");
    }
    Ok(())
}

/// The samples of one operator for all sizes; how long it took to make the view over the largest.
fn measure(stored: &mut [Stored], operator: &Operator, time: Duration) -> Result<Duration> {
    let mut made_in = Duration::ZERO;
    let mut sizes = 0;
    let mut too_slow = false;
    for one in stored.iter_mut() {
        one.samples.iter_mut().for_each(Vec::clear);
        if too_slow {
            continue;
        }
        let started = Instant::now();
        if !operator.query.is_empty() {
            one.client.run(&format!("CREATE MATERIALIZED VIEW measured AS {}", operator.query))?;
        }
        made_in = started.elapsed();
        too_slow = made_in > MADE_IN_MAX * u32::try_from(one.rows)?;
        sizes += 1;
    }
    let started = Instant::now();
    for number in 0..WARM_UP + SAMPLES {
        for one in &mut stored[..sizes] {
            one.measure(operator.row, number).with_context(|| shorten(&operator.query))?;
        }
        // A slow one is slow with fewer samples too.
        if number > WARM_UP + 3 && started.elapsed() > time * 3 {
            break;
        }
    }
    Ok(made_in)
}

/// Prints a line; what of it grows more than it should.
fn print_line(stored: &[Stored], operator: &Operator, made_in: Duration) -> Vec<String> {
    let mut line = format!("| {} | {} |", operator.name, operator.promise);
    let mut above = Vec::new();
    for (kind, name) in ["INSERT", "DELETE"].iter().enumerate() {
        let medians: Vec<f64> = stored
            .iter()
            .filter(|one| !one.samples[kind].is_empty())
            .map(|one| median(&mut one.samples[kind].clone()))
            .collect();
        for size in 0..stored.len() {
            line += &medians.get(size).map_or(" not made |".into(), |time| format!(" {time:.0} |"));
        }
        let growth = medians.last().copied().unwrap_or(0.0) / medians.first().copied().unwrap_or(1.0);
        line += &format!(" {growth:.1} |");
        if growth > GROWTH_MAX || medians.len() < stored.len() {
            above.push(format!("{} ({}): {name} {growth:.1}", operator.name, operator.promise));
        }
    }
    println!("{line} {:.1} |", made_in.as_secs_f64());
    above
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operator_is_read() {
        let found = operators().expect("the file");
        assert!(found.len() > 50, "{}", found.len());
        for operator in found {
            assert_eq!(operator.query.is_empty(), operator.name.starts_with("none"), "{}", operator.name);
        }
    }

    #[test]
    fn inner_nodes_have_all_of_their_children() {
        for rows in [10_000, 100_000, 1_000_000] {
            let node = inner_node(rows, 79);
            let last_grandchild = (node * 10 + 10) * 10 + 10;
            assert!(last_grandchild <= rows && last_grandchild * 10 >= rows, "{rows}: {node}");
        }
    }
}
