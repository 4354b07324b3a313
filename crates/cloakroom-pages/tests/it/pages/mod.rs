//! Hosted pages: branding, the hosted card form, and errors as pages. `conformance/browser` tests them in a browser.

mod branding;
mod checkout;
mod design;

use cloakroom::access::{ApplicationKind, Permission, Tenant};
use cloakroom_testkit::{Client, TestResponse, TestVault, grants};
use http::Method;
use serde_json::{Value, json};

const SHOP: &str = "https://shop.example/thanks?order=1#top";
const CANCEL: &str = "https://shop.example/cart";

/// A tenant whose pages may lead to `shop.example`.
async fn tenant(vault: &TestVault) -> Tenant {
    let hosts = [("threeds_callback_hosts", "shop.example")];
    vault.tenant_with(&hosts).await
}

async fn merchant(vault: &TestVault, tenant: &Tenant) -> Client {
    use Permission::{TokenIntentCreate, TokenIntentRead};
    let held = grants(&[TokenIntentCreate, TokenIntentRead]);
    let holder = vault.holder(tenant, ApplicationKind::Private, held).await;
    vault.client_with(Some(&holder.key))
}

async fn manager(vault: &TestVault, tenant: &Tenant) -> Client {
    let held = grants(&[
        Permission::TenantRead,
        Permission::TenantUpdate,
        Permission::LogRead,
    ]);
    let holder = vault
        .holder(tenant, ApplicationKind::Management, held)
        .await;
    vault.client_with(Some(&holder.key))
}

fn new_session() -> Value {
    json!({"return_url": SHOP, "cancel_url": CANCEL})
}

/// Opens a URL as a browser does when it navigates there.
async fn navigate(vault: &TestVault, path: &str, language: &str) -> TestResponse {
    let client = vault.client_with(None);
    let request = client
        .request(Method::GET, path)
        .header("accept", "text/html,application/xhtml+xml,*/*;q=0.8")
        .header("accept-language", language);
    client.send(request).await
}

fn text(response: &TestResponse) -> &str {
    str::from_utf8(&response.bytes).unwrap()
}
