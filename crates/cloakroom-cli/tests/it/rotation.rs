//! Rotation of keys by commands, while nodes serve and one of them is killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Deployment, cloakroom, outcome, query, runtime};

/// Longer than a node's lease on the job, after which another one continues.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Creates and reads tokens until it is stopped. Returns the number of requests, and the failed ones.
pub(crate) async fn send_requests(
    base: String,
    key: String,
    stop: Arc<AtomicBool>,
) -> (usize, Vec<String>) {
    let client = reqwest::Client::new();
    let (mut requests, mut failures) = (0, Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let created = client
            .post(format!("{base}/tokens"))
            .header("bt-api-key", &key)
            .header("content-type", "application/json")
            .body(r#"{"type":"token","data":"secret"}"#);
        let created = created.send().await.unwrap();
        requests += 1;
        if created.status() != 201 {
            failures.push(created.text().await.unwrap());
            continue;
        }
        let created: Value = created.json().await.unwrap();
        let id = created["id"].as_str().unwrap();
        let read = client.get(format!("{base}/tokens/{id}"));
        let read = read.header("bt-api-key", &key).send().await.unwrap();
        let text = read.text().await.unwrap();
        requests += 1;
        if !text.contains(r#""data":"secret""#) {
            failures.push(text);
        }
    }
    (requests, failures)
}

fn phase(deployment: &Deployment) -> String {
    let status: Value =
        serde_json::from_str(&deployment.run_ok(&["key", "status", "--json"])).unwrap();
    status[0]["phase"].as_str().unwrap().to_owned()
}

#[test]
fn a_key_is_rotated_by_commands_while_a_node_is_killed() {
    let rule = "/ reveal token:create,token:read";
    let (deployment, keys) = Deployment::with_keys(&[rule]);
    let tenant = &query(&deployment.postgres, "select public_id::text from tenant")[0];
    let mut command = deployment.command(&["serve"]);
    command.env("CLOAKROOM_FAILPOINT", "rotation.page_written");
    let mut victim = deployment.serve_by(command);
    let runtime = runtime();
    let stop = Arc::new(AtomicBool::new(false));
    // Only the node that dies runs until the rotation is under way.
    deployment.run_ok(&["key", "rotate", "--purpose", "data", "--tenant", tenant]);
    let deadline = Instant::now() + TIMEOUT;
    let first = runtime.spawn(send_requests(
        victim.base_url.clone(),
        keys[0].clone(),
        stop.clone(),
    ));
    // The first requests create rows that must be rewritten.
    while victim.process.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "the node did not abort");
        std::thread::sleep(Duration::from_millis(100));
    }
    // Its connections were cut, so its client fails; nothing else does.
    drop(runtime.block_on(first));
    assert_eq!(phase(&deployment), "rewriting");

    let node = deployment.serve();
    let load = runtime.spawn(send_requests(
        node.base_url.clone(),
        keys[0].clone(),
        stop.clone(),
    ));
    while phase(&deployment) != "proved" {
        assert!(Instant::now() < deadline, "{}", phase(&deployment));
        std::thread::sleep(Duration::from_millis(500));
    }
    let retired = deployment.run_ok(&["key", "retire", "--purpose", "data", "--tenant", tenant]);
    assert!(retired.contains("version 1 is destroyed"), "{retired}");
    stop.store(true, Ordering::Relaxed);
    let (requests, failures) = runtime.block_on(load).unwrap();

    assert_eq!(failures, Vec::<String>::new(), "of {requests}");
    assert!(requests > 10, "{requests}");
    let versions = "select distinct get_byte(sealed, 5)::text from token";
    assert_eq!(query(&deployment.postgres, versions), ["2"]);
    let verified = deployment.run_ok(&["audit", "verify"]);
    assert!(
        verified.contains("all destroyed keys were proved to be unused"),
        "{verified}"
    );
    // Who did what, and where.
    let actions =
        "select count(*)::text from log where entity_kind = 19 and entity_id like 'data-%'
        and operation in (1, 19) and position('@' in origin) > 0";
    assert_eq!(query(&deployment.postgres, actions), ["2"]);
}

#[test]
fn the_audit_authority_is_rotated_by_commands_and_one_public_key_verifies_the_log() {
    let rule = "/ reveal token:create,token:read";
    let (deployment, keys) = Deployment::with_keys(&[rule]);
    let (runtime, stop) = (runtime(), Arc::new(AtomicBool::new(false)));
    let node = deployment.serve();
    let load = runtime.spawn(send_requests(
        node.base_url.clone(),
        keys[0].clone(),
        stop.clone(),
    ));
    let purpose = ["--purpose", "audit_authority"];
    deployment.run_ok(&["key", "rotate", purpose[0], purpose[1]]);
    let deadline = Instant::now() + TIMEOUT;
    while phase(&deployment) != "proved" {
        assert!(Instant::now() < deadline, "{}", phase(&deployment));
        std::thread::sleep(Duration::from_millis(500));
    }
    let status = deployment.run_ok(&["key", "status"]);
    assert!(
        status.contains("vault") && status.contains("audit_authority"),
        "{status}"
    );
    let retired = deployment.run_ok(&["key", "retire", purpose[0], purpose[1]]);
    assert!(retired.contains("version 1 is destroyed"), "{retired}");
    assert!(retired.contains("former authority: "), "{retired}");
    // The keys of this node are certified by the old version, those of these commands by the new one.
    stop.store(true, Ordering::Relaxed);
    let (requests, failures) = runtime.block_on(load).unwrap();
    assert_eq!(failures, Vec::<String>::new(), "of {requests}");
    deployment.run_ok(&["audit", "verify"]);

    let printed = deployment.run_ok(&["audit", "public-key"]);
    let printed: Vec<&str> = printed.lines().collect();
    let [active, former] = printed[..] else {
        panic!("{printed:?}");
    };
    let file = deployment.path("log.jsonl");
    let file = file.to_str().unwrap();
    deployment.run_ok(&["audit", "export", file]);
    let verify = |keys: &[&str]| {
        let keys = keys.iter().flat_map(|key| ["--public-key", key]);
        let arguments: Vec<&str> = ["audit", "verify", "--export", file]
            .into_iter()
            .chain(keys)
            .collect();
        outcome(cloakroom(&arguments))
    };
    for keys in [&[active][..], &[active, former], &[former, active]] {
        let verified = verify(keys);
        assert!(verified.success, "{}", verified.stdout);
    }
    let unlimited = former.split('@').next().unwrap();
    assert!(!verify(&[unlimited]).success);
    let both = verify(&[active, unlimited]);
    assert!(
        both.stderr.contains("only the active key"),
        "{}",
        both.stderr
    );
}
