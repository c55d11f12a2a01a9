//! Keys of the store.
//!
//! Every key is `[table id u32 BE][partition u16 BE][key bytes]`. Big-endian numbers make the byte order that of
//! (table, partition, key): a table is one range, a partition of a table is one range.
//!
//! Tables under [`FIRST_FREE_TABLE`] are the database's own: [`META_TABLE`] (the epoch, the storage format),
//! [`CATALOG_TABLE`] (catalog entries), [`COUNTER_TABLE`] (allocation of ids and row numbers). Table ids are never used
//! twice.

use bytes::Bytes;

/// The number of the format of everything stored. Goes up whenever older databases can no longer be read.
pub const STORAGE_FORMAT: u32 = 1;

/// The epoch and the storage format.
pub const META_TABLE: u32 = 0;
/// Catalog entries, written by the server.
pub const CATALOG_TABLE: u32 = 1;
/// Counters from which ids and row numbers are allocated, written by the server.
pub const COUNTER_TABLE: u32 = 2;
/// Relations and operator state use table ids from here on.
pub const FIRST_FREE_TABLE: u32 = 16;

/// Bytes of table id and partition before a key.
pub const HEADER_LENGTH: usize = 6;

/// Table id and partition as they stand before a key.
pub fn header(table: u32, partition: u16) -> [u8; HEADER_LENGTH] {
    let mut header = [0; HEADER_LENGTH];
    header[..4].copy_from_slice(&table.to_be_bytes());
    header[4..].copy_from_slice(&partition.to_be_bytes());
    header
}

/// The whole key of an entry.
pub fn store_key(table: u32, partition: u16, key: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(HEADER_LENGTH + key.len());
    bytes.extend_from_slice(&header(table, partition));
    bytes.extend_from_slice(key);
    bytes.into()
}

/// Table id, partition and the rest of a whole key; none if it is too short to be one.
pub fn split_key(store_key: &[u8]) -> Option<(u32, u16, &[u8])> {
    let (table, rest) = store_key.split_first_chunk::<4>()?;
    let (partition, key) = rest.split_first_chunk::<2>()?;
    Some((u32::from_be_bytes(*table), u16::from_be_bytes(*partition), key))
}

/// All keys of a table: `start <= key < end`.
pub fn table_range(table: u32) -> (Bytes, Bytes) {
    tables_range(table, table)
}

/// All keys of the tables from the first to the last, both included.
pub fn tables_range(first: u32, last: u32) -> (Bytes, Bytes) {
    let start = Bytes::copy_from_slice(&first.to_be_bytes());
    let end = match last.checked_add(1) {
        Some(next) => Bytes::copy_from_slice(&next.to_be_bytes()),
        // Longer than any key of the last table could be: partitions end at 1023.
        None => Bytes::copy_from_slice(&[0xff; HEADER_LENGTH]),
    };
    (start, end)
}

/// Where the number of the newest committed epoch stands, as u64 BE.
pub fn epoch_key() -> Bytes {
    store_key(META_TABLE, 0, b"epoch")
}

/// Where [`STORAGE_FORMAT`] stands, as u32 BE.
pub fn format_key() -> Bytes {
    store_key(META_TABLE, 0, b"storage_format")
}

/// The smallest key that is greater than every key with the prefix; none if there is no such key.
pub fn prefix_end(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.last_mut() {
        if *last < 0xff {
            *last += 1;
            return Some(end);
        }
        end.pop();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_pinned() {
        assert_eq!(&store_key(0x0102_0304, 0x0506, b"k")[..], b"\x01\x02\x03\x04\x05\x06k");
        assert_eq!(&epoch_key()[..], b"\0\0\0\0\0\0epoch");
        assert_eq!(&format_key()[..], b"\0\0\0\0\0\0storage_format");
        assert_eq!(STORAGE_FORMAT, 1, "a change of format needs a new number, and a new golden test");
        assert_eq!(split_key(&store_key(7, 9, b"xy")), Some((7, 9, &b"xy"[..])));
        assert_eq!(split_key(b"short"), None);
    }

    #[test]
    fn ranges_hold_their_tables_only() {
        let (start, end) = table_range(16);
        assert!(start <= store_key(16, 0, b"") && store_key(16, 1023, &[0xff; 40]) < end);
        assert!(store_key(15, 1023, &[0xff; 40]) < start && end <= store_key(17, 0, b""));
        let (start, end) = table_range(u32::MAX);
        assert!(start <= store_key(u32::MAX, 0, b"") && store_key(u32::MAX, 1023, &[0xff; 40]) < end);
    }

    #[test]
    fn prefix_end_skips_full_bytes() {
        assert_eq!(prefix_end(b"ab"), Some(b"ac".to_vec()));
        assert_eq!(prefix_end(b"a\xff"), Some(b"b".to_vec()));
        assert_eq!(prefix_end(b"\xff\xff"), None);
        assert_eq!(prefix_end(b""), None);
    }
}
