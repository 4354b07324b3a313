//! Creating, updating and deleting applications and their keys over HTTP.

mod access;
mod create;
mod delete;
mod keys;
mod read;
mod templates;
mod update;

use cloakroom::access::{ApplicationKind, Permission, Tenant};
use cloakroom_testkit::{Client, TestVault, grants};
use http::StatusCode;
use serde_json::{Value, json};

const UNKNOWN_ID: &str = "c06d0789-0a38-40be-b7cc-c28a718f76f1";

/// A client with all application permissions of a tenant.
async fn manager(vault: &TestVault, tenant: &Tenant) -> Client {
    use Permission::{
        ApplicationCreate, ApplicationDelete, ApplicationGrant, ApplicationRead, ApplicationUpdate,
    };
    let all = [
        ApplicationGrant,
        ApplicationCreate,
        ApplicationRead,
        ApplicationUpdate,
        ApplicationDelete,
        Permission::LogRead,
    ];
    let management = ApplicationKind::Management;
    let holder = vault.holder(tenant, management, grants(&all)).await;
    vault.client_with(Some(&holder.key))
}

fn new_application() -> Value {
    json!({"name": "Checkout", "type": "private", "permissions": ["token:create"]})
}

/// The body of `new_application` with some members replaced.
fn new_application_with(changes: Value) -> Value {
    let mut new = new_application();
    for (name, value) in changes.as_object().unwrap() {
        new[name] = value.clone();
    }
    new
}

fn rule(priority: u32, container: &str, transform: &str, permissions: &[&str]) -> Value {
    json!({"description": "A rule", "priority": priority, "container": container,
        "transform": transform, "permissions": permissions})
}

/// An application created over HTTP.
struct CreatedApplication {
    path: String,
    id: String,
    key: String,
    key_id: String,
}

async fn create_application(manager: &Client, new: Value) -> CreatedApplication {
    let created = manager.post("/applications", new).await;
    assert_eq!(created.status, StatusCode::CREATED, "{}", created.body);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    CreatedApplication {
        path: format!("/applications/{}", created.id()),
        id: created.id(),
        key: text(&created.body["key"]),
        key_id: text(&created.body["keys"][0]["id"]),
    }
}

/// Status of creating a token with a key.
async fn create_status(vault: &TestVault, key: &str) -> StatusCode {
    let client = vault.client_with(Some(key));
    let new = json!({"type": "token", "data": 1});
    client.post("/tokens", new).await.status
}

fn ids_of(listed: &[Value]) -> Vec<&str> {
    listed
        .iter()
        .map(|item| item["id"].as_str().unwrap())
        .collect()
}
