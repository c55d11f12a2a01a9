//! State tables: all that an operator may do with what it keeps.
