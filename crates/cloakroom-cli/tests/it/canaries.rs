//! A thousand marked card numbers go through the vault; none may be found outside of it.
//!
//! All of them share their first twelve digits, so one search per encoding finds any of them. The
//! last part of the test plants the mark on purpose and demands that every search finds it.

use std::path::Path;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::memmem::Finder;
use serde_json::{Value, json};

use crate::support::{Deployment, Node, each_file};

pub(super) const MARK: &str = "499273987160";
const CANARIES: u32 = 1_000;

/// The mark in one encoding.
pub(super) struct Trace {
    pub(super) encoding: &'static str,
    pub(super) finder: Finder<'static>,
}

/// A place where a trace was found.
#[derive(Debug)]
struct Hit {
    place: String,
    encoding: &'static str,
}

#[test]
fn a_thousand_cards_leave_no_trace_in_clear() {
    let (deployment, keys) = Deployment::with_keys(&[
        "/ mask token:create,token:read",
        "/ reveal token:read,token:delete",
    ]);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let traces = collect_traces();
    deployment.configure(&format!(
        "[log]\nlevel = \"trace\"\n[telemetry]\notlp_endpoint = \"http://{}/v1/traces\"\n",
        traces.address
    ));
    let node = deployment.serve();

    runtime.block_on(carry_canaries(&node, &keys, CANARIES));
    let metrics = runtime.block_on(async {
        let url = format!("{}/metrics", node.admin_url);
        reqwest::get(url).await.unwrap().text().await.unwrap()
    });
    node.signal("TERM");
    let mut node = node;
    assert!(node.process.wait().unwrap().success());

    let exported = traces.received.lock().unwrap().clone();
    assert!(
        exported.len() > 10_000,
        "traces were exported: {} bytes",
        exported.len()
    );
    let before = Media::read(&deployment, &node, &metrics, &exported);
    println!("searched: {}", before.describe());
    let hits = before.search();
    assert!(hits.is_empty(), "{hits:?}");

    // The same searches, on the same kinds of media, must find what was planted there.
    plant(&deployment, &node);
    let planted = Media::read(&deployment, &node, &metrics, &exported).search();
    for place in ["dump", "wal", "data", "server log", "node log"] {
        let found = planted.iter().any(|hit| hit.place.starts_with(place));
        assert!(found, "the search is blind for the {place}: {planted:?}");
    }
}

#[test]
fn everyencoding_is_recognized() {
    let number = canary(7);
    let wide: Vec<u8> = number.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("plain", number.clone().into_bytes()),
        ("hex", hex::encode(&number).into_bytes()),
        ("upper-case hex", hex::encode_upper(&number).into_bytes()),
        ("utf-16", wide),
        ("packed decimal", hex::decode(&number).unwrap()),
        (
            "base64",
            STANDARD_NO_PAD.encode(format!("a{number}")).into_bytes(),
        ),
        (
            "base64",
            STANDARD_NO_PAD.encode(format!("ab{number}")).into_bytes(),
        ),
        (
            "base64",
            URL_SAFE_NO_PAD
                .encode(format!("abc{number}xyz"))
                .into_bytes(),
        ),
        (
            "percent",
            number
                .bytes()
                .map(|b| format!("%{b:02X}"))
                .collect::<String>()
                .into_bytes(),
        ),
    ];
    for (encoding, bytes) in cases {
        let mut hits = Vec::new();
        let surrounded = [b"\x00some", &bytes[..], b"thing\xff"].concat();
        look(&all_traces(), "case", &surrounded, &mut hits);
        assert!(
            hits.iter().any(|hit| hit.encoding == encoding),
            "{encoding}: {hits:?}"
        );
    }
    let mut hits = Vec::new();
    look(&all_traces(), "case", b"4242424242424242", &mut hits);
    assert!(hits.is_empty());
}

/// The n-th marked card number, with its check digit.
pub(super) fn canary(n: u32) -> String {
    let body = format!("{MARK}{n:03}");
    let sum: u32 = body
        .bytes()
        .rev()
        .enumerate()
        .map(|(position, digit)| {
            let value = u32::from(digit - b'0');
            if position % 2 == 0 {
                value / 5 + value * 2 % 10
            } else {
                value
            }
        })
        .sum();
    format!("{body}{}", (10 - sum % 10) % 10)
}

