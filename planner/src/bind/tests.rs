//! Statements over a small catalog in memory: what they become, or what is said about them.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::common::ScalarValue;
use datafusion::datasource::{MemTable, provider_as_source};
use plan::{Growth, Layout, PlanError, Relation, RelationId, RelationKind};

use crate::catalog::{Catalog, Object, SessionInfo, TableInfo, ViewInfo};
use crate::statement::{Cell, InsertSource, ObjectName, Statement};
use crate::{Bound, Planner, testing};

mod windows;

/// Schema-qualified objects, created by binding CREATE statements.
struct World {
    planner: Planner,
    session: SessionInfo,
    objects: HashMap<(String, String), Object>,
}

impl Catalog for World {
    fn resolve(&self, schema: Option<&str>, name: &str, search_path: &[String]) -> Option<Object> {
        let find = |schema: &str| self.objects.get(&(schema.to_string(), name.to_string())).cloned();
        match schema {
            Some(schema) => find(schema),
            None => search_path.iter().find_map(|schema| find(schema)),
        }
    }

    fn schema_exists(&self, name: &str) -> bool {
        matches!(name, "public" | "other")
    }

    fn relation_names(&self, _search_path: &[String]) -> Vec<String> {
        self.objects.keys().map(|(_, name)| name.clone()).collect()
    }

    fn rows(&self, _relation: RelationId) -> Option<u64> {
        None
    }
}

impl World {
    fn empty() -> World {
        World { planner: testing::planner(), session: testing::session(), objects: HashMap::new() }
    }

    fn new() -> World {
        let mut world = World::empty();
        world.run(
            "CREATE TABLE t (id int PRIMARY KEY, name text, x double precision, ts timestamp, price numeric(8,2));
             CREATE TABLE u (id int, v int DEFAULT 7, tz timestamptz, d interval, a int[], day date);
             CREATE TABLE log (id int, ts timestamp, WATERMARK FOR ts AS ts - INTERVAL '5 seconds') APPEND ONLY;
             CREATE TABLE adClicks (campaign text, ip text, clickTime timestamp);
             CREATE TABLE limits (a smallint, b varchar(3), c char(3), n numeric(5,2), u uuid, j jsonb, f real);
             CREATE VIEW names AS SELECT id, upper(name) FROM t;
             CREATE MATERIALIZED VIEW counts AS SELECT name, count(*) FROM t GROUP BY name",
        );
        world
    }

    fn bind(&self, text: &str) -> Result<Vec<Bound>, PlanError> {
        let parsed = self.planner.parse(text)?;
        parsed.iter().map(|parsed| self.planner.bind(parsed, self, &self.session, &[])).collect()
    }

    fn one(&self, text: &str) -> Result<Bound, PlanError> {
        self.bind(text).map(|mut bound| bound.remove(0))
    }

    /// Binds statements one by one and puts what they create into the catalog.
    fn run(&mut self, text: &str) {
        for parsed in self.planner.parse(text).unwrap() {
            self.run_one(&parsed).unwrap_or_else(|error| panic!("{}: {error:?}", parsed.text()));
        }
    }

    fn run_one(&mut self, parsed: &crate::Parsed) -> Result<(), PlanError> {
        let bound = self.planner.bind(parsed, self, &self.session, &[])?;
        match bound.statement {
            Statement::CreateTable(table) => {
                let layout =
                    if table.primary_key.is_empty() { Layout::RowId } else { Layout::Keyed(table.primary_key.clone()) };
                let relation = self.relation(&table.name, Schema::new(table.fields.clone()), layout, table.append_only);
                let info = TableInfo { relation, columns: table.columns, primary_key: table.primary_key };
                self.objects.insert((table.name.schema, table.name.name), Object::Table(Arc::new(info)));
            }
            Statement::CreateView(view) => {
                let info = Arc::new(ViewInfo {
                    name: format!("{}.{}", view.name.schema, view.name.name),
                    query: view.query_text.clone(),
                    columns: view.columns.clone(),
                    search_path: self.session.search_path.clone(),
                    sizes: None,
                });
                let object = if view.materialized {
                    let schema = view.plan.schema().as_arrow().clone();
                    Object::MaterializedView(self.relation(&view.name, schema, Layout::Multiset, false), info)
                } else {
                    Object::View(info)
                };
                self.objects.insert((view.name.schema, view.name.name), object);
            }
            _ => {}
        }
        Ok(())
    }

