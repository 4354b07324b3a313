//! What happens at midnight: keys change, days are closed.

use cloakroom::audit::{self, ArchiveError, Finding};
use cloakroom_testkit::TestVault;
use jiff::Timestamp;

use super::note;

const DAY: i64 = 24 * 60 * 60;

/// Seconds from now until twenty minutes after the next midnight, by the database's clock.
async fn until_tomorrow(vault: &TestVault) -> i64 {
    let now: Timestamp = vault.vault.clock.now().await.unwrap();
    DAY - now.as_second().rem_euclid(DAY) + 20 * 60
}

async fn findings(vault: &TestVault) -> Vec<Finding> {
    let verified = audit::verify(&vault.vault.audit, None, |_| {}).await;
    verified.unwrap().findings
}

/// The days of the keys, in order.
async fn days_of_keys(vault: &TestVault) -> Vec<i32> {
    let database = vault.database.connect().await;
    let sql = "select day from log_key order by day, number";
    let rows = database.query(sql, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

async fn last_note(vault: &TestVault) -> String {
    let database = vault.database.connect().await;
    let sql = "select note from log_checkpoint order by number desc limit 1";
    database.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn keys_change_at_midnight_and_the_day_is_closed() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    client.post("/tokens", note("today")).await;
    vault.vault.audit.checkpoint().await.unwrap();
    let [today] = days_of_keys(&vault).await[..] else {
        panic!("one key");
    };

    vault.vault.clock.set_offset(until_tomorrow(&vault).await);
    client.post("/tokens", note("tomorrow")).await;
    vault.vault.audit.checkpoint().await.unwrap();

    assert_eq!(days_of_keys(&vault).await, [today, today + 1]);
    let closed = format!("\nclosed-through {today}\n");
    let last = last_note(&vault).await;
    assert!(last.contains(&closed), "{last}");
    assert_eq!(findings(&vault).await, []);
    client.post("/tokens", note("later")).await;
    vault.vault.audit.close().await;
    assert_eq!(findings(&vault).await, []);

    let database = vault.database.connect().await;
    let day = format!("created_at < to_timestamp({}::bigint * 86400)", today + 1);
    let sql =
        format!("delete from log where {day} and seq = (select max(seq) from log where {day})");
    database.batch_execute(&sql).await.unwrap();
    let found = findings(&vault).await;
    assert!(matches!(found[..], [Finding::Missing { .. }]), "{found:?}");
    let sql = format!("delete from log where {day}; delete from log_key where day = {today}");
    database.batch_execute(&sql).await.unwrap();
    let found = findings(&vault).await;
    assert!(
        found.contains(&Finding::MissingDay { day: today }),
        "{found:?}"
    );
}

#[tokio::test]
async fn complete_days_are_archived_once_and_verified() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    client.post("/tokens", note("today")).await;
    vault.vault.audit.checkpoint().await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let archive = async || audit::archive(&vault.vault.audit, folder.path()).await;
    assert_eq!(archive().await.unwrap(), [], "the day is not over");

    let tomorrow = until_tomorrow(&vault).await;
    vault.vault.clock.set_offset(tomorrow);
    client.post("/tokens", note("tomorrow")).await;
    vault.vault.audit.checkpoint().await.unwrap();
    vault.vault.clock.set_offset(tomorrow + DAY);
    client.post("/tokens", note("the day after")).await;
    vault.vault.audit.checkpoint().await.unwrap();
    let archived = archive().await.unwrap();
    let again = archive().await.unwrap();

    let [day] = &archived[..] else {
        panic!("{archived:?}");
    };
    assert!(day.entries > 0 && again.is_empty(), "{again:?}");
    let authority = vault.vault.keys.audit_authority().public_key();
    let number = audit::parse_day(&day.date).unwrap();
    let verify = || {
        let file = std::io::BufReader::new(std::fs::File::open(&day.file).unwrap());
        let records = audit::read_records(file);
        audit::verify_export(
            records,
            vec![authority.into()],
            number..=number,
            None,
            |_| {},
        )
        .unwrap()
    };
    let verified = verify();
    assert_eq!((verified.records, verified.findings), (day.entries, vec![]));

    // A day that does not verify is not archived.
    std::fs::remove_file(&day.file).unwrap();
    let database = vault.database.connect().await;
    let sql = format!(
        "delete from log where created_at < to_timestamp({}::bigint * 86400)
         and seq = (select max(seq) from log where created_at < to_timestamp({}::bigint * 86400))",
        number + 1,
        number + 1
    );
    database.batch_execute(&sql).await.unwrap();
    let refused = archive().await;
    assert!(
        matches!(refused, Err(ArchiveError::Altered { .. })),
        "{refused:?}"
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// A killed node has not stated its last entries. Closing the day states them.
#[tokio::test]
async fn closing_a_day_covers_the_chains_of_killed_nodes() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let killed = vault.second_node().await;
    client
        .at(&killed.base_url)
        .post("/tokens", note("stated"))
        .await;
    killed.vault.audit.checkpoint().await.unwrap();
    client
        .at(&killed.base_url)
        .post("/tokens", note("not stated"))
        .await;
    drop(killed);
    assert_eq!(findings(&vault).await, []);

    vault.vault.clock.set_offset(until_tomorrow(&vault).await);
    vault.vault.audit.checkpoint().await.unwrap();
    vault.vault.audit.checkpoint().await.unwrap();

    assert_eq!(findings(&vault).await, []);
    let database = vault.database.connect().await;
    let sql = "delete from log where chain > 2000 and seq = 2";
    assert_eq!(database.execute(sql, &[]).await.unwrap(), 1);
    let found = findings(&vault).await;
    assert!(
        matches!(found[..], [Finding::Missing { from: 2, to: 2, .. }]),
        "{found:?}"
    );
}

/// A day whose entries were altered is not closed, so that the checkpoint does not confirm them.
#[tokio::test]
async fn an_altered_day_is_not_closed() {
    let vault = TestVault::start().await;
    let client = vault.revealing_client().await;
    let killed = vault.second_node().await;
    let killed_client = client.at(&killed.base_url);
    killed_client.post("/tokens", note("a")).await;
    killed_client.post("/tokens", note("b")).await;
    drop(killed);
    let database = vault.database.connect().await;
    let sql = "update log set outcome = 3 where chain > 2000 and seq = 1";
    assert_eq!(database.execute(sql, &[]).await.unwrap(), 1);

    vault.vault.clock.set_offset(until_tomorrow(&vault).await);
    vault.vault.audit.checkpoint().await.unwrap();

    let today = days_of_keys(&vault).await[0];
    let last = last_note(&vault).await;
    assert!(!last.contains(&format!("closed-through {today}")), "{last}");
    assert!(matches!(
        findings(&vault).await[..],
        [Finding::Altered { from: 1, .. }]
    ));
}
