//! One signal, an ordered stop, a deadline.
//!
//! The first SIGTERM or SIGINT asks everything to end: the listener takes no more clients, sessions end after
//! their current statement, the coordinator completes its epochs. A second signal, or the deadline, ends the process
//! at once; that is safe at any time, since an epoch is written whole or not at all.

use std::io::Write;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// How long an ordered stop may take.
pub const STOP_TIMEOUT: Duration = Duration::from_secs(20);

/// How long sessions may go on with their current statement.
pub const SESSIONS_TIMEOUT: Duration = Duration::from_secs(5);

/// Ends the process without running what C and C++ libraries registered for its end: RocksDB's threads, and statements
/// that were left behind, may still use what that would destroy. What was acknowledged is in the store.
pub fn end_process(code: i32) -> ! {
    let _ = std::io::stdout().flush();
    let _ = std::io::stderr().flush();
    // SAFETY: takes no pointers and does not return.
    #[allow(unsafe_code)]
    unsafe {
        libc::_exit(code)
    }
}

/// Tells many tasks that the server is to stop.
#[derive(Debug, Clone)]
pub struct Shutdown {
    requested: watch::Receiver<bool>,
}

/// Sets off a [`Shutdown`].
#[derive(Debug)]
pub struct Trigger {
    requested: watch::Sender<bool>,
}

/// A trigger and what it sets off.
pub fn channel() -> (Trigger, Shutdown) {
    let (sender, receiver) = watch::channel(false);
    (Trigger { requested: sender }, Shutdown { requested: receiver })
}

impl Trigger {
    /// Asks all to end.
    pub fn set_off(&self) {
        self.requested.send_replace(true);
    }
}

impl Shutdown {
    /// Returns when the server is to stop.
    pub async fn requested(&mut self) {
        // An error means that the trigger is gone, which is as good as set off.
        let _ = self.requested.wait_for(|requested| *requested).await;
    }
}

/// The signals that ask the server to stop.
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Takes the signals over from the default, which is to die.
    pub fn listen() -> std::io::Result<Signals> {
        Ok(Signals { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for the next one and returns its name.
    pub async fn next(&mut self) -> &'static str {
        tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
        }
    }
}
