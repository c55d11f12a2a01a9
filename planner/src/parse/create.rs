//! CREATE SCHEMA, TABLE, VIEW and MATERIALIZED VIEW.

use datafusion::sql::sqlparser::ast::{self, ColumnOption, TableConstraint};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::Parser;
use datafusion::sql::sqlparser::tokenizer::Token;
use plan::{PlanError, SqlState};

use super::statements::StatementParser;
use super::{Syntax, fold};

/// CREATE TABLE.
#[derive(Debug, Clone)]
pub(crate) struct CreateTableSyntax {
    pub name: ast::ObjectName,
    pub if_not_exists: bool,
    pub columns: Vec<ColumnSyntax>,
    pub primary_key: Vec<String>,
    pub append_only: bool,
    pub watermark: Option<WatermarkSyntax>,
    pub query: Option<Box<ast::Query>>,
}

/// A column of CREATE TABLE; without a type in CREATE TABLE t (a, b) AS query.
#[derive(Debug, Clone)]
pub(crate) struct ColumnSyntax {
    pub name: String,
    pub data_type: Option<ast::DataType>,
    pub not_null: bool,
    /// The expression and its text.
    pub default: Option<(ast::Expr, String)>,
}

/// WATERMARK FOR column AS expression.
#[derive(Debug, Clone)]
pub(crate) struct WatermarkSyntax {
    pub column: ast::Ident,
    pub expression: ast::Expr,
    pub text: String,
}

/// CREATE VIEW and CREATE MATERIALIZED VIEW.
#[derive(Debug, Clone)]
pub(crate) struct CreateViewSyntax {
    pub name: ast::ObjectName,
    pub materialized: bool,
    pub or_replace: bool,
    pub if_not_exists: bool,
    pub columns: Vec<String>,
    pub query: Box<ast::Query>,
    pub query_text: String,
}

/// Parses a CREATE statement; `None` if it is of a kind that is not built.
pub(super) fn parse(parser: &mut StatementParser<'_>) -> Result<Option<Syntax>, PlanError> {
    if parser.take_words(&["create", "schema"]) {
        return create_schema(parser).map(Some);
    }
    if parser.take_words(&["create", "table"]) {
        return create_table(parser).map(Some);
    }
    let unlogged = parser.take_words(&["create", "unlogged", "table"]);
    if unlogged {
        return create_table(parser).map(Some);
    }
    let or_replace = parser.peek_word(1, "or") && parser.peek_word(2, "replace");
    let at = if or_replace { 3 } else { 1 };
    let materialized = parser.peek_word(at, "materialized") && parser.peek_word(at + 1, "view");
    if !materialized && !parser.peek_word(at, "view") {
        return Ok(None);
    }
    let words = at + if materialized { 2 } else { 1 };
    (0..words).for_each(|_| parser.parser.advance_token());
    create_view(parser, materialized, or_replace).map(Some)
}

fn create_schema(parser: &mut StatementParser<'_>) -> Result<Syntax, PlanError> {
    let if_not_exists = parser.take_words(&["if", "not", "exists"]);
    let name = if parser.take_words(&["authorization"]) {
        parser.identifier()?
    } else {
        let name = parser.identifier()?;
        if parser.take_words(&["authorization"]) {
            parser.identifier()?;
        }
        name
    };
    Ok(Syntax::CreateSchema { name, if_not_exists })
}

