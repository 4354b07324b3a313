//! Deprecated features: one test per row of the table, response headers, and usage counts.

mod removed;
mod served;
mod table;
mod usage;

use std::collections::BTreeMap;

use cloakroom::access::{ApplicationKind, Permission, Tenant, Transform};
use cloakroom::config::Deprecation as Mode;
use cloakroom::deprecations::{self, DeprecatedFeature};
use cloakroom_testkit::{Client, TestDatabase, TestResponse, TestVault, everything, grants};

/// A vault, a tenant, and a client of it with all token permissions.
struct Fixture {
    vault: TestVault,
    tenant: Tenant,
    client: Client,
}

impl Fixture {
    async fn start() -> Self {
        Self::start_with(Mode::Serve).await
    }

    async fn start_with(mode: Mode) -> Self {
        let vault = TestVault::start_with(TestDatabase::create().await, |config| {
            config.deprecated.v1_tokens = mode;
        })
        .await;
        let tenant = vault.tenant().await;
        let client = vault.client(&tenant, everything(Transform::Reveal)).await;
        Self {
            vault,
            tenant,
            client,
        }
    }

    async fn manager(&self) -> Client {
        let granted = grants(&[
            Permission::ApplicationGrant,
            Permission::ApplicationCreate,
            Permission::ApplicationUpdate,
            Permission::ApplicationRead,
            Permission::ProxyCreate,
            Permission::ProxyUpdate,
        ]);
        let kind = ApplicationKind::Management;
        let holder = self.vault.holder(&self.tenant, kind, granted).await;
        self.vault.client_with(Some(&holder.key))
    }

    /// Deprecated features that the tenant used so far, with the number of calls.
    async fn usage(&self) -> BTreeMap<String, u64> {
        let vault = &self.vault.vault;
        vault.deprecation_counts.write(&vault.db).await.unwrap();
        let usage = deprecations::list(&vault.db, self.tenant.id).await.unwrap();
        let mut calls = BTreeMap::new();
        for feature in usage {
            *calls.entry(feature.name).or_default() += feature.calls;
        }
        calls
    }

    /// Asserts that the response has the headers of the table row and that exactly this call was counted.
    async fn assert_reported(&self, response: &TestResponse, deprecated: DeprecatedFeature) {
        let is_operation = !deprecated.row().operations.is_empty();
        assert_headers(&self.vault, response, is_operation.then_some(deprecated));
        let expected = BTreeMap::from([(deprecated.row().name.to_owned(), 1)]);
        assert_eq!(self.usage().await, expected);
    }
}

/// Asserts the deprecation headers of an operation, or their absence.
fn assert_headers(
    vault: &TestVault,
    response: &TestResponse,
    operation: Option<DeprecatedFeature>,
) {
    let Some(row) = operation.map(DeprecatedFeature::row) else {
        for name in ["deprecation", "sunset", "link"] {
            assert_eq!(response.header(name), "");
        }
        return;
    };
    let since = row.since.map(|day| {
        let since = day.to_zoned(jiff::tz::TimeZone::UTC).unwrap();
        format!("@{}", since.timestamp().as_second())
    });
    assert_eq!(response.header("deprecation"), since.unwrap_or_default());
    let until = row
        .until
        .map(|day| day.strftime("%a, %d %b %Y 00:00:00 GMT"));
    let until = until.map(|until| until.to_string());
    assert_eq!(response.header("sunset"), until.unwrap_or_default());
    let link = row.successor.map(|path| {
        let base_url = &vault.base_url;
        format!("<{base_url}{path}>; rel=\"successor-version\"")
    });
    assert_eq!(response.header("link"), link.unwrap_or_default());
}
