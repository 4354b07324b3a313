//! `cloakroom key rotate`, `status` and `retire`.

use anyhow::bail;
use clap::{Args, ValueEnum};
use cloakroom::api::format_utc;
use cloakroom::config::Config;
use cloakroom::ids::TenantId;
use cloakroom::keys::VAULT;
use cloakroom::rotation::{self, Phase, Progress};
use cloakroom::{Vault, tenants};
use cloakroom_crypto::KeyPurpose;
use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};
use serde_json::{Value, json};

use super::{find_tenant, open};
use crate::operator::operator;
use crate::output::{is_json, print_if_json, print_result};

/// Keys that can be rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum RotatedKey {
    /// The key that encrypts a tenant's data
    Data,
    /// The key of fingerprints, which change: see --changes-fingerprints
    Fingerprint,
    /// The key of search terms
    Index,
    /// The key that encrypts responses stored for idempotency keys
    Reply,
    /// The key that identifies requests with idempotency keys
    Request,
    /// The key-encryption key of a tenant
    Kek,
    /// The key of the vault that authenticates rows which grant permissions, and events
    Control,
    /// The key pair of the vault that certifies the keys with which nodes sign the audit log
    #[value(name = "audit_authority")]
    AuditAuthority,
    /// The key of the vault that wraps keys of security codes
    #[value(name = "security_code_wrap")]
    SecurityCodeWrap,
    /// The root key: wraps everything below `root_key.previous` with `root_key`
    Root,
}

impl RotatedKey {
    fn purpose(self) -> Option<KeyPurpose> {
        match self {
            Self::Data => Some(KeyPurpose::Data),
            Self::Fingerprint => Some(KeyPurpose::Fingerprint),
            Self::Index => Some(KeyPurpose::Index),
            Self::Reply => Some(KeyPurpose::Reply),
            Self::Request => Some(KeyPurpose::Request),
            Self::Kek => Some(KeyPurpose::TenantKek),
            Self::Control => Some(KeyPurpose::Control),
            Self::AuditAuthority => Some(KeyPurpose::AuditAuthority),
            Self::SecurityCodeWrap => Some(KeyPurpose::SecurityCodeWrap),
            Self::Root => None,
        }
    }

    /// Whether the vault has the key, and not each tenant.
    fn is_of_vault(self) -> bool {
        matches!(
            self,
            Self::Control | Self::AuditAuthority | Self::SecurityCodeWrap | Self::Root
        )
    }
}

#[derive(Args)]
pub(crate) struct Selection {
    /// Key to rotate
    #[arg(long)]
    purpose: RotatedKey,
    /// Tenant: id or name. Keys of the vault belong to no tenant
    #[arg(long, value_name = "TENANT", conflicts_with = "all")]
    tenant: Option<String>,
    /// All tenants
    #[arg(long)]
    all: bool,
}

impl Selection {
    async fn owners(&self, vault: &Vault) -> anyhow::Result<Vec<TenantId>> {
        if self.purpose.is_of_vault() {
            return match self.tenant {
                Some(_) => bail!("this key belongs to the vault; leave out --tenant"),
                None => Ok(vec![VAULT]),
            };
        }
        match (&self.tenant, self.all) {
            (Some(tenant), _) => Ok(vec![find_tenant(vault, tenant).await?.id]),
            (None, true) => {
                let tenants = tenants::list(vault).await?;
                Ok(tenants.into_iter().map(|tenant| tenant.id).collect())
            }
            (None, false) => bail!("name a tenant with --tenant, or use --all"),
        }
    }
}

/// What `rotate` needs besides the key.
#[derive(Args)]
pub(crate) struct Confirmation {
    /// Confirm that all fingerprints of the tenant change. Clients that store fingerprints must replace them before `key
    /// retire`; until then, searches find tokens by both
    #[arg(long)]
    changes_fingerprints: bool,
}

