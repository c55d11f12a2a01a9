//! Random schemas, queries and histories of changes, as SQL text.
//!
//! Everything made here has one right answer: expressions cannot fail (no division by a column, no overflow) but in views that
//! are made to fail for some rows, of which it is known for which; LIMIT and window
//! functions order by all columns where it matters, so that ties are between equal rows only. What is generated from one seed is always the same.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

mod aggregates;
mod changes;
mod expressions;
mod fallible;
mod over;
mod queries;

pub use changes::Step;
pub use fallible::Fallible;

/// The types that are generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// integer
    Int,
    /// bigint
    Big,
    /// numeric, of any scale
    Numeric,
    /// double precision
    Float,
    /// text
    Text,
    /// boolean
    Bool,
    /// timestamp
    Timestamp,
    /// date
    Date,
}

/// All types that columns of tables can have.
pub const COLUMN_TYPES: [Type; 8] =
    [Type::Int, Type::Big, Type::Numeric, Type::Float, Type::Text, Type::Bool, Type::Timestamp, Type::Date];

impl Type {
    /// Its name in SQL.
    pub fn sql(self) -> &'static str {
        match self {
            Type::Int => "int",
            Type::Big => "bigint",
            Type::Numeric => "numeric(10,2)",
            Type::Float => "double precision",
            Type::Text => "text",
            Type::Bool => "boolean",
            Type::Timestamp => "timestamp",
            Type::Date => "date",
        }
    }
}

/// A column in scope: how to write it, and its type.
#[derive(Debug, Clone)]
pub struct Column {
    /// Reference, possibly qualified.
    pub name: String,
    /// Type.
    pub kind: Type,
}

/// A table or view.
#[derive(Debug, Clone)]
pub struct Relation {
    /// Name.
    pub name: String,
    /// Columns.
    pub columns: Vec<Column>,
    /// For tables: how many of the first columns are the primary key.
    pub key_columns: usize,
    /// Whether it may have many more rows than a table.
    pub grows: bool,
}

/// A view: name and SELECT.
#[derive(Debug, Clone)]
pub struct View {
    /// Name.
    pub name: String,
    /// Its SELECT.
    pub query: String,
    /// False for a plain view.
    pub materialized: bool,
    /// What is compared instead of the SELECT, if rows of it may fail.
    pub fallible: Option<Fallible>,
}

impl View {
    /// The statement that makes it.
    pub fn create(&self) -> String {
        let kind = if self.materialized { "MATERIALIZED VIEW" } else { "VIEW" };
        format!("CREATE {kind} {} AS {}", self.name, self.query)
    }
}

/// One case: tables, views and what happens.
#[derive(Debug, Clone)]
pub struct Case {
    /// CREATE TABLE statements.
    pub tables: Vec<String>,
    /// All views, in the order of their creation.
    pub views: Vec<View>,
    /// What happens, in order; views are created by steps among it.
    pub steps: Vec<Step>,
}

/// Makes cases.
pub struct Generator {
    rng: StdRng,
    relations: Vec<Relation>,
    tables: Vec<Relation>,
    names: usize,
    exact_doubles: bool,
}

impl Generator {
    /// A generator for one case.
    pub fn new(seed: u64) -> Self {
        let (rng, relations, tables) = (StdRng::seed_from_u64(seed), Vec::new(), Vec::new());
        Generator { rng, relations, tables, names: 0, exact_doubles: false }
    }

    /// Doubles of few binary digits only, whose sums are exact in whatever order. Where sums round, PostgreSQL's depend on the
    /// order of rows, and so do groups by such sums. Everything else stays as it is for the seed.
    pub fn with_exact_doubles(mut self) -> Self {
        self.exact_doubles = true;
        self
    }

    /// A case with about this many batches of changes.
    pub fn case(mut self, batches: usize) -> Case {
        let tables: Vec<String> = (0..self.between(2, 3)).map(|number| self.table(number)).collect();
        let mut views = Vec::new();
        for number in 0..self.between(4, 7) {
            let view = self.view(number);
            views.push(view);
        }
        let steps = self.history(views.len(), batches);
        Case { tables, views, steps }
    }

    fn table(&mut self, number: usize) -> String {
        let name = format!("t{number}");
        let key_columns = if self.chance(0.5) { self.between(1, 2) } else { 0 };
        // Two columns that every table has, so that joins and windows are always possible.
        let mut columns = vec![
            Column { name: "k".into(), kind: Type::Int },
            Column { name: "g".into(), kind: if self.chance(0.7) { Type::Int } else { Type::Text } },
            Column { name: "ts".into(), kind: Type::Timestamp },
        ];
        for extra in 0..self.between(1, 4) {
            let kind = self.pick(&COLUMN_TYPES);
            columns.push(Column { name: format!("c{extra}"), kind });
        }
        let mut parts: Vec<String> =
            columns.iter().map(|column| format!("{} {}", column.name, column.kind.sql())).collect();
        if key_columns > 0 {
            let key: Vec<&str> = columns[..key_columns].iter().map(|column| column.name.as_str()).collect();
            parts.push(format!("PRIMARY KEY ({})", key.join(", ")));
        }
        let sql = format!("CREATE TABLE {name} ({})", parts.join(", "));
        let relation = Relation { name, columns, key_columns, grows: false };
        self.tables.push(relation.clone());
        self.relations.push(relation);
        sql
    }

    fn view(&mut self, number: usize) -> View {
        let name = format!("v{number}");
        if self.chance(0.12) {
            return self.fallible(name);
        }
        let materialized = self.chance(0.9);
        let (query, columns) = self.query(2);
        let columns = columns.into_iter().map(|column| Column { name: unqualified(&column.name), ..column }).collect();
        let grows = self.grows(&query);
        self.relations.push(Relation { name: name.clone(), columns, key_columns: 0, grows });
        View { name, query, materialized, fallible: None }
    }

    /// Whether a query may have many more rows than a table: joined with its like again and again, such queries would
    /// soon have billions.
    fn grows(&self, sql: &str) -> bool {
        let views = self.relations.iter().filter(|relation| relation.grows);
        sql.contains("JOIN") || views.into_iter().any(|view| sql.contains(view.name.as_str()))
    }

    fn chance(&mut self, probability: f64) -> bool {
        self.rng.random_bool(probability)
    }

    fn between(&mut self, low: usize, high: usize) -> usize {
        self.rng.random_range(low..=high)
    }

    fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        let at = self.rng.random_range(0..items.len());
        items[at].clone()
    }

    fn fresh(&mut self, prefix: &str) -> String {
        self.names += 1;
        format!("{prefix}{}", self.names)
    }
}

fn unqualified(name: &str) -> String {
    name.rsplit('.').next().unwrap_or(name).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_makes_one_case() {
        let case = |seed| format!("{:?}", Generator::new(seed).case(5));
        assert_eq!(case(7), case(7));
        assert_ne!(case(7), case(8));
    }
}
