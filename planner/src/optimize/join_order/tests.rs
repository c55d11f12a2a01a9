//! The orders that are chosen, as text: `(a b)` is a join by keys, `[a b]` one by other conditions, `{a b}` one without any.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use datafusion::arrow::datatypes::Schema;
use datafusion::logical_expr::{JoinType, LogicalPlan};
use plan::{Growth, Layout, Relation, RelationId, RelationKind};

use crate::catalog::{Catalog, Object, SessionInfo, Sizes, TableInfo};
use crate::{Planner, Statement, testing};

/// Tables `a` to `j`, each with a primary key `id` and columns x, y, z, and `m`, whose key is (x, y).
struct World {
    planner: Planner,
    session: SessionInfo,
    objects: HashMap<String, Object>,
    sizes: Sizes,
}

impl Catalog for World {
    fn resolve(&self, _schema: Option<&str>, name: &str, _search_path: &[String]) -> Option<Object> {
        self.objects.get(name).cloned()
    }

    fn schema_exists(&self, name: &str) -> bool {
        name == "public"
    }

    fn relation_names(&self, _search_path: &[String]) -> Vec<String> {
        self.objects.keys().cloned().collect()
    }

    fn rows(&self, relation: RelationId) -> Option<u64> {
        self.sizes.rows.get(&relation).copied()
    }
}

impl World {
    /// Tables with so many rows; the others have none.
    fn new(sizes: &[(&str, u64)]) -> World {
        let mut world = World {
            planner: testing::planner(),
            session: testing::session(),
            objects: HashMap::new(),
            sizes: Sizes::default(),
        };
        for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"] {
            world.create(&format!("CREATE TABLE {name} (id int PRIMARY KEY, x int, y int, z bigint)"));
        }
        world.create("CREATE TABLE m (x int, y int, z bigint, PRIMARY KEY (x, y))");
        for (name, rows) in sizes {
            let Some(Object::Table(table)) = world.objects.get(*name) else { panic!("{name} is no table") };
            world.sizes.rows.insert(table.relation.id, *rows);
        }
        world
    }

    fn bind(&self, sql: &str) -> Statement {
        let parsed = self.planner.parse(sql).unwrap();
        self.planner.bind(&parsed[0], self, &self.session, &[]).unwrap().statement
    }

    fn create(&mut self, sql: &str) {
        let Statement::CreateTable(table) = self.bind(sql) else { panic!("{sql}") };
        let relation = Arc::new(Relation {
            id: RelationId(16 + 2 * self.objects.len() as u32),
            name: table.name.name.clone(),
            kind: RelationKind::Table,
            schema: Arc::new(Schema::new(table.fields.clone())),
            layout: Layout::Keyed(table.primary_key.clone()),
            append_only: false,
            growth: Growth::of_table(false),
            watermarks: Vec::new(),
        });
        let info = TableInfo { relation, columns: table.columns, primary_key: table.primary_key };
        self.objects.insert(table.name.name, Object::Table(Arc::new(info)));
    }

    /// The plan of a query, which must have the columns of the one without a chosen order.
    fn plan(&self, sql: &str) -> LogicalPlan {
        let Statement::Query(query) = self.bind(sql) else { panic!("{sql}") };
        let sizes = self.planner.sizes(&query, self).unwrap();
        let plan = self.planner.optimize_for_dataflow(query.clone(), sizes.as_ref()).unwrap();
        let written = self.planner.optimize_for_dataflow(query, None).unwrap();
        assert_eq!(plan.schema().columns(), written.schema().columns(), "{sql}");
        plan
    }

    /// The order of a query's joins.
    fn order(&self, sql: &str) -> String {
        order(&self.plan(sql))
    }

    /// The order without a choice.
    fn written(&self, sql: &str) -> String {
        let Statement::Query(query) = self.bind(sql) else { panic!("{sql}") };
        order(&self.planner.optimize_for_dataflow(query, None).unwrap())
    }
}

fn order(plan: &LogicalPlan) -> String {
    match plan {
        LogicalPlan::Join(join) => {
            let (left, right) = (order(&join.left), order(&join.right));
            match (join.join_type, join.on.is_empty(), &join.filter) {
                (JoinType::Inner, false, _) => format!("({left} {right})"),
                (JoinType::Inner, true, Some(_)) => format!("[{left} {right}]"),
                (JoinType::Inner, true, None) => format!("{{{left} {right}}}"),
                (other, _, _) => format!("({left} {other} {right})"),
            }
        }
        LogicalPlan::TableScan(scan) => scan.table_name.table().to_owned(),
        LogicalPlan::SubqueryAlias(alias) if matches!(alias.input.as_ref(), LogicalPlan::TableScan(_)) => {
            alias.alias.table().to_owned()
        }
        other => other.inputs().into_iter().map(order).collect::<Vec<_>>().join(" "),
    }
}

