//! Random histories: what happens to the tables, when views are made, when the server is killed.

use super::{Generator, Relation, Type};

/// One thing that happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Statements, sent one by one. A transaction is one step.
    Change(Vec<String>),
    /// The view of this number is made.
    Create(usize),
    /// kill -9 and start.
    Restart,
}

impl Generator {
    pub(super) fn history(&mut self, views: usize, batches: usize) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut next_view = 0;
        // Most views exist before the data, some are filled from it.
        let late = self.between(0, views / 2);
        while next_view < views - late {
            steps.push(Step::Create(next_view));
            next_view += 1;
        }
        for table in self.tables.clone() {
            let count = self.between(5, 30);
            steps.push(Step::Change(vec![self.insert(&table, count)]));
        }
        for batch in 0..batches {
            steps.push(Step::Change(self.batch()));
            if next_view < views && (self.chance(0.3) || batch + late >= batches) {
                steps.push(Step::Create(next_view));
                next_view += 1;
            }
            if self.chance(0.06) {
                steps.push(Step::Restart);
            }
        }
        while next_view < views {
            steps.push(Step::Create(next_view));
            next_view += 1;
        }
        steps
    }

    fn batch(&mut self) -> Vec<String> {
        if !self.chance(0.25) {
            return vec![self.change()];
        }
        let mut statements = vec!["BEGIN".to_string()];
        for _ in 0..self.between(1, 4) {
            statements.push(self.change());
        }
        statements.push(if self.chance(0.75) { "COMMIT" } else { "ROLLBACK" }.to_string());
        statements
    }

    fn change(&mut self) -> String {
        let table = {
            let tables = self.tables.clone();
            self.pick(&tables)
        };
        match self.between(0, 19) {
            0..=8 => {
                let count = match self.between(0, 15) {
                    // More than is kept together, read at once, or looked at row by row.
                    0 => self.between(100, 300),
                    1..=4 => self.between(10, 40),
                    _ => self.between(1, 6),
                };
                self.insert(&table, count)
            }
            9 => self.insert_select(&table),
            10..=13 => self.update(&table),
            14..=18 => self.delete(&table),
            _ => format!("TRUNCATE {}", table.name),
        }
    }

    fn row(&mut self, table: &Relation, key: usize) -> String {
        let mut values = Vec::new();
        for (position, column) in table.columns.iter().enumerate() {
            let value = if position == 0 && table.key_columns > 0 {
                key.to_string()
            } else {
                self.literal(column.kind, position >= table.key_columns)
            };
            values.push(value);
        }
        format!("({})", values.join(", "))
    }

    fn insert(&mut self, table: &Relation, count: usize) -> String {
        let start = self.between(0, 40);
        let rows: Vec<String> = (0..count).map(|number| self.row(table, start + number)).collect();
        let mut sql = format!("INSERT INTO {} VALUES {}", table.name, rows.join(", "));
        if table.key_columns > 0 && self.chance(0.85) {
            sql.push_str(&self.on_conflict(table));
        }
        sql
    }

    fn on_conflict(&mut self, table: &Relation) -> String {
        let key: Vec<&str> = table.columns[..table.key_columns].iter().map(|column| column.name.as_str()).collect();
        if self.chance(0.4) {
            return format!(" ON CONFLICT ({}) DO NOTHING", key.join(", "));
        }
        let rest = table.columns[table.key_columns..].to_vec();
        let column = self.pick(&rest).name;
        format!(" ON CONFLICT ({}) DO UPDATE SET {column} = excluded.{column}", key.join(", "))
    }

    fn insert_select(&mut self, table: &Relation) -> String {
        let columns: Vec<String> = table
            .columns
            .iter()
            .enumerate()
            .map(|(position, column)| if position == 0 { format!("{} + 7", column.name) } else { column.name.clone() })
            .collect();
        let condition = self.condition(&table.columns, 1);
        let conflict = if table.key_columns > 0 { " ON CONFLICT DO NOTHING" } else { "" };
        // Bounded, so that tables do not double without end.
        let name = &table.name;
        format!("INSERT INTO {name} SELECT {} FROM {name} WHERE k < 40 AND {condition}{conflict}", columns.join(", "))
    }

    fn update(&mut self, table: &Relation) -> String {
        let condition = self.condition(&table.columns, 1);
        let first = table.key_columns;
        let rest = table.columns[first..].to_vec();
        let column = self.pick(&rest);
        let value = self.expression(&table.columns, column.kind, 1);
        let value = if column.kind == Type::Numeric { self.literal(Type::Numeric, true) } else { value };
        format!("UPDATE {} SET {} = {value} WHERE {condition}", table.name, column.name)
    }

    fn delete(&mut self, table: &Relation) -> String {
        let condition = self.condition(&table.columns, 1);
        format!("DELETE FROM {} WHERE {condition}", table.name)
    }
}
