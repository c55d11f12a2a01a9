//! What functions over json and jsonb share.
//!
//! Both types are texts to Arrow; a field's metadata says which it is. So these functions see fields and not only types,
//! and mark their results. Those of jsonb are canonical texts; those of json keep the text as it was written.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use plan::PlanError;
use plan::json::Json;

use crate::functions::aggregate::no_such_function;

/// The key of a field's metadata under which its PostgreSQL type stands.
const PG_TYPE: &str = "pg_type";

/// Which of the two types a function's results and texts are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavor {
    /// json
    Json,
    /// jsonb
    Jsonb,
    /// That of the first argument that is one of them, else jsonb.
    OfArgument,
}

/// The type of a result.
#[derive(Debug, Clone, PartialEq)]
pub enum Output {
    /// The call's own type.
    Json,
    /// An array of it.
    JsonList,
    /// Another.
    Of(DataType),
}

/// One call.
#[derive(Debug)]
pub struct Call<'a> {
    /// Results are jsonb.
    pub binary: bool,
    /// The arguments' fields.
    pub fields: &'a [FieldRef],
}

/// For types of arguments the types to which they are converted, and the result; none if there is no such function.
pub type Choose = fn(&[DataType]) -> Option<(Vec<DataType>, Output)>;

/// Computes the result.
pub type Evaluate = fn(&[ArrayRef], &Call<'_>) -> Result<ArrayRef>;

/// A function over json or jsonb.
pub struct JsonFunction {
    name: &'static str,
    aliases: Vec<String>,
    flavor: Flavor,
    choose: Choose,
    evaluate: Evaluate,
    signature: Signature,
}

impl JsonFunction {
    /// The function of that name, for DataFusion.
    pub fn udf(name: &'static str, aliases: &[&str], flavor: Flavor, choose: Choose, evaluate: Evaluate) -> ScalarUDF {
        let aliases = aliases.iter().map(ToString::to_string).collect();
        let signature = Signature::user_defined(Volatility::Immutable);
        ScalarUDF::from(JsonFunction { name, aliases, flavor, choose, evaluate, signature })
    }

    fn is_binary(&self, fields: &[FieldRef]) -> bool {
        match self.flavor {
            Flavor::Json => false,
            Flavor::Jsonb => true,
            Flavor::OfArgument => fields.iter().find_map(|field| json_type(field)).is_none_or(|name| name == "jsonb"),
        }
    }
}

/// json or jsonb, if a field is of one of these.
pub fn json_type(field: &Field) -> Option<&str> {
    field.metadata().get(PG_TYPE).map(String::as_str).filter(|name| matches!(*name, "json" | "jsonb"))
}

impl fmt::Debug for JsonFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JsonFunction").field("name", &self.name).finish_non_exhaustive()
    }
}

// Names of functions are unique.
impl PartialEq for JsonFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for JsonFunction {}

impl Hash for JsonFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for JsonFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>> {
        // Where they do not fit, the type of the result says so; an error from here would be buried in DataFusion's words.
        Ok((self.choose)(arguments).map_or_else(|| arguments.to_vec(), |(types, _)| types))
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match (self.choose)(arguments) {
            Some((_, Output::Json)) => Ok(DataType::Utf8),
            Some((_, Output::JsonList)) => Ok(DataType::List(Arc::new(Field::new("item", DataType::Utf8, true)))),
            Some((_, Output::Of(data_type))) => Ok(data_type),
            None => Err(no_such_function(self.name, arguments)),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        let types: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let data_type = self.return_type(&types)?;
        let name = if self.is_binary(args.arg_fields) { "jsonb" } else { "json" };
        let marked = |name: String| HashMap::from([(PG_TYPE.to_string(), name)]);
        let field = Field::new(self.name, data_type, true);
        Ok(Arc::new(match (self.choose)(&types) {
            Some((_, Output::Json)) => field.with_metadata(marked(name.to_string())),
            Some((_, Output::JsonList)) => field.with_metadata(marked(format!("{name}[]"))),
            _ => field,
        }))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|argument| matches!(argument, ColumnarValue::Scalar(_)));
        // One row is enough when every argument is a constant.
        let rows = if constant { 1 } else { args.number_rows };
        let arrays = args.args.iter().map(|argument| argument.to_array(rows)).collect::<Result<Vec<_>>>()?;
        let call = Call { binary: self.is_binary(&args.arg_fields), fields: &args.arg_fields };
        let array = (self.evaluate)(&arrays, &call)?;
        if constant && array.len() == 1 {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?));
        }
        Ok(ColumnarValue::Array(array))
    }
}

/// An error on its way through DataFusion.
pub fn external(error: PlanError) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}

/// Reads a text.
pub fn parse(text: &str) -> Result<Json<'_>> {
    plan::json::parse(text).map_err(external)
}

impl Call<'_> {
    /// A value as text of the call's type.
    pub fn text(&self, json: &Json<'_>) -> Result<String> {
        if self.binary || json.text.is_empty() {
            return json.value.canonical().map_err(external);
        }
        Ok(json.text.to_string())
    }
}

/// Texts made of the first argument, read as JSON, where no argument is NULL.
pub fn each_json(
    arguments: &[ArrayRef],
    mut value: impl FnMut(&Json<'_>, usize) -> Result<Option<String>>,
) -> Result<ArrayRef> {
    let jsons = arguments[0].as_string::<i32>();
    let mut texts = Vec::with_capacity(jsons.len());
    for row in 0..jsons.len() {
        let known = arguments.iter().all(|argument| argument.is_valid(row));
        texts.push(if known { value(&parse(jsons.value(row))?, row)? } else { None });
    }
    Ok(Arc::new(StringArray::from(texts)))
}

/// The texts of an array argument at a row.
pub fn texts_at(argument: &ArrayRef, row: usize) -> Vec<Option<String>> {
    let items = argument.as_list::<i32>().value(row);
    items.as_string::<i32>().iter().map(|item| item.map(str::to_string)).collect()
}

/// An array of texts as a type.
pub fn text_list() -> DataType {
    DataType::List(Arc::new(Field::new("item", DataType::Utf8, true)))
}

/// Whether a type is a text, an array of texts or a constant of which neither is known.
pub fn is_texts(data_type: &DataType) -> bool {
    match data_type {
        DataType::List(item) => super::super::overload::is_text(item.data_type()),
        _ => false,
    }
}
