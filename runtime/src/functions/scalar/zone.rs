//! Time zones: by name of the zone database, by abbreviation, or as POSIX writes an offset.

use chrono::{NaiveDateTime, Offset, TimeDelta, TimeZone};
use chrono_tz::Tz;
use datafusion::error::{DataFusionError, Result};
use plan::SqlState;

use super::overload::error;

/// A time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Zone {
    /// Of the zone database.
    Named(Tz),
    /// So many seconds east of UTC, always.
    Fixed(i32),
}

/// Abbreviations that are not names in the zone database, with their hours east of UTC.
const ABBREVIATIONS: &[(&str, i32)] = &[
    ("PST", -8),
    ("PDT", -7),
    ("MDT", -6),
    ("CST", -6),
    ("CDT", -5),
    ("EDT", -4),
    ("AST", -4),
    ("ADT", -3),
    ("BST", 1),
    ("CEST", 2),
    ("EEST", 3),
    ("MSK", 3),
    ("JST", 9),
    ("KST", 9),
    ("AEST", 10),
    ("AEDT", 11),
];

impl Zone {
    /// UTC.
    pub const UTC: Zone = Zone::Fixed(0);

    /// The zone of a name.
    pub fn parse(name: &str) -> Result<Zone> {
        Self::find(name.trim())
            .ok_or_else(|| error(SqlState::INVALID_PARAMETER_VALUE, format!("time zone \"{name}\" not recognized")))
    }

    fn find(name: &str) -> Option<Zone> {
        if ["utc", "gmt", "z", "zulu"].iter().any(|utc| name.eq_ignore_ascii_case(utc)) {
            return Some(Zone::UTC);
        }
        if let Some((_, hours)) = ABBREVIATIONS.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)) {
            return Some(Zone::Fixed(hours * 3600));
        }
        let named = name.parse::<Tz>().ok();
        let named = named
            .or_else(|| chrono_tz::TZ_VARIANTS.iter().find(|known| known.name().eq_ignore_ascii_case(name)).copied());
        named.map(Zone::Named).or_else(|| Self::posix(name))
    }

    /// `+05:30` or `UTC+3`: hours west of UTC, as POSIX counts them.
    fn posix(name: &str) -> Option<Zone> {
        let digits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let (sign, digits) = match digits.as_bytes().first()? {
            b'+' => (-1, &digits[1..]),
            b'-' => (1, &digits[1..]),
            b'0'..=b'9' => (-1, digits),
            _ => return None,
        };
        let mut seconds = 0;
        for (part, unit) in digits.splitn(3, ':').zip([3600, 60, 1]) {
            if part.is_empty() || part.len() > 2 || !part.bytes().all(|b| b.is_ascii_digit()) {
                return None;
            }
            seconds += part.parse::<i32>().ok()? * unit;
        }
        (seconds <= 24 * 3600).then_some(Zone::Fixed(sign * seconds))
    }

    /// Seconds east of UTC at an instant.
    fn offset_at(self, instant: NaiveDateTime) -> i32 {
        match self {
            Zone::Fixed(seconds) => seconds,
            Zone::Named(zone) => zone.offset_from_utc_datetime(&instant).fix().local_minus_utc(),
        }
    }

    /// What a clock in the zone shows at an instant, both in microseconds since 1970.
    pub fn local(self, micros: i64) -> Result<i64> {
        let offset = self.offset_at(date_time(micros)?);
        micros.checked_add(i64::from(offset) * 1_000_000).ok_or_else(out_of_range)
    }

    /// When a clock in the zone shows a time. Twice or never shown: by the offset of standard time, as in PostgreSQL.
    pub fn instant(self, micros: i64) -> Result<i64> {
        let local = date_time(micros)?;
        let offset = match self {
            Zone::Fixed(seconds) => seconds,
            Zone::Named(zone) => match zone.offset_from_local_datetime(&local) {
                chrono::LocalResult::Single(offset) => offset.fix().local_minus_utc(),
                chrono::LocalResult::Ambiguous(first, second) => {
                    first.fix().local_minus_utc().min(second.fix().local_minus_utc())
                }
                chrono::LocalResult::None => self.offset_at(local - TimeDelta::hours(24)),
            },
        };
        micros.checked_sub(i64::from(offset) * 1_000_000).ok_or_else(out_of_range)
    }

    /// Seconds east of UTC, and the zone's abbreviation, at an instant in microseconds since 1970.
    pub fn describe(self, micros: i64) -> Result<(i32, String)> {
        let instant = date_time(micros)?;
        let name = match self {
            Zone::Fixed(0) => "UTC".to_string(),
            Zone::Fixed(seconds) => {
                let sign = if seconds < 0 { '-' } else { '+' };
                format!("{sign}{:02}", seconds.abs() / 3600)
            }
            Zone::Named(zone) => zone.offset_from_utc_datetime(&instant).to_string(),
        };
        Ok((self.offset_at(instant), name))
    }
}

/// The calendar's date and time of microseconds since 1970.
pub fn date_time(micros: i64) -> Result<NaiveDateTime> {
    chrono::DateTime::from_timestamp_micros(micros).map(|instant| instant.naive_utc()).ok_or_else(out_of_range)
}

fn out_of_range() -> DataFusionError {
    error(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range")
}
