//! Starts real servers: they respond, they stop, and they leave no files or processes behind.
#![expect(clippy::unwrap_used, reason = "test setup may panic")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cloakroom_scratch::{Error, Place, Postgres, PostgresOptions, Redis, RedisOptions};

fn small() -> PostgresOptions {
    PostgresOptions {
        shared_buffers_mb: 16,
        connections_max: 20,
        ..PostgresOptions::default()
    }
}

fn query(url: &str, sql: &str) -> String {
    let output = Command::new("psql")
        .args(["-XAt", url, "-c", sql])
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn is_running(pid: u32) -> bool {
    // A zombie process has no command line.
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{what} within 30 seconds"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn postgres_is_durable_and_leaves_no_files() {
    let postgres = Postgres::start(small()).unwrap();
    let (pid, data, log) = (postgres.pid(), postgres.data_folder(), postgres.log_file());

    let settings = query(
        &postgres.url(),
        "select string_agg(setting, ',' order by name) from pg_settings where name in \
         ('data_checksums', 'fsync', 'full_page_writes', 'synchronous_commit', 'server_encoding')",
    );
    let other = postgres.create_database("other_1").unwrap();

    assert_eq!(settings, "on,on,on,UTF8,on");
    assert_eq!(query(&other, "select current_database()"), "other_1");
    assert!(log.exists());
    assert!(is_running(pid));
    postgres.stop().unwrap();
    assert!(!is_running(pid));
    assert!(!data.exists());
}

#[test]
fn postgres_rejects_a_wrong_password_and_an_invalid_database_name() {
    let postgres = Postgres::start(small()).unwrap();
    let wrong = format!(
        "postgres://cloakroom:wrong@127.0.0.1:{}/cloakroom",
        postgres.port()
    );

    let rejected = Command::new("psql")
        .args(["-Xw", &wrong, "-c", "select 1"])
        .output()
        .unwrap();
    let invalid = postgres.create_database("a\"; drop database x; --");

    assert!(!rejected.status.success());
    assert!(String::from_utf8_lossy(&rejected.stderr).contains("password authentication failed"));
    assert!(matches!(invalid, Err(Error::DatabaseName { .. })));
}

#[test]
fn a_persistent_postgres_can_be_left_running_stopped_and_restarted() {
    let parent = accessible_folder();
    let folder = parent.path().join("kept");
    let options = PostgresOptions {
        place: Place::Persistent(folder.clone()),
        ..small()
    };

    let first = Postgres::start(options.clone()).unwrap();
    let (url, pid) = (first.url(), first.pid());
    first.leave_running();
    query(
        &url,
        "create table note (line text); insert into note values ('kept')",
    );
    let second = Postgres::start(options.clone());
    let stopped = Postgres::stop_left_running(&folder).unwrap();
    let restarted = Postgres::start(options).unwrap();

    assert!(matches!(second, Err(Error::Running { .. })));
    assert!(stopped);
    assert!(!is_running(pid));
    assert_eq!(query(&restarted.url(), "select line from note"), "kept");
    restarted.stop().unwrap();
    assert!(!Postgres::stop_left_running(&folder).unwrap());
}

#[test]
fn redis_requires_its_password_and_leaves_no_files() {
    let parent = accessible_folder();
    let options = RedisOptions {
        place: Place::Below(parent.path().to_owned()),
        ..RedisOptions::default()
    };
    let redis = Redis::start(options).unwrap();
    let (pid, port) = (redis.pid(), redis.port());
    let password = redis.url().split([':', '@']).nth(2).unwrap().to_owned();

    let unauthenticated = exchange(port, "PING\r\nQUIT\r\n");
    let authenticated = exchange(
        port,
        &format!("AUTH {password}\r\nCONFIG GET save\r\nQUIT\r\n"),
    );

    assert!(unauthenticated.starts_with("-NOAUTH"), "{unauthenticated}");
    assert!(
        authenticated.contains("$4\r\nsave\r\n$0\r\n"),
        "{authenticated}"
    );
    drop(redis);
    assert!(!is_running(pid));
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
}

#[test]
fn a_redis_left_running_is_stopped_by_its_folder() {
    let parent = accessible_folder();
    let folder = parent.path().join("kept");
    let options = RedisOptions {
        place: Place::Persistent(folder.clone()),
        ..RedisOptions::default()
    };
    let redis = Redis::start(options).unwrap();
    let pid = redis.pid();

    redis.leave_running();
    let was_running = is_running(pid);
    let stopped = Redis::stop_left_running(&folder).unwrap();

    assert!(was_running);
    assert!(stopped);
    assert!(!is_running(pid));
}

#[test]
fn servers_stop_when_their_owner_is_killed() {
    let parent = accessible_folder();
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--ignored", "--nocapture", "owner_process"])
        .env("TMPDIR", parent.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pids = BufReader::new(owner.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find_map(|line| Some(line.split_once("pids ")?.1.to_owned()))
        .unwrap();
    let pids: Vec<u32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
    assert!(pids.iter().all(|&pid| is_running(pid)));

    owner.kill().unwrap();
    owner.wait().unwrap();

    wait_until("the servers stop", || {
        !pids.iter().any(|&pid| is_running(pid))
    });
    wait_until("their folders are deleted", || {
        std::fs::read_dir(parent.path()).unwrap().count() == 0
    });
}

/// The owner process that the test above kills.
#[test]
#[ignore = "run by servers_stop_when_their_owner_is_killed"]
#[expect(clippy::print_stdout, reason = "the test reads the pids from stdout")]
fn owner_process() {
    let postgres = Postgres::start(small()).unwrap();
    let redis = Redis::start(RedisOptions::default()).unwrap();
    println!("pids {} {}", postgres.pid(), redis.pid());
    let mut input = String::new();
    std::io::stdin().read_to_string(&mut input).unwrap();
}

#[test]
fn errors_name_the_unusable_folder() {
    let file: PathBuf = tempfile::NamedTempFile::new()
        .unwrap()
        .into_temp_path()
        .to_path_buf();
    std::fs::write(&file, "not a folder").unwrap();

    let result = Postgres::start(PostgresOptions {
        place: Place::Persistent(file.clone()),
        ..small()
    });

    let message = result.unwrap_err().to_string();
    std::fs::remove_file(&file).unwrap();
    assert!(message.contains(&file.display().to_string()), "{message}");
}

/// A directory that the user `postgres` can access.
fn accessible_folder() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(Path::new(folder.path()), open).unwrap();
    folder
}

fn exchange(port: u16, commands: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.write_all(commands.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}
