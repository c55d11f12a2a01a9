//! SET, SHOW, RESET: the settings of a session, with Postgres's names, defaults and checks.
//!
//! Values are kept as text. A change inside a transaction block is undone if the block fails; a LOCAL change ends with the
//! block in any case. Settings that clients are told of ([`Definition::reported`]) are collected when they change.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use plan::SqlState;
use planner::SessionInfo;
use planner::catalog::nearest;

use super::timezone::TimeZone;
use crate::coordinator::ddl::advice::StatePolicy;
use crate::error::{Result, ServerError};
use crate::pgwire::text::{IntervalStyle, TextStyle};

mod check;
mod list;

pub use list::SERVER_VERSION;

use list::SETTINGS;

/// What a setting accepts.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// on, off and their synonyms.
    Boolean,
    /// A whole number.
    Integer { min: i64, max: i64 },
    /// A duration; a number without unit is milliseconds.
    Milliseconds,
    /// An amount of memory; a number without unit is kilobytes.
    Kilobytes,
    /// A number.
    Real,
    /// One of some words.
    Words(&'static [&'static str]),
    /// Any text.
    Text,
    /// A time zone.
    TimeZone,
    /// Output style and field order of dates.
    DateStyle,
    /// Only UTF8.
    Encoding,
    /// Schemas.
    SearchPath,
    /// Cannot be changed in a session.
    Fixed,
}

/// A setting.
#[derive(Debug, Clone, Copy)]
struct Definition {
    /// As SHOW prints it.
    name: &'static str,
    /// What it accepts.
    kind: Kind,
    /// Its value where nothing was set.
    default: &'static str,
    /// Whether clients are told when it changes.
    reported: bool,
    /// What it does, for SHOW ALL.
    description: &'static str,
}

/// Values that differ from the defaults.
type Values = BTreeMap<&'static str, String>;

/// The settings of a session.
pub struct Settings {
    /// What RESET goes back to: defaults changed by the connection's startup parameters.
    initial: Values,
    /// Values in force.
    current: Values,
    /// Values after the block, if it commits and something LOCAL is in force.
    after_commit: Option<Values>,
    /// Values after the block, if it fails and something was set in it.
    after_rollback: Option<Values>,
    /// User and database, which are no settings.
    user: String,
    database: String,
    /// What planning sees.
    info: Arc<SessionInfo>,
    /// How values are written.
    style: TextStyle,
    /// What clients were told last.
    told: Values,
    /// Something may have changed since.
    untold: bool,
    /// What is asked for at every statement.
    limits: Limits,
}

/// Settings that are asked for at every statement, read once.
#[derive(Debug, Clone, Copy, Default)]
struct Limits {
    statement: Option<Duration>,
    idle_in_transaction: Option<Duration>,
    read_only: bool,
}

impl Settings {
    /// The settings of a new session.
    pub fn new(user: &str, database: &str) -> Settings {
        let mut initial = Values::new();
        initial.insert("session_authorization", user.to_owned());
        let info = Arc::new(SessionInfo {
            search_path: Vec::new(),
            time_zone: "UTC".to_owned(),
            user: user.to_owned(),
            database: database.to_owned(),
        });
        let mut settings = Settings {
            current: initial.clone(),
            initial,
            after_commit: None,
            after_rollback: None,
            user: user.to_owned(),
            database: database.to_owned(),
            info,
            style: TextStyle::default(),
            told: Values::new(),
            untold: true,
            limits: Limits::default(),
        };
        settings.derive();
        settings
    }

    /// Sets a value that came with the connection: RESET goes back to it.
    pub fn set_initial(&mut self, name: &str, value: &str) -> Result<()> {
        let definition = definition(name)?;
        let value = check::value(definition, value)?;
        self.initial.insert(definition.name, value);
        self.current = self.initial.clone();
        self.derive();
        Ok(())
    }

    /// SET: the value `None` is DEFAULT. In a block the change is undone if the block fails.
    pub fn set(&mut self, name: &str, value: Option<&str>, local: bool, in_block: bool) -> Result<()> {
        let definition = definition(name)?;
        let value = match value {
            Some(value) => Some(check::value(definition, value)?),
            None => self.initial.get(definition.name).cloned(),
        };
        if matches!(definition.kind, Kind::Fixed) {
            return Err(check::fixed(definition));
        }
        // These two belong to a transaction and end with it.
        let local = local || matches!(definition.name, "transaction_isolation" | "transaction_read_only");
        if local && !in_block {
            return Ok(());
        }
        if in_block && self.after_rollback.is_none() {
            self.after_rollback = Some(self.current.clone());
        }
        if local {
            self.after_commit.get_or_insert_with(|| self.current.clone());
        } else if let Some(after) = &mut self.after_commit {
            assign(after, definition.name, value.clone());
        }
        assign(&mut self.current, definition.name, value);
        self.derive();
        Ok(())
    }

