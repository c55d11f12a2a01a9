//! Logs, on standard error.
//!
//! Levels: `error` is a defect or lost service, someone must look; `warn` is something that a person may have to
//! change; `info` is what an operator wants to see of a healthy server (start, ready, stop); `debug` follows
//! statements and epochs; `trace` follows messages.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Starts writing logs that pass the filter. Panics are logged too, in one line with their place.
pub fn start(filter: &str) -> Result<(), String> {
    let filter = EnvFilter::try_new(filter).map_err(|error| format!("--log: {error}"))?;
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_target(false)
        .try_init()
        .map_err(|error| format!("cannot start logging: {error}"))?;
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
    Ok(())
}
