//! What goes over the wire: start-up, error fields, both protocols, formats, portals, COPY, cancel requests.

use sql_tests::process::Server;
use sql_tests::wire::{self, Client, data_row, data_row_bytes, kinds, row_description};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn start() -> (Server, Client) {
    let server = Server::start().expect("start");
    let client = server.client().expect("connect");
    (server, client)
}

fn texts(rows: &[wire::Row]) -> Vec<Vec<&str>> {
    rows.iter().map(|row| row.iter().map(|value| value.as_deref().unwrap_or("NULL")).collect()).collect()
}

#[test]
fn start_up_reports_parameters() {
    let (_server, client) = start();
    for (name, value) in [
        ("server_encoding", "UTF8"),
        ("client_encoding", "UTF8"),
        ("DateStyle", "ISO, MDY"),
        ("integer_datetimes", "on"),
        ("standard_conforming_strings", "on"),
        ("IntervalStyle", "postgres"),
    ] {
        assert_eq!(client.parameters.get(name).map(String::as_str), Some(value), "{name}");
    }
    assert!(client.parameters.contains_key("server_version"));
    assert!(client.parameters.contains_key("TimeZone"));
    assert_eq!(client.status, 'I');
}

#[test]
fn tls_is_refused_politely() {
    let (server, _client) = start();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).expect("connect");
    stream.write_all(&[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f]).expect("SSLRequest");
    let mut answer = [0];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(answer, *b"N");
}

#[test]
fn several_statements_in_one_query() {
    let (_server, mut client) = start();
    let all = client
        .query("CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2); SELECT a FROM t ORDER BY a; DELETE FROM t WHERE a = 1;")
        .expect("answers");
    assert_eq!(all.error, None);
    let tags: Vec<&str> = all.answers.iter().map(|answer| answer.tag.as_str()).collect();
    assert_eq!(tags, ["CREATE TABLE", "INSERT 0 2", "SELECT 2", "DELETE 1"]);
    assert_eq!(texts(&all.answers[2].rows), [["1"], ["2"]]);
}

#[test]
fn an_error_ends_a_query_of_several_statements() {
    let (_server, mut client) = start();
    client.run("CREATE TABLE t (a int)").expect("create");
    let all = client.query("INSERT INTO t VALUES (1); SELECT nope; INSERT INTO t VALUES (2)").expect("answers");
    let error = all.error.expect("an error");
    assert_eq!((error.field('S'), error.sqlstate()), ("ERROR", "42703"));
    assert_eq!(all.answers.len(), 1);
    assert_eq!(client.value("SELECT count(*) FROM t").expect("count"), "0", "the statements are one transaction");
}

#[test]
fn an_empty_query_has_its_own_answer() {
    let (_server, mut client) = start();
    client.send_query("  -- nothing\n ").expect("send");
    assert_eq!(kinds(&client.until_ready().expect("answer")), "IZ");
}

#[test]
fn errors_have_position_and_hint() {
    let (_server, mut client) = start();
    client.run("CREATE TABLE customers (id int, surname text)").expect("create");
    let error = client.error("SELECT id,\n  surnam FROM customers").expect("an error");
    assert_eq!(error.sqlstate(), "42703");
    assert_eq!(error.field('P'), "14");
    assert!(error.field('H').contains("surname"), "{error}");
    assert_eq!(error.field('V'), "ERROR");
    let error = client.error("SELECT 'ä', nope").expect("an error");
    assert_eq!((error.sqlstate(), error.field('P')), ("42703", "13"), "positions count characters: {error}");
    let error = client.error("SELECT 1;\nSELEC 2").expect("an error");
    assert_eq!(
        (error.sqlstate(), error.field('P')),
        ("42601", "11"),
        "positions count from the start of the query: {error}"
    );
}

#[test]
fn row_description_has_types_and_modifiers() {
    let (_server, mut client) = start();
    client
        .run("CREATE TABLE t (a int, b varchar(7), c numeric(8,2), d timestamp, e text[], f bool, g uuid, h jsonb, i interval, j bytea, k smallint, l real, m date, n time, o timestamptz, p char(3))")
        .expect("create");
    let columns = client.run("SELECT * FROM t").expect("rows").columns.expect("columns");
    let oids: Vec<u32> = columns.iter().map(|column| column.oid).collect();
    assert_eq!(oids, [23, 1043, 1700, 1114, 1009, 16, 2950, 3802, 1186, 17, 21, 700, 1082, 1083, 1184, 1042]);
    let modifiers: Vec<i32> = columns[..4].iter().map(|column| column.modifier).collect();
    assert_eq!(modifiers, [-1, 11, (8 << 16) + 2 + 4, -1]);
}

