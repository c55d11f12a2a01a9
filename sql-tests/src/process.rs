//! One server process: the real binary on a free port, with a data directory of its own.
//!
//! A [`Server`] is killed with -9 when it is dropped, and its data directory is removed, unless the test panics: then the
//! directory and the log stay and their path is printed. Nothing but its own child process is ever signalled.

use anyhow::{Context, Result, bail};
use std::fs::{File, OpenOptions};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::wire::Client;

/// How long a server may take until it accepts connections.
const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long an orderly stop may take.
const STOP_TIMEOUT: Duration = Duration::from_secs(30);

/// A running (or killed) server.
pub struct Server {
    child: Option<Child>,
    port: u16,
    directory: PathBuf,
    owned_directory: Option<tempfile::TempDir>,
    arguments: Vec<String>,
    program: Program,
}

/// Which binary a server is, and what its environment has besides that of the test.
#[derive(Debug, Clone, Default)]
pub struct Program {
    /// The binary; [`binary`] if none.
    pub path: Option<PathBuf>,
    /// Variables and their values.
    pub environment: Vec<(String, String)>,
}

impl Server {
    /// Starts a server with default options on a fresh data directory.
    pub fn start() -> Result<Self> {
        Self::start_with(&[])
    }

    /// Starts a server with more command-line arguments on a fresh data directory.
    pub fn start_with(arguments: &[&str]) -> Result<Self> {
        Self::start_program(Program::default(), arguments)
    }

    /// Starts a certain binary on a fresh data directory.
    pub fn start_program(program: Program, arguments: &[&str]) -> Result<Self> {
        let temporary = tempfile::Builder::new().prefix("tidemill-test-").tempdir()?;
        let mut server = Self::prepare(temporary.path().to_path_buf(), arguments)?;
        server.program = program;
        server.owned_directory = Some(temporary);
        server.restart()?;
        Ok(server)
    }

    /// Starts a server on a data directory that the caller owns.
    pub fn start_on(directory: &Path, arguments: &[&str]) -> Result<Self> {
        let mut server = Self::prepare(directory.to_path_buf(), arguments)?;
        server.restart()?;
        Ok(server)
    }

    fn prepare(directory: PathBuf, arguments: &[&str]) -> Result<Self> {
        Ok(Server {
            child: None,
            port: free_port()?,
            directory,
            owned_directory: None,
            arguments: arguments.iter().map(|argument| argument.to_string()).collect(),
            program: Program::default(),
        })
    }

    /// The port it listens on; the same after a restart.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its process id, if it runs.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// Its data directory.
    pub fn data_directory(&self) -> PathBuf {
        self.directory.join("data")
    }

    /// Its log.
    pub fn log(&self) -> PathBuf {
        self.directory.join("tidemill.log")
    }

    /// The options it was started with, replaced for the next start.
    pub fn set_arguments(&mut self, arguments: &[&str]) {
        self.arguments = arguments.iter().map(|argument| argument.to_string()).collect();
    }

    /// A new connection.
    pub fn client(&self) -> Result<Client> {
        Client::connect(self.port).with_context(|| format!("log: {}", self.log().display()))
    }

    /// Starts the process (again) and waits until it answers. Returns how long that took.
    pub fn restart(&mut self) -> Result<Duration> {
        self.kill()?;
        let log = OpenOptions::new().create(true).append(true).open(self.log())?;
        let started = Instant::now();
        let child = self
            .command()
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("cannot start {}", binary().display()))?;
        self.child = Some(child);
        while started.elapsed() < START_TIMEOUT {
            if TcpStream::connect(("127.0.0.1", self.port)).is_ok() && Client::connect(self.port).is_ok() {
                return Ok(started.elapsed());
            }
            if let Some(status) = self.child.as_mut().map(Child::try_wait).transpose()?.flatten() {
                self.child = None;
                bail!("the server ended at start ({status}): {}", self.log_tail());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        bail!("the server does not answer after {START_TIMEOUT:?}: {}", self.log_tail())
    }

    /// The command that starts this server.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.program.path.clone().unwrap_or_else(binary));
        command
            .envs(self.program.environment.iter().cloned())
            .arg("--listen")
            .arg(format!("127.0.0.1:{}", self.port))
            .arg("--data-dir")
            .arg(self.data_directory())
            .args(&self.arguments)
            .env("RUST_BACKTRACE", "1");
        command
    }

