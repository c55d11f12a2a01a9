//! Transactions, settings, prepared statements, cursors, and SHOW.

use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use plan::{PlanError, SqlState};

use super::statements::StatementParser;
use super::{ShowRelations, Syntax, schema_and_name};

/// BEGIN, START TRANSACTION, COMMIT, END, ROLLBACK, ABORT.
pub(super) fn transaction(parser: &mut StatementParser<'_>) -> Result<Option<Syntax>, PlanError> {
    if parser.take_words(&["begin"]) || parser.take_words(&["start", "transaction"]) {
        let _ = parser.take_words(&["work"]) || parser.take_words(&["transaction"]);
        let read_only = transaction_modes(parser)?;
        return Ok(Some(Syntax::Begin { read_only }));
    }
    let commit = parser.take_words(&["commit"]) || parser.take_words(&["end"]);
    if !commit && !parser.take_words(&["rollback"]) && !parser.take_words(&["abort"]) {
        return Ok(None);
    }
    if parser.peek_word(0, "prepared") {
        return Ok(Some(Syntax::Unsupported("two-phase commit".to_string())));
    }
    let _ = parser.take_words(&["work"]) || parser.take_words(&["transaction"]);
    if parser.peek_word(0, "to") {
        return Ok(Some(Syntax::Unsupported("SAVEPOINT".to_string())));
    }
    if parser.take_words(&["and", "chain"]) {
        return Ok(Some(Syntax::Unsupported("AND CHAIN".to_string())));
    }
    parser.take_words(&["and", "no", "chain"]);
    Ok(Some(if commit { Syntax::Commit } else { Syntax::Rollback }))
}

/// The modes of a transaction: whether it is read only. Every isolation level is accepted, because what is given
/// is stricter than all of them.
fn transaction_modes(parser: &mut StatementParser<'_>) -> Result<bool, PlanError> {
    let mut read_only = false;
    loop {
        if parser.take_words(&["isolation", "level"]) {
            let level = parser.take_words(&["serializable"])
                || parser.take_words(&["repeatable", "read"])
                || parser.take_words(&["read", "committed"])
                || parser.take_words(&["read", "uncommitted"]);
            if !level {
                return Err(parser.unexpected());
            }
        } else if parser.take_words(&["read", "only"]) {
            read_only = true;
        } else if parser.take_words(&["read", "write"]) {
            read_only = false;
        } else if !parser.take_words(&["not", "deferrable"]) && !parser.take_words(&["deferrable"]) {
            return Ok(read_only);
        }
        let _ = parser.parser.consume_token(&Token::Comma);
    }
}

/// Statements about the session.
pub(super) fn parse(parser: &mut StatementParser<'_>) -> Result<Option<Syntax>, PlanError> {
    let syntax = if parser.take_words(&["set"]) {
        set(parser)?
    } else if parser.take_words(&["reset"]) {
        Syntax::Reset { name: setting_name(parser)? }
    } else if parser.take_words(&["show"]) {
        show(parser)?
    } else if parser.take_words(&["prepare"]) {
        prepare(parser)?
    } else if parser.peek_word(0, "execute") {
        if parser.peek_word(1, "statement") && parser.peek_word(2, "set") {
            return Ok(Some(Syntax::Unsupported("EXECUTE STATEMENT SET".to_string())));
        }
        parser.take_words(&["execute"]);
        execute(parser)?
    } else if parser.take_words(&["deallocate"]) {
        parser.take_words(&["prepare"]);
        let name = if parser.take_words(&["all"]) { None } else { Some(parser.identifier()?) };
        Syntax::Deallocate { name }
    } else if parser.take_words(&["declare"]) {
        declare(parser)?
    } else if parser.take_words(&["fetch"]) {
        fetch(parser)?
    } else if parser.take_words(&["close"]) {
        let name = if parser.take_words(&["all"]) { None } else { Some(parser.identifier()?) };
        Syntax::CloseCursor { name }
    } else if parser.take_words(&["discard"]) {
        discard(parser)?
    } else if parser.take_words(&["flush"]) {
        Syntax::NoOperation { tag: "FLUSH".to_string(), notice: None }
    } else {
        return Ok(None);
    };
    Ok(Some(syntax))
}

