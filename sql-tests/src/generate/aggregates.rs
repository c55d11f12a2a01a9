//! Random aggregate calls. Where the order of rows would show, it is part of the call.

use super::{Column, Generator, Type};

impl Generator {
    /// An aggregate call and its type.
    pub(super) fn aggregate(&mut self, scope: &[Column]) -> (String, Type) {
        match self.between(0, 19) {
            0..=9 => self.simple_aggregate(scope),
            10..=11 => self.moment(scope),
            12..=13 => self.percentile(scope),
            14 => self.bits(scope),
            15..=16 => self.text_aggregate(scope),
            17 => self.truth(scope),
            18 => self.pairs(scope),
            _ => self.json(scope),
        }
    }

    fn simple_aggregate(&mut self, scope: &[Column]) -> (String, Type) {
        let mut kind = self.pick(scope).kind;
        let name = self.pick(&["count", "count", "sum", "sum", "avg", "min", "max"]);
        if matches!(name, "sum" | "avg") {
            kind = self.pick(&[Type::Int, Type::Big, Type::Numeric, Type::Float]);
        }
        if matches!(name, "min" | "max") && kind == Type::Bool {
            kind = Type::Int;
        }
        let distinct = self.distinct_word();
        let star = name == "count" && distinct.is_empty() && self.chance(0.4);
        let argument = if star { "*".into() } else { self.expression(scope, kind, 1) };
        let filter = self.aggregate_filter(scope);
        let result = match (name, kind) {
            ("count", _) => Type::Big,
            ("sum", Type::Int) => Type::Big,
            ("sum", Type::Big) | ("avg", Type::Int | Type::Big) => Type::Numeric,
            (_, kind) => kind,
        };
        (format!("{name}({distinct}{argument}){filter}"), result)
    }

    fn aggregate_filter(&mut self, scope: &[Column]) -> String {
        if self.chance(0.3) { format!(" FILTER (WHERE {})", self.condition(scope, 1)) } else { String::new() }
    }

