//! The conditions between the relations of a tree, and how many rows a set of relations joins to.
//!
//! The number of rows of a set does not depend on the order in which it is joined. It is that of all combinations of its
//! (filtered) rows, reduced
//! - for each relation of which a whole unique key is equal to what others of the set have: to one row for each combination of
//!   theirs, or less if the relation is filtered;
//! - for each class of equal expressions that are not used so: by the number of different values of each but the one with
//!   fewest (Selinger's 1 / max, for more than two);
//! - for each other condition: by a guess ([`super::estimate`]).

use datafusion::common::{Column, Result};
use datafusion::logical_expr::{Expr, LogicalPlan};

use super::estimate;
use super::flatten::{Condition, Equality, Flat};
use super::search::{Order, Set};
use crate::catalog::Sizes;

/// A set of classes, a bit each.
type Classes = u64;

/// Of a column that is no key, so many rows have one value.
const ROWS_PER_VALUE: f64 = 10.0;

/// A relation of a tree.
pub(super) struct Relation {
    pub plan: LogicalPlan,
    /// Its rows.
    rows: f64,
    /// Its rows before they are filtered.
    unfiltered: f64,
    /// Classes of which an expression is one of its own.
    classes: Classes,
    /// For each unique key whose columns are all in classes, these.
    keys: Vec<Classes>,
}

/// Expressions of different relations that are equal.
struct Class {
    members: Vec<(usize, Expr)>,
    /// The different values of each member, by relation.
    distinct: Vec<(usize, f64)>,
}

/// Relations with the conditions between them.
pub(super) struct Graph {
    pub relations: Vec<Relation>,
    /// What each column of the tree is in its relations.
    pub columns: Vec<Column>,
    /// The order as it was written.
    pub order: Order,
    classes: Vec<Class>,
    /// Equalities as they were written, with their classes. Those of no class stand alone.
    equalities: Vec<(Equality, Option<usize>)>,
    conditions: Vec<Condition>,
}

impl Graph {
    /// The graph of a tree; none if it is too large.
    pub fn new(flat: Flat, sizes: &Sizes) -> Result<Option<Graph>> {
        let Flat { relations, equalities, conditions, columns, order } = flat;
        let members = classes(&equalities);
        if members.len() > Classes::BITS as usize {
            return Ok(None);
        }
        let class_of =
            |side: &Expr| members.iter().position(|members| members.iter().any(|(_, member)| member == side));
        let equalities = equalities
            .into_iter()
            .map(|equality| {
                let [left, right] = equality.sides.each_ref().map(class_of);
                let class = left.filter(|_| left == right);
                (equality, class)
            })
            .collect();
        let relations: Vec<Relation> =
            relations.into_iter().enumerate().map(|(number, plan)| relation(number, plan, &members, sizes)).collect();
        let classes = members.into_iter().enumerate().map(|(number, members)| class(number, members, &relations));
        let classes = classes.collect();
        Ok(Some(Graph { relations, columns, order, classes, equalities, conditions }))
    }

    /// All relations.
    pub fn all(&self) -> Set {
        Set::MAX >> (Set::BITS as usize - self.relations.len())
    }

    /// Whether an equality says which rows of two sets meet.
    pub fn has_equality(&self, left: Set, right: Set) -> bool {
        let joins =
            |class: &Class| [left, right].iter().all(|set| class.members.iter().any(|(of, _)| within(1 << of, *set)));
        self.classes.iter().any(joins) || self.alone().any(|equality| key(equality, left, right).is_some())
    }

    /// Whether a condition can be evaluated on rows of two sets together, and not before.
    pub fn has_condition(&self, left: Set, right: Set) -> bool {
        self.conditions.iter().any(|condition| completes(condition.needs, left, right))
            || self.alone().any(|equality| completes(equality.sets[0] | equality.sets[1], left, right))
    }

