//! Postgres's binary form of the values that are more than a fixed-width number.

use bytes::{BufMut, BytesMut};

use super::types::oid;

/// Days from 1970-01-01 to 2000-01-01, where Postgres counts from.
pub const EPOCH_DAYS: i32 = 10_957;
/// The same in microseconds.
pub const EPOCH_MICROS: i64 = EPOCH_DAYS as i64 * 86_400_000_000;
/// Sign word of negative numerics.
pub const NUMERIC_NEGATIVE: u16 = 0x4000;
/// Decimal digits in one digit of a numeric.
const GROUP: usize = 4;

/// date.
pub fn date(days: i32, out: &mut BytesMut) {
    let infinite = days == i32::MAX || days == i32::MIN;
    out.put_i32(if infinite { days } else { days.wrapping_sub(EPOCH_DAYS) });
}

/// timestamp and timestamptz.
pub fn timestamp(micros: i64, out: &mut BytesMut) {
    let infinite = micros == i64::MAX || micros == i64::MIN;
    out.put_i64(if infinite { micros } else { micros.wrapping_sub(EPOCH_MICROS) });
}

/// interval.
pub fn interval(months: i32, days: i32, nanos: i64, out: &mut BytesMut) {
    out.put_i64(nanos / 1000);
    out.put_i32(days);
    out.put_i32(months);
}

/// A type that is kept as text.
pub fn text(value: &str, type_oid: u32, out: &mut BytesMut) {
    match type_oid {
        oid::UUID => {
            if let Ok(uuid) = uuid::Uuid::parse_str(value) {
                out.extend_from_slice(uuid.as_bytes());
            }
        }
        oid::JSONB => {
            // The version of jsonb's binary form.
            out.put_u8(1);
            out.extend_from_slice(value.as_bytes());
        }
        _ => out.extend_from_slice(value.as_bytes()),
    }
}

/// numeric, from its text form: digits in groups of four around the decimal point.
pub fn numeric(text: &[u8], out: &mut BytesMut) {
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let point = digits.iter().position(|byte| *byte == b'.').unwrap_or(digits.len());
    let (whole, fraction) = (&digits[..point], digits.get(point + 1..).unwrap_or_default());
    let digit = |text: &[u8], index: usize| text.get(index).map_or(0, |byte| u16::from(byte - b'0'));

    let mut groups: Vec<u16> = Vec::with_capacity(whole.len() / GROUP + fraction.len() / GROUP + 2);
    let padding = (GROUP - whole.len() % GROUP) % GROUP;
    for start in (0..whole.len() + padding).step_by(GROUP) {
        let group = (start..start + GROUP)
            .fold(0, |group, index| group * 10 + index.checked_sub(padding).map_or(0, |index| digit(whole, index)));
        groups.push(group);
    }
    let mut weight = groups.len() as i32 - 1;
    for start in (0..fraction.len()).step_by(GROUP) {
        groups.push((start..start + GROUP).fold(0, |group, index| group * 10 + digit(fraction, index)));
    }
    let leading = groups.iter().take_while(|group| **group == 0).count();
    groups.drain(..leading);
    weight -= leading as i32;
    while groups.last() == Some(&0) {
        groups.pop();
    }
    if groups.is_empty() {
        weight = 0;
    }
    out.put_u16(groups.len() as u16);
    out.put_i16(weight as i16);
    out.put_u16(if negative && !groups.is_empty() { NUMERIC_NEGATIVE } else { 0 });
    out.put_u16(fraction.len() as u16);
    for group in groups {
        out.put_u16(group);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<i16> {
        let mut out = BytesMut::new();
        numeric(text.as_bytes(), &mut out);
        out.chunks(2).map(|pair| i16::from_be_bytes([pair[0], pair[1]])).collect()
    }

    #[test]
    fn numerics_are_groups_of_four_digits() {
        assert_eq!(words("12345.678"), [3, 1, 0, 3, 1, 2345, 6780]);
        assert_eq!(words("0.00"), [0, 0, 0, 2]);
        assert_eq!(words("-0.0001"), [1, -1, 0x4000, 4, 1]);
        assert_eq!(words("10000"), [1, 1, 0, 0, 1]);
    }
}
