//! Progress of imports: continued, repeated, and altered by SQL.

use std::sync::atomic::Ordering;
use std::time::Duration;

use cloakroom::config::Config;
use cloakroom::transfer::import::{Counts, Error};
use cloakroom_platform::failpoints::arm;
use cloakroom_testkit::{TestDatabase, TestVault};

use super::{REPETITIONS, cards, count, import_lines, import_with, options};

#[tokio::test]
async fn the_second_run_of_a_finished_import_changes_nothing() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let lines = cards(1_200) + "{}";

    let (first, first_report) = import_lines(&vault, &tenant, "cards", lines.clone())
        .await
        .unwrap();
    let log = count(&vault, "log").await;
    let (second, second_report) = import_lines(&vault, &tenant, "cards", lines).await.unwrap();

    assert_eq!(
        (first.created, first.rejected, first.earlier),
        (1_200, 1, 0)
    );
    assert_eq!((second.created, second.rejected), (1_200, 1));
    assert_eq!(second.earlier, 1_201);
    assert_eq!(second_report.rejected, first_report.rejected);
    assert_eq!(count(&vault, "token").await, 1_200);
    assert_eq!(count(&vault, "import_batch").await, 3);
    assert_eq!(count(&vault, "log").await, log);
}

#[tokio::test]
async fn an_interrupted_import_is_continued() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let lines = cards(4_600);
    for failpoint in ["import.planned", "import.inserted", "import.committed"] {
        arm(failpoint, 2);
        let failed = import_lines(&vault, &tenant, "cards", lines.clone()).await;
        assert!(failed.is_err(), "{failpoint}");
    }

    let (counts, _) = import_lines(&vault, &tenant, "cards", lines).await.unwrap();

    assert_eq!(counts.created, 4_600);
    assert!(counts.earlier >= 500, "{counts:?}");
    assert_eq!(count(&vault, "token").await, 4_600);
    let distinct = "(select distinct fingerprint from token) as it";
    assert_eq!(
        count(&vault, distinct).await,
        4_600,
        "no card is there twice"
    );
}

#[tokio::test]
async fn another_input_or_another_option_under_the_same_name_is_rejected() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let lines = cards(600);
    import_lines(&vault, &tenant, "cards", lines.clone())
        .await
        .unwrap();

    let changed = lines.replacen("2040", "2041", 1);
    let changed = import_lines(&vault, &tenant, "cards", changed).await;
    assert!(
        matches!(changed, Err(Error::Differs { line: 1 })),
        "{changed:?}"
    );
    let shorter = import_lines(&vault, &tenant, "cards", cards(500)).await;
    assert!(
        matches!(shorter, Err(Error::Shorter { line: 501 })),
        "{shorter:?}"
    );
    let mut deduplicating = options("cards");
    deduplicating.deduplicates = true;
    let other = import_with(&vault, &tenant, deduplicating, lines.clone()).await;
    assert!(matches!(other, Err(Error::Differs { .. })), "{other:?}");

    let longer = import_lines(
        &vault,
        &tenant,
        "cards",
        lines + "{\"type\": \"token\", \"data\": 1}",
    );
    let (counts, _) = longer.await.unwrap();
    assert_eq!((counts.created, counts.earlier), (601, 600));
}

/// Lines whose ids are given, so that another file does not fail because of them.
fn named_lines(prefix: &str, count: u64) -> String {
    let line =
        |index| format!("{{\"id\": \"{prefix}-{index}\", \"type\": \"token\", \"data\": 1}}\n");
    (0..count).map(line).collect()
}

#[tokio::test]
async fn nothing_of_another_input_under_the_same_name_is_committed() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let lines = named_lines("first", 500);
    import_lines(&vault, &tenant, "cards", lines.clone())
        .await
        .unwrap();
    let others = [
        // No line begins where the known batch does.
        "\n".to_owned() + &named_lines("shifted", 700),
        // The batch of an earlier run differs, and a new one follows.
        lines.replacen("first-7", "other-7", 1) + &named_lines("later", 500),
    ];
    for other in others {
        let imported = import_lines(&vault, &tenant, "cards", other).await;
        assert!(
            matches!(imported, Err(Error::Differs { line: 1 })),
            "{imported:?}"
        );
        assert_eq!(count(&vault, "token").await, 500);
    }

    // A batch that an interrupted run has not committed, before one that it has.
    let database = vault.database.connect().await;
    import_lines(&vault, &tenant, "gap", named_lines("gap", 1_000))
        .await
        .unwrap();
    let sql = "delete from import_batch where first_line = 1";
    assert_eq!(database.execute(sql, &[]).await.unwrap(), 2);
    let shorter = import_lines(&vault, &tenant, "gap", named_lines("short", 400)).await;
    assert!(
        matches!(shorter, Err(Error::Shorter { line: 501 })),
        "{shorter:?}"
    );
    assert_eq!(count(&vault, "token").await, 1_500);
}

#[tokio::test]
async fn the_last_batch_of_a_truncated_input_is_not_committed() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let import = async |count| {
        let mut counted = options("counted");
        counted.lines = Some(700);
        import_with(&vault, &tenant, counted, named_lines("a", count)).await
    };

    let truncated = import(699).await;
    let expected = Error::Truncated {
        expected: 700,
        found: 699,
    };
    let error = truncated.unwrap_err().to_string();
    assert_eq!(error, expected.to_string());
    assert_eq!(count(&vault, "token").await, 500);
    let longer = import(701).await;
    assert!(
        matches!(longer, Err(Error::Longer { expected: 700 })),
        "{longer:?}"
    );
    assert_eq!(count(&vault, "token").await, 500);
    let (counts, _) = import(700).await.unwrap();
    assert_eq!((counts.created, counts.earlier), (700, 500));
}

