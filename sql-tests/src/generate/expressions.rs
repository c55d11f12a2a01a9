//! Random scalar expressions over columns in scope. None of them can fail.

use super::{Column, Generator, Type};

impl Generator {
    /// A column of this type, if there is one.
    pub(super) fn column_of(&mut self, scope: &[Column], kind: Type) -> Option<String> {
        let fitting: Vec<&Column> = scope.iter().filter(|column| column.kind == kind).collect();
        if fitting.is_empty() { None } else { Some(self.pick(&fitting).name.clone()) }
    }

    /// A literal; sometimes NULL if `nullable`.
    pub(super) fn literal(&mut self, kind: Type, nullable: bool) -> String {
        if nullable && self.chance(0.15) {
            return format!("NULL::{}", kind.sql());
        }
        match kind {
            Type::Int => (self.between(0, 25) as i64 - 5).to_string(),
            Type::Big => format!("{}::bigint", self.between(0, 40) as i64 - 10),
            Type::Numeric => format!("{}.{:02}", self.between(0, 30) as i64 - 8, self.between(0, 99)),
            Type::Float => {
                let number =
                    self.pick(&["0", "-0", "1.5", "-2.25", "1e10", "0.1", "0.2", "3", "NaN", "Infinity", "-7.125"]);
                let number = match number {
                    "0.1" if self.exact_doubles => "0.125",
                    "0.2" if self.exact_doubles => "0.25",
                    number => number,
                };
                format!("'{number}'::double precision")
            }
            Type::Text => {
                let text = self.pick(&["", "a", "b", "ab", "B", "ba", "naïve", "x y", "it''s", "日本", "%"]);
                format!("'{text}'")
            }
            Type::Bool => self.pick(&["true", "false"]).to_string(),
            Type::Timestamp => format!(
                "TIMESTAMP '{} {:02}:{:02}:00'",
                self.pick(&["2024-01-01", "2024-01-02", "2023-12-31", "1969-12-31"]),
                self.between(0, 23),
                self.pick(&[0, 10, 15, 30, 59])
            ),
            Type::Date => {
                format!("DATE '{}'", self.pick(&["2024-01-01", "2024-01-02", "2024-02-29", "1969-12-31"]))
            }
        }
    }

    /// An expression of this type.
    pub(super) fn expression(&mut self, scope: &[Column], kind: Type, depth: usize) -> String {
        if depth == 0 || self.chance(0.35) {
            if self.chance(0.85)
                && let Some(column) = self.column_of(scope, kind)
            {
                return column;
            }
            return self.literal(kind, true);
        }
        if self.chance(0.12) {
            let condition = self.condition(scope, depth - 1);
            let (yes, no) = (self.expression(scope, kind, depth - 1), self.expression(scope, kind, depth - 1));
            return format!("CASE WHEN {condition} THEN {yes} ELSE {no} END");
        }
        if self.chance(0.1) {
            let (first, second) = (self.expression(scope, kind, depth - 1), self.literal(kind, false));
            return format!("coalesce({first}, {second})");
        }
        match kind {
            Type::Int => self.integer(scope, depth - 1),
            Type::Big => {
                let inner = self.expression(scope, Type::Int, depth - 1);
                format!("CAST({inner} AS bigint)")
            }
            Type::Numeric => self.numeric(scope, depth - 1),
            Type::Float if self.chance(0.4) => {
                let integer = self.expression(scope, Type::Int, depth - 1);
                let condition = if self.chance(0.5) { self.condition(scope, 0) } else { "false".into() };
                let special = self.pick(&["NaN", "Infinity"]);
                format!(
                    "CASE WHEN {condition} THEN '{special}'::double precision ELSE CAST({integer} AS double precision) END"
                )
            }
            Type::Float => {
                let inner = self.expression(scope, Type::Float, depth - 1);
                let form = self.pick(&["(X + 1.5)", "(X * 2)", "(- X)", "abs(X)"]);
                form.replace('X', &inner)
            }
            Type::Text => {
                let inner = self.expression(scope, Type::Text, depth - 1);
                let form = self.pick(&["lower(X)", "upper(X)", "(X || 'z')", "substring(X, 1, 2)", "trim(X)"]);
                form.replace('X', &inner)
            }
            Type::Bool => self.condition(scope, depth - 1),
            Type::Timestamp => {
                let inner = self.expression(scope, Type::Timestamp, depth - 1);
                let form = self.pick(&["(@ + INTERVAL '1 hour')", "date_trunc('hour', @)", "(@ - INTERVAL '1 day')"]);
                form.replace('@', &inner)
            }
            Type::Date => {
                let inner = self.expression(scope, Type::Timestamp, depth - 1);
                format!("CAST({inner} AS date)")
            }
        }
    }