/// Starts rotations. Tenants whose key is being rotated already are named and skipped with `--all`.
pub(crate) async fn rotate(
    config: Config,
    selection: &Selection,
    confirmation: &Confirmation,
) -> anyhow::Result<()> {
    if selection.purpose == RotatedKey::Fingerprint && !confirmation.changes_fingerprints {
        bail!(
            "this changes every fingerprint of the tenant, and clients may store them; announce it, then confirm with \
             --changes-fingerprints"
        );
    }
    let vault = open(config).await?;
    let by = operator()?;
    let Some(purpose) = selection.purpose.purpose() else {
        return rotate_root(&vault, by.as_str()).await;
    };
    let mut results = Vec::new();
    for owner in selection.owners(&vault).await? {
        let name = format!("{} key of {}", purpose.name(), name_of(owner));
        let started = match purpose {
            KeyPurpose::TenantKek => rotation::rotate_kek(&vault, owner, by.as_str()).await,
            _ => rotation::start(&vault, owner, purpose, by.as_str()).await,
        };
        match started {
            Ok(version) => {
                print_text!("{name}: version {version}");
                results.push(result(owner, purpose, json!({"version": version})));
            }
            Err(error @ rotation::Error::UnderWay { .. }) if selection.all => {
                print_text!("{name}: {error}");
                let error = json!({"error": error.to_string()});
                results.push(result(owner, purpose, error));
            }
            Err(error) => {
                vault.audit.close().await;
                print_if_json(|| results.into());
                return Err(error.into());
            }
        }
    }
    vault.audit.close().await;
    print_if_json(|| results.into());
    if purpose != KeyPurpose::TenantKek {
        let work = match purpose {
            KeyPurpose::Data => "re-encrypt the data",
            KeyPurpose::Fingerprint | KeyPurpose::Index => {
                "compute the digests of all tokens again"
            }
            KeyPurpose::Control => "authenticate all rows again",
            KeyPurpose::AuditAuthority => "certify their next keys with the new version",
            KeyPurpose::SecurityCodeWrap => {
                "wait until the last key under the old version has ended"
            }
            _ => "wait until stored responses have expired",
        };
        print_text!("next: `cloakroom key status`; running nodes {work}");
    }
    Ok(())
}

/// Wraps the keys below the root key with the active one.
async fn rotate_root(vault: &Vault, by: &str) -> anyhow::Result<()> {
    let report = rotation::rotate_root(vault, by).await?;
    vault.audit.close().await;
    let lines = [
        format!(
            "wrapped {} keys with root key {}; {} keys name another one",
            report.rewrapped, report.root, report.remaining
        ),
        "next: remove root_key.previous from the configuration of every node, and restart them"
            .to_owned(),
    ];
    let object = json!({
        "purpose": "root",
        "root": report.root,
        "rewrapped": report.rewrapped,
        "remaining": report.remaining,
    });
    print_result(&object, &lines);
    Ok(())
}

/// The result for one key as JSON.
fn result(owner: TenantId, purpose: KeyPurpose, outcome: Value) -> Value {
    let mut object = json!({
        "tenant_id": (owner != VAULT).then_some(owner.uuid),
        "purpose": purpose.name(),
    });
    if let (Some(members), Value::Object(outcome)) = (object.as_object_mut(), outcome) {
        members.extend(outcome);
    }
    object
}

fn name_of(owner: TenantId) -> String {
    match owner == VAULT {
        true => "the vault".to_owned(),
        false => format!("tenant {}", owner.uuid),
    }
}

/// Prints all rotations.
pub(crate) async fn status(config: Config, as_json: bool) -> anyhow::Result<()> {
    let vault = open(config).await?;
    let rotations = rotation::status(&vault).await?;
    if as_json || is_json() {
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
        let owner = proved.rotation.tenant;
        let of = match owner == VAULT {
            true => String::new(),
            false => format!(" --tenant {}", owner.uuid),
        };
        print_line!(
            "next: `cloakroom key retire --purpose {}{of}` destroys version {}",
            proved.rotation.purpose.name(),
            proved.rotation.from
        );
    }
    for progress in rotations.iter().filter(|it| it.rotation.unreadable > 0) {
        print_line!(
            "warning: {} rows of {} do not verify; the old key cannot be destroyed before they are restored or deleted",
            progress.rotation.unreadable,
            name_of(progress.rotation.tenant)
        );
    }
    Ok(())
}

fn to_row(progress: &Progress) -> Vec<String> {
    let rotation = &progress.rotation;
    let left = progress.time_left.map(|left| format!("{left:#}"));
    vec![
        match rotation.tenant == VAULT {
            true => "vault".to_owned(),
            false => rotation.tenant.uuid.to_string(),
        },
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
        "tenant_id": (rotation.tenant != VAULT).then_some(rotation.tenant.uuid),
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
    let mut results = Vec::new();
    for owner in selection.owners(&vault).await? {
        let name = format!("{} key of {}", purpose.name(), name_of(owner));
        match rotation::retire(&vault, owner, purpose).await {
            Ok((version, proof)) => {
                print_text!(
                    "{name}: version {version} is destroyed\n{}",
                    proof.statement
                );
                let retired = json!({"destroyed_version": version, "proof": proof.statement});
                results.push(result(owner, purpose, retired));
            }
            Err(error @ rotation::Error::NotProved(_)) if selection.all => {
                print_text!("{name}: {error}");
                let error = json!({"error": error.to_string()});
                results.push(result(owner, purpose, error));
            }
            Err(error) => {
                vault.audit.close().await;
                print_if_json(|| results.into());
                return Err(error.into());
            }
        }
    }
    vault.audit.close().await;
    print_if_json(|| results.into());
    Ok(())
}
