//! The order whose results in between are smallest.
//!
//! What an order costs is, in this sequence: how many joins it makes without an equality, how many of them without any
//! condition, and how many rows all its joins but the last result in together (C_out in the literature).
//!
//! Few relations: dynamic programming over all sets of relations (Selinger et al., *Access path selection in a relational
//! database management system*, 1979), bushy trees included (DPsub in Moerkotte and Neumann, *Analysis of two existing and
//! one new dynamic programming algorithm for the generation of optimal bushy join trees without cross products*, 2006). Many:
//! the two that join to the fewest rows are joined, again and again (GOO in Fegaras, *A new heuristic for optimizing large
//! queries*, 1998).
//!
//! Both are a function of the estimates alone, and compare them by sums and products only, so that a plan is the same on every
//! machine.

use std::collections::HashMap;

use super::graph::Graph;

/// A set of relations, a bit each.
pub(super) type Set = u64;

/// The written order stays unless another has fewer joins without an equality, or at most this part of its rows in between.
pub(super) const GAIN: f64 = 0.9;

/// So many relations are joined by dynamic programming.
const EXHAUSTIVE_MAX: usize = 10;

/// An order of joins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Order {
    /// A relation, by its number.
    Relation(usize),
    /// Two orders, joined.
    Join(Box<Order>, Box<Order>),
}

impl Order {
    /// The relations in it.
    pub fn set(&self) -> Set {
        match self {
            Order::Relation(number) => 1 << number,
            Order::Join(left, right) => left.set() | right.set(),
        }
    }
}

/// What an order costs. They compare part by part, the first first.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub(super) struct Cost {
    /// Joins without an equality.
    keyless: u32,
    /// Joins without any condition.
    bare: u32,
    /// Rows of all results but the last.
    rows: f64,
}

impl Cost {
    fn plus(self, other: Cost) -> Cost {
        Cost { keyless: self.keyless + other.keyless, bare: self.bare + other.bare, rows: self.rows + other.rows }
    }

    /// The cost of a join itself, whose result has so many rows that have to be kept.
    fn of_join(graph: &Graph, left: Set, right: Set, kept: f64) -> Cost {
        let keyless = !graph.has_equality(left, right);
        let bare = keyless && !graph.has_condition(left, right);
        Cost { keyless: keyless.into(), bare: bare.into(), rows: kept }
    }

    /// Whether it is so much less that an order is worth changing.
    fn clearly_below(self, other: Cost) -> bool {
        (self.keyless, self.bare) < (other.keyless, other.bare)
            || ((self.keyless, self.bare) == (other.keyless, other.bare) && self.rows < other.rows * GAIN)
    }
}

/// A better order than the one that was written, if there is one.
pub(super) fn better(graph: &Graph) -> Option<Order> {
    let order = if graph.relations.len() <= EXHAUSTIVE_MAX { exhaustive(graph) } else { greedy(graph) };
    let order = order?;
    cost(graph, &order).clearly_below(cost(graph, &graph.order)).then_some(order)
}

/// What an order costs.
pub(super) fn cost(graph: &Graph, order: &Order) -> Cost {
    let Order::Join(left, right) = order else { return Cost::default() };
    let (left_set, right_set) = (left.set(), right.set());
    let kept = if left_set | right_set == graph.all() { 0.0 } else { graph.rows(left_set | right_set) };
    Cost::of_join(graph, left_set, right_set, kept).plus(cost(graph, left)).plus(cost(graph, right))
}

/// The cheapest of all orders.
fn exhaustive(graph: &Graph) -> Option<Order> {
    let all = graph.all();
    let mut best: Vec<Option<(Cost, Set)>> = vec![None; usize::try_from(all).ok()? + 1];
    for set in 1..=all {
        if set.count_ones() == 1 {
            best[set as usize] = Some((Cost::default(), 0));
            continue;
        }
        let kept = if set == all { 0.0 } else { graph.rows(set) };
        // The relation that was written first is on the left: each pair of sets is seen once.
        let first = set & set.wrapping_neg();
        let others = set ^ first;
        let mut right: Set = 0;
        let mut cheapest: Option<(Cost, Set)> = None;
        loop {
            right = (right.wrapping_sub(others)) & others;
            if right == 0 {
                break;
            }
            let left = set ^ right;
            if let (Some((left_cost, _)), Some((right_cost, _))) = (best[left as usize], best[right as usize]) {
                let cost = Cost::of_join(graph, left, right, kept).plus(left_cost).plus(right_cost);
                if cheapest.is_none_or(|(least, _)| cost < least) {
                    cheapest = Some((cost, right));
                }
            }
        }
        best[set as usize] = cheapest;
    }
    order_of(&best, all)
}

/// The order of a set, by the right side of each cheapest join.
fn order_of(best: &[Option<(Cost, Set)>], set: Set) -> Option<Order> {
    match best.get(usize::try_from(set).ok()?).copied().flatten()? {
        (_, 0) => Some(Order::Relation(set.trailing_zeros() as usize)),
        (_, right) => {
            let (left, right) = (order_of(best, set ^ right)?, order_of(best, right)?);
            Some(Order::Join(Box::new(left), Box::new(right)))
        }
    }
}

/// Joins what joins to the fewest rows, until all are joined.
fn greedy(graph: &Graph) -> Option<Order> {
    let mut rows: HashMap<Set, f64> = HashMap::new();
    let mut orders: Vec<Order> = (0..graph.relations.len()).map(Order::Relation).collect();
    while orders.len() > 1 {
        let mut cheapest: Option<(Cost, usize, usize)> = None;
        for left in 0..orders.len() {
            for right in left + 1..orders.len() {
                let sets = (orders[left].set(), orders[right].set());
                let kept = *rows.entry(sets.0 | sets.1).or_insert_with(|| graph.rows(sets.0 | sets.1));
                let cost = Cost::of_join(graph, sets.0, sets.1, kept);
                if cheapest.is_none_or(|(least, _, _)| cost < least) {
                    cheapest = Some((cost, left, right));
                }
            }
        }
        let (_, left, right) = cheapest?;
        let right = orders.remove(right);
        let joined = Order::Join(Box::new(orders[left].clone()), Box::new(right));
        orders[left] = joined;
    }
    orders.pop()
}
