//! Sends a thousand canary card numbers through the vault and on to a processor; none may appear in clear anywhere else.
//!
//! All of them share their first twelve digits, so one search per encoding finds any of them. The last part of the
//! test plants a canary on purpose, to verify that every search detects it.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::memmem::Finder;
use serde_json::{Value, json};

use crate::collector::start_collector;
use crate::processor::Processor;
use crate::support::{Deployment, Node, each_file, runtime};

pub(super) const CANARY_PREFIX: &str = "499273987160";
const CANARIES: u32 = 1_000;
/// The rules of the keys that [`send_canaries`] uses.
pub(super) const CANARY_RULES: [&str; 3] = [
    "/ mask token:create,token:read",
    "/ reveal token:read,token:delete",
    "/ reveal token:use",
];

/// The canary prefix in one encoding.
pub(super) struct Pattern {
    pub(super) encoding: &'static str,
    pub(super) finder: Finder<'static>,
}

/// A place where a canary was found.
#[derive(Debug)]
struct Hit {
    place: String,
    encoding: &'static str,
}

#[test]
fn a_thousand_cards_leave_no_plaintext() {
    let (deployment, keys) = Deployment::with_keys(&CANARY_RULES);
    let runtime = runtime();
    let processor = runtime.block_on(Processor::start());
    let collector = start_collector();
    deployment.configure(&format!(
        "[log]\nlevel = \"trace\"\n[telemetry]\notlp_endpoint = \"http://{}/v1/traces\"\n{}",
        collector.address,
        processor.settings(),
    ));
    let node = deployment.serve();

    runtime.block_on(send_canaries(&node, &keys, &processor, CANARIES));
    assert_eq!(processor.received(), expected_charges(CANARIES));
    let metrics = runtime.block_on(async {
        let url = format!("{}/metrics", node.admin_url);
        reqwest::get(url).await.unwrap().text().await.unwrap()
    });
    node.signal("TERM");
    let mut node = node;
    assert!(node.process.wait().unwrap().success());

    let exported = collector.received.lock().unwrap().clone();
    assert!(
        exported.len() > 10_000,
        "traces were exported: {} bytes",
        exported.len()
    );
    let before = Artifacts::read(&deployment, &node, &metrics, &exported);
    println!("searched: {}", before.describe());
    let hits = before.search();
    assert!(hits.is_empty(), "{hits:?}");

    // The same searches must detect a planted canary in each kind of artifact.
    plant(&deployment, &node);
    let planted = Artifacts::read(&deployment, &node, &metrics, &exported).search();
    for place in ["dump", "wal", "data", "server log", "node log"] {
        let found = planted.iter().any(|hit| hit.place.starts_with(place));
        assert!(
            found,
            "the search does not detect a canary in the {place}: {planted:?}"
        );
    }
}

#[test]
fn every_encoding_is_detected() {
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
        scan(&all_patterns(), "case", &surrounded, &mut hits);
        assert!(
            hits.iter().any(|hit| hit.encoding == encoding),
            "{encoding}: {hits:?}"
        );
    }
    let mut hits = Vec::new();
    scan(&all_patterns(), "case", b"4242424242424242", &mut hits);
    assert!(hits.is_empty());
}

