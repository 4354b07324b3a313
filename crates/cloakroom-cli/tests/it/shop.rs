//! `cloakroom dev --shop`: the surroundings of the demo shop. `conformance/shop` buys in it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{cloakroom, first_line, outcome, runtime};

/// A shop whose server writes its environment and its process id to files, and waits.
fn fake_shop(folder: &Path) {
    let server = folder.join("server/node");
    fs::create_dir_all(&server).unwrap();
    fs::create_dir_all(folder.join("node_modules/@basis-theory/web-elements")).unwrap();
    fs::write(server.join("main.mjs"), "").unwrap();
    let node = folder.join("node");
    let (written, process) = (folder.join("environment"), folder.join("process"));
    let script = format!(
        "#!/bin/sh\nenv > {}\necho $$ > {}\nexec sleep 600\n",
        written.display(),
        process.display()
    );
    fs::write(&node, script).unwrap();
    fs::set_permissions(&node, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A process that has ended remains as a zombie until its parent, or that of orphans, has waited for it.
fn is_running(process: &str) -> bool {
    let status = fs::read_to_string(Path::new("/proc").join(process).join("status"));
    status.is_ok_and(|text| !text.contains("State:\tZ"))
}

fn dev(folder: &Path) -> Command {
    let mut command = cloakroom(&["dev", "--json", "--listen", "127.0.0.1:0", "--shop"]);
    let path = std::env::var_os("PATH").unwrap();
    let folders = std::iter::once(folder.to_owned()).chain(std::env::split_paths(&path));
    command
        .arg(folder)
        .env("PATH", std::env::join_paths(folders).unwrap());
    command
}

#[test]
fn the_server_gets_keys_that_can_pay_but_not_read_cards() {
    let folder = tempfile::tempdir().unwrap();
    fake_shop(folder.path());
    let mut command = dev(folder.path());
    command.env("OTHER_SECRET", "not for the shop");
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let ready: Value = serde_json::from_str(&first_line(&mut child)).unwrap();

    let text = fs::read_to_string(folder.path().join("environment")).unwrap();
    let environment: BTreeMap<_, _> = text
        .lines()
        .filter_map(|line| line.split_once('='))
        .collect();
    for (name, value) in ready["shop"]["environment"].as_object().unwrap() {
        assert_eq!(
            environment[name.as_str()],
            value.as_str().unwrap(),
            "{name}"
        );
    }
    assert!(environment.contains_key("PATH"));
    assert!(!environment.contains_key("OTHER_SECRET"));
    let card = json!({"type": "card", "data": {"number": "4242424242424242"}});
    let (private, public) = (
        environment["VAULT_PRIVATE_KEY"],
        environment["VAULT_PUBLIC_KEY"],
    );
    let requests = [
        ("POST", "/token-intents", public, 201),
        ("POST", "/tokens", public, 403),
        ("POST", "/tokens", private, 201),
        ("GET", "/tokens", private, 403),
        ("GET", "/tokens", public, 403),
    ];
    let client = reqwest::Client::new();
    for (method, path, key, expected) in requests {
        let url = format!("{}{path}", environment["VAULT_API_URL"]);
        let request = client.request(method.parse().unwrap(), url);
        let request = request.header("bt-api-key", key);
        let request = match method {
            "POST" => request
                .header("content-type", "application/json")
                .body(card.to_string()),
            _ => request,
        };
        let response = runtime().block_on(request.send()).unwrap();
        assert_eq!(response.status(), expected, "{method} {path}");
    }

    let terminated = Command::new("kill").arg(child.id().to_string()).status();
    assert!(terminated.unwrap().success());
    assert!(child.wait().unwrap().success());
    let process = fs::read_to_string(folder.path().join("process")).unwrap();
    let asked_at = Instant::now();
    while is_running(process.trim()) {
        assert!(
            asked_at.elapsed() < Duration::from_secs(10),
            "the server outlives the vault"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn what_is_missing_is_explained() {
    let folder = tempfile::tempdir().unwrap();

    let without_files = outcome(dev(folder.path()));
    fake_shop(folder.path());
    let mut command = dev(folder.path());
    command.env("PATH", "");
    let without_node = outcome(command);
    fs::remove_dir_all(folder.path().join("node_modules")).unwrap();
    let without_packages = outcome(dev(folder.path()));

    for (outcome, expected) in [
        (without_files, "examples/shop"),
        (without_node, "install Node"),
        (without_packages, "`npm ci`"),
    ] {
        assert!(!outcome.success);
        assert!(outcome.stderr.contains(expected), "{}", outcome.stderr);
    }
}
