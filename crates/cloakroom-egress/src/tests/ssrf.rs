//! Server-side request forgery: no target of the corpus is reached, by any encoding, name or redirect.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::AsyncReadExt as _;

use super::harness::{Authority, Client, Server, ServerTls, empty, respond};
use crate::{AddressClass, Denied, Destination, DestinationUrl, InvalidUrl, NotSent, SendError};

const CORPUS: &str = include_str!("ssrf_corpus.tsv");
const TARGETS_MIN: usize = 500;

struct Target {
    expected: String,
    url: String,
    addresses: Vec<IpAddr>,
}

fn targets(port: u16) -> Vec<Target> {
    let lines = CORPUS.lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let parse = |line: &str| {
        let mut columns = line.split('\t');
        let expected = columns.next().unwrap().to_owned();
        let url = unescape(columns.next().unwrap()).replace("{port}", &port.to_string());
        let addresses = columns.next().unwrap_or_default().split_whitespace();
        Target {
            expected,
            url,
            addresses: addresses.map(|text| text.parse().unwrap()).collect(),
        }
    };
    lines.map(parse).collect()
}

/// Replaces `\u{...}` and `\\`.
fn unescape(text: &str) -> String {
    let mut unescaped = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        unescaped.push_str(before);
        rest = match after.strip_prefix("u{") {
            Some(after) => {
                let (digits, after) = after.split_once('}').unwrap();
                let code = u32::from_str_radix(digits, 16).unwrap();
                unescaped.push(char::from_u32(code).unwrap());
                after
            }
            None => {
                unescaped.push('\\');
                after.strip_prefix('\\').unwrap()
            }
        };
    }
    unescaped + rest
}

fn outcome_of_invalid(error: InvalidUrl) -> &'static str {
    match error {
        InvalidUrl::NotHttps => "invalid scheme",
        InvalidUrl::TooLong => "invalid length",
        InvalidUrl::Characters => "invalid characters",
        InvalidUrl::UserInfo => "invalid userinfo",
        InvalidUrl::Fragment => "invalid fragment",
        InvalidUrl::Host => "invalid host",
        InvalidUrl::Port => "invalid port",
        InvalidUrl::Path => "invalid path",
        InvalidUrl::Traversal => "invalid traversal",
    }
}

fn outcome_of_denied(denied: Denied) -> &'static str {
    match denied {
        Denied::Host => "denied host",
        Denied::TenantHost => "denied tenant_host",
        Denied::OwnHost => "denied own_host",
        Denied::Port => "denied port",
        Denied::Address(_) => "denied address",
        Denied::Method => "denied method",
    }
}

async fn start_victim(address: [u8; 4], bytes: &Arc<AtomicUsize>) -> Server {
    start_victim_at((address, 0), bytes).await
}

/// Counts connections and bytes.
async fn start_victim_at(address: ([u8; 4], u16), bytes: &Arc<AtomicUsize>) -> Server {
    let bytes = bytes.clone();
    Server::start_tcp(address.into(), move |mut stream| {
        let bytes = bytes.clone();
        async move {
            let mut buffer = [0; 1024];
            while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                bytes.fetch_add(read, Ordering::SeqCst);
            }
        }
    })
    .await
}

#[tokio::test]
async fn no_target_of_the_corpus_is_reached() {
    let bytes = Arc::new(AtomicUsize::new(0));
    let victim = start_victim([127, 0, 0, 1], &bytes).await;
    let answers: Arc<Mutex<Vec<IpAddr>>> = Arc::default();
    let scripted = answers.clone();
    let mut client = Client::with_names(
        &Authority::new(),
        &victim,
        move |_| scripted.lock().unwrap().clone(),
        |config| {
            config.egress.allow_private_networks = Default::default();
            config.egress.allowed_hosts = Some("*.psp.example".parse().unwrap());
            config.http.base_url = Some("https://vault.self.psp.example".parse().unwrap());
        },
    );
    client.timeouts.connect = Duration::from_millis(200);

    let targets = targets(victim.address.port());
    assert!(targets.len() >= TARGETS_MIN, "{}", targets.len());
    let mut wrong = Vec::new();
    for target in &targets {
        *answers.lock().unwrap() = target.addresses.clone();
        let outcome = attempt(&client, &target.url).await;
        if outcome != target.expected {
            wrong.push(format!(
                "{}: {outcome}, not {}",
                target.url, target.expected
            ));
        }
    }

    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!((victim.connections(), bytes.load(Ordering::SeqCst)), (0, 0));
}