/// Every way in: created, read both ways, deleted, refused, and put where it does not belong.
pub(super) async fn carry_canaries(node: &Node, keys: &[String], count: u32) {
    let client = reqwest::Client::new();
    let (masking, revealing) = (&keys[0], &keys[1]);
    let url = |path: &str| format!("{}{path}", node.base_url);
    let post = async |body: String| {
        let request = client
            .post(url("/tokens"))
            .header("bt-api-key", masking)
            .header("content-type", "application/json");
        request.body(body).send().await.unwrap()
    };
    for n in 0..count {
        let number = canary(n);
        let card = json!({"type": "card", "data": {"number": number, "expiration_month": 4}});
        let created = post(card.to_string()).await;
        assert_eq!(created.status(), 201);
        let created: Value = serde_json::from_str(&created.text().await.unwrap()).unwrap();
        let path = format!("/tokens/{}", created["id"].as_str().unwrap());
        for key in [masking, revealing] {
            let found = client
                .get(url(&path))
                .header("bt-api-key", key)
                .send()
                .await
                .unwrap();
            let text = found.text().await.unwrap();
            assert_eq!(text.contains(&number), key == revealing, "{text}");
        }
        if n % 10 == 0 {
            let gone = client
                .delete(url(&path))
                .header("bt-api-key", revealing)
                .send()
                .await;
            assert_eq!(gone.unwrap().status(), 204);
        }
        let wrong = mistakes(&number, n);
        assert_eq!(post(wrong.clone()).await.status(), 400, "{wrong}");
        // Where no card number belongs: path, query, and headers.
        let stray = client
            .get(url(&format!("/tokens/{number}?number={number}")))
            .header("bt-api-key", revealing)
            .header("bt-trace-id", &number)
            .header("traceparent", &number)
            .header("user-agent", &number)
            .send()
            .await
            .unwrap();
        assert_eq!(stray.status(), 404);
        let trace_id = stray.headers()["bt-trace-id"].to_str().unwrap().to_owned();
        assert!(!trace_id.contains(MARK), "{trace_id}");
        assert!(!stray.text().await.unwrap().contains(MARK));
        let refused = client
            .get(url("/tokens/x"))
            .header("bt-api-key", &number)
            .send()
            .await;
        assert_eq!(refused.unwrap().status(), 401);
    }
}

/// A body that is refused, each in its own way.
fn mistakes(number: &str, n: u32) -> String {
    match n % 9 {
        0 => json!({"type": "card", "data": {"number": format!("{number}-")}}).to_string(),
        1 => json!({"type": "token", "data": 1, "metadata": {"pan": number}}).to_string(),
        2 => json!({"type": "token", "data": 1, "containers": [format!("/{number}/")]}).to_string(),
        3 => json!({"type": "token", "data": 1, "expires_at": number}).to_string(),
        4 => json!({"type": number, "data": number}).to_string(),
        5 => format!("{{\"type\":\"card\",\"data\":{{\"number\":\"{number}\""),
        6 => json!({"type": "token", "data": 1, "mask": number}).to_string(),
        7 => json!({"id": number, "type": "card", "data": {"number": number}}).to_string(),
        _ => json!({"type": "token", "data": 1, "mask": format!("{{{{ data | {number} }}}}")})
            .to_string(),
    }
}

/// Everything that outlives a request, by name.
struct Media(Vec<(String, Vec<u8>)>);

impl Media {
    fn read(deployment: &Deployment, node: &Node, metrics: &str, traces: &[u8]) -> Self {
        let url = deployment.postgres.url();
        let dump = std::process::Command::new("pg_dump")
            .arg(&url)
            .output()
            .unwrap();
        assert!(dump.status.success());
        // Flushed, so that the heap files hold what the buffers held.
        let flush = std::process::Command::new("psql")
            .args([&url, "-qc", "checkpoint"])
            .status();
        assert!(flush.unwrap().success());
        let mut media = vec![
            ("dump".to_owned(), dump.stdout),
            (
                "server log".to_owned(),
                std::fs::read(deployment.postgres.log_file()).unwrap(),
            ),
            ("node log".to_owned(), std::fs::read(&node.log).unwrap()),
            ("metrics".to_owned(), metrics.as_bytes().to_vec()),
            ("traces".to_owned(), traces.to_vec()),
        ];
        each_file(
            &deployment.postgres.data_folder(),
            &mut |path: &Path, bytes| {
                let kind = if path.to_string_lossy().contains("pg_wal") {
                    "wal"
                } else {
                    "data"
                };
                media.push((format!("{kind} {}", path.display()), bytes.to_vec()));
            },
        );
        Self(media)
    }

