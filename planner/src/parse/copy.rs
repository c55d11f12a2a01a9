//! COPY, with its options in parentheses and in the form from before PostgreSQL 9.0.

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use plan::{PlanError, SqlState};

use super::fold;
use super::statements::StatementParser;
use crate::statement::{CopyFormat, CopyOptions};

/// COPY as written.
#[derive(Debug, Clone)]
pub(crate) struct CopySyntax {
    pub source: CopySource,
    pub direction: CopyDirection,
    pub options: CopyOptions,
    /// FORCE_QUOTE: column names; an empty list is `*`.
    pub force_quote: Option<Vec<String>>,
}

/// What is copied.
#[derive(Debug, Clone)]
pub enum CopySource {
    /// A table and the columns named.
    Table(ast::ObjectName, Vec<ast::Ident>),
    /// A query.
    Query(Box<ast::Query>),
}

/// Where from or to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CopyDirection {
    FromStdin,
    ToStdout,
    /// A file or program on the server.
    Server,
}

/// The options as they are collected, before their defaults are known.
#[derive(Default)]
struct Collected {
    format: Option<String>,
    header: bool,
    delimiter: Option<String>,
    null: Option<String>,
    quote: Option<String>,
    escape: Option<String>,
    force_quote: Option<Vec<String>>,
    unsupported: Option<String>,
}

pub(super) fn parse(parser: &mut StatementParser<'_>) -> Result<CopySyntax, PlanError> {
    parser.expect_words(&["copy"])?;
    let source = if parser.parser.consume_token(&Token::LParen) {
        if parser.peek_word(0, "subscribe") {
            return Err(PlanError::unsupported("SUBSCRIBE"));
        }
        let query = parser.run(Parser::parse_query)?;
        parser.run(|parser| parser.expect_token(&Token::RParen).map(|_| ()))?;
        CopySource::Query(query)
    } else {
        let name = parser.object_name()?;
        let mut columns = Vec::new();
        if parser.parser.consume_token(&Token::LParen) {
            columns = parser.run(|parser| parser.parse_comma_separated(Parser::parse_identifier))?;
            parser.run(|parser| parser.expect_token(&Token::RParen).map(|_| ()))?;
        }
        CopySource::Table(name, columns)
    };
    let from = parser.take_words(&["from"]);
    if !from {
        parser.expect_words(&["to"])?;
    }
    let direction = direction(parser, from)?;
    let mut options = Collected::default();
    parser.take_words(&["with"]);
    if parser.parser.consume_token(&Token::LParen) {
        loop {
            option(parser, &mut options)?;
            if !parser.parser.consume_token(&Token::Comma) {
                break;
            }
        }
        parser.run(|parser| parser.expect_token(&Token::RParen).map(|_| ()))?;
    } else {
        while !parser.at_end() && !parser.peek_word(0, "where") {
            legacy_option(parser, &mut options)?;
        }
    }
    if parser.peek_word(0, "where") {
        return Err(PlanError::unsupported("COPY ... WHERE"));
    }
    if let Some(what) = options.unsupported {
        return Err(PlanError::unsupported(what));
    }
    let force_quote = options.force_quote.take();
    Ok(CopySyntax { source, direction, options: with_defaults(options)?, force_quote })
}

fn direction(parser: &mut StatementParser<'_>, from: bool) -> Result<CopyDirection, PlanError> {
    if parser.take_words(&[if from { "stdin" } else { "stdout" }]) {
        return Ok(if from { CopyDirection::FromStdin } else { CopyDirection::ToStdout });
    }
    // PostgreSQL takes either word in either direction.
    if parser.take_words(&[if from { "stdout" } else { "stdin" }]) {
        return Ok(if from { CopyDirection::FromStdin } else { CopyDirection::ToStdout });
    }
    parser.take_words(&["program"]);
    parser.run(Parser::parse_literal_string)?;
    Ok(CopyDirection::Server)
}

fn option(parser: &mut StatementParser<'_>, options: &mut Collected) -> Result<(), PlanError> {
    let name = parser.identifier()?.to_lowercase();
    match name.as_str() {
        "format" => options.format = Some(word_or_text(parser)?.to_lowercase()),
        "header" => options.header = boolean(parser, options)?,
        "delimiter" => options.delimiter = Some(text(parser)?),
        "null" => options.null = Some(text(parser)?),
        "quote" => options.quote = Some(text(parser)?),
        "escape" => options.escape = Some(text(parser)?),
        "force_quote" => options.force_quote = Some(columns(parser)?),
        "freeze" => {
            boolean(parser, options)?;
        }
        "encoding" => encoding(parser, options)?,
        "force_not_null" | "force_null" | "default" | "on_error" | "log_verbosity" | "reject_limit" => {
            options.unsupported = Some(format!("COPY option {}", name.to_uppercase()));
            let _ = columns(parser).or_else(|_| word_or_text(parser).map(|value| vec![value]))?;
        }
        _ => {
            return Err(PlanError::new(SqlState::SYNTAX_ERROR, format!("option \"{name}\" not recognized"))
                .with_hint("COPY knows FORMAT, HEADER, DELIMITER, NULL, QUOTE, ESCAPE, FORCE_QUOTE and ENCODING."));
        }
    }
    Ok(())
}

