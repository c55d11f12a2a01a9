//! Random queries that depend on an order: LIMIT, DISTINCT ON, numbered rows, window functions.
//!
//! Orders are by all columns wherever it matters which of equal rows comes first.

use super::{Column, Generator, Type};

impl Generator {
    /// Columns in random directions, as an ORDER BY.
    fn order(&mut self, columns: &[String]) -> String {
        let directed = columns.iter().map(|column| {
            let direction = self.pick(&["", " DESC", " NULLS FIRST", " DESC NULLS LAST"]);
            format!("{column}{direction}")
        });
        directed.collect::<Vec<_>>().join(", ")
    }

    fn shuffled(&mut self, columns: &[Column]) -> Vec<String> {
        let mut names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        for last in (1..names.len()).rev() {
            let other = self.between(0, last);
            names.swap(last, other);
        }
        names
    }

    /// The first rows in an order.
    pub(super) fn top(&mut self, depth: usize) -> (String, Vec<Column>) {
        match self.between(0, 5) {
            0 => return self.distinct_on(depth),
            1 | 2 => return self.numbered(depth),
            _ => {}
        }
        let (inner, columns) = self.projection(depth);
        let mut by = self.shuffled(&columns);
        let rows = self.between(1, 6);
        let offset = if self.chance(0.3) { format!(" OFFSET {}", self.between(1, 3)) } else { String::new() };
        let limit = match self.between(0, 5) {
            0 => format!(" OFFSET {rows}"),
            1 => {
                by.truncate(1);
                // What OFFSET leaves out must be known too.
                format!(" FETCH FIRST {rows} ROWS WITH TIES")
            }
            _ => format!("{offset} LIMIT {rows}"),
        };
        let alias = self.fresh("q");
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let order = self.order(&by);
        (format!("SELECT {} FROM ({inner}) {alias} ORDER BY {order}{limit}", names.join(", ")), columns)
    }

    fn distinct_on(&mut self, depth: usize) -> (String, Vec<Column>) {
        let (inner, columns) = self.projection(depth);
        let by = self.shuffled(&columns);
        let (alias, order) = (self.fresh("q"), self.order(&by));
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let sql =
            format!("SELECT DISTINCT ON ({}) {} FROM ({inner}) {alias} ORDER BY {order}", by[0], names.join(", "));
        (sql, columns)
    }

    /// Rows whose number is within bounds.
    fn numbered(&mut self, depth: usize) -> (String, Vec<Column>) {
        let (inner, mut columns) = self.projection(depth);
        let mut by = self.shuffled(&columns);
        let function = self.pick(&["row_number", "row_number", "rank", "dense_rank"]);
        if function != "row_number" {
            by.truncate(1);
        }
        let partition =
            if self.chance(0.6) { format!("PARTITION BY {} ", self.pick(&columns).name) } else { String::new() };
        let (order, most) = (self.order(&by), self.between(1, 4));
        let (alias, around, number) = (self.fresh("q"), self.fresh("q"), self.fresh("n"));
        let condition = match self.between(0, 4) {
            0 => format!("{number} = {most}"),
            1 => format!("{number} < {}", most + 1),
            2 => format!("{number} BETWEEN 2 AND {}", most + 1),
            3 => format!("{most} >= {number} AND {}", self.condition(&columns, 1)),
            _ => format!("{number} <= {most}"),
        };
        let mut names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        let list = names.join(", ");
        if self.chance(0.5) {
            columns.push(Column { name: number.clone(), kind: Type::Big });
            names.push(number.clone());
        }
        let sql = format!(
            "SELECT {} FROM (SELECT {list}, {function}() OVER ({partition}ORDER BY {order}) AS {number} FROM ({inner}) {alias}) {around} WHERE {condition}",
            names.join(", ")
        );
        (sql, columns)
    }

    /// A frame over rows, or one that takes peers together.
    fn frame(&mut self) -> String {
        let units = self.pick(&["ROWS", "ROWS", "GROUPS"]);
        let bounds = self.pick(&[
            "UNBOUNDED PRECEDING AND CURRENT ROW",
            "1 PRECEDING AND CURRENT ROW",
            "2 PRECEDING AND 1 FOLLOWING",
            "CURRENT ROW AND UNBOUNDED FOLLOWING",
            "1 FOLLOWING AND 3 FOLLOWING",
            "UNBOUNDED PRECEDING AND 1 PRECEDING",
            "UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
        ]);
        format!(" {units} BETWEEN {bounds}{}", self.exclusion())
    }

