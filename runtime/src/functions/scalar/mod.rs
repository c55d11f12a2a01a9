//! Scalar functions, one file each. [`windows`] holds what the window functions share.

pub mod hop_starts;
pub mod tumble_end;
pub mod tumble_start;
pub mod windows;
