//! Time zones of sessions: IANA names, or fixed offsets.

use chrono::{Offset, TimeZone as _};

/// Microseconds of a second.
const SECOND_MICROS: i64 = 1_000_000;

/// The time zone in which a session reads and writes timestamptz.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeZone {
    /// Seconds east of Greenwich.
    Fixed(i32),
    /// A zone with a history.
    Named(chrono_tz::Tz),
}

impl TimeZone {
    /// Greenwich.
    pub const UTC: TimeZone = TimeZone::Fixed(0);

    /// Reads a name (in any case) or an offset in hours or hours and minutes. Returns the zone and its name as SHOW
    /// prints it.
    pub fn parse(text: &str) -> Option<(TimeZone, String)> {
        let text = text.trim();
        if ["utc", "gmt", "etc/utc", "z", "zulu", "default", "local"].iter().any(|name| text.eq_ignore_ascii_case(name))
        {
            let shown = if text.eq_ignore_ascii_case("gmt") {
                "GMT"
            } else if text.eq_ignore_ascii_case("etc/utc") {
                "Etc/UTC"
            } else {
                "UTC"
            };
            return Some((TimeZone::UTC, shown.to_owned()));
        }
        if let Some(zone) = chrono_tz::TZ_VARIANTS.iter().find(|zone| zone.name().eq_ignore_ascii_case(text)) {
            return Some((TimeZone::Named(*zone), zone.name().to_owned()));
        }
        let seconds = parse_offset(text.as_bytes())?;
        let (sign, size) = if seconds < 0 { ('-', -seconds) } else { ('+', seconds) };
        // As Postgres prints it: the name of the zone, then POSIX's sign, which counts west of Greenwich.
        let posix = if seconds < 0 { '+' } else { '-' };
        let digits = if size % 3600 == 0 {
            format!("{:02}", size / 3600)
        } else {
            format!("{:02}:{:02}", size / 3600, size / 60 % 60)
        };
        Some((TimeZone::Fixed(seconds), format!("<{sign}{digits}>{posix}{digits}")))
    }

    /// Seconds east of Greenwich at a point in time (microseconds since 1970 in UTC).
    pub fn offset_at(self, utc_micros: i64) -> i32 {
        match self {
            TimeZone::Fixed(seconds) => seconds,
            TimeZone::Named(zone) => chrono::DateTime::from_timestamp(utc_micros.div_euclid(SECOND_MICROS), 0)
                .map_or(0, |utc| zone.offset_from_utc_datetime(&utc.naive_utc()).fix().local_minus_utc()),
        }
    }

    /// The point in time (microseconds since 1970 in UTC) at which clocks in the zone show a local time. Where clocks
    /// jump over it, the offset before the jump counts; where they show it twice, the first one, as in Postgres.
    pub fn to_utc(self, local_micros: i64) -> Option<i64> {
        let TimeZone::Named(zone) = self else {
            return local_micros.checked_sub(i64::from(self.offset_at(0)) * SECOND_MICROS);
        };
        let local = chrono::DateTime::from_timestamp(local_micros.div_euclid(SECOND_MICROS), 0)?.naive_utc();
        let offset = match zone.offset_from_local_datetime(&local).earliest() {
            Some(offset) => offset.fix().local_minus_utc(),
            None => self.offset_at(local_micros.checked_sub(24 * 3600 * SECOND_MICROS)?),
        };
        local_micros.checked_sub(i64::from(offset) * SECOND_MICROS)
    }
}

/// Reads `+02`, `-05:30`, `+0530`, `3`, `+01:02:03`: seconds east of Greenwich.
pub fn parse_offset(text: &[u8]) -> Option<i32> {
    let (negative, digits) = match text {
        [b'+', rest @ ..] => (false, rest),
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    let number = |part: &[u8]| -> Option<i32> {
        if part.is_empty() || part.len() > 2 || !part.iter().all(u8::is_ascii_digit) {
            return None;
        }
        Some(part.iter().fold(0, |value, digit| value * 10 + i32::from(digit - b'0')))
    };
    let (hours, minutes, seconds) = if digits.contains(&b':') {
        let mut parts = digits.split(|byte| *byte == b':');
        let hours = number(parts.next()?)?;
        let minutes = number(parts.next()?)?;
        let seconds = parts.next().map_or(Some(0), number)?;
        if parts.next().is_some() {
            return None;
        }
        (hours, minutes, seconds)
    } else if digits.len() == 4 {
        (number(&digits[..2])?, number(&digits[2..])?, 0)
    } else {
        (number(digits)?, 0, 0)
    };
    if hours > 15 || minutes > 59 || seconds > 59 {
        return None;
    }
    let size = hours * 3600 + minutes * 60 + seconds;
    Some(if negative { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_offsets() {
        assert_eq!(TimeZone::parse("utc"), Some((TimeZone::UTC, "UTC".into())));
        let (berlin, name) = TimeZone::parse("europe/berlin").unwrap();
        assert_eq!(name, "Europe/Berlin");
        // 2024-07-01 and 2024-01-01.
        assert_eq!(berlin.offset_at(1_719_792_000_000_000), 7200);
        assert_eq!(berlin.offset_at(1_704_067_200_000_000), 3600);
        assert_eq!(berlin.to_utc(1_719_792_000_000_000), Some(1_719_792_000_000_000 - 7_200_000_000));
        assert_eq!(TimeZone::parse("-05:30").unwrap().0, TimeZone::Fixed(-19_800));
        assert_eq!(TimeZone::parse("+02").unwrap().1, "<+02>-02");
        assert_eq!(TimeZone::parse("nowhere"), None);
    }
}