/// Sends a request if the URL is valid. `allowed` is a URL that passes every check but has no address.
async fn attempt(client: &Client, url: &str) -> &'static str {
    let url = match DestinationUrl::parse(url) {
        Ok(url) => url,
        Err(error) => return outcome_of_invalid(error),
    };
    let destination = Destination {
        url: &url,
        ..client.destination()
    };
    match client
        .egress
        .send(destination, empty(), &client.timeouts)
        .await
    {
        Err(SendError::Denied(denied)) => outcome_of_denied(denied),
        Err(SendError::NotSent(NotSent::Dns)) => "allowed",
        Err(error) => error.kind(),
        Ok(_) => "sent",
    }
}

/// The control of the test above: with an exemption, the same listener is reached.
#[tokio::test]
async fn an_exempt_address_is_reached() {
    let bytes = Arc::new(AtomicUsize::new(0));
    let victim = start_victim([127, 0, 0, 1], &bytes).await;
    let mut client = Client::new(&Authority::new(), &victim);
    client.timeouts.connect = Duration::from_millis(300);

    let outcome = client.get().await.map(|_| ()).unwrap_err();

    assert_eq!(outcome, SendError::NotSent(NotSent::ConnectTimeout));
    assert_eq!(victim.connections(), 1);
    assert!(bytes.load(Ordering::SeqCst) > 0);
}

/// 127.0.0.1, which is exempt, takes the part of a public address, and 127.0.0.2 that of an internal one.
#[tokio::test]
async fn a_name_that_changes_its_address_does_not_reach_the_new_one() {
    let authority = Authority::new();
    let tls = ServerTls::new(&authority.issue("psp.example"));
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
    let server = Server::start(tls, move |stream| respond(stream, response)).await;
    let bytes = Arc::new(AtomicUsize::new(0));
    let port = server.address.port();
    let victim = start_victim_at(([127, 0, 0, 2], port), &bytes).await;
    let lookups = Arc::new(AtomicUsize::new(0));
    let count = lookups.clone();
    let client = Client::with_names(
        &authority,
        &server,
        move |_| match count.fetch_add(1, Ordering::SeqCst) % 2 {
            0 => vec![[127, 0, 0, 1].into()],
            _ => vec![[127, 0, 0, 2].into()],
        },
        |_| {},
    );

    let (mut sent, mut denied) = (0, 0);
    for _ in 0..60 {
        match client.get_text().await {
            Ok(text) if text == "ok" => sent += 1,
            Err(SendError::Denied(Denied::Address(AddressClass::Loopback))) => denied += 1,
            other => panic!("{other:?}"),
        }
        tokio::time::sleep(Duration::from_millis(7)).await;
    }

    assert!(lookups.load(Ordering::SeqCst) >= 4);
    assert!(sent > 0 && denied > 0, "{sent} sent, {denied} denied");
    assert_eq!((victim.connections(), bytes.load(Ordering::SeqCst)), (0, 0));
}

#[tokio::test]
async fn redirects_are_returned_and_not_followed() {
    let authority = Authority::new();
    let bytes = Arc::new(AtomicUsize::new(0));
    let victim = start_victim([127, 0, 0, 2], &bytes).await;
    let locations = [
        format!("http://{}/", victim.address),
        format!("https://{}/", victim.address),
        format!("//{}/", victim.address),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "file:///etc/passwd".to_owned(),
    ];
    for status in [301, 302, 303, 307, 308] {
        for location in &locations {
            let tls = ServerTls::new(&authority.issue("psp.example"));
            let response = format!(
                "HTTP/1.1 {status} Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
            );
            let response: &'static str = response.leak();
            let server = Server::start(tls, move |stream| respond(stream, response)).await;
            let client = Client::new(&authority, &server);

            let response = client.get().await.unwrap();

            assert_eq!(response.status().as_u16(), status);
            assert_eq!(response.headers()["location"], location.as_str());
            assert_eq!(server.connections(), 1);
        }
    }
    assert_eq!((victim.connections(), bytes.load(Ordering::SeqCst)), (0, 0));
}

#[tokio::test]
async fn connect_is_no_method_for_destinations() {
    let authority = Authority::new();
    let bytes = Arc::new(AtomicUsize::new(0));
    let victim = start_victim([127, 0, 0, 1], &bytes).await;
    let client = Client::new(&authority, &victim);
    let mut request = empty();
    *request.method_mut() = http::Method::CONNECT;

    let sent = client
        .egress
        .send(client.destination(), request, &client.timeouts)
        .await;

    assert_eq!(sent.err(), Some(SendError::Denied(Denied::Method)));
    assert_eq!(victim.connections(), 0);
}
