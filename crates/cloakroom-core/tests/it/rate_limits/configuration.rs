//! Configuration of limits and Redis.

use cloakroom::access::ApplicationKind::Private;
use cloakroom::config::Secret;
use cloakroom::doctor::{self, Severity};
use cloakroom::{Node, rate_limits};
use cloakroom_testkit::TestRedis;

use super::deployment::{Deployment, limit};
use super::statuses;

#[tokio::test]
async fn documented_redis_permissions_are_sufficient() {
    let redis = TestRedis::start(&[]).await;
    let rights =
        "~cloakroom:* +time +set +get +pttl +ping +evalsha +eval +lindex +lpop +rpush +pexpire";
    redis
        .run(&format!("ACL SETUSER limited on >secret {rights}"))
        .await;
    let address = redis.url();
    let (_, host) = address.split_once('@').unwrap();
    let url = format!("redis://limited:secret@{host}");
    let table = limit(
        "few",
        "counter = \"key\"; requests = 2; window = \"1m\"; action = \"block 1m\"",
    );
    let deployment = Deployment::start(&table, Some(redis), |config| {
        config.redis.url = Some(Secret::new(url));
    })
    .await;
    let client = deployment.client(Private).await;

    assert_eq!(statuses(&client, 3).await, [200, 200, 429]);
    assert_eq!(deployment.redis().keys().await.len(), 2);
}

#[tokio::test]
async fn an_invalid_limits_file_prevents_startup() {
    let deployment = Deployment::with_redis("").await;
    let mut config = deployment.node.vault.config.clone();
    let file = config.limits.file.clone().unwrap();
    std::fs::write(&file, limit("few", "counter = \"ip\"")).unwrap();

    let error = Node::open(config.clone()).await.err().unwrap().to_string();
    config.limits.file = Some("/nowhere/limits.toml".into());
    let missing = Node::open(config).await.err().unwrap().to_string();

    assert!(
        error.contains("limits.toml") && error.contains("missing field"),
        "{error}"
    );
    assert!(missing.contains("entity not found"), "{missing}");
}

#[tokio::test]
async fn doctor_warns_about_several_nodes_without_redis() {
    let deployment = Deployment::start("", None, |_| {}).await;
    let limits_finding = async || {
        let findings = doctor::diagnose(&deployment.node.vault.config, None).await;
        let found = findings
            .into_iter()
            .find(|finding| finding.area == "limits")
            .unwrap();
        (found.severity, found.what)
    };
    rate_limits::write_heartbeat(&deployment.node.vault.rate_limits)
        .await
        .unwrap();

    let alone = limits_finding().await;
    let second = deployment.node.second_node().await;
    rate_limits::write_heartbeat(&second.vault.rate_limits)
        .await
        .unwrap();
    let both = limits_finding().await;

    assert_eq!(alone.0, Severity::Good, "{}", alone.1);
    assert_eq!(both.0, Severity::Warning, "{}", both.1);
    assert!(
        both.1.starts_with("2 nodes run without redis.url"),
        "{}",
        both.1
    );
}