    fn search(&self) -> Vec<Hit> {
        let traces = all_traces();
        let mut hits = Vec::new();
        for (place, bytes) in &self.0 {
            look(&traces, place, bytes, &mut hits);
        }
        hits
    }

    fn describe(&self) -> String {
        let size = |kind: &str| -> usize {
            let matching = self.0.iter().filter(|(place, _)| place.starts_with(kind));
            matching.map(|(_, bytes)| bytes.len()).sum()
        };
        [
            "dump",
            "wal",
            "data",
            "server log",
            "node log",
            "metrics",
            "traces",
        ]
        .map(|kind| format!("{kind} {} bytes", size(kind)))
        .join(", ")
    }
}

fn look(traces: &[Trace], place: &str, bytes: &[u8], hits: &mut Vec<Hit>) {
    for trace in traces {
        if trace.finder.find(bytes).is_some() {
            hits.push(Hit {
                place: place.to_owned(),
                encoding: trace.encoding,
            });
        }
    }
}

pub(super) fn all_traces() -> Vec<Trace> {
    let trace = |encoding, bytes: &[u8]| Trace {
        encoding,
        finder: Finder::new(bytes).into_owned(),
    };
    let wide: Vec<u8> = MARK.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let percent: String = MARK.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let mut traces = vec![
        trace("plain", MARK.as_bytes()),
        trace("hex", hex::encode(MARK).as_bytes()),
        trace("upper-case hex", hex::encode_upper(MARK).as_bytes()),
        trace("utf-16", &wide),
        trace("packed decimal", &hex::decode(MARK).unwrap()),
        trace("percent", percent.as_bytes()),
    ];
    // Base64 depends on where in a group of three the mark starts; only whole groups are certain.
    for offset in 0..3 {
        let shifted = format!("{}{MARK}", "\0".repeat(offset));
        let encoded = STANDARD_NO_PAD.encode(&shifted);
        let certain_from = if offset == 0 { 0 } else { 4 };
        let certain_to = shifted.len() / 3 * 4;
        traces.push(trace(
            "base64",
            &encoded.as_bytes()[certain_from..certain_to],
        ));
    }
    traces
}

/// Puts the mark where it must be found: into a table (and so into WAL and dump) and into the logs.
fn plant(deployment: &Deployment, node: &Node) {
    use std::io::Write as _;
    let sql = format!("create table planted as select '{}' as number", canary(1));
    let url = deployment.postgres.url();
    let planted = std::process::Command::new("psql")
        .args([&url, "-qc", &sql])
        .status();
    assert!(planted.unwrap().success());
    let error = format!("select '{}'::date", canary(1));
    let _ = std::process::Command::new("psql")
        .args([&url, "-qc", &error])
        .output()
        .unwrap();
    let mut log = std::fs::OpenOptions::new()
        .append(true)
        .open(&node.log)
        .unwrap();
    writeln!(log, "{}", canary(2)).unwrap();
}

/// Someone who receives traces and keeps every byte.
struct Collector {
    address: std::net::SocketAddr,
    received: Arc<Mutex<Vec<u8>>>,
}

fn collect_traces() -> Collector {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let received: Arc<Mutex<Vec<u8>>> = Arc::default();
    let keep = received.clone();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let keep = keep.clone();
            std::thread::spawn(move || receive(stream, &keep));
        }
    });
    Collector { address, received }
}

/// Keeps what comes in on one connection, and answers each request once it is whole.
fn receive(mut stream: std::net::TcpStream, keep: &Mutex<Vec<u8>>) {
    use std::io::{Read as _, Write as _};
    let mut buffer = vec![0; 64 * 1024];
    let mut pending = 0;
    while let Ok(length @ 1..) = stream.read(&mut buffer) {
        keep.lock().unwrap().extend_from_slice(&buffer[..length]);
        pending = remaining(pending, &buffer[..length]);
        if pending == 0 {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
        }
    }
}

/// How many bytes of a request are still to come after this piece of it.
fn remaining(pending: usize, piece: &[u8]) -> usize {
    if pending > 0 {
        return pending.saturating_sub(piece.len());
    }
    let Some(end) = memchr::memmem::find(piece, b"\r\n\r\n") else {
        return 0;
    };
    let head = String::from_utf8_lossy(&piece[..end]).to_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length:"))
        .and_then(|value| value.trim().parse::<usize>().ok())
        .unwrap_or(0);
    length.saturating_sub(piece.len() - end - 4)
}
