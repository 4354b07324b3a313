//! The audit log when nodes are killed and rows are tampered with.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Deployment, Node, outcome, query, runtime};

const READERS: usize = 8;
/// Revealing responses before a node is killed.
const RESPONSES_MIN: usize = 100;

/// Reads one token repeatedly over several connections, and collects the trace id of every revealing response. Kills
/// the node meanwhile.
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
                    let response = request.header("bt-trace-id", &trace).send().await;
                    let Ok(response) = response else { return };
                    let Ok(text) = response.text().await else {
                        return;
                    };
                    assert!(text.contains(r#""data":"secret""#), "{text}");
                    revealed.lock().unwrap().insert(trace);
                }
            });
        }
        // Waits for load, however busy the machine is.
        let deadline = Instant::now() + Duration::from_secs(30);
        while revealed.lock().unwrap().len() < RESPONSES_MIN {
            assert!(Instant::now() < deadline, "nothing is revealed");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        node.signal("KILL");
        readers.join_all().await;
    });
    Arc::try_unwrap(revealed).unwrap().into_inner().unwrap()
}

/// I20, and the converse of I21: a killed node is not reported as tampering.
#[test]
fn every_revealing_response_is_logged_even_if_the_node_is_killed() {
    let (deployment, keys) = Deployment::with_keys(&["/ reveal token:create,token:read"]);
    let mut revealed = BTreeSet::new();
    for round in 0..3 {
        let node = deployment.serve();
        revealed.extend(read_until_killed(&node, &keys[0], round));
    }

    let sql = "select trace_id from log where operation = 2 and outcome = 4";
    let logged: BTreeSet<String> = query(&deployment.postgres, sql).into_iter().collect();

    println!(
        "{} revealed, {} logged, 3 kills",
        revealed.len(),
        logged.len()
    );
    assert!(revealed.len() >= 3 * RESPONSES_MIN, "{}", revealed.len());
    let missing: Vec<&String> = revealed.difference(&logged).collect();
    assert!(
        missing.is_empty(),
        "{} of {}: {missing:?}",
        missing.len(),
        revealed.len()
    );
    let verified = deployment.run(&["audit", "verify"]);
    assert!(verified.success, "{}{}", verified.stdout, verified.stderr);
}

/// The order of docs/operate/backup.md: the comparison with a sink comes before anything is written.
#[test]
fn a_restored_backup_is_not_reported_as_tampering() {
    let (deployment, _) = Deployment::with_keys(&["/ reveal token:create"]);
    let database = &query(&deployment.postgres, "select current_database()")[0];
    let backup = format!("create database restored template {database}");
    query(&deployment.postgres, &backup);
    deployment.run_ok(&["tenant", "create", "--name", "Later", "--type", "test"]);
    let newest = deployment.path("newest.jsonl").display().to_string();
    deployment.run_ok(&["audit", "verify", "--remember", &newest]);

    let mut verify = deployment.command(&["audit", "verify", "--checkpoints", &newest]);
    let restored = deployment.postgres.url_of("restored");
    verify.env("CLOAKROOM__DATABASE__URL", restored);
    let restored = outcome(verify);

    assert!(!restored.success);
    let output = &restored.stdout;
    for expected in ["the log was rolled back", "a backup was restored"] {
        assert!(output.contains(expected), "{output}");
    }
    assert!(!output.contains("tampered"), "{output}");
}

#[test]
fn verification_reports_tampering() {
    let (deployment, _) = Deployment::with_keys(&["/ reveal token:create", "/ mask token:read"]);
    let newest = deployment.path("newest.jsonl").display().to_string();

    let untouched = deployment.run(&["audit", "verify", "--remember", &newest]);
    assert!(untouched.success, "{}", untouched.stderr);
    let output = &untouched.stdout;
    assert!(output.contains("no entry was modified"), "{output}");
    assert!(output.contains("--checkpoints"), "{output}");
    let compared = deployment.run(&["audit", "verify", "--checkpoints", &newest]);
    let output = &compared.stdout;
    assert!(
        compared.success && !output.contains("--checkpoints"),
        "{output}"
    );

    query(
        &deployment.postgres,
        "update log set entity_id = 'x' where chain = 1001 and seq = 1",
    );
    let changed = deployment.run(&["audit", "verify"]);
    assert!(!changed.success);
    let output = &changed.stdout;
    assert!(
        output.contains("chain 1001: at least one of the entries 1 to 4 was modified"),
        "{output}"
    );
    assert!(
        output.contains("the audit log was tampered with"),
        "{output}"
    );

    // F9: everything that the database knows of the log is removed.
    let remove = "delete from log; delete from log_key";
    query(&deployment.postgres, remove);
    let emptied = deployment.run(&["audit", "verify"]);
    let output = &emptied.stdout;
    assert!(
        !emptied.success && output.contains("the whole day is missing"),
        "{output}"
    );
    query(&deployment.postgres, "delete from log_checkpoint");
    let rolled_back = deployment.run(&["audit", "verify", "--checkpoints", &newest]);
    let output = &rolled_back.stdout;
    assert!(
        !rolled_back.success && output.contains("the log was rolled back"),
        "{output}"
    );

    let other = deployment.path("cloakroom.toml").display().to_string();
    let rejected = deployment.run(&["audit", "verify", "--checkpoints", &other]);
    let output = &rejected.stderr;
    assert!(
        output.contains("contains no checkpoint of a sink"),
        "{output}"
    );
}

