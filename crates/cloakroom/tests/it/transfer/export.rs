//! Exports: two persons, the receiver's key, and a manifest that matches.

use std::path::{Path, PathBuf};

use cloakroom::access::{Container, Tenant, Transform};
use cloakroom::tokens::{ExportFilter, TokenVault};
use cloakroom::transfer::PublicKey;
use cloakroom::transfer::export::{self, Error, Manifest, NewExport};
use cloakroom_testkit::{TestVault, everything};
use serde_json::json;
use tempfile::TempDir;
use uuid::Uuid;

use super::{card_number, cards, count, import_lines, key_pair, operator, read_key};

/// A vault with tokens, and a receiver.
pub(super) struct Source {
    pub(super) vault: TestVault,
    pub(super) tenant: Tenant,
    pub(super) folder: TempDir,
    pub(super) private: PathBuf,
    receiver: PublicKey,
}

impl Source {
    pub(super) async fn start() -> Self {
        let vault = TestVault::start().await;
        let folder = tempfile::tempdir().unwrap();
        let (private, receiver) = key_pair(folder.path());
        Self {
            tenant: vault.tenant().await,
            vault,
            folder,
            private,
            receiver,
        }
    }

    pub(super) async fn request(&self, filter: ExportFilter) -> Uuid {
        let new = NewExport {
            filter,
            receiver: self.receiver,
            reason: "Move to another vault".to_owned(),
        };
        let ada = operator("ada");
        let requested = export::request(&self.vault.vault, &self.tenant, new, &ada).await;
        requested.unwrap().id
    }

    async fn approve(&self, id: Uuid, user: &str) -> Result<(), Error> {
        let receiver = self.receiver.fingerprint();
        self.approve_for(id, &receiver, user).await
    }

    async fn approve_for(&self, id: Uuid, receiver: &str, user: &str) -> Result<(), Error> {
        let (vault, by) = (&self.vault.vault, operator(user));
        let approved = export::approve(vault, &self.tenant, id, receiver, &by).await;
        approved.map(drop)
    }

    async fn run(&self, id: Uuid) -> Result<Manifest, Error> {
        let tokens = TokenVault::clone(&self.vault.vault);
        export::run(&tokens, &self.tenant, id, &self.out(), |_| {}).await
    }

    pub(super) fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    /// Exports all tokens.
    pub(super) async fn export(&self) -> Manifest {
        let id = self.request(ExportFilter::default()).await;
        self.approve(id, "grace").await.unwrap();
        self.run(id).await.unwrap()
    }

    fn verify(&self, folder: &Path) -> Result<export::Verified, Error> {
        let authority = self.vault.vault.keys.audit_authority().public_key();
        export::verify(folder, &[authority], Some(&read_key(&self.private)))
    }
}

#[tokio::test]
async fn an_export_needs_the_approval_of_another_person_and_runs_once() {
    let source = Source::start().await;
    import_lines(&source.vault, &source.tenant, "cards", cards(3))
        .await
        .unwrap();
    let id = source.request(ExportFilter::default()).await;

    assert!(matches!(source.run(id).await, Err(Error::NotApproved(_))));
    let alone = source.approve(id, "ada").await;
    assert!(matches!(alone, Err(Error::SamePerson { .. })), "{alone:?}");
    let other = PublicKey([9; 32]).fingerprint();
    let other = source.approve_for(id, &other, "grace").await;
    assert!(matches!(other, Err(Error::OtherReceiver(_))), "{other:?}");
    assert!(matches!(source.run(id).await, Err(Error::NotApproved(_))));
    source.approve(id, "grace").await.unwrap();
    let manifest = source.run(id).await.unwrap();

    assert_eq!((manifest.tokens, manifest.chunks.len()), (3, 1));
    assert_eq!(manifest.requested_by, "ada@vault1");
    assert_eq!(manifest.approved_by, "grace@vault1");
    std::fs::remove_dir_all(source.out()).unwrap();
    assert!(matches!(source.run(id).await, Err(Error::NotFound(_))));
    let requests = export::list(&source.vault.vault, &source.tenant)
        .await
        .unwrap();
    assert_eq!(requests, []);
}

