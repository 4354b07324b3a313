//! Running a program to its end and taking what it printed.

use std::process::Stdio;

use anyhow::{Context, Result, bail};
use tokio::process::Command;

/// What the program wrote to its standard output; killed when nobody waits for it any more.
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
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{program} ended with {}\n{}{said}",
            output.status,
            complaint.trim()
        );
    }
    Ok(said)
}
