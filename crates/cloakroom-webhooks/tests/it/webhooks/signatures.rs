//! Signatures, verified by the samples of the guide: other implementations of RSA-PSS and HMAC.

use std::io::Write as _;
use std::process::{Command, Stdio};

use cloakroom::access::{ApplicationKind, Transform};
use cloakroom::webhooks::signatures;
use cloakroom_testkit::{everything, grants};
use http::StatusCode;
use serde_json::json;

use super::endpoint::Received;
use super::{Fixture, MANAGEMENT};

const GUIDE: &str = include_str!("../../../../../docs/guides/webhooks.md");
const KEYS: &str = "/keys/webhooks.v1.key";

/// The code block of the guide that starts with this line.
fn sample(fence: &str) -> String {
    let (_, rest) = GUIDE.split_once(&format!("```{fence}\n")).unwrap();
    rest.split_once("\n```").unwrap().0.to_owned()
}

/// Runs a program with this input; returns what it prints.
fn run(program: &str, arguments: &[&str], input: &str) -> String {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {errors}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Verifies `BT-SIGNATURE` with the Node sample; returns the id of the event, or the error.
fn verify_with_node(received: &Received, keys: &str, webhook: &str) -> String {
    let program = format!(
        "{}\nimport {{ readFileSync }} from \"node:fs\";
        const {{ headers, body, keys, webhook }} = JSON.parse(readFileSync(0, \"utf8\"));
        try {{ console.log(readEvent(headers, Buffer.from(body), keys, webhook).id); }}
        catch (error) {{ console.log(error.message); }}",
        sample("js").replace("export ", "")
    );
    let headers = json!({"bt-signature": received.header("bt-signature")});
    let body = String::from_utf8(received.bytes.clone()).unwrap();
    let input = json!({"headers": headers, "body": body, "keys": keys, "webhook": webhook});
    let input = input.to_string();
    run("node", &["--input-type=module", "--eval", &program], &input)
}

/// Verifies `webhook-signature` with the Python sample; returns the id of the event, or the error.
fn verify_with_python(received: &Received, secret: &str) -> String {
    let program = format!(
        "{}\n
import sys
given = json.load(sys.stdin)
try:
    print(read_event(given['headers'], given['body'].encode(), given['secret'])['id'])
except ValueError as error:
    print(error)",
        sample("python")
    );
    let header = |name: &str| received.header(name).to_owned();
    let headers = json!({
        "webhook-id": header("webhook-id"),
        "webhook-timestamp": header("webhook-timestamp"),
        "webhook-signature": header("webhook-signature"),
    });
    let body = String::from_utf8(received.bytes.clone()).unwrap();
    let input = json!({"headers": headers, "body": body, "secret": secret}).to_string();
    run("python3", &["-c", &program], &input)
}

#[tokio::test]
async fn the_samples_of_the_guide_verify_deliveries() {
    let mut fixture = Fixture::start().await;
    let anyone = fixture.vault.client_with(None);
    assert_eq!(anyone.get(KEYS).await.status, StatusCode::NOT_FOUND);
    let created = fixture
        .manager
        .post("/webhooks", fixture.webhook(&["token.created"]))
        .await;
    let secret = created.body["secret"].as_str().unwrap();
    let webhook = created.id();
    fixture.deliver();

    let token = json!({"type": "token", "data": "a", "metadata": {"\u{ff01}": "ü\"\\", "\u{1f600}": "\u{2028}\u{7f}"}});
    fixture.client.post("/tokens", token).await;
    let received = fixture.endpoint.wait_for(1).await.remove(0);
    let keys = anyone.get(KEYS).await;

    assert_eq!(keys.header("content-type"), "application/x-pem-file");
    let keys = String::from_utf8(keys.bytes).unwrap();
    let id = received.event()["id"].as_str().unwrap();
    assert_eq!(received.header("bt-signature-version"), "v1");
    assert_eq!(verify_with_node(&received, &keys, &webhook), id);
    assert_eq!(verify_with_python(&received, secret), id);

    // An event that another tenant received is signed with the same key, for a webhook of that tenant.
    let other = fixture.vault.tenant().await;
    let granted = grants(&MANAGEMENT);
    let manager = fixture
        .vault
        .holder(&other, ApplicationKind::Management, granted);
    let manager = fixture.vault.client_with(Some(&manager.await.key));
    let theirs = manager
        .post("/webhooks", fixture.webhook(&["token.created"]))
        .await;
    let client = fixture
        .vault
        .client(&other, everything(Transform::Reveal))
        .await;
    client
        .post("/tokens", json!({"type": "token", "data": "a"}))
        .await;
    let sent_on = fixture.endpoint.wait_for(2).await.remove(1);
    let id = sent_on.event()["id"].as_str().unwrap();
    assert_eq!(verify_with_node(&sent_on, &keys, &theirs.id()), id);
    let foreign = "the event is of another webhook";
    assert_eq!(verify_with_node(&sent_on, &keys, &webhook), foreign);

    let mut forged = received.clone();
    forged.bytes = String::from_utf8(forged.bytes)
        .unwrap()
        .replace("token.created", "token.deleted")
        .into_bytes();
    assert_eq!(
        verify_with_node(&forged, &keys, &webhook),
        "invalid signature"
    );
    assert_eq!(verify_with_python(&forged, secret), "invalid signature");
    assert_eq!(
        verify_with_python(&received, "whsec_AAAA"),
        "invalid signature"
    );
}

/// `json-stable-stringify` of the parsed body is the body: receivers may verify either.
#[tokio::test]
async fn the_body_is_canonical() {
    let mut fixture = Fixture::start().await;
    fixture.subscribe(&["token.created"]).await;
    fixture.deliver();
    let token = json!({"type": "token", "data": "a", "metadata": {"b": "\u{1f600}\u{0007}", "\u{ff01}": "/", "\u{1f600}": "é", "10": "x", "9": "y"}});
    fixture.client.post("/tokens", token).await;
    let received = fixture.endpoint.wait_for(1).await.remove(0);

    let program = "const stable = (value) => Array.isArray(value) ? `[${value.map(stable).join(',')}]`
        : value && typeof value === 'object'
            ? `{${Object.keys(value).sort().map((key) => `${JSON.stringify(key)}:${stable(value[key])}`).join(',')}}`
            : JSON.stringify(value);
        console.log(stable(JSON.parse(require('fs').readFileSync(0, 'utf8'))));";
    let body = String::from_utf8(received.bytes).unwrap();
    assert_eq!(run("node", &["--eval", program], &body), body);
}

#[tokio::test]
async fn a_rotated_key_signs_and_the_previous_one_stays_published() {
    let mut fixture = Fixture::start().await;
    let webhook = fixture.subscribe(&["token.created"]).await;
    fixture.deliver();
    fixture.create_token().await;
    let first = fixture.endpoint.wait_for(1).await.remove(0);
    let anyone = fixture.vault.client_with(None);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let old_keys = text(anyone.get(KEYS).await.bytes);

    for version in [2, 3] {
        let rotated = signatures::rotate_key(&fixture.vault.vault).await.unwrap();
        assert_eq!(rotated, version);
    }
    // Another node has not cached the keys.
    let node = fixture.vault.second_node().await;
    let new_keys = text(node.client_with(None).get(KEYS).await.bytes);
    fixture.jobs.abort_all();
    fixture
        .jobs
        .spawn(super::delivery_jobs::run(node.vault.webhooks.clone()));
    fixture.create_token().await;
    let second = fixture.endpoint.wait_for(2).await.remove(1);

    assert_eq!(new_keys.matches("BEGIN PUBLIC KEY").count(), 2);
    let newest = new_keys
        .split_inclusive("-----END PUBLIC KEY-----\n")
        .next()
        .unwrap();
    let id = second.event()["id"].as_str().unwrap();
    assert_eq!(verify_with_node(&second, newest, &webhook), id);
    assert_eq!(verify_with_node(&second, &new_keys, &webhook), id);
    assert_eq!(
        verify_with_node(&second, &old_keys, &webhook),
        "invalid signature"
    );
    assert_eq!(
        verify_with_node(&first, &new_keys, &webhook),
        "invalid signature"
    );
}

/// The key pair is the identity of the vault toward every receiver.
#[tokio::test]
async fn created_and_rotated_keys_are_in_the_audit_log() {
    let fixture = Fixture::start().await;
    fixture.subscribe(&["token.created"]).await;
    signatures::rotate_key(&fixture.vault.vault).await.unwrap();

    let connection = fixture.vault.database.connect().await;
    let sql = "select entity_id from log where tenant_id = 0 order by seq";
    let rows = connection.query(sql, &[]).await.unwrap();
    let ids: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(ids, ["signing-key-1", "signing-key-2"]);
}

/// Without a key nothing is sent, and the endpoint is not blamed.
#[tokio::test]
async fn a_lost_key_pauses_deliveries() {
    let mut fixture = Fixture::start().await;
    let webhook = fixture.subscribe(&["token.created"]).await;
    fixture.sql("delete from webhook_signing_key", &[]).await;
    fixture.create_token().await;
    fixture.deliver();

    let logged = fixture
        .wait_for_log(&webhook, |delivery| delivery["last_error"].is_string())
        .await;
    assert_eq!(logged["last_error"], "key_missing");
    assert_eq!(logged["attempts"], 0);
    assert_eq!(fixture.endpoint.count(), 0);
}
