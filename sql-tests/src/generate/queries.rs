//! Random queries over the relations that exist so far.

use super::{Column, Generator, Relation, Type};

/// A FROM clause with what it brings into scope.
struct From {
    sql: String,
    scope: Vec<Column>,
}

impl Generator {
    /// A query and its columns.
    pub(super) fn query(&mut self, depth: usize) -> (String, Vec<Column>) {
        match self.between(0, 27) {
            0..=4 => self.projection(depth),
            5..=9 => self.grouping(depth),
            10 => self.distinct(depth),
            11..=12 => self.set_operation(depth),
            13 => self.top(depth),
            14 | 24 => self.window_function(depth),
            15 | 25 => self.with_subquery(depth),
            16 => self.scalar_subquery(depth),
            17 => self.derived(depth),
            18 => self.common_table(depth),
            19 | 26 => self.top(depth),
            20 => self.window_function(depth),
            21 | 27 => self.recursion(depth),
            22 => self.unnested(depth),
            _ => self.grouping_sets(depth),
        }
    }

    fn named(&mut self, relation: &Relation) -> From {
        let alias = self.fresh("r");
        let scope = relation.columns.iter().map(|column| qualified(&alias, column)).collect();
        From { sql: format!("{} {alias}", relation.name), scope }
    }

    fn from(&mut self, depth: usize) -> From {
        let relation = {
            let relations = self.relations.clone();
            self.pick(&relations)
        };
        if self.chance(0.2)
            && let Some(window) = self.time_window(&relation)
        {
            return window;
        }
        if depth > 0 && self.chance(0.1) {
            return self.joined_in_any_order();
        }
        let left = self.named(&relation);
        if depth > 0 && self.chance(0.45) { self.join(left) } else { left }
    }

    /// Up to four tables that equalities make a tree of, written in any order: one may be crossed with those before it, and be
    /// joined by the condition of one that comes later.
    fn joined_in_any_order(&mut self) -> From {
        let tables = self.tables.clone();
        let first = self.pick(&tables);
        let mut parts = vec![self.named(&first)];
        let mut conditions: Vec<([usize; 2], String)> = Vec::new();
        for _ in 0..self.between(2, 3) {
            let (table, other) = (self.pick(&tables), self.between(0, parts.len() - 1));
            let part = self.named(&table);
            let equal = |a: &Column, b: &Column| (a.kind == b.kind).then(|| (a.name.clone(), b.name.clone()));
            let pairs = parts[other].scope.iter().flat_map(|a| part.scope.iter().filter_map(move |b| equal(a, b)));
            let pairs: Vec<(String, String)> = pairs.collect();
            if pairs.is_empty() {
                continue;
            }
            let (a, b) = self.pair(&pairs);
            conditions.push(([other, parts.len()], format!("{a} = {b}")));
            if self.chance(0.3) {
                let scope: Vec<Column> = parts[other].scope.iter().chain(&part.scope).cloned().collect();
                let condition = self.condition(&scope, 1);
                conditions.push(([other, parts.len()], condition));
            }
            parts.push(part);
        }
        let mut order: Vec<usize> = (0..parts.len()).collect();
        for at in 1..order.len() {
            let other = self.between(0, at);
            order.swap(at, other);
        }
        let mut from = From { sql: parts[order[0]].sql.clone(), scope: parts[order[0]].scope.clone() };
        for at in 1..order.len() {
            let (before, now) = (&order[..at], order[at]);
            let meets =
                |ends: &[usize; 2]| ends.contains(&now) && ends.iter().all(|end| *end == now || before.contains(end));
            let on: Vec<&str> =
                conditions.iter().filter(|(ends, _)| meets(ends)).map(|(_, condition)| condition.as_str()).collect();
            let join = match on.is_empty() {
                true => format!(" CROSS JOIN {}", parts[now].sql),
                false => format!(" JOIN {} ON {}", parts[now].sql, on.join(" AND ")),
            };
            from.sql.push_str(&join);
            from.scope.extend(parts[now].scope.iter().cloned());
        }
        from
    }

