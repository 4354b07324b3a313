//! Rotation of the control key, which authenticates rows that grant access, events, and tables of the vault.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cloakroom::access::{self, ApplicationRow, AuthenticatedRow as _};
use cloakroom::audit::Operator;
use cloakroom::keys::VAULT;
use cloakroom::rotation::{self, Phase};
use cloakroom::tokens::ExportFilter;
use cloakroom::transfer::PublicKey;
use cloakroom::transfer::export::{self, NewExport};
use cloakroom::{Node, bins, rate_limits};
use cloakroom_crypto::KeyPurpose;
use cloakroom_platform::failpoints::arm;
use cloakroom_testkit::{Client, table_with_funding};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_postgres::types::ToSql;

use super::interruptions::Load;
use super::{Fixture, HOLDER, advance_to};
use crate::transfer::import_lines;

const CONTROL: KeyPurpose = KeyPurpose::Control;

/// Tables with MACs under the control key, and the column.
const MACS: [(&str, &str); 15] = [
    ("access_state", "row_mac"),
    ("tenant", "row_mac"),
    ("tenant_deletion", "row_mac"),
    ("branding", "row_mac"),
    ("webhook", "row_mac"),
    ("export_request", "row_mac"),
    ("application", "row_mac"),
    ("application_key", "row_mac"),
    ("proxy", "row_mac"),
    ("import_batch", "row_mac"),
    ("session", "row_mac"),
    ("webhook_delivery", "mac"),
    ("bin_table", "digest"),
    ("bin_chunk", "digest"),
    ("card_range_table", "digest"),
];

async fn start(node: &Node) -> u32 {
    rotation::start(node, VAULT, CONTROL, "tests")
        .await
        .unwrap()
}

async fn retire(node: &Node) -> Result<u32, String> {
    let retired = rotation::retire(node, VAULT, CONTROL).await;
    retired
        .map(|(version, _)| version)
        .map_err(|error| error.to_string())
}

/// Writes a row into each table of [`MACS`] that the fixture has not filled.
async fn fill(fixture: &Fixture) {
    let (vault, tenant) = (&fixture.vault.vault, &fixture.tenant);
    let manager = &fixture.manager;
    let branding = json!({"name": "Hats"});
    let set = manager.put("/tenants/self/branding", branding).await;
    assert!(set.status.is_success(), "{}", set.body);
    let requested = manager.delete("/tenants/self").await;
    assert!(requested.status.is_success(), "{}", requested.body);
    let visitor = super::client(
        &fixture.vault,
        tenant,
        cloakroom::access::ApplicationKind::Public,
    )
    .await;
    assert_eq!(visitor.post("/sessions", json!({})).await.status, 201);
    let line = json!({"type": "token", "data": "imported"}).to_string();
    import_lines(&fixture.vault, tenant, "lines", line)
        .await
        .unwrap();
    let new = NewExport {
        filter: ExportFilter::default(),
        receiver: PublicKey([7; 32]),
        reason: "Move".to_owned(),
    };
    let ada = Operator::new(None, "ada", "vault1").unwrap();
    export::request(vault, tenant, new, &ada).await.unwrap();
    let table = table_with_funding("debit");
    bins::import(vault, &table, "bins.csv", &mut |_| {})
        .await
        .unwrap();
    let version = 1_i32.to_be_bytes();
    let parts: [&[u8]; 3] = [b"visa", &version, b"{}"];
    let digest = vault
        .keys
        .control()
        .authenticate("card_range_table", &parts);
    let insert =
        "insert into card_range_table (directory, version, ranges, digest, refreshed_at, asked_at)
        values ('visa', 1, '{}', $1, now(), now())";
    let inserted = fixture.database.execute(insert, &[&&digest[..]]).await;
    assert_eq!(inserted.unwrap(), 1);
    // An event for the webhook.
    let created = fixture.client.post("/tokens", super::new_token(7)).await;
    assert_eq!(created.status, 201);
}

