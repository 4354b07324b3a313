//! `cloakroom key rotate`, `status` and `retire`.

use anyhow::bail;
use clap::{Args, ValueEnum};
use cloakroom::access::Tenant;
use cloakroom::api::format_utc;
use cloakroom::config::Config;
use cloakroom::rotation::{self, Phase, Progress};
use cloakroom::{Vault, tenants};
use cloakroom_crypto::KeyPurpose;
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use serde_json::{Value, json};

use super::{find_tenant, open};
use crate::operator::operator;

/// Keys that can be rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RotatedKey {
    /// The key that encrypts a tenant's data
    Data,
    /// The key that encrypts responses stored for idempotency keys
    Reply,
    /// The key-encryption key of a tenant
    Kek,
    /// The root key: wraps everything below `root_key.previous` with `root_key`
    Root,
}

impl RotatedKey {
    fn purpose(self) -> Option<KeyPurpose> {
        match self {
            Self::Data => Some(KeyPurpose::Data),
            Self::Reply => Some(KeyPurpose::Reply),
            Self::Kek => Some(KeyPurpose::TenantKek),
            Self::Root => None,
        }
    }
}

#[derive(Args)]
pub(crate) struct Selection {
    /// Key to rotate
    #[arg(long)]
    purpose: RotatedKey,
    /// Tenant: id or name
    #[arg(long, value_name = "TENANT", conflicts_with = "all")]
    tenant: Option<String>,
    /// All tenants
    #[arg(long)]
    all: bool,
}

impl Selection {
    async fn tenants(&self, vault: &Vault) -> anyhow::Result<Vec<Tenant>> {
        match (&self.tenant, self.all) {
            (Some(tenant), _) => Ok(vec![find_tenant(vault, tenant).await?]),
            (None, true) => Ok(tenants::list(vault).await?),
            (None, false) => bail!("name a tenant with --tenant, or use --all"),
        }
    }
}

/// Starts rotations. Tenants whose key is being rotated already are named and skipped with `--all`.
pub(crate) async fn rotate(config: Config, selection: &Selection) -> anyhow::Result<()> {
    let vault = open(config).await?;
    let by = operator()?;
    let Some(purpose) = selection.purpose.purpose() else {
        let report = rotation::rotate_root(&vault, by.as_str()).await?;
        vault.audit.close().await;
        print_line!(
            "wrapped {} keys with root key {}; {} keys name another one",
            report.rewrapped,
            report.root,
            report.remaining
        );
        print_line!(
            "next: remove root_key.previous from the configuration of every node, and restart them"
        );
        return Ok(());
    };
    for tenant in selection.tenants(&vault).await? {
        let name = format!("{} key of tenant {}", purpose.name(), tenant.id.uuid);
        let started = match purpose {
            KeyPurpose::TenantKek => rotation::rotate_kek(&vault, tenant.id, by.as_str()).await,
            _ => rotation::start(&vault, tenant.id, purpose, by.as_str()).await,
        };
        match started {
            Ok(version) => print_line!("{name}: version {version}"),
            Err(error @ rotation::Error::UnderWay { .. }) if selection.all => {
                print_line!("{name}: {error}");
            }
            Err(error) => {
                vault.audit.close().await;
                return Err(error.into());
            }
        }
    }
    vault.audit.close().await;
    if purpose != KeyPurpose::TenantKek {
        print_line!("next: `cloakroom key status`; running nodes re-encrypt the data");
    }
    Ok(())
}

/// Prints all rotations.
pub(crate) async fn status(config: Config, as_json: bool) -> anyhow::Result<()> {
    let vault = open(config).await?;
    let rotations = rotation::status(&vault).await?;
    if as_json {
        let rotations: Vec<Value> = rotations.iter().map(to_json).collect();
        print_line!("{}", serde_json::to_string_pretty(&rotations)?);
        return Ok(());
    }
    if rotations.is_empty() {
        print_line!("No key was rotated yet; `cloakroom key rotate` starts a rotation.");
        return Ok(());
    }
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header([
        "tenant", "key", "version", "phase", "progress", "rows", "rows/s", "left", "started",
    ]);
    for progress in &rotations {
        table.add_row(to_row(progress));
    }
    print_line!("{table}");
    let is_proved = |progress: &&Progress| progress.rotation.phase == Phase::Proved;
    if let Some(proved) = rotations.iter().find(is_proved) {
        print_line!(
            "next: `cloakroom key retire --purpose {} --tenant {}` destroys version {}",
            proved.rotation.purpose.name(),
            proved.rotation.tenant.uuid,
            proved.rotation.from
        );
    }
    for progress in rotations.iter().filter(|it| it.rotation.unreadable > 0) {
        print_line!(
            "warning: {} rows of tenant {} do not decrypt; the old key cannot be destroyed before they are restored or \
             deleted",
            progress.rotation.unreadable,
            progress.rotation.tenant.uuid
        );
    }
    Ok(())
}

fn to_row(progress: &Progress) -> Vec<String> {
    let rotation = &progress.rotation;
    let left = progress.time_left.map(|left| format!("{left:#}"));
    vec![
        rotation.tenant.uuid.to_string(),
        rotation.purpose.name().to_owned(),
        format!("{} to {}", rotation.from, rotation.to),
        match progress.table {
            Some(table) => format!("{} {table}", rotation.phase.name()),
            None => rotation.phase.name().to_owned(),
        },
        format!("{:.1} %", 100.0 * progress.fraction),
        rotation.rewritten.to_string(),
        progress
            .rate
            .map_or_else(|| "-".to_owned(), |rate| format!("{rate:.0}")),
        left.unwrap_or_else(|| "-".to_owned()),
        format_utc(rotation.started_at),
    ]
}

fn to_json(progress: &Progress) -> Value {
    let rotation = &progress.rotation;
    json!({
        "tenant_id": rotation.tenant.uuid,
        "purpose": rotation.purpose.name(),
        "from_version": rotation.from,
        "to_version": rotation.to,
        "phase": rotation.phase.name(),
        "table": progress.table,
        "progress": progress.fraction,
        "rows_scanned": rotation.scanned,
        "rows_rewritten": rotation.rewritten,
        "rows_unreadable": rotation.unreadable,
        "rows_per_second": progress.rate,
        "seconds_left": progress.time_left.map(|left| left.as_secs()),
        "requested_by": rotation.requested_by,
        "started_at": format_utc(rotation.started_at),
        "phase_at": format_utc(rotation.phase_at),
    })
}

/// Destroys versions that were proved to be unused.
pub(crate) async fn retire(config: Config, selection: &Selection) -> anyhow::Result<()> {
    let vault = open(config).await?;
    let Some(purpose) = selection.purpose.purpose() else {
        bail!(
            "root keys are destroyed at their provider, after `cloakroom key rotate --purpose root`"
        );
    };
    for tenant in selection.tenants(&vault).await? {
        let name = format!("{} key of tenant {}", purpose.name(), tenant.id.uuid);
        match rotation::retire(&vault, tenant.id, purpose).await {
            Ok((version, proof)) => {
                print_line!(
                    "{name}: version {version} is destroyed\n{}",
                    proof.statement
                );
            }
            Err(error @ rotation::Error::NotProved(_)) if selection.all => {
                print_line!("{name}: {error}");
            }
            Err(error) => {
                vault.audit.close().await;
                return Err(error.into());
            }
        }
    }
    vault.audit.close().await;
    Ok(())
}
