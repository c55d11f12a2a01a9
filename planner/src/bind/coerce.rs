//! Assignment casts: what happens to a value on its way into a column.
//!
//! The same conversion serves single values (constants and parameters of INSERT ... VALUES) and whole arrays (the
//! function [`Assign`] in the plans of INSERT ... SELECT and UPDATE), so that both behave alike.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array, StringArray, TimestampMicrosecondArray};
use datafusion::arrow::compute::{CastOptions, can_cast_types, cast_with_options};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type, TimestampMicrosecondType};
use datafusion::arrow::util::display::FormatOptions;
use datafusion::common::ScalarValue;
use datafusion::common::metadata::FieldMetadata;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use plan::{PlanError, SqlState};

use super::errors::external;
use super::literal::{check_text, cut_text, numeric_overflow, out_of_range, parse_text, round_micros};
use super::types::{PG_TYPE, type_name};

/// Whether a value of a type may be written to a column without an explicit cast. `untyped` is a string constant
/// or parameter whose type is not known: it takes the column's type.
pub(crate) fn check_assignable(from: &DataType, to: &Field, untyped: bool) -> Result<(), PlanError> {
    use DataType::*;
    let text = |data_type: &DataType| matches!(data_type, Utf8 | LargeUtf8 | Utf8View);
    let number = |data_type: &DataType| {
        data_type.is_integer() || data_type.is_floating() || matches!(data_type, Decimal128(_, _) | Decimal256(_, _))
    };
    let instant = |data_type: &DataType| matches!(data_type, Date32 | Date64 | Timestamp(_, _));
    let to_type = to.data_type();
    let allowed = from == to_type
        || from == &Null
        || (text(from) && (text(to_type) || untyped))
        || text(to_type) && !matches!(to.metadata().get(PG_TYPE).map(String::as_str), Some("uuid" | "json" | "jsonb"))
        || (number(from) && number(to_type))
        || (instant(from) && instant(to_type))
        || (matches!(from, Timestamp(_, _)) && matches!(to_type, Time64(_)))
        || (matches!(from, Time32(_) | Time64(_)) && matches!(to_type, Time64(_) | Interval(_)))
        || (matches!(from, Interval(_) | Duration(_)) && matches!(to_type, Interval(_) | Time64(_)))
        || (matches!(from, Binary | LargeBinary | BinaryView) && matches!(to_type, Binary))
        || matches!((from, to_type), (List(_) | LargeList(_) | FixedSizeList(_, _), List(_)));
    if allowed && (from == to_type || text(from) || can_cast_types(from, to_type)) {
        return Ok(());
    }
    Err(PlanError::new(
        SqlState::DATATYPE_MISMATCH,
        format!(
            "column \"{}\" is of type {} but expression is of type {}",
            to.name(),
            type_name(to),
            super::types::data_type_name(from)
        ),
    )
    .with_hint("You will need to rewrite or cast the expression."))
}

/// Whether values of a type need no conversion on their way into a column.
fn fits_as_is(from: &DataType, to: &Field) -> bool {
    from == to.data_type() && !to.metadata().contains_key(PG_TYPE)
        || from == to.data_type()
            && to.metadata().get(PG_TYPE).is_some_and(|name| {
                matches!(name.as_str(), "numeric" | "character varying" | "bpchar" | "name") || name.ends_with("[]")
            })
}

/// Converts one value.
pub fn assign(value: &ScalarValue, to: &Field, time_zone: &str) -> Result<ScalarValue, PlanError> {
    if value.is_null() {
        return ScalarValue::try_from(to.data_type()).map_err(PlanError::internal);
    }
    if fits_as_is(&value.data_type(), to) {
        return Ok(value.clone());
    }
    if let ScalarValue::Utf8(Some(text)) | ScalarValue::LargeUtf8(Some(text)) | ScalarValue::Utf8View(Some(text)) =
        value
    {
        return parse_text(text, to, time_zone);
    }
    let array = value.to_array().map_err(PlanError::internal)?;
    let array = assign_array(&array, to, time_zone)?;
    ScalarValue::try_from_array(&array, 0).map_err(PlanError::internal)
}

