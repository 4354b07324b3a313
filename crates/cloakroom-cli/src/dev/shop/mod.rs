//! `cloakroom dev --shop`: the demo shop, and what it needs around the vault.
//!
//! The shop's page and its server are files (`examples/shop`). This module starts TLS in front of them, a simulated
//! processor, and the server, and gives the server keys with the permissions that it needs and no others.

pub(super) mod browser;
mod front;
mod server;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use clap::{Args, ValueEnum};
use cloakroom::access::{ApplicationKind, Grants, Tenant, TenantSettings};
use cloakroom::authentication::authenticate;
use cloakroom::config::{Config, Ports, StaticAddresses};
use cloakroom::idempotency::ResponseTemplate;
use cloakroom::proxy::proxies;
use cloakroom::webhooks::webhooks::{self, NewWebhook};
use cloakroom::{Caller, Node};
use cloakroom_processor_simulator::{Simulator as Processor, checkout};
use cloakroom_scratch::free_port;
use serde::Serialize;
use serde_json::json;
use tokio::task::JoinSet;

use self::front::{Backend, Front};
use self::server::Server;
use super::tenant::create_application;
use crate::grants::parse_permissions;

/// Names for browsers and webhooks. `.test` is reserved: no such host exists.
const SHOP_HOST: &str = "shop.cloakroom.test";
const VAULT_HOST: &str = "vault.cloakroom.test";

/// The page creates token intents and 3DS sessions, and reads nothing.
const PUBLIC_PERMISSIONS: [&str; 2] = ["token-intent:create", "3ds:session:create"];
/// The server uses cards through the proxy. It cannot read their numbers. To convert an intent that the page created,
/// it needs `token:create` and `token:update`.
const PRIVATE_PERMISSIONS: [&str; 6] = [
    "token:create",
    "token:update",
    "token:delete",
    "token:use",
    "3ds:session:read",
    "3ds:session:authenticate",
];

#[derive(Args)]
pub(super) struct ShopArguments {
    /// Also run the demo shop in this folder [default: examples/shop]
    #[arg(long, value_name = "FOLDER", num_args = 0..=1, default_missing_value = "examples/shop")]
    shop: Option<PathBuf>,
    /// Server of the shop; `none` prints the environment for a server that you start
    #[arg(long, value_name = "LANGUAGE", value_enum, default_value_t = Language::Node)]
    #[arg(requires = "shop")]
    shop_server: Language,
}

/// The language of the shop's server.
#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Language {
    Node,
    Python,
    None,
}

/// The surroundings of the shop. They exist before the vault, whose configuration has their addresses.
pub(super) struct Shop {
    front: Front,
    processor: Processor,
    /// Port of the shop's server.
    port: u16,
    is_server_external: bool,
}

/// How to reach the shop, and the environment of its server.
#[derive(Serialize)]
pub(super) struct ShopReady {
    pub(super) url: String,
    /// Where browsers find both hosts, instead of at port 443.
    pub(super) front: SocketAddr,
    pub(super) hosts: [&'static str; 2],
    pub(super) public_key_sha256: String,
    pub(super) environment: BTreeMap<&'static str, String>,
    /// Whether the developer starts the server, and needs its environment.
    #[serde(skip)]
    pub(super) is_server_external: bool,
}

/// A shop that runs until it is dropped.
pub(super) struct RunningShop {
    pub(super) ready: ShopReady,
    _processor: Processor,
    _front: JoinSet<()>,
}

impl ShopArguments {
    /// The server to start, if the shop is requested.
    pub(super) fn find_server(&self) -> anyhow::Result<Option<Server>> {
        match &self.shop {
            Some(folder) => Server::find(folder, self.shop_server),
            None => Ok(None),
        }
    }

    /// Starts what the shop needs, if it is requested.
    pub(super) async fn start(&self) -> anyhow::Result<Option<Shop>> {
        if self.shop.is_none() {
            return Ok(None);
        }
        Ok(Some(Shop {
            front: Front::bind(&[SHOP_HOST, VAULT_HOST]).await?,
            processor: Processor::start().await?,
            port: free_port()?,
            is_server_external: matches!(self.shop_server, Language::None),
        }))
    }
}

impl Shop {
    /// Allows the vault to send requests to the processor and to the shop's webhook endpoint, and to nothing else.
    pub(super) fn configure(&self, folder: &Path, config: &mut Config) -> anyhow::Result<()> {
        let (front, processor) = (self.front.address, self.processor.address);
        let authorities = folder.join("egress-ca.pem");
        let both = [
            &self.front.tls.ca_certificate,
            &self.processor.ca_certificate,
        ];
        std::fs::write(&authorities, both.map(String::as_str).concat())?;
        config.egress.ca_file = Some(authorities);
        config.egress.static_addresses = StaticAddresses::new(vec![
            (SHOP_HOST.to_owned(), front.ip()),
            (checkout::HOST.to_owned(), processor.ip()),
        ]);
        config.egress.ports = Ports::new(vec![front.port(), processor.port()]);
        let loopback = "127.0.0.1/32".parse();
        config.egress.allow_private_networks = loopback.map_err(anyhow::Error::msg)?;
        Ok(())
    }

