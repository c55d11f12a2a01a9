//! Operators over JSON as calls of functions. Those that mean something for JSON only are rewritten in the syntax tree;
//! for those that mean something for other types too, the types of the operands decide.

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::DFSchema;
use datafusion::execution::SessionState;
use datafusion::logical_expr::planner::{PlannerResult, RawBinaryExpr};
use datafusion::logical_expr::{Expr, ExprSchemable, ScalarUDF};
use datafusion::sql::sqlparser::ast::{self, BinaryOperator, Expr as Ast, FunctionArguments};

use super::operators::{call, cast_as};
use super::types::PG_TYPE;
use crate::parse::fold;

/// Rewrites an operator, or a call with array literals.
pub(super) fn rewrite(expression: &mut Ast) {
    match expression {
        Ast::BinaryOp { left, op, right } => {
            let (name, takes_array) = match op {
                BinaryOperator::Arrow => ("json_get", false),
                BinaryOperator::LongArrow => ("json_get_text", false),
                BinaryOperator::HashArrow => ("json_get_path", true),
                BinaryOperator::HashLongArrow => ("json_extract_path_text", true),
                BinaryOperator::HashMinus => ("jsonb_delete_path", true),
                BinaryOperator::Question => ("jsonb_exists", false),
                BinaryOperator::QuestionPipe => ("jsonb_exists_any", true),
                BinaryOperator::QuestionAnd => ("jsonb_exists_all", true),
                _ => return,
            };
            let mut right = right.as_ref().clone();
            if takes_array {
                as_text_array(&mut right);
            }
            *expression = call(name, vec![left.as_ref().clone(), right]);
        }
        Ast::Function(function) => array_arguments(function),
        _ => {}
    }
}

/// Literals where a function takes an array of texts.
fn array_arguments(function: &mut ast::Function) {
    let [ast::ObjectNamePart::Identifier(name)] = function.name.0.as_slice() else { return };
    let places: &[usize] = match fold(name).as_str() {
        "jsonb_set" | "jsonb_insert" | "jsonb_delete_path" | "jsonb_exists_any" | "jsonb_exists_all" => &[1],
        "json_object" | "jsonb_object" => &[0, 1],
        _ => return,
    };
    let FunctionArguments::List(list) = &mut function.args else { return };
    for place in places {
        if let Some(ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(argument))) = list.args.get_mut(*place) {
            as_text_array(argument);
        }
    }
}

fn as_text_array(argument: &mut Ast) {
    if let Ast::Value(value) = argument
        && matches!(value.value, ast::Value::SingleQuotedString(_))
    {
        let text = ast::ArrayElemTypeDef::SquareBracket(Box::new(ast::DataType::Text), None);
        *argument = cast_as(argument.clone(), ast::DataType::Array(text));
    }
}

/// The functions of operators whose operands decide.
#[derive(Debug)]
pub(crate) struct Functions {
    concat: Option<Arc<ScalarUDF>>,
    delete: Option<Arc<ScalarUDF>>,
    contains: Option<Arc<ScalarUDF>>,
    overlap: Option<Arc<ScalarUDF>>,
}

impl Functions {
    pub fn new(state: &SessionState) -> Functions {
        let function = |name: &str| state.scalar_functions().get(name).cloned();
        Functions {
            concat: function("jsonb_concat"),
            delete: function("jsonb_delete"),
            contains: function("jsonb_contains"),
            overlap: function("array_overlap"),
        }
    }

    /// The call that an operator is; the operator itself if it is none.
    pub fn plan(&self, raw: RawBinaryExpr, schema: &DFSchema) -> PlannerResult<RawBinaryExpr> {
        let (function, swapped) = match raw.op {
            BinaryOperator::StringConcat if is_jsonb(&raw.left, schema) || is_jsonb(&raw.right, schema) => {
                (&self.concat, false)
            }
            BinaryOperator::Minus if is_jsonb(&raw.left, schema) => (&self.delete, false),
            BinaryOperator::AtArrow if is_text(&raw.left, schema) => (&self.contains, false),
            BinaryOperator::ArrowAt if is_text(&raw.left, schema) => (&self.contains, true),
            BinaryOperator::PGOverlap => (&self.overlap, false),
            _ => return PlannerResult::Original(raw),
        };
        match function {
            Some(function) if swapped => PlannerResult::Planned(function.call(vec![raw.right, raw.left])),
            Some(function) => PlannerResult::Planned(function.call(vec![raw.left, raw.right])),
            None => PlannerResult::Original(raw),
        }
    }
}

fn is_jsonb(expression: &Expr, schema: &DFSchema) -> bool {
    let field = expression.to_field(schema);
    field.is_ok_and(|(_, field)| field.metadata().get(PG_TYPE).is_some_and(|name| name == "jsonb"))
}

fn is_text(expression: &Expr, schema: &DFSchema) -> bool {
    matches!(expression.get_type(schema), Ok(DataType::Utf8))
}
