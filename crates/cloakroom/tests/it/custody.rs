//! Outages of the key provider: what a running node does without it.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use axum::{Json, Router, routing::post};
use cloakroom::config::{Config, Provider};
use cloakroom_testkit::{Client, TestDatabase, TestVault};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// A provider that speaks the protocol of Transit; its cryptography is tested elsewhere.
struct TestProvider {
    url: String,
    folder: tempfile::TempDir,
    shared: Arc<Shared>,
    _server: JoinSet<()>,
}

struct Shared {
    mode: watch::Sender<Mode>,
    decryptions: AtomicUsize,
    /// Ciphertexts are numbers of plaintexts here.
    plaintexts: Mutex<Vec<Value>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Up,
    /// Every request waits until the mode changes.
    Stalled,
    Sealed,
    KeyDeleted,
}

impl TestProvider {
    async fn start() -> Self {
        let shared = Arc::new(Shared {
            mode: watch::Sender::new(Mode::Up),
            decryptions: AtomicUsize::new(0),
            plaintexts: Mutex::default(),
        });
        let folder = tempfile::tempdir().unwrap();
        let token = folder.path().join("token");
        std::fs::write(&token, "hvs.test").unwrap();
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o400)).unwrap();
        #[expect(
            clippy::disallowed_methods,
            reason = "a server of another company, not a documented route"
        )]
        let router = Router::new()
            .route("/v1/transit/{operation}/root", post(answer))
            .with_state(shared.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut server = JoinSet::new();
        server.spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            url,
            folder,
            shared,
            _server: server,
        }
    }

    fn configure(&self, config: &mut Config, cache_ttl: Duration, grace: Duration) {
        config.root_key.provider = Provider::Transit;
        config.root_key.transit_url = Some(self.url.clone());
        config.root_key.transit_key = Some("root".into());
        config.root_key.transit_token_file = Some(self.folder.path().join("token"));
        config.root_key.cache_ttl = cache_ttl;
        config.root_key.grace = grace;
    }

    fn set(&self, mode: Mode) {
        self.shared.mode.send_replace(mode);
    }

    /// Number of requests to unwrap so far.
    fn decryptions(&self) -> usize {
        self.shared.decryptions.load(Ordering::Relaxed)
    }
}

async fn answer(
    State(shared): State<Arc<Shared>>,
    Path(operation): Path<String>,
    Json(body): Json<Value>,
) -> Response {
    if operation == "decrypt" {
        shared.decryptions.fetch_add(1, Ordering::Relaxed);
    }
    let mut modes = shared.mode.subscribe();
    let mode = *modes.wait_for(|mode| *mode != Mode::Stalled).await.unwrap();
    let error = |status, text: &str| (status, Json(json!({"errors": [text]}))).into_response();
    match mode {
        Mode::Sealed => return error(StatusCode::SERVICE_UNAVAILABLE, "Vault is sealed"),
        Mode::KeyDeleted => return error(StatusCode::BAD_REQUEST, "encryption key not found"),
        Mode::Up | Mode::Stalled => {}
    }
    let mut plaintexts = shared.plaintexts.lock().unwrap();
    let data = match operation.as_str() {
        "encrypt" => {
            plaintexts.push(body["plaintext"].clone());
            json!({"ciphertext": format!("vault:v1:{}", plaintexts.len() - 1)})
        }
        _ => {
            let number = body["ciphertext"].as_str().unwrap().rsplit(':').next();
            let number: usize = number.unwrap().parse().unwrap();
            json!({"plaintext": plaintexts[number]})
        }
    };
    Json(json!({"data": data})).into_response()
}

async fn start(cache_ttl: Duration, grace: Duration) -> (TestProvider, TestVault) {
    let provider = TestProvider::start().await;
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        provider.configure(config, cache_ttl, grace);
    })
    .await;
    (provider, vault)
}

async fn create_token(client: &Client) -> String {
    let created = client
        .post("/tokens", json!({"type": "token", "data": "secret"}))
        .await;
    format!("/tokens/{}", created.id())
}

