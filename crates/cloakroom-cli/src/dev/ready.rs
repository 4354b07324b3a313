//! What is printed when the vault is ready.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use cloakroom::access::{ApplicationKind, Tenant};
use cloakroom::{Vault, ids};
use serde::{Deserialize, Serialize};
use tokio::process::Child;
use uuid::Uuid;

use super::environment::EnvironmentFile;
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
    /// For other commands of `cloakroom`.
    pub(super) config_file: PathBuf,
    /// Base URLs and credentials of simulated processors.
    #[serde(skip)]
    pub(super) processors: Vec<(&'static str, String)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) shop: Option<&'a ShopReady>,
}

impl Ready<'_> {
    /// Variables for a shell, with the names that the documentation uses.
    pub(super) fn variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![
            ("BASE_URL", self.base_url.clone()),
            ("ADMIN_URL", self.admin_url.clone()),
            ("TENANT", self.tenant_id.to_string()),
            ("PRIVATE_KEY", self.keys.private.clone()),
            ("PUBLIC_KEY", self.keys.public.clone()),
            ("MANAGEMENT_KEY", self.keys.management.clone()),
            (
                "CLOAKROOM_CONFIG",
                self.config_file.to_string_lossy().into_owned(),
            ),
        ];
        variables.extend(self.processors.iter().cloned());
        variables
    }
}

/// The simulated issuer.
#[derive(Serialize)]
pub(super) struct Threeds {
    pub(super) acs_url: String,
}

#[derive(Deserialize, Serialize)]
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

/// How the vault is announced.
pub(super) struct Announcement {
    /// The folder of `--data`.
    pub(super) data: Option<PathBuf>,
    /// Whether neither address nor URL was chosen.
    pub(super) is_default_port: bool,
    /// The folder of the browser's profile.
    pub(super) profile: PathBuf,
    pub(super) env_file: Option<PathBuf>,
    pub(super) limits: bool,
    pub(super) json: bool,
}

/// What exists as long as the vault: the file with variables, and the browser with the demo shop.
pub(super) struct Announced {
    _file: Option<EnvironmentFile>,
    _browser: Option<Child>,
}

/// Prints progress on a terminal, because the start takes seconds.
#[expect(clippy::print_stderr, reason = "standard output has the result")]
pub(super) fn announce_start() {
    if std::io::stderr().is_terminal() {
        eprintln!("Starting a vault …");
    }
}

/// Writes the file with variables, prints the result, and opens the demo shop in a browser.
pub(super) fn announce(ready: &Ready<'_>, options: &Announcement) -> anyhow::Result<Announced> {
    let file = options.env_file.as_deref();
    let file = file.map(|path| EnvironmentFile::write(path, ready));
    let file = file.transpose()?;
    if options.json {
        print_line!("{}", serde_json::to_string(ready)?);
        return Ok(Announced {
            _file: file,
            _browser: None,
        });
    }
    announce_vault(ready, options);
    let browser = ready.shop.and_then(|shop| {
        announce_shop(shop, &options.profile);
        browser::open(shop, &options.profile)
    });
    Ok(Announced {
        _file: file,
        _browser: browser,
    })
}

fn announce_vault(ready: &Ready<'_>, options: &Announcement) {
    let Ready {
        base_url,
        admin_url,
        node_urls,
        tenant_id,
        keys,
        threeds,
        config_file,
        ..
    } = ready;
    let id = ids::new_uuid();
    let data = match &options.data {
        Some(data) => format!("Its data is in {}.", data.display()),
        None => "All data is deleted when it stops (Ctrl-C).".to_owned(),
    };
    let port = match (options.is_default_port, base_url.ends_with(":8080")) {
        (true, false) => "  (port 8080 is in use)",
        _ => "",
    };
    let limits = match options.limits {
        true => "on  (`cloakroom limits show` lists them)",
        false => "off  (`cloakroom dev --limits` turns them on)",
    };
    print_line!(
        "\
Cloakroom is running for development. {data}

  base URL        {base_url}{port}{nodes}
  API             {base_url}/openapi.json  (errors: {base_url}/errors)
  admin           {admin_url}  (/healthz, /readyz, /metrics)
  rate limits     {limits}
  3-D Secure      simulated; every challenge code is 1234  ({acs_url}/control/messages lists messages)
  tenant          {tenant_id}
  private key     {private}
  public key      {public}
  management key  {management}
  configuration   {config_file}  (as CLOAKROOM_CONFIG for other commands of `cloakroom`)

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
        config_file = config_file.display(),
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
