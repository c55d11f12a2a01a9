//! The parser of one statement: looks at its first words and hands over.

use datafusion::sql::sqlparser::ast::{self, Statement as Ast};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan};
use plan::{PlanError, SqlState};

use super::text::{self, DIALECT, Source};
use super::{ExplainOptions, Parsed, Syntax, copy, create, fold, schema_and_name, session};
use crate::statement::DropKind;

/// Nesting of expressions and queries that is still accepted.
const RECURSION_LIMIT: usize = 120;

/// sqlparser's parser with the statement's source, for errors.
pub(super) struct StatementParser<'a> {
    pub parser: Parser<'static>,
    pub source: &'a Source,
}

impl<'a> StatementParser<'a> {
    fn new(source: &'a Source, tokens: Vec<TokenWithSpan>) -> Self {
        let parser = Parser::new(&DIALECT).with_recursion_limit(RECURSION_LIMIT).with_tokens_with_locations(tokens);
        StatementParser { parser, source }
    }

    /// Runs one of sqlparser's parsers.
    pub fn run<T>(
        &mut self,
        parse: impl FnOnce(&mut Parser<'static>) -> Result<T, ParserError>,
    ) -> Result<T, PlanError> {
        parse(&mut self.parser).map_err(|error| self.source.syntax_error(&error, self.parser.peek_token_ref()))
    }

    /// Whether the next token is this word (unquoted).
    pub fn peek_word(&self, nth: usize, word: &str) -> bool {
        is_word(&self.parser.peek_nth_token_ref(nth).token, word)
    }

    /// Takes these words if they come next.
    pub fn take_words(&mut self, words: &[&str]) -> bool {
        let all = words.iter().enumerate().all(|(nth, word)| self.peek_word(nth, word));
        if all {
            words.iter().for_each(|_| self.parser.advance_token());
        }
        all
    }

    /// Takes these words or fails.
    pub fn expect_words(&mut self, words: &[&str]) -> Result<(), PlanError> {
        for word in words {
            if !self.take_words(&[word]) {
                return Err(self.unexpected());
            }
        }
        Ok(())
    }

    /// A name of one part.
    pub fn identifier(&mut self) -> Result<String, PlanError> {
        self.run(Parser::parse_identifier).map(|ident| fold(&ident))
    }

    /// A name of several parts.
    pub fn object_name(&mut self) -> Result<ast::ObjectName, PlanError> {
        self.run(|parser| parser.parse_object_name(false))
    }

    /// The syntax error at the next token.
    pub fn unexpected(&self) -> PlanError {
        self.source.unexpected(self.parser.peek_token_ref())
    }

    /// Whether all tokens are taken.
    pub fn at_end(&self) -> bool {
        self.parser.peek_token_ref().token == Token::EOF
    }

    /// Fails unless all tokens are taken.
    pub fn expect_end(&self) -> Result<(), PlanError> {
        if self.at_end() { Ok(()) } else { Err(self.leftover()) }
    }

    /// What stands where a statement should have ended: an extension that is known, or a syntax error.
    fn leftover(&self) -> PlanError {
        if self.peek_word(0, "emit") { PlanError::unsupported("EMIT") } else { self.unexpected() }
    }

    /// The rest of the statement's text, from the next token.
    pub fn rest_of_text(&self) -> &'a str {
        let token = self.parser.peek_token_ref();
        let byte = if token.token == Token::EOF { None } else { self.source.byte_of(token.span.start) };
        byte.map_or("", |byte| &self.source.text[byte..])
    }

    /// The rest of the statement as a statement of its own.
    pub fn rest_as_statement(&mut self) -> Result<Parsed, PlanError> {
        let mut tokens = Vec::new();
        while !self.at_end() {
            tokens.push(self.parser.next_token());
        }
        let Some(first) = tokens.first() else { return Err(self.unexpected()) };
        let start = first.span.start;
        let byte = self.source.byte_of(start).unwrap_or(0);
        let source = Source {
            text: self.source.text[byte..].to_string(),
            offset: self.source.offset + self.source.text[..byte].chars().count(),
            start,
        };
        let syntax = parse_statement(&source, tokens)?;
        Ok(Parsed { source, syntax: std::sync::Arc::new(syntax) })
    }
}

