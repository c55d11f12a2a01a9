//! Scalar functions, one file each, or a file for those of one topic: [`arrays`], [`calendar`], [`date_trunc`] and [`make`] (dates
//! and times), [`json`], [`numbers`], [`numeric`] (its operators), [`patterns`] (regular expressions), [`text`]. [`windows`] holds what the window functions share, [`overload`] what functions of
//! several types share, [`rounding`] what those that round share, [`decimals`] numerics of either width; [`format`] holds the patterns of texts, [`zone`] time
//! zones.

pub mod arrays;
pub mod calendar;
pub mod ceil;
pub mod cumulate_ends;
pub mod date_trunc;
pub mod decimals;
pub mod floor;
pub mod format;
pub mod hop_starts;
pub mod json;
pub mod make;
pub mod numbers;
pub mod numeric;
pub mod overload;
pub mod patterns;
pub mod rounding;
pub mod text;
pub mod timezone;
pub mod to_char;
pub mod to_date;
pub mod to_timestamp;
pub mod trunc;
pub mod tumble_end;
pub mod tumble_start;
pub mod windows;
pub mod zone;
