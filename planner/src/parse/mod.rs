//! Text to syntax trees: each statement keeps its exact text and its place in the whole text.
//!
//! Queries and changes of rows are parsed by sqlparser as they are. Statements that PostgreSQL or the streaming
//! dialects write differently (CREATE TABLE with a watermark, COPY, cursors, ...) are parsed here with sqlparser's
//! [`Parser`](datafusion::sql::sqlparser::parser::Parser) into [`Syntax`]. Nothing is looked up in a catalog.

mod copy;
mod create;
mod session;
pub(crate) mod spelling;
mod statements;
pub(crate) mod text;

use std::sync::Arc;

use datafusion::sql::sqlparser::ast;
use plan::PlanError;

use crate::statement::{DropKind, ObjectName};
pub use copy::CopySource;
pub(crate) use copy::{CopyDirection, CopySyntax};
pub(crate) use create::{ColumnSyntax, CreateTableSyntax, CreateViewSyntax};
pub(crate) use spelling::SYMMETRIC;
pub(crate) use statements::parse_query_text;
use text::Source;

/// A statement's syntax tree, its text and its place.
#[derive(Debug, Clone)]
pub struct Parsed {
    pub(crate) source: Source,
    pub(crate) syntax: Arc<Syntax>,
}

impl Parsed {
    /// The statement's exact text, without the semicolon.
    pub fn text(&self) -> &str {
        &self.source.text
    }

    /// Where the statement begins in the whole text, in characters.
    pub fn offset(&self) -> usize {
        self.source.offset
    }

    /// Whether it is only white space and comments.
    pub fn is_empty(&self) -> bool {
        matches!(*self.syntax, Syntax::Empty)
    }

    /// Whether it ends a transaction block: only such statements are allowed in a failed transaction.
    pub fn is_transaction_control(&self) -> bool {
        matches!(*self.syntax, Syntax::Commit | Syntax::Rollback)
    }
}

/// What EXPLAIN was asked to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExplainOptions {
    /// EXPLAIN ANALYZE: run it and count.
    pub analyze: bool,
    /// EXPLAIN VERBOSE: columns and types too.
    pub verbose: bool,
    /// EXPLAIN (STATE): the dataflow that a query would have as a materialized view.
    pub state: bool,
}

/// A statement as written.
// One a statement, moved once or twice: boxing its larger forms would only add noise.
#[allow(clippy::large_enum_variant)]
#[derive(Debug, Clone)]
pub(crate) enum Syntax {
    Empty,
    Query(Box<ast::Query>),
    Insert(Box<ast::Insert>),
    Update(Box<ast::Update>),
    Delete(Box<ast::Delete>),
    Truncate(Vec<ast::ObjectName>),
    Copy(CopySyntax),
    CreateSchema {
        name: String,
        if_not_exists: bool,
    },
    CreateTable(CreateTableSyntax),
    CreateView(CreateViewSyntax),
    Drop {
        kind: DropKind,
        names: Vec<(Option<String>, String)>,
        if_exists: bool,
        cascade: bool,
    },
    Explain {
        options: ExplainOptions,
        statement: Box<Parsed>,
    },
    /// EXPLAIN MATERIALIZED VIEW.
    ExplainView(ast::ObjectName),
    /// VERIFY MATERIALIZED VIEW.
    Verify(ast::ObjectName),
    Begin {
        read_only: bool,
    },
    Commit,
    Rollback,
    Show {
        name: String,
    },
    ShowRelations(ShowRelations),
    Set {
        name: String,
        value: Option<String>,
        local: bool,
    },
    Reset {
        name: String,
    },
    Prepare {
        name: String,
        types: Vec<ast::DataType>,
        statement: Box<Parsed>,
    },
    Execute {
        name: String,
        arguments: Vec<ast::Expr>,
    },
    Deallocate {
        name: Option<String>,
    },
    DeclareCursor {
        name: String,
        query: Box<ast::Query>,
    },
    Fetch {
        name: String,
        count: Option<u64>,
    },
    CloseCursor {
        name: Option<String>,
    },
    DiscardAll,
    NoOperation {
        tag: String,
        notice: Option<&'static str>,
    },
    /// REFRESH MATERIALIZED VIEW: there is nothing to do.
    Refresh(ast::ObjectName),
    /// Known, but not built: what it is called.
    Unsupported(String),
}

/// SHOW of what there is in the catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ShowRelations {
    Tables,
    Views,
    MaterializedViews,
    Schemas,
    Columns { schema: Option<String>, relation: String },
}

/// Splits a text into statements and parses each. A syntax error anywhere fails the whole text, as in PostgreSQL.
pub fn parse(text: &str) -> Result<Vec<Parsed>, PlanError> {
    let mut parsed = Vec::with_capacity(1);
    for (source, tokens) in text::split(text)? {
        let syntax = Arc::new(statements::parse_statement(&source, tokens)?);
        parsed.push(Parsed { source, syntax });
    }
    Ok(parsed)
}

/// An identifier as PostgreSQL reads it: lower case unless it was quoted.
pub(crate) fn fold(ident: &ast::Ident) -> String {
    if ident.quote_style.is_some() { ident.value.clone() } else { ident.value.to_lowercase() }
}

/// Schema (if written) and name of an object.
pub(crate) fn schema_and_name(name: &ast::ObjectName) -> Result<(Option<String>, String), PlanError> {
    let parts: Vec<String> =
        name.0.iter().map(|part| part.as_ident().map(fold).unwrap_or_else(|| part.to_string())).collect();
    match parts.as_slice() {
        [name] => Ok((None, name.clone())),
        [schema, name] => Ok((Some(schema.clone()), name.clone())),
        // PostgreSQL accepts the current database in front; there is only one.
        [_, schema, name] => Ok((Some(schema.clone()), name.clone())),
        _ => Err(PlanError::new(
            plan::SqlState::SYNTAX_ERROR,
            format!("improper qualified name (too many dotted names): {name}"),
        )),
    }
}

/// The name of an object that is to be created: in the current schema unless another is written.
pub(crate) fn new_name(name: &ast::ObjectName, current_schema: &str) -> Result<ObjectName, PlanError> {
    let (schema, name) = schema_and_name(name)?;
    Ok(ObjectName { schema: schema.unwrap_or_else(|| current_schema.to_string()), name })
}
