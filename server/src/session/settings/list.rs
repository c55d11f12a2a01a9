//! All settings, in the order of SHOW ALL.

use super::{Definition, Kind};

/// Words for isolation levels. All of them get what the strictest one promises.
const ISOLATION: &[&str] =
    &["read committed", "serializable", "repeatable read", "read uncommitted", "strict serializable"];
/// Words for log levels.
const MESSAGES: &[&str] =
    &["notice", "debug5", "debug4", "debug3", "debug2", "debug1", "debug", "log", "info", "warning", "error"];

/// A setting that clients are not told of.
const fn quiet(name: &'static str, kind: Kind, default: &'static str, description: &'static str) -> Definition {
    Definition { name, kind, default, reported: false, description }
}

/// A setting of which clients are told when it changes.
const fn reported(name: &'static str, kind: Kind, default: &'static str, description: &'static str) -> Definition {
    Definition { name, kind, default, reported: true, description }
}

/// The version of PostgreSQL whose dialect and catalog clients may expect, and ours.
pub const SERVER_VERSION: &str = concat!("16.6 (Tidemill ", env!("CARGO_PKG_VERSION"), ")");

/// The list.
pub const SETTINGS: &[Definition] = &[
    reported("application_name", Kind::Text, "", "Name of the application, for logs."),
    quiet("array_nulls", Kind::Boolean, "on", "Accepted; NULL in array literals is always read as NULL."),
    quiet("backslash_quote", Kind::Text, "safe_encoding", "Accepted for compatibility."),
    quiet("bytea_output", Kind::Words(&["hex", "escape"]), "hex", "Text form of bytea values."),
    quiet("check_function_bodies", Kind::Boolean, "on", "Accepted for compatibility."),
    reported("client_encoding", Kind::Encoding, "UTF8", "Character set of the client: always UTF8."),
    quiet("client_min_messages", Kind::Words(MESSAGES), "notice", "Lowest level of the messages sent to the client."),
    quiet("cursor_tuple_fraction", Kind::Real, "0.1", "Accepted for compatibility."),
    reported(
        "DateStyle",
        Kind::DateStyle,
        "ISO, MDY",
        "Text form of dates and order of the fields in ambiguous input.",
    ),
    quiet("default_table_access_method", Kind::Text, "heap", "Accepted for compatibility."),
    quiet("default_tablespace", Kind::Text, "", "Accepted for compatibility."),
    quiet("default_text_search_config", Kind::Text, "pg_catalog.simple", "Accepted for compatibility."),
    quiet("default_transaction_deferrable", Kind::Boolean, "off", "Accepted for compatibility."),
    quiet(
        "default_transaction_isolation",
        Kind::Words(ISOLATION),
        "read committed",
        "Accepted: all are strictly serializable.",
    ),
    reported("default_transaction_read_only", Kind::Boolean, "off", "New transactions refuse writes."),
    quiet("default_with_oids", Kind::Boolean, "off", "Accepted for compatibility."),
    quiet("dml_wait_persistence", Kind::Boolean, "on", "Accepted: acknowledged writes are always durable."),
    quiet("enable_hashjoin", Kind::Boolean, "on", "Accepted for compatibility."),
    quiet("enable_mergejoin", Kind::Boolean, "on", "Accepted for compatibility."),
    quiet("enable_nestloop", Kind::Boolean, "on", "Accepted for compatibility."),
    quiet("enable_seqscan", Kind::Boolean, "on", "Accepted for compatibility."),
    quiet("escape_string_warning", Kind::Boolean, "on", "Accepted for compatibility."),
    quiet(
        "extra_float_digits",
        Kind::Integer { min: -15, max: 3 },
        "1",
        "Digits of floating-point numbers; positive: shortest exact.",
    ),
    quiet("from_collapse_limit", Kind::Integer { min: 1, max: i32::MAX as i64 }, "8", "Accepted for compatibility."),
    quiet("geqo", Kind::Boolean, "on", "Accepted for compatibility."),
    quiet(
        "idle_in_transaction_session_timeout",
        Kind::Milliseconds,
        "0",
        "Ends sessions that leave a transaction idle; 0 is never.",
    ),
    quiet("idle_session_timeout", Kind::Milliseconds, "0", "Accepted for compatibility."),
    reported("in_hot_standby", Kind::Fixed, "off", "Whether the server only reads."),
    reported("integer_datetimes", Kind::Fixed, "on", "Timestamps are whole microseconds."),
    reported("IntervalStyle", Kind::Words(&["postgres", "iso_8601"]), "postgres", "Text form of intervals."),
    quiet("jit", Kind::Boolean, "off", "Accepted for compatibility."),
    quiet("join_collapse_limit", Kind::Integer { min: 1, max: i32::MAX as i64 }, "8", "Accepted for compatibility."),
    quiet("lc_collate", Kind::Fixed, "C", "Order of text: by code point."),
    quiet("lc_ctype", Kind::Fixed, "C.UTF-8", "Character classes."),
    quiet("lc_messages", Kind::Text, "C", "Language of messages."),
    quiet("lc_monetary", Kind::Text, "C", "Accepted for compatibility."),
    quiet("lc_numeric", Kind::Text, "C", "Accepted for compatibility."),
    quiet("lc_time", Kind::Text, "C", "Accepted for compatibility."),
    quiet("lock_timeout", Kind::Milliseconds, "0", "Accepted for compatibility."),
    quiet("log_statement", Kind::Text, "none", "Accepted for compatibility."),
    quiet("maintenance_work_mem", Kind::Kilobytes, "64MB", "Accepted for compatibility."),
    quiet("max_identifier_length", Kind::Fixed, "63", "Bytes of a name that PostgreSQL would keep."),
    quiet("max_index_keys", Kind::Fixed, "32", "Columns of a key in PostgreSQL."),
    quiet("max_parallel_workers_per_gather", Kind::Integer { min: 0, max: 1024 }, "0", "Accepted for compatibility."),
    quiet("password_encryption", Kind::Text, "scram-sha-256", "Accepted for compatibility."),
    quiet("plan_cache_mode", Kind::Text, "auto", "Accepted for compatibility."),
    quiet("quote_all_identifiers", Kind::Boolean, "off", "Accepted for compatibility."),
    quiet("random_page_cost", Kind::Real, "4", "Accepted for compatibility."),
    quiet("role", Kind::Text, "none", "Accepted for compatibility."),
    quiet("row_security", Kind::Boolean, "on", "Accepted for compatibility."),
    quiet("rw_implicit_flush", Kind::Boolean, "on", "Accepted: reads always see acknowledged writes."),
    reported("search_path", Kind::SearchPath, "\"$user\", public", "Schemas in which unqualified names are looked up."),
    quiet("seq_page_cost", Kind::Real, "1", "Accepted for compatibility."),
    reported("server_encoding", Kind::Fixed, "UTF8", "Character set of stored text."),
    reported("server_version", Kind::Fixed, SERVER_VERSION, "Version of PostgreSQL that clients may expect, and ours."),
    quiet("server_version_num", Kind::Fixed, "160006", "Version of PostgreSQL that clients may expect, as a number."),
    reported("session_authorization", Kind::Fixed, "postgres", "The user of the session."),
    quiet("session_replication_role", Kind::Text, "origin", "Accepted for compatibility."),
    quiet("ssl", Kind::Fixed, "off", "Whether connections are encrypted."),
    reported("is_superuser", Kind::Fixed, "on", "Whether the user may do everything."),
    reported(
        "standard_conforming_strings",
        Kind::Words(&["on"]),
        "on",
        "Backslashes in ordinary string literals are just backslashes.",
    ),
    quiet(
        "state_policy",
        Kind::Words(&["notice", "require_bounded"]),
        "notice",
        "Whether views whose state grows without bound are made with a notice, or refused.",
    ),
    quiet("statement_timeout", Kind::Milliseconds, "0", "Cancels statements that run longer; 0 is never."),
    quiet("synchronize_seqscans", Kind::Boolean, "on", "Accepted for compatibility."),
    quiet("synchronous_commit", Kind::Text, "on", "Accepted: acknowledged writes are always durable."),
    quiet("temp_buffers", Kind::Kilobytes, "8MB", "Accepted for compatibility."),
    reported("TimeZone", Kind::TimeZone, "UTC", "Zone in which timestamptz values are read and shown."),
    quiet("transaction_deferrable", Kind::Boolean, "off", "Accepted for compatibility."),
    quiet(
        "transaction_isolation",
        Kind::Words(ISOLATION),
        "read committed",
        "Accepted: all are strictly serializable.",
    ),
    quiet("transaction_read_only", Kind::Boolean, "off", "The current transaction refuses writes."),
    quiet("transaction_timeout", Kind::Milliseconds, "0", "Accepted for compatibility."),
    quiet("transform_null_equals", Kind::Boolean, "off", "Accepted for compatibility."),
    quiet("work_mem", Kind::Kilobytes, "4MB", "Accepted for compatibility."),
    quiet("xmlbinary", Kind::Text, "base64", "Accepted for compatibility."),
    quiet("xmloption", Kind::Text, "content", "Accepted for compatibility."),
];
