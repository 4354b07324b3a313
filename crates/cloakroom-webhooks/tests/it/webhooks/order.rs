//! Events of one entity are delivered in order, and do not hold up others.

use std::time::Duration;

use serde_json::json;

use super::Fixture;
use super::endpoint::Behavior::{Slow, Status};

fn orders(received: &[super::endpoint::Received], id: &str) -> Vec<String> {
    let of_token = received
        .iter()
        .filter(|one| one.event()["data"]["token"]["id"] == id);
    of_token
        .map(|one| {
            let order = &one.event()["data"]["token"]["metadata"]["order"];
            order
                .as_str()
                .unwrap_or_else(|| one.event_type())
                .to_owned()
        })
        .collect()
}

#[tokio::test]
async fn events_of_a_token_arrive_in_order() {
    let mut fixture = Fixture::start().await;
    fixture
        .subscribe(&["token.created", "token.updated", "token.deleted"])
        .await;
    // Several nodes deliver at the same time.
    for _ in 0..3 {
        fixture.deliver();
    }
    fixture.endpoint.respond(Slow(Duration::from_millis(30)));

    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(fixture.create_token().await);
    }
    for order in 0..6 {
        for id in &ids {
            let patch = json!({"metadata": {"order": order.to_string()}});
            fixture.client.patch(&format!("/tokens/{id}"), patch).await;
        }
    }
    for id in &ids {
        fixture.client.delete(&format!("/tokens/{id}")).await;
    }
    let received = fixture.endpoint.wait_for(4 * 8).await;

    for id in &ids {
        let expected = [
            "token.created",
            "0",
            "1",
            "2",
            "3",
            "4",
            "5",
            "token.deleted",
        ];
        assert_eq!(orders(&received, id), expected);
    }
    assert_eq!(fixture.endpoint.count(), 4 * 8);
}

#[tokio::test]
async fn an_event_waits_for_three_attempts_of_an_earlier_one() {
    let mut fixture = Fixture::start().await;
    let webhook = fixture.subscribe(&["token.created", "token.deleted"]).await;
    fixture
        .endpoint
        .script([Status(500), Status(500), Status(500)]);
    let token = fixture.create_token().await;
    fixture.client.delete(&format!("/tokens/{token}")).await;
    fixture.deliver();

    for attempts in 1..=3 {
        for _ in 0..200 {
            if fixture.log(&webhook).await[1]["attempts"] == attempts {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(fixture.log(&webhook).await[1]["attempts"], attempts);
        if attempts < 3 {
            assert_eq!(fixture.log(&webhook).await[0]["attempts"], 0);
        }
        // Only the earlier event becomes due; the later one is looked at as well.
        fixture.sql("update webhook_delivery set next_at = now() where state = 1 and (event_type = 'token.created' and attempts < 3 or event_type = 'token.deleted')", &[]).await;
    }
    let received = fixture.endpoint.wait_for(4).await;

    let types: Vec<&str> = received
        .iter()
        .map(super::endpoint::Received::event_type)
        .collect();
    assert_eq!(
        types,
        [
            "token.created",
            "token.created",
            "token.created",
            "token.deleted"
        ]
    );
}

/// More events of one failing entity than a claim looks at.
#[tokio::test]
async fn events_that_wait_do_not_hold_up_other_entities() {
    let mut fixture = Fixture::start().await;
    let webhook = fixture.subscribe(&["token.created", "token.updated"]).await;
    let blocked = fixture.create_token().await;
    // Copies keep a valid MAC only for their own id, but their order is what matters here.
    let copy = "insert into webhook_delivery (tenant_id, webhook_id, event_id, event_type, entity, actor_type, actor_id,
            trace_id, occurred_at, recorded_at, payload, mac)
        select tenant_id, webhook_id, gen_random_uuid(), event_type, entity, actor_type, actor_id, trace_id, occurred_at,
            clock_timestamp(), payload, mac
        from webhook_delivery, generate_series(1, 1500)";
    fixture.sql(copy, &[]).await;
    fixture.endpoint.script([Status(500)]);
    fixture.deliver();
    fixture.endpoint.wait_for(1).await;

    let started = std::time::Instant::now();
    let free = fixture.create_token().await;
    let received = fixture.endpoint.wait_for(2).await;

    assert_eq!(received[0].event()["data"]["token"]["id"], blocked);
    assert_eq!(received[1].event()["data"]["token"]["id"], free);
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    let pending = fixture
        .manager
        .get(&format!(
            "/webhooks/{webhook}/deliveries?state=pending&size=100"
        ))
        .await;
    assert_eq!(pending.items().len(), 100);
}

#[tokio::test]
async fn slow_endpoints_of_one_tenant_do_not_delay_another() {
    let mut fixture = Fixture::start().await;
    // Five slow webhooks with more events than a node delivers at a time.
    for _ in 0..5 {
        fixture.subscribe(&["token.created"]).await;
    }
    for _ in 0..20 {
        fixture.create_token().await;
    }
    fixture.endpoint.respond(Slow(Duration::from_secs(9)));
    fixture.deliver();
    fixture.endpoint.wait_for(16).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(fixture.endpoint.count(), 16);

    fixture.endpoint.respond(Status(200));
    let other = fixture.vault.tenant().await;
    let manager = fixture
        .vault
        .holder(
            &other,
            cloakroom::access::ApplicationKind::Management,
            cloakroom_testkit::grants(&super::MANAGEMENT),
        )
        .await;
    let manager = fixture.vault.client_with(Some(&manager.key));
    manager
        .post("/webhooks", fixture.webhook(&["token.created"]))
        .await;
    let client = fixture
        .vault
        .client(
            &other,
            cloakroom_testkit::everything(cloakroom::access::Transform::Reveal),
        )
        .await;
    client
        .post("/tokens", json!({"type": "token", "data": "a"}))
        .await;
    let started = std::time::Instant::now();
    let received = fixture.endpoint.wait_for(17).await;

    assert_eq!(received[16].event()["tenant_id"], other.id.uuid.to_string());
    assert!(started.elapsed() < Duration::from_secs(3));
}
