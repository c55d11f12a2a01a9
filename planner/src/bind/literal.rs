//! Text to values: what PostgreSQL's input functions accept.

use std::sync::Arc;

use chrono::{NaiveDate, NaiveDateTime, NaiveTime, Offset, TimeZone};
use datafusion::arrow::array::{Array, ListArray, new_empty_array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit, i256};
use datafusion::common::ScalarValue;
use plan::{PlanError, SqlState};

pub(crate) use super::interval::parse_interval;
use super::types::{PG_TYPE, type_name};

const MICROS_PER_SECOND: i64 = 1_000_000;
const MICROS_PER_DAY: i64 = 86_400 * MICROS_PER_SECOND;

/// Reads a text as a value of a type. Text without a zone is a timestamptz in the session's time zone.
pub fn parse_text(text: &str, field: &Field, time_zone: &str) -> Result<ScalarValue, PlanError> {
    let invalid = || {
        PlanError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("invalid input syntax for type {}: \"{text}\"", short_name(field)),
        )
    };
    let value = match field.data_type() {
        DataType::Boolean => ScalarValue::Boolean(Some(parse_bool(text).ok_or_else(invalid)?)),
        DataType::Int16 => ScalarValue::Int16(Some(parse_integer(text, field)? as i16)),
        DataType::Int32 => ScalarValue::Int32(Some(parse_integer(text, field)? as i32)),
        DataType::Int64 => ScalarValue::Int64(Some(parse_integer(text, field)?)),
        DataType::Float32 => ScalarValue::Float32(Some(parse_float(text, field)? as f32)),
        DataType::Float64 => ScalarValue::Float64(Some(parse_float(text, field)?)),
        DataType::Decimal128(_, _) | DataType::Decimal256(_, _) => parse_decimal(text, field)?,
        DataType::Utf8 => ScalarValue::Utf8(Some(check_text(text, field)?)),
        DataType::Utf8View => ScalarValue::Utf8View(Some(check_text(text, field)?)),
        DataType::LargeUtf8 => ScalarValue::LargeUtf8(Some(check_text(text, field)?)),
        DataType::Binary => ScalarValue::Binary(Some(parse_bytea(text)?)),
        DataType::Date32 => ScalarValue::Date32(Some(parse_date(text)?)),
        DataType::Time64(TimeUnit::Microsecond) => {
            let micros = parse_time(text.trim()).ok_or_else(|| datetime_error(text, field))?;
            ScalarValue::Time64Microsecond(Some(micros))
        }
        DataType::Timestamp(TimeUnit::Microsecond, zone) => {
            let micros = parse_timestamp(text, field, zone.is_some().then_some(time_zone))?;
            ScalarValue::TimestampMicrosecond(Some(round_micros(micros, field)), zone.clone())
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            ScalarValue::IntervalMonthDayNano(Some(parse_interval(text)?))
        }
        DataType::List(item) => parse_array(text, field, item, time_zone)?,
        _ => return Err(PlanError::unsupported(format!("text as a value of type {}", type_name(field)))),
    };
    Ok(value)
}

/// A type's name without its length and precision, as input functions say it.
fn short_name(field: &Field) -> String {
    let name = type_name(field);
    match name.split_once('(') {
        Some((before, after)) => format!("{before}{}", after.split_once(')').map_or("", |(_, rest)| rest)),
        None => name,
    }
}

/// A boolean as PostgreSQL reads it.
fn parse_bool(text: &str) -> Option<bool> {
    let text = text.trim().to_ascii_lowercase();
    let starts = |word: &str, least: usize| text.len() >= least && word.starts_with(text.as_str());
    if text == "1" || text == "on" || starts("true", 1) || starts("yes", 1) {
        Some(true)
    } else if text == "0" || starts("off", 2) || starts("false", 1) || starts("no", 1) {
        Some(false)
    } else {
        None
    }
}

/// The error of a number that does not fit an integer type.
pub(crate) fn out_of_range(data_type: &DataType) -> PlanError {
    PlanError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("{} out of range", super::types::data_type_name(data_type)),
    )
}

