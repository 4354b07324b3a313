//! Rotation of keys while the vault serves.

mod control;
mod data;
mod digests;
mod fence;
mod interruptions;
mod keysets;
mod measure;
mod requests;
mod vault_keys;
mod wrapping;

use cloakroom::Node;
use cloakroom::access::{ApplicationKind, Grants, Permission, Tenant, Transform};
use cloakroom::rotation::{self, Phase};
use cloakroom_crypto::KeyPurpose;
use cloakroom_platform::failpoints::arm;
use cloakroom_testkit::{Client, TestDatabase, TestDestination, TestVault, held_by, rule};
use serde_json::{Value, json};
use tokio_postgres::Client as Database;
use uuid::Uuid;

/// Tables with data that is encrypted under the data key, and the column.
const SEALED: [(&str, &str); 6] = [
    ("token", "sealed"),
    ("token_intent", "sealed"),
    ("client_key", "sealed"),
    ("checkout_session", "sealed"),
    ("proxy", "sealed"),
    ("webhook", "secret"),
];

/// All nodes hold the lease under this name, so that one continues at once where another one died.
const HOLDER: Uuid = Uuid::from_u128(7);

/// A vault with a tenant that has a row in every table of [`SEALED`].
struct Fixture {
    vault: TestVault,
    tenant: Tenant,
    client: Client,
    manager: Client,
    database: Database,
    destination: TestDestination,
    tokens: Vec<String>,
}

impl Fixture {
    async fn create(tokens: usize) -> Self {
        let destination = TestDestination::start().await;
        let vault = TestVault::start_with(TestDatabase::create().await, |config| {
            destination.allow(config);
        })
        .await;
        let hosts = [("threeds_callback_hosts", "shop.example")];
        let tenant = vault.tenant_with(&hosts).await;
        let mut fixture = Self {
            client: client(&vault, &tenant, ApplicationKind::Private).await,
            manager: client(&vault, &tenant, ApplicationKind::Management).await,
            database: vault.database.connect().await,
            vault,
            tenant,
            destination,
            tokens: Vec::new(),
        };
        for number in 0..tokens {
            let created = fixture.client.post("/tokens", new_token(number)).await;
            fixture.tokens.push(created.id());
        }
        let writes = fixture.write_everything(&fixture.client, &fixture.manager);
        writes.await;
        fixture
    }

    /// Creates one row in each table, and asserts that every request succeeds.
    async fn write_everything(&self, client: &Client, manager: &Client) {
        let card = json!({"type": "card",
            "data": {"number": "4242424242424242", "expiration_month": 12, "expiration_year": 2040}});
        let page = json!({"return_url": "https://shop.example/thanks", "cancel_url": "https://shop.example/cart"});
        let hook = json!({"name": "Ledger", "url": self.destination.url("/hook"), "events": ["token.created"]});
        let proxy = json!({"name": "Payments", "destination_url": self.destination.url("/v1")});
        for (client, path, new) in [
            (client, "/tokens", card.clone()),
            (client, "/token-intents", card),
            (client, "/checkout/sessions", page),
            (manager, "/keys", json!({})),
            (manager, "/webhooks", hook),
            (manager, "/proxies", proxy),
        ] {
            let created = client.post(path, new).await;
            assert_eq!(created.status, 201, "{path}: {}", created.body);
        }
    }

    /// Starts a rotation of the data key.
    async fn start(&self) -> u32 {
        rotation::start(&self.vault.vault, self.tenant.id, KeyPurpose::Data, "tests")
            .await
            .unwrap()
    }

    async fn phase(&self) -> Phase {
        let status = rotation::status(&self.vault.vault).await.unwrap();
        status.last().unwrap().rotation.phase
    }

    /// Advances the rotation until a failpoint interrupts it.
    async fn advance_until(&self, failpoint: &str, hits: u32) {
        arm(failpoint, hits);
        for _ in 0..100 {
            if rotation::work(&self.vault.vault, HOLDER).await.is_err() {
                return;
            }
            // Statements of other requests may have to end.
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        panic!("{failpoint} was not reached");
    }

    /// Advances the rotation until it reaches a phase.
    async fn advance_to(&self, phase: Phase) {
        advance_to(&self.vault.vault, phase).await;
    }

    async fn rotate(&self) {
        self.start().await;
        self.advance_to(Phase::Proved).await;
    }

    /// Counts the rows of a table by the version of their key.
    async fn versions(&self, table: &str, column: &str) -> Vec<(i32, i64)> {
        let sql =
            format!("select get_byte({column}, 5), count(*) from {table} group by 1 order by 1");
        let rows = self.database.query(&sql, &[]).await.unwrap();
        rows.iter().map(|row| (row.get(0), row.get(1))).collect()
    }

    /// Asserts that all rows are encrypted under this version.
    async fn assert_all_under(&self, version: i32) {
        for (table, column) in SEALED {
            let versions = self.versions(table, column).await;
            assert!(
                matches!(versions[..], [(found, 1..)] if found == version),
                "{table}: {versions:?}"
            );
        }
    }

    /// Asserts that a node returns the data of all tokens.
    async fn assert_readable(&self, client: &Client) {
        for (number, id) in self.tokens.iter().enumerate() {
            let read = client.get(&format!("/tokens/{id}")).await;
            assert_eq!(read.status, 200, "{}", read.body);
            assert_eq!(read.body["data"], new_token(number)["data"]);
        }
    }

    async fn execute(&self, sql: &str) -> u64 {
        self.database.execute(sql, &[]).await.unwrap()
    }
}

/// Advances all rotations until the last one reaches a phase.
pub(crate) async fn advance_to(node: &Node, phase: Phase) {
    for _ in 0..1_000 {
        let status = rotation::status(node).await.unwrap();
        if status.last().unwrap().rotation.phase >= phase {
            return;
        }
        rotation::work(node, HOLDER).await.unwrap();
    }
    panic!("the rotation does not reach {phase:?}");
}

fn new_token(number: usize) -> Value {
    json!({"type": "token", "data": {"number": number}, "metadata": {"number": number.to_string()}})
}

async fn client(vault: &TestVault, tenant: &Tenant, kind: ApplicationKind) -> Client {
    let scoped: Vec<Permission> = held_by(kind).filter(|held| held.is_scoped()).collect();
    let grants = Grants {
        permissions: held_by(kind).collect(),
        rules: match scoped[..] {
            [] => Vec::new(),
            _ => vec![rule(1, "/", Transform::Reveal, &scoped)],
        },
    };
    let holder = vault.holder(tenant, kind, grants).await;
    vault.client_with(Some(&holder.key))
}