#[test]
fn extended_protocol_with_parameters() {
    let (_server, mut client) = start();
    client
        .run("CREATE TABLE t (id int PRIMARY KEY, s text); INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, NULL)")
        .expect("set up");
    client
        .parse("q", "SELECT id, s FROM t WHERE id >= $1 AND (s = $2 OR $2 IS NULL) ORDER BY id", &[23, 25])
        .expect("send");
    client.describe(b'S', "q").expect("send");
    client.bind("", "q", &[], &[Some(b"2"), None], &[]).expect("send");
    client.execute("", 0).expect("send");
    client.bind("", "q", &[1, 0], &[Some(&1_i32.to_be_bytes()), Some(b"a")], &[1]).expect("send");
    client.describe(b'P', "").expect("send");
    client.execute("", 0).expect("send");
    client.sync().expect("send");
    let messages = client.until_ready().expect("answers");
    assert_eq!(kinds(&messages), "1tT2DDC2TDCZ");
    assert_eq!(data_row(&messages[4].1), [Some("2".into()), Some("b".into())]);
    let description = row_description(&messages[8].1);
    assert_eq!(description.iter().map(|column| column.format).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(data_row_bytes(&messages[9].1), [Some(1_i32.to_be_bytes().to_vec()), Some(b"a".to_vec())]);
}

/// What a ParameterDescription says.
fn parameter_oids(body: &[u8]) -> Vec<u32> {
    body[2..].chunks(4).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])).collect()
}

#[test]
fn parameters_are_described_with_the_types_of_postgres() {
    let (_server, mut client) = start();
    client.run("CREATE TABLE t (id int, u uuid, j jsonb, v varchar(5), n numeric, ts timestamptz)").expect("create");
    for (statement, oids) in [
        ("SELECT $1::uuid, $2::jsonb, $3::int[]", &[2950, 3802, 1007][..]),
        ("SELECT id FROM t WHERE u = $1 AND id = ANY($2) AND n + $3 > 1", &[2950, 1007, 1700]),
        ("SELECT id FROM t WHERE now() > $1 AND ts + $2 < now()", &[1184, 1186]),
        ("INSERT INTO t (u, j, v) VALUES ($1, $2, $3)", &[2950, 3802, 1043]),
    ] {
        client.parse("", statement, &[]).expect("send");
        client.describe(b'S', "").expect("send");
        client.sync().expect("send");
        let messages = client.until_ready().expect("answers");
        let described = messages.iter().find(|(kind, _)| *kind == b't').expect("a description");
        assert_eq!(parameter_oids(&described.1), oids, "{statement}");
    }
}

#[test]
fn parameter_types_are_inferred() {
    let (_server, mut client) = start();
    client.run("CREATE TABLE t (a int, b text, c numeric(8,2), d timestamp)").expect("create");
    client.parse("", "INSERT INTO t VALUES ($1, $2, $3, $4)", &[]).expect("send");
    client.describe(b'S', "").expect("send");
    client
        .bind("", "", &[], &[Some(b"1"), Some(b"x"), Some(b"1.25"), Some(b"2024-01-01 00:00:00")], &[])
        .expect("send");
    client.execute("", 0).expect("send");
    client.sync().expect("send");
    let messages = client.until_ready().expect("answers");
    assert_eq!(kinds(&messages), "1tn2CZ");
    assert_eq!(parameter_oids(&messages[1].1), [23, 25, 1700, 1114]);
    assert_eq!(texts(&client.rows("SELECT * FROM t").expect("rows")), [["1", "x", "1.25", "2024-01-01 00:00:00"]]);
}

#[test]
fn an_error_in_the_extended_protocol_skips_to_sync() {
    let (_server, mut client) = start();
    client.parse("", "SELECT nope", &[]).expect("send");
    client.bind("", "", &[], &[], &[]).expect("send");
    client.execute("", 0).expect("send");
    client.sync().expect("send");
    let messages = client.until_ready().expect("answers");
    assert_eq!(kinds(&messages), "EZ");
    assert_eq!(wire::first_error(&messages).expect("an error").sqlstate(), "42703");
    client.bind("", "missing", &[], &[], &[]).expect("send");
    client.sync().expect("send");
    let messages = client.until_ready().expect("answers");
    assert_eq!(wire::first_error(&messages).expect("an error").sqlstate(), "26000");
    assert_eq!(client.value("SELECT 1").expect("the session goes on"), "1");
}