    fn integer(&mut self, scope: &[Column], depth: usize) -> String {
        let left = self.expression(scope, Type::Int, depth);
        match self.between(0, 6) {
            0 => format!("({left} + {})", self.between(0, 9)),
            1 => format!("({left} % {})", self.between(2, 5)),
            2 => format!("abs({left} % 1000)"),
            3 => {
                let text = self.expression(scope, Type::Text, depth);
                format!("CAST(length({text}) AS int)")
            }
            4 => {
                let time = self.expression(scope, Type::Timestamp, depth);
                format!("CAST(extract(hour FROM {time}) AS int)")
            }
            5 => format!("(({left} % 1000) / {})", self.between(2, 4)),
            _ => {
                let right = self.expression(scope, Type::Int, depth);
                format!("(({left} % 1000) - ({right} % 1000))")
            }
        }
    }

    fn numeric(&mut self, scope: &[Column], depth: usize) -> String {
        let inner = self.expression(scope, Type::Numeric, depth);
        match self.between(0, 7) {
            0 => format!("({inner} + 1.25)"),
            1 => format!("({inner} - {})", self.between(0, 9)),
            2 => format!("abs({inner})"),
            3 => format!("({inner} * {})", self.pick(&["0.5", "-1.125", "3", "0"])),
            4 => format!("({inner} / {})", self.pick(&["2", "3.5", "-7", "90"])),
            5 => format!("round({inner} / 7, {})", self.between(0, 4)),
            6 => format!("({inner} % 2.5)"),
            _ => {
                let integer = self.expression(scope, Type::Int, depth);
                format!("CAST(({integer} % 10000) AS numeric(10,2))")
            }
        }
    }

    /// A condition.
    pub(super) fn condition(&mut self, scope: &[Column], depth: usize) -> String {
        if depth > 0 && self.chance(0.3) {
            let (left, right) = (self.condition(scope, depth - 1), self.condition(scope, depth - 1));
            return match self.between(0, 2) {
                0 => format!("({left} AND {right})"),
                1 => format!("({left} OR {right})"),
                _ => format!("(NOT {left})"),
            };
        }
        let kind = self.pick(scope).kind;
        let left = self.expression(scope, kind, depth.min(1));
        match self.between(0, 7) {
            0 => format!("({left} IS NULL)"),
            1 => format!("({left} IS NOT NULL)"),
            2 if kind == Type::Text => {
                format!("({left} LIKE '{}')", self.pick(&["a%", "%b", "_", "%", "%a%"]))
            }
            2 | 3 if kind != Type::Bool => {
                let (low, high) = (self.literal(kind, false), self.literal(kind, true));
                let word = if self.chance(0.3) { "NOT BETWEEN" } else { "BETWEEN" };
                format!("({left} {word} {low} AND {high})")
            }
            4 => {
                let items: Vec<String> = (0..self.between(1, 3)).map(|_| self.literal(kind, true)).collect();
                let word = if self.chance(0.3) { "NOT IN" } else { "IN" };
                format!("({left} {word} ({}))", items.join(", "))
            }
            5 => {
                let right = self.expression(scope, kind, 0);
                let word = if self.chance(0.5) { "IS DISTINCT FROM" } else { "IS NOT DISTINCT FROM" };
                format!("({left} {word} {right})")
            }
            _ => {
                let right = self.expression(scope, kind, 0);
                let operator = self.pick(&["=", "<>", "<", "<=", ">", ">="]);
                format!("({left} {operator} {right})")
            }
        }
    }
}
