//! Request smuggling over raw sockets: only requests that a strict parser sees are processed.

use std::time::Duration;

use cloakroom::access::{ApplicationKind, Permission};
use cloakroom_testkit::{TestDatabase, TestVault, grants};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::corpus::{CHUNKS, HEADERS, Outcome, WHOLE};

/// Timeout of the first response, generous for a busy machine.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(10);
/// Idle time after which no further response is expected.
const IDLE_TIMEOUT: Duration = Duration::from_secs(2);
/// Concurrent connections.
const CONCURRENCY: usize = 40;

/// An attack, sent in chunks of one size.
struct Case {
    name: String,
    bytes: Vec<u8>,
    chunk_size: usize,
    expected: Outcome,
    /// Whether the server responds to the first request without reading its body; it may then close the connection.
    leaves_body: bool,
}

/// Responses received on one connection.
struct Responses {
    to_attack: Vec<ResponseHead>,
    /// Responses to a valid request sent last; `None` if the connection was closed before.
    to_probe: Option<Vec<ResponseHead>>,
}

/// Status and trace id of a response.
#[derive(Debug)]
struct ResponseHead {
    status: u16,
    trace: String,
}

/// Lengths, codings, chunks, lines, hosts, versions and targets that parsers interpret differently. None gets a second
/// response where a strict parser sees one request, and afterwards the connection is closed or in sync.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn smuggled_requests_are_not_answered() {
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        let minute = Duration::from_secs(60);
        config.http.header_timeout = minute;
        config.database.acquire_timeout = minute;
        config.database.read_deadline = minute;
    })
    .await;
    let tenant = vault.tenant().await;
    let granted = grants(&[Permission::TokenSearch]);
    let holder = vault
        .holder(&tenant, ApplicationKind::Private, granted)
        .await;
    let address = vault.base_url.strip_prefix("http://").unwrap().to_owned();

    let cases = cases(&holder.key);
    let count = cases.len();
    let mut connections = JoinSet::new();
    let mut failures = Vec::new();
    for case in cases {
        let address = address.clone();
        connections.spawn(async move {
            let responses = send(&address, &case).await;
            check(&case, &responses)
        });
        if connections.len() >= CONCURRENCY {
            failures.extend(connections.join_next().await.unwrap().unwrap());
        }
    }
    failures.extend(connections.join_all().await.into_iter().flatten());

    let different = HEADERS.len() + CHUNKS.len() + WHOLE.len();
    println!("{different} attacks, {count} connections");
    assert!(
        failures.is_empty(),
        "{} of {count}: {failures:#?}",
        failures.len()
    );
}

/// Every attack on a route that reads bodies and on one that does not, sent at once and in small chunks.
fn cases(key: &str) -> Vec<Case> {
    let head = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: h\r\nBT-API-KEY: {key}\r\nContent-Type: application/json\r\n"
        )
    };
    let mut texts = Vec::new();
    for path in ["/v2/tokens/search", "/ping"] {
        for (headers, body, expected) in HEADERS {
            texts.push((format!("{}{headers}\r\n\r\n{body}", head(path)), *expected));
        }
        for chunks in CHUNKS {
            let coding = "Transfer-Encoding: chunked\r\n\r\n";
            texts.push((format!("{}{coding}{chunks}", head(path)), Outcome::Never));
        }
    }
    texts.extend(
        WHOLE
            .iter()
            .map(|(text, expected)| ((*text).to_owned(), *expected)),
    );
    let long = "x".repeat(70_000);
    texts.extend([
        (
            format!("GET /ping?{long} HTTP/1.1\r\nHost: h\r\n\r\n"),
            Outcome::Rejected,
        ),
        (
            format!("GET /ping HTTP/1.1\r\nHost: h\r\nX: {long}\r\n\r\n"),
            Outcome::Rejected,
        ),
        (
            format!(
                "{}Transfer-Encoding: chunked\r\n\r\n2;{long}\r\n{{}}\r\n0\r\n\r\n",
                head("/ping")
            ),
            Outcome::Never,
        ),
        (
            format!(
                "{}Transfer-Encoding: chunked\r\n\r\n0\r\nX: {long}\r\n\r\n",
                head("/ping")
            ),
            Outcome::Never,
        ),
    ]);
    texts
        .into_iter()
        .flat_map(|(text, expected)| {
            [1_000_000, 7].map(|chunk_size| Case::new(&text, chunk_size, expected))
        })
        .collect()
}

