//! A shop with simulated card networks, and a cardholder with a browser.

use std::time::Duration;

use cloakroom::access::{ApplicationKind, Permission, Tenant};
use cloakroom::config::Config;
use cloakroom::threeds::networks;
use cloakroom_testkit::{Client, TestDatabase, TestResponse, TestVault, grants, passes_luhn};
use cloakroom_threeds_simulator::{Options, Simulator};
use http::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::form::{Form, encode_message};
use super::networks::{any_port, free_address, listen_for_results, networks, vendor};
use super::requests::browser;
use super::tls_client::TlsClient;

const JSON: &str = "application/json; charset=utf-8";
/// The only host that hosted pages may redirect browsers to.
pub(super) const CALLBACK_HOST: &str = "shop.example";

/// A vault, its tenant, and the card networks that it calls.
pub(super) struct Checkout {
    pub(super) vault: TestVault,
    pub(super) simulator: Option<Simulator>,
    pub(super) tenant: Tenant,
    /// Server of the merchant, with a private key.
    pub(super) merchant: Client,
    /// Page of the shop, with a public key.
    pub(super) page: Client,
    acs_url: String,
    browser: TlsClient,
    network: TlsClient,
    results_url: String,
    results: JoinHandle<()>,
    _folder: TempDir,
}

/// Settings that differ between tests.
#[derive(Default)]
pub(super) struct CheckoutOptions {
    /// Names that the certificates of result senders must have.
    pub(super) senders: &'static [&'static str],
    pub(super) versions: Option<&'static str>,
    pub(super) answer_timeout: Option<Duration>,
    /// Time a simulated cardholder takes for a decoupled authentication.
    pub(super) decoupled_delay: Option<Duration>,
    pub(super) max_connections: Option<usize>,
    /// Whether to use a vendor instead of directory servers.
    pub(super) use_vendor: bool,
    /// Number of issuer declines after which a public key is blocked at its address.
    pub(super) refusal_limit: Option<usize>,
    pub(super) public_hosted_sessions: bool,
}

impl CheckoutOptions {
    fn apply(&self, settings: &mut cloakroom::config::Threeds) {
        if let Some(versions) = self.versions {
            settings.versions = parse_versions(versions);
        }
        if let Some(timeout) = self.answer_timeout {
            settings.answer_timeout = timeout;
        }
        // Running all test cards collects more declines than a shopper does.
        settings.refusal_limit = self.refusal_limit.unwrap_or(1_000);
        settings.public_hosted_sessions = self.public_hosted_sessions;
    }
}

impl Checkout {
    pub(super) async fn start() -> Self {
        Self::start_with(CheckoutOptions::default()).await
    }

