//! The crash test in its short form, with a fresh seed; and what else must survive or be refused at start.

use sql_tests::crash::{Options, run};
use sql_tests::process::{Server, require_binary};
use std::time::Duration;

#[test]
fn nothing_is_lost_or_twice() {
    require_binary().expect("the server binary");
    let rounds = std::env::var("TIDEMILL_CRASH_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(40);
    let seed = std::env::var("TIDEMILL_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    println!("seed {seed}, {rounds} rounds");
    let options = Options { seed, rounds, time: Duration::from_secs(240), server_arguments: Vec::new() };
    println!("{}", run(&options).expect("nothing lost, nothing twice"));
}

#[test]
fn an_orderly_stop_keeps_everything() {
    let mut server = Server::start().expect("start");
    let mut client = server.client().expect("connect");
    client.run("CREATE TABLE t (a int)").expect("create");
    client.run("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n FROM t").expect("create");
    client.run("INSERT INTO t VALUES (1), (2), (3)").expect("insert");
    drop(client);
    server.stop().expect("SIGTERM ends the server with exit code 0");
    server.restart().expect("start again");
    assert_eq!(server.client().expect("connect").value("SELECT n FROM v").expect("read"), "3");
}

#[test]
fn two_servers_never_open_one_data_directory() {
    let server = Server::start().expect("start");
    // Another port, so that only the directory is in the way.
    let mut second = std::process::Command::new(sql_tests::process::binary());
    second.args(["--listen", "127.0.0.1:0", "--data-dir"]).arg(server.data_directory());
    let output = second.output().expect("run");
    let text = String::from_utf8_lossy(&output.stderr).to_string() + &String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "the second server must not start: {text}");
    assert!(text.contains("data"), "the error names the data directory: {text}");
    assert_eq!(server.client().expect("connect").value("SELECT 1").expect("the first goes on"), "1");
}

#[test]
fn a_port_in_use_is_a_clear_error() {
    let server = Server::start().expect("start");
    let directory = tempfile::tempdir().expect("directory");
    let output = std::process::Command::new(sql_tests::process::binary())
        .args(["--listen", &format!("127.0.0.1:{}", server.port()), "--data-dir"])
        .arg(directory.path().join("data"))
        .output()
        .expect("run");
    let text = String::from_utf8_lossy(&output.stderr).to_string() + &String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "it must not start: {text}");
    assert!(text.contains(&server.port().to_string()), "the error names the address: {text}");
}
