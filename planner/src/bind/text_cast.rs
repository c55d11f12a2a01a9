//! Casts of numerics, floats, times and intervals to texts, as a client would read them. Arrow writes them otherwise.

use std::sync::Arc;

use bytes::BytesMut;
use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Float32Type, Float64Type, IntervalMonthDayNanoType, IntervalUnit,
    Time64MicrosecondType, TimeUnit,
};
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use plan::PlanError;
use plan::numeric::{self, Display};

use super::errors::external;
use crate::text::{self, IntervalStyle};

/// The shortest digits that read back to the same number.
const EXTRA_FLOAT_DIGITS: i32 = 1;

/// The cast as a function.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TextOf {
    signature: Signature,
}

/// The function for a cast, if it is one of these.
pub(super) fn written(cast: &Cast, schema: &DFSchema) -> Result<Option<Expr>> {
    if cast.field.data_type() != &DataType::Utf8 {
        return Ok(None);
    }
    let is_one = matches!(
        cast.expr.get_type(schema),
        Ok(DataType::Float32
            | DataType::Float64
            | DataType::Time64(_)
            | DataType::Interval(IntervalUnit::MonthDayNano))
    ) || cast.expr.get_type(schema).is_ok_and(|data_type| numeric::display(&data_type) != Display::Fixed);
    if !is_one {
        return Ok(None);
    }
    let function = TextOf { signature: Signature::any(1, Volatility::Immutable) };
    if let Expr::Literal(value, _) = cast.expr.as_ref() {
        let texts = texts(&value.to_array()?)?;
        return Ok(Some(Expr::Literal(ScalarValue::try_from_array(&texts, 0)?, None)));
    }
    Ok(Some(ScalarUDF::new_from_impl(function).call(vec![cast.expr.as_ref().clone()])))
}

/// The texts of values.
pub(super) fn texts(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        DataType::Float32 => {
            let values = array.as_primitive::<Float32Type>();
            each(array, &|row, out| text::float32(values.value(row), EXTRA_FLOAT_DIGITS, out))
        }
        DataType::Float64 => {
            let values = array.as_primitive::<Float64Type>();
            each(array, &|row, out| text::float64(values.value(row), EXTRA_FLOAT_DIGITS, out))
        }
        DataType::Time64(_) => {
            let micros = cast(array, &DataType::Time64(TimeUnit::Microsecond))?;
            let values = micros.as_primitive::<Time64MicrosecondType>();
            each(array, &|row, out| text::time(values.value(row), out))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let values = array.as_primitive::<IntervalMonthDayNanoType>();
            each(array, &|row, out| {
                let value = values.value(row);
                text::interval(value.months, value.days, value.nanoseconds, IntervalStyle::Postgres, out);
            })
        }
        DataType::Decimal128(_, scale) => {
            let (values, display) = (array.as_primitive::<Decimal128Type>(), numeric::display(array.data_type()));
            each(array, &|row, out| {
                // Writing into memory does not fail.
                let _ = numeric::write128(values.value(row), *scale, display, out);
            })
        }
        DataType::Decimal256(_, scale) => {
            let (values, display) = (array.as_primitive::<Decimal256Type>(), numeric::display(array.data_type()));
            each(array, &|row, out| {
                let _ = numeric::write256(values.value(row), *scale, display, out);
            })
        }
        other => Err(external(PlanError::internal(format!("{other} is cast to a text in another way")))),
    }
}

fn each(array: &ArrayRef, write: &dyn Fn(usize, &mut BytesMut)) -> Result<ArrayRef> {
    let mut out = BytesMut::new();
    let texts = (0..array.len()).map(|row| {
        array.is_valid(row).then(|| {
            out.clear();
            write(row, &mut out);
            String::from_utf8_lossy(&out).into_owned()
        })
    });
    Ok(Arc::new(texts.collect::<StringArray>()))
}

impl ScalarUDFImpl for TextOf {
    fn name(&self) -> &str {
        "text_of"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        // As a cast, which has the name of what is cast.
        Ok(args.first().map(|argument| argument.schema_name().to_string()).unwrap_or_default())
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Utf8)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match &args.args[0] {
            ColumnarValue::Array(array) => texts(array).map(ColumnarValue::Array),
            ColumnarValue::Scalar(value) => {
                let array = texts(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
        }
    }
}
