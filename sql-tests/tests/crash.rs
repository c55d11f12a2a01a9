//! The crash test in its short form, with a fresh seed; and what else must survive or be refused at start.

use sql_tests::crash::{Options, run};
use sql_tests::process::{Server, require_binary};
use std::process::Command;
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
    // Several times: threads that are still at work when the process ends would show now and then only.
    for _ in 0..5 {
        server.stop().expect("SIGTERM ends the server with exit code 0");
        server.restart().expect("start again");
    }
    assert_eq!(server.client().expect("connect").value("SELECT n FROM v").expect("read"), "3");
}

#[test]
fn two_servers_never_open_one_data_directory() {
    let server = Server::start().expect("start");
    // Another port, so that only the directory is in the way.
    let mut second = Command::new(sql_tests::process::binary());
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
    let output = Command::new(sql_tests::process::binary())
        .args(["--listen", &format!("127.0.0.1:{}", server.port()), "--data-dir"])
        .arg(directory.path().join("data"))
        .output()
        .expect("run");
    let text = String::from_utf8_lossy(&output.stderr).to_string() + &String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success(), "it must not start: {text}");
    assert!(text.contains(&server.port().to_string()), "the error names the address: {text}");
}

/// A small file system of its own; unmounted when dropped.
struct SmallDisk {
    directory: tempfile::TempDir,
}

impl SmallDisk {
    /// `None` if this user may not mount.
    fn mount(megabytes: u32) -> Option<Self> {
        let directory = tempfile::tempdir().ok()?;
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m"), "tmpfs"])
            .arg(directory.path())
            .output()
            .ok()?;
        mounted.status.success().then_some(SmallDisk { directory })
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.directory.path()).status();
    }
}

#[test]
fn a_full_disk_fails_writes_and_nothing_else() {
    require_binary().expect("the server binary");
    let Some(disk) = SmallDisk::mount(320) else {
        println!("skipped: a_full_disk_fails_writes_and_nothing_else: mounting a small file system needs root");
        return;
    };
    let filler = disk.directory.path().join("filler");
    std::fs::write(&filler, vec![1_u8; 200 << 20]).expect("room for the filler");
    let mut server = Server::start_on(disk.directory.path(), &[]).expect("start");
    let mut client = server.client().expect("connect");
    client.run("CREATE TABLE t (id bigint, noise text)").expect("create");
    client.run("CREATE MATERIALIZED VIEW v AS SELECT count(*) AS n, sum(id) AS s FROM t").expect("create");
    let line = |id: u64| {
        let noise = id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        format!("{id}\t{noise:016x}{:016x}{:016x}\n", noise.rotate_left(17) ^ id, noise.wrapping_mul(31))
    };
    let mut kept = 0_u64;
    let mut refused = None;
    for _ in 0..400 {
        let chunk: String = (kept..kept + 20_000).map(line).collect();
        let answers =
            client.query_copying("COPY t FROM STDIN", &mut std::iter::once(chunk.into_bytes())).expect("an answer");
        match answers.error {
            None => kept += 20_000,
            Some(error) => {
                refused = Some(error);
                break;
            }
        }
    }
    let error = refused.expect("the disk becomes full");
    // 53100: refused. 08007: it was on its way, is tried again until there is space, and is then there as a whole.
    assert!(["53100", "08007"].contains(&error.sqlstate()), "{error}");
    let doubtful = error.sqlstate() == "08007";
    let count = |client: &mut sql_tests::wire::Client, sql: &str| client.value(sql).expect("reads go on");
    assert_eq!(count(&mut client, "SELECT count(*) FROM t"), kept.to_string());
    assert_eq!(count(&mut client, "SELECT n FROM v"), kept.to_string());
    std::fs::remove_file(&filler).expect("there is space again");
    let started = std::time::Instant::now();
    while client.query("INSERT INTO t VALUES (-1, 'after')").expect("an answer").error.is_some() {
        assert!(started.elapsed() < Duration::from_secs(60), "writes do not go on: {}", server.log_tail());
        std::thread::sleep(Duration::from_millis(200));
    }
    let mut possible = vec![(kept + 1).to_string()];
    if doubtful {
        possible.push((kept + 20_001).to_string());
    }
    for round in ["there is space again", "after kill -9"] {
        let there = count(&mut client, "SELECT n FROM v");
        assert!(possible.contains(&there), "{round}: {there} of {possible:?}");
        assert_eq!(count(&mut client, "SELECT count(*) FROM t"), there, "{round}");
        server.restart().expect("start again");
        client = server.client().expect("connect");
    }
}
