//! Variances, covariances, correlation and regression from exact sums.
//!
//! Kept are the number of rows, and the sums of the values and of their products. They are integers (in units of a power
//! of two for doubles, of the scale for decimals), so nothing is lost, in whatever order rows come and leave, and the
//! differences of large sums that these functions are made of do not cancel. Rounding happens once or twice at the end.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, Decimal256Array, Float64Array, Int64Array, new_null_array};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, i256};
use plan::PlanError;
use plan::numeric::QUOTIENT;

use super::big::{Big, Scaled};
use super::codec;
use super::exact::ExactSum;
use super::grouped::Rows;
use super::invertible::{GroupedStates, Invertible, nothing};
use super::number::{Number, Numbers};
use super::results::{self, Results, numeric_overflow, out_of_range};
use crate::functions::quotient::{at_quotient_scale, quotient_of_big, scale_of_big};

/// One of these functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Moment {
    VarPop,
    VarSamp,
    StddevPop,
    StddevSamp,
    CovarPop,
    CovarSamp,
    Corr,
    RegrSlope,
    RegrIntercept,
    RegrR2,
    RegrCount,
    RegrAvgX,
    RegrAvgY,
    RegrSxx,
    RegrSyy,
    RegrSxy,
}

impl Moment {
    /// All of them.
    pub const ALL: [Moment; 16] = [
        Moment::VarPop,
        Moment::VarSamp,
        Moment::StddevPop,
        Moment::StddevSamp,
        Moment::CovarPop,
        Moment::CovarSamp,
        Moment::Corr,
        Moment::RegrSlope,
        Moment::RegrIntercept,
        Moment::RegrR2,
        Moment::RegrCount,
        Moment::RegrAvgX,
        Moment::RegrAvgY,
        Moment::RegrSxx,
        Moment::RegrSyy,
        Moment::RegrSxy,
    ];

    /// Its name in SQL.
    pub fn name(self) -> &'static str {
        match self {
            Moment::VarPop => "var_pop",
            Moment::VarSamp => "var_samp",
            Moment::StddevPop => "stddev_pop",
            Moment::StddevSamp => "stddev_samp",
            Moment::CovarPop => "covar_pop",
            Moment::CovarSamp => "covar_samp",
            Moment::Corr => "corr",
            Moment::RegrSlope => "regr_slope",
            Moment::RegrIntercept => "regr_intercept",
            Moment::RegrR2 => "regr_r2",
            Moment::RegrCount => "regr_count",
            Moment::RegrAvgX => "regr_avgx",
            Moment::RegrAvgY => "regr_avgy",
            Moment::RegrSxx => "regr_sxx",
            Moment::RegrSyy => "regr_syy",
            Moment::RegrSxy => "regr_sxy",
        }
    }

    /// Whether it is of one argument.
    fn is_single(self) -> bool {
        matches!(self, Moment::VarPop | Moment::VarSamp | Moment::StddevPop | Moment::StddevSamp)
    }

    /// The types to which arguments are converted; none if the function does not exist for them.
    pub fn accepted_types(self, arguments: &[DataType]) -> Option<Vec<DataType>> {
        match arguments {
            [argument] if self.is_single() => match results::accepted_type(argument)? {
                DataType::Interval(_) => None,
                DataType::Float32 => Some(vec![DataType::Float64]),
                accepted => Some(vec![accepted]),
            },
            [y, x] if !self.is_single() => {
                let fits = |argument: &DataType| argument.is_numeric() || argument.is_null();
                (fits(y) && fits(x)).then(|| vec![DataType::Float64; 2])
            }
            _ => None,
        }
    }

    /// The type of the result for arguments of accepted types.
    pub fn result_type(self, arguments: &[DataType]) -> Option<DataType> {
        if self == Moment::RegrCount {
            return Some(DataType::Int64);
        }
        Some(match arguments.first()? {
            DataType::Int16 | DataType::Int32 | DataType::Int64 => QUOTIENT,
            DataType::Decimal128(..) | DataType::Decimal256(..) => QUOTIENT,
            _ => DataType::Float64,
        })
    }
}

/// Values that are no finite numbers, counted so that they leave again.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Specials {
    nan: i64,
    positive: i64,
    negative: i64,
}

impl Specials {
    fn add(&mut self, value: f64, weight: i64) {
        if value.is_nan() {
            self.nan += weight;
        } else if value > 0.0 {
            self.positive += weight;
        } else {
            self.negative += weight;
        }
    }

