//! Reads dates and times by a pattern.
//!
//! Fields are read in their order; blanks before a field are skipped, and a separator in the pattern matches any
//! separator. A number takes as many digits as its field has, or all that are there if a separator follows.

use chrono::{Datelike, NaiveDate};
use datafusion::error::{DataFusionError, Result};
use plan::{PlanError, SqlState};

use super::super::overload::error;
use super::super::zone::Zone;
use super::datetime::{DAYS, MONTHS, ROMAN_MONTHS};
use super::pattern::{FieldPiece, Piece};

/// What was read.
#[derive(Debug, Default)]
pub struct Reading {
    year: Option<i64>,
    century: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    week: Option<i64>,
    iso_year: Option<i64>,
    iso_week: Option<i64>,
    iso_day: Option<i64>,
    julian_day: Option<i64>,
    before_christ: bool,
    afternoon: Option<bool>,
    hour: i64,
    twelve: bool,
    minute: i64,
    second: i64,
    second_of_day: Option<i64>,
    micros: i64,
    offset_sign: i64,
    offset_hours: Option<i64>,
    offset_minutes: i64,
}

/// Reads a text by a pattern.
pub fn read(text: &str, pattern: &[Piece]) -> Result<Reading> {
    let mut reading = Reading { offset_sign: 1, ..Reading::default() };
    let mut rest = text;
    for (index, piece) in pattern.iter().enumerate() {
        match piece {
            Piece::Field(field) => {
                rest = rest.trim_start();
                if rest.is_empty() {
                    break;
                }
                let digit_follows = matches!(pattern.get(index + 1), Some(Piece::Field(_)));
                rest = reading.field(field, rest, digit_follows && !field.fill)?;
                if field.ordinal.is_some() {
                    rest = rest.get(2..).unwrap_or("");
                }
            }
            Piece::Literal(character) => rest = after_separator(rest, *character),
            Piece::Quoted(_) => {
                let mut characters = rest.chars();
                characters.next();
                rest = characters.as_str();
            }
        }
    }
    Ok(reading)
}

/// A separator of the pattern matches another, or none; other characters stand for any one.
fn after_separator(rest: &str, written: char) -> &str {
    let mut characters = rest.chars();
    let next = characters.next();
    let separates = |c: char| !c.is_alphanumeric();
    match next {
        Some(next) if separates(next) && !(matches!(next, '+' | '-') && written.is_whitespace()) => characters.as_str(),
        Some(_) if separates(written) => rest,
        _ => characters.as_str(),
    }
}

fn invalid(value: &str, field: &FieldPiece, detail: &str) -> DataFusionError {
    let message = format!("invalid value \"{value}\" for \"{}\"", field.keyword);
    let error = PlanError::new(SqlState::INVALID_DATETIME_FORMAT, message).with_detail(detail.to_string());
    DataFusionError::External(Box::new(error))
}

/// A number of at most so many digits, or of all digits that are there.
fn integer<'t>(text: &'t str, field: &FieldPiece, width: Option<usize>) -> Result<(i64, usize, &'t str)> {
    let signed = text.starts_with(['-', '+']);
    let start = usize::from(signed);
    let digits = text[start..].bytes().take_while(u8::is_ascii_digit).count();
    let end = start + width.map_or(digits, |width| digits.min(width));
    if end == start {
        let shown: String = text.chars().take(width.unwrap_or(4)).collect();
        return Err(invalid(&shown, field, "Value must be an integer."));
    }
    let number = text[..end]
        .parse()
        .map_err(|_| invalid(&text[..end], field, "Value must be in the range -2147483648 to 2147483647."))?;
    Ok((number, end - start, &text[end..]))
}

/// The position of the name that a text begins with, and the rest.
fn name<'t>(text: &'t str, field: &FieldPiece, names: &[&str], letters: usize) -> Result<(i64, &'t str)> {
    let found = names.iter().enumerate().rev().find_map(|(index, name)| {
        let name = &name[..name.len().min(letters)];
        let begins = text.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name));
        begins.then(|| (index as i64, &text[name.len()..]))
    });
    let word: String = text.chars().take_while(|c| !c.is_whitespace()).collect();
    found
        .ok_or_else(|| invalid(&word, field, "The given value did not match any of the allowed values for this field."))
}

