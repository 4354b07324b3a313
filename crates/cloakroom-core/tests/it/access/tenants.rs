//! Tenants of test and production vaults.

use cloakroom::access::{ApplicationKind, Permission, TenantKind, TenantSettings};
use cloakroom::config::Environment;
use cloakroom::tenants::{self, NewTenant};
use cloakroom_testkit::{TestDatabase, TestVault, grants};
use http::StatusCode;

use super::create_status;

#[tokio::test]
async fn a_test_vault_rejects_production_tenants() {
    let test = TestVault::start().await;
    let production = TestVault::start_with(TestDatabase::create().await, |config| {
        config.vault.environment = Environment::Production;
        config.root_key.allow_file_in_production = true;
    })
    .await;
    let new = || NewTenant {
        name: "Real".into(),
        kind: TenantKind::Production,
        settings: TenantSettings::default(),
    };

    let rejected = tenants::create(&test.vault, new()).await;
    let tenant = tenants::create(&production.vault, new()).await.unwrap();

    assert!(matches!(
        rejected,
        Err(tenants::Error::ProductionTenantInTest)
    ));
    let granted = grants(&[Permission::TokenCreate]);
    let holder = production
        .holder(&tenant, ApplicationKind::Private, granted)
        .await;
    assert!(holder.key.starts_with("key_prod_us_pvt_"));
    assert_eq!(
        create_status(&production, &holder.key).await,
        StatusCode::CREATED
    );
}

#[tokio::test]
async fn tenants_created_concurrently_get_distinct_numbers() {
    let vault = TestVault::start().await;

    let mut creating = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let vault = vault.vault.clone();
        creating.spawn(async move {
            let new = NewTenant {
                name: "One of many".into(),
                kind: TenantKind::Test,
                settings: TenantSettings::default(),
            };
            tenants::create(&vault, new).await.unwrap().id.number
        });
    }
    let mut numbers = creating.join_all().await;

    numbers.sort_unstable();
    assert_eq!(numbers, [1, 2, 3, 4]);
}
