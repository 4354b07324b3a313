//! Both servers started for real: they answer, they stop, and they leave nothing behind.
#![expect(clippy::unwrap_used, reason = "what a test leans on may fail it")]

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

fn ask(url: &str, sql: &str) -> String {
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
    // A process that has ended but was not waited for has no command line.
    std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let asked_at = Instant::now();
    while !is_so() {
        assert!(
            asked_at.elapsed() < Duration::from_secs(30),
            "{what} within 30 seconds"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn postgres_answers_with_durability_on_and_leaves_nothing() {
    let postgres = Postgres::start(small()).unwrap();
    let (pid, data, log) = (postgres.pid(), postgres.data_folder(), postgres.log_file());

    let settings = ask(
        &postgres.url(),
        "select string_agg(setting, ',' order by name) from pg_settings where name in \
         ('data_checksums', 'fsync', 'full_page_writes', 'synchronous_commit', 'server_encoding')",
    );
    let other = postgres.create_database("other_1").unwrap();

    assert_eq!(settings, "on,on,on,UTF8,on");
    assert_eq!(ask(&other, "select current_database()"), "other_1");
    assert!(log.exists());
    assert!(is_running(pid));
    postgres.stop().unwrap();
    assert!(!is_running(pid));
    assert!(!data.exists());
}

#[test]
fn postgres_refuses_a_wrong_password_and_an_odd_database_name() {
    let postgres = Postgres::start(small()).unwrap();
    let wrong = format!(
        "postgres://cloakroom:wrong@127.0.0.1:{}/cloakroom",
        postgres.port()
    );

    let refused = Command::new("psql")
        .args(["-Xw", &wrong, "-c", "select 1"])
        .output()
        .unwrap();
    let odd = postgres.create_database("a\"; drop database x; --");

    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("password authentication failed"));
    assert!(matches!(odd, Err(Error::DatabaseName { .. })));
}

#[test]
fn a_kept_postgres_is_left_running_stopped_and_found_again() {
    let parent = open_folder();
    let folder = parent.path().join("kept");
    let options = PostgresOptions {
        place: Place::Kept(folder.clone()),
        ..small()
    };

    let first = Postgres::start(options.clone()).unwrap();
    let (url, pid) = (first.url(), first.pid());
    first.leave_running();
    ask(
        &url,
        "create table note (line text); insert into note values ('kept')",
    );
    let second = Postgres::start(options.clone());
    let stopped = Postgres::stop_left_running(&folder).unwrap();
    let again = Postgres::start(options).unwrap();

    assert!(matches!(second, Err(Error::Running { .. })));
    assert!(stopped);
    assert!(!is_running(pid));
    assert_eq!(ask(&again.url(), "select line from note"), "kept");
    again.stop().unwrap();
    assert!(!Postgres::stop_left_running(&folder).unwrap());
}

#[test]
fn redis_answers_only_with_its_password_and_leaves_nothing() {
    let parent = open_folder();
    let options = RedisOptions {
        place: Place::Below(parent.path().to_owned()),
        ..RedisOptions::default()
    };
    let redis = Redis::start(options).unwrap();
    let (pid, port) = (redis.pid(), redis.port());
    let password = redis.url().split([':', '@']).nth(2).unwrap().to_owned();

    let stranger = talk(port, "PING\r\nQUIT\r\n");
    let friend = talk(
        port,
        &format!("AUTH {password}\r\nCONFIG GET save\r\nQUIT\r\n"),
    );

    assert!(stranger.starts_with("-NOAUTH"), "{stranger}");
    assert!(friend.contains("$4\r\nsave\r\n$0\r\n"), "{friend}");
    drop(redis);
    assert!(!is_running(pid));
    assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
}

#[test]
fn a_redis_left_running_is_stopped_by_its_folder() {
    let parent = open_folder();
    let folder = parent.path().join("kept");
    let options = RedisOptions {
        place: Place::Kept(folder.clone()),
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
fn servers_end_with_an_owner_that_was_killed() {
    let parent = open_folder();
    let mut owner = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "--ignored",
            "--nocapture",
            "an_owner_to_be_killed",
        ])
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

    wait_until("the servers end", || {
        !pids.iter().any(|&pid| is_running(pid))
    });
    wait_until("their folders go", || {
        std::fs::read_dir(parent.path()).unwrap().count() == 0
    });
}

/// Not a test by itself: the process that the test above kills.
#[test]
#[ignore = "run by servers_end_with_an_owner_that_was_killed"]
#[expect(
    clippy::print_stdout,
    reason = "its owner reads the numbers from there"
)]
fn an_owner_to_be_killed() {
    let postgres = Postgres::start(small()).unwrap();
    let redis = Redis::start(RedisOptions::default()).unwrap();
    println!("pids {} {}", postgres.pid(), redis.pid());
    let mut nothing = String::new();
    std::io::stdin().read_to_string(&mut nothing).unwrap();
}

#[test]
fn a_folder_that_postgres_cannot_use_is_named() {
    let file: PathBuf = tempfile::NamedTempFile::new()
        .unwrap()
        .into_temp_path()
        .to_path_buf();
    std::fs::write(&file, "in the way").unwrap();

    let refused = Postgres::start(PostgresOptions {
        place: Place::Kept(file.clone()),
        ..small()
    });

    let said = refused.unwrap_err().to_string();
    std::fs::remove_file(&file).unwrap();
    assert!(said.contains(&file.display().to_string()), "{said}");
}

/// A folder that the user `postgres` may enter too.
fn open_folder() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(Path::new(folder.path()), open).unwrap();
    folder
}

fn talk(port: u16, words: &str) -> String {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
    stream.write_all(words.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}
