//! A node as a process: startup, TLS, draining, and startup errors.

use std::os::unix::net::UnixDatagram;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::Deployment;

const TOKEN: &str = r#"{"type":"token","data":"secret"}"#;

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// A message to the service manager.
fn receive(notified: &UnixDatagram) -> String {
    let limit = Some(Duration::from_secs(30));
    notified.set_read_timeout(limit).unwrap();
    let mut buffer = [0; 64];
    let length = notified.recv(&mut buffer).unwrap();
    String::from_utf8_lossy(&buffer[..length]).into_owned()
}

#[test]
fn a_node_serves_reports_its_health_and_stops_on_sigterm() {
    let (deployment, keys) = Deployment::with_keys(&["/ reveal token:create,token:read"]);
    let notified = UnixDatagram::bind(deployment.path("notify")).unwrap();
    let mut serve = deployment.command(&["serve"]);
    serve.env("NOTIFY_SOCKET", deployment.path("notify"));
    let mut node = deployment.serve_by(serve);
    assert_eq!(receive(&notified), "READY=1");

    runtime().block_on(async {
        let client = reqwest::Client::new();
        let created = client
            .post(format!("{}/tokens", node.base_url))
            .header("bt-api-key", &keys[0])
            .header("content-type", "application/json")
            .body(TOKEN)
            .send()
            .await
            .unwrap();
        assert_eq!(created.status(), 201);
        let get = async |path: &str| {
            let response = client
                .get(format!("{}{path}", node.admin_url))
                .send()
                .await
                .unwrap();
            (response.status().as_u16(), response.text().await.unwrap())
        };
        assert_eq!(get("/healthz").await.0, 200);
        // Ready after the first run of its jobs.
        let deadline = Instant::now() + Duration::from_secs(30);
        while get("/readyz").await.0 != 200 {
            assert!(Instant::now() < deadline, "the node did not become ready");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let (_, metrics) = get("/metrics").await;
        let counted =
            r#"cloakroom_http_requests_total{method="POST",route="/tokens",status="201"} 1"#;
        assert!(metrics.contains(counted), "{metrics}");
    });
    node.signal("TERM");
    let ended = node.process.wait().unwrap();

    assert!(ended.success());
    assert_eq!(receive(&notified), "STOPPING=1");
    let log = std::fs::read_to_string(&node.log).unwrap();
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let request = lines
        .iter()
        .find(|line| line["route"] == "/tokens")
        .unwrap();
    assert_eq!(request["status"], 201);
    assert_eq!(request["method"], "POST");
    for field in [
        "time",
        "level",
        "request.id",
        "tenant.id",
        "application.id",
        "key.id",
    ] {
        assert!(!request[field].is_null(), "{field} in {request}");
    }
}

#[test]
fn running_requests_finish_while_a_node_drains() {
    use std::io::{Read as _, Write as _};
    let (deployment, keys) = Deployment::with_keys(&["/ reveal token:create"]);
    let mut node = deployment.serve();
    let address = node.base_url.strip_prefix("http://").unwrap().to_owned();

    // Half of a request has been sent when the node receives SIGTERM.
    let mut stream = std::net::TcpStream::connect(&address).unwrap();
    let head = format!(
        "POST /tokens HTTP/1.1\r\nhost: vault\r\nbt-api-key: {}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n",
        keys[0],
        TOKEN.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&TOKEN.as_bytes()[..5]).unwrap();
    std::thread::sleep(Duration::from_millis(200));
    node.signal("TERM");
    let deadline = Instant::now() + Duration::from_secs(5);
    while std::net::TcpStream::connect(&address).is_ok() {
        assert!(
            Instant::now() < deadline,
            "new connections are still accepted"
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    stream.write_all(&TOKEN.as_bytes()[5..]).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();

    assert!(response.starts_with("HTTP/1.1 201"), "{response}");
    assert!(node.process.wait().unwrap().success());
}

#[test]
fn a_node_serves_tls_with_its_own_certificate() {
    let (deployment, keys) = Deployment::with_keys(&["/ reveal token:create"]);
    let generated = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(deployment.path("tls.crt"), generated.cert.pem()).unwrap();
    std::fs::write(
        deployment.path("tls.key"),
        generated.signing_key.serialize_pem(),
    )
    .unwrap();
    deployment.configure("");
    let node = deployment.serve();

    let url = format!("{}/tokens", node.base_url);
    let key = format!("bt-api-key: {}", keys[0]);
    let post = |more: &[&str]| {
        let mut curl = std::process::Command::new("curl");
        curl.args([
            "-s",
            "-o",
            "/dev/null",
            "-w",
            "%{http_version} %{http_code}",
            &url,
        ]);
        curl.args([
            "-H",
            &key,
            "-H",
            "content-type: application/json",
            "-d",
            TOKEN,
        ]);
        let output = curl.args(more).output().unwrap();
        (
            output.status.success(),
            String::from_utf8(output.stdout).unwrap(),
        )
    };
    let authority = deployment.path("tls.crt").display().to_string();

    let trusting = post(&["--cacert", &authority]);
    let old = post(&["--cacert", &authority, "--tls-max", "1.1"]);
    let untrusting = post(&[]);

    assert_eq!(trusting, (true, "2 201".to_owned()));
    assert!(!old.0, "TLS 1.1 was accepted");
    assert!(!untrusting.0, "an unknown certificate was accepted");
}

/// Log lines contain the client address, those of rejected requests also the key prefix, but no secrets.
#[test]
fn requests_are_logged_with_address_and_rejected_ones_with_key_prefix() {
    let (deployment, keys) = Deployment::with_keys(&["/ mask token:read"]);
    let mut command = deployment.command(&["serve"]);
    command.env("CLOAKROOM__HTTP__TRUSTED_PROXIES", "127.0.0.0/8");
    let node = deployment.serve_by(command);
    let (prefix, secret) = keys[0].split_at("key_test_us_pvt_".len() + 10);
    let wrong = format!("{prefix}{}", secret.replace('a', "b").replace('1', "2"));
    let post = |key: &str, path: &str| {
        let mut curl = std::process::Command::new("curl");
        curl.args(["-s", "-o", "/dev/null", "-w", "%{http_code}", "-d", TOKEN]);
        curl.args(["-H", &format!("bt-api-key: {key}")]);
        curl.args(["-H", "content-type: application/json"]);
        curl.args(["-H", "x-forwarded-for: 203.0.113.9"]);
        let url = format!("{}{path}", node.base_url);
        String::from_utf8(curl.arg(url).output().unwrap().stdout).unwrap()
    };

    let statuses = [
        post(&wrong, "/tokens"),
        post("no key at all", "/tokens"),
        post(&keys[0], "/tokens"),
        post(&keys[0], "//tokens"),
        post(&keys[0], "/tokens//"),
    ];
    node.signal("TERM");
    let mut node = node;
    node.process.wait().unwrap();

    assert_eq!(statuses, ["401", "401", "403", "404", "404"]);
    let log = std::fs::read_to_string(&node.log).unwrap();
    let lines = log.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<serde_json::Value> = lines.collect();
    let of = |status: u16| lines.iter().filter(move |line| line["status"] == status);
    let unauthorized: Vec<_> = of(401).collect();
    let forbidden = of(403).next().unwrap();
    for line in [unauthorized[0], unauthorized[1], forbidden] {
        assert_eq!(line["client.address"], "203.0.113.9", "{line}");
    }
    assert_eq!(unauthorized[0]["key.prefix"], prefix);
    assert!(unauthorized[1]["key.prefix"].is_null());
    assert_eq!(forbidden["key.prefix"], prefix);
    assert!(!forbidden["key.id"].is_null());
    assert!(of(404).all(|line| line["client.address"] == "203.0.113.9"));
    for secret in [
        &keys[0][prefix.len()..],
        &wrong[prefix.len()..],
        "no key at all",
    ] {
        assert!(!log.contains(secret), "{secret}");
    }
}

/// Connections of a production node beyond its host are encrypted, unless a setting accepts plaintext.
#[test]
fn a_production_node_does_not_start_without_tls() {
    let deployment = Deployment::start();
    let check = |command: &[&str], settings: &[(&str, &str)]| {
        let mut command = deployment.command(command);
        command.env("CLOAKROOM__VAULT__ENVIRONMENT", "production");
        command.env("CLOAKROOM__ROOT_KEY__ALLOW_FILE_IN_PRODUCTION", "true");
        command.envs(settings.iter().copied());
        crate::support::outcome(command)
    };
    let cases = [
        (
            "HTTP__LISTEN",
            "0.0.0.0:0",
            "http.tls_cert_file",
            "HTTP__ALLOW_PLAINTEXT",
        ),
        (
            "DATABASE__URL",
            "postgres://u:hush@db.invalid/x",
            "database.ca_file",
            "DATABASE__ALLOW_PLAINTEXT",
        ),
        (
            "REDIS__URL",
            "redis://:hush@cache.invalid",
            "redis.ca_file",
            "REDIS__ALLOW_PLAINTEXT",
        ),
    ];
    for (setting, value, place, waiver) in cases {
        let setting = format!("CLOAKROOM__{setting}");
        let waiver = format!("CLOAKROOM__{waiver}");
        let set = [(setting.as_str(), value)];
        let served = check(&["serve"], &set);
        let checked = check(&["config", "check"], &set);
        let waived = [(setting.as_str(), value), (waiver.as_str(), "true")];
        let accepted = check(&["config", "check"], &waived);

        assert!(!served.success && !checked.success, "{place}");
        assert!(served.stderr.contains(place), "{place}: {}", served.stderr);
        assert!(
            checked.stdout.contains(place),
            "{place}: {}",
            checked.stdout
        );
        assert!(!served.stderr.contains("hush"), "{}", served.stderr);
        let warned = format!("{}: production uses", waiver_name(&waiver));
        assert!(accepted.stdout.contains(&warned), "{}", accepted.stdout);
    }
}

/// The name of a setting in the configuration file.
fn waiver_name(variable: &str) -> String {
    let name = variable.trim_start_matches("CLOAKROOM__").to_lowercase();
    name.replace("__", ".")
}

#[test]
fn a_node_does_not_start_with_an_unsafe_configuration() {
    let deployment = Deployment::start();
    let start = || deployment.run(&["serve"]);

    let unmigrated = start();
    deployment.run_ok(&["migrate"]);
    deployment.run_ok(&["tenant", "create", "--name", "Shop", "--type", "test"]);
    deployment.configure("[vault]\nenvironment = \"production\"");
    let file_key_in_production = start();
    deployment.configure("[vault]\nenvironment = \"production\"\n");
    let mut overridden = deployment.command(&["serve"]);
    overridden.env("CLOAKROOM__ROOT_KEY__ALLOW_FILE_IN_PRODUCTION", "true");
    let other_environment = crate::support::outcome(overridden);

    let cases = [
        (unmigrated, "run `cloakroom migrate`"),
        (file_key_in_production, "allow_file_in_production"),
        (other_environment, "belongs to the environment `test`"),
    ];
    for (outcome, expected) in cases {
        assert!(!outcome.success, "{expected}");
        assert!(
            outcome.stderr.contains(expected),
            "{expected}: {}",
            outcome.stderr
        );
    }
}

#[test]
fn the_serving_role_need_not_own_the_tables() {
    let (deployment, keys) = Deployment::with_keys(&["/ reveal token:create,token:read"]);
    let run_sql = |sql: &str| {
        let url = deployment.postgres.url();
        let status = std::process::Command::new("psql")
            .args([&url, "-qc", sql])
            .status()
            .unwrap();
        assert!(status.success(), "{sql}");
    };
    run_sql("create role plain login password 'plain'");
    let granted = deployment.run_ok(&["migrate", "--grant-to", "plain"]);
    assert!(granted.contains("plain may read and write"), "{granted}");
    let (_, host) = deployment
        .postgres
        .url()
        .split_once('@')
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    let plain_url = format!("postgres://plain:plain@{host}");
    let text = std::fs::read_to_string(deployment.path("cloakroom.toml")).unwrap();
    let text = text.replace(&deployment.postgres.url(), &plain_url);
    std::fs::write(deployment.path("cloakroom.toml"), text).unwrap();

    let node = deployment.serve();
    let doctor = deployment.run(&["doctor"]);

    runtime().block_on(async {
        let created = reqwest::Client::new()
            .post(format!("{}/tokens", node.base_url))
            .header("bt-api-key", &keys[0])
            .header("content-type", "application/json")
            .body(json!({"type": "token", "data": 1}).to_string())
            .send()
            .await
            .unwrap();
        assert_eq!(created.status(), 201);
    });
    assert!(
        doctor.stdout.contains("the role plain is plain"),
        "{}",
        doctor.stdout
    );
}
