//! Puts planner, runtime, coordinator and protocol together; the order of start and stop.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::execution::{SessionState, SessionStateBuilder};
use fs4::fs_std::FileExt;
use planner::Planner;
use runtime::RuntimeConfig;
use runtime::state::rocks::{RocksOptions, RocksStore};
use tokio::net::TcpListener;

use crate::catalog::SystemFunctions;
use crate::config::Config;
use crate::coordinator::Coordinator;
use crate::pgwire::Listener;
use crate::shutdown::{self, Signals, Trigger};

/// The file in the data directory whose lock says that a server uses it.
const LOCK_FILE: &str = "LOCK.tidemill";

/// How long a start waits for another server to let go of the data directory.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// How long it waits before it looks again.
const LOCK_RETRY: Duration = Duration::from_millis(20);

/// How long the health check waits for an answer.
const HEALTH_TIMEOUT: Duration = Duration::from_secs(3);

/// How long the end of the process waits for statements that did not stop in time.
const LEFT_BEHIND_TIMEOUT: Duration = Duration::from_secs(1);

/// Stack of async threads: deep queries recurse in planning.
const STACK_BYTES: usize = 8 << 20;

/// Runs the server until it is asked to stop. The error is one line for the terminal.
pub fn run(config: &Config) -> Result<(), String> {
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        data_dir = %config.data_dir.display(),
        memory_mb = config.memory_bytes >> 20,
        workers = config.workers,
        "tidemill starts"
    );
    let _lock = lock_data_dir(&config.data_dir)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .thread_name("tidemill-async")
        .thread_stack_size(STACK_BYTES)
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start threads: {error}"))?;
    let result = runtime.block_on(serve(config));
    // A statement that still runs is left behind after a moment; waiting for it could take for ever.
    runtime.shutdown_timeout(LEFT_BEHIND_TIMEOUT);
    result
}

/// Serves clients until a signal comes.
async fn serve(config: &Config) -> Result<(), String> {
    let mut signals = Signals::listen().map_err(|error| format!("cannot handle signals: {error}"))?;
    let socket = bind(&config.listen).await?;
    let address = socket.local_addr().map_err(|error| format!("cannot listen on {}: {error}", config.listen))?;
    let coordinator = start_coordinator(config)?;
    let (trigger, shutdown) = shutdown::channel();
    let listener = Listener::new(coordinator.clone(), config.max_connections, shutdown);
    let accepting = crate::task::spawn("listener", listener.serve(socket));
    let host = if address.ip().is_unspecified() { "localhost".to_owned() } else { address.ip().to_string() };
    tracing::info!("ready for clients: psql -h {host} -p {} -U postgres", address.port());

    let signal = signals.next().await;
    tracing::info!("{signal}: stopping (again to stop at once)");
    tokio::select! {
        clean = stop(trigger, accepting, &coordinator) => {
            if clean { Ok(()) } else { Err("not everything stopped in time; nothing committed is lost".to_owned()) }
        }
        signal = signals.next() => {
            tracing::warn!("{signal}: stopping at once");
            // Without waiting for anything: an epoch is written whole or not at all.
            shutdown::end_process(0)
        }
    }
}

/// Stops in order: clients, then epochs. Returns whether all ended before the deadline.
async fn stop(trigger: Trigger, accepting: tokio::task::JoinHandle<Option<()>>, coordinator: &Coordinator) -> bool {
    trigger.set_off();
    let ordered = async {
        // The listener ends when its sessions have; what is left after their time is cut off with the runtime.
        let _ = tokio::time::timeout(shutdown::SESSIONS_TIMEOUT, accepting).await;
        coordinator.stop().await
    };
    match tokio::time::timeout(shutdown::STOP_TIMEOUT, ordered).await {
        Ok(Ok(())) => {
            tracing::info!("stopped");
            true
        }
        Ok(Err(error)) => {
            tracing::error!(%error, "the end of the log could not be written");
            false
        }
        Err(_) => false,
    }
}

