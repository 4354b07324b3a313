//! Runs the `cloakroom` command and the nodes that it starts.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use cloakroom_scratch::{Postgres, PostgresOptions};
use tempfile::TempDir;

/// Number of nodes started; each has its own log file.
static NODES: AtomicUsize = AtomicUsize::new(0);

/// A deployment on this machine: a PostgreSQL server, a root key, a configuration file.
pub(crate) struct Deployment {
    pub(crate) postgres: Postgres,
    pub(crate) folder: TempDir,
}

/// The output and the success of a command.
pub(crate) struct Outcome {
    pub(crate) success: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A node that runs until it is dropped.
pub(crate) struct Node {
    pub(crate) process: Child,
    pub(crate) base_url: String,
    pub(crate) admin_url: String,
    pub(crate) log: PathBuf,
}

impl Deployment {
    /// An empty database server, and a configuration that uses it.
    pub(crate) fn start() -> Self {
        let postgres = Postgres::start(PostgresOptions::default()).unwrap();
        let deployment = Self {
            postgres,
            folder: tempfile::tempdir().unwrap(),
        };
        let root_key = deployment.path("root.key");
        let created = deployment.run(&["root-key", "create", &root_key.display().to_string()]);
        assert!(created.success, "{}", created.stderr);
        deployment.configure("");
        deployment
    }

    /// A migrated deployment with a tenant, and one API key for each of the rules.
    pub(crate) fn with_keys(rules: &[&str]) -> (Self, Vec<String>) {
        let deployment = Self::start();
        deployment.run_ok(&["migrate"]);
        let tenant = deployment.run_ok(&["tenant", "create", "--name", "T", "--type", "test"]);
        let tenant = word_after(&tenant, "tenant ");
        let keys = rules.iter().map(|rule| {
            let app = deployment.run_ok(&[
                "app", "create", "--tenant", &tenant, "--name", "A", "--type", "private", "--rule",
                rule,
            ]);
            let app = word_after(&app, "application ");
            let key = deployment.run_ok(&["key", "create", "--tenant", &tenant, "--app", &app]);
            key.lines().next().unwrap().to_owned()
        });
        let keys = keys.collect();
        (deployment, keys)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes the configuration file with additional lines. Rate limits are disabled unless `more` configures them.
    pub(crate) fn configure(&self, more: &str) {
        let limits = match more.contains("[limits]") {
            true => "",
            false => "[limits]\nenabled = false\n",
        };
        let text = format!(
            "{more}\n{limits}[http]\nlisten = \"127.0.0.1:0\"\n{}\n[admin]\nlisten = \"127.0.0.1:0\"\n\
             [database]\nurl = \"{}\"\n[root_key]\nfile = \"{}\"\n",
            self.tls(),
            self.postgres.url(),
            self.path("root.key").display(),
        );
        std::fs::write(self.path("cloakroom.toml"), text).unwrap();
    }

    /// TLS settings, if the test has created the certificate files.
    fn tls(&self) -> String {
        let (cert, key) = (self.path("tls.crt"), self.path("tls.key"));
        match cert.exists() {
            true => format!(
                "tls_cert_file = \"{}\"\ntls_key_file = \"{}\"",
                cert.display(),
                key.display()
            ),
            false => String::new(),
        }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        outcome(self.command(arguments))
    }

    /// Runs a command that must succeed, and returns its standard output.
    pub(crate) fn run_ok(&self, arguments: &[&str]) -> String {
        let outcome = self.run(arguments);
        assert!(
            outcome.success,
            "{arguments:?}: {}{}",
            outcome.stdout, outcome.stderr
        );
        outcome.stdout
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = cloakroom(arguments);
        command.env("CLOAKROOM_CONFIG", self.path("cloakroom.toml"));
        command
    }

    /// A command that this user runs with `sudo`. Settings are in the environment: such commands read no file of a test.
    pub(crate) fn sudo(&self, uid: &str, arguments: &[&str]) -> Command {
        let mut command = cloakroom(arguments);
        command.env("SUDO_UID", uid);
        command.env("CLOAKROOM__DATABASE__URL", self.postgres.url());
        command.env("CLOAKROOM__ROOT_KEY__FILE", self.path("root.key"));
        command
    }

    /// Starts a node and waits until it is ready.
    pub(crate) fn serve(&self) -> Node {
        self.serve_by(self.command(&["serve"]))
    }

    /// Starts a node with a custom command.
    pub(crate) fn serve_by(&self, mut command: Command) -> Node {
        let number = NODES.fetch_add(1, Ordering::Relaxed);
        let log = self.path(&format!("node-{number}.log"));
        let file = std::fs::File::create(&log).unwrap();
        command.stdout(Stdio::null()).stderr(file);
        let process = command.spawn().unwrap();
        let (base_url, admin_url) = (String::new(), String::new());
        let mut node = Node {
            process,
            base_url,
            admin_url,
            log,
        };
        let deadline = Instant::now() + Duration::from_secs(30);
        loop {
            let text = std::fs::read_to_string(&node.log).unwrap();
            if let [api, admin] = &listen_addresses(&text)[..] {
                let scheme = if self.tls().is_empty() {
                    "http"
                } else {
                    "https"
                };
                node.base_url = format!("{scheme}://{api}");
                node.admin_url = format!("http://{admin}");
                return node;
            }
            assert!(Instant::now() < deadline, "the node did not start: {text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Node {
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.process.id().to_string();
        assert!(
            Command::new("kill")
                .args(["-s", name, &pid])
                .status()
                .unwrap()
                .success()
        );
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// A runtime for tests with concurrent connections.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap()
}

/// Runs SQL and returns the first column of each row as text.
pub(crate) fn query(postgres: &Postgres, sql: &str) -> Vec<String> {
    runtime().block_on(async {
        let (client, connection) = tokio_postgres::connect(&postgres.url(), tokio_postgres::NoTls)
            .await
            .unwrap();
        let mut driver = tokio::task::JoinSet::new();
        driver.spawn(connection);
        let messages = client.simple_query(sql).await.unwrap();
        let row = |message| match message {
            tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0).map(str::to_owned),
            _ => None,
        };
        messages.into_iter().filter_map(row).collect()
    })
}

/// The command without the configuration of a deployment.
pub(crate) fn cloakroom(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cloakroom"));
    command.args(arguments).stdin(Stdio::null());
    command
}

pub(crate) fn outcome(mut command: Command) -> Outcome {
    let output = command.output().unwrap();
    Outcome {
        success: output.status.success(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// The word after `marker` in the output.
pub(crate) fn word_after(text: &str, marker: &str) -> String {
    let (_, rest) = text
        .split_once(marker)
        .unwrap_or_else(|| panic!("no {marker:?} in {text}"));
    rest.split_whitespace().next().unwrap().to_owned()
}

/// The listen addresses in a node's log: first the API, then the admin listener.
fn listen_addresses(log: &str) -> Vec<String> {
    log.lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|line| Some(line.get("listen")?.as_str()?.to_owned()))
        .collect()
}

/// Reads one line from a child's output.
pub(crate) fn first_line(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap())
        .read_line(&mut line)
        .unwrap();
    line
}

/// Calls `visit` with the content of every file below a folder.
pub(crate) fn each_file(folder: &Path, visit: &mut dyn FnMut(&Path, &[u8])) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            each_file(&path, visit);
        } else if let Ok(mut file) = std::fs::File::open(&path) {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).unwrap();
            visit(&path, &bytes);
        }
    }
}
