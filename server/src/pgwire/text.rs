//! Postgres's text form of values, written straight into a buffer.

use bytes::BytesMut;
pub use planner::text::{IntervalStyle, integer, interval, time, two, zeros};

use crate::session::timezone::TimeZone;

/// Microseconds of a day.
const DAY_MICROS: i64 = 86_400_000_000;
/// Microseconds of a second.
const SECOND_MICROS: i64 = 1_000_000;
/// Days between 0000-03-01 and 1970-01-01 in the proleptic Gregorian calendar.
const DAYS_TO_UNIX_EPOCH: i64 = 719_468;

/// The settings of a session on which text depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextStyle {
    /// Zone in which timestamptz is shown.
    pub time_zone: TimeZone,
    /// Positive: the shortest digits that read back to the same number; otherwise digits more than float's 6 or 15.
    pub extra_float_digits: i32,
    /// bytea as `\x` and hexadecimal digits, or with escapes.
    pub bytea_hex: bool,
    /// How intervals are written.
    pub interval: IntervalStyle,
}

impl Default for TextStyle {
    fn default() -> Self {
        TextStyle {
            time_zone: TimeZone::UTC,
            extra_float_digits: 1,
            bytea_hex: true,
            interval: IntervalStyle::Postgres,
        }
    }
}

/// `t` or `f`.
pub fn boolean(value: bool, out: &mut BytesMut) {
    out.extend_from_slice(if value { b"t" } else { b"f" });
}

/// Year, month and day of days since 1970-01-01.
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    // Years begin in March here, so that the leap day is a year's last day.
    let shifted = days + DAYS_TO_UNIX_EPOCH;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// Days since 1970-01-01 of a year, month and day that exist.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted_month = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - DAYS_TO_UNIX_EPOCH
}

/// Year, month and day; returns whether the year is before Christ, which is said at the very end.
fn calendar(days: i64, out: &mut BytesMut) -> bool {
    let (year, month, day) = civil_from_days(days);
    let (year, before_christ) = if year <= 0 { (1 - year, true) } else { (year, false) };
    if year < 1000 {
        zeros(
            if year < 10 {
                3
            } else if year < 100 {
                2
            } else {
                1
            },
            out,
        );
    }
    integer(year, out);
    out.extend_from_slice(b"-");
    two(month, out);
    out.extend_from_slice(b"-");
    two(day, out);
    before_christ
}

/// date.
pub fn date(days: i32, out: &mut BytesMut) {
    match days {
        i32::MAX => out.extend_from_slice(b"infinity"),
        i32::MIN => out.extend_from_slice(b"-infinity"),
        _ => {
            if calendar(i64::from(days), out) {
                out.extend_from_slice(b" BC");
            }
        }
    }
}

/// timestamp, from microseconds since 1970.
pub fn timestamp(micros: i64, out: &mut BytesMut) {
    if !infinite(micros, out) && local_time(micros, out) {
        out.extend_from_slice(b" BC");
    }
}

/// timestamptz, from microseconds since 1970 in UTC, in the session's time zone and with its offset.
pub fn timestamptz(micros: i64, time_zone: TimeZone, out: &mut BytesMut) {
    if infinite(micros, out) {
        return;
    }
    let offset = time_zone.offset_at(micros);
    let before_christ = local_time(micros.saturating_add(i64::from(offset) * SECOND_MICROS), out);
    out.extend_from_slice(if offset < 0 { b"-" } else { b"+" });
    let size = i64::from(offset.abs());
    two(size / 3600, out);
    if size % 3600 != 0 {
        out.extend_from_slice(b":");
        two(size / 60 % 60, out);
        if size % 60 != 0 {
            out.extend_from_slice(b":");
            two(size % 60, out);
        }
    }
    if before_christ {
        out.extend_from_slice(b" BC");
    }
}

/// The points before and after all others.
fn infinite(micros: i64, out: &mut BytesMut) -> bool {
    match micros {
        i64::MAX => out.extend_from_slice(b"infinity"),
        i64::MIN => out.extend_from_slice(b"-infinity"),
        _ => return false,
    }
    true
}

/// Date and time; returns whether the year is before Christ.
fn local_time(micros: i64, out: &mut BytesMut) -> bool {
    let before_christ = calendar(micros.div_euclid(DAY_MICROS), out);
    out.extend_from_slice(b" ");
    time(micros.rem_euclid(DAY_MICROS), out);
    before_christ
}

