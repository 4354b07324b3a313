//! The root key moves from a file to an HSM, to AWS KMS and back while three nodes behind HAProxy serve.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cloakroom_devtools::{packages, python};
use serde_json::Value;

use crate::rotation::send_requests;
use crate::support::{Deployment, Node, outcome, query, runtime};

const NODES: usize = 3;
const CLIENTS: usize = 4;
const MODULE: &str = "/usr/lib/softhsm/libsofthsm2.so";
const PIN: &str = "4711-0815";
/// Longer than a request takes, so that a node that gets no new ones has completed all.
const DRAIN: Duration = Duration::from_millis(500);
const TIMEOUT: Duration = Duration::from_secs(60);

/// Settings of `[root_key]`, by name.
type Settings = Vec<(&'static str, String)>;

/// Nodes at fixed addresses behind HAProxy, which takes one out of service before it is restarted.
struct Cluster {
    deployment: Deployment,
    nodes: Vec<Option<Node>>,
    addresses: Vec<String>,
    address: String,
    haproxy: Child,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let _ = self.haproxy.kill();
        let _ = self.haproxy.wait();
    }
}

fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

impl Cluster {
    fn start(deployment: Deployment, root: &Settings) -> Self {
        let addresses: Vec<String> = (0..NODES).map(|_| free_address()).collect();
        let address = free_address();
        let file = deployment.path("haproxy.cfg");
        let socket = deployment.path("haproxy.sock");
        std::fs::write(&file, configuration(&address, &addresses, &socket)).unwrap();
        let haproxy = Command::new("haproxy")
            .args(["-db", "-q", "-f"])
            .arg(file)
            .spawn()
            .unwrap();
        let mut cluster = Self {
            deployment,
            nodes: (0..NODES).map(|_| None).collect(),
            addresses,
            address,
            haproxy,
        };
        wait_until("HAProxy listens", || socket.exists());
        for number in 0..NODES {
            cluster.start_node(number, root);
        }
        cluster
    }

    fn command(&self, arguments: &[&str], root: &Settings) -> Command {
        let mut command = self.deployment.command(arguments);
        for (name, value) in root {
            command.env(format!("CLOAKROOM__ROOT_KEY__{name}"), value);
        }
        command.env("SOFTHSM2_CONF", self.deployment.path("softhsm2.conf"));
        command
    }

    fn start_node(&mut self, number: usize, root: &Settings) {
        let mut command = self.command(&["serve"], root);
        command.env("CLOAKROOM__HTTP__LISTEN", &self.addresses[number]);
        self.nodes[number] = Some(self.deployment.serve_by(command));
        self.set_state(number, "ready");
    }

    /// Restarts one node after the other, with another root key.
    fn restart(&mut self, root: &Settings) {
        for number in 0..NODES {
            self.set_state(number, "drain");
            std::thread::sleep(DRAIN);
            let mut node = self.nodes[number].take().unwrap();
            node.signal("TERM");
            wait_until("a node ends", || node.process.try_wait().unwrap().is_some());
            self.start_node(number, root);
        }
    }

    /// HAProxy sometimes does not answer a command that arrives in pieces: it is written at once, and repeated.
    fn set_state(&self, number: usize, state: &str) {
        let socket = self.deployment.path("haproxy.sock");
        let command = format!("set server nodes/node{} state {state}\n", number + 1);
        let send = || {
            let mut stream = UnixStream::connect(&socket)?;
            stream.set_read_timeout(Some(Duration::from_secs(5)))?;
            stream.write_all(command.as_bytes())?;
            let mut reply = String::new();
            stream.read_to_string(&mut reply)?;
            std::io::Result::Ok(reply)
        };
        let reply = (0..5).find_map(|_| send().ok());
        assert_eq!(reply.as_deref().map(str::trim), Some(""));
    }

    /// Moves everything below the former root key to another one, as docs/operate/keys.md says.
    fn move_root(&mut self, former: &Settings, new: &Settings) -> Duration {
        let started_at = Instant::now();
        let previous = self.deployment.path("previous.toml");
        let lines = former.iter().map(|(name, value)| {
            let name = name.to_ascii_lowercase();
            format!("{name} = \"{value}\"\n")
        });
        let section = format!("[root_key]\n{}", lines.collect::<String>());
        std::fs::write(&previous, section).unwrap();
        let mut both = new.clone();
        both.push(("PREVIOUS", previous.display().to_string()));
        self.restart(&both);
        let rotated = outcome(self.command(&["key", "rotate", "--purpose", "root"], &both));
        assert!(rotated.success, "{}", rotated.stderr);
        let expected = "; 0 keys name another one";
        assert!(rotated.stdout.contains(expected), "{}", rotated.stdout);
        self.restart(new);
        started_at.elapsed()
    }
}

/// HAProxy with a socket for commands; a connection that cannot be made is tried at another node.
fn configuration(address: &str, nodes: &[String], socket: &Path) -> String {
    let servers = nodes.iter().enumerate();
    let servers: String = servers
        .map(|(at, node)| format!("    server node{} {node} disabled\n", at + 1))
        .collect();
    format!(
        "global\n    stats socket {} mode 600 level admin\n\
         defaults\n    mode http\n    timeout connect 2s\n    timeout client 60s\n    timeout server 60s\n    \
         retries 2\n    retry-on conn-failure\n    option redispatch 1\n\
         frontend clients\n    bind {address}\n    default_backend nodes\n\
         backend nodes\n    balance roundrobin\n    http-reuse safe\n{servers}",
        socket.display()
    )
}

fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is_true() {
        assert!(Instant::now() < deadline, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn write_secret(path: PathBuf, text: &str) -> String {
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
    path.display().to_string()
}

/// A root key in a file.
fn in_file(deployment: &Deployment, name: &str) -> Settings {
    let file = deployment.path(name).display().to_string();
    vec![("PROVIDER", "file".to_owned()), ("FILE", file)]
}

/// A token of SoftHSM2 without a key.
fn in_hsm(deployment: &Deployment) -> Settings {
    packages::require(&[("softhsm2-util", "softhsm2")]).unwrap();
    let (tokens, file) = (deployment.path("tokens"), deployment.path("softhsm2.conf"));
    std::fs::create_dir(&tokens).unwrap();
    std::fs::write(
        &file,
        format!("directories.tokendir = {}\n", tokens.display()),
    )
    .unwrap();
    let softhsm = Command::new("softhsm2-util")
        .args(["--init-token", "--free", "--label", "vault"])
        .args(["--so-pin", "12345678", "--pin", PIN])
        .env("SOFTHSM2_CONF", &file)
        .stdout(Stdio::null())
        .status();
    assert!(softhsm.unwrap().success());
    vec![
        ("PROVIDER", "pkcs11".to_owned()),
        ("PKCS11_MODULE", MODULE.to_owned()),
        ("PKCS11_TOKEN", "vault".to_owned()),
        ("PKCS11_KEY", "root".to_owned()),
        ("PKCS11_PIN_FILE", write_secret(deployment.path("pin"), PIN)),
    ]
}

/// moto, which speaks the protocol of AWS KMS and runs until it is dropped.
struct Moto {
    process: Child,
    address: String,
}

impl Moto {
    fn start() -> Self {
        let requirements = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../cloakroom-custody/tests/providers/requirements.txt");
        let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let programs = python::environment(target, "custody-python", &requirements).unwrap();
        let address = free_address();
        let (host, port) = address.split_once(':').unwrap();
        let process = Command::new(programs.join("moto_server"))
            .args(["-H", host, "-p", port])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let process = process.unwrap();
        wait_until("moto listens", || TcpStream::connect(&address).is_ok());
        Self { process, address }
    }

    /// Creates a key and returns its ARN.
    async fn create_key(&self) -> String {
        let response = reqwest::Client::new()
            .post(format!("http://{}", self.address))
            .header("content-type", "application/x-amz-json-1.1")
            .header("x-amz-target", "TrentService.CreateKey")
            .header(
                "authorization",
                "AWS4-HMAC-SHA256 Credential=test/20260101/eu-central-1/kms/aws4_request, SignedHeaders=host, Signature=0",
            )
            .body("{}")
            .send();
        let created: Value = response.await.unwrap().json().await.unwrap();
        created["KeyMetadata"]["Arn"].as_str().unwrap().to_owned()
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn in_kms(deployment: &Deployment, moto: &Moto, arn: String) -> Settings {
    let text = "[default]\naws_access_key_id = test\naws_secret_access_key = test\n";
    let credentials = write_secret(deployment.path("credentials"), text);
    vec![
        ("PROVIDER", "aws_kms".to_owned()),
        ("AWS_KMS_KEY", arn),
        ("AWS_KMS_ENDPOINT", format!("http://{}", moto.address)),
        ("AWS_KMS_CREDENTIALS_FILE", credentials),
    ]
}

#[test]
fn the_root_key_moves_between_providers_while_a_cluster_serves() {
    packages::require(&[("haproxy", "haproxy")]).unwrap();
    let (deployment, keys) = Deployment::with_keys(&["/ reveal token:create,token:read"]);
    let runtime = runtime();
    let moto = Moto::start();
    let arn = runtime.block_on(moto.create_key());
    let (file, hsm) = (in_file(&deployment, "root.key"), in_hsm(&deployment));
    let (kms, new_file) = (
        in_kms(&deployment, &moto, arn),
        in_file(&deployment, "new.key"),
    );
    let path = deployment.path("new.key").display().to_string();
    deployment.run_ok(&["root-key", "create", &path]);
    let mut cluster = Cluster::start(deployment, &file);
    let created = outcome(cluster.command(&["root-key", "create"], &hsm));
    assert!(created.success, "{}", created.stderr);
    let stop = Arc::new(AtomicBool::new(false));
    let base = format!("http://{}", cluster.address);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|_| runtime.spawn(send_requests(base.clone(), keys[0].clone(), stop.clone())))
        .collect();

    // Each former root key is destroyed after its move: nothing needs it.
    let to_hsm = cluster.move_root(&file, &hsm);
    std::fs::remove_file(cluster.deployment.path("root.key")).unwrap();
    let to_kms = cluster.move_root(&hsm, &kms);
    std::fs::remove_dir_all(cluster.deployment.path("tokens")).unwrap();
    let to_file = cluster.move_root(&kms, &new_file);
    drop(moto);
    cluster.restart(&new_file);
    stop.store(true, Ordering::Relaxed);

    let (mut requests, mut failures) = (0, Vec::new());
    for client in clients {
        let (sent, failed) = runtime.block_on(client).unwrap();
        requests += sent;
        failures.extend(failed);
    }
    println!(
        "moved in {to_hsm:?}, {to_kms:?} and {to_file:?}; {requests} requests, {} failed",
        failures.len()
    );
    assert_eq!(failures, Vec::<String>::new(), "of {requests}");
    assert!(requests > 100, "{requests}");
    let proofs = "select count(*)::text from key_proof";
    assert_eq!(query(&cluster.deployment.postgres, proofs), ["3"]);
    let verified = outcome(cluster.command(&["audit", "verify"], &new_file));
    assert!(verified.success, "{}{}", verified.stdout, verified.stderr);
}
