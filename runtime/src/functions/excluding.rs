//! Aggregates, `first_value`, `last_value` and `nth_value` over frames that leave rows out (`EXCLUDE`).
//!
//! Of a row `r` with frame `F(r)` and peers `P(r)` (rows with equal keys, `r` among them), the function is computed over
//!
//! ```text
//! F(r) - {r}                  EXCLUDE CURRENT ROW
//! F(r) - P(r)                 EXCLUDE GROUP
//! F(r) - (P(r) - {r})         EXCLUDE TIES
//! ```
//!
//! in the order of the partition. That is at most three stretches of rows. From one row to the next they change little: what an
//! aggregate that can take values back has accumulated is moved from the one to the other; other aggregates go on if rows are
//! only added behind the last, and begin anew otherwise.
//!
//! How a call of them looks is told in [`plan::exclusion`].

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::compute::{cast, filter};
use datafusion::arrow::datatypes::{DataType, FieldRef, Int64Type, Schema};
use datafusion::common::{DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::function::{AccumulatorArgs, PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, PartitionEvaluator, Signature, Volatility, WindowUDF, WindowUDFImpl,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::Literal;
use plan::exclusion::{self, Exclusion};
use plan::{PlanError, SqlState};

use super::aggregate::udaf::InvertibleFunction;
use crate::delta::key::KeyEncoder;

/// The functions over frames that leave rows out, to register with DataFusion after its and our aggregates, of which they
/// are made. `first_value` and its like are among these.
pub fn excluding<'a>(aggregates: impl IntoIterator<Item = &'a Arc<AggregateUDF>>) -> Vec<Arc<WindowUDF>> {
    let of = |function: &Arc<AggregateUDF>| {
        let name = exclusion::excluding(function.name());
        let signature = Signature::variadic_any(Volatility::Immutable);
        Arc::new(WindowUDF::from(ExcludingFunction { function: Arc::clone(function), name, signature }))
    };
    aggregates.into_iter().map(of).collect()
}

/// One of these functions.
#[derive(Debug, PartialEq, Eq, Hash)]
struct ExcludingFunction {
    function: Arc<AggregateUDF>,
    name: String,
    signature: Signature,
}

impl ExcludingFunction {
    /// Which row of the rest it takes, if it takes one.
    fn choice(&self) -> Option<Choice> {
        match self.function.name() {
            "first_value" => Some(Choice::First),
            "last_value" => Some(Choice::Last),
            "nth_value" => Some(Choice::Nth),
            _ => None,
        }
    }

    /// The fields of the values, and how many there are.
    fn values<'a>(&self, fields: &'a [FieldRef]) -> Result<&'a [FieldRef]> {
        let place = exclusion::place_of(fields.iter().map(|field| field.data_type()));
        place.and_then(|place| fields.get(..place - 1)).ok_or_else(|| self.damaged())
    }

    fn result(&self, values: &[FieldRef]) -> Result<FieldRef> {
        match (self.choice(), values.first()) {
            (Some(_), Some(value)) => Ok(Arc::new(value.as_ref().clone().with_nullable(true))),
            (Some(_), None) => Err(self.damaged()),
            (None, _) => self.function.return_field(values),
        }
    }

    fn damaged(&self) -> DataFusionError {
        DataFusionError::Plan(format!("{} is called without what its frame leaves out", self.name))
    }
}

