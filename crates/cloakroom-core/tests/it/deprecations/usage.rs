//! Usage counts of deprecated features.

use std::collections::BTreeMap;

use cloakroom::access::Transform;
use cloakroom::deprecations;
use cloakroom_testkit::everything;
use metrics_exporter_prometheus::PrometheusBuilder;

use super::Fixture;

/// Covers 26.13.
#[tokio::test]
async fn deprecated_calls_are_counted_per_application_across_nodes() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _counting = metrics::set_default_local_recorder(&recorder);
    let fixture = Fixture::start().await;
    let other = fixture.vault.second_node().await;
    let second = other
        .client(&fixture.tenant, everything(Transform::Mask))
        .await;
    let foreign_tenant = fixture.vault.tenant().await;
    let foreign = fixture
        .vault
        .client(&foreign_tenant, everything(Transform::Mask))
        .await;
    for _ in 0..3 {
        fixture.client.get("/tokens").await;
        fixture.client.at(&other.base_url).get("/tokens").await;
        second.get("/tokens").await;
    }
    foreign.get("/tokens").await;
    other
        .vault
        .deprecation_counts
        .write(&other.vault.db)
        .await
        .unwrap();

    assert_eq!(fixture.usage().await.values().sum::<u64>(), 9);
    let listed = deprecations::list(&other.vault.db, fixture.tenant.id)
        .await
        .unwrap();
    let calls: Vec<u64> = listed.iter().map(|used| used.calls).collect();
    assert_eq!(calls, [6, 3]);
    let names = listed.iter().map(|used| used.application_name.as_deref());
    assert!(names.eq([Some("A private application"); 2]));
    assert!(listed.iter().all(|used| used.first_at <= used.last_at));
    let foreign_usage = deprecations::list(&other.vault.db, foreign_tenant.id)
        .await
        .unwrap();
    assert_eq!(foreign_usage.len(), 1);
    let text = recorder.handle().render();
    for (tenant, calls) in [(&fixture.tenant, 9), (&foreign_tenant, 1)] {
        let labels = format!(
            "deprecation=\"list_tokens_v1\",tenant=\"{}\"",
            tenant.id.uuid
        );
        let line = format!("cloakroom_deprecated_calls_total{{{labels}}} {calls}");
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}

/// Covers 26.13.
#[tokio::test]
async fn counts_are_retained_while_the_database_is_unavailable() {
    let fixture = Fixture::start().await;
    let vault = &fixture.vault.vault;
    let database = fixture.vault.database.connect().await;
    fixture.client.get("/tokens").await;
    database
        .batch_execute("alter table deprecated_call rename to unavailable")
        .await
        .unwrap();

    assert!(vault.deprecation_counts.write(&vault.db).await.is_err());
    fixture.client.get("/tokens").await;
    database
        .batch_execute("alter table unavailable rename to deprecated_call")
        .await
        .unwrap();

    assert_eq!(
        fixture.usage().await,
        BTreeMap::from([("list_tokens_v1".to_owned(), 2)])
    );
}