/// Converts an array.
pub fn assign_array(array: &ArrayRef, to: &Field, time_zone: &str) -> Result<ArrayRef, PlanError> {
    let from = array.data_type();
    if fits_as_is(from, to) {
        return Ok(array.clone());
    }
    match (from, to.data_type()) {
        (DataType::Utf8, DataType::Utf8) => {
            let texts = array.as_string::<i32>().iter();
            let checked = texts.map(|text| text.map(|text| check_text(text, to)).transpose());
            Ok(Arc::new(checked.collect::<Result<StringArray, _>>()?))
        }
        (DataType::LargeUtf8 | DataType::Utf8View, _) => {
            assign_array(&plain_cast(array, &DataType::Utf8)?, to, time_zone)
        }
        (DataType::Utf8, _) => {
            let texts = array.as_string::<i32>().iter();
            let values = texts.map(|text| match text {
                Some(text) => parse_text(text, to, time_zone),
                None => ScalarValue::try_from(to.data_type()).map_err(PlanError::internal),
            });
            let values = values.collect::<Result<Vec<_>, _>>()?;
            if values.is_empty() {
                return Ok(datafusion::arrow::array::new_empty_array(to.data_type()));
            }
            ScalarValue::iter_to_array(values).map_err(PlanError::internal)
        }
        (_, DataType::Utf8) => {
            let texts = texts(array, time_zone)?;
            assign_array(&texts, to, time_zone)
        }
        (DataType::Float64 | DataType::Float32, target) if target.is_integer() => {
            let floats: Float64Array = match from {
                DataType::Float32 => array.as_primitive::<Float32Type>().unary(|v| f64::from(v).round_ties_even()),
                _ => array.as_primitive::<Float64Type>().unary(f64::round_ties_even),
            };
            checked_cast(&(Arc::new(floats) as ArrayRef), target, || out_of_range(target))
        }
        (DataType::Decimal128(precision, _), target) if target.is_integer() => {
            let whole = plain_cast(array, &DataType::Decimal128(*precision, 0))?;
            checked_cast(&whole, target, || out_of_range(target))
        }
        (DataType::Decimal256(precision, _), target) if target.is_integer() => {
            let whole = plain_cast(array, &DataType::Decimal256(*precision, 0))?;
            checked_cast(&whole, target, || out_of_range(target))
        }
        (_, target) if target.is_integer() => checked_cast(array, target, || out_of_range(target)),
        (_, target @ (DataType::Decimal128(_, _) | DataType::Decimal256(_, _))) => {
            checked_cast(array, target, || numeric_overflow(target))
        }
        (DataType::Timestamp(_, _), DataType::Timestamp(_, _)) if to.metadata().contains_key(PG_TYPE) => {
            let plain = Field::new(to.name(), to.data_type().clone(), true);
            let array = assign_array(array, &plain, time_zone)?;
            let rounded: TimestampMicrosecondArray =
                array.as_primitive::<TimestampMicrosecondType>().unary(|micros| round_micros(micros, to));
            let zone = match to.data_type() {
                DataType::Timestamp(_, zone) => zone.clone(),
                _ => None,
            };
            Ok(Arc::new(rounded.with_timezone_opt(zone)))
        }
        (_, target) => checked_cast(array, target, || {
            PlanError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!("value out of range for type {}", type_name(to)),
            )
        }),
    }
}

/// Values as texts.
fn texts(array: &ArrayRef, time_zone: &str) -> Result<ArrayRef, PlanError> {
    match array.data_type() {
        DataType::List(_) => Ok(Arc::new(array_texts(array, time_zone)?)),
        DataType::Decimal128(..) | DataType::Decimal256(..) => {
            super::text_cast::texts(array).map_err(PlanError::internal)
        }
        _ => plain_cast(array, &DataType::Utf8),
    }
}

