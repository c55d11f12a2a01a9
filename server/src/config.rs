//! What can be set at start: options, their units, their defaults.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Part of `--memory` for the store's block cache and write buffers.
const STORE_SHARE_PERCENT: usize = 40;
/// Part of `--memory` for the caches of operators. The rest is for queries and connections.
const CACHE_SHARE_PERCENT: usize = 40;
/// What running queries may take together at least.
const QUERY_BYTES_MIN: usize = 256 << 20;
/// Smallest `--memory` with which everything still works.
const MEMORY_BYTES_MIN: usize = 64 << 20;
/// `--memory` where the machine's memory cannot be found out.
const MEMORY_BYTES_FALLBACK: usize = 1 << 30;
/// Threads that `--workers` may ask for.
const WORKERS_MAX: usize = 1024;

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "tidemill", version, about = "A streaming SQL server: connect with psql or any Postgres driver.")]
pub struct Arguments {
    /// Options of the server.
    #[command(flatten)]
    pub options: Options,
    /// Something else than serving.
    #[command(subcommand)]
    pub command: Option<Command>,
}

/// What the binary does besides serving.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub enum Command {
    /// Exit with 0 if a server answers at --listen, with 1 if not
    Health,
}

/// Options, each also an environment variable.
#[derive(Debug, Clone, Args)]
pub struct Options {
    /// Address and port for Postgres clients; port 0 takes a free one and logs it
    #[arg(long, global = true, env = "TIDEMILL_LISTEN", default_value = "127.0.0.1:5433", value_name = "HOST:PORT")]
    pub listen: String,
    /// Directory of everything that is kept
    #[arg(long, global = true, env = "TIDEMILL_DATA_DIR", default_value = "./tidemill-data", value_name = "DIR")]
    pub data_dir: PathBuf,
    /// Memory for caches and write buffers, like 512MB or 2GB [default: a quarter of the machine's]
    #[arg(long, global = true, env = "TIDEMILL_MEMORY", value_name = "SIZE", value_parser = parse_bytes)]
    pub memory: Option<usize>,
    /// Threads that keep views up to date [default: the machine's cores]
    #[arg(long, global = true, env = "TIDEMILL_WORKERS", value_name = "N")]
    pub workers: Option<usize>,
    /// Which logs are written: a level, or a filter like info,tidemill=debug
    #[arg(long, global = true, env = "TIDEMILL_LOG", default_value = "info", value_name = "FILTER")]
    pub log: String,
    /// Clients at the same time; more are refused
    #[arg(long, global = true, env = "TIDEMILL_MAX_CONNECTIONS", default_value_t = 1000, value_name = "N")]
    pub max_connections: usize,
    /// Rows that one epoch reads for a new materialized view: more make it ready sooner, fewer let others through in between
    #[arg(long, global = true, env = "TIDEMILL_FILL_ROWS", default_value_t = 65536, value_name = "N")]
    pub fill_rows: usize,
}

/// Options with their defaults filled in and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Address and port for Postgres clients.
    pub listen: String,
    /// Directory of everything that is kept.
    pub data_dir: PathBuf,
    /// Bytes of `--memory`.
    pub memory_bytes: usize,
    /// Threads that keep views up to date.
    pub workers: usize,
    /// Log filter.
    pub log: String,
    /// Clients at the same time.
    pub max_connections: usize,
    /// Rows that one epoch reads for a new materialized view.
    pub fill_rows: usize,
}

impl Options {
    /// Fills in what depends on the machine, and refuses what makes no sense.
    pub fn into_config(self) -> Result<Config, String> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let workers = self.workers.unwrap_or(cores);
        if workers == 0 || workers > WORKERS_MAX {
            return Err(format!("--workers must be between 1 and {WORKERS_MAX}, not {workers}"));
        }
        let memory_bytes = self
            .memory
            .unwrap_or_else(|| (machine_memory().unwrap_or(4 * MEMORY_BYTES_FALLBACK) / 4).max(MEMORY_BYTES_MIN));
        if memory_bytes < MEMORY_BYTES_MIN {
            return Err(format!("--memory must be at least {}MB", MEMORY_BYTES_MIN >> 20));
        }
        if self.max_connections == 0 {
            return Err("--max-connections must be at least 1".to_owned());
        }
        if self.fill_rows == 0 {
            return Err("--fill-rows must be at least 1".to_owned());
        }
        Ok(Config {
            listen: self.listen,
            data_dir: self.data_dir,
            memory_bytes,
            workers,
            log: self.log,
            max_connections: self.max_connections,
            fill_rows: self.fill_rows,
        })
    }
}

impl Config {
    /// Bytes for the store's block cache and write buffers.
    pub fn store_bytes(&self) -> usize {
        self.memory_bytes / 100 * STORE_SHARE_PERCENT
    }

    /// Bytes that running queries may take together: half of the budget, since caches are rarely full, and never so
    /// little that ordinary queries fail.
    pub fn query_bytes(&self) -> usize {
        (self.memory_bytes / 2).max(QUERY_BYTES_MIN)
    }

    /// Bytes for the caches of operators.
    pub fn cache_bytes(&self) -> usize {
        self.memory_bytes / 100 * CACHE_SHARE_PERCENT
    }
}

/// Reads a size: a number, and a unit of kB, MB, GB, TB (powers of 1024, as in Postgres) or none for bytes.
fn parse_bytes(text: &str) -> Result<usize, String> {
    let text = text.trim();
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let shift = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        other => return Err(format!("unknown unit \"{other}\": use kB, MB, GB or TB")),
    };
    let number: f64 =
        number.parse().map_err(|_| format!("\"{text}\" is not a size: write for example 512MB or 2GB"))?;
    let bytes = number * (1_u64 << shift) as f64;
    if bytes < usize::MAX as f64 { Ok(bytes as usize) } else { Err(format!("\"{text}\" is too large")) }
}

/// Memory of the machine, or of the container if that is limited to less.
fn machine_memory() -> Option<usize> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kilobytes: usize = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|number| number.parse().ok())?;
    let total = kilobytes << 10;
    let limit = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    Some(limit.map_or(total, |limit: usize| limit.min(total)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_1024() {
        assert_eq!(parse_bytes("2GB"), Ok(2 << 30));
        assert_eq!(parse_bytes("1.5 gb"), Ok(3 << 29));
        assert_eq!(parse_bytes("100"), Ok(100));
        assert!(parse_bytes("2 parsecs").is_err());
        assert!(parse_bytes("much").is_err());
    }

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory;
        Arguments::command().debug_assert();
        let arguments = Arguments::try_parse_from(["tidemill", "health", "--listen", "x:1"]).unwrap();
        assert_eq!((arguments.command, arguments.options.listen.as_str()), (Some(Command::Health), "x:1"));
    }
}
