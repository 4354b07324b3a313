//! Responses disclose no more than the caller's permissions on the token before the request allow.

mod derived_values;
mod expressions;
mod intents;
mod masks;
mod replays;
mod templates;
mod writes;

use cloakroom::access::{ApplicationKind, Grants, Permission, Tenant, Transform};
use cloakroom_testkit::{Client, TestResponse, TestVault, everything, rule};
use serde_json::{Value, json};

const NUMBER: &str = "4147202464191053";

/// A vault with a card token created by `owner`.
struct Fixture {
    vault: TestVault,
    tenant: Tenant,
    owner: Client,
    card: String,
}

impl Fixture {
    async fn start() -> Self {
        let vault = TestVault::start().await;
        let tenant = vault.tenant().await;
        let owner = vault.client(&tenant, everything(Transform::Reveal)).await;
        let card = owner.post("/tokens", card(NUMBER)).await.id();
        Self {
            vault,
            tenant,
            owner,
            card,
        }
    }

    fn path(&self) -> String {
        format!("/tokens/{}", self.card)
    }

    async fn client_with_rules(&self, rules: &[(&str, Transform, &[Permission])]) -> Client {
        let rules = rules.iter().zip(1..);
        let rules = rules
            .map(|((container, transform, permissions), priority)| {
                rule(priority, container, *transform, permissions)
            })
            .collect();
        let grants = Grants {
            rules,
            ..Grants::default()
        };
        self.vault.client(&self.tenant, grants).await
    }

    /// A client for a new public application.
    async fn public(&self, grants: Grants) -> Client {
        let public = ApplicationKind::Public;
        let holder = self.vault.holder(&self.tenant, public, grants).await;
        self.vault.client_with(Some(&holder.key))
    }
}

fn card(number: &str) -> Value {
    json!({
        "type": "card",
        "data": {"number": number, "expiration_month": 12, "expiration_year": 2030},
    })
}

/// The response body as text.
fn text(response: &TestResponse) -> String {
    String::from_utf8_lossy(&response.bytes).into_owned()
}