#[test]
fn a_portal_gives_rows_in_portions() {
    let (_server, mut client) = start();
    client.run("BEGIN").expect("begin");
    client.parse("", "SELECT * FROM generate_series(1, 5)", &[]).expect("send");
    client.bind("p", "", &[], &[], &[]).expect("send");
    client.execute("p", 2).expect("send");
    client.execute("p", 2).expect("send");
    client.execute("p", 2).expect("send");
    client.close(b'P', "p").expect("send");
    client.sync().expect("send");
    assert_eq!(kinds(&client.until_ready().expect("answers")), "12DDsDDsDC3Z");
    assert_eq!(client.status, 'T');
    client.run("ROLLBACK").expect("rollback");
}

#[test]
fn binary_results() {
    let (_server, mut client) = start();
    let sql = "SELECT 1::smallint, 2::int, 3::bigint, 1.5::real, -0.25::double precision, true, 'x'::text, \
               '2000-01-02'::date, '2000-01-01 00:00:01'::timestamp, '12.34'::numeric(6,2), '\\x01ff'::bytea, \
               'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid, NULL::int";
    client.parse("", sql, &[]).expect("send");
    client.bind("", "", &[], &[], &[1]).expect("send");
    client.execute("", 0).expect("send");
    client.sync().expect("send");
    let messages = client.until_ready().expect("answers");
    assert_eq!(kinds(&messages), "12DCZ");
    let row = data_row_bytes(&messages[2].1);
    let numeric: Vec<u8> = [2_u16, 0, 0, 2, 12, 3400].iter().flat_map(|digit| digit.to_be_bytes()).collect();
    let uuid: Vec<u8> =
        vec![0xa0, 0xee, 0xbc, 0x99, 0x9c, 0x0b, 0x4e, 0xf8, 0xbb, 0x6d, 0x6b, 0xb9, 0xbd, 0x38, 0x0a, 0x11];
    let expected: Vec<Option<Vec<u8>>> = vec![
        Some(1_i16.to_be_bytes().into()),
        Some(2_i32.to_be_bytes().into()),
        Some(3_i64.to_be_bytes().into()),
        Some(1.5_f32.to_be_bytes().into()),
        Some((-0.25_f64).to_be_bytes().into()),
        Some(vec![1]),
        Some(b"x".to_vec()),
        Some(1_i32.to_be_bytes().into()),
        Some(1_000_000_i64.to_be_bytes().into()),
        Some(numeric),
        Some(vec![1, 0xff]),
        Some(uuid),
        None,
    ];
    assert_eq!(row, expected);
}

#[test]
fn copy_in_text_and_csv() {
    let (_server, mut client) = start();
    client.run("CREATE TABLE t (a int, b text, c numeric(6,2))").expect("create");
    client.run("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(a) AS s FROM t").expect("create");
    let one = |text: &str| vec![text.as_bytes().to_vec()].into_iter();
    let count = client.copy_in("COPY t FROM STDIN", &mut one("1\ta\\tb\t1.5\n2\t\\N\t\\N\n\\.\n")).expect("text");
    assert_eq!(count, 2);
    let csv = "c,a,b\n\"2.25\",3,\"x, \"\"y\"\"\nz\"\n,4,\"\"\n";
    let count = client.copy_in("COPY t (c, a, b) FROM STDIN WITH (FORMAT csv, HEADER)", &mut one(csv)).expect("csv");
    assert_eq!(count, 2);
    // Chunks may end anywhere, within a character too.
    let bytes = "5;'nä';NA\n".as_bytes();
    let mut pieces = bytes.iter().map(|byte| vec![*byte]);
    let sql = "COPY t FROM STDIN WITH (FORMAT csv, DELIMITER ';', QUOTE '''', NULL 'NA')";
    assert_eq!(client.copy_in(sql, &mut pieces).expect("pieces"), 1);
    let rows = client.rows("SELECT a, b, c FROM t ORDER BY a").expect("rows");
    assert_eq!(
        texts(&rows),
        [
            ["1", "a\tb", "1.50"],
            ["2", "NULL", "NULL"],
            ["3", "x, \"y\"\nz", "2.25"],
            ["4", "", "NULL"],
            ["5", "nä", "NULL"]
        ]
    );
    assert_eq!(texts(&client.rows("SELECT * FROM v").expect("view")), [["5", "15"]]);
}

