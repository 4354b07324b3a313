//! Streams of entries to other systems: complete, verifiable, and never in the way of requests.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

use cloakroom::audit::{
    self, ALL_DAYS, EntityKind, Entry, Finding, Operation, VerificationReport, read_received,
    verify_export,
};
use cloakroom::config::Secret;
use cloakroom::sinks::{Error, Stream, StreamSink, waiting_stream};
use cloakroom_testkit::TestVault;
use tokio::net::TcpListener;

use super::note;
use super::sinks::{OK, Received, UNAVAILABLE, start, wait_for, write_checkpoint};

fn stream(sink: StreamSink) -> Stream {
    Stream::new(sink, cloakroom::ids::new_uuid())
}

fn verify(path: &Path, key: [u8; 32]) -> VerificationReport {
    let file = File::open(path).unwrap();
    let records = read_received(&file).unwrap();
    verify_export(records, vec![key.into()], ALL_DAYS, None, |_| {}).unwrap()
}

fn public_key(vault: &TestVault) -> [u8; 32] {
    vault.vault.keys.audit_authority().public_key()
}

/// The entries in the database.
async fn count_entries(vault: &TestVault) -> u64 {
    let verified = audit::verify(&vault.vault.audit, None, |_| {}).await;
    let verified = verified.unwrap();
    assert_eq!(verified.findings, []);
    verified.records
}

/// A node is killed with entries that no checkpoint states, the streaming process loses its memory, a line is cut off, and
/// the position is older than the file.
#[tokio::test]
async fn a_file_receives_every_entry_and_verifies_after_crashes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("entries.jsonl");
    let position = folder.path().join("entries.jsonl.position");
    let vault = TestVault::start().await;
    let node = vault
        .node_with(|config| config.audit.stream_file = Some(path.clone()))
        .await;
    let killed = vault.node_with(|_| {}).await;
    let client = vault.revealing_client().await.at(&node.base_url);
    let mut streamed = 0;
    for round in 1..=4 {
        write_checkpoint(&node, &client, &round.to_string()).await;
        let client = client.at(&killed.base_url);
        client.post("/tokens", note(&format!("k{round}"))).await;
        streamed += stream(StreamSink::File)
            .send_all(&node.vault)
            .await
            .unwrap();
        if round == 2 {
            let mut file = File::options().append(true).open(&path).unwrap();
            file.write_all(b"{\"entry\":[5,17").unwrap();
            std::fs::write(&position, "1\n").unwrap();
        }
    }
    assert!(streamed > 8, "{streamed}");
    write_checkpoint(&node, &client, "last").await;
    let sent = stream(StreamSink::File).send_all(&node.vault).await;
    sent.unwrap();

    // Entries of the other node arrived although no checkpoint states them yet.
    let received = verify(&path, public_key(&vault));
    assert_eq!(received.findings, []);
    assert_eq!(received.records, count_entries(&vault).await);
    killed.vault.audit.checkpoint().await.unwrap();
    let sent = stream(StreamSink::File).send_all(&node.vault).await;
    sent.unwrap();
    let waiting = waiting_stream(&node.vault, StreamSink::File).await;
    assert_eq!(waiting.unwrap(), 0);

    let received = verify(&path, public_key(&vault));
    assert_eq!(received.findings, []);
    assert_eq!(received.records, count_entries(&vault).await);
    assert_every_line_matters(&path, public_key(&vault));
    let other = TestVault::start().await;
    let found = verify(&path, public_key(&other)).findings;
    assert!(matches!(found[0], Finding::AlteredCheckpoint { .. }));
}

/// Removes each line of the file in turn, with its repetitions.
fn assert_every_line_matters(path: &Path, key: [u8; 32]) {
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.last().unwrap();
    let shortened = path.with_extension("shortened");
    let mut removed = std::collections::BTreeSet::new();
    for line in &lines {
        let is_record = line.ends_with("]}");
        if line == last || !is_record || !removed.insert(*line) {
            continue;
        }
        let rest: Vec<&str> = lines.iter().copied().filter(|it| it != line).collect();
        std::fs::write(&shortened, rest.join("\n") + "\n").unwrap();
        assert_ne!(verify(&shortened, key).findings, [], "{line}");
    }
    let kinds = ["{\"entry\"", "{\"key\"", "{\"checkpoint\""];
    for kind in kinds {
        assert!(removed.iter().any(|line| line.starts_with(kind)), "{kind}");
    }
}

/// Reads without sensitive data are queued with the time of their request, and can be written much later.
#[tokio::test]
async fn an_entry_that_is_committed_hours_after_its_time_is_streamed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("entries.jsonl");
    let vault = TestVault::start().await;
    let node = vault
        .node_with(|config| config.audit.stream_file = Some(path.clone()))
        .await;
    let client = vault.revealing_client().await.at(&node.base_url);
    let stream = stream(StreamSink::File);
    write_checkpoint(&node, &client, "a").await;
    stream.send_all(&node.vault).await.unwrap();

    let now = node.vault.clock.now().await.unwrap();
    let mut entry = Entry::by_system(1, Operation::Read, EntityKind::Token, "late");
    entry.set_time(now - jiff::SignedDuration::from_hours(6));
    node.vault.audit.record(vec![entry]).await.unwrap();
    write_checkpoint(&node, &client, "b").await;
    stream.send_all(&node.vault).await.unwrap();

    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.matches("\"late\"").count(), 1);
    let received = verify(&path, public_key(&vault));
    assert_eq!(received.findings, []);
    assert_eq!(received.records, count_entries(&vault).await);
}

