//! The only place that spawns. Every task has a name; whoever spawns it owns its handle and knows how it ends.

use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use tokio::task::JoinHandle;

use crate::error::ServerError;

/// Runs a future on the server's async runtime. A panic in it is logged under the task's name and ends only
/// that task.
#[allow(clippy::disallowed_methods)]
pub fn spawn<F>(name: &'static str, future: F) -> JoinHandle<Option<F::Output>>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(async move {
        match AssertUnwindSafe(future).catch_unwind().await {
            Ok(output) => Some(output),
            Err(panic) => {
                tracing::error!(task = name, "task panicked: {}", panic_text(panic.as_ref()));
                None
            }
        }
    })
}

/// Runs work that blocks (reads of the store) beside the async runtime.
#[allow(clippy::disallowed_methods)]
pub async fn blocking<F, T>(name: &'static str, work: F) -> Result<T, ServerError>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    tokio::task::spawn_blocking(work).await.map_err(|error| ServerError::internal(format!("{name}: {error}")))
}

/// Starts a thread that lives as long as the server.
pub fn spawn_thread<F, T>(name: &str, closure: F) -> std::io::Result<std::thread::JoinHandle<T>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    std::thread::Builder::new().name(name.to_owned()).spawn(closure)
}

/// What a panic said.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "unknown panic".to_owned()
    }
}