    /// The sum of values, if it is not a finite number.
    fn sum(&self) -> Option<f64> {
        match (self.nan != 0, self.positive != 0, self.negative != 0) {
            (false, false, false) => None,
            (false, true, false) => Some(f64::INFINITY),
            (false, false, true) => Some(f64::NEG_INFINITY),
            _ => Some(f64::NAN),
        }
    }
}

/// Sums in a state: of one argument the sums of x and xx; of two those of x, xx, y, yy and xy.
const SUMS_MAX: usize = 5;

/// What is kept of a group.
#[derive(Debug, Clone, Default)]
struct State {
    count: i64,
    specials: [Specials; 2],
    sums: [ExactSum; SUMS_MAX],
}

/// States of groups.
#[derive(Debug)]
pub struct Moments {
    arguments: Vec<DataType>,
    states: Vec<State>,
}

impl Moments {
    /// For values of accepted types, one or two columns (then y, x).
    pub fn new(arguments: &[DataType]) -> Option<Self> {
        let fits =
            |argument: &DataType| argument.is_integer() || argument.is_decimal() || *argument == DataType::Float64;
        let count = arguments.len();
        ((1..=2).contains(&count) && arguments.iter().all(fits))
            .then(|| Moments { arguments: arguments.to_vec(), states: Vec::new() })
    }

    fn sums(&self) -> usize {
        if self.arguments.len() == 1 { 2 } else { SUMS_MAX }
    }

    /// Powers of two by which sums and sums of products are to be multiplied.
    fn exponents(&self) -> (i64, i64) {
        if self.arguments[0] == DataType::Float64 { (-1074, -2148) } else { (0, 0) }
    }
}

impl State {
    /// Adds the x of a row, or the y.
    fn add_value(&mut self, which: usize, value: &Result<Number, f64>, weight: i64) {
        match value {
            Ok(number) => {
                number.add(weight, &mut self.sums[2 * which]);
                number.add_product(number, weight, &mut self.sums[2 * which + 1]);
            }
            Err(special) => self.specials[which].add(*special, weight),
        }
    }

    /// `n * Σab - Σa * Σb`.
    fn central(&self, a: usize, b: usize, product: usize) -> Big {
        let count = Big::from_i128(i128::from(self.count));
        let products = count.times(&self.sums[product].to_big());
        products.minus(&self.sums[a].to_big().times(&self.sums[b].to_big()))
    }
}

impl GroupedStates for Moments {
    fn resize(&mut self, groups: usize) {
        self.states.resize_with(groups, State::default);
    }

    fn add(&mut self, values: &[ArrayRef], rows: Rows<'_>) {
        let nulls = values.iter().fold(None, |nulls: Option<NullBuffer>, column| {
            NullBuffer::union(nulls.as_ref(), column.logical_nulls().as_ref())
        });
        let columns: Option<Vec<Numbers>> = values.iter().map(Numbers::new).collect();
        let states = &mut self.states;
        match columns.as_deref() {
            Some([x]) => rows.for_each_valid(nulls, |row, group, weight| {
                states[group].count += weight;
                states[group].add_value(0, &x.number(row), weight);
            }),
            Some([y, x]) => rows.for_each_valid(nulls, |row, group, weight| {
                let state = &mut states[group];
                let (y, x) = (y.number(row), x.number(row));
                state.count += weight;
                state.add_value(0, &x, weight);
                state.add_value(1, &y, weight);
                if let (Ok(x), Ok(y)) = (&x, &y) {
                    x.add_product(y, weight, &mut state.sums[4]);
                }
            }),
            _ => {}
        }
    }

    fn encode(&mut self, group: usize, out: &mut Vec<u8>) {
        let (sums, arguments) = (self.sums(), self.arguments.len());
        let state = &mut self.states[group];
        codec::put_signed(out, i128::from(state.count));
        for special in &state.specials[..arguments] {
            if *special == Specials::default() {
                out.push(0);
                continue;
            }
            out.push(1);
            for count in [special.nan, special.positive, special.negative] {
                codec::put_signed(out, i128::from(count));
            }
        }
        state.sums[..sums].iter_mut().for_each(|sum| sum.encode(out));
    }

