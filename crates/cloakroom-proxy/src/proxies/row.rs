//! The row of a proxy: sealed, and authenticated by a MAC.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use cloakroom_core::access::AuthenticatedRow;
use cloakroom_core::keys::{self, Record};
use cloakroom_core::vault::Vault;
use cloakroom_crypto::{PolicyDigest, Sensitive, secret_digest};
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

use super::Error;
use super::proxy::{Proxy, SealedPart};
use super::store::StoredProxy;
use crate::server::ProxyServer;

/// Domain of the digest of a proxy key.
const KEY_DOMAIN: &str = "proxy-key.v2";

/// The columns that decide where data goes and with which permissions.
#[derive(Clone)]
pub(super) struct ProxyRow {
    pub tenant_number: i32,
    pub id: Uuid,
    pub row_version: i32,
    pub name: String,
    pub destination_url: String,
    pub application: Option<Uuid>,
    pub key_digest: Vec<u8>,
    pub sealed: Vec<u8>,
}

impl AuthenticatedRow for ProxyRow {
    const DOMAIN: &'static str = "row.proxy.v1";

    fn parts(&self) -> Vec<Vec<u8>> {
        let application = self.application.map(|id| id.into_bytes().to_vec());
        vec![
            self.tenant_number.to_be_bytes().to_vec(),
            self.id.into_bytes().to_vec(),
            self.row_version.to_be_bytes().to_vec(),
            self.name.clone().into_bytes(),
            self.destination_url.clone().into_bytes(),
            application.unwrap_or_default(),
            self.key_digest.clone(),
            self.sealed.clone(),
        ]
    }
}

/// The digest under which a key is stored.
pub(super) fn key_digest(key: &str) -> [u8; 32] {
    secret_digest(KEY_DOMAIN, &[key.as_bytes()])
}

/// A name for a key, from which the key cannot be derived.
pub(crate) fn key_name(key: &str) -> String {
    URL_SAFE_NO_PAD.encode(key_digest(key))
}

/// The associated data of the sealed part.
pub(super) fn record(id: &Uuid, row_version: i32) -> Record<'_> {
    Record {
        kind: "proxy",
        id: id.as_bytes(),
        column: "sealed",
        row_version: row_version.unsigned_abs(),
        policy: PolicyDigest::new::<&str>("proxy", &[], None),
    }
}

/// Seals a proxy into its row.
pub(super) async fn seal(
    server: &ProxyServer,
    tenant: TenantId,
    proxy: &Proxy,
) -> Result<ProxyRow, Error> {
    let text = serde_json::to_vec(&proxy.sealed).map_err(|_| keys::Error::Seal)?;
    let text = Sensitive::new(text);
    let keys = server.keys.of(tenant).await?;
    let record = record(&proxy.id, proxy.row_version);
    Ok(ProxyRow {
        tenant_number: tenant.number,
        id: proxy.id,
        row_version: proxy.row_version,
        name: proxy.name.clone(),
        destination_url: proxy.destination_url.clone(),
        application: proxy.application,
        key_digest: key_digest(&proxy.sealed.key).to_vec(),
        sealed: keys.seal(&record, text.expose())?,
    })
}

/// Verifies a stored row and opens its sealed part.
pub(super) async fn open(
    vault: &Vault,
    tenant: TenantId,
    stored: StoredProxy,
) -> Result<Proxy, Error> {
    let row = stored.row;
    if !row.is_genuine(vault.keys.control(), &stored.row_mac) {
        return Err(Error::Altered("proxy"));
    }
    let record = record(&row.id, row.row_version);
    let opened = vault.keys.open(tenant, &record, &row.sealed).await?;
    let sealed: SealedPart =
        serde_json::from_slice(opened.expose()).map_err(|_| keys::Error::Integrity)?;
    Ok(Proxy {
        id: row.id,
        name: row.name,
        destination_url: row.destination_url,
        application: row.application,
        sealed,
        row_mac: stored.row_mac,
        row_version: row.row_version,
        created_by: stored.created_by,
        created_at: stored.created_at,
        modified_by: stored.modified_by,
        modified_at: stored.modified_at,
    })
}
