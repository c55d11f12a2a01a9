//! From a logical aggregation to its spec.
//!
//! Group columns, arguments and conditions become columns of the input: where they are more than columns already, a
//! projection is put in front, so that an expression is evaluated once, and rows for which it fails are left out.
//! An argument under a FILTER is evaluated only for rows that pass.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{DFSchema, ExprSchema, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, GroupingSet};
use datafusion::logical_expr::utils::grouping_set_to_exprlist;
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan, Projection, when};
use plan::{Lower, LowerContext, Lowered, NodeId, PlanError};

use super::sets::{self, Set};
use super::values::has_exact_form;
use super::{
    AggregateDefinition, AggregateSpec, Call, CallResult, NAME, OrderedSpec, Slot, SlotKind, ValueForm, ValueSet,
};
use crate::delta::key::KeyEncoder;
use crate::expressions::refusal;
use crate::functions::aggregate::invertible::Invertible;
use crate::functions::aggregate::ordered::percentile::check;
use crate::functions::aggregate::ordered::{Argument, Layout, Method, OrderedFunction, RowEncoder};
use crate::functions::aggregate::truth::TruthFunction;
use crate::functions::aggregate::udaf::InvertibleFunction;

impl Lower for AggregateDefinition {
    fn name(&self) -> &'static str {
        NAME
    }

    fn lower(&self, plan: &LogicalPlan, context: &mut dyn LowerContext) -> Result<Lowered, PlanError> {
        let LogicalPlan::Aggregate(aggregate) = plan else { return Ok(Lowered::Declined(None)) };
        let wanted = match Wanted::new(aggregate) {
            Ok(wanted) => wanted,
            Err(reason) => return Ok(Lowered::Declined(Some(reason))),
        };
        let lowered = match &wanted.sets {
            None => wanted.columns.lower(&aggregate.input, context)?,
            Some(_) => wanted.lower_sets(aggregate, context)?,
        };
        let Some((input, positions)) = lowered else {
            return Ok(Lowered::Declined(Some("an argument of an aggregate cannot be a column".to_string())));
        };
        let append_only = context.properties(input).append_only;
        let spec = wanted.spec(aggregate, &positions, &context.schema(input), append_only)?;
        Ok(Lowered::Node(context.add(Arc::new(spec), vec![input])))
    }
}

/// The columns that an aggregation reads.
#[derive(Debug, Default)]
struct Columns {
    expressions: Vec<Expr>,
}

impl Columns {
    /// The number of an expression among the columns; the same expression is the same column.
    fn number(&mut self, expression: &Expr) -> usize {
        self.expressions.iter().position(|known| known == expression).unwrap_or_else(|| {
            self.expressions.push(expression.clone());
            self.expressions.len() - 1
        })
    }

    /// Lowers the input so that the expressions are columns of it; also gives their positions. None, and no node, if
    /// the projection cannot be made.
    fn lower(
        &self,
        input: &Arc<LogicalPlan>,
        context: &mut dyn LowerContext,
    ) -> Result<Option<(NodeId, Vec<usize>)>, PlanError> {
        let positions: Option<Vec<usize>> = self.expressions.iter().map(|e| column_of(e, input.schema())).collect();
        if let Some(positions) = positions {
            return Ok(Some((context.lower(input)?, positions)));
        }
        match self.projection(input) {
            Some(projection) => {
                let node = context.lower(&projection)?;
                Ok(Some((node, (0..self.expressions.len()).collect())))
            }
            None => Ok(None),
        }
    }

    /// The columns as columns of a plan: `column0` and so on.
    fn projection(&self, input: &Arc<LogicalPlan>) -> Option<LogicalPlan> {
        let named = |(number, expression): (usize, &Expr)| expression.clone().alias(format!("column{number}"));
        let expressions = self.expressions.iter().enumerate().map(named).collect();
        Projection::try_new(expressions, input.clone()).ok().map(LogicalPlan::Projection)
    }
}

/// The position of the input's column that an expression is, if it is one.
fn column_of(expression: &Expr, schema: &DFSchema) -> Option<usize> {
    match expression {
        Expr::Column(column) => schema.maybe_index_of_column(column),
        Expr::Alias(alias) => column_of(&alias.expr, schema),
        _ => None,
    }
}

/// An aggregation over numbered columns.
struct Wanted {
    columns: Columns,
    keys: Vec<usize>,
    /// The grouping sets, if there are any.
    sets: Option<Vec<Set>>,
    calls: Vec<WantedCall>,
}

