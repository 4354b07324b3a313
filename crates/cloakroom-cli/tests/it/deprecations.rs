//! `cloakroom deprecations`: the reference table and the usage by tenant.

use serde_json::Value;

use crate::support::{Deployment, cloakroom, outcome, runtime};

#[test]
fn the_reference_needs_no_vault() {
    let shown = outcome(cloakroom(&["deprecations", "--markdown"]));

    assert!(shown.success, "{}", shown.stderr);
    assert!(
        shown
            .stdout
            .starts_with("# What is deprecated, and how to move")
    );
    assert!(
        shown
            .stdout
            .contains("| [`list_tokens_v1`](#list_tokens_v1) |")
    );
}

#[test]
fn usage_is_listed_by_tenant_and_application() {
    let (deployment, keys) = Deployment::with_keys(&["/ mask token:read"]);
    let unused = deployment.run_ok(&["deprecations"]);
    let mut node = deployment.serve();
    runtime().block_on(async {
        let client = reqwest::Client::new();
        for _ in 0..2 {
            let request = client.get(format!("{}/tokens", node.base_url));
            let response = request.header("BT-API-KEY", &keys[0]).send().await;
            assert_eq!(response.unwrap().status(), 200);
        }
    });
    // A node stores its counts on a clean shutdown.
    node.signal("TERM");
    node.process.wait().unwrap();

    let shown = deployment.run_ok(&["deprecations", "--tenant", "T"]);
    let json = deployment.run_ok(&["deprecations", "--json"]);
    let unknown = deployment.run(&["deprecations", "--tenant", "unknown"]);

    assert_eq!(unused, "No client has used a deprecated feature.\n");
    let lines: Vec<String> = shown
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect();
    assert!(lines[1].starts_with("list_tokens_v1 T ("), "{shown}");
    let instead = "list_tokens_v1: use GET /v2/tokens (served; promised until 2025-03-01).";
    assert!(lines.iter().any(|line| line == instead), "{shown}");
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json[0]["name"], "list_tokens_v1");
    assert_eq!(json[0]["calls"], 2);
    assert_eq!(json[0]["tenant_name"], "T");
    assert_eq!(json[0]["application_name"], "A");
    assert!(!unknown.success);
    assert!(
        unknown.stderr.contains("tenant unknown not found"),
        "{}",
        unknown.stderr
    );
}
