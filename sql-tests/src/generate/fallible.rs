//! Random views of which rows fail, with queries that tell which rows are left, and how many failures are listed.
//!
//! What fails is a division by zero, or a sum of two numbers that are nearly too large. That happens for some rows and for
//! others not, and changes with the tables.

use super::{Generator, Relation, View};

/// What holds of a view of which rows may fail. None of these queries fails.
#[derive(Debug, Clone)]
pub struct Fallible {
    /// The rows that do not fail.
    pub rows: String,
    /// How many rows its errors have.
    pub errors: String,
}

/// A number of which there can be one in a sum of doubles, but not two.
const LARGE: &str = "'1e308'::double precision";

impl Generator {
    /// A view of which rows may fail.
    pub(super) fn fallible(&mut self, name: String) -> View {
        let table = {
            let tables = self.tables.clone();
            self.pick(&tables)
        };
        let (query, rows, errors) = match self.between(0, 6) {
            0 => self.failing_column(&table),
            1 => self.failing_condition(&table),
            2 => self.failing_column_of_groups(&table),
            3 => self.failing_groups(&table),
            4 => self.failing_pairs(&table),
            5 => self.failing_partitions(&table),
            _ => self.failing_whole(&table),
        };
        View { name, query, materialized: true, fallible: Some(Fallible { rows, errors }) }
    }

    /// A number that is zero for some rows of a table.
    fn divisor(&mut self, alias: &str) -> String {
        format!("({alias}.k % {})", self.between(2, 6))
    }

    fn failing_column(&mut self, Relation { name: table, .. }: &Relation) -> (String, String, String) {
        let (r, x, y) = (self.fresh("r"), self.fresh("x"), self.fresh("x"));
        let divisor = self.divisor(&r);
        let select = |divisor: &str| format!("SELECT {r}.g AS {x}, 100 / {divisor} AS {y} FROM {table} {r}");
        let rows = format!("{} WHERE {divisor} IS DISTINCT FROM 0", select(&format!("nullif({divisor}, 0)")));
        (select(&divisor), rows, format!("SELECT count(*) FROM {table} {r} WHERE {divisor} = 0"))
    }

    fn failing_condition(&mut self, Relation { name: table, .. }: &Relation) -> (String, String, String) {
        let (r, x, y) = (self.fresh("r"), self.fresh("x"), self.fresh("x"));
        let (divisor, least) = (self.divisor(&r), self.between(0, 60));
        let select = |divisor: &str| {
            format!("SELECT {r}.g AS {x}, {r}.k AS {y} FROM {table} {r} WHERE 100 / {divisor} > {least}")
        };
        let errors = format!("SELECT count(*) FROM {table} {r} WHERE {divisor} = 0");
        (select(&divisor), select(&format!("nullif({divisor}, 0)")), errors)
    }

    /// A column over the results of groups.
    fn failing_column_of_groups(&mut self, Relation { name: table, .. }: &Relation) -> (String, String, String) {
        let (r, q, x, y) = (self.fresh("r"), self.fresh("q"), self.fresh("x"), self.fresh("x"));
        let divisor = format!("(count(*) % {})", self.between(2, 4));
        let select =
            |divisor: &str| format!("SELECT {r}.g AS {x}, 100 / {divisor} AS {y} FROM {table} {r} GROUP BY {r}.g");
        let rows = format!("{} HAVING {divisor} <> 0", select(&format!("nullif({divisor}, 0)")));
        let failing = format!("SELECT {r}.g FROM {table} {r} GROUP BY {r}.g HAVING {divisor} = 0");
        (select(&divisor), rows, format!("SELECT count(*) FROM ({failing}) {q}"))
    }

