//! `cloakroom dev`, used interactively and by scripts.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Deployment, cloakroom, first_line, outcome};

/// Terminates the command like a terminal does; its child processes must exit, too.
fn terminate(child: &std::process::Child) {
    let mut kill = std::process::Command::new("kill");
    assert!(kill.arg(child.id().to_string()).status().unwrap().success());
}

fn wait_for_exit(child: &mut std::process::Child) -> std::process::ExitStatus {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(Instant::now() < deadline, "the command did not exit");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_tenant_has_the_requested_name_and_members() {
    let words = ["dev", "--json", "--listen", "127.0.0.1:0"];
    let mut command = cloakroom(&words);
    command.args(["--tenant-name", "Shop"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let ready: Value = serde_json::from_str(&first_line(&mut child)).unwrap();

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let (tenant, members) = runtime.block_on(async {
        let client = reqwest::Client::new();
        let get = |path: &str| {
            let url = format!("{}{path}", ready["base_url"].as_str().unwrap());
            let key = ready["keys"]["management"].as_str().unwrap();
            client.get(url).header("bt-api-key", key).send()
        };
        let tenant = get("/tenants/self").await.unwrap().text().await.unwrap();
        let members = get("/tenants/self/members").await.unwrap();
        (tenant, members.text().await.unwrap())
    });
    terminate(&child);
    assert!(wait_for_exit(&mut child).success());

    let tenant: Value = serde_json::from_str(&tenant).unwrap();
    let members: Value = serde_json::from_str(&members).unwrap();
    assert_eq!(tenant["name"], "Shop");
    let roles = members["data"].as_array().unwrap().iter();
    let roles: Vec<&str> = roles.map(|one| one["role"].as_str().unwrap()).collect();
    assert!(
        roles.contains(&"OWNER") && roles.contains(&"ADMIN"),
        "{roles:?}"
    );
}

/// Starts `cloakroom dev`, sends a request with its private key, stops it, and returns what it printed and the response.
fn run_dev(arguments: &[&str], environment: &[(&str, &str)], path: &str) -> (Value, Value) {
    let mut command = cloakroom(&["dev", "--json", "--listen", "127.0.0.1:0"]);
    command.args(arguments).envs(environment.iter().copied());
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let ready: Value = serde_json::from_str(&first_line(&mut child)).unwrap();
    let url = format!("{}{path}", ready["base_url"].as_str().unwrap());
    let key = ready["keys"]["private"].as_str().unwrap();
    let response = crate::support::runtime().block_on(async {
        let client = reqwest::Client::new();
        let request = match path.starts_with("/tokenize") {
            true => client.post(url).body(r#"{"a": "1", "b": "2", "c": "3"}"#),
            false => client.get(url),
        };
        let request = request.header("content-type", "application/json");
        let response = request.header("bt-api-key", key).send().await.unwrap();
        response.text().await.unwrap()
    });
    terminate(&child);
    assert!(wait_for_exit(&mut child).success());
    (ready, serde_json::from_str(&response).unwrap())
}

#[test]
fn a_vault_in_a_data_folder_continues_where_it_stopped() {
    let folder = tempfile::tempdir().unwrap();
    // The PostgreSQL of root runs as another user.
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), open).unwrap();
    let data = folder.path().join("vault").display().to_string();

    let (first, created) = run_dev(&["--data", &data], &[], "/tokenize");
    let id = created["a"].as_str().unwrap();
    let (second, found) = run_dev(&["--data", &data], &[], &format!("/tokens/{id}"));

    assert_eq!(first["keys"], second["keys"]);
    assert_eq!(first["tenant_id"], second["tenant_id"]);
    assert_eq!(found["data"], "1");
    let stored = std::fs::metadata(format!("{data}/tenant.json")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&stored.permissions());
    assert_eq!(mode & 0o077, 0, "others can read the API keys");
}

#[test]
fn dev_applies_settings_of_the_environment() {
    let environment = [("CLOAKROOM__QUOTAS__TOKENIZE", "2")];
    let (_, response) = run_dev(&[], &environment, "/tokenize");
    assert_eq!(response["status"], 400, "{response}");

    let mut command = cloakroom(&["dev", "--json", "--listen", "127.0.0.1:0"]);
    command.args(["--config", "/nonexistent.toml"]);
    let missing = outcome(command);
    assert!(!missing.success);
    assert!(
        missing.stderr.contains("/nonexistent.toml"),
        "{}",
        missing.stderr
    );
    let mut command = cloakroom(&["dev", "--json", "--listen", "127.0.0.1:0"]);
    command.env("CLOAKROOM_CONFIG", "/nonexistent.toml");
    let missing = outcome(command);
    assert!(
        missing.stderr.contains("unset CLOAKROOM_CONFIG"),
        "{}",
        missing.stderr
    );
}

#[test]
fn dev_applies_limits_and_the_admin_address_of_the_environment() {
    let port = cloakroom_scratch::free_port().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("limits.toml");
    let limit = "[[limit]]\nname = \"own\"\ncounter = \"key\"\nrequests = 7\nwindow = \"10s\"\naction = \"throttle\"\n";
    std::fs::write(&table, limit).unwrap();
    let mut command = cloakroom(&["dev", "--json", "--listen", "127.0.0.1:0"]);
    command
        .env("CLOAKROOM__ADMIN__LISTEN", format!("127.0.0.1:{port}"))
        .env("CLOAKROOM__LIMITS__ENABLED", "true")
        .env("CLOAKROOM__LIMITS__FILE", &table);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let ready: Value = serde_json::from_str(&first_line(&mut child)).unwrap();
    let url = format!("{}/tokens", ready["base_url"].as_str().unwrap());
    let key = ready["keys"]["private"].as_str().unwrap();
    let request = reqwest::Client::new().get(url).header("bt-api-key", key);
    let response = crate::support::runtime().block_on(request.send()).unwrap();
    let mut show = cloakroom(&["limits", "show", "--output", "json"]);
    show.env("CLOAKROOM_CONFIG", ready["config_file"].as_str().unwrap());
    let shown = outcome(show);
    terminate(&child);
    assert!(wait_for_exit(&mut child).success());

    assert_eq!(ready["admin_url"], format!("http://127.0.0.1:{port}"));
    assert_eq!(response.headers()["x-ratelimit-limit"], "7");
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown[0]["limit"], "own");
}

#[test]
fn dev_rejects_an_admin_address_that_other_hosts_can_reach() {
    let mut command = cloakroom(&["dev", "--listen", "127.0.0.1:0"]);
    command.env("CLOAKROOM__ADMIN__LISTEN", "0.0.0.0:0");
    let rejected = outcome(command);
    assert!(!rejected.success);
    assert!(
        rejected.stderr.contains("change admin.listen"),
        "{}",
        rejected.stderr
    );
}

#[test]
fn json_output_describes_a_working_vault_that_stops_cleanly() {
    let mut command = cloakroom(&["dev", "--json", "--listen", "127.0.0.1:0"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let ready: Value = serde_json::from_str(&first_line(&mut child)).unwrap();
    let base_url = ready["base_url"].as_str().unwrap().to_owned();

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let client = reqwest::Client::new();
        let card = r#"{"type":"card","data":{"number":"4242424242424242"}}"#;
        let created = client
            .post(format!("{base_url}/tokens"))
            .header("bt-api-key", ready["keys"]["public"].as_str().unwrap())
            .header("content-type", "application/json")
            .body(card)
            .send()
            .await
            .unwrap();
        assert_eq!(created.status(), 201);
        let location = created.headers()["location"].to_str().unwrap().to_owned();
        let created: Value = serde_json::from_str(&created.text().await.unwrap()).unwrap();
        let found = client
            .get(location)
            .header("bt-api-key", ready["keys"]["private"].as_str().unwrap())
            .send()
            .await
            .unwrap();
        let found: Value = serde_json::from_str(&found.text().await.unwrap()).unwrap();
        assert_eq!(created["data"]["number"], "XXXXXXXXXXXX4242");
        assert_eq!(found["data"]["number"], "4242424242424242");
        assert_eq!(found["tenant_id"], ready["tenant_id"]);
        let admin = format!("{}/readyz", ready["admin_url"].as_str().unwrap());
        assert_eq!(client.get(&admin).send().await.unwrap().status(), 200);
    });
    assert!(
        ready["keys"]["management"]
            .as_str()
            .unwrap()
            .starts_with("key_test_us_mgt_")
    );
    terminate(&child);

    assert!(wait_for_exit(&mut child).success());
    let address = base_url.strip_prefix("http://").unwrap();
    assert!(std::net::TcpStream::connect(address).is_err());
}

/// Nodes are announced once they know the card ranges, so the first 3-D Secure session succeeds on each of them.
#[test]
fn nodes_are_announced_when_3ds_is_ready_on_all_of_them() {
    let mut command = cloakroom(&["dev", "--json", "--nodes", "3", "--listen", "127.0.0.1:0"]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let ready: Value = serde_json::from_str(&first_line(&mut child)).unwrap();

    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let statuses = runtime.block_on(async {
        let client = reqwest::Client::new();
        let admin = format!("{}/readyz", ready["admin_url"].as_str().unwrap());
        let mut statuses = vec![client.get(&admin).send().await.unwrap().status().as_u16()];
        for node in ready["node_urls"].as_array().unwrap() {
            let post = |path: &str, body: Value| {
                client
                    .post(format!("{}{path}", node.as_str().unwrap()))
                    .header("bt-api-key", ready["keys"]["private"].as_str().unwrap())
                    .header("content-type", "application/json")
                    .body(body.to_string())
                    .send()
            };
            let data = json!({"number": "4200000000000002", "expiration_month": 12,
                              "expiration_year": 2030});
            let card = post("/tokens", json!({"type": "card", "data": data}));
            let card = card.await.unwrap().text().await.unwrap();
            let card: Value = serde_json::from_str(&card).unwrap();
            let new = json!({"token_id": card["id"], "type": "merchant"});
            let created = post("/3ds/sessions", new).await.unwrap();
            statuses.push(created.status().as_u16());
        }
        statuses
    });
    terminate(&child);
    assert!(wait_for_exit(&mut child).success());

    assert_eq!(statuses, [200, 201, 201, 201]);
}

#[test]
fn the_printed_commands_work_when_pasted() {
    let mut command = cloakroom(&["dev", "--listen", "127.0.0.1:0"]);
    let folder = tempfile::tempdir().unwrap();
    let printed = folder.path().join("printed");
    let output = std::fs::File::create(&printed).unwrap();
    let mut child = command.stdout(output).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(120);
    let text = loop {
        let text = std::fs::read_to_string(&printed).unwrap();
        if text.matches("curl").count() == 2 && text.ends_with("'\n\n") {
            break text;
        }
        assert!(Instant::now() < deadline, "{text}");
        std::thread::sleep(Duration::from_millis(20));
    };

    let (_, lines) = text.split_once("\n\ncurl").unwrap();
    let script = format!("curl{lines}");
    let pasted = std::process::Command::new("bash")
        .args(["-c", &script])
        .output()
        .unwrap();
    let output = String::from_utf8(pasted.stdout).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();

    assert!(
        text.contains("rate limits     off  (`cloakroom dev --limits`"),
        "{text}"
    );
    assert!(output.contains("XXXXXXXXXXXX4242"), "{output}");
    assert!(output.contains("4242424242424242"), "{output}");
}

#[test]
fn dev_listens_on_loopback_only() {
    for address in ["0.0.0.0:0", "[::]:0", "192.0.2.1:8080"] {
        let rejected = outcome(cloakroom(&["dev", "--listen", address]));
        assert!(!rejected.success, "{address}");
        assert!(
            rejected.stderr.contains("loopback addresses only"),
            "{}",
            rejected.stderr
        );
    }
}

/// Waits until the command handles SIGINT, so that a signal does not kill it.
fn wait_for_signal_handler(child: &std::process::Child) {
    const SIGINT_BIT: u64 = 1 << 1;
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let caught = status.lines().find_map(|it| it.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.unwrap().trim(), 16).unwrap();
        if caught & SIGINT_BIT != 0 {
            return;
        }
        assert!(Instant::now() < deadline, "the command handles no signals");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The command lines of processes that name a folder.
fn processes_of(folder: &std::path::Path) -> Vec<String> {
    let folder = folder.to_str().unwrap();
    let processes = std::fs::read_dir("/proc").unwrap();
    processes
        .filter_map(|entry| std::fs::read(entry.unwrap().path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " "))
        .filter(|line| line.contains(folder))
        .collect()
}

#[test]
fn a_signal_during_the_start_stops_it_and_leaves_nothing_behind() {
    // Accepts connections and never responds, so the start does not complete.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("postgres://x:x@{}/x", silent.local_addr().unwrap());
    let cases: [(&str, u64, &[&str]); 3] = [
        ("INT", 300, &["--database-url", &silent]),
        ("INT", 300, &[]),
        ("TERM", 500, &["--nodes", "2"]),
    ];
    for (signal, delay_ms, arguments) in cases {
        let folder = tempfile::tempdir().unwrap();
        // The PostgreSQL of root runs as another user.
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).unwrap();
        let mut command = cloakroom(&["dev", "--listen", "127.0.0.1:0"]);
        command.args(arguments).env("TMPDIR", folder.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        wait_for_signal_handler(&child);
        std::thread::sleep(Duration::from_millis(delay_ms));

        let since = Instant::now();
        let mut kill = std::process::Command::new("kill");
        kill.args(["-s", signal, &child.id().to_string()]);
        assert!(kill.status().unwrap().success());
        let output = child.wait_with_output().unwrap();

        assert!(output.status.success(), "{arguments:?}: {output:?}");
        // A start that ignores the signal waits for the silent database forever.
        assert!(since.elapsed() < Duration::from_secs(120), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}: {output:?}");
        assert_eq!(processes_of(folder.path()), Vec::<String>::new());
        let left = std::fs::read_dir(folder.path()).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().path()).collect();
        assert!(left.is_empty(), "{arguments:?}: {left:?}");
    }
}

#[test]
fn dev_rejects_a_database_that_is_in_use() {
    let deployment = Deployment::start();
    deployment.run_ok(&["migrate"]);
    deployment.run_ok(&["tenant", "create", "--name", "Shop", "--type", "test"]);

    let url = deployment.postgres.url();
    let rejected = outcome(cloakroom(&[
        "dev",
        "--listen",
        "127.0.0.1:0",
        "--database-url",
        &url,
    ]));

    assert!(!rejected.success);
    assert!(
        rejected.stderr.contains("must be new to Cloakroom"),
        "{}",
        rejected.stderr
    );
}

#[test]
fn the_environment_file_has_what_the_documentation_uses_until_the_vault_stops() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("vault.env");
    let mut command = cloakroom(&["dev", "--json", "--listen", "127.0.0.1:0", "--processors"]);
    command.arg("--env-file").arg(&file);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let ready: Value = serde_json::from_str(&first_line(&mut child)).unwrap();

    let text = std::fs::read_to_string(&file).unwrap();
    let mode = std::fs::metadata(&file).unwrap().permissions().mode();
    let value = |name: &str| {
        let line = text.lines().find_map(|line| {
            let assignment = line.strip_prefix("export ")?.strip_prefix(name)?;
            assignment.strip_prefix('=')
        });
        line.unwrap().trim_matches('\'').to_owned()
    };
    let mut tenants = cloakroom(&["tenant", "list"]);
    tenants.env("CLOAKROOM_CONFIG", value("CLOAKROOM_CONFIG"));
    let tenants = tenants.output().unwrap();
    terminate(&child);
    assert!(wait_for_exit(&mut child).success());

    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(value("BASE_URL"), ready["base_url"].as_str().unwrap());
    assert_eq!(
        value("PRIVATE_KEY"),
        ready["keys"]["private"].as_str().unwrap()
    );
    assert!(value("STRIPE_URL").starts_with("https://api.stripe.example:"));
    let listed = String::from_utf8(tenants.stdout).unwrap();
    assert!(
        listed.contains(ready["tenant_id"].as_str().unwrap()),
        "{listed}"
    );
    assert!(!file.exists());
}
