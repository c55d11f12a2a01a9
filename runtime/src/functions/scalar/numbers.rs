//! Functions over numbers: sign, div, width_bucket, scale, min_scale, trim_scale, factorial, to_hex, round.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Decimal256Array, Float64Array, Int32Array, StringArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, Field, Float64Type, Int32Type, Int64Type, i256,
};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use plan::SqlState;

use super::overload::{Form, Overloaded, each, error};
use super::rounding;
use crate::functions::quotient::{divided_rounded, fits, power256};
use crate::functions::{Example, FunctionDef, Implementation};

/// `sign`
pub static SIGN: FunctionDef = FunctionDef {
    name: "sign",
    forms: &["sign(number numeric) → numeric", "sign(number double precision) → double precision"],
    text: "-1, 0 or 1.",
    examples: &[Example { query: "SELECT sign(arrow_cast('-8.4', 'Decimal128(10, 2)'))", result: "-1" }],
    implementation: Implementation::Scalar(|| Overloaded::udf("sign", &["signum"], rounding::choose, sign)),
};

/// `div`
pub static DIV: FunctionDef = FunctionDef {
    name: "div",
    forms: &["div(number numeric, divisor numeric) → numeric"],
    text: "The quotient without its fraction.",
    examples: &[
        Example { query: "SELECT div(9, 4)", result: "2" },
        Example { query: "SELECT div(arrow_cast('-9.5', 'Decimal128(10, 1)'), 2)", result: "-4" },
    ],
    implementation: Implementation::Scalar(|| Overloaded::udf("div", &[], choose_div, div)),
};

/// `width_bucket`
pub static WIDTH_BUCKET: FunctionDef = FunctionDef {
    name: "width_bucket",
    forms: &[
        "width_bucket(number numeric, low numeric, high numeric, count integer) → integer",
        "width_bucket(number double precision, low double precision, high double precision, count integer) → integer",
        "width_bucket(number double precision, bounds double precision[]) → integer",
    ],
    text: "The number, from 1, of the bucket in which a number lies: of equally wide ones between two bounds, or of \
           those that begin at the bounds of an array. 0 is below the first, `count + 1` above the last.",
    examples: &[
        Example {
            query: "SELECT width_bucket(arrow_cast('5.35', 'Decimal128(10, 3)'), arrow_cast('0.024', 'Decimal128(10, 3)'), arrow_cast('10.06', 'Decimal128(10, 3)'), 5)",
            result: "3",
        },
        Example { query: "SELECT width_bucket(5, make_array(1, 3, 6, 10))", result: "2" },
    ],
    implementation: Implementation::Scalar(|| Overloaded::udf("width_bucket", &[], choose_bucket, bucket)),
};

/// `scale`
pub static SCALE: FunctionDef = FunctionDef {
    name: "scale",
    forms: &["scale(number numeric) → integer"],
    text: "The number of digits after the point.",
    examples: &[Example { query: "SELECT scale(arrow_cast('1.500', 'Decimal128(10, 3)'))", result: "3" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf(
            "scale",
            &[],
            |types, _| choose_decimal(types, DataType::Int32),
            |arguments, _| {
                let scale = scale_of(&arguments[0]);
                Ok(Arc::new(Int32Array::from(each(arguments, |_| Ok(Some(scale)))?)))
            },
        )
    }),
};

/// `min_scale`
pub static MIN_SCALE: FunctionDef = FunctionDef {
    name: "min_scale",
    forms: &["min_scale(number numeric) → integer"],
    text: "The number of digits after the point that the number needs.",
    examples: &[Example { query: "SELECT min_scale(arrow_cast('1.500', 'Decimal128(10, 3)'))", result: "1" }],
    implementation: Implementation::Scalar(|| {
        Overloaded::udf(
            "min_scale",
            &[],
            |types, _| choose_decimal(types, DataType::Int32),
            |arguments, _| {
                let (numbers, scale) = (arguments[0].as_primitive::<Decimal128Type>(), scale_of(&arguments[0]));
                let needed = |row: usize| Ok(Some(needed_scale(numbers.value(row), scale)));
                Ok(Arc::new(Int32Array::from(each(arguments, needed)?)))
            },
        )
    }),
};

