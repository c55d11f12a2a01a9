//! What is known of a node before it runs: the facts that choose operators and bound state.

use crate::bounds::{Extent, StateBound};

/// The derived facts about the rows that a node emits, and about its state.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties {
    /// Sets of column positions, each of which is unique in the output at every epoch. An empty set
    /// inside means "at most one row".
    pub keys: Vec<Vec<usize>>,
    /// Whether every delta has weight +1 only: nothing is ever retracted.
    pub append_only: bool,
    /// Columns for which a watermark is known.
    pub watermarks: Vec<usize>,
    /// How much the output may come to hold.
    pub extent: Extent,
    /// What the operator keeps.
    pub state: StateBound,
}

impl Properties {
    /// The key to store the output under: the smallest known one.
    pub fn smallest_key(&self) -> Option<&[usize]> {
        self.keys.iter().min_by_key(|key| key.len()).map(Vec::as_slice)
    }

    /// Keys of a projection of this output, given for each input column the output positions at which
    /// it appears unchanged. A key survives when all its columns do.
    pub fn project_keys(&self, position_of: impl Fn(usize) -> Option<usize>) -> Vec<Vec<usize>> {
        self.keys
            .iter()
            .filter_map(|key| key.iter().map(|column| position_of(*column)).collect::<Option<Vec<_>>>())
            .collect()
    }
}