#[tokio::test]
async fn progress_that_sql_changes_or_deletes_stops_the_import() {
    let vault = TestVault::start().await;
    let tenant = vault.tenant().await;
    let lines = cards(600);
    import_lines(&vault, &tenant, "cards", lines.clone())
        .await
        .unwrap();
    let database = vault.database.connect().await;

    let changes = [
        "update import_batch set created = created + 1 where first_line = 1",
        "update import_batch set outcomes = '{\"rejected\":[],\"duplicates\":[]} ' where first_line = 1",
        "update import_batch set row_mac = content_mac where first_line = 1",
    ];
    database
        .execute("create table saved as table import_batch", &[])
        .await
        .unwrap();
    for change in changes {
        database.execute(change, &[]).await.unwrap();
        let altered = import_lines(&vault, &tenant, "cards", lines.clone()).await;
        assert!(
            matches!(altered, Err(Error::Altered { line: 1 })),
            "{change}: {altered:?}"
        );
        database
            .execute("delete from import_batch", &[])
            .await
            .unwrap();
        let restore = "insert into import_batch select * from saved";
        database.execute(restore, &[]).await.unwrap();
    }

    let delete = "delete from import_batch where first_line = 501";
    database.execute(delete, &[]).await.unwrap();
    let lost = import_lines(&vault, &tenant, "cards", lines).await;
    assert!(
        matches!(lost, Err(Error::ProgressLost { line: 501 })),
        "{lost:?}"
    );
    assert_eq!(count(&vault, "token").await, 600);
}

#[tokio::test]
async fn progress_of_one_tenant_is_nothing_to_another() {
    let vault = TestVault::start().await;
    let (one, other) = (vault.tenant().await, vault.tenant().await);
    import_lines(&vault, &one, "cards", cards(3)).await.unwrap();

    let (counts, _) = import_lines(&vault, &other, "cards", cards(3))
        .await
        .unwrap();

    assert_eq!((counts.created, counts.earlier), (3, 0));
    assert_eq!(count(&vault, "token").await, 6);
}

/// Two processes that run the same import never create a line twice.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_runs_of_one_import_create_every_line_once() {
    let vault = TestVault::start_with_long_timeouts().await;
    let tenant = vault.tenant().await;
    let lines = cards(3_000);
    let runs = (0..3).map(|_| import_lines(&vault, &tenant, "cards", lines.clone()));

    let results = futures_util::future::join_all(runs).await;

    for result in results {
        assert!(
            matches!(result, Ok(_) | Err(Error::Concurrent)),
            "{result:?}"
        );
    }
    let (counts, _) = import_lines(&vault, &tenant, "cards", lines).await.unwrap();
    assert_eq!(counts.created, 3_000);
    assert_eq!(count(&vault, "token").await, 3_000);
}

/// A vault that gives up on a write after 300 ms, with a batch that takes longer once.
async fn import_with_a_slow_batch(slow: &str) -> (TestVault, Counts) {
    let short = |config: &mut Config| config.database.write_deadline = Duration::from_millis(300);
    let vault = TestVault::start_with(TestDatabase::create().await, short).await;
    let tenant = vault.tenant().await;
    let database = vault.database.connect().await;
    database.batch_execute(slow).await.unwrap();

    let (counts, _) = import_lines(&vault, &tenant, "cards", cards(1_200))
        .await
        .unwrap();

    assert!(REPETITIONS.load(Ordering::Relaxed) >= 1);
    (vault, counts)
}

#[tokio::test]
async fn a_batch_that_the_database_does_not_complete_in_time_is_repeated() {
    let slow = "
        create sequence slow_batch;
        create function sleep_once() returns trigger language plpgsql as $$ begin
            if nextval('slow_batch') = 2 then perform pg_sleep(1); end if;
            return new;
        end $$;
        create trigger slow before insert on import_batch for each row execute function sleep_once();";
    let (vault, counts) = import_with_a_slow_batch(slow).await;

    assert_eq!((counts.created, counts.earlier), (1_200, 0));
    assert_eq!(count(&vault, "token").await, 1_200);
    assert_eq!(count(&vault, "import_batch").await, 3);
}

/// The commit itself is slow: the vault gives up before, the database commits nevertheless.
#[tokio::test]
async fn a_batch_that_is_committed_after_the_deadline_is_not_imported_twice() {
    let slow = "
        create sequence slow_batch;
        create function sleep_once() returns trigger language plpgsql as $$ begin
            if nextval('slow_batch') = 2 then perform pg_sleep(2); end if;
            return new;
        end $$;
        create constraint trigger slow after insert on import_batch deferrable initially deferred
            for each row execute function sleep_once();";
    let (vault, counts) = import_with_a_slow_batch(slow).await;

    assert_eq!((counts.created, counts.earlier), (1_200, 0));
    assert_eq!(count(&vault, "token").await, 1_200);
    assert_eq!(count(&vault, "import_batch").await, 3);
    let distinct = "(select distinct fingerprint from token) as it";
    assert_eq!(count(&vault, distinct).await, 1_200);
}