fn create_view(parser: &mut StatementParser<'_>, materialized: bool, or_replace: bool) -> Result<Syntax, PlanError> {
    let if_not_exists = parser.take_words(&["if", "not", "exists"]);
    let name = parser.object_name()?;
    let mut columns = Vec::new();
    if parser.parser.consume_token(&Token::LParen) {
        columns =
            parser.run(|parser| parser.parse_comma_separated(Parser::parse_identifier))?.iter().map(fold).collect();
        parser.run(|parser| parser.expect_token(&Token::RParen).map(|_| ()))?;
    }
    if parser.peek_word(0, "with") {
        return Ok(Syntax::Unsupported("WITH (...) of a view".to_string()));
    }
    parser.expect_words(&["as"])?;
    let before = parser.rest_of_text();
    if parser.peek_word(0, "with") && parser.peek_word(1, "mutually") {
        return Ok(Syntax::Unsupported("WITH MUTUALLY RECURSIVE".to_string()));
    }
    let query = parser.run(Parser::parse_query)?;
    let after = parser.rest_of_text();
    let query_text = before[..before.len() - after.len()].trim_end().to_string();
    if parser.take_words(&["with", "no", "data"]) {
        return Ok(Syntax::Unsupported("CREATE MATERIALIZED VIEW ... WITH NO DATA".to_string()));
    }
    parser.take_words(&["with", "data"]);
    if parser.peek_word(0, "emit") && !parser.take_words(&["emit", "immediately"]) {
        return Ok(Syntax::Unsupported("EMIT".to_string()));
    }
    Ok(Syntax::CreateView(CreateViewSyntax {
        name,
        materialized,
        or_replace,
        if_not_exists,
        columns,
        query,
        query_text,
    }))
}

fn create_table(parser: &mut StatementParser<'_>) -> Result<Syntax, PlanError> {
    let if_not_exists = parser.take_words(&["if", "not", "exists"]);
    let mut table = CreateTableSyntax {
        name: parser.object_name()?,
        if_not_exists,
        columns: Vec::new(),
        primary_key: Vec::new(),
        append_only: false,
        watermark: None,
        query: None,
    };
    if parser.parser.consume_token(&Token::LParen) && !parser.parser.consume_token(&Token::RParen) {
        loop {
            if let Some(what) = table_element(parser, &mut table)? {
                return Ok(Syntax::Unsupported(what));
            }
            if parser.parser.consume_token(&Token::Comma) {
                continue;
            }
            if parser.parser.consume_token(&Token::RParen) {
                break;
            }
            return match column_extension(parser, 0) {
                Some(what) => Ok(Syntax::Unsupported(what.to_string())),
                None => Err(parser.unexpected()),
            };
        }
    }
    table.append_only = parser.take_words(&["append", "only"]);
    for (words, what) in [
        (&["on", "conflict"][..], "ON CONFLICT of a table"),
        (&["with"][..], "WITH (...) of a table"),
        (&["inherits"][..], "INHERITS"),
        (&["partition", "by"][..], "PARTITION BY of a table"),
        (&["using"][..], "USING of a table"),
        (&["tablespace"][..], "TABLESPACE"),
    ] {
        if parser.take_words(words) {
            return Ok(Syntax::Unsupported(what.to_string()));
        }
    }
    if parser.take_words(&["as"]) {
        table.query = Some(parser.run(Parser::parse_query)?);
        if parser.take_words(&["with", "no", "data"]) {
            return Ok(Syntax::Unsupported("CREATE TABLE AS ... WITH NO DATA".to_string()));
        }
        parser.take_words(&["with", "data"]);
    }
    Ok(Syntax::CreateTable(table))
}

/// A column, a constraint or a watermark. What is known but not built is returned.
fn table_element(parser: &mut StatementParser<'_>, table: &mut CreateTableSyntax) -> Result<Option<String>, PlanError> {
    if parser.take_words(&["watermark", "for"]) {
        let column = parser.run(Parser::parse_identifier)?;
        parser.expect_words(&["as"])?;
        let (expression, text) = expression_with_text(parser)?;
        if parser.peek_word(0, "with") {
            return Ok(Some("WATERMARK ... WITH TTL".to_string()));
        }
        if table.watermark.is_some() {
            return Err(PlanError::new(
                SqlState::INVALID_TABLE_DEFINITION,
                "multiple watermarks for a table are not allowed",
            ));
        }
        table.watermark = Some(WatermarkSyntax { column, expression, text });
        return Ok(None);
    }
    let constraint = match &parser.parser.peek_token_ref().token {
        Token::Word(word) if word.quote_style.is_none() => matches!(
            word.keyword,
            Keyword::CONSTRAINT | Keyword::PRIMARY | Keyword::UNIQUE | Keyword::FOREIGN | Keyword::CHECK
        ),
        _ => false,
    };
    if constraint {
        return match parser.run(Parser::parse_optional_table_constraint)? {
            Some(TableConstraint::PrimaryKey(key)) => {
                let columns = key.columns.iter().map(|column| match &column.column.expr {
                    ast::Expr::Identifier(ident) => Ok(fold(ident)),
                    other => Err(PlanError::new(
                        SqlState::SYNTAX_ERROR,
                        format!("a primary key consists of columns, not of expressions such as {other}"),
                    )),
                });
                let columns = columns.collect::<Result<Vec<_>, _>>()?;
                set_primary_key(table, columns)?;
                Ok(None)
            }
            Some(TableConstraint::Unique(_)) => Ok(Some("a UNIQUE constraint".to_string())),
            Some(TableConstraint::ForeignKey(_)) => Ok(Some("a FOREIGN KEY constraint".to_string())),
            Some(TableConstraint::Check(_)) => Ok(Some("a CHECK constraint".to_string())),
            _ => Ok(Some("this constraint".to_string())),
        };
    }
    if parser.peek_word(0, "like") {
        return Ok(Some("LIKE in CREATE TABLE".to_string()));
    }
    column(parser, table)
}