    /// What a frame leaves out, most often nothing.
    fn exclusion(&mut self) -> &'static str {
        self.pick(&["", "", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS"])
    }

    /// A frame that takes peers together, or none.
    fn frame_of_peers(&mut self) -> String {
        if self.chance(0.5) {
            return String::new();
        }
        let bounds = self.pick(&[
            "RANGE UNBOUNDED PRECEDING",
            "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
            "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
            "GROUPS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
            "GROUPS CURRENT ROW",
            "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
        ]);
        format!(" {bounds}{}", self.exclusion())
    }

    /// Window functions over all rows.
    pub(super) fn window_function(&mut self, depth: usize) -> (String, Vec<Column>) {
        let (inner, mut columns) = self.projection(depth);
        let all: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        let own = columns.clone();
        let mut calls = String::new();
        for number in 0..self.between(1, 2) {
            // Which copy of a row has which place in two orders is not said.
            let most = if number == 0 { 10 } else { 3 };
            let (call, kind) = self.window_call(&own, most);
            let name = self.fresh("f");
            calls.push_str(&format!(", {call} AS {name}"));
            columns.push(Column { name, kind });
        }
        let alias = self.fresh("q");
        (format!("SELECT {}{calls} FROM ({inner}) {alias}", all.join(", ")), columns)
    }

    /// One of the first so many kinds of calls; up to the fourth, they are the same for equal rows.
    fn window_call(&mut self, columns: &[Column], most: usize) -> (String, Type) {
        let partition =
            if self.chance(0.6) { format!("PARTITION BY {} ", self.pick(columns).name) } else { String::new() };
        let total = {
            let by = self.shuffled(columns);
            self.order(&by)
        };
        // Peers are taken together, so the order need not be by all columns.
        let by_peers = {
            let by = vec![self.pick(columns).name];
            self.order(&by)
        };
        let numbers: Vec<String> = columns
            .iter()
            .filter(|column| matches!(column.kind, Type::Int | Type::Big | Type::Numeric))
            .map(|column| column.name.clone())
            .collect();
        let value = self.pick(columns);
        match self.between(0, most) {
            0 => (format!("dense_rank() OVER ({partition}ORDER BY {by_peers})"), Type::Big),
            1 => (format!("rank() OVER ({partition}ORDER BY {by_peers})"), Type::Big),
            2 => {
                let frame = self.frame_of_peers();
                (format!("count({}) OVER ({partition}ORDER BY {by_peers}{frame})", value.name), Type::Big)
            }
            3 if numbers.is_empty() => (format!("count(*) OVER ({partition})"), Type::Big),
            3 => {
                let (function, frame) = (self.pick(&["sum", "sum", "max"]), self.frame_of_peers());
                let number = self.pick(&numbers);
                (format!("{function}({number}) OVER ({partition}ORDER BY {by_peers}{frame})"), Type::Numeric)
            }
            4 => (format!("row_number() OVER ({partition}ORDER BY {total})"), Type::Big),
            5 => {
                let (function, rows) = (self.pick(&["lag", "lead"]), self.between(1, 2));
                (format!("{function}({}, {rows}) OVER ({partition}ORDER BY {total})", value.name), value.kind)
            }
            6 => {
                let (function, frame) =
                    (self.pick(&["first_value", "last_value"]), self.frame().replace("GROUPS", "ROWS"));
                (format!("{function}({}) OVER ({partition}ORDER BY {total}{frame})", value.name), value.kind)
            }
            7 => {
                let (function, condition) = (self.pick(&["bool_and", "bool_or", "every"]), self.condition(columns, 1));
                (format!("{function}({condition}) OVER ({partition}ORDER BY {total}{})", self.frame()), Type::Bool)
            }
            8 => {
                let (function, kind) = (self.pick(&["bit_and", "bit_or"]), self.pick(&[Type::Int, Type::Big]));
                let (value, filter) = (self.expression(columns, kind, 1), self.condition(columns, 1));
                let filter = if self.chance(0.3) { format!(" FILTER (WHERE {filter})") } else { String::new() };
                (format!("{function}({value}){filter} OVER ({partition}ORDER BY {total}{})", self.frame()), kind)
            }
            _ if numbers.is_empty() => {
                (format!("count(*) OVER ({partition}ORDER BY {total}{})", self.frame()), Type::Big)
            }
            _ => {
                let (function, frame, number) = (self.pick(&["max", "sum", "min"]), self.frame(), self.pick(&numbers));
                (format!("{function}({number}) OVER ({partition}ORDER BY {total}{frame})"), Type::Numeric)
            }
        }
    }
}
