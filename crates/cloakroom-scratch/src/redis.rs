//! A private Redis server on a loopback port, without persistence.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::folder::{Folder, Place, unusable};
use crate::owner::Owner;
use crate::port::free_port;
use crate::server::{self, Server};
use crate::{Error, programs};

const NAME: &str = "redis";
const STOP_SIGNAL: Signal = Signal::SIGTERM;
const START_TRIES: usize = 5;
const RESPONSE_WAIT_MAX: Duration = Duration::from_secs(1);

/// Options of a scratch Redis.
#[derive(Clone, Debug, Default)]
pub struct RedisOptions {
    pub place: Place,
    /// Additional settings, as in `redis.conf`; they override the defaults.
    pub settings: Vec<(String, String)>,
}

/// A running Redis; stopped when dropped.
#[derive(Debug)]
pub struct Redis {
    // Drop order matters: the server stops before its directory is deleted.
    server: Server,
    folder: Folder,
    password: String,
    port: u16,
}

impl Redis {
    /// Starts a Redis with its own password on a free loopback port.
    pub fn start(options: RedisOptions) -> Result<Self, Error> {
        let program = programs::redis_server()?;
        let owner = Owner::current_user();
        let folder = Folder::open(options.place, NAME, &owner)?;
        if server::find_left_running(folder.path()).is_some() {
            return Err(Error::Running {
                path: folder.path().to_owned(),
            });
        }
        let password = folder.secret("password", &owner)?;
        let mut tries = 0;
        loop {
            tries += 1;
            let port = free_port().map_err(|source| unusable(folder.path(), source))?;
            let text = settings(&options.settings, folder.path(), port, &password);
            let mut command = Command::new(&program);
            command.arg(folder.write("redis.conf", &text, &owner)?);
            let mut server = Server::spawn(NAME, command, STOP_SIGNAL, &folder, &owner)?;
            match server.wait_until(|| responds(port, &password).unwrap_or(false)) {
                Ok(()) => {
                    return Ok(Self {
                        server,
                        folder,
                        password,
                        port,
                    });
                }
                // Another process may have taken the port in the meantime.
                Err(_) if tries < START_TRIES && server.has_exited() => {}
                Err(error) => return Err(error),
            }
        }
    }

    pub fn url(&self) -> String {
        format!(
            "redis://default:{}@127.0.0.1:{}/0",
            self.password, self.port
        )
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    pub fn pid(&self) -> u32 {
        self.server.pid()
    }

    pub fn log_file(&self) -> PathBuf {
        self.server.log_file()
    }

    /// Stops the server, waits until it exits, and deletes its directory if it is temporary.
    pub fn stop(mut self) -> Result<(), Error> {
        self.server.stop()
    }

    /// Keeps the server running, and its directory in place, after this process exits.
    pub fn leave_running(mut self) {
        self.folder.keep();
        self.server.leave_running();
    }

    /// Stops the server that was left running in `folder`. Returns whether one was running.
    pub fn stop_left_running(folder: &Path) -> Result<bool, Error> {
        server::stop_left_running(NAME, folder, STOP_SIGNAL)
    }
}

fn settings(overrides: &[(String, String)], folder: &Path, port: u16, password: &str) -> String {
    let defaults = [
        ("bind", "127.0.0.1".to_owned()),
        ("port", port.to_string()),
        ("requirepass", password.to_owned()),
        ("dir", folder.display().to_string()),
        ("daemonize", "no".to_owned()),
        ("save", String::new()),
        ("appendonly", "no".to_owned()),
        // The directory on the command line identifies a server that was left running.
        ("set-proc-title", "no".to_owned()),
    ];
    defaults
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .chain(
            overrides
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        )
        .map(|(name, value)| format!("{name} \"{value}\"\n"))
        .collect()
}

/// Whether the Redis on this port accepts the password, which distinguishes it from other servers.
fn responds(port: u16, password: &str) -> std::io::Result<bool> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, RESPONSE_WAIT_MAX)?;
    stream.set_read_timeout(Some(RESPONSE_WAIT_MAX))?;
    stream.write_all(format!("AUTH {password}\r\nPING\r\nQUIT\r\n").as_bytes())?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response.starts_with("+OK\r\n+PONG\r\n"))
}