    fn relation(&self, name: &ObjectName, schema: Schema, layout: Layout, append_only: bool) -> Arc<Relation> {
        Arc::new(Relation {
            id: RelationId(self.objects.len() as u32 * 2 + 16),
            name: format!("{}.{}", name.schema, name.name),
            kind: RelationKind::Table,
            schema: Arc::new(schema),
            layout,
            append_only,
            growth: Growth::of_table(append_only),
            watermarks: Vec::new(),
        })
    }

    /// Runs a query without tables and prints its rows: cells by spaces, rows by semicolons.
    fn rows(&self, text: &str) -> String {
        match self.try_rows(text) {
            Ok(rows) => rows,
            Err(error) => format!("ERROR {} {}", error.sqlstate, error.message),
        }
    }

    fn try_rows(&self, text: &str) -> Result<String, PlanError> {
        let Statement::Query(plan) = self.one(text)?.statement else { panic!("{text} is no query") };
        let plan = self.planner.optimize(plan, 0)?;
        let state = self.planner.session_state();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let batches = runtime
            .block_on(async {
                let physical = state.query_planner().create_physical_plan(&plan, state).await?;
                datafusion::physical_plan::collect(physical, state.task_ctx()).await
            })
            .map_err(super::errors::from_datafusion)?;
        let printed = pretty_format_batches(&batches).unwrap().to_string();
        let rows = printed.lines().skip(3).filter(|line| line.starts_with('|')).map(|line| {
            line.trim_matches('|').split('|').map(str::trim).collect::<Vec<_>>().join(" ").trim().to_string()
        });
        Ok(rows.collect::<Vec<_>>().join("; "))
    }
}

fn error_of(world: &World, text: &str) -> String {
    match world.bind(text) {
        Ok(_) => "no error".to_string(),
        Err(error) => {
            let position = error.position.map_or_else(String::new, |position| format!(" @{position}"));
            let hint = error.hint.map_or_else(String::new, |hint| format!(" [{hint}]"));
            format!("{} {}{position}{hint}", error.sqlstate, error.message)
        }
    }
}

