//! `cloakroom deprecations`: the table, and who uses what.

use serde_json::Value;

use crate::support::{Deployment, cloakroom, outcome, runtime};

#[test]
fn the_table_needs_no_vault() {
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
fn calls_are_told_by_tenant_and_application() {
    let (deployment, keys) = Deployment::with_keys(&["/ mask token:read"]);
    let nobody = deployment.must(&["deprecations"]);
    let mut node = deployment.serve();
    runtime().block_on(async {
        let client = reqwest::Client::new();
        for _ in 0..2 {
            let request = client.get(format!("{}/tokens", node.base_url));
            let answer = request.header("BT-API-KEY", &keys[0]).send().await;
            assert_eq!(answer.unwrap().status(), 200);
        }
    });
    // A node that ends in order writes down what it has counted.
    node.signal("TERM");
    node.process.wait().unwrap();

    let shown = deployment.must(&["deprecations", "--tenant", "T"]);
    let json = deployment.must(&["deprecations", "--json"]);
    let unknown = deployment.run(&["deprecations", "--tenant", "nobody"]);

    assert_eq!(nobody, "Nobody has used anything that is deprecated.\n");
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
        unknown.stderr.contains("there is no tenant nobody"),
        "{}",
        unknown.stderr
    );
}
