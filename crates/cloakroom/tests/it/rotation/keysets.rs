//! Keys that SQL inserts, restores or activates: nothing is encrypted or decrypted with them.

use cloakroom::access::{self, Anchored};
use cloakroom::rotation::{self, Phase};
use cloakroom::{Node, access_change};
use cloakroom_crypto::KeyPurpose;

use super::Fixture;

/// What a node with empty caches says to a request, and what a verification says.
async fn examine(fixture: &Fixture) -> (String, Vec<String>) {
    let other = fixture.vault.try_node_with(|_| {}).await;
    let code = match &other {
        Ok(other) => {
            let client = fixture.client.at(&other.base_url);
            let path = format!("/tokens/{}", fixture.tokens[0]);
            let read = client.get(&path).await;
            read.body["code"].as_str().unwrap_or("read").to_owned()
        }
        Err(error) => error.to_string(),
    };
    let vault = &fixture.vault.vault;
    let findings = access::verify_states(&vault.db, vault.keys.control()).await;
    (code, findings.unwrap())
}

#[tokio::test]
async fn no_key_is_used_whose_state_sql_has_changed() {
    let fixture = Fixture::create(1).await;
    fixture.rotate().await;
    fixture
        .execute("create table intact as select * from tenant_key")
        .await;
    let attacks = [
        "update tenant_key set state = case version when 1 then 2 else 3 end where purpose = 3 and version = 2",
        "update tenant_key set state = 5 where purpose = 3 and version = 1",
        "update tenant_key set state = 1 where purpose = 4",
        "update tenant_key set check_value = set_byte(check_value, 0, get_byte(check_value, 0) # 1)
            where purpose = 3 and version = 2",
        "update tenant_key set created_at = created_at - interval '1 year' where purpose = 5",
        "update tenant_key set activated_at = null where purpose = 3 and version = 2",
        "insert into tenant_key select tenant_id, purpose, 3, 1, wrapped, check_value, created_at, activated_at
            from tenant_key where purpose = 3 and version = 2",
        "delete from tenant_key where purpose = 3 and version = 1",
    ];
    assert_eq!(examine(&fixture).await, ("read".to_owned(), vec![]));
    for attack in attacks {
        assert_eq!(fixture.execute(attack).await, 1, "{attack}");

        let (code, findings) = examine(&fixture).await;

        assert_eq!(code, "altered_keyset", "{attack}");
        assert_eq!(findings.len(), 1, "{attack}: {findings:?}");
        assert!(findings[0].contains("bucket 256"), "{attack}: {findings:?}");
        fixture.execute("delete from tenant_key").await;
        fixture
            .execute("insert into tenant_key select * from intact")
            .await;
    }
    assert_eq!(examine(&fixture).await, ("read".to_owned(), vec![]));
}

#[tokio::test]
async fn keys_of_the_vault_are_authenticated_as_well() {
    let fixture = Fixture::create(1).await;
    let attack = "update system_key set state = 3 where purpose = 13";
    fixture.execute(attack).await;

    let opened = Node::open(fixture.vault.configuration()).await;

    let error = opened.err().unwrap().to_string();
    assert!(
        error.contains("the keys of the vault were inserted"),
        "{error}"
    );
    let vault = &fixture.vault.vault;
    let findings = access::verify_states(&vault.db, vault.keys.control())
        .await
        .unwrap();
    assert!(
        findings[0].starts_with("the vault, bucket 256"),
        "{findings:?}"
    );
}

