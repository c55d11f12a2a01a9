//! The Postgres protocol: listener, connections, messages, formats of values.
//!
//! Messages come from the `pgwire` crate; the state machine is ours ([`handler`]), since blocks, portals and COPY need more
//! than its handler traits express. Sessions know nothing of this module but the text forms of values.
//!
//! Reading order: [`connection`] (bytes to messages), [`startup`], [`handler`] (simple queries), [`extended`], [`copy`],
//! [`encode`], [`text`], [`binary`] and [`decode`] (values), [`types`] (OIDs).

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use futures::FutureExt;
use parking_lot::Mutex;
use plan::SqlState;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::coordinator::Coordinator;
use crate::error::ServerError;
use crate::session::CancelSignal;
use crate::shutdown::Shutdown;
use crate::task;

mod binary;
mod connection;
mod copy;
mod decode;
pub mod encode;
mod extended;
mod handler;
mod notices;
mod startup;
pub mod text;
pub mod types;

use connection::Connection;

/// How long to wait after accepting failed, for example because there are no file descriptors left.
const ACCEPT_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// How long a client may take to say who it is.
const STARTUP_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);

/// Sessions by the process number and secret under which a client may cancel their statements.
#[derive(Default)]
struct CancelRegistry {
    next_process: AtomicI32,
    sessions: Mutex<HashMap<(i32, i32), Arc<CancelSignal>>>,
}

/// A session's entry in the registry; gone when dropped.
struct CancelKey {
    process: i32,
    secret: i32,
    signal: Arc<CancelSignal>,
    registry: Arc<CancelRegistry>,
}

impl CancelRegistry {
    /// A new session's key.
    fn register(self: &Arc<Self>) -> CancelKey {
        let process = self.next_process.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        let secret = rand::random::<i32>();
        let signal = Arc::new(CancelSignal::default());
        self.sessions.lock().insert((process, secret), signal.clone());
        CancelKey { process, secret, signal, registry: self.clone() }
    }

    /// Asks a session's running statement to stop, if there is such a session.
    fn cancel(&self, process: i32, secret: i32) {
        if let Some(signal) = self.sessions.lock().get(&(process, secret)) {
            signal.cancel();
        }
    }
}

impl Drop for CancelKey {
    fn drop(&mut self) {
        self.registry.sessions.lock().remove(&(self.process, self.secret));
    }
}

/// Accepts clients and runs a task for each.
pub struct Listener {
    coordinator: Arc<Coordinator>,
    cancels: Arc<CancelRegistry>,
    /// One permit a client.
    places: Arc<Semaphore>,
    shutdown: Shutdown,
}

impl Listener {
    /// A listener for at most so many clients at a time.
    pub fn new(coordinator: Arc<Coordinator>, connections_max: usize, shutdown: Shutdown) -> Listener {
        let places = Arc::new(Semaphore::new(connections_max));
        Listener { coordinator, cancels: Arc::default(), places, shutdown }
    }

    /// Accepts until the server is to stop; returns when all sessions have ended.
    pub async fn serve(mut self, socket: TcpListener) {
        let mut clients = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = socket.accept() => accepted,
                () = self.shutdown.requested() => break,
                Some(_) = clients.join_next() => continue,
            };
            match accepted {
                Ok((stream, address)) => {
                    tracing::debug!(%address, "client connected");
                    clients.spawn(self.client(stream));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a client");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(socket);
        while clients.join_next().await.is_some() {}
    }

    /// One client from connect to disconnect. A panic ends this client only.
    fn client(&self, stream: TcpStream) -> impl Future<Output = ()> + Send + 'static {
        let (coordinator, cancels) = (self.coordinator.clone(), self.cancels.clone());
        let (places, shutdown) = (self.places.clone(), self.shutdown.clone());
        async move {
            // Answers are small and waited for.
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "cannot set TCP_NODELAY");
            }
            let mut connection = Connection::new(stream);
            let place = places.try_acquire_owned().ok();
            let serve = async {
                let start = startup::start(&mut connection, coordinator, &cancels, shutdown, place.is_some());
                let Some(mut client) = tokio::time::timeout(STARTUP_TIMEOUT, start).await?? else {
                    return Ok(());
                };
                client.serve(&mut connection).await
            };
            match AssertUnwindSafe(serve).catch_unwind().await {
                Ok(Ok(())) => tracing::debug!("client disconnected"),
                Ok(Err(error)) => {
                    tracing::debug!(%error, "client lost");
                    if error.kind() == std::io::ErrorKind::InvalidData {
                        connection.put_fatal(&ServerError::new(SqlState::PROTOCOL_VIOLATION, error.to_string()));
                        let _ = connection.flush().await;
                    }
                }
                Err(panic) => {
                    let reason = task::panic_text(panic.as_ref());
                    tracing::error!("a session panicked: {reason}");
                    let error = ServerError::new(SqlState::INTERNAL_ERROR, format!("internal error: {reason}"))
                        .with_hint("This is a defect of Tidemill. The connection is closed; others go on.");
                    connection.put_fatal(&error);
                    let _ = connection.flush().await;
                }
            }
        }
    }
}