impl WindowUDFImpl for ExcludingFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn partition_evaluator(&self, args: PartitionEvaluatorArgs) -> Result<Box<dyn PartitionEvaluator>> {
        let values = self.values(args.input_fields())?.to_vec();
        let excluded = args.input_exprs().get(values.len() + 1).and_then(|argument| argument.downcast_ref::<Literal>());
        let excluded = excluded.and_then(|literal| Exclusion::of_argument(literal.value()));
        let (exclusion, distinct) = excluded.ok_or_else(|| self.damaged())?;
        let ignore_nulls = args.ignore_nulls();
        let computation = match self.choice() {
            Some(choice) => Computation::Choice { choice, ignore_nulls },
            None => {
                let result = self.result(&values)?;
                let exprs = args.input_exprs()[..values.len()].to_vec();
                let function = Arc::clone(&self.function);
                let call = AggregateCall { function, result, exprs, fields: values.clone(), distinct, ignore_nulls };
                Computation::Aggregate(Box::new(Accumulated::new(call)?))
            }
        };
        Ok(Box::new(ExcludingEvaluator {
            exclusion,
            values: values.len(),
            arguments: args.input_exprs().len(),
            computation,
            row: 0,
            peers: None,
        }))
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        let result = self.result(self.values(args.input_fields())?)?;
        Ok(Arc::new(result.as_ref().clone().with_name(args.name())))
    }
}

/// A row that is taken of those of a frame.
#[derive(Debug, Clone, Copy)]
enum Choice {
    First,
    Last,
    Nth,
}

/// What is computed over the rest of a frame.
#[derive(Debug)]
enum Computation {
    Choice { choice: Choice, ignore_nulls: bool },
    Aggregate(Box<Accumulated>),
}

/// Of one partition, whose rows are asked for one after the other.
#[derive(Debug)]
struct ExcludingEvaluator {
    exclusion: Exclusion,
    /// How many of the arguments are values; the condition is behind them.
    values: usize,
    /// How many arguments there are; the keys of the order as it is executed are behind them.
    arguments: usize,
    computation: Computation,
    /// The current row.
    row: usize,
    /// The peers of every row.
    peers: Option<Vec<Range<usize>>>,
}

impl PartitionEvaluator for ExcludingEvaluator {
    fn uses_window_frame(&self) -> bool {
        true
    }

    fn evaluate(&mut self, columns: &[ArrayRef], range: &Range<usize>) -> Result<ScalarValue> {
        let row = self.row;
        self.row += 1;
        if self.peers.is_none() {
            let rows = columns.first().map_or(0, |column| column.len());
            self.peers = Some(peers(columns.get(self.values + 2..self.arguments).unwrap_or_default(), rows)?);
        }
        let missing = || DataFusionError::Internal("a row is behind its partition".to_owned());
        let peers = self.peers.as_ref().and_then(|peers| peers.get(row)).ok_or_else(missing)?;
        let rest = rest(range, row, peers, self.exclusion);
        let (values, condition) = (&columns[..self.values], &columns[self.values]);
        match &mut self.computation {
            Computation::Choice { choice, ignore_nulls } => chosen(*choice, *ignore_nulls, values, row, &rest),
            Computation::Aggregate(accumulated) => {
                let wrong = || DataFusionError::Internal("a condition that is no boolean".to_owned());
                accumulated.over(rest, values, condition.as_boolean_opt().ok_or_else(wrong)?)
            }
        }
    }
}

/// The peers of every row, by keys; without keys, all rows are.
fn peers(keys: &[ArrayRef], rows: usize) -> Result<Vec<Range<usize>>> {
    if keys.is_empty() {
        return Ok(vec![0..rows; rows]);
    }
    let types: Vec<DataType> = keys.iter().map(|key| key.data_type().clone()).collect();
    let external = |error| DataFusionError::External(Box::new(error));
    let encoded = KeyEncoder::new(&types).map_err(external)?.encode(keys).map_err(external)?;
    let mut peers = Vec::with_capacity(rows);
    let mut start = 0;
    for end in 1..=rows {
        if end == rows || encoded.row(end) != encoded.row(start) {
            peers.resize(end, start..end);
            start = end;
        }
    }
    Ok(peers)
}

