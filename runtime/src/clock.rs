//! The only reader of wall clock and monotonic time.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Microseconds since 1970-01-01 00:00:00 UTC.
#[allow(clippy::disallowed_methods)]
pub fn now_micros() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// A point in monotonic time.
#[allow(clippy::disallowed_methods)]
pub fn monotonic() -> Instant {
    Instant::now()
}

/// How long ago a point in monotonic time was.
pub fn elapsed(since: Instant) -> Duration {
    monotonic().saturating_duration_since(since)
}
