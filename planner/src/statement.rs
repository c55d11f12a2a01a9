//! All that a client can ask: what the server matches on.

use datafusion::arrow::datatypes::{DataType, FieldRef, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, LogicalPlan};
use std::sync::Arc;

use crate::catalog::{ColumnInfo, TableInfo};

/// A qualified name of an object: its schema (resolved, so always present) and its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ObjectName {
    /// Schema.
    pub schema: String,
    /// Name within the schema.
    pub name: String,
}

/// A bound statement. Statements with `$1`, `$2` hold placeholders until
/// [`crate::Planner::with_parameters`].
#[derive(Debug, Clone)]
pub enum Statement {
    /// An empty statement (only white space or comments).
    Empty,
    /// A query: bound, not optimized.
    Query(LogicalPlan),
    /// INSERT.
    Insert(Insert),
    /// UPDATE.
    Update(Update),
    /// DELETE.
    Delete(Delete),
    /// TRUNCATE of tables.
    Truncate(Vec<Arc<TableInfo>>),
    /// COPY table FROM STDIN.
    CopyIn(CopyIn),
    /// COPY table or query TO STDOUT.
    CopyOut(CopyOut),
    /// CREATE SCHEMA.
    CreateSchema {
        /// Name.
        name: String,
        /// No error if it exists.
        if_not_exists: bool,
    },
    /// DROP SCHEMA, TABLE, VIEW, MATERIALIZED VIEW.
    Drop(Drop),
    /// CREATE TABLE.
    CreateTable(CreateTable),
    /// CREATE VIEW and CREATE MATERIALIZED VIEW.
    CreateView(CreateView),
    /// BEGIN, START TRANSACTION.
    Begin {
        /// Writes are refused.
        read_only: bool,
    },
    /// COMMIT, END.
    Commit,
    /// ROLLBACK, ABORT.
    Rollback,
    /// EXPLAIN: one text column "QUERY PLAN", a row a line; already rendered for everything that needs no execution.
    Explain {
        /// The lines.
        lines: Vec<String>,
        /// What is to be said of the state of an existing view.
        view: Option<ExplainedView>,
    },
    /// SHOW name, SHOW ALL.
    Show {
        /// Setting in lower case; "all" for all; TRANSACTION ISOLATION LEVEL is "transaction_isolation".
        name: String,
    },
    /// SHOW TABLES | SCHEMAS | VIEWS | MATERIALIZED VIEWS | ...: a listing, as a query over system relations.
    /// SET [SESSION | LOCAL] name = value; the value `None` is DEFAULT. Unquoted, list values joined by ", ".
    Set {
        /// Setting in lower case.
        name: String,
        /// Value as text.
        value: Option<String>,
        /// Until the end of the transaction.
        local: bool,
    },
    /// RESET name; "all" for all.
    Reset {
        /// Setting in lower case.
        name: String,
    },
    /// PREPARE name AS statement.
    Prepare {
        /// Name.
        name: String,
        /// Text of the statement.
        text: String,
        /// Declared parameter types.
        types: Vec<DataType>,
    },
    /// EXECUTE name (values).
    Execute {
        /// Name.
        name: String,
        /// Arguments.
        arguments: Vec<ScalarValue>,
    },
    /// DEALLOCATE name; `None` is ALL.
    Deallocate {
        /// Name.
        name: Option<String>,
    },
    /// DECLARE name CURSOR FOR query.
    DeclareCursor {
        /// Name.
        name: String,
        /// The query.
        query: LogicalPlan,
    },
    /// FETCH n FROM name; `None` is ALL.
    Fetch {
        /// Cursor.
        name: String,
        /// Rows.
        count: Option<u64>,
    },
    /// CLOSE name; `None` is ALL.
    CloseCursor {
        /// Cursor.
        name: Option<String>,
    },
    /// DISCARD ALL.
    DiscardAll,
    /// FLUSH and others that are accepted and have nothing to do: the command tag to answer.
    NoOperation {
        /// What a client that expects more should know.
        notice: Option<&'static str>,
        /// Command tag.
        tag: String,
    },
}

/// An existing materialized view in EXPLAIN.
#[derive(Debug, Clone)]
pub struct ExplainedView {
    /// The rows of the view.
    pub relation: plan::RelationId,
    /// Lines to which the sizes of state tables belong: numbers of the line and of the tables within the dataflow.
    pub state: Vec<(usize, std::ops::Range<usize>)>,
}

/// INSERT.
#[derive(Debug, Clone)]
pub struct Insert {
    /// The table.
    pub table: Arc<TableInfo>,
    /// The rows, with all columns of the table in order, already of the columns' types (assignment casts
    /// are part of the plan).
    pub source: InsertSource,
    /// ON CONFLICT.
    pub on_conflict: Option<OnConflict>,
    /// RETURNING: expressions over the table's columns (unqualified), and their output fields.
    pub returning: Option<Returning>,
}

/// Where an INSERT's rows come from.
#[derive(Debug, Clone)]
pub enum InsertSource {
    /// VALUES of literals and parameters: row by row, a cell a column. The fast path.
    Rows(Vec<Vec<Cell>>),
    /// Anything else.
    Plan(LogicalPlan),
}

/// One value of an INSERT ... VALUES.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// A constant of the column's type.
    Value(ScalarValue),
    /// `$n` (from 1), to be cast to the column's type.
    Parameter(usize),
}