#[tokio::test]
async fn an_older_keyset_is_refused_by_nodes_that_know_a_newer_one() {
    let fixture = Fixture::create(1).await;
    fixture
        .execute("create table keys as select * from tenant_key")
        .await;
    let states =
        "create table states as select * from access_state where bucket = 256 and tenant_id = 1";
    fixture.execute(states).await;
    let vault = &fixture.vault.vault;
    vault.audit.checkpoint().await.unwrap();
    fixture.rotate().await;
    rotation::retire(vault, fixture.tenant.id, KeyPurpose::Data)
        .await
        .unwrap();
    vault.audit.checkpoint().await.unwrap();
    for sql in [
        "delete from tenant_key",
        "insert into tenant_key select * from keys",
        "delete from access_state where bucket = 256 and tenant_id = 1",
        "insert into access_state select * from states",
    ] {
        fixture.execute(sql).await;
    }

    vault.keys.evict(fixture.tenant.id).await;
    let path = format!("/tokens/{}", fixture.tokens[0]);
    let read = fixture.client.get(&path).await;

    assert_eq!(read.body["code"], "altered_keyset", "{}", read.body);
    let verified = cloakroom::audit::verify(&vault.audit, None, |_| {})
        .await
        .unwrap();
    let findings: Vec<String> = verified.findings.iter().map(ToString::to_string).collect();
    assert_eq!(findings.len(), 1, "{findings:?}");
}

#[tokio::test]
async fn accepting_rights_accepts_no_keys() {
    let fixture = Fixture::create(1).await;
    let (vault, tenant) = (&fixture.vault.vault, fixture.tenant.id);
    fixture
        .execute("update tenant_key set state = 5 where purpose = 3")
        .await;

    access_change::reanchor(vault, tenant, Anchored::Access)
        .await
        .unwrap();
    assert_eq!(examine(&fixture).await.0, "altered_keyset");

    fixture
        .execute("update tenant_key set state = 2 where purpose = 3")
        .await;
    access_change::reanchor(vault, tenant, Anchored::Keys)
        .await
        .unwrap();
    assert_eq!(examine(&fixture).await, ("read".to_owned(), vec![]));
}

#[tokio::test]
async fn forged_progress_changes_no_key() {
    let fixture = Fixture::create(1).await;
    let node = &fixture.vault.vault;
    // A rotation that no operator started, in each phase that changes states.
    for phase in [1, 2] {
        fixture.execute("delete from key_rotation").await;
        fixture
            .execute(&format!(
                "insert into key_rotation (tenant_id, purpose, to_version, from_version, phase, generation, requested_by)
                values (1, 3, 2, 1, {phase}, 0, 'nobody')"
            ))
            .await;

        let advanced = rotation::work(node, super::HOLDER).await;

        assert!(advanced.is_err(), "{phase}");
        assert_eq!(examine(&fixture).await, ("read".to_owned(), vec![]));
    }
    fixture.execute("delete from key_rotation").await;
    fixture.rotate().await;
    // A finished rotation is started again.
    rotation::retire(node, fixture.tenant.id, KeyPurpose::Data)
        .await
        .unwrap();
    fixture.execute("update key_rotation set phase = 1").await;
    assert!(rotation::work(node, super::HOLDER).await.is_err());
    assert_eq!(examine(&fixture).await, ("read".to_owned(), vec![]));
    fixture.execute("update key_rotation set phase = 4").await;
    fixture.advance_to(Phase::Proved).await;
    assert_eq!(examine(&fixture).await, ("read".to_owned(), vec![]));
}

/// A proof of a version that is closed later would permit to destroy it, with all its rows.
#[tokio::test]
async fn forged_progress_proves_nothing_about_versions_in_use() {
    let fixture = Fixture::create(1).await;
    let node = &fixture.vault.vault;
    for from in [1, 2] {
        fixture.execute("delete from key_rotation").await;
        fixture
            .execute(&format!(
                "insert into key_rotation (tenant_id, purpose, to_version, from_version, phase, generation, requested_by)
                values (1, 3, {from} + 1, {from}, 5, 0, 'forged')"
            ))
            .await;

        for _ in 0..5 {
            rotation::work(node, super::HOLDER).await.unwrap();
        }

        assert_eq!(fixture.phase().await, Phase::Proving);
        let proofs = fixture.database.query("select from key_proof", &[]).await;
        assert_eq!(proofs.unwrap().len(), 0, "{from}");
    }
    assert_eq!(examine(&fixture).await, ("read".to_owned(), vec![]));
}