/// The versions of the control key that made the MACs of a table.
async fn versions(fixture: &Fixture, table: &str, column: &str) -> Vec<i32> {
    let sql = format!("select distinct get_byte({column}, 3) from {table} order by 1");
    let rows = fixture.database.query(&sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

async fn assert_all_by(fixture: &Fixture, version: i32) {
    for (table, column) in MACS {
        assert_eq!(versions(fixture, table, column).await, [version], "{table}");
    }
}

async fn findings(node: &Node) -> Vec<String> {
    let control = node.keys.control();
    let rows = access::verify_rows(&node.db, control).await.unwrap();
    let states = access::verify_states(&node.db, control).await.unwrap();
    let proofs = rotation::verify_proofs(node).await.unwrap();
    rows.altered
        .into_iter()
        .chain(states)
        .chain(proofs)
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_rows_are_authenticated_by_the_new_version_and_the_former_one_is_destroyed() {
    let fixture = Fixture::create(2).await;
    let vault = &fixture.vault.vault;
    fill(&fixture).await;
    assert_all_by(&fixture, 1).await;

    assert_eq!(start(vault).await, 2);
    advance_to(vault, Phase::Proved).await;

    assert_all_by(&fixture, 2).await;
    assert_eq!(findings(vault).await, Vec::<String>::new());
    let (_, proof) = rotation::retire(vault, VAULT, CONTROL).await.unwrap();
    for (table, _) in MACS {
        let line = format!("rows of {table}: ");
        let rows = proof
            .statement
            .lines()
            .find_map(|it| it.strip_prefix(&line));
        let rows: u64 = rows.unwrap_or_default().parse().unwrap_or_default();
        assert!(rows > 0, "{table}: {}", proof.statement);
    }
    let wrapped = "select state, length(wrapped) from system_key where purpose = 7 and version = 1";
    let row = fixture.database.query_one(wrapped, &[]).await.unwrap();
    assert_eq!((row.get::<_, i16>(0), row.get::<_, i32>(1)), (4, 0));
    // A node that has only ever known the new version.
    let other = fixture.vault.second_node().await;
    for node in [&fixture.vault, &other] {
        fixture
            .assert_readable(&fixture.client.at(&node.base_url))
            .await;
        assert_eq!(findings(&node.vault).await, Vec::<String>::new());
        assert!(
            export::verify_requests(&node.vault)
                .await
                .unwrap()
                .is_empty()
        );
        bins::refresh(&node.vault, &node.vault.bins).await.unwrap();
    }
    assert_eq!(other.vault.bins.version(), 1);
}

/// Every column of a MAC under the control key is rewritten and scanned.
#[tokio::test]
async fn no_table_with_macs_is_left_out() {
    let fixture = Fixture::create(1).await;
    let sql = "select table_name::text, column_name::text from information_schema.columns
        where table_schema = 'public' and (column_name in ('row_mac', 'mac') or column_name = 'digest')";
    let exempt = [
        // Chains of the audit log have keys of their own.
        ("log_chain", "row_mac"),
        // A digest of rows, which `row_mac` authenticates.
        ("access_state", "digest"),
        // The domain of an index key.
        ("search_expression", "digest"),
        // Under the fingerprint key.
        ("fingerprint_pair", "mac"),
    ];
    for row in fixture.database.query(sql, &[]).await.unwrap() {
        let (table, column): (String, String) = (row.get(0), row.get(1));
        let column = (table.as_str(), column.as_str());
        assert!(
            MACS.contains(&column) || exempt.contains(&column),
            "{column:?}"
        );
    }
}

/// Rows that grant access, written, changed and deleted while keys are rotated.
struct Changes {
    stop: Arc<AtomicBool>,
    managers: JoinSet<(u64, Vec<String>)>,
}

impl Changes {
    /// Both nodes acknowledge the keys that they have loaded.
    fn start(managers: Vec<Client>, url: String, nodes: Vec<Node>) -> Self {
        let (stop, mut tasks) = (Arc::<AtomicBool>::default(), JoinSet::new());
        let stopped = stop.clone();
        tasks.spawn(async move {
            while !stopped.load(Ordering::Relaxed) {
                for node in &nodes {
                    let written = rate_limits::write_heartbeat(&node.rate_limits).await;
                    written.unwrap();
                }
                sleep(Duration::from_millis(10)).await;
            }
            (0, Vec::new())
        });
        for manager in managers {
            let (stop, url) = (stop.clone(), url.clone());
            tasks.spawn(async move {
                let (mut count, mut failures) = (0, Vec::new());
                while !stop.load(Ordering::Relaxed) {
                    let proxy = json!({"name": "Payments", "destination_url": url});
                    let created = manager.post("/proxies", proxy.clone()).await;
                    let path = format!("/proxies/{}", created.body["id"].as_str().unwrap_or("-"));
                    let replaced = manager.put(&path, proxy).await;
                    let deleted = manager.delete(&path).await;
                    for response in [created, replaced, deleted] {
                        count += 1;
                        if !response.status.is_success() {
                            failures.push(format!("{}: {}", response.status, response.body));
                        }
                    }
                    sleep(Duration::from_millis(20)).await;
                }
                (count, failures)
            });
        }
        Self {
            stop,
            managers: tasks,
        }
    }

    async fn finish(self) -> (u64, Vec<String>) {
        self.stop.store(true, Ordering::Relaxed);
        let results = self.managers.join_all().await;
        let count = results.iter().map(|(count, _)| count).sum();
        (
            count,
            results.into_iter().flat_map(|(_, failed)| failed).collect(),
        )
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_control_key_is_replaced_while_nodes_die_and_access_changes() {
    let fixture = Fixture::create(2).await;
    fill(&fixture).await;
    let vault = &fixture.vault.vault;
    let other = fixture.vault.second_node().await;
    let on_other = fixture.client.at(&other.base_url);
    let load = Load::start(vec![fixture.client.clone(), on_other]);
    let manager = &fixture.manager;
    let changes = Changes::start(
        vec![manager.clone(), manager.at(&other.base_url)],
        fixture.destination.url("/v1"),
        vec![vault.clone(), other.vault.clone()],
    );
    let points = [
        ("rotation.before_change", 1),
        ("rotation.within_change", 1),
        ("rotation.after_change", 1),
        ("rotation.within_change", 2),
        ("rotation.after_change", 2),
        ("rotation.drained", 1),
        ("rotation.bucket_renewed", 1),
        ("rotation.bucket_renewed", 4),
        ("rotation.page_written", 1),
        ("rotation.page_written", 4),
        ("rotation.rewritten", 1),
        ("rotation.scanned", 1),
        ("rotation.signed", 1),
    ];
    for (round, (name, hits)) in points.into_iter().enumerate() {
        start(vault).await;
        arm(name, hits);
        let mut died = false;
        for _ in 0..400 {
            died = rotation::work(vault, HOLDER).await.is_err();
            if died || fixture.phase().await == Phase::Proved {
                break;
            }
            sleep(Duration::from_millis(5)).await;
        }
        assert!(died, "{name} {hits} was not reached");
        // Another node continues.
        while fixture.phase().await < Phase::Proved {
            rotation::work(&other.vault, HOLDER).await.unwrap();
            sleep(Duration::from_millis(5)).await;
        }
        let version = u32::try_from(round + 1).unwrap();
        assert_eq!(retire(vault).await, Ok(version), "{name}");
    }
    let (changes, failures) = changes.finish().await;
    assert_eq!(failures, Vec::<String>::new(), "of {changes} changes");
    assert!(changes > 30, "{changes}");
    let (requests, failures) = load.finish().await;
    assert_eq!(failures, Vec::<String>::new(), "of {requests}");
    assert!(requests > 10);
    for (table, column) in MACS {
        let versions = versions(&fixture, table, column).await;
        assert_eq!(versions, [14], "{table}");
    }
    let fresh = Node::open(fixture.vault.configuration()).await.unwrap();
    assert_eq!(findings(&fresh).await, Vec::<String>::new());
}

/// A thief of the former key, with write access to the database, can forge rows until the key is destroyed. From then on, no
/// node accepts them.
#[tokio::test]
async fn what_the_former_key_authenticates_grants_nothing() {
    let fixture = Fixture::create(1).await;
    let vault = &fixture.vault.vault;
    // A node without a heartbeat, which keeps the former key.
    let thief = fixture.vault.second_node().await;
    let forge = async || {
        let sql = "select application_id, name, grants, tenant_id from application where kind = 1";
        let row = fixture.database.query_one(sql, &[]).await.unwrap();
        let application = ApplicationRow {
            tenant_number: row.get(3),
            id: row.get(0),
            name: row.get(1),
            kind: cloakroom::access::ApplicationKind::Private,
            grants: row.get(2),
            expires_at: None,
        };
        let forged = application.row_mac(thief.vault.keys.control());
        let update = "update application set row_mac = $2 where application_id = $1";
        let params: [&(dyn ToSql + Sync); 2] = [&application.id, &&forged[..]];
        fixture.database.execute(update, &params).await.unwrap();
        let rows = access::verify_rows(&vault.db, vault.keys.control())
            .await
            .unwrap();
        rows.altered
    };
    start(vault).await;
    advance_to(vault, Phase::Proved).await;
    assert_eq!(
        forge().await,
        Vec::<String>::new(),
        "the key is not destroyed yet"
    );
    // The scan found nothing; what was written since blocks nothing, and is rejected.
    assert_eq!(retire(vault).await, Ok(1));

    let altered = forge().await;

    assert_eq!(altered.len(), 1, "{altered:?}");
    for node in [&fixture.vault, &fixture.vault.second_node().await] {
        node.vault.principals.invalidate_all();
        let client = fixture.client.at(&node.base_url);
        let read = client.get(&format!("/tokens/{}", fixture.tokens[0])).await;
        assert_eq!(read.status, 401, "{}", read.body);
    }
    // The keyset of the vault, forged as if the former key were in use again.
    let states = "update access_state set row_mac = $1 where tenant_id = 0 and bucket = 256";
    let parts: [&[u8]; 4] = [
        &0_i32.to_be_bytes(),
        &256_i16.to_be_bytes(),
        &[0; 8],
        &[0; 32],
    ];
    let control = thief.vault.keys.control();
    let forged = control.authenticate("row.access_state.v1", &parts);
    let forged = fixture.database.execute(states, &[&&forged[..]]).await;
    assert_eq!(forged.unwrap(), 1);
    let opened = Node::open(fixture.vault.configuration()).await;
    let error = opened.err().unwrap().to_string();
    assert!(error.contains("the keys of the vault were"), "{error}");
}

/// A node that did not learn of the rotation loads the new version when it meets it, and writes nothing under the former one.
#[tokio::test]
async fn a_node_with_the_former_key_loads_the_new_one_and_no_request_fails() {
    let fixture = Fixture::create(2).await;
    let other = fixture.vault.second_node().await;
    let (client, manager) = (
        fixture.client.at(&other.base_url),
        fixture.manager.at(&other.base_url),
    );
    // It caches principals.
    fixture.assert_readable(&client).await;
    start(&fixture.vault.vault).await;
    advance_to(&fixture.vault.vault, Phase::Proved).await;
    assert_eq!(other.vault.keys.control().active_version(), 1);

    fixture.write_everything(&client, &manager).await;

    assert_eq!(other.vault.keys.control().active_version(), 2);
    for (table, column) in MACS {
        let versions = versions(&fixture, table, column).await;
        assert!(
            versions.is_empty() || versions == [2],
            "{table}: {versions:?}"
        );
    }
    assert_eq!(retire(&fixture.vault.vault).await, Ok(1));
}

#[tokio::test]
async fn macs_by_a_closed_version_are_rejected_by_the_database() {
    let fixture = Fixture::create(1).await;
    let vault = &fixture.vault.vault;
    let mac = vault.keys.control().authenticate("row", &[b"row"]);
    let fenced = cloakroom_core::fenced_mac!("$1");
    let sql = format!("update access_state set row_mac = {fenced} where tenant_id = 0");
    start(vault).await;
    fixture.advance_until("rotation.after_change", 1).await;
    assert_eq!(fixture.phase().await, Phase::Promoted);
    let retiring = format!("select {fenced} is not null");
    let accepted = fixture.database.query_one(&retiring, &[&&mac[..]]).await;
    assert!(accepted.unwrap().get::<_, bool>(0));
    advance_to(vault, Phase::Proved).await;

    let rejected = fixture.database.execute(&sql, &[&&mac[..]]).await;

    assert_stale(&rejected.unwrap_err());
    // A row of a bucket has the fence of its access state.
    let mut statements = cloakroom::statements();
    let write = statements
        .find(|it| it.name == "access::write_state")
        .unwrap();
    let current = vault.keys.control().authenticate("row", &[b"row"]);
    let (tenant, bucket, generation, digest) = (0_i32, 256_i16, 9_i64, &[0_u8; 32][..]);
    for (versions, is_accepted) in [([2_i32].to_vec(), true), ([2, 1].to_vec(), false)] {
        let params: [&(dyn ToSql + Sync); 6] = [
            &tenant,
            &bucket,
            &generation,
            &digest,
            &&current[..],
            &versions,
        ];
        match fixture.database.execute(write.text, &params).await {
            Ok(written) => assert!(is_accepted && written == 1, "{versions:?}"),
            Err(error) => {
                assert!(!is_accepted, "{versions:?}: {error:?}");
                assert_stale(&error);
            }
        }
    }
}

fn assert_stale(error: &tokio_postgres::Error) {
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code().code(), "23502");
    assert_eq!(error.column(), Some("row_mac"));
}

/// A thief of the former key who also has it wrapped, from a backup, cannot make running nodes use it again.
#[tokio::test]
async fn a_running_node_rejects_a_keyset_by_the_former_key() {
    let fixture = Fixture::create(1).await;
    let vault = &fixture.vault.vault;
    let thief = fixture.vault.second_node().await;
    for save in [
        "create table keys as select * from system_key",
        "create table states as select * from access_state where tenant_id = 0 and bucket = 256",
    ] {
        fixture.execute(save).await;
    }
    start(vault).await;
    advance_to(vault, Phase::Proved).await;
    assert_eq!(retire(vault).await, Ok(1));

    let row = fixture.database.query_one("select digest from states", &[]);
    let digest: Vec<u8> = row.await.unwrap().get(0);
    let generation = 1_000_i64;
    let parts: [&[u8]; 4] = [
        &0_i32.to_be_bytes(),
        &256_i16.to_be_bytes(),
        &generation.to_be_bytes(),
        &digest,
    ];
    let control = thief.vault.keys.control();
    let forged = control.authenticate("row.access_state.v1", &parts);
    for restore in [
        "delete from system_key",
        "insert into system_key select * from keys",
    ] {
        fixture.execute(restore).await;
    }
    let state = "update access_state set generation = $1, digest = $2, row_mac = $3
        where tenant_id = 0 and bucket = 256";
    let params: [&(dyn ToSql + Sync); 3] = [&generation, &digest, &&forged[..]];
    assert_eq!(fixture.database.execute(state, &params).await.unwrap(), 1);

    // As after a change that this node has not seen.
    assert!(vault.keys.learn(0).await.is_err());

    assert_eq!(vault.keys.control().active_version(), 2);
    let error = vault.keys.list_versions(VAULT).await.unwrap_err();
    assert!(
        error.to_string().contains("the keys of the vault"),
        "{error}"
    );
    // The forgery is consistent: it convinces a node that knows the former key only.
    assert!(thief.vault.keys.list_versions(VAULT).await.is_ok());
}

/// Every statement that stores a MAC has the fence; rows of buckets have that of their access state.
#[tokio::test]
async fn no_statement_stores_macs_without_the_fence() {
    let tables = [
        "access_state",
        "session",
        "import_batch",
        "webhook_delivery",
        "bin_chunk",
    ];
    let mut checked = 0;
    for statement in cloakroom::statements() {
        let stores = tables.iter().any(|table| {
            let inserts = statement.text.contains(&format!("insert into {table}\n"))
                || statement.text.contains(&format!("insert into {table} "));
            let updates = statement.text.contains(&format!("update {table}\n"));
            let sets = statement.text.contains("mac = ");
            inserts || updates && sets
        });
        // A renewal replaces a MAC that it has verified, before the scan that counts what is left. The first keyset is
        // written with the first keys.
        let is_exempt =
            statement.name.contains("renew") || statement.name == "keys::insert_system_keyset";
        if stores && !is_exempt {
            checked += 1;
            assert!(
                statement.text.contains("from system_key fence"),
                "{}: {}",
                statement.name,
                statement.text
            );
        }
    }
    assert!(checked >= 8, "{checked}");
}

#[tokio::test]
async fn skipped_and_altered_rows_keep_the_former_key() {
    let fixture = Fixture::create(1).await;
    fill(&fixture).await;
    let vault = &fixture.vault.vault;
    start(vault).await;
    // SQL claims that everything is rewritten.
    fixture.advance_until("rotation.drained", 1).await;
    fixture
        .execute("update key_rotation set phase = 5, phase_at = now()")
        .await;
    advance_to(vault, Phase::Proved).await;
    assert_all_by(&fixture, 2).await;
    assert_eq!(retire(vault).await, Ok(1));

    // A row that SQL has changed, and its bucket.
    start(vault).await;
    fixture.advance_until("rotation.drained", 1).await;
    fixture
        .execute("update application set name = name || 'x' where kind = 1")
        .await;
    for _ in 0..20 {
        rotation::work(vault, HOLDER).await.unwrap();
    }
    let status = rotation::status(vault).await.unwrap();
    let progress = &status.last().unwrap().rotation;
    assert_eq!(progress.phase, Phase::Proving);
    assert!(progress.unreadable > 0, "{progress:?}");
    let early = retire(vault).await.unwrap_err();
    assert!(early.contains("the scan is not complete"), "{early}");
    fixture
        .execute("update application set name = trim(trailing 'x' from name) where kind = 1")
        .await;
    // Rewriting is tried again ten minutes after the scan.
    fixture
        .execute("update key_rotation set phase_at = now() - interval '600.5 seconds'")
        .await;
    advance_to(vault, Phase::Proved).await;
    assert_all_by(&fixture, 3).await;
    assert_eq!(retire(vault).await, Ok(2));
}

/// The MAC of an import's lines cannot be computed again: it is continued until the former key is destroyed.
#[tokio::test]
async fn an_import_from_before_is_not_continued_after_the_end_of_its_key() {
    let fixture = Fixture::create(1).await;
    let vault = &fixture.vault.vault;
    let line = json!({"type": "token", "data": "imported"}).to_string();
    let import =
        async || import_lines(&fixture.vault, &fixture.tenant, "lines", line.clone()).await;
    import().await.unwrap();
    start(vault).await;
    advance_to(vault, Phase::Proved).await;
    let (counts, _) = import().await.unwrap();
    assert_eq!((counts.created, counts.earlier), (1, 1));
    assert_eq!(retire(vault).await, Ok(1));

    let continued = import().await.err().unwrap().to_string();

    assert!(
        continued.contains("before the control key was replaced"),
        "{continued}"
    );
}
