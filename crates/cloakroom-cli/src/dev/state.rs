//! What outlives a run of `cloakroom dev --data`: the root key, and the tenant with its keys.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use cloakroom::access::Tenant;
use cloakroom::tenants::{self, NewTenant};
use cloakroom::{Vault, keys};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::environment::write_private;
use super::ready::Keys;
use super::tenant::add_members;

/// The tenant and its keys, as stored in the folder of `--data`.
#[derive(Deserialize, Serialize)]
struct Stored {
    tenant_id: Uuid,
    keys: Keys,
}

/// The path of the root key in a folder, created on first use.
pub(super) fn root_key(folder: &Path) -> anyhow::Result<PathBuf> {
    let path = folder.join("root.key");
    if !path.exists() {
        keys::create_file(&path)?;
    }
    Ok(path)
}

/// Returns the tenant of the folder of `--data`, or creates one.
pub(super) async fn tenant(
    vault: &Vault,
    new: NewTenant,
    data: Option<&Path>,
) -> anyhow::Result<(Tenant, Keys)> {
    let file = data.map(|data| data.join("tenant.json"));
    if let Some(text) = file.as_ref().and_then(|file| std::fs::read(file).ok()) {
        let stored: Stored = serde_json::from_slice(&text)
            .with_context(|| "tenant.json in the folder of --data is not valid")?;
        return Ok((tenants::find(vault, stored.tenant_id).await?, stored.keys));
    }
    let tenant = tenants::create(vault, new).await?;
    add_members(vault, &tenant).await?;
    let keys = Keys::create(vault, &tenant).await?;
    let stored = Stored {
        tenant_id: tenant.id.uuid,
        keys,
    };
    if let Some(file) = file {
        write_private(&file, &serde_json::to_string_pretty(&stored)?)?;
    }
    Ok((tenant, stored.keys))
}
