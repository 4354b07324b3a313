//! What is printed when the vault is ready.

use std::path::Path;

use cloakroom::access::{ApplicationKind, Tenant};
use cloakroom::{Vault, ids};
use serde::Serialize;
use tokio::process::Child;
use uuid::Uuid;

use super::shop::{ShopReady, browser};
use super::tenant::create_key;

/// The JSON output when the vault is ready.
#[derive(Serialize)]
pub(super) struct Ready<'a> {
    pub(super) base_url: String,
    pub(super) admin_url: String,
    /// The URL of each node.
    pub(super) node_urls: Vec<String>,
    pub(super) tenant_id: Uuid,
    pub(super) keys: Keys,
    pub(super) threeds: Threeds,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) shop: Option<&'a ShopReady>,
}

/// The simulated issuer.
#[derive(Serialize)]
pub(super) struct Threeds {
    pub(super) acs_url: String,
}

#[derive(Serialize)]
pub(super) struct Keys {
    pub(super) private: String,
    pub(super) public: String,
    pub(super) management: String,
}

impl Keys {
    pub(super) async fn create(vault: &Vault, tenant: &Tenant) -> anyhow::Result<Self> {
        Ok(Self {
            private: create_key(vault, tenant, ApplicationKind::Private).await?,
            public: create_key(vault, tenant, ApplicationKind::Public).await?,
            management: create_key(vault, tenant, ApplicationKind::Management).await?,
        })
    }
}

/// Prints the result, and opens the demo shop in a browser, which is returned.
pub(super) fn announce(
    ready: &Ready<'_>,
    profile: &Path,
    limits: bool,
    json: bool,
) -> anyhow::Result<Option<Child>> {
    if json {
        print_line!("{}", serde_json::to_string(ready)?);
        return Ok(None);
    }
    announce_vault(ready, limits);
    Ok(ready.shop.and_then(|shop| {
        announce_shop(shop, profile);
        browser::open(shop, profile)
    }))
}

fn announce_vault(ready: &Ready<'_>, limits: bool) {
    let Ready {
        base_url,
        admin_url,
        node_urls,
        tenant_id,
        keys,
        threeds,
        ..
    } = ready;
    let id = ids::new_uuid();
    let limits = match limits {
        true => "on, 50 requests per 10 seconds for each key  (see `cloakroom limits show`)",
        false => "off  (`cloakroom dev --limits` turns them on)",
    };
    print_line!(
        "\
Cloakroom is running for development. All data is deleted when it stops (Ctrl-C).

  base URL        {base_url}{nodes}
  admin           {admin_url}  (/healthz, /readyz, /metrics)
  rate limits     {limits}
  3-D Secure      simulated; every challenge code is 1234  ({acs_url}/control/messages lists messages)
  tenant          {tenant_id}
  private key     {private}
  public key      {public}
  management key  {management}

Create a card token and read it:

curl -s {base_url}/tokens -H 'BT-API-KEY: {public}' -H 'Content-Type: application/json' \\
  -d '{{\"id\":\"{id}\",\"type\":\"card\",\"data\":{{\"number\":\"4242424242424242\",\"expiration_month\":12,\"expiration_year\":2030}}}}'

curl -s {base_url}/tokens/{id} -H 'BT-API-KEY: {private}'
",
        nodes = match node_urls.len() {
            1 => String::new(),
            _ => format!("\n  nodes           {}", node_urls.join(" ")),
        },
        acs_url = threeds.acs_url,
        private = keys.private,
        public = keys.public,
        management = keys.management,
    );
}

fn announce_shop(shop: &ShopReady, profile: &Path) {
    print_line!(
        "\
The demo shop is at {url}, in a browser that finds it on this machine:

  {command}

  5204 2477 5000 1471   paid                        4000 0200 0000 0000   paid after a challenge; the code is 1234
  4000 0000 0000 0002   declined by the processor   4264 2815 1111 2228   not authenticated by the issuer
  Use any expiration date in the future and any security code.
",
        url = shop.url,
        command = browser::command_line(shop, profile),
    );
    // The environment has secrets. It is printed only if the developer starts the server.
    if shop.is_server_external {
        let environment = shop.environment.iter();
        let environment: Vec<String> = environment
            .map(|(name, value)| format!("  {name}={value}"))
            .collect();
        print_line!(
            "Environment of the shop's server:\n\n{}\n",
            environment.join("\n")
        );
    }
}
