//! A temporary vault, started with `cloakroom dev`.

use std::io::{BufRead, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use cloakroom_devtools::haproxy;
use cloakroom_scratch::free_port;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;

/// Expected by the official suites.
const TENANT_NAME: &str = "SDK Integration Tests";
const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(120);
const POLL_PERIOD: Duration = Duration::from_millis(50);

pub(super) struct Vault {
    process: Process,
    ready: Ready,
    /// Only with several nodes.
    _proxy: Option<Proxy>,
}

/// HAProxy and the folder of its configuration.
struct Proxy {
    // Dropped in this order.
    _process: Process,
    _folder: tempfile::TempDir,
}

/// Output of `cloakroom dev --json` when the vault is ready.
#[derive(Deserialize)]
struct Ready {
    base_url: String,
    node_urls: Vec<String>,
    tenant_id: String,
    keys: Keys,
    /// Only with the demo shop.
    #[serde(default)]
    shop: serde_json::Value,
}

#[derive(Deserialize)]
struct Keys {
    private: String,
    public: String,
    management: String,
}

impl Vault {
    pub(super) fn start(program: &Path, nodes: u8) -> Result<Self> {
        Self::start_with(program, nodes, &[])
    }

    /// A vault with the rate limits of a test tenant in production.
    pub(super) fn start_limited(program: &Path, nodes: u8) -> Result<Self> {
        Self::start_with(program, nodes, &["--limits"])
    }

    /// A vault whose tenant a suite can delete with one key, as in the hosted service.
    pub(super) fn start_spare(program: &Path) -> Result<Self> {
        Self::start_with(program, 1, &["--immediate-deletion"])
    }

    /// A vault with everything that the demo shop needs but its server, which the suite starts.
    pub(super) fn start_with_shop(program: &Path, nodes: u8, shop: &Path) -> Result<Self> {
        let shop = shop.to_string_lossy();
        Self::start_with(program, nodes, &["--shop", &shop, "--shop-server", "none"])
    }

    fn start_with(program: &Path, nodes: u8, more: &[&str]) -> Result<Self> {
        // Responses contain the address that clients use, so it is chosen before the nodes start.
        let front = match nodes {
            1 => None,
            _ => Some(SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()?))),
        };
        let mut command = Command::new(program);
        command
            .args(["dev", "--json", "--listen", "127.0.0.1:0"])
            .args(["--tenant-name", TENANT_NAME])
            .args(["--nodes", &nodes.to_string()])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        if let Some(address) = front {
            command.args(["--base-url", &format!("http://{address}")]);
        }
        let child = command
            .spawn()
            .with_context(|| program.display().to_string())?;
        let mut process = Process(child);
        let line = match process.lines()?.recv_timeout(START_TIMEOUT) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => bail!("the vault is not ready after a minute"),
            Err(RecvTimeoutError::Disconnected) => {
                bail!(
                    "the vault exited with {} before it was ready",
                    process.0.wait()?
                )
            }
        };
        let ready: Ready =
            serde_json::from_str(&line).context("the output of `cloakroom dev --json`")?;
        let proxy = front.map(|address| Proxy::start(address, &ready.node_urls));
        Ok(Self {
            process,
            ready,
            _proxy: proxy.transpose()?,
        })
    }

    pub(super) fn base_url(&self) -> &str {
        &self.ready.base_url
    }

    /// The environment of a suite, with the variable names of the official suites.
    pub(super) fn variables(&self) -> [(&'static str, String); 6] {
        let Ready {
            base_url,
            tenant_id,
            keys,
            shop,
            ..
        } = &self.ready;
        [
            ("BT_API_URL", base_url.clone()),
            ("BT_TENANT_ID", tenant_id.clone()),
            ("BT_PVT_API_KEY", keys.private.clone()),
            ("BT_PUB_API_KEY", keys.public.clone()),
            ("BT_MGT_API_KEY", keys.management.clone()),
            ("SHOP", shop.to_string()),
        ]
    }

    /// The environment for a vault whose tenant the suite deletes.
    pub(super) fn spare_variables(&self) -> [(&'static str, &str); 2] {
        let Ready { base_url, keys, .. } = &self.ready;
        [
            ("BT_SPARE_API_URL", base_url),
            ("BT_SPARE_MGT_API_KEY", &keys.management),
        ]
    }

    /// The environment for a vault with rate limits.
    pub(super) fn limited_variables(&self) -> [(&'static str, &str); 2] {
        let Ready { base_url, keys, .. } = &self.ready;
        [
            ("BT_LIMITED_API_URL", base_url),
            ("BT_LIMITED_PVT_API_KEY", &keys.private),
        ]
    }

    /// Stops the vault, and returns an error unless it exits successfully.
    pub(super) fn stop(mut self) -> Result<()> {
        let status = self.process.stop()?;
        if !status.success() {
            bail!("the vault failed: {status}");
        }
        Ok(())
    }
}

impl Proxy {
    /// Starts HAProxy and waits until it listens.
    fn start(address: SocketAddr, node_urls: &[String]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("haproxy.cfg");
        let nodes = node_urls
            .iter()
            .map(|url| url.trim_start_matches("http://"));
        let nodes: Vec<&str> = nodes.collect();
        std::fs::write(&file, haproxy::configuration(&address.to_string(), &nodes))?;
        let mut command = Command::new("haproxy");
        command.args(["-db", "-q", "-f"]).arg(file);
        let mut process = Process(command.spawn().context("haproxy")?);
        let asked_at = Instant::now();
        while TcpStream::connect(address).is_err() {
            if process.0.try_wait()?.is_some() || asked_at.elapsed() > START_TIMEOUT {
                bail!("HAProxy does not listen");
            }
            thread::sleep(POLL_PERIOD);
        }
        Ok(Self {
            _process: process,
            _folder: folder,
        })
    }
}

/// A process that is stopped when dropped.
struct Process(Child);

impl Process {
    /// The lines of the process's output. They are read to the end, so that the process never blocks.
    fn lines(&mut self) -> Result<Receiver<String>> {
        let stdout = self.0.stdout.take().context("the output is not piped")?;
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Only the first line is used.
                let _received = sender.send(line);
            }
        });
        Ok(receiver)
    }

    fn stop(&mut self) -> Result<ExitStatus> {
        if let Some(status) = self.0.try_wait()? {
            return Ok(status);
        }
        kill(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGTERM)?;
        let asked_at = Instant::now();
        while asked_at.elapsed() < STOP_TIMEOUT {
            if let Some(status) = self.0.try_wait()? {
                return Ok(status);
            }
            thread::sleep(POLL_PERIOD);
        }
        self.0.kill()?;
        self.0.wait()?;
        bail!("the vault did not stop on SIGTERM and was killed")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("conformance: {error:#}");
        }
    }
}