/// Arrays as PostgreSQL prints them: `{1,NULL,"a b"}`.
fn array_texts(arrays: &ArrayRef, time_zone: &str) -> Result<StringArray, PlanError> {
    let lists = arrays.as_list::<i32>();
    let text = Field::new("", DataType::Utf8, true);
    let items = assign_array(lists.values(), &text, time_zone)?;
    let (items, offsets) = (items.as_string::<i32>(), lists.value_offsets());
    let nested = matches!(lists.values().data_type(), DataType::List(_));
    let printed = (0..lists.len()).map(|row| {
        let items = (offsets[row] as usize..offsets[row + 1] as usize).map(|place| match items.is_valid(place) {
            false => "NULL".to_string(),
            true if nested => items.value(place).to_string(),
            true => array_item(items.value(place)),
        });
        lists.is_valid(row).then(|| format!("{{{}}}", items.collect::<Vec<_>>().join(",")))
    });
    Ok(printed.collect())
}

/// An item of an array's text, in quotes where it would be read as something else.
fn array_item(text: &str) -> String {
    let special = |letter: char| letter.is_whitespace() || "{},\"\\".contains(letter);
    if text.is_empty() || text.eq_ignore_ascii_case("null") || text.contains(special) {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    } else {
        text.to_string()
    }
}

fn plain_cast(array: &ArrayRef, to: &DataType) -> Result<ArrayRef, PlanError> {
    checked_cast(array, to, || {
        PlanError::new(SqlState::CANNOT_COERCE, format!("cannot cast type {} to {to}", array.data_type()))
    })
}

/// Casts, with an error where a value that is not NULL would become NULL.
fn checked_cast(array: &ArrayRef, to: &DataType, error: impl Fn() -> PlanError) -> Result<ArrayRef, PlanError> {
    let format_options = FormatOptions::default()
        .with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"))
        .with_timestamp_tz_format(Some("%Y-%m-%d %H:%M:%S%.f+00"));
    let options = CastOptions { safe: true, format_options };
    let cast = cast_with_options(array, to, &options).map_err(|_| error())?;
    if cast.logical_null_count() > array.logical_null_count() { Err(error()) } else { Ok(cast) }
}

/// The assignment cast as a function in plans: one for each target type, so that equal casts are equal expressions.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Assign {
    to: FieldRef,
    time_zone: String,
    /// A cast that is written: cuts texts that are too long.
    explicit: bool,
    signature: Signature,
}

impl Assign {
    fn new(to: FieldRef, time_zone: &str, explicit: bool) -> Self {
        let signature = Signature::any(1, Volatility::Immutable);
        Assign { to, time_zone: time_zone.to_string(), explicit, signature }
    }

    fn convert(&self, array: &ArrayRef) -> Result<ArrayRef, PlanError> {
        if self.explicit && array.data_type() == &DataType::Utf8 && self.to.data_type() == &DataType::Utf8 {
            let texts = array.as_string::<i32>().iter();
            let cut: StringArray = texts.map(|text| text.map(|text| cut_text(text, &self.to))).collect();
            return assign_array(&(Arc::new(cut) as ArrayRef), &self.to, &self.time_zone);
        }
        assign_array(array, &self.to, &self.time_zone)
    }
}

impl ScalarUDFImpl for Assign {
    fn name(&self) -> &str {
        "assign"
    }

