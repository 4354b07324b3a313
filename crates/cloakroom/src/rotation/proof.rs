//! Proofs that nothing is sealed under a version of a key any more: a full scan, signed by the audit authority.

use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_core::keys::{self, State};
use cloakroom_core::vault::Vault;
use cloakroom_crypto::KeyPurpose;
use cloakroom_management::tenants;
use cloakroom_platform::failpoint;
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

use super::advance::Step;
use super::store::{self, PhaseChange, TABLES};
use super::{Error, Phase, Rotation, entity_id};
use crate::node::Node;

/// Rows that one statement of the scan counts.
const PAGE: i64 = 20_000;
/// How often a scan is repeated that found rows which cannot be rewritten.
const REPEATED_EVERY_SECONDS: i64 = 60;
/// Longer than the period of the job.
const ATTEMPT_SECONDS: i64 = 2;

/// A signed statement.
#[derive(Clone, Debug)]
pub struct Proof {
    pub statement: String,
    pub signature: Vec<u8>,
}

/// Scans all rows of the tenant. If none is sealed under the old version, signs and stores that; otherwise, rewrites again.
///
/// The scan is not one snapshot. It need not be: since the old version was closed, every row that is written is sealed under
/// the new one. It keeps no position outside this process, so that SQL cannot shorten it.
pub(super) async fn prove(node: &Node, rotation: &Rotation) -> Result<Step, Error> {
    // Scans that are repeated until rows expire, or an operator restores or deletes them.
    let waited = rotation.read_at.duration_since(rotation.phase_at);
    let is_repeated = rotation.purpose == KeyPurpose::Reply || rotation.unreadable > 0;
    if is_repeated && waited.as_secs() % REPEATED_EVERY_SECONDS >= ATTEMPT_SECONDS {
        return Ok(Step::Waiting);
    }
    let (scanned, found) = match rotation.purpose {
        KeyPurpose::Reply => {
            let page = store::count_responses(&node.db, rotation.tenant, rotation.from).await?;
            (Vec::new(), page.found)
        }
        _ => scan(node, rotation.tenant, rotation.from).await?,
    };
    failpoint("rotation.scanned")?;
    if found > 0 {
        return match rotation.purpose {
            KeyPurpose::Reply => Ok(Step::Waiting),
            // Rows that do not open cannot be rewritten: an operator must decide, and nothing is gained by trying.
            _ if rotation.unreadable >= found => Ok(Step::Waiting),
            _ => {
                store::restart(&node.db, rotation).await?;
                Ok(Step::Changed)
            }
        };
    }
    let statement = statement(node, rotation, &scanned).await?;
    let proof = sign(node, statement).await?;
    failpoint("rotation.signed")?;
    let transaction = audit::begin(&node.audit).await?;
    let key = (rotation.tenant, rotation.purpose, rotation.from);
    let written = async {
        store::insert_proof(&transaction, key, &proof).await?;
        let change = PhaseChange::default();
        store::set_phase(&transaction, rotation, Phase::Proved, change).await
    };
    match written.await {
        Ok(true) => {
            let id = entity_id(rotation.purpose, rotation.from);
            let (operation, entity) = (Operation::Prove, EntityKind::EncryptionKey);
            let entry = Entry::by_system(rotation.tenant.number, operation, entity, id);
            transaction.commit(&[entry]).await?;
            Ok(Step::Changed)
        }
        Ok(false) => {
            transaction.roll_back().await;
            Ok(Step::Waiting)
        }
        Err(error) => {
            transaction.roll_back().await;
            Err(error.into())
        }
    }
}

/// Rows of each table, and how many of all are sealed under the version.
async fn scan(
    node: &Node,
    tenant: TenantId,
    version: u32,
) -> Result<(Vec<(&'static str, u64)>, u64), Error> {
    let (mut scanned, mut found) = (Vec::new(), 0);
    for (table, statement) in TABLES {
        let (mut rows, mut after) = (0, Uuid::nil());
        loop {
            let key = (tenant, version);
            let page = store::count_page(&node.db, statement, key, after, PAGE).await?;
            rows += page.rows;
            found += page.found;
            match page.last {
                Some(last) => after = last,
                None => break,
            }
        }
        scanned.push((table, rows));
    }
    Ok((scanned, found))
}

async fn statement(
    node: &Node,
    rotation: &Rotation,
    scanned: &[(&'static str, u64)],
) -> Result<String, Error> {
    let mut text = heading(node, (rotation.tenant, rotation.purpose, rotation.from));
    text.push_str(&format!("replaced by version: {}\n", rotation.to));
    for (table, rows) in scanned {
        text.push_str(&format!("rows of {table}: {rows}\n"));
    }
    text.push_str("rows under the version: 0\n");
    text.push_str(&format!("time: {}\n", node.clock.now().await?));
    Ok(text)
}

/// The first lines of a statement, which identify the key.
pub(super) fn heading(
    vault: &Vault,
    (tenant, purpose, version): (TenantId, KeyPurpose, u32),
) -> String {
    format!(
        "cloakroom key proof v1\nenvironment: {}\ntenant: {}\npurpose: {}\nversion: {version}\n",
        vault.keys.environment(),
        tenant.uuid,
        purpose.name(),
    )
}

pub(super) async fn sign(vault: &Vault, statement: String) -> Result<Proof, Error> {
    let authority = vault.keys.audit_authority();
    let signature = authority.sign(statement.as_bytes()).await?;
    Ok(Proof {
        statement,
        signature: signature.to_vec(),
    })
}

/// Finds the proof of a key; `None` if there is none. It must be authentic and about this key.
pub(super) async fn find(
    vault: &Vault,
    key: (TenantId, KeyPurpose, u32),
) -> Result<Option<Proof>, Error> {
    let Some(proof) = store::find_proof(&vault.db, key).await? else {
        return Ok(None);
    };
    let authority = vault.keys.audit_authority();
    let is_authentic = authority.verifies(proof.statement.as_bytes(), &proof.signature);
    match is_authentic && proof.statement.starts_with(&heading(vault, key)) {
        true => Ok(Some(proof)),
        false => Err(Error::FalseProof),
    }
}

/// Verifies that every destroyed key of every tenant has a proof. Returns one sentence for each that has none.
pub async fn verify_proofs(vault: &Vault) -> Result<Vec<String>, Error> {
    let mut findings = Vec::new();
    for tenant in tenants::list(vault).await? {
        let versions = match vault.keys.list_versions(tenant.id).await {
            // The verification of access states names the keys.
            Err(keys::Error::AlteredKeyset(_)) => continue,
            versions => versions?,
        };
        for key in versions {
            if key.state != State::Destroyed {
                continue;
            }
            let name = format!(
                "version {} of the {} key of tenant {}",
                key.version,
                key.purpose.name(),
                tenant.id.uuid
            );
            match find(vault, (tenant.id, key.purpose, key.version)).await {
                Ok(Some(_)) => {}
                Ok(None) => findings.push(format!("{name} was destroyed without a proof")),
                Err(Error::FalseProof) => findings.push(format!(
                    "the proof that {name} is unused was changed outside the vault"
                )),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(findings)
}
