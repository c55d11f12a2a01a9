//! Intervals from text: `1 day 02:00:00`, `2 hours 5 min ago`, `1-2 3 4:05:06`, `P1DT2H`.

use datafusion::arrow::datatypes::IntervalMonthDayNano;
use plan::{PlanError, SqlState};

/// Nanoseconds of a second.
const SECOND: f64 = 1e9;
/// Days that a fraction of a month has.
const DAYS_OF_MONTH: f64 = 30.0;
/// Seconds of a day.
const SECONDS_OF_DAY: f64 = 86_400.0;

/// The sums of an interval's parts.
#[derive(Default)]
struct Parts {
    months: f64,
    days: f64,
    /// Whole nanoseconds, in a double only until the end: parts are small.
    nanos: f64,
}

/// The interval that a text stands for.
pub fn parse_interval(text: &str) -> Result<IntervalMonthDayNano, PlanError> {
    let error = || {
        PlanError::new(SqlState::INVALID_DATETIME_FORMAT, format!("invalid input syntax for type interval: \"{text}\""))
    };
    let lower = text.trim().to_ascii_lowercase();
    let parts = if let Some(rest) = lower.strip_prefix('p') {
        iso(rest).ok_or_else(error)?
    } else {
        words(&lower).ok_or_else(error)?
    };
    parts.whole().ok_or_else(|| {
        PlanError::new(SqlState::DATETIME_FIELD_OVERFLOW, format!("interval field value out of range: \"{lower}\""))
    })
}

impl Parts {
    /// Adds so many of a unit; fractions go down to the next smaller unit.
    fn add(&mut self, amount: f64, unit: &str) -> Option<()> {
        let unit = if unit.len() > 2 { unit.strip_suffix('s').unwrap_or(unit) } else { unit };
        match unit {
            "millennium" | "millennia" | "mil" => self.add_months(amount * 12_000.0),
            "century" | "centurie" | "cent" | "c" => self.add_months(amount * 1200.0),
            "decade" | "dec" => self.add_months(amount * 120.0),
            "year" | "yr" | "y" => self.add_months(amount * 12.0),
            "month" | "mon" => self.add_months(amount),
            "week" | "w" => self.add_days(amount * 7.0),
            "day" | "d" => self.add_days(amount),
            "hour" | "hr" | "h" => self.nanos += amount * 3600.0 * SECOND,
            "minute" | "min" | "m" => self.nanos += amount * 60.0 * SECOND,
            "second" | "sec" | "s" => self.nanos += amount * SECOND,
            "millisecond" | "msec" | "ms" => self.nanos += amount * 1e6,
            "microsecond" | "usec" | "us" => self.nanos += amount * 1e3,
            _ => return None,
        }
        Some(())
    }

    fn add_months(&mut self, months: f64) {
        self.months += months.trunc();
        self.add_days(months.fract() * DAYS_OF_MONTH);
    }

    fn add_days(&mut self, days: f64) {
        self.days += days.trunc();
        self.nanos += (days.fract() * SECONDS_OF_DAY * 1e6).round() * 1e3;
    }

    /// Whole months, days and nanoseconds (to the microsecond), if they fit.
    fn whole(&self) -> Option<IntervalMonthDayNano> {
        let fits = |value: f64| (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&value).then_some(value as i32);
        let micros = (self.nanos / 1e3).round();
        let nanos = (micros.abs() < 9.2e15).then_some(micros as i64 * 1000)?;
        Some(IntervalMonthDayNano::new(fits(self.months)?, fits(self.days)?, nanos))
    }
}

/// Postgres's and SQL's forms.
fn words(text: &str) -> Option<Parts> {
    let mut parts = Parts::default();
    let mut rest = text.trim_start_matches('@').trim();
    let ago = match rest.strip_suffix("ago") {
        Some(before) => {
            rest = before.trim();
            true
        }
        None => false,
    };
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let end =
            rest.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ':' | '-' | '+'))).unwrap_or(rest.len());
        let (number, tail) = rest.split_at(end);
        if number.contains(':') {
            parts.nanos += clock(number)?;
            rest = tail.trim_start();
            continue;
        }
        if let Some((years, months)) = number.trim_start_matches(['-', '+']).split_once('-') {
            let sign = if number.starts_with('-') { -1.0 } else { 1.0 };
            parts.add_months(sign * (years.parse::<f64>().ok()? * 12.0 + months.parse::<f64>().ok()?));
            rest = tail.trim_start();
            continue;
        }
        let amount = number.parse::<f64>().ok()?;
        let tail = tail.trim_start();
        let unit_end = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        // `3 4:05:06` is days and time; a number alone at the end is seconds.
        let unit = match unit {
            "" if tail.is_empty() => "s",
            "" => "d",
            unit => unit,
        };
        parts.add(amount, unit)?;
        rest = tail.trim_start().trim_start_matches(',').trim_start();
    }
    if ago {
        parts = Parts { months: -parts.months, days: -parts.days, nanos: -parts.nanos };
    }
    Some(parts)
}

/// `4:05`, `-4:05:06.7`: nanoseconds.
fn clock(text: &str) -> Option<f64> {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    let mut fields = text.split(':');
    let hours = fields.next()?.parse::<f64>().ok()?;
    let minutes = fields.next()?.parse::<f64>().ok()?;
    let seconds = fields.next().map_or(Some(0.0), |field| field.parse::<f64>().ok())?;
    if fields.next().is_some() || minutes >= 60.0 || seconds > 60.0 {
        return None;
    }
    Some(sign * ((hours * 3600.0 + minutes * 60.0) * SECOND + (seconds * 1e6).round() * 1e3))
}

/// ISO 8601 after its `P`.
fn iso(text: &str) -> Option<Parts> {
    let mut parts = Parts::default();
    let (date, time) = match text.split_once('t') {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut fields = |text: &str, units: &[(char, &str)]| -> Option<()> {
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.find(|c: char| c.is_ascii_alphabetic())?;
            let amount = rest[..end].parse::<f64>().ok()?;
            let unit = rest[end..].chars().next()?;
            let (_, name) = units.iter().find(|(letter, _)| *letter == unit)?;
            parts.add(amount, name)?;
            rest = &rest[end + 1..];
        }
        Some(())
    };
    fields(date, &[('y', "year"), ('m', "month"), ('w', "week"), ('d', "day")])?;
    if let Some(time) = time {
        fields(time, &[('h', "hour"), ('m', "minute"), ('s', "second")])?;
    }
    (!text.is_empty()).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        const HOUR: i64 = 3_600_000_000_000;
        for (text, value) in [
            ("1 day 02:00:00", (0, 1, 2 * HOUR)),
            ("1 year 2 mons -3 days", (14, -3, 0)),
            ("10 seconds", (0, 0, HOUR / 360)),
            ("1.5 hours", (0, 0, HOUR * 3 / 2)),
            ("2 hours ago", (0, 0, -2 * HOUR)),
            ("1-2", (14, 0, 0)),
            ("3 4:00:00", (0, 3, 4 * HOUR)),
            ("P1Y2M3DT4H", (14, 3, 4 * HOUR)),
            ("30", (0, 0, HOUR / 120)),
            ("1.5 months", (1, 15, 0)),
            ("5min", (0, 0, HOUR / 12)),
        ] {
            let (months, days, nanos) = value;
            assert_eq!(parse_interval(text).unwrap(), IntervalMonthDayNano::new(months, days, nanos), "{text}");
        }
        assert!(parse_interval("soon").is_err());
        assert!(parse_interval("").is_err());
        assert!(parse_interval("99999999999 years").is_err());
    }
}
