//! Endpoints that fail, and events that wait, cost the database and other webhooks little.

use std::time::Duration;

use cloakroom::ids;
use cloakroom::jobs::maintain_webhooks_once;
use serde_json::json;

use super::Fixture;
use super::endpoint::Behavior::{Slow, Status};

/// Copies of the stored events. Their MAC is invalid, so they are for tests that do not send them.
const COPY: &str = "insert into webhook_delivery (tenant_id, webhook_id, event_id, event_type, entity, actor_type, actor_id,
        trace_id, occurred_at, recorded_at, payload, mac)
    select tenant_id, webhook_id, gen_random_uuid(), event_type, entity, actor_type, actor_id, trace_id, occurred_at,
        recorded_at + copy * interval '1 microsecond', payload, mac
    from webhook_delivery, generate_series(1, $1::integer) as copy";

#[tokio::test]
async fn an_unreachable_endpoint_is_paused() {
    let mut fixture = Fixture::start().await;
    let webhook = fixture.subscribe(&["token.created"]).await;
    fixture.endpoint.stop().await;
    for _ in 0..60 {
        fixture.create_token().await;
    }
    fixture.deliver();
    fixture.wait_for_log(&webhook, |_| true).await;
    tokio::time::sleep(Duration::from_secs(2)).await;

    let before = fixture.updates().await;
    tokio::time::sleep(Duration::from_secs(12)).await;
    let updates = fixture.updates().await - before;

    // Without pauses, each event is claimed and postponed every five seconds: two updates.
    assert!(updates < 40, "{updates} updates");
    let sql =
        "select count(*) from webhook_delivery where last_error = 'circuit_open' and attempts = 0";
    let connection = fixture.vault.database.connect().await;
    let busy: i64 = connection.query_one(sql, &[]).await.unwrap().get(0);
    assert!(busy > 0);
}

#[tokio::test]
async fn an_endpoint_that_hangs_gets_one_request_at_a_time() {
    let mut fixture = Fixture::start().await;
    fixture.subscribe(&["token.created"]).await;
    for _ in 0..20 {
        fixture.create_token().await;
    }
    fixture.endpoint.respond(Slow(Duration::from_secs(60)));
    fixture.deliver();

    fixture.endpoint.wait_for(8).await;
    fixture.endpoint.wait_for(9).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(fixture.endpoint.count(), 9);
}

#[tokio::test]
async fn waiting_events_of_one_entity_are_not_examined_over_and_over() {
    let mut fixture = Fixture::start().await;
    fixture.subscribe(&["token.created"]).await;
    fixture.create_token().await;
    fixture.sql(COPY, &[&2000]).await;
    fixture.endpoint.respond(Status(500));
    fixture.deliver();
    fixture.endpoint.wait_for(1).await;
    tokio::time::sleep(Duration::from_secs(3)).await;

    let before = fixture.updates().await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let updates = fixture.updates().await - before;

    // Examining all of them every two seconds would be thousands.
    assert!(updates < 50, "{updates} updates");
}

