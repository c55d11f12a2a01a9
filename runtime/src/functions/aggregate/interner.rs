//! Byte strings as dense numbers: the n-th different one that came is n.

use hashbrown::HashTable;
use xxhash_rust::xxh3::xxh3_64;

/// A set of byte strings, numbered in the order in which they came.
#[derive(Debug, Default)]
pub struct Interner {
    table: HashTable<u32>,
    hashes: Vec<u64>,
    ends: Vec<usize>,
    arena: Vec<u8>,
}

impl Interner {
    /// How many.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The string of a number.
    pub fn get(&self, number: usize) -> &[u8] {
        string(&self.arena, &self.ends, number)
    }

    /// All strings in the order of their numbers.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|number| self.get(number))
    }

    /// The number of a string, a new one if it was not there yet (then it is the last).
    #[inline]
    pub fn intern(&mut self, bytes: &[u8]) -> usize {
        self.intern_parts(&[bytes])
    }

    /// The same for the strings put behind each other.
    #[inline]
    pub fn intern_pair(&mut self, first: &[u8], second: &[u8]) -> usize {
        self.intern_parts(&[first, second])
    }

    #[inline]
    fn intern_parts(&mut self, parts: &[&[u8]]) -> usize {
        // The candidate is written behind the arena, and taken away again if it is there already.
        let start = self.arena.len();
        for part in parts {
            self.arena.extend_from_slice(part);
        }
        let candidate = &self.arena[start..];
        let hash = xxh3_64(candidate);
        let (hashes, ends, arena) = (&self.hashes, &self.ends, &self.arena);
        let found = self.table.find(hash, |number| {
            let number = *number as usize;
            hashes[number] == hash && string(arena, ends, number) == candidate
        });
        if let Some(number) = found {
            let number = *number as usize;
            self.arena.truncate(start);
            return number;
        }
        let number = self.ends.len();
        self.hashes.push(hash);
        self.ends.push(self.arena.len());
        let hashes = &self.hashes;
        // An epoch of more than 2^32 strings would not fit in memory.
        self.table.insert_unique(hash, number as u32, |number| hashes[*number as usize]);
        number
    }

    /// Forgets all; keeps the memory.
    pub fn clear(&mut self) {
        self.table.clear();
        self.hashes.clear();
        self.ends.clear();
        self.arena.clear();
    }

    /// Bytes of memory.
    pub fn memory_size(&self) -> usize {
        self.arena.capacity() + self.table.capacity() * 5 + (self.hashes.capacity() + self.ends.capacity()) * 8
    }
}

fn string<'a>(arena: &'a [u8], ends: &[usize], number: usize) -> &'a [u8] {
    let start = number.checked_sub(1).map_or(0, |before| ends[before]);
    &arena[start..ends[number]]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_bytes_have_the_same_number() {
        let mut interner = Interner::default();
        assert_eq!(interner.intern(b"a"), 0);
        assert_eq!(interner.intern(b""), 1);
        assert_eq!(interner.intern_pair(b"", b"a"), 0);
        assert_eq!(interner.intern_pair(b"a", b"b"), 2);
        assert_eq!(interner.intern(b"ab"), 2);
        assert_eq!(interner.iter().collect::<Vec<_>>(), [b"a".as_slice(), b"", b"ab"]);
        interner.clear();
        assert_eq!(interner.intern(b"b"), 0);
    }
}
