//! Key prefixes of a state table under which everything is in memory.
//!
//! A prefix here is a partition and the beginning of a key. Prefixes are kept in two generations: one that is used
//! moves to the young one, aging drops the old one. So an unused prefix is forgotten after two agings, even one
//! that has no entries whose eviction would end it.

use bytes::Bytes;
use hashbrown::HashSet;

/// Bytes that a prefix counts for besides its own.
const PREFIX_OVERHEAD_BYTES: usize = 64;

/// Key prefixes under which everything is in memory.
#[derive(Default)]
pub(super) struct LoadedPrefixes {
    /// Lengths of the prefixes there are: few, as an operator looks up by few kinds of prefix.
    lengths: Vec<usize>,
    young: HashSet<Bytes>,
    old: HashSet<Bytes>,
    bytes: usize,
    scratch: Vec<u8>,
}

impl LoadedPrefixes {
    /// Bytes that the prefixes count for.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a prefix; returns by how much the bytes grew.
    pub(super) fn add(&mut self, partition: u16, prefix: &[u8]) -> usize {
        let mut key = Vec::with_capacity(2 + prefix.len());
        key.extend_from_slice(&partition.to_be_bytes());
        key.extend_from_slice(prefix);
        if !self.lengths.contains(&key.len()) {
            self.lengths.push(key.len());
            self.lengths.sort_unstable();
        }
        let length = key.len();
        if self.old.contains(&key[..]) || !self.young.insert(key.into()) {
            return 0;
        }
        self.bytes += length + PREFIX_OVERHEAD_BYTES;
        length + PREFIX_OVERHEAD_BYTES
    }

    /// Whether everything whose key begins with this prefix is in memory.
    pub(super) fn covers(&mut self, partition: u16, prefix: &[u8]) -> bool {
        if self.lengths.is_empty() {
            return false;
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(&partition.to_be_bytes());
        self.scratch.extend_from_slice(prefix);
        for length in &self.lengths {
            let Some(candidate) = self.scratch.get(..*length) else { break };
            if self.young.contains(candidate) {
                return true;
            }
            if let Some(prefix) = self.old.take(candidate) {
                self.young.insert(prefix);
                return true;
            }
        }
        false
    }

    /// Forgets the prefixes that cover a key (partition and key); returns how many bytes became free.
    pub(super) fn remove_covering(&mut self, key: &[u8]) -> usize {
        let mut released = 0;
        for length in &self.lengths {
            let Some(candidate) = key.get(..*length) else { break };
            if self.young.remove(candidate) || self.old.remove(candidate) {
                released += length + PREFIX_OVERHEAD_BYTES;
            }
        }
        self.bytes -= released;
        released
    }

    /// Forgets what was not used since the last aging; returns how many bytes became free.
    pub(super) fn age(&mut self) -> usize {
        let old = std::mem::replace(&mut self.old, std::mem::take(&mut self.young));
        let released = old.iter().map(|prefix| prefix.len() + PREFIX_OVERHEAD_BYTES).sum();
        self.bytes -= released;
        if self.old.is_empty() {
            self.lengths.clear();
        }
        released
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_keys_are_covered_until_one_is_evicted() {
        let mut loaded = LoadedPrefixes::default();
        loaded.add(3, b"ab");
        assert!(loaded.covers(3, b"ab") && loaded.covers(3, b"abc"));
        assert!(!loaded.covers(3, b"a") && !loaded.covers(4, b"ab"));
        assert!(loaded.remove_covering(b"\0\x03abz") > 0);
        assert!(!loaded.covers(3, b"ab"));
        assert_eq!(loaded.bytes(), 0);
    }

    #[test]
    fn unused_prefixes_age_out() {
        let mut loaded = LoadedPrefixes::default();
        loaded.add(0, b"used");
        loaded.add(0, b"unused");
        assert_eq!(loaded.age(), 0);
        assert!(loaded.covers(0, b"used"));
        assert!(loaded.age() > 0);
        assert!(loaded.covers(0, b"used") && !loaded.covers(0, b"unused"));
        loaded.age();
        loaded.age();
        assert_eq!(loaded.bytes(), 0);
    }
}