    /// RESET; "all" for all.
    pub fn reset(&mut self, name: &str, in_block: bool) -> Result<()> {
        if name != "all" {
            return self.set(name, None, false, in_block);
        }
        if in_block && self.after_rollback.is_none() {
            self.after_rollback = Some(self.current.clone());
        }
        self.after_commit = None;
        self.current = self.initial.clone();
        self.derive();
        Ok(())
    }

    /// The block has ended: LOCAL values end; after a failure all changes made in it.
    pub fn end_block(&mut self, committed: bool) {
        let (after_commit, after_rollback) = (self.after_commit.take(), self.after_rollback.take());
        let after = if committed { after_commit } else { after_rollback };
        if let Some(after) = after {
            self.current = after;
            self.derive();
        }
    }

    /// A setting's name and value as SHOW prints them.
    pub fn show(&self, name: &str) -> Result<(&'static str, String)> {
        let definition = definition(name)?;
        Ok((definition.name, self.value(definition)))
    }

    /// Name, value and description of all settings.
    pub fn show_all(&self) -> Vec<(&'static str, String, &'static str)> {
        SETTINGS.iter().map(|definition| (definition.name, self.value(definition), definition.description)).collect()
    }

    /// What planning depends on.
    pub fn info(&self) -> &Arc<SessionInfo> {
        &self.info
    }

    /// How values are written.
    pub fn style(&self) -> &TextStyle {
        &self.style
    }

    /// How long a statement may run.
    pub fn statement_timeout(&self) -> Option<Duration> {
        self.limits.statement
    }

    /// How long a transaction block may wait for the client.
    pub fn idle_in_transaction_timeout(&self) -> Option<Duration> {
        self.limits.idle_in_transaction
    }

    /// Whether new transactions refuse writes.
    pub fn default_read_only(&self) -> bool {
        self.limits.read_only
    }

    /// What to do about state of new views that grows without bound.
    pub fn state_policy(&self) -> StatePolicy {
        match self.text("state_policy") {
            "require_bounded" => StatePolicy::RequireBounded,
            _ => StatePolicy::Notice,
        }
    }

    /// Whether notices below WARNING are sent.
    pub fn sends_notices(&self) -> bool {
        !matches!(self.text("client_min_messages"), "warning" | "error")
    }

    /// Whether warnings are sent.
    pub fn sends_warnings(&self) -> bool {
        self.text("client_min_messages") != "error"
    }

    /// What clients are told of and has changed since they were last told.
    pub fn take_reports(&mut self) -> Vec<(&'static str, String)> {
        let mut changed = Vec::new();
        if !std::mem::take(&mut self.untold) {
            return changed;
        }
        for definition in SETTINGS.iter().filter(|definition| definition.reported) {
            let value = self.value(definition);
            if self.told.get(definition.name) != Some(&value) {
                self.told.insert(definition.name, value.clone());
                changed.push((definition.name, value));
            }
        }
        changed
    }

    /// A setting's value as SHOW prints it.
    fn value(&self, definition: &Definition) -> String {
        match (self.current.get(definition.name), definition.name) {
            (Some(value), _) => value.clone(),
            (None, "transaction_isolation") => self.text("default_transaction_isolation").to_owned(),
            (None, "transaction_read_only") => self.text("default_transaction_read_only").to_owned(),
            (None, _) => definition.default.to_owned(),
        }
    }

    /// A setting's value, by a name from the list.
    fn text(&self, name: &str) -> &str {
        self.current.get(name).map_or_else(
            || SETTINGS.iter().find(|definition| definition.name == name).map_or("", |definition| definition.default),
            String::as_str,
        )
    }

    /// A duration setting; 0 is none.
    fn milliseconds(&self, name: &str) -> Option<Duration> {
        let duration = check::parse_milliseconds(self.text(name)).unwrap_or(0);
        (duration > 0).then(|| Duration::from_millis(duration))
    }