    pub(super) async fn start_with(options: CheckoutOptions) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let simulator = Simulator::start(Options {
            listen: any_port(),
            acs_listen: any_port(),
            acs_plain: false,
            folder: folder.path().join("certificates"),
            decoupled_delay: options
                .decoupled_delay
                .unwrap_or(Duration::from_millis(100)),
            creq_timeout: Duration::from_secs(30),
        });
        let simulator = simulator.await.unwrap();
        let networks_file = folder.path().join("networks.toml");
        let networks = match options.use_vendor {
            true => vendor(&simulator, folder.path()),
            false => networks(&simulator, options.senders),
        };
        std::fs::write(&networks_file, networks).unwrap();
        let certificates = simulator.certificates();
        let browser = TlsClient::new(&certificates.ca(), None);
        let certificate = certificates.directory_certificate();
        let key = certificates.directory_key();
        let network = TlsClient::new(&certificates.ca(), Some((&certificate, &key)));
        let results = free_address();
        let change = |config: &mut Config| {
            config.http.listen = free_address();
            let base_url = format!("http://{}", config.http.listen);
            config.http.base_url = Some(base_url.parse().unwrap());
            config.quotas.threeds = true;
            // Many concurrent sessions are slow on a busy machine.
            let minute = Duration::from_secs(60);
            config.database.acquire_timeout = minute;
            config.database.read_deadline = minute;
            config.database.write_deadline = minute;
            let settings = &mut config.threeds;
            settings.networks_file = Some(networks_file);
            if !options.use_vendor {
                settings.results_listen = Some(results);
                settings.results_url = Some(format!("https://{results}").parse().unwrap());
                settings.results_cert_file = Some(certificates.server_certificate());
                settings.results_key_file = Some(certificates.server_key());
            }
            options.apply(settings);
            if let Some(max_connections) = options.max_connections {
                config.database.max_connections = max_connections;
            }
        };
        let vault = TestVault::start_with(TestDatabase::create().await, change).await;
        let listener_task = listen_for_results(&vault).await;
        let refreshed =
            networks::refresh_all_ranges(&vault.vault, &vault.vault.card_networks).await;
        refreshed.unwrap();
        let tenant = vault
            .tenant_with(&[("threeds_callback_hosts", CALLBACK_HOST)])
            .await;
        Self {
            merchant: merchant(&vault, &tenant).await,
            page: page(&vault, &tenant).await,
            acs_url: simulator.acs_url(),
            simulator: Some(simulator),
            vault,
            tenant,
            browser,
            network,
            results_url: format!("https://{results}/3ds/rreq"),
            results: listener_task,
            _folder: folder,
        }
    }

    /// Creates a token with this card.
    pub(super) async fn create_token(&self, number: &str) -> String {
        let data = json!({"number": number, "expiration_month": 12, "expiration_year": 2030});
        let new = json!({"type": "card", "data": data});
        let created = self.merchant.post("/tokens", new).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        created.id()
    }

    /// Requests a customer session in a browser, with the key of the page.
    pub(super) async fn request_session(&self, number: &str) -> TestResponse {
        let token = self.create_token(number).await;
        let new = json!({"token_id": token, "device": "browser", "device_info": browser()});
        self.page.post("/3ds/sessions", new).await
    }

    /// The same, and asserts that it succeeds.
    pub(super) async fn create_session(&self, number: &str) -> Value {
        let created = self.request_session(number).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        created.body
    }

    /// Creates a merchant-initiated session.
    pub(super) async fn create_merchant_session(&self, number: &str) -> String {
        let new = json!({"token_id": self.create_token(number).await, "type": "merchant"});
        let created = self.merchant.post("/3ds/sessions", new).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        created.id()
    }

    pub(super) async fn authenticate(&self, id: &str, request: Value) -> TestResponse {
        let path = format!("/3ds/sessions/{id}/authenticate");
        self.merchant.post(&path, request).await
    }

    pub(super) async fn read(&self, id: &str) -> TestResponse {
        self.merchant.get(&format!("/3ds/sessions/{id}")).await
    }

    pub(super) async fn result(&self, id: &str) -> TestResponse {
        let path = format!("/3ds/sessions/{id}/challenge-result");
        self.merchant.get(&path).await
    }

    /// Creates a session and authenticates it. Returns the authentication.
    pub(super) async fn create_and_authenticate(&self, number: &str, request: Value) -> Value {
        let session = self.create_session(number).await;
        let response = self.authenticate(id_of(&session), request).await;
        assert_eq!(response.status, StatusCode::OK, "{}", response.body);
        response.body
    }

    /// Runs the 3DS Method of the issuer. Returns false if its page does not return to the vault.
    pub(super) async fn run_method(&self, session: &Value) -> bool {
        let data = json!({
            "threeDSServerTransID": session["id"],
            "threeDSMethodNotificationURL": session["method_notification_url"],
        });
        let data = [("threeDSMethodData".to_owned(), encode_message(&data))];
        let url = session["method_url"].as_str().unwrap();
        let (_, html) = self.submit(url, &data).await;
        let Some(form) = Form::of(&html) else {
            return false;
        };
        let (status, html) = self.submit(&form.action, &form.fields).await;
        assert_eq!(status, StatusCode::OK, "{html}");
        assert!(html.contains("\"type\":\"method\""), "{html}");
        true
    }

    /// Opens the challenge of an authentication and returns its page.
    pub(super) async fn open_challenge(&self, authentication: &Value) -> String {
        let request = json!({
            "messageType": "CReq",
            "messageVersion": authentication["threeds_version"],
            "threeDSServerTransID": authentication["session_id"],
            "acsTransID": authentication["acs_transaction_id"],
            "challengeWindowSize": "03",
        });
        let url = authentication["acs_challenge_url"].as_str().unwrap();
        let fields = [("creq".to_owned(), encode_message(&request))];
        let (status, html) = self.submit(url, &fields).await;
        assert_eq!(status, StatusCode::OK, "{html}");
        html
    }

    /// Completes the challenge and returns the form that leads back to the vault.
    pub(super) async fn complete_challenge(&self, html: String) -> Option<Form> {
        let form = Form::of(&html)?;
        if form.field("cres").is_some() {
            return Some(form);
        }
        let form = match html.contains("value=\"approve\"") {
            true => form.with("action", "approve"),
            false => form.with("action", "submit").with("code", "1234"),
        };
        let url = format!("{}{}", self.acs_url, form.action);
        let (_, html) = self.submit(&url, &form.fields).await;
        Form::of(&html)
    }

    /// Submits a form like a browser does.
    pub(super) async fn submit(
        &self,
        url: &str,
        fields: &[(String, String)],
    ) -> (StatusCode, String) {
        let body = serde_urlencoded::to_string(fields).unwrap();
        let media = "application/x-www-form-urlencoded";
        self.browser.post(url, media, body).await.unwrap()
    }

    /// The transaction of a session as the simulator recorded it.
    pub(super) async fn transaction(&self, id: &str) -> Value {
        let url = format!("{}/control/transactions/{id}", self.acs_url);
        let (_, text) = self.browser.get(&url).await.unwrap();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Number of messages of a kind that the simulator received.
    pub(super) async fn received_count(&self, kind: &str) -> u64 {
        let url = format!("{}/control/messages", self.acs_url);
        let (_, text) = self.browser.get(&url).await.unwrap();
        let counts: Value = serde_json::from_str(&text).unwrap();
        counts["received"][kind].as_u64().unwrap_or_default()
    }

    /// Sends a control request to the simulator.
    pub(super) async fn control(&self, path: &str, body: Value) -> Value {
        let url = format!("{}{path}", self.acs_url);
        let request = body.to_string();
        let (status, text) = self.browser.post(&url, JSON, request).await.unwrap();
        assert!(status.is_success(), "{path}: {body}: {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Makes the simulator send a result again with modified fields, and returns the reply.
    pub(super) async fn send_result(&self, id: &str, change: Value) -> Value {
        let path = format!("/control/transactions/{id}/result");
        self.control(&path, json!({"change": change})).await
    }

    /// Posts a results request with the certificate of the network, and returns the reply.
    pub(super) async fn post_result(&self, message: &Value) -> Value {
        let reply = self
            .network
            .post(&self.results_url, JSON, message.to_string());
        let (status, text) = reply.await.unwrap();
        assert_eq!(status, StatusCode::OK);
        serde_json::from_str(&text).unwrap()
    }

    /// The same without a client certificate.
    pub(super) async fn post_result_without_certificate(
        &self,
        message: &Value,
    ) -> Option<StatusCode> {
        let reply = self
            .browser
            .post(&self.results_url, JSON, message.to_string());
        reply.await.map(|(status, _)| status)
    }

    /// `operation outcome` of all log entries of a session, oldest first.
    pub(super) async fn log_entries(&self, id: &str) -> Vec<String> {
        self.log_entries_at(&self.vault.base_url, id).await
    }

    /// The same, read from another node.
    pub(super) async fn log_entries_at(&self, node: &str, id: &str) -> Vec<String> {
        let reads = grants(&[Permission::LogRead]);
        let kind = ApplicationKind::Management;
        let holder = self.vault.holder(&self.tenant, kind, reads).await;
        let client = self.vault.client_with(Some(&holder.key)).at(node);
        let listed = client.get(&format!("/logs?entity_id={id}")).await;
        let word = |record: &Value, name: &str| record[name].as_str().unwrap_or("-").to_owned();
        let words =
            |record: &Value| format!("{} {}", word(record, "operation"), word(record, "outcome"));
        listed.items().iter().rev().map(words).collect()
    }
}

impl Drop for Checkout {
    fn drop(&mut self) {
        self.results.abort();
    }
}

pub(super) fn id_of(session: &Value) -> &str {
    session["id"].as_str().unwrap()
}

/// A card number that passes the Luhn check and whose last four digits select the scenario.
pub(super) fn card_number(tail: &str) -> String {
    let mut numbers = (0..10).map(|free| format!("90001000000{free}{tail}"));
    numbers.find(|number| passes_luhn(number)).unwrap()
}

pub(super) fn parse_versions(text: &str) -> cloakroom::config::Versions {
    let versions = text.split(',').map(|one| one.parse().unwrap());
    cloakroom::config::Versions::new(versions.collect())
}

/// A client that stores cards and authenticates them.
pub(super) async fn merchant(vault: &TestVault, tenant: &Tenant) -> Client {
    let permissions = grants(&[
        Permission::TokenCreate,
        Permission::TokenDelete,
        Permission::TokenIntentCreate,
        Permission::ThreedsSessionCreate,
        Permission::ThreedsSessionRead,
        Permission::ThreedsSessionAuthenticate,
    ]);
    vault.client(tenant, permissions).await
}

pub(super) async fn page(vault: &TestVault, tenant: &Tenant) -> Client {
    let permissions = grants(&[Permission::ThreedsSessionCreate]);
    let holder = vault
        .holder(tenant, ApplicationKind::Public, permissions)
        .await;
    vault.client_with(Some(&holder.key))
}
