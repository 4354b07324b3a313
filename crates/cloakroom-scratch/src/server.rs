//! A running server process: started, watched over, and certainly stopped.

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

/// Waits for the end of its input, which comes when the owning process is gone however it ended;
/// then stops the server, and removes the folder when that was the plan.
const GUARD: &str = r#"read -r _
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
    guard: Option<Child>,
    stop_signal: Signal,
    folder: PathBuf,
}

impl Server {
    /// Starts `command` with its output in the folder's log.
    ///
    /// `stop_signal` is what makes this server close its connections and end in good order.
    pub(crate) fn spawn(
        name: &'static str,
        mut command: Command,
        stop_signal: Signal,
        folder: &Folder,
        owner: &Owner,
    ) -> Result<Self, Error> {
        let log_file = folder.path().join(LOG_FILE);
        let (out, err) = open_twice(&log_file).map_err(|source| unusable(&log_file, source))?;
        owner.run(&mut command, folder.path());
        // Its own process group: an interrupt typed at the terminal is for the owner to handle.
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
            guard: None,
            stop_signal,
            folder: folder.path().to_owned(),
        };
        folder.write(PID_FILE, &pid.to_string(), owner)?;
        server.guard = Some(start_guard(pid, stop_signal, folder)?);
        Ok(server)
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.as_ref().map_or(0, Child::id)
    }

    pub(crate) fn log_file(&self) -> PathBuf {
        self.folder.join(LOG_FILE)
    }

    /// Waits until `is_ready` says so, or the process ends, or too much time has passed.
    pub(crate) fn wait_until(&mut self, is_ready: impl Fn() -> bool) -> Result<(), Error> {
        let asked_at = Instant::now();
        while asked_at.elapsed() < READY_WAIT_MAX {
            if is_ready() {
                return Ok(());
            }
            if self.has_ended() {
                break;
            }
            std::thread::sleep(POLL_PAUSE);
        }
        Err(Error::NotReady {
            program: self.name.into(),
            log: tail(&self.log_file()),
        })
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        match &mut self.process {
            Some(process) => !matches!(process.try_wait(), Ok(None)),
            None => true,
        }
    }

    /// Leaves the process running after this value is gone.
    pub(crate) fn leave_running(mut self) {
        self.dismiss_guard();
        self.process = None;
    }

    /// Stops the process and waits for its end.
    pub(crate) fn stop(&mut self) -> Result<(), Error> {
        if let Some(mut process) = self.process.take() {
            self.end(&mut process)?;
            let _gone = std::fs::remove_file(self.folder.join(PID_FILE));
        }
        self.dismiss_guard();
        Ok(())
    }

    fn end(&self, process: &mut Child) -> Result<(), Error> {
        // SIGQUIT and SIGKILL lose no committed data, but leave work for the next start.
        for signal in [self.stop_signal, Signal::SIGQUIT, Signal::SIGKILL] {
            if !matches!(process.try_wait(), Ok(None)) {
                return Ok(());
            }
            // An unsent signal means that the process is gone already: the wait below notices.
            let _sent = kill(pid_of(process.id()), signal);
            let asked_at = Instant::now();
            while asked_at.elapsed() < STOP_WAIT_MAX {
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

    /// Ends the guard before its input closes, so that it does nothing.
    fn dismiss_guard(&mut self) {
        if let Some(mut guard) = self.guard.take() {
            let _sent = guard.kill();
            let _status = guard.wait();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // There is no one to tell here; `stop` is for those who want to know.
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

fn start_guard(pid: u32, stop_signal: Signal, folder: &Folder) -> Result<Child, Error> {
    let removed = if folder.is_temporary() {
        folder.path()
    } else {
        Path::new("")
    };
    Command::new("/bin/sh")
        .args(["-c", GUARD, "guard", &pid.to_string()])
        .arg(stop_signal.as_str().trim_start_matches("SIG"))
        .arg(removed)
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

/// Stops the server that [`Server::leave_running`] left in `folder`; says whether there was one.
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
                    said: errno.to_string(),
                });
            }
        }
        let asked_at = Instant::now();
        while asked_at.elapsed() < STOP_WAIT_MAX {
            if find_left_running(folder).is_none() {
                let _gone = std::fs::remove_file(folder.join(PID_FILE));
                return Ok(true);
            }
            std::thread::sleep(POLL_PAUSE);
        }
    }
    Err(Error::NotStopped {
        program: name.into(),
    })
}

/// The process that runs in `folder`, if the process of that number is still the same server.
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
    // Numbers are used again: the folder on the command line is what tells our server apart.
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