fn set(parser: &mut StatementParser<'_>) -> Result<Syntax, PlanError> {
    if parser.take_words(&["session", "characteristics", "as", "transaction"]) {
        let read_only = transaction_modes(parser)?;
        let value = if read_only { "on" } else { "off" };
        return Ok(Syntax::Set {
            name: "default_transaction_read_only".to_string(),
            value: Some(value.to_string()),
            local: false,
        });
    }
    if parser.take_words(&["transaction"]) {
        if parser.peek_word(0, "snapshot") {
            return Ok(Syntax::Unsupported("SET TRANSACTION SNAPSHOT".to_string()));
        }
        let read_only = transaction_modes(parser)?;
        let value = Some(if read_only { "on" } else { "off" }.to_string());
        return Ok(Syntax::Set { name: "transaction_read_only".to_string(), value, local: true });
    }
    let local = parser.take_words(&["local"]);
    if !local {
        parser.take_words(&["session"]);
    }
    if parser.take_words(&["time", "zone"]) {
        let value = if parser.take_words(&["local"]) { None } else { setting_value(parser)? };
        return Ok(Syntax::Set { name: "timezone".to_string(), value, local });
    }
    if parser.take_words(&["names"]) {
        return Ok(Syntax::Set { name: "client_encoding".to_string(), value: setting_value(parser)?, local });
    }
    for (words, what) in [
        (&["constraints"][..], "SET CONSTRAINTS"),
        (&["session", "authorization"][..], "SET SESSION AUTHORIZATION"),
        (&["authorization"][..], "SET SESSION AUTHORIZATION"),
        (&["role"][..], "SET ROLE"),
    ] {
        if parser.take_words(words) {
            return Ok(Syntax::Unsupported(what.to_string()));
        }
    }
    if parser.take_words(&["schema"]) {
        return Ok(Syntax::Set { name: "search_path".to_string(), value: setting_value(parser)?, local });
    }
    let name = setting_name(parser)?;
    if !parser.parser.consume_token(&Token::Eq) && !parser.take_words(&["to"]) {
        return Err(parser.unexpected());
    }
    Ok(Syntax::Set { name, value: setting_value(parser)?, local })
}

/// The name of a setting: words with dots, the longer SQL spellings by their short names, "all" for all.
fn setting_name(parser: &mut StatementParser<'_>) -> Result<String, PlanError> {
    for (words, name) in [
        (&["transaction", "isolation", "level"][..], "transaction_isolation"),
        (&["time", "zone"][..], "timezone"),
        (&["session", "authorization"][..], "session_authorization"),
    ] {
        if parser.take_words(words) {
            return Ok(name.to_string());
        }
    }
    let mut parts = vec![parser.identifier()?.to_lowercase()];
    while parser.parser.consume_token(&Token::Period) {
        parts.push(parser.identifier()?.to_lowercase());
    }
    Ok(parts.join("."))
}

/// Values of a setting as one text; `None` is DEFAULT.
fn setting_value(parser: &mut StatementParser<'_>) -> Result<Option<String>, PlanError> {
    if parser.take_words(&["default"]) {
        return Ok(None);
    }
    let mut values = Vec::new();
    loop {
        values.push(one_value(parser)?);
        if !parser.parser.consume_token(&Token::Comma) {
            return Ok(Some(values.join(", ")));
        }
    }
}

