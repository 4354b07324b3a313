//! Running a command to completion, including when this process is interrupted.

use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use anyhow::{Context, Result, anyhow, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::signal::unix::{SignalKind, signal};

/// Runs `command` and returns its status once it has exited.
///
/// An interrupt does not end this process before the command: the command may still use servers and files that this
/// process cleans up. Blocks the caller. The runtime that waits has a thread of its own, because a runtime cannot be
/// started on a thread that already drives one.
pub fn run(command: Command) -> Result<ExitStatus> {
    let program = command.get_program().to_string_lossy().into_owned();
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        runtime.block_on(wait(command))
    });
    let result = thread.join();
    result
        .unwrap_or_else(|_| Err(anyhow!("the thread that waits for it panicked")))
        .with_context(|| format!("running {program}"))
}

async fn wait(command: Command) -> Result<ExitStatus> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut child = tokio::process::Command::from(command).spawn()?;
    let pid = child
        .id()
        .context("the command has no process id")?
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
                // A terminal sends the interrupt to the command as well.
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
    // Fails if the command has exited in the meantime, which the loop handles.
    let _sent = kill(Pid::from_raw(pid), signal);
}

/// Runs `command` and returns an error unless it succeeds.
pub fn run_successfully(command: Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let status = run(command)?;
    if !status.success() {
        bail!("{program} failed: {status}");
    }
    Ok(())
}

/// The exit code that a shell reports for `status`.
pub fn exit_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `bench` and `scale` install missing packages while their runtime runs.
    #[test]
    fn a_command_can_be_run_inside_a_runtime() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();

        let status = runtime.block_on(async { run(Command::new("true")) });

        assert!(status.unwrap().success());
    }
}
