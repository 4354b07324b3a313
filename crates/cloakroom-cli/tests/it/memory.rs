//! Remnants of card numbers in a node's memory after their requests, and who can read that memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, chown};
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::unistd::geteuid;

use crate::canaries::{CANARY_PREFIX, CANARY_RULES, Pattern, all_patterns, canary, send_canaries};
use crate::processor::Processor;
use crate::support::{Deployment, Node, runtime};

const CANARIES: u32 = 200;
/// The user `nobody`.
const NOBODY_UID: u32 = 65534;
/// The chunk size of reads, and how far a match may extend beyond its chunk.
const CHUNK_BYTES: usize = 64 * 1024;
const OVERLAP_BYTES: usize = 128;
static ZEROS: [u8; CHUNK_BYTES + OVERLAP_BYTES] = [0; CHUNK_BYTES + OVERLAP_BYTES];

/// A writable mapping of a node's memory.
struct Mapping {
    start: u64,
    end: u64,
    name: String,
}

/// Number of matches by encoding, mapping and surrounding text.
type Remnants = BTreeMap<(&'static str, String, String), usize>;

/// A node writes no core dumps, and only root can read its memory: the /proc files of a process that is not dumpable
/// belong to root.
#[test]
fn a_node_writes_no_core_and_only_root_can_read_its_memory() {
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

/// Serves as a user other than root, who owns all files of the deployment.
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
        chown(path, Some(NOBODY_UID), Some(NOBODY_UID)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
    command.arg(program).arg("serve").stdin(Stdio::null());
    command.env("CLOAKROOM_CONFIG", deployment.path("cloakroom.toml"));
    command
}

/// Two seconds after the last request, no card number is left in memory in any encoding. As a control, a number in a
/// request that is still being sent is found.
#[test]
fn memory_retains_no_card_numbers() {
    let (deployment, keys) = Deployment::with_keys(&CANARY_RULES);
    let runtime = runtime();
    let processor = runtime.block_on(Processor::start());
    deployment.configure(&processor.settings());
    let node = deployment.serve();
    if File::open(format!("/proc/{}/mem", node.process.id())).is_err() {
        println!("skipped: only root may read the memory of a node");
        return;
    }

    runtime.block_on(send_canaries(&node, &keys, &processor, CANARIES));
    let sending = send_partial_request(&node, &keys[0]);
    std::thread::sleep(Duration::from_millis(500));
    let (_, in_flight) = search(&node);
    drop(sending);
    std::thread::sleep(Duration::from_secs(2));
    let (bytes, remnants) = search(&node);

    let count: usize = remnants.values().sum();
    println!("{count} remnants of {CANARIES} card numbers in {bytes} writable bytes");
    let mut sorted: Vec<_> = remnants.iter().collect();
    sorted.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for ((encoding, mapping, context), count) in sorted.into_iter().take(40) {
        println!("{count:6} {encoding:14} {mapping:20} {context}");
    }
    assert!(bytes > 1024 * 1024, "the memory was read");
    assert!(!in_flight.is_empty(), "a number that is there is found");
    assert_eq!(count, 0);
}

/// A create request whose end is never sent.
fn send_partial_request(node: &Node, key: &str) -> TcpStream {
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

fn search(node: &Node) -> (u64, Remnants) {
    let memory = File::open(format!("/proc/{}/mem", node.process.id())).unwrap();
    let patterns = all_patterns();
    let (mut read, mut remnants) = (0, Remnants::new());
    for mapping in writable(node) {
        let mut at = mapping.start;
        while at < mapping.end {
            let left = usize::try_from(mapping.end - at).unwrap();
            let mut bytes = vec![0; left.min(CHUNK_BYTES + OVERLAP_BYTES)];
            // Unreadable pages contain no data.
            let count = memory.read_at(&mut bytes, at).unwrap_or(0);
            // Most of the memory that the allocator has reserved was never used.
            if bytes != ZEROS[..bytes.len()] {
                find(&patterns, &mapping.name, &bytes[..count], &mut remnants);
            }
            read += count.min(CHUNK_BYTES) as u64;
            at += left.min(CHUNK_BYTES) as u64;
        }
    }
    (read, remnants)
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

/// Counts matches by their surrounding text, with all digits replaced by 9.
fn find(patterns: &[Pattern], mapping: &str, bytes: &[u8], remnants: &mut Remnants) {
    for pattern in patterns {
        let starts_in_chunk = |at: &usize| *at < CHUNK_BYTES;
        for at in pattern.finder.find_iter(bytes).take_while(starts_in_chunk) {
            let before = &bytes[at.saturating_sub(24)..at];
            let after = &bytes[at..bytes.len().min(at + CANARY_PREFIX.len() + 30)];
            let context = [before, after].concat();
            let context: String = context.iter().map(|byte| readable(*byte)).collect();
            *remnants
                .entry((pattern.encoding, mapping.to_owned(), context))
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