    fn join(&mut self, left: From) -> From {
        let relation = {
            let tables_only = self.chance(0.7) || self.grows(&left.sql);
            let relations = if tables_only { self.tables.clone() } else { self.relations.clone() };
            self.pick(&relations)
        };
        let right = if self.chance(0.08) { self.constants() } else { self.named(&relation) };
        let pairs: Vec<(String, String)> = left
            .scope
            .iter()
            .flat_map(|a| right.scope.iter().filter(|b| a.kind == b.kind).map(|b| (a.name.clone(), b.name.clone())))
            .collect();
        if pairs.is_empty() {
            return left;
        }
        let (a, b) = self.pair(&pairs);
        let scope: Vec<Column> = left.scope.iter().chain(&right.scope).cloned().collect();
        if self.chance(0.1) {
            // PostgreSQL has no full join without an equality.
            let (kind, operator) = (self.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN"]), self.pick(&["<", ">=", "<>"]));
            return From { sql: format!("{} {kind} {} ON {a} {operator} {b}", left.sql, right.sql), scope };
        }
        if self.chance(0.25)
            && let Some(range) = self.range(&left.scope, &right.scope)
        {
            let residual = if self.chance(0.3) { format!(" AND {}", self.condition(&scope, 1)) } else { String::new() };
            let (kind, on) = if self.chance(0.5) {
                let kind = self.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
                (kind, format!("{a} = {b} AND {range}{residual}"))
            } else {
                (self.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN"]), format!("{range}{residual}"))
            };
            return From { sql: format!("{} {kind} {} ON {on}", left.sql, right.sql), scope };
        }
        let mut on = format!("{a} = {b}");
        if self.chance(0.3) {
            let (a, b) = self.pick(&pairs);
            on = format!("{on} AND {a} = {b}");
        }
        if self.chance(0.4) {
            let residual = self.condition(&scope, 1);
            on = format!("{on} AND {residual}");
        }
        let kind = self.pick(&["JOIN", "JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"]);
        From { sql: format!("{} {kind} {} ON {on}", left.sql, right.sql), scope }
    }

    /// One of these pairs of columns: mostly of those with few different values, so that rows have partners, and not always
    /// as many.
    fn pair(&mut self, pairs: &[(String, String)]) -> (String, String) {
        let few = |(a, b): &&(String, String)| [a, b].iter().all(|name| name.ends_with(".k") || name.ends_with(".g"));
        let common: Vec<(String, String)> = pairs.iter().filter(few).cloned().collect();
        if !common.is_empty() && self.chance(0.6) { self.pick(&common) } else { self.pick(pairs) }
    }

    /// Constant rows.
    fn constants(&mut self) -> From {
        let (alias, column) = (self.fresh("r"), self.fresh("x"));
        let kind = self.pick(&[Type::Int, Type::Big]);
        let rows: Vec<String> = (0..self.between(1, 4)).map(|_| format!("({})", self.literal(kind, true))).collect();
        let scope = vec![Column { name: format!("{alias}.{column}"), kind }];
        From { sql: format!("(VALUES {}) {alias}({column})", rows.join(", ")), scope }
    }

    /// A condition that holds the values of one side between those of the other, or above or below them.
    fn range(&mut self, left: &[Column], right: &[Column]) -> Option<String> {
        let (of_bounds, bounded) = if self.chance(0.5) { (left, right) } else { (right, left) };
        let value = self.pick(bounded);
        let kind = value.kind;
        let low = self.column_of(of_bounds, kind).filter(|_| kind != Type::Bool)?;
        let high = self.column_of(of_bounds, kind)?;
        let value = match self.between(0, 5) {
            0 => self.expression(bounded, kind, 1),
            _ => value.name,
        };
        let (below, above) = match kind {
            Type::Timestamp => {
                let distance = self.pick(&["30 minutes", "6 hours", "1 day", "1 month", "0 seconds"]);
                (format!("{low} - INTERVAL '{distance}'"), format!("{low} + INTERVAL '{distance}'"))
            }
            Type::Int | Type::Big => {
                let distance = self.between(0, 6);
                (format!("{low} - {distance}"), format!("{low} + {distance}"))
            }
            Type::Float => (format!("{low} - 1.5"), format!("{low} + 1.5")),
            _ => (low.clone(), self.expression(of_bounds, kind, 1)),
        };
        Some(match self.between(0, 6) {
            0 => format!("{value} BETWEEN {low} AND {high}"),
            1 => format!("{value} BETWEEN {low} AND {above}"),
            2 => format!("{value} > {below} AND {value} < {above}"),
            3 => format!("{low} <= {value} AND {value} < {}", self.expression(of_bounds, kind, 1)),
            4 => format!("{value} BETWEEN {below} AND {low}"),
            5 => format!("{low} {} {value}", self.pick(&["<", "<=", ">", ">="])),
            _ => format!("{above} {} {value}", self.pick(&["<", ">="])),
        })
    }

    fn time_window(&mut self, relation: &Relation) -> Option<From> {
        let time = relation.columns.iter().find(|column| column.kind == Type::Timestamp)?.name.clone();
        if relation.columns.iter().any(|column| column.name.starts_with("window_")) {
            return None;
        }
        let alias = self.fresh("w");
        let name = &relation.name;
        // A row is in a few windows only.
        let (size, slide) = self.pick(&[
            ("1 hour", "30 minutes"),
            ("90 minutes", "1 hour"),
            ("90 minutes", "25 minutes"),
            ("6 hours", "100 minutes"),
            ("1 day", "6 hours"),
            ("30 minutes", "1 hour"),
        ]);
        let key = self.pick(&relation.columns).name.clone();
        let call = match self.between(0, 10) {
            0 => format!("TUMBLE({name}, {time}, INTERVAL '{size}')"),
            1 => format!("TUMBLE({name}, {time}, INTERVAL '{size}', INTERVAL '5 minutes')"),
            2 => format!("TABLE(TUMBLE(TABLE {name}, DESCRIPTOR({time}), INTERVAL '{size}'))"),
            3 => format!("TUMBLE(DATA => TABLE {name}, TIMECOL => DESCRIPTOR({time}), SIZE => INTERVAL '{size}')"),
            4 => format!("HOP({name}, {time}, INTERVAL '{slide}', INTERVAL '{size}')"),
            5 => format!("TABLE(HOP(TABLE {name}, DESCRIPTOR({time}), INTERVAL '{slide}', INTERVAL '{size}'))"),
            6 => format!("HOP((SELECT * FROM {name}), {time}, INTERVAL '{slide}', INTERVAL '{size}')"),
            7 => format!("CUMULATE({name}, {time}, INTERVAL '{slide}', INTERVAL '{size}')"),
            8 => format!("SESSION({name}, {time}, INTERVAL '{slide}')"),
            9 => format!("SESSION({name} PARTITION BY {key}, {time}, INTERVAL '{size}')"),
            _ => format!("TABLE(SESSION(TABLE {name} PARTITION BY {key}, DESCRIPTOR({time}), INTERVAL '{slide}'))"),
        };
        let mut scope: Vec<Column> = relation.columns.iter().map(|column| qualified(&alias, column)).collect();
        for bound in ["window_start", "window_end"] {
            scope.push(Column { name: format!("{alias}.{bound}"), kind: Type::Timestamp });
        }
        Some(From { sql: format!("{call} {alias}"), scope })
    }

    /// A WHERE over a FROM: seldom over a join that fills in NULLs, because most conditions take just these rows away.
    fn filter_over(&mut self, from: &From) -> String {
        let fills_in = ["LEFT JOIN", "RIGHT JOIN", "FULL JOIN"].iter().any(|kind| from.sql.contains(kind));
        if fills_in && self.chance(0.7) { String::new() } else { self.filter(&from.scope) }
    }

    fn filter(&mut self, scope: &[Column]) -> String {
        if self.chance(0.35) { format!(" WHERE {}", self.condition(scope, 2)) } else { String::new() }
    }

    /// A select list of these types: "expression AS x1, ...".
    fn select_list(&mut self, scope: &[Column], kinds: &[Type], depth: usize) -> (String, Vec<Column>) {
        let mut columns = Vec::new();
        let mut items = Vec::new();
        for kind in kinds {
            let name = self.fresh("x");
            let expression = self.expression(scope, *kind, depth);
            items.push(format!("{expression} AS {name}"));
            columns.push(Column { name, kind: *kind });
        }
        (items.join(", "), columns)
    }

    fn some_kinds(&mut self, scope: &[Column], most: usize) -> Vec<Type> {
        (0..self.between(1, most)).map(|_| self.pick(scope).kind).collect()
    }

    pub(super) fn projection(&mut self, depth: usize) -> (String, Vec<Column>) {
        let from = self.from(depth);
        let kinds = self.some_kinds(&from.scope, 4);
        let (list, columns) = self.select_list(&from.scope, &kinds, 2);
        let filter = self.filter_over(&from);
        (format!("SELECT {list} FROM {}{filter}", from.sql), columns)
    }

    fn distinct(&mut self, depth: usize) -> (String, Vec<Column>) {
        let from = self.from(depth);
        let kinds = self.some_kinds(&from.scope, 2);
        let (list, columns) = self.select_list(&from.scope, &kinds, 1);
        let filter = self.filter_over(&from);
        (format!("SELECT DISTINCT {list} FROM {}{filter}", from.sql), columns)
    }

    fn aggregates(&mut self, scope: &[Column]) -> (Vec<String>, Vec<Column>) {
        let mut items = Vec::new();
        let mut columns = Vec::new();
        for _ in 0..self.between(2, 7) {
            let (call, kind) = self.aggregate(scope);
            let name = self.fresh("a");
            items.push(format!("{call} AS {name}"));
            columns.push(Column { name, kind });
        }
        (items, columns)
    }

    fn grouping(&mut self, depth: usize) -> (String, Vec<Column>) {
        let from = self.from(depth);
        let filter = self.filter_over(&from);
        let (mut items, mut columns) = self.aggregates(&from.scope);
        if self.chance(0.15) {
            return (format!("SELECT {} FROM {}{filter}", items.join(", "), from.sql), columns);
        }
        let mut keys = Vec::new();
        for _ in 0..self.between(1, 2) {
            let kind = self.pick(&from.scope).kind;
            let expression = self.expression(&from.scope, kind, usize::from(self.names.is_multiple_of(2)));
            // A constant is not a group key (an integer would be a position).
            if !from.scope.iter().any(|column| expression.contains(&column.name)) || keys.contains(&expression) {
                continue;
            }
            let name = self.fresh("g");
            items.push(format!("{expression} AS {name}"));
            columns.push(Column { name, kind });
            keys.push(expression);
        }
        let group = if keys.is_empty() { String::new() } else { format!(" GROUP BY {}", keys.join(", ")) };
        let having = if self.chance(0.2) && !keys.is_empty() { " HAVING count(*) > 1" } else { "" };
        (format!("SELECT {} FROM {}{filter}{group}{having}", items.join(", "), from.sql), columns)
    }

    fn grouping_sets(&mut self, _depth: usize) -> (String, Vec<Column>) {
        let table = {
            let tables = self.tables.clone();
            self.pick(&tables)
        };
        let from = self.named(&table);
        let (items, mut columns) = self.aggregates(&from.scope);
        let (first, second) = (from.scope[0].clone(), from.scope[1].clone());
        let (a, b) = (self.fresh("g"), self.fresh("g"));
        columns.push(Column { name: a.clone(), kind: first.kind });
        columns.push(Column { name: b.clone(), kind: second.kind });
        let sets = match self.between(0, 3) {
            0 => format!("ROLLUP ({}, {})", first.name, second.name),
            1 => format!("CUBE ({}, {})", first.name, second.name),
            2 => format!("GROUPING SETS (({}, {}), ({}), ({}), ())", first.name, second.name, second.name, second.name),
            _ => format!("GROUPING SETS (({}), ({}), ())", first.name, second.name),
        };
        let mut list = format!("{}, {} AS {a}, {} AS {b}", items.join(", "), first.name, second.name);
        if self.chance(0.5) {
            let name = self.fresh("g");
            let arguments = self.pick(&[first.name.clone(), format!("{}, {}", second.name, first.name)]);
            list.push_str(&format!(", GROUPING({arguments}) AS {name}"));
            columns.push(Column { name, kind: Type::Int });
        }
        let filter = self.filter_over(&from);
        (format!("SELECT {list} FROM {}{filter} GROUP BY {sets}", from.sql), columns)
    }

    fn set_operation(&mut self, depth: usize) -> (String, Vec<Column>) {
        let kinds = {
            let from = self.from(0);
            self.some_kinds(&from.scope, 2)
        };
        let side = |generator: &mut Self| {
            let from = generator.from(depth.saturating_sub(1));
            let (list, columns) = generator.select_list(&from.scope, &kinds, 1);
            let filter = generator.filter_over(&from);
            (format!("SELECT {list} FROM {}{filter}", from.sql), columns)
        };
        let (left, columns) = side(self);
        let (right, _) = side(self);
        let operator = self.pick(&["UNION ALL", "UNION ALL", "UNION", "EXCEPT", "INTERSECT"]);
        (format!("{left} {operator} {right}"), columns)
    }

    fn with_subquery(&mut self, depth: usize) -> (String, Vec<Column>) {
        let from = self.from(depth.saturating_sub(1));
        let table = {
            let tables = self.tables.clone();
            self.pick(&tables)
        };
        let inner = self.named(&table);
        let kinds = self.some_kinds(&from.scope, 3);
        let (list, columns) = self.select_list(&from.scope, &kinds, 1);
        let shared: Vec<(String, String)> = from
            .scope
            .iter()
            .flat_map(|a| inner.scope.iter().filter(|b| a.kind == b.kind).map(|b| (a.name.clone(), b.name.clone())))
            .collect();
        if shared.is_empty() {
            return self.projection(depth);
        }
        let (outer, key) = self.pair(&shared);
        let condition = self.condition(&inner.scope, 1);
        let range = if self.chance(0.25) { self.range(&from.scope, &inner.scope) } else { None };
        let correlated = if let Some(range) = range {
            format!("{condition} AND {range}")
        } else if self.chance(0.4) {
            let (outer, inner) = self.pick(&shared);
            format!("{condition} AND {inner} {} {outer}", self.pick(&["<", ">=", "<>"]))
        } else {
            condition.clone()
        };
        let equal = if self.chance(0.7) { format!("{key} = {outer} AND ") } else { String::new() };
        let form = self.between(0, 3);
        let predicate = match form {
            0 => format!("{outer} IN (SELECT {key} FROM {} WHERE {condition})", inner.sql),
            1 => format!("{outer} NOT IN (SELECT {key} FROM {} WHERE {correlated})", inner.sql),
            2 => format!("EXISTS (SELECT 1 FROM {} WHERE {equal}{correlated})", inner.sql),
            _ => format!("NOT EXISTS (SELECT 1 FROM {} WHERE {equal}{correlated})", inner.sql),
        };
        // Under OR, DataFusion takes NOT IN for true where it is unknown.
        let predicate = if form != 1 && self.chance(0.3) {
            format!("({predicate} OR {})", self.condition(&from.scope, 1))
        } else {
            predicate
        };
        (format!("SELECT {list} FROM {} WHERE {predicate}", from.sql), columns)
    }

    /// A row for each item of an array.
    fn unnested(&mut self, depth: usize) -> (String, Vec<Column>) {
        let from = self.from(depth.saturating_sub(1));
        let (kinds, item) = (self.some_kinds(&from.scope, 2), self.pick(&from.scope).kind);
        let (list, mut columns) = self.select_list(&from.scope, &kinds, 1);
        let items: Vec<String> = (0..self.between(1, 3)).map(|_| self.expression(&from.scope, item, 1)).collect();
        let array = format!("ARRAY[{}]", items.join(", "));
        let array = match self.between(0, 3) {
            0 => format!("CASE WHEN {} THEN {array} END", self.condition(&from.scope, 1)),
            _ => array,
        };
        let (name, filter) = (self.fresh("x"), self.filter_over(&from));
        columns.push(Column { name: name.clone(), kind: item });
        (format!("SELECT {list}, unnest({array}) AS {name} FROM {}{filter}", from.sql), columns)
    }

    /// Rows that are reached from others, in one table or over two: rounds without end, or two at most.
    fn recursion(&mut self, depth: usize) -> (String, Vec<Column>) {
        let (first, second) = {
            let tables = self.tables.clone();
            (self.pick(&tables), self.pick(&tables))
        };
        let (start, edge) = (self.named(&first), self.named(&second));
        let walks = |column: &&Column| matches!(column.kind, Type::Int | Type::Big | Type::Date | Type::Timestamp);
        let mut walkable: Vec<(Column, Column, Column)> = Vec::new();
        for from in start.scope.iter().filter(walks) {
            for a in edge.scope.iter().filter(|a| a.kind == from.kind) {
                let ends = edge.scope.iter().filter(|b| b.kind == from.kind);
                walkable.extend(ends.map(|b| (from.clone(), a.clone(), b.clone())));
            }
        }
        if walkable.is_empty() {
            return self.projection(depth);
        }
        let is_integer = |(from, ..): &&(Column, Column, Column)| from.kind == Type::Int;
        let common: Vec<(Column, Column, Column)> = walkable.iter().filter(is_integer).cloned().collect();
        let (from, a, b) =
            if !common.is_empty() && self.chance(0.6) { self.pick(&common) } else { self.pick(&walkable) };
        let (name, alias, x, level) = (self.fresh("cte"), self.fresh("r"), self.fresh("x"), self.fresh("x"));
        let filter = self.filter(&start.scope);
        let residual =
            if self.chance(0.3) { format!(" AND {}", self.condition(&edge.scope, 1)) } else { String::new() };
        let mut scope = vec![Column { name: format!("{name}.{x}"), kind: from.kind }];
        let recursive = if self.chance(0.7) {
            // A term that does not take the rows one by one is recomputed.
            let distinct = if self.chance(0.25) { "DISTINCT " } else { "" };
            format!(
                "{name}({x}) AS (SELECT {} FROM {}{filter} UNION SELECT {distinct}{} FROM {name} {alias} JOIN {} ON {alias}.{x} = {}{residual})",
                from.name, start.sql, b.name, edge.sql, a.name
            )
        } else {
            scope.push(Column { name: format!("{name}.{level}"), kind: Type::Int });
            format!(
                "{name}({x}, {level}) AS (SELECT {}, 0 FROM {}{filter} UNION ALL SELECT {}, {level} + 1 FROM {name} {alias} \
                 JOIN {} ON {alias}.{x} = {}{residual} WHERE {level} < 1)",
                from.name, start.sql, b.name, edge.sql, a.name
            )
        };
        let kinds = self.some_kinds(&scope, 2);
        let (list, columns) = self.select_list(&scope, &kinds, 1);
        (format!("WITH RECURSIVE {recursive} SELECT {list} FROM {name}"), columns)
    }

    fn scalar_subquery(&mut self, depth: usize) -> (String, Vec<Column>) {
        let from = self.from(depth.saturating_sub(1));
        let Some(number) = self.column_of(&from.scope, Type::Int) else { return self.projection(depth) };
        let table = {
            let tables = self.tables.clone();
            self.pick(&tables)
        };
        let inner = self.named(&table);
        let kinds = self.some_kinds(&from.scope, 3);
        let (list, mut columns) = self.select_list(&from.scope, &kinds, 1);
        let key = inner.scope[0].name.clone();
        let function = self.pick(&["max", "min", "count"]);
        if self.chance(0.5) {
            let operator = self.pick(&["<", ">=", "="]);
            let sql = format!(
                "SELECT {list} FROM {} WHERE {number} {operator} (SELECT {function}({key}) FROM {})",
                from.sql, inner.sql
            );
            return (sql, columns);
        }
        let name = self.fresh("x");
        let sql = format!(
            "SELECT {list}, (SELECT count(*) FROM {} WHERE {key} = {number}) AS {name} FROM {}",
            inner.sql, from.sql
        );
        columns.push(Column { name, kind: Type::Big });
        (sql, columns)
    }

    fn derived(&mut self, depth: usize) -> (String, Vec<Column>) {
        if depth == 0 {
            return self.projection(0);
        }
        let (inner, columns) = self.query(depth - 1);
        let alias = self.fresh("q");
        let scope: Vec<Column> = columns.iter().map(|column| qualified(&alias, column)).collect();
        let kinds = self.some_kinds(&scope, 3);
        let (list, columns) = self.select_list(&scope, &kinds, 1);
        let filter = self.filter(&scope);
        (format!("SELECT {list} FROM ({inner}) {alias}{filter}"), columns)
    }

    fn common_table(&mut self, depth: usize) -> (String, Vec<Column>) {
        if depth == 0 {
            return self.grouping(0);
        }
        let (inner, columns) = self.query(depth - 1);
        let (name, a, b) = (self.fresh("cte"), self.fresh("r"), self.fresh("r"));
        if self.grows(&inner) {
            let scope: Vec<Column> = columns.iter().map(|column| qualified(&a, column)).collect();
            let kinds = self.some_kinds(&scope, 3);
            let (list, outer) = self.select_list(&scope, &kinds, 1);
            return (format!("WITH {name} AS ({inner}) SELECT {list} FROM {name} {a}"), outer);
        }
        let key = self.pick(&columns);
        let scope: Vec<Column> =
            [&a, &b].iter().flat_map(|alias| columns.iter().map(|column| qualified(alias, column))).collect();
        let kinds = self.some_kinds(&scope, 3);
        let (list, outer) = self.select_list(&scope, &kinds, 1);
        let key = &key.name;
        let sql =
            format!("WITH {name} AS ({inner}) SELECT {list} FROM {name} {a} JOIN {name} {b} ON {a}.{key} = {b}.{key}");
        (sql, outer)
    }
}

fn qualified(alias: &str, column: &Column) -> Column {
    let bare = super::unqualified(&column.name);
    Column { name: format!("{alias}.{bare}"), kind: column.kind }
}