    fn schema_name(&self, args: &[Expr]) -> datafusion::error::Result<String> {
        Ok(format!("{}::{}", args.first().map(ToString::to_string).unwrap_or_default(), type_name(&self.to)))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arg_types: &[DataType]) -> datafusion::error::Result<DataType> {
        Ok(self.to.data_type().clone())
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs) -> datafusion::error::Result<FieldRef> {
        Ok(Arc::new(self.to.as_ref().clone().with_nullable(true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> datafusion::error::Result<ColumnarValue> {
        match &args.args[0] {
            ColumnarValue::Scalar(value) => {
                let array = self.convert(&value.to_array()?).map_err(external)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
            ColumnarValue::Array(array) => self.convert(array).map(ColumnarValue::Array).map_err(external),
        }
    }
}

/// Whether every number of a type is one of another exactly: then Arrow's cast is PostgreSQL's. DataFusion sees through
/// it, as it must to turn a subquery into a join.
fn holds_all(target: &DataType, from: &DataType) -> bool {
    let digits = |data_type: &DataType| match data_type {
        DataType::Int16 => Some((5, 0)),
        DataType::Int32 => Some((10, 0)),
        DataType::Int64 => Some((19, 0)),
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            Some((i16::from(*precision) - i16::from(*scale), i16::from(*scale)))
        }
        _ => None,
    };
    if target == from {
        return true;
    }
    // A decimal of ten digits holds numbers that an integer of ten digits does not.
    if target.is_integer() && !from.is_integer() {
        return false;
    }
    match (digits(target), digits(from)) {
        (Some((whole, scale)), Some((from_whole, from_scale))) => whole >= from_whole && scale >= from_scale,
        _ => false,
    }
}

/// A cast that is written, where PostgreSQL's differs from Arrow's: rounding, ranges, lengths, and texts. `None` where
/// it does not.
pub(crate) fn explicit_cast(
    expression: &Expr,
    from: &DataType,
    to: &FieldRef,
    time_zone: &str,
) -> Result<Option<Expr>, PlanError> {
    if let Expr::Literal(ScalarValue::Utf8(Some(text)), _) = expression {
        let text = if to.data_type() == &DataType::Utf8 { cut_text(text, to) } else { text };
        return match parse_text(text, to, time_zone) {
            Ok(value) => {
                // The type's own name goes with the value: a uuid is more than a text.
                let named = !to.metadata().is_empty();
                Ok(Some(Expr::Literal(value, named.then(|| FieldMetadata::from(to.metadata())))))
            }
            Err(error) if error.sqlstate == SqlState::FEATURE_NOT_SUPPORTED => Ok(None),
            Err(error) => Err(error),
        };
    }
    let target = to.data_type();
    let decimal = |data_type: &DataType| matches!(data_type, DataType::Decimal128(_, _) | DataType::Decimal256(_, _));
    let number = |data_type: &DataType| data_type.is_integer() || data_type.is_floating() || decimal(data_type);
    let instant = matches!(from, DataType::Timestamp(_, _));
    let needed = match (from, target) {
        (DataType::Utf8, DataType::Utf8) => !fits_as_is(from, to),
        (DataType::Utf8, DataType::List(_)) => true,
        (DataType::Utf8, _) => true,
        (DataType::List(_), DataType::Utf8) => true,
        (_, DataType::Utf8) => instant || !fits_as_is(&DataType::Utf8, to),
        _ => number(from) && (target.is_integer() || decimal(target)) && !holds_all(target, from),
    };
    if !needed {
        return Ok(None);
    }
    let function = ScalarUDF::new_from_impl(Assign::new(to.clone(), time_zone, true));
    Ok(Some(function.call(vec![expression.clone()])))
}

/// An expression of a type, converted to a column's type.
pub(crate) fn assign_expression(
    expression: Expr,
    from: &DataType,
    to: &FieldRef,
    untyped: bool,
    time_zone: &str,
) -> Result<Expr, PlanError> {
    check_assignable(from, to, untyped)?;
    if fits_as_is(from, to) {
        return Ok(expression);
    }
    if let Expr::Literal(value, _) = &expression {
        return Ok(Expr::Literal(assign(value, to, time_zone)?, None));
    }
    let function = ScalarUDF::new_from_impl(Assign::new(to.clone(), time_zone, false));
    Ok(function.call(vec![expression]))
}