impl Reading {
    /// Reads one field and gives the rest.
    fn field<'t>(&mut self, field: &FieldPiece, text: &'t str, fixed: bool) -> Result<&'t str> {
        let width = |digits: usize| fixed.then_some(digits);
        let number = |digits: usize| integer(text, field, width(digits));
        let set = |slot: &mut Option<i64>, digits: usize| -> Result<&'t str> {
            let (value, _, rest) = number(digits)?;
            *slot = Some(value);
            Ok(rest)
        };
        match field.keyword {
            "YYYY" | "YYY" | "YY" | "Y" => {
                let (value, digits, rest) = number(field.keyword.len())?;
                self.year = Some(full_year(value, digits.min(field.keyword.len())));
                Ok(rest)
            }
            "IYYY" | "IYY" | "IY" | "I" => {
                let (value, digits, rest) = number(field.keyword.len())?;
                self.iso_year = Some(full_year(value, digits.min(field.keyword.len())));
                Ok(rest)
            }
            "Y,YYY" => {
                let (thousands, _, rest) = integer(text, field, None)?;
                let (value, _, rest) = integer(rest.trim_start_matches(','), field, Some(3))?;
                self.year = Some(thousands * 1_000 + value);
                Ok(rest)
            }
            "CC" => set(&mut self.century, 2),
            "MM" => set(&mut self.month, 2),
            "DD" => set(&mut self.day, 2),
            "DDD" => set(&mut self.day_of_year, 3),
            "WW" => set(&mut self.week, 2),
            "IW" => set(&mut self.iso_week, 2),
            "ID" => set(&mut self.iso_day, 1),
            "J" => set(&mut self.julian_day, 10),
            "SSSS" | "SSSSS" => set(&mut self.second_of_day, 5),
            "D" | "W" | "Q" | "IDDD" => number(field.keyword.len()).map(|(_, _, rest)| rest),
            _ => self.time_or_name(field, text, fixed),
        }
    }

    fn time_or_name<'t>(&mut self, field: &FieldPiece, text: &'t str, fixed: bool) -> Result<&'t str> {
        let number = |digits: usize| integer(text, field, fixed.then_some(digits));
        let (value, rest) = match field.keyword {
            "HH24" | "HH12" | "HH" => {
                let (hour, _, rest) = number(2)?;
                self.twelve |= field.keyword != "HH24";
                (Some(("hour", hour)), rest)
            }
            "MI" => number(2).map(|(minute, _, rest)| (Some(("minute", minute)), rest))?,
            "SS" => number(2).map(|(second, _, rest)| (Some(("second", second)), rest))?,
            "MS" | "US" | "FF1" | "FF2" | "FF3" | "FF4" | "FF5" | "FF6" => {
                let most = match field.keyword {
                    "MS" => 3,
                    "US" => 6,
                    keyword => usize::from(keyword.as_bytes()[2] - b'0'),
                };
                // Digits of a fraction: 5 is half a second.
                let (fraction, digits, rest) = integer(text, field, Some(most))?;
                self.micros += fraction * 10_i64.pow(6_u32.saturating_sub(digits as u32));
                (None, rest)
            }
            "TZH" | "OF" => {
                self.offset_sign = if text.starts_with('-') { -1 } else { 1 };
                let (hours, _, rest) = integer(text, field, Some(2))?;
                self.offset_hours = Some(hours.abs());
                (None, rest)
            }
            "TZM" => {
                let (minutes, _, rest) = integer(text, field, Some(2))?;
                self.offset_minutes = minutes;
                (None, rest)
            }
            _ => (None, self.name(field, text)?),
        };
        match value {
            Some(("hour", hour)) => self.hour = hour,
            Some(("minute", minute)) => self.minute = minute,
            Some((_, second)) => self.second = second,
            None => {}
        }
        Ok(rest)
    }

    /// A field that is read by its words.
    fn name<'t>(&mut self, field: &FieldPiece, text: &'t str) -> Result<&'t str> {
        match field.keyword {
            "AM" | "PM" | "A.M." | "P.M." => {
                let (index, rest) = name(text, field, &["A.M.", "P.M.", "AM", "PM"], 4)?;
                self.afternoon = Some(index % 2 == 1);
                self.twelve = true;
                Ok(rest)
            }
            "AD" | "BC" | "A.D." | "B.C." => {
                let (index, rest) = name(text, field, &["A.D.", "B.C.", "AD", "BC"], 4)?;
                self.before_christ = index % 2 == 1;
                Ok(rest)
            }
            "MONTH" => {
                let (index, rest) = name(text, field, &MONTHS, 9).or_else(|_| name(text, field, &MONTHS, 3))?;
                self.month = Some(index + 1);
                Ok(rest)
            }
            "MON" => {
                let (index, rest) = name(text, field, &MONTHS, 3)?;
                self.month = Some(index + 1);
                Ok(rest)
            }
            "RM" => {
                let longest = (0..12).filter(|index| name(text, field, &ROMAN_MONTHS[*index..=*index], 4).is_ok());
                let index = longest.max_by_key(|index| ROMAN_MONTHS[*index].len());
                let index = index.ok_or_else(|| invalid(text, field, "The given value is no Roman month."))?;
                self.month = Some(index as i64 + 1);
                Ok(&text[ROMAN_MONTHS[index].len()..])
            }
            "DAY" => Ok(name(text, field, &DAYS, 9)?.1),
            "DY" => Ok(name(text, field, &DAYS, 3)?.1),
            keyword => {
                let message = format!("formatting field \"{keyword}\" is only supported in to_char");
                Err(error(SqlState::FEATURE_NOT_SUPPORTED, message))
            }
        }
    }

    /// The date. Parts that are not there are the first.
    pub fn date(&self, text: &str) -> Result<NaiveDate> {
        let wrong = || {
            let message = format!("date/time field value out of range: \"{text}\"");
            error(SqlState::DATETIME_FIELD_OVERFLOW, message)
        };
        if let Some(day) = self.julian_day {
            let day = i32::try_from(day - 1_721_425).ok();
            return day.and_then(NaiveDate::from_num_days_from_ce_opt).ok_or_else(wrong);
        }
        if self.iso_year.is_some() || self.iso_week.is_some() {
            let week = u32::try_from(self.iso_week.unwrap_or(1)).map_err(|_| wrong())?;
            let weekday = chrono::Weekday::try_from((self.iso_day.unwrap_or(1) - 1).clamp(0, 6) as u8);
            let year = i32::try_from(self.iso_year.unwrap_or(1)).map_err(|_| wrong())?;
            let date = weekday.ok().and_then(|weekday| NaiveDate::from_isoywd_opt(year, week, weekday));
            return date.ok_or_else(wrong);
        }
        let year = match (self.year, self.century) {
            (Some(year), Some(century)) if year < 100 => (century - 1) * 100 + year,
            (Some(year), _) => year,
            (None, Some(century)) => (century - 1) * 100 + 1,
            // A date of which no year is known is in the year 1 BC.
            (None, None) => 0,
        };
        let year = i32::try_from(if self.before_christ { 1 - year } else { year }).map_err(|_| wrong())?;
        let day_of_year = self.day_of_year.or_else(|| self.week.map(|week| (week - 1) * 7 + 1));
        let date = match day_of_year {
            Some(day) if self.month.is_none() => {
                u32::try_from(day).ok().and_then(|day| NaiveDate::from_yo_opt(year, day))
            }
            _ => {
                let month = u32::try_from(self.month.unwrap_or(1)).ok();
                let day = u32::try_from(self.day.unwrap_or(1)).ok();
                month.zip(day).and_then(|(month, day)| NaiveDate::from_ymd_opt(year, month, day))
            }
        };
        date.ok_or_else(wrong)
    }

    /// The instant in microseconds since 1970; the zone holds where the text has no offset.
    pub fn instant(&self, text: &str, zone: Zone) -> Result<i64> {
        let days = i64::from(self.date(text)?.num_days_from_ce() - 719_163);
        let local = days * 86_400_000_000 + self.micros_of_day(text)?;
        match self.offset_hours {
            Some(hours) => {
                let minutes = self.offset_sign * (hours * 60 + self.offset_minutes);
                Ok(local - minutes * 60_000_000)
            }
            None => zone.instant(local),
        }
    }

    fn micros_of_day(&self, text: &str) -> Result<i64> {
        let mut hour = self.hour;
        if self.twelve {
            if !(1..=12).contains(&hour) && (self.afternoon.is_some() || hour != 0) {
                let message = format!("hour \"{hour}\" is invalid for the 12-hour clock");
                let error = PlanError::new(SqlState::INVALID_DATETIME_FORMAT, message)
                    .with_hint("Use the 24-hour clock, or give an hour between 1 and 12.");
                return Err(DataFusionError::External(Box::new(error)));
            }
            hour = match self.afternoon {
                Some(true) if hour < 12 => hour + 12,
                Some(false) if hour == 12 => 0,
                _ => hour,
            };
        }
        let fits = (0..24).contains(&hour) && (0..60).contains(&self.minute) && (0..60).contains(&self.second);
        if !fits {
            let message = format!("date/time field value out of range: \"{text}\"");
            return Err(error(SqlState::DATETIME_FIELD_OVERFLOW, message));
        }
        let seconds = self.second_of_day.unwrap_or((hour * 60 + self.minute) * 60 + self.second);
        Ok(seconds * 1_000_000 + self.micros)
    }
}

/// Years of fewer than four digits are those nearest to 2020.
fn full_year(year: i64, digits: usize) -> i64 {
    match digits {
        1 | 2 if (0..70).contains(&year) => year + 2_000,
        1 | 2 if (70..100).contains(&year) => year + 1_900,
        3 if (100..520).contains(&year) => year + 2_000,
        3 if (520..1_000).contains(&year) => year + 1_000,
        3 => year + 2_000,
        _ => year,
    }
}