    /// Works out again what is derived from the values.
    fn derive(&mut self) {
        self.untold = true;
        self.limits = Limits {
            statement: self.milliseconds("statement_timeout"),
            idle_in_transaction: self.milliseconds("idle_in_transaction_session_timeout"),
            read_only: self.text("default_transaction_read_only") == "on",
        };
        let (time_zone, _) = TimeZone::parse(self.text("TimeZone")).unwrap_or((TimeZone::UTC, String::new()));
        self.style = TextStyle {
            time_zone,
            extra_float_digits: self.text("extra_float_digits").parse().unwrap_or(1),
            bytea_hex: self.text("bytea_output") != "escape",
            interval: if self.text("IntervalStyle") == "iso_8601" {
                IntervalStyle::Iso8601
            } else {
                IntervalStyle::Postgres
            },
        };
        let info = SessionInfo {
            search_path: check::split_search_path(self.text("search_path")),
            time_zone: self.text("TimeZone").to_owned(),
            user: self.user.clone(),
            database: self.database.clone(),
        };
        if *self.info != info {
            self.info = Arc::new(info);
        }
    }
}

/// Puts a value, or takes it out for the default.
fn assign(values: &mut Values, name: &'static str, value: Option<String>) {
    match value {
        Some(value) => values.insert(name, value),
        None => values.remove(name),
    };
}

/// The setting of a name, in any case.
fn definition(name: &str) -> Result<&'static Definition> {
    let name = match name {
        "timezone" | "time zone" => "TimeZone",
        "names" => "client_encoding",
        other => other,
    };
    if let Some(found) = SETTINGS.iter().find(|definition| definition.name.eq_ignore_ascii_case(name)) {
        return Ok(found);
    }
    let message = format!("unrecognized configuration parameter \"{name}\"");
    let error = ServerError::new(SqlState::UNDEFINED_OBJECT, message);
    Err(match nearest(name, SETTINGS.iter().map(|definition| definition.name)) {
        Some(near) => error.with_hint(format!("Perhaps you meant \"{near}\".")),
        None => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_and_shown_as_postgres_shows_them() {
        let mut settings = Settings::new("me", "db");
        settings.set("DATESTYLE", Some("ISO"), false, false).unwrap();
        assert_eq!(settings.show("datestyle").unwrap(), ("DateStyle", "ISO, MDY".to_owned()));
        settings.set("statement_timeout", Some("90s"), false, false).unwrap();
        assert_eq!(settings.show("statement_timeout").unwrap().1, "90s");
        assert_eq!(settings.statement_timeout(), Some(Duration::from_secs(90)));
        settings.set("timezone", Some("europe/berlin"), false, false).unwrap();
        assert_eq!(settings.info().time_zone, "Europe/Berlin");
        let error = settings.set("statment_timeout", Some("1"), false, false).unwrap_err();
        assert_eq!(error.sqlstate, SqlState::UNDEFINED_OBJECT);
        assert_eq!(error.hint.as_deref(), Some("Perhaps you meant \"statement_timeout\"."));
        assert_eq!(
            settings.set("timezone", Some("moon"), false, false).unwrap_err().sqlstate,
            SqlState::INVALID_PARAMETER_VALUE
        );
        assert_eq!(
            settings.set("server_version", Some("1"), false, false).unwrap_err().sqlstate,
            SqlState::CANT_CHANGE_RUNTIME_PARAM
        );
    }

    #[test]
    fn the_policy_for_state_is_one_of_two() {
        let mut settings = Settings::new("me", "db");
        assert_eq!(settings.state_policy(), StatePolicy::Notice);
        settings.set("State_Policy", Some("Require_Bounded"), false, false).unwrap();
        assert_eq!(settings.state_policy(), StatePolicy::RequireBounded);
        let error = settings.set("state_policy", Some("none"), false, false).unwrap_err();
        assert_eq!(error.sqlstate, SqlState::INVALID_PARAMETER_VALUE);
        assert_eq!(error.hint.as_deref(), Some("Available values: notice, require_bounded."));
        settings.reset("state_policy", false).unwrap();
        assert_eq!(settings.state_policy(), StatePolicy::Notice);
    }

    #[test]
    fn blocks_undo_changes() {
        let mut settings = Settings::new("me", "db");
        settings.set("application_name", Some("a"), false, true).unwrap();
        settings.end_block(false);
        assert_eq!(settings.show("application_name").unwrap().1, "");
        settings.set("application_name", Some("a"), true, true).unwrap();
        settings.set("work_mem", Some("8MB"), false, true).unwrap();
        assert_eq!(settings.show("application_name").unwrap().1, "a");
        settings.end_block(true);
        assert_eq!(settings.show("application_name").unwrap().1, "");
        assert_eq!(settings.show("work_mem").unwrap().1, "8MB");
    }

    #[test]
    fn clients_are_told_of_changes_once() {
        let mut settings = Settings::new("me", "db");
        assert!(settings.take_reports().iter().any(|(name, _)| *name == "server_version"));
        assert!(settings.take_reports().is_empty());
        settings.set("application_name", Some("psql"), false, false).unwrap();
        assert_eq!(settings.take_reports(), vec![("application_name", "psql".to_owned())]);
    }
}
