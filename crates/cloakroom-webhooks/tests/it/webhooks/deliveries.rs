//! Deliveries: requests, retries, the log, replays, and disabled webhooks.

use std::time::Duration;

use cloakroom::ids;
use cloakroom::jobs::maintain_webhooks_once;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::Fixture;
use super::endpoint::Behavior::{Redirect, Slow, Status};

#[tokio::test]
async fn an_event_is_delivered_with_its_envelope() {
    let mut fixture = Fixture::start().await;
    let webhook = fixture.subscribe(&["token.created", "token.expired"]).await;
    fixture.deliver();

    let token = json!({"type": "token", "data": "Sample", "metadata": {"\u{ff01}": "1", "\u{1f600}": "2", "a": "3"}});
    let created = fixture.client.post("/tokens", token).await;
    let received = fixture.endpoint.wait_for(1).await.remove(0);
    let logged = fixture
        .wait_for_log(&webhook, |delivery| delivery["state"] == "delivered")
        .await;
    fixture
        .sql("update token set expires_at = now()", &[])
        .await;
    cloakroom::tokens::sweep(&fixture.vault.vault)
        .await
        .unwrap();
    let expired = fixture.endpoint.wait_for(2).await.remove(1);

    assert_eq!(received.method, Method::POST);
    assert_eq!(received.path, "/hooks?tenant=a");
    assert_eq!(received.header("content-type"), "application/json");
    let event = received.event();
    assert_eq!(event["type"], "token.created");
    assert_eq!(event["tenant_id"], fixture.tenant.id.uuid.to_string());
    assert_eq!(event["trace_id"], created.header("bt-trace-id"));
    assert_eq!(event["timestamp"], created.body["created_at"]);
    assert_eq!(
        event["data"]["token"]["created_at"],
        created.body["created_at"]
    );
    assert_eq!(event["data"]["token"]["id"], created.id());
    let actor = &event["data"]["actor"];
    assert_eq!(actor["type"], "application");
    assert_eq!(actor["name"], "A private application");
    assert_eq!(actor["id"], created.body["created_by"]);
    assert_eq!(received.header("webhook-id"), event["id"].as_str().unwrap());
    // Keys are sorted by UTF-16 code units: the surrogate pair comes before U+FF01.
    let text = String::from_utf8(received.bytes.clone()).unwrap();
    assert!(text.starts_with("{\"delivered_at\":\""), "{text}");
    assert!(
        text.contains("\"metadata\":{\"a\":\"3\",\"\u{1f600}\":\"2\",\"\u{ff01}\":\"1\"}"),
        "{text}"
    );
    assert_eq!(logged["event_id"], event["id"]);
    assert_eq!(logged["attempts"], 1);
    assert_eq!(logged["last_status"], 200);
    let actor = &expired.event()["data"]["actor"];
    assert_eq!(*actor, json!({"id": "", "type": "system", "name": ""}));
}

/// An idempotent request fixes its time before the commit; the event has the same time.
#[tokio::test]
async fn an_event_has_the_time_of_an_idempotent_request() {
    let mut fixture = Fixture::start().await;
    fixture.subscribe(&["token.created"]).await;
    fixture.deliver();

    let request = fixture.client.request(Method::POST, "/tokens");
    let request = request.header("bt-idempotency-key", "key-1");
    let request = request.header("content-type", "application/json");
    let request = request.body(json!({"type": "token", "data": "a"}).to_string());
    let created = fixture.client.send(request).await;
    let received = fixture.endpoint.wait_for(1).await.remove(0);

    assert_eq!(created.status, StatusCode::CREATED);
    assert_eq!(
        received.event()["data"]["token"]["created_at"],
        created.body["created_at"]
    );
}