/// Opens the store and recovers.
fn start_coordinator(config: &Config) -> Result<Arc<Coordinator>, String> {
    let started = runtime::clock::monotonic();
    let store = RocksStore::open(&config.data_dir, RocksOptions { memory_bytes: config.store_bytes() })
        .map_err(|error| format!("cannot open data directory \"{}\": {error}", config.data_dir.display()))?;
    let functions = SystemFunctions::new();
    let operators = runtime::operators::definitions();
    let lower = operators.iter().map(|operator| operator.clone() as Arc<dyn plan::Lower>).collect();
    let planner = Arc::new(Planner::new(query_session(config, &functions)?, lower));
    let runtime = RuntimeConfig { workers: config.workers, cache_bytes: config.cache_bytes() };
    let coordinator = Coordinator::start(store, runtime, planner, functions, config.fill_rows)
        .map_err(|error| format!("cannot start from data directory \"{}\": {error}", config.data_dir.display()))?;
    coordinator.watch_disk(&config.data_dir);
    tracing::info!(elapsed_ms = runtime::clock::elapsed(started).as_millis() as u64, "data directory is open");
    Ok(coordinator)
}

/// The session in which queries run, with a limit to the memory that all of them take together: a query that needs more
/// spills to disk or fails, and the server goes on.
fn query_session(config: &Config, functions: &SystemFunctions) -> Result<SessionState, String> {
    let environment = RuntimeEnvBuilder::new()
        .with_memory_limit(config.query_bytes(), 1.0)
        .build_arc()
        .map_err(|error| format!("cannot set a limit to the memory of queries: {error}"))?;
    let session = crate::read::session_state(functions);
    Ok(SessionStateBuilder::new_from_existing(session).with_runtime_env(environment).build())
}

/// Takes the port.
async fn bind(listen: &str) -> Result<TcpListener, String> {
    TcpListener::bind(listen).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => {
            format!(
                "cannot listen on {listen}: the port is in use; stop the other server or choose another with --listen"
            )
        }
        _ => format!("cannot listen on {listen}: {error}"),
    })
}

/// Makes the data directory and locks it, so that two servers never open it.
fn lock_data_dir(data_dir: &Path) -> Result<std::fs::File, String> {
    let shown = data_dir.display();
    std::fs::create_dir_all(data_dir).map_err(|error| format!("cannot create data directory \"{shown}\": {error}"))?;
    let file = std::fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(data_dir.join(LOCK_FILE))
        .map_err(|error| format!("cannot write to data directory \"{shown}\": {error}"))?;
    let begun = runtime::clock::monotonic();
    loop {
        match FileExt::try_lock_exclusive(&file) {
            Ok(true) => return Ok(file),
            // A server that was killed holds it until the system has taken its memory back.
            Ok(false) if runtime::clock::elapsed(begun) < LOCK_TIMEOUT => std::thread::sleep(LOCK_RETRY),
            Ok(false) => {
                return Err(format!(
                    "data directory \"{shown}\" is in use by another tidemill; stop it or choose another with --data-dir"
                ));
            }
            Err(error) => return Err(format!("cannot lock data directory \"{shown}\": {error}")),
        }
    }
}

/// Asks a server for its protocol greeting: an SSLRequest is answered with one byte by a server that is alive.
pub fn health(listen: &str) -> Result<(), String> {
    const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
    let attempt = || -> std::io::Result<()> {
        let reachable = listen.replace("0.0.0.0:", "127.0.0.1:").replace("[::]:", "[::1]:");
        let address = reachable.to_socket_addrs()?.next().ok_or(ErrorKind::AddrNotAvailable)?;
        let mut stream = TcpStream::connect_timeout(&address, HEALTH_TIMEOUT)?;
        stream.set_read_timeout(Some(HEALTH_TIMEOUT))?;
        stream.write_all(&SSL_REQUEST)?;
        let mut answer = [0_u8; 1];
        stream.read_exact(&mut answer)
    };
    attempt().map_err(|error| format!("no server answers at {listen}: {error}"))
}
