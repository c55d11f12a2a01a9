//! From a logical aggregation to its spec.
//!
//! Group columns, arguments and conditions become columns of the input: where they are more than columns already, a
//! projection is put in front, so that an expression is evaluated once, and rows for which it fails are left out.
//! An argument under a FILTER is evaluated only for rows that pass.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::{DFSchema, ExprSchema};
use datafusion::logical_expr::expr::AggregateFunction;
use datafusion::logical_expr::{Aggregate, Expr, ExprSchemable, LogicalPlan, Projection, when};
use plan::{Lower, LowerContext, Lowered, NodeId, PlanError};

use super::values::has_exact_form;
use super::{AggregateDefinition, AggregateSpec, Call, CallResult, NAME, Slot, SlotKind, ValueSet};
use crate::delta::key::KeyEncoder;
use crate::expressions::refusal;
use crate::functions::aggregate::results::{Function, result_type};

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
        let Some((input, positions)) = wanted.columns.lower(&aggregate.input, context)? else {
            return Ok(Lowered::Declined(Some("an argument of an aggregate cannot be a column".to_string())));
        };
        let append_only = context.properties(input).append_only;
        let spec = wanted.spec(aggregate, &positions, &context.schema(input), append_only);
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
        let named = |(number, expression): (usize, &Expr)| expression.clone().alias(format!("column{number}"));
        let expressions = self.expressions.iter().enumerate().map(named).collect();
        match Projection::try_new(expressions, input.clone()) {
            Ok(projection) => {
                let node = context.lower(&LogicalPlan::Projection(projection))?;
                Ok(Some((node, (0..self.expressions.len()).collect())))
            }
            Err(_) => Ok(None),
        }
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
    calls: Vec<WantedCall>,
}

/// A call, with columns by number.
struct WantedCall {
    function: CallFunction,
    distinct: bool,
    argument: Option<usize>,
    filter: Option<usize>,
    data_type: DataType,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CallFunction {
    Count,
    Sum(Function),
    Least,
    Greatest,
    And,
    Or,
}

impl Wanted {
    /// The error is the reason for which the aggregation is declined.
    fn new(aggregate: &Aggregate) -> Result<Self, String> {
        let mut wanted = Wanted { columns: Columns::default(), keys: Vec::new(), calls: Vec::new() };
        let schema = aggregate.input.schema();
        for expression in &aggregate.group_expr {
            if matches!(expression, Expr::GroupingSet(_)) {
                return Err("GROUPING SETS, ROLLUP and CUBE are not aggregated incrementally yet".to_string());
            }
            comparable(expression, schema)?;
            wanted.keys.push(wanted.columns.number(expression));
        }
        for (index, expression) in aggregate.aggr_expr.iter().enumerate() {
            let field = aggregate.schema.fields().get(aggregate.group_expr.len() + index);
            let data_type = field.ok_or("the plan of the aggregation has too few columns")?.data_type().clone();
            let call = wanted.call(unaliased(expression), schema, data_type)?;
            wanted.calls.push(call);
        }
        Ok(wanted)
    }

    fn call(&mut self, expression: &Expr, schema: &DFSchema, data_type: DataType) -> Result<WantedCall, String> {
        let Expr::AggregateFunction(AggregateFunction { func, params }) = expression else {
            return Err(format!("{expression} is not an aggregate"));
        };
        let function = match func.name() {
            "count" => CallFunction::Count,
            "sum" => CallFunction::Sum(Function::Sum),
            "avg" => CallFunction::Sum(Function::Average),
            "min" => CallFunction::Least,
            "max" => CallFunction::Greatest,
            "bool_and" => CallFunction::And,
            "bool_or" => CallFunction::Or,
            name => return Err(format!("{name}() is not aggregated incrementally yet")),
        };
        let argument = match params.args.as_slice() {
            [argument] => {
                Some(argument).filter(|argument| function != CallFunction::Count || may_be_null(argument, schema))
            }
            [] if function == CallFunction::Count => None,
            _ => return Err(format!("{}() of several arguments is not aggregated incrementally yet", func.name())),
        };
        if let Some(argument) = argument {
            check_argument(function, argument, schema, &data_type)?;
        }
        let filter = params.filter.as_deref();
        if let Some(reason) = filter.and_then(refusal) {
            return Err(reason);
        }
        // min and max of different values are those of all.
        let distinct = params.distinct && matches!(function, CallFunction::Count | CallFunction::Sum(_));
        let argument = match (argument, distinct, params.args.first()) {
            // The different values of an argument that is never NULL.
            (None, true, Some(argument)) => Some(argument),
            (argument, ..) => argument,
        };
        if let Some(argument) = argument
            && (distinct || matches!(function, CallFunction::Least | CallFunction::Greatest))
        {
            comparable(argument, schema)?;
        }
        let argument = match (argument, filter) {
            (Some(argument), Some(filter)) if column_of(argument, schema).is_none() => {
                Some(when(filter.clone(), argument.clone()).end().map_err(|error| error.strip_backtrace())?)
            }
            (argument, _) => argument.cloned(),
        };
        Ok(WantedCall {
            function,
            distinct,
            argument: argument.map(|argument| self.columns.number(&argument)),
            filter: filter.map(|filter| self.columns.number(filter)),
            data_type,
        })
    }

