//! Queries over the system catalog that psql and other tools send, where DataFusion cannot plan them as they stand.
//!
//! Two facts make them simple: some catalog relations are always empty here (policies, publications, triggers,
//! inheritance), so a select over one has no rows; and some sub-selects can be answered beforehand (a column's
//! collation is always its type's, no relation has storage options, no role is member of another).

use datafusion::sql::sqlparser::ast::{self, Expr as Ast, FunctionArguments, SetExpr};
use plan::PlanError;

use super::names;
use super::operators::call;
use crate::parse::fold;

/// Catalog relations that never hold a row.
const EMPTY: [&str; 9] = [
    "pg_policy",
    "pg_statistic_ext",
    "pg_publication",
    "pg_publication_namespace",
    "pg_publication_rel",
    "pg_inherits",
    "pg_trigger",
    "pg_event_trigger",
    "pg_foreign_table",
];

/// Replaces selects over relations that are always empty.
pub(crate) fn rewrite_query(query: &mut ast::Query) -> Result<(), PlanError> {
    if let SetExpr::Select(select) = query.body.as_mut() {
        select.projection.iter_mut().for_each(name_current_schema);
    }
    let single = matches!(query.body.as_ref(), SetExpr::Select(_));
    if rewrite_body(&mut query.body) && single {
        query.order_by = None;
    }
    Ok(())
}

/// `current_schema` without parentheses looks like a column; it becomes a constant, which needs the name said.
fn name_current_schema(item: &mut ast::SelectItem) {
    if let ast::SelectItem::UnnamedExpr(Ast::Identifier(name)) = item
        && name.quote_style.is_none()
        && name.value.eq_ignore_ascii_case("current_schema")
    {
        let alias = ast::Ident::new("current_schema");
        *item = ast::SelectItem::ExprWithAlias { expr: Ast::Identifier(name.clone()), alias };
    }
}

fn rewrite_body(body: &mut SetExpr) -> bool {
    match body {
        SetExpr::Select(select) => rewrite_select(select),
        SetExpr::SetOperation { left, right, .. } => {
            let left = rewrite_body(left);
            rewrite_body(right) && left
        }
        _ => false,
    }
}

/// Makes a select over an always empty relation one without rows: the same columns, of NULLs. Whether it did.
fn rewrite_select(select: &mut ast::Select) -> bool {
    let grouped = match &select.group_by {
        ast::GroupByExpr::Expressions(expressions, _) => !expressions.is_empty(),
        ast::GroupByExpr::All(_) => true,
    };
    if grouped || !reads(select, &EMPTY) {
        return false;
    }
    names::name_items(select);
    let named = |item: &ast::SelectItem| match item {
        ast::SelectItem::ExprWithAlias { expr, alias } if !is_count(expr) => Some(alias.clone()),
        ast::SelectItem::UnnamedExpr(Ast::Identifier(name)) => Some(name.clone()),
        ast::SelectItem::UnnamedExpr(Ast::CompoundIdentifier(parts)) => parts.last().cloned(),
        _ => None,
    };
    let Some(columns) = select.projection.iter().map(named).collect::<Option<Vec<_>>>() else { return false };
    select.projection =
        columns.into_iter().map(|alias| ast::SelectItem::ExprWithAlias { expr: null_text(), alias }).collect();
    select.from.clear();
    select.selection = Some(Ast::Value(ast::Value::Boolean(false).with_empty_span()));
    true
}

fn is_count(expression: &Ast) -> bool {
    matches!(expression, Ast::Function(function) if function.name.to_string().eq_ignore_ascii_case("count"))
}

/// Whether a select reads one of these relations of the catalog, other than as an outer join's optional side.
fn reads(select: &ast::Select, names: &[&str]) -> bool {
    let named = |factor: &ast::TableFactor| match factor {
        ast::TableFactor::Table { name, .. } => {
            let last = name.0.last().and_then(|part| part.as_ident()).map(fold);
            last.is_some_and(|last| names.contains(&last.as_str()))
        }
        _ => false,
    };
    let inner = |join: &ast::Join| {
        matches!(join.join_operator, ast::JoinOperator::Join(_) | ast::JoinOperator::Inner(_)) && named(&join.relation)
    };
    select.from.iter().any(|from| named(&from.relation) || from.joins.iter().any(inner))
}

/// Answers sub-selects over the catalog whose result is known, or of which there is one row at most.
pub(crate) fn rewrite_expression(expression: &mut Ast) {
    match expression {
        Ast::Subquery(query) => {
            let SetExpr::Select(select) = query.body.as_mut() else { return };
            if reads(select, &["pg_collation"]) {
                *expression = null_text();
            } else if reads(select, &["pg_attrdef"]) || is_class_by_oid(select) {
                at_most_one(select);
            }
        }
        Ast::BinaryOp { left, op: ast::BinaryOperator::StringConcat, right }
            if is_array_of(right, |text| text.contains("unnest(tc.reloptions)")) =>
        {
            *expression = left.as_ref().clone();
        }
        Ast::Function(_) if is_array_of(expression, |text| text.contains("pg_auth_members")) => {
            let element = ast::ArrayElemTypeDef::SquareBracket(Box::new(ast::DataType::Text), None);
            *expression = null_of(ast::DataType::Array(element));
        }
        _ => {}
    }
}

/// Makes visible that a select by a unique key has one row: by an aggregate of it.
fn at_most_one(select: &mut ast::Select) {
    if let [ast::SelectItem::UnnamedExpr(item) | ast::SelectItem::ExprWithAlias { expr: item, .. }] =
        select.projection.as_mut_slice()
        && !is_count(item)
    {
        *item = call("max", vec![item.clone()]);
    }
    // That a column has a default is said by the row's being there; a condition on the outer row alone would keep the
    // select from becoming a join.
    let Some(condition) = &mut select.selection else { return };
    if let Ast::BinaryOp { left, op: ast::BinaryOperator::And, right } = condition
        && matches!(right.as_ref(), Ast::CompoundIdentifier(parts) if parts.last().is_some_and(|part| fold(part) == "atthasdef"))
    {
        *condition = left.as_ref().clone();
    }
}

/// Whether a select reads `pg_class` alone, by its key.
fn is_class_by_oid(select: &ast::Select) -> bool {
    let key = |side: &Ast| matches!(side, Ast::CompoundIdentifier(parts) if parts.last().is_some_and(|part| fold(part) == "oid"));
    let by_key = |condition: &Ast| matches!(condition, Ast::BinaryOp { left, op: ast::BinaryOperator::Eq, right } if key(left) || key(right));
    select.from.len() == 1
        && select.from.iter().all(|from| from.joins.is_empty())
        && reads(select, &["pg_class"])
        && select.selection.as_ref().is_some_and(by_key)
}

/// Whether an expression is ARRAY(SELECT ...) of a certain select.
fn is_array_of(expression: &Ast, select: impl Fn(&str) -> bool) -> bool {
    let Ast::Function(function) = expression else { return false };
    let FunctionArguments::Subquery(query) = &function.args else { return false };
    function.name.to_string().eq_ignore_ascii_case("array") && select(&query.to_string().replace("pg_catalog.", ""))
}

fn null_text() -> Ast {
    null_of(ast::DataType::Text)
}

fn null_of(data_type: ast::DataType) -> Ast {
    Ast::Cast {
        kind: ast::CastKind::DoubleColon,
        expr: Box::new(Ast::Value(ast::Value::Null.with_empty_span())),
        data_type,
        array: false,
        format: None,
    }
}
