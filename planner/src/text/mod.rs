//! PostgreSQL's text form of values that are the same in every session, written straight into a buffer.

mod float;

use bytes::BytesMut;

pub use float::{float32, float64};

/// Microseconds of a second.
const SECOND_MICROS: i64 = 1_000_000;

/// How intervals are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntervalStyle {
    /// `1 day 02:00:00`.
    Postgres,
    /// `P1DT2H`.
    Iso8601,
}

/// An integer.
pub fn integer(value: impl itoa::Integer, out: &mut BytesMut) {
    out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
}

/// `count` zeros.
pub fn zeros(count: usize, out: &mut BytesMut) {
    out.resize(out.len() + count, b'0');
}

/// Two digits.
pub fn two(value: i64, out: &mut BytesMut) {
    let value = value as u8;
    out.extend_from_slice(&[b'0' + value / 10, b'0' + value % 10]);
}

/// time, from microseconds since midnight.
pub fn time(micros: i64, out: &mut BytesMut) {
    let seconds = micros / SECOND_MICROS;
    two(seconds / 3600, out);
    out.extend_from_slice(b":");
    two(seconds / 60 % 60, out);
    out.extend_from_slice(b":");
    two(seconds % 60, out);
    fraction(micros % SECOND_MICROS, out);
}

/// A fraction of a second, without zeros at its end; nothing if there is none.
fn fraction(micros: i64, out: &mut BytesMut) {
    if micros == 0 {
        return;
    }
    let mut digits = [b'0'; 6];
    let mut rest = micros;
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    let length = digits.iter().rposition(|digit| *digit != b'0').map_or(0, |last| last + 1);
    out.extend_from_slice(b".");
    out.extend_from_slice(&digits[..length]);
}

/// interval.
pub fn interval(months: i32, days: i32, nanos: i64, style: IntervalStyle, out: &mut BytesMut) {
    match style {
        IntervalStyle::Postgres => interval_postgres(months, days, nanos / 1000, out),
        IntervalStyle::Iso8601 => interval_iso(months, days, nanos / 1000, out),
    }
}

/// `1 year 2 mons -3 days +04:05:06.7`: a plus only after a negative part.
fn interval_postgres(months: i32, days: i32, micros: i64, out: &mut BytesMut) {
    let start = out.len();
    let mut after_negative = false;
    for (value, unit) in [(months / 12, "year"), (months % 12, "mon"), (days, "day")] {
        if value == 0 {
            continue;
        }
        if out.len() > start {
            out.extend_from_slice(b" ");
        }
        if after_negative && value > 0 {
            out.extend_from_slice(b"+");
        }
        integer(value, out);
        out.extend_from_slice(b" ");
        out.extend_from_slice(unit.as_bytes());
        if value != 1 {
            out.extend_from_slice(b"s");
        }
        after_negative = value < 0;
    }
    let nothing_yet = out.len() == start;
    if micros == 0 && !nothing_yet {
        return;
    }
    if !nothing_yet {
        out.extend_from_slice(b" ");
    }
    if micros < 0 {
        out.extend_from_slice(b"-");
    } else if after_negative {
        out.extend_from_slice(b"+");
    }
    let size = micros.unsigned_abs() as i64;
    let seconds = size / SECOND_MICROS;
    let hours = seconds / 3600;
    if hours < 100 {
        two(hours, out);
    } else {
        integer(hours, out);
    }
    out.extend_from_slice(b":");
    two(seconds / 60 % 60, out);
    out.extend_from_slice(b":");
    two(seconds % 60, out);
    fraction(size % SECOND_MICROS, out);
}

/// `P1Y2M3DT4H5M6.7S`.
fn interval_iso(months: i32, days: i32, micros: i64, out: &mut BytesMut) {
    if months == 0 && days == 0 && micros == 0 {
        out.extend_from_slice(b"PT0S");
        return;
    }
    let part = |value: i64, unit: &[u8], out: &mut BytesMut| {
        if value != 0 {
            integer(value, out);
            out.extend_from_slice(unit);
        }
    };
    out.extend_from_slice(b"P");
    part(i64::from(months / 12), b"Y", out);
    part(i64::from(months % 12), b"M", out);
    part(i64::from(days), b"D", out);
    if micros == 0 {
        return;
    }
    out.extend_from_slice(b"T");
    let seconds = micros / SECOND_MICROS;
    part(seconds / 3600, b"H", out);
    part(seconds / 60 % 60, b"M", out);
    let rest = micros % (60 * SECOND_MICROS);
    if rest != 0 {
        if rest < 0 {
            out.extend_from_slice(b"-");
        }
        let size = rest.abs();
        integer(size / SECOND_MICROS, out);
        fraction(size % SECOND_MICROS, out);
        out.extend_from_slice(b"S");
    }
}
