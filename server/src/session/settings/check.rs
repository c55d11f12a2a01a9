//! Checks a setting's new value and gives it the form in which SHOW prints it.

use plan::SqlState;

use super::{Definition, Kind, TimeZone};
use crate::error::{Result, ServerError};

/// The value as SHOW will print it, or why it is refused.
pub fn value(definition: &Definition, value: &str) -> Result<String> {
    let trimmed = value.trim();
    match definition.kind {
        Kind::Boolean => boolean(trimmed).map(|on| if on { "on" } else { "off" }.to_owned()).ok_or_else(|| {
            let message = format!("parameter \"{}\" requires a Boolean value", definition.name);
            ServerError::new(SqlState::INVALID_PARAMETER_VALUE, message)
        }),
        Kind::Integer { min, max } => match trimmed.parse::<i64>() {
            Ok(number) if (min..=max).contains(&number) => Ok(number.to_string()),
            Ok(number) => Err(ServerError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("{number} is outside the valid range for parameter \"{}\" ({min} .. {max})", definition.name),
            )),
            Err(_) => Err(invalid(definition, value)),
        },
        Kind::Milliseconds => match parse_milliseconds(trimmed) {
            Some(duration) => Ok(show_milliseconds(duration)),
            None => Err(invalid(definition, value)
                .with_hint("Valid units for this parameter are \"us\", \"ms\", \"s\", \"min\", \"h\", and \"d\".")),
        },
        Kind::Kilobytes => kilobytes(trimmed).ok_or_else(|| {
            invalid(definition, value)
                .with_hint("Valid units for this parameter are \"B\", \"kB\", \"MB\", \"GB\", and \"TB\".")
        }),
        Kind::Real => match trimmed.parse::<f64>() {
            Ok(_) => Ok(trimmed.to_owned()),
            Err(_) => Err(invalid(definition, value)),
        },
        Kind::Words(words) => {
            let lower = trimmed.to_lowercase();
            let lower = match (lower.as_str(), words.contains(&"on")) {
                ("true" | "yes" | "1" | "t", true) => "on",
                (other, _) => other,
            };
            words
                .iter()
                .find(|word| **word == lower)
                .map(|word| (*word).to_owned())
                .ok_or_else(|| invalid(definition, value).with_hint(format!("Available values: {}.", words.join(", "))))
        }
        Kind::Text => Ok(value.to_owned()),
        Kind::TimeZone => {
            TimeZone::parse(trimmed.trim_matches('\'')).map(|(_, name)| name).ok_or_else(|| invalid(definition, value))
        }
        Kind::DateStyle => {
            date_style(trimmed).ok_or_else(|| invalid(definition, value).with_hint("Only \"ISO, MDY\" is supported."))
        }
        Kind::Encoding => {
            let plain: String = trimmed.chars().filter(char::is_ascii_alphanumeric).collect();
            match plain.to_ascii_lowercase().as_str() {
                "utf8" | "unicode" | "default" => Ok("UTF8".to_owned()),
                _ => Err(invalid(definition, value).with_hint("Only UTF8 is supported.")),
            }
        }
        Kind::SearchPath => Ok(value.trim().to_owned()),
        Kind::Fixed => Err(fixed(definition)),
    }
}

/// The error for a setting that a session cannot change.
pub fn fixed(definition: &Definition) -> ServerError {
    let message = format!("parameter \"{}\" cannot be changed", definition.name);
    ServerError::new(SqlState::CANT_CHANGE_RUNTIME_PARAM, message)
}

/// The error for a value that a setting does not accept.
fn invalid(definition: &Definition, value: &str) -> ServerError {
    let message = format!("invalid value for parameter \"{}\": \"{value}\"", definition.name);
    ServerError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

/// on, off, and what Postgres takes for them.
fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "tru" | "tr" | "t" | "yes" | "ye" | "y" | "1" => Some(true),
        "off" | "of" | "false" | "fals" | "fal" | "fa" | "f" | "no" | "n" | "0" => Some(false),
        _ => None,
    }
}