/// The stretches of a frame that are left, in order; none of them is empty.
fn rest(frame: &Range<usize>, row: usize, peers: &Range<usize>, exclusion: Exclusion) -> Vec<Range<usize>> {
    let part = |start: usize, end: usize| start.max(frame.start)..end.min(frame.end);
    let parts = match exclusion {
        Exclusion::CurrentRow => [part(0, row), 0..0, part(row + 1, usize::MAX)],
        Exclusion::Group => [part(0, peers.start), 0..0, part(peers.end, usize::MAX)],
        Exclusion::Ties => [part(0, peers.start), part(row, row + 1), part(peers.end, usize::MAX)],
    };
    let mut rest: Vec<Range<usize>> = Vec::with_capacity(parts.len());
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        match rest.last_mut() {
            Some(last) if last.end == part.start => last.end = part.end,
            _ => rest.push(part),
        }
    }
    rest
}

/// The value of one of the rows that are left.
fn chosen(
    choice: Choice,
    ignore_nulls: bool,
    values: &[ArrayRef],
    row: usize,
    rest: &[Range<usize>],
) -> Result<ScalarValue> {
    let Some(value) = values.first() else {
        return Err(DataFusionError::Internal("no value to choose".to_owned()));
    };
    let nulls = value.logical_nulls().filter(|_| ignore_nulls);
    let counts = |row: &usize| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(*row));
    let mut rows = rest.iter().cloned().flatten().filter(counts);
    let found = match choice {
        Choice::First => rows.next(),
        Choice::Last => rows.next_back(),
        Choice::Nth => match number(values, row)? {
            None => None,
            Some(number) if nulls.is_some() => rows.nth(number - 1),
            Some(number) => nth(number - 1, rest),
        },
    };
    match found {
        Some(row) => ScalarValue::try_from_array(value, row),
        None => ScalarValue::try_from(value.data_type()),
    }
}

/// The number of the row that `nth_value` takes, from 1 on; none if it is NULL.
fn number(values: &[ArrayRef], row: usize) -> Result<Option<usize>> {
    let Some(numbers) = values.get(1) else { return Ok(None) };
    let number = cast(&numbers.slice(row, 1), &DataType::Int64)?;
    let number = number.as_primitive::<Int64Type>();
    if number.is_null(0) {
        return Ok(None);
    }
    match usize::try_from(number.value(0)) {
        Ok(number) if number > 0 => Ok(Some(number)),
        _ => {
            let message = "argument of nth_value must be greater than zero";
            let error = PlanError::new(SqlState::INVALID_ARGUMENT_FOR_NTH_VALUE, message);
            Err(DataFusionError::External(Box::new(error)))
        }
    }
}

/// The row that has so many before it.
fn nth(mut before: usize, rest: &[Range<usize>]) -> Option<usize> {
    for part in rest {
        if before < part.len() {
            return Some(part.start + before);
        }
        before -= part.len();
    }
    None
}

/// An aggregate and what its accumulators are made of.
#[derive(Debug)]
struct AggregateCall {
    function: Arc<AggregateUDF>,
    result: FieldRef,
    exprs: Vec<Arc<dyn PhysicalExpr>>,
    fields: Vec<FieldRef>,
    distinct: bool,
    ignore_nulls: bool,
}

impl AggregateCall {
    fn accumulator(&self) -> Result<Box<dyn Accumulator>> {
        self.function.accumulator(AccumulatorArgs {
            return_field: Arc::clone(&self.result),
            schema: &Schema::empty(),
            ignore_nulls: self.ignore_nulls,
            order_bys: &[],
            is_reversed: false,
            name: self.function.name(),
            is_distinct: self.distinct,
            exprs: &self.exprs,
            expr_fields: &self.fields,
        })
    }

    /// Whether values may be taken back in any order.
    fn is_invertible(&self) -> bool {
        self.function.inner().downcast_ref::<InvertibleFunction>().is_some() || self.function.name() == "count"
    }
}

/// An aggregate over some stretches of rows.
#[derive(Debug)]
struct Accumulated {
    call: AggregateCall,
    accumulator: Box<dyn Accumulator>,
    invertible: bool,
    taken: Vec<Range<usize>>,
    /// Over those.
    result: Option<ScalarValue>,
}