#[tokio::test]
async fn requests_and_approvals_by_sql_are_not_executed() {
    let source = Source::start().await;
    let database = source.vault.database.connect().await;
    let run = async |sql: &str| database.execute(sql, &[]).await.unwrap();
    let id = source.request(ExportFilter::default()).await;

    run("update export_request set approved_by = 'grace@vault1', approved_at = now()").await;
    assert!(matches!(source.run(id).await, Err(Error::Altered(_))));
    let findings = export::verify_requests(&source.vault.vault).await.unwrap();
    assert!(findings[0].contains(&id.to_string()), "{findings:?}");
    // Neither is empty text the same as none.
    for change in [
        "approved_by = '', approved_at = null",
        "approved_by = null, approved_at = now()",
        "approved_by = 'ada@vault1', approved_at = now()",
        "approved_by = null, approved_at = null, container = ''",
    ] {
        run(&format!("update export_request set {change}")).await;
        let ran = source.run(id).await;
        assert!(matches!(ran, Err(Error::Altered(_))), "{change}: {ran:?}");
    }
    run("update export_request set approved_by = null, approved_at = null, container = null").await;
    source.approve(id, "grace").await.unwrap();
    run("create table saved as table export_request").await;
    run("update export_request set receiver = decode(repeat('09', 32), 'hex')").await;
    assert!(matches!(source.run(id).await, Err(Error::Altered(_))));
    run("update export_request set receiver = saved.receiver from saved").await;
    source.run(id).await.unwrap();

    // The approval of an export that has run is restored.
    run("insert into export_request select * from saved").await;
    std::fs::remove_dir_all(source.out()).unwrap();
    assert!(matches!(source.run(id).await, Err(Error::Lock(_))));
    assert!(!source.out().exists());
}

/// Restores the row of a request together with the state of its bucket, which a process that starts afterwards accepts.
#[tokio::test]
async fn ended_exports_that_sql_restores_are_not_executed_by_another_process() {
    for ends in ["canceled", "published"] {
        let source = Source::start().await;
        let database = source.vault.database.connect().await;
        let id = source.request(ExportFilter::default()).await;
        source.approve(id, "grace").await.unwrap();
        let save = "create table saved_request as table export_request;
            create table saved_state as table access_state;";
        database.batch_execute(save).await.unwrap();
        match ends {
            "canceled" => {
                let canceled = export::cancel(&source.vault.vault, &source.tenant, id);
                canceled.await.unwrap();
            }
            _ => drop(source.run(id).await.unwrap()),
        }
        let restore = "insert into export_request select * from saved_request;
            delete from access_state;
            insert into access_state select * from saved_state;
            drop table saved_request, saved_state";
        database.batch_execute(restore).await.unwrap();

        let other = source.vault.second_node().await;
        let tokens = TokenVault::clone(&other.vault);
        let out = source.folder.path().join("restored");
        let ran = export::run(&tokens, &source.tenant, id, &out, |_| {}).await;

        assert!(matches!(ran, Err(Error::Ended(_))), "{ends}: {ran:?}");
        assert!(!out.exists());
    }
}

#[tokio::test]
async fn an_export_contains_the_tokens_of_its_filter_and_is_recorded() {
    let source = Source::start().await;
    let lines = [
        json!({"id": "inside", "type": "token", "data": "a", "containers": ["/a/b/"]}),
        json!({"id": "other type", "type": "card", "containers": ["/a/b/"],
            "data": {"number": card_number(1), "expiration_month": 12, "expiration_year": 2040}}),
        json!({"id": "other container", "type": "token", "data": "b", "containers": ["/ab/"]}),
    ];
    let lines: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let imported = import_lines(&source.vault, &source.tenant, "tokens", lines.join("\n"));
    assert_eq!(imported.await.unwrap().0.created, 3);
    let filter = ExportFilter {
        container: Some(Container::parse("/a/").unwrap()),
        kind: cloakroom::token_types::TokenKind::parse("token"),
    };
    let id = source.request(filter).await;
    source.approve(id, "grace").await.unwrap();

    let manifest = source.run(id).await.unwrap();

    assert_eq!(manifest.tokens, 1);
    let database = source.vault.database.connect().await;
    let sql = "select operation, outcome, entity_id from log where entity_kind in (1, 20)
        and (entity_kind = 20 or operation <> 1) order by created_at, seq";
    let rows = database.query(sql, &[]).await.unwrap();
    let rows: Vec<(i16, i16, String)> = rows
        .iter()
        .map(|row| (row.get(0), row.get(1), row.get(2)))
        .collect();
    let id = id.to_string();
    let (create, authorize, used, read, revealed) = (1, 8, 5, 2, 4);
    let receiver = source.receiver.fingerprint();
    let summary = format!("{id}: to {receiver}, token in /a/");
    assert_eq!(rows[0], (create, 1, summary.clone()));
    assert_eq!(rows[1], (authorize, 1, summary));
    assert_eq!(rows[2], (used, 1, id.clone()));
    assert_eq!(rows[3], (read, revealed, "inside".to_owned()));
    assert!(
        rows[4].2.starts_with(&format!("{id}: 1 tokens, manifest ")),
        "{rows:?}"
    );
    let deleted = 4;
    assert_eq!(rows[5], (deleted, 1, id));
    assert_eq!(rows.len(), 6);
}

