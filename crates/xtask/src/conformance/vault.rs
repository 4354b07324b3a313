//! A vault made by `cloakroom dev`, for as long as the suites need it.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;

/// The official suites look at it.
const TENANT_NAME: &str = "SDK Integration Tests";
const START_TIMEOUT: Duration = Duration::from_secs(60);
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
const POLL_PERIOD: Duration = Duration::from_millis(50);

pub(super) struct Vault {
    process: Process,
    ready: Ready,
}

/// What `cloakroom dev --json` prints when it can be used.
#[derive(Deserialize)]
struct Ready {
    base_url: String,
    tenant_id: String,
    keys: Keys,
}

#[derive(Deserialize)]
struct Keys {
    private: String,
    public: String,
    management: String,
}

impl Vault {
    pub(super) fn start(program: &Path) -> Result<Self> {
        Self::start_with(program, &[])
    }

    /// A vault that limits the rate of requests, as a test tenant in production has it.
    pub(super) fn start_limited(program: &Path) -> Result<Self> {
        Self::start_with(program, &["--limits"])
    }

    fn start_with(program: &Path, more: &[&str]) -> Result<Self> {
        let mut command = Command::new(program);
        command
            .args(["dev", "--json", "--listen", "127.0.0.1:0"])
            .args(["--tenant-name", TENANT_NAME])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let child = command
            .spawn()
            .with_context(|| program.display().to_string())?;
        let mut process = Process(child);
        let line = match process.lines()?.recv_timeout(START_TIMEOUT) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => bail!("the vault is not ready after a minute"),
            Err(RecvTimeoutError::Disconnected) => {
                bail!(
                    "the vault ended with {} before it was ready",
                    process.0.wait()?
                )
            }
        };
        let ready = serde_json::from_str(&line).context("what `cloakroom dev --json` printed")?;
        Ok(Self { process, ready })
    }

    pub(super) fn base_url(&self) -> &str {
        &self.ready.base_url
    }

    /// What a suite needs in its environment, named as the official suites name it.
    pub(super) fn variables(&self) -> [(&'static str, &str); 5] {
        let Ready {
            base_url,
            tenant_id,
            keys,
        } = &self.ready;
        [
            ("BT_API_URL", base_url),
            ("BT_TENANT_ID", tenant_id),
            ("BT_PVT_API_KEY", &keys.private),
            ("BT_PUB_API_KEY", &keys.public),
            ("BT_MGT_API_KEY", &keys.management),
        ]
    }

    /// What a suite needs of a vault whose tenant it may delete.
    pub(super) fn spare_variables(&self) -> [(&'static str, &str); 2] {
        let Ready { base_url, keys, .. } = &self.ready;
        [
            ("BT_SPARE_API_URL", base_url),
            ("BT_SPARE_MGT_API_KEY", &keys.management),
        ]
    }

    /// What a suite needs of a vault that limits the rate of its requests.
    pub(super) fn limited_variables(&self) -> [(&'static str, &str); 2] {
        let Ready { base_url, keys, .. } = &self.ready;
        [
            ("BT_LIMITED_API_URL", base_url),
            ("BT_LIMITED_PVT_API_KEY", &keys.private),
        ]
    }

    /// Stops the vault, and takes anything but an orderly end as an error.
    pub(super) fn stop(mut self) -> Result<()> {
        let status = self.process.stop()?;
        if !status.success() {
            bail!("the vault ended with {status}");
        }
        Ok(())
    }
}

/// A process that does not outlive this value.
struct Process(Child);

impl Process {
    /// The lines that the process prints; reading goes on, so that it never waits for a reader.
    fn lines(&mut self) -> Result<Receiver<String>> {
        let stdout = self.0.stdout.take().context("the output is not piped")?;
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                // Only the first line is waited for.
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
        bail!("the vault did not stop when asked, and was killed")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.stop() {
            eprintln!("conformance: {error:#}");
        }
    }
}
