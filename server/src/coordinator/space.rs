//! Room on the disk, looked for before an epoch begins.
//!
//! An epoch that dataflows have absorbed cannot be taken back when it turns out that it cannot be written. So writes are
//! refused while there is still room for what is in flight: then the refusal is certain and nothing is left behind.

use std::path::Path;
use std::time::{Duration, Instant};

use runtime::clock;

/// Room that is left for the log, for compactions and for what is in flight.
const RESERVE_BYTES: u64 = 24 << 20;

/// A byte of input may become so many on disk: in the log, in a file, in the state of views.
const GROWTH: u64 = 3;

/// How long an answer of the file system is good for.
const FRESH: Duration = Duration::from_millis(200);

/// Bytes that may be written before the file system is asked again.
const STEP_BYTES: u64 = 8 << 20;

/// What is known of the room on the disk.
#[derive(Default)]
pub struct Space {
    asked: Option<Instant>,
    left: u64,
    taken: u64,
}

impl Space {
    /// Whether a write of so many bytes finds room.
    pub fn admits(&mut self, data_dir: &Path, bytes: usize) -> bool {
        let wanted = (bytes as u64).saturating_mul(GROWTH);
        let stale = self.asked.is_none_or(|asked| clock::elapsed(asked) > FRESH);
        if stale || self.taken > STEP_BYTES || wanted > self.left {
            // If the file system does not say, writing will.
            self.left = fs4::available_space(data_dir).map_or(u64::MAX, |free| free.saturating_sub(RESERVE_BYTES));
            self.asked = Some(clock::monotonic());
            self.taken = 0;
        }
        if wanted > self.left || self.left == 0 {
            return false;
        }
        self.left -= wanted;
        self.taken += wanted;
        true
    }
}
