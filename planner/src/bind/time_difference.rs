//! The difference of two instants: days of 24 hours, and the rest as time. Arrow's has no days.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, IntervalMonthDayNanoArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, IntervalMonthDayNano, IntervalUnit, TimeUnit, TimestampMicrosecondType};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use super::errors::external;
use super::interval_arithmetic::out_of_range;

const MICROS_OF_DAY: i64 = 86_400_000_000;

/// The function behind `instant - instant`.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Difference {
    signature: Signature,
}

/// `later - earlier`
pub(super) fn between(later: Expr, earlier: Expr) -> Expr {
    let function = Difference { signature: Signature::any(2, Volatility::Immutable) };
    ScalarUDF::new_from_impl(function).call(vec![later, earlier])
}

impl ScalarUDFImpl for Difference {
    fn name(&self) -> &str {
        "timestamp_difference"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Interval(IntervalUnit::MonthDayNano))
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        match args {
            [later, earlier] => Ok(format!("{} - {}", later.schema_name(), earlier.schema_name())),
            _ => Ok(self.name().to_string()),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let micros = |array: &ArrayRef| -> Result<ArrayRef> {
            let zone = match array.data_type() {
                DataType::Timestamp(_, zone) => zone.clone(),
                _ => None,
            };
            Ok(cast(array, &DataType::Timestamp(TimeUnit::Microsecond, zone))?)
        };
        let (later, earlier) = (micros(&arrays[0])?, micros(&arrays[1])?);
        let (later, earlier) =
            (later.as_primitive::<TimestampMicrosecondType>(), earlier.as_primitive::<TimestampMicrosecondType>());
        let differences = later.iter().zip(earlier).map(|pair| {
            let (Some(later), Some(earlier)) = pair else { return Ok(None) };
            let micros = later.checked_sub(earlier).ok_or_else(|| external(out_of_range()))?;
            // All microseconds that there are make some hundred million days.
            let days = (micros / MICROS_OF_DAY) as i32;
            Ok(Some(IntervalMonthDayNano::new(0, days, micros % MICROS_OF_DAY * 1_000)))
        });
        let array: ArrayRef = Arc::new(differences.collect::<Result<IntervalMonthDayNanoArray>>()?);
        if constant && array.len() == 1 {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }
}
