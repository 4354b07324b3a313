//! What a node's memory still holds of card numbers after their requests, and who can get at it.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, chown};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::unistd::geteuid;

use crate::canaries::{MARK, Trace, all_traces, canary, carry_canaries};
use crate::support::{Deployment, Node, runtime};

const CANARIES: u32 = 200;
/// A user that owns nothing else.
const NOBODY: u32 = 65534;
/// How much of a mapping is read at a time, and how far a number that begins there may reach beyond it.
const PIECE: usize = 64 * 1024;
const BEYOND: usize = 128;
static EMPTY: [u8; PIECE + BEYOND] = [0; PIECE + BEYOND];

/// A part of a node's memory that can be written to.
struct Mapping {
    start: u64,
    end: u64,
    name: String,
}

/// Where a number stays: the encoding, the mapping, and what stands around it.
type Remains = BTreeMap<(&'static str, String, String), usize>;

/// No core is ever written of a node, and nobody but root may look into it: the files of a process that
/// is not dumpable belong to root, whoever runs it.
#[test]
fn a_node_leaves_no_core_and_lets_nobody_look_into_it() {
    let (deployment, _) = Deployment::with_keys(&["/ mask token:create"]);
    let node = deployment.serve_by(unprivileged(&deployment));
    let file = |name: &str| format!("/proc/{}/{name}", node.process.id());

    let limits = std::fs::read_to_string(file("limits")).unwrap();
    let core = limits
        .lines()
        .find(|line| line.starts_with("Max core file size"));
    let core: Vec<&str> = core.unwrap().split_whitespace().collect();
    let status = std::fs::read_to_string(file("status")).unwrap();
    let runs_as = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    let runs_as = runs_as.unwrap().split_whitespace().next().unwrap();

    assert_eq!(core[4..6], ["0", "0"], "{core:?}");
    assert!(status.contains("NoNewPrivs:\t1"), "{status}");
    assert_ne!(runs_as, "0");
    assert_eq!(std::fs::metadata(file("mem")).unwrap().uid(), 0);
}

/// Serves as somebody who is not root, to whom all of the deployment belongs.
fn unprivileged(deployment: &Deployment) -> Command {
    if !geteuid().is_root() {
        return deployment.command(&["serve"]);
    }
    let program = deployment.path("cloakroom");
    std::fs::copy(env!("CARGO_BIN_EXE_cloakroom"), &program).unwrap();
    let folder = deployment.folder.path();
    let files = std::fs::read_dir(folder).unwrap();
    let files = files.map(|entry| entry.unwrap().path());
    for path in files.chain([folder.to_owned()]) {
        chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(program).arg("serve").stdin(Stdio::null());
    command.env("CLOAKROOM_CONFIG", deployment.path("cloakroom.toml"));
    command
}

/// Two seconds after the last request nothing is left of any card number, in any form; and one that is still on its
/// way is found, so there is something to find.
#[test]
fn memory_forgets_card_numbers() {
    let (deployment, keys) = Deployment::with_keys(&[
        "/ mask token:create,token:read",
        "/ reveal token:read,token:delete",
    ]);
    let node = deployment.serve();
    if File::open(format!("/proc/{}/mem", node.process.id())).is_err() {
        println!("skipped: only root may read the memory of a node");
        return;
    }

    runtime().block_on(carry_canaries(&node, &keys, CANARIES));
    let sending = half_a_request(&node, &keys[0]);
    std::thread::sleep(Duration::from_millis(500));
    let (_, on_the_way) = search(&node);
    drop(sending);
    std::thread::sleep(Duration::from_secs(2));
    let (bytes, remains) = search(&node);

    let count: usize = remains.values().sum();
    println!("{count} remains of {CANARIES} card numbers in {bytes} writable bytes");
    let mut places: Vec<_> = remains.iter().collect();
    places.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for ((encoding, mapping, around), count) in places.into_iter().take(40) {
        println!("{count:6} {encoding:14} {mapping:20} {around}");
    }
    assert!(bytes > 1024 * 1024, "the memory was read");
    assert!(!on_the_way.is_empty(), "a number that is there is found");
    assert_eq!(count, 0);
}

/// A create whose end is never sent.
fn half_a_request(node: &Node, key: &str) -> TcpStream {
    let address = node.base_url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    let number = canary(1);
    let request = format!(
        "POST /tokens HTTP/1.1\r\nHost: vault\r\nBT-API-KEY: {key}\r\nContent-Type: application/json\r\n\
         Content-Length: 1000\r\n\r\n{{\"type\": \"card\", \"data\": {{\"number\": \"{number}\""
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

fn search(node: &Node) -> (u64, Remains) {
    let memory = File::open(format!("/proc/{}/mem", node.process.id())).unwrap();
    let traces = all_traces();
    let (mut read, mut remains) = (0, Remains::new());
    for mapping in writable(node) {
        let mut at = mapping.start;
        while at < mapping.end {
            let left = usize::try_from(mapping.end - at).unwrap();
            let mut bytes = vec![0; left.min(PIECE + BEYOND)];
            // Some pages cannot be read, and none of those can hold anything.
            let count = memory.read_at(&mut bytes, at).unwrap_or(0);
            // Most of what the allocator has reserved was never used.
            if bytes != EMPTY[..bytes.len()] {
                find(&traces, &mapping.name, &bytes[..count], &mut remains);
            }
            read += count.min(PIECE) as u64;
            at += left.min(PIECE) as u64;
        }
    }
    (read, remains)
}

fn writable(node: &Node) -> Vec<Mapping> {
    let maps = std::fs::read_to_string(format!("/proc/{}/maps", node.process.id())).unwrap();
    let read = |line: &str| {
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        if !words.next()?.starts_with("rw") {
            return None;
        }
        Some(Mapping {
            start: u64::from_str_radix(start, 16).ok()?,
            end: u64::from_str_radix(end, 16).ok()?,
            name: words.nth(3).unwrap_or("anonymous").to_owned(),
        })
    };
    maps.lines().filter_map(read).collect()
}

/// Counts what is found by what stands before it, with all digits made equal.
fn find(traces: &[Trace], mapping: &str, bytes: &[u8], remains: &mut Remains) {
    for trace in traces {
        let begins_here = |at: &usize| *at < PIECE;
        for at in trace.finder.find_iter(bytes).take_while(begins_here) {
            let before = &bytes[at.saturating_sub(24)..at];
            let after = &bytes[at..bytes.len().min(at + MARK.len() + 30)];
            let shown = [before, after].concat();
            let shown: String = shown.iter().map(|byte| readable(*byte)).collect();
            *remains
                .entry((trace.encoding, mapping.to_owned(), shown))
                .or_default() += 1;
        }
    }
}

fn readable(byte: u8) -> char {
    match byte {
        b'0'..=b'9' => '9',
        b' '..=b'~' => char::from(byte),
        _ => '.',
    }
}