#[test]
fn errors_say_what_and_where() {
    let world = World::new();
    let cases = [
        ("SELEC 1", "42601 syntax error at or near \"SELEC\" @1"),
        ("SELECT 1 FROM", "42601 syntax error at end of input @14"),
        ("SELECT 1; SELECT é FROM t WHERE )", "42601 syntax error at or near \")\" @33"),
        ("SELECT 1 +", "42601 syntax error at end of input @11"),
        (
            "SELECT naem FROM t",
            "42703 column \"naem\" does not exist @8 [Perhaps you meant to reference the column \"t.name\".]",
        ),
        (
            "SELECT q.id FROM t",
            "42P01 missing FROM-clause entry for table \"q\" @8 [Perhaps you meant the table \"t\".]",
        ),
        (
            "SELECT t.idd FROM t",
            "42703 column t.idd does not exist @8 [Perhaps you meant to reference the column \"t.id\".]",
        ),
        ("SELECT 1;\nSELECT * FROM lgo", "42P01 relation \"lgo\" does not exist @25 [Perhaps you meant \"log\".]"),
        ("SELECT uper(name) FROM t", "42883 function uper(text) does not exist @8 [Perhaps you meant upper.]"),
        ("SELECT id FROM t, u", "42702 column reference \"id\" is ambiguous @8"),
        ("SELECT * FROM t, t", "42712 table name \"t\" specified more than once [Give one of the two an alias.]"),
        (
            "SELECT name, count(*) FROM t",
            "42803 column \"t.name\" must appear in the GROUP BY clause or be used in an aggregate function @8",
        ),
        ("CREATE TABLE t2 (a itn)", "42704 type \"itn\" does not exist @20 [Perhaps you meant int.]"),
        ("CREATE TABLE t2 (a int, a int)", "42701 column \"a\" specified more than once @18"),
        (
            "CREATE TABLE t2 (a serial)",
            "0A000 type serial is not supported yet @20 [Use integer and give the values yourself; there are no sequences yet.]",
        ),
        ("CREATE TABLE t2 (a int, PRIMARY KEY (b))", "42703 column \"b\" named in key does not exist @38"),
        (
            "CREATE TABLE t2 (a int PRIMARY KEY, PRIMARY KEY (a))",
            "42P16 multiple primary keys for table \"t2\" are not allowed",
        ),
        ("CREATE TABLE t2 (a int DEFAULT 'x')", "22P02 invalid input syntax for type integer: \"x\" @32"),
        (
            "CREATE TABLE t2 (a int, WATERMARK FOR a AS a)",
            "42804 the WATERMARK column \"a\" is of type integer @39 [A watermark is for a timestamp, timestamptz or date.]",
        ),
        (
            "CREATE TABLE t2 (a timestamp, WATERMARK FOR b AS b)",
            "42703 column \"b\" named in WATERMARK does not exist @45",
        ),
        (
            "CREATE TABLE t2 (a timestamp, WATERMARK FOR a AS now())",
            "42P16 the WATERMARK expression must depend on the row alone",
        ),
        (
            "CREATE TABLE nowhere.t2 (a int)",
            "3F000 schema \"nowhere\" does not exist [Create it with CREATE SCHEMA nowhere.]",
        ),
        ("CREATE VIEW v AS SELECT $1", "42P02 views must not contain parameters"),
        (
            "CREATE VIEW v AS SELECT 1, 2",
            "42701 column \"?column?\" specified more than once [Give each column a name of its own with AS.]",
        ),
        ("INSERT INTO names VALUES (1)", "42809 cannot insert into view \"names\" [Change the tables that it reads.]"),
        (
            "DELETE FROM log",
            "42809 cannot delete from append-only table \"log\" [Rows of a table that was created with APPEND ONLY stay as they are.]",
        ),
        (
            "UPDATE t SET nme = 'x'",
            "42703 column \"nme\" of relation \"t\" does not exist @14 [Perhaps you meant to reference the column \"name\".]",
        ),
        ("INSERT INTO t (id, id) VALUES (1, 2)", "42701 column \"id\" specified more than once @20"),
        ("INSERT INTO t VALUES (1, 2, 3, 4, 5, 6)", "42601 INSERT has more expressions than target columns"),
        ("INSERT INTO t (id, name) VALUES (1)", "42601 INSERT has more target columns than expressions"),
        ("INSERT INTO t VALUES ('abc')", "22P02 invalid input syntax for type integer: \"abc\" @23"),
        ("INSERT INTO t (id) VALUES (3000000000)", "22003 integer out of range @28"),
        (
            "INSERT INTO t (ts) VALUES (5)",
            "42804 column \"ts\" is of type timestamp without time zone but expression is of type integer @28 [You will need to rewrite or cast the expression.]",
        ),
        ("INSERT INTO limits (b) VALUES ('abcd')", "22001 value too long for type character varying(3) @32"),
        ("INSERT INTO limits (n) VALUES (1000)", "22003 numeric field overflow @32"),
        (
            "INSERT INTO t SELECT name FROM t",
            "42804 column \"id\" is of type integer but expression is of type text [You will need to rewrite or cast the expression.]",
        ),
        (
            "INSERT INTO u VALUES (1) ON CONFLICT (id) DO NOTHING",
            "42P10 there is no unique or exclusion constraint matching the ON CONFLICT specification [ON CONFLICT needs the columns of the table's primary key.]",
        ),
        ("CREATE SOURCE s (a int) WITH (connector = 'kafka')", "0A000 CREATE SOURCE is not supported yet"),
        ("SUBSCRIBE counts", "0A000 SUBSCRIBE is not supported yet"),
        (
            "CREATE MATERIALIZED VIEW v AS SELECT id FROM t EMIT ON WINDOW CLOSE",
            "0A000 EMIT ON WINDOW CLOSE is not supported yet",
        ),
        ("ALTER TABLE t ADD COLUMN y int", "0A000 ALTER TABLE is not supported yet"),
    ];
    let mut wrong = Vec::new();
    for (text, expected) in cases {
        let found = error_of(&world, text);
        if found != expected {
            wrong.push(format!("{text}\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn columns_are_named_as_in_postgres() {
    let world = World::new();
    let names = |text: &str| {
        let bound = world.one(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        let schema = bound.schema.unwrap();
        schema.fields().iter().map(|field| field.name().clone()).collect::<Vec<_>>().join(",")
    };
    let cases = [
        ("SELECT 1, 'a', 2", "?column?,?column?,?column?"),
        ("SELECT count(*), sum(id), count(*) FROM t", "count,sum,count"),
        ("SELECT id, id, t.id FROM t", "id,id,id"),
        ("SELECT *, id FROM u", "id,v,tz,d,a,day,id"),
        ("SELECT id::text, '5'::int, CASE WHEN true THEN 1 END, coalesce(name, 'x') FROM t", "id,int4,case,coalesce"),
        ("SELECT t.id, u.id FROM t JOIN u ON t.id = u.id", "id,id"),
        ("SELECT extract(year from ts), current_user, (SELECT max(id) FROM u) FROM t", "extract,current_user,max"),
        ("SELECT count FROM (SELECT count(*) FROM t) q", "count"),
        ("SELECT upper FROM names", "upper"),
        ("SELECT count FROM counts", "count"),
        ("SELECT name, count(*) FROM t GROUP BY name HAVING count(*) > 1 ORDER BY count(*) DESC, 1", "name,count"),
        ("SELECT DISTINCT id + 1 FROM t ORDER BY id + 1", "?column?"),
        ("SELECT 1 UNION ALL SELECT 2", "?column?"),
    ];
    for (text, expected) in cases {
        assert_eq!(names(text), expected, "{text}");
    }
}

#[test]
fn constants_are_typed_by_their_columns() {
    let world = World::new();
    let cells = |text: &str| {
        let bound = world.one(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        let Statement::Insert(insert) = bound.statement else { panic!("{text} is no INSERT") };
        let InsertSource::Rows(rows) = insert.source else { panic!("{text} is not only constants") };
        let cells = rows.iter().flatten().map(|cell| match cell {
            Cell::Value(value) => value.to_string(),
            Cell::Parameter(number) => format!("${number}"),
        });
        cells.collect::<Vec<_>>().join("|")
    };
    let cases = [
        ("INSERT INTO t VALUES (1, 'a', -1.5, '2013-01-01 05:06:07.5', 3.14159)", "1|a|-1.5|1357016767500000|3.14"),
        ("INSERT INTO t (name, id) VALUES (5, '7')", "7|5|NULL|NULL|NULL"),
        ("INSERT INTO t VALUES (1, NULL, 'NaN', timestamp '2013-01-01', '1e3')", "1|NULL|NaN|1356998400000000|1000.00"),
        ("INSERT INTO u VALUES (1), (2)", "1|7|NULL|NULL||NULL|2|7|NULL|NULL||NULL"),
        (
            "INSERT INTO u VALUES (2.5, DEFAULT, '2024-01-01 12:00+02', '90 minutes', '{1,NULL,3}', '2024-02-29')",
            "3|7|1704103200000000|IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 5400000000000 }|[1, , 3]|2024-02-29",
        ),
        (
            "INSERT INTO u (d) VALUES (INTERVAL '1' HOUR)",
            "NULL|7|NULL|IntervalMonthDayNano { months: 0, days: 0, nanoseconds: 3600000000000 }||NULL",
        ),
        (
            "INSERT INTO u (id) VALUES ($2), (1 + 1), (-3)",
            "$2|7|NULL|NULL||NULL|2|7|NULL|NULL||NULL|-3|7|NULL|NULL||NULL",
        ),
        (
            "INSERT INTO limits VALUES (1, 'abc  ', 'x', 9.999, '{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}', '{\"b\":1,  \"a\":[1,2]}')",
            "1|abc|x|10.00|a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11|{\"a\": [1, 2], \"b\": 1}|NULL",
        ),
        ("INSERT INTO t DEFAULT VALUES", "NULL|NULL|NULL|NULL|NULL"),
        ("INSERT INTO t (id, name) VALUES (4, 'e' || 'x')", "4|ex|NULL|NULL|NULL"),
    ];
    for (text, expected) in cases {
        assert_eq!(cells(text), expected, "{text}");
    }
}

#[test]
fn parameters_have_types_and_take_values() {
    let world = World::new();
    let types = |text: &str| {
        let bound = world.one(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        bound.parameters.iter().map(|field| super::types::type_name(field)).collect::<Vec<_>>().join(",")
    };
    let cases = [
        ("SELECT * FROM t WHERE id = $1 AND ts > $2", "integer,timestamp without time zone"),
        ("SELECT $1 + id, $2 FROM t LIMIT $3", "integer,text,bigint"),
        ("INSERT INTO t (id, ts) VALUES ($1, $2)", "integer,timestamp without time zone"),
        ("INSERT INTO t (id, name) SELECT $1, $2", "integer,text"),
        ("UPDATE t SET x = $1 WHERE id = $2", "double precision,integer"),
        ("DELETE FROM t WHERE id = $1", "integer"),
        ("SELECT id FROM t WHERE id IN ($1, $2) AND name LIKE $3", "integer,integer,text"),
        ("SELECT id FROM t WHERE id = ANY($1) AND name <> ALL($2)", "integer[],text[]"),
        ("SELECT id FROM t WHERE $1 OR NOT $2 OR ts + $3 > now()", "boolean,boolean,interval"),
        (
            "SELECT id FROM t WHERE now() > $1 AND x BETWEEN $2 AND $3",
            "timestamp with time zone,double precision,double precision",
        ),
        ("SELECT id FROM t WHERE CASE id WHEN $1 THEN x ELSE $2 END > 1", "integer,double precision"),
        ("SELECT id FROM t WHERE coalesce($1, id) > 1 AND greatest(x, $2) > 1", "integer,double precision"),
        ("SELECT $1::uuid, $2::jsonb, $3::numeric(10,2)", "uuid,jsonb,numeric(10,2)"),
        ("SELECT id FROM t WHERE price + $1 > 1 AND round(price, $2) > 1", "numeric,integer"),
        ("SELECT id FROM t WHERE substr(name, $1, $2) = $3", "bigint,bigint,text"),
    ];
    for (text, expected) in cases {
        assert_eq!(types(text), expected, "{text}");
    }
    let bound = world.one("INSERT INTO limits (a, b) VALUES ($1, $2)").unwrap();
    let values = [ScalarValue::Int16(Some(4)), ScalarValue::Utf8(Some("xy".into()))];
    let Statement::Insert(insert) = world.planner.with_parameters(bound.statement, &values).unwrap() else { panic!() };
    let InsertSource::Rows(rows) = insert.source else { panic!() };
    assert_eq!(rows[0][0], Cell::Value(ScalarValue::Int16(Some(4))));
}

#[test]
fn changes_are_queries_over_row_numbers() {
    let world = World::new();
    for (text, width) in [
        ("UPDATE t SET name = 'b', x = x + 1, price = DEFAULT WHERE id = 3", 11),
        ("UPDATE t AS q SET (name, x) = ('b', 2) FROM u WHERE q.id = u.id RETURNING *, q.id + 1 AS next", 11),
        ("UPDATE t SET x = (SELECT max(v) FROM u WHERE u.id = t.id)", 11),
        ("DELETE FROM t USING u WHERE t.id = u.id AND u.v > 3 RETURNING id", 6),
        ("DELETE FROM t WHERE id IN (SELECT id FROM t WHERE x = 0)", 6),
    ] {
        let bound = world.one(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
        let plan = match &bound.statement {
            Statement::Update(update) => &update.query,
            Statement::Delete(delete) => &delete.query,
            _ => panic!("{text}"),
        };
        assert_eq!(plan.schema().fields().len(), width, "{text}");
        assert_eq!(plan.schema().field(0).name(), "$rowid");
    }
}

#[test]
fn values_are_those_of_postgres() {
    let world = World::new();
    let cases = [
        ("SELECT 7 / 2, -7 / 2, 7 % 3", "3 -3 1"),
        ("SELECT ('a' || NULL) IS NULL, 'a' || 1", "true a1"),
        (
            "SELECT 'abc' ~ '^A', 'abc' ~* '^A', 'abc' !~ 'b', 'x' OPERATOR(pg_catalog.~) '^(x)$' COLLATE pg_catalog.default",
            "false true false true",
        ),
        ("SELECT 2 ^ 3", "8.0"),
        ("SELECT v FROM (VALUES (cast('-0' as double precision))) q(v) WHERE v = 0", "-0.0"),
        (
            "SELECT count(*) FROM (SELECT DISTINCT v FROM (VALUES (0::float8), ('-0'::float8), ('NaN'::float8), ('NaN'::float8)) q(v)) r",
            "2",
        ),
        ("SELECT count(DISTINCT v) FROM (VALUES (0::float8), ('-0'::float8)) q(v)", "1"),
        (
            "SELECT count(*) FROM (SELECT v FROM (VALUES (INTERVAL '1 month'), (INTERVAL '30 days'), (INTERVAL '720 hours')) q(v) GROUP BY v) r",
            "1",
        ),
        ("SELECT INTERVAL '1 month' = INTERVAL '30 days', INTERVAL '1 day' < INTERVAL '25 hours'", "true true"),
        ("SELECT count(*) FROM (VALUES (0::float8)) a(v) JOIN (VALUES ('-0'::float8)) b(v) ON a.v = b.v", "1"),
        ("SELECT i FROM (VALUES (1), (2)) q(i) WHERE i = '2'", "2"),
        ("SELECT d FROM (VALUES (date '2024-01-01')) q(d) WHERE d > '2023-12-31'", "2024-01-01"),
        ("SELECT * FROM (VALUES (1, NULL), (2, 3)) q(a, b) ORDER BY b DESC", "1; 2 3"),
        ("WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4) SELECT sum(n) FROM r", "10"),
        ("SELECT current_schema(), current_database()", "public tidemill"),
    ];
    let mut wrong = Vec::new();
    for (text, expected) in cases {
        let found = world.rows(text);
        if found != expected {
            wrong.push(format!("{text}\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn session_statements_are_understood() {
    let world = World::new();
    for text in [
        "BEGIN",
        "BEGIN READ ONLY",
        "START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ WRITE",
        "COMMIT TRANSACTION",
        "END",
        "ROLLBACK",
        "ABORT",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SHOW TRANSACTION ISOLATION LEVEL",
        "SET TIME ZONE 'Asia/Kolkata'",
        "SET extra_float_digits = 3",
        "SET application_name = 'some tool'",
        "SET search_path TO a, \"B\"",
        "SET datestyle = ISO, MDY",
        "RESET ALL",
        "SHOW ALL",
        "SHOW search_path",
        "DISCARD ALL",
        "FLUSH",
        "PREPARE p (int) AS SELECT $1",
        "EXECUTE p (1 + 1, 'x')",
        "DEALLOCATE ALL",
        "DECLARE c CURSOR FOR SELECT id FROM t",
        "FETCH 2 FROM c",
        "FETCH ALL IN c",
        "CLOSE c",
        "",
        "COPY t FROM STDIN",
        "COPY t (id, name) FROM STDIN WITH (FORMAT csv, HEADER, NULL 'NA')",
        "COPY t FROM stdin CSV HEADER NULL AS 'NA'",
        "COPY (SELECT 1) TO STDOUT WITH CSV DELIMITER ';'",
        "COPY t TO STDOUT (FORMAT csv, FORCE_QUOTE (name))",
        "TRUNCATE t, u",
        "TRUNCATE TABLE t RESTART IDENTITY",
        "DROP TABLE IF EXISTS a.b, c CASCADE",
        "DROP MATERIALIZED VIEW counts",
        "CREATE SCHEMA IF NOT EXISTS s",
        "EXPLAIN SELECT * FROM t",
        "EXPLAIN (VERBOSE) SELECT * FROM t",
        "CREATE TABLE IF NOT EXISTS z (version text, key int, watermark int, source text, \"order\" int, at timestamp(3))",
        "CREATE TABLE z (id bigint, PRIMARY KEY (id) NOT ENFORCED)",
        "CREATE TABLE z AS SELECT id, name AS n FROM t",
        "UPDATE t SET name = 'b' WHERE name = 'a' AND id = 3",
    ] {
        world.bind(text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    }
    let set = |text: &str| match world.one(text).unwrap().statement {
        Statement::Set { name, value, .. } => format!("{name}={}", value.unwrap_or_default()),
        other => panic!("{other:?}"),
    };
    assert_eq!(set("SET search_path TO a, \"B\""), "search_path=a, B");
    assert_eq!(set("SET TIME ZONE 'UTC'"), "timezone=UTC");
    assert_eq!(set("SET extra_float_digits = -1"), "extra_float_digits=-1");
}

#[test]
fn views_read_views_under_their_own_path() {
    let mut world = World::new();
    world.run(
        "CREATE TABLE other.base (k int, w int); CREATE VIEW other.inner AS SELECT k, w + 1 AS w1 FROM other.base",
    );
    world.run("CREATE VIEW outer_view (a, b) AS SELECT i.k, i.w1 FROM other.inner i");
    let Statement::CreateView(view) =
        world.one("CREATE MATERIALIZED VIEW m AS SELECT a, count(*) FROM outer_view GROUP BY a").unwrap().statement
    else {
        panic!()
    };
    assert_eq!(view.depends_on.len(), 1);
    assert_eq!(view.depends_on[0].name, "outer_view");
    assert_eq!(view.plan.schema().field(1).name(), "count");
    assert_eq!(view.query_text, "SELECT a, count(*) FROM outer_view GROUP BY a");
}

#[test]
fn system_relations_are_scanned() {
    let mut world = World::new();
    let schema = Arc::new(Schema::new(vec![datafusion::arrow::datatypes::Field::new("oid", DataType::Int32, false)]));
    let table = MemTable::try_new(schema, vec![vec![]]).unwrap();
    let object = Object::System(provider_as_source(Arc::new(table)));
    world.objects.insert(("pg_catalog".to_string(), "pg_class".to_string()), object);
    assert_eq!(world.rows("SELECT count(*) FROM pg_catalog.pg_class"), "0");
}

/// Every statement of the .slt files of a folder, if one is given, is bound in order; what fails is printed.
#[test]
fn statements_of_a_folder() {
    let Ok(folder) = std::env::var("TIDEMILL_SLT") else { return };
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "slt")) {
        let mut world = World::empty();
        let text = std::fs::read_to_string(file).unwrap();
        for record in text.split("\n\n") {
            let lines: Vec<&str> = record.lines().filter(|line| !line.starts_with('#')).collect();
            let Some(head) = lines.iter().position(|line| line.starts_with("statement ") || line.starts_with("query "))
            else {
                continue;
            };
            let sql: Vec<&str> = lines[head + 1..].iter().take_while(|line| **line != "----").copied().collect();
            let result = world
                .planner
                .parse(&sql.join("\n"))
                .and_then(|parsed| parsed.iter().try_for_each(|parsed| world.run_one(parsed)));
            if let Err(error) = result
                && !lines[head].starts_with("statement error")
            {
                println!("{}: {}\n    {error:?}", file.file_name().unwrap().to_string_lossy(), sql.join(" "));
            }
        }
    }
}
