//! Proofs that nothing depends on a version of a key any more: a full scan, signed by the audit authority.

use cloakroom_core::audit::{self, Operation};
use cloakroom_core::keys::{self, State, VAULT};
use cloakroom_core::vault::Vault;
use cloakroom_crypto::KeyPurpose;
use cloakroom_management::tenants;
use cloakroom_platform::failpoint;
use cloakroom_platform::ids::TenantId;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::advance::{Run, Step};
use super::digest_scan::Scan;
use super::store::{self, TABLES};
use super::{Error, Phase, Rotation, digest_scan, key_entry, remac};
use crate::node::Node;

/// Rows that one statement of the scan counts.
const PAGE: i64 = 20_000;
/// How often a scan is repeated that found rows which cannot be rewritten, and how often rewriting is tried again.
const REPEATED_EVERY_SECONDS: i64 = 60;
const REWRITTEN_EVERY_SECONDS: i64 = 600;
/// Longer than the period of the job.
const ATTEMPT_SECONDS: i64 = 2;

/// A response is stored for a day after its request was started; nodes stop using a key that was replaced within a minute.
const REQUEST_LIFETIME: SignedDuration = SignedDuration::from_hours(25);

/// The longest retention of a security code, the longest epoch of its key, and an hour in which nodes stop using a key that
/// was replaced.
const SECURITY_CODE_LIFETIME: SignedDuration = SignedDuration::from_mins(48 * 60 + 10 + 60);

/// A signed statement.
#[derive(Clone, Debug)]
pub struct Proof {
    pub statement: String,
    pub signature: Vec<u8>,
}

/// Whether nothing is rewritten under a new key: what the old one protects expires within two days.
pub(super) fn waits_for_expiry(purpose: KeyPurpose) -> bool {
    matches!(
        purpose,
        KeyPurpose::Reply | KeyPurpose::Request | KeyPurpose::SecurityCodeWrap
    )
}

