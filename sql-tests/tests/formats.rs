//! What is on disk is ours to keep stable: a data directory survives restarts with other options, and one of another storage format
//! is refused. (The bytes of keys, rows and catalog entries are pinned beside the code that writes them.)

use sql_tests::process::Server;

#[test]
fn a_data_directory_serves_any_number_of_workers() {
    let mut server = Server::start_with(&["--workers", "1"]).expect("start");
    let mut client = server.client().expect("connect");
    client.run("CREATE TABLE t (id int PRIMARY KEY, g int, v int)").expect("create");
    client
        .run("CREATE MATERIALIZED VIEW v AS SELECT g, count(*) AS n, sum(v) AS s, max(v) AS m FROM t GROUP BY g")
        .expect("create");
    client
        .run("CREATE MATERIALIZED VIEW j AS SELECT a.id, b.id AS other FROM t a JOIN t b ON a.g = b.g")
        .expect("create");
    client.run("INSERT INTO t SELECT n, n % 10, n FROM generate_series(1, 100) AS g (n)").expect("insert");
    for (round, workers) in ["3", "1", "2", "5"].into_iter().enumerate() {
        server.set_arguments(&["--workers", workers]);
        server.restart().expect("start again");
        let mut client = server.client().expect("connect");
        client.run(&format!("DELETE FROM t WHERE id = {}", 100 - round)).expect("delete");
        client.run(&format!("INSERT INTO t VALUES ({}, {round}, 1000)", 1000 + round)).expect("insert");
        let wrong =
            "SELECT count(*) FROM (SELECT * FROM v EXCEPT SELECT g, count(*), sum(v), max(v) FROM t GROUP BY g) d";
        assert_eq!(client.value(wrong).expect("compare"), "0", "{workers} workers");
        let pairs = client.value("SELECT count(*) FROM j").expect("read");
        assert_eq!(pairs, client.value("SELECT sum(n * n)::bigint FROM v").expect("read"), "{workers} workers");
    }
}

#[test]
fn a_directory_that_is_no_data_directory_is_refused_or_kept() {
    let directory = tempfile::tempdir().expect("directory");
    let data = directory.path().join("data");
    std::fs::write(&data, "a file, not a directory").expect("write");
    let output = std::process::Command::new(sql_tests::process::binary())
        .args(["--listen", "127.0.0.1:0", "--data-dir"])
        .arg(&data)
        .output()
        .expect("run");
    let text = String::from_utf8_lossy(&output.stderr).to_string() + &String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("data"), "the error names it: {text}");
}
