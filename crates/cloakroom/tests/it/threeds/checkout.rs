//! A shop at a vault that asks simulated card networks, and a cardholder with a browser.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use cloakroom::access::{ApplicationKind, Permission, Tenant};
use cloakroom::config::Config;
use cloakroom::server::Server;
use cloakroom::{card_networks, threeds};
use cloakroom_threeds_simulator::{NETWORKS, Options, Simulator, VENDOR_API_KEY};
use http::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::caller::Caller;
use super::page::{Form, wrapped};
use super::requests::browser;
use crate::support::{Answer, Client, TestDatabase, TestVault, grants};

const JSON: &str = "application/json; charset=utf-8";

/// A vault, its tenant and the networks that it asks.
pub(super) struct Checkout {
    pub(super) vault: TestVault,
    pub(super) simulator: Option<Simulator>,
    pub(super) tenant: Tenant,
    /// The merchant's server, with a private key.
    pub(super) merchant: Client,
    /// The shop's page, with a public key.
    pub(super) page: Client,
    acs_url: String,
    browser: Caller,
    network: Caller,
    results_url: String,
    results: JoinHandle<()>,
    _folder: TempDir,
}

/// What differs from test to test.
#[derive(Default)]
pub(super) struct Plan {
    /// Names that certificates which tell results must have.
    pub(super) senders: &'static [&'static str],
    pub(super) versions: Option<&'static str>,
    pub(super) answer_timeout: Option<Duration>,
    /// How long a simulated cardholder takes for a decoupled authentication.
    pub(super) decoupled_delay: Option<Duration>,
    pub(super) max_connections: Option<usize>,
    /// Whether a vendor is asked, and no directory server.
    pub(super) by_vendor: bool,
}

impl Checkout {
    pub(super) async fn start() -> Self {
        Self::start_with(Plan::default()).await
    }

