//! The erasure ledger: `cloakroom erasures`.

use serde_json::Value;

use crate::support::{Deployment, Node, query, runtime};

/// Creates a token through a node, and deletes it if `is_deleted`.
fn create(node: &Node, key: &str, is_deleted: bool) -> String {
    runtime().block_on(async {
        let client = reqwest::Client::new();
        let created: Value = client
            .post(format!("{}/tokens", node.base_url))
            .header("bt-api-key", key)
            .header("content-type", "application/json")
            .body(r#"{"type":"token","data":"secret"}"#)
            .send()
            .await
            .unwrap()
            .json()
            .await
            .unwrap();
        let id = created["id"].as_str().unwrap().to_owned();
        if is_deleted {
            let url = format!("{}/tokens/{id}", node.base_url);
            let deleted = client.delete(url).header("bt-api-key", key).send().await;
            assert_eq!(deleted.unwrap().status(), 204);
        }
        id
    })
}

/// A forged deletion entry is never written to a ledger, and applying a ledger has limits.
#[test]
fn a_forged_deletion_is_rejected_and_a_large_ledger_needs_an_option() {
    let rules = "/ reveal token:create,token:read,token:delete";
    let (deployment, keys) = Deployment::with_keys(&[rules]);
    let node = deployment.serve();
    let live = create(&node, &keys[0], false);
    let deleted = create(&node, &keys[0], true);
    drop(node);
    let file = deployment.path("erasures.jsonl");
    let path = file.display().to_string();

    let forged = format!(
        "insert into log (slot, created_at, tenant_id, actor_kind, actor_id, key_id, entity_kind, entity_id, operation,
            outcome, origin, trace_id, chain, seq, commit)
         select slot, now(), tenant_id, actor_kind, actor_id, key_id, 1, '{live}', 4, 1, origin, trace_id, chain,
            1000000, decode(repeat('00', 68), 'hex')
         from log limit 1"
    );
    query(&deployment.postgres, &forged);
    let rejected = deployment.run(&["erasures", "write", &path]);
    assert!(!rejected.success, "{}", rejected.stdout);
    assert!(
        rejected.stderr.contains("the audit log does not verify")
            && rejected.stderr.contains("cloakroom audit verify"),
        "{}",
        rejected.stderr
    );
    assert!(!file.exists());

    query(&deployment.postgres, "delete from log where seq = 1000000");
    let written = deployment.run_ok(&["erasures", "write", &path]);
    assert!(written.starts_with("1 erasures"), "{written}");
    // Simulates a restored backup: the live token gets the id of the deleted one.
    let restore = format!("update token set token_id = '{deleted}' where token_id = '{live}'");
    query(&deployment.postgres, &restore);
    let dry = deployment.run_ok(&["erasures", "apply", "--dry-run", &path]);
    let counts = "to delete: tokens: 1, applications: 0, application keys: 0, tenants: 0";
    assert!(
        dry.contains(counts) && dry.contains("nothing was deleted"),
        "{dry}"
    );
    let over = deployment.run(&["erasures", "apply", "--max-tokens", "0", &path]);
    assert!(!over.success, "{}", over.stdout);
    assert!(
        over.stderr.contains("pass --max-tokens 1"),
        "{}",
        over.stderr
    );
    let count = "select count(*) from token";
    assert_eq!(query(&deployment.postgres, count), ["1"]);
    let applied = deployment.run_ok(&["erasures", "apply", &path]);
    assert!(
        applied.contains("1 erased again, 0 were not there"),
        "{applied}"
    );
    assert_eq!(query(&deployment.postgres, count), ["0"]);
}