/// `factorial`
pub static FACTORIAL: FunctionDef = FunctionDef {
    name: "factorial",
    forms: &["factorial(number bigint) → numeric"],
    text: "The product of the whole numbers from 1 to the number.",
    examples: &[Example { query: "SELECT factorial(25)", result: "15511210043330985984000000" }],
    implementation: Implementation::Scalar(|| Overloaded::udf("factorial", &[], choose_factorial, factorial)),
};

/// `to_hex`
pub static TO_HEX: FunctionDef = FunctionDef {
    name: "to_hex",
    forms: &["to_hex(number integer) → text", "to_hex(number bigint) → text"],
    text: "The number in hexadecimal digits; a negative one as its two's complement.",
    examples: &[Example { query: "SELECT to_hex(arrow_cast(-1, 'Int32'))", result: "ffffffff" }],
    implementation: Implementation::Scalar(|| Overloaded::udf("to_hex", &[], choose_hex, hex)),
};

/// `round`
pub static ROUND: FunctionDef = FunctionDef {
    name: "round",
    forms: &[
        "round(number numeric) → numeric",
        "round(number numeric, digits integer) → numeric",
        "round(number double precision) → double precision",
    ],
    text: "The nearest number without a fraction, or with so many digits after the point; with a negative count, digits \
           before the point become zero. Of two that are equally near, a numeric takes the one farther from zero, a \
           double the even one.",
    examples: &[
        Example { query: "SELECT round(arrow_cast('2.5', 'Decimal128(10, 2)'))", result: "3" },
        Example { query: "SELECT round(arrow_cast('1234.567', 'Decimal128(10, 3)'), -2)", result: "1200" },
        Example { query: "SELECT round(arrow_cast(2.5, 'Float64'))", result: "2" },
    ],
    implementation: Implementation::Scalar(|| Overloaded::udf("round", &[], choose_round, round)),
};

fn out_of_range() -> DataFusionError {
    error(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, "value overflows numeric format")
}

fn scale_of(array: &ArrayRef) -> i32 {
    match array.data_type() {
        DataType::Decimal128(_, scale) => i32::from(*scale),
        _ => 0,
    }
}

/// The decimal type that holds a number, if it is exact.
fn decimal(number: &DataType) -> Option<DataType> {
    match number {
        DataType::Decimal128(_, _) => Some(number.clone()),
        DataType::Decimal256(_, scale) => Some(DataType::Decimal128(38, (*scale).min(16))),
        DataType::Int16 => Some(DataType::Decimal128(5, 0)),
        DataType::Int32 => Some(DataType::Decimal128(10, 0)),
        number if number.is_integer() => Some(DataType::Decimal128(20, 0)),
        DataType::Null => Some(DataType::Decimal128(38, 0)),
        _ => None,
    }
}

fn choose_decimal(types: &[DataType], result: DataType) -> Option<Form> {
    let [number] = types else { return None };
    Some(Form { arguments: vec![decimal(number)?], result })
}

fn sign(arguments: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
    if let DataType::Decimal256(..) = arguments[0].data_type() {
        let signs = arguments[0].as_primitive::<Decimal256Type>();
        let signs: Decimal128Array =
            signs.unary(|value| i128::from(value > i256::ZERO) - i128::from(value < i256::ZERO));
        return Ok(cast(&(Arc::new(signs.with_precision_and_scale(38, 0)?) as ArrayRef), result)?);
    }
    if let DataType::Decimal128(precision, scale) = result {
        let numbers = cast(&arguments[0], &DataType::Decimal128(38, scale_of(&arguments[0]) as i8))?;
        let signs: Decimal128Array = numbers.as_primitive::<Decimal128Type>().unary(i128::signum);
        return Ok(Arc::new(signs.with_precision_and_scale(*precision, *scale)?));
    }
    let numbers = cast(&arguments[0], &DataType::Float64)?;
    let sign = |value: f64| if value == 0.0 || value.is_nan() { value } else { value.signum() };
    let signs: Float64Array = numbers.as_primitive::<Float64Type>().unary(sign);
    Ok(cast(&(Arc::new(signs) as ArrayRef), result)?)
}

