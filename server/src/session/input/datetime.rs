//! Dates and times from text.
//!
//! The ISO forms `YYYY-MM-DD[ HH:MM:SS[.ffffff]][offset]` are read by position; everything else goes through a slower
//! reader of words: month names, other orders, AM and PM, time zone names, `infinity`, `epoch`, `now`, BC.

use plan::SqlState;

use super::invalid;
use crate::error::{Result, ServerError};
use crate::pgwire::text::days_from_civil;
use crate::session::timezone::{self, TimeZone};

/// Microseconds of a second.
const SECOND: i64 = 1_000_000;
/// Microseconds of a day.
const DAY: i64 = 86_400 * SECOND;
/// Years that Postgres's timestamps reach.
const YEARS: std::ops::RangeInclusive<i64> = -4713..=294_276;

/// What a text says about a point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    /// Before or after all others.
    Infinity(bool),
    /// Days since 1970, microseconds of the day, and the zone if one was written.
    At { days: i64, micros: i64, zone: Option<TimeZone> },
}

/// Why a text is no point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Problem {
    /// It has no form that is known.
    Syntax,
    /// A field is not in its range: month 13, February 30.
    Range,
}

/// A date as days since 1970.
pub fn parse_date(text: &[u8]) -> Result<i32> {
    if text.len() == 10
        && let Some(days) = iso_date(text)
    {
        return Ok(days as i32);
    }
    match read(text).map_err(|problem| error(problem, text, "date"))? {
        Point::Infinity(after) => Ok(if after { i32::MAX } else { i32::MIN }),
        Point::At { days, .. } => i32::try_from(days).map_err(|_| error(Problem::Range, text, "date")),
    }
}

/// A timestamp as microseconds since 1970; a zone in the text is ignored, as in Postgres.
pub fn parse_timestamp(text: &[u8]) -> Result<i64> {
    // A zone at the end is ignored, so a Z may be left out before.
    if let Some((days, micros)) = iso_timestamp(text.strip_suffix(b"Z").unwrap_or(text)) {
        return Ok(days * DAY + micros);
    }
    match read(text).map_err(|problem| error(problem, text, "timestamp"))? {
        Point::Infinity(after) => Ok(if after { i64::MAX } else { i64::MIN }),
        Point::At { days, micros, .. } => Ok(days * DAY + micros),
    }
}

/// A timestamptz as microseconds since 1970 in UTC; without a zone in the text it is in the session's.
pub fn parse_timestamptz(text: &[u8], session: TimeZone) -> Result<i64> {
    let (plain, zulu) = match text.strip_suffix(b"Z") {
        Some(plain) => (plain, Some(TimeZone::UTC)),
        None => (text, None),
    };
    let (days, micros, zone) = match iso_timestamp(plain) {
        Some((days, micros)) => (days, micros, zulu),
        None => match read(text).map_err(|problem| error(problem, text, "timestamp with time zone"))? {
            Point::Infinity(after) => return Ok(if after { i64::MAX } else { i64::MIN }),
            Point::At { days, micros, zone } => (days, micros, zone),
        },
    };
    let utc = zone.unwrap_or(session).to_utc(days * DAY + micros);
    utc.ok_or_else(|| error(Problem::Range, text, "timestamp with time zone"))
}

/// A time as microseconds since midnight.
pub fn parse_time(text: &[u8]) -> Result<i64> {
    let failed = |problem| error(problem, text, "time");
    let lower = std::str::from_utf8(text).map_err(|_| failed(Problem::Syntax))?.trim().to_ascii_lowercase();
    let mut words = lower.split_ascii_whitespace().peekable();
    // A date in front is allowed, and ignored.
    while words.peek().is_some_and(|word| !word.contains(':')) {
        words.next();
    }
    let mut word = words.next().ok_or_else(|| failed(Problem::Syntax))?;
    if let Some((_, time)) = word.split_once('t') {
        word = time;
    }
    let (time, _) = split_zone(word);
    let micros = read_clock(time).map_err(failed)?;
    match words.next() {
        Some(half @ ("am" | "pm")) => half_day(micros, half).map_err(failed),
        _ => Ok(micros),
    }
}

