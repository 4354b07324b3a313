//! The record of what was done, when nodes die and rows are meddled with.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Deployment, Node, ask, runtime};

const READERS: usize = 8;
/// Revealed answers before a node is killed.
const ENOUGH: usize = 100;

/// Reads one token again and again from several connections, and remembers the trace id of every
/// revealed answer; the node is killed meanwhile.
fn read_until_killed(node: &Node, key: &str, round: usize) -> BTreeSet<String> {
    let revealed = Arc::new(Mutex::new(BTreeSet::new()));
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
        let url = format!(
            "{}/tokens/{}",
            node.base_url,
            created["id"].as_str().unwrap()
        );
        let mut readers = tokio::task::JoinSet::new();
        for reader in 0..READERS {
            let (client, url, key) = (client.clone(), url.clone(), key.to_owned());
            let revealed = revealed.clone();
            readers.spawn(async move {
                for number in 0.. {
                    let trace = format!("round {round} reader {reader} read {number}");
                    let request = client.get(&url).header("bt-api-key", &key);
                    let answer = request.header("bt-trace-id", &trace).send().await;
                    let Ok(answer) = answer else { return };
                    let Ok(text) = answer.text().await else {
                        return;
                    };
                    assert!(text.contains(r#""data":"secret""#), "{text}");
                    revealed.lock().unwrap().insert(trace);
                }
            });
        }
        // In full swing, whatever else the machine does.
        let deadline = Instant::now() + Duration::from_secs(30);
        while revealed.lock().unwrap().len() < ENOUGH {
            assert!(Instant::now() < deadline, "nothing is revealed");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        node.signal("KILL");
        readers.join_all().await;
    });
    Arc::try_unwrap(revealed).unwrap().into_inner().unwrap()
}

/// I20, and the other side of I21: a killed node looks like nothing but a killed node.
#[test]
fn whatever_was_revealed_is_recorded_even_if_the_node_dies() {
    let (deployment, keys) = Deployment::with_keys(&["/ reveal token:create,token:read"]);
    let mut revealed = BTreeSet::new();
    for round in 0..3 {
        let node = deployment.serve();
        revealed.extend(read_until_killed(&node, &keys[0], round));
    }

    let sql = "select trace_id from log where operation = 2 and outcome = 4";
    let recorded: BTreeSet<String> = ask(&deployment.postgres, sql).into_iter().collect();

    println!(
        "{} revealed, {} recorded, 3 kills",
        revealed.len(),
        recorded.len()
    );
    assert!(revealed.len() >= 3 * ENOUGH, "{}", revealed.len());
    let missing: Vec<&String> = revealed.difference(&recorded).collect();
    assert!(
        missing.is_empty(),
        "{} of {}: {missing:?}",
        missing.len(),
        revealed.len()
    );
    let verified = deployment.run(&["audit", "verify"]);
    assert!(verified.success, "{}{}", verified.stdout, verified.stderr);
}

#[test]
fn an_examination_says_what_was_done_to_the_record() {
    let (deployment, _) = Deployment::with_keys(&["/ reveal token:create", "/ mask token:read"]);
    let anchor = deployment.path("anchor.json").display().to_string();

    let fine = deployment.run(&["audit", "verify", "--remember", &anchor]);
    assert!(fine.success, "{}", fine.stderr);
    assert!(
        fine.stdout.contains("nothing was changed"),
        "{}",
        fine.stdout
    );
    assert!(fine.stdout.contains("--since"), "{}", fine.stdout);
    let since = deployment.run(&["audit", "verify", "--since", &anchor]);
    assert!(
        since.success && !since.stdout.contains("--since"),
        "{}",
        since.stdout
    );

    ask(
        &deployment.postgres,
        "update log set entity_id = 'x' where seq = 1",
    );
    let changed = deployment.run(&["audit", "verify"]);
    assert!(!changed.success);
    let told = "record 1 does not follow from record 0";
    assert!(changed.stdout.contains(told), "{}", changed.stdout);
    assert!(
        changed.stdout.contains("someone has changed the record"),
        "{}",
        changed.stdout
    );

    ask(
        &deployment.postgres,
        "delete from log; delete from log_chain",
    );
    let gone = deployment.run(&["audit", "verify"]);
    assert!(
        gone.success,
        "nothing is left that could tell: {}",
        gone.stdout
    );
    let since = deployment.run(&["audit", "verify", "--since", &anchor]);
    assert!(!since.success);
    assert!(
        since.stdout.contains("the whole day is missing"),
        "{}",
        since.stdout
    );
    let no_anchor = deployment.path("cloakroom.toml").display().to_string();
    let refused = deployment.run(&["audit", "verify", "--since", &no_anchor]);
    assert!(
        refused.stderr.contains("was not written by --remember"),
        "{}",
        refused.stderr
    );
}