    /// The keys of the join of two sets, and its other conditions in the order in which they are to be evaluated.
    pub fn between(&self, left: Set, right: Set) -> (Vec<(Expr, Expr)>, Vec<Expr>) {
        let mut keys = Vec::new();
        let mut conditions = Vec::new();
        let of_classes = (0..self.classes.len()).filter_map(|class| self.key_of_class(class, left, right));
        keys.extend(of_classes);
        for equality in self.alone().filter(|equality| completes(equality.sets[0] | equality.sets[1], left, right)) {
            match key(equality, left, right) {
                Some(pair) => keys.push(pair),
                None => conditions.push(equality.sides[0].clone().eq(equality.sides[1].clone())),
            }
        }
        for can_fail in [false, true] {
            let now =
                |condition: &&Condition| condition.can_fail == can_fail && completes(condition.needs, left, right);
            conditions.extend(self.conditions.iter().filter(now).map(|condition| condition.expression.clone()));
        }
        (keys, conditions)
    }

    /// Rows of the join of a set.
    pub fn rows(&self, set: Set) -> f64 {
        let (found, introduced) = self.found_by_key(set);
        let mut rows = 1.0;
        for (number, relation) in self.members(set) {
            rows *= relation.rows;
            if within(1 << number, found) {
                rows /= relation.unfiltered;
            }
        }
        for (number, class) in self.classes.iter().enumerate() {
            let of = |relation: &usize| introduced[*relation] & (1 << number) != 0;
            let distinct: Vec<f64> =
                class.distinct.iter().filter(|(relation, _)| of(relation)).map(|(_, distinct)| *distinct).collect();
            let fewest = distinct.iter().copied().fold(f64::INFINITY, f64::min);
            if distinct.len() > 1 {
                rows *= fewest;
                distinct.iter().for_each(|distinct| rows /= distinct);
            }
        }
        for condition in self.conditions.iter().filter(|condition| within(condition.needs, set)) {
            rows *= estimate::selectivity(&condition.expression);
        }
        for _ in self.alone().filter(|equality| within(equality.sets[0] | equality.sets[1], set)) {
            rows *= estimate::EQUAL;
        }
        rows
    }

    fn members(&self, set: Set) -> impl Iterator<Item = (usize, &Relation)> {
        self.relations.iter().enumerate().filter(move |(number, _)| within(1 << number, set))
    }

    fn alone(&self) -> impl Iterator<Item = &Equality> {
        self.equalities.iter().filter(|(_, class)| class.is_none()).map(|(equality, _)| equality)
    }

    /// The relations of a set of which each row is found by a unique key from rows of the others; and for each relation
    /// the classes of which it brings a value of its own, instead of being found by it.
    fn found_by_key(&self, set: Set) -> (Set, Vec<Classes>) {
        // The largest first: of two relations with one key the smaller decides how many rows there are.
        let mut candidates: Vec<usize> = self.members(set).map(|(number, _)| number).collect();
        candidates
            .sort_by(|a, b| self.relations[*b].unfiltered.total_cmp(&self.relations[*a].unfiltered).then(b.cmp(a)));
        let mut roots = set;
        for candidate in candidates {
            let fewer = roots & !(1 << candidate);
            if fewer != 0 && self.reach(fewer, set).0 == set {
                roots = fewer;
            }
        }
        (set & !roots, self.reach(roots, set).1)
    }

    /// The relations of a set that are found by keys from some of them, these included, and what each introduces.
    fn reach(&self, roots: Set, set: Set) -> (Set, Vec<Classes>) {
        let mut introduced = vec![0; self.relations.len()];
        let mut known: Classes = 0;
        for (number, relation) in self.members(roots) {
            introduced[number] = relation.classes;
            known |= relation.classes;
        }
        let mut reached = roots;
        loop {
            let next = self.members(set & !reached).find_map(|(number, relation)| {
                let key = relation.keys.iter().find(|key| within(**key, known))?;
                Some((number, relation.classes, *key))
            });
            let Some((number, classes, key)) = next else { return (reached, introduced) };
            reached |= 1 << number;
            introduced[number] = classes & !key;
            known |= classes;
        }
    }

    /// The key that a class is for the join of two sets: as it was written, if it was.
    fn key_of_class(&self, class: usize, left: Set, right: Set) -> Option<(Expr, Expr)> {
        let own = self.equalities.iter().filter(|(_, of)| *of == Some(class)).map(|(equality, _)| equality);
        let written = own.filter_map(|equality| key(equality, left, right)).next();
        written.or_else(|| {
            let first = |set: Set| self.classes[class].members.iter().find(|(relation, _)| within(1 << relation, set));
            Some((first(left)?.1.clone(), first(right)?.1.clone()))
        })
    }
}