fn parse_integer(text: &str, field: &Field) -> Result<i64, PlanError> {
    let trimmed = text.trim();
    let (least, most) = match field.data_type() {
        DataType::Int16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DataType::Int32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    let too_big = || {
        PlanError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("value \"{text}\" is out of range for type {}", type_name(field)),
        )
    };
    let value: i64 = trimmed.parse().map_err(|error: std::num::ParseIntError| match error.kind() {
        std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => too_big(),
        _ => PlanError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("invalid input syntax for type {}: \"{text}\"", type_name(field)),
        ),
    })?;
    if value < least || value > most { Err(too_big()) } else { Ok(value) }
}

fn parse_float(text: &str, field: &Field) -> Result<f64, PlanError> {
    let trimmed = text.trim();
    let invalid = || {
        PlanError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("invalid input syntax for type {}: \"{text}\"", type_name(field)),
        )
    };
    match trimmed.to_ascii_lowercase().as_str() {
        "nan" => return Ok(f64::NAN),
        "inf" | "infinity" | "+inf" | "+infinity" => return Ok(f64::INFINITY),
        "-inf" | "-infinity" => return Ok(f64::NEG_INFINITY),
        _ => {}
    }
    if !trimmed.ends_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Err(invalid());
    }
    let value: f64 = trimmed.parse().map_err(|_| invalid())?;
    let narrow = field.data_type() == &DataType::Float32;
    if value.is_infinite() || (narrow && (value as f32).is_infinite()) {
        return Err(PlanError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("\"{trimmed}\" is out of range for type {}", type_name(field)),
        ));
    }
    // A 32-bit value is read as such, not rounded twice.
    if narrow { Ok(f64::from(trimmed.parse::<f32>().map_err(|_| invalid())?)) } else { Ok(value) }
}

/// The error of a number that does not fit numeric(p,s).
pub(crate) fn numeric_overflow(data_type: &DataType) -> PlanError {
    let error = PlanError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "numeric field overflow");
    match data_type {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => error.with_detail(format!(
            "A field with precision {precision}, scale {scale} must round to an absolute value less than 10^{}.",
            i32::from(*precision) - i32::from(*scale)
        )),
        _ => error,
    }
}

/// Reads a decimal number, rounding half away from zero to the type's scale.
fn parse_decimal(text: &str, field: &Field) -> Result<ScalarValue, PlanError> {
    let invalid = || {
        PlanError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("invalid input syntax for type numeric: \"{text}\""),
        )
    };
    let trimmed = text.trim();
    if matches!(trimmed.to_ascii_lowercase().as_str(), "nan" | "infinity" | "inf" | "-infinity" | "-inf") {
        return Err(PlanError::unsupported(format!("numeric {trimmed}")));
    }
    let (precision, scale) = match field.data_type() {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => (*precision, *scale),
        _ => return Err(invalid()),
    };
    let (negative, unsigned) = match trimmed.as_bytes().first() {
        Some(b'-') => (true, &trimmed[1..]),
        Some(b'+') => (false, &trimmed[1..]),
        _ => (false, trimmed),
    };
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i64>().map_err(|_| invalid())?),
        None => (unsigned, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() || !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return Err(invalid());
    }
    // The digits times ten to the power of `shift` is the unscaled value.
    let digits: String = whole.chars().chain(fraction.chars()).collect();
    let shift = exponent - fraction.len() as i64 + i64::from(scale);
    let overflow = || numeric_overflow(field.data_type());
    let (kept, round_up) = if shift >= 0 {
        let significant = digits.trim_start_matches('0');
        if !significant.is_empty() && significant.len() as i64 + shift > 80 {
            return Err(overflow());
        }
        (format!("{significant}{}", "0".repeat(if significant.is_empty() { 0 } else { shift as usize })), false)
    } else {
        let keep = digits.len() as i64 + shift;
        if keep < 0 {
            (String::new(), false)
        } else {
            let (kept, dropped) = digits.split_at(keep as usize);
            (kept.trim_start_matches('0').to_string(), dropped.as_bytes().first().is_some_and(|b| *b >= b'5'))
        }
    };
    if kept.len() > usize::from(precision) {
        return Err(overflow());
    }
    if let DataType::Decimal128(_, _) = field.data_type() {
        let mut value: i128 = if kept.is_empty() { 0 } else { kept.parse().map_err(|_| overflow())? };
        value += i128::from(round_up);
        if value >= 10_i128.checked_pow(u32::from(precision)).unwrap_or(i128::MAX) {
            return Err(overflow());
        }
        return Ok(ScalarValue::Decimal128(Some(if negative { -value } else { value }), precision, scale));
    }
    let kept = if kept.is_empty() { "0".to_string() } else { kept };
    let mut value = i256::from_string(&kept).ok_or_else(overflow)?;
    if round_up {
        value = value.wrapping_add(i256::ONE);
    }
    if value.to_string().len() > usize::from(precision) {
        return Err(overflow());
    }
    Ok(ScalarValue::Decimal256(Some(if negative { value.wrapping_neg() } else { value }), precision, scale))
}

