//! The memory budget of a worker's cached state.
//!
//! Invariant: `used` is the sum of what all cached entries count for plus what the tables account for loaded
//! prefixes. Entries whose epoch has not been committed are counted, though they cannot be evicted: a budget that is
//! smaller than one epoch's writes is exceeded until that epoch is committed.

use std::cell::Cell;

use crate::limits;

/// How many bytes a worker's caches may take, and how many they take.
#[derive(Debug)]
pub struct Budget {
    limit: usize,
    used: Cell<usize>,
}

impl Budget {
    /// A budget of so many bytes, of which none are used.
    pub fn new(limit: usize) -> Self {
        Budget { limit, used: Cell::new(0) }
    }

    /// Bytes that may be used.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes in use.
    pub fn used(&self) -> usize {
        self.used.get()
    }

    /// Whether something should be evicted.
    pub fn is_exceeded(&self) -> bool {
        self.used.get() > self.limit
    }

    /// What eviction should get down to.
    pub fn eviction_target(&self) -> usize {
        self.limit / 100 * limits::EVICTION_TARGET_PERCENT
    }

    /// Counts bytes as used.
    pub fn take(&self, bytes: usize) {
        self.used.set(self.used.get() + bytes);
    }

    /// Counts bytes as free again.
    pub fn release(&self, bytes: usize) {
        debug_assert!(bytes <= self.used.get(), "more bytes released than taken");
        self.used.set(self.used.get().saturating_sub(bytes));
    }
}