    fn merge_encoded(&mut self, group: usize, input: &mut &[u8]) -> bool {
        let (sums, arguments) = (self.sums(), self.arguments.len());
        let state = &mut self.states[group];
        let mut merge = || {
            state.count += codec::take_i64(input)?;
            for special in &mut state.specials[..arguments] {
                if codec::take_u8(input)? != 0 {
                    special.nan += codec::take_i64(input)?;
                    special.positive += codec::take_i64(input)?;
                    special.negative += codec::take_i64(input)?;
                }
            }
            for sum in &mut state.sums[..sums] {
                sum.merge(&ExactSum::decode(input)?);
            }
            Some(())
        };
        merge().is_some()
    }

    fn finish(&self, aggregate: Invertible, groups: usize, result: &DataType) -> Results {
        let Invertible::Moment(moment) = aggregate else { return nothing(groups, result) };
        let states = &self.states[..groups];
        if moment == Moment::RegrCount {
            let values = Arc::new(Int64Array::from_iter_values(states.iter().map(|state| state.count)));
            return Results { values, errors: Vec::new() };
        }
        if *result == DataType::Float64 {
            let exponents = self.exponents();
            return collect(
                states,
                |state| state.float(moment, exponents),
                |values| Some(Arc::new(values.into_iter().collect::<Float64Array>())),
                result,
            );
        }
        let scale = match self.arguments[0] {
            DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => scale,
            _ => 0,
        };
        let numeric = |state: &State| state.numeric(moment, i32::from(scale));
        collect(
            states,
            numeric,
            |values| Some(Arc::new(values.into_iter().collect::<Decimal256Array>().with_data_type(result.clone()))),
            result,
        )
    }

    fn remove_first(&mut self, groups: usize) {
        self.states.drain(..groups);
    }

    fn memory_size(&self) -> usize {
        let heap = |state: &State| state.sums.iter().map(ExactSum::heap_size).sum::<usize>();
        self.states.capacity() * size_of::<State>() + self.states.iter().map(heap).sum::<usize>()
    }
}

/// One result a group, and the failures.
fn collect<T>(
    states: &[State],
    result_of: impl Fn(&State) -> Result<Option<T>, PlanError>,
    array: impl FnOnce(Vec<Option<T>>) -> Option<ArrayRef>,
    data_type: &DataType,
) -> Results {
    let mut errors = Vec::new();
    let mut values = Vec::with_capacity(states.len());
    for (group, state) in states.iter().enumerate() {
        values.push(result_of(state).unwrap_or_else(|error| {
            errors.push((group, error));
            None
        }));
    }
    Results { values: array(values).unwrap_or_else(|| new_null_array(data_type, states.len())), errors }
}

impl State {
    /// What the sum of squared differences is divided by; none if there are too few values.
    fn divisor(&self, moment: Moment) -> Option<Big> {
        let count = Big::from_i128(i128::from(self.count));
        match moment {
            Moment::VarSamp | Moment::StddevSamp | Moment::CovarSamp => {
                (self.count > 1).then(|| count.times(&Big::from_i128(i128::from(self.count) - 1)))
            }
            _ => (self.count > 0).then(|| count.times(&count)),
        }
    }

    /// Variance or standard deviation of integers or decimals of a scale, at the scale of quotients. A standard deviation
    /// has as many digits after the point as the variance.
    fn numeric(&self, moment: Moment, scale: i32) -> Result<Option<i256>, PlanError> {
        let Some(divisor) = self.divisor(moment) else { return Ok(None) };
        let squares = self.central(0, 0, 1);
        if matches!(moment, Moment::VarPop | Moment::VarSamp) {
            return quotient_of_big(&squares, 2 * scale, &divisor).map(Some);
        }
        let digits = scale_of_big(&squares, 2 * scale, &divisor);
        // Two digits more are cut before the last ones are rounded.
        let shift = 2 * (i32::from(digits) + 2) - 2 * scale;
        let power = Big::power_of_ten(shift.unsigned_abs());
        let (dividend, divisor) =
            if shift < 0 { (squares, divisor.times(&power)) } else { (squares.times(&power), divisor) };
        let root = dividend.divided_rounded(&divisor).root().divided_rounded(&Big::power_of_ten(2));
        at_quotient_scale(root.to_i256().ok_or_else(numeric_overflow)?, digits).map(Some)
    }

    /// The result over doubles.
    fn float(&self, moment: Moment, exponents: (i64, i64)) -> Result<Option<f64>, PlanError> {
        let Some(divisor) = self.divisor(moment) else { return Ok(None) };
        let [x, y] = &self.specials;
        let has_specials = x.sum().is_some() || y.sum().is_some();
        let result =
            if has_specials { self.special(moment, exponents) } else { self.finite(moment, &divisor, exponents) };
        match result {
            Some(result) if result.is_infinite() && !has_specials => Err(out_of_range("value out of range: overflow")),
            result => Ok(result),
        }
    }