impl Case {
    /// Appends a second request to the attack.
    fn new(text: &str, chunk_size: usize, expected: Outcome) -> Self {
        let smuggled = "GET /ping HTTP/1.1\r\nHost: h\r\nBT-TRACE-ID: smuggled\r\n\r\n";
        let text = text.replace("{S}", &smuggled.len().to_string());
        let shown = text.chars().skip(text.find("json").unwrap_or(0));
        let shown: String = shown.take(120).collect();
        let byte = |one: char| u8::try_from(u32::from(one)).unwrap();
        Self {
            name: format!("{shown:?} in chunks of {chunk_size}"),
            bytes: text.chars().chain(smuggled.chars()).map(byte).collect(),
            chunk_size: if text.len() > 60_000 {
                1_000_000
            } else {
                chunk_size
            },
            expected,
            leaves_body: text.starts_with("POST /ping"),
        }
    }
}

async fn send(address: &str, case: &Case) -> Responses {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for chunk in case.bytes.chunks(case.chunk_size) {
        // The server may reject the request and close the connection before it has read everything.
        if stream.write_all(chunk).await.is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let (bytes, is_closed) = read(&mut stream, "smuggled").await;
    let to_probe = match is_closed {
        true => None,
        false => {
            let probe = b"GET /ping HTTP/1.1\r\nHost: h\r\nBT-TRACE-ID: probe\r\n\r\n";
            let _ = stream.write_all(probe).await;
            Some(response_heads(&read(&mut stream, "probe").await.0))
        }
    };
    Responses {
        to_attack: response_heads(&bytes),
        to_probe,
    }
}

/// Reads until the connection is idle or the response with the trace id `last` arrives; also returns whether the
/// connection was closed.
async fn read(stream: &mut TcpStream, last: &str) -> (Vec<u8>, bool) {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let wait = if bytes.is_empty() {
            RESPONSE_TIMEOUT
        } else {
            IDLE_TIMEOUT
        };
        match timeout(wait, stream.read(&mut chunk)).await {
            Err(_) => return (bytes, false),
            Ok(Ok(0) | Err(_)) => return (bytes, true),
            Ok(Ok(count)) => bytes.extend_from_slice(&chunk[..count]),
        }
        if response_heads(&bytes).iter().any(|it| it.trace == last) {
            return (bytes, false);
        }
    }
}

/// Heads of all responses except `100 Continue`. No response body contains a status line.
fn response_heads(bytes: &[u8]) -> Vec<ResponseHead> {
    let text = String::from_utf8_lossy(bytes).to_lowercase();
    let heads = text.split("http/1.").skip(1);
    let parse = |head: &str| ResponseHead {
        status: head.get(2..5).and_then(|it| it.parse().ok()).unwrap_or(0),
        trace: (head.lines())
            .find_map(|line| line.strip_prefix("bt-trace-id: "))
            .unwrap_or_default()
            .to_owned(),
    };
    heads.map(parse).filter(|head| head.status != 100).collect()
}

fn check(case: &Case, responses: &Responses) -> Option<String> {
    let Responses {
        to_attack,
        to_probe,
    } = responses;
    let is_seen = to_attack.iter().any(|it| it.trace == "smuggled");
    let is_closed = to_probe.is_none();
    let is_rejected = to_attack.len() <= 1
        && to_attack
            .iter()
            .all(|it| (400..500).contains(&it.status) && it.trace.is_empty())
        && is_closed;
    // On an open connection, the probe gets exactly one response.
    let is_in_sync = to_probe
        .as_ref()
        .is_none_or(|it| it.len() == 1 && it[0].trace == "probe");
    let is_both = is_seen && to_attack.len() == 2 && is_in_sync;
    let is_right = match case.expected {
        Outcome::Rejected => is_rejected,
        Outcome::First => to_attack.len() == 1 && !is_seen && is_closed,
        Outcome::Both => is_both || case.leaves_body && is_closed && to_attack.len() == 1,
        Outcome::Inside => !is_seen && to_attack.len() == 1 && is_in_sync,
        Outcome::InSync => {
            (is_rejected || is_both || is_closed && to_attack.len() == 1) && is_in_sync
        }
        // An endless body consumes the probe as well.
        Outcome::Never => !is_seen && to_probe.as_ref().is_none_or(Vec::is_empty),
    };
    let Case { name, expected, .. } = case;
    (!is_right).then(|| format!("{name} is not {expected:?}: {to_attack:?}, then {to_probe:?}"))
}