/// An explicit cast to varchar(n) or char(n) cuts what is too long.
pub(crate) fn cut_text<'a>(text: &'a str, field: &Field) -> &'a str {
    let length = field
        .metadata()
        .get(PG_TYPE)
        .and_then(|pg_type| length_in(pg_type, "character varying(").or_else(|| length_in(pg_type, "character(")));
    match length.and_then(|length| text.char_indices().nth(length)) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// What a text-like column makes of a text: lengths, and the canonical form of char(n), uuid and jsonb.
pub(crate) fn check_text(text: &str, field: &Field) -> Result<String, PlanError> {
    let Some(pg_type) = field.metadata().get(PG_TYPE) else { return Ok(text.to_string()) };
    if let Some(length) = length_in(pg_type, "character varying(") {
        return fit(text, length, pg_type);
    }
    if let Some(length) = length_in(pg_type, "character(") {
        // Blanks at the end of a char(n) mean nothing: they are taken off, and put back where it is printed.
        return fit(text, length, pg_type).map(|fitted| fitted.trim_end_matches(' ').to_string());
    }
    match pg_type.as_str() {
        "uuid" => {
            let plain = text.trim().trim_start_matches('{').trim_end_matches('}');
            let uuid = uuid::Uuid::try_parse(plain).map_err(|_| {
                PlanError::new(
                    SqlState::INVALID_TEXT_REPRESENTATION,
                    format!("invalid input syntax for type uuid: \"{text}\""),
                )
            })?;
            Ok(uuid.hyphenated().to_string())
        }
        "json" => plan::json::parse(text).map(|_| text.to_string()),
        "jsonb" => plan::json::canonical(text),
        _ => Ok(text.to_string()),
    }
}

fn length_in(pg_type: &str, prefix: &str) -> Option<usize> {
    pg_type.strip_prefix(prefix)?.strip_suffix(')')?.parse().ok()
}

fn fit(text: &str, length: usize, pg_type: &str) -> Result<String, PlanError> {
    match text.char_indices().nth(length) {
        None => Ok(text.to_string()),
        Some((end, _)) if text[end..].bytes().all(|b| b == b' ') => Ok(text[..end].to_string()),
        Some(_) => {
            Err(PlanError::new(SqlState::STRING_DATA_RIGHT_TRUNCATION, format!("value too long for type {pg_type}")))
        }
    }
}

fn parse_bytea(text: &str) -> Result<Vec<u8>, PlanError> {
    let invalid = |what: &str| PlanError::new(SqlState::INVALID_TEXT_REPRESENTATION, what.to_string());
    if let Some(hex) = text.strip_prefix("\\x") {
        let digits: Vec<u8> = hex.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
        if !digits.len().is_multiple_of(2) {
            return Err(invalid("invalid hexadecimal data: odd number of digits"));
        }
        let digit = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
        return digits
            .chunks(2)
            .map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?))
            .collect::<Option<Vec<u8>>>()
            .ok_or_else(|| invalid("invalid hexadecimal digit"));
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let octal = |range: std::ops::Range<usize>| {
            let digits = bytes.get(range)?;
            let text = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(text, 8).ok()
        };
        if bytes[at] != b'\\' {
            out.push(bytes[at]);
            at += 1;
        } else if bytes.get(at + 1) == Some(&b'\\') {
            out.push(b'\\');
            at += 2;
        } else if let Some(byte) = octal(at + 1..at + 4) {
            out.push(byte);
            at += 4;
        } else {
            return Err(invalid("invalid input syntax for type bytea"));
        }
    }
    Ok(out)
}