/// A number and its unit.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let split = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    Some((number.parse().ok()?, unit.trim()))
}

/// A duration in milliseconds.
pub fn parse_milliseconds(text: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(text)?;
    let factor = match unit {
        "us" => 0.001,
        "" | "ms" => 1.0,
        "s" => 1000.0,
        "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return None,
    };
    let milliseconds = (number * factor).round();
    (0.0..=f64::from(i32::MAX)).contains(&milliseconds).then_some(milliseconds as u64)
}

/// A duration in the largest unit that divides it.
fn show_milliseconds(duration: u64) -> String {
    const UNITS: [(u64, &str); 5] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"), (1, "ms")];
    if duration == 0 {
        return "0".to_owned();
    }
    UNITS
        .iter()
        .find(|(size, _)| duration.is_multiple_of(*size))
        .map_or_else(|| duration.to_string(), |(size, unit)| format!("{}{unit}", duration / size))
}

/// An amount of memory in the largest unit that divides it.
fn kilobytes(text: &str) -> Option<String> {
    let (number, unit) = number_and_unit(text)?;
    let factor = match unit {
        "B" => 1.0 / 1024.0,
        "" | "kB" => 1.0,
        "MB" => 1024.0,
        "GB" => 1024.0 * 1024.0,
        "TB" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    let amount = number * factor;
    if !(0.0..=f64::from(i32::MAX)).contains(&amount) {
        return None;
    }
    let amount = amount.round() as u64;
    const UNITS: [(u64, &str); 3] = [(1 << 20, "GB"), (1 << 10, "MB"), (1, "kB")];
    if amount == 0 {
        return Some("0".to_owned());
    }
    UNITS.iter().find(|(size, _)| amount.is_multiple_of(*size)).map(|(size, unit)| format!("{}{unit}", amount / size))
}

/// The output style must stay ISO, and the order of fields in ambiguous input month, day, year: another order would be
/// accepted here and not followed where dates are read.
fn date_style(text: &str) -> Option<String> {
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        match word.to_ascii_lowercase().as_str() {
            "iso" | "default" => {}
            "mdy" | "us" | "noneuro" | "noneuropean" => {}
            _ => return None,
        }
    }
    Some("ISO, MDY".to_owned())
}

/// The schemas of a search path: quoted or lower-cased names. `"$user"`, a schema per user, is left out: nobody has one
/// unless it is named itself.
pub fn split_search_path(text: &str) -> Vec<String> {
    let mut schemas = Vec::new();
    let mut name = String::new();
    let (mut quoted, mut was_quoted) = (false, false);
    for c in text.chars().chain([',']) {
        match c {
            '"' => {
                quoted = !quoted;
                was_quoted = true;
            }
            ',' if !quoted => {
                let part = if was_quoted { name.clone() } else { name.trim().to_lowercase() };
                if !part.is_empty() && part != "$user" && !schemas.contains(&part) {
                    schemas.push(part);
                }
                name.clear();
                was_quoted = false;
            }
            c if quoted || !c.is_whitespace() => name.push(c),
            _ => {}
        }
    }
    schemas
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn search_paths() {
        assert_eq!(split_search_path("\"$user\", public"), ["public"]);
        assert_eq!(split_search_path("A, \"B c\" ,a"), ["a", "B c"]);
        assert!(split_search_path("").is_empty());
    }

    #[test]
    fn units() {
        assert_eq!(parse_milliseconds("2min"), Some(120_000));
        assert_eq!(show_milliseconds(1500), "1500ms");
        assert_eq!(kilobytes("4096"), Some("4MB".into()));
        assert_eq!(date_style("iso"), Some("ISO, MDY".into()));
        assert_eq!(date_style("iso, dmy"), None);
        assert_eq!(date_style("german"), None);
    }
}