fn legacy_option(parser: &mut StatementParser<'_>, options: &mut Collected) -> Result<(), PlanError> {
    let as_text = |parser: &mut StatementParser<'_>| {
        parser.take_words(&["as"]);
        text(parser)
    };
    if parser.take_words(&["binary"]) {
        options.format = Some("binary".to_string());
    } else if parser.take_words(&["csv"]) {
        options.format = Some("csv".to_string());
    } else if parser.take_words(&["header"]) {
        options.header = true;
    } else if parser.take_words(&["freeze"]) {
    } else if parser.take_words(&["delimiter"]) || parser.take_words(&["delimiters"]) {
        options.delimiter = Some(as_text(parser)?);
    } else if parser.take_words(&["null"]) {
        options.null = Some(as_text(parser)?);
    } else if parser.take_words(&["quote"]) {
        options.quote = Some(as_text(parser)?);
    } else if parser.take_words(&["escape"]) {
        options.escape = Some(as_text(parser)?);
    } else if parser.take_words(&["encoding"]) {
        encoding(parser, options)?;
    } else if parser.take_words(&["force", "quote"]) {
        options.force_quote = Some(if parser.parser.consume_token(&Token::Mul) {
            Vec::new()
        } else {
            parser.run(|parser| parser.parse_comma_separated(Parser::parse_identifier))?.iter().map(fold).collect()
        });
    } else if parser.take_words(&["force", "not", "null"]) || parser.take_words(&["force", "null"]) {
        parser.run(|parser| parser.parse_comma_separated(Parser::parse_identifier))?;
        options.unsupported = Some("COPY option FORCE NULL".to_string());
    } else {
        return Err(parser.unexpected());
    }
    Ok(())
}

fn text(parser: &mut StatementParser<'_>) -> Result<String, PlanError> {
    parser.run(Parser::parse_literal_string)
}

fn word_or_text(parser: &mut StatementParser<'_>) -> Result<String, PlanError> {
    match &parser.parser.peek_token_ref().token {
        Token::Word(_) => parser.identifier(),
        _ => text(parser),
    }
}

fn boolean(parser: &mut StatementParser<'_>, options: &mut Collected) -> Result<bool, PlanError> {
    if matches!(parser.parser.peek_token_ref().token, Token::Comma | Token::RParen) {
        return Ok(true);
    }
    if let Token::Number(number, _) = &parser.parser.peek_token_ref().token {
        let on = number != "0";
        parser.parser.advance_token();
        return Ok(on);
    }
    match word_or_text(parser)?.to_lowercase().as_str() {
        "true" | "on" | "t" | "1" => Ok(true),
        "false" | "off" | "f" | "0" => Ok(false),
        "match" => {
            options.unsupported = Some("COPY option HEADER MATCH".to_string());
            Ok(true)
        }
        _ => Err(PlanError::new(SqlState::SYNTAX_ERROR, "header requires a Boolean value or \"match\"")),
    }
}

fn columns(parser: &mut StatementParser<'_>) -> Result<Vec<String>, PlanError> {
    if parser.parser.consume_token(&Token::Mul) {
        return Ok(Vec::new());
    }
    parser.run(|parser| parser.expect_token(&Token::LParen).map(|_| ()))?;
    let columns = parser.run(|parser| parser.parse_comma_separated(Parser::parse_identifier))?;
    parser.run(|parser| parser.expect_token(&Token::RParen).map(|_| ()))?;
    Ok(columns.iter().map(fold).collect())
}

fn encoding(parser: &mut StatementParser<'_>, options: &mut Collected) -> Result<(), PlanError> {
    let name = text(parser)?;
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    if !matches!(plain.to_lowercase().as_str(), "utf8" | "unicode") {
        options.unsupported = Some(format!("COPY in encoding {name}"));
    }
    Ok(())
}

fn with_defaults(collected: Collected) -> Result<CopyOptions, PlanError> {
    let format = match collected.format.as_deref() {
        None | Some("text") => CopyFormat::Text,
        Some("csv") => CopyFormat::Csv,
        Some("binary") => return Err(PlanError::unsupported("COPY in binary format")),
        Some(other) => {
            return Err(PlanError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("COPY format \"{other}\" not recognized"),
            )
            .with_hint("Use text or csv."));
        }
    };
    let csv = format == CopyFormat::Csv;
    for (name, given) in [
        ("QUOTE", collected.quote.is_some()),
        ("ESCAPE", collected.escape.is_some()),
        ("FORCE_QUOTE", collected.force_quote.is_some()),
    ] {
        if given && !csv {
            return Err(PlanError::new(SqlState::FEATURE_NOT_SUPPORTED, format!("COPY {name} requires CSV mode")));
        }
    }
    let delimiter = one_byte("delimiter", collected.delimiter.as_deref().unwrap_or(if csv { "," } else { "\t" }))?;
    let quote = one_byte("quote", collected.quote.as_deref().unwrap_or("\""))?;
    let escape = collected.escape.as_deref().map_or(Ok(quote), |escape| one_byte("escape", escape))?;
    let null = collected.null.unwrap_or_else(|| if csv { String::new() } else { "\\N".to_string() });
    if matches!(delimiter, b'\n' | b'\r') || null.contains(['\n', '\r']) {
        return Err(PlanError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "COPY delimiter and null representation cannot use newline or carriage return",
        ));
    }
    if null.as_bytes().contains(&delimiter) {
        return Err(PlanError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "COPY delimiter must not appear in the NULL specification",
        ));
    }
    if csv && delimiter == quote {
        return Err(PlanError::new(SqlState::INVALID_PARAMETER_VALUE, "COPY delimiter and quote must be different"));
    }
    if !csv && b"\\.abcdefghijklmnopqrstuvwxyz0123456789".contains(&delimiter) {
        return Err(PlanError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("COPY delimiter cannot be \"{}\"", delimiter as char),
        ));
    }
    Ok(CopyOptions { format, header: collected.header, delimiter, null, quote, escape, force_quote: None })
}

fn one_byte(what: &str, text: &str) -> Result<u8, PlanError> {
    match text.as_bytes() {
        [byte] => Ok(*byte),
        _ => Err(PlanError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("COPY {what} must be a single one-byte character"),
        )),
    }
}
