//! What scalar functions share that take arguments of several types.
//!
//! A function says for the types of its arguments which form is meant: the types to which they are converted, and the
//! type of the result. A constant may decide the type of the result, as the second argument of `trunc` does.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use plan::{PlanError, SqlState};

use crate::functions::aggregate::no_such_function;

/// One form of a function.
pub struct Form {
    /// The types to which arguments are converted.
    pub arguments: Vec<DataType>,
    /// The type of the result.
    pub result: DataType,
}

/// Chooses the form for types of arguments and the constants among them; none if there is no such function.
pub type Choose = fn(&[DataType], &[Option<&ScalarValue>]) -> Option<Form>;

/// Computes the result, of the given type, from arguments of the form's types.
pub type Evaluate = fn(&[ArrayRef], &DataType) -> Result<ArrayRef>;

/// A scalar function with several forms.
pub struct Overloaded {
    name: &'static str,
    /// The operator that it is.
    symbol: Option<&'static str>,
    aliases: Vec<String>,
    choose: Choose,
    evaluate: Evaluate,
    signature: Signature,
}

impl Overloaded {
    /// The function of that name, for DataFusion.
    pub fn udf(name: &'static str, aliases: &[&str], choose: Choose, evaluate: Evaluate) -> ScalarUDF {
        let aliases = aliases.iter().map(ToString::to_string).collect();
        let signature = Signature::user_defined(Volatility::Immutable);
        ScalarUDF::from(Overloaded { name, symbol: None, aliases, choose, evaluate, signature })
    }

    /// An operator's function: its calls are named as the operator would be.
    pub fn operator(name: &'static str, symbol: &'static str, choose: Choose, evaluate: Evaluate) -> ScalarUDF {
        let signature = Signature::user_defined(Volatility::Immutable);
        let aliases = Vec::new();
        ScalarUDF::from(Overloaded { name, symbol: Some(symbol), aliases, choose, evaluate, signature })
    }
}

impl fmt::Debug for Overloaded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overloaded").field("name", &self.name).finish_non_exhaustive()
    }
}

// Names of functions are unique.
impl PartialEq for Overloaded {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Overloaded {}

impl Hash for Overloaded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Overloaded {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let names: Vec<String> = args.iter().map(|argument| argument.schema_name().to_string()).collect();
        Ok(match (self.symbol, names.as_slice()) {
            (Some(symbol), [left, right]) => format!("{left} {symbol} {right}"),
            _ => format!("{}({})", self.name, names.join(",")),
        })
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        // Where they do not fit, the type of the result says so; an error from here would be buried in DataFusion's words.
        let form = (self.choose)(arguments, &vec![None; arguments.len()]);
        Ok(form.map_or_else(|| arguments.to_vec(), |form| form.arguments))
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match (self.choose)(arguments, &vec![None; arguments.len()]) {
            Some(form) => Ok(form.result),
            None => Err(no_such_function(self.name, arguments)),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let form = (self.choose)(&types, args.scalar_arguments);
        let form = form.ok_or_else(|| no_such_function(self.name, &types))?;
        Ok(Arc::new(Field::new(self.name, form.result, true)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        // One row is enough when every argument is a constant.
        let rows = if constant { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|argument| argument.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let array = (self.evaluate)(&arrays, args.return_field.data_type())?;
        if constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }
}

/// The result of each row, NULL where an argument is NULL.
pub fn each<T>(arguments: &[ArrayRef], mut value: impl FnMut(usize) -> Result<Option<T>>) -> Result<Vec<Option<T>>> {
    let rows = arguments.first().map_or(0, |argument| argument.len());
    let known = |row: usize| arguments.iter().all(|argument| argument.is_valid(row));
    (0..rows).map(|row| if known(row) { value(row) } else { Ok(None) }).collect()
}

/// Whether a type is a text, or a constant whose type is not known.
pub fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null)
}

/// An error on its way through DataFusion.
pub fn error(sqlstate: SqlState, message: impl Into<String>) -> DataFusionError {
    DataFusionError::External(Box::new(PlanError::new(sqlstate, message)))
}
