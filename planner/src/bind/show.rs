//! SHOW TABLES and the like: queries over information_schema and pg_catalog.

use datafusion::logical_expr::LogicalPlan;
use plan::PlanError;

use super::context::Context;
use crate::parse::{ShowRelations, parse_query_text};

/// Binds a listing.
pub(super) fn bind(context: &Context<'_>, what: &ShowRelations) -> Result<LogicalPlan, PlanError> {
    let of_kind = |kind: &str| {
        format!(
            "SELECT n.nspname AS schema, c.relname AS name FROM pg_catalog.pg_class c \
             JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace \
             WHERE c.relkind = '{kind}' AND n.nspname <> 'pg_catalog' AND n.nspname <> 'information_schema' ORDER BY 1, 2"
        )
    };
    let text = match what {
        ShowRelations::Tables => of_kind("r"),
        ShowRelations::Views => of_kind("v"),
        ShowRelations::MaterializedViews => of_kind("m"),
        ShowRelations::Schemas => "SELECT nspname AS name FROM pg_catalog.pg_namespace ORDER BY 1".to_string(),
        ShowRelations::Columns { schema, relation } => {
            // An error for a relation that is not there.
            context.resolve(schema.as_deref(), relation)?;
            let relation = relation.replace('\'', "''");
            let in_schema = match schema {
                Some(schema) => format!(" AND table_schema = '{}'", schema.replace('\'', "''")),
                None => String::new(),
            };
            format!(
                "SELECT column_name AS name, data_type AS type, is_nullable AS nullable FROM information_schema.columns \
                 WHERE table_name = '{relation}'{in_schema} ORDER BY ordinal_position"
            )
        }
    };
    let (_, query) = parse_query_text(&text)?;
    Ok(context.query(&query, &[])?.0)
}