    fn spec(&self, aggregate: &Aggregate, positions: &[usize], input: &SchemaRef, append_only: bool) -> AggregateSpec {
        let mut spec = AggregateSpec {
            keys: self.keys.iter().map(|number| positions[*number]).collect(),
            slots: Vec::new(),
            value_sets: Vec::new(),
            calls: Vec::new(),
            append_only,
            schema: Arc::new(aggregate.schema.as_arrow().clone()),
            text: text(aggregate),
        };
        for call in &self.calls {
            let position = |number: usize| positions[number];
            let (argument, filter) = (call.argument.map(position), call.filter.map(position));
            let exact = argument.is_some_and(|argument| has_exact_form(input.field(argument).data_type()));
            let result = spec.result(call, argument, filter, exact);
            spec.calls.push(Call { result, data_type: call.data_type.clone() });
        }
        spec
    }
}

impl AggregateSpec {
    /// Finds or adds what a call needs.
    fn result(
        &mut self,
        call: &WantedCall,
        argument: Option<usize>,
        filter: Option<usize>,
        has_exact_form: bool,
    ) -> CallResult {
        let (function, distinct) = (call.function, call.distinct);
        let kind = match function {
            CallFunction::Count if argument.is_none() && filter.is_none() => return CallResult::Rows,
            CallFunction::Count => SlotKind::Count,
            CallFunction::Sum(_) => SlotKind::Sum,
            CallFunction::And | CallFunction::Or => SlotKind::Truth,
            CallFunction::Least => SlotKind::Least,
            CallFunction::Greatest => SlotKind::Greatest,
        };
        let extreme = matches!(kind, SlotKind::Least | SlotKind::Greatest);
        let values = match argument {
            Some(argument) if distinct || (extreme && !self.append_only) => {
                let exact = extreme && has_exact_form;
                Some(find_or_add(&mut self.value_sets, ValueSet { argument, filter, exact }))
            }
            _ => None,
        };
        let slot = find_or_add(&mut self.slots, Slot { kind, argument, filter, values });
        match function {
            CallFunction::Count => CallResult::Count(slot),
            CallFunction::Sum(function) => CallResult::Sum(function, slot),
            CallFunction::And => CallResult::And(slot),
            CallFunction::Or => CallResult::Or(slot),
            CallFunction::Least | CallFunction::Greatest => CallResult::Extreme(slot),
        }
    }
}

fn find_or_add<T: PartialEq>(list: &mut Vec<T>, item: T) -> usize {
    list.iter().position(|known| *known == item).unwrap_or_else(|| {
        list.push(item);
        list.len() - 1
    })
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

fn check_argument(
    function: CallFunction,
    argument: &Expr,
    schema: &DFSchema,
    data_type: &DataType,
) -> Result<(), String> {
    if let Some(reason) = refusal(argument) {
        return Err(reason);
    }
    let argument_type = argument.get_type(schema).map_err(|error| error.strip_backtrace())?;
    let expected = match function {
        CallFunction::Count => Some(DataType::Int64),
        CallFunction::Sum(function) => result_type(function, &argument_type),
        CallFunction::Least | CallFunction::Greatest => Some(argument_type.clone()),
        CallFunction::And | CallFunction::Or => Some(DataType::Boolean).filter(|boolean| *boolean == argument_type),
    };
    if expected.as_ref() == Some(data_type) {
        return Ok(());
    }
    Err(format!("an aggregate of {argument_type} that gives {data_type} is not computed incrementally"))
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