/// Whether a token is this unquoted word.
pub(super) fn is_word(token: &Token, word: &str) -> bool {
    matches!(token, Token::Word(found) if found.quote_style.is_none() && found.value.eq_ignore_ascii_case(word))
}

/// Parses the tokens of one statement.
pub(super) fn parse_statement(source: &Source, tokens: Vec<TokenWithSpan>) -> Result<Syntax, PlanError> {
    let tokens = super::spelling::plain(crate::windows::tokens::plain_arguments(tokens)?)?;
    let mut parser = StatementParser::new(source, tokens);
    if let Some(what) = emission(&parser) {
        return Ok(Syntax::Unsupported(what.to_string()));
    }
    if parser.at_end() {
        return Ok(Syntax::Empty);
    }
    if let Some(syntax) = by_first_word(&mut parser)? {
        // Statements that are known but not built are not read to their end.
        if !matches!(syntax, Syntax::Unsupported(_)) {
            parser.expect_end()?;
        }
        return Ok(syntax);
    }
    match not_built(&parser) {
        Some(what) => Ok(Syntax::Unsupported(what)),
        None => Err(parser.unexpected()),
    }
}

/// EMIT of the streaming dialects, which would otherwise be taken for a table's alias.
fn emission(parser: &StatementParser<'_>) -> Option<&'static str> {
    let token = |nth: usize| &parser.parser.peek_nth_token_ref(nth).token;
    let queries = ["select", "create", "with", "explain", "values"];
    if !queries.iter().any(|word| parser.peek_word(0, word)) {
        return None;
    }
    let mut nth = 1;
    loop {
        match token(nth) {
            Token::EOF => return None,
            word if is_word(word, "emit") => {
                let next = token(nth + 1);
                let found = [
                    ("on", "EMIT ON WINDOW CLOSE"),
                    ("changes", "EMIT CHANGES"),
                    ("final", "EMIT FINAL"),
                    ("after", "EMIT AFTER"),
                    ("periodic", "EMIT PERIODIC"),
                ];
                if let Some((_, what)) = found.iter().find(|(word, _)| is_word(next, word)) {
                    return Some(what);
                }
            }
            _ => {}
        }
        nth += 1;
    }
}

/// Parses a text that is to be a query: the stored text of a view.
pub(crate) fn parse_query_text(text: &str) -> Result<(Source, Box<ast::Query>), PlanError> {
    let statements = text::split(text)?;
    let [(source, tokens)]: [_; 1] = statements
        .try_into()
        .map_err(|_| PlanError::new(SqlState::SYNTAX_ERROR, "a view's definition must be one query"))?;
    match parse_statement(&source, tokens)? {
        Syntax::Query(query) => Ok((source, query)),
        _ => Err(PlanError::new(SqlState::SYNTAX_ERROR, "a view's definition must be a query")),
    }
}

fn by_first_word(parser: &mut StatementParser<'_>) -> Result<Option<Syntax>, PlanError> {
    let first = match &parser.parser.peek_token_ref().token {
        Token::Word(word) if word.quote_style.is_none() => word.value.to_lowercase(),
        Token::LParen => "(".to_string(),
        _ => return Ok(None),
    };
    let syntax = match first.as_str() {
        "select" | "with" | "values" | "(" | "table" => query(parser)?,
        "insert" | "update" | "delete" => change(parser)?,
        "truncate" => truncate(parser)?,
        "copy" => Syntax::Copy(copy::parse(parser)?),
        "create" => return create::parse(parser),
        "drop" => return drop(parser),
        "explain" => explain(parser)?,
        "verify" => verify(parser)?,
        "begin" | "start" | "commit" | "end" | "rollback" | "abort" => return session::transaction(parser),
        "set" | "reset" | "show" | "prepare" | "execute" | "deallocate" | "declare" | "fetch" | "move" | "close"
        | "discard" | "flush" => return session::parse(parser),
        _ => return session::upkeep(parser),
    };
    Ok(Some(syntax))
}

fn query(parser: &mut StatementParser<'_>) -> Result<Syntax, PlanError> {
    if parser.peek_word(0, "with") && parser.peek_word(1, "mutually") {
        return Ok(Syntax::Unsupported("WITH MUTUALLY RECURSIVE".to_string()));
    }
    let query = parser.run(Parser::parse_query)?;
    match *query.body {
        // WITH ... INSERT and the like.
        ast::SetExpr::Insert(_) | ast::SetExpr::Update(_) | ast::SetExpr::Delete(_) | ast::SetExpr::Merge(_) => {
            Ok(Syntax::Unsupported("WITH in front of INSERT, UPDATE or DELETE".to_string()))
        }
        _ => Ok(Syntax::Query(query)),
    }
}

fn change(parser: &mut StatementParser<'_>) -> Result<Syntax, PlanError> {
    match parser.run(Parser::parse_statement)? {
        Ast::Insert(insert) => Ok(Syntax::Insert(Box::new(insert))),
        Ast::Update(update) => Ok(Syntax::Update(Box::new(update))),
        Ast::Delete(delete) => Ok(Syntax::Delete(Box::new(delete))),
        other => Ok(Syntax::Unsupported(other.to_string())),
    }
}

fn truncate(parser: &mut StatementParser<'_>) -> Result<Syntax, PlanError> {
    parser.expect_words(&["truncate"])?;
    parser.take_words(&["table"]);
    parser.take_words(&["only"]);
    let names = parser.run(|parser| parser.parse_comma_separated(|parser| parser.parse_object_name(false)))?;
    let _ = parser.take_words(&["restart", "identity"]) || parser.take_words(&["continue", "identity"]);
    let _ = parser.take_words(&["cascade"]) || parser.take_words(&["restrict"]);
    Ok(Syntax::Truncate(names))
}

fn drop(parser: &mut StatementParser<'_>) -> Result<Option<Syntax>, PlanError> {
    let kind = if parser.take_words(&["drop", "schema"]) {
        DropKind::Schema
    } else if parser.take_words(&["drop", "table"]) {
        DropKind::Table
    } else if parser.take_words(&["drop", "view"]) {
        DropKind::View
    } else if parser.take_words(&["drop", "materialized", "view"]) {
        DropKind::MaterializedView
    } else {
        return Ok(None);
    };
    let if_exists = parser.take_words(&["if", "exists"]);
    let names = parser.run(|parser| parser.parse_comma_separated(|parser| parser.parse_object_name(false)))?;
    let names = names.iter().map(schema_and_name).collect::<Result<Vec<_>, _>>()?;
    let cascade = parser.take_words(&["cascade"]);
    if !cascade {
        parser.take_words(&["restrict"]);
    }
    Ok(Some(Syntax::Drop { kind, names, if_exists, cascade }))
}

fn explain(parser: &mut StatementParser<'_>) -> Result<Syntax, PlanError> {
    parser.expect_words(&["explain"])?;
    let mut options = ExplainOptions::default();
    if parser.parser.peek_token_ref().token == Token::LParen && !starts_query(&parser.parser) {
        for option in parser.run(Parser::parse_utility_options)? {
            let name = fold(&option.name);
            let value = option.arg.map(|value| value.to_string().to_lowercase());
            let on = !matches!(value.as_deref(), Some("off" | "false" | "0"));
            match name.as_str() {
                "analyze" => options.analyze = on,
                "verbose" => options.verbose = on,
                "state" => options.state = on,
                "costs" | "settings" | "buffers" | "wal" | "timing" | "summary" | "memory" | "generic_plan" => {}
                "format" if value.as_deref() == Some("text") => {}
                "format" => {
                    return Ok(Syntax::Unsupported(format!("EXPLAIN (FORMAT {})", value.unwrap_or_default())));
                }
                _ => {
                    return Err(PlanError::new(
                        SqlState::SYNTAX_ERROR,
                        format!("unrecognized EXPLAIN option \"{name}\""),
                    ));
                }
            }
        }
    } else {
        options.analyze = parser.take_words(&["analyze"]);
        options.verbose = parser.take_words(&["verbose"]);
    }
    if parser.take_words(&["materialized", "view"]) {
        return Ok(Syntax::ExplainView(parser.run(|parser| parser.parse_object_name(false))?));
    }
    let statement = Box::new(parser.rest_as_statement()?);
    Ok(Syntax::Explain { options, statement })
}

fn verify(parser: &mut StatementParser<'_>) -> Result<Syntax, PlanError> {
    parser.expect_words(&["verify", "materialized", "view"])?;
    Ok(Syntax::Verify(parser.run(|parser| parser.parse_object_name(false))?))
}

/// Whether the parenthesis that comes next opens a query and not a list of options.
fn starts_query(parser: &Parser<'_>) -> bool {
    (0..).map(|nth| &parser.peek_nth_token_ref(nth).token).find(|token| **token != Token::LParen).is_some_and(|token| {
        match token {
            Token::Word(word) => {
                matches!(word.keyword, Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::TABLE)
            }
            _ => false,
        }
    })
}

/// Statements that PostgreSQL or the streaming dialects know and that are not built: by their first words.
const NOT_BUILT: &[&str] = &[
    "ALTER SYSTEM",
    "ALTER MATERIALIZED VIEW",
    "ALTER TABLE",
    "ALTER VIEW",
    "ALTER SCHEMA",
    "ALTER DATABASE",
    "ALTER",
    "ACKNOWLEDGE",
    "CALL",
    "CANCEL JOBS",
    "CREATE MATERIALIZED TABLE",
    "CREATE TEMPORARY",
    "CREATE TEMP",
    "CREATE DEFAULT INDEX",
    "CREATE UNIQUE INDEX",
    "CREATE REPLACEMENT MATERIALIZED VIEW",
    "CREATE DURABLE SUBSCRIPTION",
    "CREATE SOURCE",
    "CREATE SINK",
    "CREATE STREAM",
    "CREATE SUBSCRIPTION",
    "CREATE INDEX",
    "CREATE FUNCTION",
    "CREATE SECRET",
    "CREATE CONNECTION",
    "CREATE USER",
    "CREATE ROLE",
    "CREATE DATABASE",
    "CREATE EXTENSION",
    "CREATE SEQUENCE",
    "CREATE TYPE",
    "CREATE DOMAIN",
    "CREATE TRIGGER",
    "CREATE",
    "DESCRIBE",
    "DO",
    "DROP",
    "IMPORT",
    "KILL",
    "LISTEN",
    "LOAD",
    "LOCK",
    "MERGE",
    "MOVE",
    "NOTIFY",
    "RECOVER",
    "RELEASE",
    "REPLACE SINK",
    "SAVEPOINT",
    "SECURITY LABEL",
    "SUBSCRIBE",
    "TAIL",
    "UNLISTEN",
    "WAIT",
];

fn not_built(parser: &StatementParser<'_>) -> Option<String> {
    let known =
        NOT_BUILT.iter().find(|words| words.split(' ').enumerate().all(|(nth, word)| parser.peek_word(nth, word)))?;
    // DROP and CREATE of something else: name what was written, if it is a word.
    match (&parser.parser.peek_nth_token_ref(1).token, *known) {
        (Token::Word(word), "DROP" | "CREATE" | "ALTER") if word.quote_style.is_none() => {
            Some(format!("{known} {}", word.value.to_uppercase()))
        }
        (_, "DROP" | "CREATE" | "ALTER") => None,
        _ => Some((*known).to_string()),
    }
}
