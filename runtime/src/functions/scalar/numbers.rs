//! Functions over numbers: sign, div, width_bucket, scale, min_scale, trim_scale, factorial, to_hex, round.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, Float64Array, Int32Array, StringArray};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, Float64Type, Int32Type, Int64Type, i256};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use plan::SqlState;
use plan::numeric::PLAIN_SCALE;

use super::decimals::{Decimals, Direction, decimal_type, digits_of, division_by_zero, external, of_type, overflow};
use super::numeric::at_scale;
use super::overload::{Form, Overloaded, each, error};
use super::rounding;
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

fn scale_of(array: &ArrayRef) -> i32 {
    digits_of(array.data_type()).map_or(0, |(_, scale)| i32::from(scale))
}

fn choose_decimal(types: &[DataType], result: DataType) -> Option<Form> {
    let [number] = types else { return None };
    let argument = match decimal_type(number)? {
        // Of a quotient the digits that a column keeps.
        DataType::Decimal256(_, scale) => DataType::Decimal128(38, scale.min(PLAIN_SCALE)),
        narrow => narrow,
    };
    Some(Form { arguments: vec![argument], result })
}

fn sign(arguments: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
    if result != &DataType::Float64 {
        let numbers = Decimals::new(&arguments[0])?;
        let sign = |value: i256| i128::from(value > i256::ZERO) - i128::from(value < i256::ZERO);
        return of_type(each(arguments, |row| Ok(Some(i256::from_i128(sign(numbers.value(row))))))?, result);
    }
    let sign = |value: f64| if value == 0.0 || value.is_nan() { value } else { value.signum() };
    let signs: Float64Array = arguments[0].as_primitive::<Float64Type>().unary(sign);
    Ok(Arc::new(signs))
}

fn choose_div(types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let [left, right] = types else { return None };
    Some(Form { arguments: vec![decimal_type(left)?, decimal_type(right)?], result: DataType::Decimal128(38, 0) })
}

fn div(arguments: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
    let (left, right) = (Decimals::new(&arguments[0])?, Decimals::new(&arguments[1])?);
    let common = left.scale().max(right.scale());
    let quotients = each(arguments, |row| {
        let divisor = at_scale(right.term(row), common).map_err(external)?;
        if divisor == i256::ZERO {
            return Err(division_by_zero());
        }
        Ok(Some(at_scale(left.term(row), common).map_err(external)?.wrapping_div(divisor)))
    })?;
    of_type(quotients, result)
}

fn choose_bucket(types: &[DataType], _constants: &[Option<&ScalarValue>]) -> Option<Form> {
    let arguments = match types {
        [number, DataType::List(item)] if number.is_numeric() && item.data_type().is_numeric() => {
            vec![DataType::Float64, DataType::List(Arc::new(Field::new("item", DataType::Float64, true)))]
        }
        [bounds @ .., count] if bounds.len() == 3 && (count.is_integer() || count == &DataType::Null) => {
            let exact: Option<Vec<DataType>> = bounds.iter().map(decimal_type).collect();
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
    let bounds: Vec<Decimals<'_>> = arguments[..3].iter().map(Decimals::new).collect::<Result<_>>()?;
    let common = bounds.iter().map(Decimals::scale).max().unwrap_or_default();
    let at = |place: usize| at_scale(bounds[place].term(row), common).map_err(external);
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
    let share = number.wrapping_sub(low).checked_mul(i256::from_i128(i128::from(count))).ok_or_else(overflow)?;
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
        product.filter(|_| number <= 33).map(Some).ok_or_else(overflow)
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
    let number = decimal_type(number)?;
    let (_, scale) = digits_of(&number)?;
    // As many digits as are asked for, if that is known and there are so many.
    let kept = rounding::constant_digits(constants);
    let kept = kept.map_or(scale, |kept| kept.clamp(0, 30) as i8);
    Some(Form { arguments: vec![number.clone(), digits], result: rounding::with_scale(&number, kept) })
}

fn round(arguments: &[ArrayRef], result: &DataType) -> Result<ArrayRef> {
    let (DataType::Float64, [numbers, digits]) = (result, arguments) else {
        return rounding::evaluate(arguments, result, Direction::Nearest);
    };
    let (numbers, digits) = (numbers.as_primitive::<Float64Type>(), rounding::digits(digits));
    let rounded = each(arguments, |row| {
        let unit = 10_f64.powi(digits.value(row));
        Ok(Some((numbers.value(row) * unit).round_ties_even() / unit))
    })?;
    Ok(Arc::new(Float64Array::from(rounded)))
}
