//! One entry of a state table in memory.
//!
//! Key and small value stand in one allocation of their own, which a new value of the same length overwrites: no
//! pointer leads from the one to the other, and nothing is freed or shared while hot entries change. Large values are
//! shared instead of copied.

use std::cell::Cell;

use bytes::Bytes;

use crate::Epoch;
use crate::limits;
use crate::state::layout::{self, HEADER_LENGTH};

/// An entry of a state table in memory.
pub(super) struct Cached {
    /// The whole store key, and behind it the value if it is small.
    data: Box<[u8]>,
    /// The value if it is large.
    large: Option<Box<Bytes>>,
    /// The epoch of the last write; 0 if it was read from the store.
    pub(super) written: Epoch,
    key_length: u32,
    /// Whether there is a value. If not, there is nothing under the key.
    present: bool,
    /// Whether the store may hold an entry under the key once all taken writes are in it.
    pub(super) stored: bool,
    /// Used since the eviction hand passed.
    pub(super) referenced: Cell<bool>,
}

/// What a key's value becomes.
#[derive(Clone, Copy)]
pub(super) enum Change<'a> {
    /// There is none.
    Delete,
    /// These bytes, to be copied.
    Put(&'a [u8]),
    /// These bytes, which may be shared if they are many.
    PutShared(&'a Bytes),
}

impl<'a> Change<'a> {
    /// The value and, if it may and should be shared, the same as owned bytes.
    fn parts(self) -> (Option<&'a [u8]>, Option<Bytes>) {
        match self {
            Change::Delete => (None, None),
            Change::Put(value) if value.len() <= limits::CACHED_SMALL_VALUE_BYTES_MAX => (Some(value), None),
            Change::Put(value) => (Some(value), Some(Bytes::copy_from_slice(value))),
            Change::PutShared(value) if value.len() <= limits::CACHED_SMALL_VALUE_BYTES_MAX => (Some(value), None),
            // A slice would keep all of what it was cut from in memory.
            Change::PutShared(value) if !value.is_unique() => (Some(value), Some(Bytes::copy_from_slice(value))),
            Change::PutShared(value) => (Some(value), Some(value.clone())),
        }
    }
}

impl Cached {
    /// An entry as the store has it.
    pub(super) fn new(table: u32, partition: u16, key: &[u8], change: Change<'_>, stored: bool) -> Self {
        let (value, large) = change.parts();
        let small = value.filter(|_| large.is_none()).unwrap_or_default();
        let mut data = Vec::with_capacity(HEADER_LENGTH + key.len() + small.len());
        data.extend_from_slice(&layout::header(table, partition));
        data.extend_from_slice(key);
        data.extend_from_slice(small);
        Cached {
            data: data.into_boxed_slice(),
            large: large.map(Box::new),
            written: 0,
            key_length: (HEADER_LENGTH + key.len()) as u32,
            present: value.is_some(),
            stored,
            referenced: Cell::new(true),
        }
    }

    /// The whole store key.
    pub(super) fn key(&self) -> &[u8] {
        &self.data[..self.key_length as usize]
    }

    /// Whether this is the entry of a key.
    pub(super) fn is(&self, partition: u16, key: &[u8]) -> bool {
        self.key_length as usize == HEADER_LENGTH + key.len()
            && self.data[4..HEADER_LENGTH] == partition.to_be_bytes()
            && self.data[HEADER_LENGTH..self.key_length as usize] == *key
    }

    /// The value, or none if there is nothing under the key.
    pub(super) fn value(&self) -> Option<&[u8]> {
        if !self.present {
            return None;
        }
        Some(self.large.as_ref().map_or(&self.data[self.key_length as usize..], |large| large))
    }

    /// How long the value is, told without reading it.
    pub(super) fn value_length(&self) -> usize {
        match &self.large {
            _ if !self.present => 0,
            Some(large) => large.len(),
            None => self.data.len() - self.key_length as usize,
        }
    }

    /// The value if it is large: to be shared.
    pub(super) fn large(&self) -> Option<&Bytes> {
        self.large.as_deref().filter(|_| self.present)
    }

    /// The value as bytes of its own.
    pub(super) fn to_bytes(&self) -> Option<Bytes> {
        self.large().cloned().or_else(|| self.value().map(Bytes::copy_from_slice))
    }

    /// Gives the key another value.
    pub(super) fn set(&mut self, change: Change<'_>) {
        let (value, large) = change.parts();
        self.present = value.is_some();
        self.large = large.map(Box::new);
        if let Some(value) = value.filter(|_| self.large.is_none()) {
            let key_length = self.key_length as usize;
            if self.data.len() == key_length + value.len() {
                self.data[key_length..].copy_from_slice(value);
            } else {
                let mut data = Vec::with_capacity(key_length + value.len());
                data.extend_from_slice(self.key());
                data.extend_from_slice(value);
                self.data = data.into_boxed_slice();
            }
        }
    }

    /// Bytes that the entry counts for.
    pub(super) fn bytes(&self) -> usize {
        self.data.len() + self.large.as_ref().map_or(0, |large| large.len()) + limits::CACHED_ENTRY_OVERHEAD_BYTES
    }
}

/// Byte strings that are collected into one allocation and then handed out as slices of it.
pub(super) struct Arena {
    buffer: Vec<u8>,
    places: Vec<Place>,
}

enum Place {
    Absent,
    At(usize, usize),
    Shared(Bytes),
}

impl Arena {
    /// Room for about so many strings of so many bytes together.
    pub(super) fn with_capacity(count: usize, bytes: usize) -> Self {
        Arena { buffer: Vec::with_capacity(bytes), places: Vec::with_capacity(count) }
    }

    /// Adds a string.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let start = self.buffer.len();
        self.buffer.extend_from_slice(bytes);
        self.places.push(Place::At(start, self.buffer.len()));
    }

    /// Adds an entry's value.
    pub(super) fn push_value(&mut self, cached: Option<&Cached>) {
        match cached.and_then(|cached| Some((cached.large(), cached.value()?))) {
            None => self.places.push(Place::Absent),
            Some((Some(large), _)) => self.places.push(Place::Shared(large.clone())),
            Some((None, value)) => self.push(value),
        }
    }

    /// All that was added, taken as keys and values in turn.
    pub(super) fn finish_writes(self, writes: &mut Vec<(Bytes, Option<Bytes>)>) {
        let mut all = self.finish();
        while let (Some(Some(key)), Some(value)) = (all.next(), all.next()) {
            writes.push((key, value));
        }
    }

    /// All that was added, taken as keys and values in turn, none of them absent.
    pub(super) fn finish_pairs(self) -> Vec<(Bytes, Bytes)> {
        let mut pairs = Vec::with_capacity(self.places.len() / 2);
        let mut all = self.finish();
        while let (Some(Some(key)), Some(Some(value))) = (all.next(), all.next()) {
            pairs.push((key, value));
        }
        pairs
    }

    /// All that was added, in order; none for an absent value.
    pub(super) fn finish(self) -> impl Iterator<Item = Option<Bytes>> {
        let buffer = Bytes::from(self.buffer);
        self.places.into_iter().map(move |place| match place {
            Place::Absent => None,
            Place::At(start, end) => Some(buffer.slice(start..end)),
            Place::Shared(bytes) => Some(bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_all_lengths_replace_each_other() {
        let limit = limits::CACHED_SMALL_VALUE_BYTES_MAX;
        let lengths = [Some(0), Some(limit), None, Some(limit + 1), Some(1), Some(10 * limit), None, Some(3)];
        for first in lengths {
            for second in lengths {
                let [first, second] = [first, second].map(|length| length.map(|length| vec![length as u8; length]));
                let change = |value: &Option<Vec<u8>>| match value {
                    Some(value) => Bytes::from(value.clone()),
                    None => Bytes::new(),
                };
                let (shared_first, shared_second) = (change(&first), change(&second));
                let put = |present: bool, shared| if present { Change::PutShared(shared) } else { Change::Delete };
                let mut cached = Cached::new(1, 2, b"key", put(first.is_some(), &shared_first), false);
                assert_eq!(cached.value(), first.as_deref());
                cached.set(put(second.is_some(), &shared_second));
                assert_eq!(cached.value(), second.as_deref());
                assert_eq!(cached.to_bytes().as_deref(), second.as_deref());
                assert_eq!(cached.key(), b"\0\0\0\x01\0\x02key");
                assert!(cached.is(2, b"key") && !cached.is(2, b"ke") && !cached.is(3, b"key"));
            }
        }
    }
}
