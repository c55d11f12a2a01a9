//! `percentile_cont`, `percentile_disc` and `median`.

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, IntervalMonthDayNano, IntervalUnit};
use datafusion::common::ScalarValue;
use plan::{PlanError, SqlState};

use super::array_agg::list_of;
use super::call::GroupRows;
use super::{Method, OrderedFunction};
use crate::functions::{Example, FunctionDef, Implementation};

/// `percentile_cont`.
pub static PERCENTILE_CONT: FunctionDef = FunctionDef {
    name: "percentile_cont",
    forms: &[
        "percentile_cont(fraction double precision) WITHIN GROUP (ORDER BY double precision) → double precision",
        "percentile_cont(fraction double precision) WITHIN GROUP (ORDER BY interval) → interval",
        "percentile_cont(fractions double precision[]) WITHIN GROUP (ORDER BY ...) → array of the type",
    ],
    text: "The value below which the fraction of the values lies, interpolated between two of them; NULL if there are none. \
           A fraction outside of 0 to 1 is an error (`22003`).",
    examples: &[
        Example {
            query: "SELECT percentile_cont(0.25) WITHIN GROUP (ORDER BY x) FROM (VALUES (1), (2), (3), (4)) AS t(x)",
            result: "1.75",
        },
        Example {
            query: "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x) FROM (VALUES (interval '1 day'), (interval '4 days')) AS t(x)",
            result: "2 days 12:00:00",
        },
    ],
    implementation: Implementation::Aggregate(|| OrderedFunction::udaf(&CONT)),
};

/// `percentile_disc`.
pub static PERCENTILE_DISC: FunctionDef = FunctionDef {
    name: "percentile_disc",
    forms: &[
        "percentile_disc(fraction double precision) WITHIN GROUP (ORDER BY any) → the same type",
        "percentile_disc(fractions double precision[]) WITHIN GROUP (ORDER BY any) → array of the type",
    ],
    text: "The first value in the order such that the fraction of the values is not behind it; NULL if there are none.",
    examples: &[
        Example {
            query: "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY x) FROM (VALUES ('a'), ('b'), ('c'), ('d')) AS t(x)",
            result: "b",
        },
        Example {
            query: "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY x DESC) FROM (VALUES (1), (2), (3), (4)) AS t(x)",
            result: "3",
        },
    ],
    implementation: Implementation::Aggregate(|| OrderedFunction::udaf(&DISC)),
};

/// `median`.
pub static MEDIAN: FunctionDef = FunctionDef {
    name: "median",
    forms: &["median(double precision) → double precision", "median(interval) → interval"],
    text: "The same as `percentile_cont(0.5)`. PostgreSQL does not have it.",
    examples: &[Example { query: "SELECT median(x) FROM (VALUES (1), (2), (10), (11)) AS t(x)", result: "6" }],
    implementation: Implementation::Aggregate(|| OrderedFunction::udaf(&MEDIAN_METHOD)),
};

/// Which rows a percentile depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranks {
    /// Two neighbours, between which is interpolated. The argument with the fraction, or none for one half.
    Continuous(Option<usize>),
    /// One. The argument with the fraction.
    Discrete(usize),
}

impl Ranks {
    /// The argument with the fraction; none means one half.
    pub fn argument(self) -> Option<usize> {
        match self {
            Ranks::Continuous(argument) => argument,
            Ranks::Discrete(argument) => Some(argument),
        }
    }

    /// The ranks of the two rows, counted from 0, and how far from the first to the second the result is; there must be
    /// rows.
    pub fn of(self, fraction: f64, total: i64) -> (i64, i64, f64) {
        match self {
            Ranks::Continuous(_) => {
                let position = fraction * (total - 1) as f64;
                (position.floor() as i64, position.ceil() as i64, position - position.floor())
            }
            Ranks::Discrete(_) => {
                let rank = ((fraction * total as f64).ceil() as i64).clamp(1, total) - 1;
                (rank, rank, 0.0)
            }
        }
    }
}

static CONT: Method = Method {
    name: "percentile_cont",
    aliases: &["quantile_cont"],
    accept: |types| accept(types, numbers_and_intervals),
    result,
    keeps_nulls: false,
    sorts: true,
    within_group: true,
    compute: |rows| compute(rows, Ranks::Continuous(Some(1))),
    ranks: Some(Ranks::Continuous(Some(1))),
};

static DISC: Method = Method {
    name: "percentile_disc",
    aliases: &[],
    accept: |types| accept(types, |value| Some(value.clone())),
    compute: |rows| compute(rows, Ranks::Discrete(1)),
    ranks: Some(Ranks::Discrete(1)),
    ..CONT
};

static MEDIAN_METHOD: Method = Method {
    name: "median",
    aliases: &[],
    accept: |types| match types {
        [value] => Some(vec![numbers_and_intervals(value)?]),
        _ => None,
    },
    within_group: false,
    compute: |rows| compute(rows, Ranks::Continuous(None)),
    ranks: Some(Ranks::Continuous(None)),
    ..CONT
};

/// What a value is interpolated as.
pub(super) fn numbers_and_intervals(value: &DataType) -> Option<DataType> {
    match value {
        DataType::Null => Some(DataType::Float64),
        DataType::Interval(_) => Some(DataType::Interval(IntervalUnit::MonthDayNano)),
        value if value.is_numeric() => Some(DataType::Float64),
        _ => None,
    }
}