#[test]
fn copy_out_is_what_copy_in_reads() {
    let (_server, mut client) = start();
    client
        .run("CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x\ty'), (2, NULL), (3, 'q\"q,')")
        .expect("set up");
    let text = client.query("COPY (SELECT * FROM t ORDER BY a) TO STDOUT").expect("copy");
    assert_eq!(String::from_utf8_lossy(&text.copied), "1\tx\\ty\n2\t\\N\n3\tq\"q,\n");
    assert_eq!(text.answers[0].tag, "COPY 3");
    let csv = client.query("COPY (SELECT * FROM t ORDER BY a) TO STDOUT WITH (FORMAT csv, HEADER)").expect("copy");
    assert_eq!(String::from_utf8_lossy(&csv.copied), "a,b\n1,x\ty\n2,\n3,\"q\"\"q,\"\n");
    client.run("CREATE TABLE u (a int, b text)").expect("create");
    client.copy_in("COPY u FROM STDIN WITH (FORMAT csv, HEADER)", &mut vec![csv.copied].into_iter()).expect("back");
    assert_eq!(client.value("SELECT count(*) FROM (SELECT * FROM t EXCEPT SELECT * FROM u) d").expect("same"), "0");
}

#[test]
fn a_copy_that_fails_late_keeps_nothing() {
    let (_server, mut client) = start();
    client.run("CREATE TABLE t (a int, b int)").expect("create");
    client.run("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t").expect("create");
    let mut chunks = (0..1001).map(|chunk| {
        let line = |number: i32| if chunk == 1000 { "1\tbad\n".to_string() } else { format!("{chunk}\t{number}\n") };
        (0..1000).map(line).collect::<String>().into_bytes()
    });
    let all = client.query_copying("COPY t FROM STDIN", &mut chunks).expect("answers");
    let error = all.error.expect("an error");
    assert_eq!(error.sqlstate(), "22P02", "{error}");
    let text = error.to_string() + error.field('W');
    assert!(text.contains("line 1000001") && text.contains("column b"), "it names line and column: {text}");
    assert_eq!(client.value("SELECT count(*) FROM t").expect("count"), "0");
    assert_eq!(client.value("SELECT n FROM v").expect("view"), "0");
}

#[test]
fn copy_errors_name_the_line() {
    let (_server, mut client) = start();
    client.run("CREATE TABLE t (a int NOT NULL, b int)").expect("create");
    for (data, state) in [
        ("1\t2\n1\n", "22P04"),
        ("1\t2\n1\t2\t3\n", "22P04"),
        ("1\t2\n\\N\t1\n", "23502"),
        ("1\t2\n99999999999\t1\n", "22003"),
    ] {
        let all = client
            .query_copying("COPY t FROM STDIN", &mut vec![data.as_bytes().to_vec()].into_iter())
            .expect("answers");
        let error = all.error.expect("an error");
        assert_eq!(error.sqlstate(), state, "{data:?}: {error}");
        assert!((error.to_string() + error.field('W')).contains("line 2"), "{data:?}: {error}");
    }
    assert_eq!(client.value("SELECT count(*) FROM t").expect("count"), "0");
}

#[test]
fn a_client_may_give_up_its_copy() {
    let (_server, mut client) = start();
    client.run("CREATE TABLE t (a int)").expect("create");
    client.send_query("COPY t FROM STDIN").expect("send");
    assert_eq!(client.receive().expect("CopyInResponse").0, b'G');
    client.send(b'd', b"1\n2\n").expect("send");
    client.send(b'f', b"changed my mind\0").expect("send");
    let messages = client.until_ready().expect("answers");
    assert_eq!(kinds(&messages), "EZ");
    assert_eq!(wire::first_error(&messages).expect("an error").sqlstate(), "57014");
    assert_eq!(client.value("SELECT count(*) FROM t").expect("count"), "0");
}