fn one_value(parser: &mut StatementParser<'_>) -> Result<String, PlanError> {
    if parser.take_words(&["interval"]) {
        let value = parser.run(Parser::parse_literal_string)?;
        for word in ["hour", "to", "minute"] {
            parser.take_words(&[word]);
        }
        return Ok(value);
    }
    let token = parser.parser.next_token();
    let value = match &token.token {
        Token::SingleQuotedString(text) | Token::EscapedStringLiteral(text) => text.clone(),
        Token::DollarQuotedString(text) => text.value.clone(),
        Token::Number(number, _) => number.clone(),
        Token::Minus | Token::Plus => {
            let sign = if token.token == Token::Minus { "-" } else { "" };
            match parser.parser.next_token().token {
                Token::Number(number, _) => format!("{sign}{number}"),
                _ => return Err(parser.source.unexpected(&token)),
            }
        }
        Token::Word(word) if word.quote_style.is_some() => word.value.clone(),
        Token::Word(word) => {
            let mut value = word.value.to_lowercase();
            // Isolation levels are two words.
            if let ("read" | "repeatable", Token::Word(second)) =
                (value.as_str(), &parser.parser.peek_token_ref().token)
            {
                value = format!("{value} {}", second.value.to_lowercase());
                parser.parser.advance_token();
            }
            value
        }
        _ => return Err(parser.source.unexpected(&token)),
    };
    Ok(value)
}

fn show(parser: &mut StatementParser<'_>) -> Result<Syntax, PlanError> {
    for (words, what) in [
        (&["tables"][..], ShowRelations::Tables),
        (&["views"][..], ShowRelations::Views),
        (&["materialized", "views"][..], ShowRelations::MaterializedViews),
        (&["schemas"][..], ShowRelations::Schemas),
    ] {
        if parser.take_words(words) {
            return Ok(Syntax::ShowRelations(what));
        }
    }
    if parser.take_words(&["columns", "from"]) || parser.take_words(&["columns", "in"]) {
        let (schema, relation) = schema_and_name(&parser.object_name()?)?;
        return Ok(Syntax::ShowRelations(ShowRelations::Columns { schema, relation }));
    }
    for word in [
        "sources",
        "sinks",
        "indexes",
        "functions",
        "jobs",
        "processlist",
        "subscriptions",
        "subscription",
        "create",
        "connections",
        "secrets",
        "databases",
        "parameters",
        "cluster",
        "internal",
        "fragments",
        "cursors",
    ] {
        if parser.peek_word(0, word) {
            return Ok(Syntax::Unsupported(format!("SHOW {}", word.to_uppercase())));
        }
    }
    Ok(Syntax::Show { name: setting_name(parser)? })
}

fn prepare(parser: &mut StatementParser<'_>) -> Result<Syntax, PlanError> {
    if parser.peek_word(0, "transaction") {
        return Ok(Syntax::Unsupported("two-phase commit".to_string()));
    }
    let name = parser.identifier()?;
    let mut types = Vec::new();
    if parser.parser.consume_token(&Token::LParen) {
        types = parser.run(|parser| parser.parse_comma_separated(Parser::parse_data_type))?;
        parser.run(|parser| parser.expect_token(&Token::RParen).map(|_| ()))?;
    }
    parser.expect_words(&["as"])?;
    let statement = Box::new(parser.rest_as_statement()?);
    match *statement.syntax {
        Syntax::Query(_) | Syntax::Insert(_) | Syntax::Update(_) | Syntax::Delete(_) | Syntax::Unsupported(_) => {
            Ok(Syntax::Prepare { name, types, statement })
        }
        _ => Err(PlanError::new(SqlState::SYNTAX_ERROR, "only SELECT, INSERT, UPDATE and DELETE can be prepared")
            .at(Some(statement.offset() + 1))),
    }
}

fn execute(parser: &mut StatementParser<'_>) -> Result<Syntax, PlanError> {
    let name = parser.identifier()?;
    let mut arguments: Vec<ast::Expr> = Vec::new();
    if parser.parser.consume_token(&Token::LParen) && !parser.parser.consume_token(&Token::RParen) {
        arguments = parser.run(|parser| parser.parse_comma_separated(Parser::parse_expr))?;
        parser.run(|parser| parser.expect_token(&Token::RParen).map(|_| ()))?;
    }
    Ok(Syntax::Execute { name, arguments })
}