/// Each join with its keys and conditions, and each filter, from above.
fn conditions(plan: &LogicalPlan) -> String {
    let mut text = String::new();
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::Join(join) => {
                let keys = join.on.iter().map(|(left, right)| format!("{left} = {right}"));
                let all: Vec<String> = keys.chain(join.filter.as_ref().map(ToString::to_string)).collect();
                let _ = writeln!(text, "join {}", all.join(" AND "));
            }
            LogicalPlan::Filter(filter) => {
                let _ = writeln!(text, "filter {}", filter.predicate);
            }
            _ => {}
        }
        Ok(datafusion::common::tree_node::TreeNodeRecursion::Continue)
    })
    .unwrap();
    text
}

const CHAIN: &str = "SELECT a.y, d.y FROM a JOIN b ON a.x = b.x JOIN c ON b.y = c.y JOIN d ON c.x = d.x";

#[test]
fn a_chain_begins_where_results_are_small() {
    let world = World::new(&[("a", 1_000_000), ("b", 1_000_000), ("c", 1000), ("d", 10)]);
    assert_eq!(world.order(CHAIN), "(a (b (c d)))");
}

#[test]
fn with_nothing_known_the_written_order_stays() {
    let world = World::new(&[]);
    for sql in [
        "SELECT 1 FROM a JOIN b ON a.x = b.id JOIN c ON b.x = c.id JOIN d ON c.x = d.id",
        "SELECT 1 FROM d JOIN c ON d.x = c.id JOIN b ON c.x = b.id JOIN a ON b.x = a.id",
        "SELECT 1 FROM a, b, c WHERE a.x = b.x AND b.x = c.x",
    ] {
        assert_eq!(world.order(sql), world.written(sql), "{sql}");
    }
}

#[test]
fn a_star_takes_filtered_dimensions_first() {
    let sql =
        "SELECT f.z FROM f JOIN a ON f.x = a.id JOIN b ON f.y = b.id JOIN c ON f.z = c.z AND c.x = 1 WHERE b.y = 3";
    let world = World::new(&[("f", 1_000_000), ("a", 100), ("b", 100), ("c", 100)]);
    let order = world.order(sql);
    assert!(order.ends_with("a)") && !order.contains("(f a)"), "{order}");
    // Without sizes the filter is all that is known.
    assert_eq!(
        World::new(&[]).order("SELECT f.z FROM f JOIN a ON f.x = a.id JOIN b ON f.y = b.id WHERE b.y = 3"),
        "((f b) a)"
    );
}

#[test]
fn a_join_on_a_whole_key_does_not_grow() {
    let sql = "SELECT a.z, m.z, b.z FROM a JOIN b ON a.y = b.y JOIN m ON a.x = m.x AND a.y = m.y";
    let world = World::new(&[("a", 10_000), ("b", 10_000), ("m", 1_000_000)]);
    assert_eq!(world.order(sql), "((a m) b)");
    let half = sql.replace(" AND a.y = m.y", "");
    assert_eq!(world.order(&half), "((a b) m)", "half of a key is not unique");
}

#[test]
fn a_clique_uses_equalities_that_follow() {
    let world = World::new(&[("a", 1_000_000), ("b", 1_000_000), ("c", 10), ("d", 10)]);
    let sql = "SELECT 1 FROM a JOIN b ON a.x = b.x JOIN c ON b.x = c.id JOIN d ON a.x = d.id";
    let order = world.order(sql);
    assert!(order.contains("(c d)"), "{order}");
    // Three classes of keys would be one too many.
    assert_eq!(conditions(&world.plan(sql)).matches('=').count(), 3);
}

#[test]
fn cross_joins_come_last_and_only_where_nothing_connects() {
    let world = World::new(&[("a", 1000), ("b", 1000), ("c", 1000), ("d", 5)]);
    assert_eq!(world.order("SELECT 1 FROM a CROSS JOIN b JOIN c ON a.x = c.x AND c.y = b.y"), "((a c) b)");
    let order = world.order("SELECT 1 FROM a CROSS JOIN d CROSS JOIN b JOIN c ON a.x = c.x AND c.y = b.y");
    assert_eq!(order.matches('{').count(), 1, "{order}");
    assert_eq!(order.matches('(').count(), 2, "{order}");
}

