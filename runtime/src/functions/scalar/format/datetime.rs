//! Prints instants and intervals by a pattern.

use std::fmt::Write;

use chrono::{Datelike, Timelike};
use datafusion::arrow::datatypes::IntervalMonthDayNano;
use datafusion::error::{DataFusionError, Result};
use plan::{PlanError, SqlState};

use super::super::zone::{Zone, date_time};
use super::pattern::{Case, FieldPiece, Piece};

/// The keywords of dates and times; longer ones first.
pub const KEYWORDS: &[&str] = &[
    "Y,YYY", "A.D.", "A.M.", "B.C.", "P.M.", "MONTH", "SSSSS", "YYYY", "IYYY", "SSSS", "HH24", "HH12", "IDDD", "YYY",
    "IYY", "DDD", "DAY", "MON", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "TZH", "TZM", "AD", "AM", "BC", "PM", "CC",
    "DD", "DY", "HH", "ID", "IW", "IY", "MI", "MM", "MS", "OF", "RM", "SS", "TZ", "US", "WW", "YY", "D", "I", "J", "Q",
    "W", "Y",
];

/// Keywords for names, of which the first letter alone may be a capital.
pub const NAMES: &[&str] = &["MONTH", "MON", "DAY", "DY"];

/// Months, in full; the first three letters are the short form.
pub const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Days, in full, from Monday.
pub const DAYS: [&str; 7] = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// Months as Roman numbers.
pub const ROMAN_MONTHS: [&str; 12] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"];

/// What is printed, part by part.
struct Parts {
    year: i64,
    month: i64,
    day: i64,
    day_of_year: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    /// What only a date has.
    calendar: Option<Calendar>,
    /// Seconds east of UTC, and the name of the zone.
    zone: (i32, String),
}

struct Calendar {
    /// From Monday, which is 1.
    weekday: i64,
    iso_year: i64,
    iso_week: i64,
    iso_day_of_year: i64,
    julian_day: i64,
}

/// Prints a local time (without a zone) or an instant.
pub fn timestamp(micros: i64, zone: Option<Zone>, pattern: &[Piece]) -> Result<String> {
    let (local, described) = match zone {
        Some(zone) => (zone.local(micros)?, zone.describe(micros)?),
        None => (micros, (0, String::new())),
    };
    let time = date_time(local)?;
    let iso = time.iso_week();
    let calendar = Calendar {
        weekday: i64::from(time.weekday().number_from_monday()),
        iso_year: i64::from(iso.year()),
        iso_week: i64::from(iso.week()),
        iso_day_of_year: i64::from(iso.week() - 1) * 7 + i64::from(time.weekday().number_from_monday()),
        julian_day: i64::from(time.num_days_from_ce()) + 1_721_425,
    };
    let parts = Parts {
        year: i64::from(time.year()),
        month: i64::from(time.month()),
        day: i64::from(time.day()),
        day_of_year: i64::from(time.ordinal()),
        hour: i64::from(time.hour()),
        minute: i64::from(time.minute()),
        second: i64::from(time.second()),
        micros: i64::from(time.nanosecond() / 1_000),
        calendar: Some(calendar),
        zone: described,
    };
    parts.print(pattern)
}

/// Prints an interval. Its hours may be more than a day has.
pub fn interval(interval: IntervalMonthDayNano, pattern: &[Piece]) -> Result<String> {
    let micros = interval.nanoseconds / 1_000;
    let (months, days) = (i64::from(interval.months), i64::from(interval.days));
    let parts = Parts {
        year: months / 12,
        month: months % 12,
        day: days,
        day_of_year: months * 30 + days,
        hour: micros / 3_600_000_000,
        minute: micros / 60_000_000 % 60,
        second: micros / 1_000_000 % 60,
        micros: micros % 1_000_000,
        calendar: None,
        zone: (0, String::new()),
    };
    parts.print(pattern)
}

