//! Running a command to its end, whatever the person at the keyboard does meanwhile.

use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::signal::unix::{SignalKind, signal};

/// Runs `command` and answers its status once it has really ended.
///
/// An interrupt does not end this process before the command: the command may still be using
/// what this process takes care of.
pub(crate) fn run(command: Command) -> Result<ExitStatus> {
    let program = command.get_program().to_string_lossy().into_owned();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime
        .block_on(wait(command))
        .with_context(|| format!("running {program}"))
}

async fn wait(command: Command) -> Result<ExitStatus> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut child = tokio::process::Command::from(command).spawn()?;
    let pid = child
        .id()
        .context("the command has no process")?
        .cast_signed();
    let mut was_interrupted = false;
    loop {
        tokio::select! {
            status = child.wait() => {
                let status = status?;
                if was_interrupted && status.success() {
                    bail!("interrupted");
                }
                return Ok(status);
            }
            _ = interrupt.recv() => {
                was_interrupted = true;
                // What is typed at a terminal reaches the command too: once is enough.
                if !std::io::stdin().is_terminal() {
                    forward(pid, Signal::SIGINT);
                }
            }
            _ = terminate.recv() => {
                was_interrupted = true;
                forward(pid, Signal::SIGTERM);
            }
        }
    }
}

fn forward(pid: i32, signal: Signal) {
    // The command may have ended in the meantime; the loop is about to notice.
    let _sent = kill(Pid::from_raw(pid), signal);
}

/// Runs `command` and takes any failure as an error.
pub(crate) fn run_well(command: Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = run(command)?;
    if !status.success() {
        bail!("{program} ended with {status}");
    }
    Ok(())
}

/// The exit code that a shell would give for `status`.
pub(crate) fn exit_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}