#[test]
fn a_running_query_can_be_cancelled() {
    let (_server, mut client) = start();
    client.run("CREATE TABLE t (a bigint)").expect("create");
    client.run("INSERT INTO t SELECT * FROM generate_series(1, 20000)").expect("rows");
    client.send_query("SELECT count(*) FROM t a, t b, t c WHERE a.a + b.a + c.a = 7").expect("send");
    std::thread::sleep(Duration::from_millis(300));
    let started = Instant::now();
    client.cancel().expect("cancel");
    let answers = client.answers(&mut std::iter::empty()).expect("answers");
    assert_eq!(answers.error.expect("an error").sqlstate(), "57014");
    assert!(started.elapsed() < Duration::from_secs(5), "it took {:?}", started.elapsed());
    assert_eq!(client.value("SELECT 1").expect("the session goes on"), "1");
}

#[test]
fn reading_a_view_with_failed_rows_warns() {
    let (_server, mut client) = start();
    client.run("CREATE TABLE t (a int)").expect("create");
    client.run("CREATE MATERIALIZED VIEW v AS SELECT 10 / a AS x FROM t").expect("create");
    client.run("INSERT INTO t VALUES (1), (0)").expect("insert");
    let all = client.query("SELECT * FROM v").expect("answers");
    assert_eq!(all.answers[0].rows.len(), 1);
    assert!(all.notices.iter().any(|notice| notice.field('S') == "WARNING"), "{:?}", all.notices);
    client.run("DELETE FROM t WHERE a = 0").expect("delete");
    assert!(client.query("SELECT * FROM v").expect("answers").notices.is_empty());
}

#[test]
fn creating_a_recomputed_view_tells_so() {
    let (_server, mut client) = start();
    client.run("CREATE TABLE t (a int)").expect("create");
    let all = client
        .query(
            "CREATE MATERIALIZED VIEW v AS
             WITH RECURSIVE r(n) AS (SELECT a FROM t UNION SELECT max(n) FROM r),
             s(n) AS (SELECT a + 1 FROM t UNION SELECT min(n) FROM s)
             SELECT n FROM r UNION ALL SELECT n FROM s",
        )
        .expect("answers");
    assert_eq!(all.error, None);
    assert_eq!(all.notices.len(), 2, "a notice for each part that is recomputed: {:?}", all.notices);
    for (notice, function) in all.notices.iter().zip(["max", "min"]) {
        let fields = ['S', 'V', 'C'].map(|field| notice.field(field));
        assert_eq!(fields, ["NOTICE", "NOTICE", "00000"], "{notice}");
        assert!(notice.field('M').contains("part of materialized view \"v\" is computed anew"), "{notice}");
        assert!(notice.field('D').contains(function), "the part and the reason: {}", notice.field('D'));
        assert!(notice.field('H').contains("incremental"), "{}", notice.field('H'));
    }
    let all = client.query("CREATE MATERIALIZED VIEW w AS SELECT a, count(*) AS n FROM t GROUP BY a").expect("answers");
    assert!(all.notices.is_empty(), "{:?}", all.notices);
}

/// What notices say of state that grows without bound.
fn growth(client: &mut Client, view: &str) -> Vec<String> {
    let all = client.query(&format!("CREATE MATERIALIZED VIEW {view}")).expect("answers");
    assert_eq!(all.error, None, "{view}");
    for notice in &all.notices {
        assert_eq!(notice.field('S'), "NOTICE");
        assert!(notice.field('M').contains("grows without bound"), "{notice}");
        assert!(notice.field('H').contains("APPEND ONLY"), "what to write instead: {}", notice.field('H'));
    }
    all.notices.iter().map(|notice| notice.field('D').to_owned()).collect()
}

