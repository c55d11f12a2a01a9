//! Patterns of `to_char`, `to_date` and `to_timestamp`: what is printed and read by them.
//!
//! [`pattern`] splits a pattern into its pieces; [`datetime`] prints dates, times and intervals, [`number`] numbers, with [`digits`];
//! [`input`] reads dates and times.

pub mod datetime;
pub mod digits;
pub mod input;
pub mod number;
pub mod pattern;
