//! Recomputed queries over changing inputs.