/// A call, with columns by number.
struct WantedCall {
    function: CallFunction,
    distinct: bool,
    arguments: Vec<usize>,
    filter: Option<usize>,
    data_type: DataType,
}

#[derive(Clone, PartialEq, Eq)]
enum CallFunction {
    Count,
    State(Invertible),
    Least,
    Greatest,
    And,
    Or,
    Ordered(&'static Method, Box<Layout>),
}

impl CallFunction {
    /// The function that an aggregate is, or why it is none.
    fn of(call: &AggregateFunction) -> Result<Self, String> {
        let function = call.func.inner();
        if let Some(ordered) = function.downcast_ref::<OrderedFunction>() {
            let (method, layout) =
                ordered.call().ok_or_else(|| format!("{}() was not simplified", call.func.name()))?;
            return Ok(CallFunction::Ordered(method, Box::new(layout.clone())));
        }
        if let Some(invertible) = function.downcast_ref::<InvertibleFunction>() {
            return Ok(match invertible.aggregate() {
                Invertible::Truth(TruthFunction::And) => CallFunction::And,
                Invertible::Truth(TruthFunction::Or) => CallFunction::Or,
                aggregate => CallFunction::State(aggregate),
            });
        }
        Ok(match call.func.name() {
            "count" => CallFunction::Count,
            "min" => CallFunction::Least,
            "max" => CallFunction::Greatest,
            name => return Err(format!("{name}() is not aggregated incrementally yet")),
        })
    }
}

impl Wanted {
    /// The error is the reason for which the aggregation is declined.
    fn new(aggregate: &Aggregate) -> Result<Self, String> {
        let mut wanted = Wanted { columns: Columns::default(), keys: Vec::new(), sets: None, calls: Vec::new() };
        let schema = aggregate.input.schema();
        let expressions = grouping_set_to_exprlist(&aggregate.group_expr).map_err(|error| error.strip_backtrace())?;
        for expression in &expressions {
            comparable(expression, schema)?;
            wanted.keys.push(wanted.columns.number(expression));
        }
        let mut results = wanted.keys.len();
        if let [Expr::GroupingSet(grouping)] = aggregate.group_expr.as_slice() {
            wanted.sets = Some(grouping_sets(grouping, &expressions)?);
            results += 1;
        }
        for (index, expression) in aggregate.aggr_expr.iter().enumerate() {
            let field = aggregate.schema.fields().get(results + index);
            let data_type = field.ok_or("the plan of the aggregation has too few columns")?.data_type().clone();
            let call = wanted.call(unaliased(expression), schema, data_type)?;
            wanted.calls.push(call);
        }
        Ok(wanted)
    }

    fn call(&mut self, expression: &Expr, schema: &DFSchema, data_type: DataType) -> Result<WantedCall, String> {
        let Expr::AggregateFunction(call) = expression else {
            return Err(format!("{expression} is not an aggregate"));
        };
        let (function, params) = (CallFunction::of(call)?, &call.params);
        let counts_rows = function == CallFunction::Count
            && params.args.len() <= 1
            && !params.args.first().is_some_and(|argument| params.distinct || may_be_null(argument, schema));
        let arguments: &[Expr] = if counts_rows { &[] } else { &params.args };
        check_arguments(&function, arguments, schema, &data_type)?;
        let filter = params.filter.as_deref();
        if let Some(reason) = filter.and_then(refusal) {
            return Err(reason);
        }
        let distinct = params.distinct && function.is_changed_by_distinct();
        if distinct || function.keeps_values() {
            arguments.iter().try_for_each(|argument| comparable(argument, schema))?;
        }
        let mut numbers = Vec::with_capacity(arguments.len());
        for argument in arguments {
            let argument = match filter {
                Some(filter) if column_of(argument, schema).is_none() => {
                    when(filter.clone(), argument.clone()).end().map_err(|error| error.strip_backtrace())?
                }
                _ => argument.clone(),
            };
            numbers.push(self.columns.number(&argument));
        }
        let filter = filter.map(|filter| self.columns.number(filter));
        Ok(WantedCall { function, distinct, arguments: numbers, filter, data_type })
    }