/// The error for a text that is no date or time.
fn error(problem: Problem, text: &[u8], type_name: &str) -> ServerError {
    match problem {
        Problem::Syntax => ServerError { sqlstate: SqlState::INVALID_DATETIME_FORMAT, ..invalid(type_name, text) },
        Problem::Range => ServerError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("date/time field value out of range: \"{}\"", String::from_utf8_lossy(text)),
        ),
    }
}

/// Two digits.
#[inline]
fn two(text: &[u8], at: usize) -> Option<i64> {
    let (high, low) = (text[at].wrapping_sub(b'0'), text[at + 1].wrapping_sub(b'0'));
    (high <= 9 && low <= 9).then(|| i64::from(high) * 10 + i64::from(low))
}

/// `YYYY-MM-DD` at the beginning of at least ten bytes.
#[inline]
fn iso_date(text: &[u8]) -> Option<i64> {
    if text[4] != b'-' || text[7] != b'-' {
        return None;
    }
    let year = two(text, 0)? * 100 + two(text, 2)?;
    if year == 0 {
        return None;
    }
    civil(year, two(text, 5)?, two(text, 8)?)
}

/// `YYYY-MM-DD HH:MM:SS[.ffffff]` or with a T: days and microseconds.
#[inline]
fn iso_timestamp(text: &[u8]) -> Option<(i64, i64)> {
    if text.len() < 19 || !matches!(text[10], b' ' | b'T') || text[13] != b':' || text[16] != b':' {
        return None;
    }
    let days = iso_date(text)?;
    let (hour, minute, second) = (two(text, 11)?, two(text, 14)?, two(text, 17)?);
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut micros = (hour * 3600 + minute * 60 + second) * SECOND;
    if text.len() > 19 {
        let digits = &text[20..];
        if text[19] != b'.' || digits.is_empty() || digits.len() > 6 {
            return None;
        }
        let mut fraction = 0;
        for byte in digits {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            fraction = fraction * 10 + i64::from(digit);
        }
        micros += fraction * 10_i64.pow(6 - digits.len() as u32);
    }
    Some((days, micros))
}

/// Days since 1970 of a day that exists.
#[inline]
fn civil(year: i64, month: i64, day: i64) -> Option<i64> {
    const LENGTHS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let length = *LENGTHS.get(usize::try_from(month).ok()?.checked_sub(1)?)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let length = length + i64::from(leap && month == 2);
    (day >= 1 && day <= length && YEARS.contains(&year)).then(|| days_from_civil(year, month, day))
}

/// Reads any form, word by word.
fn read(text: &[u8]) -> Result<Point, Problem> {
    let lower = std::str::from_utf8(text).map_err(|_| Problem::Syntax)?.trim().to_ascii_lowercase();
    if let Some(point) = read_special(&lower) {
        return Ok(point);
    }
    let mut reader = Reader::default();
    for word in lower.split(|c: char| c.is_ascii_whitespace() || c == ',').filter(|word| !word.is_empty()) {
        reader.word(word)?;
    }
    reader.finish()
}

/// Words that stand for a point in time on their own.
fn read_special(lower: &str) -> Option<Point> {
    let now = runtime::clock::now_micros();
    let today = now.div_euclid(DAY);
    let day = |days| Some(Point::At { days, micros: 0, zone: None });
    match lower {
        "infinity" | "+infinity" => Some(Point::Infinity(true)),
        "-infinity" => Some(Point::Infinity(false)),
        "epoch" => Some(Point::At { days: 0, micros: 0, zone: Some(TimeZone::UTC) }),
        "now" => Some(Point::At { days: today, micros: now.rem_euclid(DAY), zone: Some(TimeZone::UTC) }),
        "today" => day(today),
        "tomorrow" => day(today + 1),
        "yesterday" => day(today - 1),
        _ => None,
    }
}

/// What has been read so far.
#[derive(Default)]
struct Reader {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    micros: Option<i64>,
    zone: Option<TimeZone>,
    before_christ: bool,
}

