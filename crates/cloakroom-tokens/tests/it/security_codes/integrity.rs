//! Altered rows, and leaks of codes and keys.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use cloakroom::keys::{RootKey, RootKeys};
use cloakroom_crypto::{Key, SecurityCodeWrap, WrapContext};
use cloakroom_testkit::{LogCapture, TestDatabase, TestRedis, TestServer};

use super::{Fixture, read, run_jobs};

/// Longer than a real code, so that it does not occur by chance.
const CANARY: &str = "canary-of-a-code-9071";

#[tokio::test]
async fn altered_rows_are_rejected_and_logged() {
    let attacks = [
        "update security_code set sealed = (select sealed from security_code where token_id = $2)
         where token_id = $1",
        "update security_code set sealed = set_byte(sealed, 40, get_byte(sealed, 40) # 1)
         where token_id = $1 or $2::uuid is null",
        "update security_code set sealed = substr(sealed, 1, 20)
         where token_id = $1 or $2::uuid is null",
        "update security_code set key_id = '\\x00' where token_id = $1 or $2::uuid is null",
        "update security_code set expires_at = expires_at + interval '1 second'
         where token_id = $1 or $2::uuid is null",
    ];
    let fixture = Fixture::with_redis().await;
    let node = &fixture.vault.vault;
    for attack in attacks {
        let lines = LogCapture::start();
        let token = fixture.store(node, "123").await;
        let another = fixture.store(node, "456").await;
        assert_eq!(fixture.read(node, &token).await.as_deref(), Some("123"));

        let tampered = fixture.database.execute(attack, &[&token, &another]).await;
        assert_eq!(tampered.unwrap(), 1);

        assert_eq!(fixture.read(node, &token).await, None, "{attack}");
        assert_eq!(lines.count("integrity_error"), 1, "{}", lines.text());
        assert_eq!(fixture.read(node, &another).await.as_deref(), Some("456"));
    }
}

#[tokio::test]
async fn codes_moved_to_another_tenant_are_rejected() {
    let fixture = Fixture::alone().await;
    let node = &fixture.vault.vault;
    let token = fixture.store(node, "123").await;
    let other_tenant = fixture.vault.tenant().await;
    let foreign = read(node, &other_tenant, &token).await;

    fixture
        .sql(&format!(
            "update security_code set tenant_id = {}",
            other_tenant.id.number
        ))
        .await;

    assert_eq!(foreign, None);
    assert_eq!(read(node, &other_tenant, &token).await, None);
    assert_eq!(fixture.read(node, &token).await, None);
}

#[tokio::test]
async fn codes_and_keys_do_not_leak_to_disk_or_logs() {
    let server = TestServer::start().await;
    let database = TestDatabase::on(&server.postgres.url()).await;
    let lines = LogCapture::start();
    let fixture = Fixture::start(database, Some(TestRedis::start(&[]).await), |_| {}).await;
    let (node, other) = (&fixture.vault.vault, fixture.another_node().await);
    let _jobs = run_jobs(node);

    let token = fixture.store(node, CANARY).await;
    assert_eq!(fixture.read(&other, &token).await.as_deref(), Some(CANARY));
    fixture
        .sql("update security_code set sealed = substr(sealed, 1, 20)")
        .await;
    assert_eq!(fixture.read(&other, &token).await, None);
    fixture.sql("checkpoint").await;

    let names = fixture.redis().keys().await;
    let wrapped = fixture.redis().value(&names[0]).await;
    let key = unwrap_key(&fixture, &names[0], &wrapped).await;
    let mut media = vec![
        ("dump", fixture.vault.database.dump(&[]).into_bytes()),
        ("node log", lines.text().into_bytes()),
        (
            "server log",
            std::fs::read(server.postgres.log_file()).unwrap(),
        ),
    ];
    for_each_file(&server.postgres.data_folder(), &mut |bytes| {
        media.push(("data or wal", bytes));
    });
    let searched: usize = media.iter().map(|(_, bytes)| bytes.len()).sum();
    println!("searched {searched} bytes");
    for secret in [CANARY.as_bytes(), &key, &wrapped] {
        for (place, bytes) in &media {
            assert!(!contains(bytes, secret), "{place}");
        }
        // A dump shows bytes in hexadecimal.
        assert!(!contains(&media[0].1, hex::encode(secret).as_bytes()));
    }
    assert_eq!(wrapped.len(), 90);
    for secret in [CANARY.as_bytes(), &key] {
        assert!(!contains(&wrapped, secret));
    }
    // Positive control: the key id is in the row in plaintext.
    let id = names[0].rsplit(':').next().unwrap();
    assert!(contains(&media[0].1, id.as_bytes()));
}

/// Unwraps a published key, which only a node can do, by the specification of the format.
async fn unwrap_key(fixture: &Fixture, name: &str, wrapped: &[u8]) -> Vec<u8> {
    let root = RootKey::load(&fixture.vault.vault.config.root_key).unwrap();
    let row = "select wrapped from system_key where purpose = 13";
    let row = fixture.database.query_one(row, &[]).await.unwrap();
    let context = WrapContext {
        environment: "test",
        tenant: None,
        version: 1,
    };
    let kek: Key<SecurityCodeWrap> = RootKeys::new(root)
        .unwrap(row.get(0), &context)
        .await
        .unwrap();
    let id = hex::decode(name.rsplit(':').next().unwrap()).unwrap();
    // The version of the wrapping key precedes what it wrapped.
    let wrapped = wrapped.strip_prefix(&1_u32.to_be_bytes()).unwrap();
    let mut aad = vec![];
    let version = 1_u32.to_be_bytes();
    for field in [
        b"wrap.v1",
        &b"test"[..],
        &id,
        b"security_code",
        &[1],
        &[1],
        &version,
        &wrapped[2..10],
    ] {
        aad.extend_from_slice(&u16::try_from(field.len()).unwrap().to_be_bytes());
        aad.extend_from_slice(field);
    }
    let mut key = [0; 32];
    let kek = kek.expose_for_custody();
    Salt::new(HKDF_SHA256, &wrapped[10..26])
        .extract(kek.expose())
        .expand(&[b"wrap.v1"], HKDF_SHA256)
        .unwrap()
        .fill(&mut key)
        .unwrap();
    let key = LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).unwrap());
    let nonce = Nonce::try_assume_unique_for_key(&wrapped[26..38]).unwrap();
    let mut sealed = wrapped[38..].to_vec();
    let opened = key.open_in_place(nonce, Aad::from(aad), &mut sealed);
    opened.unwrap().to_vec()
}

fn contains(bytes: &[u8], secret: &[u8]) -> bool {
    memchr::memmem::find(bytes, secret).is_some()
}

fn for_each_file(folder: &std::path::Path, look: &mut dyn FnMut(Vec<u8>)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            for_each_file(&path, look);
        } else if let Ok(bytes) = std::fs::read(&path) {
            look(bytes);
        }
    }
}