/// An auditor verifies an export without configuration, database or secret.
#[test]
fn exports_are_verified_offline() {
    let (deployment, _) = Deployment::with_keys(&["/ reveal token:create"]);
    let export = deployment.path("log.jsonl");
    let file = export.display().to_string();
    let written = deployment.run_ok(&["audit", "export", &file]);
    assert!(written.contains("entries"), "{written}");
    let key = deployment.run_ok(&["audit", "public-key"]);
    let key = key.trim();

    let verify = |file: &str, key: &str| {
        std::process::Command::new(env!("CARGO_BIN_EXE_cloakroom"))
            .args(["audit", "verify", "--export", file, "--public-key", key])
            .env_clear()
            .output()
            .unwrap()
    };
    let intact = verify(&file, key);
    let output = String::from_utf8_lossy(&intact.stdout);
    assert!(intact.status.success(), "{output}");
    assert!(output.contains("no entry was modified"), "{output}");

    let text = std::fs::read_to_string(&export).unwrap();
    let entries = text.lines().filter(|line| !line.starts_with("{\"entry\""));
    let without: Vec<&str> = entries.collect();
    std::fs::write(&export, without.join("\n") + "\n").unwrap();
    let removed = verify(&file, key);
    let output = String::from_utf8_lossy(&removed.stdout);
    assert!(!removed.status.success(), "{output}");
    assert!(output.contains("the whole day is missing"), "{output}");
    let other_key = verify(&file, &"07".repeat(32));
    assert!(!other_key.status.success());
    let malformed = verify(&file, "07");
    let output = String::from_utf8_lossy(&malformed.stderr);
    assert!(output.contains("64 hexadecimal digits"), "{output}");
}

/// Entries in a file of a stream, as `chain/sequence number`.
fn streamed_entries(text: &str) -> BTreeSet<String> {
    let records = text.lines().filter_map(|line| {
        let record: Value = serde_json::from_str(line).ok()?;
        let entry = record.get("entry")?.as_array()?.clone();
        Some(format!("{}/{}", entry[12], entry[13]))
    });
    records.collect()
}

/// The nodes that stream are killed, some with entries that no checkpoint states.
#[test]
fn every_entry_reaches_a_stream_although_nodes_are_killed() {
    let (deployment, keys) = Deployment::with_keys(&["/ reveal token:create,token:read"]);
    let stream = deployment.path("entries.jsonl");
    let setting = format!("[audit]\nstream_file = \"{}\"\n", stream.display());
    deployment.configure(&setting);
    for round in 0..2 {
        let node = deployment.serve();
        read_until_killed(&node, &keys[0], round);
    }
    let _node = deployment.serve();
    let sql = "select chain || '/' || seq from log";
    let logged: BTreeSet<String> = query(&deployment.postgres, sql).into_iter().collect();
    let deadline = Instant::now() + Duration::from_secs(120);
    let text = loop {
        let text = std::fs::read_to_string(&stream).unwrap_or_default();
        let missing = logged.difference(&streamed_entries(&text)).count();
        let is_complete = missing == 0 && text.ends_with('\n');
        // Records after the last checkpoint belong to a page that is being written.
        let is_page = text
            .lines()
            .next_back()
            .is_some_and(|line| line.starts_with("{\"checkpoint\""));
        if is_complete && is_page {
            break text;
        }
        assert!(
            Instant::now() < deadline,
            "{missing} of {} entries are missing",
            logged.len()
        );
        std::thread::sleep(Duration::from_millis(200));
    };
    println!("{} entries in {} lines", logged.len(), text.lines().count());

    let key = deployment.run_ok(&["audit", "public-key"]);
    let copy = deployment.path("copy.jsonl");
    let verify = |text: String| {
        std::fs::write(&copy, text).unwrap();
        let copy = copy.display().to_string();
        deployment.run(&[
            "audit",
            "verify",
            "--stream",
            &copy,
            "--public-key",
            key.trim(),
        ])
    };
    let intact = verify(text.clone());
    assert!(intact.success, "{}{}", intact.stdout, intact.stderr);
    let removed = text
        .lines()
        .filter(|line| line.starts_with("{\"entry\""))
        .nth(5)
        .unwrap();
    let rest: String = text
        .lines()
        .filter(|line| *line != removed)
        .map(|line| format!("{line}\n"))
        .collect();
    let shortened = verify(rest);
    assert!(!shortened.success, "{}", shortened.stdout);
    assert!(shortened.stdout.contains("missing"), "{}", shortened.stdout);
}
