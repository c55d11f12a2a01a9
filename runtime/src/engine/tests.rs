//! Whole dataflows on one and several workers.
