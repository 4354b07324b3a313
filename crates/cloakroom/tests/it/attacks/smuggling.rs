//! Requests over bare sockets: none that a strict reader does not see is ever answered.

use std::time::Duration;

use cloakroom::access::{ApplicationKind, Permission};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::corpus::{CHUNKS, HEADERS, Seen, WHOLE};
use crate::support::{TestDatabase, TestVault, grants};

/// How long a first answer is waited for, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long nothing comes after it before nothing more is expected.
const QUIET: Duration = Duration::from_secs(2);
/// How many connections are tried at a time.
const AT_A_TIME: usize = 40;

/// One attack, sent in pieces of one size.
struct Case {
    name: String,
    bytes: Vec<u8>,
    piece: usize,
    seen: Seen,
    /// Whether the first is answered without looking at its body, behind which the server may close.
    leaves_body: bool,
}

/// What the server said about one connection.
struct Heard {
    answers: Vec<Heading>,
    /// Answers to a good request that was sent last; nothing when the connection was closed by then.
    to_probe: Option<Vec<Heading>>,
}

/// The beginning of an answer.
#[derive(Debug)]
struct Heading {
    status: u16,
    trace: String,
}

/// Lengths, codings, chunks, lines, hosts, versions and targets that parsers read
/// differently. None gets a second answer where a strict reader sees one request, and afterwards the
/// connection is closed or in step.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_smuggles_a_request_behind_another() {
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
    let mut asking = JoinSet::new();
    let mut wrong = Vec::new();
    for case in cases {
        let address = address.clone();
        asking.spawn(async move {
            let heard = hear(&address, &case).await;
            judge(&case, &heard)
        });
        if asking.len() >= AT_A_TIME {
            wrong.extend(asking.join_next().await.unwrap().unwrap());
        }
    }
    wrong.extend(asking.join_all().await.into_iter().flatten());

    let different = HEADERS.len() + CHUNKS.len() + WHOLE.len();
    println!("{different} attacks, {count} connections");
    assert!(wrong.is_empty(), "{} of {count}: {wrong:#?}", wrong.len());
}

/// Every attack: on a route that reads bodies and on one that does not, in one piece and in many.
fn cases(key: &str) -> Vec<Case> {
    let head = |path: &str| {
        format!(
            "POST {path} HTTP/1.1\r\nHost: h\r\nBT-API-KEY: {key}\r\nContent-Type: application/json\r\n"
        )
    };
    let mut texts = Vec::new();
    for path in ["/v2/tokens/search", "/ping"] {
        for (headers, body, seen) in HEADERS {
            texts.push((format!("{}{headers}\r\n\r\n{body}", head(path)), *seen));
        }
        for chunks in CHUNKS {
            let coding = "Transfer-Encoding: chunked\r\n\r\n";
            texts.push((format!("{}{coding}{chunks}", head(path)), Seen::Never));
        }
    }
    texts.extend(WHOLE.iter().map(|(text, seen)| ((*text).to_owned(), *seen)));
    let long = "x".repeat(70_000);
    texts.extend([
        (
            format!("GET /ping?{long} HTTP/1.1\r\nHost: h\r\n\r\n"),
            Seen::Refused,
        ),
        (
            format!("GET /ping HTTP/1.1\r\nHost: h\r\nX: {long}\r\n\r\n"),
            Seen::Refused,
        ),
        (
            format!(
                "{}Transfer-Encoding: chunked\r\n\r\n2;{long}\r\n{{}}\r\n0\r\n\r\n",
                head("/ping")
            ),
            Seen::Never,
        ),
        (
            format!(
                "{}Transfer-Encoding: chunked\r\n\r\n0\r\nX: {long}\r\n\r\n",
                head("/ping")
            ),
            Seen::Never,
        ),
    ]);
    texts
        .into_iter()
        .flat_map(|(text, seen)| [1_000_000, 7].map(|piece| Case::new(&text, piece, seen)))
        .collect()
}