fn choose_div(types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let [left, right] = types else { return None };
    Some(Form { arguments: vec![decimal(left)?, decimal(right)?], result: DataType::Decimal128(38, 0) })
}

/// Digits of a decimal as if it had the given scale.
fn at_scale(value: i128, from: i32, to: i32) -> Result<i256> {
    let power = u32::try_from(to - from).ok().and_then(|power| i256::from_i128(10).checked_pow(power));
    power.and_then(|power| i256::from_i128(value).checked_mul(power)).ok_or_else(out_of_range)
}

fn div(arguments: &[ArrayRef], _result: &DataType) -> Result<ArrayRef> {
    let (left, right) = (arguments[0].as_primitive::<Decimal128Type>(), arguments[1].as_primitive::<Decimal128Type>());
    let (left_scale, right_scale) = (scale_of(&arguments[0]), scale_of(&arguments[1]));
    let common = left_scale.max(right_scale);
    let quotients = each(arguments, |row| {
        let divisor = at_scale(right.value(row), right_scale, common)?;
        if divisor == i256::ZERO {
            return Err(error(SqlState::DIVISION_BY_ZERO, "division by zero"));
        }
        let quotient = at_scale(left.value(row), left_scale, common)?.wrapping_div(divisor);
        quotient.to_i128().map(Some).ok_or_else(out_of_range)
    })?;
    Ok(Arc::new(Decimal128Array::from(quotients).with_precision_and_scale(38, 0)?))
}

fn choose_bucket(types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let arguments = match types {
        [number, DataType::List(item)] if number.is_numeric() && item.data_type().is_numeric() => {
            vec![DataType::Float64, DataType::List(Arc::new(Field::new("item", DataType::Float64, true)))]
        }
        [bounds @ .., count] if bounds.len() == 3 && (count.is_integer() || count == &DataType::Null) => {
            let exact: Option<Vec<DataType>> = bounds.iter().map(decimal).collect();
            let mut arguments = match exact {
                Some(exact) => exact,
                None if bounds.iter().all(|bound| bound.is_numeric() || bound == &DataType::Null) => {
                    vec![DataType::Float64; 3]
                }
                None => return None,
            };
            arguments.push(DataType::Int32);
            arguments
        }
        _ => return None,
    };
    Some(Form { arguments, result: DataType::Int32 })
}

fn wrong_bucket(message: &str) -> DataFusionError {
    error(SqlState::INVALID_ARGUMENT_FOR_WIDTH_BUCKET, message)
}

fn bucket(arguments: &[ArrayRef], _result: &DataType) -> Result<ArrayRef> {
    let buckets = if let [numbers, bounds] = arguments {
        let (numbers, bounds) = (numbers.as_primitive::<Float64Type>(), bounds.as_list::<i32>());
        each(arguments, |row| {
            let bounds = bounds.value(row);
            let bounds = bounds.as_primitive::<Float64Type>();
            if bounds.null_count() > 0 {
                return Err(wrong_bucket("thresholds array must not contain NULLs"));
            }
            let number = numbers.value(row);
            // NaN is above all numbers.
            Ok(Some(bounds.values().partition_point(|bound| number.is_nan() || *bound <= number) as i32))
        })?
    } else {
        let counts = arguments[3].as_primitive::<Int32Type>();
        each(arguments, |row| {
            let count = counts.value(row);
            if count <= 0 {
                return Err(wrong_bucket("count must be greater than zero"));
            }
            match arguments[0].data_type() {
                DataType::Float64 => {
                    let at = |place: usize| arguments[place].as_primitive::<Float64Type>().value(row);
                    float_bucket(at(0), at(1), at(2), count).map(Some)
                }
                _ => exact_bucket(arguments, row, count).map(Some),
            }
        })?
    };
    Ok(Arc::new(Int32Array::from(buckets)))
}

