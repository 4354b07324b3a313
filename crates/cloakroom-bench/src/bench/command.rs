//! Runs a program and captures its output.

use std::process::Stdio;

use anyhow::{Context, Result, bail};
use tokio::process::Command;

/// The standard output of the program. The program is killed when the future is dropped.
pub(super) async fn capture(mut command: Command) -> Result<String> {
    let program = command
        .as_std()
        .get_program()
        .to_string_lossy()
        .into_owned();
    let output = command
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .with_context(|| format!("running {program}"))?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{program} failed: {}\n{}{stdout}",
            output.status,
            stderr.trim()
        );
    }
    Ok(stdout)
}