/// Whether all of a set are in another.
fn within(part: u64, whole: u64) -> bool {
    part & !whole == 0
}

/// Whether a condition that needs some relations can be evaluated when two sets are joined, and not before.
fn completes(needs: Set, left: Set, right: Set) -> bool {
    within(needs, left | right) && !within(needs, left) && !within(needs, right)
}

/// An equality as a key of the join of two sets: the left side's expression first.
fn key(equality: &Equality, left: Set, right: Set) -> Option<(Expr, Expr)> {
    let ([a, b], [a_of, b_of]) = (&equality.sides, equality.sets);
    if within(a_of, left) && within(b_of, right) {
        Some((a.clone(), b.clone()))
    } else if within(a_of, right) && within(b_of, left) {
        Some((b.clone(), a.clone()))
    } else {
        None
    }
}

/// The classes of expressions that equalities make: of each relation at most one. An equality that would bring two of one
/// relation together stands alone, since no join of the class would compare these.
fn classes(equalities: &[Equality]) -> Vec<Vec<(usize, Expr)>> {
    let mut classes: Vec<Vec<(usize, Expr)>> = Vec::new();
    for Equality { sides, sets } in equalities {
        if sets.iter().any(|set| set.count_ones() != 1) {
            continue;
        }
        let members = [0, 1].map(|side: usize| (sets[side].trailing_zeros() as usize, sides[side].clone()));
        let [left, right] = members.each_ref().map(|member| classes.iter().position(|class| class.contains(member)));
        let whole = |class: Option<usize>, member: &(usize, Expr)| match class {
            Some(class) => classes[class].clone(),
            None => vec![member.clone()],
        };
        if left.is_some() && left == right {
            continue;
        }
        let mut merged = whole(left, &members[0]);
        merged.extend(whole(right, &members[1]));
        let relations: std::collections::HashSet<usize> = merged.iter().map(|(relation, _)| *relation).collect();
        if relations.len() < merged.len() {
            continue;
        }
        match (left, right) {
            (Some(left), Some(right)) => {
                classes[left.min(right)] = merged;
                classes.remove(left.max(right));
            }
            (Some(class), None) | (None, Some(class)) => classes[class] = merged,
            (None, None) => classes.push(merged),
        }
    }
    classes
}

/// A relation with what is known of it.
fn relation(number: usize, plan: LogicalPlan, classes: &[Vec<(usize, Expr)>], sizes: &Sizes) -> Relation {
    let mut own: Classes = 0;
    let mut of_column: Vec<(usize, Classes)> = Vec::new();
    for (class, members) in classes.iter().enumerate() {
        for (_, member) in members.iter().filter(|(relation, _)| *relation == number) {
            own |= 1 << class;
            of_column.extend(estimate::position(member, plan.schema()).map(|column| (column, 1 << class)));
        }
    }
    let class_of = |column: &usize| of_column.iter().find(|(of, _)| of == column).map(|(_, class)| *class);
    let keys = estimate::keys(&plan)
        .into_iter()
        .filter_map(|key| key.iter().map(class_of).try_fold(0, |key, class| class.map(|class| key | class)));
    let keys = keys.collect();
    let [rows, unfiltered] =
        [true, false].map(|filtered| estimate::rows(&plan, sizes, filtered).max(f64::MIN_POSITIVE));
    Relation { rows, unfiltered: unfiltered.max(1.0), classes: own, keys, plan }
}

/// A class with the numbers of different values: no more than the smallest relation of which it is the key has.
fn class(number: usize, members: Vec<(usize, Expr)>, relations: &[Relation]) -> Class {
    let is_key = |relation: &Relation| relation.keys.contains(&(1 << number));
    let of = |relation: &usize| &relations[*relation];
    let keyed = members.iter().map(|(relation, _)| of(relation)).filter(|relation| is_key(relation));
    let most = keyed.map(|relation| relation.unfiltered).fold(f64::INFINITY, f64::min);
    let distinct = |relation: &usize| {
        let rows = of(relation).unfiltered;
        let values = if is_key(of(relation)) { rows } else { rows / ROWS_PER_VALUE };
        (*relation, values.min(most).max(1.0))
    };
    let distinct = members.iter().map(|(relation, _)| distinct(relation)).collect();
    Class { members, distinct }
}