    fn finite(&self, moment: Moment, divisor: &Big, (single, double): (i64, i64)) -> Option<f64> {
        let count = Scaled::new(self.count as f64);
        let divisor = divisor.scaled(0);
        let sum = |index: usize| self.sums[index].to_big();
        let sxx = || self.central(0, 0, 1);
        let syy = || self.central(2, 2, 3);
        let sxy = || self.central(0, 2, 4);
        let result = match moment {
            Moment::VarPop | Moment::VarSamp => sxx().scaled(double).over(divisor),
            Moment::StddevPop | Moment::StddevSamp => sxx().scaled(double).over(divisor).root(),
            Moment::CovarPop | Moment::CovarSamp => sxy().scaled(double).over(divisor),
            Moment::RegrAvgX => sum(0).scaled(single).over(count),
            Moment::RegrAvgY => sum(2).scaled(single).over(count),
            Moment::RegrSxx => sxx().scaled(double).over(count),
            Moment::RegrSyy => syy().scaled(double).over(count),
            Moment::RegrSxy => sxy().scaled(double).over(count),
            Moment::Corr => {
                let (sxx, syy) = (sxx(), syy());
                if sxx.is_zero() || syy.is_zero() {
                    return None;
                }
                let (sxy, product) = (sxy(), sxx.times(&syy));
                let correlation = sxy.scaled(double).over(product.scaled(2 * double).root());
                if sxy.times(&sxy) == product {
                    // A perfect one is exact.
                    return Some(correlation.to_f64().signum());
                }
                return Some(correlation.to_f64().clamp(-1.0, 1.0));
            }
            Moment::RegrSlope | Moment::RegrIntercept | Moment::RegrR2 => {
                let sxx = sxx();
                if sxx.is_zero() {
                    return None;
                }
                match moment {
                    Moment::RegrSlope => sxy().scaled(double).over(sxx.scaled(double)),
                    Moment::RegrIntercept => {
                        let above = sum(2).times(&sxx).minus(&sum(0).times(&sxy()));
                        above.scaled(single + double).over(sxx.scaled(double)).over(count)
                    }
                    _ => {
                        let (syy, sxy) = (syy(), sxy());
                        if syy.is_zero() {
                            return Some(1.0);
                        }
                        sxy.times(&sxy).scaled(2 * double).over(sxx.times(&syy).scaled(2 * double))
                    }
                }
            }
            Moment::RegrCount => count,
        };
        Some(result.to_f64())
    }

