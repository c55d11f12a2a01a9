//! Aggregate functions, one file each, and the accumulation that they share with the incremental operator.
//!
//! Reading order: [`exact`], [`wide`] and [`big`] (numbers that lose nothing), [`sums`] (what is kept of a group), [`results`]
//! (types and values of `sum` and `avg`), [`grouped`] (many groups at once), [`moments`], [`bits`] and [`truth`] (the same for
//! variances and the like, for bits and for booleans), [`invertible`] (all of these), [`accumulate`] and [`udaf`] (for DataFusion). [`ordered`] has
//! the aggregates that need the rows of their group in order.

use datafusion::arrow::datatypes::{DataType, IntervalUnit};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::AggregateUDF;

use ordered::OrderedFunction;
use plan::{PlanError, SqlState};
use udaf::InvertibleFunction;

pub mod accumulate;
pub mod avg;
pub mod big;
pub mod bits;
pub mod codec;
pub mod exact;
pub mod extreme;
pub mod grouped;
pub mod interner;
pub mod invertible;
pub mod max;
pub mod min;
pub mod moments;
pub mod number;
pub mod ordered;
pub mod regression;
pub mod results;
pub mod sum;
pub mod sums;
pub mod truth;
pub mod udaf;
pub mod variance;
pub mod wide;

/// A function once for each of its names. DataFusion would name a call by an alias after the alias and the arguments alone,
/// so that `stddev(x)` and `stddev(DISTINCT x)`, or two calls with different FILTERs, could not stand side by side.
///
/// None of them has aliases: sessions are copied function by function in any order, and an alias would take the place of the
/// function that has it for its name.
pub fn under_each_name(function: AggregateUDF) -> Vec<AggregateUDF> {
    let inner = function.inner();
    let under = |name: &str| {
        if let Some(invertible) = inner.downcast_ref::<InvertibleFunction>() {
            return Some(AggregateUDF::from(invertible.under(name)));
        }
        Some(AggregateUDF::from(inner.downcast_ref::<OrderedFunction>()?.under(name)))
    };
    let names = std::iter::once(function.name()).chain(function.aliases().iter().map(String::as_str));
    let named: Option<Vec<AggregateUDF>> = names.map(under).collect();
    named.unwrap_or_else(|| vec![function])
}

/// The error for a call of a function with arguments that it does not take.
pub fn no_such_function(name: &str, arguments: &[DataType]) -> DataFusionError {
    let types: Vec<String> = arguments.iter().map(type_name).collect();
    let message = format!("function {name}({}) does not exist", types.join(", "));
    let hint = "No function matches the given name and argument types. You might need to add explicit type casts.";
    DataFusionError::External(Box::new(PlanError::new(SqlState::UNDEFINED_FUNCTION, message).with_hint(hint)))
}

/// PostgreSQL's name of a type, for messages.
pub fn type_name(data_type: &DataType) -> String {
    match data_type {
        DataType::Null => "unknown".into(),
        DataType::Boolean => "boolean".into(),
        DataType::Int8 | DataType::Int16 => "smallint".into(),
        DataType::Int32 => "integer".into(),
        DataType::Int64 => "bigint".into(),
        DataType::Float32 => "real".into(),
        DataType::Float64 => "double precision".into(),
        DataType::Decimal128(..) | DataType::Decimal256(..) => "numeric".into(),
        DataType::Utf8 | DataType::Utf8View | DataType::LargeUtf8 => "text".into(),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => "bytea".into(),
        DataType::Date32 | DataType::Date64 => "date".into(),
        DataType::Time32(_) | DataType::Time64(_) => "time without time zone".into(),
        DataType::Timestamp(_, None) => "timestamp without time zone".into(),
        DataType::Timestamp(_, Some(_)) => "timestamp with time zone".into(),
        DataType::Interval(IntervalUnit::MonthDayNano) => "interval".into(),
        DataType::List(field) => format!("{}[]", type_name(field.data_type())),
        other => other.to_string(),
    }
}