#[test]
fn each_state_that_grows_without_bound_is_noticed() {
    let (mut server, mut client) = start();
    client
        .run("CREATE TABLE events (k int, v int) APPEND ONLY; CREATE TABLE names (k int PRIMARY KEY, name text)")
        .expect("create");
    let by_name = "SELECT n.name, count(*) AS c FROM events e JOIN names n ON n.k = e.k GROUP BY n.name";
    let told = growth(&mut client, &format!("v AS {by_name}"));
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("join ") && told[0].ends_with("keeps rows of both inputs, and events only grows."));
    assert!(told[1].starts_with("aggregate ") && told[1].ends_with("keeps an entry a group, and events only grows."));
    for bounded in [
        "plain AS SELECT k, v + 1 AS v FROM events WHERE v > 0",
        "total AS SELECT count(*), sum(v), max(v) FROM events",
        "of_total AS SELECT sum, count(*) AS n FROM total GROUP BY sum",
        "by_letter AS SELECT left(name, 1) AS letter, count(*) AS n FROM names GROUP BY 1",
    ] {
        assert!(growth(&mut client, bounded).is_empty(), "{bounded}");
    }
    server.restart().expect("start again");
    let mut client = server.client().expect("connect");
    let told = growth(&mut client, "w AS SELECT c, count(*) AS n FROM v GROUP BY c");
    assert!(matches!(told.as_slice(), [one] if one.ends_with("and v only grows.")), "views grow as well: {told:?}");
    let told = growth(&mut client, "x AS SELECT message, count(*) AS n FROM \"v$errors\" GROUP BY message");
    assert!(matches!(told.as_slice(), [one] if one.ends_with("and v$errors only grows.")), "{told:?}");
    client.run("SET client_min_messages = warning").expect("set");
    assert!(growth(&mut client, "quiet AS SELECT DISTINCT k FROM events").is_empty(), "who wants no notices gets none");
}

#[test]
fn state_that_grows_without_bound_is_refused_where_the_policy_says_so() {
    let (_server, mut client) = start();
    client.run("CREATE TABLE events (k int, v int) APPEND ONLY; CREATE TABLE t (k int)").expect("create");
    client.run("SET state_policy = 'require_bounded'").expect("set");
    let create = "CREATE MATERIALIZED VIEW v AS SELECT DISTINCT ON (k) k, n FROM (SELECT k, v, count(*) AS n FROM events GROUP BY k, v) AS c ORDER BY k, v";
    let error = client.error(create).expect("an error");
    assert_eq!((error.field('S'), error.sqlstate()), ("ERROR", "54000"));
    assert!(error.field('M').contains("materialized view \"v\" would keep state that grows without bound"), "{error}");
    let detail: Vec<&str> = error.field('D').lines().collect();
    assert_eq!(detail.len(), 2, "each operator: {detail:?}");
    assert!(detail[0].contains("aggregate") && detail[1].contains("top_n"), "{detail:?}");
    assert!(error.field('H').contains("SET state_policy = 'notice'"), "{}", error.field('H'));
    assert_eq!(client.error("SELECT * FROM v").expect("an error").sqlstate(), "42P01", "nothing is left behind");
    assert!(client.run(&format!("EXPLAIN {create}")).is_ok(), "its plan may be looked at");
    for bounded in ["SELECT count(*) FROM events", "SELECT k, count(*) AS n FROM t GROUP BY k", "SELECT k FROM events"]
    {
        client.run(&format!("CREATE MATERIALIZED VIEW b AS {bounded}")).expect("is made");
        client.run("DROP MATERIALIZED VIEW b").expect("is dropped");
    }
    client.run("RESET state_policy").expect("reset");
    assert_eq!(client.value("SHOW state_policy").expect("show"), "notice");
    client.run(create).expect("is made");
    assert_eq!(client.value("SELECT count(*) FROM v").expect("read"), "0");
}

#[test]
fn nonsense_ends_only_its_own_session() {
    let (server, mut client) = start();
    let mut stream = TcpStream::connect(("127.0.0.1", server.port())).expect("connect");
    let _ = stream.write_all(b"GET / HTTP/1.1\r\n\r\n");
    let _ = stream.read(&mut [0; 64]);
    let mut broken = server.client().expect("connect");
    let _ = broken.send(b'?', &[0xff; 16]);
    let _ = broken.flush();
    let _ = broken.receive();
    let mut cut = server.client().expect("connect");
    let _ = cut.send(b'Q', b"no final zero");
    let _ = cut.flush();
    drop(cut);
    assert_eq!(client.value("SELECT 1").expect("the other sessions go on"), "1");
}

#[test]
fn a_dropped_connection_rolls_back() {
    let (server, mut client) = start();
    client.run("CREATE TABLE t (a int PRIMARY KEY)").expect("create");
    let mut other = server.client().expect("connect");
    other.run("BEGIN; INSERT INTO t VALUES (1)").expect("insert");
    drop(other);
    // Its locks go with it: this must not wait for ever.
    client.set_timeout(Duration::from_secs(20)).expect("timeout");
    client.run("INSERT INTO t VALUES (1)").expect("insert");
    assert_eq!(client.value("SELECT count(*) FROM t").expect("count"), "1");
}
