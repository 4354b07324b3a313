//! Runs a task until it completes or a signal arrives.

use anyhow::{Result, bail};
use tokio::signal::unix::{SignalKind, signal};

/// Runs `task`. SIGINT and SIGTERM drop it, and with it every process that it holds.
pub(crate) fn run(task: impl Future<Output = Result<()>>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            result = task => result,
            _ = interrupt.recv() => bail!("interrupted"),
            _ = terminate.recv() => bail!("terminated"),
        }
    })
}
