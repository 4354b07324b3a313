//! Rotation of the keys of the vault: the audit authority, and the key that wraps security-code keys.

use cloakroom::access::Anchored;
use cloakroom::audit::{self, ALL_DAYS, Finding, read_records, verify_export};
use cloakroom::keys::{AuthorityKey, VAULT};
use cloakroom::rotation::{self, Phase};
use cloakroom::{Node, access_change, rate_limits};
use cloakroom_crypto::KeyPurpose;
use cloakroom_platform::failpoints::arm;
use tokio::time::{Duration, sleep};

use super::interruptions::Load;
use super::{Fixture, HOLDER, advance_to, new_token};

const AUTHORITY: KeyPurpose = KeyPurpose::AuditAuthority;

async fn start(node: &Node, purpose: KeyPurpose) -> u32 {
    rotation::start(node, VAULT, purpose, "tests")
        .await
        .unwrap()
}

async fn retire(node: &Node, purpose: KeyPurpose) -> Result<u32, String> {
    let retired = rotation::retire(node, VAULT, purpose).await;
    retired
        .map(|(version, _)| version)
        .map_err(|error| error.to_string())
}

/// Sets when the second version of a key of the vault was activated, and accepts that.
async fn set_activation(fixture: &Fixture, purpose: KeyPurpose, ago: &str) {
    let (number, vault) = (purpose.number(), &fixture.vault.vault);
    let sql = format!(
        "update system_key set activated_at = now() - interval '{ago}' where purpose = {number} and version = 2"
    );
    assert_eq!(fixture.execute(&sql).await, 1);
    access_change::reanchor(vault, VAULT, Anchored::Keys)
        .await
        .unwrap();
}

async fn export(node: &Node) -> String {
    let mut text = Vec::new();
    audit::export(&node.audit, ALL_DAYS, &mut text, |_| {})
        .await
        .unwrap();
    String::from_utf8(text).unwrap()
}

fn findings_with(text: &str, keys: &[AuthorityKey]) -> Vec<Finding> {
    let records = read_records(text.as_bytes());
    let verified = verify_export(records, keys.to_vec(), ALL_DAYS, None, |_| {});
    verified.unwrap().findings
}