    fn distinct_word(&mut self) -> &'static str {
        if self.chance(0.2) { "DISTINCT " } else { "" }
    }

    fn moment(&mut self, scope: &[Column]) -> (String, Type) {
        let name = self.pick(&["var_pop", "var_samp", "variance", "stddev_pop", "stddev_samp", "stddev"]);
        let kind = self.pick(&[Type::Int, Type::Big, Type::Numeric]);
        let (distinct, argument) = (self.distinct_word(), self.expression(scope, kind, 1));
        let filter = self.aggregate_filter(scope);
        if kind == Type::Int && self.chance(0.5) {
            // Of integers as doubles, so that it is known what is exact.
            let (condition, special) = (self.condition(scope, 1), self.pick(&["NaN", "Infinity", "-Infinity"]));
            let value = format!(
                "CASE WHEN {condition} THEN '{special}'::double precision ELSE CAST({argument} AS double precision) END"
            );
            return (format!("{name}({distinct}{value}){filter}"), Type::Float);
        }
        (format!("CAST({name}({distinct}{argument}){filter} AS numeric(30,6))"), Type::Numeric)
    }

    /// Functions of two arguments. Of doubles PostgreSQL rounds every step, so only a few digits are compared.
    fn pairs(&mut self, scope: &[Column]) -> (String, Type) {
        let (y, x) = (self.expression(scope, Type::Int, 1), self.expression(scope, Type::Int, 1));
        let filter = self.aggregate_filter(scope);
        if self.chance(0.3) {
            return (format!("regr_count({y}, {x}){filter}"), Type::Big);
        }
        let name = self.pick(&[
            "covar_pop",
            "covar_samp",
            "corr",
            "regr_slope",
            "regr_intercept",
            "regr_r2",
            "regr_avgx",
            "regr_avgy",
            "regr_sxx",
            "regr_syy",
            "regr_sxy",
        ]);
        (format!("CAST({name}({y}, {x}){filter} AS numeric(20,3))"), Type::Numeric)
    }

    fn bits(&mut self, scope: &[Column]) -> (String, Type) {
        let kind = self.pick(&[Type::Int, Type::Big]);
        let name = self.pick(&["bit_and", "bit_or", "bit_xor"]);
        let argument = self.expression(scope, kind, 1);
        let filter = self.aggregate_filter(scope);
        (format!("{name}({argument}){filter}"), kind)
    }

    fn truth(&mut self, scope: &[Column]) -> (String, Type) {
        let name = self.pick(&["every", "bool_and", "bool_or"]);
        let condition = self.condition(scope, 1);
        let filter = self.aggregate_filter(scope);
        (format!("{name}({condition}){filter}"), Type::Bool)
    }

    fn percentile(&mut self, scope: &[Column]) -> (String, Type) {
        let fraction = self.pick(&["0", "0.1", "0.25", "0.5", "0.75", "0.9", "1"]);
        let direction = self.pick(&["", "", " DESC"]);
        let filter = self.aggregate_filter(scope);
        let kind = self.pick(scope).kind;
        match self.between(0, 3) {
            0 => {
                let kind = self.pick(&[Type::Int, Type::Big, Type::Float]);
                let value = self.expression(scope, kind, 1);
                (format!("percentile_cont({fraction}) WITHIN GROUP (ORDER BY {value}{direction}){filter}"), Type::Float)
            }
            1 => {
                let value = self.expression(scope, kind, 1);
                (format!("percentile_disc({fraction}) WITHIN GROUP (ORDER BY {value}{direction}){filter}"), kind)
            }
            2 => {
                let value = self.expression(scope, kind, 1);
                (format!("mode() WITHIN GROUP (ORDER BY {value}{direction}){filter}"), kind)
            }
            _ => {
                let value = self.expression(scope, Type::Int, 1);
                (format!("median({value}){filter}"), Type::Float)
            }
        }
    }

    fn text_aggregate(&mut self, scope: &[Column]) -> (String, Type) {
        let direction = self.pick(&["", " DESC"]);
        let distinct = self.distinct_word();
        let filter = self.aggregate_filter(scope);
        if self.chance(0.5) {
            let value = self.expression(scope, Type::Text, 1);
            let order = if distinct.is_empty() && self.chance(0.4) {
                format!("{}{direction}, {value}", self.expression(scope, Type::Int, 0))
            } else {
                format!("{value}{direction}")
            };
            // A number is a constant here, and no position of a column.
            let constant = if distinct.is_empty() && self.chance(0.1) { "1, " } else { "" };
            return (format!("string_agg({distinct}{value}, '|' ORDER BY {constant}{order}){filter}"), Type::Text);
        }
        let value = self.expression(scope, Type::Int, 1);
        let call = format!("array_agg({distinct}{value} ORDER BY {value}{direction}){filter}");
        if self.chance(0.3) {
            return (format!("CAST(({call})[{}] AS text)", self.between(0, 3)), Type::Text);
        }
        (format!("array_to_string({call}, ',')"), Type::Text)
    }

    fn json(&mut self, scope: &[Column]) -> (String, Type) {
        let kind = self.pick(&[Type::Int, Type::Big, Type::Text, Type::Bool, Type::Timestamp, Type::Date]);
        let value = self.expression(scope, kind, 1);
        let filter = self.aggregate_filter(scope);
        if self.chance(0.3) {
            let key = self.expression(scope, Type::Text, 0);
            let call = format!("jsonb_object_agg(coalesce({key}, '-'), {value} ORDER BY {value}){filter}");
            return (format!("CAST({call} AS text)"), Type::Text);
        }
        let name = self.pick(&["json_agg", "jsonb_agg"]);
        (format!("CAST({name}({value} ORDER BY {value}){filter} AS text)"), Type::Text)
    }
}
