//! `date_trunc`: DataFusion's, and that of intervals.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray, IntervalMonthDayNanoArray};
use datafusion::arrow::datatypes::{
    DataType, Field, FieldRef, IntervalMonthDayNano, IntervalMonthDayNanoType, IntervalUnit,
};
use datafusion::error::Result;
use datafusion::functions::datetime::date_trunc;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::type_coercion::functions::fields_with_udf;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use plan::SqlState;

use super::overload::{each, error, is_text};
use crate::functions::aggregate::no_such_function;
use crate::functions::{Example, FunctionDef, Implementation};

const INTERVAL: DataType = DataType::Interval(IntervalUnit::MonthDayNano);

/// `date_trunc`
pub static DEFINITION: FunctionDef = FunctionDef {
    name: "date_trunc",
    forms: &[
        "date_trunc(field text, value timestamp) → timestamp",
        "date_trunc(field text, value timestamptz) → timestamptz",
        "date_trunc(field text, value interval) → interval",
    ],
    text: "The value with all fields below the given one set to zero, or to one: microseconds, milliseconds, second, minute, \
           hour, day, week (not of an interval), month, quarter, year; of an interval also decade, century, millennium.",
    examples: &[
        Example { query: "SELECT date_trunc('hour', interval '3 days 2 hours 47 minutes')", result: "3 days 02:00:00" },
        Example { query: "SELECT date_trunc('year', interval '30 months 5 days')", result: "2 years" },
    ],
    implementation: Implementation::Scalar(|| {
        let signature = Signature::user_defined(Volatility::Immutable);
        ScalarUDF::from(DateTrunc { instants: date_trunc(), signature })
    }),
};

#[derive(Debug, PartialEq, Eq, Hash)]
struct DateTrunc {
    /// DataFusion's.
    instants: Arc<ScalarUDF>,
    signature: Signature,
}

fn is_of_interval(types: &[DataType]) -> bool {
    matches!(types, [field, DataType::Interval(_) | DataType::Duration(_)] if is_text(field))
}

impl ScalarUDFImpl for DateTrunc {
    fn name(&self) -> &str {
        "date_trunc"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        if is_of_interval(types) {
            return Ok(vec![DataType::Utf8, INTERVAL]);
        }
        let fields: Vec<FieldRef> =
            types.iter().map(|data_type| Arc::new(Field::new("", data_type.clone(), true))).collect();
        // Where they do not fit, the type of the result says so.
        let Ok(fields) = fields_with_udf(&fields, self.instants.as_ref()) else { return Ok(types.to_vec()) };
        Ok(fields.iter().map(|field| field.data_type().clone()).collect())
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        if is_of_interval(types) {
            return Ok(INTERVAL);
        }
        self.instants.inner().return_type(types).map_err(|_| no_such_function(self.name(), types))
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        if is_of_interval(&types) {
            return Ok(Arc::new(Field::new(self.name(), INTERVAL, true)));
        }
        self.instants.inner().return_field_from_args(args).map_err(|_| no_such_function(self.name(), &types))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [field, value] = args.args.as_slice() else { return self.instants.inner().invoke_with_args(args) };
        if !matches!(value.data_type(), DataType::Interval(_)) {
            return self.instants.inner().invoke_with_args(args);
        }
        let arrays = [field.to_array(args.number_rows)?, value.to_array(args.number_rows)?];
        let (fields, values) = (arrays[0].as_string::<i32>(), arrays[1].as_primitive::<IntervalMonthDayNanoType>());
        let cut = each(&arrays, |row| {
            let field = fields.value(row).to_lowercase();
            let cut = of_interval(&field, values.value(row));
            cut.map(Some).ok_or_else(|| {
                let message = format!("unit \"{field}\" not supported for type interval");
                error(SqlState::FEATURE_NOT_SUPPORTED, message)
            })
        })?;
        Ok(ColumnarValue::Array(Arc::new(IntervalMonthDayNanoArray::from(cut))))
    }

    fn output_ordering(&self, input: &[ExprProperties]) -> Result<SortProperties> {
        self.instants.inner().output_ordering(input)
    }
}

/// An interval without what is below a field; none if there is no such field.
fn of_interval(field: &str, value: IntervalMonthDayNano) -> Option<IntervalMonthDayNano> {
    let IntervalMonthDayNano { months, days, nanoseconds } = value;
    let of_months = |unit: i32| IntervalMonthDayNano::new(months - months % unit, 0, 0);
    let of_time = |unit: i64| IntervalMonthDayNano::new(months, days, nanoseconds - nanoseconds % unit);
    Some(match field {
        "millennium" | "millennia" | "millenniums" => of_months(12_000),
        "century" | "centuries" => of_months(1_200),
        "decade" | "decades" => of_months(120),
        "year" | "years" => of_months(12),
        "quarter" => of_months(3),
        "month" | "months" => of_months(1),
        "day" | "days" => IntervalMonthDayNano::new(months, days, 0),
        "hour" | "hours" => of_time(3_600_000_000_000),
        "minute" | "minutes" => of_time(60_000_000_000),
        "second" | "seconds" => of_time(1_000_000_000),
        "millisecond" | "milliseconds" => of_time(1_000_000),
        "microsecond" | "microseconds" => of_time(1_000),
        _ => return None,
    })
}