    /// Lowers the input with each row once for every grouping set; also gives the positions of the columns. None, and no
    /// node, if that cannot be planned.
    fn lower_sets(
        &self,
        aggregate: &Aggregate,
        context: &mut dyn LowerContext,
    ) -> Result<Option<(NodeId, Vec<usize>)>, PlanError> {
        let (Some(sets), Some(columns)) = (&self.sets, self.columns.projection(&aggregate.input)) else {
            return Ok(None);
        };
        let id_type = aggregate.schema.field(self.keys.len()).data_type();
        match sets::expand(&Arc::new(columns), &self.keys, sets, id_type) {
            Ok(expanded) => {
                let node = context.lower(&expanded)?;
                let before = self.keys.len() + 1;
                Ok(Some((node, (0..self.columns.expressions.len()).map(|number| before + number).collect())))
            }
            Err(_) => Ok(None),
        }
    }

    /// The keys of the groups that are there over nothing.
    fn standing(&self, aggregate: &Aggregate) -> Result<Vec<Vec<ScalarValue>>, PlanError> {
        let Some(sets) = &self.sets else {
            return Ok(if self.keys.is_empty() { vec![Vec::new()] } else { Vec::new() });
        };
        let types: Vec<DataType> =
            aggregate.schema.fields().iter().map(|field| field.data_type().clone()).take(self.keys.len() + 1).collect();
        let (id_type, key_types) =
            types.split_last().ok_or_else(|| PlanError::internal("grouping sets without one"))?;
        sets::standing(sets, key_types, id_type).map_err(PlanError::internal)
    }

    fn spec(
        &self,
        aggregate: &Aggregate,
        positions: &[usize],
        input: &SchemaRef,
        append_only: bool,
    ) -> Result<AggregateSpec, PlanError> {
        let mut spec = AggregateSpec {
            keys: match &self.sets {
                None => self.keys.iter().map(|number| positions[*number]).collect(),
                Some(_) => (0..=self.keys.len()).collect(),
            },
            ordered: Vec::new(),
            standing: self.standing(aggregate)?,
            slots: Vec::new(),
            value_sets: Vec::new(),
            calls: Vec::new(),
            append_only,
            schema: Arc::new(aggregate.schema.as_arrow().clone()),
            text: text(aggregate),
        };
        for call in &self.calls {
            let arguments: Vec<usize> = call.arguments.iter().map(|number| positions[*number]).collect();
            let exact = arguments.iter().all(|argument| has_exact_form(input.field(*argument).data_type()));
            let result = spec.result(call, arguments, call.filter.map(|number| positions[number]), exact);
            spec.calls.push(Call { result, data_type: call.data_type.clone() });
        }
        Ok(spec)
    }
}

impl CallFunction {
    /// Whether equal values count only once under DISTINCT; min and max of different values are those of all.
    fn is_changed_by_distinct(&self) -> bool {
        matches!(self, CallFunction::Count | CallFunction::State(_) | CallFunction::Ordered(..))
    }

    /// Whether the values may be kept one by one.
    fn keeps_values(&self) -> bool {
        matches!(self, CallFunction::Least | CallFunction::Greatest | CallFunction::Ordered(..))
    }
}

impl AggregateSpec {
    /// Finds or adds what a call needs.
    fn result(
        &mut self,
        call: &WantedCall,
        arguments: Vec<usize>,
        filter: Option<usize>,
        has_exact_form: bool,
    ) -> CallResult {
        let distinct = call.distinct;
        let kind = match &call.function {
            CallFunction::Count if arguments.is_empty() && filter.is_none() => return CallResult::Rows,
            CallFunction::Count => SlotKind::Count,
            CallFunction::State(aggregate) => SlotKind::State(aggregate.family()),
            CallFunction::And | CallFunction::Or => SlotKind::Truth,
            CallFunction::Least => SlotKind::Least,
            CallFunction::Greatest => SlotKind::Greatest,
            CallFunction::Ordered(method, layout) => {
                let form = ValueForm::Ordered { order: layout.order.clone(), keeps_nulls: layout.keeps_nulls };
                let set = find_or_add(&mut self.value_sets, ValueSet { arguments: arguments.clone(), filter, form });
                if let (Some(ranks), Some(fraction), false) = (method.ranks, fraction(method, layout), distinct) {
                    let kind = SlotKind::Rank(ranks, fraction.to_bits());
                    let slot = Slot { kind, arguments, filter, values: Some(set) };
                    return CallResult::Rank(find_or_add(&mut self.slots, slot));
                }
                let layout = layout.as_ref().clone();
                self.ordered.push(OrderedSpec { method, layout, distinct, set });
                return CallResult::Ordered(self.ordered.len() - 1);
            }
        };
        let extreme = matches!(kind, SlotKind::Least | SlotKind::Greatest);
        let values = (distinct || (extreme && !self.append_only)).then(|| {
            // Without an exact form of its own, the set is also that of DISTINCT.
            let form = if extreme && has_exact_form { ValueForm::Exact } else { ValueForm::Key };
            find_or_add(&mut self.value_sets, ValueSet { arguments: arguments.clone(), filter, form })
        });
        let slot = find_or_add(&mut self.slots, Slot { kind, arguments, filter, values });
        match &call.function {
            CallFunction::State(aggregate) => CallResult::State(*aggregate, slot),
            CallFunction::And => CallResult::And(slot),
            CallFunction::Or => CallResult::Or(slot),
            CallFunction::Least | CallFunction::Greatest => CallResult::Extreme(slot),
            CallFunction::Count | CallFunction::Ordered(..) => CallResult::Count(slot),
        }
    }
}

fn find_or_add<T: PartialEq>(list: &mut Vec<T>, item: T) -> usize {
    list.iter().position(|known| *known == item).unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    })
}

