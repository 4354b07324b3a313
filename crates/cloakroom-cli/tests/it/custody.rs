//! Nodes that start sealed or without their key provider, and the commands for shares.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Deployment, Outcome, cloakroom, outcome, query};

/// Starts a node that is not ready yet, with its log in a file.
struct WaitingNode {
    process: Child,
    log: std::path::PathBuf,
}

impl WaitingNode {
    fn start(deployment: &Deployment, settings: &[(&str, &str)]) -> Self {
        let log = deployment.path("waiting.log");
        let file = std::fs::File::create(&log).unwrap();
        let mut command = deployment.command(&["serve"]);
        set(&mut command, settings);
        command.stdout(Stdio::null()).stderr(file);
        let process = command.spawn().unwrap();
        Self { process, log }
    }

    fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// Waits until the log contains a text this many times.
    fn wait_for(&mut self, text: &str, times: usize) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.log().matches(text).count() < times {
            let ended = self.process.try_wait().unwrap();
            let log = self.log();
            assert!(ended.is_none(), "the node ended: {log}");
            assert!(Instant::now() < deadline, "no {text:?} in {log}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The response of `/readyz` of the listener that was started last.
    fn readyz(&self) -> String {
        let log = self.log();
        let mut lines = log.lines().filter(|line| line.contains("\"listening\""));
        let line: serde_json::Value = serde_json::from_str(lines.next_back().unwrap()).unwrap();
        let address = line["listen"].as_str().unwrap();
        let url = format!("http://{address}/readyz");
        crate::support::runtime()
            .block_on(async { reqwest::get(url).await.unwrap().text().await.unwrap() })
    }
}

impl Drop for WaitingNode {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn set(command: &mut Command, settings: &[(&str, &str)]) {
    for (name, value) in settings {
        command.env(format!("CLOAKROOM__ROOT_KEY__{name}"), value);
    }
}

/// Runs a command that reads these files from standard input.
fn run_with(mut command: Command, files: &[&Path]) -> Outcome {
    command.stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    for file in files {
        input.write_all(&std::fs::read(file).unwrap()).unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    Outcome {
        success: output.status.success(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Who created, split and entered the key is in the audit log.
fn assert_logged(deployment: &Deployment, split: &str) {
    let entries = query(
        &deployment.postgres,
        "select entity_id || ' by ' || origin from log where entity_kind = 19 order by created_at, chain, seq",
    );
    let root = split.split("key check value: ").nth(1).unwrap();
    let root = root.lines().next().unwrap();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let expected = [
        format!("root {root}"),
        "control-1".to_owned(),
        "audit_authority-1".to_owned(),
        "security_code_wrap-1".to_owned(),
        format!("root {root}: 2 of 3 shares"),
        format!("root {root}: share 3"),
        format!("root {root}: share 1"),
        format!("root {root}: combined into a file"),
    ];
    assert_eq!(entries.len(), expected.len(), "{entries:?}");
    for (entry, expected) in entries.iter().zip(&expected) {
        let (id, operator) = entry.split_once(" by ").unwrap();
        assert_eq!(id, expected);
        assert!(operator.ends_with(&format!("@{}", host.trim())), "{entry}");
    }
    assert!(entries[5].contains("Custodian 3, "), "{entries:?}");
}

#[test]
fn a_sealed_node_serves_once_enough_custodians_submitted_their_shares() {
    let deployment = Deployment::start();
    deployment.run_ok(&["migrate"]);
    deployment.run_ok(&["tenant", "create", "--name", "T", "--type", "test"]);
    let folder = deployment.folder.path().display().to_string();
    let root_key = deployment.path("root.key").display().to_string();
    let split = deployment.run_ok(&[
        "root-key",
        "split",
        "--threshold",
        "2",
        "--shares",
        "3",
        "--out",
        &folder,
        "--from",
        &root_key,
    ]);
    let share = |number: u8| deployment.path(&format!("share-{number}.txt"));
    std::fs::remove_file(deployment.path("root.key")).unwrap();
    let socket = deployment.path("shares.sock").display().to_string();
    let settings = [("PROVIDER", "shares"), ("SHARES_SOCKET", socket.as_str())];
    let submit = |number| {
        let name = format!("Custodian {number}");
        let arguments = ["root-key", "submit", "--socket", &socket, "--as", &name];
        let command = cloakroom(&arguments);
        run_with(command, &[&share(number)])
    };

    let mut node = WaitingNode::start(&deployment, &settings);
    node.wait_for("\"listening\"", 1);
    let sealed = node.readyz();
    let first = submit(3);
    let one_share = node.readyz();
    let repeated = submit(3);
    let second = submit(1);
    // The admin listener of the waiting node, then the API and the admin listener of the serving one.
    node.wait_for("\"listening\"", 3);
    let late = submit(2);

    assert!(split.contains("key check value"), "{split}");
    assert!(sealed.contains("sealed: no share received"), "{sealed}");
    assert!(first.success, "{}", first.stderr);
    assert!(first.stdout.contains("1 of 2 shares"), "{}", first.stdout);
    assert!(one_share.contains("1 of 2 shares received"), "{one_share}");
    assert!(!repeated.success);
    assert!(repeated.stderr.contains("already"), "{}", repeated.stderr);
    assert!(second.success, "{}", second.stderr);
    assert!(!late.success);
    // Other commands read the shares themselves.
    let mut list = deployment.command(&["tenant", "list"]);
    set(&mut list, &settings);
    let list = run_with(list, &[&share(2), &share(1)]);
    assert!(list.success, "{}", list.stderr);
    // Combined into a file, the key opens the vault; a second time, the file is not overwritten.
    let mut combine = deployment.command(&["root-key", "combine", &root_key]);
    set(&mut combine, &settings);
    let combined = run_with(combine, &[&share(3), &share(2)]);
    assert!(combined.success, "{}", combined.stderr);
    deployment.run_ok(&["tenant", "list"]);
    let mode = std::fs::metadata(&root_key).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o400);
    let combine = deployment.command(&["root-key", "combine", &root_key]);
    let again = run_with(combine, &[&share(1), &share(2)]);
    assert!(
        !again.success && again.stderr.contains("exists"),
        "{}",
        again.stderr
    );
    assert_logged(&deployment, &split);
    let log = node.log();
    for number in 1..=3 {
        let line = std::fs::read_to_string(share(number)).unwrap();
        let values = line.split_whitespace().nth(4).unwrap();
        assert!(!log.contains(values));
    }
}

#[test]
fn a_node_that_starts_without_its_key_provider_waits_and_says_why() {
    use std::os::unix::fs::PermissionsExt as _;
    let deployment = Deployment::start();
    deployment.run_ok(&["migrate"]);
    let token = deployment.path("token");
    std::fs::write(&token, "hvs.test").unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o400)).unwrap();
    let token = token.display().to_string();
    let provider = provider::TestProvider::start();
    let url = format!("http://{}", provider.address);
    let settings = [
        ("PROVIDER", "transit"),
        ("TRANSIT_URL", url.as_str()),
        ("TRANSIT_KEY", "root"),
        ("TRANSIT_TOKEN_FILE", token.as_str()),
    ];
    let mut create = deployment.command(&["tenant", "create", "--name", "T", "--type", "test"]);
    set(&mut create, &settings);
    let created = outcome(create);
    assert!(created.success, "{}", created.stderr);
    let mut doctor = deployment.command(&["doctor"]);
    set(&mut doctor, &settings);
    let healthy = outcome(doctor).stdout;

    provider.set_status(503);
    let mut doctor = deployment.command(&["doctor"]);
    set(&mut doctor, &settings);
    let diagnosed = outcome(doctor);
    let mut node = WaitingNode::start(&deployment, &settings);
    node.wait_for("\"listening\"", 1);
    let waiting = node.readyz();
    // At least a second attempt, with the same reason.
    let asked = provider.requests();
    let deadline = Instant::now() + Duration::from_secs(60);
    while provider.requests() == asked && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(50));
    }
    let reported = node.log().matches("waits for its root key").count();
    provider.set_status(200);
    node.wait_for("\"listening\"", 3);

    assert!(healthy.contains("wrap and unwrap took"), "{healthy}");
    assert!(healthy.contains("is not encrypted"), "{healthy}");
    assert!(!diagnosed.success);
    assert!(
        diagnosed.stdout.contains("sealed or in maintenance"),
        "{}",
        diagnosed.stdout
    );
    assert!(waiting.contains("\"ready\":false"), "{waiting}");
    assert!(waiting.contains("sealed or in maintenance"), "{waiting}");
    assert_eq!(reported, 1, "{}", node.log());
    // Wrong credentials are no outage: the node does not wait.
    provider.set_status(403);
    let mut denied = deployment.command(&["serve"]);
    set(&mut denied, &settings);
    let denied = outcome(denied);
    assert!(!denied.success);
    assert!(
        denied.stderr.contains("rejected this node"),
        "{}",
        denied.stderr
    );
    assert!(!denied.stderr.contains("hvs."), "{}", denied.stderr);
}

/// A provider that speaks as much of the protocol of Transit as these tests need.
mod provider {
    use std::io::{BufRead as _, BufReader, Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};

    use serde_json::{Value, json};

    pub(super) struct TestProvider {
        pub(super) address: SocketAddr,
        shared: Arc<Shared>,
    }

    struct Shared {
        status: AtomicU16,
        requests: AtomicUsize,
        plaintexts: Mutex<Vec<Value>>,
    }

    impl TestProvider {
        pub(super) fn start() -> Self {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = listener.local_addr().unwrap();
            let shared = Arc::new(Shared {
                status: AtomicU16::new(200),
                requests: AtomicUsize::new(0),
                plaintexts: Mutex::default(),
            });
            let server = shared.clone();
            std::thread::spawn(move || {
                for stream in listener.incoming().flatten() {
                    let _ = server.answer(&stream);
                }
            });
            Self { address, shared }
        }

        pub(super) fn set_status(&self, status: u16) {
            self.shared.status.store(status, Ordering::Relaxed);
        }

        pub(super) fn requests(&self) -> usize {
            self.shared.requests.load(Ordering::Relaxed)
        }
    }

    impl Shared {
        fn answer(&self, mut stream: &TcpStream) -> std::io::Result<()> {
            let mut reader = BufReader::new(stream);
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                reader.read_line(&mut line)?;
                let lower = line.to_ascii_lowercase();
                if let Some(value) = lower.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                head += &line;
                if line.trim().is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body)?;
            self.requests.fetch_add(1, Ordering::Relaxed);
            let status = self.status.load(Ordering::Relaxed);
            let body: Value = serde_json::from_slice(&body).unwrap_or(Value::Null);
            let reply = match status {
                200 => json!({"data": self.data(&head, &body)}),
                _ => json!({"errors": ["no"]}),
            };
            let reply = reply.to_string();
            write!(
                stream,
                "HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{reply}",
                reply.len()
            )
        }

        fn data(&self, head: &str, body: &Value) -> Value {
            let mut plaintexts = self.plaintexts.lock().unwrap();
            if head.contains("/encrypt/") {
                plaintexts.push(body["plaintext"].clone());
                return json!({"ciphertext": format!("vault:v1:{}", plaintexts.len() - 1)});
            }
            if head.contains("/decrypt/") {
                let number = body["ciphertext"].as_str().unwrap().rsplit(':').next();
                let number: usize = number.unwrap().parse().unwrap();
                return json!({"plaintext": plaintexts[number]});
            }
            json!({"type": "aes256-gcm96"})
        }
    }
}