async fn findings(node: &Node) -> Vec<Finding> {
    let verified = audit::verify(&node.audit, None, |_| {}).await;
    verified.unwrap().findings
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_of_two_audit_authorities_verifies() {
    let fixture = Fixture::create(2).await;
    let vault = &fixture.vault.vault;
    vault.audit.checkpoint().await.unwrap();
    let former = vault.keys.audit_authority().public_key();

    assert_eq!(start(vault, AUTHORITY).await, 2);
    advance_to(vault, Phase::Proved).await;
    // Certified by the new version.
    let other = fixture.vault.second_node().await;
    let created = fixture.client.at(&other.base_url);
    assert_eq!(created.post("/tokens", new_token(7)).await.status, 201);
    other.vault.audit.checkpoint().await.unwrap();
    vault.audit.checkpoint().await.unwrap();
    assert_eq!(findings(vault).await, []);
    assert_eq!(retire(vault, AUTHORITY).await, Ok(1));

    let wrapped =
        "select state, length(wrapped) from system_key where purpose = 11 and version = 1";
    let row = fixture.database.query_one(wrapped, &[]).await.unwrap();
    assert_eq!((row.get::<_, i16>(0), row.get::<_, i32>(1)), (4, 0));
    // The node knows the former public key by the proof only.
    let third = fixture.vault.second_node().await;
    let keys = third.vault.keys.audit_authority().public_keys();
    let known: Vec<[u8; 32]> = keys.iter().map(|key| key.public_key).collect();
    assert_eq!(known.len(), 2);
    assert_eq!(known[1], former);
    assert_eq!(findings(&third.vault).await, []);
    assert_eq!(
        rotation::verify_proofs(vault).await.unwrap(),
        Vec::<String>::new()
    );

    // Offline: the active key suffices, because the export states the former one.
    let text = export(&third.vault).await;
    assert_eq!(findings_with(&text, &keys[..1]), []);
    assert_eq!(findings_with(&text, &keys), []);
    let (stated, rest) = text.split_once('\n').unwrap();
    assert!(stated.starts_with("{\"authorities\""), "{stated}");
    assert_eq!(findings_with(rest, &keys), []);
    let with_active_only = findings_with(rest, &keys[..1]);
    assert!(!with_active_only.is_empty());
    // A thief of the former key cannot state that it is the active one.
    assert!(!findings_with(&text, &[former.into()]).is_empty());

    // SQL puts off the end of the former authority.
    fixture
        .execute("update key_proof set statement = replace(statement, ' until 2', ' until 3')")
        .await;
    let fourth = Node::open(fixture.vault.configuration()).await.unwrap();
    assert_eq!(fourth.keys.audit_authority().public_keys().len(), 1);
    assert!(!findings(&fourth).await.is_empty());
    let proofs = rotation::verify_proofs(&fourth).await.unwrap();
    assert_eq!(proofs.len(), 1, "{proofs:?}");
}

/// The private key of a former authority leaks after its end: what it certifies for later days is a finding.
#[tokio::test]
async fn what_a_former_authority_certifies_after_its_end_is_a_finding() {
    let fixture = Fixture::create(1).await;
    let vault = &fixture.vault.vault;
    start(vault, AUTHORITY).await;
    fixture.advance_until("rotation.scanned", 1).await;
    assert_eq!(fixture.phase().await, Phase::Proving);
    assert_eq!(findings(vault).await, []);

    // It ended three days ago, so it could not certify a key of today.
    set_activation(&fixture, AUTHORITY, "3 days").await;
    advance_to(vault, Phase::Proved).await;

    let is_unknown_key = |finding: &Finding| matches!(finding, Finding::UnknownKey { .. });
    let online = findings(vault).await;
    assert!(online.iter().any(is_unknown_key), "{online:?}");
    let text = export(vault).await;
    let keys = vault.keys.audit_authority().public_keys();
    let offline = findings_with(&text, &keys[..1]);
    assert!(offline.iter().any(is_unknown_key), "{offline:?}");
    assert_eq!(retire(vault, AUTHORITY).await, Ok(1));
    let third = Node::open(fixture.vault.configuration()).await.unwrap();
    assert!(findings(&third).await.iter().any(is_unknown_key));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_authority_is_replaced_while_nodes_die() {
    let fixture = Fixture::create(2).await;
    let vault = &fixture.vault.vault;
    let other = fixture.vault.second_node().await;
    let on_other = fixture.client.at(&other.base_url);
    let load = Load::start(vec![fixture.client.clone(), on_other]);
    let points = [
        ("rotation.before_change", 1),
        ("rotation.within_change", 1),
        ("rotation.after_change", 1),
        ("rotation.within_change", 2),
        ("rotation.after_change", 2),
        ("rotation.drained", 1),
        ("rotation.scanned", 1),
        ("rotation.signed", 1),
    ];
    for (round, (name, hits)) in points.into_iter().enumerate() {
        start(vault, AUTHORITY).await;
        arm(name, hits);
        let mut died = false;
        for _ in 0..200 {
            died = rotation::work(vault, HOLDER).await.is_err();
            if died || fixture.phase().await == Phase::Proved {
                break;
            }
            // Both nodes state the heads of their chains under keys of either authority.
            vault.audit.checkpoint().await.unwrap();
            other.vault.audit.checkpoint().await.unwrap();
            rate_limits::write_heartbeat(&other.vault.rate_limits)
                .await
                .unwrap();
            sleep(Duration::from_millis(5)).await;
        }
        assert!(died, "{name} {hits} was not reached");
        advance_to(&other.vault, Phase::Proved).await;
        let version = u32::try_from(round + 1).unwrap();
        assert_eq!(retire(vault, AUTHORITY).await, Ok(version), "{name}");
    }
    let (requests, failures) = load.finish().await;
    assert_eq!(failures, Vec::<String>::new(), "of {requests}");
    assert!(requests > 10);
    let fresh = Node::open(fixture.vault.configuration()).await.unwrap();
    assert_eq!(fresh.keys.audit_authority().public_keys().len(), 9);
    assert_eq!(findings(&fresh).await, []);
    assert_eq!(
        rotation::verify_proofs(&fresh).await.unwrap(),
        Vec::<String>::new()
    );
}

/// A former authority may have leaked: nothing is destroyed by what it signed.
#[tokio::test]
async fn a_proof_of_a_former_authority_destroys_no_key() {
    let fixture = Fixture::create(1).await;
    let vault = &fixture.vault.vault;
    fixture.rotate().await;
    start(vault, AUTHORITY).await;
    advance_to(vault, Phase::Proved).await;

    let early = rotation::retire(vault, fixture.tenant.id, KeyPurpose::Data).await;

    let early = early.unwrap_err().to_string();
    assert!(
        early.contains("the audit authority was replaced"),
        "{early}"
    );
    for _ in 0..50 {
        rotation::work(vault, HOLDER).await.unwrap();
    }
    let retired = rotation::retire(vault, fixture.tenant.id, KeyPurpose::Data).await;
    assert_eq!(retired.unwrap().0, 1);
    assert_eq!(
        rotation::verify_proofs(vault).await.unwrap(),
        Vec::<String>::new()
    );
}