fn not_for_intervals() -> DataFusionError {
    let error = PlanError::new(SqlState::INVALID_DATETIME_FORMAT, "invalid format specification for an interval value");
    DataFusionError::External(Box::new(error.with_hint("Intervals are not tied to specific calendar dates.")))
}

/// A number filled with zeros to a width; the sign comes on top.
fn padded(out: &mut String, value: i64, width: usize, fill: bool) {
    let width = if fill { 0 } else { width + usize::from(value < 0) };
    // Writing to a String cannot fail.
    let _ = write!(out, "{value:0width$}");
}

fn in_case(text: &str, case: Case) -> String {
    match case {
        Case::Upper => text.to_uppercase(),
        Case::Capital => text.to_string(),
        Case::Lower => text.to_lowercase(),
    }
}

/// The ending of an ordinal number.
pub fn ordinal_ending(digits: &str, case: Case) -> &'static str {
    let ending = match digits.as_bytes() {
        [.., b'1', _] => "th",
        [.., b'1'] => "st",
        [.., b'2'] => "nd",
        [.., b'3'] => "rd",
        _ => "th",
    };
    match (case, ending) {
        (Case::Upper, "st") => "ST",
        (Case::Upper, "nd") => "ND",
        (Case::Upper, "rd") => "RD",
        (Case::Upper, _) => "TH",
        _ => ending,
    }
}

impl Parts {
    fn print(&self, pattern: &[Piece]) -> Result<String> {
        let mut out = String::new();
        for piece in pattern {
            match piece {
                Piece::Literal(character) | Piece::Quoted(character) => out.push(*character),
                Piece::Field(field) => {
                    let start = out.len();
                    let done = self.time(field, &mut out)
                        || self.day(field, &mut out)?
                        || self.year(field, &mut out)?
                        || self.name(field, &mut out)?;
                    if let Some(case) = field.ordinal.filter(|_| done && out.ends_with(|c: char| c.is_ascii_digit())) {
                        let ending = ordinal_ending(&out[start..], case);
                        out.push_str(ending);
                    }
                }
            }
        }
        Ok(out)
    }

    fn calendar(&self) -> Result<&Calendar> {
        self.calendar.as_ref().ok_or_else(not_for_intervals)
    }

    /// Fields of the time of day and the zone.
    fn time(&self, field: &FieldPiece, out: &mut String) -> bool {
        let fill = field.fill;
        match field.keyword {
            "HH24" => padded(out, self.hour, 2, fill),
            "HH12" | "HH" => {
                let hour = self.hour % 12;
                padded(out, if hour == 0 { 12 } else { hour }, 2, fill);
            }
            "MI" => padded(out, self.minute, 2, fill),
            "SS" => padded(out, self.second, 2, fill),
            "MS" | "FF3" => padded(out, self.micros / 1_000, 3, false),
            "US" | "FF6" => padded(out, self.micros, 6, false),
            "FF1" => padded(out, self.micros / 100_000, 1, false),
            "FF2" => padded(out, self.micros / 10_000, 2, false),
            "FF4" => padded(out, self.micros / 100, 4, false),
            "FF5" => padded(out, self.micros / 10, 5, false),
            "SSSS" | "SSSSS" => padded(out, (self.hour * 60 + self.minute) * 60 + self.second, 0, true),
            "AM" | "PM" => out.push_str(&in_case(if self.afternoon() { "PM" } else { "AM" }, field.case)),
            "A.M." | "P.M." => out.push_str(&in_case(if self.afternoon() { "P.M." } else { "A.M." }, field.case)),
            "TZ" => out.push_str(&in_case(&self.zone.1, field.case)),
            "TZH" | "OF" => {
                let minutes = self.zone.0.abs() / 60;
                let _ = write!(out, "{}{:02}", if self.zone.0 < 0 { '-' } else { '+' }, minutes / 60);
                if field.keyword == "OF" && minutes % 60 != 0 {
                    let _ = write!(out, ":{:02}", minutes % 60);
                }
            }
            "TZM" => padded(out, i64::from(self.zone.0.abs() / 60 % 60), 2, false),
            _ => return false,
        }
        true
    }

