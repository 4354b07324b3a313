//! What is printed when the vault is ready.

use cloakroom::ids;
use serde::Serialize;
use uuid::Uuid;

/// The JSON output when the vault is ready.
#[derive(Serialize)]
pub(super) struct Ready {
    pub(super) base_url: String,
    pub(super) admin_url: String,
    /// The URL of each node.
    pub(super) node_urls: Vec<String>,
    pub(super) tenant_id: Uuid,
    pub(super) keys: Keys,
    pub(super) threeds: Threeds,
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

pub(super) fn announce(ready: &Ready, limits: bool, json: bool) -> anyhow::Result<()> {
    if json {
        print_line!("{}", serde_json::to_string(ready)?);
        return Ok(());
    }
    let Ready {
        base_url,
        admin_url,
        node_urls,
        tenant_id,
        keys,
        threeds,
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
    Ok(())
}
