//! Compact bytes of numbers within a state value: little-endian base-128 groups, signed numbers folded so that small
//! ones of both signs are short.

/// Appends an unsigned number.
pub fn put_unsigned(out: &mut Vec<u8>, mut value: u128) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a signed number.
pub fn put_signed(out: &mut Vec<u8>, value: i128) {
    put_unsigned(out, ((value << 1) ^ (value >> 127)) as u128);
}

/// Takes an unsigned number; none if the bytes end or go on for too long.
pub fn take_unsigned(input: &mut &[u8]) -> Option<u128> {
    let mut value = 0u128;
    for shift in (0..128).step_by(7) {
        let byte = take_u8(input)?;
        value |= u128::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

/// Takes a signed number.
pub fn take_signed(input: &mut &[u8]) -> Option<i128> {
    let folded = take_unsigned(input)?;
    Some((folded >> 1) as i128 ^ -((folded & 1) as i128))
}

/// Takes a signed number of 64 bits.
pub fn take_i64(input: &mut &[u8]) -> Option<i64> {
    take_signed(input).and_then(|value| i64::try_from(value).ok())
}

/// Takes one byte.
pub fn take_u8(input: &mut &[u8]) -> Option<u8> {
    let (first, rest) = input.split_first()?;
    *input = rest;
    Some(*first)
}

/// Takes bytes of a fixed number.
pub fn take_array<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (array, rest) = input.split_first_chunk::<N>()?;
    *input = rest;
    Some(*array)
}

/// Appends bytes with their length before them.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_unsigned(out, bytes.len() as u128);
    out.extend_from_slice(bytes);
}

/// Takes bytes that [`put_bytes`] appended.
pub fn take_bytes<'a>(input: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(take_unsigned(input)?).ok()?;
    let (bytes, rest) = input.split_at_checked(length)?;
    *input = rest;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for value in [0, 1, -1, 63, 64, -64, -65, i128::from(i64::MAX), i128::from(i64::MIN), i128::MAX, i128::MIN] {
            let mut bytes = Vec::new();
            put_signed(&mut bytes, value);
            let mut input = bytes.as_slice();
            assert_eq!(take_signed(&mut input), Some(value));
            assert!(input.is_empty());
        }
        assert_eq!(take_signed(&mut [0x80u8].as_slice()), None);
        assert_eq!(take_bytes(&mut [2u8, 1].as_slice()), None);
    }
}