#[test]
fn bands_are_joined_by_what_is_equal_first() {
    let world = World::new(&[("a", 10_000), ("b", 10_000), ("c", 10_000)]);
    let sql = "SELECT 1 FROM a JOIN b ON a.x BETWEEN b.x AND b.y JOIN c ON c.id = a.id AND c.x = b.x";
    let order = world.order(sql);
    assert_eq!(order.matches('[').count() + order.matches('{').count(), 0, "{order}");
    let text = conditions(&world.plan(sql));
    assert!(text.contains("a.x >= b.x") || text.contains("a.x BETWEEN b.x AND b.y"), "{text}");
}

#[test]
fn self_joins_and_views_keep_their_names() {
    let world = World::new(&[("a", 1_000_000), ("b", 1_000_000), ("c", 10)]);
    let sql = "SELECT p.x, q.x, s.z FROM a p JOIN a q ON p.y = q.y JOIN (SELECT a.x, a.z, c.id FROM a JOIN c ON a.x = c.x) s \
               ON s.z = q.z AND s.x = q.x";
    let order = world.order(sql);
    assert!(order.starts_with("(p ") && order.contains("c"), "{order}");
    let sql = "SELECT a.x AS one, s.x AS two FROM a JOIN b ON a.y = b.y JOIN (SELECT a.x, a.y FROM a JOIN c ON a.x = c.x) s ON s.y = b.y";
    world.order(sql);
}

#[test]
fn columns_of_using_come_as_before() {
    let world = World::new(&[("a", 1_000_000), ("b", 1_000_000), ("c", 10)]);
    let sql = "SELECT * FROM a JOIN b USING (x) JOIN c USING (x)";
    assert_ne!(world.order(sql), world.written(sql));
}

#[test]
fn outer_joins_stay_where_they_are() {
    let world = World::new(&[("a", 1_000_000), ("b", 1_000_000), ("c", 10), ("d", 10)]);
    let sql = "SELECT a.x, d.z FROM a JOIN b ON a.x = b.x LEFT JOIN d ON d.x = b.y JOIN c ON c.y = b.y";
    let order = world.order(sql);
    assert_eq!(order, world.written(sql), "two relations: the outer join, and c");
    let sql = "SELECT a.x FROM a JOIN b ON a.x = b.x JOIN c ON c.y = b.y WHERE a.z IN (SELECT z FROM d)";
    let order = world.order(sql);
    assert!(order.contains("LeftSemi") && order.contains("(b c)"), "{order}");
}

#[test]
fn what_can_fail_is_evaluated_on_no_other_rows() {
    let world = World::new(&[("a", 1_000_000), ("b", 1_000_000), ("c", 10), ("d", 1000)]);
    // Above all of a, b and d: not before the three have met.
    let sql = "SELECT 1 FROM a JOIN b ON a.x = b.x JOIN d ON d.x = b.y AND 10 / d.y > a.z JOIN c ON c.y = b.z";
    let order = world.order(sql);
    assert!(order.contains("c"), "{order}");
    let text = conditions(&world.plan(sql));
    let first = text.lines().next().unwrap();
    let fails: Vec<&str> = text.lines().filter(|line| line.contains("divide") || line.contains('/')).collect();
    assert_eq!(fails.len(), 1, "{text}");
    assert!(fails[0] == first || order.ends_with("c)"), "{order}\n{text}");
    // As a key: the join is a relation.
    let sql = "SELECT 1 FROM a JOIN b ON a.x + 1 = b.x JOIN c ON c.y = b.z JOIN d ON d.y = c.x";
    let order = world.order(sql);
    assert!(order.contains("(a b)"), "{order}");
}

#[test]
fn null_equalities_stay() {
    let world = World::new(&[("a", 1_000_000), ("b", 1_000_000), ("c", 10)]);
    let sql = "SELECT 1 FROM a JOIN b ON a.x IS NOT DISTINCT FROM b.x JOIN c ON c.y = b.y";
    assert_eq!(world.order(sql), world.written(sql));
}

#[test]
fn many_relations_are_joined_greedily() {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
    let sizes: Vec<(&str, u64)> = names.iter().zip(1..).map(|(name, n)| (*name, 10_000_000 / (n * n * n))).collect();
    let joins: Vec<String> =
        names.windows(2).map(|pair| format!("JOIN {1} ON {0}.x = {1}.y", pair[0], pair[1])).collect();
    let sql = format!("SELECT a.id FROM a {}", joins.join(" "));
    let order = World::new(&sizes).order(&sql);
    assert!(order.contains("(k l)"), "{order}");
    assert_eq!(order.matches('(').count(), names.len() - 1, "{order}");
}

#[test]
fn the_same_sizes_give_the_same_order() {
    let sizes = [("a", 1_000_000), ("b", 999), ("c", 10), ("d", 70)];
    let orders: std::collections::HashSet<String> = (0..5).map(|_| World::new(&sizes).order(CHAIN)).collect();
    assert_eq!(orders.len(), 1);
}
