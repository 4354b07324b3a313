//! Runs programs and captures their output.

use anyhow::{Context, Result, bail};
use tokio::process::Command;

use crate::machine_failure::MachineFailure;

/// Runs a system tool that must succeed, and returns its standard output. A failure is one of the machine.
pub(crate) async fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(arguments);
    capture(command).await.context(MachineFailure)
}

/// Runs a program of the cluster that must succeed, and returns its standard output.
pub(crate) async fn capture(mut command: Command) -> Result<String> {
    command.stdin(std::process::Stdio::null());
    command.kill_on_drop(true);
    let description = format!("{:?}", command.as_std());
    let output = command
        .output()
        .await
        .with_context(|| description.clone())?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        let stdout = String::from_utf8_lossy(&output.stdout);
        bail!("{description}: {}{}", stderr.trim(), stdout.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