    /// An aggregate that fails for groups with two rows of a kind.
    fn failing_groups(&mut self, Relation { name: table, .. }: &Relation) -> (String, String, String) {
        let (r, q, x, y) = (self.fresh("r"), self.fresh("q"), self.fresh("x"), self.fresh("x"));
        let kind = format!("{} = 0", self.divisor(&r));
        let query = format!(
            "SELECT {r}.g AS {x}, sum(CASE WHEN {kind} THEN {LARGE} ELSE 0 END) AS {y} FROM {table} {r} GROUP BY {r}.g"
        );
        let count = format!("count(*) FILTER (WHERE {kind})");
        let rows = format!(
            "SELECT {r}.g AS {x}, CASE WHEN {count} = 1 THEN {LARGE} ELSE 0 END AS {y} FROM {table} {r} GROUP BY {r}.g HAVING {count} < 2"
        );
        let failing = format!("SELECT {r}.g FROM {table} {r} GROUP BY {r}.g HAVING {count} > 1");
        (query, rows, format!("SELECT count(*) FROM ({failing}) {q}"))
    }

    /// A condition that fails for pairs of rows: they do not meet.
    fn failing_pairs(&mut self, Relation { name: table, .. }: &Relation) -> (String, String, String) {
        let (a, b, x, y) = (self.fresh("r"), self.fresh("r"), self.fresh("x"), self.fresh("x"));
        let (kind, least) = (self.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]), self.between(0, 40));
        let divisor = format!("(({a}.k + {b}.k) % {})", self.between(3, 7));
        let select = |divisor: &str| {
            format!(
                "SELECT {a}.k AS {x}, {b}.k AS {y} FROM {table} {a} {kind} {table} {b} ON {a}.g = {b}.g AND 100 / {divisor} > {least}"
            )
        };
        let errors = format!("SELECT count(*) FROM {table} {a} JOIN {table} {b} ON {a}.g = {b}.g AND {divisor} = 0");
        (select(&divisor), select(&format!("nullif({divisor}, 0)")), errors)
    }

    /// A window function that fails for partitions with two rows of a kind.
    fn failing_partitions(&mut self, Relation { name: table, .. }: &Relation) -> (String, String, String) {
        let (r, q, x, y) = (self.fresh("r"), self.fresh("q"), self.fresh("x"), self.fresh("x"));
        let kind = format!("{} = 0", self.divisor(&r));
        let query = format!(
            "SELECT {r}.g AS {x}, sum(CASE WHEN {kind} THEN {LARGE} ELSE 0 END) OVER (PARTITION BY {r}.g) AS {y} FROM {table} {r}"
        );
        let count =
            format!("SELECT {r}.g, count(CASE WHEN {kind} THEN 1 END) OVER (PARTITION BY {r}.g) AS n FROM {table} {r}");
        let rows =
            format!("SELECT g AS {x}, CASE WHEN n = 1 THEN {LARGE} ELSE 0 END AS {y} FROM ({count}) {q} WHERE n < 2");
        let failing =
            format!("SELECT {r}.g FROM {table} {r} GROUP BY {r}.g HAVING count(CASE WHEN {kind} THEN 1 END) > 1");
        (query, rows, format!("SELECT count(*) FROM ({failing}) {q}"))
    }

    /// A query that is computed as a whole, and so fails as a whole.
    fn failing_whole(&mut self, Relation { name: table, .. }: &Relation) -> (String, String, String) {
        let (cte, r, x) = (self.fresh("cte"), self.fresh("r"), self.fresh("x"));
        let divisor = format!("({r}.k - {})", self.between(0, 20));
        let select = |divisor: &str| {
            format!(
                "WITH RECURSIVE {cte}({x}) AS (SELECT 100 / {divisor} FROM {table} {r} UNION \
                 SELECT DISTINCT {r}.k FROM {cte} JOIN {table} {r} ON {cte}.{x} = {r}.k + 1) SELECT {x} FROM {cte}"
            )
        };
        let rows = format!(
            "{} WHERE NOT EXISTS (SELECT 1 FROM {table} {r} WHERE {divisor} = 0)",
            select(&format!("nullif({divisor}, 0)"))
        );
        (select(&divisor), rows, format!("SELECT least(count(*), 1) FROM {table} {r} WHERE {divisor} = 0"))
    }
}