/// ON CONFLICT.
#[derive(Debug, Clone)]
pub enum OnConflict {
    /// DO NOTHING.
    Nothing,
    /// DO UPDATE SET: for each assigned column (position) an expression over a schema of 2n columns: the n columns of
    /// the existing row, then the n columns of the row proposed for insertion. The condition is over the same.
    Update {
        /// Column position and new value.
        assignments: Vec<(usize, Expr)>,
        /// WHERE.
        condition: Option<Expr>,
        /// The 2n-column schema over which the expressions are bound: `(table, excluded)` qualifiers.
        schema: datafusion::common::DFSchemaRef,
    },
}

/// RETURNING.
#[derive(Debug, Clone)]
pub struct Returning {
    /// Expressions over the table's columns.
    pub expressions: Vec<Expr>,
    /// The schema over which they are bound: the table's columns, qualified by its name or alias.
    pub input: datafusion::common::DFSchemaRef,
    /// Columns of the result.
    pub schema: SchemaRef,
}

/// UPDATE.
#[derive(Debug, Clone)]
pub struct Update {
    /// The table.
    pub table: Arc<TableInfo>,
    /// Output: `$rowid`, the n columns of the old row, the n columns of the new row (cast to the columns' types). A target
    /// row may come several times if FROM matches it several times: the first one counts.
    pub query: LogicalPlan,
    /// RETURNING, over the new row.
    pub returning: Option<Returning>,
}

/// DELETE.
#[derive(Debug, Clone)]
pub struct Delete {
    /// The table.
    pub table: Arc<TableInfo>,
    /// Output: `$rowid`, the n columns of the row. A row may come several times.
    pub query: LogicalPlan,
    /// RETURNING, over the old row.
    pub returning: Option<Returning>,
}

/// Options of COPY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopyOptions {
    /// text or csv.
    pub format: CopyFormat,
    /// The first line holds column names.
    pub header: bool,
    /// Field separator: tab for text, comma for csv.
    pub delimiter: u8,
    /// What stands for NULL: `\N` for text, nothing for csv.
    pub null: String,
    /// csv's quotation mark.
    pub quote: u8,
    /// csv's escape within quotes.
    pub escape: u8,
    /// Columns (positions within the copied columns) whose values are always quoted on output; `None` is only where
    /// needed, all columns for `*`.
    pub force_quote: Option<Vec<usize>>,
}

/// COPY's formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyFormat {
    /// Postgres's text format.
    Text,
    /// csv.
    Csv,
}

/// COPY FROM STDIN.
#[derive(Debug, Clone)]
pub struct CopyIn {
    /// The table.
    pub table: Arc<TableInfo>,
    /// Positions in the table of the columns in the data, in the data's order.
    pub columns: Vec<usize>,
    /// For every column of the table that is not in the data: its default as an expression without columns.
    pub defaults: Vec<(usize, Expr)>,
    /// Options.
    pub options: CopyOptions,
}

/// COPY TO STDOUT.
#[derive(Debug, Clone)]
pub struct CopyOut {
    /// The rows.
    pub query: LogicalPlan,
    /// Options.
    pub options: CopyOptions,
}

/// What DROP drops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DropKind {
    /// A schema.
    Schema,
    /// A table.
    Table,
    /// A plain view.
    View,
    /// A materialized view.
    MaterializedView,
}

/// DROP.
#[derive(Debug, Clone)]
pub struct Drop {
    /// What.
    pub kind: DropKind,
    /// Which, as written: schema (if written) and name. For a schema only the name.
    pub names: Vec<(Option<String>, String)>,
    /// No error if one does not exist.
    pub if_exists: bool,
    /// Drops what depends on it.
    pub cascade: bool,
}

/// CREATE TABLE.
#[derive(Debug, Clone)]
pub struct CreateTable {
    /// Name.
    pub name: ObjectName,
    /// No error if it exists.
    pub if_not_exists: bool,
    /// Columns, with Postgres types in the fields' metadata.
    pub fields: Vec<FieldRef>,
    /// The same columns: defaults and NOT NULL (also set for the primary key).
    pub columns: Vec<ColumnInfo>,
    /// Positions of the primary key, empty if none.
    pub primary_key: Vec<usize>,
    /// APPEND ONLY: UPDATE and DELETE are refused.
    pub append_only: bool,
    /// WATERMARK FOR column AS expression: position and SQL text of the expression.
    pub watermark: Option<(usize, String)>,
    /// CREATE TABLE AS: the rows.
    pub query: Option<LogicalPlan>,
}

/// CREATE [OR REPLACE] VIEW, CREATE MATERIALIZED VIEW.
#[derive(Debug, Clone)]
pub struct CreateView {
    /// Name.
    pub name: ObjectName,
    /// Materialized.
    pub materialized: bool,
    /// OR REPLACE.
    pub or_replace: bool,
    /// No error if it exists.
    pub if_not_exists: bool,
    /// Column names given, empty if none.
    pub columns: Vec<String>,
    /// Text of the SELECT.
    pub query_text: String,
    /// The bound SELECT, with the column names applied.
    pub plan: LogicalPlan,
    /// Qualified names of tables and views that it reads directly.
    pub depends_on: Vec<ObjectName>,
}