/// Scans all rows of the tenant. If none is sealed under the old version, signs and stores that; otherwise, rewrites again.
///
/// The scan is not one snapshot. It need not be: since the old version was closed, every row that is written is sealed under
/// the new one. It keeps no position outside this process, so that SQL cannot shorten it.
pub(super) async fn prove(node: &Node, rotation: &Rotation, run: &mut Run) -> Result<Step, Error> {
    // Scans that are repeated until rows expire, or an operator restores or deletes them.
    let waited = rotation.read_at.duration_since(rotation.phase_at);
    let expires = waits_for_expiry(rotation.purpose);
    let is_repeated = expires || rotation.unreadable > 0;
    if is_repeated && waited.as_secs() % REPEATED_EVERY_SECONDS >= ATTEMPT_SECONDS {
        return Ok(Step::Waiting);
    }
    // SQL may have changed the table of rotations: only the authenticated states say which version was closed.
    let versions = node.keys.list_versions(rotation.tenant).await?;
    let is_closed = versions.iter().any(|key| {
        (key.purpose, key.version) == (rotation.purpose, rotation.from)
            && matches!(key.state, State::DecryptOnly | State::Destroyed)
    });
    if !is_closed {
        return Ok(Step::Waiting);
    }
    let Some((scanned, found)) = scan_all(node, rotation, run).await? else {
        return Ok(Step::Waiting);
    };
    failpoint("rotation.scanned")?;
    if found > 0 {
        return match rotation.purpose {
            _ if expires => Ok(Step::Waiting),
            // Rows that do not open cannot be rewritten. The next scan notices that an operator has deleted them, and
            // another attempt that they were restored.
            _ if rotation.unreadable >= found && waited.as_secs() < REWRITTEN_EVERY_SECONDS => {
                Ok(Step::Waiting)
            }
            // All rows were tried just now.
            _ if rotation.scanned > 0 && waited.as_secs() < REPEATED_EVERY_SECONDS => {
                Ok(Step::Waiting)
            }
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
        store::set_phase(&transaction, rotation, Phase::Proved, None).await
    };
    match written.await {
        Ok(true) => {
            let (tenant, purpose) = (rotation.tenant, rotation.purpose);
            let entry = key_entry(tenant, purpose, Operation::Prove, rotation.from);
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

/// Rows of each table, and how many of all depend on the old version. `None` if this node cannot scan at present.
async fn scan_all(node: &Node, rotation: &Rotation, run: &mut Run) -> Result<Scan, Error> {
    let found = match rotation.purpose {
        KeyPurpose::Data => return scan(node, rotation.tenant, rotation.from).await.map(Some),
        KeyPurpose::Fingerprint | KeyPurpose::Index => {
            return digest_scan::scan(node, rotation, run).await;
        }
        KeyPurpose::Control => return remac::scan(node, rotation, run).await,
        KeyPurpose::Reply => {
            let page = store::count_responses(&node.db, rotation.tenant, rotation.from).await?;
            page.found
        }
        KeyPurpose::Request => u64::from(any_requests(node, rotation).await?),
        KeyPurpose::SecurityCodeWrap => u64::from(any_security_codes(node, rotation).await?),
        // What it certified is verified by its public key, which the statement names.
        KeyPurpose::AuditAuthority => 0,
        other => return Err(Error::Purpose(other.name())),
    };
    Ok(Some((Vec::new(), found)))
}

/// Whether a request under the old version of its key may still be repeated. Rows do not name the version, so everything
/// that may be older than the last such request counts; it ends within a day.
async fn any_requests(node: &Node, rotation: &Rotation) -> Result<bool, Error> {
    let last = activated_at(node, rotation).await? + REQUEST_LIFETIME;
    Ok(store::any_requests(&node.db, rotation.tenant, last).await?)
}

/// Whether a key of security codes may be left that the old version wrapped: its id ends, authenticated, with the retention
/// of the last code that it encrypted.
async fn any_security_codes(node: &Node, rotation: &Rotation) -> Result<bool, Error> {
    let last = activated_at(node, rotation).await? + SECURITY_CODE_LIFETIME;
    Ok(node.clock.now().await? < last)
}

/// When the version after the old one was activated. Authenticated with the keyset, unlike the versions and times of the
/// rotation.
async fn activated_at(node: &Node, rotation: &Rotation) -> Result<Timestamp, Error> {
    let versions = node.keys.list_versions(rotation.tenant).await?;
    let mut versions = versions
        .iter()
        .filter(|key| key.purpose == rotation.purpose);
    let new = versions.find(|key| key.version == rotation.from + 1);
    new.and_then(|key| key.activated_at).ok_or(Error::Contended)
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
    match rotation.purpose {
        KeyPurpose::AuditAuthority => {
            let authority = node.keys.audit_authority();
            authority.reload().await?;
            text.push_str(&authority.former_lines());
        }
        _ => text.push_str("rows under the version: 0\n"),
    }
    text.push_str(&format!("time: {}\n", node.clock.now().await?));
    Ok(text)
}

/// The first lines of a statement, which identify the key.
pub(super) fn heading(vault: &Vault, key: (TenantId, KeyPurpose, u32)) -> String {
    keys::proof_heading(vault.keys.environment(), key)
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
    let Some((statement, signature)) = keys::find_proof(&vault.db, key).await? else {
        return Ok(None);
    };
    let proof = Proof {
        statement,
        signature,
    };
    let authority = vault.keys.audit_authority();
    let is_authentic = authority.verifies(proof.statement.as_bytes(), &proof.signature);
    match is_authentic && proof.statement.starts_with(&heading(vault, key)) {
        true => Ok(Some(proof)),
        false => Err(Error::FalseProof),
    }
}

/// Whether the active authority signed a proof. A former one may have leaked, so nothing is destroyed by its proofs.
pub(super) fn is_signed_by_active(vault: &Vault, proof: &Proof) -> bool {
    let authority = vault.keys.audit_authority();
    authority.is_signed_by_active(proof.statement.as_bytes(), &proof.signature)
}

/// Verifies that every destroyed key of the vault and of every tenant has a proof. Returns one sentence for each that has none.
pub async fn verify_proofs(vault: &Vault) -> Result<Vec<String>, Error> {
    let mut findings = Vec::new();
    let tenants = tenants::list(vault).await?;
    let owners = tenants.iter().map(|tenant| tenant.id);
    for owner in std::iter::once(VAULT).chain(owners) {
        let versions = match vault.keys.list_versions(owner).await {
            // The verification of access states names the keys.
            Err(keys::Error::AlteredKeyset(_)) => continue,
            versions => versions?,
        };
        for key in versions {
            if key.state != State::Destroyed {
                continue;
            }
            let of = match owner == VAULT {
                true => "the vault".to_owned(),
                false => format!("tenant {}", owner.uuid),
            };
            let (version, purpose) = (key.version, key.purpose.name());
            let name = format!("version {version} of the {purpose} key of {of}");
            match find(vault, (owner, key.purpose, key.version)).await {
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