impl Accumulated {
    fn new(call: AggregateCall) -> Result<Self> {
        let accumulator = call.accumulator()?;
        let invertible = call.is_invertible() && accumulator.supports_retract_batch();
        Ok(Accumulated { call, accumulator, invertible, taken: Vec::new(), result: None })
    }

    /// The result over other stretches.
    fn over(
        &mut self,
        wanted: Vec<Range<usize>>,
        values: &[ArrayRef],
        condition: &BooleanArray,
    ) -> Result<ScalarValue> {
        if let Some(result) = self.result.as_ref().filter(|_| self.taken == wanted) {
            return Ok(result.clone());
        }
        let mut gone = without(&self.taken, &wanted);
        let mut come = without(&wanted, &self.taken);
        let last = self.taken.last().map_or(0, |part| part.end);
        let follow = gone.is_empty() && come.first().is_none_or(|part| part.start >= last);
        let rows = |parts: &[Range<usize>]| parts.iter().map(ExactSizeIterator::len).sum::<usize>();
        let is_nearer = rows(&gone) + rows(&come) <= rows(&wanted);
        let goes_on = follow || (self.invertible && is_nearer);
        if !goes_on {
            self.accumulator = self.call.accumulator()?;
            (gone, come) = (Vec::new(), wanted.clone());
        }
        for part in come {
            self.accumulator.update_batch(&rows_of(values, condition, &part)?)?;
        }
        for part in gone {
            self.accumulator.retract_batch(&rows_of(values, condition, &part)?)?;
        }
        self.taken = wanted;
        let result = self.accumulator.evaluate()?;
        self.result = Some(result.clone());
        Ok(result)
    }
}

/// The values of those rows of a stretch that the condition lets through.
fn rows_of(values: &[ArrayRef], condition: &BooleanArray, part: &Range<usize>) -> Result<Vec<ArrayRef>> {
    let (start, length) = (part.start, part.len());
    let condition = condition.slice(start, length);
    let stretches = values.iter().map(|column| column.slice(start, length));
    if condition.null_count() == 0 && condition.true_count() == length {
        return Ok(stretches.collect());
    }
    stretches.map(|column| Ok(filter(&column, &condition)?)).collect()
}

