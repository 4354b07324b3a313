//! The Unix socket of a sealed node: each connection submits one share.

use std::io::{BufRead as _, BufReader as StdBufReader, Write as _};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use cloakroom_crypto::{Key, RootKek, Sensitive};
use nix::unistd::geteuid;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use super::{Collector, Progress, ShareLine};
use crate::Failure;

/// Longer than any share with its operator. The buffer never grows, so no copy of a share is left behind.
const LINE_BYTES_MAX: usize = 2048;
/// Between a share and the person who submits it.
const SEPARATOR: char = '\t';
/// `submit` connects after the custodian has typed, so a share arrives at once.
const LINE_TIMEOUT: Duration = Duration::from_secs(5);
/// Only the user of the node.
const SOCKET_MODE: u32 = 0o600;

/// A sealed node that waits for shares.
pub struct Ceremony {
    listener: UnixListener,
    path: PathBuf,
}

/// A share that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// Number of the share.
    pub number: u8,
    /// Who submitted it, as `cloakroom root-key submit` states it; empty if it does not.
    pub operator: String,
}

/// The root key, and the shares that restored it.
pub struct Restored {
    pub root: Key<RootKek>,
    pub submissions: Vec<Submission>,
}

impl Ceremony {
    /// Listens on the socket; replaces one that a stopped node has left behind.
    pub fn listen(path: &Path) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::Configuration(format!(
                "root_key.shares_socket {}: {}",
                path.display(),
                error.kind()
            ))
        };
        let is_socket =
            std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
        if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
            std::fs::remove_file(path).map_err(failed)?;
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        let mode = std::fs::Permissions::from_mode(SOCKET_MODE);
        std::fs::set_permissions(path, mode).map_err(failed)?;
        Ok(Self {
            listener,
            path: path.to_owned(),
        })
    }

    /// Receives shares until they restore the root key. Reports every change.
    pub async fn run(self, report: impl Fn(Progress)) -> Result<Restored, Failure> {
        let mut collector = Collector::default();
        let mut submissions = Vec::new();
        report(collector.progress());
        loop {
            let Ok((mut stream, _)) = self.listener.accept().await else {
                // Out of file descriptors, for example.
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            };
            let Some(line) = receive(&mut stream).await else {
                continue;
            };
            let (share, operator) = line
                .expose()
                .split_once(SEPARATOR)
                .unwrap_or((line.expose(), ""));
            let (reply, root) = match collector.add(share) {
                Ok(Some(root)) => ("accepted: the root key is complete".to_owned(), Some(root)),
                Ok(None) => (format!("accepted: {}", collector.progress()), None),
                Err(rejection) => (format!("rejected: {rejection}"), None),
            };
            if let (true, Ok(accepted)) = (reply.starts_with("accepted"), ShareLine::parse(share)) {
                submissions.push(Submission {
                    number: accepted.share.number(),
                    operator: operator.trim().to_owned(),
                });
            } else if collector.progress().received == 0 {
                // Wrong shares: all were discarded.
                submissions.clear();
            }
            drop(line);
            // A custodian who has left learns the outcome from the log.
            let _ = stream.write_all(format!("{reply}\n").as_bytes()).await;
            match root {
                Some(root) => return Ok(Restored { root, submissions }),
                None => report(collector.progress()),
            }
        }
    }
}

impl Drop for Ceremony {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Reads one line from a process of this node's user or of root.
async fn receive(stream: &mut UnixStream) -> Option<Sensitive<String>> {
    let peer = stream.peer_cred().ok()?.uid();
    if peer != geteuid().as_raw() && peer != 0 {
        return None;
    }
    let mut buffer = Sensitive::new(vec![0; LINE_BYTES_MAX]);
    let mut length = 0;
    let read = async {
        while length < LINE_BYTES_MAX && !buffer.expose()[..length].contains(&b'\n') {
            match stream.read(&mut buffer.expose_mut()[length..]).await {
                Ok(0) | Err(_) => return,
                Ok(count) => length += count,
            }
        }
    };
    timeout(LINE_TIMEOUT, read).await.ok()?;
    let line = std::str::from_utf8(&buffer.expose()[..length]).ok()?;
    Some(Sensitive::new(line.trim().to_owned()))
}

/// Sends one share to a sealed node, with the person who submits it, and returns the reply.
pub fn submit(path: &Path, line: &Sensitive<String>, operator: &str) -> Result<String, Failure> {
    let failed = |_| {
        Failure::Configuration(format!(
            "{}: no sealed node listens there; it may be running already",
            path.display()
        ))
    };
    let mut stream = std::os::unix::net::UnixStream::connect(path).map_err(failed)?;
    let share = line.expose().trim();
    let text = Sensitive::new(format!("{share}{SEPARATOR}{operator}\n"));
    stream.write_all(text.expose().as_bytes()).map_err(failed)?;
    let mut reply = String::new();
    StdBufReader::new(stream)
        .read_line(&mut reply)
        .map_err(failed)?;
    match reply.trim().split_once(": ") {
        Some(("accepted", progress)) => Ok(progress.to_owned()),
        Some((_, reason)) => Err(Failure::Configuration(format!(
            "the share was rejected: {reason}"
        ))),
        None => Err(Failure::Unavailable("the node closed the connection")),
    }
}
