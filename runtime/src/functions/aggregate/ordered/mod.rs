//! Aggregates that need the rows of their group in order: arrays, texts and JSON of all values, percentiles, the mode.
//!
//! A [`Method`] says how one of them is called and what it computes from the rows. [`OrderedFunction`] is the method as
//! DataFusion sees it. When DataFusion simplifies a call, the function takes in what is fixed about it (its ORDER BY,
//! constant arguments) and becomes a [`Layout`] over columns; [`call`] is that in execution, the same for a query
//! ([`accumulate`]) and for a view, which keeps the rows of every group as a multiset.
//!
//! PostgreSQL takes rows as they arrive where a call has no ORDER BY. A relation here has no such order, so the values
//! themselves are one; and after an ORDER BY they decide between equal rows. In windows, where rows do come in an order,
//! that is kept.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::{DFSchema, DataFusionError, Result, ScalarValue};
use datafusion::logical_expr::expr::{AggregateFunction, NullTreatment, Sort};
use datafusion::logical_expr::function::{AccumulatorArgs, AggregateFunctionSimplification, StateFieldsArgs};
use datafusion::logical_expr::simplify::SimplifyContext;
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Expr, ExprSchemable, ReversedUDAF, Signature, Volatility,
};
use plan::{PlanError, SqlState};

use super::no_such_function;
use call::{GroupRows, OrderedCall};
pub use rows::{OrderColumn, RowEncoder};

pub mod accumulate;
pub mod approx;
pub mod array_agg;
pub mod call;
pub mod first_value;
pub mod json;
pub mod json_text;
pub mod mode;
pub mod percentile;
pub mod rows;
pub mod string_agg;

/// One of these aggregates.
pub struct Method {
    /// Name in SQL.
    pub name: &'static str,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// Types to which arguments are converted; none if the function does not exist for these.
    pub accept: fn(&[DataType]) -> Option<Vec<DataType>>,
    /// The result's type (the name does not matter), for arguments of accepted types.
    pub result: fn(&[FieldRef]) -> Field,
    /// Whether rows whose first argument is NULL count.
    pub keeps_nulls: bool,
    /// Whether the order is that of the values in windows too.
    pub sorts: bool,
    /// Whether the first argument is written as WITHIN GROUP (ORDER BY ...).
    pub within_group: bool,
    /// The result for the rows of a group.
    pub compute: fn(&GroupRows<'_>) -> std::result::Result<ScalarValue, PlanError>,
    /// For percentiles: the ranks on which the result depends.
    pub ranks: Option<percentile::Ranks>,
}

impl std::fmt::Debug for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Method {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Method {}

impl Hash for Method {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

/// Where an argument is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Argument {
    /// A column of the rows.
    Column(usize),
    /// The same in every row.
    Constant(ScalarValue),
}

/// What is fixed about a call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Layout {
    /// The arguments as written.
    pub arguments: Vec<Argument>,
    /// Their types.
    pub fields: Vec<FieldRef>,
    /// The order of the rows; columns that are not in it follow.
    pub order: Vec<OrderColumn>,
    /// Whether rows whose first argument is NULL count.
    pub keeps_nulls: bool,
    /// The result's type.
    pub result: FieldRef,
    /// The call's ORDER BY as written, for EXPLAIN.
    text: String,
}

/// A method for DataFusion.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OrderedFunction {
    method: &'static Method,
    name: String,
    layout: Option<Layout>,
    signature: Signature,
    aliases: Vec<String>,
}

impl OrderedFunction {
    /// The function of a method.
    pub fn udaf(method: &'static Method) -> AggregateUDF {
        AggregateUDF::from(OrderedFunction {
            method,
            name: method.name.to_string(),
            layout: None,
            signature: Signature::user_defined(Volatility::Immutable),
            aliases: method.aliases.iter().map(ToString::to_string).collect(),
        })
    }

    /// The function under another name only.
    pub fn under(&self, name: &str) -> Self {
        OrderedFunction { name: name.to_string(), aliases: Vec::new(), ..self.clone() }
    }

