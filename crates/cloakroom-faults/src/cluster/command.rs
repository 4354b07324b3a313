//! Running a program to its end, and what it said.

use anyhow::{Context, Result, bail};
use tokio::process::Command;

/// Runs a program that must succeed; the answer is what it printed.
pub(crate) async fn run(program: &str, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(arguments);
    capture(command).await
}

/// The same for a command that was put together before.
pub(crate) async fn capture(mut command: Command) -> Result<String> {
    command.stdin(std::process::Stdio::null());
    command.kill_on_drop(true);
    let shown = format!("{:?}", command.as_std());
    let output = command.output().await.with_context(|| shown.clone())?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let also = String::from_utf8_lossy(&output.stdout);
        bail!("{shown}: {}{}", said.trim(), also.trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