fn column(parser: &mut StatementParser<'_>, table: &mut CreateTableSyntax) -> Result<Option<String>, PlanError> {
    // CREATE TABLE t (a, b) AS query gives names only.
    if matches!(parser.parser.peek_nth_token_ref(1).token, Token::Comma | Token::RParen) {
        let name = parser.identifier()?;
        table.columns.push(ColumnSyntax { name, data_type: None, not_null: false, default: None });
        return Ok(None);
    }
    if let Some(what) = column_extension(parser, 1) {
        return Ok(Some(what.to_string()));
    }
    let definition = parser.run(Parser::parse_column_def)?;
    let name = fold(&definition.name);
    let mut column = ColumnSyntax { name, data_type: Some(definition.data_type), not_null: false, default: None };
    for option in definition.options {
        match option.option {
            ColumnOption::Null => column.not_null = false,
            ColumnOption::NotNull => column.not_null = true,
            ColumnOption::Default(expression) => {
                let text = expression.to_string();
                column.default = Some((expression, text));
            }
            ColumnOption::PrimaryKey(_) => set_primary_key(table, vec![column.name.clone()])?,
            ColumnOption::Collation(_) => {}
            ColumnOption::Unique(_) => return Ok(Some("a UNIQUE constraint".to_string())),
            ColumnOption::ForeignKey(_) => return Ok(Some("a FOREIGN KEY constraint".to_string())),
            ColumnOption::Check(_) => return Ok(Some("a CHECK constraint".to_string())),
            ColumnOption::Generated { .. } => return Ok(Some("a generated column".to_string())),
            other => return Ok(Some(format!("column option {other}"))),
        }
    }
    table.columns.push(column);
    Ok(None)
}

/// Column options of other streaming dialects that are known and not built.
fn column_extension(parser: &StatementParser<'_>, nth: usize) -> Option<&'static str> {
    [
        ("as", "a computed column"),
        ("metadata", "a METADATA column"),
        ("lateness", "LATENESS"),
        ("generated", "a generated column"),
        ("references", "a FOREIGN KEY constraint"),
    ]
    .into_iter()
    .find_map(|(word, what)| parser.peek_word(nth, word).then_some(what))
}

fn set_primary_key(table: &mut CreateTableSyntax, columns: Vec<String>) -> Result<(), PlanError> {
    if !table.primary_key.is_empty() {
        let (_, name) = super::schema_and_name(&table.name)?;
        return Err(PlanError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            format!("multiple primary keys for table \"{name}\" are not allowed"),
        ));
    }
    table.primary_key = columns;
    Ok(())
}

/// An expression and its text.
fn expression_with_text(parser: &mut StatementParser<'_>) -> Result<(ast::Expr, String), PlanError> {
    let before = parser.rest_of_text();
    let expression = parser.run(Parser::parse_expr)?;
    let after = parser.rest_of_text();
    Ok((expression, before[..before.len() - after.len()].trim_end().to_string()))
}
