//! `cloakroom webhook`, on a running node.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Deployment, query, runtime};

#[test]
fn the_webhooks_of_all_tenants_are_listed_with_their_oldest_pending_event() {
    let (deployment, keys) = Deployment::with_keys(&["/ reveal token:create"]);
    let tenant = &query(&deployment.postgres, "select public_id::text from tenant")[0];
    let new = [
        "app",
        "create",
        "--tenant",
        tenant,
        "--name",
        "M",
        "--type",
        "management",
        "--all-permissions",
        "--output",
        "json",
    ];
    let app: Value = serde_json::from_str(&deployment.run_ok(&new)).unwrap();
    let app = app["id"].as_str().unwrap();
    let key = deployment.run_ok(&["key", "create", "--tenant", tenant, "--app", app]);
    let management = key.lines().next().unwrap();
    let node = deployment.serve();
    let post = |path: &str, key: &str, body: Value| {
        let client = reqwest::Client::new();
        let request = client.post(format!("{}{path}", node.base_url));
        let request = request.header("bt-api-key", key).json(&body);
        let response = runtime().block_on(request.send()).unwrap();
        assert!(response.status().is_success(), "{path}: {response:?}");
    };

    let list = || -> Value {
        let listed = deployment.run_ok(&["webhook", "list", "--output", "json"]);
        serde_json::from_str(&listed).unwrap()
    };
    // A host that does not exist.
    let url = "https://ledger.cloakroom.invalid/hooks";
    let webhook = json!({"name": "Ledger", "url": url, "events": ["token.created"]});
    post("/webhooks", management, webhook);
    let before = list();
    post(
        "/tokens",
        &keys[0],
        json!({"type": "token", "data": "secret"}),
    );
    let deadline = Instant::now() + Duration::from_secs(30);
    while list()[0]["oldest_pending_seconds"].is_null() {
        assert!(Instant::now() < deadline, "{}", list());
        std::thread::sleep(Duration::from_millis(100));
    }
    let text = deployment.run_ok(&["webhook", "list", "--tenant", "T"]);

    assert_eq!(before[0]["tenant_id"], *tenant);
    assert_eq!(before[0]["oldest_pending_seconds"], Value::Null);
    assert!(text.contains("enabled   pending for "), "{text}");
    assert!(text.contains("Ledger  (tenant T)"), "{text}");
}