#[expect(
    clippy::disallowed_methods,
    reason = "compares with the clock of the receiver"
)]
#[tokio::test]
async fn a_failed_delivery_is_retried_with_a_new_time_and_the_same_id() {
    let mut fixture = Fixture::start().await;
    let webhook = fixture.subscribe(&["token.created"]).await;
    fixture
        .endpoint
        .script([Status(500), Redirect, Status(404)]);
    fixture.deliver();

    fixture.create_token().await;
    for attempts in 1..4 {
        let logged = fixture
            .wait_for_log(&webhook, |delivery| delivery["attempts"] == attempts)
            .await;
        assert_eq!(logged["state"], "pending");
        assert_eq!(logged["last_error"], "status");
        let next: jiff::Timestamp = logged["next_attempt_at"].as_str().unwrap().parse().unwrap();
        let wait = (next - jiff::Timestamp::now())
            .total(jiff::Unit::Second)
            .unwrap();
        let expected = [10.0, 60.0, 300.0][attempts as usize - 1];
        assert!(
            (0.8 * expected - 5.0..=1.2 * expected).contains(&wait),
            "{attempts}: {wait}"
        );
        fixture.skip_delays().await;
    }
    let logged = fixture
        .wait_for_log(&webhook, |delivery| delivery["state"] == "delivered")
        .await;

    assert_eq!(logged["attempts"], 4);
    let received = fixture.endpoint.received();
    assert_eq!(received.len(), 4);
    assert!(
        received
            .iter()
            .all(|request| request.path.starts_with("/hooks"))
    );
    for (first, second) in received.iter().zip(&received[1..]) {
        assert_eq!(first.event(), second.event());
        assert_ne!(first.body["delivered_at"], second.body["delivered_at"]);
        assert_ne!(first.header("bt-signature"), second.header("bt-signature"));
    }
}

#[tokio::test]
async fn a_slow_endpoint_is_given_ten_seconds() {
    let mut fixture = Fixture::start().await;
    let webhook = fixture.subscribe(&["token.created"]).await;
    fixture.endpoint.script([Slow(Duration::from_secs(30))]);
    fixture.deliver();

    fixture.create_token().await;
    let started = std::time::Instant::now();
    fixture.endpoint.wait_for(1).await;
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(fixture.log(&webhook).await[0]["attempts"], 0);
    let logged = fixture
        .wait_for_log(&webhook, |delivery| delivery["attempts"] == 1)
        .await;

    assert_eq!(logged["last_error"], "timeout");
    assert!(started.elapsed() < Duration::from_secs(15));
}