fn float_bucket(number: f64, low: f64, high: f64, count: i32) -> Result<i32> {
    if number.is_nan() || low.is_nan() || high.is_nan() {
        return Err(wrong_bucket("operand, lower bound, and upper bound cannot be NaN"));
    }
    if !low.is_finite() || !high.is_finite() {
        return Err(wrong_bucket("lower and upper bounds must be finite"));
    }
    if low == high {
        return Err(wrong_bucket("lower bound cannot equal upper bound"));
    }
    let (number, low, high) = if low < high { (number, low, high) } else { (-number, -low, -high) };
    Ok(if number < low {
        0
    } else if number >= high {
        count.saturating_add(1)
    } else {
        (((number - low) / (high - low) * f64::from(count)) as i32).min(count - 1) + 1
    })
}

fn exact_bucket(arguments: &[ArrayRef], row: usize, count: i32) -> Result<i32> {
    let scales: Vec<i32> = arguments[..3].iter().map(scale_of).collect();
    let common = scales.iter().copied().max().unwrap_or_default();
    let at = |place: usize| {
        let value = arguments[place].as_primitive::<Decimal128Type>().value(row);
        at_scale(value, scales[place], common)
    };
    let (mut number, mut low, mut high) = (at(0)?, at(1)?, at(2)?);
    if low == high {
        return Err(wrong_bucket("lower bound cannot equal upper bound"));
    }
    if low > high {
        (number, low, high) = (number.wrapping_neg(), low.wrapping_neg(), high.wrapping_neg());
    }
    if number < low {
        return Ok(0);
    }
    if number >= high {
        return Ok(count.saturating_add(1));
    }
    let share = number.wrapping_sub(low).checked_mul(i256::from_i128(i128::from(count))).ok_or_else(out_of_range)?;
    let place = share.wrapping_div(high.wrapping_sub(low)).to_i128().unwrap_or_default();
    Ok(place as i32 + 1)
}

fn needed_scale(value: i128, scale: i32) -> i32 {
    let (mut value, mut scale) = (value, scale);
    while scale > 0 && value % 10 == 0 {
        value /= 10;
        scale -= 1;
    }
    scale
}

fn choose_factorial(types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let [number] = types else { return None };
    let fits = number.is_integer() || number == &DataType::Null;
    fits.then(|| Form { arguments: vec![DataType::Int64], result: DataType::Decimal128(38, 0) })
}

