//! Scalar functions, one file each. [`windows`] holds what the window functions share, [`overload`] what functions of
//! several types share, [`rounding`] what those that round share; [`format`] holds the patterns of texts, [`zone`] time
//! zones.

pub mod ceil;
pub mod floor;
pub mod format;
pub mod hop_starts;
pub mod overload;
pub mod rounding;
pub mod timezone;
pub mod to_char;
pub mod to_date;
pub mod to_timestamp;
pub mod trunc;
pub mod tumble_end;
pub mod tumble_start;
pub mod windows;
pub mod zone;