impl Reader {
    fn word(&mut self, word: &str) -> Result<(), Problem> {
        const MONTHS: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
        let first = word.as_bytes().first().copied().unwrap_or(b' ');
        match word {
            "bc" => self.before_christ = true,
            "ad" => {}
            "am" | "pm" => self.micros = Some(half_day(self.micros.ok_or(Problem::Syntax)?, word)?),
            _ if first.is_ascii_digit() => self.number(word)?,
            _ if matches!(first, b'+' | b'-') && self.micros.is_some() => self.set_zone(word)?,
            _ if word.len() >= 3 && word.is_ascii() && MONTHS.contains(&&word[..3]) && self.month.is_none() => {
                let index = MONTHS.iter().position(|month| *month == &word[..3]).ok_or(Problem::Syntax)?;
                self.month = Some(index as i64 + 1);
            }
            _ if word.len() >= 3
                && word.is_ascii()
                && ["mon", "tue", "wed", "thu", "fri", "sat", "sun"].contains(&&word[..3])
                && word.ends_with("day") => {}
            _ => self.set_zone(word)?,
        }
        Ok(())
    }

    /// A word that begins with a digit: a date, a time, both around a T, a day or a year.
    fn number(&mut self, word: &str) -> Result<(), Problem> {
        if let Some((date, time)) = word.split_once('t')
            && !date.contains(':')
        {
            self.number(date)?;
            return self.number(time);
        }
        if word.contains(':') {
            let (time, zone) = split_zone(word);
            self.micros = Some(read_clock(time)?);
            if !zone.is_empty() {
                self.set_zone(zone)?;
            }
            return Ok(());
        }
        if let Some(separator) = word.chars().find(|c| matches!(c, '-' | '/' | '.')) {
            return self.date(word, separator);
        }
        let digits: i64 = word.parse().map_err(|_| Problem::Syntax)?;
        match word.len() {
            8 if self.year.is_none() => {
                self.year = Some(digits / 10_000);
                self.month = Some(digits / 100 % 100);
                self.day = Some(digits % 100);
            }
            6 if self.year.is_some() && self.micros.is_none() => {
                self.micros = Some((digits / 10_000 * 3600 + digits / 100 % 100 * 60 + digits % 100) * SECOND);
            }
            1 | 2 if self.day.is_none() => self.day = Some(digits),
            _ if self.year.is_none() => self.year = Some(digits),
            _ => return Err(Problem::Syntax),
        }
        Ok(())
    }

    /// Three fields with a separator: year first if it has more than two digits, otherwise month, day, year.
    fn date(&mut self, word: &str, separator: char) -> Result<(), Problem> {
        let fields: Vec<&str> = word.split(separator).collect();
        let [first, second, third] = fields.as_slice() else {
            return Err(Problem::Syntax);
        };
        let number = |field: &str| field.parse::<i64>().map_err(|_| Problem::Syntax);
        if second.chars().all(|c| c.is_ascii_alphabetic()) {
            self.word(second)?;
            let (day, year) = if first.len() > 2 { (third, first) } else { (first, third) };
            self.day = Some(number(day)?);
            self.year = Some(number(year)?);
        } else if first.len() > 2 {
            (self.year, self.month, self.day) = (Some(number(first)?), Some(number(second)?), Some(number(third)?));
        } else {
            (self.month, self.day) = (Some(number(first)?), Some(number(second)?));
            let year = number(third)?;
            let century = if third.len() > 2 {
                0
            } else if year < 70 {
                2000
            } else {
                1900
            };
            self.year = Some(year + century);
        }
        Ok(())
    }

    fn set_zone(&mut self, word: &str) -> Result<(), Problem> {
        let zone = match timezone::parse_offset(word.as_bytes()) {
            Some(seconds) => TimeZone::Fixed(seconds),
            None => TimeZone::parse(word).ok_or(Problem::Syntax)?.0,
        };
        self.zone = Some(zone);
        Ok(())
    }

    fn finish(self) -> Result<Point, Problem> {
        let (Some(year), Some(month), Some(day)) = (self.year, self.month, self.day) else {
            return Err(Problem::Syntax);
        };
        if year == 0 {
            return Err(Problem::Range);
        }
        let year = if self.before_christ { 1 - year } else { year };
        let days = civil(year, month, day).ok_or(Problem::Range)?;
        let micros = self.micros.unwrap_or(0);
        Ok(Point::At { days, micros, zone: self.zone })
    }
}

/// Cuts a time zone off a time: `05:00:00+02`, `05:00:00z`.
fn split_zone(word: &str) -> (&str, &str) {
    let end = word.find(|c: char| !(c.is_ascii_digit() || matches!(c, ':' | '.'))).unwrap_or(word.len());
    word.split_at(end)
}

