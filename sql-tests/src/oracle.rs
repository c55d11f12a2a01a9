//! PostgreSQL as oracle: started by the test itself, on a data directory of its own, and gone afterwards.
//!
//! PostgreSQL refuses to run as root, so as root it runs as the user "postgres" (or "nobody").

use anyhow::{Context, Result, bail};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::free_port;
use crate::wire::Client;

/// A running PostgreSQL.
pub struct Postgres {
    child: Child,
    port: u16,
    directory: tempfile::TempDir,
}

impl Postgres {
    /// Starts one without fsync, for comparing answers. The error says why there is none.
    pub fn start() -> Result<Self> {
        Self::start_with(&["-c", "fsync=off", "-c", "full_page_writes=off"])
    }

    /// Starts one with more arguments.
    pub fn start_with(arguments: &[&str]) -> Result<Self> {
        let binaries = binaries()?;
        let directory = tempfile::Builder::new().prefix("tidemill-oracle-").tempdir()?;
        let user = unprivileged()?;
        if let Some((uid, gid)) = user {
            chown(directory.path(), Some(uid), Some(gid))?;
        }
        std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o755))?;
        let data = directory.path().join("data");
        let made = command(&binaries.join("initdb"), user)
            .args(["-A", "trust", "-U", "tidemill", "-E", "UTF8", "--locale=C.UTF-8", "-N", "-D"])
            .arg(&data)
            .output()?;
        if !made.status.success() {
            bail!("initdb failed: {}", String::from_utf8_lossy(&made.stderr));
        }
        let port = free_port()?;
        let log = std::fs::File::create(directory.path().join("log"))?;
        let child = command(&binaries.join("postgres"), user)
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.to_string(), "-k", "", "-c", "listen_addresses=127.0.0.1", "-c", "timezone=UTC"])
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let mut postgres = Postgres { child, port, directory };
        postgres.wait_until_ready()?;
        Client::connect_as(port, "tidemill", "postgres")?.run("CREATE DATABASE tidemill")?;
        Ok(postgres)
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let started = Instant::now();
        while started.elapsed() < Duration::from_secs(30) {
            if Client::connect_as(self.port, "tidemill", "postgres").is_ok() {
                return Ok(());
            }
            if let Some(status) = self.child.try_wait()? {
                let log = std::fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
                bail!("postgres ended at start ({status}): {log}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("postgres does not answer")
    }

    /// Its port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A new connection.
    pub fn client(&self) -> Result<Client> {
        Client::connect(self.port)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // SIGQUIT: immediate shutdown, which also ends its child processes; kill -9 would leave them.
        let _ = Command::new("kill").arg("-QUIT").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

fn command(program: &Path, user: Option<(u32, u32)>) -> Command {
    let mut command = Command::new(program);
    command.current_dir("/").env("LC_ALL", "C.UTF-8");
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid);
    }
    command
}

/// The folder with initdb and postgres: Debian's, newest first, or the one in PATH.
fn binaries() -> Result<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|path| path.join("initdb").exists())
        .collect();
    found.sort();
    if let Some(path) = found.pop() {
        return Ok(path);
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths)
        .find(|path| path.join("initdb").exists() && path.join("postgres").exists())
        .context("PostgreSQL is not installed")
}

/// The user to run as if this process is root.
fn unprivileged() -> Result<Option<(u32, u32)>> {
    let number = |arguments: &[&str]| -> Option<u32> {
        let output = Command::new("id").args(arguments).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse().ok()
    };
    if number(&["-u"]) != Some(0) {
        return Ok(None);
    }
    for user in ["postgres", "nobody"] {
        if let (Some(uid), Some(gid)) = (number(&["-u", user]), number(&["-g", user])) {
            return Ok(Some((uid, gid)));
        }
    }
    bail!("this is root, and there is no user to run PostgreSQL as")
}