#[expect(
    clippy::disallowed_methods,
    reason = "compares with the clock of the receiver"
)]
#[tokio::test]
async fn attempts_end_after_72_hours() {
    let mut fixture = Fixture::start().await;
    let webhook = fixture.subscribe(&["token.created"]).await;
    fixture.endpoint.respond(Status(500));
    fixture.deliver();

    fixture.create_token().await;
    fixture
        .wait_for_log(&webhook, |delivery| delivery["attempts"] == 1)
        .await;
    // The delay after 17 attempts is eight hours, but the last attempt is after 72 hours.
    let aged = "update webhook_delivery set attempts = 16, retry_from = now() - interval '67 hours', next_at = now()";
    fixture.sql(aged, &[]).await;
    let pending = fixture
        .wait_for_log(&webhook, |delivery| delivery["attempts"] == 17)
        .await;
    assert_eq!(pending["state"], "pending");
    let next: jiff::Timestamp = pending["next_attempt_at"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let wait = (next - jiff::Timestamp::now())
        .total(jiff::Unit::Hour)
        .unwrap();
    assert!((4.9..=5.1).contains(&wait), "{wait}");
    let last =
        "update webhook_delivery set retry_from = now() - interval '72 hours', next_at = now()";
    fixture.sql(last, &[]).await;
    let failed = fixture
        .wait_for_log(&webhook, |delivery| delivery["state"] == "failed")
        .await;

    assert_eq!(failed["attempts"], 18);
    assert_eq!(failed["last_status"], 500);
    assert!(failed["finished_at"].is_string());
    assert_eq!(fixture.skip_delays().await, 0);
}

#[expect(clippy::too_many_lines, reason = "one sequence of attempts")]
#[tokio::test]
async fn events_are_replayed_by_id_and_by_time() {
    let mut fixture = Fixture::start().await;
    let webhook = fixture.subscribe(&["token.created"]).await;
    let path = format!("/webhooks/{webhook}/replay");
    fixture.deliver();
    fixture.create_token().await;
    fixture
        .wait_for_log(&webhook, |delivery| delivery["state"] == "delivered")
        .await;
    fixture.create_token().await;
    let received = fixture.endpoint.wait_for(2).await;
    let last = fixture
        .wait_for_log(&webhook, |delivery| delivery["state"] == "delivered")
        .await;
    let first_id = received[0].event()["id"].clone();

    let one = fixture
        .manager
        .post(&path, json!({"event_id": first_id}))
        .await;
    let replayed = fixture.endpoint.wait_for(3).await;
    assert_eq!(one.body, json!({"replayed": 1}));
    assert_eq!(replayed[2].event(), received[0].event());
    fixture
        .wait_for_log(&webhook, |delivery| delivery["state"] == "delivered")
        .await;
    for _ in 0..100 {
        if fixture
            .log(&webhook)
            .await
            .iter()
            .all(|one| one["state"] == "delivered")
        {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let range =
        json!({"from": last["created_at"], "to": "2100-01-01T00:00:00Z", "state": "delivered"});
    let range = fixture.manager.post(&path, range).await;
    assert_eq!(range.body, json!({"replayed": 1}), "{}", range.body);
    let replayed = fixture.endpoint.wait_for(4).await;
    assert_eq!(replayed[3].event(), received[1].event());

    let cases = [
        (json!({}), StatusCode::BAD_REQUEST),
        (json!({"event_id": "x"}), StatusCode::BAD_REQUEST),
        (
            json!({"event_id": ids::new_uuid(), "from": "2030-01-01T00:00:00Z"}),
            StatusCode::BAD_REQUEST,
        ),
        (json!({"event_id": ids::new_uuid()}), StatusCode::NOT_FOUND),
        (
            json!({"from": "yesterday", "to": "2030-01-01T00:00:00Z"}),
            StatusCode::BAD_REQUEST,
        ),
        (
            json!({"from": "2030-01-01T00:00:00Z", "to": "2030-01-01T00:00:00Z", "state": "pending"}),
            StatusCode::BAD_REQUEST,
        ),
    ];
    for (body, status) in cases {
        assert_eq!(
            fixture.manager.post(&path, body.clone()).await.status,
            status,
            "{body}"
        );
    }
    let mut disabled = fixture.webhook(&["token.created"]);
    disabled["status"] = json!("disabled");
    fixture
        .manager
        .put(&format!("/webhooks/{webhook}"), disabled)
        .await;
    let conflict = fixture
        .manager
        .post(&path, json!({"event_id": first_id}))
        .await;
    assert_eq!(conflict.status, StatusCode::CONFLICT);
}

#[tokio::test]
async fn the_log_is_listed_in_pages() {
    let fixture = Fixture::start().await;
    let webhook = fixture.subscribe(&["token.created"]).await;
    for _ in 0..5 {
        fixture.create_token().await;
    }
    let path = format!("/webhooks/{webhook}/deliveries");

    let mut seen = Vec::new();
    let mut start = String::new();
    for expected in [2, 2, 1] {
        let page = fixture
            .manager
            .get(&format!("{path}?size=2&state=pending&start={start}"))
            .await;
        assert_eq!(page.items().len(), expected);
        seen.extend(page.items().iter().map(|one| one["event_id"].clone()));
        start = page.body["pagination"]["next"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
    }
    assert_eq!(start, "");
    seen.dedup();
    assert_eq!(seen.len(), 5);
    assert_eq!(
        fixture
            .manager
            .get(&format!("{path}?state=failed"))
            .await
            .items()
            .len(),
        0
    );
    for query in ["state=lost", "size=1000", "start=x", "start=1_x'or"] {
        let response = fixture.manager.get(&format!("{path}?{query}")).await;
        assert_eq!(response.status, StatusCode::BAD_REQUEST, "{query}");
    }
}

#[tokio::test]
async fn an_endpoint_that_fails_for_three_days_is_disabled() {
    let mut fixture = Fixture::start().await;
    let failing = fixture.subscribe(&["token.created"]).await;
    let holder = ids::new_uuid();
    let path = format!("/webhooks/{failing}");
    fixture.endpoint.respond(Status(500));
    fixture.deliver();
    fixture.create_token().await;
    fixture
        .wait_for_log(&failing, |delivery| delivery["attempts"] == 1)
        .await;
    let status = async |fixture: &Fixture| fixture.manager.get(&path).await.body["status"].clone();
    let age = "update webhook set failing_since = failing_since - interval '73 hours'";

    // Three days, but too few failures.
    fixture.sql(age, &[]).await;
    maintain_webhooks_once(&fixture.vault.vault, holder)
        .await
        .unwrap();
    assert_eq!(status(&fixture).await, "enabled");
    // Enough failures, but one success.
    fixture.sql("update webhook set failures = 49", &[]).await;
    fixture.endpoint.respond(Status(200));
    fixture.skip_delays().await;
    fixture
        .wait_for_log(&failing, |delivery| delivery["state"] == "delivered")
        .await;
    maintain_webhooks_once(&fixture.vault.vault, holder)
        .await
        .unwrap();
    assert_eq!(status(&fixture).await, "enabled");
    // Both.
    fixture.endpoint.respond(Status(500));
    fixture.create_token().await;
    fixture
        .wait_for_log(&failing, |delivery| delivery["attempts"] == 1)
        .await;
    fixture.sql("update webhook set failures = 49", &[]).await;
    fixture.sql(age, &[]).await;
    fixture.skip_delays().await;
    fixture
        .wait_for_log(&failing, |delivery| delivery["attempts"] == 2)
        .await;
    maintain_webhooks_once(&fixture.vault.vault, holder)
        .await
        .unwrap();
    assert_eq!(status(&fixture).await, "disabled");

    let attempts = fixture.endpoint.count();
    fixture.skip_delays().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(fixture.endpoint.count(), attempts);
    let sql =
        "select count(*) from log where entity_kind = 14 and operation = 3 and actor_kind = 3";
    let connection = fixture.vault.database.connect().await;
    let changes: i64 = connection.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(changes, 1);
    // Enabling it again resumes what is pending.
    fixture.endpoint.respond(Status(200));
    fixture
        .manager
        .put(&path, fixture.webhook(&["token.created"]))
        .await;
    fixture
        .wait_for_log(&failing, |delivery| delivery["state"] == "delivered")
        .await;
}

#[tokio::test]
async fn old_deliveries_are_removed_and_pending_ones_are_not() {
    let fixture = Fixture::start().await;
    let webhook = fixture.subscribe(&["token.created"]).await;
    let other = fixture.subscribe(&["token.created"]).await;
    for _ in 0..6 {
        fixture.create_token().await;
    }
    let connection = fixture.vault.database.connect().await;
    let ids = connection
        .query(
            "select event_id from webhook_delivery where webhook_id = $1::text::uuid",
            &[&webhook],
        )
        .await
        .unwrap();
    let ids: Vec<uuid::Uuid> = ids.iter().map(|row| row.get(0)).collect();
    let cases = [
        (2, "6 days", true),
        (2, "8 days", false),
        (3, "29 days", true),
        (3, "31 days", false),
    ];
    for (id, (state, age, _)) in ids.iter().zip(cases) {
        let sql = format!(
            "update webhook_delivery set state = {state}, finished_at = now() - interval '{age}' where event_id = $1 and webhook_id = $2::text::uuid"
        );
        connection.execute(&sql, &[id, &webhook]).await.unwrap();
    }
    // Pending for 72 hours, and for 74.
    for (id, hours) in [(ids[4], 72), (ids[5], 74)] {
        let sql = format!(
            "update webhook_delivery set attempts = 1, retry_from = now() - interval '{hours} hours' where event_id = $1"
        );
        connection.execute(&sql, &[&id]).await.unwrap();
    }
    fixture.manager.delete(&format!("/webhooks/{other}")).await;

    maintain_webhooks_once(&fixture.vault.vault, ids::new_uuid())
        .await
        .unwrap();

    let state = async |id: &uuid::Uuid| {
        let sql = "select state from webhook_delivery where event_id = $1 and webhook_id = $2::text::uuid";
        connection
            .query_opt(sql, &[id, &webhook])
            .await
            .unwrap()
            .map(|row| row.get::<_, i16>(0))
    };
    for (id, (number, age, is_kept)) in ids.iter().zip(cases) {
        assert_eq!(state(id).await, is_kept.then_some(number), "{number} {age}");
    }
    assert_eq!(state(&ids[4]).await, Some(1));
    assert_eq!(state(&ids[5]).await, Some(3));
    let sql = "select count(*) from webhook_delivery where webhook_id = $1::text::uuid";
    let orphans: i64 = connection.query_one(sql, &[&other]).await.unwrap().get(0);
    assert_eq!(orphans, 0);
}

/// SQL cannot make the vault sign an event that it did not write.
#[tokio::test]
async fn an_altered_event_is_not_delivered() {
    let mut fixture = Fixture::start().await;
    let webhook = fixture.subscribe(&["token.created"]).await;
    fixture.create_token().await;
    let sql = "update webhook_delivery set payload = replace(payload, '/general/', '/forged/')";
    assert_eq!(fixture.sql(sql, &[]).await, 1);
    fixture.deliver();

    let logged = fixture
        .wait_for_log(&webhook, |delivery| delivery["attempts"] == 1)
        .await;

    assert_eq!(logged["last_error"], "altered_row");
    assert_eq!(fixture.endpoint.count(), 0);
}

/// SQL cannot send an event to a webhook that did not subscribe to it.
#[tokio::test]
async fn an_event_copied_to_another_webhook_is_not_delivered() {
    let mut fixture = Fixture::start().await;
    let webhook = fixture.subscribe(&["token.created"]).await;
    fixture.create_token().await;
    let other = fixture.subscribe(&["tenant.updated"]).await;
    let copy = "insert into webhook_delivery (tenant_id, webhook_id, event_id, event_type, entity, actor_type,
            actor_id, trace_id, occurred_at, recorded_at, payload, mac)
        select tenant_id, $1::text::uuid, event_id, event_type, entity, actor_type,
            actor_id, trace_id, occurred_at, recorded_at, payload, mac
        from webhook_delivery";
    assert_eq!(fixture.sql(copy, &[&other]).await, 1);
    fixture.deliver();

    let copied = fixture
        .wait_for_log(&other, |delivery| delivery["attempts"] == 1)
        .await;

    assert_eq!(copied["last_error"], "altered_row");
    let own = |delivery: &Value| delivery["state"] == "delivered";
    fixture.wait_for_log(&webhook, own).await;
    assert_eq!(fixture.endpoint.count(), 1);
}

/// The tenant's list of hosts applies when events are sent, not only when the webhook is saved.
#[tokio::test]
async fn egress_rules_apply_to_each_delivery() {
    let mut fixture = Fixture::start().await;
    let webhook = fixture.subscribe(&["token.created"]).await;
    let hosts = json!({"name": "A tenant", "settings": {"egress_hosts": "other.example.com"}});
    let changed = fixture.manager.put("/tenants/self", hosts).await;
    assert_eq!(changed.status, StatusCode::OK, "{}", changed.body);
    fixture.create_token().await;
    fixture.deliver();

    let logged = fixture
        .wait_for_log(&webhook, |delivery| delivery["attempts"] == 1)
        .await;

    assert_eq!(logged["last_error"], "host_not_allowed_by_tenant");
    assert_eq!(fixture.endpoint.count(), 0);
    let denied = fixture
        .manager
        .post("/webhooks", fixture.webhook(&["token.created"]))
        .await;
    assert_eq!(denied.refused(), ["url"]);
}