    fn afternoon(&self) -> bool {
        self.hour.rem_euclid(24) >= 12
    }

    /// Fields of days, weeks, months and quarters in numbers.
    fn day(&self, field: &FieldPiece, out: &mut String) -> Result<bool> {
        let fill = field.fill;
        match field.keyword {
            "MM" => padded(out, self.month, 2, fill),
            "DD" if self.day < 0 => padded(out, self.day, 0, true),
            "DD" => padded(out, self.day, 2, fill),
            "DDD" => padded(out, self.day_of_year, 3, fill),
            "WW" => padded(out, (self.day_of_year - 1) / 7 + 1, 2, fill),
            "W" => padded(out, (self.day - 1) / 7 + 1, 1, true),
            "Q" if self.month == 0 => {}
            "Q" => padded(out, (self.month - 1) / 3 + 1, 1, true),
            "D" => padded(out, self.calendar()?.weekday % 7 + 1, 1, true),
            "ID" => padded(out, self.calendar()?.weekday, 1, true),
            "IDDD" => padded(out, self.calendar()?.iso_day_of_year, 3, fill),
            "IW" => padded(out, self.calendar()?.iso_week, 2, fill),
            "J" => padded(out, self.calendar()?.julian_day, 1, true),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Fields of years and centuries.
    fn year(&self, field: &FieldPiece, out: &mut String) -> Result<bool> {
        let fill = field.fill;
        // Before the year 1 was the year 1 BC; an interval has a year 0.
        let shown = |year: i64| if year <= 0 && self.calendar.is_some() { 1 - year } else { year };
        let year = shown(self.year);
        let iso_year = || Ok::<i64, DataFusionError>(shown(self.calendar()?.iso_year));
        match field.keyword {
            "Y,YYY" => {
                let _ = write!(out, "{},{:03}", year / 1_000, year % 1_000);
            }
            "YYYY" => padded(out, year, 4, fill),
            "YYY" => padded(out, year % 1_000, 3, fill),
            "YY" => padded(out, year % 100, 2, fill),
            "Y" => padded(out, year % 10, 1, fill),
            "IYYY" => padded(out, iso_year()?, 4, fill),
            "IYY" => padded(out, iso_year()? % 1_000, 3, fill),
            "IY" => padded(out, iso_year()? % 100, 2, fill),
            "I" => padded(out, iso_year()? % 10, 1, fill),
            "CC" => {
                let century = match (self.calendar.is_some(), self.year) {
                    (false, year) => year / 100,
                    (true, year) if year > 0 => (year - 1) / 100 + 1,
                    (true, year) => year / 100 - 1,
                };
                padded(out, century, 2, fill);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Fields in words.
    fn name(&self, field: &FieldPiece, out: &mut String) -> Result<bool> {
        let after = self.year > 0;
        let (text, width) = match field.keyword {
            "AD" | "BC" => (self.calendar().map(|_| if after { "AD" } else { "BC" })?, 0),
            "A.D." | "B.C." => (self.calendar().map(|_| if after { "A.D." } else { "B.C." })?, 0),
            "RM" if self.month == 0 => return Ok(true),
            "RM" => (ROMAN_MONTHS[(self.month - 1).rem_euclid(12) as usize], 4),
            keyword => {
                let calendar = self.calendar()?;
                let month = MONTHS[(self.month - 1).rem_euclid(12) as usize];
                let day = DAYS[(calendar.weekday - 1).rem_euclid(7) as usize];
                match keyword {
                    "MONTH" => (month, 9),
                    "MON" => (&month[..3], 0),
                    "DAY" => (day, 9),
                    _ => (&day[..3], 0),
                }
            }
        };
        let width = if field.fill { 0 } else { width };
        let _ = write!(out, "{:width$}", in_case(text, field.case));
        Ok(true)
    }
}
