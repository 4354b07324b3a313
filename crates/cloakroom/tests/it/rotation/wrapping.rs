//! Replacement of the keys that wrap keys: key-encryption keys of tenants, and the root key.

use cloakroom::keys::{self, RootKey, RootKeys};
use cloakroom::{Node, rotation};

use super::Fixture;

#[tokio::test]
async fn a_key_encryption_key_is_replaced_and_destroyed() {
    let fixture = Fixture::create(2).await;
    let vault = &fixture.vault.vault;
    fixture
        .execute("create table copy as select * from tenant_key")
        .await;

    let version = rotation::rotate_kek(vault, fixture.tenant.id, "tests")
        .await
        .unwrap();

    assert_eq!(version, 2);
    let other = fixture.vault.second_node().await;
    fixture
        .assert_readable(&fixture.client.at(&other.base_url))
        .await;
    let kept = "select count(*) from tenant_key join copy using (tenant_id, purpose, version)
        where tenant_key.wrapped = copy.wrapped";
    let row = fixture.database.query_one(kept, &[]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 0);
    assert_eq!(
        rotation::verify_proofs(vault).await.unwrap(),
        Vec::<String>::new()
    );
    let report = keys::inspect(&vault.db, vault.keys.root(), "test", &[fixture.tenant.id]).await;
    assert_eq!(report.unwrap().broken, Vec::<String>::new());
}

#[tokio::test]
async fn the_root_key_is_replaced_without_the_former_one_afterwards() {
    let fixture = Fixture::create(2).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new.key");
    keys::create_file(&file).unwrap();
    let mut config = fixture.vault.configuration();
    let former = config.root_key.file.replace(file).unwrap();
    let previous = folder.path().join("previous.toml");
    let text = format!("[root_key]\nfile = \"{}\"\n", former.display());
    std::fs::write(&previous, text).unwrap();
    config.root_key.previous = Some(previous);

    // A node with both serves before, while and after the keys are wrapped again.
    let both = Node::open(config.clone()).await.unwrap();
    let report = rotation::rotate_root(&both, "tests").await.unwrap();

    assert_eq!((report.rewrapped, report.remaining), (5, 0), "{report:?}");
    assert!(both.keys.of(fixture.tenant.id).await.is_ok());
    config.root_key.previous = None;
    let only_new = Node::open(config).await.unwrap();
    assert!(only_new.keys.of(fixture.tenant.id).await.is_ok());
    // The former root key alone opens nothing.
    let former = Node::open(fixture.vault.configuration())
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(former.contains("wrapped by another root key"), "{former}");
    let again = rotation::rotate_root(&only_new, "tests").await;
    assert!(matches!(again, Err(rotation::Error::SameRoot)), "{again:?}");
    let roots = RootKeys::new(RootKey::load(&fixture.vault.configuration().root_key).unwrap());
    let report = keys::inspect(&only_new.db, &roots, "test", &[fixture.tenant.id])
        .await
        .unwrap();
    assert_eq!(report.broken.len(), report.keys, "{:?}", report.broken);
}