/// The fraction of a percentile, if it is one and always the same.
fn fraction(method: &Method, layout: &Layout) -> Option<f64> {
    let fraction = match method.ranks?.argument() {
        None => 0.5,
        Some(argument) => match layout.arguments.get(argument)? {
            Argument::Constant(ScalarValue::Float64(fraction)) => (*fraction)?,
            _ => return None,
        },
    };
    // Another one is an error of every group.
    check(fraction).is_ok().then_some(fraction)
}

fn grouping_sets(grouping: &GroupingSet, expressions: &[&Expr]) -> Result<Vec<Set>, String> {
    let sets = sets::sets(grouping, expressions)?;
    if sets.is_empty() { Err("there are no grouping sets".to_string()) } else { Ok(sets) }
}

fn unaliased(expression: &Expr) -> &Expr {
    match expression {
        Expr::Alias(alias) => unaliased(&alias.expr),
        other => other,
    }
}

fn may_be_null(argument: &Expr, schema: &DFSchema) -> bool {
    match argument {
        #[expect(deprecated, reason = "count(*) may come in this form")]
        Expr::Wildcard { .. } => false,
        Expr::Literal(value, _) => value.is_null(),
        Expr::Column(column) => schema.field_from_column(column).map_or(true, |field| field.is_nullable()),
        _ => true,
    }
}

/// The reason for which an expression cannot be a key, if there is one.
fn comparable(expression: &Expr, schema: &DFSchema) -> Result<(), String> {
    if let Some(reason) = refusal(expression) {
        return Err(reason);
    }
    let data_type = expression.get_type(schema).map_err(|error| error.strip_backtrace())?;
    if KeyEncoder::supports(std::slice::from_ref(&data_type)) {
        return Ok(());
    }
    Err(format!("values of type {data_type} are not compared incrementally yet"))
}

fn check_arguments(
    function: &CallFunction,
    arguments: &[Expr],
    schema: &DFSchema,
    data_type: &DataType,
) -> Result<(), String> {
    if let Some(reason) = arguments.iter().find_map(refusal) {
        return Err(reason);
    }
    let types: Result<Vec<DataType>, _> = arguments.iter().map(|argument| argument.get_type(schema)).collect();
    let types = types.map_err(|error| error.strip_backtrace())?;
    let expected = match (function, types.as_slice()) {
        // Without a column there would be no rows.
        (CallFunction::Ordered(_, layout), [_, ..]) if RowEncoder::supports(&types) => {
            Some(layout.result.data_type().clone())
        }
        (CallFunction::Count, [] | [_]) => Some(DataType::Int64),
        (CallFunction::State(aggregate), types) => aggregate.result_type(types),
        (CallFunction::Least | CallFunction::Greatest, [argument]) => Some(argument.clone()),
        (CallFunction::And | CallFunction::Or, [DataType::Boolean]) => Some(DataType::Boolean),
        _ => None,
    };
    if expected.as_ref() == Some(data_type) {
        return Ok(());
    }
    Err(format!("an aggregate of {types:?} that gives {data_type} is not computed incrementally"))
}

/// For EXPLAIN.
fn text(aggregate: &Aggregate) -> String {
    let list = |expressions: &[Expr]| expressions.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match (aggregate.group_expr.is_empty(), aggregate.aggr_expr.is_empty()) {
        (true, _) => list(&aggregate.aggr_expr),
        (false, true) => format!("by {}", list(&aggregate.group_expr)),
        (false, false) => format!("{} by {}", list(&aggregate.aggr_expr), list(&aggregate.group_expr)),
    }
}
