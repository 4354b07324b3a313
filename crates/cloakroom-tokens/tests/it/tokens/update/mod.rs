//! Updating tokens: the effect of a merge patch on each attribute and on derived values.

mod attributes;
mod concurrency;
mod data;
mod deduplication;
mod permissions;
mod random;
mod validation;

use std::time::Duration;

use cloakroom_testkit::{Client, TestVault};
use http::StatusCode;
use uuid::Uuid;

fn id_of(path: &str) -> String {
    path.strip_prefix("/tokens/").unwrap().to_owned()
}

fn uuid_of(path: &str) -> Uuid {
    id_of(path).parse().unwrap()
}

async fn row_version(vault: &TestVault, path: &str) -> i32 {
    let select = "select row_version from token where token_id = $1";
    let database = vault.database.connect().await;
    let row = database.query_one(select, &[&uuid_of(path)]).await.unwrap();
    row.get(0)
}

/// A timestamp by the clock of the database.
async fn in_seconds(vault: &TestVault, seconds: i64) -> String {
    let database = vault.database.connect().await;
    let row = database.query_one("select now()", &[]).await.unwrap();
    let now: jiff::Timestamp = row.get(0);
    (now + jiff::SignedDuration::from_secs(seconds)).to_string()
}

async fn wait_until_expired(client: &Client, path: &str) {
    let deadline = std::time::Instant::now() + Duration::from_secs(20);
    while client.get(path).await.status != StatusCode::NOT_FOUND {
        assert!(
            std::time::Instant::now() < deadline,
            "{path} is still there"
        );
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Asserts that the tables agree: every term and claim has its token, and none is missing.
async fn assert_consistent(vault: &TestVault) {
    let database = vault.database.connect().await;
    let checks = [
        (
            "terms without a token that has them in that container",
            "select count(*) from term where not exists (
                select from token join container using (tenant_id, container_id)
                where token.tenant_id = term.tenant_id and token.token_id = term.token_id
                  and token.created_at = term.created_at and container.path = term.path
                  and term.term = any(token.terms))",
        ),
        (
            "tokens whose terms are missing or duplicated in the table",
            "select count(*) from token where cardinality(terms) <> (
                select count(distinct term) from term
                where term.tenant_id = token.tenant_id and term.token_id = token.token_id)",
        ),
        (
            "claims without a token of that fingerprint in that container",
            "select count(*) from claim where not exists (
                select from token
                where token.tenant_id = claim.tenant_id and token.token_id = claim.token_id
                  and token.container_id = claim.container_id
                  and token.fingerprint = claim.fingerprint)",
        ),
    ];
    for (what, check) in checks {
        let count: i64 = database.query_one(check, &[]).await.unwrap().get(0);
        assert_eq!(count, 0, "{what}");
    }
}