/// The lines of JSON in everything that a server received.
fn received_lines(received: &Received, folder: &Path) -> std::path::PathBuf {
    let path = folder.join("received.jsonl");
    let texts = received.lock().unwrap().concat();
    let lines = texts.lines().filter(|line| line.starts_with('{'));
    std::fs::write(&path, lines.collect::<Vec<_>>().join("\n") + "\n").unwrap();
    path
}

#[tokio::test]
async fn an_endpoint_receives_every_entry_after_an_outage() {
    let folder = tempfile::tempdir().unwrap();
    let (reply, received) = (Arc::new(Mutex::new(UNAVAILABLE)), Received::default());
    let port = start(folder.path(), reply.clone(), received.clone()).await;
    let vault = TestVault::start().await;
    let node = vault
        .node_with(|config| {
            let url = format!("https://localhost:{port}/entries?key=secret");
            config.audit.stream_url = Some(Secret::new(url));
            config.audit.sink_ca_file = Some(folder.path().join("ca.pem"));
        })
        .await;
    let client = vault.revealing_client().await.at(&node.base_url);
    let (one, other) = (stream(StreamSink::Url), stream(StreamSink::Url));
    write_checkpoint(&node, &client, "a").await;

    let rejected = one.send_all(&node.vault).await;
    assert!(matches!(rejected, Err(Error::Status(503))), "{rejected:?}");
    assert_eq!(one.waiting(&node.vault).await.unwrap(), 1);
    wait_for(&received, 1).await;
    received.lock().unwrap().clear();
    *reply.lock().unwrap() = OK;
    write_checkpoint(&node, &client, "b").await;
    // Another node does not send at the same time.
    assert_eq!(other.send_all(&node.vault).await.unwrap(), 0);
    one.send_all(&node.vault).await.unwrap();
    let sent_again = one.send_all(&node.vault).await.unwrap();

    assert_eq!(sent_again, 0);
    assert_eq!(one.waiting(&node.vault).await.unwrap(), 0);
    let requests = wait_for(&received, 1).await.concat();
    let start = "POST /entries?key=secret HTTP/1.1\r\n";
    assert!(requests.starts_with(start), "{requests}");
    assert!(requests.contains("content-type: application/x-ndjson\r\n"));
    let verified = verify(
        &received_lines(&received, folder.path()),
        public_key(&vault),
    );
    assert_eq!(verified.findings, []);
    assert_eq!(verified.records, count_entries(&vault).await);
}

#[tokio::test]
async fn messages_of_a_syslog_server_verify_with_their_prefix() {
    let folder = tempfile::tempdir().unwrap();
    let received = Received::default();
    let port = start(folder.path(), Arc::new(Mutex::new("")), received.clone()).await;
    let vault = TestVault::start().await;
    let node = vault
        .node_with(|config| {
            config.audit.stream_syslog = Some(format!("localhost:{port}"));
            config.audit.sink_ca_file = Some(folder.path().join("ca.pem"));
        })
        .await;
    let client = vault.revealing_client().await.at(&node.base_url);
    write_checkpoint(&node, &client, "a").await;
    let syslog = stream(StreamSink::Syslog);

    syslog.send_all(&node.vault).await.unwrap();

    let text = wait_for(&received, 1).await.concat();
    let mut rest = text.as_str();
    let mut lines = String::new();
    while let Some((length, following)) = rest.split_once(' ') {
        let (message, following) = following.split_at(length.parse().unwrap());
        assert!(
            message.contains(" cloakroom - audit-entry - {"),
            "{message}"
        );
        lines.push_str(message);
        lines.push('\n');
        rest = following;
    }
    let path = folder.path().join("syslog");
    std::fs::write(&path, lines).unwrap();
    let verified = verify(&path, public_key(&vault));
    assert_eq!(verified.findings, []);
    assert_eq!(verified.records, count_entries(&vault).await);
}

/// The server accepts connections and then is silent.
#[tokio::test]
async fn a_sink_that_does_not_respond_delays_no_request() {
    let folder = tempfile::tempdir().unwrap();
    let received = Received::default();
    start(folder.path(), Arc::new(Mutex::new("")), received).await;
    let silent = TcpListener::bind("localhost:0").await.unwrap();
    let port = silent.local_addr().unwrap().port();
    let vault = TestVault::start().await;
    let node = vault
        .node_with(|config| {
            let url = format!("https://localhost:{port}/");
            config.audit.stream_url = Some(Secret::new(url));
            config.audit.sink_ca_file = Some(folder.path().join("ca.pem"));
        })
        .await;
    let client = vault.revealing_client().await.at(&node.base_url);
    write_checkpoint(&node, &client, "a").await;
    let stream = stream(StreamSink::Url);

    let sending = async {
        let sent = stream.send_all(&node.vault).await;
        assert!(matches!(sent, Err(Error::Timeout)), "{sent:?}");
        std::future::pending::<()>().await;
    };
    let requests = async {
        let _connection = silent.accept().await.unwrap();
        for index in 0..5 {
            let created = client.post("/tokens", note(&index.to_string())).await;
            assert_eq!(created.status, 201);
        }
        node.vault.audit.checkpoint().await.unwrap();
        assert_eq!(stream.waiting(&node.vault).await.unwrap(), 2);
    };
    tokio::select! {
        () = sending => {}
        () = requests => {}
    }
}