fn datetime_error(text: &str, field: &Field) -> PlanError {
    let digits = text.trim().starts_with(|c: char| c.is_ascii_digit());
    if digits && text.bytes().filter(|b| *b == b'-' || *b == b'/').count() >= 2 {
        return PlanError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("date/time field value out of range: \"{text}\""),
        );
    }
    // PostgreSQL says only of the other one that it has a time zone.
    let name = short_name(field).replace(" without time zone", "");
    PlanError::new(SqlState::INVALID_DATETIME_FORMAT, format!("invalid input syntax for type {name}: \"{text}\""))
}

fn days_since_1970(date: NaiveDate) -> i32 {
    date.signed_duration_since(NaiveDate::default()).num_days() as i32
}

/// A date: 2013-01-31, 2013/1/31, 20130131, 1/31/2013, and each of them with an ignored time.
fn split_date(text: &str) -> Option<(NaiveDate, &str)> {
    let end = text.find(['T', 't', ' ']).unwrap_or(text.len());
    let (date, rest) = text.split_at(end);
    let rest = rest.trim_start_matches(['T', 't', ' ']);
    let parts: Vec<&str> = date.split(['-', '/']).collect();
    let number = |text: &str| if text.bytes().all(|b| b.is_ascii_digit()) { text.parse::<u32>().ok() } else { None };
    let (year, month, day) = match parts.as_slice() {
        [year, month, day] if year.len() >= 3 => (number(year)? as i32, number(month)?, number(day)?),
        // Month first, as with DateStyle MDY.
        [month, day, year] if date.contains('/') => (number(year)? as i32, number(month)?, number(day)?),
        [digits] if digits.len() == 8 => (number(&digits[..4])? as i32, number(&digits[4..6])?, number(&digits[6..])?),
        _ => return None,
    };
    let (year, rest) = match rest.strip_suffix("BC").or_else(|| rest.strip_suffix("bc")) {
        Some(before) => (1 - year, before.trim_end()),
        None => (year, rest),
    };
    Some((NaiveDate::from_ymd_opt(year, month, day)?, rest))
}

fn parse_date(text: &str) -> Result<i32, PlanError> {
    let field = Field::new("", DataType::Date32, true);
    let trimmed = text.trim();
    if trimmed.eq_ignore_ascii_case("epoch") {
        return Ok(0);
    }
    let (date, rest) = split_date(trimmed).ok_or_else(|| datetime_error(text, &field))?;
    let (time, zone) = split_zone(rest);
    if (!time.is_empty() && parse_time(time).is_none()) || zone.is_some_and(|zone| offset_of(zone, None).is_none()) {
        return Err(datetime_error(text, &field));
    }
    Ok(days_since_1970(date))
}

/// Microseconds of a time of day: 5:06, 05:06:07, 05:06:07.89, with am or pm.
fn parse_time(text: &str) -> Option<i64> {
    let lower = text.to_ascii_lowercase();
    let (clock, afternoon) = match (lower.strip_suffix("pm"), lower.strip_suffix("am")) {
        (Some(clock), _) => (clock.trim_end(), Some(true)),
        (_, Some(clock)) => (clock.trim_end(), Some(false)),
        _ => (lower.as_str(), None),
    };
    let mut parts = clock.split(':');
    let number = |text: &str| {
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) { text.parse::<i64>().ok() } else { None }
    };
    let mut hour = number(parts.next()?)?;
    let minute = number(parts.next()?)?;
    let seconds = parts.next().unwrap_or("0");
    if parts.next().is_some() {
        return None;
    }
    let (second, fraction) = seconds.split_once('.').unwrap_or((seconds, ""));
    let second = number(second)?;
    let micros = if fraction.is_empty() { 0 } else { fraction_micros(fraction)? };
    match afternoon {
        Some(true) if hour < 12 => hour += 12,
        Some(false) if hour == 12 => hour = 0,
        _ => {}
    }
    let total = ((hour * 60 + minute) * 60 + second) * MICROS_PER_SECOND + micros;
    (hour <= 24 && minute < 60 && second <= 60 && total <= MICROS_PER_DAY).then_some(total)
}

