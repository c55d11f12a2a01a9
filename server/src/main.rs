//! The server `tidemill`: clients connect with any Postgres driver, create tables and materialized views, and read
//! views that are always up to date.
//!
//! Reading order: [`config`] (what can be set), [`server`] (how the parts are put together), [`pgwire`] (the
//! protocol), [`session`] (one client), and then the coordinator, the catalog and reads.

mod catalog;
mod config;
mod coordinator;
mod error;
mod pgwire;
mod read;
mod server;
mod session;
mod shutdown;
mod task;
mod telemetry;

use std::process::ExitCode;

use clap::Parser;

use crate::config::{Arguments, Command};

/// Returns freed memory to the system and does not fragment under many short-lived batches.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The exit code of a server that could not start or did not stop cleanly.
const EXIT_FAILURE: u8 = 1;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if let Some(Command::Health) = arguments.command {
        return match server::health(&arguments.options.listen) {
            Ok(()) => ExitCode::SUCCESS,
            Err(reason) => fail(&reason),
        };
    }
    let config = match arguments.options.into_config() {
        Ok(config) => config,
        Err(reason) => return fail(&reason),
    };
    if let Err(reason) = telemetry::start(&config.log) {
        return fail(&reason);
    }
    let result = server::run(&config);
    if let Err(reason) = &result {
        fail(reason);
    }
    shutdown::end_process(if result.is_ok() { 0 } else { i32::from(EXIT_FAILURE) })
}

/// Says on the terminal why the process ends; logs may be filtered or go elsewhere.
#[allow(clippy::print_stderr)]
fn fail(reason: &str) -> ExitCode {
    eprintln!("tidemill: {reason}");
    ExitCode::from(EXIT_FAILURE)
}