    /// The URL of the vault for browsers.
    pub(super) fn vault_url(&self) -> String {
        format!("https://{VAULT_HOST}")
    }

    /// Settings of the shop's tenant: which sites may embed fields, and where cards and events may be sent.
    pub(super) fn tenant_settings(&self) -> anyhow::Result<TenantSettings> {
        let mut settings = TenantSettings::default();
        settings.set("elements_sites", SHOP_HOST)?;
        settings.set("egress_hosts", &format!("{},{SHOP_HOST}", checkout::HOST))?;
        // The private key sends cards through the shop's proxy only.
        settings.set("disable_ephemeral_proxy", "true")?;
        Ok(settings)
    }

    /// Creates the keys and the webhook of the shop, and forwards connections from now on.
    pub(super) async fn open(
        self,
        node: &Node,
        tenant: &Tenant,
        management_key: &str,
        api: SocketAddr,
    ) -> anyhow::Result<RunningShop> {
        let url = format!("https://{SHOP_HOST}");
        let webhook_url = format!("{url}:{}/webhooks", self.front.address.port());
        let processor = format!(
            "https://{}:{}",
            checkout::HOST,
            self.processor.address.port()
        );
        let manager = caller(node, management_key).await?;
        let public = create_key(node, tenant, ApplicationKind::Public, &PUBLIC_PERMISSIONS);
        let public = public.await?;
        let private = create_key(node, tenant, ApplicationKind::Private, &PRIVATE_PERMISSIONS);
        let environment = BTreeMap::from([
            ("PORT", self.port.to_string()),
            ("VAULT_API_URL", format!("http://{api}")),
            ("VAULT_HOST", VAULT_HOST.to_owned()),
            ("VAULT_PUBLIC_KEY", public),
            ("VAULT_PRIVATE_KEY", private.await?),
            (
                "WEBHOOK_SECRET",
                create_webhook(node, &manager, webhook_url).await?,
            ),
            ("PROXY_KEY", create_proxy(node, &manager, &processor).await?),
        ]);
        let shop = SocketAddr::from((Ipv4Addr::LOCALHOST, self.port));
        let backends = [(SHOP_HOST, shop), (VAULT_HOST, api)];
        let backends: Arc<[Backend]> =
            Arc::new(backends.map(|(host, address)| Backend { host, address }));
        let ready = ShopReady {
            url,
            front: self.front.address,
            hosts: [SHOP_HOST, VAULT_HOST],
            public_key_sha256: self.front.tls.public_key_sha256.clone(),
            environment,
            is_server_external: self.is_server_external,
        };
        let mut front = JoinSet::new();
        front.spawn(self.front.run(backends));
        Ok(RunningShop {
            ready,
            _processor: self.processor,
            _front: front,
        })
    }
}

async fn create_key(
    node: &Node,
    tenant: &Tenant,
    kind: ApplicationKind,
    permissions: &[&str],
) -> anyhow::Result<String> {
    let grants = Grants {
        permissions: parse_permissions(permissions.iter().copied())?,
        rules: Vec::new(),
    };
    create_application(node, tenant, format!("Shop ({kind})"), kind, grants).await
}

/// The file of a program in `PATH`.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

async fn caller(node: &Node, key: &str) -> anyhow::Result<Caller> {
    let principal = authenticate(node, key).await;
    let principal = principal.map_err(|_| anyhow::anyhow!("no such key"))?;
    Ok(Caller::new(principal, "".into(), None))
}

/// Creates the proxy to the processor and returns its key. It adds the processor's key, which the shop does not have, and sends
/// payments only, with card data only where the processor expects it.
async fn create_proxy(node: &Node, caller: &Caller, processor: &str) -> anyhow::Result<String> {
    let new = serde_json::from_value(json!({
        "name": "Shop",
        "destination_url": processor,
        "configuration": {"KEY": checkout::SECRET_KEY},
        "request_transforms": [{"type": "append_header", "options":
            {"location": "Authorization", "value": "Bearer {{ config: KEY }}"}}],
        "allowed_requests": {
            "methods": ["POST"],
            "paths": ["/payments"],
            "expressions": {
                "body.source.number": "number",
                "body.source.expiry_month": "expiration_month",
                "body.source.expiry_year": "expiration_year",
                "body.source.cvv": "cvc",
            },
        },
    }))?;
    let created = proxies::create(&node.proxy, caller, new, &ResponseTemplate::none()).await;
    let created = created.context("cannot create the proxy of the shop")?;
    Ok(created.key().to_owned())
}

/// Creates the webhook and returns its secret.
async fn create_webhook(node: &Node, caller: &Caller, url: String) -> anyhow::Result<String> {
    let new = NewWebhook {
        name: Some("Shop".to_owned()),
        url: Some(url),
        events: Some(vec!["token.created".to_owned()]),
        ..NewWebhook::default()
    };
    let created = webhooks::create(&node.webhooks, caller, new, &ResponseTemplate::none()).await;
    let created = created.context("cannot create the webhook of the shop")?;
    Ok(created.secret.expose().clone())
}