    pub(super) async fn start_with(plan: Plan) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let simulator = Simulator::start(Options {
            listen: any_port(),
            acs_listen: any_port(),
            acs_plain: false,
            folder: folder.path().join("certificates"),
            decoupled_delay: plan.decoupled_delay.unwrap_or(Duration::from_millis(100)),
            creq_timeout: Duration::from_secs(30),
        });
        let simulator = simulator.await.unwrap();
        let networks_file = folder.path().join("networks.toml");
        let networks = match plan.by_vendor {
            true => vendor(&simulator, folder.path()),
            false => networks(&simulator, plan.senders),
        };
        std::fs::write(&networks_file, networks).unwrap();
        let certificates = simulator.certificates();
        let browser = Caller::new(&certificates.ca(), None);
        let pair = (
            certificates.directory_certificate(),
            certificates.directory_key(),
        );
        let network = Caller::new(&certificates.ca(), Some((&pair.0, &pair.1)));
        let results = free_address();
        let change = |config: &mut Config| {
            config.http.listen = free_address();
            let base_url = format!("http://{}", config.http.listen);
            config.http.base_url = Some(base_url.parse().unwrap());
            config.quotas.threeds = true;
            // Crowds take long on a machine that has other things to do.
            let minute = Duration::from_secs(60);
            config.database.acquire_timeout = minute;
            config.database.read_deadline = minute;
            config.database.write_deadline = minute;
            let settings = &mut config.threeds;
            settings.networks_file = Some(networks_file);
            if !plan.by_vendor {
                settings.results_listen = Some(results);
                settings.results_url = Some(format!("https://{results}").parse().unwrap());
                settings.results_cert_file = Some(certificates.server_certificate());
                settings.results_key_file = Some(certificates.server_key());
            }
            if let Some(versions) = plan.versions {
                settings.versions = versions_of(versions);
            }
            if let Some(timeout) = plan.answer_timeout {
                settings.answer_timeout = timeout;
            }
            if let Some(most) = plan.max_connections {
                config.database.max_connections = most;
            }
        };
        let vault = TestVault::start_with(TestDatabase::create().await, change).await;
        let listening = listen_for_results(&vault).await;
        card_networks::ask_all(&vault.vault).await.unwrap();
        let tenant = vault.tenant().await;
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
            results: listening,
            _folder: folder,
        }
    }

    /// A token with this card.
    pub(super) async fn token(&self, number: &str) -> String {
        let data = json!({"number": number, "expiration_month": 12, "expiration_year": 2030});
        let new = json!({"type": "card", "data": data});
        let created = self.merchant.post("/tokens", new).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        created.id()
    }

    /// A customer's session in a browser, asked for by the shop's page.
    pub(super) async fn session(&self, number: &str) -> Answer {
        let token = self.token(number).await;
        let new = json!({"token_id": token, "device": "browser", "device_info": browser()});
        self.page.post("/3ds/sessions", new).await
    }

    /// The same, which must work.
    pub(super) async fn created(&self, number: &str) -> Value {
        let created = self.session(number).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        created.body
    }

    /// A merchant's session without the cardholder.
    pub(super) async fn merchant_session(&self, number: &str) -> String {
        let new = json!({"token_id": self.token(number).await, "type": "merchant"});
        let created = self.merchant.post("/3ds/sessions", new).await;
        assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
        created.id()
    }

    pub(super) async fn authenticate(&self, id: &str, request: Value) -> Answer {
        let path = format!("/3ds/sessions/{id}/authenticate");
        self.merchant.post(&path, request).await
    }

    pub(super) async fn read(&self, id: &str) -> Answer {
        self.merchant.get(&format!("/3ds/sessions/{id}")).await
    }

    pub(super) async fn result(&self, id: &str) -> Answer {
        let path = format!("/3ds/sessions/{id}/challenge-result");
        self.merchant.get(&path).await
    }

    /// A session that was authenticated, with what came of it.
    pub(super) async fn authenticated(&self, number: &str, request: Value) -> Value {
        let session = self.created(number).await;
        let answer = self.authenticate(id_of(&session), request).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.body);
        answer.body
    }

    /// Lets the issuer see the browser. False when the issuer's page does not come back.
    pub(super) async fn see_browser(&self, session: &Value) -> bool {
        let data = json!({
            "threeDSServerTransID": session["id"],
            "threeDSMethodNotificationURL": session["method_notification_url"],
        });
        let data = [("threeDSMethodData".to_owned(), wrapped(&data))];
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

    /// Shows the cardholder the challenge of an authentication.
    pub(super) async fn challenge(&self, authentication: &Value) -> String {
        let request = json!({
            "messageType": "CReq",
            "messageVersion": authentication["threeds_version"],
            "threeDSServerTransID": authentication["session_id"],
            "acsTransID": authentication["acs_transaction_id"],
            "challengeWindowSize": "03",
        });
        let url = authentication["acs_challenge_url"].as_str().unwrap();
        let fields = [("creq".to_owned(), wrapped(&request))];
        let (status, html) = self.submit(url, &fields).await;
        assert_eq!(status, StatusCode::OK, "{html}");
        html
    }

    /// Does what the challenge asks for; gives the form that leads back to the vault.
    pub(super) async fn pass(&self, html: String) -> Option<Form> {
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

    /// Sends a form as a browser does.
    pub(super) async fn submit(
        &self,
        url: &str,
        fields: &[(String, String)],
    ) -> (StatusCode, String) {
        let body = serde_urlencoded::to_string(fields).unwrap();
        let media = "application/x-www-form-urlencoded";
        self.browser.post(url, media, body).await.unwrap()
    }

    /// What the simulator saw of a session.
    pub(super) async fn seen(&self, id: &str) -> Value {
        let url = format!("{}/control/transactions/{id}", self.acs_url);
        let (_, text) = self.browser.get(&url).await.unwrap();
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// How many messages of a kind the simulator has received.
    pub(super) async fn received(&self, kind: &str) -> u64 {
        let url = format!("{}/control/messages", self.acs_url);
        let (_, text) = self.browser.get(&url).await.unwrap();
        let counts: Value = serde_json::from_str(&text).unwrap();
        counts["received"][kind].as_u64().unwrap_or_default()
    }

    /// Asks the simulator for something out of the ordinary.
    pub(super) async fn control(&self, path: &str, body: Value) -> Value {
        let url = format!("{}{path}", self.acs_url);
        let told = body.to_string();
        let (status, text) = self.browser.post(&url, JSON, told).await.unwrap();
        assert!(status.is_success(), "{path}: {body}: {text}");
        serde_json::from_str(&text).unwrap_or_default()
    }

    /// Has the simulator send a result again, changed in some fields; tells what came back.
    pub(super) async fn send_result(&self, id: &str, change: Value) -> Value {
        let path = format!("/control/transactions/{id}/result");
        self.control(&path, json!({"change": change})).await
    }

    /// Tells a result with the certificate of the network, whatever it says.
    pub(super) async fn tell(&self, message: &Value) -> Value {
        let told = message.to_string();
        let told = self.network.post(&self.results_url, JSON, told).await;
        let (status, text) = told.unwrap();
        assert_eq!(status, StatusCode::OK);
        serde_json::from_str(&text).unwrap()
    }

    /// The same without any certificate.
    pub(super) async fn tell_anonymously(&self, message: &Value) -> Option<StatusCode> {
        let told = self
            .browser
            .post(&self.results_url, JSON, message.to_string());
        told.await.map(|(status, _)| status)
    }

    /// `operation outcome` of everything that was recorded about a session, oldest first.
    pub(super) async fn recorded(&self, id: &str) -> Vec<String> {
        self.recorded_at(&self.vault.base_url, id).await
    }

    /// The same as another node tells it.
    pub(super) async fn recorded_at(&self, node: &str, id: &str) -> Vec<String> {
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

/// A card of the range whose last four digits say what happens. It passes the Luhn check.
pub(super) fn digits(tail: &str) -> String {
    let passes = |number: &String| {
        let digit = |(at, byte): (usize, u8)| match (u32::from(byte - b'0'), at % 2) {
            (digit, 0) => digit,
            (digit, _) => digit * 2 / 10 + digit * 2 % 10,
        };
        let sum: u32 = number.bytes().rev().enumerate().map(digit).sum();
        sum.is_multiple_of(10)
    };
    let mut numbers = (0..10).map(|free| format!("90001000000{free}{tail}"));
    numbers.find(passes).unwrap()
}

pub(super) fn versions_of(text: &str) -> cloakroom::config::Versions {
    let versions = text.split(',').map(|one| one.parse().unwrap());
    cloakroom::config::Versions::new(versions.collect())
}

/// Someone who keeps cards and authenticates them.
pub(super) async fn merchant(vault: &TestVault, tenant: &Tenant) -> Client {
    let may = grants(&[
        Permission::TokenCreate,
        Permission::TokenDelete,
        Permission::TokenIntentCreate,
        Permission::ThreedsSessionCreate,
        Permission::ThreedsSessionRead,
        Permission::ThreedsSessionAuthenticate,
    ]);
    vault.client(tenant, may).await
}

pub(super) async fn page(vault: &TestVault, tenant: &Tenant) -> Client {
    let may = grants(&[Permission::ThreedsSessionCreate]);
    let holder = vault.holder(tenant, ApplicationKind::Public, may).await;
    vault.client_with(Some(&holder.key))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test ends the listener when it drops the checkout"
)]
async fn listen_for_results(vault: &TestVault) -> JoinHandle<()> {
    let (config, networks) = (&vault.vault.config, &vault.vault.card_networks);
    let server = Server::bind_results(config, networks).await.unwrap();
    let app = threeds::results_router(vault.vault.clone());
    tokio::spawn(async {
        if let Some(server) = server {
            server.run(app, std::future::pending()).await;
        }
    })
}

fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Addresses that messages tell must be known before anything runs.
fn free_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], cloakroom_scratch::free_port().unwrap()))
}

/// The simulator as a vendor, who has a key for us and knows all networks.
fn vendor(simulator: &Simulator, folder: &Path) -> String {
    let key_file = folder.join("vendor.key");
    std::fs::write(&key_file, VENDOR_API_KEY).unwrap();
    format!(
        "[[vendor]]\ntenants = \"test\"\nurl = \"{}/vendor\"\napi_key_file = {key_file:?}\n\
         ca_file = {:?}\n",
        simulator.acs_url(),
        simulator.certificates().ca(),
    )
}

fn networks(simulator: &Simulator, senders: &[&str]) -> String {
    let certificates = simulator.certificates();
    let one = |network: &&str| {
        format!(
            "[[directory]]\nnetwork = {network:?}\ntenants = \"test\"\nurls = [{:?}]\n\
             operator_id = \"simulated\"\ncert_file = {:?}\nkey_file = {:?}\nca_file = {:?}\n\
             senders = {senders:?}\n",
            simulator.directory_url(network),
            certificates.server_certificate(),
            certificates.server_key(),
            certificates.ca(),
        )
    };
    NETWORKS.iter().map(one).collect()
}
