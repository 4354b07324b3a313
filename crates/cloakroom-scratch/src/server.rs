//! A server process: starts it, waits until it is ready and stops it.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::Error;
use crate::folder::{Folder, unusable};
use crate::owner::Owner;

pub(crate) const LOG_FILE: &str = "server.log";
const PID_FILE: &str = "server.pid";
const READY_WAIT_MAX: Duration = Duration::from_secs(60);
const STOP_WAIT_MAX: Duration = Duration::from_secs(20);
const POLL_PAUSE: Duration = Duration::from_millis(20);
const LOG_TAIL_LINES: usize = 20;

/// Watchdog. Its input reaches the end when the owning process exits for any reason. It then stops the server and
/// deletes the directory if it is temporary.
const WATCHDOG: &str = r#"read -r _
kill -s "$2" "$1" 2>/dev/null
tries=0
while kill -0 "$1" 2>/dev/null && [ "$tries" -lt 100 ]; do sleep 0.2; tries=$((tries + 1)); done
kill -s KILL "$1" 2>/dev/null
if [ -n "$3" ]; then rm -rf -- "$3"; fi"#;

/// One server process.
#[derive(Debug)]
pub(crate) struct Server {
    name: &'static str,
    process: Option<Child>,
    watchdog: Option<Child>,
    stop_signal: Signal,
    folder: PathBuf,
}

impl Server {
    /// Starts `command` with its output in the log file.
    ///
    /// `stop_signal` requests a clean shutdown of this server.
    pub(crate) fn spawn(
        name: &'static str,
        mut command: Command,
        stop_signal: Signal,
        folder: &Folder,
        owner: &Owner,
    ) -> Result<Self, Error> {
        let log_file = folder.path().join(LOG_FILE);
        let (out, err) = open_twice(&log_file).map_err(|source| unusable(&log_file, source))?;
        owner.configure(&mut command, folder.path());
        // A separate process group: the owner handles an interrupt from the terminal.
        command
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err);
        let process = command.spawn().map_err(|source| Error::Spawn {
            program: name.into(),
            source,
        })?;
        let pid = process.id();
        let mut server = Self {
            name,
            process: Some(process),
            watchdog: None,
            stop_signal,
            folder: folder.path().to_owned(),
        };
        folder.write(PID_FILE, &pid.to_string(), owner)?;
        server.watchdog = Some(start_watchdog(pid, stop_signal, folder)?);
        Ok(server)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.as_ref().map_or(0, Child::id)
    }

    pub(crate) fn log_file(&self) -> PathBuf {
        self.folder.join(LOG_FILE)
    }

    /// Waits until `is_ready` returns true. Fails if the process exits or the timeout expires.
    pub(crate) fn wait_until(&mut self, is_ready: impl Fn() -> bool) -> Result<(), Error> {
        let started = Instant::now();
        while started.elapsed() < READY_WAIT_MAX {
            if is_ready() {
                return Ok(());
            }
            if self.has_exited() {
                break;
            }
            std::thread::sleep(POLL_PAUSE);
        }
        Err(Error::NotReady {
            program: self.name.into(),
            log: tail(&self.log_file()),
        })
    }

    pub(crate) fn has_exited(&mut self) -> bool {
        match &mut self.process {
            Some(process) => !matches!(process.try_wait(), Ok(None)),
            None => true,
        }
    }

    /// Detaches the process, so that it keeps running.
    pub(crate) fn leave_running(mut self) {
        self.dismiss_watchdog();
        self.process = None;
    }

    /// Stops the process and waits until it exits.
    pub(crate) fn stop(&mut self) -> Result<(), Error> {
        if let Some(mut process) = self.process.take() {
            self.terminate(&mut process)?;
            let _removed = std::fs::remove_file(self.folder.join(PID_FILE));
        }
        self.dismiss_watchdog();
        Ok(())
    }

    fn terminate(&self, process: &mut Child) -> Result<(), Error> {
        // SIGQUIT and SIGKILL lose no committed data, but the next start needs crash recovery.
        for signal in [self.stop_signal, Signal::SIGQUIT, Signal::SIGKILL] {
            if !matches!(process.try_wait(), Ok(None)) {
                return Ok(());
            }
            // If the process has exited already, `kill` fails and `try_wait` below returns its status.
            let _sent = kill(pid_of(process.id()), signal);
            let started = Instant::now();
            while started.elapsed() < STOP_WAIT_MAX {
                if !matches!(process.try_wait(), Ok(None)) {
                    return Ok(());
                }
                std::thread::sleep(POLL_PAUSE);
            }
        }
        Err(Error::NotStopped {
            program: self.name.into(),
        })
    }

    /// Kills the watchdog while its input is open, so that it does not act.
    fn dismiss_watchdog(&mut self) {
        if let Some(mut watchdog) = self.watchdog.take() {
            let _sent = watchdog.kill();
            let _status = watchdog.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // `drop` cannot report an error; callers that need it use `stop`.
        let _stopped = self.stop();
    }
}

fn open_twice(log_file: &Path) -> std::io::Result<(File, File)> {
    let log = File::options()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(log_file)?;
    let copy = log.try_clone()?;
    Ok((log, copy))
}

fn start_watchdog(pid: u32, stop_signal: Signal, folder: &Folder) -> Result<Child, Error> {
    let removed_folder = if folder.is_temporary() {
        folder.path()
    } else {
        Path::new("")
    };
    Command::new("/bin/sh")
        .args(["-c", WATCHDOG, "watchdog", &pid.to_string()])
        .arg(stop_signal.as_str().trim_start_matches("SIG"))
        .arg(removed_folder)
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|source| Error::Spawn {
            program: "sh".into(),
            source,
        })
}

/// Stops the server that [`Server::leave_running`] detached in `folder`. Returns whether one was running.
pub(crate) fn stop_left_running(
    name: &'static str,
    folder: &Path,
    stop_signal: Signal,
) -> Result<bool, Error> {
    let Some(pid) = find_left_running(folder) else {
        return Ok(false);
    };
    for signal in [stop_signal, Signal::SIGQUIT, Signal::SIGKILL] {
        match kill(pid_of(pid), signal) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(errno) => {
                return Err(Error::Failed {
                    program: name.into(),
                    reason: errno.to_string(),
                });
            }
        }
        let started = Instant::now();
        while started.elapsed() < STOP_WAIT_MAX {
            if find_left_running(folder).is_none() {
                let _removed = std::fs::remove_file(folder.join(PID_FILE));
                return Ok(true);
            }
            std::thread::sleep(POLL_PAUSE);
        }
    }
    Err(Error::NotStopped {
        program: name.into(),
    })
}

/// The pid of the server running in `folder`, verified to be that server.
pub(crate) fn find_left_running(folder: &Path) -> Option<u32> {
    let pid: u32 = std::fs::read_to_string(folder.join(PID_FILE))
        .ok()?
        .trim()
        .parse()
        .ok()?;
    let mut command_line = Vec::new();
    File::open(format!("/proc/{pid}/cmdline"))
        .ok()?
        .read_to_end(&mut command_line)
        .ok()?;
    // Pids are reused: the directory on the command line identifies our server.
    let command_line = String::from_utf8_lossy(&command_line);
    command_line.contains(folder.to_str()?).then_some(pid)
}

fn pid_of(id: u32) -> Pid {
    Pid::from_raw(id.cast_signed())
}

fn tail(file: &Path) -> String {
    let text = std::fs::read(file).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let last = lines.len().saturating_sub(LOG_TAIL_LINES);
    lines
        .iter()
        .skip(last)
        .copied()
        .collect::<Vec<_>>()
        .join("\n")
}