/// Microseconds of a fraction's digits, rounded.
fn fraction_micros(digits: &str) -> Option<i64> {
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let padded: String = digits.chars().chain(std::iter::repeat('0')).take(7).collect();
    let tenths: i64 = padded.parse().ok()?;
    Some((tenths + 5) / 10)
}

/// Splits "05:06:07+05:30" or "05:06:07 Europe/Paris" into time and zone.
fn split_zone(text: &str) -> (&str, Option<&str>) {
    let text = text.trim();
    if let Some(time) = text.strip_suffix(['Z', 'z']) {
        return (time.trim_end(), Some("UTC"));
    }
    let lower = text.to_ascii_lowercase();
    let body = if lower.ends_with("am") || lower.ends_with("pm") { "" } else { text };
    match body.find(|c: char| c == '+' || c == '-' || c.is_ascii_alphabetic()) {
        Some(at) => {
            let time = text[..at].trim_end();
            let zone = text[at..].trim();
            // The zone may follow am or pm.
            match zone.to_ascii_lowercase() {
                lower if lower.starts_with("am ") || lower.starts_with("pm ") => {
                    (text[..at + 2].trim_end(), Some(zone[3..].trim()))
                }
                _ => (time, Some(zone)),
            }
        }
        None => (text, None),
    }
}

/// Seconds east of UTC of a zone, at a local time where the zone has a name.
fn offset_of(zone: &str, at: Option<NaiveDateTime>) -> Option<i64> {
    if zone.is_empty() {
        return None;
    }
    if zone.eq_ignore_ascii_case("utc") || zone.eq_ignore_ascii_case("gmt") || zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let sign = match zone.as_bytes()[0] {
        b'+' => 1,
        b'-' => -1,
        _ => {
            let named = zone.parse::<chrono_tz::Tz>().ok();
            let zone = named.or_else(|| {
                chrono_tz::TZ_VARIANTS.iter().find(|known| known.name().eq_ignore_ascii_case(zone)).copied()
            })?;
            let at = at.unwrap_or_default();
            let local = zone.from_local_datetime(&at);
            let offset = match local {
                chrono::LocalResult::Single(time) => time.offset().fix(),
                // Twice or never on the clock: the offset before the change, as in PostgreSQL.
                chrono::LocalResult::Ambiguous(first, second) => {
                    let (first, second) = (first.offset().fix(), second.offset().fix());
                    if first.local_minus_utc() < second.local_minus_utc() { first } else { second }
                }
                chrono::LocalResult::None => zone.offset_from_utc_datetime(&(at - chrono::TimeDelta::hours(3))).fix(),
            };
            return Some(i64::from(offset.local_minus_utc()));
        }
    };
    let digits = &zone[1..];
    let number = |text: &str| {
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) { text.parse::<i64>().ok() } else { None }
    };
    let parts: Vec<&str> = digits.split(':').collect();
    let (hours, minutes, seconds) = match parts.as_slice() {
        [hours] if hours.len() == 4 => (number(&hours[..2])?, number(&hours[2..])?, 0),
        [hours] => (number(hours)?, 0, 0),
        [hours, minutes] => (number(hours)?, number(minutes)?, 0),
        [hours, minutes, seconds] => (number(hours)?, number(minutes)?, number(seconds)?),
        _ => return None,
    };
    (hours <= 15 && minutes < 60 && seconds < 60).then_some(sign * (hours * 3600 + minutes * 60 + seconds))
}