fn factorial(arguments: &[ArrayRef], _result: &DataType) -> Result<ArrayRef> {
    let numbers = arguments[0].as_primitive::<Int64Type>();
    let products = each(arguments, |row| {
        let number = numbers.value(row);
        if number < 0 {
            let message = "factorial of a negative number is undefined";
            return Err(error(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
        }
        // The product of the first 34 is the last with 38 digits or fewer.
        let product = (1..=i128::from(number.min(34))).try_fold(1_i128, i128::checked_mul);
        product.filter(|_| number <= 33).map(Some).ok_or_else(out_of_range)
    })?;
    Ok(Arc::new(Decimal128Array::from(products).with_precision_and_scale(38, 0)?))
}

fn choose_hex(types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let argument = match types {
        [DataType::Int64 | DataType::UInt64 | DataType::UInt32] => DataType::Int64,
        [number] if number.is_integer() || number == &DataType::Null => DataType::Int32,
        _ => return None,
    };
    Some(Form { arguments: vec![argument], result: DataType::Utf8 })
}

fn hex(arguments: &[ArrayRef], _result: &DataType) -> Result<ArrayRef> {
    let texts = each(arguments, |row| {
        Ok(Some(match arguments[0].data_type() {
            DataType::Int64 => format!("{:x}", arguments[0].as_primitive::<Int64Type>().value(row)),
            _ => format!("{:x}", arguments[0].as_primitive::<Int32Type>().value(row)),
        }))
    })?;
    Ok(Arc::new(StringArray::from(texts)))
}

fn choose_round(types: &[DataType], constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let [number, digits] = types else { return rounding::choose(types, constants) };
    let digits = rounding::digits_type(digits)?;
    if number.is_floating() {
        return Some(Form { arguments: vec![DataType::Float64, digits], result: DataType::Float64 });
    }
    let number = match number {
        number if number.is_integer() => DataType::Decimal128(38, 0),
        DataType::Decimal256(..) => number.clone(),
        number => decimal(number)?,
    };
    let (DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale)) = number else { return None };
    // As many digits as are asked for, if that is known and there are so many.
    let kept = rounding::constant_digits(constants);
    let kept = kept.map_or(scale, |kept| kept.clamp(0, 30) as i8);
    Some(Form { arguments: vec![number.clone(), digits], result: rounding::with_scale(&number, kept) })
}

fn round(arguments: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
    let digits = arguments.get(1).map(rounding::digits);
    if let DataType::Decimal256(_, from) = arguments[0].data_type() {
        return round_wide(arguments, i32::from(*from), digits.as_ref(), result);
    }
    let (DataType::Decimal128(precision, to), DataType::Decimal128(_, _)) = (result, arguments[0].data_type()) else {
        let numbers = arguments[0].as_primitive::<Float64Type>();
        let rounded = each(arguments, |row| {
            let (number, digits) = (numbers.value(row), digits.as_ref().map_or(0, |digits| digits.value(row)));
            if digits == 0 {
                return Ok(Some(number.round_ties_even()));
            }
            let unit = 10_f64.powi(digits);
            Ok(Some((number * unit).round_ties_even() / unit))
        })?;
        return Ok(Arc::new(Float64Array::from(rounded)));
    };
    let numbers = arguments[0].as_primitive::<Decimal128Type>();
    let (from, to) = (scale_of(&arguments[0]), i32::from(*to));
    let rounded = each(arguments, |row| {
        let (value, digits) = (numbers.value(row), digits.as_ref().map_or(0, |digits| digits.value(row)));
        rounded_decimal(value, from, digits, to).map(Some)
    })?;
    Ok(Arc::new(Decimal128Array::from(rounded).with_precision_and_scale(*precision, to as i8)?))
}

/// The same for wide numbers.
fn round_wide(arguments: &[ArrayRef], from: i32, digits: Option<&Int32Array>, result: &DataType) -> Result<ArrayRef> {
    let (DataType::Decimal128(_, to) | DataType::Decimal256(_, to)) = result else { return Err(out_of_range()) };
    let numbers = arguments[0].as_primitive::<Decimal256Type>();
    let rounded = each(arguments, |row| {
        let digits = digits.map_or(0, |digits| digits.value(row));
        let dropped = from.saturating_sub(digits).max(0);
        // A power that does not fit is greater than twice any value.
        let (kept, unit) = match power256(dropped) {
            Some(unit) => (divided_rounded(numbers.value(row), unit), dropped),
            None => (i256::ZERO, 0),
        };
        let shift = i32::from(*to) - from + unit;
        let power = power256(shift.abs()).ok_or_else(out_of_range)?;
        if shift < 0 {
            Ok(Some(kept.wrapping_div(power)))
        } else {
            kept.checked_mul(power).map(Some).ok_or_else(out_of_range)
        }
    })?;
    let rounded: Decimal256Array = rounded.into_iter().collect();
    match result {
        DataType::Decimal128(..) => rounding::narrowed(&(Arc::new(rounded) as ArrayRef), result),
        _ if rounded.iter().flatten().all(fits) => Ok(Arc::new(rounded.with_data_type(result.clone()))),
        _ => Err(out_of_range()),
    }
}

/// A decimal with so many digits after the point, half away from zero, at another scale.
fn rounded_decimal(value: i128, from: i32, digits: i32, to: i32) -> Result<i128> {
    let dropped = from.saturating_sub(digits);
    let mut value = value;
    if dropped > 0 {
        // A power that does not fit is greater than twice any value.
        value = match u32::try_from(dropped).ok().and_then(|dropped| 10_i128.checked_pow(dropped)) {
            Some(unit) => {
                let cut = value - value % unit;
                if (value % unit).unsigned_abs() >= unit.unsigned_abs().div_ceil(2) {
                    cut.checked_add(unit * value.signum()).ok_or_else(out_of_range)?
                } else {
                    cut
                }
            }
            None => 0,
        };
    }
    let power = |exponent: i32| 10_i128.checked_pow(exponent.unsigned_abs()).ok_or_else(out_of_range);
    if to >= from {
        value.checked_mul(power(to - from)?).ok_or_else(out_of_range)
    } else {
        Ok(value / power(from - to)?)
    }
}