#[tokio::test]
async fn a_changed_export_does_not_verify_and_contains_no_data_in_clear() {
    let source = Source::start().await;
    import_lines(&source.vault, &source.tenant, "cards", cards(2_100))
        .await
        .unwrap();
    let manifest = source.export().await;
    let out = source.out();

    assert_eq!(manifest.chunks.len(), 3);
    assert_eq!(source.verify(&out).ok().unwrap().manifest, manifest);
    for file in ["tokens.jwe", "manifest.json", "manifest.sig"] {
        let before = std::fs::read_to_string(out.join(file)).unwrap();
        assert!(!before.contains("424242"), "{file}");
        let last = before.rfind(|c: char| c.is_ascii_digit()).unwrap();
        let digit = if before.as_bytes()[last] == b'0' {
            "1"
        } else {
            "0"
        };
        let mut changed = before.clone();
        changed.replace_range(last..=last, digit);
        let lines: Vec<&str> = before.lines().collect();
        let shorter = lines[..lines.len() - 1].join("\n");
        for altered in [changed, shorter, before.clone() + &before] {
            std::fs::write(out.join(file), altered).unwrap();
            assert!(source.verify(&out).is_err(), "{file}");
        }
        std::fs::write(out.join(file), before).unwrap();
    }
    assert!(source.verify(&out).is_ok());
    let other = Source::start().await;
    let authority = other.vault.vault.keys.audit_authority().public_key();
    assert!(
        export::verify(&out, &[authority], None).is_err(),
        "another vault"
    );
}

#[tokio::test]
async fn an_interrupted_export_publishes_nothing_and_can_run_again() {
    let source = Source::start().await;
    import_lines(&source.vault, &source.tenant, "cards", cards(10))
        .await
        .unwrap();
    let id = source.request(ExportFilter::default()).await;
    source.approve(id, "grace").await.unwrap();

    cloakroom_platform::failpoints::arm("export.written", 1);
    assert!(source.run(id).await.is_err());
    assert!(!source.out().exists());
    let tokens = TokenVault::clone(&source.vault.vault);
    let run = async |folder: &Path| export::run(&tokens, &source.tenant, id, folder, |_| {}).await;
    let unnamed = run(&source.folder.path().join("..")).await;
    assert!(matches!(unnamed, Err(Error::File { .. })), "{unnamed:?}");
    let manifest = run(&source.out().join("")).await.unwrap();

    assert_eq!(manifest.tokens, 10);
    assert!(source.verify(&source.out()).is_ok());
    assert_eq!(count(&source.vault, "export_request").await, 0);
}

/// The tokens are read, but not published. `progress` runs between both.
#[tokio::test(flavor = "multi_thread")]
async fn an_export_that_is_canceled_or_published_meanwhile_is_not_published() {
    let source = Source::start().await;
    import_lines(&source.vault, &source.tenant, "cards", cards(10))
        .await
        .unwrap();
    let tokens = TokenVault::clone(&source.vault.vault);
    let handle = tokio::runtime::Handle::current();

    let id = source.request(ExportFilter::default()).await;
    source.approve(id, "grace").await.unwrap();
    let out = source.out();
    let canceled = export::run(&tokens, &source.tenant, id, &out, |_| {
        let canceled = export::cancel(&tokens, &source.tenant, id);
        tokio::task::block_in_place(|| handle.block_on(canceled)).unwrap();
    });
    let canceled = canceled.await;
    assert!(matches!(canceled, Err(Error::NotFound(_))), "{canceled:?}");
    assert!(!out.exists());

    let id = source.request(ExportFilter::default()).await;
    source.approve(id, "grace").await.unwrap();
    let other = source.folder.path().join("other");
    let second = export::run(&tokens, &source.tenant, id, &other, |_| {
        let same = export::run(&tokens, &source.tenant, id, &other, |_| {});
        let same = tokio::task::block_in_place(|| handle.block_on(same));
        let text = same
            .err()
            .map(|error| error.to_string())
            .unwrap_or_default();
        assert!(text.contains("another process is writing it"), "{text}");
        let first = source.run(id);
        tokio::task::block_in_place(|| handle.block_on(first)).unwrap();
    });
    let second = second.await;
    assert!(matches!(second, Err(Error::NotFound(_))), "{second:?}");
    assert!(out.exists() && !other.exists());
    assert!(source.verify(&out).is_ok());
}

/// Rows of another tenant are never part of an export.
#[tokio::test]
async fn an_export_has_tokens_of_its_tenant_only() {
    let source = Source::start().await;
    let other = source.vault.tenant().await;
    let client = source
        .vault
        .client(&other, everything(Transform::Reveal))
        .await;
    let new = json!({"type": "token", "data": "of another tenant"});
    assert_eq!(client.post("/tokens", new).await.status, 201);

    assert_eq!(source.export().await.tokens, 0);
}