/// Microseconds since 1970. With a default zone the type is timestamptz; otherwise a zone in the text is ignored.
fn parse_timestamp(text: &str, field: &Field, default_zone: Option<&str>) -> Result<i64, PlanError> {
    let trimmed = text.trim();
    if trimmed.eq_ignore_ascii_case("epoch") {
        return Ok(0);
    }
    if trimmed.to_ascii_lowercase().trim_start_matches(['-', '+']) == "infinity" {
        return Err(PlanError::unsupported("an infinite timestamp"));
    }
    let parsed = (|| {
        let (date, rest) = split_date(trimmed)?;
        let (time, zone) = split_zone(rest);
        let micros = if time.is_empty() { 0 } else { parse_time(time)? };
        let local = i64::from(days_since_1970(date)).checked_mul(MICROS_PER_DAY)?.checked_add(micros)?;
        let Some(default_zone) = default_zone else {
            if let Some(zone) = zone {
                offset_of(zone, None)?;
            }
            return Some(local);
        };
        let at = date.and_time(NaiveTime::MIN) + chrono::TimeDelta::microseconds(micros);
        let offset = offset_of(zone.unwrap_or(default_zone), Some(at))?;
        local.checked_sub(offset * MICROS_PER_SECOND)
    })();
    parsed.ok_or_else(|| datetime_error(text, field))
}

/// Rounds to the digits of timestamp(p).
pub(crate) fn round_micros(micros: i64, field: &Field) -> i64 {
    let digits = field
        .metadata()
        .get(PG_TYPE)
        .and_then(|name| name.strip_prefix("timestamp("))
        .and_then(|rest| rest.split(')').next())
        .and_then(|digits| digits.parse::<u32>().ok());
    match digits {
        Some(digits @ 0..=5) => {
            let unit = 10_i64.pow(6 - digits);
            (micros + unit / 2).div_euclid(unit) * unit
        }
        _ => micros,
    }
}

/// An array literal: {1,2,NULL,"a b"}.
fn parse_array(text: &str, field: &Field, item: &Arc<Field>, time_zone: &str) -> Result<ScalarValue, PlanError> {
    let malformed = |detail: &str| {
        PlanError::new(SqlState::INVALID_TEXT_REPRESENTATION, format!("malformed array literal: \"{text}\""))
            .with_detail(detail.to_string())
    };
    let inner = text
        .trim()
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .ok_or_else(|| malformed("Array value must start with \"{\" and end with \"}\"."))?;
    // The element's own type, if the array's says more than Arrow's.
    let element = match field.metadata().get(PG_TYPE).and_then(|name| name.strip_suffix("[]")) {
        Some(name) => item.as_ref().clone().with_metadata([(PG_TYPE.to_string(), name.to_string())].into()),
        None => item.as_ref().clone(),
    };
    let mut values = Vec::new();
    for (word, quoted) in array_words(inner).ok_or_else(|| malformed("Unexpected array element."))? {
        if !quoted && word.starts_with('{') {
            return Err(PlanError::unsupported("an array of several dimensions"));
        }
        values.push(if !quoted && word.eq_ignore_ascii_case("null") {
            ScalarValue::try_from(item.data_type()).map_err(PlanError::internal)?
        } else {
            parse_text(&word, &element, time_zone)?
        });
    }
    let values = if values.is_empty() {
        new_empty_array(item.data_type())
    } else {
        ScalarValue::iter_to_array(values).map_err(PlanError::internal)?
    };
    let offsets = OffsetBuffer::from_lengths([values.len()]);
    let list = ListArray::try_new(item.clone(), offsets, values, None).map_err(PlanError::internal)?;
    Ok(ScalarValue::List(Arc::new(list)))
}

/// The elements between the braces, and whether each was quoted.
fn array_words(text: &str) -> Option<Vec<(String, bool)>> {
    let mut words = Vec::new();
    let mut characters = text.chars().peekable();
    if text.trim().is_empty() {
        return Some(words);
    }
    loop {
        let mut word = String::new();
        let mut quoted = false;
        while characters.next_if(|c| c.is_whitespace()).is_some() {}
        if characters.next_if_eq(&'"').is_some() {
            quoted = true;
            loop {
                match characters.next()? {
                    '"' => break,
                    '\\' => word.push(characters.next()?),
                    c => word.push(c),
                }
            }
            while characters.next_if(|c| c.is_whitespace()).is_some() {}
        } else {
            while let Some(c) = characters.next_if(|c| *c != ',') {
                match c {
                    '\\' => word.push(characters.next()?),
                    '"' => return None,
                    c => word.push(c),
                }
            }
            word.truncate(word.trim_end().len());
            if word.is_empty() {
                return None;
            }
        }
        words.push((word, quoted));
        match characters.next() {
            None => return Some(words),
            Some(',') => {}
            Some(_) => return None,
        }
    }
}