/// `HH:MM[:SS[.ffffff]]`: microseconds; 24:00:00 is the end of the day.
fn read_clock(text: &str) -> Result<i64, Problem> {
    let mut fields = text.split(':');
    let mut whole = || -> Result<i64, Problem> {
        let field = fields.next().ok_or(Problem::Syntax)?;
        if field.is_empty() || field.len() > 2 {
            return Err(Problem::Syntax);
        }
        field.parse::<i64>().map_err(|_| Problem::Syntax)
    };
    let (hour, minute) = (whole()?, whole()?);
    let (second, fraction) = match fields.next() {
        None => (0, 0),
        Some(field) => {
            let (second, fraction) = field.split_once('.').unwrap_or((field, ""));
            let second = second.parse::<i64>().map_err(|_| Problem::Syntax)?;
            (second, read_fraction(fraction)?)
        }
    };
    if fields.next().is_some() {
        return Err(Problem::Syntax);
    }
    let micros = (hour * 3600 + minute * 60 + second) * SECOND + fraction;
    if hour > 24 || minute > 59 || second > 60 || micros > DAY {
        return Err(Problem::Range);
    }
    Ok(micros)
}

/// Digits after the point, rounded to microseconds.
fn read_fraction(digits: &str) -> Result<i64, Problem> {
    if digits.is_empty() {
        return Ok(0);
    }
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Problem::Syntax);
    }
    let fraction: f64 = format!("0.{digits}").parse().map_err(|_| Problem::Syntax)?;
    Ok((fraction * 1e6).round() as i64)
}

/// Twelve-hour clocks.
fn half_day(micros: i64, half: &str) -> Result<i64, Problem> {
    let hour = micros / (3600 * SECOND);
    match (half, hour) {
        (_, 13..) => Err(Problem::Range),
        ("am", 12) => Ok(micros - DAY / 2),
        ("pm", 0..=11) => Ok(micros + DAY / 2),
        _ => Ok(micros),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;

    fn shown(text: &str) -> String {
        let mut out = BytesMut::new();
        match parse_timestamptz(text.as_bytes(), TimeZone::UTC) {
            Ok(micros) => crate::pgwire::text::timestamp(micros, &mut out),
            Err(error) => return error.message,
        }
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[test]
    fn many_forms() {
        for (text, value) in [
            ("2013-01-01 05:00:00", "2013-01-01 05:00:00"),
            ("2013-01-01T05:00:00.25Z", "2013-01-01 05:00:00.25"),
            ("2013-01-01 05:00:00+02", "2013-01-01 03:00:00"),
            ("2013-01-01 05:00:00 -05:30", "2013-01-01 10:30:00"),
            ("2013-07-01 05:00 Europe/Berlin", "2013-07-01 03:00:00"),
            ("2013-1-1", "2013-01-01 00:00:00"),
            ("20130101", "2013-01-01 00:00:00"),
            ("1/2/2013", "2013-01-02 00:00:00"),
            ("Jan 2, 2013 3:04 PM", "2013-01-02 15:04:00"),
            ("2-Jan-2013", "2013-01-02 00:00:00"),
            ("0044-03-15 BC", "0044-03-15 00:00:00 BC"),
            ("infinity", "infinity"),
            ("epoch", "1970-01-01 00:00:00"),
            ("2013-02-30", "date/time field value out of range: \"2013-02-30\""),
            ("2013-13-01", "date/time field value out of range: \"2013-13-01\""),
            ("soon", "invalid input syntax for type timestamp with time zone: \"soon\""),
            ("", "invalid input syntax for type timestamp with time zone: \"\""),
        ] {
            assert_eq!(shown(text), value, "{text}");
        }
        assert_eq!(parse_date(b"2000-01-01").unwrap(), 10_957);
        assert_eq!(parse_time(b"04:05:06.5").unwrap(), 14_706_500_000);
        assert_eq!(parse_time(b"12:30 am").unwrap(), 1_800_000_000);
        assert!(parse_time(b"25:00").is_err());
        assert_eq!(parse_timestamp(b"2013-01-01 05:00:00+02").unwrap(), 1_357_016_400_000_000);
    }
}