#[tokio::test]
async fn a_running_node_serves_during_an_outage_of_the_key_provider() {
    let ttl = Duration::from_secs(1);
    let (provider, vault) = start(ttl, Duration::from_secs(600)).await;
    let (client, other_tenant) = (
        vault.revealing_client().await,
        vault.revealing_client().await,
    );
    let path = create_token(&client).await;

    provider.set(Mode::Stalled);
    tokio::time::sleep(ttl).await;
    let before = provider.decryptions();
    for _ in 0..50 {
        let read = client.get(&path).await;
        assert_eq!(read.body["data"], "secret", "{}", read.body);
    }
    let attempts = provider.decryptions() - before;
    // The keys of this tenant are not cached.
    let uncached = other_tenant.get(&path).await;
    let uncached = match uncached.status {
        // Not found without keys; creating needs them.
        StatusCode::NOT_FOUND => {
            let new = json!({"type": "token", "data": "secret"});
            other_tenant.post("/tokens", new).await
        }
        _ => uncached,
    };
    provider.set(Mode::Up);
    let deadline = Instant::now() + Duration::from_secs(60);
    let recovered = loop {
        let created = other_tenant
            .post("/tokens", json!({"type": "token", "data": "secret"}))
            .await;
        if created.status == StatusCode::CREATED || deadline < Instant::now() {
            break created.status;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };

    // One attempt per second, not one per request.
    assert!((1..=20).contains(&attempts), "{attempts}");
    assert_eq!(uncached.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(uncached.body["code"], "key_provider_unavailable");
    assert_eq!(recovered, StatusCode::CREATED);
}

/// An idle tenant is no outage, and the end of one is noticed although no request needs its keys.
#[tokio::test]
async fn an_outage_lasts_until_the_provider_responds_and_is_measured_only_then() {
    let ttl = Duration::from_secs(1);
    let (provider, vault) = start(ttl, Duration::from_secs(600)).await;
    let client = vault.revealing_client().await;
    let path = create_token(&client).await;
    let keys = &vault.vault.keys;
    let measure = || [keys.oldest_failing_age(), keys.root().unavailable_for()];

    tokio::time::sleep(2 * ttl).await;
    let idle = measure();
    provider.set(Mode::Sealed);
    assert_eq!(client.get(&path).await.status, StatusCode::OK);
    keys.probe_provider().await;
    let during = measure();
    provider.set(Mode::Up);
    keys.probe_provider().await;
    let after = measure();

    assert_eq!(idle, [Duration::ZERO; 2]);
    assert!(2 * ttl <= during[0], "{during:?}");
    assert!(!during[1].is_zero(), "{during:?}");
    assert_eq!(after, [Duration::ZERO; 2]);
}

#[tokio::test]
async fn cached_keys_are_not_used_beyond_grace_or_after_the_root_key_is_disabled() {
    let second = Duration::from_secs(1);
    for (mode, grace, wait) in [
        (Mode::Sealed, 3 * second, 3 * second),
        (Mode::KeyDeleted, 600 * second, 2 * second),
    ] {
        let (provider, vault) = start(second, grace).await;
        let client = vault.revealing_client().await;
        let path = create_token(&client).await;

        provider.set(mode);
        tokio::time::sleep(wait).await;
        let read = client.get(&path).await;

        assert_eq!(read.status, StatusCode::SERVICE_UNAVAILABLE, "{mode:?}");
        assert_eq!(read.body["code"], "key_provider_unavailable", "{mode:?}");
    }
}

/// An agent that renews the token may replace its file in several steps.
#[tokio::test]
async fn a_missing_credential_file_is_an_outage() {
    let second = Duration::from_secs(1);
    let (provider, vault) = start(second, 600 * second).await;
    let client = vault.revealing_client().await;
    let path = create_token(&client).await;

    std::fs::remove_file(provider.folder.path().join("token")).unwrap();
    tokio::time::sleep(2 * second).await;
    let before = provider.decryptions();
    let read = client.get(&path).await;

    assert_eq!(read.status, StatusCode::OK, "{}", read.body);
    assert_eq!(provider.decryptions(), before);
}

#[tokio::test]
async fn keys_are_refreshed_in_the_background_before_they_expire() {
    let provider = TestProvider::start().await;
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        let minute = Duration::from_secs(60);
        provider.configure(config, Duration::from_secs(12), minute);
        config.root_key.deadline = minute;
    })
    .await;
    let client = vault.revealing_client().await;
    let path = create_token(&client).await;
    let before = provider.decryptions();
    let read = async || client.get(&path).await.status;

    provider.set(Mode::Stalled);
    // A request that waits for the provider does not return, and the test fails.
    let refreshed = tokio::time::timeout(Duration::from_secs(40), async {
        while provider.decryptions() == before {
            assert_eq!(read().await, StatusCode::OK);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        read().await
    });
    let refreshed = refreshed.await;
    provider.set(Mode::Up);

    assert_eq!(refreshed.ok(), Some(StatusCode::OK));
    assert_eq!(read().await, StatusCode::OK);
}

/// The key that signs the audit log changes at midnight, and a key provider certifies it.
#[tokio::test]
async fn an_outage_of_the_provider_over_midnight_does_not_stop_the_log() {
    const HOUR: i64 = 60 * 60;
    let (provider, vault) = start(Duration::from_secs(600), Duration::from_secs(600)).await;
    let now = vault.vault.clock.now().await.unwrap().as_second();
    // The clock only moves forward, whatever the time is.
    let start_of_day = 24 * HOUR - now.rem_euclid(24 * HOUR);
    let set_hour = |hour: i64| vault.vault.clock.set_offset(start_of_day + hour * HOUR);
    let newest = "select count(*), max(day) from log_key
        where day = (select max(day) from log_key)";
    let newest_keys = async || -> (i64, i32) {
        let database = vault.database.connect().await;
        let row = database.query_one(newest, &[]).await.unwrap();
        (row.get(0), row.get(1))
    };

    set_hour(11);
    let client = vault.revealing_client().await;
    let path = create_token(&client).await;
    vault.vault.audit.prepare_next_key().await.unwrap();
    let (_, today) = newest_keys().await;
    set_hour(13);
    provider.set(Mode::Sealed);
    let failed = vault.vault.audit.prepare_next_key().await;
    let read_meanwhile = client.get(&path).await;
    provider.set(Mode::Up);
    let deadline = Instant::now() + Duration::from_secs(60);
    while vault.vault.audit.prepare_next_key().await.is_err() && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    vault.vault.audit.prepare_next_key().await.unwrap();
    let prepared = newest_keys().await;
    provider.set(Mode::Sealed);
    set_hour(25);
    let read = client.get(&path).await;
    vault.vault.audit.checkpoint().await.unwrap();

    let first_day = now.div_euclid(24 * HOUR);
    assert_eq!(i64::from(today), first_day + 1, "not before noon");
    assert!(failed.is_err());
    assert_eq!(read_meanwhile.status, StatusCode::OK);
    // Certified once, and used.
    assert_eq!(prepared, (1, today + 1));
    assert_eq!(read.status, StatusCode::OK, "{}", read.body);
    assert_eq!(newest_keys().await, prepared);
    let verified = cloakroom::audit::verify(&vault.vault.audit, None, |_| {}).await;
    assert_eq!(verified.unwrap().findings, []);
}