    /// The method, and what is fixed about the call once DataFusion has simplified it.
    pub fn call(&self) -> Option<(&'static Method, &Layout)> {
        Some((self.method, self.layout.as_ref()?))
    }

    /// Takes in what is fixed about a call.
    fn fix(&self, mut call: AggregateFunction, context: &SimplifyContext) -> Result<AggregateFunction> {
        let schema: &DFSchema = context.schema();
        let params = &mut call.params;
        let fields: Vec<FieldRef> =
            params.args.iter().map(|argument| Ok(argument.to_field(schema)?.1)).collect::<Result<_>>()?;
        let result: FieldRef = Arc::new((self.method.result)(&fields));
        let mut columns: Vec<Expr> = Vec::new();
        let mut arguments = Vec::new();
        for (position, argument) in std::mem::take(&mut params.args).into_iter().enumerate() {
            arguments.push(match constant(&argument) {
                // Without a column there would be no rows.
                Some(value) if position > 0 => Argument::Constant(value.clone()),
                _ => Argument::Column(column_number(&mut columns, argument)),
            });
        }
        let written = std::mem::take(&mut params.order_by);
        let text = order_text(&written);
        let own_columns = columns.len();
        let mut order = Vec::new();
        for sort in written {
            let Sort { expr, asc, nulls_first } = sort;
            let column = match converted(&columns[..own_columns], &expr, schema) {
                _ if self.method.within_group => 0,
                Some(column) => column,
                None => column_number(&mut columns, expr),
            };
            order.push(OrderColumn { column, descending: !asc, nulls_first });
        }
        if params.distinct && columns.len() > own_columns {
            let message = "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list";
            return Err(external(PlanError::new(SqlState::INVALID_COLUMN_REFERENCE, message)));
        }
        let ignores_nulls = params.null_treatment.take() == Some(NullTreatment::IgnoreNulls);
        let keeps_nulls = self.method.keeps_nulls && !ignores_nulls;
        let layout = Layout { arguments, fields, order, keeps_nulls, result, text };
        params.args = columns;
        call.func = Arc::new(AggregateUDF::from(OrderedFunction { layout: Some(layout), ..self.clone() }));
        Ok(call)
    }

    /// The call in execution.
    fn execution(&self, args: &AccumulatorArgs<'_>) -> Result<OrderedCall> {
        let types: Vec<DataType> = args.expr_fields.iter().map(|field| field.data_type().clone()).collect();
        let layout = match &self.layout {
            Some(layout) => layout.clone(),
            None => Layout {
                arguments: (0..types.len()).map(Argument::Column).collect(),
                fields: args.expr_fields.to_vec(),
                order: Vec::new(),
                keeps_nulls: self.method.keeps_nulls && !args.ignore_nulls,
                result: Arc::clone(&args.return_field),
                text: String::new(),
            },
        };
        OrderedCall::new(self.method, layout, &types, args.is_distinct).map_err(external)
    }
}

/// The number of a column, which is added if it is not there yet.
fn column_number(columns: &mut Vec<Expr>, column: Expr) -> usize {
    columns.iter().position(|known| is_same(known, &column)).unwrap_or_else(|| {
        columns.push(column);
        columns.len() - 1
    })
}

/// Whether two expressions are one but for names within them, which optimizing gives and takes.
fn is_same(left: &Expr, right: &Expr) -> bool {
    left == right || left.clone().unalias_nested().data == right.clone().unalias_nested().data
}

/// The number of the argument that is an expression of ORDER BY but for the conversion to the type that the function takes.
/// That keeps the order of the values.
fn converted(arguments: &[Expr], expression: &Expr, schema: &DFSchema) -> Option<usize> {
    arguments.iter().position(|argument| {
        let Expr::Cast(cast) = argument else { return false };
        let types = (cast.expr.get_type(schema), argument.get_type(schema));
        is_same(&cast.expr, expression)
            && matches!(&types, (Ok(from), Ok(to)) if
                (from.is_string() && to.is_string()) || (from.is_numeric() && to.is_numeric()))
    })
}