fn declare(parser: &mut StatementParser<'_>) -> Result<Syntax, PlanError> {
    let name = parser.identifier()?;
    loop {
        if parser.peek_word(0, "subscription") {
            return Ok(Syntax::Unsupported("a subscription cursor".to_string()));
        }
        if parser.take_words(&["scroll"]) {
            return Ok(Syntax::Unsupported("a SCROLL cursor".to_string()));
        }
        let taken = parser.take_words(&["binary"])
            || parser.take_words(&["insensitive"])
            || parser.take_words(&["asensitive"])
            || parser.take_words(&["no", "scroll"]);
        if !taken {
            break;
        }
    }
    parser.expect_words(&["cursor"])?;
    if parser.take_words(&["with", "hold"]) {
        return Ok(Syntax::Unsupported("a cursor WITH HOLD".to_string()));
    }
    parser.take_words(&["without", "hold"]);
    parser.expect_words(&["for"])?;
    if parser.peek_word(0, "subscribe") {
        return Ok(Syntax::Unsupported("SUBSCRIBE".to_string()));
    }
    let query = parser.run(Parser::parse_query)?;
    Ok(Syntax::DeclareCursor { name, query })
}

fn fetch(parser: &mut StatementParser<'_>) -> Result<Syntax, PlanError> {
    let mut count = Some(1);
    if parser.take_words(&["all"]) || parser.take_words(&["forward", "all"]) {
        count = None;
    } else if matches!(parser.parser.peek_token_ref().token, Token::Number(_, _)) {
        count = Some(parser.run(Parser::parse_literal_uint)?);
    } else if parser.take_words(&["next"]) {
    } else if parser.take_words(&["forward"]) {
        if matches!(parser.parser.peek_token_ref().token, Token::Number(_, _)) {
            count = Some(parser.run(Parser::parse_literal_uint)?);
        }
    } else {
        for word in ["prior", "first", "last", "absolute", "relative", "backward"] {
            if parser.peek_word(0, word) {
                return Ok(Syntax::Unsupported(format!("FETCH {}", word.to_uppercase())));
            }
        }
    }
    let _ = parser.take_words(&["from"]) || parser.take_words(&["in"]);
    let name = parser.identifier()?;
    if parser.peek_word(0, "with") {
        return Ok(Syntax::Unsupported("FETCH ... WITH".to_string()));
    }
    Ok(Syntax::Fetch { name, count })
}

fn discard(parser: &mut StatementParser<'_>) -> Result<Syntax, PlanError> {
    if parser.take_words(&["all"]) {
        return Ok(Syntax::DiscardAll);
    }
    for word in ["plans", "sequences", "temp", "temporary"] {
        if parser.take_words(&[word]) {
            let word = if word == "temporary" { "temp" } else { word };
            return Ok(Syntax::NoOperation { tag: format!("DISCARD {}", word.to_uppercase()), notice: None });
        }
    }
    Err(parser.unexpected())
}

/// Statements that tools written for PostgreSQL send unasked, and that have nothing to do here.
const UPKEEP: [(&str, Option<&str>); 8] = [
    ("analyze", None),
    ("vacuum", None),
    ("checkpoint", None),
    ("reindex", None),
    ("cluster", None),
    ("comment", Some("comments are not kept")),
    ("grant", Some("privileges are not checked: every user may do everything")),
    ("revoke", Some("privileges are not checked: every user may do everything")),
];

/// A statement of upkeep, whatever it says; none if it is another one.
pub(super) fn upkeep(parser: &mut StatementParser<'_>) -> Result<Option<Syntax>, PlanError> {
    if parser.take_words(&["refresh", "materialized", "view"]) {
        parser.take_words(&["concurrently"]);
        let name = parser.run(|parser| parser.parse_object_name(false))?;
        let _ = parser.take_words(&["with", "data"]);
        return Ok(Some(Syntax::Refresh(name)));
    }
    let Some((word, notice)) = UPKEEP.iter().find(|(word, _)| parser.peek_word(0, word)) else { return Ok(None) };
    while !parser.at_end() {
        parser.parser.next_token();
    }
    Ok(Some(Syntax::NoOperation { tag: word.to_uppercase(), notice: *notice }))
}