    /// With NaN or infinities among the values, as PostgreSQL computes with them.
    fn special(&self, moment: Moment, (single, double): (i64, i64)) -> Option<f64> {
        let [x, y] = &self.specials;
        let count = Scaled::new(self.count as f64);
        let mean = |special: &Specials, index: usize| {
            special.sum().unwrap_or_else(|| self.sums[index].to_big().scaled(single).over(count).to_f64())
        };
        let squares = |special: &Specials, a: usize, product: usize| match special.sum() {
            Some(_) => f64::NAN,
            None => self.central(a, a, product).scaled(double).over(count).to_f64(),
        };
        match moment {
            Moment::RegrAvgX => Some(mean(x, 0)),
            Moment::RegrAvgY => Some(mean(y, 2)),
            Moment::RegrSxx => Some(squares(x, 0, 1)),
            Moment::RegrSyy => Some(squares(y, 2, 3)),
            Moment::Corr if squares(x, 0, 1) == 0.0 || squares(y, 2, 3) == 0.0 => None,
            Moment::RegrSlope | Moment::RegrIntercept | Moment::RegrR2 if squares(x, 0, 1) == 0.0 => None,
            Moment::RegrR2 if squares(y, 2, 3) == 0.0 => Some(1.0),
            _ => Some(f64::NAN),
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::Float64Type;
    use proptest::prelude::*;

    use super::*;

    fn moments(y: &[f64], x: &[f64], weights: Option<&[i64]>) -> Moments {
        let mut moments = Moments::new(&[DataType::Float64, DataType::Float64]).unwrap();
        moments.resize(1);
        let columns: [ArrayRef; 2] =
            [Arc::new(Float64Array::from(y.to_vec())), Arc::new(Float64Array::from(x.to_vec()))];
        moments.add(&columns, Rows { groups: &vec![0; x.len()], weights, filter: None });
        moments
    }

    fn result(moments: &Moments, moment: Moment) -> Option<f64> {
        let results = moments.finish(Invertible::Moment(moment), 1, &DataType::Float64);
        results.values.as_primitive::<Float64Type>().iter().next().unwrap()
    }

    #[test]
    fn values_are_those_of_the_definition() {
        let line = moments(&[3.0, 5.0, 7.0], &[1.0, 2.0, 3.0], None);
        let expected = [
            (Moment::CovarPop, 4.0 / 3.0),
            (Moment::CovarSamp, 2.0),
            (Moment::Corr, 1.0),
            (Moment::RegrSlope, 2.0),
            (Moment::RegrIntercept, 1.0),
            (Moment::RegrR2, 1.0),
            (Moment::RegrAvgX, 2.0),
            (Moment::RegrAvgY, 5.0),
            (Moment::RegrSxx, 2.0),
            (Moment::RegrSyy, 8.0),
            (Moment::RegrSxy, 4.0),
        ];
        for (moment, value) in expected {
            assert_eq!(result(&line, moment), Some(value), "{moment:?}");
        }
        let flat = moments(&[3.0, 3.0], &[1.0, 1.0], None);
        assert_eq!(result(&flat, Moment::Corr), None);
        assert_eq!(result(&flat, Moment::RegrSlope), None);
        let special = moments(&[f64::NAN, 1.0], &[1.0, 2.0], None);
        assert_eq!(result(&special, Moment::RegrSxx), Some(0.5));
        assert!(result(&special, Moment::Corr).is_some_and(f64::is_nan));
    }

    #[test]
    fn large_values_do_not_cancel() {
        let x = [1e15, 1e15 + 1.0, 1e15 + 2.0];
        assert_eq!(result(&moments(&x, &x, None), Moment::RegrSxx), Some(2.0));
        let huge = [1e300, -1e300];
        assert_eq!(result(&moments(&huge, &huge, None), Moment::Corr), Some(1.0));
        let errors = moments(&huge, &huge, None).finish(Invertible::Moment(Moment::RegrSxx), 1, &DataType::Float64);
        assert_eq!(errors.errors.len(), 1);
    }

    #[test]
    fn integers_give_digits() {
        let mut moments = Moments::new(&[DataType::Int64]).unwrap();
        moments.resize(1);
        let values: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX, i64::MIN, 3]));
        moments.add(&[values], Rows { groups: &[0, 0, 0], weights: Some(&[1, 1, 2]), filter: None });
        let result = |moment: Moment| {
            let data_type = moment.result_type(&[DataType::Int64]).unwrap();
            let results = moments.finish(Invertible::Moment(moment), 1, &data_type);
            crate::delta::literal::ColumnText::new(&results.values).unwrap().value(0).unwrap()
        };
        // With 80 digits on the way.
        assert_eq!(result(Moment::VarPop), "42535295865117307928310139910543638531");
        assert_eq!(result(Moment::StddevPop), "6521908912666391106");
    }

    proptest! {
        #[test]
        fn what_is_taken_away_leaves_nothing(
            rows in prop::collection::vec((any::<f64>(), -1e6..1e6f64, -3i64..4), 1..20),
        ) {
            let y: Vec<f64> = rows.iter().map(|row| row.0).collect();
            let x: Vec<f64> = rows.iter().map(|row| row.1).collect();
            let weights: Vec<i64> = rows.iter().map(|row| row.2).collect();
            let mut moments = moments(&y, &x, Some(&weights));
            let columns: [ArrayRef; 2] = [Arc::new(Float64Array::from(y)), Arc::new(Float64Array::from(x))];
            let back: Vec<i64> = weights.iter().map(|weight| -weight).collect();
            let mut bytes = Vec::new();
            moments.encode(0, &mut bytes);
            let mut copy = Moments::new(&[DataType::Float64, DataType::Float64]).unwrap();
            copy.resize(1);
            prop_assert!(copy.merge_encoded(0, &mut bytes.as_slice()));
            copy.add(&columns, Rows { groups: &vec![0; back.len()], weights: Some(&back), filter: None });
            let mut bytes = Vec::new();
            copy.encode(0, &mut bytes);
            prop_assert_eq!(bytes, vec![0; 8]);
        }
    }
}
