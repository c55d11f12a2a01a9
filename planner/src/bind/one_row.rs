//! What a subquery gives that stands as a value: the one value of its rows, or an error if there are more; and what
//! ARRAY(query) gives: all of them, and an empty array if there are none.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, UInt64Array, new_empty_array};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use plan::{PlanError, SqlState};

use super::errors::external;

/// The name under which a syntax tree calls for [`Take::OrEmpty`].
pub(super) const OR_EMPTY: &str = "$or_empty";

/// What is made of the array of a subquery's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Take {
    /// Its only item.
    Only,
    /// The array, if there is one, and else one without items.
    OrEmpty,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct OfRows {
    take: Take,
    signature: Signature,
}

impl OfRows {
    fn function(take: Take) -> ScalarUDF {
        ScalarUDF::new_from_impl(OfRows { take, signature: Signature::any(1, Volatility::Immutable) })
    }
}

/// The only item of an array of a subquery's values.
pub(super) fn only(values: Expr) -> Expr {
    OfRows::function(Take::Only).call(vec![values])
}

/// The function of a name that a syntax tree may hold.
pub(super) fn function(name: &str) -> Option<Arc<ScalarUDF>> {
    (name == OR_EMPTY).then(|| Arc::new(OfRows::function(Take::OrEmpty)))
}

impl ScalarUDFImpl for OfRows {
    fn name(&self) -> &str {
        match self.take {
            Take::Only => "only_row",
            Take::OrEmpty => OR_EMPTY,
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match (self.take, arguments) {
            (Take::Only, [DataType::List(item)]) => Ok(item.data_type().clone()),
            (Take::OrEmpty, [list @ DataType::List(_)]) => Ok(list.clone()),
            _ => Err(external(PlanError::internal("the rows of a subquery are no array"))),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = matches!(args.args.as_slice(), [ColumnarValue::Scalar(_)]);
        let arrays = ColumnarValue::values_to_arrays(&args.args)?;
        let lists = arrays[0].as_list::<i32>();
        let array = match self.take {
            Take::Only => only_items(lists)?,
            Take::OrEmpty => without_nulls(lists)?,
        };
        if constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }
}

fn only_items(lists: &ListArray) -> Result<ArrayRef> {
    let offsets = lists.value_offsets();
    let places = (0..lists.len()).map(|row| {
        let items = if lists.is_null(row) { 0 } else { offsets[row + 1] - offsets[row] };
        match items {
            0 => Ok(None),
            1 => Ok(Some(offsets[row] as u64)),
            _ => Err(external(PlanError::new(
                SqlState::CARDINALITY_VIOLATION,
                "more than one row returned by a subquery used as an expression",
            ))),
        }
    });
    let places = places.collect::<Result<UInt64Array>>()?;
    Ok(take(lists.values(), &places, None)?)
}

fn without_nulls(lists: &ListArray) -> Result<ArrayRef> {
    if lists.null_count() == 0 {
        return Ok(Arc::new(lists.clone()));
    }
    let DataType::List(item) = lists.data_type() else {
        return Err(external(PlanError::internal("the rows of a subquery are no array")));
    };
    let rows: Vec<ArrayRef> = (0..lists.len())
        .map(|row| if lists.is_null(row) { new_empty_array(item.data_type()) } else { lists.value(row) })
        .collect();
    let offsets = OffsetBuffer::from_lengths(rows.iter().map(|row| row.len()));
    let parts: Vec<&dyn Array> = rows.iter().map(AsRef::as_ref).collect();
    let values = datafusion::arrow::compute::concat(&parts)?;
    Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, values, None)?))
}