    /// kill -9.
    pub fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// SIGTERM, and waits for the end; an exit code other than 0 is an error.
    pub fn stop(&mut self) -> Result<()> {
        let Some(mut child) = self.child.take() else { return Ok(()) };
        let done = Command::new("kill").arg("-TERM").arg(child.id().to_string()).status()?;
        if !done.success() {
            bail!("cannot signal the server");
        }
        let started = Instant::now();
        while started.elapsed() < STOP_TIMEOUT {
            if let Some(status) = child.try_wait()? {
                if status.success() {
                    return Ok(());
                }
                bail!("the server ended with {status}: {}", self.log_tail());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill()?;
        child.wait()?;
        bail!("the server did not stop within {STOP_TIMEOUT:?}: {}", self.log_tail())
    }

    /// Whether the process still runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.as_mut().map(Child::try_wait), Some(Ok(None)))
    }

    /// The last lines of the log.
    pub fn log_tail(&self) -> String {
        let text = std::fs::read_to_string(self.log()).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(20)..].join("\n")
    }

    /// Adds to an error where log and data are kept from now on, and the end of the log: a connection that the server closed says nothing of
    /// why it did.
    pub fn explain<T>(&mut self, outcome: Result<T>) -> Result<T> {
        outcome.map_err(|error| {
            // A process that ends closes its connections before it is gone.
            std::thread::sleep(Duration::from_millis(500));
            let state = if self.is_running() { "still runs" } else { "has ended" };
            let tail = self.log_tail();
            error.context(format!(
                "the server {state}; log and data kept in {}; its last lines:\n{tail}\n",
                self.keep().display()
            ))
        })
    }

    /// Resident memory now and at its peak, in bytes.
    pub fn memory(&self) -> Result<(u64, u64)> {
        let pid = self.pid().context("the server does not run")?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let field = |name: &str| -> Result<u64> {
            let line = status.lines().find(|line| line.starts_with(name)).with_context(|| format!("no {name}"))?;
            let kib: u64 = line.split_whitespace().nth(1).context("no number")?.parse()?;
            Ok(kib * 1024)
        };
        Ok((field("VmRSS:")?, field("VmHWM:")?))
    }

    /// Keeps data directory and log when this value is dropped; their path.
    pub fn keep(&mut self) -> PathBuf {
        if let Some(temporary) = self.owned_directory.take() {
            let _ = temporary.keep();
        }
        self.directory.clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.kill();
        if std::thread::panicking() {
            eprintln!("log and data kept in {}", self.keep().display());
        }
    }
}

/// The server binary: `TIDEMILL_BIN`, or the one that cargo built beside this test program.
pub fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("TIDEMILL_BIN") {
        return path.into();
    }
    let program = std::env::current_exe().unwrap_or_default();
    let directory = program.parent().unwrap_or(Path::new("."));
    let profile = if directory.ends_with("deps") { directory.parent().unwrap_or(directory) } else { directory };
    profile.join("tidemill")
}

/// Says how to build the server if it is not there.
pub fn require_binary() -> Result<()> {
    let path = binary();
    match File::open(&path) {
        Ok(_) => Ok(()),
        Err(_) => bail!("{} is missing; build it first: cargo build --release -p server", path.display()),
    }
}

/// A port that nobody listens on now.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// The root of the checkout.
pub fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_path_buf()
}

/// Files that tests may use but that are not part of the checkout: real data, reproductions of public bug reports.
pub fn shared() -> PathBuf {
    std::env::var_os("TIDEMILL_SHARED").map_or_else(|| checkout().join("../shared"), PathBuf::from)
}