/// bytea.
pub fn bytea(value: &[u8], hex: bool, out: &mut BytesMut) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    if hex {
        out.reserve(2 + 2 * value.len());
        out.extend_from_slice(b"\\x");
        for byte in value {
            out.extend_from_slice(&[DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
        }
        return;
    }
    for byte in value {
        match byte {
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x20..=0x7e => out.extend_from_slice(&[*byte]),
            _ => out.extend_from_slice(&[b'\\', b'0' + (byte >> 6), b'0' + (byte >> 3 & 7), b'0' + (byte & 7)]),
        }
    }
}

/// An element within an array: quoted if it could be read as something else.
pub fn array_element(text: &[u8], out: &mut BytesMut) {
    let special =
        |byte: &u8| matches!(byte, b'{' | b'}' | b'"' | b'\\' | b',' | b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c);
    if !text.is_empty() && !text.eq_ignore_ascii_case(b"null") && !text.iter().any(special) {
        out.extend_from_slice(text);
        return;
    }
    out.extend_from_slice(b"\"");
    for byte in text {
        if matches!(byte, b'"' | b'\\') {
            out.extend_from_slice(b"\\");
        }
        out.extend_from_slice(&[*byte]);
    }
    out.extend_from_slice(b"\"");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(write: impl FnOnce(&mut BytesMut)) -> String {
        let mut out = BytesMut::new();
        write(&mut out);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn dates_and_times() {
        assert_eq!(shown(|out| date(0, out)), "1970-01-01");
        assert_eq!(shown(|out| date(-719_163, out)), "0001-12-31 BC");
        assert_eq!(shown(|out| date(i32::MAX, out)), "infinity");
        assert_eq!(shown(|out| timestamp(1_357_016_400_000_000, out)), "2013-01-01 05:00:00");
        assert_eq!(shown(|out| timestamp(-1, out)), "1969-12-31 23:59:59.999999");
        assert_eq!(shown(|out| timestamp(100_000, out)), "1970-01-01 00:00:00.1");
        let (berlin, _) = TimeZone::parse("Europe/Berlin").unwrap();
        assert_eq!(shown(|out| timestamptz(0, berlin, out)), "1970-01-01 01:00:00+01");
        let (india, _) = TimeZone::parse("Asia/Kolkata").unwrap();
        assert_eq!(shown(|out| timestamptz(0, india, out)), "1970-01-01 05:30:00+05:30");
        assert_eq!(shown(|out| timestamptz(0, TimeZone::UTC, out)), "1970-01-01 00:00:00+00");
        for days in [-1_000_000, -719_469, -1, 0, 1, 11_016, 11_017, 1_000_000] {
            let (year, month, day) = civil_from_days(days);
            assert_eq!(days_from_civil(year, month, day), days);
        }
    }

    #[test]
    fn intervals() {
        let postgres = |months, days, micros: i64| {
            shown(|out| interval(months, days, micros * 1000, IntervalStyle::Postgres, out))
        };
        assert_eq!(postgres(0, 1, 7_200_000_000), "1 day 02:00:00");
        assert_eq!(postgres(0, 0, 0), "00:00:00");
        assert_eq!(postgres(14, -3, 1_500_000), "1 year 2 mons -3 days +00:00:01.5");
        assert_eq!(postgres(0, 0, -3_600_000_000), "-01:00:00");
        assert_eq!(postgres(-1, 1, 0), "-1 mons +1 day");
        let iso =
            |months, days, micros: i64| shown(|out| interval(months, days, micros * 1000, IntervalStyle::Iso8601, out));
        assert_eq!(iso(14, 3, 3_661_500_000), "P1Y2M3DT1H1M1.5S");
        assert_eq!(iso(0, 0, 0), "PT0S");
    }

    #[test]
    fn bytes_and_array_elements() {
        assert_eq!(shown(|out| bytea(&[0, 255, b'a'], true, out)), "\\x00ff61");
        assert_eq!(shown(|out| bytea(b"a\\\x00", false, out)), "a\\\\\\000");
        assert_eq!(shown(|out| array_element(b"a b", out)), "\"a b\"");
        assert_eq!(shown(|out| array_element(b"null", out)), "\"null\"");
        assert_eq!(shown(|out| array_element(b"a\"b", out)), "\"a\\\"b\"");
        assert_eq!(shown(|out| array_element(b"12", out)), "12");
    }
}
