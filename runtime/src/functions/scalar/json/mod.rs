//! Functions over json and jsonb. [`function`] holds what they share: which of the two types a call is about.

pub mod access;
pub mod build;
pub mod contain;
pub mod describe;
pub mod edit;
pub mod function;
pub mod rows;
pub mod value;
