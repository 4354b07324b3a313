//! A node as a process: starting, TLS, draining, and refusing to start.

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

#[test]
fn a_node_answers_tells_its_health_and_ends_on_request() {
    let (deployment, keys) = Deployment::with_keys(&["/ reveal token:create,token:read"]);
    let mut node = deployment.serve();

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
            let answer = client
                .get(format!("{}{path}", node.admin_url))
                .send()
                .await
                .unwrap();
            (answer.status().as_u16(), answer.text().await.unwrap())
        };
        assert_eq!(get("/healthz").await.0, 200);
        // Ready once its jobs have looked at everything, which takes a moment.
        let deadline = Instant::now() + Duration::from_secs(30);
        while get("/readyz").await.0 != 200 {
            assert!(Instant::now() < deadline, "the node does not become ready");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let (_, metrics) = get("/metrics").await;
        let counted = r#"http_requests_total{method="POST",route="/tokens",status="201"} 1"#;
        assert!(metrics.contains(counted), "{metrics}");
    });
    node.signal("TERM");
    let ended = node.process.wait().unwrap();

    assert!(ended.success());
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

    // Half a request is on its way when the node is told to stop.
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
        assert!(Instant::now() < deadline, "new connections are still taken");
        std::thread::sleep(Duration::from_millis(20));
    }
    stream.write_all(&TOKEN.as_bytes()[5..]).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();

    assert!(answer.starts_with("HTTP/1.1 201"), "{answer}");
    assert!(node.process.wait().unwrap().success());
}

#[test]
fn a_node_serves_tls_with_its_own_certificate() {
    let (deployment, keys) = Deployment::with_keys(&["/ reveal token:create"]);
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(deployment.path("tls.crt"), made.cert.pem()).unwrap();
    std::fs::write(deployment.path("tls.key"), made.signing_key.serialize_pem()).unwrap();
    deployment.configure("");
    let node = deployment.serve();

    let url = format!("{}/tokens", node.base_url);
    let key = format!("bt-api-key: {}", keys[0]);
    let ask = |more: &[&str]| {
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

    let trusting = ask(&["--cacert", &authority]);
    let old = ask(&["--cacert", &authority, "--tls-max", "1.1"]);
    let stranger = ask(&[]);

    assert_eq!(trusting, (true, "2 201".to_owned()));
    assert!(!old.0, "TLS 1.1 was spoken");
    assert!(!stranger.0, "an unknown certificate was accepted");
}

#[test]
fn a_node_does_not_start_on_what_it_cannot_trust() {
    let deployment = Deployment::start();
    let start = || deployment.run(&["serve"]);

    let unmigrated = start();
    deployment.must(&["migrate"]);
    deployment.must(&["tenant", "create", "--name", "Shop", "--type", "test"]);
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
fn the_role_that_serves_need_not_own_the_tables() {
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
    let granted = deployment.must(&["migrate", "--grant-to", "plain"]);
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
