//! Keys that compare by their first bytes without following a pointer.

/// The first 16 bytes as a number, padded with zeros: unequal heads order as the bytes do.
pub(super) fn key_head(bytes: &[u8]) -> u128 {
    if let Some(head) = bytes.first_chunk::<16>() {
        return u128::from_be_bytes(*head);
    }
    let mut head = [0; 16];
    head[..bytes.len()].copy_from_slice(bytes);
    u128::from_be_bytes(head)
}

/// A byte string that orders as its bytes do.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OrderKey {
    head: u128,
    /// The length, 17 for all that are longer than the head: of equal heads the shorter string is a prefix of the other,
    /// up to zeros, and comes first.
    length: u8,
    /// What is behind the head.
    tail: Box<[u8]>,
}

impl OrderKey {
    /// The order of these bytes.
    pub(super) fn new(bytes: &[u8]) -> Self {
        let tail = bytes.get(16..).unwrap_or_default();
        OrderKey { head: key_head(bytes), length: bytes.len().min(17) as u8, tail: tail.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_as_bytes_do() {
        let mut strings: Vec<Vec<u8>> = Vec::new();
        for length in [0, 1, 2, 15, 16, 17, 18, 40] {
            for last in [0, 1, 0xff] {
                for fill in [0, 7] {
                    let mut string = vec![fill; length];
                    string.extend((length > 0).then_some(last));
                    strings.push(string);
                }
            }
        }
        for a in &strings {
            for b in &strings {
                assert_eq!(OrderKey::new(a).cmp(&OrderKey::new(b)), a.cmp(b), "{a:?} {b:?}");
            }
        }
    }
}