/// An event that was never sent is late because of the vault. It is delivered, however old it is.
#[tokio::test]
async fn only_attempted_events_and_those_of_disabled_webhooks_expire() {
    let mut fixture = Fixture::start().await;
    let enabled = fixture.subscribe(&["token.created"]).await;
    let disabled = fixture.subscribe(&["token.created"]).await;
    for _ in 0..2 {
        fixture.create_token().await;
    }
    let mut change = fixture.webhook(&["token.created"]);
    change["status"] = json!("disabled");
    fixture
        .manager
        .put(&format!("/webhooks/{disabled}"), change)
        .await;
    let aged = "update webhook_delivery set retry_from = now() - interval '74 hours'";
    fixture.sql(aged, &[]).await;
    let attempted = "update webhook_delivery set attempts = 1 where event_id = (select event_id from webhook_delivery
        order by recorded_at limit 1)";
    fixture.sql(attempted, &[]).await;

    let holder = ids::new_uuid();
    maintain_webhooks_once(&fixture.vault.vault, holder)
        .await
        .unwrap();

    let states = async |webhook: &str| {
        let log = fixture.log(webhook).await;
        log.iter()
            .map(|one| one["state"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(states(&enabled).await, ["pending", "failed"]);
    assert_eq!(states(&disabled).await, ["failed", "failed"]);

    // Its retries begin with the first attempt.
    fixture.endpoint.respond(Status(500));
    fixture.deliver();
    let attempted = fixture
        .wait_for_log(&enabled, |one| one["attempts"] == 1)
        .await;
    assert_eq!(attempted["state"], "pending");
}

/// More rows than twenty batches delete.
#[tokio::test]
async fn one_run_removes_a_large_number_of_old_deliveries() {
    let fixture = Fixture::start().await;
    fixture.subscribe(&["token.created"]).await;
    fixture.create_token().await;
    fixture.sql(COPY, &[&22_000]).await;
    let old = "update webhook_delivery set state = 2, finished_at = now() - interval '8 days'";
    fixture.sql(old, &[]).await;

    let holder = ids::new_uuid();
    maintain_webhooks_once(&fixture.vault.vault, holder)
        .await
        .unwrap();

    assert_eq!(fixture.stored().await.len(), 0);
}

#[tokio::test]
async fn a_large_replay_is_continued() {
    let fixture = Fixture::start().await;
    let webhook = fixture.subscribe(&["token.created"]).await;
    fixture.create_token().await;
    fixture.sql(COPY, &[&12_000]).await;
    let delivered = "update webhook_delivery set state = 2, finished_at = now()";
    fixture.sql(delivered, &[]).await;
    let path = format!("/webhooks/{webhook}/replay");

    let mut range = json!({"from": "2020-01-01T00:00:00Z", "to": "2100-01-01T00:00:00Z"});
    let first = fixture.manager.post(&path, range.clone()).await;
    assert_eq!(first.body["replayed"], 10_000);
    // They are delivered meanwhile.
    fixture.sql(delivered, &[]).await;
    range["from"] = first.body["next_from"].clone();
    let second = fixture.manager.post(&path, range).await;

    // The first event of the second request is the last one of the first.
    assert_eq!(second.body, json!({"replayed": 2_002}));
}

#[tokio::test]
async fn failed_deliveries_are_found_by_an_index() {
    let fixture = Fixture::start().await;
    fixture.subscribe(&["token.created"]).await;
    fixture.create_token().await;
    fixture.sql(COPY, &[&5_000]).await;
    fixture
        .sql(
            "update webhook_delivery set state = 2, finished_at = now()",
            &[],
        )
        .await;
    fixture.sql("analyze webhook_delivery", &[]).await;
    let connection = fixture.vault.database.connect().await;
    let statements = cloakroom::webhooks::statements();
    let mut checked = 0;
    for statement in statements {
        if !matches!(
            statement.name,
            "deliveries::list_failed" | "deliveries::replay_failed"
        ) {
            continue;
        }
        let name = statement.name.replace("::", "_");
        let text = statement.text;
        connection
            .batch_execute(&format!(
                "set plan_cache_mode = force_generic_plan; prepare {name} as {text}"
            ))
            .await
            .unwrap();
        let params = match statement.name {
            "deliveries::list_failed" => "1, gen_random_uuid(), null, null, 20",
            _ => "1, gen_random_uuid(), now(), now(), 20",
        };
        let plan = connection
            .query(&format!("explain execute {name}({params})"), &[])
            .await
            .unwrap();
        let plan: Vec<String> = plan.iter().map(|row| row.get(0)).collect();
        assert!(
            plan.join("\n").contains("webhook_delivery_failed"),
            "{plan:#?}"
        );
        checked += 1;
    }
    assert_eq!(checked, 2);
}
