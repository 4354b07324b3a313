//! Runs the 3-D Secure simulator as a child process of `cloakroom dev`, and configures the vault to use it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use cloakroom::config::Config;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How long the simulator may take to create its certificates and to listen.
const READY_TIMEOUT: Duration = Duration::from_secs(60);

/// A running simulator. It exits with this process, because its standard input closes.
pub(crate) struct SimulatorProcess {
    _process: Child,
    pub ready: SimulatorReady,
}

/// The JSON line that the simulator prints when it is ready.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct SimulatorReady {
    directory_urls: Vec<DirectoryUrl>,
    /// URL of the issuer's pages and of the control endpoints.
    pub acs_url: String,
    ca_file: PathBuf,
    certificate_file: PathBuf,
    key_file: PathBuf,
}

#[derive(Clone, Deserialize, Serialize)]
struct DirectoryUrl {
    network: String,
    url: String,
}

/// The file that configures the directory servers of the card networks.
#[derive(Serialize)]
struct NetworksFile<'a> {
    directory: Vec<Directory<'a>>,
}

#[derive(Serialize)]
struct Directory<'a> {
    network: &'a str,
    tenants: &'static str,
    urls: [&'a str; 1],
    operator_id: &'static str,
    cert_file: &'a Path,
    key_file: &'a Path,
    ca_file: &'a Path,
}

impl SimulatorProcess {
    pub(crate) async fn start(folder: &Path) -> anyhow::Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("threeds-simulator")
            .args(["--listen", "127.0.0.1:0", "--acs-listen", "127.0.0.1:0"])
            .args(["--acs-plain", "--attached", "--json", "--folder"])
            .arg(folder.join("threeds"))
            // Ctrl-C in a terminal stops the vault first, which needs the simulator until then.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the 3-D Secure simulator")?;
        let output = process
            .stdout
            .take()
            .context("the 3-D Secure simulator has no output")?;
        let mut lines = BufReader::new(output).lines();
        let line = timeout(READY_TIMEOUT, lines.next_line()).await;
        let line = line.context("the 3-D Secure simulator did not start in time")??;
        let line = line.context("the 3-D Secure simulator exited")?;
        Ok(Self {
            _process: process,
            ready: serde_json::from_str(&line)?,
        })
    }

    /// Configures the vault to use the simulator for test tenants.
    pub(crate) fn configure(&self, folder: &Path, config: &mut Config) -> anyhow::Result<()> {
        let SimulatorReady {
            directory_urls,
            ca_file,
            certificate_file,
            key_file,
            ..
        } = &self.ready;
        let directory = directory_urls.iter().map(|directory| Directory {
            network: &directory.network,
            tenants: "test",
            urls: [&directory.url],
            operator_id: "simulated",
            cert_file: certificate_file,
            key_file,
            ca_file,
        });
        let file = NetworksFile {
            directory: directory.collect(),
        };
        let path = folder.join("networks.toml");
        std::fs::write(&path, toml::to_string(&file)?)?;
        config.threeds.networks_file = Some(path);
        config.threeds.results_listen = Some(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        config.threeds.results_cert_file = Some(certificate_file.clone());
        config.threeds.results_key_file = Some(key_file.clone());
        config.quotas.threeds = true;
        Ok(())
    }
}
