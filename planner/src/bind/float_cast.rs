//! Casts of decimals to floats, to the nearest float.
//!
//! Arrow divides the digits as a double by a power of ten as a double. Where the digits do not fit a double's 53 bits it
//! rounds twice; there the digits are read as a text, which rounds once.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Decimal256Type};
use datafusion::common::tree_node::Transformed;
use datafusion::common::{DFSchema, ScalarValue};
use datafusion::error::Result;
use datafusion::logical_expr::{
    Cast, ColumnarValue, Expr, ExprSchemable, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use plan::PlanError;

use super::errors::external;

/// Decimals up to this precision are exact as doubles, and so are the powers of ten by which they are divided.
const EXACT_PRECISION_MAX: u8 = 15;

/// The cast as a function, one for each type of float.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NearestFloat {
    to: DataType,
    signature: Signature,
}

/// Replaces a cast that Arrow would round twice.
pub(super) fn exact(cast: Cast, schema: &DFSchema) -> Result<Transformed<Expr>> {
    let to = cast.field.data_type().clone();
    let wide = match cast.expr.get_type(schema) {
        Ok(DataType::Decimal128(precision, _) | DataType::Decimal256(precision, _)) => precision > EXACT_PRECISION_MAX,
        _ => false,
    };
    if !wide || !matches!(to, DataType::Float32 | DataType::Float64) {
        return Ok(Transformed::no(Expr::Cast(cast)));
    }
    let function = NearestFloat { to, signature: Signature::any(1, Volatility::Immutable) };
    if let Expr::Literal(value, _) = cast.expr.as_ref() {
        let array = function.convert(&value.to_array()?)?;
        return Ok(Transformed::yes(Expr::Literal(ScalarValue::try_from_array(&array, 0)?, None)));
    }
    Ok(Transformed::yes(ScalarUDF::new_from_impl(function).call(vec![*cast.expr])))
}

impl NearestFloat {
    fn convert(&self, array: &ArrayRef) -> Result<ArrayRef> {
        let texts: Vec<Option<String>> = match array.data_type() {
            DataType::Decimal128(_, _) => {
                let values = array.as_primitive::<Decimal128Type>();
                (0..values.len()).map(|row| values.is_valid(row).then(|| values.value_as_string(row))).collect()
            }
            DataType::Decimal256(_, _) => {
                let values = array.as_primitive::<Decimal256Type>();
                (0..values.len()).map(|row| values.is_valid(row).then(|| values.value_as_string(row))).collect()
            }
            other => return Err(external(PlanError::internal(format!("{other} is no decimal")))),
        };
        let unreadable = |_| external(PlanError::internal("a decimal is no number"));
        Ok(match self.to {
            DataType::Float32 => {
                let values = texts.iter().map(|text| text.as_ref().map(|text| text.parse::<f32>()).transpose());
                Arc::new(values.collect::<std::result::Result<Float32Array, _>>().map_err(unreadable)?)
            }
            _ => {
                let values = texts.iter().map(|text| text.as_ref().map(|text| text.parse::<f64>()).transpose());
                Arc::new(values.collect::<std::result::Result<Float64Array, _>>().map_err(unreadable)?)
            }
        })
    }
}

impl ScalarUDFImpl for NearestFloat {
    fn name(&self) -> &str {
        "nearest_float"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        // As a cast, which has the name of what is cast.
        Ok(args.first().map(|argument| argument.schema_name().to_string()).unwrap_or_default())
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match &args.args[0] {
            ColumnarValue::Array(array) => self.convert(array).map(ColumnarValue::Array),
            ColumnarValue::Scalar(value) => {
                let array = self.convert(&value.to_array()?)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
        }
    }
}