/// The n-th canary card number, with its check digit.
pub(super) fn canary(n: u32) -> String {
    let body = format!("{CANARY_PREFIX}{n:03}");
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

/// The card numbers that a processor has received after [`send_canaries`]: every fourth, in two charges each.
fn expected_charges(count: u32) -> Vec<String> {
    let charged = (0..count).step_by(4);
    charged.flat_map(|n| [canary(n), canary(n)]).collect()
}

/// Sends canaries in every way: create, masked and revealed read, to the processor, delete, rejected bodies, and misplaced
/// values.
pub(super) async fn send_canaries(node: &Node, keys: &[String], processor: &Processor, count: u32) {
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
        let id = created["id"].as_str().unwrap();
        let path = format!("/tokens/{id}");
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
        if n % 4 == 0 {
            processor.charge(node, &keys[2], id, &number).await;
        }
        if n % 10 == 0 {
            let deleted = client
                .delete(url(&path))
                .header("bt-api-key", revealing)
                .send()
                .await;
            assert_eq!(deleted.unwrap().status(), 204);
        }
        let wrong = invalid_body(&number, n);
        assert_eq!(post(wrong.clone()).await.status(), 400, "{wrong}");
        // Card numbers in the path, the query and the headers.
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
        assert!(!trace_id.contains(CANARY_PREFIX), "{trace_id}");
        assert!(!stray.text().await.unwrap().contains(CANARY_PREFIX));
        let rejected = client
            .get(url("/tokens/x"))
            .header("bt-api-key", &number)
            .send()
            .await;
        assert_eq!(rejected.unwrap().status(), 401);
    }
}

/// A body that is rejected, each for another reason.
fn invalid_body(number: &str, n: u32) -> String {
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

/// All persistent or exported data, by name.
struct Artifacts(Vec<(String, Vec<u8>)>);

impl Artifacts {
    fn read(deployment: &Deployment, node: &Node, metrics: &str, traces: &[u8]) -> Self {
        let url = deployment.postgres.url();
        let dump = std::process::Command::new("pg_dump")
            .arg(&url)
            .output()
            .unwrap();
        assert!(dump.status.success());
        // A checkpoint writes the buffers to the heap files.
        let flush = std::process::Command::new("psql")
            .args([&url, "-qc", "checkpoint"])
            .status();
        assert!(flush.unwrap().success());
        let mut artifacts = vec![
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
                artifacts.push((format!("{kind} {}", path.display()), bytes.to_vec()));
            },
        );
        Self(artifacts)
    }

    fn search(&self) -> Vec<Hit> {
        let patterns = all_patterns();
        let mut hits = Vec::new();
        for (place, bytes) in &self.0 {
            scan(&patterns, place, bytes, &mut hits);
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

fn scan(patterns: &[Pattern], place: &str, bytes: &[u8], hits: &mut Vec<Hit>) {
    for pattern in patterns {
        if pattern.finder.find(bytes).is_some() {
            hits.push(Hit {
                place: place.to_owned(),
                encoding: pattern.encoding,
            });
        }
    }
}

pub(super) fn all_patterns() -> Vec<Pattern> {
    let mut patterns = text_patterns(CANARY_PREFIX);
    patterns.push(Pattern {
        encoding: "packed decimal",
        finder: Finder::new(&hex::decode(CANARY_PREFIX).unwrap()).into_owned(),
    });
    patterns
}

/// The first digits of card numbers, in every encoding as text.
pub(super) fn text_patterns(prefix: &str) -> Vec<Pattern> {
    let pattern = |encoding, bytes: &[u8]| Pattern {
        encoding,
        finder: Finder::new(bytes).into_owned(),
    };
    let wide: Vec<u8> = prefix.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let percent: String = prefix.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let mut patterns = vec![
        pattern("plain", prefix.as_bytes()),
        pattern("hex", hex::encode(prefix).as_bytes()),
        pattern("upper-case hex", hex::encode_upper(prefix).as_bytes()),
        pattern("utf-16", &wide),
        pattern("percent", percent.as_bytes()),
    ];
    // Base64 depends on the offset of the prefix in a group of three bytes; only complete groups are constant.
    for offset in 0..3 {
        let shifted = format!("{}{prefix}", "\0".repeat(offset));
        let encoded = STANDARD_NO_PAD.encode(&shifted);
        let constant_from = if offset == 0 { 0 } else { 4 };
        let constant_to = shifted.len() / 3 * 4;
        patterns.push(pattern(
            "base64",
            &encoded.as_bytes()[constant_from..constant_to],
        ));
    }
    patterns
}

/// Plants canaries that the search must detect: in a table (and thus in WAL and dump) and in the logs.
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