fn constant(expression: &Expr) -> Option<&ScalarValue> {
    match expression {
        Expr::Literal(value, _) => Some(value),
        Expr::Alias(alias) => constant(&alias.expr),
        _ => None,
    }
}

fn order_text(order: &[Sort]) -> String {
    let order: Vec<String> = order.iter().map(ToString::to_string).collect();
    order.join(", ")
}

/// An error of ours as one of DataFusion's.
pub(super) fn external(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

impl AggregateUDFImpl for OrderedFunction {
    fn name(&self) -> &str {
        &self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn display_name(&self, params: &datafusion::logical_expr::expr::AggregateFunctionParams) -> Result<String> {
        let Some(layout) = &self.layout else {
            return datafusion::logical_expr::udaf_default_display_name(self, params);
        };
        let argument = |argument: &Argument| match argument {
            Argument::Column(column) => params.args.get(*column).map_or(String::new(), ToString::to_string),
            Argument::Constant(value) => Expr::Literal(value.clone(), None).to_string(),
        };
        let mut arguments: Vec<String> = layout.arguments.iter().map(argument).collect();
        let (mut inner, mut outer) = (String::new(), String::new());
        if self.method.within_group {
            arguments.remove(0);
            outer = format!(" WITHIN GROUP (ORDER BY {})", layout.text);
        } else if !layout.text.is_empty() {
            inner = format!(" ORDER BY {}", layout.text);
        }
        let distinct = if params.distinct { "DISTINCT " } else { "" };
        let filter = params.filter.as_ref().map_or(String::new(), |filter| format!(" FILTER (WHERE {filter})"));
        Ok(format!("{}({distinct}{}{inner}){outer}{filter}", self.name, arguments.join(", ")))
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        if self.layout.is_some() {
            return Ok(arguments.to_vec());
        }
        // Where it does not fit, `return_type` says so; an error from here would be buried in DataFusion's words.
        Ok((self.method.accept)(arguments).unwrap_or_else(|| arguments.to_vec()))
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let fields: Vec<FieldRef> =
            arguments.iter().map(|data_type| Arc::new(Field::new("", data_type.clone(), true))).collect();
        Ok(self.return_field(&fields)?.data_type().clone())
    }

    fn return_field(&self, fields: &[FieldRef]) -> Result<FieldRef> {
        if let Some(layout) = &self.layout {
            return Ok(Arc::clone(&layout.result));
        }
        let types: Vec<DataType> = fields.iter().map(|field| field.data_type().clone()).collect();
        // Planning may ask before arguments are converted.
        let accepted = (self.method.accept)(&types).ok_or_else(|| no_such_function(&self.name, &types))?;
        let accepted: Vec<FieldRef> = fields
            .iter()
            .zip(accepted)
            .map(|(field, data_type)| Arc::new(field.as_ref().clone().with_data_type(data_type)))
            .collect();
        Ok(Arc::new((self.method.result)(&accepted)))
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let call = self.execution(&args)?;
        if self.layout.is_some() {
            return Ok(Box::new(accumulate::SortingAccumulator::new(call)));
        }
        Ok(Box::new(accumulate::ArrivalAccumulator::new(call)))
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        Ok(vec![Arc::new(Field::new(format_state_name(args.name, &self.name), DataType::Binary, true))])
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::NotSupported
    }

    fn simplify(&self) -> Option<AggregateFunctionSimplification> {
        if self.layout.is_some() {
            return None;
        }
        let function = self.clone();
        Some(Box::new(move |call, context| Ok(Expr::AggregateFunction(function.fix(call, context)?))))
    }

    fn supports_null_handling_clause(&self) -> bool {
        self.method.keeps_nulls
    }

    fn supports_within_group_clause(&self) -> bool {
        self.method.within_group
    }
}
