//! The catalog of connection formulas, compared with its source.

mod access;
mod find;
mod list;

use cloakroom::access::Permission;
use cloakroom_testkit::{Client, TestVault, grants};
use serde_json::Value;

const PATHS: [&str; 2] = [
    "/orchestration/connection_formulas",
    "/orchestration/connection/formulas",
];

/// The source of the catalog, in order of id.
fn source() -> Vec<Value> {
    let text = include_str!("../../../../cloakroom-formulas/tests/source.json");
    let formulas: Vec<Value> = serde_json::from_str(text).unwrap();
    assert!(formulas.is_sorted_by_key(|formula| formula["id"].to_string()));
    formulas
}

async fn reader(vault: &TestVault) -> Client {
    let tenant = vault.tenant().await;
    let reading = grants(&[Permission::ConnectionFormulas]);
    vault.client(&tenant, reading).await
}