fn accept(types: &[DataType], value: impl Fn(&DataType) -> Option<DataType>) -> Option<Vec<DataType>> {
    let [first, fraction] = types else { return None };
    let fraction = match fraction {
        DataType::List(item) if item.data_type().is_numeric() || item.data_type().is_null() => {
            list_of(&DataType::Float64)
        }
        fraction if fraction.is_numeric() || fraction.is_null() => DataType::Float64,
        _ => return None,
    };
    Some(vec![value(first)?, fraction])
}

/// The type of the values, or an array of it for several fractions.
pub(super) fn result(fields: &[FieldRef]) -> Field {
    match fields.get(1).map(|fraction| fraction.data_type()) {
        Some(DataType::List(_)) => Field::new("", list_of(fields[0].data_type()), true),
        _ => fields[0].as_ref().clone().with_nullable(true),
    }
}

/// The percentile or percentiles of a group.
pub(super) fn compute(rows: &GroupRows<'_>, ranks: Ranks) -> Result<ScalarValue, PlanError> {
    let fraction = match ranks.argument() {
        Some(argument) => rows.direct(argument)?,
        None => ScalarValue::Float64(Some(0.5)),
    };
    match fraction {
        ScalarValue::Float64(Some(fraction)) => one(rows, fraction, ranks),
        ScalarValue::List(fractions) if !fractions.is_null(0) && !rows.is_empty() => {
            let mut results = Vec::new();
            for fraction in fractions.value(0).as_primitive::<Float64Type>() {
                results.push(match fraction {
                    Some(fraction) => one(rows, fraction, ranks)?,
                    None => ScalarValue::try_from(rows.field(0).data_type()).map_err(PlanError::internal)?,
                });
            }
            Ok(ScalarValue::List(ScalarValue::new_list_nullable(&results, rows.field(0).data_type())))
        }
        _ => rows.null(),
    }
}

/// Checks a fraction.
pub fn check(fraction: f64) -> Result<(), PlanError> {
    if (0.0..=1.0).contains(&fraction) {
        return Ok(());
    }
    let message = format!("percentile value {fraction} is not between 0 and 1");
    Err(PlanError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message))
}

fn one(rows: &GroupRows<'_>, fraction: f64, ranks: Ranks) -> Result<ScalarValue, PlanError> {
    check(fraction)?;
    let total = rows.total();
    let (lower, upper, part) = ranks.of(fraction, total.max(1));
    let at = |rank: i64| rows.row_at(rank).map(|row| rows.value(0, row)).transpose();
    match (at(lower)?, at(upper)?) {
        (Some(lower), Some(upper)) => interpolate(lower, upper, part),
        _ => ScalarValue::try_from(rows.field(0).data_type()).map_err(PlanError::internal),
    }
}

/// The value that is so far from one to another.
pub fn interpolate(lower: ScalarValue, upper: ScalarValue, part: f64) -> Result<ScalarValue, PlanError> {
    if part == 0.0 {
        return Ok(lower);
    }
    match (&lower, &upper) {
        (ScalarValue::Float64(Some(from)), ScalarValue::Float64(Some(to))) => {
            Ok(ScalarValue::Float64(Some(from + part * (to - from))))
        }
        (ScalarValue::IntervalMonthDayNano(Some(from)), ScalarValue::IntervalMonthDayNano(Some(to))) => {
            Ok(ScalarValue::IntervalMonthDayNano(Some(between(*from, *to, part))))
        }
        _ => Ok(lower),
    }
}

/// As PostgreSQL multiplies an interval: fractions of months become days of 30 a month, fractions of days time.
fn between(from: IntervalMonthDayNano, to: IntervalMonthDayNano, part: f64) -> IntervalMonthDayNano {
    let to_micros = |seconds: f64| (seconds * 1e6).round_ties_even() / 1e6;
    let months = f64::from(to.months) - f64::from(from.months);
    let days = f64::from(to.days) - f64::from(from.days);
    let micros = (to.nanoseconds / 1_000) as f64 - (from.nanoseconds / 1_000) as f64;
    let whole_months = (months * part).trunc();
    let mut whole_days = (days * part).trunc();
    let days_of_months = to_micros((months * part - whole_months) * 30.0);
    let mut seconds = to_micros((days * part - whole_days + days_of_months - days_of_months.trunc()) * 86_400.0);
    if seconds.abs() >= 86_400.0 {
        whole_days += (seconds / 86_400.0).trunc();
        seconds -= (seconds / 86_400.0).trunc() * 86_400.0;
    }
    whole_days += days_of_months.trunc();
    let micros = (micros * part + seconds * 1e6).round_ties_even();
    // Between two intervals that fit.
    IntervalMonthDayNano::new(
        from.months.saturating_add(whole_months as i32),
        from.days.saturating_add(whole_days as i32),
        from.nanoseconds.saturating_add((micros as i64).saturating_mul(1_000)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_postgres() {
        assert_eq!(Ranks::Continuous(None).of(0.5, 4), (1, 2, 0.5));
        assert_eq!(Ranks::Continuous(None).of(1.0, 4), (3, 3, 0.0));
        assert_eq!(Ranks::Discrete(1).of(0.0, 4), (0, 0, 0.0));
        assert_eq!(Ranks::Discrete(1).of(0.5, 4), (1, 1, 0.0));
        assert_eq!(Ranks::Discrete(1).of(0.51, 4), (2, 2, 0.0));
        assert_eq!(Ranks::Discrete(1).of(1.0, 4), (3, 3, 0.0));
    }
}