impl Case {
    /// The attack with another request behind it.
    fn new(text: &str, piece: usize, seen: Seen) -> Self {
        let smuggled = "GET /ping HTTP/1.1\r\nHost: h\r\nBT-TRACE-ID: smuggled\r\n\r\n";
        let text = text.replace("{S}", &smuggled.len().to_string());
        let shown = text.chars().skip(text.find("json").unwrap_or(0));
        let shown: String = shown.take(120).collect();
        let byte = |one: char| u8::try_from(u32::from(one)).unwrap();
        Self {
            name: format!("{shown:?} in pieces of {piece}"),
            bytes: text.chars().chain(smuggled.chars()).map(byte).collect(),
            piece: if text.len() > 60_000 {
                1_000_000
            } else {
                piece
            },
            seen,
            leaves_body: text.starts_with("POST /ping"),
        }
    }
}

async fn hear(address: &str, case: &Case) -> Heard {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for piece in case.bytes.chunks(case.piece) {
        // A server that refuses early may close before it has read everything.
        if stream.write_all(piece).await.is_err() {
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
            Some(headings(&read(&mut stream, "probe").await.0))
        }
    };
    Heard {
        answers: headings(&bytes),
        to_probe,
    }
}

/// What comes until it is quiet or the last request is answered, and whether the connection was closed.
async fn read(stream: &mut TcpStream, last: &str) -> (Vec<u8>, bool) {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let wait = if bytes.is_empty() { PATIENCE } else { QUIET };
        match timeout(wait, stream.read(&mut chunk)).await {
            Err(_) => return (bytes, false),
            Ok(Ok(0) | Err(_)) => return (bytes, true),
            Ok(Ok(count)) => bytes.extend_from_slice(&chunk[..count]),
        }
        if headings(&bytes).iter().any(|it| it.trace == last) {
            return (bytes, false);
        }
    }
}

/// The heads of answers, but for those that only say to go on. No body of ours holds such a line.
fn headings(bytes: &[u8]) -> Vec<Heading> {
    let text = String::from_utf8_lossy(bytes).to_lowercase();
    let heads = text.split("http/1.").skip(1);
    let read = |head: &str| Heading {
        status: head.get(2..5).and_then(|it| it.parse().ok()).unwrap_or(0),
        trace: (head.lines())
            .find_map(|line| line.strip_prefix("bt-trace-id: "))
            .unwrap_or_default()
            .to_owned(),
    };
    heads
        .map(read)
        .filter(|heading| heading.status != 100)
        .collect()
}

fn judge(case: &Case, heard: &Heard) -> Option<String> {
    let Heard { answers, to_probe } = heard;
    let is_seen = answers.iter().any(|it| it.trace == "smuggled");
    let is_closed = to_probe.is_none();
    let is_refused = answers.len() <= 1
        && answers
            .iter()
            .all(|it| (400..500).contains(&it.status) && it.trace.is_empty())
        && is_closed;
    // Whoever did not close answers the next request, and it alone.
    let is_in_step = to_probe
        .as_ref()
        .is_none_or(|it| it.len() == 1 && it[0].trace == "probe");
    let is_both = is_seen && answers.len() == 2 && is_in_step;
    let is_right = match case.seen {
        Seen::Refused => is_refused,
        Seen::First => answers.len() == 1 && !is_seen && is_closed,
        Seen::Both => is_both || case.leaves_body && is_closed && answers.len() == 1,
        Seen::Inside => !is_seen && answers.len() == 1 && is_in_step,
        Seen::InStep => (is_refused || is_both || is_closed && answers.len() == 1) && is_in_step,
        // A body that never ends takes the next request for a part of it as well.
        Seen::Never => !is_seen && to_probe.as_ref().is_none_or(Vec::is_empty),
    };
    let Case { name, seen, .. } = case;
    (!is_right).then(|| format!("{name} is not {seen:?}: {answers:?}, then {to_probe:?}"))
}