/// The rows of some stretches that are in no other ones. Both are in order and do not overlap.
fn without(parts: &[Range<usize>], others: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut left = Vec::new();
    for part in parts {
        let mut start = part.start;
        for other in others.iter().filter(|other| other.start < part.end && other.end > part.start) {
            if start < other.start {
                left.push(start..other.start);
            }
            start = start.max(other.end);
        }
        if start < part.end {
            left.push(start..part.end);
        }
    }
    left
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use datafusion::arrow::array::{Int64Array, UInt64Array};
    use datafusion::arrow::compute::take;
    use datafusion::arrow::datatypes::Field;
    use datafusion::logical_expr::Expr;
    use datafusion::physical_expr::expressions::Column;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// An evaluator of `function(value)` over a partition with one key.
    fn evaluator(function: &AggregateUDF, exclusion: Exclusion, distinct: bool) -> Box<dyn PartitionEvaluator> {
        let functions = excluding([&Arc::new(function.clone())]);
        let Expr::Literal(excluded, _) = exclusion.argument(distinct) else { unreachable!() };
        let fields: Vec<FieldRef> = [DataType::Int64, DataType::Boolean, excluded.data_type(), DataType::Int64]
            .into_iter()
            .map(|data_type| Arc::new(Field::new("argument", data_type, true)))
            .collect();
        let column = |place| Arc::new(Column::new("argument", place)) as Arc<dyn PhysicalExpr>;
        let exprs = [column(0), column(1), Arc::new(Literal::new(excluded)), column(3)];
        functions[0].partition_evaluator_factory(PartitionEvaluatorArgs::new(&exprs, &fields, false, false)).unwrap()
    }

    /// What is left of a frame, row by row.
    fn left(frame: &Range<usize>, row: usize, keys: &Int64Array, exclusion: Exclusion) -> Vec<u64> {
        let stays = |other: &usize| match exclusion {
            Exclusion::CurrentRow => *other != row,
            Exclusion::Group => keys.value(*other) != keys.value(row),
            Exclusion::Ties => *other == row || keys.value(*other) != keys.value(row),
        };
        frame.clone().filter(stays).map(|row| row as u64).collect()
    }

    /// The aggregate of those of the rows that the condition lets through.
    fn from_scratch(function: &AggregateUDF, distinct: bool, values: &ArrayRef) -> ScalarValue {
        let field: FieldRef = Arc::new(Field::new("value", DataType::Int64, true));
        let call = AggregateCall {
            function: Arc::new(function.clone()),
            result: function.return_field(std::slice::from_ref(&field)).unwrap(),
            exprs: vec![Arc::new(Column::new("value", 0))],
            fields: vec![field],
            distinct,
            ignore_nulls: false,
        };
        let mut accumulator = call.accumulator().unwrap();
        accumulator.update_batch(std::slice::from_ref(values)).unwrap();
        accumulator.evaluate().unwrap()
    }

    #[test]
    fn what_is_moved_is_what_is_computed_from_scratch() {
        let count = datafusion::functions_aggregate::count::count_udaf().as_ref().clone();
        let mut functions = vec![(count.clone(), true), (count, false)];
        let named = |name: &str| crate::functions::aggregates().into_iter().find(|function| function.name() == name);
        for name in ["sum", "avg", "min", "max", "bit_xor", "array_agg"] {
            functions.push((named(name).unwrap().as_ref().clone(), false));
        }
        functions.push((named("sum").unwrap().as_ref().clone(), true));
        let mut random = StdRng::seed_from_u64(7);
        for (round, (function, distinct)) in functions.iter().cycle().take(180).enumerate() {
            let exclusion = [Exclusion::CurrentRow, Exclusion::Group, Exclusion::Ties][round / functions.len() % 3];
            let rows = random.random_range(1..30);
            let mut keys: Vec<i64> = (0..rows).map(|_| random.random_range(0..6)).collect();
            keys.sort_unstable();
            let keys = Int64Array::from(keys);
            let values: ArrayRef =
                Arc::new((0..rows).map(|_| Some(random.random_range(0..4)).filter(|v| *v > 0)).collect::<Int64Array>());
            let condition: BooleanArray = (0..rows).map(|_| Some(random.random_range(0..5) > 0)).collect();
            let back = random.random_range(0..6);
            let ahead = random.random_range(0..6);
            let mut evaluator = evaluator(function, exclusion, *distinct);
            let excluded = exclusion.argument(*distinct);
            let Expr::Literal(excluded, _) = excluded else { unreachable!() };
            let columns: Vec<ArrayRef> = vec![
                Arc::clone(&values),
                Arc::new(condition.clone()),
                excluded.to_array_of_size(rows).unwrap(),
                Arc::new(keys.clone()),
            ];
            for row in 0..rows {
                let frame = match round % 4 {
                    0 => 0..row + 1,
                    1 => 0..rows,
                    2 => row..rows,
                    _ => row.saturating_sub(back).min(rows)..(row + ahead).min(rows),
                };
                let mut rest = left(&frame, row, &keys, exclusion);
                rest.retain(|row| condition.value(*row as usize));
                let rest = take(&values, &UInt64Array::from(rest), None).unwrap();
                let expected = from_scratch(function, *distinct, &rest);
                let result = evaluator.evaluate(&columns, &frame).unwrap();
                assert_eq!(result, expected, "{} {exclusion:?} of {frame:?} at {row}", function.name());
            }
        }
    }
}
