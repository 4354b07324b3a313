//! Tests of parsing `/proc`.

use std::process::Command;

use super::*;

#[test]
fn times_and_parent_are_read_behind_the_name() {
    let cases = [
        (
            "7 (cloak) room) S 3 7 7 0 -1 4194304 900 0 0 0 250 50 20 5 20 0 5 0 1000",
            Some(Stat {
                parent: 3,
                own: Duration::from_secs(3),
                ended_children: Duration::from_millis(250),
            }),
        ),
        ("7 (cloakroom) S 1 7 7 0", None),
        ("", None),
    ];
    for (text, expected) in cases {
        assert_eq!(parse_stat(text), expected, "{text}");
    }
}

#[test]
fn memory_is_the_most_that_was_held() {
    let status = "Name:\tcloakroom\nVmHWM:\t   50000 kB\nVmRSS:\t   40000 kB\n";

    assert_eq!(parse_memory(status), Some(51.2));
    assert_eq!(parse_memory("Name:\tkthreadd\n"), None);
    assert!(memory_mb(std::process::id()).unwrap() > 1.0);
}

/// A child counts while it runs and after it has exited.
#[test]
fn a_family_is_a_process_and_its_children() {
    let oneself = std::process::id();
    let spin = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";
    let before = family_cpu_time(oneself).unwrap();
    let mut ended = Command::new("sh").args(["-c", spin]).spawn().unwrap();
    ended.wait().unwrap();
    let between = family_cpu_time(oneself).unwrap();
    let script = format!("{spin}; echo; read line");
    let mut living = Command::new("sh")
        .args(["-c", &script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0];
    std::io::Read::read_exact(living.stdout.as_mut().unwrap(), &mut line).unwrap();
    let after = family_cpu_time(oneself).unwrap();
    living.kill().unwrap();
    living.wait().unwrap();

    let least = Duration::from_millis(100);
    assert!(between - before > least, "{:?}", between - before);
    assert!(after - between > least, "{:?}", after - between);
}

#[test]
fn time_is_shared_by_the_requests() {
    let before = CpuTimes {
        postgres: Duration::from_millis(40),
        ..CpuTimes::default()
    };
    let after = CpuTimes {
        postgres: Duration::from_millis(340),
        redis: Duration::from_millis(100),
        ..CpuTimes::default()
    };

    let shares = (after - before).shared_by(1000);

    assert_eq!((shares.postgres, shares.redis), (300.0, 100.0));
    assert_eq!(shares.sum(), 400.0);
}
