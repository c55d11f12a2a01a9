//! SQLSTATE codes: the five characters by which a client recognises an error.

use std::fmt;

/// A SQLSTATE code, as in PostgreSQL's appendix "PostgreSQL Error Codes".
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct SqlState(pub &'static str);

impl SqlState {
    /// The five characters.
    pub fn code(self) -> &'static str {
        self.0
    }
}

impl fmt::Debug for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Display for SqlState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident = $code:literal;)*) => {
        impl SqlState { $($(#[$doc])* pub const $name: SqlState = SqlState($code);)* }
    };
}

states! {
    /// Something went as asked, but the client should know more.
    WARNING = "01000";
    /// The connection's protocol was violated.
    PROTOCOL_VIOLATION = "08P01";
    /// Understood, but not built.
    FEATURE_NOT_SUPPORTED = "0A000";
    /// A subquery that stands for one value has several.
    CARDINALITY_VIOLATION = "21000";
    /// A number does not fit its type.
    NUMERIC_VALUE_OUT_OF_RANGE = "22003";
    /// A date or time does not fit its type.
    DATETIME_FIELD_OVERFLOW = "22008";
    /// Division by zero.
    DIVISION_BY_ZERO = "22012";
    /// A parameter has a value that makes no sense.
    INVALID_PARAMETER_VALUE = "22023";
    /// A date or time cannot be read.
    INVALID_DATETIME_FORMAT = "22007";
    /// A text is too long for varchar(n) or char(n).
    STRING_DATA_RIGHT_TRUNCATION = "22001";
    /// A value cannot be read as its type.
    INVALID_TEXT_REPRESENTATION = "22P02";
    /// A COPY record is malformed.
    BAD_COPY_FILE_FORMAT = "22P04";
    /// Bytes are not valid in the encoding.
    CHARACTER_NOT_IN_REPERTOIRE = "22021";
    /// A NULL where a value must be.
    NULL_VALUE_NOT_ALLOWED = "22004";
    /// An array of another size or shape than is needed.
    ARRAY_SUBSCRIPT_ERROR = "2202E";
    /// A regular expression that is none.
    INVALID_REGULAR_EXPRESSION = "2201B";
    /// Bounds that make no buckets.
    INVALID_ARGUMENT_FOR_WIDTH_BUCKET = "2201G";
    /// A number of a row that is none.
    INVALID_ARGUMENT_FOR_NTH_VALUE = "22016";
    /// Other wrong data.
    DATA_EXCEPTION = "22000";
    /// NULL in a NOT NULL column.
    NOT_NULL_VIOLATION = "23502";
    /// A second row with the same key.
    UNIQUE_VIOLATION = "23505";
    /// A command that does not fit the transaction's state.
    INVALID_TRANSACTION_STATE = "25000";
    /// Needs no transaction block.
    ACTIVE_SQL_TRANSACTION = "25001";
    /// A write in a read-only transaction.
    READ_ONLY_SQL_TRANSACTION = "25006";
    /// No transaction is open.
    NO_ACTIVE_SQL_TRANSACTION = "25P01";
    /// The transaction has failed and waits for ROLLBACK.
    IN_FAILED_SQL_TRANSACTION = "25P02";
    /// An unknown prepared statement.
    INVALID_SQL_STATEMENT_NAME = "26000";
    /// Other objects depend on this one.
    DEPENDENT_OBJECTS_STILL_EXIST = "2BP01";
    /// An unknown cursor.
    INVALID_CURSOR_NAME = "34000";
    /// An unknown database.
    INVALID_CATALOG_NAME = "3D000";
    /// An unknown schema.
    INVALID_SCHEMA_NAME = "3F000";
    /// The change conflicts with a concurrent one; run the transaction again.
    SERIALIZATION_FAILURE = "40001";
    /// Two transactions wait for each other.
    DEADLOCK_DETECTED = "40P01";
    /// The text is not a statement.
    SYNTAX_ERROR = "42601";
    /// The statement is misused in another way.
    SYNTAX_ERROR_OR_ACCESS_RULE_VIOLATION = "42000";
    /// A name stands for two things.
    AMBIGUOUS_COLUMN = "42702";
    /// An unknown column.
    UNDEFINED_COLUMN = "42703";
    /// An unknown function.
    UNDEFINED_FUNCTION = "42883";
    /// An unknown table or view.
    UNDEFINED_TABLE = "42P01";
    /// An unknown parameter.
    UNDEFINED_PARAMETER = "42P02";
    /// An unknown object of another kind.
    UNDEFINED_OBJECT = "42704";
    /// A column is named twice.
    DUPLICATE_COLUMN = "42701";
    /// The relation exists already.
    DUPLICATE_TABLE = "42P07";
    /// The schema exists already.
    DUPLICATE_SCHEMA = "42P06";
    /// The object exists already.
    DUPLICATE_OBJECT = "42710";
    /// The prepared statement exists already.
    DUPLICATE_PREPARED_STATEMENT = "42P05";
    /// The cursor exists already.
    DUPLICATE_CURSOR = "42P03";
    /// A column must be grouped or aggregated.
    GROUPING_ERROR = "42803";
    /// A window function is misplaced.
    WINDOWING_ERROR = "42P20";
    /// Types do not fit.
    DATATYPE_MISMATCH = "42804";
    /// A value cannot be converted.
    CANNOT_COERCE = "42846";
    /// The type of a parameter is unknown.
    INDETERMINATE_DATATYPE = "42P18";
    /// The table is defined wrongly.
    INVALID_TABLE_DEFINITION = "42P16";
    /// The object is of another kind.
    WRONG_OBJECT_TYPE = "42809";
    /// The column reference is not valid here.
    INVALID_COLUMN_REFERENCE = "42P10";
    /// Not allowed to this user.
    INSUFFICIENT_PRIVILEGE = "42501";
    /// The disk is full.
    DISK_FULL = "53100";
    /// Out of memory.
    OUT_OF_MEMORY = "53200";
    /// No more connections.
    TOO_MANY_CONNECTIONS = "53300";
    /// A limit of the server was met.
    PROGRAM_LIMIT_EXCEEDED = "54000";
    /// The object is not in the right state.
    OBJECT_NOT_IN_PREREQUISITE_STATE = "55000";
    /// A setting cannot be changed now.
    CANT_CHANGE_RUNTIME_PARAM = "55P02";
    /// The user cancelled the statement.
    QUERY_CANCELED = "57014";
    /// The server is stopping.
    ADMIN_SHUTDOWN = "57P01";
    /// Reading or writing failed.
    IO_ERROR = "58030";
    /// A defect of the server.
    INTERNAL_ERROR = "XX000";
    /// Stored data is damaged.
    DATA_CORRUPTED = "XX001";
}
