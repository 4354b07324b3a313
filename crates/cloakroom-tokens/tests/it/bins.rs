//! The operator's BIN table: imported into the database and loaded by running nodes.

use std::time::{Duration, Instant};

use cloakroom::access::TenantKind;
use cloakroom::admin::Readiness;
use cloakroom::bins::{self, CardDetails, Table};
use cloakroom::{Node, jobs};
use cloakroom_testkit::{TestVault, table_with_funding};
use serde_json::{Value, json};

const NUMBER: &str = "4000001111111118";

async fn import(vault: &Node, table: &Table) -> i32 {
    let imported = bins::import(vault, table, "bins.csv", &mut |_| {}).await;
    imported.unwrap().version
}

fn funding(vault: &Node) -> Option<&'static str> {
    CardDetails::of(&vault.bins, TenantKind::Production, NUMBER)
        .unwrap()
        .funding
}

#[tokio::test]
async fn a_new_table_reaches_a_running_node_within_ten_seconds() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let readiness = Readiness::new(jobs::CHECKS);
    let _jobs = jobs::start(&vault.vault, &readiness);
    let card = json!({"type": "card", "data": {"number": NUMBER}});
    let before = client.post("/tokens", card).await;
    let path = format!("/tokens/{}", before.id());
    let elsewhere = Node::open(vault.configuration()).await.unwrap();

    for expected in ["debit", "prepaid"] {
        import(&elsewhere, &table_with_funding(expected)).await;
        let imported = Instant::now();
        while client.get(&path).await.body["card"]["funding"] != expected {
            let waited = imported.elapsed();
            assert!(waited < Duration::from_secs(10), "{expected}: {waited:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    assert_eq!(before.body["card"]["funding"], Value::Null);
    assert_eq!(before.body["card"]["brand"], "visa");
}

#[tokio::test]
async fn a_node_becomes_ready_after_loading_the_stored_table() {
    let vault = TestVault::start().await;
    import(&vault.vault, &table_with_funding("debit")).await;
    let starting = Node::open(vault.configuration()).await.unwrap();
    let readiness = Readiness::new(jobs::CHECKS);
    assert_eq!(funding(&starting), None);

    let _jobs = jobs::start(&starting, &readiness);
    let deadline = Instant::now() + Duration::from_secs(30);
    while !readiness.snapshot().is_ready() {
        assert!(Instant::now() < deadline, "{readiness:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }

    assert_eq!(funding(&starting), Some("debit"));
}

#[tokio::test]
async fn a_damaged_table_is_not_loaded() {
    let vault = TestVault::start().await;
    let node = &vault.vault;
    import(node, &table_with_funding("debit")).await;
    bins::refresh(node, &node.bins).await.unwrap();
    let admin = vault.database.connect().await;

    let damages = [
        "update bin_chunk set content = set_byte(content, 5, 77) where position = 1",
        "update bin_chunk set digest = set_byte(digest, 0, 255 - get_byte(digest, 0))",
        "delete from bin_chunk where position = 2",
        "update bin_chunk set position = 9 where position = 2;
        update bin_chunk set position = 2 where position = 3;
        update bin_chunk set position = 3 where position = 9",
        "update bin_table set chunk_count = chunk_count - 1",
        "update bin_table set digest = null",
    ];
    for damage in damages {
        import(node, &table_with_funding("prepaid")).await;
        admin.batch_execute(damage).await.unwrap();
        let rejected = bins::refresh(node, &node.bins).await;
        assert!(matches!(rejected, Err(bins::Error::Damaged)), "{damage}");
        assert_eq!(funding(node), Some("debit"), "{damage}");
        // Each damaged version is read once: re-reading a large table every few seconds is useless load.
        assert!(bins::refresh(node, &node.bins).await.is_ok(), "{damage}");
    }

    import(node, &table_with_funding("prepaid")).await;
    bins::refresh(node, &node.bins).await.unwrap();
    assert_eq!(funding(node), Some("prepaid"));
}

#[tokio::test]
async fn only_the_newest_table_is_retained() {
    let vault = TestVault::start().await;
    let admin = vault.database.connect().await;
    // Rows left behind by an import that was killed.
    let abandoned = "insert into bin_table (version, source) values (1, 'gone.csv');
        insert into bin_chunk (version, position, content, digest) values (1, 0, '', '')";
    admin.batch_execute(abandoned).await.unwrap();

    assert!(bins::status(&vault.vault).await.unwrap().is_none());
    import(&vault.vault, &table_with_funding("debit")).await;
    let version = import(&vault.vault, &table_with_funding("credit")).await;

    assert_eq!(version, 3);
    for table in ["bin_table", "bin_chunk"] {
        let sql = format!("select array_agg(distinct version) from {table}");
        let versions: Vec<i32> = admin.query_one(&sql, &[]).await.unwrap().get(0);
        assert_eq!(versions, [3], "{table}");
    }
    let status = bins::status(&vault.vault).await.unwrap().unwrap();
    assert_eq!((status.version, status.rows), (3, 1));
    assert_eq!(status.source, "bins.csv");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_later_of_two_concurrent_imports_wins() {
    let vault = TestVault::start().await;
    let node = &vault.vault;
    let mut later = None;
    let mut import_another = |_| {
        if later.is_none() {
            let table = table_with_funding("debit");
            let import = import(node, &table);
            let run = || tokio::runtime::Handle::current().block_on(import);
            later = Some(tokio::task::block_in_place(run));
        }
    };

    let earlier = bins::import(
        node,
        &table_with_funding("credit"),
        "a.csv",
        &mut import_another,
    )
    .await;

    assert!(
        matches!(earlier, Err(bins::Error::Superseded)),
        "{earlier:?}"
    );
    bins::refresh(node, &node.bins).await.unwrap();
    assert_eq!(funding(node), Some("debit"));
    let admin = vault.database.connect().await;
    let sql = "select count(distinct version) from bin_chunk";
    let versions: i64 = admin.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(versions, 1);
}
