//! A private Redis server on a loopback port that keeps nothing on disk.

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
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(1);

/// What can be chosen about a scratch Redis.
#[derive(Clone, Debug, Default)]
pub struct RedisOptions {
    pub place: Place,
    /// Further settings, as in `redis.conf`; they win over ours.
    pub settings: Vec<(String, String)>,
}

/// A running Redis; stopped when dropped.
#[derive(Debug)]
pub struct Redis {
    // Dropped in this order: the folder goes when nobody uses it any more.
    server: Server,
    folder: Folder,
    password: String,
    port: u16,
}

impl Redis {
    /// Starts a Redis on a free loopback port, behind a password of its own.
    pub fn start(options: RedisOptions) -> Result<Self, Error> {
        let program = programs::redis_server()?;
        let owner = Owner::oneself();
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
            match server.wait_until(|| answers(port, &password).unwrap_or(false)) {
                Ok(()) => {
                    return Ok(Self {
                        server,
                        folder,
                        password,
                        port,
                    });
                }
                // Somebody else may have taken the port since it was seen free.
                Err(_) if tries < START_TRIES && server.has_ended() => {}
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

    /// Stops the server, waits for its end, and removes its folder when that was temporary.
    pub fn stop(mut self) -> Result<(), Error> {
        self.server.stop()
    }

    /// Leaves the server running, and its folder in place, after this process has ended.
    pub fn leave_running(mut self) {
        self.folder.keep();
        self.server.leave_running();
    }

    /// Stops the server that was left running in `folder`; says whether there was one.
    pub fn stop_left_running(folder: &Path) -> Result<bool, Error> {
        server::stop_left_running(NAME, folder, STOP_SIGNAL)
    }
}

fn settings(theirs: &[(String, String)], folder: &Path, port: u16, password: &str) -> String {
    let ours = [
        ("bind", "127.0.0.1".to_owned()),
        ("port", port.to_string()),
        ("requirepass", password.to_owned()),
        ("dir", folder.display().to_string()),
        ("daemonize", "no".to_owned()),
        ("save", String::new()),
        ("appendonly", "no".to_owned()),
        // The folder on the command line is how a server that was left running is known again.
        ("set-proc-title", "no".to_owned()),
    ];
    ours.iter()
        .map(|(name, value)| (*name, value.as_str()))
        .chain(
            theirs
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str())),
        )
        .map(|(name, value)| format!("{name} \"{value}\"\n"))
        .collect()
}

/// Whether the Redis on this port knows the password, which tells it from a stranger's.
fn answers(port: u16, password: &str) -> std::io::Result<bool> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, ANSWER_WAIT_MAX)?;
    stream.set_read_timeout(Some(ANSWER_WAIT_MAX))?;
    stream.write_all(format!("AUTH {password}\r\nPING\r\nQUIT\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer.starts_with("+OK\r\n+PONG\r\n"))
}
